"""What a plan gains in weeks that it was not made from, and whether its moves are worth making."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..evaluators.metrics import Metric, metric_label

if TYPE_CHECKING:
    from .._types import FloatArray

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
        In minutes of all callers together; with a late fraction, in late calls; with a mix, in its sum over the calls.
        NaN if no plan moves a unit.
    relative : float
        ``mean`` as a share of the value without moves.
    move_cost : float
        What a move is taken to cost.
    metric : str, tuple or mapping
        Metric of the plan, as for `Objective`.

    Examples
    --------
    >>> import emsopt as eo
    >>> calls, stations = eo.datasets.practice_calls()
    >>> cities = eo.calls.aggregate_calls(calls, stations, cell_km=3).cities_by_hour(speed_kmh=40)
    >>> plan = eo.planning.hourly_plan(cities, 2, 1, "approximate")
    >>> gain = eo.planning.judge_plan(plan, eo.calls.held_out_weeks(calls, stations, cell_km=3)).held_out
    >>> bool(gain.low <= gain.mean <= gain.high)
    True
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
    metric: Metric

    @property
    def worth_it(self) -> bool:
        """Whether the interval is above 0, the gain at least 1 % of the value, and a move gains more than it costs."""
        return bool(self.low > 0 and self.relative >= LEAST_GAIN and self.per_move > self.move_cost)

    @property
    def verdict(self) -> str:
        """What to do, in a few sentences."""
        if not self.moves.any():
            return "No unit moves all day: there is nothing to gain from moves."
        label, scale = metric_label(self.metric), 1.0
        unit, what = f"of ({label}) per call", f"of ({label}), summed over the calls,"
        if self.metric == "mean_response":
            unit, what = "min per call", "call-minutes"
        elif isinstance(self.metric, tuple):
            unit, what = "late calls per day", "late calls"
            scale = self.calls_per_day  # a share of late calls is hard to imagine
        gain = [scale * value for value in (self.mean, self.low, self.high)]
        said = (
            f"Over {len(self.gains)} parts of the log, each judged by a plan made from the others, moves gain "
            f"{gain[0]:.3f} {unit} ({self.relative:.1%}; {LEVEL:.0%} interval {gain[1]:.3f} to {gain[2]:.3f})"
        )
        if self.low <= 0:
            return f"Leave the units where they are. {said}, which cannot be told from no gain."
        said += f", or {self.per_move:.2g} {what} per move ({self.per_move_low:.2g} to {self.per_move_high:.2g})."
        if self.worth_it:
            return f"The moves are worth making if each costs less than {self.per_move:.2g} {what.rstrip(',')}. {said}"
        least = f"{LEAST_GAIN:.0%}" if self.relative < LEAST_GAIN else f"the cost of {self.move_cost:g} {what} per move"
        return f"Leave the units where they are. {said} That is below {least}."

    def __repr__(self) -> str:
        return f"<HeldOutGain: {self.verdict}>"
