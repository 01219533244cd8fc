"""Speeds of classes of roads, from logs drawn with known ones in Monaco."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import emsopt as eo

LON, LAT = [7.413, 7.418, 7.421, 7.427, 7.432], [43.729, 43.733, 43.739, 43.741, 43.747]
STATIONS = pd.DataFrame({"name": [f"Station {k}" for k in range(1, 6)], "lon": LON, "lat": LAT})
TRUE = {"primary": 1.6, "secondary": 2.2, "tertiary": 1.3, "unclassified": 0.8}  # of free-flow minutes; others 1
FAR = {"off_road_km": 50.0}


@pytest.fixture(scope="module")
def net():
    return eo.datasets.load_roads("monaco")


@pytest.fixture(scope="module")
def slow(net):
    """The same roads, with the true speeds."""
    return replace(net, speed_limits=net.speed_limits / [TRUE.get(name, 1.0) for name in net.classes])


def fitted(net, slow, seed):
    """A fit to a month of drives, half a minute longer than the quickest way on the true roads."""
    truth = eo.calls.Truth(fixed_min=0.5, minutes_per_km=1.0, travel_cv=0.3)

    def minutes(stations, places):
        return slow.travel_times(stations, places, **FAR)

    log = eo.calls.synthetic_log(STATIONS, truth, days=28, spread_km=0.7, distances=minutes, rng=seed)
    homes = {unit: f"Station {unit[1:]}" for unit in log.details["unit"].unique()}
    return log, homes, eo.calls.calibrate(log, STATIONS, homes, net)


def test_known_speeds_of_classes_are_found_and_improve_travel_times(net, slow):
    places = np.random.default_rng(1).uniform([7.412, 43.73], [7.435, 43.748], (300, 2))
    stations = STATIONS[["lon", "lat"]].to_numpy()
    exact = 0.5 + slow.travel_times(stations, places, **FAR)
    covered, errors = [], []
    for seed in range(3):
        log, homes, fit = fitted(net, slow, seed)
        speeds = eo.calls.road_speeds(fit)
        table = speeds.to_frame().assign(true=[TRUE.get(name, 1.0) for name in speeds.ratios.index])
        covered.append(table["true"].between(table["low"], table["high"]))
        assert table.loc["secondary", "ratio"] > table.loc["tertiary", "ratio"] > table.loc["residential", "ratio"]
        assert speeds.fixed_min == pytest.approx(0.5, abs=0.15)
        again = eo.calls.calibrate(log, STATIONS, homes, speeds.roads)
        errors.append(
            [
                np.sqrt(np.mean((f.law.mean(roads.travel_times(stations, places, **FAR)) - exact) ** 2))
                for f, roads in ((fit, net), (again, speeds.roads))
            ]
        )
    assert np.mean(covered) > 0.8  # of 33 intervals of 90 %
    common, by_class = np.mean(errors, axis=0)
    assert by_class < common / 3


def test_a_class_without_drives_keeps_the_common_ratio_with_a_wide_interval(net, slow):
    table = eo.calls.road_speeds(fitted(net, slow, 5)[2]).ratios
    unused = table[table["minutes"] < 0.01]
    assert len(unused)
    driven = table.loc["primary"]
    assert unused["ratio"].between(table["ratio"].min(), table["ratio"].max()).all()
    assert (unused["high"] - unused["low"]).min() > 5 * (driven["high"] - driven["low"])


def test_roads_are_needed():
    calls, stations = eo.datasets.san_jose_calls()
    with pytest.raises(eo.EmsoptError, match="need a fit with roads"):
        eo.calls.road_speeds(eo.calls.calibrate(calls, stations))
