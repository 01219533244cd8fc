"""Build cities from tables, and save and load them as folders of plain files.

`City.from_frames` takes tables; `City.load` reads the same content from files that a spreadsheet or an editor
can write:

=====================  =========================================================================================
``city.json``          ``{"name": ..., "notes": ..., "geographic": true}``; all entries are optional. With
                       ``"speed_kmh"`` (and ``"detour"``) travel times are computed and need no table
``atoms.csv``          ``name, lon, lat, arrival_rate`` (calls/h)
``sites.csv``          ``name, lon, lat, turnout_min, service_min``
``travel_times.csv``   minutes; one row per site, one column per atom, both by name
``service_times.csv``  same form, instead of ``service_min`` if times also depend on the atom
``preference.csv``     same form, smaller is preferred; only if not simply the closest unit
``atoms.geojson``      one Polygon or MultiPolygon per atom, named by its property ``atom``
=====================  =========================================================================================

``x, y`` (kilometres on a plane) may replace ``lon, lat`` (degrees). Saving and loading a city preserves every
number exactly.
"""

import json
import os
import sys
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
import pandas as pd

from .. import _validate
from .._files import columns, plain, writing
from .._validate import positive_number, shown
from ..errors import InputError
from . import travel

FORMAT_VERSION = 1
LONGITUDE, LATITUDE = ("lon", "longitude"), ("lat", "latitude")
WIDEST_PLANE_KM = 2000  # coordinates that span more must be in metres

CITY, ATOMS, SITES = "city.json", "atoms.csv", "sites.csv"
TRAVEL, SERVICE, PREFERENCE = "travel_times.csv", "service_times.csv", "preference.csv"
SHAPES = "atoms.geojson"
FILES = (CITY, ATOMS, SITES, TRAVEL, SERVICE, PREFERENCE, SHAPES)
CITY_KEYS = {
    "version": int,
    "name": str,
    "notes": str,
    "geographic": bool,
    "speed_kmh": float,
    "detour": float,
}


# -- from frames --------------------------------------------------------------------------------------------------


def arguments_of_frames(
    demand,
    sites,
    *,
    travel_times=None,
    speed_kmh=None,
    detour=1.3,
    turnout_times=None,
    service_times=None,
    preference=None,
    period_hours=None,
    name="city",
    notes="",
):
    """Return the arguments of a `City`, as a dict; `City.from_frames` describes the parameters."""
    atoms = _places(demand, "demand", ("name", "atom"))
    stations = _places(sites, "sites", ("name", "site"))
    kinds = {places.geographic for places in (atoms, stations) if places.points is not None}
    if len(kinds) > 1:
        raise InputError(
            f"{atoms.where} and {stations.where} must have the same kind of coordinates, longitude and latitude or x "
            f"and y; {(atoms if atoms.geographic else stations).where} has longitude and latitude, the other x and y."
        )

    def by_site_and_atom(values, argument, expected, **limits):
        if isinstance(values, pd.DataFrame):
            return columns.matrix(values, argument, stations.names, atoms.names, expected, **limits)
        return values

    def by_site(values, argument, column, **limits):
        given = values is not None
        if given == (column in stations.table.columns):
            needed = f"either a column {column!r} (minutes) or `{argument}`, {'not both' if given else 'one of them'}"
            raise columns.missing(stations.table, stations.where, needed)
        return values if given else stations.numbers(column, "minutes", **limits)

    if (travel_times is None) == (speed_kmh is None):
        both = "both were" if speed_kmh is not None else "neither was"
        raise InputError(f"give travel times by exactly one of `travel_times` and `speed_kmh` (km/h); {both} given.")
    if speed_kmh is not None:
        travel_times = travel.constant_speed(positive_number(speed_kmh, "speed_kmh", "km/h"))
    if callable(travel_times):
        travel_times = _by_law(travel_times, stations, atoms, detour)

    positive = {"low": 0, "strictly": True}
    service_times = by_site(service_times, "service_times", "service_min", **positive)
    return {
        "arrival_rates": _arrival_rates(atoms, period_hours),
        "travel_times": by_site_and_atom(travel_times, "travel_times", "minutes of at least 0", low=0),
        "turnout_times": by_site(turnout_times, "turnout_times", "turnout_min", low=0),
        "service_times": by_site_and_atom(service_times, "service_times", "minutes above 0", **positive),
        "preference": by_site_and_atom(preference, "preference", "a rank or a cost"),
        "atom_names": atoms.names,
        "site_names": stations.names,
        "atom_locations": atoms.points,
        "site_locations": stations.points,
        "atom_shapes": atoms.shapes,
        "geographic": kinds.pop() if kinds else True,
        "name": name,
        "notes": notes,
    }


