"""The hypercube model: error of the approximation, and the correction factor."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd
from matplotlib.patches import Patch
from matplotlib.ticker import LogLocator

from .. import _validate
from ..maps import _colours
from ._style import AxLike, Style, figure, look, styled, whole_ticks, words

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


MEDIAN = {"color": "black", "linewidth": 1.6}
CLAIMED = 0.002  # upper limit of the mean absolute error that the papers report, min


@styled()
def approximation_error(
    frame: pd.DataFrame,
    ax: AxLike = None,
    *,
    load: str = "utilization",
    error: str = "error_min",
) -> tuple[Figure, Axes]:
    """Draw box plots of the error in mean response of the approximate hypercube model against the exact one.

    There is one box per load and type of city. Figure 7 of "Optimizing Server Locations in Spatial Queues".

    Parameters
    ----------
    frame : DataFrame
        One row per city, with its type in ``geometry`` and two columns that the arguments below name: the load (a
        number, printed as it is; the column's name becomes the label of the axis) and the absolute error of the mean
        response (min).
    ax : matplotlib Axes or empty Figure, optional
    load, error : str
        Names of these columns.

    Examples
    --------
    >>> import emsopt as eo
    >>> from matplotlib.figure import Figure
    >>> table = eo.datasets.load_study("approximation_error_15")
    >>> table["size"] = (table["approximate_min"] - table["exact_min"]).abs()
    >>> fig, ax = eo.plots.approximation_error(table, ax=Figure(), load="load", error="size")
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['plane', 'uniform', 'papers: mean below 0.002 min']
    """
    _validate.columns(frame, (load, "geometry", error))
    loads, groups = sorted(frame[load].unique()), list(dict.fromkeys(frame["geometry"]))
    fig, ax = figure(ax)
    wide = 0.8 / len(groups)
    handles: list[Artist] = []
    for k, kind in enumerate(groups):
        colour = look(k)["color"]
        line = {"color": colour, "linewidth": 1.3}
        samples = {x: part.to_numpy() for x, part in frame[frame["geometry"] == kind].groupby(load)[error]}
        places = [loads.index(x) + (k - (len(groups) - 1) / 2) * wide for x in samples]
        box = {"facecolor": colour, "alpha": 0.55, "edgecolor": colour}
        dots = {"marker": ".", "markersize": 5, "markeredgecolor": colour}
        parts: Style = {"boxprops": box, "flierprops": dots, "medianprops": MEDIAN, "patch_artist": True}
        parts |= {"whiskerprops": line, "capprops": line, "widths": 0.8 * wide, "manage_ticks": False}
        ax.boxplot(list(samples.values()), positions=places, **parts)
        handles.append(Patch(color=colour, alpha=0.55, label=str(kind)))
    label = f"papers: mean below {CLAIMED:g} min"
    handles.append(ax.axhline(CLAIMED, color="#333", linestyle="--", linewidth=1.3, label=label))
    ax.set_xticks(range(len(loads)), [f"{x:g}" for x in loads])
    ax.set(xlabel=words(load).capitalize(), ylabel="Absolute error of the mean response (min)")
    ax.grid(visible=False, axis="x")
    ax.legend(handles=handles)
    return fig, ax


@styled()
def correction_factor(frame: pd.DataFrame, ax: AxLike = None) -> tuple[Figure, Axes]:
    """Draw the correction factor Q(p, ρ, r) of the approximate hypercube model, one line per utilisation ρ.

    The horizontal axis is r: a call is answered by the unit of rank r + 1, because the r units preferred to it are
    busy. p is the number of units.

    Parameters
    ----------
    frame : DataFrame, shape (p, K)
        The index is r = 0, 1, ..., p - 1, the number of preferred units that are busy; columns are the
        utilisations ρ.
    ax : matplotlib Axes or empty Figure, optional

    Examples
    --------
    >>> import emsopt as eo
    >>> from matplotlib.figure import Figure
    >>> import pandas as pd
    >>> from emsopt.evaluators.approximate import correction_factors
    >>> factors = pd.DataFrame({load: correction_factors(9, 9 * load) for load in (0.2, 0.5)})
    >>> fig, ax = eo.plots.correction_factor(factors, ax=Figure())
    >>> len(ax.lines)
    3
    """
    fig, ax = figure(ax)
    colours = _colours.colours(len(frame.columns) + 2)[2:]  # the palest colours are invisible on white
    ax.axhline(1, color="#555", linewidth=1.2, linestyle=":")
    for k, (rho, colour) in enumerate(zip(frame.columns, colours, strict=True)):
        marker = "osD^vPX"[k % 7]
        ax.plot(frame.index, frame[rho], color=colour, marker=marker, markersize=6, label=f"ρ = {rho:g}")
    whole_ticks(ax.xaxis)
    ax.set(xlabel="Preferred units that are busy, r", ylabel="Correction factor Q(p, ρ, r), no unit")
    if 0 < 10 * frame.to_numpy().min() < frame.to_numpy().max():
        ax.set_yscale("log")
        ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        ax.yaxis.set_major_formatter("{x:g}")
        ax.yaxis.set_minor_formatter("")
    ax.legend(title="utilisation")
    return fig, ax
