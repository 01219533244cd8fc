"""Read a road network from OpenStreetMap (``.osm.pbf``, ``.osm``), with the package osmium.

A way is a road for cars if its ``highway`` is in `SPEEDS_KMH` and no tag excludes cars. It is split into road edges
where it meets another such way, and cut at nodes with missing or invalid coordinates. A two-way street gives two edges,
``"12#0"`` along way 12 and ``"-12#0"`` against it.

**Speed limit**: ``maxspeed`` if it is a number (km/h or mph), else the default of the road's class in `SPEEDS_KMH`,
which is an assumption.

**Turns**: all turns at a junction are legal except those forbidden by a ``restriction`` relation with one ``via``
node, and those at a node that a barrier closes to cars. U-turns are legal if there is no other exit, unless forbidden.
Restrictions via a way, by hour or for other vehicles are ignored.

**Vehicles**: "passenger" has the rights of cars. "emergency" also has those that tags give to emergency vehicles:
``emergency=yes``, which also opens the roads in `EMERGENCY_KMH`, ``oneway:emergency=no``, and ``except=emergency`` in a
restriction.

**Edits** saved by JOSM but not uploaded: elements with ``action="delete"`` are left out; new ones have negative ids.
"""

from __future__ import annotations

import mmap
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from ..city.travel import EARTH_RADIUS_KM, central_angle
from ..errors import InputError, Message, MissingDependencyError, _validate
from ..errors._types import ArrayLike, FloatArray, IntArray, PathLike
from .energy import terrain_inclines
from .shortest_paths import MAX_SPEED_M_S

if TYPE_CHECKING:
    from osmium.osm import Node, Relation, TagList, Way

    Road: TypeAlias = tuple[int, list[int], dict[str, str]]  # number of the way, nodes, tags
    Turn: TypeAlias = tuple[int, int, int]  # from a way, via a node, to a way
    NodeCoordinates: TypeAlias = Mapping[int, tuple[float, float]]  # longitude and latitude of nodes

SPEEDS_KMH = {
    "motorway": 110.0,
    "motorway_link": 70.0,
    "trunk": 90.0,
    "trunk_link": 60.0,
    "primary": 70.0,
    "primary_link": 50.0,
    "secondary": 60.0,
    "secondary_link": 50.0,
    "tertiary": 50.0,
    "tertiary_link": 40.0,
    "unclassified": 50.0,
    "road": 50.0,
    "residential": 40.0,
    "living_street": 20.0,
}
"""Road classes for cars and their default speed limits, km/h. Service roads are left out."""

KMH_PER_MPH = 1.609344
EMERGENCY_KMH = dict.fromkeys(("service", "busway", "pedestrian", "track", "cycleway", "footway", "path"), 20.0)
"""Other classes, used if open to emergency vehicles, and their assumed speeds, km/h."""

ACCESS_TAGS = ("motorcar", "motor_vehicle", "vehicle", "access")  # the first of these tags that is present decides
ACCESS_KEYS = {"passenger": ACCESS_TAGS, "emergency": ("emergency", *ACCESS_TAGS)}
# Other values of `emergency` say what a thing is.
OPEN_VALUES = {"yes", "designated", "official", "permissive", "destination"}
CLOSED_VALUES = {"no", "private", "agricultural", "forestry", "delivery", "emergency"}
ONE_WAY_DIRECTIONS = {"yes": 1, "true": 1, "1": 1, "-1": -1, "reverse": -1}
BARRIERS = {"bollard", "block", "cycle_barrier", "jersey_barrier", "kissing_gate", "stile", "turnstile"}
MIN_LENGTH_M = 0.1  # nodes may coincide, but a length must be above 0
MAX_BYTES = 10**9  # a metropolitan region has some hundred million
DELETION = re.compile(rb"<(node|way|relation)\b(?=[^>]*\bid\s*=\s*['\"](-?\d+))[^>]*\baction\s*=\s*['\"]delete['\"]")


