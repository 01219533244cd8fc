"""The model of a city from a log of calls and a table of stations, with its assumptions.

`build` checks the data, calibrates times from the log's stamps or assumes them, counts the calls in cells, and finds
today's deployment and the size of the fleet.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from ..calls import Checks, Demand, Fit, aggregate_calls, calibrate, check_calls, read_calls, read_stations
from ..calls._units import busy_minutes, calls_with_unit, end_before_next_call, regular_units
from ..calls.calibration import describe_missing_units, name_stations
from ..calls.checks import non_call_masks
from ..calls.demand import REACH_KM, near_stations
from ..calls.dispatch import Dispatch, dispatch_of
from ..calls.log import CallLog, Source
from ..calls.profile import week_mask
from ..calls.recorded import recorded_responses
from ..city.city import City
from ..city.deployment_space import DeploymentSpace
from ..city.travel import PLAUSIBLE_KMH
from ..errors import Argument, ContradictionError, InputError, Message, _validate
from ..errors._types import FloatArray, IntArray
from ..evaluators import evaluate, p_median
from ..evaluators.by_name import check_evaluator
from ..evaluators.objective import Objective
from .fleet import units_needed
from .settings import SPEED_KMH, TURNOUT_MIN, Settings

TIME_SETTINGS = ("speed_kmh", "travel_times")  # settings without which times are calibrated
STAMP_TITLES = {"dispatched": "time of dispatch", "on_scene": "time of arrival on scene", "cleared": "time of clearing"}
HOME_SOURCES = {"given": "as given", "numbers": "by the numbers in their names", "log": "by the calls that they answer"}
OTHER_ROWS = {
    "answered": "count as calls",
    "occupying": "only keep units busy, for {:,.0f} hours in all; the model adds this time to the calls",
    "ignored": "are left out",
}
MOST_UNITS_NAMED = 5
SEVERAL_PER_CALL = 1.2  # units per call; from here on workloads suffer noticeably from sending only one in the model


@dataclass(frozen=True, eq=False)
class LogModel:
    """The city made from a log of calls, with the log itself, the checks of the data and the assumptions.

    Attributes
    ----------
    settings, stations, demand, city
        Settings of the analysis, table of stations, calls per atom, and the city itself.
    log : CallLog
        All calls within reach.
    checks : Checks
        What looks wrong in the data, with rows of the file.
    fit : Fit or None
        What was calibrated from the log; None if times are given or assumed.
    dispatch : Dispatch
        Which station is sent first.
    making : mapping
        Options of `Fit.city` or `Demand.city` with which the city was made.
    today : ndarray of int, shape (p,), or None
        Site of each of today's units; None if not known.
    data_notes, assumed : tuple of str
        Sentences on the data in the files, and on what was assumed.
    rows : str
        Sentences on rows that were left out or joined, or may not be calls.
    contradiction : ContradictionError or None
        Error if times in the log contradict the stations.
    """

    settings: Settings
    log: CallLog
    stations: pd.DataFrame
    checks: Checks
    fit: Fit | None
    demand: Demand
    city: City
    dispatch: Dispatch
    making: Mapping[str, Any]
    today: IntArray | None
    data_notes: tuple[str, ...]
    assumed: tuple[str, ...] = field(default=())
    rows: str = ""
    contradiction: ContradictionError | None = None

    @property
    def calls(self) -> CallLog:
        """All calls of the log or, if times are calibrated, those to which a unit was sent."""
        return self.log if self.fit is None else self.fit.calls

    @property
    def count_options(self) -> dict[str, Any]:
        """The options of `aggregate_calls` with which the calls were counted, by name."""
        return _count_options(self.settings) | {"cell_km": self.demand.cell_km}

    @cached_property
    def recorded_calls(self) -> CallLog | None:
        """The calls in the hours and weekdays of the settings; None if none of them has a recorded response."""
        chosen = week_mask(self.settings.hours, self.settings.weekdays).ravel()[self.calls.hours_of_week]
        try:
            calls = self.calls.where(chosen)
            recorded_responses(calls)
        except InputError:
            return None
        return calls

    @property
    def rates_by_hour(self) -> FloatArray | None:
        """Calls per hour of each atom at each hour of the day, shape (24, M); None unless all hours are covered."""
        if self.settings.hours is not None:
            return None
        try:
            return self.demand.rates_by_hour(weekdays=self.settings.weekdays)
        except InputError:  # the log does not cover every hour
            return None

    def with_cells(self, cell_km: float) -> LogModel:
        """Return the model with cells ``cell_km`` wide; raise if these show single callers or are too many."""
        demand = _count_calls(self.calls, self.stations, self.count_options | {"cell_km": cell_km}, self.rows)
        return self.with_fields(demand=demand, city=_make_city(demand, self.fit, self.making, self.dispatch))

    def with_fields(self, **fields: Any) -> LogModel:
        """Return a copy with ``fields`` replaced; the fleet size, which takes long to find, is kept."""
        model = replace(self, **fields)
        vars(model)["fleet"] = self.fleet
        return model

    def space(self, units: int) -> DeploymentSpace:
        """Return the space of the deployments of ``units`` units that the settings allow."""
        s = self.settings
        return DeploymentSpace(self.city, units, colocation=s.colocate, pinned=list(s.pinned), closed=list(s.closed))

    def objective(self, units: int) -> Objective:
        """Return the objective of deployments of ``units`` units under the settings."""
        s = self.settings
        return Objective(self.city, self.space(units), s.evaluator, s.metric, capacity=s.capacity)

    @cached_property
    def fleet(self) -> tuple[int, str]:
        """Size of the fleet, and its reason in words: as given, as today, or the fewest units.

        The fewest are those that reach the recorded mean response or, if none is recorded, `units_needed`.
        """
        s, city = self.settings, self.city
        if s.units is not None:
            return _validate.whole_number(s.units, "units"), "as given"
        if self.today is not None:
            return len(self.today), "as many as today"
        places = city.n_sites - len(set(s.closed))
        least = max(units_needed(city), len(s.pinned))
        least = least if s.colocate else min(least, places)
        if self.recorded_calls is None:
            load = f"{city.total_rate * city.mean_service_time / 60:.2f} at once"
            return least, f"the fewest that lose at most 1 % of the calls ({load}) and are busy at most 30 %"
        minutes = float(recorded_responses(self.recorded_calls)[0].mean())
        low, high = least, places + 1
        while low < high:  # the mean response falls with the fleet; the last one stands for none
            middle = (low + high - 1) // 2
            space = DeploymentSpace(city, middle, pinned=list(s.pinned), closed=list(s.closed))
            found = evaluate(city, p_median(city, space).sites, check_evaluator(None, middle), capacity=s.capacity)
            low, high = (low, middle) if found.mean_response <= minutes else (middle + 1, high)
        reached = f"the recorded mean response of {minutes:.2f} min"
        if low > places:
            return low - 1, f"one at each station, which does not reach {reached}"
        return low, f"the fewest with about {reached}, at different stations"


def build(calls: CallLog | Source, stations: Source, settings: Settings | None = None) -> LogModel:
    """Make the city of a log of calls and a table of stations, as `read_calls` and `read_stations` take them.

    Raise if a setting is invalid, or neither files nor settings say how long a call keeps a unit busy.

    Examples
    --------
    >>> import emsopt as eo
    >>> model = eo.planning.build(*eo.datasets.practice_calls(), eo.planning.Settings(cell_km=2.0))
    >>> model.city.n_sites, model.assumed[0]
    (10, 'Units are assumed to drive 40 km/h on 1.3 times the straight-line distance.')
    """
    s = settings or Settings()
    calls, stations = read_calls(calls), name_stations(read_stations(stations))
    if s.turnout_times is not None:  # the user's setting overrides the file
        stations = stations.drop(columns="turnout_min", errors="ignore")
    _validate.positive_number(s.threshold, "threshold", "min")
    said, rows = _describe_data(calls, stations)
    calls, others = _treat_other_rows(calls, stations, s)
    rows += others
    read = [said + (others and f"{others} `others` changes that."), *_note_on_unused_columns(calls)]
    checks = check_calls(calls, stations, reach_km=s.reach_km)
    if s.reach_km < REACH_KM:  # the calibration would leave out only calls beyond that
        calls = calls.where(near_stations(calls.locations, stations[["lon", "lat"]].to_numpy(float), s.reach_km))
    log = calls.without_repeats() if s.drop_repeats else calls
    fit, note, refused = _calibrate(log, stations, s)
    demand = _count_calls(log if fit is None else fit.calls, stations, _count_options(s), rows)
    making, assumed = _city_options(demand, fit, s)
    given = next((name for name in TIME_SETTINGS if getattr(s, name) is not None), "")
    rule = s.dispatch if refused is None else "nearest"
    dispatch = dispatch_of(rule, log, stations, given=given) if fit is None else fit.dispatch
    city = _make_city(demand, fit, making, dispatch)
    today, who = _current_deployment(city, fit, log, s)
    read += [note, *([] if fit is None else describe_missing_units(log, fit)), *who]
    if not s.colocate and (why := _sharing_reason(today, city.n_sites)):
        s = replace(s, colocate=True)
        assumed.append(f"Several units may share a station: {why}.")
    made = (s, log, stations, checks, fit, demand, city, dispatch, making, today)
    model = LogModel(*made, tuple(read), rows=rows, contradiction=refused)
    units, note = model.fleet
    if s.units is None:
        assumed.append(f"The fleet has {units} units: {note}.")
    vars(model)["assumed"] = (*assumed, *_general_assumptions(model))  # a copy would look for the fleet again
    return model


def _describe_data(calls: CallLog, stations: pd.DataFrame) -> tuple[str, str]:
    """Return a sentence on the log and its stations, and one on rows left out or joined, empty if there are none."""
    first, last = (str(t)[:10] for t in calls.times[[0, -1]])
    rows = "" if calls.not_chosen is None else f"; `where` leaves out {calls.not_chosen:,} rows"
    rows += f"; {joined}" if (joined := calls.joined_text) else ""
    said = f"{len(calls):,} calls from {first} to {last} ({calls.clock} time), {len(stations)} stations{rows}."
    return said, f" {rows[2:]}.".replace("`", "") if rows else ""


def _treat_other_rows(calls: CallLog, stations: pd.DataFrame, s: Settings) -> tuple[CallLog, str]:
    """Treat rows that may not be calls as `Settings.others` says; return the log, and sentences on these rows or ""."""
    done = OTHER_ROWS[_validate.choice(s.others, "others", OTHER_ROWS)]
    kind, never = non_call_masks(calls, stations[["lon", "lat"]].to_numpy(float))
    others, hours, without = kind | never, 0.0, ""
    if not others.any():
        return calls, ""
    parts = [(kind.sum(), "by their kind"), (never.sum(), "far away that no unit reached")]
    reasons = [f"{n:,} {why}" for n, why in parts if n]
    counted = " and ".join(reasons) if len(reasons) > 1 else reasons[0].partition(" ")[2]
    if s.others != "answered":
        if others.all():
            raise InputError("`others` leaves out all calls: each may be none, by its kind or as no unit reached it.")
        rows, calls = _occupying_rows(calls.where(others)) if s.others == "occupying" else None, calls.where(~others)
        if rows is not None and rows.service_min is not None:
            unknown, mean = int(np.isnan(rows.service_min).sum()), np.nanmean(rows.service_min)
            without = f" {unknown:,} rows without a usable duration count as {mean:.0f} min each." if unknown else ""
            rows = end_before_next_call(rows, calls)
            hours = busy_minutes(rows).sum() / 60
        calls = replace(calls, occupying=rows)
    return calls, f" {others.sum():,} rows may not be calls ({counted}). They {done.format(hours)}.{without}"


def _occupying_rows(rows: CallLog) -> CallLog | None:
    """Return the rows to which a unit was sent, or None if there are none; raise if all of them lack service times."""
    sent = calls_with_unit(rows)
    if sent.any() and (rows.service_min is None or np.isnan(rows.service_min[sent]).all()):
        said = "rows that may be no calls do not say how long they keep units busy, so that they cannot be `others` "
        said += "'occupying'. Name the time of clearing by "
        raise InputError(Message(said, Argument("columns", {"cleared": ...}), ", or leave these rows out."))
    return rows.where(sent) if sent.any() else None


def _count_calls(calls: CallLog, stations: pd.DataFrame, counting: Mapping[str, Any], rows: str) -> Demand:
    """Count the calls by the options ``counting``; ``rows``, sentences on rows of the log, end the notes."""
    demand = aggregate_calls(calls, stations, **counting)
    return replace(demand, notes=demand.notes + rows)


def _count_options(s: Settings) -> dict[str, Any]:
    """Return the settings that are options of `aggregate_calls`."""
    names = ("cell_km", "areas", "area_name", "crs", "reach_km", "empty_days")
    return {name: getattr(s, name) for name in names}


def _make_city(demand: Demand, fit: Fit | None, making: Mapping[str, Any], dispatch: Dispatch) -> City:
    """Return the city of a demand with the options ``making``, by the fit or, without one, by the dispatch rule."""
    if fit is not None:
        return fit.city(demand=demand, **making)
    return dispatch.apply_to(demand.city(**making), demand.locations)


def _note_on_unused_columns(calls: CallLog) -> list[str]:
    """Return a list with a sentence on unused columns of times, empty if there are none or no stamp is missing."""
    missing = [role for role in STAMP_TITLES if role not in calls.details]
    if not calls.spare or not missing:
        return []
    names = ", ".join(map(repr, calls.spare))
    guessed = {role: name for name, role in calls.spare.items() if role} or {missing[0]: next(iter(calls.spare))}
    which = " or the ".join(STAMP_TITLES[role] for role in missing)
    said = f"Columns of times not taken: {names}. If one is the {which}, name it, such as by "
    return [Message(said, Argument("columns", guessed), ".")]


def _calibrate(
    calls: CallLog, stations: pd.DataFrame, s: Settings
) -> tuple[Fit | None, str, ContradictionError | None]:
    """Calibrate times from the log; return the fit or None, and a sentence on the origin of the times.

    The third result is an error if times in the log contradict the stations, else None.
    """
    given = [name for name in (*TIME_SETTINGS, "roads") if getattr(s, name) is not None]
    if len(given) > 1:
        raise InputError("give one of `speed_kmh`, `travel_times` and `roads`.")
    if given and given != ["roads"]:
        return None, "Travel times are given, not calibrated from the log.", None
    if missing := [STAMP_TITLES[role] for role in ("dispatched", "on_scene") if role not in calls.details]:
        return None, f"The log cannot tell how long units take: it has no {' and no '.join(missing)}.", None
    try:
        fit = calibrate(calls, stations, s.homes, s.roads, s.dispatch)
    except InputError as error:
        if s.homes is not None:
            raise
        said = Message("The log does not tell how long units take, because ", *Message.of(error).parts)
        return None, said, ContradictionError(said) if isinstance(error, ContradictionError) else None
    return fit, f"Times are calibrated from the log: {fit.answer_law.drives:,} recorded drives.", None


def _city_options(demand: Demand, fit: Fit | None, s: Settings) -> tuple[dict[str, Any], list[str]]:
    """Return the options of `Fit.city` or `Demand.city`, and sentences on those that are assumed."""
    making: dict[str, Any] = {"name": s.name, "hours": s.hours, "weekdays": s.weekdays}
    making |= _service_option(demand, fit, s)
    driving, assumed = ({}, []) if fit is not None else _driving_options(s)
    turnout = s.turnout_times
    if turnout is None and fit is None and "turnout_min" not in demand.stations:
        turnout = TURNOUT_MIN
        assumed.append(f"Turnout is assumed to take {TURNOUT_MIN:g} min.")
    if turnout is not None:
        making["turnout_times"] = _validate.positive_number(turnout, "turnout_times", "min", zero=True)
    return making | driving, assumed


def _driving_options(s: Settings) -> tuple[dict[str, Any], list[str]]:
    """Return the options of `Demand.city` for the travel times, and a list of sentences on what they assume."""
    if s.travel_times is not None:
        return {"travel_times": s.travel_times}, []
    if s.roads is not None:
        return {"roads": s.roads}, ["Units are assumed to drive at the speed limits of the roads."]
    how = {"speed_kmh": s.speed_kmh or SPEED_KMH, "detour": s.detour}
    if s.speed_kmh is None:
        said = f"Units are assumed to drive {SPEED_KMH:g} km/h on {s.detour:g} times the straight-line distance."
        return how, [said]
    low, high = PLAUSIBLE_KMH
    if not low <= s.speed_kmh <= high:
        raise InputError(f"`speed_kmh` must be from {low} to {high} km/h; got {s.speed_kmh:g}.")
    return how, []


def _service_option(demand: Demand, fit: Fit | None, s: Settings) -> dict[str, Any]:
    """Return the option ``service_times`` of `Demand.city` by its name; empty if its default applies."""
    service = s.service_times
    if service is None:
        both = demand.service_min is not None and "service_min" in demand.stations
        return {"service_times": "calls"} if both and (fit is None or fit.service is None) else {}
    known = isinstance(service, str) and service in ("calls", "stations")
    return {"service_times": service if known else _validate.positive_number(service, "service_times", "min")}


def _current_deployment(city: City, fit: Fit | None, calls: CallLog, s: Settings) -> tuple[IntArray | None, list[str]]:
    """Return the site of each of today's units, (p,), or None, and sentences on today's units and those left out."""
    left_out: list[str] = []
    if s.today is not None:
        given = list(s.today)
        if not given:
            raise InputError("`today` names no station. Give the station of each unit, or leave it out.")
        today, by = city.sites_named(given) if isinstance(given[0], str) else np.asarray(given), "as given"
    elif fit is None or fit.homes_from == "unknown":
        today, by = _deployment_in_log(city, calls), "by the stations in the log"
    elif "unit" in fit.calls.details:
        today, by, left_out = fit.deployment, "by the units in the log", _units_left_out(fit)
    else:
        today, by = fit.deployment, "by the stations in the log"
    if not len(today):
        unknown = "Today's deployment is not known from the log: give it by `today`, or the station of each unit"
        return None, [f"{unknown} by `homes`."]
    return today, [f"Today: {len(today)} units at {len(set(today.tolist()))} stations, {by}.", *left_out]


def _deployment_in_log(city: City, calls: CallLog) -> IntArray:
    """Return the sites of the units by the stations that the log names, (p,); empty if none of these is a site."""
    if "station" not in calls.details:
        return np.empty(0, dtype=int)
    named = calls.details.dropna(subset=["station"]).filter(["station", "unit"]).drop_duplicates()["station"]
    return np.sort(city.sites_named([name for name in named if name in city.site_names]))


def _sharing_reason(today: IntArray | None, n_sites: int) -> str:
    """Return the reason in today's deployment for allowing several units at a station; empty if there is none."""
    if today is None:
        return ""
    if len(set(today)) < len(today):
        return "today's do"
    return "each station has a unit today, which leaves no other choice" if len(today) == n_sites else ""


