"""Draw cities from what a log leaves open, for decisions that should not depend on chance.

======== ======================================================================================
source   what is drawn
======== ======================================================================================
demand   calls per hour of the city and shares of the atoms: `RatePosterior`
travel   turnout, the law of travel times, both with their spreads, and the roads' deviations: `PairEffects`
service  the mean service time
======== ======================================================================================

Units are sent in the order of the estimated response times in all drawn cities: a dispatcher does not know better. If
the order followed the drawn times, the closest of many uncertain units would come out closer than any is, the more so
the less is known of its roads: in 80 logs of St. Paul, mean responses were 0.13 min too low for the deployment that had
driven and 0.17 for another; with the estimated order both were 0.04 min too low. The price is that a unit whose place
in the order is wrong in a drawn city does harm there, and removing it helps. In San José one of 33 such removals helps
in more than a fifth of the draws, by less than 0.0001 min.

**Limits.** The roads' deviations are taken for normal and alike in all directions. Where detours are long and sudden,
as at a river with few bridges, intervals are too narrow: those of 90 % held in 70 % of simulated cities of that kind,
and in 83 % on the roads of Auckland between its harbours (`benchmarks/RESULTS.md`). Give `calibrate` the roads there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from inspect import signature
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _validate
from ..city import travel
from ..city.city import City
from ..errors import InputError
from ._durations import resolution
from .demand import Demand, aggregate_calls, counted_calls
from .posterior import PairEffects, RatePosterior
from .profile import slots, watched

if TYPE_CHECKING:
    from .._types import FloatArray, IntArray, Rng
    from .calibration import Fit

SOURCES = ("demand", "travel", "service")
COUNTING = tuple(signature(aggregate_calls).parameters)[2:]
OPTIONS = {name for f in (aggregate_calls, Demand.city, City.from_frames) for name in signature(f).parameters}
OPTIONS -= {"calls", "stations", "self", "demand", "sites", "notes", "options"}


@dataclass(frozen=True, eq=False)
class DrawnCities:
    """A city as a log leaves it open.

    Attributes
    ----------
    fit : Fit
    estimate : City
        The city of the fit, with the mean deviations of the roads.
    rates : RatePosterior
    effects : PairEffects
    distances : ndarray, shape (N, M)
        What the law of travel times takes from each site to each atom.
    weeks : float
        Length of the log.
    """

    fit: Fit
    estimate: City
    rates: RatePosterior
    effects: PairEffects
    distances: FloatArray
    weeks: float

    def city(self) -> City:
        """Return the estimated city."""
        return self.estimate

    def draws(self, n: int, rng: Rng = None, *, vary: Iterable[str] = SOURCES, more: float = 1.0) -> Iterator[City]:
        """Yield drawn cities, with the atoms and sites of the estimate.

        Parameters
        ----------
        n : int
            Number of cities.
        rng : int or Generator, optional
            Random seed. The same seed gives each source the same draws, whatever else varies.
        vary : sequence of {"demand", "travel", "service"}
            What is drawn; all else stays at the estimate.
        more : float
            Draw as if the log were this many times as long, with the same estimates; it may be infinite.

        Yields
        ------
        City
        """
        chosen = [_validate.choice(source, "vary", SOURCES) for source in vary]
        seed = int(_validate.generator(rng).integers(2**62))
        demand, roads, service, spread = map(np.random.default_rng, np.random.SeedSequence(seed).spawn(4))
        estimate, fit = self.estimate, self.fit
        usual, mean = fit.answer_law.mean(self.distances), self.effects.mean
        per_hour = estimate.total_rate / self.rates.counts.sum() * self.rates.days
        base = estimate.replace(atom_shapes=None, preference=_preference(estimate))
        for _ in range(n):
            drawn: dict[str, float | FloatArray] = {}
            if "demand" in chosen:
                drawn["arrival_rates"] = self.rates.draw(demand, more) * per_hour
            if "travel" in chosen:
                law = fit.answer_law.draw(roads)
                factor = _longer(law.mean(self.distances) / usual, more)
                drawn["travel_times"] = estimate.travel_times * factor * self.effects.draw(roads, more) / mean
                drawn["travel_cv"] = estimate.travel_cv * _longer(law.cv.value / fit.answer_law.cv.value, more)
                if fit.turnout is not None:
                    turnout = fit.turnout
                    factor = _longer(turnout.mean.draw(roads).value / turnout.mean.value, more)
                    drawn["turnout_times"] = estimate.turnout_times * factor
                    factor = _longer(turnout.cv.draw(spread).value / turnout.cv.value, more)
                    drawn["turnout_cv"] = estimate.turnout_cv * factor
            if "service" in chosen and fit.service is not None:
                factor = _longer(fit.service.mean.draw(service).value / fit.service.mean.value, more)
                drawn["service_times"] = estimate.service_times * factor
            yield base._varied(**drawn)

    def __repr__(self) -> str:
        return f"<DrawnCities around {self.estimate!r}, from {self.weeks:.3g} weeks>"


def drawn_cities(
    fit: Fit,
    *,
    hours: Iterable[int] | None = None,
    weekdays: Iterable[int | str] | None = None,
    **options: Any,
) -> DrawnCities:
    """Find what a log leaves open about its city.

    Parameters
    ----------
    fit : Fit
    hours, weekdays, **options
        As for `aggregate_calls` and `Fit.city`. The time of a draw grows with the square of the number of atoms; 200
        take milliseconds.

    Returns
    -------
    DrawnCities

    Raises
    ------
    InputError
        If an option is unknown or invalid, or there are no calls in these hours.
    """
    if unknown := [name for name in options if name not in OPTIONS]:
        raise InputError(
            f"there is no option {unknown[0]!r}; there are {', '.join(sorted(OPTIONS))}. Remove it or correct its name."
        )
    counting = {name: options.pop(name) for name in COUNTING if name in options}
    demand, calls, atom = counted_calls(fit.calls, fit.stations, **counting)
    city = fit.city(hours=hours, weekdays=weekdays, demand=demand, **options)
    week = slots(hours, weekdays)
    day = calls.times.astype("datetime64[D]").astype(np.int64)
    days = np.unique(watched(fit.calls.times, counting.get("empty_days", "counted")).astype("datetime64[D]"))
    days = days.astype(np.int64)
    chosen = days[np.isin((days + 3) % 7, np.flatnonzero(week.any(axis=1)))]  # 1970-01-01 was a Thursday
    counted = week.ravel()[calls.hours_of_week]
    column = np.searchsorted(chosen, day[counted])
    counts = np.bincount(atom[counted] * len(chosen) + column, minlength=city.n_atoms * len(chosen))
    points = fit.stations[["lon", "lat"]].to_numpy(float)
    between, among = (travel.great_circle_km(p, p) for p in (points, demand.locations))
    effects = PairEffects.of(*_drives(fit, calls.rows, atom), between, among, _rounding(fit))
    city = city.replace(travel_times=city.travel_times * effects.mean)
    rates = RatePosterior.of(counts.reshape(city.n_atoms, len(chosen)))
    return DrawnCities(fit, city, rates, effects, fit.distances(demand.locations), len(days) / 7)


def _drives(fit: Fit, rows: IntArray, atom: IntArray) -> tuple[IntArray, IntArray, FloatArray, FloatArray]:
    """Return site, atom, minutes and expected minutes of the drives to the calls in these rows of the log."""
    atom_of_row = np.full(int(fit.calls.rows.max()) + 1, -1)
    atom_of_row[rows] = atom
    call, station, distance, minutes = (
        fit.drives[name].to_numpy() for name in ("call", "station", "distance", "minutes")
    )
    where = atom_of_row[fit.calls.rows[call]]
    expected = fit.law.mean(distance) * fit.law.hour_factors[fit.calls.hours[call]]
    return tuple(values[where >= 0] for values in (station, where, minutes, expected))


def _rounding(fit: Fit) -> float:
    """Return the unit of the stamps at the end of a drive, in minutes."""
    return resolution(fit.calls.details["on_scene"].to_numpy("datetime64[s]"))


def _longer(factor: Any, more: float) -> Any:
    """Return a factor drawn around 1 as a log that is ``more`` times as long would give it."""
    return factor ** (1 / np.sqrt(more))


def _preference(city: City) -> FloatArray:
    """Return the order in which units are sent in all drawn cities: that of the estimate."""
    return city.response_times if city.preference is None else city.preference
