r"""Minimise a quadratic function of which p places to take: (8) of "Optimizing Server Locations in Spatial Queues".

    minimise xᵀA x + bᵀx  over x in {0, 1}^N with Σ x_i = p,  A symmetric with zero diagonal.

Three ways, each able to keep some places taken or free:

=======================  ======================================================================================
`swap_search`            swaps from many starts, walking on over local minima; no bound. The default
`submodular_relaxation`  the papers' Algorithm 1: minimum cuts, with a lower bound and so a gap
`exact`                  mixed-integer program, proven; about a second at 12 dense places, far more from 20 on
=======================  ======================================================================================

The default is the best by measurement (``benchmarks/sparbl.py``; 36 random instances, N = 20 to 50, 10 to 100 % of
the pairs nonzero, p/N = 0.2 to 0.5): swaps reach the best known on 36 in 9 ms of CPU (27 at most), Algorithm 1 on 29
in 77 ms, up to 2.8 % above on the rest. Its gap is small where most pairs are zero or negative, and about half the
value in the median.

A place may hold several units: x then counts them, ``room`` says how many, and the diagonal of A becomes the cost
A_kk between two units at place k, each ordered pair of different units counted once. With room for one unit a
diagonal plays no part: a term A_kk x_k² belongs into b.

The papers' cut omits the linear terms Σ_j A⁻_ij of the terminal capacities; `minimum_cut` has them.

References
----------
Ito, S. and Fujimaki, R. (2016). Large-scale price optimization via network flow. NeurIPS 29.
Glover, F. and Laguna, M. (1997). Tabu Search. Kluwer.
"""

from dataclasses import dataclass

import numpy as np
from numba import njit
from scipy.sparse import csr_array

from ... import _validate
from ...errors import ConvergenceError, InputError

CUT_RANGE = 2**30  # integer capacities of the flow solver add up to this


@dataclass(frozen=True, eq=False, repr=False)
class QuadraticMinimum:
    """What was found.

    Attributes
    ----------
    x : ndarray of int, shape (N,)
        Units at each place.
    value : float
        xᵀA x + bᵀx there.
    lower_bound : float
        No feasible x is below this; -inf where the method gives none.
    method : str
    """

    x: np.ndarray
    value: float
    lower_bound: float
    method: str

    @property
    def gap(self):
        """How far the value may be above the minimum: value less lower bound."""
        return self.value - self.lower_bound

    def __repr__(self):
        return f"<QuadraticMinimum: {self.value:.6g} by {self.method}, gap {self.gap:.3g}>"


def minimize_quadratic(A, b, units, *, floors=None, room=None, method="swap", rng=None, **options):
    """Minimise xᵀA x + bᵀx over x with ``units`` ones.

    Parameters
    ----------
    A : array_like, shape (N, N)
        Made symmetric; see the module for its diagonal.
    b : array_like, shape (N,)
    units : int
        Σ x_i, p.
    floors, room : array_like of int, shape (N,), optional
        Fewest and most units at each place; left out: zero and one. Equal ones fix x_i.
    method : {"swap", "relaxation", "exact"}
        `swap_search`, `submodular_relaxation` or `exact`.
    rng : int, Generator or None
        Source of random starts.
    **options
        Of the method.

    Returns
    -------
    QuadraticMinimum

    Examples
    --------
    The papers' Example 7, with one place to take:

    >>> found = minimize_quadratic([[0, -2, -3], [-2, 0, -1], [-3, -1, 0]], [9, 8, -7], 1)
    >>> found.x.tolist(), found.value
    ([0, 0, 1], -7.0)
    """
    function = {"swap": swap_search, "relaxation": submodular_relaxation, "exact": exact}[
        _validate.choice(method, "method", ("swap", "relaxation", "exact"))
    ]
    return function(A, b, units, floors=floors, room=room, rng=rng, **options)


def value(A, b, x):
    """Return xᵀA x + bᵀx, a unit not paired with itself; ``x`` of shape (N,) counts units."""
    return float(x @ A @ x - np.diag(A) @ x + b @ x)


