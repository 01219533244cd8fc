"""The optimizer panel: run a search step by step, see its predictions, and try a deployment of your own.

GP-pM and GP-zero predict mean and standard deviation, SparBL and BOCS only a value, other methods nothing. Predictions
are of the value without noise, so values from a simulation scatter more widely than the band of two standard deviations
on either side.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from html import escape
from math import isfinite, isnan, nan
from typing import Any

import ipywidgets as widgets
import numpy as np
import pandas as pd
from ipywidgets import Dropdown

from ..city import City
from ..errors import InputError, _validate
from ..errors._types import FloatArray, IntArray, Rng, Sites
from ..evaluators.metrics import Metric, metric_label
from ..evaluators.objective import Objective
from ..maps import _colours
from ..optimizers import METHODS, SparBL
from ..plots._style import set_whole_ticks
from ._charts import place_counts, place_names, units_at
from ._panel import ROW_LAYOUT, MapView, Panel, SteppedPanel
from ._widgets import SiteInputs, bar_cell, button, control, paragraphs, table, titled_image

EXPLANATION = (
    "Step evaluates the deployment that the method proposes, and passes the value to the method. Its prediction is "
    "recorded first. You can also place the units yourself and have your own deployment evaluated. The same seed gives "
    "the same choices."
)
BLUE, GREEN, RED = (_colours.CATEGORY_COLOURS[k] for k in (0, 2, 4))
PICTURE_NAMES = ("convergence", "predictions", "thoughts", "edges")
HISTORY_COLUMNS = ["evaluation", "value", "best", "expected", "deviation", "edge", "restart", "initial", "own"]
MAX_BARS = 12


def optimizer_panel(objective: Objective, *, rng: Rng = None) -> Panel:
    """Return a panel that runs an optimizer step by step, shows predictions and evaluates your own deployments.

    Parameters
    ----------
    objective : Objective
    rng : int or Generator, optional
        Initial seed; the same seed gives the same choices. By default, one is drawn and shown.

    Returns
    -------
    Panel
        ``refs`` has ``sites`` (a list of inputs, one per site, for a deployment of the user's own), ``evaluate`` (the
        button that evaluates it and tells the method), ``thoughts`` (table of the log expected improvement of the best
        swaps, or of the largest coefficients of the sampled model), ``trace`` (a function that returns the `Trace` so
        far) and others.

    Examples
    --------
    >>> import emsopt as eo
    >>> objective = eo.Objective(eo.datasets.grid_city(n_sites=6, units=2, rng=1), 2)
    >>> eo.panels.optimizer_panel(objective, rng=0).refs["method"].value
    'gp-pm'
    """
    _validate.instance(objective, "objective", Objective, "emsopt.Objective")
    return _OptimizerPanel(objective, rng)


class _OptimizerPanel(SteppedPanel):
    """The panel that `optimizer_panel` returns."""

    def __init__(self, objective: Objective, rng: Rng) -> None:
        self.objective, space, city = objective, objective.space, objective.city
        self.evaluation = lru_cache(maxsize=64)(objective.evaluation)
        limits = space.site_floors.tolist(), space.site_capacities.tolist()
        self.sites = SiteInputs(city.site_names, self._show_count, *limits)
        sites, best = self.sites, "Place the units as in the best deployment so far"
        own, other = "Evaluate your deployment for the method", "Optimizer; choosing another one starts again"
        controls = {
            "method": control(Dropdown, "gp-pm", "Method", other, action=self.restart, options=list(METHODS)),
            "take": button("Take the best so far", best, lambda: sites.set_units(self.trace.optimizer.best[0])),
            "clear": button("Clear", "Remove all units but those that are pinned", lambda: sites.set_units(())),
            "evaluate": button("Evaluate", own, self._evaluate, slow=True),
        }
        outputs, end_message = ("placed", "said", *PICTURE_NAMES, "where"), "All allowed deployments are evaluated."
        super().__init__(controls, rng, outputs, end_message, MapView(city))
        self.refs |= {"sites": self.sites.fields, "trace": lambda: self.trace}
        self.reset()
        row = [self.refs[name] for name in ("take", "clear", "evaluate", "placed")]
        placing = widgets.VBox([self.sites, widgets.HBox(row, layout=ROW_LAYOUT)])
        form = widgets.Accordion([placing], titles=("A deployment of your own",))
        about = f"{EXPLANATION} Minimised: {objective.label}."
        rows = f"method seed | step run restart | form | message | said | where || map | {' '.join(PICTURE_NAMES)}"
        self.arrange_widgets(f"{city.name}: stepping an optimizer", about, rows, form=form)
        self.respond()

    def reset(self) -> None:
        self.trace = Trace(self.objective, self.values.method, rng=self.values.seed)

    def step(self) -> None:
        self.trace.step()
        self._show_message()

    def is_finished(self) -> bool:
        return self.trace.optimizer.exhausted

    def disabled_controls(self) -> set[str]:
        return super().disabled_controls() | ({"take"} if self.trace.history.empty else set())

    def _evaluate(self) -> None:
        """Evaluate the deployment of the user, pass the value to the method, and show the result."""
        sites, units = self.sites.deployment, self.objective.space.units
        if len(sites) != units:
            raise InputError(f"exactly {units} units must be placed; you placed {len(sites)}.")
        self.trace.evaluate(sites)
        self.refresh()

    def _show_count(self) -> None:
        """Show how many units the user has placed."""
        self.show(placed=f"{len(self.sites.deployment)} of {self.objective.space.units} units placed")

    def _show_message(self) -> None:
        """Show a sentence on the result of the last evaluation."""
        style = "margin:0.4em 0;line-height:1.4;font-size:110%;font-weight:600;max-width:56em"
        text = escape(describe_evaluation(self.trace.history, self.objective.metric))
        self.show(said=f"<p role='status' style='{style}'>{text}</p>")

    def compute(self) -> pd.DataFrame:
        return self.trace.history

    def draw(self, answer: pd.DataFrame) -> None:
        optimizer, city, metric = self.trace.optimizer, self.objective.city, self.objective.metric
        if answer.empty:
            self.clear()
        else:
            if hasattr(optimizer, "acquisition") or isinstance(optimizer, SparBL):
                self.show(predictions=_prediction_picture(answer, metric), thoughts=_model_table(optimizer, metric))
            self.show(convergence=_convergence_picture(answer, metric), edges=_edge_picture(answer))
            texts = [f"Evaluated last, units at: {units_at(city, self.trace.last_sites)}."]
            if self.trace.centre is not None:
                texts.append(describe_moves(city, self.trace.last_sites, self.trace.centre, self.trace.edge))
            self.show(where=paragraphs(*texts, f"Best so far, units at: {units_at(city, optimizer.best[0])}."))
            shown = {"evaluated last": self.trace.last_sites, "best so far": optimizer.best[0]}
            self.view.show(city, {name: self.evaluation(tuple(sites)) for name, sites in shown.items()})
        self._show_count()
        self._show_message()


def _mark_points(axes: Any, x: pd.Series, y: pd.Series, history: pd.DataFrame) -> None:
    """Mark evaluations at (x, y): hollow circles for random ones, filled for proposed ones, diamonds for the user's."""
    kinds = {
        "initial, random": (history.initial, {"marker": "o", "markerfacecolor": "white"}),
        "proposed": (~history.initial & ~history.own, {"marker": "o"}),
        "your own": (history.own, {"marker": "D", "color": RED}),
    }
    for label, (which, looks) in kinds.items():
        if which.any():
            axes.plot(x[which], y[which], label=label, **{"color": BLUE, "linestyle": "", "markersize": 6} | looks)


