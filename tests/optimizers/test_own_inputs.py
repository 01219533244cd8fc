"""Inputs of a user's own function, of all kinds, where a search starts, and which points it may evaluate."""

import numpy as np
import pytest
from own_functions import BOX, FEW, INPUTS, METHODS, bowl, cut, inside, recorded, same
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


@pytest.mark.parametrize("method", METHODS)
def test_named_inputs_of_all_kinds(method, tmp_path):
    file = tmp_path / "run.jsonl"
    few_or_small = lambda layers, units, **others: layers * units <= 600
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
    whole = Box([Integer(-1, 2), Integer(2, 3)])
    assert (whole.count, whole.listing().tolist()) == (8, [[a, b] for a in range(-1, 3) for b in (2, 3)])
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
    allowed = {"bounds": [Integer(0, 4)] * 2, "constraints": lambda x: bool(x.sum() == 4)}
    few = eo.minimize(lambda x: x[0], method, **allowed, budget=99, rng=0)
    assert (run.nfev, run.x, few.nfev, few.x.tolist()) == (18, {"a": "x", "b": 1, "c": None}, 5, [0.0, 4.0])
    assert run.message == few.message == "every allowed point evaluated, so this is the optimum"


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
    assert (list(run.x), run.fun) == ([*fixed, *free], run.history["value"].min())
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


def test_x0_comes_first_and_known_values_may_be_deployments():
    for x0 in ([0.2, 0.9], np.array([[0.2, 0.9], [0.4, 0.1]]), [(0.2, 0.9), (0.2, 0.9)]):
        run = eo.minimize(bowl, bounds=BOX, budget=4, rng=0, x0=x0)
        first = list(dict.fromkeys(map(tuple, np.atleast_2d(x0).tolist())))
        assert (run.history["x"].tolist()[: len(first)], run.nfev) == (first, 4)
    named = {"a": (0, 1), "b": Categorical(["x", "y", "z"])}
    run = eo.minimize(lambda a, b: a, bounds=named, budget=4, rng=0, x0={"a": 0.5, "b": "y"})
    assert run.history.loc[0, ["a", "b"]].tolist() == [0.5, "y"]
    with pytest.warns(UserWarning, match="`x0` has 3 candidates, but the budget is 2"):
        run = eo.minimize(bowl, bounds=BOX, budget=2, rng=0, x0=[[0.1, 0.1], [0.2, 0.2], [0.3, 0.3]])
    assert run.nfev == 2
    objective = eo.Objective(eo.datasets.grid_city(8, 3, rng=0), 3, "approximate")
    run = eo.minimize(objective, "local", budget=9, rng=0, x0=[5, 6, 7])
    assert run.history["sites"][0] == (5, 6, 7)
    further = eo.minimize(objective, "local", budget=9, rng=1, initial=run)
    assert not set(further.history["sites"]) & set(run.history["sites"])


@pytest.mark.parametrize("method", FEW)
def test_known_points_cost_nothing(method, tmp_path):
    """They are learned from, are not evaluated again, and the best of them may be the answer."""
    X = np.random.default_rng(0).random((12, 2))
    y, seen, file = [bowl(x) for x in X], [], tmp_path / "run.jsonl"
    options = {"method": method, "bounds": BOX, "budget": 6, "rng": 0}
    run = eo.minimize(recorded(seen), **options, initial=(X, y), checkpoint=file)
    assert len(seen) == run.nfev == len(run.history) == 6
    assert not set(seen) & set(map(tuple, X.tolist()))
    assert run.history["best"].max() <= min(y)
    pairs = [(x, [value]) for x, value in zip(X, y, strict=True)]  # a value may be an array of one number
    assert same(eo.minimize(bowl, **options, initial=pairs), run)
    assert same(eo.minimize(bowl, **options, initial=(X, y), checkpoint=file), run)
    refused("belongs to another run: its initial is", eo.minimize, bowl, **options, checkpoint=file)
    best = eo.minimize(bowl, **options, initial=[([0.3, 0.3], 0.0)])
    assert (best.x.tolist(), best.fun) == ([0.3, 0.3], 0.0)


def test_a_run_starts_from_an_earlier_one(tmp_path):
    """However it is given: as itself or its rows; its failures are known, too."""
    named = {"a": (0, 1), "b": (0, 1)}
    fails = lambda a, b: np.nan if a < 0.5 else a + 2 * b
    one = eo.minimize(fails, "random", bounds=named, budget=12, rng=0)
    assert one.history["value"].isna().any()
    options = {"bounds": dict(reversed(named.items())), "budget": 4, "rng": 1}
    known = one.history[["a", "b"]].to_dict("records"), one.history["value"].tolist()
    runs = [eo.minimize(fails, **options, initial=initial) for initial in (one, known)]
    assert same(runs[1], runs[0])
    for _ in range(2):
        assert same(eo.minimize(fails, **options, initial=one, checkpoint=tmp_path / "run.jsonl"), runs[0])
    seen, again = (run.history[["a", "b"]].to_records(index=False).tolist() for run in (one, runs[0]))
    assert not set(seen) & set(again)
    assert runs[0].fun <= one.fun
    options = {"method": "random", "bounds": BOX, "rng": 0}
    plain = eo.minimize(bowl, **options, budget=12)
    assert eo.minimize(bowl, **options, budget=1, initial=plain).fun <= plain.fun
    for nothing in ([], ([], [])):
        assert same(eo.minimize(bowl, **options, budget=12, initial=nothing), plain)
    largest = eo.maximize(bowl, **options, budget=5)
    with pytest.warns(UserWarning, match="the sense 'max', but this one has 'min'"):
        run = eo.minimize(bowl, **options | {"rng": 1}, budget=1, initial=largest)
    assert run.fun <= largest.history["value"].min()


