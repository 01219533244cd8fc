"""Maps of a city and a deployment, for notebooks or as one HTML file, that work offline.

Atoms are shaded by mean response (or another value). A black square is a station with its number of units,
and a small white square is a vacant site. The width of a line from a station to an atom is proportional to
the share of the atom's calls that the station answers. The page contains its own copy of Leaflet (`vendor`),
and its content security policy prevents all requests to servers; only ``tiles="OpenStreetMap"`` downloads a
background.

All numbers come from an `Evaluation`. The counterpart in matplotlib is `emsopt.plots.deployment`. Straight
lines show which station answers, not the roads taken.
"""

from dataclasses import dataclass, field
from functools import cached_property
from html import escape

import numpy as np

from .. import _validate
from ..errors import InputError
from . import _shading
from ._page import Page, json_text

TILES = "https://tile.openstreetmap.org/{z}/{x}/{y}.png"
TILE_HOST = "https://tile.openstreetmap.org"


def deployment_map(
    city,
    evaluation=None,
    *,
    compare=None,
    value="response",
    limits=None,
    min_fraction=0.02,
    tiles=None,
    height=520,
    key=None,
    edit=None,
):
    """Draw one or several deployments on a map.

    Parameters
    ----------
    city : City
        Needs ``atom_locations`` and ``site_locations``. If there are ``atom_shapes``, areas are shaded,
        otherwise circles whose area shows the share of calls. Plane cities (``geographic=False``) are drawn
        in kilometres.
    evaluation : Evaluation or dict of str to Evaluation, optional
        What to show. Several, in a dict by name, can be selected on the map. Default: only demand and sites.
    compare : Evaluation or dict of str to Evaluation, optional
        Further evaluations to select from. If there are two in total, a view of their difference is added.
    value : {"response", "demand"} or ("late", float)
        Quantity that shades the atoms: mean response (min), share of calls (%), or share of the answered
        calls that take at least a threshold (min) (%).
    limits : (float, float), optional
        Range of the colour scale, in the unit of ``value``. Default: the range of the values shown. Set it if
        a slider redraws the map.
    min_fraction : float
        Smallest share of an atom's calls for which a station is shown in lines and lists.
    tiles : {None, "OpenStreetMap"}
        Background; None works offline. OpenStreetMap's servers require a referring page, so tiles may stay
        blank in a file opened from disk.
    height : int
        Height in a notebook, pixels.
    key : str, optional
        Name by which a displayed map receives new results; see `DeploymentMap.update`.
    edit : str, optional
        Name of the evaluation whose stations can be clicked: a click on place k (see `emsopt.maps._shading.stations`) presses
        the element of class ``emsopt-KEY-place-k`` in the page around the map, such as a widget's button, and opens no
        list. Needs a ``key``.

    Returns
    -------
    DeploymentMap
        Displays in a notebook; `DeploymentMap.save` writes one self-contained HTML file.

    Raises
    ------
    InputError
        If the city has no coordinates, the evaluation belongs to another city, or an option is invalid.
    """
    _shading.require_locations(city)
    named = _gather(city, evaluation, compare)
    _shading.atom_values(city, next(iter(named.values()), None), value)
    min_fraction = _validate.positive_number(min_fraction, "min_fraction", zero=True)
    if min_fraction > 1:
        raise InputError(f"`min_fraction` must be a share from 0 to 1; got {min_fraction:g}.")
    if tiles is not None:
        _validate.choice(tiles, "tiles", ("OpenStreetMap",))
        if not city.geographic:
            raise InputError(f"`tiles` need longitude and latitude, but {city.name!r} lies on a plane. Leave them out.")
    if key is not None and not (isinstance(key, str) and key):
        raise InputError(f"`key` must be a name, such as uuid.uuid4().hex; got {key!r}.")
    if edit is not None and (key is None or edit not in named):
        raise InputError(f"`edit` must name one of the evaluations {list(named)}, and needs a `key`; got {edit!r}.")
    height = _validate.whole_number(height, "height", 150, 5000)
    return DeploymentMap(city, named, value, limits, min_fraction, tiles, height, key, edit)


