"""Calls that are known, written in every way that `read_calls` claims to read, are what is read back."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from refusals import refused
from uploads import file

from emsopt import calls as ec
from emsopt._files.columns import BLANKS

STAMPS = {"dispatched": 1, "en_route": 2.5, "on_scene": 9, "cleared": 50}  # minutes after the call
SLOW = settings(max_examples=4, deadline=None, suppress_health_check=list(HealthCheck))
ODD = settings(SLOW, max_examples=15)  # cells and rows of many kinds
NOTHING = [*sorted(BLANKS), "#N/A", "NULL", "(null)", "\\N", "N/A"]
FILLERS = [
    *("1900-01-01", "1900-01-01 00:00:00", "9999-12-31 23:59:59", "0001-01-01 00:00:00", "1970-01-01 00:00:00"),
    *("0000-00-00 00:00:00", "1899-12-30 00:00:00", "1753-01-01 00:00:00", "2079-06-06 23:59:00"),
]  # fmt: skip


@st.composite
def logs(draw, few=12, most=40):
    """Calls at distinct minutes of March 2025, at all hours and after the 12th too, with stamps to the second."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    minutes = rng.choice(30 * 1440, draw(st.integers(few, most)), replace=False)
    times = np.sort(np.datetime64("2025-03-01") + np.array([*minutes, 30 * 1440 + 7]).astype("timedelta64[m]"))
    frame = pd.DataFrame({"time": times.astype("datetime64[s]")})
    frame["lon"], frame["lat"] = np.round(rng.uniform((-93.4, 44.8), (-93.0, 45.0), (len(times), 2)), 6).T
    late = rng.integers(0, 60, len(times)).astype("timedelta64[s]")
    for role, after in STAMPS.items():
        frame[role] = frame["time"] + pd.Timedelta(minutes=after) + late
    return frame.drop_duplicates("time", ignore_index=True)


def same(log, frame, roles=tuple(STAMPS)):
    assert log.times.tolist() == frame["time"].to_numpy().astype("datetime64[s]").tolist(), "time"
    assert log.locations.tolist() == frame[["lon", "lat"]].to_numpy().tolist()
    for role in roles:
        found, wanted = (table[role].to_numpy().astype("datetime64[s]").tolist() for table in (log.details, frame))
        assert found == wanted, role


def fraction(moments):
    return [repr((t - t.normalize()) / pd.Timedelta(days=1)) if t != t.normalize() else "0.0" for t in moments]


CLOCKS = {
    "24 hours": lambda m: m.dt.strftime("%H:%M:%S"),
    "12 hours": lambda m: m.dt.strftime("%I:%M:%S %p"),
    "Access": lambda m: m.dt.strftime("12/30/1899 %H:%M:%S"),
    "Excel": lambda m: m.dt.strftime("1/0/1900 %H:%M:%S"),
    "strptime": lambda m: m.dt.strftime("1900-01-01 %H:%M:%S"),
    "ISO in UTC": lambda m: m.dt.strftime("1899-12-30T%H:%M:%S.000Z"),
    "Rails": lambda m: m.dt.strftime("2000-01-01 %H:%M:%S UTC"),
    "Unix": lambda m: m.dt.strftime("1970-01-01 %H:%M:%S"),
    "German": lambda m: m.dt.strftime("30.12.1899 %H:%M:%S"),
    "a fraction of a day": lambda m: fraction(m),
    "timedelta": lambda m: m - m.dt.normalize(),
    "datetime": lambda m: m - m.dt.normalize() + pd.Timestamp("1899-12-30"),
    "time": lambda m: m.dt.time,
}


@pytest.mark.parametrize("form", CLOCKS)
@SLOW
@given(frame=logs())
def test_times_of_day_belong_to_the_call(form, frame):
    written = frame[["lon", "lat"]].assign(date=frame["time"].dt.strftime("%Y-%m-%d"))
    for role in ("time", *STAMPS):
        written[role] = CLOCKS[form](frame[role])
    same(ec.read_calls(written), frame)
    same(ec.read_calls(written.drop(columns="date").assign(time=frame["time"])), frame)
    if form not in ("timedelta", "datetime"):
        same(ec.read_calls(file(written.to_csv(index=False))), frame)


