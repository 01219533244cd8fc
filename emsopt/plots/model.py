"""The hypercube model: utilisation of units, error of the approximation, and the correction factor."""

from .. import _validate
from ..maps import _shading
from ._frames import words
from ._style import figure, look, styled


@styled
def utilization(evaluations, ax=None):
    """Draw the utilisation of units by station.

    Parameters
    ----------
    evaluations : Evaluation or dict of str to Evaluation
        Stations without a unit in an evaluation have no bar there; colocated units have one bar each.
    ax : matplotlib Axes or empty Figure, optional

    Returns
    -------
    fig, ax
    """
    named = _shading.named_evaluations(None, evaluations)
    bars = {}  # (site, rank of the unit there) -> {evaluation: utilisation}
    names = {}
    for name, evaluation in named.items():
        seen = {}
        for site, title, busy in zip(
            evaluation.sites.tolist(), evaluation.site_names, evaluation.utilizations, strict=True
        ):
            seen[site] = seen.get(site, 0) + 1
            bars.setdefault((site, seen[site]), {})[name] = float(busy)
            names[site, seen[site]] = title if seen[site] == 1 else f"{title} ({seen[site]})"
    rows = sorted(bars)
    fig, ax = figure(ax, (8, 1.4 + 0.3 * len(rows) * max(1, 0.75 * len(named))))
    thickness = 0.8 / len(named)
    for k, name in enumerate(named):
        places = [row + (k - (len(named) - 1) / 2) * thickness for row, key in enumerate(rows) if name in bars[key]]
        busy = [100 * bars[key][name] for key in rows if name in bars[key]]
        ax.barh(places, busy, 0.9 * thickness, color=look(k)["color"], label=name)
        mean = 100 * float(named[name].utilizations.mean())
        ax.axvline(mean, linewidth=1.3, **look(k))
    ax.set_yticks(range(len(rows)), [names[key] for key in rows])
    ax.invert_yaxis()
    ax.grid(visible=False, axis="y")
    ax.tick_params(axis="y", length=0)
    ax.set(xlabel="Time busy (%); line: mean of the fleet", xlim=(0, None))
    if len(named) > 1:
        ax.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=len(named), borderaxespad=0.2)
    return fig, ax


@styled
def approximation_error(frame, ax=None, *, load="utilization", group="geometry", error="error_min", claimed=0.002):
    """Draw box plots of the error of the approximate hypercube (the papers' Figure 7).

    There is one box per load and type of city.

    Parameters
    ----------
    frame : DataFrame
        One row per city: ``load`` (with its unit in the column's name, or a fraction), ``group`` and
        ``error`` (minutes; absolute or signed).
    ax : matplotlib Axes or empty Figure, optional
    load, group, error : str
        Columns.
    claimed : float or None
        Largest error reported in the papers, min, drawn as a line on either side of zero.

    Returns
    -------
    fig, ax
    """
    from matplotlib.patches import Patch

    _validate.columns(frame, (load, group, error))
    loads, groups = sorted(frame[load].unique()), list(dict.fromkeys(frame[group]))
    fig, ax = figure(ax, (8, 5))
    wide = 0.8 / len(groups)
    for k, kind in enumerate(groups):
        colour = look(k)["color"]
        samples = [frame.loc[(frame[load] == x) & (frame[group] == kind), error].to_numpy() for x in loads]
        filled = [(x, sample) for x, sample in enumerate(samples) if len(sample)]
        ax.boxplot(
            [sample for _, sample in filled],
            positions=[x + (k - (len(groups) - 1) / 2) * wide for x, _ in filled],
            widths=0.8 * wide,
            manage_ticks=False,
            patch_artist=True,
            boxprops={"facecolor": colour, "alpha": 0.55, "edgecolor": colour},
            medianprops={"color": "black", "linewidth": 1.6},
            whiskerprops={"color": colour, "linewidth": 1.3},
            capprops={"color": colour, "linewidth": 1.3},
            flierprops={"marker": ".", "markersize": 5, "markeredgecolor": colour},
        )
    handles = [Patch(color=look(k)["color"], alpha=0.55, label=str(g)) for k, g in enumerate(groups)]
    if claimed is not None:
        label = f"papers: within {claimed:g} min"
        handles.append(ax.axhline(claimed, color="#333", linestyle="--", linewidth=1.3, label=label))
        if (frame[error] < 0).any():
            ax.axhline(-claimed, color="#333", linestyle="--", linewidth=1.3)
    ax.set_xticks(range(len(loads)), [f"{x:g}" for x in loads])
    ax.set(xlabel=words(load).capitalize(), ylabel="Error of the mean response (min)")
    if (frame[error] >= 0).all():
        ax.set_ylabel("Absolute error of the mean response (min)")
    ax.grid(visible=False, axis="x")
    ax.legend(handles=handles)
    return fig, ax


@styled
def correction_factor(frame, ax=None):
    """Draw the correction factor Q(p, ρ, r) against the number r of busier choices, for several utilisations.

    Parameters
    ----------
    frame : DataFrame, shape (p, K)
        The index is r = 0, 1, ..., p - 1, the number of preferred units that are busy; columns are the
        utilisations ρ.
    ax : matplotlib Axes or empty Figure, optional

    Returns
    -------
    fig, ax
    """
    fig, ax = figure(ax, (8, 5))
    colours = _shading.colours(len(frame.columns) + 2)[2:]  # the palest colours are invisible on white
    ax.axhline(1, color="#555", linewidth=1.2, linestyle=":")
    for k, (rho, colour) in enumerate(zip(frame.columns, colours, strict=True)):
        marker = "osD^vPX"[k % 7]
        ax.plot(frame.index, frame[rho], color=colour, marker=marker, markersize=6, label=f"ρ = {rho:g}")
    ax.xaxis.get_major_locator().set_params(integer=True)
    ax.set(xlabel="Preferred units that are busy, r", ylabel="Correction factor Q(p, ρ, r), no unit")
    if frame.to_numpy().min() > 0 and frame.to_numpy().max() > 10 * frame.to_numpy().min():
        ax.set_yscale("log")
        ax.yaxis.get_major_locator().set_params(subs=(1, 2, 5))
        ax.yaxis.set_major_formatter("{x:g}")
        ax.yaxis.set_minor_formatter("")
    ax.legend(title="utilisation")
    return fig, ax
