"""The part of the dashboard that belongs to one city: controls, results, and a map to click on."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import ipywidgets as widgets
from ipywidgets import IntSlider, SelectMultiple

from ..city import City, DeploymentSpace
from ..evaluators import Evaluation, evaluate_all, p_median
from ..evaluators.by_name import evaluate
from ..evaluators.objective import Objective
from ..optimizers import best_deployment
from ..planning.scenarios import scenario
from . import _charts
from ._city import OwnPanel, city_controls
from ._job import Job
from ._widgets import control

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..evaluators.enumeration import Enumeration

QUICK = 1.2e7  # limit on deployments times atoms times units to enumerate: about a third of a second
PATIENCE = 2.0  # time limit of the p-median in seconds; if it is reached, the incumbent is used
SIMULATED = {"calls": _charts.CALLS, "rng": 1}  # the same calls for all, so that differences are precise


class Workbench(OwnPanel):
    """Controls and results for one city.

    Parameters
    ----------
    city : City
    units : int
        Initial fleet size.

    Attributes
    ----------
    job : Job
        The search in the background.
    """

    def __init__(self, city: City, units: int) -> None:
        self.found: dict[tuple[Any, ...], tuple[tuple[int, ...], str]] = {}
        self.solve = lru_cache(maxsize=64)(self._solve)
        self.evaluate = lru_cache(maxsize=1024)(self._evaluate)
        sites = [(name, site) for site, name in enumerate(city.site_names)]
        pinned = "The optimum and the p-median keep a unit at each of these; Ctrl+click for several"
        closed = "The optimum and the p-median have no unit at these; Ctrl+click for several"
        controls = city_controls(city, units, 1, 0.05, ("exact", "approximate", "simulation"))
        controls |= {
            "pinned": control(SelectMultiple, (), "Keep a unit at", pinned, options=sites, rows=4),
            "closed": control(SelectMultiple, (), "Close", closed, options=sites, rows=4),
        }
        inputs = list(controls.values())
        controls["count"] = control(IntSlider, 5, "Alternatives", "How many of the best to list", (1, 20))
        super().__init__(city, controls, ("figures", "busy", "responses", "alternatives"))
        self.message.layout.min_height = "2.8em"  # keeps the map in place when a message appears
        tip = "Search with the exact model (up to 12 units); proves optimality if all deployments can be enumerated"
        self.job = Job("Search thoroughly", tip, self.message, self._search)
        self.refs |= {"search": self.job.start, "cancel": self.job.cancel, "progress": self.job.bar}
        column = widgets.VBox(inputs, layout={"width": "min(34em, 100%)"})
        answers = widgets.VBox([self.outputs["figures"], self.job], layout={"max_width": "100%"})
        own = widgets.HTML("<h4 style='margin:0.6em 0 0'>Your deployment</h4>")
        rows = "column answers | message | map | own | sites | optimum p_median | busy responses | count | alternatives"
        self.arrange("", "", rows, column=column, answers=answers, own=own, sites=self.sites)
        self.take("p-median")

    # -- answers ----------------------------------------------------------------------------------------------------

    def settings(self) -> tuple[Any, ...]:
        """Return the settings on which the optimum depends: load, fleet size, metric, and pinned and closed sites."""
        at = self.at
        return at.load, at.units, self.metric, at.pinned, at.closed

    def _solve(
        self, load: float, units: int, metric: Any, pinned: tuple[int, ...], closed: tuple[int, ...]
    ) -> tuple[tuple[int, ...], Enumeration | None]:
        """Return the sites of the p-median, and the enumeration of all deployments if it is quick (else None).

        ``load`` is a factor on all call rates; ``pinned`` and ``closed`` are indices of sites.
        """
        city = self.city.scaled(load)
        space = DeploymentSpace(city, units, pinned=pinned, closed=closed)
        median = tuple(p_median(city, space, time_limit=PATIENCE).sites.tolist())
        quick = space.count * city.n_atoms * units <= QUICK
        return median, evaluate_all(city, space, "approximate", metric=metric) if quick else None

    def _evaluate(self, load: float, sites: tuple[int, ...], evaluator: str) -> Evaluation:
        """Evaluate a deployment by the model ``evaluator``, with all call rates multiplied by ``load``."""
        options = SIMULATED if evaluator == "simulation" else {}
        return evaluate(self.city.scaled(load), list(sites), evaluator, **options)

    def known(self) -> dict[str, tuple[int, ...]]:
        return {"optimum": self._best()[0], "p-median": self.solve(*self.settings())[0]}

    def _best(self) -> tuple[tuple[int, ...], str]:
        """Return the sites of the best known deployment, and a text on how it was found."""
        settings = self.settings()
        median, everything = self.solve(*settings)
        if settings in self.found:
            return self.found[settings]
        if everything is None:
            return median, "so far that of the p-median; press Search thoroughly to look for a better one"
        how = f"best of all {len(everything.values):,} deployments by the approximate model"
        return tuple(everything.best_sites.tolist()), how

    def compute(self) -> dict[str, Evaluation]:
        deployments = self.deployments()
        model, _ = self.evaluator(max(map(len, deployments.values())))
        return {name: self.evaluate(self.at.load, sites, model) for name, sites in deployments.items()}

    def draw(self, answer: dict[str, Evaluation]) -> str:
        city, at, everything = self.city.scaled(self.at.load), self.at, self.solve(*self.settings())[1]
        caption = f"{city.name}: {city.total_rate:.3g} calls per hour. Optimum: {self._best()[1]}."
        self.show(figures=_charts.figures(caption, answer, at.threshold))
        self.view.show(city, answer)
        alternatives = _charts.alternatives(everything, at.count, at.threshold)
        self.show(busy=_charts.busy(answer), alternatives=alternatives)
        self.show(responses=_charts.responses(answer, at.threshold))  # last, as it takes longest
        return self._remark()

    def _remark(self) -> str:
        """Return a message if the user's deployment departs from the settings or the chosen model was not used."""
        said, names, at, chosen = [], self.city.site_names, self.at, self.sites.chosen
        if len(chosen) != at.units:
            said.append(f"You placed {len(chosen)} of {at.units} units.")
        if missing := [names[site] for site in at.pinned if site not in chosen]:
            said.append(f"Your deployment has no unit at {', '.join(missing)}, which is to keep one.")
        if taken := [names[site] for site in at.closed if site in chosen]:
            said.append(f"Your deployment has a unit at {', '.join(taken)}, which is closed.")
        said.append(self.evaluator(max(len(chosen), at.units))[1])
        return " ".join(filter(None, said))

    def scenarios(self) -> list[dict[str, object]]:
        """Return one row of the table of scenarios for each deployment: the user's, the optimum and the p-median."""
        at, city = self.at, self.city.scaled(self.at.load)
        return [scenario(city, name, e, at.objective, at.threshold) for name, e in self.compute().items()]

    # -- the search ---------------------------------------------------------------------------------------------------

    def _search(self) -> Callable[[], str]:
        """Return a function that makes a thorough search under the current settings."""
        load, units, metric, pinned, closed = settings = self.settings()
        city = self.city.scaled(load)
        objective = Objective(city, DeploymentSpace(city, units, pinned=pinned, closed=closed), None, metric)

        def work() -> str:
            run = best_deployment(objective, rng=0, progress=self.job.tell)
            sites, how = tuple(run.x.tolist()), f"by the {objective.evaluator} model, {run.message}"
            self.job.tell(1, 1)
            self.found[settings] = sites, how
            self.respond()
            return f"Searched {how}. Best: {_charts.units_at(city, list(sites))}."

        return work

    def end(self) -> None:
        """End the search and close all widgets, which would otherwise stay in the kernel's memory."""
        self.job.stop()
        _close(self)


def _close(widget: Any) -> None:
    """Close a widget with its children, style and layout."""
    own = [getattr(widget, name, None) for name in ("style", "layout")]
    for part in filter(None, [*getattr(widget, "children", ()), *own]):
        _close(part)
    widget.close()
