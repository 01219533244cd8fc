"""Expected improvement as a logarithm, for deployments and for points of a box.

The improvement is that of a normal value below a goal, equation (18) of "Optimizing Server Locations in Spatial
Queues". Far from the goal it underflows, and its slopes with it; the logarithm does not (Ament et al. 2023).
"""

import numpy as np

from .._types import FloatArray


def log_expected_improvement(goal: float | FloatArray, mean: FloatArray, deviation: FloatArray) -> FloatArray:
    """Return the logarithm of expected improvement (18) below ``goal``, accurate where (18) itself underflows.

    Parameters
    ----------
    goal : float or ndarray, shape (K,)
        Best value so far, g.
    mean, deviation : ndarray, shape (K,)
        Posterior mean and standard deviation.

    Returns
    -------
    ndarray, shape (K,)
    """
    from scipy.special import erfcx, ndtr

    deviation = np.maximum(deviation, 1e-12)
    z = (goal - mean) / deviation
    density = -0.5 * z**2 - 0.5 * np.log(2 * np.pi)
    high = np.maximum(z, -1.0)
    plain = np.log(np.exp(-0.5 * high**2) / np.sqrt(2 * np.pi) + high * ndtr(high))
    # φ + zΦ = φ (1 + z Φ/φ), and Φ/φ is a scaled erfc; beyond -1000 the bracket is 1/z² to six digits.
    low = np.clip(z, -1e3, -1.0)
    bracket = 1 + low * np.sqrt(np.pi / 2) * erfcx(-low / np.sqrt(2))
    tail = density + np.where(z < -1e3, -2 * np.log(np.maximum(-z, 1)), np.log(bracket))
    return np.log(deviation) + np.where(z > -1, plain, tail)
