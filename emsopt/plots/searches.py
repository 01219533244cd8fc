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
    look,
    plain_ticks,
    shared_legend,
    styled,
    words,
)
from ._style import panels as grid

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from .._types import ArrayLike
    from ._style import AxesArray, AxLike

MODEL, ACQUISITION = _colours.CATEGORIES[:2]


@styled()
def search_steps(
    steps: Sequence[pd.DataFrame],
    points: ArrayLike,
    ax: AxLike = None,
    *,
    truth: ArrayLike | None = None,
) -> tuple[Figure, AxesArray]:
    """Draw steps of a search in one variable: the model on the left, the acquisition function on the right.

    Figure 6 of "Optimizing Server Locations in Spatial Queues".

    Parameters
    ----------
    steps : sequence of DataFrame
        One row of the figure per step. The index is x. The columns are "mean" and "deviation", posterior mean and
        standard deviation of the function, and "acquisition", whose maximum is evaluated next.
    points : array_like, shape (t, 2)
        All evaluated points and their values, in order. The last ``len(steps)`` are those that the steps chose: a step
        is drawn with the points before its own.
    truth : array_like, shape of the index, optional
        Values of the function itself.

    Examples
    --------
    >>> import emsopt as eo
    >>> import pandas as pd
    >>> columns = {"mean": [1.0, 0.5, 1.0], "deviation": 0.2, "acquisition": [0.1, 0.3, 0.1]}
    >>> model = pd.DataFrame(columns, index=[0.0, 0.5, 1.0])
    >>> fig, axes = eo.plots.search_steps([model], [(0.0, 1.0), (0.5, 0.5)])
    >>> axes.size
    2
    """
    found = _validate.real_array(points, "points", (None, 2))
    for frame in steps:
        _validate.columns(frame, ["mean", "deviation", "acquisition"], "steps")
    first = _validate.whole_number(len(found) - len(steps), "number of points before the first step")
    fig, axes = grid(2 * len(steps), (5.6, 2.2), 2, ax, sharex=True)
    for k, (frame, left, right) in enumerate(zip(steps, axes[::2], axes[1::2], strict=True)):
        x, mean, spread = frame.index, frame["mean"], 2 * frame["deviation"]
        left.fill_between(x, mean - spread, mean + spread, color=MODEL, alpha=0.15, label="± 2 standard deviations")
        if truth is not None:
            left.plot(x, truth, color="#777", linestyle="--", linewidth=1.6, label="true")
        left.plot(x, mean, color=MODEL, label="posterior mean")
        left.plot(*found[: first + k].T, "x", color="#222", markersize=9, markeredgewidth=2.2, label="observed")
        right.fill_between(x, frame["acquisition"], color=ACQUISITION, alpha=0.35)
        right.plot(x, frame["acquisition"], color=ACQUISITION)
        for axis in (left, right):
            axis.axvline(found[first + k, 0], color=_colours.LINES, linewidth=1.8, linestyle="--", label="next")
        left.set_ylabel(f"step {k + 1}")
    axes[0].set_title("Model")
    axes[1].set_title("Acquisition function")
    for axis in axes[-2:]:
        axis.set_xlabel("x")
    shared_legend(fig, axes, 5)
    return fig, axes


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
        Bounds at the same steps, each of shape (T,), drawn in grey. They must bound the quantity drawn:
        `emsopt.optimizers.regret.sparbl_bound` bounds the expected cumulative regret after T evaluations, and
        `gp_pm_bound` the average over the first V restarts of the regret of each region's optimum.
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
    log = any(line.max() > 10 * highest > 0 for line in limits.values())
    fig, ax = figure(ax=ax)
    places = categories(bands)
    for name, (mean, *band) in bands.items():
        runs = len(curves[name])
        title = f"{name} (mean of {runs} runs, 95 %)" if runs > 1 else name
        steps = np.arange(1, len(mean) + 1)
        draw_line(ax, steps, mean, places[name], band if runs > 1 else None, log=log, label=title)
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
    room = 0.35 * (np.ptp(values) or 1.0)
    ceiling, floor = values.max() + room, values.min() - room
    spread = np.minimum(profile["bonus"], 10 * room)
    top.fill_between(x, mean - spread, mean + spread, color=blue, alpha=0.15, label="± bonus")
    if truth is not None:
        top.plot(x, truth, color="#777", linestyle="--", linewidth=1.6, label="true")
    top.plot(x, mean, color=blue, label="regression m")
    top.plot(*points.T, "o", color="#222", markersize=6, label="observed")
    top.plot(*points[-1], "o", markersize=12, markerfacecolor="none", markeredgecolor="#222")
    top.set(ylim=(floor, ceiling), ylabel="value", title=title)
    shown = np.minimum(profile["bound"], ceiling + 2 * room)
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
FLOOR = 1e-12  # regrets of zero are drawn here, as a logarithmic axis has no zero


