"""Read logs of past calls: when and where each call came, and how long it kept a unit busy.

======================  ==========================================================================================
role of a column        content
======================  ==========================================================================================
``time``                when the call came, in any form that `emsopt.calls._time_forms` lists; or a time beside ``date``
``lon``, ``lat``        degrees (WGS 84); in GeoJSON, the Point of each feature
``place``               instead of ``lon`` and ``lat``: ``POINT (-93.1 44.9)``, or ``(44.9, -93.1)``, latitude first
``dispatched``,         optional: times of the unit that was first on scene, or of all units in a row of their own;
``en_route``,           times of day and seconds since the call are also read
``on_scene``,
``cleared``
``service_min``         optional: minutes from dispatch until the unit was free again; blank if unknown. Default: from
                        ``dispatched`` to ``cleared``
``unit``, ``station``,  optional: words
``priority``
``units_sent``          optional: number of units sent. Default: number of rows of the incident
``incident``            optional: name of the incident, if there may be one row per unit sent. Its rows are joined:
                        the first unit on scene is kept, with the earliest time of the call
======================  ==========================================================================================

Columns are found by their names and values; `CallLog.taken` tells which were taken, and the others are not kept.

**Single calls.** A log holds the time, place and details of every call, and so do its frames and its pickle. A preview
hides clock, units and exact places unless asked. Results made from the log say what they hold: a `Demand` and a `City`
hold counts only.

**Service times** of 0 or less are recording errors, such as an end before the beginning. The call still
counts, its service time is treated as unknown, and `check_calls` reports the rows.

**Clock.** Local time is used, because the number of calls depends on the hour of the day. Times without an
offset are taken as local. Times with an offset are converted to ``time_zone``, or used as written if no zone
is given.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from html import escape
from typing import IO, TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pandas as pd

from .. import _validate
from .._files.columns import blank, text
from .._types import PathLike
from ..errors import InputError
from . import _points, _roles, _times

if TYPE_CHECKING:
    from .._files.columns import Table
    from .._types import ArrayLike, BoolArray, FloatArray, IntArray, Times

Source: TypeAlias = PathLike | IO[Any] | pd.DataFrame
MINUTES = ("turnout_min", "service_min")
LONGEST_SERVICE_MIN = 24 * 60
LONGEST_NAME = 200
FILES = _points.ENDINGS  # endings of files that can be read
MOST_UNITS = 10  # rows per incident, on average


@dataclass(frozen=True, eq=False, repr=False)
class CallLog:
    """Calls in chronological order.

    Attributes
    ----------
    times : ndarray of datetime64[s], shape (K,)
        Local times, unless ``clock`` is "UTC" or "as written".
    locations : ndarray, shape (K, 2)
        Longitude and latitude in degrees.
    service_min : ndarray, shape (K,), or None
        Minutes that each call kept a unit busy, with NaN where unknown; None if no service time is known.
    no_service : ndarray of bool, shape (K,)
        Whether the recorded service time is 0 or less, which is treated as unknown.
    rows : ndarray of int, shape (K,)
        Row of each call in the file, from 1.
    clock : str
        How times were read: "local" (no offset was given), "UTC", "as written" or the name of a time zone.
    left_out : mapping of str to int
        Number of rows of the file that were left out, by what they lack ("time" or "place"); a row that lacks both
        counts under "time".
    details : DataFrame
        One row per call, with a column for each further role that the log has: ``dispatched``, ``en_route``,
        ``on_scene`` and ``cleared`` (datetime64[s] on the same clock, NaT where unknown), ``unit``, ``station`` and
        ``priority`` (str, None where unknown) and ``units_sent`` (float, NaN where unknown).
    taken : mapping of str to str
        Name of the column that was taken for each role.
    joined : int
        Number of rows that were joined with an earlier row of the same incident.
    spare : mapping of str to str
        Columns of times that were not taken, each with the missing role that its name suggests, or "".

    Examples
    --------
    >>> import emsopt as eo
    >>> calls, stations = eo.datasets.practice_calls()
    >>> calls
    <CallLog: 3,968 calls from 2025-01-06 to 2025-04-27, local time>
    >>> calls.to_frame().columns.tolist()[:3]
    ['time', 'lon', 'lat']
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
    spare: Mapping[str, str] = field(default_factory=dict)

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
        """Return the log of the calls selected by the mask ``kept``, shape (K,); raise if it selects none."""
        try:
            mask: np.ndarray[Any, Any] = np.asarray(kept)
        except ValueError:  # rows of unequal length
            mask = np.empty(0)
        if mask.shape != self.times.shape or mask.dtype != bool:
            raise InputError(f"`kept` must be a mask of {len(self)} truth values; got shape {mask.shape}.")
        if not mask.any():
            raise InputError(f"none of the {len(self)} calls is selected; at least one is needed.")
        arrays = {name: v[mask] for name, v in vars(self).items() if isinstance(v, np.ndarray)}
        return replace(self, details=self.details[mask].reset_index(drop=True), **arrays)

    def between(self, start: object, end: object) -> CallLog:
        """Return the log of calls from ``start`` up to, but not including, ``end``.

        Both are dates or times on the log's ``clock``, without an offset: ISO 8601 text or `datetime` objects. A date
        stands for its beginning, 0:00.

        Raises
        ------
        InputError
            If ``start`` is not before ``end``, or no call lies between them.
        """
        first, last = _times.moment(start), _times.moment(end)
        if first >= last:
            remedy = "Give them in the other order." if first > last else "A day ends at 0:00 of the next."
            raise InputError(f"`start` must be before `end`; got `start` {first} and `end` {last}. {remedy}")
        chosen = (self.times >= first) & (self.times < last)
        if not chosen.any():
            spans = f"the log has calls from {self.times[0]} to {self.times[-1]}"
            raise InputError(f"no call lies between `start` {first} and `end` {last}; {spans}.")
        return self.where(chosen)

    @property
    def repeated(self) -> BoolArray:
        """Whether each call has the same time and place as an earlier one, shape (K,)."""
        return self.to_frame().duplicated(["time", "lon", "lat"]).to_numpy()

    def without_repeats(self) -> CallLog:
        """Return the log without the calls that repeat the time and place of an earlier one."""
        return self.where(~self.repeated)

    def to_frame(self) -> pd.DataFrame:
        """Return one row per call: ``time``, ``lon``, ``lat``, ``service_min`` if known, and those of `details`."""
        columns = {"time": self.times, "lon": self.locations[:, 0], "lat": self.locations[:, 1]}
        columns |= {} if self.service_min is None else {"service_min": self.service_min}
        return pd.DataFrame(columns).join(self.details)

    def preview(self, rows: int = 5, *, exact: bool = False) -> pd.DataFrame:
        """Return the first calls, to check what was read.

        Parameters
        ----------
        rows : int
            Number of calls.
        exact : bool
            False: times count from each call (its own is 0), places are rounded to 0.01 degrees (about 1 km), and names
            of units and stations are left out. True: calls as they were read; do not pass such output on.

        Returns
        -------
        DataFrame
            Columns as in `to_frame`.
        """
        frame = self.to_frame().head(_validate.whole_number(rows, "rows", low=0))
        if _validate.truth(exact, "exact"):
            return frame
        clock = frame.columns.intersection(["time", *_roles.STAMPS])
        since = frame[clock].sub(frame["time"], axis=0)
        return frame.assign(**since).drop(columns=["unit", "station"], errors="ignore").round({"lon": 2, "lat": 2})

    def __repr__(self) -> str:
        first, last = (str(t)[:10] for t in self.times[[0, -1]])
        said = ", ".join(f"{role} from {name!r}" for role, name in self.taken.items() if role != name.strip().lower())
        said = f"; {said}" if said else ""
        joined = f"; {self.joined:,} rows joined with others of their incident" if self.joined else ""
        return f"<CallLog: {len(self):,} calls from {first} to {last}, {self.clock} time{joined}{said}>"

    def _repr_html_(self) -> str:
        rows = "".join(f"<tr><td>{role}</td><td>{escape(name)}</td></tr>" for role, name in self.taken.items())
        said = escape(repr(replace(self, taken={})).strip("<>"))
        return f"<p>{said}</p><table><tr><th>taken for</th><th>column</th></tr>{rows}</table>"


