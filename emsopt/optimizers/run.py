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
        Best candidate found: the sites of a deployment, shape (p,), or a point of a box, shape (d,).
    fun : float
        Value of ``x``.
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

    def __repr__(self) -> str:
        x = self.x.tolist() if self.x.dtype.kind == "i" else [float(f"{value:.6g}") for value in self.x]
        return f"<Run: {self.fun:.6g} at {x} after {self.nfev} evaluations; {self.message}>"
