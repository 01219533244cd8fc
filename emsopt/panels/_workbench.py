"""The part of the dashboard that belongs to one city: controls, what they lead to, and a map to click on."""

from functools import lru_cache
from threading import RLock

import ipywidgets as widgets

from ..city import DeploymentSpace
from ..evaluators import EXACT_UP_TO, evaluate_all, p_median
from ..evaluators.by_name import evaluate
from ..evaluators.objective import Objective
from ..optimizers import best_deployment
from ..planning.scenarios import scenario
from . import _charts, _widgets
from ._job import Job
from ._sites import SiteBoxes

MOST_UNITS = 20
QUICK = 1.2e7  # deployments times atoms times units that the approximate model values in about a third of a second
PATIENCE = 2.0  # seconds for the p-median, which is then the best found
SIMULATED = {"calls": 50_000, "rng": 1}  # the same calls for every deployment, so that differences are sharp
OBJECTIVES = (("mean response", "mean_response"), ("late fraction", "late"))
EVALUATORS = (
    ("exact hypercube", "exact"),
    ("approximate hypercube", "approximate"),
    ("simulation of 50,000 calls", "simulation"),
)
WRAP = {"flex_flow": "row wrap", "grid_gap": "0 1.5em"}


class Workbench:
    """Controls and answers for one city.

    Parameters
    ----------
    city : City
    units : int
        Fleet size to begin with.
    changed : callable
        Called without arguments whenever answers change.

    Attributes
    ----------
    refs : dict of str to Widget
    children : list of Widget
    job : Job
    """

    def __init__(self, city, units, changed):
        self.city, self.found, self.lock, self._changed = city, {}, RLock(), changed
        self.message = _widgets.Message(layout={"min_height": "2.8em"})  # the map must not jump under a click
        self.controls = _controls(city, units)
        self.sites = SiteBoxes(city, lambda: self.respond())
        self.view = _widgets.MapView(city, edit="yours", clicked=self.sites.press)
        self.outputs = {name: widgets.HTML() for name in ("figures", "busy", "responses", "alternatives")}
        self.solve = lru_cache(maxsize=64)(self._solve)
        self.evaluate = lru_cache(maxsize=1024)(self._evaluate)
        self.respond = _widgets.guarded(self.message, self._refresh, self._clear)
        tip = "Search with the exact model (up to 12 units); proves the optimum where all deployments can be tried"
        self.job = Job("Search thoroughly", tip, self.message, self._search, self._take)
        self.buttons = {
            "optimum": widgets.Button(description="Take the optimum", tooltip="Make the optimum yours"),
            "p_median": widgets.Button(description="Take the p-median", tooltip="Make the p-median yours"),
        }
        for name, known in (("optimum", lambda: self.best()[0]), ("p_median", self.median)):
            take = _widgets.guarded(self.message, lambda known=known: self.sites.take(known()))
            self.buttons[name].on_click(take)
        for control in self.controls.values():
            control.observe(self.respond, "value")
        self.sites.take(self.median())
        search = {"search": self.job.start, "cancel": self.job.cancel, "progress": self.job.bar}
        view = {"map": self.view.shown, "feed": self.view.feed}
        self.refs = {"sites": self.sites.boxes, "places": self.view.places, **self.controls, **self.buttons}
        self.refs |= {"message": self.message, **self.outputs, **search, **view}
        self.children = self._children()

    # -- what is asked ----------------------------------------------------------------------------------------

    def settings(self):
        """Return what the controls say, as something to remember answers by."""
        at = {name: control.value for name, control in self.controls.items()}
        metric = ("late", at["threshold"]) if at["objective"] == "late" else "mean_response"
        return at["load"], at["units"], metric, at["pinned"], at["closed"]

    def evaluator(self, units):
        """Return the model that values fleets of up to ``units``: the exact one only where it is quick."""
        chosen = self.controls["evaluator"].value
        return "approximate" if chosen == "exact" and units > EXACT_UP_TO else chosen

    # -- what is answered -------------------------------------------------------------------------------------

    def _solve(self, load, units, metric, pinned, closed):
        """Return the city, the sites of the p-median, and all deployments if trying them is quick, else None."""
        city = self.city.scaled(load)
        space = DeploymentSpace(city, units, pinned=pinned, closed=closed)
        median = tuple(p_median(city, space, time_limit=PATIENCE).sites.tolist())
        quick = space.count * city.n_atoms * units <= QUICK
        everything = evaluate_all(city, space, "approximate", metric=metric) if quick else None
        return city, median, everything

    def _evaluate(self, load, sites, evaluator):
        options = SIMULATED if evaluator == "simulation" else {}
        return evaluate(self.city.scaled(load), list(sites), evaluator, **options)

    def median(self):
        """Return the sites of the p-median deployment."""
        return self.solve(*self.settings())[1]

    def best(self):
        """Return the sites of the best deployment known, and how it was found."""
        settings = self.settings()
        _, median, everything = self.solve(*settings)
        if settings in self.found:
            return self.found[settings]
        if everything is None:
            return median, "so far that of the p-median; Search thoroughly looks for a better one"
        how = f"best of all {len(everything.values):,} deployments by the approximate model"
        return tuple(everything.best_sites.tolist()), how

    def evaluations(self):
        """Return the `Evaluation` of one's own deployment, of the optimum and of the p-median, by name."""
        load = self.controls["load"].value
        chosen = {"yours": self.sites.chosen, "optimum": self.best()[0], "p-median": self.median()}
        model = self.evaluator(max(map(len, chosen.values())))
        return {name: self.evaluate(load, sites, model) for name, sites in chosen.items()}

    def scenarios(self):
        """Return one row for each of the three deployments."""
        threshold, metric = self.controls["threshold"].value, self.controls["objective"].value
        city = self.city.scaled(self.controls["load"].value)
        return [scenario(city, name, e, metric, threshold) for name, e in self.evaluations().items()]

    def _refresh(self):
        with self.lock:
            self._changed()
            city, _, everything = self.solve(*self.settings())
            shown, threshold = self.evaluations(), self.controls["threshold"].value
            self.outputs["figures"].value = _charts.figures(city, shown, self.best()[1], threshold)
            self.view.show(city, shown)
            self.outputs["busy"].value = _charts.busy(shown)
            k = self.controls["count"].value
            self.outputs["alternatives"].value = _charts.alternatives(everything, k, threshold)
            self.outputs["responses"].value = _charts.responses(shown, threshold)  # takes longest: last
            return self._remark(len(shown["yours"].sites))

    def _clear(self):
        self._changed()
        for output in self.outputs.values():
            output.value = ""
        self.view.hide()

    def _remark(self, placed):
        """Say what is odd about one's own deployment, and which model was not used."""
        said, names, chosen = [], self.city.site_names, set(self.sites.chosen)
        units, at = self.controls["units"].value, self.controls
        if placed != units:
            said.append(f"You placed {placed} of {units} units.")
        if missing := [names[site] for site in at["pinned"].value if site not in chosen]:
            said.append(f"Yours has no unit at {', '.join(missing)}, which is to keep one.")
        if taken := [names[site] for site in at["closed"].value if site in chosen]:
            said.append(f"Yours has a unit at {', '.join(taken)}, which is closed.")
        if at["evaluator"].value == "exact" and max(placed, units) > EXACT_UP_TO:
            said.append(f"Fleets of more than {EXACT_UP_TO} units are valued by the approximate model.")
        return " ".join(said)

    # -- what is done about it --------------------------------------------------------------------------------

    def _search(self):
        """Return the work of a thorough search under the present settings."""
        load, units, metric, pinned, closed = settings = self.settings()
        evaluator = "exact" if units <= EXACT_UP_TO else "approximate"
        city = self.city.scaled(load)
        objective = _Watched(city, DeploymentSpace(city, units, pinned=pinned, closed=closed), evaluator, metric)

        def work(progress):
            last = [0, 1]

            def tell(done, total):
                last[:] = done, total
                progress(done, total)

            objective.ask = lambda: progress(*last)
            return settings, objective, best_deployment(objective, rng=0, progress=tell)

        return work

    def _take(self, result):
        """Remember what a search found, show it, and say it."""
        settings, objective, run = result
        self.found[settings] = tuple(run.x.tolist()), f"by the {objective.evaluator} model, {run.message}"
        self.respond()
        where = _widgets.places(self.city, run.x.tolist())
        return f"Searched by the {objective.evaluator} model, {run.message}. Best: {where}."

    def close(self):
        """End the search, and let go of the widgets."""
        self.job.stop()
        for child in self.children:
            _widgets.close(child)

    def _children(self):
        """Return the widgets as they stand on the page."""
        inputs = [control for name, control in self.controls.items() if name != "count"]
        left = widgets.VBox(inputs, layout={"width": "min(34em, 100%)"})
        right = widgets.VBox([self.outputs["figures"], self.job.box], layout={"max_width": "100%"})
        title = widgets.HTML("<h4 style='margin:0.6em 0 0'>Your deployment</h4>")
        row = widgets.HBox([self.buttons["optimum"], self.buttons["p_median"]], layout=WRAP)
        charts = widgets.HBox([self.outputs["busy"], self.outputs["responses"]], layout=WRAP)
        return [
            widgets.HBox([left, right], layout=WRAP),
            self.message,
            self.view.shown,
            self.view.feed,
            self.view.hidden,
            title,
            self.sites.grid,
            row,
            charts,
            self.controls["count"],
            self.outputs["alternatives"],
        ]


