"""Derive the order in which each atom prefers units from the ranks that it gives to sites."""

from typing import TypeAlias

import numpy as np
from numba import njit
from numba.cpython.unsafe.numbers import trailing_zeros
from numpy.typing import NDArray

from .._types import IntArray

UnitOrder: TypeAlias = NDArray[np.uint32]
Ranks: TypeAlias = NDArray[np.unsignedinteger]
ONE, SIX = np.uint64(1), np.uint64(6)
WORD = np.uint64(63)


@njit(cache=True, nogil=True)
def unit_order(ranks: Ranks, sites: IntArray) -> UnitOrder:
    """Return for each atom the units in its order of preference, shape (M, p).

    Row j lists unit indices, the unit that atom j prefers first (γ_j1, ..., γ_jp). ``ranks`` is
    `City.preference_ranks`, shape (M, N); ``sites`` is the site of each unit. Units at the same site are listed by
    index.

    The ranks of an atom's units are the bits of a long word, whose lowest bit is found in one instruction: this sorts
    them without comparing any two.
    """
    (n_atoms, n_sites), p = ranks.shape, len(sites)
    next_unit = np.full(p, -1)  # at the same site
    first_unit = np.full(n_sites, -1)
    for i in range(p - 1, -1, -1):
        next_unit[i], first_unit[sites[i]] = first_unit[sites[i]], i
    stations = np.flatnonzero(first_unit >= 0)
    alone = len(stations) == p
    words = np.zeros((n_sites + 63) >> 6, np.uint64)
    unit_at = np.empty(n_sites, np.uint32)  # first unit at the site with each rank
    order = np.empty((n_atoms, p), np.uint32)
    for j in range(n_atoms):
        for site in stations:
            rank = np.uint64(ranks[j, site])
            words[rank >> SIX] |= ONE << (rank & WORD)
            unit_at[rank] = first_unit[site]
        k = np.uint64(0)
        for w in range(len(words)):
            word, words[w] = words[w], np.uint64(0)
            while word:
                rank = (np.uint64(w) << SIX) | trailing_zeros(word)  # type: ignore[call-arg]
                i = unit_at[rank]
                word &= word - ONE
                order[j, k] = i
                k += ONE
                if not alone:
                    other = next_unit[i]
                    while other >= 0:
                        order[j, k] = other
                        k += ONE
                        other = next_unit[other]
    return order
