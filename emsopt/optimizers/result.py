"""`Run`, the result of every search, and regret: evaluating a candidate x costs f(x) - f*, where f* is the optimum."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import stdtrit

from ..errors import InputError, _validate
from ..errors._types import ArrayLike, FloatArray

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False, repr=False)
class Run:
    """Outcome of a search.

    Attributes
    ----------
    x : ndarray or dict
        Recommended candidate: the sites of a deployment, shape (p,), or a point of a box, shape (d,); a dict from name
        to value if the inputs have names. Without noise it is the best one evaluated, with noise the evaluated one with
        the best estimate of a model. None if no finite value is known.
    fun : float
        Value of ``x``; with noise, the model's estimate of it. NaN if no finite value is known.
    best_observed, best_observed_value : ndarray or dict, float
        Candidate with the best value observed, and this value, which with noise is too good on average.
    nfev, message : int, str
        Number of evaluations, and why the search ended.
    history : DataFrame
        One row per evaluation: its number ``evaluation``, ``sites`` or ``x`` (tuple; with named inputs one column per
        name instead), ``value`` (NaN or infinite if it failed), the ``best`` value so far, and ``seconds`` since the
        start; with ``catch`` also ``error``. Of `local_search` and `best_deployment`: ``evaluations`` and ``best``.
    noisy, interrupted : bool
        Whether the same candidate could have different values, and whether Ctrl-C ended the search.
    sense : {"min", "max"}
        Whether the smallest or the largest value was searched for.
    """

    x: Any
    fun: float
    nfev: int
    message: str
    history: pd.DataFrame
    best_observed: Any
    best_observed_value: float
    noisy: bool = False
    interrupted: bool = False
    sense: str = "min"

    @property
    def success(self) -> bool:
        """Whether a finite value is known, from an evaluation or from ``initial``."""
        return bool(np.isfinite(self.fun))

    def __repr__(self) -> str:
        found = "no finite value"
        if self.success:
            found = f"{self.fun:.6g} at {_validate.quote(_round_candidate(self.x), most=200)}"
        return f"<Run: {found} after {self.nfev} evaluations, noisy={self.noisy}; {self.message}>"


def _round_candidate(x: Any) -> Any:
    """Return a candidate as a list or dict, with floats rounded to six significant digits."""
    if isinstance(x, dict):
        return {name: _round_candidate(value) for name, value in x.items()}
    if isinstance(x, np.ndarray):
        return [_round_candidate(value) for value in x.tolist()]
    return float(f"{x:.6g}") if isinstance(x, float) else x


def empirical_regret(runs: Any, optimum: float, kind: str = "cumulative") -> FloatArray:
    """Return the regret of one or several runs after each evaluation, shape (R, T); R = 1 for one run.

    Parameters
    ----------
    runs : Run, array_like of shape (T,) or (R, T), or list of these
        Noise-free values in the order of evaluation (min). Runs of unequal length are cut to the shortest.
    optimum : float
        f*, or the best known value (min); no value may be below it.
    kind : {"cumulative", "average", "simple"}
        Sum over the evaluations so far; this sum divided by their number; or best value so far minus the optimum.

    Examples
    --------
    >>> empirical_regret([7.0, 6.0, 6.5], 6.0)
    array([[1. , 1. , 1.5]])
    """
    _validate.choice(kind, "kind", ("cumulative", "average", "simple"))
    rows = _values_of_runs(runs)
    shortest = min(map(len, rows))
    values = np.array([row[:shortest] for row in rows])
    if values.min() < optimum - 1e-9 * max(1.0, abs(optimum)):  # an optimum rounded otherwise is no error
        got = f"got {optimum:g} and a value of {values.min():g}"
        raise InputError(f"`optimum` must be at most every value; {got}. If these are noisy, pass noise-free ones.")
    losses = np.maximum(values - optimum, 0)  # at least 0, in spite of this tolerance
    if kind == "simple":
        return np.minimum.accumulate(losses, axis=1)
    total = losses.cumsum(axis=1)
    return total if kind == "cumulative" else total / np.arange(1, total.shape[1] + 1)


def _values_of_runs(runs: Any) -> list[FloatArray]:
    """Return the values of each run, (T,), for any form of ``runs`` that `empirical_regret` takes."""
    if isinstance(runs, Run) or not any(isinstance(run, Run) or np.ndim(run) for run in runs):
        runs = [runs]
    values_of_runs = [run.history["value"] if isinstance(run, Run) else run for run in runs]
    return [_validate.real_array(values, "runs", (None,)) for values in values_of_runs]


def confidence_band(curves: ArrayLike) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the mean of R curves, (R, T), and the ends of its 95 % confidence interval by Student's t, each (T,)."""
    curves = _validate.real_array(curves, "curves", (None, None))
    mean = curves.mean(axis=0)
    half = np.zeros_like(mean)
    if len(curves) > 1:
        half = stdtrit(len(curves) - 1, 0.975) * curves.std(axis=0, ddof=1) / math.sqrt(len(curves))
    return mean, mean - half, mean + half
