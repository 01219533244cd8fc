"""``emsopt city CALLS STATIONS``: find the best deployment and a daily plan from a log of calls."""

from __future__ import annotations

import re
import sys
from functools import partial
from typing import TYPE_CHECKING, Any

from .._files.atomic import write_file
from .._files.formats import table_text
from .._validate import path, whole_number
from ..city.tables import check_replaceable
from ..errors import EmsoptError, InputError
from ..planning.scenarios import scenario
from . import _day, _from_log, _shared

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Callable
    from pathlib import Path

    import pandas as pd

    from ..calls import CallLog, Checks, Demand, Fit
    from ..city.city import City
    from ..evaluators.evaluation import Evaluation
    from ..evaluators.objective import Objective
    from ..planning import Comparison

DESCRIPTION = (
    "Turn a log of past calls (time, lon, lat and whatever else it has) and a table of stations (name, lon, lat) into "
    "checks of the data, the best deployment and its gain over today's, tables, a map, and a plan for the hours of the "
    "day. What the log does not say is assumed and printed. Start with --templates FOLDER, or try --practice or "
    "--san-jose."
)
DRAWS = 400  # of cities, to say how sure a gain is
PRACTICE = {"drop_repeats": True, "skip_empty_days": True, "accept_findings": True}
OPTIONS = {  # arguments of functions that messages name, and the options of this command
    "columns": "--columns",
    "time_zone": "--time-zone",
    "time_format": "--time-format",
    "cell_km": "--cell",
    "reach_km": "--reach",
    "area_name": "--area-name",
    "areas": "--areas",
    "speed_kmh": "--speed",
    "detour": "--detour",
    "turnout_times": "--turnout",
    "service_times": "--service",
    "travel_times": "--travel-times",
    "threshold": "--threshold",
    "pinned": "--pinned",
    "closed": "--closed",
    "moves": "--moves",
}


def add_options(parser: ArgumentParser) -> None:
    """Add the options of the command."""
    add = parser.add_argument
    add("calls", nargs="?", metavar="CALLS", help="log of calls: .csv, .geojson and others")
    add("stations", nargs="?", metavar="STATIONS", help="table of stations: .csv, .geojson and others")
    add("--practice", action="store_true", help="use a made-up town, with mistakes in its data")
    add("--san-jose", action="store_true", help="use two weeks of San José's fire department")
    add("--templates", metavar="FOLDER", help="write templates of the input files to this folder, and exit")
    add("--units", type=int, metavar="P", help="fleet size (default: as many as today, or as the load needs)")
    add(
        "--today",
        nargs="+",
        metavar="SITE",
        help="today's deployment, to compare with: the station of each unit, or a .csv file with a column 'station' "
        "(default: the home stations of the units in the log, if it tells)",
    )
    add("--name", default="city", help="title of maps and tables")
    add = parser.add_argument_group(
        "times (default: calibrated from the log, if it has dispatch and arrival)"
    ).add_argument
    add("--speed", type=float, metavar="KMH", help="driving speed for computing travel times (40)")
    add("--detour", type=float, default=1.3, metavar="X", help="road distance / straight-line distance (1.3)")
    add(
        "--roads",
        metavar="FILE",
        help="roads to drive on, .osm.pbf, .net.xml, .zip, ...; at speed limits if not calibrated",
    )
    add("--travel-times", metavar="FILE", help="table of minutes: one row per station, one column per atom, .csv")
    add("--turnout", type=float, metavar="MIN", help="minutes until a unit leaves, if not in STATIONS (1.5)")
    add("--service", metavar="MIN", help="minutes that a call keeps a unit busy, or 'calls' or 'stations'")
    add = parser.add_argument_group("calls").add_argument
    for name in ("--columns", "--station-columns"):
        what = "CALLS, such as time=Alarm unit=Rig" if name == "--columns" else "STATIONS"
        add(name, nargs="+", metavar="ROLE=NAME", help=f"columns of {what} that are not found by their names")
    add("--cell", type=float, metavar="KM", help="width of the cells in which calls are counted")
    add("--areas", metavar="FILE", help="GeoJSON polygons to count calls in, instead of cells")
    add("--area-name", metavar="KEY", help="property of the areas that holds their names")
    add("--reach", type=float, default=50.0, metavar="KM", help="leave out calls over KM from every station (50)")
    add("--time-zone", metavar="ZONE", help="time zone, such as America/Chicago, if times have an offset")
    add("--time-format", metavar="FORMAT", help="'day first', 'month first', or a format such as %%d.%%m.%%Y %%H:%%M")
    add("--hours", metavar="H-H", help="count only calls of these hours, such as 7-19 (until 19:00) or 22-6")
    add("--weekdays", metavar="D-D", help="count only calls of these days, such as Mon-Fri or Sat,Sun")
    add("--drop-repeats", action="store_true", help="count calls with the same time and place only once")
    add("--skip-empty-days", action="store_true", help="treat days without calls as not recorded")
    add("--accept-findings", action="store_true", help="go on although checks of the data find something wrong")
    add = parser.add_argument_group("plan").add_argument
    add("--moves", type=int, metavar="K", help="plan the day, with at most K units moved between two hours")
    _shared.add_fleet_options(parser)


