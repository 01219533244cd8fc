"""Parse texts as times, in the forms of the table below.

A form must match the whole text, as a misread date or UTC offset would shift the hours of all calls. The form of most
cells of a column is tried first.

=============  =====================================================================================================
part           forms
=============  =====================================================================================================
ISO 8601       ``2025-03-14``, ``2025/3/14``, ``2025.03.14``, ``20250314``, and after a T or a space ``16``, ``16:05``,
               ``16:05:30``, ``16:05:30.25``, ``1605``, ``160530``
other dates    ``3/14/2025``, ``14.3.25``, ``14-MAR-25``, ``2025 Mar 14``, ``March 14, 2025``, after a weekday or not;
               with these, also the times ``4:05 PM``, ``04.05.30 p.m.``
offset         ``Z``, ``UTC``, ``-05``, ``-0500``, ``GMT-05:00``, ``CDT`` (as in RFC 2822), only after a time; up to 14
               hours
numbers        seconds, ms, µs or ns since 1970 (in UTC); days since 30 December 1899, as in Excel; ``20250314160530``,
               ``202503141605`` and ``031420251605``
time of day    ``16:05``, ``4:05:30 PM``; on a day before 1970, as Access and Excel write it (``12/30/1899 16:05``); a
               fraction of a day (``0.67014``)
elapsed        ``5:15`` (minutes or hours first, whichever is likelier), ``0:05:15``, ``0 days 00:05:15``, ``PT5M15S``
=============  =====================================================================================================

24:00 is midnight at the end of a day. Two-digit years are 1969 to 2068. Whether the day or the month comes first is
decided by all cells of all columns of times: one number above 12 is enough.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain, islice
from typing import TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from .._files.columns import BLANKS, texts
from ..errors import Argument, InputError, Message
from ..errors._types import FloatArray, IntArray, Times
from ..errors._validate import quote

Matches: TypeAlias = Sequence[re.Match[str] | None]

ZONES = {"EST": -5, "EDT": -4, "CST": -6, "CDT": -5, "MST": -7, "MDT": -6, "PST": -8, "PDT": -7, "CET": 1, "CEST": 2}
ZONES |= {"Z": 0, "z": 0, "UTC": 0, "GMT": 0}
OFFSET = rf"(?:(?P<offset>{'|'.join(ZONES)}|(?:UTC|GMT)?[-+\u2212](?:0\d|1[0-4])(?::?[0-5]\d)?)(?:\s*\([A-Za-z ]+\))?)?"
DAY = r"(?P<year>\d{4})(?P<dash>[-/.])?(?P<month>(?(dash)\d\d?|\d\d))(?(dash)(?P=dash))(?P<day>(?(dash)\d\d?|\d\d))"
ISO = re.compile(
    DAY + r"(?:(?:[Tt]|\s+)(?P<hour>\d\d|\d(?=:))"
    r"(?:(?P<colon>:)?(?P<minute>\d\d)(?:(?(colon):)(?P<second>\d\d)(?:[.,]\d+)?)?)?"
    r"\s*" + OFFSET + ")?",
    re.ASCII,
)
CLOCK = (
    r"(?P<hour>\d\d?)(?:(?P<colon>[:.h]?)(?P<minute>\d\d)(?:(?P=colon)(?P<second>\d\d)(?:[.,:]\d+)?)?)?"
    r"\s*(?P<half>[AaPp]\.?\s?[Mm]\.?)"
)
TIME = r"(?:(?:[T:]|,?\s+)" + CLOCK + "?" + r"\s*" + OFFSET + ")?"
WEEKDAY, MONTH = r"(?:[A-Za-zÀ-ÿ]{2,10}\.?,?\s+)?", r"(?P<month>[A-Za-zä]{3,10})\.?"
# The forms that a column may have, the likeliest first: of forms that fit as many cells, the first is taken.
COMPACT_DATE = re.compile(
    r"(?P<first>[0-3]?\d)(?P<middle>[0-3]\d)(?P<last>(?:19|20)\d\d)(?:(?P<hour>\d\d)(?P<minute>\d\d))?", re.ASCII
)
NUMERIC_DATE = re.compile(WEEKDAY + r"(?P<first>\d\d?)([-/. ])(?P<middle>\d\d?)\2(?P<last>\d{4}|\d\d)" + TIME, re.ASCII)
LONG_NUMBER = re.compile(r"\d{5,19}(?:\.\d*)?|\d\.\d+e\+1\d", re.ASCII)
OTHER_FORMS = (
    r"(?P<year>\d{4})([-/.])(?P<month>\d\d?)\2(?P<day>\d\d?)(?:T|\s+)" + CLOCK + r"\s*" + OFFSET,
    WEEKDAY + r"(?P<day>\d\d?)(?:st|nd|rd|th)?[-/. ]?\s*" + MONTH + r"[-/. ,]?\s*(?P<year>\d{4}|\d\d)" + TIME,
    WEEKDAY + MONTH + r"[-/ ]\s*(?P<day>\d\d?)(?:st|nd|rd|th)?(?:[-/ ]|,\s*)(?P<year>\d{4})" + TIME,
    r"(?P<year>\d{4})[-/. ]" + MONTH + r"[-/. ](?P<day>\d\d?)" + TIME,
    rf"{WEEKDAY}{MONTH}\s+(?P<day>\d\d?)\s+(?P<hour>\d\d?):(?P<minute>\d\d):(?P<second>\d\d)\s*{OFFSET}\s+(?P<year>\d{{4}})",
    r"(?P<year>(?:19|20)\d\d)(?P<month>\d\d)(?P<day>\d\d)(?P<hour>\d\d)(?P<minute>\d\d)(?P<second>\d\d)?",
)
DATE_PARTS, CLOCK_PARTS = ("year", "month", "day"), ("hour", "minute", "second")
FORMS = (COMPACT_DATE, ISO, NUMERIC_DATE, *(re.compile(form, re.ASCII) for form in OTHER_FORMS), LONG_NUMBER)
LATER_FORMS = FORMS[1:]  # spreadsheets leave some cells of a column in another than the usual form
# Groups of COMPACT_DATE and NUMERIC_DATE with year, month and day; and the highest values of first, middle and last.
ORDERS = {"month first": ("last", "first", "middle"), "day first": ("last", "middle", "first")}
ORDERS["year first"] = ("first", "middle", "last")  # only two-digit years
HIGHEST_PARTS = {"month first": (12, 31, 9999), "day first": (31, 12, 9999), "year first": (99, 12, 31)}
MONTHS = {"jan": 1, "feb": 2, "mar": 3, "apr": 4, "may": 5, "jun": 6, "jul": 7, "aug": 8, "sep": 9, "oct": 10}
MONTHS |= {"nov": 11, "dec": 12, "mär": 3, "mrz": 3, "mai": 5, "okt": 10, "dez": 12}
MOST_YEARS = 20  # a log covers few years: a part of a date with more distinct values is not the year
CLOCK_ONLY = re.compile(CLOCK + "?", re.ASCII)
FRACTION = re.compile(r"0?\.\d{3,}|0(?:\.0*)?|\d(?:\.\d+)?[eE]-0?\d", re.ASCII)  # of a day
_PARTS = r"(?:(?P<first>\d+):)?(?P<middle>\d+):(?P<last>\d\d(?:\.\d+)?)"
ELAPSED_COLONS = re.compile(rf"(?:(?P<days>\d+) days?,?\s+)?{_PARTS}", re.ASCII)
ELAPSED_PARTS = ("days", "first", "middle", "last")  # groups that hold days, hours, minutes and seconds
ELAPSED_WORDS = re.compile(
    r"(?:P?T?)(?:(?P<first>\d+)\s*h[a-z]*\s*)?(?:(?P<middle>\d+)\s*m[a-z]*\s*)?(?:(?P<last>\d+(?:\.\d+)?)\s*s[a-z]*)?",
    re.ASCII | re.IGNORECASE,
)
DUMMY_DAY = re.compile(r"(?:0?1/0?0|0?0/0?1)/1900|1900-0[01]-00|0000-00-00")  # a day zero, before a time of day
FIRST_YEAR, DUMMY_DAYS = 1970, (["1", "1", "1970"], ["1", "1", "2000"])  # a time of an earlier year is a time of day
EPOCH_UNITS = (1.0, 1e-3, 1e-6, 1e-9)  # seconds per unit; times from 1980 to 2099 in these units do not overlap
EPOCH_FIRST, EPOCH_LAST = 315_532_800, 4_102_444_800
EXCEL_FIRST, EXCEL_LAST = 25_570, 73_051  # days from 30 December 1899 to 2 January 1970 and to 1 January 2100
PLAIN_NUMBER = re.compile(r"\d+(?:\.\d*)?|\.\d+|\d(?:\.\d+)?[eE]-0?\d", re.ASCII)
SECONDS = re.compile(r"\d{1,4}(?:\.\d*)?", re.ASCII)
LONGEST_BLANK = max(map(len, BLANKS))
LEAST_SHARE = 0.8  # share of the cells: some are blank, misspelt or footers
MOST_CELLS_COMPARED = 1000
USUAL_LAGS = 1800, 4 * 3600  # seconds before a call, as clocks differ, and after it
SAMPLE_SIZE = 50  # cells that decide the form of a column: parsing all would be slow


def parse_times(
    written: Sequence[str | None], time_format: str | None, where: str, beside: Iterable[Sequence[str | None]]
) -> tuple[Times, FloatArray]:
    """Parse texts to times as written, (K,), NaT if unreadable, and offsets in minutes east of UTC, (K,), NaN if none.

    If the texts leave the order of day and month open, the columns ``beside`` are read too; raise if they do not tell.
    """
    times, offsets = np.full(len(written), np.datetime64("NaT", "s")), np.full(len(written), np.nan)
    if time_format is not None and time_format not in ORDERS:
        return apply_format(written, time_format), offsets
    columns = chain([written], beside)  # a generator, as other columns are read only if this one is ambiguous
    usual = _likeliest_form(list(islice(filter(None, written), SAMPLE_SIZE)))
    rest = np.flatnonzero(np.array(written, object).astype(bool))
    for form in dict.fromkeys((usual, *LATER_FORMS)):
        cells = [written[k] for k in rest.tolist()]
        if form is LONG_NUMBER:
            times[rest], offsets[rest] = _times_of_numbers(cells, form is usual)
        else:
            matches = [form.fullmatch(text or "") for text in cells]
            ordered = form in (COMPACT_DATE, NUMERIC_DATE) and any(matches)
            order = _choose_order(matches, time_format, where, columns) if ordered else DATE_PARTS
            times[rest], offsets[rest] = times_of_matches(matches, form, order)
        rest = rest[np.isnat(times[rest])]
    return times, offsets


def _choose_order(
    matches: Matches, time_format: str | None, where: str, columns: Iterator[Sequence[str | None]]
) -> Sequence[str]:
    """Return the names of the groups with year, month and day; raise if no column of times tells their order."""
    orders = {time_format} if time_format else _possible_orders(matches)
    while len(orders) > 1 and (column := next(columns, None)) is not None:
        found = [NUMERIC_DATE.fullmatch(text or "") or COMPACT_DATE.fullmatch(text or "") for text in column]
        orders = (orders & _possible_orders(found)) or orders
    if len(orders) > 1 and not all(map(_has_dummy_date, filter(None, matches))):
        parts = " or ".join(order.split()[0] for order in sorted(orders))
        options = [part for order in sorted(orders) for part in (Argument("time_format", order), " or ")]
        example = quote(next(filter(None, matches)).string)
        said = f"{where}: no value tells whether {parts} comes first in times such as {example}. Pass "
        raise InputError(Message(said, *options[:-1], "."))
    return ORDERS[min(orders)]


def _has_dummy_date(match: re.Match[str]) -> bool:
    """Return whether a date is one that programs write before a time of day, such as 1899-12-30."""
    if match.re is LONG_NUMBER:
        return False
    day = match.group(*(("first", "middle", "last") if "last" in match.re.groupindex else DATE_PARTS))
    years = [int(part) for part in day if len(part) == 4 and part.isdigit()]
    return min(years, default=FIRST_YEAR) < FIRST_YEAR or sorted(part.lstrip("0") for part in day) in DUMMY_DAYS


def kind_of_cells(cells: Iterable[object], time_format: str | None = None) -> str:
    """Return what most of the first filled cells of a column are, or "" if they are no times.

    Kinds are "moment" (date and time), "date", "clock" (time of day, or elapsed time with colons), "fraction" (of a
    day), "spelt" (elapsed time with units, such as 5 min), "seconds" (at most four digits) and "number" (more digits).
    """
    sample = list(islice(filter(None, _iterate_texts(cells)), SAMPLE_SIZE))

    def most_fit(fits: Callable[[str], object]) -> bool:
        return sum(map(bool, map(fits, sample))) >= LEAST_SHARE * len(sample)

    if not sample:
        return ""
    if time_format not in (None, *ORDERS) and (~np.isnat(apply_format(sample, str(time_format)))).mean() > LEAST_SHARE:
        return "moment"
    if most_fit(lambda text: ELAPSED_COLONS.fullmatch(text) or (":" in text and CLOCK_ONLY.fullmatch(text))):
        return "clock"
    if most_fit(FRACTION.fullmatch) and re.search("[1-9]", "".join(filter(FRACTION.fullmatch, sample))):
        return "fraction"
    if most_fit(SECONDS.fullmatch):
        return "seconds"
    return _kind_of_dates(sample) or ("spelt" if most_fit(ELAPSED_WORDS.fullmatch) else "")


def _kind_of_dates(sample: Sequence[str]) -> str:
    """Return "moment", "date", "clock" or "number", as `kind_of_cells`, for cells with the form of a date; else ""."""
    form = _likeliest_form(sample)
    forms = dict.fromkeys((form, *LATER_FORMS))
    matches = [match for text in sample if (match := next(filter(None, (f.fullmatch(text) for f in forms)), None))]
    if len(matches) < LEAST_SHARE * len(sample):
        return ""
    if form is not ISO and all(text.replace(".", "", 1).isdigit() for text in sample):
        return "number"
    clock = "".join(part for match in matches for name, part in match.groupdict("").items() if name in CLOCK_PARTS)
    if not clock.strip("0"):
        return "date"
    return "clock" if len(matches) > 1 and all(map(_has_dummy_date, matches)) else "moment"


def times_of_day(written: Sequence[str | None], time_format: str | None = None) -> FloatArray:
    """Return the seconds since midnight of cells with a time, shape (K,); NaN for other cells."""
    if kind_of_cells(written) == "fraction":
        return np.round(86400 * _parse_numbers(written, PLAIN_NUMBER)) % 86400
    plain = [re.sub(r"^0 days ", "", text or "") for text in written]
    times = times_of_matches(list(map(CLOCK_ONLY.fullmatch, plain)), CLOCK_ONLY, ())[0]
    rest = np.flatnonzero(np.isnat(times))
    for layout in (time_format, "month first"):
        with suppress(InputError):  # raised for dates that may be read in two ways, which have the same clock
            times[rest] = parse_times([plain[k] for k in rest], layout, "", ())[0]
            break
    return np.where(np.isnat(times), np.nan, times.astype(np.int64) % 86400)


def elapsed_seconds(written: Sequence[str | None], typical: float, unit: float | None = None) -> FloatArray:
    """Convert texts of elapsed times to seconds, shape (K,); NaN for cells that are none.

    Numbers count ``unit`` seconds each. Without it, and for texts such as 5:15, the unit is the one with which the
    median comes closest to ``typical`` seconds.
    """
    scaled = _parse_numbers(written, PLAIN_NUMBER)
    colons, words = (_parse_parts(written, form) for form in (ELAPSED_COLONS, ELAPSED_WORDS))
    colon = ~np.isnan(colons[:, 3])
    parts = np.where(colon[:, None], colons, words)
    seconds = np.where(np.isnan(parts).all(axis=1), np.nan, np.nan_to_num(parts) @ (86400.0, 3600.0, 60.0, 1.0))
    # 5:15, which Excel writes 5:15:00
    whole = bool((colons[colon, 3] == 0).all() and not np.isnan(colons[colon, 1]).any())
    short = colon & np.isnan(colons[:, 0]) & (whole | np.isnan(colons[:, 1]))
    scaled[short] = seconds[short] / (3600 if whole else 60)
    seconds[short] = np.nan
    if np.isnan(seconds).all() and np.isnan(scaled).all():
        return times_of_day(written)
    units = (60.0, 3600.0) if colon.any() else (1.0, 60.0, 3600.0, 86400.0) if unit is None else (unit,)
    middle = float(np.median(scaled[scaled > 0])) if (scaled > 0).any() else 1.0
    best = min(units, key=lambda unit: abs(np.log(middle * unit / typical)))
    return np.where(np.isnan(seconds), np.round(scaled * best), np.round(seconds))


def _parse_numbers(written: Iterable[str | None], form: re.Pattern[str]) -> FloatArray:
    """Convert texts that match ``form`` to numbers, shape (K,); NaN for other texts."""
    return np.array([float(text) if text and form.fullmatch(text) else np.nan for text in written])


def _parse_parts(written: Sequence[str | None], form: re.Pattern[str]) -> FloatArray:
    """Return days, hours, minutes and seconds of texts of a form, shape (K, 4); NaN for missing parts and others."""
    matches = [form.fullmatch(text or "") for text in written]
    found = [match.groupdict() if match else {} for match in matches]
    return np.array([[match.get(part) for part in ELAPSED_PARTS] for match in found], dtype=float).reshape(-1, 4)


def are_elapsed(written: Sequence[str | None], starts: FloatArray, typical: float) -> bool:
    """Return whether cells such as 0:07:30 are elapsed times, of ``typical`` seconds, rather than times of day.

    Times of day mostly lie shortly after those of the calls, ``starts``, (K,), in seconds; others only by chance.
    """
    lasted, when = elapsed_seconds(written, typical), times_of_day(written)
    filled = np.flatnonzero(~np.isnan(lasted))[:MOST_CELLS_COMPARED]
    if not len(filled) or np.isnan(starts).all():
        return bool(len(filled) and np.isnan(when[filled]).mean() > 0.5)
    shuffled = np.random.default_rng(0).permuted([np.arange(len(filled))] * 20, axis=1)
    lag = (when[filled] - starts[filled][np.vstack([np.arange(len(filled)), shuffled])]) % 86400
    own, *others = ((lag <= USUAL_LAGS[1]) | (lag >= 86400 - USUAL_LAGS[0])).mean(axis=1)
    return bool(own < (1 + np.mean(others)) / 2 and np.median(lasted[filled]) < USUAL_LAGS[1])


def times_of_matches(matches: Matches, form: re.Pattern[str], date: Sequence[str]) -> tuple[Times, FloatArray]:
    """Convert matches of a form to times as written, (K,), and offsets in minutes east of UTC, (K,), NaN if none.

    ``date`` names the groups with year, month and day; without them, the day is 1 January 1970. Times are NaT without
    a match, and for days and times that do not exist.
    """
    times, offsets = np.full(len(matches), np.datetime64("NaT", "s")), np.full(len(matches), np.nan)
    found = [k for k, match in enumerate(matches) if match]
    if not found:
        return times, offsets
    groups = [group for group in (*date, *CLOCK_PARTS, "half", "offset") if group in form.groupindex]
    rows = [match.group(*groups) for match in matches if match]
    cells = dict(zip(groups, zip(*rows, strict=True), strict=True))
    days = _to_dates(*(cells[group] for group in date)) if date else np.zeros(len(found), "datetime64[D]")
    hour, minute, second = (_integers(cells.get(part, [""] * len(found))) for part in CLOCK_PARTS)
    if "half" in cells:
        hour = _to_24_hours(hour, cells["half"])
    seconds = 3600 * hour + 60 * minute + second
    exists = (seconds <= 86400) & (minute < 60) & (second < 60)
    times[found] = np.where(exists, days + seconds.astype("timedelta64[s]"), np.datetime64("NaT"))
    if "offset" in cells:
        minutes = {cell: _offset_minutes(cell) for cell in set(cells["offset"])}
        offsets[found] = [minutes[cell] for cell in cells["offset"]]
    return times, offsets


def _to_24_hours(hour: IntArray, half: Sequence[str | None]) -> IntArray:
    """Convert hours, (K,), with "AM", "PM" or neither to hours of the day; 25 for such as 13 AM."""
    sign = np.array([(text or " ")[0].lower() for text in half])
    morning, evening = sign == "a", sign == "p"
    return np.select([evening & (hour < 12), morning & (hour >= 12)], [hour + 12, np.where(hour == 12, 0, 25)], hour)


def _to_dates(year: Sequence[str], month: Sequence[str], day: Sequence[str]) -> Times:
    """Convert texts of years, months and days to dates, shape (K,), NaT for dates that do not exist."""
    of_year = _integers(month) if month[0].isdigit() else np.array([MONTHS.get(name[:3].lower(), 0) for name in month])
    century = [0 if len(text) != 2 else 2000 if text < "69" else 1900 for text in year]
    start = (12 * (_integers(year) + century - 1970) + of_year - 1).astype("datetime64[M]")
    days = start.astype("datetime64[D]") + (_integers(day) - 1)
    exists = (of_year >= 1) & (of_year <= 12) & (days.astype("datetime64[M]") == start)
    return np.where(exists, days, np.datetime64("NaT"))


def _integers(cells: Iterable[str | None]) -> IntArray:
    """Convert texts of digits to whole numbers, shape (K,), 0 for empty ones."""
    return np.array([int(cell or 0) for cell in cells], dtype=np.int64)


def apply_format(written: Sequence[str | None], time_format: str) -> Times:
    """Parse times as `datetime.strptime`, (K,), NaT where that fails; raise if the format has no year or has a zone."""
    example = "`time_format` must be a form such as '%d.%m.%Y %H:%M', with a year and without a time zone"
    parts = re.findall("%.", time_format) if isinstance(time_format, str) else []
    if not {"%Y", "%y", "%G", "%c", "%x"}.intersection(parts) or {"%Z", "%z"}.intersection(parts):
        raise InputError(f"{example}; got {quote(time_format)}.")
    # pandas reads "now" and "today" as the current time, whatever the format
    numbered = [text if text and re.search(r"\d", text) else None for text in written]
    try:
        moments = pd.to_datetime(pd.Series(numbered, dtype=object), format=time_format, errors="coerce")
    except (ValueError, TypeError, LookupError, OverflowError, re.error) as error:
        raise InputError(f"{example}; {quote(time_format)} cannot be used: {error}.") from error
    return moments.to_numpy().astype("datetime64[s]")


def round_seconds(seconds: FloatArray) -> NDArray[np.timedelta64]:
    """Round seconds, shape (K,), to timedelta64[s], with NaT for NaN."""
    whole = np.round(np.nan_to_num(seconds)).astype("timedelta64[s]")
    return np.where(np.isnan(seconds), np.timedelta64("NaT", "s"), whole)


def written_cells(cells: Iterable[object]) -> list[str | None]:
    """Return cells as texts, with None for blank cells, and "1900-01-01" for impossible days such as 1900-01-00."""
    return list(_iterate_texts(cells.tolist() if isinstance(cells, pd.Series) else cells))


def _iterate_texts(cells: Iterable[object]) -> Iterator[str | None]:
    """Yield cells as texts, as `written_cells` returns them."""
    for cell in cells:
        text = cell.strip() if isinstance(cell, str) else texts([cell])[0]
        if len(text) <= LONGEST_BLANK and text.lower() in BLANKS:
            yield None
        else:
            yield DUMMY_DAY.sub("1900-01-01", text) if "1900" in text or "0000-" in text else text


def _likeliest_form(sample: Sequence[str]) -> re.Pattern[str]:
    """Return the form that matches most texts; `ISO` if none matches any."""
    fits = [sum(form.fullmatch(text) is not None for text in sample) for form in FORMS]
    return FORMS[int(np.argmax(fits))] if any(fits) else ISO


def _possible_orders(matches: Matches) -> set[str]:
    """Return the keys of `ORDERS` that fit all dates of a column; "month first" and "day first" if none does."""
    parts = {match.group("first", "middle", "last") for match in matches if match}
    if not parts:
        return set()
    cells = np.array(list(parts))
    numbers = pd.DataFrame(cells.astype(int), columns=["first", "middle", "last"])
    possible = set()
    for order, highest in HIGHEST_PARTS.items():
        few = numbers[ORDERS[order][0]].nunique() <= MOST_YEARS
        if few and (numbers.max().to_numpy() <= highest).all():
            possible.add(order)
    if not (np.char.str_len(cells) == 2).all():
        possible.discard("year first")
    return possible or {"month first", "day first"}


def _times_of_numbers(written: Sequence[str | None], usual: bool) -> tuple[Times, FloatArray]:
    """Convert numbers to times and offsets, (K,): days since 1899 or, if ``usual`` and likelier, seconds since 1970."""
    values = _parse_numbers(written, LONG_NUMBER)
    scaled = [np.where((values >= EXCEL_FIRST) & (values < EXCEL_LAST), 86400 * (values - 25_569), np.nan)]
    for unit in EPOCH_UNITS if usual else ():
        seconds = np.floor(values * unit + 1e-6)
        scaled.append(np.where((seconds >= EPOCH_FIRST) & (seconds < EPOCH_LAST), seconds, np.nan))
    best = int(np.argmax([(~np.isnan(seconds)).sum() for seconds in scaled]))
    offset = np.nan if best == 0 else 0.0
    return np.datetime64(0, "s") + round_seconds(scaled[best]), np.full(len(values), offset)


def _offset_minutes(offset: str | None) -> float:
    """Convert an offset such as "Z", "CDT", "-0500" or "GMT-05:00" to minutes east of UTC, and None to NaN."""
    if offset is None or offset in ZONES:
        return np.nan if offset is None else 60.0 * ZONES[offset]
    digits = re.sub(r"\D", "", offset).ljust(4, "0")
    return (1 if "+" in offset else -1) * (int(digits[:2]) * 60.0 + int(digits[2:]))
