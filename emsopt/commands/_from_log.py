"""Take times, fleet size and today's units from a log; where it does not say, assume them and print what is assumed."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from .._files.formats import read_csv
from .._validate import existing_file, positive_number, whole_number
from ..city.travel import PLAUSIBLE_KMH
from ..errors import InputError

if TYPE_CHECKING:
    from argparse import Namespace

    import pandas as pd

    from .._types import IntArray
    from ..calls import CallLog, Demand, Fit
    from ..city.city import City
    from ..roads import RoadNetwork

SPEED_KMH, TURNOUT_MIN = 40.0, 1.5  # assumed
STAMPS = ("dispatched", "on_scene")


class MakeCity(Protocol):
    """Makes the city of a demand and of selected hours of the week."""

    def __call__(self, demand: Demand, **chosen: Any) -> City: ...


def calibrated(options: Namespace, calls: CallLog, stations: pd.DataFrame, roads: RoadNetwork | None) -> Fit | None:
    """Calibrate the times from the log and print them; None if travel is given or the log does not record it."""
    from ..calls import calibrate

    given = [name for name in ("speed", "travel_times") if getattr(options, name) is not None]
    if given:
        if len(given) == 2 or roads is not None:
            raise InputError("give one of --speed, --travel-times and --roads.")
        return None
    if not set(STAMPS) <= set(calls.details.columns):
        return None
    try:
        fit = calibrate(calls, stations, roads=roads)
    except InputError as error:
        print(f"Not calibrated: {error}")
        return None
    print(f"Calibrated from the log's own times ({len(fit.calls):,} calls):\n{fit.to_frame().round(3).to_string()}\n")
    return fit


def city_maker(
    options: Namespace, demand: Demand, fit: Fit | None, roads: RoadNetwork | None
) -> tuple[MakeCity, dict[str, Any]]:
    """Return a function that makes the city of a demand, and its options; times are given, calibrated or assumed.

    What is assumed is printed.
    """
    times: dict[str, Any] = {"name": options.name} | _service(options, demand, fit)
    turnout = options.turnout
    if turnout is None and fit is None and "turnout_min" not in demand.stations:
        turnout = TURNOUT_MIN
        _assume("turnout", TURNOUT_MIN, "min until a unit leaves; the stations do not say")
    if turnout is not None:
        times["turnout_times"] = positive_number(turnout, "--turnout", "min", zero=True)
    if fit is not None:
        return lambda demand, **chosen: fit.city(demand=demand, **chosen, **times), times
    if options.travel_times is not None:
        file = existing_file(options.travel_times, "--travel-times", "a table of travel times, .csv")
        times["travel_times"] = read_csv(file, labelled=True)
    elif roads is not None:
        times["roads"] = roads
    else:
        if options.speed is None:
            options.speed = SPEED_KMH
            _assume("speed", SPEED_KMH, "km/h; not calibrated from the log")
        low, high = PLAUSIBLE_KMH
        if not low <= options.speed <= high:
            raise InputError(f"`--speed` must be from {low} to {high} km/h; got {options.speed:g}.")
        times |= {"speed_kmh": options.speed, "detour": options.detour}
    return lambda demand, **chosen: demand.city(**chosen, **times), times


def _service(options: Namespace, demand: Demand, fit: Fit | None) -> dict[str, Any]:
    """Return the option ``service_times`` of `Demand.city`; empty for its default."""
    service = options.service
    known = {"calls": demand.service_min is not None, "stations": "service_min" in demand.stations}
    if service is None:
        if fit is not None and fit.service is not None:
            return {}
        if not any(known.values()):
            raise InputError("neither calls nor stations say how long a call keeps a unit busy. Give --service MIN.")
        return {"service_times": "calls"} if all(known.values()) else {}
    if service in known:
        if not known[service]:
            raise InputError(f"the {service} have no column 'service_min' with times. Give --service MIN.")
        return {"service_times": service}
    try:
        return {"service_times": positive_number(float(service), "--service", "min")}
    except ValueError as error:
        raise InputError(f"`--service` must be a number of minutes, 'calls' or 'stations'; got {service!r}.") from error


def todays_sites(options: Namespace, city: City, fit: Fit | None, details: pd.DataFrame) -> IntArray | None:
    """Return the site of each of today's units: given, or the home stations of the log's units; None if unknown."""
    if options.today:
        names = options.today
        if len(names) == 1 and (names[0].lower().endswith(".csv") or os.path.isfile(names[0])):
            names = _read_today(names[0])
        return city.sites_named(names)
    if fit is not None and fit.homes_from != "unknown":
        print(f"Today: {len(fit.deployment)} units at {len(set(fit.deployment))} stations, by the units in the log.")
        return fit.deployment
    if "station" in details:
        named = details.dropna(subset=["station"]).filter(["station", "unit"]).drop_duplicates()["station"]
        known = [name for name in named if name in city.site_names]
        if known:
            print(f"Today: {len(known)} units at {len(set(known))} stations, by the stations in the log.")
            return np.sort(city.sites_named(known))
    return None


def _read_today(name: str) -> list[str]:
    """Return the station of each unit in a file with a column ``station`` and, optionally, ``units``."""
    table = read_csv(existing_file(name, "--today", "a table of today's units, .csv"))
    columns = {str(column).strip().lower(): column for column in table.columns}
    column = next((columns[key] for key in ("station", "site", "name") if key in columns), None)
    if column is None:
        raise InputError(f"{name} must have a column 'station' with the station of each unit; got {list(columns)}.")
    if "units" not in columns:
        return [str(station) for station in table[column]]
    counts = [whole_number(_number(text), f"{name}: units", low=0) for text in table[columns["units"]]]
    return [str(station) for station, count in zip(table[column], counts, strict=True) for _ in range(count)]


def _number(text: object) -> object:
    """Return text as a whole number where it is one."""
    return int(str(text)) if str(text).strip().isdigit() else text


def fleet(options: Namespace, city: City, today: IntArray | None) -> int:
    """Return the fleet size: as given, or as many as today, or the fewest that the load needs; print what is assumed.

    If today's units share stations, units of the same number may.
    """
    from ..planning import units_needed

    if options.units is not None:
        return whole_number(options.units, "--units")
    most = city.n_sites - len(set(options.closed))
    if today is not None and len(set(today)) < len(today) and not options.colocate:
        options.colocate = True
        print("Assumed: --colocate, because several of today's units share a station.")
    if today is not None and (options.today or options.colocate or len(today) < most):
        return len(today)
    needed, at_once = units_needed(city), city.total_rate * city.mean_service_time / 60
    units = needed if options.colocate else min(needed, most)
    why = f"{at_once:.2f} calls at once: the smallest fleet that loses at most 1 % and is busy at most 30 % of the time"
    if units < needed:
        why = f"one per site; the load needs {needed}: see --colocate"
    elif today is not None:
        why += f"; today's {len(today)} would leave no choice of sites"
    print(f"Assumed: --units {units}, {why}.")
    return units


def _assume(option: str, value: float, why: str) -> None:
    """Print an assumption."""
    print(f"Assumed: --{option} {value:g} ({why}).")
