"""Read a road network from OpenStreetMap (``.osm.pbf``, ``.osm``), with the package osmium.

A way is a road for cars if its ``highway`` is in `SPEEDS_KMH` and no tag excludes cars. It is split into road
edges where it meets another such way. Edges are directed: a two-way street gives two edges, ``"12#0"`` along
way 12 and ``"-12#0"`` against it.

**Speed limit**: ``maxspeed`` if it is a number (km/h or mph), else the default of the road's class in
`SPEEDS_KMH`, which is an assumption.

**Turns**: all turns at a junction are legal except those forbidden by a ``restriction`` relation with one
``via`` node. U-turns are legal if there is no other exit, unless forbidden. Restrictions via a way, by hour
or for other vehicles are ignored.

**Nodes** with missing or invalid coordinates are treated as outside the extract: ways are cut there.

**Bounds**: more than `MOST_BYTES` bytes, `MOST_ELEMENTS` nodes, ways and relations, `MOST_PARTS` roads and
points, or `MOST_EXITS` roads out of one junction are refused. So is a file with a compression ratio above
`MOST_PACKED`, or with fewer than `LEAST_BYTES` bytes per element, because only malicious files look like
that.

**Inclines** need heights, which OpenStreetMap rarely contains; pass a terrain. Tunnels and bridges do not
follow the terrain: their heights are interpolated linearly between the portals. No road may be steeper than
`STEEPEST`; where the terrain would make it so, heights are smoothed. Inclines follow from one height per
junction and the length of the edge, which ensures that a closed loop gains neither height nor energy.
"""

import numpy as np

from .. import _validate
from ..city.travel import EARTH_RADIUS_KM, central_angle
from ..errors import InputError, MissingDependencyError
from ._limits import MOST_M_S, MOST_PARTS

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

ACCESS = ("motorcar", "motor_vehicle", "vehicle", "access")  # the first of these tags that is present decides
SHUT = {"no", "private", "agricultural", "forestry", "delivery", "emergency"}
ONE_WAY = {"yes": 1, "true": 1, "1": 1, "-1": -1, "reverse": -1}
BARRIERS = {"bollard", "block", "cycle_barrier", "jersey_barrier", "kissing_gate", "stile", "turnstile"}
MPH_KMH = 1.609344
SHORTEST_M = 0.1
MOST_BYTES = 2 * 10**9
MOST_ELEMENTS = 4 * 10**7  # about those of a metropolitan region
FEW_ELEMENTS = 5 * 10**5  # always allowed, however small the file
LEAST_BYTES = 2  # per element; extracts have 8 or more
MOST_PACKED = 20  # compression ratio; extracts have 2 to 4
LARGEST_BLOCK = 2**25  # bytes, by the specification of .osm.pbf
MOST_EXITS = 100  # roads out of one junction
MOST_MEMBERS = 100  # of a turn restriction, which has three
USED_TAGS = (*ACCESS, "highway", "maxspeed", "tunnel", "bridge", "oneway", "junction")
STEEPEST = 0.35  # rad, 36 %: the steepest streets there are


def read_osm(path, *, heights=None, speeds=None):
    """Return the arguments of a `RoadNetwork`: the roads for cars, and the turns between them.

    Parameters
    ----------
    path : path-like
    heights : callable, optional
        Function from longitude and latitude, shape (n, 2), to the height of the ground in metres, shape (n,).
    speeds : dict, optional
        Speed limits in km/h by ``highway``, replacing `SPEEDS_KMH`; other roads are left out.

    Returns
    -------
    dict

    Raises
    ------
    InputError
        If the file does not exist, is not an OpenStreetMap file, is truncated, or has no road for cars.
    MissingDependencyError
        If osmium is not installed.
    """
    path = _validate.existing_file(path, "path", "an OpenStreetMap extract, .osm.pbf or .osm")
    if heights is not None and not callable(heights):
        raise InputError(f"`heights` must be a function of longitudes and latitudes; got {_validate.shown(heights)}.")
    speeds = SPEEDS_KMH if speeds is None else _checked(speeds)
    ways, places, restrictions, shut = _elements(path, speeds)
    pieces, missing = _cut(ways, places, speeds, shut)
    if not pieces:
        raise InputError(f"{path} has no road for cars ({', '.join(list(speeds)[:4])} ...).")
    edges = _directed(pieces)
    leaving = _leaving(edges)
    points = [np.array([places[node] for node in nodes]) for _, nodes, *_ in edges]
    lengths = np.array([max(_metres(line), SHORTEST_M) for line in points])
    inclines, notes = _inclines(edges, lengths, places, heights)
    assumed = np.mean([is_default for *_, is_default in edges])
    notes = [f"Speed limits of {assumed:.0%} of the edges are defaults of their class.", *notes]
    if missing:
        notes.append(f"{missing} ways are cut where the extract ends.")
    return {
        "ids": tuple(name for name, *_ in edges),
        "lengths": lengths,
        "speed_limits": np.array([speed / 3.6 for _, _, _, speed, *_ in edges]),
        "inclines": inclines,
        "classes": tuple(kind for _, _, _, _, kind, *_ in edges),
        "polylines": points,
        "connections": _turns(edges, leaving, restrictions, shut),
        "geographic": True,
        "notes": " ".join(notes),
    }


