"""Set what the log records beside what the model says: on days held out of the calibration, and of today's units."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from ..calls import recorded_and_modelled, recorded_responses
from ..calls.back_test import calibrate_and_test
from ..calls.profile import slots
from ..calls.recorded import in_words
from ..errors import InputError
from ..planning.project import Result
from ._widgets import Done, download

if TYPE_CHECKING:
    from collections.abc import Callable

    from ._trust import Trust
    from ._workbench import Workbench

HELD_OUT = 1 / 3  # share of the days of a log that a back-test predicts


def days(times: np.ndarray[tuple[int], np.dtype[np.datetime64]]) -> int:
    """Return how many days a log covers."""
    first, last = times[[0, -1]].astype("datetime64[D]").astype(int).tolist()
    return int(last - first + 1)


def prepare(trust: Trust) -> Callable[[], str]:
    """Return a function that calibrates with the first days, predicts the last ones, and keeps the comparison."""
    log, today, held = trust.log(), trust.bench.today, trust.bench.at.hold_out
    length = days(log.calls.times)
    if length < 3:
        raise InputError(f"a back-test needs a log of at least 3 days; this one has {length}.")
    cut = log.calls.times[0].astype("datetime64[D]") + np.timedelta64(length - min(held, length - 1), "D")

    def work() -> str:
        _, report = calibrate_and_test(log.calls, log.stations, cut, log.homes, roads=log.roads, today=today)
        title = f"Back-test: calibrated before {cut}, compared with {report.period} ({report.calls:,} calls)"
        trust.keep(Result("back_test", title, report.verdict, report.to_frame()))
        trust.link.value = f"<p>{download('back_test.html', 'text/html', report.html.encode())}</p>"
        said = report.verdict[0]
        return Done(said) if ": usable" in said else said

    return work


def recorded(bench: Workbench) -> Result | None:
    """Return what the log records of today's units beside what the model says; None without their times."""
    log, today, limit = bench.opened.log, bench.opened.today, bench.at.threshold
    if log is None or log.fit is None or today is None:
        return None
    hours, weekdays = (log.making.get(name) for name in ("hours", "weekdays"))
    calls = log.calls.where(slots(hours, weekdays).ravel()[log.calls.hours_of_week])
    model, _ = bench.evaluator(len(today))
    e = bench.evaluate(1.0, today, "approximate" if model == "simulation" else model, bench.at.capacity)
    try:
        table = recorded_and_modelled(calls, e, limit)
        minutes, step = recorded_responses(calls)
    except InputError:  # no call of these hours has both stamps
        return None
    title = f"Today's {len(today)} units, recorded ({len(minutes):,} calls with dispatch and arrival) beside modelled"
    return Result("recorded", title, (in_words(table, limit, step),), _cells(table[["recorded", "modelled"]], limit))


def _cells(table: pd.DataFrame, threshold: float) -> pd.DataFrame:
    """Return the table with titles and cells as text."""
    titles = ["mean response (min)", "90th percentile (min)", f"recorded as over {threshold:g} min"]
    forms = ["{:.2f}", "{:.2f}", "{:.1%}"]
    cells = [[form.format(v) for v in row] for form, row in zip(forms, table.to_numpy(float), strict=True)]
    return pd.DataFrame(cells, index=titles, columns=table.columns)