def _convergence_picture(history: pd.DataFrame, metric: Metric) -> str:
    """Return an HTML image of each value and the best so far, over the number of evaluations."""
    factor, unit, digits, label = metric_format(metric)
    value, best = factor * history.value, factor * history.best

    def draw(axes: Any) -> None:
        axes.step(history.evaluation, best, where="post", color=GREEN, label="best so far")
        _mark_points(axes, history.evaluation, value, history)
        axes.set(xlabel="Evaluation", ylabel=label)
        set_whole_ticks(axes.xaxis)
        axes.legend(fontsize=9, loc="upper right")

    at = history.evaluation.iloc[int(history.value.argmin())]
    found = f"{best.iloc[-1]:.{digits}f}{unit}, found at evaluation {at}."
    return titled_image(draw, "What was found", f"Values of {len(history)} evaluations and the best: {found}")


def _prediction_picture(history: pd.DataFrame, metric: Metric) -> str:
    """Return an HTML image of the prediction before each evaluation against the value found, or a sentence."""
    factor, *_, label = metric_format(metric)
    known = history[history.expected.notna()]
    if known.empty:
        return paragraphs("No predictions yet: the method has no model.")
    drawn, parts = known.deviation.isna().all(), (known.value, known.expected, 2 * known.deviation.fillna(0))
    value, expected, band = (factor * part for part in parts)

    def draw(axes: Any) -> None:
        axes.axline((value.iloc[0],) * 2, slope=1, color="#555", linewidth=1.2, linestyle=":")
        axes.errorbar(value, expected, band, fmt="none", ecolor="#888", elinewidth=1.2)
        _mark_points(axes, value, expected, known)
        axes.set(xlabel=label, ylabel="Sampled model" if drawn else "Mean ± 2 sd")
        if known.own.any():
            axes.legend(fontsize=9, loc="upper left")

    if drawn:
        title = alt = f"Predictions of sampled models before each of {len(known)} evaluations (dotted: equal)"
    else:
        within = int(((value - expected).abs() <= band).sum())
        title = "Prediction before each evaluation (dotted: equal)"
        alt = f"Predicted against found: {within} of {len(known)} values are within two standard deviations."
    return titled_image(draw, title, alt)


