"""`Optimizer`, the base class of all optimizers of deployments."""

from functools import cached_property

import numpy as np
from numba import njit

from ...city.deployment_space import DeploymentSpace
from ...errors import InputError
from ...errors._types import FloatArray, IntArray, Rng
from ...evaluators._interchange import Lists, lists_of, matrix_costs, swap_changes
from ...evaluators.objective import Objective
from ..ask_tell import AskTell
from ..recommendation import posterior_means


class Optimizer(AskTell[IntArray]):
    """Base class of the optimizers of deployments; see `AskTell`. ``space`` holds the allowed deployments."""

    noun, column = "deployment", "sites"
    space: DeploymentSpace

    def __init__(self, objective: Objective, *, rng: Rng = None) -> None:
        if not isinstance(getattr(objective, "space", None), DeploymentSpace):
            raise InputError(f"`objective` must be an emsopt.Objective; got {type(objective).__name__}.")
        super().__init__(objective, rng)

    @property
    def sites(self) -> list[IntArray]:
        """Deployments observed so far, each of shape (p,), in canonical form (`DeploymentSpace.canonical`)."""
        return self.told

    def _estimates(self) -> FloatArray:
        from ...surrogates.kernels import DeploymentKernel

        counts = self.space.group_counts(self.told)
        prior = self._p_median_values(counts)
        kernels = [DeploymentKernel(gamma=gamma, gamma_bounds=(1.0, 5.0)) for gamma in (1.5, 2.0, 3.0)]
        # the process models what the p-median objective leaves unexplained
        return prior + posterior_means(kernels, counts, np.array(self.values) - prior)

    def _p_median_values(self, counts: IntArray) -> FloatArray:
        """Return the p-median objective, (K,), of deployments given as units in each twin group of sites, (K, G)."""
        return _weighted_minima(self._group_costs, self.space.city.demand_shares, counts)

    def _p_median_values_of_swaps(self, counts: IntArray, gives: IntArray, takes: IntArray) -> FloatArray:
        """Return the p-median objective, (g, t), after a unit moves from a twin group, (g,), to another, (t,)."""
        members = np.repeat(np.arange(len(counts)), counts)
        change = swap_changes(self._groups_by_cost, members, len(counts))
        return self._p_median_values(counts[None])[0] + change[np.ix_(np.searchsorted(members, gives), takes)]

    @cached_property
    def _groups_by_cost(self) -> Lists:
        """Twin groups of sites in order of cost, and these costs, for each atom."""
        costs, shares = self._group_costs, self.space.city.demand_shares
        return lists_of(matrix_costs(costs, shares), np.arange(len(shares)), len(costs))

    @cached_property
    def _group_costs(self) -> FloatArray:
        """Cost of each atom by twin group of sites, shape (G, M), from `Objective.costs`."""
        first_site = np.unique(self.space.city.twin_groups, return_index=True)[1]  # twins cost the same
        return np.ascontiguousarray(self.objective.costs[first_site])


# compiled, as numpy would need an array (K, G, M)
@njit(cache=True)
def _weighted_minima(costs: FloatArray, weights: FloatArray, counts: IntArray) -> FloatArray:
    """Return Σ_j w_j min_g c_gj, (K,), over the groups g that have a unit in each row of ``counts``, (K, G)."""
    values = np.empty(len(counts))
    for k in range(len(counts)):
        nearest = np.full(len(weights), np.inf)
        for g in range(counts.shape[1]):
            if counts[k, g] > 0:
                for j in range(len(weights)):
                    nearest[j] = min(nearest[j], costs[g, j])
        values[k] = np.sum(nearest * weights)
    return values


class RandomSearch(Optimizer):
    """Optimizer that asks for random deployments, with each unit at a random free place.

    Examples
    --------
    >>> import emsopt as eo
    >>> objective = eo.Objective(eo.datasets.grid_city(n_sites=6, units=2, rng=1), 2)
    >>> len(eo.optimizers.RandomSearch(objective, rng=0).ask())
    2
    """
