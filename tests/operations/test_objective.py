"""Searches judged by simulated operations."""

import numpy as np
import pytest
from refusals import refused

import emsopt as eo
from emsopt.operations import OperationsObjective, Policy, simulate

SYSTEM, SITES = eo.datasets.load_auckland()
SPACE = eo.DeploymentSpace(SYSTEM.city, 16, colocation=5)


def test_values_are_those_of_simulations_and_are_counted():
    objective = OperationsObjective(SYSTEM, SPACE, calls=3_000, rng=4)
    moved = [*SITES[:-1], 4]
    values = objective.values([SITES, moved])
    expected = [simulate(SYSTEM, sites, calls=3_000, rng=4).late_share for sites in (SITES, moved)]
    assert (values.tolist(), objective(SITES), objective.evaluations) == (expected, expected[0], 3)
    assert not objective.noisy
    free = OperationsObjective(SYSTEM, SPACE, calls=3_000)
    assert free.noisy
    assert free.seeded(4)(SITES) == expected[0]


def test_costs_are_late_shares_of_units_at_home():
    """A unit 7 min away is late for no call; 8 min, for those of high and medium priority: 0.57 + 0.245 of all."""
    costs = OperationsObjective(SYSTEM, SPACE).costs
    minutes = SYSTEM.city.travel_times + 50 / 60
    assert (costs[minutes < 8] == 0).all()
    assert np.allclose(costs[(minutes >= 8) & (minutes * 1.43 < 20)], 0.815)
    assert np.allclose(costs[minutes > 20], 1)


@pytest.mark.parametrize("method", ["gp-pm", "local"])
def test_searches_run_and_resume(method, tmp_path):
    def search(budget, **options):
        objective = OperationsObjective(SYSTEM, SPACE, calls=2_000, rng=1)
        return eo.minimize(objective, method, budget=budget, rng=0, **options)

    whole = search(24)
    search(10, checkpoint=tmp_path / "run.jsonl")
    resumed = search(24, checkpoint=tmp_path / "run.jsonl")
    assert resumed.fun == whole.fun
    other = OperationsObjective(SYSTEM, SPACE, calls=2_000, rng=1, policy=Policy(on_the_way=False))
    with pytest.raises(eo.errors.InputError, match="checkpoint"):  # another policy is another search
        eo.minimize(other, method, budget=24, rng=0, checkpoint=tmp_path / "run.jsonl")


def test_unknown_options_are_named():
    refused("options", OperationsObjective, SYSTEM, SPACE, trace=3)
