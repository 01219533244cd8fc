r"""Kernel regression and kernel density: a surrogate that needs no training and O(t) per evaluation.

Equations (3.1) to (3.9), (5.1) and (5.2) of "Bayesian Optimization by Kernel Regression and Density-based
Exploration".

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

Weights are computed relative to that of the nearest point (a softmax), and W as a logarithm. Far from all
data, or with a tiny h, the sums underflow, but their ratio and logarithm do not. As h → 0 the mean tends to
the nearest neighbour's value (Proposition 3.1), as h → ∞ to the mean of all values. Kernels of bounded
support have W = 0 far from all points: there the mean is the nearest neighbour's value, log W is -inf, and
the slopes are 0.

Limits. A weighted mean stays within the range of the observed values. It therefore flattens peaks and valleys
and is biased near the border of the data. The bandwidth alone decides what is noise and what is structure.
All bandwidth rules assume coordinates of similar scale; scale the domain to the unit cube first.
"""

from dataclasses import dataclass
from math import gamma, log, pi

import numpy as np
from numba import njit

from .. import _validate
from ..errors import InputError

KERNELS = ("gaussian", "epanechnikov", "uniform")
GAUSSIAN, EPANECHNIKOV, UNIFORM = range(3)
UNIT_SPREAD = 12**-0.5
"""Standard deviation of the uniform distribution on the unit interval, 0.289."""
NARROWEST, WIDEST = 1e-100, 1e100  # bounds of a bandwidth: the squares of others would overflow


@dataclass(frozen=True, eq=False, repr=False)
class KernelRegression:
    """Kernel regression and density on given data; build it with `condition`.

    Attributes
    ----------
    X : ndarray, shape (t, d)
    y : ndarray, shape (t,)
    bandwidth : ndarray, shape (d,)
    kernel : str
        One of `KERNELS`.
    """

    X: np.ndarray
    y: np.ndarray
    bandwidth: np.ndarray
    kernel: str

    def predict(self, x):
        """Return the regression (3.1) and the logarithm of the density (3.9).

        Parameters
        ----------
        x : array_like, shape (n, d)

        Returns
        -------
        mean, log_density : ndarray, shape (n,)
        """
        return self.predict_with_slopes(x)[:2]

    def predict_with_slopes(self, x):
        """Return regression and log density and their gradients, in O(t d) per point.

        Parameters
        ----------
        x : array_like, shape (n, d)

        Returns
        -------
        mean, log_density : ndarray, shape (n,)
        mean_slope, log_density_slope : ndarray, shape (n, d)

        Raises
        ------
        InputError
            If the points have the wrong shape or are not finite.
        """
        x = np.ascontiguousarray(x, dtype=float)
        d = len(self.bandwidth)
        if x.ndim != 2 or x.shape[1] != d:
            raise InputError(f"`x` must have shape (n, {d}), one row per point; got {x.shape}.")
        if not np.isfinite(x).all():
            raise InputError(f"`x` must be finite; row {int(np.argmin(np.isfinite(x).all(axis=1)))} is not.")
        return _evaluate(x, self.X, self.y, 1 / self.bandwidth, KERNELS.index(self.kernel))

    def __repr__(self):
        widths = np.array2string(np.unique(self.bandwidth), precision=3, threshold=4)
        return f"<KernelRegression: {len(self.y)} points, {self.kernel} kernel, bandwidth {widths[1:-1]}>"


