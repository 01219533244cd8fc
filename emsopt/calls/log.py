"""Read logs of past calls, with their places, times and units, and tables of stations.

======================  ==========================================================================================
role of a column        content
======================  ==========================================================================================
``time``                when the call came, in any form that `emsopt.calls._time_forms` lists; or a time beside ``date``
``lon``, ``lat``        degrees (WGS 84), or x and y in the system ``crs``; in a geographic file, the Point of each row
``place``               instead of ``lon`` and ``lat``: ``POINT (-93.1 44.9)``, or ``(44.9, -93.1)``, latitude first, or
                        another form that `emsopt.calls._points` lists
``dispatched``,         optional: times of the unit that was first on scene, or of all units in a row of their own;
``en_route``,           times of day and seconds since the call are also read
``on_scene``,
``cleared``
``service_min``         optional: minutes from dispatch until the unit was free again; blank if unknown. Default: from
                        ``dispatched`` to ``cleared``
``unit``, ``station``,  optional: text
``priority``
``first_due``,          optional: names of the station that is first due there, and of the agency; see
``agency``              `emsopt.calls.dispatch`
``units_sent``          optional: number of units sent. Default: number of units in the rows of the incident
``incident``            optional: name of the incident, if there may be one row per unit, status or patient; rows are
                        joined as `emsopt.calls.rows` says
``status``,             optional: status of a unit, such as "On Scene", if each status has a row; and its time,
``status_time``         if it is not ``time``. ``patient``: identifier of a patient, if each patient has a row
``response_time``, ...  optional: elapsed times, see below
======================  ==========================================================================================

**Elapsed times**, such as 5:15 in a column "Unit Response Time", give stamps that the log lacks, and the seconds of
stamps of full minutes. Roles: ``handling_time`` (call to dispatch), ``turnout_time``, ``travel_time``,
``response_time`` (dispatch to arrival), ``total_response_time`` (call to arrival), ``scene_time`` (arrival to cleared)
and ``service_time`` (dispatch to cleared).

**Single calls.** A log, its frames and its pickle hold the time, place and details of every call; a `Demand` and a
`City` hold counts only.

**Clock.** Times without an offset are taken as local, as the number of calls depends on the hour of the day. Times with
an offset are converted to ``time_zone``, or used as written if no zone is given. The stamps of a call stay on the clock
that held when it came, so that durations are right if clocks change.
"""

from __future__ import annotations

from collections import ChainMap, Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from html import escape
from pathlib import PurePath
from typing import IO, Any, TypeAlias, cast

import numpy as np
import pandas as pd

from .._files.columns import HEADER_KEY, Table, are_blank
from ..errors import InputError, _validate
from ..errors._types import ArrayLike, BoolArray, FloatArray, IntArray, PathLike, Times
from ..errors._validate import quote
from . import _names, _points, _roles, _times
from .rows import Condition, compile_condition, join_rows, stamps_of_statuses

Source: TypeAlias = PathLike | IO[Any] | pd.DataFrame
MINUTE_ROLES = ("turnout_min", "service_min")
MOST_BAD_SHARE, MOST_BAD_ROWS = 0.02, 5  # rows that may be left out as unreadable: a share, and a number in any case


