"""Recorded beside modelled responses, and back-tests on San José and on logs with a known truth."""

import dataclasses
import re
import sys

import numpy as np
import pandas as pd
import pytest
from refusals import refused
from scipy.stats import binom
from synthetic_log import Truth, synthetic_log

import emsopt as eo
from emsopt.calls.back_test import calibrate_and_test
from emsopt.calls.recorded import percentile, recorded_responses, response_measures, rounded_measures


@pytest.fixture(scope="module")
def fit(stations):
    return eo.calls.calibrate(synthetic_log(stations, rng=1), stations)


@pytest.fixture(scope="module")
def early(san_jose):
    """The fit of San José's first nine days."""
    calls, places = san_jose
    return eo.calls.calibrate(calls.between("2015-01-01", "2015-01-10"), places)


@pytest.fixture(scope="module")
def report(fit, stations):
    later = synthetic_log(stations, Truth(wrong=0), days=14, start="2024-04-01", rng=2)
    return eo.calls.back_test(fit, later, draws=100)


def test_impossible_responses_are_left_out_and_counted(stations):
    log = synthetic_log(stations, days=14, rng=1)
    fit = eo.calls.calibrate(log, stations)
    details = log.details.copy()
    details.loc[:2, "on_scene"] = details["dispatched"][:3] - pd.Timedelta(minutes=1)
    details.loc[3:6, "on_scene"] = pd.NaT
    details.loc[7, "on_scene"] = details["dispatched"][7] + pd.Timedelta(hours=20)
    report = eo.calls.back_test(fit, dataclasses.replace(log, details=details), draws=40)
    assert (list(report.left_out.values()), report.calls) == ([4, 3, 1], len(log) - 8)


def test_the_page_is_self_contained_and_has_no_single_call(fit, report, tmp_path):
    page = report.save(tmp_path / "page.html").read_text("utf-8")
    assert page.count("<svg") >= 4
    assert "http" not in page.replace("http-equiv", "")
    assert "default-src 'none'" in page
    assert report.verdict[0].split(":")[0] in page
    for text in (page, repr(report), report._repr_html_(), repr(fit), fit._repr_html_()):
        assert not re.search(r"\d\d:\d\d|\bE\d+\b|\d\.\d{4}", text)  # clock, unit or place of a call
    assert not re.search(r"\d{4}-\d\d", repr(fit) + fit._repr_html_())  # a date
    assert (report.by_zone["calls"] >= 5).all()


def log_of(minutes, unit="m"):
    """Return a log whose responses are these numbers of minutes or seconds."""
    start = np.datetime64("2025-01-06T00:00:00") + 3660 * np.arange(len(minutes)).astype("timedelta64[s]")
    start += np.timedelta64(unit == "s", "s")
    frame = pd.DataFrame({"time": start, "lon": 0.0, "lat": 45.0, "dispatched": start})
    return eo.calls.read_calls(frame.assign(on_scene=start + np.array(minutes).astype(f"timedelta64[{unit}]")))


@pytest.fixture(scope="module")
def evaluation():
    city = eo.datasets.grid_city(n_sites=6, units=3, rng=1)
    city = city.replace(travel_times=2 * city.travel_times, travel_cv=0.4, turnout_cv=0.5, turnout_times=1.5)
    return eo.evaluators.exact_hypercube(city, [0, 2, 4])


@pytest.mark.parametrize("threshold", [8.0, 8.5])
def test_a_clock_of_minutes_is_that_of_draws(evaluation, threshold):
    """200,000 response times, one at each quantile of the model, begun at random and rounded down to whole minutes."""
    rng = np.random.default_rng(0)
    at = np.linspace(0, 80, 1601)
    within = 1 - evaluation.late_fraction(at)
    drawn = rng.permutation(np.interp((np.arange(200_000) + 0.5) / 200_000, within, at))
    recorded = np.floor(drawn + rng.random(len(drawn)))
    minutes, step = recorded_responses(log_of(recorded[:500]))
    found = response_measures(minutes, step, [threshold])
    assert found["mean_response_min"] == pytest.approx(recorded[:500].mean())
    assert found[f"late_over_{threshold:g}_min"] == pytest.approx((recorded[:500] > threshold).mean())
    mean, ninety, late = rounded_measures(evaluation, step, threshold)
    assert mean == pytest.approx(recorded.mean(), abs=0.01)
    assert late == pytest.approx((recorded > threshold).mean(), abs=0.002)
    assert ninety == pytest.approx(percentile(recorded, 90, 1.0), abs=0.02)


