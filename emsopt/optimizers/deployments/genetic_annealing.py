"""Competitors of the papers' methods on deployments: a genetic algorithm and simulated annealing.

**Genetic.** Geroliminis, Kepaptsoglou and Karlaftis (2011), European Journal of Operational Research 210, 287-300,
breed deployments that a hypercube model evaluates. This implementation follows that description, not their code. They
replace a generation at a time; here each child competes immediately (steady state), as evaluations are expensive.

**Simulated annealing.** A move that increases the value by Δ is accepted with probability exp(-Δ / T) (Metropolis), and
T falls as T₀ / k with the number k of evaluations after the initial ones, a schedule that needs no budget in advance
(Szu and Hartley 1987).
"""

from typing import Any

import numpy as np

from ...city.deployment_space import DeploymentSpace
from ...errors._types import IntArray
from ...evaluators.objective import Objective
from ._base import Optimizer
from .swaps import draw_neighbour

ATTEMPTS = 20  # known children in a row, after which a random deployment is asked for: the population is exhausted


class Genetic(Optimizer):
    """Genetic algorithm that breeds the best deployments observed so far.

    A parent is the better of two random members of the population (binary tournament). A child keeps the sites that
    its parents share and takes the others from either parent at random, so that it is feasible if both parents are.

    Examples
    --------
    >>> import emsopt as eo
    >>> objective = eo.Objective(eo.datasets.grid_city(n_sites=6, units=2, rng=1), 2)
    >>> len(eo.optimizers.Genetic(objective, rng=0).ask())
    2
    """

    population = 20  # deployments that may become parents, and random ones at the start
    mutation = 0.5  # mean number of units of a child relocated at random, to keep deployments diverse

    def _propose(self) -> IntArray:
        if len(self.values) < self.population:
            return self.draw()
        ranking = np.argsort(self.values, kind="stable")[: self.population]
        for _ in range(ATTEMPTS):
            child = crossover(self.space, self._draw_parent(ranking), self._draw_parent(ranking), self.rng)
            for _ in range(self.rng.poisson(self.mutation)):
                child = draw_neighbour(self.space, child, self.rng)
            if self.is_free(child):
                break
        return child

    def _draw_parent(self, ranking: IntArray) -> IntArray:
        """Return the better of two random deployments, (p,), of those whose indices are in ``ranking``, best first."""
        return self.sites[ranking[self.rng.integers(len(ranking), size=2).min()]]  # the lower rank is the better


def crossover(space: DeploymentSpace, mother: IntArray, father: IntArray, rng: np.random.Generator) -> IntArray:
    """Return a child, (p,), of two deployments, (p,): their shared sites, and others from either one at random."""
    n = max(mother.max(), father.max()) + 1
    first, second = np.bincount(mother, minlength=n), np.bincount(father, minlength=n)
    shared = np.repeat(np.arange(n), np.minimum(first, second))
    rest = np.repeat(np.arange(n), abs(first - second))
    taken = rng.choice(rest, len(mother) - len(shared), replace=False)
    return space.canonical(np.r_[shared, taken].astype(np.int64))


KNOWN_STEPS = 100  # steps in a row to observed deployments, which need no evaluation, before a restart


class SimulatedAnnealing(Optimizer):
    """Simulated annealing from the best of ten random deployments; each step relocates one unit.

    The temperature after k further evaluations is T₀ / k; T₀ is the standard deviation of the ten values. Observed
    deployments are visited with their known values; if ``KNOWN_STEPS`` in a row lead to no new one, the walk restarts.
    The method needs thousands of cheap evaluations.
    """

    initial = 10

    def __init__(self, objective: Objective, **options: Any) -> None:
        super().__init__(objective, **options)
        self.position: IntArray | None = None
        self.height = np.inf

    def _propose(self) -> IntArray:
        if self.position is None or len(self.values) < self.initial:
            return self.draw()
        for _ in range(KNOWN_STEPS):
            sites = draw_neighbour(self.space, self.position, self.rng)
            if self.is_free(sites):
                return sites
            known = self.taken[tuple(sites.tolist())]
            if known is not None:
                self._accept_or_reject(sites, known)
        self.height = np.inf  # no new deployment was found: restart from the next random one, whatever its value
        return self.draw()

    def _learn(self, sites: IntArray, value: float) -> None:
        if len(self.values) <= self.initial:
            self.position, self.height = self.best
        else:
            self._accept_or_reject(sites, value)

    def _accept_or_reject(self, sites: IntArray, value: float) -> None:
        """Move to ``sites`` if they are no worse than the current deployment, else with probability exp(-Δ / T)."""
        climb = value - self.height
        temperature = float(np.std(self.values[: self.initial])) / max(1, len(self.values) - self.initial)  # T₀ / k
        if climb <= 0 or (temperature > 0 and self.rng.random() < np.exp(-climb / temperature)):
            self.position, self.height = sites, value
