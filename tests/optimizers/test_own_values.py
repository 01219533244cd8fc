"""Values of a user's own function, failures, errors and noise among them; and how runs end."""

import sys
import time

import numpy as np
import pytest
from own_functions import BOX, bowl, evaluations_on_file, half, same, unstable
from refusals import refused

import emsopt as eo
from emsopt.errors import ResumeWarning
from emsopt.optimizers import BOKEAuto, Integer
from emsopt.optimizers.boxes._base import RandomPoints
from emsopt.optimizers.evaluations import StoppingRule


@pytest.mark.parametrize("method", ["boke-auto", "boke", "gp-ei", "random"])
def test_a_failed_evaluation_is_recorded_counted_and_passed_over(method):
    run = eo.minimize(half, method, bounds=BOX, budget=20, rng=0)
    failed = run.history["value"].isna()
    assert (run.nfev, run.success) == (20, True)
    assert 0 < failed.sum() <= 14
    assert run.fun == np.nanmin(run.history["value"]) == half(run.x)
    assert f"; {failed.sum()} of 20 evaluations gave no finite value, the first nan at [" in run.message
    np.testing.assert_array_equal(run.history["best"], run.history["value"].cummin().ffill())  # NaN before the first


def test_failures_do_not_keep_a_method_from_the_best_point_beside_them():
    assert eo.minimize(half, bounds=BOX, budget=50, rng=0, target=0.05).fun <= 0.05  # 0.04 at the border


@pytest.mark.parametrize("noisy", [False, True])
@pytest.mark.parametrize("method", ["boke", "boke-auto", "gp-ei", "kr-ucb"])
def test_a_penalty_may_be_the_largest_float(method, noisy):
    big = sys.float_info.max
    f = lambda x: big if x[0] > 0.6 else -big if x[0] < 0.1 else (x[0] - 0.3) ** 2 - 5
    run = eo.minimize(f, method, bounds=[(0, 1)], budget=9, rng=1, noisy=noisy)
    assert run.nfev == 9
    assert noisy or run.fun == run.history["value"].min()


@pytest.mark.parametrize("bad", [-np.inf, np.float32("nan"), np.array([np.inf])])
def test_without_a_finite_value_a_run_has_no_success(bad):
    run = eo.minimize(lambda x: bad, bounds=BOX, budget=8, rng=0)
    assert (run.x, run.success, run.nfev) == (None, False, 8)
    assert np.isnan(run.fun)
    assert np.isnan(run.history["best"]).all()
    np.testing.assert_array_equal(run.history["value"], np.full(8, np.ravel(bad)[0]))
    assert "no finite value after 8 evaluations" in repr(run)


def test_errors_are_caught_only_if_wanted(tmp_path):
    options = {"bounds": BOX, "budget": 20, "rng": 0, "checkpoint": tmp_path / "run.jsonl"}
    with pytest.raises(ArithmeticError, match="too cold") as raised:
        eo.minimize(unstable, **options)
    done = len(evaluations_on_file(options["checkpoint"]))
    assert raised.value.__notes__[0].startswith(f"This happened in evaluation {done + 1}, at [0.")
    for catch in (ValueError, (KeyError, TypeError)):
        with pytest.raises(ArithmeticError):
            eo.minimize(unstable, **options, catch=catch)
    run = eo.minimize(unstable, **options, catch=(ArithmeticError,))
    failed = run.history["error"] == "ArithmeticError: too cold"
    assert failed.equals(run.history["value"].isna())
    assert 0 < failed.sum() < run.nfev == 20
    assert set(run.history["error"][~failed]) == {""}
    assert "the first ArithmeticError: too cold at [" in run.message
    assert same(eo.minimize(unstable, **options, catch=ArithmeticError), run)


def test_an_array_of_one_number_is_a_value_and_what_is_no_number_is_told_with_its_point():
    plain = eo.minimize(bowl, "random", bounds=BOX, budget=5, rng=0)
    for wrap in (np.float32, lambda v: [v], lambda v: np.array([[v]])):
        run = eo.minimize(lambda x, wrap=wrap: wrap(bowl(x)), "random", bounds=BOX, budget=5, rng=0)
        np.testing.assert_allclose(run.history["value"], plain.history["value"], rtol=1e-6)
        assert type(run.fun) is float
    for bad, shown in (
        ("high", r"'high' \(str\)"),
        (None, r"None \(NoneType\)"),
        ([1.0, 2.0], r"\[1\.0, 2\.0\] \(list\)"),
        (1j, r"1j \(complex\)"),
        (np.array([]), r"array\(\[\], dtype=float64\) \(ndarray\)"),
    ):
        message = rf"must return a number.* at \[0\.\d+, 0\.\d+\] it returned .*{shown}"
        refused(message, eo.minimize, lambda x, bad=bad: bad, bounds=BOX, budget=5, rng=0)


