"""``emsopt city CALLS STATIONS``: find the best deployment and a daily plan from a log of calls."""

import re
import time

from .._validate import existing_file, positive_number, whole_number
from ..city.tables import check_replaceable
from ..errors import InputError
from ..planning.scenarios import scenario
from . import _shared

PRACTICE_UNITS, PRACTICE_SPEED_KMH = 5, 40.0  # defaults for the practice town
WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
DESCRIPTION = (
    "From a log of past calls (CSV or GeoJSON: time, lon, lat, service_min) and a table of stations (name, lon, lat, "
    "turnout_min) to checks of the data, the best deployment, tables, a map, and a plan for the hours of the day. "
    "Start with --templates FOLDER, or try --practice."
)


def add_options(parser):
    """Add the options of the command."""
    add = parser.add_argument
    add("calls", nargs="?", metavar="CALLS", help="log of calls, .csv or .geojson")
    add("stations", nargs="?", metavar="STATIONS", help="table of stations, .csv or .geojson")
    add(
        "--practice",
        action="store_true",
        help=f"use the included data of a made-up town, by default with {PRACTICE_UNITS} units at "
        f"{PRACTICE_SPEED_KMH:g} km/h",
    )
    add("--templates", metavar="FOLDER", help="write templates of the input files to this folder, and exit")
    add("--units", type=int, metavar="P", help="fleet size")
    add("--name", default="city", help="title of maps and tables")
    times = parser.add_argument_group("times")
    add = times.add_argument
    add("--speed", type=float, metavar="KMH", help="driving speed for computing travel times")
    add(
        "--detour",
        type=float,
        default=1.3,
        metavar="X",
        help="ratio of road to straight-line distance (1.3)",
    )
    add(
        "--travel-times",
        metavar="FILE",
        help="minutes, one row per station, one column per atom, .csv",
    )
    add(
        "--turnout",
        type=float,
        metavar="MIN",
        help="minutes until a unit leaves, if not in STATIONS",
    )
    add(
        "--service",
        metavar="MIN",
        help="minutes that a call keeps a unit busy, or the file to take service_min from: calls or stations",
    )
    calls = parser.add_argument_group("calls")
    add = calls.add_argument
    add("--cell", type=float, metavar="KM", help="width of the cells that calls are counted in")
    add("--areas", metavar="FILE", help="GeoJSON polygons to count calls in, instead of cells")
    add("--area-name", metavar="KEY", help="property of the areas that holds their names")
    add(
        "--reach",
        type=float,
        default=50.0,
        metavar="KM",
        help="leave out calls further than this from all stations (50)",
    )
    add(
        "--time-zone",
        metavar="ZONE",
        help="time zone of the city, such as America/Chicago, if times have an offset",
    )
    add("--time-format", metavar="FORMAT", help="such as %%d.%%m.%%Y %%H:%%M, if times are not ISO 8601")
    add("--hours", metavar="H-H", help="count only calls of these hours, such as 7-19 (until 19:00) or 22-6")
    add("--weekdays", metavar="D-D", help="count only calls of these days, such as Mon-Fri or Sat,Sun")
    add("--drop-repeats", action="store_true", help="count calls with the same time and place only once")
    add("--skip-empty-days", action="store_true", help="treat days without calls as not recorded")
    plan = parser.add_argument_group("plan")
    plan.add_argument(
        "--moves",
        type=int,
        metavar="K",
        help="plan the day, with at most K units moved between two hours",
    )
    _shared.add_fleet_options(parser)


