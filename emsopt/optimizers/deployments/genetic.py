"""A genetic algorithm on deployments, after the hybrid hypercube-genetic method for fleets.

Geroliminis, Kepaptsoglou and Karlaftis (2011), European Journal of Operational Research 210, 287-300, breed deployments
that a hypercube model evaluates: parents are chosen by fitness, a child combines their sites, mutation relocates units,
and the best survive. This implementation follows that description, not their code. They replace a generation at a time;
here each child competes at once (steady state), because evaluations are expensive.
"""

import numpy as np

from ..._types import IntArray
from ...city.deployment_space import DeploymentSpace
from .base import Optimizer
from .swaps import random_neighbour

ATTEMPTS = 20  # known children bred in a row before a random deployment is asked for instead


class Genetic(Optimizer):
    """Breed the best deployments observed so far.

    Parameters
    ----------
    objective : Objective
    rng : int or Generator, optional

    Notes
    -----
    A parent is the better of two random members of the population (binary tournament). A child keeps the sites that
    its parents share and takes the others from either parent at random, so that it is feasible if both parents are.

    Examples
    --------
    >>> import emsopt as eo
    >>> objective = eo.Objective(eo.datasets.grid_city(n_sites=6, units=2, rng=1), 2)
    >>> optimizer = eo.optimizers.Genetic(objective, rng=0)
    >>> sites = optimizer.ask()
    >>> optimizer.tell(sites, objective(sites))
    >>> len(sites), objective.evaluations
    (2, 1)
    """

    population = 20  # deployments that may become parents, and random ones at the start
    mutation = 0.5  # mean number of units of a child that are relocated at random

    def _propose(self) -> IntArray:
        if len(self.values) < self.population:
            return self.draw()
        ranking = np.argsort(self.values, kind="stable")[: self.population]
        for _ in range(ATTEMPTS):
            child = cross(self.space, self._parent(ranking), self._parent(ranking), self.rng)
            for _ in range(self.rng.poisson(self.mutation)):
                child = random_neighbour(self.space, child, self.rng)
            if self.objective.noisy or not self.is_taken(child):
                break
        return child

    def _parent(self, ranking: IntArray) -> IntArray:
        """Return the better of two random deployments, (p,); ``ranking`` holds indices of ``sites``, best first."""
        return self.sites[ranking[self.rng.integers(len(ranking), size=2).min()]]


def cross(space: DeploymentSpace, mother: IntArray, father: IntArray, rng: np.random.Generator) -> IntArray:
    """Return a canonical child of two canonical deployments, shape (p,).

    The child has all units that both parents have at the same site. Its other units are drawn without replacement from
    those that only one parent has.
    """
    n = max(mother.max(), father.max()) + 1
    first, second = np.bincount(mother, minlength=n), np.bincount(father, minlength=n)
    shared = np.repeat(np.arange(n), np.minimum(first, second))
    rest = np.repeat(np.arange(n), abs(first - second))
    taken = rng.choice(rest, len(mother) - len(shared), replace=False)
    return space.canonical(np.r_[shared, taken].astype(np.int64))
