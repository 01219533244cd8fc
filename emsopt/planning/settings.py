"""`Settings` of the workflow from a log to advice, with their defaults, and `OPTIONS` of command and dashboard."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pandas as pd

from ..calls.demand import REACH_KM
from ..calls.log import Source
from ..calls.profile import parse_hours, parse_weekdays
from ..errors import Argument, EmsoptError, InputError, Message, _validate
from ..evaluators.evaluation import LATE_MIN
from ..evaluators.metrics import Metric
from ..roads import RoadNetwork

SPEED_KMH, DETOUR, TURNOUT_MIN = 40.0, 1.3, 1.5  # common values for cities, used where the log has no times


@dataclass(frozen=True)
class Settings:
    """Settings of the analysis of a log. For None, the value in the files is used or, if there is none, a default.

    Attributes
    ----------
    name : str
        Name of the city.
    hours, weekdays : sequence, optional
        Hours of the day (0 to 23) and weekdays that count. Default: all.
    drop_repeats : bool
        Whether calls with the same time and place count once.
    empty_days : {"counted", "missing"}
        Whether days without calls were quiet or not recorded.
    accept_findings : bool
        Whether `advise` goes on if the checks find something wrong.
    others : {"answered", "occupying", "ignored"}
        How to treat rows that may not be calls, because of their kind, or as they are far away and no unit reached
        them: as calls; as work that only keeps units busy until the next call or row of their unit, which lengthens the
        service times of all calls; or not at all.
    dispatch : {"nearest", "first due", "agency"}
        Which station is sent first: the closest one; the one that the log names for calls at a place or, without such
        a column, whose units answered most calls there; or the closest one of the agency that the log names.
    cell_km, areas, area_name, crs, reach_km
        Where calls are counted, as for `aggregate_calls`. By default cells are as narrow as the gain requires.
    homes : mapping of str to str, optional
        Home station of each unit in the log.
    roads : RoadNetwork, optional
        Roads to drive on.
    travel_times : DataFrame, optional
        Travel times (min), one row per station and one column per atom.
    speed_kmh, detour : float
        Driving speed, and road distance over straight-line distance.
    turnout_times, service_times : float, optional
        Minutes until a unit leaves, and that a call keeps it busy; the latter may be "calls" or "stations", the source.
    today : sequence of str or int, optional
        Station of each of today's units.
    units : int, optional
        Fleet size. Default: today's or, if that is unknown, the fewest that reach the recorded mean response.
    colocate : bool
        Whether stations may have several units. They always may if today's do, or if each has one.
    pinned, closed : sequence of str
        Stations that keep a unit, and that get none.
    metric, capacity, evaluator
        As for `Objective`; the metric is "mean_response" or ("late", minutes).
    threshold : float
        Response time (min) from which a call is late, in tables.
    hold_out : int, optional
        Days at the end of the log on which the calibration is tested. Default: a third of a log of 9 days or more.

    Examples
    --------
    >>> import emsopt as eo
    >>> eo.planning.Settings(cell_km=1.0).detour
    1.3
    """

    name: str = "city"
    hours: Sequence[int] | None = None
    weekdays: Sequence[int | str] | None = None
    drop_repeats: bool = False
    empty_days: str = "counted"
    accept_findings: bool = False
    others: str = "answered"
    dispatch: str = "nearest"
    cell_km: float | None = None
    areas: Source | None = None
    area_name: str | None = None
    crs: object = None
    reach_km: float = REACH_KM
    homes: Mapping[str, str] | None = None
    roads: RoadNetwork | None = None
    travel_times: pd.DataFrame | None = None
    speed_kmh: float | None = None
    detour: float = DETOUR
    turnout_times: float | None = None
    service_times: float | str | None = None
    today: Sequence[Any] | None = None
    units: int | None = None
    colocate: bool = False
    pinned: Sequence[Any] = ()
    closed: Sequence[Any] = ()
    metric: Metric = "mean_response"
    threshold: float = LATE_MIN  # the default of the whole package, which `emsopt.evaluators.evaluation` sets
    capacity: str = "loss"
    evaluator: str | None = None
    hold_out: int | None = None


def parse_number(text: str, name: str) -> float:
    """Parse a number that a user wrote, also with a decimal comma; ``name`` is the argument, for messages."""
    try:
        return _validate.finite_number(float(text.replace(",", ".")), name)
    except ValueError as error:
        raise InputError(f"`{name}` must be a number; got {_validate.quote(text)}.") from error


def parse_service_time(text: str, name: str) -> float | str:
    """Parse a service time that a user wrote: minutes, or the source of the minutes, "calls" or "stations"."""
    return text.lower() if text.lower() in ("calls", "stations") else parse_number(text, name)


def parse_columns(parts: Sequence[str], name: str) -> dict[str, str | None]:
    """Parse texts of the form ROLE=NAME to columns by role; ROLE=none leaves a role out."""
    pairs = [part.partition("=") for part in parts]
    if not all(role.strip() and sign and column.strip() for role, sign, column in pairs):
        got = _validate.quote(", ".join(parts))
        raise InputError(f"`{name}` must have the form ROLE=NAME, such as time=Alarm, unit=Rig; got {got}.")
    return {role.strip(): None if column.strip() == "none" else column.strip() for role, _, column in pairs}


def name_station_columns(error: EmsoptError) -> EmsoptError:
    """Return an error about the table of stations with `station_columns` in place of `columns` in its message."""
    parts = (
        Argument("station_columns", p[1]) if isinstance(p, Argument) and p[0] == "columns" else p
        for p in Message.of(error).parts
    )
    error.args = (Message(*parts), *error.args[1:])
    return error


class Option(NamedTuple):
    """An option of the command and of the dashboard's form.

    ``read`` parses what the user wrote. With ``several`` that is a list, in the form separated by commas.
    """

    flag: str
    label: str
    help: str
    read: Callable[[Any, str], Any] = lambda given, _: given
    several: bool = False


OPTIONS = {  # by the name of the setting, or of the argument of `read_calls` and `read_stations`
    "speed_kmh": Option("--speed", "Speed (km/h)", "Driving speed. Default: by the log, else 40 km/h", parse_number),
    "detour": Option("--detour", "Detour", "Road over straight-line distance (1.3), for a speed", parse_number),
    "turnout_times": Option("--turnout", "Turnout (min)", "Minutes until a unit leaves. Default: 1.5", parse_number),
    "service_times": Option("--service", "Service (min)", "Minutes, or calls, or stations", parse_service_time),
    "cell_km": Option("--cell", "Cells (km)", "Width of the cells in which calls are counted", parse_number),
    "reach_km": Option("--reach", "Reach (km)", "Calls further from every station are left out (50)", parse_number),
    "hours": Option("--hours", "Hours", "Count only calls of these hours: 7-19 is until 19:00; 22-6", parse_hours),
    "weekdays": Option("--weekdays", "Weekdays", "Count only calls of these days: Mon-Fri, or Sat,Sun", parse_weekdays),
    "area_name": Option("--area-name", "Name of areas", "Property of the areas that holds their names"),
    "dispatch": Option("--dispatch", "Dispatch", "Sent first: nearest, first due (by the log) or agency (the call's)"),
    "columns": Option("--columns", "Columns of calls", "ROLE=NAME, such as time=Alarm, unit=Rig", parse_columns, True),
    "station_columns": Option("--station-columns", "Columns of stations", "Such as name=House", parse_columns, True),
    "time_format": Option("--time-format", "Form of times", "day first, month first, or such as %d.%m.%Y %H:%M"),
    "time_zone": Option("--time-zone", "Time zone", "Such as America/Chicago, if times have an offset"),
    "crs": Option("--crs", "Coordinates", "Reference system of coordinates that are not degrees, such as EPSG:3857"),
    "where": Option("--where", "Rows that count", "A condition on columns, such as kind == 'medical'"),
    "others": Option("--others", "Other rows", "Rows that may be no calls: answered, occupying (units only), ignored"),
    "today": Option("--today", "Today", "Station of each of today's units. Default: by the log", several=True),
    "name": Option("--name", "Name", "Title of tables and maps"),
}
