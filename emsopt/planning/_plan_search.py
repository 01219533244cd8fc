"""Search for the plan of a day: a deployment for each hour, with few units relocated between hours.

A deployment is a *state*, given by the number of units in each twin group (group of interchangeable sites), and a plan
is a *walk*: a state for each hour, with at most k units moved between two hours. Its cost is the sum of the costs of
the hours. If *all* deployments of a fleet are states, k moves are replaced by k steps of one move each, because all
intermediate deployments are allowed. For a selection, the number of moves between each two states is computed.

The walk must return to its first state, as a day repeats. Branch and bound splits the states of the first hour into
parts: the best walk that starts and ends in the same part, though not necessarily in the same state, is found by
dynamic programming and gives a lower bound for that part.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from typing import NamedTuple, cast

import numpy as np
from numba import njit
from scipy.spatial.distance import cdist

from ..city import travel
from ..city.city import City
from ..city.deployment_space import DeploymentSpace
from ..errors import _validate
from ..errors._types import BoolArray, FloatArray, IntArray, Rng
from ..evaluators.objective import Objective
from ..optimizers.deployments.swaps import enumeration_limit
from .sweeps import search_with_start

MOST_STATES = 50_000  # deployments up to which all are evaluated at all hours; for more this takes too long
MOST_STEPS = 30_000_000  # pairs of deployments that differ by one move; a list of more takes too much memory
MOST_CANDIDATES = 4000
MOST_ROUNDS = 20
MOST_PARTS = 2000


class Steps(NamedTuple):
    """Steps allowed in one round between K states: from state ``a`` to ``targets[starts[a]:starts[a + 1]]``."""

    starts: IntArray  # (K + 1,)
    targets: IntArray
    prices: FloatArray  # of the units that move to reach each target
    rounds: int  # rounds between two hours: one per move if steps are single moves


class Walk(NamedTuple):
    """A state for each of H hours, the cost of this walk, and a lower bound on the cost of any walk."""

    states: IntArray  # (H,)
    cost: float  # sum over the hours, without the price of moves
    bound: float  # lower bound on the cost of any walk over these states


def can_enumerate(objectives: list[Objective]) -> bool:
    """Return whether it is quick to evaluate all deployments at all hours and to list all moves between them."""
    space = objectives[0].space
    places = int((space.capacities > space.floors).sum())
    steps = space.count * places * min(places, space.units)
    each = enumeration_limit(objectives[0]) / len(objectives)
    return space.count <= min(MOST_STATES, each) and steps <= MOST_STEPS


def plan_by_enumeration(
    objectives: list[Objective], weights: FloatArray, most: int, price: float, show: Callable[[int], object]
) -> tuple[IntArray, FloatArray, Walk]:
    """Return all deployments, shape (K, p), their values at each hour, (H, K), and the cheapest walk over them.

    ``weights``, shape (H,), are the shares of the calls. At most ``most`` units move between hours, at ``price`` each.
    """
    space = objectives[0].space
    rows = space.listing()
    values = np.empty((len(objectives), len(rows)))
    for hour, objective in enumerate(objectives):
        values[hour] = objective.values(rows)
        show(hour + 1)
    counts = space.group_counts(rows)
    steps = one_move_steps(counts, space.floors, space.capacities, most, price)
    return rows, values, cheapest_walk(weights[:, None] * values, steps, counts)


def plan_by_search(
    objectives: list[Objective], weights: FloatArray, most: int, price: float, rng: Rng, show: Callable[[int], object]
) -> tuple[IntArray, FloatArray, Walk]:
    """Search each hour, then improve the plan by neighbours of its deployments until none helps or a limit is reached.

    Return what `plan_by_enumeration` returns, for the deployments tried; the walk's bound is NaN.
    """
    space = objectives[0].space
    rng = _validate.generator(rng)
    bests: list[IntArray] = []
    before = None
    for done, objective in enumerate(objectives, 1):
        before = cast("IntArray", search_with_start(objective, before, rng=rng, restarts=2).x)
        bests.append(before)
        show(done)
    centres = [*bests, *deployments_between(bests, space)]
    pool: dict[tuple[int, ...], None] = {}
    values, cost = np.empty((len(objectives), 0)), np.inf
    for _ in range(MOST_ROUNDS):
        near = dict.fromkeys(tuple(row.tolist()) for x in centres for row in (x, *space.neighbours(x)))
        fresh = [row for row in near if row not in pool][: MOST_CANDIDATES - len(pool)]
        if not fresh:
            break
        pool |= dict.fromkeys(fresh)
        rows = np.array(list(pool))
        values = np.hstack([values, [objective.values(fresh) for objective in objectives]])
        counts = space.group_counts(rows)
        steps = steps_between(counts, most, price)
        walk = cheapest_walk(weights[:, None] * values, steps, counts)
        if walk.cost >= cost - 1e-12:
            break
        cost, centres = walk.cost, [*rows[walk.states], rows[np.argmin(weights @ values)]]
    return rows, values, walk._replace(bound=np.nan)


def deployments_between(bests: list[IntArray], space: DeploymentSpace) -> Iterator[IntArray]:
    """Yield the deployments, (p,), between those of consecutive hours, if units move one after the other."""
    for k, best in enumerate(bests):
        way = list(best)
        for left, taken in moves_between(best, bests[k - 1], space.city)[:-1]:
            way[way.index(left)] = taken
            yield space.canonical(way)


def moves_between(before: IntArray, after: IntArray, city: City) -> list[tuple[int, int]]:
    """Return the old and new site of each unit that moves; known locations are paired to keep distances short."""
    groups = city.twin_groups
    left, taken = list(before), list(after)
    for site in before:  # keep units in place where possible, or else at a twin site
        twin = next((other for other in taken if groups[other] == groups[site]), None)
        if twin is not None:
            left.remove(site)
            taken.remove(twin)
    if len(left) > 1 and city.site_locations is not None:
        from scipy.optimize import linear_sum_assignment

        distance = travel.great_circle_km if city.geographic else travel.plane_km
        _, order = linear_sum_assignment(distance(city.site_locations[left], city.site_locations[taken]))
        taken = [taken[k] for k in order]
    return list(zip(left, taken, strict=True))


def one_move_steps(counts: IntArray, floors: IntArray, capacities: IntArray, most: int, price: float) -> Steps:
    """Return the one-move steps between all deployments of a fleet, with up to ``most`` rounds per hour.

    ``counts``, shape (K, G), has the units of each deployment in each twin group; ``floors`` and ``capacities``, shape
    (G,), the fewest and most that a group may have. A move costs ``price``.
    """
    # The key of a state is a sum over its units, so a move changes it by a known difference. Overflow is harmless.
    # Keys are random numbers of 62 bits: two states never share one in practice.
    weights = np.random.default_rng(0).integers(1, 2**62, size=counts.shape[1:])
    keys = counts @ weights
    order = np.argsort(keys)
    gives, takes = counts > floors, counts < capacities
    ways = gives.sum(axis=1) * takes.sum(axis=1) - (gives & takes).sum(axis=1)
    starts = np.r_[0, np.cumsum(ways)]
    targets = _targets_of_moves(gives, takes, keys, keys[order], order, weights, starts)
    return Steps(starts, targets, np.full(len(targets), price), most)


def steps_between(counts: IntArray, most: int, price: float) -> Steps:
    """Return the steps of up to ``most`` moves between some deployments, one round per hour; see `one_move_steps`."""
    moves = cdist(counts, counts, "cityblock") // 2
    sources, targets = np.nonzero((moves > 0) & (moves <= most))
    starts = np.searchsorted(sources, np.arange(len(counts) + 1))
    return Steps(starts, targets, price * moves[sources, targets], min(most, 1))


def cheapest_walk(costs: FloatArray, steps: Steps, counts: IntArray) -> Walk:
    """Find the cheapest walk over K states, given the cost of each hour in each state, shape (H, K).

    ``counts``, shape (K, G), are the units in each twin group, by which states are split into parts. Unless there are
    too many parts, the walk is optimal, and ``bound`` is below ``cost`` by at most the price of the moves.
    """
    everything = np.arange(costs.shape[1])
    value, path = _best_path(costs, steps, everything)
    best_value, best = (value, path) if len(path) == len(costs) else (np.inf, path)
    # A path with H + 1 states does not end in its first state. It gives only a bound for its part, which is then split.
    parts, number = [(value, 0, everything, path)], 0
    while parts and parts[0][0] < best_value and number <= MOST_PARTS:
        _, _, part, path = heapq.heappop(parts)
        first, last = counts[path[[0, -1]]]
        group = int(np.argmax(first != last))
        few = counts[part, group] <= min(first[group], last[group])
        for some in (path[:1], path[-1:], part[few], part[~few]):
            value, path = _best_path(costs, steps, some)
            if value < best_value and len(path) == len(costs):
                best_value, best = value, path
            elif value < best_value:
                number += 1
                heapq.heappush(parts, (value, number, some, path))
    bound = min(parts[0][0], best_value) if parts else best_value
    cost = float(costs[np.arange(len(best)), best].sum())
    ties = steps.rounds * float(steps.prices.max(initial=0)) * len(costs)
    return Walk(best, cost, min(bound - ties, cost))


def _best_path(costs: FloatArray, steps: Steps, part: IntArray) -> tuple[float, IntArray]:
    """Find the cheapest walk that starts and ends in a part of the states.

    Return its cost, with the price of moves, and its state in each hour, shape (H,). If the walk ends in another state
    than its first, that state is added, (H + 1,), and the cost is only a lower bound.
    """
    values = np.full(costs.shape[1], np.inf)
    values[part] = costs[0, part]
    history = []  # for each hour and round of moves, the state from which each state is reached
    for cost in [*costs[1:], 0.0]:
        rounds = []
        for _ in range(steps.rounds):
            values, origins = _costs_after_round(values, steps.starts, steps.targets, steps.prices)
            rounds.append(origins)
        history.append(rounds)
        values = values + cost
    state = int(part[np.argmin(values[part])])
    value, path = float(values[state]), [state]
    for rounds in reversed(history):
        for origins in reversed(rounds):
            state = int(origins[state])
        path.append(state)
    path.reverse()
    return value, np.array(path[:-1] if path[0] == path[-1] else path)


@njit(cache=True)
def _costs_after_round(
    values: FloatArray, starts: IntArray, targets: IntArray, prices: FloatArray
) -> tuple[FloatArray, IntArray]:
    """Return the smallest cost of reaching each state after one more round, (K,), and from which state, (K,).

    ``values``, shape (K,), are the costs before the round. Staying in a state is free.
    """
    least, origins = values.copy(), np.arange(len(values))
    for state in range(len(values)):
        for way in range(starts[state], starts[state + 1]):
            value = values[targets[way]] + prices[way]
            if value < least[state]:
                least[state], origins[state] = value, targets[way]
    return least, origins


@njit(cache=True)
def _targets_of_moves(
    gives: BoolArray,
    takes: BoolArray,
    keys: IntArray,
    sorted_keys: IntArray,
    order: IntArray,
    weights: IntArray,
    starts: IntArray,
) -> IntArray:
    """Return the states that each of K states reaches by moving one unit, one after the other, as `Steps.targets`.

    A move from group i to k adds weights[k] - weights[i] to the key of a state. ``gives`` and ``takes``, shape (K, G),
    are whether a group can lose or gain a unit in each state; ``order`` sorts ``keys``.
    """
    targets = np.empty(starts[-1], dtype=np.int32)
    way = 0
    for state in range(len(gives)):
        free = np.flatnonzero(takes[state])
        for i in np.flatnonzero(gives[state]):
            for k in free:
                if k != i:
                    key = keys[state] - weights[i] + weights[k]
                    targets[way] = order[np.searchsorted(sorted_keys, key)]
                    way += 1
    return targets
