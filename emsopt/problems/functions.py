"""Standard test functions on their usual boxes. All are minimised, except `decaying_wave`.

Sphere and Ackley have their minimum at the centre of the box, which favours methods that start there.

References
----------
- Dixon, L. C. W. and Szegö, G. P. (1978). The global optimization problem: an introduction.
- Forrester, A., Sóbester, A. and Keane, A. (2008). Engineering Design via Surrogate Modelling. Wiley.
- Jamil, M. and Yang, X.-S. (2013). A literature survey of benchmark functions for global optimization problems.
"""

from collections.abc import Callable

import numpy as np

from ..errors._types import FloatArray, Rng
from .problem import Problem

HARTMANN_WEIGHTS = np.array([1.0, 1.2, 3.0, 3.2])
HARTMANN_SHAPES = {
    3: np.array([[3.0, 10, 30], [0.1, 10, 35], [3.0, 10, 30], [0.1, 10, 35]]),
    6: np.array(
        [[10, 3, 17, 3.5, 1.7, 8], [0.05, 10, 17, 0.1, 8, 14], [3, 3.5, 1.7, 10, 17, 8], [17, 8, 0.05, 10, 0.1, 14]]
    ),
}
HARTMANN_CENTRES = {
    3: np.array([[3689, 1170, 2673], [4699, 4387, 7470], [1091, 8732, 5547], [381, 5743, 8828]]),
    6: np.array(
        [
            [1312, 1696, 5569, 124, 8283, 5886],
            [2329, 4135, 8307, 3736, 1004, 9991],
            [2348, 1451, 3522, 2883, 3047, 6650],
            [4047, 8828, 8732, 5743, 1091, 381],
        ]
    ),
}
"""Parameters of the Hartmann functions (centres times 10⁴), by number of inputs. Each row is one of the four terms."""


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
    shapes, centres = HARTMANN_SHAPES[x.shape[1]], 1e-4 * HARTMANN_CENTRES[x.shape[1]]
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


DOCSTRING_TEMPLATE = """Return {what}.

    The {kind} is {best} at {at}.

    Parameters
    ----------
    noise_sd : float
        Standard deviation of the noise on each value.
    rng : int or Generator, optional
        Source of randomness for the noise.

    Examples
    --------
    >>> import emsopt as eo
    >>> f = eo.problems.{name}()
    >>> f.sense, bool(abs(f(f.best_x) - f.best_value) < 1e-12)
    ({sense!r}, True)
    """


def _problem_factory(
    name: str,
    function: Callable[[FloatArray], FloatArray],
    bounds: list[tuple[float, float]],
    best: float,
    best_x: list[float],
    what: str,
    sense: str = "min",
) -> Callable[..., Problem]:
    """Return a function that returns a test problem; ``what`` describes the problem in ``DOCSTRING_TEMPLATE``."""

    def make(*, noise_sd: float = 0.0, rng: Rng = None) -> Problem:
        return Problem(name, function, bounds, sense, best, best_x, noise_sd, rng)

    make.__name__ = make.__qualname__ = name  # so that help and tracebacks show its own name
    kind, at = f"{sense}imum", ", ".join(f"{x:g}" for x in best_x)
    make.__doc__ = DOCSTRING_TEMPLATE.format(what=what, kind=kind, best=best, at=f"({at})", name=name, sense=sense)
    return make


forrester = _problem_factory(
    "forrester", _forrester, [(0, 1)], -6.020740055767083, [0.75724876], "(6x - 2)² sin(12x - 4) on [0, 1]"
)
decaying_wave = _problem_factory(
    "decaying_wave",
    _decaying_wave,
    [(0, 1)],
    0.6757608313797878,
    [0.27419669],
    "-exp(-1.4 x) cos(3.5 π x) on [0, 1], equation (3.5) of the BOKE paper",
    sense="max",
)
goldstein_price = _problem_factory(
    "goldstein_price", _goldstein_price, [(-2, 2)] * 2, 3.0, [0, -1], "the Goldstein-Price function on [-2, 2]²"
)
six_hump_camel = _problem_factory(
    "six_hump_camel",
    _camel,
    [(-3, 3), (-2, 2)],
    -1.0316284534898774,
    [0.08984201, -0.7126564],
    "(4 - 2.1 x1² + x1⁴/3) x1² + x1 x2 + (4 x2² - 4) x2² on [-3, 3] x [-2, 2], with a second optimum by symmetry",
)
hartmann3 = _problem_factory(
    "hartmann3",
    _hartmann,
    [(0, 1)] * 3,
    -3.862779787332663,
    [0.11458888, 0.5556489, 0.85254698],
    "the Hartmann function of 3 inputs on [0, 1]³",
)
hartmann6 = _problem_factory(
    "hartmann6",
    _hartmann,
    [(0, 1)] * 6,
    -3.322368011415515,
    [0.20168951, 0.15001069, 0.47687397, 0.27533243, 0.31165162, 0.65730054],
    "the Hartmann function of 6 inputs on [0, 1]⁶",
)
rosenbrock4 = _problem_factory(
    "rosenbrock4", _rosenbrock, [(-5, 10)] * 4, 0.0, [1] * 4, "Σ 100 (x_{k+1} - x_k²)² + (1 - x_k)² on [-5, 10]⁴"
)
sphere6 = _problem_factory("sphere6", _sphere, [(-5.12, 5.12)] * 6, 0.0, [0] * 6, "Σ x_k² on [-5.12, 5.12]⁶")
ackley6 = _problem_factory(
    "ackley6", _ackley, [(-32.768, 32.768)] * 6, 0.0, [0] * 6, "the Ackley function on [-32.768, 32.768]⁶"
)
levy6 = _problem_factory("levy6", _levy, [(-10, 10)] * 6, 0.0, [1] * 6, "the Levy function on [-10, 10]⁶")
