r"""Sparse variational Gaussian process over arms: Algorithm 3 of the paper named below.

In each round the M most observed arms become the inducing points, and one step of natural gradient descent on
a random batch of the history updates their distribution q(u) = N(m, S) ("Bayesian Analysis of Combinatorial
Gaussian Process Bandits", section 4.1 and appendix B.3). With u = L v and K_ZZ = L Lᵀ, a step of size ρ on a
batch of B out of N observations is

.. math:: Λ ← (1-ρ) Λ + ρ \frac{N}{B ς^2} A A^\top, \quad
          λ ← (1-ρ) λ + ρ \frac{N}{B ς^2} A (y - μ), \quad A = L^{-1} K_{ZX}

in the natural parameters of v: precision I + Λ, and precision times mean, λ. Z are the inducing points, X the arms of
the batch, y their observed values and μ their prior means; ς² is the noise variance.

The paper does not specify how the inducing points change. Here, a new inducing point is added with its prior
distribution conditional on the others, and a removed one is integrated out. Kernel and noise are those of the prior.

**Inducing contexts.** In the paper the contexts of the inducing points move as well, by steps of Adam with rate 0.01,
and return to those of the edges in the next round, as the points are chosen again. ``context_rate`` does this, with
q(v) fixed while they move. By default they do not move: where every observed arm is an inducing point, the gradient of
the evidence lower bound is close to zero.

With M at least the number of observed arms and enough steps the result equals `ExactGP`. With one step of size 0.1 per
round it lags behind the data. It serves for comparison with the paper: it is neither exact nor, at this scale, faster.
"""

import numpy as np
from scipy.linalg import cho_factor, cho_solve, cholesky, solve_triangular

from ..errors import InputError, _validate
from ..errors._types import BoolArray, FloatArray, IntArray, Rng
from ..surrogates.graph_matern import ContextKernel
from .prior import JITTER, Prior
from .regression import Regression, sum_by_arm


