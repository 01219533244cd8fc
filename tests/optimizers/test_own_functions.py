"""What users of optuna and scipy expect of a search over their own function: failures, inputs, constraints, workers."""

import json
import signal
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from functools import wraps

import joblib
import numpy as np
import pytest
from scipy.optimize import Bounds

import emsopt as eo
from emsopt.errors import InputError
from emsopt.optimizers import BOX_METHODS, BOKEAuto, Box, Categorical, Integer, RandomPoints, Real

METHODS = tuple(BOX_METHODS)
BOX = [(0, 1), (0, 1)]


def recorded(seen):
    """Return the bowl, as a function that also records its points; a checkpoint takes it for the same function."""

    @wraps(bowl)
    def f(x):
        seen.append(tuple(x.tolist()))
        return bowl(x)

    return f


def bowl(x):
    return float(((x - 0.3) ** 2).sum())


def same(one, other):
    """Return whether two runs are the same in all but the clock."""
    histories = [run.history.drop(columns="seconds") for run in (one, other)]
    return histories[0].equals(histories[1]) and one.message == other.message


def evaluations_on_file(file):
    return [json.loads(line)["value"] for line in file.read_text().splitlines()[1:]]


# -- failures ---------------------------------------------------------------------------------------------------------


def half(x):
    """Fail where the bowl has its bottom; the best of the other points is at (0.5, 0.3)."""
    return bowl(x) if x[0] >= 0.5 else np.nan


@pytest.mark.parametrize("method", METHODS)
def test_a_failed_evaluation_is_recorded_counted_and_passed_over(method):
    run = eo.minimize(half, method, bounds=BOX, budget=40, rng=0)
    failed = run.history["value"].isna()
    assert (run.nfev, run.success) == (40, True)
    assert 0 < failed.sum() <= 27
    assert run.fun == np.nanmin(run.history["value"]) == half(run.x)
    assert f"; {failed.sum()} of 40 evaluations gave no finite value, the first nan at [" in run.message
    best = run.history["value"].cummin().ffill()
    np.testing.assert_array_equal(run.history["best"], best)  # NaN before the first value


def test_failures_do_not_keep_a_method_from_the_best_point_beside_them():
    ends = [eo.minimize(half, bounds=BOX, budget=50, rng=seed) for seed in range(3)]
    assert max(run.fun for run in ends) < 0.04 + 0.01  # of 0.04 at the border of what fails


@pytest.mark.parametrize("bad", [np.inf, -np.inf, np.nan, np.float32("nan"), np.array([np.inf])])
def test_without_a_finite_value_a_run_has_no_success(bad):
    run = eo.minimize(lambda x: bad, bounds=BOX, budget=8, rng=0)
    assert (run.x, run.success, run.nfev) == (None, False, 8)
    assert np.isnan(run.fun)
    assert np.isnan(run.history["best"]).all()
    np.testing.assert_array_equal(run.history["value"], np.full(8, np.ravel(bad)[0]))
    assert "no finite value after 8 evaluations" in repr(run)


def test_a_method_is_told_nothing_wrong_by_a_failure():
    """The values it knows are those that were found, and it does not ask for the point again."""
    optimizer = BOKEAuto(bowl, bounds=BOX, rng=0)
    x = optimizer.ask()
    optimizer.tell(x, np.nan)
    assert optimizer.values == []
    assert optimizer.is_taken(x)
    optimizer.tell(x, 0.5)  # it went well after all
    optimizer.tell(x, np.inf)
    assert optimizer.values == [0.5]
    assert optimizer.taken[tuple(x)] == 0.5


def test_failures_resume(tmp_path):
    file = tmp_path / "run.jsonl"
    full = eo.minimize(half, bounds=BOX, budget=25, rng=0, checkpoint=file)
    lines = file.read_bytes().splitlines(keepends=True)
    for cut in (2, 6, 15):
        file.write_bytes(b"".join(lines[:cut]))
        assert same(eo.minimize(half, bounds=BOX, budget=25, rng=0, checkpoint=file), full)
    assert "nan" in evaluations_on_file(file)


def unstable(x):
    if x[0] < 0.5:
        raise ArithmeticError("too cold")
    return bowl(x)


