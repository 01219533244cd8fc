"""What an optimizer that is stepped by hand did and expected, as a table and in words; no widgets.

`Trace` asks, predicts, evaluates and tells. What an optimizer thinks is told as far as it can be asked:

==================  ==================================================================================
GP-pM, GP-zero      predicted mean and deviation; expected improvement of swaps; the trust region
SparBL, its kin     value and largest coefficients of the model drawn last: one draw, hence no band
others              what they found
==================  ==================================================================================
"""

from math import isfinite, nan

import numpy as np
import pandas as pd

from .. import _validate
from ..errors import InputError
from ..maps.deployments import place_name
from ..optimizers import METHODS

COLUMNS = ["evaluation", "value", "best", "expected", "deviation", "edge", "restart", "initial", "own"]
MOST_BARS = 12


class Trace:
    """An optimizer stepped by hand, and what it expected of each evaluation.

    Parameters
    ----------
    objective : Objective
    method : str
        One of `METHODS`.
    seed : int, optional

    Attributes
    ----------
    optimizer : Optimizer
    asked : ndarray of int, shape (p,), or None
        Deployment evaluated last.
    centre : ndarray of int, shape (G,), or None
        Units at each place in the centre of the trust region in which it was asked.
    edge : float
        Largest Hamming distance from the centre at that time (NaN: no region).
    """

    def __init__(self, objective, method="gp-pm", *, seed=0):
        self.optimizer = METHODS[_validate.choice(method, "method", tuple(METHODS))](objective, rng=seed)
        self.asked, self.centre, self.edge = None, None, nan
        self._rows = []
        self._coef, self._intercept = None, nan  # of the model that SparBL drew last

    @property
    def facts(self):
        """A row an evaluation: ``evaluation, value, best, expected, deviation, edge, restart, initial, own``.

        ``expected`` and ``deviation`` were predicted before the evaluation (NaN: no model), ``edge`` is that of the
        trust region after it (NaN: none), ``restart`` says whether the region was given up.
        """
        return pd.DataFrame(self._rows, columns=COLUMNS)

    def step(self):
        """Evaluate the deployment that the optimizer asks for."""
        sites = self.optimizer.ask()
        coef = getattr(self.optimizer, "_coef", None)
        if coef is not self._coef:
            # The model is centred on what it was drawn from: all that is told by now.
            means = self.optimizer.features(self.optimizer.sites).mean(axis=0)
            self._coef, self._intercept = coef, np.mean(self.optimizer.values) - means @ coef
        self._evaluate(sites, own=False)

    def evaluate(self, sites):
        """Evaluate a deployment of one's own and tell the optimizer.

        Raises
        ------
        InputError
            If it is not allowed, or known already and the objective has no noise.
        """
        optimizer = self.optimizer
        sites = optimizer.space.canonical(sites)
        known = [k for k, told in enumerate(optimizer.sites, 1) if (told == sites).all()]
        if known and not optimizer.objective.noisy:
            raise InputError(f"this deployment is known from evaluation {known[0]}: move a unit.")
        self._evaluate(sites, own=True)

    def expectation(self, sites):
        """Return what the optimizer expects of a deployment and its standard deviation; NaN for what it cannot say."""
        if hasattr(self.optimizer, "predict"):
            try:
                mean, deviation = self.optimizer.predict(sites[None])
            except InputError:  # no model yet
                return nan, nan
            return float(mean[0]), float(deviation[0])
        if self._coef is not None:
            return float(self._intercept + self.optimizer.features([sites])[0] @ self._coef), nan
        return nan, nan

    def _evaluate(self, sites, *, own):
        optimizer, told = self.optimizer, len(self.optimizer.values)
        expected, deviation = self.expectation(sites)
        centre, edge, restarts = region(optimizer)
        value = optimizer.objective(sites)
        optimizer.tell(sites, value)
        self.asked, self.centre, self.edge = sites, centre, edge
        _, edge, restarts_now = region(optimizer)
        initial = not own and told < first_ones(optimizer)
        self._rows.append(
            (
                told + 1,
                value,
                optimizer.best[1],
                expected,
                deviation,
                edge,
                restarts_now > restarts,
                initial,
                own,
            )
        )


def region(optimizer):
    """Return centre and edge of the trust region, None and NaN where there is none, and how many were given up."""
    if getattr(optimizer, "centre", None) is None:
        return None, nan, 0
    return optimizer.centre, optimizer.edge, optimizer.restarts


def first_ones(optimizer):
    """How many random deployments a method begins with."""
    return getattr(optimizer, "initial", getattr(optimizer, "population", 0))


def best_swaps(optimizer, most=MOST_BARS):
    """Return the single swaps of the best deployment told that promise most, by log expected improvement.

    Returns
    -------
    DataFrame
        Columns ``name`` ("out → in"), ``value`` and ``inside`` the trust region, best first; empty without a model.
        Swaps evaluated already are left out.
    """
    best, space, noisy = optimizer.best[0], optimizer.space, optimizer.objective.noisy
    near = [] if best is None else space.neighbours(best)
    near = np.array([row for row in near if noisy or not optimizer.is_taken(row)])
    try:
        scores = optimizer.acquisition(near) if len(near) else np.empty(0)
    except InputError:  # no model yet
        scores = np.empty(0)
    names, rows = place_names(space.city), []
    for k in np.argsort(-scores, kind="stable")[:most]:
        counts = place_counts(space.city, near[k])
        change = counts - place_counts(space.city, best)
        inside = np.abs(counts - optimizer.centre).sum() <= optimizer.edge
        rows.append((f"{names[change.argmin()]} → {names[change.argmax()]}", float(scores[k]), bool(inside)))
    return pd.DataFrame(rows, columns=("name", "value", "inside"))


