"""Bayesian inference with independent arms, the baseline of Åkerblom, Chen and Haghir Chehreghani (2023).

Every arm has a Gaussian prior of its own and known noise; what one arm gives says nothing about another.
"""

import numpy as np

from ._data import checked, collapsed


class IndependentArms:
    """Posterior of arms that are taken to be independent: conjugate updates.

    Parameters
    ----------
    prior : Prior
        Of its covariance only the diagonal counts.
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
        """Return a sample of the posterior; as arms are independent, each by itself."""
        mean, variance = self.predict(arms)
        return mean + np.sqrt(variance) * rng.standard_normal(len(mean))

    def update(self, arms, values):
        """Learn what each of some arms gave; arms may repeat."""
        arms, values = checked(arms, values, self.n_arms)
        unique, counts, sums = collapsed(arms, values)
        before = self._precision[unique]
        after = before + counts / self.prior.noise_variance
        self._mean[unique] = (before * self._mean[unique] + sums / self.prior.noise_variance) / after
        self._precision[unique] = after
