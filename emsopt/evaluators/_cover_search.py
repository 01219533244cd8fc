"""Maximal and maximum expected covering: annealing, a Lagrangian bound, and HiGHS for the rest.

The problem is to choose how many units n_i, in all p, stand at each of N sites, n_i between a floor and a capacity, and
to maximise Σ_j w_j (1 - q^k_j) with k_j = Σ_i a_ij n_i units in reach of atom j.

==================  ======  ======  ================================================================
name                symbol  shape   meaning
==================  ======  ======  ================================================================
``reach``           a_ij            pairs in reach, listed by site and by atom, and the weights w_j
``worth``           v_k     (p+2,)  (1 - q) q^k, what the unit after k others adds to an atom of weight 1
``prices``          u_j     (M,)    Lagrange multiplier of k_j = Σ_i a_ij n_i: what atom j pays per unit in reach
``profits``         ρ_i     (N,)    Σ_j a_ij u_j: what the atoms pay for a unit at site i
==================  ======  ======  ================================================================

For any prices,

    U(u) = Σ_j max_k [w_j (1 - q^k) - u_j k] + the sum of the profits of the p units that earn most

is at least the optimum. A deflected subgradient descent lowers U almost to the bound of the linear relaxation. Sites
are fixed where the opposite choice would lower U to the best value known. The deployment is improved by simulated
annealing: a unit moves to another site, mostly one that shares an atom with its own. Both run side by side, for a
number of steps that does not depend on the clock. If the bound does not prove the best deployment, HiGHS solves the
problem without the sites that are fixed. With a time limit, short runs of annealing go on in parallel. After each two,
their sites and those of the best deployment so far make a problem so small that its optimum is found and mostly proven
at once, and this is often better than all three. Many short runs lead further than few long ones.

References
----------
Blum, C., Pinacho, P., López-Ibáñez, M. and Lozano, J. A. (2016). Construct, merge, solve & adapt. Computers &
    Operations Research 68, 75-88. (The best of what several solutions use.)
Galvão, R. D. and ReVelle, C. (1996). A Lagrangean heuristic for the maximal covering location problem. European
    Journal of Operational Research 88(1), 114-123. (The relaxation.)
"""

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import ExitStack
from typing import NamedTuple, TypeAlias, TypeVar

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ..errors._types import FloatArray, IntArray
from ._cover_patterns import OBJECTIVE_SCALE, Patterns, distinct_rows, row_lists, rows_within_another
from ._p_median import LAST_STEP, MOMENTUM, common_divisor
from ._stopping import POLL_SECONDS, check_ctrl_c, solve_integer_program

TOLERANCE = 1e-11  # relative; far above rounding errors
FIRST_TEMPERATURE, LAST_TEMPERATURE = 0.05, 0.003  # relative to the value per unit of the fleet, to fit any city
SKIPPED_COOLING = 0.3  # share of the cooling that short runs leave out
FAR_SHARE = 0.2  # share of moves to any site, without which a district keeps a unit too many
STEPS_PER_SITE, FIRST_SHARE = 20, 0.15  # of the descent before HiGHS, and the share of a time limit it may take
FIRST_STEPS = 250  # of the descent in the first round; each further one has twice as many, up to
MOST_STEPS = 2_000  # so that the clock is looked at
MOVES_PER_STEP = 50  # steps of annealing beside each one of the descent
FIRST_STEP, RESTART_STEP = 1.5, 0.3  # length of a step of the descent, at first and when the best deployment is known
PATIENCE = 60  # steps without progress that halve it
PIECE_STEPS = 100_000  # steps of annealing between two looks at the clock: 0.02 s with 60 atoms per site
RUN_STEPS = 1_000  # per site, of a run of annealing that is merged
MERGING_SHARE = 0.05  # of a time limit, which one merging may take
MOST_SOLVABLE_PAIRS = 100_000  # pairs in reach up to which HiGHS gets far enough within a time limit
T = TypeVar("T")
# one per chain of a search; fixed, so that results repeat, and not 0, which xorshift never leaves
SEEDS = 88172645463325252, 1234567890123456789


class Reach(NamedTuple):
    """Pairs in reach: ``atom[start[i]:start[i+1]]`` of site i, ``site[back[j]:back[j+1]]`` of atom j; weights, (M,)."""

    start: NDArray[np.int32]
    atom: NDArray[np.int32]
    back: NDArray[np.int32]
    site: NDArray[np.int32]
    weight: FloatArray


