"""Simulated operations, unit by unit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .. import _validate
from ..errors import InputError
from ..operations import Operations
from ._style import AxLike, figure, legend_above, look, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PARTS = ("drives to a call", "on scene, transport, hospital", "drives to a site")


@styled()
def drives(result: Operations, begin: float = 0.0, hours: float = 6.0, ax: AxLike = None) -> tuple[Figure, Axes]:
    """Draw what each unit does, from the drives that a simulation recorded.

    Where a row is empty, the unit waits at a site or is off duty.

    Parameters
    ----------
    result : emsopt.operations.Operations
        Simulated with ``trace=``.
    begin, hours : float
        What to show: from which hour, and how many.

    Raises
    ------
    InputError
        If the result has no drives in these hours.

    Examples
    --------
    >>> import emsopt as eo
    >>> from matplotlib.figure import Figure
    >>> system, sites = eo.datasets.load_auckland()
    >>> result = eo.operations.simulate(system, sites, calls=100, trace=200, rng=0)
    >>> fig, ax = eo.plots.drives(result, ax=Figure())
    >>> ax.get_ylabel()
    'Unit'
    """
    _validate.instance(result, "result", Operations, "emsopt.operations.Operations")
    begin = _validate.positive_number(begin, "begin", "h", zero=True)
    end = begin + _validate.positive_number(hours, "hours", "h")
    trace = result.trace
    if trace is None or not ((trace["leave"] < 60 * end) & (trace["until"] > 60 * begin)).any():
        raise InputError(
            f"`result` has no recorded drive between {begin:g} and {end:g} h; simulate with a larger `trace`."
        )
    last, n = trace["leave"].max(), result.system.city.n_sites  # after the last drive nothing is known
    trace = trace[trace["goal"] < n + result.system.city.n_atoms]  # drives to hospitals are work
    to_site, to_call = trace[trace["goal"] < n], trace[trace["goal"] >= n]
    following = trace.groupby("unit")[["leave", "origin"]].shift(-1).fillna(np.inf)
    after = following["leave"].clip(upper=last)
    at_work = to_call[(to_call["until"] == to_call["arrive"]) & (following["origin"][to_call.index] >= n)]
    spans = (
        (to_call["unit"], to_call["leave"], to_call["until"]),
        (at_work["unit"], at_work["until"], after[at_work.index]),
        (to_site["unit"], to_site["leave"], to_site["until"]),
    )
    fig, ax = figure(ax, (11, 0.28 * len(result.sites) + 1.6))
    for k, (name, (unit, first, until)) in enumerate(zip(PARTS, spans, strict=True)):
        ax.barh(
            unit, (until - first).clip(lower=0) / 60, left=first / 60, height=0.7, color=look(k)["color"], label=name
        )
    ax.set(xlabel="Hour", ylabel="Unit", xlim=(begin, end), ylim=(len(result.sites) - 0.4, -0.6))
    ax.set_yticks(range(len(result.sites)))
    ax.grid(visible=False, axis="y")
    legend_above(ax, 3)
    return fig, ax
