"""Covering models, p-centre, maximum availability and double standard against every deployment of small cities."""

from itertools import combinations, combinations_with_replacement

import numpy as np
import pytest
from drawn import plane_city, tied_city
from refusals import refused

import emsopt as eo
from emsopt.evaluators import _cover_search, double_standard, malp, mclp, mclp_of_points, mexclp, p_center, set_cover
from emsopt.evaluators.metrics import metric_costs


def drawn(seed):
    """A small city (on a plane, with few different times, or whose sites are its atoms), a threshold, and a space.

    In some spaces units may share sites, sites are pinned or closed. The generator is returned for further draws.
    """
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(2, 8)), int(rng.integers(2, 13))
    city, threshold = plane_city(n, m, rng), float(rng.uniform(3, 14))
    if seed % 3 == 1:
        city, threshold = tied_city(n, m, rng), float(rng.integers(1, 4))
    if seed % 3 == 2:
        places = rng.uniform(0, 20, (n, 2))
        city = eo.City(rng.integers(1, 9, n), eo.city.travel.plane_km(places, places), 1.0, 30.0)
    units, order = int(rng.integers(1, min(n, 5) + 1)), rng.permutation(n)
    pinned = order[: rng.integers(0, units + 1)] if seed % 2 else []
    closed = order[units:] if seed % 8 == 3 else []
    city = city.with_offered_load(float(rng.uniform(0.05, 0.6)), units)
    space = eo.DeploymentSpace(city, units, colocation=bool(seed % 4), pinned=pinned, closed=closed)
    return city, threshold, space, rng


def every(space):
    """All deployments of a space, as lists of sites, twins apart."""
    choose = combinations_with_replacement if space.colocation else combinations
    return [list(row) for row in choose(range(space.city.n_sites), space.units) if row in space]


def covered(city, sites, threshold, busy):
    """Expected share of calls reached in time: of the free units, the most probable to be in time answers."""
    in_time = -np.sort(metric_costs(city, ("late", threshold))[sites] - 1, axis=0)
    chance = (1 - busy) * np.power(busy, np.arange(len(sites)))
    return city.demand_shares @ (chance @ in_time)


@pytest.mark.parametrize("varying", [False, True])
@pytest.mark.parametrize("most_busy", [0.0, 0.95])
def test_mclp_and_mexclp_by_brute_force(most_busy, varying):
    """MCLP is the case of units that are never busy. Travel times may vary, by pair or alike."""
    for seed in range(48):
        city, threshold, space, rng = drawn(seed)
        if varying:
            city = city.replace(travel_cv=rng.uniform(0, 0.8, city.travel_times.shape) if seed % 5 else 0.4)
            space = eo.DeploymentSpace.of(city, space)
        busy = float(rng.uniform(0, most_busy))
        found = mexclp(city, space, threshold, busy) if most_busy else mclp(city, space, threshold)
        best = max(covered(city, row, threshold, busy) for row in every(space))
        assert (found.coverage, found.gap, found.proven) == (pytest.approx(best, abs=1e-9), 0, True)
        assert covered(city, found.sites, threshold, busy) == pytest.approx(best, abs=1e-9)
        assert found.sites in space
        in_time = 1 - metric_costs(city, ("late", threshold))[found.sites]
        np.testing.assert_allclose(found.reached_by, in_time.sum(axis=0))


def test_thresholds_busy_fractions_and_where_busy_units_gather():
    city = eo.City([1.0], [[4.0]], 1.0, 30.0)
    assert (mclp(city, 1, 5.0).coverage, mclp(city, 1, 5.0 + 1e-9).coverage) == (0, 1)
    city = plane_city(6, 15, 0)
    calm = city.with_offered_load(0.37, 3)
    assert (mexclp(calm, 3, 8.0).busy_fraction, mexclp(calm, 3, 8.0, 0.2).busy_fraction) == (pytest.approx(0.37), 0.2)
    assert malp(calm, 3, 8.0).busy_fraction == pytest.approx(0.37)
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


@pytest.mark.parametrize("busy", [0.0, 0.5])
def test_stopped_early_it_says_how_much_more_is_possible(busy):
    city = plane_city(100, 400, 0)
    stopped, found = mexclp(city, 20, 2.5, busy, time_limit=1e-9), mexclp(city, 20, 2.5, busy)
    assert found.gap == 0
    assert (1 - 1 / np.e) * found.coverage <= stopped.coverage <= found.coverage + 1e-9  # greedy: Nemhauser et al. 1978
    assert stopped.upper_bound >= found.coverage
    assert stopped.gap == stopped.upper_bound - stopped.coverage
    city = plane_city(60, 300, 0)
    stopped, found = set_cover(city, 8.0, time_limit=1e-9), set_cover(city, 8.0)
    assert found.proven
    assert stopped.units - stopped.gap <= found.units <= stopped.units


def test_the_bound_of_a_program_that_is_stopped_is_used(monkeypatch):
    solve, city = _cover_search.solve_integer_program, plane_city(100, 400, 0)
    monkeypatch.setattr(_cover_search, "solve_integer_program", lambda *given: (*solve(*given)[:2], False))
    assert mexclp(city, 20, 2.5, 0.0).gap == pytest.approx(0, abs=1e-9)


