"""``emsopt city CALLS STATIONS``: find the best deployment and a daily plan from a log of calls."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from .._files.atomic import write_file
from .._files.formats import table_text
from .._validate import path, whole_number
from ..city.tables import check_replaceable
from ..errors import EmsoptError, InputError
from ..planning.scenarios import scenario
from . import _day, _from_log, _shared, _trust
from ._spelling import in_options

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Iterator
    from pathlib import Path

    import pandas as pd

    from ..calls import CallLog, Checks
    from ..evaluators.evaluation import Evaluation
    from ..evaluators.objective import Objective

DESCRIPTION = (
    "Turn a log of past calls (time, lon, lat and whatever else it has) and a table of stations (name, lon, lat) into "
    "checks of the data, the best deployment and its gain over today's, tables, a map, and a plan for the hours of the "
    "day. What the log does not say is assumed and printed. Start with --templates FOLDER, or try --practice or "
    "--san-jose."
)
PRACTICE = {"drop_repeats": True, "skip_empty_days": True, "accept_findings": True}


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
    add("--homes", metavar="FILE", help="table of the home of each unit in the log, .csv with columns unit, station")
    add(
        "--hold-out",
        type=int,
        metavar="DAYS",
        help="test the calibration on the last DAYS; 0: no test (default: a third of a log of 9 days or more)",
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
        error.args = (in_options(str(error)), *error.args[1:])
        raise


def _run(options: Namespace) -> None:
    """Run the command; errors may name arguments of functions."""
    from ..calls import aggregate_calls, check_calls
    from ..calls.demand import REACH_KM, within_reach
    from ..calls.profile import hours_in, weekdays_in
    from ..roads import RoadNetwork

    if options.templates is not None:
        from ..datasets import write_templates

        for file in write_templates(options.templates):
            print(f"wrote {file}")
        return
    hours = None if options.hours is None else hours_in(options.hours, "--hours")
    weekdays = None if options.weekdays is None else weekdays_in(options.weekdays, "--weekdays")
    if options.moves is not None:
        whole_number(options.moves, "moves", low=0)
        if hours is not None:
            raise InputError("`--moves` plans all hours of the day. Leave out --hours.")
    calls, stations = _read(options)
    checks = check_calls(calls, stations, reach_km=options.reach)
    print(f"{calls!r}".strip("<>"))
    _from_log.print_spare(calls)
    print(f"{len(stations)} stations. What looks wrong in the data:\n{in_options(str(checks))}\n")
    _stop_if_wrong(checks, options)
    _trust.days_held_out(options, calls)  # raises an error before the long search starts
    if options.reach < REACH_KM:  # the calibration would leave out only calls beyond that
        calls = calls.where(within_reach(calls.locations, stations[["lon", "lat"]].to_numpy(float), options.reach))
    log = calls = calls.without_repeats() if options.drop_repeats else calls
    roads = None if options.roads is None else RoadNetwork.read(options.roads)
    homes = None if options.homes is None else _from_log.read_homes(options.homes)
    fit = _from_log.calibrated(options, calls, stations, homes, roads)
    calls = calls if fit is None else fit.calls  # those to which a unit was sent
    counting: dict[str, Any] = {
        "areas": options.areas,
        "area_name": options.area_name,
        "reach_km": options.reach,
        "empty_days": "missing" if options.skip_empty_days else "counted",
    }
    demand = aggregate_calls(calls, stations, cell_km=options.cell, **counting)
    assumed: list[str] = []
    make, times = _from_log.city_maker(options, demand, fit, roads, assumed)
    chosen: dict[str, Any] = {"hours": hours, "weekdays": weekdays}
    city = make(demand, **chosen)
    today = _from_log.todays_sites(options, city, fit, log)
    report = _trust.back_tested(options, log, stations, fit, today, homes, roads)
    units = _from_log.fleet(options, city, today, assumed)
    _from_log.print_assumed(assumed, options, calls)
    # raises an error before the long search starts
    by_hour = None if options.moves is None else _day.by_hour(make, demand, weekdays)
    check_replaceable(path(options.out, "--out") / "city")

    def write_tables(objective: Objective, found: dict[str, Evaluation], out: Path) -> Iterator[Path]:
        import pandas as pd

        def written(**tables: pd.DataFrame) -> list[Path]:
            return [write_file(out / f"{name}.csv", table_text(table)) for name, table in tables.items()]

        yield city.save(out / "city")
        yield from written(checks=checks.to_frame(), profile=demand.profile.to_frame())
        yield from written(deployments=_deployment_table(found))
        if fit is not None:
            yield from written(calibration=fit.to_frame().rename_axis("quantity").reset_index())
        if report is not None:
            yield report.save(out / "back_test.html")
        base = found.get("today")
        rows = [scenario(city, name, e, options.metric, options.threshold, base) for name, e in found.items()]
        if base is not None:
            beside = _trust.recorded_beside(calls, base, options, hours, weekdays)
            if beside is not None:
                yield from written(recorded=beside.rename_axis("measure").reset_index())
            one = _shared.print_gain(objective, found, options.threshold)
            finer_km = None if demand.cell_km is None else demand.cell_km / 2
            open_ = {**times, **chosen, **counting, "cell_km": finer_km}
            if answer := _trust.how_sure(fit, found, one, objective, open_):
                best = rows[1]  # after today
                best["gain_low"], best["gain_high"] = -answer.difference.high, -answer.difference.low
                best["probability_better"] = answer.probability_better
                yield from written(gains_by_atom=answer.by_atom)
        yield from written(scenarios=pd.DataFrame(rows))
        if demand.cell_km is not None and options.travel_times is None:
            remade = partial(make, **chosen)
            _trust.finer(demand.cell_km, calls, stations, found, objective, options.threshold, remade, counting)
        yield from _shared.draw(objective, found, out)
        if by_hour is not None:
            counted = {"weekdays": weekdays, "cell_km": demand.cell_km, **counting}
            parts = partial(_day.held_out, calls, stations, counted=counted)
            plan = _day.plan_day(by_hour, parts, objective, found, options)
            yield from written(plan=plan.to_frame(), plan_moves=plan.changes())

    inputs = [options.calls, options.stations, options.areas, options.travel_times, options.roads, options.homes]
    _shared.solve(city, units, options, inputs, write_tables, today)


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
    read = partial(read_calls, columns=columns, time_zone=options.time_zone, time_format=options.time_format)
    try:
        calls = read(options.calls)
    except InputError as error:
        if "a column 'time'" in str(error) and _is_log(options.stations):
            raise InputError(
                f"{options.calls} has no times of calls, but {options.stations} has. Give the log of calls first, then "
                f"the stations: emsopt city {options.stations} {options.calls}"
            ) from error
        raise
    try:
        stations = read_stations(options.stations, station_columns)
    except InputError as error:
        error.args = (in_options(str(error)).replace("--columns", "--station-columns"),)
        raise
    if len(stations) >= len(calls) and _is_log(options.stations):
        raise InputError(
            f"{options.stations} has {len(stations):,} rows with times, and {options.calls} {len(calls):,} calls. The "
            "second file must be a table of stations: name, lon, lat."
        )
    return calls, stations


def _is_log(file: str) -> bool:
    """Return whether a file can be read as a log of calls."""
    from ..calls import read_calls

    try:
        read_calls(file)
    except EmsoptError:
        return False
    return True


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


# -- tables -------------------------------------------------------------------------------------------------------


def _deployment_table(found: dict[str, Evaluation]) -> pd.DataFrame:
    """Return one row per unit: deployment, site, utilisation, share of calls and mean response."""
    import pandas as pd

    parts = [e.to_frame().drop(columns="site").assign(deployment=name) for name, e in found.items()]
    table = pd.concat(parts).rename(columns={"name": "site"})
    return table[["deployment", "site", "utilization", "share_of_calls", "mean_response_min"]]
