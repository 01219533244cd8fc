"""Optimizers: minimum cuts, trust regions, and regret with its bounds."""

from itertools import combinations

import numpy as np

from .. import _validate
from ..errors import InputError
from ..maps import _shading
from ..optimizers.regret import confidence_band
from ._style import figure, look, panels, styled

SOURCE_SIDE, SINK_SIDE, CUT = _shading.SEQUENTIAL[2], _shading.CATEGORIES[1], _shading.LINES
CENTRE, INSIDE, OUTSIDE = _shading.CATEGORIES[4], _shading.CATEGORIES[1], _shading.SEQUENTIAL[0]

PROPOSED = {
    "markersize": 44,
    "markerfacecolor": "none",
    "markeredgecolor": _shading.CATEGORIES[0],
    "markeredgewidth": 2.6,
}


@styled
def cut_graph(A, b, x=None, ax=None, *, capacities="corrected"):
    r"""Draw the graph whose minimum cut minimises xᵀA x + bᵀx (Example 7 of "... in Spatial Queues", its Figure 1).

    Places on the source's side have x_i = 0, on the sink's x_i = 1. Two places are joined by \|A_ij|. The terminal
    capacities are b_i + Σ_j A_ij, from the source if positive, else to the sink; the papers print b_i alone, whose
    cut need not be the minimum. Example 7 does not show it: its minimiser is the same. The second example does, with
    its b changed to (3, 2, -7).

    Parameters
    ----------
    A : array_like, shape (n, n)
        Symmetric, no entry positive; the diagonal is ignored. Legible up to about six places.
    b : array_like, shape (n,)
    x : array_like of 0 and 1, shape (n,), optional
        The cut to mark. Default: the minimum cut.
    ax : matplotlib Axes or empty Figure, optional
        For "both" a sequence of two Axes.
    capacities : {"corrected", "printed", "both"}

    Returns
    -------
    fig, ax
        For "both" ``ax`` holds two, the papers' graph first.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> A = [[0, -2, -3], [-2, 0, -1], [-3, -1, 0]]
    >>> fig, ax = cut_graph(A, [9, 8, -7], ax=Figure())
    >>> print(ax.get_xlabel())
    x = (0, 0, 1), cut 3 + 1 = 4
    f(x) = cut - capacity into t = 4 - 11 = -7
    >>> fig, axes = cut_graph(A, [3, 2, -7], ax=Figure(), capacities="both")
    """
    from ..optimizers.deployments.binary_quadratic import minimum_cut

    _validate.choice(capacities, "capacities", ("corrected", "printed", "both"))
    b = _validate.real_array(b, "b", (None,))
    A = np.array(_validate.real_array(A, "A", (len(b), len(b))))
    np.fill_diagonal(A, 0)
    if not np.array_equal(A, A.T) or (A > 0).any():
        raise InputError(
            "`A` must be symmetric with no positive entry, since otherwise no cut minimises it. Pass (A + "
            "Aᵀ) / 2 of its negative part."
        )
    if x is not None:
        x = _validate.real_array(x, "x", b.shape)
        if not np.isin(x, (0, 1)).all():
            raise InputError(f"`x` must hold zeros and ones; got {x}.")
    kinds = ("printed", "corrected") if capacities == "both" else (capacities,)
    fig, axes = panels(ax, len(kinds), (5.6, 1.4 + 1.25 * len(b)))
    for kind, panel in zip(kinds, axes, strict=True):
        linear = b if kind == "printed" else b + A.sum(axis=1)
        side = minimum_cut(A, linear - A.sum(axis=1))[0] if x is None else x.astype(int)
        _draw_cut(panel, A, linear, side)
        panel.set_title("Corrected capacities" if kind == "corrected" else "Capacities as printed")
        panel.set_xlabel(_cut_sum(A, b, linear, side))
    _sides_legend(axes[0])
    return fig, axes if capacities == "both" else axes[0]


def _draw_cut(ax, A, linear, x):
    """Draw places between source and sink, the edges with their capacities, and those cut in colour."""
    n = len(linear)
    heights = np.arange(n)[::-1] - (n - 1) / 2
    places = np.column_stack([np.where(np.arange(n) % 2, 0.75, -0.75), heights])
    source, sink = np.array([-2.6, 0.0]), np.array([2.6, 0.0])
    for i in range(n):
        for j in range(i + 1, n):
            if A[i, j]:
                _edge(ax, places[i], places[j], -A[i, j], cut=x[i] != x[j], at=0.5 if j - i == 1 else 0.38)
        if linear[i] > 0:
            _edge(ax, source, places[i], linear[i], cut=x[i] == 1, arrow=True, at=0.36)
        elif linear[i] < 0:
            _edge(ax, places[i], sink, -linear[i], cut=x[i] == 0, arrow=True, at=0.64)
    for point, name, taken in [(source, "s", 0), (sink, "t", 1)]:
        _node(ax, point, name, SINK_SIDE if taken else SOURCE_SIDE, shape="s")
    for i, point in enumerate(places):
        _node(ax, point, f"{i + 1}", SINK_SIDE if x[i] else SOURCE_SIDE)
    ax.set(xlim=(-3, 3), ylim=(heights.min() - 0.5, heights.max() + 0.5), xticks=[], yticks=[])
    ax.grid(visible=False)
    ax.spines[:].set_visible(False)


