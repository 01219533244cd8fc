"""To which calls of a log units were sent, and which unit the rule of the closest free one would send."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numba import njit

from ..errors import InputError

if TYPE_CHECKING:
    from .._types import BoolArray, FloatArray, IntArray, Times
    from .log import CallLog


STAMPS = ("dispatched", "en_route", "on_scene", "cleared")
REPLAYS = 30


def sent(log: CallLog) -> BoolArray:
    """Return whether a unit was sent to each call, shape (K,): it has a stamp, a unit, or a number of units above 0."""
    details = log.details
    signs = [details[name].notna().to_numpy() for name in (*STAMPS, "unit") if name in details]
    if "units_sent" in details:
        signs.append(details["units_sent"].to_numpy(float) > 0)
    if not signs:
        roles = ", ".join((*STAMPS, "unit", "units_sent"))
        raise InputError(f"the log does not say to which calls units were sent; it needs one of the roles {roles}.")
    return np.any(signs, axis=0)


def units_sent(log: CallLog) -> IntArray:
    """Return the number of units sent to each call, at least 1; 1 where unknown, shape (K,)."""
    if "units_sent" not in log.details:
        return np.ones(len(log), np.int64)
    return np.maximum(np.nan_to_num(log.details["units_sent"].to_numpy(float), nan=1.0), 1).astype(np.int64)


def dispatch_times(log: CallLog) -> Times:
    """Return when units were dispatched to the calls; the time of the call where that is unknown, shape (K,)."""
    if "dispatched" not in log.details:
        return log.times
    dispatched = log.details["dispatched"].to_numpy("datetime64[s]")
    return np.where(np.isnat(dispatched), log.times, dispatched)


def answering_stations(
    when: Times, reach: FloatArray, deployment: IntArray, busy: FloatArray, rounding: tuple[float, float]
) -> FloatArray:
    """Return the probability that each station has the closest free unit of a deployment, by call, shape (K, N).

    Rounded stamps leave open which unit was free, and one unit that is taken for another affects later calls too.
    Therefore the log is replayed `REPLAYS` times with seconds drawn for the stamps; probabilities are shares of the
    replays with a free unit. They are 0 where all units are always busy.

    ``when`` are the times of dispatch. Units are busy for the recorded time of the calls to which this rule sends them.
    ``rounding`` are the resolutions (min) of the stamps at the start and at the end of that time.
    """
    rng = np.random.default_rng(0)  # the same log has the same fit
    minutes = (when - when.min()).astype("timedelta64[s]").astype(float) / 60
    closest, count = closest_first(reach, deployment), np.zeros(reach.shape)
    for _ in range(REPLAYS):
        before, after = (resolution * rng.random(len(when)) for resolution in rounding)
        order = np.argsort(minutes + before)
        unit = send((minutes + before)[order], closest[order], np.maximum(busy + after - before, 0)[order])
        count[order[unit >= 0], deployment[unit[unit >= 0]]] += 1
    return count / np.maximum(count.sum(axis=1, keepdims=True), 1)


def closest_first(minutes: FloatArray, sites: IntArray) -> IntArray:
    """Return the units in order of their minutes to each call, shape (K, p).

    ``minutes`` has one row per call and one column per station; ``sites`` has the station of each unit, shape (p,).
    """
    return np.argsort(minutes[:, sites], axis=1, kind="stable").astype(np.int32)


@njit(cache=True, nogil=True)
def send(time: FloatArray, order: IntArray, busy: FloatArray) -> IntArray:
    """Return the unit that answers each call, the closest free one, -1 where all are busy, shape (K,).

    Parameters
    ----------
    time : ndarray, shape (K,)
        Minutes at which units are dispatched, ascending.
    order : ndarray of int, shape (K, p)
        Units from the most to the least preferred.
    busy : ndarray, shape (K,)
        Minutes for which each call keeps its unit busy.
    """
    calls, units = order.shape
    release = np.full(units, -np.inf)
    answered = np.full(calls, -1)
    for k in range(calls):
        for r in range(units):
            unit = order[k, r]
            if release[unit] <= time[k]:
                answered[k] = unit
                release[unit] = time[k] + busy[k]
                break
    return answered
