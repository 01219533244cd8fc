"""Parse the times of calls, in local time.

A regular expression must match the whole text. A guessing parser is not used, because a misread UTC offset
would shift every hour of the day.

=============  =====================================================================================================
part           forms
=============  =====================================================================================================
date           ``2025-03-14``, ``2025/3/14``, ``2025.03.14``, ``20250314``
time           ``16``, ``16:05``, ``16:05:30``, ``16:05:30.25``, ``1605``, ``160530``, after a T or a space
offset         ``Z``, ``-05``, ``-0500``, ``-05:00``, only after a time; up to 14 hours
=============  =====================================================================================================
"""

import datetime
import re

import numpy as np
import pandas as pd

from .._files.columns import blank, others
from .._files.columns import texts as stripped
from .._validate import shown
from ..errors import InputError

TIME = ("time", "datetime", "date_time", "timestamp")
DATE = "date"
DAY = r"(?P<year>\d{4})(?P<dash>[-/.])?(?P<month>(?(dash)\d\d?|\d\d))(?(dash)(?P=dash))(?P<day>(?(dash)\d\d?|\d\d))"
ISO = re.compile(
    DAY + r"(?:(?:[Tt]|\s+)(?P<hour>\d\d|\d(?=:))"
    r"(?:(?P<colon>:)?(?P<minute>\d\d)(?:(?(colon):)(?P<second>\d\d)(?:[.,]\d+)?)?)?"
    r"\s*(?P<offset>[Zz]|[-+\u2212](?:0\d|1[0-4])(?::?[0-5]\d)?)?)?",
    re.ASCII,
)
PARTS = ("year", "month", "day", "hour", "minute", "second", "offset")
# Text in the position of an offset, after a time or after a date alone; "PM" is not a zone.
ZONE = re.compile(
    DAY + r"(?:(?:[Tt]|\s+)\d\d?(?::?\d\d){0,2}(?:[.,]\d+)?\s*(?![AaPp]\.?[Mm]\b)(?P<after_time>[-+\u2212\[(A-Za-z].*)"
    r"|\s*(?P<after_date>[Zz]|[-+\u2212]\d.*))",
    re.ASCII | re.DOTALL,
)
EARLIEST, LATEST = np.datetime64("1970-01-02"), np.datetime64("2100-01-01")
FAR = np.timedelta64(180, "D")
FEW = 10  # calls; in shorter logs the check for remote times is skipped


def read_times(table, time_zone, time_format):
    """Return local times as datetime64[s], with NaT for blanks, and how they were read."""
    key = table.column(TIME)
    cells = table.frame[table.needed((*TIME, DATE), "a column 'time', such as 2025-03-14 16:05")]
    if isinstance(cells.dtype, pd.DatetimeTZDtype) or pd.api.types.is_datetime64_dtype(cells.dtype):
        times, clock = _from_timestamps(cells, time_zone)
        return _within(table, cells, times), clock
    empty, texts = blank(cells), stripped(cells)
    if key is not None and DATE in table.frame:
        empty = empty | blank(table.frame[DATE])
        # pandas writes a date with a time of zero
        dates = [date.removesuffix(" 00:00:00") for date in stripped(table.frame[DATE])]
        texts = [f"{date} {time}" for date, time in zip(dates, texts, strict=True)]
    texts = pd.Series([None if nothing else text for text, nothing in zip(texts, empty, strict=True)], dtype=object)
    if time_format is not None:
        times = _by_format(texts, time_format)
        aware = np.zeros(len(texts), dtype=bool)
    else:
        times, minutes, aware = _from_iso(texts)
    bad = np.isnat(times) & ~empty
    if bad.any():
        raise _not_a_time(table, cells.name, texts, bad, time_format)
    times = _within(table, texts, times)
    if not aware.any():
        _refuse_zone(time_zone)
        return times, "local"
    if not aware[~empty].all():
        k = int(np.argmax(~aware & ~empty))
        raise InputError(
            f"{table.where}, row {k + 1}: {shown(texts[k])} has no offset, but other times do. Write all "
            "times in the same way."
        )
    if time_zone is None:
        return times, "as written" if minutes.any() else "UTC"
    utc = pd.Series(times - minutes.astype("timedelta64[m]")).dt.tz_localize("UTC")
    return _seconds(_on_the_wall(utc, time_zone)), time_zone