def _edge(ax, start, end, capacity, *, cut, arrow=False, at=0.5):
    """Draw an edge labelled with its capacity, between two nodes."""
    ax.annotate(
        "",
        end,
        start,
        arrowprops={
            "arrowstyle": "-|>" if arrow else "-",
            "color": CUT if cut else "#888",
            "linewidth": 3 if cut else 1.4,
            "linestyle": "--" if cut else "-",
            "shrinkA": 14,
            "shrinkB": 14,
            "mutation_scale": 16,
        },
        zorder=1,
    )
    ax.text(
        *(start + at * (end - start)),
        f"{capacity:.4g}",
        ha="center",
        va="center",
        color=CUT if cut else "#333",
        weight="bold" if cut else "normal",
        bbox={"boxstyle": "round,pad=0.15", "facecolor": "white", "edgecolor": "none"},
        zorder=2,
    )


def _node(ax, point, name, colour, shape="o"):
    ax.plot(*point, shape, markersize=26, markerfacecolor=colour, markeredgecolor="#333", zorder=3)
    ax.text(*point, name, ha="center", va="center_baseline", zorder=4)


def _cut_sum(A, b, linear, x):
    """Return a description of the cut and of the value of the function."""
    inner = [-A[i, j] for i in range(len(b)) for j in range(i + 1, len(b)) if x[i] != x[j] and A[i, j]]
    outer = [abs(v) for v, taken in zip(linear, x, strict=True) if (v > 0 and taken) or (v < 0 and not taken)]
    terms, offset = outer + inner, -np.minimum(linear, 0).sum()
    cut, reached = sum(terms), x @ A @ x + b @ x
    total = f"{' + '.join(f'{term:.4g}' for term in terms)} = {cut:.4g}" if len(terms) > 1 else f"{cut:.4g}"
    agrees = abs(cut - offset - reached) < 1e-9 * max(1, np.abs(b).sum())
    claim = f"{'f(x) = ' if agrees else ''}cut - capacity into t = {cut:.4g} - {offset:.4g} = {cut - offset:.4g}"
    return f"x = ({', '.join(map(str, x))}), cut {total}\n{claim}" + ("" if agrees else f", but f(x) = {reached:.4g}")


def _sides_legend(ax):
    from matplotlib.lines import Line2D

    dot = {"marker": "o", "markersize": 11, "linestyle": "none", "markeredgecolor": "#333"}
    handles = [
        Line2D([], [], markerfacecolor=SOURCE_SIDE, label="x = 0, with s", **dot),
        Line2D([], [], markerfacecolor=SINK_SIDE, label="x = 1, with t", **dot),
        Line2D([], [], color=CUT, linewidth=3, linestyle="--", label="cut"),
    ]
    ax.legend(handles=handles, loc="lower left", borderaxespad=0, handlelength=1.6, fontsize=10)


# -- trust regions --------------------------------------------------------------------------------------------------


