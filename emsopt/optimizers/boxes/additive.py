r"""A sum of functions of one input each, as a Gaussian process whose inputs are optimised one by one.

.. math:: k(x, x') = \frac1d \sum_j e^{-(x_j - x'_j)^2 / (2 ℓ^2)}, \qquad
          x_{t+1, j} = \arg\max_z \; μ_j(z) + κ \, σ_j(z)

This is the additive process of Duvenaud, Nickisch and Rasmussen (2011) with the acquisition of Kandasamy, Schneider and
Póczos (2015). With many inputs and peaks along each of them, t points tell much about functions of one input, and
little about a function of all. The noise ratio ν absorbs what is not a sum. A lengthscale ℓ, common to all inputs,
costs one eigendecomposition, O(t³).
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from ..._types import FloatArray

LENGTHSCALES = (0.05, 0.1, 0.2, 0.4, 0.8)  # in widths of the box
NOISE_RATIOS = (1e-5, 1e-3, 1e-2, 1e-1)
GRID = 101  # points per input at which the acquisition is evaluated


@dataclass(frozen=True, eq=False)
class AdditiveProcess:
    """A Gaussian process that is a sum over inputs, conditioned on data; build it with `condition_additive`.

    Attributes
    ----------
    X : ndarray, shape (t, d)
        Points on the unit cube.
    lengthscale, noise_ratio : float
        ℓ and ν.
    basis : ndarray, shape (t, t)
        A root of the inverse covariance matrix: basis @ basis.T is (K + ν I)⁻¹.
    coefficients : ndarray, shape (t,)
        (K + ν I)⁻¹ times the values.
    scale : float
        Standard deviation of the process, of largest likelihood.
    left_out : ndarray, shape (t,)
        Prediction of each value from all others.
    """

    X: FloatArray
    lengthscale: float
    noise_ratio: float
    basis: FloatArray
    coefficients: FloatArray
    scale: float
    left_out: FloatArray

    def along(self, j: int, z: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return posterior mean and standard deviation of the function of input j at coordinates z, each (m,)."""
        d = self.X.shape[1]
        across = np.exp(-0.5 * ((z[:, None] - self.X[:, j]) / self.lengthscale) ** 2) / d
        variance = 1 / d - ((across @ self.basis) ** 2).sum(axis=1)
        return across @ self.coefficients, self.scale * np.sqrt(np.maximum(variance, 0))

    def best(self, confidence: float, rng: np.random.Generator) -> FloatArray:
        """Return the point, shape (d,), each of whose coordinates maximises μ_j + κ σ_j on a randomly shifted grid."""
        z = np.clip((np.arange(GRID + 1) - rng.random()) / (GRID - 1), 0, 1)
        sides = [self.along(j, z) for j in range(self.X.shape[1])]
        return z[np.argmax([mean + confidence * deviation for mean, deviation in sides], axis=1)]


def condition_additive(
    X: FloatArray, y: FloatArray, lengthscales: Iterable[float], noise_ratios: Iterable[float]
) -> list[AdditiveProcess]:
    """Return the process conditioned on data, for each pair of a lengthscale and a noise ratio.

    Parameters
    ----------
    X : ndarray, shape (t, d)
        Points on the unit cube.
    y : ndarray, shape (t,)
        Values, of mean about 0.
    lengthscales, noise_ratios : iterable of float
    """
    processes, squared = [], (X[:, None] - X) ** 2
    for lengthscale in lengthscales:
        values, vectors = np.linalg.eigh(np.exp(squared / (-2 * lengthscale**2)).mean(axis=2))
        for ratio in noise_ratios:
            basis = vectors / np.sqrt(np.maximum(values, 0) + ratio)
            coefficients = basis @ (basis.T @ y)
            left_out = y - coefficients / (basis**2).sum(axis=1)
            scale = float(np.sqrt(max(y @ coefficients, 0) / len(y)))
            processes.append(AdditiveProcess(X, lengthscale, ratio, basis, coefficients, scale, left_out))
    return processes
