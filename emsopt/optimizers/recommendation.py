"""Estimates of noisy values, transformations of observed values for a search, and the expected improvement.

**Estimates** are by a Gaussian process of all values: `posterior_means` for deployments, `estimate_gains` for points
of a box, where the estimate may be a median. `AskTell.recommend` uses them, as the best of many noisy values is too
good.

**Expected improvement** is that of a normal value below a goal, equation (18) of "Optimizing Server Locations in
Spatial Queues". Far from the goal it underflows, and its slopes with it; its logarithm does not (Ament et al. 2023).

Limits. If few scattered points differ by far more than the noise, as on steep functions of many inputs, the process may
take real differences for noise; the point with the best observed value is then the better one.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular

from ..errors._types import FloatArray, IntArray
from ..surrogates.gaussian_process import GaussianProcess, fit

if TYPE_CHECKING:
    from sklearn.gaussian_process.kernels import Kernel

NOISE_RATIOS = (0.01, 0.1, 0.3)  # starting values of the noise variance, relative to the variance of the process
SPREAD = 0.3  # prior standard deviation of log lengthscales around their common mean, against overfitting
MAX_FITTED = 300  # largest number of observations to which hyperparameters are fitted, as a fit takes O(n³)
CENTRES, BLOCK, JITTER = 500, 2000, 1e-9
WORST_SHARE = 0.25  # share of the gains that are raised to the best of these: bad regions need no accurate model
ERROR_RATIO = 0.8  # of squared errors, below which one process counts as clearly better than the other


def standardize_values(gains: FloatArray) -> FloatArray:
    """Standardise values, (t,), to mean 0 and standard deviation 1; return zeros if all are equal."""
    if gains.max() == gains.min():  # the computed standard deviation of equal values may be a rounding error
        return np.zeros(len(gains))
    scaled = np.ldexp(gains, -int(np.frexp(np.abs(gains).max())[1]))  # sums of the largest floats would overflow
    return (scaled - scaled.mean()) / scaled.std()


def standard_deviation(gains: FloatArray) -> float:
    """Return the standard deviation of values, (t,), even if their squares overflow or underflow."""
    power = int(np.frexp(np.abs(gains).max())[1])
    return float(np.ldexp(np.ldexp(gains, -power).std(), power))


def clip_at_median(X: FloatArray, gains: FloatArray) -> FloatArray:
    """Raise the gains, (t,), below their weighted median to it; X, (t, d), are their points on the unit cube.

    The weights are the distances to the nearest neighbour, so that values above the median cover half of the box: near
    a known peak there are many points, whose plain median would hide the slopes of other peaks.
    """
    order = np.argsort(gains, kind="stable")
    covered = np.cumsum(_nearest_distances(X)[order])
    median = gains[order[np.searchsorted(covered, covered[-1] / 2)]]
    return np.maximum(gains, median)


def normal_scores(X: FloatArray, gains: FloatArray) -> FloatArray:
    """Return normal scores of the gains, (t,), at points X, (t, d): the standard normal quantiles of their ranks.

    A rank is the share of the box where gains are lower, plus half of that where they are equal; points weigh as in
    `clip_at_median`. An increasing function of the gains has the same scores.
    """
    from scipy.special import ndtri

    _, group = np.unique(gains, return_inverse=True)
    shares = np.bincount(group, _nearest_distances(X) + 1e-9)  # 1e-9 gives repeated points some weight
    scores: FloatArray = ndtri((np.cumsum(shares) - shares / 2) / shares.sum())[group]
    return scores


def _nearest_distances(X: FloatArray) -> FloatArray:
    """Return the distance of each point, a row of X, to its nearest neighbour, shape (t,)."""
    distances = np.linalg.norm(X[:, None] - X, axis=2)
    np.fill_diagonal(distances, np.inf)
    return distances.min(axis=1)


def log_expected_improvement(goal: float | FloatArray, mean: FloatArray, deviation: FloatArray) -> FloatArray:
    """Return the logarithm of the expected improvement below ``goal``, elementwise, even where that underflows."""
    from scipy.special import erfcx, ndtr

    deviation = np.maximum(deviation, 1e-12)  # at an observed point without noise it is 0
    z = (goal - mean) / deviation
    density = -0.5 * z**2 - 0.5 * np.log(2 * np.pi)
    high = np.maximum(z, -1.0)  # exact only where nothing cancels: φ + zΦ is a small difference for z < -1
    plain = np.log(np.exp(-0.5 * high**2) / np.sqrt(2 * np.pi) + high * ndtr(high))
    # φ + zΦ = φ (1 + z Φ/φ), and Φ/φ is a scaled erfc; beyond -1000 the bracket is 1/z² to six digits.
    low = np.clip(z, -1e3, -1.0)
    bracket = 1 + low * np.sqrt(np.pi / 2) * erfcx(-low / np.sqrt(2))
    tail = density + np.where(z < -1e3, -2 * np.log(np.maximum(-z, 1)), np.log(bracket))
    return np.log(deviation) + np.where(z > -1, plain, tail)


def posterior_means(kernels: "Sequence[Kernel]", X: FloatArray | IntArray, y: FloatArray) -> FloatArray:
    """Return the posterior mean of a Gaussian process at its own points X, (n, N), given noisy values y: shape (n,).

    Kernel and noise have the largest likelihood, for at most ``MAX_FITTED`` rows, that a fit reaches from the given
    kernels, one for each of ``NOISE_RATIOS``. Observations of one point are replaced by their mean, with the noise
    variance divided by their number, which changes no posterior mean (Lemma B.1 of the BOKE paper). With more than
    ``CENTRES`` distinct points, the mean is that of the subset-of-regressors approximation (Quiñonero-Candela and
    Rasmussen 2005).
    """
    if np.ptp(y) == 0:
        return y.copy()
    return _means_at_points(_fit_likeliest(kernels, X, y), X, y)


def estimate_gains(kernels: "Sequence[Kernel]", X: FloatArray, gains: FloatArray) -> FloatArray:
    """Return estimates, (n,), of the noise-free values of noisy gains, (n,), at points X, (n, d), of the unit cube.

    They come from a Gaussian process of the gains g, or from one of -log(s + max g - g), where s is the distance of the
    best gain from the upper quartile; its mean is transformed back. The second resolves small differences near the
    maximum of a function that falls by orders of magnitude elsewhere. It is used if the sum of its squared
    leave-one-out errors is below ``ERROR_RATIO`` times that of the first. Errors are differences of normal scores, and
    negative scores count as 0. Before both fits the worst gains are raised, as bad regions need no accurate model.
    """
    from scipy.special import ndtri
    from scipy.stats import rankdata

    cut, top = np.maximum(gains, np.quantile(gains, WORST_SHARE)), gains.max()
    scale = top - np.quantile(gains, 0.75)
    if scale == 0:
        return posterior_means(kernels, X, cut)
    part = _evenly_spaced_indices(len(gains), MAX_FITTED)
    scores = ndtri((rankdata(gains[part]) - 0.5) / len(part))  # - 0.5, as quantiles 0 and 1 are infinite

    def error(process: GaussianProcess) -> float:
        order = np.argsort(process.residuals, kind="stable")  # `interp` needs ascending residuals
        predicted = np.interp(process.leave_one_out, process.residuals[order], scores[order])
        return float(((np.maximum(predicted, 0) - np.maximum(scores, 0)) ** 2).sum())

    logarithms = -np.log(scale + top - cut)
    plain, warped = (_fit_likeliest(kernels, X, y) for y in (cut, logarithms))
    if error(warped) < ERROR_RATIO * error(plain):
        estimates: FloatArray = scale + top - np.exp(-_means_at_points(warped, X, logarithms))
        return estimates
    return _means_at_points(plain, X, cut)


def _evenly_spaced_indices(n: int, most: int) -> IntArray:
    """Return up to ``most`` evenly spaced indices from 0 to n - 1."""
    return np.linspace(0, n - 1, min(n, most)).astype(int)


def _fit_likeliest(kernels: "Sequence[Kernel]", X: FloatArray | IntArray, y: FloatArray) -> GaussianProcess:
    """Return the likeliest process of those fitted to standardised values y, (n,), at X, (n, N), one per kernel."""
    part, values = _evenly_spaced_indices(len(y), MAX_FITTED), (y - y.mean()) / standard_deviation(y)
    options: Any = {"noise_ratio_bounds": (1e-6, 10.0), "spread": SPREAD}  # noise may exceed the differences
    pairs = zip(kernels, NOISE_RATIOS, strict=True)
    fits = [fit(kernel, X[part], values[part], noise_ratio=ratio, **options) for kernel, ratio in pairs]
    return max(fits, key=lambda process: process.log_likelihood)


def _means_at_points(best: GaussianProcess, X: FloatArray | IntArray, y: FloatArray) -> FloatArray:
    """Return posterior means, (n,), at the points X, (n, N), of all values y with the hyperparameters of a process."""
    middle, scale = y.mean(), standard_deviation(y)
    y = (y - middle) / scale
    points, group, repeats = np.unique(X, axis=0, return_inverse=True, return_counts=True)
    group = group.ravel()  # some versions of numpy return a column
    sums = np.bincount(group, y)
    centres = points[_evenly_spaced_indices(len(points), CENTRES)]
    root = np.linalg.cholesky(best.kernel(centres) + JITTER * np.eye(len(centres)))

    def features(rows: slice) -> FloatArray:
        """Return the features V, (centres, rows), of the subset-of-regressors process, with kernel Vᵀ V."""
        values: FloatArray = solve_triangular(root, best.kernel(centres, points[rows]), lower=True, check_finite=False)
        return values

    blocks = [slice(k, k + BLOCK) for k in range(0, len(points), BLOCK)]
    precision, weights = best.noise_ratio * np.eye(len(centres)), np.zeros(len(centres))
    for rows in blocks:
        V = features(rows)
        precision += V * repeats[rows] @ V.T
        weights += V @ sums[rows]
    weights = cho_solve(cho_factor(precision, check_finite=False), weights, check_finite=False)
    return middle + scale * np.concatenate([weights @ features(rows) for rows in blocks])[group]