def read_calls(
    source: Source,
    columns: Mapping[str, str | None] | None = None,
    *,
    time_zone: str | None = None,
    time_format: str | None = None,
) -> CallLog:
    """Read a log of calls.

    Parameters
    ----------
    source : path_like, file, DataFrame or GeoDataFrame
        With the columns listed in the module's docstring, at most 256 MB (GeoJSON: 64 MB) and two million rows. A file
        ends in .csv, .tsv or .txt (separated by commas, semicolons, tabs, ``|`` or ``^``), .geojson or .json, all of
        these also with .gz, or .xlsx or .parquet (``pip install 'emsopt[tables]'``). An object with ``name`` and
        ``read`` counts as a file.
    columns : mapping of str to str, optional
        Names of columns by role, such as ``{"time": "Alarm", "unit": None}``; None leaves a role out. Columns of other
        roles are found by their names and values, and `CallLog.taken` holds what was taken.
    time_zone : str, optional
        Time zone of the city, such as "America/Chicago", to which times with an offset are converted. Times without
        an offset are refused if it is given.
    time_format : str, optional
        "day first" or "month first", if the times do not tell; or a format as for `datetime.strptime`, such as
        "%d.%m.%Y %H:%M", if they have a form that is not recognised.

    Returns
    -------
    CallLog
        Rows without a time or a place are left out and counted in `CallLog.left_out`.

    Raises
    ------
    InputError
        If a column is missing, a cell cannot be parsed, or a few calls are far from all others in time. The
        message names the row, counted from 1 below the header.

    Examples
    --------
    >>> import pandas as pd
    >>> read_calls(pd.DataFrame({"time": ["2025-03-14 16:05"], "lon": [-30.01], "lat": [45.02]}))
    <CallLog: 1 calls from 2025-03-14 to 2025-03-14, local time>
    """
    spare: dict[str, str] = {}
    with _points.rows_explained():
        table, taken = _points.read_table(source, "calls", _roles.call_columns(columns, time_format, spare))
        return replace(_log(table, taken, time_zone, time_format), spare=spare)


