"""``emsopt city CALLS STATIONS``: find the best deployment and a plan of the day from a log of calls."""

from __future__ import annotations

import os
import re
import shlex
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any, cast

import pandas as pd

from .._files.atomic import check_replaceable, write_file
from .._files.formats import read_csv, table_text
from ..calls import CallLog, read_calls, read_stations
from ..calls.profile import hours_a_year
from ..city import tables
from ..datasets import practice_calls, san_jose_calls, write_templates
from ..errors import Argument, EmsoptError, InputError, Message
from ..errors._validate import existing_file, path, positive_number, whole_number
from ..maps import live_sheet
from ..planning import Advice, advise
from ..planning.comparison import Interval
from ..planning.settings import OPTIONS, Settings, name_station_columns, parse_columns
from ..planning.sweeps import scenario_row
from ..roads import RoadNetwork
from . import _output

DESCRIPTION = (
    "Turn a log of past calls (time, lon, lat and whatever else it has) and a table of stations (name, lon, lat) into "
    "checks of the data, the best deployment and its gain over today's, tables, a map, and a plan for the hours of the "
    "day. What the log does not say is assumed and printed. Start with --templates FOLDER, or try --practice or "
    "--san-jose."
)


def add_options(parser: ArgumentParser) -> None:
    """Add the options of the command. Those of `emsopt.planning.Settings` have its names."""
    add = parser.add_argument
    files = "log of calls, or several of one service, and last the table of stations: .csv, .geojson and others"
    add("files", nargs="*", metavar="FILE", help=files)
    add("--practice", action="store_true", help="use a made-up town, with mistakes in its data")
    add("--san-jose", action="store_true", help="use two weeks of San José's fire department")
    add("--templates", metavar="FOLDER", help="write templates of the input files to this folder, and exit")
    add("--details", action="store_true", help="print all that report.html has")
    add("--units", type=int, metavar="P", help="fleet size (default: as many as today, or as recorded times need)")
    add("--homes", metavar="FILE", help="table of the home of each unit in the log, .csv with columns unit, station")
    held = "test the calibration on the last DAYS; 0: no test (default: a third of a log of 9 days or more)"
    add("--hold-out", type=int, metavar="DAYS", help=held)
    roads = "roads to drive on, .osm.pbf, .net.xml, .zip, ...; at speed limits if not calibrated"
    add("--roads", metavar="FILE", help=roads)
    add("--travel-times", metavar="FILE", help="table of minutes: one row per station, one column per atom, .csv")
    add("--areas", metavar="FILE", help="GeoJSON polygons to count calls in, instead of cells")
    bad = "rows that cannot be read: leave out up to 2 %% of the rows, or five, and say so (default), or raise an error"
    add("--on-bad", choices=["leave out", "raise"], default="leave out", help=bad)
    add("--drop-repeats", action="store_true", help="count calls with the same time and place only once")
    missing: dict[str, Any] = {"action": "store_const", "const": "missing", "default": "counted"}
    add("--skip-empty-days", dest="empty_days", help="treat days without calls as not recorded", **missing)
    add("--accept-findings", action="store_true", help="go on although checks of the data find something wrong")
    add("--moves", type=int, metavar="K", help="plan the day, with at most K units moved between two hours")
    _output.add_fleet_options(parser)
    add = parser.add_argument_group("the log and times, as in the form of the dashboard").add_argument
    for name, option in OPTIONS.items():
        text = option.help.replace("%", "%%") + "; or a .csv file with a column 'station'" * (name == "today")
        add(option.flag, dest=name, nargs="+" if option.several else None, help=text)


@cache
def _option_flags() -> dict[str, str]:
    """Return the command-line option for each Python argument that a message may name."""
    parser = ArgumentParser()
    add_options(parser)
    options = {action.dest: action.option_strings[0] for action in parser._actions if action.option_strings}
    return options | {"key": "--area-name", "without_repeats()": "--drop-repeats", "between()": "a shorter log"}


def _quote_value(value: object) -> str:
    """Return a value quoted for a shell, in double quotes if it contains single quotes and nothing special."""
    text = str(value)
    return f'"{text}"' if "'" in text and not re.search(r'["$`\\]', text) else shlex.quote(text)


def with_option_names(text: object) -> str:
    """Return a message, or that of an error, with command-line options in place of Python arguments."""

    def spell(argument: Argument) -> str:
        name, value = argument
        option = _option_flags().get(name, f"`{name}`")
        if isinstance(value, dict):
            words = (f"{role}={'...' if column is ... else _quote_value(column)}" for role, column in value.items())
            return f"{option} {' '.join(words)}"
        if not option.startswith("--") or name in ("empty_days", "capacity"):
            return option
        return f"`{option}`" if value is None else f"{option} {_quote_value(value)}"

    return Message.of(text).write_arguments(spell, _option_flags())


