"""How runs end: what is known then, what they claim, and what an error leaves behind."""

import json
import time

import numpy as np
import pytest
from own_functions import BOX, bowl, evaluations_on_file
from refusals import refused

import emsopt as eo
from emsopt.errors import InputError
from emsopt.optimizers import Categorical, Integer
from emsopt.optimizers.boxes._base import RandomPoints
from emsopt.optimizers.evaluations import StoppingRule

FOUR = {"k": Integer(0, 3)}


def identity(k):
    return float(k)


def fails(k):
    raise ValueError("never")


def test_the_optimum_is_claimed_only_if_every_value_is_known():
    functions = (lambda k: np.nan if k == 2 else float(k), 1), (lambda k: np.nan, 4), (fails, 4)
    for function, unknown in functions:
        run = eo.minimize(function, bounds=FOUR, budget=10, rng=0, catch=ValueError)
        assert (run.nfev, run.success) == (4, unknown < 4)
        ends = f"{unknown} without a value; {unknown} of 4 evaluations gave no"
        assert run.message.startswith(f"every allowed point asked for; {ends}")
    optimizer = RandomPoints(identity, bounds=FOUR, sense="min", rng=0)
    optimizer.enqueue({"k": 0})
    assert optimizer.ask() == {"k": 0}  # and its value is never told
    run = eo.minimize(identity, optimizer, budget=10, rng=0)
    assert (run.fun, run.message) == (1.0, "every allowed point asked for; 1 without a value")
    optimizer = RandomPoints(identity, bounds=FOUR, sense="min", rng=0)
    optimizer.tell({"k": 0}, 0.0)  # better than what the run finds
    run = eo.minimize(identity, optimizer, budget=10, rng=0)
    assert (run.fun, run.message) == (1.0, "every allowed point asked for")


@pytest.mark.parametrize("batch", [1, 4])
def test_a_run_ends_if_no_further_allowed_point_is_found(batch, monkeypatch):
    """Five of ten thousand points are allowed, here too many to list and too few for random points to meet."""
    monkeypatch.setattr("emsopt.problems.box.TRIES", 30)
    monkeypatch.setattr("emsopt.optimizers.ask_tell.DRAWS", 40)
    for module in ("problems.box", "optimizers.ask_tell"):
        monkeypatch.setattr(f"emsopt.{module}.MOST_LISTED", 1000)
    inputs, rule = {f"x{k}": Integer(0, 9) for k in range(4)}, lambda **x: sum(x.values()) <= 1
    start = dict.fromkeys(inputs, 0)
    total, options = lambda **x: sum(x.values()), {"bounds": inputs, "constraints": rule, "x0": start}
    run = eo.minimize(total, "random", **options, budget=20, rng=0, batch=batch)
    assert (run.nfev, run.fun) == (5, 0.0)
    assert run.message == "no point was found that is allowed and has not been asked for yet"
    monkeypatch.setattr("emsopt.optimizers.ask_tell.DRAWS", 5)
    equality = {"bounds": BOX, "constraints": lambda x: bool(x.sum() == 0.5), "x0": [0.25, 0.25]}
    run = eo.minimize(bowl, "random", **equality, budget=9, rng=0, batch=batch)
    assert (run.nfev, run.x.tolist()) == (1, [0.25, 0.25])


def test_what_arrived_before_an_error_is_told_and_nothing_is_left_pending():
    broken = True

    def workers(function, items):
        return [function(item) for item in reversed(items)]

    def f(k):
        if broken and k == 2:
            raise OSError("the disk is full")
        return float(k)

    optimizer = RandomPoints(f, bounds=FOUR, sense="min", rng=0)
    with pytest.raises(OSError, match="the disk is full"):
        eo.minimize(f, optimizer, budget=4, x0=[{"k": k} for k in (2, 1, 3, 0)], batch=4, workers=workers)
    assert len(optimizer.values) == len(optimizer.taken) == 3
    broken = False
    assert eo.minimize(f, optimizer, budget=10).nfev == 1, "the point of the error is asked for again"


def test_a_callback_stops_a_run_also_as_in_scipy_and_at_the_target():
    run = eo.minimize(bowl, bounds=BOX, budget=9, rng=0, target=9.0, callback=lambda _: True)
    assert (run.nfev, run.message) == (1, "stopped by the callback")

    def callback(optimizer):
        if len(optimizer.values) == 3:
            raise StopIteration

    run = eo.minimize(bowl, bounds=BOX, budget=9, rng=0, callback=callback)
    assert (run.nfev, run.message) == (3, "stopped by the callback")


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
    optimizer.estimate = 1.0
    assert reason(False) == ""
    optimizer.estimate = -1.0
    assert reason(False) == "", "checked again after five more values"
    assert reason(True) == "target of 0 reached"


def test_another_function_is_recognised_at_whatever_is_first_on_file(tmp_path):
    """In parallel, later evaluations may be on file before the first."""
    file, options = tmp_path / "run.jsonl", {"bounds": BOX, "budget": 8, "rng": 0, "batch": 4}
    eo.minimize(bowl, **options, checkpoint=file)
    head, *lines = file.read_text().splitlines(keepends=True)
    kept = head + "".join(line for line in lines if json.loads(line)["evaluation"] in (2, 3, 4))
    file.write_text(kept)
    refused("is of another function", eo.minimize, lambda x: 1 + bowl(x), **options, checkpoint=file)
    assert file.read_text() == kept
    assert len(evaluations_on_file(file)) == 3


@pytest.mark.parametrize("choices", [[None, 5, 10], ["a", None, "b"]])
def test_a_choice_of_none_stays_none_in_the_history(choices):
    options = {"method": "random", "bounds": {"c": Categorical(choices), "x": (0, 1)}, "rng": 0}
    run = eo.minimize(lambda c, x: x + (c is not None), **options, budget=12)
    assert set(map(type, run.history["c"])) == set(map(type, choices))
    further = eo.minimize(lambda c, x: x + (c is not None), **options, budget=2, initial=run)
    assert further.fun <= run.fun


def test_values_known_before_may_be_arrays_of_one_number():
    """A list holds pairs; only a tuple holds candidates and values."""
    for known in ([([0.1], [0.7]), ([0.5], [0.2])], ([[0.1], [0.5]], [[0.7], [0.2]])):
        run = eo.minimize(lambda x: 9.0, bounds=[(0, 1)], budget=1, rng=0, initial=known)
        assert (run.x.tolist(), run.fun) == ([0.5], 0.2)
    with pytest.raises(InputError, match=r"`initial\[1\]` must have shape"):
        eo.minimize(lambda x: 9.0, bounds=[(0, 1)], budget=1, rng=0, initial=[[[0.1], [0.5]], [0.7, 0.2]])


def test_no_evaluation_but_the_first_begins_after_the_time_limit():
    class Slow(RandomPoints):
        def _propose(self):
            time.sleep(0.3)
            return super()._propose()

    run = eo.minimize(bowl, Slow(bowl, bounds=BOX, sense="min", rng=0), budget=9, time_limit=0.4)
    assert (run.nfev, run.message) == (1, "time limit of 0.4 s reached")
