"""The deployment panel: choose sites oneself, and see how far from the best that is."""

from functools import lru_cache

import ipywidgets as widgets

from .. import _validate
from ..evaluators import EXACT_UP_TO, approximate_hypercube, exact_hypercube, p_median, simulate
from ..evaluators.objective import Objective
from ..optimizers import best_deployment
from . import _widgets
from ._sites import SiteBoxes

SEED = 1  # the same calls for every deployment, so that differences are sharp
LAWS = {
    "exponential": ("exponential", None),
    "lognormal, cv 0.5": ("lognormal", 0.5),
    "lognormal, cv 2": ("lognormal", 2.0),
    "always the mean": ("deterministic", None),
}
EXPLANATION = (
    "Tick the sites at which a unit waits, or click on stations of the map. Your deployment is compared with the best one and with that of the p-median. "
    "Run simulates all three on the same calls, with service times as you say."
)


def deployment_panel(city, units):
    """Compare a deployment of one's own with the optimum and the p-median deployment.

    The optimum is that of the approximate hypercube model, by enumeration where that is affordable.

    Parameters
    ----------
    city : City
    units : int
        Fleet size of the optimum and of the p-median deployment, each site holding one unit at most.

    Returns
    -------
    Panel
        With ``refs``: ``sites`` (a list of checkboxes), ``threshold``, ``optimum``, ``p_median`` and ``clear``
        (buttons), ``service``, ``calls``, ``run`` (button), ``message``, ``figures``, ``simulation``, ``map``,
        ``feed``.

    Raises
    ------
    InputError
        If the fleet does not fit the sites.
    """
    units = _validate.whole_number(units, "units")
    search = best_deployment(Objective(city, units, "approximate"), rng=0)
    named = {"optimum": search.x, "p-median": p_median(city, units).sites}
    names = ["yours", *named]
    controls = _controls()
    message, figures, simulation = _widgets.Message(), widgets.HTML(), widgets.HTML()
    view = _widgets.MapView(city, edit="yours", clicked=lambda places: sites.press(places))

    @lru_cache(maxsize=256)
    def solve(sites):
        exact = exact_hypercube(city, sites) if len(sites) <= EXACT_UP_TO else None
        return exact, approximate_hypercube(city, sites)

    def deployments():
        return {"yours": sites.chosen} | {name: tuple(best.tolist()) for name, best in named.items()}

    def remark(chosen):
        ticked = len(chosen["yours"])
        return "" if ticked == units else f"You placed {ticked} of {units} units; the others have {units}."

    def refresh():
        chosen = deployments()
        exact, approximate = zip(*map(solve, chosen.values()), strict=True)
        best = approximate if None in exact else exact
        figures.value = _figures(city, search, chosen, exact, approximate, best, controls["threshold"].value)
        view.show(city, dict(zip(names, best, strict=True)))
        return remark(chosen)

    def clear():
        figures.value = simulation.value = ""
        view.hide()

    respond = _widgets.guarded(message, refresh, clear)

    def forget(_=None):
        simulation.value = ""

    def moved():
        forget()
        respond()

    sites = SiteBoxes(city, moved)

    def play():
        chosen = deployments()
        law, cv = LAWS[controls["service"].value]
        options = {"calls": controls["calls"].value, "service": law, "cv": cv, "rng": SEED}
        results = [simulate(city, list(placed), **options) for placed in chosen.values()]
        simulation.value = _simulated(results, names, controls["service"].value, options["calls"])
        return remark(chosen)

    def run(_):
        controls["run"].disabled = True
        try:
            _widgets.guarded(message, play)()
        finally:
            controls["run"].disabled = False

    sites.take(named["p-median"])
    controls["optimum"].on_click(lambda _: sites.take(named["optimum"]))
    controls["p_median"].on_click(lambda _: sites.take(named["p-median"]))
    controls["clear"].on_click(lambda _: sites.take(()))
    controls["threshold"].observe(respond, "value")
    for name in ("service", "calls"):
        controls[name].observe(forget, "value")
    controls["run"].on_click(run)
    refs = {"sites": sites.boxes, **controls} | {
        "message": message,
        "figures": figures,
        "simulation": simulation,
        "map": view.shown,
        "feed": view.feed,
    }
    children = [
        _widgets.heading(f"{city.name}: a deployment of your own", EXPLANATION),
        sites.grid,
        widgets.HBox([controls["optimum"], controls["p_median"], controls["clear"]], layout={"flex_flow": "row wrap"}),
        controls["threshold"],
        message,
        figures,
        widgets.HBox([controls["service"], controls["calls"], controls["run"]], layout={"flex_flow": "row wrap"}),
        simulation,
        view.shown,
        view.feed,
        view.hidden,
    ]
    return _widgets.Panel(children, refs)


def _controls():
    """Return the inputs by name, but for the sites."""
    control = _widgets.control
    return {
        "optimum": widgets.Button(description="Take the optimum", tooltip="Tick the sites of the optimum"),
        "p_median": widgets.Button(description="Take the p-median", tooltip="Tick the sites of the p-median"),
        "clear": widgets.Button(description="Clear", tooltip="Untick all sites"),
        "threshold": _widgets.threshold_slider(),
        "service": control(
            widgets.Dropdown,
            "Service times",
            "Distribution of service times in the simulation",
            options=list(LAWS),
        ),
        "calls": control(
            widgets.Dropdown,
            "Calls",
            "How many calls to simulate",
            options=[(f"{n:,}", n) for n in (20_000, 100_000, 500_000)],
            value=100_000,
        ),
        "run": widgets.Button(
            description="Run simulation", button_style="primary", tooltip="Simulate the three deployments"
        ),
    }


def _figures(city, search, chosen, exact, approximate, best, threshold):
    """Return the table of the three deployments, as HTML."""
    rows = {"units": [str(len(sites)) for sites in chosen.values()]}
    if None not in exact:
        rows["mean response (min), exact"] = [f"{e.mean_response:.3f}" for e in exact]
    rows["mean response (min), approximate"] = [f"{e.mean_response:.3f}" for e in approximate]
    rows |= _widgets.performance(best, threshold)
    caption = f"{city.total_rate:.3g} calls an hour. Optimum: by the approximate model, {search.message}."
    return _widgets.table(caption, list(chosen), rows)


def _simulated(results, names, law, calls):
    """Return the simulated figures with their intervals, as HTML."""
    rows = {"mean response (min)": [], "95% interval": [], "calls lost to the fleet": []}
    for result in results:
        low, high = result.intervals["mean_response"]
        rows["mean response (min)"].append(f"{result.mean_response:.3f}")
        rows["95% interval"].append(f"{low:.3f} to {high:.3f}")
        rows["calls lost to the fleet"].append(f"{result.loss_probability:.3%}")
    caption = f"Simulation of {calls:,} calls, the same for all three; service times: {law}."
    return _widgets.table(caption, names, rows)
