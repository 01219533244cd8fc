"""Figures of the user's own city: calls and units by hour, the fitted model beside the log, simulated drives."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, ListedColormap, LogNorm
from matplotlib.figure import Figure

from ..calls import BackTest, Fit, WeeklyProfile
from ..errors import InputError, _validate
from ..maps import _colours
from ..operations import Operations
from ..planning import Plan
from ._style import AxesArray, AxLike, add_legend_above, common_style, figure, line_style, panels, remove_ticks


@common_style()
def weekly_profile(profile: WeeklyProfile, ax: AxLike = None) -> tuple[Figure, Axes]:
    """Draw the calls per hour over the day, on weekdays and at weekends.

    Bands are two standard errors on either side, 2 √n / h for n calls in h hours observed; smaller differences may be
    chance.

    Examples
    --------
    >>> import emsopt as eo
    >>> calls, stations = eo.datasets.practice_calls()
    >>> profile = eo.calls.aggregate_calls(calls, stations, cell_km=2).profile
    >>> fig, ax = eo.plots.weekly_profile(profile)
    """
    fig, ax = figure((8, 4.5), ax)
    edges = np.arange(25)
    for k, (name, days) in enumerate({"Mon to Fri": slice(0, 5), "Sat and Sun": slice(5, 7)}.items()):
        calls, hours = (part[days].sum(axis=0).astype(float) for part in (profile.counts, profile.hours))
        hours[hours == 0] = np.nan  # hours not observed have no rate; NaN leaves a gap in the line
        rates, error = calls / hours, 2 * np.sqrt(calls) / hours  # the deviation of a Poisson count n is √n
        low, high = (np.r_[band, band[-1]] for band in (np.maximum(rates - error, 0), rates + error))
        ax.stairs(rates, edges, baseline=None, linewidth=2.2, label=name, **line_style(k))
        ax.fill_between(edges, low, high, step="post", color=line_style(k)["color"], alpha=0.18, linewidth=0)
    ax.set(xlabel="Hour of the day (h)", ylabel="Calls per hour", xlim=(0, 24), ylim=(0, None))
    ax.set_xticks(range(0, 25, 3))
    ax.legend(title="bands: two standard errors", loc="upper left")
    return fig, ax


@common_style()
def hourly_plan(plan: Plan, ax: AxLike = None) -> tuple[Figure, Axes]:
    """Draw the sites of the units of a plan, hour by hour.

    Each row is a site that has a unit at some hour. Filled cells are hours with a unit, with the number if there are
    several. A white dot marks an hour at whose start a unit arrives.

    Examples
    --------
    >>> import emsopt as eo
    >>> city = eo.datasets.grid_city(n_sites=6, units=2, rng=1)
    >>> plan = eo.planning.hourly_plan({"night": city.scaled(0.5), "day": city.scaled(2)}, 2, moves=1)
    >>> fig, ax = eo.plots.hourly_plan(plan)
    """
    city, hours = plan.objectives[0].city, len(plan.labels)
    units = np.array([np.bincount(row, minlength=city.n_sites) for row in plan.sites]).T  # one row per site
    used = np.flatnonzero(units.any(axis=1))  # sites that never have a unit would be empty rows
    rows, names = units[used], [city.site_names[site] for site in used]
    fig, ax = figure((min(4 + 0.32 * hours, 14), 1.8 + 0.36 * len(used)), ax)
    blue = ListedColormap([_colours.CATEGORY_COLOURS[0]])
    filled = np.ma.masked_less(rows, 1) > 0  # masked cells stay white
    ax.pcolormesh(filled, cmap=blue, vmin=0, vmax=1, edgecolors="white", linewidth=1.5)
    arrivals = {(change["to"], change["hour"]) for change in plan.changes().to_dict("records")}
    for row, hour in np.argwhere(rows > 0):
        count = str(rows[row, hour]) if rows[row, hour] > 1 else ""
        mark = "●" if (names[row], plan.labels[hour]) in arrivals else ""
        ax.text(hour + 0.5, row + 0.5, count + mark, color="white", ha="center", va="center", fontsize=11)
    remove_ticks(ax)
    ax.set_yticks(np.arange(len(used)) + 0.5, names)
    every = max(1, round(hours / 12))  # about twelve labels, or they would overlap
    ax.set_xticks(np.arange(0, hours, every) + 0.5, [str(t) for t in plan.labels[::every]])
    ax.invert_yaxis()  # the first site on top
    ax.tick_params(length=0)
    ax.set_xlabel(f"Hour of the day (h); white dot: a unit arrives, {plan.moves.sum()} in all")
    return fig, ax


PALE_COLOURS = LinearSegmentedColormap.from_list("pale", _colours.SEQUENTIAL_COLOURS[:5])
NORMAL_QUANTILE_90 = 1.2815515655446004  # normal quantile of 0.9: the band leaves out one in ten on either side


@common_style()
def recorded_drives(fit: Fit, ax: AxLike = None) -> tuple[Figure, Axes]:
    """Draw a two-dimensional histogram of recorded drives by distance and time, with the fitted law.

    The line is the mean of the law; by the law, four in five drives lie between the dashed lines.

    Examples
    --------
    >>> import emsopt as eo
    >>> fit = eo.calls.calibrate(*eo.datasets.san_jose_calls())
    >>> fig, ax = eo.plots.recorded_drives(fit)
    """
    drives = fit.drives[["distance", "minutes"]].to_numpy(float)
    farthest, longest = np.quantile(drives, 0.99, axis=0)  # the longest few drives would compress the others
    fig, ax = figure((8, 5), ax)
    # 40 distances, as finer classes would hold single drives, and whole minutes, which logs often hold, in the middle
    edges = np.linspace(0, farthest, 41), np.arange(np.ceil(longest) + 2) - 0.5
    *_, mesh = ax.hist2d(drives[:, 0], drives[:, 1], bins=edges, cmin=1, norm=LogNorm(), cmap=PALE_COLOURS)
    fig.colorbar(mesh, ax=ax, label="Drives", shrink=0.8)
    distance = np.linspace(0, farthest, 200)
    mean, spread = fit.law.mean(distance), fit.law.log_sd
    # the line is the law's mean: the median of a lognormal is below it, by a factor e^(-spread² / 2)
    low, high = (mean * np.exp(z * spread - spread**2 / 2) for z in (-NORMAL_QUANTILE_90, NORMAL_QUANTILE_90))
    ax.plot(distance, mean, label="law", **line_style(4) | {"linestyle": "-"})
    ax.plot(distance, low, distance, high, linewidth=1, color=line_style(4)["color"], linestyle="--")
    ax.plot([], [], linewidth=1, color=line_style(4)["color"], linestyle="--", label="four in five drives")
    unit = "Distance from home (km)" if fit.roads is None else "Minutes at free flow"
    ax.set(xlabel=unit, ylabel="Recorded drive (min)", xlim=(0, farthest), ylim=(0, longest))
    ax.legend(loc="upper left")
    return fig, ax


@common_style()
def back_test(report: BackTest, ax: AxLike = None) -> tuple[Figure, AxesArray]:
    """Draw recorded and modelled response times: their distribution, and their means by hour and by zone.

    Bars and dots are recorded. Ticks are modelled, with the interval of 90 % that chance allows; dots outside it are
    orange squares.

    Examples
    --------
    >>> import emsopt as eo
    >>> calls, stations = eo.datasets.san_jose_calls()
    >>> fit = eo.calls.calibrate(calls.between("2015-01-01", "2015-01-10"), stations)
    >>> report = eo.calls.back_test(fit, calls.between("2015-01-10", "2015-01-15"))
    >>> fig, axes = eo.plots.back_test(report)
    """
    fig, axes = panels(3, (4.5, 4.4), ax=ax)
    shares = report.distribution
    at = np.arange(len(shares))
    axes[0].bar(at, shares["recorded"], color=line_style(0)["color"], alpha=0.5, label="recorded")
    _draw_intervals(axes[0], at, shares, upright=True)
    every = max(1, len(shares) // 10)
    axes[0].set_xticks(at[::every], shares.index[::every])
    axes[0].set(xlabel="Response (min)", ylabel="Share of calls")
    for axis, table, group in ((axes[1], report.by_hour, "hour of the day"), (axes[2], report.by_zone, "zone")):
        at = np.arange(len(table))[::-1]  # the first row on top
        outside = (table["recorded"] < table["low"]) | (table["recorded"] > table["high"])
        _draw_intervals(axis, at, table, upright=False)
        for which, shape, k in ((~outside, "o", 0), (outside, "s", 4)):
            style = {"color": line_style(k)["color"], "markersize": 6, "linestyle": "none"}
            axis.plot(table["recorded"][which], at[which], shape, **style)
        axis.set_yticks(at, table.index)
        axis.tick_params(axis="y", labelsize=8)
        axis.set(xlabel=f"Mean response (min) by {group}")
    axes[0].legend()
    return fig, axes


def _draw_intervals(ax: Axes, at: Any, table: Any, *, upright: bool) -> None:
    """Draw the modelled values of a table, with their intervals as vertical (``upright``) or horizontal bars."""
    lines, ticks = (ax.vlines, "_") if upright else (ax.hlines, "|")
    lines(at, table["low"], table["high"], color="#b5b5b5", linewidth=5, zorder=1.5)
    points = (at, table["modelled"]) if upright else (table["modelled"], at)
    ax.plot(*points, ticks, color="#333333", markersize=11, markeredgewidth=2, linestyle="none", label="modelled")


@common_style()
def drives(result: Operations, begin: float = 0.0, hours: float = 6.0, ax: AxLike = None) -> tuple[Figure, Axes]:
    """Draw the activity of each unit over time, from the drives that a simulation with ``trace=`` recorded.

    Shown are ``hours`` hours from hour ``begin``; raise InputError if no drive was recorded in them. Where a row is
    empty, the unit waits at a site or is off duty.

    Examples
    --------
    >>> import emsopt as eo
    >>> system, sites = eo.datasets.load_auckland()
    >>> result = eo.operations.simulate(system, sites, calls=100, trace=200, rng=0)
    >>> fig, ax = eo.plots.drives(result)
    """
    begin = _validate.positive_number(begin, "begin", "h", zero=True)
    end = begin + _validate.positive_number(hours, "hours", "h")
    trace = result.trace
    if trace is None or not ((trace["leave"] < 60 * end) & (trace["until"] > 60 * begin)).any():
        missing = f"no recorded drive between {begin:g} and {end:g} h"
        raise InputError(f"`result` has {missing}; simulate with a larger `trace`.")
    last, n = trace["leave"].max(), result.system.city.n_sites  # after the last drive nothing is known
    trace = trace[trace["goal"] < n + result.system.city.n_atoms]  # drives to hospitals are work
    to_site, to_call = trace[trace["goal"] < n], trace[trace["goal"] >= n]
    following = trace.groupby("unit")[["leave", "origin"]].shift(-1).fillna(np.inf)  # no later drive: busy to the end
    after = following["leave"].clip(upper=last)
    # a unit that was turned around has `until` before `arrive`
    at_work = to_call[(to_call["until"] == to_call["arrive"]) & (following["origin"][to_call.index] >= n)]
    spans = {
        "drives to a call": (to_call["unit"], to_call["leave"], to_call["until"]),
        "on scene, transport, hospital": (at_work["unit"], at_work["until"], after[at_work.index]),
        "drives to a site": (to_site["unit"], to_site["leave"], to_site["until"]),
    }
    fig, ax = figure((11, 0.28 * len(result.sites) + 1.6), ax)
    for k, (name, (unit, first, until)) in enumerate(spans.items()):
        hours_at_it = (until - first).clip(lower=0) / 60
        ax.barh(unit, hours_at_it, left=first / 60, height=0.7, color=line_style(k)["color"], label=name)
    ax.set(xlabel="Hour", ylabel="Unit", xlim=(begin, end), ylim=(len(result.sites) - 0.4, -0.6))  # first unit on top
    ax.set_yticks(range(len(result.sites)))
    ax.grid(visible=False, axis="y")
    add_legend_above(ax, 3)
    return fig, ax
