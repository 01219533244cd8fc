r"""Choose p places that minimise a quadratic function.

Problem (8) of "Optimizing Server Locations in Spatial Queues":

    minimise xᵀA x + bᵀx  over x in {0, 1}^N with Σ x_i = p,  A symmetric with zero diagonal.

``"swap"``        tabu search from 40 starts; no bound. The default: lowest values in the least time
``"annealing"``   swaps from 20 random starts by simulated annealing; no bound
``"relaxation"``  the papers' Algorithm 1: minimum cuts; gives a lower bound and thus a gap

A place may hold several units: x_k then is the number of units at place k, at most ``capacities[k]``, and A_kk is the
cost of each ordered pair of different units at this place. The function is then xᵀA x + (b - diag A)ᵀx. At a place for
one unit the diagonal has no effect: include a term A_kk x_k² in b.

The terminal capacities of the papers' cut omit the linear terms Σ_j A⁻_ij; `minimum_cut` includes them. For cuts with
exactly p places the papers cite Chen et al. (2016), who prove this problem NP-complete; here a multiplier leads to
about p places, and a greedy repair to p.

References
----------
Chen, W. et al. (2016). On size-constrained minimum s-t cut problems and others. Theoretical Computer Science 609.
Ito, S. and Fujimaki, R. (2016). Large-scale price optimization via network flow. NeurIPS 29.
Glover, F. and Laguna, M. (1997). Tabu Search. Kluwer.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numba import njit

from ...errors import InputError, _validate
from ...errors._types import ArrayLike, FloatArray, IntArray, Rng

RESTARTS = 20  # annealing walks: a single one may end in a poor local minimum
TOLERANCE = 1e-9  # gap at which the relaxation stops, relative to the sum of the absolute terms, which bounds rounding


class QuadraticMinimum(NamedTuple):
    """Best x, (N,), that `minimize_quadratic` found, its value, and a lower bound on all values, or -inf if unknown."""

    x: IntArray
    value: float
    lower_bound: float

    @property
    def gap(self) -> float:
        """Value minus lower bound: the most by which the value may exceed the minimum; infinite without a bound."""
        return self.value - self.lower_bound


def minimize_quadratic(
    A: ArrayLike,
    b: ArrayLike,
    units: int,
    *,
    floors: ArrayLike | None = None,
    capacities: ArrayLike | None = None,
    method: str = "swap",
    rng: Rng = None,
    **options: Any,
) -> QuadraticMinimum:
    """Minimise xᵀA x + (b - diag A)ᵀx over allocations x of ``units`` units to N places.

    x_i is the number of units at place i, from ``floors`` (default 0) to ``capacities`` (default 1). The module's notes
    describe the diagonal of A and the methods. A is made symmetric.

    With "swap", ``options`` are ``starts`` (40) and ``steps``, the swaps in a row without improvement that end a start
    (2 N).
    """
    solve = _METHODS[_validate.choice(method, "method", tuple(_METHODS))]
    A, b = np.asarray(A, dtype=float), np.asarray(b, dtype=float)
    A = np.ascontiguousarray((A + A.T) / 2)  # xᵀA x depends on the symmetric part only
    low = np.zeros(len(b), int) if floors is None else np.asarray(floors, int)
    most = np.ones(len(b), int) if capacities is None else np.asarray(capacities, int)
    if not low.sum() <= units <= most.sum():
        raise InputError(f"`units` must be {low.sum()} (sum of floors) to {most.sum()} (of capacities); got {units}.")
    x, bound = solve(A, b, units, low, np.minimum(most, units), _validate.generator(rng), **options)
    total = quadratic_value(A, b, x)
    return QuadraticMinimum(x, total, min(bound, total))


def quadratic_value(A: FloatArray, b: FloatArray, x: IntArray) -> float:
    """Return xᵀA x + (b - diag A)ᵀx for ``x`` units at each place, shape (N,)."""
    return float(x @ A @ x - np.diag(A) @ x + b @ x)


def _minimize_by_swaps(
    A: FloatArray,
    b: FloatArray,
    units: int,
    floors: IntArray,
    capacities: IntArray,
    rng: np.random.Generator,
    starts: int = 40,
    steps: int | None = None,
) -> tuple[IntArray, float]:
    """Minimise by `tabu_search`; return the best x, (N,), and -inf, because there is no lower bound."""
    patience = 2 * len(b) if steps is None else steps
    return tabu_search(A, b, units, floors, capacities, rng.random((starts, len(b))), patience), -np.inf


def _minimize_by_annealing(
    A: FloatArray, b: FloatArray, units: int, floors: IntArray, capacities: IntArray, rng: np.random.Generator
) -> tuple[IntArray, float]:
    """Minimise by ``RESTARTS`` walks of `anneal`, of 100 N steps each; return the best x, (N,), and -inf."""
    slots = np.repeat(np.arange(len(b)), capacities - floors)  # each place once per unit it can still hold
    moving = units - floors.sum()
    found = []
    for _ in range(RESTARTS):
        order = rng.permutation(slots)
        found.append(anneal(A, b, floors, order[:moving], order[moving:], rng.random((100 * len(b), 3))))
    return min(found, key=lambda x: quadratic_value(A, b, x)), -np.inf


def _minimize_by_cuts(
    A: FloatArray, b: FloatArray, units: int, floors: IntArray, capacities: IntArray, rng: np.random.Generator
) -> tuple[IntArray, float]:
    """Minimise by `_relax_and_cut`, with a place for each unit that one can hold; return x, (N,), and a lower bound."""
    place = np.repeat(np.arange(len(b)), capacities - floors)
    pairs = A[np.ix_(place, place)].copy()
    np.fill_diagonal(pairs, 0.0)
    p = units - int(floors.sum())
    if p in (0, len(place)):  # nothing to choose
        taken, bound = np.full(len(place), p > 0), np.inf
    else:
        taken, bound = _relax_and_cut(pairs, (b + 2 * A @ floors)[place], p)
    x = floors + np.bincount(place, weights=taken, minlength=len(b)).astype(int)
    return x, bound + quadratic_value(A, b, floors)


# -- the papers' Algorithm 1 --


def minimum_cut(A: ArrayLike, b: ArrayLike) -> tuple[IntArray, float]:
    """Minimise xᵀA x + bᵀx over all x in {0, 1}^N, for A with no positive entry off its diagonal.

    With x_i = 1 on the sink's side, xᵀA x = Σ_i x_i Σ_j A_ij + Σ_ij |A_ij| x_i (1 - x_j): the edge between i and j
    carries |A_ij|, and the terminal edge of i the linear cost b_i + Σ_j A_ij, from the source if positive and to
    the sink if negative.

    A, (N, N), is symmetric, and its diagonal is ignored. Return x, (N,), and a lower bound, which is below the minimum
    only by the rounding to integer capacities (about 1e-9 N² times the largest sum of capacities).
    """
    from scipy.sparse.csgraph import breadth_first_order, maximum_flow

    b = np.asarray(b, float)
    edges = -np.asarray(A, float)
    edges = edges - np.diag(np.diag(edges))
    if (edges < 0).any():
        raise InputError(f"`A` must have no positive entry off its diagonal; got {-edges.min():g}.")
    linear = b - edges.sum(axis=1)
    n = len(b)
    total = max(np.maximum(linear, 0).sum(), -np.minimum(linear, 0).sum(), edges.sum(axis=1).max())
    if total == 0:
        return np.zeros(n, int), 0.0
    scale = 2**30 / total  # so that sums of integer capacities stay below the range of int32
    graph = np.zeros((n + 2, n + 2), np.int32)  # places, source, sink; rounding down keeps the bound valid
    graph[:n, :n] = np.floor(scale * edges)
    graph[n, :n] = np.floor(scale * np.maximum(linear, 0))
    graph[:n, n + 1] = np.floor(scale * np.maximum(-linear, 0))
    capacity = sp.csr_array(graph)
    flow = maximum_flow(capacity, n, n + 1)
    left = sp.csr_array(capacity - flow.flow)
    left.eliminate_zeros()  # saturated edges are 0 and must not be followed
    reached = breadth_first_order(left, n, return_predecessors=False)
    x = np.ones(n + 2, int)
    x[reached] = 0  # what the source still reaches is on its side of the cut
    return x[:n], flow.flow_value / scale + np.minimum(linear, 0).sum()


def _relax_and_cut(A: FloatArray, b: FloatArray, p: int) -> tuple[IntArray, float]:
    """Minimise over p places by submodular relaxation and minimum cuts; return x, (N,), and a lower bound.

    Where A_ij > 0, x_i x_j is replaced by its linear lower bound Γ_ij (x_i + x_j - 1), equation (9) of the paper, with
    Γ_ij in [0, 1]. The constraint Σ x = p is replaced by a multiplier λ. Each cut gives a lower bound for its Γ and λ,
    and x*, which is repaired to p units and polished by swaps. Γ descends along the gradient A⁺_ij (x*_i + x*_j - 1) of
    the papers' loss, and λ follows Σ x* - p, both by Polyak's step length.
    """
    plus, minus = np.maximum(A, 0), np.minimum(A, 0)
    gamma = np.ones_like(A)  # 1: the bound (9) is tight where both places are taken
    zero, one = np.zeros(len(b), int), np.ones(len(b), int)
    # Initial price per unit: with it, p places reduce the value if the other places are taken at random.
    worth = np.sort(b + 2 * p / len(b) * A.sum(axis=1))
    multiplier = -(worth[p - 1] + worth[p]) / 2
    spread = np.abs(A).sum() + np.abs(b).sum()
    best, best_value, bound, pace, waited = one, np.inf, -np.inf, 1.0, 0
    for _ in range(60):  # most minimum cuts of a relaxation
        relaxed = plus * gamma
        # Γ (x_i + x_j - 1) of both orders: 2 Σ_j linear, and minus Σ constant below
        x, least = minimum_cut(minus, b + 2 * relaxed.sum(axis=1) + multiplier)
        least -= relaxed.sum() + multiplier * p
        feasible = _repair(A, b, x, p)
        feasible = descend_by_swaps(A, b + 2 * A @ feasible, feasible, zero, one, 0)
        total = quadratic_value(A, b, feasible)
        if total < best_value:
            best, best_value = feasible, total
        waited = 0 if least > bound else waited + 1
        bound = max(bound, least)
        if waited == 5:  # cuts without a better bound
            pace, waited = pace / 2, 0
        slope = plus * (x[:, None] + x - 1)
        excess = x.sum() - p
        steepness = (slope**2).sum() + excess**2
        if best_value - bound <= TOLERANCE * spread or steepness == 0:
            break
        step = pace * (best_value - least) / steepness  # Polyak's step: the gap over the squared slope
        gamma = np.clip(gamma + step * slope, 0, 1)
        multiplier += step * excess
    return best, min(bound, best_value)


def _repair(A: FloatArray, b: FloatArray, x: IntArray, p: int) -> IntArray:
    """Return x, (N,), after adding the cheapest or removing the most expensive place until exactly p are chosen."""
    x = x.copy()
    cost = b + 2 * A @ x
    while x.sum() != p:
        if x.sum() < p:
            k, sign = np.where(x == 0, cost, np.inf).argmin(), 1
        else:
            k, sign = np.where(x == 1, cost, -np.inf).argmax(), -1
        x[k] += sign
        cost += 2 * sign * A[k]
    return x


_METHODS: dict[str, Callable[..., tuple[IntArray, float]]] = {
    "swap": _minimize_by_swaps,
    "annealing": _minimize_by_annealing,
    "relaxation": _minimize_by_cuts,
}


LAST_TEMPERATURE = 1e-3  # relative to the first: at the end, hardly any rise is accepted


@njit(cache=True, nogil=True)
def tabu_search(
    A: FloatArray, b: FloatArray, units: int, floors: IntArray, capacities: IntArray, keys: FloatArray, patience: int
) -> IntArray:
    """Minimise `quadratic_value` by tabu search from several starts; return the best units per place, (N,).

    Each start is built greedily from costs perturbed by a row of ``keys``, random numbers of shape (starts, N): the
    first not at all, and every second one so strongly that it is random.
    """
    best, best_value = floors.copy(), np.inf
    spread = np.abs(A).sum() / len(b) + np.abs(b).sum() / len(b)
    for s in range(len(keys)):
        x = floors.copy()
        cost = b + 2 * (A @ x.astype(np.float64))
        disturbance = keys[s] * spread * (1e6 if s % 2 == 1 else 1.0 if s > 0 else 0.0)  # 1e6 drowns costs
        for _ in range(units - floors.sum()):
            k, least = -1, np.inf
            for i in range(len(b)):
                if x[i] < capacities[i] and cost[i] + disturbance[i] < least:
                    k, least = i, cost[i] + disturbance[i]
            x[k] += 1
            cost += 2 * A[k]
        reached = descend_by_swaps(A, cost, x, floors, capacities, patience)
        counts = reached.astype(np.float64)
        total = float(counts @ (A @ counts) + (b - np.diag(A)) @ counts)
        if total < best_value:
            best, best_value = reached, total
    return best


@njit(cache=True, nogil=True)
def descend_by_swaps(
    A: FloatArray, cost: FloatArray, x: IntArray, floors: IntArray, capacities: IntArray, patience: int
) -> IntArray:
    """Swap units until ``patience`` steps in a row bring no new best allocation; return the best one, (N,).

    A step relocates the unit whose move lowers the value most or raises it least, and bars both places for some steps.
    With ``patience`` 0, only swaps that lower the value are made. ``cost``, b + 2 A x, is the change of the value for
    one more unit at each place; it and ``x`` are changed in place.
    """
    n = len(x)
    better = 1e-10 * (np.abs(cost).max() + np.abs(A).max())  # well above the sum of rounding errors
    best, now, least = x.copy(), 0.0, 0.0
    free_from = np.zeros(n, np.int64)  # or the search would undo its last swaps
    step, last_better = 0, 0
    while step - last_better <= patience and step < 100 * (n + patience):
        step += 1
        move_i, move_j, change = -1, -1, np.inf
        for i in range(n):
            if x[i] <= floors[i]:
                continue
            gain = cost[i] - 2 * A[i, i]  # a unit is not paired with itself
            for j in range(n):
                if j == i or x[j] >= capacities[j]:
                    continue
                d = cost[j] - gain - 2 * A[i, j]
                barred = free_from[i] > step or free_from[j] > step
                # aspiration: a barred swap is allowed if it gives the best value of all
                if d < change and (not barred or now + d < least - better):
                    move_i, move_j, change = i, j, d
        if move_i < 0 or (patience == 0 and change > -better):
            break
        x[move_i] -= 1
        x[move_j] += 1
        cost += 2 * (A[move_j] - A[move_i])
        now += change
        free_from[move_i] = step + 4 + (step * 7 + move_i) % 7  # varied, against cycles
        free_from[move_j] = step + 2 + (step * 5 + move_j) % 4
        if now < least - better:
            best, least, last_better = x.copy(), now, step
    return best


@njit(cache=True, nogil=True)
def anneal(
    A: FloatArray, b: FloatArray, floors: IntArray, filled: IntArray, empty: IntArray, chances: FloatArray
) -> IntArray:
    """Minimise `quadratic_value` by simulated annealing; return the best units per place, (N,).

    The walk starts from ``floors`` plus one unit at each entry of ``filled``, the place of each unit that may move.
    ``empty`` has the place of each free slot; both are overwritten. Moves are accepted by Metropolis's rule; the
    temperature falls geometrically from the mean change of a swap to ``LAST_TEMPERATURE`` times it. ``chances`` are
    random numbers, shape (steps, 3).
    """
    x = floors.copy()
    for i in filled:
        x[i] += 1
    best = x.copy()
    if len(filled) == 0 or len(empty) == 0:
        return best
    cost = b + 2 * (A @ x.astype(np.float64))  # updated by moves, so that a change costs O(1)
    first = 0.0
    for i in filled:
        for j in empty:
            first += abs(_swap_change(A, cost, i, j)) / (len(filled) * len(empty))
    rounding = 1e-10 * (np.abs(cost).max() + np.abs(A).max())
    now, least = 0.0, 0.0
    for k in range(len(chances)):
        temperature = first * LAST_TEMPERATURE ** (k / len(chances))
        s, t = int(chances[k, 0] * len(filled)), int(chances[k, 1] * len(empty))
        i, j = filled[s], empty[t]
        change = _swap_change(A, cost, i, j)
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
def _swap_change(A: FloatArray, cost: FloatArray, i: int, j: int) -> float:
    """Return the change of `quadratic_value` if one unit moves from place i to place j."""
    return 0.0 if i == j else cost[j] - cost[i] + 2 * A[i, i] - 2 * A[i, j]
