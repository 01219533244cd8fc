"""Gaussian process regression against scikit-learn, dense formulas and finite differences."""

import numpy as np
import pytest
from refusals import refused
from scipy.optimize import approx_fprime
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

import emsopt as eo
from emsopt.surrogates.gaussian_process import _negative_log_likelihood, condition, fit
from emsopt.surrogates.kernels import AdditiveKernel, DeploymentKernel, Matern52, SquaredExponential


@pytest.fixture
def data():
    """Distinct deployments of 4 units at 10 sites, values with structure, a prior mean, and points elsewhere."""
    rng = np.random.default_rng(0)
    rows = np.unique([rng.permutation([1.0] * 4 + [0.0] * 6) for _ in range(80)], axis=0)
    rng.shuffle(rows)
    X, elsewhere = rows[:30], rows[30:]
    prior = X @ np.linspace(1, 2, 10)
    y = prior + 0.5 + X @ rng.normal(size=10) + 0.3 * X[:, 0] * X[:, 1] + 0.01 * rng.normal(size=30)
    return X, y, prior, elsewhere, elsewhere @ np.linspace(1, 2, 10)


def test_a_plain_kernel_models_deployments(claim):
    """Section 2.3 finds them not suited to discrete spaces; R² on what sixty of 792 deployments leave out, and (13)'s."""
    plain, own = [], []
    for seed in range(4):
        every = eo.evaluators.evaluate_all(eo.datasets.grid_city(12, 5, 0.5, rng=seed), 5, evaluator="approximate")
        X = np.array([np.bincount(row, minlength=12) for row in every.sites], float)
        seen, left = np.split(np.random.default_rng(seed).permutation(len(X)), [60])
        level, spread = every.values[seen].mean(), every.values[left].var()
        for kernel, found in ((RBF(1.5, (0.1, 100)), plain), (DeploymentKernel(np.ones(12), 0.8), own)):
            process = fit(kernel, X[seen], every.values[seen], np.full(60, level))
            mean, _ = process.predict(X[left], np.full(len(left), level))
            found.append(1 - np.mean((mean - every.values[left]) ** 2) / spread)
    found = [732, 60, min(plain), max(plain), min(own), max(own)]
    claim("server locations", "Section 2.3", *found)
    claim("server locations, version one", "Section 2.3", *found)
    assert (np.array(plain) > np.array(own) - 0.02).all()


KERNELS = [DeploymentKernel(np.linspace(0.5, 2, 10), 0.8), DeploymentKernel(0.5) + RBF(2.0), RBF(1.5)]


def test_posterior_equals_the_papers_formulas(data, claim):
    """(14) and (15) with a plain inverse."""
    X, y, prior, elsewhere, prior_elsewhere = data
    kernel = KERNELS[0]
    process = condition(kernel, X, y, prior, noise_ratio=1e-3)
    inverse, across = np.linalg.inv(kernel(X) + 1e-3 * np.eye(len(X))), kernel(elsewhere, X)
    mean, variance = process.predict(elsewhere, prior_elsewhere)
    np.testing.assert_allclose(mean, prior_elsewhere + across @ inverse @ (y - prior), rtol=0, atol=1e-8)
    expected = kernel.diag(elsewhere) - np.diag(across @ inverse @ across.T)
    np.testing.assert_allclose(variance, process.amplitude * expected, rtol=0, atol=1e-8)
    claim("boke", "Section A.1 (A.1)-(A.2)", 1e-8)


def test_repeats_are_means_with_less_noise(claim):
    """Lemma B.1 of the BOKE paper: distinct points with mean values, and noise divided by the number of repeats."""
    rng, noise, kernel = np.random.default_rng(0), 0.3, RBF(0.4)
    X, repeats = rng.random((6, 2)), np.array([1, 4, 2, 1, 3, 5])
    y, x = rng.normal(size=repeats.sum()), rng.random((9, 2))
    process = condition(kernel, np.repeat(X, repeats, axis=0), y, noise_ratio=noise, amplitude=1.0)
    means = np.array([part.mean() for part in np.split(y, np.cumsum(repeats)[:-1])])
    weights = np.linalg.solve(kernel(X) + np.diag(noise / repeats), kernel(X, x)).T
    mean, variance = process.predict(x)
    np.testing.assert_allclose(mean, weights @ means, rtol=0, atol=1e-12)
    np.testing.assert_allclose(variance, 1 - (weights * kernel(x, X)).sum(axis=1), rtol=0, atol=1e-12)
    claim("boke", "Lemma B.1", 1e-12)