@dataclass(frozen=True, eq=False, repr=False)
class CallLog:
    """A log of K calls in chronological order.

    Attributes
    ----------
    times : ndarray of datetime64[s], shape (K,)
        Local times, unless ``clock`` is "UTC" or "as written".
    locations : ndarray, shape (K, 2)
        Longitude and latitude in degrees.
    service_min : ndarray, shape (K,), or None
        Minutes that each call kept a unit busy, with NaN where unknown; None if no service time is known.
    no_service : ndarray of bool, shape (K,)
        Whether the recorded service time is 0 or less, which is an error and treated as unknown.
    rows : ndarray of int, shape (K,)
        Row of each call in the file, from 1.
    clock : str
        How times were read: "local" (no offset was given), "UTC", "as written" or the name of a time zone.
    left_out : mapping of str to int
        Number of rows that were left out, by what they lack: "time", "place" (with a time) or "readable cells".
    details : DataFrame
        One row per call, with a column for each further role that the log has: stamps (datetime64[s] on the same
        clock, NaT where unknown), text (str, None where unknown), ``units_sent`` (float, NaN where unknown), and
        ``kind``, the text that means that a row may be no call (str, None for calls).
    taken : mapping of str to str
        Name of the column that was used for each role.
    joined, join_extent : int, tuple of float
        Number of rows that were joined with an earlier row of the same incident, and the longest time (min) and
        distance (km) from the first row of an incident to another.
    not_chosen : int or None
        Number of rows that ``where`` did not select; None without ``where``.
    others : mapping of (str, str) to int
        Number of rows that may be no calls, by a column and the text in it that means so.
    occupying : CallLog or None
        Rows that are no calls, but keep units busy; see `emsopt.planning.Settings.others`.
    spare : mapping of str to str
        Columns of times that have no role, each with the missing role that its name suggests, or "".
    n_rows, header : int
        Number of rows of the file, and the line that holds the header.
    """

    times: Times
    locations: FloatArray
    service_min: FloatArray | None
    no_service: BoolArray
    rows: IntArray
    clock: str
    left_out: Mapping[str, int]
    details: pd.DataFrame
    taken: Mapping[str, str]
    joined: int = 0
    join_extent: tuple[float, float] = (0.0, 0.0)
    not_chosen: int | None = None
    others: Mapping[tuple[str, str], int] = field(default_factory=dict)
    occupying: CallLog | None = None
    spare: Mapping[str, str] = field(default_factory=dict)
    n_rows: int = 0
    header: int = 1

    def __len__(self) -> int:
        return len(self.times)

    @property
    def hours_of_week(self) -> IntArray:
        """Hour of the week of each call: full hours since Monday, 0:00, from 0 to 167, shape (K,)."""
        return _times.hour_of_week(self.times)

    @property
    def hours(self) -> IntArray:
        """Hour of the day of each call, 0 to 23, shape (K,)."""
        return self.hours_of_week % 24

    @property
    def weekdays(self) -> IntArray:
        """Weekday of each call, 0 for Monday, shape (K,)."""
        return self.hours_of_week // 24

    def where(self, kept: ArrayLike) -> CallLog:
        """Return the log of the calls that a mask, (K,), selects, and `occupying` rows between them; raise if none."""
        mask: np.ndarray[Any, Any] = np.asarray(kept)
        if mask.shape != self.times.shape or mask.dtype != bool:
            raise InputError(f"`kept` must be a mask of {len(self)} truth values; got shape {mask.shape}.")
        if not mask.any():
            raise InputError(f"none of the {len(self)} calls is selected; at least one is needed.")
        arrays = {name: v[mask] for name, v in vars(self).items() if isinstance(v, np.ndarray)}
        if (rows := self.occupying) is not None:
            inside = (rows.times >= arrays["times"].min()) & (rows.times <= arrays["times"].max())
            rows = rows.where(inside) if inside.any() else None
        return replace(self, details=self.details[mask].reset_index(drop=True), occupying=rows, **arrays)

    def between(self, start: object, end: object) -> CallLog:
        """Return the log of calls from ``start`` up to, but not including, ``end``; raise if there are none.

        Both are ISO 8601 text or `datetime` objects on the log's ``clock``, without an offset; a date stands for 0:00.
        """
        first, last = _times.parse_moment(start), _times.parse_moment(end)
        chosen = (self.times >= first) & (self.times < last)
        if not chosen.any():
            spans = f"the log has calls from {self.times[0]} to {self.times[-1]}"
            remedy = "" if first < last else " `start` must be before `end`. A day ends at 0:00 of the next."
            raise InputError(f"no call lies between `start` {first} and `end` {last}; {spans}.{remedy}")
        return self.where(chosen)

    @property
    def repeats(self) -> BoolArray:
        """Whether each call has the same time and place as an earlier one, shape (K,)."""
        return self.to_frame().duplicated(["time", "lon", "lat"]).to_numpy()

    def without_repeats(self) -> CallLog:
        """Return the log without the calls that repeat the time and place of an earlier one."""
        return self.where(~self.repeats)

    def to_frame(self) -> pd.DataFrame:
        """Return one row per call: ``time``, ``lon``, ``lat``, ``service_min`` if known, and columns of `details`."""
        columns = {"time": self.times, "lon": self.locations[:, 0], "lat": self.locations[:, 1]}
        columns |= {} if self.service_min is None else {"service_min": self.service_min}
        return pd.DataFrame(columns).join(self.details)

    def preview(self) -> pd.DataFrame:
        """Return the first five calls, to check what was read, without data that could identify them.

        Stamps are times since the call, places are rounded to 0.01 degrees, and there are no units and stations.
        """
        frame = self.to_frame().head()
        clock = frame.columns.intersection(["time", *_names.STAMPS])
        since = frame[clock].sub(frame["time"], axis=0)
        return frame.assign(**since).drop(columns=["unit", "station"], errors="ignore").round({"lon": 2, "lat": 2})

    @property
    def joined_text(self) -> str:
        """Text on the number of joined rows and ``join_extent``; empty if no rows were joined."""
        minutes, km = self.join_extent
        away = f"at most {minutes:.0f} min and {km:.2f} km away"
        return f"{self.joined:,} rows joined with others of their incident, {away}" if self.joined else ""

    def __repr__(self) -> str:
        first, last = (str(t)[:10] for t in self.times[[0, -1]])
        parts = [
            f"{len(self):,} calls from {first} to {last}, {self.clock} time",
            f"{self.not_chosen:,} rows not chosen" if self.not_chosen else "",
            self.joined_text,
            f"header in line {self.header}" if self.header > 1 else "",
            ", ".join(f"{role} from {name!r}" for role, name in self.taken.items() if role != name.strip().lower()),
        ]
        return f"<CallLog: {'; '.join(filter(None, parts))}>"

    def _repr_html_(self) -> str:
        rows = "".join(f"<tr><td>{role}</td><td>{escape(name)}</td></tr>" for role, name in self.taken.items())
        said = escape(repr(replace(self, taken={})).strip("<>"))
        return f"<p>{said}</p><table><tr><th>taken for</th><th>column</th></tr>{rows}</table>"


