"""Whether a table of stations is trusted: San José and drawn logs, with the right table and with damaged ones."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
from refusals import refused
from synthetic_log import Truth, synthetic_log

import emsopt as eo
from emsopt.calls.back_test import calibrate_and_test
from emsopt.calls.uses import separates_places, starts
from emsopt.errors import EmsoptError

KM = np.pi / 180 * 6371
SPLITS = {"1-7": ("01", "08", "08", "15"), "5-14": ("05", "15", "01", "05")}


@pytest.fixture(scope="module")
def san_jose():
    return eo.datasets.san_jose_calls()


def moved(stations, angle):
    """Return stations moved by 2 km in these directions."""
    wide = KM * np.cos(np.radians(stations["lat"].mean()))
    return stations.assign(lon=stations["lon"] + 2 * np.cos(angle) / wide, lat=stations["lat"] + 2 * np.sin(angle) / KM)


def trusted(log, stations):
    """Return whether a model of a log may be used for moves, and why; a refused table is not trusted."""
    try:
        return starts(eo.calls.calibrate(log, stations))
    except EmsoptError as error:
        return False, str(error)


@pytest.mark.parametrize("split", SPLITS)
def test_san_jose_is_trusted_on_days_held_out(san_jose, split):
    calls, stations = san_jose
    a, b, c, d = (f"2015-01-{day}" for day in SPLITS[split])
    report = eo.calls.back_test(eo.calls.calibrate(calls.between(a, b), stations), calls.between(c, d), draws=40)
    assert {"moves", "mean", "percentile_90"} <= set(report.uses.index[report.uses["usable"]])


def test_san_jose_with_a_damaged_table_is_not_trusted(san_jose):
    """Every 2nd or 3rd station, random ones, and all of them 2 km away."""
    calls, stations = san_jose
    log = calls.between("2015-01-01", "2015-01-10")
    tables = [stations.iloc[::2], stations.iloc[2::3], moved(stations, 2.5)]
    tables += [stations.sample(size, random_state=size) for size in (12, 20)]
    found = [trusted(log, table) for table in tables]
    assert not any(usable for usable, _ in found)
    assert any("These units' calls are furthest from every station: " in why for _, why in found)
    with pytest.raises(EmsoptError, match=r"km/h. Most probably stations are missing"):
        eo.calls.calibrate(log, stations.iloc[::3])


@pytest.fixture(scope="module")
def drawn():
    """Twelve stations, with homes around them that are drawn as further rows of the table, and three weeks of calls."""
    rng = np.random.default_rng(3)
    sites, homes = rng.uniform(0, 13, (12, 2)), rng.uniform(0, 13, (300, 2))
    places = np.vstack([sites, homes]) / KM / [np.cos(np.radians(45)), 1] + [0, 45]
    names = [f"Station {k + 1}" for k in range(len(places))]
    table = pd.DataFrame({"name": names, "lon": places[:, 0], "lat": places[:, 1]})
    units = np.arange(12)
    log = synthetic_log(table, Truth(), calls_per_day=100, days=21, deployment=units, spread_km=0.5, rng=4)
    return log, table.iloc[:12]


@pytest.mark.parametrize("units", [True, False], ids=["with units", "without units"])
def test_a_drawn_log_tells_the_right_table_from_damaged_ones(drawn, units):
    log, stations = drawn
    if not units:
        log = dataclasses.replace(log, details=log.details.drop(columns="unit"))
    assert trusted(log, stations)[0]
    angles = np.random.default_rng(0).uniform(0, 2 * np.pi, 12)
    damaged = [stations.drop(index=[1, 4, 7, 10]), moved(stations, 1.0), moved(stations, angles)]
    if units:
        names = np.random.default_rng(1).permutation(stations["name"].to_numpy())
        damaged.append(stations.assign(name=names))
    for table in damaged:
        usable, why = trusted(log, table)
        assert not usable
        assert "stations are missing" in why
    if not units:  # how places are rounded does not depend on units
        return
    rounded = stations.assign(lon=(stations["lon"] / 0.02).round() * 0.02, lat=(stations["lat"] / 0.02).round() * 0.02)
    assert "places of stations are rounded to 2.2 km" in trusted(log, rounded)[1]
    coarse = dataclasses.replace(log, locations=np.round(log.locations / 0.02) * 0.02 + 0.003)
    assert "places of calls are rounded to 2.2 km" in trusted(coarse, stations)[1]


def test_too_few_calls_cannot_tell_and_roads_leave_the_verdict_as_it_is(drawn):
    log, stations = drawn
    usable, why = trusted(log.where(np.arange(len(log)) < 500), stations)
    assert not usable
    assert why.startswith("Cannot tell where units start: that needs 600 drives")
    # The speed is that over distance as the crow flies, also where the law is one of minutes on roads.
    log, stations = drawn
    fit = eo.calls.calibrate(log, stations)

    def on_roads(factor):
        laws = {name: dataclasses.replace(getattr(fit, name), middle=fit.law.middle * factor) for name in ("law",)}
        laws["answer_law"] = dataclasses.replace(fit.answer_law, middle=fit.answer_law.middle * factor)
        return dataclasses.replace(
            fit, **laws, drives=fit.drives.assign(distance=fit.drives["distance"] * factor), roads=object()
        )

    assert starts(on_roads(1.7)) == starts(fit)


def test_a_model_tells_places_apart_if_longer_times_were_recorded_there():
    rng = np.random.default_rng(0)
    modelled = rng.uniform(5, 8, 800)
    for slope, noise, usable, said in (
        (1, 1.5, True, "The model tells places apart"),
        (0, 1.5, False, "does not"),
        (0, 15, False, "Cannot tell"),
    ):
        told, why = separates_places(modelled, 6 + slope * (modelled - 6.5) + rng.normal(0, noise, 800))
        assert told == usable
        assert said in why


@pytest.mark.parametrize("others", ["answered", "ignored"])
def test_one_option_says_what_rows_are_that_may_be_no_calls(others, drawn):
    """By a word of theirs, or as no unit arrived and they are far; these are told before anything is fitted."""
    log, stations = drawn
    rng = np.random.default_rng(3)
    kind, far = rng.random(len(log)) < 0.1, rng.random(len(log)) < 0.1
    frame = log.to_frame().assign(Nature=np.where(kind, "Routine transport", "Fall"))
    frame.loc[far, "on_scene"] = pd.NaT
    frame.loc[far, "lat"] += 0.25
    calls = eo.calls.read_calls(frame)
    assert calls.details["kind"].notna().tolist() == kind.tolist()
    model = eo.planning.build(calls, stations, eo.planning.Settings(others=others))
    n, count = (kind | far).sum(), len(log)
    said = f" {n:,} of the calls may be none: {kind.sum():,} by their kind, and {n - kind.sum():,} far"
    assert said in model.read[0]
    assert len(model.log) == (count - n if others == "ignored" else count)
    told = {finding.what for finding in model.checks.findings} & {
        "rows that may be no calls",
        "never arrived, far away",
    }
    assert bool(told) == (others == "answered")
    rate = eo.planning.build(log, stations).city.total_rate
    assert model.city.total_rate == pytest.approx(rate * len(model.log) / count, rel=0.01)
    wrong = eo.planning.Settings(others="no")
    refused("`others` must be one of 'answered', 'ignored'", eo.planning.build, calls, stations, wrong)


def test_a_log_with_demand_from_elsewhere_is_not_usable(drawn):
    """Far calls that nobody answered are demand of the plan's model, though no recorded response shows them."""
    log, stations = drawn
    far = np.random.default_rng(1).random(len(log)) < 0.2
    details = log.details.copy()
    details.loc[far, "on_scene"] = pd.NaT
    places = np.where(far[:, None], log.locations + np.array([0.0, 0.25]), log.locations)
    strange = dataclasses.replace(log, details=details, locations=places)
    findings = {finding.what: finding for finding in eo.calls.check_calls(strange, stations)}
    assert findings["never arrived, far away"].count == far.sum()
    assert "never arrived, far away" not in {f.what for f in eo.calls.check_calls(log, stations)}
    cut = log.times[0].astype("datetime64[D]") + np.timedelta64(14, "D")
    _, report = calibrate_and_test(strange, stations, cut, draws=40)
    row = report.to_frame().loc["mean_response_min"]
    assert row["city_model"] > 1.2 * row["recorded"] > 1.1 * row["modelled"]
    assert not report.usable("mean")
    assert not report.usable("moves")
    assert "too high" in report.uses.loc["mean", "why"]