def condition(X, y, bandwidth, *, kernel="gaussian"):
    """Build a kernel regression from data and a bandwidth, without fitting anything.

    Parameters
    ----------
    X : array_like, shape (t, d)
        Observed points. A point may occur several times.
    y : array_like, shape (t,)
        Observed values. Pass zeros if only the density is needed.
    bandwidth : float or array_like, shape (d,)
        h; see `scott`, `silverman` and `leave_one_out_bandwidth`.
    kernel : str
        One of `KERNELS`.

    Returns
    -------
    KernelRegression

    Raises
    ------
    InputError
        If shapes do not match, a value is not finite, or a bandwidth is outside [1e-100, 1e100].

    Examples
    --------
    >>> model = condition([[0.0], [1.0]], [10.0, 20.0], 0.3)
    >>> mean, log_density = model.predict([[0.5], [1e6]])
    >>> mean
    array([15., 20.])
    """
    X, y = _data(X, y)
    _validate.choice(kernel, "kernel", KERNELS)
    h = np.atleast_1d(_validate.real_array(bandwidth, "bandwidth", np.shape(bandwidth)))
    if h.shape not in ((1,), X.shape[1:]):
        msg = f"`bandwidth` must be one number or {X.shape[1]} numbers, one per coordinate; got shape {h.shape}."
        raise InputError(msg)
    if h.min() < NARROWEST or h.max() > WIDEST:
        worst = h.min() if h.min() < NARROWEST else h.max()
        raise InputError(f"`bandwidth` must be between {NARROWEST:g} and {WIDEST:g}; got {worst:g}.")
    return KernelRegression(X, y, np.broadcast_to(h, X.shape[1:]).copy(), kernel)


def scott(t, d, *, scale=UNIT_SPREAD):
    """Return the bandwidth of Scott's rule, (5.1): scale · t^(-1/(d+4)).

    Parameters
    ----------
    t, d : int
        Numbers of points and of coordinates.
    scale : float or array_like, shape (d,)
        Factor in the unit of the coordinates, which the paper does not specify. In Scott's original rule it
        is the standard deviation of the points; the default is that of points distributed uniformly over the
        unit cube. For another box, multiply it by the widths of the box.

    Returns
    -------
    float or ndarray, shape (d,)

    Examples
    --------
    >>> round(scott(60, 3), 4)
    0.1608
    """
    t, d, scale = _rule(t, d, scale)
    return scale * t ** (-1 / (d + 4))


def silverman(t, d, *, scale=UNIT_SPREAD):
    """Return the bandwidth of Silverman's rule, (5.2): scale · (t (d + 2) / 4)^(-1/(d+4)).

    Parameters and return value are those of `scott`. For d = 2 both rules agree.
    """
    t, d, scale = _rule(t, d, scale)
    return scale * (t * (d + 2) / 4) ** (-1 / (d + 4))


def log_normalizer(kernel, bandwidth):
    """Return log ∫ k, which normalises the density: exp(log W - log_normalizer) / t (the paper's Figure 2).

    Parameters
    ----------
    kernel : str
        One of `KERNELS`.
    bandwidth : array_like, shape (d,)
    """
    _validate.choice(kernel, "kernel", KERNELS)
    h = _validate.real_array(bandwidth, "bandwidth", (None,), low=0, strictly=True)
    d = len(h)
    ball = pi ** (d / 2) / gamma(d / 2 + 1)
    of_unit = {"gaussian": (2 * pi) ** (d / 2), "epanechnikov": ball * 2 / (d + 2), "uniform": ball}
    return log(of_unit[kernel]) + float(np.log(h).sum())


def leave_one_out(X, y, bandwidth, *, kernel="gaussian"):
    """Return the leave-one-out prediction at each point.

    Parameters
    ----------
    X, y, bandwidth, kernel
        As in `condition`, with at least two distinct points.

    Returns
    -------
    ndarray, shape (t,)
    """
    model = condition(*_several(X, y), bandwidth, kernel=kernel)
    return _left_out(model.X, model.y, 1 / model.bandwidth, KERNELS.index(kernel))[0]


def leave_one_out_bandwidth(X, y, *, kernel="gaussian", per_dimension=False):
    """Return the bandwidth that minimises the squared leave-one-out error.

    The search covers bandwidths from a thousandth of the points' diameter (or a fifth of the median distance
    to the nearest neighbour, if that is larger) to twice the diameter, on a grid of 20 widths and then one of
    9. It costs O(t² d) and 29 t² kernel values.

    Parameters
    ----------
    X, y, kernel
        As in `condition`, with at least two distinct points. Repeated noisy points bias the result towards h
        = 0.
    per_dimension : bool
        Refine the common bandwidth to one per coordinate, by L-BFGS-B over their logarithms. Irrelevant
        coordinates get a large bandwidth. Not available for the uniform kernel, whose error is piecewise
        constant.

    Returns
    -------
    float, or ndarray of shape (d,) if ``per_dimension``
    """
    X, y = _several(X, y)
    _validate.choice(kernel, "kernel", KERNELS)
    number = KERNELS.index(kernel)
    if per_dimension and number == UNIFORM:
        msg = "`per_dimension` needs a kernel with slopes, 'gaussian' or 'epanechnikov'; got kernel='uniform'."
        raise InputError(msg)
    squared = _squared_distances(X)
    low, high = _range(squared)
    common = _search(lambda h: _left_out_error(squared, y, 1 / h**2, number), low, high)
    if not per_dimension:
        return common
    return _one_each(X, y, number, common, low, high)


