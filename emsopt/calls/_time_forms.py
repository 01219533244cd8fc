"""The forms of times that a column may have, and how texts in them become times.

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

import re
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any, cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from .._files.columns import BLANK, texts
from .._types import FloatArray, IntArray, Times
from .._validate import shown
from ..errors import InputError

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
MISSING = (*BLANK, "nat", "<na>")  # blank cells, also as `texts` writes those that pandas marks
SAMPLE = 50  # cells that decide the form of a column


def parse(
    written: Sequence[str | None], time_format: str | None, where: str, beside: Iterable[Sequence[str | None]]
) -> tuple[Times, FloatArray]:
    """Return times as written, and their offsets, as `assembled` does."""
    if time_format is not None and time_format not in ORDERS:
        return by_format(written, time_format), np.full(len(written), np.nan)
    form = _form(list(islice(filter(None, written), SAMPLE)))
    if form is NUMBER:
        return _from_numbers(written)
    matches = [text and form.fullmatch(text) for text in written]
    if form not in (COMPACT, NUMERIC):
        return assembled(matches, form, ("year", "month", "day"))
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
    return assembled(matches, form, ORDERS[next(iter(orders))])


def kind(cells: Iterable[object], time_format: str | None = None) -> str:
    """Return what most of the first cells are: "moment", "date", "clock" (time of day), "seconds", "number", or ""."""
    sample = list(islice((text for text in written_cells(pd.Series(list(cells), dtype=object)) if text), SAMPLE))
    enough = 0.8 * len(sample)
    if not sample:
        return ""
    if (
        time_format is not None
        and time_format not in ORDERS
        and (~np.isnat(by_format(sample, time_format))).mean() > 0.8
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


def assembled(
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


def by_format(written: Sequence[str | None], time_format: str) -> Times:
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


def whole_seconds(seconds: FloatArray) -> NDArray[np.timedelta64]:
    """Return seconds as timedelta64[s], with NaT for NaN."""
    whole = np.round(np.nan_to_num(seconds)).astype("timedelta64[s]")
    return np.where(np.isnan(seconds), np.timedelta64("NaT", "s"), whole)


def written_cells(cells: pd.Series[Any]) -> list[str | None]:
    """Return a column as texts, with None for blank cells."""
    return [None if len(text) < 5 and text.lower() in MISSING else text for text in texts(cells.tolist())]


def _form(sample: Sequence[str]) -> re.Pattern[str]:
    """Return the form of most texts; `ISO` if no form fits any."""
    fits = [sum(form.fullmatch(text) is not None for text in sample) for form in FORMS]
    return FORMS[int(np.argmax(fits))] if any(fits) else ISO


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
    return np.datetime64(0, "s") + whole_seconds(scaled[best]), np.full(len(values), offset)


def _minutes(offset: str | None) -> float:
    """Return the minutes to the east of UTC for "Z", "-05", "-0500" or "-05:00", and NaN for None."""
    if offset is None:
        return np.nan
    digits = offset[1:].replace(":", "").ljust(4, "0")
    return (1 if offset[0] == "+" else -1) * (int(digits[:2]) * 60.0 + int(digits[2:]))
