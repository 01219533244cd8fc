"""Estimate demand from a log of calls: atoms, their rates through the week, and the resulting `City`.

A log records where calls came from, when, and how long they took. The user adds where units may wait, how
fast they drive and how long turnout takes. Rates are averages over the period of the log, without any
projection.
"""

from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from .. import _validate
from ..city import travel
from ..city.city import City
from ..errors import InputError
from . import areas as _areas
from .log import CallLog, read_calls, read_stations
from .profile import WeeklyProfile, hours_watched, pull_of_the_whole, slots

REACH_KM = 50
PATTERNS = ("pulled", "same")


@dataclass(frozen=True, eq=False, repr=False)
class Demand:
    """Calls by atom, day of the week and hour of the day.

    Attributes
    ----------
    atom_names : list of str, length M
    locations : ndarray, shape (M, 2)
        Degrees: centre of a cell, or a point inside an area.
    shapes : list of dict
        GeoJSON.
    counts : ndarray of int, shape (M, 7, 24)
        Calls; Monday comes first.
    hours : ndarray, shape (7, 24)
        Hours observed.
    stations : DataFrame
        As `read_stations` returns it.
    service_min : float or None
        Mean minutes that a call kept a unit busy; None if unknown.
    left_out : dict of str to int
        Number of calls left out, by reason.
    notes : str
        Notes on the data for readers of the results.
    """

    atom_names: list
    locations: np.ndarray
    shapes: list
    counts: np.ndarray
    hours: np.ndarray
    stations: pd.DataFrame
    service_min: float | None
    left_out: dict = field(default_factory=dict)
    notes: str = ""

    @property
    def profile(self):
        """Weekly profile of the calls of all atoms, a `WeeklyProfile`."""
        return WeeklyProfile(self.counts.sum(axis=0), self.hours)

    def rates(self, hours=None, weekdays=None):
        """Return calls per hour from each atom in the selected hours of the week, shape (M,)."""
        chosen = slots(hours, weekdays)
        watched = self.hours[chosen].sum()
        if watched == 0:
            raise InputError("the log does not cover any of these hours. Choose others.")
        return self.counts[:, chosen].sum(axis=1) / watched

    def city(
        self,
        *,
        hours=None,
        weekdays=None,
        speed_kmh=None,
        detour=1.3,
        travel_times=None,
        turnout_times=None,
        service_times=None,
        name="city",
    ):
        """Return the city with the demand of selected hours of the week.

        Parameters
        ----------
        hours, weekdays : sequence, optional
            Hours of the day (0 to 23) and weekdays ("Mon" or 0 to "Sun" or 6) whose calls count. Default:
            all.
        speed_kmh, detour, travel_times
            As for `City.from_frames`: a speed and a detour factor (road distance over straight-line
            distance), a travel-time law, or a table labelled with the names of stations and atoms.
        turnout_times : float, optional
            Minutes; needed if the stations have no ``turnout_min``.
        service_times : float or {"calls", "stations"}, optional
            Minutes, or the source: the mean of the log ("calls") or the column ``service_min`` of the
            stations. Default: whichever exists.
        name : str

        Returns
        -------
        City
        """
        demand = pd.DataFrame(
            {
                "name": self.atom_names,
                "lon": self.locations[:, 0],
                "lat": self.locations[:, 1],
                "arrival_rate": self.rates(hours, weekdays),
            }
        )
        if demand["arrival_rate"].sum() == 0:
            raise InputError("there are no calls in these hours. Choose others.")
        stations, minutes = self._service(service_times)
        city = City.from_frames(
            demand,
            stations,
            speed_kmh=speed_kmh,
            detour=detour,
            travel_times=travel_times,
            turnout_times=turnout_times,
            service_times=minutes,
            name=name,
            notes=self.notes + self._times_note(speed_kmh, detour),
        )
        return city.replace(atom_shapes=self.shapes)

    def cities_by_hour(self, *, weekdays=None, pattern="pulled", **options):
        """Return the city at each hour of the day, as `emsopt.planning` takes it.

        Parameters
        ----------
        weekdays : sequence, optional
            Weekdays whose calls count. Default: all.
        pattern : {"pulled", "same"}
            Spatial pattern of an hour. "pulled": the pattern of that hour's calls, shrunk towards the overall
            pattern by an amount estimated from the log (`pull_of_the_whole`). "same": the overall pattern at
            every hour, with only the number of calls changing.
        **options
            As for `city`.

        Returns
        -------
        dict of int to City
            By hour. An hour without calls is given half a call over the time observed.
        """
        _validate.choice(pattern, "pattern", PATTERNS)
        base = self.city(weekdays=weekdays, **options)
        chosen = slots(None, weekdays)
        counts = np.where(chosen, self.counts, 0).sum(axis=1).astype(float)  # (M, 24)
        watched = np.where(chosen, self.hours, 0).sum(axis=0)
        if (watched == 0).any():
            raise InputError(
                f"the log does not cover the hour {int(np.argmin(watched))} of the chosen days, which a plan "
                "of the day needs. Use a longer log."
            )
        overall = counts.sum(axis=1) / counts.sum()
        totals = np.maximum(counts.sum(axis=0), 0.5)
        pull = pull_of_the_whole(counts) if pattern == "pulled" else np.inf
        shares = np.broadcast_to(overall[:, None], counts.shape)
        if np.isfinite(pull):
            shares = (counts + pull * shares) / (counts.sum(axis=0) + pull)
        rates = shares * totals / watched
        return {
            hour: base.replace(arrival_rates=rates[:, hour], name=f"{base.name}, {hour:02d} to {hour + 1:02d} h")
            for hour in range(24)
        }

    def _service(self, service_times):
        """Return the stations, with or without their service times, and the service time to use instead."""
        ours, theirs = self.service_min is not None, "service_min" in self.stations
        without = self.stations.drop(columns="service_min", errors="ignore")
        if service_times is None:
            if ours and theirs:
                msg = "calls and stations both have 'service_min'. Choose one with service_times='calls' or 'stations'."
                raise InputError(msg)
            if not (ours or theirs):
                raise InputError(
                    "the time that a call keeps a unit busy is missing. Add a column 'service_min' (minutes) to the "
                    "calls or the stations, or give `service_times`."
                )
            service_times = "calls" if ours else "stations"
        if not isinstance(service_times, str):
            return without, service_times
        _validate.choice(service_times, "service_times", ("calls", "stations"))
        if not (ours if service_times == "calls" else theirs):
            raise InputError(f"the {service_times} have no column 'service_min'. Give `service_times` in minutes.")
        return (without, self.service_min) if service_times == "calls" else (self.stations, None)

    def _times_note(self, speed_kmh, detour):
        if speed_kmh is None:
            return ""
        speed, detour = (
            _validate.positive_number(value, name) for value, name in ((speed_kmh, "speed_kmh"), (detour, "detour"))
        )
        return f" Travel times: {speed:g} km/h on great-circle distance x {detour:g}; not measured."

    def __repr__(self):
        return (
            f"<Demand: {int(self.counts.sum()):,} calls in {len(self.atom_names)} atoms, {len(self.stations)} stations, "
            f"{self.profile.mean_rate:.3g} calls/h>"
        )


