r"""boke-auto: BOKE's plan, exploration by a kernel density, with surrogates that can point beyond the data. Ours.

A weighted mean never rises above the values it averages, so that BOKE learns of a peak only by landing on it, and the
top of its regression is where the best point is alone. Besides, √(β / W) grows without end away from the points, and
one bandwidth serves all inputs. Here

- half the steps go to the top of an upper bound. Its mean is that of a Gaussian process with one lengthscale an input;
  in place of the variance, whose evaluation costs O(t²), there is a kernel density with half these lengthscales that is
  infinite at a point, so that the bonus is zero there and never more than κ s:

.. math:: x_{t+1} = \arg\max_x \; m(x) + κ \, s \, e^{-W(x) / 2}, \qquad
          W(x) = -\sum_i \log\Big(1 - \frac{k(x, x_i)^8}{1 + ν}\Big)

- the others go to the top of a quadratic that is fitted to the points nearest to a peak, by weighted least squares:
  kernel regression of a higher order, with the distance to a nearest neighbour for its bandwidth. As points gather,
  both the bandwidth and the box in which the next point is sought shrink. A peak is a point no worse than its 2 (d + 1)
  nearest neighbours. The best one whose quadratic promises something is climbed;
- a peak that promises next to nothing, or has d + 1 points closer than ``CROWDED``, is known: half the steps that would
  climb it go elsewhere. Without this rule, up to a third of 60 evaluations went to the last digits of a peak that may
  be the wrong one.

e^(-W) is the product of the variances that each point alone would leave.

======  ==================  ====================================================================================
symbol  name                meaning
======  ==================  ====================================================================================
m       `GaussianProcess`   posterior mean; values below the median over the box (see `clipped`) count as it: what
                            is bad need not be known in detail
k, ν    the same            squared-exponential kernel, and noise over the process's variance; both by marginal
                            likelihood whenever a tenth of the points (five at least) is new
s       the same            standard deviation of the process
κ       ``confidence``      how much exploration counts
-       ``exploring``       probability of a step by the upper bound
n       -                   coefficients of the quadratic, (d + 1)(d + 2) / 2
-       ``NEIGHBOURS`` · n  points that take part in the quadratic, or all there are
h       -                   distance of the farthest of them; weights are max(1 - u²/h², 0)
r       -                   distance of the (d + 1)-th nearest: how far the next point may be, along each input
λ       ``RIDGE``           pulls curvatures to zero, and slopes by a tenth of it, where points are few
-       ``CROWDED``         distance on the unit cube, see above
-       ``PROMISING``       gain by the quadratic, in standard deviations of the values told, that is worth a step
-       ``RETURNING``       share of the steps that stay with the best peak although it is known
======  ==================  ====================================================================================

With noise the best point is the told one where the process's mean is highest, not the luckiest. An evaluation of the
acquisition function costs O(t d) as BOKE's does; preparing a step takes a decomposition, O(t³), and a fit several,
which at a few hundred points is milliseconds and tenths of a second.

The constants come from the training functions alone; ``benchmarks/boke_training.py`` says what was tried.

Limits. With five inputs or more, 60 points hardly crowd anywhere, and a run that climbs the wrong top stays there; with
fewer, some still do.
"""

import numpy as np
from numba import njit

from .. import _validate
from ..errors import InputError
from ._box_search import highest, maximize_on_box
from .boke import standardized
from .box_optimizer import BoxOptimizer

EXPLORING = 0.5
CONFIDENCE = 2.0
NOISE, NOISE_FREE = 1e-2, 1e-6
SPREAD = 0.7  # standard deviation of the logarithms of the lengthscales around their common mean, as a prior
NEIGHBOURS = 1.5
RIDGE = 1e-6
CROWDED = 0.01
PROMISING = 0.01
RETURNING = 0.5
STARTS = 10


