"""The squared-exponential and Matérn kernels against scikit-learn's, finite differences and dense formulas."""

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, Matern

from emsopt.surrogates.box_kernels import Additive, Matern52, SquaredExponential
from emsopt.surrogates.gaussian_process import condition, fit

KERNELS = {SquaredExponential: RBF, Matern52: lambda lengthscales: Matern(lengthscales, nu=2.5)}


@pytest.fixture
def data():
    rng = np.random.default_rng(1)
    X = rng.random((40, 3))
    return X, np.sin(5 * X[:, 0]) + X[:, 1] ** 2 + 0.01 * rng.normal(size=40), rng.random((7, 3))


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("lengthscales", [0.7, [0.3, 0.6, 1.2]], ids=["shared", "one each"])
def test_kernel_and_contraction_equal_scikit_learns(data, kernel, lengthscales):
    X, y, _ = data
    K, gradient = KERNELS[kernel](lengthscales)(X, eval_gradient=True)
    ours, contract = kernel(lengthscales).contracted(X)
    S = np.random.default_rng(2).normal(size=K.shape)
    S += S.T
    np.testing.assert_allclose(ours, K, rtol=1e-14)
    np.testing.assert_allclose(contract(S), np.tensordot(S, gradient, 2), rtol=1e-10)
    fixed = kernel(lengthscales, "fixed")
    assert fixed.contracted(X)[1](S).shape == (0,)
    assert fit(fixed, X, y).kernel == fixed


def test_an_additive_kernel_is_the_mean_of_kernels_of_one_input(data):
    X, _, points = data
    parts = [RBF(scale)(X[:, [k]], points[:, [k]]) for k, scale in enumerate((0.3, 0.6, 1.2))]
    np.testing.assert_allclose(Additive([0.3, 0.6, 1.2])(X, points), np.mean(parts, axis=0), rtol=1e-12)


@pytest.mark.parametrize(
    ("kernel", "lengthscales"), [(SquaredExponential, 0.7), (Matern52, [0.3, 0.6, 1.2]), (Additive, [0.3, 0.6, 1.2])]
)
def test_slopes_match_finite_differences_and_values_match_predict(data, kernel, lengthscales):
    X, y, points = data
    process = condition(kernel(lengthscales), X, y, noise_ratio=1e-3)
    mean, variance, mean_slopes, variance_slopes = process.predict_with_slopes(points)
    for got, expected in zip((mean, variance), process.predict(points), strict=True):
        np.testing.assert_allclose(got, expected, atol=1e-9)
    for k, slopes in enumerate((mean_slopes, variance_slopes)):
        step = 1e-5
        for d in range(3):
            ahead, behind = (process.predict(points + s * step * np.eye(3)[d])[k] for s in (1, -1))
            np.testing.assert_allclose(slopes[:, d], (ahead - behind) / (2 * step), rtol=1e-4, atol=1e-6)