@styled
def trust_region(
    deployments,
    centre,
    edge,
    ax=None,
    *,
    values=None,
    proposal=None,
    optimum=None,
    units="min",
    title=None,
    legend=True,
):
    """Draw a small solution space around the centre of a trust region (Figure 2 of "... in Spatial Queues").

    Each ring outwards is one more relocated unit, or two more in Hamming distance; lines are single
    relocations. Only deployments with p units are drawn. They are labelled by their sites (numbered from 1)
    if a string of counts would not fit. Legible up to about forty deployments.

    Parameters
    ----------
    deployments : array_like of int, shape (K, N)
        All deployments, as numbers of units at each site.
    centre : int
        Row of the region's centre.
    edge : float
        d, the largest Hamming distance in the region.
    ax : matplotlib Axes or empty Figure, optional
    values : dict of int to float, optional
        Values of the deployments evaluated, by row.
    proposal : int or (int, str), optional
        Row to be evaluated next, with an optional label such as its expected improvement.
    optimum : int, optional
        Row to mark with a square.
    units : str
        Unit of the values.
    title : str, optional
    legend : bool

    Returns
    -------
    fig, ax
    """
    counts = _validate.real_array(deployments, "deployments", (None, None), low=0).astype(int)
    last = len(counts) - 1
    centre = _validate.whole_number(centre, "centre", 0, last)
    edge = _validate.positive_number(edge, "edge")
    if proposal is not None:
        k, words = proposal if np.iterable(proposal) else (proposal, "next")
        proposal = _validate.whole_number(k, "proposal", 0, last), words
    apart = np.abs(counts[:, None] - counts).sum(axis=2) // 2  # units moved
    places, radii = _rings(apart, centre)
    reach = radii[-1] + 0.45
    fig, ax = figure(ax, (1.75 * reach, 1.75 * reach + 0.9))
    _draw_region(ax, radii, edge)
    for i, j in zip(*np.nonzero(apart == 1), strict=True):
        if apart[centre, j] == apart[centre, i] + 1:
            ax.plot(*places[[i, j]].T, color="#ccc", linewidth=0.9, zorder=1)
    for k, count in enumerate(counts):
        known = values is not None and k in values
        colour = CENTRE if k == centre else INSIDE if 2 * apart[centre, k] <= edge else OUTSIDE
        _deployment(ax, places[k], count, colour, known, square=k == optimum)
        if known:
            _note(ax, places[k], f"{values[k]:.2f} {units}")
    if proposal is not None:
        ax.plot(*places[proposal[0]], "o", **PROPOSED, zorder=4)
        _note(ax, places[proposal[0]], proposal[1], colour=PROPOSED["markeredgecolor"])
    ax.set(xlim=(-reach, reach), ylim=(-reach, reach), xticks=[], yticks=[], aspect="equal")
    ax.grid(visible=False)
    ax.spines[:].set_visible(False)
    ax.set_title(title or f"Trust region of edge length d = {edge:g}")
    if legend:
        ax.legend(handles=_region_legend(), loc="upper center", bbox_to_anchor=(0.5, 0), ncols=3, fontsize=10)
    return fig, ax


def _rings(apart, centre):
    """Return positions, shape (K, 2), on rings around the centre, and the radii of the rings."""
    places, radii = np.zeros((len(apart), 2)), [0.0]
    for moved in range(1, apart[centre].max() + 1):
        ring = np.flatnonzero(apart[centre] == moved)
        radii.append(max(radii[-1] + 1, 0.8 * len(ring) / (2 * np.pi)))
        order, left = list(ring[:1]), list(ring[1:])
        while left:  # next comes the most similar deployment
            near = min(left, key=lambda k: (apart[k, order[-1]], k))
            order.append(near)
            left.remove(near)
        angles = np.pi / 2 - 2 * np.pi * (np.arange(len(order)) + (0.5 if moved % 2 else 0)) / max(len(order), 1)
        places[order] = radii[-1] * np.column_stack([np.cos(angles), np.sin(angles)])
    return places, np.array(radii)


