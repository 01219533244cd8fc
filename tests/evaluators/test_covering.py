"""Covering models against brute force and against what their names promise."""

from itertools import combinations, combinations_with_replacement

import numpy as np
import pytest
from drawn import plane_city, tied_city
from refusals import refused

import emsopt as eo
from emsopt.evaluators import mclp, mexclp
from emsopt.evaluators.metrics import metric_costs


def covered(city, sites, threshold, busy):
    """Expected share of calls reached in time: of the free units, the most probable to be in time answers."""
    in_time = -np.sort(metric_costs(city, ("late", threshold))[sites] - 1, axis=0)
    chance = (1 - busy) * np.power(busy, np.arange(len(sites)))
    return city.demand_shares @ (chance @ in_time)


def brute_force(city, units, threshold, busy=0.0, colocation=False, pinned=(), closed=()):
    """Largest (expected) share of calls in reach over every deployment of listed sites."""
    pinned = list(pinned)
    free = [k for k in range(city.n_sites) if k not in closed and (colocation or k not in pinned)]
    choose = combinations_with_replacement if colocation else combinations
    best = 0.0
    for rest in choose(free, units - len(pinned)):
        if city.response_law is not None:
            best = max(best, covered(city, pinned + list(rest), threshold, busy))
            continue
        n = (city.response_times[pinned + list(rest)] < threshold).sum(axis=0)
        best = max(best, city.demand_shares @ (1 - np.power(busy, n)))
    return best


@pytest.mark.parametrize("make", [plane_city, tied_city])
def test_mclp_by_brute_force(make):
    rng = np.random.default_rng(0)
    for seed in range(20):
        n = int(rng.integers(2, 9))
        city = make(n, int(rng.integers(2, 15)), seed)
        units = int(rng.integers(1, n + 1))
        threshold = float(rng.uniform(3, 10)) if make is plane_city else float(rng.integers(1, 4))
        order = rng.permutation(n)
        pinned = order[: rng.integers(0, units + 1)] if seed % 2 else order[:0]
        closed = order[units:] if seed % 3 == 0 else order[:0]
        space = eo.DeploymentSpace(city, units, pinned=pinned, closed=closed)
        found = mclp(city, space, threshold)
        expected = brute_force(city, units, threshold, pinned=pinned, closed=closed)
        assert (found.coverage, found.gap, found.upper_bound) == (pytest.approx(expected, abs=1e-9), 0, found.coverage)
        assert found.sites in space


@pytest.mark.parametrize("colocation", [True, False])
@pytest.mark.parametrize("make", [plane_city, tied_city])
def test_mexclp_by_brute_force(make, colocation):
    rng = np.random.default_rng(1)
    for seed in range(12):
        n = int(rng.integers(2, 7))
        city = make(n, int(rng.integers(2, 12)), seed)
        units = int(rng.integers(1, n + 1 + colocation))
        threshold = float(rng.uniform(4, 14)) if make is plane_city else float(rng.integers(1, 4))
        busy = float(rng.uniform(0.05, 0.95))
        pinned = (0,) if seed % 2 else ()
        space = eo.DeploymentSpace(city, units, colocation=colocation, pinned=pinned)
        found = mexclp(city, space, threshold, busy)
        expected = brute_force(city, units, threshold, busy, colocation, pinned)
        assert (found.coverage, found.gap) == (pytest.approx(expected, abs=1e-9), 0)
        assert found.sites in space


@pytest.mark.parametrize("busy", [0.0, 0.35])
def test_covering_with_random_travel_by_brute_force(busy):
    rng = np.random.default_rng(2)
    for seed in range(12):
        n = int(rng.integers(2, 6))
        city = (plane_city, tied_city)[seed % 2](n, int(rng.integers(2, 10)), seed)
        city = city.replace(travel_cv=rng.uniform(0, 0.8, city.travel_times.shape) if seed % 3 else 0.4)
        units, threshold = int(rng.integers(1, n + 1)), float(rng.uniform(1, 9))
        space = eo.DeploymentSpace(city, units, colocation=busy > 0)
        found = mexclp(city, space, threshold, busy)
        assert found.coverage == pytest.approx(brute_force(city, units, threshold, busy, busy > 0), abs=1e-9)
        assert found.coverage == pytest.approx(covered(city, found.sites, threshold, busy), abs=1e-9)
        in_time = 1 - metric_costs(city, ("late", threshold))[found.sites]
        np.testing.assert_allclose(found.reached_by, in_time.sum(axis=0))


def test_thresholds_busy_fractions_and_where_busy_units_gather():
    city = eo.City([1.0], [[4.0]], 1.0, 30.0)
    assert (mclp(city, 1, 5.0).coverage, mclp(city, 1, 5.0 + 1e-9).coverage) == (0, 1)
    assert mclp(city, 1, 5.0 + 1e-9).reached_by.tolist() == [1]
    city = plane_city(6, 15, 0)
    calm = city.with_offered_load(0.37, 3)
    assert (mexclp(calm, 3, 8.0).busy_fraction, mexclp(calm, 3, 8.0, 0.2).busy_fraction) == (pytest.approx(0.37), 0.2)
    swamped = mexclp(city.with_offered_load(5.0, 3), 3, 8.0)
    assert swamped.busy_fraction == 0.99
    assert 0 < swamped.coverage < 0.03
    # One atom has nearly all calls: idle units spread, busy ones stand together.
    city = eo.City([90.0, 5.0, 5.0], [[1, 20, 20], [20, 1, 20], [20, 20, 1]], 1.0, 2.0)
    assert mexclp(city, 3, 8.0, 0.01).sites.tolist() == [0, 1, 2]
    assert mexclp(city, 3, 8.0, 0.9).sites.tolist() == [0, 0, 0]
    assert mexclp(city, eo.DeploymentSpace(city, 3), 8.0, 0.9).sites.tolist() == [0, 1, 2]
    assert mexclp(city, 3, 8.0, 0.9).coverage == pytest.approx(0.9 * (1 - 0.9**3))
    assert mexclp(city, 3, 8.0, 0.9).reached_by.tolist() == [3, 0, 0]


@pytest.mark.parametrize("busy", [0.0, 0.5])
def test_stopped_early_it_says_how_much_more_is_possible(busy):
    city = plane_city(100, 400, 0)
    stopped, found = mexclp(city, 20, 2.5, busy, time_limit=1e-9), mexclp(city, 20, 2.5, busy)
    assert found.gap == 0
    assert (1 - 1 / np.e) * found.coverage <= stopped.coverage <= found.coverage + 1e-9  # greedy: Nemhauser et al. 1978
    assert stopped.upper_bound >= found.coverage
    assert stopped.gap == stopped.upper_bound - stopped.coverage


def test_nothing_is_covered_where_the_only_site_in_reach_is_closed():
    city = eo.City([1, 2], [[0, 20], [20, 20], [20, 20]], turnout_times=1, service_times=30)
    found = mclp(city, eo.DeploymentSpace(city, 2, closed=[0]), 6)
    assert (found.coverage, found.proven, found.sites.tolist()) == (0, True, [1, 2])


def test_bad_options_are_refused():
    for threshold, busy, name in ((0, 0.5, "threshold"), (8, 1, "busy_fraction"), (8, -0.1, "busy")):
        refused(name, mexclp, plane_city(4, 6, 0), 2, threshold, busy)
