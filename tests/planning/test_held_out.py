"""Plans judged on weeks that they were not made from: against counting by hand, and logs whose truth is known."""

import numpy as np
import pandas as pd
import pytest
from refusals import refused

import emsopt as eo
from emsopt.calls import HeldOutCalls, aggregate_calls, held_out_weeks
from emsopt.evaluators import approximate_hypercube
from emsopt.planning import Settings, hourly_plan, judge_plan
from emsopt.planning.steps import plan_day

TOWN = eo.datasets.grid_city(n_sites=5, units=2, rng=1, size=4)
TOWN = TOWN.replace(arrival_rates=TOWN.arrival_rates * 1.5 / TOWN.total_rate)


def log_of(days, rng=0, first="2025-01-06"):
    """A log of 20 calls a day around four stations."""
    rng = np.random.default_rng(rng)
    n = 20 * days
    seconds = rng.integers(0, days * 86400, n)
    seconds[:days] = np.arange(days) * 86400  # so that every day is seen from its first hour on
    seconds = np.sort(seconds).astype("timedelta64[s]")
    lon, lat = -30 + rng.uniform(-0.05, 0.05, n), 45 + rng.uniform(-0.04, 0.04, n)
    calls = pd.DataFrame({"time": np.datetime64(first + "T00:00:00") + seconds, "lon": lon, "lat": lat})
    places = {"lon": [-30.02, -29.98, -30.0, -29.96], "lat": [45.01, 44.99, 45.02, 45]}
    return eo.calls.read_calls(calls), pd.DataFrame({"name": list("ABCD")} | places)


@pytest.mark.parametrize(("days", "parts"), [(5, 5), (20, 8), (28, 4), (37, 5), (70, 8)])
def test_every_call_is_held_out_once(days, parts):
    """The counts of all parts are the counts of the log, and each part and its rest make up the whole."""
    calls, stations = log_of(days)
    weeks = held_out_weeks(calls, stations, cell_km=2)
    demand = aggregate_calls(calls, stations, cell_km=2)
    assert len(weeks) == parts
    assert np.array_equal(sum(week.counts for week in weeks), demand.counts.sum(axis=1).T)


def test_weeks_are_those_of_a_log_cut_by_hand():
    """By hand: the same log with the first week cut out of it, with the cells of the whole log."""
    calls, stations = log_of(35)
    week, *_ = held_out_weeks(calls, stations, cell_km=5)
    rest = calls.between("2025-01-13", "2030-01-01")
    names = aggregate_calls(calls, stations, cell_km=5).atom_names
    demand = aggregate_calls(rest, stations, cell_km=5)
    assert (demand.atom_names, week.other_rates) == (names, pytest.approx(demand.rates_by_hour()))
    assert week.counts.sum() == len(calls) - len(rest)
    weekend = held_out_weeks(calls, stations, cell_km=5, weekdays=["Sat", "Sun"])[0]
    assert weekend.other_rates == pytest.approx(demand.rates_by_hour(weekdays=[5, 6]))
    assert weekend.counts.sum() == np.isin(calls.between("2025-01-06", "2025-01-13").weekdays, [5, 6]).sum()
    calls, stations = log_of(14)
    assert len(held_out_weeks(calls, stations, cell_km=5, weekdays=["Sat", "Sun"])) == 4
    refused("on at least 3 of them; it spans 2", held_out_weeks, *log_of(2), cell_km=5)
    refused("`most` must be", held_out_weeks, calls, stations, most=2)


def weeks_of(strength, seed, most=6):
    """Weeks of calls that move through the town during the day, and the plan of all of them."""
    rng = np.random.default_rng(seed)
    tilt = np.cos(2 * np.pi * np.arange(24) / 24)[:, None] * rng.standard_normal(TOWN.n_atoms)
    true = TOWN.arrival_rates * np.exp(strength * tilt)
    counts = rng.poisson(14 * true, size=(most, 24, TOWN.n_atoms)).astype(float)
    total = counts.sum(axis=0) + 1e-3
    weeks = [HeldOutCalls((total - part) / 14 / (most - 1), part) for part in counts]
    return hourly_plan([TOWN.replace(arrival_rates=r / 14 / most) for r in total], 2, 1, "approximate"), weeks


