r"""Law of travel times over distance, fitted to recorded drives.

A drive over distance d (km as the crow flies, or minutes at free flow on roads) takes a lognormal time with mean
m(d) g(h), where g(h) is the factor of the hour of the day, with mean one over the drives, and log standard deviation
s. Two laws m are fitted, and the likelier is kept:

- "linear", :math:`m(d) = a + b d`: the fixed part covers getting out and to the door;
- "accelerating" (Kolesar, Walker and Hausner 1975), :math:`m(d) = 2 \sqrt{d D} / v` for :math:`d \le D`, else
  :math:`(d + D) / v`: a drive needs the distance D to reach its cruising speed v and to stop again.

Three small shares of drives do not depend on distance: wrong records, which are uniform between 0 and the longest;
departures that were recorded on arrival, so that the drive seems to take no time; and, if that improves the fit
clearly, "strays" that did not start where the unit is stationed and take any time around the median.

The likelihood is restricted: :math:`\nu \ln s` is added to its logarithm for the :math:`\nu` parameters of the mean
and of the hours, the latter counted as far as they are not shrunk.

References
----------
Kolesar, P., Walker, W. and Hausner, J. (1975). Determining the relation between fire engine travel times and travel
distances in New York City. Operations Research 23(4), 614-627.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar

from ..errors import InputError
from ..errors._types import ArrayLike, FloatArray, IntArray
from .recorded import Z90, Estimate, LogDensity, gamma_density, lognormal_density, maximise_likelihood

LONGEST_MIN = 120.0  # recorded drives that are longer are left out as impossible
FEWEST_DRIVES = 30  # drives: fewer do not determine a law
STRAY_SPREAD = 1.0  # log standard deviation of drives that did not start at home
SHORTEST_MEAN_MIN = 0.05  # a law is at least this, where an extrapolation would be negative
LATE_DEPARTURE_MIN = 0.5  # mean minutes of a drive whose departure was recorded on arrival
LONGEST_WRONG_MEDIANS = 10.0  # medians up to which wrong records may last, if no drive is longer
GAIN_FOR_STRAYS = 4.0  # log likelihood by which strays must improve the fit: chance alone seldom does
GAIN_FOR_HOURS = 3.0  # the same for the factors of the hours
GAIN_FOR_CURVE = 2.0  # the same for the accelerating law instead of the linear one
LEAST_SHARE = 0.01  # of the mean drive that grows with distance, so that a speed is finite
HOUR_PASSES = 3  # of the factors of the hours, which depend on the law and change it


@dataclass(frozen=True, eq=False)
class TravelLaw:
    """A law of travel times over distance, fitted to a number of ``drives``, with the errors of its parameters.

    Attributes
    ----------
    kind : {"linear", "accelerating"}
    parameters, covariance : ndarray, shape (P,) and (P, P)
        Linear: log of the mean minutes over the ``middle`` distance, the median of the drives, the share of them that
        is proportional to distance, log of s. Accelerating: logs of v and of D, log of s. Then the log odds of wrong
        records, of departures recorded on arrival and, if there are any, of strays.
    hours, hour_errors : ndarray, shape (24,)
        Logarithms of the factors of the hours of the day, and their standard errors; all 0 if hours do not differ more
        than by chance.
    """

    kind: str
    parameters: FloatArray
    covariance: FloatArray
    middle: float
    hours: FloatArray
    hour_errors: FloatArray
    drives: int

    def mean(self, distance: ArrayLike) -> FloatArray:
        """Return the mean minutes of drives over a ``distance`` (km, or minutes at free flow on roads), same shape."""
        return mean_minutes(self.kind, self.parameters, np.asarray(distance, float), self.middle)[0]

    @property
    def log_sd(self) -> float:
        """Standard deviation of the logarithm of the minutes of a drive within an hour of the day."""
        return float(np.exp(self.parameters[2]))

    @property
    def hour_factors(self) -> FloatArray:
        """Ratio of travel times at each hour of the day to their mean, shape (24,)."""
        return np.exp(self.hours)

    @property
    def pace(self) -> Estimate:
        """Estimated minutes per unit of distance; by the accelerating law, at cruising speed."""
        value, gradient = float(np.exp(-self.parameters[0])), np.array([-1.0, 0.0])
        if self.kind == "linear":
            share = max(self.parameters[1], LEAST_SHARE)
            value, gradient = float(np.exp(self.parameters[0]) * share / self.middle), np.array([1.0, 1 / share])
        return Estimate(value, self._standard_error(gradient), self.drives)

    @property
    def fixed_min(self) -> tuple[float, float, float]:
        """Minutes that do not depend on distance, and both ends of their 90 % interval; D / v if accelerating."""
        first, second = self.parameters[:2]
        value = np.exp(second - first)
        gradient = np.array([-value, value])
        if self.kind == "linear":
            value = np.exp(first) * (1 - second)
            gradient = np.array([value, -np.exp(first)])
        reach = Z90 * self._standard_error(gradient)
        return tuple(float(max(v, 0.0)) for v in (value, value - reach, value + reach))  # type: ignore[return-value]

    def _standard_error(self, gradient: FloatArray) -> float:
        """Return the standard error of a function with this ``gradient`` by the first two parameters, shape (2,)."""
        return float(np.sqrt(gradient @ self.covariance[:2, :2] @ gradient))

    @property
    def pace_upper_end(self) -> float:
        """Upper end of the 90 % interval of minutes per unit of distance, which may be negative."""
        if self.kind != "linear":
            return self.pace.interval[1]
        share = self.parameters[1] + Z90 * np.sqrt(self.covariance[1, 1])
        return float(np.exp(self.parameters[0]) * share / self.middle)

    def formula(self, unit: str) -> str:
        """Return the law as text, such as "1.5 min + 1.2 min per km", where "km" is the ``unit`` of distances."""
        first = f"{self.fixed_min[0]:.2g} min +" if self.kind == "linear" else "accelerating to"
        return f"{first} {self.pace.value:.2g} min per {unit}"

    @cached_property
    def cv(self) -> Estimate:
        """Estimated coefficient of variation of a drive within an hour of the day."""
        squared = self.log_sd**2
        value = np.sqrt(np.expm1(squared))
        slope = squared * np.exp(squared) / np.expm1(squared)  # d log cv / d log s
        return Estimate(float(value), float(slope * np.sqrt(self.covariance[2, 2])), self.drives)

    def draw(self, rng: np.random.Generator) -> TravelLaw:
        """Draw a law of the same kind from the distribution of the estimation error."""
        # a Cholesky factor is unique, whereas signs of eigenvectors, and with them draws, depend on the processor
        tiny = 1e-12 * self.covariance.diagonal().max() * np.eye(len(self.parameters))
        parameters = rng.multivariate_normal(self.parameters, self.covariance + tiny, method="cholesky")
        hours = self.hours + self.hour_errors * rng.standard_normal(24)
        return replace(self, parameters=parameters, hours=hours)


def mean_minutes(
    kind: str, parameters: FloatArray, distance: FloatArray, middle: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return mean minutes of a `TravelLaw` at distances, and derivatives by its first two parameters, same shapes."""
    first, second = parameters[:2]
    if kind == "linear":
        level, relative = np.exp(first), distance / middle - 1
        mean = level * (1 + second * relative)
        held = mean < SHORTEST_MEAN_MIN
        zero = np.where(held, 0.0, 1.0)
        return np.where(held, SHORTEST_MEAN_MIN, mean), mean * zero, level * relative * zero
    v, reach = np.exp(first), np.exp(second)
    near = distance <= reach
    mean = np.where(near, 2 * np.sqrt(distance * reach), distance + reach) / v
    return np.maximum(mean, SHORTEST_MEAN_MIN), -mean, np.where(near, mean / 2, reach / v)


