r"""Kernels between points of a box, with the gradients needed to maximise an acquisition.

.. math:: r^2 = \sum_k (x_k - x_k')^2 / \ell_k^2, \qquad
          k_{SE} = e^{-r^2 / 2}, \qquad k_{5/2} = (1 + \sqrt5 r + \tfrac53 r^2) \, e^{-\sqrt5 r}

They are used with `emsopt.surrogates.gaussian_process` like any other kernels:

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
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.gaussian_process.kernels import RBF, Matern

from .._types import ArrayLike, FloatArray

Contract: TypeAlias = Callable[[FloatArray], FloatArray]

__all__ = ["SquaredExponential"]

BOUNDS = (0.05, 20.0)  # inputs are scaled to [0, 1]: points hardly correlate below, and an input hardly matters above

Limits: TypeAlias = tuple[float, float] | Literal["fixed"]


class Smooth:
    """Gradients of a stationary kernel with lengthscales, contracted instead of in arrays of shape (n, n, d).

    For scaled distances r_k = (x_k - x'_k) / ℓ_k, the gradient of such a kernel by x_k is -G r_k / ℓ_k and that by
    log ℓ_k is G r_k², with a factor G(x, x') that `with_factor` returns beside the kernel.
    """

    if TYPE_CHECKING:  # given by scikit-learn's kernels
        length_scale: Any
        anisotropic: bool
        hyperparameter_length_scale: Any

    def with_factor(self, points: FloatArray, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the kernel and the factor G between points (m, d) and (n, d), each of shape (m, n)."""
        raise NotImplementedError

    def contracted(self, X: ArrayLike) -> tuple[FloatArray, Contract]:
        """Return the kernel of X with itself, and a function of a symmetric S that returns Σ_ab S_ab ∂K_ab/∂θ."""
        points = np.atleast_2d(X)
        scaled = points / self.length_scale
        scaled = scaled - scaled.mean(axis=0)  # leaves distances as they are, and saves digits in the difference below
        K, G = self.with_factor(points, points)

        def contract(S: FloatArray) -> FloatArray:
            if self.hyperparameter_length_scale.fixed:
                return np.empty(0)
            SG = S * G
            # the sum of S G (r_a - r_b)² over all pairs, expanded, which needs no array of shape (n, n, d)
            each = 2 * (SG.sum(axis=1) @ scaled**2 - ((SG @ scaled) * scaled).sum(axis=0))
            return each if self.anisotropic else np.array([each.sum()])

        return K, contract

    def with_slopes(self, points: ArrayLike, X: FloatArray) -> tuple[FloatArray, Contract]:
        """Return the kernel between points and data, and a function of W, (m, n), that returns Σ_j W_ij ∂k_ij/∂x_i."""
        at = np.atleast_2d(points)
        K, G = self.with_factor(at, X)

        def contract(W: FloatArray) -> FloatArray:
            WG = W * G
            return (WG @ X - WG.sum(axis=1)[:, None] * at) / np.square(self.length_scale)

        return K, contract


class SquaredExponential(Smooth, RBF):
    """Scikit-learn's kernel `RBF`, with the gradients of `Smooth`.

    ``length_scale`` is one ℓ for all inputs or one per input, (d,); ``length_scale_bounds`` may be "fixed".

    Examples
    --------
    >>> kernel = SquaredExponential([0.5])
    >>> kernel(np.array([[0.0], [1.0]])).round(3).tolist()
    [[1.0, 0.135], [0.135, 1.0]]
    """

    def __init__(self, length_scale: ArrayLike = 0.5, length_scale_bounds: Limits = BOUNDS) -> None:
        super().__init__(length_scale, length_scale_bounds)

    def with_factor(self, points: FloatArray, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the kernel twice: here it equals the factor G of `Smooth`."""
        K = self(points, X)
        return K, K


class Additive(SquaredExponential):
    """Mean of squared-exponential kernels of one input each (Duvenaud, Nickisch and Rasmussen 2011)."""

    def __call__(self, X: ArrayLike, Y: ArrayLike | None = None, eval_gradient: bool = False) -> FloatArray:
        """Return the kernel between points (m, d) and (n, d), or of X with itself; gradients are by `contracted`."""
        return self._parts(X, X if Y is None else Y)[0].sum(axis=2)

    def contracted(self, X: ArrayLike) -> tuple[FloatArray, Contract]:
        """Return what `Smooth.contracted` does."""
        parts, apart = self._parts(X, X)
        return parts.sum(axis=2), lambda S: np.einsum("ab,abk,abk->k", S, parts, apart**2)

    def with_slopes(self, points: ArrayLike, X: FloatArray) -> tuple[FloatArray, Contract]:
        """Return what `Smooth.with_slopes` does."""
        parts, apart = self._parts(points, X)
        return parts.sum(axis=2), lambda W: -np.einsum("ij,ijk,ijk->ik", W, parts, apart) / self.length_scale

    def _parts(self, points: ArrayLike, X: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Return the terms of the kernel and the scaled distances r, each of shape (m, n, d)."""
        apart = (np.atleast_2d(points)[:, None] - np.atleast_2d(X)) / self.length_scale
        return np.exp(-0.5 * apart**2) / apart.shape[2], apart  # divided by d to keep the variance at 1


class Matern52(Smooth, Matern):
    """Scikit-learn's Matérn kernel with ν = 5/2, rougher than `SquaredExponential`, with the gradients of `Smooth`."""

    def __init__(self, length_scale: ArrayLike = 0.5, length_scale_bounds: Limits = BOUNDS) -> None:
        super().__init__(length_scale, length_scale_bounds, nu=2.5)

    def with_factor(self, points: FloatArray, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return (1 + s + s²/3) e^-s and its factor G = 5/3 (1 + s) e^-s, for s = √5 times the scaled distance."""
        s = np.sqrt(5) * cdist(points / self.length_scale, X / self.length_scale)
        decay = np.exp(-s)
        return (1 + s + s * s / 3) * decay, 5 / 3 * (1 + s) * decay
