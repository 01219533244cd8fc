"""Searches: steps in a single variable, regret with its bounds, and small multiples of studies and of functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _validate
from ..maps import _colours
from ..optimizers.regret import confidence_band
from ._style import (
    Style,
    categories,
    draw_line,
    figure,
    legend_above,
    shared_legend,
    styled,
)
from ._style import panels as grid

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from .._types import ArrayLike
    from ._style import AxesArray, AxLike

MODEL, ACQUISITION = _colours.CATEGORIES[:2]


@styled()
def regret_curves(
    curves: Mapping[str, Any],
    ax: AxLike = None,
    *,
    bounds: Mapping[str, ArrayLike] | None = None,
    label: str = "Cumulative regret (min)",
    against: str = "Evaluations",
) -> tuple[Figure, Axes]:
    """Draw the mean of regret over replications with its 95 % confidence band, and theoretical bounds.

    Both axes are logarithmic if a bound exceeds ten times the largest mean regret.

    Parameters
    ----------
    curves : dict of str to array_like of shape (R, T)
        Regret of R replications after each of T steps, for example from `emsopt.optimizers.regret.empirical_regret`.
    bounds : dict of str to array_like, optional
        Bounds at the same steps, each of shape (T,), drawn in grey. They must bound the quantity drawn.
    label, against : str
        Labels of the vertical axis (the quantity with its unit) and of the horizontal axis.

    Examples
    --------
    >>> import emsopt as eo
    >>> fig, ax = eo.plots.regret_curves({"two runs": [[1.0, 1.5, 1.7], [0.8, 1.0, 1.1]]})
    >>> ax.get_ylabel()
    'Cumulative regret (min)'
    """
    bands = {name: confidence_band(rows) for name, rows in _validate.by_name(curves, "curves").items()}
    limits = {name: _validate.real_array(line, name, (None,)) for name, line in (bounds or {}).items()}
    highest = max(mean.max() for mean, _, _ in bands.values())
    log = any(line.max() > 10 * highest > 0 for line in limits.values())  # a much larger bound would flatten the curves
    fig, ax = figure(ax=ax)
    places = categories(bands)
    for name, (mean, *band) in bands.items():
        runs = len(curves[name])
        title = f"{name} (mean of {runs} runs, 95 %)" if runs > 1 else name
        steps = np.arange(1, len(mean) + 1)
        draw_line(ax, steps, mean, places[name], band if runs > 1 else None, log=log, label=title)  # no band of one run
    for k, (name, line) in enumerate(limits.items()):
        style: Style = {"color": "#777", "linestyle": ("--", ":", "-.")[k % 3], "linewidth": 1.8}
        draw_line(ax, np.arange(1, len(line) + 1), line, k, log=log, label=name, **style)
    if log:
        ax.set(xscale="log", yscale="log")
    ax.set(xlabel=against, ylabel=label)
    ax.margins(x=0)
    legend_above(ax, 2, least=1)
    return fig, ax


HEIGHTS = (2.4, 1, 1.2)


@styled()
def boke_step(
    profile: pd.DataFrame,
    points: ArrayLike,
    ax: AxLike = None,
    *,
    truth: ArrayLike | None = None,
    proposal: float | None = None,
    title: str = "",
) -> tuple[Figure, AxesArray]:
    """Draw the regression with its band, the density, the acquisition function and the next point.

    Parameters
    ----------
    profile : DataFrame
        From `emsopt.optimizers.boxes.boke.profile`. The labels in the figure assume maximisation.
    points : array_like, shape (t, 2)
        Evaluated points and their values; the last one is marked.
    truth : array_like, shape of the index, optional
        Values of the function itself.
    proposal : float, optional
        The point that the method proposes next.
    title : str

    Examples
    --------
    >>> import emsopt as eo
    >>> from emsopt.optimizers.boxes.boke import profile
    >>> from matplotlib.figure import Figure
    >>> f = eo.problems.forrester()
    >>> optimizer = eo.optimizers.BOKE(f, rng=0)
    >>> points = [[0.1, f([0.1])], [0.5, f([0.5])], [0.9, f([0.9])]]
    >>> for x, value in points:
    ...     optimizer.tell([x], value)
    >>> fig, axes = eo.plots.boke_step(profile(optimizer), points, ax=Figure())
    >>> len(axes)
    3
    """
    _validate.columns(profile, ["mean", "bonus", "bound", "density"], "profile")
    x, points = profile.index.to_numpy(dtype=float), np.asarray(points, dtype=float)
    fig, axes = grid(3, (8.4, 1.7), 1, ax, sharex=True, height_ratios=HEIGHTS)
    top, middle, bottom = axes
    blue, orange, green, *_ = _colours.CATEGORIES
    mean = profile["mean"]
    values = np.concatenate([points[:, 1], mean, [] if truth is None else np.asarray(truth)])
    room = 0.35 * (np.ptp(values) or 1.0)  # room of a third above and below the values
    ceiling, floor = values.max() + room, values.min() - room
    spread = np.minimum(profile["bonus"], 10 * room)  # unbounded far from the points, where it would hide them
    top.fill_between(x, mean - spread, mean + spread, color=blue, alpha=0.15, label="± bonus")
    if truth is not None:
        top.plot(x, truth, color="#777", linestyle="--", linewidth=1.6, label="true")
    top.plot(x, mean, color=blue, label="regression m")
    top.plot(*points.T, "o", color="#222", markersize=6, label="observed")
    top.plot(*points[-1], "o", markersize=12, markerfacecolor="none", markeredgecolor="#222")
    top.set(ylim=(floor, ceiling), ylabel="value", title=title)
    shown = np.minimum(profile["bound"], ceiling + 2 * room)  # cut off, for the same reason
    for panel, base, height, colour, alpha in (
        (middle, 0, profile["density"], green, 0.3),
        (bottom, profile["bound"].min(), shown, orange, 0.35),
    ):
        panel.fill_between(x, base, height, color=colour, alpha=alpha, linewidth=0)
        panel.plot(x, height, color=colour)
    middle.set(ylabel="density W", ylim=(0, None))
    bottom.set(ylabel="bound", xlabel="x")
    if proposal is not None:
        for panel in axes:
            panel.axvline(proposal, color=_colours.LINES, linewidth=1.8, linestyle=":", label="next")
    shared_legend(fig, axes, 5)
    return fig, axes


SIZE, WIDE = (4.4, 3.4), (6.2, 3.4)  # inches per panel; wide panels stand in rows of two to stay legible
