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


def brute_force(city, space, threshold, busy):
    """Largest expected share of calls in reach over every deployment of listed sites."""
    choose = combinations_with_replacement if space.colocation else combinations
    rows = map(list, choose(range(city.n_sites), space.units))
    return max(covered(city, row, threshold, busy) for row in rows if row in space)


def random_travel_city(n_sites, n_atoms, rng):
    """One of the two other kinds, whose travel times vary, by pair or alike."""
    city = (plane_city, tied_city)[rng % 2](n_sites, n_atoms, rng)
    return city.replace(travel_cv=np.random.default_rng(rng).uniform(0, 0.8, (n_sites, n_atoms)) if rng % 3 else 0.4)


@pytest.mark.parametrize(("most_busy", "colocation"), [(0.0, False), (0.95, False), (0.95, True)])
@pytest.mark.parametrize("make", [plane_city, tied_city, random_travel_city])
def test_mexclp_by_brute_force(make, most_busy, colocation):
    """MCLP is the case of units that are never busy."""
    rng = np.random.default_rng(1)
    for seed in range(12):
        n = int(rng.integers(2, 7))
        city, units = make(n, int(rng.integers(2, 12)), seed), int(rng.integers(1, n + 1 + colocation))
        threshold = float(rng.integers(1, 4)) if make is tied_city else float(rng.uniform(3, 12))
        order, busy = rng.permutation(n), float(rng.uniform(0, most_busy))
        pinned = order[: rng.integers(0, units + 1)] if seed % 2 else order[:0]
        closed = order[units:] if seed % 3 == 0 else order[:0]
        space = eo.DeploymentSpace(city, units, colocation=colocation, pinned=pinned, closed=closed)
        found = mexclp(city, space, threshold, busy) if most_busy else mclp(city, space, threshold)
        assert found.coverage == pytest.approx(brute_force(city, space, threshold, busy), abs=1e-9)
        assert found.coverage == pytest.approx(covered(city, found.sites, threshold, busy), abs=1e-9)
        assert (found.gap, found.proven, found.sites in space) == (0, True, True)
        in_time = 1 - metric_costs(city, ("late", threshold))[found.sites]
        np.testing.assert_allclose(found.reached_by, in_time.sum(axis=0))


def test_thresholds_busy_fractions_and_where_busy_units_gather():
    city = eo.City([1.0], [[4.0]], 1.0, 30.0)
    assert (mclp(city, 1, 5.0).coverage, mclp(city, 1, 5.0 + 1e-9).coverage) == (0, 1)
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
    nothing = mclp(city, 2, 0.5)
    assert (nothing.coverage, nothing.proven) == (0, True)
    for threshold, busy, name in ((0, 0.5, "threshold"), (8, 1, "busy_fraction"), (8, -0.1, "busy")):
        refused(name, mexclp, city, 2, threshold, busy)


@pytest.mark.parametrize("busy", [0.0, 0.5])
def test_stopped_early_it_says_how_much_more_is_possible(busy):
    city = plane_city(100, 400, 0)
    stopped, found = mexclp(city, 20, 2.5, busy, time_limit=1e-9), mexclp(city, 20, 2.5, busy)
    assert found.gap == 0
    assert (1 - 1 / np.e) * found.coverage <= stopped.coverage <= found.coverage + 1e-9  # greedy: Nemhauser et al. 1978
    assert stopped.upper_bound >= found.coverage
    assert stopped.gap == stopped.upper_bound - stopped.coverage
