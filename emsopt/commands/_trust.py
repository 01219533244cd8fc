"""Say how far results can be trusted: days held out, recorded beside modelled times, how sure a gain is, cells."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .._validate import whole_number
from ..errors import InputError
from . import _shared
from ._spelling import in_options

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable, Mapping

    import pandas as pd

    from .._types import IntArray
    from ..calls import BackTest, CallLog, Demand, Fit
    from ..city.city import City
    from ..evaluators.evaluation import Evaluation
    from ..evaluators.objective import Objective
    from ..planning import Comparison
    from ..roads import RoadNetwork

DRAWS = 400  # of cities, to say how sure a gain is
LEAST_DAYS, HELD_OUT = 9, 1 / 3  # days of a log from which on some are held out unasked, and their share
LATE_DEPENDS = 0.005  # difference of the late fraction between two widths of cells that is worth a word
GAIN_DEPENDS = 0.5  # the same of a gain, as a share of it


# -- days held out ------------------------------------------------------------------------------------------------


def days_held_out(options: Namespace, calls: CallLog) -> tuple[int, int]:
    """Return the days of the log, and how many of them, the last ones, are held out for the back-test."""
    first, last = calls.times[[0, -1]].astype("datetime64[D]").astype(int).tolist()
    days = last - first + 1
    if options.hold_out is None:
        return days, round(HELD_OUT * days) if days >= LEAST_DAYS else 0
    return days, whole_number(options.hold_out, "hold_out", 0, max(days - 1, 0))


def back_tested(
    options: Namespace,
    calls: CallLog,
    stations: pd.DataFrame,
    fit: Fit | None,
    today: IntArray | None,
    homes: Mapping[str, str] | None,
    roads: RoadNetwork | None,
) -> BackTest | None:
    """Calibrate with the first days, compare with the last ones, and print it; None if that cannot be done."""
    from ..calls.back_test import calibrate_and_test

    days, held = days_held_out(options, calls)
    if fit is None or not held:
        why = "there is nothing to test, because the times are not calibrated from the log"
        if fit is not None:
            why = f"the log covers {days} days, fewer than {LEAST_DAYS}; --hold-out DAYS tests it all the same"
            why = "--hold-out 0" if options.hold_out == 0 else why
        print(f"No back-test: {why}.\n")
        return None
    cut = calls.times[0].astype("datetime64[D]") + np.timedelta64(days - held, "D")
    try:
        past, report = calibrate_and_test(calls, stations, cut, homes, roads, today)
    except InputError as error:
        why = in_options(str(error))
        print(f"No back-test: of {days} days, the last {held} cannot be compared with the others, as {why}\n")
        return None
    print(
        f"Back-test: calibrated with the first {days - held} days ({len(past.calls):,} calls), compared with the last "
        f"{held} ({report.calls:,} calls, {report.period}), which that calibration has not seen:\n"
        f"{_in_words(report.overall[['recorded', 'modelled', 'low', 'high']], options.threshold)}"
    )
    print(*(f"  {sentence}" for sentence in report.verdict), sep="\n")
    print(f"All that follows is calibrated with all {days} days. back_test.html has the details of the test.\n")
    return report


def _in_words(table: pd.DataFrame, threshold: float) -> str:
    """Return the rows of mean, 90th percentile and late fraction as text, with titles in words."""
    late = f"late_over_{threshold:g}_min"
    late = late if late in table.index else "late_over_8_min"
    titles = {"mean_response_min": "mean response (min)", "percentile_90_min": "90th percentile (min)"}
    titles[late] = f"recorded as over {late.split('_')[2]} min"
    shown = table.loc[list(titles)].rename(index=titles)
    form = ["{:.2f}", "{:.2f}", "{:.1%}"]
    cells = [[how.format(v) for v in row] for how, row in zip(form, shown.to_numpy(float), strict=True)]
    return str(type(shown)(cells, index=shown.index, columns=shown.columns).to_string())


# -- recorded beside modelled -------------------------------------------------------------------------------------


def recorded_beside(
    calls: CallLog, today: Evaluation, options: Namespace, hours: list[int] | None, weekdays: list[int] | None
) -> pd.DataFrame | None:
    """Print what the log recorded beside what the model says of today's deployment; None if the log has no stamps."""
    from ..calls import recorded_and_modelled, recorded_responses
    from ..calls.profile import slots
    from ..calls.recorded import in_words

    if not {"dispatched", "on_scene"} <= set(calls.details):
        return None
    try:
        calls = calls.where(slots(hours, weekdays).ravel()[calls.hours_of_week])
        table = recorded_and_modelled(calls, today, options.threshold)
        minutes, step = recorded_responses(calls)
    except InputError as error:
        print(f"\nModelled times are not compared with recorded ones: {in_options(str(error))}")
        return None
    print(
        f"\nToday's deployment, recorded ({len(minutes):,} calls with dispatch and arrival) beside modelled:\n"
        f"{_in_words(table[['recorded', 'modelled']], options.threshold)}\n"
        f"{in_words(table, options.threshold, step)}"
    )
    return table


