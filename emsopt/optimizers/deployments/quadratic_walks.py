"""Local searches for the allocation of units to places that minimises a quadratic function (see `binary_quadratic`).

The change of the value for one more unit at each place is kept up to date. A step of tabu search then takes time
O(p (N - p)), and a step of annealing O(1), or O(N) if it is accepted.
"""

import numpy as np
from numba import njit

from ..._types import FloatArray, IntArray

COOLEST = 1e-3  # last temperature divided by the first


@njit(cache=True, nogil=True)
def search(
    A: FloatArray,
    b: FloatArray,
    units: int,
    floors: IntArray,
    capacities: IntArray,
    keys: FloatArray,
    patience: int,
) -> IntArray:
    """Return the best allocation that tabu search (`descend`) reaches from all starts, as units per place, shape (N,).

    Each start is built greedily from costs perturbed by a row of ``keys``, random numbers of shape (starts, N): the
    first not at all, and every second one so strongly that it is random. ``patience`` is as in `descend`.
    """
    best, best_value = floors.copy(), np.inf
    spread = np.abs(A).sum() / len(b) + np.abs(b).sum() / len(b)
    for s in range(len(keys)):
        x = floors.copy()
        cost = b + 2 * (A @ x.astype(np.float64))  # of one more unit at each place
        disturbance = keys[s] * spread * (1e6 if s % 2 == 1 else 1.0 if s > 0 else 0.0)
        for _ in range(units - floors.sum()):
            k, least = -1, np.inf
            for i in range(len(b)):
                if x[i] < capacities[i] and cost[i] + disturbance[i] < least:
                    k, least = i, cost[i] + disturbance[i]
            x[k] += 1
            cost += 2 * A[k]
        reached = descend(A, cost, x, floors, capacities, patience)
        counts = reached.astype(np.float64)
        total = float(counts @ (A @ counts) + (b - np.diag(A)) @ counts)
        if total < best_value:
            best, best_value = reached, total
    return best


@njit(cache=True, nogil=True)
def descend(
    A: FloatArray, cost: FloatArray, x: IntArray, floors: IntArray, capacities: IntArray, patience: int
) -> IntArray:
    """Swap until ``patience`` steps bring no improvement; return the best allocation found.

    With ``patience`` 0, only swaps that lower the value are made. ``x`` and ``cost`` are changed in place.

    ``cost``, the change of the value for one more unit at each place, is kept at b + 2 A x. Moving a unit from i to j
    changes the value by cost_j - (cost_i - 2 A_ii) - 2 A_ij.
    """
    n = len(x)
    better = 1e-10 * (np.abs(cost).max() + np.abs(A).max())  # well above the sum of rounding errors
    best, now, least = x.copy(), 0.0, 0.0
    free_from = np.zeros(n, np.int64)  # number of the step from which on each place may change again
    step, last_better = 0, 0
    while step - last_better <= patience and step < 100 * (n + patience):
        step += 1
        move_i, move_j, change = -1, -1, np.inf
        for i in range(n):
            if x[i] <= floors[i]:
                continue
            gain = cost[i] - 2 * A[i, i]
            for j in range(n):
                if j == i or x[j] >= capacities[j]:
                    continue
                d = cost[j] - gain - 2 * A[i, j]
                barred = free_from[i] > step or free_from[j] > step
                if d < change and (not barred or now + d < least - better):
                    move_i, move_j, change = i, j, d
        if move_i < 0 or (patience == 0 and change > -better):
            break
        x[move_i] -= 1
        x[move_j] += 1
        cost += 2 * (A[move_j] - A[move_i])
        now += change
        free_from[move_i] = step + 4 + (step * 7 + move_i) % 7
        free_from[move_j] = step + 2 + (step * 5 + move_j) % 4
        if now < least - better:
            best, least, last_better = x.copy(), now, step
    return best


@njit(cache=True, nogil=True)
def anneal(
    A: FloatArray, b: FloatArray, floors: IntArray, filled: IntArray, empty: IntArray, chances: FloatArray
) -> IntArray:
    """Anneal from ``floors`` and a unit more at each place in ``filled``; return the best allocation found, shape (N,).

    ``filled`` and ``empty`` name places once per unit that may move and per unit for which there is room; they are
    overwritten. A step moves a unit from a ``filled`` to an ``empty`` place and is accepted if the value does not rise,
    else with Metropolis's probability; the temperature falls geometrically from the mean change of a swap to `COOLEST`
    of it. ``chances``, shape (steps, 3), are random numbers.
    """
    x = floors.copy()
    for i in filled:
        x[i] += 1
    best = x.copy()
    if len(filled) == 0 or len(empty) == 0:
        return best
    cost = b + 2 * (A @ x.astype(np.float64))  # of one more unit at each place
    first = 0.0
    for i in filled:
        for j in empty:
            first += abs(_change(A, cost, i, j)) / (len(filled) * len(empty))
    rounding = 1e-10 * (np.abs(cost).max() + np.abs(A).max())
    now, least = 0.0, 0.0
    for k in range(len(chances)):
        temperature = first * COOLEST ** (k / len(chances))
        s, t = int(chances[k, 0] * len(filled)), int(chances[k, 1] * len(empty))
        i, j = filled[s], empty[t]
        change = _change(A, cost, i, j)
        if i == j or (change > 0 and chances[k, 2] >= np.exp(-change / temperature)):
            continue
        filled[s], empty[t] = j, i
        x[i] -= 1
        x[j] += 1
        cost += 2 * (A[j] - A[i])
        now += change
        if now < least - rounding:
            best, least = x.copy(), now
    return best


@njit(cache=True, nogil=True)
def _change(A: FloatArray, cost: FloatArray, i: int, j: int) -> float:
    """Return the change of the value if a unit moves from place i to place j; a unit is not paired with itself."""
    return 0.0 if i == j else cost[j] - cost[i] + 2 * A[i, i] - 2 * A[i, j]
