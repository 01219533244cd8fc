"""Where a search of a user's own function starts, and which points it may evaluate."""

import numpy as np
import pytest
from own_functions import BOX, FEW, bowl, inside, recorded, same
from refusals import refused

import emsopt as eo
from emsopt.optimizers import Categorical, Integer


def test_x0_comes_first():
    for x0 in ([0.2, 0.9], np.array([[0.2, 0.9], [0.4, 0.1]]), [(0.2, 0.9), (0.2, 0.9)]):
        run = eo.minimize(bowl, bounds=BOX, budget=4, rng=0, x0=x0)
        first = list(dict.fromkeys(map(tuple, np.atleast_2d(x0).tolist())))
        assert run.history["x"].tolist()[: len(first)] == first
        assert run.nfev == 4
    named = {"a": (0, 1), "b": Categorical(["x", "y", "z"])}
    run = eo.minimize(lambda a, b: a, bounds=named, budget=4, rng=0, x0={"a": 0.5, "b": "y"})
    assert run.history.loc[0, ["a", "b"]].tolist() == [0.5, "y"]
    with pytest.warns(UserWarning, match="`x0` has 3 candidates, but the budget is 2"):
        run = eo.minimize(bowl, bounds=BOX, budget=2, rng=0, x0=[[0.1, 0.1], [0.2, 0.2], [0.3, 0.3]])
    assert run.nfev == 2


def test_x0_and_known_values_may_be_deployments():
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


def test_all_points_that_constraints_allow_are_evaluated():
    whole = {"bounds": [Integer(0, 4)] * 2, "constraints": lambda x: bool(x.sum() == 4)}
    run = eo.minimize(lambda x: x[0], **whole, budget=99, rng=0)
    assert (run.nfev, run.x.tolist()) == (5, [0.0, 4.0])
    assert run.message == "every allowed point evaluated, so this is the optimum"
