r"""Space-filling designs on the unit cube, built point by point with a kernel density or a Gaussian process.

Section 3.2 of "Bayesian Optimization by Kernel Regression and Density-based Exploration", (3.10) and (3.11).

``density_design``  the next point minimises the kernel density W of the earlier points, as in BOKE's exploration
``process_design``  the next point maximises the posterior variance of a Gaussian process (Wenzel et al. 2021)
``fill_distance``   largest distance from a point of the cube to the nearest point of the design
"""

from collections.abc import Callable
from functools import partial

import numpy as np

from ... import _validate
from ..._types import ArrayLike, FloatArray, Rng
from ...surrogates import gaussian_process, kernel_regression
from ._search import Slopes, corners_of_cube, highest
from .boke import bandwidth, emptiness

LENGTHSCALE = 0.8  # in units of √(d/12), as in `GPUCBFixed`
PROBES = 10_000


def density_design(n: int, d: int, *, rng: Rng = None) -> FloatArray:
    """Return n points: the first at random, each further one where the density of the earlier points is least.

    The density is a sum of Gaussian kernels with `bandwidth`, and the rule is (3.10) of the BOKE paper.

    Parameters
    ----------
    n, d : int
        Numbers of points and of dimensions.
    rng : int or Generator, optional

    Returns
    -------
    ndarray, shape (n, d)

    Examples
    --------
    >>> density_design(3, 1, rng=0).round(2).ravel().tolist()  # a random one, and as far from it as can be
    [0.64, 0.0, 1.0]
    """

    def emptiest(X: FloatArray) -> Slopes:
        h = bandwidth(len(X), d)
        return partial(emptiness, kernel_regression.condition(X, np.zeros(len(X)), h))

    return _grown(n, d, emptiest, rng)


def process_design(n: int, d: int, *, rng: Rng = None) -> FloatArray:
    """Return n points: the first at random, each further one where the variance of a Gaussian process is largest.

    Parameters and return value are as in `density_design`.

    Examples
    --------
    >>> import emsopt as eo
    >>> points = eo.optimizers.process_design(5, 2, rng=0)
    >>> points.shape
    (5, 2)
    """
    from ...surrogates.box_kernels import SquaredExponential

    kernel = SquaredExponential(LENGTHSCALE * np.sqrt(d / 12), "fixed")

    def least_known(X: FloatArray) -> Slopes:
        process = gaussian_process.condition(kernel, X, np.zeros(len(X)), noise_ratio=1e-8, amplitude=1.0)

        def log_variance(x: FloatArray) -> tuple[FloatArray, FloatArray]:
            _, variance, _, slope = process.predict_with_slopes(x)
            variance = np.maximum(variance, 1e-12)
            return np.log(variance), slope / variance[:, None]

        return log_variance

    return _grown(n, d, least_known, rng)


def fill_distance(points: ArrayLike) -> float:
    """Return a lower bound on the fill distance of a design, (3.11) of the BOKE paper.

    The fill distance is the largest distance from a point of the unit cube to the nearest point of the design. The
    bound is the largest such distance from a fixed set of ``PROBES`` random points and from the corners of the cube
    (with more than 13 inputs, from ``PROBES`` of the corners).

    Parameters
    ----------
    points : array_like, shape (n, d)

    Examples
    --------
    >>> round(fill_distance([[0.5, 0.5]]), 4)
    0.7071
    """
    from scipy.spatial import KDTree

    design = _validate.real_array(points, "points", (None, None))
    d = design.shape[1]
    rng = np.random.default_rng(0)
    probes = rng.random((PROBES, d))
    tried = np.vstack([corners_of_cube(d, PROBES, rng), probes])
    return float(np.max(KDTree(design).query(tried)[0]))


def _grown(n: int, d: int, function_of: Callable[[FloatArray], Slopes], rng: Rng) -> FloatArray:
    """Grow a design from a random point; each further point maximises a function defined by the earlier points."""
    n, d, rng = _validate.whole_number(n, "n"), _validate.whole_number(d, "d"), _validate.generator(rng)
    X = rng.random((1, d))
    while len(X) < n:
        X = np.vstack([X, highest(function_of(X), d, rng)])
    return X
