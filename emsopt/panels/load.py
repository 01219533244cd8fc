"""The load panel: the best deployment on its way from the p-median to the 1-median (the papers' Figure 5)."""

from dataclasses import dataclass
from functools import lru_cache, partial

import ipywidgets as widgets
import numpy as np

from .. import _validate
from ..city import DeploymentSpace
from ..evaluators import EXACT_UP_TO, one_median, p_median
from ..evaluators.objective import Objective
from ..optimizers import local_search
from . import _widgets

RESTARTS = 2  # random starts beside the p-median and the 1-median: a step of the slider must not take long
MOST_UNITS = 20
EXPLANATION = (
    "The load multiplies all call rates. Under light load the best deployment is that of the p-median, which takes "
    "every unit to be free; under heavy load all units move to the 1-median, the most central site, if they may share "
    "one. Let go of a slider, or use the arrow keys, to see the answer."
)


@dataclass(frozen=True, eq=False)
class _Answer:
    city: object
    best: object  # Evaluation
    median: object  # Evaluation of the p-median deployment
    bound: float
    note: str


def _solve(city, load, units, metric, colocation, evaluator):
    """Return the best deployment found at ``load`` times the city's call rates, beside the p-median's."""
    city = city.scaled(load)
    space = DeploymentSpace(city, units, colocation=colocation)
    median = p_median(city, space)
    guide = Objective(city, space, "approximate", metric)
    found = local_search(guide, restarts=RESTARTS, rng=0).x
    note = ""
    if evaluator == "exact" and units > EXACT_UP_TO:
        evaluator = "approximate"
        note = f"Above {EXACT_UP_TO} units the figures here come from the approximate model."
    judge = Objective(city, space, evaluator, metric)
    best = min((median.sites, found), key=judge)  # the models may disagree by a hair
    return _Answer(city, judge.evaluation(best), judge.evaluation(median.sites), median.objective, note)


def load_panel(city, units):
    """Show how the best deployment changes with load, fleet size, objective and colocation.

    The search is led by the approximate hypercube model, from the p-median deployment, the most central one and a few
    random ones: it proves nothing. What it finds is then valued by the model that is chosen.

    Parameters
    ----------
    city : City
        Its call rates are load 1.
    units : int
        Fleet size to begin with.

    Returns
    -------
    Panel
        With ``refs``: ``load``, ``units``, ``threshold``, ``objective``, ``colocation``, ``evaluator``, ``message``,
        ``figures``, ``map`` and ``feed``.

    Raises
    ------
    InputError
        If ``units`` is no positive whole number.
    """
    units = _validate.whole_number(units, "units")
    controls = _controls(city, units)
    message, figures, view = _widgets.Message(), widgets.HTML(), _widgets.MapView(city)
    solve = lru_cache(maxsize=512)(partial(_solve, city))

    def refresh():
        at = {name: widget.value for name, widget in controls.items()}
        metric = ("late", at["threshold"]) if at["objective"] == "late" else at["objective"]
        answer = solve(at["load"], at["units"], metric, at["colocation"], at["evaluator"])
        figures.value = _figures(answer, at["load"], at["units"], at["threshold"])
        view.show(answer.city, {"best": answer.best, "p-median": answer.median})
        return answer.note

    def clear():
        figures.value = ""
        view.hide()

    respond = _widgets.guarded(message, refresh, clear)
    respond()
    for widget in controls.values():
        widget.observe(respond, "value")
    refs = controls | {"message": message, "figures": figures, "map": view.shown, "feed": view.feed}
    title = _widgets.heading(f"{city.name}: the best deployment under load", EXPLANATION)
    return _widgets.Panel([title, *refs.values()], refs)


def _controls(city, units):
    """Return the inputs by name."""
    most = max(units, min(city.n_sites, MOST_UNITS))
    control = _widgets.control
    return {
        "load": control(
            widgets.FloatLogSlider,
            "Load θ",
            "Factor on all call rates, from 0.001 to 1000",
            value=1.0,
            base=10,
            min=-3,
            max=3,
            step=0.1,
            readout_format=".3g",
        ),
        "units": control(widgets.IntSlider, "Fleet (units)", "Number of units, p", value=units, min=1, max=most),
        "objective": control(
            widgets.Dropdown,
            "Minimise",
            "What the best deployment is best at",
            options=[("mean response", "mean_response"), ("late fraction", "late")],
        ),
        "threshold": _widgets.threshold_slider(),
        "colocation": control(
            widgets.Checkbox, "units may share a site", "Allow any number of units at a site", value=True
        ),
        "evaluator": control(
            widgets.Dropdown,
            "Figures by",
            "Model that values the deployments",
            options=[("exact hypercube", "exact"), ("approximate hypercube", "approximate")],
        ),
    }


def _figures(answer, load, units, threshold):
    """Return the table and what is worth noticing, as HTML."""
    city, best, median = answer.city, answer.best, answer.median
    pair = (best, median)
    rows = {"mean response (min)": [f"{e.mean_response:.3f}" for e in pair]}
    rows |= _widgets.performance(pair, threshold)
    caption = (
        f"{city.total_rate:.3g} calls an hour (load {load:.3g}), {city.offered_load(units):.3g} times what "
        f"{units} units can serve. {best.evaluator.capitalize()} hypercube model, calls that find no unit free are lost."
    )
    bound = f"No deployment of {units} units can have a mean response below {answer.bound:.3f} min, the p-median bound."
    where = f"Best found, units at: {_widgets.places(city, best.sites.tolist())}."
    lines = _widgets.lines(f"{_change(city, best.sites, median.sites)} {bound}", where)
    return _widgets.table(caption, ["best found", "p-median"], rows) + lines


def _change(city, sites, median):
    """Say how a deployment differs from that of the p-median."""
    groups, p = city.twin_groups, len(sites)
    center = one_median(city).sites[0]
    if p > 1 and (groups[sites] == groups[center]).all():
        return f"All {p} units are at the 1-median, {city.site_names[center]}."
    ours, theirs = (np.bincount(groups[s], minlength=groups.max() + 1) for s in (sites, median))
    moved = int(np.maximum(ours - theirs, 0).sum())
    if moved == 0:
        return "The best deployment found is that of the p-median."
    return f"{moved} of {p} units wait elsewhere than in the p-median deployment."