def fit_law(
    minutes: FloatArray,
    distance: FloatArray,
    hour: IntArray,
    start: float,
    end: float,
    target_minutes: FloatArray | None = None,
    drive: IntArray | None = None,
    chance: FloatArray | None = None,
) -> TravelLaw:
    """Fit a law of travel times to K recorded drives; raise if there are fewer than 30.

    Drives have ``minutes``, from 0 to 120, and an ``hour`` of the day, both (K,); ``start`` and ``end`` are the
    resolutions (min) of the stamps. Where the station of a drive is not certain, each ``distance``, shape (E,), belongs
    to a ``drive``, 0 to K - 1, with a ``chance``; those of a drive add to one. The likelihood of a drive is then the
    mean over its stations. With ``target_minutes``, shape (K,), the law is scaled so that its mean over the drives is
    that of these minutes.
    """
    if len(minutes) < FEWEST_DRIVES:
        raise InputError(f"a travel law needs at least {FEWEST_DRIVES} recorded drives; got {len(minutes)}.")
    drive = np.arange(len(minutes)) if drive is None else drive
    chance = np.ones(len(drive)) if chance is None else chance
    middle = max(float(np.median(distance)), 1e-3)
    typical = max(float(np.median(minutes)), end / 2)
    longest = max(float(minutes.max()), LONGEST_WRONG_MEDIANS * typical)
    drives = _Drives(minutes, distance, hour, start, end, drive, chance, middle)
    wrong, at_once = np.full(len(minutes), 1 / longest), gamma_density(minutes, LATE_DEPARTURE_MIN, 1.0, start, end)
    strays = lognormal_density(minutes, np.array([typical]), STRAY_SPREAD, start, end)[0]
    odds, flat = [-4.0, -4.0], np.zeros(24)
    starts = {
        "linear": np.array([np.log(typical), 0.5, np.log(0.4), *odds]),
        "accelerating": np.array([np.log(2 * middle / typical), np.log(middle), np.log(0.4), *odds]),
    }
    # beyond the distances of the drives, D would be an extrapolation
    low, high = np.log(np.maximum(np.quantile(distance, (0.02, 0.75)), 1e-3))
    bounds = {"linear": (None, None), "accelerating": (low, high + 1e-6)}

    def best_of(kind: str, hours: FloatArray, other: FloatArray, first: FloatArray, freedom: float = 2.0) -> Any:
        return maximise_likelihood(drives.log_density_of(kind, hours, other, freedom), first, bounds[kind])

    other = np.column_stack([wrong, at_once])
    fits = {kind: best_of(kind, flat, other, first) for kind, first in starts.items()}
    kind = "accelerating" if fits["accelerating"][2] - fits["linear"][2] > GAIN_FOR_CURVE else "linear"
    parameters, influence, best = fits[kind]
    more = np.column_stack([other, strays])
    with_strays = best_of(kind, flat, more, np.append(parameters, -4.0))
    if with_strays[2] > best + GAIN_FOR_STRAYS:
        (parameters, influence, best), other = with_strays, more
    hours, errors, sign = flat, flat, 1 if kind == "linear" else -1
    for _ in range(HOUR_PASSES):
        _, slopes = drives.log_density_of(kind, hours, other)(parameters)
        hours, errors, freedom = _hour_effects(hours, sign * slopes[:, 0], hour)
        if not hours.any():
            break
        parameters, influence, _ = best_of(kind, hours, other, parameters, 2 + freedom)
    share = np.exp(parameters[3:]) / (1 + np.exp(parameters[3:]).sum())
    if target_minutes is not None and target_minutes.any():
        # densities of the drives alone, without the terms that stand for priors
        logs = drives.log_density_of(kind, hours, other, 0.0)(parameters)[0] - np.log(share).sum() / len(minutes)
        weight = 1 - share[0] / longest / np.exp(logs)
        by_distance = mean_minutes(kind, parameters, distance, middle)
        mean, *by_parameter = (drives.mean_over_stations(v) * np.exp(hours[hour]) for v in by_distance)
        scale = weight @ target_minutes / (weight @ mean)
        direction = np.zeros(len(parameters))
        direction[0] = sign
        sums = [weight @ slope for slope in by_parameter]
        on_scale = weight * (target_minutes / scale - mean) - influence[:, :2] @ sums
        influence = influence + np.outer(on_scale / (weight @ mean), direction)
        parameters = parameters + np.log(scale) * direction
    covariance = influence.T @ influence
    return TravelLaw(kind, parameters, covariance, middle, hours, errors, len(minutes))


