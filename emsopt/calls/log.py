"""A log of past calls: when and where they came, and how long each kept a unit busy.

======================  ==========================================================================================
column                  content
======================  ==========================================================================================
``time``                ISO 8601, ``2025-03-14 16:05`` or ``2025-03-14T16:05:00-05:00``; or a ``date`` beside it
``lon``, ``lat``        degrees (WGS 84); of a GeoJSON file the Point of each feature
``service_min``         optional: minutes from dispatch until the unit was free again; blank where not known
======================  ==========================================================================================

Other columns are ignored, and nothing of a single call ever leaves a log but in counts.

**Service times** of 0 or less are no times: clocks that were pressed together, or an end before its beginning. The call
came, so it counts; its time is taken for not known, and `check_calls` says which rows those are.

**Clock.** What counts is the clock on the wall: the hour of the day decides how many calls there are. Times without an
offset are taken as that. Times with one are converted to ``time_zone``, or taken as they are written if none is given.
"""

import re
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import numpy as np
import pandas as pd

from ..errors import InputError
from . import _points

TIME = ("time", "datetime", "date_time", "timestamp")
SERVICE = ("service_min",)
OFFSET = r"^(.*:\d\d(?:\.\d+)?)\s*(Z|z|[+-]\d\d:?\d\d)$"
EARLIEST, LATEST = np.datetime64("1970-01-02"), np.datetime64("2100-01-01")
LONGEST_SERVICE_MIN = 24 * 60
LONGEST_NAME = 200


@dataclass(frozen=True, eq=False, repr=False)
class CallLog:
    """Calls in the order of time.

    Attributes
    ----------
    times : ndarray of datetime64[s], shape (K,)
        By the clock on the wall.
    locations : ndarray, shape (K, 2)
        Longitude and latitude in degrees.
    service_min : ndarray, shape (K,), or None
        Minutes that each call kept a unit busy, NaN where not known; None without such a column.
    no_service : ndarray of bool, shape (K,)
        Whether the file has a service time of 0 or less, which is taken for not known.
    rows : ndarray of int, shape (K,)
        Row of each call in the file, from 1.
    clock : str
        How times were read: "local" (no offset was given), "UTC", "as written" or the name of a time zone.
    left_out : mapping of str to int
        How many rows were left out, by what they lack.
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
        """Day of the week of each call, Monday being 0, shape (K,)."""
        return ((self.times.astype("datetime64[D]").astype(np.int64) + 3) % 7).astype(np.intp)

    def where(self, kept):
        """Return the log of those calls for which ``kept``, shape (K,), is true."""
        kept = np.asarray(kept)
        if kept.shape != self.times.shape or kept.dtype != bool:
            msg = f"`kept` must be one truth value for each of {len(self)} calls; got shape {kept.shape}."
            raise InputError(msg)
        if not kept.any():
            msg = f"none of the {len(self)} calls is left; at least one is needed."
            raise InputError(msg)
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
        """Return the log of calls from ``start`` up to, but not including, ``end``, ISO dates or times."""
        try:
            first, last = (np.datetime64(moment, "s") for moment in (start, end))
        except (ValueError, TypeError) as error:
            msg = f"`start` and `end` must be dates such as '2025-01-01'; got {start!r} and {end!r}."
            raise InputError(msg) from error
        return self.where((self.times >= first) & (self.times < last))

    @property
    def repeated(self):
        """Whether each call repeats an earlier one in time and place, shape (K,)."""
        return (
            pd.DataFrame({"t": self.times, "x": self.locations[:, 0], "y": self.locations[:, 1]})
            .duplicated()
            .to_numpy()
        )

    def without_repeats(self):
        """Return the log with one call for each time and place."""
        return self.where(~self.repeated)

    def to_frame(self):
        """Return one row a call: ``time``, ``lon``, ``lat``, and ``service_min`` if the log has it."""
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
        CSV or GeoJSON with the columns in the module's docstring; anything with ``name`` and ``read`` counts as a
        file. At most 256 MB and two million rows.
    time_zone : str, optional
        Zone of the city, such as "America/Chicago", if times have an offset or are in UTC.
    time_format : str, optional
        As `datetime.strptime` has it, such as "%d.%m.%Y %H:%M", if times are not ISO 8601.

    Returns
    -------
    CallLog
        Without the rows that lack a time or a place; `CallLog.left_out` counts them.

    Raises
    ------
    InputError
        If a column is missing, or a cell is filled but cannot be understood; the message names the row.

    Examples
    --------
    >>> import pandas as pd
    >>> read_calls(pd.DataFrame({"time": ["2025-03-14 16:05"], "lon": [-30.01], "lat": [45.02]}))
    <CallLog: 1 calls from 2025-03-14 to 2025-03-14, local time>
    """
    table = _points.read_table(source, "calls")
    points = table.points()
    times, clock = _times(table, time_zone, time_format)
    service, no_service = _service(table, len(times))
    no_time, no_place = np.isnat(times), np.isnan(points[:, 0])
    kept = ~no_time & ~no_place
    if not kept.any():
        msg = f"{table.where}: no row has both a time and a place; {len(kept)} were read."
        raise InputError(msg)
    order = np.flatnonzero(kept)[np.argsort(times[kept], kind="stable")]
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
    """Read a table of candidate sites, as `City.from_frames` takes it.

    Parameters
    ----------
    source : path_like, file, DataFrame or GeoDataFrame
        CSV or GeoJSON with ``name``, ``lon``, ``lat`` and, optionally, ``turnout_min`` and ``service_min``.

    Returns
    -------
    DataFrame
        One row a site.

    Raises
    ------
    InputError
        If a column is missing, a place is blank, or a name is blank, not distinct, too long or holds characters that
        are not to be seen.
    """
    table = _points.read_table(source, "stations")
    key = table.column(("name", "site", "station"), None)
    points = table.points()
    if np.isnan(points).any():
        msg = f"{table.where}, row {int(np.argmax(np.isnan(points[:, 0]))) + 1}: a station without a place; fill in 'lon' and 'lat'."
        raise InputError(msg)
    frame = table.frame.rename(columns={} if key is None else {key: "name"})
    frame = frame[[c for c in ("name", "turnout_min", "service_min") if c in frame]]
    frame = frame.assign(lon=points[:, 0], lat=points[:, 1])
    for k, name in enumerate(frame.get("name", ())):
        check_name(str(name), f"{table.where}, row {k + 1}")
    frame.attrs.update(table.frame.attrs)
    return frame


