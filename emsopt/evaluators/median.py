r"""The p-median problem: the best sites if all units were always free, and the bounds that follow from it.

.. math:: \min_{|S| = p} \sum_j w_j \min_{i \in S} (\tau_i + t_{ij})

is problem (4a)-(4f) of "Optimizing Server Locations in Spatial Queues". S is the set of chosen sites, w_j the demand
share of atom j, τ_i the turnout and t_ij the travel time from site i. Its optimum is a lower bound on the mean response
of any deployment at any load (Theorem 2), because a call is answered by the closest unit at best. The mean response of
the p-median deployment, from a queueing evaluator, is an upper bound on the best mean response (Lemma 3). The model is
good if units are seldom busy. Under load it spreads units too thinly, and sees no use in a second unit at a station.
"""

from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np

from ..city.city import City
from ..city.deployment_space import DeploymentSpace
from ..errors._types import IntArray
from ._interchange import matrix_costs
from ._p_median import common_divisor, solve_p_median
from ._stopping import end_time
from .by_name import evaluate


@dataclass(frozen=True, eq=False, repr=False)
class Location:
    """Best sites of a fleet whose units are always free.

    Attributes
    ----------
    sites : ndarray of int, shape (p,)
        Site of each unit, in ascending order.
    objective, lower_bound : float
        Mean response time from the closest unit, min, and a lower bound on it over all deployments of the fleet.
    gap : float
        (objective - lower_bound) / objective; 0 if the sites are proven to be optimal.
    assignment : ndarray of int, shape (M,)
        Site, one of ``sites``, that serves each atom: the closest; among equally close sites, the one listed first.
    """

    sites: IntArray
    objective: float
    lower_bound: float
    gap: float
    assignment: IntArray

    @property
    def proven(self) -> bool:
        """Whether the sites are proven to be optimal."""
        return self.gap == 0

    def __repr__(self) -> str:
        proof = "optimal" if self.proven else f"within {self.gap:.2%} of the optimum"
        return f"<Location: sites {self.sites.tolist()}, mean response {self.objective:.4g} min, {proof}>"


@dataclass(frozen=True, eq=False, repr=False)
class Bounds:
    """Lower and upper bound on the smallest mean response that a fleet can reach.

    Attributes
    ----------
    lower, upper : float
        Mean response of the p-median deployment if all units were always free, and under load, min.
    sites : ndarray of int, shape (p,)
        The p-median deployment.
    evaluator : str
        Name of the evaluator that computed ``upper``.
    """

    lower: float
    upper: float
    sites: IntArray
    evaluator: str

    def __repr__(self) -> str:
        return f"<Bounds ({self.evaluator}): mean response from {self.lower:.3f} to {self.upper:.3f} min>"


def p_median(city: City, units: int | DeploymentSpace, *, time_limit: float | None = None) -> Location:
    """Find the sites with the smallest mean response time if every unit is always free.

    Parameters
    ----------
    city : City
    units : int or DeploymentSpace
        Fleet size p, with at most one unit per listed site, or the allowed deployments.
    time_limit : float, optional
        Seconds after which the best sites found are returned, with the remaining gap. The first call after an
        installation compiles code, which takes some seconds more.

    Notes
    -----
    Any of several optima may be returned; of interchangeable sites, those with the lowest indices are used.

    The method is a Lagrangian branch and bound with a tolerance of 1e-10 of the mean response from random sites. It
    takes milliseconds for a city of 70 atoms and about a second for a thousand sites and atoms. Times without geometry
    (such as random numbers) and regular grids of equal demand take longest. Ctrl-C raises KeyboardInterrupt.

    Examples
    --------
    >>> from emsopt import City
    >>> city = City([1, 2, 4], [[0, 6, 9], [4, 0, 5], [9, 5, 0]], turnout_times=1, service_times=30)
    >>> p_median(city, 2)
    <Location: sites [1, 2], mean response 1.571 min, optimal>
    """
    space, end = DeploymentSpace.of(city, units), end_time(time_limit)
    listed, counts = np.flatnonzero(space.site_capacities), np.flatnonzero(city.demand_shares)
    times = city.response_times[np.ix_(listed, counts)]
    numbers = dict[bytes, int]()  # of stations: sites with equal rows are one, which the search need not tell apart
    station = np.array([numbers.setdefault(blake2b(row).digest(), len(numbers)) for row in times])
    first = np.unique(station, return_index=True)[1]
    times = times[first] if len(first) < len(times) else times  # no copy of a large matrix in vain
    forced = np.zeros(len(times), dtype=np.bool_)
    forced[station[np.isin(listed, space.pinned)]] = True
    stations = min(forced.sum() + space.units - len(space.pinned), len(times))  # a second unit at one adds nothing
    grain = common_divisor(city.arrival_rates[counts]) / city.total_rate  # values differ by multiples of `grain`
    grain *= common_divisor(times - times.min(axis=0)) if grain else 0.0  # the least time of an atom cancels out
    costs = matrix_costs(times, city.demand_shares[counts])
    chosen, bound = solve_p_median(costs, stations, forced, grain, end)
    sites = np.r_[space.pinned, listed[first][chosen & ~forced]].astype(np.int64)  # pinned sites keep their own index
    sites = space.complete_deployment(sites)
    times = city.response_times[sites]
    objective = float(city.demand_shares @ times.min(axis=0))
    bound = float(min(bound, objective))  # infinite if the sites are optimal
    gap = (objective - bound) / objective if objective > bound else 0.0
    return Location(sites, objective, bound, gap, sites[times.argmin(axis=0)])


def bounds(city: City, units: int | DeploymentSpace, evaluator: str | None = None, **options: Any) -> Bounds:
    """Bound the smallest mean response of a fleet: from below by the p-median optimum, from above by its deployment.

    The lower bound holds for any load and evaluator. The upper bound is as accurate as the evaluator.

    Parameters
    ----------
    city, units
        As for `p_median`.
    evaluator, **options
        As for `evaluate`, by which the p-median deployment is evaluated.

    Examples
    --------
    >>> import emsopt as eo
    >>> city = eo.City([1, 2, 4], [[0, 6, 9], [4, 0, 5], [9, 5, 0]], turnout_times=1, service_times=30)
    >>> found = eo.evaluators.bounds(city, 2, "exact")
    >>> round(found.lower, 3), found.sites.tolist()
    (1.571, [1, 2])
    """
    median = p_median(city, units)
    evaluation = evaluate(city, median.sites, evaluator, **options)
    return Bounds(median.lower_bound, evaluation.mean_response, median.sites, evaluation.evaluator)
