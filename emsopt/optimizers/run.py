"""`Run`, the result of every search."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .._types import FloatArray, IntArray

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False, repr=False)
class Run:
    """Outcome of a search.

    Attributes
    ----------
    x : ndarray
        Recommended candidate: the sites of a deployment, shape (p,), or a point of a box, shape (d,). Without noise it
        is the best one evaluated. With noise it is the evaluated one with the best estimate of a model, see
        `AskTell.recommend`.
    fun : float
        Value of ``x``; with noise, the model's estimate of it.
    best_observed : ndarray
        Candidate with the best value observed. Without noise it is ``x``. With noise it is the luckiest one: its value
        is too good on average.
    best_observed_value : float
        Value observed at ``best_observed``.
    nfev : int
        Number of evaluations.
    message : str
        Why the search ended, and whether the optimum is proven.
    history : DataFrame
        From `emsopt.minimize` and `emsopt.maximize`, one row per evaluation: its number ``evaluation``, ``sites`` or
        ``x`` (tuple), ``value``, the ``best`` value so far, and ``seconds`` since the start. From `local_search` and
        `best_deployment`, one row per step: ``evaluations`` so far and ``best``.
    """

    x: IntArray | FloatArray
    fun: float
    nfev: int
    message: str
    history: pd.DataFrame
    best_observed: IntArray | FloatArray
    best_observed_value: float

    def __repr__(self) -> str:
        x = self.x.tolist() if self.x.dtype.kind == "i" else [float(f"{value:.6g}") for value in self.x]
        return f"<Run: {self.fun:.6g} at {x} after {self.nfev} evaluations; {self.message}>"