def test_seconds_are_not_rounded_and_logs_without_stamps_refused(evaluation):
    seconds = [301, 422, 543, 0, 1, -67, 90_001]  # at most a second: a unit that was there
    minutes, step = recorded_responses(log_of(seconds, "s"))
    assert (step, minutes.tolist()) == (0, pytest.approx([301 / 60, 422 / 60, 543 / 60]))
    exact = (evaluation.mean_response, evaluation.percentile_90, evaluation.late_fraction(8.0))
    assert rounded_measures(evaluation, step) == exact
    calls = eo.calls.read_calls(pd.DataFrame({"time": ["2025-01-06 00:00"], "lon": [0.0], "lat": [45.0]}))
    refused("'dispatched' and 'on_scene'", recorded_responses, calls)
    refused("no call of the log", recorded_responses, log_of([-5.0, -6.0]))


def test_calls_of_fitted_days_are_not_called_a_hold_out(san_jose, early):
    calls, stations = san_jose
    report = eo.calls.back_test(early, calls.between("2015-01-08", "2015-01-12"), draws=40)
    assert re.search(r"not a hold-out: 2 of the 4 days, with \d+ of \d+ calls, are days that", report.verdict[0])
    assert report.verdict[0] in report.html
    assert not report.uses["usable"].any()
    noon = np.datetime64("2015-01-10T12:00")  # the fit has the morning, the test the afternoon
    fit = eo.calls.calibrate(calls.where(calls.times < noon), stations)
    assert "hold-out" not in eo.calls.back_test(fit, calls.where(calls.times >= noon), draws=40).verdict[0]


def test_replays_follow_the_law_and_the_number_of_units(stations):
    """With a unit at every station and hardly a call, the mean is turnout plus the law at the closest station."""
    log = synthetic_log(stations, Truth(service_min=10), calls_per_day=60, days=60, rng=4)
    fit = eo.calls.calibrate(log, stations)
    played = eo.calls.replay(fit, draws=30, rng=1)
    km = eo.city.travel.great_circle_km(log.locations, stations[["lon", "lat"]]).min(axis=1)
    assert played.mean_response == pytest.approx(fit.turnout.mean.value + fit.answer_law.mean(km).mean(), rel=0.03)
    fit = eo.calls.calibrate(synthetic_log(stations, calls_per_day=200, days=10, rng=1), stations)
    names = fit.stations["name"].iloc[[0, 1, 2]].tolist()
    few, many, again = (eo.calls.replay(fit, deployment=u, draws=5) for u in ([0, 1, 2], [*range(8)] * 2, names))
    assert many.mean_response < few.mean_response
    assert many.loss_fraction == 0 < few.loss_fraction
    assert many.late_fraction(8) < few.late_fraction(8)
    assert np.isnan(few.response[few.unit < 0]).all()
    np.testing.assert_array_equal(again.response, few.response)  # also without a seed, so that they can be compared
    for wrong in ([99], [], ["Nowhere"], [[0]]):
        refused("deployment", eo.calls.replay, fit, deployment=wrong)
    refused("at least 40", eo.calls.back_test, fit, fit.calls, draws=1)
    refused("`fit` must be", eo.calls.back_test, "fit", fit.calls)


def test_a_log_cut_in_two_is_tested_on_its_roads_with_the_deployment_that_is_known(stations, monkeypatch):
    log, cut, today = synthetic_log(stations, days=14, rng=1), np.datetime64("2024-03-10"), [0, 0, 1]
    anonymous = dataclasses.replace(log, details=log.details.drop(columns=["unit", "station"], errors="ignore"))
    for calls, known in ((log, True), (anonymous, False)):
        past, report = calibrate_and_test(calls, stations, cut, today=today)
        assert (past.homes_from != "unknown") == known
        assert past.calls.times.max() < cut
        assert report.period.startswith("2024-03-10")
        np.testing.assert_array_equal(report.deployment, past.deployment if known else today)
    asked, roads, homes = [], object(), {"Q1": "Station 1"}
    calibrated = lambda _, *rest: asked.append(rest) or past
    monkeypatch.setattr(sys.modules["emsopt.calls.back_test"], "calibrate", calibrated)
    calibrate_and_test(log, stations, cut, homes, roads, dispatch="agency")
    assert asked == [(stations, homes, roads, "agency")]


