"""boke-auto: its quadratic against plain least squares and differences, its peaks and bonus, what it leaves and finds."""

import numpy as np
import pytest

import emsopt as eo
from emsopt.optimizers import BOKEAuto
from emsopt.optimizers.boxes import boke_auto
from emsopt.optimizers.boxes.boke_auto import RIDGE, emptiness, local_quadratic, mean_and_density, peaks_of, upper_bound
from emsopt.optimizers.values import clipped, standardized
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
    penalty = RIDGE * w.sum() * np.array([1e-6, 0.1, 0.1, 1, 1, 1])
    rows = np.vstack([F * np.sqrt(w)[:, None], np.diag(np.sqrt(penalty))])
    middle = (w @ y) / w.sum()
    fitted = np.linalg.lstsq(rows, np.r_[(y - middle) * np.sqrt(w), np.zeros(6)], rcond=None)[0]
    model = local_quadratic(X, y, centre)
    np.testing.assert_allclose(model(X)[0], middle + F @ fitted, atol=1e-7)
    x = rng.random((5, 2))
    for k in range(2):
        step = 1e-6 * np.eye(2)[k]
        difference = (model(x + step)[0] - model(x - step)[0]) / 2e-6
        np.testing.assert_allclose(model(x)[1][:, k], difference, atol=1e-6)


