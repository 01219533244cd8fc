"""Information gain of noisy observations of a Gaussian process."""

import math
from collections.abc import Callable

import numpy as np

from emsopt.errors import _validate
from emsopt.errors._types import ArrayLike, FloatArray, IntArray
from emsopt.errors import InputError

__all__ = ["information_gain"]


def information_gain(covariance: ArrayLike, noise_variance: float) -> float:
    r"""Return the information gain of noisy values at some points, ½ log det(I + K/σ²), in nats.

    ``covariance``, shape (T, T), is the prior covariance K of the function at the points, which may repeat.

    Examples
    --------
    >>> round(information_gain([[3.0]], 1.0), 4)  # ½ log 4
    0.6931
    """
    K = _validate.real_array(covariance, "covariance", (None, None))
    noise_variance = _validate.positive_number(noise_variance, "noise_variance")
    if K.shape[0] != K.shape[1] or not np.allclose(K, K.T):
        raise InputError(f"`covariance` must be square and symmetric; got shape {K.shape}.")
    try:
        factor = np.linalg.cholesky(np.eye(len(K)) + K / noise_variance)
    except np.linalg.LinAlgError as error:
        raise InputError("`covariance` must be positive semi-definite; it has a negative eigenvalue.") from error
    return float(np.log(np.diag(factor)).sum())


def greedy_choices(
    variance: FloatArray, column: Callable[[int], FloatArray], steps: int, noise_variance: float
) -> tuple[FloatArray, IntArray, FloatArray, FloatArray]:
    """Choose observations greedily: repeatedly observe the point of largest posterior variance.

    ``column`` takes the index of a point and returns its prior covariance with all n points. Returned are the
    information gain of each observation, nats, and the point observed, each (T,); a matrix F, (T, n), such that the
    posterior covariance is the prior covariance minus Fᵀ F; and the posterior variances, (n,).
    """
    factor = np.empty((steps, len(variance)))
    gains, chosen = np.empty(steps), np.empty(steps, dtype=np.intp)
    for t in range(steps):
        k = int(variance.argmax())
        gains[t], chosen[t] = 0.5 * math.log1p(variance[k] / noise_variance), k
        posterior = column(k) - factor[:t, k] @ factor[:t]
        factor[t] = posterior / math.sqrt(variance[k] + noise_variance)
        variance = np.maximum(variance - factor[t] ** 2, 0.0)
    return gains, chosen, factor, variance
