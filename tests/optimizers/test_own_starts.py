"""Where a search of a user's own function starts, and which points it may evaluate."""

import numpy as np
import pytest
from own_functions import BOX, METHODS, bowl, inside, recorded, same

import emsopt as eo
from emsopt.errors import InputError
from emsopt.optimizers import Categorical, Integer

# -- where to begin ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_x0_comes_first(method):
    for x0 in ([0.2, 0.9], np.array([[0.2, 0.9], [0.4, 0.1]]), [(0.2, 0.9), (0.2, 0.9)]):
        run = eo.minimize(bowl, method, bounds=BOX, budget=10, rng=0, x0=x0)
        first = list(dict.fromkeys(map(tuple, np.atleast_2d(x0).tolist())))
        assert run.history["x"].tolist()[: len(first)] == first
        assert run.nfev == 10
    named = {"a": (0, 1), "b": Categorical(["x", "y", "z"])}
    run = eo.minimize(lambda a, b: a, method, bounds=named, budget=4, rng=0, x0={"a": 0.5, "b": "y"})
    assert run.history.loc[0, ["a", "b"]].tolist() == [0.5, "y"]


def test_x0_of_deployments_is_one_of_today():
    objective = eo.Objective(eo.datasets.grid_city(8, 3, rng=0), 3, "approximate")
    run = eo.minimize(objective, "local", budget=9, rng=0, x0=[5, 6, 7])
    assert run.history["sites"][0] == (5, 6, 7)
    with pytest.raises(InputError, match="`constraints` does not apply to an Objective"):
        eo.minimize(objective, budget=9, constraints=inside)
    known = [([5, 6, 7], objective([5, 6, 7]))]
    assert (5, 6, 7) not in eo.minimize(objective, "random", budget=50, rng=0, initial=known).history["sites"].tolist()


@pytest.mark.parametrize("method", METHODS)
def test_known_points_cost_nothing(method, tmp_path):
    """They are learned from, are not evaluated again, and the best of them may be the answer."""
    X = np.random.default_rng(0).random((12, 2))
    y, seen, file = [bowl(x) for x in X], [], tmp_path / "run.jsonl"
    run = eo.minimize(recorded(seen), method, bounds=BOX, budget=6, rng=0, initial=(X, y), checkpoint=file)
    assert len(seen) == run.nfev == len(run.history) == 6
    assert not set(seen) & set(map(tuple, X.tolist()))
    assert run.history["best"].max() <= min(y)
    assert same(eo.minimize(bowl, method, bounds=BOX, budget=6, rng=0, initial=list(zip(X, y, strict=True))), run)
    assert same(eo.minimize(bowl, method, bounds=BOX, budget=6, rng=0, initial=(X, y), checkpoint=file), run)
    with pytest.raises(InputError, match="belongs to another run: its initial is"):
        eo.minimize(bowl, method, bounds=BOX, budget=6, rng=0, checkpoint=file)
    best = eo.minimize(bowl, method, bounds=BOX, budget=3, rng=0, initial=[([0.3, 0.3], 0.0)])
    assert (best.x.tolist(), best.fun) == ([0.3, 0.3], 0.0)


def test_known_points_by_name():
    inputs, points = {"a": (0, 1), "b": Categorical(["x", "y"])}, [{"a": 0.5, "b": "y"}, {"a": 0.1, "b": "x"}]
    loss = lambda a, b: a + (b == "y")
    values = [loss(**point) for point in points]
    one = eo.minimize(loss, bounds=inputs, budget=4, rng=0, initial=(points, values))
    assert same(one, eo.minimize(loss, bounds=inputs, budget=4, rng=0, initial=list(zip(points, values, strict=True))))
    run = eo.minimize(loss, "random", bounds=inputs, budget=4, rng=0, initial=[({"a": 0.0, "b": "x"}, 0.0)])
    assert (run.x, run.fun) == ({"a": 0.0, "b": "x"}, 0.0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"x0": [2, 0]}, "`x` must lie in the box; input 0 is 2"),
        ({"x0": [0.5]}, "`x` must have shape"),
        ({"initial": [[0.5, 0.5]]}, "`x` must have shape"),
        ({"initial": 3}, "`initial` must be pairs"),
        ({"initial": [([0.5, 0.5], np.nan)]}, "`initial` must be a finite number"),
        ({"initial": ([[0.1, 0.2]], [1.0, 2.0])}, "`initial` must be pairs"),
        ({"bounds": {"a": (0, 1)}, "x0": {"b": 1}}, "`x` must have the inputs a; got b"),
        ({"bounds": {"a": Categorical(["u", "v"])}, "x0": {"a": "w"}}, r"a must be one of \('u', 'v'\); got 'w'"),
    ],
)
def test_bad_starts_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        eo.minimize(bowl, **({"bounds": BOX, "budget": 3} | options))


# -- constraints -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_constraints_are_never_violated(method, tmp_path):
    seen, file = [], tmp_path / "run.jsonl"
    options = {"bounds": BOX, "constraints": inside, "budget": 25, "rng": 0}
    run = eo.minimize(recorded(seen), method, **options, checkpoint=file)
    assert len(seen) == 25
    assert min(map(sum, seen)) >= 1.2
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(lines[:12]))
    assert same(eo.minimize(bowl, method, **options, checkpoint=file), run)
    inputs = {"a": (0, 1), "b": Integer(1, 5), "c": Categorical(["x", "y", "z"])}
    rule = lambda a, b, c: a * b > 1 and c != "x"
    named = eo.minimize(lambda a, b, c: a, method, bounds=inputs, constraints=rule, budget=12, rng=0)
    assert "x" not in set(named.history["c"])
    assert (named.history["a"] * named.history["b"] > 1).all()


def test_the_best_point_on_the_border_of_constraints_is_found():
    """The bowl's best allowed point is (0.6, 0.6), with 0.18."""
    ends = [eo.minimize(bowl, bounds=BOX, constraints=inside, budget=30, rng=seed).fun for seed in range(3)]
    assert max(ends) < 0.18 + 0.003


def test_constraints_that_nothing_satisfies_are_named():
    with pytest.raises(InputError, match=r"no feasible point was found: `constraints` returned False at all of 10,000"):
        eo.minimize(bowl, bounds=BOX, constraints=lambda x: False, budget=3, rng=0)
    with pytest.raises(
        InputError, match=r"must return True \(allowed\) or False; at .* it returned .* Return a compar"
    ):
        eo.minimize(bowl, bounds=BOX, constraints=lambda x: x[0] - 0.5, budget=3, rng=0)
    with pytest.raises(InputError, match="`constraints` must be a function"):
        eo.minimize(bowl, bounds=BOX, constraints=[inside], budget=3)
    with pytest.raises(InputError, match=r"must satisfy the `constraints`; they return False at \[0\.1, 0\.1\]"):
        eo.minimize(bowl, bounds=BOX, constraints=inside, budget=3, x0=[0.1, 0.1])
    whole = {"bounds": [(0, 4), (0, 4)], "integers": [0, 1], "constraints": lambda x: bool(x.sum() == 4)}
    run = eo.minimize(lambda x: x[0], **whole, budget=99, rng=0)
    assert (run.nfev, run.x.tolist()) == (5, [0.0, 4.0])
