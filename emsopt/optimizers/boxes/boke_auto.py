r"""boke-auto: exploration by a kernel density as in BOKE, with models that can predict values above those observed.

This is a method of this package, not of a paper. BOKE's regression is a weighted mean, which never exceeds the values
it averages, so that BOKE finds a peak only by evaluating a point on it. Moreover, √(β / W) is unbounded away from the
data, and all inputs share one bandwidth. Here:

- Half of the steps after the initial design climb every coordinate on its own if the values look like a sum of
  functions of one input each: if a Gaussian process that is such a sum, of the gains or of their normal scores, has a
  sum of squared leave-one-out errors below ``ERROR_RATIO`` times that of the process below, whenever the kernel is
  fitted. Coordinate j of the next point then maximises μ_j + κ' σ_j. Many functions with many peaks are close to a sum,
  or to an increasing function of one, which scores turn into a sum.
- Of the other steps, at least half maximise an upper bound. Its mean is that of a Gaussian process with one lengthscale
  per input. The variance of the process would cost O(t²) per evaluation; it is replaced by a kernel density V with half
  the lengthscales. The bonus is at most κ s, and close to zero at an observed point without noise:

.. math:: x_{t+1} = \arg\max_x \; m(x) + κ \, s \, e^{-V(x) / 2}, \qquad
          V(x) = -\sum_i \log\Big(1 - \frac{k(x, x_i)^8}{1 + ν}\Big)

- The remaining steps maximise a quadratic that is fitted by weighted least squares to the points nearest to a *peak*,
  an observed point whose value is at least that of its 2 (d + 1) nearest neighbours. As points accumulate near the
  peak, the bandwidth and the searched box shrink. Without noise, the mean of the process given all values, unclipped,
  with noise ratio ``INTERPOLATION_NOISE_RATIO``, is maximised in this box instead if it predicts the points nearest to
  the best peak better, each left out in turn: it needs fewer points than the quadratic, but also a fitted kernel.
- A peak is *known* if its model predicts only a negligible gain, or if d + 1 points are closer to it than
  ``CROWDING_DISTANCE``. If the best peak is known, half of the steps that would climb it climb the best unknown peak
  instead, or maximise the upper bound if there is no such peak.

e^(-V) is a product over the observed points of the variances, relative to s², that would remain if only that point had
been observed, with half the lengthscales.

======  ==================  ====================================================================================
symbol  name                meaning
======  ==================  ====================================================================================
m       `GaussianProcess`   posterior mean of values clipped by `clip_at_median`: bad regions need no accurate model
k, ν    the same            squared-exponential kernel, and noise variance divided by s²; both are fitted by marginal
                            likelihood again when a tenth of the points (at least five) are new
s       the same            standard deviation of the process
V       -                   density, not the W of BOKE
κ       ``confidence``      weight of exploration
κ'      ``CONFIDENCES``     weight of exploration along the coordinates, drawn from these numbers at each step
n       -                   coefficients of the quadratic, (d + 1)(d + 2) / 2; it uses ``NEIGHBOURS`` · n points
h       -                   distance from the peak to the farthest of them; a point at distance u has weight
                            max(1 - u²/h², 0)
r       -                   distance from the peak to its (d + 1)-th nearest neighbour; the next point differs from
                            the peak by at most r in each input
λ       ``RIDGE``           ridge penalty on the curvatures, and a tenth of it on the slopes, for few points
======  ==================  ====================================================================================

With noise, peaks are found in the posterior mean at the observed points. An evaluation of the acquisition function
costs O(t d), as in BOKE; a step costs one matrix decomposition, O(t³), fitting the kernel several.

The constants were tuned on the training functions only; ``benchmarks/RESULTS.md`` lists the values tried, with dates.

Limits. On the training functions with five inputs or more, one in five runs of 60 evaluations ended at a wrong peak.

**The sum of functions of one input each** is the additive process of Duvenaud, Nickisch and Rasmussen (2011) with the
acquisition of Kandasamy, Schneider and Póczos (2015); inputs are optimised one by one.

.. math:: k(x, x') = \frac1d \sum_j e^{-(x_j - x'_j)^2 / (2 ℓ^2)}, \qquad
          x_{t+1, j} = \arg\max_z \; μ_j(z) + κ \, σ_j(z)

The noise ratio ν absorbs deviations from a sum. A lengthscale ℓ, common to all inputs, costs one eigendecomposition,
O(t³).
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit

from ...errors._types import FloatArray, IntArray
from ...surrogates.gaussian_process import GaussianProcess, condition
from ..recommendation import clip_at_median, normal_scores, standard_deviation, standardize_values
from ._base import BoxOptimizer
from ._search import MAX_STARTS, SmoothFunction, draw_starts, maximize_on_box
from .gp_ucb import INTERPOLATION_NOISE_RATIO, NOISE_FREE_RATIO, NOISY_RATIO, condition_on_pending, refit

SPREAD = 0.7  # prior standard deviation of the log lengthscales around their common mean, against overfitting
NEIGHBOURS = 1.5  # points per coefficient of a quadratic
RIDGE = 1e-6
CROWDING_DISTANCE = 0.01  # distance on the unit cube below which points crowd a peak, so that more would tell little
MIN_GAIN = 0.01  # smallest predicted gain worth a step, in standard deviations of the observed values
SUM_SHARE = 0.5  # share of the steps by the sum, if it is used
CONFIDENCES = (0.0, 1.0, 2.0)
ERROR_RATIO = 0.7  # of squared errors, below which the sum counts as clearly better than the process
DUAL_COEFFICIENTS = 500  # with as many coefficients, a quadratic is fitted in the dual form, which costs less
LENGTHSCALES = (0.05, 0.1, 0.2, 0.4, 0.8)  # in widths of the box, few, as each takes an eigendecomposition
NOISE_RATIOS = (1e-5, 1e-3, 1e-2, 1e-1)
GRID_POINTS = 101  # points per input at which the acquisition is evaluated: a grid finds the highest of many peaks


@dataclass(frozen=True, eq=False)
class AdditiveProcess:
    """Gaussian process of a sum of functions of one input each; build it with `condition_additive`.

    For t points, ``basis`` B, (t, t), satisfies B Bᵀ = (K + ν I)⁻¹, and ``coefficients``, (t,), are B Bᵀ y; ``scale``
    is the standard deviation of largest likelihood; ``leave_one_out``, (t,), predicts each value from the others.
    """

    X: FloatArray
    lengthscale: float
    noise_ratio: float
    basis: FloatArray
    coefficients: FloatArray
    scale: float
    leave_one_out: FloatArray

    def predict_input(self, j: int, z: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return mean and standard deviation, each (m,), of the function of input j at values z, (m,), of it."""
        d = self.X.shape[1]
        across = np.exp(-0.5 * ((z[:, None] - self.X[:, j]) / self.lengthscale) ** 2) / d
        variance = 1 / d - ((across @ self.basis) ** 2).sum(axis=1)
        return across @ self.coefficients, self.scale * np.sqrt(np.maximum(variance, 0))

    def maximize(self, confidence: float, rng: np.random.Generator) -> FloatArray:
        """Return the point, (d,), whose coordinates maximise μ_j + ``confidence`` σ_j on a randomly shifted grid."""
        # shifted, or points would share coordinates
        z = np.clip((np.arange(GRID_POINTS + 1) - rng.random()) / (GRID_POINTS - 1), 0, 1)
        sides = [self.predict_input(j, z) for j in range(self.X.shape[1])]
        return z[np.argmax([mean + confidence * deviation for mean, deviation in sides], axis=1)]


