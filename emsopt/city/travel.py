"""Distances between places, from which travel times follow."""

import numpy as np

from .._types import ArrayLike, FloatArray
from .._validate import real_array

EARTH_RADIUS_KM = 6371.0088  # mean radius (IUGG)
PLAUSIBLE_KMH = (5, 150)  # of ambulances and fire engines; other averages suggest another unit


def great_circle_km(origins: ArrayLike, destinations: ArrayLike) -> FloatArray:
    """Return the great-circle distances between points in longitude and latitude (degrees), shape (N, M), km."""
    starts, ends = real_array(origins, "origins", (None, 2)), real_array(destinations, "destinations", (None, 2))
    return EARTH_RADIUS_KM * central_angle(starts[:, None], ends)


def central_angle(starts: FloatArray, ends: FloatArray) -> FloatArray:
    """Return the angles between points on a sphere by the haversine formula, in radians.

    ``starts`` and ``ends`` hold longitude and latitude in degrees on their last axis; their other axes are broadcast.
    """
    (lon1, lat1), (lon2, lat2) = (np.moveaxis(np.radians(points), -1, 0) for points in (starts, ends))
    haversine = np.sin((lat2 - lat1) / 2) ** 2 + np.cos(lat1) * np.cos(lat2) * np.sin((lon2 - lon1) / 2) ** 2
    return 2 * np.arcsin(np.sqrt(np.clip(haversine, 0, 1)))  # rounding may leave [0, 1], where arcsin fails


def plane_km(origins: ArrayLike, destinations: ArrayLike) -> FloatArray:
    """Return the Euclidean distances between points on a plane, shape (N, M), km."""
    starts = real_array(origins, "origins", (None, 2), unit="km")
    ends = real_array(destinations, "destinations", (None, 2), unit="km")
    return np.hypot(*(starts[:, None] - ends).transpose(2, 0, 1))
