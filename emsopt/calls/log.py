"""Read logs of past calls: when and where they came, and how long each kept a unit busy.

======================  ==========================================================================================
column                  content
======================  ==========================================================================================
``time``                ISO 8601, ``2025-03-14 16:05`` or ``2025-03-14T16:05:00-05:00``; or a ``date`` beside it
``lon``, ``lat``        degrees (WGS 84); in GeoJSON, the Point of each feature
``service_min``         optional: minutes from dispatch until the unit was free again; blank if unknown
======================  ==========================================================================================

Other columns are ignored. Only aggregated counts leave the log, never individual calls.

**Service times** of 0 or less are recording errors, such as an end before its beginning. The call still
counts, its service time is treated as unknown, and `check_calls` reports the rows.

**Clock.** Local time is used, because the number of calls depends on the hour of the day. Times without an
offset are taken as local. Times with an offset are converted to ``time_zone``, or used as written if no zone
is given.
"""

from dataclasses import dataclass, field, replace
from types import MappingProxyType

import numpy as np
import pandas as pd

from .._files import columns as _columns
from .._validate import visible
from ..errors import InputError
from . import _points, _times

SERVICE = ("service_min",)
NAMES, MINUTES = ("name", "site", "station"), ("turnout_min", "service_min")
LONGEST_SERVICE_MIN = 24 * 60
LONGEST_NAME = 200


@dataclass(frozen=True, eq=False, repr=False)
class CallLog:
    """Calls in chronological order.

    Attributes
    ----------
    times : ndarray of datetime64[s], shape (K,)
        Local times.
    locations : ndarray, shape (K, 2)
        Longitude and latitude in degrees.
    service_min : ndarray, shape (K,), or None
        Minutes that each call kept a unit busy, with NaN where unknown; None if the file has no such column.
    no_service : ndarray of bool, shape (K,)
        Whether the recorded service time is 0 or less, which is treated as unknown.
    rows : ndarray of int, shape (K,)
        Row of each call in the file, from 1.
    clock : str
        How times were read: "local" (no offset was given), "UTC", "as written" or the name of a time zone.
    left_out : mapping of str to int
        Number of rows left out, by the missing item ("time" or "place").
    """

    times: np.ndarray
    locations: np.ndarray
    service_min: np.ndarray | None
    no_service: np.ndarray
    rows: np.ndarray
    clock: str = "local"
    left_out: MappingProxyType = field(default_factory=lambda: MappingProxyType({}))

    def __len__(self):
        return len(self.times)

    @property
    def hours(self):
        """Hour of the day of each call, 0 to 23, shape (K,)."""
        return (self.times.astype("datetime64[h]").astype(np.int64) % 24).astype(np.intp)

    @property
    def weekdays(self):
        """Weekday of each call, 0 for Monday, shape (K,)."""
        return ((self.times.astype("datetime64[D]").astype(np.int64) + 3) % 7).astype(np.intp)

    def where(self, kept):
        """Return the log of the calls selected by the mask ``kept``, shape (K,)."""
        try:
            kept = np.asarray(kept)
        except ValueError:  # rows of unequal length
            kept = np.empty(0)
        if kept.shape != self.times.shape or kept.dtype != bool:
            raise InputError(f"`kept` must be one truth value for each of {len(self)} calls; got shape {kept.shape}.")
        if not kept.any():
            raise InputError(f"none of the {len(self)} calls is selected; at least one is needed.")
        service = None if self.service_min is None else self.service_min[kept]
        return replace(
            self,
            times=self.times[kept],
            locations=self.locations[kept],
            service_min=service,
            no_service=self.no_service[kept],
            rows=self.rows[kept],
        )

    def between(self, start, end):
        """Return the log of calls from ``start`` up to, but not including, ``end``.

        Both are local dates or times: ISO 8601 text or `datetime` objects.
        """
        first, last = _times.moment(start), _times.moment(end)
        return self.where((self.times >= first) & (self.times < last))

    @property
    def repeated(self):
        """Whether each call has the same time and place as an earlier one, shape (K,)."""
        return (
            pd.DataFrame({"t": self.times, "x": self.locations[:, 0], "y": self.locations[:, 1]})
            .duplicated()
            .to_numpy()
        )

    def without_repeats(self):
        """Return the log without the calls that repeat the time and place of an earlier one."""
        return self.where(~self.repeated)

    def to_frame(self):
        """Return one row per call: ``time``, ``lon``, ``lat``, and ``service_min`` if the log has it."""
        columns = {"time": self.times, "lon": self.locations[:, 0], "lat": self.locations[:, 1]}
        return pd.DataFrame(columns | ({} if self.service_min is None else {"service_min": self.service_min}))

    def __repr__(self):
        first, last = (str(t)[:10] for t in self.times[[0, -1]])
        return f"<CallLog: {len(self):,} calls from {first} to {last}, {self.clock} time>"


