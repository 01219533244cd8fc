r"""Kernels of Gaussian processes: between deployments, and between points of a box.

**Deployments.** `DeploymentKernel` is kernel (13) of "Optimizing Server Locations in Spatial Queues". A point is a row
of counts: the number of units at each of N locations (0 or 1, unless units share a location).

.. math:: k(x, x') = \exp\Big(\sum_i \ell_i \, \delta(x_i, x_i') / N\Big) + (\tanh γ)^{H(x, x') / 2}

===========  ==============  =================================================================================
symbol       name            meaning
===========  ==============  =================================================================================
ℓ_i          ``weights``     weight of agreement at location i
γ            ``gamma``       decay of similarity: each swap of a unit multiplies the second term by tanh γ
δ            -               1 if the counts are equal, else 0
H            -               Hamming distance; for larger counts ``Σ_i |x_i - x_i'|``, twice the units to relocate
===========  ==============  =================================================================================

The paper's example uses δ = 1 where the counts *differ*, which contradicts its definition; this module follows the
definition. Weights must be positive, otherwise the kernel is not positive semi-definite. The first term is at least
1, and the prior therefore includes a constant. The scale is the amplitude of `GaussianProcess`.

**Points of a box.** These kernels have the gradients needed to maximise an acquisition function.

.. math:: r^2 = \sum_k (x_k - x_k')^2 / \ell_k^2, \qquad
          k_{SE} = e^{-r^2 / 2}, \qquad k_{5/2} = (1 + \sqrt5 r + \tfrac53 r^2) \, e^{-\sqrt5 r}

Importing this module loads scikit-learn, so other modules import it only when needed.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.gaussian_process.kernels import RBF, Hyperparameter, Kernel, Matern

from ..errors import InputError
from ..errors._types import ArrayLike, FloatArray, IntArray

__all__ = ["DeploymentKernel", "SquaredExponential"]

Limits: TypeAlias = tuple[float, float] | Literal["fixed"]
Contraction: TypeAlias = Callable[[FloatArray], FloatArray]

LENGTHSCALE_BOUNDS = (0.05, 20.0)  # for inputs on [0, 1]: points hardly correlate below, an input hardly matters above


class DeploymentKernel(Kernel):
    """Kernel (13) between deployments: how far they agree by location, plus a term of the units to relocate.

    ``weights``, ℓ_i, (N,) or a single one for all locations, and ``gamma``, γ, are positive. ``gamma_bounds`` are a
    pair or "fixed".

    Examples
    --------
    >>> kernel = DeploymentKernel(weights=[0.3, 0.6, 0.9], gamma=1.0)
    >>> value = kernel([[1, 1, 0]], [[1, 0, 1]])[0, 0]
    >>> bool(np.isclose(value, np.exp(0.3 / 3) + np.tanh(1.0)))
    True
    """

    def __init__(self, weights: ArrayLike = 1.0, gamma: float = 1.0, *, gamma_bounds: Limits = (1e-2, 5.0)) -> None:
        self.weights, self.gamma, self.gamma_bounds = weights, gamma, gamma_bounds

    @property
    def hyperparameter_weights(self) -> Hyperparameter:
        """Name, bounds and number of the location weights, for scikit-learn."""
        # positive, or the kernel is not positive semi-definite
        return Hyperparameter("weights", "numeric", (1e-3, 10.0), np.size(self.weights))

    @property
    def hyperparameter_gamma(self) -> Hyperparameter:
        """Name and bounds of gamma, for scikit-learn."""
        return Hyperparameter("gamma", "numeric", self.gamma_bounds)

    def __call__(self, X: ArrayLike, Y: ArrayLike | None = None, eval_gradient: bool = False) -> Any:
        """Return the kernel between rows of counts, X, (n, N), and Y, (m, N), or else X again: shape (n, m).

        With ``eval_gradient``, also return its gradient by log γ, unless fixed, then by log weights, (n, n, number).
        """
        rows = _check_counts(X)
        location, configuration, swaps = self._terms(rows, rows if Y is None else _check_counts(Y))
        if not eval_gradient:
            return location + configuration
        slopes = []
        if not self.hyperparameter_gamma.fixed:
            # gamma before weights, as scikit-learn sorts hyperparameters by name
            slopes.append((self._gamma_slope() * swaps * configuration)[:, :, None])
        each = (rows[:, None] == rows) * (self._location_weights(rows) / rows.shape[1]) * location[:, :, None]
        slopes.append(each if np.iterable(self.weights) else each.sum(axis=2, keepdims=True))
        return location + configuration, np.concatenate(slopes, axis=2)

    def matrix_and_gradient(self, X: ArrayLike) -> tuple[FloatArray, Contraction]:
        """Return the kernel K of X, (n, N), with itself, and the function Σ_ab S_ab ∂K_ab/∂θ of a symmetric S."""
        rows = _check_counts(X)
        location, configuration, swaps = self._terms(rows, rows)

        def contract(S: FloatArray) -> FloatArray:
            parts = []
            if not self.hyperparameter_gamma.fixed:
                parts.append(np.array([self._gamma_slope() * np.sum(S * swaps * configuration)]))
            SL = S * location
            # [x_i = x'_i] is the sum over v of [x_i = v] [x'_i = v]
            agreement = sum(((SL @ level) * level).sum(axis=0) for level in _level_masks(rows, rows.max()))
            each = agreement * self._location_weights(rows) / rows.shape[1]
            parts.append(each if np.iterable(self.weights) else each.sum(keepdims=True))
            return np.concatenate(parts)

        return location + configuration, contract

    def swap_sums(self, x: IntArray, gives: IntArray, takes: IntArray, Y: ArrayLike) -> Contraction:
        """Return a function of w, (m,), that returns Σ_i w_i k(x', Y_i), (g, t), for all single swaps x' of counts x.

        A swap moves a unit from one of the locations ``gives``, (g,), to one of ``takes``, (t,). Where both are the
        same, the sum has no meaning.
        """
        rows, point = _check_counts(Y), _check_counts(x[None])
        location, configuration, _ = self._terms(point, rows)
        # both terms are products over locations, of which a swap changes two factors; each contributes a root of tanh γ
        shares, log_decay = self._location_weights(rows) / rows.shape[1], np.log(np.tanh(self.gamma)) / 2

        def swap_factors(where: IntArray, step: int) -> tuple[FloatArray, FloatArray]:
            before = rows[:, where] - point[0, where]
            after = before - step  # a location that gives a unit has step -1, so its difference grows
            agreement = (after == 0).astype(float) - (before == 0)
            return np.exp(shares[where] * agreement), np.exp(log_decay * (np.abs(after) - np.abs(before)))

        leaves, enters = swap_factors(gives, -1), swap_factors(takes, 1)

        def weighted_sums(w: FloatArray) -> FloatArray:
            first, second = (w * location).T * leaves[0], (w * configuration).T * leaves[1]
            total: FloatArray = first.T @ enters[0] + second.T @ enters[1]
            return total

        return weighted_sums

    def _location_weights(self, rows: FloatArray) -> FloatArray:
        """Return the weights ℓ of the N locations of ``rows``, (N,); a single weight is repeated."""
        return np.broadcast_to(np.asarray(self.weights, dtype=float), rows.shape[1])

    def _terms(self, X: FloatArray, Y: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the two terms of the kernel between rows of X and Y, and the units to relocate, each (n, m)."""
        top, shares = max(X.max(), Y.max()), self._location_weights(X) / X.shape[1]
        if top <= 1:  # for counts of 0 and 1, [x ≠ x'] and |x - x'| both equal x + x' - 2 x x'
            apart = (X @ shares)[:, None] + Y @ shares - 2 * (X * shares) @ Y.T
            swaps = (X.sum(axis=1)[:, None] + Y.sum(axis=1)) / 2 - X @ Y.T
            location = np.exp(shares.sum() - apart)
        else:
            levels = zip(_level_masks(X, top), _level_masks(Y, top), strict=True)
            location = np.exp(sum((x * shares) @ y.T for x, y in levels))
            swaps = sum(np.abs(X[:, None, i] - Y[:, i]) for i in range(X.shape[1])) / 2
        return location, np.exp(np.log(np.tanh(self.gamma)) * swaps), swaps

    def _gamma_slope(self) -> float:
        """Return the derivative of log tanh γ with respect to log γ."""
        return 2 * self.gamma / float(np.sinh(2 * self.gamma))

    def diag(self, X: ArrayLike) -> FloatArray:
        """Return k(x, x) of each row x of X, shape (n,)."""
        return np.full(len(_check_counts(X)), np.exp(np.asarray(self.weights, dtype=float).mean()) + 1)

    def is_stationary(self) -> bool:
        """Return True: the kernel depends on x - x' only."""
        return True

    def __repr__(self) -> str:
        low, high = np.min(self.weights), np.max(self.weights)
        shown = f"{low:.3g}..{high:.3g}" if np.size(self.weights) > 1 else f"{low:.3g}"
        return f"DeploymentKernel(weights={shown}, gamma={self.gamma:.3g})"


def _check_counts(X: ArrayLike) -> FloatArray:
    """Return X, rows of counts, as floats, shape (n, N); raise unless they are whole numbers of at least 0."""
    rows = np.asarray(X, dtype=float)
    bad = ~((rows >= 0) & (rows < np.inf) & (rows == np.floor(rows)))
    if rows.ndim != 2 or rows.size == 0 or bad.any():
        wanted = "whole numbers of units, one row per deployment, shape (n, N)"
        got = f"{rows[bad].flat[0]:g}" if bad.any() else f"shape {rows.shape}"
        raise InputError(f"`X` must hold {wanted}; got {got}.")
    return rows


def _level_masks(rows: FloatArray, top: float) -> list[FloatArray]:
    """Return where rows, (n, N), equal v, as 0 or 1, (n, N), for each v = 0, ..., top."""
    return [np.equal(rows, v).astype(float) for v in range(int(top) + 1)]


class GradientMixin:
    """Mixin for stationary kernels: weighted sums of their gradients, without arrays of shape (n, n, d).

    For scaled distances r_k = (x_k - x'_k) / ℓ_k, the derivative of such a kernel with respect to x_k is -G r_k / ℓ_k,
    and with respect to log ℓ_k it is G r_k². `matrix_and_factor` returns the factor G(x, x') beside the kernel.
    """

    if TYPE_CHECKING:  # given by scikit-learn's kernels
        length_scale: Any
        anisotropic: bool
        hyperparameter_length_scale: Any

    def matrix_and_factor(self, points: FloatArray, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the kernel and the factor G, each (m, n), between points, (m, d), and X, (n, d)."""
        raise NotImplementedError

    def matrix_and_gradient(self, X: ArrayLike) -> tuple[FloatArray, Contraction]:
        """Return the kernel K of X, (n, d), with itself, and the function Σ_ab S_ab ∂K_ab/∂θ of a symmetric S."""
        points = np.atleast_2d(X)
        scaled = points / self.length_scale
        scaled = scaled - scaled.mean(axis=0)  # leaves distances as they are, and saves digits in the difference below
        K, G = self.matrix_and_factor(points, points)

        def contract(S: FloatArray) -> FloatArray:
            if self.hyperparameter_length_scale.fixed:
                return np.empty(0)
            SG = S * G
            # the sum of S G (r_a - r_b)² over all pairs, expanded, which needs no array of shape (n, n, d)
            each = 2 * (SG.sum(axis=1) @ scaled**2 - ((SG @ scaled) * scaled).sum(axis=0))
            return each if self.anisotropic else np.array([each.sum()])

        return K, contract

    def matrix_and_slopes(self, points: ArrayLike, X: FloatArray) -> tuple[FloatArray, Contraction]:
        """Return the kernel K of points, (m, d), with X, (n, d), and the function Σ_j W_ij ∂K_ij/∂x_i of W, (m, n)."""
        at = np.atleast_2d(points)
        K, G = self.matrix_and_factor(at, X)

        def contract(W: FloatArray) -> FloatArray:
            WG = W * G
            return (WG @ X - WG.sum(axis=1)[:, None] * at) / np.square(self.length_scale)

        return K, contract


class SquaredExponential(GradientMixin, RBF):
    """Scikit-learn's kernel `RBF`, with the gradients of `GradientMixin`.

    ``length_scale`` is one ℓ for all inputs or one per input, (d,); ``length_scale_bounds`` may be "fixed".

    Examples
    --------
    >>> kernel = SquaredExponential([0.5])
    >>> kernel(np.array([[0.0], [1.0]])).round(3).tolist()
    [[1.0, 0.135], [0.135, 1.0]]
    """

    def __init__(self, length_scale: ArrayLike = 0.5, length_scale_bounds: Limits = LENGTHSCALE_BOUNDS) -> None:
        super().__init__(length_scale, length_scale_bounds)

    def matrix_and_factor(self, points: FloatArray, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the kernel twice, (m, n) each, as it equals the factor G."""
        K = self(points, X)
        return K, K


class AdditiveKernel(SquaredExponential):
    """Mean of squared-exponential kernels of one input each (Duvenaud, Nickisch and Rasmussen 2011)."""

    def __call__(self, X: ArrayLike, Y: ArrayLike | None = None, eval_gradient: bool = False) -> FloatArray:
        """Return the kernel between X, (n, d), and Y, (m, d), or else X again: shape (n, m), without a gradient."""
        return self._terms_and_distances(X, X if Y is None else Y)[0].sum(axis=2)

    def matrix_and_gradient(self, X: ArrayLike) -> tuple[FloatArray, Contraction]:
        """Return the kernel K of X, (n, d), with itself, and the function Σ_ab S_ab ∂K_ab/∂θ of a symmetric S."""
        parts, apart = self._terms_and_distances(X, X)
        return parts.sum(axis=2), lambda S: np.einsum("ab,abk,abk->k", S, parts, apart**2)

    def matrix_and_slopes(self, points: ArrayLike, X: FloatArray) -> tuple[FloatArray, Contraction]:
        """Return the kernel K of points, (m, d), with X, (n, d), and the function Σ_j W_ij ∂K_ij/∂x_i of W, (m, n)."""
        parts, apart = self._terms_and_distances(points, X)
        return parts.sum(axis=2), lambda W: -np.einsum("ij,ijk,ijk->ik", W, parts, apart) / self.length_scale

    def _terms_and_distances(self, points: ArrayLike, X: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Return the terms of the kernel, one per input, and the scaled distances r, each (m, n, d)."""
        apart = (np.atleast_2d(points)[:, None] - np.atleast_2d(X)) / self.length_scale
        return np.exp(-0.5 * apart**2) / apart.shape[2], apart  # divided by d to keep the variance at 1


class Matern52(GradientMixin, Matern):
    """Scikit-learn's Matérn kernel with ν = 5/2, with the gradients of `GradientMixin`."""

    def __init__(self, length_scale: ArrayLike = 0.5) -> None:
        super().__init__(length_scale, LENGTHSCALE_BOUNDS, nu=2.5)

    def matrix_and_factor(self, points: FloatArray, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return (1 + s + s²/3) e^-s and its factor G = 5/3 (1 + s) e^-s, for s = √5 times the scaled distance."""
        s = np.sqrt(5) * cdist(points / self.length_scale, X / self.length_scale)
        decay = np.exp(-s)
        return (1 + s + s * s / 3) * decay, 5 / 3 * (1 + s) * decay
