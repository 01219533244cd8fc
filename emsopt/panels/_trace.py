"""Record what an optimizer evaluates and predicts step by step, as a table and in words; no widgets.

In each step, `Trace` asks the optimizer for a deployment, records its prediction, evaluates the deployment and passes
the value to the optimizer. Which predictions there are depends on the method:

==================  ==================================================================================
GP-pM, GP-zero      predicted mean and standard deviation; log expected improvement of swaps; trust region
SparBL, BOCS        value and largest coefficients of the model sampled last (one sample has no band)
others              no predictions, only evaluations
==================  ==================================================================================
"""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite, isnan, nan
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ..errors import InputError
from ..evaluators.metrics import metric_label
from ..optimizers import METHODS
from ._charts import place_counts, place_names

if TYPE_CHECKING:
    from .._types import FloatArray, IntArray, Rng, Sites
    from ..city import City
    from ..evaluators.metrics import Metric
    from ..evaluators.objective import Objective

COLUMNS = ["evaluation", "value", "best", "expected", "deviation", "edge", "restart", "initial", "own"]
MOST_BARS = 12


class Trace:
    """An optimizer run step by step, with its prediction for each evaluation.

    Parameters
    ----------
    objective : Objective
    method : str
        One of `METHODS`.
    rng : int or Generator, optional

    Attributes
    ----------
    optimizer : Optimizer
    asked : ndarray of int, shape (p,)
        Deployment evaluated last; empty before the first evaluation.
    centre : ndarray of int, shape (G,), or None
        Centre of the trust region when ``asked`` was chosen: the number of units in each of the G groups of
        interchangeable sites (`City.twin_groups`). None without a region.
    edge : float
        Largest Hamming distance from the centre in that region, where each moved unit counts two; NaN without a
        region.
    """

    def __init__(self, objective: Objective, method: str = "gp-pm", *, rng: Rng = None) -> None:
        self.optimizer: Any = METHODS[method](objective, rng=rng)
        self.asked: IntArray = np.empty(0, dtype=int)
        self.centre: IntArray | None = None
        self.edge = nan
        self._rows: list[tuple[object, ...]] = []
        self._coef: FloatArray | None = None  # coefficients of the model that SparBL sampled last
        self._intercept = nan

    @property
    def facts(self) -> pd.DataFrame:
        """One row per evaluation: ``evaluation, value, best, expected, deviation, edge, restart, initial, own``.

        ``evaluation`` counts from 1, ``value`` is the objective of the deployment evaluated, and ``best`` the smallest
        value so far. ``expected`` and ``deviation`` are the mean and standard deviation of this value that the method
        predicted before the evaluation (NaN without a model; a sampled model has no deviation). ``edge`` is that of the
        trust region after the evaluation (NaN without one). ``restart`` says whether the region was given up after this
        evaluation, ``initial`` whether the deployment belongs to the random initial design, ``own`` whether the user
        chose it.
        """
        return pd.DataFrame(self._rows, columns=COLUMNS)

    def step(self) -> None:
        """Evaluate the deployment that the optimizer proposes."""
        sites = self.optimizer.ask()
        coef = getattr(self.optimizer, "_coef", None)
        if coef is not self._coef:
            # The model is centred on the mean of the evaluations it was fitted to, which are all evaluations so far.
            means = self.optimizer.features(self.optimizer.sites).mean(axis=0)
            self._coef, self._intercept = coef, np.mean(self.optimizer.values) - means @ coef
        self._evaluate(sites, own=False)

    def evaluate(self, sites: Sites) -> None:
        """Evaluate the user's own deployment and pass the value to the optimizer.

        Raises
        ------
        InputError
            If the deployment is infeasible, or was evaluated before and the objective has no noise.
        """
        optimizer = self.optimizer
        placed: IntArray = optimizer.space.canonical(sites)
        known = [k for k, told in enumerate(optimizer.sites, 1) if (told == placed).all()]
        if known and not optimizer.objective.noisy:
            raise InputError(f"this deployment was already evaluated, as evaluation {known[0]}: move a unit.")
        self._evaluate(placed, own=True)

    def expectation(self, sites: IntArray) -> tuple[float, float]:
        """Return the predicted mean and standard deviation of a deployment's value.

        A linear model gives no standard deviation; it is NaN. Without a model, both are NaN.
        """
        if self._coef is not None:
            return float(self._intercept + self.optimizer.features([sites])[0] @ self._coef), nan
        if getattr(self.optimizer, "process", None) is not None:
            mean, deviation = self.optimizer.predict(sites[None])
            return float(mean[0]), float(deviation[0])
        return nan, nan

    def _region(self) -> tuple[IntArray | None, float, int]:
        """Return centre and edge of the trust region (None and NaN without one), and the number of earlier regions."""
        if getattr(self.optimizer, "centre", None) is None:
            return None, nan, 0
        return self.optimizer.centre, self.optimizer.edge, self.optimizer.restarts

    def _evaluate(self, sites: IntArray, *, own: bool) -> None:
        """Evaluate a deployment, pass the value to the optimizer, and record its prediction."""
        optimizer, told = self.optimizer, len(self.optimizer.values)
        expected = self.expectation(sites)
        self.asked = sites
        self.centre, self.edge, given_up = self._region()
        value = optimizer.objective(sites)
        optimizer.tell(sites, value)
        _, edge, now = self._region()
        initial = not own and told < getattr(optimizer, "initial", getattr(optimizer, "population", 0))
        self._rows.append((told + 1, value, optimizer.best[1], *expected, edge, now > given_up, initial, own))


