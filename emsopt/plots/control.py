"""Choice of control variables: an example in two variables, the plays of a run, and methods against cost."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.colors import LinearSegmentedColormap

from .. import _validate
from ..errors import InputError
from ..maps import _colours
from ..optimizers import LEARNERS
from ._style import AxLike, Style, draw_line, figure, panels, plain_ticks, shared_legend, styled, words

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ..optimizers.control.search import ControlRun
    from ..problems import ControlProblem
    from ._style import AxesArray

FLOOR = 1e-4  # simple regrets of zero are drawn here, as a logarithmic axis has no zero
COLUMNS = ("simple_regret", "quality_regret", "cost_regret", "weighted_regret", "plays", "on_target")
DRAWN = 128  # number of plays drawn for each set
ALPHA = 0.1


@styled()
def control_sets(problem: ControlProblem, ax: AxLike = None) -> tuple[Figure, AxesArray]:
    """Draw a problem of two variables: its function, the best plays of each set, and their expected values.

    The shaded band holds the acceptable expected values: those at least 0.9 times the best, both measured from the
    problem's ``worst`` value.

    Parameters
    ----------
    problem : emsopt.problems.ControlProblem
        A problem with two variables.

    Returns
    -------
    fig, axes
        Two axes. Left: contours of the function, and for each set the plays with its controlled variables at their
        best values and the others drawn at random. Right: expected value of each set of one variable, as a function of
        this variable; a dashed line marks the best expected value of a set of both variables.

    Examples
    --------
    >>> import emsopt as eo
    >>> fig, axes = eo.plots.control_sets(eo.problems.hill_control())
    >>> len(axes)
    2
    """
    if problem.dimension != 2:
        raise InputError(f"`problem` must have exactly two variables to be drawn; got {problem.dimension}.")
    problem = problem.solved()
    fig, axes = panels(2, (6, 5), ax=ax)
    left, right = axes

    axis = np.linspace(0, 1, 81)
    grid = np.stack(np.meshgrid(axis, axis), axis=-1)
    values = np.reshape(problem.objective.exact(grid.reshape(-1, 2)), grid.shape[:2])
    colours = LinearSegmentedColormap.from_list("pale to dark", _colours.SEQUENTIAL)
    left.figure.colorbar(left.contourf(axis, axis, values, 12, cmap=colours), ax=left, label="f", shrink=0.9)
    rim: Style = {"linestyle": "", "markeredgecolor": "white", "markeredgewidth": 0.5}
    for i, (name, controlled) in enumerate(zip(problem.set_names, problem.control_sets, strict=True)):
        points = problem.nodes(DRAWN)
        points[:, list(controlled)] = problem.set_points[i]
        size = 11 if len(controlled) == 2 else 5
        left.plot(*points.T, markersize=size, label=f"control {name}", **rim, **_symbol(i))
    left.set(xlim=(0, 1), ylim=(0, 1), aspect="equal", title="Where plays fall")
    left.set(xlabel=problem.objective.variables[0], ylabel=problem.objective.variables[1])
    left.grid(visible=False)
    left.legend(loc="upper left", frameon=True, framealpha=0.9, fontsize=10)

    x = np.linspace(0, 1, 101)
    top = problem.set_values.max()
    least = problem.worst + (1 - ALPHA) * (top - problem.worst)
    right.axhspan(least, top, color="#dddddd", zorder=0, label=f"acceptable (α = {ALPHA:g})")
    for i, name in enumerate(problem.set_names):
        style: Style = {"color": _symbol(i)["color"], "label": f"control {name}, cost {problem.costs[i]:g}"}
        if len(problem.control_sets[i]) == 1:
            right.plot(x, problem.expected(i, x[:, None], 1024), **style)
            right.plot(problem.set_points[i], problem.set_values[i], linestyle="", markersize=9, **_symbol(i))
        else:
            right.axhline(problem.set_values[i], linestyle="--", **style)
    right.set(xlim=(0, 1), xlabel="Value of the controlled variable", title="What to expect")
    right.set_ylabel("Expected value E[f]")
    right.legend(loc="upper left", bbox_to_anchor=(0.01, 0.88), frameon=True, framealpha=0.9, fontsize=10)
    return fig, axes


def _symbol(i: int) -> Style:
    """Return the marker and colour of control set i."""
    return {"marker": "os^D"[i % 4], "color": _colours.CATEGORIES[(4, 1, 6)[i % 3]]}


@styled()
def control_run(
    run: ControlRun, problem: ControlProblem, ax: AxLike = None, *, alpha: float = 0.1
) -> tuple[Figure, Axes]:
    """Draw which set each play of a run used, against the total cost spent up to this play.

    Parameters
    ----------
    run : emsopt.optimizers.control.search.ControlRun
    problem : emsopt.problems.ControlProblem
        The problem of the run.
    alpha : float
        Tolerance that defines the acceptable sets (`ControlProblem.acceptable`), drawn filled. The cheapest of them is
        the target, in green with a bold name.

    Examples
    --------
    >>> import emsopt as eo
    >>> from matplotlib.figure import Figure
    >>> problem = eo.problems.hill_control()
    >>> run = eo.optimizers.bocvs(problem, budget=5, rng=0)
    >>> fig, ax = eo.plots.control_run(run, problem, ax=Figure())
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['x2 (0.1)', 'x1 (0.3)', 'all (1)']
    """
    history = run.history
    count, last = len(problem.costs), history["set"].max()
    if last >= count:
        raise InputError(
            f"`problem` must be the problem of the run; it has the sets 0 to {count - 1}, but the run played set "
            f"{last}."
        )
    problem = problem.solved()
    good, target = problem.acceptable(alpha), problem.target(alpha)
    fig, ax = figure((9, 1.2 + 0.42 * count), ax)
    explored = history.loc[history["phase"].str.startswith("explore"), "spent"]
    for i, spent in history.groupby("set")["spent"]:
        colour = _colours.CATEGORIES[2 if i == target else 0]
        face = colour if i in good else "white"
        ax.plot(spent, np.full(len(spent), i), "o", color=colour, markerfacecolor=face, markersize=6)
    names = [f"{name} ({cost:g})" for name, cost in zip(problem.set_names, problem.costs, strict=True)]
    ax.set_yticks(range(count), names)
    ax.get_yticklabels()[target].set(weight="bold", color=_colours.CATEGORIES[2])
    ax.set(xlabel="Cost spent", ylim=(-0.6, count - 0.4), xlim=(0, 1.02 * run.spent))
    ax.set_title(f"{run.method}: {run.plays} plays (bold: the target)", fontsize=12)
    if len(explored):
        ax.axvspan(0, explored.max(), color="#eeeeee", zorder=0, label="exploration")
        ax.legend(loc="lower right", frameon=True, framealpha=0.9)
    return fig, ax


@styled()
def control_study(table: pd.DataFrame, column: str = "simple_regret", ax: AxLike = None) -> tuple[Figure, AxesArray]:
    """Draw the regret or the plays of methods against the cost spent, one panel per problem.

    Lines are means over the seeds, with bands of one standard error on either side. Figures 1 and 2 of "Bayesian
    Optimization for Unknown Cost-Varying Variable Subsets with No-Regret Costs".

    Parameters
    ----------
    table : DataFrame
        The study "bocvs" from `emsopt.datasets.load_study`, or some of its rows.
    column : str
        "simple_regret" (on a logarithmic axis; values below 1e-4 are drawn at 1e-4), "cost_regret", "quality_regret" or
        "weighted_regret", as defined in `emsopt.optimizers.control.regret`; "plays", the number of plays; or
        "on_target", how many of them used the target, which is the cheapest acceptable set.

    Examples
    --------
    >>> import emsopt as eo
    >>> study = eo.datasets.load_study("bocvs").query("objective == 'plant'")
    >>> fig, axes = eo.plots.control_study(study)
    >>> axes.size
    4
    """
    _validate.choice(column, "column", COLUMNS)
    _validate.columns(table, ["objective", "costs", "variance", "method", "seed", "cost", column], "table")
    objectives = list(dict.fromkeys(table["objective"]))
    settings = list(dict.fromkeys(zip(table["costs"], table["variance"], strict=True)))
    down, across, log = len(objectives), len(settings), column == "simple_regret"
    fig, axes = panels(down * across, (3.4 + 0.6 / across, 1.5 + 0.7 / down), across, sharex=True, ax=ax)
    axes = axes.reshape(down, across)
    for (row, k), panel in np.ndenumerate(axes):
        objective, (costs, variance) = objectives[row], settings[k]
        part = table.query("objective == @objective and costs == @costs and variance == @variance")
        for m, method in enumerate(LEARNERS):
            lines = part[part["method"] == method].groupby("cost")[column].agg(["mean", "sem"])
            if len(lines):
                mean, error = lines.fillna({"sem": 0}).to_numpy().T
                mean, low, high = np.maximum([mean, mean - error, mean + error], FLOOR if log else -np.inf)
                draw_line(panel, lines.index, mean, m, (low, high), label=method, linewidth=1.8 if m else 2.6)
        if not panel.lines:
            panel.set_axis_off()
        elif log:
            panel.set_yscale("log")
            plain_ticks(panel.yaxis, np.array(panel.get_ylim()))  # the bands reach further than the lines
        axes[row, 0].set_ylabel(objective)
        axes[0, k].set_title(f"{costs} costs, variance {variance:g}", fontsize=11)
        axes[-1, k].set_xlabel("Cost spent", fontsize=11)
    shared_legend(fig, axes.ravel(), len(LEARNERS), title=words(column).capitalize())
    return fig, axes


@styled()
def control_bounds(table: pd.DataFrame, ax: AxLike = None) -> tuple[Figure, AxesArray]:
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
    >>> fig, axes = eo.plots.control_bounds(eo.datasets.load_study("bocvs_bounds"))
    >>> len(axes)
    2
    """
    fig, axes = panels(2, (6, 4.5), ax=ax)
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
        panel.set(xscale="log", yscale="log", xlabel="Plays T", title=f"{words(name).capitalize()}, α = {alpha:g}")
    axes[0].set_ylabel("Regret per play")
    for panel in axes:
        panel.legend(fontsize=10)
    return fig, axes
