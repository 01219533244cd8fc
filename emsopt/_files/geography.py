"""Read and check coordinates, GeoJSON and layers of geographic files, and convert them to longitude and latitude.

The package pyproj is imported only if another reference system than longitude and latitude (WGS 84) is named.
"""

from __future__ import annotations

import json
import re
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InputError, MissingDependencyError, _validate
from ..errors._types import FloatArray
from ..errors._validate import quote
from . import columns, formats
from .columns import LATITUDE, LONGITUDE, Table
from .formats import Upload

if TYPE_CHECKING:
    import pandas as pd

DEGREES_CRS = re.compile(r"(?:urn:ogc:def:crs:)?(?:(?:EPSG|OGC):(?:[\d.]*:)?)?(?:4326|CRS84)|WGS ?84", re.IGNORECASE)
AREA_MARGIN_DEGREES = 3  # degrees by which places may lie outside the area for which a reference system is made


def parse_crs(crs: object) -> Any:
    """Return a reference system, given by its EPSG number or as text, as a `pyproj.CRS`."""
    pyproj = load_extra("pyproj", f"`crs` {quote(crs)}")
    try:
        return pyproj.CRS.from_user_input(crs)
    except (pyproj.exceptions.CRSError, TypeError) as error:
        expected = "a reference system such as 'EPSG:3857' or 3857, or its definition by PROJ or WKT"
        raise InputError(f"`crs` must be {expected}; got {quote(crs)}.") from error


def is_projected(crs: object) -> bool:
    """Return whether coordinates in a reference system are lengths, not degrees."""
    return not _is_degrees(crs) and not parse_crs(crs).is_geographic


def _is_degrees(crs: object) -> bool:
    """Return whether coordinates in a reference system, None for none, are longitude and latitude (WGS 84) already."""
    return crs is None or (isinstance(crs, (str, int)) and DEGREES_CRS.fullmatch(str(crs).strip()) is not None)


def to_degrees(points: FloatArray, crs: object, where: str) -> FloatArray:
    """Return longitude and latitude (degrees) of points, (n, 2), in a reference system; points may be NaN.

    Points at 0, 0, which programs write for unknown places, are not converted; nor is any if the system is in metres
    but all points could be degrees: ``crs`` may have been named for another table. Raise, with ``where`` first, if the
    system is unknown, a point cannot be in it, or most are far from its area.
    """
    if _is_degrees(crs):
        return points
    system = parse_crs(crs)
    known = ~np.isnan(points).any(axis=1) & points.any(axis=1)
    if not known.any():
        return points
    name = f"{where}, in {quote(crs)} (`crs`)"
    # Metres or feet: in kilometres, a projected point could be as small as degrees.
    in_metres = not system.is_geographic and system.axis_info[0].unit_conversion_factor < 100
    if in_metres and (np.abs(points[known]) <= (180, 90)).all():
        return points
    convert = load_extra("pyproj", name).Transformer.from_crs(system, "EPSG:4326", always_xy=True).transform
    result = points.copy()
    # Lists, as pyproj takes an array of one point for a number, of which older numpy warns.
    result[known] = np.column_stack(convert(*points[known].T.tolist()))
    outside = known & ~np.isfinite(result).all(axis=1)
    if not outside.any() and _is_far(np.median(result[known], axis=0), system.area_of_use):
        outside = known  # not some: a few wrong points are no fault of the system
    if outside.any():
        said = f"{name}: {points[outside][0].tolist()} lies outside the area of this system. Is it another system?"
        raise InputError(said, np.array(outside, dtype=bool))
    return result


def _is_far(point: FloatArray, area: Any) -> bool:
    """Return whether a point (degrees) is over `AREA_MARGIN_DEGREES` outside ``area``; False if ``area`` is None."""
    if area is None:
        return False
    west, south, east, north = area.bounds
    width = (east - west) % 360 or 360.0  # as an area may lie across 180 degrees
    beside = (point[0] - west + AREA_MARGIN_DEGREES) % 360 > width + 2 * AREA_MARGIN_DEGREES
    return beside or not south - AREA_MARGIN_DEGREES <= point[1] <= north + AREA_MARGIN_DEGREES


