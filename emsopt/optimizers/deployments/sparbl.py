r"""SparBL and BOCS: a sparse quadratic model of the objective, sampled and minimised (Thompson sampling).

Algorithm 2 of "Optimizing Server Locations in Spatial Queues", section 4. Equation (5) there models the objective as

    f(x) = α_0 + Σ_j α_j x_j + Σ_i<j α_ij x_i x_j,

with a horseshoe prior on α (`emsopt.surrogates.horseshoe`). Each proposal draws α from the posterior and minimises
that draw over the allowed deployments (`emsopt.optimizers.deployments.binary_quadratic`).

x_j is the number of units at place j, a group of interchangeable sites (twins). If a place can hold several units, the
model has a further feature, x_j (x_j - 1) / 2, which counts its pairs of units. Places with a fixed count, pinned or
closed, have no feature. Without twins and colocation this is exactly the papers' model. Features and values are
standardised to mean 0 and standard deviation 1, so that no α_0 is needed. The Gibbs chain is continued from one
proposal to the next.

**BOCS-SA** of Baptista and Poloczek (2018), Bayesian optimization of combinatorial structures, ICML, PMLR 80, motivated
SparBL and has the same model. `BOCS` starts the Gibbs chain anew at every proposal, and minimises the drawn model by
simulated annealing.

Its paper states neither the sweeps, the first temperature, the cooling, the steps nor the restarts. Here the first
temperature is the mean change of a swap, and cooling is geometric. The paper minimises over {0, 1}^d, where a neighbour
differs in one entry. Here a neighbour is another allowed deployment with one unit moved; the paper's penalty λ ‖x‖₁ is
then the same for all x and is left out. A known deployment is not proposed again: the chain goes on to another draw.

Limits. With D = N + N (N - 1) / 2 coefficients and a hundred values the quadratic model says little about deployments
far from those observed: with 50 sites SparBL is no better than the p-median deployment (`benchmarks/RESULTS.md`). The
short new chains of BOCS give less accurate draws and take more work: a proposal takes 0.3 s of CPU for 50 sites and 100
values.
"""

from typing import Any

import numpy as np
from numba import njit

from ...errors import _validate
from ...errors._types import ArrayLike, FloatArray, IntArray, Rng
from ...evaluators.objective import Objective
from ...surrogates.horseshoe import Horseshoe, sample, standardize
from ._base import Optimizer
from .binary_quadratic import minimize_quadratic
from .swaps import expected_change_inputs


