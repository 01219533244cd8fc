"""Calibration against closed forms, known truths and San José's recorded times."""

import dataclasses
import pickle

import numpy as np
import pandas as pd
import pytest
from refusals import refused
from scipy import integrate, stats
from synthetic_log import Truth, synthetic_log

import emsopt as eo
from emsopt.calls import _travel_calibration, recorded


@pytest.fixture(scope="module")
def truth():
    return Truth(hour_factors=1 + 0.15 * np.sin(np.arange(24) / 24 * 2 * np.pi), wrong=0.02)


@pytest.fixture(scope="module")
def log(stations, truth):
    return synthetic_log(stations, truth, rng=2)


@pytest.fixture(scope="module")
def fit(log, stations):
    return eo.calls.calibrate(log, stations)


@pytest.fixture(scope="module")
def real(san_jose):
    return eo.calls.calibrate(*san_jose)


@pytest.mark.parametrize(("start", "end"), [(1.0, 1.0), (1.0, 1 / 60), (1 / 60, 1.0)])
@pytest.mark.parametrize("minutes", [0.4, 9.0])
def test_rounded_densities_equal_the_double_integral_over_both_roundings(minutes, start, end):
    """h(k) is the mean of f(k - u1 + u2), u1 and u2 uniform on the two resolutions."""
    mean, log_sd = 4.0, 0.5
    lognormal = stats.lognorm(log_sd, scale=mean * np.exp(-(log_sd**2) / 2))
    gamma = stats.gamma(4, scale=mean / 4)
    at = np.array([minutes])
    of_lognormal = recorded.lognormal_density(at, np.array([mean]), log_sd, start, end)[0][0]
    for law, value in ((lognormal, of_lognormal), (gamma, recorded.gamma_density(at, mean, 0.5, start, end)[0])):
        area = integrate.dblquad(lambda u, v, law=law: law.pdf(minutes - u + v), 0, end, 0, start, epsabs=1e-10)[0]
        assert value == pytest.approx(area / (start * end), rel=1e-4)


def test_few_durations_are_refused_and_a_small_group_has_the_mean_of_all():
    refused("at least 10", recorded.fit_duration, np.ones(3), 1, 1, 30)
    refused("at least 30", _travel_calibration.fit_law, np.ones(3), np.ones(3), np.zeros(3, int), 1, 1)
    rng = np.random.default_rng(4)
    minutes, group = rng.gamma(4, 0.4, 400), (np.arange(400) < 3).astype(int)
    minutes[:3] = 12.0
    duration = recorded.fit_duration(minutes, 1 / 60, 1 / 60, 30.0, group)
    assert duration.groups[1] == dataclasses.replace(duration.mean, calls=3)
    assert duration.groups[0].value != duration.mean.value
    copied = recorded.fit_duration(0 * minutes, 1 / 60, 1 / 60, 30.0, group)
    assert (copied.mean.interval, copied.cv.value) == ((0, 0), 0), "one stamp is a copy of the other"
    assert [one.calls for one in copied.groups] == [one.calls for one in duration.groups]


def test_intervals_of_the_law_hold_the_truth_about_nine_times_in_ten():
    """30 samples with wrong stamps: 90 % intervals hold it in 23 to 30, all but once in a thousand."""
    rng, held = np.random.default_rng(7), []
    for _ in range(30):
        km, hour = rng.gamma(2.5, 0.7, 1200), rng.integers(0, 24, 1200)
        log_sd = np.sqrt(np.log1p(0.3**2))
        drive = (1.5 + 1.4 * km) * np.exp(log_sd * rng.standard_normal(1200) - log_sd**2 / 2)
        left, wrong = 60 * rng.random(1200), rng.random(1200)
        arrived = np.where(wrong < 0.01, left + rng.uniform(0, 60, 1200), left + drive)
        left = np.where(wrong > 0.99, arrived - rng.random(1200), left)
        law = _travel_calibration.fit_law(np.floor(arrived) - np.floor(left), km, hour, 1, 1)
        (slope_low, slope_high), (cv_low, cv_high) = law.pace.interval, law.cv.interval
        held.append((slope_low < 1.4 < slope_high, law.fixed_min[1] < 1.5 < law.fixed_min[2], cv_low < 0.3 < cv_high))
    assert (np.sum(held, axis=0) >= 23).all()


def test_a_station_that_is_not_certain_does_not_widen_the_spread():
    rng, n = np.random.default_rng(2), 3000
    both = rng.gamma(2.5, 0.7, (n, 2))
    chance = rng.uniform(0.6, 1, n)
    true = both[np.arange(n), (rng.random(n) > chance).astype(int)]
    minutes = (1.5 + 1.4 * true) * np.exp(0.3 * rng.standard_normal(n) - 0.045)
    hour, drive = rng.integers(0, 24, n), np.repeat(np.arange(n), 2)
    chances = np.column_stack([chance, 1 - chance]).ravel()
    law = _travel_calibration.fit_law(minutes, both.ravel(), hour, 1 / 60, 1 / 60, drive=drive, chance=chances)
    likeliest = _travel_calibration.fit_law(minutes, both[:, 0], hour, 1 / 60, 1 / 60)
    for value, estimate in ((np.sqrt(np.expm1(0.09)), law.cv), (1.4, law.pace)):
        assert abs(np.log(estimate.value / value)) < 3 * estimate.log_error
    assert likeliest.log_sd > 1.1 * law.log_sd