class Edge(NamedTuple):
    """One direction of a way between two of its junctions."""

    name: str
    nodes: list[int]  # in driving order
    way: int
    street: int  # the same number for both directions, by which U-turns are known
    speed_kmh: float
    highway: str
    elevated: bool  # a tunnel or a bridge, which does not follow the ground
    assumed: bool  # the speed is the default of the class, as the notes say


def read_osm(path: PathLike, heights: Callable[[FloatArray], ArrayLike] | None, vehicle: str) -> dict[str, Any]:
    """Return the keyword arguments of `RoadNetwork` for the roads of a vehicle, "passenger" or "emergency"."""
    keys = ACCESS_KEYS[_validate.choice(vehicle, "vehicle", ACCESS_KEYS)]
    path = _validate.existing_file(path, "path", "an OpenStreetMap extract, .osm.pbf or .osm")
    reader = _read_elements(path, keys)
    edges, missing = _split_ways(reader.ways, reader.places, reader.closed_nodes)
    if not edges:
        raise InputError(Message(str(path), f" has no road for cars ({', '.join(list(SPEEDS_KMH)[:4])} ...)."))
    lines = [np.array([reader.places[node] for node in edge.nodes]) for edge in edges]
    metres = [1000 * EARTH_RADIUS_KM * central_angle(line[:-1], line[1:]).sum() for line in lines]
    lengths = np.maximum(metres, MIN_LENGTH_M)
    ends = np.array([(line[0], line[-1]) for line in lines])
    nodes = np.array([(edge.nodes[0], edge.nodes[-1]) for edge in edges])
    inclines, remarks = terrain_inclines(heights, ends, nodes, lengths, np.array([edge.elevated for edge in edges]))
    assumed = np.mean([edge.assumed for edge in edges])
    notes = [f"Speed limits of {assumed:.0%} of the edges are defaults of their class.", *remarks]
    if missing:
        notes.append(f"{missing} ways are cut where the extract ends.")
    return {
        "ids": [edge.name for edge in edges],
        "lengths": lengths,
        "speed_limits": np.array([edge.speed_kmh / 3.6 for edge in edges]),
        "inclines": inclines,
        "classes": [edge.highway for edge in edges],
        "polylines": lines,
        "connections": _legal_turns(edges, reader.restrictions, reader.closed_nodes),
        "geographic": True,
        "notes": " ".join(notes),
    }


def _read_elements(path: Path, keys: tuple[str, ...]) -> _ElementReader:
    """Read the roads, nodes and turn restrictions in a file; ``keys`` are the access tags of the vehicle."""
    try:
        from osmium import FileProcessor
    except ImportError as error:
        raise MissingDependencyError("osmium is not installed: pip install 'emsopt[roads]'.") from error

    if not path.name.endswith((".pbf", ".osm")):
        raise InputError(f"{path} must be named .osm.pbf or .osm. Decompress .osm.gz and .osm.bz2 first.")
    if path.stat().st_size > MAX_BYTES:
        raise InputError(Message(str(path), f" has more than {MAX_BYTES / 1e9:g} GB. Cut out the area you need."))
    reader = _ElementReader(keys)
    try:
        deleted = _find_deleted(path) if path.name.endswith(".osm") else set()  # only the XML of editors has such marks
        for element in FileProcessor(str(path)).with_locations():
            if not deleted or (type(element).__name__.lower(), element.id) not in deleted:
                reader.add(element)
    except Exception as error:  # osmium raises many types of errors
        raise InputError(Message(str(path), f" is truncated or not an OpenStreetMap file ({error}).")) from error
    return reader


