"""Draw a log of calls from a known truth, to see how well a method recovers it or how many calls it needs.

Calls arrive in a Poisson stream, more by day than by night, at places scattered around the stations. The free unit with
the shortest mean drive goes. Its turnout is gamma distributed, its drive lognormal around a law, and it is busy for a
gamma distributed time; where that ends before it arrives, it is
recorded as cleared on arrival. Stamps are truncated to the clock's resolution, and a share of
calls has a wrong one: the arrival is that of another moment within an hour, or the departure is recorded late.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

import emsopt as eo
from emsopt.calls import _units

Distances = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""From stations and places, (N, 2) and (K, 2), to km or road minutes, (N, K)."""


@dataclass(frozen=True, eq=False)
class Truth:
    """What a log is drawn from.

    Attributes
    ----------
    fixed_min, minutes_per_km : float
        Mean minutes of a drive: fixed part, and per unit of distance (km, or road minutes with ``distances``).
    travel_cv : float
        Coefficient of variation of a drive within an hour of the day.
    hour_factors : ndarray, shape (24,)
        Ratio of drives at each hour to the law.
    turnout_min, turnout_night_min, turnout_cv : float
        Mean turnout by day and by night, and its coefficient of variation.
    service_min, service_cv : float
        Mean minutes from dispatch until the unit is free, and their coefficient of variation.
    handling_min : float
        Mean minutes from call to dispatch, exponential.
    wrong : float
        Share of calls with a wrong stamp.
    resolution_s : float
        Resolution of stamps in seconds.
    """

    fixed_min: float = 1.5
    minutes_per_km: float = 1.4
    travel_cv: float = 0.3
    hour_factors: np.ndarray = field(default_factory=lambda: np.ones(24))
    turnout_min: float = 1.4
    turnout_night_min: float = 1.9
    turnout_cv: float = 0.45
    service_min: float = 40.0
    service_cv: float = 0.6
    handling_min: float = 1.0
    wrong: float = 0.01
    resolution_s: float = 60.0


def synthetic_log(
    stations: pd.DataFrame,
    truth: Truth | None = None,
    *,
    calls_per_day: float = 80,
    days: int = 28,
    start: str = "2024-03-01",
    deployment: Sequence[int] | np.ndarray | None = None,
    spread_km: float = 2.0,
    distances: Distances | None = None,
    costs: Distances | None = None,
    rng: int | np.random.Generator | None = None,
) -> eo.calls.CallLog:
    """Draw a log of calls from a known truth.

    Parameters
    ----------
    stations : DataFrame
        ``name``, ``lon``, ``lat``.
    truth : Truth, optional
    calls_per_day, days : float, int
        Mean number of calls per day, and length of the log.
    start : str
        First day.
    deployment : array_like of int, shape (p,), optional
        Station of each unit. Default: one unit per station. Units are named by letters and the row of their station.
    spread_km : float
        Standard deviation of places, north and east, around a station chosen with equal probability.
    distances : callable, optional
        From stations and places to road minutes, such as `RoadNetwork.travel_times`. Default: km as the crow flies.
    costs : callable, optional
        Likewise, to costs: the free unit with the smallest is sent. Default: the distances.
    rng : numpy.random.Generator or seed, optional

    Returns
    -------
    CallLog
        Calls that found all units busy are left out.
    """
    truth, rng = Truth() if truth is None else truth, np.random.default_rng(rng)
    points = stations[["lon", "lat"]].to_numpy(float)
    sites = np.arange(len(points)) if deployment is None else np.asarray(deployment)
    if len(sites) == 0 or sites.min() < 0 or sites.max() >= len(points):
        raise eo.errors.InputError(
            f"`deployment` must have indices of the {len(points)} stations; got {sites.tolist()}."
        )
    n = int(rng.poisson(calls_per_day * days))
    by_hour = 1 - 0.6 * np.cos((np.arange(24) - 3) / 24 * 2 * np.pi)
    hour = rng.choice(24, n, p=by_hour / by_hour.sum())
    called = np.sort((rng.integers(0, days, n) * 24 + hour + rng.random(n)) * 60)
    dispatched = called + rng.exponential(truth.handling_min, n)
    hour = (dispatched // 60).astype(np.int64) % 24
    km = rng.normal(0, spread_km, (n, 2)) / (np.pi / 180 * eo.city.travel.EARTH_RADIUS_KM)
    places = points[rng.integers(0, len(points), n)]
    places = places + km / np.column_stack([np.cos(np.radians(places[:, 1])), np.ones(n)])
    reach = (eo.city.travel.great_circle_km if distances is None else distances)(points, places).T

    turnout = _gamma(
        rng, np.where(eo.calls.calibration.IS_NIGHT[hour], truth.turnout_night_min, truth.turnout_min), truth.turnout_cv
    )
    service = _gamma(rng, np.full(n, truth.service_min), truth.service_cv)
    order = np.argsort(dispatched, kind="stable")
    preferred = _units.units_by_cost((reach if costs is None else costs(points, places).T)[order], sites)
    unit = np.empty(n, np.int64)
    unit[order] = _units.assign_units(dispatched[order], preferred, service[order])
    mean = truth.fixed_min + truth.minutes_per_km * reach[np.arange(n), sites[unit]]
    drive = eo.city.travel.lognormal(mean * truth.hour_factors[hour], truth.travel_cv, rng.standard_normal(n))
    left, arrived, cleared = dispatched + turnout, dispatched + turnout + drive, dispatched + service
    cleared = np.maximum(cleared, arrived)

    kind, where = rng.random(n), rng.uniform(0, 60, n)
    arrived_stamp = np.where(kind < truth.wrong / 2, left + where, arrived)
    late = (kind > 1 - truth.wrong / 2) & (drive > 1)
    left_stamp = np.where(late, arrived - rng.random(n), left)
    names = np.array([f"{_letters((sites[:k] == s).sum())}{s + 1}" for k, s in enumerate(sites)])
    minutes = {"time": called, "dispatched": dispatched, "en_route": left_stamp, "on_scene": arrived_stamp}
    answered = unit >= 0
    columns = {
        name: _clock(start, values, truth.resolution_s) for name, values in (minutes | {"cleared": cleared}).items()
    }
    frame = pd.DataFrame({"lon": places[:, 0], "lat": places[:, 1], "unit": names[unit], **columns})
    return eo.calls.read_calls(frame[answered].reset_index(drop=True))


def _letters(k: int) -> str:
    """Return the letters of the k-th unit of a station."""
    return "ETRSUVWXYZ"[k % 10] * (k // 10 + 1)


def _gamma(rng: np.random.Generator, mean: np.ndarray, cv: float) -> np.ndarray:
    """Draw gamma distributed numbers with these means."""
    return mean * rng.gamma(cv**-2, cv**2, len(mean))


def _clock(start: str, minutes: np.ndarray, resolution_s: float) -> pd.Series:
    """Return times as a clock with this resolution (s) writes them, from minutes since a day's beginning."""
    seconds = np.floor(minutes * 60 / resolution_s) * resolution_s
    return pd.Series(np.datetime64(start, "s") + seconds.astype("timedelta64[s]"))
