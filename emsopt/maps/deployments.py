"""Maps of a city and a deployment, for notebooks or as one HTML file, that work offline.

Atoms are shaded by mean response (or another value). A black square is a station with its number of units, and a small
white square is a vacant site. The width of a line from a station to an atom grows with the share of the atom's answered
calls that the station answers, not the road taken; shares below 2 % have no line. `emsopt.maps.folium_map` can have a
street map as background. The counterpart in matplotlib is `emsopt.plots.deployments`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from ..city import City
from ..city.city import HOURS_A_YEAR
from ..errors import InputError, _validate
from ..errors._types import ArrayLike, FloatArray
from ..evaluators import Evaluation
from ..evaluators.metrics import NEGLIGIBLE_DIFFERENCE
from ..roads.network import RoadNetwork
from . import _colours
from ._colours import AtomQuantity, ColourLimits
from ._page import PAGE_HEIGHT, Page, delta_encode

Evaluations: TypeAlias = Evaluation | Mapping[str, Evaluation]
Shading: TypeAlias = tuple[FloatArray, str, str]


def deployment_map(
    city: City,
    evaluation: Evaluations | None = None,
    *,
    value: AtomQuantity = "response",
    limits: ColourLimits = None,
    height: int = PAGE_HEIGHT,
    roads: RoadNetwork | None = None,
    hours_a_year: float = HOURS_A_YEAR,
) -> DeploymentMap:
    """Draw one or several deployments on a map, which displays in a notebook; its ``save`` writes one HTML file.

    Raise InputError if the city has no coordinates, the evaluation belongs to another city, or an option is invalid.

    Parameters
    ----------
    city : City
        Needs ``atom_locations`` and ``site_locations``. If there are ``atom_shapes``, areas are shaded, otherwise
        circles whose area shows the share of calls.
    evaluation : Evaluation or dict of str to Evaluation, optional
        What to show. Of a dict by name, one evaluation is selected on the map. With "today" among them, or with exactly
        two, a view of the difference is added: the first other one minus today's, or the first minus the second.
        Default: only demand and sites.
    value : {"response", "demand"} or ("late", float)
        Quantity that shades the atoms: mean response (min); share of all calls (%); or the share (%) of an atom's
        answered calls whose response takes at least the given number of minutes.
    limits : (float, float), optional
        Range of a colour scale with even classes, in the unit of ``value``. Default: classes that hold equally many
        of the values shown. Set it if colours are to keep their meaning when the map is updated. The view of the
        difference has a scale of its own, centred at 0.
    height : int
        Height in a notebook, pixels.
    roads : RoadNetwork, optional
        Streets to draw as a layer. Needs ``polylines``, in the coordinates of the city.
    hours_a_year : float
        Hours per year for which the city has these call rates. The view of the difference multiplies them to say how
        many calls per year come from areas with a longer response.

    Examples
    --------
    >>> import emsopt as eo
    >>> city = eo.datasets.load_st_paul()
    >>> result = eo.evaluators.approximate_hypercube(city, [0, 1, 2, 3, 4, 8, 9, 10, 11])
    >>> shown = eo.maps.deployment_map(city, {"first nine": result})
    """
    _colours.require_locations(city)
    named = {} if evaluation is None else _colours.evaluations_by_name(city, evaluation)
    streets = None if roads is None else _street_lines(city, roads)
    title = f"{city.name}, {next(iter(named))}" if len(named) == 1 and "deployment" not in named else city.name
    scene = {"title": title, "notes": city.notes, "city": city_data(city), "streets": streets}
    hours = _validate.positive_number(hours_a_year, "hours_a_year", "h")
    views = _deployment_views(city, named, value, limits, hours)
    return DeploymentMap("deployments", scene, views, height, city, value, limits, hours)


@dataclass(frozen=True, eq=False, repr=False)
class DeploymentMap(Page):
    """A `Page` with a map of deployments that `deployment_map` drew, from which maps of other results can be made."""

    city: City
    value: AtomQuantity
    limits: ColourLimits
    hours_a_year: float

    def with_evaluations(self, evaluation: Evaluations, city: City | None = None) -> DeploymentMap:
        """Return a map of other evaluations with the same settings; ``city`` is their city, by default the same."""
        city = self.city if city is None else city
        named = _colours.evaluations_by_name(city, evaluation)
        views = _deployment_views(city, named, self.value, self.limits, self.hours_a_year)
        scene = self.scene  # the same object, so that a live map is sent the views only
        if city.n_atoms != self.city.n_atoms or not np.allclose(city.demand_shares, self.city.demand_shares):
            scene = scene | {"city": city_data(city)}
        return replace(self, scene=scene, views=views, city=city)


def _deployment_views(
    city: City, named: Mapping[str, Evaluation], value: AtomQuantity, limits: ColourLimits, hours: float
) -> list[dict[str, Any]]:
    """Return one view per evaluation (of the demand if there is none), and one of a difference if there are two."""
    drawn: Mapping[str, Evaluation | None] = named or {"demand": None}
    shaded = {name: _colours.atom_values(city, evaluation, value) for name, evaluation in drawn.items()}
    edges = _colours.colour_limits(np.concatenate([values for values, *_ in shaded.values()]), limits)
    views = [_view(city, name, evaluation, shaded[name], edges) for name, evaluation in drawn.items()]
    others = [name for name in named if name != "today"]
    pair = [*others[:1], "today"] if "today" in named else others
    if len(pair) == 2 and value != "demand":  # shares of calls are the same in both
        views.append(_difference_view(city, {name: named[name] for name in pair}, shaded, hours))
    return views


def city_data(city: City) -> dict[str, Any]:
    """Return the data of a city that every page of it needs: bounds, places of sites, and atoms."""
    scale, digits = (1, 5) if city.geographic else (1000, 1)  # kilometres on a plane become metres, for the scale bar
    _, places = _colours.locate_sites(city)
    spots = lat_lon(places * scale, digits)
    return {
        "plane": not city.geographic,
        "bounds": lat_lon(scale * np.array(_colours.extent(city)), digits),
        "thinness": round(_colours.line_thinness(city), 3),
        "largest": float(np.clip(220 / np.sqrt(city.n_atoms), 5, 16)),  # pixels: circles of many atoms would overlap
        "places": [{"name": name, "at": at} for name, at in zip(place_names(city), spots, strict=True)],
        "atoms": {
            "name": list(city.atom_names),
            "at": lat_lon(scale * np.array(city.atom_locations), digits),
            "share": _json_numbers(city.demand_shares, 6),
            "shape": city.atom_shapes and rounded_shapes(city.atom_shapes, scale, digits),
        },
    }


def _street_lines(city: City, roads: RoadNetwork) -> dict[str, Any]:
    """Return the lines of a road network in the encoding of pages; the two directions of a street have one line."""
    _validate.instance(roads, "roads", RoadNetwork, "emsopt.RoadNetwork")
    if roads.polylines is None or roads.geographic != city.geographic:
        system = "longitude and latitude" if city.geographic else "metres on a plane, as the city has kilometres"
        raise InputError(f"`roads` must have `polylines` in {system}, to be drawn on a map of {city.name!r}.")
    scale, courses = 100_000 if city.geographic else 1, dict[bytes, list[int]]()
    for line in roads.polylines:
        points = np.round(line * scale).astype(np.int64)
        key = min(points.tobytes(), points[::-1].tobytes())  # the same for both directions
        courses.setdefault(key, delta_encode(line, scale))
    return {"scale": scale, "courses": list(courses.values())}


def place_names(city: City) -> list[str]:
    """Return one name for each distinct location of the city's sites (see `emsopt.maps._colours.locate_sites`)."""
    which, places = _colours.locate_sites(city)
    return [place_name(np.array(city.site_names)[which == k].tolist()) for k in range(len(places))]