def check_name(name, where):
    """Refuse a name that could not be shown on one line as it is."""
    if len(name) > LONGEST_NAME:
        msg = f"{where}: a name of {len(name)} characters; at most {LONGEST_NAME} are allowed."
        raise InputError(msg)
    if not name.isprintable():  # line ends, terminal commands, characters that turn the direction of writing
        msg = f"{where}: the name {name!r} holds characters that cannot be seen. Remove them."
        raise InputError(msg)


def _service(table, n_rows):
    """Return service times, NaN where not known, or None if none is; and where they are 0 or less."""
    key = table.column(SERVICE, None)
    if key is None:
        return None, np.zeros(n_rows, dtype=bool)
    expected = f"minutes above 0, at most {LONGEST_SERVICE_MIN}"
    minutes = table.numbers(key, expected, low=-np.inf, high=LONGEST_SERVICE_MIN)
    none = minutes <= 0
    minutes = np.where(none, np.nan, minutes)
    return (None if np.isnan(minutes).all() else minutes), none


# -- times --------------------------------------------------------------------------------------------------------


def _times(table, time_zone, time_format):
    """Return datetime64[s] by the clock on the wall, NaT where blank, and how they were read."""
    key = table.column(TIME, None)
    if key is None and "date" not in table.frame:
        key = table.column(TIME, "a column 'time', such as 2025-03-14 16:05")
    cells = table.frame["date" if key is None else key]
    if pd.api.types.is_datetime64_any_dtype(cells.dtype):
        return _within(table, cells, *_from_timestamps(cells, time_zone))
    empty = _points.blank(cells)
    texts = cells.astype(str).str.strip()
    if key is not None and "date" in table.frame:
        dates = table.frame["date"]
        empty = empty | _points.blank(dates)
        texts = dates.astype(str).str.strip() + " " + texts
    texts = texts.mask(empty, None)
    found = texts.str.extract(OFFSET)
    aware = found[1].notna().to_numpy(dtype=bool)
    if time_format is not None:
        aware = np.zeros(len(texts), dtype=bool)
    if aware.any() and not aware[~empty].all():
        k = int(np.argmax(~aware & ~empty))
        msg = f"{table.where}, row {k + 1}: {texts.iloc[k]!r} has no offset, while other times do. Write all in one way."
        raise InputError(msg)
    plain = found[0].where(aware, texts)
    layout = "ISO8601" if time_format is None else _layout(time_format)
    moments = pd.to_datetime(plain, format=layout, errors="coerce")
    bad = moments.isna().to_numpy() & ~empty
    if bad.any() or _looks_like_numbers(plain[~empty]):
        k = int(np.argmax(bad)) if bad.any() else int(np.argmax(~empty))
        msg = (
            f"{table.where}, column {cells.name!r}, row {k + 1}: expected a time such as 2025-03-14 16:05, but got "
            f"{str(texts.iloc[k])[:80]!r}{_points.others(bad) if bad.any() else ''}. Write times like that, or say "
            "what is meant by `time_format`, such as "
            "'%d.%m.%Y %H:%M' or '%m/%d/%Y %I:%M %p'."
        )
        raise InputError(msg)
    if not aware.any():
        _refuse_zone(time_zone)
        return _within(table, texts, _seconds(moments), "local")
    minutes = _offsets(found[1].where(aware, "Z"))
    if time_zone is None:
        clock = "as written" if minutes.any() else "UTC"
        return _within(table, texts, _seconds(moments), clock)
    utc = (moments - pd.to_timedelta(minutes, unit="min")).dt.tz_localize("UTC")
    return _within(table, texts, _seconds(_on_the_wall(utc, time_zone)), time_zone)


