r"""Home stations of units: by given names, by numbers in names, or by the calls that they answered.

**By the log.** A unit at station s answers a call of which s is the r-th closest station with a probability that falls
as :math:`\rho^r`, and its drive takes a lognormal time around a line in distance. A call in twenty is answered from
elsewhere. With these probabilities every station has a likelihood for every unit; the line and ρ are estimated from the
most likely stations in turn. A unit has a known home if that station has a probability above 95 %.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING

import numpy as np

from ..errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .._types import FloatArray, IntArray

NUMBER = re.compile(r"\D*?0*(\d+)\D{0,2}")
NAMED = 0.6  # share of calls whose unit must have the number of a station
SURE = 0.95
ELSEWHERE = 0.05
FEWEST = 5  # drives of a unit whose home is inferred
PASSES = 4


def by_mapping(homes: Mapping[str, str], units: Sequence[str], stations: Sequence[str]) -> IntArray:
    """Return the index of each unit's station in the names of stations, -1 for units not in ``homes``, shape (U,)."""
    if not isinstance(homes, Mapping):
        raise InputError(f"`homes` must be a mapping of units to station names; got {type(homes).__name__}.")
    place = {name: k for k, name in enumerate(stations)}
    for unit, name in homes.items():
        if name not in place:
            close = get_close_matches(str(name), stations, n=1)
            hint = f" Did you mean {close[0]!r}?" if close else ""
            raise InputError(f"`homes` must name stations; unit {unit!r} has {name!r}, which is none of them.{hint}")
    index = np.array([place[homes[unit]] if unit in homes else -1 for unit in units])
    if (index < 0).all():
        raise InputError(f"`homes` has none of the units of the log, which are {', '.join(units[:5])}, ...")
    return index


def by_number(units: Sequence[str], calls: IntArray, stations: Sequence[str]) -> IntArray | None:
    """Return the index of the station whose number each unit has, as E14 has that of Station 14, shape (U,).

    None if the names do not tell: numbers of stations are not distinct, or fewer than 60 % of the calls have a unit
    with the number of a station. ``calls`` are the calls of each unit.
    """
    found = [NUMBER.fullmatch(name.strip()) for name in stations]
    numbers = [None if match is None else match[1] for match in found]
    place = {number: k for k, number in enumerate(numbers) if number is not None}
    if len(place) < max(2, 0.8 * len(numbers)) or len(place) < sum(number is not None for number in numbers):
        return None
    matches = [NUMBER.fullmatch(unit.strip()) for unit in units]
    index = np.array([-1 if match is None else place.get(match[1], -1) for match in matches])
    return index if calls[index >= 0].sum() >= NAMED * calls.sum() else None


def by_log(unit: IntArray, distance: FloatArray, minutes: FloatArray) -> IntArray:
    """Return the index of the most likely station of each unit, -1 where no station is likely enough, shape (U,).

    Parameters
    ----------
    unit : ndarray of int, shape (K,)
        Unit of each drive, from 0.
    distance : ndarray, shape (K, N)
        Distance from each station.
    minutes : ndarray, shape (K,)
        Recorded minutes of each drive.
    """
    n_units, n = unit.max() + 1, distance.shape[1]
    rank = np.argsort(np.argsort(distance, axis=1), axis=1)
    logs = np.log(np.maximum(minutes, 0.5))[:, None]
    rows, rho, by_time = np.arange(len(unit)), 0.5, np.zeros_like(distance)
    enough = np.bincount(unit, minlength=n_units) >= FEWEST
    for _ in range(PASSES):
        chance = (1 - rho) * rho**rank * np.exp(by_time)
        score = np.zeros((n_units, n))
        np.add.at(score, unit, np.log((1 - ELSEWHERE) * chance + ELSEWHERE / n))
        best = score.argmax(axis=1)
        top = np.exp(score - score.max(axis=1, keepdims=True))
        sure = enough & (top.max(axis=1) / top.sum(axis=1) > SURE)
        of_sure = sure[unit]
        if not of_sure.any():
            break
        home, its_rank = best[unit], rank[rows, best[unit]]
        near = of_sure & (its_rank < 5)
        rho = float(np.clip(its_rank[near].mean() / (1 + its_rank[near].mean()), 0.05, 0.9))
        line = np.polyfit(distance[rows, home][near], minutes[near], 1)
        expected = np.log(np.maximum(np.polyval(line, distance), 0.5))
        spread = max(float(np.std((logs - expected)[near, home[near]])), 0.2)
        by_time = -(((logs - expected) / spread) ** 2) / 2
        by_time -= by_time.max(axis=1, keepdims=True)
    return np.where(sure, best, -1)
