"""Take times, fleet size and today's units from a log; where it does not say, assume them and print what is assumed."""

from __future__ import annotations

import os
import shlex
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from .._files.formats import read_csv
from .._validate import existing_file, positive_number, whole_number
from ..city.travel import PLAUSIBLE_KMH
from ..errors import InputError
from ._spelling import in_options

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Mapping

    import pandas as pd

    from .._types import IntArray
    from ..calls import CallLog, Demand, Fit
    from ..city.city import City
    from ..roads import RoadNetwork

SPEED_KMH, TURNOUT_MIN = 40.0, 1.5  # assumed
STAMPS = ("dispatched", "on_scene")
SAID = {"dispatched": "time of dispatch", "on_scene": "time of arrival on scene", "cleared": "time of clearing"}
MOST_NAMED = 5
SEVERAL = 1.2  # units per call, from which on it matters that the model sends one


class MakeCity(Protocol):
    """Makes the city of a demand and of selected hours of the week."""

    def __call__(self, demand: Demand, **chosen: Any) -> City: ...


def print_spare(calls: CallLog) -> None:
    """Print which columns of times were not taken, if stamps are missing, and the option that takes them."""
    missing = [role for role in (*STAMPS, "cleared") if role not in calls.details]
    if not calls.spare or not missing:
        return
    names = ", ".join(map(repr, calls.spare))
    guessed = [f"{role}={shlex.quote(name)}" for name, role in calls.spare.items() if role]
    option = " ".join(guessed) or f"{missing[0]}={shlex.quote(next(iter(calls.spare)))}"
    print(
        f"Columns of times not taken: {names}. If one is the {' or the '.join(SAID[role] for role in missing)}, "
        f"name it, such as --columns {option}"
    )


def calibrated(
    options: Namespace,
    calls: CallLog,
    stations: pd.DataFrame,
    homes: Mapping[str, str] | None,
    roads: RoadNetwork | None,
) -> Fit | None:
    """Calibrate the times from the log and print them; None if travel is given or the log does not record it."""
    from ..calls import calibrate

    given = [name for name in ("speed", "travel_times") if getattr(options, name) is not None]
    if given:
        if len(given) == 2 or roads is not None:
            raise InputError("give one of --speed, --travel-times and --roads.")
        return None
    missing = [SAID[role] for role in STAMPS if role not in calls.details]
    if missing:
        print(f"The log cannot tell how long units take: it has no {' and no '.join(missing)}.\n")
        return None
    try:
        fit = calibrate(calls, stations, homes, roads)
    except InputError as error:
        if homes is not None:
            raise
        print(f"The log does not tell how long units take, because {in_options(str(error))}\n")
        return None
    table = fit.to_frame().round(3).to_string()
    print(f"Calibrated from the log's own times ({len(fit.calls):,} calls); 90 % intervals:\n{table}\n")
    return fit


def read_homes(name: str) -> dict[str, str]:
    """Return the station of each unit in a file with columns ``unit`` and ``station``."""
    table = read_csv(existing_file(name, "--homes", "a table of units and their stations, .csv"))
    columns = {str(column).strip().lower(): column for column in table.columns}
    if not {"unit", "station"} <= columns.keys():
        raise InputError(f"{name} must have columns 'unit' and 'station'; got {list(columns)}.")
    pairs = zip(table[columns["unit"]], table[columns["station"]], strict=True)
    return {str(unit).strip(): str(station).strip() for unit, station in pairs}


def city_maker(
    options: Namespace, demand: Demand, fit: Fit | None, roads: RoadNetwork | None, assumed: list[str]
) -> tuple[MakeCity, dict[str, Any]]:
    """Return a function that makes the city of a demand, and its options; times are given, calibrated or assumed.

    What is assumed is added to ``assumed``.
    """
    times: dict[str, Any] = {"name": options.name} | _service(options, demand, fit)
    turnout = options.turnout
    if turnout is None and fit is None and "turnout_min" not in demand.stations:
        turnout = TURNOUT_MIN
        assumed.append(f"--turnout {TURNOUT_MIN:g} (min until a unit leaves; the stations do not say)")
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
            assumed.append(f"--speed {SPEED_KMH:g} (km/h; not calibrated from the log)")
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


