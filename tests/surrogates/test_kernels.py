"""Kernel (13) by the paper's formula, and kernels of points of a box against scikit-learn's and finite differences."""

import numpy as np
import pytest
from differences import slopes_of
from refusals import refused
from scipy.optimize import approx_fprime
from sklearn.gaussian_process.kernels import RBF

from emsopt.surrogates.gaussian_process import condition
from emsopt.surrogates.kernels import AdditiveKernel, DeploymentKernel, Matern52, SquaredExponential


def deployments(n, rng=0):
    rng = np.random.default_rng(rng)
    return np.array([rng.permutation([1, 1, 1, 0, 0, 0, 0, 0]) for _ in range(n)])


def by_the_book(x, y, weights, gamma):
    """(13), location by location; Hamming distance as half the exchanged units counted twice."""
    alike = sum(w for a, b, w in zip(x, y, weights, strict=True) if a == b)
    apart = sum(abs(int(a) - int(b)) for a, b in zip(x, y, strict=True))
    return np.exp(alike / len(x)) + np.tanh(gamma) ** (apart / 2)


@pytest.mark.parametrize("colocated", [False, True])
def test_kernel_equals_the_papers_formula_and_takes_counts_only(colocated):
    X = deployments(6) + colocated * deployments(6, rng=2)
    Y = deployments(5, rng=1) + colocated * deployments(5, rng=3)
    assert X.max() == 1 + colocated
    weights = np.linspace(0.2, 3, 8)
    kernel = DeploymentKernel(weights, 0.7)
    np.testing.assert_allclose(kernel(X, Y), [[by_the_book(x, y, weights, 0.7) for y in Y] for x in X], rtol=1e-12)
    np.testing.assert_allclose(kernel.diag(X), np.diag(kernel(X)), rtol=1e-12)
    np.testing.assert_allclose(kernel(X), kernel(X, X), rtol=1e-14)
    for wrong in (0.5, -1):
        refused(f"whole numbers.*got {wrong}", kernel, [[wrong, *[1] * 7]])


def test_papers_example():
    """Section 5.2: k(110, 101) = exp((l_2 + l_3)/3) + tanh γ, where by the definition of δ the weight l_1 counts."""
    value = DeploymentKernel([0.3, 0.6, 0.9], 1.0)([[1, 1, 0]], [[1, 0, 1]])
    assert value == pytest.approx(np.exp(0.3 / 3) + np.tanh(1.0), rel=1e-14)


@pytest.mark.parametrize(("weights", "options"), [(1.3, {}), (np.linspace(0.2, 3, 8), {"gamma_bounds": "fixed"})])
def test_gradient_matches_finite_differences(weights, options):
    X = deployments(7) + deployments(7, rng=4)
    kernel = DeploymentKernel(weights, 0.7, **options)
    K, gradient = kernel(X, eval_gradient=True)
    assert gradient.shape == (7, 7, kernel.n_dims)
    np.testing.assert_allclose(K, kernel(X), rtol=1e-14)
    numeric = approx_fprime(kernel.theta, lambda theta: kernel.clone_with_theta(theta)(X).ravel(), 1e-7)
    np.testing.assert_allclose(gradient.reshape(49, -1), numeric, atol=2e-6)
    S = np.random.default_rng(5).normal(size=(7, 7))
    S, (same, contract) = S + S.T, kernel.matrix_and_gradient(X)
    np.testing.assert_allclose(same, K, rtol=1e-14)
    np.testing.assert_allclose(contract(S), np.tensordot(S, gradient, 2), rtol=1e-10, atol=1e-12)


def test_kernel_is_positive_semidefinite():
    """Lemma 11, for 0/1 rows and for counts."""
    rng = np.random.default_rng(6)
    for _ in range(20):
        X = rng.integers(0, 4, (30, 8))
        kernel = DeploymentKernel(rng.uniform(0.01, 5, 8), rng.uniform(0.05, 3))
        assert np.linalg.eigvalsh(kernel(X)).min() > -1e-9
    l, gamma = -6, 3  # a negative weight, which the lemma allows and the package does not: N = 3, p = 1
    K = np.where(np.eye(3), np.exp(l) + 1, np.exp(l / 3) + np.tanh(gamma))  # two of three places differ
    assert np.linalg.eigvalsh(K).min() == pytest.approx(-0.13, abs=5e-3)


@pytest.fixture
def data():
    rng = np.random.default_rng(1)
    X = rng.random((40, 3))
    return X, np.sin(5 * X[:, 0]) + X[:, 1] ** 2 + 0.01 * rng.normal(size=40), rng.random((7, 3))


def test_an_additive_kernel_is_the_mean_of_kernels_of_one_input(data):
    X, _, points = data
    parts = [RBF(scale)(X[:, [k]], points[:, [k]]) for k, scale in enumerate((0.3, 0.6, 1.2))]
    np.testing.assert_allclose(AdditiveKernel([0.3, 0.6, 1.2])(X, points), np.mean(parts, axis=0), rtol=1e-12)


@pytest.mark.parametrize(
    "kernel", [SquaredExponential(0.7), Matern52([0.3, 0.6, 1.2]), AdditiveKernel([0.3, 0.6, 1.2])]
)
def test_slopes_match_finite_differences_and_values_match_predict(data, kernel):
    X, y, points = data
    process = condition(kernel, X, y, noise_ratio=1e-3)
    found = process.predict_with_slopes(points)
    for k in range(2):
        np.testing.assert_allclose(found[k], process.predict(points)[k], atol=1e-9)
        numeric = slopes_of(lambda x, k=k: process.predict(x)[k], points, 1e-5)
        np.testing.assert_allclose(found[2 + k], numeric, rtol=1e-4, atol=1e-6)
