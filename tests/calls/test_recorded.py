"""Recorded beside modelled responses: against draws, and against hand-made clocks."""

import numpy as np
import pandas as pd
import pytest
from refusals import refused

import emsopt as eo
from emsopt.calls.recorded import percentile


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


@pytest.mark.parametrize("threshold", [5.0, 8.0, 8.5])
def test_a_clock_of_minutes_is_that_of_draws(evaluation, threshold):
    """200,000 response times, one at each quantile of the model, begun at random and rounded down to whole minutes."""
    rng = np.random.default_rng(0)
    at = np.linspace(0, 80, 1601)
    within = 1 - evaluation.late_fraction(at)
    drawn = rng.permutation(np.interp((np.arange(200_000) + 0.5) / 200_000, within, at))
    recorded = np.floor(drawn + rng.random(len(drawn)))
    table = eo.calls.recorded_and_modelled(log_of(recorded[:500]), evaluation, threshold)
    assert table["recorded"].tolist()[0] == pytest.approx(recorded[:500].mean())
    assert table["recorded"].tolist()[2] == pytest.approx((recorded[:500] > threshold).mean())
    mean, ninety, late = table["modelled"]
    assert mean == pytest.approx(recorded.mean(), abs=0.01)
    assert late == pytest.approx((recorded > threshold).mean(), abs=0.002)
    assert ninety == pytest.approx(percentile(recorded, 90, 1.0), abs=0.02)
    assert table["unrounded"].tolist()[2] == pytest.approx(evaluation.late_fraction(threshold))


def test_seconds_are_not_rounded_and_logs_without_stamps_refused(evaluation):
    seconds = [301, 422, 543, 0, 1, -67, 90_001]  # at most a second: a unit that was there
    minutes, step = eo.calls.recorded_responses(log_of(seconds, "s"))
    assert (step, minutes.tolist()) == (0, pytest.approx([301 / 60, 422 / 60, 543 / 60]))
    table = eo.calls.recorded_and_modelled(log_of(seconds, "s"), evaluation)
    assert table["modelled"].tolist() == table["unrounded"].tolist()
    calls = eo.calls.read_calls(pd.DataFrame({"time": ["2025-01-06 00:00"], "lon": [0.0], "lat": [45.0]}))
    refused("'dispatched' and 'on_scene'", eo.calls.recorded_and_modelled, calls, evaluation)
    refused("no call of the log", eo.calls.recorded_responses, log_of([-5.0, -6.0]))
