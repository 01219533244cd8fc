"""Optimal dispatch against all policies one by one and the exact hypercube, and dispatch with offsets between both."""

from itertools import product

import numpy as np
import pytest
from refusals import refused

import emsopt as eo
from emsopt.operations import best_offsets, optimal_dispatch

# Carter, Chaiken and Ignall (1972): the unit near a busy quarter should leave calls in between to the other.
QUARTERS = eo.City([2.0, 0.4], [[1, 5], [9, 5.5]], turnout_times=0, service_times=30)


def random_city(seed, atoms, sites=4, load=0.6):
    rng = np.random.default_rng(seed)
    city = eo.City(rng.uniform(0.2, 1, atoms), rng.uniform(1, 12, (sites, atoms)), turnout_times=1, service_times=30)
    return city.with_offered_load(load, units=3)


def cost_of(city, sites, policy, costs):
    """Return the mean cost of an answered call under a policy {(free units, atom): unit}, by the chain's balance."""
    states = [frozenset(s) for s in ([], [0], [1], [2], [0, 1], [0, 2], [1, 2], [0, 1, 2])]  # free units
    flow, cost = np.zeros((8, 8)), np.zeros(8)
    for k, free in enumerate(states):
        for j, rate in enumerate(city.arrival_rates / 60):
            if free:
                unit = policy[free, j]
                flow[k, states.index(free - {unit})] += rate
                cost[k] += rate * costs[unit, j]
        for unit in {0, 1, 2} - free:
            flow[k, states.index(free | {unit})] += 1 / (city.service_times[sites[unit]] @ city.demand_shares)
    np.fill_diagonal(flow, -flow.sum(axis=1))
    chance = np.linalg.lstsq(np.vstack([flow.T, np.ones(8)]), np.append(np.zeros(8), 1.0), rcond=None)[0]
    return chance @ cost / (city.total_rate / 60 * (1 - chance[0]))


@pytest.mark.parametrize("seed", range(3))
def test_no_policy_of_three_units_is_better(seed):
    """All 24 x 24 policies of three units and two atoms: three choices if all are free, two in three states."""
    city, sites = random_city(seed, 2), [0, 1, 2]
    costs = city.response_times[sites]
    free = [frozenset(s) for s in ([0, 1, 2], [0, 1], [0, 2], [1, 2])]
    single = {(frozenset([u]), j): u for u in range(3) for j in range(2)}
    choices = list(product(*(sorted(s) for s in free)))
    least = min(
        cost_of(city, sites, single | {(s, j): both[j][k] for k, s in enumerate(free) for j in range(2)}, costs)
        for both in product(choices, choices)
    )
    assert optimal_dispatch(city, sites).cost == pytest.approx(least, rel=1e-8)


def test_the_preferred_unit_is_the_exact_hypercube_and_not_always_best():
    city, sites = random_city(5, 9), [0, 1, 3]
    exact, found = eo.evaluators.exact_hypercube(city, sites), optimal_dispatch(city, sites, ("late", 8.0))
    assert found.preferred_cost == pytest.approx(exact.late_fraction(8.0), rel=1e-9)
    assert found.loss_probability == pytest.approx(exact.loss_probability, rel=1e-9)
    assert found.cost <= found.preferred_cost
    assert found.gap == pytest.approx(found.preferred_cost / found.cost - 1)
    found = optimal_dispatch(QUARTERS, [0, 1])
    assert found.policy[0].tolist() == [0, 1]
    assert found.gap > 0.01
    refused("at most 10 units", optimal_dispatch, city, [0] * 11)


def test_two_units_with_offsets_are_as_good_as_the_optimal_dispatch():
    """With two units the optimal dispatch has one order an atom, and offsets order atoms on a line alike."""
    found, best = best_offsets(QUARTERS, [0, 1], "mean_response", steps=100, rng=0), optimal_dispatch(QUARTERS, [0, 1])
    assert (found.value_without, found.value) == (pytest.approx(best.preferred_cost), pytest.approx(best.cost))
    assert found.gain == pytest.approx(1 - best.cost / best.preferred_cost)
    assert found.minutes.sum() == pytest.approx(0, abs=1e-9)
    assert eo.evaluators.exact_hypercube(found.city, [0, 1]).mean_response == pytest.approx(found.value)


def test_offsets_lie_between_closest_and_optimal_and_units_may_move():
    found, steps = best_offsets(QUARTERS, [0, 0, 1], "mean_response", steps=50, rng=0), []
    assert found.value == pytest.approx(eo.evaluators.exact_hypercube(found.city, [0, 0, 1]).mean_response)
    assert found.value <= found.value_without
    # One unit too many at a dear site: the joint search moves it, and its value is that of the city it returns.
    city = random_city(4, 12, sites=6, load=0.5)
    alone = best_offsets(city, [0, 2, 5], steps=80, rng=1, progress=lambda *done: steps.append(done))
    assert optimal_dispatch(city, [0, 2, 5], ("late", 8.0)).cost <= alone.value < alone.value_without
    assert steps[-1] == (80, 80)
    assert (alone.minutes[[1, 3, 4]] == 0).all()
    assert alone.sites.tolist() == [0, 2, 5]
    both = best_offsets(city, [0, 2, 5], steps=80, moves=0.4, rng=1)
    assert both.value < alone.value
    assert len(set(both.sites)) == 3
    assert set(np.flatnonzero(both.minutes)) <= set(both.sites)
    assert eo.evaluators.exact_hypercube(both.city, both.sites).late_fraction(8.0) == pytest.approx(both.value)


@pytest.mark.parametrize(("load", "gain"), [(0.225, 0.038), (0.8, 0.009)])
def test_gains_on_published_st_paul(load, gain, published):
    city = published.with_offered_load(load, units=9)
    sites = eo.evaluators.evaluate_all(city, 9, evaluator="approximate").best.sites
    assert best_offsets(city, sites, rng=0).gain >= gain
