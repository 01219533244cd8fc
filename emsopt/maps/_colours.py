"""Shading of atoms on interactive maps and in figures: quantities, classes and colours.

Darker means worse (longer, later) or more (calls), so that colour-blind readers and greyscale keep the order. Only the
view of a difference has another scale, with two hues.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from ..city.city import City, check_city
from ..errors import InputError, _validate
from ..errors._types import FloatArray, IntArray
from ..evaluators.evaluation import Evaluation

AtomQuantity: TypeAlias = str | tuple[str, float]
ColourLimits: TypeAlias = tuple[float, float] | None

SEQUENTIAL_COLOURS = ("#f6f1d9", "#cfe0c3", "#93c4bd", "#569fb8", "#3577a8", "#2a4c88", "#1d2458")  # pale to dark
DIVERGING_COLOURS = ("#1f5f95", "#6fa3cc", "#c3d8e8", "#f5f4f0", "#f3d4b3", "#e29a55", "#b2560a")  # blue to orange
MISSING_COLOUR = "#d9d9d9"
LINE_COLOUR = "#c8460a"  # stands out from all shades above, also for colour-blind readers
LEAST_SHARE = 0.02  # smallest share of an atom's calls for which a station is shown in lines and lists
# Okabe and Ito's palette in an order that also separates well in grey.
CATEGORY_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9", "#000000")


def atom_values(city: City, evaluation: Evaluation | None, value: AtomQuantity) -> tuple[FloatArray, str, str]:
    """Return the values that shade the atoms, (M,), their label and unit; ``value`` is that of `deployment_map`."""
    if evaluation is None or (isinstance(value, str) and value == "demand"):
        return 100 * city.demand_shares, "Share of calls", "%"
    if isinstance(value, str) and value in ("response", "mean_response"):
        return evaluation.atom_response, "Mean response", "min"
    if isinstance(value, (tuple, list)) and len(value) == 2 and value[0] == "late":  # JSON and widgets have lists only
        threshold = _validate.positive_number(value[1], "value[1]", "min")
        return 100 * evaluation.atom_late_fractions(threshold), f"Late ({threshold:g} min or more)", "%"
    raise InputError(f'`value` must be "response", "demand" or ("late", minutes); got {value!r}.')


def class_edges(low: float, high: float, most: int = 8) -> FloatArray:
    """Return round, evenly spaced limits of at most ``most`` classes that cover [low, high], or [0, 1] if infinite."""
    if not (math.isfinite(low) and math.isfinite(high)):
        return np.array([0.0, 1.0])
    if high - low < 1e-9 * max(abs(low), abs(high), 1):  # all values equal: a class around them
        low, high = low - max(abs(low), 1) * 0.05, high + max(abs(high), 1) * 0.05
    step = 10.0 ** math.floor(math.log10((high - low) / most))
    for factor in (1, 2, 2.5, 5, 10, 20):
        # 1e-9: a limit that is met but for rounding opens no class
        first, last = math.floor(low / (step * factor) + 1e-9), math.ceil(high / (step * factor) - 1e-9)
        if last - first <= most:
            break
    return np.arange(first, last + 1, dtype=float) * step * factor


def ramp_colours(n: int, ramp: Sequence[str] = SEQUENTIAL_COLOURS) -> list[str]:
    """Return ``n`` hex colours, evenly spaced along a sequence ``ramp`` of hex colours that is interpolated."""
    stops = np.array([[int(c[k : k + 2], 16) for k in (1, 3, 5)] for c in ramp], dtype=float)
    places = np.linspace(0, len(stops) - 1, n) if n > 1 else np.array([(len(stops) - 1) / 2])  # one class: the middle
    channels = np.column_stack([np.interp(places, np.arange(len(stops)), channel) for channel in stops.T])
    return ["#" + "".join(f"{round(v):02x}" for v in rgb) for rgb in channels]


def colour_scale(values: FloatArray, edges: FloatArray, ramp: Sequence[str] = SEQUENTIAL_COLOURS) -> dict[str, Any]:
    """Return a colour scale as a dict: limits and colours of classes, and whether values lie below or above them."""
    finite = values[np.isfinite(values)]
    return {
        "edges": [round(edge, 6) for edge in edges.tolist()],
        "colours": ramp_colours(len(edges) - 1, ramp),
        "missing": MISSING_COLOUR,
        "below": bool((finite < edges[0] - 1e-9).any()),  # rounding at a limit is not outside
        "above": bool((finite > edges[-1] + 1e-9).any()),
    }


def colour_limits(values: FloatArray, limits: ColourLimits = None) -> FloatArray:
    """Return the limits of colour classes: evenly spaced in ``limits``, by default six classes of about equal counts.

    Equal counts tell atoms apart where most values are alike, and a remote atom takes no colours away from the others.
    """
    if limits is not None:
        low, high = _validate.real_array(limits, "limits", (2,)).tolist()
        if low >= high:
            raise InputError(f"`limits` must be (low, high) with low < high; got [{low}, {high}].")
        return class_edges(low, high)
    values = np.sort(values[np.isfinite(values)])
    low, *inner, high = np.quantile(values, np.arange(7) / 6) if values.size else (0.0, 1.0)
    if not inner or inner[-1] - inner[0] < 1e-9 * max(abs(low), abs(high), 1):  # most values are equal
        return class_edges(low, high)
    digits = -math.floor(math.log10(inner[-1] - inner[0]))  # digits that tell the middle classes apart
    most = max(values.size / 4, np.unique(values, return_counts=True)[1].max())  # ties stay together
    for finer in range(4):  # limits as round as equal counts allow
        step = 10.0 ** -(digits + finer)
        edges = np.r_[math.floor(low / step) * step, np.round(inner, digits + finer), math.ceil(high / step) * step]
        edges = np.unique(np.round(edges, digits + finer))
        if np.histogram(values, edges)[0].max() <= most:
            break
    return edges


def evaluations_by_name(
    city: City | None, evaluations: Evaluation | Mapping[str, Evaluation], default: str = "deployment"
) -> dict[str, Evaluation]:
    """Return evaluations by name, a single one as ``default``; raise if one does not fit the city (if not None)."""
    if isinstance(evaluations, Evaluation):
        evaluations = {default: evaluations}
    if not isinstance(evaluations, Mapping) or not evaluations:
        got = "an empty one" if isinstance(evaluations, Mapping) else type(evaluations).__name__
        raise InputError(f"expected an Evaluation or a non-empty dict of name to Evaluation; got {got}.")
    named = {str(name): evaluation for name, evaluation in evaluations.items()}
    for name, evaluation in named.items():
        _validate.instance(evaluation, name, Evaluation, "Evaluation")
        atoms, last = evaluation.dispatch_fractions.shape[1], evaluation.sites.max()
        if city is not None and (atoms != city.n_atoms or last >= city.n_sites):
            raise InputError(
                f"the evaluation {name!r} belongs to another city: it has {atoms} atoms and sites up to {last}; "
                f"{city.name!r} has {city.n_atoms} atoms and {city.n_sites} sites. "
                "Evaluate the deployment in this city."
            )
    return named


def require_locations(city: City) -> None:
    """Raise unless a city has coordinates of atoms and sites."""
    check_city(city)
    for key in ("atom_locations", "site_locations"):
        if getattr(city, key) is None:
            raise InputError(
                f"{city.name!r} has no `{key}`, so it cannot be drawn on a map. Add them with "
                f"city.replace({key}=...), in degrees, or in kilometres with geographic=False."
            )


def rings(shape: Mapping[str, Any]) -> list[tuple[bool, FloatArray]]:
    """Return the rings of a GeoJSON Polygon or MultiPolygon: whether each is a hole, and its corners, shape (n, 2)."""
    polygons = [shape["coordinates"]] if shape["type"] == "Polygon" else shape["coordinates"]
    return [(k > 0, np.array(ring, dtype=float)[:, :2]) for part in polygons for k, ring in enumerate(part)]


def extent(city: City) -> tuple[FloatArray, FloatArray]:
    """Return the lower left and upper right corner, (2,) each, of a box around all atoms, sites and outlines."""
    outlines = [corners for shape in city.atom_shapes or () for _, corners in rings(shape)]
    points = np.concatenate([city.atom_locations, city.site_locations, *outlines])
    return points.min(axis=0), points.max(axis=0)


def latitude_stretch(low: FloatArray, high: FloatArray) -> float:
    """Return how many times longer a degree of latitude is than one of longitude, midway between two map corners."""
    return float(1 / np.cos(np.radians((low[1] + high[1]) / 2)))


def line_thinness(city: City) -> float:
    """Return a factor for the width of lines on a map, √(40 / M) for M atoms, but at least 0.12 and at most 1."""
    return float(np.clip(np.sqrt(40 / city.n_atoms), 0.12, 1))


def locate_sites(city: City) -> tuple[IntArray, FloatArray]:
    """Return the index of the distinct location of each site, shape (N,), and these locations, shape (K, 2)."""
    points = list(map(tuple, np.round(np.asarray(city.site_locations), 6)))  # rounding makes no new place
    number = {point: k for k, point in enumerate(dict.fromkeys(points))}
    return np.array([number[point] for point in points]), np.array(list(number))


def sum_by_place(city: City, evaluation: Evaluation) -> tuple[IntArray, IntArray, FloatArray]:
    """Return each unit's place (`locate_sites`), (p,), units by place, (K,), and shares of atoms' calls, (K, M)."""
    which, places = locate_sites(city)
    at = which[evaluation.sites]
    fractions = np.zeros((len(places), city.n_atoms))
    np.add.at(fractions, at, evaluation.dispatch_fractions)  # unlike `+=`, adds up units at one place
    return at, np.bincount(at, minlength=len(places)), fractions


def pairs_to_draw(fractions: FloatArray) -> IntArray:
    """Return the pairs (place, atom), (L, 2), to join by lines: with 2 % or more of the atom's answered calls."""
    return np.argwhere(fractions >= LEAST_SHARE)
