"""The simple optimizers: every deployment they ask for is allowed, and each searches as its description says."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from own_functions import played

import emsopt as eo
from emsopt.optimizers import Genetic, LocalSearch, RandomSearch
from emsopt.optimizers.deployments.genetic_annealing import SimulatedAnnealing
from emsopt.optimizers.deployments.gp_pm import GPpM, GPzero
from emsopt.optimizers.deployments.sparbl import BOCS, SparBL, SparBLPlus
from emsopt.optimizers.deployments.swaps import LocalSearchPlus, expected_change_inputs, expected_changes

RIVALS = (
    RandomSearch,
    Genetic,
    SimulatedAnnealing,
    LocalSearch,
    lambda objective, rng: changed(Genetic(objective, rng=rng), population=3, mutation=2),
    lambda objective, rng: changed(SimulatedAnnealing(objective, rng=rng), initial=2),
)


def changed(optimizer, **settings):
    """Return an optimizer with other constants."""
    vars(optimizer).update(settings)
    return optimizer


@st.composite
def objectives(draw):
    """Small cities in which some sites are twins, under every kind of restriction."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_sites = draw(st.integers(2, 7))
    twin_of = [draw(st.integers(0, k)) for k in range(n_sites)]
    travel = rng.uniform(1, 20, (n_sites, 5))[twin_of]
    city = eo.City(rng.uniform(0.1, 1, 5), travel, turnout_times=1.0, service_times=20)
    colocation = draw(st.sampled_from([False, True, 2]))
    order = draw(st.permutations(range(n_sites)))
    closed = order[: draw(st.integers(0, n_sites - 2))]
    room = (n_sites - len(closed)) * {False: 1, True: 4, 2: 2}[colocation]
    units = draw(st.integers(1, min(room, 4)))
    pinned = order[len(closed) :][: draw(st.integers(0, units))]
    if colocation and len(pinned) < units and draw(st.booleans()):
        pinned = [*pinned, *pinned[:1]]  # one site keeps two units
    space = eo.DeploymentSpace(city, units, colocation=colocation, pinned=pinned, closed=closed)
    return eo.Objective(city, space, "approximate")


def check_allowed(objective, sites):
    """Check a deployment against the planner's wishes, from their definition."""
    space, groups = objective.space, objective.city.twin_groups
    assert sites.shape == (space.units,)
    assert (np.diff(sites) >= 0).all()
    counts = np.bincount(sites, minlength=objective.city.n_sites)
    assert counts.max() <= {False: 1, True: space.units}.get(space.colocation, space.colocation)
    assert counts[list(space.closed)].sum() == 0
    pinned = groups[np.array(space.pinned, dtype=int)]  # a pinned unit is as well kept at a twin of its site
    assert all(counts[groups == group].sum() >= np.count_nonzero(pinned == group) for group in np.unique(pinned))


@settings(max_examples=40, deadline=None)
@given(rival=st.sampled_from(RIVALS), objective=objectives(), seed=st.integers(0, 100), batch=st.integers(1, 3))
def test_every_deployment_asked_for_is_allowed_and_new(rival, objective, seed, batch):
    """To the last one: small spaces are seen whole, each deployment once (up to twins), then there is none."""
    optimizer, seen = rival(objective, rng=seed), set()
    while not optimizer.exhausted and len(seen) < 60:
        rows = optimizer.ask(batch)
        for sites, value in zip(rows, objective.values(rows), strict=True):
            check_allowed(objective, sites)
            seen.add(tuple(objective.city.twin_groups[sites].tolist()))
            optimizer.tell(sites, value)
        assert len(seen) == len(optimizer.values)
    assert optimizer.exhausted == (len(seen) == objective.space.count)


@pytest.mark.parametrize("options", [{"pinned": [2], "closed": [4]}, {"colocation": 2, "pinned": [1, 1]}])
@pytest.mark.parametrize("method", [GPpM, GPzero, SparBL, SparBLPlus, BOCS, LocalSearchPlus])
def test_methods_with_a_model_ask_for_every_allowed_deployment_once(method, options):
    city = eo.datasets.grid_city(6, 3, rng=3)
    objective = eo.Objective(city, eo.DeploymentSpace(city, 3, **options), "approximate")
    optimizer = played(changed(method(objective, rng=1), initial=4, sweeps=5), 100)
    for sites in optimizer.sites:
        check_allowed(objective, sites)
    assert len({tuple(sites) for sites in optimizer.sites}) == len(optimizer.sites) == objective.space.count


