"""From a log of calls to a city: what is counted is what was put in, and what is wrong is named."""

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused
from uploads import file, geojson, square

import emsopt as eo
from emsopt import calls as ec
from emsopt.calls import areas as areas_module
from emsopt.calls.profile import count_observed_hours, shrinkage_calls
from emsopt.city import travel
from emsopt.errors import InputError

STATIONS = pd.DataFrame({"name": ["A", "B"], "lon": [-30.0, -29.95], "lat": [45.0, 45.02], "turnout_min": 1.5})


def csv(*rows, header="time,lon,lat"):
    return file("\n".join([header, *rows]) + "\n")


def random_log(n, days=70, rng=0, **changes):
    """Calls spread evenly over whole days and a square of about 8 km."""
    rng = np.random.default_rng(rng)
    seconds = np.sort(rng.integers(0, days * 86400, n)).astype("timedelta64[s]")
    east, north = rng.uniform(-0.05, 0.05, n), rng.uniform(-0.04, 0.04, n)
    columns = {"time": np.datetime64("2025-01-06T00:00:00") + seconds, "lon": -30 + east, "lat": 45 + north}
    return pd.DataFrame(columns | changes)


def found(calls, stations=STATIONS, **options):
    return {finding.what: finding for finding in ec.check_calls(calls, stations, **options)}


def test_calls_are_read_in_the_order_of_time_and_blank_rows_are_counted():
    rows = ["2025-03-14 16:05,-30,45,40", "2025-03-13T23:59:30,-30.1,45,", ",-30,45,3", "2025-03-14,NA,45,3"]
    log = ec.read_calls(csv(*rows, header="Time, LON ,lat,service_min"))
    assert log.times.astype(str).tolist() == ["2025-03-13T23:59:30", "2025-03-14T16:05:00"]
    assert log.locations.tolist() == [[-30.1, 45], [-30, 45]]
    assert np.array_equal(log.service_min, [np.nan, 40], equal_nan=True)
    assert (log.rows.tolist(), dict(log.left_out), log.hours.tolist()) == ([2, 1], {"time": 1, "place": 1}, [23, 16])
    assert log.weekdays.tolist() == [3, 4]  # a Thursday and a Friday
    assert log.clock == "local"


def test_frames_files_uploads_and_geojson_give_the_same_log(tmp_path):
    frame = random_log(50, service_min=30.0)
    known = [{"time": str(t), "service_min": 30, "lon": "ignored"} for t in frame["time"]]
    points = [{"type": "Point", "coordinates": [*place, 12.0]} for place in frame[["lon", "lat"]].to_numpy().tolist()]
    (tmp_path / "c.geojson").write_text(geojson(zip(known, points, strict=True)))
    frame.to_csv(tmp_path / "c.csv", index=False)
    reference = ec.read_calls(frame)
    berlin = frame.assign(time=frame["time"].dt.tz_localize("Europe/Berlin"))
    for source in (tmp_path / "c.csv", tmp_path / "c.geojson", file((tmp_path / "c.csv").read_bytes()), berlin):
        pd.testing.assert_frame_equal(ec.read_calls(source).to_frame(), reference.to_frame(), check_exact=True)


