"""The base classes of the panels: `Panel`, with controls, outputs for the results and a message line, and its kinds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache, partial
from html import escape
from threading import RLock
from types import SimpleNamespace
from typing import Any

import ipywidgets as widgets
import numpy as np
from ipywidgets import Dropdown, FloatLogSlider, FloatSlider, IntSlider

from ..city.city import City
from ..datasets import load_st_paul
from ..errors import InputError
from ..errors._types import Rng
from ..evaluators import Evaluation
from ..evaluators.by_name import MOST_EXACT_UNITS
from ..evaluators.evaluation import LATE_MIN
from ..maps import DeploymentMap, deployment_map
from ..maps.live import LiveMap
from ._charts import MODEL_TITLES, has_coordinates
from ._widgets import Message, SiteInputs, button, control, message_callback, paragraphs, seed_input

ROW_LAYOUT = {"flex_flow": "row wrap", "grid_gap": "0 1.5em"}
COLUMN_LAYOUT = {"flex": "1 1 28em", "min_width": "0"}  # two of them fit beside each other on a laptop


class Panel(widgets.VBox):
    """A column of widgets that updates its outputs when one of its inputs changes.

    A subclass passes its controls to `__init__`, calls `arrange_widgets`, and defines `compute`, which returns the
    result for the current settings, and `draw`, which displays it.

    ``controls`` are inputs and buttons by name, made by `control` and `button`. A button calls its action when clicked,
    an input when changed; an input without one calls `respond`. ``outputs`` are HTML widgets that show results, and
    ``view`` is the map, if any. ``refs`` has all of them by name, with ``message`` (a line for errors and remarks) and
    ``map``.
    """

    view: LiveMap  # only if one is given

    def __init__(
        self, controls: dict[str, Any], outputs: Iterable[str] = ("figures",), view: LiveMap | None = None
    ) -> None:
        super().__init__()
        self.controls, self.message, self.lock = controls, Message(), RLock()
        self.outputs = {name: widgets.HTML() for name in outputs}
        self.refs: dict[str, Any] = {**controls, "message": self.message, **self.outputs}
        if view is not None:
            self.view = view
            self.refs["map"] = view
        for widget in controls.values():
            self.connect(widget)

    @property
    def values(self) -> SimpleNamespace:
        """The values of the inputs, by name."""
        return SimpleNamespace(**{name: w.value for name, w in self.controls.items() if hasattr(w, "value")})

    def compute(self) -> Any:
        """Return the result for the current settings."""

    def draw(self, answer: Any) -> str | None:
        """Display the result of `compute`; return a text for the message line, or None."""

    def clear(self) -> None:
        """Remove a displayed result that is out of date."""
        self.show(**dict.fromkeys(self.outputs, ""))
        if hasattr(self, "view"):
            self.view.hide()

    def disabled_controls(self) -> set[str]:
        """Return the names of the controls that cannot be used now."""
        return set()

    def refresh(self) -> str | None:
        """Compute and draw the result; return the text for the message line, or None."""
        with self.lock:  # a search in the background may call this at the same time
            return self.draw(self.compute())

    def respond(self) -> None:
        """Compute and draw the result. After an error, clear the outputs and show the error as the message."""
        message_callback(self.message, self.refresh, self.clear)()

    def show(self, **answers: str) -> None:
        """Show HTML in the outputs of these names."""
        for name, html in answers.items():
            self.outputs[name].value = html

    def connect(self, widget: Any) -> None:
        """Let a control call its action when it is clicked or changed; a text that this returns is shown as message.

        Slow buttons are disabled until the action returns.
        """
        respond = message_callback(self.message, getattr(widget, "action", None) or self.respond)

        def callback(_: object) -> None:
            self.disable({name for name, each in self.controls.items() if getattr(each, "slow", False)})
            try:
                respond()
            finally:
                self.disable(self.disabled_controls())

        if isinstance(widget, widgets.Button):
            widget.on_click(callback)
        else:
            widget.observe(callback, "value")

    def disable(self, names: set[str]) -> None:
        """Disable the controls of these names, and enable all others."""
        for name, widget in self.controls.items():
            widget.disabled = name in names

    def arrange_widgets(self, title: str, explanation: str, layout: str, **parts: Any) -> None:
        """Place widgets in columns below a title; columns stand below each other where the page is narrow.

        ``layout`` has names from `refs` or ``parts``, further widgets: blanks separate the widgets of a row, vertical
        bars separate rows, and double bars columns.
        """
        parts, columns = {**self.refs, **parts}, []
        for column in layout.split("||"):
            rows = [[parts[name] for name in row.split()] for row in column.split("|")]
            stacked = [row[0] if len(row) == 1 else widgets.HBox(row, layout=ROW_LAYOUT) for row in rows]
            columns.append(widgets.VBox(stacked, layout=COLUMN_LAYOUT))
        heading = f"<h3 style='margin:0.2em 0'>{escape(title)}</h3>{paragraphs(explanation)}"
        self.children = [widgets.HTML(heading), widgets.HBox(columns, layout=ROW_LAYOUT)]
        self.disable(self.disabled_controls())


class SteppedPanel(Panel):
    """A panel that runs a method by one or ten evaluations at a time, and restarts it when the seed changes.

    The controls ``seed``, ``step``, ``run`` and ``restart`` are added to ``controls``. ``end_message`` is shown when no
    further step is possible.
    """

    def __init__(
        self, controls: dict[str, Any], rng: Rng, outputs: Iterable[str], end_message: str, view: LiveMap | None = None
    ) -> None:
        controls |= {
            "seed": seed_input(rng, "Seed of all random choices; changing it restarts the method", self.restart),
            "step": button("Step", "Evaluate the point that the method proposes", partial(self.advance, 1), slow=True),
            "run": button("Run 10", "Ten steps", partial(self.advance, 10), slow=True),
            "restart": button("Restart", "Forget all evaluations and start again", self.restart),
        }
        super().__init__(controls, outputs, view)
        self.end_message = end_message

    def reset(self) -> None:
        """Forget all evaluations and start again."""

    def step(self) -> None:
        """Make one evaluation."""

    def is_finished(self) -> bool:
        """Return whether no further step is possible."""
        return False

    def disabled_controls(self) -> set[str]:
        return {"step", "run"} if self.is_finished() else set()

    def restart(self) -> str | None:
        """Forget all evaluations, start again and show the result; return the text for the message line, or None."""
        self.reset()
        return self.refresh()

    def advance(self, steps: int) -> str:
        """Make up to ``steps`` steps and show the result; return a message if no further step is possible."""
        try:
            for _ in range(steps):
                if self.is_finished():
                    break
                self.step()
        finally:
            self.refresh()
        return self.end_message if self.is_finished() else ""


OBJECTIVE_CHOICES = (("mean response", "mean_response"), ("late fraction", "late"))


def city_controls(city: City, units: int, decades: int, step: float, models: tuple[str, ...]) -> dict[str, Any]:
    """Return the inputs of a panel that searches for the best deployment, by name.

    The load ranges over ``decades`` powers of ten on either side of 1, in steps of ``step`` powers of ten.
    """
    factor = f"Factor on all call rates, from {10.0**-decades:g} to {10**decades:g}"
    most, options = max(units, city.n_sites), [(MODEL_TITLES[name], name) for name in models]
    best, valued = "What the best deployment minimises", "Model that evaluates the deployments"
    return {
        "load": control(FloatLogSlider, 1.0, "Load θ", factor, (-decades, decades, step)),
        "units": control(IntSlider, units, "Fleet (units)", "Number of units, p", (1, most)),
        "objective": control(Dropdown, "mean_response", "Minimise", best, options=OBJECTIVE_CHOICES),
        "threshold": threshold_slider(),
        "evaluator": control(Dropdown, "exact", "Figures by", valued, options=options),
    }


def demand_input(city: City, action: Callable[[], object] | None = None) -> dict[str, Any]:
    """Return the input ``demand``, by name, if the city is St. Paul, which has two demands; else an empty dict."""
    if city.site_names != load_st_paul().site_names:
        return {}
    tip = "The proxy that comes with the package, or the shares of the papers' authors, which may have to be downloaded"
    now = "published" if "published" in city.name else "embedded"
    return {"demand": control(Dropdown, now, "Demand", tip, (), action, options=["embedded", "published"])}


@lru_cache(maxsize=8)
def with_demand(city: City, demand: str) -> City:
    """Return St. Paul with the demand "embedded" or "published" and unchanged total call rate; "" changes nothing."""
    if not demand or ("published" in city.name) == (demand == "published"):
        return city
    other = load_st_paul(demand)
    return city.replace(arrival_rates=city.total_rate * other.demand_shares, name=other.name, notes=other.notes)


def threshold_slider() -> Any:
    """Return the input for the response time (min) from which a call counts as late."""
    tip = "A response of this many minutes or more is late"
    return control(FloatSlider, LATE_MIN, "Late from (min)", tip, (3.0, 20.0, 0.5), readout_format=".1f")


class MapView(LiveMap):
    """A live map of the deployments of a city; a sentence instead if the city has no coordinates.

    A click on a station of the deployment called ``edit`` calls ``clicked`` with the indices of the sites there.
    """

    def __init__(self, city: City, edit: str = "", clicked: Callable[[list[int]], object] | None = None) -> None:
        # This colour scale suits every load: from the shortest response time to the 90th percentile from the 1-median.
        center = city.response_times[np.argmin(city.response_times @ city.demand_shares)]
        limits = float(np.floor(city.response_times.min())), float(np.ceil(np.percentile(center, 90)))
        self.options: dict[str, Any] = {"limits": limits, "height": 480}
        super().__init__(sentence="This city has no coordinates, so there is no map.")
        self.edit, self.clicked = edit, clicked

    def show(self, city: City, evaluations: dict[str, Evaluation]) -> None:
        """Show evaluations by name, of the panel's city or of that city under another load."""
        if isinstance(self.page, DeploymentMap):
            self.draw(self.page.with_evaluations(evaluations, city))
        elif has_coordinates(city):
            self.draw(deployment_map(city, evaluations, **self.options))
        else:
            self.layout.visibility = "visible"


