"""Read a road network in the format of the traffic simulator SUMO (``.net.xml``, also compressed by gzip).

A lane is open to cars if ``allow`` lists it or, without ``allow``, if ``disallow`` does not list it. A road is
open if any of its lanes is open; its length, speed limit and geometry are those of its first open lane, its incline is
that between the lane's ends. A turn is legal if a connection leads from an open lane to an open lane; lane changes on a
road are assumed to be possible. Internal roads of junctions, pavements and crossings are left out.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias
from xml.etree import ElementTree

import numpy as np

from .._files import formats, geography
from ..errors import InputError, Message
from ..errors._types import FloatArray, PathLike
from ..errors._validate import existing_file, quote
from .energy import MAX_INCLINE_RAD
from .shortest_paths import MAX_COORDINATE_M, MAX_LENGTH_M, MAX_SPEED_M_S

CAR_CLASS = "passenger"  # SUMO's name of the vehicle class
MAX_HEIGHT_M = 1e4  # above all mountains: larger heights are mistakes

Attributes: TypeAlias = dict[str, str]


class _NetworkContent:
    """The content of a SUMO network: roads by id, legal turns as pairs of indices of roads, the location element."""

    def __init__(self) -> None:
        # length (m), speed limit (m/s), class and points, shape (k, 3), all of the first open lane
        self.roads: dict[str, tuple[float, float, str, FloatArray]] = {}
        self.turns: set[tuple[int, int]] = set()
        self.location: Attributes = {}
        self.unknown_ends = 0  # connections from or to an edge that is not there, which notes report
        self._known: set[str | None] = set()  # ids of all edges, which stand above the connections
        self._open_lanes: dict[tuple[str | None, ...], int] = {}  # number of the road, by its id and the lane's index

    def add(self, tag: str, element: Attributes, lanes: list[Attributes]) -> None:
        """Store an element of the network: an edge, the location, or a connection of open lanes as a turn."""
        if tag == "edge":
            self._add_edge(element, lanes)
        elif tag == "connection":
            self.unknown_ends += not {element.get("from"), element.get("to")} <= self._known
            start = self._open_lanes.get((element.get("from"), element.get("fromLane")))
            end = self._open_lanes.get((element.get("to"), element.get("toLane")))
            if start is not None and end is not None and _is_open(element):
                self.turns.add((start, end))
        elif tag == "location":
            self.location = element

    def _add_edge(self, edge: Attributes, lanes: list[Attributes]) -> None:
        """Store an edge as a road if one of its lanes is open to cars."""
        self._known.add(edge.get("id"))  # closed and internal ones too, which connections may name
        opened = [lane for lane in lanes if _is_open(lane)]
        if edge.get("function", "normal") != "normal" or not opened:
            return
        name, lane = edge.get("id"), opened[0]
        if name is None or name in self.roads:
            raise InputError(f"Every <edge> needs a unique id; got {quote(name)}.")
        where = f"lane {quote(lane.get('id'))}"
        self._open_lanes |= {(name, lane.get("index")): len(self.roads) for lane in opened}
        self.roads[name] = (
            _positive_number(lane, "length", where, "m", MAX_LENGTH_M),
            _positive_number(lane, "speed", where, "m/s", MAX_SPEED_M_S),
            edge.get("type") or "unknown",
            _lane_points(lane, where),
        )


def read_net(path: PathLike) -> dict[str, Any]:
    """Return the keyword arguments of `RoadNetwork`: the roads open to cars, and the turns between them."""
    path = existing_file(path, "path", "a SUMO network, .net.xml or .net.xml.gz")
    content = _NetworkContent()
    try:
        for tag, element, lanes in _top_elements(path):
            content.add(tag, element, lanes)
    except InputError as error:
        raise InputError(Message(str(path), f" cannot be read. {error}")) from error
    except (ElementTree.ParseError, ValueError, LookupError, *formats.READ_ERRORS) as error:  # LookupError: encoding
        said = f" is truncated or not XML ({error}). Download or export it again."
        raise InputError(Message(str(path), said)) from error
    if not content.roads:
        raise InputError(Message(str(path), f" has no road open to the vehicle class {CAR_CLASS!r}."))
    lengths, speed_limits, classes, lines = zip(*content.roads.values(), strict=True)
    polylines, reason = _convert_to_degrees([line[:, :2] for line in lines], content.location)
    inclines, notes = _inclines(lines)
    if content.unknown_ends:
        unknown = f"{content.unknown_ends:,} of its connections name an edge that it does not have"
        notes.append(f"{unknown}, and are left out.")
    if reason:
        notes.append(f"{reason}: geometry stays in metres, without a map.")
    return {
        "ids": list(content.roads),
        "lengths": lengths,
        "speed_limits": speed_limits,
        "inclines": inclines,
        "classes": classes,
        "polylines": polylines,
        "connections": sorted(content.turns),
        "geographic": not reason,
        "notes": " ".join(notes),
    }


def _top_elements(path: Path) -> Iterator[tuple[str, Attributes, list[Attributes]]]:
    """Yield tag, attributes and lanes' attributes of each child of the root element; raise unless that is <net>."""
    depth = 0
    with formats.unpack(path) as file:
        for event, element in ElementTree.iterparse(file, ("start", "end")):
            depth += 1 if event == "start" else -1
            if event == "start" and depth == 1:
                root = element
                if root.tag != "net":
                    raise InputError(f"Expected a SUMO network, <net>, but it starts with <{root.tag:.60}>.")
            elif event == "end" and depth == 1:
                yield element.tag, element.attrib, [lane.attrib for lane in element.iter("lane")]
                root.clear()  # drops the child, to save memory


