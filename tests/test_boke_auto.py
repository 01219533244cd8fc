"""boke-auto: its quadratic against plain least squares and differences, where it steps, what it leaves and polishes."""

import numpy as np
import pytest

import emsopt as eo
from emsopt.errors import InputError
from emsopt.optimizers import BOKEAuto, profile
from emsopt.optimizers.boke import log_upper_bound
from emsopt.optimizers.boke_auto import (
    CROWDED,
    NEIGHBOURS,
    RIDGE,
    Blend,
    local_quadratic,
    log_shared_bound,
    peaks_of,
    spacing,
)
from emsopt.surrogates.kernel_regression import condition
from emsopt.surrogates.radial_basis import fit


def bowl(x):
    """Return a tilted bowl to be maximised, top 0 at (0.3, 0.7, 0.4)."""
    z = (x - np.array([0.3, 0.7, 0.4])) @ np.array([[2.0, 1.0, 0.0], [0.0, 3.0, 1.0], [0.0, 0.0, 1.0]])
    return -(z**2).sum(axis=-1)


@pytest.mark.parametrize("d", [1, 2, 4])
def test_a_quadratic_is_recovered(d):
    """With points enough and little penalty; the closed form is the function itself."""
    rng = np.random.default_rng(d)
    A, b = rng.normal(size=(d, d)), rng.normal(size=d)
    X = rng.random((60, d))
    y = 1 + X @ b + ((X @ A) ** 2).sum(axis=1)
    centre = X[np.argmax(y)]
    model = local_quadratic(X, y, centre)
    k = min(60, int(np.ceil(NEIGHBOURS * (d + 1) * (d + 2) / 2)))
    near = X[np.argsort(np.linalg.norm(X - centre, axis=1))[:k]]
    value, _ = model(near)
    expected = 1 + near @ b + ((near @ A) ** 2).sum(axis=1)
    assert np.abs(value - expected).max() < 1e-3 * np.ptp(expected)


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


def test_one_point_or_points_that_coincide_are_no_trouble():
    value, slope = local_quadratic(np.array([[0.5]]), np.array([2.0]), np.array([0.5]))(np.array([[0.7]]))
    assert value[0] == pytest.approx(2.0)
    assert slope[0, 0] == 0
    twice = np.array([[0.5, 0.5], [0.5, 0.5]])
    value, _ = local_quadratic(twice, np.array([1.0, 3.0]), twice[0])(twice[:1])
    assert value[0] == pytest.approx(2.0, abs=1e-5)


def test_an_exploiting_step_goes_no_farther_than_the_next_neighbours():
    optimizer = BOKEAuto(bowl, bounds=[(0, 1)] * 3, exploring=1e-9, initial=12, rng=0)
    for _ in range(17):  # before it has converged, and explores because nothing is left to polish
        x = optimizer.ask()
        if len(optimizer.values) >= 12:
            X = optimizer.points
            best = X[np.argmax(optimizer.values)]
            radius = np.sort(np.linalg.norm(X - best, axis=1))[4]
            assert np.abs(x - best).max() <= radius + 1e-9
        optimizer.tell(x, bowl(x))


def test_it_polishes_where_a_weighted_mean_cannot():
    """Regret after 40 evaluations of a bowl, median of three runs each."""
    regret = {
        method: np.median(
            [-eo.maximize(bowl, method, bounds=[(0, 1)] * 3, budget=40, rng=seed).fun for seed in range(3)]
        )
        for method in ("boke-auto", "boke+")
    }
    assert regret["boke-auto"] < 1e-3
    assert regret["boke-auto"] < 0.1 * regret["boke+"]


def test_with_noise_the_centre_is_where_the_regression_is_highest():
    optimizer = BOKEAuto(bowl, bounds=[(0, 1)] * 3, noisy=True, exploring=1e-9, initial=0, rng=0)
    rng = np.random.default_rng(0)
    good = np.array([0.3, 0.7, 0.4])
    for _ in range(20):
        optimizer.tell(np.clip(good + 0.03 * rng.normal(size=3), 0, 1), 0.0)
    for x in rng.random((20, 3)):
        optimizer.tell(x, -5.0)
    optimizer.tell(good, 0.01)
    optimizer.tell([0.9, 0.1, 0.9], 0.02)  # the luckiest, among bad ones
    for x in np.array([0.9, 0.1, 0.9]) + 0.01 * rng.normal(size=(5, 3)):
        optimizer.tell(np.clip(x, 0, 1), -5.0)
    assert np.linalg.norm(optimizer.ask() - good) < 0.2


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


