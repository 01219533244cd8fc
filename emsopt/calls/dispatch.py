"""Rules of dispatch: which station sends a unit to a place, and which one if its units are busy.

=============  ==================================================================================================
rule           stations that come first
=============  ==================================================================================================
"nearest"      the closest one
"agency"       those of the agency that a column of the log names for calls there, the closest first
"first due"    the one that a column of the log names for calls there; without such a column, those with the highest
               score (below)
=============  ==================================================================================================

All other stations follow in order of travel time. The first station with a free unit sends it. Travel times of a model
follow the law of an answer (`emsopt.calls.calibration`), fitted under the same rule.

**Score.** The calls around a place are the `NEAREST_BY_UNITS` closest ones within half the distance to its second
closest station. If a station answered v of the f calls around that found one of its units free, and r stations with
calls in the log are closer, its score is (v + `PRIOR_CALLS` (1 - `DECAY`) `DECAY`^r) / (f + `PRIOR_CALLS`), so that
with few calls the order is that of distance. A station without calls in the log keeps its place by distance. The order
is poor where calls are few or far from each other, units are seldom free, or their homes are uncertain. If the log has
no service times, f counts all calls around, and the order also depends on how busy units were.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.sparse import csr_array
from scipy.spatial import cKDTree

from ..city.city import City
from ..errors import Argument, InputError, Message, _validate
from ..errors._types import BoolArray, FloatArray, IntArray
from ._names import is_district
from ._points import project
from ._units import STATION_NUMBER, busy_minutes, dispatch_times, regular_units
from .log import CallLog

RULES = ("nearest", "agency", "first due")  # the simplest comes first
AREA_WORDS = re.compile("(?i)area|ground|due")  # in names of columns that tell where calls are, not who answered
LEAST_MATCHED_SHARE = 0.5  # share of the words of a column that must be names of stations
NEAREST_BY_COLUMN, NEAREST_BY_UNITS = 5, 50  # calls around a place that tell its district, or its order of stations
PRIOR_CALLS, DECAY = 10.0, 0.3  # further calls, and the ratio of a station's share of them to that of the one before


@dataclass(frozen=True, eq=False)
class Dispatch:
    """A rule of dispatch, with the calls of a log that determine its order of stations.

    Attributes
    ----------
    rule : {"nearest", "first due", "agency"}
    column : str
        Column of the log that names stations or agencies; empty if the order follows from the units that answered.
    points, places : ndarray, shape (N, 2) and (K, 2)
        Longitudes and latitudes of the stations, and of the calls that determine the order.
    station_group, call_group : ndarray of int, shape (N,) and (K,)
        By agency, the agency of each station (-1 if unknown), and the one that the column names for each call; else the
        station itself, and the one that the column names or, without a column, that answered.
    free : ndarray of bool, shape (K, N)
        Whether each station had a free unit at the time of each call; true where that is unknown.
    """

    rule: str
    column: str
    points: FloatArray
    station_group: IntArray
    places: FloatArray
    call_group: IntArray
    free: BoolArray

    @property
    def first_choice(self) -> str:
        """Text that says which station comes first, such as "the closest station"."""
        due = f"that {self.column!r} names" if self.column else "that answered most calls around that found it free"
        return {"nearest": "the closest station", "agency": f"the closest station of the agency {due}",
                "first due": f"the station {due}"}[self.rule]  # fmt: skip

    def costs(self, places: FloatArray, reach: FloatArray) -> FloatArray:
        """Return costs, shape (N, M), as `City.preference`: the station with the lowest one comes first at a place.

        ``places``, (M, 2), are longitudes and latitudes; ``reach``, (N, M), is the distance or time to them from the
        stations. Costs have its unit.
        """
        if self.rule == "nearest":
            return reach
        around = self._nearby_calls(places)
        votes = (around @ (self.call_group[:, None] == self.station_group)).T
        shown = np.isin(self.station_group, self.call_group)[:, None] | bool(self.column)
        if self.column:  # all that are not named come in order of distance
            score = (votes == votes.max(axis=0)) & (votes > 0)
        else:  # a station without calls in the log must not fall behind all that have some: it keeps its distance
            rank = np.where(shown, reach, np.inf).argsort(axis=0, kind="stable").argsort(axis=0)
            score = (votes + PRIOR_CALLS * (1 - DECAY) * DECAY**rank) / ((around @ self.free).T + PRIOR_CALLS)
        order = np.lexsort((reach, -score.astype(float), np.broadcast_to(~shown, reach.shape)), axis=0)
        # the first takes its distance, each further one no less than those before, so that costs remain distances
        furthest = np.maximum.accumulate(np.take_along_axis(reach, order, axis=0), axis=0)
        costs = np.empty_like(reach)
        np.put_along_axis(costs, order, furthest + 1e-9 * np.arange(len(reach))[:, None], axis=0)
        return np.where(shown, costs, reach)

    def apply_to(self, city: City, places: FloatArray) -> City:
        """Return ``city`` with its sites in the order of this rule; ``places``, (M, 2), are its atoms, in degrees."""
        if self.rule == "nearest":
            return city
        notes = f"{city.notes} Sent first: {self.first_choice}."
        return city.replace(preference=self.costs(places, city.response_times), notes=notes)

    def _nearby_calls(self, places: FloatArray) -> csr_array:
        """Return a sparse matrix, (M, K), with 1 where a call is one of those that tell the order at a place."""
        middle = self.points[0, 0], self.points[:, 1].mean()
        points, calls, places = (project(each, middle) for each in (self.points, self.places, places))
        most = min(NEAREST_BY_COLUMN if self.column else NEAREST_BY_UNITS, len(self.places))
        apart, near = cKDTree(calls).query(places, np.arange(1, most + 1))
        within: BoolArray = np.ones(near.shape, bool)
        if not self.column and len(self.points) > 1:  # half way to the second station: less where the order is in doubt
            within &= apart <= cKDTree(points).query(places, [2])[0] / 2
        rows = np.arange(0, near.size + 1, most)
        return csr_array((within.ravel().astype(float), near.ravel(), rows), shape=(len(places), len(self.places)))


def dispatch_of(
    rule: str,
    log: CallLog,
    stations: pd.DataFrame,
    home: IntArray | None = None,
    homes: Mapping[str, str] | None = None,
    given: str = "",
) -> Dispatch:
    """Return a rule of dispatch with the data of a log; raise if the log or the stations lack what it needs.

    ``home`` is the station of the unit that answered each call, -1 if unknown, shape (K,), and ``homes`` the station
    of each unit. ``given`` is the setting to leave out, for the error, if it keeps units from telling the order.
    """
    _validate.choice(rule, "dispatch", RULES)
    station_group, call_group, column = np.arange(len(stations)), np.full(len(log), -1), ""
    free: BoolArray = np.ones((len(log), len(stations)), bool)
    if rule == "agency":
        station_group, call_group, column = _agencies(log, stations)
    elif rule == "first due":
        call_group, column = _first_due_stations(log, stations["name"])
        if not column:
            call_group = call_group if home is None else home
            if homes and log.service_min is not None:
                free = free_stations(log, call_group, homes, regular_units(homes, log.details), stations["name"])
    known = call_group >= 0
    if rule != "nearest" and not known.any():
        raise _unknown_order_error(log, given)
    points = stations[["lon", "lat"]].to_numpy(float)
    return Dispatch(rule, column, points, station_group, log.locations[known], call_group[known], free[known])


def _unknown_order_error(log: CallLog, given: str) -> InputError:
    """Return the error for a log that tells no order of stations, with the remedy; ``given`` as in `dispatch_of`."""
    said = "the log names no first-due stations of the table, and tells no order of stations, as that needs units "
    said += "with a known home and calibrated times, so that `dispatch` cannot be 'first due'. Name a column by "
    remedy = "."
    if {"unit", "dispatched", "on_scene"} <= set(log.details):
        remedy = ", or give the home of each unit by `homes`."
        remedy = f", or leave out `{given}`, so that the units that answered tell the order." if given else remedy
    return InputError(Message(said, Argument("columns", {"first_due": ...}), remedy))


def _first_due_stations(log: CallLog, names: pd.Series[Any]) -> tuple[IntArray, str]:
    """Return the first-due station of each call by a column, -1 if unknown, (K,), and that column; "" if none fits."""
    stated = ["station"] if AREA_WORDS.search(log.taken.get("station", "")) else []
    for role in (role for role in ("first_due", *stated) if role in log.details):
        column, words = log.taken.get(role, role), log.details[role]
        district = role == "first_due" and is_district(column)  # numbers of districts may be those of anything
        if district:
            words = words.where(words.str.contains(r"[^\W\d]", na=False))
        for form in (_plain_word,) if district else (_plain_word, _station_number):  # Station 4 may be 4, 04 or E4
            places = {form(name): k for k, name in enumerate(names)}
            call_group = np.array([places.get(form(word), -1) for word in words])
            filled = log.details[role].notna()
            if filled.any() and len(places) == len(names) and (call_group[filled] >= 0).mean() > LEAST_MATCHED_SHARE:
                return call_group, column
    return np.full(len(log), -1), ""


def _agencies(log: CallLog, stations: pd.DataFrame) -> tuple[IntArray, IntArray, str]:
    """Return the agencies of stations, (N,), and calls, (K,), as numbers, -1 if unknown, and the column of calls."""
    tables = {"columns": (log.details, "log", "call"), "station_columns": (stations, "table of stations", "station")}
    for name, (table, which, of) in tables.items():
        if "agency" not in table:
            said = f"dispatch by agency needs a column of the {which} that names the agency of each {of}. Name it by "
            raise InputError(Message(said, Argument(name, {"agency": ...}), ", or leave out `dispatch`."))
    station_group, words = pd.factorize(stations["agency"].map(lambda word: _plain_word(word) or None))
    place = {word: k for k, word in enumerate(words)}
    call_group = np.array([place.get(_plain_word(word), -1) for word in log.details["agency"]])
    if not (call_group >= 0).any():
        got = " and ".join(_validate.quote(t["agency"].dropna().unique()[:5].tolist()) for t, *_ in tables.values())
        one, other = (Argument(name, {"agency": ...}) for name in tables)
        said = f"calls and stations must name the same agencies; got {got}. Name other columns by "
        raise InputError(Message(said, one, " or ", other, ", or leave out `dispatch`."))
    return station_group, call_group, log.taken.get("agency", "agency")


def _plain_word(word: object) -> str:
    """Return a name in lower case without blanks around it; empty if it is missing."""
    return "" if _validate.is_missing(word) else str(word).strip().casefold()


def _station_number(word: object) -> str:
    """Return the number in a name such as "Station 4", or the name in lower case if it has none."""
    found = STATION_NUMBER.fullmatch(str(word).strip())
    return _plain_word(word) if found is None else found[1]


def free_stations(
    log: CallLog, home: IntArray, homes: Mapping[str, str], units: Iterable[str], names: pd.Series[Any]
) -> BoolArray:
    """Return a mask, (K, N): whether each station has a free unit, one of ``units``, when a call is dispatched."""
    when, records = dispatch_times(log), [log] if log.occupying is None else [log, log.occupying]
    start = np.concatenate([dispatch_times(part) for part in records])
    until = start + (60 * np.concatenate([busy_minutes(part) for part in records])).astype("timedelta64[s]")
    sent, free = np.concatenate([part.details["unit"] for part in records]), np.zeros((len(log), len(names)), bool)
    for unit in units:
        mine = np.flatnonzero(sent == unit)
        mine = mine[np.argsort(start[mine], kind="stable")]
        last = np.r_[start.min(), until[mine]][np.searchsorted(start[mine], when)]  # end of its last work before
        free[:, names == homes[unit]] |= (last <= when)[:, None]
    free[home >= 0, home[home >= 0]] = True
    return free