class _Watched(Objective):
    """An objective that asks before every batch whether to go on."""

    def ask(self):
        """Raise an error to end the search; replaced by whoever wants to."""

    def values(self, deployments):
        self.ask()
        return super().values(deployments)


def _controls(city, units):
    """Return the inputs by name."""
    control = _widgets.control
    listed = [(name, site) for site, name in enumerate(city.site_names)]
    several = {"options": listed, "rows": 4}
    return {
        "units": control(
            widgets.IntSlider,
            "Fleet (units)",
            "Number of units, p",
            value=units,
            min=1,
            max=max(units, min(city.n_sites, MOST_UNITS)),
        ),
        "load": control(
            widgets.FloatLogSlider,
            "Load θ",
            "Factor on all call rates, from 0.1 to 10",
            value=1.0,
            base=10,
            min=-1,
            max=1,
            step=0.05,
            readout_format=".2f",
        ),
        "objective": control(widgets.Dropdown, "Minimise", "What the optimum is best at", options=OBJECTIVES),
        "threshold": _widgets.threshold_slider(),
        "evaluator": control(widgets.Dropdown, "Figures by", "Model that values the deployments", options=EVALUATORS),
        "count": control(widgets.IntSlider, "Alternatives", "How many of the best to list", value=5, min=1, max=20),
        "pinned": control(
            widgets.SelectMultiple,
            "Keep a unit at",
            "The optimum and the p-median keep a unit at each of these; Ctrl+click for several",
            **several,
        ),
        "closed": control(
            widgets.SelectMultiple,
            "Close",
            "The optimum and the p-median have no unit at these; Ctrl+click for several",
            **several,
        ),
    }