def test_two_values_at_one_point_name_noisy(tmp_path):
    optimizer = BOKEAuto(bowl, bounds=BOX, sense="min", rng=0)
    optimizer.tell([0.5, 0.5], 1.0)
    optimizer.tell([0.5, 0.5], 1.0)
    refused(r"two values at one point: 1 and 2 at \[0\.5, 0\.5\]\. .* pass noisy=True", optimizer.tell, [0.5, 0.5], 2.0)
    twice = {"bounds": BOX, "budget": 6, "rng": 0, "initial": [([0, 0], 1.0), ([0, 0], 3.0)]}
    refused("pass noisy=True", eo.minimize, bowl, **twice)
    assert eo.minimize(bowl, **twice, noisy=True).success
    rng = np.random.default_rng(0)
    noise = lambda x: rng.normal()
    options = {"bounds": BOX, "rng": 0, "checkpoint": tmp_path / "run.jsonl"}
    eo.minimize(noise, **options, budget=3)
    refused(r"is of another function: at .* pass noisy=True", eo.minimize, noise, **options, budget=5)
    assert eo.minimize(noise, **options, budget=6, noisy=True).nfev == 6
    refused("of another function", eo.minimize, noise, **options, budget=7)


def test_a_lucky_value_does_not_reach_the_target_of_a_noisy_run():
    """The bowl is at least 0: with noise, one value reaches -0.4 by luck, but not the mean of five at one point."""
    rng = np.random.default_rng(0)
    options = {"method": "random", "bounds": BOX, "budget": 40, "rng": 0, "noisy": True}
    noise = lambda x: bowl(x) + 0.3 * rng.standard_normal()
    lucky, real = (eo.minimize(noise, **options, target=target) for target in (-0.4, 0.3))
    assert lucky.best_observed_value < -0.4
    assert (lucky.nfev, lucky.message) == (40, "budget of 40 evaluations used")
    assert lucky.history["x"].value_counts().max() == 5
    assert (real.message, real.fun <= 0.3, real.nfev < 40) == ("target of 0.3 reached", True, True)


def test_a_function_with_another_name_resumes_if_it_has_the_same_value(tmp_path):
    renamed = lambda x: bowl(x)
    options = {"bounds": BOX, "rng": 0, "checkpoint": tmp_path / "run.jsonl"}
    eo.minimize(bowl, **options, budget=5)
    with pytest.warns(ResumeWarning, match="written with the function 'bowl', now it is 'test_a_function_with"):
        run = eo.minimize(renamed, **options, budget=9)
    assert same(run, eo.minimize(bowl, bounds=BOX, budget=9, rng=0))
    refused("is of another function", eo.minimize, lambda x: 1 + bowl(x), **options, budget=9)
    noisy = options | {"checkpoint": tmp_path / "noisy.jsonl", "noisy": True, "budget": 3}
    eo.minimize(bowl, **noisy)
    refused("belongs to another run: its function is 'bowl'", eo.minimize, renamed, **noisy)  # no value could tell


# -- how runs end

FOUR = {"k": Integer(0, 3)}


def test_the_optimum_is_claimed_only_if_every_value_is_known():
    number, lost, failing = lambda k: float(k), lambda k: np.nan if k == 2 else k, lambda k: k / 0
    for function, unknown in ((lost, 1), (lambda k: np.nan, 4), (failing, 4)):
        run = eo.minimize(function, bounds=FOUR, budget=10, rng=0, catch=ZeroDivisionError)
        assert (run.nfev, run.success) == (4, unknown < 4)
        ends = f"{unknown} without a value; {unknown} of 4 evaluations gave no"
        assert run.message.startswith(f"every allowed point asked for; {ends}")
    asked, told = (RandomPoints(number, bounds=FOUR, sense="min", rng=0) for _ in range(2))
    asked.enqueue({"k": 0})
    assert asked.ask() == {"k": 0}  # and its value is never told
    told.tell({"k": 0}, 0.0)  # better than what the run finds
    for optimizer, ends in ((asked, "; 1 without a value"), (told, "")):
        run = eo.minimize(number, optimizer, budget=10, rng=0)
        assert (run.fun, run.message) == (1.0, f"every allowed point asked for{ends}")


