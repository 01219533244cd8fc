"""Whether a table of stations is trusted: San José, and drawn logs with the right table and with damaged ones."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
from refusals import refused
from synthetic_log import Truth, synthetic_log

import emsopt as eo
from emsopt.calls.back_test import calibrate_and_test
from emsopt.calls.uses import judge_separation, judge_starts
from emsopt.city.travel import great_circle_km
from emsopt.errors import EmsoptError, InputError

KM = np.pi / 180 * 6371


def moved(stations, angle):
    """Return stations moved by 2 km in these directions."""
    wide = KM * np.cos(np.radians(stations["lat"].mean()))
    return stations.assign(lon=stations["lon"] + 2 * np.cos(angle) / wide, lat=stations["lat"] + 2 * np.sin(angle) / KM)


def trusted(log, stations):
    """Return whether a model of a log may be used for moves, and why; a refused table is not trusted."""
    try:
        return judge_starts(eo.calls.calibrate(log, stations))
    except EmsoptError as error:
        return False, str(error)


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
    few = trusted(log.where(np.arange(len(log)) < 500), stations)
    assert (few[0], few[1][:57]) == (False, "Cannot tell where units start: that needs 600 drives, and")


@pytest.mark.parametrize("others", ["answered", "occupying", "ignored"])
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
    said = f" {n:,} rows may not be calls ({kind.sum():,} by their kind and {n - kind.sum():,} far"
    assert said in model.data_notes[0]
    assert said in model.city.notes
    assert len(model.log) == (count if others == "answered" else count - n)
    told = [finding.count for finding in model.checks.findings if finding.what == "rows that may be no calls"]
    assert told == ([n] if others == "answered" else [])
    rate = eo.planning.build(log, stations).city.total_rate
    assert model.city.total_rate == pytest.approx(rate * len(model.log) / count, rel=0.01)
    wrong = eo.planning.Settings(others="no")
    refused("`others` must be one of 'answered', 'occupying', 'ign", eo.planning.build, calls, stations, wrong)


def stand_by(calls, begin, minutes):
    """Return rows that are no calls, at odd places, that begin then."""
    rng, span = np.random.default_rng(0), pd.to_timedelta(minutes, unit="min")
    rows = calls.assign(Nature="Stand-by", on_scene=pd.NaT, lat=calls["lat"] + rng.normal(0, 0.2, len(calls)))
    return rows.assign(time=begin, dispatched=begin, en_route=begin, cleared=begin + span)


def kept_min(rows, calls):
    """Return the minutes of rows until their unit's next call."""
    own = lambda row: calls.loc[(calls["unit"] == row.unit) & (calls["dispatched"] >= row.time), "dispatched"]
    later = [own(row).min() for row in rows.itertuples()]
    return (rows["cleared"].clip(upper=pd.Series(later, rows.index)) - rows["time"]).dt.total_seconds() / 60


def test_rows_of_unknown_units_may_be_far_from_roads(drawn):
    class Roads:
        def travel_times(self, origins, destinations, off_road_km):
            km = great_circle_km(origins, destinations)
            if km.min(axis=0).max() > off_road_km:
                raise InputError("off the roads")
            return 1.5 * km

    log, stations = drawn
    far = log.where(np.arange(len(log)) % 10 == 0)
    far = dataclasses.replace(far, locations=far.locations + np.array([0, 1]), details=far.details.assign(unit=None))
    fit = eo.calls.calibrate(dataclasses.replace(log, occupying=far), stations, roads=Roads())
    assert fit.law.pace.value == eo.calls.calibrate(log, stations, roads=Roads()).law.pace.value


def test_a_log_with_demand_from_elsewhere_is_not_usable(drawn):
    """Far calls that nobody answered are demand of the plan's model, though no recorded response shows them."""
    log, stations = drawn
    far = np.random.default_rng(1).random(len(log)) < 0.2
    details = log.details.copy()
    details.loc[far, "on_scene"] = pd.NaT
    places = np.where(far[:, None], log.locations + np.array([0.0, 0.25]), log.locations)
    strange = dataclasses.replace(log, details=details, locations=places)
    findings = {finding.what: finding for finding in eo.calls.check_calls(strange, stations)}
    assert findings["rows that may be no calls"].count == far.sum()
    assert "rows that may be no calls" not in {f.what for f in eo.calls.check_calls(log, stations)}
    cut = log.times[0].astype("datetime64[D]") + np.timedelta64(14, "D")
    _, report = calibrate_and_test(strange, stations, cut, draws=40)
    row = report.to_frame().loc["mean_response_min"]
    assert row["city_model"] > 1.2 * row["recorded"] > 1.1 * row["modelled"]
    assert not report.usable("mean")
    assert not report.usable("moves")
    assert "too high" in report.uses.loc["mean", "why"]


def test_san_jose_is_trusted_on_days_held_out(san_jose):
    """That the mean and the 90th percentile are usable says that they are within 5 and 10 % of the recorded ones."""
    calls, stations = san_jose
    for a, b, c, d in (("01", "08", "08", "15"), ("05", "15", "01", "05")):
        fit = eo.calls.calibrate(calls.between(f"2015-01-{a}", f"2015-01-{b}"), stations)
        report = eo.calls.back_test(fit, calls.between(f"2015-01-{c}", f"2015-01-{d}"), draws=40)
        assert {"moves", "mean", "percentile_90"} <= set(report.uses.index[report.uses["usable"]])


