"""Figures of curves over load, evaluations or time, and over the response time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.transforms import Bbox

from ..errors import InputError, _validate
from ..errors._types import ArrayLike, FloatArray
from ..evaluators import Evaluation
from ..evaluators.evaluation import LATE_MIN
from ..maps import _colours
from ..optimizers.result import confidence_band
from ._style import (
    AxLike,
    Style,
    add_legend_above,
    add_note,
    common_style,
    draw_line,
    figure,
    line_numbers,
    line_style,
    readable_name,
    set_whole_ticks,
)

BIN_WIDTHS, MAX_BINS = (0.5, 1, 2, 5, 10, 20, 50, 100), 30  # minutes; more bins would be too narrow to see
LOAD_LABELS = {
    "offered_load": "Offered load per unit, ρ = λ / (p μ)",
    "service_rate_per_day": "Service rate of a unit, μ (calls per day)",
}


@common_style()
def load_sweep(frame: pd.DataFrame, ax: AxLike = None) -> tuple[Figure, Axes]:
    """Draw the mean response of several deployments against the load or another parameter.

    Parameters
    ----------
    frame : DataFrame
        One row per load, as from `emsopt.planning.load_sweep`: each numeric column is a line, grey and dashed if its
        name contains "bound", and the name of the index labels the horizontal axis.

    Examples
    --------
    >>> import emsopt as eo
    >>> city = eo.datasets.grid_city(n_sites=6, units=2, rng=1)
    >>> table = eo.planning.load_sweep(city, 2, [0.1, 0.5])
    >>> fig, ax = eo.plots.load_sweep(table)
    """
    lines = frame.select_dtypes("number")
    if lines.empty:
        raise InputError("`frame` must have at least one row and one column of numbers.")
    loads = lines.index.to_numpy(dtype=float)
    fig, ax = figure(ax=ax)
    for k, name in enumerate(lines.columns):
        bound = "bound" in str(name)  # grey: a bound is no deployment
        style = {"color": "#777", "linestyle": "--"} if bound else line_style(k)
        dots = "" if len(loads) > 25 or bound else "o"
        ax.plot(loads, lines[name], label=readable_name(name), marker=dots, markersize=6, **style)
    if loads.min() > 0 and loads.max() / loads.min() > 50:  # linear axes would crowd the small loads
        ax.set_xscale("log")
    axis = str(frame.index.name or "offered_load")
    ax.set(xlabel=LOAD_LABELS.get(axis) or readable_name(axis).capitalize(), ylabel="Mean response (min)")
    ax.legend()
    return fig, ax


@common_style()
def convergence(
    runs: Mapping[str, Any],
    ax: AxLike = None,
    *,
    band: str | None = "confidence",
    against: str = "evaluations",
    reference: Mapping[str, float] | None = None,
    label: str = "Best value so far",
) -> tuple[Figure, Axes]:
    """Draw the best value found against the number of evaluations, or against time.

    Parameters
    ----------
    runs : dict of str to Run, DataFrame or list of these
        Results of an optimizer, or their histories, with the best value so far in ``best`` and the number of
        evaluations in ``evaluation`` or ``evaluations``; without these columns, each row is one evaluation. A run that
        ended early keeps its last value.
    band : {"confidence", None}
        "confidence" draws the mean of the runs and its 95 % confidence interval, as in "Optimizing Server Locations in
        Spatial Queues"; None draws their median.
    against : {"evaluations", "seconds"}
        Horizontal axis; "seconds" needs a column ``seconds`` in the histories and is drawn on a log scale.
    reference : dict of str to float, optional
        Levels to compare with, such as ``{"optimum": 5.87, "lower bound": 5.33}``.
    label : str
        Quantity shown, with unit, such as "Best mean response so far (min)".

    Examples
    --------
    >>> import emsopt as eo
    >>> objective = eo.Objective(eo.datasets.grid_city(n_sites=6, units=2, rng=1), 2)
    >>> runs = {name: [eo.minimize(objective, name, budget=10, rng=0)] for name in ("local", "random")}
    >>> fig, ax = eo.plots.convergence(runs)
    """
    _validate.choice(band or "confidence", "band", ("confidence",))
    _validate.choice(against, "against", ("evaluations", "seconds"))
    named = _validate.nonempty_mapping(runs, "runs")
    tables = {str(name): _best_values(several, name, against) for name, several in named.items()}
    fig, ax = figure(ax=ax)
    places = line_numbers(tables)
    for name, table in tables.items():
        count = table.shape[1]
        title = f"{name} ({count} runs)" if count > 1 else name
        line, *ends = confidence_band(table.to_numpy().T) if band else [table.median(axis=1)]
        draw_line(ax, table.index, line, places[name], ends if count > 1 and ends else None, step="post", label=title)
    for k, (name, level) in enumerate((reference or {}).items()):  # names alternately at the left and right end
        ax.axhline(level, color="#555", linewidth=1.2, linestyle=":")
        style: Style = {"ha": ("left", "right")[k % 2], "va": "bottom", "fontsize": 10, "color": "#444"}
        at, offset = (k % 2, level), (4 - 8 * (k % 2), 2)
        add_note(ax, f"{name} {level:.3g}", at, offset, xycoords=ax.get_yaxis_transform(), **style)
    if against == "seconds":
        ax.set(xlabel="Time (s)", ylabel=label, xscale="log")
    else:
        ax.set(xlabel="Evaluations", ylabel=label)
        set_whole_ticks(ax.xaxis)
    ax.set_xlim(left=min(table.index[0] for table in tables.values()))
    ax.legend()
    return fig, ax


def _best_values(runs: Any, name: str, against: str) -> pd.DataFrame:
    """Return the best value so far of each run, one per column, by evaluations or seconds; last values are kept."""
    best, listed = [], runs if isinstance(runs, (list, tuple)) else [runs]
    frames: list[Any] = [getattr(run, "history", run) for run in listed]
    for frame in frames:
        _validate.check_columns(frame, ("best",) if against == "evaluations" else ("best", "seconds"), "runs")
        columns = [column for column in (against, "evaluation") if column in frame]
        steps = frame[columns[0]] if columns else range(1, len(frame) + 1)
        by_step = pd.Series(np.asarray(frame["best"], dtype=float), np.asarray(steps, dtype=float))
        best.append(by_step.groupby(level=0).last())  # several rows may have one time
    if not best or not all(map(len, best)):
        raise InputError(f"`runs[{name!r}]` must hold at least one history, each of at least one row.")
    return pd.concat(best, axis=1).sort_index().ffill().dropna()  # else means would jump where a run ends


@common_style()
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
        Regret of R replications after each of T steps, for example from `emsopt.optimizers.empirical_regret`.
    bounds : dict of str to array_like, optional
        Upper bounds on the same quantity after each step, each of shape (T,), drawn in grey.
    label, against : str
        Labels of the vertical axis (the quantity with its unit) and of the horizontal axis.

    Examples
    --------
    >>> import emsopt as eo
    >>> fig, ax = eo.plots.regret_curves({"two runs": [[1.0, 1.5, 1.7], [0.8, 1.0, 1.1]]})
    """
    bands = {name: confidence_band(rows) for name, rows in _validate.nonempty_mapping(curves, "curves").items()}
    limits = {name: _validate.real_array(line, name, (None,)) for name, line in (bounds or {}).items()}
    highest = max(mean.max() for mean, _, _ in bands.values())
    largest = max(map(np.max, limits.values()), default=0.0)
    log = largest > 10 * highest > 0  # a much larger bound would flatten the curves
    fig, ax = figure(ax=ax)
    places = line_numbers(bands)
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
    add_legend_above(ax, 2, least=1)
    return fig, ax


