r"""Kernels between deployments, to be combined with scikit-learn's own kernels.

`DeploymentKernel` is kernel (13) of "Optimizing Server Locations in Spatial Queues". A point is a row of counts: the
number of units at each of N locations (0 or 1, unless units share a location).

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
1, and the prior therefore includes a constant. The kernel has no scale parameter: multiply it by a constant
(``ConstantKernel() * DeploymentKernel()``) or use the package's `GaussianProcess`, which has an amplitude.

Importing this module loads scikit-learn; the rest of the package loads it only when needed.
"""

from collections.abc import Callable
from typing import Any, Literal, TypeAlias

import numpy as np
from sklearn.gaussian_process.kernels import Hyperparameter, Kernel

from .._types import ArrayLike, FloatArray, IntArray
from ..errors import InputError

Bounds: TypeAlias = tuple[float, float] | Literal["fixed"]

WEIGHTS_BOUNDS = (1e-3, 10.0)  # positive, or the kernel is not positive semi-definite


class DeploymentKernel(Kernel):
    """Sum of location-level and configuration-level similarity of two deployments, kernel (13).

    Parameters
    ----------
    weights : float or array_like, shape (N,)
        Weights ℓ_i, positive. A single number is used for all locations and trained as one hyperparameter.
    gamma : float
        Decay γ, positive.
    gamma_bounds : pair of float or "fixed"
        Bounds of γ for training; those of the weights are ``WEIGHTS_BOUNDS``.

    Examples
    --------
    Deployments 110 and 101 agree only in the first location:

    >>> kernel = DeploymentKernel(weights=[0.3, 0.6, 0.9], gamma=1.0)
    >>> value = kernel([[1, 1, 0]], [[1, 0, 1]])[0, 0]
    >>> bool(np.isclose(value, np.exp(0.3 / 3) + np.tanh(1.0)))
    True
    """

    def __init__(self, weights: ArrayLike = 1.0, gamma: float = 1.0, *, gamma_bounds: Bounds = (1e-2, 5.0)) -> None:
        self.weights, self.gamma, self.gamma_bounds = weights, gamma, gamma_bounds

    @property
    def hyperparameter_weights(self) -> Hyperparameter:
        """Name, bounds and number of the location weights, for scikit-learn."""
        return Hyperparameter("weights", "numeric", WEIGHTS_BOUNDS, np.size(self.weights))

    @property
    def hyperparameter_gamma(self) -> Hyperparameter:
        """Name and bounds of gamma, for scikit-learn."""
        return Hyperparameter("gamma", "numeric", self.gamma_bounds)

    def __call__(self, X: ArrayLike, Y: ArrayLike | None = None, eval_gradient: bool = False) -> Any:
        """Return the kernel between rows of counts, (n, N) and (m, N), shape (n, m); without Y between X and itself.

        With ``eval_gradient``, also its gradient by the log hyperparameters, gamma and then weights, (n, n, number).
        """
        if eval_gradient and Y is not None:
            raise InputError("The gradient is available only between X and itself. Omit `Y` or `eval_gradient`.")
        rows = _counts(X)
        location, configuration, swaps = self._terms(rows, rows if Y is None else _counts(Y))
        if not eval_gradient:
            return location + configuration
        slopes = []
        if not self.hyperparameter_gamma.fixed:
            # gamma before weights, as scikit-learn sorts hyperparameters by name
            slopes.append((self._gamma_slope() * swaps * configuration)[:, :, None])
        each = (rows[:, None] == rows) * (self._weights(rows) / rows.shape[1]) * location[:, :, None]
        slopes.append(each if np.iterable(self.weights) else each.sum(axis=2, keepdims=True))
        return location + configuration, np.concatenate(slopes, axis=2)

    def contracted(self, X: ArrayLike) -> tuple[FloatArray, Callable[[FloatArray], FloatArray]]:
        """Return the kernel of X with itself, and a function of a symmetric S that returns Σ_ab S_ab ∂K_ab/∂θ."""
        rows = _counts(X)
        location, configuration, swaps = self._terms(rows, rows)

        def contract(S: FloatArray) -> FloatArray:
            parts = []
            if not self.hyperparameter_gamma.fixed:
                parts.append(np.array([self._gamma_slope() * np.sum(S * swaps * configuration)]))
            SL = S * location
            # [x_i = x'_i] is the sum over v of [x_i = v] [x'_i = v]
            agreement = sum(((SL @ level) * level).sum(axis=0) for level in _levels(rows, rows.max()))
            each = agreement * self._weights(rows) / rows.shape[1]
            parts.append(each if np.iterable(self.weights) else each.sum(keepdims=True))
            return np.concatenate(parts)

        return location + configuration, contract

    def over_swaps(
        self, x: IntArray, gives: IntArray, takes: IntArray, Y: ArrayLike
    ) -> Callable[[FloatArray], FloatArray]:
        """Return a function of w, (m,), that returns Σ_i w_i k(x', Y_i), (g, t), for all single swaps x' of counts x.

        A swap moves a unit from one of ``gives``, (g,), to one of ``takes``, (t,). Both terms of the kernel are
        products over locations: a swap multiplies them by one factor for each of its two, and all sums together are two
        matrix products. Where both locations are the same, the sum has no meaning.
        """
        rows, point = _counts(Y), _counts(x[None])
        location, configuration, _ = self._terms(point, rows)
        # half: a swap changes two locations, and each contributes its root
        shares, log_decay = self._weights(rows) / rows.shape[1], np.log(np.tanh(self.gamma)) / 2

        def factors(where: IntArray, step: int) -> tuple[FloatArray, FloatArray]:
            before = rows[:, where] - point[0, where]
            after = before - step  # a location that gives a unit has step -1, so its difference grows
            agreement = (after == 0).astype(float) - (before == 0)
            return np.exp(shares[where] * agreement), np.exp(log_decay * (np.abs(after) - np.abs(before)))

        leaves, enters = factors(gives, -1), factors(takes, 1)

        def sums(w: FloatArray) -> FloatArray:
            first, second = (
                (w * term).T * leave for term, leave in zip((location, configuration), leaves, strict=True)
            )
            total: FloatArray = first.T @ enters[0] + second.T @ enters[1]
            return total

        return sums

    def _weights(self, rows: FloatArray) -> FloatArray:
        """Return the location weights ℓ, shape (N,); a single weight is repeated."""
        weights, n = np.asarray(self.weights, dtype=float), rows.shape[1]
        if weights.ndim == 1 and len(weights) != n:
            raise InputError(f"`weights` must hold one weight per location, {n} in total; got {len(weights)}.")
        return np.broadcast_to(weights, n)

    def _terms(self, X: FloatArray, Y: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return first and second term of the kernel, and H / 2 (units to relocate), each of shape (n, m)."""
        top, shares = max(X.max(), Y.max()), self._weights(X) / X.shape[1]
        if top <= 1:  # for counts of 0 and 1, [x ≠ x'] and |x - x'| both equal x + x' - 2 x x'
            apart = (X @ shares)[:, None] + Y @ shares - 2 * (X * shares) @ Y.T
            swaps = (X.sum(axis=1)[:, None] + Y.sum(axis=1)) / 2 - X @ Y.T
            location = np.exp(shares.sum() - apart)
        else:
            location = np.exp(sum((x * shares) @ y.T for x, y in zip(_levels(X, top), _levels(Y, top), strict=True)))
            swaps = sum(np.abs(X[:, None, i] - Y[:, i]) for i in range(X.shape[1])) / 2
        return location, np.exp(np.log(np.tanh(self.gamma)) * swaps), swaps

    def _gamma_slope(self) -> float:
        """Return the derivative of log tanh γ by log γ."""
        return 2 * self.gamma / float(np.sinh(2 * self.gamma))

    def diag(self, X: ArrayLike) -> FloatArray:
        """Return k(x, x) of each row, shape (n,)."""
        rows = _counts(X)
        return np.full(len(rows), np.exp(np.asarray(self.weights, dtype=float).mean()) + 1)

    def is_stationary(self) -> bool:
        """Return True: the kernel depends only on which counts differ and by how much, that is, on x - x'."""
        return True

    def __repr__(self) -> str:
        low, high = np.min(self.weights), np.max(self.weights)
        shown = f"{low:.3g}..{high:.3g}" if np.size(self.weights) > 1 else f"{low:.3g}"
        return f"DeploymentKernel(weights={shown}, gamma={self.gamma:.3g})"


def _counts(X: ArrayLike) -> FloatArray:
    """Return rows of whole, non-negative counts as floats, shape (n, N)."""
    rows = np.asarray(X, dtype=float)
    bad = ~((rows >= 0) & (rows < np.inf) & (rows == np.floor(rows)))
    if rows.ndim != 2 or rows.size == 0 or bad.any():
        wanted = "whole numbers of units, one row per deployment, shape (n, N)"
        got = f"{rows[bad].flat[0]:g}" if bad.any() else f"shape {rows.shape}"
        raise InputError(f"`X` must hold {wanted}; got {got}.")
    return rows


def _levels(rows: FloatArray, top: float) -> list[FloatArray]:
    """Return indicators [x_i = v] for v = 0, ..., top, each of shape (n, N)."""
    return [np.equal(rows, v).astype(float) for v in range(int(top) + 1)]