@dataclass(frozen=True, eq=False, repr=False)
class DeploymentMap(Page):
    """A map that displays in a notebook and can be saved as one HTML file.

    Attributes
    ----------
    city : City
    evaluations : dict of str to Evaluation
        Evaluations that can be selected on the map.
    value, limits, min_fraction, tiles, height, key, edit
        As given to `deployment_map`.
    html : str
        The complete, self-contained page.
    data : dict
        Data drawn by the page's script: plain lists, strings and numbers.
    """

    city: object
    evaluations: dict = field(default_factory=dict)
    value: str | tuple = "response"
    limits: tuple | None = None
    min_fraction: float = 0.02
    tiles: str | None = None
    height: int = 520
    key: str | None = None
    edit: str | None = None

    _template = "deployments.html"

    @cached_property
    def data(self):
        """Data drawn by the page's script."""
        return {
            "key": self.key,
            "edit": self.edit,
            "city": _city_data(self.city, self.tiles),
            "views": self._views(self.evaluations),
        }

    def update(self, evaluation, compare=None):
        """Return a hidden HTML snippet that redraws this map where it is displayed.

        Put the map into one HTML widget once, and each update into another. The map keeps its zoom and
        layers, and only a few kilobytes are sent instead of the whole page. Needs a ``key`` and the same
        names as before.

        Parameters
        ----------
        evaluation, compare
            As for `deployment_map`, for this city or the same city under another load.

        Returns
        -------
        str
        """
        if self.key is None:
            raise InputError("only a map with a `key` can be updated: deployment_map(..., key=uuid.uuid4().hex).")
        named = _gather(self.city, evaluation, compare)
        if list(named) != list(self.evaluations):
            raise InputError(f"an update needs evaluations named {list(self.evaluations)}; got {list(named)}.")
        views = json_text({"emsoptMap": self.key, "views": self._views(named)})
        page = _FEED.replace("%MESSAGE%", views)
        return f'<iframe srcdoc="{escape(page)}" aria-hidden="true" hidden></iframe>'

    @property
    def _title(self):
        """The name of the city, with that of the deployment if there is only one."""
        names = list(self.evaluations)
        return f"{self.city.name}, {names[0]}" if len(names) == 1 and names != ["deployment"] else self.city.name

    @property
    def _notes(self):
        return self.city.notes

    @property
    def _constants(self):
        """Constants of the page's template, which depend only on the background."""
        tiles = self.tiles is not None
        return (
            ("IMAGES", TILE_HOST if tiles else ""),
            ("TILES", TILES if tiles else ""),
            ("LINES", _shading.LINES),
            ("GAIN", _shading.DIVERGING[0]),
            ("LOSS", _shading.DIVERGING[-1]),
        )

    def _views(self, named):
        """Return one view per evaluation, and the difference if there are two."""
        city, shaded = self.city, {}
        for name, evaluation in (named or {"demand": None}).items():
            shaded[name] = _shading.atom_values(city, evaluation, self.value)
        limits = _shading.limits_of([values for values, *_ in shaded.values()], self.limits)
        edges = _shading.class_edges(*limits)
        views = [_view(city, name, named.get(name), shaded[name], edges, self.min_fraction) for name in shaded]
        if len(named) == 2 and self.value != "demand":
            views.append(_difference(city, named, shaded))
        return views


def _gather(city, evaluation, compare):
    """Return all evaluations by name."""
    if evaluation is None:
        if compare is not None:
            raise InputError("`compare` needs an `evaluation` to compare with.")
        return {}
    named = _shading.named_evaluations(city, evaluation)
    if compare is not None:
        others = _shading.named_evaluations(city, compare, "comparison")
        twice = sorted(set(named) & set(others))
        if twice:
            raise InputError(f"two evaluations are named {twice[0]!r}; give them different names.")
        named = {**named, **others}
    return named


# -- what the page's script draws ---------------------------------------------------------------------------------


