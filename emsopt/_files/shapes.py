"""Check outlines of atoms: GeoJSON Polygons and MultiPolygons."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from .. import _validate
from .._types import FloatArray
from ..errors import InputError

NESTS = (list, tuple, np.ndarray)


def check_shapes(shapes: Iterable[dict[str, Any]], length: int, *, geographic: bool) -> tuple[dict[str, Any], ...]:
    """Check the outlines of a city's atoms and return them as a tuple.

    Parameters
    ----------
    shapes : sequence of dict
        GeoJSON geometries.
    length : int
        Required number of outlines.
    geographic : bool
        Whether coordinates are longitude and latitude, which must be in range.

    Raises
    ------
    InputError
        If there are more or fewer outlines, or an outline is invalid.
    """
    listed = _validate.listed(shapes, "`atom_shapes`", length, "GeoJSON geometries")
    for k, shape in enumerate(listed):
        check_shape(shape, f"`atom_shapes`, number {k}", geographic=geographic)
    return listed


def check_shape(shape: Any, where: str, *, geographic: bool) -> None:
    """Raise unless ``shape`` is a GeoJSON Polygon or MultiPolygon with finite coordinates.

    Every ring needs at least three points. If ``geographic``, the coordinates must be longitudes and latitudes.
    """
    kind = shape.get("type") if isinstance(shape, dict) else type(shape).__name__
    if not isinstance(shape, dict) or kind not in ("Polygon", "MultiPolygon"):
        raise InputError(f"{where}: expected a Polygon or MultiPolygon, but got {kind!r}.")
    rings = _rings([shape.get("coordinates")] if kind == "Polygon" else shape.get("coordinates"))
    if rings is None:
        raise InputError(f"{where}: every ring must have at least three points, each with two finite numbers.")
    if geographic:
        _validate.degrees(np.concatenate(rings), f"{where}: its coordinates")


def _rings(polygons: Any) -> list[FloatArray] | None:
    """Return the rings of all polygons as arrays of shape (points, 2), or None if any is invalid."""
    if not isinstance(polygons, NESTS) or not all(isinstance(rings, NESTS) and len(rings) for rings in polygons):
        return None
    try:
        # No dtype is given, to keep text that looks like a number from being converted.
        rings = [np.array([point[:2] for point in ring]) for polygon in polygons for ring in polygon]
    except (KeyError, TypeError, ValueError, IndexError):
        return None
    usable = all(ring.dtype.kind in "iuf" and ring.shape[1:] == (2,) and len(ring) >= 3 for ring in rings)
    return rings if rings and usable and all(np.isfinite(ring).all() for ring in rings) else None
