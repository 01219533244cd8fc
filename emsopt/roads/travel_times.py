"""Driving times of the quickest legal ways between many points, by Dijkstra's algorithm on the line graph.

The label of an edge is the time at which its start is reached. As turns take no time, the first edge taken from the
heap that may turn onto it gives its final label: every edge enters the heap at most once. Three things save time: an
edge that leads onto only one other is passed without the heap; edges whose successors all have labels do not enter it;
and edges are numbered such that neighbours are close in memory.

Searches start from the origins or, on the reversed network, from the destinations, whichever are fewer.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TypeAlias

import numpy as np
from numba import njit
from scipy.sparse import csr_array
from scipy.sparse.csgraph import reverse_cuthill_mckee

from .._running.parallel import cores
from ..errors._types import BoolArray, FloatArray, IntArray
from .shortest_paths import LineGraph
from .snapping import Places

SEARCHES_AT_ONCE = 50  # searches of a thread at a time, which share the work space
_Places: TypeAlias = tuple[IntArray, IntArray, FloatArray]  # the first fields of `Places`
_Turns: TypeAlias = tuple[IntArray, IntArray, BoolArray]  # as `_group_turns` returns them
_Work: TypeAlias = tuple[FloatArray, FloatArray, IntArray]  # minutes to the ends of edges, and a heap with its edges


class WayFinder:
    """Searches for the quickest ways on a line graph, forwards or backwards."""

    def __init__(self, net: LineGraph) -> None:
        n, graph = net.n_edges, net._search_graph
        self._order = reverse_cuthill_mckee(csr_array(graph + graph.T), symmetric_mode=True)
        self._new = np.empty(n, dtype=np.int64)
        self._new[self._order] = np.arange(n)
        forth = self._new[net.connections].reshape(-1, 2)
        self._turns = _group_turns(forth, n), _group_turns(forth[:, ::-1], n)

    def travel_minutes(self, origins: Places, destinations: Places, minutes: FloatArray) -> FloatArray:
        """Return the shortest driving times (min), (N, M), if edges take ``minutes``, (E,); infinite without a way."""
        sources, targets = (p._replace(edges=self._new[p.edges]) for p in (origins, destinations))
        backwards = len(destinations.distances) < len(origins.distances)
        if backwards:  # edges are then driven from 1 to 0
            sources, targets = (p._replace(fractions=1 - p.fractions) for p in (targets, sources))
        times = np.empty((len(sources.distances), len(targets.distances)))
        minutes = minutes[self._order]

        def fill_rows(k: int) -> None:
            _fill_times(times[k : k + SEARCHES_AT_ONCE], k, sources[:3], targets[:3], self._turns[backwards], minutes)

        with ThreadPoolExecutor(cores()) as pool:  # compiled code releases the lock of the interpreter
            list(pool.map(fill_rows, range(0, len(times), SEARCHES_AT_ONCE)))
        return times.T if backwards else times


def _group_turns(connections: IntArray, n: int) -> _Turns:
    """Return ``first``, ``onto`` and ``sole``: turns from edge e lead to ``onto[first[e] : first[e + 1]]``.

    ``sole``, shape (E,), says whether an edge has one successor, which has no other predecessor.
    """
    start, onto = connections[np.lexsort(connections.T[::-1])].T
    first = np.searchsorted(start, np.arange(n + 1))
    sole = np.diff(first) == 1
    sole[sole] = np.bincount(onto, minlength=n)[onto[first[:-1][sole]]] == 1
    return first, np.ascontiguousarray(onto), sole


@njit(cache=True, nogil=True)
def _search(k: int, sources: _Places, turns: _Turns, minutes: FloatArray, start: FloatArray, work: _Work) -> None:
    """Fill ``start``, shape (E,), with the minutes from source k to the start of each edge."""
    (first_place, edges, fractions), (first, onto, sole), (end, heap, item) = sources, turns, work
    start[:], end[:], size = np.inf, np.inf, 0
    for place in range(first_place[k], first_place[k + 1]):
        e = edges[place]
        left = (1 - fractions[place]) * minutes[e]
        if left < end[e]:  # two places may lie on one edge
            end[e] = left
            size = _push(heap, item, size, left, e)
    while size > 0:
        now, e = heap[0], item[0]
        size = _pop(heap, item, size)
        for turn in range(first[e], first[e + 1]):
            new = onto[turn]
            if start[new] < np.inf:
                continue
            start[new] = now
            if end[new] < np.inf:  # the way began on this edge
                continue
            end[new] = now + minutes[new]
            while sole[new] and start[onto[first[new]]] == np.inf:
                last, new = new, onto[first[new]]
                start[new] = end[last]
                if end[new] < np.inf:
                    break
                end[new] = end[last] + minutes[new]
            for further in range(first[new], first[new + 1]):
                if start[onto[further]] == np.inf:
                    size = _push(heap, item, size, end[new], new)
                    break


@njit(cache=True, nogil=True)
def _push(heap: FloatArray, item: IntArray, size: int, value: float, edge: int) -> int:
    """Add an edge and its ``value`` to a binary heap of ``size`` entries; return the new size."""
    k = size
    while k > 0 and heap[(k - 1) // 2] > value:
        heap[k], item[k] = heap[(k - 1) // 2], item[(k - 1) // 2]
        k = (k - 1) // 2
    heap[k], item[k] = value, edge
    return size + 1


@njit(cache=True, nogil=True)
def _pop(heap: FloatArray, item: IntArray, size: int) -> int:
    """Remove the edge with the smallest value from a binary heap of ``size`` entries; return the new size."""
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
def _fill_times(
    times: FloatArray, offset: int, sources: _Places, targets: _Places, turns: _Turns, minutes: FloatArray
) -> None:
    """Fill ``times``, shape (K, M), with the minutes from sources ``offset`` to ``offset + K - 1`` to all M targets."""
    first_source, source_edges, source_fractions = sources
    first_target, target_edges, target_fractions = targets
    n, size = len(minutes), len(minutes) + len(source_edges)  # a source edge may enter the heap again
    start, work = np.empty(n), (np.empty(n), np.empty(size), np.empty(size, np.int64))
    begun = np.full(n, np.inf)  # where the way begins on an edge; infinite elsewhere: no target is ahead of that
    for row in range(len(times)):
        k = row + offset
        _search(k, sources, turns, minutes, start, work)
        for place in range(first_source[k], first_source[k + 1]):
            begun[source_edges[place]] = min(begun[source_edges[place]], source_fractions[place])
        for column in range(times.shape[1]):
            best = np.inf
            for place in range(first_target[column], first_target[column + 1]):
                e, fraction = target_edges[place], target_fractions[place]
                best = min(best, start[e] + fraction * minutes[e])
                if begun[e] <= fraction:  # both places on one edge, the target ahead
                    best = min(best, (fraction - begun[e]) * minutes[e])
            times[row, column] = best
        for place in range(first_source[k], first_source[k + 1]):
            begun[source_edges[place]] = np.inf  # only what was set, as filling the whole array takes longer
