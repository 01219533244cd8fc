"""Standard test functions, unscaled and on their usual boxes. All are minimised, except `decaying_wave`.

``decaying_wave``    1 input, a decaying oscillation; example from the BOKE paper; maximised
``forrester``        1 input, one local minimum besides the global one
``goldstein_price``  2 inputs, values from 3 to 10^6
``six_hump_camel``   2 inputs, six minima, two of them global
``hartmann3/6``      3 and 6 inputs, four minima each
``rosenbrock4``      4 inputs, a curved valley
``sphere6``          6 inputs, a bowl
``ackley6``          6 inputs, a narrow hole in a rippled plain
``levy6``            6 inputs, ripples along every axis

Sphere and Ackley have their minimum at the centre of the box, which favours methods that start there. All functions
take ``noise_sd``, the standard deviation of the noise on each value, and ``rng``, its source of randomness.

References
----------
- Dixon, L. C. W. and Szegö, G. P. (1978). The global optimization problem: an introduction.
- Forrester, A., Sóbester, A. and Keane, A. (2008). Engineering Design via Surrogate Modelling. Wiley.
- Jamil, M. and Yang, X.-S. (2013). A literature survey of benchmark functions for global optimization problems.
"""

import numpy as np

from .._types import FloatArray, Rng
from .problem import Problem


def forrester(*, noise_sd: float = 0.0, rng: Rng = None) -> Problem:
    """Return (6x - 2)² sin(12x - 4) on [0, 1]: minimum -6.02074 at 0.757249.

    Parameters
    ----------
    noise_sd : float
        Standard deviation of the noise on each value.
    rng : int or Generator, optional
        Source of randomness for the noise.

    Returns
    -------
    Problem

    Examples
    --------
    >>> import emsopt as eo
    >>> f = eo.problems.forrester()
    >>> f.sense, round(f.best_value, 4)
    ('min', -6.0207)
    >>> round(f([0.757249]), 4)
    -6.0207
    """
    return Problem("forrester", _forrester, [(0, 1)], "min", -6.020740055767083, [0.75724876], noise_sd, rng)


def decaying_wave(*, noise_sd: float = 0.0, rng: Rng = None) -> Problem:
    """Return -exp(-1.4 x) cos(3.5 π x) on [0, 1]: maximum 0.675761 at 0.274197.

    Equation (3.5) of "Bayesian Optimization by Kernel Regression and Density-based Exploration" (BOKE). Options as in
    `forrester`.

    Examples
    --------
    >>> import emsopt as eo
    >>> f = eo.problems.decaying_wave()
    >>> f.sense, round(f.best_value, 4)
    ('max', 0.6758)
    >>> round(f([0.274197]), 4)
    0.6758
    """
    return Problem("decaying_wave", _decaying_wave, [(0, 1)], "max", 0.6757608313797878, [0.27419669], noise_sd, rng)


def goldstein_price(*, noise_sd: float = 0.0, rng: Rng = None) -> Problem:
    """Return the Goldstein-Price function on [-2, 2]²: minimum 3 at (0, -1); options as in `forrester`.

    Examples
    --------
    >>> import emsopt as eo
    >>> f = eo.problems.goldstein_price()
    >>> f.sense, round(f.best_value, 4)
    ('min', 3.0)
    >>> round(f([0, -1]), 4)
    3.0
    """
    return Problem("goldstein_price", _goldstein_price, [(-2, 2)] * 2, "min", 3.0, [0, -1], noise_sd, rng)


def six_hump_camel(*, noise_sd: float = 0.0, rng: Rng = None) -> Problem:
    """Return (4 - 2.1 x1² + x1⁴/3) x1² + x1 x2 + (4 x2² - 4) x2² on [-3, 3] x [-2, 2].

    Minimum -1.031628 at (0.089842, -0.712656) and, by symmetry, at (-0.089842, 0.712656). Options as in `forrester`.

    Examples
    --------
    >>> import emsopt as eo
    >>> f = eo.problems.six_hump_camel()
    >>> f.sense, round(f.best_value, 4)
    ('min', -1.0316)
    >>> round(f([0.089842, -0.712656]), 4)
    -1.0316
    """
    best = [0.08984201, -0.7126564]
    return Problem("six_hump_camel", _camel, [(-3, 3), (-2, 2)], "min", -1.0316284534898774, best, noise_sd, rng)


