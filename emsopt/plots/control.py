"""Choice of control variables: an example in two variables, the plays of a run, and methods against cost."""

import numpy as np

from .. import _validate
from ..errors import InputError
from ..maps import _shading
from ..problems import ControlProblem
from ._style import figure, look, new_figure, panels, plain_ticks, styled

FLOOR = 1e-4  # lower bound for simple regret on a logarithmic axis
LABELS = {
    "simple_regret": "Simple regret",
    "quality_regret": "Quality regret",
    "cost_regret": "Cost regret",
    "plays": "Plays",
    "on_target": "Plays of the target set",
}
METHODS = ("unknown-cost", "ucb-psq", "ts-psq", "ucb-cvs", "etc-50")  # always in the same colours
DRAWN = 128  # plays of each set


@styled
def control_sets(problem, ax=None, *, alpha=0.1):
    """Draw a problem of two variables: its function, the best plays of each set, and their expected values.

    Parameters
    ----------
    problem : emsopt.problems.ControlProblem
        Of two variables.
    ax : matplotlib Axes or empty Figure, optional
        A sequence of two Axes.
    alpha : float
        Tolerance: expected values in the shaded band are acceptable.

    Returns
    -------
    fig, axes
        Two axes. Left: contours of the function, and for each set the plays at its best values, with the
        other variable drawn at random. Right: expected value of the sets of one variable, as a function of
        its value.
    """
    _validate.instance(problem, "problem", ControlProblem, "emsopt.problems.ControlProblem")
    if problem.dimension != 2:
        raise InputError(f"`problem` must have exactly two variables to be drawn; got {problem.dimension}.")
    problem = problem.solved()
    fig, axes = panels(ax, 2, (6, 5))
    _draw_plays(axes[0], problem)
    _draw_expected(axes[1], problem, alpha)
    return fig, axes


def _draw_plays(ax, problem):
    from matplotlib.colors import LinearSegmentedColormap

    axis = np.linspace(0, 1, 81)
    grid = np.stack(np.meshgrid(axis, axis), axis=-1)
    values = problem.objective.exact(grid.reshape(-1, 2)).reshape(grid.shape[:2])
    colours = LinearSegmentedColormap.from_list("pale to dark", _shading.SEQUENTIAL)
    shades = ax.contourf(axis, axis, values, 12, cmap=colours)
    ax.figure.colorbar(shades, ax=ax, label="f", shrink=0.9)
    for i, name in enumerate(problem.set_names):
        points = problem.nodes(DRAWN)
        points[:, list(problem.control_sets[i])] = problem.set_points[i]
        ax.plot(
            *points.T,
            "os^D"[i % 4],
            color=_shading.CATEGORIES[(4, 1, 6)[i % 3]],
            markeredgecolor="white",
            markeredgewidth=0.5,
            markersize=11 if len(problem.control_sets[i]) == 2 else 5,
            label=f"control {name}",
        )
    ax.set(xlim=(0, 1), ylim=(0, 1), aspect="equal", title="Where plays fall")
    ax.set(xlabel=problem.variables[0], ylabel=problem.variables[1])
    ax.grid(visible=False)
    ax.legend(loc="upper left", frameon=True, framealpha=0.9, fontsize=10)


def _draw_expected(ax, problem, alpha):
    x = np.linspace(0, 1, 101)
    top = problem.set_values.max()
    least = problem.worst + (1 - alpha) * (top - problem.worst)
    ax.axhspan(least, top, color="#dddddd", zorder=0, label=f"good enough (α = {alpha:g})")
    for i, name in enumerate(problem.set_names):
        colour = {"color": _shading.CATEGORIES[(4, 1, 6)[i % 3]]}
        title = f"control {name}, cost {problem.costs[i]:g}"
        if len(problem.control_sets[i]) == 1:
            ax.plot(x, problem.expected(i, x[:, None], 1024), label=title, **colour)
            ax.plot(problem.set_points[i], problem.set_values[i], "os^D"[i % 4], markersize=9, **colour)
        else:
            ax.axhline(problem.set_values[i], linestyle="--", label=title, **colour)
    ax.set(xlim=(0, 1), xlabel="Value of the controlled variable", title="What to expect")
    ax.set_ylabel("Expected value E[f]")
    ax.legend(loc="upper left", bbox_to_anchor=(0.01, 0.88), frameon=True, framealpha=0.9, fontsize=10)


