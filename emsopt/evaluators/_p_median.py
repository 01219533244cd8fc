"""Exact p-median: Lagrangian bounds, interchange and variable neighbourhoods, best-first branch and bound.

The problem is to choose a set S of p of the N sites that minimises Σ_j min_{i∈S} c_ij.

==================  ======  ======  ===============================================================
name                symbol  shape   meaning
==================  ======  ======  ===============================================================
``near``            c_ij    (M, .)  the nearest sites of each atom and their costs, weight included
``prices``          u_j     (M,)    Lagrange multiplier of "atom j is served": what it pays for service
``profits``         ρ_i     (N,)    Σ_j min(0, c_ij - u_j): what choosing site i adds, never positive
``state``                   (N,)    whether site i is FREE, OPEN or CLOSED in this branch
==================  ======  ======  ===============================================================

Prices replace the constraint that every atom is served. Each site can then be judged on its own, and

    L(u) = Σ_j u_j + the sum of ρ_i over p sites: the OPEN ones and the FREE ones with the smallest ρ_i

is at most the optimum for any u. A deflected subgradient ascent raises L almost to the bound of the linear relaxation.
During the ascent, a site is fixed as OPEN or CLOSED once the opposite choice would raise L to the best cost known.
Branching decides the other sites. A branch changes only the prices of atoms around the site that it decides: changing
all of them takes many times the work and raises the bound less. An atom pays only sites cheaper than its price. So L
needs only each atom's nearest sites, as long as no price exceeds the cost of the last one listed; lists that are too
short are extended.

Times on a plane or a road network leave gaps of about a thousandth. Costs without geometry (independent random
numbers) leave gaps of several per cent: a hundred sites are still easy then, two hundred are not.

References
----------
Cornuejols, G., Fisher, M. L. and Nemhauser, G. L. (1977). Location of bank accounts to optimize float: an analytic
    study of exact and approximate algorithms. Management Science 23(8), 789-810. (The relaxation.)
Held, M., Wolfe, P. and Crowder, H. P. (1974). Validation of subgradient optimization. Mathematical Programming
    6, 62-88. (The step.)
Hansen, P. and Mladenović, N. (1997). Variable neighborhood search for the p-median. Location Science 5(4), 207-226.
"""

import time
from heapq import heappop, heappush
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ..errors._types import BoolArray, FloatArray, IntArray
from . import _interchange
from ._interchange import CLOSED, FREE, OPEN, Costs, Lists, cost_by_lists, interchange
from ._stopping import check_ctrl_c, delay_ctrl_c

TOLERANCE = 1e-10  # relative to the cost of the first deployment tried; far above rounding errors
FIRST_STEP, LAST_STEP = 2.0, 0.01  # length of a step in Polyak's unit (best - L) / |direction|², which fits any costs
MOMENTUM = 0.4  # share of the previous direction in the next one; damps zigzagging
RECENT_WEIGHT = 0.1  # weight of the newest step in `recency`, so that earlier choices fade
ROOT_STEPS, ROOT_PATIENCE = 6000, 50  # most steps, and steps without progress that halve the step, as it is too long
WIDE_STEP, WIDE_STEPS, LOCAL_STEP, LOCAL_STEPS = 2.0, 40, 1.5, 50  # first length and number of steps of a branch
BRANCH_PATIENCE, TRIAL_STEPS = 8, 25
WIDE_SHARE = 0.5  # share of the atoms around a site from which a branch is wide, and trials cost too much
CANDIDATES, BRANCHING_SHARE = 8, 0.4  # sites compared before branching, and in which share of steps they are chosen
LEAST_GAIN = 1e-3  # of a branch, as share of the gap, so that the other branch counts too
INTERCHANGE_EVERY = 200  # steps of the root after which interchange improves its choice, for a good cost early
MOST_EXCHANGED = 12  # largest number of sites exchanged at random before an interchange
LEAST_WEIGHT = 0.02  # added to how recent choices weigh a site in random exchanges, so that each may be drawn
SEARCH_EFFORT = 1.0, 0.1  # list entries that random exchanges may read per entry read in the ascent: root, branches
LIST_LENGTH = 8  # length of the first lists, in units of N / p
SMALL_MATRIX = 1_000_000  # entries of a matrix that is listed whole, as this is quick
CLOCK_ENTRIES = 20_000_000  # list entries read between two looks at the clock: about 0.1 s
QUEUE_BYTES = 400e6  # when the queue exceeds this, new branches are searched depth first, which needs little memory


