"""Simulated annealing: a random walk by single relocations that accepts worse values less and less often.

A move that increases the value by Δ is accepted with probability exp(-Δ / T) (Metropolis), and T falls as T₀ / k with
the number k of evaluations after the initial ones, a schedule that needs no budget in advance (Szu and Hartley 1987).
"""

import numpy as np

from ..._types import IntArray, Rng
from ...evaluators.objective import Objective
from .base import Optimizer
from .swaps import random_neighbour

STEPS_ON_KNOWN_GROUND = 100  # moves tried among deployments already observed before a restart


class SimulatedAnnealing(Optimizer):
    """Walk from the best of a few random deployments, one relocated unit at a time.

    Parameters
    ----------
    objective : Objective
    rng : int or Generator, optional

    Notes
    -----
    The walk starts from the best of ten random deployments, with the standard deviation of their values as T₀. It can
    visit deployments already observed, with their known values and without asking for them again. If it
    finds no others, it restarts from a random one. The method needs thousands of cheap evaluations; with a hundred its
    results are poor.
    """

    initial = 10

    def __init__(self, objective: Objective, *, rng: Rng = None) -> None:
        super().__init__(objective, rng=rng)
        self.position: IntArray | None = None
        self.height = np.inf

    def _temperature(self) -> float:
        return float(np.std(self.values[: self.initial])) / max(1, len(self.values) - self.initial)

    def _propose(self) -> IntArray:
        if self.position is None or len(self.values) < self.initial:
            return self.draw()
        for _ in range(STEPS_ON_KNOWN_GROUND):
            sites = random_neighbour(self.space, self.position, self.rng)
            if self.objective.noisy or not self.is_taken(sites):
                return sites
            known = self.taken[tuple(sites.tolist())]
            if known is not None:
                self._step(sites, known)
        self.height = np.inf  # no new deployment was found: restart from the next random one, whatever its value
        return self.draw()

    def _learn(self, sites: IntArray, value: float) -> None:
        if len(self.values) <= self.initial:
            self.position, self.height = self.best
        else:
            self._step(sites, value)

    def _step(self, sites: IntArray, value: float) -> None:
        """Move to ``sites`` if it is no worse than the current deployment, or else with Metropolis's probability."""
        climb, temperature = value - self.height, self._temperature()
        if climb <= 0 or (temperature > 0 and self.rng.random() < np.exp(-climb / temperature)):
            self.position, self.height = sites, value
