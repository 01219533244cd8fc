"""What every search returns."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False, repr=False)
class Run:
    """Outcome of a search.

    Attributes
    ----------
    x : ndarray of int, shape (p,)
        Best deployment found.
    fun : float
        Its value.
    nfev : int
        Deployments evaluated.
    message : str
        Why the search ended, and whether the optimum is proven.
    history : DataFrame
        From `emsopt.minimize` one row an evaluation: its number ``evaluation``, ``sites`` (tuple), ``value``, the
        ``best`` value so far, and ``seconds`` since the start. From `local_search` and `best_deployment` one row a
        step: ``evaluations`` so far and ``best``.
    """

    x: np.ndarray
    fun: float
    nfev: int
    message: str
    history: object

    def __repr__(self):
        return f"<Run: {self.fun:.6g} at {self.x.tolist()} after {self.nfev} evaluations; {self.message}>"