def _edge_picture(history: pd.DataFrame) -> str:
    """Return an HTML image of the trust region's largest Hamming distance over evaluations; "" without a region."""
    known = history[history.edge.notna()]
    if known.empty:
        return ""

    def draw(axes: Any) -> None:
        axes.step(known.evaluation, known.edge, where="post", color=BLUE)
        if known.restart.any():
            style: dict[str, Any] = {"color": RED, "linestyle": "--", "label": "new region"}
            axes.vlines(known.evaluation[known.restart], 0, 1, transform=axes.get_xaxis_transform(), **style)
            axes.legend(fontsize=9)
        axes.set(xlabel="Evaluation", ylabel="Hamming distance", ylim=(0, None))
        set_whole_ticks(axes.xaxis)

    last = known.iloc[-1]
    alt = f"Edge {last.edge:.3g} after evaluation {last.evaluation}; {known.restart.sum()} given up."
    return titled_image(draw, "Edge of the trust region (two for each unit that may move)", alt)


def _model_table(optimizer: Any, metric: Metric) -> str:
    """Return an HTML table of `best_swaps` or, for SparBL and BOCS, of `largest_coefficients`."""
    swaps = hasattr(optimizer, "acquisition")
    frame = best_swaps(optimizer) if swaps else largest_coefficients(optimizer)
    frame = frame[:MAX_BARS]
    if frame.empty:
        return paragraphs("No model yet, or no deployment left to evaluate.")
    low, high = frame.value.min(), frame.value.max()
    if swaps:
        # Logarithms have no natural zero: the bars begin a little below the smallest.
        base = low - max(0.1 * (high - low), 1e-9)
        shares, faint = (frame.value - base) / (high - base), ~frame.inside
        texts = frame.value.map("{:.2f}".format)
        caption = (
            "Most promising single swaps of the best so far, by the logarithm of expected improvement: an increase "
            "of 0.7 doubles it. Faint: outside the trust region. The method may also move several units at once."
        )
    else:
        factor, unit, *_ = metric_format(metric)
        shares, faint = frame.value.abs() / max(high, -low, 1e-300), frame.value > 0
        texts = (factor * frame.value).map(f"{{:+.3g}}{unit}".format)
        caption = "Largest coefficients of the model sampled last. Faint: the feature raises the value."
    bars = map(bar_cell, shares, faint.map({True: f"{BLUE}59", False: BLUE}))
    return table(caption, (), zip(frame.name, zip(texts, bars, strict=True), strict=True))


