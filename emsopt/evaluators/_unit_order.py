"""The order in which each atom prefers the units of a fleet, from the ranks that it gives to sites.

The place of a unit in an atom's order is the number of units that precede it. In a small fleet these are counted by
comparing all pairs of units. In a large one, the ranks of an atom's stations are set as bits of 64-bit words, and the
bits below a station's own are counted.
"""

from typing import TypeAlias

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ..errors._types import IntArray

UnitOrder: TypeAlias = NDArray[np.uint32]
Ranks: TypeAlias = NDArray[np.unsignedinteger]
ATOMS_AT_ONCE = 128  # atoms whose ranks are copied at a time: a few vectors, and small enough for the fastest cache
MOST_COMPARED_UNITS = 64  # largest fleet in which comparing all pairs is faster
# unsigned: numba turns a mix with signed integers into floats
ONE, SHIFT, BIT_MASK = np.uint64(1), np.uint64(6), np.uint64(63)
PAIRS, FOURS = np.uint64(0x5555555555555555), np.uint64(0x3333333333333333)
EIGHTS, BYTES = np.uint64(0x0F0F0F0F0F0F0F0F), np.uint64(0x0101010101010101)


@njit(cache=True, nogil=True)
def unit_order(ranks: Ranks, sites: IntArray) -> UnitOrder:
    """Return the units of a fleet in each atom's order of preference, γ_j1, ..., γ_jp, shape (M, p); ties by index.

    ``ranks`` is `City.preference_ranks`, (N, M), and ``sites``, (p,), the site of each unit.
    """
    n_atoms, p = ranks.shape[1], len(sites)
    order = np.empty((n_atoms, p), np.uint32)
    if p <= MOST_COMPARED_UNITS:
        rows = np.zeros((p, ATOMS_AT_ONCE), ranks.dtype)
        for start in range(0, n_atoms, ATOMS_AT_ONCE):
            part = order[start : start + ATOMS_AT_ONCE]
            for i in range(p):
                rows[i, : len(part)] = ranks[sites[i], start : start + ATOMS_AT_ONCE]
            _order_by_comparing(rows, part)
        return order
    units, first = _units_by_station(sites, len(ranks))
    n_stations = len(first) - 1
    columns = np.empty((ATOMS_AT_ONCE, n_stations), ranks.dtype)
    for start in range(0, n_atoms, ATOMS_AT_ONCE):
        part = order[start : start + ATOMS_AT_ONCE]
        for s in range(n_stations):
            site_ranks = ranks[sites[units[first[s]]], start : start + ATOMS_AT_ONCE]
            for j in range(len(part)):
                columns[j, s] = site_ranks[j]
        _order_by_counting(columns, units, first, len(ranks), part)
    return order


@njit(cache=True, nogil=True)
def _units_by_station(sites: IntArray, n_sites: int) -> tuple[IntArray, IntArray]:
    """Return the units sorted by station, (p,), and the start of each of S stations, with p last, (S + 1,).

    If no two units share a station, they are not sorted.
    """
    p, n_stations = len(sites), 0
    units, first, begin = np.arange(p), np.arange(p + 1), np.zeros(n_sites + 1, np.int64)
    for site in sites:  # sorted by counting, as functions of numpy take seconds to compile
        begin[site + 1] += 1
    for i in range(n_sites):
        if begin[i + 1] > 0:
            first[n_stations] = begin[i]
            n_stations += 1
        begin[i + 1] += begin[i]
    if n_stations == p:
        return units, np.arange(p + 1)
    first[n_stations] = p
    for u in range(p):
        units[begin[sites[u]]] = u
        begin[sites[u]] += 1
    return units, first[: n_stations + 1]


@njit(cache=True, nogil=True)
def _order_by_comparing(ranks: Ranks, order: UnitOrder) -> None:
    """Fill the ``order`` of some atoms by comparing all pairs of units; ``ranks`` has shape (p, ATOMS_AT_ONCE)."""
    p = len(ranks)
    place = np.empty_like(ranks)
    for i in range(p):
        rank, places = ranks[i], place[i]
        places[:] = p - 1 - i  # as if all units after it preceded it, until they are compared
        for other in range(i):
            other_rank, other_places = ranks[other], place[other]
            for j in range(ATOMS_AT_ONCE):  # always as many, a constant: what lies beyond the last atom is not read
                precedes = np.uint16(other_rank[j] <= rank[j])  # at equal ranks, of one site, the lower index precedes
                places[j] += precedes
                other_places[j] -= precedes
    for j in range(len(order)):
        for i in range(p):
            order[j, place[i, j]] = i


@njit(cache=True, nogil=True)
def _order_by_counting(ranks: Ranks, units: IntArray, first: IntArray, n_sites: int, order: UnitOrder) -> None:
    """Fill the ``order`` of some atoms by counting bits; ``ranks`` of the stations has shape (ATOMS_AT_ONCE, S).

    The units of station s are ``units[first[s] : first[s + 1]]``.
    """
    n_stations, p = len(first) - 1, len(units)
    words, before = np.empty((2, (n_sites + 63) >> 6), np.uint64)
    for j in range(len(order)):
        words[:] = 0
        for s in range(n_stations):
            rank = np.uint64(ranks[j, s])
            words[rank >> SHIFT] |= ONE << (rank & BIT_MASK)
        total = np.uint64(0)
        for w in range(len(words)):
            before[w] = total
            total += _count_ones(words[w])
        row = order[j]
        for s in range(n_stations):
            rank = np.uint64(ranks[j, s])
            place = before[rank >> SHIFT] + _count_ones(words[rank >> SHIFT] & ((ONE << (rank & BIT_MASK)) - ONE))
            row[place] = s
        if n_stations < p:  # stations become units, from the end, so that none is overwritten before it is read
            k = p
            for place in range(n_stations - 1, -1, -1):
                s = row[place]
                for n in range(first[s + 1] - 1, first[s] - 1, -1):
                    k -= 1
                    row[k] = units[n]


@njit(cache=True, nogil=True)
def _count_ones(word: np.uint64) -> np.uint64:
    """Return the number of bits that are set in a word; the compiler turns this into one instruction."""
    word -= (word >> ONE) & PAIRS
    word = (word & FOURS) + ((word >> np.uint64(2)) & FOURS)
    word = (word + (word >> np.uint64(4))) & EIGHTS
    return (word * BYTES) >> np.uint64(56)
