"""A city over the hours of the day: the calls per hour, and the sites of the units."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.colors import ListedColormap

from .. import _validate
from ..calls import WeeklyProfile
from ..maps import _colours
from ..planning.hourly import Plan
from ._style import AxLike, bare, figure, look, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PARTS = {"Mon to Fri": slice(0, 5), "Sat and Sun": slice(5, 7)}


@styled()
def weekly_profile(profile: WeeklyProfile, ax: AxLike = None) -> tuple[Figure, Axes]:
    """Draw the calls per hour over the day, on weekdays and at weekends.

    Bands are two standard errors on either side, 2 √n / h for n calls in h hours observed; smaller differences may be
    chance.

    Parameters
    ----------
    profile : emsopt.calls.WeeklyProfile
    ax : matplotlib Axes or empty Figure, optional

    Examples
    --------
    >>> import emsopt as eo
    >>> from matplotlib.figure import Figure
    >>> calls, stations = eo.datasets.practice_calls()
    >>> profile = eo.calls.aggregate_calls(calls, stations, cell_km=2).profile
    >>> fig, ax = eo.plots.weekly_profile(profile, ax=Figure())
    >>> ax.get_ylabel()
    'Calls per hour'
    """
    _validate.instance(profile, "profile", WeeklyProfile, "emsopt.calls.WeeklyProfile")
    fig, ax = figure(ax, (8, 4.5))
    edges = np.arange(25)
    for k, (name, days) in enumerate(PARTS.items()):
        calls, hours = (part[days].sum(axis=0).astype(float) for part in (profile.counts, profile.hours))
        hours[hours == 0] = np.nan  # not observed
        rates, error = calls / hours, 2 * np.sqrt(calls) / hours
        low, high = (np.r_[band, band[-1]] for band in (np.maximum(rates - error, 0), rates + error))
        ax.stairs(rates, edges, baseline=None, linewidth=2.2, label=name, **look(k))
        ax.fill_between(edges, low, high, step="post", color=look(k)["color"], alpha=0.18, linewidth=0)
    ax.set(xlabel="Hour of the day (h)", ylabel="Calls per hour", xlim=(0, 24), ylim=(0, None))
    ax.set_xticks(range(0, 25, 3))
    ax.legend(title="bands: two standard errors", loc="upper left")
    return fig, ax


@styled()
def hourly_plan(plan: Plan, ax: AxLike = None) -> tuple[Figure, Axes]:
    """Draw the sites of the units of a plan, hour by hour.

    Each row is a site that has a unit at some hour. Filled cells are hours with a unit, with the number if
    there are several. A white dot marks an hour at whose start a unit arrives.

    Parameters
    ----------
    plan : emsopt.planning.Plan
    ax : matplotlib Axes or empty Figure, optional

    Examples
    --------
    >>> import emsopt as eo
    >>> from matplotlib.figure import Figure
    >>> city = eo.datasets.grid_city(n_sites=6, units=2, rng=1)
    >>> plan = eo.planning.hourly_plan({"night": city.scaled(0.5), "day": city.scaled(2)}, 2, moves=1)
    >>> fig, ax = eo.plots.hourly_plan(plan, ax=Figure())
    >>> [label.get_text() for label in ax.get_xticklabels()]
    ['night', 'day']
    """
    _validate.instance(plan, "plan", Plan, "emsopt.planning.Plan")
    city, hours = plan.objectives[0].city, len(plan.labels)
    units = np.array([np.bincount(row, minlength=city.n_sites) for row in plan.sites]).T  # (N, H)
    used = np.flatnonzero(units.any(axis=1))
    shown, names = units[used], [city.site_names[site] for site in used]
    fig, ax = figure(ax, (min(4 + 0.32 * hours, 14), 1.8 + 0.36 * len(used)))
    blue = ListedColormap([_colours.CATEGORIES[0]])
    filled = np.ma.masked_less(shown, 1) > 0
    ax.pcolormesh(filled, cmap=blue, vmin=0, vmax=1, edgecolors="white", linewidth=1.5)
    arrivals = {(change["to"], change["hour"]) for change in plan.changes().to_dict("records")}
    for row, hour in np.argwhere(shown > 0):
        count = str(shown[row, hour]) if shown[row, hour] > 1 else ""
        mark = "●" if (names[row], plan.labels[hour]) in arrivals else ""
        ax.text(hour + 0.5, row + 0.5, count + mark, color="white", ha="center", va="center", fontsize=11)
    bare(ax)
    ax.set_yticks(np.arange(len(used)) + 0.5, names)
    every = max(1, round(hours / 12))
    ax.set_xticks(np.arange(0, hours, every) + 0.5, [str(t) for t in plan.labels[::every]])
    ax.invert_yaxis()
    ax.tick_params(length=0)
    ax.set_xlabel(f"Hour of the day (h); white dot: a unit arrives, {plan.moves.sum()} in all")
    return fig, ax
