"""Simulate some hours of a deployment call by call, to look at: the events that `simulate` only counts."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .._validate import positive_number
from ..city.city import City, check_city
from ..city.deployment_space import check_sites
from . import simulation
from .service_distribution import service_law

if TYPE_CHECKING:
    from .._types import ArrayLike, FloatArray, IntArray, Rng, Sites


@dataclass(frozen=True, eq=False)
class Day:
    """Calls of some hours, in order, and the units that answer them.

    Attributes
    ----------
    city : City
    sites : ndarray of int, shape (p,)
        Site of each unit.
    hours : float
    minute, atom : ndarray, shape (K,)
        When (minutes from the start) and where each call comes.
    unit : ndarray of int, shape (K,)
        Unit that answers; -1 for calls that found all units busy, which are lost.
    turnout, response, service : ndarray, shape (K,)
        Minutes until the unit leaves its site, until it arrives, and until it is free again, each counted from the
        call. NaN for lost calls. As in `simulate`, service times do not depend on response times: some are shorter.
        Such a unit may answer the next call, from its site, before it would have arrived.
    release : ndarray, shape (p,)
        Minutes from the start until each unit has finished the calls that came before; 0 for units that are free.

    Examples
    --------
    >>> import emsopt as eo
    >>> city = eo.datasets.load_st_paul()
    >>> day = eo.evaluators.simulate_day(city, [0, 3, 7, 9], rng=0)
    >>> day.minute.shape == day.atom.shape == day.response.shape
    True
    """

    city: City
    sites: IntArray
    hours: float
    minute: FloatArray
    atom: IntArray
    unit: IntArray
    turnout: FloatArray
    response: FloatArray
    service: FloatArray
    release: FloatArray

    def __repr__(self) -> str:
        return f"<Day: {len(self.minute):,} calls in {self.hours:g} h, {len(self.sites)} units>"


def simulate_day(
    city: City,
    sites: Sites,
    *,
    hours: float = 24.0,
    service: str | ArrayLike = "exponential",
    cv: float | None = None,
    rng: Rng = None,
) -> Day:
    """Simulate the calls of some hours; calls that find all units busy are lost.

    Parameters
    ----------
    city : City
    sites : array_like of int, shape (p,)
        Site of each unit.
    hours : float
    service, cv, rng
        As for `simulate`, whose calls these are: the first ones that it draws from the same seed.

    Returns
    -------
    Day

    Raises
    ------
    InputError
        If an argument is out of range.

    Examples
    --------
    >>> import emsopt as eo
    >>> city = eo.datasets.load_st_paul()
    >>> day = eo.evaluators.simulate_day(city, [0, 3, 7, 9], hours=12, rng=0)
    >>> page = eo.maps.replay_map(day)  # displayed by a notebook, with Play and Pause
    """
    check_city(city)
    sites, hours, (draw, _) = check_sites(city, sites), positive_number(hours, "hours", "h"), service_law(service, cv)
    seed = simulation.stream_seed(rng)
    initial = simulation.first_release(city, len(sites), seed)
    order, times = simulation.preferred_units(city, sites), np.ascontiguousarray(city.service_times[sites].T)
    parts, elapsed, release = [], 0.0, initial.copy()
    for _, gaps, atoms, factors in simulation.call_stream(city, itertools.repeat(simulation.CHUNK), draw, seed):
        units, minute = np.full(len(gaps), -1), elapsed + np.cumsum(gaps)
        counted = np.zeros((city.n_atoms, len(sites)), np.int64), np.zeros(len(sites))
        simulation.serve(gaps, atoms, factors, order, times, False, release, *counted, units)
        parts.append((minute, atoms, units, times[atoms, units] * factors))
        elapsed = minute[-1]
        if elapsed > 60 * hours:
            break
    minute, atoms, units, busy = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    n = int(np.searchsorted(minute, 60 * hours))
    minute, atoms, units, busy = minute[:n], atoms[:n], units[:n], busy[:n]
    response, law = city.response_times[sites[units], atoms], city.response_law
    if law is not None:
        response = law.at(sites).sample(units, atoms, simulation.streams(seed, 5)[4].standard_normal((n, 2)).T)
    lost = units < 0
    turnout = np.minimum(city.turnout_times[sites[units]], response)
    turnout, response, busy = (np.where(lost, np.nan, column) for column in (turnout, response, busy))
    return Day(city, sites, hours, minute, atoms, units, turnout, response, busy, initial)
