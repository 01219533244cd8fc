"""Find the cheapest walk through deployments: one for each hour, with few relocated units between hours.

A deployment is a state, given by the number of units in each twin group. The cost of each hour in each state
is known, and at most k units move between two hours. Over *all* deployments of a fleet, k moves are k steps
of one move each, because all intermediate deployments are allowed. Over a selection of deployments, the moves
between any two states are counted.

If the walk may end anywhere, dynamic programming solves the problem. If it must close, branch and bound
splits the states of the first hour: the best walk that starts and ends in the same part, though not
necessarily in the same state, gives a lower bound for that part.
"""

import heapq
from typing import NamedTuple

import numpy as np
from numba import njit

PER_MOVE = 1e-9  # breaks ties in favour of fewer moves
MOST_PARTS = 2000


class Steps(NamedTuple):
    """Transitions in one round of moves: from state ``a`` to ``targets[starts[a]:starts[a + 1]]``."""

    starts: np.ndarray  # (K + 1,)
    targets: np.ndarray
    moves: np.ndarray  # units that move to reach each target
    rounds: int  # between two hours


class Walk(NamedTuple):
    """A walk, its cost and a lower bound."""

    states: np.ndarray  # (H,)
    cost: float  # of the hours, without the price of moves
    bound: float  # no walk over these states costs less


def group_counts(rows, groups):
    """Count the units of deployments, shape (K, p), in each twin group, shape (K, G)."""
    counts = np.zeros((len(rows), groups.max() + 1), dtype=np.int64)
    np.add.at(counts, (np.arange(len(rows))[:, None], groups[rows]), 1)
    return counts


def all_steps(counts, floors, capacities, most):
    """Return the one-move steps between all deployments of a fleet, with up to ``most`` rounds per hour."""
    # The key of a state is a sum over its units, so a move changes it by a known difference.
    rng = np.random.default_rng(0)
    while True:
        weights = rng.integers(1, 2**62, counts.shape[1])
        keys = counts @ weights  # overflow wraps around, which is harmless
        order = np.argsort(keys)
        if (np.diff(keys[order]) != 0).all():
            break
    starts, targets = _single_moves(counts, floors, capacities, keys, keys[order], order, weights)
    return Steps(starts, targets, np.ones(len(targets), dtype=np.int64), most)


def some_steps(counts, most):
    """Return the steps between selected deployments, with up to ``most`` moves at once."""
    starts, targets, moves = _pairs_within(counts, most)
    return Steps(starts, targets, moves, min(most, 1))


def cheapest_walk(costs, steps, counts, *, closed):
    """Find the cheapest walk.

    Parameters
    ----------
    costs : ndarray, shape (H, K)
        Cost of each hour in each state.
    steps : Steps
    counts : ndarray, shape (K, G)
        Units of each state in each twin group; used only to split the states.
    closed : bool
        Whether moves from the last hour to the first are limited too.

    Returns
    -------
    Walk
        Its ``cost`` equals its ``bound`` up to the price that breaks ties, unless there were too many parts.
    """
    ties = PER_MOVE * steps.rounds * int(steps.moves.max(initial=0)) * len(costs)
    everything = np.arange(costs.shape[1])
    value, path, _ = _best_path(costs, steps, everything, closed=closed)
    if not closed or len(path) == len(costs):
        return _walk(costs, path, value - ties)
    best_value, best = np.inf, None
    parts, number = [(value, 0, everything, path)], 0
    while parts and parts[0][0] < best_value and number < MOST_PARTS:
        _, _, part, path = heapq.heappop(parts)
        for state in (path[0], path[-1]):
            value, closing, _ = _best_path(costs, steps, np.array([state]), closed=True)
            if value < best_value:
                best_value, best = value, closing
        group = int(np.argmax(counts[path[0]] != counts[path[-1]]))
        few = counts[part, group] <= min(counts[path[0], group], counts[path[-1], group])
        for half in (part[few], part[~few]):
            value, path, ends_where_it_began = _best_path(costs, steps, half, closed=True)
            if ends_where_it_began and value < best_value:
                best_value, best = value, path
            elif not ends_where_it_began and value < best_value:
                number += 1
                heapq.heappush(parts, (value, number, half, path))
    bound = min(parts[0][0], best_value) if parts else best_value
    return _walk(costs, best, bound - ties)