Limits: TypeAlias = tuple[IntArray, IntArray]
"""Floors and capacities of the sites, shape (N,)."""


def maximise_coverage(
    patterns: Patterns,
    weights: FloatArray,
    q: float,
    limits: Limits,
    units: int,
    end: float,
    known: IntArray | None = None,
    stop: Callable[[], bool] | None = None,
) -> tuple[IntArray, float]:
    """Find the units at each site that cover the largest weight; return them, and an upper bound on that weight.

    The bound is minus infinity if the search was completed before ``end``: then they are optimal. ``known`` is a
    deployment to start from, and ``stop`` tells whether to end before ``end``.
    """
    first, which = distinct_rows(patterns.T.tocsr())  # atoms in reach of the same sites are one
    merged = np.bincount(which, weights=weights).astype(float)
    floors, capacities = limits[0], np.minimum(limits[1], units)
    lonely = np.diff(patterns[np.flatnonzero(capacities)].tocsc().indptr)[first] == 0  # in reach of no open site
    some = np.flatnonzero((merged > 0) & ~lonely)
    patterns, weights = patterns[:, first[some]], merged[some]
    if not len(some) or floors.sum() == units:
        return greedy_counts(patterns, weights, q, floors, capacities, units), -np.inf
    useful = _undominated_sites(patterns, q, floors, capacities, units)
    lower, upper = floors[useful], capacities[useful]
    search = _CoverSearch(patterns[useful], weights, q, (lower, upper), units, end, stop)
    if known is not None and known[useful].sum() == units:
        search.keep_best(known[useful])
    bound = search.run()
    counts = np.zeros_like(floors)
    counts[useful] = search.best
    return counts, bound


def greedy_counts(
    patterns: Patterns, weights: FloatArray, q: float, floors: IntArray, capacities: IntArray, units: int
) -> IntArray:
    """Return the units at each site, (N,), placed one by one where the covered weight grows most."""
    counts = floors.copy()
    for _ in range(units - counts.sum()):
        gains = patterns @ (weights * np.power(q, patterns.T @ counts))  # without the factor 1 - q, common to all
        counts[np.argmax(np.where(counts < capacities, gains, -1.0))] += 1
    return counts


def _undominated_sites(patterns: Patterns, q: float, floors: IntArray, capacities: IntArray, units: int) -> IntArray:
    """Return the indices of the sites, except those whose atoms are all in reach of another site.

    The other site must be able to take the units: one if further units add nothing, otherwise the whole fleet.
    """
    open_ = np.flatnonzero(capacities)
    better = open_ if q == 0 else np.flatnonzero(capacities == units)
    rows = patterns[better]
    dropped = better[rows_within_another(*row_lists(rows), *row_lists(rows.T), False)]
    kept = np.setdiff1d(open_, dropped[floors[dropped] == 0])
    return kept if capacities[kept].sum() >= units else open_  # all units need a place


