"""Send units to the calls of a log, one after the other: the closest free unit goes and is busy for the call's time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numba import njit

if TYPE_CHECKING:
    from .._types import FloatArray, IntArray


def closest_first(minutes: FloatArray, sites: IntArray) -> IntArray:
    """Return the units in order of their minutes to each call, shape (K, p).

    ``minutes`` has one row per call and one column per station; ``sites`` has the station of each unit, shape (p,).
    """
    return np.argsort(minutes[:, sites], axis=1, kind="stable").astype(np.int32)


@njit(cache=True, nogil=True)
def send(time: FloatArray, order: IntArray, busy: FloatArray) -> IntArray:
    """Return the unit that answers each call, -1 where all are busy, shape (K,).

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
