"""The model of a control problem with known hyperparameters: for studies and tests of problems drawn from a process."""

from dataclasses import dataclass

import numpy as np

from emsopt.optimizers.control.model import ControlModel
from emsopt.surrogates.gaussian_process import condition
from emsopt.surrogates.kernels import SquaredExponential


@dataclass(frozen=True)
class Hyperparameters:
    """Lengthscales of the variables on the unit cube, prior variance, noise variance (above 0) and prior mean."""

    lengthscales: np.ndarray
    amplitude: float = 1.0
    noise_variance: float = 1e-4
    mean: float = 0.0


class KnownModel(ControlModel):
    """A model that is told its hyperparameters; it may replace that of a learner before the first play."""

    initial = 1

    def __init__(self, problem, rng, known):
        super().__init__(problem, rng)
        self.known = known

    def _fit(self):
        known, X, y = self.known, np.array(self.points), np.array(self.values)
        kernel, ratio = SquaredExponential(known.lengthscales, "fixed"), known.noise_variance / known.amplitude
        self.prior = known.mean
        self.process = condition(kernel, X, y, self.prior, noise_ratio=ratio, amplitude=known.amplitude)
        self._fitted_with = np.inf  # there is nothing to estimate later
