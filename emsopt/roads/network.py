"""A road network as a directed line graph: its nodes are road edges, its arcs the legal turns from one into the next.

A *road edge* is one direction of a street between two junctions; a street for both directions is two edges. A
*connection* (e1, e2) says that a car at the end of e1 may go on into e2, so that forbidden turns need no rule of their
own: they are connections that are not there. Which U-turns are legal is up to whoever makes the connections: files say
it themselves, and `grid_roads` allows them at dead ends only.

A path is found by Dijkstra's algorithm on the line graph. No path passes an edge twice; it may pass a junction twice
where turns are forbidden, as cars do.
"""

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from .. import _validate
from ..errors import InputError, NoWayError
from ._limits import FARTHEST_M, LONGEST_M, MOST_M_S

ARTERIAL_M_S, RESIDENTIAL_M_S = 70 / 3.6, 50 / 3.6
FASTEST_M_S = 45.0  # a network half of which is faster has its speeds in another unit
ARTERIAL_EVERY = 3  # rows and columns of a grid


@dataclass(frozen=True, eq=False)
class RoadNetwork:
    """Road edges and legal turns, validated once and then immutable.

    Parameters
    ----------
    lengths : array_like, shape (E,)
        m, positive, at most 4e7.
    speed_limits : array_like, shape (E,)
        m/s, positive, at most 1000; half of them at most 45.
    connections : array_like of int, shape (C, 2)
        Legal turns, from edge and into edge.
    inclines : array_like, shape (E,), or float
        rad, upward positive.
    ids, classes : sequence of str, length E, optional
        Distinct names; kinds of road.
    polylines : sequence of array_like, length E, each of shape (k, 2), optional
        The course of every edge: longitude and latitude in degrees if ``geographic``, else metres east and north.
    geographic : bool
        Whether polylines are longitude and latitude.
    name, notes : str
        Title, and whatever a reader of a result must know about the data.

    Raises
    ------
    InputError
        If anything is missing, not positive, not finite, impossible on this earth, or of the wrong type or shape.

    Examples
    --------
    >>> net = RoadNetwork([100.0, 50.0, 80.0], [13.89] * 3, [(0, 1), (0, 2), (1, 2), (2, 0)])
    >>> net.shortest_path(net.lengths, 0, 2).tolist()
    [0, 2]
    """

    lengths: np.ndarray
    speed_limits: np.ndarray
    connections: np.ndarray
    inclines: np.ndarray = field(default=0.0, kw_only=True)
    ids: tuple[str, ...] | None = field(default=None, kw_only=True)
    classes: tuple[str, ...] | None = field(default=None, kw_only=True)
    polylines: tuple[np.ndarray, ...] | None = field(default=None, kw_only=True)
    geographic: bool = field(default=False, kw_only=True)
    name: str = field(default="roads", kw_only=True)
    notes: str = field(default="", kw_only=True)

    def __post_init__(self):
        lengths = _validate.real_array(self.lengths, "lengths", (None,), unit="m", low=0.0, strictly=True)
        n = len(lengths)
        speed_limits = _validate.real_array(
            self.speed_limits, "speed_limits", (n,), unit="m/s", low=0.0, strictly=True
        )
        _at_most(lengths, "lengths", LONGEST_M, "m")
        _at_most(speed_limits, "speed_limits", MOST_M_S, "m/s")
        if np.median(speed_limits) > FASTEST_M_S:
            msg = (
                f"`speed_limits` are in m/s, and half of them are above {np.median(speed_limits):g} m/s "
                f"({3.6 * np.median(speed_limits):.0f} km/h). Divide km/h by 3.6."
            )
            raise InputError(msg)
        inclines = np.full(n, self.inclines) if _validate.is_real(self.inclines) else self.inclines
        inclines = _validate.real_array(inclines, "inclines", (n,), unit="rad")
        if (np.abs(inclines) >= np.pi / 2).any():
            msg = f"`inclines` must lie between -π/2 and π/2 rad; got {inclines[np.argmax(np.abs(inclines))]:g}. Convert degrees."
            raise InputError(msg)
        geographic = _validate.truth(self.geographic, "geographic")
        for key in ("name", "notes"):
            if not isinstance(getattr(self, key), str):
                msg = f"`{key}` must be text; got {_validate.shown(getattr(self, key))}."
                raise InputError(msg)
        values = {
            "lengths": lengths,
            "speed_limits": speed_limits,
            "inclines": inclines,
            "connections": _connections(self.connections, n),
            "ids": _validate.names(self.ids, "ids", n, "edge"),
            "classes": _classes(self.classes, n),
            "polylines": None if self.polylines is None else _polylines(self.polylines, n, geographic),
            "geographic": geographic,
        }
        for key, value in values.items():
            object.__setattr__(self, key, value)

    @classmethod
    def from_sumo(cls, path, *, vehicle="passenger", strongly_connected=True, name=None):
        """Read a SUMO network, ``.net.xml`` or ``.net.xml.gz``.

        Legal turns, U-turns among them, are the connections in the file between lanes that are open to the vehicle.
        Roads without heights have incline 0, which ``notes`` says.

        Parameters
        ----------
        path : path-like
        vehicle : str
            SUMO's name of the vehicle class: a road is kept if any of its lanes is open to it.
        strongly_connected : bool
            Whether to keep only the largest set of roads in which each can be reached from each.
        name : str, optional
            Title; the name of the file if left out.

        Raises
        ------
        InputError
            If there is no such file, it is no SUMO network, it is cut short, or a lane lacks a length, speed or
            shape; or if it is larger than a city needs: 2 GB of text, 4 MB for one element, 4 million points and turns
            (a road counts as four more), or compressed more than 100 times.
        """
        from ._sumo import read_net

        net = cls._of_file(path, read_net(path, vehicle), name)
        return net.largest_component() if _validate.truth(strongly_connected, "strongly_connected") else net

    @classmethod
    def from_osm(cls, path, *, heights=None, speeds=None, strongly_connected=True, name=None):
        """Read an OpenStreetMap extract, ``.osm.pbf`` or ``.osm``: its roads for cars, without service roads.

        All turns are legal but those a restriction forbids; U-turns where there is no other exit. `emsopt.roads._osm` says
        how tags are read. Needs the package osmium (``emsopt[roads]``).

        Parameters
        ----------
        path : path-like
        heights : callable, optional
            From longitude and latitude, shape (n, 2), to the ground's height in metres, shape (n,). Left out: incline
            0, which ``notes`` says. Tunnels and bridges run straight from portal to portal.
        speeds : dict, optional
            Speed limit in km/h by ``highway`` where the map has none; other kinds of road are left out. The defaults,
            from motorway 110 to living street 20, are an assumption.
        strongly_connected : bool
            Whether to keep only the largest set of roads in which each can be reached from each.
        name : str, optional
            Title; the name of the file if left out.

        Raises
        ------
        InputError
            If there is no such file, it is no OpenStreetMap file, is cut short, or has no road for cars; or if it is
            larger than a city needs: 2 GB, 40 million elements, 4 million points of roads (a road counts as four more).
        MissingDependencyError
            If osmium is not installed.
        """
        from ._osm import read_osm

        net = cls._of_file(path, read_osm(path, heights=heights, speeds=speeds), name)
        return net.largest_component() if _validate.truth(strongly_connected, "strongly_connected") else net

    def save(self, path):
        """Write the network to one file of compressed JSON, rounded to centimetres; such as ``town.json.gz``.

        Raises
        ------
        InputError
            If the path cannot be that of a file, or its folder does not exist.
        WriteError
            If the disk is full or read-only, or permission is denied. An earlier file is left as it was.
        """
        from ._file import write_roads

        write_roads(self, path)

    @classmethod
    def load(cls, path):
        """Read a network that `save` wrote.

        Raises
        ------
        InputError
            If there is no such file, it is no such network, damaged, or larger than `from_sumo` can make one: 200 MB
            of text, 16 million values.
        """
        from ._file import read_roads

        arguments = read_roads(path)
        return cls._of_file(path, arguments, arguments.pop("name"))

    @classmethod
    def _of_file(cls, path, arguments, name):
        """Return the network that a file describes, named after it if ``name`` is None."""
        from pathlib import Path

        name = Path(path).name.split(".")[0] if name is None else name
        try:
            return cls(**arguments, name=name)
        except InputError as error:
            msg = f"{path} holds no valid network: {error}"
            raise InputError(msg) from error

    @property
    def n_edges(self):
        """Number of road edges E."""
        return len(self.lengths)

    @property
    def contexts(self):
        """Length (m), speed limit (m/s) and incline (rad) of every edge, shape (E, 3)."""
        return np.column_stack([self.lengths, self.speed_limits, self.inclines])

    def edges(self, values, name="edges"):
        """Return edge indices from indices, ids or one truth value an edge, shape (k,).

        Parameters
        ----------
        values : array_like
            Whole numbers, ids, or truth values of shape (E,); none at all is fine.
        name : str
            How an error names them.
        """
        if isinstance(values, str) or not np.iterable(values):
            msg = f"`{name}` must be a sequence of edges; got {values!r}. Put it in brackets."
            raise InputError(msg)
        if not isinstance(values, np.ndarray):
            values = list(values)
            if values and all(isinstance(value, (bool, np.bool_)) for value in values):
                values = np.array(values)
        if isinstance(values, np.ndarray) and values.dtype == bool:
            mask = values
            if mask.shape != (self.n_edges,):
                msg = (
                    f"`{name}` must hold one truth value an edge, shape ({self.n_edges},); got {mask.shape}."
                )
                raise InputError(msg)
            return np.flatnonzero(mask)
        return np.array([self._edge(value, name) for value in values], dtype=np.intp)

    def _edge(self, value, name):
        """Return the index of an edge given by its index or id."""
        if isinstance(value, str):
            if value not in self._index:
                msg = f"`{name}`: there is no edge {value!r} in {self.name!r}; ids look like {self.ids[0]!r}."
                raise InputError(msg)
            return self._index[value]
        return _validate.whole_number(value, name, low=0, high=self.n_edges - 1)

    @cached_property
    def _index(self):
        return {name: k for k, name in enumerate(self.ids)}

    @cached_property
    def _search_graph(self):
        """The line graph, ready for weights: entry (e1, e2) costs what e2 costs."""
        from scipy import sparse

        start, end = self.connections.T.astype(np.int32)  # as scipy before 1.15 demands
        n = self.n_edges
        return sparse.csr_array((np.ones(len(start)), (start, end)), shape=(n, n))

    def shortest_path(self, costs, start, end, *, closed=None):
        """Return the cheapest legal way from one edge to another, both included.

        An edge's cost is paid on entering it; that of the first edge once at the start.

        Parameters
        ----------
        costs : array_like, shape (E,)
            None negative.
        start, end : int or str
            Edges, by index or id.
        closed : array_like, optional
            Edges that cannot be used: indices, ids or truth values of shape (E,).

        Returns
        -------
        ndarray of int, shape (k,)
            Edges in driving order; their costs add up to the cost of the path.

        Raises
        ------
        NoWayError
            If the start or end is closed, or no way leads from start to end.
        InputError
            If a cost is negative.

        Notes
        -----
        Weights are written into one matrix that every search of this network shares: searches in several threads need
        a network each; processes have one anyway.
        """
        from scipy.sparse.csgraph import dijkstra

        costs = _validate.real_array(costs, "costs", (self.n_edges,), low=0.0)
        start, end = self._edge(start, "start"), self._edge(end, "end")
        shut = np.zeros(self.n_edges, dtype=bool)
        if closed is not None:
            shut[self.edges(closed, "closed")] = True
        for name, edge in (("start", start), ("end", end)):
            if shut[edge]:
                msg = f"the {name} {self.ids[edge]!r} is closed. Open it, or choose another {name}."
                raise NoWayError(msg)
        graph = self._search_graph
        np.take(np.where(shut, np.inf, costs), graph.indices, out=graph.data)
        distance, before = dijkstra(graph, indices=start, return_predecessors=True)
        if not np.isfinite(distance[end]):
            cause = f" with {shut.sum()} closed edges" if shut.any() else ""
            msg = (
                f"no legal way leads from {self.ids[start]!r} to {self.ids[end]!r} in {self.name!r}{cause}. "
                f"{'Close fewer edges' if shut.any() else 'Use `largest_component()`'}, or choose another start or end."
            )
            raise NoWayError(msg)
        path = [end]
        while path[-1] != start:
            path.append(int(before[path[-1]]))
        return np.array(path[::-1], dtype=np.intp)

    def subset(self, edges):
        """Return the network of some edges and the connections between them, in the order of this network.

        Parameters
        ----------
        edges : array_like
            Indices, ids or truth values of shape (E,); at least one.
        """
        kept = np.unique(self.edges(edges))
        if kept.size == 0:
            msg = "a network needs at least one edge; `edges` selects none."
            raise InputError(msg)
        new = np.full(self.n_edges, -1)
        new[kept] = np.arange(len(kept))
        connections = new[self.connections]
        return replace(
            self,
            lengths=self.lengths[kept],
            speed_limits=self.speed_limits[kept],
            inclines=self.inclines[kept],
            connections=connections[(connections >= 0).all(axis=1)],
            ids=[self.ids[k] for k in kept],
            classes=[self.classes[k] for k in kept],
            polylines=None if self.polylines is None else [self.polylines[k] for k in kept],
        )

    def largest_component(self):
        """Return the largest part in which every edge can be reached from every other.

        The paper keeps this part of its networks; it drops mainly dead streets behind forbidden turns.
        """
        from scipy.sparse.csgraph import connected_components

        _, part = connected_components(self._search_graph, directed=True, connection="strong")
        kept = part == np.argmax(np.bincount(part))
        if kept.all():
            return self
        note = f"{(~kept).sum()} of {self.n_edges} edges lie outside the largest strongly connected part and are left out."
        return replace(self.subset(kept), notes=f"{self.notes} {note}".strip())

    def to_frame(self):
        """Return one row an edge: length, speed limit, incline and class, indexed by id.

        Returns
        -------
        pandas.DataFrame
            Columns ``length_m``, ``speed_limit_m_s``, ``incline_rad``, ``road_class``.
        """
        import pandas as pd

        return pd.DataFrame(
            {
                "length_m": self.lengths,
                "speed_limit_m_s": self.speed_limits,
                "incline_rad": self.inclines,
                "road_class": list(self.classes),
            },
            index=pd.Index(self.ids, name="edge"),
        )

    def __repr__(self):
        return (
            f"<RoadNetwork {self.name!r}: {self.n_edges} edges, {len(self.connections)} connections, "
            f"{self.lengths.sum() / 1000:.3g} km>"
        )


