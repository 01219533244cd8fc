r"""Learn the time to drive each road edge from the durations of whole trips, by a Gaussian process.

The expected time on edge e is :math:`m_e f_e`, with m_e the minutes at the speed limit. The *slowness* f is a Gaussian
process over the edges; a trip observes a sum over the edges of its way,

.. math:: y_k = \sum_e a_{ke} f_e + ε_k, \quad a_{ke} = m_e × \text{share of e driven}, \quad
          ε_k \sim N(0, τ^2 (\textstyle\sum_e a_{ke})^2)

so the posterior has closed form: with A the matrix of a, K the covariance of f, and S = A K Aᵀ plus noise,

.. math:: \mathrm{E} f = φ + K A^\top S^{-1} (y - A φ), \quad \mathrm{Cov} f = K - K A^\top S^{-1} A K

K is a sum of kernels: one factor of all edges, with the variance `FACTOR_VARIANCE`; the graph Matérn kernel and the
Matérn kernel of length, speed limit and incline, as in the bandits of "Bayesian Analysis of Combinatorial Gaussian
Process Bandits"; the same class of road; and the places of edges, at each lengthscale in `SCALES_KM`. Their variances
and τ maximise the marginal likelihood times a weak lognormal prior. Ways are the recorded ones or, as drivers know
their roads, the quickest by the times learned so far.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import minimize

from .. import _validate
from .._types import ArrayLike, FloatArray
from ..city.travel import EARTH_RADIUS_KM
from ..errors import InputError
from .graph_matern import graph_matern, incidence_laplacian, matern52

if TYPE_CHECKING:
    from scipy import sparse

    from ..roads import RoadNetwork

    Ways = sparse.csr_array[np.float64, tuple[int, int]]

FACTOR_VARIANCE = 9.0
SCALES_KM = (0.5, 2.0)
KERNEL_SD, NOISE_SD = 0.2, 0.15  # medians of the prior, relative to the mean slowness
PRIOR_SD = 4.0  # of the logarithm of a variance
SMALLEST = 0.2  # of the mean slowness: a lower estimate for an edge is raised to it
MOST_EDGES, MOST_TRIPS = 10_000, 3_000  # dense matrices of these sizes take up to 5 GB together


@dataclass(frozen=True, eq=False, repr=False)
class LearnedTimes:
    """Times on the edges of a network, learned from trips.

    Attributes
    ----------
    roads : RoadNetwork
    slowness : ndarray, shape (E,)
        Expected time on each edge, divided by that at the speed limit.
    covariance : ndarray, shape (E, E)
        Posterior covariance of the slowness.
    noise : float
        Standard deviation of the duration of a single trip around its expectation, relative to it.
    n_trips : int

    Examples
    --------
    >>> import numpy as np
    >>> from emsopt.roads import grid_roads
    >>> from emsopt.surrogates.trip_times import learn_times
    >>> net, rng = grid_roads(5, 5, block=500), np.random.default_rng(0)
    >>> starts, ends = rng.uniform([0, -2000], [2000, 0], (2, 200, 2))
    >>> true = net.ways(starts, ends) @ (1.5 * net.edge_minutes())
    >>> learned = learn_times(net, starts, ends, true * rng.lognormal(0, 0.1, 200))
    >>> learned.n_trips, learned.speeds.shape == net.lengths.shape
    (200, True)
    """

    roads: RoadNetwork
    slowness: FloatArray
    covariance: FloatArray
    noise: float
    n_trips: int

    @property
    def speeds(self) -> FloatArray:
        """Learned speed of each edge, shape (E,), m/s."""
        return self.roads.speed_limits / self.slowness

    def travel_times(self, origins: ArrayLike, destinations: ArrayLike, **off_road: float) -> FloatArray:
        """Return the expected minutes by the quickest ways between all pairs, as `RoadNetwork.travel_times` does."""
        return self.roads.travel_times(origins, destinations, speeds=self.speeds, **off_road)

    def predict(self, origins: ArrayLike, destinations: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Return mean and standard deviation of the expected minutes on the road from origin k to destination k.

        Parameters
        ----------
        origins, destinations : array_like, shape (K, 2)
            Points as in `RoadNetwork.travel_times`; the lines between them and the road are left out.

        Returns
        -------
        mean, sd : ndarray, shape (K,)
            By the quickest way at the learned speeds. A single trip varies by ``noise`` in addition.
        """
        loads = _loads(self.roads, self.roads.ways(origins, destinations, speeds=self.speeds))
        variance = loads.multiply(loads @ self.covariance).sum(axis=1)
        return loads @ self.slowness, np.sqrt(np.maximum(variance, 0))

    def __repr__(self) -> str:
        mean, low, high = self.slowness.mean(), *np.quantile(self.slowness, [0.05, 0.95])
        return (
            f"<LearnedTimes: {self.n_trips:,} trips on {self.roads.n_edges:,} edges; time over that at the speed limit "
            f"{mean:.2f} on average, {low:.2f} to {high:.2f} on nine edges of ten; noise {self.noise:.0%}>"
        )


