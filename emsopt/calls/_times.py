"""Parse the times of calls, and convert them to the local time of a given time zone.

All cells of a column must have one form. A regular expression must match the whole text, because a misread date or UTC
offset would shift the hours of all calls.

=============  =====================================================================================================
part           forms
=============  =====================================================================================================
ISO 8601       ``2025-03-14``, ``2025/3/14``, ``2025.03.14``, ``20250314``, and after a T or a space ``16``, ``16:05``,
               ``16:05:30``, ``16:05:30.25``, ``1605``, ``160530``
other dates    ``3/14/2025``, ``14.3.25``, ``14-MAR-25``, ``2025 Mar 14``, ``March 14, 2025``, after a weekday or not;
               with these, also the times ``4:05 PM``, ``04.05.30 p.m.``
offset         ``Z``, ``-05``, ``-0500``, ``-05:00``, only after a time; up to 14 hours
numbers        seconds, ms, µs or ns since 1970 (in UTC); days since 30 December 1899, as in Excel; ``20250314160530``,
               ``202503141605`` and ``031420251605``
=============  =====================================================================================================

Two-digit years are 1969 to 2068. Whether the day or the month comes first is decided by all cells of all columns of
times: one number above 12 tells.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias, cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from .._files.columns import BLANK, others, texts
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
OFFSET = r"(?P<offset>[Zz]|[-+\u2212](?:0\d|1[0-4])(?::?[0-5]\d)?)?"
CLOCK = (
    r"(?P<hour>\d\d?)(?:(?P<colon>[:.h]?)(?P<minute>\d\d)(?:(?P=colon)(?P<second>\d\d)(?:[.,:]\d+)?)?)?"
    r"\s*(?P<half>[AaPp]\.?\s?[Mm]\.?)"
)
TIME = r"(?:(?:[T:]|,?\s+)" + CLOCK + "?" + r"\s*" + OFFSET + ")?"
WEEKDAY, MONTH = r"(?:[A-Za-zÀ-ÿ]{2,10}\.?,?\s+)?", r"(?P<month>[A-Za-zä]{3,10})\.?"
# The forms that a column may have. Of forms that fit as many cells, the first is taken.
COMPACT = re.compile(
    r"(?P<first>[0-3]?\d)(?P<middle>[0-3]\d)(?P<last>(?:19|20)\d\d)(?:(?P<hour>\d\d)(?P<minute>\d\d))?", re.ASCII
)
NUMERIC = re.compile(
    WEEKDAY + r"(?P<first>\d\d?)([-/. ])(?P<middle>\d\d?)\2(?P<last>\d{4}|\d\d)" + TIME,
    re.ASCII,
)
NUMBER = re.compile(r"\d{5,19}(?:\.\d*)?|\d\.\d+e\+1\d", re.ASCII)
OTHERS = (
    r"(?P<year>\d{4})([-/.])(?P<month>\d\d?)\2(?P<day>\d\d?)(?:T|\s+)" + CLOCK + r"\s*" + OFFSET,
    WEEKDAY + r"(?P<day>\d\d?)(?:st|nd|rd|th)?[-/. ]?\s*" + MONTH + r"[-/. ,]?\s*(?P<year>\d{4}|\d\d)" + TIME,
    WEEKDAY + MONTH + r"[-/ ]\s*(?P<day>\d\d?)(?:st|nd|rd|th)?(?:[-/ ]|,\s*)(?P<year>\d{4})" + TIME,
    r"(?P<year>\d{4})[-/. ]" + MONTH + r"[-/. ](?P<day>\d\d?)" + TIME,
    r"(?P<year>(?:19|20)\d\d)(?P<month>\d\d)(?P<day>\d\d)(?P<hour>\d\d)(?P<minute>\d\d)(?P<second>\d\d)?",
)
FORMS = (COMPACT, ISO, NUMERIC, *(re.compile(form, re.ASCII) for form in OTHERS), NUMBER)
# Groups of COMPACT and NUMERIC that hold year, month and day.
ORDERS = {"month first": ("last", "first", "middle"), "day first": ("last", "middle", "first")}
ORDERS["year first"] = ("first", "middle", "last")  # only two-digit years
MONTHS = {
    name: k + 1
    for k, name in enumerate(["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"])
}
MONTHS |= {"mär": 3, "mrz": 3, "mai": 5, "okt": 10, "dez": 12}
MOST_YEARS = 20  # a part of a date with more distinct values is not a year
CLOCK_ONLY = re.compile(CLOCK + "?", re.ASCII)
EPOCHS = (1.0, 1e-3, 1e-6, 1e-9)  # seconds per unit; times from 1980 to 2099 in these units do not overlap
EPOCH_FIRST, EPOCH_LAST = 315_532_800, 4_102_444_800
EXCEL_FIRST, EXCEL_LAST = 25_570, 73_051  # days from 30 December 1899 to 2 January 1970 and to 1 January 2100
SECONDS = re.compile(r"\d{1,4}(?:\.\d*)?", re.ASCII)
MIDNIGHT = re.compile(r"[T ]\s*(?:0?0:00(?::00(?:\.0+)?)?|12:00(?::00)?\s*[Aa][Mm])$")  # how programs end dates
MISSING = (*BLANK, "nat", "<na>")  # blank cells, also as `texts` writes those that pandas marks
SAMPLE = 50  # cells that decide the form of a column
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
    table: Table,
    key: str,
    time_zone: str | None,
    time_format: str | None,
    date: str | None = None,
    beside: Iterable[str] = (),
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
    beside : iterable of str
        Other columns of times, which may tell whether the day or the month comes first.

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
        times, moments, clock = _typed(cells)
        _check_years(times, table.where, cells)
        return _in_zone(times, moments, clock, time_zone)
    written = _dated(table, key, date)
    where = f"{table.where}, column {key!r}"
    times, offsets = _parse(written, time_format, where, (_written(table.frame[other]) for other in beside))
    there = np.array([text is not None for text in written])
    if (np.isnat(times) & there).any():
        _refuse(where, written, np.isnat(times) & there, time_format)
    _check_years(times, table.where, written)
    local = there & np.isnan(offsets)
    if local.any() and not local[there].all():
        k = int(np.argmax(local))
        raise InputError(
            f"{table.where}, row {k + 1}: {shown(written[k])} has no offset, but others do. "
            "Write all times with an offset or all without."
        )
    clock = "local" if local[there].all() else "as written" if np.nan_to_num(offsets).any() else "UTC"
    return _in_zone(times, _utc(times, offsets), clock, time_zone)


def read_stamps(
    table: Table, key: str, time_zone: str | None, time_format: str | None, beside: Iterable[str], calls: Times
) -> Times:
    """Read a column of times that a log may have beside the time of the call; what cannot be read becomes NaT.

    Parameters
    ----------
    table, key, time_zone, time_format, beside
        As for `read_times`. A format that fits no cell is ignored.
    calls : ndarray of datetime64[s], shape (rows,)
        Times of the calls. Stamps may also be times of day, or numbers: seconds since the call.

    Returns
    -------
    ndarray of datetime64[s], shape (rows,)
    """
    cells = table.frame[key]
    if pd.api.types.is_datetime64_any_dtype(cells.dtype):
        times, moments, clock = _typed(cells)
        return times if clock == "local" else _in_zone(times, moments, clock, time_zone)[0]
    written = _written(cells)
    what = kind(written)
    if what == "clock":
        return _next_clock(written, calls)
    if what == "seconds":
        seconds = np.array([float(text) if text and SECONDS.fullmatch(text) else np.nan for text in written])
        return calls + _rounded(seconds)
    where = f"{table.where}, column {key!r}"
    columns = list(beside)
    for layout in dict.fromkeys([time_format, None]):
        times, offsets = _parse(written, layout, where, (_written(table.frame[other]) for other in columns))
        if not np.isnat(times).all():
            break
    there = np.array([text is not None for text in written])
    if there.any() and np.isnat(times).all():
        _refuse(where, written, there, time_format)
    times[(times < EARLIEST) | (times >= LATEST)] = np.datetime64("NaT")
    if time_zone is not None and not np.isnan(offsets).all():
        times = _in_zone(times, _utc(times, offsets), "UTC", time_zone)[0]
    return times


def kind(cells: Iterable[object], time_format: str | None = None) -> str:
    """Return what most of the first cells are: "moment", "date", "clock" (time of day), "seconds", "number", or ""."""
    sample = list(islice((text for text in _written(pd.Series(list(cells), dtype=object)) if text), SAMPLE))
    enough = 0.8 * len(sample)
    if not sample:
        return ""
    if (
        time_format is not None
        and time_format not in ORDERS
        and (~np.isnat(_by_format(sample, time_format))).mean() > 0.8
    ):
        return "moment"
    if sum(CLOCK_ONLY.fullmatch(text) is not None and ":" in text for text in sample) >= enough:
        return "clock"
    if sum(SECONDS.fullmatch(text) is not None for text in sample) >= enough:
        return "seconds"
    form = _form(sample)
    matches = [match for text in sample if (match := form.fullmatch(text))]
    if len(matches) < enough:
        return ""
    clock = [group for group in ("hour", "minute", "second") if group in form.groupindex]
    if all(text.replace(".", "", 1).isdigit() for text in sample) and form is not ISO:
        return "number"
    if any(any(int(part or 0) for part in match.group(*clock)) for match in matches):
        return "moment"
    return "date"


def moment(value: object) -> np.datetime64:
    """Convert text, a date or a datetime without time zone to a local datetime64[s]."""
    found: np.datetime64[Any] = np.datetime64("NaT", "s")
    aware = getattr(value, "tzinfo", None) is not None
    if isinstance(value, str):
        (found,), (offset,) = _assembled([ISO.fullmatch(value.strip())], ISO, ("year", "month", "day"))
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
    return [None if len(text) < 5 and text.lower() in MISSING else text for text in texts(cells.tolist())]


def _dated(table: Table, key: str, date: str | None) -> list[str | None]:
    """Return a column of times as texts, each after the text of its date if there is a column of dates."""
    written = _written(table.frame[key])
    if date is None:
        return written
    if all(
        text is None or (text.isdigit() and len(text) <= 4) for text in written
    ):  # 5 stands for 0:05, 1605 for 16:05
        written = [text and f"{text.zfill(4)[:2]}:{text.zfill(4)[2:]}" for text in written]
    days = [day and MIDNIGHT.sub("", day) for day in _written(table.frame[date])]
    return [f"{day} {time}" if day and time else None for day, time in zip(days, written, strict=True)]


def _typed(cells: pd.Series[Any]) -> tuple[Times, pd.Series[pd.Timestamp], str]:
    """Return the times of a column of datetimes as written, the column itself, and its clock."""
    zone = getattr(cells.dtype, "tz", None)
    return cells.dt.tz_localize(None).to_numpy().astype("datetime64[s]"), cells, "local" if zone is None else str(zone)


def _utc(times: Times, offsets: FloatArray) -> pd.Series[pd.Timestamp]:
    """Return times with the given offsets (minutes; NaN for none) as a column of datetimes in UTC."""
    return pd.Series(times - np.nan_to_num(offsets).astype("timedelta64[m]")).dt.tz_localize("UTC")


def _next_clock(written: list[str | None], calls: Times) -> Times:
    """Return times of day as the first such times after calls; up to 12 hours before a call count as wrong stamps."""
    clocks = _assembled([text and CLOCK_ONLY.fullmatch(text) for text in written], CLOCK_ONLY, ())[0]
    since = (clocks.astype(np.int64) - calls.astype(np.int64) + 43200) % 86400 - 43200
    return np.where(np.isnat(clocks), clocks, calls + since.astype("timedelta64[s]"))


def _form(sample: Sequence[str]) -> re.Pattern[str]:
    """Return the form of most texts; `ISO` if no form fits any."""
    fits = [sum(form.fullmatch(text) is not None for text in sample) for form in FORMS]
    return FORMS[int(np.argmax(fits))] if any(fits) else ISO


def _parse(
    written: Sequence[str | None], time_format: str | None, where: str, beside: Iterable[Sequence[str | None]]
) -> tuple[Times, FloatArray]:
    """Return times as written, and their offsets, as `_assembled` does."""
    if time_format is not None and time_format not in ORDERS:
        return _by_format(written, time_format), np.full(len(written), np.nan)
    form = _form(list(islice(filter(None, written), SAMPLE)))
    if form is NUMBER:
        return _from_numbers(written)
    matches = [text and form.fullmatch(text) for text in written]
    if form not in (COMPACT, NUMERIC):
        return _assembled(matches, form, ("year", "month", "day"))
    orders = {time_format} if time_format else _orders(matches)
    for column in beside:
        if len(orders) == 1:
            break
        orders = (orders & _orders([text and _dates(text) for text in column])) or orders
    if len(orders) > 1:
        parts = " or ".join(order.split()[0] for order in sorted(orders))
        options = " or ".join(f"time_format={order!r}" for order in sorted(orders))
        example = shown(next(filter(None, written)))
        raise InputError(
            f"{where}: no value tells whether {parts} comes first in times such as {example}. Pass {options}."
        )
    return _assembled(matches, form, ORDERS[next(iter(orders))])


def _dates(text: str) -> re.Match[str] | None:
    """Return the match of a form in which the day or the month may come first."""
    return NUMERIC.fullmatch(text) or COMPACT.fullmatch(text)


def _orders(matches: Iterable[re.Match[str] | str | None]) -> set[str]:
    """Return the keys of `ORDERS` that all cells of a column allow; the first two if there is none."""
    parts = {match.group("first", "middle", "last") for match in matches if isinstance(match, re.Match)}
    if not parts:
        return set()
    first, middle, last = (np.array(part, dtype=int) for part in zip(*parts, strict=True))
    short = all(len(a) == len(b) == len(c) == 2 for a, b, c in parts)
    few = [len(np.unique(part)) <= MOST_YEARS for part in (first, last)]
    fits = {
        "month first": first.max() <= 12 and middle.max() <= 31 and few[1],
        "day first": first.max() <= 31 and middle.max() <= 12 and few[1],
        "year first": short and middle.max() <= 12 and last.max() <= 31 and few[0],
    }
    return {order for order, possible in fits.items() if possible} or {"month first", "day first"}


def _from_numbers(written: Sequence[str | None]) -> tuple[Times, FloatArray]:
    """Convert numbers to times, as days since 30 December 1899 or in the unit since 1970 in which most are in range."""
    values = np.array([float(text) if text and NUMBER.fullmatch(text) else np.nan for text in written])
    scaled = [np.where((values >= EXCEL_FIRST) & (values < EXCEL_LAST), 86400 * (values - 25_569), np.nan)]
    for unit in EPOCHS:
        seconds = np.floor(values * unit + 1e-6)
        scaled.append(np.where((seconds >= EPOCH_FIRST) & (seconds < EPOCH_LAST), seconds, np.nan))
    best = int(np.argmax([(~np.isnan(seconds)).sum() for seconds in scaled]))
    offset = np.nan if best == 0 else 0.0
    return np.datetime64(0, "s") + _rounded(scaled[best]), np.full(len(values), offset)


def _rounded(seconds: FloatArray) -> NDArray[np.timedelta64]:
    """Return seconds as timedelta64[s], with NaT for NaN."""
    whole = np.round(np.nan_to_num(seconds)).astype("timedelta64[s]")
    return np.where(np.isnan(seconds), np.timedelta64("NaT", "s"), whole)


def _assembled(
    matches: Sequence[re.Match[str] | str | None], form: re.Pattern[str], date: Sequence[str]
) -> tuple[Times, FloatArray]:
    """Return the times of matches of a form.

    Parameters
    ----------
    matches : sequence of match, empty str or None, length K
    form : pattern
    date : sequence of str
        Groups of the form that hold year, month and day; empty if it has only a time of day, which is then one of 1970.

    Returns
    -------
    times : ndarray of datetime64[s], shape (K,)
        As written, ignoring the offset; NaT without a match, and for days and times that do not exist.
    offsets : ndarray, shape (K,)
        Minutes to the east of UTC; NaN where there is no offset.
    """
    known = np.array([bool(match) for match in matches], dtype=bool)
    found = cast("list[re.Match[str]]", [match for match in matches if match])
    groups = [group for group in (*date, "hour", "minute", "second", "half", "offset") if group in form.groupindex]
    cells = (
        dict(zip(groups, zip(*(match.group(*groups) for match in found), strict=True), strict=True)) if found else {}
    )

    def part(group: str) -> IntArray:
        return np.array([int(cell) if cell else 0 for cell in cells.get(group, ["0"] * len(found))], dtype=np.int64)

    hour, minute, second = part("hour"), part("minute"), part("second")
    year, month, day = (
        np.full(len(found), 1970),
        np.ones(len(found), dtype=np.int64),
        np.ones(len(found), dtype=np.int64),
    )
    if found and date:
        names = cells[date[1]]
        worded = names[0][0].isalpha()
        month = np.array([MONTHS.get(name[:3].lower(), 0) for name in names]) if worded else part(date[1])
        year, day = part(date[0]), part(date[2])
        short = np.array([len(cell) == 2 for cell in cells[date[0]]])
        year = np.where(short, year + np.where(year < 69, 2000, 1900), year)
    if "half" in cells:
        half = np.array([cell[0].lower() if cell else "" for cell in cells["half"]], dtype="U1")
        hour = np.where((half == "p") & (hour < 12), hour + 12, np.where((half == "a") & (hour == 12), 0, hour))
        hour = np.where((half == "a") & (hour > 12), 24, hour)
    start = ((year - 1970) * 12 + month - 1).astype("datetime64[M]")
    length = ((start + 1).astype("datetime64[D]") - start.astype("datetime64[D]")).astype(np.int64)
    exists = (month >= 1) & (month <= 12) & (day >= 1) & (day <= length) & (hour < 24) & (minute < 60) & (second < 60)
    moments = start.astype("datetime64[D]").astype("datetime64[s]") + (
        86400 * (day - 1) + 3600 * hour + 60 * minute + second
    ).astype("timedelta64[s]")
    moments[~exists] = np.datetime64("NaT")
    times = np.full(len(matches), np.datetime64("NaT", "s"))
    times[known] = moments
    offsets = np.full(len(matches), np.nan)
    if "offset" in cells:
        minutes = {cell: _minutes(cell) for cell in set(cells["offset"])}
        offsets[known] = [minutes[cell] for cell in cells["offset"]]
    return times, offsets


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