def _problem(A, b, units, floors, room):
    """Return validated arrays, A symmetric."""
    b = _validate.real_array(b, "b", (None,))
    A = _validate.real_array(A, "A", (len(b), len(b)))
    units = _validate.whole_number(units, "units", low=0)
    floors = np.zeros(len(b), int) if floors is None else np.asarray(floors, int)
    room = np.ones(len(b), int) if room is None else np.minimum(room, units).astype(int)
    if floors.shape != b.shape or room.shape != b.shape or (floors < 0).any() or (floors > room).any():
        msg = f"`floors` and `room` must hold {len(b)} whole numbers, floors from 0 to room; got {floors}, {room}."
        raise InputError(msg)
    if not floors.sum() <= units <= room.sum():
        msg = f"`units` must be {floors.sum()} to {room.sum()}, what the places must and can hold; got {units}."
        raise InputError(msg)
    return np.ascontiguousarray((A + A.T) / 2), b, units, floors, room


# -- (b) swaps ------------------------------------------------------------------------------------------------------


def swap_search(A, b, units, *, floors=None, room=None, starts=40, steps=None, rng=None):
    """Descend from several starts by the best swap, walking on over local minima with recent places barred.

    Each start is a random deployment, every second one a greedy one whose costs are disturbed. From there the best
    swap (one unit from place i to place j) is made even where it costs, and a place left or taken stays so for some
    steps (tabu search). Changes of value are kept up to date, so that a step costs O(p (N - p)).

    Parameters
    ----------
    A, b, units, floors, room, rng
        See `minimize_quadratic`.
    starts : int
        Starts.
    steps : int, optional
        Swaps without improvement after which a start ends; left out, 2 N.

    Returns
    -------
    QuadraticMinimum
    """
    A, b, units, floors, room = _problem(A, b, units, floors, room)
    starts = _validate.whole_number(starts, "starts")
    steps = 2 * len(b) if steps is None else _validate.whole_number(steps, "steps", low=0)
    keys = _validate.generator(rng).random((starts, len(b)))
    best = _search(A, b, units, floors, room, keys, steps)
    return QuadraticMinimum(best, value(A, b, best), -np.inf, "swap search")


@njit(cache=True, nogil=True)
def _search(A, b, units, floors, room, keys, patience):
    """Return the best counts of all starts."""
    best, best_value = floors.copy(), np.inf
    spread = np.abs(A).sum() / len(b) + np.abs(b).sum() / len(b)
    for s in range(len(keys)):
        x = floors.copy()
        cost = b + 2 * (A @ x.astype(np.float64))  # of one more unit at each place
        noise = keys[s] * spread * (1e6 if s % 2 == 1 else 1.0 if s > 0 else 0.0)
        for _ in range(units - floors.sum()):
            k, least = -1, np.inf
            for i in range(len(b)):
                if x[i] < room[i] and cost[i] + noise[i] < least:
                    k, least = i, cost[i] + noise[i]
            x[k] += 1
            cost += 2 * A[k]
        reached = _walk(A, cost, x, floors, room, patience)
        total = 0.0
        for i in range(len(b)):
            if reached[i] > 0:
                total += b[i] * reached[i] - A[i, i] * reached[i]
                for j in range(len(b)):
                    total += A[i, j] * reached[i] * reached[j]
        if total < best_value:
            best, best_value = reached, total
    return best


@njit(cache=True, nogil=True)
def _walk(A, cost, x, floors, room, patience):
    """Swap until nothing better has come for ``patience`` steps; return the best counts met.

    ``cost`` is kept at b + 2 A x. Moving a unit from i to j changes the value by
    cost_j - (cost_i - 2 A_ii) - 2 A_ij.
    """
    n = len(x)
    better = 1e-10 * (np.abs(cost).max() + np.abs(A).max())  # well above what rounding adds up to
    best, now, least = x.copy(), 0.0, 0.0
    free_from = np.zeros(n, np.int64)  # step from which a place may change again
    step, last_better = 0, 0
    while step - last_better <= patience and step < 100 * (n + patience):
        step += 1
        move_i, move_j, change = -1, -1, np.inf
        for i in range(n):
            if x[i] <= floors[i]:
                continue
            gain = cost[i] - 2 * A[i, i]
            for j in range(n):
                if j == i or x[j] >= room[j]:
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


# -- (a) the papers' Algorithm 1 ------------------------------------------------------------------------------------