def moment(value):
    """Convert text, a date or a datetime without time zone to a local datetime64[s]."""
    found, aware = np.datetime64("NaT", "s"), getattr(value, "tzinfo", None) is not None
    if isinstance(value, str):
        (found,), _, (aware,) = _from_iso([value.strip()])
    elif isinstance(value, (datetime.date, np.datetime64)) and not aware and not pd.isna(value):
        found = np.datetime64(value, "s")
    if np.isnat(found) or aware:
        raise InputError(
            "`start` and `end` must be dates such as '2025-01-01' or times such as '2025-01-01 16:05', without an offset; "
            f"got {shown(value)}."
        )
    return found


def check_far(times, rows, where):
    """Raise if a few calls are far from all others in time, since they would distort the rates.

    Parameters
    ----------
    times : ndarray of datetime64[s]
        In ascending order.
    rows : ndarray of int
        Their rows in the file.
    where : str
        Name of the file in messages.
    """
    if len(times) < FEW:
        return
    group = np.r_[0, np.cumsum(np.diff(times) > FAR)]
    most = times[group == np.bincount(group).argmax()]
    first, last = most[0], most[-1]
    reach = max(FAR, 3 * (last - first))
    far = (times < first - reach) | (times > last + reach)
    if far.any() and far.sum() <= max(1, len(times) // 100):
        k = int(np.argmax(far))
        raise InputError(
            f"{where}, row {rows[k]}: the call of {str(times[k])[:10]}{others(far)} is far from the others, "
            f"which span {str(first)[:10]} to {str(last)[:10]}. Rates are calls per hour of the whole period and would be "
            "far too low. Correct or remove it."
        )


def _from_iso(texts):
    """Read ISO 8601.

    Parameters
    ----------
    texts : iterable of str or None

    Returns
    -------
    times : ndarray of datetime64[s], shape (K,)
        As written, ignoring the offset; NaT where the text matches none of the forms above.
    minutes : ndarray of int, shape (K,)
        UTC offset in minutes, positive to the east; 0 if there is no offset.
    aware : ndarray of bool, shape (K,)
        Whether there is an offset.
    """
    offsets, known = [], {}  # parse each distinct offset once

    def packed(text):
        """Return all digits as one number: 20250314160530."""
        match = text and ISO.fullmatch(text)
        year, month, day, hour, minute, second, offset = match.group(*PARTS) if match else (0,) * 6 + (None,)
        offsets.append(known.setdefault(offset, offset))
        number = (int(year) * 100 + int(month)) * 100 + int(day)
        return ((number * 100 + int(hour or 0)) * 100 + int(minute or 0)) * 100 + int(second or 0)

    number = np.fromiter(map(packed, texts), dtype=np.int64)
    number, second = np.divmod(number, 100)
    number, minute = np.divmod(number, 100)
    number, hour = np.divmod(number, 100)
    number, day = np.divmod(number, 100)
    year, month = np.divmod(number, 100)
    start = ((year - 1970) * 12 + month - 1).astype("datetime64[M]")
    days = ((start + np.timedelta64(1, "M")).astype("datetime64[D]") - start.astype("datetime64[D]")).astype(np.int64)
    right = (month >= 1) & (month <= 12) & (day >= 1) & (day <= days) & (hour < 24) & (minute < 60) & (second < 60)
    since = (((day - 1) * 24 + hour) * 60 + minute) * 60 + second
    times = start.astype("datetime64[s]") + since.astype("timedelta64[s]")
    times[~right] = np.datetime64("NaT", "s")
    minutes_of = {offset: _minutes(offset) for offset in known}
    minutes = np.array([minutes_of[offset] for offset in offsets], dtype=np.int64)
    return times, minutes, np.array([offset is not None for offset in offsets], dtype=bool)


def _minutes(offset):
    """Return the UTC offset in minutes for "Z", "-05", "-0500" or "-05:00", and 0 for None."""
    if offset in (None, "Z", "z"):
        return 0
    digits = offset[1:].replace(":", "").ljust(4, "0")
    return (1 if offset[0] == "+" else -1) * (int(digits[:2]) * 60 + int(digits[2:]))


def _by_format(texts, time_format):
    """Parse times as `datetime.strptime` does; return datetime64[s], with NaT where that fails."""
    example = "`time_format` must be such as '%d.%m.%Y %H:%M', with a year and without a zone"
    parts = re.findall("%.", time_format) if isinstance(time_format, str) else []
    if not {"%Y", "%y", "%G", "%c", "%x"}.intersection(parts) or {"%Z", "%z"}.intersection(parts):
        raise InputError(f"{example}; got {shown(time_format)}.")
    # pandas reads "now" and "today" as the current time, whatever the format
    numbered = texts.map(lambda text: text if text and re.search(r"\d", text) else None).astype(object)
    try:
        moments = pd.to_datetime(numbered, format=time_format, errors="coerce")
    except (ValueError, TypeError, LookupError, OverflowError, re.error) as error:
        raise InputError(f"{example}; {shown(time_format)} cannot be used: {error}.") from error
    if not pd.api.types.is_datetime64_dtype(moments.dtype):
        raise InputError(f"{example}; with {shown(time_format)} times have one.")
    return _seconds(moments)


def _not_a_time(table, column, texts, bad, time_format):
    """Build the error for cells that are not times."""
    k = int(np.argmax(bad))
    start = f"{table.where}, column {column!r}, row {k + 1}: expected "
    got = f"{shown(texts[k], most=80)}{others(bad)}."
    zone = ZONE.fullmatch(texts[k]) if time_format is None else None
    if zone is None and time_format is None:
        return InputError(
            f"{start}a time such as 2025-03-14 16:05, but got {got} Write times like that, or describe their form by "
            "`time_format`, such as '%d.%m.%Y %H:%M' or '%m/%d/%Y %I:%M %p'."
        )
    if zone is None:
        return InputError(
            f"{start}a time by `time_format` {shown(time_format)}, but got {got} Correct the cell or the format."
        )
    what, taken = zone["after_time"], "an offset or a time zone"
    if not what:
        what, taken = zone["after_date"], "an offset, which needs a time before it"
    return InputError(
        f"{start}a time such as 2025-03-14 16:05-05:00, but got {got} {shown(what, most=40)} looks like {taken}. Write "
        "offsets from UTC as Z, -05, -0500 or -05:00, up to 14 hours; or leave them out if times are local."
    )


def _from_timestamps(cells, time_zone):
    if not isinstance(cells.dtype, pd.DatetimeTZDtype):
        _refuse_zone(time_zone)
        return _seconds(cells), "local"
    if time_zone is None:
        clock = "UTC" if str(cells.dtype.tz) == "UTC" else str(cells.dtype.tz)
        return _seconds(cells.dt.tz_localize(None)), clock
    return _seconds(_on_the_wall(cells, time_zone)), time_zone


def _on_the_wall(moments, time_zone):
    if not isinstance(time_zone, str) or not re.fullmatch(r"[A-Za-z0-9_+\-/]{1,60}", time_zone):
        raise InputError(f"`time_zone` must be a name such as 'America/Chicago'; got {shown(time_zone)}.")
    try:
        return moments.dt.tz_convert(time_zone).dt.tz_localize(None)
    except (KeyError, ValueError, OSError) as error:
        msg = f"`time_zone` {time_zone!r} is not known; names are such as 'America/Chicago' or 'Europe/Berlin'."
        raise InputError(msg) from error


def _refuse_zone(time_zone):
    if time_zone is not None:
        raise InputError(
            f"`time_zone` is {shown(time_zone)}, but the times have no offset and are taken as local times. "
            "Leave out `time_zone`. If the times are in UTC, write them with a Z at the end."
        )


def _seconds(moments):
    return moments.to_numpy().astype("datetime64[s]")


def _within(table, cells, times):
    """Raise for years outside 1970 to 2099: one mistyped year would make the period far too long."""
    bad = (times < EARLIEST) | (times >= LATEST)
    if bad.any():
        k = int(np.argmax(bad))
        raise InputError(
            f"{table.where}, row {k + 1}: expected a time from 1970 to 2099, but got {shown(cells.iloc[k], str, 80)!r}"
            f"{others(bad)}. Correct or remove it."
        )
    return times
