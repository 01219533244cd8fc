"""Read logs of past calls: when and where each call came, and how long it kept a unit busy.

======================  ==========================================================================================
column                  content
======================  ==========================================================================================
``time``                ISO 8601, ``2025-03-14 16:05`` or ``2025-03-14T16:05:00-05:00``; or a time beside ``date``
``lon``, ``lat``        degrees (WGS 84); in GeoJSON, the Point of each feature
``service_min``         optional: minutes from dispatch until the unit was free again; blank if unknown
======================  ==========================================================================================

Other columns are ignored. Only aggregated counts leave the log, never individual calls.

**Service times** of 0 or less are recording errors, such as an end before the beginning. The call still
counts, its service time is treated as unknown, and `check_calls` reports the rows.

**Clock.** Local time is used, because the number of calls depends on the hour of the day. Times without an
offset are taken as local. Times with an offset are converted to ``time_zone``, or used as written if no zone
is given.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import IO, TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pandas as pd

from .. import _validate
from .._files.columns import text
from .._types import PathLike
from ..errors import InputError
from . import _points, _times

if TYPE_CHECKING:
    from .._types import ArrayLike, BoolArray, FloatArray, IntArray

Source: TypeAlias = PathLike | IO[Any] | pd.DataFrame
COLUMNS = {  # what a column of a log holds, and the names that it may have
    "time": ("time", "datetime", "date_time", "timestamp"),
    "date": ("date",),
    "service_min": ("service_min",),
}
NAMES, MINUTES = ("name", "site", "station"), ("turnout_min", "service_min")
LONGEST_SERVICE_MIN = 24 * 60
LONGEST_NAME = 200


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
    """

    times: _times.Times
    locations: FloatArray
    service_min: FloatArray | None
    no_service: BoolArray
    rows: IntArray
    clock: str
    left_out: Mapping[str, int]

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
        return replace(self, **{name: v[mask] for name, v in vars(self).items() if isinstance(v, np.ndarray)})

    def between(self, start: object, end: object) -> CallLog:
        """Return the log of calls from ``start`` up to, but not including, ``end``.

        Both are dates or times on the log's ``clock``, without an offset: ISO 8601 text or `datetime` objects. A date
        stands for its beginning, 0:00.
        """
        first, last = _times.moment(start), _times.moment(end)
        return self.where((self.times >= first) & (self.times < last))

    @property
    def repeated(self) -> BoolArray:
        """Whether each call has the same time and place as an earlier one, shape (K,)."""
        return self.to_frame().duplicated(["time", "lon", "lat"]).to_numpy()

    def without_repeats(self) -> CallLog:
        """Return the log without the calls that repeat the time and place of an earlier one."""
        return self.where(~self.repeated)

    def to_frame(self) -> pd.DataFrame:
        """Return one row per call: ``time``, ``lon``, ``lat``, and ``service_min`` if the log has it."""
        columns = {"time": self.times, "lon": self.locations[:, 0], "lat": self.locations[:, 1]}
        return pd.DataFrame(columns | ({} if self.service_min is None else {"service_min": self.service_min}))

    def __repr__(self) -> str:
        first, last = (str(t)[:10] for t in self.times[[0, -1]])
        return f"<CallLog: {len(self):,} calls from {first} to {last}, {self.clock} time>"


def read_calls(source: Source, *, time_zone: str | None = None, time_format: str | None = None) -> CallLog:
    """Read a log of calls.

    Parameters
    ----------
    source : path_like, file, DataFrame or GeoDataFrame
        CSV or GeoJSON with the columns listed in the module's docstring, at most 256 MB (GeoJSON: 64 MB) and
        two million rows. An object with ``name`` and ``read`` counts as a file.
    time_zone : str, optional
        Time zone of the city, such as "America/Chicago", to which times with an offset are converted. Times without
        an offset are refused if it is given.
    time_format : str, optional
        Format as for `datetime.strptime`, such as "%d.%m.%Y %H:%M", if times are not ISO 8601.

    Returns
    -------
    CallLog
        Rows without a time or a place are left out and counted in `CallLog.left_out`.

    Raises
    ------
    InputError
        If a column is missing, a cell cannot be parsed, or a few calls are far from all others in time. The
        message names the row.

    Examples
    --------
    >>> import pandas as pd
    >>> read_calls(pd.DataFrame({"time": ["2025-03-14 16:05"], "lon": [-30.01], "lat": [45.02]}))
    <CallLog: 1 calls from 2025-03-14 to 2025-03-14, local time>
    """
    table = _points.read_table(source, "calls", {name for names in COLUMNS.values() for name in names})
    places = table.degrees(blanks=True)
    column = {role: table.column(names) for role, names in COLUMNS.items()}
    time, date = column["time"], column["date"]
    if time is None:  # the log has dates without a time of day
        time, date = table.needed(COLUMNS["date"], "a column 'time', such as 2025-03-14 16:05"), None
    times, clock = _times.read_times(table, time, time_zone, time_format, date)
    minutes = np.full(len(times), np.nan)
    if column["service_min"] is not None:
        expected = f"minutes above 0, at most {LONGEST_SERVICE_MIN}"
        minutes = table.numbers(column["service_min"], expected, blanks=True, high=LONGEST_SERVICE_MIN)
    no_service = minutes <= 0
    minutes[no_service] = np.nan
    no_time, no_place = np.isnat(times), np.isnan(places[:, 0])
    left_out = {"time": int(no_time.sum()), "place": int((no_place & ~no_time).sum())}
    if sum(left_out.values()) == len(times):
        raise InputError(f"{table.where}: no row has both a time and a place; rows read: {len(times)}.")
    order = np.argsort(times, kind="stable")
    order = order[~(no_time | no_place)[order]]
    _times.check_far(times[order], order + 1, table.where)
    return CallLog(
        times=times[order],
        locations=places[order],
        service_min=None if np.isnan(minutes).all() else minutes[order],
        no_service=no_service[order],
        rows=order + 1,
        clock=clock,
        left_out=MappingProxyType({what: count for what, count in left_out.items() if count}),
    )


def read_stations(source: Source) -> pd.DataFrame:
    """Read a table of candidate sites in the form that `City.from_frames` takes.

    Parameters
    ----------
    source : path_like, file, DataFrame or GeoDataFrame
        CSV or GeoJSON with ``lon``, ``lat`` and, optionally, ``name`` (or ``site`` or ``station``), ``turnout_min`` and
        ``service_min``.

    Returns
    -------
    DataFrame
        One row per site.

    Raises
    ------
    InputError
        If a column is missing, a place is blank, or a name is too long or contains invisible characters.
    """
    table = _points.read_table(source, "stations", {*NAMES, *MINUTES})
    lon, lat = table.degrees().T
    frame = table.frame.rename(columns={table.column(NAMES): "name"})
    for k, name in enumerate(frame.get("name", ()), 1):
        check_name(text(name), f"{table.where}, row {k}")
    return frame[[c for c in ("name", *MINUTES) if c in frame]].assign(lon=lon, lat=lat)


def check_name(name: str, where: str) -> None:
    """Raise if a name is too long or contains invisible characters."""
    if len(name) > LONGEST_NAME:
        raise InputError(f"{where}: names may have at most {LONGEST_NAME} characters; got {len(name)}.")
    _validate.visible(name, where)
