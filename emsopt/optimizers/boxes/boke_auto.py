r"""boke-auto: BOKE's plan, exploration by a kernel density, with surrogates that can point beyond the data. Ours.

A weighted mean never rises above the values it averages, so that BOKE learns of a peak only by landing on it, and the
top of its regression is where the best point is alone. Besides, √(β / W) grows without end away from the points, and
one bandwidth serves all inputs. Here

- after the first design, half of the steps and more go to the top of an upper bound. Its mean is that of a Gaussian
  process with one lengthscale an input. An evaluation of the process's variance would cost O(t²); in its place there is
  a kernel density V with half these lengthscales (k⁸ is the square of that kernel), so large at a point that the bonus
  there is next to nothing without noise, and never more than κ s:

.. math:: x_{t+1} = \arg\max_x \; m(x) + κ \, s \, e^{-V(x) / 2}, \qquad
          V(x) = -\sum_i \log\Big(1 - \frac{k(x, x_i)^8}{1 + ν}\Big)

- the others go to the top of a quadratic that is fitted to the points nearest to a peak, by weighted least squares:
  kernel regression of a higher order, with the distance to a nearest neighbour for its bandwidth. As points gather,
  both the bandwidth and the box in which the next point is sought shrink. A peak is a point no worse than its 2 (d + 1)
  nearest neighbours;
- a peak whose quadratic promises next to nothing, or that has d + 1 points closer than ``CROWDED``, is known. Where the
  best peak is known, half of the steps that would climb it go to the next one that is not, or by the upper bound if
  there is none. Without this rule, up to a third of 60 evaluations went to the last digits of a peak that may be the
  wrong one.

e^(-V) is the product of the variances, relative to s², that each point alone would leave, with half the lengthscales.

======  ==================  ====================================================================================
symbol  name                meaning
======  ==================  ====================================================================================
m       `GaussianProcess`   posterior mean; values below the median over the box (see `clipped`) count as it: what
                            is bad need not be known in detail
k, ν    the same            squared-exponential kernel, and noise over the process's variance; both by marginal
                            likelihood whenever a tenth of the points (five at least) is new
s       the same            standard deviation of the process
V       -                   density, not the W of BOKE
κ       ``confidence``      how much exploration counts
-       ``exploring``       share of the steps by the upper bound, before those that find nothing to climb
n       -                   coefficients of the quadratic, (d + 1)(d + 2) / 2
-       ``NEIGHBOURS`` · n  points that take part in the quadratic, or all there are
h       -                   distance of the farthest of them; weights are max(1 - u²/h², 0)
r       -                   distance of the (d + 1)-th nearest: how far the next point may be, along each input
λ       ``RIDGE``           pulls curvatures to zero, and slopes by a tenth of it, where points are few
-       ``CROWDED``         distance on the unit cube, see above
-       ``PROMISING``       gain by the quadratic, in standard deviations of the observed values, that is worth a step
-       ``RETURNING``       share of the steps that stay with the best peak although it is known
======  ==================  ====================================================================================

With noise, peaks are those of the process's mean at the points, not of the values. An evaluation of the acquisition
function costs O(t d) as BOKE's does; preparing a step takes a decomposition, O(t³), and a fit several, which at a few
hundred points is milliseconds and tenths of a second.

The constants come from the training functions alone. Three times the method was changed after runs on reported
functions; ``benchmarks/boke_training.py`` says what was tried and when.

Limits. On the training functions with five inputs or more, one run of 60 evaluations in five ended at a wrong peak.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numba import njit

from ... import _validate
from ..._types import FloatArray, IntArray
from ...errors import InputError
from ...surrogates.gaussian_process import GaussianProcess, condition
from ._search import STARTS, Slopes, maximize_on_box, starts_on_box
from .base import BoxOptimizer
from .boke import standardized
from .box import Function
from .gp_ucb import NOISE_FREE, NOISY, fitted, with_expected

EXPLORING = 0.5
CONFIDENCE = 2.0
SPREAD = 0.7  # standard deviation of the logarithms of the lengthscales around their common mean, as a prior
NEIGHBOURS = 1.5
RIDGE = 1e-6
CROWDED = 0.01
PROMISING = 0.01
RETURNING = 0.5


class BOKEAuto(BoxOptimizer):
    """Upper bound of a process's mean and a kernel density, in turn with steps to the top of a local quadratic.

    Parameters
    ----------
    f, bounds, integers, noisy, initial, rng
        As of `BoxOptimizer`.
    exploring : float
        Probability of a step by the upper bound, from 0 (excluded) to 1; more follow where nothing is worth climbing.
    confidence : float
        κ, in standard deviations of the process.

    Notes
    -----
    In a noise-free run a maximiser that has been evaluated already is replaced by the emptiest point, and so is one
    within ``CROWDED`` of a point asked for and not yet observed, so that a batch spreads. Such points count as if observed with
    the value that the process expects.
    """

    _fitted: GaussianProcess | None = None

    def __init__(
        self, f: Function, *, exploring: float = EXPLORING, confidence: float = CONFIDENCE, **options: Any
    ) -> None:
        super().__init__(f, **options)
        self.exploring = _validate.probability(exploring, "exploring")
        self.confidence = _validate.positive_number(confidence, "confidence", zero=True)

    def process(self) -> GaussianProcess:
        """Return the Gaussian process of what is known, with the kernel of the last fit, or a broad one before it."""
        from ...surrogates.squared_exponential import SquaredExponential

        if not self.values:
            raise InputError("there is no process before a value is observed; got none.")
        X = self.points
        if self._fitted:
            kernel, ratio = self._fitted.kernel, self._fitted.noise_ratio
        else:
            kernel = SquaredExponential(np.full(X.shape[1], 0.5))
            ratio = NOISY if self.objective.noisy else NOISE_FREE
        return with_expected(condition(kernel, X, clipped(X, self.gains), noise_ratio=ratio), self.pending)

    def _refit(self) -> None:
        """Fit the kernel if a tenth of the points, five at least, is new, and if values differ at all."""
        before = len(self._fitted.X) if self._fitted else -5
        if len(self.values) >= before + max(5, before // 10):
            X, y = self.points, clipped(self.points, self.gains)
            if np.ptp(y) > 0:
                self._fitted = fitted(X, y, noisy=self.objective.noisy, spread=SPREAD, last=self._fitted)

    def _choose(self) -> Iterator[FloatArray]:
        self._refit()
        process = self.process()
        if self.rng.random() >= self.exploring:
            top = self._exploit(process)
            if top is not None:
                yield top
        x = self._climb(lambda x: upper_bound(process, self.confidence, x))
        if not self._awaited(x):
            yield x
        yield self._climb(lambda x: emptiness(process, x))

    def _exploit(self, process: GaussianProcess) -> FloatArray | None:
        """Return the top of the quadratic at a peak, or None to explore instead.

        That is the best peak worth climbing; where it is not the best of all, the latter in ``RETURNING`` of the steps.
        """
        X, y = self.points, standardized(self.gains)
        heights = process.predict(X)[0] if self.objective.noisy else y
        first = found = None
        for peak, radius in zip(*peaks_of(X, heights), strict=True):
            x, gain = self._top(local_quadratic(X, y, X[peak]), X[peak], radius)
            first = x if first is None else first
            if gain > PROMISING and radius > CROWDED and not self._awaited(x):
                found = x
                break
        if first is not None and found is not first and not self._awaited(first) and self.rng.random() < RETURNING:
            return first
        return found

    def _awaited(self, x: FloatArray) -> bool:
        """Return whether a point as near as ``CROWDED`` was asked for and not yet observed."""
        return bool((np.linalg.norm(self.pending - x, axis=1) <= CROWDED).any())

    def _top(self, quadratic: Slopes, centre: FloatArray, radius: float) -> tuple[FloatArray, float]:
        """Return where a quadratic is highest in a box around its centre, and how much higher than there."""
        box = np.clip(np.column_stack([centre - radius, centre + radius]), 0, 1)
        x, value = maximize_on_box(quadratic, [centre, *starts_on_box(box, STARTS, self.rng)], box)
        return x, value - quadratic(centre[None])[0][0]


def clipped(X: FloatArray, gains: FloatArray) -> FloatArray:
    """Clip values at the box's median, then standardise them.

    Roughly half of the box is above that median, not half of the points: near a known peak there are many, and beside
    them the slopes of other peaks would be cut away. Each point counts as its distance to the nearest other.

    Parameters
    ----------
    X : ndarray, shape (t, d)
    gains : ndarray, shape (t,)
    """
    distances = np.linalg.norm(X[:, None] - X, axis=2)
    np.fill_diagonal(distances, np.inf)
    order = np.argsort(gains, kind="stable")
    room = np.cumsum(distances.min(axis=1)[order])
    median = gains[order[np.searchsorted(room, room[-1] / 2)]]
    return standardized(np.maximum(gains, median))


def upper_bound(process: GaussianProcess, confidence: float, x: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return m(x) + κ s exp(-V(x) / 2) and its slopes.

    Parameters
    ----------
    process : GaussianProcess
        With a `SquaredExponential` kernel.
    confidence : float
        κ.
    x : ndarray, shape (n, d)

    Returns
    -------
    value : ndarray, shape (n,)
    slopes : ndarray, shape (n, d)
    """
    mean, density, mean_slope, density_slope = mean_and_density(process, x)
    bonus = confidence * np.sqrt(process.amplitude) * np.exp(-density / 2)
    return mean + bonus, mean_slope - 0.5 * bonus[:, None] * density_slope