def layer_to_degrees(layer: Any, crs: object) -> Any:
    """Convert a GeoDataFrame or GeoSeries to degrees, from ``crs`` if it has no system and values above 180."""
    if layer.crs is None and crs is not None and (np.abs(layer.total_bounds) > 180).any():
        layer = layer.set_crs(parse_crs(crs))
    return layer if layer.crs is None else layer.to_crs(4326)


def positions(nested: object) -> Iterator[list[Any]]:
    """Yield each position, the list [x, y, ...] itself, in the nested coordinates of a GeoJSON geometry."""
    if isinstance(nested, list) and len(nested) > 1 and all(map(_validate.is_real, nested[:2])):
        yield nested
    elif isinstance(nested, list):
        for part in nested:
            yield from positions(part)


def load_extra(package: str, what: str = "this function") -> Any:
    """Return an imported package of the extra "maps"; if it is missing, raise an error that ``what`` needs it."""
    try:
        return import_module(package)
    except ImportError as error:
        raise MissingDependencyError(f"{what} needs the package {package}: pip install 'emsopt[maps]'.") from error


def check_shape(shape: Any, where: str, *, geographic: bool) -> None:
    """Raise unless ``shape`` is a GeoJSON Polygon or MultiPolygon with at least three finite points in every ring."""
    kind = shape.get("type") if isinstance(shape, dict) else type(shape).__name__
    if not isinstance(shape, dict) or kind not in ("Polygon", "MultiPolygon"):
        raise InputError(f"{where}: expected a Polygon or MultiPolygon, but got {kind!r}.")
    rings = _rings([shape.get("coordinates")] if kind == "Polygon" else shape.get("coordinates"))
    if not rings or not all(map(_is_ring, rings)):
        raise InputError(f"{where}: every ring must have at least three points, each with two finite numbers.")
    if geographic:
        _validate.check_degrees(np.concatenate(rings), f"{where}: its coordinates")


def _rings(polygons: Any) -> list[FloatArray]:
    """Return the rings of all polygons as arrays, shape (k, 2); an empty list if polygons have another form."""
    try:
        # No dtype is given, to keep text that looks like a number from being converted.
        return [np.array([point[:2] for point in ring]) for polygon in polygons for ring in polygon]
    except (KeyError, TypeError, ValueError, IndexError):
        return []


def _is_ring(points: FloatArray) -> bool:
    """Return whether an array holds at least three points of two finite numbers."""
    wanted = points.dtype.kind in "iuf" and points.shape[1:] == (2,) and len(points) >= 3
    return wanted and bool(np.isfinite(points).all())


def read_degrees(table: Table, x: str | None = None, y: str | None = None, crs: object = None) -> FloatArray:
    """Return longitude and latitude in degrees, shape (rows, 2), from two columns in a reference system ``crs``.

    A blank cell raises, or, if the columns ``x`` and ``y`` are given, makes both numbers of its row NaN.
    """
    blanks = x is not None
    x = x or table.require(LONGITUDE, "a column 'lon' beside 'lat' (degrees)")
    y = y or table.require(LATITUDE, "a column 'lat' beside 'lon' (degrees)")
    numbers = []
    try:
        for key, most, more in ((x, 180, 10), (y, 90, 0)):  # a city at the date line may go on beyond it
            limits = {} if crs is not None else {"low": -most - more, "high": most + more}
            expected = f"degrees from -{most} to {most}" if crs is None else "a number"
            numbers.append(table.numbers(key, expected, blanks=blanks, **limits))
    except InputError as error:
        cells = table.frame[[x, y]].to_numpy(dtype=object)
        hint = _validate.degrees_hint(columns.to_floats(cells), plane=not blanks, names=(x, y))
        raise InputError(f"{error}{hint}", error.rows) from error
    points = np.column_stack(numbers)
    points[np.isnan(points).any(axis=1)] = np.nan  # half a place is none
    return to_degrees(points, crs, f"{table.where}, columns {x!r} and {y!r}")


