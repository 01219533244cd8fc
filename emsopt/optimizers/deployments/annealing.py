"""Simulated annealing: a random walk over single relocations that climbs ever more rarely.

A move that makes things worse by Δ is taken with probability exp(-Δ / T) (Metropolis), and T falls as T₀ / k with the
number k of steps evaluated: a schedule that needs no budget to be named beforehand (Szu and Hartley 1987).
"""

import numpy as np

from ... import _validate
from .base import Optimizer
from .swaps import random_neighbour

STEPS_ON_KNOWN_GROUND = 100  # moves tried among deployments already told, before it starts anew


class SimulatedAnnealing(Optimizer):
    """Walk from the best of a few random deployments, one relocated unit at a time.

    Parameters
    ----------
    objective : Objective
    initial : int
        Random deployments to start from.
    temperature : float, optional
        T₀, in the objective's unit; left out: the standard deviation of the initial values.
    rng : int or Generator, optional

    Notes
    -----
    The walk passes over deployments already told without asking again, at their known values, and starts anew where
    it is frozen among them. It is made for thousands of cheap evaluations; with a hundred it is a poor descent.
    """

    def __init__(self, objective, *, initial=10, temperature=None, rng=None):
        super().__init__(objective, rng=rng)
        self.initial = _validate.whole_number(initial, "initial")
        self.start_temperature = temperature
        if temperature is not None:
            self.start_temperature = _validate.positive_number(temperature, "temperature", zero=True)
        self.position, self.height = None, np.inf

    def _temperature(self):
        start = self.start_temperature
        if start is None:
            start = np.std(self.values[: self.initial])
        return start / max(1, len(self.values) - self.initial)

    def _propose(self):
        if len(self.values) < self.initial:
            return self.draw()
        for _ in range(STEPS_ON_KNOWN_GROUND):
            sites = random_neighbour(self.space, self.position, self.rng)
            if self.objective.noisy or not self.is_taken(sites):
                return sites
            known = self.taken[tuple(sites.tolist())]
            if known is not None:
                self._step(sites, known)
        self.height = np.inf  # frozen in: go on from wherever this leads
        return self.draw()

    def _learn(self, sites, value):
        if len(self.values) <= self.initial:
            self.position, self.height = self.best
        else:
            self._step(sites, value)

    def _step(self, sites, value):
        """Go there if it is no worse, or by Metropolis's chance."""
        climb, temperature = value - self.height, self._temperature()
        if climb <= 0 or (temperature > 0 and self.rng.random() < np.exp(-climb / temperature)):
            self.position, self.height = sites, value
