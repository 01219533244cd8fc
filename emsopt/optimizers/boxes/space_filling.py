r"""Designs that fill the unit cube point by point: by kernel density as BOKE explores, and by a Gaussian process.

Section 3.2 of "Bayesian Optimization by Kernel Regression and Density-based Exploration", (3.10) and (3.11).

``density_design``  the next point is where the density W of those before is smallest
``process_design``  ... where the standard deviation of a Gaussian process is largest (Wenzel, Santin and Haasdonk 2021)
``fill_distance``   how far a point of the cube can be from the design
"""

import numpy as np

from ... import _validate
from ...surrogates.kernel_regression import condition
from ._search import highest
from .boke import SCALE, bandwidth, emptiness


def density_design(n, d, *, scale=SCALE, rng=None):
    """Return n points, each where the density of the earlier ones is smallest (3.10); the first is random.

    Parameters
    ----------
    n, d : int
    scale : float
        Factor of the bandwidth, as in BOKE.
    rng : int or Generator, optional

    Returns
    -------
    ndarray, shape (n, d)

    Examples
    --------
    >>> density_design(3, 1, rng=0).round(2).ravel().tolist()  # a random one, and as far from it as can be
    [0.64, 0.0, 1.0]
    """

    def emptiest(X):
        model = condition(X, np.zeros(len(X)), bandwidth(len(X), d, scale))
        return lambda x: emptiness(model, x)

    return _grown(n, d, emptiest, rng)


def process_design(n, d, *, lengthscale=0.8, rng=None):
    """Return n points, each where a Gaussian process knows least; the first is random.

    Parameters
    ----------
    n, d : int
    lengthscale : float
        Of the squared-exponential kernel, in units of √(d/12), as in `GPUCBFixed`.
    rng : int or Generator, optional

    Returns
    -------
    ndarray, shape (n, d)
    """
    from ...surrogates import gaussian_process
    from ...surrogates.squared_exponential import SquaredExponential

    kernel = SquaredExponential(lengthscale * np.sqrt(d / 12), "fixed")

    def least_known(X):
        process = gaussian_process.condition(kernel, X, np.zeros(len(X)), noise_ratio=1e-8, amplitude=1.0)

        def variance(x):
            _, variance, _, slope = process.predict_with_slopes(x)
            variance = np.maximum(variance, 1e-12)
            return np.log(variance), slope / variance[:, None]

        return variance

    return _grown(n, d, least_known, rng)


def fill_distance(points, *, probes=10_000):
    """Return the largest distance from a point of the unit cube to the nearest of the design (3.11), from below.

    Parameters
    ----------
    points : array_like, shape (n, d)
    probes : int
        Points tried, always the same ones; the corners are tried as well.

    Examples
    --------
    >>> round(fill_distance([[0.5, 0.5]]), 4)
    0.7071
    """
    from scipy.spatial import KDTree

    points = _validate.real_array(points, "points", (None, None))
    d = points.shape[1]
    corners = np.array(np.meshgrid(*[[0.0, 1.0]] * d)).reshape(d, -1).T
    tried = np.vstack([corners, np.random.default_rng(0).random((probes, d))])
    return float(KDTree(points).query(tried)[0].max())


def _grown(n, d, function_of, rng):
    """Return a random point and after it the best of a function that the points before define."""
    n, d = _validate.whole_number(n, "n"), _validate.whole_number(d, "d")
    rng = _validate.generator(rng)
    X = rng.random((1, d))
    while len(X) < n:
        X = np.vstack([X, highest(function_of(X), d, rng)])
    return X
