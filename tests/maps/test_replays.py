"""Animated days: the page holds the events it was given, and of a log no place, time or date as it was recorded."""

import json
from dataclasses import replace

import numpy as np
import pytest

import emsopt as eo
from emsopt.errors import InputError
from emsopt.maps import replay_map


@pytest.fixture(scope="module")
def day():
    return eo.evaluators.simulate_day(eo.datasets.load_st_paul(), [0, 3, 7, 9, 9], rng=0)


@pytest.fixture(scope="module")
def night():
    system, sites = eo.datasets.load_auckland()
    return eo.operations.simulate(system, sites, calls=100, trace=300, rng=0)


@pytest.fixture(scope="module")
def log():
    calls, stations = eo.datasets.san_jose_calls()
    played = eo.calls.replay(eo.calls.calibrate(calls, stations), draws=2)
    seconds = np.random.default_rng(0).integers(60, size=len(played.calls))  # the log's stamps are whole minutes
    return replace(played, dispatched=played.dispatched + seconds.astype("timedelta64[s]"))


def test_the_page_holds_the_events(day):
    page = replay_map(day)
    (view,) = page.views
    assert view["at"] == np.round(10 * day.minute).astype(int).tolist()
    assert view["unit"] == day.unit.tolist()
    assert view["place"] == day.atom.tolist()
    for name, column in (("go", day.turnout), ("there", day.response), ("free", day.service)):
        expected = 10 * (day.minute + column)
        assert [time is None for time in view[name]] == np.isnan(expected).tolist()
        known = [time for time in view[name] if time is not None]
        assert known == pytest.approx(expected[~np.isnan(expected)], abs=0.51)
    city = day.city
    for unit, home in enumerate(page.scene["home"]):
        at = page.scene["stations"][home]["at"]
        assert at == pytest.approx(city.site_locations[day.sites[unit]][::-1], abs=1e-5)
    assert page.scene["calls"][3] == pytest.approx(city.atom_locations[3][::-1], abs=1e-5)


def test_hours_are_cut_out_with_what_is_still_going_on(day):
    page = replay_map(day, start=10, hours=2)
    (view,) = page.views
    during = (day.minute >= 600) & (day.minute < 720)
    before = (day.minute < 600) & (day.minute + day.service >= 600)
    assert len(view["at"]) == (during | before).sum() > during.sum() > 0
    assert page.scene["clock"] == 600
    with pytest.raises(InputError, match="no call comes between 30 and 31 h"):
        replay_map(day, start=30, hours=1)


def test_units_that_are_busy_at_the_start_are_on_the_page(day):
    busy = replace(day, release=np.array([0.0, 30.0, 75.5, 0.0, 0.0]))
    assert replay_map(busy).views[0]["release"] == [0, 300, 755, 0, 0]
    assert replay_map(busy, start=1).views[0]["release"] == [0, 0, 155, 0, 0]


def test_the_page_says_how_many_drives_end_before_the_unit_arrives(day):
    early = (day.service < day.response).sum()
    assert early > 0
    assert f"in {early} of {(day.unit >= 0).sum()} calls, the unit is free" in replay_map(day).scene["notes"]
    longer = replace(day, service=day.response + 1)
    assert "in 0 of" in replay_map(longer).scene["notes"]


def test_a_log_is_shown_by_cells_and_a_shifted_clock(log):
    page = replay_map(log, start=24, cell_km=1, rng=0)
    text = json.dumps(page.data)
    (view,) = page.views
    assert all(time % 10 == 0 for time in view["at"])
    assert str(log.dispatched.min())[:7] not in text
    exact = {tuple(point) for point in np.round(log.calls.locations[:, ::-1], 5).tolist()}
    assert not exact & {tuple(point) for point in page.scene["calls"]}
    assert len(page.scene["calls"]) < len(exact) / 3
    assert page.scene["clock"] != replay_map(log, start=24, rng=1).scene["clock"]
    names = ("unit", "place", "go", "there", "free")
    same = replay_map(log, start=24, rng=1).views[0]
    assert {name: view[name] for name in names} == {name: same[name] for name in names}
    assert set(view["release"]) == {0}
    for exact in (False, True):  # the sequence of calls stays, so that no page may be passed on without thought
        assert ("do not pass this page on" if exact else "without permission") in replay_map(log, exact=exact).scene[
            "notes"
        ]


