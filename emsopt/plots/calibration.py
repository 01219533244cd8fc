"""Recorded drives with the calibrated law, and recorded beside modelled response times."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.colors import LinearSegmentedColormap, LogNorm

from .. import _validate
from ..calls import BackTest, Fit
from ..maps import _colours
from ._style import AxesArray, AxLike, figure, look, panels, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SHOWN = 0.99  # share of the drives within the axes
STEPS = 40  # classes of distance
PALE = LinearSegmentedColormap.from_list("pale", _colours.SEQUENTIAL[:5])
NORMAL_90 = 1.2815515655446004  # normal quantile: one in ten is above


@styled()
def recorded_drives(fit: Fit, ax: AxLike = None) -> tuple[Figure, Axes]:
    """Draw recorded drives over distance, as numbers of drives per class, with the law of a drive.

    The line is the mean of the law, and four in five drives that start at home lie within the band.

    Parameters
    ----------
    fit : emsopt.calls.Fit
    ax : matplotlib Axes or empty Figure, optional

    Examples
    --------
    >>> import emsopt as eo
    >>> from matplotlib.figure import Figure
    >>> fit = eo.calls.calibrate(*eo.datasets.san_jose_calls())
    >>> fig, ax = eo.plots.recorded_drives(fit, ax=Figure())
    >>> ax.get_xlabel()
    'Distance from home (km)'
    """
    _validate.instance(fit, "fit", Fit, "emsopt.calls.Fit")
    drives = fit.drives[["distance", "minutes"]].to_numpy(float)
    farthest, longest = np.quantile(drives, SHOWN, axis=0)
    fig, ax = figure(ax, (8, 5))
    edges = np.linspace(0, farthest, STEPS + 1), np.arange(np.ceil(longest) + 2) - 0.5
    *_, mesh = ax.hist2d(drives[:, 0], drives[:, 1], bins=edges, cmin=1, norm=LogNorm(), cmap=PALE)
    fig.colorbar(mesh, ax=ax, label="Drives", shrink=0.8)
    distance = np.linspace(0, farthest, 200)
    mean, spread = fit.law.mean(distance), fit.law.spread
    low, high = (mean * np.exp(z * spread - spread**2 / 2) for z in (-NORMAL_90, NORMAL_90))
    ax.plot(distance, mean, label="law", **look(4) | {"linestyle": "-"})
    ax.plot(distance, low, distance, high, linewidth=1, color=look(4)["color"], linestyle="--")
    ax.plot([], [], linewidth=1, color=look(4)["color"], linestyle="--", label="four in five drives")
    unit = "Distance from home (km)" if fit.roads is None else "Minutes at free flow"
    ax.set(xlabel=unit, ylabel="Recorded drive (min)", xlim=(0, farthest), ylim=(0, longest))
    ax.legend(loc="upper left")
    return fig, ax


@styled()
def back_test(report: BackTest, ax: AxLike = None) -> tuple[Figure, AxesArray]:
    """Draw recorded beside modelled response times: their distribution, and their means by hour and by zone.

    Bars and dots are recorded. Ticks are modelled, with the interval of 90 % that chance allows; dots outside it are
    orange squares.

    Parameters
    ----------
    report : emsopt.calls.BackTest
    ax : three matplotlib Axes or an empty Figure, optional

    Examples
    --------
    >>> import emsopt as eo
    >>> from matplotlib.figure import Figure
    >>> calls, stations = eo.datasets.san_jose_calls()
    >>> fit = eo.calls.calibrate(calls.between("2015-01-01", "2015-01-10"), stations)
    >>> report = eo.calls.back_test(fit, calls.between("2015-01-10", "2015-01-15"))
    >>> fig, axes = eo.plots.back_test(report, ax=Figure())
    >>> len(axes)
    3
    """
    _validate.instance(report, "report", BackTest, "emsopt.calls.BackTest")
    fig, axes = panels(ax, 3, (4.5, 4.4))
    shares = report.distribution
    at = np.arange(len(shares))
    axes[0].bar(at, shares["recorded"], color=look(0)["color"], alpha=0.5, label="recorded")
    _intervals(axes[0], at, shares, upright=True)
    every = max(1, len(shares) // 10)
    axes[0].set_xticks(at[::every], shares.index[::every])
    axes[0].set(xlabel="Response (min)", ylabel="Share of calls")
    for axis, table, what in ((axes[1], report.by_hour, "hour of the day"), (axes[2], report.by_zone, "zone")):
        at = np.arange(len(table))[::-1]
        outside = (table["recorded"] < table["low"]) | (table["recorded"] > table["high"])
        _intervals(axis, at, table, upright=False)
        for which, shape, k in ((~outside, "o", 0), (outside, "s", 4)):
            axis.plot(
                table["recorded"][which], at[which], shape, color=look(k)["color"], markersize=6, linestyle="none"
            )
        axis.set_yticks(at, table.index)
        axis.tick_params(axis="y", labelsize=8)
        axis.set(xlabel=f"Mean response (min) by {what}")
    axes[0].legend()
    return fig, axes


def _intervals(ax: Axes, at: Any, table: Any, *, upright: bool) -> None:
    """Draw modelled values with their intervals, upright or across."""
    lines, ticks = (ax.vlines, "_") if upright else (ax.hlines, "|")
    lines(at, table["low"], table["high"], color="#b5b5b5", linewidth=5, zorder=1.5)
    points = (at, table["modelled"]) if upright else (table["modelled"], at)
    ax.plot(*points, ticks, color="#333333", markersize=11, markeredgewidth=2, linestyle="none", label="modelled")
