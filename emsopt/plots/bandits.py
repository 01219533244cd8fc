"""Bandits on road networks: regret by route and lengthscale, and the confidence parameter of each rule."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .. import _validate
from ..errors import InputError
from ._style import AxLike, categories, draw_line, figure, look, panels, shared_legend, styled

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ..bandits import UCB, BayesUCB
    from ._style import AxesArray

PANEL = (5.8, 3.1)  # inches
VALUES = {"cumulative_regret": "rectified regret", "excess_energy": "energy above the best path's"}


@styled()
def cumulative_regret(
    frame: pd.DataFrame,
    ax: AxLike = None,
    *,
    against: str = "round",
    by: Sequence[str] = ("network", "route"),
    lines: str = "policy",
    value: str = "cumulative_regret",
    log: bool = True,
) -> tuple[Figure, AxesArray]:
    """Draw the cumulative regret of navigation agents, or their excess energy, with one panel per route.

    Lines are means over the runs, with one standard error of the mean on either side. Regret is rectified: energy
    gained downhill does not count (see `emsopt.bandits.navigation`). Excess energy is not.

    "Bayesian Analysis of Combinatorial Gaussian Process Bandits", Figures 2 to 4, and Figure 5 with
    ``against="lengthscale"``.

    Parameters
    ----------
    frame : DataFrame
        Columns ``round``, ``value`` (Wh), ``run`` (number of the repetition) and those named below, for
        example from `emsopt.datasets.load_study` for "navigation_agents".
    ax : sequence of matplotlib Axes or empty Figure, optional
        One Axes for each panel.
    against : str
        Column of numbers along the horizontal axis. For any column but "round", the regret after the last round is
        drawn; the study "navigation_lengthscale" is an example.
    by : sequence of str
        Columns that define the panels.
    lines : str
        Column that defines the lines, in the order of the frame.
    value : str
        "cumulative_regret", or "excess_energy", which may be negative and needs ``log=False``.
    log : bool
        Whether the vertical axis is logarithmic, because policies differ by a factor of fifty.

    Returns
    -------
    fig, axes
        ``axes`` is an array, shape (number of panels,).

    Examples
    --------
    >>> import emsopt as eo
    >>> from matplotlib.figure import Figure
    >>> fig, axes = eo.plots.cumulative_regret(eo.datasets.load_study("navigation_agents"), ax=Figure())
    >>> axes.size
    4
    """
    quantity = VALUES[_validate.choice(value, "value", VALUES)]
    _validate.columns(frame, ("round", value, "run", against, lines, *by))
    groups, places = list(frame.groupby(list(by), sort=False)), categories(map(str, frame[lines]))
    fig, axes = panels(ax, len(groups), PANEL, across=2)
    for panel, (key, part) in zip(axes, groups, strict=True):
        last, ylabel = part["round"].max(), f"Cumulative {quantity} (Wh)"
        if against != "round":
            part, ylabel = part[part["round"] == last], f"{quantity.capitalize()} after {last} rounds (Wh)"
        for name, rows in part.groupby(lines, sort=False):
            k, table = places[str(name)], rows.groupby(against)[value].agg(["mean", "sem"])
            x, (mean, error) = table.index.to_numpy(), table.fillna({"sem": 0}).to_numpy().T
            if against == "round":
                draw_line(panel, x, mean, k, (mean - error, mean + error), log=log, label=name)
            else:
                panel.errorbar(x, mean, error, label=name, capsize=4, marker="o", **look(k))
        panel.set(title=", ".join(map(str, key)), xlabel=against.capitalize(), ylabel=ylabel)
        panel.set_yscale("log" if log else "linear")
        panel.margins(x=0 if against == "round" else None)
    shared_legend(fig, axes, 7, "upper left")
    return fig, axes


@styled()
def confidence_parameters(rules: Mapping[str, UCB | BayesUCB], n_arms: int, ax: AxLike = None) -> tuple[Figure, Axes]:
    """Draw the confidence parameter β_t of each rule in the first 500 rounds t.

    In round t, a rule's confidence bound lies √β_t posterior standard deviations from the posterior mean. Figure 3 of
    "Bayesian Analysis of Combinatorial Gaussian Process Bandits" compares such rules.

    Parameters
    ----------
    rules : dict of str to rule
        Each with a method ``beta(t, n_arms)``: `emsopt.bandits.UCB` or `emsopt.bandits.BayesUCB`.
    n_arms : int
        Number of base arms, which are the edges of a road network.
    ax : matplotlib Axes or empty Figure, optional

    Examples
    --------
    >>> import emsopt as eo
    >>> from matplotlib.figure import Figure
    >>> rules = {"GP-UCB": eo.bandits.UCB(), "GP-BUCB": eo.bandits.BayesUCB()}
    >>> fig, ax = eo.plots.confidence_parameters(rules, n_arms=100, ax=Figure())
    >>> len(ax.lines)
    2
    """
    t = np.arange(1, 501)
    n_arms = _validate.whole_number(n_arms, "n_arms")
    fig, ax = figure(ax, (7, 4))
    for k, (name, rule) in enumerate(rules.items()):
        if not hasattr(rule, "beta"):
            raise InputError(f"`rules` must be UCB or BayesUCB, which define β_t; {name!r} is {rule!r}.")
        ax.plot(t, rule.beta(t, n_arms), label=name, **look(k))
    ax.set(xlabel="Round t", ylabel="β_t", ylim=(0, None))
    ax.margins(x=0)
    ax.legend()
    return fig, ax
