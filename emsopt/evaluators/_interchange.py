"""Swaps of one site for another, all valued at once from the nearest and second nearest chosen site of each atom.

References
----------
Resende, M. G. C. and Werneck, R. F. (2007). A fast swap-based local search procedure for location problems. Annals of
    Operations Research 150, 205-230.
"""

import numpy as np
from numba import njit

from .._types import BoolArray, FloatArray, IntArray
from ._nearest_sites import Listing, Lists


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
    values = np.zeros((len(members), n_sites)), np.zeros(len(members)), np.zeros(n_sites)
    places = _places(members, n_sites)
    for j in range(len(near.start) - 1):
        _count(near, j, places, values, 1)
    change, leave, enter = values
    for k in range(len(members)):
        for i in range(n_sites):
            change[k, i] += leave[k] + enter[i]
    return change


@njit(cache=True, nogil=True)
def interchange(
    near: Lists, listing: Listing, members: IntArray, forced: BoolArray, allowed: BoolArray, most: int
) -> tuple[int, bool]:
    """Improve ``members`` in place by at most so many swaps, each the best one; return their number, and if it ended.

    Forced sites stay, and only allowed sites enter. After a swap only those atoms are counted anew for which the site
    that left or entered is among the two nearest members.
    """
    n_sites, n_atoms = len(forced), len(near.start) - 1
    enterable = allowed.copy()
    enterable[members] = False
    least_gain = 1e-12 * near.cost[near.start[1:] - 1].sum()
    change, leave, enter = np.zeros((len(members), n_sites)), np.zeros(len(members)), np.zeros(n_sites)
    values, places = (change, leave, enter), _places(members, n_sites)
    place, _ = places
    second, waits = np.empty(n_atoms), np.zeros(n_atoms, np.bool_)
    for j in range(n_atoms):
        second[j] = _count(near, j, places, values, 1)
    for done in range(most):
        least, leaves, enters = -least_gain, -1, -1
        for k in range(len(members)):
            if not forced[members[k]]:
                for i in range(n_sites):
                    total = change[k, i] + leave[k] + enter[i]
                    if total < least and enterable[i]:
                        least, leaves, enters = total, k, i
        if enters < 0:
            return done, True
        left = members[leaves]
        for i in (left, enters):
            for q in range(listing.start[i], listing.start[i + 1]):
                j = listing.atom[q]
                if near.cost[listing.entry[q]] <= second[j] and not waits[j]:
                    waits[j] = True
                    _count(near, j, places, values, -1)
        enterable[left], enterable[enters] = allowed[left], False
        place[left], place[enters], members[leaves] = -1, leaves, enters
        change[leaves], leave[leaves] = 0.0, 0.0
        for i in (left, enters):
            for q in range(listing.start[i], listing.start[i + 1]):
                j = listing.atom[q]
                if waits[j]:
                    waits[j] = False
                    second[j] = _count(near, j, places, values, 1)
    return most, False


@njit(cache=True, nogil=True)
def _places(members: IntArray, n_sites: int) -> tuple[IntArray, BoolArray]:
    """Return the place of each site among the members, -1 for the others, and whether it is there more than once."""
    place, shared = np.full(n_sites + 1, -1), np.zeros(n_sites + 1, np.bool_)
    for k in range(len(members)):
        shared[members[k]] = place[members[k]] >= 0
        place[members[k]] = k
    return place, shared


@njit(cache=True, nogil=True)
def _count(
    near: Lists,
    j: int,
    places: tuple[IntArray, BoolArray],
    values: tuple[FloatArray, FloatArray, FloatArray],
    sign: int,
) -> float:
    """Add what atom j contributes to the values of all swaps, or subtract it; return the cost of its second member."""
    (place, shared), (change, leave, enter) = places, values
    start, site, cost = near
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
        leave[nearest] += sign * (second - first)
    for r in range(start[j], start[j + 1]):
        if cost[r] >= second:
            break
        if cost[r] < first:
            enter[site[r]] -= sign * (first - cost[r])
        if nearest >= 0:
            change[nearest, site[r]] -= sign * (second - max(cost[r], first))
    return second


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