def _elements(path, speeds):
    """Return ways for cars, coordinates of nodes, turn restrictions, and nodes closed to cars."""
    try:
        import osmium
    except ImportError as error:
        msg = "reading OpenStreetMap files needs the package osmium: pip install 'emsopt[roads]'."
        raise MissingDependencyError(msg) from error

    if not path.name.endswith((".pbf", ".osm")):
        raise InputError(
            f"{path} does not have the name of an OpenStreetMap extract, .osm.pbf or .osm. Decompress .osm.gz and "
            ".osm.bz2 first."
        )
    ways, places, restrictions, shut = [], {}, [], set()
    msg = f"{path} is too large for a city, or compressed too strongly. Cut it to the area that you need."
    parts, size = 0, path.stat().st_size
    most = min(MOST_ELEMENTS, max(FEW_ELEMENTS, size / LEAST_BYTES))
    try:
        if size > MOST_BYTES or (path.name.endswith(".pbf") and _content_of_pbf(path) > MOST_PACKED * size):
            raise InputError(msg)
        for number, element in enumerate(osmium.FileProcessor(str(path)).with_locations()):
            if element.is_node():
                barrier = element.tags.get("barrier")
                if barrier is not None and not _is_open(element.tags, default=barrier not in BARRIERS):
                    shut.add(element.id)
            elif element.is_way():
                if element.tags.get("highway") in speeds and _is_open(element.tags):
                    parts += len(element.nodes) + 4
                    if parts <= MOST_PARTS:
                        _add_way(element, ways, places)
            elif element.tags.get("type") == "restriction":
                restrictions += _restriction(element)
            if number >= most or parts > MOST_PARTS:
                raise InputError(msg)
    except InputError:
        raise
    except Exception as error:  # osmium raises many types of errors
        raise InputError(f"{path} is truncated or not an OpenStreetMap file ({error}). Download it again.") from error
    return ways, places, restrictions, shut


def _content_of_pbf(path):
    """Return the decompressed size of a file in bytes as declared by its blocks; osmium enforces it."""
    content = 0
    with path.open("rb") as file:
        while length := int.from_bytes(file.read(4), "big"):
            size = _numbers(file.read(min(length, LARGEST_BLOCK))).get(3, 0)
            content += _numbers(file.read(min(size, LARGEST_BLOCK))).get(2, 0)
    return content


def _numbers(message):
    """Return the integers in a Protocol Buffers message by field, up to its end or the first damage."""
    found, at, parts = {}, 0, []
    while at < len(message):
        number = shift = 0
        while at < len(message) and shift < 64:
            byte = message[at]
            number, shift, at = number | (byte & 127) << shift, shift + 7, at + 1
            if byte < 128:
                break
        parts.append(number)
        field, kind = divmod(parts[0], 8)
        if kind not in (0, 2):  # neither an integer nor a string
            break
        if len(parts) == 2:
            if kind == 0:
                found[field] = number
            else:
                at += number
            parts = []
    return found


def _add_way(element, ways, places):
    """Add a way with two or more nodes, and the coordinates of its nodes where valid."""
    if len(element.nodes) < 2:
        return
    ways.append(
        (
            element.id,
            [node.ref for node in element.nodes],
            {key: element.tags[key] for key in USED_TAGS if key in element.tags},
        )
    )
    places.update((node.ref, (node.lon, node.lat)) for node in element.nodes if node.location.valid())


def _checked(speeds):
    """Return the validated speed limits by class of road."""
    if not isinstance(speeds, dict) or not all(isinstance(key, str) for key in speeds):
        got = _validate.shown(speeds)
        msg = f"`speeds` must be a dict from classes of road to km/h, such as {{'primary': 70.0}}; got {got}."
        raise InputError(msg)
    return {key: _validate.positive_number(value, f"speeds[{key!r}]", "km/h") for key, value in speeds.items()}


def _is_open(tags, *, default=True):
    """Return whether cars may pass, or the default if no tag states it."""
    for key in ACCESS:
        if key in tags:
            return tags[key] not in SHUT
    return default


