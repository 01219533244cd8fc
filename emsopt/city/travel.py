"""Convert distances to travel times.

A travel-time law is a function from road distance (km) to time (min); `City.from_frames` accepts one as
``travel_times``. Road distances are straight-line distances (great-circle or, on a plane, Euclidean) times a detour
factor.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from .._types import ArrayLike, FloatArray
from .._validate import positive_number, real_array

EARTH_RADIUS_KM = 6371.0088  # mean radius (IUGG)
PLAUSIBLE_KMH = (5, 150)  # average speeds of ambulances and fire engines
Law: TypeAlias = Callable[[ArrayLike], FloatArray]
"""A travel-time law: from road distance (km) to time (min)."""


def great_circle_km(origins: ArrayLike, destinations: ArrayLike) -> FloatArray:
    """Return the great-circle distances between two sets of points.

    Parameters
    ----------
    origins : array_like, shape (N, 2)
        Longitude and latitude in decimal degrees.
    destinations : array_like, shape (M, 2)
        Longitude and latitude in decimal degrees.

    Returns
    -------
    ndarray, shape (N, M)
        Kilometres.
    """
    starts, ends = real_array(origins, "origins", (None, 2)), real_array(destinations, "destinations", (None, 2))
    return EARTH_RADIUS_KM * central_angle(starts[:, None], ends)


def central_angle(starts: FloatArray, ends: FloatArray) -> FloatArray:
    """Return the angles between points on a sphere by the haversine formula, in radians.

    ``starts`` and ``ends`` hold longitude and latitude in degrees on their last axis; their other axes are broadcast.
    """
    (lon1, lat1), (lon2, lat2) = (np.moveaxis(np.radians(points), -1, 0) for points in (starts, ends))
    haversine = np.sin((lat2 - lat1) / 2) ** 2 + np.cos(lat1) * np.cos(lat2) * np.sin((lon2 - lon1) / 2) ** 2
    return 2 * np.arcsin(np.sqrt(np.clip(haversine, 0, 1)))


def plane_km(origins: ArrayLike, destinations: ArrayLike) -> FloatArray:
    """Return the Euclidean distances between points on a plane, shape (N, M), km."""
    starts = real_array(origins, "origins", (None, 2), unit="km")
    ends = real_array(destinations, "destinations", (None, 2), unit="km")
    return np.hypot(*(starts[:, None] - ends).transpose(2, 0, 1))


def constant_speed(kmh: float) -> Law:
    """Return the travel-time law of a vehicle at constant speed.

    Parameters
    ----------
    kmh : float
        Speed in km/h.

    Returns
    -------
    callable
        Function from road distance (km) to travel time (min).
    """
    kmh = positive_number(kmh, "kmh", "km/h")

    def law(distance_km: ArrayLike) -> FloatArray:
        with np.errstate(over="ignore"):  # the caller raises an error for infinite times
            return np.asarray(distance_km, float) / kmh * 60

    return law


def budge_median_seconds(distance: ArrayLike, a: float, v: float) -> FloatArray:
    r"""Return the median travel time of Budge, Ingolfsson and Zerom (2010), in seconds.

    A vehicle accelerates at ``a`` until it cruises at ``v`` (any consistent unit of length):
    :math:`m(d) = 2\sqrt{d/a}` for :math:`d \le v^2/a`, else :math:`v/a + d/v`.
    """
    d = np.asarray(distance, float)
    return np.where(d <= v**2 / a, 2 * np.sqrt(d / a), v / a + d / v)


# Fitted to St. Paul by the authors of "Optimizing Server Locations in Spatial Queues" (published with their
# code, MIT licence, (c) 2025 Yi Zhang): acceleration, cruising speed and the coefficients of the variation.
ST_PAUL_COEFFICIENTS = (1.04729917e-4, 9.98233204e-3, -7.13341809, 4.16082726, 1.39337617e-2)
METRES_PER_UNIT = 1600


def st_paul_law(distance_km: ArrayLike) -> FloatArray:
    r"""Return mean travel times (min) in St. Paul by road distance, by the law of Budge, Ingolfsson and Zerom (2010).

    With the median travel time :math:`m(d)` of `budge_median_seconds`, coefficient of variation
    :math:`c(d) = \sqrt{b_0(b_2+1) + b_1(b_2+1)m + b_2 m^2}/m` and lognormal spread, the mean is
    :math:`m \exp(c^2/2)`.

    Notes
    -----
    The law is valid only for distances in the range to which it was fitted. Below roughly 100 m the coefficient of
    variation is not a real number and is replaced by 0.

    References
    ----------
    Budge, S., Ingolfsson, A. and Zerom, D. (2010). Empirical analysis of ambulance travel times: the case of
    Calgary emergency medical services. Management Science 56(4), 716-723.
    """
    a, v, b0, b1, b2 = ST_PAUL_COEFFICIENTS
    m = budge_median_seconds(np.asarray(distance_km, float) * 1000 / METRES_PER_UNIT, a, v)
    spread = np.maximum(b0 * (b2 + 1) + b1 * (b2 + 1) * m + b2 * m**2, 0)  # negative below the fitted range
    squared_variation = np.divide(spread, m**2, out=np.zeros_like(m), where=m > 0)
    return m * np.exp(squared_variation / 2) / 60
