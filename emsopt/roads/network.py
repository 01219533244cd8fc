"""Road edges with lengths, speed limits and inclines, and the legal turns between them.

A *road edge* is one direction of a street between two junctions; a two-way street gives two edges. A *connection*
(e1, e2) means that a car at the end of e1 may continue onto e2; forbidden turns are simply missing connections. Legal
U-turns depend on the source of the connections: files list them, and `grid_roads` allows them at dead ends only.
Closures and shortest paths are those of `emsopt.roads.line_graph`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _validate
from .._types import ArrayLike, FloatArray, IntArray, PathLike
from ..errors import InputError
from ._file import read_roads, write_roads
from ._limits import FARTHEST_M, LONGEST_M, MOST_M_S
from ._osm import read_osm
from ._sumo import read_net
from .energy import INCLINES
from .line_graph import LineGraph, checked_connections

if TYPE_CHECKING:
    import pandas as pd

FASTEST_M_S = 45.0  # a higher median speed indicates another unit


@dataclass(frozen=True, eq=False, init=False)
class RoadNetwork(LineGraph):
    """Road edges and legal turns, validated once and then immutable.

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
        above_0: dict[str, Any] = {"low": 0.0, "strictly": True}
        lengths = _validate.real_array(lengths, "lengths", (None,), unit="m", high=LONGEST_M, **above_0)
        n = len(lengths)
        speed_limits = _validate.real_array(speed_limits, "speed_limits", (n,), unit="m/s", high=MOST_M_S, **above_0)
        median = np.median(speed_limits)
        if median > FASTEST_M_S:
            raise InputError(f"`speed_limits` must be m/s, but their median is {median:g}. Divide km/h by 3.6.")
        geographic = _validate.truth(geographic, "geographic")
        classes = ("unknown",) * n if classes is None else classes
        for key, text in (("name", name), ("notes", notes)):
            if not isinstance(text, str):
                raise InputError(f"`{key}` must be text; got {_validate.shown(text)}.")
        vars(self).update(  # a frozen dataclass takes no assignments
            lengths=lengths,
            speed_limits=speed_limits,
            connections=checked_connections(connections, n),
            inclines=_validate.one_each(inclines, "inclines", n, **INCLINES),
            ids=_validate.names(ids, "ids", n, "edge"),
            classes=tuple(map(str, _validate.listed(classes, "`classes`", n, "classes of road"))),
            polylines=None if polylines is None else _checked_polylines(polylines, n, geographic),
            geographic=geographic,
            name=name,
            notes=notes,
        )

    @classmethod
    def from_sumo(
        cls,
        path: PathLike,
        *,
        vehicle: str = "passenger",
        heights: Callable[[FloatArray], ArrayLike] | None = None,
        strongly_connected: bool = True,
        name: str | None = None,
    ) -> RoadNetwork:
        """Read a SUMO network, ``.net.xml`` or ``.net.xml.gz``.

        Legal turns, including U-turns, are the connections in the file between lanes that are open to the vehicle.
        Roads without heights have incline 0, and those steeper than 0.35 rad get that incline, as ``notes`` states.

        Parameters
        ----------
        path : path-like
        vehicle : str
            SUMO's name of the vehicle class. A road is kept if any of its lanes is open to it.
        heights : callable, optional
            Function from longitude and latitude, shape (n, 2), to the height of the ground in metres, shape (n,), used
            in place of the file's own heights. Where geometry stays in metres (see ``notes``), it gets metres east and
            north. Tunnels and bridges cannot be told from other roads and follow the ground.
        strongly_connected : bool
            Whether to keep only the largest strongly connected component.
        name : str, optional
            Title. Default: the name of the file.

        Raises
        ------
        InputError
            If the file does not exist, is not a SUMO network, is truncated, or a lane has no length, speed or shape; or
            if it has more than 2 GB of text, 4 MB in one element or 4 million points and turns (plus four per road), or
            a compression ratio above 100.
        """
        return cls._of_file(path, read_net(path, vehicle, heights), name, strongly_connected)

    @classmethod
    def from_osm(
        cls,
        path: PathLike,
        *,
        heights: Callable[[FloatArray], ArrayLike] | None = None,
        speeds: dict[str, float] | None = None,
        strongly_connected: bool = True,
        name: str | None = None,
    ) -> RoadNetwork:
        """Read an OpenStreetMap extract, ``.osm.pbf`` or ``.osm``: its roads for cars, without service roads.

        All turns are legal except those that a restriction forbids or a barrier prevents; U-turns are legal if there is
        no other exit.
        `emsopt.roads._osm` describes how tags are read. Needs the package osmium (``emsopt[roads]``).

        Parameters
        ----------
        heights : callable, optional
            Function from longitude and latitude, shape (n, 2), to the height of the ground in metres, shape (n,).
            Without it inclines are 0, as ``notes`` states. Heights in tunnels and on bridges are interpolated linearly
            between the portals.
        speeds : dict, optional
            Speed limits in km/h by ``highway`` for roads without one; other classes of road are left out. The defaults,
            from motorway 110 to living street 20, are an assumption.
        path, strongly_connected, name
            As in `from_sumo`.

        Raises
        ------
        InputError
            If the file does not exist, is not an OpenStreetMap file, is truncated, or has no road for cars; or if it
            has more than 2 GB, 40 million elements or 4 million points of roads (plus four per road).
        MissingDependencyError
            If osmium is not installed.
        """
        return cls._of_file(path, read_osm(path, heights, speeds), name, strongly_connected)

    def save(self, path: PathLike) -> None:
        """Write the network to one file of compressed JSON, such as ``town.json.gz``.

        Lengths and coordinates are rounded to about a centimetre, speed limits to 0.0001 m/s and inclines to 0.00001
        rad.

        Raises
        ------
        InputError, WriteError
            If the path is invalid or cannot be written to. An existing file is then left unchanged.
        """
        write_roads(path, {field.name: getattr(self, field.name) for field in fields(self)})

    @classmethod
    def load(cls, path: PathLike) -> RoadNetwork:
        """Read a network written by `save`.

        Raises
        ------
        InputError
            If the file does not exist, is not a saved network, is damaged, or is larger than any network from
            `from_sumo`: 200 MB of text, 16 million values.
        """
        arguments = read_roads(path, [field.name for field in fields(cls)])
        return cls._of_file(path, arguments, arguments.pop("name"), strongly_connected=False)

    @classmethod
    def _of_file(
        cls, path: PathLike, arguments: dict[str, Any], name: str | None, strongly_connected: bool
    ) -> RoadNetwork:
        """Return the network described by a file, named after the file if ``name`` is None."""
        name = Path(path).name.split(".")[0] if name is None else name
        try:
            net = cls(**arguments, name=name)
        except InputError as error:
            raise InputError(f"{path} does not hold a valid network: {error}") from error
        return net.largest_component() if _validate.truth(strongly_connected, "strongly_connected") else net

    @property
    def contexts(self) -> FloatArray:
        """Length (m), speed limit (m/s) and incline (rad) of every edge, shape (E, 3)."""
        return np.column_stack([self.lengths, self.speed_limits, self.inclines])

    def subset(self, edges: Iterable[Any]) -> RoadNetwork:
        """Return the network of the given edges and the connections between them.

        Edges keep the order that they have in this network, whatever the order of ``edges``, and are numbered anew from
        0. An edge given twice is kept once.

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
            ids=tuple(self.ids[k] for k in kept),
            classes=tuple(self.classes[k] for k in kept),
            polylines=None if self.polylines is None else tuple(self.polylines[k] for k in kept),
        )

    def largest_component(self) -> RoadNetwork:
        """Return the largest strongly connected component: each edge can be reached from every other.

        The other edges, such as streets that forbidden turns cut off, are dropped. "Bayesian Analysis of Combinatorial
        Gaussian Process Bandits" reduces its networks in the same way.
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

    def to_frame(self) -> pd.DataFrame:
        """Return one row per edge, indexed by id: length, speed limit, incline and class.

        Returns
        -------
        pandas.DataFrame
            Columns ``length_m``, ``speed_limit_m_s``, ``incline_rad``, ``road_class``.
        """
        import pandas as pd

        frame = pd.DataFrame(self.contexts, columns=["length_m", "speed_limit_m_s", "incline_rad"])
        return frame.assign(road_class=list(self.classes)).set_index(pd.Index(self.ids, name="edge"))

    def __repr__(self) -> str:
        edges = f"{self.n_edges} edges, {len(self.connections)} connections"
        return f"<RoadNetwork {self.name!r}: {edges}, {self.lengths.sum() / 1000:.3g} km>"


def _checked_polylines(values: Sequence[ArrayLike], n: int, geographic: bool) -> tuple[FloatArray, ...]:
    """Return n polylines as read-only arrays; raise unless each has at least two points."""
    given = enumerate(_validate.listed(values, "`polylines`", n, "lines"))
    lines = tuple(_validate.real_array(line, f"polylines[{k}]", (None, 2)) for k, line in given)
    short = next((k for k, line in enumerate(lines) if len(line) < 2), None)
    if short is not None:
        raise InputError(f"Each line of `polylines` needs at least two points; `polylines[{short}]` has one.")
    points, unit = np.concatenate(lines), "degrees" if geographic else "m"
    for k, most in enumerate((360, 90) if geographic else (FARTHEST_M, FARTHEST_M)):
        _validate.real_array(points[:, k], f"polylines[:, {k}]", (None,), unit=unit, low=-most, high=most)
    return lines