def test_errors_are_caught_only_if_wanted(tmp_path):
    file = tmp_path / "run.jsonl"
    with pytest.raises(ArithmeticError, match="too cold") as raised:
        eo.minimize(unstable, bounds=BOX, budget=20, rng=0, checkpoint=file)
    done = len(evaluations_on_file(file))
    assert raised.value.__notes__[0].startswith(f"This happened in evaluation {done + 1}, at [0.")
    for catch in (ValueError, (KeyError, TypeError)):
        with pytest.raises(ArithmeticError):
            eo.minimize(unstable, bounds=BOX, budget=20, rng=0, catch=catch)
    run = eo.minimize(unstable, bounds=BOX, budget=20, rng=0, checkpoint=file, catch=(ArithmeticError,))
    assert run.nfev == 20
    failed = run.history["error"] == "ArithmeticError: too cold"
    assert failed.equals(run.history["value"].isna())
    assert 0 < failed.sum() < 20
    assert set(run.history["error"][~failed]) == {""}
    assert "the first ArithmeticError: too cold at [" in run.message
    assert same(eo.minimize(unstable, bounds=BOX, budget=20, rng=0, checkpoint=file, catch=ArithmeticError), run)


def test_an_error_leaves_a_run_that_can_be_resumed(tmp_path):
    """The function fails at the seventh call; mended, the run goes on to the end of one that never failed."""
    file, calls = tmp_path / "run.jsonl", []

    def once(x):
        calls.append(x)
        if len(calls) == 7:
            raise OSError("the licence server is away")
        return bowl(x)

    full = eo.minimize(bowl, bounds=BOX, budget=15, rng=0)
    with pytest.raises(OSError, match="licence"):
        eo.minimize(once, bounds=BOX, budget=15, rng=0, checkpoint=file)
    assert len(evaluations_on_file(file)) == 6
    run = eo.minimize(once, bounds=BOX, budget=15, rng=0, checkpoint=file)
    assert run.history["value"].tolist() == full.history["value"].tolist()


@pytest.mark.parametrize("catch", [3, "ValueError", (ValueError, 3), KeyboardInterrupt, ValueError("x")])
def test_what_cannot_be_caught_is_refused(catch):
    with pytest.raises(InputError, match="`catch` must be exceptions"):
        eo.minimize(bowl, bounds=BOX, budget=3, catch=catch)


# -- what counts as a value -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "wrap", [np.array, np.float32, lambda v: np.array([v]), lambda v: [v], lambda v: np.array([[v]])]
)
def test_an_array_of_one_number_is_a_value(wrap):
    run = eo.minimize(lambda x: wrap(bowl(x)), "random", bounds=BOX, budget=5, rng=0)
    plain = eo.minimize(bowl, "random", bounds=BOX, budget=5, rng=0)
    np.testing.assert_allclose(run.history["value"], plain.history["value"], rtol=1e-6)
    assert type(run.fun) is float


def test_a_truth_value_is_a_value():
    run = eo.maximize(lambda x: x[0] > 0.5, "random", bounds=BOX, budget=9, rng=0)
    assert set(run.history["value"]) == {0.0, 1.0}


@pytest.mark.parametrize(
    ("bad", "shown"),
    [
        ("high", r"'high' \(str\)"),
        (None, r"None \(NoneType\)"),
        ([1.0, 2.0], r"\[1\.0, 2\.0\] \(list\)"),
        (1j, r"1j \(complex\)"),
        (np.array([]), r"array\(\[\], dtype=float64\) \(ndarray\)"),
        ([[1], [2, 3]], r"\[\[1\], \[2, 3\]\] \(list\)"),
        (np.timedelta64(3), "timedelta64"),
        (Decimal(3), "Decimal"),
    ],
)
def test_what_is_no_number_is_told_with_its_point(bad, shown):
    with pytest.raises(InputError, match=rf"must return a number.* at \[0\.\d+, 0\.\d+\] it returned .*{shown}"):
        eo.minimize(lambda x: bad, bounds=BOX, budget=5, rng=0)


# -- noise ------------------------------------------------------------------------------------------------------------


def test_a_function_is_taken_to_be_free_of_noise_and_the_run_says_so():
    assert "noisy=False" in repr(eo.minimize(bowl, "random", bounds=BOX, budget=3, rng=0))
    assert "noisy=True" in repr(eo.minimize(bowl, bounds=BOX, budget=3, rng=0, noisy=True))
    assert "noisy=False" in repr(BOKEAuto(bowl, bounds=BOX))