class Branch(NamedTuple):
    """The arrays of a branch of the search; ``recency``, (N,), tells how often each site was chosen in recent steps."""

    state: NDArray[np.int8]
    prices: Any  # float64, or in the queue float32, to save memory
    recency: FloatArray

    def copy(self) -> "Branch":
        """Return a copy with prices in 64 bits."""
        return Branch(self.state.copy(), self.prices.astype(float), self.recency.copy())


def common_divisor(values: FloatArray) -> float:
    """Return the largest number of which all values are multiples, up to rounding: 1/12 for 1/3 and 0.25.

    It is 0 if there is none of at least a millionth of the largest value.
    """
    flat = np.abs(values).ravel()
    least, divisor = 1e-6 * flat.max(), 0.0
    for some in (flat[:: max(1, flat.size // 1000)], flat):  # a sample settles most cases
        rest = some
        while True:
            if divisor:
                rest = np.abs(rest - divisor * np.rint(rest / divisor))
            rest = rest[rest > 1e-9 * flat.max()]
            if not len(rest):
                break
            rest, divisor = np.append(rest, divisor), rest.min()
            if divisor < least:
                return 0.0
    return float(divisor)


@delay_ctrl_c()
def solve_p_median(costs: Costs, p: int, forced: BoolArray, grain: float, end: float) -> tuple[BoolArray, float]:
    """Find the p sites with the smallest total cost; return whether each is chosen, (N,), and a lower bound.

    The bound is infinite if the search was completed before ``end``: then the choice is optimal to within `TOLERANCE`.
    ``forced``, shape (N,), marks the sites that must be chosen, at most p. Two choices of different cost differ by at
    least ``grain``, or 0 if that is not known. Costs are at least 0.
    """
    search = _MedianSearch(costs, p, forced, grain, end)
    bound, branch = search.ascend_root(np.where(forced, OPEN, FREE).astype(np.int8))
    queue = [(bound, 1, branch)]
    dive: list[tuple[float, int, Branch]] = []  # branches searched depth first: see QUEUE_BYTES
    room = QUEUE_BYTES / sum(array.nbytes for array in branch)
    known = 1  # serial number, so that the heap never compares arrays
    while queue or dive:
        if search.out_of_time:
            bounds = [branch[0] for branch in queue + dive if branch[0] < search.target]
            return search.chosen, search.round_up(min(bounds, default=np.inf))
        bound, _, branch = dive.pop() if dive else heappop(queue)
        if bound >= search.target:  # the best cost may have fallen since it was queued
            continue
        site, around = search.branching_site(bound, branch)
        for choice in (CLOSED, OPEN):
            child = branch.copy()
            child_bound = search.ascend(bound, child, site, choice, around)
            if child_bound < search.target:
                known += 1
                entry = child_bound, known, child._replace(prices=child.prices.astype(np.float32))
                if len(queue) < room:
                    heappush(queue, entry)
                else:
                    dive.append(entry)
        search.variable_neighbourhood_search(SEARCH_EFFORT[1], branch.recency)
    return search.chosen, np.inf


class _MedianSearch:
    """The lists, the best choice known, the clock and the work done so far, which all branches of a search share."""

    def __init__(self, costs: Costs, p: int, forced: BoolArray, grain: float, end: float) -> None:
        self.costs, self.p, self.forced, self.grain, self.end = costs, p, forced, grain, end
        n, m = costs.n_sites, costs.n_atoms
        k = n if n * m <= SMALL_MATRIX else min(n, max(LIST_LENGTH * n // p, 2 * LIST_LENGTH))
        self.full = _interchange.lists_of(costs, np.arange(m), k)
        self.rng = np.random.default_rng(0)
        rest = self.rng.permutation(np.flatnonzero(~forced))
        self.chosen = forced.copy()
        self.chosen[rest[: p - forced.sum()]] = True
        self.best = self.cost(self.chosen)
        self.tolerance = max(TOLERANCE * self.best, grain * (1 - 1e-6))  # a better choice gains at least `grain`
        self.allowed = np.ones(n, dtype=np.bool_)  # sites that a better choice may use
        self.listing = _interchange.listing_of(self.full, n)
        self.steps, self.shaken = 0, 1
        self.read, self.exchanged = 0, 0  # list entries read in ascents and interchanges, as time would not repeat
        self.found = 0  # value of `exchanged` then: the search goes on as long again
        self.gained, self.tried = np.zeros((2, n)), np.zeros((2, n))  # from all branches, for all later ones
        self.local = True  # until a branch is wide: then trials cost too much
        self.improve(self.chosen)

    @property
    def out_of_time(self) -> bool:
        """Whether the time limit is over; raise KeyboardInterrupt after a Ctrl-C."""
        check_ctrl_c()
        return time.monotonic() > self.end

    @property
    def target(self) -> float:
        """Lower bound above which a branch contains no better choice than the best known."""
        return self.best - self.tolerance

    def round_up(self, bound: float) -> float:
        """Round a lower bound up to the next cost that a choice can have."""
        if not self.grain or np.isinf(bound):
            return bound
        return self.best - self.grain * np.floor((self.best - bound) / self.grain + 1e-6)

    def extend_lists(self, atoms: IntArray) -> bool:
        """Double the length of those lists of ``atoms`` that are incomplete; return whether there were any."""
        start, site, _ = self.full
        atoms = atoms[site[start[atoms + 1] - 1] == self.costs.n_sites]
        length = np.diff(start)[atoms] - 1
        for k in np.unique(length):
            some = atoms[length == k]
            more = _interchange.lists_of(self.costs, some, min(2 * k, self.costs.n_sites))
            self.full = _interchange.replace_lists(self.full, some, more)
        if len(atoms):
            self.listing = _interchange.listing_of(self.full, self.costs.n_sites)
        return len(atoms) > 0

    def improve(self, chosen: BoolArray) -> None:
        """Improve a choice of sites, shape (N,), by interchange, and keep it if it is the best known."""
        members, unlisted, n_sites = np.flatnonzero(chosen), True, len(chosen)
        value = 6 * self.costs.n_atoms * n_sites // self.p + self.costs.n_atoms * self.p  # entries are written here
        swap = 1 + 8 * value // self.p + n_sites * self.p // 4
        # even when time is up, some swaps improve the first choice
        while unlisted and not (self.out_of_time and self.exchanged):
            most = 1 + CLOCK_ENTRIES // swap
            swaps, ended = interchange(self.full, self.listing, members, self.forced, self.allowed, most)
            self.exchanged += value + swaps * swap
            unlisted = not ended or self.extend_lists(_interchange.atoms_with_short_lists(self.full, members, n_sites))
        chosen = np.isin(np.arange(n_sites), members)
        cost = self.cost(chosen) if unlisted else cost_by_lists(self.full, chosen)
        if cost < self.best:
            self.best, self.chosen, self.found = cost, chosen, self.exchanged

    def cost(self, chosen: BoolArray) -> float:
        """Return the total cost of a choice of sites, shape (N,)."""
        return float(self.costs.of(np.flatnonzero(chosen)).min(axis=0).sum())

    def variable_neighbourhood_search(self, effort: float, recency: FloatArray) -> None:
        """Exchange k random sites near a random atom, improve the choice by interchange, and repeat.

        k grows while nothing improves. Sites seldom chosen in the ascent are the likeliest to leave, and those often
        chosen to enter. The search ends after the share ``effort`` of the work of the ascent, or after twice the work
        that led to the best choice, if that is more.
        """
        start, site, _ = self.full
        n_sites, around = len(recency), LIST_LENGTH * len(recency) // self.p
        leaving, entering = ~self.forced, self.allowed
        while self.exchanged < max(effort * self.read, 2 * self.found) and not self.out_of_time:
            chosen, before = self.chosen.copy(), self.best
            if not (chosen & leaving).any() or not (~chosen & entering).any():
                break
            atom = self.rng.integers(len(start) - 1)
            close = site[start[atom] : min(start[atom] + around, start[atom + 1])]
            close = close[close < n_sites]
            groups = close[chosen[close] & leaving[close]], close[~chosen[close] & entering[close]]
            k = min(self.shaken, *map(len, groups))
            self.exchanged += self.costs.n_atoms
            if k == 0:
                continue
            for group, weights in zip(groups, (1 - recency[groups[0]], recency[groups[1]]), strict=True):
                weights = np.maximum(weights, 0) + LEAST_WEIGHT
                chosen[self.rng.choice(group, k, replace=False, p=weights / weights.sum())] ^= True
            self.improve(chosen)
            self.shaken = 1 if self.best < before else self.shaken % MOST_EXCHANGED + 1

    def ascend_root(self, state: NDArray[np.int8]) -> tuple[float, Branch]:
        """Raise the bound of the whole problem, given the state of each site, (N,); return it and the first branch."""
        start, _, cost = self.full
        k = max(2, len(state) // self.p)  # at first an atom pays as many sites as there are for each one chosen
        prices = cost[np.minimum(start[:-1] + k, start[1:]) - 1]
        branch = Branch(state, prices, np.zeros(len(state)))
        walk, rest = _start_of_ascent(prices, FIRST_STEP), (0.0, np.zeros(len(state)))
        every, bound = np.arange(len(prices)), -np.inf
        while self.steps < ROOT_STEPS:
            near = _interchange.shorten_lists(self.full, state, walk[0], every)
            ended, trial, bound = self.run_steps(near, branch, walk, rest, INTERCHANGE_EVERY, ROOT_PATIENCE)
            if bound >= self.target or ended or self.out_of_time:
                break
            self.improve(trial)
            self.extend_lists(np.flatnonzero(prices >= self.full.cost[self.full.start[1:] - 1]))
        self.allowed = state != CLOSED
        if bound < self.target:
            self.variable_neighbourhood_search(SEARCH_EFFORT[0], branch.recency)
        self.near = _interchange.shorten_lists(self.full, state, np.full(len(prices), np.inf), every)
        return bound, branch._replace(prices=prices.astype(np.float32))

    def branching_site(self, bound: float, branch: Branch) -> tuple[int, IntArray]:
        """Return the free site to branch on, and the atoms around it.

        Of at most `CANDIDATES` sites, it is that with the largest product of the mean gains in the bound of its two
        branches, as shares of the gap. Trial ascents measure them for a site without earlier branches.
        """
        state, prices, recency = branch
        free, gap = np.flatnonzero(state == FREE), self.best - bound
        scores = dict[int, float]()
        for site in free[np.argsort(np.abs(recency[free] - BRANCHING_SHARE), kind="stable")[:CANDIDATES]]:
            if self.local and not self.tried[:, site].all() and not self.out_of_time:
                around = _interchange.nearby_atoms(self.near, state, prices, site)
                self.local = len(around) < WIDE_SHARE * len(prices)
                for choice in (OPEN, CLOSED) if self.local else ():
                    self.ascend(bound, branch.copy(), site, choice, around, trial=True)
            gains = self.gained[:, site] / np.maximum(self.tried[:, site], 1) / gap
            scores[site] = np.clip(gains, LEAST_GAIN, 1).prod()
        best = max(scores, key=scores.__getitem__)
        return best, _interchange.nearby_atoms(self.near, state, prices, best)

    def ascend(
        self, bound: float, branch: Branch, site: int, choice: int, around: IntArray, trial: bool = False
    ) -> float:
        """Open or close a site and change the prices around it, all in place; return the bound, which never falls."""
        state, prices, recency = branch
        state[site] = choice
        near = _interchange.shorten_lists(self.near, state, prices, around)
        moved = np.minimum(prices[around], near.cost[near.start[1:] - 1])
        wide = len(around) >= WIDE_SHARE * len(prices)
        first, steps = (WIDE_STEP, WIDE_STEPS) if wide else (LOCAL_STEP, TRIAL_STEPS if trial else LOCAL_STEPS)
        walk, rest = _start_of_ascent(moved, first), _fixed_part(self.near, prices, around, len(state))
        _, _, raised = self.run_steps(near, Branch(state, moved, recency), walk, rest, steps, BRANCH_PATIENCE)
        prices[around] = moved
        raised = max(bound, raised)
        self.gained[choice - OPEN, site] += min(raised, self.best) - bound
        self.tried[choice - OPEN, site] += 1
        return raised

    def run_steps(
        self,
        near: Lists,
        branch: Branch,
        walk: tuple[FloatArray, FloatArray, FloatArray],
        rest: tuple[float, FloatArray],
        steps: int,
        patience: int,
    ) -> tuple[bool, BoolArray, float]:
        """Raise the bound of a branch by up to ``steps`` steps of `_ascend`, or until time is up.

        Return whether the ascent ended, the cheapest choice seen, (N,), and the bound, infinite if the branch has no
        better choice than the best known.
        """
        trial = np.zeros(self.costs.n_sites, dtype=np.bool_)
        cheapest, choice, ended = np.inf, trial, 0
        # even when time is up, a first bound is needed
        while steps > 0 and not ended and not (self.out_of_time and np.isfinite(walk[2][0])):
            some = min(steps, max(1, CLOCK_ENTRIES // max(1, len(near.site))))
            target = self.best, self.target
            ended, found = _ascend(near, self.p, branch, trial, walk, rest, target, some, patience)
            self.steps += some
            self.read += some * len(near.site)
            steps -= some
            cost = cost_by_lists(self.full, found)
            if cost < cheapest:
                cheapest, choice = cost, found
            if cost < self.best or ended == DECIDED:
                cost = self.cost(found)  # the cost by lists is too low if they are too short
                if cost < self.best:
                    self.best, self.chosen = cost, found
        return ended > 0, choice, np.inf if ended in (PROVEN, DECIDED) else float(walk[2][0])


PROVEN, DECIDED, CONVERGED = 1, 2, 3  # why an ascent ended, as `_ascend` says


def _start_of_ascent(prices: FloatArray, first: float) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the start of an ascent, its ``walk``: prices, direction, and (bound, step length, steps in vain)."""
    return prices.copy(), np.zeros(len(prices)), np.array([-np.inf, first, 0.0])


@njit(cache=True, nogil=True)
def _fixed_part(near: Lists, prices: FloatArray, moving: IntArray, n_sites: int) -> tuple[float, FloatArray]:
    """Return the sum of the prices of all atoms but ``moving``, and the profits of the sites from these atoms, (N,)."""
    stays, value, profits = np.ones(len(prices), np.bool_), 0.0, np.zeros(n_sites + 1)
    stays[moving] = False
    for j in np.flatnonzero(stays):
        r, price = near.start[j], min(prices[j], near.cost[near.start[j + 1] - 1])
        value += price
        while r < near.start[j + 1] and near.cost[r] < price:
            profits[near.site[r]] += near.cost[r] - price
            r += 1
    return value, profits[:n_sites]


@njit(cache=True, nogil=True)
def _ascend(
    near: Lists,
    p: int,
    branch: Branch,
    trial: BoolArray,
    walk: tuple[FloatArray, FloatArray, FloatArray],
    rest: tuple[float, FloatArray],
    known: tuple[float, float],
    steps: int,
    patience: int,
) -> tuple[int, BoolArray]:
    """Raise the bound of a branch by subgradient steps, and fix sites where the bound allows it.

    The arrays of ``branch`` (with the best prices found), ``trial`` (the current choice) and ``walk`` are changed in
    place. ``rest`` is what `_fixed_part` returns, ``known`` the best cost known and `_MedianSearch.target`. The step
    length is halved after ``patience`` steps without progress.

    Return why the ascent ended, PROVEN (no better choice), DECIDED (one choice is left, that returned), CONVERGED or 0,
    and the choice seen, (N,), that is cheapest for the atoms in the lists.
    """
    state, prices, recency = branch
    n_sites, n_atoms = len(state), len(near.start) - 1
    start, _, cost = near
    trial_prices, direction, kept = walk
    best, target = known
    profits, reach = np.empty(n_sites), np.empty(n_atoms, np.int64)
    least, cheapest = np.inf, trial.copy()
    for _ in range(steps):
        value = _sum_profits(near, trial_prices, rest, profits, reach)
        total, worst_in, best_out = _choose_sites(profits, state, p, trial)
        value += total

        if value > kept[0] or least == np.inf:
            paid = cost_by_lists(near, trial)
            if paid < least:
                least = paid
                cheapest[:] = trial
        kept[2] = 0.0 if value > kept[0] + 1e-6 * abs(value) else kept[2] + 1.0
        if value > kept[0]:
            kept[0] = value
            prices[:] = trial_prices
        if kept[0] >= target:
            return PROVEN, cheapest
        for i in range(n_sites):
            recency[i] += RECENT_WEIGHT * (trial[i] - recency[i])
        if _fix_sites(state, trial, profits, value, worst_in, best_out, target):
            return DECIDED, trial.copy()

        if kept[2] >= patience:
            kept[1] *= 0.5
            kept[2] = 0.0
        length = _update_direction(near, trial, reach, direction)
        if kept[1] < LAST_STEP or length == 0.0:
            return CONVERGED, cheapest
        for j in range(n_atoms):
            price = trial_prices[j] + kept[1] * (best - value) / length * direction[j]
            # L knows no sites beyond the list
            trial_prices[j] = min(max(price, cost[start[j]]), cost[start[j + 1] - 1])
    return 0, cheapest


@njit(cache=True, nogil=True)
def _sum_profits(
    near: Lists, prices: FloatArray, rest: tuple[float, FloatArray], profits: FloatArray, reach: IntArray
) -> float:
    """Fill the profits, and in ``reach`` each atom's first list entry that costs its price or more; return Σ_j u_j."""
    start, site, cost = near
    value = rest[0]
    profits[:] = rest[1]
    for j in range(len(prices)):
        price, r = prices[j], start[j]
        value += price
        while r < start[j + 1] and cost[r] < price:
            profits[site[r]] += cost[r] - price
            r += 1
        reach[j] = r
    return value


@njit(cache=True, nogil=True)
def _fix_sites(
    state: NDArray[np.int8],
    trial: BoolArray,
    profits: FloatArray,
    value: float,
    worst_in: float,
    best_out: float,
    target: float,
) -> bool:
    """Fix sites whose opposite choice would raise L to the target; return whether only ``trial`` is left."""
    for i in np.flatnonzero(state == FREE):
        if trial[i]:
            if value - profits[i] + best_out >= target:  # without i, the best site left out takes its place
                state[i] = OPEN
        elif value + profits[i] - worst_in >= target:  # with i, the worst site chosen leaves
            state[i] = CLOSED
    return not (state == FREE).any()


@njit(cache=True, nogil=True)
def _update_direction(near: Lists, trial: BoolArray, reach: IntArray, direction: FloatArray) -> float:
    """Update the direction of prices: up if no chosen site serves an atom, down if several do; return its length²."""
    length = 0.0
    for j in range(len(direction)):
        serving = 0
        for r in range(near.start[j], reach[j]):
            serving += trial[near.site[r]]
        direction[j] = 1 - serving + MOMENTUM * direction[j]
        length += direction[j] ** 2
    return length


@njit(cache=True, nogil=True)
def _choose_sites(profits: FloatArray, state: NDArray[np.int8], p: int, trial: BoolArray) -> tuple[float, float, float]:
    """Set ``trial`` to the OPEN sites and those FREE sites with the smallest profits, p sites in all.

    Return the sum of their profits, the largest profit of a FREE site among them (minus infinity if there is none), and
    the smallest of a FREE site left out (infinity if there is none).
    """
    trial[:] = state == OPEN
    free, wanted = np.flatnonzero(state == FREE), p - trial.sum()
    best_out = np.inf
    if len(free) > wanted:
        free = free[np.argpartition(profits[free], wanted)]
        best_out = profits[free[wanted]]
    trial[free[:wanted]] = True
    worst_in = profits[free[:wanted]].max() if wanted > 0 else -np.inf
    return profits[trial].sum(), worst_in, best_out