def condition_additive(
    X: FloatArray, y: FloatArray, lengthscales: Iterable[float], noise_ratios: Iterable[float]
) -> list[AdditiveProcess]:
    """Condition a process on values y, (t,), at X, (t, d), for each pair of a lengthscale and a noise ratio."""
    processes, squared = [], (X[:, None] - X) ** 2
    for lengthscale in lengthscales:
        values, vectors = np.linalg.eigh(np.exp(squared / (-2 * lengthscale**2)).mean(axis=2))
        for ratio in noise_ratios:
            basis = vectors / np.sqrt(np.maximum(values, 0) + ratio)  # one decomposition serves all ratios
            coefficients = basis @ (basis.T @ y)
            # (5.12) of Rasmussen and Williams (2006)
            leave_one_out = y - coefficients / (basis**2).sum(axis=1)
            scale = float(np.sqrt(max(y @ coefficients, 0) / len(y)))
            processes.append(AdditiveProcess(X, lengthscale, ratio, basis, coefficients, scale, leave_one_out))
    return processes


class BOKEAuto(BoxOptimizer):
    """Bayesian optimisation that maximises an upper bound, a local model or an additive process, chosen at random.

    Options are those of `BoxOptimizer`.

    In a noise-free run, a maximum of the local model that was already evaluated is replaced by the maximiser of the
    upper bound and, if that was evaluated too, by the point of lowest density. To keep the points of a batch apart, so
    is a maximum close to a pending point, which was asked for but not observed. Pending points are treated as observed,
    with the value predicted by the process.

    Examples
    --------
    >>> BOKEAuto(bounds=[(0, 1)], sense="min", rng=0).ask().shape
    (1,)
    """

    exploring = 0.5  # probability that a step which is not by the sum is by the upper bound
    confidence = 2.0  # κ: the bonus is at most this many prior standard deviations of the process
    _last_fit: GaussianProcess | None = None
    # kept between fits, which take O(t³): whether scores are modelled, lengthscale, noise ratio
    _additive_settings: tuple[bool, float, float] | None = None

    def process(self) -> GaussianProcess:
        """Return the process of clipped gains with the kernel of the last fit, given predictions at pending points."""
        from ...surrogates.kernels import SquaredExponential

        X = self.points
        if self._last_fit:
            kernel, ratio = self._last_fit.kernel, self._last_fit.noise_ratio
        else:
            kernel = SquaredExponential(np.full(X.shape[1], 0.5))
            ratio = NOISY_RATIO if self.objective.noisy else NOISE_FREE_RATIO
        observed = condition(kernel, X, standardize_values(clip_at_median(X, self.gains)), noise_ratio=ratio)
        return condition_on_pending(observed, self.pending_points)

    def _refit_if_due(self) -> None:
        """Fit the kernel if a tenth of the points (at least five) are new and the values differ."""
        before = len(self._last_fit.X) if self._last_fit else -5  # -5: the first fit is made at the first values
        if len(self.values) >= before + max(5, before // 10):
            X, y = self.points, standardize_values(clip_at_median(self.points, self.gains))
            if np.ptp(y) > 0:
                self._last_fit = refit(X, y, noisy=self.objective.noisy, spread=SPREAD, last=self._last_fit)
                self._additive_settings = select_additive(X, self.gains, self._last_fit)

    def _yield_points(self) -> Iterator[FloatArray]:
        self._refit_if_due()
        process = self.process()
        if self._additive_settings and self.rng.random() < SUM_SHARE:
            scored, lengthscale, ratio = self._additive_settings
            y = normal_scores(self.points, self.gains) if scored else standardize_values(self.gains)
            additive = condition_additive(self.points, y, [lengthscale], [ratio])[0]
            along = additive.maximize(self.rng.choice(CONFIDENCES), self.rng)
            if not self._is_near_pending(along):
                yield along
        if self.rng.random() >= self.exploring:
            x = self._maximize_at_peak(process)
            if x is not None:
                yield x
        x = self._climb(lambda x: density_upper_bound(process, self.confidence, x))
        if not self._is_near_pending(x):
            yield x
        yield self._climb(lambda x: negative_density(process, x))

    def _maximize_at_peak(self, process: GaussianProcess) -> FloatArray | None:
        """Return the maximiser, (d,), of the model of a peak, the best one not known or the best of all, or None."""
        X, y = self.points, standardize_values(self.gains)
        heights = process.predict(X)[0] if self.objective.noisy else y  # with noise, a lucky value is no peak
        peaks, radii = find_peaks(X, heights)
        model = None if self.objective.noisy else interpolate_peak(process, X, y, X[peaks[0]])
        first: Any = None
        found = None
        for peak, radius in zip(peaks, radii, strict=True):
            function = model or fit_quadratic(X, y, X[peak])
            box = np.clip(X[peak, :, None] + [-radius, radius], 0, 1)
            x, value = maximize_on_box(function, [X[peak], *draw_starts(box, MAX_STARTS, self.rng)], box)
            gain = value - function(X[[peak]])[0][0]
            first = x if first is None else first
            if gain > MIN_GAIN and radius > CROWDING_DISTANCE and not self._is_near_pending(x):
                found = x
                break
        # half of the steps climb the best peak although it is known
        returns = found is not first and not self._is_near_pending(first) and self.rng.random() < 0.5
        return first if returns else found

    def _is_near_pending(self, x: FloatArray) -> bool:
        """Return whether a pending point lies within ``CROWDING_DISTANCE`` of x, (d,)."""
        return bool((np.linalg.norm(self.pending_points - x, axis=1) <= CROWDING_DISTANCE).any())


def select_additive(X: FloatArray, gains: FloatArray, process: GaussianProcess) -> tuple[bool, float, float] | None:
    """Return the best additive process: whether it models normal scores, its lengthscale and noise ratio; or None.

    The best has the least leave-one-out errors, of normal scores clipped at the box's median. None is returned unless
    these are below ``ERROR_RATIO`` times those of ``process``.
    """
    if X.shape[1] == 1:  # with one input, every function is such a sum
        return None
    scores = normal_scores(X, gains)
    known, first = np.unique(gains, return_index=True)

    def error(predicted: FloatArray) -> float:
        apart = np.maximum(predicted, 0) - np.maximum(scores, 0)
        return float(apart @ apart)

    def error_of_gains(predicted: FloatArray, modelled: FloatArray) -> float:
        # scores rise with gains, and are interpolated between the known ones
        return error(np.interp(modelled.mean() + standard_deviation(modelled) * predicted, known, scores[first]))

    plain, scored = (condition_additive(X, y, LENGTHSCALES, NOISE_RATIOS) for y in (standardize_values(gains), scores))
    errors = [error_of_gains(each.leave_one_out, gains) for each in plain]
    errors += [error(each.leave_one_out) for each in scored]
    k = int(np.argmin(errors))
    if errors[k] > ERROR_RATIO * error_of_gains(process.leave_one_out, clip_at_median(X, gains)):
        return None
    best = [*plain, *scored][k]
    return k >= len(plain), best.lengthscale, best.noise_ratio


def density_upper_bound(process: GaussianProcess, confidence: float, x: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return m(x) + κ s exp(-V(x) / 2), shape (n,), and its slopes (n, d) at points x, for κ = ``confidence``."""
    mean, density, mean_slope, density_slope = mean_and_density(process, x)
    bonus = confidence * np.sqrt(process.amplitude) * np.exp(-density / 2)
    return mean + bonus, mean_slope - 0.5 * bonus[:, None] * density_slope


def negative_density(process: GaussianProcess, x: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return minus the density V, (n,), and its slopes, (n, d), at points x, (n, d)."""
    _, density, _, slope = mean_and_density(process, x)
    return -density, -slope


def mean_and_density(process: GaussianProcess, x: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return mean m and density V at points x, (n, d), each (n,), and their slopes, (n, d), in O(t d) per point."""
    lengthscales = np.full(x.shape[1], process.kernel.length_scale, dtype=float)
    return _mean_and_density(
        np.ascontiguousarray(x), process.X, lengthscales, process.coefficients, process.noise_ratio
    )


@njit(cache=True, nogil=True)
def _mean_and_density(
    points: FloatArray, X: FloatArray, lengthscales: FloatArray, coefficients: FloatArray, noise_ratio: float
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Compute the result of `mean_and_density` from the arrays of the process."""
    t, d = X.shape
    mean, density = np.zeros(len(points)), np.zeros(len(points))
    mean_slope, density_slope = np.zeros(points.shape), np.zeros(points.shape)
    for p in range(len(points)):
        for i in range(t):
            squared = 0.0
            for j in range(d):
                squared += ((points[p, j] - X[i, j]) / lengthscales[j]) ** 2
            pull = coefficients[i] * np.exp(-0.5 * squared)
            known = np.exp(-4.0 * squared) / (1 + noise_ratio)  # k⁸
            push = 8 * known / (1 - known)  # k⁸ falls eight times as fast as k
            mean[p] += pull
            density[p] -= np.log1p(-known)
            for j in range(d):
                step = (points[p, j] - X[i, j]) / lengthscales[j] ** 2
                mean_slope[p, j] -= pull * step
                density_slope[p, j] -= push * step
    return mean, density, mean_slope, density_slope


def find_peaks(X: FloatArray, y: FloatArray) -> tuple[IntArray, FloatArray]:
    """Return the indices of the peaks of y at points X, (t, d), best first, and each distance r to a neighbour."""
    t, d = X.shape
    distances = np.linalg.norm(X[:, None] - X, axis=2)
    near = np.argsort(distances, axis=1, kind="stable")[:, 1 : 2 * (d + 1) + 1]  # each point is nearest to itself
    peaks = np.flatnonzero((y[:, None] >= y[near]).all(axis=1))
    peaks = peaks[np.argsort(-y[peaks], kind="stable")]
    return peaks, np.sort(distances[peaks], axis=1)[:, min(t - 1, d + 1)]


def interpolate_peak(process: GaussianProcess, X: FloatArray, y: FloatArray, peak: FloatArray) -> SmoothFunction | None:
    """Return the mean, with slopes, of the process given all values, or None if a quadratic predicts better."""
    whole = condition(process.kernel, X, y, noise_ratio=INTERPOLATION_NOISE_RATIO)
    # compared at the points nearest to the peak, each left out in turn
    near = np.argsort(np.linalg.norm(X - peak, axis=1), kind="stable")[: len(peak) + 2]
    refits = [fit_quadratic(np.delete(X, i, 0), np.delete(y, i), peak) for i in near]
    by_quadratic = [refit(X[[i]])[0][0] - y[i] for i, refit in zip(near, refits, strict=True)]
    by_process = (whole.leave_one_out - whole.residuals)[near]
    if by_process @ by_process > np.dot(by_quadratic, by_quadratic):
        return None
    return lambda x: mean_and_density(whole, x)[::2]


def fit_quadratic(X: FloatArray, y: FloatArray, centre: FloatArray) -> SmoothFunction:
    """Fit a quadratic to the points nearest to ``centre``; return it as a function that also returns slopes."""
    t, d = X.shape
    n = (d + 1) * (d + 2) // 2
    distances = np.linalg.norm(X - centre, axis=1)
    # 1e-3 more, or the farthest point would have weight 0; 1 if all are in one place
    h = np.sort(distances)[min(t, int(np.ceil(NEIGHBOURS * n)) + 1) - 1] * (1 + 1e-3) or 1.0
    near = distances < h
    z, weights = (X[near] - centre) / h, 1 - (distances[near] / h) ** 2
    middle = np.average(y[near], weights=weights)
    ridge = RIDGE * weights.sum()
    if n < DUAL_COEFFICIENTS:
        rows, columns = np.triu_indices(d)
        features = np.column_stack([np.ones(len(z)), z, z[:, rows] * z[:, columns]])
        weighted = features * weights[:, None]
        penalty = ridge * np.r_[1e-6, np.full(d, 0.1), np.ones(len(rows))]
        fitted = np.linalg.solve(weighted.T @ features + np.diag(penalty), weighted.T @ (y[near] - middle))
        level, slope, curvature = fitted[0], fitted[1 : d + 1], np.zeros((d, d))
        curvature[rows, columns] = fitted[d + 1 :]
        curvature = curvature + curvature.T  # so that ½ zᵀ C z has these coefficients
    else:  # the dual form, with the inner products of the penalised features as kernel and a level without penalty
        kernel = 10 * z @ z.T + ((z @ z.T) ** 2 + z**2 @ (z**2).T) / 2
        system = np.pad(kernel + np.diag(ridge / weights), (0, 1), constant_values=1.0)
        system[-1, -1] = 0
        *pulls, level = np.linalg.solve(system, np.append(y[near] - middle, 0.0))
        slope, curvature = 10 * z.T @ pulls, (z.T * pulls) @ z
        curvature += np.diag(np.diag(curvature))

    def quadratic(x: FloatArray) -> tuple[FloatArray, FloatArray]:
        z = (x - centre) / h
        bent = z @ curvature
        return middle + level + z @ slope + 0.5 * (bent * z).sum(axis=1), (slope + bent) / h

    return quadratic