class Trace:
    """An optimizer run step by step, with its prediction for each evaluation.

    ``last_sites``, shape (p,), is the deployment evaluated last. ``centre`` and ``edge`` are those of the trust region
    at that time (None and NaN without one): units in each group of interchangeable sites (`City.twin_groups`), shape
    (G,), and the largest Hamming distance from these, where each moved unit counts two.
    """

    def __init__(self, objective: Objective, method: str = "gp-pm", *, rng: Rng = None) -> None:
        self.optimizer: Any = METHODS[method](objective, rng=rng)
        self.last_sites: IntArray = np.empty(0, dtype=int)
        self.centre: IntArray | None = None
        self.edge = nan
        self._rows: list[tuple[object, ...]] = []
        self._coef: FloatArray | None = None  # coefficients of the model that SparBL sampled last
        self._intercept = nan

    @property
    def history(self) -> pd.DataFrame:
        """One row per evaluation, with its number and the ``value`` of the objective; ``best`` is the smallest so far.

        ``expected`` and ``deviation`` are the predicted mean and standard deviation (NaN if there was no model or, for
        the latter, it was sampled). ``edge`` is that of the trust region afterwards (NaN without one), ``restart``
        whether it was then given up, ``initial`` whether the deployment belongs to the random initial design, ``own``
        whether the user chose it.
        """
        return pd.DataFrame(self._rows, columns=HISTORY_COLUMNS)

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

        Raise if it is infeasible, or was evaluated before and the objective has no noise.
        """
        optimizer = self.optimizer
        placed: IntArray = optimizer.space.canonical(sites)
        known = [k for k, told in enumerate(optimizer.sites, 1) if (told == placed).all()]
        if known and not optimizer.objective.noisy:
            raise InputError(f"this deployment was already evaluated, as evaluation {known[0]}: move a unit.")
        self._evaluate(placed, own=True)

    def predict(self, sites: IntArray) -> tuple[float, float]:
        """Return the predicted mean and standard deviation of a deployment's value; NaN if the model has none."""
        if self._coef is not None:
            return float(self._intercept + self.optimizer.features([sites])[0] @ self._coef), nan
        if getattr(self.optimizer, "process", None) is not None:
            mean, deviation = self.optimizer.predict(sites[None])
            return float(mean[0]), float(deviation[0])
        return nan, nan

    def _trust_region(self) -> tuple[IntArray | None, float, int]:
        """Return centre, (G,), and edge of the trust region, or None and NaN, and the number of regions given up."""
        if getattr(self.optimizer, "centre", None) is None:
            return None, nan, 0
        return self.optimizer.centre, self.optimizer.edge, self.optimizer.restarts

    def _evaluate(self, sites: IntArray, *, own: bool) -> None:
        """Evaluate a deployment, pass the value to the optimizer, and record its prediction."""
        optimizer, told = self.optimizer, len(self.optimizer.values)
        expected = self.predict(sites)
        self.last_sites = sites
        self.centre, self.edge, given_up = self._trust_region()
        value = optimizer.objective(sites)
        optimizer.tell(sites, value)
        _, edge, now = self._trust_region()
        initial = not own and told < getattr(optimizer, "initial", getattr(optimizer, "population", 0))
        self._rows.append((told + 1, value, optimizer.best[1], *expected, edge, now > given_up, initial, own))


