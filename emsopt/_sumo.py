"""Read a road network in the format of the traffic simulator SUMO (``.net.xml``, also compressed by gzip).

The file is read as a stream, an element at a time, so that a large network needs little memory.
"""

import gzip
import zlib
from pathlib import Path
from xml.etree import ElementTree

import numpy as np

from .errors import InputError

GZIP_START = b"\x1f\x8b"


def read_net(path, vehicle="passenger"):
    """Return the arguments of a `RoadNetwork`: all roads that a vehicle class may use, and the turns between them.

    A lane is open to the vehicle if ``allow`` lists it, or, where there is no ``allow``, if ``disallow`` does not; a
    road is open if any of its lanes is. Length, speed limit and geometry are those of its first open lane. A turn is
    legal if a connection leads from an open lane to an open lane; changing lanes on the way is taken to be possible.
    Inner roads of junctions, pavements and crossings are left out.

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
        If there is no such file, it is no SUMO network, it is cut short, or a lane lacks a length, speed or shape.
    """
    path = Path(path).expanduser()
    if not path.is_file():
        msg = f"there is no file {path}; give the path of a SUMO network, .net.xml or .net.xml.gz."
        raise InputError(msg)
    roads, turns, place = {}, set(), {}
    lanes = {}  # of every open road: the indices of its open lanes
    try:
        with _opened(path) as stream:
            for element in _top_elements(stream, path):
                if element.tag == "edge":
                    _add_road(element, vehicle, roads, lanes)
                elif element.tag == "connection":
                    _add_turn(element, vehicle, lanes, turns)
                elif element.tag == "location":
                    place = dict(element.attrib)
    except (ElementTree.ParseError, EOFError, gzip.BadGzipFile, zlib.error) as error:
        msg = f"{path} is cut short or is no XML ({error}). Fetch or export it again."
        raise InputError(msg) from error
    except InputError as error:
        msg = f"{path} cannot be read. {error}"
        raise InputError(msg) from error
    if not roads:
        msg = f"{path} has no road that is open to the vehicle class {vehicle!r}."
        raise InputError(msg)
    return _as_arguments(roads, turns, place)


def _opened(path):
    with path.open("rb") as file:
        is_gzip = file.read(2) == GZIP_START
    return gzip.open(path) if is_gzip else path.open("rb")


def _top_elements(stream, path):
    """Yield every child of the root once it is complete, and forget it afterwards."""
    depth, root = 0, None
    for event, element in ElementTree.iterparse(stream, events=("start", "end")):
        if event == "start":
            if root is None:
                root = element
                if root.tag != "net":
                    msg = f"Expected a SUMO network, whose root is <net>, but {path.name} starts with <{root.tag}>."
                    raise InputError(msg)
            depth += 1
            continue
        depth -= 1
        if depth == 1:
            yield element
            root.clear()


def _add_road(element, vehicle, roads, lanes):
    """Add a road if it has an open lane: length, speed, class and points of that lane."""
    if element.get("function", "normal") != "normal":
        return
    opened = [lane for lane in element.iter("lane") if _is_open(lane, vehicle)]
    if not opened:
        return
    name = element.get("id")
    if name is None or name in roads:
        msg = f"Every <edge> needs an id of its own; got {name!r}{'' if name is None else ' twice'}."
        raise InputError(msg)
    lane = opened[0]
    where = f"lane {lane.get('id')!r}"
    length = _above_zero(lane, "length", where, "m")
    speed = _above_zero(lane, "speed", where, "m/s")
    roads[name] = (length, speed, element.get("type") or "unknown", _points(lane, where))
    lanes[name] = {lane.get("index") for lane in opened}


def _add_turn(element, vehicle, lanes, turns):
    start, end = element.get("from"), element.get("to")
    if (
        element.get("fromLane") in lanes.get(start, ())
        and element.get("toLane") in lanes.get(end, ())
        and _is_open(element, vehicle)
    ):
        turns.add((start, end))


def _is_open(element, vehicle):
    """Return whether a lane or connection admits the vehicle; ``allow`` goes before ``disallow``."""
    allowed, refused = element.get("allow", "").split(), element.get("disallow", "").split()
    if allowed:
        return vehicle in allowed or "all" in allowed
    return vehicle not in refused and "all" not in refused


