"""Dispatch with offsets, between the closest unit and the optimal dispatch."""

import numpy as np
import pytest

import emsopt as eo
from emsopt.operations import best_offsets, optimal_dispatch


def test_two_units_with_offsets_are_as_good_as_the_optimal_dispatch():
    """With two units the optimal dispatch has one order an atom, and offsets order atoms on a line alike."""
    city = eo.City([2.0, 0.4], [[1, 5], [9, 5.5]], turnout_times=0, service_times=30)
    found, best = best_offsets(city, [0, 1], "mean_response", steps=100, rng=0), optimal_dispatch(city, [0, 1])
    assert (found.value_without, found.value) == (pytest.approx(best.preferred_cost), pytest.approx(best.cost))
    assert found.gain == pytest.approx(1 - best.cost / best.preferred_cost)
    assert found.minutes.sum() == pytest.approx(0, abs=1e-9)
    assert eo.evaluators.exact_hypercube(found.city, [0, 1]).mean_response == pytest.approx(found.value)


def test_offsets_lie_between_closest_and_optimal_and_units_may_move():
    steps = []
    city = eo.City([2.0, 0.4], [[1, 5], [9, 5.5]], turnout_times=0, service_times=30)
    found = best_offsets(city, [0, 0, 1], "mean_response", steps=50, rng=0)
    assert found.value == pytest.approx(eo.evaluators.exact_hypercube(found.city, [0, 0, 1]).mean_response)
    assert found.value <= found.value_without
    # One unit too many at a dear site: the joint search moves it, and its value is that of the city it returns.
    rng = np.random.default_rng(4)
    city = eo.City(rng.uniform(0.2, 1, 12), rng.uniform(1, 12, (6, 12)), turnout_times=1, service_times=30)
    city = city.with_offered_load(0.5, units=3)
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
