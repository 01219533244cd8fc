"""The nearest sites of each atom, listed from a matrix of times, only as far as they are needed."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from .._types import FloatArray, IntArray


class Lists(NamedTuple):
    """The nearest sites of each atom, nearest first.

    Entries ``start[j]`` to ``start[j + 1]`` belong to atom j. If not all sites are listed, the last entry is a site
    that does not exist, N, at the cost of the last one listed: no site left out is cheaper.
    """

    start: IntArray
    site: NDArray[np.int32]
    cost: FloatArray


class Listing(NamedTuple):
    """The atoms that list each site, entries ``start[i]`` to ``start[i + 1]``, and where they do so in `Lists`."""

    start: IntArray
    atom: NDArray[np.int32]
    entry: IntArray


class Costs(NamedTuple):
    """Costs c_ij of N sites serving M atoms, asked for as needed.

    ``nearest(atoms, k)`` returns the k nearest sites of atoms and their costs in ascending order, shapes (m, k), and
    ``of(sites)`` the costs of few sites for all atoms, shape (s, M).
    """

    n_sites: int
    n_atoms: int
    nearest: Callable[[IntArray, int], tuple[NDArray[np.int32], FloatArray]]
    of: Callable[[IntArray], FloatArray]


def matrix_costs(times: FloatArray, weights: FloatArray) -> Costs:
    """Return the costs times_ij weights_j, for times of shape (N, M) and weights of shape (M,)."""
    n_sites, n_atoms = times.shape

    def nearest(atoms: IntArray, k: int) -> tuple[NDArray[np.int32], FloatArray]:
        sites, costs = np.empty((len(atoms), k), np.int32), np.empty((len(atoms), k))
        rows = max(1, 1_000_000 // n_sites)
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
    """Return the lists of the k nearest sites of some atoms."""
    sites, near = costs.nearest(atoms, k)
    if k < costs.n_sites:
        sites = np.column_stack([sites, np.full(len(sites), costs.n_sites, np.int32)])
        near = np.column_stack([near, near[:, -1]])
    start = np.arange(len(sites) + 1) * sites.shape[1]
    return Lists(start, np.ascontiguousarray(sites).ravel(), np.ascontiguousarray(near).ravel())


@njit(cache=True, nogil=True)
def replaced(near: Lists, atoms: IntArray, more: Lists) -> Lists:
    """Return lists in which those of some atoms are replaced."""
    which = np.full(len(near.start) - 1, -1)
    which[atoms] = np.arange(len(atoms))
    start = np.zeros_like(near.start)
    for j in range(len(which)):
        source, k = (near, j) if which[j] < 0 else (more, which[j])
        start[j + 1] = start[j] + source.start[k + 1] - source.start[k]
    site, cost = np.empty(start[-1], near.site.dtype), np.empty(start[-1])
    for j in range(len(which)):
        source, k = (near, j) if which[j] < 0 else (more, which[j])
        site[start[j] : start[j + 1]] = source.site[source.start[k] : source.start[k + 1]]
        cost[start[j] : start[j + 1]] = source.cost[source.start[k] : source.start[k + 1]]
    return Lists(start, site, cost)


@njit(cache=True, nogil=True)
def listing_of(near: Lists, n_sites: int) -> Listing:
    """Return which atoms list each site."""
    start = np.zeros(n_sites + 2, np.int64)
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
