r"""Exact Gaussian process over all arms of a city: posterior mean, variance and joint samples.

The posterior of equations (2) and (3) in "Bayesian Analysis of Combinatorial Gaussian Process Bandits",
without the paper's approximation by inducing points. Two techniques keep it cheap:

- Observations of one arm are reduced to their number n_v and their mean, without loss. V distinct arms cost V
  columns, however often each was observed,

.. math:: m = m_0 + C_{·V} S^{-1} (\bar y - m_0)_V, \quad C = C_0 - C_{·V} S^{-1} C_{V·}, \quad
          S = C_{VV} + ς^2 \mathrm{diag}(1/n_V)

  where m_0 and C_0 are the mean and covariance before these observations, and C_{·V}, C_{V·} and C_{VV} are blocks of
  C_0.

- Only a *window* of w arms is kept in this form. When it is full, C is updated in place by one symmetric product and
  becomes the C_0 of the next window, which keeps the result exact.

With E arms, a round costs O(E w²), plus an amortised O(E² k) for paths of k edges. Memory is one matrix of 8 E² bytes,
of which only the lower triangle is updated.

With a `LazyPrior` C_0 is not stored: the window holds all observed arms, 16 bytes each for every arm of the city, and a
joint sample is a draw of the prior conditioned as below (Wilson et al. 2020).

**Joint samples** are drawn in advance from a Cholesky factor and updated by pathwise conditioning,

.. math:: f ← f + C_{·V} S^{-1} (\bar y - f_V - ε), \quad ε_v \sim N(0, ς^2 / n_v)

and a round therefore costs one column instead of a factorisation.
"""

from collections.abc import Sequence

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.linalg.blas import dsyrk

from ..errors import InputError
from ..errors._types import FloatArray, IntArray
from .prior import MEMORY_LIMIT_GB, LazyPrior, Prior, jittered_cholesky
from .regression import Regression

WINDOW = 256  # arms: large enough for fast matrix products, small enough for cheap rounds
DRAWS_AT_ONCE = 512  # joint samples drawn at a time: a matrix product is faster than as many products with vectors


