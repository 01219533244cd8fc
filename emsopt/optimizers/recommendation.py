"""Which observed candidate to recommend if values are noisy: the best by a Gaussian process of all values.

The best of many noisy values is too good: noise, more than the candidate, made it the best. The process fits the noise
and averages it over neighbours. `AskTell.recommend` uses `posterior_means` for deployments and `estimated_gains` for
points of a box, where the estimate may be a median.

Limits. If few scattered points differ by far more than the noise, as on steep functions of many inputs, the process may
take real differences for noise; the luckiest point is then the better one.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular

from .._types import FloatArray, IntArray
from ..surrogates.gaussian_process import GaussianProcess, fit
from .values import spread

if TYPE_CHECKING:
    from sklearn.gaussian_process.kernels import Kernel

NOISE_RATIOS = (0.01, 0.1, 0.3)  # starting values of the noise variance, relative to the variance of the process
NOISE_BOUNDS = (1e-6, 10.0)  # noise may exceed the differences between candidates
SPREAD = 0.3  # prior standard deviation of the log lengthscales around their common mean, against overfitting
MOST = 300  # largest number of observations to which hyperparameters are fitted, as a fit takes O(n³)
CENTRES, BLOCK, JITTER = 500, 2000, 1e-9
BAD = 0.25  # share of the gains, the worst, that are raised to the best of them: bad regions need no accurate model
CLEARLY = 0.8


def posterior_means(kernels: "Sequence[Kernel]", X: FloatArray | IntArray, y: FloatArray) -> FloatArray:
    """Return the posterior mean of a Gaussian process at the observed points themselves, shape (n,).

    Kernel and noise have the largest likelihood, for at most ``MOST`` rows, that is reached from the given kernels, one
    for each of ``NOISE_RATIOS``. Observations of one point are replaced by their mean, with the noise variance divided
    by their number, which changes no posterior mean (Lemma B.1 of the BOKE paper). With more than ``CENTRES`` distinct
    points, the mean is that of the subset-of-regressors approximation (Quiñonero-Candela and Rasmussen 2005).
    """
    if np.ptp(y) == 0:
        return y.copy()
    return _smooth(_likeliest(kernels, X, y), X, y)


def estimated_gains(kernels: "Sequence[Kernel]", X: FloatArray, gains: FloatArray) -> FloatArray:
    """Return an estimate of each noisy gain at points of the unit cube, shape (n,), by one of two processes.

    The first is a process of the gains g. The second is one of -log(s + max g - g), where s is the distance of the best
    gain from the upper quartile; its mean is transformed back. It resolves small differences near the top of a function
    that falls by orders of magnitude elsewhere. It is used if it predicts left-out gains clearly better: if the sum of
    its squared errors is below ``CLEARLY`` times the other's. Errors are those of normal scores, negative ones raised
    to 0. Both raise the worst gains first, as bad regions need no accurate model.
    """
    from scipy.special import ndtri
    from scipy.stats import rankdata

    cut, top = np.maximum(gains, np.quantile(gains, BAD)), gains.max()
    scale = top - np.quantile(gains, 0.75)
    if scale == 0:
        return posterior_means(kernels, X, cut)
    part = _part(gains)
    scores = ndtri((rankdata(gains[part]) - 0.5) / len(part))  # - 0.5, as quantiles 0 and 1 are infinite

    def error(process: GaussianProcess) -> float:
        order = np.argsort(process.residuals, kind="stable")  # `interp` needs ascending residuals
        predicted = np.interp(process.left_out, process.residuals[order], scores[order])
        return float(((np.maximum(predicted, 0) - np.maximum(scores, 0)) ** 2).sum())

    logarithms = -np.log(scale + top - cut)
    plain, warped = (_likeliest(kernels, X, y) for y in (cut, logarithms))
    if error(warped) < CLEARLY * error(plain):
        estimates: FloatArray = scale + top - np.exp(-_smooth(warped, X, logarithms))
        return estimates
    return _smooth(plain, X, cut)


def _part(y: FloatArray) -> IntArray:
    """Return the rows to which hyperparameters are fitted."""
    return np.linspace(0, len(y) - 1, min(len(y), MOST)).astype(int)  # evenly spread over the run, not the latest


def _likeliest(kernels: "Sequence[Kernel]", X: FloatArray | IntArray, y: FloatArray) -> GaussianProcess:
    """Return the process of largest likelihood, of standardised values and conditioned on a part of them."""
    part, values = _part(y), (y - y.mean()) / spread(y)
    fits = [
        fit(kernel, X[part], values[part], noise_ratio=ratio, noise_ratio_bounds=NOISE_BOUNDS, spread=SPREAD)
        for kernel, ratio in zip(kernels, NOISE_RATIOS, strict=True)
    ]
    return max(fits, key=lambda process: process.log_likelihood)


def _smooth(best: GaussianProcess, X: FloatArray | IntArray, y: FloatArray) -> FloatArray:
    """Return the posterior means of `posterior_means` with the hyperparameters of a process."""
    middle, scale = y.mean(), spread(y)
    y = (y - middle) / scale
    points, group, repeats = np.unique(X, axis=0, return_inverse=True, return_counts=True)
    group = group.ravel()  # some versions of numpy return a column
    sums = np.bincount(group, y)
    centres = points[np.linspace(0, len(points) - 1, min(len(points), CENTRES)).astype(int)]
    root = np.linalg.cholesky(best.kernel(centres) + JITTER * np.eye(len(centres)))

    def features(rows: slice) -> FloatArray:
        """Return functions of which the approximate process is a sum with independent standard normal factors."""
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