def hartmann3(*, noise_sd: float = 0.0, rng: Rng = None) -> Problem:
    """Return the Hartmann function of 3 inputs on [0, 1]³.

    Minimum -3.862780 at (0.114589, 0.555649, 0.852547). Options as in `forrester`.

    Examples
    --------
    >>> import emsopt as eo
    >>> f = eo.problems.hartmann3()
    >>> f.sense, round(f.best_value, 4)
    ('min', -3.8628)
    >>> round(f([0.114614, 0.555649, 0.852547]), 4)
    -3.8628
    """
    best = [0.11458888, 0.5556489, 0.85254698]
    return Problem("hartmann3", _hartmann, [(0, 1)] * 3, "min", -3.862779787332663, best, noise_sd, rng)


def hartmann6(*, noise_sd: float = 0.0, rng: Rng = None) -> Problem:
    """Return the Hartmann function of 6 inputs on [0, 1]⁶.

    Minimum -3.322368 at (0.201690, 0.150011, 0.476874, 0.275332, 0.311652, 0.657301). Options as in `forrester`.

    Examples
    --------
    >>> import emsopt as eo
    >>> f = eo.problems.hartmann6()
    >>> f.sense, round(f.best_value, 4)
    ('min', -3.3224)
    >>> round(f([0.20169, 0.150011, 0.476874, 0.275332, 0.311652, 0.6573]), 4)
    -3.3224
    """
    best = [0.20168951, 0.15001069, 0.47687397, 0.27533243, 0.31165162, 0.65730054]
    return Problem("hartmann6", _hartmann, [(0, 1)] * 6, "min", -3.322368011415515, best, noise_sd, rng)


def rosenbrock4(*, noise_sd: float = 0.0, rng: Rng = None) -> Problem:
    """Return Σ 100 (x_{k+1} - x_k²)² + (1 - x_k)² on [-5, 10]⁴: minimum 0 at (1, 1, 1, 1).

    Options as in `forrester`.

    Examples
    --------
    >>> import emsopt as eo
    >>> f = eo.problems.rosenbrock4()
    >>> f.sense, round(f.best_value, 4)
    ('min', 0.0)
    >>> round(f([1] * 4), 4)
    0.0
    """
    return Problem("rosenbrock4", _rosenbrock, [(-5, 10)] * 4, "min", 0.0, [1] * 4, noise_sd, rng)


def sphere6(*, noise_sd: float = 0.0, rng: Rng = None) -> Problem:
    """Return Σ x_k² on [-5.12, 5.12]⁶: minimum 0 at the origin; options as in `forrester`.

    Examples
    --------
    >>> import emsopt as eo
    >>> f = eo.problems.sphere6()
    >>> f.sense, round(f.best_value, 4)
    ('min', 0.0)
    >>> round(f([0] * 6), 4)
    0.0
    """
    return Problem("sphere6", _sphere, [(-5.12, 5.12)] * 6, "min", 0.0, [0] * 6, noise_sd, rng)


def ackley6(*, noise_sd: float = 0.0, rng: Rng = None) -> Problem:
    """Return the Ackley function on [-32.768, 32.768]⁶: minimum 0 at the origin.

    Options as in `forrester`.

    Examples
    --------
    >>> import emsopt as eo
    >>> f = eo.problems.ackley6()
    >>> f.sense, round(f.best_value, 4)
    ('min', 0.0)
    >>> round(f([0.0] * 6), 4)
    0.0
    """
    return Problem("ackley6", _ackley, [(-32.768, 32.768)] * 6, "min", 0.0, [0] * 6, noise_sd, rng)


