"""Quickest legal ways between many points, by Dijkstra's algorithm on the line graph.

The label of an edge is the time at which its start is reached. All turns onto an edge cost the same, nothing, so the
first edge settled that may turn onto it gives its final label: every edge enters the heap at most once, and no label is
ever decreased. Three things save time: a bend, where one edge leads onto one other, is passed without the heap; edges
whose successors all have labels do not enter it; and edges are numbered such that neighbours are close in memory.

Searches start from the origins or, on the reversed network, from the destinations, whichever are fewer.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
from numba import njit

from .._running.workers import cores
from .._types import BoolArray, FloatArray, IntArray
from ..errors import NoWayError
from .snapping import Places

if TYPE_CHECKING:
    from scipy import sparse

    from .line_graph import LineGraph

BLOCK = 50  # searches of a thread at a time


class WayFinder:
    """A line graph, prepared for fast searches forwards and backwards."""

    def __init__(self, net: LineGraph) -> None:
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import reverse_cuthill_mckee

        n, graph = net.n_edges, net._search_graph
        self._order = reverse_cuthill_mckee(csr_array(graph + graph.T), symmetric_mode=True)
        self._new = np.empty(n, dtype=np.int64)
        self._new[self._order] = np.arange(n)
        forth = self._new[net.connections].reshape(-1, 2)
        self._turns = _turns(forth, n), _turns(forth[:, ::-1], n)

    def times(self, origins: Places, destinations: Places, minutes: FloatArray) -> FloatArray:
        """Return the shortest times on the road between places; infinite where no legal way exists.

        Parameters
        ----------
        origins, destinations : Places
            Of N and M points.
        minutes : ndarray, shape (E,)
            To drive each edge.

        Returns
        -------
        ndarray, shape (N, M)
        """
        backwards = len(destinations.distances) < len(origins.distances)
        sources, targets = self._oriented(origins, destinations, backwards)
        times = np.empty((len(sources.distances), len(targets.distances)))
        minutes = minutes[self._order]

        def fill(k: int) -> None:
            _fill(times[k : k + BLOCK], k, *sources[:3], *targets[:3], *self._turns[backwards], minutes)

        with ThreadPoolExecutor(cores()) as pool:  # compiled code releases the lock of the interpreter
            list(pool.map(fill, range(0, len(times), BLOCK)))
        return times.T if backwards else times

    def shares(
        self, origins: Places, destinations: Places, pairs: IntArray, minutes: FloatArray
    ) -> sparse.csr_array[np.float64, tuple[int, int]]:
        """Return the share of each edge that is driven on the quickest way of each pair, shape (K, E).

        Parameters
        ----------
        pairs : ndarray of int, shape (K, 2)
            Numbers of an origin and a destination.

        Raises
        ------
        NoWayError
            If a pair has no legal way.
        """
        from scipy.sparse import csr_array

        backwards = len(destinations.distances) < len(origins.distances)
        sources, targets = self._oriented(origins, destinations, backwards)
        source, target = pairs.T[::-1] if backwards else pairs.T
        ways: list[tuple[IntArray, FloatArray]] = [(pairs[:0, 0], np.empty(0))] * len(pairs)
        minutes = minutes[self._order]
        space: Any = _space(len(minutes), len(sources.edges))
        for s in np.unique(source):
            _search(s, *sources[:3], *self._turns[backwards], minutes, *space)
            for k in np.flatnonzero(source == s):
                ways[k] = _trace(s, target[k], *sources[:3], *targets[:3], space[0], space[1], minutes)
        none = [k for k, (edges, _) in enumerate(ways) if not len(edges)]
        if none:
            raise NoWayError(
                f"{len(none):,} of {len(pairs):,} trips have no legal way; the first is at index {none[0]}. Use "
                "`largest_component()` of the network, or leave them out."
            )
        edges, driven = (np.concatenate(parts) for parts in zip(*ways, strict=True))
        first = np.cumsum([0, *(len(edges) for edges, _ in ways)])
        shares = csr_array((driven, self._order[edges], first), shape=(len(pairs), len(self._order)))
        shares.sum_duplicates()  # a way may return to the edge where it began
        shares.eliminate_zeros()
        return shares

    def _oriented(self, origins: Places, destinations: Places, backwards: bool) -> tuple[Places, Places]:
        """Return where searches start and end, by the new numbers of edges; backwards, edges are driven from 1 to 0."""
        start, end = (p._replace(edges=self._new[p.edges]) for p in (origins, destinations))
        if not backwards:
            return start, end
        return end._replace(fractions=1 - end.fractions), start._replace(fractions=1 - start.fractions)


def _turns(connections: IntArray, n: int) -> tuple[IntArray, IntArray, BoolArray]:
    """Return the turns from each edge: those from edge e lead to ``onto[first[e] : first[e + 1]]``.

    The third array tells whether an edge has one successor, which has no other predecessor.
    """
    start, onto = connections[np.lexsort(connections.T[::-1])].T
    first = np.searchsorted(start, np.arange(n + 1))
    sole = np.diff(first) == 1
    sole[sole] = np.bincount(onto, minlength=n)[onto[first[:-1][sole]]] == 1
    return first, np.ascontiguousarray(onto), sole


@njit(cache=True, nogil=True)
def _search(
    k: int,
    first_place: IntArray,
    edges: IntArray,
    fractions: FloatArray,
    first: IntArray,
    onto: IntArray,
    sole: BoolArray,
    minutes: FloatArray,
    start: FloatArray,
    before: IntArray,
    end: FloatArray,
    heap: FloatArray,
    item: IntArray,
) -> None:
    """Search from the places of point k; write when the start of each edge is reached, and from which edge.

    The start of an edge on which the way begins is reached later, or never. The last three arrays are work space: when
    the end of each edge is reached, and a heap of edges and these times.
    """
    start[:], end[:], size = np.inf, np.inf, 0
    for place in range(first_place[k], first_place[k + 1]):
        e = edges[place]
        left = (1 - fractions[place]) * minutes[e]
        if left < end[e]:
            end[e] = left
            size = _push(heap, item, size, left, e)
    while size > 0:
        now, e = heap[0], item[0]
        size = _pop(heap, item, size)
        for turn in range(first[e], first[e + 1]):
            new = onto[turn]
            if start[new] < np.inf:
                continue
            start[new], before[new] = now, e
            if end[new] < np.inf:  # the way began on this edge
                continue
            end[new] = now + minutes[new]
            while sole[new] and start[onto[first[new]]] == np.inf:
                last, new = new, onto[first[new]]
                start[new], before[new] = end[last], last
                if end[new] < np.inf:
                    break
                end[new] = end[last] + minutes[new]
            for further in range(first[new], first[new + 1]):
                if start[onto[further]] == np.inf:
                    size = _push(heap, item, size, end[new], new)
                    break


@njit(cache=True, nogil=True)
def _space(n: int, places: int) -> tuple[FloatArray, IntArray, FloatArray, FloatArray, IntArray]:
    """Return the arrays that `_search` writes to, for n edges and a number of places to begin at."""
    size = n + places
    return np.empty(n), np.empty(n, np.int64), np.empty(n), np.empty(size), np.empty(size, np.int64)


@njit(cache=True, nogil=True)
def _push(heap: FloatArray, item: IntArray, size: int, value: float, edge: int) -> int:
    """Add an edge to a binary heap; return the new size."""
    k = size
    while k > 0 and heap[(k - 1) // 2] > value:
        heap[k], item[k] = heap[(k - 1) // 2], item[(k - 1) // 2]
        k = (k - 1) // 2
    heap[k], item[k] = value, edge
    return size + 1


@njit(cache=True, nogil=True)
def _pop(heap: FloatArray, item: IntArray, size: int) -> int:
    """Remove the edge with the smallest value from a binary heap; return the new size."""
    size -= 1
    value, k, child = heap[size], 0, 1
    while child < size:
        if child + 1 < size and heap[child + 1] < heap[child]:
            child += 1
        if heap[child] >= value:
            break
        heap[k], item[k] = heap[child], item[child]
        k, child = child, 2 * child + 1
    heap[k], item[k] = value, item[size]
    return size


@njit(cache=True, nogil=True)
def _fill(
    times: FloatArray,
    offset: int,
    first_source: IntArray,
    source_edges: IntArray,
    source_fractions: FloatArray,
    first_target: IntArray,
    target_edges: IntArray,
    target_fractions: FloatArray,
    first: IntArray,
    onto: IntArray,
    sole: BoolArray,
    minutes: FloatArray,
) -> None:
    """Fill ``times`` with the minutes from the sources, from number ``offset`` on, to all targets."""
    space = _space(len(minutes), len(source_edges))
    start = space[0]
    begun = np.full(len(minutes), np.inf)  # the fraction at which the way begins, on the edges of the source
    for row in range(len(times)):
        k = row + offset
        _search(k, first_source, source_edges, source_fractions, first, onto, sole, minutes, *space)
        for place in range(first_source[k], first_source[k + 1]):
            begun[source_edges[place]] = min(begun[source_edges[place]], source_fractions[place])
        for column in range(times.shape[1]):
            best = np.inf
            for place in range(first_target[column], first_target[column + 1]):
                e, fraction = target_edges[place], target_fractions[place]
                best = min(best, start[e] + fraction * minutes[e])
                if begun[e] <= fraction:
                    best = min(best, (fraction - begun[e]) * minutes[e])
            times[row, column] = best
        for place in range(first_source[k], first_source[k + 1]):
            begun[source_edges[place]] = np.inf


@njit(cache=True, nogil=True)
def _trace(
    s: int,
    t: int,
    first_source: IntArray,
    source_edges: IntArray,
    source_fractions: FloatArray,
    first_target: IntArray,
    target_edges: IntArray,
    target_fractions: FloatArray,
    start: FloatArray,
    before: IntArray,
    minutes: FloatArray,
) -> tuple[IntArray, FloatArray]:
    """Return the edges of the way from source s to target t, from last to first, and the share driven of each."""
    sources = range(first_source[s], first_source[s + 1])
    best, last, direct = np.inf, -1, -1
    for place in range(first_target[t], first_target[t + 1]):
        e, fraction = target_edges[place], target_fractions[place]
        if start[e] + fraction * minutes[e] < best:
            best, last, direct = start[e] + fraction * minutes[e], place, -1
        for source in sources:
            ahead = (fraction - source_fractions[source]) * minutes[e]
            if source_edges[source] == e and 0 <= ahead < best:
                best, last, direct = ahead, place, source
    if last < 0:
        return np.empty(0, np.int64), np.empty(0)
    e = target_edges[last]
    edges, shares = [e], [target_fractions[last]]
    if direct >= 0:
        shares[0] -= source_fractions[direct]
    begun = -1.0 if direct < 0 else 0.0
    while begun < 0:
        e = before[e]
        for source in sources:
            if source_edges[source] == e:
                begun = max(begun, source_fractions[source])
        edges.append(e)
        shares.append(1.0 if begun < 0 else 1 - begun)
    return np.array(edges), np.array(shares)