class _Drives(NamedTuple):
    """The K drives to which a law is fitted, as arguments of `fit_law`; ``middle`` is the median of the distances."""

    minutes: FloatArray
    distance: FloatArray
    hour: IntArray
    start: float
    end: float
    drive: IntArray
    chance: FloatArray
    middle: float

    def mean_over_stations(self, values: FloatArray) -> FloatArray:
        """Average values, shape (E,), over the possible stations of each drive, shape (K,)."""
        return np.bincount(self.drive, self.chance * values, len(self.minutes)).astype(float)

    def log_density_of(self, kind: str, hours: FloatArray, other: FloatArray, freedom: float = 2.0) -> LogDensity:
        """Return the log-density function of the parameters of a ``kind`` of law, with log factors of ``hours``, (24,).

        ``other``, (K, n), are the densities of n sorts of drives that do not follow the law. Adding ``freedom`` times
        the logarithm of s restricts the likelihood.
        """
        factor, (n, n_others) = np.exp(hours[self.hour[self.drive]]), other.shape

        def log_density(parameters: FloatArray) -> tuple[FloatArray, FloatArray]:
            log_sd, odds = np.exp(np.clip(parameters[2], -4, 1)), np.exp(np.clip(parameters[3:], -12, 3))
            means = mean_minutes(kind, parameters, self.distance, self.middle)
            mean, by_first, by_second = (v * factor for v in means)
            recorded = self.minutes[self.drive]
            density, by_mean, by_spread = lognormal_density(recorded, mean, log_sd, self.start, self.end)
            parts = density, by_mean * by_first, by_mean * by_second, by_spread * log_sd
            density, *by_parameter = map(self.mean_over_stations, parts)
            at_home = 1 / (1 + odds.sum())
            share = odds * at_home
            total = np.maximum(at_home * density + other @ share, 1e-300)
            slopes = [*(at_home * slope for slope in by_parameter), *(share * (other - total[:, None])).T]
            gradient = np.column_stack(slopes) / total[:, None]
            # a prior worth one drive keeps the shares above 0, where they have an error
            gradient[:, 3:] += (1 - n_others * share) / n
            gradient[:, 2] += freedom / n
            return np.log(total) + (np.log(share).sum() + freedom * np.log(log_sd)) / n, gradient

        return log_density