MALFORMED = [
    (file(""), "is empty"),
    (file("time,lon,lat\n"), "no rows"),
    (file(b"\xff\xfe\x00"), "columns found: ÿþ"),
    (file("lon,lat\n-30,45\n"), "needs a column 'time'"),
    (file("time,x,y\n2025-01-01,1,2\n"), r"'lon' \(longitude in degrees\) and a column 'lat' \(latitude in degrees\).*columns={'lon': ..., 'lat': ...}"),
    (file("time,lon,lat\n2025-01-01,1\n2025-01-01,1,2\n"), "line 2: expected 3 cells"),
    (file("time,lon,lat,LON\n2025-01-01,1,2,3\n"), "more than one column"),
    (csv("4.3.2025 16:05,-30,45"), "time_format='day first'` or `time_format='month first'"),
    (csv("2025-01-01,-30,45", "yesterday,-30,45", "soon,1,1"), r"row 2: .*'yesterday' \(and 1 more"),
    (csv("0025-03-14,-30,45"), "1970 to 2099"),
    (csv("2025-01-01" + ",x" * 1000, header="date" + "".join(f",c{k}" for k in range(1000))), "columns found: date, c0, .*c18 and 981 more"),
    (csv("2025-01-01 10:00Z,-30,45", "2025-01-01 10:00,-30,45"), "has no offset"),
    (csv("1735725600,-30,45", "1735725660,-30,45", "2025-01-01 10:00,-30,45"), "has no offset"),
    (csv("2025-01-01,45,-100"), "Columns 'lon' and 'lat' look swapped: 'lat' holds the longitudes"),
    (csv("2025-01-01,-30,91"), "from -90 to 90"),
    (csv("2025-01-01,500000,4900000"), "They look projected: give their reference system by `crs`"),
    (csv('2025-01-01,"-30,5,1",45'), "decimal point"),
    (csv("2025-01-01,,45"), "no row has both"),
    (csv("2025-01-01,-30,45,90000", header="time,lon,lat,service_min"), "at most 1440"),
    (csv("2025-01-01,-30,45,1:30", header="time,lon,lat,service_min"), "1:30"),
    (file("{", "c.geojson"), "not valid JSON"),
    (file('{"type": "FeatureCollection", "features": []}', "c.json"), "from 1 to .* features; it has 0"),
    (file('{"type": "FeatureCollection", "features": [{"geometry": {"type": "LineString", "coordinates": []}}]}', "c.json"), "Point"),
    (file("PK", "calls.xlsx"), "not an Excel workbook, or is damaged"),
    (file("PK", "calls.xls"), "no workbook of Excel 97 to 2003. Save the sheet as .xlsx or .csv"),
    (file("PK", "calls.parquet"), "not a Parquet file, or is damaged"),
    (file(b"\x1f\x8bPK", "calls.csv.gz"), "calls.csv.gz cannot be read"),
    (file("x", "calls"), "file ending in .csv, .*; got"),
    (pd.DataFrame({"time": ["2025-01-01"], "lon": ["west"], "lat": ["north"]}), "but got 'west'[.]$"),
    ("no-such-file.csv", "there is no file"),
    (None, "must be the path of"),
]  # fmt: skip


def test_zones_that_are_unknown_or_of_no_use_are_refused():
    refused("have no offset", ec.read_calls, csv("2025-01-01 10:00,-30,45"), time_zone="Europe/Berlin")
    for zone in ("Mars/Base", "../../etc/passwd", "", 5, "Europe"):
        refused("`time_zone` must be", ec.read_calls, csv("2025-01-01 10:00Z,-30,45"), time_zone=zone)


@pytest.mark.parametrize(("source", "words"), MALFORMED, ids=[w for _, w in MALFORMED])
def test_malformed_files_give_clear_messages(source, words):
    with pytest.raises(InputError, match=words) as caught:
        ec.read_calls(source)
    assert len(str(caught.value)) < 700 or isinstance(source, str)
    if hasattr(source, "seek"):
        source.seek(0)


def test_a_file_too_large_is_refused(monkeypatch):
    monkeypatch.setattr(ec._points._formats, "MAX_BYTES", 20)
    refused("the maximum that is read", ec.read_calls, csv("2025-01-01,-30,45"))
    monkeypatch.undo()
    monkeypatch.setattr(ec._points._formats, "MAX_ROWS", 3)
    assert len(ec.read_calls(csv(*["2025-01-01,-30,45"] * 3))) == 3
    for four in (csv(*["2025-01-01,-30,45"] * 4), random_log(4)):
        refused(r"more than 3 rows|4 rows", ec.read_calls, four)


