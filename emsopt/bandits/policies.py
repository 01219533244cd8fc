r"""Rounds of a combinatorial semi-bandit, oracles, and agents: upper confidence bounds and Thompson sampling.

In each round of Algorithm 1 of "Bayesian Analysis of Combinatorial Gaussian Process Bandits" some base arms are
available. An agent scores them, an oracle picks the best allowed set of them (a *super arm*), the environment reveals
the value of each arm in the set, and the agent learns from the values.

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

Any objects with these methods can be used. `Agent` is an agent for rewards or costs; `TopK` and `ShortestPath` are
oracles; `emsopt.bandits.Navigation` is an environment.

**Scores** of section 2.2, Theorem 3.1 and Algorithm 2 of the paper, for costs as in navigation; for rewards the
confidence width has the opposite sign.

===========  =====================  ==========================================================================
symbol       name                   meaning
===========  =====================  ==========================================================================
μ, σ²        -                      posterior mean and variance of an arm's expected cost
β_t          ``beta``               μ - √β_t σ is the optimistic cost
η_t          -                      Bayes-UCB uses the η_t-quantile of the posterior
ω, ξ         ``omega``, ``xi``      parameters of Bayes-UCB; larger values explore more
|A|          ``n_arms``             number of base arms
ς²           ``noise_variance``     noise variance of an observation
===========  =====================  ==========================================================================

.. math:: U = E[\max(0, X)], \quad X \sim N(\tilde μ, ς^2)

is the rectified index, which makes the costs of shortest paths non-negative; :math:`\tilde μ` is the optimistic cost
or the sample. The paper's text uses the posterior variance here; this module follows its Algorithm 2 and uses the noise
variance. For Bayes-UCB, Algorithm 2 prints the 1/t-quantile; this module uses the η_t-quantile of Theorem 3.1, as the
paper's experiments do.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
from scipy.special import ndtr, ndtri_exp

from ..errors import InputError, _validate
from ..errors._types import ArrayLike, FloatArray, IntArray, Rng
from ..roads.network import RoadNetwork
from .regression import Regression


@dataclass(frozen=True, eq=False)
class Round:
    """One round, with its ``number`` from 1: the chosen arms in the oracle's order, (k,), and their values, (k,)."""

    number: int
    arms: IntArray
    values: FloatArray


Oracle: TypeAlias = Callable[[FloatArray, Any], IntArray]


def play(agent: Any, environment: Any, oracle: Oracle, horizon: int) -> Iterator[Round]:
    """Yield the rounds of a combinatorial semi-bandit, each after the agent has learned from it.

    Parameters
    ----------
    agent, environment, oracle
        Objects with the methods of the table in `emsopt.bandits.policies`.
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
        chosen = np.asarray(arms)[oracle(agent.indices(t, arms), allowed)]
        values = environment.observe(t, chosen)
        agent.update(chosen, values)
        yield Round(t, chosen, values)


class TopK:
    """Oracle that picks the ``size`` allowed arms with the largest scores (``indices``).

    Examples
    --------
    >>> import emsopt as eo
    >>> eo.bandits.TopK(2)([0.3, 0.9, 0.5]).tolist()
    [1, 2]
    """

    def __init__(self, size: int) -> None:
        self.size = _validate.whole_number(size, "size")

    def __call__(self, indices: ArrayLike, allowed: ArrayLike | None = None) -> IntArray:
        """Return the positions of the best arms in ``indices``, (n,), in ascending order, shape (size,).

        ``allowed`` is one boolean per arm, or None to allow all. Raise if too few arms are allowed.
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
        """Return the cheapest path's edges in driving order, shape (k,), by the costs ``indices`` of all edges, (E,).

        ``allowed`` has one truth value per edge, or per edge and then connection. `NoPathError` if none exists.
        """
        closed = None if allowed is None else ~np.asarray(allowed, dtype=bool)  # the network takes what is closed
        return self.net.shortest_path(indices, self.start, self.end, closed=closed)


