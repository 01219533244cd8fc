"""Judge by weeks that an hourly plan was not made from whether its moves are worth making.

A plan follows the log that it is made from, chance included, so its own value promises more than a new week brings.
With W weeks, a plan is made from all weeks but one, and so is the best deployment without moves. Both then answer the
calls of the week left out: the model gives the mean response of each atom at each hour of the day, at the rates of the
whole log, weighted by the calls of the week. The gain g_w is the value without moves minus the value of the plan. The
mean of the g_w estimates the gain of the plan. Its standard error is s sqrt(1/W + 1/(W - 1)), with the standard
deviation s of the g_w: the second term is there because any two plans share most of their weeks (Nadeau and Bengio,
"Inference for the Generalization Error", Machine Learning 52, 2003).

The gain may exceed what the plan itself promises: rates by hour are shrunk towards those of the whole day, by one
amount for all atoms (`emsopt.calls.profile.shrinkage`), and the one deployment without moves is chosen by the log as
well, so that its own value is too favourable.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from .. import _validate
from .._running.loop import bar
from ..errors import InputError
from ..evaluators.metrics import metric_costs
from .hourly import LEVEL, HeldOutGain, Plan, hourly_plan

if TYPE_CHECKING:
    from .._types import FloatArray, IntArray, Progress, Rng
    from ..calls import HeldOut


def judge_plan(plan: Plan, weeks: Sequence[HeldOut], *, rng: Rng = None, progress: Progress = False) -> Plan:
    """Judge a plan by cross-validation over the weeks of the log, as the module's docstring describes.

    Parameters
    ----------
    plan : Plan
        Made by `hourly_plan` for the 24 hours of the day.
    weeks : sequence of HeldOut
        As `emsopt.calls.held_out_weeks` returns them, from the log and with the cells or areas of the plan.
    rng : int or Generator, optional
        Random seed, as for `hourly_plan`.
    progress : bool or callable
        Whether to show a bar, or a function called with (weeks done, number of weeks).

    Returns
    -------
    Plan
        The same plan with its `HeldOutGain` in ``held_out``.

    Raises
    ------
    InputError
        If the weeks do not have the hours and atoms of the plan.

    Examples
    --------
    >>> import emsopt as eo
    >>> calls, stations = eo.datasets.practice_calls()
    >>> cities = eo.calls.aggregate_calls(calls, stations, cell_km=3).cities_by_hour(speed_kmh=40)
    >>> plan = hourly_plan(cities, 2, 1, "approximate")
    >>> judge_plan(plan, eo.calls.held_out_weeks(calls, stations, cell_km=3)).held_out.gains.shape
    (8,)
    """
    _validate.instance(plan, "plan", Plan, "emsopt.planning.Plan")
    hours, atoms = len(plan.labels), plan.objectives[0].city.n_atoms
    if len(weeks) < 2 or any(np.shape(week.others) != (hours, atoms) for week in weeks):
        raise InputError(
            f"`weeks` must be at least two with the {hours} hours and {atoms} atoms of the plan. Make them by "
            "`emsopt.calls.held_out_weeks` with the log, cells or areas, and weekdays of the plan."
        )
    gains, moves, values = [], [], _atom_values(plan)
    rng = _validate.generator(rng)
    with bar(progress, len(weeks), "week") as show:
        for done, week in enumerate(weeks, 1):
            other = _replan(plan, week, rng)
            saved = [
                counts @ (values(h, other.fixed_sites) - values(h, other.sites[h]))
                for h, counts in enumerate(week.counts)
            ]
            gains.append(sum(saved) / week.counts.sum())
            moves.append(other.moves.sum())
            show(done)
    calls = np.array([week.counts.sum() for week in weeks])
    per_day = 24 * float(np.mean([objective.city.total_rate for objective in plan.objectives]))
    mean, low, high = _interval(np.array(gains), calls)
    per_move = np.array([mean, low, high]) * per_day / np.mean(moves) if any(moves) else np.full(3, np.nan)
    found = HeldOutGain(
        gains=np.array(gains),
        calls=calls,
        moves=np.array(moves, dtype=float),
        calls_per_day=per_day,
        mean=mean,
        low=low,
        high=high,
        per_move=float(per_move[0]),
        per_move_low=float(per_move[1]),
        per_move_high=float(per_move[2]),
        relative=mean / plan.fixed_value if plan.fixed_value else 0.0,
        metric=plan.objectives[0].metric,
    )
    return replace(plan, held_out=found)


def _replan(plan: Plan, week: HeldOut, rng: np.random.Generator) -> Plan:
    """Return the plan that the other weeks give."""
    first = plan.objectives[0]
    cities = {
        label: objective.city.replace(arrival_rates=rates, atom_shapes=None)
        for label, objective, rates in zip(plan.labels, plan.objectives, week.others, strict=True)
    }
    options = {"rng": rng, "metric": first.metric} | first.options
    return hourly_plan(cities, first.space, plan.most_moves, first.evaluator, **options)


def _atom_values(plan: Plan) -> Callable[[int, IntArray], FloatArray]:
    """Return a function of an hour and a deployment that gives the metric of the calls of each atom, shape (M,)."""
    metric_costs(plan.objectives[0].city, plan.objectives[0].metric)  # raises unless it is a mean over calls

    @cache
    def values(hour: int, sites: tuple[int, ...]) -> FloatArray:
        objective = plan.objectives[hour]
        return objective.evaluation(sites).atom_cost(objective.costs)

    return lambda hour, sites: values(hour, tuple(sites.tolist()))


def _interval(gains: FloatArray, calls: FloatArray) -> tuple[float, float, float]:
    """Return the mean of the gains over all calls, and the ends of its interval."""
    from scipy.stats import t

    n, mean = len(gains), float(gains @ calls / calls.sum())
    error = float(np.std(gains, ddof=1)) * (1 / n + 1 / (n - 1)) ** 0.5
    reach = float(t.ppf((1 + LEVEL) / 2, n - 1)) * error
    return mean, mean - reach, mean + reach