class CityPanel(Panel):
    """A panel about the deployments of a city, with a map; ``editing`` are options of its `MapView`."""

    view: MapView

    def __init__(
        self, city: City, controls: dict[str, Any], outputs: Iterable[str] = ("figures",), **editing: Any
    ) -> None:
        self.city, self.view = city, MapView(city, **editing)
        super().__init__(controls, outputs, self.view)

    @property
    def chosen_city(self) -> City:
        """The city of the panel; if this is St. Paul, with the demand that the user chose."""
        return with_demand(self.city, getattr(self.values, "demand", ""))

    @property
    def metric(self) -> str | tuple[str, float]:
        """The metric to minimise, as for `Objective`: mean response (min), or late responses from a threshold (min)."""
        return ("late", self.values.threshold) if self.values.objective == "late" else "mean_response"

    def evaluator(self, units: int) -> tuple[str, str]:
        """Return the model for ``units`` units, and a message if the approximate one has to replace the exact one."""
        if self.values.evaluator == "exact" and units > MOST_EXACT_UNITS:
            return "approximate", f"The approximate model evaluates fleets of more than {MOST_EXACT_UNITS} units."
        return self.values.evaluator, ""


class OwnDeploymentPanel(CityPanel):
    """A panel that compares the user's own deployment with known ones, such as the optimum.

    The user places units by inputs, one per site, which hold up to ``room`` units, or by clicking on the map. The
    buttons ``optimum`` and ``p_median``, which make that deployment the user's, are added to the controls.
    """

    def __init__(self, city: City, controls: dict[str, Any], outputs: Iterable[str], room: int = 1) -> None:
        self.sites = SiteInputs(city.site_names, self.on_move, room=[room] * city.n_sites)
        for key, name in (("optimum", "optimum"), ("p_median", "p-median")):
            controls[key] = button(f"Take the {name}", f"Make the {name} yours", partial(self.take_deployment, name))
        super().__init__(city, controls, outputs, edit="yours", clicked=self.on_click)
        self.refs["sites"] = self.sites.fields

    def known_deployments(self) -> dict[str, tuple[int, ...]]:
        """Return the sites of known deployments by name, such as "optimum" (or "best found") and "p-median"."""
        raise NotImplementedError

    def take_deployment(self, name: str) -> None:
        """Replace the user's deployment by that of `known_deployments` with this name."""
        self.sites.set_units(self.known_deployments()[name])

    def on_click(self, places: Sequence[int]) -> None:
        """Add a unit at one of the sites ``places``, which were clicked on the map, or remove their units."""
        self.sites.toggle(places)

    def on_move(self) -> None:
        """Respond to a change of the user's deployment."""
        self.respond()

    def deployments(self) -> dict[str, tuple[int, ...]]:
        """Return the deployments to compare, by name; raise if the user has placed no unit."""
        if not self.sites.deployment:
            raise InputError("no site is ticked: tick at least one.")
        return {"yours": self.sites.deployment, **self.known_deployments()}
