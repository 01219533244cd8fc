"""The steps from a log to advice, which `emsopt.planning.advise` takes in turn and the dashboard one by one.

The first is `build`, which makes the city. Then come `back_test_model`, `find_best`, `narrow_cells`,
`compare_deployments` and, if the user wants it, `plan_day`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

import numpy as np
import pandas as pd

from ..calls import BackTest, CallLog, Fit, HeldOutCalls, held_out_weeks
from ..calls.back_test import calibrate_and_test
from ..calls.drawn_cities import drawn_cities
from ..calls.recorded import recorded_responses, response_measures, rounded_measures
from ..calls.uses import USE_TITLES
from ..city.city import City
from ..city.deployment_space import DeploymentSpace
from ..errors import ContradictionError, InputError, Message, _validate
from ..errors._types import FloatArray, IntArray, Progress, Sites
from ..evaluators.by_name import MOST_EXACT_UNITS, check_evaluator, evaluate
from ..evaluators.evaluation import Evaluation
from ..evaluators.metrics import NEGLIGIBLE_DIFFERENCE, Metric, metric_function
from ..evaluators.objective import Objective
from ..optimizers.deployments.swaps import best_deployment
from .comparison import Comparison, compare
from .day_plan import Plan, hourly_plan, judge_plan
from .log_model import LogModel
from .settings import Settings

LEAST_DAYS, HELD_OUT_SHARE = 9, 1 / 3  # a shorter log is needed whole; share of days held out by default
N_DRAWS = 400  # cities, drawn for the interval of a gain
NEGLIGIBLE_CHANGE = 0.001, 0.1  # a change of the gain by less of today's value, or by less of itself, does not matter
MOST_ATOMS = 2000
FEW_PARTS, MANY_UNITS = 3, 20  # parts of the log to judge a searched plan on, units from which not to: it takes long


def stop_if_wrong(model: LogModel) -> None:
    """Raise if the checks find something wrong in the data, unless ``accept_findings`` is set.

    Gaps in time are not wrong if the settings say that empty days are missing.
    """
    skipped = {"gaps in time"} if model.settings.empty_days == "missing" else set()
    wrong = [found for found in model.checks if found.level == "wrong" and found.what not in skipped]
    if wrong and not model.settings.accept_findings:
        parts = [part for found in wrong for part in ("\n  ", found.what, ": ", *Message.of(found.text).parts)]
        what = f"something is wrong in the data: {'; '.join(found.what for found in wrong)}. "
        raise InputError(Message(what, "Correct the files, or go on by `accept_findings`.", *parts))


def count_held_out_days(calls: CallLog, hold_out: int | None = None) -> tuple[int, int]:
    """Return the number of days of a log, and how many days at its end are held out to test the model.

    The default of ``hold_out`` is a third of the days, or 0 if there are fewer than 9.
    """
    first, last = calls.times[[0, -1]].astype("datetime64[D]").astype(int).tolist()
    days = last - first + 1
    if hold_out is None:
        return days, round(HELD_OUT_SHARE * days) if days >= LEAST_DAYS else 0
    return days, _validate.whole_number(hold_out, "hold_out", 0, max(days - 1, 0))


def back_test_model(model: LogModel) -> BackTest:
    """Calibrate with the first days of the log and predict the days held out at its end.

    Raise if times are not calibrated, or the log is too short.
    """
    days, n_days = count_held_out_days(model.log, model.settings.hold_out)
    if model.fit is None:
        raise InputError("there is nothing to test, because the times are not calibrated from the log.")
    if not n_days:
        short = f"the log covers {days} days, fewer than {LEAST_DAYS}: `hold_out` tests it all the same"
        raise InputError(f"{short if days < LEAST_DAYS else 'no days are held out'}.")
    cut = model.log.times[0].astype("datetime64[D]") + np.timedelta64(days - n_days, "D")
    s = model.settings
    try:
        times = {name: model.making[name] for name in ("turnout_times", "service_times") if name in model.making}
        how: dict[str, Any] = {"threshold": s.threshold, "cell_km": s.cell_km, "times": times}
        return calibrate_and_test(model.log, model.stations, cut, s.homes, s.roads, model.today, s.dispatch, **how)[1]
    except InputError as error:
        said = f"of {days} days, the last {n_days} cannot be compared with the others, as "
        raise type(error)(Message(said, *Message.of(error).parts)) from error


def try_back_test(model: LogModel) -> BackTest | InputError:
    """Return the test of `back_test_model`, or the error that says why it is not possible."""
    try:
        return back_test_model(model)
    except InputError as error:
        return error


def reasons_against_advice(model: LogModel, tested: BackTest | InputError | None, units: int) -> tuple[str, ...]:
    """Return in sentences why advice on a fleet of ``units`` is not possible; empty if it is.

    Reasons are that the log contradicts the stations, or that the model failed the test. ``tested`` is what
    `try_back_test` returned, or None before the test.
    """
    for error in (model.contradiction, tested):
        if isinstance(error, ContradictionError):
            return (Message.of(error),)
    if tested is None or isinstance(tested, InputError):
        return ()
    uses = ("moves",) if model.today is not None and units == len(model.today) else ("moves", "fleet")
    return tuple(f"{USE_TITLES[use]}: {tested.uses['why'][use]}" for use in uses if not tested.usable(use))


def stop_if_not_allowed(model: LogModel, tested: BackTest | InputError | None, units: int) -> None:
    """Raise the first of the `reasons_against_advice`, if there is one, as an error about a plan of the day."""
    for why in reasons_against_advice(model, tested, units):
        raise InputError(f"the log does not allow to use the model for a plan of the day. {why}")


def compare_recorded(model: LogModel, evaluations: Mapping[str, Evaluation], threshold: float) -> pd.DataFrame:
    """Return measures of recorded responses and of each deployment's modelled ones, which are rounded like the log's.

    Rows: ``mean_response_min``, ``percentile_90_min``, ``late_over_8_min`` (named by the threshold, min). Columns:
    ``recorded`` and the deployments. Without recorded responses that is NaN, and nothing is rounded.
    """
    if model.recorded_calls is None:
        rows = ["mean_response_min", "percentile_90_min", f"late_over_{threshold:g}_min"]
        values = {n: [e.mean_response, e.percentile_90, e.late_fraction(threshold)] for n, e in evaluations.items()}
        return pd.DataFrame({"recorded": np.nan} | values, index=rows)
    minutes, step = recorded_responses(model.recorded_calls)
    table = pd.DataFrame({"recorded": response_measures(minutes, step, [threshold])}).drop(index="percentile_50_min")
    for name, e in evaluations.items():
        table[name] = rounded_measures(e, step, threshold)
    return table


def zone_table(city: City, today: Evaluation, other: Evaluation, hours: float, *, by_station: bool) -> pd.DataFrame:
    """Return the table `Advice.zones` by atom or, with ``by_station``, by closest station.

    ``hours`` is the number of hours per year with the city's call rates. Zones without calls are left out.
    """
    closest = pd.Series(np.array(city.site_names)[city.travel_times.argmin(axis=0)], name="station")
    calls, zone = city.arrival_rates, closest if by_station else pd.Series(city.atom_names, name="zone")
    waits = {"today": calls * today.atom_response, "proposed": calls * other.atom_response}
    sums = pd.DataFrame(waits | {"calls": calls})[calls > 0].groupby(zone).sum()
    table = sums[["today", "proposed"]].div(sums["calls"], axis=0)
    table["minutes"] = table["proposed"] - table["today"]
    return table.assign(calls_per_year=hours * sums["calls"], share=sums["calls"] / calls.sum())


def worse_zones(table: pd.DataFrame, today: Evaluation) -> pd.DataFrame:
    """Return the rows of `zone_table` that wait longer by over 1 % of today's mean response, the largest rise first."""
    return table[table["minutes"] > NEGLIGIBLE_DIFFERENCE * today.mean_response].sort_values("minutes", ascending=False)