class _Places(NamedTuple):
    """The rows of a table and their locations."""

    table: pd.DataFrame  # with lower-case column names
    where: str  # its name in messages
    names: list
    geographic: bool
    points: np.ndarray | None  # (rows, 2): longitude and latitude, or x and y
    shapes: list | None  # GeoJSON geometries

    def numbers(self, column, expected, **limits):
        return columns.numbers(self.table, column, self.where, self.names, expected, **limits)


def _places(frame, argument, name_columns):
    geometry = None
    if _is_geodataframe(frame):
        try:
            geometry = frame.geometry
        except AttributeError as error:
            msg = f"`{argument}` is a GeoDataFrame without a geometry. Set one with `set_geometry`."
            raise InputError(msg) from error
        frame = pd.DataFrame(frame.drop(columns=geometry.name))
    table, where = columns.tidy(frame, argument, name_columns), columns.label(frame, argument)
    names = columns.names(table, where, name_columns)
    geographic = geometry is not None or any(key in table.columns for key in (*LONGITUDE, *LATITUDE))
    places = _Places(table, where, names, geographic, None, None)
    if geometry is not None:
        points, shapes = _from_geometry(geometry, where, names)
        return places._replace(points=points, shapes=shapes)
    return places._replace(points=_degrees(places) if geographic else _kilometres(places))


def _pair(places, x_names, y_names):
    """Return the names of a pair of coordinate columns, or None if neither exists."""
    x, y = columns.column(places.table, x_names), columns.column(places.table, y_names)
    if (x is None) != (y is None):
        needed = f"a column {(y_names if y is None else x_names)[0]!r} beside {x or y!r}"
        raise columns.missing(places.table, places.where, needed)
    return x and (x, y)


def _degrees(places):
    x, y = _pair(places, LONGITUDE, LATITUDE)
    try:
        longitude = places.numbers(x, "degrees from -180 to 180", low=-180, high=180)
        latitude = places.numbers(y, "degrees from -90 to 90", low=-90, high=90)
    except InputError as error:
        if not (np.abs(columns.floats(places.table[y])) > 90).any():
            raise
        msg = f"{error} Latitude and longitude look swapped, or are kilometres, which belong in columns x and y."
        raise InputError(msg) from error
    return np.column_stack([longitude, latitude])


def _kilometres(places):
    pair = _pair(places, ("x",), ("y",))
    if pair is None:
        return None
    points = np.column_stack([places.numbers(key, "kilometres") for key in pair])
    span = np.ptp(points, axis=0).max()
    if span > WIDEST_PLANE_KM:
        raise InputError(
            f"{places.where}, columns 'x' and 'y': expected kilometres, but they span {span:g}. Divide metres by 1000."
        )
    return points


def _is_geodataframe(frame):
    """Return whether this is a GeoDataFrame, without importing geopandas if it is not in use."""
    geopandas = sys.modules.get("geopandas")
    return geopandas is not None and isinstance(frame, geopandas.GeoDataFrame)


