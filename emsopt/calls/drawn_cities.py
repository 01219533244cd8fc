r"""Draw cities from the distribution of what a log leaves uncertain, so that decisions can be tested against chance.

Three sources of error are drawn: demand (`RatePosterior`), travel (turnout, the law of travel times, and deviations of
roads from it: `PairEffects`) and the mean service time.

In all drawn cities, units are sent in the order of the estimated response times, as dispatchers know only these. In the
order of the drawn times, mean responses would come out too low: in 80 logs of St. Paul by 0.13 to 0.17 min, instead of
0.04 min. The price is that a unit whose place in the order is wrong in a drawn city does harm there.

**Limits.** The roads' deviations are assumed to be normal and alike in all directions. Where detours are long and
sudden, as at a river with few bridges, intervals are too narrow: those of 90 % held in 70 % of simulated cities of that
kind, and in 83 % on the roads of Auckland (`benchmarks/RESULTS.md`). Give `calibrate` the roads there.

**Rates.** Atom j had :math:`n_j` of N calls in D days. The shares of the atoms are Dirichlet with parameters :math:`n_j
/ \varphi`, and the calls per day of the whole city are gamma with mean N / D and shape :math:`N / \phi`. The
dispersions :math:`\varphi, \phi \ge 1` are the factors by which counts vary more from day to day than Poisson counts:
:math:`\varphi` is Pearson's statistic of the table of atoms and days per degree of freedom, :math:`\phi` that of the
totals of the days, within weekdays from two weeks on. Shares are not shrunk towards equal ones: neighbouring atoms are
alike, so that this would shift all deployments of one part of a city the same way.

**Roads.** The mean travel time from site i to atom j is a law of distance times :math:`1 + a_i + b_{ij} + c_{ij}`,
because roads are not straight. The effects of a site a and of a pair c are independent; b is alike for neighbouring
sites and neighbouring atoms, as a river or a motorway concerns them all: its covariance is :math:`\exp(-(d_{ii'} +
d_{jj'}) / r)`. All are normal with mean 0; their standard deviations and the reach r are estimated from the recorded
drives, and drawn too, because few sites determine them poorly.

References
----------
Chung, Y. et al. (2013). A nondegenerate penalized likelihood estimator for variance parameters in multilevel models.
Psychometrika 78(4), 685-709.
Wilson, J. T. et al. (2021). Pathwise conditioning of Gaussian processes. Journal of Machine Learning Research 22(105).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from inspect import signature
from typing import Any

import numpy as np
from scipy.linalg import cho_solve, solve_triangular

from ..city import travel
from ..city.city import City
from ..errors import InputError, _validate
from ..errors._types import ArrayLike, FloatArray, IntArray, Rng
from .calibration import Fit
from .demand import Demand, aggregate_calls, demand_and_atoms
from .profile import observed_hours, week_mask
from .recorded import Estimate, resolution

SOURCES = ("demand", "travel", "service")
COUNTING_OPTIONS = tuple(signature(aggregate_calls).parameters)[2:]
CITY_OPTIONS = {name for f in (aggregate_calls, Demand.city, City.from_frames) for name in signature(f).parameters}
CITY_OPTIONS -= {"calls", "stations", "self", "demand", "sites", "notes", "options"}
TYPICAL_SCALES = 0.07, 0.1, 0.07, 0.3  # of sites, routes, pairs; reach as a share of the extent of the atoms
PRIOR_SDS = np.array([1.0, 1.0, 1.0, 0.7])  # of the logarithms of the scales
N_SCALE_DRAWS = 8  # drawn scales: each costs a Cholesky factor
CURVATURE_STEP = 0.1
OUTLIER_PASSES = 2  # of leaving out drives that deviate by too much, as each changes their variance
MIN_REPEATED_DRIVES = 30  # beyond the first of a pair, to tell the variation within pairs
LEAST_CV = 0.05
LEAST_FACTOR = 0.2  # of a travel time, so that a draw far from the mean stays a time
MOST_SDS = 4.0  # standard deviations of a single drive, beyond which its stamps are taken for wrong
MOST_PAIRS_FOR_SCALES, MOST_PAIRS = 300, 1000  # pairs to estimate scales and effects from, at most: the work is cubic


@dataclass(frozen=True, eq=False)
class DrawnCities:
    """Distribution of the cities that agree with a log; ``weeks`` is the number of weeks that it covers."""

    fit: Fit
    estimate: City  # city of the fit, with the mean deviations of the roads
    rates: RatePosterior
    effects: PairEffects
    distances: FloatArray  # (N, M), in the unit of the law of travel times
    weeks: float

    def city(self) -> City:
        """Return ``estimate``, the city around which others are drawn."""
        return self.estimate

    def draws(self, n: int, rng: Rng = None, *, vary: Iterable[str] = SOURCES, more: float = 1.0) -> Iterator[City]:
        """Yield ``n`` drawn cities, with the atoms and sites of the estimate.

        Only the sources in ``vary`` are drawn: "demand", "travel" or "service". With the same seed, each has the same
        draws, whichever others vary. Errors shrink as if each week of the log came ``more`` times (up to infinity).
        """
        chosen = {_validate.choice(source, "vary", SOURCES) for source in vary}
        seed = int(_validate.generator(rng).integers(2**62))
        demand, roads, service, spread = map(np.random.default_rng, np.random.SeedSequence(seed).spawn(4))
        estimate, fit, power = self.estimate, self.fit, 1 / np.sqrt(more)
        usual, mean = fit.answer_law.mean(self.distances), self.effects.mean
        per_hour = estimate.total_rate / self.rates.counts.sum() * self.rates.days
        order = estimate.response_times if estimate.preference is None else estimate.preference  # a dispatcher's
        base = estimate.replace(atom_shapes=None, preference=order)

        def draw_factor(value: Estimate, rng: np.random.Generator) -> float:
            """Draw a factor around 1 with the error of an estimate from a log that is ``more`` times as long."""
            return float((value.draw(rng).value / value.value) ** power)

        for _ in range(n):
            drawn: dict[str, float | FloatArray] = {}
            if "demand" in chosen:
                drawn["arrival_rates"] = self.rates.draw(demand, more) * per_hour
            if "travel" in chosen:
                law = fit.answer_law.draw(roads)
                factor = (law.mean(self.distances) / usual) ** power
                drawn["travel_times"] = estimate.travel_times * factor * self.effects.draw(roads, more) / mean
                drawn["travel_cv"] = estimate.travel_cv * (law.cv.value / fit.answer_law.cv.value) ** power
                if fit.turnout is not None:
                    drawn["turnout_times"] = estimate.turnout_times * draw_factor(fit.turnout.mean, roads)
                    drawn["turnout_cv"] = estimate.turnout_cv * draw_factor(fit.turnout.cv, spread)
            if "service" in chosen and fit.service is not None:
                drawn["service_times"] = estimate.service_times * draw_factor(fit.service.mean, service)
            yield base._with_arrays(**drawn)

    def __repr__(self) -> str:
        return f"<DrawnCities around {self.estimate!r}, from {self.weeks:.3g} weeks>"


def drawn_cities(
    fit: Fit, *, hours: Iterable[int] | None = None, weekdays: Iterable[int | str] | None = None, **options: Any
) -> DrawnCities:
    """Return the distribution of the cities of a log; all options are those of `aggregate_calls` and `Fit.city`."""
    if unknown := [name for name in options if name not in CITY_OPTIONS]:
        others = ", ".join(sorted(CITY_OPTIONS))
        raise InputError(f"there is no option {unknown[0]!r}; there are {others}. Remove it or correct its name.")
    counting = {name: options.pop(name) for name in COUNTING_OPTIONS if name in options}
    demand, calls, atom = demand_and_atoms(fit.calls, fit.stations, **counting)
    city = fit.city(hours=hours, weekdays=weekdays, demand=demand, **options)
    week = week_mask(hours, weekdays)
    day = calls.times.astype("datetime64[D]").astype(np.int64)
    observed = observed_hours(fit.calls.times, counting.get("empty_days", "counted"))
    days = np.unique(observed.astype("datetime64[D]").astype(np.int64))
    chosen = days[np.isin((days + 3) % 7, np.flatnonzero(week.any(axis=1)))]  # 1970-01-01 was a Thursday
    counted = week.ravel()[calls.hours_of_week]
    column = np.searchsorted(chosen, day[counted])
    counts = np.bincount(atom[counted] * len(chosen) + column, minlength=city.n_atoms * len(chosen))
    points = fit.stations[["lon", "lat"]].to_numpy(float)
    between, among = (travel.great_circle_km(p, p) for p in (points, demand.locations))
    rounding = resolution(fit.calls.details["on_scene"].to_numpy("datetime64[s]"))  # of the end of a drive
    effects = PairEffects.of(*_drives(fit, calls.rows, atom), between, among, rounding)
    city = city.replace(travel_times=city.travel_times * effects.mean)
    rates = RatePosterior.of(counts.reshape(city.n_atoms, len(chosen)))
    return DrawnCities(fit, city, rates, effects, fit.distances(demand.locations), len(days) / 7)


def _drives(fit: Fit, rows: IntArray, atom: IntArray) -> tuple[IntArray, IntArray, FloatArray, FloatArray]:
    """Return site, atom, minutes and expected minutes, (n,) each, of drives to calls (``rows``, ``atom``), (K,)."""
    atom_of_row = np.full(int(fit.calls.rows.max()) + 1, -1)
    atom_of_row[rows] = atom
    columns = ("call", "station", "distance", "minutes")
    call, station, distance, minutes = (fit.drives[name].to_numpy() for name in columns)
    where = atom_of_row[fit.calls.rows[call]]
    expected = fit.law.mean(distance) * fit.law.hour_factors[fit.calls.hours[call]]
    return tuple(values[where >= 0] for values in (station, where, minutes, expected))


@dataclass(frozen=True, eq=False)
class RatePosterior:
    """Distribution of each atom's calls per day, from ``counts``, (M,), in ``days`` days and their dispersions."""

    counts: FloatArray
    days: int
    share_dispersion: float
    total_dispersion: float

    @classmethod
    def of(cls, counts: ArrayLike) -> RatePosterior:
        """Estimate the distribution from the calls by atom and day, in the order of the days, shape (M, D)."""
        table = np.asarray(counts, dtype=float)
        by_atom, by_day = table.sum(axis=1), table.sum(axis=0)
        shares = max(1.0, _pearson_dispersion(table[by_atom > 0][:, by_day > 0]))
        return cls(by_atom, table.shape[1], shares, max(1.0, _daily_dispersion(by_day)))

    def draw(self, rng: np.random.Generator, more: float = 1.0) -> FloatArray:
        """Draw the calls per day of each atom, (M,), as if the log were ``more`` times, even infinitely, as long."""
        if np.isinf(more):
            return self.counts / self.days
        share = rng.gamma(self.counts * more / self.share_dispersion)
        shape = self.counts.sum() * more / self.total_dispersion
        return share / share.sum() * self.counts.sum() / self.days * rng.gamma(shape) / shape


