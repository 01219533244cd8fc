"""Which observed candidate to recommend if values are noisy: the one with the best posterior mean of a Gaussian process.

The best of many noisy values is too good: noise, more than the candidate, made it the best. The process fits the noise
and averages it over neighbours. `AskTell.recommend` uses `posterior_means`. Repeating the leading candidates with a part
of the budget did not improve the recommendation on training functions (``benchmarks/RESULTS.md``), so runs do not.

Limits. If few scattered points differ by far more than the noise, as on steep functions of many inputs, the process may
take real differences for noise; the luckiest point is then the better one.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular

from .._types import FloatArray, IntArray
from ..surrogates.gaussian_process import fit
from ._values import spread

if TYPE_CHECKING:
    from sklearn.gaussian_process.kernels import Kernel

NOISE_RATIOS = (0.01, 0.1, 0.3)  # starting values of the noise variance, relative to the variance of the process
NOISE_BOUNDS = (1e-6, 10.0)
SPREAD = 0.3  # standard deviation of the logarithms of a kernel's lengthscales around their common mean, as a prior
MOST = 300  # largest number of observations to which hyperparameters are fitted
CENTRES, BLOCK, JITTER = 500, 2000, 1e-9


def posterior_means(kernels: "Sequence[Kernel]", X: FloatArray | IntArray, y: FloatArray) -> FloatArray:
    """Return the posterior mean of a Gaussian process at the observed points themselves, shape (n,).

    Kernel and noise have the largest likelihood that is reached from the given kernels. Observations of one point are
    replaced by their mean, with the noise variance divided by their number, which changes no posterior mean (Lemma B.1 of
    the BOKE paper). With more than ``CENTRES`` distinct points, the mean is that of the subset-of-regressors approximation
    (Quiñonero-Candela and Rasmussen 2005), a sum of kernels around ``CENTRES`` of them that is fitted to all. Then time and
    memory grow in proportion to n.

    Parameters
    ----------
    kernels : sequence of Kernel
        Starting points of the fit, one for each of ``NOISE_RATIOS``.
    X : ndarray, shape (n, N)
        If there are more than ``MOST`` rows, hyperparameters are fitted to as many of them, evenly spaced in order.
    y : ndarray, shape (n,)
        Noisy values minus the prior mean.
    """
    if np.ptp(y) == 0:
        return y.copy()
    middle, scale = y.mean(), spread(y)
    y = (y - middle) / scale
    part = np.linspace(0, len(y) - 1, min(len(y), MOST)).astype(int)
    fits = [
        fit(kernel, X[part], y[part], noise_ratio=ratio, noise_ratio_bounds=NOISE_BOUNDS, spread=SPREAD)
        for kernel, ratio in zip(kernels, NOISE_RATIOS, strict=True)
    ]
    best = max(fits, key=lambda process: process.log_likelihood)
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