def test_draws_have_the_stated_errors_and_a_unique_factor(fit):
    drawn = fit.law.draw(np.random.default_rng(3)).parameters
    normal = np.random.default_rng(3).standard_normal(len(drawn))
    expected = fit.law.parameters + np.linalg.cholesky(fit.law.covariance) @ normal
    assert drawn == pytest.approx(expected, rel=1e-6)
    draws = [fit.draw(child) for child in np.random.default_rng(0).spawn(400)]
    drawn, frame = pd.DataFrame([d.to_frame()["estimate"] for d in draws]), fit.to_frame()
    for name in ("turnout_min", "minutes_per_km", "travel_cv"):
        low_high = frame.loc[name, ["low", "high"]].to_numpy()
        assert drawn[name].quantile([0.05, 0.95]).to_numpy() == pytest.approx(low_high, rel=0.02)


def test_a_known_truth_is_within_three_standard_errors(fit, truth):
    """Single intervals miss one time in ten; `benchmarks/calibration_study.py` measures their coverage."""
    frame = fit.to_frame()
    alike = ("turnout_night_min", "turnout_cv", "service_min", "fixed_min", "minutes_per_km", "travel_cv")
    known = {"turnout_day_min": truth.turnout_min, "call_handling_min": truth.handling_min}
    known |= {"speed_kmh": 60 / truth.minutes_per_km} | {name: getattr(truth, name) for name in alike}
    for name, value in known.items():
        low, high = frame.loc[name, ["low", "high"]]
        assert low - (high - low) / 2 < value < high + (high - low) / 2, name
    assert np.corrcoef(fit.law.hour_factors, truth.hour_factors)[0, 1] > 0.8
    assert fit.travel_minutes(3.0) == pytest.approx(truth.fixed_min + 3 * truth.minutes_per_km, rel=0.05)


def test_logs_without_hours_or_departures_have_simpler_laws(stations, log, truth):
    fit = eo.calls.calibrate(synthetic_log(stations, rng=5), stations)
    assert (fit.law.hour_factors == 1).all()
    details = log.details.drop(columns="en_route")
    fit = eo.calls.calibrate(dataclasses.replace(log, details=details), stations)
    assert fit.turnout is None
    assert (fit.city().turnout_times.max(), fit.law.mean(0.0)) == (0, pytest.approx(truth.fixed_min + 1.5, abs=0.4))


def test_the_city_has_the_calibrated_times_of_one_law(fit, log, stations):
    km = np.array([0.5, 2.0, 5.0])
    assert fit.answer_law.mean(km) == pytest.approx(fit.law.mean(km), rel=0.03)
    city = fit.city(cell_km=1)
    assert city.site_names == tuple(stations["name"])
    assert city.turnout_times[0] == pytest.approx(fit.turnout.mean.value, rel=1e-3)
    assert city.service_times[0, 0] == fit.service.mean.value
    assert np.ravel(city.travel_cv)[0] > fit.answer_law.cv.value  # the hours add to the spread of a drive
    assert city.total_rate == pytest.approx(len(log) / 28 / 24, rel=0.02)
    night = fit.city(cell_km=1, hours=[23, 0, 1, 2])
    assert night.turnout_times[0] == pytest.approx(fit.turnout.groups[1].value)
    assert fit.city(demand=fit.demand(cell_km=1), service_times=50).service_times[0, 0] == 50


def test_the_accelerating_law_is_found_where_it_is_true():
    """Kolesar, Walker and Hausner (1975): square root at short, line at long distances."""
    rng = np.random.default_rng(0)
    km = rng.gamma(2, 1.0, 4000)
    v, reach = 1.0, 2.0
    mean = np.where(km <= reach, 2 * np.sqrt(km * reach), km + reach) / v
    minutes = np.floor(rng.random(4000) + mean * np.exp(0.3 * rng.standard_normal(4000) - 0.045))
    law = _travel_calibration.fit_law(minutes, km, rng.integers(0, 24, 4000), 1, 1)
    assert (law.kind, law.mean(np.array([1.0, 4.0]))) == ("accelerating", pytest.approx([2 * np.sqrt(2), 6], rel=0.05))
    low, high = law.pace.interval
    assert low < 1 / v < high


