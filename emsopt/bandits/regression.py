"""Base class of the regressions of bandits, and `IndependentArms` (Åkerblom, Chen and Haghir Chehreghani 2023)."""

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError, _validate
from ..errors._types import ArrayLike, FloatArray, IntArray
from .prior import Prior


class Regression:
    """Base class of models that learn the expected values of ``n_arms`` base arms from observations and a `Prior`."""

    def __init__(self, prior: Prior) -> None:
        self.prior, self.n_arms = prior, prior.n_arms

    def predict(self, arms: IntArray | slice = slice(None)) -> tuple[FloatArray, FloatArray]:
        """Return posterior mean and variance of the expected values of k arms, by default all, each of shape (k,)."""
        mean, variance = self._posterior()
        return mean[arms].copy(), variance[arms].copy()

    def update(self, arms: ArrayLike, values: ArrayLike) -> None:
        """Update the posterior with observations: arms, (k,), which may repeat, and the value of each, (k,)."""
        values, arms = _validate.real_array(values, "values", (None,)), np.asarray(arms)
        fits = arms.dtype.kind in "iu" and arms.shape == values.shape
        if not fits or arms.min() < 0 or arms.max() >= self.n_arms:  # a negative index would count from the end
            wanted = f"{len(values)} integers from 0 to {self.n_arms - 1}, one per value"
            raise InputError(f"`arms` must be {wanted}; got {_validate.quote(arms.tolist())}.")
        self._learn(arms.astype(np.intp), values)

    def _posterior(self) -> tuple[FloatArray, FloatArray]:
        """Return posterior mean and variance of every arm, each of shape (n_arms,)."""
        raise NotImplementedError

    def _learn(self, arms: IntArray, values: FloatArray) -> None:
        """Update the posterior as `update` does, with checked arguments."""
        raise NotImplementedError


def sum_by_arm(arms: IntArray, values: FloatArray) -> tuple[IntArray, NDArray[np.intp], FloatArray]:
    """Return the distinct arms, their numbers of observations, and the sums of their values, (k,) each."""
    unique, place, counts = np.unique(arms, return_inverse=True, return_counts=True)
    return unique, counts, np.bincount(place, weights=values).astype(float)


class IndependentArms(Regression):
    """Independent Gaussian posterior of each arm; of the prior's covariance only the variances are used."""

    def __init__(self, prior: Prior) -> None:
        super().__init__(prior)
        self._precision = 1 / np.maximum(prior.variance, 1e-300)  # a known arm keeps a finite precision
        self._mean = prior.mean.copy()

    def sample(self, arms: IntArray, rng: np.random.Generator) -> FloatArray:
        """Return a posterior sample of the given arms, shape (k,), drawn independently for each."""
        mean, variance = self.predict(arms)
        return mean + np.sqrt(variance) * rng.standard_normal(len(mean))

    def _posterior(self) -> tuple[FloatArray, FloatArray]:
        return self._mean, 1 / self._precision

    def _learn(self, arms: IntArray, values: FloatArray) -> None:
        unique, counts, sums = sum_by_arm(arms, values)
        before = self._precision[unique]
        after = before + counts / self.prior.noise_variance
        self._mean[unique] = (before * self._mean[unique] + sums / self.prior.noise_variance) / after
        self._precision[unique] = after