def test_a_model_tells_places_apart_if_longer_times_were_recorded_there():
    modelled, noise = np.random.default_rng(0).uniform(5, 8, 800), np.random.default_rng(1).normal(size=800)
    for slope, sd, usable, said in (
        (1, 1.5, True, "The model tells places apart"),
        (0, 1.5, False, "does not"),
        (0, 15, False, "Cannot tell"),
    ):
        told, why = judge_separation(modelled, 6 + slope * (modelled - 6.5) + sd * noise)
        assert (told, said in why) == (usable, True)


def test_rows_that_only_occupy_units_raise_the_load_and_nothing_else(drawn):
    """With 30 % more rows at odd places: demand, laws and measures are those of the calls, the work is that of all.

    These rows begin when their units are free again, and so have kept none from calls. If rows have, the law of answers
    counts who was free, and is that of drives.
    """
    log, stations = drawn
    frame = log.to_frame().drop(columns="service_min").assign(Nature="Fall")
    minutes = lambda rows: (rows["cleared"] - rows["dispatched"]).dt.total_seconds() / 60
    rows = frame.sample(frac=0.3, random_state=1).query("cleared < @frame['time'].max()")
    rows = stand_by(rows, rows["cleared"], minutes(rows))
    both = pd.concat([frame, rows]).sort_values("time", kind="stable")
    plain, occupied, ignored = (
        eo.planning.build(eo.calls.read_calls(table), stations, eo.planning.Settings(others=others))
        for table, others in ((frame, "answered"), (both, "occupying"), (both, "ignored"))
    )
    pd.testing.assert_frame_equal(occupied.fit.to_frame(), plain.fit.to_frame(), rtol=0.01)
    np.testing.assert_array_equal(occupied.city.arrival_rates, plain.city.arrival_rates)
    np.testing.assert_array_equal(ignored.city.service_times, plain.city.service_times)
    kept = kept_min(rows, frame)
    more = 1 + kept.sum() / minutes(frame).sum()
    assert occupied.city.offered_load(12) / plain.city.offered_load(12) == pytest.approx(more, rel=0.005)
    assert f"for {kept.sum() / 60:,.0f} hours in all; the model adds this time to the calls." in occupied.data_notes[0]
    before, after = (eo.planning.steps.back_test_model(model).to_frame() for model in (plain, occupied))
    same = [table[["recorded", "as_before"]].drop("utilization") for table in (before, after)]
    pd.testing.assert_frame_equal(*same)
    busy = after.loc["utilization"] / before.loc["utilization"]
    assert busy[["modelled", "city_model", "as_before"]].between(more - 0.05, more + 0.05).all()
    away = frame.assign(Nature=np.where(np.random.default_rng(0).random(len(frame)) < 0.3, "Stand-by", "Fall"))
    away["on_scene"] = away["on_scene"].mask(away["Nature"] == "Stand-by")
    fit = eo.planning.build(eo.calls.read_calls(away), stations, occupied.settings).fit
    assert fit.answer_law.pace.value == pytest.approx(fit.law.pace.value, rel=0.05)
    silent = both.assign(cleared=both["cleared"].mask(both["Nature"] == "Stand-by"))
    refused("how long they keep units busy", eo.planning.build, silent, stations, occupied.settings)


def test_rows_count_until_the_next_call_or_row_of_their_unit(drawn):
    """With rows of ten hours that overlap each other and calls, some too long to be true."""
    log, stations = drawn
    frame = log.to_frame().drop(columns="service_min").assign(Nature="Fall")
    first = frame.groupby(["unit", frame["time"].dt.date]).head(1)
    rows = pd.concat([stand_by(first, first["cleared"] + pd.Timedelta(k, "min"), 600.0) for k in (0, 20, 40)])
    rows = rows[rows["time"] < frame["time"].max()].reset_index(drop=True)
    rows.loc[::10, "cleared"] += pd.Timedelta("30 days")
    both = pd.concat([frame, rows]).sort_values("time", kind="stable")
    model = eo.planning.build(eo.calls.read_calls(both), stations, eo.planning.Settings(others="occupying"))
    assert f" {len(rows[::10])} rows without a usable duration count as 600 min each." in model.data_notes[0]
    busy = model.log.occupying.to_frame()
    end = busy["time"] + pd.to_timedelta(busy["service_min"], unit="min")
    assert not (busy.groupby("unit")["time"].shift(-1) < end - pd.Timedelta("1s")).any()
    row = eo.planning.steps.back_test_model(model).to_frame().loc["utilization"]
    assert row[["modelled", "city_model"]].to_numpy() == pytest.approx(row["recorded"], rel=0.1)
    # Rows leave with the calls around them.
    start = model.log.times[0].astype("datetime64[D]") + np.timedelta64(5, "D")
    day = model.log.between(start.item(), (start + 1).item()).occupying
    assert 0 < len(day) == len(model.log.where(model.log.times.astype("datetime64[D]") == start).occupying)
    assert start <= day.times.min() <= day.times.max() < start + np.timedelta64(1, "D")
