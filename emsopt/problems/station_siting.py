r"""Siting of stations in the plane: the inputs are coordinates, not a choice from a list of sites.

Each station has two inputs: longitude and latitude, or kilometres east and north. The domain is the bounding box of the
city's atoms, repeated for each station. The value is the mean response of the hypercube model, exact up to 12 stations,
with one unit at each station. Travel times are a line in the straight-line distance, fitted to the city's table, and
therefore ignore local features such as rivers and motorways. The turnout time of every station is the average over the
city's listed sites, and the service time of every call is `City.mean_service_time`.

Limits. Stations may be placed anywhere, even in a lake. Stations are interchangeable, which gives every optimum p!
copies. Where the nearest station of an atom changes, the order in which units respond changes and the value jumps
slightly. Below about one kilometre the fitted travel time is dominated by the intercept of the line, because a table of
areas has no distances within an area.
"""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from ..city import travel
from ..city.city import City, check_city
from ..errors import InputError, _validate
from ..errors._types import ArrayLike, FloatArray
from ..evaluators.by_name import values
from .problem import Problem

TravelTimeLaw: TypeAlias = Callable[[FloatArray], FloatArray]  # from straight-line distances (km) to times (min)


def siting(city: City, stations: int) -> Problem:
    """Return the siting of p stations, with one unit each, as the problem of minimising the mean response (min).

    The city must have ``atom_locations`` and ``site_locations``. Inputs are "lon1", "lat1", "lon2" ... or "x1", "y1"
    ..., and there is no ``best_value``.

    Examples
    --------
    >>> import emsopt as eo
    >>> f = siting(eo.datasets.grid_city(rng=0).scaled(0.05), 2)
    >>> round(f([2.5, 5.0, 7.5, 5.0]), 2), round(f([5.0, 5.0, 5.0, 5.0]), 2)
    (6.98, 7.67)
    """
    p = _validate.whole_number(stations, "stations")
    atoms, law = _locations(city, "atom_locations"), fitted_travel_time(city)
    low, high = atoms.min(axis=0), atoms.max(axis=0)

    def mean_response(x: FloatArray) -> float:
        return float(values(_replace_sites(city, x.reshape(p, 2), law), np.arange(p)[None])[0])

    axes = ("lon", "lat") if city.geographic else ("x", "y")
    names = [f"{axis}{k}" for k in range(1, p + 1) for axis in axes]
    box = np.tile(np.column_stack([low, high]), (p, 1))
    return Problem("siting", lambda points: [mean_response(x) for x in points], box, "min", variables=names)


def sited_city(city: City, x: ArrayLike) -> City:
    """Return the city with p stations as its sites, "station 1" and so on, at a point of `siting`, shape (2 p,)."""
    stations = _validate.real_array(x, "x", (None,))
    if len(stations) == 0 or len(stations) % 2:
        raise InputError(f"`x` must hold two coordinates per station; got {len(stations)} numbers.")
    there = _replace_sites(city, stations.reshape(-1, 2), fitted_travel_time(city))
    return there.replace(atom_shapes=city.atom_shapes)  # dropped before, and unchanged


def fitted_travel_time(city: City) -> TravelTimeLaw:
    """Return a linear function, at least 0, fitted to the city's travel times (min) by straight-line distance (km)."""
    km = _straight_km(city, _locations(city, "site_locations"))
    slope, start = np.polyfit(km.ravel(), city.travel_times.ravel(), 1)
    return lambda km: np.maximum(start + slope * np.asarray(km, dtype=float), 0.0)  # a fitted intercept may be negative


def _replace_sites(city: City, stations: FloatArray, law: TravelTimeLaw) -> City:
    """Return the city with stations at locations, (p, 2), as its sites; outlines of atoms are dropped."""
    p = len(stations)
    return city.replace(
        travel_times=law(_straight_km(city, stations)),
        turnout_times=np.full(p, city.turnout_times.mean()),
        service_times=city.mean_service_time,  # no listed site is left to have its own
        travel_cv=np.mean(city.travel_cv),
        turnout_cv=np.mean(city.turnout_cv),
        preference=None,  # was one of the listed sites
        site_names=tuple(f"station {k}" for k in range(1, p + 1)),
        site_locations=stations,
        atom_shapes=None,  # checking them takes long
    )


def _straight_km(city: City, places: FloatArray) -> FloatArray:
    """Return the straight-line distances (km) from each of p places to each atom, shape (p, M)."""
    distance = travel.great_circle_km if city.geographic else travel.plane_km
    return distance(places, _locations(city, "atom_locations"))


def _locations(city: City, name: str) -> FloatArray:
    """Return the attribute ``name`` of the city, locations of its atoms or sites, (n, 2); raise if it has none."""
    locations: FloatArray | None = getattr(check_city(city), name)
    if locations is None:
        raise InputError(f"`city` must have `{name}`, because siting computes distances from them.")
    return locations