class _CoverSearch:
    """A search for the units at each site, with the best deployment and the lowest bound so far."""

    def __init__(
        self,
        patterns: Patterns,
        weights: FloatArray,
        q: float,
        limits: Limits,
        units: int,
        end: float,
        stop: Callable[[], bool] | None = None,
    ) -> None:
        self.patterns, self.q, self.units, self.end, self.stop = patterns, q, units, end, stop
        self.reach = Reach(*row_lists(patterns), *row_lists(patterns.T), weights)
        self.worth = (1 - q) * np.power(q, np.arange(units + 2))
        self.limits = limits
        self.fixed = limits[0].copy(), limits[1].copy()  # as far as a better deployment is concerned
        self.best = greedy_counts(patterns, weights, q, *limits, units)
        self.first, self.value, self.bound = self.best, self.value_of(self.best), float(weights.sum())
        self.least = common_divisor(weights) * (1 - 1e-6) if q == 0 else 0.0  # values are sums of weights
        prices = 0.5 * weights * (1 - q)  # the middle of the range of prices that `_descend` allows
        self.walk = prices, np.zeros(len(weights)), np.array([np.inf, FIRST_STEP, 0.0])
        self.over = False  # asks annealing in the other thread to end
        self.states = [np.array([seed], np.uint64) for seed in SEEDS]
        self.met = [self.first] * len(SEEDS)  # best deployment of each chain

    def value_of(self, counts: IntArray) -> float:
        """Return the covered weight of a deployment, given as units per site."""
        return float(self.reach.weight @ (1 - np.power(self.q, self.patterns.T @ counts)))

    @property
    def target(self) -> float:
        """Value below which an upper bound proves that the best deployment found is optimal."""
        return self.value + max(self.least, TOLERANCE * self.value)

    @property
    def must_stop(self) -> bool:
        check_ctrl_c()
        return time.monotonic() > self.end or (self.stop is not None and self.stop())

    def keep_best(self, counts: IntArray) -> None:
        """Keep a deployment if it is the best one."""
        value = self.value_of(counts)
        if value > self.value:
            self.best, self.value = counts.copy(), value

    def temperature(self, done: float) -> float:
        """Return the temperature of annealing after a share ``done`` of the steps."""
        return self.value / self.units * FIRST_TEMPERATURE ** (1 - done) * LAST_TEMPERATURE**done

    def anneal(self, steps: int) -> IntArray:
        """Anneal the best deployment for some steps; return the best one found."""
        heat = self.temperature(SKIPPED_COOLING), self.temperature(1.0)
        return _anneal(self.reach, self.worth, self.best.copy(), self.limits, heat, steps, self.states[0])

    def run(self) -> float:
        """Search until the best deployment is proven or time is up; return an upper bound, minus infinity if proven."""
        steps, left = FIRST_STEPS, STEPS_PER_SITE * len(self.best)
        now = time.monotonic()
        first = now + FIRST_SHARE * (self.end - now)
        with ThreadPoolExecutor(1) as pool, ExitStack() as stack:
            stack.callback(setattr, self, "over", True)  # Ctrl-C ends the other thread too
            unlimited = first == np.inf
            while time.monotonic() < first and not self.must_stop and (left > 0 or (self.can_descend and unlimited)):
                annealing = pool.submit(self.anneal, MOVES_PER_STEP * steps) if left > 0 else None
                if self.can_descend:
                    self.descend(steps)
                if annealing is not None:
                    self.keep_best(wait_for_thread(annealing))
                    left -= steps
                    if left <= 0:  # the bound may fix more sites now
                        self.walk[2][1:] = RESTART_STEP, 0.0
                if self.bound < self.target:
                    return -np.inf
                steps = min(2 * steps, MOST_STEPS)
            return self.bound if self.must_stop else self.finish(pool)

    @property
    def can_descend(self) -> bool:
        """Whether the bound may still be lowered."""
        return bool(self.walk[2][1] >= LAST_STEP)

    def descend(self, steps: int) -> None:
        """Lower the bound by some subgradient steps, and fix sites where it allows that."""
        known = self.value, self.target
        self.bound = min(self.bound, _descend(self.reach, self.worth, self.fixed, self.units, self.walk, known, steps))

    def finish(self, pool: ThreadPoolExecutor) -> float:
        """Decide the other sites by HiGHS, beside annealing if time is limited; return a bound as `run` does."""
        if self.end == np.inf:
            return self.keep_solution(*self.solve(), self.best)
        other = pool.submit(self.anneal_until_end, 0)
        while self.can_descend and not self.must_stop:
            self.descend(FIRST_STEPS)
            for counts in tuple(self.met):  # better deployments fix more sites
                self.keep_best(counts)
        known = self.best.copy()
        if self.bound < self.target:
            return -np.inf
        if len(self.reach.atom) > MOST_SOLVABLE_PAIRS:  # HiGHS would not get far
            self.keep_best(self.anneal_until_end(1))
            self.keep_best(wait_for_thread(other))
            return -np.inf if self.bound < self.target else self.bound
        solved = self.solve()
        self.over = True
        self.keep_best(wait_for_thread(other))
        return self.keep_solution(*solved, known)

    def anneal_until_end(self, number: int) -> IntArray:
        """Merge two new deployments with the best one of this chain until time is up or HiGHS is done; return it."""
        limit = MERGING_SHARE * (self.end - time.monotonic())
        while time.monotonic() < self.end - limit and not self.must_end:
            pair = [self.anneal_first(self.end - limit, self.states[number]) for _ in range(2)]
            self.met[number] = self.best_on_merged_sites([self.met[number], *pair], time.monotonic() + limit)
        return self.best_on_merged_sites([self.best, *self.met], self.end)

    @property
    def must_end(self) -> bool:
        """Whether annealing is to end."""
        return self.over or self.must_stop

    def anneal_first(self, end: float, state: NDArray[np.uint64]) -> IntArray:
        """Anneal the first deployment, and cool faster if ``end`` is near; return the best deployment met."""
        counts, good, now, done = self.first.copy(), self.first, time.monotonic(), 0.0
        share = PIECE_STEPS / (RUN_STEPS * len(counts))
        while done < 1 and not self.must_end:
            heat = self.temperature(done), self.temperature(min(done + share, 1.0))
            met = _anneal(self.reach, self.worth, counts, self.limits, heat, PIECE_STEPS, state)
            good = max(good, met, key=self.value_of)
            done = max(done + share, (time.monotonic() - now) / max(end - now, POLL_SECONDS))
        return good

    def best_on_merged_sites(self, some: list[IntArray], end: float) -> IntArray:
        """Return the best deployment found by ``end`` that uses only sites of ``some`` deployments."""
        best, sites = max(some, key=self.value_of), np.flatnonzero(sum(some))
        if self.must_end:
            return best
        counts, limits = np.zeros_like(best), (self.limits[0][sites], self.limits[1][sites])
        end, stop = min(self.end, end), lambda: self.over or (self.stop is not None and self.stop())
        counts[sites], _ = maximise_coverage(
            self.patterns[sites], self.reach.weight, self.q, limits, self.units, end, best[sites], stop
        )
        return counts

    def solve(self) -> tuple[IntArray | None, float, bool]:
        """Solve the problem with the fixed sites by HiGHS; return units, an upper bound and whether it is settled."""
        import scipy.sparse as sp
        from scipy.optimize import LinearConstraint

        low, high = self.fixed
        free, left, total = np.flatnonzero(high > low), self.units - low.sum(), self.reach.weight.sum()
        if not len(free) or not left:
            best = None if left else low  # if units are left over, no better deployment exists
            return best, self.value_of(low), True
        inside, always = self.patterns[free].astype(float), self.patterns.T @ low  # what is fixed is always in reach
        room = np.minimum(inside.T @ (high - low)[free], left).astype(np.int64)
        atom = np.repeat(np.arange(len(room)), room)  # one variable for each further unit in reach that adds something
        layer = np.arange(len(atom)) - np.repeat(np.cumsum(room) - room, room)
        gains = self.reach.weight[atom] * self.worth[np.minimum(always[atom] + layer, self.units)] / total
        atom, gains = atom[gains > 0], gains[gains > 0]
        n, m = len(free), len(atom)
        counted = np.r_[np.ones(n), np.zeros(m)]
        layers = sp.csr_array((np.ones(m), (atom, np.arange(m))), shape=(len(room), m))
        rows = [LinearConstraint(sp.hstack([-inside.T, layers]), ub=0), LinearConstraint(counted, left, left)]
        highest, costs = np.r_[(high - low)[free], np.ones(m)], -OBJECTIVE_SCALE * np.r_[np.zeros(n), gains]
        x, bound, settled = solve_integer_program(costs, rows, counted, 0, highest, self.end, self.least / total)
        counts = low.copy()
        if x is not None:
            counts[free] += np.rint(x[:n]).astype(np.int64)
        return (None if x is None else counts), self.value_of(low) - bound * total / OBJECTIVE_SCALE, settled

    def keep_solution(self, counts: IntArray | None, bound: float, settled: bool, known: IntArray) -> float:
        """Keep the better of ``known``, the incumbent before HiGHS, and its solution ``counts``; return an upper bound.

        The bound is minus infinity if optimality is proven (``settled``). If not, what annealing found is kept too.
        """
        if not settled:
            self.keep_best(self.best if counts is None else counts)
            return min(self.bound, max(bound, self.value))
        # what annealing met beside HiGHS depends on the clock, and may not change a proven result
        self.best, self.value = known, self.value_of(known)
        self.keep_best(known if counts is None else counts)
        return -np.inf