def test_two_values_at_one_point_name_noisy(tmp_path):
    optimizer = BOKEAuto(bowl, bounds=BOX, rng=0)
    optimizer.tell([0.5, 0.5], 1.0)
    optimizer.tell([0.5, 0.5], 1.0)
    with pytest.raises(InputError, match=r"two values at one point: 1 and 2 at \[0\.5, 0\.5\]\. .* pass noisy=True"):
        optimizer.tell([0.5, 0.5], 2.0)
    with pytest.raises(InputError, match="pass noisy=True"):
        eo.minimize(bowl, bounds=BOX, budget=3, initial=[([0, 0], 1.0), ([0, 0], 3.0)])
    twice = [([0, 0], 1.0), ([0, 0], 3.0)]
    assert eo.minimize(bowl, bounds=BOX, budget=6, initial=twice, noisy=True, rng=0).success
    rng, file = np.random.default_rng(0), tmp_path / "run.jsonl"
    eo.minimize(lambda x: rng.normal(), bounds=BOX, budget=3, rng=0, checkpoint=file)
    with pytest.raises(InputError, match=r"is of another function: at .* pass noisy=True"):
        eo.minimize(lambda x: rng.normal(), bounds=BOX, budget=5, rng=0, checkpoint=file)


# -- inputs -----------------------------------------------------------------------------------------------------------

INPUTS = {
    "rate": Real(1e-5, 1.0, log=True),
    "layers": Integer(1, 9),
    "units": Integer(1, 512, log=True),
    "solver": Categorical(["adam", "lbfgs", "sgd"]),
    "shuffle": Categorical([True, False]),
    "decay": (0.0, 1.0),
}


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
    run = eo.minimize(training, method, bounds=INPUTS, budget=30, rng=0, checkpoint=file)
    assert list(run.history.columns) == ["evaluation", *INPUTS, "value", "best", "seconds"]
    assert list(run.x) == list(INPUTS)
    assert training(**run.x) == run.fun == run.history["value"].min()
    row = run.history.loc[run.history["value"].idxmin()]
    assert {name: row[name] for name in INPUTS} == run.x
    assert not run.history[[*INPUTS]].duplicated().any()
    assert "'solver': '" in repr(run)
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(lines[:20]))
    assert same(eo.minimize(training, method, bounds=INPUTS, budget=30, rng=0, checkpoint=file), run)


def test_a_model_makes_use_of_kinds():
    """Three runs of 50 evaluations end far below random points, which end at 0.8."""
    ends = {
        m: [eo.minimize(training, m, bounds=INPUTS, budget=50, rng=s).fun for s in range(3)]
        for m in ("boke-auto", "random")
    }
    assert np.median(ends["boke-auto"]) < 0.1 * np.median(ends["random"])


def test_a_checkpoint_of_other_inputs_is_refused(tmp_path):
    file = tmp_path / "run.jsonl"

    def any_loss(**inputs):
        return 0.0

    eo.minimize(any_loss, "random", bounds=INPUTS, budget=3, rng=0, checkpoint=file)
    others = {
        "names": {("pace" if name == "rate" else name): one for name, one in INPUTS.items()},
        "logarithmic": INPUTS | {"rate": Real(1e-5, 1.0)},
        "choices": INPUTS | {"solver": Categorical(["sgd", "adam", "lbfgs"])},
    }
    for key, bounds in others.items():
        with pytest.raises(InputError, match=f"belongs to another run: its {key} is"):
            eo.minimize(any_loss, "random", bounds=bounds, budget=3, rng=0, checkpoint=file)


def test_bounds_of_scipy_and_inputs_without_names():
    plain = eo.minimize(bowl, bounds=BOX, budget=9, rng=0)
    assert same(eo.minimize(bowl, bounds=Bounds([0, 0], [1, 1]), budget=9, rng=0), plain)
    assert same(eo.minimize(bowl, bounds=[Real(0, 1), (0, 1)], budget=9, rng=0), plain)
    np.testing.assert_array_equal(Box(Bounds(0, [2, 3])).bounds, [[0, 2], [0, 3]])
    run = eo.minimize(bowl, bounds=[Real(1e-3, 1, log=True), Integer(0, 3)], budget=9, rng=0)
    assert run.x.shape == (2,)
    whole = eo.minimize(bowl, bounds=[(0, 1), Integer(0, 3)], budget=9, rng=0)
    assert same(eo.minimize(bowl, bounds=[(0, 1), (0, 3)], integers=[1], budget=9, rng=0), whole)