def aggregate_calls(
    calls, stations, *, cell_km=None, areas=None, reach_km=REACH_KM, empty_days="counted", area_name=None
):
    """Count the calls of a log by atom, day of the week and hour.

    Parameters
    ----------
    calls : CallLog, or whatever `read_calls` takes
    stations : DataFrame, or whatever `read_stations` takes
    cell_km : float, optional
        Width of the square cells that become atoms. Default: a round width that gives at most 200 cells.
    areas : path_like, file or GeoDataFrame, optional
        GeoJSON polygons to use instead of cells; see `emsopt.calls.areas`.
    reach_km : float
        Calls further than this from every station are left out.
    empty_days : {"counted", "missing"}
        Whether a day without calls counts as quiet, or was not recorded and is left out of the time observed.
    area_name : str, optional
        Property of the areas that holds their names.

    Returns
    -------
    Demand
        Contains only aggregated counts, never single calls.

    Raises
    ------
    InputError
        If no call is within reach, or there would be too many atoms.
    """
    calls = calls if isinstance(calls, CallLog) else read_calls(calls)
    stations = read_stations(stations)
    places = stations[["lon", "lat"]].to_numpy(dtype=float)
    if areas is not None and cell_km is not None:
        raise InputError("give either `areas` or `cell_km`; both were given.")
    reach_km = _validate.positive_number(reach_km, "reach_km", "km")
    near = nearest_km(calls.locations, places) <= reach_km
    if not near.any():
        raise InputError(
            f"no call is within {reach_km:g} km of a station; the first is at {calls.locations[0].tolist()}, the first "
            f"station at {places[0].tolist()} (longitude, latitude). Check for swapped coordinates and for "
            "a file of another city."
        )
    atoms = (
        _areas.cells(calls.locations[near], places, cell_km)
        if areas is None
        else _areas.within(calls.locations[near], _areas.read_areas(areas, key=area_name))
    )
    inside = atoms.index >= 0
    counted = calls.where(near).where(inside)
    week = counted.weekdays * 24 + counted.hours
    shape = (len(atoms.names), 7, 24)
    counts = np.bincount(atoms.index[inside] * 168 + week, minlength=np.prod(shape)).reshape(shape)
    service = None
    if counted.service_min is not None and not np.isnan(counted.service_min).all():
        service = float(np.nanmean(counted.service_min))
    left_out = {f"without {what}": n for what, n in calls.left_out.items()}
    left_out[f"over {reach_km:g} km from every station"] = int((~near).sum())
    left_out["in no area"] = int((~inside).sum())
    left_out = {reason: n for reason, n in left_out.items() if n}
    return Demand(
        atom_names=list(atoms.names),
        locations=atoms.locations,
        shapes=list(atoms.shapes),
        counts=counts,
        hours=hours_watched(calls.times, empty_days),
        stations=stations,
        service_min=service,
        left_out=left_out,
        notes=_notes(calls, counted, atoms.note, left_out),
    )


