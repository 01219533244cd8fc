"""Columns of elapsed times: stamps that they give, and the seconds that they add to stamps of full minutes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ._roles import ELAPSED, UNITS
from ._time_forms import elapsed, whole_seconds, written_cells

if TYPE_CHECKING:
    import pandas as pd

    from .._types import Times

MINUTE = np.timedelta64(60, "s")
COARSE = 0.98  # share of full minutes among stamps to the minute


def with_elapsed(details: pd.DataFrame, times: Times, columns: Mapping[str, pd.Series[Any]]) -> pd.DataFrame:
    """Return details with the stamps that elapsed times give.

    Parameters
    ----------
    details : DataFrame
        One row per call, with the stamps that the log has.
    times : ndarray of datetime64[s], shape (K,)
    columns : mapping of str to Series
        Columns by role; the roles of `ELAPSED` are used.

    Returns
    -------
    DataFrame
        A missing stamp is the other one plus or minus the elapsed time; if the log has no dispatches, times from the
        dispatch count from the call. Two stamps of full minutes become the moments in the middle of those that lie in
        these minutes and differ by the elapsed time, if there are any.
    """
    nothing = np.full(len(times), np.datetime64("NaT", "s"))
    stamps = {"time": times} | {
        role: details[role].to_numpy().astype("datetime64[s]") for role in details if role in ENDS
    }
    step = {role: MINUTE if _to_the_minute(values) else 0 * MINUTE for role, values in stamps.items()}
    for role in [role for role in ELAPSED if role in columns]:
        start, end, typical, _ = ELAPSED[role]
        name = str(columns[role].name)
        unit = next((seconds for words, seconds in UNITS.items() if re.search(words, name)), None)
        lasted = whole_seconds(elapsed(written_cells(columns[role]), typical, unit))
        if start == "dispatched" and start not in stamps and end not in stamps:
            start = "time"
        a, b = stamps.get(start, nothing), stamps.get(end, nothing)
        width_a, width_b = step.get(start, 0 * MINUTE), step.get(end, 0 * MINUTE)
        first, last = np.maximum(a, b - lasted), np.minimum(a + width_a, b + width_b - lasted)
        exact = (first <= last) & (start != "time") & (width_a + width_b > 0 * MINUTE)
        middle = first + (last - first) // 2
        stamps[end] = np.where(exact, middle + lasted, np.where(np.isnat(b), a + lasted, b))
        if start != "time":
            stamps[start] = np.where(exact, middle, np.where(np.isnat(a), b - lasted, a))
            step |= {start: 0 * MINUTE, end: 0 * MINUTE} if exact.any() else {}
    return details.assign(**{role: values for role, values in stamps.items() if role != "time"})


ENDS = {role for start, end, *_ in ELAPSED.values() for role in (start, end)}


def _to_the_minute(stamps: Times) -> bool:
    seconds = stamps[~np.isnat(stamps)].astype(np.int64) % 60
    return len(seconds) > 0 and float((seconds == 0).mean()) >= COARSE
