"""Figures of bandits on road networks: regret by route or lengthscale, and maps of the edges driven."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from ..errors import InputError, _validate
from ..errors._types import FloatArray
from ..maps import _colours
from ..maps._page import ROAD_COLOUR
from ..maps.roads import VISIT_CLASSES, edges_to_mark, gather_visits
from ..roads import RoadNetwork
from ._style import (
    AxesArray,
    AxLike,
    Style,
    add_note,
    common_style,
    draw_line,
    legend_marker,
    line_numbers,
    line_style,
    merge_legends,
    panels,
    remove_ticks,
)

PANEL_SIZE = (5.8, 3.1)  # inches; two stand side by side
VALUE_NAMES = {"cumulative_regret": "rectified regret", "excess_energy": "energy above the best path's"}


@common_style()
def cumulative_regret(
    frame: pd.DataFrame,
    ax: AxLike = None,
    *,
    against: str = "round",
    by: Sequence[str] = ("network", "route"),
    lines: str = "policy",
    value: str = "cumulative_regret",
    log: bool = True,
) -> tuple[Figure, AxesArray]:
    """Draw the cumulative regret of navigation agents, or their excess energy, with one panel per route.

    Lines are means over the runs, with one standard error of the mean on either side. Regret is rectified: energy
    gained downhill does not count (see `emsopt.bandits.navigation`). Excess energy is not.

    "Bayesian Analysis of Combinatorial Gaussian Process Bandits", Figures 2 to 4, and Figure 5 with
    ``against="lengthscale"``.

    Parameters
    ----------
    frame : DataFrame
        Columns ``round``, ``value`` (Wh), ``run`` (number of the repetition) and those named below, for
        example from `emsopt.datasets.load_study` for "navigation_agents".
    against : str
        Column of numbers along the horizontal axis. Unless it is "round", the regret after the last round is drawn, as
        for the study "navigation_lengthscale".
    by, lines : sequence of str, str
        Columns that define the panels, and the column that defines the lines, in the order of the frame.
    value : str
        "cumulative_regret", or "excess_energy", which may be negative and needs ``log=False``.
    log : bool
        Whether the vertical axis is logarithmic, because policies differ by a factor of fifty.

    Examples
    --------
    >>> import emsopt as eo
    >>> fig, axes = eo.plots.cumulative_regret(eo.datasets.load_study("navigation_agents"))
    """
    quantity = VALUE_NAMES[_validate.choice(value, "value", VALUE_NAMES)]
    _validate.check_columns(frame, ("round", value, "run", against, lines, *by))
    groups, places = list(frame.groupby(list(by), sort=False)), line_numbers(map(str, frame[lines]))
    fig, axes = panels(len(groups), PANEL_SIZE, across=2, ax=ax)
    for panel, (key, part) in zip(axes, groups, strict=True):
        last, ylabel = part["round"].max(), f"Cumulative {quantity} (Wh)"  # the last round differs between routes
        if against != "round":
            part, ylabel = part[part["round"] == last], f"{quantity.capitalize()} after {last} rounds (Wh)"
        for name, rows in part.groupby(lines, sort=False):
            k, table = places[str(name)], rows.groupby(against)[value].agg(["mean", "sem"])
            x, (mean, error) = table.index.to_numpy(), table.fillna({"sem": 0}).to_numpy().T  # one run has no error
            if against == "round":
                draw_line(panel, x, mean, k, (mean - error, mean + error), log=log, label=name)
            else:
                panel.errorbar(x, mean, error, label=name, capsize=4, marker="o", **line_style(k))
        panel.set(title=", ".join(map(str, key)), xlabel=against.capitalize(), ylabel=ylabel)
        panel.set_yscale("log" if log else "linear")
        panel.margins(x=0 if against == "round" else None)  # rounds fill the axis, other values keep a margin
    merge_legends(fig, axes, 7, "upper left")
    return fig, axes


MAP_WIDTH_IN = 4.7  # inches; three maps side by side
DISC_BOX: Style = {"boxstyle": "circle,pad=0.25", "facecolor": "#111", "edgecolor": "white"}
LABEL_STYLE: Style = {"color": "white", "fontsize": 9, "fontweight": "bold", "zorder": 9}
BEST_PATH_STYLE: Style = {"color": _colours.LINE_COLOUR, "linewidth": 6, "alpha": 0.4}


@common_style()
def exploration(
    net: RoadNetwork,
    visits: Any,
    ax: AxLike = None,
    *,
    route: tuple[int | str, int | str] | None = None,
    best: Iterable[int | str] | None = None,
) -> tuple[Figure, AxesArray]:
    """Draw one map per agent, with edges shaded by the number of rounds in which they were driven.

    Static counterpart of `emsopt.maps.exploration_map`, which describes the parameters. "Bayesian Analysis of
    Combinatorial Gaussian Process Bandits", Figures 6 to 9.

    Examples
    --------
    >>> import emsopt as eo
    >>> net = eo.roads.grid_roads(4, 4, jitter=0.2, rng=0)
    >>> run = eo.bandits.run(net, "r0c0-r0c1", "r3c2-r3c3", "gp-ts", horizon=10, rng=0)
    >>> fig, axes = eo.plots.exploration(net, {"gp-ts": run})
    """
    named = gather_visits(net, visits)
    lines, limits, height = _map_extent(net)
    fig, axes = _map_axes(len(named), height, ax)
    ends, path = edges_to_mark(net, route, best)
    for panel, (name, frame) in zip(axes, named.items(), strict=True):
        panel.add_collection(LineCollection(lines, colors=ROAD_COLOUR, linewidths=0.5))
        if path:
            panel.add_collection(LineCollection([lines[edge] for edge in path], **BEST_PATH_STYLE))
        bounds = [kind["from"] for kind in VISIT_CLASSES]
        which = np.searchsorted(bounds, frame["visits"], side="right") - 1  # the class with the largest lower limit
        for k, kind in enumerate(VISIT_CLASSES):  # the most frequent last, so that lines of rare edges do not hide them
            driven = [lines[edge] for edge in frame["edge"].to_numpy()[which == k]]
            panel.add_collection(LineCollection(driven, zorder=3 + k, **_visit_class_style(kind)))
        for text, edge, at in zip("AB", ends, (0, -1), strict=False):  # A where the route starts, B where it ends
            add_note(panel, text, lines[edge][at], bbox=DISC_BOX, **LABEL_STYLE)
        remove_ticks(panel)
        panel.set(**limits)
        panel.set_title(f"{name}: {len(frame)} edges")
    handles = [legend_marker(kind["text"], **_visit_class_style(kind)) for kind in VISIT_CLASSES]
    handles += [legend_marker("best path, without regret", **BEST_PATH_STYLE)] if path else []
    fig.legend(handles=handles, title="Rounds in which an edge was driven", loc="outside lower left", ncols=6)
    return fig, axes


@common_style()
def routes(
    maps: Sequence[tuple[RoadNetwork, Mapping[str, Iterable[int | str]]]], ax: AxLike = None
) -> tuple[Figure, AxesArray]:
    """Draw one map per road network, with paths on it.

    "Bayesian Analysis of Combinatorial Gaussian Process Bandits", Figure 1.

    Parameters
    ----------
    maps : sequence of (RoadNetwork, dict of str to array_like)
        Each network, which needs polylines, with its paths by name: edges in driving order, by index or id.

    Examples
    --------
    >>> import emsopt as eo
    >>> net = eo.datasets.load_roads("monaco")
    >>> path = net.shortest_path(net.lengths, *eo.datasets.ROUTES["monaco"]["A"])
    >>> fig, axes = eo.plots.routes([(net, {"shortest": path})])
    """
    extents = [_map_extent(net) for net, _ in maps]
    fig, axes = _map_axes(len(extents), max((height for *_, height in extents), default=1.0), ax)
    for panel, (net, paths), (lines, frame, _) in zip(axes, maps, extents, strict=True):
        panel.add_collection(LineCollection(lines, colors=ROAD_COLOUR, linewidths=0.5))
        for k, (name, path) in enumerate(paths.items()):
            driven = [lines[edge] for edge in net.edges(path, "path")]
            colour = line_style(k)["color"]
            panel.add_collection(LineCollection(driven, linewidths=3, zorder=3 + k, color=colour, label=name))
            for line, at in ((driven[0], 0), (driven[-1], -1)):  # a name at both ends
                add_note(panel, name, line[at], bbox={**DISC_BOX, "facecolor": colour}, **LABEL_STYLE)
        remove_ticks(panel)
        panel.set(**frame)
        panel.set_title(f"{net.name}: {net.n_edges} edges")
    return fig, axes


def _map_extent(net: RoadNetwork) -> tuple[list[FloatArray], Style, float]:
    """Return the lines of a network, (k, 2) each, the limits and aspect of its map, and the height of the map (in)."""
    if net.polylines is None:
        raise InputError(f"{net.name!r} has no polylines and cannot be drawn. Pass `polylines=` to RoadNetwork.")
    lines = [np.asarray(line) for line in net.polylines]
    corners = np.concatenate(lines)
    low, high = corners.min(axis=0), corners.max(axis=0)
    stretch = _colours.latitude_stretch(low, high) if net.geographic else 1.0
    height = MAP_WIDTH_IN * stretch * (high[1] - low[1]) / max(high[0] - low[0], 1e-12)  # a line has no width
    return lines, {"xlim": (low[0], high[0]), "ylim": (low[1], high[1]), "aspect": stretch}, min(height, 3.4)


def _map_axes(count: int, height: float, ax: AxLike) -> tuple[Figure, AxesArray]:
    """Return a figure and axes for ``count`` maps of a given height (inches)."""
    fig, axes = panels(count, (MAP_WIDTH_IN, height + 0.5), 3, ax)
    layout = fig.get_layout_engine()
    if isinstance(layout, ConstrainedLayoutEngine):
        layout.set(w_pad=0.06, h_pad=0.1)  # needed because of the fixed aspect ratio
    return fig, axes


def _visit_class_style(kind: Style) -> Style:
    """Return the colour and line width (points) of a class of edges."""
    return {"color": kind["colour"], "linewidth": 0.6 * kind["weight"]}
