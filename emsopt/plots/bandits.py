"""Bandits on road networks: regret by route and lengthscale, and the optimism of each rule."""

import numpy as np

from .. import _validate
from ..errors import InputError
from ._style import figure, look, panels, styled

PANEL = (5.8, 4.0)  # inches


@styled
def cumulative_regret(frame, ax=None, *, by=("network", "route"), lines="policy", log=True):
    """Draw cumulative regret over the rounds, mean and one standard error, with one panel per route.

    Regret is rectified; see `emsopt.bandits.navigation`.

    "Bayesian Analysis of Combinatorial Gaussian Process Bandits", Figures 2 to 4.

    Parameters
    ----------
    frame : DataFrame
        Columns ``round``, ``cumulative_regret`` (Wh), ``run`` and those named below, for example from
        `emsopt.datasets.load_study` for "navigation_agents".
    ax : sequence of matplotlib Axes or empty Figure, optional
        One Axes for each panel.
    by : tuple of str
        Columns that define the panels.
    lines : str
        Column that defines the lines, in the order of the frame.
    log : bool
        Whether the regret axis is logarithmic; policies differ by a factor of fifty.

    Returns
    -------
    fig, axes
        ``axes`` is an array, shape (number of panels,).
    """
    _validate.columns(frame, ("round", "cumulative_regret", "run", lines, *by))
    fig, axes, groups, names = _by_panel(frame, ax, by, lines)
    for panel, (_, part) in zip(axes, groups, strict=True):
        for name, rows in part.groupby(lines, sort=False):
            table = rows.groupby("round")["cumulative_regret"].agg(["mean", "sem"])
            style = look(names.index(name))
            panel.plot(table.index, table["mean"], label=str(name), **style)
            low = table["mean"] - table["sem"].fillna(0)
            high = table["mean"] + table["sem"].fillna(0)
            if log:  # values must be positive
                low = low.where(low > 0, table["mean"] / 10)
            panel.fill_between(table.index, low, high, alpha=0.18, linewidth=0, color=style["color"])
        if log:
            panel.set_yscale("log")
        panel.set(xlabel="Round", ylabel="Cumulative rectified regret (Wh)")
        panel.margins(x=0)
    _legend(fig, axes)
    return fig, axes


@styled
def final_regret(frame, ax=None, *, against="lengthscale", by=("network", "route"), lines="policy", log=True):
    """Draw the regret after the last round against a parameter, mean and one standard error (the paper's Figure 5).

    Parameters
    ----------
    frame : DataFrame
        As for `cumulative_regret`, with the column ``against``, for example the study
        "navigation_lengthscale".
    ax : sequence of matplotlib Axes or empty Figure, optional
    against : str
        Column of numbers along the horizontal axis.
    by, lines, log
        As for `cumulative_regret`.

    Returns
    -------
    fig, axes
    """
    _validate.columns(frame, ("round", "cumulative_regret", "run", against, lines, *by))
    fig, axes, groups, names = _by_panel(frame, ax, by, lines)
    for panel, (_, part) in zip(axes, groups, strict=True):
        last = part["round"].max()
        for name, rows in part[part["round"] == last].groupby(lines, sort=False):
            table = rows.groupby(against)["cumulative_regret"].agg(["mean", "sem"])
            panel.errorbar(
                table.index.to_numpy(),
                table["mean"].to_numpy(),
                table["sem"].fillna(0).to_numpy(),
                label=str(name),
                capsize=4,
                marker="o",
                **look(names.index(name)),
            )
        if log:
            panel.set_yscale("log")
        panel.set(xlabel=against.capitalize(), ylabel=f"Rectified regret after {last} rounds (Wh)")
    _legend(fig, axes)
    return fig, axes


@styled
def confidence_parameters(rules, n_arms, horizon=500, ax=None):
    """Draw β_t, the squared width of confidence bounds in standard deviations (the paper's Figure 3).

    Parameters
    ----------
    rules : dict of str to rule
        Each with a method ``beta(t, n_arms)``: `emsopt.bandits.UCB` or `emsopt.bandits.BayesUCB`.
    n_arms, horizon : int
    ax : matplotlib Axes or empty Figure, optional

    Returns
    -------
    fig, ax
    """
    t = np.arange(1, _validate.whole_number(horizon, "horizon") + 1)
    n_arms = _validate.whole_number(n_arms, "n_arms")
    fig, ax = figure(ax, (7, 4))
    for k, (name, rule) in enumerate(rules.items()):
        if not hasattr(rule, "beta"):
            raise InputError(f"`rules` must be UCB or BayesUCB, which define β_t; {name!r} is {rule!r}.")
        ax.plot(t, rule.beta(t, n_arms), label=name, **look(k))
    ax.set(xlabel="Round t", ylabel="β_t")
    ax.set_ylim(bottom=0)
    ax.margins(x=0)
    ax.legend()
    return fig, ax


def _by_panel(frame, ax, columns, lines):
    """Return figure, axes, the part of the frame for each panel, and the names of all lines."""
    if frame.empty:
        raise InputError("there is nothing to draw: the frame has no rows.")
    groups = list(frame.groupby(list(columns), sort=False))
    fig, axes = panels(ax, len(groups), PANEL, across=2)
    for panel, (key, _) in zip(axes, groups, strict=True):
        panel.set_title(", ".join(map(str, key)))
    return fig, axes, groups, list(dict.fromkeys(frame[lines]))


def _legend(fig, axes):
    """Put one legend for all panels above them."""
    handles, labels = axes[0].get_legend_handles_labels()
    fig.legend(handles, labels, loc="outside upper left", ncols=min(len(labels), 7))
