"""Inputs of a user's own function: of all kinds, with and without names."""

import numpy as np
import pytest
from own_functions import BOX, FEW, INPUTS, METHODS, bowl, cut, same
from refusals import refused
from scipy.optimize import Bounds

import emsopt as eo
from emsopt.optimizers import Categorical, Integer, Real
from emsopt.optimizers.boxes._base import RandomPoints
from emsopt.problems.box import Box


def training(rate, layers, units, solver, shuffle, decay):
    """Return a loss of 0 at rate 0.001, 3 layers of 32 units, lbfgs, shuffled, decay 0.4."""
    assert type(layers) is type(units) is int
    assert type(rate) is type(decay) is float
    assert type(shuffle) is bool
    loss = (np.log10(rate) + 3) ** 2 / 4 + (layers - 3) ** 2 / 10 + np.log2(units / 32) ** 2 / 10 + (decay - 0.4) ** 2
    return loss + {"adam": 0.5, "lbfgs": 0.0, "sgd": 1.0}[solver] + (not shuffle) * 0.3


def few_or_small(layers, units, **others):
    return layers * units <= 600


@pytest.mark.parametrize("method", METHODS)
def test_named_inputs_of_all_kinds(method, tmp_path):
    file = tmp_path / "run.jsonl"
    options = {"bounds": INPUTS, "constraints": few_or_small, "budget": 24, "rng": 0, "checkpoint": file}
    run = eo.minimize(training, method, **options)
    assert (run.history["layers"] * run.history["units"] <= 600).all()
    assert list(run.history.columns) == ["evaluation", *INPUTS, "value", "best", "seconds"]
    assert training(**run.x) == run.fun == run.history["value"].min()
    assert run.history.loc[run.history["value"].idxmin(), [*INPUTS]].to_dict() == run.x
    assert not run.history[[*INPUTS]].duplicated().any()
    assert "'solver': '" in repr(run)
    cut(file, 20)
    assert same(eo.minimize(training, method, **options), run)


def test_a_model_makes_use_of_kinds():
    """Random points end at 0.8 after 50 evaluations, in the median of three runs; a tenth of that is reached."""
    ends = [eo.minimize(training, "random", bounds=INPUTS, budget=50, rng=seed).fun for seed in range(3)]
    goal = 0.1 * np.median(ends)
    runs = (eo.minimize(training, bounds=INPUTS, budget=50, rng=seed, target=goal) for seed in range(2))
    assert any(run.fun <= goal for run in runs)


def test_bounds_of_scipy_and_inputs_without_names():
    plain = eo.minimize(bowl, bounds=BOX, budget=9, rng=0)
    for bounds in (Bounds([0, 0], [1, 1]), [Real(0, 1), (0, 1)]):
        assert same(eo.minimize(bowl, bounds=bounds, budget=9, rng=0), plain)
    np.testing.assert_array_equal(Box(Bounds(0, [2, 3])).bounds, [[0, 2], [0, 3]])
    run = eo.minimize(bowl, bounds=[Real(1e-3, 1, log=True), Integer(0, 3)], budget=9, rng=0)
    assert run.x.shape == (2,)


def test_every_choice_and_whole_number_has_its_share_of_the_cube():
    box, rng = Box(INPUTS), np.random.default_rng(0)
    assert (box.dimension, box.coordinates) == (6, 8)
    points = np.array([box.sample(rng=rng) for _ in range(3000)])
    unit = box.to_unit(points)
    np.testing.assert_allclose(box.from_unit(unit), points, rtol=1e-12)
    np.testing.assert_array_equal(unit[:, 3:6].sum(axis=1), 1)  # one coordinate for each choice
    for k, n in ((1, 9), (3, 3), (4, 2)):
        np.testing.assert_allclose(np.unique(points[:, k], return_counts=True)[1] / 3000, 1 / n, atol=0.03)
    assert np.median(points[:, 0]) == pytest.approx(10**-2.5, rel=0.3)
    assert np.median(points[:, 2]) == pytest.approx(np.sqrt(0.5 * 512.5), rel=0.2)  # as 1 stands for 0.5 to 1.5
    design = box.latin_hypercube(9, rng=rng)
    assert sorted(design[:, 1]) == list(range(1, 10))
    np.testing.assert_array_equal(np.unique(design[:, 3], return_counts=True)[1], 3)
    assert box.to_dict(box.canonical(box.to_dict(points[0]))) == box.to_dict(points[0])


@pytest.mark.parametrize("method", FEW)
def test_a_box_of_choices_is_searched_to_its_end(method):
    inputs = {"a": Categorical(["x", "y", "z"]), "b": Integer(1, 3), "c": Categorical([None, 1.5])}
    run = eo.minimize(lambda a, b, c: ord(a) + b + (c or 0), method=method, bounds=inputs, budget=99, rng=0)
    assert (run.nfev, run.x) == (18, {"a": "x", "b": 1, "c": None})
    assert run.message == "every allowed point evaluated, so this is the optimum"


