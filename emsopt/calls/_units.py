r"""Units of a log: their home stations, their calls, and which unit would have been sent to each call.

Homes are given, follow from a column of stations or from numbers in names, or are inferred from the calls answered.

**Inference.** A unit at station s answers calls of which s is the r-th closest station with a frequency that falls as
:math:`\rho^r`, and its drive takes a lognormal time around a line in distance. The calls of a unit are then drawn from
all calls with probabilities :math:`\rho^r / \sum \rho^r`, where the sum over all calls keeps stations amid many calls
from attracting their neighbours' units. A fixed 5 % of the calls are assumed to be answered from elsewhere. The line
and ρ are estimated from the most likely stations in turn. Homes with a probability above 95 % count as known.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches

import numpy as np
import pandas as pd
from numba import njit

from ..errors import InputError, _validate
from ..errors._types import BoolArray, FloatArray, IntArray, Times
from ._names import STAMPS
from ._times import hour_of_week
from .log import CallLog

N_REPLAYS = 30  # of a log with seconds drawn for its stamps, for shares instead of guesses
STATION_NUMBER = re.compile(r"\D*?0*(\d+)\D{0,2}")
LEAST_NUMBERED_SHARE = 0.6  # of calls whose unit must have a station's number: else numbers mean something else
LEAST_PROBABILITY = 0.95
SHARE_ELSEWHERE = 0.05
FEWEST_DRIVES = 5  # drives of a unit whose home is inferred: fewer fit several stations
HOME_PASSES = 4  # of estimating homes, ρ and the line in turn
LEAST_COVERED_SHARE = 0.5  # of the calls, by units with given homes: else homes and log do not belong together
LEAST_MEDIAN_SHARE = 0.05  # of the median number of calls of a unit; units with fewer are not part of the deployment


def find_homes(
    homes: Mapping[str, str] | None, details: pd.DataFrame, names: Sequence[str], reach: FloatArray, minutes: FloatArray
) -> tuple[IntArray | None, dict[str, str], str]:
    """Return the station of each call's unit, the names of the homes of units, and `Fit.homes_from`.

    Stations are indices of ``names``, (K,), -1 if unknown; None if all are unknown. ``reach`` are the distances of the
    calls from the stations, (K, N), and ``minutes`` those of the drives, (K,).
    """
    code, found = pd.factorize(details.get("unit", pd.Series(None, details.index, object)), sort=True)  # -1 if unknown
    units, named = list(map(str, found)), code >= 0
    if homes is not None and not units:
        raise InputError("`homes` needs a log with a column of units; this log has none.")
    if homes is None and "station" in details:
        place = {name.casefold(): k for k, name in enumerate(names)}
        home = np.array([place.get(str(word).strip().casefold(), -1) for word in details["station"]])
        if (home >= 0).mean() > 0.5:
            known = (code >= 0) & (home >= 0)
            answered = np.zeros((len(units), len(names)))
            np.add.at(answered, (code[known], home[known]), 1)
            most_often = np.where(answered.any(axis=1), answered.argmax(axis=1), -1)
            return home, _name_homes(units, most_often, names), "station column"
    if homes is not None:
        index, source = homes_by_mapping(homes, units, names, code[named]), "given"
    elif (numbered := homes_by_number(units, np.bincount(code[named], minlength=len(units)), names)) is not None:
        index, source = numbered, "numbers"
    else:
        drives, index, source = named & ~np.isnan(minutes), np.full(len(units), -1), "log"
        if drives.any():
            index = homes_by_calls(code[drives], reach[drives], minutes[drives], len(units))
    if (index < 0).all():
        return None, {}, "unknown"
    return np.where(named, index[code], -1), _name_homes(units, index, names), source


def deployment_of(
    homes: Mapping[str, str], home: IntArray | None, details: pd.DataFrame, stations: pd.DataFrame
) -> IntArray:
    """Return the station of each unit that answers calls regularly, (p,); without known homes, one per station."""
    if not homes:
        if home is None:
            return np.arange(len(stations))
        answered = np.bincount(home[home >= 0], minlength=len(stations))
        return np.flatnonzero(answered >= max(LEAST_MEDIAN_SHARE * np.median(answered[answered > 0]), 1))
    place = {name: k for k, name in enumerate(stations["name"])}
    return np.sort([place[homes[unit]] for unit in regular_units(homes, details)])


def regular_units(homes: Mapping[str, str], details: pd.DataFrame) -> list[str]:
    """Return the units with known ``homes`` that answer at least 5 % of the median number of calls of these units."""
    calls = details["unit"].value_counts() if "unit" in details else pd.Series(dtype=float)
    counts = calls.reindex(list(homes)).fillna(0)
    return counts.index[counts >= LEAST_MEDIAN_SHARE * counts.median()].tolist()


def homes_by_mapping(
    homes: Mapping[str, str], units: Sequence[str], stations: Sequence[str], code: IntArray
) -> IntArray:
    """Return each unit's station by ``homes``, (U,), -1 if missing; raise if most calls, by ``code``, lack one."""
    if not isinstance(homes, Mapping):
        raise InputError(f"`homes` must be a mapping of units to station names; got {type(homes).__name__}.")
    place = {name: k for k, name in enumerate(stations)}
    for unit in (unit for unit in homes if homes[unit] not in place):
        close = get_close_matches(str(homes[unit]), stations, n=1)
        got = f"unit {unit!r} has {homes[unit]!r}, which is not a station"
        raise InputError(f"`homes` must name stations; {got}.{f' Did you mean {close[0]!r}?' if close else ''}")
    index = np.array([place.get(homes.get(unit, ""), -1) for unit in units])
    if (index < 0).all():
        raise InputError(f"`homes` has none of the units of the log, which are {', '.join(units[:5])}, ...")
    if (covered := float((index[code] >= 0).mean())) < LEAST_COVERED_SHARE:
        raise InputError(
            f"`homes` must name the stations of the units that answer most calls; it covers {covered:.0%} of them. "
            f"Add others, such as {_validate.quote(np.array(units)[index < 0][:5].tolist())}."
        )
    return index


