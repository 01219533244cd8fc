"""Static maps of road networks, the counterparts of the interactive maps in `emsopt.maps`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.layout_engine import ConstrainedLayoutEngine

from .. import _validate
from ..maps import _colours
from ..maps._page import ROADS
from ..maps.roads import CLASSES, gather_visits
from ._style import AxLike, Style, bare, marker, note, panels, styled

if TYPE_CHECKING:
    from collections.abc import Iterable

    from matplotlib.figure import Figure

    from ..roads import RoadNetwork
    from ._style import AxesArray

WIDTH = 5.6  # inches of a map
BEST: Style = {"color": _colours.LINES, "linewidth": 6, "alpha": 0.4}


@styled()
def exploration(
    net: RoadNetwork,
    visits: Any,
    ax: AxLike = None,
    *,
    route: tuple[int | str, int | str] | None = None,
    best: Iterable[int | str] | None = None,
    rounds: int | None = None,
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
    rounds : int, optional
        Draw only edges driven for the first time up to this round; their shades still count all rounds. Default: all
        driven edges.

    Returns
    -------
    fig, axes
        ``axes`` is an array, shape (number of agents,).
    """
    named = gather_visits(net, visits)
    last = np.inf if rounds is None else _validate.whole_number(rounds, "rounds")
    lines = [np.asarray(line) for line in net.polylines or ()]
    corners = np.concatenate(lines)
    low, high = corners.min(axis=0), corners.max(axis=0)
    stretch = _colours.stretch(low, high) if net.geographic else 1.0
    height = WIDTH * stretch * (high[1] - low[1]) / max(high[0] - low[0], 1e-12)
    fig, axes = panels(ax, len(named), (WIDTH, min(height, 8.0) + 0.5), across=3)
    layout = fig.get_layout_engine()
    if isinstance(layout, ConstrainedLayoutEngine):
        layout.set(w_pad=0.06, h_pad=0.1)  # needed because of the fixed aspect ratio
    ends = () if route is None else net.edges(list(route), "route")
    path = [] if best is None else [lines[edge] for edge in net.edges(best, "best")]
    disc = {"boxstyle": "circle,pad=0.25", "facecolor": "#111", "edgecolor": "white"}
    white: Style = {"color": "white", "fontsize": 9, "fontweight": "bold", "zorder": 9}
    for panel, (name, frame) in zip(axes, named.items(), strict=True):
        known = frame[frame["first_round"] <= last]
        panel.add_collection(LineCollection(lines, colors=ROADS, linewidths=0.5))
        if path:
            panel.add_collection(LineCollection(path, **BEST))
        bounds = [look["from"] for look in CLASSES]
        which = np.searchsorted(bounds, known["visits"], side="right") - 1
        for k, look in enumerate(CLASSES):  # the most frequent on top
            driven = [lines[edge] for edge in known["edge"].to_numpy()[which == k]]
            panel.add_collection(LineCollection(driven, zorder=3 + k, **_line(look)))
        for text, edge, at in zip("AB", ends, (0, -1), strict=False):
            note(panel, text, lines[edge][at], bbox=disc, **white)
        bare(panel)
        panel.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), aspect=stretch)
        panel.set_title(f"{name}: {len(known)} edges")
    handles = [marker(look["text"], **_line(look)) for look in CLASSES]
    handles += [marker("best path, without regret", **BEST)] if path else []
    fig.legend(handles=handles, title="Rounds in which an edge was driven", loc="outside lower left", ncols=6)
    return fig, axes


def _line(look: Style) -> Style:
    """Return colour and width of a class of edges."""
    return {"color": look["colour"], "linewidth": 0.6 * look["weight"]}
