"""Fleets: what the load needs, by the closed form of Erlang, and curves, by all deployments evaluated one by one."""

from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from drawn import erlang_b
from refusals import refused
from synthetic_log import synthetic_log

import emsopt as eo
from emsopt.planning import fleet, fleet_curve, units_needed

TOWN = eo.datasets.grid_city(n_sites=7, units=3, rng=1)


def value(sites, metric="mean_response", city=TOWN):
    evaluation = eo.evaluators.exact_hypercube(city, sites)
    return evaluation.mean_response if metric == "mean_response" else evaluation.late_fraction(metric[1])


def best(p, **options):
    return min(value(x, **options) for x in combinations(range(7), p))


@dataclass
class Busier:
    """A city whose calls may be up to 60 % more or fewer; every other draw is the estimate."""

    weeks: float = 4.0

    def city(self):
        return TOWN

    def draws(self, n, rng=None, *, vary=(), more=1.0):
        return (TOWN.scaled(0.4 + 0.3 * (k % 5)) for k in range(n))


@pytest.mark.parametrize("metric", ["mean_response", ("late", 6.0)])
def test_each_fleet_is_the_best_of_all(metric, monkeypatch):
    wanted = [best(p, metric=metric) for p in range(1, 5)]
    curve = fleet_curve(TOWN, range(1, 5), metric=metric)
    assert (curve.values, [value(x, metric) for x in curve.sites]) == (pytest.approx(wanted), pytest.approx(wanted))
    assert curve.gains[1:] == pytest.approx(-np.diff(wanted))
    monkeypatch.setattr(fleet, "MOST_ENUMERATED", 0)
    searched = fleet_curve(TOWN, [4, 2, 3], metric=metric, budget=30)
    assert (searched.units.tolist(), searched.values) == ([2, 3, 4], pytest.approx(wanted[1:]))
    assert searched.found[0].startswith("local+")


def test_gains_are_per_unit_and_units_of_the_start_stay():
    assert fleet_curve(TOWN, [2, 4]).gains[1] == pytest.approx((best(2) - best(4)) / 2)
    curve = fleet_curve(TOWN, [2, 4], start=[5, 0])
    sites = (0, 5)
    for _ in range(2):
        sites = min((tuple(sorted((*sites, k))) for k in set(range(7)) - set(sites)), key=value)
    assert (curve.sites[0].tolist(), curve.sites[1].tolist()) == ([0, 5], list(sites))
    together = fleet_curve(TOWN, start=[0, 0, 0], colocation=2)
    assert (together.units.tolist(), np.bincount(together.sites[-1]).tolist()[0]) == ([3, 4, 5, 6, 7, 8], 3)
    assert np.bincount(together.sites[-1])[1:].max() <= 2


def test_the_smallest_fleet_meets_the_standard_as_often_as_asked():
    curve = fleet_curve(Busier(), range(2, 6), draws=100)
    cities = list(Busier().draws(5))
    for k, sites in enumerate(curve.sites):
        levels = [value(sites, city=city) for city in cities]
        standard = np.mean(sorted(levels)[2:4])  # between the third and the fourth of five: met by 60 %
        assert curve.probabilities(standard)[k] == pytest.approx(0.6)
        assert curve.smallest(standard) is None or curve.smallest(standard) > curve.units[k]
        assert curve.smallest(max(levels) + 1e-9) <= curve.units[k]
    table = curve.to_frame(standard)
    assert (table["low"] < table["high"]).all()
    assert table["meets"].is_monotonic_increasing
    known = fleet_curve(TOWN, range(2, 6))
    assert known.smallest(best(4) + 1e-9) == 4
    assert known.smallest(0.0) is None


def test_a_calibrated_fit_gives_intervals():
    stations = pd.DataFrame({"name": ["West", "Mid", "East"], "lon": [0.0, 0.05, 0.1], "lat": [45.0, 45.0, 45.0]})
    fit = eo.calls.calibrate(synthetic_log(stations, calls_per_day=40, days=14, rng=0), stations)
    curve = fleet_curve(fit, [1, 2, 3], draws=100, colocation=True)
    assert curve.draws.shape == (100, 3)
    same = eo.planning.compare(fit, {"one": curve.sites[0], "two": curve.sites[1]}, draws=100, rng=0)
    assert curve.draws[:, 1].mean() == pytest.approx(same.values[:, 1].mean(), rel=0.05)


def test_bad_input_is_refused():
    for words, city, units, options in (
        ("`units` must be fleet sizes", TOWN, None, {}),
        ("`units` must be fleet sizes", TOWN, [], {}),
        ("`units` must be a whole number", TOWN, [1], {"start": [0, 1]}),
        ("do not fit", TOWN, [9], {}),
        ("do not fit", TOWN, [9], {"start": [0]}),
        ("hides differences", TOWN, [2], {"evaluator": "simulation"}),
        ("needs a fit", TOWN, [2], {"cell_km": 1}),
        ("`city` must be an emsopt.City", 3, [2], {}),
    ):
        refused(words, fleet_curve, city, units, **options)


@pytest.mark.parametrize("load", [0.01, 0.5, 2.0, 8.0, 20.0])
def test_one_unit_less_would_not_do(load):
    city = TOWN.scaled(load / (TOWN.total_rate * TOWN.mean_service_time / 60))
    units = units_needed(city)
    enough = [(lost := erlang_b(p, load)) <= 0.01 and load * (1 - lost) / p <= 0.3 for p in range(1, units + 1)]
    assert enough == [False] * (units - 1) + [True]
