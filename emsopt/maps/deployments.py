"""Maps of a city and a deployment, for a notebook or as one HTML file, that need no network.

An atom is shaded by its mean response (or another value), a black square is a station with its number of
units, a small white one a vacant site, and a line from station to atom is as wide as the share of the atom's
calls that the station answers. The page carries its own copy of Leaflet (`vendor`) and asks no server
for anything, which its content security policy enforces; only ``tiles="OpenStreetMap"`` fetches a background.

Nothing is computed here: all figures come from an `Evaluation`. The matplotlib twin is
`emsopt.plots.deployment`. Lines are straight and show who answers, not which roads are taken.
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
    """Draw a deployment, or two beside each other, on a map.

    Parameters
    ----------
    city : City
        Needs ``atom_locations`` and ``site_locations``; with ``atom_shapes`` areas are shaded, otherwise
        circles whose area is the share of calls. Plane cities (``geographic=False``) are drawn in kilometres.
    evaluation : Evaluation or dict of str to Evaluation, optional
        What to show, by name if a dict; a switch changes between several. Left out: demand and sites only.
    compare : Evaluation or dict of str to Evaluation, optional
        Further ones on the same switch. Two in all add a view of their difference.
    value : {"response", "demand"} or ("late", float)
        What atoms are shaded by: mean response (min), share of calls (%), or share of the answered calls that
        take a threshold (min) or longer (%).
    limits : (float, float), optional
        Range of the shading, in the unit of ``value``; default: of what is shown. Fix it where a slider redraws.
    min_fraction : float
        Lines and lists leave out stations that answer a smaller share of an atom's calls.
    tiles : {None, "OpenStreetMap"}
        Background; None needs no network. OpenStreetMap's servers want to know the page that asks, so tiles
        may stay blank in a file opened from disk.
    height : int
        Height in a notebook, pixels.
    key : str, optional
        Name under which a map on a page takes new results: see `DeploymentMap.update`.
    edit : str, optional
        Name of the evaluation whose stations can be clicked: a click on place k (see `emsopt.maps._shading.stations`) presses
        the element of class ``emsopt-KEY-place-k`` in the page around the map, such as a widget's button, and opens no
        list. Needs a ``key``.

    Returns
    -------
    DeploymentMap
        Shows itself in a notebook; `DeploymentMap.save` writes one self-contained HTML file.

    Raises
    ------
    InputError
        If the city has no coordinates, the evaluation is of another city, or an option is not as above.
    """
    _shading.require_locations(city)
    named = _gather(city, evaluation, compare)
    _shading.atom_values(city, next(iter(named.values()), None), value)
    min_fraction = _validate.positive_number(min_fraction, "min_fraction", zero=True)
    if min_fraction > 1:
        msg = f"`min_fraction` must be a share from 0 to 1; got {min_fraction:g}."
        raise InputError(msg)
    if tiles is not None:
        _validate.choice(tiles, "tiles", ("OpenStreetMap",))
        if not city.geographic:
            msg = f"`tiles` need longitude and latitude; {city.name!r} lies on a plane. Leave them out."
            raise InputError(msg)
    if key is not None and not (isinstance(key, str) and key):
        msg = f"`key` must be a name, such as uuid.uuid4().hex; got {key!r}."
        raise InputError(msg)
    if edit is not None and (key is None or edit not in named):
        msg = f"`edit` must name one of the evaluations {list(named)}, and needs a `key`; got {edit!r}."
        raise InputError(msg)
    height = _validate.whole_number(height, "height", 150, 5000)
    return DeploymentMap(city, named, value, limits, min_fraction, tiles, height, key, edit)


@dataclass(frozen=True, eq=False, repr=False)
class DeploymentMap(Page):
    """A map that shows itself in a notebook and saves itself as one HTML file.

    Attributes
    ----------
    city : City
    evaluations : dict of str to Evaluation
        What the map can switch between.
    value, limits, min_fraction, tiles, height, key, edit
        As given to `deployment_map`.
    html : str
        The whole page, self-contained.
    data : dict
        What the page's script draws; plain lists, strings and numbers.
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
        """What the page's script draws."""
        return {
            "key": self.key,
            "edit": self.edit,
            "city": _city_data(self.city, self.tiles),
            "views": self._views(self.evaluations),
        }

    def update(self, evaluation, compare=None):
        """Return a hidden HTML snippet that redraws this map where it is already shown.

        Put the map once into one HTML widget and each update into another: the map keeps its zoom and layers,
        and a few kilobytes travel instead of the whole page. Needs a ``key``, and the same names as before.

        Parameters
        ----------
        evaluation, compare
            As for `deployment_map`, of this city or the same city under another load.

        Returns
        -------
        str
        """
        if self.key is None:
            msg = "only a map with a `key` can be updated: deployment_map(..., key=uuid.uuid4().hex)."
            raise InputError(msg)
        named = _gather(self.city, evaluation, compare)
        if list(named) != list(self.evaluations):
            msg = f"an update needs evaluations named {list(self.evaluations)}; got {list(named)}."
            raise InputError(msg)
        views = json_text({"emsoptMap": self.key, "views": self._views(named)})
        page = _FEED.replace("%MESSAGE%", views)
        return f'<iframe srcdoc="{escape(page)}" aria-hidden="true" hidden></iframe>'

    @property
    def _title(self):
        """The city, and the deployment's name if it has one and is alone: several stand on the switch."""
        names = list(self.evaluations)
        return (
            f"{self.city.name}, {names[0]}" if len(names) == 1 and names != ["deployment"] else self.city.name
        )

    @property
    def _notes(self):
        return self.city.notes

    @property
    def _constants(self):
        """What the page's template has beside data: the same for every map with or without a background."""
        tiles = self.tiles is not None
        return (
            ("IMAGES", TILE_HOST if tiles else ""),
            ("TILES", TILES if tiles else ""),
            ("LINES", _shading.LINES),
            ("GAIN", _shading.DIVERGING[0]),
            ("LOSS", _shading.DIVERGING[-1]),
        )

    def _views(self, named):
        """One view for every evaluation, and one of the difference between two."""
        city, shaded = self.city, {}
        for name, evaluation in (named or {"demand": None}).items():
            shaded[name] = _shading.atom_values(city, evaluation, self.value)
        limits = _shading.limits_of([values for values, *_ in shaded.values()], self.limits)
        edges = _shading.class_edges(*limits)
        views = [
            _view(city, name, named.get(name), shaded[name], edges, self.min_fraction) for name in shaded
        ]
        if len(named) == 2 and self.value != "demand":
            views.append(_difference(city, named, shaded))
        return views