def likelihood_bandwidth(X, *, kernel="gaussian"):
    """Return the bandwidth that maximises the leave-one-out likelihood (middle of the paper's Figure 2).

    Parameters
    ----------
    X : array_like, shape (t, d)
        At least two distinct points. Repeated points bias the result towards h = 0.
    kernel : str
        One of `KERNELS`.

    Returns
    -------
    float
    """
    X, _ = _several(X, np.zeros(len(X)))
    _validate.choice(kernel, "kernel", KERNELS)
    squared, number = _squared_distances(X), KERNELS.index(kernel)
    t, d = X.shape
    low, high = _range(squared)
    return _search(lambda h: t * d * np.log(h) - _left_out_log_density(squared, 1 / h**2, number), low, high)


def _data(X, y):
    X = _validate.real_array(X, "X", (None, None))
    return X, _validate.real_array(y, "y", (len(X),))


def _several(X, y):
    X, y = _data(X, y)
    if not np.ptp(X, axis=0).any():
        raise InputError(f"`X` must hold at least two distinct points to leave one out; got {len(X)} identical row(s).")
    return X, y


def _rule(t, d, scale):
    t, d = _validate.whole_number(t, "t"), _validate.whole_number(d, "d")
    if np.ndim(scale) == 0:
        return t, d, _validate.positive_number(scale, "scale")
    return t, d, _validate.real_array(scale, "scale", (d,), low=0, strictly=True)


def _range(squared):
    """Return the smallest and largest bandwidth to search."""
    t = len(squared)
    nearest = np.sqrt(np.min(squared + np.diag(np.full(t, np.inf)), axis=1))
    diameter = np.sqrt(squared.max())
    return max(0.2 * np.median(nearest), 1e-3 * diameter), 2 * diameter


def _search(loss, low, high, steps=20, again=9):
    """Return the best point of a logarithmic grid, refined once between the neighbours of the best point."""
    for count in (steps, again):
        grid = np.geomspace(low, high, count)
        best = int(np.argmin([loss(h) for h in grid]))
        low, high = grid[max(best - 1, 0)], grid[min(best + 1, count - 1)]
    return float(grid[best])


def _one_each(X, y, kernel, common, low, high):
    from scipy.optimize import minimize

    size = np.var(y) or 1.0

    def objective(logarithms):
        left_out, slopes = _left_out(X, y, np.exp(-logarithms), kernel)
        residuals = left_out - y
        return np.mean(residuals**2) / size, 2 * residuals @ slopes / (len(y) * size)

    start = np.full(X.shape[1], np.log(common))
    bounds = [(np.log(low), np.log(10 * high))] * len(start)
    return np.exp(minimize(objective, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 50}).x)


@njit(cache=True, nogil=True)
def _weight(squared, nearest, kernel):
    """Return k and -2 dk/d(u²) at a squared scaled distance (Gaussian: relative to the nearest point)."""
    if kernel == GAUSSIAN:
        weight = np.exp((nearest - squared) / 2)
        return weight, weight
    if kernel == EPANECHNIKOV:
        return max(1 - squared, 0.0), 2.0 if squared < 1 else 0.0
    return 1.0 if squared <= 1 else 0.0, 0.0


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def _evaluate(points, X, y, inverse, kernel):
    """Return mean, log density and their gradients at each point; ``inverse`` is 1 / h."""
    t, d = X.shape
    n = len(points)
    mean, log_density = np.empty(n), np.empty(n)
    mean_slope, log_density_slope = np.zeros((n, d)), np.zeros((n, d))
    squared, weighted, pulls = np.empty(t), np.empty(d), np.empty(d)
    centre = y.mean()  # differences of values are small where values are large
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
        for i in range(t):
            weight, pull = _weight(squared[i], nearest, kernel)
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
            log_density[p] = np.log(total) - (nearest / 2 if kernel == GAUSSIAN else 0.0)
            for k in range(d):
                scale = inverse[k] * inverse[k] / total
                mean_slope[p, k] = (weighted[k] - lift * pulls[k]) * scale
                log_density_slope[p, k] = pulls[k] * scale
        else:
            lift = _nearest_value(squared, nearest, y, centre, -1)
            log_density[p] = -np.inf
        mean[p] = centre + lift
    return mean, log_density, mean_slope, log_density_slope


