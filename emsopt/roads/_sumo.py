"""Read a road network in the format of the traffic simulator SUMO (``.net.xml``, also compressed by gzip).

The file is read as a stream, one element at a time, to save memory. Content beyond the needs of a city is
refused as soon as it is read: more than `MOST_TEXT` bytes of text, an element of more than `MOST_ELEMENT`
bytes, more than `MOST_PARTS` roads, points and turns, declared entities, encodings other than those in
`ENCODINGS`.
"""

from xml.parsers import expat

import numpy as np

from .._files import inflate
from .._validate import existing_file, shown
from ..errors import InputError
from ._limits import FARTHEST_M, LONGEST_M, MOST_M_S, MOST_PARTS

MOST_TEXT = 2 * 10**9
MOST_ELEMENT = 4 * 10**6  # an edge with all its lanes has a few thousand
ENCODINGS = ("UTF-8", "UTF-16", "ISO-8859-1", "US-ASCII")  # those supported by the parser
UTM_ZONES = 60
UTM_MIDDLE_M, UTM_REACH_M = 5e5, 1e6  # easting of a zone's meridian, and the largest distance from it
UTM_SOUTH_M, UTM_NORTH_M = 1e7, 9.4e6  # northing of the equator in the south, and the largest distance to it
HIGHEST_M = 1e4  # of any point


def read_net(path, vehicle="passenger"):
    """Return the arguments of a `RoadNetwork`: the roads open to a vehicle class, and the turns between them.

    A lane is open to the vehicle if ``allow`` lists it or, without ``allow``, if ``disallow`` does not list
    it. A road is open if any of its lanes is open; its length, speed limit and geometry are those of its
    first open lane. A turn is legal if a connection leads from an open lane to an open lane; lane changes
    along a road are assumed to be possible. Internal roads of junctions, pavements and crossings are left
    out.

    Parameters
    ----------
    path : path-like
    vehicle : str
        SUMO's name of the vehicle class.

    Returns
    -------
    dict

    Raises
    ------
    InputError
        If the file does not exist, is not a SUMO network, is truncated or too large, or a lane has no length,
        speed or shape.
    """
    path = existing_file(path, "path", "a SUMO network, .net.xml or .net.xml.gz")
    if not isinstance(vehicle, str):
        msg = f"`vehicle` must be SUMO's name of a vehicle class, such as 'passenger'; got {shown(vehicle)}."
        raise InputError(msg)
    roads, turns, place, parts = {}, set(), {}, 0
    lanes = {}  # for each open road: its number and the indices of its open lanes
    try:
        for tag, element, its_lanes in _top_elements(path):
            if tag == "edge":
                parts += _add_road(element, its_lanes, vehicle, roads, lanes)
            elif tag == "connection":
                _add_turn(element, vehicle, lanes, turns)
            elif tag == "location":
                place = element
            if parts + len(turns) > MOST_PARTS:
                msg = f"It has more than {MOST_PARTS:,} roads, points and turns. Cut it to the area that you need."
                raise InputError(msg)
    except InputError as error:
        raise InputError(f"{path} cannot be read. {error}") from error
    except (expat.ExpatError, *inflate.DAMAGED) as error:
        raise InputError(f"{path} is truncated or not XML ({error}). Download or export it again.") from error
    if not roads:
        raise InputError(f"{path} has no road open to the vehicle class {shown(vehicle)}.")
    return _as_arguments(roads, turns, place)