LAYOUTS = {
    "local": [
        *("%m/%d/%Y %I:%M:%S %p", "%d/%m/%Y %H:%M:%S", "%d.%m.%Y %H:%M:%S", "%d-%b-%Y %H:%M:%S"),
        *("%Y %b %d %I:%M:%S %p", "%B %d, %Y %H:%M:%S", "%Y%m%d%H%M%S", "%Y-%m-%d %I:%M:%S%p"),
        *("%a %d %b %Y, %H:%M:%S", "%d%b%Y:%H:%M:%S", "%b %d %Y %I:%M:%S %p", "%a %b %d %H:%M:%S %Y"),
    ],
    "UTC": ["%Y-%m-%d %H:%M:%S UTC"],
    "as written": [
        *("%a %b %d %Y %H:%M:%S GMT-0500 (Central Daylight Time)", "%a %b %d %H:%M:%S CDT %Y"),
        *("%a, %d %b %Y %H:%M:%S -0500", "%Y-%m-%d %H:%M:%S CST"),
    ],
}


@pytest.mark.parametrize(("layout", "clock"), [(layout, clock) for clock in LAYOUTS for layout in LAYOUTS[clock]])
@SLOW
@given(frame=logs())
def test_moments(layout, clock, frame):
    written = frame.assign(**{role: frame[role].dt.strftime(layout) for role in ("time", *STAMPS)})
    log = ec.read_calls(written)
    same(log, frame)
    assert log.clock == clock


@SLOW
@given(logs(), st.permutations(["%d/%m/%Y %H:%M:%S", "%Y-%m-%d %H:%M:%S", "%d-%b-%Y %H:%M:%S"]))
def test_cells_of_one_column_may_have_different_forms(frame, layouts):
    """Half text, half date, as a spreadsheet leaves it; every third cell in each form."""
    written = frame.assign(time=[t.strftime(layouts[k % 3]) for k, t in enumerate(frame["time"])])
    same(ec.read_calls(written, time_format="day first"), frame, ())


@SLOW
@given(logs())
def test_midnight_is_the_end_of_a_day_too(frame):
    frame = frame.assign(time=frame["time"].dt.normalize()).drop_duplicates("time", ignore_index=True)
    before = frame["time"] - pd.Timedelta(days=1)
    places = frame[["lon", "lat"]]
    same(ec.read_calls(places.assign(time=before.dt.strftime("%Y-%m-%d 24:00:00"))), frame, ())
    same(ec.read_calls(places.assign(date=before.dt.strftime("%d.%m.%Y"), time="24:00")), frame, ())


DURATIONS = {
    "M:SS": lambda s: f"{s // 60}:{s % 60:02d}",
    "MM:SS": lambda s: f"{s // 60:02d}:{s % 60:02d}",
    "H:MM:SS": lambda s: f"{s // 3600}:{s // 60 % 60:02d}:{s % 60:02d}",
    "Excel's M:SS:00": lambda s: f"{s // 60}:{s % 60:02d}:00",
    "0 days": lambda s: str(pd.Timedelta(seconds=s)),
    "ISO 8601": lambda s: f"PT{s // 60}M{s % 60}S",
    "words": lambda s: f"{s // 60} min {s % 60} sec",
    "seconds": str,
    "minutes": lambda s: f"{s / 60:.4f}",
    "a fraction of a day": lambda s: f"{s / 86400:.9f}",
    "a day before 1970": lambda s: f"1899-12-30 0{s // 3600}:{s // 60 % 60:02d}:{s % 60:02d}",
}


