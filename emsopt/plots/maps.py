"""Static maps of deployments, the counterparts of the interactive maps in `emsopt.maps`."""

from __future__ import annotations

from collections.abc import Mapping
from textwrap import wrap
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.colors import BoundaryNorm, ListedColormap, to_rgba
from matplotlib.figure import Figure
from matplotlib.path import Path
from matplotlib.patheffects import withStroke

from ..city import City
from ..errors._types import FloatArray
from ..evaluators import Evaluation
from ..maps import _colours
from ..maps._colours import AtomQuantity
from ._style import AxesArray, AxLike, Style, add_note, common_style, legend_marker, new_figure, panels, remove_ticks

MAX_LINE_WIDTH = 3.5  # points, for a share of 1: wider lines would hide the shading of atoms


@common_style()
def deployments(
    city: City,
    evaluations: Evaluation | Mapping[str, Evaluation] | None = None,
    ax: AxLike = None,
    *,
    value: AtomQuantity = "response",
) -> tuple[Figure, AxesArray]:
    """Draw maps of deployments: atoms, stations and who answers, with the colours of `emsopt.maps.deployment_map`.

    Atoms are shaded by ``value``. A black square is a station with its number of units and its share of all answered
    calls. The width of a line from a station to an atom shows the share of the atom's answered calls that the station
    answers; shares below 2 % have no line. Figure 4 of "Optimizing Server Locations in Spatial Queues" is such a map.

    Parameters
    ----------
    city : City
        Needs ``atom_locations`` and ``site_locations``; ``atom_shapes`` are used if available.
    evaluations : Evaluation, or dict of str to Evaluation, optional
        One, or several by the names that become titles. Default: only demand and candidate sites.
    value
        As for `emsopt.maps.deployment_map`.

    Examples
    --------
    >>> import emsopt as eo
    >>> city = eo.datasets.load_st_paul()
    >>> result = eo.evaluators.approximate_hypercube(city, [0, 1, 2, 3, 4, 8, 9, 10, 11])
    >>> fig, axes = eo.plots.deployments(city, {"first nine": result})
    """
    named: Mapping[str, Evaluation | None] = {"": None}
    if evaluations is not None:
        named = _colours.evaluations_by_name(city, evaluations, "")
    _colours.require_locations(city)
    shaded = [_colours.atom_values(city, evaluation, value) for evaluation in named.values()]
    together = np.concatenate([values for values, *_ in shaded])  # one scale for all maps
    edges = _colours.colour_limits(together)
    cmap = ListedColormap(_colours.ramp_colours(len(edges) - 1)).with_extremes(bad=_colours.MISSING_COLOUR)
    norm = BoundaryNorm(edges, cmap.N)
    fig, axes, where = _map_axes(ax, city, len(named))
    for panel, (name, evaluation), (values, *_) in zip(axes, named.items(), shaded, strict=True):
        _draw_map(panel, city, evaluation, cmap(norm(np.ma.masked_invalid(values))))  # NaN gets the colour for `bad`
        reached = "" if evaluation is None else f": mean response {evaluation.mean_response:.2f} min"
        panel.set_title(f"{name or city.name}{reached}")
    _, label, unit = shaded[0]
    bar = fig.colorbar(ScalarMappable(norm, cmap), **where)
    bar.set_label(f"{label} ({unit})")
    bar.outline.set_visible(False)
    bar.ax.tick_params(length=0)
    bar.ax.grid(visible=False)
    _draw_legend(axes, city, lines=any(evaluation is not None for evaluation in named.values()))
    return fig, axes


