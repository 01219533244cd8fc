r"""Estimate durations from rounded stamps with wrong records, and compare recorded with modelled responses.

With resolutions :math:`r_1` of the start and :math:`r_2` of the end, a true duration x is recorded as :math:`k = x +
u_1 - u_2`, where :math:`u_i` is uniform on :math:`[0, r_i]`, whether the clock rounds or truncates. With G the second
integral of the density of x, the density of k is

.. math:: h(k) = [G(k + r_2) - G(k) - G(k + r_2 - r_1) + G(k - r_1)] / (r_1 r_2).

For the lognormal distribution with mean m and log standard deviation s, with :math:`z = \ln(x/m)/s + s/2`,

.. math:: G(x) = x \Phi(z) - m \Phi(z - s), \quad G_m = -\Phi(z - s), \quad G_s = m \varphi(z - s).

The mean of k is that of x, and its variance exceeds that of x by :math:`(r_1^2 + r_2^2)/12`.

**Comparison with a model.** A clock of whole minutes records a true time T as R = ⌊U + T⌋ with U uniform on [0, 1):
the means agree, and R <= k has the probability that T < k + 1 - U, averaged over U. With another step the same holds in
units of it. Quantiles are interpolated within a step, in the log as in the model.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numba import njit
from scipy import special
from scipy.optimize import minimize

from ..errors import InputError
from ..errors._types import FloatArray, IntArray, Times
from ..evaluators.evaluation import LATE_MIN, Evaluation
from .log import CallLog

RESOLUTIONS = (3600, 1800, 900, 600, 300, 60, 30, 15, 10, 5, 2, 1)  # seconds, to which clocks and forms round
LEAST_DIVIDED_SHARE = 0.98  # share of the times that a resolution must divide, as a few are entered differently
Z90 = 1.6448536269514722  # normal quantile for intervals of 90 %, which leave 5 % on either side
FEWEST_DURATIONS = 10  # durations: fewer do not determine a spread
ONE_SECOND_MIN = 1 / 60 + 1e-9  # a clock of seconds shows a drive to take longer

ROOT_HALF, INVERSE_ROOT_2_PI = math.sqrt(0.5), 1 / math.sqrt(2 * math.pi)
MAX_DISTINCT_DURATIONS = 300  # distinct durations whose densities are computed: more are rounded, to save time
LEAST_STEP_MIN = 0.1  # clocks with a finer step (min) count as exact
LONGEST_RESPONSE_MIN, LONGEST_IN_MEDIANS = 60.0, 10  # beyond both, in minutes and in medians, a response is impossible
N_PHASES = 12  # of the clock, over which probabilities are averaged

LogDensity: TypeAlias = "Callable[[FloatArray], tuple[FloatArray, FloatArray]]"
"""A function from parameters to log densities, shape (K,), and their gradients, shape (K, P)."""


@dataclass(frozen=True)
class Estimate:
    """A positive number estimated from calls, with the standard error of its logarithm."""

    value: float
    log_error: float
    calls: int

    @property
    def interval(self) -> tuple[float, float]:
        """Lower and upper end of the 90 % interval."""
        reach = np.exp(Z90 * self.log_error)
        return self.value / reach, self.value * reach

    def draw(self, rng: np.random.Generator) -> Estimate:
        """Draw a value from the distribution of the estimation error."""
        return replace(self, value=float(self.value * np.exp(self.log_error * rng.standard_normal())))


@dataclass(frozen=True)
class DurationFit:
    """Estimated mean (min) and coefficient of variation of a kind of duration, such as turnout.

    ``groups`` has the mean of each group of calls, such as those by day and by night, and the mean of all calls for
    groups of fewer than 10. The coefficient of variation is that within groups.
    """

    mean: Estimate
    cv: Estimate
    groups: tuple[Estimate, ...] = ()

    def draw(self, rng: np.random.Generator) -> DurationFit:
        """Draw mean and coefficient of variation from the distribution of the estimation error."""
        groups = tuple(estimate.draw(rng) for estimate in self.groups)
        return replace(self, mean=self.mean.draw(rng), cv=self.cv.draw(rng), groups=groups)


def resolution(times: Times) -> float:
    """Return the longest step (min) of those usual for clocks that divides at least 98 % of recorded times."""
    seconds = times[~np.isnat(times)].astype("datetime64[s]").astype(np.int64)
    return next((r for r in RESOLUTIONS if len(seconds) and (seconds % r == 0).mean() >= LEAST_DIVIDED_SHARE), 1) / 60


def minutes_between(start: Times, end: Times) -> FloatArray:
    """Return the minutes from ``start`` to ``end``, shape (K,); NaN where one of them is unknown."""
    minutes = (end - start).astype("timedelta64[s]").astype(float) / 60
    minutes[np.isnat(start) | np.isnat(end)] = np.nan
    return minutes


def lognormal_density(
    minutes: FloatArray, mean: FloatArray, log_sd: float, start: float, end: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the density of recorded durations, and its derivatives with respect to ``mean`` and ``log_sd``, (n,) each.

    True durations are lognormal with this ``mean`` (min) and log standard deviation. ``minutes`` and ``mean``, (n,) or
    (1,), are broadcast; ``start`` and ``end`` are the resolutions (min) of the stamps.
    """
    minutes, mean = (np.ascontiguousarray(v, float) for v in np.broadcast_arrays(minutes, mean))
    return _lognormal_densities(minutes, mean, float(log_sd), float(start), float(end))