class _ElementReader:
    """Collects the ways open to a vehicle, by its access tags ``keys``, their nodes, and restricted turns."""

    def __init__(self, keys: tuple[str, ...]) -> None:
        self.keys = keys
        self.ways: list[Road] = []
        self.places: dict[int, tuple[float, float]] = {}
        self.new_nodes: dict[int, tuple[float, float]] = {}  # negative ids, for which osmium keeps no locations
        self.restrictions: list[tuple[Turn, bool]] = []
        self.closed_nodes: set[int] = set()

    def add(self, element: Any) -> None:
        """Store a node, a way or a restriction."""
        if element.is_node():
            self._add_node(element)
        elif element.is_way():
            self._add_way(element)
        elif element.is_relation() and element.tags.get("type") == "restriction":
            self.restrictions += _restricted_turns(element, self.keys)

    def _add_node(self, node: Node) -> None:
        """Keep the coordinates of a node with a negative id, and note whether a barrier at a node stops the vehicle."""
        if node.id < 0 and node.location.valid():
            self.new_nodes[node.id] = (node.location.lon, node.location.lat)
        barrier = node.tags.get("barrier")
        if barrier is not None and not _is_open(node.tags, self.keys, default=barrier not in BARRIERS):
            self.closed_nodes.add(node.id)

    def _add_way(self, way: Way) -> None:
        """Keep a way that is a road for the vehicle."""
        tags = way.tags
        if len(way.nodes) < 2 or not _is_road(tags, self.keys):
            return
        used = {key: tags[key] for key in ("highway", "maxspeed", "tunnel", "bridge", "junction") if key in tags}
        rule = next((rule for key in self.keys if (rule := f"oneway:{key}") in tags), "oneway")
        if rule in tags:  # one for the vehicle itself replaces `oneway`
            used["oneway"] = tags[rule]
        self.ways.append((way.id, [node.ref for node in way.nodes], used))
        self.places.update((n.ref, (n.lon, n.lat)) for n in way.nodes if n.location.valid())
        self.places.update((n.ref, self.new_nodes[n.ref]) for n in way.nodes if n.ref in self.new_nodes)


