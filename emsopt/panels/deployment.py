"""The deployment panel: choose sites yourself, and compare the result with the best deployment."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from ipywidgets import Dropdown, IntSlider

from .. import _validate
from ..evaluators import EXACT_UP_TO, Evaluation, p_median, simulate
from ..evaluators.by_name import evaluate
from ..evaluators.objective import Objective
from ..optimizers import best_deployment
from . import _charts
from ._city import OwnPanel, demand_choice, threshold_slider
from ._widgets import button, control, table

if TYPE_CHECKING:
    from ..city.city import City
    from ._panel import Panel

SEED = 1  # the same calls for every deployment, so that differences are precise
LAWS = {
    "exponential": ("exponential", None),
    "lognormal, cv 0.5": ("lognormal", 0.5),
    "lognormal, cv 2": ("lognormal", 2.0),
    "always the mean": ("deterministic", None),
}
CALLS = [(f"{n:,}", n) for n in (20_000, 100_000, 500_000)]
EXPLANATION = (
    "Tick the sites at which a unit waits, or click on stations of the map. Your deployment is compared with the best "
    "one and with that of the p-median. Run simulates all three on the same calls, with the service times you choose."
)


def deployment_panel(city: City, units: int) -> Panel:
    """Compare the user's own deployment with the optimum and the p-median deployment.

    The optimum is that of the approximate hypercube model. If there are too many deployments to enumerate, it is the
    best one found by a search.

    Parameters
    ----------
    city : City
    units : int
        Initial fleet size of the optimum and of the p-median deployment, each site holding one unit at most.

    Returns
    -------
    Panel
        With ``refs``, a dict of its inputs and outputs by name. Inputs: ``sites`` (a list of checkboxes, the user's
        deployment; a click on a station of the map adds or removes a unit there), ``units`` (fleet size), ``threshold``
        (minutes from which a response is late), ``service`` (distribution of service times in the simulation),
        ``calls`` (number of calls to simulate) and, for St. Paul, ``demand``, as in `load_panel`. Buttons: ``optimum``
        and ``p_median`` (make that deployment the user's), ``clear`` (untick all sites) and ``run`` (simulate the three
        deployments). Outputs: ``message`` (errors and remarks), ``figures`` (table that compares the deployments by the
        hypercube models), ``simulation`` (table of simulated results) and ``map``.

    Raises
    ------
    InputError
        If ``units`` is not a positive whole number, or exceeds the number of sites.

    Examples
    --------
    >>> import emsopt as eo
    >>> city = eo.datasets.grid_city(n_sites=6, units=2, rng=1)
    >>> panel = eo.panels.deployment_panel(city, 2)
    >>> "message" in panel.refs
    True
    """
    return _DeploymentPanel(city, _validate.whole_number(units, "units"))


class _DeploymentPanel(OwnPanel):
    """The panel that `deployment_panel` returns."""

    def __init__(self, city: City, units: int) -> None:
        self.solve, self.search = lru_cache(maxsize=512)(evaluate), lru_cache(maxsize=64)(_search)
        self.search(city, units)  # raises at once if the fleet does not fit
        law, calls = "Distribution of service times", "How many calls to simulate"
        fleet = control(IntSlider, units, "Fleet (units)", "Number of units, p", (1, city.n_sites), self.moved)
        controls = demand_choice(city, self.moved) | {
            "units": fleet,
            "clear": button("Clear", "Untick all sites", lambda: self.sites.take(())),
            "threshold": threshold_slider(),
            "service": control(Dropdown, "exponential", "Service times", law, (), self.moved, options=list(LAWS)),
            "calls": control(Dropdown, 100_000, "Calls", calls, action=self.moved, options=CALLS),
            "run": button("Run simulation", "Simulate the three deployments", self._simulate, slow=True),
        }
        super().__init__(city, controls, ("figures", "simulation"))
        first = " ".join(name for name in ("demand", "units", "threshold") if name in controls)
        rows = f"sites | optimum p_median clear | {first} | message | figures | service calls run | simulation | map"
        self.arrange("A deployment of your own", EXPLANATION, rows, sites=self.sites)
        self.take("p-median")

    def known(self) -> dict[str, tuple[int, ...]]:
        return self.search(self.place, self.at.units)[0]

    def moved(self) -> None:
        self.show(simulation="")  # its figures are out of date
        self.respond()

    def compute(self) -> dict[str, dict[str, Evaluation]]:
        """Return evaluations by model, then by name. The exact model is left out for fleets too large for it."""
        deployments = self.deployments()
        quick = max(map(len, deployments.values())) <= EXACT_UP_TO
        models = ("exact", "approximate") if quick else ("approximate",)
        return {model: {name: self.solve(self.place, x, model) for name, x in deployments.items()} for model in models}

    def draw(self, answer: dict[str, dict[str, Evaluation]]) -> str:
        city, best = self.place, next(iter(answer.values()))
        means = {f", {model}": evaluations.values() for model, evaluations in answer.items()}
        message = self.search(city, self.at.units)[1]
        caption = f"{city.name}: {city.total_rate:.3g} calls per hour. Optimum: by the approximate model, {message}."
        self.show(figures=_charts.figures(caption, best, self.at.threshold, means))
        self.view.show(city, best)
        return self._remark()

    def _remark(self) -> str:
        """Return a message if the user has not placed exactly ``units`` units."""
        placed, units = len(self.sites.chosen), self.at.units
        return "" if placed == units else f"You placed {placed} of {units} units; the others have {units}."

    def _simulate(self) -> str:
        """Simulate the deployments and show the results with intervals; return a text for the message line."""
        deployments = self.deployments()
        law, cv = LAWS[self.at.service]
        options = {"calls": self.at.calls, "service": law, "cv": cv, "rng": SEED}
        results = [simulate(self.place, sites, **options) for sites in deployments.values()]
        intervals = [result.intervals["mean_response"] for result in results]
        rows = {
            "mean response (min)": [f"{result.mean_response:.3f}" for result in results],
            "95% interval": [f"{low:.3f} to {high:.3f}" for low, high in intervals],
            "calls lost to the fleet": [f"{result.loss_probability:.3%}" for result in results],
        }
        caption = f"Simulation of {self.at.calls:,} calls, the same for all three; service times: {self.at.service}."
        self.show(simulation=table(caption, deployments, rows.items()))
        return self._remark()


def _search(city: City, units: int) -> tuple[dict[str, tuple[int, ...]], str]:
    """Return the sites of the optimum and of the p-median, by name, and how the optimum was found."""
    found = best_deployment(Objective(city, units, "approximate"), rng=0)
    median = p_median(city, units).sites
    return {"optimum": tuple(found.x.tolist()), "p-median": tuple(median.tolist())}, found.message
