"""Figures of the stored studies: lines of a table in small panels, and methods by the cost that they spent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from emsopt.optimizers import LEARNERS
from emsopt.plots._style import Style, line_numbers, draw_line, line_style, merge_legends, common_style, readable_name
from emsopt.plots._style import panels as grid

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

    from emsopt.errors._types import ArrayLike, FloatArray
    from emsopt.plots._style import AxesArray

SIZE, WIDE = (4.4, 3.4), (6.2, 3.4)  # inches per panel; wide panels stand in rows of two to stay legible
FLOOR = 1e-12  # regrets of zero are drawn here, as a logarithmic axis has no zero


@common_style()
def study_curves(
    frame: pd.DataFrame,
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
    >>> fig, axes = study_curves(eo.datasets.load_study("boke_noise_free_curves"))
    >>> axes.size
    6
    """
    parts, places = list(frame.groupby(panels, sort=False)), line_numbers(map(str, frame[lines]))
    fig, axes = grid(len(parts), WIDE if columns == 2 < len(parts) else SIZE, columns)
    for axis, (title, part) in zip(axes, parts, strict=True):
        for name, rows in part.groupby(lines, sort=False):
            line, *edges = np.maximum(rows[[y, *(band or ())]].to_numpy(dtype=float).T, lowest)
            dots: Style = {"marker": "o", "markersize": 5} if len(rows) <= 12 else {}
            draw_line(
                axis, rows[x], line, places[str(name)], edges or None, alpha=0.12, label=readable_name(name), **dots
            )
        if vertical is not None and title in vertical:
            axis.axvline(vertical[title], color="#777", linewidth=1.2, linestyle="--")
        axis.set_yscale("log")
        plain_ticks(axis.yaxis, np.maximum(part[y].to_numpy(), lowest))
        if log_x:
            axis.set_xscale("log")
            plain_ticks(axis.xaxis, part[x].to_numpy())
        axis.set(title=readable_name(title), xlabel=xlabel or (x if len(x) == 1 else readable_name(x).capitalize()))
        axis.margins(x=0.02)
    for axis in axes[::columns]:
        axis.set_ylabel(ylabel)
    merge_legends(fig, axes, 2 * columns + 1)
    return fig, axes


