"""Enumeration, sweeps and local search against brute force."""

from itertools import combinations, combinations_with_replacement, product

import numpy as np
import pytest
from refusals import refused

import emsopt as eo
from emsopt.errors import InputError
from emsopt.evaluators import approximate_hypercube, evaluate_all, evaluate_near, exact_hypercube, p_median
from emsopt.optimizers import best_deployment, local_search
from emsopt.planning.sweeps import load_sweep, service_rate_sweep


@pytest.fixture(scope="module")
def city():
    return eo.datasets.grid_city(n_sites=9, units=3, load=0.5, rng=4)


@pytest.mark.parametrize("evaluator", ["approximate", "exact"])
def test_best_of_all_by_brute_force(city, evaluator):
    everything = evaluate_all(city, 3, evaluator)
    one = {"approximate": approximate_hypercube, "exact": exact_hypercube}[evaluator]
    values = {sites: one(city, sites).mean_response for sites in combinations(range(9), 3)}
    assert len(everything.values) == len(values) == 84
    assert everything.values.min() == pytest.approx(min(values.values()), abs=1e-8)
    assert tuple(everything.best_sites) == min(values, key=values.get)
    for sites, value in zip(everything.sites, everything.mean_response, strict=True):
        assert value == pytest.approx(values[tuple(sites)], abs=1e-7)


def test_colocation_pinned_and_closed_sites_by_brute_force(city):
    everything = evaluate_all(city, eo.DeploymentSpace(city, 3, colocation=True), "exact", metric=("late", 6.0))
    values = [exact_hypercube(city, s).late_fraction(6.0) for s in combinations_with_replacement(range(9), 3)]
    assert np.sort(everything.values) == pytest.approx(np.sort(values), abs=1e-9)
    space, seen = eo.DeploymentSpace(city, 3, pinned=[2], closed=[0, 5]), []
    for metric in ("mean_response", lambda e: e.percentile_90):
        everything = evaluate_all(city, space, "approximate", metric=metric, progress=lambda *given: seen.append(given))
        assert (everything.sites == 2).any(axis=1).all()
        assert not np.isin(everything.sites, [0, 5]).any()
        assert len(everything.values) == 15  # 2 more out of 6
        assert seen.pop() == (15, 15)
    mirrored = eo.City([1.0, 1.0], [[2.0, 5.0], [5.0, 2.0], [9.0, 9.0]], 1.0, 30.0)
    assert evaluate_all(mirrored, 1, "exact").ties.tolist() == [[0], [1]]


def test_alternatives_rank_and_differ(city):
    everything = evaluate_all(city, 3, "exact")
    table = everything.alternatives(6, threshold=7.0)
    assert table["value"].tolist() == pytest.approx(np.sort(everything.values)[:6].tolist())
    assert (table["gap"].iloc[0], table["moved_from"].iloc[0]) == (0, "")
    e = exact_hypercube(city, table["sites"].iloc[3])
    assert table["late_over_7_min"].iloc[3] == pytest.approx(e.late_fraction(7.0))
    assert table["max_utilization"].iloc[3] == pytest.approx(e.utilizations.max())
    best, other = set(table["sites"].iloc[0]), set(table["sites"].iloc[1])
    assert table["moved_from"].iloc[1] == ", ".join(city.site_names[k] for k in sorted(best - other))
    assert table["moved_to"].iloc[1] == ", ".join(city.site_names[k] for k in sorted(other - best))
    apart = everything.alternatives(4, apart=2)["sites"].tolist()
    assert all(len(set(a) - set(b)) >= 2 for a, b in combinations(apart, 2))


@pytest.mark.parametrize("moves", [0, 1, 2, 3])
def test_near_deployments_are_those_of_all_that_differ_in_few_units(city, moves):
    """Brute force: a deployment is k moves away if it lacks k of the given sites; pinned sites are kept."""
    objective = eo.Objective(city, eo.DeploymentSpace(city, 3, pinned=[4], closed=[8]))
    everything = evaluate_all(city, objective.space)
    near = evaluate_near(objective, [0, 4, 7], moves)
    away = np.array([3 - len({0, 4, 7} & set(row)) for row in everything.sites.tolist()])
    expected = dict(zip(map(tuple, everything.sites[away <= moves]), everything.values[away <= moves], strict=True))
    assert dict(zip(map(tuple, near.sites), near.values, strict=True)) == pytest.approx(expected, rel=1e-12)
    assert objective.evaluations == 0


def test_near_deployments_that_are_too_many_or_not_allowed_are_refused(city, monkeypatch):
    with pytest.raises(InputError):
        evaluate_near(eo.Objective(city, eo.DeploymentSpace(city, 3, closed=[8])), [0, 1, 8])
    monkeypatch.setattr("emsopt.evaluators.enumeration.MOST_DEPLOYMENTS", 10)
    refused(r"over 10 deployments.*Lower `moves`", evaluate_near, eo.Objective(city, 3), [0, 1, 2])


def test_local_search_finds_the_optimum():
    """On 4 small cities the swap search agrees with enumeration, colocation or not."""
    for seed, colocation in product(range(4), (False, True)):
        small = eo.datasets.grid_city(n_sites=10, units=4, load=0.6, rng=seed)
        objective = eo.Objective(small, eo.DeploymentSpace(small, 4, colocation=colocation), "approximate")
        run = local_search(objective, rng=0)
        assert run.nfev == objective.evaluations
        assert run.fun == pytest.approx(evaluate_all(small, objective.space, "approximate").values.min(), abs=1e-7)
        assert run.fun == pytest.approx(objective(run.x), abs=1e-12)
        assert run.history["best"].is_monotonic_decreasing
    assert best_deployment(objective).message == "proven by enumeration"
    large = eo.datasets.grid_city(n_sites=40, units=12, rng=0)
    objective = eo.Objective(large, 12, "approximate")
    run = best_deployment(objective)
    assert "proven" not in run.message
    assert run.fun <= objective(p_median(large, 12).sites)


@pytest.mark.parametrize(("evaluator", "seed"), [("approximate", 0), ("exact", 1)])
def test_load_moves_the_optimum_from_p_median_to_1_median(seed, evaluator):
    """Theorems 4 and 5 (the papers' Figure 5)."""
    city = eo.datasets.grid_city(n_sites=12, units=4, rng=seed)
    space = eo.DeploymentSpace(city, 4, colocation=True)
    light = evaluate_all(city.with_offered_load(1e-4, 4), space, evaluator)
    assert light.evaluation(p_median(city, 4).sites).mean_response == pytest.approx(light.values.min(), abs=1e-3)
    best = city.response_times[light.best_sites].min(axis=0) @ city.demand_shares
    assert best == pytest.approx(p_median(city, 4).objective, rel=1e-12)  # so it is a p-median optimum
    heavy = evaluate_all(city.with_offered_load(1e3, 4), space, evaluator)
    assert set(heavy.best_sites) == set(p_median(city, 1).sites)


def test_sweeps(city):
    table = load_sweep(city, 3, [0.01, 0.5, 2.0])
    assert table["optimum"].is_monotonic_increasing
    assert (table["optimum"] <= table["p_median"] + 1e-12).all()
    assert (table["lower_bound"] <= table["optimum"] + 1e-12).all()
    by_rate = service_rate_sweep(city, 3, [20, 60])
    assert by_rate["optimum"].loc[20] > by_rate["optimum"].loc[60]
