"""With noise a run recommends a point by a model, checked against scikit-learn; the luckiest value has its own name."""

import tracemalloc

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

import emsopt as eo
from emsopt.optimizers import recommendation
from emsopt.optimizers.boxes._base import RandomPoints
from emsopt.optimizers.recommendation import estimate_gains, posterior_means
from emsopt.surrogates.gaussian_process import condition
from emsopt.surrogates.kernels import SquaredExponential

KERNELS = [SquaredExponential([width, width]) for width in (0.5, 0.2, 1.0)]


def test_posterior_means_are_scikit_learns_at_its_own_best_fit(monkeypatch):
    """Without the prior on lengthscales both maximise the same likelihood over signal, lengthscales and noise."""
    monkeypatch.setattr(recommendation, "SPREAD", np.inf)
    rng = np.random.default_rng(0)
    X = rng.random((40, 2))
    y = np.sin(5 * X[:, 0]) + X[:, 1] + 0.2 * rng.normal(size=40)
    kernel = ConstantKernel(1.0, (1e-3, 1e3)) * RBF([0.5, 0.5], (0.05, 20)) + WhiteKernel(0.1)
    theirs = GaussianProcessRegressor(kernel, normalize_y=True, n_restarts_optimizer=5, random_state=0).fit(X, y)
    np.testing.assert_allclose(posterior_means(KERNELS, X, y), theirs.predict(X), atol=2e-3)


def waves(n, points=None):
    """Return n points of the unit square, of which some are repeated if ``points`` is below n, exact and noisy values."""
    rng = np.random.default_rng(0)
    X = rng.random((points or n, 2))[np.arange(n) % (points or n)]
    exact = np.sin(6 * X[:, 0]) * np.cos(5 * X[:, 1])
    return X, exact, exact + 0.3 * rng.normal(size=n)


@pytest.mark.parametrize("centres", [500, 60], ids=["exact", "subset of regressors"])
def test_repeats_count_as_often_as_they_were_observed(centres, monkeypatch):
    """Each value on a row of its own, by the process of `condition` with the same hyperparameters."""
    X, _, y = waves(200, points=80)
    kernel, scale = SquaredExponential([0.3, 0.4]), y.std()
    model = condition(kernel, X, (y - y.mean()) / scale, noise_ratio=0.2, amplitude=1.0)
    monkeypatch.setattr(recommendation, "fit", lambda *a, **options: model)
    monkeypatch.setattr(recommendation, "CENTRES", centres)
    expected = y.mean() + scale * model.predict(X)[0]
    np.testing.assert_allclose(posterior_means(KERNELS, X, y), expected, atol=1e-6 if centres == 500 else 0.02)


def heavy_tailed(seed, n=60):
    """Return points in the plane, exact and noisy values of a valley whose values range over orders of magnitude."""
    rng = np.random.default_rng(seed)
    X = np.vstack([rng.random((n // 2, 2)), 0.4 + 0.1 * rng.normal(size=(n // 2, 2))])
    exact = -np.expm1(30 * ((X - 0.4) ** 2 @ [1.0, 0.5]))
    return X, exact, exact + 0.5 * rng.normal(size=n)


def test_gains_that_range_over_orders_of_magnitude_are_modelled_by_logarithms(monkeypatch):
    """Estimates near the top, in the unit of the gains: the default chooses logarithms, which are better."""
    errors = []
    for clearly in (recommendation.ERROR_RATIO, np.inf, 0.0):  # the default, always logarithms, always gains
        monkeypatch.setattr(recommendation, "ERROR_RATIO", clearly)
        data = map(heavy_tailed, range(4))
        apart = [np.abs(estimate_gains(KERNELS, X, gains) - exact)[30:] for X, exact, gains in data]
        errors.append(np.mean(apart))
    default, logarithms, plain = errors
    assert default == logarithms < 0.95 * plain
    assert plain < 0.5  # the standard deviation of the noise


def test_gains_of_a_smooth_function_are_modelled_themselves():
    X, _, y = waves(60)
    cut = np.maximum(y, np.quantile(y, recommendation.WORST_SHARE))
    np.testing.assert_array_equal(estimate_gains(KERNELS, X, y), posterior_means(KERNELS, X, cut))
    np.testing.assert_array_equal(estimate_gains(KERNELS, X, np.r_[0.0, np.ones(59)]), 1)
    assert (posterior_means(KERNELS, X[:3], np.full(3, 7.0)) == 7).all()


def test_ten_thousand_values_are_averaged_in_bounded_memory():
    """A matrix of all pairs of points would take 800 MB."""
    X, exact, y = waves(10_000)
    tracemalloc.start()
    means = posterior_means(KERNELS, X, y)
    largest = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert largest < 200e6
    assert np.abs(means - exact).mean() < 0.03
    assert exact.max() - exact[np.argmax(means)] < 0.05 < exact.max() - exact[np.argmax(y)]


@pytest.mark.parametrize("sense", ["min", "max"])
def test_a_noisy_run_recommends_a_point_and_names_the_luckiest(sense):
    sign, verb = (1, eo.minimize) if sense == "min" else (-1, eo.maximize)
    rng = np.random.default_rng(0)
    function = lambda x: sign * (((x - 0.3) ** 2).sum() + 0.1 * rng.normal())
    run = verb(function, "random", bounds=[(0, 1)] * 2, noisy=True, budget=60, rng=3)
    value = run.history["value"]
    assert run.best_observed_value == getattr(value, sense)()
    assert tuple(run.best_observed.tolist()) == run.history["x"][value == run.best_observed_value].item()
    assert tuple(run.x.tolist()) in set(run.history["x"])
    assert ((run.x - 0.3) ** 2).sum() < ((run.best_observed - 0.3) ** 2).sum()
    assert abs(run.fun) < abs(run.best_observed_value)


def test_a_simulated_deployment_is_recommended_by_its_estimate():
    city = eo.datasets.grid_city(8, 3, 0.5, rng=1)
    run = eo.minimize(eo.Objective(city, 3, "simulation", calls=300), "random", budget=30, rng=0)
    assert tuple(run.x.tolist()) in set(run.history["sites"])
    assert run.best_observed_value == run.history["value"].min() < run.fun


def test_a_run_chooses_among_its_own_evaluations():
    """The optimizer was told an excellent point before the run; the run still returns one it evaluated."""
    valley = lambda x: ((x - 0.3) ** 2).sum(axis=1)
    f = eo.problems.Problem("valley", valley, [(0, 1)] * 2, "min", 0, None, 0.1, 0)
    optimizer = RandomPoints(f, rng=0)
    for _ in range(5):
        optimizer.tell([0.3, 0.3], -1.0)
    assert tuple(eo.minimize(f, optimizer, budget=10, rng=0).x.tolist()) in [tuple(x) for x in optimizer.told[5:]]
    assert optimizer.recommend()[0].tolist() == [0.3, 0.3]