def test_a_tiny_lengthscale_leaves_spikes(claim):
    """Propositions B.3 and B.5 of the BOKE paper, at points off the data and on them."""
    X, y, noise = np.array([[0.2], [0.2], [0.2], [0.7]]), np.array([1.0, 2.0, 6.0, 5.0]), 0.5
    process = condition(RBF(1e-6), X, y, noise_ratio=noise, amplitude=1.0)
    mean, variance = process.predict(np.array([[0.4], [0.2], [0.7]]))
    np.testing.assert_allclose(mean, [0, 9 / (3 + noise), 5 / (1 + noise)], rtol=0, atol=1e-12)
    np.testing.assert_allclose(variance, [1, noise / (3 + noise), noise / (1 + noise)], rtol=0, atol=1e-12)
    for place in ("Proposition B.3", "Proposition B.5"):
        claim("boke", place, 1e-12, 1e-6)


def test_left_out_predictions_equal_those_of_processes_without_the_point(data):
    X, y, prior, _, _ = data
    process = condition(KERNELS[0], X, y, prior, noise_ratio=1e-3)
    for k in range(0, len(y), 7):
        rest = np.delete(np.arange(len(y)), k)
        without = condition(KERNELS[0], X[rest], y[rest], prior[rest], noise_ratio=1e-3)
        assert process.leave_one_out[k] == pytest.approx(without.predict(X[k : k + 1])[0][0], abs=1e-8)


def test_appended_point_equals_conditioning_anew(data):
    X, y, prior, elsewhere, prior_elsewhere = data
    options = {"noise_ratio": 1e-4, "amplitude": 0.7}
    process, anew = (condition(KERNELS[0], X[:n], y[:n], prior[:n], **options) for n in (5, len(X)))
    for x, value, m in zip(X[5:], y[5:], prior[5:], strict=True):
        process = process.with_observation(x, value, m)
    np.testing.assert_allclose(process.factor, anew.factor, atol=1e-9)
    got, expected = (each.predict(elsewhere, prior_elsewhere) for each in (process, anew))
    np.testing.assert_allclose(got, expected, atol=1e-8)


BOXES = [SquaredExponential(0.7), Matern52(np.linspace(0.3, 1.2, 10)), AdditiveKernel(np.linspace(0.3, 1.2, 10))]


@pytest.mark.parametrize("kernel", [*KERNELS, *BOXES])
@pytest.mark.parametrize("amplitude", [None, 0.7])
def test_likelihood_gradient_matches_finite_differences(data, kernel, amplitude):
    X, y, prior, *_ = data
    theta = np.append(kernel.theta, np.log(1e-2))
    value, slope = _negative_log_likelihood(theta, kernel, X, y - prior, amplitude)
    process = condition(kernel, X, y, prior, noise_ratio=1e-2, amplitude=amplitude)
    assert value == pytest.approx(-process.log_likelihood, abs=1e-9)
    numeric = approx_fprime(theta, lambda t: _negative_log_likelihood(t, kernel, X, y - prior, amplitude)[0], 1e-6)
    np.testing.assert_allclose(slope, numeric, rtol=1e-5, atol=1e-4)


def test_fit_is_as_likely_as_scikit_learns(data):
    """One kernel, one amplitude and noise that both train: the same maximum, from either side."""
    X, y, prior, *_ = data
    y = y + 0.2 * np.random.default_rng(1).normal(size=len(y))
    process = fit(RBF(1.0), X, y, prior, noise_ratio=1e-2, noise_ratio_bounds=(1e-5, 1.0))
    kernel = ConstantKernel(1.0, (1e-3, 1e3)) * RBF(1.0) + WhiteKernel(1e-2, (1e-5, 1e1))
    peer = GaussianProcessRegressor(kernel, alpha=0, n_restarts_optimizer=3, random_state=0).fit(X, y - prior)
    assert process.log_likelihood == pytest.approx(peer.log_marginal_likelihood_value_, abs=1e-3)


def test_fit_stays_within_bounds_and_beats_its_start(data):
    X, y, prior, *_ = data
    bounds = {"noise_ratio_bounds": (1e-4, 1e-2)}
    process = fit(DeploymentKernel(np.ones(10), gamma_bounds=(0.5, 1.5)), X, y, prior, **bounds)
    start = condition(DeploymentKernel(np.ones(10)), X, y, prior, noise_ratio=1e-4)
    assert process.log_likelihood > start.log_likelihood + 1
    found = np.r_[process.kernel.weights, process.kernel.gamma, process.noise_ratio]
    low, high = np.r_[np.full(10, 1e-3), 0.5, 1e-4], np.r_[np.full(10, 10), 1.5, 1e-2]
    assert (low * (1 - 1e-9) <= found).all()
    assert (found <= high * (1 + 1e-9)).all()
    warm = fit(process.kernel, X, y, prior, noise_ratio=process.noise_ratio, **bounds, steps=5)
    assert warm.log_likelihood >= process.log_likelihood - 1e-6


def test_singular_covariance_and_bad_data_are_refused(data):
    X, y, *_ = data
    with pytest.raises(eo.errors.ConvergenceError, match="Increase `noise_ratio`"):
        condition(ConstantKernel(1e6), X, y, noise_ratio=1e-13)
    refused(r"`y` must have shape \(30,\)", condition, KERNELS[0], X, y[:3])
