"""Curves of deployments over load, optimizers over evaluations, and calls over response time."""

import numpy as np

from .. import _validate
from ..errors import InputError
from ..maps import _shading
from ..optimizers.regret import confidence_band
from ._frames import words
from ._style import figure, look, styled

BIN_WIDTHS, MOST_BINS = (0.5, 1, 2, 5, 10, 20, 50, 100), 30  # minutes


@styled
def load_sweep(frame, ax=None, *, label="Mean response (min)"):
    """Draw several deployments against the load or another parameter (the papers' Tables 1 and 3).

    Parameters
    ----------
    frame : DataFrame
        One row per load, as returned by `emsopt.planning.sweeps.load_sweep`: the index is the offered load
        per unit, and each numeric column becomes a line. Columns with "bound" in their name are dashed in
        grey. An index with another name labels the axis with that name.
    ax : matplotlib Axes or empty Figure, optional
    label : str
        Quantity shown, with unit.

    Returns
    -------
    fig, ax
    """
    lines = frame.select_dtypes("number")
    if lines.empty:
        raise InputError(f"there is nothing to draw: the frame has {len(frame)} rows and no column of numbers.")
    loads = lines.index.to_numpy(dtype=float)
    fig, ax = figure(ax, (8, 5))
    for k, name in enumerate(lines.columns):
        bound = "bound" in str(name)
        ax.plot(
            loads,
            lines[name],
            label=words(name),
            marker="" if len(loads) > 25 or bound else "o",
            markersize=6,
            **({"color": "#777", "linestyle": "--"} if bound else look(k)),
        )
    if loads.min() > 0 and loads.max() / loads.min() > 50:
        ax.set_xscale("log")
    ax.set(xlabel=_axis_label(frame.index.name), ylabel=label)
    ax.legend()
    return fig, ax


def _axis_label(name):
    known = {
        None: "Offered load per unit, ρ = λ / (p μ)",
        "offered_load": "Offered load per unit, ρ = λ / (p μ)",
        "service_rate_per_day": "Service rate of a unit, μ (calls per day)",
    }
    return known.get(name) or words(name).capitalize()


@styled
def convergence(
    runs,
    ax=None,
    *,
    band="quartiles",
    against="evaluations",
    reference=None,
    label="Best mean response so far (min)",
):
    """Draw the best value found against the number of evaluations, or against time.

    Parameters
    ----------
    runs : dict of str to runs, or runs
        One run or a list of them, each an optimizer's result or its history (a DataFrame with the best so far in
        ``best`` and the number of evaluations in ``evaluations``, or ``evaluation``, left out if every row is one).
        Or an array of the best so far after each evaluation, shape (T,) or, for several runs, (R, T). Of several the
        median is drawn, with ``band="confidence"`` the mean; a run that ended early keeps its last value.
    ax : matplotlib Axes or empty Figure, optional
    band : {"quartiles", "range", "confidence", None}
        Band around several runs; "confidence" is the 95 % interval of their mean, as in the papers.
    against : {"evaluations", "seconds"}
        Horizontal axis; "seconds" needs a column ``seconds`` in the histories and is drawn on a log scale.
    reference : dict of str to float, optional
        Levels to compare with, such as ``{"optimum": 5.87, "lower bound": 5.33}``.
    label : str
        Quantity shown, with unit.

    Returns
    -------
    fig, ax
    """
    if band is not None:
        _validate.choice(band, "band", ("quartiles", "range", "confidence"))
    _validate.choice(against, "against", ("evaluations", "seconds"))
    named = runs if isinstance(runs, dict) else {"": runs}
    table = {str(name): _runs(values, name, against) for name, values in named.items()}
    fig, ax = figure(ax, (8, 5))
    for k, (name, (steps, values)) in enumerate(table.items()):
        title = f"{name} ({len(values)} runs)" if len(values) > 1 else name
        middle, low, high = _middle_and_band(values, band)
        ax.step(steps, middle, where="post", label=title or None, **look(k))
        if band is not None and len(values) > 1:
            ax.fill_between(steps, low, high, step="post", alpha=0.18, linewidth=0, color=look(k)["color"])
    for name, level in (reference or {}).items():
        ax.axhline(level, color="#555", linewidth=1.2, linestyle=":")
        ax.annotate(
            f"{name} {level:.3g}",
            (0, level),
            xycoords=("axes fraction", "data"),
            xytext=(4, 2),
            textcoords="offset points",
            va="bottom",
            fontsize=10,
            color="#444",
        )
    ax.set(xlabel="Evaluations" if against == "evaluations" else "Time (s)", ylabel=label)
    if against == "seconds":
        ax.set_xscale("log")
    else:
        ax.xaxis.get_major_locator().set_params(integer=True)
    ax.set_xlim(left=min(steps[0] for steps, _ in table.values()))
    if ax.get_legend_handles_labels()[0]:
        ax.legend()
    return fig, ax


def _middle_and_band(values, band):
    """Return the middle line of several runs, values of shape (R, T), and the edges of its band."""
    if band == "confidence" and len(values) > 1:
        return confidence_band(values)
    low, high = np.percentile(values, (0, 100) if band == "range" else (25, 75), axis=0)
    return np.median(values, axis=0), low, high