def run(options: Namespace) -> None:
    """Run the command; name its options, not Python arguments, in the messages of errors."""
    try:
        _run_analysis(options)
    except EmsoptError as error:
        error.args = (with_option_names(error), *error.args[1:])
        raise


def _run_analysis(options: Namespace) -> None:
    """Read the files, print advice and write results; messages of errors name Python arguments."""
    if options.templates is not None:
        for file in write_templates(options.templates):
            print(f"wrote {file}")
        return
    start = time.perf_counter()
    if options.practice:
        vars(options).update(drop_repeats=True, empty_days="missing", accept_findings=True)
    if options.moves is not None:
        whole_number(options.moves, "moves", low=0)
        if options.hours is not None:
            raise InputError("`moves` plans all hours of the day. Leave out `hours`.")
    inputs = [*options.files, *(getattr(options, name) for name in ("areas", "travel_times", "roads", "homes"))]
    settings = _make_settings(options)
    calls, stations = _read_log(options)
    progress = _output.progress_option("starts of the search, then cities drawn")
    advice = advise(calls, stations, settings, progress=progress)
    out = _output.results_folder(options.out, inputs)
    lines = [_output.wrap_text(with_option_names(line)) for line in advice.sentences]
    last = ["Assumed:", *(f"  {said}" for said in advice.model.assumed), "All else: --details, and report.html."]
    lines += map(with_option_names, ("", *(advice.details if options.details else last)))
    print("\n".join(lines), flush=True)
    _output.write_results(out, _write_results(advice, out, options.moves), start)


def _write_results(advice: Advice, out: Path, moves: int | None) -> Iterator[Path]:
    """Write the results and yield the path of each file, the slow plan of the day last."""
    model, s, found = advice.model, advice.model.settings, dict(advice.found)
    yield advice.save(out / "report.html")
    yield model.city.save(out / "city")
    for name, frame in _result_tables(advice):
        yield write_file(out / f"{name}.csv", table_text(frame))
    if not found:
        return
    yield from _output.draw_deployments(model.city, s.metric, found, out, hours_a_year(s.hours, s.weekdays))
    shown = {name: e.sites for name, e in found.items() if name != "p-median"}
    yield live_sheet(model.city, shown, threshold=s.threshold, capacity=s.capacity).save(out / "sheet.html")
    if moves is not None and advice.best is not None:
        advice = advice.with_day_plan(moves, progress=_output.progress_option("plan of the day"))
        assert advice.plan is not None
        print("\n".join(("", *advice.plan_lines)))
        advice.save(out / "report.html")
        for name, frame in (("plan", advice.plan.to_frame()), ("plan_moves", advice.plan.changes())):
            yield write_file(out / f"{name}.csv", table_text(frame))