def wait_for_thread(future: Future[T]) -> T:
    """Wait for a thread and return its result; Ctrl-C ends the wait."""
    while not future.done():
        check_ctrl_c()
        wait([future], POLL_SECONDS)
    return future.result()


@njit(cache=True, nogil=True)
def _set_paid_units(reach: Reach, worth: FloatArray, prices: FloatArray, units: int, paid: IntArray) -> float:
    """Set ``paid``, (M,), to the number of units in reach that each atom pays for; return the first sum of U."""
    value = 0.0
    for j in range(len(prices)):
        k, w, price = 0, reach.weight[j], prices[j]
        while k < units and w * worth[k] > price:
            value += w * worth[k] - price
            k += 1
        paid[j] = k
    return value


@njit(cache=True, nogil=True)
def _place_units(
    reach: Reach, fixed: Limits, units: int, prices: FloatArray, profits: FloatArray, taken: IntArray,
    in_reach: IntArray, value: float,
) -> tuple[float, float, float]:  # fmt: skip
    """Place the units where they earn most; set the ``profits``, units ``taken`` beyond ``low``, and ``in_reach``.

    Return ``value`` plus the second sum of U, the least profit among the units placed freely, and the largest of a site
    that can take more.
    """
    low, high = fixed
    taken[:], in_reach[:] = 0, 0
    for i in range(len(low)):
        profit = 0.0
        for r in range(reach.start[i], reach.start[i + 1]):
            profit += prices[reach.atom[r]]
        profits[i] = profit
        if low[i]:
            value += low[i] * profit
            _add_units(reach, i, low[i], in_reach)
    free, left = np.flatnonzero(high > low), units - int(low.sum())
    if len(free) > left + 1:
        free = free[np.argpartition(-profits[free], left)[: left + 1]]  # one more, for the best site left out
    free = free[np.argsort(-profits[free])]
    worst_in, best_out = np.inf, -np.inf
    for s in free:
        k = min(left, int(high[s] - low[s]))
        if k:
            taken[s], worst_in = k, profits[s]
            value += k * profits[s]
            left -= k
            _add_units(reach, int(s), k, in_reach)
        if k < high[s] - low[s]:
            best_out = max(best_out, profits[s])
    return value, worst_in, best_out


