"""SparBL and BOCS: the model is the objective it minimises, feasible sets hold, and St. Paul's optimum is found."""

import numpy as np
import pytest

import emsopt as eo
from emsopt.optimizers.deployments.sparbl import SparBL, SparBLPlus, _preferred_units
from emsopt.optimizers.deployments.swaps import LocalSearchPlus
from emsopt.surrogates.horseshoe import standardize

METHODS = [SparBL, SparBLPlus]


def run(kind, objective, budget, rng, **options):
    optimizer = kind(objective, rng=rng)
    vars(optimizer).update(options)
    for _ in range(budget):
        x = optimizer.ask()
        optimizer.tell(x, objective(x))
    return optimizer


@pytest.mark.parametrize("options", [{}, {"colocation": 3, "pinned": (0, 4), "closed": (2, 9)}])
def test_quadratic_form_equals_the_linear_model(st_paul, options):
    """Equation (7) is (5): A and b rebuilt from coefficients give the model's value up to what is fixed."""
    optimizer = SparBL(eo.Objective(st_paul, eo.DeploymentSpace(st_paul, 6, **options), "approximate"))
    rows = optimizer.space.sample(30, rng=1)
    features = optimizer.features(rows)
    coef = np.random.default_rng(2).standard_normal(features.shape[1])
    A, b = optimizer._quadratic(coef)
    x = optimizer.space.group_counts(rows)
    quadratic = np.array([n @ A @ n - np.diag(A) @ n + b @ n for n in x])
    assert quadratic == pytest.approx(features @ coef)
    assert all((optimizer.space.deployment(n) == row).all() for n, row in zip(x, rows, strict=True))


def test_without_twins_features_are_the_papers():
    city = eo.datasets.grid_city(8, 3, rng=0)
    optimizer = SparBL(eo.Objective(city, 3, "approximate"))
    features = optimizer.features([[1, 4, 6]])[0]
    x = np.isin(np.arange(8), [1, 4, 6])
    assert features.tolist() == [*x, *(x[i] & x[j] for i in range(8) for j in range(i + 1, 8))]


def test_first_unit_costs_are_the_p_median_objective(st_paul):
    """Of a deployment with several units the first preferred is the nearest; twins hold two."""
    optimizer = SparBLPlus(eo.Objective(st_paul, 9, "approximate"))
    for sites in optimizer.space.sample(10, rng=3):
        near = np.sort(st_paul.response_times[sites], axis=0)[:2] @ st_paul.demand_shares
        _, costs = _preferred_units(optimizer.space.group_counts(sites), optimizer._order, optimizer._cost)
        assert costs.sum(axis=0) == pytest.approx(near)


def test_plus_descends_to_a_local_minimum_of_its_draw():
    """No single move improves the draw: against features computed anew for every neighbour."""
    city = eo.datasets.grid_city(10, 4, rng=5)
    objective = eo.Objective(city, eo.DeploymentSpace(city, 4, colocation=2, pinned=(3,)), "approximate")
    optimizer = run(SparBLPlus, objective, 20, 0)
    coef = optimizer._draw_model()
    reached = optimizer.space.canonical(optimizer._minimizer(coef))
    rows = np.vstack([reached, optimizer.space.neighbours(reached)])
    values = optimizer.features(rows) @ coef
    assert values[0] <= values.min() + 1e-7
    assert values[0] <= (optimizer.features(optimizer.sites) @ coef).min() + 1e-7


def test_equal_values_say_nothing_and_algorithm_1_can_be_the_acquisition():
    objective = eo.Objective(eo.datasets.grid_city(6, 2, rng=0), 2, "approximate")
    optimizer = SparBL(objective, rng=0)
    optimizer.initial, optimizer.method, optimizer.sweeps = 2, "relaxation", 5
    for _ in range(5):
        optimizer.tell(optimizer.ask(), 4.0)
    assert optimizer.state is None
    for _ in range(3):
        optimizer.tell(sites := optimizer.ask(), objective(sites))
    assert optimizer.state is not None