def _city_data(city, tiles):
    """Return the data that do not depend on the deployment."""
    scale, digits = (1, 5) if city.geographic else (1000, 1)  # a plane is drawn in metres, for the scale bar
    which, places = _shading.stations(city)
    titles = [_place_name([city.site_names[site] for site in np.flatnonzero(which == k)]) for k in range(len(places))]
    shapes = city.atom_shapes and [_rounded(shape, scale, digits) for shape in city.atom_shapes]
    points = [np.array(city.atom_locations) * scale, places * scale]
    corners = points + [np.array(list(_corners(shape["coordinates"]))) for shape in shapes or ()]
    corners = np.concatenate(corners)
    return {
        "plane": not city.geographic,
        "tiles": tiles is not None,
        "bounds": _lat_lon([corners.min(axis=0), corners.max(axis=0)], digits),
        "largest": float(np.clip(220 / np.sqrt(city.n_atoms), 5, 16)),
        "thinness": round(_shading.line_thinness(city), 3),
        "places": [{"name": title, "at": at} for title, at in zip(titles, _lat_lon(points[1], digits), strict=True)],
        "atoms": {
            "name": list(city.atom_names),
            "at": _lat_lon(points[0], digits),
            "share": _numbers(city.demand_shares, 6),
            "shape": shapes,
        },
    }


def _place_name(names):
    """Name a place with several listed sites: "Station 8" for "Station 8 (unit 1)" and "... (unit 2)"."""
    before_bracket = {name.split("(")[0].rstrip() for name in names}
    shortest = min(names, key=len)
    if len(names) > 1 and len(before_bracket) == 1 and "" not in before_bracket:
        return before_bracket.pop()
    return shortest if all(name.startswith(shortest) for name in names) else " / ".join(names)


def _view(city, name, evaluation, shaded, edges, min_fraction):
    """Return shading, stations and lines of one deployment."""
    values, label, unit = shaded
    view = {
        "name": name,
        "summary": f"{city.total_rate:.3g} calls an hour, {city.n_sites} candidate sites",
        "hint": "",
        "classes": _classes(edges, values, _shading.SEQUENTIAL),
        "columns": [_column(label, unit, values)],
        "units": [],
        "unitHead": ["Unit at", "busy", "of all calls"],
        "lines": [],
        "symbols": [["vacant", "", "candidate site"]],
    }
    if evaluation is None:
        return view
    at, counts, fractions = _shading.by_place(city, evaluation)
    shares = evaluation.unit_shares
    for place in np.flatnonzero(counts):
        units = np.flatnonzero(at == place)
        share, busy = shares[units].sum(), evaluation.utilizations[units].mean()
        view["units"].append(
            {
                "at": int(place),
                "tone": "",
                "text": str(len(units)),
                "label": f"{_units(len(units))}, {busy:.0%} busy, {share:.1%} of all calls",
                "rows": [
                    [evaluation.site_names[k], f"{evaluation.utilizations[k]:.1%}", f"{shares[k]:.1%}"] for k in units
                ],
            }
        )
    pairs = np.argwhere(fractions >= max(min_fraction, 1e-12))
    view["lines"] = [[int(i), int(j), round(float(fractions[i, j]), 4)] for i, j in pairs]
    view["symbols"] = [["", "1", "station, number of units"], ["vacant", "", "vacant site"]]
    view["summary"] = _summary(evaluation)
    view["hint"] = f" Lines: who answers; shares below {100 * min_fraction:.3g}% are left out."
    return view


