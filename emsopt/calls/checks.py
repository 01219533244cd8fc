"""Check a log of calls and a table of stations for likely mistakes.

The data are not changed. A finding of level "wrong" is certainly a mistake in the data; one of level "look"
may have a good reason. Findings name rows of the file, never places.
"""

from dataclasses import dataclass
from html import escape

import numpy as np

from .. import _validate
from .demand import REACH_KM, nearest_km
from .log import CallLog, read_calls, read_stations
from .profile import WEEKDAYS, hours_watched

NIGHT = (22, 23, 0, 1, 2, 3, 4)  # hours at which the six quietest hours of a day may start
LONELY_KM = 10
MOST_ROWS_NAMED = 5


@dataclass(frozen=True)
class Finding:
    """A likely mistake in the data.

    Attributes
    ----------
    level : {"wrong", "look"}
    what : str
        Short title.
    text : str
        Description and advice.
    count : int
        Number of calls or stations concerned.
    rows : tuple of int
        Some of their rows, from 1.
    """

    level: str
    what: str
    text: str
    count: int = 0
    rows: tuple[int, ...] = ()


@dataclass(frozen=True, repr=False)
class Checks:
    """All findings, those of level "wrong" first.

    Attributes
    ----------
    findings : tuple of Finding
    """

    findings: tuple[Finding, ...]

    def __len__(self):
        return len(self.findings)

    def __iter__(self):
        return iter(self.findings)

    def to_frame(self):
        """Return one row per finding: ``level``, ``what``, ``count``, ``rows``, ``text``."""
        import pandas as pd

        columns = ["level", "what", "count", "rows", "text"]
        rows = [[f.level, f.what, f.count, ", ".join(map(str, f.rows)), f.text] for f in self]
        return pd.DataFrame(rows, columns=columns)

    def __str__(self):
        lines = [f"{f.level:5}  {f.what}: {f.text}{_named(f)}" for f in self]
        return "\n".join(lines) or "Nothing looks wrong."

    def _repr_html_(self):
        cells = "".join(
            f"<tr><td>{f.level}</td><td>{escape(f.what)}</td><td style='text-align:left'>{escape(f.text + _named(f))}</td></tr>"
            for f in self
        )
        return f"<table>{cells}</table>" if cells else f"<p>{self}</p>"

    def __repr__(self):
        wrong = sum(f.level == "wrong" for f in self)
        return f"<Checks: {wrong} wrong, {len(self) - wrong} to look at>"


def check_calls(calls, stations=None, *, reach_km=REACH_KM):
    """Check a log of calls and a table of stations for likely mistakes.

    Parameters
    ----------
    calls : CallLog, or whatever `read_calls` takes
    stations : DataFrame, or whatever `read_stations` takes, optional
        Default: compare places with the middle of the calls.
    reach_km : float
        Calls further than this from every station are reported as far.

    Returns
    -------
    Checks
    """
    calls = calls if isinstance(calls, CallLog) else read_calls(calls)
    reach_km = _validate.positive_number(reach_km, "reach_km", "km")
    if stations is None:
        places, names = np.median(calls.locations, axis=0)[None], None
    else:
        stations = read_stations(stations)
        places = stations[["lon", "lat"]].to_numpy(dtype=float)
        names = list(stations["name"].astype(str)) if "name" in stations else None
    found = [
        *_rows_left_out(calls),
        *_number(calls),
        *_repeats(calls),
        *_places(calls, places, reach_km),
        *_one_place(calls),
        *(_stations(calls, places, names, reach_km) if stations is not None else ()),
        *_gaps(calls),
        *_clock(calls),
        *_silent_weekdays(calls),
        *_steadiness(calls),
        *_service(calls),
    ]
    return Checks(tuple(sorted(found, key=lambda finding: finding.level != "wrong")))


# -- the checks ---------------------------------------------------------------------------------------------------


def _rows_left_out(calls):
    for what, count in calls.left_out.items():
        yield Finding("look", f"rows without {what}", f"{count:,} row(s) have no {what} and were left out.", count)


def _number(calls):
    n = len(calls)
    if n < 1000:
        text = (
            f"{n:,} call(s): the total rate is uncertain by {200 / np.sqrt(n):.0f} % (two standard errors), rates of "
            "single places and hours by far more. Use a longer log or wider cells."
        )
        yield Finding("look", "few calls", text, n)


def _repeats(calls):
    repeated = calls.repeated
    if repeated.any():
        text = (
            f"{_share(repeated)} repeat an earlier one in time and place. If each row is a dispatched unit, calls are "
            "counted more than once: use without_repeats() or --drop-repeats."
        )
        yield _finding("look", "repeated calls", text, calls, repeated)