def test_spacing_is_the_distance_of_the_third_nearest_in_the_plane():
    X, x = np.random.default_rng(1).random((40, 2)), np.random.default_rng(2).random((9, 2))
    expected = [sorted(np.hypot(*(X - one).T))[2] for one in x]
    np.testing.assert_allclose(spacing(X, x), expected)
    np.testing.assert_allclose(spacing(X[:2], x), [max(np.hypot(*(X[:2] - one).T)) for one in x])


def test_a_single_point_is_a_peak_without_room():
    peaks, radii = peaks_of(np.array([[0.5, 0.5]]), np.array([1.0]))
    assert (peaks.tolist(), radii.tolist()) == ([0], [0.0])


def test_slopes_of_the_shared_bound_are_those_of_differences():
    rng = np.random.default_rng(1)
    X, y = rng.random((9, 2)), rng.normal(size=9)
    model = Blend(y, fit(X, y), condition(X, y, 0.2))
    x = rng.random((20, 2))
    value, slope = log_shared_bound(model, 0.01, x)
    plain, log_density = log_upper_bound(model, 0.01, x)[0], model.predict(x)[1]
    np.testing.assert_allclose(np.exp(value), np.exp(plain) / (1 + np.exp(log_density)), rtol=1e-12)
    for k in range(2):
        step = 1e-6 * np.eye(2)[k]
        difference = (
            log_shared_bound(model, 0.01, x + step)[0] - log_shared_bound(model, 0.01, x - step)[0]
        ) / 2e-6
        np.testing.assert_allclose(slope[:, k], difference, rtol=1e-4, atol=1e-5)


def two_tops(x):
    """Return two narrow bumps, heights 1 at (0.2, 0.2) and 0.9 at (0.8, 0.8)."""
    tops = np.array([[0.2, 0.2], [0.8, 0.8]])
    return float(np.array([1.0, 0.9]) @ np.exp(-((x - tops) ** 2).sum(axis=1) / 0.02))


def test_a_crowded_top_is_left_for_another():
    """Told four points at the higher top within 0.01 of each other, and a slope towards the lower one."""
    around = 0.2 + 0.003 * np.array([[0, 0], [1, 0], [0, 1], [-1, 0], [0, -1.0], [1, 1]])
    slope = 0.8 + 0.1 * np.array([[-1, -1], [1, -1], [-1, 1], [1.2, 1], [0.4, 0.2], [0.1, 0.5], [-0.4, -0.5]])

    def steps(told):
        places = []
        for seed in range(20):
            optimizer = BOKEAuto(two_tops, bounds=[(0, 1)] * 2, initial=0, exploring=1e-9, rng=seed)
            for x in told:
                optimizer.tell(x, two_tops(x))
            places.append(np.linalg.norm(optimizer.ask() - 0.8) < 0.3)
        return np.mean(places)

    assert 0.2 < steps(np.vstack([around, slope])) < 0.8  # every other time
    assert steps(np.vstack([0.2 + 10 * (around - 0.2), slope])) == 0


def test_an_upper_bound_at_a_crowded_place_is_not_followed():
    optimizer = BOKEAuto(two_tops, bounds=[(0, 1)] * 2, initial=0, exploring=1, noise=1e-9, rng=0)
    grid = np.stack(np.meshgrid(*[np.linspace(0, 1, 4)] * 2), axis=-1).reshape(-1, 2)
    ring = 0.2 + 0.005 * np.array([[1, 0], [-1, 0], [0, 1], [0, -1]])
    for x in np.vstack([grid, ring]):
        optimizer.tell(x, two_tops(x))
    model = optimizer.surrogate()
    top = optimizer._climb(lambda x: log_upper_bound(model, 1e-12, x))
    assert spacing(optimizer.points, top[None])[0] <= CROWDED  # where a step would go without the rule
    assert spacing(optimizer.points, optimizer.ask()[None])[0] > CROWDED


def test_a_profile_is_of_the_papers_methods():
    """Their bound is (3.12) of the kernel regression; what boke-auto maximises is another."""
    optimizer = BOKEAuto(lambda x: -x[0], bounds=[(0, 1)], rng=0)
    optimizer.tell([0.5], -0.5)
    with pytest.raises(InputError, match=r"must be a BOKE or BOKEPlus, .* got BOKEAuto"):
        profile(optimizer)