def _log(table: Table, taken: dict[str, str], time_zone: str | None, time_format: str | None) -> CallLog:
    """Return the log in a table, with the names of its columns by role."""
    key = {role: name.strip().lower() for role, name in taken.items()}
    for role in {"service_min", "units_sent"} & key.keys():
        table = table.with_points(key[role])
    places = _points.places(table, key)
    stamps = [role for role in _roles.STAMPS if role in key]
    columns = [key["date"] if "date" in key else key["time"], *(key[role] for role in stamps)]
    times, clock = _times.read_times(table, key["time"], time_zone, time_format, key.get("date"), columns)
    details = pd.DataFrame(index=range(len(times)))
    for role in stamps:
        details[role] = _times.read_stamps(table, key[role], time_zone, time_format, columns, times)
    for role in ("unit", "station", "priority"):
        if role in key:
            details[role] = _words(table, key[role])
    if "units_sent" in key:
        details["units_sent"] = table.numbers(key["units_sent"], "a number of units of at least 0", blanks=True, low=0)
    minutes = np.full(len(times), np.nan)
    if "service_min" in key:
        expected = f"minutes above 0, at most {LONGEST_SERVICE_MIN}"
        minutes = table.numbers(key["service_min"], expected, blanks=True, high=LONGEST_SERVICE_MIN)
    elif {"dispatched", "cleared"} <= key.keys():
        minutes = (details["cleared"] - details["dispatched"]).dt.total_seconds().to_numpy() / 60
        minutes = np.where(minutes > LONGEST_SERVICE_MIN, np.nan, minutes)
    no_service = minutes <= 0
    minutes[no_service] = np.nan
    no_time, no_place = np.isnat(times), np.isnan(places[:, 0])
    left_out = {"time": int(no_time.sum()), "place": int((no_place & ~no_time).sum())}
    if sum(left_out.values()) == len(times):
        raise InputError(f"{table.where}: no row has both a time and a place; rows read: {len(times)}.")
    order = np.argsort(times, kind="stable")
    order = order[~(no_time | no_place)[order]]
    _times.check_far(times[order], order + 1, table.where)
    joined = 0
    if "incident" in key:
        incident, first, units = _incidents(_words(table, key["incident"]).to_numpy()[order], times[order])
        kept = _first_on_scene(incident, details["on_scene"].to_numpy()[order] if "on_scene" in key else times[order])
        joined = len(order) - len(kept)
        if joined and "units_sent" not in key:
            details.loc[order, "units_sent"] = units.astype(float)
        times[order], order = times[order][first], order[kept]
        order = order[np.argsort(times[order], kind="stable")]
    return CallLog(
        times=times[order],
        locations=places[order],
        service_min=None if np.isnan(minutes).all() else minutes[order],
        no_service=no_service[order],
        rows=order + 1,
        clock=clock,
        left_out={what: count for what, count in left_out.items() if count},
        details=details.iloc[order].reset_index(drop=True),
        taken=taken,
        joined=joined,
    )


