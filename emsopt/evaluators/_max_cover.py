"""Maximal covering on sparse patterns."""

import numpy as np

from .._types import FloatArray, IntArray
from ._cover_patterns import Patterns, distinct, integer_program
from ._p_median import common_divisor

SCALE = 1e4  # of the objective: HiGHS stops at a gap of 1e-6, which is then 1e-10 of all calls
Limits = tuple[IntArray, IntArray]


def maximise(
    reach: Patterns, weights: FloatArray, q: float, limits: Limits, units: int, end: float
) -> tuple[IntArray, float]:
    """Maximise Σ_j w_j (1 - q^n_j)."""
    import scipy.sparse as sp
    from scipy.optimize import LinearConstraint

    floors, capacities = limits
    first, which = distinct(reach.T.tocsr())
    total = weights.sum()
    merged = np.bincount(which, weights=weights) / total
    some = np.flatnonzero(merged)
    patterns, merged = reach[:, first[some]], merged[some]
    worth = (1 - q) * q ** np.arange(units)
    worth = worth[worth > 0]
    n, m = patterns.shape
    layers = m * len(worth)
    least = 0.999 * common_divisor(merged) if q == 0 else 0.0
    in_reach = sp.hstack([-patterns.T.astype(float), sp.kron(np.ones((1, len(worth))), sp.eye_array(m))])
    counted = np.r_[np.ones(n), np.zeros(layers)]
    rows = [LinearConstraint(in_reach, ub=0), LinearConstraint(counted, units, units)]
    costs = -SCALE * np.r_[np.zeros(n), np.kron(worth, merged)]
    low, high = np.r_[floors, np.zeros(layers)], np.r_[capacities, np.ones(layers)]
    x, bound, settled = integer_program(costs, rows, counted, low, high, end, least)
    found = [greedy(patterns, merged, q, floors, capacities, units)] + (
        [] if x is None else [np.rint(x[:n]).astype(int)]
    )
    counts = max(found, key=lambda counts: merged @ (1 - q ** (patterns.T @ counts)))
    if settled:
        return counts, -np.inf
    return counts, total * min(-bound / SCALE, merged @ (1 - q ** (patterns.T @ np.full(n, units))))


def greedy(
    reach: Patterns, weights: FloatArray, q: float, floors: IntArray, capacities: IntArray, units: int
) -> IntArray:
    """Return how many units each group has, shape (G,), if they are added one by one where they gain most."""
    counts = floors.copy()
    for _ in range(units - counts.sum()):
        gains = reach @ (weights * np.power(q, reach.T @ counts))
        counts[np.argmax(np.where(counts < capacities, gains, -1.0))] += 1
    return counts