def rectified_mean(mean: ArrayLike, deviation: ArrayLike) -> FloatArray:
    """Return the mean of max(0, X), elementwise, for Gaussian X of a given mean and standard deviation (at least 0)."""
    mean, deviation = np.broadcast_arrays(np.asarray(mean, dtype=float), np.asarray(deviation, dtype=float))
    # a mean without deviation is certain: z is infinite, with its sign
    z = np.divide(mean, deviation, out=np.where(mean > 0, np.inf, -np.inf), where=deviation > 0)
    # beyond 38 standard deviations the density underflows to 0, which is the intended value
    density = np.exp(-0.5 * np.square(np.clip(z, -40, 40))) / np.sqrt(2 * np.pi)
    return np.maximum(mean * ndtr(z) + deviation * density, 0.0)  # rounding errors can make it negative far below 0


@dataclass(frozen=True)
class UCB:
    """GP-UCB: the index (score) of an arm is its optimistic value, μ - √β_t σ for costs, μ + √β_t σ for rewards.

    ``β_t = factor · 2 log(|A| t² / √(2π))`` in round t with ``|A|`` base arms, or 0 if this is negative. ``factor`` is
    1 in Theorem 3.1 of "Bayesian Analysis of Combinatorial Gaussian Process Bandits", which also tries 0.5.

    Examples
    --------
    >>> round(float(UCB().beta(10, n_arms=5680)), 3)
    24.662
    """

    factor: float = 1.0

    def __post_init__(self) -> None:
        _validate.positive_number(self.factor, "factor", zero=True)

    def beta(self, t: ArrayLike, n_arms: int) -> FloatArray:
        """Return the weight β_t in each round ``t``, an array of the same shape."""
        t = np.asarray(t, dtype=float)
        return self.factor * np.maximum(2 * (math.log(n_arms) + 2 * np.log(t) - 0.5 * np.log(2 * np.pi)), 0.0)


@dataclass(frozen=True)
class BayesUCB:
    """GP-BayesUCB: the index (score) of an arm is its optimistic value, μ - √β_t σ for costs, μ + √β_t σ for rewards.

    ``β_t = 2 erf⁻¹(1 - 2 η_t)²`` with ``η_t = (2π)^(ω/2) / (2 |A|^ω t^ξ)`` in round t with ``|A|`` base arms, as in
    Theorem 3.1 of "Bayesian Analysis of Combinatorial Gaussian Process Bandits". For costs the index is the
    η_t-quantile of the posterior, for rewards the (1 - η_t)-quantile. For η_t of ½ or more, β_t is 0. ω and ξ are
    positive; the paper's experiments use (1, 1) and (1, 0.5), Theorem 3.1 requires ξ > ω > 1.

    Examples
    --------
    >>> round(float(BayesUCB().beta(10, n_arms=5680)), 3)
    16.685
    """

    omega: float = 1.0
    xi: float = 1.0

    def __post_init__(self) -> None:
        _validate.positive_number(self.omega, "omega")
        _validate.positive_number(self.xi, "xi")

    def beta(self, t: ArrayLike, n_arms: int) -> FloatArray:
        """Return the weight β_t in each round ``t``, an array of the same shape."""
        t, omega = np.asarray(t, dtype=float), self.omega
        log_eta = 0.5 * omega * np.log(2 * np.pi) - np.log(2) - omega * math.log(n_arms) - self.xi * np.log(t)
        # √2 erf⁻¹(1 - 2 η) is the normal quantile of 1 - η; the mirrored quantile, by the logarithm of η, keeps full
        # precision, also where η underflows
        return np.square(ndtri_exp(np.minimum(log_eta, -math.log(2))))


@dataclass(frozen=True)
class Thompson:
    """Thompson sampling, as in GP-TS: the index (score) of an arm is its expected value in a sample of the posterior.

    By default each arm is drawn independently from its marginal, as in Algorithm 2 of "Bayesian Analysis of
    Combinatorial Gaussian Process Bandits". With ``joint``, all arms are drawn jointly, which preserves the correlation
    between them and needs a regression with a method ``sample``.

    Examples
    --------
    >>> Thompson(joint=True)
    Thompson(joint=True)
    """

    joint: bool = False