def minimum_cut(A, b):
    """Minimise xᵀA x + bᵀx over all x in {0, 1}^N, for A with no positive entry off its diagonal.

    With x_i = 1 on the sink's side, xᵀA x = Σ_i x_i Σ_j A_ij + Σ_ij |A_ij| x_i (1 - x_j): the edge between i and j
    carries |A_ij|, and the terminal edge of i the linear cost b_i + Σ_j A_ij, from the source if positive and to
    the sink if negative.

    Parameters
    ----------
    A : array_like, shape (N, N)
        Symmetric; the diagonal is ignored.
    b : array_like, shape (N,)

    Returns
    -------
    x : ndarray of int, shape (N,)
    lower_bound : float
        At most the minimum; below it by no more than rounding to integer capacities costs (about 1e-9 x N² of the
        largest capacity sum).
    """
    from scipy.sparse.csgraph import breadth_first_order, maximum_flow

    b = np.asarray(b, float)
    edges = -np.asarray(A, float)
    edges = edges - np.diag(np.diag(edges))
    if (edges < 0).any():
        msg = f"`A` must have no positive entry off its diagonal, else no cut minimises it; got {-edges.min():g}."
        raise InputError(msg)
    linear = b - edges.sum(axis=1)
    n = len(b)
    total = max(np.maximum(linear, 0).sum(), -np.minimum(linear, 0).sum(), edges.sum(axis=1).max())
    if total == 0:
        return np.zeros(n, int), 0.0
    scale = CUT_RANGE / total
    graph = np.zeros((n + 2, n + 2), np.int32)  # places, source, sink; rounding down keeps the bound below
    graph[:n, :n] = np.floor(scale * edges)
    graph[n, :n] = np.floor(scale * np.maximum(linear, 0))
    graph[:n, n + 1] = np.floor(scale * np.maximum(-linear, 0))
    capacity = csr_array(graph)
    flow = maximum_flow(capacity, n, n + 1)
    left = capacity - flow.flow
    left.eliminate_zeros()
    reached = breadth_first_order(left, n, return_predecessors=False)
    x = np.ones(n + 2, int)
    x[reached] = 0
    return x[:n], flow.flow_value / scale + np.minimum(linear, 0).sum()


def submodular_relaxation(A, b, units, *, floors=None, room=None, cuts=60, tol=1e-9, rng=None):
    """Minimise by the papers' Algorithm 1: submodular relaxation, minimum cuts, repair and polish.

    The positive part of A is replaced by its linear lower bound (9) with parameters Γ in [0, 1], the cardinality
    by a multiplier λ. Each cut gives a lower bound for every Γ and λ, and x*, which is repaired to p units and
    polished by swaps. Γ descends along the gradient of the papers' loss, (f(x*) - f_sub(x*))²,

        ∂f_sub/∂Γ_ij = A⁺_ij (x*_i + x*_j - 1),

    which is the way that lifts the bound; λ follows Σ x* - p. Both share Polyak's step, from the bound to the best
    value known.

    Parameters
    ----------
    A, b, units, floors, room
        See `minimize_quadratic`. Places with room for several units become that many places.
    cuts : int
        Minimum cuts.
    tol : float
        Stop where the gap is below this, relative to the spread of the terms.
    rng : ignored
        The method is deterministic.

    Returns
    -------
    QuadraticMinimum
        With its ``lower_bound`` and ``gap``.
    """
    A, b, units, floors, room = _problem(A, b, units, floors, room)
    cuts = _validate.whole_number(cuts, "cuts")
    A1, b1, p, place, constant = _slots(A, b, units, floors, room)
    if p in (0, len(b1)):
        x = floors + (np.bincount(place, minlength=len(b)) if p else 0)
        total = value(A, b, x)
        return QuadraticMinimum(x, total, total, "submodular relaxation")
    plus, minus = np.maximum(A1, 0), np.minimum(A1, 0)
    gamma = np.ones_like(A1)
    zero, one = np.zeros(len(b1), int), np.ones(len(b1), int)
    multiplier = _first_multiplier(A1, b1, p)
    spread = np.abs(A1).sum() + np.abs(b1).sum()
    best, best_value, bound, pace, waited = None, np.inf, -np.inf, 1.0, 0
    for _ in range(cuts):
        relaxed = plus * gamma
        x, least = minimum_cut(minus, b1 + 2 * relaxed.sum(axis=1) + multiplier)
        least -= relaxed.sum() + multiplier * p
        feasible = _repair(A1, b1, x, p)
        feasible = _walk(A1, b1 + 2 * A1 @ feasible, feasible, zero, one, 0)
        total = value(A1, b1, feasible)
        if total < best_value:
            best, best_value = feasible, total
        waited = 0 if least > bound else waited + 1
        bound = max(bound, least)
        if best_value - bound <= tol * spread:
            break
        if waited == 5:
            pace, waited = pace / 2, 0
        slope = plus * (x[:, None] + x - 1)
        excess = x.sum() - p
        steepness = (slope**2).sum() + excess**2
        if steepness == 0:
            break
        step = pace * (best_value - least) / steepness
        gamma = np.clip(gamma + step * slope, 0, 1)
        multiplier += step * excess
    counts = floors + np.bincount(place, weights=best, minlength=len(b)).astype(int)
    return QuadraticMinimum(counts, value(A, b, counts), min(bound, best_value) + constant, "submodular relaxation")


