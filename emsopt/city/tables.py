"""Build cities from tables, and save and load them as folders of plain files.

`City.from_frames` takes tables; `City.load` reads the same content from files that a spreadsheet can write:

=====================  =========================================================================================
``city.json``          ``{"name": ..., "notes": ..., "geographic": true}``; all entries are optional. With
                       ``"speed_kmh"`` (and ``"detour"``) travel times are computed, and their table must be absent
``atoms.csv``          ``name, lon, lat, arrival_rate`` (calls/h)
``sites.csv``          ``name, lon, lat, turnout_min, service_min``; optionally ``travel_cv, turnout_cv``, the
                       coefficients of variation of travel and turnout times
``travel_times.csv``   minutes; one row per site, one column per atom, both by name
``service_times.csv``  same form; replaces ``service_min`` if service times also depend on the atom
``preference.csv``     same form; smaller is preferred. Needed only if atoms do not prefer the closest unit
``travel_cv.csv``      same form; replaces the column if the variation also depends on the atom
``atoms.geojson``      one Polygon or MultiPolygon per atom, named by its property ``atom``
=====================  =========================================================================================

``x, y`` (kilometres on a plane) may replace ``lon, lat`` (degrees). Saving and loading preserve every number exactly.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from .._files import atomic, formats, geography
from .._files.columns import LATITUDE, LONGITUDE, Table, read_matrix
from .._files.formats import Upload
from ..errors import InputError, _validate
from ..errors._types import ArrayLike, FloatArray, PathLike
from ..errors._validate import quote
from . import travel

if TYPE_CHECKING:
    import pandas as pd

C = TypeVar("C")  # stands for `City`, which cannot be imported here because it imports this module

FORMAT_VERSION = 1
WIDEST_PLANE_KM = 2000  # coordinates that span more than this are taken for metres

CITY_FILE, ATOMS_FILE, SITES_FILE = "city.json", "atoms.csv", "sites.csv"
TRAVEL_FILE, SERVICE_FILE, PREFERENCE_FILE = "travel_times.csv", "service_times.csv", "preference.csv"
TRAVEL_CV_FILE, SHAPES_FILE = "travel_cv.csv", "atoms.geojson"
FILES = (CITY_FILE, ATOMS_FILE, SITES_FILE, TRAVEL_FILE, SERVICE_FILE, PREFERENCE_FILE, TRAVEL_CV_FILE, SHAPES_FILE)
CITY_KEYS: dict[str, type | tuple[type, ...]] = {"version": int, "name": str, "notes": str, "geographic": bool}
CITY_KEYS |= dict.fromkeys(("speed_kmh", "detour"), (int, float))


def from_frames(
    cls: Callable[..., C],
    demand: pd.DataFrame,
    sites: pd.DataFrame,
    *,
    travel_times: pd.DataFrame | ArrayLike | None = None,
    speed_kmh: float | None = None,
    roads: Any = None,
    detour: float = 1.3,
    turnout_times: ArrayLike | None = None,
    service_times: pd.DataFrame | ArrayLike | None = None,
    preference: pd.DataFrame | ArrayLike | None = None,
    travel_cv: pd.DataFrame | ArrayLike | None = None,
    turnout_cv: ArrayLike | None = None,
    name: str = "city",
    notes: str = "",
) -> C:
    """Build a city from a table of demand and a table of sites.

    Column names are case-insensitive; columns not listed here are ignored. Locations, needed for a speed, roads and
    maps, are the geometry of a GeoDataFrame, or ``lon`` and ``lat`` (degrees), or ``x`` and ``y`` (km on a plane).

    Parameters
    ----------
    demand : DataFrame or GeoDataFrame, M rows
        ``name`` or ``atom`` (a column or the index; numbered by default), and ``arrival_rate`` in calls per hour.
        Polygons become the shapes of the atoms; the location of each is a point inside its polygon.
    sites : DataFrame or GeoDataFrame, N rows
        ``name`` or ``site``, likewise; ``turnout_min`` and ``service_min``, unless these are passed as arguments.
    travel_times : DataFrame or array_like of shape (N, M), optional
        Minutes. A DataFrame has site names as index and atom names as columns, in any order, or a row per pair with
        columns such as ``from_id``, ``to_id`` and ``travel_time``; an array follows the order of the tables.
    speed_kmh : float, optional
        Constant speed (km/h), instead of ``travel_times``.
    roads : RoadNetwork, optional
        Roads that are driven at their speed limits (`RoadNetwork.travel_times`), instead of ``travel_times``.
    detour : float
        Ratio of road distance to straight-line distance, used if travel times are computed.
    turnout_times, service_times, travel_cv, turnout_cv, preference
        As for `City`. The first four replace columns ``turnout_min``, ``service_min``, ``travel_cv`` and ``turnout_cv``
        of ``sites``. Values by site and atom may also be a DataFrame, as ``travel_times``.
    name, notes : str
        As for `City`.

    Examples
    --------
    >>> import emsopt as eo
    >>> import pandas as pd
    >>> demand = pd.DataFrame({"name": ["north", "south"], "x": [0, 0], "y": [6, 0], "arrival_rate": [1, 2]})
    >>> sites = pd.DataFrame({"name": ["station"], "x": [0], "y": [2], "turnout_min": [1], "service_min": [40]})
    >>> eo.City.from_frames(demand, sites, speed_kmh=60, detour=1).travel_times.tolist()
    [[4.0, 2.0]]
    """
    atoms = _places(demand, "demand", ("name", "geoid", "geoid20", "id", "atom"))  # the US census calls names geoid
    stations = _places(sites, "sites", ("name", "geoid", "geoid20", "id", "site"))
    kinds = {places.geographic for places in (atoms, stations) if places.points is not None}
    if len(kinds) > 1:
        both = f"{atoms.table.where} and {stations.table.where}"
        raise InputError(f"{both} must have the same kind of coordinates, either lon and lat or x and y.")
    travel_times = _travel_times(stations, atoms, travel_times, speed_kmh, roads, detour)
    values = _Values(stations.table, atoms.table)
    above_0: dict[str, Any] = {"expected": "minutes above 0", "low": 0, "strictly": True}
    rate = atoms.table.require(("arrival_rate",), "a column 'arrival_rate' (calls per hour)")
    service_times = values.site_values(service_times, "service_times", "service_min", **above_0)  # a DataFrame stays
    return cls(
        arrival_rates=atoms.table.numbers(rate, "calls per hour of at least 0", low=0),
        travel_times=values.pair_values(travel_times, "travel_times", "minutes of at least 0", low=0),
        turnout_times=values.site_values(turnout_times, "turnout_times", "turnout_min", "minutes of at least 0", low=0),
        service_times=values.pair_values(service_times, "service_times", **above_0),
        preference=values.pair_values(preference, "preference", "a rank or a cost"),
        travel_cv=values.variation_coefficients(travel_cv, "travel_cv"),
        turnout_cv=values.variation_coefficients(turnout_cv, "turnout_cv"),
        atom_names=atoms.table.names,
        site_names=stations.table.names,
        atom_locations=atoms.points,
        site_locations=stations.points,
        atom_shapes=atoms.shapes,
        geographic=kinds.pop() if kinds else True,
        name=name,
        notes=notes,
    )


class _Values(NamedTuple):
    """The tables of sites and atoms, with methods that read values given as an argument or a column."""

    sites: Table
    atoms: Table

    def pair_values(self, values: Any, argument: str, expected: str, **limits: Any) -> Any:
        """Return values by site and atom; a DataFrame is reordered to the tables by its labels."""
        if hasattr(values, "columns"):
            return read_matrix(values, argument, self.sites.names, self.atoms.names, expected, **limits)
        return values

    def site_values(self, values: Any, argument: str, column: str, expected: str, **limits: Any) -> Any:
        """Return values by site, from an argument or a column; raise unless exactly one is given."""
        given = values is not None
        if given == (column in self.sites.frame):
            got = "both" if given else "neither"
            raise self.sites.missing_error(f"a column {column!r} (minutes) or else `{argument}`; got {got}")
        return values if given else self.sites.numbers(column, expected, **limits)

    def variation_coefficients(self, values: Any, column: str) -> Any:
        """Return coefficients of variation from an argument or the column of the same name; 0 if neither is given."""
        if column not in self.sites.frame:
            return 0.0 if values is None else self.pair_values(values, column, "a coefficient of variation", low=0)
        if values is not None:
            raise self.sites.missing_error(f"either a column {column!r} or `{column}`; got both")
        return self.sites.numbers(column, "a coefficient of variation", low=0)


class _Places(NamedTuple):
    """A table of atoms or sites, with the locations of its rows."""

    table: Table
    points: FloatArray | None  # None without coordinates
    geographic: bool  # whether points are longitude and latitude instead of x and y
    shapes: tuple[dict[str, Any], ...] | None  # GeoJSON geometries, if all rows are areas

    def locations(self) -> FloatArray:
        """Return the locations of the rows, shape (n, 2), as in `points`; raise if there are none."""
        if self.points is None:
            raise self.table.missing_error("locations, as columns 'lon' and 'lat' or 'x' and 'y'")
        return self.points


def _places(frame: pd.DataFrame, argument: str, name_columns: tuple[str, ...]) -> _Places:
    """Return a checked table of atoms or sites, with their locations and, if they are areas, shapes."""
    frame, shapes = geography.geometry_to_columns(frame, argument, ("Point", "Polygon", "MultiPolygon"))
    table = Table.of(frame, argument, name_columns)
    if table.column(LONGITUDE + LATITUDE):
        return _Places(table, geography.read_degrees(table), True, shapes)
    if not table.column("xy"):
        return _Places(table, None, False, shapes)
    x, y = table.require("x", "a column 'x' beside 'y'"), table.require("y", "a column 'y' beside 'x'")
    points = np.column_stack([table.numbers(key, "kilometres") for key in (x, y)])
    if (span := np.ptp(points, axis=0).max()) > WIDEST_PLANE_KM:
        raise InputError(f"{table.where}, columns 'x' and 'y' must be km, but span {span:g}. Divide metres by 1000.")
    return _Places(table, points, False, shapes)


def _travel_times(
    stations: _Places, atoms: _Places, travel_times: Any, speed_kmh: float | None, roads: Any, detour: float
) -> Any:
    """Return travel times (min): as given, or from a speed or roads; raise unless exactly one of these is given."""
    options = {"travel_times": travel_times, "speed_kmh": speed_kmh, "roads": roads}
    given = [f"`{key}`" for key, value in options.items() if value is not None]
    if len(given) != 1:
        got = f"both {' and '.join(given)}" if given else "neither"
        raise InputError(f"give exactly one of `roads`, `travel_times` and `speed_kmh`; got {got}.")
    if roads is not None:
        return _road_minutes(roads, stations, atoms)
    if speed_kmh is None:
        return travel_times
    kmh = _validate.positive_number(speed_kmh, "speed_kmh", "km/h")
    distance = travel.great_circle_km if stations.geographic else travel.plane_km
    km = distance(stations.locations(), atoms.locations()) * _validate.finite_number(detour, "detour", low=1)
    with np.errstate(over="ignore"):  # infinite times are refused by the city
        return km / kmh * 60


def _road_minutes(roads: Any, stations: _Places, atoms: _Places) -> FloatArray:
    """Return the driving times (min) from each station to each atom by road, (N, M); raise if one is unreachable."""
    if not hasattr(roads, "travel_times"):
        raise InputError(f"`roads` must be a RoadNetwork; got {type(roads).__name__}. Read one by `RoadNetwork.read`.")
    places = stations.locations(), atoms.locations()
    if roads.geographic != stations.geographic:
        raise InputError("roads and places must have the same kind of coordinates, either lon and lat or x and y.")
    metres = 1 if roads.geographic else 1000  # roads on a plane are in metres, cities in km
    try:
        minutes: FloatArray = roads.travel_times(*(metres * points for points in places))
    except InputError as error:
        said = "travel times by `roads`, with sites as origins and atoms as destinations"
        raise InputError(f"{said}: {error}") from error
    if (unreachable := np.isinf(minutes)).any():
        k, j = np.argwhere(unreachable)[0]
        raise InputError(
            f"no legal way leads from a site to an atom for {unreachable.sum():,} of {minutes.size:,} pairs, the first "
            f"from {stations.table.names[k]!r} to {atoms.table.names[j]!r}. Pass `roads.largest_component()`."
        )
    return minutes


def save(city: Any, folder: PathLike) -> Path:
    """Write the city to a folder of plain files that `load` can read, and return its path.

    The folder must be new, empty, or hold only a city, which is replaced; otherwise raise and change nothing.
    """
    city.replace()  # validate: `City.scaled` allows loads that could not be read back
    return atomic.write_folder(folder, as_files(city), marker=CITY_FILE, replaceable=FILES)


def as_files(city: Any) -> dict[str, str]:
    """Return the content of each file of a city's folder, by file name."""
    about = {"version": FORMAT_VERSION, "name": city.name, "notes": city.notes, "geographic": city.geographic}
    atoms = _place_columns(city.atom_names, city.atom_locations, city.geographic) | {"arrival_rate": city.arrival_rates}
    sites = _place_columns(city.site_names, city.site_locations, city.geographic) | {"turnout_min": city.turnout_times}
    matrices = {TRAVEL_FILE: city.travel_times, PREFERENCE_FILE: city.preference}

    def store(column: str, file: str, values: FloatArray) -> None:
        """Store values by site and atom as a column of the sites if they do not depend on the atom, else as a file."""
        if (values == values[:, :1]).all():
            sites[column] = values[:, 0]
        else:
            matrices[file] = values

    store("service_min", SERVICE_FILE, city.service_times)
    if np.any(city.turnout_cv):
        sites["turnout_cv"] = np.broadcast_to(city.turnout_cv, city.n_sites)
    if np.any(city.travel_cv):
        store("travel_cv", TRAVEL_CV_FILE, np.broadcast_to(city.travel_cv, city.travel_times.shape))
    files = {CITY_FILE: json.dumps(about, indent=2, ensure_ascii=False) + "\n"}
    for file, columns in ((ATOMS_FILE, atoms), (SITES_FILE, sites)):
        files[file] = formats.csv_text(columns, columns.values())
    for file, values in matrices.items():
        if values is not None:
            files[file] = formats.csv_text(["site", *city.atom_names], [city.site_names, *values.T])
    if city.atom_shapes is not None:
        files[SHAPES_FILE] = geography.shapes_text(city.atom_names, city.atom_shapes, city.notes)
    return files