@pytest.mark.parametrize("form", DURATIONS)
@SLOW
@given(logs(), st.lists(st.integers(60, 1199), min_size=60, max_size=60))
def test_elapsed_times_give_stamps(form, frame, lasting):
    """A column of elapsed times is no clock, gives the arrivals where they are missing, and their seconds where not."""
    lasting = np.array(lasting[: len(frame)])
    arrival = frame["dispatched"] + pd.to_timedelta(lasting, unit="s")
    column = [DURATIONS[form](s) for s in lasting.tolist()]
    written = frame[["time", "lon", "lat", "dispatched"]].assign(**{"Unit Response Time": column})
    log = ec.read_calls(written)
    assert log.taken.get("response_time") == "Unit Response Time"
    assert (log.details["on_scene"].to_numpy() == arrival.to_numpy()).all()
    coarse = written.assign(dispatched=frame["dispatched"].dt.floor("min"), on_scene=arrival.dt.floor("min"))
    stamps = ec.read_calls(coarse).details
    assert ((stamps["on_scene"] - stamps["dispatched"]).dt.total_seconds() == lasting).all()
    assert (stamps["on_scene"].dt.floor("min").to_numpy() == coarse["on_scene"].to_numpy()).all()
    assert (stamps["dispatched"].dt.floor("min").to_numpy() == coarse["dispatched"].to_numpy()).all()


def test_hours_and_days_of_elapsed_times_count():
    frame = pd.DataFrame({"time": [f"2025-03-1{k} 16:05" for k in range(5)], "lon": -93.1, "lat": 44.9})
    for start, name, lasting, write in (
        ("on_scene", "Time On Scene", ["11min", "62min", "119min", "10min", "33min"], lambda t: str(t)[-8:-3]),
        ("dispatched", "Service Time", ["26h", *["40min"] * 4], str),
    ):
        lasting = pd.to_timedelta(lasting)
        log = ec.read_calls(frame.assign(**{start: frame["time"], name: list(map(write, lasting))}))
        assert (log.details["cleared"] - log.details[start]).tolist() == lasting.tolist()


@pytest.mark.parametrize("night", ["2025-03-09", "2025-11-02"])
def test_durations_across_a_change_of_clocks(night):
    """Independently: moments in UTC, written with the offset of Chicago at each of them."""
    utc = pd.date_range(f"{night} 05:00", f"{night} 09:00", freq="7min", tz="UTC")
    after = {"time": 0} | STAMPS
    columns = {role: (utc + pd.Timedelta(minutes=m)).tz_convert("America/Chicago") for role, m in after.items()}
    for options in ({"time_zone": "America/Chicago"}, {}):
        for frame in (pd.DataFrame(columns), pd.DataFrame({name: [str(t) for t in c] for name, c in columns.items()})):
            log = ec.read_calls(frame.assign(lon=-93.1, lat=44.9), **options)
            for (a, start), (b, end) in zip(list(STAMPS.items())[:-1], list(STAMPS.items())[1:], strict=True):
                assert ((log.details[b] - log.details[a]).dt.total_seconds() == 60 * (end - start)).all()
            assert (log.service_min == 49).all()


@ODD
@given(logs(), st.data())
def test_words_for_missing_values_are_blank_cells(frame, data):
    written = frame.astype(str)
    kept = np.ones(len(frame), bool)
    for k in data.draw(st.sets(st.integers(0, len(frame) - 2), max_size=5)):
        role = data.draw(st.sampled_from(["time", "lon", "lat"]))
        written.loc[k, role] = data.draw(st.sampled_from(NOTHING + (FILLERS if role == "time" else [])))
        kept[k] = False
    stamp = data.draw(st.integers(0, len(frame) - 1))
    written.loc[stamp, "on_scene"] = data.draw(st.sampled_from(NOTHING + FILLERS))
    totals = ["(12 rows affected)\n", "Total\n", "Total,12\n", "Total,,,,,,\n"]
    end = data.draw(st.sampled_from(["", *totals, written.tail(1).to_csv(index=False)[:50]]))
    log = ec.read_calls(file(written.to_csv(index=False) + end))
    same(log, frame[kept].reset_index(drop=True), ["dispatched"])
    assert log.details["on_scene"].isna().sum() == kept[stamp]
    twice = end.startswith("time,") and end.count("\n") > 1
    assert sum(log.left_out.values()) == (~kept).sum() + bool(end) + twice