@dataclass(frozen=True, eq=False)
class PairEffects:
    """Distribution of the factors by which travel times of sites and atoms deviate from a law of distance.

    A row of ``scales`` has the standard deviations of the effects a, b and c of `emsopt.calls.drawn_cities`, and the
    reach r (km); the first row is the most probable one, the others are drawn around it.
    """

    deviation: FloatArray  # (N, M), mean relative deviation of the drives of each pair of site and atom
    weight: FloatArray  # (N, M), its inverse variance, 0 without drives
    sites_km: FloatArray  # (N, N)
    atoms_km: FloatArray  # (M, M)
    scales: FloatArray  # (H, 4)
    _factors: dict[tuple[int, float], FloatArray] = field(default_factory=dict, init=False, repr=False)  # cache

    @classmethod
    def of(
        cls,
        site: IntArray,
        atom: IntArray,
        minutes: ArrayLike,
        expected: ArrayLike,
        sites_km: FloatArray,
        atoms_km: FloatArray,
        rounding: float = 0.0,
    ) -> PairEffects:
        """Estimate the effects from ``minutes`` of K drives, from a ``site`` to an ``atom``, and those ``expected``.

        ``sites_km``, (N, N), and ``atoms_km``, (M, M), are distances among sites and among atoms. Stamps have steps of
        ``rounding`` minutes, so that a difference of two has the additional variance rounding² / 6.
        """
        drives, mean = np.asarray(minutes, dtype=float), np.asarray(expected, dtype=float)
        shape = len(sites_km), len(atoms_km)
        pair = np.ravel_multi_index((site, atom), shape)
        relative, rounded = drives / mean - 1, rounding**2 / 6 / mean**2
        right = np.ones(len(pair), dtype=bool)
        for _ in range(OUTLIER_PASSES):
            variance = _variance_within_pairs(relative[right], pair[right], rounded[right]) + rounded
            right = relative <= MOST_SDS * np.sqrt(variance)
        each = right / variance
        relative = relative - np.average(relative, weights=each)  # the level belongs to the law
        size = shape[0] * shape[1]
        weight: FloatArray = np.bincount(pair, each, minlength=size).astype(float).reshape(shape)
        total: FloatArray = np.bincount(pair, each * relative, minlength=size).astype(float).reshape(shape)
        deviation = np.divide(total, weight, out=np.zeros_like(weight), where=weight > 0)
        return cls(deviation, weight, sites_km, atoms_km, _effect_scales(deviation, weight, sites_km, atoms_km))

    @property
    def mean(self) -> FloatArray:
        """Mean factor of each pair of a site and an atom, shape (N, M)."""
        return self.draw(None)

    def draw(self, rng: np.random.Generator | None, more: float = 1.0) -> FloatArray:
        """Draw the factor of each pair, (N, M), as if driven ``more`` times as often; their mean without ``rng``."""
        k = 0 if rng is None else int(rng.integers(1, len(self.scales)))
        site, route, pair, reach = self.scales[k]
        s, j = self._driven_pairs
        root = self._cholesky_of_drives(k, more)
        prior, chance = np.zeros(self.weight.shape), np.zeros(len(s))
        if rng is not None:
            (near_sites, near_atoms), (n, m) = self._cholesky_factors[k], self.weight.shape
            prior += site * rng.standard_normal((n, 1)) + pair * rng.standard_normal((n, m))
            prior += route * near_sites @ rng.standard_normal((n, m)) @ near_atoms.T
            chance = rng.standard_normal(len(s)) / np.sqrt(self.weight[s, j] * more)
        known = np.zeros(prior.shape)  # Matheron's rule: the drives correct a draw that was made without them
        known[s, j] = cho_solve((root, True), self.deviation[s, j] - prior[s, j] - chance)
        near = route**2 * np.exp(-self.sites_km / reach) @ known @ np.exp(-self.atoms_km / reach)
        return np.maximum(1 + prior + near + site**2 * known.sum(axis=1, keepdims=True) + pair**2 * known, LEAST_FACTOR)

    @cached_property
    def _driven_pairs(self) -> tuple[IntArray, IntArray]:
        """Sites and atoms of at most `MOST_PAIRS` pairs with recorded drives, (D,) each."""
        return _most_frequent_pairs(self.weight, MOST_PAIRS)

    @cached_property
    def _cholesky_factors(self) -> list[tuple[FloatArray, FloatArray]]:
        """Cholesky factors of the correlations of sites, (N, N), and of atoms, (M, M), for each row of ``scales``."""
        reaches = self.scales[:, 3]
        return [(_cholesky(np.exp(-self.sites_km / r)), _cholesky(np.exp(-self.atoms_km / r))) for r in reaches]

    def _cholesky_of_drives(self, k: int, more: float) -> FloatArray:
        """Return the Cholesky factor, (D, D), of the covariance of the drives' mean deviations by ``scales[k]``."""
        if (k, more) not in self._factors:
            s, j = self._driven_pairs
            variance = _covariance(self.sites_km, self.atoms_km, s, j, self.scales[k], self.weight[s, j] * more)
            self._factors[k, more] = _cholesky(variance)
        return self._factors[k, more]