def best_swaps(optimizer: Any, most: int = MOST_BARS) -> pd.DataFrame:
    """Return the relocations of one unit of the best deployment with the largest log expected improvement.

    Returns
    -------
    DataFrame
        Columns ``name`` ("from → to"), ``value`` (log expected improvement) and ``inside`` (whether the resulting
        deployment lies in the trust region), largest value first, at most ``most`` rows; empty without a model.
        Deployments evaluated before are left out, unless the objective has noise.
    """
    if optimizer.process is None:
        return pd.DataFrame()
    best, space, noisy = optimizer.best[0], optimizer.space, optimizer.objective.noisy
    near = [row for row in space.neighbours(best) if noisy or not optimizer.is_taken(row)]
    if not near:
        return pd.DataFrame()
    names, counts = np.array(place_names(space.city), dtype=object), space.group_counts(near)
    change, inside = counts - space.group_counts(best), np.abs(counts - optimizer.centre).sum(axis=1) <= optimizer.edge
    swaps = names[change.argmin(axis=1)] + " → " + names[change.argmax(axis=1)]
    frame = pd.DataFrame({"name": swaps, "value": optimizer.acquisition(near), "inside": inside})
    return frame.sort_values("value", ascending=False, kind="stable", ignore_index=True)[:most]


def largest_coefficients(optimizer: Any, most: int = MOST_BARS) -> pd.DataFrame:
    """Return the largest coefficients, in absolute value, of the model that SparBL sampled last.

    Returns
    -------
    DataFrame
        Columns ``name`` (of the feature: a place, a pair of places, two units at a place, or the cost of the nearest
        units) and ``value`` (its coefficient), largest absolute value first, at most ``most`` rows; empty before the
        first model. Features that are equal in all evaluated deployments are left out: the evaluations say nothing
        about their coefficients.
    """
    if not hasattr(optimizer, "_coef"):
        return pd.DataFrame()
    places = place_names(optimizer.space.city)
    names = [places[place] for place in optimizer._free]
    titles = names + [f"{names[i]} and {names[j]}" for i, j in zip(*optimizer._pairs, strict=True)]
    titles += [f"two at {names[k]}" for k in optimizer._several]
    titles += ["cost of the nearest unit", "cost of the second nearest"][: len(optimizer._coef) - len(titles)]
    varies = np.ptp(optimizer.features(optimizer.sites), axis=0) > 0
    frame = pd.DataFrame({"name": titles, "value": optimizer._coef})[varies]
    return frame.sort_values("value", key=lambda values: -values.abs(), kind="stable", ignore_index=True)[:most]


