"""Exact p-median of a cost matrix: Lagrangian bounds, interchange, best-first branch and bound.

The problem is to choose a set S of p of the N sites that minimises Σ_j min_{i∈S} c_ij.

==================  ======  ======  ===============================================================
name                symbol  shape   meaning
==================  ======  ======  ===============================================================
``costs``           c_ij    (N, M)  cost of site i serving atom j, weight included
``prices``          u_j     (M,)    Lagrange multiplier of "atom j is served": what it pays for service
``profits``         ρ_i     (N,)    Σ_j min(0, c_ij - u_j): what choosing site i adds, never positive
``ranked``                  (M, N)  sites from the cheapest to the dearest for atom j
``ranked_costs``            (M, N)  costs of these sites, in the same order
``state``                   (N,)    whether site i is FREE, OPEN or CLOSED in this branch
==================  ======  ======  ===============================================================

Prices replace the constraint that every atom is served. Each site can then be judged on its own, and

    L(u) = Σ_j u_j + the sum of ρ_i over p sites: the OPEN ones and the FREE ones with the smallest ρ_i

is at most the optimum for any u. A deflected subgradient ascent raises L almost to the bound of the linear relaxation.
During the ascent, a site is fixed as OPEN or CLOSED once the opposite choice would raise L to the best cost known.
Branching decides the other sites. Times on a plane or a road network leave gaps of about a thousandth and need few
branches. Costs without geometry (independent random numbers) leave gaps of several per cent: a hundred sites are still
easy then, two hundred are not.

References
----------
Cornuejols, G., Fisher, M. L. and Nemhauser, G. L. (1977). Location of bank accounts to optimize float: an analytic
    study of exact and approximate algorithms. Management Science 23(8), 789-810. (The relaxation.)
Held, M., Wolfe, P. and Crowder, H. P. (1974). Validation of subgradient optimization. Mathematical Programming
    6, 62-88. (The step.)
Whitaker, R. A. (1983). A fast algorithm for the greedy interchange for large-scale clustering and median location
    problems. INFOR 21(2), 95-108. (The interchange.)
"""

import time
from collections.abc import Callable
from heapq import heappop, heappush
from typing import TypeAlias

import numpy as np
from numba import njit
from numpy.typing import NDArray

from .._types import BoolArray, FloatArray

_Branch: TypeAlias = tuple[float, int, NDArray[np.int8], FloatArray, FloatArray]
"""A branch of the search: its bound, its serial number, and its arrays `state`, `prices` and `lately`."""
_Problem: TypeAlias = tuple[int, BoolArray, FloatArray, NDArray[np.int32], FloatArray, float]
"""What all branches share: p, forced, costs, ranked, ranked_costs and the tolerance."""

FREE, OPEN, CLOSED = 0, 1, 2

TOLERANCE = 1e-10  # relative to the total cost of an average single site; far above rounding errors
FIRST_STEP, LAST_STEP = 2.0, 0.01  # length of a step, in units of (best - L) / |direction|²
MEMORY = 0.4  # share of the previous direction in the next one; damps zigzagging
RECENT = 0.2  # weight of the newest step in `lately`, the recent frequency with which a site was chosen
ROOT_EFFORT = 3000, 30  # maximum number of steps, and steps without progress after which the step length is halved
BRANCH_EFFORT = 60, 8
QUEUE_BYTES = 400e6  # when the queue exceeds this, new branches are searched depth first, which needs little memory


