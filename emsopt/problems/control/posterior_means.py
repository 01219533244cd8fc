r"""Noise of an airfoil and growth of a plant: posterior means of Gaussian processes, as functions on the unit cube.

Objectives (c) and (d) of "Bayesian Optimization for Unknown Cost-Varying Variable Subsets with No-Regret Costs",
appendix C.

**Airfoil.** The inputs are frequency, angle of attack, chord length, free-stream velocity and displacement thickness of
the suction side. The first and last enter as logarithms, and all are min-max scaled to [0, 1]. The output is the
standardised sound pressure level of 1503 wind-tunnel measurements (Brooks, T. F., Pope, D. S. and Marcolini, M. A.,
1989, NASA; UCI machine learning repository, "Airfoil self-noise", CC BY 4.0), to be maximised as in that paper. The
process has a Matérn 5/2 kernel with the hyperparameters published with the code of the preceding paper (Tay et al.
2023).

**Plant.** The inputs are Ca, B, NH3 and K (log µM) and pH, in the ranges of `PLANT_RANGES`; the output is the leaf area
of Marchantia, standardised. The process is sparse and was trained on data that are not public. Its parameters are 464
inducing points Z, a squared-exponential kernel and whitened means q:

.. math:: f(x) = k(x, Z) L^{-\top} q, \qquad L L^\top = k(Z, Z) + 10^{-6} I

They come from the code of Tay et al. (2023), MIT licence, and are not part of this package. The file
``gp_leaf_dict.p`` is searched in ``$EMSOPT_DATA`` and ``$EMSOPT_DATA/plant_growth``; if it is not found, it is
downloaded and its checksum verified. The file is a pickle, but it is parsed as data and none of its code is executed.

The largest and smallest values were found by L-BFGS-B from the best of tens of thousands of Sobol points.
"""

from functools import cache

import numpy as np

from ..._files import locate, pickles
from ..._types import FloatArray
from ..problem import Problem
from .problem import in_chunks


def _squared_distances(A: FloatArray, B: FloatArray) -> FloatArray:
    """Return the squared distances between the rows of two arrays."""
    return np.maximum((A**2).sum(axis=1)[:, None] + (B**2).sum(axis=1) - 2 * A @ B.T, 0)


LOGARITHMIC = [0, 4]
LENGTHSCALES = [0.1764404817425009, 0.3049778670000162, 0.17758582099512163, 0.8669498345595926, 0.2675409612248587]
OUTPUTSCALE = 0.9180261123887418
NOISE_VARIANCE = 0.6954410109527837
MEAN = -0.5191142823163545
AIRFOIL_BEST_X = [0.14708422, 0.46614944, 0.27328699, 0.92940424, 0.77456725]
AIRFOIL_WORST = -2.862809487


def airfoil() -> Problem:
    """Return the standardised noise level of the airfoil: 5 inputs on [0, 1]⁵, maximum 2.06996."""
    variables = ("frequency", "angle", "chord", "velocity", "thickness")
    return Problem("airfoil", _noise_level, [(0, 1)] * 5, "max", 2.069964183723336, AIRFOIL_BEST_X, variables=variables)


def measurements() -> tuple[FloatArray, FloatArray]:
    """Return the airfoil's scaled inputs, shape (1503, 5), and standardised outputs, shape (1503,)."""
    table = np.loadtxt(locate.package_file("bocvs", "airfoil_self_noise.csv"), delimiter=",", skiprows=1)
    X, y = table[:, :5], table[:, 5]
    X[:, LOGARITHMIC] = np.log(X[:, LOGARITHMIC])
    X = (X - X.min(axis=0)) / np.ptp(X, axis=0)
    return X, (y - y.mean()) / y.std()


def _matern(A: FloatArray, B: FloatArray) -> FloatArray:
    """Return the Matérn 5/2 kernel with outputscale 1 between points scaled by the lengthscales."""
    r = np.sqrt(5 * _squared_distances(A, B))
    return (1 + r + r**2 / 3) * np.exp(-r)


@cache
def _airfoil_process() -> tuple[FloatArray, FloatArray]:
    """Return the scaled data and the coefficients of the posterior mean."""
    from scipy.linalg import cho_factor, cho_solve

    X, y = measurements()
    X = X / LENGTHSCALES
    K = OUTPUTSCALE * _matern(X, X)
    # exact: expanded distances of a point to itself are not 0
    K[np.diag_indices_from(K)] = OUTPUTSCALE + NOISE_VARIANCE
    return X, OUTPUTSCALE * cho_solve(cho_factor(K, lower=True), y - MEAN)


def _noise_level(points: FloatArray) -> FloatArray:
    X, coefficients = _airfoil_process()
    return MEAN + in_chunks(lambda x: _matern(x, X) @ coefficients, points / LENGTHSCALES, 64)


REPOSITORY = "sebtsh/cost-varying-variable-subsets-BO"
COMMIT = "16ffdab13ede72fbed2427995a1c27b75993135d"
URL = f"https://raw.githubusercontent.com/{REPOSITORY}/{COMMIT}/data/plant/gp_leaf_dict.p"
SHA256 = "95333ca48f57b6cdcb2b1917da2eb738c0ca8a940180aea396eb71abf4e52a91"

PLANT_RANGES = np.array([(0, 7.7), (0, 3.5), (0, 10.4), (8.9, 11.3), (2.5, 6.5)])
JITTER = 1e-6  # that of GPflow, with which q was trained
PLANT_BEST_X = [0.94758581, 0.98113916, 0.66430333, 0.22462398, 0.7498263]
PLANT_WORST = -1.13261281


def plant() -> Problem:
    """Return the standardised leaf area of the plant, 5 inputs, maximum 2.19412; raise if its file cannot be had."""
    plant_process()  # raises here rather than at the first evaluation
    variables = ("Ca", "B", "NH3", "K", "pH")
    return Problem("plant", _leaf_area, [(0, 1)] * 5, "max", 2.1941161756540035, PLANT_BEST_X, variables=variables)


@cache
def plant_process() -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return lengthscales, scaled inducing points and coefficients of the plant's process."""
    from scipy.linalg import solve_triangular

    path = locate.find_data("plant_growth/gp_leaf_dict.p", URL, SHA256)
    raw = pickles.read_arrays(path)
    lengthscales = np.logaddexp(0, raw[".kernel.kernels[0].lengthscales"])  # the file has inverse softpluses
    variance = np.logaddexp(0, raw[".kernel.kernels[0].variance"])
    Z = raw[".inducing_variable.inducing_variable_list[0].Z"] / lengthscales
    K = variance * np.exp(-_squared_distances(Z, Z) / 2)
    L = np.linalg.cholesky(K + JITTER * np.eye(len(Z)))
    return lengthscales, Z, variance * solve_triangular(L, raw[".q_mu"][:, 0], lower=True, trans=1)


def _leaf_area(points: FloatArray) -> FloatArray:
    lengthscales, Z, coefficients = plant_process()
    low, high = PLANT_RANGES.T
    scaled = (low + (high - low) * points) / lengthscales
    return in_chunks(lambda x: np.exp(-_squared_distances(x, Z) / 2) @ coefficients, scaled, 128)