def _hour_effects(hours: FloatArray, level: FloatArray, hour: IntArray) -> tuple[FloatArray, FloatArray, float]:
    """Return the log factors of the hours and their standard errors, both (24,), and their degrees of freedom.

    ``level``, (K,), is the derivative of each drive's log density by the log mean. Factors are estimated by a Newton
    step from ``hours``, (24,), and shrunk by empirical Bayes; all are 0 if they improve the likelihood too little.
    """
    information = np.bincount(hour, level**2, 24)
    observed = information > 0
    error2 = np.where(observed, 1 / np.where(observed, information, 1), np.inf)
    raw = np.where(observed, hours + np.bincount(hour, level, 24) * np.where(observed, error2, 0), 0.0)
    raw = np.where(observed, raw - np.average(raw, weights=information + 1e-300), 0.0)  # as all may be 0

    def misfit(variance: float) -> float:
        total = variance + error2[observed]
        return float((np.log(total) + raw[observed] ** 2 / total).sum() / 2)

    best = minimize_scalar(lambda t: misfit(np.exp(2 * t)), bounds=(-7, 0), method="bounded")
    variance = float(np.exp(2 * best.x))
    if misfit(0.0) - best.fun < GAIN_FOR_HOURS:
        return np.zeros(24), np.zeros(24), 0.0
    shrink = np.where(observed, variance / (variance + np.where(observed, error2, 1)), 0.0)
    effects = raw * shrink
    effects -= np.log(np.exp(effects[hour]).mean())
    return effects, np.sqrt(variance * (1 - shrink)), float(shrink.sum() - 1)
