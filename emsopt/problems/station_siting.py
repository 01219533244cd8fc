r"""Where in the plane should stations stand? Not a choice from a list: their coordinates are the inputs.

========  ==================================================================================================
input     meaning
========  ==================================================================================================
x_1, y_1  location of the first station: longitude and latitude, or kilometres east and north
...       and so on for each station, 2 p inputs in all
========  ==================================================================================================

The box is the bounding box of the city's atoms, once for each station. The value is the mean response (or another
metric) of the hypercube model with one unit at each station. Travel times are a function of the distance as the crow
flies; unless given, that function is a straight line fitted to the city's own table, so that nothing is known of
rivers and motorways that the line does not hold. Turnout and service take as long as they do on average at the city's
listed sites.

Limits. Stations may stand anywhere, also in a lake. Stations can be swapped, so that every best point has p! copies.
Where an atom changes its nearest station the order in which units answer jumps, and the value with it, a little. Within
a kilometre or so the line's start, a constant, says all, and a table of areas knows no distance within an area.
"""

import numpy as np

from .. import _validate
from ..city import travel
from ..city.city import City, check_city
from ..errors import InputError
from ..evaluators.by_name import check_evaluator, values
from ..evaluators.metrics import metric_costs
from .problem import Problem


def siting(city, stations, *, travel_time=None, metric="mean_response", evaluator=None):
    """Return the siting of a city's stations as a problem of 2 p inputs, to be minimised.

    Parameters
    ----------
    city : City
        With ``atom_locations``, and with ``site_locations`` unless ``travel_time`` is given.
    stations : int
        p, one unit at each.
    travel_time : callable, optional
        From distances as the crow flies (km) to minutes, both ndarrays; left out: `fitted_travel_time`.
    metric
        As of `emsopt.Objective`: "mean_response" (min), or ("late", minutes), or a mix.
    evaluator : {"exact", "approximate"}, optional
        Left out: exact up to 12 stations, else approximate.

    Returns
    -------
    Problem
        Inputs "lon1", "lat1", "lon2" ... or "x1", "y1" ...; without a ``best_value``.

    Raises
    ------
    InputError
        If locations are missing, or all atoms lie on one line along an axis.

    Examples
    --------
    >>> import emsopt as eo
    >>> city = eo.datasets.grid_city(rng=0).scaled(0.05)
    >>> f = siting(city, 2)
    >>> f
    <Problem siting: 4 inputs, min>
    >>> round(f([2.5, 5.0, 7.5, 5.0]), 2), round(f([5.0, 5.0, 5.0, 5.0]), 2)
    (6.98, 7.67)
    """
    p = _validate.whole_number(stations, "stations")
    evaluator = _validate.choice(check_evaluator(evaluator, p), "evaluator", ("exact", "approximate"))
    atoms = _locations(city, "atom_locations")
    law = fitted_travel_time(city) if travel_time is None else travel_time
    metric_costs(city, metric)  # refuse a wrong one now
    low, high = atoms.min(axis=0), atoms.max(axis=0)
    if (low >= high).any():
        msg = "`city.atom_locations` must span an area; they lie on one line along an axis."
        raise InputError(msg)

    def function(points):
        return np.array([_value(city, x.reshape(p, 2), law, metric, evaluator) for x in points])

    axes = ("lon", "lat") if city.geographic else ("x", "y")
    names = tuple(f"{axis}{k}" for k in range(1, p + 1) for axis in axes)
    return Problem("siting", function, np.tile(np.column_stack([low, high]), (p, 1)), "min", variables=names)


def sited_city(city, x, *, travel_time=None):
    """Return the city with its listed sites replaced by stations at given places, to evaluate and to draw.

    Parameters
    ----------
    city : City
    x : array_like, shape (2 p,) or (p, 2)
        A point of `siting`.
    travel_time
        As in `siting`.

    Returns
    -------
    City
        Of p sites, "station 1" and so on: `emsopt.evaluators.evaluate` of all of them is the value of `siting`.

    Examples
    --------
    >>> import emsopt as eo
    >>> sited_city(eo.datasets.grid_city(rng=0), [2.5, 5.0, 7.5, 5.0]).site_names
    ('station 1', 'station 2')
    """
    x = _validate.floats(x, "x")
    if x.size == 0 or x.size % 2:
        msg = f"`x` must hold two coordinates a station; got shape {x.shape}."
        raise InputError(msg)
    law = fitted_travel_time(city) if travel_time is None else travel_time
    return _with_stations(city, x.reshape(-1, 2), law).replace(atom_shapes=city.atom_shapes)


def fitted_travel_time(city):
    """Return the straight line from km to minutes that fits the city's table of travel times best (least squares).

    Parameters
    ----------
    city : City
        With ``atom_locations`` and ``site_locations``.

    Returns
    -------
    callable
        From distances as the crow flies (km) to minutes, at least 0.

    Examples
    --------
    >>> import emsopt as eo
    >>> fitted_travel_time(eo.datasets.load_st_paul())([0.0, 10.0]).round(2)
    array([ 2.18, 15.28])
    """
    km = _crow_km(city, _locations(city, "site_locations"))
    if np.ptp(km) == 0:
        msg = "all distances from sites to atoms are alike: a line needs several; give `travel_time`."
        raise InputError(msg)
    slope, start = np.polyfit(km.ravel(), city.travel_times.ravel(), 1)
    return lambda km: np.maximum(start + slope * np.asarray(km, dtype=float), 0.0)


def _value(city, stations, law, metric, evaluator):
    there = _with_stations(city, stations, law)
    deployment = np.arange(len(stations))[None]
    return float(values(there, deployment, metric_costs(there, metric), evaluator)[0])


def _with_stations(city, stations, law):
    """Return the city of those stations, without outlines, whose check would cost more than an evaluation."""
    p = len(stations)
    return City(
        city.arrival_rates,
        law(_crow_km(city, stations)),
        turnout_times=np.full(p, city.turnout_times.mean()),
        service_times=city.mean_service_time,
        atom_names=city.atom_names,
        site_names=[f"station {k}" for k in range(1, p + 1)],
        atom_locations=city.atom_locations,
        site_locations=stations,
        geographic=city.geographic,
        name=city.name,
        notes=city.notes,
    )


def _crow_km(city, places):
    distance = travel.great_circle_km if city.geographic else travel.plane_km
    return distance(places, _locations(city, "atom_locations"))


def _locations(city, name):
    locations = getattr(check_city(city), name)
    if locations is None:
        msg = f"`city` must have `{name}`: siting needs to know where things are."
        raise InputError(msg)
    return locations