def read_calls(
    source: CallLog | Source | Sequence[Source],
    columns: Mapping[str, str | None] | None = None,
    *,
    time_zone: str | None = None,
    time_format: str | None = None,
    crs: object = None,
    where: Condition | None = None,
    on_bad: str = "raise",
) -> CallLog:
    """Read a log of calls.

    Parameters
    ----------
    source : path_like, file, DataFrame or GeoDataFrame, or a list of these; or a CallLog, which is returned
        With columns for the roles of `emsopt.calls.log`, at most 256 MB (GeoJSON: 64 MB) and two million rows. A file
        ends in .csv, .tsv, .txt and the like (separated by commas, semicolons, tabs, ``|`` or ``^``), .geojson or
        .json, all of these also with .gz or alone in a .zip, .xlsx, .xls or .parquet (``emsopt[tables]``), or .shp or
        .gpkg (``emsopt[maps]``). An object with ``name`` and ``read`` counts as a file. The logs of a list, such as one
        per month, become one, with rows counted through them.
    columns : mapping of str to str, optional
        Names of columns by role, such as ``{"time": "Alarm", "unit": None}``; None or "none" leaves a role out. Columns
        of other roles are found by their names and values; `CallLog.taken` has all of them.
    time_zone : str, optional
        Time zone of the city, such as "America/Chicago", to which times are converted; all must have an offset then.
    time_format : str, optional
        "day first" or "month first", if the times do not tell; or a format as for `datetime.strptime`, such as
        "%d.%m.%Y %H:%M", if they have a form that is not recognised.
    crs : int or str, optional
        Reference system of coordinates that are not degrees, if the file does not name it: an EPSG number such as 3857
        or "EPSG:3857", or a definition by PROJ or WKT. Needs ``emsopt[maps]``.
    where : str or mapping, optional
        Which rows to read: an expression such as ``"Priority == 1 and Type != 'TRANSFER'"`` (numbers, texts, lists, ==,
        !=, <, <=, >, >=, in, and, or, not; names of columns with _ for other characters), or a mapping from a column to
        a value, None for a blank cell, or a list of values.
    on_bad : {"raise", "leave out"}
        What to do with rows that have a cell that cannot be read, or a time far from all others. If there are more than
        five of them, and more than 2 % of all rows, an error is raised in any case.

    Returns
    -------
    CallLog
        Rows without a time or a place are left out and counted; cells such as #N/A, NULL and 1900-01-01 count as blank.
        If a column is missing, a cell cannot be read, or a few calls are far from all others in time, an error names
        the row, counted from 1 below the header.

    Examples
    --------
    >>> read_calls(pd.DataFrame({"time": ["2025-03-14 16:05"], "lon": [-30.01], "lat": [45.02]}))
    <CallLog: 1 calls from 2025-03-14 to 2025-03-14, local time>
    """
    if isinstance(source, CallLog):
        if columns is None and where is None:
            return source
        raise InputError("`columns` and `where` are for tables, but a CallLog is read already: use `CallLog.where`.")
    _validate.choice(on_bad, "on_bad", ("raise", "leave out"))
    if isinstance(source, (list, tuple)):
        options: dict[str, Any] = {"time_zone": time_zone, "time_format": time_format, "crs": crs, "where": where}
        kept = [one for one in source if not _is_macos_metadata(one)]
        return _join_logs([read_calls(one, columns, on_bad=on_bad, **options) for one in kept])
    names, selects = ([], None) if where is None else compile_condition(where)
    unused_times = dict[str, str]()
    with _points.explain_rows():
        choose = _roles.call_column_chooser(columns, time_format, unused_times, chosen_by=names)
        table, taken = _points.read_table(cast("Source", source), "calls", choose, crs)
        by = [table.frame[taken.pop(_roles.CONDITION_PREFIX + name).strip().lower()].tolist() for name in names]
        unwanted = np.zeros(len(table.frame), bool) if selects is None else ~selects(by)
        if unwanted.all():
            raise InputError(f"{table.where}: `where` chooses none of the {len(unwanted):,} rows; got {quote(where)}.")
        others, kinds = _find_non_calls(table, taken, unwanted)
        log = _read_rows(table, taken, (time_zone, time_format), unwanted, on_bad)
    return replace(
        log,
        details=log.details.assign(kind=kinds[log.rows - 1]) if others else log.details,
        spare=unused_times,
        not_chosen=None if where is None else int(unwanted.sum()),
        others=others,
        header=table.frame.attrs.get(HEADER_KEY, 1),
    )