def run(options):
    """Run the command: read, check, optimise, plan and write."""
    start = time.perf_counter()
    if options.templates is not None:
        _write_templates(options.templates)
        return
    positive_number(options.threshold, "threshold", "min")
    hours, weekdays = _hours(options.hours), _weekdays(options.weekdays)
    if options.moves is not None:
        whole_number(options.moves, "moves", low=0)
        if hours is not None:
            raise InputError("`--moves` plans all hours of the day. Leave out --hours.")
    calls, stations = _read(options)
    checks = _check(calls, stations, options)
    _require_fleet_and_speed(options)
    demand = _count(calls, stations, options)
    times = {"weekdays": weekdays, "name": options.name, **_times(options)}
    city = demand.city(hours=hours, **times)
    by_hour = None if options.moves is None else demand.cities_by_hour(**times)  # raises before the long search
    _shared.describe(city, options.units)
    objective = _shared.searched(city, options.units, options)
    out = _shared.results_folder(options.out, options.calls, options.stations, options.areas, options.travel_times)
    check_replaceable(out / "city")
    found = _shared.find_deployments(objective, options)
    written = [
        _shared.write_table(checks.to_frame(), out / "checks.csv", index=False),
        _shared.write_table(demand.profile.to_frame(), out / "profile.csv", index=False),
        city.save(out / "city"),
        _shared.write_table(_deployment_table(found), out / "deployments.csv", index=False),
        _shared.write_table(_scenario_table(city, found, options), out / "scenarios.csv", index=False),
    ]
    if options.moves is not None:
        written += _plan(by_hour, options, out)
    written += _shared.draw(city, found, out, options)
    _shared.say_written(out, written, time.perf_counter() - start)


# -- reading ------------------------------------------------------------------------------------------------------


def _write_templates(folder):
    from ..datasets import write_templates

    for path in write_templates(folder):
        print(f"wrote {path}")


def _assume_practice(options):
    """Fill in a missing fleet size and speed for the practice town, and print them."""
    assumed = []
    if options.units is None:
        options.units = PRACTICE_UNITS
        assumed.append(f"{PRACTICE_UNITS} units (--units)")
    if options.speed is None and options.travel_times is None:
        options.speed = PRACTICE_SPEED_KMH
        assumed.append(f"a speed of {PRACTICE_SPEED_KMH:g} km/h (--speed)")
    if assumed:
        print(f"Assumed for the practice town: {' and '.join(assumed)}.\n")


def _read(options):
    from ..calls import read_calls, read_stations
    from ..datasets import practice_calls

    if options.practice:
        if options.calls is not None:
            raise InputError("give either --practice or files; both were given.")
        _assume_practice(options)
        return practice_calls()
    if options.stations is None:
        msg = "give a log of calls and a table of stations: emsopt city calls.csv stations.csv (or --practice)."
        raise InputError(msg)
    calls = read_calls(options.calls, time_zone=options.time_zone, time_format=options.time_format)
    return calls, read_stations(options.stations)


def _check(calls, stations, options):
    from ..calls import check_calls

    checks = check_calls(calls, stations, reach_km=options.reach)
    print(f"{len(calls):,} calls, {len(stations)} stations. What looks wrong in them:\n{checks}\n")
    return checks


def _require_fleet_and_speed(options):
    """Raise one error for all missing options."""
    missing = []
    if options.units is None:
        missing.append("--units P (fleet size)")
    if options.speed is None and options.travel_times is None:
        missing.append("--speed KMH (driving speed) or --travel-times FILE")
    if missing:
        raise InputError(f"missing options: {', and '.join(missing)}.")


def _count(calls, stations, options):
    from ..calls import aggregate_calls

    return aggregate_calls(
        calls.without_repeats() if options.drop_repeats else calls,
        stations,
        cell_km=options.cell,
        areas=options.areas,
        area_name=options.area_name,
        reach_km=options.reach,
        empty_days="missing" if options.skip_empty_days else "counted",
    )