@njit(cache=True, nogil=True)
def _add_units(reach: Reach, i: int, units: int, in_reach: IntArray) -> None:
    """Add ``units`` at a site (negative to remove) to the number of units in reach of each of its atoms."""
    for r in range(reach.start[i], reach.start[i + 1]):
        in_reach[reach.atom[r]] += units


@njit(cache=True, nogil=True)
def _fix_sites(
    fixed: Limits, taken: IntArray, profits: FloatArray, value: float, worst_in: float, best_out: float, target: float
) -> None:
    """Fix the sites where the opposite choice would lower U below the target."""
    low, high = fixed
    for i in range(len(low)):
        if high[i] > low[i]:
            if taken[i] == 0:
                if value + profits[i] - worst_in < target:  # no better deployment has a unit here
                    high[i] = low[i]
            elif high[i] - low[i] == 1 and value - profits[i] + best_out < target:
                low[i] = high[i]


@njit(cache=True, nogil=True)
def _descend(
    reach: Reach,
    worth: FloatArray,
    fixed: Limits,
    units: int,
    walk: tuple[FloatArray, FloatArray, FloatArray],
    known: tuple[float, float],
    steps: int,
) -> float:
    """Lower U by subgradient steps; return the lowest, and fix sites by changing their limits in place.

    ``walk`` holds the prices, the direction, and (lowest U, step length, steps without progress), all changed in place.
    ``known`` holds the best value and `_CoverSearch.target`.
    """
    prices, direction, kept = walk
    n, m = len(fixed[0]), len(prices)
    profits, taken = np.empty(n), np.empty(n, np.int64)
    paid, in_reach = np.empty(m, np.int64), np.empty(m, np.int64)
    for _ in range(steps):
        value = _set_paid_units(reach, worth, prices, units, paid)
        value, worst_in, best_out = _place_units(reach, fixed, units, prices, profits, taken, in_reach, value)
        kept[2] = 0.0 if value < kept[0] - 1e-6 * abs(value) else kept[2] + 1.0  # tiny progress is none
        kept[0] = min(kept[0], value)
        if kept[0] < known[1]:
            break
        _fix_sites(fixed, taken, profits, value, worst_in, best_out, known[1])
        if kept[2] >= PATIENCE:
            kept[1] *= 0.5
            kept[2] = 0.0
        length = 0.0
        for j in range(m):
            direction[j] = in_reach[j] - paid[j] + MOMENTUM * direction[j]
            length += direction[j] ** 2
        if kept[1] < LAST_STEP or length == 0.0:
            kept[1] = 0.0  # ends the descent: see `can_descend`
            break
        for j in range(m):
            price = prices[j] - kept[1] * (value - known[0]) / length * direction[j]  # Polyak's step to the best value
            prices[j] = min(max(price, 0.0), reach.weight[j] * worth[0])  # other prices only raise U
    return kept[0]


