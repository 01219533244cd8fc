r"""Noise of an airfoil: Gaussian process mean of 1503 wind-tunnel measurements, a function on the unit cube.

Appendix C of "Bayesian Optimization for Unknown Cost-Varying Variable Subsets with No-Regret Costs". The inputs are
frequency, angle of attack, chord length, free-stream velocity and displacement thickness of the suction side. The first
and last enter as logarithms, and all are min-max scaled to [0, 1]. The output is the standardised sound pressure level.
The process has a Matérn 5/2 kernel with the hyperparameters published with the code of the preceding paper (Tay et al.
2023). Its posterior mean is the objective, to be maximised as in that paper.

The measurements: Brooks, T. F., Pope, D. S. and Marcolini, M. A. (1989), NASA; UCI machine learning repository,
"Airfoil self-noise", CC BY 4.0.
"""

from functools import cache

import numpy as np

from ..._files import locate
from ..._types import FloatArray
from ..problem import Problem
from ._chunks import in_chunks, squared_distances

VARIABLES = ("frequency", "angle", "chord", "velocity", "thickness")
LOGARITHMIC = [0, 4]
LENGTHSCALES = [0.1764404817425009, 0.3049778670000162, 0.17758582099512163, 0.8669498345595926, 0.2675409612248587]
OUTPUTSCALE = 0.9180261123887418
NOISE_VARIANCE = 0.6954410109527837
MEAN = -0.5191142823163545
BEST_VALUE = 2.069964183723336
BEST_X = [0.14708422, 0.46614944, 0.27328699, 0.92940424, 0.77456725]
WORST_VALUE = -2.862809487
"""Largest and smallest value found by L-BFGS-B from the best 12 of 32,768 Sobol points."""


def airfoil() -> Problem:
    """Return the standardised noise level of the airfoil: 5 inputs on [0, 1]⁵, maximum 2.06996.

    Examples
    --------
    >>> f = airfoil()
    >>> round(f(f.best_x), 5)
    2.06996
    """
    return Problem("airfoil", _mean, [(0, 1)] * 5, "max", BEST_VALUE, BEST_X, variables=VARIABLES)


def measurements() -> tuple[FloatArray, FloatArray]:
    """Return scaled inputs, shape (1503, 5), and standardised outputs, shape (1503,)."""
    table = np.loadtxt(locate.package_file("bocvs", "airfoil_self_noise.csv"), delimiter=",", skiprows=1)
    X, y = table[:, :5], table[:, 5]
    X[:, LOGARITHMIC] = np.log(X[:, LOGARITHMIC])
    X = (X - X.min(axis=0)) / np.ptp(X, axis=0)
    return X, (y - y.mean()) / y.std()


def _matern(A: FloatArray, B: FloatArray) -> FloatArray:
    """Return the Matérn 5/2 kernel with outputscale 1 between points scaled by the lengthscales."""
    r = np.sqrt(5 * squared_distances(A, B))
    return (1 + r + r**2 / 3) * np.exp(-r)


@cache
def _trained() -> tuple[FloatArray, FloatArray]:
    """Return the scaled data and the coefficients of the posterior mean."""
    from scipy.linalg import cho_factor, cho_solve

    X, y = measurements()
    X = X / LENGTHSCALES
    K = OUTPUTSCALE * _matern(X, X)
    K[np.diag_indices_from(K)] = OUTPUTSCALE + NOISE_VARIANCE
    return X, OUTPUTSCALE * cho_solve(cho_factor(K, lower=True), y - MEAN)


def _mean(points: FloatArray) -> FloatArray:
    """Return the posterior mean at each point."""
    X, coefficients = _trained()
    return MEAN + in_chunks(lambda x: _matern(x, X) @ coefficients, points / LENGTHSCALES, 64)