def test_parts_of_a_log():
    log = ec.read_calls(random_log(300, days=10))
    assert len(log.between("2025-01-06", "2025-01-16")) == 300
    part = log.between("2025-01-07", "2025-01-09")
    assert 0 < len(part) < 300
    assert part.times.min() >= np.datetime64("2025-01-07")
    assert part.times.max() < np.datetime64("2025-01-09")
    refused("the log has calls from 2025-01-06", log.between, "2030-01-01", "2031-01-01")
    refused("`start` must be before", log.between, "2025-01-09", "2025-01-07")
    refused("A day ends at 0:00 of the next", log.between, "2025-01-09", "2025-01-09")
    refused("dates", log.between, "soon", "later")
    twice = ec.read_calls(pd.concat([random_log(30), random_log(30)]))
    assert len(twice.without_repeats()) == 30
    refused("truth value", log.where, [True])
    refused("a CallLog is read already", ec.read_calls, log, where="unit == 'A1'")


@given(st.integers(1, 400), st.integers(0, 2**32 - 1), st.sampled_from([0.5, 1.0, 3.0, None]))
@settings(max_examples=12, deadline=None)
def test_no_call_is_lost_and_each_is_counted_where_it_came_from(n, seed, width):
    """Independently: a cell's edges are compared with every call."""
    log = ec.read_calls(random_log(n, rng=seed))
    demand = ec.aggregate_calls(log, STATIONS, cell_km=width)
    assert demand.counts.sum() == n
    counts = np.histogram2d(log.weekdays, log.hours, (range(8), range(25)))[0]
    np.testing.assert_array_equal(demand.counts.sum(axis=0), counts)
    inside = []
    for shape, location in zip(demand.shapes, demand.locations, strict=True):
        ring = np.array(shape["coordinates"][0])
        low, high = ring.min(axis=0) - 2e-7, ring.max(axis=0) + 2e-7
        assert location == pytest.approx((low + high) / 2, abs=1e-6)
        inside.append(int(((log.locations >= low) & (log.locations <= high)).all(axis=1).sum()))
    assert np.abs(np.array(inside) - demand.counts.sum(axis=(1, 2))).sum() <= 2  # rounding of edges
    assert len(set(demand.atom_names)) == len(demand.atom_names)
    if width:
        side = travel.great_circle_km([ring[0]], [ring[1], ring[3]])[0]
        assert side == pytest.approx(width, rel=0.01)


def test_cells_depend_on_the_stations_alone_and_are_at_most_400():
    """Two logs of one city have the same grid, and no coordinate of a call is in the demand."""
    one, other = random_log(300, rng=1), random_log(200, rng=2)
    cells = {}
    for frame in (one, other):
        demand = ec.aggregate_calls(frame, STATIONS, cell_km=2)
        for name, location in zip(demand.atom_names, demand.locations.tolist(), strict=True):
            assert cells.setdefault(name, location) == location
    demand = ec.aggregate_calls(one.iloc[:1], STATIONS, cell_km=2)
    said = json.dumps([demand.shapes, demand.locations.tolist(), demand.notes, demand.atom_names])
    for value in one.iloc[0][["lon", "lat"]]:
        assert f"{value:.4f}" not in said
    refused("could identify callers", ec.aggregate_calls, one, STATIONS, cell_km=0.01)
    demand = ec.aggregate_calls(random_log(5000), STATIONS)
    assert len(demand.atom_names) <= 400
    below = areas_module.WIDTHS_KM[areas_module.WIDTHS_KM.index(demand.cell_km) - 1]
    assert len(ec.aggregate_calls(random_log(5000), STATIONS, cell_km=below).atom_names) > 200


def collection(*named):
    return file(geojson(({"name": name}, shape) for name, shape in named), "areas.geojson")


