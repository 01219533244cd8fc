"""The optimizer panel: run a search step by step, see its predictions, and try a deployment of your own.

Limits: predictions are of the value without noise, so values from a simulation scatter more widely than the band of
two standard deviations on either side of the prediction.
The map evaluates each deployment a second time, which takes a while with a simulation.
"""

from __future__ import annotations

from functools import lru_cache
from html import escape
from typing import TYPE_CHECKING, Any

import ipywidgets as widgets
from ipywidgets import Dropdown

from .. import _validate
from ..errors import InputError
from ..evaluators.objective import Objective
from ..maps import _colours
from ..optimizers import METHODS, SparBL
from ..plots._style import whole_ticks
from ._charts import units_at
from ._panel import WRAP, Panel, SteppedPanel
from ._trace import Trace, away_from_centre, best_swaps, largest_coefficients, measure, sentence
from ._widgets import MapView, SiteInputs, bar, button, control, lines, picture, table

if TYPE_CHECKING:
    import pandas as pd

    from .._types import Rng
    from ..city import City
    from ..evaluators.metrics import Metric

EXPLANATION = (
    "Step evaluates the deployment that the method proposes, and passes the value to the method. Its prediction is "
    "recorded first. You can also place the units yourself and have your own deployment evaluated. The same seed gives "
    "the same choices."
)
BLUE, GREEN, RED = (_colours.CATEGORIES[k] for k in (0, 2, 4))
PICTURES = ("convergence", "predictions", "thoughts", "edges")


def optimizer_panel(objective: Objective, method: str = "gp-pm", *, rng: Rng = None) -> Panel:
    """Run an optimizer step by step, see its predictions, and add evaluations of your own deployments.

    Parameters
    ----------
    objective : Objective
    method : str
        Initial method, one of `emsopt.optimizers.METHODS`.
    rng : int or Generator, optional
        Initial seed; the same seed gives the same choices. By default, one is drawn and shown.

    Returns
    -------
    Panel
        With ``refs``, a dict of its inputs and outputs by name.

        Choices: ``method`` and ``seed``; changing either restarts the search.

        Buttons that run the search: ``step`` (one evaluation), ``run`` (ten) and ``restart`` (forget all evaluations).

        The user's own deployment: ``sites``, a list of inputs, one per site (checkboxes, or numbers of units if some
        site may hold several); the buttons ``take`` (place the units as in the best deployment so far), ``clear``
        (remove all units but those that are pinned) and ``evaluate`` (evaluate this deployment and pass its value to
        the method); and ``placed``, a text that counts the units placed.

        Results: ``message`` (errors and remarks), ``said`` (a sentence on the last evaluation), ``convergence``
        (picture: each value and the best so far, over evaluations), ``predictions`` (picture: what the method
        predicted before each evaluation against the value found), ``thoughts`` (table: the log expected improvement of
        the best swaps, or the largest coefficients of the sampled model), ``edges`` (picture: the edge of the trust
        region over evaluations), ``where`` (text: the sites of the deployment evaluated last and of the best so far)
        and ``map`` (both of these deployments).

        Finally ``trace``, a function that returns the `Trace` so far.

    Raises
    ------
    InputError
        If the objective, method or seed is invalid.

    Examples
    --------
    >>> import emsopt as eo
    >>> objective = eo.Objective(eo.datasets.grid_city(n_sites=6, units=2, rng=1), 2)
    >>> panel = eo.panels.optimizer_panel(objective, "gp-pm", rng=0)
    >>> message = panel.advance(1)
    >>> objective.evaluations > 0
    True
    """
    _validate.instance(objective, "objective", Objective, "emsopt.Objective")
    return _OptimizerPanel(objective, _validate.choice(method, "method", tuple(METHODS)), rng)


