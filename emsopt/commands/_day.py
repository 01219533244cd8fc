"""Plan the hours of the day, judge the plan, and print what it says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InputError
from . import _shared
from ._spelling import in_options

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable

    import pandas as pd

    from ..calls import CallLog, Demand, HeldOut
    from ..city.city import City
    from ..evaluators.evaluation import Evaluation
    from ..evaluators.objective import Objective
    from ..planning import Plan
    from ._from_log import MakeCity

# If plans are searched, parts of the log to hold out, and units from which that takes too long.
FEW_PARTS, MANY_UNITS = 3, 20
LITTLE = 0.001  # share of the value that no move is worth


def by_hour(make: MakeCity, demand: Demand, weekdays: list[int] | None) -> dict[int, City]:
    """Return the city at each hour of the day."""
    rates = demand.rates_by_hour(weekdays=weekdays)
    city = make(demand, weekdays=weekdays)
    names = [f"{city.name}, {hour:02d} to {hour + 1:02d} h" for hour in range(24)]
    return {h: city.replace(arrival_rates=rates[h], name=name) for h, name in enumerate(names)}


def held_out(calls: CallLog, stations: pd.DataFrame, most: int, *, counted: dict[str, Any]) -> list[HeldOut]:
    """Return at most so many parts of the log to judge a plan on; none if the log is too short."""
    from ..calls import held_out_weeks

    try:
        return held_out_weeks(calls, stations, most=most, **counted)
    except InputError as error:
        print(f"\nThe plan is not judged on days held out: {in_options(str(error))}")
        return []


def plan_day(
    cities: dict[int, City],
    weeks: Callable[[int], list[HeldOut]],
    objective: Objective,
    found: dict[str, Evaluation],
    options: Namespace,
) -> Plan:
    """Plan the day, judge the plan, and print what changes."""
    from ..planning import hourly_plan, judge_plan

    size = f"{objective.units} units at {objective.city.n_sites} stations"
    print(
        f"\nPlanning the {len(cities)} hours of the day ({size}). If deployments are too many to evaluate all, each\n"
        "hour is searched like the day above, which takes many times as long. Ctrl-C ends it; files written stay.",
        flush=True,
    )
    rules = {"metric": objective.metric, "rng": 0, **objective.options}
    rules["progress"] = _shared.progress("plan, hours searched")
    plan = hourly_plan(cities, objective.space, options.moves, options.evaluator, **rules)
    searched = np.isnan(plan.lower_bound)  # not all deployments were evaluated
    parts = [] if searched and objective.units >= MANY_UNITS else weeks(FEW_PARTS if searched else 8)
    if parts and plan.moves.any():
        plan = judge_plan(plan, parts, rng=0, progress=_shared.progress("judging the plan, parts of the log"))
    evaluator = plan.objectives[0].evaluator
    print(
        f"\nPlan of the day, at most {options.moves} unit(s) moved between hours ({evaluator} hypercube): "
        f"{plan.message}.\n  {objective.label}, mean over all calls: {plan.value:.4g}; without moves "
        f"{against(plan.fixed_value, plan)}; with unlimited moves {against(plan.free_value, plan)}."
    )
    print(
        f"  Without moves, the same units have {objective(plan.fixed_sites):.4g} at the mean load of the day, as in "
        f"the tables above,\n  and {plan.fixed_value:.4g} hour by hour: busy hours have more calls, which wait longer, "
        "and each hour has its own pattern."
    )
    if "today" in found and len(found["today"].sites) == objective.units:
        now = sum(w * o(found["today"].sites) for w, o in zip(plan.weights, plan.objectives, strict=True))
        print(f"  Today's deployment, hour by hour: {against(float(now), plan)}.")
    print(f"  {plan.verdict if parts else unjudged(plan)}")
    for hour, old, new in plan.changes().itertuples(index=False):
        print(f"  {hour:02d}:00  {old} -> {new}")
    return plan


def unjudged(plan: Plan) -> str:
    """Return a verdict on a plan that was not judged on weeks held out."""
    said = f"The plan is not judged on weeks held out. By its own figures it gains {plan.fixed_value - plan.value:.2g}"
    leave = plan.fixed_value - plan.value < LITTLE * plan.fixed_value
    return said + (": leave the units where they are." if leave else ", which chance in the log may explain.")


def against(value: float, plan: Plan) -> str:
    """Return a value as text, with its difference from the value of the plan, and in percent if that is visible."""
    if not plan.value:
        return f"{value:.4g}"
    percent = round(100 * (value / plan.value - 1), 1) + 0.0  # not -0.0
    return f"{value:.4g} ({value - plan.value:+.2g}{f', {percent:+.1f} %' if percent else ''})"
