"""Figures of control problems: an example in two variables, and the plays of a run against their cost."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

from ..errors import InputError
from ..maps import _colours
from ..optimizers.control.search import ControlRun
from ..problems import ControlProblem
from ._style import AxesArray, AxLike, Style, common_style, figure, panels

TOLERANCE = 0.1


@common_style()
def control_sets(problem: ControlProblem, ax: AxLike = None) -> tuple[Figure, AxesArray]:
    """Draw a problem of two variables: its function, the best plays of each set, and their expected values.

    Left: contours of the function, and plays of each set with its variables at their best values and the others drawn
    at random. Right: expected value of each set of one variable, as a function of this variable; a dashed line marks
    the best expected value of a set of both variables. The shaded band holds the acceptable expected values: those at
    least 0.9 times the best, both measured from the problem's ``worst`` value.

    Examples
    --------
    >>> import emsopt as eo
    >>> fig, axes = eo.plots.control_sets(eo.problems.hill_control())
    """
    if problem.dimension != 2:
        raise InputError(f"`problem` must have exactly two variables to be drawn; got {problem.dimension}.")
    problem = problem.with_set_values()  # the best plays of each set are drawn
    fig, axes = panels(2, (6, 5), ax=ax)
    left, right = axes

    axis = np.linspace(0, 1, 81)
    grid = np.stack(np.meshgrid(axis, axis), axis=-1)
    values = np.reshape(problem.objective.noise_free_value(grid.reshape(-1, 2)), grid.shape[:2])
    colours = LinearSegmentedColormap.from_list("pale to dark", _colours.SEQUENTIAL_COLOURS)
    left.figure.colorbar(left.contourf(axis, axis, values, 12, cmap=colours), ax=left, label="f", shrink=0.9)
    rim: Style = {"linestyle": "", "markeredgecolor": "white", "markeredgewidth": 0.5}
    for i, (name, controlled) in enumerate(zip(problem.set_names, problem.control_sets, strict=True)):
        points = problem.nodes(128)  # uncontrolled variables vary as in plays, of which more would hide each other
        points[:, list(controlled)] = problem.set_points[i]
        size = 11 if len(controlled) == 2 else 5  # a set of all variables is a single point
        left.plot(*points.T, markersize=size, label=f"control {name}", **rim, **_marker_of_set(i))
    left.set(xlim=(0, 1), ylim=(0, 1), aspect="equal", title="Where plays fall")
    left.set(xlabel=problem.objective.variables[0], ylabel=problem.objective.variables[1])
    left.grid(visible=False)
    left.legend(loc="upper left", frameon=True, framealpha=0.9, fontsize=10)

    x = np.linspace(0, 1, 101)
    top = problem.set_values.max()
    least = problem.worst + (1 - TOLERANCE) * (top - problem.worst)  # measured from `worst`, as the tolerance is
    right.axhspan(least, top, color="#dddddd", zorder=0, label=f"acceptable (α = {TOLERANCE:g})")
    for i, name in enumerate(problem.set_names):
        style: Style = {"color": _marker_of_set(i)["color"], "label": f"control {name}, cost {problem.costs[i]:g}"}
        if len(problem.control_sets[i]) == 1:
            right.plot(x, problem.expected(i, x[:, None], 1024), **style)
            right.plot(problem.set_points[i], problem.set_values[i], linestyle="", markersize=9, **_marker_of_set(i))
        else:
            right.axhline(problem.set_values[i], linestyle="--", **style)
    right.set(xlim=(0, 1), xlabel="Value of the controlled variable", title="What to expect")
    right.set_ylabel("Expected value E[f]")
    right.legend(loc="upper left", bbox_to_anchor=(0.01, 0.88), frameon=True, framealpha=0.9, fontsize=10)
    return fig, axes


def _marker_of_set(i: int) -> Style:
    """Return the marker and colour of control set i."""
    return {"marker": "os^D"[i % 4], "color": _colours.CATEGORY_COLOURS[(4, 1, 6)[i % 3]]}


@common_style()
def control_run(
    run: ControlRun, problem: ControlProblem, ax: AxLike = None, *, alpha: float = 0.1
) -> tuple[Figure, Axes]:
    """Draw which control set each play of a run used, against the total cost spent up to this play.

    Parameters
    ----------
    run, problem : ControlRun, ControlProblem
        A run, and the problem that it played.
    alpha : float
        Tolerance that defines the acceptable sets (`ControlProblem.acceptable`), drawn filled. The cheapest of them is
        the target, in green with a bold name.

    Examples
    --------
    >>> import emsopt as eo
    >>> problem = eo.problems.hill_control()
    >>> run = eo.optimizers.bocvs(problem, budget=5, rng=0)
    >>> fig, ax = eo.plots.control_run(run, problem)
    """
    history = run.history
    count, last = len(problem.costs), history["set"].max()
    if last >= count:  # only a larger index shows that it is another problem
        found = f"it has the sets 0 to {count - 1}, but the run played set {last}"
        raise InputError(f"`problem` must be the problem of the run; {found}.")
    problem = problem.with_set_values()
    good, target = problem.acceptable(alpha), problem.target(alpha)
    fig, ax = figure((9, 1.2 + 0.42 * count), ax)
    explored = history.loc[history["phase"].str.startswith("explore"), "spent"]
    for i, spent in history.groupby("set")["spent"]:
        colour = _colours.CATEGORY_COLOURS[2 if i == target else 0]
        face = colour if i in good else "white"
        ax.plot(spent, np.full(len(spent), i), "o", color=colour, markerfacecolor=face, markersize=6)
    names = [f"{name} ({cost:g})" for name, cost in zip(problem.set_names, problem.costs, strict=True)]
    ax.set_yticks(range(count), names)
    ax.get_yticklabels()[target].set(weight="bold", color=_colours.CATEGORY_COLOURS[2])
    ax.set(xlabel="Cost spent", ylim=(-0.6, count - 0.4), xlim=(0, 1.02 * run.spent))  # room for the last dots
    ax.set_title(f"{run.method}: {run.plays} plays (bold: the target)", fontsize=12)
    if len(explored):
        ax.axvspan(0, explored.max(), color="#eeeeee", zorder=0, label="exploration")
        ax.legend(loc="lower right", frameon=True, framealpha=0.9)
    return fig, ax