def test_exact_calls_are_shown_only_when_asked_for(log):
    page = replay_map(log, draw=1, exact=True)
    first = log.dispatched.min()
    assert page.scene["date"] == str(first)[:10]
    assert page.scene["clock"] == pytest.approx((first - first.astype("datetime64[D]")) / np.timedelta64(1, "m"))
    (view,) = page.views
    assert view["at"][0] >= 0
    minutes = (log.dispatched - first) / np.timedelta64(1, "m")
    assert view["at"] == np.round(10 * minutes[minutes < 24 * 60]).astype(int).tolist()
    assert any(time % 10 for time in view["at"])
    assert page.scene["calls"][5] == pytest.approx(log.calls.locations[5, ::-1], abs=1e-5)
    assert "do not pass this page on" in page.scene["notes"]


def test_a_day_of_san_jose_is_small(log):
    assert len(replay_map(log).html.encode()) < 3e6


@pytest.mark.parametrize(
    ("options", "message"),
    [({"start": -1}, "`start`"), ({"hours": 0}, "`hours`"), ({"draw": 2}, "`draw`"), ({"cell_km": 0.01}, "at least")],
)
def test_bad_options_are_refused(log, options, message):
    with pytest.raises(InputError, match=message):
        replay_map(log, **options)


def test_only_days_and_replays_are_played(day):
    with pytest.raises(InputError, match="`played` must be"):
        replay_map(day.city)
    bare = eo.City([1.0], [[1.0]], turnout_times=1.0, service_times=30.0)
    with pytest.raises(InputError, match="has no `atom_locations`"):
        replay_map(eo.evaluators.simulate_day(bare, [0], rng=0))


def test_drives_of_operations_are_on_the_page(night):
    n, m = night.system.city.travel_times.shape
    drives = night.trace[night.trace["leave"] < 300]
    page = replay_map(night, hours=5)
    (view,) = page.views
    assert view["drives"]["unit"] == drives["unit"].tolist()
    assert view["drives"]["go"] == np.round(10 * drives["leave"]).astype(int).tolist()
    places = [*(station["at"] for station in page.scene["stations"]), *page.scene["calls"], *page.scene["hospitals"]]
    where = np.concatenate(
        [night.system.city.site_locations, night.system.city.atom_locations, night.system.hospital_locations]
    )
    assert [places[k] for k in view["drives"]["to"]] == pytest.approx(where[drives["goal"]][:, ::-1], abs=1e-5)
    sent = drives[(drives["goal"] >= n) & (drives["goal"] < n + m)]
    assert (view["unit"], view["place"]) == (sent["unit"].tolist(), (sent["goal"] - n).tolist())
    assert drives["goal"].max() >= n + m  # some carry a patient
    assert all(at < free for at, free in zip(view["go"], view["free"], strict=True))


def test_operations_later_begin_with_the_drives_before(night):
    page = replay_map(night, start=2, hours=2)
    (view,) = page.views
    assert page.scene["clock"] == 120
    assert min(view["drives"]["go"]) < 0  # tells where the units are
    assert len(view["at"]) < (night.trace["leave"] < 240).sum()


def test_operations_that_cannot_be_drawn(night):
    with pytest.raises(InputError, match="no recorded drive between 900 and 924 h"):
        replay_map(night, start=900)
    with pytest.raises(InputError, match="simulate with a larger `trace`"):
        replay_map(replace(night, trace=None))
    nowhere = replace(night, system=replace(night.system, hospital_locations=None))
    with pytest.raises(InputError, match="`hospital_locations`"):
        replay_map(nowhere)
