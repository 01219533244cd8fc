"""Static maps of road networks, the counterpart of `emsopt.maps`."""

import numpy as np

from .. import _validate
from ..maps import _shading
from ..maps.roads import ROADS, classes, gather_visits
from ._style import panels, styled

WIDTH = 5.6  # inches of a map


@styled
def exploration(net, visits, ax=None, *, route=None, best=None, rounds=None):
    """Draw one static map per agent, with edges shaded by how often they were driven.

    Counterpart of `emsopt.maps.exploration_map`; "Bayesian Analysis of Combinatorial Gaussian Process
    Bandits", Figures 6 to 9.

    Parameters
    ----------
    net : RoadNetwork
        With polylines.
    visits : NavigationRun, DataFrame, or dict of str to either
        As for `emsopt.maps.exploration_map`.
    ax : sequence of matplotlib Axes or empty Figure, optional
        One Axes for each agent.
    route : (int or str, int or str), optional
        First and last edge, marked A and B.
    best : array_like, optional
        Edges of the best path.
    rounds : int, optional
        Draw only edges known by this round.

    Returns
    -------
    fig, axes
        ``axes`` is an array, shape (number of agents,).
    """
    named = gather_visits(net, visits)
    rounds = np.inf if rounds is None else _validate.whole_number(rounds, "rounds")
    lines = [np.asarray(line) for line in net.polylines]
    corners = np.concatenate(lines)
    low, high = corners.min(axis=0), corners.max(axis=0)
    stretch = 1 / np.cos(np.radians((low[1] + high[1]) / 2)) if net.geographic else 1.0
    height = WIDTH * stretch * (high[1] - low[1]) / max(high[0] - low[0], 1e-12)
    fig, axes = panels(ax, len(named), (WIDTH, min(height, 8.0) + 0.5), across=3)
    if fig.get_layout_engine() is not None:
        fig.get_layout_engine().set(w_pad=0.06, h_pad=0.1)  # needed because of the fixed aspect ratio
    ends = () if route is None else net.edges(list(route), "route")
    best = () if best is None else net.edges(best, "best")
    for panel, (name, frame) in zip(axes, named.items(), strict=True):
        known = frame[frame["first_round"] <= rounds]
        _roads(panel, lines, best)
        _visits(panel, lines, known)
        for text, edge, at in zip("AB", ends, (0, -1), strict=False):
            panel.text(
                *lines[edge][at], text, color="white", fontsize=9, fontweight="bold", ha="center", va="center", zorder=9,
                bbox={"boxstyle": "circle,pad=0.25", "facecolor": "#111", "edgecolor": "white"},
            )  # fmt: skip
        panel.set(xticks=[], yticks=[], xlim=(low[0], high[0]), ylim=(low[1], high[1]), aspect=stretch)
        panel.set_title(f"{name}: {len(known)} edges")
        panel.grid(visible=False)
        panel.spines[:].set_visible(False)
    _legend(fig, len(best) > 0)
    return fig, axes


def _roads(panel, lines, best):
    """Draw all roads as thin lines and the best path as a broad band."""
    from matplotlib.collections import LineCollection

    panel.add_collection(LineCollection(lines, colors=ROADS, linewidths=0.5))
    if len(best):
        band = [lines[edge] for edge in best]
        panel.add_collection(LineCollection(band, colors=_shading.LINES, linewidths=6, alpha=0.4))


def _visits(panel, lines, frame):
    """Draw the edges driven, with the most frequent on top."""
    from matplotlib.collections import LineCollection

    bounds = [look["from"] for look in classes()]
    which = np.searchsorted(bounds, frame["visits"], side="right") - 1
    for k, look in enumerate(classes()):
        driven = [lines[edge] for edge in frame["edge"].to_numpy()[which == k]]
        panel.add_collection(
            LineCollection(driven, colors=look["colour"], linewidths=0.6 * look["weight"], zorder=3 + k)
        )


def _legend(fig, with_best):
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], color=look["colour"], linewidth=0.6 * look["weight"], label=look["text"]) for look in classes()
    ]
    if with_best:
        handles.append(Line2D([], [], color=_shading.LINES, linewidth=6, alpha=0.4, label="best path, without regret"))
    fig.legend(handles=handles, title="Rounds in which an edge was driven", loc="outside lower left", ncols=6)
