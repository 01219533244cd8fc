"""Shortest paths on the directed line graph of a road network, with edges and turns that may be closed.

Nodes of this graph are road edges, and its arcs are legal turns. No path contains an edge twice, but it may pass a
junction twice where turns are forbidden.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from scipy.sparse.csgraph import dijkstra

from ..errors import InputError, NoPathError, _validate
from ..errors._types import ArrayLike, BoolArray, IntArray

# Larger values are mistakes in a file: upper bounds for the readers and the network itself.
MAX_SPEED_M_S, MAX_LENGTH_M = 1e3, 4e7  # for a road: above the speed of sound, and the circumference of the earth
MAX_COORDINATE_M = 1e8  # largest coordinate of a point on a plane; larger ones are mistakes


class LineGraph:
    """Base class of `RoadNetwork`: edges by id, closures, shortest paths."""

    ids: tuple[str, ...]
    connections: IntArray

    @property
    def n_edges(self) -> int:
        """Number of road edges, E."""
        return len(self.ids)

    def edges(self, values: Iterable[Any], name: str = "edges") -> IntArray:
        """Return the indices, (k,), of edges given by index, by id or by E truth values; messages say ``name``."""
        if isinstance(values, str) or not np.iterable(values):
            raise InputError(f"`{name}` must be a sequence of edges; got {values!r}. Put a single edge in brackets.")
        given = list(values)
        if given and all(isinstance(value, (bool, np.bool_)) for value in given):
            if len(given) != self.n_edges:
                raise InputError(f"`{name}` must hold one truth value per edge; got {len(given)}.")
            return np.flatnonzero(given)
        return np.array([self._edge_index(value, name) for value in given], dtype=np.int64)

    def _edge_index(self, value: object, name: str) -> int:
        """Return the index of an edge given by index or id; raise if there is no such edge."""
        if not isinstance(value, str):
            return _validate.whole_number(value, name, low=0, high=self.n_edges - 1)
        if value not in self._index_by_id:
            raise InputError(f"`{name}`: there is no edge {value!r}; ids look like {self.ids[0]!r}.")
        return self._index_by_id[value]

    def closure_mask(self, closed: Iterable[Any]) -> BoolArray:
        """Return a mask of which edges, and then which connections, are closed, shape (E + C,).

        ``closed`` is such a mask, or holds edges as in `edges` and turns as tuples of two edges (from, to).
        """
        shut = np.zeros(self.n_edges + len(self.connections), dtype=bool)
        if isinstance(closed, np.ndarray) and closed.dtype == bool and closed.shape == shut.shape:
            return closed.copy()
        if np.iterable(closed) and not isinstance(closed, (str, np.ndarray)):
            given = list(closed)  # an iterator can be read only once
            shut[self.n_edges :] = np.any([self._turn_mask(item) for item in given if isinstance(item, tuple)], axis=0)
            closed = [item for item in given if not isinstance(item, tuple)]
        shut[self.edges(closed, "closed")] = True
        return shut

    def _turn_mask(self, turn: tuple[Any, ...]) -> BoolArray:
        """Return a mask of the connection for a turn (from, to), shape (C,); raise if there is none."""
        ends = self.edges(turn, "closed")
        found = (self.connections == ends[:2]).all(axis=1)
        if len(ends) != 2 or not found.any():
            raise InputError(f"`closed`: {turn!r} is not a legal turn. Pass a pair of edges from `connections`.")
        return found

    @cached_property
    def _index_by_id(self) -> dict[str, int]:
        return {name: k for k, name in enumerate(self.ids)}

    @cached_property
    def _search_graph(self) -> sparse.csr_array[np.float64, tuple[int, int]]:
        """The legal turns from e1 to e2 as entries (e1, e2) of a sparse matrix, (E, E), which searches overwrite."""
        start, end = self.connections.T.astype(np.int32)  # required by scipy before 1.15
        return sparse.csr_array((np.ones(len(start)), (start, end)), shape=(self.n_edges, self.n_edges))

    def shortest_path(
        self, costs: ArrayLike, start: int | str, end: int | str, *, closed: Iterable[Any] | None = None
    ) -> IntArray:
        """Return the cheapest legal path from one edge to another: edges in driving order, shape (k,), with both.

        Raise `NoPathError` if there is no such path, or the start or end is closed. All searches on a network share one
        matrix of weights: threads need separate networks.

        Parameters
        ----------
        costs : array_like, shape (E,)
            Costs of the edges, at least 0.
        start, end : int or str
            Edges, by index or id.
        closed : array_like, optional
            Edges that cannot be used, and turns that cannot be made, as in `closure_mask`.
        """
        costs = _validate.real_array(costs, "costs", (self.n_edges,), low=0.0)
        start, end = self._edge_index(start, "start"), self._edge_index(end, "end")
        shut = self.closure_mask(() if closed is None else closed)
        no_turn, shut = np.flatnonzero(shut[self.n_edges :]), shut[: self.n_edges]
        for name, edge in (("start", start), ("end", end)):
            if shut[edge]:
                raise NoPathError(f"the {name} {self.ids[edge]!r} is closed. Choose another {name}.")
        graph = self._search_graph
        np.take(np.where(shut, np.inf, costs), graph.indices, out=graph.data)  # that of the start is in all paths
        graph.data[no_turn] = np.inf  # entries are in the order of the connections
        (distance,), (before,) = dijkstra(graph, indices=[start], return_predecessors=True)
        if not np.isfinite(distance[end]):
            count = f"{shut.sum()} closed edges" + f" and {len(no_turn)} closed turns" * bool(len(no_turn))
            remedy = f"Open some of {count}" if shut.any() or len(no_turn) else "Use `largest_component()`"
            raise NoPathError(f"no legal path leads from {self.ids[start]!r} to {self.ids[end]!r}. {remedy}.")
        path = [end]
        while path[-1] != start:
            path.append(int(before[path[-1]]))
        return np.array(path[::-1])


def validate_connections(values: ArrayLike, n: int) -> IntArray:
    """Return connections between n edges as a read-only array, sorted and without repeats, (C, 2); raise if invalid."""
    wanted = "`connections` must be pairs of edge indices (from, to): whole numbers of shape (C, 2)"
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise InputError(f"{wanted}; got rows of unequal length: {error}") from error
    if array.shape in ((0,), (0, 2)):
        array = np.empty((0, 2), dtype=np.int64)
    if array.dtype.kind not in "iu" or array.ndim != 2 or array.shape[1] != 2:
        raise InputError(f"{wanted}; got {array.dtype} of shape {array.shape}.")
    bad = (array < 0) | (array >= n)
    if bad.any():
        raise InputError(f"`connections` must be edge indices from 0 to {n - 1}; got {array[bad][0]}.")
    array = np.unique(array.astype(np.int64), axis=0)
    array.flags.writeable = False
    return array


def legal_turns(tails: ArrayLike, heads: ArrayLike) -> IntArray:
    """Return all turns, (C, 2), between edges from nodes ``tails`` to ``heads``, (E,); U-turns at dead ends only."""
    edges = pd.DataFrame({"edge": np.arange(np.size(tails)), "tail": tails, "head": heads})
    turns = edges.merge(edges, left_on="head", right_on="tail", suffixes=("", "_next"))
    onward = turns["head_next"] != turns["tail"]
    dead_end = ~turns["edge"].isin(turns["edge"][onward])
    return turns.loc[onward | dead_end, ["edge", "edge_next"]].to_numpy()