def _draw_region(ax, radii, edge):
    from matplotlib.patches import Circle

    for radius in radii[1:]:
        ax.add_patch(Circle((0, 0), radius, fill=False, edgecolor="#bbb", linestyle=":", linewidth=1, zorder=0))
    inside = radii[min(int(edge // 2), len(radii) - 1)] + 0.42
    ax.add_patch(Circle((0, 0), inside, facecolor=INSIDE, alpha=0.12, edgecolor="none", zorder=0))


def _region_legend():
    from matplotlib.lines import Line2D

    looks = {
        "centre": {"markerfacecolor": CENTRE, "markeredgecolor": "#999"},
        "in the region": {"markerfacecolor": INSIDE, "markeredgecolor": "#999"},
        "outside": {"markerfacecolor": OUTSIDE, "markeredgecolor": "#999"},
        "evaluated": {"markerfacecolor": "none", "markeredgecolor": "#222", "markeredgewidth": 2},
        "proposed": PROPOSED | {"markersize": 13},
        "optimum": {"marker": "s", "markerfacecolor": "none", "markeredgecolor": "#999"},
    }
    base = {"marker": "o", "markersize": 11, "linestyle": "none"}
    return [Line2D([], [], label=name, **(base | style)) for name, style in looks.items()]


def _deployment(ax, point, count, colour, known, *, square):
    """Draw a deployment with its counts; only evaluated ones have a bold rim."""
    rim = {"markeredgecolor": "#222" if known else "#999", "markeredgewidth": 2 if known else 0.8}
    ax.plot(*point, "s" if square else "o", markersize=36, markerfacecolor=colour, zorder=3, **rim)
    dark = colour == CENTRE
    words = "".join(map(str, count)) if len(count) <= 6 else ",".join(map(str, np.flatnonzero(count) + 1))
    ax.text(*point, words, ha="center", va="center", fontsize=9, color="white" if dark else "black", zorder=5)


def _note(ax, point, words, *, colour="#222"):
    ax.annotate(
        words,
        point,
        (0, -24),
        textcoords="offset points",
        ha="center",
        va="top",
        fontsize=10,
        color=colour,
        weight="bold",
        bbox={"boxstyle": "round,pad=0.1", "facecolor": "white", "edgecolor": "none", "alpha": 0.85},
        zorder=6,
    )


@styled
def example_13(ax=None):
    """Draw the papers' Example 13 step by step: GP-pM places two units on five sites.

    Values and expected improvements are as printed; the paper does not give the city.

    Parameters
    ----------
    ax : empty Figure or sequence of four Axes, optional

    Returns
    -------
    fig, axes
    """
    rows = np.array([[i in pair for i in range(5)] for pair in combinations(range(5), 2)], dtype=int)
    row = {"".join(map(str, count)): k for k, count in enumerate(rows)}
    told = {row["10100"]: 6.31, row["00101"]: 5.28, row["00110"]: 7.45}
    more = told | {row["10001"]: 4.71}
    steps = [
        ("1  Three at random; centre by (16)", told, None),
        ("2  Propose by expected improvement", told, (row["10001"], "EI 0.08 min")),
        ("3  Evaluate, learn, propose again", more, (row["01001"], "EI 0.19 min")),
        ("4  Evaluate: the optimum", more | {row["01001"]: 4.15}, None),
    ]
    fig, axes = panels(ax, len(steps), (4.5, 5.2))
    for panel, (title, values, proposal) in zip(axes, steps, strict=True):
        trust_region(
            rows,
            row["00101"],
            2,
            panel,
            values=values,
            proposal=proposal,
            optimum=row["01001"],
            title=title,
            legend=False,
        )
    if len(fig.axes) == len(steps):
        fig.legend(handles=_region_legend(), loc="outside lower center", ncols=6)
    return fig, axes


# -- regret ---------------------------------------------------------------------------------------------------------


@styled
def regret_curves(curves, ax=None, *, bounds=None, label="Cumulative regret (min)", against="Evaluations", log=None):
    """Draw the mean and 95 % band of regret over replications, with theoretical bounds.

    Parameters
    ----------
    curves : array_like of shape (R, T), or dict of str to these
        For example from `emsopt.optimizers.regret.empirical_regret`.
    ax : matplotlib Axes or empty Figure, optional
    bounds : dict of str to array_like, optional
        A bound at 1, 2, ..., shape (T,): `emsopt.optimizers.regret.sparbl_bound`, or `emsopt.optimizers.regret.gp_pm_bound` (which is of
        average regret, over restarts). Drawn in grey.
    label, against : str
        Labels of the axes: the quantity with unit, and the horizontal axis.
    log : bool, optional
        Logarithmic axes, which omit zeros. Default: if a bound is more than ten times all regret.

    Returns
    -------
    fig, ax
    """
    named = curves if isinstance(curves, dict) else {"": curves}
    bands = {name: confidence_band(rows) for name, rows in named.items()}
    limits = {name: _validate.real_array(line, name, (None,)) for name, line in (bounds or {}).items()}
    highest = max(mean.max() for mean, _, _ in bands.values())
    if log is None:
        log = any(line.max() > 10 * highest > 0 for line in limits.values())
    fig, ax = figure(ax, (8, 5))
    for k, (name, (mean, low, high)) in enumerate(bands.items()):
        steps, runs = np.arange(1, len(mean) + 1), len(named[name])
        title = f"{name} (mean of {runs} runs, 95 %)" if runs > 1 else name
        ax.plot(steps, _positive(mean) if log else mean, label=title.strip() or None, **look(k))
        if runs > 1:
            low = np.where(low > 0, low, mean / 10) if log else low  # a logarithmic axis needs positive values
            ax.fill_between(steps, low, high, alpha=0.18, linewidth=0, color=look(k)["color"])
    for k, (name, line) in enumerate(limits.items()):
        ax.plot(
            np.arange(1, len(line) + 1),
            _positive(line) if log else line,
            label=name,
            color="#777",
            linestyle=("--", ":", "-.")[k % 3],
            linewidth=1.8,
        )
    if log:
        ax.set(xscale="log", yscale="log")
    ax.set(xlabel=against, ylabel=label)
    ax.margins(x=0)
    if ax.get_legend_handles_labels()[0]:
        ax.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2, borderaxespad=0.2)
    return fig, ax


def _positive(line):
    return np.where(line > 0, line, np.nan)
