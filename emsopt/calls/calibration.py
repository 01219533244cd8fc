"""Calibrate turnout, travel and service times from the stamps of a log of calls.

=====================  ==================================  =========================================================
duration               from, to                            estimated
=====================  ==================================  =========================================================
call handling          ``time`` to ``dispatched``          mean and coefficient of variation
turnout                ``dispatched`` to ``en_route``      the same, also by day and by night (22 to 7 h)
travel                 ``en_route`` to ``on_scene``        a law over distance, with its variation, by hour of the day
service                ``dispatched`` to ``cleared``       mean and coefficient of variation
response               ``dispatched`` to ``on_scene``      not estimated: it is what `back_test` compares
=====================  ==================================  =========================================================

**Two laws of travel.** The *law of a drive* gives the minutes that a unit takes from its home station. The *law of an
answer* gives the minutes of travel that callers wait if the rule of dispatch (`emsopt.calls.dispatch`) sends a unit
whose home is at this distance. They differ where other units answer or units start elsewhere. The second law is fitted
to the units that the rule would have sent to the calls of the log, so that the mean of a model that sends units by the
rule, such as `Fit.city`, is the recorded one.

Likelihoods allow for the rounding of stamps (`emsopt.calls.recorded`) and a share of wrong records. Durations that are
negative or absurdly long are left out and counted. Intervals of 90 % held the truth in 88 to 92 % of 500 synthetic
logs, and the variation of travel in 82 % of those without units (`benchmarks/RESULTS.md`); they do not count that a
unit's times are alike for reasons that distance does not explain.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ..city import travel
from ..city.city import City
from ..city.travel import PLAUSIBLE_KMH
from ..errors import ContradictionError, InputError, _validate
from ..errors._types import ArrayLike, BoolArray, FloatArray, IntArray
from ..roads import RoadNetwork
from . import _travel_calibration, _units
from ._names import STAMPS
from ._times import hour_of_week
from ._travel_calibration import TravelLaw, fit_law
from .demand import NO_CALLS, REACH_KM, Demand, aggregate_calls, near_stations
from .dispatch import Dispatch, dispatch_of
from .log import CallLog, Source, read_calls, read_stations
from .profile import week_mask
from .recorded import FEWEST_DURATIONS, ONE_SECOND_MIN, DurationFit, Estimate, fit_duration, minutes_between, resolution

IS_NIGHT = np.array([h >= 22 or h < 7 for h in range(24)])
MOST_MINUTES = {"call handling": 60.0, "turnout": 30.0, "travel": _travel_calibration.LONGEST_MIN, "service": 1440.0}
DURATIONS = {  # from, to
    "call handling": ("time", "dispatched"),
    "turnout": ("dispatched", "en_route"),
    "travel": ("en_route", "on_scene"),
    "service": ("dispatched", "cleared"),
}
SHORT_DRIVE_MIN, LATE_TURNOUT = 0.99, 3.0  # a shorter drive after 3 median turnouts: departure recorded on arrival
LEAST_OF_FREE_FLOW = 0.3  # of the minutes at free flow; a law that is surely faster is impossible
MOST_SHARE_AT_DISPATCH = 0.1  # more departures within a second of dispatch tell nothing
SECOND_IN_MIN = 1 / 60  # min
BATCH_SIZE = 4000  # calls at a time whose distances to all stations are computed, to save memory


@dataclass(frozen=True, eq=False, repr=False)
class Fit:
    """Times of call handling, turnout, travel and service, calibrated from the stamps of a log.

    Attributes
    ----------
    stations : DataFrame
        As `read_stations` returns it, with names.
    calls : CallLog
        Calls to which a unit was sent. A pickle contains them, with places and times.
    call_handling, turnout, service : DurationFit or None
        None if the log has no such stamps. ``turnout.groups`` has the means by day and by night.
    law, answer_law : TravelLaw
        Laws of a drive and of an answer (`emsopt.calls.calibration`), over km as the crow flies, or minutes at free
        flow on ``roads``.
    homes : mapping of str to str
        Station of each unit, where known.
    homes_from : str
        "given", "station column", "numbers", "log" or "unknown".
    deployment : ndarray of int, shape (p,)
        Station of each unit that answers calls regularly; where homes are unknown, one unit per station.
    units_per_call : float
        Mean number of units sent to a call.
    drives : DataFrame
        ``call`` (its position in ``calls``), ``station`` (its index), ``distance`` and ``minutes`` of recorded drives
        of units with known homes; if no home is known, from the stations that most likely answered.
    left_out : mapping of str to int
        Number of calls or durations left out, by reason.
    roads : RoadNetwork or None
    dispatch : Dispatch
        Rule by which stations send units.
    """

    stations: pd.DataFrame
    calls: CallLog
    call_handling: DurationFit | None
    turnout: DurationFit | None
    service: DurationFit | None
    law: TravelLaw
    answer_law: TravelLaw
    homes: Mapping[str, str]
    homes_from: str
    deployment: IntArray
    units_per_call: float
    drives: pd.DataFrame
    left_out: Mapping[str, int]
    roads: RoadNetwork | None
    dispatch: Dispatch

    def to_frame(self) -> pd.DataFrame:
        """Return one row per estimate, indexed by name: ``estimate``, ``low`` and ``high`` (90 %), ``calls``."""
        found = dict[str, Estimate]()
        for name in ("call_handling", "turnout", "service"):
            if (duration := getattr(self, name)) is not None:
                found |= {f"{name}_min": duration.mean, f"{name}_cv": duration.cv}
                groups = zip(("day", "night"), duration.groups, strict=False)
                found |= {f"{name}_{part}_min": each for part, each in groups if each.calls >= FEWEST_DURATIONS}
        rows = {name: (each.value, *each.interval, each.calls) for name, each in found.items()}
        for name, law in (("", self.law), ("answer_", self.answer_law)):
            (low, high), slope = law.pace.interval, law.pace.value
            rows[f"{name}fixed_min"] = (*law.fixed_min, law.drives)
            rows[f"{name}{'minutes_per_km' if self.roads is None else 'road_factor'}"] = slope, low, high, law.drives
            if self.roads is None:
                rows[f"{name}speed_kmh"] = 60 / slope, 60 / high, 60 / low, law.drives
            rows[f"{name or 'travel_'}cv"] = law.cv.value, *law.cv.interval, law.drives
        return pd.DataFrame.from_dict(rows, orient="index", columns=["estimate", "low", "high", "calls"])

    def travel_minutes(self, km: ArrayLike) -> float | FloatArray:
        """Return the mean minutes of drives over ``km`` as the crow flies, same shape; raise if there are roads."""
        if self.roads is not None:
            raise InputError("this law converts minutes on roads, not km. Use `fit.city` or `fit.law.mean(minutes)`.")
        distance = _validate.floats(km, "km", "km")
        if not (distance >= 0).all():
            raise InputError(f"`km` must be at least 0; got {distance.min():g}.")
        minutes = self.law.mean(distance)
        return minutes if minutes.ndim else float(minutes)

    def distances(self, places: FloatArray) -> FloatArray:
        """Return km as the crow flies, or minutes at free flow if the fit has ``roads``, from N stations to M places.

        ``places``, shape (M, 2), are longitudes and latitudes in degrees. The result has shape (N, M).
        """
        return distances(self.stations, places, self.roads).T

    def home_of(self, calls: CallLog) -> IntArray:
        """Return the station of the unit that answered each call, -1 where it is unknown, shape (K,)."""
        return _units.answering_stations(self.homes, self.stations, calls)

    def demand(self, **options: Any) -> Demand:
        """Return the demand of the calls to which a unit was sent; ``options`` are those of `aggregate_calls`."""
        return aggregate_calls(self.calls, self.stations, **options)

    def city(
        self,
        *,
        hours: Iterable[int] | None = None,
        weekdays: Iterable[int | str] | None = None,
        demand: Demand | None = None,
        cell_km: float | None = None,
        areas: Source | None = None,
        **options: Any,
    ) -> City:
        """Return the city with the log's demand and the calibrated times and rule of dispatch.

        Parameters
        ----------
        hours, weekdays : sequence, optional
            Hours of the day (0 to 23) and weekdays ("Mon" or 0 to "Sun" or 6) that count. Default: all.
        demand : Demand, optional
            Result of `Fit.demand`. Default: computed, with ``cell_km`` or ``areas`` as for `aggregate_calls`.
        **options
            As for `Demand.city`. Options for times, ``travel_cv`` and ``turnout_cv`` replace calibrated values.
            ``turnout_times`` and ``service_times`` are needed if the log has no stamps for them.

        Returns
        -------
        City
            Travel times and ``travel_cv`` are those of ``answer_law``. Distances are to the middle of each cell, which
            overstates the mean response: in San José by 0.3 % with cells of 1 km and by 1 % with 2 km.
        """
        demand = self.demand(cell_km=cell_km, areas=areas) if demand is None else demand
        reach = self.distances(demand.locations)
        chosen = week_mask(hours, weekdays)
        weights = demand.counts.sum(axis=0)[chosen]
        if not weights.any():
            raise InputError(NO_CALLS)
        hour = np.broadcast_to(np.arange(24), (7, 24))[chosen]
        factors = self.answer_law.hour_factors[hour]
        factor = np.average(factors, weights=weights)
        hourly = np.average((factors / factor - 1) ** 2, weights=weights)  # means differ by hour, too
        notes = ""
        if not {"travel_times", "speed_kmh", "roads"} & options.keys():
            options["travel_times"] = self.answer_law.mean(reach) * factor
            law = f"{self.answer_law.drives:,} recorded drives, {self.answer_law.formula(self._distance_unit)}"
            notes = f" Travel times: calibrated from {law}."
        stations = demand.stations
        for name, column, duration in (
            ("turnout_times", "turnout_min", float(np.average(self.turnout_minutes(hour), weights=weights))),
            ("service_times", "service_min", None if self.service is None else self.service.mean.value),
        ):
            if name not in options and duration is not None:
                options[name] = duration
                stations = stations.drop(columns=column, errors="ignore")
        spread = float(np.sqrt((1 + self.answer_law.cv.value**2) * (1 + hourly) - 1))
        variation = 0.0 if self.turnout is None else self.turnout.cv.value
        options = {"travel_cv": spread, "turnout_cv": variation} | options
        city = replace(demand, stations=stations).city(hours=hours, weekdays=weekdays, **options)
        return self.dispatch.apply_to(city.replace(notes=city.notes + notes), demand.locations)

    def turnout_minutes(self, hour: IntArray) -> FloatArray:
        """Return the mean turnout (min) at each ``hour`` of the day, 0 to 23, same shape; 0 if unknown."""
        if self.turnout is None:
            return np.zeros(np.shape(hour))
        day, night = self.turnout.groups
        return np.where(IS_NIGHT[hour], night.value, day.value)

    def draw(self, rng: np.random.Generator) -> Fit:
        """Draw a fit of the same calls, with durations and laws from the distribution of their estimation errors."""
        durations = ("call_handling", "turnout", "service")
        drawn = {name: d.draw(rng) for name in durations if (d := getattr(self, name)) is not None}
        return replace(self, **drawn, law=self.law.draw(rng), answer_law=self.answer_law.draw(rng))

    @property
    def _distance_unit(self) -> str:
        return "km" if self.roads is None else "minute at free flow"

    def __repr__(self) -> str:
        parts = [
            f"{self.law.drives:,} drives",
            "" if self.turnout is None else f"turnout {self.turnout.mean.value:.2g} min",
            f"travel {self.law.formula(self._distance_unit)}",
            f"cv {self.law.cv.value:.2g}",
            "" if self.service is None else f"service {self.service.mean.value:.3g} min",
        ]
        return f"<Fit: {', '.join(filter(None, parts))}; homes: {self.homes_from}>"

    def _repr_html_(self) -> str:
        return self.to_frame().round(3).to_html()


def calibrate(
    calls: CallLog | Source,
    stations: Source,
    homes: Mapping[str, str] | None = None,
    roads: RoadNetwork | None = None,
    dispatch: str = "nearest",
) -> Fit:
    """Calibrate call handling, turnout, travel and service times from the stamps of a log.

    Parameters
    ----------
    calls : CallLog, or whatever `read_calls` takes
        With at least the roles ``dispatched`` and ``on_scene``; see `read_calls`.
    stations : DataFrame, or whatever `read_stations` takes
    homes : mapping of str to str, optional
        Name of the home station of each unit. Default: the log's column ``station``; or the stations whose numbers the
        units have, as E14 has that of Station 14; or the stations that the calls make most likely.
    roads : RoadNetwork, optional
        Roads with free-flow speeds. Default: distances are as the crow flies.
    dispatch : {"nearest", "first due", "agency"}
        Which station is sent first; see `emsopt.calls.dispatch`.

    Raises
    ------
    InputError
        If the log lacks the stamps, has fewer than 30 usable drives, or drives that hardly grow with distance, as where
        stations are missing; or if ``homes`` or ``dispatch`` do not fit the log and the stations.

    Examples
    --------
    >>> import emsopt as eo
    >>> fit = eo.calls.calibrate(*eo.datasets.san_jose_calls())
    >>> fit.homes_from, fit.homes["E14"], list(fit.to_frame().columns)
    ('numbers', 'Station 14', ['estimate', 'low', 'high', 'calls'])
    >>> fit.travel_minutes(3.0) < fit.travel_minutes(6.0)
    True
    """
    log, stations = read_calls(calls), name_stations(read_stations(stations))
    if missing := [role for role in ("dispatched", "on_scene") if role not in log.details]:
        needed = " and ".join(f"'{role}'" for role in missing)
        remedy = "Name its columns by `columns`, or give a speed by `speed_kmh`."
        raise InputError(f"calibration needs the times of dispatch and of arrival; the log lacks {needed}. {remedy}")
    near = near_stations(log.locations, stations[["lon", "lat"]].to_numpy(float))
    log = log.where(_units.calls_with_unit(log) & near)
    recorded = _read_durations(log)
    if recorded is None:  # departures tell nothing: the law then covers turnout too
        return calibrate(replace(log, details=log.details.drop(columns="en_route")), stations, homes, roads, dispatch)
    minutes, exact = recorded.minutes, recorded.exact
    when = _units.dispatch_times(log)
    hour = hour_of_week(when) % 24
    reach = distances(stations, log.locations, roads)
    sites = stations["name"].tolist()
    known_home, names, source = _units.find_homes(homes, log.details, sites, reach, minutes["travel"])
    deployment = _units.deployment_of(names, known_home, log.details, stations)
    service = minutes.get("service", np.full(len(log), np.nan))
    typical = float(np.nanmean(service)) if (~np.isnan(service)).any() else 0.0
    busy = np.where(np.isnan(service), typical, service)
    released = exact.get("cleared", SECOND_IN_MIN) if log.service_min is None else SECOND_IN_MIN
    rule = dispatch_of(dispatch, log, stations, known_home, names)
    costs = rule.costs(log.locations, reach.T).T
    work = [(when, costs, busy)]
    if (rows := log.occupying) is not None:  # their units are not free; of unknown units, the closest
        at = _units.answering_stations(names, stations, rows)
        at = np.where(at >= 0, at, distances(stations, rows.locations, None).argmin(axis=1))  # may be off roads
        between = distances(stations, stations[["lon", "lat"]].to_numpy(float), roads)
        work.append((_units.dispatch_times(rows), between[at], _units.busy_minutes(rows)))
    all_when, all_costs, all_busy = map(np.concatenate, zip(*work, strict=True))
    rounding = (exact["dispatched"], released)
    answering = _units.answer_probabilities(all_when, all_costs, deployment, all_busy, rounding)[: len(log)]
    at_home = answering
    if known_home is not None:
        at_home = (known_home[:, None] == np.arange(len(stations))).astype(float)
    turnout = recorded.duration("turnout", IS_NIGHT[hour].astype(np.int64)) if "en_route" in log.details else None
    target = minutes["travel"]  # departures recorded on arrival took from the drive what they gave to turnout
    if turnout is not None:
        target = target + np.where(recorded.at_once, np.nan_to_num(recorded.departed - turnout.mean.value), 0)
    law, known, home = _fit_travel(recorded, reach, hour, at_home)
    answer_law, *_ = _fit_travel(recorded, reach, hour, answering, target)
    _check_speeds((law, answer_law), roads is not None)
    drives = pd.DataFrame({"call": np.flatnonzero(known), "station": home})
    drives = drives.assign(distance=reach[known, home], minutes=minutes["travel"][known])
    sent = log.details.get("units_sent", pd.Series(1.0, log.details.index))
    far = {} if near.all() else {f"calls over {REACH_KM} km from every station": int((~near).sum())}
    return Fit(
        stations=stations,
        calls=log,
        call_handling=recorded.duration("call handling"),
        turnout=turnout,
        service=recorded.duration("service"),
        law=law,
        answer_law=answer_law,
        homes=names,
        homes_from=source,
        deployment=deployment,
        units_per_call=float((sent.fillna(1).clip(lower=1) // 1).mean()),
        drives=drives,
        left_out=far | recorded.left_out,
        roads=roads,
        dispatch=rule,
    )


class _Durations(NamedTuple):
    """Durations that the stamps of K calls tell."""

    minutes: dict[str, FloatArray]  # by the names of `DURATIONS`, (K,), NaN if unknown or impossible
    exact: dict[str, float]  # resolutions (min) of the stamps
    departed: FloatArray  # turnout (min), (K,), also of the calls ``at_once``
    at_once: BoolArray  # whether the departure was recorded on arrival, (K,)
    left_out: dict[str, int]  # number of durations by reason

    def duration(self, name: str, group: IntArray | None = None) -> DurationFit | None:
        """Estimate the duration ``name``, with means per ``group``, (K,), if given; None if fewer than 10 are known."""
        values = self.minutes.get(name, np.empty(0))
        known = ~np.isnan(values)
        if known.sum() < FEWEST_DURATIONS:
            return None
        start, end = (self.exact.get(stamp, SECOND_IN_MIN) for stamp in DURATIONS[name])
        return fit_duration(values[known], start, end, MOST_MINUTES[name], None if group is None else group[known])


def _read_durations(log: CallLog) -> _Durations | None:
    """Return the durations that a log tells; None if nearly all departures were recorded at the time of dispatch."""
    details, left_out = log.details, dict[str, int]()
    stamps = {name: details[name].to_numpy("datetime64[s]") for name in STAMPS if name in details}
    stamps["time"] = log.times
    stamps.setdefault("en_route", stamps["dispatched"])  # the law then covers turnout too
    exact = {name: resolution(times) for name, times in stamps.items()}
    minutes = {name: minutes_between(stamps[a], stamps[b]) for name, (a, b) in DURATIONS.items() if b in stamps}
    if log.service_min is not None:
        minutes["service"] = np.array(log.service_min)
    for name, values in minutes.items():
        for reason, bad in ((f"{name} below 0", values < 0), (f"{name} too long", values > MOST_MINUTES[name])):
            left_out |= {reason: int(bad.sum())} if bad.any() else {}
            values[bad] = np.nan
    departed, travel = minutes["turnout"], minutes["travel"]
    finest = max(exact["dispatched"], exact["en_route"], exact["on_scene"]) <= ONE_SECOND_MIN
    at_dispatch = finest & (departed <= ONE_SECOND_MIN)
    if "en_route" in details and at_dispatch.mean() > MOST_SHARE_AT_DISPATCH:
        left_out["departures recorded at dispatch"] = int(at_dispatch.sum())
        if (departed > ONE_SECOND_MIN).sum() < FEWEST_DURATIONS:
            return None
        departed[at_dispatch] = travel[at_dispatch] = np.nan
    at_once = (travel <= max(exact["en_route"], SHORT_DRIVE_MIN)) & ~np.isnan(departed)
    if at_once.any():
        at_once &= departed > LATE_TURNOUT * np.median(departed[~np.isnan(departed)])
    minutes["turnout"] = np.where(at_once, np.nan, departed)
    no_drive = finest & ~at_once & (travel <= ONE_SECOND_MIN)
    left_out |= {"travel of at most a second": int(no_drive.sum())} if no_drive.any() else {}
    travel[no_drive] = np.nan
    return _Durations(minutes, exact, departed, at_once, left_out)


def _fit_travel(
    recorded: _Durations, reach: FloatArray, hour: IntArray, chances: FloatArray, target: FloatArray | None = None
) -> tuple[TravelLaw, BoolArray, IntArray]:
    """Fit a law of travel; return it, a mask of the calls with a drive, (K,), and the likeliest station of each drive.

    ``reach`` are distances from the stations to the calls, ``chances`` the probabilities that the stations answered
    them, both (K, N); the law gets the mean of the minutes ``target``, (K,), if given.
    """
    chances, travelled = np.where(np.isfinite(reach), chances, 0), recorded.minutes["travel"]
    known = ~np.isnan(travelled) & chances.any(axis=1)
    drive, station = np.nonzero(chances[known])
    chance = (chances[known] / chances[known].sum(axis=1, keepdims=True))[drive, station]
    target_minutes = None if target is None else target[known]
    start, end, apart = recorded.exact["en_route"], recorded.exact["on_scene"], reach[known][drive, station]
    law = fit_law(travelled[known], apart, hour[known], start, end, target_minutes, drive, chance)
    return law, known, chances[known].argmax(axis=1)


def _check_speeds(laws: Iterable[TravelLaw], of_roads: bool) -> None:
    """Raise if driving times hardly grow with distance; ``of_roads`` is whether distances are minutes at free flow."""
    least, unit = (LEAST_OF_FREE_FLOW, "minute at free flow") if of_roads else (60 / PLAUSIBLE_KMH[1], "km")
    for law in laws:
        if law.pace_upper_end < least:
            speed = "" if of_roads else f", {60 / law.pace.value:,.0f} km/h"
            raise ContradictionError(
                f"recorded drives hardly grow with the distance from the stations: {law.formula(unit)}{speed}. Most "
                "probably stations are missing from the table, or units do not start from them. Complete the table, "
                "check the places of calls and stations, and give the home of each unit by `homes`."
            )


def distances(stations: pd.DataFrame, places: FloatArray, roads: RoadNetwork | None) -> FloatArray:
    """Return km as the crow flies, or minutes at free flow on ``roads``, from N stations to K places, shape (K, N)."""
    points = stations[["lon", "lat"]].to_numpy(float)
    if roads is not None:
        return np.ascontiguousarray(roads.travel_times(points, places, off_road_km=REACH_KM).T)
    parts = [travel.great_circle_km(places[k : k + BATCH_SIZE], points) for k in range(0, len(places), BATCH_SIZE)]
    return np.concatenate(parts)


def name_stations(stations: pd.DataFrame) -> pd.DataFrame:
    """Return a table of stations with names as text, "site 1" and so on if it has none; raise if two are alike."""
    names = _validate.names(stations.get("name"), "names of stations", len(stations), "site")
    return stations.assign(name=list(names))


def describe_missing_units(calls: CallLog, fit: Fit) -> list[str]:
    """Return sentences on the number of calls without a unit or with an unnamed one, and how a fit treats them."""
    far = sum(n for reason, n in fit.left_out.items() if "every station" in reason)
    unsent, lines = len(calls) - len(fit.calls) - far, []
    if unsent:
        got = f"{unsent:,} of {len(calls):,} calls got no unit"
        lines.append(f"{got}: they are left out, as they are no work for the fleet.")
    if "unit" in fit.calls.details and (unnamed := int(fit.calls.details["unit"].isna().sum())):
        lines.append(f"{unnamed:,} calls got a unit that the log does not name: they count as calls like all others.")
    return lines