def _top_elements(path):
    """Yield the tag and attributes of each complete child of the root, and the attributes of its lanes."""
    depth, complete, lanes, top = 0, [], [], None
    parser = expat.ParserCreate()

    def start(tag, attributes):
        nonlocal depth, lanes, top
        depth += 1
        if depth == 1 and tag != "net":
            msg = f"Expected a SUMO network with the root element <net>, but {path.name} starts with <{tag:.60}>."
            raise InputError(msg)
        if depth == 2:
            top, lanes = attributes, []
        elif tag == "lane":
            lanes.append(attributes)

    def end(tag):
        nonlocal depth
        depth -= 1
        if depth == 1:
            complete.append((tag, top, lanes))

    def declared(_version, encoding, _standalone):
        if encoding is not None and encoding.upper() not in ENCODINGS:
            raise InputError(f"Its encoding {shown(encoding)} is not one of {', '.join(ENCODINGS)}. Save it as UTF-8.")

    def entity(*_):
        raise InputError("It declares XML entities, which SUMO networks do not use. Download or export it again.")

    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.XmlDeclHandler, parser.EntityDeclHandler = declared, entity
    pending = 0  # bytes since the last complete element
    for piece in inflate.pieces(path, MOST_TEXT):
        parser.Parse(piece)
        pending = 0 if complete else pending + len(piece)
        if pending > MOST_ELEMENT:
            raise InputError(
                f"One of its elements has more than {MOST_ELEMENT / 1e6:g} MB, too much for a road. Download "
                "or export it again."
            )
        yield from complete
        complete.clear()
    parser.Parse(b"", True)
    yield from complete


def _add_road(element, its_lanes, vehicle, roads, lanes):
    """Add a road if it has an open lane, with the data of that lane; return the size of what was added."""
    if element.get("function", "normal") != "normal":
        return 0
    opened = [lane for lane in its_lanes if _is_open(lane, vehicle)]
    if not opened:
        return 0
    name = element.get("id")
    if name is None or name in roads:
        raise InputError(f"Every <edge> needs a unique id; got {shown(name)}{'' if name is None else ' twice'}.")
    lane = opened[0]
    where = f"lane {shown(lane.get('id'))}"
    length = _number(lane, "length", where, "m", LONGEST_M)
    speed = _number(lane, "speed", where, "m/s", MOST_M_S)
    points = _points(lane, where)
    lanes[name] = len(roads), {lane.get("index") for lane in opened}
    roads[name] = length, speed, element.get("type") or "unknown", points
    return len(points) + 4


def _add_turn(element, vehicle, lanes, turns):
    start, its_lanes = lanes.get(element.get("from"), (None, ()))
    end, next_lanes = lanes.get(element.get("to"), (None, ()))
    if element.get("fromLane") in its_lanes and element.get("toLane") in next_lanes and _is_open(element, vehicle):
        turns.add((start, end))


def _is_open(element, vehicle):
    """Return whether a lane or connection admits the vehicle; ``allow`` overrides ``disallow``."""
    allowed, refused = element.get("allow", "").split(), element.get("disallow", "").split()
    if allowed:
        return vehicle in allowed or "all" in allowed
    return vehicle not in refused and "all" not in refused


def _number(element, key, where, unit, most):
    text = element.get(key)
    try:
        value = float(text)
    except (TypeError, ValueError):
        value = np.nan
    if not 0 < value <= most:
        got = "it is missing" if text is None else f"got {shown(text)}"
        raise InputError(
            f"The {key} of {where} must be a number above 0 and at most {most:g} ({unit}); {got}. Correct the file or "
            "leave the road out."
        )
    return value


def _points(lane, where):
    """Return the points of a lane, shape (k, 3); missing heights are NaN."""
    text = lane.get("shape", "")
    try:
        points = np.array([[*map(float, point.split(",")[:3]), np.nan][:3] for point in text.split()])
        if points.ndim != 2 or len(points) < 2:
            raise ValueError
        if not (np.abs(points[:, :2]) <= FARTHEST_M).all() or (np.abs(points[:, 2]) > HIGHEST_M).any():
            raise ValueError
    except ValueError:
        raise InputError(
            f"The shape of {where} must have at least two points 'x,y' or 'x,y,z' in metres, with heights of at most "
            f"{HIGHEST_M:g}; got {text[:60]!r}."
        ) from None
    return points