def levy6(*, noise_sd: float = 0.0, rng: Rng = None) -> Problem:
    """Return the Levy function on [-10, 10]⁶: minimum 0 at (1, ..., 1); options as in `forrester`.

    Examples
    --------
    >>> import emsopt as eo
    >>> f = eo.problems.levy6()
    >>> f.sense, round(f.best_value, 4)
    ('min', 0.0)
    >>> round(f([1] * 6), 4)
    0.0
    """
    return Problem("levy6", _levy, [(-10, 10)] * 6, "min", 0.0, [1] * 6, noise_sd, rng)


HARTMANN_WEIGHTS = np.array([1.0, 1.2, 3.0, 3.2])
HARTMANN_SHAPES = {
    3: np.array([[3.0, 10, 30], [0.1, 10, 35], [3.0, 10, 30], [0.1, 10, 35]]),
    6: np.array(
        [[10, 3, 17, 3.5, 1.7, 8], [0.05, 10, 17, 0.1, 8, 14], [3, 3.5, 1.7, 10, 17, 8], [17, 8, 0.05, 10, 0.1, 14]]
    ),
}
HARTMANN_CENTRES = {
    3: 1e-4 * np.array([[3689, 1170, 2673], [4699, 4387, 7470], [1091, 8732, 5547], [381, 5743, 8828]]),
    6: 1e-4
    * np.array(
        [
            [1312, 1696, 5569, 124, 8283, 5886],
            [2329, 4135, 8307, 3736, 1004, 9991],
            [2348, 1451, 3522, 2883, 3047, 6650],
            [4047, 8828, 8732, 5743, 1091, 381],
        ]
    ),
}
"""Parameters of the Hartmann functions, by number of inputs. Each row belongs to one of the four terms."""


def _decaying_wave(x: FloatArray) -> FloatArray:
    return (-np.exp(-1.4 * x) * np.cos(3.5 * np.pi * x))[:, 0]


def _forrester(x: FloatArray) -> FloatArray:
    return ((6 * x - 2) ** 2 * np.sin(12 * x - 4))[:, 0]


def _goldstein_price(x: FloatArray) -> FloatArray:
    a, b = x.T
    first = 19 - 14 * a + 3 * a**2 - 14 * b + 6 * a * b + 3 * b**2
    second = 18 - 32 * a + 12 * a**2 + 48 * b - 36 * a * b + 27 * b**2
    return (1 + (a + b + 1) ** 2 * first) * (30 + (2 * a - 3 * b) ** 2 * second)


def _camel(x: FloatArray) -> FloatArray:
    a, b = x.T
    return (4 - 2.1 * a**2 + a**4 / 3) * a**2 + a * b + (4 * b**2 - 4) * b**2


def _hartmann(x: FloatArray) -> FloatArray:
    shapes, centres = HARTMANN_SHAPES[x.shape[1]], HARTMANN_CENTRES[x.shape[1]]
    return -np.exp(-(shapes * (x[:, None] - centres) ** 2).sum(axis=2)) @ HARTMANN_WEIGHTS


def _rosenbrock(x: FloatArray) -> FloatArray:
    return (100 * (x[:, 1:] - x[:, :-1] ** 2) ** 2 + (1 - x[:, :-1]) ** 2).sum(axis=1)


def _sphere(x: FloatArray) -> FloatArray:
    return (x**2).sum(axis=1)


def _ackley(x: FloatArray) -> FloatArray:
    slope = 20 * (1 - np.exp(-0.2 * np.sqrt((x**2).mean(axis=1))))
    return slope + np.e - np.exp(np.cos(2 * np.pi * x).mean(axis=1))


def _levy(x: FloatArray) -> FloatArray:
    w = 1 + (x - 1) / 4
    inner = (w[:, :-1] - 1) ** 2 * (1 + 10 * np.sin(np.pi * w[:, :-1] + 1) ** 2)
    last = (w[:, -1] - 1) ** 2 * (1 + np.sin(2 * np.pi * w[:, -1]) ** 2)
    return np.sin(np.pi * w[:, 0]) ** 2 + inner.sum(axis=1) + last
