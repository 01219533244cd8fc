"""Evaluate the candidates of a run in batches, also in parallel, and store each result when it arrives.

Values are told and recorded in the order of the candidates, so that a run does not depend on how many workers evaluate
a batch. An interrupted run loses only the evaluations that were under way.

The outcome of an evaluation, which checkpoints store, is a number, or a text if there is no value: "nan", "inf",
"-inf", or the type and message of an error that the caller wants caught.
"""

import os
import pickle
import traceback
from collections.abc import Callable, Generator, Iterable, Iterator
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from .._running.checkpoint import RunFile, is_number
from .._running.loop import Steps
from .._running.parallel import Workers
from ..errors import InputError, NoCandidateError, ResumeWarning, _validate, warn
from ..errors._types import FloatArray, IntArray
from ..evaluators.objective import Objective
from ..problems import Problem
from .ask_tell import AskTell
from .boxes._base import BoxObjective

Observations: TypeAlias = list[tuple[Any, float]]  # candidates of a run with their values, in order
Outcome: TypeAlias = float | str
ErrorTypes: TypeAlias = type[Exception] | tuple[type[Exception], ...]

Candidate: TypeAlias = IntArray | FloatArray
Trial: TypeAlias = tuple[int, Any]  # number of an evaluation, and its candidate
Task: TypeAlias = Callable[[Trial], Outcome]
ParallelMap: TypeAlias = Callable[[Callable[[Trial], Any], Iterable[Trial]], Iterable[Any]]

MAX_MESSAGE_LENGTH = 500  # characters of an error's message that are stored: some messages hold whole arrays
DEFAULT_BATCH = 4  # candidates asked for at once by default, with any number of workers but one
CONFIRMING_VALUES = 5  # of the recommended candidate of a noisy run, before the target counts as reached


def batch_size(file: RunFile, workers: Workers, batch: int) -> int:
    """Return the batch size stored in a run's file, or ``batch`` if the run is new; warn if workers stay idle."""
    size: int = file.header.get("batch", batch)
    if size == 1 != workers and file.rows:
        warn(
            f"the checkpoint {file.path} is of a run that evaluates one candidate at a time, so `workers` has no "
            "effect. To evaluate in parallel, start another run with its result as `initial`.",
            ResumeWarning,
        )
    elif isinstance(workers, int) and workers > size:
        message = f"only {size} of {workers} workers are used, as batch={size}. Pass batch={workers} to use all."
        warn(message, UserWarning)
    return size


def run_evaluations(
    steps: Steps,
    optimizer: AskTell[Any],
    task: Task,
    parallel_map: ParallelMap,
    batch: int,
    budget: int,
    reason: Callable[[bool], str],
) -> Iterator[tuple[Candidate, Outcome]]:
    """Ask for candidates in batches; yield each with the outcome of its evaluation until there is a reason to end.

    A batch is always completed, unless the time is up. If an evaluation raises an error, or at Ctrl-C, the results that
    have arrived are yielded first. ``parallel_map`` is like `map`, with results in any order; ``reason`` is called
    before each batch with whether the budget is used, and returns the reason to end, or "".
    """
    file = steps.file
    if file.rows:
        _check_same_function(steps, optimizer, task)
    while not steps.ended and (proposed := _next_batch(steps, optimizer, batch, budget, reason)):
        numbered = dict(enumerate(proposed, steps.number + 1))
        left = [(number, x) for number, x in numbered.items() if number not in file.rows]
        outcomes = {number: file.rows[number]["value"] for number in numbered if number in file.rows}
        arriving, raised = _evaluate_batch(steps, optimizer, task, parallel_map, left), None
        try:
            for number, x in numbered.items():
                raised = _collect_until(arriving, outcomes, number) or raised
                if number in outcomes:
                    steps.number = number
                    yield _stored_candidate(steps, optimizer, x) if number in file.rows else x, outcomes[number]
        finally:
            for x in proposed:  # left without an outcome: they may be asked for again
                optimizer.withdraw(x)
        if raised:
            raise raised
        # a map of the user may drop items, and the run would silently have gaps
        missing = len(numbered) - len(outcomes)
        if missing and not steps.ended:
            got = f"got {len(left) - missing} of {len(left)}"
            raise InputError(f"`workers` must return the result of every item, as `map` does; {got}.")


def _collect_until(
    arriving: Iterator[tuple[int, Outcome]], outcomes: dict[int, Outcome], number: int
) -> BaseException | None:
    """Add numbered outcomes to ``outcomes`` as they arrive, up to that of ``number``; return the error met, if any."""
    try:
        while number not in outcomes and (pair := next(arriving, None)):
            outcomes.update([pair])
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - the caller raises it
        return error
    return None