def _slots(A, b, units, floors, room):
    """Write the problem with binary places only and none fixed.

    Returns A (n, n), b (n,), how many to take, the place each belongs to (n,), and the value already fixed.
    """
    place = np.repeat(np.arange(len(b)), room - floors)
    linear = (b + 2 * A @ floors)[place]
    pairs = A[np.ix_(place, place)].copy()
    np.fill_diagonal(pairs, 0.0)
    return pairs, linear, units - int(floors.sum()), place, value(A, b, floors)


def _first_multiplier(A, b, p):
    """Return the price a unit at which p places are worth taking, if the others are taken at random."""
    worth = np.sort(b + 2 * p / len(b) * A.sum(axis=1))
    return -(worth[p - 1] + worth[p]) / 2


def _repair(A, b, x, p):
    """Add or remove the unit that costs least until there are p; a multiplier alone seldom gets there."""
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


# -- (c) exact ------------------------------------------------------------------------------------------------------


def exact(A, b, units, *, floors=None, room=None, time_limit=60.0, rng=None):
    """Minimise by a mixed-integer program (HiGHS) with a variable for each product x_i x_j.

    Products are tied to x by x_i x_j <= x_i, >= x_i + x_j - 1 and Σ_j≠i x_i x_j = (p - 1) x_i, which makes the
    relaxation tight.

    Parameters
    ----------
    A, b, units, floors, room
        See `minimize_quadratic`.
    time_limit : float
        Seconds.
    rng : ignored
        The method is deterministic.

    Returns
    -------
    QuadraticMinimum
        ``lower_bound`` equals the value unless the time ran out.

    Raises
    ------
    ConvergenceError
        If no solution was found in time.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp

    A, b, units, floors, room = _problem(A, b, units, floors, room)
    A1, b1, p, place, constant = _slots(A, b, units, floors, room)
    n = len(b1)
    if p in (0, n):
        x = floors + (np.bincount(place, minlength=len(b)) if p else 0)
        return QuadraticMinimum(x, value(A, b, x), value(A, b, x), "exact")
    i, j = np.triu_indices(n, 1)
    m, pair = len(i), np.arange(len(i))

    def matrix(rows, columns, entries, n_rows):
        return csr_array((entries, (rows, columns)), shape=(n_rows, n + m))

    one = np.ones(m)
    below_i = matrix(np.r_[pair, pair], np.r_[n + pair, i], np.r_[one, -one], m)
    below_j = matrix(np.r_[pair, pair], np.r_[n + pair, j], np.r_[one, -one], m)
    above = matrix(np.r_[pair, pair, pair], np.r_[n + pair, i, j], np.r_[one, -one, -one], m)
    products = matrix(
        np.r_[i, j, np.arange(n)],
        np.r_[n + pair, n + pair, np.arange(n)],
        np.r_[one, one, np.full(n, 1.0 - p)],
        n,
    )
    result = milp(
        np.r_[b1, 2 * A1[i, j]],
        integrality=np.r_[np.ones(n), np.zeros(m)],
        bounds=Bounds(0, 1),
        constraints=[
            LinearConstraint(np.r_[np.ones(n), np.zeros(m)][None], p, p),
            LinearConstraint(below_i, ub=0),
            LinearConstraint(below_j, ub=0),
            LinearConstraint(above, lb=-1),
            LinearConstraint(products, 0, 0),
        ],
        options={"time_limit": _validate.positive_number(time_limit, "time_limit"), "mip_rel_gap": 0.0},
    )
    if result.x is None:
        raise ConvergenceError(f"no solution of {n} places in {time_limit:g} s: {result.message}. Use method 'swap'.")
    x = np.round(result.x[:n])
    counts = floors + np.bincount(place, weights=x, minlength=len(b)).astype(int)
    total = value(A, b, counts)
    bound = total if result.status == 0 else result.mip_dual_bound + constant
    return QuadraticMinimum(counts, total, min(bound, total), "exact")