# -- gains --------------------------------------------------------------------------------------------------------


def how_sure(
    fit: Fit | None,
    found: dict[str, Evaluation],
    one_move: IntArray | None,
    objective: Objective,
    options: dict[str, Any],
) -> Comparison | None:
    """Compare the best deployment with today's while the log leaves rates and times open; print how sure the gain is.

    None if the deployments are the same, or the log has no times. ``options`` are those of `compare` for the city; its
    cells are half as wide as those of the search, which may have chosen what only suits these.
    """
    from ..planning import compare

    (_, today), (name, best), *_ = found.items()
    if sorted(today.site_names) == sorted(best.site_names):
        return None
    if fit is None:
        print("How sure this gain is cannot be said, because the times are not calibrated from the log.")
        return None
    middle = {} if one_move is None else {"the single move": one_move}
    cells = f", with cells of {options['cell_km']:g} km" if options.get("cell_km") else ""
    answer = compare(
        fit,
        {"today": today.sites, **middle, name: best.sites},
        draws=DRAWS,
        rng=0,
        evaluator=best.evaluator,
        capacity=best.capacity,
        metric=objective.metric,
        progress=_shared.progress("how sure the gain is: drawn cities"),
        **options,
    )
    print(
        f"How sure this gain is{cells}: {answer} It may differ from the gain above, as it also counts where recorded "
        "drives were faster or slower than the law of all drives."
    )
    if middle:
        late = isinstance(objective.metric, tuple)
        row = answer.to_frame().loc["the single move"] * (100 if late else 1)
        gains = (-row[name] for name in ("difference", "difference_high", "difference_low"))
        text = "{:+.3f} {unit} (90 % interval: {:+.3f} to {:+.3f})".format(*gains, unit="points" if late else "min")
        print(f"The best single move alone, counted likewise, gains {text}.")
    return answer


def finer(
    width: float,
    calls: CallLog,
    stations: pd.DataFrame,
    found: dict[str, Evaluation],
    objective: Objective,
    threshold: float,
    make: Callable[[Demand], City],
    counting: dict[str, Any],
) -> None:
    """Evaluate the best deployment and today's with cells half as wide; print how far figures depend on the width."""
    from ..calls import aggregate_calls
    from ..evaluators.by_name import evaluate

    name, coarse = next((n, e) for n, e in found.items() if n != "today")
    today = found.get("today")
    try:
        city = make(aggregate_calls(calls, stations, cell_km=width / 2, **counting))
    except InputError:  # too many cells, or too narrow ones
        return
    fine = evaluate(city, coarse.sites, coarse.evaluator, **objective.options)
    late = [e.late_fraction(threshold) for e in (coarse, fine)]
    print(
        f"\nCells: with {width / 2:g} km instead of {width:g} km, the {name} has a mean response of "
        f"{fine.mean_response:.2f} min instead of {coarse.mean_response:.2f}, and {late[1]:.1%} of responses of "
        f"{threshold:g} min or more instead of {late[0]:.1%}."
    )
    advice = f"depends on the cells: use --cell {width / 2:g} or less for it."
    if abs(late[1] - late[0]) > LATE_DEPENDS:
        print(f"The late fraction {advice}")
    if today is not None and sorted(today.sites) != sorted(coarse.sites):
        before = evaluate(city, today.sites, today.evaluator, **objective.options)
        pairs, unit = ((today, coarse), (before, fine)), "min"
        wide, narrow = (a.mean_response - b.mean_response for a, b in pairs)
        if isinstance(objective.metric, tuple):
            wide, narrow = (100 * (a.late_fraction(threshold) - b.late_fraction(threshold)) for a, b in pairs)
            unit = "points"
        print(f"Its gain over today is {narrow:+.3f} {unit} instead of {wide:+.3f}.")
        if abs(narrow - wide) > GAIN_DEPENDS * abs(wide):
            print(f"The gain {advice}")