def _words(table: Table, key: str) -> pd.Series[Any]:
    """Return a column as text, with None for blank cells."""
    cells = table.frame[key].tolist()
    words = [None if empty else text(cell).strip() for cell, empty in zip(cells, blank(cells), strict=True)]
    return pd.Series(words, dtype=object)


def _incidents(names: np.ndarray[Any, Any], times: Times) -> tuple[IntArray, IntArray, IntArray]:
    """Return numbers for the incidents of rows in order of time; a name that returns after a day is a new incident.

    Returns
    -------
    incident, first, rows : ndarray of int, shape (K,)
        Number of the incident of each row, its first row, and how many rows it has. Rows without a name are incidents
        of their own. So are all rows if names have over `MOST_UNITS` rows on average: they do not name incidents.
    """
    code = pd.factorize(names)[0]  # -1 for None
    code = np.where(code < 0, code.max(initial=-1) + 1 + np.arange(len(code)), code)
    by_name = np.argsort(code, kind="stable")
    new = np.r_[True, (np.diff(code[by_name]) > 0) | (np.diff(times[by_name]) > np.timedelta64(1, "D"))]
    incident = np.empty(len(code), dtype=np.int64)
    incident[by_name] = np.cumsum(new) - 1
    if new.sum() * MOST_UNITS < len(code):
        incident = np.arange(len(code))
    _, first, rows = np.unique(incident, return_index=True, return_counts=True)
    return incident, first[incident], rows[incident]


def _first_on_scene(incident: IntArray, on_scene: Times) -> IntArray:
    """Return, in ascending order, the row of each incident with the earliest time; without any, its first row."""
    order = np.lexsort((np.arange(len(incident)), np.where(np.isnat(on_scene), _times.LATEST, on_scene), incident))
    return np.sort(order[np.unique(incident[order], return_index=True)[1]])


def read_stations(source: Source, columns: Mapping[str, str | None] | None = None) -> pd.DataFrame:
    """Read a table of candidate sites in the form that `City.from_frames` takes.

    Parameters
    ----------
    source : path_like, file, DataFrame or GeoDataFrame
        Formats as for `read_calls`, with ``lon`` and ``lat`` (or ``place``) and, optionally, ``name``, ``turnout_min``
        and ``service_min``. Columns are found by their names, such as ``X`` and ``Y`` or ``Facility_Name``.
    columns : mapping of str to str, optional
        Names of columns by role, as for `read_calls`.

    Returns
    -------
    DataFrame
        One row per site.

    Raises
    ------
    InputError
        If a column is missing, a place is blank, or a name is too long or contains invisible characters.

    Examples
    --------
    >>> import emsopt as eo
    >>> import pandas as pd
    >>> table = pd.DataFrame({"Station": ["North", "South"], "Longitude": [7.1, 7.2], "Latitude": [45.1, 45.0]})
    >>> eo.calls.read_stations(table)["name"].tolist()
    ['North', 'South']
    """
    with _points.rows_explained():
        table, taken = _points.read_table(source, "stations", _roles.site_columns(columns))
        key = {role: name.strip().lower() for role, name in taken.items()}
        for role in key.keys() & set(MINUTES):
            table = table.with_points(key[role])
        points = _points.places(table, key)
        frame = table.frame.rename(columns={name: role for role, name in key.items()})
        filled = np.array([not blank(row).all() for row in frame[list(key)].to_numpy(dtype=object)])
        if (np.isnan(points[:, 0]) & filled).any() or not filled.any():
            k = int(np.argmax(np.isnan(points[:, 0]) & filled))
            raise InputError(f"{table.where}, row {k + 1}: expected degrees, but a cell of the place is blank.")
        for k, name in enumerate(frame.get("name", ()), 1):
            check_name(text(name), f"{table.where}, row {k}")
        found = frame[[c for c in ("name", *MINUTES) if c in key]].assign(lon=points[:, 0], lat=points[:, 1])
        return found if filled.all() else found[filled].reset_index(drop=True)


def check_name(name: str, where: str) -> None:
    """Raise if a name is too long or contains invisible characters."""
    if len(name) > LONGEST_NAME:
        raise InputError(f"{where}: names may have at most {LONGEST_NAME} characters; got {len(name)}.")
    _validate.visible(name, where)