def _find_non_calls(table: Table, taken: dict[str, str], unwanted: BoolArray) -> tuple[dict[tuple[str, str], int], Any]:
    """Return `CallLog.others` and each row's text that means no call, or None; remove its columns from ``taken``."""
    columns = [taken.pop(role) for role in list(taken) if role.startswith(_roles.KIND_PREFIX)]
    found, kinds = dict[tuple[str, str], int](), np.full(len(unwanted), None, dtype=object)
    for name in sorted(columns):
        words = _points.read_text(table, name.strip().lower())
        counts = Counter(word for word in words[~unwanted] if word and _names.NON_CALL_WORDS.search(word))
        found |= {(name, word): n for word, n in counts.items()}
        kinds = np.where(words.isin(list(counts)), words, kinds)
    return found, kinds


def _read_rows(
    table: Table, taken: dict[str, str], clock: Sequence[str | None], unwanted: BoolArray, on_bad: str
) -> CallLog:
    """Return the log in a table without ``unwanted`` rows and, if ``on_bad`` is "leave out", unreadable ones."""
    bad = np.zeros(len(unwanted), bool)
    while True:
        try:
            log = _build_log(table, taken, clock, unwanted | bad)
            left_out = Counter(log.left_out) + Counter({"readable cells": int(bad.sum())})
            return replace(log, left_out=dict(left_out))
        except InputError as error:
            rows = np.flatnonzero(error.rows if error.rows is not None else [])
            if on_bad == "raise" or bad[rows].all():
                raise
            bad[rows] = True
            if bad.sum() > max(MOST_BAD_SHARE * (~unwanted).sum(), MOST_BAD_ROWS):
                raise


