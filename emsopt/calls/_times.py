"""Read the columns of times, stamps and elapsed times of a log, in the forms of `emsopt.calls._time_forms`."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, cast

import numpy as np
import pandas as pd

from .._files.columns import Table, more_text
from ..errors import InputError
from ..errors._types import BoolArray, FloatArray, IntArray, Times
from ..errors._validate import quote
from . import _time_forms as forms
from ._names import ELAPSED_ROLES, seconds_per_unit

MIDNIGHT = re.compile(r"[T ]\s*(?:0?0:00(?::00(?:\.0+)?)?|12:00(?::00)?\s*[Aa][Mm])$")  # dates often end with midnight
EARLIEST_TIME, LATEST_TIME = np.datetime64("1970-01-02"), np.datetime64("2100-01-01")
FILLER_DAYS = (101, 1230, 1231)  # programs write the first and last days of a year for unknown times: month and day
LATE_FILLER_TIMES = np.array(["2079-06-06T23:59", "2099-12-31T00:00", "2099-12-31T23:59"], dtype="datetime64[m]")
TYPICAL_WAIT = 480.0  # seconds from the call until a stamp, by which elapsed times are told from times of day
NEAR_DAYS = np.timedelta64(31, "D")  # from the calls: stamps on a day further away are times of day
FAR_GAP = np.timedelta64(180, "D")  # from other calls
FEWEST_CALLS = 10  # calls; in shorter logs every call may be far from the others
LONGEST_SERVICE_MIN = 24 * 60
MINUTE = np.timedelta64(60, "s")
LEAST_FULL_MINUTES = 0.98  # share of full minutes among stamps to the minute: a few may have been entered with seconds
STAMPS_OF_ELAPSED = {role for start, end, *_ in ELAPSED_ROLES.values() for role in (start, end)}


def read_times(
    table: Table, key: str, time_zone: str | None, time_format: str | None, date: str | None, beside: Iterable[str]
) -> tuple[Times, Times | None, str]:
    """Read a column of times; return local times, times in UTC (None without offsets), both (K,), and `CallLog.clock`.

    ``date`` is a column of dates, if the times do not include them; the order of day and month may follow from the
    columns ``beside``. Without a ``time_zone``, times are as written. They are NaT for blank cells, and for dates such
    as 1900-01-01 and 9999-12-31 that fill empty cells.
    """
    cells = table.frame[key]
    where, written = f"{table.where}, column {key!r}", list[str | None]()
    if date is None and pd.api.types.is_datetime64_any_dtype(cells.dtype):
        times, utc, clock = _times_of_datetimes(cells)
        written = list(map(str, cells))
    else:
        written = _prepend_dates(table, key, date)
        others = (forms.written_cells(table.frame[other]) for other in beside)
        times, offsets = forms.parse_times(written, time_format, where, others)
        filled = np.array([text not in (None, "0", "0.0") for text in written])
        _check_readable(where, written, np.isnat(times) & filled, time_format)
        filled &= ~_is_placeholder(times)
        local = filled & np.isnan(offsets)
        if local.any() and not local[filled].all():
            k = int(np.argmax(local))
            said = f"{table.where}, row {k + 1}: {quote(written[k])} has no offset, but others do."
            raise InputError(f"{said} Write all times with an offset or all without.", local)
        utc = _convert_to_utc(times, np.where(filled, offsets, np.nan))
        clock = "local" if utc is None else "as written" if np.nan_to_num(offsets).any() else "UTC"
    fillers = _is_placeholder(times)
    if not fillers[~np.isnat(times)].all():
        times[fillers] = np.datetime64("NaT")
    # one mistyped year would make the period far too long
    years, bad = "a time from 2 January 1970 to 2099", (times < EARLIEST_TIME) | (times >= LATEST_TIME)
    _refuse_cells(table.where, written, bad, years, "Correct or remove it.")
    return _convert_to_zone(times, utc, clock, time_zone)


def read_stamps(
    table: Table, key: str, time_format: str | None, beside: Iterable[str], calls: Times, utc: Times | None
) -> Times:
    """Read a column of stamps, such as times of dispatch, shape (K,), NaT for unreadable cells; raise if all are.

    ``calls`` and ``utc`` are the times of the calls, as `read_times` returns them. Stamps may also be times of day or
    times since the call. A ``time_format`` that fits no cell is ignored.
    """
    cells = table.frame[key]
    if pd.api.types.is_datetime64_any_dtype(cells.dtype):
        times, moments, _ = _times_of_datetimes(cells)
    else:
        written = forms.written_cells(cells)
        if (stamps := _stamps_from_elapsed(written, calls)) is not None:
            return stamps
        where, columns = f"{table.where}, column {key!r}", list(beside)
        for layout in dict.fromkeys([time_format, None]):
            others = (forms.written_cells(table.frame[other]) for other in columns)
            times, offsets = forms.parse_times(written, layout, where, others)
            if not np.isnat(times).all():
                break
        else:
            _check_readable(where, written, np.array([text is not None for text in written]), time_format)
        moments = _convert_to_utc(times, offsets)
    if _have_dummy_date(times, calls):
        return _closest_time(_seconds_of_day(times), calls)
    if utc is not None and moments is not None:
        times = calls + (moments - utc)
    times[(times < EARLIEST_TIME) | (times >= LATEST_TIME) | _is_placeholder(times)] = np.datetime64("NaT")
    return times


def _have_dummy_date(times: Times, calls: Times) -> bool:
    """Return whether all stamps lie on one or two days far from all calls, as programs write times of day."""
    days, known = np.unique(times[~np.isnat(times)].astype("datetime64[D]")), calls[~np.isnat(calls)]
    few = 0 < len(days) <= 2 and len(known) > 0
    return few and bool(((days < known.min() - NEAR_DAYS) | (days > known.max() + NEAR_DAYS)).all())


def _convert_to_utc(times: Times, offsets: FloatArray) -> Times | None:
    """Convert times, (K,), to UTC by their offsets (min east), NaN counting as 0; return None if none has one."""
    return None if np.isnan(offsets).all() else times - np.nan_to_num(offsets).astype("timedelta64[m]")


def _stamps_from_elapsed(written: list[str | None], calls: Times) -> Times | None:
    """Convert times of day or times since the ``calls`` to stamps, (K,); return None if the texts are neither."""
    what = forms.kind_of_cells(written)
    if what in ("clock", "fraction") and not forms.are_elapsed(written, _seconds_of_day(calls), TYPICAL_WAIT):
        return _closest_time(forms.times_of_day(written), calls)
    if what in ("clock", "fraction", "spelt", "seconds"):
        unit = 1.0 if what == "seconds" else None
        return calls + forms.round_seconds(forms.elapsed_seconds(written, TYPICAL_WAIT, unit))
    return None


def parse_moment(value: object) -> np.datetime64:
    """Convert text, a date or a datetime without time zone to a local datetime64[s]."""
    found: np.datetime64[Any] = np.datetime64("NaT", "s")
    aware = getattr(value, "tzinfo", None) is not None
    if isinstance(value, str):
        matches = [forms.ISO.fullmatch(value.strip())]
        (found,), (offset,) = forms.times_of_matches(matches, forms.ISO, forms.DATE_PARTS)
        aware = not np.isnan(offset)
    elif isinstance(value, (datetime.date, np.datetime64)) and not aware and not pd.isna(value):
        found = np.datetime64(cast("datetime.date", value), "s")
    if np.isnat(found) or aware:
        expected = "dates such as '2025-01-01' or times such as '2025-01-01 16:05', without an offset"
        raise InputError(f"`start` and `end` must be {expected}; got {quote(value)}.")
    return found


def hour_of_week(times: Times) -> IntArray:
    """Return the hours since Monday, 0:00, from 0 to 167, shape (K,)."""
    return (times.astype("datetime64[h]").astype(np.int64) + 72) % 168  # 1 January 1970 was a Thursday


def check_time_outliers(times: Times, rows: IntArray, where: str) -> None:
    """Raise if a call, or up to 1 % of the calls, is far from all others in time, as mistakes would distort the rates.

    ``times`` ascend; ``rows``, (K,), are for the message. The log is split where calls are more than `FAR_GAP` apart.
    Calls are far if they lie more than `FAR_GAP`, and more than three times its length, from the part with most calls.
    """
    if len(times) < FEWEST_CALLS:
        return
    group = np.r_[0, np.cumsum(np.diff(times) > FAR_GAP)]
    first, last = times[group == np.bincount(group).argmax()][[0, -1]]
    reach = max(FAR_GAP, 3 * (last - first))
    far = (times < first - reach) | (times > last + reach)
    if far.any() and far.sum() <= max(1, len(times) // 100):
        k = int(np.argmax(far))
        raise InputError(
            f"{where}, row {rows[k]}: the call of {str(times[k])[:10]}{more_text(far)} is far from the others, which "
            f"span {str(first)[:10]} to {str(last)[:10]}, and would make all rates far too low. Correct or remove it.",
            np.isin(np.arange(rows.max()) + 1, rows[far]),
        )


def _prepend_dates(table: Table, key: str, date: str | None) -> list[str | None]:
    """Return a column of times as texts, each preceded by its date if there is a column of dates."""
    written = forms.written_cells(table.frame[key])
    if date is None:
        return written
    days = [day and MIDNIGHT.sub("", day) for day in forms.written_cells(table.frame[date])]
    return [f"{day} {time}" if day and time else None for day, time in zip(days, _pad_clocks(written), strict=True)]


def _pad_clocks(written: list[str | None]) -> list[str | None]:
    """Rewrite times of day so that they can follow a date, such as "1605" as "16:05"."""
    if all(re.fullmatch(r"\d{0,4}", text or "") for text in written):
        return [text and f"{text.zfill(4)[:2]}:{text.zfill(4)[2:]}" for text in written]  # 5 is 0:05, 1605 is 16:05
    if (what := forms.kind_of_cells(written)) not in ("clock", "fraction"):
        return written
    odd = [None if what == "clock" and forms.CLOCK_ONLY.fullmatch(text or "") else text for text in written]
    clock = np.datetime_as_string(np.datetime64(0, "s") + forms.round_seconds(forms.times_of_day(odd))).tolist()
    return [text if c == "NaT" else c[11:] for text, c in zip(written, clock, strict=True)]


def _times_of_datetimes(cells: pd.Series[Any]) -> tuple[Times, Times | None, str]:
    """Return the times of a column of datetimes, (K,), in its zone and in UTC (None without zone), and their clock."""
    zone = getattr(cells.dtype, "tz", None)
    times = cells.dt.tz_localize(None).to_numpy().astype("datetime64[s]")
    if zone is None:
        return times, None, "local"
    return times, cells.dt.tz_convert(None).to_numpy().astype("datetime64[s]"), str(zone)


def add_implied_stamps(details: pd.DataFrame, times: Times, columns: Mapping[str, pd.Series[Any]]) -> pd.DataFrame:
    """Add the stamps that elapsed times imply to the details of a log; ``columns`` are its columns by role.

    If the log has no dispatches, times from the dispatch count from the call. Where both stamps are full minutes, they
    are moved within their minutes so that they differ by the elapsed time, to the middle of the times that allow it.
    """
    known = STAMPS_OF_ELAPSED & set(details)
    stamps = {"time": times} | {role: details[role].to_numpy("datetime64[s]") for role in known}
    seconds = {role: values[~np.isnat(values)].astype(np.int64) % 60 for role, values in stamps.items()}
    step = {role: MINUTE for role, part in seconds.items() if len(part) and (part == 0).mean() >= LEAST_FULL_MINUTES}
    missing, none = np.full(len(times), np.datetime64("NaT", "s")), np.timedelta64(0, "s")
    for role in (role for role in ELAPSED_ROLES if role in columns):
        start, end, typical, _ = ELAPSED_ROLES[role]
        written, unit = forms.written_cells(columns[role]), seconds_per_unit(str(columns[role].name))
        lasted = forms.round_seconds(forms.elapsed_seconds(written, typical, unit))
        if start == "dispatched" and not {start, end} & stamps.keys():
            start = "time"
        a, b = stamps.get(start, missing), stamps.get(end, missing)
        width_a, width_b = step.get(start, none), step.get(end, none)
        first, last = np.maximum(a, b - lasted), np.minimum(a + width_a, b + width_b - lasted)
        exact = (first <= last) & (start != "time") & (width_a + width_b > none)
        middle = first + (last - first) // 2
        stamps[end] = np.where(exact, middle + lasted, np.where(np.isnat(b), a + lasted, b))
        if start != "time":
            stamps[start] = np.where(exact, middle, np.where(np.isnat(a), b - lasted, a))
            step |= dict.fromkeys((start, end), none) if exact.any() else {}
    return details.assign(**{role: stamps[role] for role in stamps if role != "time"})


def service_minutes(
    table: Table, key: str | None, rows: IntArray, details: pd.DataFrame
) -> tuple[FloatArray, BoolArray]:
    """Return the minutes that each call kept a unit busy, (K,), and a mask of the calls where they are 0 or less.

    These minutes become NaN, like unknown ones and those above 24 h. ``key`` is a column of minutes; without it, they
    count from dispatch to clearing. ``rows`` are those of the calls, from 1.
    """
    minutes: FloatArray = np.full(len(rows), np.nan)
    if key is not None:
        expected = f"minutes above 0, at most {LONGEST_SERVICE_MIN}"
        minutes = table.numbers(key, expected, blanks=True, high=LONGEST_SERVICE_MIN)[rows - 1]
    elif {"dispatched", "cleared"} <= set(details):
        minutes = (details["cleared"] - details["dispatched"]).dt.total_seconds().to_numpy(copy=True) / 60
    no_service = minutes <= 0
    minutes[no_service | (minutes > LONGEST_SERVICE_MIN)] = np.nan
    return minutes, no_service


def _seconds_of_day(times: Times) -> FloatArray:
    """Return the seconds since midnight of ``times``, shape (K,), NaN for NaT."""
    return np.where(np.isnat(times), np.nan, times.astype("datetime64[s]").astype(np.int64) % 86400)


def _closest_time(seconds: FloatArray, calls: Times) -> Times:
    """Return the times closest to the ``calls`` with these ``seconds`` since midnight, (K,); they may be earlier."""
    return calls + forms.round_seconds((seconds - _seconds_of_day(calls) + 43200) % 86400 - 43200)


def _is_placeholder(times: Times) -> BoolArray:
    """Return a mask of times on a day that programs write for unknown times, such as 1900-01-01, shape (K,)."""
    days, months = times.astype("datetime64[D]"), times.astype("datetime64[M]")
    of_year = 100 * (months.astype(np.int64) % 12 + 1) + (days - months).astype(np.int64) + 1
    odd = (times < EARLIEST_TIME) | (times >= LATEST_TIME)
    return (odd & np.isin(of_year, FILLER_DAYS)) | np.isin(times.astype("datetime64[m]"), LATE_FILLER_TIMES)


def _check_readable(where: str, written: Sequence[str | None], bad: BoolArray, time_format: str | None) -> None:
    """Raise if the mask ``bad``, (K,), marks cells of times; the error names the first and says how to write times."""
    wanted, advice = f"a time in the form of `time_format` {quote(time_format)}", "Correct the cell or the format."
    if time_format is None:
        wanted = "a time such as 2025-03-14 16:05 or 2025-03-14 16:05-05:00"
        advice = "Write times in these forms, offsets from UTC as Z, -05, -0500 or -05:00, up to 14 hours; or describe "
        advice += "theirs by `time_format`, such as '%d.%m.%Y %H:%M'."
    _refuse_cells(where, written, bad, wanted, advice)


def _refuse_cells(where: str, written: Sequence[str | None], bad: BoolArray, wanted: str, advice: str) -> None:
    """Raise if the mask ``bad``, (K,), marks cells; the error names the first, what is ``wanted``, and ``advice``."""
    if bad.any():
        k = int(np.argmax(bad))
        got = f"{quote(written[k] or '', most=80)}{more_text(bad)}"
        raise InputError(f"{where}, row {k + 1}: expected {wanted}, but got {got}. {advice}", bad)


def _convert_to_zone(
    times: Times, utc: Times | None, clock: str, time_zone: str | None
) -> tuple[Times, Times | None, str]:
    """Convert times to a zone, if given, as `read_times` returns them; raise if it is unknown or there is no offset."""
    if time_zone is None:
        return times, utc, clock
    if utc is None:
        remedy = "Leave it out if they are local, or end them with a Z if they are in UTC."
        raise InputError(f"`time_zone` is {quote(time_zone)}, but the times have no offset. {remedy}")
    with suppress(KeyError, ValueError, OSError, IndexError):  # raised for unknown zones
        if isinstance(time_zone, str):
            local = pd.Series(utc).dt.tz_localize("UTC").dt.tz_convert(time_zone).dt.tz_localize(None)
            return local.to_numpy().astype("datetime64[s]"), utc, time_zone
    raise InputError(f"`time_zone` must be a name such as 'America/Chicago'; got {quote(time_zone)}.")
