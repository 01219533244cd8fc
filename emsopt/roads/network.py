"""A road network as a directed line graph: nodes are road edges, and arcs are legal turns.

A *road edge* is one direction of a street between two junctions; a two-way street gives two edges. A
*connection* (e1, e2) means that a car at the end of e1 may continue onto e2; forbidden turns are simply
missing connections. Legal U-turns depend on the source of the connections: files list them, and `grid_roads`
allows them at dead ends only.

Paths are found by Dijkstra's algorithm on the line graph. No path contains an edge twice, but it may pass a
junction twice if turns are forbidden.
"""

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from .. import _validate
from ..errors import InputError, NoWayError
from ._limits import FARTHEST_M, LONGEST_M, MOST_M_S

ARTERIAL_M_S, RESIDENTIAL_M_S = 70 / 3.6, 50 / 3.6
FASTEST_M_S = 45.0  # a higher median speed indicates another unit
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
        Legal turns, as pairs of edges (from, to).
    inclines : array_like, shape (E,), or float
        rad, upward positive.
    ids, classes : sequence of str, length E, optional
        Distinct ids; classes of road.
    polylines : sequence of array_like, length E, each of shape (k, 2), optional
        The geometry of each edge: longitude and latitude in degrees if ``geographic``, else metres east and
        north.
    geographic : bool
        Whether polylines are longitude and latitude.
    name, notes : str
        Title, and notes on the data for readers of the results.

    Raises
    ------
    InputError
        If a value is missing, not positive, not finite, too large, or of the wrong type or shape.

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
        speed_limits = _validate.real_array(self.speed_limits, "speed_limits", (n,), unit="m/s", low=0.0, strictly=True)
        _at_most(lengths, "lengths", LONGEST_M, "m")
        _at_most(speed_limits, "speed_limits", MOST_M_S, "m/s")
        if np.median(speed_limits) > FASTEST_M_S:
            raise InputError(
                f"`speed_limits` must be in m/s, but their median is {np.median(speed_limits):g} m/s "
                f"({3.6 * np.median(speed_limits):.0f} km/h). Divide km/h by 3.6."
            )
        inclines = np.full(n, self.inclines) if _validate.is_real(self.inclines) else self.inclines
        inclines = _validate.real_array(inclines, "inclines", (n,), unit="rad")
        if (np.abs(inclines) >= np.pi / 2).any():
            msg = f"`inclines` must lie between -π/2 and π/2 rad; got {inclines[np.argmax(np.abs(inclines))]:g}. Convert degrees."
            raise InputError(msg)
        geographic = _validate.truth(self.geographic, "geographic")
        for key in ("name", "notes"):
            if not isinstance(getattr(self, key), str):
                raise InputError(f"`{key}` must be text; got {_validate.shown(getattr(self, key))}.")
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

        Legal turns, including U-turns, are the connections in the file between lanes that are open to the
        vehicle. Roads without heights have incline 0, as ``notes`` states.

        Parameters
        ----------
        path : path-like
        vehicle : str
            SUMO's name of the vehicle class. A road is kept if any of its lanes is open to it.
        strongly_connected : bool
            Whether to keep only the largest strongly connected component.
        name : str, optional
            Title. Default: the name of the file.

        Raises
        ------
        InputError
            If the file does not exist, is not a SUMO network, is truncated, or a lane has no length, speed or
            shape; or if it has more than 2 GB of text, 4 MB in one element or 4 million points and turns
            (plus four per road), or a compression ratio above 100.
        """
        from ._sumo import read_net

        net = cls._of_file(path, read_net(path, vehicle), name)
        return net.largest_component() if _validate.truth(strongly_connected, "strongly_connected") else net

    @classmethod
    def from_osm(cls, path, *, heights=None, speeds=None, strongly_connected=True, name=None):
        """Read an OpenStreetMap extract, ``.osm.pbf`` or ``.osm``: its roads for cars, without service roads.

        All turns are legal except those that a restriction forbids; U-turns are legal if there is no other
        exit. `emsopt.roads._osm` describes how tags are read. Needs the package osmium (``emsopt[roads]``).

        Parameters
        ----------
        path : path-like
        heights : callable, optional
            Function from longitude and latitude, shape (n, 2), to the height of the ground in metres, shape
            (n,). Without it inclines are 0, as ``notes`` states. Heights in tunnels and on bridges are
            interpolated linearly between the portals.
        speeds : dict, optional
            Speed limits in km/h by ``highway`` for roads without one; other classes of road are left out. The
            defaults, from motorway 110 to living street 20, are an assumption.
        strongly_connected : bool
            Whether to keep only the largest strongly connected component.
        name : str, optional
            Title. Default: the name of the file.

        Raises
        ------
        InputError
            If the file does not exist, is not an OpenStreetMap file, is truncated, or has no road for cars;
            or if it has more than 2 GB, 40 million elements or 4 million points of roads (plus four per
            road).
        MissingDependencyError
            If osmium is not installed.
        """
        from ._osm import read_osm

        net = cls._of_file(path, read_osm(path, heights=heights, speeds=speeds), name)
        return net.largest_component() if _validate.truth(strongly_connected, "strongly_connected") else net

    def save(self, path):
        """Write the network to one file of compressed JSON, such as ``town.json.gz``, rounded to centimetres.

        Raises
        ------
        InputError
            If the path is not valid for a file, or its folder does not exist.
        WriteError
            If the disk is full or read-only, or permission is denied. An existing file is left unchanged.
        """
        from ._file import write_roads

        write_roads(self, path)

    @classmethod
    def load(cls, path):
        """Read a network written by `save`.

        Raises
        ------
        InputError
            If the file does not exist, is not a saved network, is damaged, or is larger than any network from
            `from_sumo`: 200 MB of text, 16 million values.
        """
        from ._file import read_roads

        arguments = read_roads(path)
        return cls._of_file(path, arguments, arguments.pop("name"))

    @classmethod
    def _of_file(cls, path, arguments, name):
        """Return the network described by a file, named after the file if ``name`` is None."""
        from pathlib import Path

        name = Path(path).name.split(".")[0] if name is None else name
        try:
            return cls(**arguments, name=name)
        except InputError as error:
            raise InputError(f"{path} does not hold a valid network: {error}") from error

    @property
    def n_edges(self):
        """Number of road edges, E."""
        return len(self.lengths)

    @property
    def contexts(self):
        """Length (m), speed limit (m/s) and incline (rad) of every edge, shape (E, 3)."""
        return np.column_stack([self.lengths, self.speed_limits, self.inclines])

    def edges(self, values, name="edges"):
        """Return edge indices, shape (k,), from indices, ids or one truth value per edge.

        Parameters
        ----------
        values : array_like
            Whole numbers, ids, or truth values of shape (E,); may be empty.
        name : str
            Name of the argument in messages.
        """
        if isinstance(values, str) or not np.iterable(values):
            raise InputError(f"`{name}` must be a sequence of edges; got {values!r}. Put a single edge in brackets.")
        if not isinstance(values, np.ndarray):
            values = list(values)
            if values and all(isinstance(value, (bool, np.bool_)) for value in values):
                values = np.array(values)
        if isinstance(values, np.ndarray) and values.dtype == bool:
            mask = values
            if mask.shape != (self.n_edges,):
                msg = f"`{name}` must hold one truth value per edge, shape ({self.n_edges},); got {mask.shape}."
                raise InputError(msg)
            return np.flatnonzero(mask)
        return np.array([self._edge(value, name) for value in values], dtype=np.intp)

    def _edge(self, value, name):
        """Return the index of an edge, given by index or id."""
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
        """The line graph as a sparse matrix for weights: entry (e1, e2) holds the cost of e2."""
        from scipy import sparse

        start, end = self.connections.T.astype(np.int32)  # required by scipy before 1.15
        n = self.n_edges
        return sparse.csr_array((np.ones(len(start)), (start, end)), shape=(n, n))

    def shortest_path(self, costs, start, end, *, closed=None):
        """Return the cheapest legal path from one edge to another, including both.

        The cost of a path is the sum of the costs of its edges, including the first.

        Parameters
        ----------
        costs : array_like, shape (E,)
            Costs of the edges, at least 0.
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
            If the start or end is closed, or no path leads from start to end.
        InputError
            If a cost is negative.

        Notes
        -----
        All searches on a network share one matrix of weights. Concurrent threads therefore need separate
        networks; processes have their own.
        """
        from scipy.sparse.csgraph import dijkstra

        costs = _validate.real_array(costs, "costs", (self.n_edges,), low=0.0)
        start, end = self._edge(start, "start"), self._edge(end, "end")
        shut = np.zeros(self.n_edges, dtype=bool)
        if closed is not None:
            shut[self.edges(closed, "closed")] = True
        for name, edge in (("start", start), ("end", end)):
            if shut[edge]:
                raise NoWayError(f"the {name} {self.ids[edge]!r} is closed. Open it, or choose another {name}.")
        graph = self._search_graph
        np.take(np.where(shut, np.inf, costs), graph.indices, out=graph.data)
        distance, before = dijkstra(graph, indices=start, return_predecessors=True)
        if not np.isfinite(distance[end]):
            cause = f" with {shut.sum()} closed edges" if shut.any() else ""
            raise NoWayError(
                f"no legal path leads from {self.ids[start]!r} to {self.ids[end]!r} in {self.name!r}{cause}. "
                f"{'Close fewer edges' if shut.any() else 'Use `largest_component()`'}, or choose another start or end."
            )
        path = [end]
        while path[-1] != start:
            path.append(int(before[path[-1]]))
        return np.array(path[::-1], dtype=np.intp)

    def subset(self, edges):
        """Return the network of the given edges and the connections between them, in the present order.

        Parameters
        ----------
        edges : array_like
            Indices, ids or truth values of shape (E,); at least one.
        """
        kept = np.unique(self.edges(edges))
        if kept.size == 0:
            raise InputError("`edges` must select at least one edge; it selects none.")
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
        """Return the largest strongly connected component: each edge can be reached from every other.

        The paper keeps this component of its networks; mainly streets behind forbidden turns are dropped.
        """
        from scipy.sparse.csgraph import connected_components

        _, part = connected_components(self._search_graph, directed=True, connection="strong")
        kept = part == np.argmax(np.bincount(part))
        if kept.all():
            return self
        note = (
            f"{(~kept).sum()} of {self.n_edges} edges lie outside the largest strongly connected part and are left out."
        )
        return replace(self.subset(kept), notes=f"{self.notes} {note}".strip())

    def to_frame(self):
        """Return one row per edge, indexed by id: length, speed limit, incline and class.

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
    """Return a network of rectangular blocks, for teaching and tests.

    Every third street is an arterial at 70 km/h, the others are residential at 50 km/h. All turns are legal,
    except that U-turns are legal at dead ends only.

    Parameters
    ----------
    rows, columns : int
        Junctions from north to south and from west to east; at least 1, and at least 2 in one direction.
    block : float
        Metres between junctions.
    jitter : float
        Largest random shift of a junction in each direction, as a fraction of a block, from 0 to 0.4.
    relief : float
        Largest height of a junction in metres; the smallest possible is 0, and heights vary smoothly.
    one_way : float
        Fraction of one-way streets, drawn at random; the largest strongly connected component is returned.
    rng : int, Generator or None
        For jitter, heights and one-way streets.

    Returns
    -------
    RoadNetwork
        In metres, not geographic, with ids such as ``"r0c0-r0c1"``.

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
            raise InputError(f"`{name}` must lie between 0 and {most:g}; got {value:g}.")
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
    """Return all turns between edges that meet, shape (C, 2), with U-turns only at dead ends."""
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
        raise InputError(f"`connections` must be edge indices from 0 to {n - 1}; got {array[bad][0]}.")
    array = np.unique(array.astype(np.intp), axis=0)
    array.flags.writeable = False
    return array


def _classes(values, n):
    if values is None:
        return ("unknown",) * n
    classes = () if isinstance(values, str) or not np.iterable(values) else tuple(map(str, values))
    if len(classes) != n:
        raise InputError(f"`classes` must hold {n} classes of road, one per edge; got {_validate.shown(values)}.")
    return classes


def _at_most(array, name, most, unit):
    """Raise if an absolute value is too large, because it would cause an overflow later."""
    largest = array.flat[np.abs(array).argmax()]
    if abs(largest) > most:
        raise InputError(f"`{name}` must not exceed {most:g} {unit} in absolute value; got {largest:g}.")


def _polylines(values, n, geographic):
    """Return n read-only arrays of at least two points each."""
    lines = tuple(values) if np.iterable(values) else ()
    if len(lines) != n:
        raise InputError(f"`polylines` must hold {n} lines, one per edge; got {len(lines)}.")
    lines = tuple(_validate.real_array(line, f"polylines[{k}]", (None, 2)) for k, line in enumerate(lines))
    if any(len(line) < 2 for line in lines):
        raise InputError(
            "each line of `polylines` needs at least two points; line "
            f"{min(range(n), key=lambda k: len(lines[k]))} has one."
        )
    points = np.concatenate(lines)
    if geographic:
        _at_most(points[:, 0], "polylines[:, 0]", 360, "degrees of longitude")
        _at_most(points[:, 1], "polylines[:, 1]", 90, "degrees of latitude")
    else:
        _at_most(points, "polylines", FARTHEST_M, "m")
    return lines
