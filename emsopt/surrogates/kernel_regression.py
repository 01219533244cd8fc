r"""Kernel regression and kernel density: a surrogate that needs no training and O(t) per evaluation.

Equations (3.1) to (3.9), (5.1) and (5.2) of "Bayesian Optimization by Kernel Regression and Density-based Exploration".

======  ===================  ========  =======================================================================
symbol  name                 shape     meaning
======  ===================  ========  =======================================================================
X       ``X``                (t, d)    observed points
y       ``y``                (t,)      observed values
h       ``bandwidth``        (d,)      width of the kernel along each coordinate, in that coordinate's unit
u                                      scaled distance, ‖(x - x_i) / h‖
k       ``kernel``                     exp(-u²/2), max(1 - u², 0) or 1{u ≤ 1}: 1 at its centre, not normalised
m(x)    mean                           Σ k_i y_i / Σ k_i, the Nadaraya-Watson estimate
W(x)    density                        Σ k_i; it grows with t, and W^(-1/2) is the exploration term (3.13)
======  ===================  ========  =======================================================================

Far from all data, or with a tiny h, the sums underflow; their ratio and the logarithm of W are therefore computed
relative to the weight of the nearest point. As h → 0, the mean tends to the nearest neighbour's value (Proposition
3.1), as h → ∞ to the mean of all values. Kernels of bounded support have W = 0 far from all points: there the mean is
the nearest neighbour's value, log W is -inf, and the slopes are 0.

Limits. A weighted mean flattens peaks and valleys and is biased near the border of the data. Bandwidth rules assume
coordinates of similar scale, such as on the unit cube.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import gamma, log, pi

import numpy as np
from numba import njit

from ..errors import InputError, _validate
from ..errors._types import ArrayLike, FloatArray

__all__ = ["condition", "leave_one_out_bandwidth", "likelihood_bandwidth", "log_normalizer"]

KERNELS = ("gaussian", "epanechnikov", "uniform")
MIN_BANDWIDTH, MAX_BANDWIDTH = 1e-100, 1e100  # bounds of a bandwidth, which keep its square from overflowing


@dataclass(frozen=True, eq=False, repr=False)
class KernelRegression:
    """Kernel regression and density of data, see the module's table for attributes; build it with `condition`."""

    X: FloatArray
    y: FloatArray
    bandwidth: FloatArray
    kernel: str

    def predict(self, x: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Return the regression m and the logarithm of the density W, each (n,), at points, (n, d)."""
        return self.predict_with_slopes(x)[:2]

    def predict_with_slopes(self, x: ArrayLike) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Return regression and log density, each (n,), and their gradients, each (n, d), at points, (n, d)."""
        points, d = np.ascontiguousarray(x, dtype=float), len(self.bandwidth)
        if points.ndim != 2 or points.shape[1] != d or not np.isfinite(points).all():
            raise InputError(f"`x` must be finite, with one point of {d} numbers per row; got {_validate.quote(x)}.")
        return _evaluate_regression(points, self.X, self.y, 1 / self.bandwidth, KERNELS.index(self.kernel))

    def __repr__(self) -> str:
        widths = np.array2string(np.unique(self.bandwidth), precision=3, threshold=4)
        return f"<KernelRegression: {len(self.y)} points, {self.kernel} kernel, bandwidth {widths[1:-1]}>"


def condition(X: ArrayLike, y: ArrayLike, bandwidth: ArrayLike, *, kernel: str = "gaussian") -> KernelRegression:
    """Build a kernel regression from data and a bandwidth.

    Raise InputError if shapes do not match, a value is not finite, or a bandwidth is outside [1e-100, 1e100].

    Parameters
    ----------
    X, y : array_like, shapes (t, d) and (t,)
        Observed points, which may repeat, and their values; pass zeros if only the density is needed.
    bandwidth, kernel : float or array_like of shape (d,), str
        h, and one of ``KERNELS``.

    Examples
    --------
    >>> model = condition([[0.0], [1.0]], [10.0, 20.0], 0.3)
    >>> model.predict([[0.5], [1e6]])[0]
    array([15., 20.])
    """
    X = _validate.real_array(X, "X", (None, None))
    y = _validate.real_array(y, "y", (len(X),))
    h = _validate.array_of_length(bandwidth, "bandwidth", X.shape[1], low=MIN_BANDWIDTH, high=MAX_BANDWIDTH)
    return KernelRegression(X, y, h, _validate.choice(kernel, "kernel", KERNELS))


def scott(t: int, d: int, scale: float) -> float:
    """Return the bandwidth of Scott's rule, (5.1) of the paper, for t points with d coordinates: scale · t^(-1/(d+4)).

    ``scale`` is in the unit of the coordinates. In Scott's original rule it is the standard deviation of the points.
    """
    return scale * t ** (-1 / (d + 4))


def silverman(t: int, d: int, scale: float) -> float:
    """Return the bandwidth of Silverman's rule, (5.2): scale · (t (d + 2) / 4)^(-1/(d+4)); arguments as in `scott`."""
    return scott(t, d, scale) * ((d + 2) / 4) ** (-1 / (d + 4))


def log_normalizer(kernel: str, bandwidth: Sequence[float]) -> float:
    """Return the logarithm of the integral of a kernel, one of ``KERNELS``, with bandwidths (d,).

    exp(log W - log_normalizer) / t integrates to 1 for t points, as in Figure 2 of the paper.

    Examples
    --------
    >>> round(log_normalizer("gaussian", [1.0]), 4)
    0.9189
    """
    d = len(bandwidth)
    ball = pi ** (d / 2) / gamma(d / 2 + 1)
    of_unit = {"gaussian": (2 * pi) ** (d / 2), "epanechnikov": ball * 2 / (d + 2), "uniform": ball}
    return log(of_unit[kernel]) + float(np.log(bandwidth).sum())


def leave_one_out_bandwidth(X: ArrayLike, y: ArrayLike) -> float:
    """Return the common Gaussian bandwidth of all coordinates that minimises the squared leave-one-out error.

    ``X`` and ``y`` are as in `condition`, with at least two distinct points; repeated noisy points bias the result
    towards h = 0. The distances cost O(t² d), and each of the 29 bandwidths tried costs t² kernel values.

    Examples
    --------
    >>> X = np.linspace(0, 1, 9)[:, None]
    >>> 0 < leave_one_out_bandwidth(X, X[:, 0] ** 2) < 1
    True
    """
    return _best_bandwidth(X, y, lambda h, mean, log_density: ((mean - np.asarray(y)) ** 2).sum())


def likelihood_bandwidth(X: ArrayLike) -> float:
    """Return the common Gaussian bandwidth of all coordinates that maximises the leave-one-out likelihood.

    It minimises ``Σ_i (d log h - log W_-i(x_i))``, where ``W_-i`` is the density without point i, as in Figure 2.
    ``X``, shape (t, d), has at least two distinct points; repeated points bias the result towards h = 0.

    Examples
    --------
    >>> 0 < likelihood_bandwidth(np.linspace(0, 1, 9)[:, None]) < 1
    True
    """
    X = _validate.real_array(X, "X", (None, None))
    d = X.shape[1]
    return _best_bandwidth(X, np.zeros(len(X)), lambda h, mean, log_density: (d * np.log(h) - log_density).sum())


def _best_bandwidth(X: ArrayLike, y: ArrayLike, loss: Callable[[float, FloatArray, FloatArray], float]) -> float:
    """Return the bandwidth h with the least ``loss``, of h and leave-one-out regression and log density, each (t,)."""
    model = condition(X, y, 1.0)
    X, t = model.X, len(model.X)
    squared = sum((np.square(x[:, None] - x) for x in X.T), np.zeros((t, t)))
    diameter = np.sqrt(squared.max())
    if diameter == 0:
        raise InputError(f"`X` must hold at least two distinct points to leave one out; got {t} identical row(s).")
    np.fill_diagonal(squared, np.inf)  # no point may predict itself
    # narrower, the mean is the nearest value, and wider, that of all; most points may repeat, with distance 0
    low, high = max(0.2 * np.median(np.sqrt(squared.min(axis=1))), 1e-3 * diameter), 2 * diameter
    for count in (20, 9):  # a coarse grid first, as the error may have several minima
        grid = np.geomspace(low, high, count)
        best = int(np.argmin([loss(h, *_leave_one_out_predictions(squared, model.y, h)) for h in grid]))
        low, high = grid[max(best - 1, 0)], grid[min(best + 1, count - 1)]
    return float(grid[best])


def _leave_one_out_predictions(squared: FloatArray, y: FloatArray, h: float) -> tuple[FloatArray, FloatArray]:
    """Return regression and log density at each point from all others, each (t,), for squared distances, (t, t)."""
    u = squared / h**2
    nearest = u.min(axis=1, keepdims=True)
    weights = np.exp((nearest - u) / 2)
    log_density = np.log(weights.sum(axis=1)) - nearest[:, 0] / 2
    return y.mean() + weights @ (y - y.mean()) / weights.sum(axis=1), log_density


# not all of fastmath, which assumes that no value is infinite
@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def _evaluate_regression(
    points: FloatArray, X: FloatArray, y: FloatArray, inverse: FloatArray, kernel: int
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Compute the result of `predict_with_slopes`; ``inverse``, (d,), is 1 / h, ``kernel`` an index of ``KERNELS``."""
    t, d = X.shape
    n = len(points)
    mean, log_density = np.empty(n), np.empty(n)
    mean_slope, log_density_slope = np.zeros((n, d)), np.zeros((n, d))
    squared, weighted, pulls = np.empty(t), np.empty(d), np.empty(d)
    centre = y.mean()  # subtracting the mean reduces rounding errors for large values
    for p in range(n):
        nearest = np.inf
        for i in range(t):
            u = 0.0
            for k in range(d):
                z = (X[i, k] - points[p, k]) * inverse[k]
                u += z * z
            squared[i] = u
            nearest = min(nearest, u)
        total, lift = 0.0, 0.0
        weighted[:], pulls[:] = 0.0, 0.0
        for i in range(t):  # `pull` times (x_i - x) / h² is the slope of the weight
            if kernel == 0:
                weight = pull = np.exp((nearest - squared[i]) / 2)
            elif kernel == 1:
                weight, pull = max(1 - squared[i], 0.0), 2.0 if squared[i] < 1 else 0.0
            else:
                weight, pull = 1.0 if squared[i] <= 1 else 0.0, 0.0
            value = y[i] - centre
            total += weight
            lift += weight * value
            if pull > 0:
                for k in range(d):
                    step = pull * (X[i, k] - points[p, k])
                    pulls[k] += step
                    weighted[k] += step * value
        if total > 0:
            lift /= total
            log_density[p] = np.log(total) - (nearest / 2 if kernel == 0 else 0.0)
            for k in range(d):
                scale = inverse[k] * inverse[k] / total
                mean_slope[p, k] = (weighted[k] - lift * pulls[k]) * scale
                log_density_slope[p, k] = pulls[k] * scale
        else:
            lift = (y[squared == nearest] - centre).mean()  # Proposition 3.1
            log_density[p] = -np.inf
        mean[p] = centre + lift
    return mean, log_density, mean_slope, log_density_slope