class ExactGP(Regression):
    """Gaussian process over all arms, conditioned exactly on all observations.

    The prior is not changed and can be shared by several processes. With a `LazyPrior`, an update raises InputError if
    the rows of the observed arms no longer fit into memory; `DistrictGP` has no such limit.

    Examples
    --------
    >>> gp = ExactGP(Prior([0.0, 0.0], [[1.0, 0.5], [0.5, 1.0]], noise_variance=1.0))
    >>> gp.update([0, 0], [1.0, 2.0])
    >>> gp.predict()[0].round(3).tolist()
    [1.0, 0.5]
    """

    def __init__(self, prior: Prior) -> None:
        super().__init__(prior)
        self._is_lazy = isinstance(prior, LazyPrior)
        # n + 1: never full
        self.window, self._draws = (prior.n_arms + 1, 1) if self._is_lazy else (WINDOW, DRAWS_AT_ONCE)
        self._base_mean = prior.mean.copy()
        # in Fortran order BLAS updates it in place
        self._base_covariance = np.empty((0, 0)) if self._is_lazy else np.array(prior.covariance, order="F")
        self._base_variance = prior.variance.copy()
        self._arms = np.empty(0, dtype=np.intp)  # V of the window, in the order of `_rows`
        self._counts, self._sums = np.zeros((2, prior.n_arms))  # number and sum of each arm's values in the window
        self._rows: FloatArray = np.empty((0, prior.n_arms))
        self._solution: tuple[FloatArray, FloatArray, FloatArray, FloatArray] | None = None
        self._samples = np.empty((prior.n_arms, 0))  # joint samples, one per column; each is used once, up to `_next`
        self._next, self._is_prior = 0, True

    def covariance(self, arms: Sequence[int] | IntArray) -> FloatArray:
        """Return the posterior covariance between k arms, shape (k, k)."""
        arms = np.asarray(arms, dtype=np.intp)
        _, explained, _, _ = self._solve()
        low, high = np.maximum.outer(arms, arms), np.minimum.outer(arms, arms)  # only the lower triangle is up to date
        base = self.prior.rows(arms)[:, arms] if self._is_lazy else self._base_covariance[low, high]
        return base - explained[:, arms].T @ explained[:, arms]

    def _learn(self, arms: IntArray, values: FloatArray) -> None:
        fresh = np.setdiff1d(arms, self._arms)
        self._arms = np.concatenate([self._arms, fresh])
        if self._is_lazy and (size := 16e-9 * len(self._arms) * self.n_arms) > MEMORY_LIMIT_GB:
            raise InputError(
                f"The exact process would take {size:.1f} GB for {len(self._arms)} observed arms; at most "
                f"{MEMORY_LIMIT_GB:g} GB are allowed. Use `DistrictGP`."
            )
        rows = self.prior.rows(fresh) if self._is_lazy else [symmetric_row(self._base_covariance, arm) for arm in fresh]
        self._rows = np.vstack([self._rows, *rows])
        self._counts += np.bincount(arms, minlength=self.n_arms)
        self._sums += np.bincount(arms, values, self.n_arms)
        self._solution = None
        if len(self._arms) >= self.window:  # beyond it, rounds would cost more and more
            self._start_window()

    def sample(self, arms: IntArray, rng: np.random.Generator) -> FloatArray:
        """Return a joint posterior sample at the given arms, shape (k,), independent of earlier samples."""
        self._rng = rng
        if self._next == self._samples.shape[1]:
            if self._is_lazy:
                self._samples = self.prior.draw(self._draws, rng=rng)
            else:
                factor = self.prior.factor if self._is_prior else jittered_cholesky(self._base_covariance)
                self._samples = self._base_mean[:, None] + factor @ rng.standard_normal((self.n_arms, self._draws))
            self._next = 0
        self._next += 1
        return self._condition(self._samples[:, self._next - 1 : self._next], rng)[arms, 0]

    def _solve(self) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Return the Cholesky factor L of S, L⁻¹ C_{V·}, and the posterior mean and variance of every arm."""
        if self._solution is None:
            counts, sums = self._counts[self._arms], self._sums[self._arms]
            S = self._rows[:, self._arms] + np.diag(self.prior.noise_variance / counts)
            factor = cholesky(S, lower=True, overwrite_a=True, check_finite=False)
            explained = solve_triangular(factor, self._rows, lower=True, check_finite=False)
            surprise = sums / counts - self._base_mean[self._arms]
            mean = self._base_mean + solve_triangular(factor, surprise, lower=True, check_finite=False) @ explained
            variance = self._base_variance - np.einsum("ij,ij->j", explained, explained)
            self._solution = factor, explained, mean, np.maximum(variance, 0.0)
        return self._solution

    def _condition(self, samples: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Return samples from before the current window, shape (E, n), conditioned on the window's observations."""
        factor, explained, _, _ = self._solve()
        counts, sums = self._counts[self._arms, None], self._sums[self._arms, None]
        deviations, shape = np.sqrt(self.prior.noise_variance / counts), (len(counts), samples.shape[1])
        noise = deviations * rng.standard_normal(shape)  # ε: without it samples would have too little variance
        surprise = sums / counts - samples[self._arms] - noise
        return samples + explained.T @ solve_triangular(factor, surprise, lower=True, check_finite=False)

    def _start_window(self) -> None:
        """Make the posterior of all arms the C_0 and m_0 of the next observations, and empty the window."""
        _, explained, mean, variance = self._solve()
        if self._next < self._samples.shape[1]:  # before the window is emptied, unused samples learn from it
            self._samples, self._next = self._condition(self._samples[:, self._next :], self._rng), 0
        # the matrix is in Fortran order, so dsyrk overwrites it without a copy
        self._base_covariance = dsyrk(-1.0, explained.T, beta=1.0, c=self._base_covariance, overwrite_c=1, lower=1)
        self._base_mean, self._base_variance = mean, variance
        self._arms, self._rows = self._arms[:0], self._rows[:0]
        self._counts[:], self._sums[:] = 0, 0
        self._solution, self._is_prior = None, False

    def _posterior(self) -> tuple[FloatArray, FloatArray]:
        return self._solve()[2:]


def symmetric_row(lower: FloatArray, k: int) -> FloatArray:
    """Return row k of a symmetric matrix, reading only its lower triangle."""
    return np.concatenate([lower[k, :k], lower[k:, k]])
