"""``emsopt city CALLS STATIONS``: find the best deployment and a daily plan from a log of calls."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Any

from .._files.atomic import write_file
from .._files.formats import table_text
from .._validate import existing_file, path, whole_number
from ..city.tables import check_replaceable
from ..errors import InputError
from ..planning.scenarios import scenario
from . import _shared

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from pathlib import Path

    import pandas as pd

    from ..calls import CallLog
    from ..city.city import City
    from ..evaluators.evaluation import Evaluation
    from ..evaluators.objective import Objective
    from ..planning import Plan

EMBEDDED = {  # logs that ship with the package, and what is assumed about them unless given
    "practice": {"units": 5, "speed": 40.0},
    "san_jose": {"units": 16, "speed": 40.0, "turnout": 1.5},  # four times as many units as are busy on average
}
DESCRIPTION = (
    "Turn a log of past calls (CSV or GeoJSON: time, lon, lat, service_min) and a table of stations (name, lon, lat, "
    "turnout_min) into checks of the data, the best deployment, tables, a map, and a plan for the hours of the day. "
    "Start with --templates FOLDER, or try --practice or --san-jose."
)


def add_options(parser: ArgumentParser) -> None:
    """Add the options of the command."""
    add = parser.add_argument
    add("calls", nargs="?", metavar="CALLS", help="log of calls, .csv or .geojson")
    add("stations", nargs="?", metavar="STATIONS", help="table of stations, .csv or .geojson")
    add("--practice", action="store_true", help="use a made-up town; units and speed have defaults")
    add("--san-jose", action="store_true", help="use two weeks of a real city; units, speed and turnout have defaults")
    add("--templates", metavar="FOLDER", help="write templates of the input files to this folder, and exit")
    add("--units", type=int, metavar="P", help="fleet size")
    add("--name", default="city", help="title of maps and tables")
    add = parser.add_argument_group("times").add_argument
    add("--speed", type=float, metavar="KMH", help="driving speed for computing travel times")
    add("--roads", metavar="FILE", help="roads to drive at their speed limits, .osm.pbf, .net.xml, .zip, ...")
    add("--detour", type=float, default=1.3, metavar="X", help="road distance / straight-line distance (1.3)")
    add("--travel-times", metavar="FILE", help="table of minutes: one row per station, one column per atom, .csv")
    add("--turnout", type=float, metavar="MIN", help="minutes until a unit leaves, if not in STATIONS")
    add("--service", metavar="MIN", help="minutes that a call keeps a unit busy, or 'calls' or 'stations'")
    add = parser.add_argument_group("calls").add_argument
    add("--cell", type=float, metavar="KM", help="width of the cells in which calls are counted")
    add("--areas", metavar="FILE", help="GeoJSON polygons to count calls in, instead of cells")
    add("--area-name", metavar="KEY", help="property of the areas that holds their names")
    add("--reach", type=float, default=50.0, metavar="KM", help="leave out calls over KM from every station (50)")
    add("--time-zone", metavar="ZONE", help="time zone, such as America/Chicago, if times have an offset")
    add("--time-format", metavar="FORMAT", help="such as %%d.%%m.%%Y %%H:%%M, if times are not ISO 8601")
    add("--hours", metavar="H-H", help="count only calls of these hours, such as 7-19 (until 19:00) or 22-6")
    add("--weekdays", metavar="D-D", help="count only calls of these days, such as Mon-Fri or Sat,Sun")
    add("--drop-repeats", action="store_true", help="count calls with the same time and place only once")
    add("--skip-empty-days", action="store_true", help="treat days without calls as not recorded")
    add = parser.add_argument_group("plan").add_argument
    add("--moves", type=int, metavar="K", help="plan the day, with at most K units moved between two hours")
    _shared.add_fleet_options(parser)


def run(options: Namespace) -> None:
    """Run the command: read, check, optimise, plan and write."""
    from ..calls import aggregate_calls, check_calls

    if options.templates is not None:
        from ..datasets import write_templates

        for file in write_templates(options.templates):
            print(f"wrote {file}")
        return
    hours = None if options.hours is None else _hours(options.hours)
    weekdays = None if options.weekdays is None else _weekdays(options.weekdays)
    if options.moves is not None:
        whole_number(options.moves, "moves", low=0)
        if hours is not None:
            raise InputError("`--moves` plans all hours of the day. Leave out --hours.")
    calls, stations = _read(options)
    checks = check_calls(calls, stations, reach_km=options.reach)
    print(f"{len(calls):,} calls, {len(stations)} stations. What looks wrong in them:\n{checks}\n")
    _fill_in(options)
    demand = aggregate_calls(
        calls.without_repeats() if options.drop_repeats else calls,
        stations,
        cell_km=options.cell,
        areas=options.areas,
        area_name=options.area_name,
        reach_km=options.reach,
        empty_days="missing" if options.skip_empty_days else "counted",
    )
    times = {"weekdays": weekdays, "name": options.name, **_times(options)}
    city = demand.city(hours=hours, **times)
    # raises an error before the long search starts
    by_hour = None if options.moves is None else demand.cities_by_hour(**times)
    check_replaceable(path(options.out, "--out") / "city")

    def write_tables(objective: Objective, found: dict[str, Evaluation], out: Path) -> list[Path]:
        import pandas as pd

        rows = [scenario(city, name, e, options.metric, options.threshold) for name, e in found.items()]
        tables = {"checks": checks.to_frame(), "profile": demand.profile.to_frame()}
        tables |= {"deployments": _deployment_table(found), "scenarios": pd.DataFrame(rows)}
        if by_hour is not None:
            plan = _plan(by_hour, objective, options)
            tables |= {"plan": plan.to_frame(), "plan_moves": plan.changes()}
        written = [write_file(out / f"{name}.csv", table_text(table)) for name, table in tables.items()]
        return [city.save(out / "city"), *written]

    inputs = [options.calls, options.stations, options.areas, options.travel_times, options.roads]
    _shared.solve(city, options.units, options, inputs, write_tables)


# -- reading ------------------------------------------------------------------------------------------------------


def _read(options: Namespace) -> tuple[CallLog, pd.DataFrame]:
    """Return the log and the stations."""
    from ..calls import read_calls, read_stations
    from ..datasets import practice_calls, san_jose_calls

    if options.practice or options.san_jose:
        if options.calls is not None or (options.practice and options.san_jose):
            raise InputError("give one of files, --practice and --san-jose; more were given.")
        return practice_calls() if options.practice else san_jose_calls()
    if options.stations is None:
        raise InputError("give a log of calls and a table of stations: emsopt city calls.csv stations.csv")
    calls = read_calls(options.calls, time_zone=options.time_zone, time_format=options.time_format)
    return calls, read_stations(options.stations)


def _fill_in(options: Namespace) -> None:
    """Assume what is not given for a log of the package; otherwise raise one error that lists missing options."""
    assumed = next((values for name, values in EMBEDDED.items() if getattr(options, name)), {})
    missing = {} if options.units is not None else {"units": "--units P (fleet size)"}
    if options.speed is None and options.travel_times is None and options.roads is None:
        missing["speed"] = "--speed KMH (driving speed), --roads FILE or --travel-times FILE"
    if missing and not assumed:
        raise InputError(f"missing options: {', and '.join(missing.values())}.")
    missing |= {"turnout": ""} if options.turnout is None and "turnout" in assumed else {}
    for name in missing:
        setattr(options, name, assumed[name])
        print(f"Assumed: --{name} {assumed[name]:g}")


def _times(options: Namespace) -> dict[str, Any]:
    """Return the options of travel and service as arguments of `Demand.city`."""
    from .._files.formats import read_csv
    from ..roads import RoadNetwork

    table, service = None, options.service
    if options.travel_times is not None:
        file = existing_file(options.travel_times, "--travel-times", "a table of travel times, .csv")
        table = read_csv(file, labelled=True)
    if service not in (None, "calls", "stations"):
        try:
            service = float(service)
        except ValueError as error:
            raise InputError(
                f"`--service` must be a number of minutes, 'calls' or 'stations'; got {service!r}."
            ) from error
    roads = None if options.roads is None else RoadNetwork.read(options.roads)
    travel = {"speed_kmh": options.speed, "detour": options.detour, "travel_times": table, "roads": roads}
    return {**travel, "turnout_times": options.turnout, "service_times": service}


def _hours(text: str) -> list[int]:
    """Parse one range of hours: "7-19", from 7:00 until 19:00, gives 7, 8, ..., 18. It may pass midnight ("22-6")."""
    found = re.fullmatch(r"\s*(\d{1,2})\s*-\s*(\d{1,2})\s*", text)
    first, last = (int(part) for part in found.groups()) if found else (99, 99)
    if first > 23 or last > 24 or first == last:
        raise InputError(f"`--hours` must have a form such as 7-19 (until 19:00) or 22-6; got {text!r}.")
    return [(first + k) % 24 for k in range((last - first) % 24 or 24)]


def _weekdays(text: str) -> list[int]:
    """Parse weekdays such as "Mon-Fri" or "Sat,Sun" to numbers, with 0 for Monday."""
    from ..calls.profile import WEEKDAYS

    days: set[int] = set()
    for part in text.split(","):
        ends = [end.strip().title()[:3] for end in part.split("-")]
        if len(ends) > 2 or not set(ends) <= set(WEEKDAYS):
            raise InputError(f"`--weekdays` must have a form such as Mon-Fri or Sat,Sun; got {text!r}.")
        first, last = WEEKDAYS.index(ends[0]), WEEKDAYS.index(ends[-1])
        days |= {(first + k) % 7 for k in range((last - first) % 7 + 1)}
    return sorted(days)


# -- tables -------------------------------------------------------------------------------------------------------


def _deployment_table(found: dict[str, Evaluation]) -> pd.DataFrame:
    """Return one row per unit: deployment, site, utilisation, share of calls and mean response."""
    import pandas as pd

    parts = [e.to_frame().drop(columns="site").assign(deployment=name) for name, e in found.items()]
    table = pd.concat(parts).rename(columns={"name": "site"})
    return table[["deployment", "site", "utilization", "share_of_calls", "mean_response_min"]]


def _plan(cities: dict[int, City], objective: Objective, options: Namespace) -> Plan:
    """Plan the day and print what changes."""
    from ..planning import hourly_plan

    rules = {"metric": objective.metric, "rng": 0, "progress": sys.stderr.isatty(), **objective.options}
    plan = hourly_plan(cities, objective.space, options.moves, options.evaluator, **rules)
    evaluator = plan.objectives[0].evaluator
    print(
        f"\nPlan of the day, at most {options.moves} unit(s) moved between hours ({evaluator} hypercube): "
        f"{plan.message}.\n  {objective.label}, mean over all calls: {plan.value:.4g}; without moves "
        f"{_against(plan.fixed_value, plan)}; with unlimited moves {_against(plan.free_value, plan)}."
    )
    changes = plan.changes()
    if changes.empty:
        print("  No unit moves all day.")
    for hour, old, new in changes.itertuples(index=False):
        print(f"  {hour:02d}:00  {old} -> {new}")
    return plan


def _against(value: float, plan: Plan) -> str:
    """Return a value as text, with its relative difference from the value of the plan."""
    if not plan.value:
        return f"{value:.4g}"
    percent = round(100 * (value / plan.value - 1), 1) + 0.0  # not -0.0
    return f"{value:.4g} ({percent:+.1f} %)"
