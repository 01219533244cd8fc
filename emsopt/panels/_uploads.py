"""Make a city from uploaded files, after checking size and content. Their names are never used as paths."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from .. import _validate
from .._files import formats
from .._files.atomic import errors_explained
from .._files.inflate import Upload
from ..calls import CallLog, Fit, aggregate_calls, calibrate, check_calls, read_calls, read_stations
from ..calls.calibration import without_unit
from ..calls.demand import REACH_KM, Demand, within_reach
from ..calls.log import FILES as ENDINGS
from ..city import tables
from ..city.city import City
from ..city.travel import PLAUSIBLE_KMH
from ..errors import EmsoptError, InputError
from ..planning import units_needed
from ..planning.project import Result
from ..roads import RoadNetwork
from ._opened import Log, Opened

NAME = "Your city"  # if the files do not name the city
MOST_MB = 8  # all files together, unless the environment says more; servers accept messages of up to 10 MB
LIMIT = "EMSOPT_UPLOAD_MB"  # set by `emsopt dashboard`, whose server accepts more
WAY_OUT = "compress the log (.csv.gz), shorten it, or use the command emsopt city, which reads files of any size"
MOST_ROWS = {tables.SITES: 200, tables.ATOMS: 2000}
ROADS = (".osm.pbf", ".osm", ".net.xml", ".net.xml.gz")
WANTED = (
    f"Choose either {tables.CITY}, {tables.ATOMS} and {tables.SITES}, as City.save writes them, or a log of calls and "
    "a table of stations."
)
SPEED_KMH, DETOUR, TURNOUT_MIN = 40.0, 1.3, 1.5  # assumed
DEFAULTS: dict[str, Any] = {  # options, as the fields of the page give them
    "speed_kmh": None,
    "detour": DETOUR,
    "turnout_min": None,
    "service": None,
    "columns": None,
    "station_columns": None,
    "today": None,
    "cell_km": None,
    "area_name": None,
    "reach_km": REACH_KM,
    "time_zone": None,
    "time_format": None,
    "hours": None,
    "weekdays": None,
    "drop_repeats": False,
    "skip_empty_days": False,
    "name": NAME,
}
Uploads = Sequence[Mapping[str, Any]]


class File(NamedTuple):
    """An uploaded file, which can be read more than once."""

    name: str
    content: bytes

    def read(self, _: int = -1) -> bytes:
        """Return the whole content."""
        return self.content


class Sorted(NamedTuple):
    """Files by what they hold."""

    calls: CallLog
    stations: pd.DataFrame
    areas: Any
    roads: RoadNetwork | None
    travel_times: pd.DataFrame | None
    taken: dict[str, str]  # names of files by what they were taken for


def city_from_uploads(uploads: Uploads, **options: Any) -> Opened:
    """Return the city that uploaded files describe, and what is known of it.

    Parameters
    ----------
    uploads : sequence of mapping
        Each with ``name`` and ``content`` (bytes), as `ipywidgets.FileUpload` has them: the files of a city; or a log
        of calls and a table of stations and, optionally, areas, roads and travel times. Their content tells which
        is which.
    **options
        As in `DEFAULTS`; None stands for what the files say or, if they do not, for an assumption, which is reported.

    Returns
    -------
    Opened

    Raises
    ------
    InputError
        If the files are neither those of a city nor a log of calls with a table of stations, too many, too large or
        invalid (the message names file and row), or an option is out of range.
    """
    files = _named(uploads)
    if {tables.CITY, tables.ATOMS, tables.SITES} & set(map(str.lower, files)):
        city = _from_folder(files)
        return Opened(city, min(units_needed(city), city.n_sites), about={"files": ", ".join(files)})
    chosen = DEFAULTS | options
    if chosen["speed_kmh"] is not None:
        low, high = PLAUSIBLE_KMH
        if not low <= chosen["speed_kmh"] <= high:
            raise InputError(f"the speed must be from {low} to {high} km/h; got {chosen['speed_kmh']:g}.")
    return _from_calls(_sorted(files, chosen), chosen)


def most_mb() -> float:
    """Return how many MB all files together may have."""
    try:
        return max(float(os.environ.get(LIMIT, MOST_MB)), 0.0)
    except ValueError:
        return MOST_MB


def summary(uploads: Uploads) -> str:
    """Return the names and sizes of uploaded files in one line."""
    return ", ".join(f"{bare_name(upload)} ({len(upload['content']) / 2**10:,.1f} KB)" for upload in uploads)


def bare_name(upload: Mapping[str, Any]) -> str:
    """Return the name of an uploaded file, without folders."""
    return Path(str(upload["name"]).replace("\\", "/")).name[:100]


def _named(uploads: Uploads) -> dict[str, bytes]:
    """Return the content of every file by its bare name."""
    size = sum(len(upload["content"]) for upload in uploads) / 2**20
    if not uploads:
        raise InputError(f"no files have arrived, or they are larger than {most_mb():g} MB together. {WANTED}")
    if size > most_mb():
        raise InputError(f"the files must have at most {most_mb():g} MB together; got {size:.1f} MB: {WAY_OUT}.")
    names = [bare_name(upload) for upload in uploads]
    if twice := _validate.first_repeated(map(str.lower, names)):
        raise InputError(
            f"{twice} is chosen twice (upper and lower case are not distinguished). Choose each file once."
        )
    return {name: bytes(upload["content"]) for name, upload in zip(names, uploads, strict=True)}


def _from_folder(files: dict[str, bytes]) -> City:
    """Return the city that `City.load` reads from a folder of these files."""
    for file, content in files.items():
        if file.lower() not in tables.FILES:
            raise InputError(f"{file!r} is not a file of a city. Choose only {', '.join(tables.FILES)}.")
        _check_rows(len(content.splitlines()) - 1, file, MOST_ROWS.get(file.lower()))
    return tables.from_files(City, files, NAME)


def _check_rows(rows: int, file: str, most: int | None) -> None:
    """Raise if a table has more than ``most`` rows, because the city would need too much memory."""
    if most is not None and rows > most:
        raise InputError(f"{file} has {rows:,} rows; the dashboard takes at most {most:,}. Remove some rows.")


# -- which file is which ------------------------------------------------------------------------------------------


def _sorted(files: dict[str, bytes], options: Mapping[str, Any]) -> Sorted:
    """Find out by their content which file is the log, which has the stations, and what the others are."""
    if len(files) < 2:
        raise InputError(
            f"one file of calls and one of stations ({', '.join(ENDINGS)}) are needed; got {', '.join(files)[:200]}. "
            f"{WANTED}"
        )
    roads = [name for name in files if name.lower().endswith(ROADS)]
    areas = [name for name in files if name.lower().endswith((".json", ".geojson")) and _has_polygons(name, files)]
    rest: list[Any] = [File(name, content) for name, content in files.items() if name not in (*roads, *areas)]
    columns, clock = options["columns"], {name: options[name] for name in ("time_zone", "time_format")}
    logs: dict[str, CallLog] = {}
    stations: dict[str, pd.DataFrame] = {}
    errors: dict[str, dict[str, EmsoptError]] = {"calls": {}, "stations": {}}
    for file in rest:
        try:
            logs[file.name] = read_calls(file, columns, **clock)
        except EmsoptError as error:
            errors["calls"][file.name] = error
        try:
            stations[file.name] = read_stations(file, options["station_columns"])
        except EmsoptError as error:
            error.args = (re.sub(r"\bcolumns(?=`|=\{)", "station_columns", str(error)), *error.args[1:])
            errors["stations"][file.name] = error
    log = _the_log(logs, stations, rest, errors["calls"])
    stations.pop(log, None)
    places = [name for name in stations if name not in logs] or list(stations)
    others = [file.name for file in rest if file.name not in (log, *places)]
    if not places:
        raise next((errors["stations"][name] for name in errors["stations"] if name != log), _unclear(files))
    minutes = [name for name in others if _is_matrix(name, files)]
    if len(places) > 1 or len(roads) > 1 or len(areas) > 1 or len(minutes) > 1 or set(others) - set(minutes):
        raise _unclear(files)
    _check_rows(len(stations[places[0]]), places[0], MOST_ROWS[tables.SITES])
    found = {"calls": [log], "stations": places, "areas": areas, "roads": roads, "travel times": minutes}
    return Sorted(
        logs[log],
        stations[places[0]],
        File(areas[0], files[areas[0]]) if areas else None,
        _read_roads(roads[0], files[roads[0]]) if roads else None,
        formats.read_csv(Upload(minutes[0], files[minutes[0]]), labelled=True) if minutes else None,
        {what: names[0] for what, names in found.items() if names},
    )


def _the_log(
    logs: Mapping[str, CallLog],
    stations: Mapping[str, object],
    rest: Sequence[Any],
    errors: Mapping[str, EmsoptError],
) -> str:
    """Return the name of the file that is the log; raise the error of the likeliest if none can be read as one."""
    if not logs:
        if not rest:
            raise InputError(WANTED)
        likely = max(rest, key=lambda f: ("call" in f.name.lower(), f.name not in stations, len(f.content)))
        raise errors[likely.name]
    if len(logs) > 1 and len(logs) == len(rest) and len(rest) > 2:
        raise InputError(f"{' and '.join(list(logs)[:2])} both read as logs of calls. Choose one log.")
    if len(logs) > 1 and len(logs) < len(rest):
        raise InputError(f"{' and '.join(list(logs)[:2])} both read as logs of calls. Choose one log.")
    return max(logs, key=lambda name: ("station" not in name.lower(), "call" in name.lower(), len(logs[name])))


def _unclear(files: Mapping[str, object]) -> InputError:
    got = ", ".join(sorted(files))[:200]
    return InputError(f"it is not clear what each file holds; got {got}. {WANTED}")


def _has_polygons(name: str, files: Mapping[str, bytes]) -> bool:
    try:
        features = formats.read_features(Upload(name, files[name]))
    except InputError:
        return False
    return any("Polygon" in str((shape or {}).get("type")) for _, shape in features if isinstance(shape, dict))


def _is_matrix(name: str, files: Mapping[str, bytes]) -> bool:
    """Return whether a file is a table of numbers with names of rows and columns."""
    try:
        table = formats.read_csv(Upload(name, files[name]), labelled=True)
        table.astype(float)
    except (InputError, ValueError):
        return False
    return table.shape[1] > 1


def _read_roads(name: str, content: bytes) -> RoadNetwork:
    with errors_explained("the folder for temporary files"), TemporaryDirectory() as scratch:
        ending = max((end for end in ROADS if name.lower().endswith(end)), key=len)
        path = Path(scratch) / f"roads{ending}"
        path.write_bytes(content)
        try:
            return RoadNetwork.read(path)
        except InputError as error:
            raise InputError(str(error).replace(str(path), name).replace(path.name, name)) from error


# -- from files to a city -----------------------------------------------------------------------------------------


def _from_calls(given: Sorted, options: Mapping[str, Any]) -> Opened:
    """Return the city of a log: its times are given, calibrated, or assumed, and what was assumed is said."""
    if options["turnout_min"] is not None:  # in place of what the file says
        given = given._replace(stations=given.stations.drop(columns="turnout_min", errors="ignore"))
    calls, stations, said = given.calls, given.stations, list[str]()
    checks = check_calls(calls, stations, reach_km=options["reach_km"])
    if options["reach_km"] < REACH_KM:
        places = stations[["lon", "lat"]].to_numpy(float)
        calls = calls.where(within_reach(calls.locations, places, options["reach_km"]))
    calls = calls.without_repeats() if options["drop_repeats"] else calls
    fit = None if options["speed_kmh"] is not None or given.travel_times is not None else _fit(calls, given, said)
    calls = calls if fit is None else fit.calls
    counting = {"areas": given.areas, "area_name": options["area_name"], "cell_km": options["cell_km"],
                "reach_km": options["reach_km"], "empty_days": _empty_days(options)}  # fmt: skip
    demand = aggregate_calls(calls, stations, **counting)
    _check_rows(len(demand.atom_names), "the grid of cells", MOST_ROWS[tables.ATOMS])
    chosen = {name: options[name] for name in ("hours", "weekdays")}
    making: dict[str, Any] = {"name": options["name"], **chosen, **_service(options, demand, fit, said)}
    if options["turnout_min"] is not None:
        making["turnout_times"] = options["turnout_min"]
    elif fit is None and "turnout_min" not in demand.stations:
        making["turnout_times"] = TURNOUT_MIN
        said.append(f"Turnout is assumed to take {TURNOUT_MIN:g} min.")
    if fit is None:
        making |= _travel(given, options, said)
    city = demand.city(**making) if fit is None else fit.city(demand=demand, **making)
    today = _today(options, city, fit)
    units = _units(city, today)
    about = {"files": "; ".join(f"{what}: {name}" for what, name in given.taken.items()), "cell_km": demand.cell_km}
    about |= {key: making[key] for key in ("speed_kmh", "detour", "turnout_times", "service_times") if key in making}
    about |= {key: _text(options[key]) for key in ("hours", "weekdays", "time_zone", "time_format") if options[key]}
    about |= {"drop_repeats": options["drop_repeats"], "empty_days": counting["empty_days"]}
    about |= {"reach_km": options["reach_km"], "calibrated": fit is not None}
    return Opened(
        city,
        units,
        today,
        {key: value for key, value in about.items() if value is not None},
        _results(checks, fit, calls),
        _by_hour(demand, options),
        Log(calls, demand.stations, fit, counting | {"cell_km": demand.cell_km}, making, checks, given.roads),
        said=" ".join(said),
    )


def _empty_days(options: Mapping[str, Any]) -> str:
    return "missing" if options["skip_empty_days"] else "counted"


def _text(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)


def _fit(calls: CallLog, given: Sorted, said: list[str]) -> Fit | None:
    """Return the calibration, or None if the log does not have the stamps; say which."""
    if not {"dispatched", "on_scene"} <= set(calls.details.columns):
        return None
    try:
        fit = calibrate(calls, given.stations, roads=given.roads)
    except InputError as error:
        said.append(f"Not calibrated: {error}")
        return None
    said += [
        f"Travel times are calibrated from {fit.answer_law.drives:,} drives in the log.",
        *without_unit(calls, fit),
    ]
    return fit


def _service(options: Mapping[str, Any], demand: Demand, fit: Fit | None, said: list[str]) -> dict[str, Any]:
    """Return the option ``service_times`` of `Demand.city`; empty for its default."""
    service = options["service"]
    known = {"calls": demand.service_min is not None, "stations": "service_min" in demand.stations}
    if service is None:
        if fit is not None and fit.service is not None:
            return {}
        if not any(known.values()):
            raise InputError(
                "neither calls nor stations say how long a call keeps a unit busy. Give minutes in the field Service."
            )
        if all(known.values()):
            said.append("Service times are those of the calls, not of the stations.")
        return {"service_times": "calls"} if all(known.values()) else {}
    if isinstance(service, str) and not known[service]:
        raise InputError(f"the {service} have no times of service. Give minutes in the field Service.")
    return {"service_times": service}


def _travel(given: Sorted, options: Mapping[str, Any], said: list[str]) -> dict[str, Any]:
    if given.travel_times is not None:
        return {"travel_times": given.travel_times}
    if given.roads is not None and options["speed_kmh"] is None:
        said.append("Travel times are at the speed limits of the roads.")
        return {"roads": given.roads}
    if options["speed_kmh"] is None:
        said.append(f"Units are assumed to drive {SPEED_KMH:g} km/h.")
    return {"speed_kmh": options["speed_kmh"] or SPEED_KMH, "detour": options["detour"]}


def _today(options: Mapping[str, Any], city: City, fit: Fit | None) -> tuple[int, ...] | None:
    if options["today"]:
        return tuple(city.sites_named(options["today"]).tolist())
    return None if fit is None or fit.homes_from == "unknown" else tuple(fit.deployment.tolist())


def _units(city: City, today: tuple[int, ...] | None) -> int:
    """Return as many units as today, or as the load needs and the sites hold."""
    return min(units_needed(city), city.n_sites) if today is None else len(today)


def _by_hour(demand: Demand, options: Mapping[str, Any]) -> np.ndarray[Any, Any] | None:
    """Return the rates of each hour of the day, if the city has all hours and the log covers them."""
    if options["hours"] is not None:
        return None
    try:
        return demand.rates_by_hour(weekdays=options["weekdays"])
    except InputError:
        return None


def _results(checks: Any, fit: Fit | None, calls: CallLog) -> list[Result]:
    """Return what was checked, taken for which role, and calibrated."""
    taken = "; ".join(f"{role} from {name!r}" for role, name in calls.taken.items())
    period = f"{str(calls.times[0])[:10]} to {str(calls.times[-1])[:10]} ({calls.clock} time)"
    said = [f"{len(calls):,} calls, {period}.", f"Columns: {taken}."]
    # Rows of the file are single calls, and this is saved in projects.
    said += [f"{'Wrong' if found.level == 'wrong' else 'Look at'} {found.what}: {found.text}" for found in checks]
    said += [] if len(checks) else ["Nothing looks wrong."]
    results = [Result("checks", "What looks wrong in the data", tuple(said))]
    if fit is not None:
        left_out = ", ".join(f"{n:,} {reason}" for reason, n in fit.left_out.items())
        told = (f"Homes of units: {fit.homes_from}. Left out: {left_out or 'nothing'}. Intervals of 90 %.",)
        results.append(Result("calibration", "Calibrated from the log", told, fit.to_frame()))
    return results