def _difference(city, named, shaded):
    """Subtract the second of two deployments from the first."""
    (first, second), (one, other) = named, named.values()
    values = shaded[first][0] - shaded[second][0]
    most = np.abs(values[np.isfinite(values)]).max(initial=1e-9)
    step = np.diff(_shading.class_edges(0, most / 3.5, most=1))[0]
    edges = step * (np.arange(8) - 3.5)
    _, label, unit = shaded[first]
    which, places = _shading.stations(city)
    count, before = (np.bincount(which[e.sites], minlength=len(places)) for e in (one, other))
    units = []
    for place in np.flatnonzero(count + before):
        change = int(count[place] - before[place])
        text = str(count[place]) if change == 0 else f"{change:+d}".replace("-", "−")
        said = f"{_units(count[place])} in {first}, {before[place]} in {second}"
        tone = "" if change == 0 else "gain" if change > 0 else "loss"
        name = _place_name([city.site_names[site] for site in np.flatnonzero(which == place)])
        row = [name, str(count[place]), str(before[place])]
        units.append({"at": int(place), "tone": tone, "text": text, "label": said, "rows": [row]})
    return {
        "name": f"{first} minus {second}",
        "summary": f"mean response {first} {one.mean_response:.2f} min, {second} {other.mean_response:.2f} min",
        "hint": f" Blue: {first} is better. Orange: {second} is better.",
        "classes": _classes(edges, values, _shading.DIVERGING),
        "columns": [
            _column(f"{label}: {first} minus {second}", unit, values),
            *(_column(f"{label}, {name}", unit, shaded[name][0]) for name in named),
        ],
        "units": units,
        "unitHead": ["Units at", first, second],
        "lines": [],
        "symbols": [
            ["", "1", "same in both"],
            ["gain", "+1", f"more in {first}"],
            ["loss", "−1", f"more in {second}"],
            ["vacant", "", "vacant in both"],
        ],
    }


def _summary(evaluation):
    """Return the main results of an evaluation as text."""
    source = "simulated" if evaluation.evaluator == "simulation" else f"{evaluation.evaluator} hypercube model"
    if evaluation.capacity == "loss":
        lost = 100 * evaluation.loss_probability
        rest = f"{lost:.2g}% of calls lost" if lost >= 0.01 else "fewer than 0.01% of calls lost"
    else:
        rest = f"mean wait {evaluation.mean_wait:.2f} min"
    return (
        f"mean response {evaluation.mean_response:.2f} min · 90% within {evaluation.percentile_90:.1f} min · "
        f"units {evaluation.utilizations.mean():.0%} busy · {rest} · {source}"
    )


def _classes(edges, values, ramp):
    finite = values[np.isfinite(values)]
    return {
        "edges": _numbers(edges, 6),
        "colours": _shading.colours(len(edges) - 1, ramp),
        "missing": _shading.MISSING,
        "below": bool((finite < edges[0] - 1e-9).any()),
        "above": bool((finite > edges[-1] + 1e-9).any()),
    }


def _column(label, unit, values):
    return {"label": label, "unit": unit, "digits": 2 if unit == "min" else 1, "values": _numbers(values, 4)}


def _units(count):
    return f"{count} unit" if count == 1 else f"{count} units"


def _numbers(values, digits):
    """Return plain floats, with None for non-finite values, which JSON does not have."""
    return [round(v, digits) if np.isfinite(v) else None for v in np.asarray(values, dtype=float).tolist()]


def _lat_lon(points, digits):
    """Return coordinates in Leaflet's order, latitude first."""
    return np.round(np.asarray(points)[:, ::-1], digits).tolist()


def _rounded(shape, scale, digits):
    """Return a GeoJSON geometry with scaled and rounded coordinates."""

    def each(node):
        if _validate.is_real(node[0]):
            return [round(node[0] * scale, digits), round(node[1] * scale, digits)]
        return [each(child) for child in node]

    return {"type": shape["type"], "coordinates": each(shape["coordinates"])}


def _corners(node):
    """Yield every coordinate pair of nested GeoJSON coordinates."""
    if _validate.is_real(node[0]):
        yield node
    else:
        for child in node:
            yield from _corners(child)


# -- new results for a map that is already shown ------------------------------------------------------------------

# The message is repeated until the map has drawn it, since the update may load before the map.
_FEED = """<!doctype html><script>
const message = %MESSAGE%;
message.id = Math.random();
let left = 60;
const timer = setInterval(send, 250);
addEventListener("message", event => { if (event.data.emsoptDrawn === message.id) clearInterval(timer); });
function send() {
  for (let k = 0; k < parent.frames.length; k++) parent.frames[k].postMessage(message, "*");
  if (--left === 0) clearInterval(timer);
}
send();
</script>"""
