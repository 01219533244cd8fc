"""Parse the times of calls, and convert them to the local time of a given time zone.

A regular expression must match the whole text. A parser that guesses the form is not used, because a misread UTC offset
would shift the hours of all calls.

=============  =====================================================================================================
part           forms
=============  =====================================================================================================
date           ``2025-03-14``, ``2025/3/14``, ``2025.03.14``, ``20250314``
time           ``16``, ``16:05``, ``16:05:30``, ``16:05:30.25``, ``1605``, ``160530``, after a T or a space
offset         ``Z``, ``-05``, ``-0500``, ``-05:00``, only after a time; up to 14 hours
=============  =====================================================================================================
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias, cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from .._files.columns import blank, others, texts
from .._validate import shown
from ..errors import InputError

if TYPE_CHECKING:
    from .._files.columns import Table
    from .._types import BoolArray, FloatArray, IntArray

Times: TypeAlias = NDArray[np.datetime64]

DAY = r"(?P<year>\d{4})(?P<dash>[-/.])?(?P<month>(?(dash)\d\d?|\d\d))(?(dash)(?P=dash))(?P<day>(?(dash)\d\d?|\d\d))"
ISO = re.compile(
    DAY + r"(?:(?:[Tt]|\s+)(?P<hour>\d\d|\d(?=:))"
    r"(?:(?P<colon>:)?(?P<minute>\d\d)(?:(?(colon):)(?P<second>\d\d)(?:[.,]\d+)?)?)?"
    r"\s*(?P<offset>[Zz]|[-+\u2212](?:0\d|1[0-4])(?::?[0-5]\d)?)?)?",
    re.ASCII,
)
PARTS = ("year", "month", "day", "hour", "minute", "second")
# Text in the position of an offset, after a time or after a date alone; "PM" is not a zone.
ZONE = re.compile(
    DAY + r"(?:(?:[Tt]|\s+)\d\d?(?::?\d\d){0,2}(?:[.,]\d+)?\s*(?![AaPp]\.?[Mm]\b)(?P<after_time>[-+\u2212\[(A-Za-z].*)"
    r"|\s*(?P<after_date>[Zz]|[-+\u2212]\d.*))",
    re.ASCII | re.DOTALL,
)
EARLIEST, LATEST = np.datetime64("1970-01-02"), np.datetime64("2100-01-01")
FAR = np.timedelta64(180, "D")
FEW = 10  # calls; in shorter logs the check for remote times is skipped


def read_times(
    table: Table, key: str, time_zone: str | None, time_format: str | None, date: str | None = None
) -> tuple[Times, str]:
    """Read a column of times.

    Parameters
    ----------
    table : Table
    key : str
        Name of the column of times.
    time_zone, time_format : str or None
        As for `emsopt.calls.read_calls`.
    date : str, optional
        Column of dates, if the times do not include them.

    Returns
    -------
    times : ndarray of datetime64[s], shape (rows,)
        Times in ``time_zone`` if it is given. Otherwise as written, each in its own offset if it has one. NaT for blank
        cells.
    clock : str
        How the times were read, as in `CallLog.clock`.
    """
    cells = table.frame[key]
    if pd.api.types.is_datetime64_any_dtype(cells.dtype):
        times = cells.dt.tz_localize(None).to_numpy().astype("datetime64[s]")
        _check_years(times, table.where, cells)
        zone = getattr(cells.dtype, "tz", None)
        return _in_zone(times, cells, "local" if zone is None else str(zone), time_zone)
    written = _written(cells)
    if date is not None:
        # pandas writes a date with the time 00:00:00
        days = [day and day.removesuffix(" 00:00:00") for day in _written(table.frame[date])]
        written = [f"{day} {time}" if day and time else None for day, time in zip(days, written, strict=True)]
    if time_format is None:
        times, offsets = _from_iso(written)
    else:
        times, offsets = _by_format(written, time_format), np.full(len(written), np.nan)
    there = np.array([text is not None for text in written])
    if (np.isnat(times) & there).any():
        _refuse(f"{table.where}, column {key!r}", written, np.isnat(times) & there, time_format)
    _check_years(times, table.where, written)
    local = there & np.isnan(offsets)
    if local.any() and not local[there].all():
        k = int(np.argmax(local))
        raise InputError(
            f"{table.where}, row {k + 1}: {shown(written[k])} has no offset, but others do. "
            "Write all times with an offset or all without."
        )
    offsets = np.nan_to_num(offsets)
    utc = pd.Series(times - offsets.astype("timedelta64[m]")).dt.tz_localize("UTC")
    clock = "local" if local[there].all() else "as written" if offsets.any() else "UTC"
    return _in_zone(times, utc, clock, time_zone)


def moment(value: object) -> np.datetime64:
    """Convert text, a date or a datetime without time zone to a local datetime64[s]."""
    found: np.datetime64[Any] = np.datetime64("NaT", "s")
    aware = getattr(value, "tzinfo", None) is not None
    if isinstance(value, str):
        (found,), (offset,) = _from_iso([value.strip()])
        aware = not np.isnan(offset)
    elif isinstance(value, (datetime.date, np.datetime64)) and not aware and not pd.isna(value):
        found = np.datetime64(cast("datetime.date", value), "s")
    if np.isnat(found) or aware:
        expected = "dates such as '2025-01-01' or times such as '2025-01-01 16:05', without an offset"
        raise InputError(f"`start` and `end` must be {expected}; got {shown(value)}.")
    return found


def hour_of_week(times: Times) -> IntArray:
    """Return the hours since Monday, 0:00, from 0 to 167, shape (K,)."""
    return (times.astype("datetime64[h]").astype(np.int64) + 72) % 168  # 1 January 1970 was a Thursday


def check_far(times: Times, rows: IntArray, where: str) -> None:
    """Raise if at most 1 % of the calls, or one call, are far from all others in time: they would distort the rates.

    The log is split wherever two successive calls are more than `FAR` apart. Calls are far if they lie more than `FAR`,
    or three times the length of the part with most calls if that is longer, before or after that part. Logs of fewer
    than `FEW` calls are not checked.

    Parameters
    ----------
    times : ndarray of datetime64[s]
        In ascending order.
    rows : ndarray of int
        Row of each call in the file.
    where : str
        Name of the file in messages.
    """
    if len(times) < FEW:
        return
    group = np.r_[0, np.cumsum(np.diff(times) > FAR)]
    first, last = times[group == np.bincount(group).argmax()][[0, -1]]
    reach = max(FAR, 3 * (last - first))
    far = (times < first - reach) | (times > last + reach)
    if far.any() and far.sum() <= max(1, len(times) // 100):
        k = int(np.argmax(far))
        raise InputError(
            f"{where}, row {rows[k]}: the call of {str(times[k])[:10]}{others(far)} is far from the others, which span "
            f"{str(first)[:10]} to {str(last)[:10]}, and would make all rates far too low. Correct or remove it."
        )


def _written(cells: pd.Series[Any]) -> list[str | None]:
    """Return a column as texts, with None for blank cells."""
    listed = cells.tolist()  # faster to iterate than a Series
    return [None if empty else text for text, empty in zip(texts(listed), blank(listed), strict=True)]


def _from_iso(written: Iterable[str | None]) -> tuple[Times, FloatArray]:
    """Parse ISO 8601.

    Returns
    -------
    times : ndarray of datetime64[s], shape (K,)
        As written, ignoring the offset; NaT where the text has none of the forms in the module's table, or names a day
        or time that does not exist.
    offsets : ndarray, shape (K,)
        Minutes to the east of UTC; NaN where there is no offset.
    """
    moments, offsets = [], []
    for text in written:
        match = ISO.fullmatch(text) if text else None
        moments.append(_moment(match) if match else None)
        offsets.append(match["offset"] if match else None)
    minutes = {offset: _minutes(offset) for offset in set(offsets)}
    return np.array(moments, dtype="datetime64[s]"), np.array([minutes[offset] for offset in offsets])


def _moment(match: re.Match[str]) -> datetime.datetime | None:
    """Return the date and time of a match of `ISO`, or None if such a day or time does not exist."""
    try:
        year, month, day, hour, minute, second = [int(part or 0) for part in match.group(*PARTS)]
        return datetime.datetime(year, month, day, hour, minute, second)
    except ValueError:
        return None


def _minutes(offset: str | None) -> float:
    """Return the minutes to the east of UTC for "Z", "-05", "-0500" or "-05:00", and NaN for None."""
    if offset is None:
        return np.nan
    digits = offset[1:].replace(":", "").ljust(4, "0")
    return (1 if offset[0] == "+" else -1) * (int(digits[:2]) * 60.0 + int(digits[2:]))


def _by_format(written: Sequence[str | None], time_format: str) -> Times:
    """Parse times as `datetime.strptime` does; return datetime64[s], with NaT where that fails.

    Raise if the format has no year, or has a time zone.
    """
    example = "`time_format` must be a form such as '%d.%m.%Y %H:%M', with a year and without a time zone"
    parts = re.findall("%.", time_format) if isinstance(time_format, str) else []
    if not {"%Y", "%y", "%G", "%c", "%x"}.intersection(parts) or {"%Z", "%z"}.intersection(parts):
        raise InputError(f"{example}; got {shown(time_format)}.")
    # pandas reads "now" and "today" as the current time, whatever the format
    numbered = [text if text and re.search(r"\d", text) else None for text in written]
    try:
        moments = pd.to_datetime(pd.Series(numbered, dtype=object), format=time_format, errors="coerce")
    except (ValueError, TypeError, LookupError, OverflowError, re.error) as error:
        raise InputError(f"{example}; {shown(time_format)} cannot be used: {error}.") from error
    return moments.to_numpy().astype("datetime64[s]")


def _refuse(where: str, written: Sequence[str | None], bad: BoolArray, time_format: str | None) -> NoReturn:
    """Raise the error for cells that are not times."""
    k = int(np.argmax(bad))
    text = written[k] or ""
    zone = ZONE.fullmatch(text)
    if time_format is not None:
        wanted, advice = f"a time in the form of `time_format` {shown(time_format)}", "Correct the cell or the format."
    elif zone is None:
        wanted = "a time such as 2025-03-14 16:05"
        advice = "Write times in this form, or describe theirs by `time_format`, such as '%d.%m.%Y %H:%M'."
    else:
        wanted = "a time such as 2025-03-14 16:05-05:00"
        what = "an offset or a time zone" if zone["after_time"] else "an offset, which needs a time before it"
        advice = (
            f"{shown(zone['after_time'] or zone['after_date'], most=40)} looks like {what}. Write offsets from UTC as "
            "Z, -05, -0500 or -05:00, up to 14 hours; or leave them out if times are local."
        )
    got = f"{shown(text, most=80)}{others(bad)}"
    raise InputError(f"{where}, row {k + 1}: expected {wanted}, but got {got}. {advice}")


def _in_zone(times: Times, moments: pd.Series[pd.Timestamp], clock: str, time_zone: str | None) -> tuple[Times, str]:
    """Return local times and how they were read, as in `CallLog.clock`.

    Without a time zone, ``times`` and ``clock`` are returned unchanged. With one, ``moments``, which have a UTC offset,
    are converted to it; if ``clock`` is "local", the offset is not known, and an error is raised.
    """
    if time_zone is None:
        return times, clock
    if clock == "local":
        remedy = "Leave it out if they are local, or end them with a Z if they are in UTC."
        raise InputError(f"`time_zone` is {shown(time_zone)}, but the times have no offset. {remedy}")
    with suppress(KeyError, ValueError, OSError):  # raised for unknown zones
        if isinstance(time_zone, str) and re.fullmatch(r"[A-Za-z0-9_+\-/]{1,60}", time_zone):
            local = moments.dt.tz_convert(time_zone).dt.tz_localize(None)
            return local.to_numpy().astype("datetime64[s]"), time_zone
    raise InputError(f"`time_zone` must be a name such as 'America/Chicago'; got {shown(time_zone)}.")


def _check_years(times: Times, where: str, cells: Iterable[object]) -> None:
    """Raise for times before 2 January 1970 or after 2099: one mistyped year would make the period far too long."""
    bad = (times < EARLIEST) | (times >= LATEST)
    if bad.any():
        k = int(np.argmax(bad))
        got = f"{shown(list(cells)[k], str, 80)!r}{others(bad)}"
        raise InputError(f"{where}, row {k + 1}: expected a time from 2 January 1970 to 2099, but got {got}.")