def test_every_choice_and_whole_number_has_its_share_of_the_cube():
    box = Box(INPUTS)
    assert (box.dimension, box.coordinates) == (6, 8)
    rng = np.random.default_rng(0)
    points = np.array([box.sample(rng=rng) for _ in range(3000)])
    np.testing.assert_allclose(box.from_unit(box.to_unit(points)), points, rtol=1e-12)
    for k, n in ((1, 9), (3, 3), (4, 2)):
        shares = np.unique(points[:, k], return_counts=True)[1] / len(points)
        np.testing.assert_allclose(shares, 1 / n, atol=0.03)
    assert np.median(points[:, 0]) == pytest.approx(10**-2.5, rel=0.3)
    assert np.median(points[:, 2]) == pytest.approx(np.sqrt(0.5 * 512.5), rel=0.2)  # as 1 stands for 0.5 to 1.5
    design = box.latin_hypercube(9, rng=rng)
    assert sorted(design[:, 1]) == list(range(1, 10))
    np.testing.assert_array_equal(np.unique(design[:, 3], return_counts=True)[1], 3)
    hot = box.to_unit(points)[:, 3:6]
    np.testing.assert_array_equal(hot.sum(axis=1), 1)
    assert box.named(box.canonical(box.named(points[0]))) == box.named(points[0])


def test_a_box_of_choices_is_searched_to_its_end():
    inputs = {"a": Categorical(["x", "y", "z"]), "b": Integer(1, 3), "c": Categorical([None, 1.5])}
    run = eo.minimize(lambda a, b, c: ord(a) + b + (c or 0), bounds=inputs, budget=99, rng=0)
    assert (run.nfev, run.x) == (18, {"a": "x", "b": 1, "c": None})
    assert "optimum" in run.message


@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        ({"a": Real(0, 1, log=True)}, r"logarithmic scale must be above 0; got \[0\.0, 1\.0\] for 'a'"),
        ({"a": Real(1, 0)}, r"low < high in every row; got \[1\.0, 0\.0\] for 'a'"),
        ({"a": Integer(1, 2.5)}, "of whole-number inputs must be whole; got .* for 'a'"),
        ({}, "must have shape"),
        ({"value": (0, 1)}, "'value' is a column of the history; rename this input"),
        ([Categorical(["a", "b"])], "A categorical input needs a name"),
        (Bounds([0], [np.inf]), "`bounds` must be finite"),
    ],
)
def test_bad_bounds_are_refused(bounds, message):
    with pytest.raises(InputError, match=message):
        eo.minimize(lambda *x, **inputs: 0.0, bounds=bounds, budget=3)


@pytest.mark.parametrize("choices", ["ab", ["a"], ["a", "a"], [1, 1.0], [[1], [2]], 3, [True, 1]])
def test_bad_choices_are_refused(choices):
    with pytest.raises(InputError, match="`choices` must be"):
        Categorical(choices)


def test_problems_take_inputs_without_names():
    f = eo.problems.Problem("decade", lambda x: np.log10(x[:, 0]) ** 2, [Real(1e-4, 1e2, log=True)], "min", 0, [1.0])
    x = np.log10(np.array(eo.minimize(f, "random", budget=200, rng=0).history["x"].tolist()))
    assert abs(np.mean(x < -1) - 0.5) < 0.1  # half of the decades
    with pytest.raises(InputError, match="must have no names; name its inputs by `variables`"):
        eo.problems.Problem("named", lambda x: x[:, 0], {"a": (0, 1)}, "min")


# -- where to begin ---------------------------------------------------------------------------------------------------


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


# -- constraints ------------------------------------------------------------------------------------------------------


def inside(x):
    return bool(x.sum() >= 1.2)


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


# -- workers ----------------------------------------------------------------------------------------------------------


def test_workers_give_the_same_run_however_they_work(tmp_path):
    options = {"bounds": BOX, "budget": 13, "rng": 0, "batch": 3}
    serial = eo.minimize(bowl, **options)
    assert serial.nfev == 13
    assert same(eo.minimize(bowl, **options, workers=2), serial)
    with ThreadPoolExecutor(2) as pool:
        assert same(eo.minimize(bowl, **options, workers=pool.map), serial)
    assert same(eo.minimize(bowl, **options, workers=lambda f, items: [f(item) for item in items]), serial)
    with joblib.parallel_config("threading"):
        assert same(eo.minimize(bowl, **options, workers=2), serial)
    assert not same(eo.minimize(bowl, **(options | {"batch": 1})), serial)
    of_two = eo.minimize(bowl, bounds=BOX, budget=8, rng=0, workers=2)
    assert same(eo.minimize(bowl, bounds=BOX, budget=8, rng=0, batch=2), of_two)