def city_from_calls(
    calls,
    stations,
    *,
    cell_km=None,
    areas=None,
    reach_km=REACH_KM,
    empty_days="counted",
    area_name=None,
    **options,
):
    """Build a city from a log of calls and a table of stations.

    Parameters
    ----------
    calls, stations, cell_km, areas, reach_km, empty_days, area_name
        As for `aggregate_calls`.
    **options
        As for `Demand.city`: at least ``speed_kmh`` or ``travel_times``, and turnout and service times unless
        the files have them.

    Returns
    -------
    City
    """
    demand = aggregate_calls(
        calls,
        stations,
        cell_km=cell_km,
        areas=areas,
        reach_km=reach_km,
        empty_days=empty_days,
        area_name=area_name,
    )
    return demand.city(**options)


def nearest_km(points, places):
    """Return the great-circle distance (km) from each point to the closest place, shape (K,)."""
    size = max(1, 2_000_000 // len(places))
    parts = [travel.great_circle_km(points[k : k + size], places).min(axis=1) for k in range(0, len(points), size)]
    return np.concatenate(parts)


def _notes(calls, counted, note, left_out):
    first, last = (str(t)[:10] for t in calls.times[[0, -1]])
    gone = ", ".join(f"{n:,} {reason}" for reason, n in left_out.items())
    return f"Demand: {len(counted):,} calls from {first} to {last} ({calls.clock} time). {note}" + (
        f" Left out: {gone}." if gone else ""
    )