def _pearson_dispersion(table: FloatArray) -> float:
    """Return Pearson's chi-squared statistic of a table divided by its degrees of freedom; 1 if it has none."""
    rows, columns = table.shape
    expected = table.sum(axis=1, keepdims=True) * table.sum(axis=0) / table.sum()
    freedom = (rows - 1) * (columns - 1)
    return float(((table - expected) ** 2 / expected).sum() / freedom) if freedom else 1.0


def _daily_dispersion(by_day: FloatArray) -> float:
    """Return the variance of daily numbers of calls, (D,), divided by their mean, within weekdays from two weeks on."""
    days = len(by_day)
    group = np.arange(days) % 7 if days >= 14 else np.zeros(days, int)
    members = np.bincount(group)
    mean = (np.bincount(group, by_day) / members)[group]
    freedom = days - len(members)
    return float(((by_day - mean) ** 2).sum() / freedom / by_day.mean()) if freedom else 1.0


def _variance_within_pairs(relative: FloatArray, pair: IntArray, rounded: FloatArray) -> float:
    """Return the variance of the ``relative`` deviations, (K,), of drives within pairs, less that of rounding."""
    _, index, count = np.unique(pair, return_inverse=True, return_counts=True)
    apart = relative - (np.bincount(index, relative) / count)[index]
    freedom = len(relative) - len(count)
    variance = (apart**2).sum() / freedom if freedom >= MIN_REPEATED_DRIVES else relative.var()
    return max(float(variance - rounded.mean()), LEAST_CV**2)


