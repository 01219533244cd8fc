"""Small multiples: lines of a study or of functions, with one panel per problem, title or dimension."""

import numpy as np

from .. import _validate
from ..errors import InputError
from ._frames import words
from ._style import look, plain_ticks, styled
from ._style import panels as panels_of

SIZE = (4.4, 3.4)  # of a panel, inches
FLOOR = 1e-12  # lower end of a logarithmic axis; regrets of zero are drawn here


@styled
def study_curves(
    frame,
    ax=None,
    *,
    panels="problem",
    lines="method",
    x="evaluation",
    y="median",
    band=("q25", "q75"),
    log="y",
    columns=3,
    sharey=False,
    xlabel=None,
    ylabel="Simple regret",
    vertical=None,
    lowest=None,
):
    """Draw lines of a table in small panels.

    Parameters
    ----------
    frame : DataFrame
        Data of the curves; rows are joined in their order.
    ax : empty Figure or sequence of matplotlib Axes, optional
        One Axes for each panel.
    panels, lines, x, y : str
        Column names: one panel per value of the first, one line per value of the second, in order of
        appearance.
    band : (str, str) or None
        Columns that bound the shaded band.
    log : {"y", "x", "both", None}
        Logarithmic axes.
    columns : int
        Panels per row.
    sharey : bool
        Whether all panels share the vertical axis.
    xlabel, ylabel : str
    vertical : dict of panel to float, optional
        Positions to mark on the horizontal axis, such as the end of the initial design.
    lowest : float, optional
        Lower limit of values on logarithmic vertical axes; smaller values are drawn there.

    Returns
    -------
    fig, axes : Figure and ndarray of Axes, shape (panels,)
    """
    columns = _validate.whole_number(columns, "columns")
    _validate.columns(frame, [panels, lines, x, y, *(band or ())])
    _validate.choice(log, "log", ("y", "x", "both", None))
    if frame.empty:
        raise InputError("there is nothing to draw: the frame has no rows.")
    titles, names = list(dict.fromkeys(frame[panels])), list(dict.fromkeys(frame[lines]))
    fig, axes = panels_of(ax, len(titles), SIZE, columns, sharey=sharey)
    for axis, title in zip(axes, titles, strict=True):
        part = frame[frame[panels] == title]
        for k, name in enumerate(names):
            rows = part[part[lines] == name]
            if rows.empty:
                continue
            values = rows[[y, *(band or ())]].to_numpy(dtype=float).T
            if log in ("y", "both"):
                values = np.maximum(values, lowest or FLOOR)
            marker = {"marker": "o", "markersize": 5} if len(rows) <= 12 else {}
            axis.plot(rows[x], values[0], label=words(name), **look(k), **marker)
            if band:
                axis.fill_between(rows[x], *values[1:], alpha=0.12, linewidth=0, color=look(k)["color"])
        if vertical is not None and title in vertical:
            axis.axvline(vertical[title], color="#777", linewidth=1.2, linestyle="--")
        if log in ("y", "both"):
            axis.set_yscale("log")
            plain_ticks(axis.yaxis, np.maximum(part[y], lowest or FLOOR))
        if log in ("x", "both"):
            axis.set_xscale("log")
            plain_ticks(axis.xaxis, part[x])
        axis.set_title(words(title))
        axis.set(xlabel=xlabel or (x if len(x) == 1 else words(x).capitalize()))
        axis.margins(x=0.02)
    for row in axes[::columns]:
        row.set_ylabel(ylabel)
    handles = {text: handle for axis in axes for handle, text in zip(*axis.get_legend_handles_labels(), strict=True)}
    fig.legend(handles.values(), handles, loc="outside upper center", ncols=min(len(handles), 2 * columns + 1))
    return fig, axes


@styled
def line_panels(frames, ax=None, *, points=None, xlabel="x", ylabel="", columns=3):
    """Draw functions of one variable side by side, with the points they were learned from.

    Parameters
    ----------
    frames : dict of str to DataFrame
        One panel per frame: the index is the variable, and each column a line; "true" is dashed in grey.
    ax : empty Figure or sequence of matplotlib Axes, optional
        One Axes for each panel.
    points : array_like, shape (t, 2), optional
        Points drawn in every panel; if all heights are NaN, they are drawn as ticks at the bottom.
    xlabel, ylabel : str
    columns : int
        Panels per row.

    Returns
    -------
    fig, axes : Figure and ndarray of Axes, shape (panels,)
    """
    columns = _validate.whole_number(columns, "columns")
    if not frames:
        raise InputError("there is nothing to draw: `frames` is empty.")
    fig, axes = panels_of(ax, len(frames), SIZE, columns, sharey=True)
    for axis, (title, frame) in zip(axes, frames.items(), strict=True):
        for k, name in enumerate([name for name in frame.columns if name != "true"]):
            axis.plot(frame.index, frame[name], label=words(name), **look(k))
        if "true" in frame:
            axis.plot(frame.index, frame["true"], label="true", color="#777", linestyle="--", linewidth=1.6)
        if points is not None:
            _points(axis, np.asarray(points, dtype=float))
        axis.set_title(title)
        axis.set(xlabel=xlabel)
    axes[0].set_ylabel(ylabel)
    fig.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=4)
    return fig, axes


def _points(axis, points):
    heights = points[:, 1]
    if np.isnan(heights).all():
        axis.plot(
            points[:, 0],
            np.full(len(points), 0.02),
            "|",
            color="#222",
            markersize=10,
            transform=axis.get_xaxis_transform(),
            label="points",
        )
    else:
        axis.plot(*points.T, "o", color="#222", markersize=6, label="points")
