"""Lists of the nearest sites of each atom, and the interchange heuristic, which swaps one chosen site for another.

The *members* are the chosen sites. All swaps are valued together, from the two nearest members of each atom.

References
----------
Resende, M. G. C. and Werneck, R. F. (2007). A fast swap-based local search procedure for location problems. Annals of
    Operations Research 150, 205-230.
"""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ..errors._types import BoolArray, FloatArray, IntArray

SwapValues: TypeAlias = tuple[FloatArray, FloatArray, FloatArray]  # of pairs (p, N), members (p,) and sites (N,)
FREE, OPEN, CLOSED = 0, 1, 2  # whether a site is undecided, chosen or excluded
EXTRA_ENTRIES = 8  # entries of a list beyond twice those that its atom pays, so that its price may rise


# Compiled code in caches names these classes: it cannot be loaded any more if they are renamed.
class Lists(NamedTuple):
    """The nearest sites of each atom, nearest first.

    Entries ``start[j]`` to ``start[j + 1] - 1`` belong to atom j. If some sites are not listed, the last entry is the
    index N, which stands for these, at the cost of the last site listed: none of them is cheaper.
    """

    start: IntArray
    site: NDArray[np.int32]
    cost: FloatArray


class Listing(NamedTuple):
    """The atoms whose `Lists` contain each site i: entries ``start[i]`` to ``start[i + 1] - 1`` of ``atom``.

    ``entry`` is the index of i in `Lists.site`.
    """

    start: IntArray
    atom: NDArray[np.int32]
    entry: IntArray


class Costs(NamedTuple):
    """Costs c_ij of N sites serving M atoms, computed on demand.

    ``nearest(atoms, k)`` returns the k nearest sites of m atoms and their costs in ascending order, (m, k), and
    ``of(sites)`` the costs of s sites for all atoms, (s, M).
    """

    n_sites: int
    n_atoms: int
    nearest: Callable[[IntArray, int], tuple[NDArray[np.int32], FloatArray]]
    of: Callable[[IntArray], FloatArray]