class OptimisticRule(Protocol):
    """Rule whose index (score) of an arm is an optimistic value, μ - √β_t σ for costs and μ + √β_t σ for rewards."""

    def beta(self, t: ArrayLike, n_arms: int, /) -> FloatArray:
        """Return the weight β_t in round t with ``n_arms`` base arms."""


Rule: TypeAlias = UCB | BayesUCB | Thompson


class Agent:
    """Agent for `play`: a regression that learns, and a rule that computes a score per arm from its posterior.

    Parameters
    ----------
    regression : ExactGP, DistrictGP, SparseGP or IndependentArms
    rule : UCB, BayesUCB, Thompson or an object with a method ``beta(t, n_arms)``
    sense : {"max", "min"}
        Whether values are rewards ("max") or costs ("min"). Must agree with the oracle.
    rectify : bool
        Whether to use the rectified means of Algorithm 2 as indices. They are non-negative, as shortest paths require.
        Needs ``sense`` "min".
    shift : array_like, shape (n_arms,), optional
        Subtracted from the value of each arm before it is rectified; see `emsopt.bandits.run`.
    rng : int or Generator, optional
        Source of randomness for Thompson sampling.

    Examples
    --------
    >>> import emsopt as eo
    >>> prior = eo.bandits.Prior([0.0, 0.0], [[1.0, 0.0], [0.0, 1.0]], noise_variance=0.1)
    >>> agent = eo.bandits.Agent(eo.bandits.ExactGP(prior), eo.bandits.UCB(), sense="max")
    >>> agent.update([1], [2.0])
    >>> agent.indices(2, np.arange(2)).argmax()
    np.int64(1)
    """

    def __init__(
        self,
        regression: Regression,
        rule: Rule | OptimisticRule,
        *,
        sense: str = "max",
        rectify: bool = False,
        shift: ArrayLike | None = None,
        rng: Rng = None,
    ) -> None:
        if not (isinstance(rule, Thompson) or hasattr(rule, "beta")):
            raise InputError(f"`rule` must be UCB, BayesUCB, Thompson or an object with a method `beta`; got {rule!r}.")
        if rule == Thompson(joint=True) and not hasattr(regression, "sample"):
            wanted = f"a regression with a method `sample`; {type(regression).__name__} has none"
            raise InputError(f"Joint samples need {wanted}. Use ExactGP, or Thompson(joint=False).")
        self.regression: Any = regression  # Any, because only some regressions have a method `sample`
        self.rule, self.rectify = rule, rectify
        self.sense = _validate.choice(sense, "sense", ("max", "min"))
        if (rectify and sense == "max") or (shift is not None and not rectify):
            got = f"got rectify={rectify}, sense={sense!r}"
            raise InputError(f"`shift` needs rectify=True, and that needs sense='min'; {got}.")
        self._shift = _validate.array_of_length(0.0 if shift is None else shift, "shift", regression.n_arms)
        self.rng = _validate.generator(rng)

    def indices(self, t: int, arms: IntArray) -> FloatArray:
        """Return the index (score) of each of k arms in round t, shape (k,), in the unit of the arms' values."""
        if self.rule == Thompson(joint=True):
            values = self.regression.sample(arms, self.rng)
        else:
            mean, variance = self.regression.predict(arms)
            if isinstance(self.rule, Thompson):
                values = mean + np.sqrt(variance) * self.rng.standard_normal(len(mean))
            else:
                width = np.sqrt(self.rule.beta(t, self.regression.n_arms) * variance)
                values = mean - width if self.sense == "min" else mean + width
        deviation = np.sqrt(self.regression.prior.noise_variance)  # the noise's, by Algorithm 2
        return rectified_mean(values - self._shift[arms], deviation) if self.rectify else values

    def update(self, arms: ArrayLike, values: ArrayLike) -> None:
        """Update the regression with arms and the value of each, shapes (k,)."""
        self.regression.update(arms, values)
