"""`Run`, the result of every search."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _validate

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
    best_observed : ndarray or dict
        Candidate with the best value observed. Without noise it is ``x``. With noise it is the luckiest one: its value
        is too good on average.
    best_observed_value : float
        Value observed at ``best_observed``.
    nfev : int
        Number of evaluations.
    message : str
        Why the search ended, and whether the optimum is proven.
    history : DataFrame
        One row per evaluation: its number ``evaluation``, ``sites`` or ``x`` (tuple; with named inputs one column per
        name instead), ``value`` (NaN or infinite if it failed), the ``best`` value so far, and ``seconds`` since the
        start; with ``catch`` also ``error``. Of `local_search` and `best_deployment`: ``evaluations`` and ``best``.
    noisy : bool
        Whether the same candidate could have different values.
    interrupted : bool
        Whether Ctrl-C ended the search.
    sense : {"min", "max"}
        Whether the smallest or the largest value was searched for.

    Examples
    --------
    >>> import emsopt as eo
    >>> objective = eo.Objective(eo.datasets.grid_city(n_sites=6, units=2, rng=1), 2)
    >>> run = eo.minimize(objective, "local", budget=10, rng=0)
    >>> run.nfev, len(run.history), run.fun == objective(run.x)
    (10, 10, True)
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
        found = f"{self.fun:.6g} at {_validate.quote(_short(self.x), most=200)}" if self.success else "no finite value"
        return f"<Run: {found} after {self.nfev} evaluations, noisy={self.noisy}; {self.message}>"


def _short(x: Any) -> Any:
    """Return a candidate as a list or dict of numbers with six digits, and values of other types."""
    if isinstance(x, dict):
        return {name: _short(value) for name, value in x.items()}
    if isinstance(x, np.ndarray):
        return [_short(value) for value in x.tolist()]
    return float(f"{x:.6g}") if isinstance(x, float) else x