class _OptimizerPanel(SteppedPanel):
    """The panel that `optimizer_panel` returns."""

    def __init__(self, objective: Objective, method: str, rng: Rng) -> None:
        self.objective, space, city = objective, objective.space, objective.city
        self.evaluation = lru_cache(maxsize=64)(objective.evaluation)
        limits = space.site_floors.tolist(), space.site_capacities.tolist()
        self.sites = SiteInputs(city.site_names, self._count, *limits)
        sites, best = self.sites, "Place the units as in the best deployment so far"
        own, other = "Evaluate your deployment for the method", "Optimizer; choosing another one starts again"
        controls = {
            "method": control(Dropdown, method, "Method", other, action=self.restart, options=list(METHODS)),
            "take": button("Take the best so far", best, lambda: sites.take(self.trace.optimizer.best[0])),
            "clear": button("Clear", "Remove all units but those that are pinned", lambda: sites.take(())),
            "evaluate": button("Evaluate", own, self._evaluate, slow=True),
        }
        outputs, enough = ("placed", "said", *PICTURES, "where"), "All allowed deployments are evaluated."
        super().__init__(controls, rng, outputs, enough, MapView(city))
        self.refs |= {"sites": self.sites.fields, "trace": lambda: self.trace}
        self.begin()
        row = [self.refs[name] for name in ("take", "clear", "evaluate", "placed")]
        placing = widgets.VBox([self.sites, widgets.HBox(row, layout=WRAP)])
        form = widgets.Accordion([placing], titles=("A deployment of your own",))
        about = f"{EXPLANATION} Minimised: {objective.label}."
        rows = f"method seed | step run restart | form | message | said | {' '.join(PICTURES)} | where | map"
        self.arrange(f"{city.name}: stepping an optimizer", about, rows, form=form)
        self.respond()

    def begin(self) -> None:
        self.trace = Trace(self.objective, self.at.method, rng=self.at.seed)

    def step(self) -> None:
        self.trace.step()
        self._say()

    def finished(self) -> bool:
        return self.trace.optimizer.exhausted

    def unavailable(self) -> set[str]:
        return super().unavailable() | ({"take"} if self.trace.facts.empty else set())

    def _evaluate(self) -> None:
        """Evaluate the user's deployment."""
        sites, units = self.sites.chosen, self.objective.space.units
        if len(sites) != units:
            raise InputError(f"exactly {units} units must be placed; you placed {len(sites)}.")
        self.trace.evaluate(sites)
        self.refresh()

    def _count(self) -> None:
        """Show how many units the user has placed."""
        self.show(placed=f"{len(self.sites.chosen)} of {self.objective.space.units} units placed")

    def _say(self) -> None:
        """Show a sentence on the result of the last evaluation."""
        style = "margin:0.4em 0;line-height:1.4;font-size:110%;font-weight:600;max-width:56em"
        text = escape(sentence(self.trace.facts, self.objective.metric))
        self.show(said=f"<p role='status' style='{style}'>{text}</p>")

    def compute(self) -> pd.DataFrame:
        return self.trace.facts

    def draw(self, answer: pd.DataFrame) -> None:
        optimizer, city, metric = self.trace.optimizer, self.objective.city, self.objective.metric
        if answer.empty:
            self.clear()
        else:
            if hasattr(optimizer, "acquisition") or isinstance(optimizer, SparBL):
                self.show(predictions=_predictions(answer, metric), thoughts=_thoughts(optimizer, metric))
            self.show(convergence=_convergence(answer, metric), edges=_edges(answer), where=_where(self.trace, city))
            shown = {"evaluated last": self.trace.asked, "best so far": optimizer.best[0]}
            self.view.show(city, {name: self.evaluation(tuple(sites)) for name, sites in shown.items()})
        self._count()
        self._say()


def _where(trace: Trace, city: City) -> str:
    """Name the sites of the two deployments on the map, the one evaluated last and the best so far.

    If there is a trust region, also say how the one evaluated last differs from its centre.
    """
    texts = [f"Evaluated last, units at: {units_at(city, trace.asked)}."]
    if trace.centre is not None:
        texts.append(away_from_centre(city, trace.asked, trace.centre, trace.edge))
    return lines(*texts, f"Best so far, units at: {units_at(city, trace.optimizer.best[0])}.")


# -- pictures -----------------------------------------------------------------------------------------------------


def _points(axes: Any, x: pd.Series, y: pd.Series, facts: pd.DataFrame) -> None:
    """Mark evaluations at (x, y): hollow circles if initial and random, filled if proposed, diamonds if the user's."""
    kinds = {
        "initial, random": (facts.initial, {"marker": "o", "markerfacecolor": "white"}),
        "proposed": (~facts.initial & ~facts.own, {"marker": "o"}),
        "your own": (facts.own, {"marker": "D", "color": RED}),
    }
    for label, (which, looks) in kinds.items():
        if which.any():
            style = {"color": BLUE, "linestyle": "", "markersize": 6} | looks
            axes.plot(x[which], y[which], label=label, **style)