def _next_batch(
    steps: Steps, optimizer: AskTell[Any], batch: int, budget: int, reason: Callable[[bool], str]
) -> list[Candidate]:
    """Return the candidates of the next batch; if there is a reason to end, write it to ``steps`` and return []."""
    used = steps.number >= budget
    end = reason(used)
    if not (end or used):
        try:
            return [optimizer.space.canonical(x) for x in optimizer.ask(min(batch, budget - steps.number))]
        except NoCandidateError as error:
            end = str(error).removesuffix(".")
    steps.message = end or steps.message
    return []


def _evaluate_batch(
    steps: Steps, optimizer: AskTell[Any], task: Task, parallel_map: ParallelMap, left: list[Trial]
) -> Generator[tuple[int, Outcome]]:
    """Evaluate numbered candidates, ``left``; store each outcome as it arrives and yield it, and raise errors last."""
    objective, xs, failed = optimizer.objective, dict(left), dict[int, Exception]()
    counted = getattr(objective, "evaluations", 0)

    def trials_to_begin() -> Iterator[Trial]:
        for k, item in enumerate(left):
            # the first evaluation of a run is made whatever the time, so that there is a result
            if failed or ((k or steps.rows) and steps.time_is_up()):
                return
            yield item

    results = parallel_map(partial(_try_task, task, os.getpid()), trials_to_begin())
    try:
        for number, outcome in results:
            if isinstance(outcome, Exception):
                failed[number] = outcome
                continue
            counted += 1
            if isinstance(objective, Objective):  # copies with a seed and those in other processes count for themselves
                objective.evaluations = max(objective.evaluations, counted)
            steps.store(number, **{optimizer.column: xs[number].tolist()}, value=outcome)
            yield number, outcome
    except KeyboardInterrupt:
        if not failed:
            raise
    finally:
        getattr(results, "close", lambda: None)()  # stops a generator, and with it workers that still wait
    if failed:
        raise failed[min(failed)]  # the first by number, whichever came first


def _try_task(task: Task, process: int, trial: Trial) -> tuple[int, Outcome | Exception]:
    """Return the number of an evaluation with its outcome or error; ``process`` is the id of the main process."""
    try:
        return trial[0], task(trial)
    except Exception as error:  # noqa: BLE001 - raised again in the process that waits
        if os.getpid() != process:  # in the same process the traceback is intact
            text = traceback.format_exc()  # as the traceback itself stays behind
            try:
                pickle.loads(pickle.dumps(error))
            except Exception:  # noqa: BLE001 - an error that cannot be sent would end the process
                error = RuntimeError(f"{type(error).__name__}: {error}")
            error.add_note(text)
        return trial[0], error


def is_user_function(objective: Any) -> bool:
    """Return whether an objective is a noise-free function of the user, neither an `Objective` nor a `Problem`."""
    # these are identified by a checkpoint's first line, a function only by its value at a point
    return not objective.noisy and not isinstance(getattr(objective, "function", objective), (Objective, Problem))


def _stored_candidate(steps: Steps, optimizer: AskTell[Any], proposed: Candidate) -> Candidate:
    """Return the checkpoint's candidate for the current evaluation in place of ``proposed``; warn if they differ."""
    x = _read_candidate(steps.file, steps.number, optimizer)
    steps.file.warn_if_different(steps.number, proposed.tolist())
    if not np.array_equal(x, proposed):
        optimizer.withdraw(proposed)
    return x


def _read_candidate(file: RunFile, number: int, optimizer: AskTell[Any]) -> Candidate:
    """Return the candidate of evaluation ``number`` in the checkpoint; raise if it is not allowed."""
    try:
        return optimizer.space.canonical(file.rows[number][optimizer.column])
    except InputError as error:
        raise InputError(
            f"evaluation {number} in the checkpoint {file.path} is not allowed in this run: {error} Resume with the "
            "bounds, constraints and candidates of the run that wrote the file, or name another file."
        ) from None


def _check_same_function(steps: Steps, optimizer: AskTell[Any], task: Task) -> None:
    """Raise if a user's noise-free function does not reproduce the value of the first evaluation in the checkpoint."""
    file, number = steps.file, min(steps.file.rows)
    x = _read_candidate(file, number, optimizer)
    if not is_user_function(optimizer.objective):
        return
    value, again = outcome_value(file.rows[number]["value"]), outcome_value(task((number, x)))
    # loose, as rounding differs between processors and versions
    if not np.isclose(again, value, rtol=1e-3, atol=1e-9, equal_nan=True):
        raise InputError(
            f"the checkpoint {file.path} is of another function: at {optimizer.space.to_text(x)} it has {value:.6g}, "
            f"but this function gives {again:.6g}. Choose another file, or pass noisy=True if the values are noisy."
        )
    if "function" in file.differing:
        before, now = file.differing["function"]
        warn(
            f"the checkpoint {file.path} was written with the function {before!r}, now it is {now!r}. They agree "
            "at the first point on file, so the run goes on.",
            ResumeWarning,
        )


