"""Check a log of calls and a table of stations for likely mistakes, without changing them.

Findings name rows of the file, never places.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape

import numpy as np
import pandas as pd

from ..errors import Argument, Message, _validate
from ..errors._types import BoolArray, FloatArray, IntArray
from ._names import STAMPS
from ._times import hour_of_week
from .demand import REACH_KM, nearest_km
from .log import CallLog, Source, read_calls, read_stations
from .profile import WEEKDAYS, count_observed_hours, observed_hours

NIGHT_STARTS = (22, 23, 0, 1, 2, 3, 4)  # hours at which the six quietest hours of a day may start
FAR_STATION_KM = 10
MOST_ROWS_NAMED = 5
FEWEST_UNREACHED, LEAST_RATIO = 30, 2  # calls without arrival, and how much further they lie: less may be chance


@dataclass(frozen=True)
class Finding:
    """A likely mistake in a log or a table of stations.

    Attributes
    ----------
    level : {"wrong", "look"}
        "wrong": almost certainly a mistake; "look": unusual, possibly for a good reason.
    what, text : str
        Short title, such as "swapped coordinates"; description of the mistake and advice on what to do.
    count : int
        Number of calls, stations, rows, gaps or weekdays concerned.
    rows : tuple of int
        The first few rows of the file concerned, counted from 1; for gaps, those of the last call before each.
    """

    level: str
    what: str
    text: str
    count: int = 0
    rows: tuple[int, ...] = ()

    @property
    def rows_text(self) -> str:
        """The ``rows`` as text, such as "3, 8, ..."; empty without rows."""
        return ", ".join(map(str, self.rows)) + ", ..." * (0 < len(self.rows) < self.count)

    def __str__(self) -> str:
        return f"{self.what}: {self.text}{self.rows_text and f' Rows: {self.rows_text}'}"


@dataclass(frozen=True, repr=False)
class Checks:
    """The findings of `check_calls`, a tuple of `Finding`; those of level "wrong" come first."""

    findings: tuple[Finding, ...]

    def __len__(self) -> int:
        return len(self.findings)

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.findings)

    def to_frame(self) -> pd.DataFrame:
        """Return one row per finding, with the attributes of `Finding` as columns; ``rows`` is text."""
        rows = [vars(f) | {"rows": ", ".join(map(str, f.rows))} for f in self]
        return pd.DataFrame(rows, columns=["level", "what", "count", "rows", "text"])

    def __str__(self) -> str:
        return "\n".join(f"{f.level:5}  {f}" for f in self) or "Nothing looks wrong."

    def _repr_html_(self) -> str:
        cell = "<td style='text-align:left'>"
        rows = (f"<tr><td>{f.level}</td>{cell}{escape(str(f))}</td></tr>" for f in self)
        return f"<table>{''.join(rows)}</table>" if self.findings else f"<p>{self}</p>"

    def __repr__(self) -> str:
        wrong = sum(f.level == "wrong" for f in self)
        return f"<Checks: {wrong} wrong, {len(self) - wrong} to look at>"


def check_calls(calls: CallLog | Source, stations: Source | None = None, *, reach_km: float = REACH_KM) -> Checks:
    """Check a log of calls and a table of stations for likely mistakes; raise if they cannot be read.

    Parameters
    ----------
    calls : CallLog, or whatever `read_calls` takes
    stations : DataFrame, or whatever `read_stations` takes, optional
        Default: the places of calls are compared with the median of their longitudes and latitudes.
    reach_km : float
        Distance (km) from every station, or from that median, beyond which calls are reported as far outside.

    Examples
    --------
    >>> import emsopt as eo
    >>> eo.calls.check_calls(*eo.datasets.practice_calls())
    <Checks: 3 wrong, 5 to look at>
    """
    log = read_calls(calls)
    reach_km = _validate.positive_number(reach_km, "reach_km", "km")
    if stations is None:
        middle = np.median(_validate.unwrap(log.locations, log.locations[0, 0]), axis=0)[None]
        found = [*_check_places(log, middle, reach_km, "the middle of the calls.")]
    else:
        table = read_stations(stations)
        places = table[["lon", "lat"]].to_numpy(dtype=float)
        found = [*_check_places(log, places, reach_km, "every station and will be left out.")]
        found += _check_sites(log, places, table.get("name"), reach_km)
    found += _check_non_calls(log, None if stations is None else places)
    for check in CHECKS:
        found += check(log)
    return Checks(tuple(sorted(found, key=lambda finding: finding.level != "wrong")))


def _flag(level: str, what: str, log: CallLog, which: BoolArray | IntArray, text: str) -> Iterator[Finding]:
    """Yield a finding on the calls that ``which``, a mask or indices, selects, if any; their number begins its text."""
    rows, name = sorted(log.rows[which].tolist()), "row(s)" if what.startswith("rows") else "call(s)"
    if rows:
        text = Message(f"{len(rows):,} {name} ({len(rows) / len(log):.1%}) ", *Message.of(text).parts)
        yield Finding(level, what, text, len(rows), tuple(rows[:MOST_ROWS_NAMED]))


def _check_rows(log: CallLog) -> Iterator[Finding]:
    """Find rows left out, too few calls, and repeated calls."""
    for what, count in log.left_out.items():
        yield Finding("look", f"rows without {what}", f"{count:,} row(s) without {what} were left out.", count)

    if len(log) < 1000:
        error = 200 / np.sqrt(len(log))
        text = f"The total rate is uncertain by {error:.0f} % (two standard errors), local rates by more."
        yield Finding("look", "few calls", text, len(log))
    text = "repeat the time and place of an earlier one. If each row is a unit sent, use `without_repeats()`; "
    incident = Argument("columns", {"incident": ...})
    parts = (f"{text}or name the column of incidents by ", incident, ", so that the rows of an incident are joined.")
    yield from _flag("look", "repeated calls", log, log.repeats, Message(*parts))


def _are_near(points: FloatArray, places: FloatArray, reach_km: float) -> BoolArray:
    """Return a mask, (K,), of points with a valid latitude, at most ``reach_km`` from one of the places, (N, 2)."""
    return (np.abs(points[:, 1]) <= 90) & (nearest_km(points, places) <= reach_km)


def _check_places(log: CallLog, places: FloatArray, reach_km: float, outside: str) -> Iterator[Finding]:
    """Find calls that are at 0, 0, swapped, of the wrong sign, or far from the places, (N, 2), in degrees."""
    far = np.flatnonzero(nearest_km(log.locations, places) > reach_km)
    unknown = (np.abs(log.locations[far]) < 0.01).all(axis=1)
    yield from _flag("wrong", "no place", log, far[unknown], "are at 0, 0, which programs write for unknown places.")
    far = far[~unknown]
    for table, columns, signs, how in (
        ("swapped coordinates", [1, 0], (1, 1), "with longitude and latitude swapped"),
        ("sign of the longitude", [0, 1], (-1, 1), "with the other sign of the longitude (west is negative)"),
        ("sign of the latitude", [0, 1], (1, -1), "with the other sign of the latitude (south is negative)"),
    ):
        near = _are_near(log.locations[far][:, columns] * signs, places, reach_km)
        text = f"are far outside, but would lie within {reach_km:g} km {how}. Correct them."
        yield from _flag("wrong", table, log, far[near], text)
        far = far[~near]
    yield from _flag("look", "far outside", log, far, f"are over {reach_km:g} km from {outside}")


def _check_sites(log: CallLog, places: FloatArray, names: pd.Series[str] | None, reach_km: float) -> Iterator[Finding]:
    """Find stations at ``places``, (N, 2), in degrees, that are far from all calls."""
    distance = nearest_km(places, log.locations)
    for k in np.flatnonzero(distance > FAR_STATION_KM).tolist():
        who = f"station {k + 1 if names is None else repr(str(names.iloc[k]))}"
        if distance[k] > reach_km and _are_near(places[[k], ::-1], log.locations, reach_km)[0]:
            text = f"{who} is far from all calls, but close to them with longitude and latitude swapped."
            yield Finding("wrong", "station swapped", text, 1, (k + 1,))
        else:
            text = f"{who} is {distance[k]:.0f} km from the closest call. Check its coordinates."
            yield Finding("wrong" if distance[k] > reach_km else "look", "station outside", text, 1, (k + 1,))


def non_call_masks(log: CallLog, places: FloatArray | None) -> tuple[BoolArray, BoolArray]:
    """Return masks, (K,), of rows that may be no calls: with a word that says so, and others that no unit reached.

    The latter have no arrival, and lie over twice as far from the stations at ``places``, (N, 2), as calls with one do
    on average. There are none unless 30 rows have an arrival, 30 have not, and these are twice as far on average.
    """
    kind, never = np.zeros((2, len(log)), bool)
    if "kind" in log.details:
        kind = log.details["kind"].notna().to_numpy()
    if places is not None:
        km = nearest_km(log.locations, places)
        lost: BoolArray = log.details.get("on_scene", log.details.index.to_series()).isna().to_numpy()
        enough = min(lost.sum(), (~lost).sum()) >= FEWEST_UNREACHED
        if enough and km[lost].mean() >= LEAST_RATIO * km[~lost].mean():
            never = lost & (km > LEAST_RATIO * km[~lost].mean())
    return kind, never & ~kind


def _check_non_calls(log: CallLog, places: FloatArray | None) -> Iterator[Finding]:
    """Find rows that may be no calls, as `non_call_masks`."""
    kind, never = non_call_masks(log, places)
    said, chosen = list[str](), list[str | Argument]()
    if kind.any():
        column = {word: name for name, word in log.others}
        counts = log.details["kind"].value_counts()
        most = [(column[str(word)], str(word), n) for word, n in counts.head(MOST_ROWS_NAMED).items()]
        said.append(", ".join(f"{n:,} have {name} {word!r}" for name, word, n in most))
        said[-1] += f", {counts[MOST_ROWS_NAMED:].sum():,} other words" if len(counts) > MOST_ROWS_NAMED else ""
        where = " and ".join("_".join(re.findall("[^_ .()/-]+", name)) + f" != {word!r}" for name, word, _ in most)
        chosen = ["leave out those that are none by ", Argument("where", where), ", "]
    if never.any():
        said.append(f"{never.sum():,} never had an arrival and lie over {LEAST_RATIO} times as far as others do")
    all_by = ("let all only keep units busy by ", Argument("others", "occupying"), ", or leave all out by ")
    head = f"may not be calls: {'; '.join(said)}. They count as calls: "
    text = Message(head, *chosen, *all_by, Argument("others", "ignored"), ".")
    yield from _flag("look", "rows that may be no calls", log, kind | never, text)


def _check_one_place(log: CallLog) -> Iterator[Finding]:
    """Find coordinates that are rounded, or else many calls at exactly one place."""
    steps = log.locations * 1000
    if np.abs(steps - np.round(steps)).max() < 1e-6:
        text = "Coordinates have at most three decimals, a resolution of 100 m or coarser. Use wide cells."
        yield Finding("look", "rounded places", text, len(log))
        return
    places, counts = np.unique(log.locations, axis=0, return_counts=True)
    if counts.max() >= max(10, 0.03 * len(log)):
        there = (log.locations == places[counts.argmax()]).all(axis=1)
        text = "are at exactly the same place. Is it a hospital, a home, or a default for unknown addresses?"
        yield from _flag("look", "one place", log, there, text)


def _check_gaps(log: CallLog) -> Iterator[Finding]:
    """Find gaps in which, at usual rates, more than ln(number of calls) + 8 calls were expected."""
    midnight = log.times == log.times.astype("datetime64[D]")
    if len(log) < 50 or midnight.mean() > 0.5:  # dates without times do not show gaps
        return
    usual = np.bincount(log.hours_of_week, minlength=168) / np.maximum(count_observed_hours(log.times).ravel(), 1)
    hours = observed_hours(log.times)
    before = np.r_[0.0, np.cumsum(usual[hour_of_week(hours)])]
    seconds = (log.times - hours[0]).astype(np.int64)
    expected = np.diff(np.interp(seconds / 3600, np.arange(len(before)), before))
    gaps = np.flatnonzero(expected > np.log(len(log)) + 8)  # about one log in 3000 has such a gap by chance
    if gaps.size:
        lengths = np.diff(log.times)[gaps].astype(np.int64) / 86400
        first = str(log.times[gaps[lengths.argmax()]])[:10]  # the day alone: minutes would tell single calls
        text = f"{gaps.size} gap(s), {lengths.sum():.1f} days in all; the longest, {lengths.max():.1f} days, starts on "
        text += f"{first}. If records are missing, use `between()`, or "
        rows = tuple(log.rows[gaps[:MOST_ROWS_NAMED]].tolist())
        said = Message(text, Argument("empty_days", "missing"), ".")
        yield Finding("wrong", "gaps in time", said, gaps.size, rows)


def _check_clock(log: CallLog) -> Iterator[Finding]:
    """Find times in UTC, at midnight, or on the hour, and nights that are not quiet."""
    if log.clock == "UTC":
        text = "All times are in UTC, so hours of the day are not local. Pass `time_zone`."
        yield Finding("look", "time zone", text, len(log))
    seconds = log.times.astype(np.int64) % 86400
    midnight, on_the_hour = seconds == 0, seconds % 3600 == 0
    if midnight.sum() > max(10, 0.02 * len(log), on_the_hour.sum() / 8):
        level = "wrong" if midnight.mean() > 0.5 else "look"
        yield from _flag(level, "midnight", log, midnight, "are at midnight. Are they dates without times?")
        return
    if on_the_hour.mean() > 0.2 and len(log) >= 50:
        yield from _flag("look", "rounded times", log, on_the_hour, "are exactly on the hour, as if rounded.")
    counts = np.bincount(log.hours, minlength=24)
    in_six = np.convolve(np.r_[counts, counts[:5]], np.ones(6), mode="valid")
    quiet = int(in_six.argmin())
    if len(log) >= 500 and in_six.max() > 1.5 * in_six.min() and quiet not in NIGHT_STARTS:
        text = f"The quietest six hours start at {quiet} h, not at night. Are times of another zone or a 12-hour clock?"
        yield Finding("look", "quiet by day", text, len(log))


def _check_weekdays(log: CallLog) -> Iterator[Finding]:
    """Find weekdays without calls."""
    counts = np.bincount(log.weekdays, minlength=7)
    silent = [day for day, count in zip(WEEKDAYS, counts, strict=True) if count == 0]
    if silent and len(log) >= 50:
        yield Finding("look", "silent weekdays", f"There is no call on any {', '.join(silent)}.", len(silent))


def _check_steadiness(log: CallLog) -> Iterator[Finding]:
    """Find trends, and days whose numbers of calls vary more than by chance."""
    days = log.times.astype("datetime64[D]").astype(np.int64)
    counts = np.bincount(days - days[0])[1:-1]  # the first and the last day may be incomplete
    if len(counts) < 28 or counts.mean() < 3:
        return
    half = len(counts) // 2
    early, late = counts[:half].sum(), counts[-half:].sum()
    if abs(late - early) > max(5 * np.sqrt(early + late), 0.15 * min(early, late)):
        text = f"The second half has {late / max(early, 1):.2f} times as many calls as the first: a season, a trend or "
        text += "missing records. Rates are averages over the whole log; use `between()`."
        yield Finding("look", "trend", text, len(log))
        return
    weekday = np.arange(len(counts)) % 7
    usual = (np.bincount(weekday, counts) / np.bincount(weekday))[weekday]
    spread = ((counts - usual) ** 2 / np.maximum(usual, 1e-9)).sum() / (len(counts) - 7)
    if spread > max(1 + 5 * np.sqrt(2 / (len(counts) - 7)), 1.5):
        text = f"The daily number of calls varies {spread:.1f} times as much as by chance (same weekday): events, "
        text += "holidays or missing records. The queueing models assume independent calls."
        yield Finding("look", "bunches of calls", text, len(log))


def _check_service_times(log: CallLog) -> Iterator[Finding]:
    """Find service times that are 0, missing, in another unit or very long."""
    level = "wrong" if log.no_service.mean() > 0.2 else "look"
    text = "have a service time of 0 or less, which is treated as unknown. Remove calls to which no unit was sent."
    yield from _flag(level, "no service time", log, log.no_service, text)
    if log.service_min is None or np.isnan(log.service_min).all():
        return
    blank = np.isnan(log.service_min) & ~log.no_service
    if blank.mean() > 0.2:
        yield from _flag("look", "service time", log, blank, "have no service time.")
    typical = np.nanmedian(log.service_min)
    if not 5 <= typical <= 240:
        unit = "hours, or only the time on scene" if typical < 5 else "seconds"
        yield Finding("wrong", "service time", f"Median: {typical:.3g} min. Are times in {unit}?", len(log))
    longest = max(8 * 60, 10 * typical)
    text = f"kept a unit busy for over {longest / 60:.0f} h. Was the end recorded late?"
    yield from _flag("look", "long service", log, log.service_min > longest, text)


def _check_stamps(log: CallLog) -> Iterator[Finding]:
    """Find stamps out of order, and stamps of full minutes."""
    known = [log.details[stamp].to_numpy() for stamp in STAMPS if stamp in log.details]
    latest, backward = log.times, np.zeros(len(log), dtype=bool)
    for times in known:
        backward |= times < latest  # false for NaT
        latest = np.fmax(latest, times)
    level = "wrong" if backward.mean() > 0.2 else "look"
    text = "have stamps out of order, such as on scene before dispatched."
    yield from _flag(level, "stamps out of order", log, backward, text)
    stamps = np.concatenate([np.empty(0, "datetime64[s]"), *known])
    seconds = stamps[~np.isnat(stamps)].astype(np.int64) % 60
    if len(seconds) >= 50 and (share := (seconds == 0).mean()) > 0.9:
        text = f"{share:.0%} of the stamps are full minutes. A response time of 8 min is then one of 7 to 9 min."
        yield Finding("look", "stamps to the minute", text, len(log))


# The checks that need only the log, each a function from a log to findings.
CHECKS = [_check_rows, _check_one_place, _check_gaps, _check_clock, _check_weekdays, _check_steadiness]
CHECKS += [_check_service_times, _check_stamps]
