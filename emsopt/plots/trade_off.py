"""A trade-off front as points: one metric against another, and a third as colour."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matplotlib.colors import LinearSegmentedColormap

from .. import _validate
from ..maps import _colours
from ..planning.trade_off import Front
from ._style import AxLike, figure, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SHADES = LinearSegmentedColormap.from_list("shades", _colours.SEQUENTIAL[1:])  # all are seen on white


@styled()
def trade_off(front: Front, ax: AxLike = None, *, chosen: int | None = None) -> tuple[Figure, Axes]:
    """Draw the deployments of a front as points.

    The first metric is on the horizontal axis and the second on the vertical one. The third is the colour, pale where
    it is small; further ones are not shown.

    Parameters
    ----------
    front : emsopt.planning.Front
    ax : matplotlib Axes or empty Figure, optional
    chosen : int, optional
        Index of a deployment of the front to be ringed.

    Returns
    -------
    fig, ax

    Examples
    --------
    >>> import emsopt as eo
    >>> from matplotlib.figure import Figure
    >>> city = eo.datasets.grid_city(n_sites=8, units=3, rng=1)
    >>> found = eo.planning.front(city, 3, ["mean_response", ("late", 5.0)])
    >>> fig, ax = eo.plots.trade_off(found, ax=Figure(), chosen=0)
    >>> ax.get_xlabel()
    'Mean response (min)'
    """
    _validate.instance(front, "front", Front, "emsopt.planning.Front")
    fig, ax = figure(ax, (8, 5))
    x, y, *rest = front.values.T
    labels = [label[:1].upper() + label[1:] for label in front.labels]
    points = ax.scatter(x, y, s=45, c=rest[0] if rest else _colours.CATEGORIES[0], cmap=SHADES if rest else None)
    points.set(edgecolor="0.3", linewidth=0.5)
    if rest:
        fig.colorbar(points, ax=ax, label=labels[2])
    if chosen is not None:
        k = _validate.whole_number(chosen, "chosen", 0, len(x) - 1)
        ax.scatter(x[k], y[k], s=170, facecolor="none", edgecolor=_colours.LINES, linewidth=2.2)
    ax.set(xlabel=labels[0], ylabel=labels[1])
    return fig, ax
