"""Long search for the best expected value of a control set, and the Sobol points it uses."""

from typing import TYPE_CHECKING

import numpy as np

from ..._types import FloatArray

if TYPE_CHECKING:
    from .problem import ControlProblem

SCRAMBLING = 1
SCREENED, SCREEN_NODES = 4096, 128  # number of screened points, and nodes for each
CLIMBED, CLIMB_NODES, STEP = 6, 2048, 1e-6  # number of local searches, their nodes, and step of differences


def best_of_set(problem: "ControlProblem", i: int) -> tuple[float, FloatArray]:
    """Return the best expected value of a control set and the point that attains it, by a long search.

    First SCREENED points are compared on SCREEN_NODES nodes. Then L-BFGS-B with numerical gradients on CLIMB_NODES
    nodes starts from the best CLIMBED of them, and from the objective's best known point if there is one. The best
    result is evaluated on all nodes.

    Parameters
    ----------
    problem : ControlProblem
    i : int

    Returns
    -------
    value : float
    x : ndarray, shape (k,)
    """
    from scipy.optimize import minimize

    controlled = list(problem.control_sets[i])
    screened = sobol(len(controlled), SCREENED)
    order = np.argsort(-problem.expected(i, screened, SCREEN_NODES))
    starts = screened[order[:CLIMBED]]
    if problem.objective.best_x is not None:
        starts = np.vstack([starts, problem.objective.best_x[controlled]])

    def descent(x: FloatArray) -> tuple[float, FloatArray]:
        shifts = np.where(x > 0.5, -STEP, STEP)
        values = problem.expected(i, np.vstack([x, x + np.diag(shifts)]), CLIMB_NODES)
        return -values[0], -(values[1:] - values[0]) / shifts

    box = [(0.0, 1.0)] * len(controlled)
    ends = [minimize(descent, start, jac=True, method="L-BFGS-B", bounds=box).x for start in starts]
    candidates = np.vstack([starts, np.clip(ends, 0, 1)])
    x = candidates[np.argmax(problem.expected(i, candidates, CLIMB_NODES))]
    return float(problem.expected(i, x)), x


def sobol(d: int, n: int) -> FloatArray:
    """Return n Sobol points of the unit cube with a fixed scrambling, shape (n, d)."""
    from scipy.stats import qmc

    return qmc.Sobol(d, seed=SCRAMBLING).random(n)