def measure(metric: Metric) -> tuple[int, str, int, str]:
    """Return how to display a metric's values: a factor, the unit, the number of digits and an axis label."""
    if metric == "mean_response":
        return 1, " min", 3, "Mean response (min)"
    if isinstance(metric, tuple) and metric[0] == "late":
        return 100, " %", 2, f"Responses of {metric[1]:g} min or more (%)"
    return 1, "", 4, "Mix of metrics" if isinstance(metric, Mapping) else metric_label(metric)


def sentence(facts: pd.DataFrame, metric: Metric = "mean_response") -> str:
    """Describe the last evaluation of a trace: its value, its prediction and the change of the trust region."""
    if facts.empty:
        return "Nothing is evaluated yet."
    factor, unit, digits, _ = measure(metric)
    row, last = facts.iloc[-1], facts.iloc[-2] if len(facts) > 1 else None
    who = ", your own" if row.own else ", of the random initial design" if row.initial else ""
    parts = [f"Evaluation {row.evaluation}{who}: {factor * row.value:.{digits}f}{unit}"]
    if last is not None:
        parts[0] += f", {_beside(row.value, last.best)}"
    if isfinite(row.deviation):
        band = f"{factor * row.expected:.{digits}f} ± {2 * factor * row.deviation:.{digits}f}{unit}"
        surprise = abs(row.value - row.expected) > 2 * row.deviation
        parts.append(f"expected {band}{', so a surprise' if surprise else ''}")
    elif isfinite(row.expected):
        parts.append(f"the sampled model predicted {factor * row.expected:.{digits}f}{unit}")
    parts.append(_region(row, nan if last is None else last.edge))
    return "; ".join(part for part in parts if part) + "."


def _beside(value: float, best: float) -> str:
    """Compare a value with the previous best in words; the difference is in per cent unless the previous best is 0."""
    off = abs(value - best)
    if off <= 1e-9 * max(1, abs(best)):
        return "as good as the best"
    share = 100 * off / abs(best) if best else nan
    much = f"{share:.{'1f' if share >= 0.1 else '1g'}} %" if best else f"{off:.3g}"
    return f"a new best, {much} below the previous one" if value < best else f"{much} above the best"


def _region(row: Any, before: float) -> str:
    """Describe how the trust region changed in ``row``, one of `Trace.facts`; ``before`` is its previous edge."""
    if row.restart:
        return f"the trust region was given up, and a new one starts with edge {row.edge:.3g}"
    if isnan(row.edge) or row.edge == before:
        return ""
    if isnan(before):
        return f"the first trust region has edge {row.edge:.3g}"
    return f"the edge of the trust region {'grew' if row.edge > before else 'shrank'} to {row.edge:.3g}"


def away_from_centre(city: City, sites: Sites, centre: IntArray, edge: float) -> str:
    """Describe which units a deployment moves from ``centre``, the units at each place in the trust region's centre.

    ``edge`` is the largest Hamming distance in the region, two for each moved unit.
    """
    change = place_counts(city, sites) - centre
    moved, reach = int(np.maximum(change, 0).sum()), int(edge // 2)
    where = "inside" if 2 * moved <= edge else "outside"
    rest = f"({where} the region, which reaches {reach} moved unit{'s' * (reach != 1)})"
    if moved == 0:
        return f"It is the centre of the trust region {rest}."
    names = np.array(place_names(city))
    gone, come = (", ".join(np.repeat(names, np.maximum(c, 0))) for c in (-change, change))
    return (
        f"From the centre of the trust region it moves {moved} unit{'s' * (moved != 1)}, away from {gone} and to "
        f"{come} {rest}."
    )
