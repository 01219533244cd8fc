"""The environment of the navigation experiment: a route, and energies of road edges that the agent does not know.

From "Bayesian Analysis of Combinatorial Gaussian Process Bandits", section 4. `emsopt.bandits.navigation` explains the
rectified costs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np

from .. import _validate
from .._running.checkpoint import run_seed, stream
from .._types import ArrayLike, BoolArray, FloatArray, IntArray, Rng
from ..errors import InputError
from ..roads.network import RoadNetwork
from .framework import ShortestPath
from .policies import rectified_mean
from .prior import Prior

Closed: TypeAlias = Iterable[Any] | Callable[[int], Iterable[Any]] | None

TRUTH, NOISE, AGENT = range(3)  # the random streams derived from a run's seed


class Navigation:
    """The environment: a route through a road network, with energies per edge unknown to the agent.

    Parameters
    ----------
    net : RoadNetwork
    start, end : int or str
        First and last edge of the route, by index or id.
    prior : Prior
        One arm per edge and hour, from `navigation_prior`.
    expected : array_like, shape (n,), optional
        Expected energy of every arm, Wh. Default: drawn from the prior.
    closed : array_like or callable, optional
        Closed edges as indices, ids or booleans, and closed turns as tuples of two edges (from, to); or a function
        of the round's number that returns them. The function is called once per round, and again if an earlier round
        is asked for.
    shift : array_like, shape (E,), optional
        Wh to subtract from each edge before rectifying its cost, see `run`.
    rng : int or Generator, optional
        Source of randomness for the expected energies and the noise. Both are the same for every agent.

    Examples
    --------
    >>> import emsopt as eo
    >>> net = eo.roads.grid_roads(4, 4, jitter=0.2, rng=0)
    >>> environment = eo.bandits.Navigation(net, "r0c0-r0c1", "r3c2-r3c3", eo.bandits.navigation_prior(net), rng=0)
    >>> path = environment.best_path(1)
    >>> len(path), len(environment.observe(1, path))
    (6, 6)
    """

    def __init__(
        self,
        net: RoadNetwork,
        start: int | str,
        end: int | str,
        prior: Prior,
        *,
        expected: ArrayLike | None = None,
        closed: Closed = None,
        shift: ArrayLike | None = None,
        rng: Rng = None,
    ) -> None:
        hours, odd = divmod(prior.n_arms, net.n_edges)
        if odd:
            raise InputError(
                f"`prior` must have one arm per edge and hour, a multiple of {net.n_edges}; got {prior.n_arms} arms."
            )
        self.net, self.hours, self.seed = net, hours, run_seed(rng)
        if expected is None:
            expected = prior.draw(rng=stream(self.seed, TRUTH))[:, 0]
        self.expected = _validate.real_array(expected, "expected", (prior.n_arms,), unit="Wh")
        self._deviation = np.sqrt(prior.noise_variance)
        self.shift = np.tile(_validate.one_each(0.0 if shift is None else shift, "shift", net.n_edges), hours)
        self.costs = rectified_mean(self.expected - self.shift, self._deviation)
        self.oracle = ShortestPath(net, start, end)
        always = self._open(() if closed is None or callable(closed) else closed)
        self._is_open = lru_cache(maxsize=1)(lambda t: self._open(closed(t)) if callable(closed) else always)
        self._best: dict[tuple[int, bytes], IntArray] = {}

    def available(self, t: int) -> tuple[IntArray, BoolArray]:
        """Return the arms of round t, one per edge, and whether each edge and then each connection is open."""
        first = (t - 1) % self.hours * self.net.n_edges
        return np.arange(first, first + self.net.n_edges), self._is_open(t)

    def observe(self, t: int, arms: IntArray) -> FloatArray:
        """Return the observed energy of each given arm in round t, Wh."""
        noise = stream(self.seed, NOISE, t).standard_normal(len(self.expected))
        return self.expected[arms] + self._deviation * noise[arms]

    def best_path(self, t: int) -> IntArray:
        """Return the edges of the path of least rectified cost, E[max(0, f - shift + noise)], among those open."""
        arms, is_open = self.available(t)
        key = int(arms[0]), is_open.tobytes()
        if key not in self._best:
            self._best[key] = self.oracle(self.costs[arms], is_open)
        return self._best[key]

    def _open(self, closed: Iterable[Any]) -> BoolArray:
        return ~self.net.closures(closed)
