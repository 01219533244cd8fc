r"""Gaussian processes on boxes: GP-UCB, the competitor of BOKE, and expected improvement.

**GP-UCB,** with a fixed kernel as in the paper and with a fitted kernel: algorithm 4, (A.1) to (A.3) of "Bayesian
Optimization by Kernel Regression and Density-based Exploration".

.. math:: x_{t+1} = \arg\max_x \; μ_t(x) + \sqrt{β} \, σ_t(x)

======  =================  =====================================================================================
symbol  name               meaning
======  =================  =====================================================================================
μ, σ²   `GaussianProcess`  posterior mean and variance of a squared-exponential kernel, points on the unit cube
√β      ``confidence``     weight of exploration, constant as in the paper
ℓ       ``bandwidth``      lengthscale; ``bandwidth`` · √(d/12) in `GPUCBFixed`, fitted for each input in `GPUCB`
ν       -                  noise variance divided by the variance of the process
======  =================  =====================================================================================

Preparing a step costs O(t³), several times over if the kernel is fitted, and an evaluation of the acquisition O(t²).

**GP-EI** is not from the papers. Jones, Schonlau and Welch (1998), Efficient global optimization of expensive black-box
functions, maximise the expected improvement over the best value g; the kernel is that recommended by Snoek, Larochelle
and Adams (2012), and the acquisition is handled as a logarithm (Ament et al. 2023), since it underflows far from g.

.. math:: \log \mathrm{EI}(x) = \log σ(x) + \log\big(φ(z) + z \, Φ(z)\big), \qquad z = \frac{μ(x) - g}{σ(x)}

======  =================  ===================================================================================
symbol  name               meaning
======  =================  ===================================================================================
μ, σ    `GaussianProcess`  posterior mean and standard deviation, Matérn kernel with ν = 5/2 or `AdditiveKernel`
g       -                  best observed value; with noise, best posterior mean at an observed point
φ, Φ    -                  density and distribution function of the standard normal distribution
======  =================  ===================================================================================

Before every step the likelihood is maximised over one lengthscale per input and the amplitude, from the last fit, from
broad lengthscales and from ``RESTARTS`` random ones, which costs O(t³) some hundred times. With noise, this overfits a
few dozen values: the lengthscales then have the prior of `GPUCB`, the noise is fitted too, and the likelihood chooses
between a Matérn kernel and a sum of kernels of one input each (`AdditiveKernel`), which few points determine better.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from ...errors._types import FloatArray
from ...surrogates.gaussian_process import NOISE_RATIO_BOUNDS, GaussianProcess, condition, fit
from ..recommendation import log_expected_improvement, standardize_values
from ._base import BoxOptimizer

NOISY_RATIO, NOISE_FREE_RATIO = 1e-2, 1e-6  # above 0, or K + ν I would be singular where points almost repeat
SEARCH_OPTIONS: dict[str, Any] = {"pool": 400, "spreads": (0.1, 0.01)}  # of `rank_on_cube`, larger than the default
SPREAD = 1.0  # prior standard deviation of the log lengthscales around their common mean, against overfitting


class GPUCBFixed(BoxOptimizer):
    """GP-UCB with a fixed kernel, Algorithm 4 of the BOKE paper. Options are those of `BoxOptimizer`."""

    confidence = 2.0  # √β of (A.3), constant as in the paper
    bandwidth = 0.8

    def process(self) -> GaussianProcess:
        """Return the Gaussian process of the observations, with standardised gains as values."""
        from ...surrogates.kernels import SquaredExponential

        # √(d / 12) is the standard deviation of uniform points in the cube, over all inputs
        kernel = SquaredExponential(self.bandwidth * np.sqrt(self.space.dimension / 12), "fixed")
        ratio = NOISY_RATIO if self.objective.noisy else NOISE_FREE_RATIO
        return condition(kernel, self.points, standardize_values(self.gains), noise_ratio=ratio, amplitude=1.0)

    def _yield_points(self) -> Iterator[FloatArray]:
        bound = partial(upper_bound, condition_on_pending(self.process(), self.pending_points), self.confidence)
        yield from self._rank(bound, **SEARCH_OPTIONS)


class GPUCB(GPUCBFixed):
    """GP-UCB that fits lengthscales, amplitude and, if values are noisy, the noise variance before every step.

    The fit maximises the marginal likelihood times a prior under which the logarithms of the lengthscales have a
    standard deviation of ``SPREAD`` around their common mean. Options are those of `BoxOptimizer`.
    """

    _last_fit: GaussianProcess | None = None

    def process(self) -> GaussianProcess:
        """Return the Gaussian process of the observations, with standardised gains as values, by `refit`."""
        gains = standardize_values(self.gains)
        self._last_fit = refit(self.points, gains, noisy=self.objective.noisy, spread=SPREAD, last=self._last_fit)
        return self._last_fit


def refit(X: FloatArray, y: FloatArray, *, noisy: bool, spread: float, last: GaussianProcess | None) -> GaussianProcess:
    """Fit a process to values y, (t,), at X, (t, d), from broad lengthscales and from those of ``last``."""
    from ...surrogates.kernels import SquaredExponential

    kernels = [SquaredExponential(np.full(X.shape[1], 0.5))] + ([last.kernel] if last else [])
    ratio, bounds = (NOISY_RATIO, NOISE_RATIO_BOUNDS) if noisy else (NOISE_FREE_RATIO, (NOISE_FREE_RATIO,) * 2)
    fits = [fit(kernel, X, y, noise_ratio=ratio, noise_ratio_bounds=bounds, spread=spread) for kernel in kernels]
    return max(fits, key=lambda process: process.log_likelihood)


def condition_on_pending(process: GaussianProcess, pending: FloatArray) -> GaussianProcess:
    """Return the process conditioned on its own predictions at points without a value yet, (n, d)."""
    for x in pending:
        # a pending point then has hardly any variance left, which drives the next one away
        process = process.with_observation(x, process.predict(x[None])[0][0])
    return process


def upper_bound(process: GaussianProcess, confidence: float, x: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return μ + √β σ, (A.3) of the BOKE paper, (n,), and its slopes at points x, (n, d); ``confidence`` is √β."""
    mean, variance, mean_slope, variance_slope = process.predict_with_slopes(x)
    deviation = np.sqrt(np.maximum(variance, 1e-12 * process.amplitude))  # the slope divides by the deviation
    return mean + confidence * deviation, mean_slope + confidence * variance_slope / (2 * deviation[:, None])


