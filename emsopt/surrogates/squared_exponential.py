r"""Squared-exponential kernel between points of a box, with the gradients needed to maximise an acquisition.

.. math:: k(x, x') = \exp\Big(-\tfrac12 \sum_k (x_k - x_k')^2 / \ell_k^2\Big)

It is used with `emsopt.surrogates.gaussian_process` like any other kernel:

>>> from emsopt.surrogates.gaussian_process import condition, fit
>>> X = np.random.default_rng(0).random((30, 2))
>>> process = fit(SquaredExponential([0.5, 0.5]), X, np.sin(6 * X[:, 0]), noise_ratio=1e-3)
>>> bool(process.kernel.length_scale[0] < process.kernel.length_scale[1])
True
>>> process = process.appended([0.5, 0.5], np.sin(3.0))
>>> mean, variance, mean_slopes, variance_slopes = process.predict_with_slopes([[0.2, 0.3]])
>>> mean_slopes.shape
(1, 2)

Importing this module loads scikit-learn.
"""

from collections.abc import Callable
from typing import Literal, TypeAlias

import numpy as np
from sklearn.gaussian_process.kernels import RBF

from .._types import ArrayLike, FloatArray

Contract: TypeAlias = Callable[[FloatArray], FloatArray]

BOUNDS = (0.05, 20.0)  # bounds of the lengthscales, for inputs scaled to [0, 1]


class SquaredExponential(RBF):
    """Scikit-learn's kernel `RBF`, with contracted gradients instead of an array of shape (n, n, d).

    Parameters
    ----------
    length_scale : float or array_like, shape (d,)
        Lengthscales ℓ. A single number is used for all inputs.
    length_scale_bounds : pair of float or "fixed"
        Bounds for training.
    """

    def __init__(
        self, length_scale: ArrayLike = 0.5, length_scale_bounds: tuple[float, float] | Literal["fixed"] = BOUNDS
    ) -> None:
        super().__init__(length_scale, length_scale_bounds)

    def contracted(self, X: ArrayLike) -> tuple[FloatArray, Contract]:
        """Return the kernel of X with itself and a function that contracts its gradient.

        Parameters
        ----------
        X : array_like, shape (n, d)

        Returns
        -------
        K : ndarray, shape (n, n)
        contract : callable
            Takes a symmetric S of shape (n, n) and returns Σ_ab S_ab ∂K_ab/∂θ for every entry of ``theta``,
            the logarithms of the lengthscales.
        """
        scaled = np.atleast_2d(X) / self.length_scale
        scaled = scaled - scaled.mean(axis=0)
        K = self(X)

        def contract(S: FloatArray) -> FloatArray:
            if self.hyperparameter_length_scale.fixed:
                return np.empty(0)
            SK = S * K
            each = 2 * (SK.sum(axis=1) @ scaled**2 - ((SK @ scaled) * scaled).sum(axis=0))
            return each if self.anisotropic else np.array([each.sum()])

        return K, contract

    def with_slopes(self, points: ArrayLike, X: FloatArray) -> tuple[FloatArray, Contract]:
        """Return the kernel between points and data, and a function that contracts its gradient.

        Parameters
        ----------
        points : array_like, shape (m, d)
        X : ndarray, shape (n, d)

        Returns
        -------
        K : ndarray, shape (m, n)
        contract : callable
            Takes W of shape (m, n) and returns the gradient by the points, Σ_j W_ij ∂k(x_i, X_j)/∂x_i, shape
            (m, d).
        """
        points = np.atleast_2d(points)
        K = self(points, X)

        def contract(W: FloatArray) -> FloatArray:
            WK = W * K
            return (WK @ X - WK.sum(axis=1)[:, None] * points) / np.square(self.length_scale)

        return K, contract
