r"""Gaussian process over the arms of a large city: exact within districts, which share features of the contexts.

The expected values of n arms are f = μ + Φ w + g, with prior mean μ. Φ has R features of k_f', the kernel between
contexts, and their weights w ~ N(0, I) correlate all districts. The rest of the prior covariance K, K - Φ Φᵀ, is kept
within districts of edges that lie together and dropped between districts, as the graph kernel reaches a few turns only.
This is the partially independent conditional of Snelson and Ghahramani (2007). Prior variances are exact.

===========  ===============  ================================================================================
symbol       name             meaning
===========  ===============  ================================================================================
Ψ            ``_features``    influence of w on every arm's posterior mean given w, shape (n, R); at first Φ
c            ``_offset``      posterior mean of every arm for w = 0, minus its prior mean
C            ``_blocks``      posterior covariance of the arms of a district given w
Λ, λ         ``_precision``   posterior precision of w, and precision times mean (``_shift``)
ς²           -                noise variance of an observation
===========  ===============  ================================================================================

Arms a of one district, observed n times with mean values y, update the district and the weights by

.. math:: T = C_{aa} + ς^2 \mathrm{diag}(1/n) = L L^\top, \quad F = L^{-1} C_{a·}, \quad U = L^{-1} Ψ_a, \quad
          r = L^{-1} (y - μ_a - c_a)

.. math:: C ← C - F^\top F, \quad Ψ ← Ψ - F^\top U, \quad c ← c + F^\top r, \quad
          Λ ← Λ + U^\top U, \quad λ ← λ + U^\top r

after which an arm has mean μ + c + ψᵀ Λ⁻¹ λ and variance C + ψᵀ Λ⁻¹ ψ. A round costs O(n R²) and a path's districts; it
does not grow with the number of observations. Memory is 8 n (R + S) bytes for districts of S arms.
"""

import numpy as np
from scipy import sparse
from scipy.linalg import cholesky, solve_triangular
from scipy.linalg.lapack import dpstrf
from scipy.sparse.csgraph import breadth_first_order

from ..errors import _validate
from ..errors._types import FloatArray, IntArray
from ..surrogates.graph_matern import matern
from .prior import LazyPrior, Prior, jittered_cholesky
from .regression import Regression, sum_by_arm

DISTRICT_ARMS = 512  # largest number of arms per district, in which the memory is linear
MAX_FEATURES = 256  # largest number R of features, with whose square the time of a round grows
LANDMARK_CANDIDATES = 2048  # arms from which the features' landmarks are chosen, as choosing among all takes too long
PIVOT_TOLERANCE = 1e-3  # share of the variance of k_f' that the features may miss at a candidate
ARMS_AT_ONCE = 4096  # arms at a time, to save memory


