r"""Gaussian process with a Matérn kernel and expected improvement: the standard method, as a yardstick for the others.

It is not from the papers. Jones, Schonlau and Welch (1998), Efficient global optimization of expensive black-box
functions, maximise the expected improvement over the best value g; the kernel is that recommended by Snoek, Larochelle
and Adams (2012), and the acquisition is handled as a logarithm (Ament et al. 2023), since it underflows far from g.

.. math:: \log \mathrm{EI}(x) = \log σ(x) + \log\big(φ(z) + z \, Φ(z)\big), \qquad z = \frac{μ(x) - g}{σ(x)}

======  =================  ===================================================================================
symbol  name               meaning
======  =================  ===================================================================================
μ, σ    `GaussianProcess`  posterior mean and standard deviation, Matérn kernel with ν = 5/2 or `Additive`
g       -                  best observed value; with noise, best posterior mean at an observed point
φ, Φ    -                  density and distribution function of the standard normal distribution
======  =================  ===================================================================================

Before every step the likelihood is maximised over one lengthscale per input and the amplitude, from the last fit, from
broad lengthscales and from ``RESTARTS`` random ones. Preparing a step therefore costs O(t³) some hundred times, and an
evaluation of the acquisition function O(t²).

With noise, the likelihood alone overfits: for a few dozen values it is largest with lengthscales at their bounds and
hardly any noise, and the next points are close to random. The lengthscales then have the prior of `GPUCB`, the noise is
fitted too, and before every step the likelihood chooses between a Matérn kernel and a sum of kernels of one input each
(`Additive`), which few points determine better. Without noise, runs are those of the plain method.
"""

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._types import FloatArray
from ...surrogates.gaussian_process import GaussianProcess, fit
from .._values import standardized
from ..expected_improvement import log_expected_improvement
from .base import BoxOptimizer
from .gp_ucb import NOISY, POOL, SPREAD, with_expected

if TYPE_CHECKING:
    from sklearn.gaussian_process.kernels import Kernel

RESTARTS = 2
NOISE_FREE = 1e-8  # smaller than in `GPUCB`, so that the model resolves more digits near the optimum
RANDOM = (0.1, 2.0)  # range of random lengthscales, in widths of the box


class GPEI(BoxOptimizer):
    """Gaussian process, fitted before every step, and expected improvement; with noise it may be `Additive`.

    Parameters
    ----------
    f, sense, bounds, integers, noisy, constraints, initial, rng
        As in `BoxOptimizer`.
    """

    _last: GaussianProcess | None = None

    def process(self) -> GaussianProcess:
        """Return the Gaussian process of largest likelihood, for standardised values."""
        from ...surrogates.box_kernels import Additive, Matern52

        X, y, broad = self.points, standardized(self.gains), np.full(self.space.coordinates, 0.5)
        kernels: list[Kernel] = [Matern52(broad)]
        if self.objective.noisy:
            kernels.append(Additive(broad))
            options: dict[str, Any] = {"noise_ratio": NOISY, "spread": SPREAD}
        else:
            low, high = np.log(RANDOM)
            kernels += map(Matern52, np.exp(self.rng.uniform(low, high, (RESTARTS, len(broad)))))
            options = {"noise_ratio": NOISE_FREE, "noise_ratio_bounds": (NOISE_FREE, NOISE_FREE)}
        kernels += [self._last.kernel] if self._last else []
        fits = [fit(kernel, X, y, **options) for kernel in kernels]
        self._last = max(fits, key=lambda process: process.log_likelihood)
        return self._last

    def _choose(self) -> Iterator[FloatArray]:
        process = self.process()
        goal = process.predict(process.X)[0].max() if self.objective.noisy else standardized(self.gains).max()
        improvement = partial(log_improvement, with_expected(process, self.pending), float(goal))
        yield from self._ranked(improvement, **POOL)


def log_improvement(process: GaussianProcess, goal: float, x: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the logarithm of the expected improvement over ``goal``, shape (n,), and its slopes at x, (n, d)."""
    from scipy.special import log_ndtr

    mean, variance, mean_slope, variance_slope = process.predict_with_slopes(x)
    deviation = np.sqrt(np.maximum(variance, 1e-12 * process.amplitude))
    z = (mean - goal) / deviation
    log_h = log_expected_improvement(z, np.zeros(len(z)), np.ones(len(z)))  # of φ + z Φ
    by_mean = np.exp(log_ndtr(z) - log_h) / deviation
    by_deviation = np.exp(-0.5 * z**2 - 0.5 * np.log(2 * np.pi) - log_h) / deviation
    deviation_slope = variance_slope / (2 * deviation[:, None])
    return np.log(deviation) + log_h, by_mean[:, None] * mean_slope + by_deviation[:, None] * deviation_slope
