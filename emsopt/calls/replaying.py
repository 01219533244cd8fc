"""Replay the calls of a log with a deployment: simulate the response times if its units had answered them.

In order of dispatch, each call gets one unit, the first free one by the rule of dispatch of a `Fit`, with turnout,
travel and service times drawn from it, or none if all are busy. Units always start from their stations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from ..city.travel import lognormal
from ..errors import InputError, _validate
from ..errors._types import FloatArray, IntArray, Rng, Times
from . import _units
from ._times import hour_of_week
from .calibration import Fit, distances
from .demand import near_stations
from .log import CallLog, Source, read_calls
from .recorded import DurationFit


@dataclass(frozen=True, eq=False, repr=False)
class Replay:
    """Simulated responses of p units to the K calls of a log, in a number of draws.

    Attributes
    ----------
    calls : CallLog
        Calls to which a unit was sent, at most 50 km from a station. A pickle contains them.
    deployment : ndarray of int, shape (p,)
        Station of each unit.
    response : ndarray, shape (draws, K)
        Turnout plus travel minutes; NaN for calls that found all units busy.
    unit : ndarray of int, shape (draws, K)
        Unit that answers, as an index into ``deployment``; -1 for calls that found all units busy.
    busy : ndarray, shape (draws, p)
        Minutes for which each unit is busy.
    turnout, service : ndarray, shape (draws, K)
        Minutes from dispatch until the unit leaves, and until it is free again; NaN as in ``response``. Service
        includes the minutes per call of rows that are no calls (`CallLog.occupying`).
    dispatched : ndarray of datetime64, shape (K,)
        When a unit was sent to each call.
    stations : DataFrame
        As `Fit.stations`.
    """

    calls: CallLog
    deployment: IntArray
    response: FloatArray
    unit: IntArray
    busy: FloatArray
    turnout: FloatArray
    service: FloatArray
    dispatched: Times
    stations: pd.DataFrame

    @property
    def mean_response(self) -> float:
        """Mean minutes from dispatch to arrival over all answered calls and draws."""
        return float(np.nanmean(self.response))

    @property
    def percentile_90(self) -> float:
        """90th percentile of the minutes from dispatch to arrival over all answered calls and draws."""
        return float(np.nanquantile(self.response, 0.9))

    def late_fraction(self, threshold: float) -> float:
        """Return the share of answered calls whose response takes ``threshold`` minutes or more."""
        threshold = _validate.positive_number(threshold, "threshold", "min", zero=True)
        return float((self.response[self.unit >= 0] >= threshold).mean())

    @property
    def loss_fraction(self) -> float:
        """Share of the calls that found all units busy."""
        return float((self.unit < 0).mean())

    def __repr__(self) -> str:
        draws, calls = self.response.shape
        return (
            f"<Replay: {calls:,} calls, {len(self.deployment)} units, {draws} draws: mean response "
            f"{self.mean_response:.2f} min, 90th percentile {self.percentile_90:.2f} min>"
        )


def replay(
    fit: Fit,
    calls: CallLog | Source | None = None,
    deployment: Sequence[int | str] | IntArray | None = None,
    *,
    draws: int = 20,
    rng: Rng = 0,
) -> Replay:
    """Replay the calls of a log with a deployment; raise if no call near a station got a unit.

    Parameters
    ----------
    fit : Fit
        As `calibrate` returns it, with service times. Each draw has its own parameters from `Fit.draw`.
    calls : CallLog, or whatever `read_calls` takes, optional
        Default: the calls of the fit.
    deployment : sequence of str or int, shape (p,), optional
        Name of the station of each unit, or its index in ``fit.stations``; repeat it for several units. Default:
        today's.
    draws : int
        Number of simulations.
    rng : numpy.random.Generator or seed
        The same seed gives the same times to the same calls whatever the deployment. Fixed by default, so that two
        deployments can be compared.

    Examples
    --------
    >>> import emsopt as eo
    >>> fit = eo.calls.calibrate(*eo.datasets.san_jose_calls())
    >>> eo.calls.replay(fit, fit.calls.between("2015-01-10", "2015-01-11"), draws=5).response.shape
    (5, 246)
    """
    fit = _validate.instance(fit, "fit", Fit, "emsopt.calls.Fit")
    log = fit.calls if calls is None else read_calls(calls)
    if fit.service is None:
        raise InputError("a replay needs service times: a log with the role 'cleared' or a column 'service_min'.")
    near = near_stations(log.locations, fit.stations[["lon", "lat"]].to_numpy(float))
    log, sites = log.where(_units.calls_with_unit(log) & near), check_deployment(fit, deployment)
    rng, draws = _validate.generator(rng), _validate.whole_number(draws, "draws")
    when = _units.dispatch_times(log)
    order = np.argsort(when, kind="stable")  # units are sent in the order of dispatches, not of calls
    minutes = (when - when.min()).astype("timedelta64[s]").astype(float)[order] / 60
    hour = hour_of_week(when[order]) % 24
    reach = distances(fit.stations, log.locations[order], fit.roads)
    preferred = _units.units_by_cost(fit.dispatch.costs(log.locations[order], reach.T).T, sites)
    response, unit = np.full((draws, len(log)), np.nan), np.full((draws, len(log)), -1)
    rows = fit.calls.occupying  # their work is divided among the calls
    more = 0.0 if rows is None else float(_units.busy_minutes(rows).sum()) / len(fit.calls)
    busy, left, free = np.zeros((draws, len(sites))), response.copy(), response.copy()
    for b, child in enumerate(rng.spawn(draws)):
        drawn = fit.draw(child)
        service = _draw_times(drawn.service, child, len(log)) + more
        turnout = drawn.turnout_minutes(hour) * _draw_times(drawn.turnout, child, len(log), mean=1.0)
        noise = child.standard_normal(len(log))  # one per call, drawn before it is known who answers
        sent_to = _units.assign_units(minutes, preferred, service)
        answered = sent_to >= 0
        law = drawn.answer_law
        mean = law.mean(reach[np.arange(len(log)), sites[sent_to]]) * law.hour_factors[hour]
        total = turnout + lognormal(mean, law.cv.value, noise)
        response[b, order], unit[b, order] = np.where(answered, total, np.nan), sent_to
        left[b, order], free[b, order] = np.where(answered, (turnout, service), np.nan)
        busy[b] = np.bincount(sent_to[answered], service[answered], len(sites))
    return Replay(log, sites, response, unit, busy, left, free, when, fit.stations)


def check_deployment(fit: Fit, deployment: Sequence[int | str] | IntArray | None) -> IntArray:
    """Return a deployment, as for `replay`, as sorted indices of stations, shape (p,); None stands for today's."""
    if deployment is None:
        return fit.deployment
    sites, names = np.asarray(deployment), fit.stations["name"].tolist()
    if sites.ndim == 1 and sites.dtype.kind == "U":
        sites = np.array([names.index(_validate.choice(name, "deployment", names)) for name in sites.tolist()])
    if sites.ndim != 1 or len(sites) == 0 or sites.dtype.kind not in "iu":
        got = _validate.quote(deployment)
        raise InputError(f"`deployment` must be a list of names or indices of stations; got {got}.")
    if sites.min() < 0 or sites.max() >= len(names):
        raise InputError(f"`deployment` must have indices from 0 to {len(names) - 1}; got {sites.tolist()}.")
    return np.sort(sites.astype(np.int64))


def _draw_times(law: DurationFit | None, rng: np.random.Generator, n: int, mean: float | None = None) -> FloatArray:
    """Draw n lognormal durations (min), shape (n,), all 0 if ``law`` is None; ``mean`` replaces its mean."""
    if law is None:
        return np.zeros(n)
    return lognormal(law.mean.value if mean is None else mean, law.cv.value, rng.standard_normal(n))
