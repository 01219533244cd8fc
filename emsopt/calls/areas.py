"""From places of calls to atoms: square cells, or areas of one's own.

**Cells** are squares of a given width (km) on a grid that the stations alone decide: logs of different years of one
city have the same cells, and their edges say nothing of any single call. The location of a cell is its centre, never a
place where someone called.

**Areas** are polygons with names, from GeoJSON; a call on a border belongs to the area listed first.
"""

from typing import NamedTuple

import numpy as np

from .. import _validate
from .._files import plain
from .._files.shapes import check_shape
from ..city.travel import EARTH_RADIUS_KM
from ..errors import InputError, MissingDependencyError
from . import _points
from .log import check_name

MOST_ATOMS = 5000
WIDTHS_KM = (0.25, 0.5, 1, 2, 3, 5, 10, 20)
LEAST_WIDTH_KM = 0.05
ENOUGH_ATOMS = 200  # cells that a width chosen by itself may make
NAMES = ("atom", "name", "district", "id")
KM_PER_DEGREE = np.pi / 180 * EARTH_RADIUS_KM


class Atoms(NamedTuple):
    """Atoms, and the atom of each of some points."""

    names: list
    locations: np.ndarray  # (M, 2), degrees
    shapes: list  # GeoJSON
    index: np.ndarray  # (K,): -1 where a point lies in none
    note: str


class Areas(NamedTuple):
    """Polygons with names."""

    names: list
    shapes: list  # GeoJSON


def cells(points, stations, width_km=None):
    """Put points into square cells; only cells that hold one become atoms.

    Parameters
    ----------
    points, stations : ndarray, shape (K, 2) and (N, 2)
        Degrees. The middle of the stations is where the grid starts.
    width_km : float, optional
        Left out: the finest of some round widths with at most 200 cells.

    Returns
    -------
    Atoms
        Named by how far their centre is from the middle of the stations: "1.5N 2E", kilometres.

    Raises
    ------
    InputError
        If there are more than 5,000 cells.
    """
    middle = np.round(np.median(stations, axis=0), 2)
    stretch = np.array([np.cos(np.radians(middle[1])), 1.0]) * KM_PER_DEGREE  # km a degree
    if not stretch[0] > 1:
        msg = f"cells need stations away from the poles; theirs are at latitude {middle[1]:g}."
        raise InputError(msg)
    offsets = (points - middle) * stretch
    if width_km is None:
        fitting = (width for width in WIDTHS_KM if len(np.unique(_keys(offsets, width))) <= ENOUGH_ATOMS)
        width_km = next(fitting, WIDTHS_KM[-1])
    width_km = _validate.positive_number(width_km, "cell_km", "km")
    if width_km < LEAST_WIDTH_KM:
        msg = f"`cell_km` must be at least {LEAST_WIDTH_KM:g}: narrower cells tell who called; got {width_km:g}."
        raise InputError(msg)
    _, first, index = np.unique(_keys(offsets, width_km), return_index=True, return_inverse=True)
    corners = np.floor(offsets[first] / width_km)
    if len(corners) > MOST_ATOMS:
        msg = f"cells of {width_km:g} km make {len(corners):,} atoms, more than {MOST_ATOMS:,}. Make them wider."
        raise InputError(msg)
    centres = (corners + 0.5) * width_km
    square = np.array([[0, 0], [1, 0], [1, 1], [0, 1], [0, 0]])
    rings = np.round((corners[:, None] + square) * width_km / stretch + middle, 7)
    return Atoms(
        names=[_direction(north, "NS") + " " + _direction(east, "EW") for east, north in centres],
        locations=np.round(centres / stretch + middle, 7),
        shapes=[{"type": "Polygon", "coordinates": [ring.tolist()]} for ring in rings],
        index=index,
        note=f"Atoms are cells of {width_km:g} km with at least one call, named by km from the middle of the stations.",
    )