@pytest.mark.parametrize("values", [[3.0, 1.0], [np.nan, 1.0], [np.nan, np.inf]])
def test_nothing_is_evaluated_if_all_is_known(values):
    inputs, known = {"a": Categorical(["x", "y"])}, [({"a": "x"}, values[0]), ({"a": "y"}, values[1])]
    run, unknown = eo.minimize(bowl, bounds=inputs, budget=5, rng=0, initial=known), int((~np.isfinite(values)).sum())
    best = None if unknown == 2 else {"a": "y"}
    assert (run.x, run.nfev, run.success) == (best, 0, best is not None)
    ends = ["evaluated, so this is the optimum", "asked for; 1 without a value", "asked for; 2 without a value"]
    assert run.message == f"every allowed point {ends[unknown]}"
    assert run.history.columns.tolist() == ["evaluation", "a", "value", "best", "seconds"]


def test_a_target_and_a_success_may_be_known_before():
    run = eo.minimize(bowl, bounds=BOX, budget=5, rng=0, initial=[([0.3, 0.4], 0.01)], target=0.02)
    assert (run.nfev, run.x.tolist(), run.message) == (0, [0.3, 0.4], "target of 0.02 reached")
    run = eo.minimize(lambda x: np.nan, bounds=BOX, budget=3, rng=0, initial=[([0.3, 0.4], 1.0)])
    assert (run.success, run.fun, run.nfev) == (True, 1.0, 3)
    assert "3 of 3 evaluations gave no finite value" in run.message


def test_bad_starts_are_refused():
    for options, message in (
        ({"x0": [2, 0]}, "`x0` must lie in the box; input 0 is 2"),
        ({"x0": [0.5]}, "`x0` must have shape"),
        ({"initial": [[0.5, 0.5]]}, r"`initial\[0\]` must have shape"),
        ({"initial": [([0.5, 0.5], "low")]}, r"`initial\[0\]`: the value must be a number; got 'low'"),
        ({"initial": ([[0.1, 0.2]], [1.0, 2.0])}, "one value per candidate; got 1 candidates and 2 values"),
        ({"initial": ([0.1, 0.2], 3.0)}, "`initial` must be pairs"),
        # a list holds pairs; only a tuple holds candidates and values
        ({"bounds": [(0, 1)], "initial": [[[0.1], [0.5]], [0.7, 0.2]]}, r"`initial\[1\]` must have shape"),
        ({"bounds": {"a": (0, 1)}, "x0": {"b": 1}}, "`x0` must have the inputs a; got b"),
        ({"bounds": {"a": Categorical(["u", "v"])}, "x0": {"a": "w"}}, r"`x0`: a must be one of \('u', 'v'\); got 'w'"),
        ({"bounds": {"a": (0, 1)}, "x0": ["high"]}, r"got 'high'\. As .* names, give a dict with the keys a"),
        ({"constraints": lambda x: False}, "no feasible point was found: .* returned False at all of 10,000"),
        ({"constraints": lambda x: x[0] - 0.5}, r"must return True \(allowed\) or False; at .* it returned .* a comp"),
        ({"constraints": inside, "x0": [0.1, 0.1]}, r"satisfy the `constraints`; they return False at \[0\.1, 0\.1\]"),
    ):
        refused(message, eo.minimize, bowl, **{"bounds": BOX, "budget": 3, "rng": 0} | options)


def test_other_constraints_on_resuming_are_named_and_nothing_is_to_be_deleted(tmp_path):
    options = {"bounds": BOX, "budget": 9, "rng": 0, "checkpoint": tmp_path / "run.jsonl"}
    first = eo.minimize(bowl, **options)
    content = options["checkpoint"].read_bytes()
    message = r"evaluation 1 .* is not allowed in this run: .* return False at \[((?!elete).)*$"
    refused(message, eo.minimize, bowl, **options, constraints=lambda x: bool(x[1] > 0.9))
    assert options["checkpoint"].read_bytes() == content
    assert same(eo.minimize(bowl, **options), first)


def test_the_best_point_on_the_border_of_constraints_is_found():
    """The bowl's best allowed point is (0.6, 0.6), with 0.18."""
    seen = []
    run = eo.minimize(recorded(seen), bounds=BOX, constraints=inside, budget=30, rng=0, target=0.183)
    assert run.fun <= 0.183
    assert min(map(sum, seen)) >= 1.2
