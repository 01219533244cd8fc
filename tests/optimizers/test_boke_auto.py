"""boke-auto: its quadratic against plain least squares, its peaks and bonus, its sum over inputs against dense formulas."""

import numpy as np
import pytest
from differences import slopes_of

import emsopt as eo
from emsopt.optimizers import BOKEAuto
from emsopt.optimizers.boxes import boke_auto
from emsopt.optimizers.boxes.boke_auto import condition_additive, density_upper_bound, fit_quadratic
from emsopt.optimizers.boxes.gp_ucb import refit
from emsopt.optimizers.recommendation import clip_at_median, normal_scores, standardize_values
from emsopt.surrogates.gaussian_process import condition
from emsopt.surrogates.kernels import SquaredExponential


def bowl(x):
    """Return a tilted bowl to be maximised, top 0 at (0.3, 0.7, 0.4)."""
    z = (x - np.array([0.3, 0.7, 0.4])) @ np.array([[2.0, 1.0, 0.0], [0.0, 3.0, 1.0], [0.0, 0.0, 1.0]])
    return -(z**2).sum(axis=-1)


def test_the_fit_is_weighted_least_squares_and_slopes_are_right():
    """Least squares of numpy on rows scaled by the root of the weights, with the penalty as further rows."""
    rng = np.random.default_rng(0)
    X, y = rng.random((7, 2)), rng.normal(size=7)
    centre = X[3]
    distances = np.linalg.norm(X - centre, axis=1)
    h = distances.max() * (1 + 1e-3)  # all points take part: 1.5 · 6 + 1 are more
    w, z = 1 - (distances / h) ** 2, (X - centre) / h
    F = np.column_stack([np.ones(7), z, z[:, 0] ** 2, z[:, 0] * z[:, 1], z[:, 1] ** 2])
    penalty = boke_auto.RIDGE * w.sum() * np.array([1e-6, 0.1, 0.1, 1, 1, 1])
    rows = np.vstack([F * np.sqrt(w)[:, None], np.diag(np.sqrt(penalty))])
    middle = (w @ y) / w.sum()
    fitted = np.linalg.lstsq(rows, np.r_[(y - middle) * np.sqrt(w), np.zeros(6)], rcond=None)[0]
    model = fit_quadratic(X, y, centre)
    np.testing.assert_allclose(model(X)[0], middle + F @ fitted, atol=1e-7)
    x = rng.random((5, 2))
    np.testing.assert_allclose(model(x)[1], slopes_of(lambda x: model(x)[0], x), atol=1e-6)