def test_areas_of_ones_own():
    pytest.importorskip("shapely")
    two = [("west <i>", square(-30.02, 45)), ("east", square(-30.0, 45)), ("empty", square(-29.9, 45))]
    places = [(-30.01, 45.01), (-29.99, 45.01), (-29.99, 45.015), (-30.0, 45.01), (-30.3, 45.01)]  # one on the border
    frame = pd.DataFrame(places, columns=["lon", "lat"]).assign(time=[f"2025-01-06 0{k}:00" for k in range(5)])
    demand = ec.aggregate_calls(frame, STATIONS, areas=collection(*two))
    assert (demand.atom_names, demand.counts.sum(axis=(1, 2)).tolist()) == (["west <i>", "east", "empty"], [2, 2, 0])
    assert demand.left_out == {"in no area": 1}
    city = demand.city(speed_kmh=40, service_times=np.full(2, 40.0))  # of both stations
    assert city.mean_service_time == 40
    assert (city.arrival_rates.tolist(), city.atom_shapes[0]) == (pytest.approx([2 / 5, 2 / 5, 0]), two[0][1])


def test_areas_that_are_none_files_of_two_cities_and_too_many_atoms_are_refused():
    pytest.importorskip("shapely")
    bow_tie = {"type": "Polygon", "coordinates": [[[-30, 45], [-29.9, 45.1], [-29.9, 45], [-30, 45.1], [-30, 45]]]}
    here, point = square(-30, 45), {"type": "Point", "coordinates": [1, 2]}
    for words, areas in (
        ("none of the", collection(("a", square(10, 10)))),
        ("valid polygon", collection(("a", bow_tie))),
        ("distinct", collection(("a", here), ("a", here))),
        ("Polygon", collection(("a", point))),
        ("property 'atom' or", file('{"type": "FeatureCollection", "features": [{}]}', "a.json")),
    ):
        refused(words, ec.aggregate_calls, random_log(20), STATIONS, areas=areas)
    log, wide = random_log(10), random_log(6000, lon=np.random.default_rng(1).uniform(-30.3, -29.7, 6000))
    swapped = STATIONS.rename(columns={"lon": "lat", "lat": "lon"})
    for words, calls, stations, options in (
        ("same city", log, STATIONS.assign(lon=10.0), {}),
        ("swapped in one of them", log, swapped, {}),
        ("swapped in one of them", swap(log, 10), STATIONS, {}),
        ("both were given", log, STATIONS, {"cell_km": 1, "areas": "x.geojson"}),
        ("Make them wider", wide, STATIONS, {"cell_km": 0.05, "reach_km": 500}),
    ):
        refused(words, ec.aggregate_calls, calls, stations, **options)


def test_hours_watched_count_every_hour_once_and_empty_days_if_asked():
    times = np.array(["2025-01-06T22:30", "2025-01-08T01:05"], dtype="datetime64[s]")
    watched = count_observed_hours(times)
    assert (watched.sum(), watched[0].tolist(), watched[1].tolist()) == (2 + 24 + 2, [0] * 22 + [1, 1], [1] * 24)
    assert (watched[2].tolist(), count_observed_hours(times, "missing").sum()) == ([1, 1] + [0] * 22, 4)
    frame = random_log(2000, days=20)
    gone = frame["time"].between("2025-01-12", "2025-01-16 23:59:59")
    whole = ec.aggregate_calls(frame, STATIONS).profile.mean_rate
    counted = ec.aggregate_calls(frame[~gone], STATIONS).profile.mean_rate
    missing = ec.aggregate_calls(frame[~gone], STATIONS, empty_days="missing").profile.mean_rate
    assert (counted, missing) == (pytest.approx(whole * 0.75, rel=0.05), pytest.approx(whole, rel=0.05))


@given(st.integers(0, 2**32 - 1), st.integers(1, 40))
@settings(max_examples=10, deadline=None)
def test_rates_times_hours_watched_are_the_calls(seed, days):
    frame = random_log(100, days=days, rng=seed)
    demand = ec.aggregate_calls(frame, STATIONS, cell_km=2)
    observed = np.argwhere(demand.hours).tolist()
    total = sum(demand.rates([hour], [day]).sum() * demand.hours[day, hour] for day, hour in observed)
    assert (total, demand.rates().sum() * demand.hours.sum()) == (pytest.approx(100), pytest.approx(100))
    assert demand.profile.mean_rate == pytest.approx(demand.rates().sum())
    assert demand.profile.to_frame()["calls"].sum() == 100


