"""Estimate demand from a log of calls: atoms, their rates through the week, and the resulting `City`.

Rates are averages over the period of the log, without any projection.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from inspect import signature
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ..city import travel
from ..city.city import City
from ..errors import Argument, InputError, Message, _validate
from ..errors._types import BoolArray, FloatArray, IntArray
from . import areas as _areas
from ._times import hour_of_week
from ._units import busy_minutes_by_hour
from .log import CallLog, Source, read_calls, read_stations
from .profile import WeeklyProfile, count_observed_hours, describe_selection, observed_hours, shrinkage_calls, week_mask

REACH_KM = 50
FEWEST_WEEKS = 4  # shorter logs are split into days
FEWEST_PARTS = 3
DAY = np.timedelta64(1, "D")
NO_CALLS = "there are no calls in these hours. Choose others."


@dataclass(frozen=True, eq=False, repr=False)
class Demand:
    """Calls by atom, day of the week and hour of the day.

    Attributes
    ----------
    atom_names : list of str, shape (M,)
    locations : ndarray, shape (M, 2)
        Longitude and latitude in degrees of each atom: the centre of a cell, or a point inside an area.
    shapes : list of dict
        GeoJSON Polygon or MultiPolygon of each atom.
    counts : ndarray of int, shape (M, 7, 24)
        Number of calls, with Monday first.
    hours : ndarray, shape (7, 24)
        Number of times that each hour of the week, such as Monday from 8 to 9 h, was observed.
    stations : DataFrame
        As `read_stations` returns it.
    service_min : float or None
        Mean minutes that a call kept a unit busy; None if unknown.
    left_out : dict of str to int
        Number of calls left out, by reason.
    notes : str
        Sentences on the source of the data, for readers of results.
    cell_km : float or None
        Width of the square cells; None if the atoms are areas.
    busy_min : ndarray, shape (7, 24), or None
        Minutes for which rows that are no calls kept units busy in each hour of the week.
    all_counts : ndarray of int, shape (7, 24), or None
        Number of calls including those left out; each takes an equal part of ``busy_min``.
    """

    atom_names: list[str]
    locations: FloatArray
    shapes: list[dict[str, Any]]
    counts: IntArray
    hours: IntArray
    stations: pd.DataFrame
    service_min: float | None
    left_out: dict[str, int]
    notes: str
    cell_km: float | None = None
    busy_min: FloatArray | None = None
    all_counts: IntArray | None = None

    @property
    def profile(self) -> WeeklyProfile:
        """Weekly profile of the calls of all atoms."""
        return WeeklyProfile(self.counts.sum(axis=0), self.hours)

    def rates(self, hours: Iterable[int] | None = None, weekdays: Iterable[int | str] | None = None) -> FloatArray:
        """Return calls per hour from each atom, (M,), in selected hours of the week; raise if none was observed."""
        chosen = week_mask(hours, weekdays)
        if not self.hours[chosen].any():
            raise InputError("the log does not cover any of these hours. Choose others.")
        return self.counts[:, chosen].sum(axis=1) / self.hours[chosen].sum()

    def rates_by_hour(self, *, weekdays: Iterable[int | str] | None = None) -> FloatArray:
        """Return calls per hour by hour of the day and atom, shape (24, M), on some weekdays (default: all).

        The pattern of an hour is that of its calls, shrunk towards the pattern of all hours (`shrinkage_calls`). An
        hour without calls counts as having half a call. Raise if there are no calls on these weekdays, or the log does
        not cover every hour of the day.
        """
        days = week_mask(None, weekdays).any(axis=1)
        counts, watched = self.counts[:, days].sum(axis=1), self.hours[days].sum(axis=0)
        if (watched == 0).any():
            hour, some = int(watched.argmin()), weekdays is not None
            raise InputError(
                f"every hour of the day must be covered by the log{' on the given weekdays' if some else ''}; no time "
                f"from {hour}:00 to {hour + 1}:00 is. {'Give more weekdays or use' if some else 'Use'} a longer log."
            )
        if not counts.any():
            raise InputError(NO_CALLS)
        totals = counts.sum(axis=0)
        shares = np.repeat(counts.sum(axis=1, keepdims=True) / counts.sum(), 24, axis=1)
        concentration = shrinkage_calls(counts)
        if np.isfinite(concentration):
            shares = (counts + concentration * shares) / (totals + concentration)
        return (shares * np.maximum(totals, 0.5) / watched).T

    def city(
        self,
        *,
        hours: Iterable[int] | None = None,
        weekdays: Iterable[int | str] | None = None,
        service_times: float | str | None = None,
        speed_kmh: float | None = None,
        detour: float = 1.3,
        **options: Any,
    ) -> City:
        """Return the city with the demand of selected hours of the week; raise if they have no calls.

        Parameters
        ----------
        hours, weekdays : sequence, optional
            Hours of the day (0 to 23) and weekdays ("Mon" or 0 to "Sun" or 6) whose calls count. Default: all.
        service_times : float or {"calls", "stations"}, optional
            Minutes, or the source: the mean of the log ("calls") or the column ``service_min`` of the stations.
            Default: the one source that exists; if both or neither exist, an error is raised.
        speed_kmh, detour, **options
            As for `City.from_frames`. ``travel_times`` or ``roads`` may replace the speed; ``turnout_times`` is needed
            if the stations have no column ``turnout_min``. ``notes`` has no effect.

        Where rows that are no calls keep units busy (``busy_min``), service times include their minutes per call.
        """
        rates = self.rates(hours, weekdays)
        if not rates.any():
            raise InputError(NO_CALLS)
        lon, lat = self.locations.T
        demand = pd.DataFrame({"name": self.atom_names, "lon": lon, "lat": lat, "arrival_rate": rates})
        stations, minutes = self._stations_and_service_times(service_times)
        city = City.from_frames(demand, stations, service_times=minutes, speed_kmh=speed_kmh, detour=detour, **options)
        notes = self.notes + describe_selection(hours, weekdays)
        if self.busy_min is not None and self.all_counts is not None:
            chosen = week_mask(hours, weekdays)
            more = float(self.busy_min[chosen].sum() / self.all_counts[chosen].sum())
            city = city.replace(service_times=city.service_times + more)
            notes += f" Service times have {more:.1f} min per call more, for rows that are no calls but occupy units; "
            notes += "this load follows the calls."
        if speed_kmh is not None:
            notes += f" Travel times: {speed_kmh:g} km/h on great-circle distance x {detour:g}; not measured."
        if options.get("roads") is not None:
            notes += f" Travel times: at the speed limits of the roads {options['roads'].name!r}; not measured."
        return city.replace(atom_shapes=self.shapes, notes=notes)

    def cities_by_hour(self, **options: Any) -> dict[int, City]:
        """Return cities by hour of the day, 0 to 23, with the demand of that hour; ``options`` are those of `city`."""
        base, rates = self.city(**options), self.rates_by_hour(weekdays=options.get("weekdays"))
        names = [f"{base.name}, {hour:02d} to {hour + 1:02d} h" for hour in range(24)]
        return {h: base.replace(arrival_rates=rates[h], name=name) for h, name in enumerate(names)}

    def _stations_and_service_times(self, source: float | str | None) -> tuple[pd.DataFrame, Any]:
        """Return stations and service times (min) by ``service_times`` of `city`; None if each station has its own."""
        known = {"calls": self.service_min is not None, "stations": "service_min" in self.stations}
        if source is None:
            if all(known.values()):
                raise InputError("calls and stations both have 'service_min'. Choose one by `service_times`.")
            if not any(known.values()):
                remedy = "Add a column 'service_min' (minutes) to calls or stations, or give `service_times`."
                raise InputError(f"the time that a call keeps a unit busy is missing. {remedy}")
            source = "calls" if known["calls"] else "stations"
        if isinstance(source, str):
            if not known[_validate.choice(source, "service_times", known)]:
                raise InputError(f"the {source} have no column 'service_min' with times. Give `service_times`.")
            if source == "stations":
                return self.stations, None
            source = self.service_min
        return self.stations.drop(columns="service_min", errors="ignore"), source

    def __repr__(self) -> str:
        return (
            f"<Demand: {int(self.counts.sum()):,} calls in {len(self.atom_names)} atoms, {len(self.stations)} "
            f"stations, {self.profile.mean_rate:.3g} calls/h>"
        )


def aggregate_calls(
    calls: CallLog | Source,
    stations: Source,
    *,
    cell_km: float | None = None,
    areas: Source | None = None,
    reach_km: float = REACH_KM,
    empty_days: str = "counted",
    area_name: str | None = None,
    crs: object = None,
) -> Demand:
    """Count the calls of a log by atom, day of the week and hour, as a `Demand`, which holds no single calls.

    Raise if no call is within reach, or there would be more than 5,000 atoms.

    Parameters
    ----------
    calls : CallLog, or whatever `read_calls` takes
    stations : DataFrame, or whatever `read_stations` takes
    cell_km : float, optional
        Width of the square cells that become atoms. Default: the smallest of 0.25, 0.5, 1, 2, 3, 5, 10 and 20 that
        gives at most 400 cells, or 20 if none does.
    areas : path_like, file or GeoDataFrame, optional
        Polygons to use instead of cells, as for `emsopt.calls.areas.read_areas`.
    reach_km : float
        Calls further than this from every station are left out. With ``areas``, so are calls outside all areas.
    empty_days : {"counted", "missing"}
        "counted": days without calls were quiet and belong to the time observed. "missing": they were not recorded
        and are left out of it.
    area_name : str, optional
        Property of the areas that holds their names. Default: as in `emsopt.calls.areas.read_areas`.
    crs : int or str, optional
        Reference system of tables and areas whose coordinates are not degrees, as for `read_calls`.

    Examples
    --------
    >>> import emsopt as eo
    >>> eo.calls.aggregate_calls(*eo.datasets.practice_calls(), cell_km=2)
    <Demand: 3,947 calls in 56 atoms, 10 stations, 1.47 calls/h>
    """
    demand, *_ = demand_and_atoms(
        calls,
        stations,
        cell_km=cell_km,
        areas=areas,
        reach_km=reach_km,
        empty_days=empty_days,
        area_name=area_name,
        crs=crs,
    )
    return demand


def demand_and_atoms(
    calls: CallLog | Source,
    stations: Source,
    *,
    cell_km: float | None = None,
    areas: Source | None = None,
    reach_km: float = REACH_KM,
    empty_days: str = "counted",
    area_name: str | None = None,
    crs: object = None,
) -> tuple[Demand, CallLog, IntArray]:
    """Return the `Demand` of `aggregate_calls`, the calls that it counts, and the atom of each of them, shape (K,)."""
    log = read_calls(calls, crs=crs)
    stations = read_stations(stations, crs=crs)
    places = stations[["lon", "lat"]].to_numpy(dtype=float)
    if areas is not None and cell_km is not None:
        raise InputError("give either `areas` or `cell_km`; both were given.")
    reach_km = _validate.positive_number(reach_km, "reach_km", "km")
    near = near_stations(log.locations, places, reach_km)
    reached = log.where(near)
    if areas is None:
        atoms = _areas.assign_to_cells(reached.locations, places, cell_km)
    else:
        atoms = _areas.assign_to_areas(reached.locations, _areas.read_areas(areas, key=area_name, crs=crs))
    inside = atoms.index >= 0
    counted = reached.where(inside)
    counts = counts_by_hour(counted, atoms.index[inside], len(atoms.names))
    minutes = counted.service_min
    left_out = {f"without {what}": n for what, n in log.left_out.items()}
    for reason, kept in ((f"over {reach_km:g} km from every station", near), ("in no area", inside)):
        left_out |= {} if kept.all() else {reason: int((~kept).sum())}
    first, last = (str(t)[:10] for t in log.times[[0, -1]])
    notes = f"Demand: {len(counted):,} calls from {first} to {last} ({log.clock} time). {atoms.note}"
    if left_out:
        notes += f" Left out: {', '.join(f'{n:,} {reason}' for reason, n in left_out.items())}."
    rows = log.occupying
    demand = Demand(
        atom_names=atoms.names,
        locations=atoms.locations,
        shapes=atoms.shapes,
        counts=counts,
        # of the whole log: hours without counted calls were observed too
        hours=count_observed_hours(log.times, empty_days),
        stations=stations,
        service_min=None if minutes is None or np.isnan(minutes).all() else float(np.nanmean(minutes)),
        left_out=left_out,
        notes=notes,
        cell_km=atoms.width_km,
        busy_min=None if rows is None else busy_minutes_by_hour(rows),
        all_counts=None if rows is None else counts_by_hour(log, np.zeros(len(log), np.int64), 1)[0],
    )
    return demand, counted, atoms.index[inside]


def counts_by_hour(calls: CallLog, index: IntArray, n_atoms: int) -> IntArray:
    """Count calls by atom, weekday and hour, shape (n_atoms, 7, 24); ``index`` is the atom of each call, shape (K,)."""
    return np.bincount(index * 168 + calls.hours_of_week, minlength=168 * n_atoms).reshape(-1, 7, 24)


def city_from_calls(calls: CallLog | Source, stations: Source, **options: Any) -> City:
    """Build a city from a log of calls and a table of stations.

    Options are those of `aggregate_calls` and `Demand.city`: ``speed_kmh``, ``travel_times`` or ``roads``, and turnout
    and service times unless the files have them.

    Examples
    --------
    >>> import emsopt as eo
    >>> eo.calls.city_from_calls(*eo.datasets.practice_calls(), cell_km=2, speed_kmh=40).n_atoms
    56
    """
    counting = {name: options.pop(name) for name in signature(aggregate_calls).parameters if name in options}
    return aggregate_calls(calls, stations, **counting).city(**options)


def near_stations(points: FloatArray, places: FloatArray, reach_km: float = REACH_KM) -> BoolArray:
    """Return a mask, (K,), of ``points`` (degrees) at most ``reach_km`` from one of ``places``; raise if none is."""
    near = nearest_km(points, places) <= reach_km
    if near.any():
        return near
    message = (
        f"no call is within {reach_km:g} km of a station: the first call is at longitude {points[0, 0]:.2f} and "
        f"latitude {points[0, 1]:.2f}, the first station at {places[0, 0]:.2f} and {places[0, 1]:.2f}. "
    )
    if not (nearest_km(points[:, ::-1], places) <= reach_km).any():
        raise InputError(message + "Check that calls and stations are of the same city.")
    message += "Longitude and latitude are swapped in one of them: say which column is which by "
    raise InputError(Message(message, Argument("columns", {"lon": ..., "lat": ...}), " of calls or stations."))


def nearest_km(points: FloatArray, places: FloatArray) -> FloatArray:
    """Return the great-circle distance (km) from each point, (K, 2), to the closest place, (N, 2), shape (K,)."""
    n = max(1, 2_000_000 // len(places))
    parts = [travel.great_circle_km(points[k : k + n], places).min(axis=1) for k in range(0, len(points), n)]
    return np.concatenate([np.empty(0), *parts])


class HeldOutCalls(NamedTuple):
    """Calls of a part of a log, such as a week, and rates of all other parts, by hour of the day and atom, (24, M)."""

    other_rates: FloatArray  # calls per hour of all other parts, as `Demand.rates_by_hour`
    counts: FloatArray  # numbers of calls of the part


def held_out_weeks(
    calls: CallLog | Source,
    stations: Source,
    *,
    weekdays: Iterable[int | str] | None = None,
    most: int = 8,
    **options: Any,
) -> list[HeldOutCalls]:
    """Split a log into weeks, each with the rates estimated from all others; raise if fewer than three have calls.

    Parts are in order of time, have the atoms of the whole log, and begin on its first weekday; an incomplete last week
    belongs to the week before. A log of less than four weeks is split into days. Parts without calls are left out.

    Parameters
    ----------
    calls, stations, **options
        As for `emsopt.calls.aggregate_calls`; ``weekdays`` as for `emsopt.calls.Demand.rates_by_hour`.
    most : int
        Maximum number of parts, at least 3. Consecutive weeks are joined if there are more.

    Examples
    --------
    >>> import emsopt as eo
    >>> weeks = eo.calls.held_out_weeks(*eo.datasets.practice_calls(), cell_km=1)
    >>> len(weeks), weeks[0].other_rates.shape
    (8, (24, 169))
    """
    most = _validate.whole_number(most, "most", low=FEWEST_PARTS)
    log = read_calls(calls)
    demand, counted, atoms = demand_and_atoms(log, stations, **options)
    hours = observed_hours(log.times, options.get("empty_days", "counted"))
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

    result, on = [], week_mask(None, weekdays)
    of_call, of_hour = part_of(counted.times), part_of(hours)
    for part in range(parts):
        mine = of_call == part
        if not (mine & np.isin(counted.weekdays, np.flatnonzero(on.any(axis=1)))).any():
            continue
        counts = counts_by_hour(counted.where(mine), atoms[mine], len(demand.atom_names))
        occurs = np.bincount(hour_of_week(hours[of_hour == part]), minlength=168).reshape(7, 24)
        others = replace(demand, counts=demand.counts - counts, hours=demand.hours - occurs)
        chosen = np.where(on, counts, 0).sum(axis=1).T.astype(float)
        result.append(HeldOutCalls(others.rates_by_hour(weekdays=weekdays), chosen))
    if len(result) < FEWEST_PARTS:
        raise short
    return result