@njit(cache=True, nogil=True)
def _lognormal_densities(
    minutes: FloatArray, mean: FloatArray, spread: float, start: float, end: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return what `lognormal_density` returns, from arrays of the same shape (n,)."""
    n, area = len(minutes), start * end
    total, by_mean, by_spread = np.zeros(n), np.zeros(n), np.zeros(n)
    shifts, signs = np.array([end, 0.0, end - start, -start]), np.array([1.0, -1.0, -1.0, 1.0]) / area
    if start == end:  # with equal resolutions the two terms in the middle are one
        shifts, signs = np.array([end, 0.0, -start]), np.array([1.0, -2.0, 1.0]) / area
    for i in range(n):
        for k in range(len(shifts)):
            x = minutes[i] + shifts[k]
            if x <= 0:
                continue
            z = math.log(x / mean[i]) / spread + spread / 2
            w = z - spread
            tail = 0.5 * math.erfc(-w * ROOT_HALF)
            total[i] += signs[k] * (x * 0.5 * math.erfc(-z * ROOT_HALF) - mean[i] * tail)
            by_mean[i] -= signs[k] * tail
            by_spread[i] += signs[k] * mean[i] * math.exp(-w * w / 2) * INVERSE_ROOT_2_PI
        total[i] = max(total[i], 0.0)
    return total, by_mean, by_spread


def gamma_density(minutes: FloatArray, mean: float, cv: float, start: float, end: float) -> FloatArray:
    """Return the density (per min) of recorded ``minutes``, (K,), if true durations are gamma distributed.

    ``mean`` (min) and ``cv`` are of the true durations, ``start`` and ``end`` the resolutions (min) of the stamps.
    """
    shape, total = cv**-2, np.zeros_like(minutes)
    for shift, sign in ((end, 1), (0.0, -1), (end - start, -1), (-start, 1)):
        x = np.maximum(minutes + shift, 0)
        scaled = x * shape / mean
        total += sign * (x * special.gammainc(shape, scaled) - mean * special.gammainc(shape + 1, scaled))
    return np.maximum(total, 0) / (start * end)


def maximise_likelihood(
    log_density: LogDensity, first: FloatArray, second: tuple[float | None, float | None] = (None, None)
) -> tuple[FloatArray, FloatArray, float]:
    """Maximise a likelihood; return the P parameters, the influence of each call on them, and the log likelihood.

    The search starts at ``first``; ``second`` are the bounds of the second parameter. Influences, shape (K, P), are the
    calls' gradients times the inverse of the observed information. The sum of their outer products is the robust
    covariance, which holds if the distribution is not exactly the assumed one (White 1982).
    """

    def misfit(parameters: FloatArray, scale: int = 1) -> tuple[float, FloatArray]:
        logs, slopes = log_density(parameters)
        return -float(logs.sum()) / scale, -slopes.sum(axis=0) / scale

    bounds = [(None, None), second, *[(None, None)] * (len(first) - 2)]
    options: Any = {"ftol": 1e-12, "gtol": 1e-7}
    scale = (len(log_density(first)[0]),)
    best = minimize(misfit, first, scale, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    steps = 1e-4 * np.eye(len(first))
    information = np.array([misfit(best.x + step)[1] - misfit(best.x - step)[1] for step in steps]) / 2e-4
    information = (information + information.T) / 2
    inverse = np.linalg.pinv(information, hermitian=True)
    return best.x, log_density(best.x)[1] @ inverse, -misfit(best.x)[0]


def fit_duration(minutes: FloatArray, start: float, end: float, longest: float, group: Any = None) -> DurationFit:
    """Estimate mean and coefficient of variation of recorded durations, shape (K,), from 0 to ``longest`` minutes.

    A record is good or, with a small probability, wrong and then uniform between 0 and ``longest``. Good durations are
    gamma or lognormal, whichever is likelier. That only decides how likely each record is to be good: mean and variance
    are those of the records with these probabilities as weights. ``start`` and ``end`` are the resolutions (min) of the
    stamps. The means of a ``group`` of 0 or 1, shape (K,), may differ. Raise if there are fewer than 10 durations.
    """
    if len(minutes) < FEWEST_DURATIONS:
        raise InputError(f"at least {FEWEST_DURATIONS} durations are needed for an estimate; got {len(minutes)}.")
    if not minutes.any():  # one stamp is a copy of the other
        return _zero_duration(len(minutes), group)
    values, index, counts = np.unique(minutes, return_inverse=True, return_counts=True)
    if len(values) > MAX_DISTINCT_DURATIONS:
        step = max(float(np.median(minutes)) / 50, 1e-3)
        values, index, counts = np.unique(np.round(minutes / step), return_inverse=True, return_counts=True)
        values = values * step
    middle, noise = max(float(np.median(minutes)), end / 4), (start**2 + end**2) / 12

    def mixture(family: Any, p: FloatArray) -> tuple[FloatArray, FloatArray]:
        share = special.expit(p[2])
        if family is gamma_density:
            good = (1 - share) * gamma_density(values, np.exp(p[0]), np.exp(p[1]), start, end)
        else:
            spread = np.sqrt(np.log1p(np.exp(2 * p[1])))
            good = (1 - share) * lognormal_density(values, np.exp(p[:1]), spread, start, end)[0]
        return good, good + share * (1 / longest)

    def misfit(p: FloatArray, family: Any) -> float:
        # a prior worth one record keeps the share of wrong ones above 0
        return float(-(counts * np.log(mixture(family, np.clip(p, -12, 8))[1])).sum() + np.logaddexp(0, -p[2]))

    options: Any = {"xatol": 1e-3, "fatol": 1e-3}
    fits, first = [], np.array([np.log(middle), np.log(0.6), -4.0])
    for family in (gamma_density, lognormal_density):
        best = minimize(partial(misfit, family=family), first, method="Nelder-Mead", options=options)
        fits.append((best.fun, family, best.x))
        first = best.x
    _, family, p = min(fits, key=lambda fit: fit[0])
    good, total = mixture(family, np.clip(p, -12, 8))
    weight = (good / total)[index]

    split, group = group is not None, np.zeros(len(minutes), int) if group is None else group
    within, counts = np.bincount(group, weight, 1 + split), np.bincount(group, minlength=1 + split)
    mean = float(weight @ minutes / weight.sum())
    means = np.bincount(group, weight * minutes, 1 + split) / np.maximum(within, 1e-9)
    means[counts < FEWEST_DURATIONS] = mean
    apart = minutes - means[group]
    variance = max(float(weight @ apart**2 / weight.sum()) - noise, 1e-4 * mean**2)
    # influence of each record on the logarithms of the means and of the coefficient of variation
    on_mean = weight * (minutes - mean) / (weight.sum() * mean)
    on_cv = weight * (apart**2 - noise - variance) / (2 * weight.sum() * variance) - on_mean
    errors = np.sqrt(np.bincount(group, (weight * apart) ** 2, 1 + split)) / np.maximum(within * means, 1e-9)
    error = float(np.sqrt((on_mean**2).sum()))
    errors[counts < FEWEST_DURATIONS] = error
    parts = zip(means.tolist(), errors.tolist(), counts.tolist(), strict=True)
    return DurationFit(
        mean=Estimate(mean, error, len(minutes)),
        cv=Estimate(float(np.sqrt(variance) / mean), float(np.sqrt((on_cv**2).sum())), len(minutes)),
        groups=tuple(Estimate(*part) for part in parts) if split else (),
    )


def _zero_duration(calls: int, group: IntArray | None) -> DurationFit:
    """Return the fit of durations that are all 0, with the number of calls of each ``group``, (K,), if given."""
    sizes = [] if group is None else np.bincount(group, minlength=2).tolist()
    mean, *groups = (Estimate(0.0, 0.0, n) for n in [calls, *sizes])
    return DurationFit(mean, mean, tuple(groups))


def recorded_responses(calls: CallLog) -> tuple[FloatArray, float]:
    """Return the recorded minutes from dispatch to arrival, shape (n,), without implausible ones, and the clock's step.

    The step (min) is 0 if it is at most 0.1, or differs between dispatch and arrival. Raise if there is no response.
    """
    minutes, (start, end), _ = stamped_responses(calls)
    minutes = minutes[~np.isnan(minutes)]
    if not len(minutes):
        raise InputError("no call of the log has both a dispatch and an arrival after it.")
    return minutes, start if start == end and start > LEAST_STEP_MIN else 0.0


def stamped_responses(calls: CallLog) -> tuple[FloatArray, list[float], dict[str, int]]:
    """Return minutes from dispatch to arrival, (K,), the steps of both stamps (min), and counts of NaN by reason.

    Minutes are NaN if unknown, below 0, at most a second by clocks of seconds, or above both 60 and ten medians.
    """
    if not {"dispatched", "on_scene"} <= set(calls.details):
        roles = "roles 'dispatched' and 'on_scene'"
        raise InputError(f"recorded responses need a log with the {roles}. Name their columns by `columns`.")
    start, end = (calls.details[role].to_numpy("datetime64[s]") for role in ("dispatched", "on_scene"))
    minutes, exact = minutes_between(start, end), [resolution(start), resolution(end)]
    longest = max(LONGEST_RESPONSE_MIN, LONGEST_IN_MEDIANS * float(pd.Series(minutes).median()))
    # Where clocks show seconds, a response of at most a second means that the unit was already on scene.
    at_once = (minutes >= 0) & (minutes <= ONE_SECOND_MIN) & (max(exact) <= ONE_SECOND_MIN)
    reasons = {
        "without dispatch or arrival": np.isnan(minutes),
        "arrived before dispatch": minutes < 0,
        "arrived within a second of dispatch": at_once,
        f"over {longest:.0f} min": minutes > longest,
    }
    minutes[np.any(list(reasons.values()), axis=0)] = np.nan
    return minutes, exact, {reason: int(which.sum()) for reason, which in reasons.items() if which.any()}


def rounded_measures(evaluation: Evaluation, step: float, threshold: float = LATE_MIN) -> tuple[float, float, float]:
    """Return the mean and 90th percentile (min) and the late fraction as a clock with a ``step`` (min) records them.

    A step of 0 stands for an exact clock. A response is late if more minutes than the threshold are recorded.
    """
    if not step:
        return evaluation.mean_response, evaluation.percentile_90, float(evaluation.late_fraction(threshold))
    over = 1 - _recorded_within(evaluation, np.array([np.floor(threshold / step + 1e-9)]), step)[0]
    k = np.floor(evaluation.percentile_90 / step) + np.array([-1, 0, 1])  # with these, the probability passes 0.9
    high = step * (np.interp(0.9, _recorded_within(evaluation, k, step), k) + 0.5)
    return evaluation.mean_response, float(high), float(over)


def response_measures(minutes: FloatArray, step: float, limits: Iterable[float]) -> dict[str, float]:
    """Return the mean, median, 90th percentile and shares above ``limits`` of recorded minutes, (K,); raise if none."""
    if len(minutes) == 0:
        raise InputError("no call of the log has a usable response time. Check its columns and its dates.")
    late = {f"late_over_{t:g}_min": float((minutes > t + 1e-9).mean()) for t in limits}
    middle, high = (percentile(minutes, q, step) for q in (50, 90))
    return {"mean_response_min": float(minutes.mean()), "percentile_50_min": middle, "percentile_90_min": high} | late


def percentile(minutes: FloatArray, q: float, step: float) -> float:
    """Return the q-th percentile of recorded minutes, interpolated within the ``step`` (min) of the clock if not 0."""
    if step == 0:
        return float(np.percentile(minutes, q))
    values, counts = np.unique(minutes, return_counts=True)
    below = np.cumsum(counts) / len(minutes)
    k = int(np.searchsorted(below, q / 100))
    share = counts[k] / len(minutes)
    return float(values[k] + step * ((q / 100 - below[k]) / share + 0.5))


def late_sentences(exact: float | None, threshold: float, step: float) -> str:
    """Return sentences on which responses are late by a clock's ``step`` (min), and on today's share, ``exact``."""
    rule = f"more than {threshold:g} min recorded"
    if step:
        least = step * (np.floor(threshold / step + 1e-9) + 1)
        rule += f", that is {least:g} or more, because the log's times have steps of {step:g} min; modelled times are "
        rule += "rounded likewise"
    today = "" if exact is None else f": {exact:.1%} of today's"
    return f"Late here: {rule}. All other figures count unrounded times of {threshold:g} min or more as late{today}."


def _recorded_within(evaluation: Evaluation, k: FloatArray, step: float) -> FloatArray:
    """Return the probabilities that a response is recorded as at most ``k``, (n,), steps of ``step`` minutes, (n,)."""
    phases = (np.arange(N_PHASES) + 0.5) / N_PHASES
    late = evaluation.late_fraction(np.maximum(step * (k[:, None] + phases), 0).ravel())
    within: FloatArray = 1 - np.reshape(late, (len(k), N_PHASES)).mean(axis=1)
    return np.where(k < 0, 0.0, within)
