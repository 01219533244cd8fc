"""Bayesian inference with independent arms, the baseline of Åkerblom, Chen and Haghir Chehreghani (2023).

Each arm has its own Gaussian prior and known noise. Observing one arm gives no information about another.
"""

import numpy as np

from ._data import checked, collapsed


class IndependentArms:
    """Posterior of arms assumed to be independent, by conjugate updates.

    Parameters
    ----------
    prior : Prior
        Only the diagonal of its covariance is used.
    """

    def __init__(self, prior):
        self.prior = prior
        self._precision = 1 / np.maximum(np.diag(prior.covariance), 1e-300)
        self._mean = prior.mean.copy()

    @property
    def n_arms(self):
        """Number of base arms."""
        return self.prior.n_arms

    def predict(self, arms=slice(None)):
        """Return posterior mean and variance of the arms' expected values, each of shape (k,)."""
        return self._mean[arms].copy(), 1 / self._precision[arms]

    def sample(self, arms, rng):
        """Return a posterior sample, drawn independently for each arm."""
        mean, variance = self.predict(arms)
        return mean + np.sqrt(variance) * rng.standard_normal(len(mean))

    def update(self, arms, values):
        """Condition on one value per arm; arms may repeat."""
        arms, values = checked(arms, values, self.n_arms)
        unique, counts, sums = collapsed(arms, values)
        before = self._precision[unique]
        after = before + counts / self.prior.noise_variance
        self._mean[unique] = (before * self._mean[unique] + sums / self.prior.noise_variance) / after
        self._precision[unique] = after