def _cholesky(matrix: FloatArray) -> FloatArray:
    """Return the lower Cholesky factor of a matrix after adding 1e-9 to its diagonal, as places may coincide."""
    return np.asarray(np.linalg.cholesky(matrix + 1e-9 * np.eye(len(matrix))))


def _most_frequent_pairs(weight: FloatArray, most: int) -> tuple[IntArray, IntArray]:
    """Return the sites and atoms of the pairs with a ``weight``, (N, M), above 0, at most the ``most`` heaviest."""
    pairs = np.flatnonzero(weight)
    kept = np.sort(pairs[np.argsort(-weight.flat[pairs], kind="stable")[:most]])
    site, atom = np.unravel_index(kept, weight.shape)
    return site, atom


def _covariance(
    sites_km: FloatArray, atoms_km: FloatArray, site: IntArray, atom: IntArray, scales: FloatArray, weight: FloatArray
) -> FloatArray:
    """Return the covariance matrix, (D, D), of the mean deviations of pairs with inverse variances ``weight``, (D,)."""
    both = np.exp(-(sites_km[site][:, site] + atoms_km[atom][:, atom]) / scales[3])
    return scales[0] ** 2 * (site[:, None] == site) + scales[1] ** 2 * both + np.diag(scales[2] ** 2 + 1 / weight)