@pytest.mark.parametrize(("d", "t"), [(1, 3), (2, 7), (3, 40), (6, 30), (31, 60)])
def test_both_forms_of_the_quadratic_are_equal(d, t, monkeypatch):
    rng = np.random.default_rng(d)
    X, y, x = rng.random((t, d)), rng.normal(size=t), rng.random((20, d))
    forms = []
    for many in (10**6, 0):
        monkeypatch.setattr(boke_auto, "MANY", many)
        forms.append(local_quadratic(X, y, X[t // 2])(x))
    for one, other in zip(*forms, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-8 * np.abs(one).max())


def test_one_point_or_points_that_coincide_are_no_trouble():
    value, slope = local_quadratic(np.array([[0.5]]), np.array([2.0]), np.array([0.5]))(np.array([[0.7]]))
    assert value[0] == pytest.approx(2.0)
    assert slope[0, 0] == 0
    twice = np.array([[0.5, 0.5], [0.5, 0.5]])
    value, _ = local_quadratic(twice, np.array([1.0, 3.0]), twice[0])(twice[:1])
    assert value[0] == pytest.approx(2.0, abs=1e-5)


def test_an_exploiting_step_goes_no_farther_than_the_next_neighbours():
    """On a cone, which no quadratic fits, while the best point is far from its top."""

    def cone(x):
        return -np.linalg.norm(x - np.array([0.3, 0.7, 0.4]))

    steps = 0
    for seed in range(3):
        optimizer = BOKEAuto(cone, bounds=[(0, 1)] * 3, sense="max", initial=12, rng=seed)
        optimizer.exploring = 1e-9
        while len(optimizer.values) < 12 or max(optimizer.values) < -0.05:  # then little is left to gain
            x = optimizer.ask()
            if len(optimizer.values) >= 12:
                X = optimizer.points
                best = X[np.argmax(optimizer.values)]
                radius = np.sort(np.linalg.norm(X - best, axis=1))[4]
                assert np.abs(x - best).max() <= radius + 1e-9
                steps += 1
            optimizer.tell(x, cone(x))
    assert steps >= 6


def test_it_polishes_where_a_weighted_mean_cannot():
    """Within 40 evaluations of a bowl."""
    options = {"bounds": [(0, 1)] * 3, "budget": 40}
    assert any(eo.maximize(bowl, **options, rng=seed, target=-1e-3).fun >= -1e-3 for seed in range(2))
    assert any(eo.maximize(bowl, "boke+", **options, rng=seed).fun < -1e-2 for seed in range(2))


def test_with_noise_the_best_peak_is_where_the_mean_is_highest(monkeypatch):
    """Steps that climb at all stay at twenty good values, or go to another peak; the luckiest value is not the first."""
    monkeypatch.setattr(boke_auto, "COORDINATEWISE", 0.0)
    good, lucky = np.array([0.3, 0.7, 0.4]), np.array([0.9, 0.1, 0.9])
    near = []
    for seed in range(20):
        optimizer = BOKEAuto(bowl, bounds=[(0, 1)] * 3, sense="max", noisy=True, initial=0, rng=seed)
        optimizer.exploring = 1e-9
        rng = np.random.default_rng(0)
        for x in good + 0.03 * rng.normal(size=(20, 3)):
            optimizer.tell(x, 0.0)
        for x in rng.random((20, 3)):
            optimizer.tell(x, -5.0)
        optimizer.tell(lucky, 0.02)
        for x in np.clip(lucky + 0.01 * rng.normal(size=(5, 3)), 0, 1):
            optimizer.tell(x, -5.0)
        near.append(np.linalg.norm(optimizer.ask() - good) < 0.2)
    assert optimizer.points[np.argmax(optimizer.gains)] == pytest.approx(lucky)
    assert np.mean(near) > 0.4


def test_without_noise_half_of_the_climbs_follow_the_process_which_needs_fewer_points():
    """On waves that a process knows well from 25 values, but no quadratic: it would lose 0.009, the process 0.00001."""

    def waves(x):
        return float(np.sin(6 * x[..., 0]) + np.cos(5 * x[..., 1] - 2))  # 2 at the top

    def close(noisy):
        chosen = []
        for seed in range(20):
            optimizer = BOKEAuto(waves, bounds=[(0, 1)] * 2, sense="max", noisy=noisy, initial=0, rng=seed)
            for x in np.random.default_rng(6).random((25, 2)):
                optimizer.tell(x, waves(x))
            optimizer._refit()
            chosen.append(2 - waves(optimizer._exploit(optimizer.process())) < 1e-3)
        return np.mean(chosen)

    assert 0.2 < close(noisy=False) < 0.8
    assert close(noisy=True) == 0


def test_a_peak_is_no_worse_than_its_neighbours():
    """Against the definition, point by point."""
    rng = np.random.default_rng(0)
    X, y = rng.random((40, 2)), rng.normal(size=40)
    expected = {}
    for i in range(40):
        order = np.argsort(np.linalg.norm(X - X[i], axis=1))[1:]
        if all(y[i] >= y[j] for j in order[:6]):
            expected[i] = np.linalg.norm(X[order[2]] - X[i])
    peaks, radii = peaks_of(X, y)
    assert set(peaks.tolist()) == set(expected)
    assert peaks[0] == np.argmax(y)
    assert (np.diff(y[peaks]) <= 0).all()
    np.testing.assert_allclose(radii, [expected[i] for i in peaks.tolist()])
    peaks, radii = peaks_of(X[:1], y[:1])
    assert (peaks.tolist(), radii.tolist()) == ([0], [0.0])


@pytest.fixture(params=[1e-6, 0.1], ids=["noise-free", "noisy"])
def process(request):
    """A Gaussian process of nine points in the plane with unequal lengthscales."""
    rng = np.random.default_rng(1)
    X = rng.random((9, 2))
    return condition(SquaredExponential([0.3, 0.8]), X, rng.normal(size=9), noise_ratio=request.param)


def test_the_density_is_of_the_variances_that_each_point_alone_would_leave(process):
    """Gaussian processes of one point and half the lengthscales, their variances multiplied."""
    x = np.random.default_rng(2).random((20, 2))
    mean, density, _, _ = mean_and_density(process, x)
    half = SquaredExponential([0.15, 0.4])
    alone = [
        condition(half, p[None], [0.0], noise_ratio=process.noise_ratio, amplitude=1.0).predict(x)[1] for p in process.X
    ]
    np.testing.assert_allclose(np.exp(-density), np.prod(alone, axis=0), rtol=1e-9)
    np.testing.assert_allclose(mean, process.predict(x)[0], atol=1e-9)


@pytest.mark.parametrize("function", [lambda p, x: upper_bound(p, 2.0, x), emptiness], ids=["bound", "emptiness"])
def test_slopes_are_those_of_differences(process, function):
    x = np.random.default_rng(2).random((20, 2))
    slope = function(process, x)[1]
    for k in range(2):
        step = 1e-6 * np.eye(2)[k]
        difference = (function(process, x + step)[0] - function(process, x - step)[0]) / 2e-6
        np.testing.assert_allclose(slope[:, k], difference, rtol=1e-4, atol=1e-5)


def test_the_bonus_is_nothing_at_a_point_and_bounded_far_away():
    X, y = np.array([[0.5, 0.5], [0.6, 0.4]]), np.array([1.0, -1.0])
    process = condition(SquaredExponential([0.1, 0.1]), X, y)
    bonus = upper_bound(process, 2.0, X)[0] - process.predict(X)[0]
    assert np.abs(bonus).max() < 3e-3 * np.sqrt(process.amplitude)
    noisy = condition(SquaredExponential([0.1, 0.1]), X[:1], y[:1], noise_ratio=0.1, amplitude=1.0)
    bonus = upper_bound(noisy, 2.0, X[:1])[0] - noisy.predict(X[:1])[0]
    assert bonus == pytest.approx(2 * np.sqrt(0.1 / 1.1))  # what a second look there could still say
    far = upper_bound(process, 2.0, np.array([[9.0, -9.0]]))
    assert far[0][0] == pytest.approx(2 * np.sqrt(process.amplitude))
    assert np.abs(far[1]).max() == 0


def two_tops(x):
    """Return two narrow bumps, heights 1 at (0.2, 0.2) and 0.9 at (0.8, 0.8)."""
    tops = np.array([[0.2, 0.2], [0.8, 0.8]])
    return float(np.array([1.0, 0.9]) @ np.exp(-((x - tops) ** 2).sum(axis=1) / 0.02))


def test_a_crowded_top_is_left_for_another(monkeypatch):
    """Told four points at the higher top within 0.01 of each other, and a slope towards the lower one."""
    monkeypatch.setattr(boke_auto, "INTERPOLATED", 0.0)  # the process may know the top from points that are no crowd
    around = 0.2 + 0.003 * np.array([[0, 0], [1, 0], [0, 1], [-1, 0], [0, -1.0], [1, 1]])
    slope = 0.8 + 0.1 * np.array([[-1, -1], [1, -1], [-1, 1], [1.2, 1], [0.4, 0.2], [0.1, 0.5], [-0.4, -0.5]])

    def steps(told):
        places = []
        for seed in range(20):
            optimizer = BOKEAuto(two_tops, bounds=[(0, 1)] * 2, sense="max", initial=0, rng=seed)
            optimizer.exploring = 1e-9
            for x in told:
                optimizer.tell(x, two_tops(x))
            places.append(np.linalg.norm(optimizer.ask() - 0.8) < 0.3)
        return np.mean(places)

    assert 0.2 < steps(np.vstack([around, slope])) < 0.8  # every other time
    assert steps(np.vstack([0.2 + 10 * (around - 0.2), slope])) == 0


def test_a_top_that_promises_nothing_is_left_every_other_time(monkeypatch):
    """A quadratic with its top among the points has nothing to gain there, and there is no other peak."""
    monkeypatch.setattr(boke_auto, "INTERPOLATED", 0.0)
    stays = []
    for seed in range(20):
        optimizer = BOKEAuto(bowl, bounds=[(0, 1)] * 3, sense="max", initial=0, rng=seed)
        top = np.array([0.3, 0.7, 0.4])
        for x in np.vstack([top, np.random.default_rng(0).random((30, 3))]):
            optimizer.tell(x, bowl(x))
        x = optimizer._exploit(optimizer.process())
        assert x is None or np.linalg.norm(x - top) < 0.01
        stays.append(x is not None)
    assert 0.2 < np.mean(stays) < 0.8


def test_lengthscales_are_fitted_anew_after_five_points_and_looking_changes_nothing():
    watched, alone = (BOKEAuto(bowl, bounds=[(0, 1)] * 3, sense="max", initial=8, rng=0) for _ in range(2))
    kernels = []
    for _ in range(20):
        x = watched.ask()
        np.testing.assert_array_equal(x, alone.ask())
        kernels.append(watched.process().kernel if watched.values else None)
        watched.tell(x, bowl(x))
        watched.process()
        alone.tell(x, bowl(x))
    changes = [k for k in range(9, 20) if kernels[k] is not kernels[k - 1]]
    assert changes == [13, 18]
    _, second, third = kernels[-1].length_scale
    assert second < third  # the bowl is steeper along the second input


def test_values_are_cut_at_the_median_over_the_box():
    """By hand: on a line the points at 0, 0.2, 0.4 and 0.5 count 0.2, 0.2, 0.1, 0.1 (and 0.1 the one at 0.6).

    Equal values, and one alone, count as zeros once standardised.
    """
    X, gains = np.array([[0.0], [0.2], [0.4], [0.5], [0.6]]), np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    expected = np.array([2.0, 2.0, 3.0, 4.0, 5.0])
    np.testing.assert_allclose(clipped(X, gains), expected)
    for k in (1, 5):
        np.testing.assert_array_equal(standardized(clipped(X[:k], np.full(k, 0.1))), 0)


def test_a_cone_on_a_plain_is_found():
    """The first design is flat, which says nothing on lengthscales: the search must not keep to the border."""

    def cone(x):
        return max(0.0, 1 - np.linalg.norm(x - 0.43) / 0.12)

    assert eo.maximize(cone, bounds=[(0, 1)] * 2, budget=50, rng=0, target=0.5).fun >= 0.5