def homes_by_number(units: Sequence[str], calls: IntArray, stations: Sequence[str]) -> IntArray | None:
    """Return the index of the station whose number each unit has, as E14 has that of Station 14, else -1, shape (U,).

    Return None if stations lack distinct numbers, or if units with such a station answer fewer than 60 % of the
    ``calls``, which are counts by unit, (U,).
    """

    def number(name: str) -> str | None:
        found = STATION_NUMBER.fullmatch(name.strip())
        return found and found[1]

    numbers = list(filter(None, map(number, stations)))
    place = {number(name): k for k, name in enumerate(stations) if number(name)}
    if len(place) < max(2, 0.8 * len(stations)) or len(place) < len(numbers):
        return None
    index = np.array([place.get(number(unit), -1) for unit in units])
    return index if calls[index >= 0].sum() >= LEAST_NUMBERED_SHARE * calls.sum() else None


def homes_by_calls(unit: IntArray, distance: FloatArray, minutes: FloatArray, n_units: int) -> IntArray:
    """Return the likeliest home of each unit, (n_units,), -1 if under 95 % sure, by K drives and distances, (K, N)."""
    rank = np.argsort(np.argsort(distance, axis=1), axis=1)
    logs = np.log(np.maximum(minutes, 0.5))[:, None]
    rows, rho, by_time = np.arange(len(unit)), 0.5, np.ones_like(distance)
    frequent = np.bincount(unit, minlength=n_units) >= FEWEST_DRIVES
    for _ in range(HOME_PASSES):
        drawn = rho**rank
        chance = drawn / drawn.mean(axis=0) * by_time
        score = np.zeros((n_units, distance.shape[1]))
        np.add.at(score, unit, np.log((1 - SHARE_ELSEWHERE) * chance + SHARE_ELSEWHERE))
        best = score.argmax(axis=1)
        top = np.exp(score - score.max(axis=1, keepdims=True))
        certain = frequent & (top.max(axis=1) / top.sum(axis=1) > LEAST_PROBABILITY)
        of_certain = certain[unit]
        if not of_certain.any():
            break
        home, its_rank = best[unit], rank[rows, best[unit]]
        near = of_certain & (its_rank < 5)
        rho = float(np.clip(its_rank[near].mean() / (1 + its_rank[near].mean()), 0.05, 0.9))
        line = np.polyfit(distance[rows, home][near], minutes[near], 1)
        expected = np.log(np.maximum(np.polyval(line, distance), 0.5))
        spread = max(float(np.std((logs - expected)[near, home[near]])), 0.2)
        misfit, anywhere = ((logs - expected) / spread) ** 2, (logs - np.median(logs)) ** 2
        # relative to drives from elsewhere, which take any time around the median
        by_time = np.exp((anywhere - misfit) / 2) / spread
    return np.where(certain, best, -1)


def _name_homes(units: list[str], index: IntArray, names: Sequence[str]) -> dict[str, str]:
    """Return the names of the stations of units by unit; ``index`` is each unit's station, -1 if unknown, (U,)."""
    return {unit: names[k] for unit, k in zip(units, index.tolist(), strict=True) if k >= 0}


def answering_stations(homes: Mapping[str, str], stations: pd.DataFrame, log: CallLog) -> IntArray:
    """Return the station of the unit that answered each call, -1 where it is unknown, shape (K,)."""
    place = {name: k for k, name in enumerate(stations["name"])}
    return np.array([place.get(homes.get(unit, ""), -1) for unit in log.details.get("unit", log.rows)])