def test_fillers_need_no_offset_and_most_rows_are_never_left_out():
    frame = pd.DataFrame({"time": ["2025-03-14 16:05Z", *FILLERS, "2025-03-15 16:05Z"], "lon": -93.1, "lat": 44.9})
    assert ec.read_calls(frame).rows.tolist() == [1, len(FILLERS) + 2]
    frame = pd.DataFrame({"time": "2025-03-14 16:05", "lon": [500.0] * 8 + [-93.0] * 2, "lat": 45.0})
    refused("degrees from -180 to 180", ec.read_calls, frame, on_bad="leave out")


@ODD
@given(logs(), st.data())
def test_rows_with_bad_cells_are_left_out_if_wanted(frame, data):
    written, kept = frame[["time", "lon", "lat"]].astype(str).assign(service_min="30"), np.ones(len(frame), bool)
    bad = {"time": ["soon", "2025-13-01", "1066-05-05 10:00"], "lon": ["east", "500"], "lat": ["91"], "service_min": ["long", "1e9"]}  # fmt: skip
    for k in data.draw(st.sets(st.integers(0, len(frame) - 2), min_size=1, max_size=5)):
        role = data.draw(st.sampled_from(sorted(bad)))
        written.loc[k, role] = data.draw(st.sampled_from(bad[role]))
        kept[k] = False
    refused("row ", ec.read_calls, file(written.to_csv(index=False)))
    log = ec.read_calls(file(written.to_csv(index=False)), on_bad="leave out")
    same(log, frame[kept].reset_index(drop=True), ())
    assert dict(log.left_out) == {"readable cells": (~kept).sum()}


def test_a_file_without_header_is_named_as_such():
    refused("has no header", ec.read_calls, file("40.0883549,-75.3821004,EMS,2016-01-15 12:01\n" * 9))
    refused("has no header", ec.read_stations, file("North,44.91,-93.12\nSouth,44.92,-93.13\n"))
    named = ec.read_calls(file("time,lon,lat,2025\n2025-03-14 16:05,-93.1,44.9,x\n"))
    assert len(named) == 1  # one such name is a name


@ODD
@given(logs(), st.data())
def test_rows_are_joined_only_where_number_time_and_place_agree(frame, data):
    """Numbers that restart every day, are shared by two agencies, are types of calls, or are not filled in."""
    kind = data.draw(st.sampled_from(["restart", "agencies", "types", "not filled in"]))
    frame["incident_number"] = np.arange(len(frame))
    if kind == "restart":  # always at one place
        number = 1 + frame["time"].dt.day % 4
        frame = frame[~frame["time"].dt.date.duplicated()].assign(lon=-93.1, lat=44.9, incident_number=number)
        frame = frame[frame["time"].diff().fillna(pd.Timedelta("1D")) > pd.Timedelta(hours=3)]
    elif kind == "agencies":
        frame = pd.concat([frame, frame.assign(lon=frame["lon"] + data.draw(st.floats(0.007, 1)))])
    elif kind == "types":
        frame = frame.assign(lon=-93.4 + 0.01 * np.arange(len(frame)), incident_number=np.arange(len(frame)) % 3)
    else:
        frame["incident_number"] = data.draw(st.sampled_from(["UNKNOWN", "#N/A", "\\N"]))
    log = ec.read_calls(frame)
    assert (len(log), log.joined) == (len(frame), 0)


