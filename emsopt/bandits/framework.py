"""The rounds of any combinatorial semi-bandit whose available arms may change from round to round: Algorithm 1.

In each round some base arms are available. An agent scores them, an oracle picks the best allowed set of them
(a *super arm*), the environment reveals the value of each arm in the set, and the agent learns from the
values. From "Bayesian Analysis of Combinatorial Gaussian Process Bandits".

===========  =========================================  ======================================================
line         call                                       result
===========  =========================================  ======================================================
2            ``environment.available(t)``               A_t, indices of the available arms, shape (n,); and
                                                        S_t, which tells the oracle the allowed sets
3            ``agent.indices(t, arms)``                 U_t, one score per available arm, shape (n,)
4            ``oracle(indices, allowed)``               a_t, positions among the available arms, shape (k,)
5            ``environment.observe(t, arms)``           r_t, one value per chosen arm, shape (k,)
6            ``agent.update(arms, values)``             θ_t, the agent's posterior
===========  =========================================  ======================================================

Any objects with these methods can be used. `emsopt.bandits.Agent` is an agent for rewards or costs; `TopK`
and `ShortestPath` are oracles; `emsopt.bandits.Navigation` is an environment.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from .. import _validate
from .._types import ArrayLike, FloatArray, IntArray
from ..errors import InputError
from ..roads.network import RoadNetwork


@dataclass(frozen=True, eq=False)
class Round:
    """Round ``number``, from 1: the chosen arms in the oracle's order, and the value of each, shapes (k,)."""

    number: int
    arms: IntArray
    values: FloatArray


Oracle: TypeAlias = Callable[[FloatArray, Any], IntArray]


def play(agent: Any, environment: Any, oracle: Oracle, horizon: int) -> Iterator[Round]:
    """Yield the rounds of Algorithm 1, each after the agent has been updated; the caller may stop at any round.

    Parameters
    ----------
    agent, environment, oracle
        Objects with the methods of the table in `emsopt.bandits.framework`.
    horizon : int
        Number of rounds T.

    Examples
    --------
    >>> from emsopt import bandits
    >>> class Arms:
    ...     rewards, rng = np.array([0.1, 0.9, 0.2, 0.8, 0.3]), np.random.default_rng(0)
    ...     def available(self, t):
    ...         return np.arange(5), None
    ...     def observe(self, t, arms):
    ...         return self.rewards[arms] + self.rng.normal(0, 0.1, len(arms))
    >>> prior = bandits.Prior(np.zeros(5), np.eye(5), noise_variance=0.01)
    >>> agent = bandits.Agent(bandits.ExactGP(prior), bandits.Thompson(), sense="max", rng=0)
    >>> rounds = list(bandits.play(agent, Arms(), bandits.TopK(2), horizon=30))
    >>> sorted(rounds[-1].arms.tolist())
    [1, 3]
    """
    horizon = _validate.whole_number(horizon, "horizon")
    for t in range(1, horizon + 1):
        arms, allowed = environment.available(t)
        indices = agent.indices(t, arms)
        chosen = np.asarray(arms)[oracle(indices, allowed)]
        values = environment.observe(t, chosen)
        agent.update(chosen, values)
        yield Round(t, chosen, values)


class TopK:
    """Oracle that picks the k allowed arms with the largest scores (``indices``).

    Parameters
    ----------
    size : int
        Number of arms k.

    Examples
    --------
    >>> import emsopt as eo
    >>> oracle = eo.bandits.TopK(2)
    >>> sorted(oracle([0.3, 0.9, 0.5]).tolist())
    [1, 2]
    """

    def __init__(self, size: int) -> None:
        self.size = _validate.whole_number(size, "size")

    def __call__(self, indices: ArrayLike, allowed: ArrayLike | None = None) -> IntArray:
        """Return the positions of the k best arms in ``indices``, in ascending order, shape (k,).

        ``allowed`` is one boolean per arm, or None to allow all. Raise if fewer than k arms are allowed.
        """
        shape = np.shape(indices)
        usable = np.ones(shape, bool) if allowed is None else np.asarray(allowed, dtype=bool)
        if usable.shape != shape:
            raise InputError(f"`allowed` must hold one boolean per arm, shape {shape}; got shape {usable.shape}.")
        if usable.sum() < self.size:
            raise InputError(f"Cannot choose {self.size} arms: only {usable.sum()} are allowed.")
        costs = np.where(usable, np.negative(indices), np.inf)
        return np.sort(np.argpartition(costs, self.size - 1)[: self.size])  # linear in n, which a full sort is not


class ShortestPath:
    """Oracle that finds the cheapest legal path from the road edge ``start`` to ``end``, given by index or id."""

    def __init__(self, net: RoadNetwork, start: int | str, end: int | str) -> None:
        self.net = net
        self.start, self.end = net.edges([start], "start").item(), net.edges([end], "end").item()

    def __call__(self, indices: ArrayLike, allowed: ArrayLike | None = None) -> IntArray:
        """Return the path's edges in driving order, shape (k,), where ``indices`` are the costs of all edges.

        ``allowed`` is one boolean per edge, or per edge and connection. Raise if there is no legal path of these.
        """
        closed = None if allowed is None else ~np.asarray(allowed, dtype=bool)  # the network takes what is closed
        return self.net.shortest_path(indices, self.start, self.end, closed=closed)