class DistrictGP(Regression):
    """Gaussian process over the arms of a large city, exact within districts of at most 512 arms.

    Parameters
    ----------
    prior : LazyPrior
        From ``navigation_prior(net, lazy=True)``, or above 10,000 arms from ``navigation_prior(net)``.

    Examples
    --------
    >>> import emsopt as eo
    >>> net = eo.roads.grid_roads(8, 8, jitter=0.2, rng=0)
    >>> gp = eo.bandits.DistrictGP(eo.bandits.navigation_prior(net, lazy=True))
    >>> gp.update([0], [4.0])
    >>> gp.predict()[0].shape
    (224,)
    """

    prior: LazyPrior

    def __init__(self, prior: Prior) -> None:
        prior = _validate.instance(prior, "prior", LazyPrior, "emsopt.bandits.LazyPrior: `navigation_prior(lazy=True)`")
        super().__init__(prior)
        self.size, self.features = DISTRICT_ARMS, MAX_FEATURES  # public, so that checkpoints of runs name them
        hours = self.n_arms // prior.graph.n_edges  # all hours of an edge are in one district
        self._district = np.tile(partition_graph(prior.graph.matrix, max(self.size // hours, 1)), hours)
        self._members = np.split(np.argsort(self._district, kind="stable"), np.bincount(self._district).cumsum()[:-1])
        self._features = context_features(prior, self.features)
        self._offset = np.zeros(self.n_arms)
        explained = np.einsum("ij,ij->i", self._features, self._features)
        self._district_variance = np.maximum(prior.variance - explained, 0.0)  # diag C
        self._precision, self._shift = np.eye(self._features.shape[1]), np.zeros(self._features.shape[1])
        self._blocks: dict[int, FloatArray] = {}  # only of districts needed so far, to save memory
        self._factors: dict[int, FloatArray] = {}  # their Cholesky factors, for joint samples
        self._solution: tuple[FloatArray, FloatArray] | None = None

    def sample(self, arms: IntArray, rng: np.random.Generator) -> FloatArray:
        """Return a joint posterior sample at the given arms, shape (k,), independent of earlier samples."""
        # w has precision Λ = L Lᵀ: L⁻ᵀ (L⁻¹ λ + z) is a draw with mean Λ⁻¹ λ
        factor = cholesky(self._precision, lower=True)
        centre = solve_triangular(factor, self._shift, lower=True) + rng.standard_normal(len(factor))
        values = self.prior.mean + self._offset
        values += self._features @ solve_triangular(factor, centre, lower=True, trans=1)
        for district, members in enumerate(self._members):
            if district not in self._factors:  # kept between rounds, as few districts change in one
                self._factors[district] = jittered_cholesky(self._covariance(district))
            values[members] += self._factors[district] @ rng.standard_normal(len(members))
        return values[arms]

    def _covariance(self, district: int) -> FloatArray:
        """Return C, the posterior covariance between the k arms of a district given the weights, shape (k, k)."""
        if district not in self._blocks:
            members = self._members[district]
            phi = self._features[members]
            self._blocks[district] = self.prior.neighbour_covariance(members) - phi @ phi.T  # left by the features
        return self._blocks[district]

    def _learn(self, arms: IntArray, values: FloatArray) -> None:
        unique, counts, sums = sum_by_arm(arms, values)
        touched = self._district[unique]
        for district in np.unique(touched).tolist():
            here, C, members = touched == district, self._covariance(district), self._members[district]
            a, seen = np.searchsorted(members, unique[here]), counts[here]  # members ascend, by the stable sort
            T = C[np.ix_(a, a)] + np.diag(self.prior.noise_variance / seen)
            surprise = sums[here] / seen - self.prior.mean[unique[here]] - self._offset[unique[here]]
            right = np.hstack([C[a], self._features[unique[here]], surprise[:, None]])
            right = solve_triangular(cholesky(T, lower=True), right, lower=True, check_finite=False)
            F, U, r = right[:, : len(C)], right[:, len(C) : -1], right[:, -1]
            C -= F.T @ F
            self._district_variance[members] = np.maximum(np.diag(C), 0.0)
            self._features[members] -= F.T @ U
            self._offset[members] += F.T @ r
            self._precision += U.T @ U
            self._shift += U.T @ r
            self._factors.pop(district, None)  # C has changed
        self._solution = None

    def _posterior(self) -> tuple[FloatArray, FloatArray]:
        if self._solution is None:
            factor = cholesky(self._precision, lower=True)
            centre = solve_triangular(factor, self._shift, lower=True)
            mean = self.prior.mean + self._offset
            mean += self._features @ solve_triangular(factor, centre, lower=True, trans=1)
            variance = self._district_variance.copy()
            for start in range(0, self.n_arms, ARMS_AT_ONCE):  # without a second matrix of the size of `_features`
                rows = slice(start, start + ARMS_AT_ONCE)
                half = solve_triangular(factor, self._features[rows].T, lower=True, check_finite=False)
                variance[rows] += np.einsum("ij,ij->j", half, half)
            self._solution = mean, variance
        return self._solution


def context_features(prior: LazyPrior, most: int) -> FloatArray:
    """Return Nyström features Φ, (n, R), R at most ``most``: Φ Φᵀ is close to the covariance by contexts alone."""
    kernel = prior.kernel
    contexts = kernel.contexts / kernel.lengthscales[1]
    unique = np.unique(contexts, axis=0)  # a repeated context would be a landmark without information
    some = np.random.default_rng(0).choice(unique, min(LANDMARK_CANDIDATES, len(unique)), replace=False)
    # pivots by the largest remaining variance, and stops below the tolerance
    factor, order, rank, _ = dpstrf(matern(some, some), lower=1, tol=PIVOT_TOLERANCE)
    count = min(rank, most)
    # LAPACK counts from 1 and leaves the upper triangle as it was
    landmarks, factor = some[order[:count] - 1], np.tril(factor[:count, :count])
    phi = np.empty((prior.n_arms, count))
    for start in range(0, prior.n_arms, ARMS_AT_ONCE):
        rows = slice(start, start + ARMS_AT_ONCE)
        phi[rows] = solve_triangular(factor, matern(landmarks, contexts[rows]), lower=True, check_finite=False).T
    return phi * np.sqrt(kernel.outputscale * (1 - kernel.share))


def partition_graph(adjacency: "sparse.csr_array[np.float64, tuple[int, int]]", size: int) -> IntArray:
    """Return the number of the part of each node, (n,), of a graph halved until no part has over ``size`` nodes."""
    labels, parts, count = np.empty(adjacency.shape[0], dtype=np.intp), [np.arange(adjacency.shape[0])], 0
    while parts:
        part = parts.pop()
        if len(part) <= size:
            labels[part], count = count, count + 1
            continue
        inner = sparse.csr_array(adjacency[part][:, part])
        rim = breadth_first_order(inner, 0, return_predecessors=False)[-1]  # the last node found is far from the first
        order = breadth_first_order(inner, rim, return_predecessors=False)
        order = np.concatenate([order, np.setdiff1d(np.arange(len(part)), order)])  # the search stays in one component
        parts += [np.sort(half) for half in np.array_split(part[order], 2)]
    return labels
