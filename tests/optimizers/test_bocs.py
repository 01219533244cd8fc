"""BOCS: annealing finds the minima of quadratics, a small city's optimum is found. `test_sparbl` has what the two share."""

from itertools import product

import numpy as np
import pytest

import emsopt as eo
from emsopt.optimizers.deployments.binary_quadratic import anneal, minimize_quadratic, value
from emsopt.optimizers.deployments.rivals import BOCS


def quadratic(seed, n, density=1.0):
    rng = np.random.default_rng([seed, n])
    A = np.triu(rng.standard_normal((n, n)) * (rng.random((n, n)) < density), 1)
    return A + A.T, 2 * rng.standard_normal(n)


def run(objective, budget, rng, **options):
    optimizer = BOCS(objective, rng=rng)
    vars(optimizer).update(options)
    for _ in range(budget):
        x = optimizer.ask()
        optimizer.tell(x, objective(x))
    return optimizer


@pytest.mark.parametrize("seed", range(4))
def test_annealing_reaches_the_minimum(seed):
    """By enumeration, with places for several units and fixed ones."""
    A, b = quadratic(seed, 10)
    A[np.diag_indices(10)] = np.random.default_rng(seed).standard_normal(10)
    capacities, floors = np.array([1, 3, 1, 0, 2, 1, 1, 1, 1, 1]), np.array([0, 1, 0, 0, 0, 1, 0, 0, 0, 0])
    every = product(*(range(low, high + 1) for low, high in zip(floors, capacities, strict=True)))
    best = min(value(A, b, np.array(x)) for x in every if sum(x) == 5)
    found = minimize_quadratic(A, b, 5, floors=floors, capacities=capacities, method="annealing", rng=seed)
    assert found.value == pytest.approx(best)
    assert found.value == pytest.approx(value(A, b, found.x))
    assert found.x.sum() == 5
    assert (found.x >= floors).all()
    assert (found.x <= capacities).all()


@pytest.mark.parametrize("density", [0.1, 1.0])
@pytest.mark.parametrize(("n", "units"), [(20, 8), (40, 10)])
def test_annealing_reaches_the_best_known(n, units, density):
    """Against the swaps of many long starts, which share no code with it."""
    for seed in range(3):
        A, b = quadratic(seed, n, density)
        best = minimize_quadratic(A, b, units, starts=60, steps=5 * n, rng=9).value
        assert minimize_quadratic(A, b, units, method="annealing", rng=seed).value == pytest.approx(best)


@pytest.mark.parametrize("units", [0, 4])
def test_annealing_where_nothing_can_move(units):
    A, b = quadratic(0, 4)
    assert minimize_quadratic(A, b, units, method="annealing", rng=0).x.tolist() == [units // 4] * 4


def test_a_walk_climbs_by_metropolis():
    """Two states: taken uphill if the chance drawn is below exp(-Δ / T), T the mean change at the first step."""
    A, b = np.zeros((2, 2)), np.array([0.0, 1.0])
    for chance, at in ((0.36, 1), (0.37, 0)):  # exp(-1) = 0.368
        filled, empty = np.array([0]), np.array([1])
        best = anneal(A, b, np.zeros(2, int), filled, empty, np.array([[0.0, 0.0, chance]]))
        assert filled.tolist() == [at]
        assert best.tolist() == [1, 0]  # the best met is returned, not the last


def test_finds_the_optimum_of_a_small_city():
    """By enumeration: 495 deployments, of which it sees 60."""
    city = eo.datasets.grid_city(12, 4, rng=3)
    objective = eo.Objective(city, 4, "approximate")
    best = eo.evaluators.evaluate_all(city, 4, evaluator="approximate").values.min()
    found = eo.minimize(objective, "bocs", budget=60, rng=0)
    assert found.fun == pytest.approx(best, abs=1e-9)


def test_every_proposal_starts_a_new_chain(monkeypatch):
    """Sweeps at each: ten times as many before the first draw, from the state a chain starts from."""
    objective = eo.Objective(eo.datasets.grid_city(12, 4, rng=2), 4, "approximate")
    optimizer, seen = run(objective, 20, 0, sweeps=3), []
    sample = eo.optimizers.deployments.sparbl.sample

    def watched(state, X, y, sweeps, *, rng):
        seen.append((sweeps, state.coef.any()))
        return sample(state, X, y, sweeps, rng=rng)

    monkeypatch.setattr(eo.optimizers.deployments.sparbl, "sample", watched)
    for _ in range(4):
        start = len(seen)
        optimizer.tell(optimizer.ask(), 9.0)
        assert seen[start] == (30, False)
        assert set(seen[start + 1 :]) <= {(3, True)}
