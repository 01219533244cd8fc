"""Small multiples: lines of a study or of functions, with one panel per problem, title or dimension."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _validate
from ._style import AxLike, Style, categories, draw_line, look, plain_ticks, shared_legend, styled, words
from ._style import panels as panels_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd
    from matplotlib.figure import Figure

    from .._types import ArrayLike
    from ._style import AxesArray

SIZE, WIDE = (4.4, 3.4), (6.2, 3.4)  # of a panel, inches; the wide one in rows of two
FLOOR = 1e-12  # lower end of a logarithmic axis; regrets of zero are drawn here


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
    ax : empty Figure or sequence of matplotlib Axes, optional
        One Axes for each panel.
    panels, lines, x, y : str
        Column names: one panel per value of the first, one line per value of the second, in order of
        appearance; ``x`` and ``y`` hold the coordinates of the lines.
    band : (str, str) or None
        Columns with the lower and the upper curve of the shaded band; by default the quartiles.
    log_x : bool
        Whether the horizontal axis is logarithmic. The vertical axis always is.
    columns : int
        Panels per row.
    xlabel, ylabel : str
    vertical : dict of panel to float, optional
        Positions to mark on the horizontal axis, such as the end of the initial design.
    lowest : float
        Smallest value on the vertical axes; smaller values are drawn at its height.

    Returns
    -------
    fig, axes : Figure and ndarray of Axes, shape (panels,)

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
    fig, axes = panels_of(ax, len(parts), WIDE if columns == 2 < len(parts) else SIZE, columns)
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
        One panel per frame: the index is the variable, and each column a line; "true" is dashed in grey. A column has
        the same colour in every panel.
    ax : empty Figure or sequence of matplotlib Axes, optional
        One Axes for each panel.
    points : array_like, shape (t, 2), optional
        Positions and heights of points to draw in every panel. If all heights are NaN, ticks mark the positions.
    ylabel : str

    Returns
    -------
    fig, axes : Figure and ndarray of Axes, shape (panels,)

    Examples
    --------
    >>> import emsopt as eo
    >>> from matplotlib.figure import Figure
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"x": [0.0, 0.5, 1.0], "regression": [1.0, 0.2, 0.8]})
    >>> fig, axes = eo.plots.line_panels({"three points": frame}, ax=Figure())
    >>> axes.size
    1
    """
    fig, axes = panels_of(ax, len(frames), SIZE, 3, sharey=True)
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
        axis.set(title=title, xlabel="x")
    axes[0].set_ylabel(ylabel)
    shared_legend(fig, axes, 4)
    return fig, axes