def _restriction(relation):
    """Return [(from way, via node, to way, kind)] of a restriction for cars at one node, else []."""
    if len(relation.members) > MOST_MEMBERS:
        return []
    kind = relation.tags.get("restriction:motorcar") or relation.tags.get("restriction") or ""
    roles = {}
    for member in relation.members:
        roles.setdefault(member.role, []).append((member.type, member.ref))
    exempt = "motorcar" in relation.tags.get("except", "").split(";")
    if exempt or not kind.startswith(("no_", "only_")) or [t for t, _ in roles.get("via", ())] != ["n"]:
        return []
    via = roles["via"][0][1]
    return [(start, via, end, kind) for _, start in roles.get("from", ()) for _, end in roles.get("to", ())]


def _cut(ways, places, speeds, shut):
    """Split ways at junctions: name, nodes, direction, speed, class, and whether it is a structure."""
    uses = dict.fromkeys(shut, 1)  # cut ways where cars are stopped
    for _, nodes, _ in ways:
        for node in (*nodes, nodes[0], nodes[-1]):  # ends count twice, which makes them junctions
            uses[node] = uses.get(node, 0) + 1
    pieces, missing = [], 0
    for way, nodes, tags in ways:
        speed = _speed(tags.get("maxspeed", ""))
        facts = (
            _direction(tags),
            speed or speeds[tags["highway"]],
            tags["highway"],
            any(tags.get(key, "no") != "no" for key in ("tunnel", "bridge")),
            speed is None,
        )
        missing += any(node not in places for node in nodes)
        run, number = [], 0
        for node in nodes:
            known = node in places
            if known:
                run.append(node)
            if len(run) > 1 and (uses[node] > 1 or not known):
                pieces.append((way, number, run, *facts))
                run, number = [node], number + 1
            if not known:
                run = []
    return pieces, missing


def _direction(tags):
    """Return 1 for one-way along the nodes, -1 for one-way against them, and 0 for two-way."""
    if "oneway" in tags:
        return ONE_WAY.get(tags["oneway"], 0)
    implied = tags.get("junction") in ("roundabout", "circular") or tags["highway"].startswith("motorway")
    return int(implied)


def _speed(text):
    """Return ``maxspeed`` in km/h, or None if it is not a number."""
    number, _, unit = text.partition(" ")
    try:
        value = float(number) * (MPH_KMH if unit == "mph" else 1.0)
    except ValueError:
        return None
    return value if 0 < value <= 3.6 * MOST_M_S else None


def _directed(pieces):
    """Return directed edges: name, nodes, piece, speed, class, way, structure, default speed or not."""
    edges = []
    for k, (way, number, nodes, direction, speed, kind, structure, is_default) in enumerate(pieces):
        if direction >= 0:
            edges.append((f"{way}#{number}", nodes, k, speed, kind, way, structure, is_default))
        if direction <= 0:
            edges.append((f"-{way}#{number}", nodes[::-1], k, speed, kind, way, structure, is_default))
    return edges


def _leaving(edges):
    """Return the indices of the edges that leave each node."""
    leaving = {}
    for k, (_, nodes, *_) in enumerate(edges):
        leaving.setdefault(nodes[0], []).append(k)
    for node, exits in leaving.items():
        if len(exits) > MOST_EXITS:
            msg = f"{len(exits)} roads leave node {node}; at most {MOST_EXITS} are allowed. Correct the map."
            raise InputError(msg)
    return leaving


def _turns(edges, leaving, restrictions, shut):
    """Return legal turns, shape (C, 2)."""
    forbidden, only = set(), {}
    for start, via, end, kind in restrictions:
        if kind.startswith("no_"):
            forbidden.add((start, via, end))
        else:
            only.setdefault((start, via), set()).add(end)
    turns = []
    for k, (_, nodes, piece, *_, way, _, _) in enumerate(edges):
        via = nodes[-1]
        if via in shut:
            continue
        # a restriction from a street onto itself forbids U-turns, not driving on along it
        exits = [
            e
            for e in leaving.get(via, ())
            if (way, via, edges[e][5]) not in forbidden or (edges[e][5] == way and edges[e][2] != piece)
        ]
        wanted = [e for e in exits if edges[e][5] in only.get((way, via), ())]
        onward = [e for e in wanted or exits if edges[e][2] != piece]
        turns += [(k, e) for e in onward or wanted or exits]
    return np.array(turns, dtype=np.intp).reshape(-1, 2)


def _metres(line):
    """Return the length of a line of longitudes and latitudes on the sphere, m."""
    return 1000 * EARTH_RADIUS_KM * central_angle(line[:-1], line[1:]).sum()