def _place_columns(names: tuple[str, ...], points: FloatArray | None, geographic: bool) -> dict[str, Any]:
    """Return a column of names and, if locations are known, their two coordinate columns."""
    keys = ("lon", "lat") if geographic else ("x", "y")
    return {"name": names} | ({} if points is None else dict(zip(keys, points.T, strict=True)))


def load(cls: Callable[..., C], folder: PathLike) -> C:
    """Read a city from a folder written by `save` or by hand; `emsopt.city.tables` describes the files."""
    path = _validate.path(folder, "folder")
    try:
        if not os.path.isdir(path):  # `Path.is_dir` raises if the name is too long
            raise InputError("There is no such folder.")
        return _load(cls, {file.name: file for file in path.iterdir()}, path.resolve().name)
    except InputError as error:
        raise InputError(f"the city in {quote(str(path), str, 300)} cannot be read. {error}") from error


def from_files(cls: Callable[..., C], files: Mapping[str, bytes], name: str = "city") -> C:
    """Read a city from a dict of file name (in any case) to content; ``name`` is used if the files give none."""
    return _load(cls, {file.lower(): Upload(file, content) for file, content in files.items()}, name)


def _load(cls: Callable[..., C], files: Mapping[str, Path | Upload], name: str) -> C:
    """Read a city from a dict of file name to file; ``name`` is used if city.json gives none."""
    _check_files(files)
    about = _read_city_json(files[CITY_FILE])
    stored = [file for file in (TRAVEL_FILE, SERVICE_FILE, PREFERENCE_FILE, TRAVEL_CV_FILE) if file in files]
    matrices = {Path(file).stem: formats.read_csv(files[file], labelled=True) for file in stored}
    # The kind of coordinates follows from the columns, and is compared with the entry below.
    options = {key: value for key, value in about.items() if key not in ("version", "geographic")}
    atoms, sites = formats.read_csv(files[ATOMS_FILE]), formats.read_csv(files[SITES_FILE])
    city: Any = from_frames(cls, atoms, sites, **{"name": name, **options, **matrices})  # a name in the file wins
    geographic = about.get("geographic", city.geographic)
    located = city.atom_locations is not None or city.site_locations is not None
    if located and geographic != city.geographic:
        wanted = "true, which needs columns lon and lat" if geographic else "false, which needs columns x and y"
        raise InputError(f"{CITY_FILE} sets geographic to {wanted}.")
    shapes = None
    if SHAPES_FILE in files:
        shapes = geography.read_shapes(files[SHAPES_FILE], city.atom_names, geographic=geographic)
    return city.replace(geographic=geographic, atom_shapes=shapes)