def todays_sites(options: Namespace, city: City, fit: Fit | None, calls: CallLog) -> IntArray | None:
    """Return the site of each of today's units: given, or the home stations of the log's units; None if unknown.

    Prints who they are, which units of the log are not among them and why, and what becomes of calls without a unit.
    """
    if fit is not None:
        from ..calls.calibration import without_unit

        for said in without_unit(calls, fit):
            print(said)
    if options.today:
        names = options.today
        if len(names) == 1 and (names[0].lower().endswith(".csv") or os.path.isfile(names[0])):
            names = _read_today(names[0])
        return city.sites_named(names)
    if fit is not None and fit.homes_from != "unknown":
        print(_who(fit))
        return fit.deployment
    details = calls.details
    if "station" in details:
        named = details.dropna(subset=["station"]).filter(["station", "unit"]).drop_duplicates()["station"]
        known = [name for name in named if name in city.site_names]
        if known:
            print(f"Today: {len(known)} units at {len(set(known))} stations, by the stations in the log.")
            return np.sort(city.sites_named(known))
    print("Today's deployment is not known from the log: --today names it, and --homes the station of each unit.")
    return None


def _who(fit: Fit) -> str:
    """Return who today's units are, and which units of the log are not among them and why."""
    from ..calls import regular_units

    how = {"given": "by --homes", "numbers": "by the numbers in their names", "log": "by the calls that they answer"}
    source = how.get(fit.homes_from, "by the stations in the log")
    said = f"Today: {len(fit.deployment)} units at {len(set(fit.deployment))} stations, by the units in the log."
    if "unit" not in fit.calls.details:
        return said
    counts = fit.calls.details["unit"].value_counts()
    homeless = [unit for unit in counts.index if unit not in fit.homes]
    seldom = sorted(set(fit.homes) & set(counts.index) - set(regular_units(fit.homes, fit.calls.details)))
    said += f" It names {len(counts)}; the homes of {len(counts) - len(homeless)} are known {source}."
    for units, why in ((homeless, "no known home (--homes names it)"), (seldom, "hardly any calls")):
        if units:
            shown = ", ".join(units[:MOST_NAMED]) + (", ..." if len(units) > MOST_NAMED else "")
            said += f"\n  Not deployed, {why}: {len(units)} with {counts[units].sum():,} calls ({shown})."
    return said


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


def fleet(options: Namespace, city: City, today: IntArray | None, assumed: list[str]) -> int:
    """Return the fleet size: as given, or as many as today, or the fewest that the load needs.

    If today's units share stations, units of the same number may. What is assumed is added to ``assumed``.
    """
    from ..planning import units_needed

    if options.units is not None:
        return whole_number(options.units, "--units")
    most = city.n_sites - len(set(options.closed))
    if today is not None and len(set(today)) < len(today) and not options.colocate:
        options.colocate = True
        assumed.append("--colocate, because several of today's units share a station")
    if today is not None and (options.today or options.colocate or len(today) < most):
        return len(today)
    needed, at_once = units_needed(city), city.total_rate * city.mean_service_time / 60
    units = needed if options.colocate else min(needed, most)
    why = f"{at_once:.2f} calls at once: the smallest fleet that loses at most 1 % and is busy at most 30 % of the time"
    if units < needed:
        why = f"one per site; the load needs {needed}: see --colocate"
    elif today is not None:
        why += f"; today's {len(today)} would leave no choice of sites"
    assumed.append(f"--units {units}, {why}")
    return units


def print_assumed(assumed: list[str], options: Namespace, calls: CallLog) -> None:
    """Print what is assumed: what the log does not say, and what the model says of all cities."""
    each = calls.details["units_sent"].mean() if "units_sent" in calls.details else 1.0
    one = "one unit goes to each call, the closest that is free"
    if each > SEVERAL:
        one += f"; the log shows {each:.1f} units per call, so that true workloads are higher"
    model = [
        "all units are interchangeable: any of them can answer any call",
        one,
        f"calls that find all units busy {'wait' if options.queue else 'are left to others (--queue: they wait)'}",
    ]
    print("Assumed:", *(f"  {what}" for what in [*assumed, *model]), "", sep="\n")