def geometry_to_columns(
    frame: pd.DataFrame, argument: str, kinds: Sequence[str], *, crs: object = None, blanks: bool = False
) -> tuple[pd.DataFrame, tuple[dict[str, Any], ...] | None]:
    """Return a GeoDataFrame as a DataFrame with columns ``lon`` and ``lat``, and the outlines of its areas as GeoJSON.

    A DataFrame is returned unchanged; it has no outlines, nor have points. If any row is a Point, all must be; else
    ``kinds`` are the types allowed. The location of an area is a point inside it. Geometry is converted to degrees from
    its own system, or else from ``crs``. With ``blanks``, rows may lack geometry; their location is NaN.
    """
    from pandas import DataFrame

    geopandas = sys.modules.get("geopandas")  # not imported here, because that takes a second
    if geopandas is None or not isinstance(frame, geopandas.GeoDataFrame):
        return frame, None
    try:
        geometry = frame.geometry
    except AttributeError as error:
        lacks = f"`{argument}` is a GeoDataFrame without a geometry column"
        raise InputError(f"{lacks}. Choose one by `set_geometry`.") from error
    if (geometry.geom_type == "Point").any():
        kinds = ("Point",)  # if one row is a Point, all rows must be
    _check_geometry(geometry, columns.table_name(frame, argument), kinds, blanks)
    geometry = layer_to_degrees(geometry, crs)
    points, outlines = geometry.representative_point(), None  # unlike the centroid, inside any area
    if kinds != ("Point",):
        shapes = [shape.__geo_interface__ for shape in geometry.force_2d()]
        outlines = tuple(json.loads(json.dumps(shapes)))  # tuples inside become lists
    replaced = [key for key in frame.columns if str(key).strip().lower() in LONGITUDE + LATITUDE]
    plain = DataFrame(frame.drop(columns=[frame.geometry.name, *replaced]))
    return plain.assign(lon=points.x.to_numpy(), lat=points.y.to_numpy()), outlines


def _check_geometry(geometry: Any, where: str, kinds: Sequence[str], blanks: bool) -> None:
    """Raise unless all shapes are valid and of the given types; with ``blanks``, they may be absent."""
    bad = ~geometry.geom_type.isin(kinds) | geometry.is_empty | ~geometry.is_valid
    if blanks:
        bad &= ~(geometry.isna() | geometry.is_empty)
    if bad.any():
        k = int(np.argmax(bad))
        shape = geometry.iloc[k]
        got = "nothing" if shape is None or shape.is_empty else f"a {shape.geom_type}; try `make_valid`"
        raise InputError(f"{where}, row {k + 1}: expected a valid {' or '.join(kinds)}, but got {got}.")


def read_layer(file: Path | Upload) -> Any:
    """Return the only layer of a shapefile or GeoPackage as a GeoDataFrame, or as a DataFrame without geometry."""
    if isinstance(file, Upload) and file.name.lower().endswith(".shp"):  # which consists of several files
        raise InputError(f"{file.name} is one of several files of a shapefile. Give its path, or save a GeoPackage.")
    opened = formats.open_with("geopandas", file, "a geographic file", "maps")
    with opened as (geopandas, content), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about the name of content without a file
        source = content if isinstance(file, Upload) else file
        layers = geopandas.list_layers(source)["name"].tolist()
        if len(layers) != 1:
            got = ", ".join(layers[:9]) or "none"
            raise InputError(f"{file.name} must have one layer; it has {got}. Save the one you need by itself.")
        frame = geopandas.read_file(source)
    frame.attrs[columns.FILE_KEY] = file.name
    return frame


LAYER_ENDINGS = (".shp", ".gpkg", ".fgb")


def read_features(file: Path | Upload, crs: object = None) -> list[tuple[dict[str, Any], Any]]:
    """Return the properties and the geometry, if any, of each feature of a GeoJSON FeatureCollection.

    Coordinates are converted to degrees from the reference system that the file names itself, or else from ``crs``.
    """
    content = formats.read_json(file)
    features = _features(content, file.name)
    crs = _named_system(content, file.name) or crs
    if crs is not None:
        shapes = [feature["geometry"] for feature in features if isinstance(feature.get("geometry"), dict)]
        places = list(positions([shape.get("coordinates") for shape in shapes]))
        points = np.array([place[:2] for place in places], dtype=float).reshape(-1, 2)
        for place, point in zip(places, to_degrees(points, crs, file.name).tolist(), strict=True):
            place[:2] = point  # in place: the features hold these lists
    return [(feature.get("properties") or {}, feature.get("geometry")) for feature in features]


