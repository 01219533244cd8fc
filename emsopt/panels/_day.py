"""Plan the hours of the day."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ..calls import held_out_weeks
from ..errors import InputError
from ..planning import hourly_plan, judge_plan
from ..planning.project import Result
from ._widgets import Done

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..city.city import City
    from ._trust import Trust

MANY_UNITS = 20  # from which judging a plan that was searched takes too long


def prepare(trust: Trust) -> Callable[[], str]:
    """Return a function that plans the day under the current settings, and keeps the plan."""
    bench, rates = trust.bench, trust.bench.opened.by_hour
    if rates is None and bench.opened.about.get("hours"):
        raise InputError("the field Hours must be empty for a day plan.")
    if rates is None:
        raise InputError("a plan needs calls by the hour of the day: read a log of calls as your own city.")
    settings, moves, log = bench.settings(), bench.at.moves, bench.opened.log
    city, space = bench.space(settings)
    load, metric, capacity = settings[0], settings[2], settings[-1]
    cities = {h: _at_hour(city, load * rates[h], h) for h in range(24)}
    tell = trust.jobs["plan"].tell
    if space.units >= MANY_UNITS:
        bench.message.say(
            f"A plan for {space.units} units can take many minutes; the bar says how many after the first hour of the "
            "day. Cancel ends it after the hour that is searched."
        )

    def work() -> str:
        plan = hourly_plan(cities, space, moves, metric=metric, capacity=capacity, rng=0, progress=tell)
        searched = np.isnan(plan.lower_bound)
        if plan.moves.any() and log is not None and load == 1 and not (searched and space.units >= MANY_UNITS):
            weekdays = log.making.get("weekdays")
            parts = held_out_weeks(log.calls, log.stations, most=3 if searched else 8, weekdays=weekdays,
                                   **log.counting)  # fmt: skip
            plan = judge_plan(plan, parts, rng=0, progress=tell)
        late = metric != "mean_response"
        unit, scale = (" % late", 100) if late else (" min", 1)
        values = [f"{scale * v:.3f}{unit}" for v in (plan.fixed_value, plan.value, plan.free_value)]
        means = f"{values[0]} without moves, {values[1]} with {plan.moves.sum()} moves a day"
        verdict = "The plan is not judged on days held out of the log: chance in the log may explain its gain."
        said = (
            f"{space.units} units, at most {moves} moved between hours: {plan.message}.",
            f"Mean over all calls: {means}, {values[2]} with unlimited moves.",
            plan.verdict if plan.held_out is not None or not plan.moves.any() else verdict,
        )
        table = plan.changes().astype(str)
        table.index = pd.Index([f"{int(hour):02d}:00" for hour in table.pop(table.columns[0])])
        trust.keep(Result("plan", "Plan of the day", said, table if len(table) else None))
        if plan.held_out is None:
            return Done("Planned the day: see the tab Day plan.")
        return Done(said[2]) if plan.held_out.worth_it else said[2]

    return work


def _at_hour(city: City, rates: Any, hour: int) -> City:
    return city.replace(arrival_rates=rates, name=f"{city.name}, {hour:02d} to {hour + 1:02d} h")