@settings(SLOW, max_examples=10)
@given(logs(), st.data())
def test_rows_of_units_statuses_and_patients_are_gathered(frame, data):
    """Independently: each call is written as a row per unit, per status or per patient, in a random order."""
    frame = frame[frame["time"].diff().fillna(pd.Timedelta(days=1)) > pd.Timedelta(hours=1)].reset_index(drop=True)
    frame["incident"] = "I" + frame.index.astype(str)
    units = np.array(data.draw(st.lists(st.integers(1, 3), min_size=len(frame), max_size=len(frame))))
    rows = frame.loc[frame.index.repeat(units)].reset_index(drop=True)
    rows["unit"] = "U" + rows.groupby("incident").cumcount().astype(str)
    for role in STAMPS:  # later units do all things later
        rows[role] += pd.to_timedelta(rows["unit"].str[1:].astype(int) * 30, unit="s")
    kind = data.draw(st.sampled_from(["units", "statuses", "patients"]))
    if kind == "statuses":
        said = ["Call Created", "Dispatched", "En Route", "On Scene", "Clear"]
        same_for_all = rows[["incident", "unit", "lon", "lat"]]
        stamps = zip(["time", *STAMPS], said, strict=True)
        rows = pd.concat([same_for_all.assign(status=word, timestamp=rows[role]) for role, word in stamps])
    elif kind == "patients":
        rows = pd.concat([rows.assign(patient_id=k) for k in range(data.draw(st.integers(2, 4)))])
    log = ec.read_calls(rows.sample(frac=1, random_state=1).rename(columns={"incident": "Incident Number"}))
    same(log, frame)
    assert log.details.get("units_sent", pd.Series(1, frame.index)).tolist() == units.tolist()
    assert (log.service_min == 49).all()
    assert log.joined == len(rows) - len(frame)


def test_rows_of_an_incident_are_joined_in_every_direction():
    """Two rows of a number are joined if they lie 0.4 km apart, and kept apart if 0.6 km; the globe gives distances."""
    for km, joined in ((0.4, 1), (0.6, 0)):
        for angle in np.radians(range(0, 360, 45)):
            north, east = km / 111.2 * np.cos(angle), km / 111.2 * np.sin(angle) / np.cos(np.radians(44.9))
            places = {"lon": [174.8, 174.8 + east], "lat": [44.9, 44.9 + north]}
            log = ec.read_calls(pd.DataFrame({"time": "2025-03-14 16:05", "incident_number": 7} | places))
            assert log.joined == joined
            assert not joined or log.join_extent[1] == pytest.approx(km, rel=0.01)


def test_patients_without_units_are_no_units():
    same_for_all = {"time": "2025-03-14 16:05", "lon": -93.1, "lat": 44.9}
    log = ec.read_calls(pd.DataFrame({"event_id": [1, 1, 2], "patient_id": [1, 2, 1]} | same_for_all))
    assert len(log) == 2
    assert "units_sent" not in log.details


@SLOW
@given(logs(), st.integers(1, 9))
def test_logs_of_months_are_one_log(frame, cut):
    """The parts have different names and forms."""
    early, late = frame.iloc[:cut], frame.iloc[cut:]
    late = late.assign(time=late["time"].dt.strftime("%d.%m.%Y %H:%M:%S")).rename(columns={"on_scene": "Arrived"})
    files = [file(late.to_csv(index=False)), early, file(b"\0\5\26\7", "._calls.csv")]
    log = ec.read_calls(files)
    same(log, frame)
    assert sorted(log.rows) == list(range(1, len(frame) + 1))
    assert log.rows.tolist() == [*range(len(late) + 1, len(frame) + 1), *range(1, len(late) + 1)]
    for wrong in ([], [early.assign(time=early["time"].dt.tz_localize("UTC")), frame]):
        refused("logs must be", ec.read_calls, wrong)


ROWS = pd.DataFrame({"time": pd.date_range("2025-03-14", periods=6, freq="h"), "lon": -93.1, "lat": 44.9})
ROWS["Priority"] = ["1", "2", "3", "1", "", "P1"]
ROWS["Inc Type"] = ["EMS", "TRANSFER", "EMS, fall", "it's", "a and b", "EMS"]
CHOICES = {
    "Priority == 1": [0, 3],
    "Priority != 1": [1, 2, 4, 5],
    "Priority <= 2 and Inc_Type != 'TRANSFER'": [0, 3],
    "1 < Priority < 4": [1, 2],
    "Priority == 'P1' or Priority in [2, 3]": [1, 2, 5],
    "not Priority == None and inc_type == 'EMS'": [0, 5],
    "(Priority == 1) & ~(Inc_Type == 'EMS') | (Inc_Type == 'a and b')": [3, 4],
    'Inc_Type == "it\'s"': [3],
    "Priority < 3 or inc_type == 'a and b'": [0, 1, 3, 4],
    "inc_type == 'a and b' or Priority < 3": [0, 1, 3, 4],
}