def emptiness(process: GaussianProcess, x: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return -V(x) and its slopes: largest where the points say least."""
    _, density, _, slope = mean_and_density(process, x)
    return -density, -slope


def mean_and_density(process: GaussianProcess, x: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return m(x) and V(x), each of shape (n,), and the slopes of both, (n, d), in O(t d) a point."""
    lengthscales = np.ascontiguousarray(np.broadcast_to(process.kernel.length_scale, x.shape[1:]), dtype=float)
    return _evaluate(np.ascontiguousarray(x), process.X, lengthscales, process.coefficients, process.noise_ratio)


@njit(cache=True, nogil=True)
def _evaluate(
    points: FloatArray, X: FloatArray, lengthscales: FloatArray, coefficients: FloatArray, noise_ratio: float
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return mean, density and the slopes of both."""
    t, d = X.shape
    mean, density = np.zeros(len(points)), np.zeros(len(points))
    mean_slope, density_slope = np.zeros(points.shape), np.zeros(points.shape)
    for p in range(len(points)):
        for i in range(t):
            squared = 0.0
            for j in range(d):
                squared += ((points[p, j] - X[i, j]) / lengthscales[j]) ** 2
            pull = coefficients[i] * np.exp(-0.5 * squared)
            known = np.exp(-4.0 * squared) / (1 + noise_ratio)
            push = 8 * known / (1 - known)
            mean[p] += pull
            density[p] -= np.log1p(-known)
            for j in range(d):
                step = (points[p, j] - X[i, j]) / lengthscales[j] ** 2
                mean_slope[p, j] -= pull * step
                density_slope[p, j] -= push * step
    return mean, density, mean_slope, density_slope


def peaks_of(X: FloatArray, y: FloatArray) -> tuple[IntArray, FloatArray]:
    """Return the points that are no worse than their 2 (d + 1) nearest neighbours.

    Parameters
    ----------
    X : ndarray, shape (t, d)
    y : ndarray, shape (t,)
        Larger is better.

    Returns
    -------
    peaks : ndarray of int, shape (n,)
        Rows of X, the best first.
    radii : ndarray, shape (n,)
        Distance of each to its (d + 1)-th nearest neighbour, or to the farthest if there are fewer.
    """
    t, d = X.shape
    distances = np.linalg.norm(X[:, None] - X, axis=2)
    near = np.argsort(distances, axis=1, kind="stable")[:, 1 : 2 * (d + 1) + 1]
    peaks = np.flatnonzero((y[:, None] >= y[near]).all(axis=1))
    peaks = peaks[np.argsort(-y[peaks], kind="stable")]
    return peaks, np.sort(distances[peaks], axis=1)[:, min(t - 1, d + 1)]


def local_quadratic(X: FloatArray, y: FloatArray, centre: FloatArray) -> Slopes:
    """Return the quadratic fitted to the points nearest to a centre, as a function to values and slopes.

    Parameters
    ----------
    X : ndarray, shape (t, d)
    y : ndarray, shape (t,)
    centre : ndarray, shape (d,)

    Returns
    -------
    callable
        From points (K, d) to values (K,) and slopes (K, d).
    """
    t, d = X.shape
    rows, columns = np.triu_indices(d)
    n = 1 + d + len(rows)
    distances = np.linalg.norm(X - centre, axis=1)
    h = np.sort(distances)[min(t, int(np.ceil(NEIGHBOURS * n)) + 1) - 1] * (1 + 1e-3) or 1.0
    near = distances < h
    z, weights = (X[near] - centre) / h, 1 - (distances[near] / h) ** 2
    features = np.column_stack([np.ones(len(z)), z, z[:, rows] * z[:, columns]])
    middle = np.average(y[near], weights=weights)
    weighted = features * weights[:, None]
    penalty = RIDGE * weights.sum() * np.r_[1e-6, np.full(d, 0.1), np.ones(len(rows))]
    fitted = np.linalg.solve(weighted.T @ features + np.diag(penalty), weighted.T @ (y[near] - middle))
    slope, curvature = fitted[1 : d + 1], np.zeros((d, d))
    curvature[rows, columns] = fitted[d + 1 :]
    curvature = curvature + curvature.T

    def quadratic(x: FloatArray) -> tuple[FloatArray, FloatArray]:
        z = (x - centre) / h
        bent = z @ curvature
        values = middle + fitted[0] + z @ slope + 0.5 * (bent * z).sum(axis=1)
        return values, (slope + bent) / h

    return quadratic
