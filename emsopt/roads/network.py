"""Road edges with lengths, speed limits and inclines, and the legal turns between them.

A *road edge* is one direction of a street between two junctions; a two-way street gives two edges. A *connection*
(e1, e2) means that a car at the end of e1 may continue onto e2; a forbidden turn has no connection. Which U-turns are
legal depends on the source of the connections. Closures and shortest paths are those of `emsopt.roads.shortest_paths`.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.sparse.csgraph import connected_components

from .._files import atomic, formats
from ..errors import InputError, _validate
from ..errors._types import ArrayLike, FloatArray, IntArray, PathLike, Rng
from ._osm import read_osm
from ._sumo import read_net
from ._tables import read_tables
from .energy import INCLINE_RANGE
from .shortest_paths import MAX_COORDINATE_M, MAX_LENGTH_M, MAX_SPEED_M_S, LineGraph, legal_turns, validate_connections
from .snapping import Snapper

OFF_ROAD_KMH, OFF_ROAD_KM = 20.0, 5.0  # defaults: drives and service roads are rarely part of a network
ARTERIAL_M_S, RESIDENTIAL_M_S = 70 / 3.6, 50 / 3.6
SPEED_RANGE: dict[str, Any] = {"unit": "m/s", "low": 0.0, "strictly": True, "high": MAX_SPEED_M_S}
_FORMAT_KEY, _FORMAT_VERSION = "emsopt roads", 1


@dataclass(frozen=True, eq=False, init=False)
class RoadNetwork(LineGraph):
    """Road edges and legal turns, validated once and then immutable.

    Raise if a value is missing, not finite, out of range, or of the wrong type or shape.

    Parameters
    ----------
    lengths : array_like, shape (E,)
        m, positive, at most 4e7.
    speed_limits : array_like, shape (E,)
        m/s, positive, at most 1000; their median must be at most 45.
    connections : array_like of int, shape (C, 2)
        Legal turns, as pairs of edges (from, to).
    inclines : array_like, shape (E,), or float
        rad, upward positive.
    ids, classes : sequence of str, length E, optional
        Distinct ids; classes of road.
    polylines : sequence of array_like, length E, each of shape (k, 2), optional
        The geometry of each edge: longitude and latitude in degrees if ``geographic``, else metres east and north.
    geographic : bool
        Whether polylines are longitude and latitude.
    name, notes : str
        Title, and notes on the data for readers of the results.

    Examples
    --------
    >>> net = RoadNetwork([100.0, 50.0, 80.0], [13.89] * 3, [(0, 1), (0, 2), (1, 2), (2, 0)])
    >>> net.shortest_path(net.lengths, 0, 2).tolist()
    [0, 2]
    """

    lengths: FloatArray
    speed_limits: FloatArray
    connections: IntArray
    inclines: FloatArray
    ids: tuple[str, ...]
    classes: tuple[str, ...]
    polylines: tuple[FloatArray, ...] | None
    geographic: bool
    name: str
    notes: str

    def __init__(
        self,
        lengths: ArrayLike,
        speed_limits: ArrayLike,
        connections: ArrayLike,
        *,
        inclines: ArrayLike = 0.0,
        ids: Sequence[str] | None = None,
        classes: Sequence[str] | None = None,
        polylines: Sequence[ArrayLike] | None = None,
        geographic: bool = False,
        name: str = "roads",
        notes: str = "",
    ) -> None:
        lengths = _validate.real_array(lengths, "lengths", (None,), unit="m", low=0.0, strictly=True, high=MAX_LENGTH_M)
        n = len(lengths)
        speed_limits = _validate.real_array(speed_limits, "speed_limits", (n,), **SPEED_RANGE)
        if (median := np.median(speed_limits)) > 45:  # a higher one indicates another unit
            raise InputError(f"`speed_limits` must be m/s, but their median is {median:g}. Divide km/h by 3.6.")
        geographic = _validate.as_bool(geographic, "geographic")
        classes = ("unknown",) * n if classes is None else classes
        vars(self).update(  # a frozen dataclass takes no assignments
            lengths=lengths,
            speed_limits=speed_limits,
            connections=validate_connections(connections, n),
            inclines=_validate.array_of_length(inclines, "inclines", n, **INCLINE_RANGE),
            ids=_validate.names(ids, "ids", n, "edge"),
            classes=tuple(map(str, _validate.as_tuple(classes, "`classes`", n, "classes of road"))),
            polylines=None if polylines is None else _validate_polylines(polylines, n, geographic),
            geographic=geographic,
            name=name,
            notes=notes,
        )

    @classmethod
    def from_sumo(cls, path: PathLike, *, name: str | None = None) -> RoadNetwork:
        """Read a SUMO network, ``.net.xml`` or ``.net.xml.gz``; raise if the file is damaged.

        Legal turns, including U-turns, are the connections in the file between lanes that are open to cars.
        Roads without heights have incline 0, and those steeper than 0.35 rad get that incline, as ``notes`` states.
        The conversion to degrees needs the package pyproj (``emsopt[maps]``). Only the largest strongly connected
        component is kept. The default for ``name``, the title, is that of the file.
        """
        return cls._from_arguments(path, read_net(path), name)

    @classmethod
    def from_osm(
        cls,
        path: PathLike,
        *,
        heights: Callable[[FloatArray], ArrayLike] | None = None,
        vehicle: str = "passenger",
        strongly_connected: bool = True,
        name: str | None = None,
    ) -> RoadNetwork:
        """Read the roads for cars of an OpenStreetMap extract, ``.osm.pbf`` or ``.osm``; raise if it has none.

        All turns are legal except those that a restriction forbids or a barrier prevents; U-turns are legal if there is
        no other exit. Speed limits of roads without one, from motorway 110 to living street 20 km/h, are an assumption.
        `emsopt.roads._osm` describes how tags are read. Needs the package osmium (``emsopt[roads]``).

        Parameters
        ----------
        heights : callable, optional
            Function from longitude and latitude, shape (n, 2), to the height of the ground in metres, shape (n,).
            Without it inclines are 0, as ``notes`` states. Heights in tunnels and on bridges are interpolated linearly
            between the portals.
        vehicle : {"passenger", "emergency"}
            "emergency" adds the rights that tags give to emergency vehicles, on ways, at barriers and in turns.
        strongly_connected : bool
            Whether to keep only the largest strongly connected component, as `from_sumo` does.
        path, name
            As for `from_sumo`.
        """
        return cls._from_arguments(path, read_osm(path, heights, vehicle), name, strongly_connected)

    @classmethod
    def from_tables(
        cls,
        nodes: pd.DataFrame | PathLike,
        arcs: pd.DataFrame | PathLike | None = None,
        *,
        two_way: bool = False,
        strongly_connected: bool = True,
    ) -> RoadNetwork:
        """Make a network from a table of nodes and a table of arcs, as DataFrames or .csv files.

        `emsopt.roads._tables` lists the names of columns and their units, among them those of the simulator JEMSS
        (``index, x, y``; ``fromNode, toNode, distance, mode_1``). All turns are legal except U-turns, which are legal
        if there is no other exit.

        Parameters
        ----------
        nodes, arcs : DataFrame or path-like
            Without ``arcs``, ``nodes`` is a folder or a .zip file with ``nodes.csv`` and ``arcs.csv``.
        two_way : bool
            Whether each arc is driven in both directions; otherwise only from its first to its second node.
        strongly_connected
            As for `from_osm`.

        Examples
        --------
        >>> import pandas as pd
        >>> nodes = pd.DataFrame({"index": [1, 2, 3], "x": [0, 1000, 2000], "y": [0, 0, 0]})
        >>> arcs = pd.DataFrame({"fromNode": [1, 2], "toNode": [2, 3], "minutes": [1.0, 2.0]})
        >>> net = RoadNetwork.from_tables(nodes, arcs, two_way=True)
        >>> net.travel_times([(0, 0)], [(2000, 0), (1500, 0)]).round(6).tolist()
        [[3.0, 2.0]]
        """
        source = "roads" if isinstance(nodes, pd.DataFrame) else nodes
        return cls._from_arguments(source, read_tables(nodes, arcs, two_way=two_way), None, strongly_connected)

    @classmethod
    def read(cls, path: PathLike) -> RoadNetwork:
        """Read a network in any supported format, told apart by the name of the file, with the reader's defaults.

        ``.osm.pbf`` and ``.osm`` are read by `from_osm`, ``.net.xml`` and ``.net.xml.gz`` by `from_sumo`, ``.json.gz``
        and ``.json`` by `load`, and a ``.zip`` file or a folder with ``nodes.csv`` and ``arcs.csv`` by `from_tables`.
        """
        place = _validate.path(path, "path")
        readers: dict[tuple[str, ...], Callable[[PathLike], RoadNetwork]] = {
            (".osm.pbf", ".osm"): cls.from_osm,
            (".net.xml", ".net.xml.gz"): cls.from_sumo,
            (".json.gz", ".json"): cls.load,
            (".zip",): cls.from_tables,
        }
        reader = next((reader for ends, reader in readers.items() if place.name.lower().endswith(ends)), None)
        if reader is None and not place.is_dir():
            known = ", ".join(end for ends in readers for end in ends)
            raise InputError(f"`path` must be a road network by its name ({known}) or a folder; got {place.name!r}.")
        return (reader or cls.from_tables)(place)

    def save(self, path: PathLike) -> None:
        """Write the network to one file of compressed JSON, such as ``town.json.gz``.

        Lengths and coordinates are rounded to about a centimetre, speed limits to 0.0001 m/s and inclines to
        0.00001 rad. Equal networks give identical bytes. Raise if the file cannot be written; an existing one stays.
        """
        content = {field.name: getattr(self, field.name) for field in fields(self)}
        content["lengths"] = np.maximum(self.lengths.round(2), 0.01)  # `load` refuses 0
        content["speed_limits"], content["inclines"] = self.speed_limits.round(4), self.inclines.round(5)
        if self.polylines is not None:
            content["polylines"] = [line.round(7 if self.geographic else 2) for line in self.polylines]
        options: dict[str, Any] = {"ensure_ascii": False, "separators": (",", ":"), "default": np.ndarray.tolist}
        text = json.dumps({_FORMAT_KEY: _FORMAT_VERSION, **content}, **options)
        atomic.write_file(path, gzip.compress(text.encode(), mtime=0))  # a time stamp would make equal networks differ

    @classmethod
    def load(cls, path: PathLike) -> RoadNetwork:
        """Read a network written by `save`; raise if the file is damaged."""
        path = _validate.existing_file(path, "path", "a network that `RoadNetwork.save` wrote")
        try:
            with formats.unpack(path) as file:
                content = json.load(file)
            if content.pop(_FORMAT_KEY) != _FORMAT_VERSION or set(content) != {field.name for field in fields(cls)}:
                raise ValueError("another format, or an entry is missing or unknown")
        except (*formats.READ_ERRORS, ValueError, KeyError, AttributeError, TypeError, RecursionError) as error:
            said = f"{path} is damaged, or was not written by `RoadNetwork.save` of this version"
            raise InputError(f"{said} ({type(error).__name__}: {error}).") from error
        return cls._from_arguments(path, content, content.pop("name"), strongly_connected=False)

    @classmethod
    def _from_arguments(
        cls, path: PathLike, arguments: dict[str, Any], name: str | None, strongly_connected: bool = True
    ) -> RoadNetwork:
        """Return a network with these ``arguments``, named after the file ``path`` if ``name`` is None."""
        name = Path(path).name.split(".")[0] if name is None else name
        try:
            net = cls(**arguments, name=name)
        except InputError as error:
            raise InputError(f"{path} does not hold a valid network: {error}") from error
        return net.largest_component() if _validate.as_bool(strongly_connected, "strongly_connected") else net

    @property
    def contexts(self) -> FloatArray:
        """Length (m), speed limit (m/s) and incline (rad) of every edge, shape (E, 3)."""
        return np.column_stack([self.lengths, self.speed_limits, self.inclines])

    def largest_component(self) -> RoadNetwork:
        """Return the largest strongly connected component, in which each edge can be reached from every other."""
        _, part = connected_components(self._search_graph, directed=True, connection="strong")
        inside = part == np.argmax(np.bincount(part))
        if inside.all():
            return self
        kept, number = np.flatnonzero(inside), np.cumsum(inside) - 1  # edges keep their order
        lost = f"{self.n_edges - len(kept)} of {self.n_edges} edges"
        return replace(
            self,
            lengths=self.lengths[kept],
            speed_limits=self.speed_limits[kept],
            inclines=self.inclines[kept],
            connections=number[self.connections[inside[self.connections].all(axis=1)]],
            ids=tuple(self.ids[k] for k in kept),
            classes=tuple(self.classes[k] for k in kept),
            polylines=None if self.polylines is None else tuple(self.polylines[k] for k in kept),
            notes=f"{self.notes} {lost} lie outside the largest strongly connected part and are left out.".strip(),
        )

    def edge_minutes(self, speeds: Mapping[str, float] | ArrayLike | None = None) -> FloatArray:
        """Return the minutes to drive each edge, shape (E,), by default at the speed limits.

        ``speeds`` (m/s, above 0) is a number, an array, (E,), or a dict by class of road; others keep the limits.
        """
        if speeds is None:
            speeds = self.speed_limits
        elif isinstance(speeds, Mapping):
            if unknown := [key for key in speeds if key not in self.classes]:
                known = ", ".join(sorted(set(self.classes)))
                raise InputError(f"`speeds` must be by class of road; {unknown[0]!r} is none of {known}.")
            by_class = [speeds.get(key, limit) for key, limit in zip(self.classes, self.speed_limits, strict=True)]
            speeds = np.array(by_class, dtype=object)
        return self.lengths / _validate.array_of_length(speeds, "speeds", self.n_edges, **SPEED_RANGE) / 60

    def travel_times(
        self,
        origins: ArrayLike,
        destinations: ArrayLike,
        *,
        speeds: Mapping[str, float] | ArrayLike | None = None,
        off_road_kmh: float = OFF_ROAD_KMH,
        off_road_km: float = OFF_ROAD_KM,
    ) -> FloatArray:
        """Return the minutes of the quickest legal ways between all pairs of points.

        Points belong to the nearest road, as `emsopt.roads.snapping` describes: a way starts and ends at a junction if
        the point is on it, else within an edge, on two-way streets in either direction. Raise if a point is too far
        from every road, or the network has no polylines.

        Parameters
        ----------
        origins, destinations : array_like, shapes (N, 2) and (M, 2)
            Longitude and latitude in degrees or, if the network is not geographic, metres east and north.
        speeds : float, array_like of shape (E,), or dict, optional
            m/s by edge, or by class of road. Default: the speed limits.
        off_road_kmh : float
            Speed on the straight line between a point and its road; ``inf`` ignores that line.
        off_road_km : float
            Largest length of that line.

        Returns
        -------
        ndarray, shape (N, M)
            Minutes, infinite where no legal way exists, which cannot happen in the `largest_component`.

        Examples
        --------
        >>> net = grid_roads(3, 4)  # junctions at (0, 0), (100, 0), ... and (0, -100), ...
        >>> net.travel_times([(0, 0), (50, 0)], [(300, 0), (0, -100)]).round(3).tolist()
        [[0.257, 0.086], [0.214, 0.129]]
        """
        minutes, per_m = self.edge_minutes(speeds), 0.0  # minutes per metre off the road, at infinite speed
        if off_road_kmh != np.inf:
            per_m = 0.06 / _validate.positive_number(off_road_kmh, "off_road_kmh", "km/h")  # 60 min by 1000 m at 1 km/h
        start = self._snapper.nearest_places(origins, "origins", off_road_km)
        end = self._snapper.nearest_places(destinations, "destinations", off_road_km)
        return self._way_finder.travel_minutes(start, end, minutes) + per_m * (start.distances[:, None] + end.distances)

    @cached_property
    def _snapper(self) -> Snapper:
        return Snapper(self.polylines, self.geographic, self.classes, self.connections)

    @cached_property
    def _way_finder(self) -> Any:
        from .travel_times import WayFinder  # loads numba

        return WayFinder(self)

    def to_frame(self) -> pd.DataFrame:
        """Return one row per edge by id: ``length_m``, ``speed_limit_m_s``, ``incline_rad`` and ``road_class``."""
        frame = pd.DataFrame(self.contexts, columns=["length_m", "speed_limit_m_s", "incline_rad"])
        return frame.assign(road_class=list(self.classes)).set_index(pd.Index(self.ids, name="edge"))

    def __repr__(self) -> str:
        edges = f"{self.n_edges} edges, {len(self.connections)} connections"
        return f"<RoadNetwork {self.name!r}: {edges}, {self.lengths.sum() / 1000:.3g} km>"


def _validate_polylines(values: Sequence[ArrayLike], n: int, geographic: bool) -> tuple[FloatArray, ...]:
    """Return n polylines as read-only arrays, (k, 2); raise unless each has at least two points, all valid."""
    given = _validate.as_tuple(values, "`polylines`", n, "lines")
    lines = [_validate.floats(line, f"polylines[{k}]") for k, line in enumerate(given)]
    wrong = next((k for k, line in enumerate(lines) if line.shape[1:] != (2,) or len(line) < 2), None)
    if wrong is not None:
        got = f"`polylines[{wrong}]` has shape {lines[wrong].shape}"
        raise InputError(f"Each line of `polylines` needs at least two points, shape (k, 2); {got}.")
    # one check of all values, as checks line by line take seconds in a large city
    points = _validate.real_array(np.concatenate(lines), "polylines", (None, 2))
    unit = "degrees" if geographic else "m"
    for k, most in enumerate((360, 90) if geographic else 2 * (MAX_COORDINATE_M,)):  # 360: across the date line
        _validate.real_array(points[:, k], f"polylines[:, {k}]", (None,), unit=unit, low=-most, high=most)
    return tuple(np.split(points, np.cumsum([len(line) for line in lines])[:-1]))


def grid_roads(
    rows: int = 6, columns: int = 6, *, jitter: float = 0.0, relief: float = 0.0, rng: Rng = None
) -> RoadNetwork:
    """Return a network of streets on a grid with blocks of 100 m.

    Every third street is an arterial at 70 km/h, the others are residential at 50 km/h. All turns are legal, except
    that U-turns are legal at dead ends only. Coordinates are metres, and ids look like ``"r0c0-r0c1"``.

    Parameters
    ----------
    rows, columns : int
        Number of junctions from north to south and from west to east; at least 1, and at least 2 in one direction.
    jitter : float
        Largest random shift of a junction to the east, west, north or south, as a fraction of a block, from 0 to 0.4.
    relief : float
        Upper bound on the heights of junctions in metres; heights are at least 0 and vary smoothly.
    rng : int, Generator or None
        Source of randomness for jitter and heights.

    Examples
    --------
    >>> grid_roads(3, 4)
    <RoadNetwork 'grid 3 x 4': 34 edges, 68 connections, 3.4 km>
    """
    rng = _validate.generator(rng)
    rows = _validate.whole_number(rows, "rows")
    columns = _validate.whole_number(columns, "columns", low=1 if rows > 1 else 2)
    relief = _validate.positive_number(relief, "relief", "m", zero=True)
    jitter = _validate.finite_number(jitter, "jitter", 0, 0.4)
    row, column = np.divmod(np.arange(rows * columns), columns)
    places = np.column_stack([column, -row]) + rng.uniform(-jitter, jitter, (rows * columns, 2))  # row 0 is north
    waves, phases = rng.uniform(-0.7, 0.7, (4, 2)), rng.uniform(0, 2 * np.pi, 4)
    heights = relief * (1 + np.sin(places @ waves.T + phases).mean(axis=1)) / 2  # the mean is in [-1, 1]
    places = places * 100.0  # m

    number = np.arange(rows * columns)
    east, south = number[column + 1 < columns], number[row + 1 < rows]
    pairs = np.column_stack([np.append(east, south), np.append(east + 1, south + columns)])
    pairs = pairs[np.argsort(pairs[:, 0], kind="stable")]  # by junction, to the east first
    ends = np.stack([pairs, pairs[:, ::-1]], axis=1).reshape(-1, 2)  # both directions
    tails, heads = ends.T
    rise = heights[heads] - heights[tails]
    across = np.hypot(*(places[heads] - places[tails]).T)
    arterial = np.where(row[tails] == row[heads], row[tails], column[tails]) % 3 == 0
    return RoadNetwork(
        np.hypot(across, rise),  # along the slope
        np.where(arterial, ARTERIAL_M_S, RESIDENTIAL_M_S),
        legal_turns(tails, heads),
        inclines=np.arctan2(rise, across),
        ids=[f"r{row[a]}c{column[a]}-r{row[b]}c{column[b]}" for a, b in ends],
        classes=np.where(arterial, "arterial", "residential").tolist(),
        polylines=list(places[ends]),
        name=f"grid {rows} x {columns}",
    )