@pytest.mark.parametrize("where", CHOICES)
def test_rows_are_chosen_by_an_expression(where):
    for source in (ROWS, file(ROWS.to_csv(index=False))):
        log = ec.read_calls(source, where=where)
        assert (log.rows.tolist(), log.not_chosen) == ([k + 1 for k in CHOICES[where]], len(ROWS) - len(log))
        assert not log.left_out


def test_rows_are_chosen_by_a_mapping_and_others_are_counted():
    assert ec.read_calls(ROWS, where={"Inc Type": "EMS"}).rows.tolist() == [1, 6]
    assert ec.read_calls(ROWS, where={"Priority": [1, None], "Inc Type": ["EMS", "a and b"]}).rows.tolist() == [1, 5]
    frame = ROWS.assign(lon=["east", *[-93.1] * 5])
    assert ec.read_calls(frame, where="Priority == 2").rows.tolist() == [2]
    refused("no column 'Prio'", ec.read_calls, ROWS, where="Prio == 1")
    refused("none of the 6 rows", ec.read_calls, ROWS, where="Priority == 9")
    log = ec.read_calls(ROWS)
    assert log.others == {("Inc Type", "TRANSFER"): 1}
    (found,) = (each for each in ec.check_calls(log) if each.what == "rows that may be no calls")
    chosen = found.text.values["where"]
    assert found.text.values["others"] == "ignored"
    assert not ec.read_calls(ROWS, where=chosen).others
    assert len(ec.read_calls(ROWS, where=chosen)) == 5
    for role in ("priority", "agency"):  # a column may hold kinds and have a role
        assert ec.read_calls(ROWS.drop(columns="Priority"), {role: "Inc Type"}).others == log.others


def test_what_is_no_choice_is_refused():
    for where in (
        *("__import__('os').system('true')", "Priority.real == 1", "abs(Priority) == 1", "`Inc Type` == 'EMS'", "Priority", "1 == 1", "", 5, {}),
        *("Priority == [x for x in (1, 2)]", "(lambda: 1) == Priority", "Priority if 1 else 2", "time > '2025-01-01'", "Priority + 1 == 2"),
        *("(Priority := 1) == 1", "Priority[0] == 1", "Priority == 1; 1", "Priority ** 9 == 1", "x" * 5000, "@x == 1", {1: 2}, "Priority =="),
        *("Priority == f'{1}'", "[Priority == 1]", "*Priority == 1", "Inc_Type in 'EMS'", "-Priority"),
    ):  # fmt: skip
        refused("`where` must compare columns", ec.read_calls, ROWS, where=where)


def test_a_column_can_be_left_out():
    frame = ROWS[["time", "lon", "lat"]].assign(**{"En Route": ROWS["time"] + pd.Timedelta("2min"), "unit": "E1"})
    assert "en_route" in ec.read_calls(frame).details
    for nothing in (None, "none", "None", "", " none "):
        log = ec.read_calls(frame, columns={"en_route": nothing, "unit": nothing})
        assert list(log.details) == []
    assert ec.read_calls(frame.rename(columns={"unit": "None"}), columns={"unit": "none"}).details["unit"][0] == "E1"


NAMES = {
    "PrimaryUnit": "unit", "primary_unit": "unit", "LastClear": "cleared", "FirstArrive": "on_scene", "FirstEnroute": "en_route",
    "FirstDispatchTime": "dispatched", "Notify Date": "dispatched", "Arrival Date": "on_scene", "Clear Date": "cleared",
}  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_names_of_public_exports_are_found(name):
    cells = "E1" if NAMES[name] == "unit" else ROWS["time"] + pd.Timedelta("5min")
    log = ec.read_calls(ROWS[["time", "lon", "lat"]].rename(columns={"time": "911 Date"}).assign(**{name: cells}))
    assert (log.taken["time"], log.taken[NAMES[name]]) == ("911 Date", name)
