"""When a run of `minimize` ends by what it has found, and what it recommends then."""

from collections.abc import Callable
from typing import Any

import numpy as np

from .ask_tell import AskTell

Given = list[tuple[Any, float]]
"""Candidates of a run with their values, in order."""

CONFIRMED = 5
"""Number of values that the recommended candidate of a noisy run must have before the target counts as reached."""


def end_of(optimizer: AskTell[Any], target: float | None, given: Given) -> Callable[[bool], str]:
    """Return a function that returns why to end after a batch, or "". Its argument says if the budget is used.

    With noise, values reach the target by chance. The candidate that the run would return must then reach it by the
    estimate of a model; it is evaluated again until it has ``CONFIRMED`` values. As fitting the model takes longer than
    many an evaluation, this is checked again only when the number of values has grown by a twentieth, or at the end.

    Parameters
    ----------
    optimizer : AskTell
    target : float or None
    given : list of (candidate, value)
        To which the caller adds what is evaluated.
    """
    best, read, due = -np.inf if optimizer.better is max else np.inf, 0, 0.0

    def why(last: bool) -> str:
        nonlocal best, read, due
        best, read = optimizer.better([best, *(value for _, value in given[read:])]), len(given)
        value, missing = best, 0
        if target is not None and optimizer.better(value, target) == value and (last or len(given) >= due):
            if optimizer.objective.noisy:
                x, value = recommended(optimizer, given)
                due, missing = 1.05 * len(given), CONFIRMED - sum(np.array_equal(x, other) for other, _ in given)
            if optimizer.better(value, target) == value:
                if missing <= 0:
                    return f"target of {target:g} reached"
                if not last:
                    optimizer.enqueue([x] * missing)
                due = len(given) + missing
        if optimizer.exhausted:
            unknown = sum(value is None or not np.isfinite(value) for value in optimizer.taken.values())
            if not unknown and optimizer.better([best, *optimizer.values]) == best:  # values may come from before
                return f"every allowed {optimizer.noun} evaluated, so this is the optimum"
            return f"every allowed {optimizer.noun} asked for" + (f"; {unknown} without a value" if unknown else "")
        return ""

    return why


def recommended(optimizer: AskTell[Any], given: Given) -> tuple[Any, float]:
    """Return the candidate of a run that a model recommends, in canonical form, and its estimated value."""
    x, estimate = optimizer.recommend({tuple(x.tolist()) for x, _ in given})
    return optimizer.space.canonical(x), estimate