@pytest.mark.parametrize("batch", [1, 4])
def test_a_run_ends_if_no_further_allowed_point_is_found(batch, monkeypatch):
    """Five of ten thousand points are allowed, here too many to list and too few for random points to meet."""
    monkeypatch.setattr("emsopt.problems.box.MAX_TRIES", 30)
    monkeypatch.setattr("emsopt.optimizers.ask_tell.MAX_DRAWS", 40)
    for module in ("problems.box", "optimizers.ask_tell"):
        monkeypatch.setattr(f"emsopt.{module}.MAX_LISTED", 1000)
    options = {"budget": 20, "rng": 0, "batch": batch}
    inputs, total = {f"x{k}": Integer(0, 9) for k in range(4)}, lambda **x: sum(x.values())
    few = {"bounds": inputs, "constraints": lambda **x: total(**x) <= 1, "x0": dict.fromkeys(inputs, 0)}
    run = eo.minimize(total, "random", **few, **options)
    assert (run.nfev, run.fun) == (5, 0.0)
    assert run.message == "no point was found that is allowed and has not been asked for yet"
    monkeypatch.setattr("emsopt.optimizers.ask_tell.MAX_DRAWS", 5)
    equality = {"bounds": BOX, "constraints": lambda x: bool(x.sum() == 0.5), "x0": [0.25, 0.25]}
    run = eo.minimize(bowl, "random", **equality, **options)
    assert (run.nfev, run.x.tolist()) == (1, [0.25, 0.25])


def test_what_arrived_before_an_error_is_told_and_nothing_is_left_pending():
    broken = [2]

    def f(k):
        if k in broken:
            raise OSError("the disk is full")
        return float(k)

    optimizer = RandomPoints(f, bounds=FOUR, sense="min", rng=0)
    options = {"x0": [{"k": k} for k in (2, 1, 3, 0)], "batch": 4}
    with pytest.raises(OSError, match="the disk is full"):
        eo.minimize(f, optimizer, budget=4, **options, workers=lambda f, items: map(f, list(items)[::-1]))
    assert len(optimizer.values) == len(optimizer.taken) == 3
    broken.clear()
    assert eo.minimize(f, optimizer, budget=10).nfev == 1, "the point of the error is asked for again"


def test_no_evaluation_but_the_first_begins_after_the_time_limit():
    class Slow(RandomPoints):
        def _propose(self):
            time.sleep(1.0 * bool(self.values))
            return super()._propose()

    run = eo.minimize(bowl, Slow(bowl, bounds=BOX, sense="min", rng=0), budget=9, time_limit=0.9)
    assert (run.nfev, run.message) == (1, "time limit of 0.9 s reached")


def test_the_target_of_a_noisy_run_is_checked_at_its_end():
    """A check that was made shortly before does not replace the last one."""

    class Fixed(RandomPoints):
        def _estimates(self):
            return np.full(len(self.values), self.estimate)

    optimizer, given = Fixed(bounds=BOX, sense="min", noisy=True, rng=0), []
    reason = StoppingRule(optimizer, 0.0, given)
    for k in range(100):
        optimizer.tell([0.5, 0.5], float(k - 50))
        given.append((optimizer.told[-1], float(k - 50)))
    for optimizer.estimate, last, end in ((1.0, False, ""), (-1.0, False, ""), (-1.0, True, "target of 0 reached")):
        assert reason(last) == end  # in between it is checked again after five more values


def test_a_callback_stops_a_run_also_as_in_scipy_and_at_the_target():
    def callback(optimizer):
        if len(optimizer.values) == 3:
            raise StopIteration

    for stop, target, nfev in ((lambda _: True, 9.0, 1), (callback, None, 3)):
        run = eo.minimize(bowl, bounds=BOX, budget=9, rng=0, target=target, callback=stop)
        assert (run.nfev, run.message) == (nfev, "stopped by the callback")


def test_another_function_is_recognised_at_whatever_is_first_on_file(tmp_path):
    """In parallel, later evaluations may be on file before the first."""
    file, options = tmp_path / "run.jsonl", {"bounds": BOX, "budget": 8, "rng": 0, "batch": 4}
    eo.minimize(bowl, **options, checkpoint=file)
    head, _, *lines = file.read_text().splitlines(keepends=True)
    file.write_text(head + "".join(lines[:3]))
    refused("is of another function", eo.minimize, lambda x: 1 + bowl(x), **options, checkpoint=file)
    assert evaluations_on_file(file) == [2, 3, 4]