def largest_coefficients(optimizer, most=MOST_BARS):
    """Return the largest coefficients of the model that SparBL drew last, by what they stand for.

    Returns
    -------
    DataFrame
        Columns ``name`` and ``value``, largest first; empty before the first model. Features that are the same in
        all deployments told are left out: nothing is known of their coefficients.
    """
    coef = getattr(optimizer, "_coef", None)
    if coef is None:
        return pd.DataFrame({"name": [], "value": []})
    all_names = place_names(optimizer.space.city)
    names = [all_names[place] for place in optimizer._free]
    titles = names + [f"{names[i]} and {names[j]}" for i, j in zip(*optimizer._pairs, strict=True)]
    titles += [f"two at {names[k]}" for k in optimizer._several]
    titles += ["cost of the nearest unit", "cost of the second nearest"][: len(coef) - len(titles)]
    varies = np.ptp(optimizer.features(optimizer.sites), axis=0) > 0
    order = [k for k in np.argsort(-np.abs(coef), kind="stable") if varies[k]][:most]
    return pd.DataFrame({"name": [titles[k] for k in order], "value": coef[order]})


def place_names(city):
    """Name the places, twin sites as one."""
    groups = city.twin_groups
    return [
        place_name([city.site_names[site] for site in np.flatnonzero(groups == place)])
        for place in range(groups.max() + 1)
    ]


def place_counts(city, sites):
    """Units at each place, shape (G,)."""
    return np.bincount(city.twin_groups[sites], minlength=city.twin_groups.max() + 1)


def units_at(city, sites):
    """Say in words where units wait: "Station 4, Station 9 × 2"."""
    counts = place_counts(city, sites)
    names = place_names(city)
    return ", ".join(f"{names[k]} × {counts[k]}" if counts[k] > 1 else names[k] for k in np.flatnonzero(counts))


def measure(metric):
    """Return how to write a metric's values (a factor, a unit, digits) and what to call them on an axis."""
    if metric == "mean_response":
        return 1, " min", 3, "Mean response (min)"
    if isinstance(metric, tuple):
        return 100, " %", 2, f"Responses of {metric[1]:g} min or more (%)"
    return 1, "", 4, "Mix of metrics"


def sentence(facts, metric="mean_response"):
    """Say what the last evaluation of a trace brought: its value, what was expected, what became of the region."""
    if facts.empty:
        return "Nothing is evaluated yet."
    factor, unit, digits, _ = measure(metric)
    row, last = facts.iloc[-1], facts.iloc[-2] if len(facts) > 1 else None
    who = ", your own" if row.own else ", drawn at random to begin with" if row.initial else ""
    parts = [f"Evaluation {row.evaluation}{who}: {factor * row.value:.{digits}f}{unit}"]
    if last is not None:
        parts[0] += f", {_beside(row.value, last.best)}"
    if isfinite(row.deviation):
        band = f"{factor * row.expected:.{digits}f} ± {2 * factor * row.deviation:.{digits}f}{unit}"
        surprise = abs(row.value - row.expected) > 2 * row.deviation
        parts.append(f"expected {band}{', so a surprise' if surprise else ''}")
    elif isfinite(row.expected):
        parts.append(f"the model drawn said {factor * row.expected:.{digits}f}{unit}")
    parts.append(_region(row, nan if last is None else last.edge))
    return "; ".join(part for part in parts if part) + "."


def _beside(value, best):
    """Compare a value with the best before it."""
    if abs(value - best) <= 1e-9 * max(1, abs(best)):
        return "as good as the best"
    if value < best:
        return f"a new best, {_percent(best - value, best)} below the last"
    return f"{_percent(value - best, best)} above the best"


def _percent(difference, whole):
    """Write a share in per cent; the difference itself where there is no whole."""
    if whole == 0:
        return f"{difference:.3g}"
    share = 100 * difference / abs(whole)
    return f"{share:.1f} %" if share >= 0.1 else f"{share:.1g} %"


def _region(row, before):
    """Say what became of the trust region."""
    if not isfinite(row.edge):
        return ""
    if row.restart:
        return f"the trust region was given up, and another begins with {row.edge:.3g}"
    if not isfinite(before):
        return f"a first trust region opened, {row.edge:.3g} wide"
    if row.edge != before:
        return f"the region {'grew' if row.edge > before else 'shrank'} to {row.edge:.3g}"
    return ""


def away_from_centre(city, sites, centre, edge):
    """Say how a deployment differs from the trust region's centre, given as units at each place."""
    change = place_counts(city, sites) - centre
    moved, reach = int(np.maximum(change, 0).sum()), int(edge // 2)
    where = "inside" if 2 * moved <= edge else "outside"
    rest = f"({where} the region, which reaches {reach} moved unit{'s' if reach != 1 else ''})"
    if moved == 0:
        return f"It is the centre of the trust region {rest}."
    names = np.array(place_names(city))
    gone, come = (", ".join(np.repeat(names, np.maximum(c, 0))) for c in (-change, change))
    units = "1 unit" if moved == 1 else f"{moved} units"
    return f"From the centre of the trust region it moves {units}, away from {gone} and to {come} {rest}."