def _gather(city, evaluation, compare):
    """Return all evaluations by name."""
    if evaluation is None:
        if compare is not None:
            msg = "`compare` needs an `evaluation` to compare with."
            raise InputError(msg)
        return {}
    named = _shading.named_evaluations(city, evaluation)
    if compare is not None:
        others = _shading.named_evaluations(city, compare, "comparison")
        twice = sorted(set(named) & set(others))
        if twice:
            msg = f"two evaluations are named {twice[0]!r}; give them different names."
            raise InputError(msg)
        named = {**named, **others}
    return named


# -- what the page's script draws ---------------------------------------------------------------------------------


def _city_data(city, tiles):
    """Everything that stays when a deployment moves."""
    scale, digits = (1, 5) if city.geographic else (1000, 1)  # a plane is drawn in metres, for the scale bar
    which, places = _shading.stations(city)
    titles = [
        _place_name([city.site_names[site] for site in np.flatnonzero(which == k)])
        for k in range(len(places))
    ]
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
        "places": [
            {"name": title, "at": at} for title, at in zip(titles, _lat_lon(points[1], digits), strict=True)
        ],
        "atoms": {
            "name": list(city.atom_names),
            "at": _lat_lon(points[0], digits),
            "share": _numbers(city.demand_shares, 6),
            "shape": shapes,
        },
    }


def _place_name(names):
    """Name a place where several sites are listed: "Station 8" for "Station 8 (unit 1)" and "Station 8 (unit 2)"."""
    before_bracket = {name.split("(")[0].rstrip() for name in names}
    shortest = min(names, key=len)
    if len(names) > 1 and len(before_bracket) == 1 and "" not in before_bracket:
        return before_bracket.pop()
    return shortest if all(name.startswith(shortest) for name in names) else " / ".join(names)


def _view(city, name, evaluation, shaded, edges, min_fraction):
    """Shading, stations and lines of one deployment."""
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
                    [evaluation.site_names[k], f"{evaluation.utilizations[k]:.1%}", f"{shares[k]:.1%}"]
                    for k in units
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
    """Headline of an evaluation, in words."""
    source = (
        "simulated" if evaluation.evaluator == "simulation" else f"{evaluation.evaluator} hypercube model"
    )
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
    """Plain floats, with None for what is not finite, which JSON cannot say."""
    return [round(v, digits) if np.isfinite(v) else None for v in np.asarray(values, dtype=float).tolist()]


def _lat_lon(points, digits):
    """Coordinates as Leaflet wants them: north first."""
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

# Sent again until the map has drawn it: a reopened notebook may show the update before the map is ready.
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