def grid_roads(rows=6, columns=6, *, block=100.0, jitter=0.0, relief=0.0, one_way=0.0, rng=None):
    """Return a city of rectangular blocks, for teaching and tests.

    Every third street is an arterial at 70 km/h, the others are residential at 50 km/h. All turns are legal except
    U-turns, which are legal at dead ends only: where a road has no other exit.

    Parameters
    ----------
    rows, columns : int
        Junctions north to south and west to east; at least 1, and 2 in one direction.
    block : float
        Metres between junctions.
    jitter : float
        Junctions move by up to this part of a block in each direction, from 0 to 0.4.
    relief : float
        Heights of junctions lie between 0 and so many metres; neighbours are alike.
    one_way : float
        Part of streets with one direction only, drawn at random; the largest strongly connected part is returned.
    rng : int, Generator or None
        For jitter, heights and one-way streets.

    Returns
    -------
    RoadNetwork
        In metres, not geographic; ids are ``"r0c0-r0c1"``.

    Examples
    --------
    >>> net = grid_roads(3, 4)
    >>> net
    <RoadNetwork 'grid 3 x 4': 34 edges, 68 connections, 3.4 km>
    >>> path = net.shortest_path(net.lengths, "r0c0-r0c1", "r0c2-r0c3")
    >>> [net.ids[edge] for edge in path]
    ['r0c0-r0c1', 'r0c1-r0c2', 'r0c2-r0c3']
    """
    rng = _validate.generator(rng)
    rows = _validate.whole_number(rows, "rows")
    columns = _validate.whole_number(columns, "columns", low=1 if rows > 1 else 2)
    block = _validate.positive_number(block, "block", "m")
    relief = _validate.positive_number(relief, "relief", "m", zero=True)
    for name, value, most in (("jitter", jitter, 0.4), ("one_way", one_way, 1.0)):
        if _validate.positive_number(value, name, zero=True) > most:
            msg = f"`{name}` must lie between 0 and {most:g}; got {value:g}."
            raise InputError(msg)
    row, column = np.divmod(np.arange(rows * columns), columns)
    places = np.column_stack([column, -row]) + rng.uniform(-jitter, jitter, (rows * columns, 2))
    waves, phases = rng.uniform(-0.7, 0.7, (4, 2)), rng.uniform(0, 2 * np.pi, 4)
    heights = relief * (1 + np.sin(places @ waves.T + phases).mean(axis=1)) / 2
    places = places * block

    ends, arterial = [], []
    for k in range(rows * columns):
        for other, inside, line in (
            (k + 1, column[k] + 1 < columns, row[k]),
            (k + columns, row[k] + 1 < rows, column[k]),
        ):
            if not inside:
                continue
            directions = [(k, other), (other, k)]
            if rng.random() < one_way:
                directions = [directions[rng.integers(2)]]
            ends += directions
            arterial += [line % ARTERIAL_EVERY == 0] * len(directions)
    ends = np.array(ends)
    rise = np.diff(heights[ends], axis=1)[:, 0]
    across = np.hypot(*np.diff(places[ends], axis=1)[:, 0].T)
    net = RoadNetwork(
        np.hypot(across, rise),
        np.where(arterial, ARTERIAL_M_S, RESIDENTIAL_M_S),
        _turns(ends),
        inclines=np.arctan2(rise, across),
        ids=[f"r{row[a]}c{column[a]}-r{row[b]}c{column[b]}" for a, b in ends],
        classes=["arterial" if is_arterial else "residential" for is_arterial in arterial],
        polylines=list(places[ends]),
        name=f"grid {rows} x {columns}",
    )
    return net.largest_component()


