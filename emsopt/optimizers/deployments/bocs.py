r"""BOCS: a sparse quadratic model, drawn from its posterior, the draw minimised by simulated annealing.

Baptista and Poloczek (2018), in the form they call BOCS-SA, for deployments. The model is that of `sparbl`,

    f(x) = α_0 + Σ_j α_j x_j + Σ_i<j α_ij x_i x_j,

with a horseshoe prior on α; each proposal minimises one draw of α from the posterior (Thompson sampling). SparBL was
motivated by this method. Here the chain starts anew at every proposal, where SparBL carries it on, and the draw is
annealed, where SparBL solves a binary quadratic program.

What the paper states: the model of second order, the horseshoe with Makalic and Schmidt's auxiliary variables, the
Thompson draw, and annealing from a point chosen uniformly at random: a neighbour drawn uniformly is taken if it is
better, else with probability exp(-Δ / T), while T falls. Filled in here: number of sweeps, first temperature (mean
change of a swap), its geometric fall, steps and restarts.

What departs from the paper. It minimises over {0, 1}^d, where a neighbour differs in one entry. Here a neighbour is
another allowed deployment, with one unit moved, so that the number of units and pinned and closed sites are kept
throughout. The paper's penalty λ ‖x‖₁ is then the same for all x and is left out. A deployment is not evaluated
twice: where the minimiser of a draw is known already, the chain goes on to another draw. Twins, colocation and
scaling are treated as in `sparbl`.

Limits. Those of SparBL's quadratic model. A short new chain is a rougher draw than one carried on, for more work: a
proposal takes 0.28 s of CPU for 50 sites and 100 values (median, `grid_city`, 20 units). Measured, seeds 0 to 2: the
optimum of embedded St. Paul after 60 to 92 evaluations; on a `grid_city` of 50 sites and 20 units 5.2 % above the best
known after 80 (median), which random search all but matches (``benchmarks/peers.py``).

References
----------
Baptista, R. and Poloczek, M. (2018). Bayesian optimization of combinatorial structures. ICML, PMLR 80, 462-471.
"""

import numpy as np
from numba import njit

from ... import _validate
from .binary_quadratic import QuadraticMinimum, _problem, value
from .sparbl import SparBL

COOLEST = 1e-3  # last temperature over the first


class BOCS(SparBL):
    """Bayesian optimization of combinatorial structures, by simulated annealing (BOCS-SA).

    Parameters
    ----------
    objective : Objective
    initial : int
        Random deployments to begin with.
    sweeps : int
        Gibbs sweeps from one draw of a proposal to the next; ten times as many before its first.
    rng : int or Generator, optional

    Attributes
    ----------
    state : Horseshoe or None
        The chain of the last proposal that had a model.
    """

    def __init__(self, objective, *, initial=20, sweeps=20, rng=None):
        super().__init__(objective, initial=initial, sweeps=sweeps, rng=rng)

    def _propose(self):
        self.state = None
        return super()._propose()

    def _minimizer(self, coef):
        A, b = self._quadratic(coef)
        space = self.space
        found = anneal(A, b, space.units, floors=space.floors, room=space.capacities, rng=self.rng)
        return space.deployment(found.x)


def anneal(A, b, units, *, floors=None, room=None, restarts=20, steps=None, rng=None):
    """Minimise xᵀA x + bᵀx over x with ``units`` ones by simulated annealing over swaps.

    Each restart begins at a random x. A step moves a random unit to a random free slot and is taken if the value does
    not rise, else with Metropolis's chance; the temperature falls geometrically from the mean change of a swap to a
    thousandth of it. Changes of value are kept up to date, so that a step costs O(1), and O(N) if taken.

    Parameters
    ----------
    A, b, units, floors, room, rng
        See `binary_quadratic.minimize_quadratic`.
    restarts : int
        Walks, of which the best point met is kept.
    steps : int, optional
        Swaps tried in each; left out, 100 N.

    Returns
    -------
    QuadraticMinimum
        Without a lower bound.

    Examples
    --------
    >>> found = anneal([[0, -2, -3], [-2, 0, -1], [-3, -1, 0]], [9, 8, -7], 1, rng=0)
    >>> found.x.tolist(), found.value
    ([0, 0, 1], -7.0)
    """
    A, b, units, floors, room = _problem(A, b, units, floors, room)
    restarts = _validate.whole_number(restarts, "restarts")
    steps = 100 * len(b) if steps is None else _validate.whole_number(steps, "steps")
    rng = _validate.generator(rng)
    slots = np.repeat(np.arange(len(b)), room - floors)  # the place of each: one that holds several has several
    moving = units - floors.sum()
    best, least = None, np.inf
    for _ in range(restarts):
        order = rng.permutation(slots)
        x = _walk(A, b, floors, order[:moving], order[moving:], rng.random((steps, 3)))
        reached = value(A, b, x)
        if reached < least:
            best, least = x, reached
    return QuadraticMinimum(best, least, -np.inf, "annealing")


@njit(cache=True, nogil=True)
def _walk(A, b, floors, filled, empty, chances):
    """Anneal from the units in ``filled`` slots (places, written over); return the best counts met."""
    x = floors.copy()
    for i in filled:
        x[i] += 1
    best = x.copy()
    if len(filled) == 0 or len(empty) == 0:
        return best
    cost = b + 2 * (A @ x.astype(np.float64))  # of one more unit at each place
    first = 0.0
    for i in filled:
        for j in empty:
            first += abs(_change(A, cost, i, j)) / (len(filled) * len(empty))
    rounding = 1e-10 * (np.abs(cost).max() + np.abs(A).max())
    now, least = 0.0, 0.0
    for k in range(len(chances)):
        temperature = first * COOLEST ** (k / len(chances))
        s, t = int(chances[k, 0] * len(filled)), int(chances[k, 1] * len(empty))
        i, j = filled[s], empty[t]
        change = _change(A, cost, i, j)
        if i == j or (change > 0 and chances[k, 2] >= np.exp(-change / temperature)):
            continue
        filled[s], empty[t] = j, i
        x[i] -= 1
        x[j] += 1
        cost += 2 * (A[j] - A[i])
        now += change
        if now < least - rounding:
            best, least = x.copy(), now
    return best


@njit(cache=True, nogil=True)
def _change(A, cost, i, j):
    """Change of value when a unit moves from place i to place j; a unit is not paired with itself."""
    return 0.0 if i == j else cost[j] - cost[i] + 2 * A[i, i] - 2 * A[i, j]
