"""The model of BOKE before a step, for a function of one input (combines Figures 2, 4 and 5 of its paper)."""

import numpy as np

from .. import _validate
from ..maps import _shading
from ._style import new_figure, styled

HEIGHTS = (2.4, 1, 1.2)


@styled
def boke_step(profile, points, ax=None, *, truth=None, proposal=None, title=None, layout="constrained"):
    """Draw the regression with its band, the density, the acquisition function and the next point.

    Parameters
    ----------
    profile : DataFrame
        As `emsopt.optimizers.profile` returns it: the index is x, columns "mean", "bonus", "bound", "density".
    points : array_like, shape (t, 2)
        Evaluated points and their values; the last one is marked.
    ax : empty Figure, optional
    truth : array_like, shape of the index, optional
        The function itself.
    proposal : float, optional
        The point that the method proposes next.
    title : str, optional
    layout : {"constrained", "none"}
        With "none", the caller sets the margins.

    Returns
    -------
    fig, axes : Figure and ndarray of 3 Axes
    """
    _validate.columns(profile, ["mean", "bonus", "bound", "density"], "profile")
    x, points = profile.index.to_numpy(dtype=float), np.asarray(points, dtype=float)
    fig = new_figure(ax, (8.4, 6.6), layout)
    axes = fig.subplots(3, 1, sharex=True, gridspec_kw={"height_ratios": HEIGHTS})
    blue, orange, green = _shading.CATEGORIES[0], _shading.CATEGORIES[1], _shading.CATEGORIES[2]
    top = axes[0]
    values = np.concatenate([points[:, 1], profile["mean"], [] if truth is None else truth])
    room = 0.35 * (np.ptp(values) or 1.0)
    ceiling, floor = values.max() + room, values.min() - room
    spread = np.minimum(profile["bonus"], 10 * room)
    top.fill_between(x, profile["mean"] - spread, profile["mean"] + spread, color=blue, alpha=0.15, label="± √(β / W)")
    if truth is not None:
        top.plot(x, truth, color="#777", linestyle="--", linewidth=1.6, label="true")
    top.plot(x, profile["mean"], color=blue, label="regression m")
    top.plot(*points.T, "o", color="#222", markersize=6, label="told")
    top.plot(*points[-1], "o", markersize=12, markerfacecolor="none", markeredgecolor="#222")
    top.set(ylim=(floor, ceiling), ylabel="value")
    axes[1].fill_between(x, 0, profile["density"], color=green, alpha=0.3, linewidth=0)
    axes[1].plot(x, profile["density"], color=green)
    axes[1].set(ylabel="density W", ylim=(0, None))
    low = profile["bound"].min()
    shown = np.minimum(profile["bound"], ceiling + 2 * room)
    axes[2].fill_between(x, low, shown, color=orange, alpha=0.35, linewidth=0)
    axes[2].plot(x, shown, color=orange)
    axes[2].set(ylabel="m + √(β / W)", xlabel="x")
    if proposal is not None:
        for k, axis in enumerate(axes):
            axis.axvline(proposal, color=_shading.LINES, linewidth=1.8, linestyle=":", label=None if k else "next")
    if title:
        top.set_title(title)
    where = "outside upper center" if layout == "constrained" else "upper center"
    fig.legend(*top.get_legend_handles_labels(), loc=where, ncols=5)
    return fig, axes