def _check_files(files: Mapping[str, Path | Upload]) -> None:
    """Raise if a file that every city needs is missing."""
    if missing := [file for file in (CITY_FILE, ATOMS_FILE, SITES_FILE) if file not in files]:
        held = ", ".join(sorted(file.name for file in files.values())[:8]) or "nothing"
        needed = f"A city needs {CITY_FILE}, {ATOMS_FILE} and {SITES_FILE}"
        raise InputError(f"{needed}; {missing[0]} is missing. The folder holds {held}.")


def _read_city_json(path: Path | Upload) -> dict[str, Any]:
    """Return the entries of city.json; raise if one is unknown or invalid."""
    about = formats.read_json(path)
    for key, value in about.items():
        if key not in CITY_KEYS:
            raise InputError(f"{path.name} has an unknown entry {key!r}; allowed are {', '.join(CITY_KEYS)}.")
        kind = CITY_KEYS[key]
        if not isinstance(value, kind) or (key == "version" and value != FORMAT_VERSION):
            said: dict[object, str] = {str: "text", bool: "true or false", int: f"{FORMAT_VERSION} (or update emsopt)"}
            wanted = said.get(kind, "a number")
            raise InputError(f"{path.name}, entry {key!r}: expected {wanted}, but got {quote(value, json.dumps)}.")
    return about