def place_name(names: Sequence[str]) -> str:
    """Return a common name of the sites at one place: "Station 8" for "Station 8 (unit 1)" and "Station 8 (unit 2)"."""
    before_bracket = {name.split("(")[0].rstrip() for name in names}
    shortest = min(names, key=len)
    if len(names) > 1 and len(before_bracket) == 1 and "" not in before_bracket:
        return before_bracket.pop()
    return shortest if all(name.startswith(shortest) for name in names) else " / ".join(names)


def _view(city: City, name: str, evaluation: Evaluation | None, shaded: Shading, edges: FloatArray) -> dict[str, Any]:
    """Return the data of the map of one deployment: shading, stations, lines; without an evaluation, the shading."""
    values, label, unit = shaded
    view: dict[str, Any] = {
        "name": name,
        "summary": f"{city.total_rate:.3g} calls per hour, {city.n_sites} candidate sites",
        "hint": "",
        "classes": _colours.colour_scale(values, edges),
        "columns": [_page_quantity(label, unit, values)],
        "units": [],
        "lines": [],
    }
    if evaluation is None:
        return view
    at, counts, fractions = _colours.sum_by_place(city, evaluation)
    busy, shares = evaluation.utilizations, evaluation.unit_shares
    for place in np.flatnonzero(counts).tolist():
        units = np.flatnonzero(at == place)
        said = f"{_units_text(len(units))}, {busy[units].mean():.0%} busy, {shares[units].sum():.1%} of answered calls"
        rows = [[evaluation.site_names[k], f"{busy[k]:.1%}", f"{shares[k]:.1%}"] for k in units]
        view["units"].append(_station_marker(place, "", str(len(units)), said, rows))
    return view | {
        "lines": [[i, j, round(float(fractions[i, j]), 4)] for i, j in _colours.pairs_to_draw(fractions).tolist()],
        "summary": _summary_line(evaluation),
        "hint": f" Lines: who answers; shares below {_colours.LEAST_SHARE:.0%} are left out.",
    }