def _convergence(facts: pd.DataFrame, metric: Metric) -> str:
    """Return a picture of the values and the best so far over evaluations, as HTML."""
    factor, unit, digits, label = measure(metric)
    value, best = factor * facts.value, factor * facts.best

    def draw(axes: Any) -> None:
        axes.step(facts.evaluation, best, where="post", color=GREEN, label="best so far")
        _points(axes, facts.evaluation, value, facts)
        axes.set(xlabel="Evaluation", ylabel=label)
        whole_ticks(axes.xaxis)
        axes.legend(fontsize=9, loc="upper right")

    at = facts.evaluation.iloc[int(facts.value.argmin())]
    found = f"{best.iloc[-1]:.{digits}f}{unit}, found at evaluation {at}."
    return picture(draw, "What was found", f"Values of {len(facts)} evaluations and the best: {found}")


def _predictions(facts: pd.DataFrame, metric: Metric) -> str:
    """Return a picture of the prediction made before each evaluation against the value found, as HTML."""
    factor, *_, label = measure(metric)
    known = facts[facts.expected.notna()]
    if known.empty:
        return lines("No predictions yet: the method has no model.")
    drawn, parts = known.deviation.isna().all(), (known.value, known.expected, 2 * known.deviation.fillna(0))
    value, expected, band = (factor * part for part in parts)

    def draw(axes: Any) -> None:
        axes.axline((value.iloc[0],) * 2, slope=1, color="#555", linewidth=1.2, linestyle=":")
        axes.errorbar(value, expected, band, fmt="none", ecolor="#888", elinewidth=1.2)
        _points(axes, value, expected, known)
        axes.set(xlabel=label, ylabel="Sampled model" if drawn else "Mean ± 2 sd")
        if known.own.any():
            axes.legend(fontsize=9, loc="upper left")

    if drawn:
        title = alt = f"Predictions of sampled models before each of {len(known)} evaluations (dotted: equal)"
    else:
        within = int(((value - expected).abs() <= band).sum())
        title = "Prediction before each evaluation (dotted: equal)"
        alt = f"Predicted against found: {within} of {len(known)} values are within two standard deviations."
    return picture(draw, title, alt)


def _edges(facts: pd.DataFrame) -> str:
    """Return a picture of the edge of the trust region (its largest Hamming distance) over evaluations, as HTML."""
    known = facts[facts.edge.notna()]
    if known.empty:
        return ""

    def draw(axes: Any) -> None:
        axes.step(known.evaluation, known.edge, where="post", color=BLUE)
        if known.restart.any():
            style: dict[str, Any] = {"color": RED, "linestyle": "--", "label": "new region"}
            axes.vlines(known.evaluation[known.restart], 0, 1, transform=axes.get_xaxis_transform(), **style)
            axes.legend(fontsize=9)
        axes.set(xlabel="Evaluation", ylabel="Hamming distance", ylim=(0, None))
        whole_ticks(axes.xaxis)

    last = known.iloc[-1]
    alt = f"Edge {last.edge:.3g} after evaluation {last.evaluation}; {known.restart.sum()} given up."
    return picture(draw, "Edge of the trust region (two for each unit that may move)", alt)


def _thoughts(optimizer: Any, metric: Metric) -> str:
    """Return a table of bars: the logarithm of expected improvement of the swaps with the most, or model coefficients.

    Swaps move one unit of the best deployment so far and are shown for methods with a Gaussian process. The other
    methods show the coefficients with the largest absolute values in the model sampled last.
    """
    swaps = hasattr(optimizer, "acquisition")
    frame = best_swaps(optimizer) if swaps else largest_coefficients(optimizer)
    if frame.empty:
        return lines("No model yet, or no deployment left to evaluate.")
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
        factor, unit, *_ = measure(metric)
        shares, faint = frame.value.abs() / max(high, -low, 1e-300), frame.value > 0
        texts = (factor * frame.value).map(f"{{:+.3g}}{unit}".format)
        caption = "Largest coefficients of the model sampled last. Faint: the feature raises the value."
    bars = map(bar, shares, faint.map({True: f"{BLUE}59", False: BLUE}))
    return table(caption, (), zip(frame.name, zip(texts, bars, strict=True), strict=True))