def evaluate_candidate(objective: Objective | BoxObjective, seed: int, catch: ErrorTypes, trial: Trial) -> Outcome:
    """Evaluate the candidate of a numbered trial; return the outcome. Number and ``seed`` determine the noise."""
    number, x = trial
    at = objective.space.to_text(x)
    if objective.noisy:
        noise = int(np.random.SeedSequence(seed, spawn_key=(number,)).generate_state(1, np.uint64)[0])
        objective = objective.with_seed(noise)
    try:
        result: Any = objective(x.copy())  # a copy, as the function may change its argument
    except catch as error:
        return f"{type(error).__name__}: {error}"[:MAX_MESSAGE_LENGTH]
    except Exception as error:
        error.add_note(f"This happened in evaluation {number}, at {at}.")
        raise
    value = _validate.single_number(result)
    if value is None:
        raise InputError(
            f"the objective must return a number, or an array of one number; at {at} it returned "
            f"{_validate.quote(result)} ({type(result).__name__})."
        )
    return value if is_number(value) else str(value)  # checkpoints hold no NaN, infinity or huge number


def is_outcome(value: object) -> bool:
    """Return whether a value in a checkpoint can be the outcome of an evaluation, a number or a text."""
    return not is_number(outcome_value(value)) if isinstance(value, str) else is_number(value)


def outcome_value(outcome: Outcome) -> float:
    """Return the outcome of an evaluation as a number; NaN for an error."""
    try:
        return float(outcome)
    except ValueError:
        return np.nan


def check_catch(catch: Any) -> ErrorTypes:
    """Return the argument ``catch`` of `minimize`, checked: a class of exceptions, or a tuple of them."""
    errors = catch if isinstance(catch, tuple) else (catch,)
    if not all(isinstance(error, type) and issubclass(error, Exception) for error in errors):
        raise InputError(
            f"`catch` must be exceptions to catch, such as (ValueError,); got {_validate.quote(catch)}. "
            "To catch all but Ctrl-C, pass Exception."
        )
    return errors


class StoppingRule:
    """Rule that ends a run if its target is reached or no candidate is left; it is called before each batch.

    With noise, values reach the target by chance: the candidate that the run would return must then reach it by the
    estimate of a model, and is evaluated again until it has ``CONFIRMING_VALUES`` values. As fitting the model takes
    long, this is checked again only when the number of values has grown by a twentieth, or at the end.
    """

    def __init__(self, optimizer: AskTell[Any], target: float | None, given: Observations) -> None:
        self.optimizer, self.target, self.given, self.pick_best = optimizer, target, given, optimizer.pick_best
        self.best, self.read, self.due = -np.inf if self.pick_best is max else np.inf, 0, 0.0

    def __call__(self, last: bool) -> str:
        """Return the reason to end, or "" to continue; ``last`` says whether the budget is used."""
        values = [value for _, value in self.given[self.read :]]
        self.best, self.read = self.pick_best([self.best, *values]), len(self.given)
        if self._reaches_target(self.best) and (last or self.read >= self.due) and self._confirm_target(last):
            return f"target of {self.target:g} reached"
        return self._exhaustion_message() if self.optimizer.exhausted else ""

    def _exhaustion_message(self) -> str:
        """Return the reason to end when no candidates are left; it says whether the optimum is known."""
        taken, noun = self.optimizer.taken.values(), self.optimizer.noun
        unknown = sum(value is None or not np.isfinite(value) for value in taken)  # None: asked for but never told
        if not unknown and self.pick_best([self.best, *self.optimizer.values]) == self.best:  # some are from before
            return f"every allowed {noun} evaluated, so this is the optimum"
        return f"every allowed {noun} asked for" + (f"; {unknown} without a value" if unknown else "")

    def _reaches_target(self, value: float) -> bool:
        return self.target is not None and self.pick_best(value, self.target) == value

    def _confirm_target(self, last: bool) -> bool:
        """Return whether the target counts as reached; with noise, enqueue evaluations to confirm it."""
        if not self.optimizer.objective.noisy:
            return True
        x, estimate = recommend_candidate(self.optimizer, self.given)
        missing = CONFIRMING_VALUES - sum(np.array_equal(x, other) for other, _ in self.given)
        self.due = 1.05 * self.read
        if not self._reaches_target(estimate) or missing <= 0:
            return self._reaches_target(estimate)
        if not last:
            self.optimizer.enqueue([x] * missing)  # before what the method would ask for
        self.due = self.read + missing
        return False


def recommend_candidate(optimizer: AskTell[Any], given: Observations) -> tuple[Any, float]:
    """Return the candidate among ``given`` that `AskTell.recommend` prefers, in canonical form, and its value."""
    x, estimate = optimizer.recommend({tuple(x.tolist()) for x, _ in given})
    return optimizer.space.canonical(x), estimate
