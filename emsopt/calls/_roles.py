"""Find which column of a table holds what, by its name and its first values.

Names are compared in lower case, without spaces and signs: ``Date_Time_Of_Event`` as "datetimeofevent". A fitting name
is not enough: the cells of a column of times must be times, and those of a column of numbers numbers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

from .._files.columns import DECIMAL, blank, found, texts
from .._validate import shown
from ..errors import InputError
from . import _time_forms

Cells: TypeAlias = Mapping[str, Sequence[object]]
Choose: TypeAlias = Callable[[str, Sequence[str], Cells], dict[str, str]]

# Words around the telling one in names such as First_Unit_On_Scene_DtTm, Longitude_WGS84 and IncidentNumber.
_BEFORE = (
    r"(?:date|time|dt|tm|stamp|and|of|the|to|first|1st|initial|unit|pump|crew|vehicle|call|incident|event|alarm|cad)*"
)
_TIMED = r"(?:date|time|dt|tm|ts|stamp|and|at|utc|local|actual)*"
_AFTER = r"(?:date|time|dt|tm|ts|stamp|and|at|utc|local|actual|on|to|scene|unit|first)*"
_GEO = r"(?:geo|gps|wgs|84|incident|call|event|scene|address|location|site|map|start|centroid|point|decimal)*"
_DEGREES = r"(?:wgs84|dd|deg|degrees|decimal|coord|coordinate)*"
_ID = r"(?:no|num|nbr|number|id|key)"
_MINUTES = r"(?:time|duration)?(?:in)?(?:min|mins|minutes)"

# Patterns of names by role; an earlier pattern is preferred.
_CALL = "call|event|incident|alarm|report(?:ed)?|creat(?:ed?|ion)|open(?:ed)?|entry|entered|start(?:ed)?|request(?:ed)?"
TIME = (
    "time|datetime|timestamp|dttm",
    rf"{_BEFORE}(?:receiv(?:ed)?|recvd|receipt|pickup|ofcall){_TIMED}",
    rf"{_BEFORE}(?:{_CALL}){_TIMED}",
    rf"{_BEFORE}(?:date|day|time){_TIMED}",
)
DATE = ("date", *TIME)
STAMPS = {
    "dispatched": "dispatch(?:ed)?|assign(?:ed|ment)?|alert(?:ed)?|mobili[sz](?:ed|ation)?|toned|paged|notified|sent",
    "en_route": "enroute|ontheway|respond(?:ed|ing)?|response|mobile|roll(?:ed|ing)?|depart(?:ed)?|activat(?:ed|ion)",
    "on_scene": "(?:on|at)scene|arriv(?:ed|al|ing|e)?|scenearriv(?:ed|al)|attend(?:ed|ance)?|reached",
    "cleared": "(?:lu)?clear(?:ed)?|available|closed?|released?|free|inservice|end(?:ed)?|finish(?:ed)?|completed?",
}
STAMP = {role: rf"{_BEFORE}(?:{words}){_AFTER}" for role, words in STAMPS.items()}
GUESSES = {  # what a name of a column of times has that is not recognised, such as "Arr" or "T_DISP"
    "dispatched": "di?sp|assi|al[ae]r|mobi|tone|page|sent",
    "en_route": "en?r(?!e)|rout|rte|way|depa|roll",
    "on_scene": "arr|onsc|scn|scene|atten|reach",
    "cleared": "cle?a?r|avai?l|rele|fini|compl|free",
}
_UNITS = "(?:units|pumps|vehicles|apparatus)(?:sent|attending|dispatched|assigned|responding)?"
NUMBERS = {
    "service_min": ("servicemin", rf"(?:service|busy|occupied){_MINUTES}"),
    "units_sent": ("unitssent", rf"unitcount|{_UNITS}(?:count)?|(?:numberof|noof|num|no|count){_UNITS}"),
    "turnout_min": ("turnoutmin", rf"turnout{_MINUTES}"),
}
LABELS = {
    "incident": (rf"(?:cad|starfire)?inc(?:ident)?{_ID}|cad{_ID}", rf"(?:event|call|case|run|job|masterincident){_ID}"),
    "unit": (
        "onsceneunit|firstunit(?:onscene|arrived)?|firstarrivingunit",
        rf"(?:unit|apparatus|vehicle|resource)(?:{_ID}|name)?|callsign|radioname",
    ),
    "station": (
        "station|stationname|homestation|firststation",
        rf"station(?:area|{_ID})|.*deployedfromstation(?:name)?|(?:incident)?stationground",
    ),
    "priority": (
        "(?:final)?priority(?:level)?",
        "(?:call|initial|original)priority(?:level)?|(?:final)?severity(?:level)?(?:code)?|urgency",
    ),
}
NAME = (
    "name|site|station",
    "(?:station|site|facility|depot|base|post|hospital)(?:name|label)|label",
    rf"(?:station|site|facility|depot|base|post)(?:{_ID})?",
    _ID,
)
LON = ("lon|longitude|lng|long", rf"{_GEO}(?:lon|longitude|lng|long){_DEGREES}", rf"{_GEO}x{_DEGREES}|easting.*")
LAT = ("lat|latitude", rf"{_GEO}(?:lat|latitude){_DEGREES}", rf"{_GEO}y{_DEGREES}|northing.*")
PLACE = (".*(?:location|point|coord.*|geom|geometry|lat(?:itude)?lon.*|latlng|lonlat|wkt|geocode|place)",)

CALL_ROLES = ("time", "date", "lon", "lat", "place", *STAMPS, "service_min", "units_sent", *LABELS)
SITE_ROLES = ("name", "lon", "lat", "place", "turnout_min", "service_min")
EXPLAINED = {"time": "such as 2025-03-14 16:05", "lon": "longitude in degrees", "lat": "latitude in degrees"}
_NUMERAL = r"[-+]?\d{1,3}(?:\.\d+)?"
WKT = re.compile(
    rf"(?:SRID=4326;)?\s*POINT\s*Z?\s*\(\s*({_NUMERAL})[\s,]+({_NUMERAL})(?:\s+\S+)?\s*\)", re.IGNORECASE | re.ASCII
)
PAIR = re.compile(rf"[^()]*[(\[]?\s*({_NUMERAL})\s*[,;]\s*({_NUMERAL})\s*[)\]]?", re.ASCII)  # latitude, longitude
NUMERIC = re.compile(r"[-+]?\d+(?:[.,]\d+)?", re.ASCII)
SHORT = re.compile(r"[-+]?\d{1,3}(?:[.,]\d{0,2})?", re.ASCII)
FINE = re.compile(r"[-+]?\d{1,3}[.,]\d{3,}", re.ASCII)
WIDEST_DEGREES = 3
LONGEST_NAME = 80
ENOUGH = 0.8  # share of the first cells that must have a form


class _Search:
    """The columns of one table: those taken so far, by role, and those that are still free."""

    def __init__(
        self, given: Mapping[str, str | None], names: Sequence[str], cells: Cells, time_format: str | None = None
    ) -> None:
        self.given, self.cells, self.time_format = given, cells, time_format
        self.taken = _named(given, names)
        self.free = [name for name in names if name not in self.taken.values()]
        self.kinds: dict[str, str] = {}

    def kind(self, name: str) -> str:
        """Return what a column holds, as `_time_forms.kind`; numbers are times only if the name says so."""
        if name not in self.kinds:
            kind = _time_forms.kind(self.cells[name], self.time_format)
            timed = re.search("time|date|stamp|dt|alarm|arriv|clear", _plain(name))
            self.kinds[name] = kind if kind != "number" else "moment" if timed else ""
        return self.kinds[name]

    def first(self, patterns: Iterable[str], fits: Callable[[str], bool] = lambda _: True) -> str | None:
        """Return the first free column whose name has the first possible pattern and that fits; None without one."""
        return next(
            (name for p in patterns for name in self.free if re.fullmatch(p, _plain(name)) and fits(name)), None
        )

    def take(self, role: str, name: str | None) -> None:
        """Take a column for a role, unless it is None or the user decided on the role."""
        if name is not None and role not in self.given:
            self.taken[role] = name
            self.free.remove(name)

    def take_place(self) -> None:
        """Take columns of longitude and latitude, or one that holds both."""
        if "place" not in self.taken:
            self.take("lon", self.first(LON, self._coordinate))
            self.take("lat", self.first(LAT, self._coordinate))
        if not {"lon", "lat"} <= self.taken.keys() and "place" not in self.given:
            both = self.first(PLACE, lambda name: self._is(WKT, name) or self._is(PAIR, name))
            self.take("place", both or next((name for name in self.free if self._is(WKT, name)), None))

    def take_numbers(self, *roles: str) -> None:
        """Take columns of numbers; the usual name is enough, so that cells that are no numbers are found."""
        for role in roles:
            usual, *further = NUMBERS[role]
            self.take(role, self.first([usual]) or self.first(further, lambda name: self._is(NUMERIC, name)))

    def _coordinate(self, name: str) -> bool:
        """Return whether a column may hold one coordinate; x and y look like km if rounded and spread widely."""
        if len(_plain(name)) == 1 and self._is(SHORT, name):
            values = [float(cell.replace(",", ".")) for cell in texts(self.cells[name]) if SHORT.fullmatch(cell)]
            return max(values) - min(values) < WIDEST_DEGREES and any(value % 1 for value in values)
        return _plain(name) in ("lon", "lat") or self._is(DECIMAL, name) or not self._is(PAIR, name)

    def _is(self, form: re.Pattern[str], name: str) -> bool:
        cells = list(self.cells[name])
        filled = [text for text, empty in zip(texts(cells), blank(cells), strict=True) if not empty]
        return bool(filled) and sum(form.fullmatch(text) is not None for text in filled) >= ENOUGH * len(filled)

    def spare(self) -> dict[str, str]:
        """Return the columns of times that were not taken, each with the missing stamp that it may be, or ""."""
        missing, found = [role for role in STAMPS if role not in self.taken], {}
        for name in self.free:
            if self.kind(name) in ("moment", "clock"):
                role = next((role for role in missing if re.search(GUESSES[role], _plain(name))), "")
                missing = [other for other in missing if other != role]
                found[name] = role
        return found

    def check(self, where: str, names: Sequence[str], needed: Iterable[str]) -> dict[str, str]:
        """Return the columns taken; raise one error that names everything missing, and the option that fills it."""
        absent = [role for role in needed if role not in self.taken]
        if "place" in self.taken:
            absent = [role for role in absent if role not in ("lon", "lat")]
        if not absent:
            return self.taken
        times = [name for name in self.free if self.kind(name) in ("moment", "date")] if "time" in absent else []
        fine = [name for name in self.free if self._is(FINE, name)] if {"lon", "lat"} & set(absent) else []
        wanted = {role: repr(times[0]) if role == "time" and times else "..." for role in absent}
        option = ", ".join(f"{role!r}: {name}" for role, name in wanted.items())
        likely = f" (perhaps {', '.join(map(shown, [*times[1:], *fine][:5]))})" if times[1:] or fine else ""
        lacks = " and ".join(f"a column {role!r} ({EXPLAINED[role]})" for role in absent)
        hint = ""
        if "time" in absent and self.first(["demand|calls|count|population"]):
            hint = " Demand by place is not a log: pass it to `City.from_frames` with a column 'arrival_rate'."
        raise InputError(f"{where} needs {lacks}. Name each by columns={{{option}}}{likely}; {found(names)}.{hint}")


def call_columns(
    columns: Mapping[str, str | None] | None, time_format: str | None, spare: dict[str, str] | None = None
) -> Choose:
    """Return the function that chooses the columns of a log of calls.

    Parameters
    ----------
    columns : mapping of str to str or None
        Columns that the user named, by role; None for a role that is to be left out.
    time_format : str or None
        As for `emsopt.calls.read_calls`.
    spare : dict, optional
        Filled with the columns of times that were not taken, each with the stamp that it may be, or "".

    Returns
    -------
    callable
        From the name of the table, the names of its columns and the first cells of each, to names of columns by role.
    """
    given = _checked(columns, CALL_ROLES)

    def choose(where: str, names: Sequence[str], cells: Cells) -> dict[str, str]:
        search = _Search(given, names, cells, time_format)
        kind, taken = search.kind, search.taken
        search.take_place()
        _take_time(search)
        for role in STAMPS:
            search.take(role, search.first([STAMP[role]], lambda name: kind(name) in ("moment", "clock")))
        search.take("on_scene", search.first([".*attendancetime(?:seconds)?"], lambda name: kind(name) == "seconds"))
        times = [name for name in search.free if kind(name) == "moment"]
        if "time" not in taken and "time" not in given and "dispatched" in taken:
            taken["time"] = taken["dispatched"]  # the log has no earlier time of the call
        elif "time" not in taken and len(times) == 1:
            search.take("time", times[0])
        search.take_numbers("service_min", "units_sent")
        for role, names_of in LABELS.items():
            search.take(role, search.first(names_of))
        if spare is not None:
            spare.update(search.spare())
        return search.check(where, names, ("time", "lon", "lat"))

    return choose


def _take_time(search: _Search) -> None:
    """Take a column of times, or one of times of day beside one of dates, or one of dates."""
    kind = search.kind
    day = search.first(DATE, lambda name: kind(name) == "date")
    if "time" in search.given:
        if "time" in search.taken and kind(search.taken["time"]) in ("clock", "seconds"):
            search.take("date", day)
        return
    moment = search.first(TIME[:1], lambda name: kind(name) in ("moment", "date"))
    moment = moment or search.first(TIME, lambda name: kind(name) == "moment")
    clock = search.first(TIME, lambda name: kind(name) in ("clock", "seconds"))
    if moment is None and clock is not None and (day is not None or "date" in search.taken):
        search.take("date", day)
        moment = clock
    # whatever has the usual name is taken for the time, so that cells that are no times are found
    search.take("time", moment or day or search.first([*TIME[:1], "date"]))


def site_columns(columns: Mapping[str, str | None] | None) -> Choose:
    """Return the function that chooses the columns of a table of stations, as `call_columns` does."""
    given = _checked(columns, SITE_ROLES)

    def choose(where: str, names: Sequence[str], cells: Cells) -> dict[str, str]:
        search = _Search(given, names, cells)
        search.take_place()
        search.take("name", search.first(NAME))
        search.take_numbers("turnout_min", "service_min")
        return search.check(where, names, ("lon", "lat"))

    return choose


def _plain(name: str) -> str:
    """Return a name in lower case, with letters and digits only, and not longer than a name of a column may be."""
    return re.sub(r"[\W_]+", "", name.lower())[:LONGEST_NAME]


def _checked(columns: Mapping[str, str | None] | None, roles: Sequence[str]) -> dict[str, str | None]:
    """Return the columns that the user named; raise if they are not a mapping from roles to names."""
    given = {} if columns is None else columns
    if not isinstance(given, Mapping) or not all(name is None or isinstance(name, str) for name in given.values()):
        wrong: object = columns
    else:
        wrong = next((role for role in given if role not in roles), None)
        if wrong is None:
            return dict(given)
    raise InputError(f"`columns` must map words of {', '.join(roles)} to names of columns or None; got {shown(wrong)}.")


def _named(given: Mapping[str, str | None], names: Sequence[str]) -> dict[str, str]:
    """Return the columns that the user named as they stand in the table; raise if the table lacks one."""
    known = {_plain(name): name for name in names} | {name.strip().lower(): name for name in names}
    taken = {}
    for role, name in given.items():
        if name is not None:
            column = known.get(name.strip().lower()) or known.get(_plain(name))
            if column is None:
                raise InputError(f"there is no column {shown(name)} to take for {role!r}; {found(names)}.")
            taken[role] = column
    return taken