def _times(options):
    """Return the options of travel and service as arguments of `Demand.city`."""
    table = None
    if options.travel_times is not None:
        from .._files.plain import read_csv

        table = read_csv(
            existing_file(options.travel_times, "--travel-times", "a table of travel times, .csv"),
            labelled=True,
        )
    if table is not None and options.speed is not None:
        raise InputError("give only one of --speed KMH and --travel-times FILE; both were given.")
    service = options.service
    if service is not None and service not in ("calls", "stations"):
        try:
            service = float(service)
        except ValueError as error:
            raise InputError(f"`--service` must be minutes, 'calls' or 'stations'; got {service!r}.") from error
    return {
        "speed_kmh": options.speed,
        "detour": options.detour,
        "travel_times": table,
        "turnout_times": options.turnout,
        "service_times": service,
    }


def _hours(text):
    """Parse hours such as "7-19", from 7:00 until 19:00; ranges may pass midnight."""
    if text is None:
        return None
    found = re.fullmatch(r"\s*(\d{1,2})\s*-\s*(\d{1,2})\s*", text)
    first, last = (int(part) for part in found.groups()) if found else (99, 99)
    if first > 23 or last > 24 or first == last:
        raise InputError(f"`--hours` must have a form such as 7-19 (until 19:00) or 22-6; got {text!r}.")
    return [(first + k) % 24 for k in range((last - first) % 24 or 24)]


def _weekdays(text):
    """Parse weekdays such as "Mon-Fri" or "Sat,Sun" to numbers, with 0 for Monday."""
    if text is None:
        return None
    days = []
    for part in text.split(","):
        ends = [end.strip().lower()[:3] for end in part.split("-")]
        if len(ends) > 2 or any(end not in WEEKDAYS for end in ends):
            raise InputError(f"`--weekdays` must have a form such as Mon-Fri or Sat,Sun; got {text!r}.")
        first, last = WEEKDAYS.index(ends[0]), WEEKDAYS.index(ends[-1])
        days += [(first + k) % 7 for k in range((last - first) % 7 + 1)]
    return sorted(set(days))


# -- tables -------------------------------------------------------------------------------------------------------


def _deployment_table(found):
    """Return one row per unit: deployment, site, utilisation, share of calls and mean response."""
    import pandas as pd

    parts = [e.to_frame().drop(columns="site").assign(deployment=name) for name, e in found.items()]
    table = pd.concat(parts).rename(columns={"name": "site"})
    return table[["deployment", "site", "utilization", "share_of_calls", "mean_response_min"]]


def _scenario_table(city, found, options):
    """Return one row per deployment: the objective and the results."""
    import pandas as pd

    rows = [scenario(city, name, e, options.metric, options.threshold) for name, e in found.items()]
    return pd.DataFrame(rows)


def _plan(cities, options, out):
    """Plan the day, print what changes, and return the files written."""
    from ..planning.hourly import hourly_plan

    with _shared.Bar("hours") as progress:
        plan = hourly_plan(
            cities,
            _shared.allowed(next(iter(cities.values())), options.units, options),
            options.moves,
            options.evaluator,
            progress=progress,
            **_shared.rules(options),
        )
    label = plan.objectives[0].label
    print(
        f"\nPlan of the day, at most {options.moves} unit(s) moved between hours ({plan.objectives[0].evaluator} "
        f"hypercube): {plan.message}.\n  {label}, mean over all calls: {plan.value:.4g}; without moves "
        f"{_against(plan.fixed_value, plan)}; with unlimited moves {_against(plan.free_value, plan)}."
    )
    changes = plan.changes()
    if changes.empty:
        print("  No unit moves all day.")
    for row in changes.itertuples(index=False):
        print(f"  {row[0]:02d}:00  {row[1]} -> {row[2]}")
    return [
        _shared.write_table(plan.to_frame(), out / "plan.csv", index=False),
        _shared.write_table(changes, out / "plan_moves.csv", index=False),
    ]


def _against(value, plan):
    """Return a value as text, with its relative difference from the value of the plan."""
    if not plan.value:
        return f"{value:.4g}"
    percent = round(100 * (value / plan.value - 1), 1) + 0.0  # not -0.0
    return f"{value:.4g} ({percent:+.1f} %)"