@pytest.mark.parametrize("method", METHODS)
def test_a_run_in_batches_resumes_from_anywhere(method, tmp_path):
    file = tmp_path / "run.jsonl"
    options = {"bounds": BOX, "budget": 14, "rng": 0, "batch": 4, "checkpoint": file}
    full = eo.minimize(half, method, **options)
    lines = file.read_bytes().splitlines(keepends=True)
    for cut in (1, 3, 5, 8, 11, 14):
        file.write_bytes(b"".join(lines[:cut]))
        assert same(eo.minimize(half, method, **options), full)
    longer = eo.minimize(half, method, **(options | {"budget": 20}))
    assert same(longer, eo.minimize(half, method, **(options | {"budget": 20, "checkpoint": None})))
    with pytest.raises(InputError, match="belongs to another run: its batch is 4"):
        eo.minimize(half, method, **(options | {"batch": 2}))


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_in_a_batch_keeps_what_is_done(tmp_path):
    file, done = tmp_path / "run.jsonl", []

    @wraps(bowl)
    def pressed(x):
        done.append(x)
        if len(done) == 7:
            raise KeyboardInterrupt
        return bowl(x)

    options = {"bounds": BOX, "budget": 12, "rng": 0, "batch": 4, "checkpoint": file}
    run = eo.minimize(pressed, **options)
    assert (run.nfev, run.message) == (6, "interrupted")
    assert same(eo.minimize(bowl, **options), eo.minimize(bowl, **(options | {"checkpoint": None})))


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_while_workers_evaluate(tmp_path):
    options = {"bounds": BOX, "budget": 8, "rng": 0, "workers": 2, "checkpoint": tmp_path / "run.jsonl"}

    def press(optimizer):
        if len(optimizer.values) == 3:
            signal.raise_signal(signal.SIGINT)

    run = eo.minimize(bowl, **options, callback=press)
    assert (run.nfev, run.message) == (3, "interrupted")
    assert same(eo.minimize(bowl, **options), eo.minimize(bowl, bounds=BOX, budget=8, rng=0, batch=2))


def test_workers_stop_where_the_run_does():
    run = eo.minimize(bowl, bounds=BOX, budget=20, rng=0, workers=2, target=10.0)
    assert (run.nfev, run.message) == (1, "target of 10 reached")
    seen = []
    run = eo.minimize(
        bowl, bounds=BOX, budget=20, rng=0, batch=5, callback=lambda opt: seen.append(opt) or len(seen) == 7
    )
    assert run.nfev == 7


def test_an_error_in_a_worker_is_the_error():
    with pytest.raises(ArithmeticError, match="too cold") as raised:
        eo.minimize(unstable, bounds=BOX, budget=12, rng=0, workers=2)
    assert raised.value.__notes__[0].startswith("This happened in evaluation")
    run = eo.minimize(unstable, bounds=BOX, budget=12, rng=0, workers=2, catch=ArithmeticError)
    assert same(run, eo.minimize(unstable, bounds=BOX, budget=12, rng=0, batch=2, catch=ArithmeticError))


def test_deployments_in_parallel_are_counted_and_noise_is_that_of_the_evaluation():
    city = eo.datasets.grid_city(8, 3, rng=0)
    runs = []
    for workers in (1, 2):
        objective = eo.Objective(city, 3, "simulation", calls=300)
        runs.append(eo.minimize(objective, "genetic", budget=9, rng=0, workers=workers, batch=3))
        assert objective.evaluations == 9
    assert same(*runs)


def test_dask_evaluates_too(client):
    serial = eo.minimize(bowl, bounds=BOX, budget=7, rng=0, batch=2)
    with joblib.parallel_config("dask"):
        assert same(eo.minimize(bowl, bounds=BOX, budget=7, rng=0, workers=2), serial)
    gathered = lambda f, items: client.gather(client.map(f, items))
    assert same(eo.minimize(bowl, bounds=BOX, budget=7, rng=0, workers=gathered, batch=2), serial)


@pytest.mark.parametrize(
    ("options", "message"), [({"workers": 0}, "workers"), ({"workers": "two"}, "workers"), ({"batch": 0}, "batch")]
)
def test_bad_workers_are_refused(options, message):
    with pytest.raises(InputError, match=f"`{message}` must be a whole number"):
        eo.minimize(bowl, bounds=BOX, budget=3, **options)


# -- ask and tell -----------------------------------------------------------------------------------------------------


def test_ask_and_tell_by_name():
    optimizer = RandomPoints(lambda **inputs: 0.0, bounds=INPUTS, rng=0)
    optimizer.enqueue([{"rate": 0.1, "layers": 2, "units": 8, "solver": "sgd", "shuffle": True, "decay": 0.0}])
    x = optimizer.ask()
    assert optimizer.space.named(x)["solver"] == "sgd"
    optimizer.tell(optimizer.space.named(x), 1.0)
    optimizer.tell(optimizer.ask(), np.array([0.5]))
    assert optimizer.values == [1.0, 0.5]
    assert len(optimizer.pending) == 0
