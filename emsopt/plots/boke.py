"""Figure of one step of BOKE in one variable: regression, density, upper bound and next point."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from ..errors import _validate
from ..errors._types import ArrayLike
from ..maps import _colours
from ._style import AxesArray, AxLike, common_style, merge_legends
from ._style import panels as grid


@common_style()
def boke_step(
    profile: pd.DataFrame,
    points: ArrayLike,
    ax: AxLike = None,
    *,
    truth: ArrayLike | None = None,
    proposal: float | None = None,
    title: str = "",
) -> tuple[Figure, AxesArray]:
    """Draw the regression with its band, the density, the upper bound that BOKE maximises, and the next point.

    Parameters
    ----------
    profile : DataFrame
        From `emsopt.optimizers.boxes.boke.profile`. The labels in the figure assume maximisation.
    points : array_like, shape (t, 2)
        Evaluated points and their values; the last one is marked.
    truth : array_like, shape of the index, optional
        Values of the function itself.
    proposal : float, optional
        The point that the method proposes next.

    Examples
    --------
    >>> import emsopt as eo
    >>> from emsopt.optimizers.boxes.boke import profile
    >>> optimizer = eo.optimizers.BOKE(eo.problems.forrester(), rng=0)
    >>> optimizer.tell([0.1], -0.66)
    >>> fig, axes = eo.plots.boke_step(profile(optimizer), [[0.1, -0.66]])
    """
    _validate.check_columns(profile, ["mean", "bonus", "bound", "density"], "profile")
    x, points = profile.index.to_numpy(dtype=float), np.asarray(points, dtype=float)
    fig, axes = grid(3, (8.4, 1.7), 1, ax, sharex=True, height_ratios=(2.4, 1, 1.2))
    top, middle, bottom = axes
    blue, orange, green, *_ = _colours.CATEGORY_COLOURS
    mean = profile["mean"]
    values = np.concatenate([points[:, 1], mean, [] if truth is None else np.asarray(truth)])
    room = 0.35 * (np.ptp(values) or 1.0)  # room of a third above and below the values
    ceiling, floor = values.max() + room, values.min() - room
    spread = np.minimum(profile["bonus"], 10 * room)  # unbounded far from the points, where it would hide them
    top.fill_between(x, mean - spread, mean + spread, color=blue, alpha=0.15, label="± bonus")
    if truth is not None:
        top.plot(x, truth, color="#777", linestyle="--", linewidth=1.6, label="true")
    top.plot(x, mean, color=blue, label="regression m")
    top.plot(*points.T, "o", color="#222", markersize=6, label="observed")
    top.plot(*points[-1], "o", markersize=12, markerfacecolor="none", markeredgecolor="#222")
    top.set(ylim=(floor, ceiling), ylabel="value", title=title)
    shown = np.minimum(profile["bound"], ceiling + 2 * room)  # cut off, for the same reason
    areas = [(middle, 0, profile["density"], green, 0.3), (bottom, profile["bound"].min(), shown, orange, 0.35)]
    for panel, base, height, colour, alpha in areas:
        panel.fill_between(x, base, height, color=colour, alpha=alpha, linewidth=0)
        panel.plot(x, height, color=colour)
    middle.set(ylabel="density W", ylim=(0, None))
    bottom.set(ylabel="bound", xlabel="x")
    if proposal is not None:
        for panel in axes:
            panel.axvline(proposal, color=_colours.LINE_COLOUR, linewidth=1.8, linestyle=":", label="next")
    merge_legends(fig, axes, 5)
    return fig, axes