def run(options: Namespace) -> None:
    """Run the command: read, check, calibrate, optimise, plan and write. Errors name the command's options."""
    try:
        _run(options)
    except EmsoptError as error:
        error.args = (_in_options(str(error)), *error.args[1:])
        raise


def _run(options: Namespace) -> None:
    """Run the command; errors may name arguments of functions."""
    from ..calls import aggregate_calls, check_calls
    from ..roads import RoadNetwork

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
    print(f"{calls!r}".strip("<>"))
    print(f"{len(stations)} stations. What looks wrong in the data:\n{_in_options(str(checks))}\n")
    _stop_if_wrong(checks, options)
    calls = calls.without_repeats() if options.drop_repeats else calls
    roads = None if options.roads is None else RoadNetwork.read(options.roads)
    fit = _from_log.calibrated(options, calls, stations, roads)
    calls = calls if fit is None else fit.calls  # those to which a unit was sent
    counting: dict[str, Any] = {
        "areas": options.areas,
        "area_name": options.area_name,
        "reach_km": options.reach,
        "empty_days": "missing" if options.skip_empty_days else "counted",
    }
    demand = aggregate_calls(calls, stations, cell_km=options.cell, **counting)
    make, times = _from_log.city_maker(options, demand, fit, roads)
    city = make(demand, hours=hours, weekdays=weekdays)
    times = {**times, "hours": hours, "weekdays": weekdays}
    today = _from_log.todays_sites(options, city, fit, calls.details)
    units = _from_log.fleet(options, city, today)
    # raises an error before the long search starts
    by_hour = None if options.moves is None else _day.by_hour(make, demand, weekdays)
    check_replaceable(path(options.out, "--out") / "city")

    def write_tables(objective: Objective, found: dict[str, Evaluation], out: Path) -> list[Path]:
        import pandas as pd

        base = found.get("today")
        rows = [scenario(city, name, e, options.metric, options.threshold, base) for name, e in found.items()]
        tables = {"checks": checks.to_frame(), "profile": demand.profile.to_frame()}
        tables |= {} if fit is None else {"calibration": fit.to_frame().rename_axis("quantity").reset_index()}
        if base is not None and (answer := _how_sure(fit, found, objective, options, demand.cell_km, times)):
            best = rows[1]  # after today
            best["gain_low"], best["gain_high"] = -answer.difference.high, -answer.difference.low
            best["probability_better"] = answer.probability_better
            tables["gains_by_atom"] = answer.by_atom
        tables |= {"deployments": _deployment_table(found), "scenarios": pd.DataFrame(rows)}
        if demand.cell_km is not None and options.travel_times is None:
            _finer(
                demand.cell_km,
                calls,
                stations,
                found,
                objective,
                options,
                lambda d: make(d, hours=hours, weekdays=weekdays),
                counting,
            )
        if by_hour is not None:
            counted = {"weekdays": weekdays, "cell_km": demand.cell_km, **counting}
            parts = partial(_day.held_out, calls, stations, counted=counted)
            plan = _day.plan_day(by_hour, parts, objective, found, options)
            tables |= {"plan": plan.to_frame(), "plan_moves": plan.changes()}
        written = [write_file(out / f"{name}.csv", table_text(table)) for name, table in tables.items()]
        return [city.save(out / "city"), *written]

    inputs = [options.calls, options.stations, options.areas, options.travel_times, options.roads]
    _shared.solve(city, units, options, inputs, write_tables, today)


def _in_options(text: str) -> str:
    """Return a message with the command's options in place of Python arguments."""
    text = re.sub(r"\w+\(\),? or (?=[-\w]+)", "", text)  # without_repeats() or --drop-repeats
    text = re.sub(r"[`\w]+(?:=\S+)? \((--[\w-]+)\)", r"\1", text)  # `time_zone` (--time-zone)
    text = re.sub(r"columns=\{(.*?)\}", lambda m: "--columns " + re.sub(r"'(\w+)': (\S+?)(,|$)", r"\1=\2", m[1]), text)
    names = "|".join(OPTIONS)
    text = re.sub(rf"\b({names})=('[^']*')", lambda m: f"{OPTIONS[m[1]]} {m[2]}", text)
    return re.sub(rf"`({names})`", lambda m: f"`{OPTIONS[m[1]]}`", text)


