"""Common parts of the panels about a city: inputs, a map, and the user's own deployment."""

from __future__ import annotations

from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

from ipywidgets import Dropdown, FloatLogSlider, FloatSlider, IntSlider

from ..datasets import load_st_paul
from ..errors import InputError
from ..evaluators import EXACT_UP_TO
from ._charts import MODELS
from ._panel import Panel
from ._widgets import MapView, SiteInputs, button, control

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from ..city.city import City

OBJECTIVES = (("mean response", "mean_response"), ("late fraction", "late"))


def city_controls(city: City, units: int, decades: int, step: float, models: tuple[str, ...]) -> dict[str, Any]:
    """Make the inputs of a panel that searches for the best deployment.

    ``units`` is the initial fleet size. The load, a factor on all call rates, ranges over ``decades`` powers of ten on
    either side of 1, in steps of ``step`` powers of ten. ``models`` are the evaluators to choose from.
    """
    factor = f"Factor on all call rates, from {10.0**-decades:g} to {10**decades:g}"
    most, options = max(units, city.n_sites), [(MODELS[name], name) for name in models]
    best, valued = "What the best deployment minimises", "Model that evaluates the deployments"
    return {
        "load": control(FloatLogSlider, 1.0, "Load θ", factor, (-decades, decades, step)),
        "units": control(IntSlider, units, "Fleet (units)", "Number of units, p", (1, most)),
        "objective": control(Dropdown, "mean_response", "Minimise", best, options=OBJECTIVES),
        "threshold": threshold_slider(),
        "evaluator": control(Dropdown, "exact", "Figures by", valued, options=options),
    }


def demand_choice(city: City, action: Callable[[], object] | None = None) -> dict[str, Any]:
    """Make the input ``demand`` of a panel about St. Paul, which has two demands; other cities have no such input."""
    if city.site_names != load_st_paul().site_names:
        return {}
    tip = "The proxy that comes with the package, or the shares of the papers' authors, which may have to be downloaded"
    now = "published" if "published" in city.name else "embedded"
    return {"demand": control(Dropdown, now, "Demand", tip, (), action, options=["embedded", "published"])}


@lru_cache(maxsize=8)
def with_demand(city: City, demand: str) -> City:
    """Return St. Paul with a demand and the same number of calls; without a demand, the city itself."""
    if not demand or ("published" in city.name) == (demand == "published"):
        return city
    other = load_st_paul(demand)
    return city.replace(arrival_rates=city.total_rate * other.demand_shares, name=other.name, notes=other.notes)


def threshold_slider() -> Any:
    """Make the input for the response time (min) from which a call counts as late."""
    tip = "A response of this many minutes or more is late"
    return control(FloatSlider, 8.0, "Late from (min)", tip, (3.0, 20.0, 0.5), readout_format=".1f")


class CityPanel(Panel):
    """A panel about the deployments of a city, with a map.

    Parameters
    ----------
    city : City
    controls, outputs
        As in `Panel`.
    **editing
        Passed on to `MapView`: ``edit`` and ``clicked``.
    """

    view: MapView

    def __init__(
        self, city: City, controls: dict[str, Any], outputs: Iterable[str] = ("figures",), **editing: Any
    ) -> None:
        self.city, self.view = city, MapView(city, **editing)
        super().__init__(controls, outputs, self.view)

    @property
    def place(self) -> City:
        """The city, with the demand that is chosen."""
        return with_demand(self.city, getattr(self.at, "demand", ""))

    @property
    def metric(self) -> str | tuple[str, float]:
        """The ``metric`` of `Objective` that is minimised: mean response, or late calls from a threshold (min)."""
        return ("late", self.at.threshold) if self.at.objective == "late" else "mean_response"

    def evaluator(self, units: int) -> tuple[str, str]:
        """Return the model that evaluates fleets of up to ``units``, and a message if it is not the chosen one.

        The exact model is replaced by the approximate one if the fleet is too large for a quick answer.
        """
        if self.at.evaluator == "exact" and units > EXACT_UP_TO:
            return "approximate", f"The approximate model evaluates fleets of more than {EXACT_UP_TO} units."
        return self.at.evaluator, ""


class OwnPanel(CityPanel):
    """A panel that compares the user's own deployment with known ones.

    The user places units by ticking sites or by clicking on the map.

    Parameters
    ----------
    city : City
    controls : dict of str to Widget
        Further controls; the buttons ``optimum`` and ``p_median``, which make that deployment the user's, are added.
    outputs : sequence of str
        Names of the HTML widgets that show results.
    room : int
        Number of units that a site may hold.
    """

    def __init__(self, city: City, controls: dict[str, Any], outputs: Iterable[str], room: int = 1) -> None:
        self.sites = SiteInputs(city.site_names, self.moved, room=[room] * city.n_sites)
        for key, name in (("optimum", "optimum"), ("p_median", "p-median")):
            controls[key] = button(f"Take the {name}", f"Make the {name} yours", partial(self.take, name))
        super().__init__(city, controls, outputs, edit="yours", clicked=self.press)
        self.refs["sites"] = self.sites.fields

    def known(self) -> dict[str, tuple[int, ...]]:
        """Return the sites of the best known deployment, as ``optimum``, and of the p-median, as ``p-median``.

        Subclasses implement this; here the dict is empty.
        """
        return {}

    def take(self, name: str) -> None:
        """Replace the user's deployment by that of `known` with this name: "optimum" or "p-median"."""
        self.sites.take(self.known()[name])

    def press(self, places: Sequence[int]) -> None:
        """Respond to a click on the sites at a place of the map."""
        self.sites.press(places)

    def moved(self) -> None:
        """Respond to a change of the user's deployment."""
        self.respond()

    def deployments(self) -> dict[str, tuple[int, ...]]:
        """Return the deployments to compare, by name.

        Raises
        ------
        InputError
            If the user has placed no unit.
        """
        if not self.sites.chosen:
            raise InputError("no site is ticked: tick at least one.")
        return {"yours": self.sites.chosen, **self.known()}