class BOKEAuto(BoxOptimizer):
    """Upper bound of a process's mean and a kernel density, in turn with steps to the top of a local quadratic.

    Parameters
    ----------
    f, bounds, whole, noisy, initial, rng
        As of `BoxOptimizer`.
    exploring : float
        Probability of a step by the upper bound, from 0 (excluded) to 1.
    confidence : float
        κ, in standard deviations of the process.
    starts : int
        Points from which L-BFGS-B climbs the upper bound, or the quadratic.

    Notes
    -----
    In a noise-free run a maximiser that has been evaluated already is replaced by the emptiest point. Points asked for
    and not yet told count as told with the value that the process expects, so that a batch spreads.
    """

    def __init__(self, f, *, exploring=EXPLORING, confidence=CONFIDENCE, starts=STARTS, **options):
        super().__init__(f, **options)
        self.exploring = _validate.positive_number(exploring, "exploring")
        if self.exploring > 1:
            msg = f"`exploring` must be a probability, at most 1; got {exploring!r}."
            raise InputError(msg)
        self.confidence = _validate.positive_number(confidence, "confidence", zero=True)
        self.starts = _validate.whole_number(starts, "starts")
        self._fitted = None

    def process(self):
        """Return the Gaussian process of what is known, its kernel fitted a few points ago at most."""
        from ..surrogates.gaussian_process import condition

        X = self.points
        y = clipped(X, self.gains)
        if self._fitted is None or len(y) >= len(self._fitted.X) + max(5, len(self._fitted.X) // 10):
            self._fitted = self._fit(X, y)
        process = condition(self._fitted.kernel, X, y, noise=self._fitted.noise)
        for x in self.pending:
            process = process.appended(x, process.predict(x[None])[0][0])
        return process

    def _fit(self, X, y):
        """Return the process of largest likelihood, from broad lengthscales and from those of the last fit."""
        from ..surrogates.gaussian_process import NOISE_BOUNDS, fit
        from ..surrogates.squared_exponential import SquaredExponential

        noisy = self.objective.noisy
        kernels = [SquaredExponential(np.full(X.shape[1], 0.5))]
        if self._fitted is not None:
            kernels.append(self._fitted.kernel)
        options = {
            "noise": NOISE if noisy else NOISE_FREE,
            "noise_bounds": NOISE_BOUNDS if noisy else (NOISE_FREE, NOISE_FREE),
            "spread": SPREAD,
        }
        return max((fit(kernel, X, y, **options) for kernel in kernels), key=lambda p: p.log_likelihood)

    def _choose(self):
        process = self.process()
        if self.rng.random() >= self.exploring:
            x = self._exploit(process)
            if x is not None:
                yield x
        yield self._highest(lambda x: upper_bound(process, self.confidence, x))
        yield self._highest(lambda x: emptiness(process, x))

    def _highest(self, function):
        leaders = self.points[np.argsort(-self.gains, kind="stable")[: self.starts]]
        return highest(function, self.space.dimension, self.rng, near=leaders, starts=self.starts)

    def _exploit(self, process):
        """Return the top of the quadratic at the best peak that is worth climbing, or None to explore instead."""
        X, y = self.points, standardized(self.gains)
        first = None
        for peak, radius in zip(
            *peaks_of(X, process.predict(X)[0] if self.objective.noisy else y), strict=True
        ):
            x, gain = self._top(local_quadratic(X, y, X[peak]), X[peak], radius)
            if first is None:
                first = x
            if gain > PROMISING and radius > CROWDED:
                break
        else:
            x = None
        return first if x is not first and self.rng.random() < RETURNING else x

    def _top(self, quadratic, centre, radius):
        """Return where a quadratic is highest in a box around its centre, and how much higher than there."""
        low, high = np.maximum(centre - radius, 0), np.minimum(centre + radius, 1)
        starts = np.vstack([centre, low + (high - low) * self.rng.random((self.starts, len(centre)))])
        x, value = maximize_on_box(quadratic, starts, np.column_stack([low, high]))
        return x, value - quadratic(centre[None])[0][0]


def clipped(X, gains):
    """Return values in standard deviations from their mean, those below the box's median raised to it first.

    Half of the box is above that median, not half of the points: near a known peak there are many, and among them a
    slope elsewhere would be flat. Each point counts as its distance to the nearest other.

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


def upper_bound(process, confidence, x):
    """Return m(x) + κ s exp(-W(x) / 2) and its slopes.

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


def emptiness(process, x):
    """Return -W(x) and its slopes: largest where the points say least."""
    _, density, _, slope = mean_and_density(process, x)
    return -density, -slope


def mean_and_density(process, x):
    """Return m(x) and W(x), each of shape (n,), and the slopes of both, (n, d), in O(t d) a point."""
    lengthscales = np.ascontiguousarray(
        np.broadcast_to(process.kernel.length_scale, x.shape[1:]), dtype=float
    )
    return _evaluate(np.ascontiguousarray(x), process.X, lengthscales, process.coefficients, process.noise)


@njit(cache=True, nogil=True)
def _evaluate(points, X, lengthscales, coefficients, noise):
    t, d = X.shape
    mean, density = np.zeros(len(points)), np.zeros(len(points))
    mean_slope, density_slope = np.zeros(points.shape), np.zeros(points.shape)
    for p in range(len(points)):
        for i in range(t):
            squared = 0.0
            for j in range(d):
                squared += ((points[p, j] - X[i, j]) / lengthscales[j]) ** 2
            pull = coefficients[i] * np.exp(-0.5 * squared)
            known = np.exp(-4.0 * squared) / (1 + noise)
            push = 8 * known / (1 - known)
            mean[p] += pull
            density[p] -= np.log1p(-known)
            for j in range(d):
                step = (points[p, j] - X[i, j]) / lengthscales[j] ** 2
                mean_slope[p, j] -= pull * step
                density_slope[p, j] -= push * step
    return mean, density, mean_slope, density_slope


def peaks_of(X, y):
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


def local_quadratic(X, y, centre):
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

    def quadratic(x):
        z = (x - centre) / h
        bent = z @ curvature
        values = middle + fitted[0] + z @ slope + 0.5 * (bent * z).sum(axis=1)
        return values, (slope + bent) / h

    return quadratic