@njit(cache=True, nogil=True)
def _nearest_value(squared, nearest, y, centre, without):
    """Return the mean value minus ``centre`` of all points at the smallest distance (Proposition 3.1)."""
    total, count = 0.0, 0
    for i in range(len(y)):
        if squared[i] == nearest and i != without:
            total += y[i] - centre
            count += 1
    return total / count


@njit(cache=True, nogil=True)
def _squared_distances(X):
    t, d = X.shape
    squared = np.zeros((t, t))
    for i in range(t):
        for j in range(i):
            u = 0.0
            for k in range(d):
                u += (X[i, k] - X[j, k]) ** 2
            squared[i, j] = squared[j, i] = u
    return squared


@njit(cache=True, nogil=True)
def _nearest_other(squared, without):
    nearest = np.inf
    for j in range(len(squared)):
        if j != without:
            nearest = min(nearest, squared[j])
    return nearest


@njit(cache=True, nogil=True)
def _left_out_error(squared, y, factor, kernel):
    """Return the sum of squared leave-one-out errors, with squared distances multiplied by ``factor``."""
    error = 0.0
    for i in range(len(y)):
        nearest = _nearest_other(squared[i], i)
        total, lift = 0.0, 0.0
        for j in range(len(y)):
            if j != i:
                weight, _ = _weight(squared[i, j] * factor, nearest * factor, kernel)
                total += weight
                lift += weight * (y[j] - y[i])
        error += (lift / total if total > 0 else _nearest_value(squared[i], nearest, y, y[i], i)) ** 2
    return error


@njit(cache=True, nogil=True)
def _left_out_log_density(squared, factor, kernel):
    """Return the sum of log W at each point without its own kernel."""
    result = 0.0
    for i in range(len(squared)):
        nearest = _nearest_other(squared[i], i) * factor
        total = 0.0
        for j in range(len(squared)):
            if j != i:
                total += _weight(squared[i, j] * factor, nearest, kernel)[0]
        if total == 0:
            return -np.inf
        result += np.log(total) - (nearest / 2 if kernel == GAUSSIAN else 0.0)
    return result


@njit(cache=True, nogil=True)
def _left_out(X, y, inverse, kernel):
    """Return the leave-one-out means, shape (t,), and their gradients by log h, shape (t, d)."""
    t, d = X.shape
    means, slopes = np.empty(t), np.zeros((t, d))
    squared, weighted, pulls = np.empty(t), np.empty(d), np.empty(d)
    for i in range(t):
        for j in range(t):
            u = 0.0
            for k in range(d):
                z = (X[j, k] - X[i, k]) * inverse[k]
                u += z * z
            squared[j] = u
        nearest = _nearest_other(squared, i)
        total, lift = 0.0, 0.0
        weighted[:], pulls[:] = 0.0, 0.0
        for j in range(t):
            if j == i:
                continue
            weight, pull = _weight(squared[j], nearest, kernel)
            total += weight
            lift += weight * (y[j] - y[i])
            for k in range(d):
                z = (X[j, k] - X[i, k]) * inverse[k]
                pulls[k] += pull * z * z
                weighted[k] += pull * z * z * (y[j] - y[i])
        if total > 0:
            lift /= total
            slopes[i] = (weighted - lift * pulls) / total
        else:
            lift = _nearest_value(squared, nearest, y, y[i], i)
        means[i] = y[i] + lift
    return means, slopes