def best_swaps(optimizer: Any) -> pd.DataFrame:
    """Return moves of one unit of the best deployment with their log expected improvement, the largest first.

    The table has columns ``name`` ("from → to"), ``value`` and ``inside`` (whether the result lies in the trust
    region), and is empty without a model. Deployments evaluated before are left out, unless the objective has noise.
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
    return frame.sort_values("value", ascending=False, kind="stable", ignore_index=True)


def largest_coefficients(optimizer: Any) -> pd.DataFrame:
    """Return the coefficients of the model that SparBL sampled last, with their names, the largest sizes first.

    A feature is a place, a pair of places, two units at a place, or the cost of the nearest units. Features that are
    equal in all evaluated deployments are left out. Without a model, the table is empty.
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
    return frame.sort_values("value", key=lambda values: -values.abs(), kind="stable", ignore_index=True)


def metric_format(metric: Metric) -> tuple[int, str, int, str]:
    """Return how to show values of a metric: a factor, the unit, the number of decimals and an axis label."""
    if metric == "mean_response":
        return 1, " min", 3, "Mean response (min)"
    if isinstance(metric, tuple) and metric[0] == "late":
        return 100, " %", 2, f"Responses of {metric[1]:g} min or more (%)"
    return 1, "", 4, "Mix of metrics" if isinstance(metric, Mapping) else metric_label(metric)


def describe_evaluation(history: pd.DataFrame, metric: Metric = "mean_response") -> str:
    """Return a sentence on the last row of `Trace.history`: its value, prediction and change of the trust region."""
    if history.empty:
        return "Nothing is evaluated yet."
    factor, unit, digits, _ = metric_format(metric)
    row, last = history.iloc[-1], history.iloc[-2] if len(history) > 1 else None
    who = ", your own" if row.own else ", of the random initial design" if row.initial else ""
    parts = [f"Evaluation {row.evaluation}{who}: {factor * row.value:.{digits}f}{unit}"]
    if last is not None:
        parts[0] += f", {_compare_values(row.value, last.best)}"
    if isfinite(row.deviation):
        band = f"{factor * row.expected:.{digits}f} ± {2 * factor * row.deviation:.{digits}f}{unit}"
        surprise = abs(row.value - row.expected) > 2 * row.deviation
        parts.append(f"expected {band}{', so a surprise' if surprise else ''}")
    elif isfinite(row.expected):
        parts.append(f"the sampled model predicted {factor * row.expected:.{digits}f}{unit}")
    parts.append(_describe_region(row, nan if last is None else last.edge))
    return "; ".join(part for part in parts if part) + "."


def _compare_values(value: float, best: float) -> str:
    """Return a comparison of a value with the previous best, in per cent of it unless it is 0, as text."""
    off = abs(value - best)
    if off <= 1e-9 * max(1, abs(best)):
        return "as good as the best"
    share = 100 * off / abs(best) if best else nan
    much = f"{share:.{'1f' if share >= 0.1 else '1g'}} %" if best else f"{off:.3g}"
    return f"a new best, {much} below the previous one" if value < best else f"{much} above the best"


def _describe_region(row: Any, before: float) -> str:
    """Return text on how the trust region changed in ``row`` of `Trace.history`; ``before`` is its previous edge."""
    if row.restart:
        return f"the trust region was given up, and a new one starts with edge {row.edge:.3g}"
    if isnan(row.edge) or row.edge == before:
        return ""
    if isnan(before):
        return f"the first trust region has edge {row.edge:.3g}"
    return f"the edge of the trust region {'grew' if row.edge > before else 'shrank'} to {row.edge:.3g}"


def describe_moves(city: City, sites: Sites, centre: IntArray, edge: float) -> str:
    """Return a sentence on the units that a deployment moves from ``centre``, the units per place, (G,), of a region.

    ``edge`` is the largest Hamming distance in the trust region, two for each moved unit.
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
