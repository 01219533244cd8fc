"""Prepare observed values for a model: standardise them and clip bad ones; expected improvement on them.

The improvement is that of a normal value below a goal, equation (18) of "Optimizing Server Locations in Spatial
Queues". Far from the goal it underflows, and its slopes with it; its logarithm does not (Ament et al. 2023).
"""

import numpy as np

from .._types import FloatArray


def standardized(gains: FloatArray) -> FloatArray:
    """Standardise values to mean 0 and standard deviation 1. If all values are equal, return zeros."""
    if gains.max() == gains.min():  # the computed standard deviation of equal values may be a rounding error
        return np.zeros(len(gains))
    scaled = np.ldexp(gains, -int(np.frexp(np.abs(gains).max())[1]))  # sums of the largest floats would overflow
    return (scaled - scaled.mean()) / scaled.std()


def spread(gains: FloatArray) -> float:
    """Return the standard deviation, also of values so small or large that their squares leave the range of floats."""
    power = int(np.frexp(np.abs(gains).max())[1])
    return float(np.ldexp(np.ldexp(gains, -power).std(), power))


def clipped(X: FloatArray, gains: FloatArray) -> FloatArray:
    """Raise gains of points on the unit cube below the box's median to it; return them, shape (t,).

    The median is weighted by each point's distance to its nearest neighbour, so that values above it cover half of the
    box: near a known peak there are many points, whose plain median would hide the slopes of other peaks.
    """
    order = np.argsort(gains, kind="stable")
    covered = np.cumsum(_to_nearest(X)[order])
    median = gains[order[np.searchsorted(covered, covered[-1] / 2)]]
    return np.maximum(gains, median)


def normal_scores(X: FloatArray, gains: FloatArray) -> FloatArray:
    """Return normal scores of the gains, shape (t,): the standard normal quantiles of their ranks.

    A rank is the share of the box where gains are lower, plus half of that where they are equal; points weigh as in
    `clipped`. An increasing function of the gains has the same scores.
    """
    from scipy.special import ndtri

    _, group = np.unique(gains, return_inverse=True)
    shares = np.bincount(group, _to_nearest(X) + 1e-9)  # 1e-9 gives repeated points some weight
    scores: FloatArray = ndtri((np.cumsum(shares) - shares / 2) / shares.sum())[group]
    return scores


def _to_nearest(X: FloatArray) -> FloatArray:
    """Return the distance of each point to its nearest neighbour, shape (t,)."""
    distances = np.linalg.norm(X[:, None] - X, axis=2)
    np.fill_diagonal(distances, np.inf)
    return distances.min(axis=1)


def log_expected_improvement(goal: float | FloatArray, mean: FloatArray, deviation: FloatArray) -> FloatArray:
    """Return the logarithm of expected improvement (18) below ``goal``, accurate where (18) itself underflows."""
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
