r"""The expected cost if units were busy independently of each other, for many deployments at once.

.. math:: \sum_j w_j \sum_k (1 - ρ) ρ^k c_{j(k)}

j(k) is the unit that atom j prefers after k others, w_j its share of the demand, c the costs of the objective and ρ the
load of a unit. This is the objective of the reliability p-median problem of Snyder and Daskin (2005), and for ρ = 0
that of the p-median problem. Deployments are numbers of units in each twin group of sites, shape (G,).

References
----------
Snyder, L. V. and Daskin, M. S. (2005). Reliability models for facility location: the expected failure cost case.
    Transportation Science 39, 400-416.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from .._types import FloatArray, IntArray
from .objective import Objective

HIGHEST_LOAD, NEGLIGIBLE = 0.95, 1e-3  # bounds on ρ, and on the probability ρ^k beyond which units are left out


class Preferred(NamedTuple):
    """Input of the estimate of the expected cost.

    ``groups``, shape (M, G), lists the twin groups by the preference of each atom, and ``costs`` their costs, times the
    atom's share of the demand; ``shares``, shape (R,), are the probabilities (1 - ρ) ρ^k.
    """

    groups: IntArray
    costs: FloatArray
    shares: FloatArray


def preferred(objective: Objective) -> Preferred:
    """Return the input of the estimate of an objective."""
    city, units = objective.city, objective.units
    first_site = np.unique(city.twin_groups, return_index=True)[1]
    groups = np.ascontiguousarray(np.argsort(city.preference_ranks[first_site], axis=0).T)
    costs = np.take_along_axis(objective.costs[first_site].T, groups, axis=1) * city.demand_shares[:, None]
    load = min(city.offered_load(units), HIGHEST_LOAD)
    depth = np.clip(int(np.ceil(np.log(NEGLIGIBLE) / np.log(load))), 1, units)
    return Preferred(groups, costs, (1 - load) * load ** np.arange(depth))


@njit(cache=True, nogil=True)
def expected_changes(of: Preferred, counts: IntArray) -> FloatArray:
    """Return how the estimate changes if a unit moves from group g to group h, shape (G, G).

    Entries are without meaning if g holds no unit or g is h.
    """
    groups, costs = of.groups, of.costs
    (M, G), R = groups.shape, len(of.shares)
    q = np.append(of.shares, 0.0)  # a unit beyond the last place counts for nothing
    change, leave, enter = np.zeros((G, G)), np.zeros(G), np.zeros(G)
    unit, paid = np.empty(R + 1, np.int64), np.empty(R + 1)
    later, sooner = np.zeros(R + 2), np.zeros(R + 2)  # sums over the first units if each comes one place later, sooner
    for j in range(M):
        n = last = 0
        while n <= R and last < G:  # one unit more than counts: it moves up if another leaves
            for _ in range(min(counts[groups[j, last]], R + 1 - n)):
                unit[n], paid[n] = groups[j, last], costs[j, last]
                n += 1
            last += 1
        for k in range(n):
            later[k + 1] = later[k] + ((q[k + 1] - q[k]) * paid[k] if k < R else 0.0)
            sooner[k + 1] = sooner[k] + ((q[k - 1] - q[k]) * paid[k] if k else 0.0)
        top = min(n, R)
        for a in range(top):
            if a + 1 == n or unit[a + 1] != unit[a]:  # the last of a group's units stands for all, at equal cost
                leave[unit[a]] += sooner[n] - sooner[a + 1] - q[a] * paid[a]  # those behind come one place sooner
        b = 0
        for r in range(last):
            h, cost = groups[j, r], costs[j, r]
            entry = q[b] * cost + later[top] - later[b] if b < R else 0.0  # h at b, those behind later
            enter[h] += entry
            for a in range(top):
                if a + 1 < n and unit[a + 1] == unit[a]:
                    continue
                gone = sooner[n] - sooner[a + 1] - q[a] * paid[a]
                if b <= a:  # only units between the two places are shifted, by one
                    both = q[b] * cost + later[a] - later[b] - q[a] * paid[a]
                else:
                    both = q[b - 1] * cost + sooner[b] - sooner[a + 1] - q[a] * paid[a]
                change[unit[a], h] += both - gone - entry  # less what is added below for each move alone
            b = min(b + counts[h], n)
    for g in range(G):
        for h in range(G):
            change[g, h] += leave[g] + enter[h]
    return change