@pytest.fixture(scope="module")
def nine(st_paul):
    return eo.Objective(st_paul, 9, "approximate")


def test_local_search_ends_in_local_optima(nine):
    """Before it starts anew, every neighbour of the best so far in this descent has been evaluated."""
    optimizer = changed(LocalSearch(nine, rng=0), _starts=[])
    restarts = 0
    while restarts < 3:
        x = optimizer.ask()
        if optimizer._value == np.inf and optimizer.values:
            restarts += 1
            local, value = optimizer.best
            around = [optimizer.taken[tuple(row.tolist())] for row in nine.space.neighbours(local)]
            assert min(around) >= value
        optimizer.tell(x, nine(x))


def test_local_search_starts_at_the_p_median_and_stops_when_its_budget_is_used_up(nine):
    assert LocalSearch(nine).ask().tolist() == nine.space.canonical(eo.evaluators.p_median(nine.city, 9).sites).tolist()
    run, whole = (eo.optimizers.local_search(nine, rng=0, **options) for options in ({"budget": 30}, {}))
    assert 30 <= run.nfev < whole.nfev
    assert run.fun >= whole.fun
    assert "budget" in run.message


def test_both_searches_of_a_large_fleet_show_their_progress(monkeypatch):
    """Starts of both searches in one count, with the deployments evaluated and the best value beside it."""
    monkeypatch.setattr("emsopt.optimizers.deployments.swaps.MAX_ENUMERATED", {"exact": 0, "approximate": 0})
    objective, steps = eo.Objective(eo.datasets.grid_city(n_sites=8, units=3, rng=1), 3, "exact"), []
    run = eo.optimizers.best_deployment(objective, rng=0, progress=lambda *step: steps.append(step))
    assert sorted(set(steps)) == [(done, 11) for done in range(12)]
    assert steps == sorted(steps)
    assert run.nfev == objective.evaluations > 0


def test_searching_pays(nine, every_deployment):
    """Over 3 seeds at 150 evaluations each search is closer to the optimum (by enumeration) than chance is."""
    optimum = every_deployment.values.min()
    local = lambda objective, rng: changed(LocalSearch(objective, rng=rng), _starts=[])
    gaps = {
        rival: np.median([played(rival(nine, rng=seed), 150).best[1] - optimum for seed in range(3)])
        for rival in (RandomSearch, Genetic, SimulatedAnnealing, local)
    }
    assert min(gaps.values()) >= -1e-12
    chance = gaps.pop(RandomSearch)
    assert max(gaps.values()) < 0.5 * chance, gaps


def plain_estimate(objective, sites):
    """Σ_j w_j Σ_k (1 - ρ) ρ^k c_j(k), with units in the order of the atom's preference."""
    city, p, total = objective.city, len(sites), 0.0
    load = min(city.offered_load(p), 0.95)
    for j, share in enumerate(city.demand_shares):
        order = sorted(sites, key=lambda i: city.preference_ranks[i, j])
        total += share * sum((1 - load) * load**k * objective.costs[i, j] for k, i in enumerate(order))
    return total


CASES = [("mean_response", 9, False), (("late", 8.0), 4, 2), ("mean_response", 1, False)]


@pytest.mark.parametrize(("metric", "units", "colocation"), CASES)
def test_estimate_and_its_changes_are_the_plain_sums(metric, units, colocation, st_paul):
    """Probabilities below 0.001 are left out, so that a cost of at most C is off by at most 0.001 C."""
    objective = eo.Objective(st_paul, eo.DeploymentSpace(st_paul, units, colocation=colocation), "approximate", metric)
    space, of = objective.space, expected_change_inputs(objective)
    for sites in space.sample(4, rng=1):
        x, around = space.group_counts(sites), space.neighbours(sites)
        near = space.group_counts(around)
        changes = expected_changes(of, x)[(near - x).argmin(axis=1), (near - x).argmax(axis=1)]
        plain = np.array([plain_estimate(objective, row) for row in around]) - plain_estimate(objective, sites)
        np.testing.assert_allclose(changes, plain, atol=2e-3 * objective.costs.max())
