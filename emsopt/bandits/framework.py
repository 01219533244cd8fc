"""Algorithm 1: the rounds of any combinatorial semi-bandit with volatile arms.

Each round some base arms are available; an agent scores them, an oracle picks the best allowed set of them (a *super
arm*), the environment shows what each arm in it gave, and the agent learns. From "Bayesian Analysis of Combinatorial
Gaussian Process Bandits".

===========  =========================================  ========================================================
line         who                                        what it is
===========  =========================================  ========================================================
2            ``environment.available(t)``               A_t, indices of the arms there are, shape (n,); and S_t,
                                                        whatever the oracle needs to know which sets are allowed
3            ``agent.indices(t, arms)``                 U_t, one index an available arm, shape (n,)
4            ``oracle(indices, allowed)``               a_t, positions among the available arms, shape (k,)
5            ``environment.observe(t, arms)``           r_t, one value a chosen arm, shape (k,)
6            ``agent.update(arms, values)``             θ_t, the agent's posterior
===========  =========================================  ========================================================

Any objects with these methods will do. `emsopt.bandits.Agent` is an agent for rewards or costs; `TopK` and
`ShortestPath` are oracles; `emsopt.bandits.Navigation` is an environment.
"""

from dataclasses import dataclass

import numpy as np

from .. import _validate
from ..errors import InputError


@dataclass(frozen=True, eq=False)
class Round:
    """What happened in a round.

    Attributes
    ----------
    number : int
        t, from 1.
    arms : ndarray of int, shape (k,)
        Arms chosen, in the oracle's order.
    values : ndarray, shape (k,)
        What each of them gave.
    """

    number: int
    arms: np.ndarray
    values: np.ndarray


def play(agent, environment, oracle, horizon):
    """Yield the rounds of Algorithm 1, one at a time: stop whenever you like.

    Parameters
    ----------
    agent, environment, oracle
        See the table above.
    horizon : int
        T, number of rounds.

    Yields
    ------
    Round
        After the agent has learnt from it.

    Examples
    --------
    Which two of five arms pay most?

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
    """Oracle for "any k arms": those with the largest indices (smallest, if they are costs).

    Parameters
    ----------
    size : int
        k.
    sense : {"max", "min"}
    """

    def __init__(self, size, *, sense="max"):
        self.size = _validate.whole_number(size, "size")
        self.sense = _validate.choice(sense, "sense", ("max", "min"))

    def __call__(self, indices, allowed=None):
        """Return positions of the best arms; ``allowed`` is one truth value an arm, or None for all."""
        if allowed is not None and np.shape(allowed) != np.shape(indices):
            msg = f"`allowed` must hold one truth value an arm, shape {np.shape(indices)}; got {np.shape(allowed)}."
            raise InputError(msg)
        scores = np.array(indices if self.sense == "max" else np.negative(indices), dtype=float)
        usable = len(scores) if allowed is None else np.count_nonzero(allowed)
        if usable < self.size:
            msg = f"{self.size} arms are to be chosen, but only {usable} are allowed. Choose fewer."
            raise InputError(msg)
        if allowed is not None:
            scores[~np.asarray(allowed, dtype=bool)] = -np.inf
        return np.sort(np.argpartition(-scores, self.size - 1)[: self.size])


class ShortestPath:
    """Oracle for paths: the cheapest legal way from one road edge to another; indices are costs, none negative.

    Parameters
    ----------
    net : RoadNetwork
    start, end : int or str
        Edges, by index or id.
    """

    def __init__(self, net, start, end):
        self.net = net
        self.start, self.end = (
            int(net.edges([edge], name)[0]) for edge, name in ((start, "start"), (end, "end"))
        )

    def __call__(self, indices, allowed=None):
        """Return the edges of the path in driving order; ``allowed`` is one truth value an edge, or None for all."""
        closed = None if allowed is None else ~np.asarray(allowed, dtype=bool)
        return self.net.shortest_path(indices, self.start, self.end, closed=closed)

    def allows(self, path, allowed=None):
        """Return whether edges, shape (k,), are a legal path from start to end by edges that are ``allowed``."""
        edges, n = np.asarray(path, dtype=np.intp), self.net.n_edges
        if not (len(edges) and edges.min() >= 0 and edges.max() < n):
            return False
        ends = (edges[0], edges[-1]) == (self.start, self.end)
        is_open = allowed is None or np.asarray(allowed, dtype=bool)[edges].all()
        turns = np.isin(n * edges[:-1] + edges[1:], self.net.connections @ [n, 1])
        return bool(ends and is_open and turns.all())
