r"""Kernels between deployments, to be combined with scikit-learn's own kernels.

`DeploymentKernel` is kernel (13) of "Optimizing Server Locations in Spatial Queues". A point is a row of
counts: the number of units at each of N locations (0 or 1, unless units share a location).

.. math:: k(x, x') = \exp\Big(\sum_i \ell_i \, \delta(x_i, x_i') / N\Big) + (\tanh γ)^{H(x, x') / 2}

===========  ==============  =================================================================================
symbol       name            meaning
===========  ==============  =================================================================================
ℓ_i          ``weights``     weight of agreement at location i
γ            ``gamma``       decay of similarity: each swap of a unit multiplies the second term by tanh γ
δ            -               1 if the counts are equal, else 0
H            -               Hamming distance; for larger counts Σ_i |x_i - x_i'|, twice the units to relocate
===========  ==============  =================================================================================

The paper's example uses δ = 1 where the counts *differ*, which contradicts its definition; this module
follows the definition. Weights must be positive, otherwise the kernel is not positive semi-definite. The
first term is at least 1, and the prior therefore includes a constant. The kernel has no scale of its own:
multiply it by one (``ConstantKernel() * DeploymentKernel()``) or use the package's `GaussianProcess`, which
has an amplitude.

Importing this module loads scikit-learn; the rest of the package loads it only when needed.
"""

import numpy as np
from sklearn.gaussian_process.kernels import Hyperparameter, Kernel

from ..errors import InputError


