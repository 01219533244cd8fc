"""Simulated operations against closed forms, Markov chains, the exact hypercube, and rules that can be read off drives."""

from itertools import product

import numpy as np
import pytest
from drawn import erlang_c
from refusals import refused

import emsopt as eo
from emsopt.operations import Duration, Policy, Priority, System, simulate


def town(rate=2.0, **options):
    """Sites at 0 and 10 km, atoms at 2 and 8, a hospital at 5; 1 km a minute; without `priorities` 10 min on scene."""
    places = np.array([0.0, 10, 2, 8, 5])
    minutes = np.abs(places[:, None] - places)
    city = eo.City([rate, rate], minutes[:2, 2:4], turnout_times=1.0, service_times=30)
    return System(city, minutes, 1, **{"priorities": [Priority(on_scene=Duration(10))], **options})


@pytest.mark.parametrize("capacity", ["loss", "queue"])
def test_without_trips_it_is_the_exact_hypercube(capacity):
    inside = 0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        city, sites = eo.datasets.grid_city(8, 5, rng.uniform(0.2, 0.9), rng=rng), rng.choice(8, 5, replace=False)
        exact = eo.evaluators.exact_hypercube(city, sites, capacity=capacity)
        found = simulate(System(city), sites, capacity=capacity, calls=400_000, rng=seed)
        low, high = found.interval("mean_response", level=0.99)
        inside += low < exact.mean_response + exact.mean_wait < high
        assert np.allclose(found.utilizations, exact.utilizations, atol=0.02)
        if capacity == "loss":
            assert found.loss_probability == pytest.approx(exact.loss_probability, abs=0.006)
    assert inside >= 5


def test_two_priorities_wait_as_in_a_queue_of_several_servers():
    """M/M/c, non-preemptive (Cobham 1954): W_1 = W_0 / (1 - ρ_1), W_2 = W_0 / ((1 - ρ_1)(1 - ρ))."""
    service, c, share = 40.0, 5, 0.4
    work = 5.0 * service / 60
    city = eo.City([5.0], [[1.0]], turnout_times=0, service_times=service)
    system = System(city, priorities=[Priority("urgent", share), Priority("other", 1 - share)])
    found = simulate(system, [0] * c, calls=1_000_000, rng=1)
    load, waits = work / c, erlang_c(c, work)
    first = waits * service / c
    for k, wait in enumerate((first / (1 - share * load), first / ((1 - share * load) * (1 - load)))):
        low, high = found.interval("mean_response", k, level=0.999)
        assert low < 1 + wait < high
    assert found.to_frame().loc["urgent", "waited"] == pytest.approx(waits, abs=0.01)


def test_transport_and_calls_for_two_units_follow_a_chain_of_three_units():
    """Loss system without driving: i units on scene that may transport, j others on scene, h at the hospital."""
    rate, scene, handover, transport, second = 4.0, 20.0, 30.0, 0.6, 0.3
    states = [s for s in product(range(4), repeat=3) if sum(s) <= 3]
    flow = np.zeros((len(states), len(states)))
    for k, (i, j, h) in enumerate(states):
        free = 3 - i - j - h
        for change, rates in (
            ((1, 0, 0), rate / 60 * (1 - second) * (free > 0)),
            ((1, int(free > 1), 0), rate / 60 * second * (free > 0)),
            ((-1, 0, 1), i / scene * transport),
            ((-1, 0, 0), i / scene * (1 - transport)),
            ((0, -1, 0), j / scene),
            ((0, 0, -1), h / handover),
        ):
            if rates > 0:
                flow[k, states.index(tuple(np.add((i, j, h), change)))] += rates
    balance = np.vstack([(flow - np.diag(flow.sum(axis=1))).T, np.ones(len(states))])
    chance = np.linalg.lstsq(balance, np.append(np.zeros(len(states)), 1.0), rcond=None)[0]
    city = eo.City([rate], [[0.0]], turnout_times=0, service_times=30)
    kind = Priority(units=(1 - second, second), on_scene=Duration(scene), transport=transport)
    system = System(city, np.zeros((3, 3)), 1, priorities=[kind], handover=Duration(handover))
    found, busy = simulate(system, [0, 0, 0], capacity="loss", calls=600_000, rng=2), np.sum(states, axis=1)
    low, high = found.interval("loss", level=0.999)
    assert low < chance[busy == 3].sum() < high
    assert found.utilizations.mean() == pytest.approx(chance @ busy / 3, abs=0.004)


