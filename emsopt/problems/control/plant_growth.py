r"""Growth of a plant: leaf area of Marchantia by nutrients and acidity, as a function on the unit cube.

Objective (c) of "Bayesian Optimization for Unknown Cost-Varying Variable Subsets with No-Regret Costs": the posterior
mean of a sparse Gaussian process trained on data that are not public. Its parameters are 464 inducing points Z, a
squared-exponential kernel and whitened means q:

.. math:: f(x) = k(x, Z) L^{-\top} q, \qquad L L^\top = k(Z, Z) + 10^{-6} I

======  =====================  ===========
input   meaning                range
======  =====================  ===========
1       Ca, log µM             0 to 7.7
2       B, log µM              0 to 3.5
3       NH3, log µM            0 to 10.4
4       K, log µM              8.9 to 11.3
5       pH                     2.5 to 6.5
======  =====================  ===========

The output is standardised leaf area: 0 is the mean of the data, 1 is one standard deviation above it.

The parameters come from the code of Tay et al. (2023), MIT licence, and are not part of this package. The file
``gp_leaf_dict.p`` is searched in ``$EMSOPT_DATA`` and ``$EMSOPT_DATA/plant_growth``; if it is not found, it is
downloaded and its checksum verified. The file is a pickle, but it is parsed as data and none of its code is executed.
"""

from functools import cache

import numpy as np

from ..._files import locate, pickles
from ..._types import FloatArray
from ..problem import Problem
from ._chunks import in_chunks, squared_distances

REPOSITORY = "sebtsh/cost-varying-variable-subsets-BO"
COMMIT = "16ffdab13ede72fbed2427995a1c27b75993135d"
URL = f"https://raw.githubusercontent.com/{REPOSITORY}/{COMMIT}/data/plant/gp_leaf_dict.p"
SHA256 = "95333ca48f57b6cdcb2b1917da2eb738c0ca8a940180aea396eb71abf4e52a91"

VARIABLES = ("Ca", "B", "NH3", "K", "pH")
RANGES = np.array([(0, 7.7), (0, 3.5), (0, 10.4), (8.9, 11.3), (2.5, 6.5)])
JITTER = 1e-6
BEST_VALUE = 2.1941161756540035
BEST_X = [0.94758581, 0.98113916, 0.66430333, 0.22462398, 0.7498263]
WORST_VALUE = -1.13261281
"""Largest and smallest value found by L-BFGS-B from the best 24 of 65,536 Sobol points."""


def plant() -> Problem:
    """Return the standardised leaf area of the plant: 5 inputs on [0, 1]⁵, maximum 2.19412.

    Raises
    ------
    DataUnavailableError
        If the file is not found and cannot be downloaded.

    Examples
    --------
    >>> import emsopt as eo
    >>> f = eo.problems.plant()  # doctest: +SKIP
    >>> f.sense, f.dimension  # doctest: +SKIP
    ('max', 5)
    """
    _trained()
    return Problem("plant", _mean, [(0, 1)] * 5, "max", BEST_VALUE, BEST_X, variables=VARIABLES)


@cache
def _trained() -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return lengthscales, scaled inducing points and coefficients."""
    from scipy.linalg import solve_triangular

    path = locate.find_data("plant_growth/gp_leaf_dict.p", URL, SHA256)
    raw = pickles.read_arrays(path, SHA256)
    lengthscales = np.logaddexp(0, raw[".kernel.kernels[0].lengthscales"])
    variance = np.logaddexp(0, raw[".kernel.kernels[0].variance"])
    Z = raw[".inducing_variable.inducing_variable_list[0].Z"] / lengthscales
    K = variance * np.exp(-squared_distances(Z, Z) / 2)
    L = np.linalg.cholesky(K + JITTER * np.eye(len(Z)))
    return lengthscales, Z, variance * solve_triangular(L, raw[".q_mu"][:, 0], lower=True, trans=1)


def _mean(points: FloatArray) -> FloatArray:
    """Return the posterior mean at each point."""
    lengthscales, Z, coefficients = _trained()
    low, high = RANGES.T
    scaled = (low + (high - low) * points) / lengthscales
    return in_chunks(lambda x: np.exp(-squared_distances(x, Z) / 2) @ coefficients, scaled, 128)