def _features(content: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    """Return the features of a FeatureCollection; raise if the object or one of its features has another type."""
    kind, features = content.get("type"), content.get("features")
    if kind != "FeatureCollection" or not isinstance(features, list):
        got = quote(kind) if kind != "FeatureCollection" else "one without `features`"
        raise InputError(f"{name} must be a GeoJSON FeatureCollection; got {got}.")
    if not 0 < len(features) <= formats.MAX_ROWS:
        raise InputError(f"{name} must have from 1 to {formats.MAX_ROWS:,} features; it has {len(features):,}.")
    for k, feature in enumerate(features, 1):
        if not isinstance(feature, dict) or not isinstance(feature.get("properties") or {}, dict):
            raise InputError(f"{name}, feature {k} must be an object with properties; got {quote(feature)}.")
    return features


def _named_system(content: Mapping[str, Any], name: str) -> str | int | None:
    """Return the reference system that a GeoJSON object names by ``crs``, as older programs write it, or None."""
    own = content.get("crs")
    if own is None:
        return None
    said = own.get("properties") if isinstance(own, dict) else None
    crs = said.get("name", said.get("code")) if isinstance(said, dict) else None
    if not isinstance(crs, (str, int)):
        raise InputError(f"{name} has an entry 'crs' that cannot be read: {quote(own)}. Remove it, and give `crs`.")
    return crs


def read_outlines(
    file: Path | Upload, keys: Sequence[str] = ("atom",), *, geographic: bool = True, crs: object = None
) -> dict[str, dict[str, Any]]:
    """Return outlines by name from a GeoJSON FeatureCollection of Polygons and MultiPolygons; raise if one is invalid.

    ``keys`` are properties that may hold the names, in upper or lower case. Of those that all features have, the
    first with distinct values is used, else the first. If ``geographic``, coordinates are longitude and latitude.
    """
    rows, shapes = zip(*read_features(file, crs), strict=True)
    outlines = dict(zip(_area_names(rows, keys, file.name), shapes, strict=True))
    for k, (name, shape) in enumerate(outlines.items(), 1):
        check_shape(shape, f"{file.name}, feature {k} ({name!r})", geographic=geographic)
    return outlines


def _area_names(rows: Sequence[dict[str, Any]], keys: Sequence[str], where: str) -> tuple[str, ...]:
    """Return the names of areas from one of the properties ``keys``; raise unless they are distinct."""
    common = [key for key in rows[0] if all(key in properties for properties in rows)]
    known = {key.lower(): key for key in common} | {key: key for key in common}
    found = [known[key] for key in keys if key in known]
    if not found:
        said = f"a property {' or '.join(map(repr, keys))}; {columns.list_columns(rows[0])}"
        raise InputError(f"{where}: every feature needs {said}. Say which one holds the names.")
    given = {key: [columns.text(properties[key]) for properties in rows] for key in found}
    key = next((key for key in found if columns.are_distinct(given[key])), found[0])
    return _validate.names(given[key], f"{where}, property {key!r}", len(rows), "area")


def read_shapes(file: Path | Upload, names: Sequence[str], *, geographic: bool = True) -> list[dict[str, Any]]:
    """Return the outlines of atoms with the given names, in their order; `read_outlines` describes the file."""
    outlines = read_outlines(file, geographic=geographic)
    columns.check_labels(outlines, names, file.name, "feature per atom")
    return [outlines[name] for name in names]


def shapes_text(names: Iterable[str], shapes: Iterable[Mapping[str, Any]], note: str) -> str:
    """Return the outlines of atoms as GeoJSON text, one feature per line, each with its name as property ``atom``."""
    written = partial(json.dumps, ensure_ascii=False, default=np.ndarray.tolist)
    start = '{"type": "FeatureCollection", "note": ' + written(note) + ', "features": [\n'
    parts = zip(names, shapes, strict=True)
    lines = [written({"type": "Feature", "properties": {"atom": name}, "geometry": shape}) for name, shape in parts]
    return start + ",\n".join(lines) + "\n]}\n"