def _map_axes(ax: AxLike, city: City, count: int) -> tuple[Figure, AxesArray, dict[str, Any]]:
    """Return a figure, ``count`` axes for maps, and keyword arguments that place the colour bar."""
    if ax is not None and not isinstance(ax, Figure):
        fig, axes = panels(count, (0, 0), ax=ax)
        return fig, axes, {"ax": list(axes)}
    # Axes are placed here, as automatic layouts leave gaps around axes of fixed aspect.
    across = count if count <= 3 else 2 if count == 4 else 3  # four maps in two rows, not three and one
    down = -(-count // across)
    low, high, aspect = _map_extent(city)
    width = (7.4, 6.2, 4.1)[across - 1]
    left, top, gap, right = 0.15, 0.45, 0.3, 1.15
    bottom = 0.42 + 0.2 * len(_wrap_notes(city.notes, across * width))  # 0.2 inches for each line of the notes
    wide = left + across * width + (across - 1) * gap + right
    most = (0.59 * wide - bottom) / down - top  # a projector shows the figure at once
    height = float(np.clip(width * aspect * (high[1] - low[1]) / (high[0] - low[0]), 2.0, most))
    inches = (wide, bottom + down * (height + top))
    fig = new_figure(inches, ax, "none")
    places = [(k % across, down - 1 - k // across) for k in range(count)]
    boxes = [(left + i * (width + gap), bottom + j * (height + top), width, height) for i, j in places]
    tall = inches[1] - bottom - top
    boxes.append((inches[0] - right + 0.15, bottom + 0.1 * tall, 0.2, 0.8 * tall))
    *maps, bar = (fig.add_axes(tuple(np.array(box) / np.tile(inches, 2))) for box in boxes)
    return fig, np.array(maps, dtype=object), {"cax": bar}


def _draw_map(ax: Axes, city: City, evaluation: Evaluation | None, colours: FloatArray) -> None:
    """Draw one map on ``ax``: atoms shaded by ``colours``, stations, lines from stations to the atoms they serve."""
    atoms = np.asarray(city.atom_locations)
    if city.atom_shapes:
        paths = [_outline_path(shape) for shape in city.atom_shapes]
        ax.add_collection(PathCollection(paths, facecolors=colours, edgecolors="white", linewidths=0.8))
    else:
        sizes = 450 * min(1, 100 / city.n_atoms) * city.demand_shares / city.demand_shares.max()
        x, y = atoms.T
        ax.scatter(x, y, s=np.maximum(sizes, 8), c=colours, edgecolors="#555", linewidths=0.6)  # 8: visible at 0
    _, places = _colours.locate_sites(city)
    counts = np.zeros(len(places), dtype=int)
    if evaluation is not None:
        at, counts, fractions = _colours.sum_by_place(city, evaluation)
        i, j = _colours.pairs_to_draw(fractions).T
        drawn, thinness = fractions[i, j], _colours.line_thinness(city)
        opaque = np.tile(to_rgba(_colours.LINE_COLOUR), (len(drawn), 1))
        opaque[:, 3] = thinness * (0.3 + 0.55 * drawn)  # so that many small shares do not hide the large ones
        lines = list(np.stack([places[i], atoms[j]], axis=1))
        widths = thinness * _line_width(drawn)
        ax.add_collection(LineCollection(lines, colors=opaque, linewidths=widths, zorder=3, capstyle="round"))
        shares = np.bincount(at, weights=evaluation.unit_shares, minlength=len(places))
        halo = [withStroke(linewidth=2.5, foreground="white")]  # a white rim keeps the text legible on lines
        for k in np.flatnonzero(counts):
            ax.plot(*places[k], marker="s", markersize=14, color="#111", markeredgecolor="white", zorder=5)
            style: Style = {"color": "white", "va": "center_baseline", "weight": "bold", "fontsize": 10, "zorder": 6}
            add_note(ax, str(counts[k]), places[k], **style)
            add_note(ax, f"{shares[k]:.0%}", places[k], (0, -9), va="top", path_effects=halo, fontsize=10, zorder=6)
    x, y = places[counts == 0].T
    ax.scatter(x, y, marker="s", s=34, c="white", edgecolors="#222", linewidths=1.5, zorder=4)
    _set_frame(ax, city)


def _line_width(fraction: Any) -> Any:
    """Return the width (points) of a line that shows a share of an atom's calls."""
    return 0.4 + (MAX_LINE_WIDTH - 0.4) * fraction


def _outline_path(shape: dict[str, Any]) -> Path:
    """Return a GeoJSON Polygon or MultiPolygon as one path, holes included."""
    paths = []
    for hole, corners in _colours.rings(shape):
        x, y = corners.T
        clockwise = x[:-1] @ y[1:] < x[1:] @ y[:-1]  # the shoelace formula
        # Holes need the opposite orientation to stay open, which some files ignore.
        paths.append(Path(corners if clockwise == hole else corners[::-1], closed=True))
    return Path.make_compound_path(*paths)


def _map_extent(city: City) -> tuple[FloatArray, FloatArray, float]:
    """Return two corners of a map, (2,) each, and how many times longer a unit of y is than a unit of x."""
    low, high = _colours.extent(city)
    aspect = _colours.latitude_stretch(low, high) if city.geographic else 1.0
    least = 0.0005 if city.geographic else 0.05  # a city of one point still needs an extent
    margin = max(0.04 * (high - low).max(), least) / np.array([1, aspect])
    return low - margin * (1, 3), high + margin, aspect  # room for the scale bar below


def _set_frame(ax: Axes, city: City) -> None:
    """Set equal axes around the city and replace the ticks by a scale bar."""
    low, high, aspect = _map_extent(city)
    remove_ticks(ax)
    km = 111.2 / aspect if city.geographic else 1  # the scale bar is in km, and 111.2 km are a degree of latitude
    wide = high[0] - low[0]
    wanted = 0.22 * wide * km
    power = 10.0 ** np.floor(np.log10(wanted))
    length = power * max(f for f in (1, 2, 5) if f * power <= wanted)  # 1, 2 or 5 times a power of ten
    left, y = low[0] + 0.03 * wide, low[1] + 0.03 * wide / aspect
    right = left + length / km
    ax.plot([left, right], [y, y], color="#222", linewidth=2, solid_capstyle="butt", zorder=7)
    add_note(ax, f"{length:g} km", (right, y), (5, 0), ha="left", fontsize=10, zorder=7)
    # "datalim" fills the available space and works with layouts; auto=True lets it widen these limits.
    ax.set_aspect(aspect, adjustable="datalim")
    ax.set_xlim(low[0], high[0], auto=True)
    ax.set_ylim(low[1], high[1], auto=True)


def _wrap_notes(notes: str, inches: float) -> list[str]:
    """Return the lines of a text wrapped to a width in inches at font size 9."""
    return wrap(notes, max(40, int(inches * 14)))  # characters of size 9 per inch


def _draw_legend(axes: AxesArray, city: City, *, lines: bool) -> None:
    """Draw the legend of symbols and the city's notes below the first map of the last row."""
    square = {"marker": "s", "linestyle": "none"}
    vacant = "vacant site" if lines else "candidate site"
    handles = [legend_marker(vacant, color="white", markeredgecolor="#222", markersize=6, **square)]
    if lines:
        handles.insert(0, legend_marker("station: units, share of calls", color="#111", markersize=12, **square))
        thinness = _colours.line_thinness(city)
        shares = {0.1: "10%", 0.5: "50%", 1: "100% of an atom's calls"}
        style: Style = {"color": _colours.LINE_COLOUR}
        handles += [legend_marker(text, linewidth=thinness * _line_width(x), **style) for x, text in shares.items()]
    spans, dpi = [panel.get_window_extent() for panel in axes], axes[0].figure.dpi
    ax = next(panel for panel, span in zip(axes, spans, strict=True) if span.y0 < spans[-1].y1)
    widths = [span.width / dpi for span in spans if span.y1 > spans[0].y0]  # legend and notes may span a row of panels
    roomy = widths[0] > 4 and sum(widths) > 5.5  # else the legend takes two columns
    spaces = {"columnspacing": 1.1, "handletextpad": 0.5, "borderaxespad": 0.2}
    columns, below = (len(handles), -25) if roomy else (2, -58)
    ax.legend(handles=handles, loc="upper left", bbox_to_anchor=(0, 0), ncols=columns, fontsize=10, **spaces)
    if city.notes:
        style = {"ha": "left", "va": "top", "fontsize": 9, "color": "#444", "annotation_clip": False}
        text = "\n".join(_wrap_notes(city.notes, sum(widths)))
        add_note(ax, text, (0, 0), (4, below), xycoords="axes fraction", **style)