def test_bad_bounds_are_refused():
    for bounds, message in (
        ({"a": Real(0, 1, log=True)}, r"logarithmic scale must be above 0; got \[0\.0, 1\.0\] for 'a'"),
        ({"a": Real(1, 0)}, r"low <= high in every row; got \[1\.0, 0\.0\] for 'a'"),
        ({"a": Integer(1, 2.5)}, "of whole-number inputs must be whole; got .* for 'a'"),
        ({"value": (0, 1)}, "'value' is a column of the history; rename this input"),
        ([Categorical(["a", "b"])], "A categorical input needs a name"),
        (Bounds([0, 0], [1, np.inf]), "`bounds` must be finite"),
        (Bounds(-1, 1), r"Bounds\(-1, 1\) does not say how many inputs .* Write bounds=\[\(-1, 1\)\] for one input"),
        ({"s": ["x", "y", "z"]}, r"'s' must be a pair of numbers .* or Categorical\(\['adam', 'sgd'\]\); got"),
        ({"s": (1e-3, 1, "log-uniform")}, "'s' must be a pair of numbers"),
        ([Real(0, 1), (1, None)], r"input 1 must be a pair of numbers .*; got \(1, None\)"),
        ({"a": (3, 3), "b": Categorical(["x"])}, "`bounds` fix all inputs: at least one input needs low < high"),
    ):
        refused(message, eo.minimize, lambda *x, **inputs: 0.0, bounds=bounds, budget=3)


def test_choices_are_listed_distinct_and_plain():
    for choices in ("ab", [], [[1], np.arange(2)], [True, 1], ["a", float("nan")], {"adam", "sgd"}):
        refused(r"`choices` must be a list of distinct .* For other objects, use names", Categorical, choices)
    assert Categorical(np.arange(3)).choices == (0, 1, 2)
    for choices in (["a", "b"], [None, 5, 10]):
        inputs = {"s": Categorical(np.array(choices)), "x": (0, 1)}
        run = eo.minimize(lambda s, x: x, "random", bounds=inputs, budget=12, rng=0)
        assert set(map(type, run.history["s"])) == set(map(type, choices))  # no None is NaN, no text is numpy's


def test_fixed_inputs_are_passed_on_and_not_searched():
    fixed = {"a": (3.5, 3.5), "n": Integer(4, 4), "rate": Real(0.1, 0.1, log=True), "solver": Categorical(["sgd"])}
    free = {"x": (0, 1), "kind": Categorical(["u", "v", "w"])}

    def loss(x, kind, **others):
        assert others == {"a": 3.5, "n": 4, "rate": 0.1, "solver": "sgd"}
        return (x - 0.3) ** 2 + (kind != "v")

    run = eo.minimize(loss, bounds=fixed | free, budget=9, rng=0)
    assert list(run.x) == [*fixed, *free]
    assert run.fun == run.history["value"].min()
    assert Box(fixed | free).coordinates == Box(free).coordinates == 4


@pytest.mark.parametrize("bounds", [[Integer(0, 5)], {"n": Integer(1, 5, log=True)}])
def test_a_fraction_of_a_whole_number_is_refused(bounds):
    """A known value at 2.6 is not the value at 3: (n - 2.6)² is 0.16 there."""
    optimizer, message = RandomPoints(bounds=bounds, sense="min", rng=0), r"(input 0|n) must be a whole .* got 2\.6"
    for starts in ({"initial": [([2.6], 0.0)]}, {"x0": [2.6]}):
        refused(message, eo.minimize, lambda *x, **n: 0.0, bounds=bounds, budget=3, **starts)
    refused(message, optimizer.tell, [2.6], 0.0)
    refused(message, optimizer.enqueue, [[2.6]])
    optimizer.tell([3 - 1e-9], 1.0)  # up to rounding
    assert optimizer.told[0].tolist() == [3.0]


def test_problems_take_inputs_without_names():
    f = eo.problems.Problem("decade", lambda x: np.log10(x[:, 0]) ** 2, [Real(1e-4, 1e2, log=True)], "min", 0, [1.0])
    x = np.log10(np.array(eo.minimize(f, "random", budget=200, rng=0).history["x"].tolist()))
    assert abs(np.mean(x < -1) - 0.5) < 0.1  # half of the decades
    message = "must have no names; name its inputs by `variables`"
    refused(message, eo.problems.Problem, "named", lambda x: x[:, 0], {"a": (0, 1)}, "min")


def test_a_function_of_one_dict_is_told_that_names_are_keywords():
    for options in ({"objective": lambda p: 0.0}, {"objective": lambda a: a, "constraints": lambda p: True}):
        with pytest.raises(TypeError) as raised:
            eo.minimize(bounds={"a": (0, 1)}, budget=2, **options)
        assert "Inputs that have names are passed as keyword arguments: a." in raised.value.__notes__