def _effect_scales(deviation: FloatArray, weight: FloatArray, sites_km: FloatArray, atoms_km: FloatArray) -> FloatArray:
    """Return `PairEffects.scales`, (H, 4): the most probable ones, and draws around them by Laplace's approximation."""
    from scipy.optimize import minimize

    s, j = _most_frequent_pairs(weight, MOST_PAIRS_FOR_SCALES)
    seen, known = deviation[s, j], weight[s, j]
    middle = np.log([*TYPICAL_SCALES[:3], TYPICAL_SCALES[3] * (float(np.quantile(atoms_km, 0.9)) or 1.0)])

    def misfit(steps: FloatArray) -> float:
        root = _cholesky(_covariance(sites_km, atoms_km, s, j, np.exp(middle + PRIOR_SDS * steps), known))
        fit = 2 * np.log(np.diag(root)).sum() + (solve_triangular(root, seen, lower=True) ** 2).sum()
        return float(fit + steps @ steps) / 2  # the prior keeps scales above 0 if sites are few (Chung et al. 2013)

    best = minimize(misfit, np.zeros(4), method="L-BFGS-B", bounds=[(-MOST_SDS, MOST_SDS)] * 4).x
    unit = CURVATURE_STEP * np.eye(4)
    pairs = itertools.product(unit, unit)
    bend = [misfit(best + a + b) - misfit(best + a - b) - misfit(best - a + b) + misfit(best - a - b) for a, b in pairs]
    curvature = np.reshape(bend, (4, 4)) / (4 * CURVATURE_STEP**2)
    values, vectors = np.linalg.eigh((curvature + curvature.T) / 2)
    spread = vectors / np.sqrt(np.maximum(values, 1.0))  # never wider than the prior
    around = best + np.random.default_rng(0).standard_normal((N_SCALE_DRAWS, 4)) @ spread.T
    return np.exp(middle + PRIOR_SDS * np.clip(np.vstack([best, around]), -MOST_SDS, MOST_SDS))