def read_calls(source, *, time_zone=None, time_format=None):
    """Read a log of calls.

    Parameters
    ----------
    source : path_like, file, DataFrame or GeoDataFrame
        CSV or GeoJSON with the columns listed in the module's docstring, at most 256 MB (GeoJSON: 64 MB) and
        two million rows. An object with ``name`` and ``read`` counts as a file.
    time_zone : str, optional
        Time zone of the city, such as "America/Chicago", if times have an offset or are in UTC.
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
    table = _points.read_table(source, "calls", {*_times.TIME, _times.DATE, *SERVICE})
    points = table.degrees(blanks=True)
    times, clock = _times.read_times(table, time_zone, time_format)
    service, no_service = _service(table, len(times))
    no_time, no_place = np.isnat(times), np.isnan(points[:, 0])
    kept = ~no_time & ~no_place
    if not kept.any():
        raise InputError(f"{table.where}: no row has both a time and a place; rows read: {len(kept)}.")
    order = np.flatnonzero(kept)[np.argsort(times[kept], kind="stable")]
    _times.check_far(times[order], order + 1, table.where)
    left_out = {"time": int(no_time.sum()), "place": int((no_place & ~no_time).sum())}
    return CallLog(
        times=_frozen(times[order]),
        locations=_frozen(points[order]),
        service_min=None if service is None else _frozen(service[order]),
        no_service=_frozen(no_service[order]),
        rows=_frozen(order + 1),
        clock=clock,
        left_out=MappingProxyType({what: count for what, count in left_out.items() if count}),
    )


def read_stations(source):
    """Read a table of candidate sites in the form that `City.from_frames` takes.

    Parameters
    ----------
    source : path_like, file, DataFrame or GeoDataFrame
        CSV or GeoJSON with ``name``, ``lon``, ``lat`` and, optionally, ``turnout_min`` and ``service_min``.

    Returns
    -------
    DataFrame
        One row per site.

    Raises
    ------
    InputError
        If a column is missing, a place is blank, or a name is blank, not distinct, too long or contains
        invisible characters.
    """
    table = _points.read_table(source, "stations", {*NAMES, *MINUTES})
    key = table.column(NAMES)
    points = table.degrees(blanks=True)
    if np.isnan(points).any():
        raise InputError(
            f"{table.where}, row {int(np.argmax(np.isnan(points[:, 0]))) + 1}: the station has no place. "
            "Fill in 'lon' and 'lat'."
        )
    frame = table.frame.rename(columns={} if key is None else {key: "name"})
    frame = frame[[c for c in ("name", *MINUTES) if c in frame]]
    frame = frame.assign(lon=points[:, 0], lat=points[:, 1])
    for k, name in enumerate(frame.get("name", ())):
        check_name(_columns.text(name), f"{table.where}, row {k + 1}")
    frame.attrs.update(table.frame.attrs)
    return frame


def check_name(name, where):
    """Raise if a name is too long or contains invisible characters."""
    if len(name) > LONGEST_NAME:
        raise InputError(f"{where}: names may have at most {LONGEST_NAME} characters; got {len(name)}.")
    visible(name, where)


def _service(table, n_rows):
    """Return service times (NaN if unknown; None if all are) and a mask of those that are 0 or less."""
    key = table.column(SERVICE)
    if key is None:
        return None, np.zeros(n_rows, dtype=bool)
    expected = f"minutes above 0, at most {LONGEST_SERVICE_MIN}"
    minutes = table.numbers(key, expected, blanks=True, high=LONGEST_SERVICE_MIN)
    none = minutes <= 0
    minutes = np.where(none, np.nan, minutes)
    return (None if np.isnan(minutes).all() else minutes), none


def _frozen(array):
    array.flags.writeable = False
    return array