RESTARTS = 2
INTERPOLATION_NOISE_RATIO = 1e-8  # noise ratio of `GPEI` without noise: the model resolves more digits near the optimum


class GPEI(BoxOptimizer):
    """Expected improvement by a Gaussian process fitted before every step. Options are those of `BoxOptimizer`."""

    _last_fit: GaussianProcess | None = None

    def process(self) -> GaussianProcess:
        """Return the likeliest fitted Gaussian process of the observations, with standardised gains as values."""
        from ...surrogates.kernels import AdditiveKernel, Matern52

        X, y, broad = self.points, standardize_values(self.gains), np.full(self.space.coordinates, 0.5)
        kernels: list[Any] = [Matern52(broad)]
        if self.objective.noisy:
            kernels.append(AdditiveKernel(broad))
            options: dict[str, Any] = {"noise_ratio": NOISY_RATIO, "spread": SPREAD}
        else:
            low, high = np.log((0.1, 2.0))  # range of random lengthscales, in widths of the box
            kernels += map(Matern52, np.exp(self.rng.uniform(low, high, (RESTARTS, len(broad)))))
            options = {"noise_ratio": INTERPOLATION_NOISE_RATIO, "noise_ratio_bounds": (INTERPOLATION_NOISE_RATIO,) * 2}
        kernels += [self._last_fit.kernel] if self._last_fit else []
        fits = [fit(kernel, X, y, **options) for kernel in kernels]
        self._last_fit = max(fits, key=lambda process: process.log_likelihood)
        return self._last_fit

    def _yield_points(self) -> Iterator[FloatArray]:
        process = self.process()
        goal = process.predict(process.X)[0].max() if self.objective.noisy else standardize_values(self.gains).max()
        improvement = partial(log_ei_with_slopes, condition_on_pending(process, self.pending_points), float(goal))
        yield from self._rank(improvement, **SEARCH_OPTIONS)


def log_ei_with_slopes(process: GaussianProcess, goal: float, x: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the log of the expected improvement over ``goal``, (n,), and its slopes, (n, d), at points x, (n, d)."""
    from scipy.special import log_ndtr

    mean, variance, mean_slope, variance_slope = process.predict_with_slopes(x)
    deviation = np.sqrt(np.maximum(variance, 1e-12 * process.amplitude))
    z = (mean - goal) / deviation
    log_h = log_expected_improvement(z, np.zeros(len(z)), np.ones(len(z)))  # of φ + z Φ
    # slopes of log(σ h(z)): Φ(z) by the mean, φ(z) by the deviation, both over σ h
    by_mean = np.exp(log_ndtr(z) - log_h) / deviation
    by_deviation = np.exp(-0.5 * z**2 - 0.5 * np.log(2 * np.pi) - log_h) / deviation
    deviation_slope = variance_slope / (2 * deviation[:, None])
    return np.log(deviation) + log_h, by_mean[:, None] * mean_slope + by_deviation[:, None] * deviation_slope
