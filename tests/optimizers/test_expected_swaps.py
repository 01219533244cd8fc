"""Local search in the order of an estimate: the estimate against plain sums, and the search against enumeration."""

import numpy as np
import pytest
from own_functions import played

import emsopt as eo
from emsopt.optimizers import LocalSearch
from emsopt.optimizers.deployments.swaps import LocalSearchPlus, estimate_input, expected_changes

METHODS = [LocalSearchPlus, LocalSearch]


def plain_estimate(objective, sites):
    """Σ_j w_j Σ_k (1 - ρ) ρ^k c_j(k), with units in the order of the atom's preference."""
    city, p, total = objective.city, len(sites), 0.0
    load = min(city.offered_load(p), 0.95)
    for j, share in enumerate(city.demand_shares):
        order = sorted(sites, key=lambda i: city.preference_ranks[i, j])
        total += share * sum((1 - load) * load**k * objective.costs[i, j] for k, i in enumerate(order))
    return total


def expected_costs(of, counts):
    """Return the estimate for each row of ``counts``, (K,)."""
    values = np.zeros(len(counts))
    for k, row in enumerate(counts):
        for groups, costs in zip(of.groups, of.costs, strict=True):
            listed = np.repeat(costs, row[groups])[: len(of.shares)]
            values[k] += of.shares[: len(listed)] @ listed
    return values


@pytest.mark.parametrize(
    ("metric", "options"),
    [("mean_response", {"units": 9}), (("late", 8.0), {"units": 4, "colocation": 2}), ("mean_response", {"units": 1})],
)
def test_estimate_and_its_changes_are_the_plain_sums(metric, options, st_paul):
    """Probabilities below 0.001 are left out, so that a cost of at most C is off by at most 0.001 C."""
    objective = eo.Objective(st_paul, eo.DeploymentSpace(st_paul, **options), "approximate", metric)
    space, of = objective.space, estimate_input(objective)
    for sites in space.sample(4, rng=1):
        x = space.group_counts(sites)
        value = expected_costs(of, x[None])[0]
        assert value == pytest.approx(plain_estimate(objective, sites), abs=1e-3 * objective.costs.max())
        near = space.group_counts(space.neighbours(sites))
        changes = expected_changes(of, x)[(near - x).argmin(axis=1), (near - x).argmax(axis=1)]
        np.testing.assert_allclose(changes, expected_costs(of, near) - value, atol=1e-12)


def test_is_ahead_of_local_search_where_many_units_are_busy():
    city = eo.datasets.grid_city(60, 25, 0.6, rng=7)
    values = [played(method(eo.Objective(city, 25, "approximate"), rng=0), 60).best[1] for method in METHODS]
    assert values[0] < values[1]