def matrix_costs(times: FloatArray, weights: FloatArray) -> Costs:
    """Return the `Costs` times_ij weights_j, for times of shape (N, M) and weights of shape (M,)."""
    n_sites, n_atoms = times.shape

    def nearest(atoms: IntArray, k: int) -> tuple[NDArray[np.int32], FloatArray]:
        sites, costs = np.empty((len(atoms), k), np.int32), np.empty((len(atoms), k))
        rows = max(1, 1_000_000 // n_sites)  # atoms at a time: their copy then takes 8 MB, not as much as the matrix
        for a in range(0, len(atoms), rows):
            part = np.ascontiguousarray(times[:, atoms[a : a + rows]].T)
            some = np.argpartition(part, k - 1, axis=1)[:, :k] if k < n_sites else np.arange(n_sites)[None]
            some = np.sort(some, axis=1)  # so that ties go to the lower index
            order = np.argsort(np.take_along_axis(part, some, axis=1), axis=1, kind="stable")
            some = np.take_along_axis(np.broadcast_to(some, (len(part), k)), order, axis=1)
            sites[a : a + rows] = some
            costs[a : a + rows] = np.take_along_axis(part, some, axis=1) * weights[atoms[a : a + rows], None]
        return sites, costs

    return Costs(n_sites, n_atoms, nearest, lambda sites: times[sites] * weights)


def lists_of(costs: Costs, atoms: IntArray, k: int) -> Lists:
    """Return the `Lists` of the k nearest sites of some atoms."""
    sites, near = costs.nearest(atoms, k)
    if k < costs.n_sites:
        sites = np.column_stack([sites, np.full(len(sites), costs.n_sites, np.int32)])
        near = np.column_stack([near, near[:, -1]])
    start = np.arange(len(sites) + 1) * sites.shape[1]
    return Lists(start, np.ascontiguousarray(sites).ravel(), np.ascontiguousarray(near).ravel())


@njit(cache=True, nogil=True)
def replace_lists(near: Lists, atoms: IntArray, more: Lists) -> Lists:
    """Return the lists ``near`` with those of ``atoms`` replaced by ``more``."""
    which = np.full(len(near.start) - 1, -1)
    which[atoms] = np.arange(len(atoms))
    length = near.start[1:] - near.start[:-1]
    length[atoms] = more.start[1:] - more.start[:-1]
    start = np.zeros_like(near.start)
    start[1:] = np.cumsum(length)
    site, cost = np.empty(start[-1], near.site.dtype), np.empty(start[-1])
    for j in range(len(which)):
        source, k = (near, j) if which[j] < 0 else (more, which[j])
        site[start[j] : start[j + 1]] = source.site[source.start[k] : source.start[k + 1]]
        cost[start[j] : start[j + 1]] = source.cost[source.start[k] : source.start[k + 1]]
    return Lists(start, site, cost)


@njit(cache=True, nogil=True)
def listing_of(near: Lists, n_sites: int) -> Listing:
    """Return the `Listing` of the lists ``near`` of N sites."""
    start = np.zeros(n_sites + 2, np.int64)  # one more, as lists may end with the site N that does not exist
    for i in near.site:
        start[i + 1] += 1
    start = np.cumsum(start)
    atom, entry, filled = np.empty(start[n_sites], np.int32), np.empty(start[n_sites], np.int64), start.copy()
    for j in range(len(near.start) - 1):
        for r in range(near.start[j], near.start[j + 1]):
            i = near.site[r]
            if i < n_sites:
                atom[filled[i]], entry[filled[i]] = j, r
                filled[i] += 1
    return Listing(start, atom, entry)


@njit(cache=True, nogil=True)
def swap_changes(near: Lists, members: IntArray, n_sites: int) -> FloatArray:
    """Return how the total cost changes if ``members[k]`` leaves and site i enters, for all such swaps, shape (p, N).

    ``members`` are the p sites chosen; one that occurs twice keeps a unit if one leaves. Entries of sites i that are
    members have no meaning; the others are exact if the lists are complete, or hold two members each.
    """
    values = np.zeros((len(members), n_sites)), np.zeros(len(members)), np.zeros(n_sites)
    _add_all_atoms(near, _positions(members, n_sites), values)
    change, leave, enter = values
    for k in range(len(members)):
        for i in range(n_sites):
            change[k, i] += leave[k] + enter[i]
    return change


@njit(cache=True, nogil=True)
def interchange(
    near: Lists, listing: Listing, members: IntArray, forced: BoolArray, allowed: BoolArray, most: int
) -> tuple[int, bool]:
    """Improve ``members`` in place by up to ``most`` best swaps; return their number, and whether no other improves."""
    n_sites = len(forced)
    enterable = allowed.copy()
    enterable[members] = False
    least_gain = 1e-12 * near.cost[near.start[1:] - 1].sum()  # rounding errors must not count as gains for ever
    change, leave, enter = np.zeros((len(members), n_sites)), np.zeros(len(members)), np.zeros(n_sites)
    values, places = (change, leave, enter), _positions(members, n_sites)
    place, _ = places
    second = _add_all_atoms(near, places, values)
    waits = np.zeros(len(second), np.bool_)
    for done in range(most):
        leaves, enters = _best_swap(values, members, forced, enterable, -least_gain)
        if enters < 0:
            return done, True
        left = members[leaves]
        for i in (left, enters):  # only atoms with one of these among their two nearest members are counted again
            for q in range(listing.start[i], listing.start[i + 1]):
                j = listing.atom[q]
                if near.cost[listing.entry[q]] <= second[j] and not waits[j]:
                    waits[j] = True
                    _add_atom(near, j, places, values, -1)  # before the members change, as it counts by them
        enterable[left], enterable[enters] = allowed[left], False
        place[left], place[enters], members[leaves] = -1, leaves, enters
        change[leaves], leave[leaves] = 0.0, 0.0  # only rounding errors are left there
        for i in (left, enters):
            for q in range(listing.start[i], listing.start[i + 1]):
                j = listing.atom[q]
                if waits[j]:
                    waits[j] = False
                    second[j] = _add_atom(near, j, places, values, 1)
    return most, False


@njit(cache=True, nogil=True)
def _best_swap(
    values: SwapValues, members: IntArray, forced: BoolArray, enterable: BoolArray, least: float
) -> tuple[int, int]:
    """Return the leaving member's position and the entering site of the best swap, -1 if none is below ``least``."""
    (change, leave, enter), leaves, enters = values, -1, -1
    for k in range(len(members)):
        if not forced[members[k]]:
            for i in range(len(enter)):
                total = change[k, i] + leave[k] + enter[i]  # extra, loss and gain of Resende and Werneck
                if total < least and enterable[i]:
                    least, leaves, enters = total, k, i
    return leaves, enters


@njit(cache=True, nogil=True)
def _positions(members: IntArray, n_sites: int) -> tuple[IntArray, BoolArray]:
    """Return the position of each site in ``members``, -1 if absent, and whether it occurs more than once."""
    place, shared = np.full(n_sites + 1, -1), np.zeros(n_sites + 1, np.bool_)
    for k in range(len(members)):
        shared[members[k]] = place[members[k]] >= 0
        place[members[k]] = k
    return place, shared


@njit(cache=True, nogil=True)
def _add_all_atoms(near: Lists, places: tuple[IntArray, BoolArray], values: SwapValues) -> FloatArray:
    """Add the contributions of all atoms to the values of swaps; return their costs at the second member, (M,)."""
    second = np.empty(len(near.start) - 1)
    for j in range(len(second)):
        second[j] = _add_atom(near, j, places, values, 1)
    return second


@njit(cache=True, nogil=True)
def _add_atom(near: Lists, j: int, places: tuple[IntArray, BoolArray], values: SwapValues, sign: int) -> float:
    """Add atom j's share to the values of swaps, or subtract it (``sign`` -1); return its cost at its second member."""
    (place, shared), (change, leave, enter) = places, values
    start, site, cost = near
    nearest, first, second = -1, cost[start[j + 1] - 1], cost[start[j + 1] - 1]  # else served from beyond the list
    for r in range(start[j], start[j + 1]):
        if place[site[r]] >= 0:
            if nearest < 0:
                nearest, first = place[site[r]], cost[r]
                if not shared[site[r]]:  # its other unit stays, and is the second
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
            change[nearest, site[r]] -= sign * (second - max(cost[r], first))  # i then serves j, not the second
    return second


@njit(cache=True, nogil=True)
def atoms_with_short_lists(near: Lists, members: IntArray, n_sites: int) -> IntArray:
    """Return the atoms whose lists hold fewer than two of the sites ``members``."""
    chosen = np.zeros(n_sites + 1, np.bool_)
    chosen[members] = True
    short = np.zeros(len(near.start) - 1, np.bool_)
    for j in range(len(short)):
        found = 0
        for r in range(near.start[j], near.start[j + 1]):
            found += chosen[near.site[r]]
            if found == 2:
                break
        short[j] = found < 2
    return np.flatnonzero(short)


@njit(cache=True, nogil=True)
def nearby_atoms(near: Lists, state: NDArray[np.int8], prices: NDArray[np.float32], site: int) -> IntArray:
    """Return the atoms whose price exceeds their cost of a site, and those that share an OPEN or FREE site with these.

    Atoms share a site if their prices exceed their costs of it.
    """
    close = np.arange(len(state) + 1) == site
    for _ in range(2):
        atoms = np.zeros(len(prices), np.bool_)
        for j in range(len(prices)):
            r = near.start[j]
            while r < near.start[j + 1] and near.cost[r] < prices[j]:
                atoms[j] |= close[near.site[r]]
                r += 1
        for a in np.flatnonzero(atoms):
            for r in range(near.start[a], near.start[a + 1]):
                i = near.site[r]
                close[i] |= near.cost[r] < prices[a] and i < len(state) and state[i] != CLOSED
    return np.flatnonzero(atoms)


@njit(cache=True, nogil=True)
def shorten_lists(near: Lists, state: NDArray[np.int8], prices: FloatArray, atoms: IntArray) -> Lists:
    """Return the lists of ``atoms`` without CLOSED sites, cut after the first OPEN site, which any choice contains.

    They hold at most twice the sites cheaper than the atom's price, and `EXTRA_ENTRIES` more.
    """
    size, n = (near.start[atoms + 1] - near.start[atoms]).sum(), 0
    start, site, cost = np.zeros(len(atoms) + 1, np.int64), np.empty(size, near.site.dtype), np.empty(size)
    for a, j in enumerate(atoms):
        paid = 0
        for r in range(near.start[j], near.start[j + 1]):
            i = near.site[r]
            if i < len(state) and state[i] == CLOSED:
                continue
            site[n], cost[n] = i, near.cost[r]
            if near.cost[r] < prices[j]:
                paid += 1
            elif n - start[a] >= 2 * paid + EXTRA_ENTRIES:
                site[n], cost[n] = len(state), cost[n - 1]
            n += 1
            if site[n - 1] == len(state) or state[site[n - 1]] == OPEN:
                break
        start[a + 1] = n
    return Lists(start, site[:n].copy(), cost[:n].copy())


@njit(cache=True, nogil=True)
def cost_by_lists(near: Lists, trial: BoolArray) -> float:
    """Return the total cost of a choice of sites, (N,); it is too low if the list of some atom has none of them."""
    start, site, cost = near
    total = 0.0
    for j in range(len(start) - 1):
        r, last = start[j], start[j + 1] - 1
        while r < last and not trial[site[r]]:
            r += 1
        total += cost[r]
    return total
