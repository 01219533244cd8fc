"""Sparse matrices of the pairs of site (row) and atom (column) within reach, and their reduction.

Compiled functions read rows as (start, item): the items of row i are ``item[start[i]:start[i + 1]]``.
"""

from hashlib import blake2b
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ..city.travel import EARTH_RADIUS_KM, central_angle
from ..errors._types import BoolArray, FloatArray, IntArray

Patterns: TypeAlias = Any
"""A `scipy.sparse.csr_array` of sites by atoms, with sorted indices."""

CHORD_MARGIN = 1e-9  # of a sphere's radius: pairs so near the limit are measured again
OBJECTIVE_SCALE = 1e4  # of shares in an objective: HiGHS stops at a gap of 1e-6, which is then 1e-10 of all calls
BLOCK_ENTRIES = 4_000_000  # entries of a matrix of times that are compared at once, to save memory


def pairs_within(times: FloatArray, most: float | FloatArray, columns: IntArray | None = None) -> Patterns:
    """Return the pairs whose time, (N, M), is below ``most``, for all or some columns, as `Patterns`."""
    import scipy.sparse as sp

    parts = []
    for a in range(0, len(times), max(1, BLOCK_ENTRIES // times.shape[1])):
        part = times[a : a + max(1, BLOCK_ENTRIES // times.shape[1])]
        parts.append(sp.csr_array((part if columns is None else part[:, columns]) < most, dtype=np.int8))
    return sp.vstack(parts, format="csr")


def pairs_within_km(sites: FloatArray, atoms: FloatArray, radius: float, geographic: bool) -> Patterns:
    """Return the pairs of points, (N, 2) and (M, 2), that are closer than a radius in km, as `Patterns`."""
    import scipy.sparse as sp
    from scipy.spatial import KDTree

    # The trees know only straight lines, so the radius becomes the chord of the arc; at most half the equator.
    chord = 2 * np.sin(min(radius / (2 * EARTH_RADIUS_KM), np.pi / 2)) + CHORD_MARGIN if geographic else radius
    trees = [KDTree(_on_sphere(points) if geographic else points) for points in (sites, atoms)]
    pairs = trees[0].sparse_distance_matrix(trees[1], chord, output_type="ndarray")
    i, j, apart = pairs["i"], pairs["j"], pairs["v"]
    if geographic:
        apart = EARTH_RADIUS_KM * central_angle(sites[i], atoms[j])
    i, j = i[apart < radius], j[apart < radius]  # the tree also returns pairs at exactly this distance
    return sp.csr_array((np.ones(len(i), np.int8), (i, j)), shape=(len(sites), len(atoms)))


def _on_sphere(degrees: FloatArray) -> FloatArray:
    """Return points on the unit sphere, shape (n, 3), from longitude and latitude in degrees, shape (n, 2)."""
    lon, lat = np.radians(degrees).T
    return np.column_stack([np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)])


def distinct_rows(patterns: Patterns) -> tuple[IntArray, IntArray]:
    """Return the first row of each set of equal rows, (S,), and the number of the set of each row, (N,)."""
    start, item = patterns.indptr, patterns.indices
    known = dict[bytes, int]()
    keys = (blake2b(item[a:b].tobytes()).digest() for a, b in pairwise(start.tolist()))  # keys shorter than the rows
    which = np.array([known.setdefault(key, len(known)) for key in keys], np.int64)
    return np.unique(which, return_index=True)[1], which


def row_lists(patterns: Patterns) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return (start, item) of all rows for compiled functions, always as int32."""
    rows = patterns.tocsr()
    return rows.indptr.astype(np.int32), rows.indices.astype(np.int32)  # other types would be compiled anew


def undominated_rows_and_columns(patterns: Patterns) -> tuple[IntArray, IntArray]:
    """Return the indices of rows and columns that suffice to find a smallest cover.

    Left out are rows within another row, and columns that contain another column and are covered whenever that one is.
    """
    rows, columns = np.arange(patterns.shape[0]), np.arange(patterns.shape[1])
    while True:  # a reduction of columns can allow another of rows, and so on
        before = patterns.shape
        keep = ~rows_within_another(*row_lists(patterns.T), *row_lists(patterns), True)
        columns, patterns = columns[keep], patterns[:, keep]
        keep = ~rows_within_another(*row_lists(patterns), *row_lists(patterns.T), False)
        rows, patterns = rows[keep], patterns[keep]
        if patterns.shape == before:
            return rows, columns


@njit(cache=True, nogil=True)
def _row_contains(
    start: NDArray[np.int32], item: NDArray[np.int32], k: int, last: IntArray, mark: int, missing: int
) -> bool:
    """Return whether row k contains all items for which ``last[item] == mark``; ``missing`` is their number."""
    if start[k + 1] - start[k] < missing:
        return False
    for r in range(start[k], start[k + 1]):
        missing -= last[item[r]] == mark
        if missing == 0:
            return True
    return False


@njit(cache=True, nogil=True)
def rows_within_another(
    start: NDArray[np.int32], item: NDArray[np.int32], back: NDArray[np.int32], row: NDArray[np.int32], larger: bool
) -> BoolArray:
    """Return a mask of rows that lie within another or, with ``larger``, contain another; of equal rows, not the first.

    ``back`` and ``row`` are the transposed patterns: the rows that contain each item.
    """
    n = len(start) - 1
    dropped, last = np.zeros(n, np.bool_), np.full(len(back) - 1, -1)
    for i in range(n):
        if start[i] == start[i + 1]:
            dropped[i] |= not larger
            continue
        if dropped[i]:
            continue
        items, length = item[start[i] : start[i + 1]], start[i + 1] - start[i]
        last[items] = i  # no clearing is needed, as each row has a mark of its own
        # a row that holds row i holds all its items, also that of the fewest rows
        rarest = items[np.argmin(back[items + 1] - back[items])]
        for k in row[back[rarest] : back[rarest + 1]]:
            if k == i or dropped[k] or not _row_contains(start, item, k, last, i, length):
                continue
            if larger or (start[k + 1] - start[k] == length and k > i):
                dropped[k] = True
            else:
                dropped[i] = True
                break
    return dropped
