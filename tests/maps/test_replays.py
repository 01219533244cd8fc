"""Animated days: the page holds the events it was given, and of a log no place, time or date as it was recorded."""

import json
from dataclasses import replace

import numpy as np
import pytest
from refusals import refused

import emsopt as eo
from emsopt.maps import replay_map


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


def test_a_log_is_shown_by_cells_and_a_shifted_clock(log):
    page = replay_map(log, start=24)
    assert all(time % 10 == 0 for time in page.views[0]["at"])
    assert str(log.dispatched.min())[:7] not in json.dumps(page.data)
    exact = {tuple(point) for point in np.round(log.calls.locations[:, ::-1], 5).tolist()}
    assert not exact & {tuple(point) for point in page.scene["calls"]}
    assert len(page.scene["calls"]) < len(exact) / 3
    assert len({replay_map(log, start=24).scene["clock"] for _ in range(4)}) > 1
    assert "without permission" in page.scene["notes"]  # the sequence of calls stays


def test_the_page_holds_the_hours_asked_for_with_what_is_still_going_on(log):
    minute = np.floor((log.dispatched - log.dispatched.min()) / np.timedelta64(1, "m"))
    last = np.fmax(minute, minute + log.service[0])
    for begin, hours in ((0, 24), (10, 2)):
        page = replay_map(log, start=begin, hours=hours)
        (view,) = page.views
        shown = np.flatnonzero((minute < 60 * (begin + hours)) & (last >= 60 * begin))
        assert begin == 0 or minute[shown].min() < 60 * begin
        assert view["at"] == (10 * (minute[shown] - 60 * begin)).astype(int).tolist()
        assert view["unit"] == log.unit[0, shown].tolist()
        for name, column in (("go", log.turnout), ("there", log.response), ("free", log.service)):
            drawn = np.array([np.nan if time is None else time for time in view[name]])
            expected = 10 * (minute + column[0] - 60 * begin)[shown]
            np.testing.assert_allclose(drawn, expected, atol=0.51)
        early = (log.service < log.response)[0, shown].sum()
        assert f"in {early} of {(log.unit[0, shown] >= 0).sum()} calls, the unit is free" in page.scene["notes"]


def test_wrong_input_is_refused(log, night):
    for options, message in (({"start": -1}, "`start`"), ({"hours": 0}, "`hours`"), ({"start": 9e4}, "no call comes")):
        refused(message, replay_map, log, **options)
    refused("`played` must be", replay_map, log.calls)
    refused("no recorded drive between 900 and 924 h", replay_map, night, start=900)
    refused("simulate with a larger `trace`", replay_map, replace(night, trace=None))
    nowhere = replace(night, system=replace(night.system, hospital_locations=None))
    refused("`hospital_locations`", replay_map, nowhere)


def test_drives_of_operations_and_those_before_are_on_the_page(night):
    city, drives = night.system.city, night.trace[night.trace["leave"] < 300]
    page, (n, m) = replay_map(night, hours=5), city.travel_times.shape
    (view,) = page.views
    assert view["drives"]["unit"] == drives["unit"].tolist()
    assert view["drives"]["go"] == np.round(10 * drives["leave"]).astype(int).tolist()
    places = [*(station["at"] for station in page.scene["stations"]), *page.scene["calls"], *page.scene["hospitals"]]
    where = np.concatenate([city.site_locations, city.atom_locations, night.system.hospital_locations])
    assert [places[k] for k in view["drives"]["to"]] == pytest.approx(where[drives["goal"]][:, ::-1], abs=1e-5)
    sent = drives[(drives["goal"] >= n) & (drives["goal"] < n + m)]
    assert (view["unit"], view["place"]) == (sent["unit"].tolist(), (sent["goal"] - n).tolist())
    assert drives["goal"].max() >= n + m  # some carry a patient
    assert all(at < free for at, free in zip(view["go"], view["free"], strict=True))