def _from_timestamps(cells, time_zone):
    if getattr(cells.dtype, "tz", None) is None:
        _refuse_zone(time_zone)
        return _seconds(cells), "local"
    if time_zone is None:
        clock = "UTC" if str(cells.dtype.tz) == "UTC" else str(cells.dtype.tz)
        return _seconds(cells.dt.tz_localize(None)), clock
    return _seconds(_on_the_wall(cells, time_zone)), time_zone


def _on_the_wall(moments, time_zone):
    if not isinstance(time_zone, str) or not re.fullmatch(r"[A-Za-z0-9_+\-/]{1,60}", time_zone):
        msg = f"`time_zone` must be a name such as 'America/Chicago'; got {time_zone!r}."
        raise InputError(msg)
    try:
        return moments.dt.tz_convert(time_zone).dt.tz_localize(None)
    except (KeyError, ValueError, OSError) as error:
        msg = (
            f"`time_zone` {time_zone!r} is not known; names are such as 'America/Chicago' or 'Europe/Berlin'."
        )
        raise InputError(msg) from error


def _refuse_zone(time_zone):
    if time_zone is not None:
        msg = (
            f"`time_zone` is {time_zone!r}, but the times have no offset: they are taken as the clock on the wall. "
            "Leave it out, or, if they are in UTC, write them with a Z at the end."
        )
        raise InputError(msg)


def _layout(time_format):
    if not isinstance(time_format, str) or "%" not in time_format or "%z" in time_format.lower():
        msg = f"`time_format` must be such as '%d.%m.%Y %H:%M', without a zone; got {time_format!r}."
        raise InputError(msg)
    return time_format


def _looks_like_numbers(texts):
    """Whether times are bare numbers, which a reader of ISO 8601 would take for years."""
    return bool(texts.str.fullmatch(r"[\d.]+").any()) if len(texts) else False


def _offsets(texts):
    """Return minutes east of Greenwich."""
    digits = texts.str.upper().replace("Z", "+0000").str.replace(":", "")
    sign = np.where(digits.str[0] == "-", -1, 1)
    return sign * (digits.str[1:3].astype(int) * 60 + digits.str[3:5].astype(int)).to_numpy()


def _seconds(moments):
    return moments.to_numpy().astype("datetime64[s]")


def _within(table, cells, times, clock):
    """Refuse years that no call log has: a slip in one row would make the period absurdly long."""
    bad = (times < EARLIEST) | (times >= LATEST)
    if bad.any():
        k = int(np.argmax(bad))
        msg = (
            f"{table.where}, row {k + 1}: expected a time from 1970 to 2099, but got {str(cells.iloc[k])[:80]!r}"
            f"{_points.others(bad)}. Correct or remove it."
        )
        raise InputError(msg)
    return times, clock


def _frozen(array):
    array.flags.writeable = False
    return array
