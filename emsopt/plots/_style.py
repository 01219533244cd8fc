"""Common parts of all figures: style, figures and axes, and line styles of categories."""

from functools import wraps

import numpy as np

from ..errors import InputError
from ..maps import _shading

STYLE = {
    "font.size": 12,
    "axes.titlesize": 13,
    "axes.titlelocation": "left",
    "axes.titleweight": "bold",
    "axes.labelsize": 12,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.formatter.useoffset": False,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.8,
    "lines.linewidth": 2.2,
    "legend.frameon": False,
    "legend.fontsize": 11,
    "figure.constrained_layout.use": True,
    "savefig.dpi": 150,
}
DASHES = ("-", (0, (5, 1.5)), (0, (1, 1.2)), (0, (6, 1.5, 1, 1.5)), "-", (0, (5, 1.5)), (0, (1, 1.2)))


def styled(draw):
    """Run a drawing function under the common style."""

    @wraps(draw)
    def wrapper(*args, **kwargs):
        import matplotlib as mpl

        with mpl.rc_context(STYLE):
            result = draw(*args, **kwargs)
            interactive = mpl.is_interactive()
        mpl.interactive(interactive)  # the first figure may turn on interactive mode, which the context would undo
        return result

    return wrapper


def figure(ax, size):
    """Return figure and axes: those of the caller, or new ones."""
    fig = new_figure(ax, size, "constrained")
    return (ax.figure, ax) if fig is None else (fig, fig.add_subplot())


def new_figure(ax, size, layout):
    """Return a figure to fill, or None if the caller passed axes to draw on."""
    from matplotlib.figure import Figure

    if isinstance(ax, Figure):
        ax.set_size_inches(*size)
        ax.set_layout_engine(layout)
        return ax
    if ax is None:
        from matplotlib import pyplot as plt

        return plt.figure(figsize=tuple(size), layout=layout)
    return None


def panels(ax, count, size, across=None, *, sharey=False):
    """Return figure and ``count`` axes: the caller's, or new ones of a given size (inches) in rows."""
    across = min(count, across or count)
    down = -(-count // across)
    fig = new_figure(ax, (across * size[0], down * size[1]), "constrained")
    if fig is None:
        axes = np.ravel(np.array(ax, dtype=object))
        if len(axes) != count:
            raise InputError(f"`ax` must hold {count} Axes; got {len(axes)}.")
        return axes[0].figure, axes
    axes = np.ravel(fig.subplots(down, across, squeeze=False, sharey=sharey))
    for spare in axes[count:]:
        spare.remove()
    return fig, axes[:count]


def look(k):
    """Return the colour and dash pattern of category k. Styles repeat after seven."""
    return {"color": _shading.CATEGORIES[k % len(_shading.CATEGORIES)], "linestyle": DASHES[k % len(DASHES)]}


def plain_ticks(axis, values):
    """Label a logarithmic axis of fewer than two decades with plain numbers."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    if values.max() < 100 * values.min():
        few = values.max() < 10 * values.min()
        axis.set_major_locator(LogLocator(subs=(1, 1.5, 2, 3, 4, 6, 8) if few else (1, 2, 5)))
        axis.set_minor_locator(NullLocator())
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