def _is_open(element: Attributes) -> bool:
    """Return whether a lane or connection admits cars; ``allow`` overrides ``disallow``."""
    if allowed := element.get("allow", "").split():
        return CAR_CLASS in allowed or "all" in allowed
    refused = element.get("disallow", "").split()
    return CAR_CLASS not in refused and "all" not in refused


def _positive_number(element: Attributes, key: str, where: str, unit: str, most: float) -> float:
    """Return the attribute ``key`` as a number; raise unless it is above 0 and at most ``most``."""
    text = element.get(key)
    try:
        value = float(text or "")
    except ValueError:
        value = np.nan
    if not 0 < value <= most:
        got = "it is missing" if text is None else f"got {quote(text)}"
        raise InputError(f"The {key} of {where} must be above 0 and at most {most:g} ({unit}); {got}. Correct it.")
    return value


def _lane_points(lane: Attributes, where: str) -> FloatArray:
    """Return the points of a lane in metres, shape (k, 3): east, north and height; missing heights are NaN."""
    text = lane.get("shape", "")
    try:
        points = np.array([[*map(float, point.split(",")[:3]), np.nan][:3] for point in text.split()])
        inside = np.abs(points) <= (MAX_COORDINATE_M, MAX_COORDINATE_M, MAX_HEIGHT_M)
        inside[:, 2] |= np.isnan(points[:, 2])
        if len(points) < 2 or not inside.all():
            raise ValueError
    except ValueError:
        wanted = f"at least two points 'x,y' or 'x,y,z' in metres, with heights of at most {MAX_HEIGHT_M:g}"
        raise InputError(f"The shape of {where} must have {wanted}; got {text[:60]!r}.") from None
    return points


def _inclines(lines: tuple[FloatArray, ...]) -> tuple[FloatArray, list[str]]:
    """Return the inclines of roads (rad), (E,), at most `MAX_INCLINE_RAD`, and notes on those that were changed."""
    across = np.array([np.hypot(*np.diff(line[:, :2], axis=0).T).sum() for line in lines])
    rises = np.array([line[-1, 2] - line[0, 2] for line in lines])
    inclines = np.where(across > 0, np.arctan2(rises, across), np.nan)  # a road without extent has no incline either
    flat, steep = np.isnan(inclines).sum(), (np.abs(inclines) > MAX_INCLINE_RAD).sum()
    notes = [f"{flat} of {len(lines)} roads have no heights: incline 0."] if flat else []
    if steep:
        limit = f"{MAX_INCLINE_RAD:g} rad: incline cut to that."
        notes.append(f"{steep} of {len(lines)} roads would be steeper than {limit}")
    return np.clip(np.nan_to_num(inclines), -MAX_INCLINE_RAD, MAX_INCLINE_RAD), notes


def _convert_to_degrees(lines: list[FloatArray], location: Attributes) -> tuple[list[FloatArray], str]:
    """Convert lines from metres to degrees; return them and "", or the given lines and why that is impossible."""
    system, reason = location.get("projParameter", "!"), "The file has no projection that fits its coordinates"
    if system in ("!", "-"):  # no projection, for which pyproj is not needed
        return lines, reason
    try:
        x, y = map(float, location.get("netOffset", "").split(","))
        crs = geography.parse_crs(system)
    except ValueError:
        return lines, reason
    # not by `to_degrees`, which takes points near the origin of a local projection for unknown places or degrees
    convert = geography.load_extra("pyproj").Transformer.from_crs(crs, "EPSG:4326", always_xy=True).transform
    points = np.column_stack(convert(*(np.concatenate(lines) - (x, y)).T))
    if not np.isfinite(points).all():
        return lines, reason
    return np.split(points, np.cumsum([len(line) for line in lines])[:-1]), ""