def learn_times(
    roads: RoadNetwork,
    origins: ArrayLike,
    destinations: ArrayLike,
    minutes: ArrayLike,
    *,
    ways: Ways | None = None,
    off_road_kmh: float | None = None,
    rounds: int = 3,
) -> LearnedTimes:
    """Learn the times on road edges from trips of which ends and duration are known.

    Parameters
    ----------
    roads : RoadNetwork
        At most 10,000 edges, with polylines.
    origins, destinations : array_like, shape (K, 2)
        Ends of 3 to 3,000 trips, as for `RoadNetwork.travel_times`.
    minutes : array_like, shape (K,)
        Durations, above 0.
    ways : sparse array, shape (K, E), optional
        Share driven of each edge, as from `RoadNetwork.ways`, if ways were recorded. Default: the quickest.
    off_road_kmh : float, optional
        Speed on the lines between the ends and their roads, if ``minutes`` include these. Default: they do not.
    rounds : int
        How often the quickest ways and the times on them are computed in turn.

    Returns
    -------
    LearnedTimes

    Raises
    ------
    InputError
        If there are too many edges or trips, a trip has no length, a duration is not above 0, or shapes do not match.

    Examples
    --------
    >>> from emsopt.roads import grid_roads
    >>> net, rng = grid_roads(5, 5, block=500), np.random.default_rng(0)
    >>> starts, ends = rng.uniform([0, -2000], [2000, 0], (2, 200, 2))
    >>> true = net.ways(starts, ends) @ (1.5 * net.edge_minutes())  # 1.5 times as long on every edge
    >>> learned = learn_times(net, starts, ends, true * rng.lognormal(0, 0.1, 200))
    >>> bool(abs(learned.slowness.mean() - 1.5) < 0.05)
    True
    """
    if roads.n_edges > MOST_EDGES:
        raise InputError(f"`roads` may have at most {MOST_EDGES:,} edges; it has {roads.n_edges:,}. Use `subset`.")
    minutes = _validate.real_array(minutes, "minutes", (None,), unit="min", low=0.0, strictly=True)
    n = len(minutes)
    if not 3 <= n <= MOST_TRIPS:
        raise InputError(f"`minutes` must be of 3 to {MOST_TRIPS:,} trips; got {n:,}. Draw a sample of them.")
    origins = _validate.real_array(origins, "origins", (n, 2))
    destinations = _validate.real_array(destinations, "destinations", (n, 2))
    if off_road_kmh is not None:
        minutes = minutes - sum(roads.off_road_minutes(points, off_road_kmh) for points in (origins, destinations))
    if ways is not None and ways.shape != (n, roads.n_edges):
        raise InputError(f"`ways` must have shape {(n, roads.n_edges)}; got {ways.shape}.")
    kernels = edge_kernels(roads)
    speeds = roads.speed_limits
    for _ in range(1 if ways is not None else _validate.whole_number(rounds, "rounds")):
        driven = roads.ways(origins, destinations, speeds=speeds) if ways is None else ways
        loads = _loads(roads, driven)
        slowness, variances, factor, solve = _fitted(loads, minutes, kernels)
        speeds = roads.speed_limits / slowness
    prior = sum(variance * kernel for variance, kernel in zip(variances, kernels, strict=False)) + FACTOR_VARIANCE
    explained = loads @ prior
    covariance = prior - explained.T @ solve(explained)
    return LearnedTimes(roads, slowness, covariance, float(np.sqrt(variances[-1]) / factor), n)


