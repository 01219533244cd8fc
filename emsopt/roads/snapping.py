"""Places on the roads that are nearest to given points.

A *place* is an edge and a fraction of it, 0 at its start and 1 at its end. A point usually has several places: both
directions of a two-way street, or all edges that meet at a junction. A point belongs to a junction if its nearest place
lies within `JUNCTION_M` of an end of the edge, and in its first or last tenth. Motorways can be entered only from
points within `ROADSIDE_M` of them; other points belong to the nearest road of another class.

To find the nearest place exactly, lines are cut into pieces of at most `PIECE_M`, a k-d tree of their centres finds the
few that can be nearest, and the point is projected onto each of these.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree

from ..city.travel import EARTH_RADIUS_KM, central_angle
from ..errors import InputError, _validate
from ..errors._types import ArrayLike, FloatArray, IntArray

PIECE_M = 100.0
JUNCTION_M = 0.02  # coordinates of seven decimals are off by up to 8 mm
TIE_M = 1e-4  # roads whose distances differ by less are equally near
OPPOSITE_M = 20.0  # largest distance between the two directions of a street: SUMO draws every lane
ROADSIDE_M = 25.0
MOTORWAY_CLASSES = ("motorway", "motorway_link", "highway.motorway", "highway.motorway_link")
POINTS_AT_ONCE = 2000  # points at a time, to save memory


class Places(NamedTuple):
    """Nearest places of K points: those of point k are ``first[k]`` to ``first[k + 1] - 1`` of edges and fractions."""

    first: IntArray
    edges: IntArray
    fractions: FloatArray
    distances: FloatArray  # (K,) from each point to its places, m


class Snapper:
    """Finds the places nearest to points on E road edges; the arguments are those of `RoadNetwork`."""

    def __init__(
        self, polylines: Sequence[FloatArray] | None, geographic: bool, classes: Sequence[str], connections: IntArray
    ) -> None:
        if polylines is None:
            raise InputError("the network has no `polylines`, which are needed to find the road nearest to a point.")
        points = np.concatenate(polylines)
        sizes = np.array([len(line) for line in polylines])
        self._geographic, self._scale = geographic, np.ones(2)
        if geographic:  # a plane in metres, true at the middle latitude
            points = _validate.unwrap(points, points[0, 0])
            shrinking = np.cos(np.radians((points[:, 1].min() + points[:, 1].max()) / 2))
            self._scale = 1000 * np.radians(EARTH_RADIUS_KM) * np.array([shrinking, 1.0])
        self._junctions = number_junctions(connections, points[np.cumsum(sizes) - sizes], points[np.cumsum(sizes) - 1])
        ends = self._junctions.T.ravel()  # at the start of edge e, and at E + e at its end
        self._meeting = np.argsort(ends, kind="stable")
        self._first_meeting = np.searchsorted(ends[self._meeting], np.arange(ends.max() + 2))
        line = np.repeat(np.arange(len(sizes)), sizes)
        inside = line[1:] == line[:-1]  # not from the end of a line to the start of the next
        lengths = np.hypot(*np.diff(points, axis=0).T)
        if geographic:
            lengths = 1000 * EARTH_RADIUS_KM * central_angle(points[:-1], points[1:])
        points = points * self._scale
        self._metres = lengths[inside]  # along the sphere; the others are on a plane, on which the nearest is found
        self._edge, self._start = line[:-1][inside], points[:-1][inside]
        self._step = np.diff(points, axis=0)[inside]
        self._length = np.hypot(*self._step.T)
        self._total = np.bincount(self._edge, self._metres)
        travelled = np.cumsum(self._metres) - self._metres
        self._before = travelled - travelled[np.searchsorted(self._edge, self._edge)]
        self._is_motorway = np.isin(classes, MOTORWAY_CLASSES)
        self._all_roads = self._piece_tree(np.arange(len(self._edge)))
        self._streets = self._piece_tree(np.flatnonzero(~self._is_motorway[self._edge]))

    def _piece_tree(self, segments: IntArray) -> tuple[Any, IntArray]:
        """Return a k-d tree of the centres of all pieces of some segments of lines, and the segment of each piece."""
        parts = np.maximum(np.ceil(self._length[segments] / PIECE_M), 1).astype(np.int64)
        segment, parts_of = np.repeat(segments, parts), np.repeat(parts, parts)
        number = np.arange(len(segment)) - np.repeat(np.cumsum(parts) - parts, parts)
        return cKDTree(self._start[segment] + ((number + 0.5) / parts_of)[:, None] * self._step[segment]), segment

    def nearest_places(self, points: ArrayLike, name: str, off_road_km: float) -> Places:
        """Return the nearest places of points, shape (K, 2); raise if one is over ``off_road_km`` from any road."""
        limit_m = 1000 * _validate.positive_number(off_road_km, "off_road_km", "km")
        points = _validate.real_array(points, name, (None, 2))
        if self._geographic:
            points = _validate.unwrap(_validate.check_degrees(points, f"`{name}`"), self._start[0, 0] / self._scale[0])
        at_least = self._all_roads[0].query(points * self._scale)[0] - PIECE_M / 2  # a lower bound, to refuse early
        self._require_near(points, name, at_least, limit_m)
        blocks = range(0, len(points), POINTS_AT_ONCE)
        found = [self._nearest_places(points[k : k + POINTS_AT_ONCE] * self._scale, limit_m) for k in blocks]
        point, edges, fractions, distances = map(np.concatenate, zip(*found, strict=True))
        point += np.repeat(blocks, [len(part[0]) for part in found])  # each block counts its points from 0
        self._require_near(points, name, distances, limit_m)
        return Places(np.searchsorted(point, np.arange(len(points) + 1)), edges, fractions, distances)

    def _require_near(self, points: FloatArray, name: str, distances: FloatArray, limit_m: float) -> None:
        """Raise if the distance of a point to the roads (m) exceeds the limit (m)."""
        far = distances > limit_m
        if not far.any():
            return
        k = int(distances.argmax())
        swapped = np.median(self._all_roads[0].query(points[:, ::-1] * self._scale)[0]) < np.median(distances) / 10
        hint = "Coordinates look swapped: longitude (or x) comes first." if swapped else ""
        raise InputError(
            f"`{name}` must lie within {limit_m / 1000:g} km of a road (`off_road_km`), but {far.sum():,} of "
            f"{len(points):,} points do not. The farthest, {points[k].tolist()} at index {k}, is "
            f"{distances[k] / 1000:.3g} km away. {hint or 'Correct them, load a larger network or raise the limit.'}"
        )

    def _nearest_places(self, points: FloatArray, limit_m: float) -> tuple[IntArray, IntArray, FloatArray, FloatArray]:
        """Return places of points (m) as arrays (point, edge, fraction), and each point's distance to a road (m)."""
        point, edge, fraction, distance, nearest = self._near_edges(points, *self._all_roads)
        at_motorway = np.ones(len(points), dtype=bool)
        at_motorway[point[(distance <= nearest[point] + TIE_M) & ~self._is_motorway[edge]]] = False
        moved = np.flatnonzero(at_motorway & (nearest > ROADSIDE_M))
        if len(moved) and len(self._streets[1]):
            p, e, f, d, n = self._near_edges(points[moved], *self._streets)
            better = n <= limit_m
            kept, new = ~np.isin(point, moved[better]), better[p]
            point, edge = np.append(point[kept], moved[p[new]]), np.append(edge[kept], e[new])
            fraction, distance = np.append(fraction[kept], f[new]), np.append(distance[kept], d[new])
            nearest[moved[better]] = n[better]
        is_nearest = distance <= nearest[point] + TIE_M
        to_end = np.minimum(fraction, 1 - fraction)
        at_junction = is_nearest & (to_end <= 0.1) & (to_end * self._total[edge] <= JUNCTION_M)
        meeting = self._junctions[edge[at_junction], np.rint(fraction[at_junction]).astype(np.int64)]
        p, e, f = self._edges_at_junctions(point[at_junction], meeting)
        size, (start, end) = len(self._first_meeting), self._junctions[edge].T
        forth, back = (point * size + start) * size + end, (point * size + end) * size + start
        # the other direction of the nearest street, too
        opposite = np.isin(back, forth[is_nearest]) & (distance - nearest[point] <= OPPOSITE_M)
        along = (is_nearest | opposite) & ~np.isin(point, p)
        point, edge = np.append(point[along], p), np.append(edge[along], e)
        order = np.argsort(point, kind="stable")
        return point[order], edge[order], np.append(fraction[along], f)[order], nearest

    def _near_edges(
        self, points: FloatArray, tree: Any, segments: IntArray
    ) -> tuple[IntArray, IntArray, FloatArray, FloatArray, FloatArray]:
        """Return edges near points (m), as arrays (point, edge, fraction, distance), and the shortest distances."""
        reach = tree.query(points)[0] + PIECE_M / 2 + OPPOSITE_M  # a road is within half a piece of a centre
        found = tree.query_ball_point(points, reach)
        point = np.repeat(np.arange(len(points)), [len(pieces) for pieces in found])
        segment = segments[np.concatenate(found).astype(np.int64)]
        offset, step, length = points[point] - self._start[segment], self._step[segment], self._length[segment]
        along = np.einsum("ij,ij->i", offset, step) / np.maximum(length, 1e-9) ** 2  # a segment may have no length
        along = np.clip(along, 0, 1)
        distance = np.hypot(*(offset - along[:, None] * step).T)
        edge = self._edge[segment]
        fraction = (self._before[segment] + along * self._metres[segment]) / np.maximum(self._total[edge], 1e-9)
        order = np.lexsort((distance, edge, point))  # by distance last: the nearest segment comes first
        point, edge = point[order], edge[order]
        first = np.append(True, (np.diff(point) > 0) | (np.diff(edge) != 0))
        point, edge, fraction, distance = point[first], edge[first], fraction[order][first], distance[order][first]
        nearest = np.minimum.reduceat(distance, np.searchsorted(point, np.arange(len(points))))
        return point, edge, np.minimum(fraction, 1.0), distance, nearest

    def _edges_at_junctions(self, points: IntArray, junctions: IntArray) -> tuple[IntArray, IntArray, FloatArray]:
        """Return all edges that meet at the junctions of points as arrays (point, edge, fraction), fraction 0 or 1."""
        pairs = np.unique(np.column_stack([points, junctions]), axis=0)
        first, n = self._first_meeting[pairs[:, 1]], np.diff(self._first_meeting)[pairs[:, 1]]
        entry = np.repeat(first - np.cumsum(n) + n, n) + np.arange(n.sum())
        at_end, edge = np.divmod(self._meeting[entry], len(self._junctions))
        return np.repeat(pairs[:, 0], n), edge, at_end.astype(float)


def number_junctions(connections: IntArray, starts: FloatArray, ends: FloatArray) -> IntArray:
    """Return the junctions at the ends of edges, (E, 2); ends meet if they coincide or a connection joins them."""
    n = len(starts)
    _, spot = np.unique(np.vstack([starts, ends]), axis=0, return_inverse=True)
    before, after = connections.T
    tail = np.concatenate([np.arange(2 * n), n + before])
    head = np.concatenate([2 * n + spot.ravel(), after])
    size = 4 * n  # nodes here: E starts, E ends, and their spots
    _, part = connected_components(coo_array((np.ones(len(tail)), (tail, head)), shape=(size, size)), directed=False)
    return np.unique(part[: 2 * n], return_inverse=True)[1].reshape(2, n).T