class DeploymentKernel(Kernel):
    """Kernel (13): sum of location-level and configuration-level similarity of two deployments.

    Parameters
    ----------
    weights : float or array_like, shape (N,)
        ℓ_i, positive. A single number is shared by all locations and trained as one hyperparameter.
    gamma : float
        γ, positive.
    weights_bounds, gamma_bounds : pair of float or "fixed"
        Bounds for training.

    Examples
    --------
    Deployments 110 and 101 agree in the first location only.

    >>> kernel = DeploymentKernel(weights=[0.3, 0.6, 0.9], gamma=1.0)
    >>> value = kernel([[1, 1, 0]], [[1, 0, 1]])[0, 0]
    >>> bool(np.isclose(value, np.exp(0.3 / 3) + np.tanh(1.0)))
    True
    """

    def __init__(self, weights=1.0, gamma=1.0, weights_bounds=(1e-3, 10.0), gamma_bounds=(1e-2, 5.0)):
        self.weights = weights
        self.gamma = gamma
        self.weights_bounds = weights_bounds
        self.gamma_bounds = gamma_bounds

    @property
    def hyperparameter_weights(self):
        """Name, bounds and number of the location weights, for scikit-learn."""
        if np.iterable(self.weights):
            return Hyperparameter("weights", "numeric", self.weights_bounds, len(self.weights))
        return Hyperparameter("weights", "numeric", self.weights_bounds)

    @property
    def hyperparameter_gamma(self):
        """Name and bounds of gamma, for scikit-learn."""
        return Hyperparameter("gamma", "numeric", self.gamma_bounds)

    def __call__(self, X, Y=None, eval_gradient=False):
        """Return the kernel between rows of counts, and optionally its gradient by the log hyperparameters.

        Parameters
        ----------
        X, Y : array_like of int, shapes (n, N) and (m, N)
            Units at each location. Default of Y: X.
        eval_gradient : bool
            Whether to return the gradient; only allowed without Y.

        Returns
        -------
        K : ndarray, shape (n, m)
        gradient : ndarray, shape (n, n, number of hyperparameters)
            Only with ``eval_gradient``; in the order of ``theta``: gamma, then weights.
        """
        X = _counts(X)
        weights = self._weights(X)
        if Y is not None:
            if eval_gradient:
                raise InputError("The gradient is available only between X and itself. Omit `Y` or `eval_gradient`.")
            Y = _counts(Y)
            location, configuration, _ = self._terms(X, Y, weights)
            return location + configuration
        location, configuration, swaps = self._terms(X, X, weights)
        if not eval_gradient:
            return location + configuration
        slopes = [np.empty((len(X), len(X), 0))]
        if not self.hyperparameter_gamma.fixed:
            slopes.append((self._gamma_slope() * swaps * configuration)[:, :, None])
        if not self.hyperparameter_weights.fixed:
            each = (X[:, None, :] == X) * (weights / X.shape[1]) * location[:, :, None]
            slopes.append(each if np.iterable(self.weights) else each.sum(axis=2, keepdims=True))
        return location + configuration, np.concatenate(slopes, axis=2)

    def contracted(self, X):
        """Return the kernel of X with itself and a function that contracts its gradient.

        The likelihood needs only Σ_ab S_ab ∂K_ab/∂θ, which is computed without an array of shape (n, n, N).

        Parameters
        ----------
        X : array_like of int, shape (n, N)

        Returns
        -------
        K : ndarray, shape (n, n)
        contract : callable
            Takes a symmetric S of shape (n, n) and returns one number for each entry of ``theta``.
        """
        X = _counts(X)
        weights = self._weights(X)
        location, configuration, swaps = self._terms(X, X, weights)

        def contract(S):
            parts = []
            if not self.hyperparameter_gamma.fixed:
                parts.append([self._gamma_slope() * np.sum(S * swaps * configuration)])
            if not self.hyperparameter_weights.fixed:
                levels = _levels(X, int(X.max()))
                SL = S * location
                each = sum(((SL @ level) * level).sum(axis=0) for level in levels) * weights / X.shape[1]
                parts.append(each if np.iterable(self.weights) else [each.sum()])
            return np.concatenate([np.empty(0), *parts])

        return location + configuration, contract

    def _weights(self, X):
        """ℓ, shape (N,)."""
        weights = np.asarray(self.weights, dtype=float)
        if weights.ndim == 1 and len(weights) != X.shape[1]:
            raise InputError(f"`weights` must hold one weight per location, {X.shape[1]} in all; got {len(weights)}.")
        return np.broadcast_to(weights, X.shape[1:])

    def _terms(self, X, Y, weights):
        """Location-level and configuration-level similarity, and H / 2, each of shape (n, m)."""
        top = int(max(X.max(), Y.max()))
        weights = weights / X.shape[1]
        if top <= 1:  # for counts of 0 and 1 both differences equal x + x' - 2 x x'
            apart = (X @ weights)[:, None] + Y @ weights - 2 * (X * weights) @ Y.T
            swaps = (X.sum(axis=1)[:, None] + Y.sum(axis=1)) / 2 - X @ Y.T
            location = np.exp(weights.sum() - apart)
        else:
            location = np.exp(sum((x * weights) @ y.T for x, y in zip(_levels(X, top), _levels(Y, top), strict=True)))
            swaps = sum(np.abs(X[:, None, i] - Y[:, i]) for i in range(X.shape[1])) / 2
        return location, np.exp(np.log(np.tanh(self.gamma)) * swaps), swaps

    def _gamma_slope(self):
        """Return the derivative of log tanh γ by log γ."""
        return 2 * self.gamma / np.sinh(2 * self.gamma)

    def diag(self, X):
        """Return k(x, x) of each row, shape (n,)."""
        X = _counts(X)
        return np.full(len(X), np.exp(self._weights(X).mean()) + 1)

    def is_stationary(self):
        """Return True: the kernel depends only on x - x'."""
        return True

    def __repr__(self):
        weights = np.atleast_1d(np.asarray(self.weights, dtype=float))
        shown = f"{weights[0]:.3g}" if len(weights) == 1 else f"{weights.min():.3g}..{weights.max():.3g}"
        return f"DeploymentKernel(weights={shown}, gamma={self.gamma:.3g})"


def _counts(X):
    """Return rows of whole, non-negative counts as floats, shape (n, N)."""
    X = np.asarray(X, dtype=float)
    if X.ndim != 2 or X.size == 0 or (X < 0).any() or (X % 1 != 0).any():
        msg = f"`X` must hold whole numbers of units, one row per deployment, shape (n, N); got shape {X.shape}."
        raise InputError(msg)
    return X


def _levels(X, top):
    """Return indicators [x_i = v] for v = 0, ..., top, each of shape (n, N)."""
    return [np.equal(X, v).astype(float) for v in range(top + 1)]
