"""The load panel: the best deployment moves from the p-median to the 1-median as load grows.

This is Figure 5 of "Optimizing Server Locations in Spatial Queues".
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from ipywidgets import Checkbox

from .. import _validate
from ..city import City, DeploymentSpace
from ..evaluators import Evaluation, one_median, p_median
from ..evaluators.objective import Objective
from ..optimizers import local_search
from . import _charts
from ._city import CityPanel, city_controls, demand_choice
from ._widgets import control, lines

if TYPE_CHECKING:
    from .._types import Sites
    from ._panel import Panel

RESTARTS = 2  # random starts besides the p-median and the 1-median; few, so that the slider responds quickly
EXPLANATION = (
    "The load multiplies all call rates. Under light load the best deployment is that of the p-median; under heavy "
    "load all units move to the 1-median, the most central site, if they may share one. Let go of a slider to see the "
    "answer."
)


def load_panel(city: City, units: int) -> Panel:
    """Show how the best deployment changes with load, fleet size, objective and colocation.

    A local search by the approximate hypercube model starts from the p-median deployment, the most central one and a
    few random ones. It does not prove optimality. The chosen model then evaluates the result.

    Parameters
    ----------
    city : City
        A load of 1 stands for the city's own call rates.
    units : int
        Initial fleet size.

    Returns
    -------
    Panel
        With ``refs``, a dict of its inputs and outputs by name. Inputs: ``load`` (factor on all call rates), ``units``
        (fleet size), ``objective`` (what the best deployment minimises), ``threshold`` (minutes from which a response
        is late), ``evaluator`` (model that evaluates the result), ``colocation`` (whether units may share a site) and,
        for St. Paul, ``demand`` ("embedded" or "published"; see `emsopt.datasets.load_st_paul`).
        Outputs: ``message`` (errors and remarks), ``figures`` (table and sentences that compare the best deployment
        found with the p-median) and ``map``.

    Raises
    ------
    InputError
        If ``units`` is not a positive whole number.

    Examples
    --------
    >>> import emsopt as eo
    >>> city = eo.datasets.grid_city(n_sites=6, units=2, rng=1)
    >>> panel = eo.panels.load_panel(city, 2)
    >>> "message" in panel.refs
    True
    """
    return _LoadPanel(city, _validate.whole_number(units, "units"))


class _LoadPanel(CityPanel):
    """The panel that `load_panel` returns."""

    def __init__(self, city: City, units: int) -> None:
        controls = demand_choice(city) | city_controls(city, units, 3, 0.1, ("exact", "approximate"))
        controls["colocation"] = control(Checkbox, True, "units may share a site", "Allow several units at a site")
        super().__init__(city, controls)
        self.solve = lru_cache(maxsize=512)(_solve)
        layout = " | ".join([*controls, "message", "figures", "map"])
        self.arrange("The best deployment under load", EXPLANATION, layout)
        self.respond()

    def compute(self) -> tuple[City, dict[str, Evaluation], float]:
        at = self.at
        return self.solve(self.place, at.load, at.units, self.metric, at.colocation, self.evaluator(at.units)[0])

    def draw(self, answer: tuple[City, dict[str, Evaluation], float]) -> str:
        city, evaluations, bound = answer
        best, median = (e.sites for e in evaluations.values())
        units, rate = self.at.units, f"{city.total_rate:.3g} calls per hour (load {self.at.load:.3g})"
        caption = f"{city.name}: {rate}, {city.offered_load(units):.3g} times what {units} units can serve."
        at_least = f"The mean response of {units} units cannot be below {bound:.3f} min, the p-median bound."
        where = f"Best found, units at: {_charts.units_at(city, best)}."
        said = lines(f"{_change(city, best, median)} {at_least}", where)
        self.show(figures=_charts.figures(caption, evaluations, self.at.threshold) + said)
        self.view.show(city, evaluations)
        return self.evaluator(units)[1]


def _solve(
    city: City, load: float, units: int, metric: str | tuple[str, float], colocation: bool, evaluator: str
) -> tuple[City, dict[str, Evaluation], float]:
    """Return the city under load, the evaluations of the best found and the p-median, and the p-median bound (min).

    The bound is a lower bound on the mean response of any deployment of the same number of units.
    """
    city = city.scaled(load)
    space = DeploymentSpace(city, units, colocation=colocation)
    median, judge = p_median(city, space), Objective(city, space, evaluator, metric)
    found = local_search(Objective(city, space, "approximate", metric), restarts=RESTARTS, rng=0)
    # The two models may rank near ties differently.
    best = min((median.sites, np.asarray(found.x, dtype=int)), key=judge)
    named = {"best found": judge.evaluation(best), "p-median": judge.evaluation(median.sites)}
    return city, named, median.objective


def _change(city: City, sites: Sites, median: Sites) -> str:
    """Describe how a deployment differs from that of the p-median."""
    p, center = len(sites), one_median(city).sites[0]
    ours, theirs = _charts.place_counts(city, sites), _charts.place_counts(city, median)
    if p > 1 and ours[city.twin_groups[center]] == p:
        return f"All {p} units are at the 1-median, {city.site_names[center]}."
    moved = int(np.maximum(ours - theirs, 0).sum())
    if moved == 0:
        return "The best deployment found is that of the p-median."
    return f"{moved} of {p} units wait elsewhere than in the p-median deployment."