def _places(calls, places, reach_km):
    far = nearest_km(calls.locations, places) > reach_km
    if not far.any():
        return
    points, rest = calls.locations, far.copy()
    nowhere = far & (np.abs(points) < 0.01).all(axis=1)
    rest &= ~nowhere
    if nowhere.any():
        text = f"{_share(nowhere)} are at 0, 0, which programs write for unknown places."
        yield _finding("wrong", "no place", text, calls, nowhere)
    for what, moved, hint in (
        ("swapped coordinates", points[:, ::-1], "with longitude and latitude swapped"),
        (
            "sign of the longitude",
            points * (-1, 1),
            "with the other sign of the longitude (west is negative)",
        ),
        ("sign of the latitude", points * (1, -1), "with the other sign of the latitude (south is negative)"),
    ):
        possible = rest & (np.abs(moved[:, 1]) <= 90)
        near = np.zeros_like(possible)
        if possible.any():
            near[possible] = nearest_km(moved[possible], places) <= reach_km
        if near.any():
            text = f"{_share(near)} are far outside, but would lie within {reach_km:g} km {hint}. Correct them."
            yield _finding("wrong", what, text, calls, near)
        rest &= ~near
    if rest.any():
        text = f"{_share(rest)} are over {reach_km:g} km from every station and will be left out."
        yield _finding("look", "far outside", text, calls, rest)


def _one_place(calls):
    steps = calls.locations * 1000
    if np.abs(steps - np.round(steps)).max() < 1e-6:
        text = (
            "Coordinates have at most three decimals, a resolution of about 100 m or coarser. Choose much wider cells."
        )
        yield Finding("look", "rounded places", text, len(calls))
        return
    _, index, counts = np.unique(calls.locations, axis=0, return_inverse=True, return_counts=True)
    if counts.max() >= max(10, 0.03 * len(calls)):
        there = index.reshape(-1) == counts.argmax()
        text = (
            f"{_share(there)} are at exactly the same place. Is it a hospital, a home, or a default for "
            "unknown addresses?"
        )
        yield _finding("look", "one place", text, calls, there)


def _stations(calls, places, names, reach_km):
    for k, place in enumerate(places):
        apart = nearest_km(place[None], calls.locations)[0]
        if apart <= LONELY_KM:
            continue
        who = f"station {k + 1}" if names is None else f"station {names[k]!r}"
        flipped = place[None, ::-1]
        if abs(flipped[0, 1]) <= 90 and nearest_km(flipped, calls.locations)[0] <= reach_km < apart:
            text = f"{who} is far from all calls, but close to them with longitude and latitude swapped. Correct it."
            yield Finding("wrong", "station swapped", text, 1, (k + 1,))
        else:
            text = f"{who} is {apart:.0f} km from the closest call. Check its coordinates."
            yield Finding("wrong" if apart > reach_km else "look", "station outside", text, 1, (k + 1,))