@pytest.mark.parametrize("method", [*METHODS, LocalSearchPlus])
def test_finds_the_optimum_of_st_paul(method, st_paul, every_deployment):
    """The optimum by enumeration, in value, within 100 evaluations; random search would need thousands."""
    objective = eo.Objective(st_paul, 9, "approximate")
    best = every_deployment.values.min()
    assert eo.minimize(objective, method(objective, rng=0), budget=100, target=best + 1e-9).fun <= best + 1e-9


def test_the_mean_of_several_draws_is_minimised(monkeypatch):
    """Ten sweeps of a chain, in one draw or averaged over five; a single draw is Thompson sampling."""
    objective = eo.Objective(eo.datasets.grid_city(12, 4, rng=2), 4, "approximate")
    seen = []
    sample = eo.optimizers.deployments.sparbl.sample

    def watched(state, X, y, sweeps, *, rng):
        after = sample(state, X, y, sweeps, rng=rng)
        seen.append((sweeps, after.coef))
        return after

    monkeypatch.setattr(eo.optimizers.deployments.sparbl, "sample", watched)
    one, five = (run(SparBL, objective, 20, 0, sweeps=10, draws=n) for n in (1, 5))
    for optimizer, sweeps in ((one, [100]), (five, [92, 2, 2, 2, 2])):
        seen.clear()
        coef = optimizer._draw_model()
        assert [n for n, _ in seen] == sweeps
        scales = standardize(optimizer.features(optimizer.sites), optimizer.values).coefficients
        assert coef == pytest.approx(scales(np.mean([c for _, c in seen], axis=0)))


def test_bocs_finds_the_optimum_of_a_small_city():
    """By enumeration: 495 deployments, of which it sees 60 at most."""
    city = eo.datasets.grid_city(12, 4, rng=3)
    objective = eo.Objective(city, 4, "approximate")
    best = eo.evaluators.evaluate_all(city, 4, evaluator="approximate").values.min()
    assert eo.minimize(objective, "bocs", budget=60, rng=0, target=best + 1e-9).fun <= best + 1e-9


def quadratic_fit(features, values):
    """Return the least-squares fit of a quadratic model with a constant, and its R²."""
    design = np.column_stack([np.ones(len(features)), features])
    fit = design @ np.linalg.lstsq(design, values, rcond=None)[0]
    return fit, 1 - np.var(values - fit) / np.var(values)


def test_how_well_a_quadratic_fits_all_deployments_of_st_paul(st_paul, every_deployment):
    """(5), fitted to all 9,691 values: R² 0.98; its minimum is 0.09 % above the optimum, which it ranks third."""
    everything = every_deployment
    fit, explained = quadratic_fit(
        SparBL(eo.Objective(st_paul, 9, "approximate")).features(everything.sites), everything.values
    )
    assert (len(fit), explained) == (9691, pytest.approx(0.982, abs=1e-3))
    assert (fit < fit[everything.values.argmin()] - 1e-9).sum() == 2
    assert everything.values[fit.argmin()] / everything.values.min() - 1 == pytest.approx(0.00085, abs=5e-5)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_distant_pairs_matter_less_than_near_ones_and_not_nothing(seed):
    """Section 4.2, twelve sites and five units: R² with the nearer half of the pairs, the farther half, and all."""
    city = eo.datasets.grid_city(12, 5, 0.5, rng=seed)
    everything = eo.evaluators.evaluate_all(city, 5, evaluator="approximate")
    features = SparBL(eo.Objective(city, 5, "approximate")).features(everything.sites)
    first, second = np.triu_indices(12, 1)
    apart = np.linalg.norm(city.site_locations[first] - city.site_locations[second], axis=1)
    order = 12 + np.argsort(apart)
    singles = np.arange(12)

    def explained(pairs):
        return quadratic_fit(features[:, np.r_[singles, pairs]], everything.values)[1]

    assert explained(order[:33]) > 0.975
    assert explained(order[33:]) < 0.955
    assert explained(order) > 0.996
    assert explained(order) - explained(order[:33]) > 0.005
