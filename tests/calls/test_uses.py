"""Whether a table of stations is trusted: San José and drawn logs, with the right table and with damaged ones."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
from refusals import refused
from synthetic_log import Truth, synthetic_log

import emsopt as eo
from emsopt.calls.back_test import calibrate_and_test
from emsopt.calls.uses import judge_starts, separates_places
from emsopt.city.travel import great_circle_km
from emsopt.errors import EmsoptError, InputError

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
        return judge_starts(eo.calls.calibrate(log, stations))
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

    assert judge_starts(on_roads(1.7)) == judge_starts(fit)


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
    assert said in model.read[0]
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
    later = [
        calls.loc[(calls["unit"] == row.unit) & (calls["dispatched"] >= row.time), "dispatched"].min()
        for row in rows.itertuples()
    ]
    return (rows["cleared"].clip(upper=pd.Series(later, rows.index)) - rows["time"]).dt.total_seconds() / 60


def test_rows_that_only_occupy_units_raise_the_load_and_nothing_else(drawn):
    """With 30 % more rows at odd places: demand, laws and measures are those of the calls, the work is that of all.

    These rows begin when their units are free again, and so have kept none from calls. If rows have, the law of answers
    counts who was free, and is that of drives.
    """
    log, stations = drawn
    frame, rng = log.to_frame().drop(columns="service_min").assign(Nature="Fall"), np.random.default_rng(0)
    rows = frame.sample(frac=0.3, random_state=1).query("cleared < @frame['time'].max()")
    rows = stand_by(rows, rows["cleared"], (rows["cleared"] - rows["dispatched"]).dt.total_seconds() / 60)
    both = pd.concat([frame, rows]).sort_values("time", kind="stable")
    plain, occupied, ignored = (
        eo.planning.build(eo.calls.read_calls(table), stations, eo.planning.Settings(others=others))
        for table, others in ((frame, "answered"), (both, "occupying"), (both, "ignored"))
    )
    pd.testing.assert_frame_equal(occupied.fit.to_frame(), plain.fit.to_frame(), rtol=0.01)
    np.testing.assert_array_equal(occupied.city.arrival_rates, plain.city.arrival_rates)
    np.testing.assert_array_equal(ignored.city.service_times, plain.city.service_times)
    kept, took = kept_min(rows, frame), (frame["cleared"] - frame["dispatched"]).dt.total_seconds() / 60
    more = 1 + kept.sum() / took.sum()
    assert occupied.city.offered_load(12) / plain.city.offered_load(12) == pytest.approx(more, rel=0.005)
    assert f"for {kept.sum() / 60:,.0f} hours in all; the model adds this time to the calls." in occupied.read[0]
    night = [model.fit.city(hours=range(6)).mean_service_time for model in (plain, occupied)]
    spent = sum(
        (pd.date_range(at, periods=round(n), freq="min").hour < 6).sum()
        for at, n in zip(rows["time"], kept, strict=True)
    )
    assert night[1] - night[0] == pytest.approx(spent / (frame["time"].dt.hour < 6).sum(), rel=0.03)
    reports = [eo.planning.steps.back_test_model(model) for model in (plain, occupied)]
    before, after = (report.to_frame() for report in reports)
    pd.testing.assert_frame_equal(
        before[["recorded", "as_before"]].drop("utilization"), after[["recorded", "as_before"]].drop("utilization")
    )
    busy = after.loc["utilization"] / before.loc["utilization"]
    late = [table["time"] >= reports[0].period[:10] for table in (frame, rows)]
    assert busy["recorded"] == pytest.approx(1 + kept[late[1]].sum() / took[late[0]].sum(), rel=0.01)
    assert busy[["modelled", "city_model", "as_before"]].between(more - 0.05, more + 0.05).all()
    kept = frame.assign(Nature=np.where(rng.random(len(frame)) < 0.3, "Stand-by", "Fall"))
    kept["on_scene"] = kept["on_scene"].mask(kept["Nature"] == "Stand-by")
    model = eo.planning.build(eo.calls.read_calls(kept), stations, occupied.settings)
    slopes = [law.per_distance.value for law in (model.fit.answer_law, model.fit.law)]
    assert slopes[0] == pytest.approx(slopes[1], rel=0.05)
    row = eo.planning.steps.back_test_model(model).to_frame().loc["mean_response_min"]
    assert row["modelled"] == pytest.approx(row["recorded"], rel=0.03)
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
    assert f" {len(rows[::10])} rows without a usable duration count as 600 min each." in model.read[0]
    busy = model.log.occupying.to_frame()
    end = busy["time"] + pd.to_timedelta(busy["service_min"], unit="min")
    assert not (busy.groupby("unit")["time"].shift(-1) < end - pd.Timedelta("1s")).any()
    row = eo.planning.steps.back_test_model(model).to_frame().loc["utilization"]
    assert row[["modelled", "city_model"]].to_numpy() == pytest.approx(row["recorded"], rel=0.1)
    # Each call adds the same minutes to whichever calls are counted, in the city and in a replay.
    added = model.fit.calls.occupying.service_min.sum() / len(model.fit.calls)
    near = eo.calls.aggregate_calls(model.fit.calls, stations, reach_km=2)
    assert sum(near.left_out.values()) > 100
    for demand in (model.demand, near):
        assert f"{added:.1f} min per call more" in demand.city(speed_kmh=40, turnout_times=1.0).notes
    # Rows leave with the calls around them.
    day = model.log.times.astype("datetime64[D]") == model.log.times[0].astype("datetime64[D]") + np.timedelta64(5, "D")
    chosen, start = model.log.where(day), model.log.times[day][0].astype("datetime64[D]")
    parts = [chosen.occupying, model.log.between(start.item(), (start + 1).item()).occupying]
    assert len(parts[0]) == len(parts[1]) < len(model.log.occupying) / 10
    assert parts[0].times.min() >= chosen.times[0]


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
    assert fit.law.per_distance.value == eo.calls.calibrate(log, stations, roads=Roads()).law.per_distance.value


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
