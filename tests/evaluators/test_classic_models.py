"""Set covering, p-centre, maximum availability and double standard against every deployment of small cities."""

from itertools import combinations, combinations_with_replacement

import numpy as np
import pytest
from drawn import plane_city
from refusals import refused

import emsopt as eo
from emsopt.evaluators import double_standard, malp, mclp, mclp_of_points, p_center, set_cover


def small_city(seed):
    """A city on a plane, one with few different times, twins and atoms without calls, or one whose sites are its atoms."""
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(2, 9)), int(rng.integers(2, 15))
    if seed % 3 == 0:
        times = eo.city.travel.plane_km(rng.uniform(0, 20, (n, 2)), rng.uniform(0, 20, (m, 2)))
        return eo.City(rng.uniform(size=m), times, 1.75, 30.0), float(rng.uniform(4, 14))
    if seed % 3 == 1:
        times, rates = rng.integers(0, 4, (n, m)).astype(float), rng.integers(0, 3, m)
        times[-1], rates[0] = times[0], 1
        return eo.City(rates, times, 0.0, 30.0), float(rng.integers(1, 4))
    places = rng.uniform(0, 20, (n, 2))
    return eo.City(rng.integers(1, 9, n), eo.city.travel.plane_km(places, places), 1.0, 30.0), float(rng.uniform(4, 14))


def every(space):
    """All deployments of a space, as lists of sites, twins apart."""
    choose = combinations_with_replacement if space.colocation else combinations
    rows = choose(range(space.city.n_sites), space.units)
    return [list(row) for row in rows if set(space.pinned) <= set(row)]


def drawn(seed):
    """A small city, a threshold, a generator and a space of few units, for some seeds with a pinned site."""
    city, threshold = small_city(seed)
    rng = np.random.default_rng([seed, 1])
    units, pinned = int(rng.integers(1, min(city.n_sites, 5) + 1)), [int(rng.integers(city.n_sites))][: seed % 2]
    city = city.with_offered_load(float(rng.uniform(0.05, 0.6)), units)
    return city, threshold, rng, eo.DeploymentSpace(city, units, colocation=bool(seed % 4), pinned=pinned)


def test_set_cover_by_brute_force():
    impossible = 0
    for seed in range(60):
        city, threshold = small_city(seed)
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


def test_a_set_cover_stopped_early_has_a_bound():
    city = plane_city(60, 300, 0)
    stopped, found = set_cover(city, 8.0, time_limit=1e-9), set_cover(city, 8.0)
    assert found.proven
    assert stopped.units - stopped.gap <= found.units <= stopped.units


def test_p_center_by_brute_force():
    for seed in range(60):
        city, _, _, space = drawn(seed)
        times = city.response_times[:, city.arrival_rates > 0]
        found = p_center(city, space)
        assert found.longest_response == min(times[sites].min(axis=0).max() for sites in every(space))
        assert found.proven
        assert found.sites in space


@pytest.mark.parametrize("local", [False, True])
def test_malp_by_brute_force(local):
    for seed in range(40):
        city, threshold, rng, space = drawn(seed)
        reliability, q = float(rng.uniform(0.3, 0.97)), float(rng.uniform(0.05, 0.8))
        times, needed = city.response_times, np.empty(city.n_atoms)
        for j in range(city.n_atoms):
            work = city.arrival_rates[times[times[:, j].argmin()] < threshold].sum() / 60 * 30
            busy = lambda n, work=work, q=q: min(work / n, 1) if local else q
            needed[j] = next(n for n in range(1, 999) if 1 - busy(n) ** n >= reliability)
        found = malp(city, space, threshold, reliability, "local" if local else q)
        best = max(city.demand_shares @ ((times[sites] < threshold).sum(axis=0) >= needed) for sites in every(space))
        assert found.coverage == pytest.approx(best, abs=1e-9)
        assert found.proven
        assert found.sites in space


def test_malp_asks_for_more_units_where_demand_is():
    """With 0.5 erlangs around each of two places and none elsewhere; by default all units are equally busy."""
    city = eo.City([3, 1e-6], [[1, 30], [30, 1]], 0.0, 20.0)
    assert malp(city, 4, 8, 0.95, "local").needed.tolist() == [3, 1]  # (1 / n)^n <= 0.05 from n = 3 on
    assert malp(city, 4, 8, 0.95).needed.tolist() == [3, 3]  # 0.25^n <= 0.05 from n = 3 on
    assert malp(city, 4, 8, 0.95).busy_fraction == pytest.approx(0.25)


def test_double_standard_by_brute_force():
    impossible = 0
    for seed in range(80):
        city, threshold, rng, space = drawn(seed)
        outer, share = threshold + float(rng.uniform(0, 6)), float(rng.uniform(0, 1))
        times, calls = city.response_times, city.arrival_rates > 0
        good = [
            (times[sites] < threshold).sum(axis=0)
            for sites in every(space)
            if (times[sites][:, calls] < outer).any(axis=0).all()
            and city.demand_shares @ (times[sites] < threshold).any(axis=0) >= share - 1e-12
        ]
        if not good:
            impossible += 1
            refused("exists", double_standard, city, space, threshold, outer, share)
            continue
        found = double_standard(city, space, threshold, outer, share)
        assert found.coverage == pytest.approx(max(city.demand_shares @ (near > 1) for near in good), abs=1e-9)
        assert found.proven
        assert found.sites in space
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


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda city: set_cover(city, 0), "threshold"),
        (lambda city: set_cover(city, 8, time_limit=0), "time_limit"),
        (lambda city: set_cover(city, 1.0), "threshold"),
        (lambda city: p_center(city, 13), "do not fit"),
        (lambda city: malp(city, 3, reliability=0), "reliability"),
        (lambda city: malp(city, 3, busy_fraction=1.0), "busy_fraction"),
        (lambda city: malp(city, 3, busy_fraction="everywhere"), "busy_fraction"),
        (lambda city: double_standard(city, 3, 8.0, 7.0), "outer"),
        (lambda city: double_standard(city, 3, share=1.1), "share"),
        (lambda city: double_standard(city, 1, 1.5, 1.5), "exists"),
        (lambda city: mclp_of_points([[0, 0]], [[0, 0]], [1], 2, 1.0), "units"),
        (lambda city: mclp_of_points([[0, 0]], [[0, 0]], [0], 1, 1.0), "demand"),
        (lambda city: mclp_of_points([[0, 99]], [[0, 0]], [1], 1, 1.0), "site_locations"),
    ],
)
def test_bad_input_is_refused(call, message):
    refused(message, call, plane_city(12, 30, 0))
