"""Evaluate a candidate of a run: what counts as a value, and which errors are caught.

The outcome of an evaluation is a number, or a text if there is no value: "nan", "inf", "-inf", or the type and message
of an error that the caller wants caught. Checkpoints store outcomes.
"""

from typing import Any, TypeAlias

import numpy as np

from .. import _validate
from .._running.checkpoint import is_number
from ..errors import InputError
from ..evaluators.objective import Objective
from .boxes.box import BoxObjective

Outcome: TypeAlias = float | str
Catch: TypeAlias = type[Exception] | tuple[type[Exception], ...]

LONGEST = 500  # characters of an error's message that are stored


def outcome_of(objective: Objective | BoxObjective, seed: int, catch: Catch, item: tuple[int, Any]) -> Outcome:
    """Evaluate a candidate of a run, given with the number of the evaluation.

    The noise of an Objective or a Problem depends only on the run's ``seed`` and this number.
    """
    number, x = item
    at = objective.space.shown(x)
    if objective.noisy:
        noise = int(np.random.SeedSequence(seed, spawn_key=(number,)).generate_state(1, np.uint64)[0])
        objective = objective.seeded(noise)
    try:
        result: Any = objective(x.copy())
    except catch as error:
        return f"{type(error).__name__}: {error}"[:LONGEST]
    except Exception as error:
        error.add_note(f"This happened in evaluation {number}, at {at}.")
        raise
    value = _validate.single_number(result)
    if value is None:
        raise InputError(
            f"the objective must return a number, or an array of one number; at {at} it returned "
            f"{_validate.shown(result)} ({type(result).__name__})."
        )
    return value if is_number(value) else str(value)


def is_outcome(value: object) -> bool:
    """Return whether a value in a checkpoint can be the outcome of an evaluation."""
    return not is_number(value_of(value)) if isinstance(value, str) else is_number(value)


def value_of(outcome: Outcome) -> float:
    """Return the value of an outcome; NaN for an error."""
    try:
        return float(outcome)
    except ValueError:
        return np.nan


def check_catch(catch: Any) -> Catch:
    """Return the errors to catch; raise unless they are classes of exceptions."""
    errors = catch if isinstance(catch, tuple) else (catch,)
    if not all(isinstance(error, type) and issubclass(error, Exception) for error in errors):
        raise InputError(
            f"`catch` must be exceptions to catch, such as (ValueError,); got {_validate.shown(catch)}. "
            "To catch all but Ctrl-C, pass Exception."
        )
    return errors