def _turns(ends):
    """Return all turns between edges that meet, U-turns only where there is no other exit, shape (C, 2)."""
    leaving = {}
    for edge, (tail, _) in enumerate(ends.tolist()):
        leaving.setdefault(tail, []).append(edge)
    turns = []
    for edge, (tail, head) in enumerate(ends.tolist()):
        exits = leaving.get(head, [])
        onward = [other for other in exits if ends[other, 1] != tail]
        turns += [(edge, other) for other in onward or exits]
    return np.array(turns, dtype=np.intp).reshape(-1, 2)


def _connections(values, n):
    """Return distinct, sorted and read-only connections, shape (C, 2)."""
    try:
        array = np.asarray(values)
    except (TypeError, ValueError) as error:
        msg = f"`connections` must be whole edge indices, shape (C, 2); got {type(values).__name__}: {error}"
        raise InputError(msg) from error
    if array.shape in ((0,), (0, 2)):
        array = np.empty((0, 2), dtype=np.intp)
    if np.ma.isMaskedArray(values) or array.dtype.kind not in "iu" or array.ndim != 2 or array.shape[1] != 2:
        msg = f"`connections` must be whole edge indices, shape (C, 2); got {array.dtype} of shape {array.shape}."
        raise InputError(msg)
    bad = (array < 0) | (array >= n)
    if bad.any():
        msg = f"`connections` must be edge indices from 0 to {n - 1}; got {array[bad][0]}."
        raise InputError(msg)
    array = np.unique(array.astype(np.intp), axis=0)
    array.flags.writeable = False
    return array


