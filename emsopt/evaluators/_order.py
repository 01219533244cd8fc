"""Derive the order in which each atom prefers units from the order in which it prefers sites."""

from typing import TypeAlias

import numpy as np
from numba import njit
from numpy.typing import NDArray

from .._types import IntArray

UnitOrder: TypeAlias = NDArray[np.uint64]


@njit(cache=True, nogil=True)
def unit_order(site_order: IntArray, sites: IntArray) -> UnitOrder:
    """Return for each atom the units in its order of preference, shape (M, p).

    Row j lists unit indices, the unit that atom j prefers first (γ_j1, ..., γ_jp). ``site_order`` is
    `City.preferred_order`, shape (M, N); ``sites`` is the site of each unit. Units at the same site are listed by
    index.
    """
    n_atoms, n_sites = site_order.shape
    p = len(sites)
    start = np.zeros(n_sites + 1, dtype=np.int64)  # sort the units by site, with a counting sort
    for i in range(p):
        start[sites[i] + 1] += 1
    start = start.cumsum()
    units, placed = np.zeros(p + 1, dtype=np.uint64), start.copy()
    for i in range(p):
        units[placed[sites[i]]] = i
        placed[sites[i]] += 1
    order = np.empty((n_atoms, p + 1), dtype=np.uint64)  # one spare column
    for j in range(n_atoms):
        k = 0
        for rank in range(n_sites):
            site = np.uint64(site_order[j, rank])
            first, n = start[site], start[site + np.uint64(1)] - start[site]
            # Always write the unit, but advance only if there is one: this avoids a branch.
            order[j, np.uint64(k)] = units[np.uint64(first)]
            for extra in range(1, n):
                order[j, k + extra] = units[first + extra]
            k += n
    return order[:, :p]