def _from_geometry(geometry, where, names):
    """Return a point per row in degrees, and the shapes as GeoJSON if all rows are areas."""
    for k, shape in enumerate(geometry):
        problem = None
        if shape is None or shape.is_empty:
            problem = "the geometry is missing or empty"
        elif shape.geom_type not in ("Point", "Polygon", "MultiPolygon"):
            problem = f"the geometry is a {shape.geom_type}, not a Point, Polygon or MultiPolygon"
        elif not shape.is_valid:
            problem = "the polygon crosses itself (repair it with `make_valid`)"
        elif (shape.geom_type == "Point") != (geometry.iloc[0].geom_type == "Point"):
            problem = "points and polygons are mixed"
        if problem:
            raise InputError(f"{where}, row {k + 1} ({names[k]!r}): {problem}.")
    if geometry.crs is not None:
        geometry = geometry.to_crs(4326)
    inside = geometry.representative_point()
    points = np.column_stack([inside.x, inside.y])
    if not np.isfinite(points).all() or np.abs(points[:, 0]).max() > 180 or np.abs(points[:, 1]).max() > 90:
        raise InputError(
            f"{where}: the geometry is not in degrees, such as {points[0].tolist()}. "
            "Declare its coordinate system with `set_crs`; coordinates are then converted."
        )
    if geometry.iloc[0].geom_type == "Point":
        return points, None
    return points, [_as_geojson(shape) for shape in geometry]


def _as_geojson(shape):
    from shapely import force_2d
    from shapely.geometry import mapping

    return json.loads(json.dumps(mapping(force_2d(shape))))  # turn tuples into lists, as in GeoJSON


def _arrival_rates(atoms, period_hours):
    if period_hours is None:
        if "arrival_rate" not in atoms.table.columns:
            needed = "a column 'arrival_rate' (calls per hour); City.from_frames also takes 'calls' with `period_hours`"
            raise columns.missing(atoms.table, atoms.where, needed)
        return atoms.numbers("arrival_rate", "calls per hour of at least 0", low=0)
    if "calls" not in atoms.table.columns:
        raise columns.missing(atoms.table, atoms.where, "a column 'calls' to go with `period_hours`")
    return atoms.numbers("calls", "a number of calls", low=0) / positive_number(period_hours, "period_hours", "hours")


def _by_law(law, stations, atoms, detour):
    """Return travel times, shape (N, M), by a travel-time law."""
    if positive_number(detour, "detour") < 1:
        msg = f"`detour` must be the ratio of road to straight-line distance, at least 1; got {shown(detour)}."
        raise InputError(msg)
    for places in (stations, atoms):
        if places.points is None:
            needed = "locations to compute travel times from, as columns 'lon' and 'lat' or 'x' and 'y'"
            raise columns.missing(places.table, places.where, needed)
    distance = travel.great_circle_km if stations.geographic else travel.plane_km
    return law(distance(stations.points, atoms.points) * detour)


# -- to a folder --------------------------------------------------------------------------------------------------


def check_replaceable(folder):
    """Raise if a folder holds anything but a city; call this before a long computation."""
    writing.check_replaceable(folder, CITY, FILES)


def write_folder_of(city, folder):
    """Write a city to a folder of plain files, either all of them or none.

    Parameters
    ----------
    city : City
    folder : path_like
        A new or empty folder, or one that holds only a city, which is replaced.

    Returns
    -------
    pathlib.Path
        The folder.

    Raises
    ------
    InputError
        If the folder holds anything but a city, or the city could not be read back. The folder is left
        unchanged.
    WriteError
        If the disk is full or read-only, or permission is denied. The folder is left unchanged.
    """
    city.replace()  # raises for an extreme load from `City.scaled`, which could not be read back
    return writing.write_folder(folder, _as_files(city), marker=CITY, replaceable=FILES)


def _as_files(city):
    """Return the content of each file of a city's folder, by file name."""
    about = {"version": FORMAT_VERSION, "name": city.name, "notes": city.notes, "geographic": city.geographic}
    x, y = ("lon", "lat") if city.geographic else ("x", "y")
    atoms, sites = {"name": city.atom_names}, {"name": city.site_names}
    for table, points in ((atoms, city.atom_locations), (sites, city.site_locations)):
        table.update({} if points is None else {x: points[:, 0], y: points[:, 1]})
    atoms["arrival_rate"] = city.arrival_rates
    sites["turnout_min"] = city.turnout_times
    by_site = (city.service_times == city.service_times[:, :1]).all()
    if by_site:
        sites["service_min"] = city.service_times[:, 0]

    def matrix(values):
        return plain.csv_text(["site", *city.atom_names], [city.site_names, *values.T])

    files = {
        CITY: plain.json_text(about),
        ATOMS: plain.csv_text(atoms.keys(), atoms.values()),
        SITES: plain.csv_text(sites.keys(), sites.values()),
        TRAVEL: matrix(city.travel_times),
    }
    if not by_site:
        files[SERVICE] = matrix(city.service_times)
    if city.preference is not None:
        files[PREFERENCE] = matrix(city.preference)
    if city.atom_shapes is not None:
        files[SHAPES] = plain.shapes_text(city.atom_names, city.atom_shapes, city.notes)
    return files