def _classes(values, n):
    if values is None:
        return ("unknown",) * n
    classes = () if isinstance(values, str) or not np.iterable(values) else tuple(map(str, values))
    if len(classes) != n:
        msg = f"`classes` must hold {n} kinds of road, one an edge; got {_validate.shown(values)}."
        raise InputError(msg)
    return classes


def _at_most(array, name, most, unit):
    """Refuse values that are larger, of either sign; such a value would end in an overflow later."""
    largest = array.flat[np.abs(array).argmax()]
    if abs(largest) > most:
        msg = f"`{name}` must not be larger than {most:g} {unit}, of either sign; got {largest:g}."
        raise InputError(msg)


def _polylines(values, n, geographic):
    """Return n read-only arrays of at least two points."""
    lines = tuple(values) if np.iterable(values) else ()
    if len(lines) != n:
        msg = f"`polylines` must hold {n} lines, one an edge; got {len(lines)}."
        raise InputError(msg)
    lines = tuple(_validate.real_array(line, f"polylines[{k}]", (None, 2)) for k, line in enumerate(lines))
    if any(len(line) < 2 for line in lines):
        msg = f"every line of `polylines` needs two points or more; line {min(range(n), key=lambda k: len(lines[k]))} has one."
        raise InputError(msg)
    points = np.concatenate(lines)
    if geographic:
        _at_most(points[:, 0], "polylines[:, 0]", 360, "degrees of longitude")
        _at_most(points[:, 1], "polylines[:, 1]", 90, "degrees of latitude")
    else:
        _at_most(points, "polylines", FARTHEST_M, "m")
    return lines
