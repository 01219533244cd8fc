"""Times of calls: every form that is read is read right, and every other is refused by its row."""

import datetime

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused

from emsopt import calls as ec
from emsopt.errors import InputError

DAY = "2025-03-14"


def log(*times, **options):
    frame = pd.DataFrame({"time": pd.Series(times, dtype=object), "lon": -30.0, "lat": 45.0})
    return ec.read_calls(frame, **options)


def walls(*times, **options):
    return sorted(str(t) for t in log(*times, **options).times)


@st.composite
def written(draw):
    """An instant by the clock on the wall, its offset in minutes or None, and one of the forms to write both."""
    wall = draw(st.datetimes(datetime.datetime(1970, 1, 2), datetime.datetime(2099, 12, 31, 23, 59, 59)))
    separator = draw(st.sampled_from(["-", "/", ".", ""]))
    padded = separator == "" or draw(st.booleans())
    month, day = (f"{part:02d}" if padded else str(part) for part in (wall.month, wall.day))
    text = separator.join([f"{wall.year}", month, day])
    parts = draw(st.integers(0, 4))  # none, hours, minutes, seconds, a fraction
    if parts == 0:
        return text, wall.replace(hour=0, minute=0, second=0, microsecond=0), None
    clock = f"{wall:%H:%M:%S}".split(":")[:parts]
    colon = draw(st.sampled_from([":", ""]))
    text += draw(st.sampled_from(["T", "t", " ", "  "])) + colon.join(clock)
    if parts == 4:
        text += draw(st.sampled_from(".,")) + f"{wall.microsecond:06d}"[: draw(st.integers(1, 6))]
    wall = wall.replace(minute=wall.minute if parts > 1 else 0, second=wall.second if parts > 2 else 0, microsecond=0)
    form = draw(st.sampled_from(["", "Z", "hh", "hhmm", "hh:mm"]))
    if form in ("", "Z"):
        return text + form, wall, 0 if form else None
    hours, minutes = draw(st.integers(0, 14)), 0 if form == "hh" else draw(st.integers(0, 59))
    sign = draw(st.sampled_from("+-\u2212"))
    colon = ":" if form == "hh:mm" else ""
    offset = f"{hours:02d}" + (f"{colon}{minutes:02d}" if form != "hh" else "")
    text += draw(st.sampled_from(["", " "])) + sign + offset
    return text, wall, (60 * hours + minutes) * (1 if sign == "+" else -1)


@settings(max_examples=60, deadline=None)
@given(written())
def test_every_supported_form_gives_the_right_clock(case):
    """Independently: what was written is known from how it was made."""
    text, wall, offset = case
    read = log(text)
    assert (read.times[0].item(), read.clock) == (wall, {None: "local", 0: "UTC"}.get(offset, "as written"))
    if offset is not None and 1971 <= wall.year <= 2098:
        utc = wall - datetime.timedelta(minutes=offset)
        assert log(text, time_zone="UTC").times[0].item() == utc
        assert log(text, time_zone="Asia/Kolkata").times[0].item() == utc + datetime.timedelta(minutes=330)


def test_whatever_else_is_refused_by_its_row():
    for text in (
        *("now", "2025", "2025-03", "2025-W11-5", "1741968300", "14032025", f"{DAY} 24:01", f"{DAY} 16:60", f"{DAY} 16:05:60"),
        *(f"{DAY} 14:05 AM", f"{DAY} 9", "2025-03/14", f"{DAY} 16:0530", f"{DAY} 16:05.5", "2025314", f"{DAY} noon", "9" * 5000),
        *(f"{DAY} 16:05+5", f"{DAY} 16:05 HST", f"{DAY}T16:05+05:60", f"{DAY}T16:05:00Z[Europe/Berlin]", f"{DAY}+01:00"),
        *("2025-02-29", "2100-02-29", "2025-04-31", "2025-00-10", "2025-13-01", "2025-01-00", "2025-01-32"),
        "\u0662\u0660\u0662\u0665-\u0660\u0663-\u0661\u0664",  # digits, but not those that were meant
    ):  # fmt: skip
        with pytest.raises(InputError, match=r"row 2: expected a time.*but got.*offsets from UTC") as caught:
            log(f"{DAY} 16:05", text)
        assert len(str(caught.value)) < 500


def test_parts_start_at_a_moment_in_any_form_and_at_no_other():
    for kept, *starts in (
        (2, "2025-03-14", datetime.date(2025, 3, 14)),
        (1, "2025-03-14 12:00", "20250314T1200", datetime.datetime(2025, 3, 14, 12)),
        (1, np.datetime64("2025-03-14T12"), pd.Timestamp("2025-03-14 12:00")),
    ):
        for start in starts:
            assert len(log(f"{DAY} 08:00", f"{DAY} 16:00").between(start, "2026-01-01")) == kept
    for moment in ("now", f"{DAY} 16:05Z", "2025", 5, pd.NaT, pd.Timestamp(f"{DAY} 16:05", tz="UTC")):
        refused("must be dates such as", log(DAY).between, "2020-01-01", moment)
        refused("must be dates such as", log(DAY).between, moment, "2030-01-01")


def days(n, start="2025-01-01"):
    return [str(day) for day in np.datetime64(start) + np.arange(n).astype("timedelta64[D]")]


def test_slips_are_told_from_long_gaps():
    for slip in ("2098-01-05", "1971-05-06"):
        refused(f"row 61.*{slip}.*2025-01-01 to 2025-05-30", log, *days(60), slip, *days(60, "2025-04-01"))
    refused(r"row 301: the call of 1971-05-06 \(and 1 more like it\)", log, *days(300), "1971-05-06", "2098-01-05")
    refused(r"the call of 2026-01-01 is far from the others, which span 2025-01-01", log, *days(20), "2026-01-01")
    # Half a year and more apart, but neither a small minority, nor far for a long log, nor a slip to be sure of in a tiny one.
    assert (len(log(*days(60), *days(60, "2028-01-01"))), len(log(*days(600), "2027-12-01"))) == (120, 601)
    assert (len(log(*days(8), "2098-01-01")), len(log(*days(97), *days(3, "2098-01-01")))) == (9, 100)
    assert len(log(*days(20), "2025-06-20")) == 21  # five months after a log of three weeks


def test_timestamps_and_dates_keep_their_own_clocks():
    east = pd.Timestamp("2025-03-14 16:05", tz="Europe/Berlin")
    west = pd.Timestamp("2025-03-14 16:05", tz="America/New_York")
    assert walls(east, west) == ["2025-03-14T16:05:00"] * 2
    assert walls(east, west, time_zone="UTC") == ["2025-03-14T15:05:00", "2025-03-14T20:05:00"]
    assert walls(datetime.date(2025, 3, 14)) == ["2025-03-14T00:00:00"]
    summer_ends = ["2025-11-02 01:30:00-04", "2025-11-02 01:30:00-05"]  # one local clock, two moments
    assert len(set(walls(*summer_ends, time_zone="America/New_York"))) == 1
    assert walls(*summer_ends, time_zone="UTC") == ["2025-11-02T05:30:00", "2025-11-02T06:30:00"]


@pytest.mark.parametrize("layout", ["%q", "%Y%d%d", "%H:%M", "%Y %z", "mixed", 5])
def test_formats_that_cannot_be_used_or_do_not_fit_are_refused(layout):
    refused("time_format", log, DAY, time_format=layout)
    refused("row 2: .*`time_format` '%d.%m.%Y', but got", log, "14.3.2025", DAY, time_format="%d.%m.%Y")
