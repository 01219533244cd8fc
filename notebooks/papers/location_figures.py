"""Figures of "Optimizing Server Locations in Spatial Queues": minimum cuts, trust regions, steps, errors."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.patches import Circle, Patch

from emsopt.errors import _validate
from emsopt.errors import InputError
from emsopt.maps import _colours
from emsopt.optimizers.deployments.binary_quadratic import minimum_cut
from emsopt.plots._style import (
    AxLike,
    Style,
    remove_ticks,
    figure,
    line_style,
    add_note,
    legend_marker,
    panels,
    merge_legends,
    common_style,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pandas as pd
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    from emsopt.errors._types import ArrayLike, FloatArray, IntArray
    from emsopt.plots._style import AxesArray

SOURCE_SIDE, SINK_SIDE, CUT = _colours.SEQUENTIAL_COLOURS[2], _colours.CATEGORY_COLOURS[1], _colours.LINE_COLOUR
CENTRE, INSIDE, OUTSIDE = _colours.CATEGORY_COLOURS[4], _colours.CATEGORY_COLOURS[1], _colours.SEQUENTIAL_COLOURS[0]

BLUE = _colours.CATEGORY_COLOURS[0]
MODEL, ACQUISITION = _colours.CATEGORY_COLOURS[:2]
CUT_LINE: Style = {"color": CUT, "linewidth": 3, "linestyle": "--"}
NEXT: Style = {"markersize": 44, "markerfacecolor": "none", "markeredgecolor": BLUE, "markeredgewidth": 2.6}
UNKNOWN: Style = {"markeredgecolor": "#999", "markeredgewidth": 0.8}


@common_style()
def cut_graph(A: ArrayLike, b: ArrayLike) -> tuple[Figure, AxesArray]:
    """Draw two graphs for minimising f(x) = xᵀA x + bᵀx over vectors x of zeros and ones by a minimum cut.

    The first has the capacities that the paper prints, the second has corrected ones, whose minimum cut always gives a
    minimiser. Example 7 and Figure 1 of "Optimizing Server Locations in Spatial Queues".

    Places on the side of the source s have x_i = 0, those on the side of the sink t have x_i = 1. The edge between two
    places has capacity -A_ij. The terminal capacity of place i is the absolute value of b_i + Σ_j A_ij, on an edge from
    the source if the sum is positive, else on an edge to the sink. The paper prints b_i in place of this sum, and the
    minimum cut of that graph need not minimise f. Both graphs give the same x for the paper's Example 7, but not with
    b = (3, 2, -7), the second example below.

    Parameters
    ----------
    A : array_like, shape (n, n)
        Coefficients of the products x_i x_j: symmetric, without positive entries off the diagonal. The diagonal is
        taken as 0; add it to ``b``. The drawing is legible up to about six places.
    b : array_like, shape (n,)
        Linear coefficients.

    Returns
    -------
    fig, axes
        Two axes: the graph with the paper's capacities, and the graph with the corrected ones.

    Examples
    --------
    >>> A = [[0, -2, -3], [-2, 0, -1], [-3, -1, 0]]
    >>> fig, (printed, corrected) = cut_graph(A, [9, 8, -7])
    >>> print(corrected.get_xlabel())
    x = (0, 0, 1), cut 3 + 1 = 4
    f(x) = cut - capacity into t = 4 - 11 = -7
    >>> fig, (printed, corrected) = cut_graph(A, [3, 2, -7])
    >>> print(printed.get_xlabel())
    x = (0, 0, 1), cut 3 + 1 = 4
    cut - capacity into t = 4 - 7 = -3, but f(x) = -7
    """
    b = _validate.real_array(b, "b", (None,))
    A = np.array(_validate.real_array(A, "A", (len(b), len(b))))
    np.fill_diagonal(A, 0)
    if not np.array_equal(A, A.T) or (A > 0).any():
        raise InputError(
            "`A` must be symmetric without positive entries off its diagonal. Otherwise no cut minimises the function."
        )
    graphs = {"Capacities as printed": b, "Corrected capacities": b + A.sum(axis=1)}
    fig, axes = panels(len(graphs), (5.6, 1.4 + 1.25 * len(b)))
    for panel, (title, linear) in zip(axes, graphs.items(), strict=True):
        side, _ = minimum_cut(A, linear - A.sum(axis=1))
        cut = _draw_cut(panel, A, linear, side)
        panel.set(title=title, xlabel=_cut_sum(A, b, linear, side, cut))
    dot = {"marker": "o", "markersize": 11, "linestyle": "none", "markeredgecolor": "#333"}
    handles = [
        legend_marker("x = 0, with s", markerfacecolor=SOURCE_SIDE, **dot),
        legend_marker("x = 1, with t", markerfacecolor=SINK_SIDE, **dot),
        legend_marker("cut", **CUT_LINE),
    ]
    axes[0].legend(handles=handles, loc="lower left", borderaxespad=0, handlelength=1.6, fontsize=10)
    return fig, axes


def _draw_cut(ax: Axes, A: FloatArray, linear: FloatArray, x: IntArray) -> list[float]:
    """Draw places between source and sink, and the edges with their capacities; return those of the cut."""
    n = len(linear)
    heights = np.arange(n)[::-1] - (n - 1) / 2
    places = np.column_stack([np.where(np.arange(n) % 2, 0.75, -0.75), heights])
    source, sink = np.array([-2.6, 0.0]), np.array([2.6, 0.0])
    inner, outer = [], []
    for i, j in zip(*np.triu(A, 1).nonzero(), strict=True):
        inner.append((places[i], places[j], -A[i, j], x[i] != x[j], "-", 0.5 if j - i == 1 else 0.38))
    for i in np.flatnonzero(linear):
        start, end, at = (source, places[i], 0.36) if linear[i] > 0 else (places[i], sink, 0.64)
        outer.append((start, end, abs(linear[i]), x[i] == (linear[i] > 0), "-|>", at))
    box = {"boxstyle": "round,pad=0.15", "facecolor": "white", "edgecolor": "none"}
    for start, end, capacity, cut, arrow, at in inner + outer:
        line = {"arrowstyle": arrow, "shrinkA": 14, "shrinkB": 14, "mutation_scale": 16}
        line |= CUT_LINE if cut else {"color": "#888", "linewidth": 1.4}
        ax.annotate("", tuple(end), tuple(start), arrowprops=line, zorder=1)
        text: Style = {"color": CUT, "weight": "bold"} if cut else {"color": "#333"}
        add_note(ax, f"{capacity:.4g}", start + at * (end - start), bbox=box, zorder=2, **text)
    for k, (point, with_sink) in enumerate(zip([source, sink, *places], [0, 1, *x], strict=True)):
        colour = SINK_SIDE if with_sink else SOURCE_SIDE
        shape, name = ("s", "st"[k]) if k < 2 else ("o", str(k - 1))
        ax.plot(*point, shape, markersize=26, markerfacecolor=colour, markeredgecolor="#333", zorder=3)
        add_note(ax, name, point, va="center_baseline", zorder=4)
    remove_ticks(ax)
    ax.set(xlim=(-3, 3), ylim=(heights.min() - 0.5, heights.max() + 0.5))
    return [capacity for _, _, capacity, cut, *_ in outer + inner if cut]


def _cut_sum(A: FloatArray, b: FloatArray, linear: FloatArray, x: IntArray, terms: list[float]) -> str:
    """Return a text: x, the capacity of the cut as a sum of ``terms``, and f(x) as that capacity minus a constant.

    ``linear`` holds the terminal capacities, positive for edges from the source; the constant is the sum of those into
    the sink. If the difference is not f(x), as with printed capacities, the text gives both numbers.
    """
    cut, into, reached = sum(terms), -np.minimum(linear, 0).sum(), x @ A @ x + b @ x
    total = f"{' + '.join(f'{term:.4g}' for term in terms)} = {cut:.4g}" if len(terms) > 1 else f"{cut:.4g}"
    claim = f"cut - capacity into t = {cut:.4g} - {into:.4g} = {cut - into:.4g}"
    agrees = abs(cut - into - reached) < 1e-9 * max(1, np.abs(b).sum())
    claim = f"f(x) = {claim}" if agrees else f"{claim}, but f(x) = {reached:.4g}"
    return f"x = ({', '.join(map(str, x))}), cut {total}\n{claim}"


# -- trust regions --------------------------------------------------------------------------------------------------


@common_style()
def trust_region(
    deployments: ArrayLike,
    centre: int,
    edge: float,
    ax: AxLike = None,
    *,
    values: Mapping[int, float] | None = None,
    proposal: int | tuple[int, str] | None = None,
    optimum: int | None = None,
    legend: bool = True,
) -> tuple[Figure, Axes]:
    """Draw all deployments of a small problem on rings around the centre of a trust region.

    Figure 2 of "Optimizing Server Locations in Spatial Queues". Each ring outwards stands for one more unit relocated
    from the centre, which is two more in Hamming distance (the sum over sites of absolute differences in units). Lines
    join deployments on neighbouring rings that differ by one relocation. Only deployments with p units are drawn. Their
    labels are the numbers of units at the sites, or the occupied sites (numbered from 1) if there are more than six
    sites. The drawing is legible up to about forty deployments.

    Parameters
    ----------
    deployments : array_like of int, shape (K, N)
        All deployments, as numbers of units at each site.
    centre : int
        Row of ``deployments`` that is the region's centre.
    edge : float
        Edge length d of the region: its deployments lie within Hamming distance d of the centre.
    values : dict of int to float, optional
        Values of the deployments evaluated (min), by row.
    proposal : int or (int, str), optional
        Row to be evaluated next, with an optional label such as its expected improvement.
    optimum : int, optional
        Row to mark with a square.
    legend : bool
        Whether to explain the symbols below the axes.

    Examples
    --------
    >>> import emsopt as eo
    >>> fig, ax = trust_region([[0, 1], [0, 2], [1, 2]], 0, 1.0)
    >>> len(ax.texts) > 0
    True
    """
    counts = _validate.real_array(deployments, "deployments", (None, None), low=0).astype(int)
    known, last = values or {}, len(counts) - 1
    centre = _validate.whole_number(centre, "centre", 0, last)
    edge = _validate.positive_number(edge, "edge")
    distances = np.abs(counts[:, None] - counts).sum(axis=2) // 2  # units moved: each changes two counts
    places, radii = _rings(distances, centre)
    reach = radii[-1] + 0.45
    fig, ax = figure((1.75 * reach, 1.75 * reach + 0.9), ax)
    for radius in radii[1:]:
        ax.add_patch(Circle((0, 0), radius, fill=False, edgecolor="#bbb", linestyle=":", zorder=0))
    inside = radii[min(int(edge // 2), len(radii) - 1)] + 0.42
    ax.add_patch(Circle((0, 0), inside, facecolor=INSIDE, alpha=0.12, edgecolor="none", zorder=0))
    for i, j in zip(*np.nonzero(distances == 1), strict=True):
        if distances[centre, j] == distances[centre, i] + 1:
            ax.plot(*places[[i, j]].T, color="#ccc", linewidth=0.9, zorder=1)
    for k, count in enumerate(counts):
        colour = CENTRE if k == centre else INSIDE if 2 * distances[centre, k] <= edge else OUTSIDE
        rim = {"markeredgecolor": "#222", "markeredgewidth": 2} if k in known else UNKNOWN
        shape = "s" if k == optimum else "o"
        ax.plot(*places[k], shape, markersize=36, markerfacecolor=colour, zorder=3, **rim)
        text = "".join(map(str, count)) if len(count) <= 6 else ",".join(map(str, np.flatnonzero(count) + 1))
        add_note(ax, text, places[k], fontsize=9, color="white" if k == centre else "black", zorder=5)
        if k in known:
            _label(ax, places[k], f"{known[k]:.2f} min")
    if proposal is not None:
        k, text = proposal if np.iterable(proposal) else (proposal, "next")
        place = places[_validate.whole_number(k, "proposal", 0, last)]
        ax.plot(*place, "o", **NEXT, zorder=4)
        _label(ax, place, text, BLUE)
    remove_ticks(ax)
    ax.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal")
    ax.set_title(f"Trust region of edge length d = {edge:g}")
    if legend:
        ax.legend(handles=_region_legend(), loc="upper center", bbox_to_anchor=(0.5, 0), ncols=3, fontsize=10)
    return fig, ax


def _rings(distances: IntArray, centre: int) -> tuple[FloatArray, FloatArray]:
    """Return positions on rings around the centre, (K, 2), and radii, from units moved between deployments, (K, K)."""
    places, radii = np.zeros((len(distances), 2)), [0.0]
    for moved in range(1, distances[centre].max() + 1):
        left = list(np.flatnonzero(distances[centre] == moved))
        radii.append(max(radii[-1] + 1, 0.8 * len(left) / (2 * np.pi)))
        order = left[:1]
        while len(order) < len(left):  # similar deployments become neighbours on the ring, which keeps lines short
            order.append(min(set(left) - set(order), key=lambda k: (distances[k, order[-1]], k)))
        angles = np.pi / 2 - 2 * np.pi * (np.arange(len(order)) + moved % 2 / 2) / max(len(order), 1)
        places[order] = radii[-1] * np.column_stack([np.cos(angles), np.sin(angles)])
    return places, np.array(radii)


def _region_legend() -> list[Line2D]:
    """Return the symbols of a trust region for a legend."""
    base = {"marker": "o", "markersize": 11, "markeredgecolor": "#999", "markerfacecolor": "none"}
    styles: dict[str, Style] = {
        "centre": {"markerfacecolor": CENTRE},
        "in the region": {"markerfacecolor": INSIDE},
        "outside": {"markerfacecolor": OUTSIDE},
        "evaluated": {"markeredgecolor": "#222", "markeredgewidth": 2},
        "proposed": NEXT | {"markersize": 13},
        "optimum": {"marker": "s"},
    }
    return [legend_marker(name, linestyle="none", **(base | style)) for name, style in styles.items()]


def _label(ax: Axes, point: FloatArray, text: str, colour: str = "#222") -> None:
    """Write a text in bold below a deployment."""
    box = {"boxstyle": "round,pad=0.1", "facecolor": "white", "edgecolor": "none", "alpha": 0.85}
    add_note(ax, text, point, (0, -24), color=colour, bbox=box, va="top", fontsize=10, weight="bold", zorder=6)


@common_style()
def example_13() -> tuple[Figure, AxesArray]:
    """Draw four steps of GP-pM, which places two units on five sites.

    Example 13 of "Optimizing Server Locations in Spatial Queues". Mean responses and expected improvements (min) are
    copied from the paper, which does not give the city.

    Examples
    --------
    >>> import emsopt as eo
    >>> fig, axes = example_13()
    >>> axes.size
    4
    """
    rows = np.array([[i in pair for i in range(5)] for pair in combinations(range(5), 2)], dtype=int)
    row = {"".join(map(str, count)): k for k, count in enumerate(rows)}
    told = {row["10100"]: 6.31, row["00101"]: 5.28, row["00110"]: 7.45}
    more = told | {row["10001"]: 4.71}
    steps = [
        ("1  Random; centre by (16)", told, None),
        ("2  Propose by improvement", told, (row["10001"], "EI 0.08")),
        ("3  Learn, propose again", more, (row["01001"], "EI 0.19")),
        ("4  Evaluate: the optimum", more | {row["01001"]: 4.15}, None),
    ]
    fig, axes = panels(len(steps), (3.6, 4.5))
    for panel, (title, values, proposal) in zip(axes, steps, strict=True):
        marks: Style = {"values": values, "proposal": proposal, "optimum": row["01001"], "legend": False}
        trust_region(rows, row["00101"], 2, panel, **marks)
        panel.set_title(title)
    fig.legend(handles=_region_legend(), loc="outside lower center", ncols=6)
    return fig, axes


@common_style()
def search_steps(
    steps: Sequence[pd.DataFrame],
    points: ArrayLike,
    *,
    truth: ArrayLike | None = None,
) -> tuple[Figure, AxesArray]:
    """Draw steps of a search in one variable: the model on the left, the acquisition function on the right.

    Figure 6 of "Optimizing Server Locations in Spatial Queues".

    Parameters
    ----------
    steps : sequence of DataFrame
        One row of the figure per step. The index is x. The columns are "mean" and "deviation", posterior mean and
        standard deviation of the function, and "acquisition", whose maximum is evaluated next.
    points : array_like, shape (t, 2)
        All evaluated points and their values, in order. The last ``len(steps)`` are those that the steps chose: a step
        is drawn with the points before its own.
    truth : array_like, shape of the index, optional
        Values of the function itself.

    Examples
    --------
    >>> import emsopt as eo
    >>> import pandas as pd
    >>> columns = {"mean": [1.0, 0.5, 1.0], "deviation": 0.2, "acquisition": [0.1, 0.3, 0.1]}
    >>> model = pd.DataFrame(columns, index=[0.0, 0.5, 1.0])
    >>> fig, axes = search_steps([model], [(0.0, 1.0), (0.5, 0.5)])
    >>> axes.size
    2
    """
    found = _validate.real_array(points, "points", (None, 2))
    for frame in steps:
        _validate.check_columns(frame, ["mean", "deviation", "acquisition"], "steps")
    first = _validate.whole_number(len(found) - len(steps), "number of points before the first step")
    fig, axes = panels(2 * len(steps), (5.6, 2.2), 2, sharex=True)
    for k, (frame, left, right) in enumerate(zip(steps, axes[::2], axes[1::2], strict=True)):
        x, mean, spread = frame.index, frame["mean"], 2 * frame["deviation"]
        left.fill_between(x, mean - spread, mean + spread, color=MODEL, alpha=0.15, label="± 2 standard deviations")
        if truth is not None:
            left.plot(x, truth, color="#777", linestyle="--", linewidth=1.6, label="true")
        left.plot(x, mean, color=MODEL, label="posterior mean")
        left.plot(*found[: first + k].T, "x", color="#222", markersize=9, markeredgewidth=2.2, label="observed")
        right.fill_between(x, frame["acquisition"], color=ACQUISITION, alpha=0.35)
        right.plot(x, frame["acquisition"], color=ACQUISITION)
        for axis in (left, right):
            axis.axvline(found[first + k, 0], color=_colours.LINE_COLOUR, linewidth=1.8, linestyle="--", label="next")
        left.set_ylabel(f"step {k + 1}")
    axes[0].set_title("Model")
    axes[1].set_title("Acquisition function")
    for axis in axes[-2:]:
        axis.set_xlabel("x")
    merge_legends(fig, axes, 5)
    return fig, axes


MEDIAN = {"color": "black", "linewidth": 1.6}


CLAIMED = 0.002  # upper limit of the mean absolute error that the papers report, min


@common_style()
def approximation_error(table: pd.DataFrame, ax: AxLike = None) -> tuple[Figure, Axes]:
    """Draw box plots of the error in mean response of the approximate hypercube model against the exact one.

    There is one box per load and type of city. Figure 7 of "Optimizing Server Locations in Spatial Queues".

    Parameters
    ----------
    table : DataFrame
        A study "approximation_error_..." from `emsopt.datasets.load_study`.

    Examples
    --------
    >>> import emsopt as eo
    >>> fig, ax = approximation_error(eo.datasets.load_study("approximation_error_15"))
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['plane', 'uniform', 'papers: mean below 0.002 min']
    """
    _validate.check_columns(table, ("load", "geometry", "approximate_min", "exact_min"), "table")
    loads, groups = sorted(table["load"].unique()), list(dict.fromkeys(table["geometry"]))
    errors = (table["approximate_min"] - table["exact_min"]).abs()
    fig, ax = figure(ax=ax)
    wide = 0.8 / len(groups)
    handles: list[Artist] = []
    for k, kind in enumerate(groups):
        colour = line_style(k)["color"]
        line = {"color": colour, "linewidth": 1.3}
        samples = {x: part.to_numpy() for x, part in errors[table["geometry"] == kind].groupby(table["load"])}
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
    ax.set(xlabel="Load", ylabel="Absolute error of the mean response (min)")
    ax.grid(visible=False, axis="x")
    ax.legend(handles=handles)
    return fig, ax
