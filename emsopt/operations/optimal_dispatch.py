r"""Optimal dispatch of a small fleet, by a Markov decision process, to compare other dispatch rules with.

==========  =============================================================================
symbol      meaning
==========  =============================================================================
s           state: the set of busy units, one bit per unit
π(s, j)     free unit that is sent to a call of atom j
c           cost of a call: the metric's cost of the unit's site and atom
g           mean cost per minute under π
h(s)        relative cost of state s
==========  =============================================================================

The model is the hypercube's with loss: Poisson calls, exponential service with a mean for each unit, and units back at
their sites at once. A call is answered if any unit is free. Policy iteration (Howard 1960) begins with the policy of
sending the preferred free unit. It computes g and h for a policy, then sends to each call the unit with the least
c + h(s ∪ unit), until nothing changes: the policy is then optimal.

Carter, G. M., Chaiken, J. M. and Ignall, E. (1972). Response areas for two emergency units. Operations Research 20(3),
    571-594. (The closest unit is not always the best one.)
Howard, R. A. (1960). Dynamic Programming and Markov Processes. MIT Press.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..city import City
from ..city.deployment_space import check_sites
from ..errors import InputError
from ..errors._types import FloatArray, IntArray, Sites
from ..evaluators.metrics import Metric, metric_costs

MOST_UNITS = 10  # a step solves 2^p dense equations


@dataclass(frozen=True, eq=False, repr=False)
class OptimalDispatch:
    """The optimal dispatch policy, compared with always sending the preferred free unit (by default the closest).

    Attributes
    ----------
    cost, preferred_cost : float
        Mean cost of an answered call, of the optimal policy and of always sending the preferred free unit.
    policy : ndarray of int, shape (2^p, M)
        Unit to send in each state (bit i is set if unit i is busy) to each atom; -1 if all are busy.
    loss_probability : float
        Share of calls lost by the optimal policy.
    iterations : int
        Number of steps of policy iteration.
    """

    cost: float
    preferred_cost: float
    policy: IntArray
    loss_probability: float
    iterations: int

    @property
    def gap(self) -> float:
        """Excess cost of sending the preferred unit, as a fraction of the optimal cost."""
        return self.preferred_cost / self.cost - 1 if self.cost else 0.0

    def __repr__(self) -> str:
        more = f"{100 * self.gap:.2f} % more"
        return f"OptimalDispatch(cost {self.cost:.4f}, preferred unit {self.preferred_cost:.4f}: {more})"


def optimal_dispatch(city: City, sites: Sites, metric: Metric = "mean_response") -> OptimalDispatch:
    """Find the dispatch policy with the lowest mean cost of a call, for at most ten units.

    A lost call costs as much as the largest cost of an answer: otherwise a policy could lower the mean cost by losing
    costly calls, if service times differ.

    Parameters
    ----------
    city : City
        A unit's mean service time is that of its site over all calls.
    sites : array_like of int, shape (p,)
    metric : str, tuple or mapping
        As for `Objective`.

    Examples
    --------
    >>> import emsopt as eo
    >>> city = eo.datasets.load_st_paul().with_offered_load(0.5, units=5)
    >>> eo.operations.optimal_dispatch(city, [1, 4, 9, 12, 15], ("late", 8.0)).gap > 0.01
    True
    """
    sites = check_sites(city, sites)
    p = len(sites)
    if p > MOST_UNITS:
        raise InputError(f"optimal dispatch is for at most {MOST_UNITS} units, as it has 2^p states; got {p}.")
    preferred = np.argsort(city.preference_ranks[sites], axis=0, kind="stable")  # stable: ties by number of the unit
    costs, rates = metric_costs(city, metric)[sites], city.arrival_rates / 60
    ends = 1 / (city.service_times[sites] @ city.demand_shares)
    states = np.arange(1 << p)
    busy = (states[:, None] >> np.arange(p)) & 1 == 1

    policy = np.full((len(states), city.n_atoms), -1)
    for unit in preferred[::-1]:  # the most preferred free unit is written last
        policy = np.where(busy[:, unit], policy, unit)
    following = states[:, None] | (1 << np.arange(p))  # state after unit i is sent
    dearest = costs.max()

    def solve(policy: IntArray) -> tuple[FloatArray, float, float]:
        """Return, for a policy, the relative costs h of all states, the mean cost of an answered call, and the loss."""
        flow, cost = np.zeros((len(states), len(states))), np.zeros(len(states))
        for s in states[:-1]:
            unit = policy[s]
            np.add.at(flow[s], following[s][unit], rates)
            cost[s] = (rates * costs[unit, np.arange(city.n_atoms)]).sum()
        for i in range(p):
            flow[states[busy[:, i]], states[busy[:, i]] ^ (1 << i)] += ends[i]
        answered, cost[-1] = cost.copy(), rates.sum() * dearest  # so that losing calls never pays
        generator = flow - np.diag(flow.sum(axis=1))
        # Q h + cost = g, with h = 0 where all are free
        *h, _ = np.linalg.solve(np.column_stack([generator[:, 1:], -np.ones(len(states))]), -cost)
        # The balance equations add up to 0: the sum of the probabilities takes the place of one.
        chance = np.linalg.solve(np.vstack([generator.T[:-1], np.ones(len(states))]), np.eye(len(states))[-1])
        lost = float(chance[-1])
        return np.array([0.0, *h]), float(chance @ answered / (rates.sum() * (1 - lost))), lost

    h, preferred_cost, lost = solve(policy)
    cost, iterations = preferred_cost, 0
    while True:
        ahead = np.where(busy, np.inf, h[following])[:, :, None] + costs  # infinite: a busy unit cannot be sent
        better = ahead[:-1].argmin(axis=1)
        now = np.take_along_axis(ahead[:-1], policy[:-1][:, None], axis=1)[:, 0]
        change = ahead[:-1].min(axis=1) < now - 1e-10 * max(1.0, np.abs(h).max())  # gains by rounding never end
        if not change.any():
            return OptimalDispatch(cost, preferred_cost, policy, lost, iterations)
        policy[:-1][change] = better[change]
        iterations += 1
        h, cost, lost = solve(policy)