def calls_with_unit(log: CallLog) -> BoolArray:
    """Return whether each call has a stamp, a unit, or a number of units sent above 0, shape (K,)."""
    details = log.details
    signs = [details[name].notna().to_numpy() for name in (*STAMPS, "unit") if name in details]
    if "units_sent" in details:
        signs.append(details["units_sent"].to_numpy(float) > 0)
    if not signs:
        roles = ", ".join((*STAMPS, "unit", "units_sent"))
        raise InputError(f"the log does not say to which calls units were sent; it needs one of the roles {roles}.")
    return np.any(signs, axis=0)


def dispatch_times(log: CallLog) -> Times:
    """Return the times of dispatch, or of the calls where these are unknown, shape (K,)."""
    if "dispatched" not in log.details:
        return log.times
    dispatched = log.details["dispatched"].to_numpy("datetime64[s]")
    return np.where(np.isnat(dispatched), log.times, dispatched)


def busy_minutes(log: CallLog) -> FloatArray:
    """Return the minutes for which each call kept a unit busy, their mean where unknown, shape (K,)."""
    assert log.service_min is not None
    return np.where(np.isnan(log.service_min), np.nanmean(log.service_min), log.service_min)


def end_before_next_call(rows: CallLog, log: CallLog) -> CallLog:
    """Return ``rows`` that are no calls with service times cut where their unit's next row or call begins."""
    minutes, when, called = busy_minutes(rows), dispatch_times(rows), dispatch_times(log)
    start, calls = ((times - when.min()).astype("timedelta64[s]").astype(float) / 60 for times in (when, called))
    for unit, of_unit in rows.details.groupby("unit").indices.items() if "unit" in rows.details else ():
        mine = of_unit[np.argsort(start[of_unit], kind="stable")]
        begin, stops = start[mine], np.r_[np.sort(calls[log.details["unit"] == unit]), np.inf]
        end = np.maximum.accumulate(np.minimum(begin + minutes[mine], stops[np.searchsorted(stops, begin)]))
        minutes[mine] = np.minimum(end, np.r_[begin[1:], np.inf]) - begin
    return replace(rows, service_min=minutes)


def busy_minutes_by_hour(rows: CallLog) -> FloatArray:
    """Return the minutes for which rows kept units busy by weekday and hour, added over all weeks, shape (7, 24)."""
    when, total = dispatch_times(rows), np.zeros(168)
    begin = (when - when.astype("datetime64[h]")).astype("timedelta64[s]").astype(float) / 60
    end, first = begin + busy_minutes(rows), hour_of_week(when)
    for k in range(int(end.max() // 60) + 1):
        total += np.bincount((first + k) % 168, np.clip(end - 60 * k, 0, 60) - (begin if k == 0 else 0), 168)
    return total.reshape(7, 24)


def answer_probabilities(
    when: Times, costs: FloatArray, deployment: IntArray, busy: FloatArray, rounding: tuple[float, float]
) -> FloatArray:
    """Return the probability that each station has the first free unit of a deployment, by call, shape (K, N).

    With rounded stamps it is uncertain which unit was free, and one wrong unit affects later calls too. Probabilities
    are therefore shares of `N_REPLAYS` replays with seconds drawn for the stamps. Low ``costs``, (K, N), come first;
    calls keep a unit ``busy`` for minutes, (K,), by stamps of two resolutions, ``rounding`` (min).
    """
    rng = np.random.default_rng(0)  # the same log has the same fit
    minutes = (when - when.min()).astype("timedelta64[s]").astype(float) / 60
    closest, count = units_by_cost(costs, deployment), np.zeros(costs.shape)
    for _ in range(N_REPLAYS):
        before, after = (resolution * rng.random(len(when)) for resolution in rounding)
        order = np.argsort(minutes + before)
        unit = assign_units((minutes + before)[order], closest[order], np.maximum(busy + after - before, 0)[order])
        count[order[unit >= 0], deployment[unit[unit >= 0]]] += 1
    return count / np.maximum(count.sum(axis=1, keepdims=True), 1)


def units_by_cost(costs: FloatArray, sites: IntArray) -> IntArray:
    """Return the order of units at ``sites``, (p,), by the ``costs`` of sites for calls, (K, N), shape (K, p)."""
    return np.argsort(costs[:, sites], axis=1, kind="stable").astype(np.int32)


@njit(cache=True, nogil=True)
def assign_units(time: FloatArray, order: IntArray, busy: FloatArray) -> IntArray:
    """Return the unit that answers each call, the first free one in ``order``, -1 if all are busy, shape (K,).

    ``time``, (K,), is when calls are dispatched (min, ascending), ``order``, (K, p), has the units from the most to the
    least preferred, and ``busy``, (K,), the minutes for which each call keeps its unit busy.
    """
    calls, units = order.shape
    release, answered = np.full(units, -np.inf), np.full(calls, -1)
    for k in range(calls):
        for unit in order[k]:
            if release[unit] <= time[k]:
                answered[k] = unit
                release[unit] = time[k] + busy[k]
                break
    return answered