def _is_macos_metadata(source: object) -> bool:
    """Return whether a file has a name such as ``._calls.csv``, by which macOS adds its own files to others."""
    name = getattr(source, "name", source)
    return isinstance(name, (str, PurePath)) and PurePath(name).name.startswith("._")


# How attributes of several logs become one; of columns with the same role, that of the last log counts.
MERGE_FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys(("left_out", "others"), lambda counts: dict(sum(map(Counter, counts), Counter()))),
    **dict.fromkeys(("taken", "spare"), lambda roles: dict(ChainMap(*map(dict, reversed(roles))))),
    **dict.fromkeys(("joined", "n_rows"), sum),
    "not_chosen": lambda counts: None if counts[0] is None else sum(filter(None, counts)),
    "join_extent": lambda pairs: tuple(np.max(pairs, axis=0).tolist()),
    "header": max,
}


def _join_logs(logs: Sequence[CallLog]) -> CallLog:
    """Join several logs, such as one per month, into one, in order of time."""
    if len({log.clock for log in logs}) != 1:
        got = ", ".join(log.clock for log in logs) or "no log"
        raise InputError(f"logs must be one or more with times of the same clock; got {got}.")
    before = np.cumsum([0, *(log.n_rows for log in logs)])
    pairs = zip(logs, before[:-1], strict=True)
    parts = [log.to_frame().assign(rows=log.rows + n, no_service=log.no_service) for log, n in pairs]
    frame = pd.concat(parts, ignore_index=True).sort_values("time", kind="stable", ignore_index=True)
    own = {name: frame.pop(name).to_numpy() for name in ("rows", "no_service", "service_min") if name in frame}
    times, locations = frame.pop("time").to_numpy().astype("datetime64[s]"), frame[["lon", "lat"]].to_numpy()
    _times.check_time_outliers(times, own["rows"], "the logs together")
    details = frame.drop(columns=["lon", "lat"])
    words = details[details.columns.intersection([*_names.TEXT_ROLES, "kind"])].astype(object)
    details = details.assign(**words.where(words.notna(), None))
    merged = {name: merge([getattr(log, name) for log in logs]) for name, merge in MERGE_FUNCTIONS.items()}
    arrays: dict[str, Any] = {"times": times, "locations": locations, "service_min": None} | own
    return CallLog(**arrays, clock=logs[0].clock, details=details, **merged)


def _build_log(table: Table, taken: dict[str, str], clock: Sequence[str | None], unwanted: BoolArray) -> CallLog:
    """Return the log in a table, as `_read_rows`; raise if a cell cannot be read."""
    key = {role: name.strip().lower() for role, name in taken.items()}
    no_time, no_place = (
        np.logical_or.reduce([are_blank(table.frame[key[role]].tolist()) for role in roles if role in key])
        for roles in (("time", "date"), ("lon", "lat", "place"))
    )
    empty = no_time | no_place | unwanted  # nothing else in these rows matters, such as the words of a footer
    if empty.any():
        table = _blank_rows(table, empty)
    for role in {"service_min", "units_sent"} & key.keys():
        table = table.with_decimal_points(key[role])
    places = _points.read_places(table, key)
    times, details, read_as = _read_details(table, key, *clock)
    no_time |= np.isnat(times) & ~no_place
    no_place = ~no_time & (no_place | np.isnan(places[:, 0]))
    left_out = {"time": int((no_time & ~unwanted).sum()), "place": int((no_place & ~unwanted).sum())}
    order = np.argsort(times, kind="stable")
    order = order[~(no_time | no_place | unwanted)[order]]
    if not len(order):
        raise InputError(f"{table.where}: no row has both a time and a place; rows read: {len(times)}.")
    _times.check_time_outliers(times[order], order + 1, table.where)
    rows, times, places, join_extent = order + 1, times[order], places[order], (0.0, 0.0)
    details = details.iloc[order].reset_index(drop=True)
    if "incident" in key:
        names = _points.read_text(table, key["incident"])[order]
        joined = join_rows(names, times, places, details, "status" in key, "patient" in key)
        kept, times, details, join_extent = joined
        rows, places = rows[kept], places[kept]
    minutes, no_service = _times.service_minutes(table, key.get("service_min"), rows, details)
    return CallLog(
        times=times,
        locations=places,
        service_min=None if np.isnan(minutes).all() else minutes,
        no_service=no_service,
        rows=rows,
        clock=read_as,
        left_out={what: count for what, count in left_out.items() if count},
        details=details,
        taken=taken,
        joined=len(order) - len(rows),
        join_extent=join_extent,
        n_rows=len(unwanted),
    )


