"""Observed values made ready for a model: standardised, and bad ones clipped."""

import numpy as np

from .._types import FloatArray


def standardized(gains: FloatArray) -> FloatArray:
    """Standardise values to mean 0 and standard deviation 1. If all values are equal, return zeros."""
    if np.ptp(gains) == 0:  # the computed standard deviation of equal values may be a rounding error
        return np.zeros(len(gains))
    return (gains - gains.mean()) / spread(gains)


def spread(gains: FloatArray) -> float:
    """Return the standard deviation, also of values so small or large that their squares leave the range of floats."""
    power = int(np.frexp(np.abs(gains).max())[1])
    return float(np.ldexp(np.ldexp(gains, -power).std(), power))


def clipped(X: FloatArray, gains: FloatArray) -> FloatArray:
    """Raise values below the box's median to it; return them, shape (t,).

    The median is weighted by each point's distance to its nearest neighbour. Values above it therefore cover roughly
    half of the box rather than half of the points. Near a known peak there are many points; an unweighted median would
    be so high that the slopes of other peaks would be lost.

    Parameters
    ----------
    X : ndarray, shape (t, d)
        Observed points on the unit cube.
    gains : ndarray, shape (t,)
        Their values; larger is better.
    """
    order = np.argsort(gains, kind="stable")
    room = np.cumsum(_room(X)[order])
    median = gains[order[np.searchsorted(room, room[-1] / 2)]]
    return np.maximum(gains, median)


def normal_scores(X: FloatArray, gains: FloatArray) -> FloatArray:
    """Return the normal quantile of the share of the box with values below each gain, shape (t,).

    Shares are by distance to the nearest neighbour, as in `clipped`; a score of 0 is the box's median. Scores do not
    change if an increasing function is applied to the gains.
    """
    from scipy.special import ndtri

    order = np.argsort(gains, kind="stable")
    room = _room(X)[order] + 1e-9
    below = np.cumsum(room) - room / 2
    scores = np.empty(len(gains))
    scores[order] = ndtri(below / room.sum())
    return scores


def _room(X: FloatArray) -> FloatArray:
    """Return the distance of each point to its nearest neighbour, shape (t,)."""
    distances = np.linalg.norm(X[:, None] - X, axis=2)
    np.fill_diagonal(distances, np.inf)
    return distances.min(axis=1)
