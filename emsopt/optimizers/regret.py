"""Regret of searches: evaluating deployment x costs f(x) - f*, with f* the optimum."""

import math
from typing import Any

import numpy as np
from scipy.special import stdtrit

from .. import _validate
from .._types import ArrayLike, FloatArray
from ..errors import InputError


def empirical_regret(runs: Any, optimum: float, kind: str = "cumulative") -> FloatArray:
    """Return the regret of one or several runs after each evaluation, shape (R, T); R = 1 for one run.

    Parameters
    ----------
    runs : Run, array_like of shape (T,) or (R, T), or list of these
        Values in the order of evaluation, min, free of noise. Runs of unequal length are cut to the shortest.
    optimum : float
        f*, or the best known value, min; no value may be below it.
    kind : {"cumulative", "average", "simple"}
        Sum over the evaluations so far; this sum divided by their number; or best value so far minus the optimum.

    Examples
    --------
    >>> empirical_regret([7.0, 6.0, 6.5], 6.0)
    array([[1. , 1. , 1.5]])
    """
    _validate.choice(kind, "kind", ("cumulative", "average", "simple"))
    several = isinstance(runs, (list, tuple)) and runs and (hasattr(runs[0], "history") or np.ndim(runs[0]))
    rows = [
        _validate.real_array(run.history["value"] if hasattr(run, "history") else run, "runs", (None,))
        for run in (runs if several or np.ndim(runs) == 2 else [runs])
    ]
    shortest = min(map(len, rows))
    values = np.array([row[:shortest] for row in rows])
    optimum = _validate.finite_number(optimum, "optimum")
    if values.min() < optimum - 1e-9 * max(1.0, abs(optimum)):  # an optimum rounded otherwise is no error
        got = f"got {optimum:g} and a value of {values.min():g}"
        raise InputError(
            f"`optimum` must be at most every value; {got}. Pass noise-free values if the objective is noisy."
        )
    losses = np.maximum(values - optimum, 0)  # at least 0, in spite of this tolerance
    if kind == "simple":
        return np.minimum.accumulate(losses, axis=1)
    total = losses.cumsum(axis=1)
    return total if kind == "cumulative" else total / np.arange(1, total.shape[1] + 1)


def confidence_band(curves: ArrayLike) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return mean, low and high, each (T,), of replicated curves, (R, T): a 95 % confidence band by Student's t."""
    curves = _validate.real_array(curves, "curves", (None, None))
    mean = curves.mean(axis=0)
    half = np.zeros_like(mean)
    if len(curves) > 1:
        half = stdtrit(len(curves) - 1, 0.975) * curves.std(axis=0, ddof=1) / math.sqrt(len(curves))
    return mean, mean - half, mean + half