# -- reading ------------------------------------------------------------------------------------------------------


def _read(options: Namespace) -> tuple[CallLog, pd.DataFrame]:
    """Return the log and the stations."""
    from ..calls import read_calls, read_stations
    from ..datasets import practice_calls, san_jose_calls

    if options.practice + options.san_jose + (options.calls is not None) > 1:
        raise InputError("give --practice, --san-jose or files, only one of them.")
    if options.practice:
        print("The practice town: repeated calls and empty days are left out, and other mistakes accepted.")
        vars(options).update(PRACTICE)
        return practice_calls()
    if options.san_jose:
        return san_jose_calls()
    if options.stations is None:
        raise InputError("give a log of calls and a table of stations: emsopt city calls.csv stations.csv")
    columns, station_columns = (_columns(options, name) for name in ("columns", "station_columns"))
    calls = read_calls(options.calls, columns, time_zone=options.time_zone, time_format=options.time_format)
    return calls, read_stations(options.stations, station_columns)


def _columns(options: Namespace, name: str) -> dict[str, str] | None:
    """Return the columns by role that ROLE=NAME options give."""
    pairs = [text.partition("=") for text in getattr(options, name) or ()]
    if not all(role and sign for role, sign, _ in pairs):
        raise InputError(f"`--{name.replace('_', '-')}` must have the form ROLE=NAME, such as time=Alarm.")
    return {role: column for role, _, column in pairs} or None


def _stop_if_wrong(checks: Checks, options: Namespace) -> None:
    """Raise if findings are wrong, unless they are accepted; gaps are, if empty days are skipped."""
    skipped = {"gaps in time"} if options.skip_empty_days else set()
    wrong = [finding.what for finding in checks if finding.level == "wrong" and finding.what not in skipped]
    if wrong and not options.accept_findings:
        raise InputError(
            f"something is wrong in the data: {', '.join(wrong)} (see above). Correct the files, or go on with "
            "--accept-findings."
        )


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


def _how_sure(
    fit: Fit | None,
    found: dict[str, Evaluation],
    objective: Objective,
    options: Namespace,
    cell_km: float | None,
    times: dict[str, Any],
) -> Comparison | None:
    """Compare the best deployment with today's while the log leaves rates and times open; print how sure the gain is.

    None if the deployments are the same, or the log has no times.
    """
    from ..planning import compare

    (_, today), (name, best), *_ = found.items()
    if sorted(today.site_names) == sorted(best.site_names):
        return None
    if fit is None:
        print("How sure this gain is cannot be said, because the times are not calibrated from the log.")
        return None
    answer = compare(
        fit,
        {"today": today.sites, name: best.sites},
        draws=DRAWS,
        rng=0,
        evaluator=best.evaluator,
        capacity=best.capacity,
        metric=objective.metric,
        progress=sys.stderr.isatty(),
        cell_km=cell_km,
        areas=options.areas,
        **times,
    )
    print(f"How sure this gain is: {answer}")
    return answer


def _finer(
    width: float,
    calls: CallLog,
    stations: pd.DataFrame,
    found: dict[str, Evaluation],
    objective: Objective,
    options: Namespace,
    make: Callable[[Demand], City],
    counting: dict[str, Any],
) -> None:
    """Evaluate the deployments with cells half as wide, and print how far the figures depend on the width."""
    from ..calls import aggregate_calls
    from ..evaluators.by_name import evaluate

    name, coarse = next((n, e) for n, e in found.items() if n != "today")
    try:
        city = make(aggregate_calls(calls, stations, cell_km=width / 2, **counting))
    except InputError:  # too many cells, or too narrow ones
        return
    fine = evaluate(city, coarse.sites, coarse.evaluator, **objective.options)
    late = [e.late_fraction(options.threshold) for e in (coarse, fine)]
    print(
        f"\nCells: with {width / 2:g} km instead of {width:g} km, the {name} has a mean response of "
        f"{fine.mean_response:.2f} min instead of {coarse.mean_response:.2f}, and {late[1]:.1%} of responses of "
        f"{options.threshold:g} min or more instead of {late[0]:.1%}."
    )
    if abs(late[1] - late[0]) > 0.005:
        print(f"The late fraction depends on the cells: use --cell {width / 2:g} or less for it.")