@pytest.mark.parametrize(("d", "t"), [(1, 3), (3, 40), (31, 60)])
def test_both_forms_of_the_quadratic_are_equal(d, t, monkeypatch):
    rng = np.random.default_rng(d)
    X, y, x = rng.random((t, d)), rng.normal(size=t), rng.random((20, d))
    forms = []
    for many in (10**6, 0):
        monkeypatch.setattr(boke_auto, "DUAL_COEFFICIENTS", many)
        forms.append(fit_quadratic(X, y, X[t // 2])(x))
    for one, other in zip(*forms, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-8 * np.abs(one).max())


def test_one_point_or_points_that_coincide_are_no_trouble():
    value, slope = fit_quadratic(np.array([[0.5]]), np.array([2.0]), np.array([0.5]))(np.array([[0.7]]))
    assert (value[0], slope[0, 0]) == (pytest.approx(2.0), 0)
    twice = np.array([[0.5, 0.5], [0.5, 0.5]])
    assert fit_quadratic(twice, np.array([1.0, 3.0]), twice[0])(twice[:1])[0] == pytest.approx(2.0, abs=1e-5)


def test_it_polishes_where_a_weighted_mean_cannot():
    """Within 40 evaluations of a bowl."""
    options = {"bounds": [(0, 1)] * 3, "budget": 40}
    assert any(eo.maximize(bowl, **options, rng=seed, target=-1e-3).fun >= -1e-3 for seed in range(2))
    assert any(eo.maximize(bowl, "boke+", **options, rng=seed).fun < -1e-2 for seed in range(2))


def test_with_noise_the_best_peak_is_where_the_mean_is_highest(monkeypatch):
    """Steps that climb at all stay at twenty good values, or go to another peak; the luckiest value is not the first."""
    monkeypatch.setattr(boke_auto, "SUM_SHARE", 0.0)
    good, lucky, rng = np.array([0.3, 0.7, 0.4]), np.array([0.9, 0.1, 0.9]), np.random.default_rng(0)
    around, elsewhere = good + 0.03 * rng.normal(size=(20, 3)), rng.random((20, 3))
    X = np.vstack([lucky, around, elsewhere, np.clip(lucky + 0.01 * rng.normal(size=(5, 3)), 0, 1)])
    near = []
    for seed in range(20):
        optimizer = BOKEAuto(bounds=[(0, 1)] * 3, sense="max", noisy=True, initial=0, rng=seed)
        optimizer.exploring = 1e-9
        for x, y in zip(X, [0.02, *[0.0] * 20, *[-5.0] * 25], strict=True):
            optimizer.tell(x, y)
        near.append(np.linalg.norm(optimizer.ask() - good) < 0.2)
    assert np.mean(near) > 0.4


def test_without_noise_climbs_follow_the_model_that_predicts_the_nearest_points_better():
    """On waves that a process knows well from 25 values, but no quadratic: it would lose 0.009, the process 0.00001."""
    waves = lambda x: float(np.sin(6 * x[..., 0]) + np.cos(5 * x[..., 1] - 2))  # 2 at the top

    def loss(noisy):
        optimizer = BOKEAuto(waves, bounds=[(0, 1)] * 2, sense="max", noisy=noisy, initial=0, rng=0)
        for x in np.random.default_rng(6).random((25, 2)):
            optimizer.tell(x, waves(x))
        optimizer._refit_if_due()
        return 2 - waves(optimizer._maximize_at_peak(optimizer.process()))

    assert loss(noisy=False) < 1e-3 < loss(noisy=True)
    X = np.random.default_rng(6).random((25, 3))
    y = np.array([bowl(x) for x in X])
    process = condition(SquaredExponential(0.2), X, y, noise_ratio=1e-6)
    assert boke_auto.interpolate_peak(process, X, y, X[y.argmax()]) is None  # a quadratic is exact on a bowl


def test_a_peak_is_no_worse_than_its_neighbours():
    """Against the definition, point by point."""
    rng = np.random.default_rng(0)
    X, y = rng.random((40, 2)), rng.normal(size=40)
    order = np.array([np.argsort(np.linalg.norm(X - x, axis=1)) for x in X])
    wanted = [i for i in np.argsort(-y) if all(y[i] >= y[order[i, 1:7]])]
    peaks, radii = boke_auto.find_peaks(X, y)
    assert peaks.tolist() == wanted
    np.testing.assert_allclose(radii, np.linalg.norm(X[order[peaks, 3]] - X[peaks], axis=1))
    assert [each.tolist() for each in boke_auto.find_peaks(X[:1], y[:1])] == [[0], [0.0]]


@pytest.fixture(params=[1e-6, 0.1], ids=["noise-free", "noisy"])
def process(request):
    """A Gaussian process of nine points in the plane with unequal lengthscales."""
    rng = np.random.default_rng(1)
    X = rng.random((9, 2))
    return condition(SquaredExponential([0.3, 0.8]), X, rng.normal(size=9), noise_ratio=request.param)


def test_the_density_is_of_the_variances_that_each_point_alone_would_leave(process):
    """Gaussian processes of one point and half the lengthscales, their variances multiplied."""
    x = np.random.default_rng(2).random((20, 2))
    mean, density, _, _ = boke_auto.mean_and_density(process, x)
    half, options = SquaredExponential([0.15, 0.4]), {"noise_ratio": process.noise_ratio, "amplitude": 1.0}
    alone = [condition(half, p[None], [0.0], **options).predict(x)[1] for p in process.X]
    np.testing.assert_allclose(np.exp(-density), np.prod(alone, axis=0), rtol=1e-9)
    np.testing.assert_allclose(mean, process.predict(x)[0], atol=1e-9)


def test_slopes_are_those_of_differences(process):
    x = np.random.default_rng(2).random((20, 2))
    for function in (lambda x: density_upper_bound(process, 2.0, x), lambda x: boke_auto.negative_density(process, x)):
        numeric = slopes_of(lambda x, function=function: function(x)[0], x)
        np.testing.assert_allclose(function(x)[1], numeric, rtol=1e-4, atol=1e-5)


def test_the_bonus_is_nothing_at_a_point_and_bounded_far_away():
    X, y, kernel = np.array([[0.5, 0.5], [0.6, 0.4]]), np.array([1.0, -1.0]), SquaredExponential([0.1, 0.1])
    process, noisy = condition(kernel, X, y), condition(kernel, X[:1], y[:1], noise_ratio=0.1, amplitude=1.0)
    bonus, of_noisy = (density_upper_bound(p, 2.0, p.X)[0] - p.predict(p.X)[0] for p in (process, noisy))
    assert np.abs(bonus).max() < 3e-3 * np.sqrt(process.amplitude)
    assert of_noisy == pytest.approx(2 * np.sqrt(0.1 / 1.1))  # what a second look there could still say
    value, slopes = density_upper_bound(process, 2.0, np.array([[9.0, -9.0]]))
    assert value[0] == pytest.approx(2 * np.sqrt(process.amplitude))
    assert not slopes.any()


def test_lengthscales_are_fitted_anew_after_five_points():
    optimizer = BOKEAuto(bowl, bounds=[(0, 1)] * 3, sense="max", initial=8, rng=0)
    kernels = []
    for _ in range(20):
        x = optimizer.ask()
        kernels.append(optimizer.process().kernel if optimizer.values else None)
        optimizer.tell(x, bowl(x))
    assert [k for k in range(9, 20) if kernels[k] is not kernels[k - 1]] == [13, 18]
    _, second, third = kernels[-1].length_scale
    assert second < third  # the bowl is steeper along the second input


def test_values_are_cut_at_the_median_over_the_box():
    """On a line the points at 0, 0.2, 0.4, 0.5 and 0.6 count 0.2, 0.2, 0.1, 0.1 and 0.1; equal values become zeros."""
    X = np.array([[0.0], [0.2], [0.4], [0.5], [0.6]])
    np.testing.assert_allclose(clip_at_median(X, np.array([1.0, 2.0, 3.0, 4.0, 5.0])), [2.0, 2.0, 3.0, 4.0, 5.0])
    for k in (1, 5):
        np.testing.assert_array_equal(standardize_values(clip_at_median(X[:k], np.full(k, 0.1))), 0)


def test_a_cone_on_a_plain_is_found_and_a_constant_function_searched_without_a_fit():
    """The first design is flat, which says nothing on lengthscales: the search must not keep to the border."""
    cone = lambda x: max(0.0, 1 - np.linalg.norm(x - 0.43) / 0.12)
    assert eo.maximize(cone, bounds=[(0, 1)] * 2, budget=50, rng=0, target=0.5).fun >= 0.5
    assert eo.maximize(lambda x: 1.0, bounds=[(0, 1)] * 2, budget=12, method="boke-auto", rng=0).fun == 1


# -- the sum over inputs


def covariance_of_sums(a, b, lengthscale):
    """The covariance, input by input."""
    return np.exp(-((a[:, None] - b) ** 2) / (2 * lengthscale**2)).mean(axis=2)


def test_posterior_and_left_out_predictions_are_those_of_dense_formulas():
    """The deviation of a part is by Schur's complement in its joint covariance with all observed sums."""
    rng = np.random.default_rng(0)
    X = rng.random((30, 3))
    y = standardize_values(np.sin(6 * X[:, 0]) + X[:, 1] ** 2 + 0.1 * rng.normal(size=30))
    x = rng.random((8, 3))
    process = condition_additive(X, y, [0.3], [0.01])[0]
    covariance = covariance_of_sums(X, X, 0.3) + 0.01 * np.eye(30)
    across = covariance_of_sums(x[:1, 1:2], X[:, 1:2], 0.3) / 3
    expected = covariance_of_sums(x, X, 0.3) @ np.linalg.solve(covariance, y)
    np.testing.assert_allclose(sum(process.predict_input(j, x[:, j])[0] for j in range(3)), expected, atol=1e-8)
    assert process.scale == pytest.approx(np.sqrt(y @ np.linalg.solve(covariance, y) / 30))
    left = 1 / 3 - across @ np.linalg.solve(covariance, across.T)
    assert process.predict_input(1, x[:1, 1])[1][0] == pytest.approx(process.scale * np.sqrt(left[0, 0]))
    for process in condition_additive(X, y, [0.2, 0.5], [1e-3, 0.1]):
        for i in (0, 11, 29):
            rest = np.arange(30) != i
            without = condition_additive(X[rest], y[rest], [process.lengthscale], [process.noise_ratio])[0]
            expected = sum(without.predict_input(j, X[i : i + 1, j])[0][0] for j in range(3))
            assert process.leave_one_out[i] == pytest.approx(expected, abs=1e-7)


def test_normal_scores_depend_on_the_order_only_and_are_0_at_the_box_s_median():
    rng = np.random.default_rng(0)
    X, gains = rng.random((50, 2)), rng.normal(size=50)
    scores = normal_scores(X, gains)
    np.testing.assert_allclose(normal_scores(X, np.exp(gains)), scores)
    assert (np.diff(scores[np.argsort(gains)]) > 0).all()
    assert abs(scores[gains == clip_at_median(X, gains).min()].item()) < 0.2
    assert normal_scores(np.array([[0.1], [0.9]]), np.array([1.0, 2.0])) == pytest.approx([-0.6745, 0.6745], abs=1e-3)
    # Half of the box is covered by equal gains, which lie in the middle: their score is 0, in any order.
    X, gains = np.array([[0.1], [0.3], [0.5], [0.7], [0.9]]), np.array([5.0, 2.0, 7.0, 5.0, 5.0])
    for order in (np.arange(5), np.arange(5)[::-1]):
        wanted = np.array([0, -1.2816, 1.2816, 0, 0])[order]
        np.testing.assert_allclose(normal_scores(X[order], gains[order]), wanted, atol=1e-4)


@pytest.mark.parametrize("shape", ["sum", "exponential of a sum", "product"])
def test_the_sum_is_used_where_it_predicts_better(shape):
    X = np.random.default_rng(3).random((80, 5))
    total = np.cos(9 * X + np.arange(5)).sum(axis=1)
    y = {"sum": total, "exponential of a sum": np.exp(2 * total), "product": np.cos(2 * X.sum(axis=1))}[shape]
    process = refit(X, standardize_values(clip_at_median(X, y)), noisy=False, spread=0.7, last=None)
    chosen = boke_auto.select_additive(X, y, process)
    assert (chosen is None) == (shape == "product")
    assert chosen is None or chosen[0] == (shape != "sum")
    assert boke_auto.select_additive(X[:, :1], y, process) is None  # of one input there is no sum


def test_many_peaks_along_five_inputs_are_searched_by_coordinate(monkeypatch):
    """Regret with the steps by the sum is less than half of that without."""
    centres = np.array([0.13, 0.81, 0.37, 0.62, 0.45])
    rippled = lambda x: ((x - centres) ** 2).sum() + 0.1 * (1 - np.cos(25 * (x - centres))).sum()

    def halves(seed):
        options = {"bounds": [(0, 1)] * 5, "budget": 72, "rng": seed}
        best = eo.minimize(rippled, **options).fun
        with monkeypatch.context() as patch:
            patch.setattr(boke_auto, "SUM_SHARE", 0.0)
            return eo.minimize(rippled, **options, target=2 * best).fun > 2 * best

    assert halves(0) or halves(1)
