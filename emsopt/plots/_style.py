"""Common parts of all figures: style, figures and axes, lines with bands, legends and labels."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, TypeAlias

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from ..bandits import POLICIES
from ..errors import InputError
from ..errors._types import ArrayLike
from ..maps import _colours
from ..optimizers import BOX_METHODS, LEARNERS, METHODS

AxesArray: TypeAlias = NDArray[np.object_]
AxLike: TypeAlias = Axes | Sequence[Axes] | AxesArray | Figure | None
"""Type of ``ax`` in all drawing functions: axes to draw on, an empty figure to fill, or None for a new figure."""
Style: TypeAlias = dict[str, Any]

STYLE_FILE = Path(__file__).with_name("emsopt.mplstyle")
STYLE: dict[Any, Any] = dict(mpl.rc_params_from_file(STYLE_FILE, use_default_template=False))
"""Settings of matplotlib with which all figures of this package are drawn."""
DASHES = ("-", (0, (5, 1.5)), (0, (1, 1.2)), (0, (6, 1.5, 1, 1.5)), "-", (0, (5, 1.5)), (0, (1, 1.2)))


@contextmanager
def common_style() -> Iterator[None]:
    """Apply the common style while the decorated drawing function runs."""
    with mpl.rc_context(STYLE):
        yield
        interactive = mpl.is_interactive()
    mpl.interactive(interactive)  # the first figure may turn on interactive mode, which the context would undo


def new_figure(
    size: tuple[float, float], ax: Figure | None, layout: Literal["constrained", "none"] = "constrained"
) -> Figure:
    """Return an empty figure of a given size (inches): the one given as ``ax``, or a new one."""
    if ax is not None:
        ax.set_size_inches(*size)
        ax.set_layout_engine(layout)
        return ax
    from matplotlib import pyplot as plt  # importing pyplot chooses a backend, which servers do not need

    return plt.figure(figsize=size, layout=layout)


def panels(
    count: int, size: tuple[float, float], across: int | None = None, ax: AxLike = None, **options: Any
) -> tuple[Figure, AxesArray]:
    """Return a figure and ``count`` axes: those given as ``ax``, or new ones of ``size`` inches, ``across`` per row."""
    if count < 1:
        raise InputError("there is nothing to draw: a table must have at least one row, and a dict at least one entry.")
    if ax is not None and not isinstance(ax, Figure):
        axes = np.ravel(np.array(ax, dtype=object))
        if len(axes) != count:
            raise InputError(f"`ax` must hold {count} Axes; got {len(axes)}. Leave it out for a new figure.")
        return axes[0].figure, axes
    across = min(count, across or count)
    down = -(-count // across)  # rounded up
    fig = new_figure((across * size[0], down * size[1]), ax)
    axes = np.ravel(fig.subplots(down, across, squeeze=False, **options))
    for surplus in axes[count:]:  # the last row may not be full
        surplus.remove()
    return fig, axes[:count]


def figure(size: tuple[float, float] = (8, 5), ax: AxLike = None) -> tuple[Figure, Axes]:
    """Return a figure and its only axes: those given as ``ax``, or new ones of ``size`` inches."""
    fig, axes = panels(1, size, ax=ax)
    return fig, axes[0]


def line_numbers(names: Iterable[str]) -> dict[str, int]:
    """Return a number for the name of each line, for `line_style`, so that a method looks alike in every figure."""
    names, kinds = list(dict.fromkeys(names)), [list(kind) for kind in (METHODS, BOX_METHODS, POLICIES, LEARNERS)]
    kind = max(kinds, key=lambda kind: sum(name.lower() in kind for name in names))  # that of most names
    result: dict[str, int] = {}
    for name in sorted(names, key=lambda name: name.lower() not in kind):  # known methods first, in their own places
        own = [kind.index(name.lower())] if name.lower() in kind else []
        result[name] = next(k for k in (*own, *range(len(names) + len(DASHES))) if k not in result.values())
    return result


def line_style(k: int) -> Style:
    """Return the colour and dash pattern of line k. Colours repeat after seven, then with another pattern."""
    again, colour = divmod(k, len(_colours.CATEGORY_COLOURS))
    return {"color": _colours.CATEGORY_COLOURS[colour], "linestyle": DASHES[(colour + again) % len(DASHES)]}


def draw_line(
    ax: Axes,
    x: ArrayLike,
    y: ArrayLike,
    k: int,
    band: Iterable[ArrayLike] | None = None,
    *,
    step: Literal["post"] | None = None,
    log: bool = False,
    alpha: float = 0.18,
    **options: Any,
) -> None:
    """Draw a line in the style of number k, and shade the ``band`` between two curves (low, high).

    On a logarithmic axis (``log``), a line of zero or less has a gap, and a band ends at a tenth of the line.
    """
    line, low, high = np.array([y, *((y, y) if band is None else band)], dtype=float)
    if log:
        low, line = np.where(low > 0, low, line / 10), np.where(line > 0, line, np.nan)  # 0 has no logarithm
    ax.plot(x, line, drawstyle=f"steps-{step}" if step else "default", **line_style(k) | options)
    if band is not None:
        ax.fill_between(x, low, high, step=step, alpha=alpha, linewidth=0, color=line_style(k)["color"])


def add_note(ax: Axes, text: str, at: Iterable[Any], offset: tuple[float, float] = (0, 0), **options: Any) -> None:
    """Write a text at an offset (points) from the point ``at``, centred unless ``options`` say otherwise."""
    options = {"ha": "center", "va": "center", "textcoords": "offset points"} | options
    ax.annotate(text, tuple(at), offset, **options)


def remove_ticks(ax: Axes) -> None:
    """Remove the ticks, grid and frame of axes."""
    ax.set(xticks=[], yticks=[])
    ax.grid(visible=False)
    ax.spines[:].set_visible(False)


def add_legend_above(ax: Axes, columns: int, least: int = 2) -> None:
    """Put a legend above the axes if there are at least ``least`` labels."""
    if len(ax.get_legend_handles_labels()[1]) >= least:
        ax.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=columns, borderaxespad=0.2)


def merge_legends(fig: Figure, axes: Iterable[Axes], columns: int, loc: Any = "upper center", **options: Any) -> None:
    """Put one legend for several axes at the rim of the figure, with one entry per label."""
    handles = {text: mark for ax in axes for mark, text in zip(*ax.get_legend_handles_labels(), strict=True)}
    options |= {"loc": f"outside {loc}", "ncols": min(len(handles), columns)}
    fig.legend(list(handles.values()), list(handles), **options)


def set_whole_ticks(axis: Axis, steps: Sequence[float] = (1, 2, 2.5, 5, 10)) -> None:
    """Put the ticks of an axis at whole numbers only."""
    axis.set_major_locator(MaxNLocator("auto", steps=steps, integer=True))


def readable_name(name: object) -> str:
    """Return a readable label for the name of a column, without underscores and in British spelling."""
    return str(name).replace("p_median", "p-median").replace("_", " ").replace("utiliz", "utilis")


def legend_marker(label: str, **options: Any) -> Line2D:
    """Return a symbol or line without data, to be an entry of a legend."""
    return Line2D([], [], label=label, **options)
