"""The deployment panel, to compare one's own deployment with the best, and the load panel, for the best under any load.

The load panel varies Figure 5 of "Optimizing Server Locations in Spatial Queues".
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from ipywidgets import Checkbox, Dropdown, IntSlider

from ..city import City, DeploymentSpace
from ..errors import _validate
from ..errors._types import Sites
from ..evaluators import Evaluation, p_median, simulate
from ..evaluators.by_name import MOST_EXACT_UNITS, evaluate
from ..evaluators.objective import Objective
from ..optimizers import best_deployment, local_search
from . import _charts
from ._panel import CityPanel, OwnDeploymentPanel, Panel, city_controls, demand_input, threshold_slider
from ._widgets import button, control, paragraphs, table

SIMULATION_SEED = 1  # the same calls for every deployment, so that differences are precise
SERVICE_LAWS = {
    "exponential": ("exponential", None),
    "lognormal, cv 0.5": ("lognormal", 0.5),
    "lognormal, cv 2": ("lognormal", 2.0),
    "always the mean": ("deterministic", None),
}
CALL_CHOICES = [(f"{n:,}", n) for n in (20_000, 100_000, 500_000)]
EXPLANATION = (
    "Tick the sites at which a unit waits, or click on stations of the map. Your deployment is compared with the best "
    "one and with that of the p-median. Run simulates all three on the same calls, with the service times you choose."
)


def deployment_panel(city: City, units: int) -> Panel:
    """Return a panel that compares the user's own deployment with the optimum and the p-median deployment.

    The optimum is that of the approximate hypercube model or, if there are too many deployments to enumerate, the best
    one found by a search. Raise if the city has fewer than ``units`` sites.

    Parameters
    ----------
    city : City
    units : int
        Initial fleet size of the optimum and of the p-median deployment, each site holding one unit at most.

    Returns
    -------
    Panel
        ``refs`` has ``sites`` (a list of checkboxes, the user's deployment), the buttons ``optimum`` and ``p_median``
        (which make that deployment the user's), ``clear`` and ``run`` (which simulates all three), the tables
        ``figures``, by the hypercube models, and ``simulation``, and others.

    Examples
    --------
    >>> import emsopt as eo
    >>> list(eo.panels.deployment_panel(eo.datasets.grid_city(n_sites=6, units=2, rng=1), 2).compute())
    ['exact', 'approximate']
    """
    return _DeploymentPanel(city, _validate.whole_number(units, "units"))


class _DeploymentPanel(OwnDeploymentPanel):
    """The panel that `deployment_panel` returns."""

    def __init__(self, city: City, units: int) -> None:
        self.solve, self.search = lru_cache(maxsize=512)(evaluate), lru_cache(maxsize=64)(_best_and_median)
        self.search(city, units)  # raises at once if the fleet does not fit
        law, calls = "Distribution of service times", "How many calls to simulate"
        fleet = control(IntSlider, units, "Fleet (units)", "Number of units, p", (1, city.n_sites), self.on_move)
        controls = demand_input(city, self.on_move) | {
            "units": fleet,
            "clear": button("Clear", "Untick all sites", lambda: self.sites.set_units(())),
            "threshold": threshold_slider(),
            "service": control(
                Dropdown, "exponential", "Service times", law, (), self.on_move, options=list(SERVICE_LAWS)
            ),
            "calls": control(Dropdown, 100_000, "Calls", calls, action=self.on_move, options=CALL_CHOICES),
            "run": button("Run simulation", "Simulate the three deployments", self._simulate, slow=True),
        }
        super().__init__(city, controls, ("figures", "simulation"))
        first = " ".join(name for name in ("demand", "units", "threshold") if name in controls)
        rows = f"sites | optimum p_median clear | {first} | message | figures || map | service calls run | simulation"
        self.arrange_widgets("A deployment of your own", EXPLANATION, rows, sites=self.sites)
        self.take_deployment("p-median")

    def known_deployments(self) -> dict[str, tuple[int, ...]]:
        return self.search(self.chosen_city, self.values.units)[0]

    def on_move(self) -> None:
        self.show(simulation="")  # its figures are out of date
        self.respond()

    def compute(self) -> dict[str, dict[str, Evaluation]]:
        """Return evaluations by model, then by deployment; the exact model is left out for more than 12 units."""
        deployments = self.deployments()
        quick = max(map(len, deployments.values())) <= MOST_EXACT_UNITS
        models = ("exact", "approximate") if quick else ("approximate",)
        return {
            model: {name: self.solve(self.chosen_city, x, model) for name, x in deployments.items()} for model in models
        }

    def draw(self, answer: dict[str, dict[str, Evaluation]]) -> str:
        city, best = self.chosen_city, next(iter(answer.values()))
        means = {f", {model}": evaluations.values() for model, evaluations in answer.items()}
        message = self.search(city, self.values.units)[1]
        caption = f"{city.name}: {city.total_rate:.3g} calls per hour. Optimum: by the approximate model, {message}."
        self.show(figures=_charts.figures_table(caption, best, self.values.threshold, means))
        self.view.show(city, best)
        return self._fleet_remark()

    def _fleet_remark(self) -> str:
        """Return a message if the user's number of units differs from that of the fleet, else ""."""
        placed, units = len(self.sites.deployment), self.values.units
        return "" if placed == units else f"You placed {placed} of {units} units; the others have {units}."

    def _simulate(self) -> str:
        """Simulate the deployments and show the results with intervals; return the message of `_fleet_remark`."""
        deployments = self.deployments()
        law, cv = SERVICE_LAWS[self.values.service]
        options = {"calls": self.values.calls, "service": law, "cv": cv, "rng": SIMULATION_SEED}
        results = [simulate(self.chosen_city, sites, **options) for sites in deployments.values()]
        intervals = [result.intervals["mean_response"] for result in results]
        rows = {
            "mean response (min)": [f"{result.mean_response:.3f}" for result in results],
            "95% interval": [f"{low:.3f} to {high:.3f}" for low, high in intervals],
            "calls lost to the fleet": [f"{result.loss_probability:.3%}" for result in results],
        }
        service = f"service times: {self.values.service}"
        caption = f"Simulation of {self.values.calls:,} calls, the same for all three; {service}."
        self.show(simulation=table(caption, deployments, rows.items()))
        return self._fleet_remark()


def _best_and_median(city: City, units: int) -> tuple[dict[str, tuple[int, ...]], str]:
    """Return the sites of the optimum by the approximate model and of the p-median, and how the former was found."""
    found = best_deployment(Objective(city, units, "approximate"), rng=0)
    return {"optimum": tuple(found.x.tolist()), "p-median": tuple(p_median(city, units).sites.tolist())}, found.message


# -- load ----------------------------------------------------------------------------------------------------------

RESTARTS = 2  # random starts besides the p-median and the 1-median; few, so that the slider responds quickly
LOAD_EXPLANATION = (
    "The load multiplies all call rates. Under light load the best deployment is that of the p-median; under heavy "
    "load all units move to the 1-median, the most central site, if they may share one. Let go of a slider to see the "
    "answer."
)


def load_panel(city: City, units: int) -> Panel:
    """Return a panel that shows how the best deployment changes with load, fleet size, objective and colocation.

    A local search by the approximate hypercube model, which does not prove optimality, starts from the p-median
    deployment, the most central one and a few random ones. The chosen model then evaluates the result.

    Parameters
    ----------
    city : City
        A load of 1 stands for the city's own call rates.
    units : int
        Initial fleet size.

    Returns
    -------
    Panel
        ``refs`` has ``load`` (factor on all call rates), ``units``, ``evaluator`` (model that evaluates the result),
        ``figures`` (table that compares the best deployment found with the p-median) and others.

    Examples
    --------
    >>> import emsopt as eo
    >>> eo.panels.load_panel(eo.datasets.grid_city(n_sites=6, units=2, rng=1), 2).refs["load"].value
    1.0
    """
    return _LoadPanel(city, _validate.whole_number(units, "units"))


class _LoadPanel(CityPanel):
    """The panel that `load_panel` returns."""

    def __init__(self, city: City, units: int) -> None:
        controls = demand_input(city) | city_controls(city, units, 3, 0.1, ("exact", "approximate"))
        controls["colocation"] = control(Checkbox, True, "units may share a site", "Allow several units at a site")
        super().__init__(city, controls)
        self.solve = lru_cache(maxsize=512)(_evaluate_load)
        layout = " | ".join([*controls, "message", "figures"]) + " || map"
        self.arrange_widgets("The best deployment under load", LOAD_EXPLANATION, layout)
        self.respond()

    def compute(self) -> tuple[City, dict[str, Evaluation], float]:
        at = self.values
        return self.solve(self.chosen_city, at.load, at.units, self.metric, at.colocation, self.evaluator(at.units)[0])

    def draw(self, answer: tuple[City, dict[str, Evaluation], float]) -> str:
        city, evaluations, bound = answer
        best, median = (e.sites for e in evaluations.values())
        units, rate = self.values.units, f"{city.total_rate:.3g} calls per hour (load {self.values.load:.3g})"
        caption = f"{city.name}: {rate}, {city.offered_load(units):.3g} times what {units} units can serve."
        at_least = f"The mean response of {units} units cannot be below {bound:.3f} min, the p-median bound."
        where = f"Best found, units at: {_charts.units_at(city, best)}."
        said = paragraphs(f"{_describe_change(city, best, median)} {at_least}", where)
        self.show(figures=_charts.figures_table(caption, evaluations, self.values.threshold) + said)
        self.view.show(city, evaluations)
        return self.evaluator(units)[1]


def _evaluate_load(
    city: City, load: float, units: int, metric: str | tuple[str, float], colocation: bool, evaluator: str
) -> tuple[City, dict[str, Evaluation], float]:
    """Return the city under load, evaluations of the best deployment and the p-median, and the p-median bound (min)."""
    city = city.scaled(load)
    space = DeploymentSpace(city, units, colocation=colocation)
    median, judge = p_median(city, space), Objective(city, space, evaluator, metric)
    found = local_search(Objective(city, space, "approximate", metric), restarts=RESTARTS, rng=0)
    # The two models may rank near ties differently.
    best = min((median.sites, np.asarray(found.x, dtype=int)), key=judge)
    return city, {"best found": judge.evaluation(best), "p-median": judge.evaluation(median.sites)}, median.objective


def _describe_change(city: City, sites: Sites, median: Sites) -> str:
    """Return a sentence on how a deployment differs from that of the p-median."""
    p, center = len(sites), np.argmin(city.response_times @ city.demand_shares)
    ours, theirs = _charts.place_counts(city, sites), _charts.place_counts(city, median)
    if p > 1 and ours[city.twin_groups[center]] == p:
        return f"All {p} units are at the 1-median, {city.site_names[center]}."
    moved = int(np.maximum(ours - theirs, 0).sum())
    if moved == 0:
        return "The best deployment found is that of the p-median."
    return f"{moved} of {p} units wait elsewhere than in the p-median deployment."