def minimise(
    costs: FloatArray,
    p: int,
    forced: BoolArray,
    time_limit: float,
    progress: Callable[[int, int], object],
) -> tuple[BoolArray, float]:
    """Find the p sites with the smallest total cost.

    Parameters
    ----------
    costs : ndarray, shape (N, M)
        Cost of site i serving atom j, at least 0.
    p : int
        Number of sites to choose, at most N.
    forced : ndarray of bool, shape (N,)
        Sites that must be chosen, at most p.
    time_limit : float
        Limit in seconds, checked between branches.
    progress : callable
        Called with (branches searched, branches known so far).

    Returns
    -------
    chosen : ndarray of bool, shape (N,)
        Whether each site is chosen.
    lower_bound : float
        Lower bound on the smallest total cost. Infinite if the search was completed: then ``chosen`` is optimal to
        within `TOLERANCE`.
    """
    start = time.monotonic()
    costs = np.ascontiguousarray(costs, dtype=float)
    ranked = np.ascontiguousarray(np.argsort(costs, axis=0, kind="stable").T, dtype=np.int32)
    ranked_costs = np.take_along_axis(costs.T, ranked, axis=1)
    tolerance = TOLERANCE * costs.sum() / len(costs)
    chosen = forced.copy()
    chosen[np.flatnonzero(~forced)[: p - forced.sum()]] = True
    best = _interchange(chosen, costs, forced)

    state = np.where(forced, OPEN, FREE).astype(np.int8)
    prices, lately = ranked_costs[:, : max(2, len(costs) // p)].mean(axis=1), np.empty(len(costs))
    problem = (p, forced, costs, ranked, ranked_costs, tolerance)
    bound, best = _ascend(state, prices, lately, best, chosen, problem, ROOT_EFFORT, True)
    kept = state[ranked] != CLOSED  # drop CLOSED sites, which no better choice uses; the same number in every row
    problem = (p, forced, costs, *(a[kept].reshape(len(a), -1) for a in (ranked, ranked_costs)), tolerance)

    queue: list[_Branch] = []
    dive: list[_Branch] = []  # branches searched depth first: see QUEUE_BYTES
    room = QUEUE_BYTES / (prices.nbytes + lately.nbytes + state.nbytes)
    known, searched = 1, 1
    if bound < best - tolerance:
        queue.append((bound, known, state, prices, lately))
    while queue or dive:
        if time.monotonic() - start > time_limit:
            bounds = [branch[0] for branch in queue + dive]
            return chosen, min((bound for bound in bounds if bound < best - tolerance), default=np.inf)
        bound, _, state, prices, lately = dive.pop() if dive else heappop(queue)
        if bound >= best - tolerance:
            continue
        free = np.flatnonzero(state == FREE)
        site = free[np.abs(lately[free] - 0.5).argmin()]
        for choice in (CLOSED, OPEN):
            branch = state.copy(), prices.copy(), np.empty_like(lately)
            branch[0][site] = choice
            branch_bound, best = _ascend(*branch, best, chosen, problem, BRANCH_EFFORT, False)
            searched += 1
            if branch_bound < best - tolerance:
                known += 1
                entry = (max(bound, branch_bound), known, *branch)
                if len(queue) < room:
                    heappush(queue, entry)
                else:
                    dive.append(entry)
        progress(searched, searched + 2 * (len(queue) + len(dive)))
    progress(searched, searched)
    return chosen, np.inf


@njit(cache=True, nogil=True)
def _ascend(
    state: NDArray[np.int8],
    prices: FloatArray,
    lately: FloatArray,
    best: float,
    chosen: BoolArray,
    problem: _Problem,
    effort: tuple[int, int],
    polish: bool,
) -> tuple[float, float]:
    """Raise the bound of a branch by subgradient steps, and fix sites where the bound allows it.

    The arrays are changed in place: ``state``, ``prices`` (the best found), ``lately`` (how often each site was chosen
    in the last steps) and, if a cheaper choice is found, ``chosen``. ``best`` is the cost of ``chosen`` on entry.
    ``effort`` holds the maximum number of steps and the number of steps without progress after which the step length is
    halved. With ``polish``, the current choice is improved by interchange each time the step length is halved.

    Returns
    -------
    bound : float
        Lower bound on the cost of any choice in this branch that is cheaper than the best known; infinite if there is
        none.
    best : float
        Cost of ``chosen``.
    """
    p, forced, costs, ranked, ranked_costs, tolerance = problem
    n_sites, (n_atoms, n_ranks) = len(state), ranked.shape
    ceiling = _ceiling(state, ranked, ranked_costs)
    trial_prices = np.minimum(prices, ceiling)
    profits, trial = np.empty(n_sites), np.empty(n_sites, dtype=np.bool_)
    slack, direction = np.empty(n_atoms), np.zeros(n_atoms)
    bound, step, stale = -np.inf, FIRST_STEP, 0
    lately[:] = 0.0
    for _ in range(effort[0]):
        profits[:] = 0.0
        for j in range(n_atoms):
            for r in range(n_ranks):
                margin = ranked_costs[j, r] - trial_prices[j]
                if margin >= 0:
                    break
                profits[ranked[j, r]] += margin
        value, worst_in, best_out = _choose(profits, state, p, trial)
        value += trial_prices.sum()

        cost = 0.0
        for j in range(n_atoms):
            slack[j] = 1.0
            served = False
            for r in range(n_ranks):
                pays = ranked_costs[j, r] < trial_prices[j]
                if trial[ranked[j, r]]:
                    if not served:
                        cost += ranked_costs[j, r]
                        served = True
                    if pays:
                        slack[j] -= 1.0
                if served and not pays:
                    break
        if cost < best:
            best = cost
            chosen[:] = trial

        stale = 0 if value > bound + 1e-6 * abs(value) else stale + 1
        if value > bound:
            bound = value
            prices[:] = trial_prices
        target = best - tolerance
        if bound >= target:
            return np.inf, best
        undecided = False
        for i in range(n_sites):
            if state[i] == FREE:
                if trial[i]:
                    if value - profits[i] + best_out >= target:
                        state[i] = OPEN
                elif value + profits[i] - worst_in >= target:
                    state[i] = CLOSED
                undecided |= state[i] == FREE
            lately[i] += RECENT * (trial[i] - lately[i])
        if not undecided:  # the one choice left is `trial`
            return np.inf, best

        if stale >= effort[1]:
            step *= 0.5
            stale = 0
            if polish:
                cost = _interchange(trial, costs, forced)
                if cost < best:
                    best = cost
                    chosen[:] = trial
        length = 0.0
        for j in range(n_atoms):
            direction[j] = slack[j] + MEMORY * direction[j]
            length += direction[j] ** 2
        if step < LAST_STEP or length == 0.0:
            break
        for j in range(n_atoms):
            price = trial_prices[j] + step * (best - value) / length * direction[j]
            trial_prices[j] = min(max(price, ranked_costs[j, 0]), ceiling[j])
    return bound, best


@njit(cache=True, nogil=True)
def _ceiling(state: NDArray[np.int8], ranked: NDArray[np.int32], ranked_costs: FloatArray) -> FloatArray:
    """Return an upper limit on each atom's price (Lagrange multiplier), shape (M,).

    A price above the cost of the atom's cheapest OPEN site cannot raise the lower bound; if no site is OPEN, the limit
    is the cost of its most expensive site.
    """
    n_atoms, n_ranks = ranked.shape
    ceiling = np.empty(n_atoms)
    for j in range(n_atoms):
        r = 0
        while r < n_ranks - 1 and state[ranked[j, r]] != OPEN:
            r += 1
        ceiling[j] = ranked_costs[j, r]
    return ceiling


@njit(cache=True, nogil=True)
def _choose(profits: FloatArray, state: NDArray[np.int8], p: int, trial: BoolArray) -> tuple[float, float, float]:
    """Set ``trial`` to the OPEN sites and those FREE sites with the smallest profits, p sites in all.

    Returns
    -------
    total, worst_in, best_out : float
        Sum of the profits of these p sites; the largest profit of a FREE site among them (minus infinity if there is
        none); the smallest profit of a FREE site left out (infinity if there is none).
    """
    trial[:] = state == OPEN
    free = np.flatnonzero(state == FREE)
    free = free[np.argsort(profits[free], kind="mergesort")]
    wanted, total = p - trial.sum(), 0.0
    for i in np.append(np.flatnonzero(trial), free[:wanted]):
        trial[i] = True
        total += profits[i]
    worst_in = profits[free[wanted - 1]] if wanted > 0 else -np.inf
    best_out = profits[free[wanted]] if len(free) > wanted else np.inf
    return total, worst_in, best_out


@njit(cache=True, nogil=True)
def _interchange(chosen: BoolArray, costs: FloatArray, forced: BoolArray) -> float:
    """Improve ``chosen`` in place, by exchanges of a chosen site for another one; return the total cost.

    Each step makes the exchange that lowers the total cost most, until none lowers it. Forced sites are kept.
    """
    n_sites, n_atoms = costs.shape
    nearest, first, second = np.empty(n_atoms, np.int64), np.empty(n_atoms), np.empty(n_atoms)
    loss, saved = np.empty(n_sites), np.empty(n_sites)
    dearest = costs.max()  # serves as second-best cost if only one site is chosen; it cancels out
    while True:
        members = np.flatnonzero(chosen)
        for j in range(n_atoms):
            first[j], second[j] = np.inf, dearest
            for k in members:
                if costs[k, j] < first[j]:
                    second[j] = min(first[j], dearest)
                    first[j], nearest[j] = costs[k, j], k
                elif costs[k, j] < second[j]:
                    second[j] = costs[k, j]
        for k in members:
            loss[k] = 0.0  # increase of the cost if member k is dropped
        for j in range(n_atoms):
            loss[nearest[j]] += second[j] - first[j]
        gain, enters, leaves = 1e-12 * first.sum(), -1, members[0]
        for i in range(n_sites):
            if chosen[i]:
                continue
            entry = 0.0  # decrease of the cost if site i is added
            for k in members:
                saved[k] = 0.0  # part of loss[k] that adding site i avoids
            for j in range(n_atoms):
                if costs[i, j] < first[j]:
                    entry += first[j] - costs[i, j]
                    saved[nearest[j]] += second[j] - first[j]
                elif costs[i, j] < second[j]:
                    saved[nearest[j]] += second[j] - costs[i, j]
            for k in members:
                if not forced[k] and entry - loss[k] + saved[k] > gain:
                    gain, enters, leaves = entry - loss[k] + saved[k], i, k
        if enters < 0:
            return first.sum()
        chosen[enters], chosen[leaves] = True, False