def test_patterns_of_hours_are_pulled_to_the_whole_and_not_smoothed_away():
    """An hour's own calls get nearly the weight n / (n + kappa) that they deserve, and none where all hours are alike."""
    rng, atoms, calls, true = np.random.default_rng(7), 30, 100, 300
    shares = rng.dirichlet(np.full(atoms, 2.0))
    deserved, got = calls / (calls + true), []
    for _ in range(30):
        patterns = [rng.multinomial(calls, rng.dirichlet(true * shares)) for _ in range(24)]
        got.append(calls / (calls + shrinkage_calls(np.array(patterns).T)))
    assert 0.75 < np.mean(got) / deserved < 1.1
    flat = [shrinkage_calls(np.array([rng.multinomial(calls, shares) for _ in range(24)]).T) for _ in range(30)]
    assert np.mean(calls / (calls + np.array(flat))) < 0.03


def test_the_shares_of_an_hour_are_its_calls_and_the_pull():
    """(n_hj + kappa s_j) / (n_h + kappa), term by term."""
    calls, stations = eo.datasets.practice_calls()
    demand = ec.aggregate_calls(calls, stations, cell_km=3)
    counts = demand.counts.sum(axis=1)
    pull = shrinkage_calls(counts)
    assert 50 < pull < 5000
    cities = demand.cities_by_hour(speed_kmh=40)
    assert [city.total_rate for city in cities.values()] == pytest.approx(demand.profile.by_hour)
    for hour in (3, 15):
        for atom in range(0, len(counts), 5):
            share = counts[atom].sum() / counts.sum()
            wanted = (counts[atom, hour] + pull * share) / (counts[:, hour].sum() + pull)
            assert cities[hour].demand_shares[atom] == pytest.approx(wanted)


def test_travel_times_are_great_circles_times_detour_over_speed():
    demand = ec.aggregate_calls(random_log(200), STATIONS, cell_km=2)
    city = demand.city(speed_kmh=30, detour=1.4, service_times=40)
    km = travel.great_circle_km(STATIONS[["lon", "lat"]], demand.locations)
    assert (city.travel_times, city.turnout_times.tolist()) == (pytest.approx(km * 1.4 / 30 * 60), [1.5, 1.5])
    assert "not measured" in city.notes
    table = pd.DataFrame(km + 1, index=["A", "B"], columns=demand.atom_names).iloc[::-1]
    given = demand.city(travel_times=table, service_times=40)
    assert given.travel_times == pytest.approx(km + 1)
    assert "km/h" not in given.notes


def test_sound_logs_and_quiet_nights_are_no_finding():
    assert list(ec.check_calls(random_log(3000), STATIONS)) == []
    assert "quiet by day" not in found(by_night([23, 0, 1, 2, 3, 4]))


def spoilt(**changes):
    """A sound log, some columns of whose rows are changed by functions."""
    frame = random_log(3000, service_min=40.0)
    for column, change in changes.items():
        frame[column] = change(frame)
    return frame


def swap(frame, count):
    frame = frame.copy()
    frame.loc[: count - 1, ["lon", "lat"]] = frame.loc[: count - 1, ["lat", "lon"]].to_numpy(copy=True)
    return frame


def by_night(hours):
    """A log whose calls are fewer in six hours of the day."""
    frame = random_log(3000)
    drop = frame["time"].dt.hour.isin(hours) & (np.arange(len(frame)) % 3 > 0)
    return frame[~drop]