def _keys(offsets, width_km):
    """Return one whole number for each cell, shape (K,): a fast way to tell them apart."""
    column, row = np.floor(offsets / width_km).astype(np.int64).T
    return column * 2**32 + row


def _direction(km, letters):
    return f"{abs(km):.6g}{letters[int(km < 0)]}"


def read_areas(source, *, key=None):
    """Read areas from GeoJSON.

    Parameters
    ----------
    source : path_like, file or GeoDataFrame
        Polygons and MultiPolygons; anything with ``name`` and ``read`` counts as a file.
    key : str, optional
        Property that holds the names; left out: the first of "atom", "name", "district", "id" that all have.

    Returns
    -------
    Areas

    Raises
    ------
    InputError
        If a polygon is broken, or names are blank or not distinct.
    """
    if key is not None and not isinstance(key, str):
        msg = f"`key` must be the name of a property, as text; got {_validate.shown(key)}."
        raise InputError(msg)
    if hasattr(source, "to_json") and hasattr(source, "geometry"):
        source = _from_geodataframe(source)
    file = _points.open_file(source, "areas")
    features = plain.read_features(file)
    if len(features) > MOST_ATOMS:
        msg = f"{file.name} has {len(features):,} areas; at most {MOST_ATOMS:,} are allowed. Merge some."
        raise InputError(msg)
    owned = [f.get("properties") if isinstance(f, dict) else None for f in features]
    owned = [p if isinstance(p, dict) else {} for p in owned]
    keys = NAMES if key is None else (key,)
    key = next((name for name in keys if all(name in p for p in owned)), None)
    if key is None:
        msg = f"{file.name}: every feature needs its name as a property {' or '.join(map(repr, keys))}."
        raise InputError(msg)
    names = _validate.names([p[key] for p in owned], f"{file.name}, property {key!r}", len(owned), "area")
    for name, feature in zip(names, features, strict=True):
        check_name(name, file.name)
        check_shape(feature.get("geometry"), f"{file.name} ({name!r})", geographic=True)
    return Areas(list(names), [feature["geometry"] for feature in features])


def _from_geodataframe(frame):
    from io import StringIO

    file = StringIO((frame if frame.crs is None else frame.to_crs(4326)).to_json(drop_id=True))
    file.name = "areas.geojson"
    return file


def within(points, areas):
    """Find the area of each point.

    Parameters
    ----------
    points : ndarray, shape (K, 2)
    areas : Areas

    Returns
    -------
    Atoms
        All areas, also those without a point; located at a point inside each.

    Raises
    ------
    InputError
        If a polygon crosses itself, or no point lies in any.
    MissingDependencyError
        Without shapely.
    """
    try:
        import shapely
    except ImportError as error:
        msg = "areas need the package shapely: pip install 'emsopt[maps]'."
        raise MissingDependencyError(msg) from error
    shapes = []
    for name, geometry in zip(areas.names, areas.shapes, strict=True):
        try:
            shape = shapely.geometry.shape(geometry)
            problem = "" if shape.is_valid and not shape.is_empty else shapely.is_valid_reason(shape)
        except (ValueError, shapely.errors.ShapelyError) as error:
            problem = str(error)
        if problem:
            msg = f"the area {name!r} is no valid polygon: {problem[:200]}. Repair it with `make_valid` of geopandas."
            raise InputError(msg)
        shapes.append(shape)
    point, area = shapely.STRtree(shapes).query(shapely.points(points), predicate="intersects")
    index = np.full(len(points), len(shapes))
    np.minimum.at(index, point, area)
    index[index == len(shapes)] = -1
    if (index < 0).all():
        msg = (
            f"none of the {len(points):,} calls lies in any of the {len(shapes)} areas; are they of one city?"
        )
        raise InputError(msg)
    inside = [shapely.point_on_surface(shape) for shape in shapes]
    locations = np.array([[p.x, p.y] for p in inside])
    return Atoms(areas.names, locations, areas.shapes, index, "Atoms are areas as given.")