@styled
def control_run(run, problem, ax=None, *, alpha=0.1):
    """Draw the sets played by a run against the cost spent, and mark the target.

    Parameters
    ----------
    run : emsopt.optimizers.ControlRun
    problem : emsopt.problems.ControlProblem
        The problem of the run.
    ax : matplotlib Axes or empty Figure, optional
    alpha : float
        Tolerance: acceptable sets are drawn filled, and the cheapest of them is the target.

    Returns
    -------
    fig, ax
    """
    _validate.instance(problem, "problem", ControlProblem, "emsopt.problems.ControlProblem")
    history = getattr(run, "history", None)
    _validate.columns(history, ["set", "spent", "phase"], "run.history")
    if history["set"].max() >= len(problem.costs):
        raise InputError(
            f"`problem` must be the problem of the run; it has {len(problem.costs)} sets, the run played set "
            f"{history['set'].max()}."
        )
    problem = problem.solved()
    good, target = problem.acceptable(alpha), problem.target(alpha)
    fig, ax = figure(ax, (9, 1.2 + 0.42 * len(problem.costs)))
    explored = history.loc[history["phase"].str.startswith("explore"), "spent"]
    if len(explored):
        ax.axvspan(0, explored.max(), color="#eeeeee", zorder=0, label="exploration")
    for i in sorted(set(history["set"])):
        at = history.loc[history["set"] == i, "spent"]
        colour = _shading.CATEGORIES[2 if i == target else 0]
        face = colour if i in good else "white"
        ax.plot(at, np.full(len(at), i), "o", color=colour, markerfacecolor=face, markersize=6)
    marks = [f"{name} ({cost:g})" for name, cost in zip(problem.set_names, problem.costs, strict=True)]
    ax.set_yticks(range(len(marks)), marks)
    ax.get_yticklabels()[target].set(weight="bold", color=_shading.CATEGORIES[2])
    ax.set(xlabel="Cost spent", ylim=(-0.6, len(marks) - 0.4), xlim=(0, 1.02 * run.spent))
    ax.set_title(f"{run.method}: {run.plays} plays (bold: the target)", fontsize=12)
    if len(explored):
        ax.legend(loc="lower right", frameon=True, framealpha=0.9)
    return fig, ax


@styled
def control_study(table, column="simple_regret", ax=None):
    """Draw methods against cost, one panel per problem (Figures 1 and 2 of the paper on unknown costs).

    Lines are means over the seeds, with bands of one standard error on either side.

    Parameters
    ----------
    table : DataFrame
        The study "bocvs" from `emsopt.datasets.load_study`, or some of its rows.
    column : str
        "simple_regret" (logarithmic; smaller values are drawn at 1e-4), "plays", "cost_regret",
        "quality_regret" or "on_target".
    ax : empty matplotlib Figure, optional

    Returns
    -------
    fig, axes
        Axes of shape (objectives, settings of cost and variance).
    """
    _validate.choice(column, "column", tuple(LABELS))
    _validate.columns(table, ["objective", "costs", "variance", "method", "seed", "cost", column], "table")
    objectives = list(dict.fromkeys(table["objective"]))
    settings = list(dict.fromkeys(zip(table["costs"], table["variance"], strict=True)))
    size = (3.4 * len(settings) + 0.6, 2.5 * len(objectives) + 0.7)
    fig = new_figure(ax, size, "constrained")
    if fig is None:
        msg = f"`ax` must be an empty Figure or None, because there are {len(objectives) * len(settings)} panels."
        raise InputError(msg)
    axes = fig.subplots(len(objectives), len(settings), squeeze=False, sharex=True)
    drawn = {}
    for (row, objective), (k, (costs, variance)) in (
        (a, b) for a in enumerate(objectives) for b in enumerate(settings)
    ):
        panel = axes[row, k]
        part = table.query("objective == @objective and costs == @costs and variance == @variance")
        for j, method in enumerate(METHODS):
            lines = part[part["method"] == method].groupby("cost")[column].agg(["mean", "sem"])
            if len(lines):
                drawn[method] = _mean_and_error(panel, lines, j, log=column == "simple_regret")
        if not panel.lines:
            panel.set_axis_off()
        if column == "simple_regret" and panel.lines:
            plain_ticks(panel.yaxis, np.concatenate([line.get_ydata() for line in panel.lines]))
        if row == 0:
            panel.set_title(f"{costs} costs, variance {variance:g}", fontsize=11)
        if k == 0:
            panel.set_ylabel(objective)
        if row == len(objectives) - 1:
            panel.set_xlabel("Cost spent", fontsize=11)
    fig.legend(drawn.values(), drawn, loc="outside upper center", ncols=len(drawn), title=LABELS[column])
    return fig, axes


def _mean_and_error(ax, lines, j, *, log):
    """Draw one method and return its line."""
    mean, error = lines["mean"], lines["sem"].fillna(0)
    floor = FLOOR if log else -np.inf
    line = ax.plot(lines.index, np.maximum(mean, floor), **look(j), linewidth=2.6 if j == 0 else 1.8)[0]
    low, high = np.maximum(mean - error, floor), np.maximum(mean + error, floor)
    ax.fill_between(lines.index, low, high, alpha=0.18, linewidth=0, color=look(j)["color"])
    if log:
        ax.set_yscale("log")
    return line
