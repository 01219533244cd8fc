"""Judge an hourly plan on weeks that it was not made from, and say whether its moves are worth making.

A plan follows the log that it is made from, chance included, so its own value promises more than a new week brings.
With W weeks, a plan is made from all weeks but one, and so is the best deployment without moves. Both then answer the
calls of the week left out: the model gives the mean response of each atom at each hour of the day, at the rates of the
whole log, and the calls of the week say how often each counts. The gain g_w is the value without moves minus the value
of the plan; it may exceed what the plan itself promises, whose rates by hour are shrunk towards those of the whole day.
The mean of the g_w estimates what the plan gains. Its standard error is s sqrt(1/W + 1/(W - 1)), with the
standard deviation s of the g_w: the second term is there because any two plans share most of their weeks (Nadeau and
Bengio, "Inference for the Generalization Error", Machine Learning 52, 2003).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from .. import _validate
from .._running.progress import bar
from ..errors import InputError
from .hourly import Plan, hourly_plan

if TYPE_CHECKING:
    from .._types import FloatArray, IntArray, Progress, Rng
    from ..calls import HeldOut

LEVEL = 0.9  # of intervals
LEAST_GAIN = 0.01  # of the value without moves; a smaller gain is not worth the trouble


@dataclass(frozen=True, eq=False, repr=False)
class HeldOutGain:
    """What a plan gains over the best deployment without moves, in weeks that it was not made from.

    Attributes
    ----------
    gains : ndarray, shape (W,)
        Gain per call in each week held out: in minutes, or in the units of another metric.
    calls : ndarray, shape (W,)
        Number of calls in each of these weeks.
    moves : ndarray, shape (W,)
        Moves per day of each plan.
    calls_per_day : float
        Mean number of calls per day of the whole log.
    mean, low, high : float
        Gain per call: mean over all calls, and its 90 % interval.
    per_move, per_move_low, per_move_high : float
        The same in total over the calls of a day, divided by the moves of a day: the cost that a move must not exceed.
        In minutes of all callers together; with a late fraction, in late calls. NaN if no plan moves a unit.
    relative : float
        ``mean`` as a share of the value without moves.
    move_cost : float
        What a move is taken to cost.
    late : bool
        Whether the metric is a late fraction instead of minutes.
    """

    gains: FloatArray
    calls: FloatArray
    moves: FloatArray
    calls_per_day: float
    mean: float
    low: float
    high: float
    per_move: float
    per_move_low: float
    per_move_high: float
    relative: float
    move_cost: float
    late: bool

    @property
    def worth_it(self) -> bool:
        """Whether the interval is above 0, the gain at least 1 % of the value, and a move gains more than it costs."""
        return bool(self.low > 0 and self.relative >= LEAST_GAIN and self.per_move > self.move_cost)

    @property
    def verdict(self) -> str:
        """What to do, in a few sentences."""
        if not self.moves.any():
            return "No unit moves all day: there is nothing to gain from moves."
        unit, what = ("late calls per day", "late calls") if self.late else ("min per call", "call-minutes")
        scale = self.calls_per_day if self.late else 1.0  # a share of late calls is hard to imagine
        gain = [scale * value for value in (self.mean, self.low, self.high)]
        said = (
            f"Over {len(self.gains)} parts of the log, each judged by a plan made from the others, moves gain "
            f"{gain[0]:.3f} {unit} ({self.relative:.1%}; {LEVEL:.0%} interval {gain[1]:.3f} to {gain[2]:.3f})"
        )
        if self.low <= 0:
            return f"Leave the units where they are. {said}, which cannot be told from no gain."
        said += f", or {self.per_move:.2g} {what} per move ({self.per_move_low:.2g} to {self.per_move_high:.2g})."
        if self.worth_it:
            return f"The moves are worth making if each costs less than {self.per_move:.2g} {what}. {said}"
        least = f"{LEAST_GAIN:.0%}" if self.relative < LEAST_GAIN else f"the cost of {self.move_cost:g} {what} per move"
        return f"Leave the units where they are. {said} That is below {least}."

    def __repr__(self) -> str:
        return f"<HeldOutGain: {self.verdict}>"


def judge_plan(
    plan: Plan,
    weeks: Sequence[HeldOut],
    *,
    move_cost: float = 0.0,
    rng: Rng = None,
    progress: Progress = False,
) -> Plan:
    """Judge a plan by cross-validation over the weeks of the log, as the module's docstring describes.

    Parameters
    ----------
    plan : Plan
        Made by `hourly_plan` for the 24 hours of the day.
    weeks : sequence of HeldOut
        As `emsopt.calls.held_out_weeks` returns them, from the log and with the cells or areas of the plan.
    move_cost : float
        What a move costs, in minutes of all callers together, or in late calls if the metric is a late fraction.
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
    late = isinstance(plan.objectives[0].metric, tuple)
    cost = _validate.positive_number(move_cost, "move_cost", zero=True)
    gains, moves, values = [], [], _atom_values(plan)
    rng = _validate.generator(rng)
    with bar(progress, len(weeks), "week") as show:
        for done, week in enumerate(weeks, 1):
            other = _replanned(plan, week, rng)
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
        move_cost=cost,
        late=late,
    )
    return replace(plan, held_out=found)


def _replanned(plan: Plan, week: HeldOut, rng: np.random.Generator) -> Plan:
    """Return the plan that the other weeks give."""
    first = plan.objectives[0]
    cities = {
        label: objective.city.replace(arrival_rates=rates, atom_shapes=None)
        for label, objective, rates in zip(plan.labels, plan.objectives, week.others, strict=True)
    }
    options = {name: value for name, value in first.options.items() if name != "rng"}
    seed = first.options.get("rng", rng)
    return hourly_plan(
        cities,
        first.space,
        plan.most_moves,
        first.evaluator,
        cyclic=plan.cyclic,
        rng=seed,
        metric=first.metric,
        **options,
    )


def _atom_values(plan: Plan) -> Callable[[int, IntArray], FloatArray]:
    """Return a function of an hour and a deployment that gives the metric of the calls of each atom, shape (M,)."""

    @cache
    def values(hour: int, sites: tuple[int, ...]) -> FloatArray:
        evaluation = plan.objectives[hour].evaluation(sites)
        return np.einsum("ij,ij->j", evaluation.dispatch_fractions, plan.objectives[hour].costs[evaluation.sites])

    return lambda hour, sites: values(hour, tuple(sites.tolist()))


def _interval(gains: FloatArray, calls: FloatArray) -> tuple[float, float, float]:
    """Return the mean of the gains over all calls, and the ends of its interval."""
    from scipy.stats import t

    n, mean = len(gains), float(gains @ calls / calls.sum())
    error = float(np.std(gains, ddof=1)) * (1 / n + 1 / (n - 1)) ** 0.5
    reach = float(t.ppf((1 + LEVEL) / 2, n - 1)) * error
    return mean, mean - reach, mean + reach
