"""Long search for the best expected value of a control set, and the Sobol points it uses."""

from collections.abc import Callable

import numpy as np

from ..._types import FloatArray

SCRAMBLING = 1
SCREENED, SCREEN_NODES = 4096, 128  # number of screened points, and nodes for each
CLIMBED, CLIMB_NODES, STEP = 6, 2048, 1e-6  # number of local searches, their nodes, and step of differences


def long_search(expected: Callable[..., FloatArray], d: int, start: FloatArray | None) -> tuple[float, FloatArray]:
    """Return the highest value of a function on the unit cube of d dimensions, and the point that attains it.

    ``expected`` takes points, shape (K, d), and optionally the number of nodes, and returns values, shape (K,).
    SCREENED points are compared on SCREEN_NODES nodes. Then L-BFGS-B with numerical gradients on CLIMB_NODES nodes
    starts from the best CLIMBED of them and from ``start`` if given. The best result is evaluated on all nodes.
    """
    from scipy.optimize import minimize

    screened = sobol(d, SCREENED)
    starts = screened[np.argsort(-expected(screened, SCREEN_NODES))[:CLIMBED]]
    if start is not None:
        starts = np.vstack([starts, start])

    def descent(x: FloatArray) -> tuple[float, FloatArray]:
        shifts = np.where(x > 0.5, -STEP, STEP)
        values = expected(np.vstack([x, x + np.diag(shifts)]), CLIMB_NODES)
        return -values[0], -(values[1:] - values[0]) / shifts

    ends = [minimize(descent, x, jac=True, method="L-BFGS-B", bounds=[(0.0, 1.0)] * d).x for x in starts]
    candidates = np.vstack([starts, np.clip(ends, 0, 1)])
    x = candidates[np.argmax(expected(candidates, CLIMB_NODES))]
    return float(expected(x)), x


def sobol(d: int, n: int) -> FloatArray:
    """Return n Sobol points of the unit cube with a fixed scrambling, shape (n, d)."""
    from scipy.stats import qmc

    return qmc.Sobol(d, seed=SCRAMBLING).random(n)
