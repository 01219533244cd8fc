"""Find which column of a table holds what, by its name and its first values.

Names are compared in lower case without spaces and signs: ``Date_Time_Of_Event`` as "datetimeofevent". A name that fits is
not enough for a column of times: its values must be times, too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

import pandas as pd

from .._files.columns import Table, blank, texts
from .._validate import shown
from ..errors import InputError
from . import _times

if TYPE_CHECKING:
    from .._types import FloatArray

    Choose: TypeAlias = Callable[[Sequence[str], Mapping[str, Sequence[object]]], dict[str, str]]

_BEFORE = "(?:date|time|dt|tm|stamp|and|of|the|first|1st|initial|unit|pump|crew|vehicle|call|incident|event|alarm|cad|is|was)*"
_AFTER = "(?:date|time|dt|tm|ts|stamp|and|at|on|utc|local|actual|scene|unit|first)*"
_GEO = "(?:geo|gps|wgs|84|incident|call|event|scene|address|location|site|map|start|centroid|intpt|point|epsg4326|4326|my|dec|decimal)*"
_DEGREES = "(?:wgs84|dd|deg|degrees|decimal|coord|coordinate|public)*"


def _stamp(words: str) -> tuple[str, ...]:
    return (rf"{_BEFORE}(?:{words}){_AFTER}",)


# What a column may hold, and patterns for its name; an earlier pattern is preferred.
STAMPS = {
    "dispatched": _stamp("dispatch(?:ed)?|assign(?:ed|ment)?|alert(?:ed)?|mobili[sz](?:ed|ation)?|toned|paged|notified|sent"),
    "en_route": _stamp(
        "enroute|ontheway|respond(?:ed|ing)?|response|mobile|roll(?:ed|ing)?|wheelsrolling|depart(?:ed|ure)?"
        "|leftstation|activation|activated|underway"
    ),
    "on_scene": _stamp("(?:on|at)scene|arriv(?:ed|al|ing|e)?|scenearriv(?:ed|al)|attend(?:ed|ance)|arrivingattendance|reached"),
    "cleared": _stamp(
        "clear(?:ed)?|luclear|available|closed?|releas(?:ed?)|free|inservice|end(?:ed)?|finish(?:ed)?|complet(?:ed?|ion)"
        "|returned"
    ),
}  # fmt: skip
TIMES = (
    "time|datetime|timestamp|dttm",
    rf"{_BEFORE}(?:receiv(?:ed)?|recvd|receipt|pickup|ofcall){_AFTER}",
    rf"{_BEFORE}(?:call|event|incident|alarm|report(?:ed)?|creat(?:ed?|ion)|open(?:ed)?|entry|entered|start(?:ed)?"
    rf"|occur(?:red)?|ring|problem|request(?:ed)?){_AFTER}",
    rf"{_BEFORE}(?:date|day){_AFTER}|{_BEFORE}{_AFTER}",
)
_NUMBER = "(?:no|num|nbr|number|id|key|code)"
WORDS = {
    "lon": ("lon|longitude|lng|long", rf"{_GEO}(?:lon|longitude|lng|long){_DEGREES}", rf"{_GEO}x(?:{_DEGREES})|easting(?:m|rounded)?"),
    "lat": ("lat|latitude", rf"{_GEO}(?:lat|latitude){_DEGREES}", rf"{_GEO}y(?:{_DEGREES})|northing(?:m|rounded)?"),
    "service_min": ("servicemin", "(?:service|busy|occupied)(?:time|duration)?(?:in)?(?:min|mins|minutes)"),
    "unit": (
        "onsceneunit|firstunit(?:onscene|arrived)?|firstarrivingunit",
        rf"(?:unit|apparatus|vehicle|callsign|resource)(?:{_NUMBER}|name|sign)?|radioname",
    ),
    "station": (
        "station|homestation|stationname|firststation|firstpumparrivingdeployedfromstation|deployedfromstationname",
        rf"station(?:area|{_NUMBER})|stationground|incidentstationground",
    ),
    "priority": ("priority|finalpriority|prioritylevel|callpriority|initialpriority|originalpriority", "severity|finalseverity(?:level)?code|urgency|prioritydescription"),
    "units_sent": ("unitssent|unitcount|units|unitsdispatched", "(?:num(?:ber)?of|num|no|nbr|count)(?:units|pumps|vehicles|apparatus)(?:sent|attending|dispatched|assigned|responding)?|numpumpsattending|unitsassigned(?:count)?"),
    "incident": (rf"incident{_NUMBER}|cadincident{_NUMBER}|cad{_NUMBER}|starfireincident{_NUMBER}", rf"(?:incident|event|call|case|run|job|master(?:incident)?){_NUMBER}"),
}  # fmt: skip
PLACE = (
    "point|location|coordinates|geometry|geom|latlon|latlong|latlng|lonlat|wkt|place",
    ".*(?:location|point|coordinates|geom|geometry|latlon|geocode)",
)
NEEDED = {"time": "such as 2025-03-14 16:05", "lon": "degrees", "lat": "degrees"}
ROLES = ("time", "date", "lon", "lat", "place", "service_min", *STAMPS, "unit", "station", "priority", "units_sent", "incident")  # fmt: skip
_NUMERAL = r"[-+]?\d{1,3}(?:\.\d+)?"
WKT = re.compile(
    rf"(?:SRID=4326;)?POINT\s*(?:Z\s*)?\(\s*({_NUMERAL})[\s,]+({_NUMERAL})(?:\s+{_NUMERAL})?\s*\)",
    re.IGNORECASE | re.ASCII,
)
PAIR = re.compile(rf"[^()]*[(\[]?\s*({_NUMERAL})\s*,\s*({_NUMERAL})\s*[)\]]?", re.ASCII | re.DOTALL)
DECIMAL = re.compile(r"^\s*([-+]?\d+),(\d+)\s*$", re.ASCII)  # a comma in degrees is a decimal comma
ENOUGH = 0.8  # share of the first cells that must have the form


def call_columns(
    columns: Mapping[str, str | None] | None, time_format: str | None, argument: str = "columns"
) -> Choose:
    """Return the function that chooses the columns of a log of calls.

    Parameters
    ----------
    columns : mapping of str to str or None
        Columns that the user named, by role; None for a role that is to be left out.
    time_format : str or None
        As for `emsopt.calls.read_calls`.

    Returns
    -------
    callable
        From the names of the columns, and the first values of each, to the names of columns by role.
    """
    given = _checked(columns, ROLES, argument)

    def choose(names: Sequence[str], cells: Mapping[str, Sequence[object]]) -> dict[str, str]:
        taken = _named(given, names)
        free = [name for name in names if name not in taken.values()]
        kinds: dict[str, str] = {}

        def kind(name: str) -> str:
            if name not in kinds:
                found = _times.kind(cells[name], time_format)
                timed = re.search("time|date|stamp|dt|alarm|arriv|clear", plain(name))
                kinds[name] = ("moment" if timed else "") if found == "number" else found
            return kinds[name]

        def first(patterns: Iterable[str], fits: Callable[[str], bool]) -> str | None:
            return next((name for p in patterns for name in free if re.fullmatch(p, plain(name)) and fits(name)), None)

        def take(role: str, name: str | None) -> None:
            if name is not None and role not in given:
                taken[role] = name
                free.remove(name)

        for role in ("lon", "lat"):
            take(role, first(WORDS[role], lambda name: _one_number(name, cells[name])))
        _take_place(taken, given, free, cells)
        if "time" not in given:
            moment = first(TIMES, lambda name: kind(name) == "moment")
            day = first(("date", *TIMES), lambda name: kind(name) == "date")
            clock = first(TIMES, lambda name: kind(name) == "clock" or (kind(name) == "seconds" and day is not None))
            usual = first(TIMES[:1], lambda name: True)
            if moment is None and day is not None and clock is not None:
                take("date", day)
                moment = clock
            take("time", moment or day or usual)
        elif kind(taken["time"]) == "clock" if "time" in taken else False:
            take("date", first(("date", *TIMES), lambda name: kind(name) == "date"))
        for role, patterns in STAMPS.items():
            take(role, first(patterns, lambda name: kind(name) in ("moment", "clock")))
            if role == "on_scene" and role not in taken:
                take(role, first((r".*attendance_?time(?:seconds)?",), lambda name: kind(name) == "seconds"))
        if "time" not in taken and "time" not in given:
            times = [name for name in free if kind(name) == "moment"]
            if "dispatched" in taken:
                taken["time"] = taken["dispatched"]  # the log has no earlier time of the call
            elif len(times) == 1:
                take("time", times[0])
        for role in ("service_min", "units_sent"):
            take(role, first(WORDS[role], lambda name: _numeric(cells[name]) or role == "service_min"))
        for role in ("incident", "unit", "station", "priority"):
            take(role, first(WORDS[role], lambda name: kind(name) in ("", "seconds")))
        return taken

    return choose


STATION_ROLES = {
    "name": ("name|site|station", "(?:station|site|facility|depot|base|postal?|unit)?(?:name|label)", rf"(?:station|site|facility|base)(?:{_NUMBER})?|label|postname", "no|num|number|id|key"),
    "turnout_min": ("turnoutmin", "turnout(?:time)?(?:in)?(?:min|mins|minutes)"),
    "service_min": WORDS["service_min"],
}  # fmt: skip


def station_columns(columns: Mapping[str, str | None] | None) -> Choose:
    """Return the function that chooses the columns of a table of stations, as `call_columns` does."""
    given = _checked(columns, ("lon", "lat", "place", *STATION_ROLES), "columns")

    def choose(names: Sequence[str], cells: Mapping[str, Sequence[object]]) -> dict[str, str]:
        taken = _named(given, names)
        free = [name for name in names if name not in taken.values()]
        for role in ("lon", "lat", *STATION_ROLES):
            if role not in given:
                patterns = STATION_ROLES.get(role) or WORDS[role]
                fits = (name for p in patterns for name in free if re.fullmatch(p, plain(name)))
                fits = (name for name in fits if role not in ("lon", "lat") or _one_number(name, cells[name]))
                name = next(fits, None)
                if name is not None:
                    taken[role] = name
                    free.remove(name)
        _take_place(taken, given, free, cells)
        return taken

    return choose


def _take_place(
    taken: dict[str, str], given: Mapping[str, str | None], free: list[str], cells: Mapping[str, Sequence[object]]
) -> None:
    """Add a column that holds both coordinates to ``taken`` if they have no columns of their own."""
    if "place" in given or {"lon", "lat"} <= taken.keys():
        return
    named = [name for p in PLACE for name in free if re.fullmatch(p, plain(name))]
    both = [name for name in named if _is(WKT, cells[name]) or _is(PAIR, cells[name])]
    both += [name for name in free if _is(WKT, cells[name])]
    if both:
        taken["place"] = both[0]
        free.remove(both[0])
        taken.pop("lon", None), taken.pop("lat", None)


def check_complete(table: Table, taken: Mapping[str, str], needed: Sequence[str]) -> None:
    """Raise one error that names everything the table lacks, with the option that fills it.

    ``needed`` are roles; "lon" and "lat" may be replaced by "place".
    """
    absent = [role for role in needed if role not in taken and not (role in ("lon", "lat") and "place" in taken)]
    if absent:
        option = ", ".join(f"{role!r}: ..." for role in absent)
        what = " and ".join(f"a column {role!r} ({NEEDED[role]})" for role in absent)
        raise table.lacks(f"{what}. Name the column(s) by columns={{{option}}}")


def places(table: Table, key: Mapping[str, str], *, blanks: bool = True) -> FloatArray:
    """Return longitude and latitude in degrees, shape (rows, 2), from two columns or from one that holds both."""
    if "place" in key:
        pairs = []
        for text in texts(table.frame[key["place"]].tolist()):
            wkt, pair = WKT.search(text), PAIR.fullmatch(text)
            pairs.append((wkt[1], wkt[2]) if wkt else (pair[2], pair[1]) if pair else (None, None))
        frame = pd.DataFrame(pairs, columns=["lon", "lat"], dtype=object)
        return table._replace(frame=frame).degrees(blanks=blanks)
    for column in (key["lon"], key["lat"]):
        cells = table.frame[column]
        if any(isinstance(cell, str) and "," in cell for cell in cells):
            table.frame[column] = [DECIMAL.sub(r"\1.\2", cell) if isinstance(cell, str) else cell for cell in cells]
    return table.degrees(key["lon"], key["lat"], blanks=blanks)


def plain(name: str) -> str:
    """Return a name in lower case, with letters and digits only."""
    return re.sub(r"[\W_]+", "", name.lower())


def _checked(columns: Mapping[str, str | None] | None, roles: Sequence[str], argument: str) -> dict[str, str | None]:
    """Return the columns that the user named; raise if they are not a mapping from roles to names."""
    if columns is None:
        return {}
    wanted = f"`{argument}` must map {', '.join(roles)} to names of columns (or None)"
    if not isinstance(columns, Mapping):
        raise InputError(f"{wanted}; got {shown(columns)}.")
    for role, name in columns.items():
        if role not in roles:
            raise InputError(f"{wanted}; got the unknown word {shown(role)}.")
        if name is not None and not isinstance(name, str):
            raise InputError(f"{wanted}; for {role!r} got {shown(name)}.")
    return dict(columns)


def _named(given: Mapping[str, str | None], names: Sequence[str]) -> dict[str, str]:
    """Return the columns that the user named as they stand in the table; raise if the table lacks one."""
    exact, simple = {name.lower().strip(): name for name in names}, {plain(name): name for name in names}
    taken = {}
    for role, name in given.items():
        if name is not None:
            known = exact.get(name.lower().strip(), simple.get(plain(name)))
            if known is None:
                listed = ", ".join(shown(n, str) for n in names[:20])
                raise InputError(f"there is no column {shown(name)} for {role!r}; columns found: {listed}.")
            taken[role] = known
    return taken


def _filled(cells: Iterable[object]) -> list[str]:
    listed = list(cells)
    return [text for text, empty in zip(texts(listed), blank(listed), strict=True) if not empty][: _times.SAMPLE]


def _is(form: re.Pattern[str], cells: Iterable[object]) -> bool:
    """Return whether enough of the cells have the form, and there are any."""
    filled = _filled(cells)
    return bool(filled) and sum(form.fullmatch(text) is not None for text in filled) >= ENOUGH * len(filled)


def _one_number(name: str, cells: Sequence[object]) -> bool:
    """Return whether a column may hold one coordinate; if named x or y, its values must not look like km."""
    if plain(name) in ("x", "y"):
        return not _is(re.compile(r"[-+]?\d{1,3}(?:[.,]\d{0,2})?", re.ASCII), cells)
    return plain(name) in ("lon", "lat") or not _is(PAIR, cells) or _is(DECIMAL, cells)


def _numeric(cells: Iterable[object]) -> bool:
    return _is(re.compile(r"\d+(?:[.,]\d+)?"), cells)