def _walk(costs, path, bound):
    cost = float(costs[np.arange(len(path)), path].sum())
    return Walk(path, cost, min(bound, cost))


def _best_path(costs, steps, part, *, closed):
    """Find the cheapest walk that starts (and, if closed, ends) in a part of the states.

    Returns
    -------
    value : float
        Cost, including the price of moves.
    path : ndarray
        The states of the H hours, followed by the state after the last step if that differs from the first.
    ends_where_it_began : bool
    """
    values = np.full(costs.shape[1], np.inf)
    values[part] = costs[0, part]
    history = []  # values after each round of moves
    for hour in range(1, len(costs)):
        history.append(_rounds(values, steps))
        values = history[-1][-1] + costs[hour]
    if closed:
        history.append(_rounds(values, steps))
        values = history[-1][-1]
    candidates = part if closed else np.arange(costs.shape[1])
    state = int(candidates[np.argmin(values[candidates])])
    value, path = float(values[state]), [state]
    for rounds in reversed(history):
        for k in range(len(rounds) - 1, 0, -1):
            state = _before(state, rounds[k - 1], rounds[k], steps)
        path.append(state)
    path = np.array(path[::-1])
    if closed and path[0] == path[-1]:
        return value, path[:-1], True
    return value, path, not closed


def _rounds(values, steps):
    result = [values]
    for _ in range(steps.rounds):
        result.append(_spread(result[-1], steps.starts, steps.targets, steps.moves, PER_MOVE))
    return result


def _before(state, values, after, steps):
    """Return the state in which a round that ended in ``state`` began."""
    if after[state] == values[state]:
        return state
    ways = slice(steps.starts[state], steps.starts[state + 1])
    targets = steps.targets[ways]
    return int(targets[np.argmin(values[targets] + PER_MOVE * steps.moves[ways])])


@njit(cache=True)
def _spread(values, starts, targets, moves, price):
    """Return for each state the least value among itself and, plus the price of moves, its neighbours."""
    result = values.copy()
    for state in range(len(values)):
        for way in range(starts[state], starts[state + 1]):
            value = values[targets[way]] + price * moves[way]
            result[state] = min(result[state], value)
    return result


@njit(cache=True)
def _single_moves(counts, floors, capacities, keys, sorted_keys, order, weights):
    n_states, n_groups = counts.shape
    starts = np.zeros(n_states + 1, dtype=np.int64)
    for state in range(n_states):
        gives = takes = both = 0
        for g in range(n_groups):
            give, take = counts[state, g] > floors[g], counts[state, g] < capacities[g]
            gives += give
            takes += take
            both += give and take
        starts[state + 1] = starts[state] + gives * takes - both
    targets = np.empty(starts[-1], dtype=np.int32)
    for state in range(n_states):
        way = starts[state]
        for i in range(n_groups):
            if counts[state, i] <= floors[i]:
                continue
            for k in range(n_groups):
                if k != i and counts[state, k] < capacities[k]:
                    key = keys[state] - weights[i] + weights[k]
                    targets[way] = order[np.searchsorted(sorted_keys, key)]
                    way += 1
    return starts, targets


@njit(cache=True)
def _pairs_within(counts, most):
    n_states, n_groups = counts.shape
    starts = np.zeros(n_states + 1, dtype=np.int64)
    targets, moves = np.empty(0, dtype=np.int32), np.empty(0, dtype=np.int64)
    for counting in (True, False):
        if not counting:
            targets, moves = np.empty(starts[-1], dtype=np.int32), np.empty(starts[-1], dtype=np.int64)
        way = 0
        for a in range(n_states):
            for b in range(n_states):
                moved = 0
                for g in range(n_groups):
                    moved += max(counts[a, g] - counts[b, g], 0)
                if 0 < moved <= most:
                    if not counting:
                        targets[way], moves[way] = b, moved
                    way += 1
            if counting:
                starts[a + 1] = way
    return starts, targets, moves