def test_homes_are_found_by_numbers_by_mapping_by_the_log_or_not_at_all(log, stations, fit):
    names = {unit: f"Station {unit[1:]}" for unit in log.details["unit"].unique()}
    assert (fit.homes_from, dict(fit.homes)) == ("numbers", names)
    given = eo.calls.calibrate(log, stations, homes=names)
    assert given.homes_from == "given"
    assert given.to_frame().equals(fit.to_frame())
    letters = dict(zip(names, "abcdefghi", strict=True))
    unnamed = dataclasses.replace(log, details=log.details.assign(unit=log.details["unit"].map(letters)))
    found = eo.calls.calibrate(unnamed, stations)
    assert (found.homes_from, dict(found.homes)) == ("log", {letters[unit]: name for unit, name in names.items()})
    without = eo.calls.calibrate(dataclasses.replace(log, details=log.details.drop(columns="unit")), stations)
    assert without.homes_from == "unknown"
    assert without.travel_minutes(3.0) == pytest.approx(fit.travel_minutes(3.0), rel=0.06)
    column = log.details["unit"].map({unit: name.upper() for unit, name in names.items()})
    by_column = dataclasses.replace(log, details=log.details.drop(columns="unit").assign(station=column))
    assert eo.calls.calibrate(by_column, stations).homes_from == "station column"
    both = dataclasses.replace(log, details=unnamed.details.assign(station=column))
    assert dict(eo.calls.calibrate(both, stations).homes) == dict(found.homes)


def test_san_jose_gives_its_homes_away(san_jose, real):
    """Without their names, the log alone puts units at the stations after which they are named."""
    (calls, stations), fit = san_jose, real
    assert fit.homes_from == "numbers"
    letters = {unit: unit.translate(str.maketrans("0123456789", "abcdefghij")) for unit in fit.homes}
    unnamed = dataclasses.replace(calls, details=calls.details.assign(unit=calls.details["unit"].map(letters)))
    found = eo.calls.calibrate(unnamed, stations)
    assert found.homes_from == "log"
    counts = calls.details["unit"].value_counts()
    same = [found.homes.get(letters[unit]) == home for unit, home in fit.homes.items()]
    assert counts[list(fit.homes)].to_numpy() @ same > 0.9 * counts[list(fit.homes)].sum()


def test_what_is_missing_wrong_or_impossible_is_refused_or_counted(log, stations, san_jose, real):
    """With homes moved by seven stations, drives hardly grow with distance any more."""
    calls, places = san_jose
    names, homes = places["name"].tolist(), dict(real.homes)
    moved = {unit: names[(names.index(home) + 7) % len(names)] for unit, home in homes.items()}
    silent = dataclasses.replace(log, details=log.details.drop(columns="on_scene"))
    copied = dataclasses.replace(calls, details=calls.details.assign(on_scene=calls.details["dispatched"]))
    for words, given, sites, home in (
        ("'on_scene'", silent, stations, None),
        ("Did you mean 'Station 1'", log, stations, {"E1": "station 1"}),
        ("none of the units", log, stations, {"X": "Station 1"}),
        ("stations are missing", calls, places, moved),
        ("hardly grow with the distance", copied, places, None),
        (r"covers \d% of them", calls, places, {"E1": "Station 1"}),
    ):
        refused(words, eo.calls.calibrate, given, sites, homes=home)
    details = log.details.copy()
    details.loc[:4, "on_scene"] = details["dispatched"][:5] - pd.Timedelta(minutes=3)
    details["units_sent"] = np.resize([0, np.nan, 3], len(log))  # a unit was on scene, so at least one was sent
    fit = eo.calls.calibrate(dataclasses.replace(log, details=details), stations)
    assert fit.left_out["travel below 0"] == 5
    assert fit.units_per_call == pytest.approx(np.resize([1, 1, 3], len(log)).mean())


def test_options_of_the_city_replace_what_was_calibrated(real):
    refused("`km` must be at least 0; got -1", real.travel_minutes, [1, -1])
    refused("`km` must be real numbers", real.travel_minutes, "far")
    fixed = real.city(travel_cv=0.0, turnout_cv=0.0)
    assert (fixed.travel_cv, fixed.turnout_cv) == (0.0, 0.0)
    np.testing.assert_array_equal(fixed.travel_times, real.city().travel_times)
    driven = real.city(speed_kmh=40)
    assert ("calibrated" in fixed.notes, "calibrated" in driven.notes) == (True, False)
    assert driven.travel_cv == real.city().travel_cv
    pd.testing.assert_frame_equal(pickle.loads(pickle.dumps(real)).to_frame(), real.to_frame())


def test_without_units_the_deployment_is_the_stations_that_answer():
    """The closest of all stations would often be one without a unit, and the law of an answer too slow."""
    stations = pd.DataFrame({"name": list("ABCD"), "lon": [0.0, 0.06, 0.0, 0.06], "lat": [45.0, 45.0, 45.04, 45.04]})
    log = synthetic_log(stations, calls_per_day=60, days=28, deployment=[0, 3], rng=3)
    home = log.details["unit"].map({"E1": "A", "E4": "D"}).astype(object)
    columns = log.details.drop(columns="unit").assign(station=home)
    by_station = eo.calls.calibrate(dataclasses.replace(log, details=columns), stations)
    by_unit = eo.calls.calibrate(log, stations, homes={"E1": "A", "E4": "D"})
    assert by_station.deployment.tolist() == by_unit.deployment.tolist() == [0, 3]
    assert by_station.answer_law.mean(3.0) == pytest.approx(by_unit.answer_law.mean(3.0), rel=1e-6)