def find_best(objective: Objective, *, progress: Progress = False) -> tuple[str, IntArray, str]:
    """Return "optimum" for a proven best deployment, else "best found", its sites, (p,), and how it was found."""
    run = best_deployment(objective, rng=0, progress=progress)
    how = f"{objective.evaluator} hypercube model, {objective.options['capacity']}: {run.message}"
    return "optimum" if "proven" in run.message else "best found", cast("IntArray", run.x), how


def metric_gain(city: City, metric: Metric, today: Evaluation, other: Evaluation) -> float:
    """Return the metric of ``today`` minus that of ``other``: min of mean response, or a share of late responses."""
    value = metric_function(city, metric)
    return float(value(today) - value(other))


def narrow_cells(model: LogModel, pair: tuple[Sites, Sites]) -> LogModel:
    """Halve the width of cells until the gain of the second deployment over the first no longer depends on it.

    It depends if it changes by more than 0.1 % of the first deployment's value and 10 % of itself. Cells stay so wide
    that there are at most 2,000, and none shows a single caller. A model whose cells are set, or that has areas or a
    table of travel times, is returned as it is.
    """
    s = model.settings
    if s.cell_km is not None or model.demand.cell_km is None or s.travel_times is not None:
        return model

    def gain(of: LogModel) -> tuple[float, float]:
        first, second = (evaluation_of(of, sites, max(map(len, pair))) for sites in pair)
        return metric_function(of.city, s.metric)(first), metric_gain(of.city, s.metric, first, second)

    before = gain(model)[1]
    while True:
        try:
            narrower = model.with_cells(model.demand.cell_km / 2)
        except InputError:  # single callers could be seen
            return model
        if narrower.city.n_atoms > MOST_ATOMS:
            return model
        value, after = gain(narrower)
        if abs(after - before) <= max(NEGLIGIBLE_CHANGE[0] * value, NEGLIGIBLE_CHANGE[1] * abs(after)):
            return model
        model, before = narrower, after