@pytest.mark.parametrize(
    ("what", "log", "level", "count"),
    [
        ("few calls", random_log(200), "look", 200),
        ("repeated calls", pd.concat([random_log(3000), random_log(3000).iloc[:7]]), "look", 7),
        ("swapped coordinates", swap(random_log(3000), 9), "wrong", 9),
        ("sign of the longitude", spoilt(lon=lambda f: np.where(f.index < 4, -f["lon"], f["lon"])), "wrong", 4),
        ("sign of the latitude", spoilt(lat=lambda f: np.where(f.index < 4, -f["lat"], f["lat"])), "wrong", 4),
        ("no place", spoilt(**{c: (lambda f, c=c: f[c].where(f.index >= 5, 0.0)) for c in ("lon", "lat")}), "wrong", 5),
        ("far outside", spoilt(lat=lambda f: f["lat"].where(f.index >= 3, 47.0)), "look", 3),
        ("one place", spoilt(**{c: (lambda f, c=c: f[c].where(f.index % 20 > 0, f[c].iloc[0])) for c in ("lon", "lat")}), "look", 150),
        ("rounded places", spoilt(lon=lambda f: f["lon"].round(2), lat=lambda f: f["lat"].round(2)), "look", 3000),
        ("gaps in time", random_log(3000)[lambda f: ~f["time"].between("2025-02-01", "2025-02-02 12:00")], "wrong", 1),
        ("midnight", spoilt(time=lambda f: f["time"].dt.normalize()), "wrong", 3000),
        ("rounded times", spoilt(time=lambda f: f["time"].dt.floor("h")), "look", 3000),
        ("quiet by day", by_night(range(9, 15)), "look", None),
        ("trend", random_log(3000)[lambda f: (f["time"] < "2025-02-10") | (f.index % 2 == 0)], "look", None),
        ("silent weekdays", random_log(3000)[lambda f: f["time"].dt.day_of_week != 2], "look", 1),
        ("bunches of calls", random_log(6000)[lambda f: (f["time"].dt.day % 2 == 0) | (f.index % 2 == 0)], "look", None),
        ("service time", spoilt(service_min=lambda f: 0.7), "wrong", 3000),
        ("service time", spoilt(service_min=lambda f: 900.0), "wrong", 3000),
        ("service time", spoilt(service_min=lambda f: f["service_min"].where(f.index % 2 == 0)), "look", 1500),
        ("no service time", spoilt(service_min=lambda f: f["service_min"].where(f.index > 3, 0.0)), "look", 4),
        ("no service time", spoilt(service_min=lambda f: f["service_min"].where(f.index > 999, -2.0)), "wrong", 1000),
        ("long service", spoilt(service_min=lambda f: f["service_min"].where(f.index > 3, 1000.0)), "look", 4),
        ("time zone", random_log(3000).assign(time=lambda f: f["time"].dt.tz_localize("UTC")), "look", 3000),
        ("rows without time", spoilt(time=lambda f: f["time"].where(f.index > 4)), "look", 5),
        ("rows without place", spoilt(lat=lambda f: f["lat"].where(f.index > 1)), "look", 2),
    ],
)  # fmt: skip
def test_each_fault_is_found_and_nothing_else(what, log, level, count):
    findings = found(log)
    allowed = {"gaps in time"} if what == "silent weekdays" else set()
    assert what in findings
    assert (set(findings) - allowed, findings[what].level) == ({what}, level)
    if count is not None:
        assert findings[what].count == count
    assert len(findings[what].rows) <= 5


def test_calls_without_a_service_time_count_and_their_time_does_not():
    """A call that ended when it began is a slip of a clock: it came, and says nothing about service."""
    lines = ["2025-01-01,-30,45,40", "2025-01-03,-30,45,0", "2025-01-02,-30,45,-3", "2025-01-04,-30,45,20"]
    log = ec.read_calls(csv(*lines, header="time,lon,lat,service_min"))
    assert len(log) == 4
    assert np.array_equal(log.service_min, [40, np.nan, np.nan, 20], equal_nan=True)
    assert (log.no_service.tolist(), found(log)["no service time"].rows) == ([False, True, True, False], (2, 3))
    assert ec.aggregate_calls(log, STATIONS, cell_km=1, empty_days="missing").service_min == 30
    rest = log.where(log.no_service)
    assert found(rest)["no service time"].count == 2
    none = ec.read_calls(csv(lines[1], header="time,lon,lat,service_min"))
    assert none.service_min is None
    assert found(none)["no service time"].level == "wrong"