def _as_arguments(roads, turns, place):
    lengths, speeds, classes, points = zip(*roads.values(), strict=True)
    inclines = np.array([_incline(line) for line in points])
    notes = []
    if np.isnan(inclines).any():
        notes.append(f"{np.isnan(inclines).sum()} of {len(inclines)} roads have no heights: incline 0.")
    polylines, reason = _in_degrees([line[:, :2] for line in points], place)
    if reason:
        notes.append(f"{reason}: geometry stays in metres, without a map.")
    return {
        "ids": tuple(roads),
        "lengths": np.array(lengths),
        "speed_limits": np.array(speeds),
        "inclines": np.nan_to_num(inclines),
        "classes": classes,
        "polylines": polylines,
        "connections": np.array(sorted(turns), dtype=np.intp).reshape(-1, 2),
        "geographic": not reason,
        "notes": " ".join(notes),
    }


def _incline(points):
    """Return the incline between the ends of a road, upward positive; NaN without heights."""
    across = np.hypot(*np.diff(points[:, :2], axis=0).T).sum()
    return np.arctan2(points[-1, 2] - points[0, 2], across) if across > 0 else np.nan


def _in_degrees(lines, place):
    """Return lines in degrees and an empty text, or unchanged lines and why they cannot be converted."""
    words = dict(word.lstrip("+").partition("=")[::2] for word in place.get("projParameter", "").split())
    unknown = "The projection is not UTM on WGS84"
    if words.get("proj") != "utm" or "WGS84" not in (words.get("ellps"), words.get("datum")):
        return lines, unknown
    try:
        zone = int(words["zone"])
        x, y = map(float, place["netOffset"].split(","))
    except (KeyError, ValueError):
        return lines, unknown
    if not 1 <= zone <= UTM_ZONES:
        return lines, unknown
    south = "south" in words
    moved = [line - (x, y) for line in lines]
    east, north = np.concatenate(moved).T
    equator = UTM_SOUTH_M if south else 0.0
    if not ((np.abs(east - UTM_MIDDLE_M) <= UTM_REACH_M) & (np.abs(north - equator) <= UTM_NORTH_M)).all():
        return lines, f"Some coordinates lie outside of UTM zone {zone}"
    return [utm_to_degrees(line, zone, south=south) for line in moved], ""


def utm_to_degrees(points, zone, *, south=False):
    """Convert UTM coordinates on WGS84 to longitude and latitude.

    Computes the inverse transverse Mercator projection by Krüger's series to the third order, accurate to a
    millimetre within a zone.

    Parameters
    ----------
    points : ndarray, shape (n, 2)
        Easting and northing in metres.
    zone : int
        From 1 to 60.
    south : bool
        Whether northings are measured from 10,000 km south of the equator.

    Returns
    -------
    ndarray, shape (n, 2)
        Degrees.
    """
    a, f, scale = 6378137.0, 1 / 298.257223563, 0.9996
    n = f / (2 - f)
    radius = a / (1 + n) * (1 + n**2 / 4 + n**4 / 64)
    beta = (n / 2 - 2 * n**2 / 3 + 37 * n**3 / 96, n**2 / 48 + n**3 / 15, 17 * n**3 / 480)
    delta = (2 * n - 2 * n**2 / 3 - 2 * n**3, 7 * n**2 / 3 - 8 * n**3 / 5, 56 * n**3 / 15)
    north = (points[:, 1] - (UTM_SOUTH_M if south else 0.0)) / (scale * radius)
    east = (points[:, 0] - UTM_MIDDLE_M) / (scale * radius)
    xi = north - sum(b * np.sin(2 * j * north) * np.cosh(2 * j * east) for j, b in enumerate(beta, 1))
    eta = east - sum(b * np.cos(2 * j * north) * np.sinh(2 * j * east) for j, b in enumerate(beta, 1))
    conformal = np.arcsin(np.sin(xi) / np.cosh(eta))
    latitude = conformal + sum(d * np.sin(2 * j * conformal) for j, d in enumerate(delta, 1))
    longitude = np.arctan2(np.sinh(eta), np.cos(xi)) + np.radians(6 * zone - 183)
    return np.degrees(np.column_stack([longitude, latitude]))
