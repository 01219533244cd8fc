"""Rules of dispatch: models of drawn logs whose rule is known, the order that a log tells, and what is refused."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
from refusals import refused
from synthetic_log import Truth, synthetic_log

import emsopt as eo
from emsopt.calls.back_test import calibrate_and_test, find_followed_rule
from emsopt.calls.dispatch import RULES, dispatch_of
from emsopt.city.travel import great_circle_km
from emsopt.planning import Settings

N, DAYS = 14, 60


@pytest.fixture(scope="module")
def places():
    """Stations, and homes as further rows; agencies divide the stations at random, and the calls by a line."""
    rng = np.random.default_rng(1)
    km = np.vstack([rng.uniform(0, 14, (N, 2)), rng.uniform(0, 14, (400, 2))])
    points = km / 111.19 / [np.cos(np.radians(45)), 1] + [0, 45]
    table = pd.DataFrame(points, columns=["lon", "lat"]).assign(name=[f"Station {k + 1}" for k in range(len(km))])
    return table.assign(agency=np.where(np.random.default_rng(2).random(len(km)) < 0.5, "West", " east"))


def agency_at(points, places):
    return np.where(points[:, 0] < places["lon"].median(), "WEST", "East")


@pytest.fixture(scope="module")
def logs(places):
    """One log by each rule; districts of first-due stations differ from those of the closest ones."""
    own, weight = places["agency"].str.strip().str.lower().to_numpy(), np.random.default_rng(5).uniform(0.4, 1, 500)
    costs = {
        "nearest": great_circle_km,
        "first due": lambda p, q: great_circle_km(p, q) / weight[: len(p), None],
        "agency": lambda p, q: great_circle_km(p, q) + 1e3 * (own[:, None] != np.char.lower(agency_at(q, places))),
    }
    size = {"calls_per_day": 60, "days": DAYS, "deployment": np.arange(N), "spread_km": 0.5, "rng": 1}
    found = {}
    for rule, by in costs.items():
        log = synthetic_log(places, Truth(wrong=0, resolution_s=1), costs=by, **size)
        found[rule] = dataclasses.replace(log, details=log.details.assign(agency=agency_at(log.locations, places)))
    return found


@pytest.mark.parametrize("rule", RULES)
def test_the_record_tells_who_is_sent_and_the_right_rule_predicts_days_held_out(rule, logs, places):
    log, stations = logs[rule], places.iloc[:N]
    cut = log.times[0].astype("datetime64[D]") + np.timedelta64(2 * DAYS // 3, "D")
    for chosen in {rule, "nearest"}:
        fit, report = calibrate_and_test(log, stations, cut, dispatch=chosen, draws=40)
        assert f"The record follows {rule!r}." in report.dispatch_test
        assert report.followed_rule == ("" if chosen == rule else rule)
        assert report.dispatch_test in report.details
        others = report.uses.loc[["fleet", "moves", "workload"]]
        assert chosen == rule or (set(others["why"]), others["usable"].any()) == ({report.dispatch_test}, False)
        if chosen == rule:
            row = report.to_frame().loc["mean_response_min"]
            for model in ("modelled", "city_model"):
                assert row[model] == pytest.approx(row["recorded"], rel=0.03)
            # the law of an answer is that of a drive, as the rule knows who drives
            slopes = [law.pace.value for law in (fit.law, fit.answer_law)]
            assert slopes == pytest.approx([1.4, 1.4], rel=0.06)
        assert len(fit.dispatch.places) in (0, (log.times < cut).sum())  # nothing of the days held out
        assert (fit.city().preference is None) == (chosen == "nearest")


def test_few_calls_keep_the_order_of_distance_and_stations_without_units_too(logs, places):
    stations, log = places.iloc[: N + 1], logs["nearest"]
    reach = great_circle_km(stations[["lon", "lat"]].to_numpy(), log.locations)
    second, first = reach[:N].argsort(axis=0)[1::-1]
    around = np.flatnonzero(first == first[0])
    for few, leads in ((4, first), (len(around), second)):
        home = np.full(len(log), -1) if few == 4 else first.copy()
        home[around[:few]] = second[around[:few]]
        home[around[-1]] = first[0]  # else the log does not show this station
        found = dispatch_of("first due", log, stations, home)
        lead = found.costs(log.locations, reach)[:N].argmin(axis=0)
        assert (lead == leads)[around[:few]].mean() > (0.99 if few == 4 else 0.7)
    costs = found.costs(log.locations, reach)
    np.testing.assert_array_equal(costs[N], reach[N])
    assert dispatch_of("nearest", log, stations).costs(log.locations, reach) is reach


@pytest.mark.parametrize(
    ("column", "form"), [("Station First Due", "{}"), ("Still District", "E{:02d}"), ("Beat", "station {}")]
)
def test_a_column_names_the_first_due_station(column, form, logs, places):
    """By its name or number; a beat that is no station tells nothing, and the units that answered do."""
    log, stations = logs["nearest"], places.iloc[:N]
    reach = great_circle_km(stations[["lon", "lat"]].to_numpy(), log.locations)
    district = reach.argsort(axis=0)[2]
    frame = log.to_frame().drop(columns="agency")
    named = eo.calls.read_calls(frame.assign(**{column: [form.format(k + 1) for k in district]}))
    found = dispatch_of("first due", named, stations)
    assert found.column == column
    assert (found.costs(log.locations, reach).argmin(axis=0) == district).mean() > 0.85
    order = found.costs(log.locations[:1], reach[:, :1])[:, 0].argsort()  # first the named one, others by distance
    without = named.where(district != reach[:, 0].argmin())  # also one that is never named
    unnamed = dispatch_of("first due", without, stations).costs(log.locations[:1], reach[:, :1])[:, 0].argsort()
    assert order.tolist() == unnamed.tolist() == sorted(range(N), key=lambda k: (k != order[0], reach[k, 0]))
    words = np.where(district < 7, "north", "south")
    for name, values in ((column, words), ("Beat", district + 1), ("Fire Box", [f"{k + 1:02d}" for k in district])):
        other = eo.calls.read_calls(frame.assign(**{name: values}))
        assert eo.calls.calibrate(other, stations, dispatch="first due").dispatch.column == ""


def test_what_a_rule_needs_is_refused_with_the_remedy_and_works_without_a_calibration(logs, places):
    log, stations = logs["nearest"], places.iloc[:N]
    for name, calls, table in (
        ("columns=", dataclasses.replace(log, details=log.details.drop(columns="agency")), stations),
        ("station_columns=", log, stations.drop(columns="agency")),
    ):
        refused(f"dispatch by agency needs a column.*`{name}", eo.calls.calibrate, calls, table, dispatch="agency")
    for agency in ("no", None):  # an agency that is not known is not that of calls without one
        blank = dataclasses.replace(log, details=log.details.assign(agency=np.where(log.hours < 12, None, "West")))
        wrong = stations.assign(agency=agency)
        refused("same agencies.*by `columns=.*`station_col", eo.calls.calibrate, blank, wrong, dispatch="agency")
    bare = dataclasses.replace(log, details=log.details.drop(columns="unit"))
    refused("no first-due stations.*`columns=", eo.calls.calibrate, bare, stations, dispatch="first due")
    refused("`dispatch` must be one of", eo.calls.calibrate, log, stations, dispatch="fastest")
    given = Settings(speed_kmh=40, dispatch="first due")
    refused("by `columns=.*leave out `speed_kmh`", eo.planning.build, log, stations.drop(columns="name"), given)
    settings = Settings(speed_kmh=40, turnout_times=1, service_times=40, dispatch="agency", units=3)
    model = eo.planning.build(log, stations, settings)
    own = stations["agency"].str.strip().str.lower().to_numpy()
    first = own[model.city.preference.argmin(axis=0)]
    assert (first == np.char.lower(agency_at(model.demand.locations, places))).mean() > 0.9
    assert any("the agency that 'agency' names" in said for said in model.assumed)


def test_numbers_of_agencies_are_words_and_a_station_without_one_is_never_the_first(logs, places):
    log, stations = logs["agency"], places.iloc[:N]
    number = stations["agency"].map({"West": 12.0, " east": 13.0})
    table = eo.calls.read_stations(stations.assign(agency=number.mask(number.index == 0)))
    assert set(table["agency"].dropna()) == {"12", "13"}
    agency = log.details["agency"].map({"WEST": "12", "East": "13"}).mask(log.hours < 12)
    found = dispatch_of("agency", dataclasses.replace(log, details=log.details.assign(agency=agency)), table)
    reach = great_circle_km(stations[["lon", "lat"]].to_numpy(), log.locations)
    assert (found.costs(log.locations, reach).argmin(axis=0) > 0).all()
    assert (found.station_group[0], found.call_group.min()) == (-1, 0)


def test_the_order_that_units_tell_hardly_depends_on_how_busy_they_are(places):
    """Most busy first-due stations answer few of the calls around, but most of those that find their unit free."""
    weight, stations = np.random.default_rng(5).uniform(0.4, 1, 500), places.iloc[:N]
    size = {"calls_per_day": 230, "days": DAYS, "deployment": np.arange(N), "spread_km": 0.5, "rng": 1}
    by = lambda p, q: great_circle_km(p, q) / weight[: len(p), None]
    log = synthetic_log(places, Truth(wrong=0, resolution_s=1), costs=by, **size)
    fit = eo.calls.calibrate(log, stations, dispatch="first due")
    assert log.service_min.sum() / (DAYS * 1440 * N) == pytest.approx(0.45, abs=0.02)
    reach, first = fit.distances(log.locations), by(fit.dispatch.points, log.locations).argmin(axis=0)
    right = (fit.dispatch.costs(log.locations, reach).argmin(axis=0) == first).mean()
    blind = dispatch_of("first due", log, stations, fit.home_of(log))
    assert right > 0.92
    assert (blind.costs(log.locations, reach).argmin(axis=0) == first).mean() < 0.87


def test_units_on_a_stand_by_are_not_free(logs, places):
    """All other units are away all the time, so that whoever answered was the first with a free unit."""
    log, stations = logs["first due"], places.iloc[:N]
    fit = eo.calls.calibrate(log, stations)
    reach = fit.distances(log.locations).T
    home = fit.home_of(log)
    one = log.where(np.arange(len(log)) == np.flatnonzero(home != reach.argmin(axis=1))[0])
    away = log.details["unit"].drop_duplicates().index
    rows = log.where(np.isin(np.arange(len(log)), away))
    start = np.full(len(away), one.times[0] - np.timedelta64(1, "h"))
    details = rows.details.assign(dispatched=start)
    rows = dataclasses.replace(rows, times=start, details=details, service_min=np.full(len(away), 1e4))
    known = fit.distances(one.locations).T
    assert "the closest station 0%" in find_followed_rule(fit, one, known)[0]
    assert "the closest station 100%" in find_followed_rule(fit, dataclasses.replace(one, occupying=rows), known)[0]