def test_one_unit_is_busy_for_all_parts_of_a_call():
    """A single unit that must first be home again: mean response and busy time are sums of fixed times."""
    kind = Priority(on_scene=Duration(10, 0), transport=1.0, delay=0.5)
    system, rule = town(1.0, priorities=[kind], handover=Duration(7, 0)), Policy(on_the_way=False)
    found = simulate(system, [0], policy=rule, capacity="loss", calls=50_000, rng=3)
    assert found.mean_response == pytest.approx(0.5 + 1 + (2 + 8) / 2, abs=0.05)
    minutes = 0.5 + 1 + 5 + 10 + 3 + 7 + 5  # delay, turnout, drive, scene, to the hospital, handover, home
    assert found.utilizations[0] == pytest.approx(1 / (1 + 60 / 2 / minutes), abs=0.005)
    assert found.loss_probability == pytest.approx(found.utilizations[0], abs=0.01)


def test_urgent_calls_take_units_and_those_on_the_way_home_are_closer():
    def means(takes_from):
        urgent = Priority("urgent", 0.3, on_scene=Duration(10), takes_from=takes_from)
        kinds = [urgent, Priority("other", 0.7, on_scene=Duration(10))]
        found = simulate(town(2.5, priorities=kinds), [0, 1], calls=40_000, rng=5)
        assert (found.taken_over > 0) == bool(takes_from)
        return found.to_frame()["mean_response_min"]

    with_it, without = means(("other",)), means(())
    assert with_it["urgent"] < without["urgent"] - 0.5
    assert with_it["other"] > without["other"]
    system = town(2.5, priorities=[Priority(on_scene=Duration(10), transport=0.5)])
    rules = (Policy(on_the_way=way) for way in (True, False))
    there, home = (simulate(system, [0, 1], policy=rule, calls=40_000, rng=6).mean_response for rule in rules)
    assert there < home - 1


def test_free_units_go_where_coverage_or_patience_sends_them():
    def homewards(system, sites, rule, **options):
        drives = simulate(system, sites, policy=rule, trace=900, **options).trace
        return drives[drives["call"] < 0]

    places = np.array([0.0, 10, 1, 9, 5])
    minutes = np.abs(places[:, None] - places)
    city = eo.City([0.9, 0.1], minutes[:2, 2:4], turnout_times=1.0, service_times=30)
    system = System(city, minutes, 1, priorities=[Priority(on_scene=Duration(10))])
    one = homewards(system, [1], Policy(coverage=3.0, busy=0.2), capacity="loss", calls=200, rng=8)
    assert set(one["goal"]) == {0}
    two = homewards(system, [0, 0], Policy(coverage=3.0, busy=0.05), capacity="loss", calls=300, rng=8)
    assert {0, 1} <= set(two["goal"])  # a second unit at site 0 would add 0.9 * 0.05
    three = homewards(town(), [0, 0, 0], Policy(coverage=3.0, busy=0.2, patience=0.1), calls=300, rng=19)
    nearest = {2: 0, 3: 1}  # atom at 2 km, atom at 8 km
    assert set(three["goal"]) == {0, 1}
    assert all(nearest[row.origin] == row.goal for row in three.itertuples() if row.origin in nearest)