def evaluation_of(model: LogModel, sites: Sites, largest: int | None = None) -> Evaluation:
    """Evaluate a deployment by the evaluator for ``largest`` units, by default its own number of units."""
    evaluator = evaluator_of(model, max(largest or 0, len(sites)))
    return evaluate(model.city, sites, evaluator, capacity=model.settings.capacity)


def evaluator_of(model: LogModel, largest: int) -> str:
    """Return the evaluator for fleets of up to ``largest`` units: that of the settings unless it would be too slow."""
    given = model.settings.evaluator
    if given is not None and largest > max(MOST_EXACT_UNITS, model.fleet[0]):
        given = None
    return check_evaluator(given, largest)


def compare_deployments(
    model: LogModel, deployments: Mapping[str, Sites], *, load: float = 1.0, progress: Progress = False
) -> Comparison:
    """Compare deployments, today's first, in 400 cities drawn from the uncertainty of the log.

    All call rates are multiplied by ``load``. Cells are as narrow as `narrow_cells` makes them for the first and the
    last deployment. Raise if the times are not calibrated.
    """
    if model.fit is None:
        raise InputError(
            "this needs travel times that are calibrated from the log: a log with the times of dispatch and arrival, "
            "without `speed_kmh`."
        )
    s, sites = model.settings, list(deployments.values())
    model = narrow_cells(model, (sites[0], sites[-1]))
    known = drawn_cities(cast("Fit", model.fit), **model.count_options, **model.making)
    known = replace(known, estimate=known.estimate.scaled(load))
    how: dict[str, Any] = {"evaluator": evaluator_of(model, max(map(len, sites))), "progress": progress}
    return compare(known, deployments, draws=N_DRAWS, rng=0, metric=s.metric, capacity=s.capacity, **how)


def plan_day(
    city: City,
    space: DeploymentSpace,
    moves: int,
    rates: FloatArray | None,
    settings: Settings,
    *,
    model: LogModel | None = None,
    load: float = 1.0,
    progress: Progress = False,
) -> Plan:
    """Find a deployment for each hour of the day, with at most ``moves`` units moved between two hours.

    ``rates``, shape (24, M), are calls per hour; ``load`` is a factor on them. With a ``model``, the plan is judged on
    its log (`judge_plan`), unless there are too many units for that or ``load`` is not 1.
    """
    if rates is None:
        raise InputError("a plan of the day needs calls at all hours. Leave out `hours`, or use a longer log.")
    names = [f"{city.name}, {hour:02d} to {hour + 1:02d} h" for hour in range(24)]
    cities = {h: city.replace(arrival_rates=load * rates[h], name=name) for h, name in enumerate(names)}
    how: dict[str, Any] = {"metric": settings.metric, "capacity": settings.capacity, "rng": 0, "progress": progress}
    plan = hourly_plan(cities, space, moves, settings.evaluator, **how)
    if model is None or load != 1 or not plan.moves.any():
        return plan
    parts = _judging_weeks(model, space.units, searched=bool(np.isnan(plan.lower_bound)))
    return judge_plan(plan, parts, rng=0, progress=progress) if parts else plan


def _judging_weeks(model: LogModel, units: int, *, searched: bool) -> list[HeldOutCalls]:
    """Return the weeks of the log on which to judge a plan: fewer if it was searched; none if that takes too long."""
    counting: dict[str, Any] = {"weekdays": model.settings.weekdays, **model.count_options}
    if searched and units >= MANY_UNITS:
        return []
    try:
        return held_out_weeks(model.calls, model.stations, most=FEW_PARTS if searched else 8, **counting)
    except InputError:  # the log is too short
        return []
