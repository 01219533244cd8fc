r"""boke-auto: BOKE's exploration by density with surrogates that can point beyond the data. Ours, not the paper's.

A weighted mean never rises above the values it averages, so that BOKE learns of a peak only by landing on it, and the
top of its regression is where the best point is alone. Here

- the upper bound (3.12) has cubic radial basis functions (`emsopt.surrogates.radial_basis`) in place of the kernel
  regression, and the same kernel density: x = argmax s(x) + √(β / W(x));
- the other steps go to the top of a quadratic that is fitted to the points nearest to a peak, by weighted least
  squares: kernel regression of a higher order, with the distance to a nearest neighbour for its bandwidth. As points
  gather, both the bandwidth and the box in which the next point is sought shrink. A peak is a point no worse than its
  2 (d + 1) nearest neighbours; the best peak is climbed first;
- a place with d + 1 points closer than ``CROWDED`` is known: of the steps that would climb a peak there, half go to
  the best peak elsewhere, and an upper bound that is highest there is shared among the points around,
  argmax (s + √(β / W)) / (1 + W). Without this rule, up to a third of 60 evaluations went to the last digits of a
  peak that may be the wrong one.

======  ==================  ====================================================================================
symbol  name                meaning
======  ==================  ====================================================================================
s       -                   radial basis functions through (with noise: near) the values, of which those below the
                            median count as the median: what is bad need not be known in detail
n       -                   coefficients of the quadratic, (d + 1)(d + 2) / 2
k       ``NEIGHBOURS`` · n  points that take part, or all there are
h       -                   distance of the k-th nearest; weights are max(1 - u²/h², 0)
r       -                   distance of the (d + 1)-th nearest: how far the next point may be, along each input
λ       ``RIDGE``           pulls curvatures to zero, and slopes by a tenth of it, where points are few
-       ``CROWDED``         distance on the unit cube, see above
-       ``RETURNING``       share of the climbing steps that stay with the best peak when its place is crowded
p       ``exploring``       probability of a step by the upper bound; the other constants are BOKE's
======  ==================  ====================================================================================

With noise the best point is the told one where the surrogate is highest, not the luckiest. An evaluation of the
acquisition function costs O(t d) as BOKE's does; preparing a step takes a decomposition, O(t³), which at a few
hundred points is milliseconds.

The constants come from the training functions alone; ``benchmarks/boke_training.py`` says what was tried.

Limits. With five inputs or more, 60 points hardly crowd anywhere, and a run that climbs the wrong top stays there; with
fewer, some still do. On functions with ripples finer than the spacing of the points it is no better than BOKE.
"""

from dataclasses import dataclass

import numpy as np

from ..surrogates.kernel_regression import condition
from ..surrogates.radial_basis import fit
from ._box_search import maximize_on_box
from .boke import EMPTIEST, BOKEPlus, log_upper_bound, standardized

EXPLORING = 0.5
NEIGHBOURS = 1.5
RIDGE = 1e-6
CROWDED = 0.01
RETURNING = 0.5


class BOKEAuto(BOKEPlus):
    """BOKE with radial basis functions in its upper bound, whose exploiting steps follow a local quadratic.

    Parameters
    ----------
    f, exploring, scale, noise, kernel, starts, bounds, whole, noisy, initial, rng
        As of `BOKEPlus`; ``kernel`` is that of the density.
    """

    def __init__(self, f, *, exploring=EXPLORING, **options):
        super().__init__(f, exploring=exploring, **options)

    def _model(self, X, y, h):
        y = standardized(np.maximum(y, np.median(y)))
        density = condition(X, y, h, kernel=self.kernel)
        return Blend(y, fit(X, y, smooth=self.objective.noisy), density)

    def _explore(self, model, beta):
        x = super()._explore(model, beta)
        if spacing(self.points, x[None])[0] > CROWDED:
            return x
        return self._climb(lambda x: log_shared_bound(model, beta, x))

    def _exploit(self):
        """Return the top of the quadratic around the best peak, or around the best that is not crowded."""
        X, y = self.points, standardized(self.gains)
        told = self.surrogate().predict(X)[0] if self.objective.noisy else y
        peaks, radii = peaks_of(X, told)
        k = int(np.argmax(radii > CROWDED))  # 0 as well if all are crowded
        if k > 0 and self.rng.random() < RETURNING:
            k = 0
        centre, radius = X[peaks[k]], radii[k]
        quadratic = local_quadratic(X, y, centre)
        low, high = np.maximum(centre - radius, 0), np.minimum(centre + radius, 1)
        starts = np.vstack([centre, low + (high - low) * self.rng.random((self.starts, len(centre)))])
        return maximize_on_box(quadratic, starts, np.column_stack([low, high]))[0]


@dataclass(frozen=True, eq=False)
class Blend:
    """Radial basis functions for the mean and a kernel density, as BOKE's steps expect a surrogate."""

    y: np.ndarray
    mean: object
    density: object

    def predict(self, x):
        """Return mean and log density at points (n, d)."""
        return self.predict_with_slopes(x)[:2]

    def predict_with_slopes(self, x):
        """Return mean, log density and the slopes of each."""
        mean, mean_slope = self.mean.predict_with_slopes(x)
        _, log_density, _, density_slope = self.density.predict_with_slopes(x)
        return mean, log_density, mean_slope, density_slope


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


def spacing(X, x):
    """Return the distances of points x (n, d) to their (d + 1)-th nearest of X (t, d), or to the farthest."""
    distances = np.sort(np.linalg.norm(x[:, None] - X, axis=2), axis=1)
    return distances[:, min(len(X) - 1, X.shape[1])]


def log_shared_bound(model, beta, x):
    """Return log((m(x) - min y + √(β / W)) / (1 + W)) and its slopes: gain and exploration shared among neighbours."""
    value, slope = log_upper_bound(model, beta, x)
    _, log_density, _, density_slope = model.predict_with_slopes(x)
    log_density = np.maximum(log_density, EMPTIEST)
    share = np.exp(log_density - np.logaddexp(0, log_density))
    return value - np.logaddexp(0, log_density), slope - share[:, None] * density_slope


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