def _difference_view(
    city: City, named: Mapping[str, Evaluation], shaded: Mapping[str, Shading], hours: float
) -> dict[str, Any]:
    """Return the data of a map in which atoms are shaded by the first deployment's value minus the second's."""
    (first, one), (second, other) = named.items()
    values = shaded[first][0] - shaded[second][0]
    sizes = np.abs(values[np.isfinite(values)])
    most = max(np.quantile(sizes, 0.9), 1e-9) if sizes.size else 1e-9  # a few atoms that change more need no classes
    step = np.diff(_colours.class_edges(0, most / 3.5, most=1))[0]  # three and a half steps on either side of 0
    _, label, unit = shaded[first]
    calls, least = hours * city.arrival_rates, NEGLIGIBLE_DIFFERENCE * np.nansum(city.demand_shares * shaded[second][0])
    sides = (values < -least, values > least)
    count = [f"{calls[side].sum():,.0f} calls a year in {side.sum()} of {len(values)} areas" for side in sides]
    columns = {f": {first} minus {second}": values} | {f", {name}": shaded[name][0] for name in named}
    return {
        "name": f"{first} minus {second}",
        "summary": f"mean response {first} {one.mean_response:.2f} min, {second} {other.mean_response:.2f} min",
        "hint": f" Blue: {first} is better, for {count[0]}. Orange: {second} is better, for {count[1]}.",
        "classes": _colours.colour_scale(values, step * (np.arange(8) - 3.5), _colours.DIVERGING_COLOURS),
        "columns": [
            *(_page_quantity(label + which, unit, column) for which, column in columns.items()),
            {"label": "calls", "unit": "a year", "digits": 0, "values": _json_numbers(calls, 1)},
        ],
        "units": _unit_change_markers(city, named),
        "compared": [first, second],
        "lines": [],
    }


def _unit_change_markers(city: City, named: Mapping[str, Evaluation]) -> list[dict[str, Any]]:
    """Return the markers of the places that have units in at least one of two deployments."""
    (first, second), units = named, []
    counts, before = (_colours.sum_by_place(city, evaluation)[1].tolist() for evaluation in named.values())
    for place, (name, now, was) in enumerate(zip(place_names(city), counts, before, strict=True)):
        if now or was:
            text = str(now) if now == was else f"{now - was:+d}".replace("-", "−")  # a minus sign, as wide as the plus
            said = f"{_units_text(now)} in {first}, {was} in {second}"
            tone = "" if now == was else "gain" if now > was else "loss"
            units.append(_station_marker(place, tone, text, said, [[name, str(now), str(was)]]))
    return units


def _summary_line(evaluation: Evaluation) -> str:
    """Return the main results of an evaluation as one line of text."""
    model = evaluation.evaluator
    source = "simulated" if model == "simulation" else f"{model} hypercube model"
    lost = 100 * evaluation.loss_probability
    rest = f"{lost:.2g}% of calls lost" if lost >= 0.01 else "fewer than 0.01% of calls lost"  # "0%" would be wrong
    if evaluation.capacity != "loss":
        rest = f"mean wait {evaluation.mean_wait:.2f} min"
    return (
        f"mean response {evaluation.mean_response:.2f} min · 90% within {evaluation.percentile_90:.1f} min · "
        f"units {evaluation.utilizations.mean():.0%} busy · {rest} · {source}"
    )


def _page_quantity(label: str, unit: str, values: FloatArray) -> dict[str, Any]:
    """Return a quantity in the form that a page reads: label, unit, digits to show, and the value of every atom."""
    return {"label": label, "unit": unit, "digits": 2 if unit == "min" else 1, "values": _json_numbers(values, 4)}


def _station_marker(place: int, tone: str, text: str, label: str, rows: list[list[str]]) -> dict[str, Any]:
    """Return the marker of a place: its style, the text on it, its label and the table in its popup."""
    return {"at": place, "tone": tone, "text": text, "label": label, "rows": rows}


def _units_text(count: int) -> str:
    """Return the text "1 unit", "2 units" and so on."""
    return f"{count} unit" if count == 1 else f"{count} units"


def _json_numbers(values: ArrayLike, digits: int) -> list[float | None]:
    """Return rounded floats, with None for NaN and infinite values, which JSON does not have."""
    return [round(v, digits) if np.isfinite(v) else None for v in np.asarray(values, dtype=float).tolist()]


def lat_lon(points: ArrayLike, digits: int) -> list[list[float]]:
    """Return points, (n, 2), rounded and in Leaflet's order, latitude (or y) first."""
    return np.round(np.asarray(points)[:, ::-1], digits).tolist()


def rounded_shapes(shapes: Iterable[Mapping[str, Any]] | None, scale: float, digits: int) -> list[dict[str, Any]]:
    """Return GeoJSON geometries with coordinates multiplied by ``scale`` and rounded, without heights."""

    def round_node(node: Any) -> Any:
        if _validate.is_real(node[0]):
            return [round(value * scale, digits) for value in node[:2]]  # without heights
        return [round_node(child) for child in node]

    return [{"type": shape["type"], "coordinates": round_node(shape["coordinates"])} for shape in shapes or ()]
