"""Values of a user's own function: failures, errors, what counts as a value, and noise."""

import sys

import numpy as np
import pytest
from own_functions import BOX, bowl, evaluations_on_file, half, same, unstable
from refusals import refused

import emsopt as eo
from emsopt.errors import InputError, ResumeWarning
from emsopt.optimizers import BOKEAuto


@pytest.mark.parametrize("method", ["boke-auto", "boke", "gp-ei", "random"])
def test_a_failed_evaluation_is_recorded_counted_and_passed_over(method):
    run = eo.minimize(half, method, bounds=BOX, budget=20, rng=0)
    failed = run.history["value"].isna()
    assert (run.nfev, run.success) == (20, True)
    assert 0 < failed.sum() <= 14
    assert run.fun == np.nanmin(run.history["value"]) == half(run.x)
    assert f"; {failed.sum()} of 20 evaluations gave no finite value, the first nan at [" in run.message
    best = run.history["value"].cummin().ffill()
    np.testing.assert_array_equal(run.history["best"], best)  # NaN before the first value


def test_failures_do_not_keep_a_method_from_the_best_point_beside_them():
    run = eo.minimize(half, bounds=BOX, budget=50, rng=0, target=0.05)  # 0.04 at the border of what fails
    assert run.fun <= 0.05


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


@pytest.mark.parametrize("wrap", [np.float32, lambda v: [v], lambda v: np.array([[v]])])
def test_an_array_of_one_number_is_a_value(wrap):
    run = eo.minimize(lambda x: wrap(bowl(x)), "random", bounds=BOX, budget=5, rng=0)
    plain = eo.minimize(bowl, "random", bounds=BOX, budget=5, rng=0)
    np.testing.assert_allclose(run.history["value"], plain.history["value"], rtol=1e-6)
    assert type(run.fun) is float


@pytest.mark.parametrize(
    ("bad", "shown"),
    [
        ("high", r"'high' \(str\)"),
        (None, r"None \(NoneType\)"),
        ([1.0, 2.0], r"\[1\.0, 2\.0\] \(list\)"),
        (1j, r"1j \(complex\)"),
        (np.array([]), r"array\(\[\], dtype=float64\) \(ndarray\)"),
    ],
)
def test_what_is_no_number_is_told_with_its_point(bad, shown):
    with pytest.raises(InputError, match=rf"must return a number.* at \[0\.\d+, 0\.\d+\] it returned .*{shown}"):
        eo.minimize(lambda x: bad, bounds=BOX, budget=5, rng=0)


def test_two_values_at_one_point_name_noisy(tmp_path):
    optimizer = BOKEAuto(bowl, bounds=BOX, sense="min", rng=0)
    optimizer.tell([0.5, 0.5], 1.0)
    optimizer.tell([0.5, 0.5], 1.0)
    refused(r"two values at one point: 1 and 2 at \[0\.5, 0\.5\]\. .* pass noisy=True", optimizer.tell, [0.5, 0.5], 2.0)
    refused("pass noisy=True", eo.minimize, bowl, bounds=BOX, budget=3, initial=[([0, 0], 1.0), ([0, 0], 3.0)])
    twice = [([0, 0], 1.0), ([0, 0], 3.0)]
    assert eo.minimize(bowl, bounds=BOX, budget=6, initial=twice, noisy=True, rng=0).success
    rng, file = np.random.default_rng(0), tmp_path / "run.jsonl"
    eo.minimize(lambda x: rng.normal(), bounds=BOX, budget=3, rng=0, checkpoint=file)
    with pytest.raises(InputError, match=r"is of another function: at .* pass noisy=True"):
        eo.minimize(lambda x: rng.normal(), bounds=BOX, budget=5, rng=0, checkpoint=file)
    assert eo.minimize(lambda x: rng.normal(), bounds=BOX, budget=6, rng=0, checkpoint=file, noisy=True).nfev == 6
    refused("of another function", eo.minimize, lambda x: rng.normal(), bounds=BOX, budget=7, rng=0, checkpoint=file)


def test_a_lucky_value_does_not_reach_the_target_of_a_noisy_run():
    """The bowl is at least 0: with noise, one value reaches -0.4 by luck, but not the mean of five at one point."""
    rng = np.random.default_rng(0)
    noisy = lambda x: bowl(x) + 0.3 * rng.standard_normal()
    run = eo.minimize(noisy, "random", bounds=BOX, budget=40, rng=0, noisy=True, target=-0.4)
    assert run.best_observed_value < -0.4
    assert (run.nfev, run.message) == (40, "budget of 40 evaluations used")
    assert run.history["x"].value_counts().max() == 5
    run = eo.minimize(noisy, "random", bounds=BOX, budget=40, rng=0, noisy=True, target=0.3)
    assert (run.message, run.fun <= 0.3, run.nfev < 40) == ("target of 0.3 reached", True, True)


def test_a_function_with_another_name_resumes_if_it_has_the_same_value(tmp_path):
    def renamed(x):
        return bowl(x)

    options = {"bounds": BOX, "rng": 0, "checkpoint": tmp_path / "run.jsonl"}
    eo.minimize(bowl, **options, budget=5)
    with pytest.warns(ResumeWarning, match="written with the function 'bowl', now it is 'test_a_function_with"):
        run = eo.minimize(renamed, **options, budget=9)
    assert same(run, eo.minimize(bowl, bounds=BOX, budget=9, rng=0))
    refused("is of another function", eo.minimize, lambda x: 1 + bowl(x), **options, budget=9)
    noisy = {**options, "checkpoint": tmp_path / "noisy.jsonl", "noisy": True}
    eo.minimize(bowl, **noisy, budget=3)
    with pytest.raises(InputError, match="belongs to another run: its function is 'bowl'"):  # no value could tell
        eo.minimize(renamed, **noisy, budget=3)