def test_odd_places_are_found_by_row():
    frame = swap(random_log(2000), 3).sample(frac=1, random_state=1)
    rows = np.sort(np.flatnonzero(frame["lon"] > 0) + 1)
    assert list(found(frame)["swapped coordinates"].rows) == rows.tolist()
    log = random_log(2000)
    stations = pd.DataFrame({"name": ["A", "<script>", "C"], "lon": [-30, 45.0, -29.7], "lat": [45, -30.0, 45.2]})
    findings = list(ec.check_calls(log, stations))
    assert [(f.what, f.rows) for f in findings] == [("station swapped", (2,)), ("station outside", (3,))]
    assert [f.level for f in findings] == ["wrong", "look"]
    checks = ec.check_calls(log, stations)
    assert "<script>" not in checks._repr_html_()
    assert checks.to_frame()["count"].tolist() == [1, 1]
    assert set(found(swap(random_log(2000), 3), None)) == {"swapped coordinates"}


def test_service_times_come_from_where_they_are():
    frame = random_log(100, service_min=np.r_[np.full(50, 30.0), np.full(50, 50.0)])
    bare, timed = frame.drop(columns="service_min"), STATIONS.assign(service_min=25.0)
    make = lambda calls, stations, **more: eo.calls.city_from_calls(calls, stations, speed_kmh=40, **more)
    for minutes, calls, stations, more in (
        (40, frame, STATIONS, {}),
        (35, frame, STATIONS, {"service_times": 35}),
        (25, bare, timed, {}),
        (40, frame, timed, {"service_times": "calls"}),
        (25, frame, timed, {"service_times": "stations"}),
    ):
        assert make(calls, stations, **more).mean_service_time == pytest.approx(minutes)
    refused("both have", make, frame, timed)
    refused("that a call keeps a unit busy is missing", make, bare, STATIONS)
    refused("stations have no column", make, frame, STATIONS, service_times="stations")
    refused("calls have no column", make, frame.assign(service_min=np.nan), STATIONS, service_times="calls")
    frame.loc[0, ["lon", "lat"]] = [0.0, 0.0]
    frame.loc[1, "time"] = pd.NaT
    notes = make(frame, STATIONS).notes  # which say what was left out
    assert all(part in notes for part in ("98 calls", "1 without time", "1 over 50 km"))


def test_hours_the_log_does_not_cover_are_refused():
    frame = random_log(50, days=1)
    refused("does not cover any", ec.aggregate_calls(frame, STATIONS).rates, [3], ["Sun"])
    morning = ec.aggregate_calls(frame[pd.to_datetime(frame["time"]).dt.hour < 9], STATIONS)
    options = {"speed_kmh": 40, "service_times": 4}
    refused(r"no time from \d+:00 to \d+:00", morning.cities_by_hour, **options)
    days = [day for day, hours in zip(ec.profile.WEEKDAYS, morning.hours, strict=True) if hours.any()]
    refused("Give more weekdays", morning.cities_by_hour, weekdays=days, **options)


def test_the_practice_log_has_its_faults_and_templates_make_a_city(tmp_path):
    findings = found(*eo.datasets.practice_calls())
    assert findings.pop("one place").count > 100
    counts = {what: finding.count for what, finding in findings.items()}
    rows = {"rows without time": 8, "rows without place": 12, "swapped coordinates": 12, "no place": 6}
    assert counts == rows | {"far outside": 3, "repeated calls": 19, "gaps in time": 1}
    assert eo.calls.city_from_calls(*eo.datasets.write_templates(tmp_path / "mine"), speed_kmh=40).n_sites == 3
    refused("left unchanged", eo.datasets.write_templates, tmp_path / "mine")
    (tmp_path / "file").write_text("x")
    refused("a file is in the place of a folder", eo.datasets.write_templates, tmp_path / "file")