@common_style()
def response_distribution(evaluations: Evaluation | Mapping[str, Evaluation], ax: AxLike = None) -> tuple[Figure, Axes]:
    """Draw the share of answered calls whose response takes t minutes or more, against t.

    A table in the figure has the shares at 6, 8 and 10 min.

    Examples
    --------
    >>> import emsopt as eo
    >>> city = eo.datasets.load_st_paul()
    >>> result = eo.evaluators.approximate_hypercube(city, [0, 1, 2, 3, 4, 8, 9, 10, 11])
    >>> fig, ax = eo.plots.response_distribution(result)
    """
    named = _colours.evaluations_by_name(None, evaluations)
    thresholds = np.array([6.0, 8.0, 10.0])
    end = 1.05 * max(_longest_time(named), *thresholds)
    fig, ax = figure(ax=ax)
    for threshold in thresholds:
        ax.axvline(threshold, color="#999", linewidth=1, linestyle=":")
    for k, (name, e) in enumerate(named.items()):
        times = np.linspace(0, end, 600 if e.law is None else 150)  # steps, or a smooth curve that takes longer
        draw_line(ax, times, 100 * e.late_fraction(times), k, step="post" if e.law is None else None, label=name)
        ax.plot(thresholds, 100 * e.late_fraction(thresholds), "o", markersize=6, color=line_style(k)["color"])
    set_whole_ticks(ax.xaxis, (1, 2, 5, 10))
    ax.set(xlabel="Response time t (min)", ylabel="Calls answered in t or later (%)")
    ax.set(xlim=(0, end), ylim=(0, 103))
    add_legend_above(ax, len(named))
    _draw_late_table(ax, named, thresholds)
    return fig, ax


