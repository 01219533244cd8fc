"""Plans by the hour: against brute force, and what they promise."""

from collections import Counter
from itertools import pairwise, product

import numpy as np
import pytest
from refusals import refused

import emsopt as eo
from emsopt.city.deployment_space import DeploymentSpace
from emsopt.planning import _plan_search
from emsopt.planning.day_plan import hourly_plan

TOWN = eo.datasets.grid_city(n_sites=5, units=2, rng=1, size=4)
SPACES = {"one each": {}, "several, one pinned": {"colocation": True, "pinned": [1]}, "some closed": {"closed": [0]}}


def shifted(city, hours, strength=2.0, rng=0):
    """Cities whose demand wanders at random from hour to hour."""
    rng = np.random.default_rng(rng)
    rates = city.arrival_rates * np.exp(strength * rng.standard_normal((hours, city.n_atoms)))
    return [city.replace(arrival_rates=row / row.sum() * rng.uniform(0.3, 1.5)) for row in rates]


def distances(rows, groups):
    """Units that differ between any two deployments."""
    counts = [Counter(groups[row].tolist()) for row in rows]
    return np.array([[(mine - theirs).total() for theirs in counts] for mine in counts])


def test_searched_plans_come_close_to_the_proven_one(monkeypatch):
    """A selection of candidates, where all deployments are known to compare with."""
    cities = shifted(eo.datasets.grid_city(n_sites=10, units=4, rng=8, size=6), 6, strength=1, rng=9)
    best = hourly_plan(cities, 4, 1, "approximate")
    monkeypatch.setattr(_plan_search, "MOST_STATES", 0)
    found = hourly_plan(cities, 4, 1, "approximate", rng=0)
    assert (best.proven, found.proven) == (True, False)
    assert np.isnan(found.lower_bound)
    assert "not proven" in found.message
    assert best.value - 1e-7 <= found.value <= best.value * 1.005
    assert found.moves.max() <= 1
    assert np.array_equal(found.sites, hourly_plan(cities, 4, 1, "approximate", rng=0).sites)


def test_what_cannot_be_planned_is_refused():
    for cities, options, words in (
        ([], {}, "at least one City"),
        (TOWN, {}, "at least one City"),
        ([TOWN, 3], {}, r"`cities\[1\]` must be an emsopt.City; got int"),
        ([TOWN, eo.datasets.grid_city(n_sites=6, units=2, rng=1)], {}, "same sites"),
        ([TOWN, TOWN.replace(travel_times=TOWN.travel_times[:1].repeat(TOWN.n_sites, axis=0))], {}, "interchangeable"),
        ([TOWN], {"moves": -1}, "moves"),
        ([TOWN], {"units": 9}, "do not fit"),
        ([TOWN], {"evaluator": "simulation"}, "must be 'exact' or 'approximate'"),
        ([TOWN], {"progress": 3}, "progress"),
    ):
        refused(words, hourly_plan, cities, **{"units": 2, "moves": 1} | options)


def test_the_list_of_changes_leads_from_one_hour_to_the_next_and_pinned_sites_stay():
    cities = shifted(eo.datasets.grid_city(n_sites=8, units=3, rng=4, size=5), 6, rng=6)
    space = DeploymentSpace(cities[0], 3, pinned=[2], closed=[0, 5])
    result = hourly_plan(dict(zip("abcdef", cities, strict=True)), space, 2)
    changes = result.changes()
    assert len(changes) == result.moves.sum() > 0
    names = [set(text.split("; ")) for text in result.to_frame()["sites"]]
    for k, label in enumerate("abcdef"):
        mine = changes[changes["hour"] == label]
        assert names[k] == (names[k - 1] - set(mine["from"])) | set(mine["to"])
    assert (result.sites == 2).any(axis=1).all()
    assert not np.isin(result.sites, [0, 5]).any()


def test_moves_are_few_between_other_places_and_short():
    assert hourly_plan([TOWN] * 5, 2, 2).moves.sum() == 0
    # St. Paul's stations 8, 9 and 23 are listed twice; a unit on either place is the same.
    city = eo.datasets.load_st_paul()
    result = hourly_plan([city.scaled(x) for x in (0.5, 2.0)], 3, 1)
    groups = city.twin_groups[result.sites]
    for before, after, moved in zip(groups, np.roll(groups, -1, axis=0), result.moves[::-1], strict=True):
        assert moved == distances([[0, 1, 2], [3, 4, 5]], np.r_[before, after])[0, 1]
    city = TOWN.replace(site_names=list("abcde"), site_locations=[[0, 0], [1, 0], [9, 0], [8, 0], [5, 5]])
    assert _plan_search.moves_between(np.array([0, 2]), np.array([1, 3]), city) == [(0, 1), (2, 3)]


def test_too_many_parts_leave_a_gap_that_is_said(monkeypatch):
    cities = shifted(TOWN, 4, strength=4)
    best = hourly_plan(cities, 2, 1)
    monkeypatch.setattr(_plan_search, "MOST_PARTS", 0)
    result = hourly_plan(cities, 2, 1)
    assert (best.proven, result.proven) == (True, False)
    assert result.lower_bound <= best.value <= result.value + 1e-9
    assert "within" in result.message


@pytest.mark.parametrize("which", SPACES)
def test_a_plan_is_the_best_sequence_of_deployments(which):
    """Brute force over all sequences of three hours, each deployment evaluated by itself."""
    cities, space = shifted(TOWN, 3, rng=5), DeploymentSpace(TOWN, 2, **SPACES[which])
    evaluator, metric = ("exact", ("late", 4.0)) if which == "some closed" else ("approximate", "mean_response")
    rows = space.listing()
    values = np.array([[eo.Objective(city, space, evaluator, metric)(row) for row in rows] for city in cities])
    weights = np.array([city.total_rate for city in cities])
    weights = weights / weights.sum()
    apart = distances(rows, TOWN.twin_groups)
    for most in (0, 1, 2):
        best = min(
            sum(weights[h] * values[h, s] for h, s in enumerate(walk))
            for walk in product(range(len(rows)), repeat=3)
            if all(apart[a, b] <= most for a, b in pairwise([*walk, walk[0]]))
        )
        result = hourly_plan(cities, space, most, evaluator, metric=metric)
        assert result.proven
        assert result.value == pytest.approx(best, abs=1e-7)
        assert result.value == pytest.approx(result.weights @ result.values)
        assert result.moves.max() <= most
        assert result.lower_bound <= result.value + 1e-9
        assert result.free_value - 1e-9 <= result.value <= result.fixed_value + 1e-9
        assert most or result.value == pytest.approx(result.fixed_value, abs=1e-7)
    assert result.value == pytest.approx(result.free_value, abs=1e-7)  # two units, two moves: no limit