class SparBL(Optimizer):
    """Thompson sampling with a sparse quadratic model: Algorithm 2 of "Optimizing Server Locations in Spatial Queues".

    Parameters
    ----------
    sweeps : int
        Gibbs sweeps for each model, which continue the chain; ten times as many for the first model. Without noise, a
        proposal that was asked for before is replaced by that of a new model, up to nine times.

    Attributes
    ----------
    initial : int
        Number of random deployments to begin with (the papers' d0 = 20).
    draws : int
        Number of draws, evenly spaced over the sweeps, whose mean is minimised. 1 is Thompson sampling, the papers'
        method; with more draws the search explores less and is usually faster.
    method : {"swap", "annealing", "relaxation"}
        How the model with the drawn coefficients is minimised: see `binary_quadratic`.
    state : Horseshoe or None
        State of the Gibbs chain; None before the first model.

    Examples
    --------
    >>> import emsopt as eo
    >>> objective = eo.Objective(eo.datasets.grid_city(n_sites=6, units=2, rng=1), 2)
    >>> len(eo.optimizers.SparBL(objective, rng=0).ask())
    2
    """

    initial, draws, method = 20, 1, "swap"

    def __init__(self, objective: Objective, *, sweeps: int = 100, rng: Rng = None) -> None:
        super().__init__(objective, rng=rng)
        self.sweeps = _validate.whole_number(sweeps, "sweeps")
        self.state: Horseshoe | None = None
        self._free = np.flatnonzero(self.space.capacities > self.space.floors)
        self._pairs = np.triu_indices(len(self._free), 1)
        self._several = np.flatnonzero(self.space.capacities[self._free] > 1)  # where units can share a place

    def _propose(self) -> IntArray:
        alike = len(self.values) < 2 or np.std(self.values) <= 1e-9 * max(1.0, abs(float(np.mean(self.values))))
        if alike or len(self.taken) < self.initial:  # equal values cannot be standardised
            return self.draw()
        for _ in range(10):  # posterior draws, as many may have known minimisers
            sites = self._minimize_model(self._draw_model())
            if self.is_free(sites):
                return sites
        near = [row for row in self.space.neighbours(sites) if self.is_free(row)]  # every draw led to a known one
        return near[int((self.features(near) @ self._coef).argmin())] if near else self.draw()

    def features(self, deployments: ArrayLike) -> FloatArray:
        """Return the model's features of canonical deployments (K, p), shape (K, D).

        Columns: the units x_j at each place that is not fixed, the products x_i x_j of all pairs of these places, and
        x_j (x_j - 1) / 2 for each of them that can hold several units.
        """
        x = self.space.group_counts(deployments)[:, self._free].astype(float)
        i, j = self._pairs
        s = x[:, self._several]
        return np.hstack([x, x[:, i] * x[:, j], s * (s - 1) / 2])

    def _draw_model(self) -> FloatArray:
        """Continue the Gibbs chain with all observations; return the drawn coefficients of `features`, (D,)."""
        data = standardize(self.features(self.sites), self.values)
        sweeps, drawn = [self.sweeps // self.draws] * self.draws, []
        if self.state is None:
            self.state = Horseshoe.start(data.X.shape[1])
            sweeps[0] += 9 * self.sweeps
        for count in sweeps:
            self.state = sample(self.state, data.X, data.y, count, rng=self.rng)
            drawn.append(self.state.coef)
        self._coef = data.unscaled_coefficients(np.mean(drawn, axis=0))
        return self._coef

    def _quadratic_terms(self, coef: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return A, (G, G), and b, (G,), of the model xᵀA x + (b - diag A)ᵀx with coefficients ``coef``, (D,)."""
        G, n, m = len(self.space.capacities), len(self._free), len(self._pairs[0])
        A, b = np.zeros((G, G)), np.zeros(G)
        b[self._free] = coef[:n]
        i, j = self._free[self._pairs[0]], self._free[self._pairs[1]]
        A[i, j] = A[j, i] = coef[n : n + m] / 2  # A holds both x_i x_j and x_j x_i
        k = self._free[self._several]
        A[k, k] = coef[n + m : n + m + len(k)] / 2
        return A, b

    def _minimize_model(self, coef: FloatArray) -> IntArray:
        """Return the best allowed deployment, (p,), that is found for the model with coefficients ``coef``, (D,)."""
        limits = {"floors": self.space.floors, "capacities": self.space.capacities}
        A, b = self._quadratic_terms(coef)
        found = minimize_quadratic(A, b, self.space.units, **limits, method=self.method, rng=self.rng)
        return self.space.deployment(found.x)


class BOCS(SparBL):
    """Bayesian optimization of combinatorial structures, by simulated annealing (BOCS-SA).

    Examples
    --------
    >>> import emsopt as eo
    >>> objective = eo.Objective(eo.datasets.grid_city(n_sites=6, units=2, rng=1), 2)
    >>> len(eo.optimizers.BOCS(objective, rng=0).ask())
    2
    """

    method = "annealing"

    def __init__(self, objective: Objective, **options: Any) -> None:
        super().__init__(objective, sweeps=20, **options)  # ten times as many at the start, to forget it

    def _propose(self) -> IntArray:
        self.state = None
        return super()._propose()


class SparBLPlus(SparBL):
    """SparBL with two more features: the mean cost if first preferred units serve all calls, and if second ones do.

    This variant is not in the papers, whose quadratic in x can only approximate which unit is nearest (double coverage,
    Example 6). The draw is minimised by swaps, from the best deployments observed and from random ones.
    """

    def __init__(self, objective: Objective, **options: Any) -> None:
        super().__init__(objective, **options)
        self._order = expected_change_inputs(objective).groups
        self._ranks = np.argsort(self._order, axis=1).T.copy()
        self._cost = self._group_costs * self.space.city.demand_shares

    def features(self, deployments: ArrayLike) -> FloatArray:
        """Return SparBL's features, then the mean costs of first and of second preferred units, shape (K, D + 2)."""
        counts = self.space.group_counts(deployments)
        covers = [_preferred_units(row, self._order, self._cost)[1].sum(axis=0) for row in counts]
        return np.hstack([super().features(deployments), covers])

    def _minimize_model(self, coef: FloatArray) -> IntArray:
        space, told = self.space, [self.sites[k] for k in np.argsort(self.values, kind="stable")[:4]]
        starts = space.group_counts([*told, *space.sample(4, rng=self.rng)])
        model, tables = (*self._quadratic_terms(coef), coef[-2:]), (self._order, self._ranks, self._cost)
        return space.deployment(_minimize_by_best_swaps(model, starts, space.floors, space.capacities, tables))


@njit(cache=True, nogil=True)
def _preferred_units(counts: IntArray, order: IntArray, cost: FloatArray) -> tuple[IntArray, FloatArray]:
    """Return the rank and the cost of each atom's first and second preferred units, each of shape (M, 2).

    Row a of ``order`` lists the places by preference of atom a, and a unit's rank is the position of its place there;
    ``cost``, (G, M), holds costs times the atom's share of the demand. A missing second unit has rank G and cost 0.
    """
    G, M = cost.shape
    rank, paid = np.full((M, 2), G), np.zeros((M, 2))
    # two units are enough: only the first and second preferred cost anything
    for a in range(M):
        found = 0
        for r in range(G):
            g = order[a, r]
            for _ in range(min(counts[g], 2 - found)):
                rank[a, found], paid[a, found] = r, cost[g, a]
                found += 1
            if found == 2:
                break
    return rank, paid


@njit(cache=True, nogil=True)
def _minimize_by_best_swaps(
    model: tuple[FloatArray, ...], starts: IntArray, floors: IntArray, capacities: IntArray, tables: tuple[Any, ...]
) -> IntArray:
    """Minimise xᵀA x + (b - diag A)ᵀx + weights · cover(x) by best swaps from each start; return the best x, (G,).

    ``model`` has A, b and weights, the coefficients of the two features cover(x) that `SparBLPlus` adds. ``tables`` has
    order and, last, cost as for `_preferred_units`, and between them each place's positions in order, (G, M).
    """
    (A, b, weights), (order, ranks, cost) = model, tables
    G, M = cost.shape
    best, best_value = starts[0].copy(), np.inf
    for s in range(len(starts)):
        x = starts[s].copy()
        for _ in range(10 * G):
            slope = b + 2 * (A @ x.astype(np.float64))
            now = weights @ _preferred_units(x, order, cost)[1].sum(axis=0)
            move_i, move_j, change = -1, -1, -1e-9  # rounding errors must not count as improvements for ever
            for i in range(G):
                if x[i] <= floors[i]:
                    continue
                x[i] -= 1
                rank, paid = _preferred_units(x, order, cost)  # without the unit, for all places it may move to
                left = weights @ paid.sum(axis=0) - now
                x[i] += 1
                for j in range(G):
                    if j == i or x[j] >= capacities[j]:
                        continue
                    d = slope[j] - slope[i] + 2 * A[i, i] - 2 * A[i, j] + left
                    for a in range(M):
                        first, second = paid[a]
                        if ranks[j, a] < rank[a, 0]:
                            # the new unit is first, and pushes the old first to second
                            d += weights[0] * cost[j, a] - weights[0] * first + weights[1] * first - weights[1] * second
                        elif ranks[j, a] < rank[a, 1]:
                            d += weights[1] * cost[j, a] - weights[1] * second
                    if d < change:
                        move_i, move_j, change = i, j, d
            if move_i < 0:
                break
            x[move_i] -= 1
            x[move_j] += 1
        y = x.astype(np.float64)
        total = y @ (A @ y) + (b - np.diag(A)) @ y + weights @ _preferred_units(x, order, cost)[1].sum(axis=0)
        if total < best_value:
            best, best_value = x, total
    return best