def _above_zero(element, key, where, unit):
    text = element.get(key)
    try:
        value = float(text)
    except (TypeError, ValueError):
        value = np.nan
    if not 0 < value < np.inf:
        got = "it is missing" if text is None else f"got {text!r}"
        msg = f"The {key} of {where} must be a number above 0 ({unit}); {got}. Correct the file or leave the road out."
        raise InputError(msg)
    return value


def _points(lane, where):
    """Return the shape of a lane, shape (k, 3); heights that are not given are NaN."""
    text = lane.get("shape", "")
    try:
        points = [[float(number) for number in point.split(",")] for point in text.split()]
        points = np.array([[*point, np.nan][:3] for point in points])
        if points.ndim != 2 or len(points) < 2 or not np.isfinite(points[:, :2]).all():
            raise ValueError
    except ValueError:
        msg = f"The shape of {where} must be two or more points 'x,y' or 'x,y,z'; got {text[:60]!r}."
        raise InputError(msg) from None
    return points


def _as_arguments(roads, turns, place):
    index = {name: k for k, name in enumerate(roads)}
    lengths, speeds, classes, points = zip(*roads.values(), strict=True)
    inclines = np.array([_incline(line) for line in points])
    notes = []
    if np.isnan(inclines).any():
        notes.append(f"{np.isnan(inclines).sum()} of {len(inclines)} roads have no heights: incline 0.")
    to_degrees = _projection(place)
    if to_degrees is None:
        notes.append("The projection is not UTM on WGS84: geometry stays in metres, without a map.")
    polylines = [line[:, :2] if to_degrees is None else to_degrees(line[:, :2]) for line in points]
    return {
        "ids": tuple(roads),
        "lengths": np.array(lengths),
        "speed_limits": np.array(speeds),
        "inclines": np.nan_to_num(inclines),
        "classes": classes,
        "polylines": polylines,
        "connections": np.array([(index[a], index[b]) for a, b in sorted(turns)], dtype=np.intp).reshape(
            -1, 2
        ),
        "geographic": to_degrees is not None,
        "notes": " ".join(notes),
    }


def _incline(points):
    """Return the angle between the ends of a road, upward positive; NaN without heights."""
    across = np.hypot(*np.diff(points[:, :2], axis=0).T).sum()
    return np.arctan2(points[-1, 2] - points[0, 2], across) if across > 0 else np.nan


def _projection(place):
    """Return a function from the file's metres to degrees, or None if the projection is not UTM on WGS84."""
    words = dict(word.lstrip("+").partition("=")[::2] for word in place.get("projParameter", "").split())
    if words.get("proj") != "utm" or "WGS84" not in (words.get("ellps"), words.get("datum")):
        return None
    try:
        zone = int(words["zone"])
        offset = np.array([float(number) for number in place["netOffset"].split(",")])
    except (KeyError, ValueError):
        return None
    return lambda points: utm_to_degrees(points - offset, zone, south="south" in words)


def utm_to_degrees(points, zone, *, south=False):
    """Return longitude and latitude of UTM coordinates on WGS84.

    The inverse transverse Mercator projection by Krüger's series to the third order, which is exact to a millimetre
    within a zone.

    Parameters
    ----------
    points : ndarray, shape (n, 2)
        Easting and northing in metres.
    zone : int
        From 1 to 60.
    south : bool
        Whether northing counts from 10,000 km south of the equator.

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
    north = (points[:, 1] - (1e7 if south else 0.0)) / (scale * radius)
    east = (points[:, 0] - 5e5) / (scale * radius)
    xi = north - sum(b * np.sin(2 * j * north) * np.cosh(2 * j * east) for j, b in enumerate(beta, 1))
    eta = east - sum(b * np.cos(2 * j * north) * np.sinh(2 * j * east) for j, b in enumerate(beta, 1))
    conformal = np.arcsin(np.sin(xi) / np.cosh(eta))
    latitude = conformal + sum(d * np.sin(2 * j * conformal) for j, d in enumerate(delta, 1))
    longitude = np.arctan2(np.sinh(eta), np.cos(xi)) + np.radians(6 * zone - 183)
    return np.degrees(np.column_stack([longitude, latitude]))