def _units_left_out(fit: Fit) -> list[str]:
    """Return sentences on how the homes of units are known, and on units of the log that are not deployed today."""
    counts = fit.calls.details["unit"].value_counts()
    homeless = [unit for unit in counts.index if unit not in fit.homes]
    seldom = sorted(set(fit.homes) & set(counts.index) - set(regular_units(fit.homes, fit.calls.details)))
    how = HOME_SOURCES.get(fit.homes_from, "by the stations in the log")
    said = [f"The log names {len(counts)} units; the homes of {len(counts) - len(homeless)} are known {how}."]
    for units, why in ((homeless, "no known home (give it by `homes`)"), (seldom, "hardly any calls")):
        if units:
            shown = ", ".join(units[:MOST_UNITS_NAMED]) + (", ..." if len(units) > MOST_UNITS_NAMED else "")
            said.append(f"Not deployed, {why}: {len(units)} with {counts[units].sum():,} calls ({shown}).")
    return said


def _general_assumptions(model: LogModel) -> list[str]:
    """Return sentences on the assumptions of the queueing model about units, dispatch and waiting calls."""
    details = model.calls.details
    each = details["units_sent"].mean() if "units_sent" in details else 1.0
    one = "One unit goes to each call, the closest that is free"
    if model.dispatch.rule != "nearest":
        own = model.dispatch.rule == "first due" and not model.dispatch.column
        others = "others in the order in which they answered there" if own else "closest that has a free one"
        one = f"One unit goes to each call, first from {model.dispatch.first_choice}, then from the {others}"
    if model.dispatch.rule == "agency":
        one += "; a unit that moves belongs to the agency of its new station"
    if each > SEVERAL_PER_CALL:
        one += f"; the log shows {each:.1f} units per call, so that true workloads are higher"
    busy = "wait" if model.settings.capacity == "queue" else "are left to others"
    said = ["All units are interchangeable.", f"{one}.", f"Calls that find all units busy {busy}."]
    if model.demand.busy_min is not None:
        said.append(
            "Rows that are no calls keep units busy when and where calls do, each unit in proportion to its calls."
        )
    return said