# -- from a folder ------------------------------------------------------------------------------------------------


@contextmanager
def reading(folder):
    """Yield the folder of a city as a path, and add its name to errors."""
    folder = _validate.path(folder, "folder")
    try:
        yield folder
    except InputError as error:
        raise InputError(f"the city in {shown(str(folder), str, 300)} cannot be read. {error}") from error


def arguments_of_folder(folder):
    """Return the arguments of a `City` from a folder of plain files, as a dict."""
    if not os.path.isdir(folder):  # `Path.is_dir` raises if the name is too long
        raise InputError("There is no such folder.")
    missing = [name for name in (CITY, ATOMS, SITES) if not os.path.lexists(folder / name)]
    if missing:
        held = ", ".join(sorted(path.name for path in folder.iterdir())[:8]) or "nothing"
        raise InputError(f"A city needs {CITY}, {ATOMS} and {SITES}; {missing[0]} is missing. The folder holds {held}.")
    for name in FILES:
        if os.path.lexists(folder / name) and not os.path.isfile(folder / name):  # `is_file` may raise
            raise InputError(f"{name} must be a file, but is a folder or a broken link.")

    about = _read_about(folder / CITY)

    def matrix(name):
        path = folder / name
        return plain.read_csv(path, labelled=True) if path.is_file() else None

    travel_times = matrix(TRAVEL)
    if (travel_times is None) == ("speed_kmh" not in about):
        both = "both are there" if travel_times is not None else "neither is there"
        raise InputError(f"Travel times must be given by exactly one of {TRAVEL} and 'speed_kmh' in {CITY}; {both}.")
    sites = plain.read_csv(folder / SITES)
    service_times = matrix(SERVICE)
    if (service_times is None) == ("service_min" not in columns.tidy(sites, "sites", ()).columns):
        both = "both are there" if service_times is not None else "neither is there"
        raise InputError(
            f"Service times must be given by exactly one of the column 'service_min' of {SITES} and {SERVICE}; {both}."
        )
    arguments = arguments_of_frames(
        plain.read_csv(folder / ATOMS),
        sites,
        travel_times=travel_times,
        service_times=service_times,
        preference=matrix(PREFERENCE),
        name=about.get("name", folder.resolve().name),
        notes=about.get("notes", ""),
        **{key: about[key] for key in ("speed_kmh", "detour") if key in about},
    )
    geographic = about.get("geographic", arguments["geographic"])
    if geographic != arguments["geographic"]:
        if arguments["atom_locations"] is not None or arguments["site_locations"] is not None:
            wanted, found = ("lon and lat", "x and y") if geographic else ("x and y", "lon and lat")
            msg = f"{CITY} sets geographic to {str(geographic).lower()}, which needs columns {wanted}; found {found}."
            raise InputError(msg)
        arguments["geographic"] = geographic
    if (folder / SHAPES).is_file():
        names = arguments["atom_names"]
        arguments["atom_shapes"] = plain.read_shapes(folder / SHAPES, names, geographic=geographic)
    return arguments


def _read_about(path):
    about = plain.read_json(path)
    for key, value in about.items():
        if key not in CITY_KEYS:
            raise InputError(f"{path.name} has an unknown entry {key!r}; allowed are {', '.join(CITY_KEYS)}.")
        wanted = CITY_KEYS[key]
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not (is_number if wanted in (int, float) else isinstance(value, wanted)):
            kind = {bool: "true or false", str: "text"}.get(wanted, "a number")
            raise InputError(f"{path.name}, entry {key!r}: expected {kind}, but got {shown(value, json.dumps)}.")
    if about.get("version", FORMAT_VERSION) != FORMAT_VERSION:
        raise InputError(
            f"{path.name}, entry 'version': expected {FORMAT_VERSION}, but got {shown(about['version'])}. "
            "Update emsopt."
        )
    return about
