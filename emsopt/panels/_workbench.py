"""The part of the dashboard that belongs to one city: controls, results, and a map to click on."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import ipywidgets as widgets
from ipywidgets import Dropdown, IntSlider, SelectMultiple

from ..city import City, DeploymentSpace
from ..errors import InputError
from ..evaluators import Evaluation, evaluate_all, p_median
from ..evaluators.by_name import evaluate
from ..evaluators.objective import Objective
from ..optimizers import best_deployment
from ..planning import units_needed
from ..planning.scenarios import scenario
from . import _charts
from ._city import OwnPanel, city_controls
from ._job import Job
from ._widgets import button, control

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ..evaluators.enumeration import Enumeration

QUICK = 1.2e7  # limit on deployments times atoms times units to enumerate: about a third of a second
PATIENCE = 2.0  # time limit of the p-median in seconds; if it is reached, the incumbent is used
MUCH_LOST = 0.05  # share of calls lost from which a message says that the fleet is too small
SIMULATED = {"calls": _charts.CALLS, "rng": 1}  # the same calls for all, so that differences are precise


class Workbench(OwnPanel):
    """Controls and results for one city.

    Parameters
    ----------
    city : City
    units : int
        Initial fleet size.
    today : sequence of int, optional
        Site of each of today's units, to compare with.
    about : mapping, optional
        What the city was made with, such as its speed; further columns of the table of scenarios.

    Attributes
    ----------
    job : Job
        The search in the background.
    """

    def __init__(
        self,
        city: City,
        units: int,
        today: tuple[int, ...] | None = None,
        about: Mapping[str, object] | None = None,
    ) -> None:
        self.today, self.about, self.follows = today, dict(about or {}), ""
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
        controls["units"].action = self.resize
        tip, base = "Deployment over which tables say the gain", "p-median" if today is None else "today"
        controls["baseline"] = control(
            Dropdown, base, "Gain over", tip, options=("today", "p-median", "optimum", "yours")
        )
        inputs = list(controls.values())
        controls["keep"] = button("Yours is today's", "Compare with your deployment from now on", self.keep)
        controls["count"] = control(IntSlider, 5, "Alternatives", "How many of the best to list", (1, 20))
        super().__init__(city, controls, ("figures", "busy", "responses", "alternatives"))
        self.message.layout.min_height = "2.8em"  # keeps the map in place when a message appears
        tip = "Search with the exact model (up to 12 units); proves optimality if all deployments can be enumerated"
        self.job = Job("Search thoroughly", tip, self.message, self._search)
        self.refs |= {"search": self.job.start, "cancel": self.job.cancel, "progress": self.job.bar}
        column = widgets.VBox(inputs, layout={"width": "min(34em, 100%)"})
        answers = widgets.VBox([self.outputs["figures"], self.job], layout={"max_width": "100%"})
        own = widgets.HTML("<h4 style='margin:0.6em 0 0'>Your deployment</h4>")
        rows = "column answers | message | map | own | sites | optimum p_median keep"
        rows += " | busy responses | count | alternatives"
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
        best = self._best()[0]
        found = {} if best is None else {"optimum": best}
        found["p-median"] = self.solve(*self.settings())[0]
        return found if self.today is None else found | {"today": self.today}

    def take(self, name: str) -> None:
        """Make a known deployment the user's, which then follows the fleet size."""
        if name not in self.known():
            raise InputError("there is no optimum yet: press Search thoroughly first.")
        super().take(name)
        self.follows = name

    def moved(self) -> None:
        self.follows = ""
        super().moved()

    def keep(self) -> None:
        """Make the user's deployment today's, and compare with it."""
        self.today = self.deployments()["yours"]
        if self.at.baseline == "today":
            self.respond()
        else:
            self.controls["baseline"].value = "today"

    def resize(self) -> None:
        """Give the user's deployment as many units as the fleet has, at sites of the best one where it may choose."""
        try:
            known = self.known()
        except InputError:
            self.respond()  # shows the error
            return
        if self.follows in known and self.follows != "today":
            self.take(self.follows)
            return
        best, units = next(iter(known.values())), self.at.units
        kept = sorted(self.sites.chosen, key=lambda site: site not in best)[:units]
        self.sites.take([*kept, *(site for site in best if site not in kept)][:units])

    def _base(self, answer: Mapping[str, object]) -> str:
        """Return the name of the deployment to compare with; the p-median if the chosen one does not exist."""
        return self.at.baseline if self.at.baseline in answer else "p-median"

    def _best(self) -> tuple[tuple[int, ...] | None, str]:
        """Return the sites of the best deployment found, None before a search, and a text on how it was found."""
        settings = self.settings()
        everything = self.solve(*settings)[1]
        if settings in self.found:
            return self.found[settings]
        if everything is None:
            return None, "not searched yet; press Search thoroughly"
        how = f"best of all {len(everything.values):,} deployments by the approximate model"
        return tuple(everything.best_sites.tolist()), how

    def compute(self) -> dict[str, Evaluation]:
        deployments = self.deployments()
        model, _ = self.evaluator(max(map(len, deployments.values())))
        return {name: self.evaluate(self.at.load, sites, model) for name, sites in deployments.items()}

    def draw(self, answer: dict[str, Evaluation]) -> str:
        city, at, everything = self.city.scaled(self.at.load), self.at, self.solve(*self.settings())[1]
        caption = f"{city.name}: {city.total_rate:.3g} calls per hour. Optimum: {self._best()[1]}."
        base = self._base(answer)
        self.show(figures=_charts.figures(caption, answer, at.threshold, baseline=base))
        self.view.show(city, answer)
        alike = self.evaluate(at.load, tuple(answer[base].sites.tolist()), "approximate")
        alternatives = _charts.alternatives(everything, at.count, at.threshold, (base, alike))
        self.show(busy=_charts.busy(answer), alternatives=alternatives)
        self.show(responses=_charts.responses(answer, at.threshold))  # last, as it takes longest
        return self._remark(answer)

    def _remark(self, answer: dict[str, Evaluation]) -> str:
        """Return a message if the user's deployment departs from the settings, or results need an explanation."""
        said: list[str] = []
        lost = answer["p-median"].loss_probability
        if lost > MUCH_LOST:
            needed = units_needed(self.city.scaled(self.at.load))
            said.append(f"{self.at.units} units lose {lost:.0%} of the calls; the load needs {needed}.")
        if self.at.baseline not in answer:
            said.append(f"There is no {self.at.baseline} yet, so gains are over the p-median.")
        names, at, chosen = self.city.site_names, self.at, self.sites.chosen
        if len(chosen) != at.units:
            said.append(f"You placed {len(chosen)} of {at.units} units.")
        if missing := [names[site] for site in at.pinned if site not in chosen]:
            said.append(f"Your deployment has no unit at {', '.join(missing)}, which is to keep one.")
        if taken := [names[site] for site in at.closed if site in chosen]:
            said.append(f"Your deployment has a unit at {', '.join(taken)}, which is closed.")
        said.append(self.evaluator(max(map(len, self.deployments().values())))[1])
        return " ".join(filter(None, said))

    def scenarios(self) -> list[dict[str, object]]:
        """Return one row of the table of scenarios for each deployment: the user's, the optimum and the p-median."""
        at, city, answer, names = self.at, self.city.scaled(self.at.load), self.compute(), self.city.site_names
        base = self._base(answer)
        sites = {name: "; ".join(names[site] for site in getattr(at, name)) for name in ("pinned", "closed")}
        more = {"baseline": base, "load_factor": at.load, **sites, **self.about}
        return [scenario(city, name, e, at.objective, at.threshold, answer[base]) | more for name, e in answer.items()]

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
