"""The best deployment for a sum of money, against all affordable ones evaluated one by one."""

from itertools import combinations, combinations_with_replacement

import numpy as np
import pytest

import emsopt as eo
from emsopt.errors import InputError
from emsopt.planning import within_budget
from emsopt.planning.budget import Offer

TOWN = eo.datasets.grid_city(n_sites=7, units=3, rng=1)
PRICES = np.random.default_rng(0).integers(2, 8, 7).astype(float)


def cheapest(budget, unit_cost, start=(), most=1):
    """Return the best affordable deployment and its value by trying all."""
    found = []
    for p in range(max(1, len(start)), 7):
        for x in combinations_with_replacement(range(7), p):
            bought = sum(PRICES[k] for k in set(x) - set(start)) + unit_cost * max(p - len(start), 0)
            if bought <= budget and max(map(x.count, x)) <= most:
                found.append((eo.evaluators.approximate_hypercube(TOWN, x).mean_response, x))
    return min(found)


@pytest.mark.parametrize("enumerated", [20_000, 3])
@pytest.mark.parametrize(
    ("budget", "unit_cost", "start", "most"), [(15, 2, (), 1), (9, 1.5, (0, 3), 2), (0, 1, (2, 5), 1)]
)
def test_nothing_affordable_is_better(budget, unit_cost, start, most, enumerated, monkeypatch):
    monkeypatch.setattr("emsopt.planning.budget.ENUMERATED", enumerated)
    options = {"start": start, "colocation": most, "evaluator": "approximate"}
    plan = within_budget(TOWN, budget, station_cost=PRICES, unit_cost=unit_cost, **options)
    value, sites = cheapest(budget, unit_cost, start, most)
    assert plan.value == pytest.approx(value)
    assert plan.sites.tolist() == list(sites)
    assert plan.cost <= budget
    assert set(plan.built) == {TOWN.site_names[k] for k in set(sites) - set(start)}
    assert plan.by_units.loc[len(sites), "value"] == plan.by_units["value"].min() == plan.value


def test_a_search_is_said_and_proves_nothing(monkeypatch):
    options = {"station_cost": PRICES, "unit_cost": 2, "evaluator": "approximate"}
    proven = within_budget(TOWN, 15, **options)
    monkeypatch.setattr("emsopt.planning.budget.ENUMERATED", 3)
    searched = within_budget(TOWN, 15, **options)
    assert (proven.found, searched.found) == ("proven by enumeration", "swap search")
    assert (searched.by_units["value"] >= proven.by_units["value"].reindex(searched.by_units.index) - 1e-12).all()


@pytest.mark.parametrize("enumerated", [20_000, 3])
def test_fleets_that_a_queue_outgrows_are_left_out(enumerated, monkeypatch):
    monkeypatch.setattr("emsopt.planning.budget.ENUMERATED", enumerated)
    busy = TOWN.with_offered_load(0.9, units=3)  # 2.7 units of work
    plan = within_budget(busy, 25, station_cost=PRICES, unit_cost=2, start=[0, 3], capacity="queue", rng=0)
    assert plan.by_units.index.min() == 3
    rows = [x for p in range(3, 8) for x in combinations(range(7), p)]
    paid = [x for x in rows if sum(PRICES[k] for k in set(x) - {0, 3}) + 2 * (len(x) - 2) <= 25]
    best = min(eo.evaluators.exact_hypercube(busy, x, capacity="queue").mean_response for x in paid)
    assert plan.value == pytest.approx(best)
    with pytest.raises(InputError, match="at least 3 units"):
        within_budget(busy, 1, station_cost=PRICES, unit_cost=2, start=[0, 3], capacity="queue")


def test_where_nothing_can_be_built_nothing_is():
    prices = np.where(np.arange(7) < 3, 1.0, np.inf)
    plan = within_budget(TOWN, 100, station_cost=prices, unit_cost=1)
    possible = [x for p in (1, 2, 3) for x in combinations(range(3), p)]
    assert plan.value == pytest.approx(min(eo.evaluators.exact_hypercube(TOWN, x).mean_response for x in possible))
    assert plan.cost == 2 * len(plan.sites)


def test_stations_of_the_start_need_not_be_kept():
    plan = within_budget(TOWN, PRICES.max(), station_cost=PRICES, unit_cost=1e9, start=[0, 0], colocation=2)
    assert len(plan.sites) == 2
    assert plan.value <= eo.evaluators.exact_hypercube(TOWN, [0, 0]).mean_response


def test_twins_are_paid_for_once():
    city = eo.datasets.load_st_paul()
    twins = np.flatnonzero(city.twin_groups == np.bincount(city.twin_groups).argmax())
    prices = np.where(np.isin(np.arange(city.n_sites), twins), 3.0, np.inf)
    plan = within_budget(city, 3, station_cost=prices, unit_cost=0, evaluator="approximate")
    assert plan.cost == 3
    assert set(plan.sites) <= set(twins)
    assert len(plan.built) == 1


def test_a_dear_station_for_two_units_does_not_make_sizes_hard_to_list():
    prices = np.r_[np.ones(39), 9.5]
    places = np.split(np.arange(41), np.arange(1, 40))  # the last holds two units
    offer = Offer(places, prices, np.empty(0, int), unit_cost=0.0, owned=0, money=9.6)
    assert [next(offer.listing(p), None) is not None for p in (9, 10, 11)] == [True, False, False]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"budget": 1}, "`budget` must pay for at least one unit"),
        ({"budget": -1}, "`budget`"),
        ({"station_cost": [1, 2]}, "`station_cost` must be one number or one per site"),
        ({"station_cost": -1}, "`station_cost`"),
        ({"unit_cost": -1}, "`unit_cost`"),
        ({"evaluator": "simulation"}, "hides small gains"),
    ],
)
def test_bad_input(options, message):
    with pytest.raises(InputError, match=message):
        within_budget(TOWN, **({"budget": 12, "station_cost": 3, "unit_cost": 2} | options))