def _result_tables(advice: Advice) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield the name and content of each table of results, except those of the plan of the day."""
    model, s, found = advice.model, advice.model.settings, dict(advice.found)
    yield "checks", model.checks.to_frame()
    yield "profile", model.demand.profile.to_frame()
    yield "recorded", advice.recorded_measures.rename_axis("measure").reset_index()
    if model.fit is not None:
        yield "calibration", model.fit.to_frame().rename_axis("quantity").reset_index()
    if not found:
        return
    metric = "response" if s.metric == "mean_response" else "late"
    rows = {name: scenario_row(model.city, name, e, metric, s.threshold, advice.today) for name, e in found.items()}
    if advice.comparison is not None:
        _, low, high = cast("Interval", advice.gain)
        best = next(row for name, row in rows.items() if name not in ("today", "p-median"))
        best |= {"gain_low": low, "gain_high": high, "probability_better": advice.comparison.probability_better}
        yield "gains_by_atom", advice.comparison.by_atom
    units = [e.to_frame().drop(columns="site").assign(deployment=name) for name, e in found.items()]
    columns = ["deployment", "site", "utilization", "share_of_calls", "mean_response_min"]
    yield "deployments", pd.concat(units).rename(columns={"name": "site"})[columns]
    yield "scenarios", pd.DataFrame([*rows.values()])
    if len(advice.worse_zones) and advice.is_worthwhile:
        yield "worse", advice.worse_zones.reset_index()


def _make_settings(options: Namespace) -> Settings:
    """Return the settings of the analysis that the options of the command specify."""
    minutes, where = options.travel_times, options.roads
    if minutes is not None and options.speed_kmh is None and where is None:
        minutes = read_csv(existing_file(minutes, "travel_times", "a table of travel times, .csv"), labelled=True)
    positive_number(options.threshold, "threshold", "min")
    check_replaceable(path(options.out, "--out") / "city", tables.CITY_FILE, tables.FILES)
    given = {name: option.read(vars(options)[name], name) for name, option in OPTIONS.items() if vars(options)[name]}
    given["today"] = _read_todays_stations(options.today)
    given["metric"] = ("late", options.threshold) if options.metric == "late" else "mean_response"
    given["travel_times"] = minutes
    given["homes"] = _read_homes(options.homes)
    given["roads"] = None if where is None else RoadNetwork.read(where)
    known = {field.name for field in fields(Settings)}
    given = {name: value for name, value in (vars(options) | given).items() if name in known and value is not None}
    return Settings(**given)


def _read_log(options: Namespace) -> tuple[CallLog, pd.DataFrame]:
    """Return the log and the stations of the files or of the example that the options name."""
    if options.practice + options.san_jose + bool(options.files) > 1:
        raise InputError("give --practice, --san-jose or files, only one of them.")
    if options.practice:
        print("The practice town: repeated calls and empty days are left out, and other mistakes accepted.")
        return practice_calls()
    if options.san_jose:
        return san_jose_calls()
    if len(options.files) < 2:
        raise InputError("give a log of calls and a table of stations: emsopt city calls.csv stations.csv")
    return _read_files(options)


def _read_files(options: Namespace) -> tuple[CallLog, pd.DataFrame]:
    """Return the log and the stations in the files; the message of an error says if their order is wrong."""
    *logs, table = options.files
    given = options.columns, options.station_columns
    columns, of_table = (value and parse_columns(value, "columns") for value in given)
    how = {name: getattr(options, name) for name in ("time_zone", "time_format", "crs", "where", "on_bad")}
    try:
        calls = read_calls(logs if logs[1:] else logs[0], columns, **how)
    except InputError as error:
        if "time" in (Message.of(error).values.get("columns") or ()) and _is_log(table):
            raise InputError(
                f"{logs[0]} has no times of calls, but {table} has. Give the log of calls first, then the stations: "
                f"emsopt city {table} {logs[0]}"
            ) from error
        raise
    try:
        stations = read_stations(table, of_table, crs=options.crs)
    except InputError as error:
        raise name_station_columns(error) from None
    if len(stations) >= len(calls) and _is_log(table):
        raise InputError(
            f"{table} has {len(stations):,} rows with times, and {', '.join(logs)} {len(calls):,} calls. The last file "
            "must be a table of stations: name, lon, lat."
        )
    return calls, stations


def _is_log(file: str) -> bool:
    """Return whether a file can be read as a log of calls."""
    with suppress(EmsoptError):
        return bool(read_calls(file))
    return False


def _read_homes(name: str | None) -> dict[str, str] | None:
    """Return the station of each unit in a file with columns ``unit`` and ``station``, or None if none is given."""
    if name is None:
        return None
    table, columns = _read_table(name, "--homes", "a table of units and their stations, .csv")
    if not {"unit", "station"} <= columns.keys():
        raise InputError(f"{name} must have columns 'unit' and 'station'; got {list(columns)}.")
    pairs = zip(table[columns["unit"]], table[columns["station"]], strict=True)
    return {str(unit).strip(): str(station).strip() for unit, station in pairs}


def _read_todays_stations(names: list[str] | None) -> list[str] | None:
    """Return the station of each of today's units: as given, or from a file with a column ``station``."""
    if not names or len(names) > 1 or not (names[0].lower().endswith(".csv") or os.path.isfile(names[0])):
        return names
    file = names[0]
    table, columns = _read_table(file, "--today", "a table of today's units, .csv")
    column = next((columns[key] for key in ("station", "site", "name") if key in columns), None)
    if column is None:
        raise InputError(f"{file} must have a column 'station' with the station of each unit; got {list(columns)}.")
    units = [str(cell).strip() for cell in table[columns["units"]]] if "units" in columns else ["1"] * len(table)
    counts = [whole_number(int(n) if n.isdigit() else n, f"{file}: units", low=0) for n in units]
    return [str(station) for station, n in zip(table[column], counts, strict=True) for _ in range(n)]


def _read_table(name: str, option: str, noun: str) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Read the table that an option names; return it, and its columns by their names in lower case."""
    table = read_csv(existing_file(name, option, noun))
    return table, {str(column).strip().lower(): column for column in table.columns}
