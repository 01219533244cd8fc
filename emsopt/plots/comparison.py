"""Figures of comparisons under uncertainty: which deployment is better, and who gains."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .. import _validate
from ..evaluators.metrics import metric_label
from ..planning.comparison import Comparison
from ._style import AxesArray, AxLike, look, panels, styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_ATOMS = 15


@styled()
def comparison(answer: Comparison, ax: AxLike = None) -> tuple[Figure, AxesArray]:
    """Draw the differences of deployments to the first, and the atoms that the last one changes most.

    On the left the distribution of the difference of each deployment to the first over the drawn cities: to the left
    of 0 a deployment is better. On the right the atoms with the most calls times difference, for the last deployment,
    with 90 % intervals; dots are filled if the interval excludes 0.

    Parameters
    ----------
    answer : emsopt.planning.Comparison
    ax : sequence of two matplotlib Axes, or empty Figure, optional

    Returns
    -------
    fig, axes

    Examples
    --------
    >>> import emsopt as eo
    >>> from matplotlib.figure import Figure
    >>> import pandas as pd
    >>> stations = pd.DataFrame({"name": ["West", "Mid", "East"], "lon": [0.0, 0.05, 0.1], "lat": [45.0, 45.0, 45.0]})
    >>> fit = eo.calls.calibrate(eo.calls.synthetic_log(stations, calls_per_day=40, days=14, rng=0), stations)
    >>> plans = {"today": ["West", "East"], "moved": ["West", "Mid"]}
    >>> answer = eo.planning.compare(fit, plans, draws=100, rng=0)
    >>> fig, axes = eo.plots.comparison(answer, ax=Figure())
    >>> len(axes)
    2
    """
    _validate.instance(answer, "answer", Comparison, "emsopt.planning.Comparison")
    fig, axes = panels(ax, 2, (6.5, 4.8))
    left, right = axes
    gaps = answer.values[:, 1:] - answer.values[:, :1]
    table, label = answer.to_frame(), metric_label(answer.metric)
    bins = np.histogram_bin_edges(gaps, 40)
    for k, name in enumerate(answer.names[1:]):
        chance = table["probability_better"].iloc[k + 1]
        text = f"{name}: better with probability {chance:.1%}"
        left.hist(gaps[:, k], bins, histtype="stepfilled", alpha=0.25, color=look(k)["color"])
        left.hist(gaps[:, k], bins, histtype="step", linewidth=2, label=text, **look(k))
    left.axvline(0, color="black", linewidth=1)
    left.set(xlabel=f"{label}, minus that of {answer.names[0]}", ylabel="Drawn cities")
    left.legend(loc="lower left", bbox_to_anchor=(0, 1), borderaxespad=0.2)
    atoms = answer.by_atom.assign(weight=(answer.by_atom["calls_per_hour"] * answer.by_atom["difference"]).abs())
    atoms = atoms[atoms["verdict"] != "same"].nlargest(MOST_ATOMS, "weight").sort_values("difference")
    rows, colours = np.arange(len(atoms)), np.where(atoms["difference"] < 0, look(0)["color"], look(1)["color"])
    right.hlines(rows, atoms["low"], atoms["high"], colors=colours, linewidth=2)
    clear = atoms["verdict"] != "unclear"
    right.scatter(atoms["difference"], rows, c=np.where(clear, colours, "white"), edgecolors=colours, zorder=3)
    right.axvline(0, color="black", linewidth=1)
    right.set_yticks(rows, atoms["atom"].tolist())
    right.set(xlabel=f"{label}, {answer.names[-1]} minus {answer.names[0]}")
    return fig, axes