def _blank_rows(table: Table, rows: BoolArray) -> Table:
    """Return a table in which all cells of the masked ``rows``, (K,), are blank; whole numbers stay whole."""
    plain = {name: object for name, cells in table.frame.items() if cells.dtype.kind in "biuf"}
    return table._replace(frame=table.frame.astype(plain).apply(lambda cells: cells.mask(rows)))


def _read_details(
    table: Table, key: Mapping[str, str], time_zone: str | None, time_format: str | None
) -> tuple[Times, pd.DataFrame, str]:
    """Return the times of the calls, (K,), `CallLog.details` and `CallLog.clock`; ``key`` has columns by role."""
    stamps = [role for role in _names.STAMPS if role in key]
    columns = [key.get("date", key["time"]), *(key[role] for role in (*stamps, "status_time") if role in key)]
    times, utc, clock = _times.read_times(table, key["time"], time_zone, time_format, key.get("date"), columns)
    read = partial(_times.read_stamps, table, time_format=time_format, beside=columns, calls=times, utc=utc)
    details = pd.DataFrame({role: read(key[role]) for role in stamps}, range(len(times)))
    for role in _names.TEXT_ROLES:
        if role in key and role not in _names.JOINING_ROLES:
            details[role] = _points.read_text(table, key[role])
    if "units_sent" in key:
        details["units_sent"] = table.numbers(key["units_sent"], "a number of units of at least 0", blanks=True, low=0)
    if "status" in key:
        when = read(key["status_time"]) if "status_time" in key else times
        details = details.join(stamps_of_statuses(_points.read_text(table, key["status"]), when))
    details = _times.add_implied_stamps(details, times, {role: table.frame[name] for role, name in key.items()})
    return times, details, clock


def read_stations(
    source: Source, columns: Mapping[str, str | None] | None = None, *, crs: object = None
) -> pd.DataFrame:
    """Read a table of stations, one row each, as `City.from_frames` takes it; raise if a place is blank.

    Parameters
    ----------
    source : path_like, file, DataFrame or GeoDataFrame
        Formats as for `read_calls`, with ``lon`` and ``lat`` (or ``place``) and, optionally, ``name``, ``turnout_min``,
        ``service_min`` and ``agency``. Columns are found by their names, such as ``X`` and ``Y`` or ``Facility_Name``.
    columns, crs : optional
        As for `read_calls`.

    Examples
    --------
    >>> table = pd.DataFrame({"Station": ["North", "South"], "Longitude": [7.1, 7.2], "Latitude": [45.1, 45.0]})
    >>> read_stations(table)["name"].tolist()
    ['North', 'South']
    """
    with _points.explain_rows():
        table, taken = _points.read_table(source, "stations", _roles.site_column_chooser(columns), crs)
        key = {role: name.strip().lower() for role, name in taken.items()}
        for role in key.keys() & set(MINUTE_ROLES):
            table = table.with_decimal_points(key[role])
        points = _points.read_places(table, key)
        frame = table.frame.rename(columns={name: role for role, name in key.items()})
        filled = np.array([not are_blank(row).all() for row in frame[list(key)].to_numpy(dtype=object)])
        if (np.isnan(points[:, 0]) & filled).any() or not filled.any():
            k = int(np.argmax(np.isnan(points[:, 0]) & filled))
            raise InputError(f"{table.where}, row {k + 1}: expected degrees, but a cell of the place is blank.")
        known = [role for role in ("name", "agency", *MINUTE_ROLES) if role in key]
        found = frame[known].assign(lon=points[:, 0], lat=points[:, 1])
        if "agency" in key:
            found["agency"] = _points.read_text(table, key["agency"]).to_numpy()
        return found if filled.all() else found[filled].reset_index(drop=True)