@njit(cache=True, nogil=True)
def _draw_uniform(state: NDArray[np.uint64]) -> float:
    """Return a uniform random number in [0, 1) by xorshift64*, and advance its ``state``."""
    x = state[0]
    x ^= x >> np.uint64(12)
    x ^= x << np.uint64(25)
    x ^= x >> np.uint64(27)
    state[0] = x
    return float((x * np.uint64(2685821657736338717)) >> np.uint64(11)) / 9007199254740992.0


@njit(cache=True, nogil=True, fastmath={"reassoc"})
def _loss(own: NDArray[np.uint32], less: FloatArray, marks: NDArray[np.int32], mark: int) -> float:
    """Return how much the covered weight falls without a unit that reaches the atoms ``own``; mark these atoms."""
    total = 0.0
    for j in own:
        total += less[j]
        marks[j] = mark
    return total


@njit(cache=True, nogil=True, fastmath={"reassoc"})
def _gain(atoms: NDArray[np.uint32], more: FloatArray, less: FloatArray, marks: NDArray[np.int32], mark: int) -> float:
    """Return how much a unit that reaches ``atoms`` adds to the covered weight after the unit of `_loss` has left."""
    total = 0.0
    for j in atoms:
        total += less[j] if marks[j] == mark else more[j]
    return total


@njit(cache=True, nogil=True)
def _change_units(
    reach: Reach, worth: FloatArray, i: int, units: int, in_reach: IntArray, more: FloatArray, less: FloatArray
) -> None:
    """Add ``units`` at site i; set what one unit ``more`` or ``less`` would change at each of its atoms, (M,) each."""
    for j in reach.atom[reach.start[i] : reach.start[i + 1]]:
        in_reach[j] += units
        more[j] = reach.weight[j] * worth[in_reach[j]]
        less[j] = reach.weight[j] * worth[in_reach[j] - 1]


@njit(cache=True, nogil=True)
def _anneal(
    reach: Reach,
    worth: FloatArray,
    counts: IntArray,
    limits: Limits,
    heat: tuple[float, float],
    steps: int,
    state: NDArray[np.uint64],
) -> IntArray:
    """Anneal the units at each site, ``counts``, between two temperatures; return the best deployment met, (N,)."""
    floors, capacities = limits
    n, m, start = len(counts), len(reach.weight), reach.start
    in_reach, more, less = np.zeros(m, np.int64), reach.weight * worth[0], np.zeros(m)
    for i in np.flatnonzero(counts):
        _change_units(reach, worth, int(i), counts[i], in_reach, more, less)
    units = np.repeat(np.arange(n), counts - floors)  # site of each movable unit: those up to the floor are pinned
    atom, marks = reach.atom.view(np.uint32), np.full(m, -1, np.int32)  # unsigned indices are faster
    best, above, most = counts.copy(), 0.0, 0.0  # values relative to that of the start
    temperature, cooling = heat[0], (heat[1] / heat[0]) ** (1.0 / steps)
    for step in range(steps if len(units) else 0):
        unit = int(_draw_uniform(state) * len(units))
        old, new = units[unit], int(_draw_uniform(state) * n)
        own = atom[start[old] : start[old + 1]]
        if len(own) and _draw_uniform(state) > FAR_SHARE:
            j = own[int(_draw_uniform(state) * len(own))]
            new = reach.site[reach.back[j] + int(_draw_uniform(state) * (reach.back[j + 1] - reach.back[j]))]
        temperature *= cooling
        if new == old or counts[new] == capacities[new]:
            continue
        loss = _loss(own, less, marks, step)
        change = _gain(atom[start[new] : start[new + 1]], more, less, marks, step) - loss
        if change >= 0.0 or change > temperature * np.log(_draw_uniform(state) + 1e-300):  # as a logarithm of 0 fails
            _change_units(reach, worth, old, -1, in_reach, more, less)
            _change_units(reach, worth, new, 1, in_reach, more, less)
            counts[old] -= 1
            counts[new] += 1
            units[unit] = new
            above += change
            if above > most:
                most = above
                best[:] = counts
    return best