def test_the_gain_is_what_the_calls_of_the_week_save():
    """Each call of a held-out week, one after the other, answered by the plan of the others and by no moves."""
    plan, weeks = weeks_of(1.0, 3, most=3)
    judged = judge_plan(plan, weeks)
    for k, week in enumerate(weeks):
        other = hourly_plan([TOWN.replace(arrival_rates=rates) for rates in week.other_rates], 2, 1, "approximate")
        saved = 0.0
        for hour in range(24):
            city = plan.objectives[hour].city
            still, moved = (
                approximate_hypercube(city, sites).atom_response for sites in (other.fixed_sites, other.sites[hour])
            )
            saved += week.counts[hour] @ (still - moved)
        assert judged.held_out.gains[k] == pytest.approx(saved / week.counts.sum())
        assert judged.held_out.moves[k] == other.moves.sum()
    gain = judged.held_out
    assert gain.mean == pytest.approx(np.average(gain.gains, weights=gain.calls))
    per_day = sum(objective.city.total_rate for objective in plan.objectives)
    assert gain.gain_per_move.mean == pytest.approx(gain.mean * per_day / gain.moves.mean())
    spread = np.std(gain.gains, ddof=1) * np.sqrt(1 / 3 + 1 / 2) * 2.919986  # Student's t, 2 degrees of freedom, 95 %
    assert (gain.high - gain.low) / 2 == pytest.approx(spread)


def test_where_hours_do_not_differ_the_advice_is_to_leave_them():
    """Logs without a pattern of the day: the plan's own value always promises a gain, and new weeks never give it."""
    for seed in range(2):
        plan = judge_plan(*weeks_of(0.0, seed))
        assert plan.value <= plan.fixed_value
        assert not plan.held_out.is_worthwhile
        if plan.moves.any() and plan.held_out.moves.any():
            assert plan.verdict.startswith("Leave the units where they are.")


def test_no_moves_gain_nothing_and_weeks_of_another_plan_are_refused():
    plan, weeks = weeks_of(1.0, 1, most=3)
    still = hourly_plan([o.city for o in plan.objectives], 2, 0, "approximate")
    judged = judge_plan(still, weeks)
    assert (judged.verdict, judged.held_out.gains.tolist()) == ("No unit moves all day.", [0, 0, 0])
    assert np.isnan(judged.held_out.gain_per_move).all()
    refused(r"at least two with the 24 hours and \d+ atoms", judge_plan, plan, weeks[:1])
    fewer = [HeldOutCalls(week.other_rates[:, 1:], week.counts[:, 1:]) for week in weeks]
    refused(r"at least two with the 24 hours and \d+ atoms", judge_plan, plan, fewer)
    refused("`plan` must be", judge_plan, {}, weeks)
    hours = np.array([objective.city.arrival_rates for objective in plan.objectives])
    other = plan_day(TOWN, eo.DeploymentSpace(TOWN, 2), 1, hours, Settings(), model=object(), load=0.9)
    assert (other.moves.any(), other.held_out) == (True, None), "another load is not that of the log"


def test_where_calls_wander_the_moves_are_worth_making():
    plan, weeks = weeks_of(1.5, 1)
    gain = (judged := judge_plan(plan, weeks)).held_out
    assert gain.is_worthwhile
    assert f"if each costs less than {gain.gain_per_move.mean:.2g} call-minutes" in judged.verdict
    cities = [objective.city for objective in plan.objectives]
    mix = {"mean_response": 1, ("late", 4.0): 20}
    label = " of (1 x mean response (min) + 20 x fraction of responses of 4 min or more) per call ("
    for metric, unit in ((("late", 4.0), "late calls per day"), (mix, label)):
        verdict = judge_plan(hourly_plan(cities, 2, 1, "approximate", metric=metric), weeks).verdict
        assert unit in verdict
        assert "call-minutes" not in verdict