def _gaps(calls):
    """Find gaps between calls that are too long to be chance, given the usual rate of their hours."""
    midnight = calls.times == calls.times.astype("datetime64[D]")
    if len(calls) < 50 or midnight.mean() > 0.5:  # dates without times do not show gaps
        return
    hour = calls.times.astype("datetime64[h]").astype(np.int64)
    watched = np.maximum(hours_watched(calls.times), 1)
    counts = np.bincount(calls.weekdays * 24 + calls.hours, minlength=168).reshape(7, 24)
    clock = np.arange(hour[0], hour[-1] + 1)
    rates = (counts / watched)[(clock // 24 + 3) % 7, clock % 24]
    before = np.r_[0.0, np.cumsum(rates)]
    seconds = (calls.times - calls.times[0].astype("datetime64[h]")).astype(np.int64)
    expected = np.diff(np.interp(seconds / 3600, np.arange(len(before)), before))
    gaps = np.flatnonzero(expected > np.log(len(calls)) + 8)  # about one log in 3000 has such a gap by chance
    if gaps.size:
        lengths = np.diff(calls.times)[gaps].astype(np.int64) / 86400
        k = gaps[lengths.argmax()]
        first, last = (str(t).replace("T", " ")[:16] for t in calls.times[[k, k + 1]])
        text = (
            f"{gaps.size} gap(s), {lengths.sum():.1f} days in all, too long to be chance; the longest is from {first} "
            f"to {last}. If records are missing, use between(), or empty_days='missing' (--skip-empty-days)."
        )
        yield Finding("wrong", "gaps in time", text, int(gaps.size), tuple(calls.rows[gaps[:MOST_ROWS_NAMED]].tolist()))


def _clock(calls):
    seconds = calls.times.astype(np.int64) % 86400
    midnight = seconds == 0
    if calls.clock == "UTC":
        text = "All times are in UTC, so hours of the day are not local. Pass `time_zone` (--time-zone)."
        yield Finding("look", "time zone", text, len(calls))
    on_the_hour = seconds % 3600 == 0
    if midnight.sum() > max(10, 0.02 * len(calls), on_the_hour.sum() / 8):
        text = f"{_share(midnight)} are at exactly midnight. Are they dates without times?"
        yield _finding("wrong" if midnight.mean() > 0.5 else "look", "midnight", text, calls, midnight)
        return
    if on_the_hour.mean() > 0.2 and len(calls) >= 50:
        text = f"{_share(on_the_hour)} are exactly on the hour. The times look rounded."
        yield _finding("look", "rounded times", text, calls, on_the_hour)
    counts = np.bincount(calls.hours, minlength=24)
    in_six = np.convolve(np.r_[counts, counts[:5]], np.ones(6), mode="valid")
    quiet = int(in_six.argmin())
    if len(calls) >= 500 and in_six.max() > 1.5 * in_six.min() and quiet not in NIGHT:
        text = (
            f"The quietest six hours start at {quiet} h, but usually lie at night. Are the times in another zone, or "
            "on a 12-hour clock?"
        )
        yield Finding("look", "quiet by day", text, len(calls))


def _silent_weekdays(calls):
    counts = np.bincount(calls.weekdays, minlength=7)
    silent = [day for day, count in zip(WEEKDAYS, counts, strict=True) if count == 0]
    if silent and len(calls) >= 50:
        yield Finding("look", "silent weekdays", f"There is no call on any {', '.join(silent)}.", len(silent))


def _steadiness(calls):
    days = calls.times.astype("datetime64[D]").astype(np.int64)
    counts = np.bincount(days - days[0])[1:-1]  # the first and the last day may be incomplete
    if len(counts) < 28 or counts.mean() < 3:
        return
    half = len(counts) // 2
    early, late = counts[:half].sum(), counts[-half:].sum()
    if abs(late - early) > 5 * np.sqrt(early + late) and abs(late - early) > 0.15 * min(early, late):
        text = (
            f"There are {late / max(early, 1):.2f} times as many calls in the second half as in the first. "
            "This may be a season, a trend or "
            "missing records. Rates are averages over the whole log; use between() to select a part."
        )
        yield Finding("look", "trend", text, len(calls))
        return
    weekday = np.arange(len(counts)) % 7
    usual = np.array([counts[weekday == k].mean() for k in range(7)])[weekday]
    spread = ((counts - usual) ** 2 / np.maximum(usual, 1e-9)).sum() / (len(counts) - 7)
    if spread > 1 + 5 * np.sqrt(2 / (len(counts) - 7)) and spread > 1.5:
        text = (
            f"The daily number of calls varies {spread:.1f} times as much as by chance (same weekday). This may be due "
            "to events, holidays or missing records. The queueing models assume independent calls."
        )
        yield Finding("look", "bunches of calls", text, len(calls))


def _service(calls):
    none = calls.no_service
    if none.any():
        level = "wrong" if none.mean() > 0.2 else "look"
        text = (
            f"{_share(none)} have a service time of 0 or less. They count as calls with unknown service time. If no "
            "unit was sent to them, remove them."
        )
        yield _finding(level, "no service time", text, calls, none)
    if calls.service_min is None:
        return
    unknown = np.isnan(calls.service_min)
    blank = unknown & ~none
    if blank.mean() > 0.2:
        yield _finding("look", "service time", f"{_share(blank)} have no service time.", calls, blank)
    if unknown.all():
        return
    typical = np.nanmedian(calls.service_min)
    if typical < 5 or typical > 240:
        unit = "hours, or only the time on scene" if typical < 5 else "seconds"
        text = (
            f"Half of the service times are {'under' if typical < 5 else 'over'} {typical:.3g} min. Are they in {unit}?"
        )
        yield Finding("wrong", "service time", text, len(calls))
    with np.errstate(invalid="ignore"):
        long = calls.service_min > max(8 * 60, 10 * typical)
    if long.any():
        text = (
            f"{_share(long)} kept a unit busy for over {max(8 * 60, 10 * typical) / 60:.0f} h. Was the end "
            "recorded late?"
        )
        yield _finding("look", "long service", text, calls, long)


# -- words --------------------------------------------------------------------------------------------------------


def _share(mask):
    return f"{mask.sum():,} call(s) ({mask.mean():.1%})"


def _finding(level, what, text, calls, mask):
    rows = tuple(sorted(calls.rows[mask].tolist())[:MOST_ROWS_NAMED])
    return Finding(level, what, text, int(mask.sum()), rows)


def _named(finding):
    if not finding.rows:
        return ""
    more = ", ..." if finding.count > len(finding.rows) else ""
    return f" (row{'s' if len(finding.rows) > 1 else ''} {', '.join(map(str, finding.rows))}{more})"