def _inclines(edges, lengths, places, heights):
    """Return the incline of each edge between its ends, and notes on it."""
    if heights is None:
        return np.zeros(len(edges)), ["The file has no heights: incline 0."]
    ends = np.array([(nodes[0], nodes[-1]) for _, nodes, *_ in edges])
    nodes, index = np.unique(ends, return_inverse=True)
    index = index.reshape(ends.shape)
    ground = np.asarray(heights(np.array([places[node] for node in nodes])), dtype=float)
    if ground.shape != nodes.shape or not np.isfinite(ground).all():
        msg = f"`heights` must return one finite height per point, shape {nodes.shape}; got shape {ground.shape}."
        raise InputError(msg)
    structure = np.array([is_structure for *_, is_structure, _ in edges])
    level = _straight_inside(ground, index, lengths, structure)
    steep = np.count_nonzero(np.abs(_rises(level, index)) > _most_rise(lengths))
    if not steep:
        return np.arcsin(_rises(level, index) / lengths), []
    smooth = _no_steeper(level, index, _most_rise(lengths))
    moved = np.abs(smooth - level)
    notes = (
        f"{steep} edges would be steeper than {STEEPEST:g} rad: heights of {np.count_nonzero(moved > 0.5)} junctions are "
        f"moved so that none is, by {moved.max():.0f} m at most."
    )
    rises = np.clip(_rises(smooth, index), -_most_rise(lengths), _most_rise(lengths))  # against rounding
    return np.arcsin(rises / lengths), [notes]


def _rises(level, ends):
    """Return the rise of each edge from start to end, m."""
    return level[ends[:, 1]] - level[ends[:, 0]]


def _most_rise(lengths):
    """Return the largest allowed rise of each edge, m."""
    return lengths * np.sin(STEEPEST)


def _no_steeper(level, ends, most):
    """Smooth heights until no edge rises by more than ``most``; change only heights that violate this.

    The highest such heights that never exceed the given ones are shortest paths: min over u of level(u) +
    d(u, v), where d is the largest rise along roads from u to v. The lowest such heights that never fall
    below the given ones are found in the same way. Both meet the limit, and therefore so does their mean.
    """
    from scipy.sparse.csgraph import dijkstra

    n = len(level)

    def below(height):
        # an extra node, from which junction u is reached at the cost of its height
        start, end = np.r_[ends[:, 0], ends[:, 1], np.full(n, n)], np.r_[ends[:, 1], ends[:, 0], np.arange(n)]
        cost = np.r_[most, most, height - height.min() + 1.0]  # a cost of 0 would mean no arc
        return dijkstra(_least(cost, start, end, n + 1), indices=n)[:n] + height.min() - 1.0

    return (below(level) - below(-level)) / 2


def _least(cost, start, end, n):
    """Return a sparse matrix with the smallest of parallel arcs between n nodes; scipy would add them."""
    from scipy import sparse

    order = np.lexsort((cost, end, start))
    row, column = np.array([start, end], dtype=np.int32)[:, order]  # as in `RoadNetwork._search_graph`
    first = np.r_[True, (np.diff(row) != 0) | (np.diff(column) != 0)]
    return sparse.csr_array((cost[order][first], (row[first], column[first])), shape=(n, n))


def _straight_inside(ground, ends, lengths, structure):
    """Return the ground's heights of junctions, interpolated between portals in tunnels and on bridges."""
    from scipy import sparse
    from scipy.sparse.linalg import spsolve

    inside = np.ones(len(ground), dtype=bool)
    inside[ends[~structure]] = False  # a junction with at least one road on the ground is on the ground
    inside[_dead_ends(ends, len(ground))] = False
    if not inside.any():
        return ground
    start, end = ends[structure].T
    pull = 1 / lengths[structure]
    n = len(ground)
    graph = sparse.csr_array((np.r_[pull, pull], (np.r_[start, end], np.r_[end, start])), shape=(n, n))
    laplacian = sparse.csr_array(sparse.diags_array(graph.sum(axis=1)) - graph)
    level = ground.copy()
    held = laplacian[inside][:, ~inside] @ ground[~inside]
    # a tiny weight on the ground's height makes the system regular for tunnels without a portal
    system = laplacian[inside][:, inside] + 1e-9 * sparse.eye_array(inside.sum())
    level[inside] = spsolve(sparse.csc_array(system), 1e-9 * ground[inside] - held)
    return level


def _dead_ends(ends, n):
    """Return junctions at which only one street ends, for example where an extract cuts a tunnel."""
    streets = np.unique(np.sort(ends, axis=1), axis=0)
    return np.flatnonzero(np.bincount(streets.ravel(), minlength=n) == 1)
