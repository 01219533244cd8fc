"""What each further unit buys."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matplotlib.ticker import MaxNLocator

from .. import _validate
from ..evaluators.metrics import metric_label
from ..planning.fleet_curve import FleetCurve
from ._style import AxLike, figure, look, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@styled()
def fleet_curve(curve: FleetCurve, standard: float | None = None, ax: AxLike = None) -> tuple[Figure, Axes]:
    """Draw the metric of each fleet size, with 90 % intervals if the curve is of a calibrated fit.

    Parameters
    ----------
    curve : emsopt.planning.FleetCurve
    standard : float, optional
        Value to be met, drawn as a line; each fleet then shows the probability of meeting it.
    ax : matplotlib Axes or empty Figure, optional

    Returns
    -------
    fig, ax

    Examples
    --------
    >>> import emsopt as eo
    >>> from matplotlib.figure import Figure
    >>> curve = eo.planning.fleet_curve(eo.datasets.grid_city(n_sites=6, units=2, rng=1), range(1, 4))
    >>> fig, ax = eo.plots.fleet_curve(curve, standard=8.0, ax=Figure())
    >>> ax.get_xlabel()
    'Units'
    """
    _validate.instance(curve, "curve", FleetCurve, "emsopt.planning.FleetCurve")
    fig, ax = figure(ax, (6.5, 4.2))
    table = curve.to_frame(standard)
    if curve.draws is not None:
        ax.fill_between(curve.units, table["low"], table["high"], alpha=0.25, color=look(0)["color"], linewidth=0)
    ax.plot(curve.units, curve.values, "o-", color=look(0)["color"])
    if standard is not None:
        ax.axhline(standard, color="black", linewidth=1)
        for p, value, chance in zip(curve.units, curve.values, table["meets"], strict=True):
            ax.annotate(f"{chance:.0%}", (p, value), (4, 6), textcoords="offset points")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set(xlabel="Units", ylabel=metric_label(curve.metric))
    return fig, ax
