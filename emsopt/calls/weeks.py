"""Split a log into weeks, to judge on each week what was decided from the others."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .. import _validate
from ..errors import InputError
from ._times import hour_of_week
from .demand import counted_calls, counts_by_hour
from .log import CallLog, Source, read_calls
from .profile import slots, watched

if TYPE_CHECKING:
    from .._types import FloatArray

FEWEST_WEEKS = 4  # shorter logs are split into days
FEWEST_PARTS = 3
DAY = np.timedelta64(1, "D")


class HeldOut(NamedTuple):
    """Rates of a part of a log, and the rates estimated from the rest of it.

    ``others`` are the rates that `emsopt.calls.Demand.rates_by_hour` gives for the other parts, calls per hour, shape
    (24, M). ``counts`` are the calls of the part itself by hour of the day and atom, shape (24, M).

    Examples
    --------
    >>> import emsopt as eo
    >>> calls, stations = eo.datasets.practice_calls()
    >>> week = eo.calls.held_out_weeks(calls, stations, cell_km=2)[0]
    >>> week.counts.shape == week.others.shape
    True
    """

    others: FloatArray
    counts: FloatArray


def held_out_weeks(
    calls: CallLog | Source,
    stations: Source,
    *,
    weekdays: Iterable[int | str] | None = None,
    most: int = 8,
    **options: Any,
) -> list[HeldOut]:
    """Split a log into weeks, each with the rates estimated from all other weeks.

    Parameters
    ----------
    calls, stations, **options
        As for `emsopt.calls.aggregate_calls`.
    weekdays
        As for `emsopt.calls.Demand.rates_by_hour`.
    most : int
        Maximum number of parts, at least 3. Consecutive weeks are joined if there are more.

    Returns
    -------
    list of HeldOut
        One per part, in order of time, with the atoms of the whole log. Weeks have seven days from the first day of the
        log; an incomplete last week belongs to the week before. A log of less than four weeks is split into days.
        Parts without calls on the weekdays are left out.

    Raises
    ------
    InputError
        If the log has fewer than three parts with calls.

    Examples
    --------
    >>> from emsopt.datasets import practice_calls
    >>> weeks = held_out_weeks(*practice_calls(), cell_km=1)
    >>> len(weeks), weeks[0].others.shape
    (8, (24, 169))
    """
    most = _validate.whole_number(most, "most", low=FEWEST_PARTS)
    log = calls if isinstance(calls, CallLog) else read_calls(calls)
    demand, counted, atoms = counted_calls(log, stations, **options)
    hours = watched(log.times, options.get("empty_days", "counted"))
    first = log.times[0].astype("datetime64[D]")
    days = int((log.times[-1] - first) // DAY) + 1
    length = 7 if days >= 7 * FEWEST_WEEKS else 1
    number = days // length
    parts = min(number, most)
    short = InputError(f"to hold days out, a log must have calls on at least {FEWEST_PARTS} of them; it spans {days}.")
    if parts < FEWEST_PARTS:
        raise short

    def part_of(times: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        return np.minimum((times - first) // DAY // length, number - 1) * parts // number

    result, on = [], slots(None, weekdays)
    of_call, of_hour = part_of(counted.times), part_of(hours)
    for part in range(parts):
        mine = of_call == part
        if not (mine & np.isin(counted.weekdays, np.flatnonzero(on.any(axis=1)))).any():
            continue
        counts = counts_by_hour(counted.where(mine), atoms[mine], len(demand.atom_names))
        occurs = np.bincount(hour_of_week(hours[of_hour == part]), minlength=168).reshape(7, 24)
        others = replace(demand, counts=demand.counts - counts, hours=demand.hours - occurs)
        chosen = np.where(on, counts, 0).sum(axis=1).T.astype(float)
        result.append(HeldOut(others.rates_by_hour(weekdays=weekdays), chosen))
    if len(result) < FEWEST_PARTS:
        raise short
    return result
