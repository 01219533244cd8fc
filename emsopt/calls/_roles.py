"""Find the column of a table for each role (time, place, unit, ...), by its name (`_names`) and its first cells.

The first cells of a column of times must be times, and those of a column of numbers numbers; columns of text are found
by name alone. Conditions (``where``) name the file's own columns, not roles.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

import numpy as np

from .._files.columns import DECIMAL_COMMA, are_blank, list_columns, texts
from ..errors import Argument, InputError, Message
from ..errors._types import FloatArray
from ..errors._validate import quote
from . import _names, _time_forms
from ._points import Cells, ColumnChoice, parse_place

CALL_ROLES: tuple[str, ...] = ("time", "date", "lon", "lat", "place")
CALL_ROLES += (*_names.STAMPS, *_names.ELAPSED_ROLES, "service_min", "units_sent", *_names.TEXT_ROLES, "status_time")
SITE_ROLES = ("name", "lon", "lat", "place", "turnout_min", "service_min", "agency")
DISPATCH_ROLES = ("first_due", "agency")  # assigned last, as their columns may have other roles
ROLE_HINTS = {"time": "such as 2025-03-14 16:05", "lon": "longitude in degrees", "lat": "latitude in degrees"}
DECIMAL = re.compile(r"[-+]?\d+(?:[.,]\d+)?", re.ASCII)
SHORT_NUMBER = re.compile(r"[-+]?\d{1,3}(?:[.,]\d{0,2})?", re.ASCII)
PRECISE_DEGREES = re.compile(r"[-+]?\d{1,3}[.,]\d{3,}", re.ASCII)
MAX_CITY_EXTENT_DEGREES = 3  # coordinates in a log of one city span less
CONDITION_PREFIX, KIND_PREFIX = "where ", "kind "  # of roles of columns that choose rows, or say what a row is
CLOCK_KINDS = ("clock", "seconds")  # kinds of times of day
MOST_KINDS = 40  # words among the first cells of a column of kinds of rows: more are free text


class _ColumnChooser:
    """Assigns the columns of a table to roles: ``taken`` maps roles to columns, ``free`` lists all other columns."""

    def __init__(
        self, given: Mapping[str, str | None], names: Sequence[str], cells: Cells, time_format: str | None = None
    ) -> None:
        self.given, self.cells, self.time_format = given, cells, time_format
        none = {"", "none"} - {name.strip().lower() for name in names}
        wanted = {role: name for role, name in given.items() if name is not None and name.strip().lower() not in none}
        self.taken = {role: _find_column(name, names, repr(role)) for role, name in wanted.items()}
        used = set(self.taken.values())
        self.free = [name for name in names if name not in used and (name.strip() or any(cells[name]))]
        self.kinds: dict[str, str] = {}
        self.forms = {name: _names.name_forms(name) for name in names}

    def kind(self, name: str) -> str:
        """Return a column's `_time_forms.kind_of_cells`; numbers are times only if the column's name says so."""
        if name not in self.kinds:
            kind = _time_forms.kind_of_cells(self.cells[name], self.time_format)
            if kind in ("number", "fraction"):
                named = "|".join((_names.TIME_PATTERNS[1], *_names.STAMP_PATTERNS.values()))
                timed = any(re.fullmatch(named, form) for form in self.forms[name])
                words = "time|date|stamp|dt|alarm|arriv|clear|disp|scene|route"
                timed = timed or re.search(words, _names.plain_name(name)) is not None
                kind = ("moment" if kind == "number" else "clock") if timed else ""
            self.kinds[name] = kind
        return self.kinds[name]

    def holds_stamps(self, name: str, kinds: Sequence[str] = ("moment", "clock")) -> bool:
        """Return whether a column may hold stamps of a unit: its cells have one of these kinds, and its name fits."""
        return self.kind(name) in kinds and not _names.OTHER_TIMES.search(_names.plain_name(name))

    def holds_elapsed(self, name: str, role: str) -> bool:
        """Return whether a column may hold the elapsed times of a role in `ELAPSED_ROLES`."""
        kind, typical = self.kind(name), _names.ELAPSED_ROLES[role][2]
        spans = _names.span_roles(name) == _names.ELAPSED_ROLES[role][:2]
        if kind == "seconds" or (not kind and self._fits(DECIMAL.fullmatch, name)):
            return spans or re.search("time|tm|dur|interval|elapsed|sec|min", name.lower()) is not None
        written = _time_forms.written_cells(self.cells[name])
        return kind == "spelt" or (
            kind == "clock" and (spans or _time_forms.are_elapsed(written, self._times_of_calls(), typical))
        )

    def may_have_role(self, name: str, role: str) -> bool:
        """Return whether a column may have a role of text: patients and statuses only join the rows of incidents."""
        if role == "status":
            words = any(map(_names.stamp_of_status, set(texts(self.cells[name]))))
            return words and "incident" in self.taken and not _names.STAMPS.keys() & self.taken.keys()
        return role != "patient" or "incident" in self.taken

    def _times_of_calls(self) -> FloatArray:
        """Return the times of day (s) of the calls in the first rows, shape (K,), or NaN without a column."""
        if (name := self.taken.get("time", self.taken.get("date"))) is None:
            return np.array(np.nan)
        return _time_forms.times_of_day(_time_forms.written_cells(self.cells[name]), self.time_format)

    def find(
        self, patterns: Iterable[str], fits: Callable[[str], bool] = lambda _: True, n_forms: int = 2
    ) -> str | None:
        """Return the free column that ``fits`` and whose name, in ``n_forms`` forms, matches the earliest pattern."""
        for pattern in patterns:
            for name in self.free:
                if any(re.fullmatch(pattern, form) for form in self.forms[name][:n_forms]) and fits(name):
                    return name
        return None

    def assign(self, role: str, name: str | None) -> None:
        """Assign a column to a role; do nothing if the column is None or the user gave the role."""
        if name is not None and role not in self.given:
            self.taken[role] = name
            self.free.remove(name)

    def assign_place(self) -> None:
        """Assign the columns of longitude and latitude, or one column that holds both."""
        if "place" not in self.taken:
            self.assign("lon", self.find(_names.LON_PATTERNS, self._may_be_coordinate))
            self.assign("lat", self.find(_names.LAT_PATTERNS, self._may_be_coordinate))
        if not {"lon", "lat"} <= self.taken.keys() and "place" not in self.given:
            both = self.find(_names.PLACE_PATTERNS, lambda name: self._fits(parse_place, name))
            ordered = lambda text: (place := parse_place(text)) and not place.pair  # such as POINT (x y)
            self.assign("place", both or next((name for name in self.free if self._fits(ordered, name)), None))

    def assign_numbers(self, *roles: str) -> None:
        """Assign columns to ``roles`` of numbers: by a usual name in any case, by another if the cells are numbers."""
        for role in roles:
            usual, *more = _names.NUMBER_ROLES[role]
            self.assign(role, self.find([usual]) or self.find(more, lambda name: self._fits(DECIMAL.fullmatch, name)))

    def _may_be_coordinate(self, name: str) -> bool:
        """Return whether a column may hold a coordinate; in one called x or y, short numbers must look like degrees."""
        if len(_names.plain_name(name)) == 1 and self._fits(SHORT_NUMBER.fullmatch, name):
            values = [float(cell.replace(",", ".")) for cell in filter(SHORT_NUMBER.fullmatch, texts(self.cells[name]))]
            return max(values) - min(values) < MAX_CITY_EXTENT_DEGREES and any(value % 1 for value in values)
        usual = _names.plain_name(name) in ("lon", "lat")
        return usual or self._fits(DECIMAL_COMMA.fullmatch, name) or not self._fits(parse_place, name)

    def _fits(self, form: Callable[[str], object], name: str) -> bool:
        """Return whether a column has filled cells, and ``form`` parses or matches at least 80 % of them."""
        cells = list(self.cells[name])
        filled = [text for text, empty in zip(texts(cells), are_blank(cells), strict=True) if not empty]
        return bool(filled) and sum(map(bool, map(form, filled))) >= _time_forms.LEAST_SHARE * len(filled)

    def unused_times(self) -> dict[str, str]:
        """Return the columns of times without a role, each with the missing stamp that its name suggests, or ""."""
        missing, found = [role for role in _names.STAMPS if role not in self.taken], dict[str, str]()
        for name in (name for name in self.free if self.kind(name) in ("moment", "clock")):
            free = (role for role in missing if role not in found.values())
            plain = _names.plain_name(name)
            found[name] = next((role for role in free if re.search(_names.STAMP_HINTS[role], plain)), "")
        return found

    def check(self, where: str, names: Sequence[str], needed: Iterable[str]) -> dict[str, str]:
        """Return the assigned columns by role; raise if one of the ``needed`` roles has none."""
        placed = ("lon", "lat") if "place" in self.taken else ()
        absent = [role for role in needed if role not in (*self.taken, *placed)]
        if not absent:
            return self.taken
        option, likely = self._suggest(absent)
        lacks = " and ".join(f"a column {role!r} ({ROLE_HINTS[role]})" for role in absent)
        hint = ""
        if "time" in absent and self.find(["demand|calls|count|population"]):
            hint = " Demand by place is not a log: pass it to `City.from_frames` with a column 'arrival_rate'."
        rest = f"{likely}; {list_columns(names)}.{hint}"
        raise InputError(Message(f"{where} needs {lacks}. Name each by ", option, rest))

    def _suggest(self, absent: Sequence[str]) -> tuple[Argument, str]:
        """Return the option that would name the columns of absent roles, and a text with likely columns."""
        times = [name for name in self.free if "time" in absent and self.kind(name) in ("moment", "date")]
        placeless = not {"lon", "lat"}.isdisjoint(absent)
        fine = [name for name in self.free if placeless and self._fits(PRECISE_DEGREES.fullmatch, name)]
        option = Argument("columns", {role: times[0] if role == "time" and times else ... for role in absent})
        return option, f" (perhaps {', '.join(map(quote, [*times[1:], *fine][:5]))})" if times[1:] or fine else ""


def call_column_chooser(
    columns: Mapping[str, str | None] | None, time_format: str | None, unused: dict[str, str], chosen_by: Sequence[str]
) -> ColumnChoice:
    """Return the function that chooses the columns of a log of calls.

    ``columns`` are those that the user named, by role. The function adds columns of times without a role to ``unused``;
    columns ``chosen_by``, which select rows, get roles with a prefix.
    """
    given = _check_columns(columns, CALL_ROLES)

    def choose(where: str, names: Sequence[str], cells: Cells) -> dict[str, str]:
        search = _ColumnChooser(given, names, cells, time_format)
        search.assign_place()
        _assign_time(search)
        search.assign_numbers("service_min", "units_sent")
        _assign_elapsed(search)
        _assign_stamps(search)
        _assign_labels(search)
        for name in chosen_by:
            search.taken[CONDITION_PREFIX + name] = _find_column(name, names, "`where`")
        worded = [search.taken[role] for role in ("priority", "agency") if role in search.taken]  # may hold kinds
        search.taken |= {KIND_PREFIX + name: name for name in (*search.free, *worded) if _marks_no_calls(cells[name])}
        for role in DISPATCH_ROLES:
            search.assign(role, search.find(_names.TEXT_ROLES[role]))
        unused.update(search.unused_times())
        return search.check(where, names, ("time", "lon", "lat"))

    return choose


def _marks_no_calls(cells: Sequence[object]) -> bool:
    """Return whether cells have few distinct texts, and one of them, such as "test", means that a row is no call."""
    words = {text for text in map(str, cells) if len(text) <= _names.LONGEST_NAME}
    return len(words) <= MOST_KINDS and any(map(_names.NON_CALL_WORDS.search, words))


def _assign_time(search: _ColumnChooser) -> None:
    """Assign the column of the times of calls: dated times or, without any, times of day with dates, or dates."""
    day = search.find(_names.DATE_PATTERNS, lambda name: search.kind(name) == "date")
    if "time" in search.given:
        if "time" in search.taken and search.kind(search.taken["time"]) in CLOCK_KINDS:
            search.assign("date", day)
        return
    moment = search.find(_names.TIME_PATTERNS[:1], lambda name: search.kind(name) in ("moment", "date"))
    moment = moment or search.find(_names.TIME_PATTERNS, partial(search.holds_stamps, kinds=("moment",)), 3)
    if moment is None and (day is not None or "date" in search.taken):
        is_clock = lambda name: search.kind(name) in CLOCK_KINDS and _names.span_roles(name) is None
        moment = search.find(_names.TIME_PATTERNS, is_clock, 3)
        search.assign("date", None if moment is None else day)
    # whatever has the usual name is taken for the time, so that cells that are no times are found
    search.assign("time", moment or day or search.find([*_names.TIME_PATTERNS[:1], "date"]))


def _assign_elapsed(search: _ColumnChooser) -> None:
    """Assign columns of elapsed times. If calls have only a date, first assign the time of day of dispatch."""
    taken, decided = search.taken, {"date", "time"} & search.given.keys()
    if "time" in taken and not decided and "date" not in taken and search.kind(taken["time"]) == "date":
        clock = search.find([_names.STAMP_PATTERNS["dispatched"]], lambda name: search.kind(name) == "clock", 3)
        if clock is not None:
            taken["date"], taken["time"] = taken["time"], clock
    for role, pattern in _names.ELAPSED_PATTERNS.items():
        named = (name for name in search.free if _names.span_roles(name) == _names.ELAPSED_ROLES[role][:2])
        spanning = next((name for name in named if search.holds_elapsed(name, role)), None)
        search.assign(role, spanning or search.find([pattern], partial(search.holds_elapsed, role=role)))


def _assign_stamps(search: _ColumnChooser) -> None:
    """Assign the columns of stamps; without a time of the call, use dispatch or the only other column of times."""
    for role in _names.STAMPS:
        search.assign(role, search.find([_names.STAMP_PATTERNS[role]], search.holds_stamps, 3))
    if "time" in search.taken or "time" in search.given:
        return
    times = [name for name in search.free if search.holds_stamps(name, ("moment",))]
    if "dispatched" in search.taken:
        search.taken["time"] = search.taken["dispatched"]  # the log has no earlier time of the call
    elif len(times) == 1:
        search.assign("time", times[0])


def _assign_labels(search: _ColumnChooser) -> None:
    """Assign the columns of text roles (incident, unit, station, ...) and the column of status times."""
    for role in (role for role in _names.TEXT_ROLES if role not in DISPATCH_ROLES):
        search.assign(role, search.find(_names.TEXT_ROLES[role], partial(search.may_have_role, role=role)))
    if "status" in search.taken:
        named = [".*(?:status|event|action|activity|stamp).*"]
        search.assign("status_time", search.find(named, lambda name: search.kind(name) == "moment"))


def site_column_chooser(columns: Mapping[str, str | None] | None) -> ColumnChoice:
    """Return the function that chooses the columns of a table of stations; ``columns`` as in `call_column_chooser`."""
    given = _check_columns(columns, SITE_ROLES)

    def choose(where: str, names: Sequence[str], cells: Cells) -> dict[str, str]:
        search = _ColumnChooser(given, names, cells)
        search.assign_place()
        search.assign("name", search.find(_names.NAME_PATTERNS))
        search.assign("agency", search.find(_names.TEXT_ROLES["agency"]))
        search.assign_numbers("turnout_min", "service_min")
        return search.check(where, names, ("lon", "lat"))

    return choose


def _check_columns(columns: Mapping[str, str | None] | None, roles: Sequence[str]) -> dict[str, str | None]:
    """Return the columns that the user named, by role; raise if they are not a mapping from roles to names."""
    given = {} if columns is None else columns
    if not isinstance(given, Mapping) or not all(isinstance(name, str | None) for name in given.values()):
        wrong: object = columns
    elif (wrong := next((role for role in given if role not in roles), None)) is None:
        return dict(given)
    raise InputError(f"`columns` must map words of {', '.join(roles)} to names of columns or None; got {quote(wrong)}.")


def _find_column(name: str, names: Sequence[str], role: str) -> str:
    """Return a column's name as spelt in the table; raise if there is none, with the ``role`` that it was to have."""
    known = {_names.plain_name(name): name for name in names} | {name.strip().lower(): name for name in names}
    if (column := known.get(name.strip().lower()) or known.get(_names.plain_name(name))) is None:
        raise InputError(f"there is no column {quote(name)} to take for {role}; {list_columns(names)}.")
    return column