def outside(table):
    """Return the rows whose recorded value is outside the interval."""
    return table[(table["recorded"] < table["low"]) | (table["recorded"] > table["high"])]


def test_a_true_model_passes(report):
    frame = report.to_frame()
    assert ((frame["recorded"] >= frame["low"]) & (frame["recorded"] <= frame["high"])).mean() > 0.6
    for name in ("mean_response_min", "percentile_90_min"):
        assert frame.loc[name, "modelled"] == pytest.approx(frame.loc[name, "recorded"], rel=0.04)
        assert frame.loc[name, "city_model"] == pytest.approx(frame.loc[name, "modelled"], rel=0.04)
    for table in (report.by_hour, report.by_zone, report.by_station):
        assert len(outside(table)) <= min(binom.ppf(0.99, len(table), 0.1), 0.3 * len(table))
    assert report.distribution["recorded"].sum() == pytest.approx(1)
    assert all("usable" in sentence for sentence in report.verdict[:3])


def test_every_use_is_judged_by_its_rule(san_jose, early, fit, stations):
    """On San José and on a slower log the limits are those of the table, and groups outside are named."""
    real = eo.calls.back_test(early, san_jose[0].between("2015-01-10", "2015-01-15"))
    slow = synthetic_log(stations, Truth(minutes_per_km=2.2, service_min=80), days=14, start="2024-04-01", rng=2)
    wrong = eo.calls.back_test(fit, slow, draws=40)
    rows = {"mean": "mean_response_min", "percentile_90": "percentile_90_min", "threshold": "late_over_8_min"}
    for report in (real, wrong):
        assert list(report.uses.index) == [*rows, "fleet", "moves", "zones", "workload"]
        for use, name in rows.items():
            row = report.to_frame().loc[name]
            limit = {"mean": 0.05, "percentile_90": 0.1}.get(use, min(0.04 / row["recorded"], 0.25))
            assert report.usable(use) == (abs(row["city_model"] / row["recorded"] - 1) <= limit)
            assert f"{row['as_before']:.2f}" in report.uses.loc[use, "why"] or use == "threshold"
        for table in (report.by_zone, report.by_station.dropna()):
            moved = table.assign(recorded=table["recorded"] + table["modelled"] - table["city_model"])
            assert all(name in " ".join(report.details) for name in outside(moved).index)
    assert all(real.usable(use) for use in ("mean", "percentile_90", "moves"))
    assert not wrong.uses["usable"].any()
    assert re.search("do not use.*too low: recorded", wrong.verdict[0])
    refused("moves", real.usable, "move")


def results_at(shift, log, stations):
    """Return the results of a log with a row per patient whose longitudes, and those of the stations, are shifted."""
    move = lambda frame: frame.assign(lon=(frame["lon"] + shift + 180) % 360 - 180)
    frame = log.to_frame().assign(incident_id=np.arange(len(log)))
    rows = pd.concat([frame.assign(patient_id=1), frame.assign(patient_id=2, lon=frame["lon"] + 0.004)])
    calls = eo.calls.read_calls(move(rows))
    fit = eo.calls.calibrate(calls.between("2024-03-01", "2024-03-11"), move(stations), dispatch="first due")
    report = eo.calls.back_test(fit, calls.between("2024-03-11", "2024-03-15"), draws=40, cell_km=1)
    order = fit.dispatch.costs(calls.locations, fit.distances(calls.locations)).argsort(axis=0)
    return calls.joined_text, order.tolist(), report.html


def test_no_result_depends_on_the_longitude(stations):
    """Greenwich and the date line, from either side, pass between the stations of a city like any other meridian."""
    log = synthetic_log(stations, days=14, rng=1)
    found = results_at(30, log, stations)
    assert found[0].startswith(f"{len(log):,} rows joined")
    assert all(results_at(shift, log, stations) == found for shift in (-0.07, 179.93, -180.12))
