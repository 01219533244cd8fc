"""Convert coordinates of any reference system to longitude and latitude, and check outlines in GeoJSON.

The package pyproj is imported only if a reference system other than longitude and latitude (WGS 84) is named.
"""

import re
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import numpy as np

from .. import _validate
from .._types import FloatArray
from ..errors import InputError, MissingDependencyError

DEGREES = re.compile(r"(?:urn:ogc:def:crs:)?(?:(?:EPSG|OGC):(?:[\d.]*:)?)?(?:4326|CRS84)|WGS ?84", re.IGNORECASE)
MARGIN = 3  # degrees by which places may lie outside the area for which a reference system is made


def reference(crs: object) -> Any:
    """Return a reference system, given by its EPSG number or as text, as a `pyproj.CRS`."""
    pyproj = load_extra("pyproj", f"`crs` {_validate.quote(crs)}")
    try:
        return pyproj.CRS.from_user_input(crs)
    except (pyproj.exceptions.CRSError, TypeError) as error:
        expected = "a reference system such as 'EPSG:3857' or 3857, or its definition by PROJ or WKT"
        raise InputError(f"`crs` must be {expected}; got {_validate.quote(crs)}.") from error


def projected(crs: object) -> bool:
    """Return whether coordinates in a reference system are lengths, not degrees."""
    return not _is_plain(crs) and not reference(crs).is_geographic


def _is_plain(crs: object) -> bool:
    """Return whether coordinates need no conversion."""
    return crs is None or (isinstance(crs, (str, int)) and DEGREES.fullmatch(str(crs).strip()) is not None)


def to_degrees(points: FloatArray, crs: object, where: str) -> FloatArray:
    """Return longitude and latitude of points in a reference system, shape (n, 2), which may be NaN.

    Points at 0, 0, which programs write for unknown places, are not converted; nor is any if the system is in metres
    but all points could be degrees: ``crs`` may have been named for another table. Raise, with a message that begins
    with ``where``, if the system is unknown, or a point cannot be in it or is far from the area it is made for.
    """
    if _is_plain(crs):
        return points
    system = reference(crs)
    known = ~np.isnan(points).any(axis=1) & points.any(axis=1)
    if not known.any():
        return points
    name = f"{where}, in {_validate.quote(crs)} (`crs`)"
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
    """Return whether a point, in degrees, is far outside the area for which a reference system is made, if known."""
    if area is None:
        return False
    west, south, east, north = area.bounds
    width = (east - west) % 360 or 360.0  # as an area may lie across 180 degrees
    beside = (point[0] - west + MARGIN) % 360 > width + 2 * MARGIN
    return beside or not south - MARGIN <= point[1] <= north + MARGIN


def in_degrees(layer: Any, crs: object) -> Any:
    """Convert a GeoDataFrame or GeoSeries to degrees; ``crs`` is the system of values above 180 if it names none."""
    if layer.crs is None and crs is not None and (np.abs(layer.total_bounds) > 180).any():
        layer = layer.set_crs(reference(crs))
    return layer if layer.crs is None else layer.to_crs(4326)


def positions(nested: object) -> Iterator[list[Any]]:
    """Yield the positions [x, y, ...] in the coordinates of a GeoJSON geometry, which may be changed in place."""
    if isinstance(nested, list) and len(nested) > 1 and all(map(_validate.is_real, nested[:2])):
        yield nested
    elif isinstance(nested, list):
        for part in nested:
            yield from positions(part)


def load_extra(package: str, what: str = "this function") -> Any:
    """Import a package of the extra "maps"; if it is missing, raise an error about ``what``, which needs it."""
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
        _validate.degrees(np.concatenate(rings), f"{where}: its coordinates")


def _rings(polygons: Any) -> list[FloatArray]:
    """Return the rings of all polygons as arrays; none if they are no lists of lists of points."""
    try:
        # No dtype is given, to keep text that looks like a number from being converted.
        return [np.array([point[:2] for point in ring]) for polygon in polygons for ring in polygon]
    except (KeyError, TypeError, ValueError, IndexError):
        return []


def _is_ring(points: FloatArray) -> bool:
    """Return whether an array holds at least three points of two finite numbers."""
    wanted = points.dtype.kind in "iuf" and points.shape[1:] == (2,) and len(points) >= 3
    return wanted and bool(np.isfinite(points).all())