class SparseGP(Regression):
    """Gaussian process over arms, approximated by the values at inducing points (sparse variational inference).

    Parameters
    ----------
    prior : Prior
    batch : int
        B, number of observations per step; all of them if there are fewer.
    rate : float
        ρ, step size, above 0 and at most 1.
    steps : int
        G, number of steps per round.
    context_rate : float
        Rate of Adam for the contexts of the inducing points; 0.01 in the paper. They stay at the edges' contexts if it
        is 0. Needs a prior with a ``kernel``, such as that of `navigation_prior`, and computes its graph kernel anew.
    rng : int or Generator, optional
        Source of randomness for the batches.

    Examples
    --------
    >>> gp = SparseGP(Prior([0.0, 0.0], [[3.0, 0.0], [0.0, 1.0]], noise_variance=1.0), rng=0)
    >>> gp.update([0], [4.0])
    >>> gp.predict()[0].shape
    (2,)
    """

    def __init__(
        self,
        prior: Prior,
        *,
        batch: int = 2500,
        rate: float = 0.1,
        steps: int = 1,
        context_rate: float = 0.0,
        rng: Rng = None,
    ) -> None:
        super().__init__(prior)
        self.inducing = 1000  # M, maximum number of inducing points: that of the paper
        self.batch = _validate.whole_number(batch, "batch")
        self.rate = _validate.positive_number(rate, "rate")
        self.steps = _validate.whole_number(steps, "steps")
        if self.rate > 1:
            raise InputError(f"`rate`, the step size, must be above 0 and at most 1; got {rate:g}.")
        self.context_rate = _validate.positive_number(context_rate, "context_rate", zero=True)
        if self.context_rate and prior.kernel is None:
            raise InputError("`context_rate` above 0 needs a prior with a `kernel`. Use `navigation_prior`, or 0.")
        self.rng = _validate.generator(rng)
        self._observed_arms, self._values = np.empty(0, dtype=np.intp), np.empty(0)  # arms and values observed
        self._visits = np.zeros(prior.n_arms)
        self._points = np.empty(0, dtype=np.intp)  # Z; `_factor` follows this order, so that new points only add rows
        self._contexts: FloatArray | None = None  # of Z, if they have moved
        self._factor = np.empty((0, 0))
        self._across: FloatArray = np.empty((0, prior.n_arms))
        self._explained = np.zeros(prior.n_arms)  # prior variance that the inducing points explain
        self._precision, self._shift = np.empty((0, 0)), np.empty(0)  # Λ and λ of v: zeros are the prior
        self._solution: tuple[FloatArray, FloatArray] | None = prior.mean, prior.variance
        self._jitter = JITTER * prior.variance.mean()

    def _posterior(self) -> tuple[FloatArray, FloatArray]:
        if self._solution is None:
            factor = cholesky(np.eye(len(self._points)) + self._precision, lower=True, check_finite=False)
            inner = solve_triangular(factor, self._across, lower=True, check_finite=False)
            mean = self.prior.mean + solve_triangular(factor, self._shift, lower=True) @ inner
            # prior variance, less what Z explains, plus what is still uncertain about Z
            variance = self.prior.variance - self._explained + np.einsum("ij,ij->j", inner, inner)
            self._solution = mean, np.maximum(variance, 0.0)
        return self._solution

    def _learn(self, arms: IntArray, values: FloatArray) -> None:
        self._observed_arms = np.concatenate([self._observed_arms, arms])
        self._values = np.concatenate([self._values, values])
        self._visits += np.bincount(arms, minlength=self.n_arms)
        if self._contexts is not None:
            self._move_points()
        self._choose_points(arms)
        self.step(self.steps)

    def elbo(self) -> float:
        """Return the evidence lower bound of all observations, nats (line 5 of Algorithm 3, all in one batch).

        Its upper bound is the log likelihood of the observations under the prior.
        """
        if not len(self._observed_arms):
            return 0.0
        noise, (mean, variance) = self.prior.noise_variance, self._posterior()
        # expected squared errors under q include the variance
        missed = np.square(self._values - mean[self._observed_arms]) + variance[self._observed_arms]
        factor = cholesky(np.eye(len(self._points)) + self._precision, lower=True)
        half = solve_triangular(factor, np.eye(len(factor)), lower=True)
        centre = half.T @ (half @ self._shift)
        # divergence of q(v) = N(centre, halfᵀ half) from the prior N(0, I), times 2
        divergence = np.square(half).sum() + centre @ centre - len(centre) + 2 * np.log(np.diag(factor)).sum()
        return float(-0.5 * (missed.sum() / noise + len(missed) * np.log(2 * np.pi * noise) + divergence))

    def step(self, count: int = 1) -> None:
        """Make ``count`` steps of natural gradient descent, each on a new batch of the observations so far."""
        arms, values, total = self._observed_arms, self._values, len(self._observed_arms)
        kernel = self.prior.kernel if self.context_rate else None
        first = second = np.zeros(1)  # Adam starts anew in each round
        for number in range(1, count + 1):
            size = min(self.batch, total)
            part = slice(None) if size == total else self.rng.choice(total, size, replace=False)
            unique, counts, sums = sum_by_arm(arms[part], values[part])
            across = self._across[:, unique]
            # the factor N / B makes the batch stand for all observations
            weight = self.rate * total / (size * self.prior.noise_variance)
            gradient = None if kernel is None else self._context_gradient(kernel, unique, counts, sums)
            self._precision *= 1 - self.rate
            self._precision += weight * (across * counts) @ across.T
            self._shift *= 1 - self.rate
            self._shift += weight * across @ (sums - counts * self.prior.mean[unique])
            if kernel is not None and gradient is not None:
                first, second = 0.9 * first + 0.1 * gradient, 0.999 * second + 0.001 * gradient**2
                root = np.sqrt(second / (1 - 0.999**number))  # Adam's moments start at 0, and this removes that bias
                move = self.context_rate * first / (1 - 0.9**number) / (root + 1e-8)
                self._move_points(self._current_contexts(kernel) + move)
        self._solution = None

    def _current_contexts(self, kernel: ContextKernel) -> FloatArray:
        """Return the current contexts of the inducing points, shape (M, d)."""
        return kernel.contexts[self._points] if self._contexts is None else self._contexts

    def _move_points(self, contexts: FloatArray | None = None) -> None:
        """Move the inducing points to contexts, (M, d), by default those of their edges, with q(v) unchanged."""
        Z, kernel, self._contexts = self._points, self.prior.kernel, contexts
        if contexts is None or kernel is None:
            across = self.prior.rows(Z)
            within = across[:, Z]
        else:
            within = kernel.cross_covariance(Z, contexts, Z, contexts)
            across = kernel.cross_covariance(Z, contexts, np.arange(self.n_arms), kernel.contexts)
        self._factor = self._cholesky(within)
        self._across = solve_triangular(self._factor, across, lower=True)
        self._explained = np.einsum("ij,ij->j", self._across, self._across)
        self._solution = None

    def _context_gradient(
        self, kernel: ContextKernel, arms: IntArray, counts: IntArray, sums: FloatArray
    ) -> FloatArray:
        """Return the gradient of the evidence lower bound by the contexts, (M, d), for a batch as of `sum_by_arm`."""
        at = self._current_contexts(kernel)
        across = self._across[:, arms]
        precision = cho_factor(np.eye(len(at)) + self._precision, lower=True)
        mean = cho_solve(precision, self._shift)
        # slopes of the expected log likelihood by A, pulled back to K_ZX by L⁻ᵀ
        left = sums - counts * (self.prior.mean[arms] + mean @ across)
        spread = (cho_solve(precision, across) - across) * counts
        slopes = (np.outer(mean, left) - spread) / self.prior.noise_variance
        slopes = solve_triangular(self._factor, slopes, lower=True, trans=1)
        # reverse mode of the Cholesky factorisation: the slope by L becomes one by K_ZZ
        inner = np.tril(self._factor.T @ np.tril(-slopes @ across.T))
        inner[np.diag_indices(len(at))] /= 2
        half = solve_triangular(self._factor, inner, lower=True, trans=1)
        within = solve_triangular(self._factor, half.T, lower=True, trans=1)
        gradient = kernel.context_gradient(slopes, self._points, at, arms, kernel.contexts[arms])
        return gradient + kernel.context_gradient(within + within.T, self._points, at, self._points, at)

    def _choose_points(self, arms: IntArray) -> None:
        """Make the most observed arms the inducing points. In a tie, existing inducing points take precedence."""
        candidates = np.concatenate([self._points, np.setdiff1d(arms, self._points)])
        most_observed = np.argsort(-self._visits[candidates], kind="stable")[: self.inducing]
        candidates = candidates[np.sort(most_observed)]  # existing points keep the order to which Λ and λ refer
        stays = np.isin(self._points, candidates)
        if not stays.all():
            self._integrate_out(stays)
        self._add_inducing_points(candidates[~np.isin(candidates, self._points)])

    def _integrate_out(self, kept: BoolArray) -> None:
        """Remove inducing points by integrating them out of q(u); ``kept`` marks those to keep."""
        # moments of u = L v at the points that stay, expressed by their new factor below
        rows = self._factor[kept]
        precision = cho_factor(np.eye(len(self._points)) + self._precision, lower=True)
        mean, covariance = rows @ cho_solve(precision, self._shift), rows @ cho_solve(precision, rows.T)
        self._points = self._points[kept]
        self._move_points()
        half = solve_triangular(self._factor, cholesky(covariance, lower=True), lower=True)
        inverse = solve_triangular(half, np.eye(len(half)), lower=True)
        precision_v = inverse.T @ inverse
        self._precision = precision_v - np.eye(len(half))
        self._shift = precision_v @ solve_triangular(self._factor, mean, lower=True)

    def _add_inducing_points(self, fresh: IntArray) -> None:
        """Add inducing points with their prior distribution conditional on the others."""
        left = self._across[:, fresh].T
        rows = self.prior.rows(fresh)
        below = self._cholesky(rows[:, fresh] - left @ left.T)
        rows -= left @ self._across
        rows = solve_triangular(below, rows, lower=True, check_finite=False)
        self._factor = np.block([[self._factor, np.zeros(left.T.shape)], [left, below]])
        self._across = np.vstack([self._across, rows])
        self._explained += np.einsum("ij,ij->j", rows, rows)
        self._points = np.concatenate([self._points, fresh])
        self._precision = np.pad(self._precision, (0, len(fresh)))  # zeros: given the others, a new point has its prior
        self._shift = np.pad(self._shift, (0, len(fresh)))

    def _cholesky(self, covariance: FloatArray) -> FloatArray:
        """Return the lower Cholesky factor of a covariance, after adding the jitter to its diagonal in place."""
        covariance[np.diag_indices(len(covariance))] += self._jitter
        return cholesky(covariance, lower=True, check_finite=False)
