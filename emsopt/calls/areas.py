"""Assign the places of calls to atoms: square cells, or the user's own areas.

**Cells** are squares of a given width (km) on a grid that depends on the stations only. With the same width, logs of
different years therefore have the same cells, and neither edges nor centres reveal single calls.

**Areas** are polygons with names, from GeoJSON; a call on a border belongs to the area listed first.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple, cast

import numpy as np

from .._files import formats, geography
from ..city.travel import EARTH_RADIUS_KM
from ..errors import InputError, _validate
from ..errors._types import FloatArray, IntArray, PathLike
from . import _points
from .log import Source

MOST_ATOMS = 5000
WIDTHS_KM = (0.25, 0.5, 1, 2, 3, 5, 10, 20)
LEAST_WIDTH_KM = 0.05
MOST_CELLS_BY_DEFAULT = 400  # maximum number of cells if their width is chosen automatically
# usual names of the property that names areas, such as those of the census in the United States
NAME_PROPERTIES: tuple[str, ...] = ("atom", "name", "district", "namelsad", "geoid", "geoid20", "geoid10")
NAME_PROPERTIES += ("zcta5ce20", "zip", "id", "objectid")
KM_PER_DEGREE = np.pi / 180 * EARTH_RADIUS_KM


class Atoms(NamedTuple):
    """M atoms, and the atom of each of K points; ``note`` is a sentence on what the atoms are."""

    names: list[str]
    locations: FloatArray  # (M, 2), degrees
    shapes: list[dict[str, Any]]  # GeoJSON
    index: IntArray  # type: ignore[assignment]  # (K,): -1 for points outside all atoms
    note: str
    width_km: float | None = None  # None for areas


def assign_to_cells(points: FloatArray, stations: FloatArray, width_km: float | None = None) -> Atoms:
    """Assign points, (K, 2), longitudes and latitudes, to square cells; only cells with points become atoms.

    A corner of the grid lies at the middle of the stations: the medians of their longitudes and latitudes, rounded to
    0.01 degrees. Atoms are named by the km from there to their centre: "1.5N 2E". The default ``width_km`` is the
    smallest in `WIDTHS_KM` that gives at most 400 cells. Raise if there are over 5,000, or the width is below 0.05.
    """
    middle = np.round(np.median(_validate.unwrap(stations, stations[0, 0]), axis=0), 2)
    stretch = KM_PER_DEGREE * np.array([np.cos(np.radians(middle[1])), 1.0])
    offsets = (_validate.unwrap(points, middle[0]) - middle) * stretch
    if width_km is None:
        fitting = (width for width in WIDTHS_KM if len(_cells_of_offsets(offsets, width)[0]) <= MOST_CELLS_BY_DEFAULT)
        width_km = float(next(fitting, WIDTHS_KM[-1]))
    width_km = _validate.positive_number(width_km, "cell_km", "km")
    if width_km < LEAST_WIDTH_KM:
        raise InputError(f"`cell_km` must be at least {LEAST_WIDTH_KM:g}: smaller cells could identify callers.")
    corners, index = _cells_of_offsets(offsets, width_km)
    if len(corners) > MOST_ATOMS:
        raise InputError(f"cells of {width_km:g} km make more than {MOST_ATOMS:,} atoms. Make them wider.")
    centres = (corners + 0.5) * width_km
    square = np.array([[0, 0], [1, 0], [1, 1], [0, 1], [0, 0]])
    rings = np.round((corners[:, None] + square) * width_km / stretch + middle, 7)
    return Atoms(
        names=[f"{abs(n):.6g}{'NS'[int(n < 0)]} {abs(e):.6g}{'EW'[int(e < 0)]}" for e, n in centres],
        locations=np.round(centres / stretch + middle, 7),
        shapes=[{"type": "Polygon", "coordinates": [ring.tolist()]} for ring in rings],
        index=index,
        note=f"Atoms are cells of {width_km:g} km with at least one call, named by km from the middle of the stations.",
        width_km=width_km,
    )


def _cells_of_offsets(offsets: FloatArray, width_km: float) -> tuple[FloatArray, IntArray]:
    """Return the south-western corners of cells with points, (n, 2), in cell widths, and the points' cells, (K,)."""
    # complex numbers are sorted faster than rows
    corners, index = np.unique(np.floor(offsets / width_km) @ (1, 1j), return_inverse=True)
    return np.column_stack([corners.real, corners.imag]), index


def read_areas(source: Source, *, key: str | None = None, crs: object = None) -> dict[str, dict[str, Any]]:
    """Read areas from GeoJSON, a shapefile or a GeoPackage; return GeoJSON geometries by name.

    Raise if a polygon is invalid, or names are blank or not distinct.

    Parameters
    ----------
    source : path_like, file or GeoDataFrame
        Polygons and MultiPolygons; an object with ``name`` and ``read`` counts as a file.
    key : str, optional
        Property that holds the names. Default: the first of "atom", "name", "district", "NAMELSAD", "GEOID", "id" and
        the like, in upper or lower case, that all features have with distinct values.
    crs : optional
        As for `read_calls`.
    """
    frame: Any = source
    file: Any = None if hasattr(source, "geometry") else _points.open_file(cast("PathLike", source), "areas")
    if file is not None and file.name.lower().endswith(geography.LAYER_ENDINGS):
        frame = geography.read_layer(file)
    if hasattr(frame, "geometry"):
        frame = geography.layer_to_degrees(frame, crs).reset_index(drop=frame.index.name is None)
        file = formats.Upload("areas.geojson" if file is None else file.name, frame.to_json(drop_id=True).encode())
        crs = None
    outlines = geography.read_outlines(file, NAME_PROPERTIES if key is None else (key,), crs=crs)
    if len(outlines) > MOST_ATOMS:
        raise InputError(f"{file.name} has {len(outlines):,} areas; at most {MOST_ATOMS:,} are allowed. Merge some.")
    return outlines


def assign_to_areas(points: FloatArray, areas: dict[str, dict[str, Any]]) -> Atoms:
    """Assign points, (K, 2), to areas from `read_areas`, which all become atoms; raise if none has a point."""
    shapely = geography.load_extra("shapely", "a division into areas")
    shapes = shapely.from_geojson([json.dumps(shape) for shape in areas.values()], on_invalid="ignore")
    names = list(areas)
    if len(bad := np.flatnonzero(~shapely.is_valid(shapes) | shapely.is_empty(shapes))):
        name, reason = names[bad[0]], shapely.is_valid_reason(shapes[bad[0]])
        raise InputError(f"area {name!r} is not a valid polygon: {reason}. Repair it, as by shapely's `make_valid`.")
    point, area = shapely.STRtree(shapes).query(shapely.points(points), predicate="intersects")
    index = np.full(len(points), len(shapes))
    np.minimum.at(index, point, area)
    index[index == len(shapes)] = -1
    if (index < 0).all():
        raise InputError(f"none of the {len(points):,} calls lies in any area. Are both of the same city?")
    inside = shapely.get_coordinates(shapely.point_on_surface(shapes))
    return Atoms(names, inside, list(areas.values()), index, "Atoms are areas as given.")
