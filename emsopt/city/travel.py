"""Distances between places, and how turnout and travel times vary.

Turnout and travel are independent, and lognormal around their means:

=====================  ======  ========  ===============================================================
name                   symbol  shape     meaning
=====================  ======  ========  ===============================================================
``turnout``            τ_i     (n,)      mean minutes from dispatch until the unit leaves
``travel``             t_ij    (n, M)    mean minutes of travel
``turnout_spread``             (n,)      standard deviation of the logarithm of the turnout time
``travel_spread``      σ_ij    (n, M)    standard deviation of the logarithm of the travel time
=====================  ======  ========  ===============================================================

A lognormal time with mean m and coefficient of variation c is m exp(σ Z - σ² / 2), with σ² = log(1 + c²) and Z standard
normal. Service times do not depend on these variations: a call that takes long to reach does not keep its unit longer.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numba import njit

from ..errors._types import ArrayLike, FloatArray, IntArray
from ..errors._validate import real_array

EARTH_RADIUS_KM = 6371.0088  # mean radius (IUGG)
PLAUSIBLE_KMH = (5, 150)  # of ambulances and fire engines; other averages suggest another unit
# Of a quadrature over drives; errors are at most 0.0005, on average 1e-6, for variations up to 1.
GAUSS_NODES, GAUSS_WEIGHTS = np.polynomial.legendre.leggauss(20)
CUTOFF = 5.5  # standard deviations at which the integral is cut: the tail beyond is below 1e-7


def great_circle_km(origins: ArrayLike, destinations: ArrayLike) -> FloatArray:
    """Return the great-circle distances between points in longitude and latitude (degrees), shape (N, M), km."""
    starts, ends = real_array(origins, "origins", (None, 2)), real_array(destinations, "destinations", (None, 2))
    return EARTH_RADIUS_KM * central_angle(starts[:, None], ends)


def central_angle(starts: FloatArray, ends: FloatArray) -> FloatArray:
    """Return the angles (radians) between points on a sphere, (..., 2), in longitude and latitude (degrees)."""
    (lon1, lat1), (lon2, lat2) = (np.moveaxis(np.radians(points), -1, 0) for points in (starts, ends))
    haversine = np.sin((lat2 - lat1) / 2) ** 2 + np.cos(lat1) * np.cos(lat2) * np.sin((lon2 - lon1) / 2) ** 2
    return 2 * np.arcsin(np.sqrt(np.clip(haversine, 0, 1)))  # rounding may leave [0, 1], where arcsin fails


def plane_km(origins: ArrayLike, destinations: ArrayLike) -> FloatArray:
    """Return the Euclidean distances (km), (N, M), between N and M points on a plane, given as x and y in km."""
    starts = real_array(origins, "origins", (None, 2), unit="km")
    ends = real_array(destinations, "destinations", (None, 2), unit="km")
    return np.hypot(*(starts[:, None] - ends).transpose(2, 0, 1))


@dataclass(frozen=True, eq=False)
class ResponseLaw:
    """Distribution of turnout plus travel time for pairs of n units or sites and M atoms; see `emsopt.city.travel`."""

    turnout: FloatArray
    travel: FloatArray
    turnout_spread: FloatArray
    travel_spread: FloatArray

    @classmethod
    def of(cls, turnout: FloatArray, travel: FloatArray, turnout_cv: ArrayLike, travel_cv: ArrayLike) -> ResponseLaw:
        """Return the law from mean times (min), (n,) and (n, M), and coefficients of variation, broadcast to them."""
        spreads = (log_spread(cv) for cv in (turnout_cv, travel_cv))
        by_site, by_pair = (np.broadcast_to(s, mean.shape) for s, mean in zip(spreads, (turnout, travel), strict=True))
        # contiguous copies, so that the kernel is compiled for one kind of array only
        return cls(*(np.array(each, float, order="C") for each in (turnout, travel, by_site, by_pair)))

    def at_sites(self, sites: IntArray) -> ResponseLaw:
        """Return the law of p units, given the site of each, shape (p,)."""
        return ResponseLaw(*(each[sites] for each in vars(self).values()))

    def of_pairs(self, sites: IntArray, atoms: IntArray) -> ResponseLaw:
        """Return the law of n pairs of a site and an atom, as that of n units and a single atom."""
        law = self.at_sites(sites)
        row = np.arange(len(sites)), atoms
        return ResponseLaw(law.turnout, law.travel[row][:, None], law.turnout_spread, law.travel_spread[row][:, None])

    def late_probabilities(self, threshold: float) -> FloatArray:
        """Return the probability that a response takes ``threshold`` minutes or more, shape (n, M)."""
        return _late_probabilities(float(threshold), self.turnout, self.travel, self.turnout_spread, self.travel_spread)

    def sample(self, units: IntArray, atoms: IntArray, normal: FloatArray) -> FloatArray:
        """Return random response times (min) of k pairs of unit and atom, (k,), from standard normal ones, (2, k)."""
        spreads = self.turnout_spread[units], self.travel_spread[units, atoms]
        turnout, travel = (np.exp(s * z - s**2 / 2) for s, z in zip(spreads, normal, strict=True))
        return self.turnout[units] * turnout + self.travel[units, atoms] * travel


def log_spread(cv: ArrayLike) -> FloatArray:
    """Return the standard deviation of the logarithm of a lognormal time from its coefficient of variation."""
    spread: FloatArray = np.sqrt(np.log1p(np.square(cv)))
    return spread


def lognormal(mean: ArrayLike, cv: ArrayLike, normal: FloatArray) -> FloatArray:
    """Return lognormal times from means, coefficients of variation and standard normal numbers, broadcast together."""
    spread = log_spread(cv)
    return np.asarray(mean) * np.exp(spread * normal - spread**2 / 2)


@njit(cache=True, nogil=True)
def _late_probabilities(
    t: float, turnout: FloatArray, travel: FloatArray, turnout_spread: FloatArray, travel_spread: FloatArray
) -> FloatArray:
    """Return P(turnout + travel >= t) for each pair, shape (n, M); arguments are as in `ResponseLaw`."""
    late = np.empty(travel.shape)
    for i in range(travel.shape[0]):
        for j in range(travel.shape[1]):
            a, s, b, wide = turnout[i], turnout_spread[i], travel[i, j], travel_spread[i, j]
            if s == 0 and wide == 0:
                late[i, j] = 1.0 if a + b >= t else 0.0  # exact at the threshold, where t - a would be rounded
                continue
            if a * math.exp(-s * s / 2) * s > b * math.exp(-wide * wide / 2) * wide:
                a, s, b, wide = b, wide, a, s  # A is the narrower of the two times, over which the integral is easier
            # If A never varies, B is only shifted; and up to 0 minutes everything is late.
            late[i, j] = _tail(t - a, b, wide) if s * a == 0 or t <= 0 else _sum_tail(t, a, s, b, wide)
    return late


@njit(cache=True, nogil=True)
def _sum_tail(t: float, a: float, s: float, b: float, wide: float) -> float:
    """Return P(A + B >= t) = P(A >= t) + ∫ P(B >= t - x) dF(x) over x < t, for lognormal times of means a and b.

    ``s`` and ``wide`` are the standard deviations of their logarithms. The integral is a quadrature over the standard
    normal deviate z of A, below its value ``end`` at A = t.
    """
    end = min(max((math.log(t / a) + s * s / 2) / s, -CUTOFF), CUTOFF)
    late = math.erfc(end / math.sqrt(2)) / 2
    for k in range(len(GAUSS_NODES)):
        z = (end + CUTOFF) * (1 + GAUSS_NODES[k]) / 2 - CUTOFF  # from [-1, 1] to [-CUTOFF, end]
        density = math.exp(-z * z / 2) / math.sqrt(2 * math.pi)
        late += GAUSS_WEIGHTS[k] * (end + CUTOFF) / 2 * density * _tail(t - a * math.exp(s * z - s * s / 2), b, wide)
    return min(late, 1.0)  # the quadrature may exceed 1 slightly


@njit(cache=True, nogil=True)
def _tail(x: float, mean: float, spread: float) -> float:
    """Return P(X >= x) for a lognormal time X of this mean and log standard deviation; 0 makes X constant."""
    if x <= 0:
        return 1.0
    if spread == 0 or mean == 0:
        return 1.0 if mean >= x else 0.0
    return math.erfc((math.log(x / mean) + spread * spread / 2) / spread / math.sqrt(2)) / 2
