"""Convert distances to travel times.

A travel-time law is a function from road distance (km) to time (min); `City.from_frames` accepts one as
``travel_times``. Road distances are great-circle distances times a detour factor.
"""

import numpy as np

from .._validate import positive_number, real_array
from ..errors import InputError

EARTH_RADIUS_KM = 6371.0088  # mean radius, IUGG


def great_circle_km(origins, destinations):
    """Return the great-circle distances between two sets of points.

    Parameters
    ----------
    origins : array_like, shape (N, 2)
        Longitude and latitude in decimal degrees.
    destinations : array_like, shape (M, 2)
        Likewise.

    Returns
    -------
    ndarray, shape (N, M)
        Kilometres.
    """
    lon1, lat1 = np.radians(real_array(origins, "origins", (None, 2))).T[:, :, None]
    lon2, lat2 = np.radians(real_array(destinations, "destinations", (None, 2))).T[:, None, :]
    haversine = np.sin((lat2 - lat1) / 2) ** 2 + np.cos(lat1) * np.cos(lat2) * np.sin((lon2 - lon1) / 2) ** 2
    return 2 * EARTH_RADIUS_KM * np.arcsin(np.sqrt(np.clip(haversine, 0, 1)))


def plane_km(origins, destinations):
    """Return the Euclidean distances between points on a plane, shape (N, M), km."""
    origins = real_array(origins, "origins", (None, 2), unit="km")
    destinations = real_array(destinations, "destinations", (None, 2), unit="km")
    return np.hypot(*(origins[:, None, :] - destinations[None, :, :]).transpose(2, 0, 1))


def constant_speed(kmh):
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

    def law(distance_km):
        with np.errstate(over="ignore"):  # the caller refuses infinite times
            return np.asarray(distance_km, float) / kmh * 60

    return law


def budge_median_seconds(distance, a, v):
    r"""Return the median travel time of Budge, Ingolfsson and Zerom (2010), s.

    A vehicle accelerates at ``a`` until it cruises at ``v`` (any consistent unit of length):
    :math:`m(d) = 2\sqrt{d/a}` for :math:`d \le v^2/a`, else :math:`v/a + d/v`.
    """
    distance = np.asarray(distance, float)
    if (distance < 0).any():
        raise InputError(f"distances must be at least 0; got {distance.min():g}.")
    return np.where(distance <= v**2 / a, 2 * np.sqrt(distance / a), v / a + distance / v)


def budge_law(a, v, b0, b1, b2, metres_per_unit):
    r"""Return the law of mean travel time fitted by Budge, Ingolfsson and Zerom (2010).

    With median :math:`m(d)`, coefficient of variation
    :math:`c(d) = \sqrt{b_0(b_2+1) + b_1(b_2+1)m + b_2 m^2}/m` and lognormal spread, the mean is
    :math:`m \exp(c^2/2)`.

    Parameters
    ----------
    a, v : float
        Acceleration and cruising speed in units of length per second squared and per second.
    b0, b1, b2 : float
        Coefficients of the spread.
    metres_per_unit : float
        Length of the unit in metres.

    Returns
    -------
    callable
        Function from road distance (km) to mean travel time (min).

    Notes
    -----
    The fit is not valid outside the distances it was fitted to; below roughly 100 m the spread is not a real
    number.

    References
    ----------
    Budge, S., Ingolfsson, A. and Zerom, D. (2010). Empirical analysis of ambulance travel times: the case of
    Calgary emergency medical services. Management Science 56(4), 716-723.
    """
    a, v = positive_number(a, "a"), positive_number(v, "v")

    def law(distance_km):
        m = budge_median_seconds(np.asarray(distance_km, float) * 1000 / metres_per_unit, a, v)
        spread = np.maximum(b0 * (b2 + 1) + b1 * (b2 + 1) * m + b2 * m**2, 0)  # negative below the fitted range
        squared_variation = np.divide(spread, m**2, out=np.zeros_like(m), where=m > 0)
        return m * np.exp(squared_variation / 2) / 60

    return law


# Fitted to St. Paul by the authors of "Optimizing Server Locations in Spatial Queues" (published with their
# code, MIT licence, (c) 2025 Yi Zhang). One unit of distance is 1600 m.
st_paul_law = budge_law(
    a=1.04729917e-4, v=9.98233204e-3, b0=-7.13341809, b1=4.16082726, b2=1.39337617e-2, metres_per_unit=1600
)