def _runs(values, name, against):
    """Return the numbers of evaluations or seconds, shape (T,), and the best so far of each run there, (R, T)."""
    frames = [getattr(run, "history", run) for run in (values if isinstance(values, (list, tuple)) else [values])]
    if not frames or (against == "evaluations" and not all(hasattr(frame, "columns") for frame in frames)):
        array = np.atleast_2d(np.asarray(values, dtype=float))
        if array.ndim != 2 or array.size == 0:
            raise InputError(f"the runs of {name!r} must have shape (T,) or (R, T); got {np.shape(values)}.")
        return np.arange(1, array.shape[1] + 1), array
    steps, best = [], []
    for frame in frames:
        _validate.columns(frame, ("best",) if against == "evaluations" else ("best", "seconds"))
        names = [column for column in (against, "evaluation") if column in frame]
        counts = frame[names[0]] if names else np.arange(1, len(frame) + 1)
        steps.append(np.asarray(counts, dtype=float))
        best.append(np.asarray(frame["best"], dtype=float))
    if min(map(len, steps)) == 0:
        raise InputError(f"a history of {name!r} is empty.")
    first = max(count[0] for count in steps)  # from here on every run has a value
    common = np.unique(np.concatenate(steps))
    common = common[common >= first]
    rows = [b[np.searchsorted(count, common, side="right") - 1] for count, b in zip(steps, best, strict=True)]
    return common, np.array(rows)


@styled
def response_distribution(evaluations, ax=None, *, thresholds=(6, 8, 10)):
    """Draw the share of calls with a response time of t or longer, against t.

    Parameters
    ----------
    evaluations : Evaluation or dict of str to Evaluation
    ax : matplotlib Axes or empty Figure, optional
    thresholds : sequence of float
        Minutes to mark; for up to six, the shares are printed.

    Returns
    -------
    fig, ax
    """
    named = _shading.named_evaluations(None, evaluations)
    thresholds = np.sort(np.asarray(thresholds, dtype=float).ravel())
    longest = max(float(e.percentile(99.9)) for e in named.values())
    end = 1.05 * max([longest, *thresholds])
    times = np.linspace(0, end, 600)
    fig, ax = figure(ax, (8, 5))
    for threshold in thresholds:
        ax.axvline(threshold, color="#999", linewidth=1, linestyle=":")
    for k, (name, evaluation) in enumerate(named.items()):
        share, marked = (100 * evaluation.late_fraction(at) for at in (times, thresholds))
        ax.plot(times, share, drawstyle="steps-post", label=name, **look(k))
        ax.plot(thresholds, marked, "o", markersize=6, color=look(k)["color"])
    ax.xaxis.get_major_locator().set_params(steps=[1, 2, 5, 10], integer=True)
    ax.set(
        xlabel="Response time t (min)",
        ylabel="Calls answered in t or later (%)",
        xlim=(0, end),
        ylim=(0, 103),
    )
    if len(named) > 1:
        ax.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=len(named), borderaxespad=0.2)
    if 0 < thresholds.size <= 6:
        _late_table(ax, named, thresholds)
    return fig, ax


@styled
def response_histogram(evaluations, ax=None, *, threshold=8.0):
    """Draw a histogram of response times.

    Parameters
    ----------
    evaluations : Evaluation or dict of str to Evaluation
    ax : matplotlib Axes or empty Figure, optional
    threshold : float
        Minutes to mark.

    Returns
    -------
    fig, ax
    """
    named = _shading.named_evaluations(None, evaluations)
    longest = max(float(e.percentile(99.9)) for e in named.values())
    width = next((width for width in BIN_WIDTHS if longest < MOST_BINS * width), BIN_WIDTHS[-1])
    edges = width * np.arange(np.floor(longest / width) + 2)
    fig, ax = figure(ax, (8, 5))
    ax.axvline(threshold, color="#555", linewidth=1, linestyle=":")
    at_top = {
        "transform": ax.get_xaxis_transform(),
        "va": "top",
        "fontsize": 11,
        "color": "#444",
        "clip_on": True,
    }
    ax.text(threshold, 0.99, f" {threshold:g} min", **at_top)
    for k, (name, evaluation) in enumerate(named.items()):
        ax.stairs(-100 * np.diff(evaluation.late_fraction(edges)), edges, label=name, linewidth=2, **look(k))
    ax.set(
        xlabel="Response time (min)",
        ylabel=f"Calls in {width:g} min (%)",
        xlim=(0, edges[-1]),
        ylim=(0, None),
    )
    if len(named) > 1:
        ax.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=len(named), borderaxespad=0.2)
    return fig, ax


def _late_table(ax, named, thresholds):
    """Print the shares at the thresholds in the empty upper right corner."""
    late = [[f"{100 * share:.1f}%" for share in e.late_fraction(thresholds)] for e in named.values()]
    wide, high = 0.085 * len(thresholds), 0.075 * (1 + len(named))
    table = ax.table(
        late,
        rowLabels=list(named) if len(named) > 1 else None,
        colLabels=[f"{threshold:g} min" for threshold in thresholds],
        bbox=(1 - wide, 0.98 - high, wide, high),
        edges="open",
        cellLoc="right",
        zorder=4,
    )
    table.auto_set_font_size(False)
    table.set_fontsize(10)
    for cell in table.get_celld().values():
        cell.PAD = 0.05
