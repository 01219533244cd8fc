"""Static maps of road networks, the counterparts of the interactive maps in `emsopt.maps`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.layout_engine import ConstrainedLayoutEngine

from ..errors import InputError
from ..maps import _colours
from ..maps._page import ROADS
from ..maps.roads import CLASSES, gather_visits
from ._style import AxLike, Style, bare, look, marker, note, panels, styled

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from matplotlib.figure import Figure

    from .._types import FloatArray
    from ..roads import RoadNetwork
    from ._style import AxesArray

WIDTH = 4.7  # inches of a map
DISC: Style = {"boxstyle": "circle,pad=0.25", "facecolor": "#111", "edgecolor": "white"}
WHITE: Style = {"color": "white", "fontsize": 9, "fontweight": "bold", "zorder": 9}
BEST: Style = {"color": _colours.LINES, "linewidth": 6, "alpha": 0.4}


@styled()
def exploration(
    net: RoadNetwork,
    visits: Any,
    ax: AxLike = None,
    *,
    route: tuple[int | str, int | str] | None = None,
    best: Iterable[int | str] | None = None,
) -> tuple[Figure, AxesArray]:
    """Draw one static map per agent, with edges shaded by how often they were driven.

    Shades count the rounds in which an edge was driven. Static counterpart of `emsopt.maps.exploration_map`; "Bayesian
    Analysis of Combinatorial Gaussian Process Bandits", Figures 6 to 9.

    Parameters
    ----------
    net : RoadNetwork
        Needs polylines.
    visits : NavigationRun, DataFrame, or dict of str to either
        As for `emsopt.maps.exploration_map`.
    ax : sequence of matplotlib Axes or empty Figure, optional
        One Axes for each agent.
    route : (int or str, int or str), optional
        First and last edge, marked A and B.
    best : array_like, optional
        Edges of the path without regret, by index or id, such as `NavigationRun.best_path`.

    Returns
    -------
    fig, axes
        ``axes`` is an array, shape (number of agents,).

    Examples
    --------
    >>> import emsopt as eo
    >>> from matplotlib.figure import Figure
    >>> net = eo.roads.grid_roads(4, 4, jitter=0.2, rng=0)
    >>> run = eo.bandits.run(net, "r0c0-r0c1", "r3c2-r3c3", "gp-ts", horizon=10, rng=0)
    >>> fig, axes = eo.plots.exploration(net, {"gp-ts": run}, ax=Figure())
    >>> axes.size
    1
    """
    named = gather_visits(net, visits)
    lines, limits, height = _extent(net)
    fig, axes = _maps(ax, len(named), height)
    ends = () if route is None else net.edges(list(route), "route")
    path = [] if best is None else [lines[edge] for edge in net.edges(best, "best")]
    for panel, (name, frame) in zip(axes, named.items(), strict=True):
        panel.add_collection(LineCollection(lines, colors=ROADS, linewidths=0.5))
        if path:
            panel.add_collection(LineCollection(path, **BEST))
        bounds = [kind["from"] for kind in CLASSES]
        which = np.searchsorted(bounds, frame["visits"], side="right") - 1
        for k, kind in enumerate(CLASSES):  # the most frequent on top
            driven = [lines[edge] for edge in frame["edge"].to_numpy()[which == k]]
            panel.add_collection(LineCollection(driven, zorder=3 + k, **_line(kind)))
        for text, edge, at in zip("AB", ends, (0, -1), strict=False):
            note(panel, text, lines[edge][at], bbox=DISC, **WHITE)
        bare(panel)
        panel.set(**limits)
        panel.set_title(f"{name}: {len(frame)} edges")
    handles = [marker(kind["text"], **_line(kind)) for kind in CLASSES]
    handles += [marker("best path, without regret", **BEST)] if path else []
    fig.legend(handles=handles, title="Rounds in which an edge was driven", loc="outside lower left", ncols=6)
    return fig, axes


@styled()
def routes(
    maps: Sequence[tuple[RoadNetwork, Mapping[str, Iterable[int | str]]]], ax: AxLike = None
) -> tuple[Figure, AxesArray]:
    """Draw road networks, one map each, with paths through them.

    "Bayesian Analysis of Combinatorial Gaussian Process Bandits", Figure 1.

    Parameters
    ----------
    maps : sequence of (RoadNetwork, dict of str to array_like)
        Each network, which needs polylines, with its paths: edges in driving order, by index or id. Each path is
        labelled by its name at both ends.
    ax : sequence of matplotlib Axes or empty Figure, optional
        One Axes for each network.

    Returns
    -------
    fig, axes
        ``axes`` is an array, shape (number of networks,).

    Examples
    --------
    >>> import emsopt as eo
    >>> from matplotlib.figure import Figure
    >>> net = eo.datasets.load_roads("monaco")
    >>> path = net.shortest_path(net.lengths, *eo.datasets.ROUTES["monaco"]["A"])
    >>> fig, axes = eo.plots.routes([(net, {"shortest": path})], ax=Figure())
    >>> axes.size
    1
    """
    extents = [_extent(net) for net, _ in maps]
    fig, axes = _maps(ax, len(extents), max((height for *_, height in extents), default=1.0))
    for panel, (net, paths), (lines, frame, _) in zip(axes, maps, extents, strict=True):
        panel.add_collection(LineCollection(lines, colors=ROADS, linewidths=0.5))
        for k, (name, path) in enumerate(paths.items()):
            driven = [lines[edge] for edge in net.edges(path, "path")]
            panel.add_collection(LineCollection(driven, linewidths=3, zorder=3 + k, color=look(k)["color"], label=name))
            for line, at in ((driven[0], 0), (driven[-1], -1)):
                note(panel, name, line[at], bbox={**DISC, "facecolor": look(k)["color"]}, **WHITE)
        bare(panel)
        panel.set(**frame)
        panel.set_title(f"{net.name}: {net.n_edges} edges")
    return fig, axes


def _extent(net: RoadNetwork) -> tuple[list[FloatArray], Style, float]:
    """Return the lines of a network, the limits and aspect of its map, and the height of the map in inches."""
    if net.polylines is None:
        raise InputError(f"{net.name!r} has no polylines and cannot be drawn. Pass `polylines=` to RoadNetwork.")
    lines = [np.asarray(line) for line in net.polylines]
    corners = np.concatenate(lines)
    low, high = corners.min(axis=0), corners.max(axis=0)
    stretch = _colours.stretch(low, high) if net.geographic else 1.0
    height = WIDTH * stretch * (high[1] - low[1]) / max(high[0] - low[0], 1e-12)
    return lines, {"xlim": (low[0], high[0]), "ylim": (low[1], high[1]), "aspect": stretch}, min(height, 3.4)


def _maps(ax: AxLike, count: int, height: float) -> tuple[Figure, AxesArray]:
    """Return a figure and axes for maps of the given height in inches."""
    fig, axes = panels(ax, count, (WIDTH, height + 0.5), across=3)
    layout = fig.get_layout_engine()
    if isinstance(layout, ConstrainedLayoutEngine):
        layout.set(w_pad=0.06, h_pad=0.1)  # needed because of the fixed aspect ratio
    return fig, axes


def _line(kind: Style) -> Style:
    """Return colour and width of a class of edges."""
    return {"color": kind["colour"], "linewidth": 0.6 * kind["weight"]}