def edge_kernels(roads: RoadNetwork) -> list[FloatArray]:
    """Return the kernels between edges that model the slowness, each of shape (E, E) and with mean variance 1.

    Examples
    --------
    >>> import emsopt as eo
    >>> from emsopt.surrogates import trip_times
    >>> net = eo.roads.grid_roads(3, 3)
    >>> len({kernel.shape for kernel in trip_times.edge_kernels(net)})
    1
    """
    contexts = roads.contexts
    middles = np.array([(line[0] + line[-1]) / 2 for line in roads.polylines or ()])
    scale = 1e-3 * np.ones(2)
    if roads.geographic:
        scale = np.radians(EARTH_RADIUS_KM) * np.array([np.cos(np.radians(middles[:, 1].mean())), 1.0])
    _, classes = np.unique(roads.classes, return_inverse=True)
    return [
        graph_matern(incidence_laplacian(roads.lengths, roads.connections)),
        matern52(contexts / np.maximum(contexts.std(axis=0), 1e-9)),
        (classes[:, None] == classes).astype(float),
        *(matern52(middles * scale, lengthscales=km) for km in SCALES_KM),
    ]


def _loads(roads: RoadNetwork, ways: Ways) -> Any:  # a csr_array, whose sums and products have no precise types
    """Return the minutes at the speed limit that each way spends on each edge, shape (K, E)."""
    from scipy.sparse import csr_array

    ways = csr_array(ways)
    return csr_array((ways.data * roads.edge_minutes()[ways.indices], ways.indices, ways.indptr), shape=ways.shape)


def _fitted(
    loads: Any, minutes: FloatArray, kernels: Sequence[FloatArray]
) -> tuple[FloatArray, FloatArray, float, Any]:
    """Fit the Gaussian process.

    Returns
    -------
    slowness : ndarray, shape (E,)
        Posterior mean.
    variances : ndarray
        Of each kernel, and of the noise.
    factor : float
        Prior mean of the slowness: the mean duration over the mean time at the speed limits.
    solve : callable
        Returns S⁻¹ x.
    """
    total = loads.sum(axis=1)
    if not (total > 0).all():
        raise InputError(f"trip {int(np.argmin(total))} starts and ends at the same place of a road. Leave it out.")
    factor = minutes.sum() / total.sum()
    surprise = minutes - factor * total
    projected = [loads @ kernel for kernel in kernels]
    parts = np.array([*(loads @ rows.T for rows in projected), np.diag(total**2)])
    fixed = FACTOR_VARIANCE * np.outer(total, total)
    medians = 2 * np.log(factor * np.array([KERNEL_SD] * len(kernels) + [NOISE_SD]))

    def solver(logs: FloatArray) -> Any:
        return cho_factor(fixed + np.tensordot(np.exp(logs), parts, 1), lower=True)

    def loss(logs: FloatArray) -> tuple[float, FloatArray]:
        """Return the negative logarithm of likelihood times prior, and its gradient."""
        root = solver(logs)
        weights = cho_solve(root, surprise)
        excess = cho_solve(root, np.eye(len(total))) - np.outer(weights, weights)
        away = (logs - medians) / PRIOR_SD
        value = surprise @ weights / 2 + np.log(np.diag(root[0])).sum() + away @ away / 2
        return value, np.exp(logs) * np.einsum("ij,kij->k", excess, parts) / 2 + away / PRIOR_SD

    logs = minimize(loss, medians, jac=True, method="L-BFGS-B", bounds=[(m - 12, m + 12) for m in medians]).x
    root, variances = solver(logs), np.exp(logs)
    weights = cho_solve(root, surprise)
    slowness = factor + FACTOR_VARIANCE * (total @ weights)
    slowness = slowness + sum(v * (rows.T @ weights) for v, rows in zip(variances, projected, strict=False))
    slowness = np.maximum(slowness, SMALLEST * factor)
    return slowness, variances, factor, lambda x: cho_solve(root, x)