def test_shifts_and_hours():
    def sent(system, units, shifts, **options):
        found = simulate(system, units, shifts=shifts, trace=5_000, **options)
        assert (found.utilizations <= 1).all()
        return found.trace[found.trace["call"] >= 0]

    morning = town(0.5, calls_by_hour=np.where(np.arange(24) < 12, 1.9, 0.1))
    drives = sent(morning, [0, 1, 1], [[0, 24], [8, 20], [20, 8]], calls=3_000, rng=9)
    hour = drives["leave"] // 60 % 24
    assert set(hour[drives["unit"] == 1]) <= set(range(8, 21))  # turnout may end in the hour after
    assert not set(hour[drives["unit"] == 2]) & set(range(9, 20))
    assert (hour < 12).mean() > 0.85
    # Three units begin at 8, when calls wait: no unit stands idle.
    rates = np.where(np.arange(24) < 8, 1.0, 0.001)
    system = town(0.3, priorities=[Priority(on_scene=Duration(15, 0))], calls_by_hour=rates)
    drives = sent(system, [0, 0, 1], [[8, 9], [8, 9], [8, 20]], calls=1_000, warmup=0, rng=12)
    opening = drives[drives["leave"] % 1440 <= 482].groupby(drives["leave"] // 1440)["unit"].nunique()
    assert (opening == 3).mean() > 0.4
    # A call of ten hours meets a shift of one: the unit is busy for nearly all of the hours that it works.
    system = town(0.5, priorities=[Priority(on_scene=Duration(600, 0))])
    found = simulate(system, [0], shifts=[[8, 9]], capacity="loss", calls=2_000, warmup=0, rng=13)
    assert 0.8 < found.utilizations[0] <= 1


def test_bad_input_says_what_was_expected():
    for call, message in (
        (lambda: town(priorities=[Priority("a", 0.5)]), "shares of `priorities` must sum to 1"),
        (lambda: town(priorities=[Priority("a", 0.5), Priority("a", 0.5)]), "distinct names"),
        (lambda: town(priorities=[Priority(mode=1)]), "must be below 1"),
        (lambda: town(priorities=[Priority(takes_from=("all",))]), "less urgent"),
        (lambda: System(town().city, priorities=[Priority(transport=0.5)]), "`hospitals` is 0"),
        (lambda: System(town().city, priorities=[Priority(on_scene=Duration(5))]), "driving times"),
        (lambda: town(calls_by_hour=[1, 2]), "24 or 168"),
        (lambda: town(hospital_of=[0, 1]), "from 0 to 0"),
        (lambda: Priority(units=(0.5, 0.1)), "sum 1"),
        (lambda: Policy(table=[[0], [0]]), "must list k sites"),
        (lambda: Policy(table=[[0]], coverage=3), "give one of them"),
        (lambda: Policy(busy=1), "below 1"),
        (lambda: simulate(town(), [0], policy=Policy(offsets=[1])), "2 entries"),
        (lambda: simulate(town(), [0, 1], policy=Policy(table=[[0]])), "2 entries"),
        (lambda: simulate(town(), [0], policy=Policy(table=[[5]])), "0 to 1"),
        (lambda: simulate(town(), [0], shifts=[[0, 25]]), "whole hours"),
        (lambda: simulate(town(), [0], calls=10), "at least 20"),
        (lambda: simulate(town(), [0], calls=20, rng=0).percentile(0.9, "low"), "'all'"),
    ):
        refused(message, call)


def test_two_calls_that_lose_their_units_at_one_moment_are_both_over():
    """A call for two units takes both from others, where calls do not wait: every counted call ends exactly once."""
    urgent = Priority("urgent", 0.3, units=(0, 1), on_scene=Duration(10), takes_from=("other",))
    kinds = [urgent, Priority("other", 0.7, on_scene=Duration(10))]
    found = simulate(town(6.0, priorities=kinds), [0, 1], capacity="loss", calls=5_000, rng=11)
    assert (found.calls.sum(), found.histogram.sum()) == (5_000, (found.calls - found.lost).sum())
    assert found.taken_over > 0
    assert 0 < found.lost[:, 1].sum() < found.calls[:, 1].sum()
    whole = found.to_frame().loc["all calls"]  # shares are of the answered calls
    assert whole[["late", "lost"]].tolist() == pytest.approx([found.late_share, found.loss_probability])
    assert whole["mean_response_min"] == pytest.approx(found.mean_response)
    assert whole["low"] < found.mean_response < whole["high"]


def test_units_stay_or_move_at_once():
    rule = Policy(coverage=0.5)
    assert simulate(town(), [1], policy=rule, calls=500, warmup=0, capacity="loss", rng=15).relocations == 0
    # Calls are rare, so that both units wait at site 1, as the table says, and answer from there all but the first.
    system = System(eo.City([0.01], [[2.0], [9.0]], turnout_times=1.0, service_times=10))
    found = simulate(system, [0, 0], policy=Policy(table=[[0], [1, 1]]), calls=20, warmup=0, rng=14)
    assert found.mean_response == pytest.approx((3 + 19 * 10) / 20)


def test_calls_may_be_rare_too_many_or_never_answered():
    kinds = [Priority("often", 1 - 1e-6, on_scene=Duration(10)), Priority("never", 1e-6, on_scene=Duration(10))]
    found = simulate(town(priorities=kinds), [0], capacity="loss", calls=200, rng=16)
    assert np.isnan(found.to_frame().loc["never", ["mean_response_min", "late", "lost", "percentile_90_min"]]).all()
    with pytest.raises(eo.errors.UnstableQueueError, match="Add units"):
        simulate(town(20.0, priorities=[Priority(on_scene=Duration(60))]), [0], rng=0)
    # At one call in a hundred million hours: each finds both units at home.
    found = simulate(town(1e-8), [0, 1], calls=1_000, rng=20)
    assert found.mean_response == pytest.approx(1 + 2)
    assert found.hours == pytest.approx(5e10, rel=0.15)


def two_towns(kind):
    """Return a city of two sites, each within 3 min of one of two atoms only, and no hospital."""
    places = np.array([0.0, 10, 1, 9])
    minutes = np.abs(places[:, None] - places)
    city = eo.City([0.9, 0.9], minutes[:2, 2:], turnout_times=0, service_times=30)
    return System(city, minutes, priorities=[kind])


def test_units_in_no_time_are_at_the_median_of_their_number():
    """Erlang B: with one free unit it is at site 0, 1 or 9 min away; with two, everyone is reached in a minute."""
    system, table = two_towns(Priority(on_scene=Duration(30))), [[0], [0, 1]]
    options = {"capacity": "loss", "calls": 100_000, "rng": 17}
    rules = (Policy(table=table, instant=now) for now in (True, False))
    found, moving = (simulate(system, [0, 1], policy=rule, **options) for rule in rules)
    load = 1.8 / 60 * (30 + found.response_sum.sum() / (found.calls - found.lost).sum())  # busy from the dispatch
    one = load / (1 + load)  # of answered calls, those that meet one free unit
    assert found.mean_response == pytest.approx(one * 5 + (1 - one) * 1, rel=0.02)
    assert found.mean_response < moving.mean_response


def test_dispatch_by_coverage_spares_the_last_unit_in_reach():
    """Two units in the west, one in the east: all are in time everywhere, and the west can spare one."""
    system = two_towns(Priority(target=20, on_scene=Duration(10)))
    rule = Policy("coverage", coverage=3.0, busy=0.1, relocate=False, on_the_way=False)
    found = simulate(system, [0, 0, 1], policy=rule, calls=400, warmup=0, trace=2_000, rng=18)
    sent = found.trace[found.trace["call"] >= 0]
    first = sent[sent["leave"] > sent["until"].shift().cummax() + 100]  # nobody else is out
    assert len(first) > 10
    assert (first["unit"] != 2).all()
    closest = simulate(system, [0, 0, 1], policy=Policy(on_the_way=False), calls=400, warmup=0, rng=18)
    assert closest.mean_response < found.mean_response
