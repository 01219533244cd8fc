"""Ask and tell on a box: direction, named inputs, without a function, and points of rare allowed regions."""

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from own_functions import BOX, INPUTS
from refusals import refused

import emsopt as eo
from emsopt.optimizers import BOKEAuto, Categorical, Integer
from emsopt.optimizers.boxes._base import RandomPoints
from emsopt.problems.box import Box


def test_without_a_function_there_is_nothing_to_evaluate():
    optimizer = BOKEAuto(bounds=BOX, sense="min", rng=0)
    refused("has no function: evaluate the points it asks for yourself", optimizer.objective, optimizer.ask())
    refused("`bounds` is missing", BOKEAuto, sense="min")


@pytest.mark.parametrize("noisy", [False, True])
def test_named_inputs_are_asked_for_and_told_by_name(noisy):
    optimizer = BOKEAuto(bounds=INPUTS, sense="min", noisy=noisy, rng=0)
    first = {"rate": 0.1, "layers": 2, "units": 8, "solver": "sgd", "shuffle": True, "decay": 0.0}
    optimizer.enqueue(first)
    optimizer.enqueue([first | {"units": 9}])
    assert optimizer.ask() == first
    optimizer.tell(first, 1.0)
    batch = optimizer.ask(4)
    assert batch[0] == first | {"units": 9}
    assert [list(x) for x in batch] == [[*INPUTS]] * 4
    for x in batch:
        assert type(x["layers"]) is int
        optimizer.tell(x, np.array([x["rate"]]))
    assert len(optimizer.pending) == 0
    assert optimizer.best[0] == min([first, *batch], key=lambda x: 1.0 if x is first else x["rate"])
    assert optimizer.recommend()[0] in [first, *batch]
    optimizer.withdraw(optimizer.ask())
    assert len(optimizer.pending) == 0


def test_points_wait_in_the_queue_and_nothing_is_recommended_before_a_value():
    optimizer = RandomPoints(bounds=BOX, sense="min", noisy=True, rng=0)
    optimizer.enqueue([0.25, 0.5])
    optimizer.enqueue([[0.5, 0.5], (0.75, 0.5)])
    assert optimizer.ask(3).tolist() == [[0.25, 0.5], [0.5, 0.5], [0.75, 0.5]]
    optimizer.tell(optimizer.ask(), np.nan)
    refused("nothing is known to recommend yet: `tell` at least one finite value first", optimizer.recommend)


@pytest.mark.parametrize("kind", ["box", "deployments"])
def test_threads_take_turns(kind):
    optimizer, value = BOKEAuto(bounds=BOX, sense="min", rng=0), lambda x: float(np.sum((x - 0.3) ** 2))
    if kind == "deployments":
        value = eo.Objective(eo.datasets.grid_city(n_sites=8, units=3, rng=1), 3)
        optimizer = eo.optimizers.GPpM(value, rng=0)

    def work(_):
        x = optimizer.ask()
        optimizer.tell(x, value(x))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(24)))
    assert len(optimizer.values) == len({tuple(x) for x in optimizer.told}) == 24
    twins, x = (copy.deepcopy(optimizer), pickle.loads(pickle.dumps(optimizer))), optimizer.ask()
    assert all(np.array_equal(twin.ask(), x) for twin in twins)


@pytest.fixture(autouse=True)
def few_tries(monkeypatch):
    """Let a box give up after 300 random points; one in 10! is in the simplex of ten inputs."""
    monkeypatch.setattr("emsopt.problems.box.TRIES", 300)


def simplex(x):
    return bool(x.sum() <= 1)


@pytest.mark.parametrize("d", [2, 5])
def test_a_walk_draws_uniformly(d):
    """On the simplex, each coordinate has mean 1 / (d + 1) and variance d / ((d + 1)² (d + 2)) (Dirichlet)."""
    box, rng = Box([(0, 2)] * d, constraints=simplex), np.random.default_rng(0)
    drawn = np.array([box.walk([[1e-3] * d], rng=rng) for _ in range(200)])
    assert drawn.min() >= 0
    assert drawn.sum(axis=1).max() <= 1
    np.testing.assert_allclose(drawn.mean(axis=0), 1 / (d + 1), rtol=0.2)
    assert drawn.std(axis=0).mean() == pytest.approx(np.sqrt(d / (d + 2)) / (d + 1), rel=0.1)


def test_a_walk_goes_through_whole_numbers_and_choices():
    inputs = {"n": Integer(1, 9), "s": Categorical(["a", "b", "c"]), "x": (0, 1)}
    box = Box(inputs, constraints=lambda n, s, x: x <= 0.1 * n and s != "b")
    rng, start = np.random.default_rng(0), box.canonical({"n": 9, "s": "a", "x": 0.5}).tolist()
    drawn = np.array([box.walk([start], rng=rng) for _ in range(400)])
    assert set(drawn[:, 1]) == {0, 2}
    shares = np.unique(drawn[:, 0], return_counts=True)[1] / 400
    np.testing.assert_allclose(shares, np.arange(1, 10) / 45, atol=0.06)  # the range of x is proportional to n


@pytest.mark.parametrize(("method", "known"), [("boke-auto", "x0"), ("random", "initial")])
def test_one_feasible_point_is_enough(method, known):
    """The nearest point of the simplex to the target is, by symmetry, at 0.1 each."""
    f, start = lambda x: float(((x - 0.2) ** 2).sum()), [0.0] * 10
    given = {"x0": start} if known == "x0" else {"initial": [(start, f(np.array(start)))]}
    run = eo.minimize(f, method, bounds=[(0, 1)] * 10, constraints=simplex, budget=30, rng=0, **given)
    points = np.array(run.history["x"].tolist())
    assert run.nfev == len(np.unique(points, axis=0)) == 30
    assert points.sum(axis=1).max() <= 1
    assert run.fun < 0.3  # 0.4 at the start, 0.1 at best


def test_without_a_feasible_point_the_remedy_is_named():
    optimizer = BOKEAuto(bounds=[(0, 1)] * 10, sense="min", constraints=simplex, rng=0)
    refused(r"no feasible point was found: .* pass a feasible point as `x0` \(with ask", optimizer.ask)
    optimizer.enqueue([0.1] * 10)
    assert optimizer.ask(3).sum(axis=1).max() <= 1 + 1e-12
