"""The Auckland case: its figures and roads, searches and compliance tables judged by its simulation, and paired runs."""

import numpy as np
import pytest
from refusals import refused

import emsopt as eo
from emsopt.operations import OperationsObjective, Policy, System, best_table, compare, simulate

SYSTEM, SITES = eo.datasets.load_auckland()
SPACE = eo.DeploymentSpace(SYSTEM.city, 16, colocation=5)
RULE = Policy(coverage=7.0, busy=0.2, patience=20)


def test_figures_of_the_case():
    assert SYSTEM.city.total_rate == pytest.approx(280 / 24)
    assert [priority.share for priority in SYSTEM.priorities] == [0.57, 0.245, 0.185]
    assert np.bincount(SITES, minlength=14).tolist() == [1, 1, 2, 2, 0, 1, 2, 0, 2, 1, 2, 1, 0, 1]
    assert SYSTEM.minutes[0].max() < 120


def test_values_are_those_of_simulations_and_are_counted():
    objective = OperationsObjective(SYSTEM, SPACE, calls=3_000, rng=4)
    moved = [*SITES[:-1], 4]
    values = objective.values([SITES, moved])
    expected = [simulate(SYSTEM, sites, calls=3_000, rng=4).late_share for sites in (SITES, moved)]
    assert (values.tolist(), objective(SITES), objective.evaluations) == (expected, expected[0], 3)
    assert not objective.noisy
    free = OperationsObjective(SYSTEM, SPACE, calls=3_000)
    assert free.noisy
    assert free.with_seed(4)(SITES) == expected[0]


def test_costs_are_late_shares():
    """A unit 7 min away is late for no call; 8 min, for those of high and medium priority: 0.57 + 0.245 of all."""
    costs, minutes = OperationsObjective(SYSTEM, SPACE).costs, SYSTEM.city.travel_times + 50 / 60
    assert (costs[minutes < 8] == 0).all()
    assert np.allclose(costs[(minutes >= 8) & (minutes * 1.43 < 20)], 0.815)
    assert np.allclose(costs[minutes > 20], 1)
    refused("options", OperationsObjective, SYSTEM, SPACE, trace=3)


@pytest.mark.parametrize("method", ["gp-pm", "local"])
def test_searches_run_and_resume(method, tmp_path):
    def search(budget, policy=None, **options):
        objective = OperationsObjective(SYSTEM, SPACE, calls=2_000, rng=1, policy=policy)
        return eo.minimize(objective, method, budget=budget, rng=0, **options)

    file = tmp_path / "run.jsonl"
    search(10, checkpoint=file)
    assert search(24, checkpoint=file).fun == search(24).fun
    refused("checkpoint", search, 24, Policy(on_the_way=False), checkpoint=file)  # another policy is another search


def test_intervals_of_differences_hold_the_truth_as_often_as_they_say():
    """The exact hypercube knows the difference of two deployments."""
    city = eo.City([2.0, 1.0], [[3.0, 8.0], [9.0, 2.0]], turnout_times=1.5, service_times=40)
    exact = [eo.evaluators.exact_hypercube(city, sites).mean_response for sites in ([0, 1], [0, 0])]
    found = [compare(System(city), [0, 1], [0, 0], capacity="loss", calls=10_000, rng=seed) for seed in range(60)]
    parts = [one.difference("mean_response") for one in found]
    inside = sum(part.low < exact[1] - exact[0] < part.high for part in parts)
    assert 53 <= inside <= 60  # binomial, 60 intervals of 95 %


def test_pairs_are_more_certain_than_single_runs():
    found = compare(SYSTEM, SITES, (SITES, RULE), calls=20_000, rng=0)
    late = found.difference()
    assert late.value == pytest.approx(found.b.late_share - found.a.late_share)
    singles = [np.diff(one.interval("late"))[0] for one in (found.a, found.b)]
    assert late.high - late.low < 0.7 * np.hypot(*singles)
    assert late.high < 0
    assert found.to_frame().loc["late", "difference"] == late.value
    same = compare(SYSTEM, (SITES, None), list(SITES), calls=1_000, rng=np.random.default_rng(1))
    assert same.difference("mean_response") == (0, 0, 0)
    refused(r"pairs such as \(sites, policy\); got a policy alone", compare, SYSTEM, SITES, RULE)
    refused("sites", compare, SYSTEM, SITES, (SITES, "none"))
    refused("measure", same.difference, "speed")


def test_searched_tables_are_better_on_their_own_calls():
    start = best_table(SYSTEM, SITES, steps=0)
    assert sorted(start.table[-1]) == sorted(SITES)
    assert all(set(few) <= set(many) for few, many in zip(start.table, start.table[1:], strict=False))
    found = best_table(SYSTEM, SITES, start, steps=40, calls=2_000, rng=3)
    seed = int(np.random.default_rng(3).integers(2**62))
    before, after = (simulate(SYSTEM, SITES, policy=rule, calls=2_000, rng=seed).late_share for rule in (start, found))
    assert after < before
    assert found.moves == 0
    refused("policy", best_table, SYSTEM, SITES, "closest")
    refused("needs `coverage`", Policy, "coverage")
    refused("needs `table`", Policy, instant=True)
    refused("patience", Policy, coverage=7, patience=0)
