"""A space-filling design on the unit cube, built point by point with a Gaussian process, beside `density_design`."""

import numpy as np

from emsopt.optimizers.boxes._search import maximize_on_cube
from emsopt.surrogates import gaussian_process
from emsopt.surrogates.kernels import SquaredExponential

LENGTHSCALE = 0.8  # in units of √(d/12), as in `GPUCBFixed`


def process_design(n, d, *, rng=None):
    """Return n points: the first at random, each further one where the variance of a Gaussian process is largest.

    Parameters and return value are as in `emsopt.optimizers.boxes.boke.density_design`.
    """
    kernel = SquaredExponential(LENGTHSCALE * np.sqrt(d / 12), "fixed")

    def least_known(X):
        process = gaussian_process.condition(kernel, X, np.zeros(len(X)), noise_ratio=1e-8, amplitude=1.0)

        def log_variance(x):
            _, variance, _, slope = process.predict_with_slopes(x)
            variance = np.maximum(variance, 1e-12)
            return np.log(variance), slope / variance[:, None]

        return log_variance

    rng = np.random.default_rng(rng)
    X = rng.random((1, d))
    while len(X) < n:
        X = np.vstack([X, maximize_on_cube(least_known(X), d, rng)])
    return X