def _find_deleted(path: Path) -> set[tuple[str, int]]:
    """Return type and id of each element with ``action="delete"``, which osmium ignores."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        return {(found[1].decode(), int(found[2])) for found in DELETION.finditer(content)}


def _is_road(tags: TagList, keys: tuple[str, ...]) -> bool:
    """Return whether a way is a road for the vehicle whose access tags are ``keys``."""
    kind = tags.get("highway")
    extra = "emergency" in keys and kind in EMERGENCY_KMH and tags.get("emergency") in OPEN_VALUES
    return (extra or kind in SPEEDS_KMH) and _is_open(tags, keys)


def _is_open(tags: Mapping[str, str] | TagList, keys: tuple[str, ...], *, default: bool = True) -> bool:
    """Return whether the first of the access tags ``keys`` that is present admits the vehicle; else ``default``."""
    for key in keys:
        value = tags.get(key)
        if value is not None and (key != "emergency" or value in OPEN_VALUES | CLOSED_VALUES):
            return value not in CLOSED_VALUES or (value == "emergency" and "emergency" in keys)
    return default


def _restricted_turns(relation: Relation, keys: tuple[str, ...]) -> list[tuple[Turn, bool]]:
    """Return the turns at a node that a relation restricts, each with True if it is forbidden, False if mandatory."""
    kind = relation.tags.get("restriction:motorcar") or relation.tags.get("restriction") or ""
    exempt = not {"motorcar", *keys}.isdisjoint(re.split(r"\s*;\s*", relation.tags.get("except") or ""))
    roles = defaultdict(list)
    for member in relation.members:
        roles[member.role].append((member.type, member.ref))
    if exempt or not kind.startswith(("no_", "only_")) or [via[0] for via in roles["via"]] != ["n"]:
        return []
    ((_, via),), forbids = roles["via"], kind.startswith("no_")
    return [((start, via, end), forbids) for _, start in roles["from"] for _, end in roles["to"]]


def _split_ways(ways: list[Road], places: NodeCoordinates, closed_nodes: set[int]) -> tuple[list[Edge], int]:
    """Split ways into edges at junctions and closed nodes; return them and the number of ways that lack coordinates."""
    uses = Counter(closed_nodes)  # ways are also cut at nodes that are closed to cars
    for _, nodes, _ in ways:
        uses.update((*nodes, nodes[0], nodes[-1]))  # ends count twice, which makes them junctions
    edges: list[Edge] = []
    street = missing = 0
    for way, nodes, tags in ways:
        speed, direction = _speed_limit_kmh(tags.get("maxspeed", "")), _one_way_direction(tags)
        elevated = any(tags.get(key, "no") != "no" for key in ("tunnel", "bridge"))
        default = (EMERGENCY_KMH | SPEEDS_KMH)[tags["highway"]]
        facts = (speed or default, tags["highway"], elevated, speed is None)
        missing += any(node not in places for node in nodes)
        for number, part in enumerate(_split_nodes(nodes, places, uses)):
            if direction >= 0:
                edges.append(Edge(f"{way}#{number}", part, way, street, *facts))
            if direction <= 0:
                edges.append(Edge(f"-{way}#{number}", part[::-1], way, street, *facts))
            street += 1
    return edges, missing


def _split_nodes(nodes: list[int], places: NodeCoordinates, uses: Mapping[int, int]) -> Iterator[list[int]]:
    """Yield the parts of a way as lists of nodes, cut at junctions and where coordinates are missing."""
    part: list[int] = []
    for node in nodes:
        known = node in places
        part += [node] if known else []
        if len(part) > 1 and (uses[node] > 1 or not known):
            yield part
            part = [node]
        part = part if known else []


def _one_way_direction(tags: Mapping[str, str]) -> int:
    """Return 1 if a way is one-way in the order of its nodes, -1 if against it, and 0 if two-way."""
    if "oneway" in tags:
        return ONE_WAY_DIRECTIONS.get(tags["oneway"], 0)  # other words, such as reversible, count as two-way
    return int(tags.get("junction") in ("roundabout", "circular") or tags["highway"].startswith("motorway"))


def _speed_limit_kmh(text: str) -> float | None:
    """Return the speed limit in a tag ``maxspeed`` such as "50" or "30 mph" in km/h; None if it is not a number."""
    number, _, unit = text.partition(" ")
    try:
        value = float(number) * (KMH_PER_MPH if unit == "mph" else 1.0)
    except ValueError:
        return None
    return value if 0 < value <= 3.6 * MAX_SPEED_M_S else None


def _legal_turns(edges: list[Edge], restrictions: list[tuple[Turn, bool]], closed_nodes: set[int]) -> IntArray:
    """Return the legal turns as pairs of indices of edges (from, to), shape (C, 2), without those at closed nodes."""
    leaving = defaultdict(list)
    for k, edge in enumerate(edges):
        leaving[edge.nodes[0]].append(k)
    forbids = dict(sorted(restrictions, key=lambda rule: rule[1]))  # where two contradict each other, the ban holds
    turns = [
        (k, e)
        for k, edge in enumerate(edges)
        if edge.nodes[-1] not in closed_nodes
        for e in _legal_exits(edge, {e: edges[e] for e in leaving[edge.nodes[-1]]}, forbids)
    ]
    return np.array(turns, dtype=np.int64).reshape(-1, 2)


def _legal_exits(edge: Edge, leaving: dict[int, Edge], forbids: Mapping[Turn, bool]) -> list[int]:
    """Return the indices of the edges, among ``leaving`` from its end, onto which a car on ``edge`` may turn."""
    rule = {e: forbids.get((edge.way, edge.nodes[-1], other.way)) for e, other in leaving.items()}
    onward = {e for e, other in leaving.items() if other.street != edge.street}
    # a restriction from a street onto itself forbids U-turns, not driving on along it
    exits = [e for e in rule if not rule[e] or (leaving[e].way == edge.way and e in onward)]
    exits = [e for e in exits if rule[e] is False] or exits  # an only_ restriction holds if its exit is there
    return [e for e in exits if e in onward or onward.isdisjoint(exits)]
