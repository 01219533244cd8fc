r"""Cubic radial basis functions with a linear tail: a smooth surrogate whose evaluation costs O(t d).

.. math:: s(x) = \sum_i c_i ‖x - x_i‖^3 + b_0 + b^T x, \qquad \sum_i c_i = 0, \; \sum_i c_i x_i = 0

======  ============  ========  ==============================================================================
symbol  name          shape     meaning
======  ============  ========  ==============================================================================
X       ``X``         (t, d)    points observed
y       ``y``         (t,)      values observed
c       ``weights``   (t,)      of the cubes; orthogonal to constants and linear functions
b_0, b  ``tail``      (d + 1,)  the linear part, about the points' middle
λ       ``ridge``               0 interpolates; more smooths: (Φ + λ I) c + tail = y
======  ============  ========  ==============================================================================

It has no length scale, and unlike a kernel regression it can rise above every value observed. With as many
eigenvectors as points, every λ and its leave-one-out error (Craven and Wahba 1979) cost O(t²) after one
decomposition, O(t³).

Limits. A few huge values make it swing elsewhere: clip them first. At most d + 1 points give the linear part alone.
"""

from dataclasses import dataclass

import numpy as np
from numba import njit

from .. import _validate
from ..errors import InputError

INTERPOLATING = 1e-9  # λ in means of eigenvalues: enough for points that nearly coincide
RIDGES = 10.0 ** np.arange(-9, 2)  # tried, in the same unit


@dataclass(frozen=True, eq=False, repr=False)
class RadialBasis:
    """Radial basis functions through or near given data; build them with `fit`.

    Attributes
    ----------
    X : ndarray, shape (t, d)
    y : ndarray, shape (t,)
    weights : ndarray, shape (t,)
    tail : ndarray, shape (d + 1,)
    ridge : float
    """

    X: np.ndarray
    y: np.ndarray
    weights: np.ndarray
    tail: np.ndarray
    ridge: float

    def predict_with_slopes(self, x):
        """Return values, shape (n,), and gradients, shape (n, d), at points x, shape (n, d)."""
        x = np.ascontiguousarray(x, dtype=float)
        if x.ndim != 2 or x.shape[1] != self.X.shape[1]:
            msg = f"`x` must have shape (n, {self.X.shape[1]}), one row a point; got {x.shape}."
            raise InputError(msg)
        return _evaluate(x, self.X, self.weights, self.tail, self.X.mean(axis=0))

    def __repr__(self):
        return f"<RadialBasis: {len(self.y)} points, ridge {self.ridge:.3g}>"


def fit(X, y, *, smooth=False):
    """Return the surrogate of some data.

    Parameters
    ----------
    X : array_like, shape (t, d)
    y : array_like, shape (t,)
    smooth : bool
        Choose λ by leave-one-out error instead of interpolating.

    Returns
    -------
    RadialBasis

    Examples
    --------
    >>> s = fit([[0.0], [1.0], [2.0], [3.0]], [0.0, 1.0, 0.0, 1.0])
    >>> s.predict_with_slopes([[1.0], [0.5]])[0].round(3)
    array([1.  , 0.75])
    """
    X = _validate.real_array(X, "X", (None, None))
    y = _validate.real_array(y, "y", (len(X),))
    linear = np.column_stack([np.ones(len(X)), X - X.mean(axis=0)])
    cubes = np.linalg.norm(X[:, None] - X, axis=2) ** 3
    weights, ridge = np.zeros(len(X)), 0.0
    left, sizes, _ = np.linalg.svd(linear)
    rest = left[:, np.sum(sizes > 1e-12 * sizes[0]) :]  # orthogonal to the linear functions
    if rest.size:
        eigenvalues, vectors = np.linalg.eigh(rest.T @ cubes @ rest)
        scale = eigenvalues.mean() or 1.0
        eigenvalues = np.maximum(eigenvalues, 0.0)
        basis = rest @ vectors
        along = basis.T @ y
        if smooth:
            errors = [_left_out_error(basis, along, eigenvalues + r * scale) for r in RIDGES]
            ridge = RIDGES[int(np.argmin(errors))] * scale
        else:
            ridge = INTERPOLATING * scale
        weights = basis @ (along / (eigenvalues + ridge))
    tail = np.linalg.lstsq(linear, y - cubes @ weights - ridge * weights, rcond=None)[0]
    return RadialBasis(X, y, weights, tail, float(ridge))


def _left_out_error(basis, along, stretched):
    """Return the mean squared leave-one-out error: residual i is c_i over the i-th diagonal entry of the inverse."""
    diagonal = (basis**2 / stretched).sum(axis=1)
    return np.mean((basis @ (along / stretched) / np.maximum(diagonal, 1e-300)) ** 2)


@njit(cache=True, nogil=True)
def _evaluate(points, X, weights, tail, middle):
    t, d = X.shape
    values, slopes = np.empty(len(points)), np.empty((len(points), d))
    for p in range(len(points)):
        value = tail[0]
        for k in range(d):
            value += tail[k + 1] * (points[p, k] - middle[k])
            slopes[p, k] = tail[k + 1]
        for i in range(t):
            squared = 0.0
            for k in range(d):
                squared += (points[p, k] - X[i, k]) ** 2
            pull = weights[i] * np.sqrt(squared)
            value += pull * squared
            for k in range(d):
                slopes[p, k] += 3 * pull * (points[p, k] - X[i, k])
        values[p] = value
    return values, slopes
