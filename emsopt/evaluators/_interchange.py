"""Swaps of one site for another, all valued at once from the nearest and second nearest chosen site of each atom.

References
----------
Resende, M. G. C. and Werneck, R. F. (2007). A fast swap-based local search procedure for location problems. Annals of
    Operations Research 150, 205-230.
"""

import numpy as np
from numba import njit

from .._types import BoolArray, FloatArray, IntArray
from ._nearest_sites import Lists


@njit(cache=True, nogil=True)
def swap_changes(near: Lists, members: IntArray, n_sites: int) -> FloatArray:
    """Return how the total cost changes if one member leaves and another site enters, for all such swaps.

    Parameters
    ----------
    near : Lists
        Nearest sites of each atom; of a matrix, ``lists_of(matrix_costs(times, weights), np.arange(M), N)``.
    members : ndarray of int, shape (p,)
        Sites chosen; a site that occurs twice keeps a unit if one leaves.
    n_sites : int
        Number of sites N.

    Returns
    -------
    ndarray, shape (p, N)
        Entry (k, i) is the change if ``members[k]`` leaves and site i enters; without meaning if i is a member. Exact
        if the lists are complete, or hold two members each.
    """
    change, leave, enter = np.zeros((len(members), n_sites)), np.zeros(len(members)), np.zeros(n_sites)
    place, shared = np.full(n_sites + 1, -1), np.zeros(n_sites + 1, np.bool_)
    for k in range(len(members)):
        shared[members[k]] = place[members[k]] >= 0
        place[members[k]] = k
    start, site, cost = near
    for j in range(len(start) - 1):
        nearest, first, second = -1, cost[start[j + 1] - 1], cost[start[j + 1] - 1]
        for r in range(start[j], start[j + 1]):
            if place[site[r]] >= 0:
                if nearest < 0:
                    nearest, first = place[site[r]], cost[r]
                    if not shared[site[r]]:
                        continue
                second = cost[r]
                break
        if nearest >= 0:
            leave[nearest] += second - first
        for r in range(start[j], start[j + 1]):
            if cost[r] >= second:
                break
            if cost[r] < first:
                enter[site[r]] -= first - cost[r]
            if nearest >= 0:
                change[nearest, site[r]] -= second - max(cost[r], first)
    for k in range(len(members)):
        for i in range(n_sites):
            change[k, i] += leave[k] + enter[i]
    return change


@njit(cache=True, nogil=True)
def interchange(near: Lists, members: IntArray, forced: BoolArray, allowed: BoolArray, most: int) -> tuple[int, bool]:
    """Improve ``members`` in place by at most so many swaps, each the best one; return their number, and if it ended.

    Forced sites stay, and only allowed sites enter.
    """
    n_sites = len(forced)
    enterable = allowed.copy()
    enterable[members] = False
    least_gain = 1e-13 * near.cost[near.start[1:] - 1].sum()
    for done in range(most):
        change = swap_changes(near, members, n_sites)
        least, leaves, enters = -least_gain, -1, -1
        for k in range(len(members)):
            if not forced[members[k]]:
                for i in range(n_sites):
                    if change[k, i] < least and enterable[i]:
                        least, leaves, enters = change[k, i], k, i
        if enters < 0:
            return done + 1, True
        enterable[members[leaves]], enterable[enters] = allowed[members[leaves]], False
        members[leaves] = enters
    return most, False


@njit(cache=True, nogil=True)
def alone(near: Lists, members: IntArray, n_sites: int) -> IntArray:
    """Return the atoms whose lists hold fewer than two members."""
    chosen = np.zeros(n_sites + 1, np.bool_)
    chosen[members] = True
    alone = np.zeros(len(near.start) - 1, np.bool_)
    for j in range(len(alone)):
        found = 0
        for r in range(near.start[j], near.start[j + 1]):
            found += chosen[near.site[r]]
            if found == 2:
                break
        alone[j] = found < 2
    return np.flatnonzero(alone)