@common_style()
def line_panels(
    frames: Mapping[str, pd.DataFrame],
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
    >>> fig, axes = line_panels({"three points": frame})
    >>> axes.size
    1
    """
    fig, axes = grid(len(frames), SIZE, 3, sharey=True)
    names = [str(name) for frame in frames.values() for name in frame.columns.drop("true", errors="ignore")]
    places = line_numbers(names)
    x, heights = np.reshape([] if points is None else np.asarray(points, dtype=float), (-1, 2)).T
    for axis, (title, frame) in zip(axes, frames.items(), strict=True):
        for name in frame.columns.drop("true", errors="ignore"):
            axis.plot(frame.index, frame[name], label=readable_name(name), **line_style(places[str(name)]))
        if "true" in frame:
            axis.plot(frame.index, frame["true"], label="true", color="#777", linestyle="--", linewidth=1.6)
        if np.isfinite(heights).any():
            axis.plot(x, heights, "o", color="#222", markersize=6, label="points")
        elif len(x):
            ticks: Style = {"color": "#222", "markersize": 10, "label": "points"}
            axis.plot(x, np.full(len(x), 0.02), "|", transform=axis.get_xaxis_transform(), **ticks)
        axis.set(title=title, xlabel=frame.index.name or "x")
    axes[0].set_ylabel(ylabel)
    merge_legends(fig, axes, 4)
    return fig, axes


CONTROL_FLOOR = 1e-4  # simple regrets of zero are drawn here, as a logarithmic axis has no zero


@common_style()
def control_study(table: pd.DataFrame, column: str = "simple_regret") -> tuple[Figure, AxesArray]:
    """Draw the regret or the plays of methods against the cost spent, one panel per problem.

    Lines are means over the seeds, with bands of one standard error on either side. Figures 1 and 2 of "Bayesian
    Optimization for Unknown Cost-Varying Variable Subsets with No-Regret Costs".

    Parameters
    ----------
    table : DataFrame
        The study "bocvs" from `emsopt.datasets.load_study`, or some of its rows.
    column : str
        "simple_regret" (on a logarithmic axis; values below 1e-4 are drawn at 1e-4), "cost_regret", "quality_regret" or
        "weighted_regret", as defined in `emsopt.optimizers.control.search`; "plays", the number of plays; or
        "on_target", how many of them used the target, which is the cheapest acceptable set.

    Examples
    --------
    >>> import emsopt as eo
    >>> study = eo.datasets.load_study("bocvs").query("objective == 'plant'")
    >>> fig, axes = control_study(study)
    >>> axes.size
    4
    """
    objectives = list(dict.fromkeys(table["objective"]))
    settings = list(dict.fromkeys(zip(table["costs"], table["variance"], strict=True)))
    down, across, log = len(objectives), len(settings), column == "simple_regret"
    fig, axes = grid(down * across, (3.4 + 0.6 / across, 1.5 + 0.7 / down), across, sharex=True)
    axes = axes.reshape(down, across)
    for (row, k), panel in np.ndenumerate(axes):
        objective, (costs, variance) = objectives[row], settings[k]
        part = table.query("objective == @objective and costs == @costs and variance == @variance")
        for m, method in enumerate(LEARNERS):
            lines = part[part["method"] == method].groupby("cost")[column].agg(["mean", "sem"])
            if len(lines):
                mean, error = lines.fillna({"sem": 0}).to_numpy().T
                mean, low, high = np.maximum([mean, mean - error, mean + error], CONTROL_FLOOR if log else -np.inf)
                draw_line(panel, lines.index, mean, m, (low, high), label=method, linewidth=1.8 if m else 2.6)
        if not panel.lines:
            panel.set_axis_off()
        elif log:
            panel.set_yscale("log")
            plain_ticks(panel.yaxis, np.array(panel.get_ylim()))  # the bands reach further than the lines
        axes[row, 0].set_ylabel(objective)
        axes[0, k].set_title(f"{costs} costs, variance {variance:g}", fontsize=11)
        axes[-1, k].set_xlabel("Cost spent", fontsize=11)
    merge_legends(fig, axes.ravel(), len(LEARNERS), title=readable_name(column).capitalize())
    return fig, axes


@common_style()
def control_bounds(table: pd.DataFrame) -> tuple[Figure, AxesArray]:
    """Draw quality and cost regret per play against the number of plays, with the bounds of Theorems 1 and 3.

    Of "Bayesian Optimization for Unknown Cost-Varying Variable Subsets with No-Regret Costs". A bound above the grey
    line, the regret if every play is the worst, is trivial.

    Parameters
    ----------
    table : DataFrame
        The study "bocvs_bounds" from `emsopt.datasets.load_study`.

    Returns
    -------
    fig, axes
        Two axes, both logarithmic. Left: quality regret for a tolerance of 0, (3) and (5). Right: cost regret for the
        largest tolerance of the table, and (4).

    Examples
    --------
    >>> import emsopt as eo
    >>> fig, axes = control_bounds(eo.datasets.load_study("bocvs_bounds"))
    >>> len(axes)
    2
    """
    fig, axes = grid(2, (6, 4.5))
    parts = {
        "quality_regret": (
            table["alpha"].min(),
            {"bound_3": "bound (3), Theorem 1", "bound_5": "bound (5), Theorem 3"},
        ),
        "cost_regret": (table["alpha"].max(), {"bound_4": "bound (4), Theorems 1 and 3"}),
    }
    for panel, (name, (alpha, bounds)) in zip(axes, parts.items(), strict=True):
        part = table[table["alpha"] == alpha]
        worst = "worst_" + name.removesuffix("_regret")
        groups = part[[name, worst, *bounds]].div(part["plays"], axis=0).groupby(part["plays"])
        each = groups.mean()
        seeds = groups[name].agg(["min", "max"]).to_numpy().T
        draw_line(panel, each.index, each[name], 0, seeds, log=True, label="Algorithm 1", marker="o", markersize=5)
        for k, (column, label) in enumerate(bounds.items()):
            draw_line(panel, each.index, each[column], k + 1, label=label)
        if each[worst].max() > 0:
            panel.plot(each.index, each[worst], color="#777", linewidth=1.2, label="always the worst play")
        panel.set(
            xscale="log", yscale="log", xlabel="Plays T", title=f"{readable_name(name).capitalize()}, α = {alpha:g}"
        )
    axes[0].set_ylabel("Regret per play")
    for panel in axes:
        panel.legend(fontsize=10)
    return fig, axes


def plain_ticks(axis: Axis, values: FloatArray) -> None:
    """Label a logarithmic axis with plain numbers if the ``values`` on it span fewer than two decades."""
    if values.max() < 100 * values.min():  # on more decades, powers of ten are clear enough
        few = values.max() < 10 * values.min()
        axis.set_major_locator(LogLocator(subs=(1, 1.5, 2, 3, 4, 6, 8) if few else (1, 2, 5)))
        axis.set_minor_locator(NullLocator())
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