def test_set_cover_by_brute_force():
    impossible = 0
    for seed in range(60):
        city, threshold, *_ = drawn(seed)
        near = (city.response_times < threshold)[:, city.arrival_rates > 0]
        if not near.any(axis=0).all():
            impossible += 1
            refused("threshold", set_cover, city, threshold)
            continue
        subsets = [list(s) for k in range(1, city.n_sites + 1) for s in combinations(range(city.n_sites), k)]
        covers = [sites for sites in subsets if near[sites].any(axis=0).all()]
        covers = [sites for sites in covers if len(sites) == len(covers[0])]
        for backup in (False, True):
            found = set_cover(city, threshold, backup)
            assert (found.proven, found.gap, found.units) == (True, 0, len(covers[0]))
            assert found.sites.tolist() in covers
        assert found.backup == max((near[sites].sum(axis=0) > 1).sum() for sites in covers)
    assert 5 < impossible < 40


def test_p_center_by_brute_force():
    for seed in range(60):
        city, _, space, _ = drawn(seed)
        times = city.response_times[:, city.arrival_rates > 0]
        found = p_center(city, space)
        assert found.longest_response == min(times[sites].min(axis=0).max() for sites in every(space))
        assert (found.proven, found.sites in space) == (True, True)


@pytest.mark.parametrize("local", [False, True])
def test_malp_by_brute_force(local):
    for seed in range(40):
        city, threshold, space, rng = drawn(seed)
        reliability, q = float(rng.uniform(0.3, 0.97)), float(rng.uniform(0.05, 0.8))
        times, needed = city.response_times, np.empty(city.n_atoms)
        for j in range(city.n_atoms):
            work = city.arrival_rates[times[times[:, j].argmin()] < threshold].sum() / 60 * 30
            busy = lambda n, work=work, q=q: min(work / n, 1) if local else q
            needed[j] = next(n for n in range(1, 999) if 1 - busy(n) ** n >= reliability)
        found = malp(city, space, threshold, reliability, "local" if local else q)
        best = max(city.demand_shares @ ((times[sites] < threshold).sum(axis=0) >= needed) for sites in every(space))
        assert found.coverage == pytest.approx(best, abs=1e-9)
        assert (found.proven, found.sites in space) == (True, True)


def test_double_standard_by_brute_force():
    impossible = 0
    for seed in range(80):
        city, threshold, space, rng = drawn(seed)
        outer, share = threshold + float(rng.uniform(0, 6)), float(rng.uniform(0, 1))
        times, calls, twice = city.response_times, city.arrival_rates > 0, []
        for sites in every(space):
            near = (times[sites] < threshold).sum(axis=0)
            reached = (times[sites][:, calls] < outer).any(axis=0).all()
            if reached and city.demand_shares @ (near > 0) >= share - 1e-12:
                twice.append(city.demand_shares @ (near > 1))
        if not twice:
            impossible += 1
            refused("exists", double_standard, city, space, threshold, outer, share)
            continue
        found = double_standard(city, space, threshold, outer, share)
        assert found.coverage == pytest.approx(max(twice), abs=1e-9)
        assert (found.proven, found.sites in space) == (True, True)
    assert 20 < impossible < 65


@pytest.mark.parametrize("geographic", [False, True])
def test_covering_of_points_is_that_of_their_distances(geographic):
    rng = np.random.default_rng(0)
    sites, atoms, calls = rng.uniform(0, 20, (40, 2)), rng.uniform(0, 20, (90, 2)), rng.integers(0, 9, 90)
    distances = eo.city.travel.plane_km(sites, atoms)
    if geographic:
        sites, atoms = sites / 100 + [179.9, 60], atoms / 100 + [179.9, 60]
        distances = eo.city.travel.great_circle_km(sites, atoms)
    for units in (1, 4, 9):
        found = mclp_of_points(sites, atoms, calls, units, 2.5, geographic=geographic)
        expected = mclp(eo.City(calls, distances, 0.0, 30.0), units, 2.5).coverage
        assert (found.coverage, found.proven) == (pytest.approx(expected, abs=1e-12), True)
        np.testing.assert_array_equal(found.reached_by, (distances[found.sites] < 2.5).sum(axis=0))
        assert len(set(found.sites)) == units


def test_bad_input_is_refused():
    city, one = plane_city(12, 30, 0), ([[0, 0]], [[0, 0]])
    for message, model, *given in (
        ("threshold", mexclp, city, 2, 0, 0.5),
        ("busy_fraction", mexclp, city, 2, 8, 1),
        ("busy", mexclp, city, 2, 8, -0.1),
        ("threshold", set_cover, city, 0),
        ("threshold", set_cover, city, 1.0),
        ("do not fit", p_center, city, 13),
        ("reliability", malp, city, 3, 8, 0),
        ("busy_fraction", malp, city, 3, 8, 0.9, 1.0),
        ("busy_fraction", malp, city, 3, 8, 0.9, "everywhere"),
        ("outer", double_standard, city, 3, 8.0, 7.0),
        ("share", double_standard, city, 3, 8.0, 15.0, 1.1),
        ("exists", double_standard, city, 1, 1.5, 1.5),
        ("units", mclp_of_points, *one, [1], 2, 1.0),
        ("demand", mclp_of_points, *one, [0], 1, 1.0),
        ("site_locations", mclp_of_points, [[0, 99]], [[0, 0]], [1], 1, 1.0),
    ):
        refused(message, model, *given)
    refused("time_limit", set_cover, city, 8, time_limit=0)