@styled()
def study_curves(
    frame: pd.DataFrame,
    ax: AxLike = None,
    *,
    panels: str = "problem",
    lines: str = "method",
    x: str = "evaluation",
    y: str = "median",
    band: tuple[str, str] | None = ("q25", "q75"),
    log_x: bool = False,
    columns: int = 3,
    xlabel: str | None = None,
    ylabel: str = "Simple regret",
    vertical: Mapping[Any, float] | None = None,
    lowest: float = FLOOR,
) -> tuple[Figure, AxesArray]:
    """Draw lines of a table in small panels.

    Parameters
    ----------
    frame : DataFrame
        Data of the curves; each curve joins its rows in the order of the table.
    panels, lines, x, y : str
        Column names: one panel per value of the first, one line per value of the second, in order of
        appearance; ``x`` and ``y`` hold the coordinates of the lines.
    band : (str, str) or None
        Columns with the lower and the upper curve of the shaded band; by default the quartiles.
    log_x : bool
        Whether the horizontal axis is logarithmic. The vertical axis always is.
    columns : int
        Panels per row.
    vertical : dict of panel to float, optional
        Positions to mark on the horizontal axis, such as the end of the initial design.
    lowest : float
        Smaller values are drawn at this height.

    Examples
    --------
    >>> import emsopt as eo
    >>> from matplotlib.figure import Figure
    >>> fig, axes = eo.plots.study_curves(eo.datasets.load_study("boke_noise_free_curves"), ax=Figure())
    >>> axes.size
    6
    """
    columns = _validate.whole_number(columns, "columns")
    _validate.columns(frame, [panels, lines, x, y, *(band or ())])
    parts, places = list(frame.groupby(panels, sort=False)), categories(map(str, frame[lines]))
    fig, axes = grid(len(parts), WIDE if columns == 2 < len(parts) else SIZE, columns, ax)
    for axis, (title, part) in zip(axes, parts, strict=True):
        for name, rows in part.groupby(lines, sort=False):
            line, *edges = np.maximum(rows[[y, *(band or ())]].to_numpy(dtype=float).T, lowest)
            dots: Style = {"marker": "o", "markersize": 5} if len(rows) <= 12 else {}
            draw_line(axis, rows[x], line, places[str(name)], edges or None, alpha=0.12, label=words(name), **dots)
        if vertical is not None and title in vertical:
            axis.axvline(vertical[title], color="#777", linewidth=1.2, linestyle="--")
        axis.set_yscale("log")
        plain_ticks(axis.yaxis, np.maximum(part[y].to_numpy(), lowest))
        if log_x:
            axis.set_xscale("log")
            plain_ticks(axis.xaxis, part[x].to_numpy())
        axis.set(title=words(title), xlabel=xlabel or (x if len(x) == 1 else words(x).capitalize()))
        axis.margins(x=0.02)
    for axis in axes[::columns]:
        axis.set_ylabel(ylabel)
    shared_legend(fig, axes, 2 * columns + 1)
    return fig, axes


@styled()
def line_panels(
    frames: Mapping[str, pd.DataFrame],
    ax: AxLike = None,
    *,
    points: ArrayLike | None = None,
    ylabel: str = "",
) -> tuple[Figure, AxesArray]:
    """Draw functions of one variable side by side, with the points they were learned from.

    Parameters
    ----------
    frames : dict of str to DataFrame
        One panel per frame: the index is the variable, named "x" by default, and each column a line, of the same colour
        in every panel; "true" is dashed in grey.
    points : array_like, shape (t, 2), optional
        Positions and heights of points to draw in every panel. If all heights are NaN, ticks mark the positions.
    ylabel : str

    Examples
    --------
    >>> import emsopt as eo
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"x": [0.0, 0.5, 1.0], "regression": [1.0, 0.2, 0.8]})
    >>> fig, axes = eo.plots.line_panels({"three points": frame})
    >>> axes.size
    1
    """
    fig, axes = grid(len(frames), SIZE, 3, ax, sharey=True)
    names = [str(name) for frame in frames.values() for name in frame.columns.drop("true", errors="ignore")]
    places = categories(names)
    x, heights = np.reshape([] if points is None else np.asarray(points, dtype=float), (-1, 2)).T
    for axis, (title, frame) in zip(axes, frames.items(), strict=True):
        for name in frame.columns.drop("true", errors="ignore"):
            axis.plot(frame.index, frame[name], label=words(name), **look(places[str(name)]))
        if "true" in frame:
            axis.plot(frame.index, frame["true"], label="true", color="#777", linestyle="--", linewidth=1.6)
        if np.isfinite(heights).any():
            axis.plot(x, heights, "o", color="#222", markersize=6, label="points")
        elif len(x):
            ticks: Style = {"color": "#222", "markersize": 10, "label": "points"}
            axis.plot(x, np.full(len(x), 0.02), "|", transform=axis.get_xaxis_transform(), **ticks)
        axis.set(title=title, xlabel=frame.index.name or "x")
    axes[0].set_ylabel(ylabel)
    shared_legend(fig, axes, 4)
    return fig, axes
