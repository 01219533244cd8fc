"""The plan of the day: a deployment for each hour, with few units moved between hours, and what the moves gain.

With the call rate λ_h of each hour h, `hourly_plan` looks for deployments x_h that minimise the mean over all calls,
Σ_h λ_h f_h(x_h) / Σ_h λ_h, where f_h is the objective in hour h. At most k units may move from one hour to the next,
and from the last to the first, as the day repeats.

Each hour is evaluated in steady state. The model ignores calls carried over from one hour to the next, and the time
that relocated units spend on the road. A plan is also fitted to the random variation of its log, so that its own value
is too favourable: `judge_plan` estimates the gain of its moves by cross-validation over the W weeks of the log.

A plan is made from all weeks but one, and so is the best deployment without moves. Both are evaluated on the calls of
the week left out: the model gives the mean response of each atom at each hour of the day, at the rates of the whole
log, weighted by the calls of the week. The gain g_w is the value without moves minus the value of the plan. The mean of
the g_w estimates the gain of the plan. Its standard error is s sqrt(1/W + 1/(W - 1)), with the standard deviation s of
the g_w: the second term is there because any two plans share most of their weeks (Nadeau and Bengio, "Inference for the
Generalization Error", Machine Learning 52, 2003). The gain may exceed the plan's own figure, as the rates by hour are
shrunk towards those of the whole day, and the value of the deployment without moves is too favourable as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from html import escape
from typing import Any

import numpy as np
import pandas as pd

from .._running.loop import progress_bar
from ..calls import HeldOutCalls
from ..city.city import City, check_city
from ..city.deployment_space import DeploymentSpace
from ..errors import InputError, _validate
from ..errors._types import FloatArray, IntArray, Progress, Rng
from ..evaluators.metrics import NEGLIGIBLE_DIFFERENCE, Metric, metric_costs, metric_label
from ..evaluators.objective import Objective
from . import _plan_search
from .comparison import INTERVAL_LEVEL, Interval, check_hypercube

MOVE_PRICE = 1e-9  # what moving a unit costs in the objective: it only breaks ties in favour of fewer moves
NEGLIGIBLE_GAIN = 0.001  # a gain by less of the value without moves is not worth them, by the plan's own figures


@dataclass(frozen=True, eq=False, repr=False)
class HeldOutGain:
    """Gain of a plan over the best deployment without moves, on W weeks of calls from which it was not made.

    Attributes
    ----------
    gains, calls, moves : ndarray, shape (W,)
        For each week: gain per call (min, or the unit of another metric), number of calls, and moves per day.
    calls_per_day, mean, low, high : float
        Mean number of calls per day of the log, and mean gain per call with its 90 % interval.
    gain_per_move : Interval
        Gain over the calls of a day per move of the day, with its interval: what a move may cost at most, in
        call-minutes, late calls, or the sum of another metric over the calls. NaN if no plan moves a unit.
    relative_gain : float
        ``mean`` as a share of the value without moves.
    metric : str, tuple or mapping
        Metric of the plan, as for `Objective`.
    """

    gains: FloatArray
    calls: FloatArray
    moves: FloatArray
    calls_per_day: float
    mean: float
    low: float
    high: float
    gain_per_move: Interval
    relative_gain: float
    metric: Metric

    @property
    def is_worthwhile(self) -> bool:
        """Whether the interval is above 0, and the gain is at least 1 % of the value without moves."""
        return bool(self.low > 0 and self.relative_gain >= NEGLIGIBLE_DIFFERENCE)

    @property
    def verdict(self) -> str:
        """Whether to make the moves and what they gain, in a few sentences."""
        label, scale = metric_label(self.metric), 1.0
        unit, note = f"of ({label}) per call", f"of ({label}), summed over the calls,"
        if self.metric == "mean_response":
            unit, note = "min per call", "call-minutes"
        elif isinstance(self.metric, tuple):
            unit, note = "late calls per day", "late calls"
            scale = self.calls_per_day  # a share of late calls is hard to imagine
        mean, low, high = (scale * value for value in (self.mean, self.low, self.high))
        text = (
            f"Over {len(self.gains)} parts of the log, each judged by a plan made from the others, moves gain "
            f"{mean:.3f} {unit} ({self.relative_gain:.1%}; {INTERVAL_LEVEL:.0%} interval {low:.3f} to {high:.3f})"
        )
        if self.low <= 0:
            return f"Leave the units where they are. {text}, which cannot be told from no gain."
        most, low, high = self.gain_per_move
        text += f", or {most:.2g} {note} per move ({low:.2g} to {high:.2g})."
        if self.is_worthwhile:
            return f"The moves are worth making if each costs less than {most:.2g} {note.rstrip(',')}. {text}"
        return f"Leave the units where they are. {text} That is below {NEGLIGIBLE_DIFFERENCE:.0%}."

    def __repr__(self) -> str:
        return f"<HeldOutGain: {self.verdict}>"


@dataclass(frozen=True, eq=False, repr=False)
class Plan:
    """A deployment for each of H hours.

    Attributes
    ----------
    labels : tuple
        Labels of the hours.
    sites : ndarray of int, shape (H, p)
        Deployment of each hour.
    values, weights : ndarray, shape (H,)
        Objective of each hour's deployment (min for the mean response), and share of the calls in each hour.
    moves : ndarray of int, shape (H,)
        Number of units that move at the start of each hour; the hour before the first is the last.
    most_moves : int
        Maximum number of units that may move between two hours, k.
    value : float
        Mean of ``values``, weighted by ``weights``.
    lower_bound : float
        Lower bound on the value of any plan with at most k moves between hours; NaN if nothing is proven.
    fixed_sites : ndarray of int, shape (p,)
        Best deployment found that is the same at all hours.
    fixed_value, free_value : float
        Values with ``fixed_sites``, and with the best deployment found for each hour without a limit on the moves.
    message : str
        How many deployments were evaluated, and what is proven.
    objectives : tuple of Objective
        The objective of each hour.
    held_out : HeldOutGain or None
        Gain in weeks held out; None before `judge_plan`.
    """

    labels: tuple[object, ...]
    sites: IntArray
    values: FloatArray
    weights: FloatArray
    moves: IntArray
    most_moves: int
    value: float
    lower_bound: float
    fixed_sites: IntArray
    fixed_value: float
    free_value: float
    message: str
    objectives: tuple[Objective, ...]
    held_out: HeldOutGain | None = None

    @property
    def proven(self) -> bool:
        """Whether ``value`` is proven optimal: it exceeds ``lower_bound`` by at most 1e-6."""
        return self.value - self.lower_bound <= 1e-6

    def to_frame(self) -> pd.DataFrame:
        """Return one row per hour: calls per hour, value, number of moves, and the names of the sites."""
        names = self.objectives[0].city.site_names
        rates = [objective.city.total_rate for objective in self.objectives]
        sites = ["; ".join(names[site] for site in row) for row in self.sites]
        columns = {"hour": self.labels, "calls_per_hour": rates, "value": self.values, "moves": self.moves}
        return pd.DataFrame({**columns, "sites": sites})

    def changes(self) -> pd.DataFrame:
        """Return one row per relocated unit: the hour at whose start it moves, its old site and its new site.

        If several units move at once and the city has coordinates, they are paired to keep distances short.
        """
        city = self.objectives[0].city
        rows = [
            (label, city.site_names[a], city.site_names[b])
            for k, label in enumerate(self.labels)
            for a, b in _plan_search.moves_between(self.sites[k - 1], self.sites[k], city)
        ]
        return pd.DataFrame(rows, columns=["hour", "from", "to"])

    @property
    def verdict(self) -> str:
        """Whether the moves are worth making, in a few sentences."""
        if not self.moves.any():
            return "No unit moves all day."
        if self.held_out is not None:
            return self.held_out.verdict
        gain = self.fixed_value - self.value
        said = f"The plan is not judged on days held out of the log. By its own figures it gains {gain:.2g}"
        leave = gain < NEGLIGIBLE_GAIN * self.fixed_value
        return said + (": leave the units where they are." if leave else ", which chance in the log may explain.")

    @property
    def limit_text(self) -> str:
        """The maximum number of moves between hours and the number of moves in the whole day, in words."""
        moves = "1 move" if self.most_moves == 1 else f"{self.most_moves} moves"
        return f"at most {moves} between hours, {int(self.moves.sum())} in all"

    def __repr__(self) -> str:
        values = f"{metric_label(self.objectives[0].metric)} {self.value:.4g}, {self.fixed_value:.4g} without moves"
        return f"<Plan: {len(self.labels)} hours, {self.limit_text}; {values}; {self.message}. {self.verdict}>"

    def _repr_html_(self) -> str:
        label, limit = metric_label(self.objectives[0].metric), self.limit_text
        values = {"without moves": self.fixed_value, limit: self.value, "with unlimited moves": self.free_value}
        rows = (
            f"<tr><th style='text-align:left'>{name}</th><td>{value:.4g}</td></tr>" for name, value in values.items()
        )
        head = f"<tr><th>plan of {len(self.labels)} hours</th><th>{escape(label)}</th></tr>"
        return f"<table>{head}{''.join(rows)}</table><p>{escape(self.message)}. <b>{escape(self.verdict)}</b></p>"


def hourly_plan(
    cities: Mapping[Any, City] | Sequence[City],
    units: int | DeploymentSpace,
    moves: int,
    evaluator: str | None = None,
    *,
    rng: Rng = None,
    progress: Progress = False,
    **options: Any,
) -> Plan:
    """Plan a deployment for each hour, with at most ``moves`` units relocated between hours.

    Parameters
    ----------
    cities : mapping or sequence of City
        One city per hour, in order; the keys of a mapping are the labels (see `emsopt.calls.Demand.cities_by_hour`).
        Raise unless all have the same sites and groups of interchangeable sites (`City.twin_groups`).
    units : int or DeploymentSpace
        Fleet size p, or the allowed deployments, the same for all hours.
    moves : int
        Maximum number of units that move between two hours, k.
    evaluator : {"exact", "approximate"}, optional
        Default: exact for up to 12 units if all deployments of all hours can be evaluated in half a minute,
        else approximate.
    rng : int or Generator, optional
        Random seed, for the random starts of a search.
    progress : bool or callable
        Whether to show a bar, or a function called with (hours evaluated, number of hours).
    **options
        ``metric`` and options of the evaluator, as for `Objective`.

    Returns
    -------
    Plan
        Optimal (`Plan.proven`) if all deployments can be evaluated at all hours: up to about 40,000 in 24 hours by the
        approximate evaluator. Otherwise the best plan over a selection of deployments: those that a local search finds
        for each hour, their neighbours, and the neighbours of the plan until it no longer improves.

    Examples
    --------
    >>> import emsopt as eo
    >>> base = eo.datasets.grid_city(n_sites=6, units=2, rng=1)
    >>> plan = hourly_plan({"night": base.scaled(0.5), "day": base.scaled(2)}, 2, moves=1)
    >>> plan.labels, plan.sites.shape, plan.proven, plan.value <= plan.fixed_value
    (('night', 'day'), (2, 2), True, True)
    """
    by_hour = _cities_by_hour(cities)
    limit = _validate.whole_number(moves, "moves", low=0)
    objectives = [Objective(city, units, evaluator, **options) for city in by_hour.values()]
    check_hypercube(evaluator, objectives[0].units)
    if evaluator is None and not _plan_search.can_enumerate(objectives):  # the approximate model may be fast enough
        objectives = [Objective(city, units, "approximate", **options) for city in by_hour.values()]
    most = min(limit, objectives[0].units)
    weights = np.array([city.total_rate for city in by_hour.values()])
    weights /= weights.sum()
    with progress_bar(progress, len(objectives), "hour") as show:
        if _plan_search.can_enumerate(objectives):
            rows, values, walk = _plan_search.plan_by_enumeration(objectives, weights, most, MOVE_PRICE, show)
            gap = walk.cost - walk.bound
            proven = "optimal" if gap <= 1e-6 else f"within {gap:.2g} of the optimum"
            message = f"all {len(rows):,} deployments at all hours; proven {proven}"
        else:
            rows, values, walk = _plan_search.plan_by_search(objectives, weights, most, MOVE_PRICE, rng, show)
            message = f"best of {len(rows):,} of {objectives[0].space.count:,} deployments; not proven"
    sites = rows[walk.states]
    constant = int(np.argmin(weights @ values))
    counts = objectives[0].space.group_counts(sites)  # exchanging interchangeable sites is no move
    moved = np.maximum(counts - np.roll(counts, 1, axis=0), 0).sum(axis=1)
    return Plan(
        labels=tuple(by_hour),
        sites=sites,
        values=values[np.arange(len(weights)), walk.states],
        weights=weights,
        moves=moved,
        most_moves=limit,
        value=walk.cost,
        lower_bound=walk.bound,
        fixed_sites=rows[constant],
        fixed_value=float((weights @ values)[constant]),
        free_value=float(weights @ values.min(axis=1)),
        message=message,
        objectives=tuple(objectives),
    )


def _cities_by_hour(cities: object) -> dict[Any, City]:
    """Return cities by hour (0, 1, ... for a sequence); raise unless site names and interchangeable sites agree."""
    given = cities if isinstance(cities, Iterable) else ()
    by_hour = dict(cities if isinstance(cities, Mapping) else enumerate(given))
    if not by_hour:
        wanted = "a sequence or mapping of at least one City, in order of hours"
        raise InputError(f"`cities` must be {wanted}; got {_validate.quote(cities)}.")
    first = next(iter(by_hour.values()))
    for label, city in by_hour.items():
        check_city(city, f"cities[{label!r}]")
        if city.site_names != first.site_names:
            raise InputError(f"all hours must have the same sites in the same order; those of {label!r} differ.")
        if not np.array_equal(city.twin_groups, first.twin_groups):
            raise InputError(
                "all hours must have the same interchangeable sites, those with equal times and preferences; those of "
                f"{label!r} differ."
            )
    return by_hour


def judge_plan(plan: Plan, weeks: Sequence[HeldOutCalls], *, rng: Rng = None, progress: Progress = False) -> Plan:
    """Judge a plan by cross-validation over the weeks of the log, as `emsopt.planning.day_plan` describes.

    Parameters
    ----------
    plan : Plan
        Made by `hourly_plan` for the 24 hours of the day. It is returned with its `HeldOutGain` in ``held_out``.
    weeks : sequence of HeldOutCalls
        From `emsopt.calls.held_out_weeks`, with the cells or areas of the plan. Raise if their hours and atoms differ.
    rng, progress
        As for `hourly_plan`; progress is in weeks.

    Examples
    --------
    >>> import emsopt as eo
    >>> calls, stations = eo.datasets.practice_calls()
    >>> cities = eo.calls.aggregate_calls(calls, stations, cell_km=3).cities_by_hour(speed_kmh=40)
    >>> plan = hourly_plan(cities, 2, 1, "approximate")
    >>> judge_plan(plan, eo.calls.held_out_weeks(calls, stations, cell_km=3)).held_out.gains.shape
    (8,)
    """
    from scipy.stats import t

    _validate.instance(plan, "plan", Plan, "emsopt.planning.Plan")
    hours, atoms = len(plan.labels), plan.objectives[0].city.n_atoms
    if len(weeks) < 2 or any(np.shape(week.other_rates) != (hours, atoms) for week in weeks):
        raise InputError(
            f"`weeks` must be at least two with the {hours} hours and {atoms} atoms of the plan. Make them by "
            "`emsopt.calls.held_out_weeks` with the log, cells or areas, and weekdays of the plan."
        )
    first = plan.objectives[0]
    metric_costs(first.city, first.metric)  # raises unless it is a mean over calls
    how = {"metric": first.metric} | first.options

    @cache
    def by_atom(hour: int, sites: tuple[int, ...]) -> FloatArray:
        """Return the mean metric of each atom's calls in an hour with a deployment, shape (M,)."""
        objective = plan.objectives[hour]
        return objective.evaluation(sites).atom_cost(objective.costs)

    gains, moves, rng = [], [], _validate.generator(rng)
    with progress_bar(progress, len(weeks), "week") as show:
        for done, week in enumerate(weeks, 1):
            by_hour = zip(plan.labels, plan.objectives, week.other_rates, strict=True)
            cities = {label: o.city.replace(arrival_rates=rates, atom_shapes=None) for label, o, rates in by_hour}
            other = hourly_plan(cities, first.space, plan.most_moves, first.evaluator, rng=rng, **how)
            still = tuple(other.fixed_sites.tolist())
            saved = [
                counts @ (by_atom(h, still) - by_atom(h, tuple(other.sites[h].tolist())))
                for h, counts in enumerate(week.counts)
            ]
            gains.append(sum(saved) / week.counts.sum())
            moves.append(other.moves.sum())
            show(done)
    calls = np.array([week.counts.sum() for week in weeks])
    per_day = 24 * float(np.mean([objective.city.total_rate for objective in plan.objectives]))
    n, mean = len(gains), float(np.array(gains) @ calls / calls.sum())
    reach = float(t.ppf((1 + INTERVAL_LEVEL) / 2, n - 1)) * float(np.std(gains, ddof=1)) * (1 / n + 1 / (n - 1)) ** 0.5
    low, high = mean - reach, mean + reach
    gain_per_move = np.array([mean, low, high]) * per_day / (np.mean(moves) or np.nan)
    found = HeldOutGain(
        gains=np.array(gains),
        calls=calls,
        moves=np.array(moves, dtype=float),
        calls_per_day=per_day,
        mean=mean,
        low=low,
        high=high,
        gain_per_move=Interval(*gain_per_move.tolist()),
        relative_gain=mean / plan.fixed_value if plan.fixed_value else 0.0,
        metric=first.metric,
    )
    return replace(plan, held_out=found)