@common_style()
def response_histogram(
    evaluations: Evaluation | Mapping[str, Evaluation], ax: AxLike = None, *, threshold: float = LATE_MIN
) -> tuple[Figure, Axes]:
    """Draw the share of answered calls (%) in each interval of response times, and a line at the threshold (min)."""
    named = _colours.evaluations_by_name(None, evaluations)
    longest = _longest_time(named)
    width = next((width for width in BIN_WIDTHS if longest < MAX_BINS * width), BIN_WIDTHS[-1])
    edges = width * np.arange(np.floor(longest / width) + 2)
    fig, ax = figure(ax=ax)
    ax.axvline(threshold, color="#555", linewidth=1, linestyle=":")
    style: Style = {"va": "top", "fontsize": 11, "color": "#444", "clip_on": True}
    ax.text(threshold, 0.99, f" {threshold:g} min", transform=ax.get_xaxis_transform(), **style)
    for k, (name, evaluation) in enumerate(named.items()):
        # the late fraction falls with t, so its differences are negative
        ax.stairs(-100 * np.diff(evaluation.late_fraction(edges)), edges, label=name, linewidth=2, **line_style(k))
    ax.set(xlabel="Response time (min)", ylabel=f"Calls in {width:g} min (%)")
    ax.set(xlim=(0, edges[-1]), ylim=(0, None))
    add_legend_above(ax, len(named))
    return fig, ax


def _longest_time(named: Mapping[str, Evaluation]) -> float:
    """Return the largest 99.9th percentile of the response times of evaluations (min), where the axis ends."""
    return max(float(evaluation.percentile(99.9)) for evaluation in named.values())


def _draw_late_table(ax: Axes, named: Mapping[str, Evaluation], thresholds: FloatArray) -> None:
    """Draw a table, in the upper right corner, of the shares of answered calls that take each threshold or longer."""
    wide, high = 0.085 * len(thresholds), 0.075 * (1 + len(named))
    box = Bbox.from_bounds(1 - wide, 0.98 - high, wide, high)
    late = [[f"{100 * s:.1f}%" for s in np.ravel(e.late_fraction(thresholds))] for e in named.values()]
    rows = list(named) if len(named) > 1 else None
    heads = [f"{threshold:g} min" for threshold in thresholds]
    table = ax.table(late, rowLabels=rows, colLabels=heads, bbox=box, edges="open", cellLoc="right", zorder=4)
    table.auto_set_font_size(False)
    table.set_fontsize(10)
    for cell in table.get_celld().values():
        cell.PAD = 0.05
