r"""The p-median: where units would wait if all of them were always free, and the bounds that follow.

.. math:: \min_{|S| = p} \sum_j w_j \min_{i \in S} (\tau_i + t_{ij})

is problem (4a)-(4f) of "Optimizing Server Locations in Spatial Queues". With the demand shares as weights, its
optimum is a lower bound of the mean response of any deployment, however busy (Theorem 2): a call is answered by
the closest unit at best. Its deployment, valued by a queueing evaluator, is an upper bound of the best mean
response (Lemma 3). The model is good where units are seldom busy; under load it spreads them too thinly, and never
sees any use in a second unit at a station.
"""

from dataclasses import dataclass

import numpy as np

from .. import _validate
from .._running.progress import bar
from ..city.city import check_city
from ..city.deployment import DeploymentSpace
from ..errors import InputError
from ._lagrangian import minimise


@dataclass(frozen=True, eq=False, repr=False)
class Location:
    """Best sites of a fleet that is always free.

    Attributes
    ----------
    sites : ndarray of int, shape (p,)
        Site of each unit, in ascending order.
    objective : float
        Weighted sum of the response times from the closest unit: min, if the weights sum to one.
    lower_bound : float
        No deployment of the fleet has a smaller objective.
    gap : float
        (objective - lower_bound) / objective; 0 if the sites are proven to be optimal.
    assignment : ndarray of int, shape (M,)
        Site, one of ``sites``, that serves each atom: the closest, on a tie the one listed first.
    """

    sites: np.ndarray
    objective: float
    lower_bound: float
    gap: float
    assignment: np.ndarray

    def __repr__(self):
        proof = "optimal" if self.gap == 0 else f"within {self.gap:.2%} of the optimum"
        return f"<Location: sites {self.sites.tolist()}, weighted response {self.objective:.4g}, {proof}>"


@dataclass(frozen=True, eq=False, repr=False)
class Bounds:
    """Bounds of the least mean response that a fleet can reach.

    Attributes
    ----------
    lower : float
        Optimum of the p-median problem, min (Theorem 2).
    upper : float
        Mean response of the p-median deployment, min (Lemma 3).
    sites : ndarray of int, shape (p,)
        That deployment.
    evaluator : str
        What valued it.
    """

    lower: float
    upper: float
    sites: np.ndarray
    evaluator: str

    def __repr__(self):
        return f"<Bounds ({self.evaluator}): mean response from {self.lower:.3f} to {self.upper:.3f} min>"


def p_median(city, units, *, weights=None, time_limit=None, progress=None):
    """Find the sites with the least weighted response time if every unit is always free: (4a)-(4f).

    Parameters
    ----------
    city : City
    units : int or DeploymentSpace
        Fleet size p, or the allowed deployments (`DeploymentSpace`); for a fleet size, one unit at a listed site.
    weights : array_like, shape (M,), optional
        Weight of each atom, at least 0; `City.demand_shares` if left out.
    time_limit : float, optional
        Seconds after which the best sites found are returned, with the gap that is left. Looked at between
        branches of the search, so a large city takes somewhat longer.
    progress : bool or callable
        True shows a bar; a function is called with (branches searched, branches known so far).

    Returns
    -------
    Location
        Optimal, unless the time ran out. Of several optima any may come; twin sites go by their lowest indices.

    Raises
    ------
    InputError
        If the fleet does not fit the sites, or the weights are negative or all zero.

    Notes
    -----
    Optimal to 1e-10 of the mean response from a single average site, which is rounding. The method is a Lagrangian
    branch and bound: milliseconds for a city of 70 atoms, seconds for a thousand sites and atoms. Times that have
    nothing to do with geometry, and regular grids of equal demand, take longest.

    Examples
    --------
    >>> from emsopt import City
    >>> city = City([1, 2, 4], [[0, 6, 9], [4, 0, 5], [9, 5, 0]], turnout_times=1, service_times=30)
    >>> p_median(city, 2)
    <Location: sites [1, 2], weighted response 1.571, optimal>
    """
    space = DeploymentSpace.of(city, units)
    if time_limit is not None:
        time_limit = _validate.positive_number(time_limit, "time_limit", "s")
    weights = _weights(city, weights)
    listed = np.flatnonzero(space.site_capacities)
    costs, station = _fold(city.response_times[listed][:, weights > 0] * weights[weights > 0])
    forced = np.zeros(len(costs), dtype=np.bool_)
    forced[station[np.isin(listed, space.pinned)]] = True
    stations = min(forced.sum() + space.units - len(space.pinned), len(costs))
    with bar(progress, None, "branch") as show:
        chosen, bound = minimise(
            costs,
            stations,
            forced,
            time_limit=time_limit,
            progress=lambda done, known: show(done, total=known),
        )

    first = listed[np.unique(station, return_index=True)[1]]
    sites = np.r_[space.pinned, first[chosen & ~forced]].astype(np.intp)
    places = np.repeat(np.arange(city.n_sites), space.site_capacities - np.bincount(sites, minlength=city.n_sites))
    sites = space.canonical(np.r_[sites, places[: space.units - len(sites)]])
    return _location(city, sites, weights, bound)


def one_median(city, *, weights=None):
    """Find the one site with the least weighted response time.

    Under extreme load every unit belongs there (Theorem 5), if the city allows colocation.

    Parameters
    ----------
    city : City
    weights : array_like, shape (M,), optional
        Weight of each atom, at least 0; `City.demand_shares` if left out.

    Returns
    -------
    Location
        The site listed first, on a tie.
    """
    weights = _weights(city, weights)
    totals = city.response_times @ weights
    site = np.flatnonzero(totals <= totals.min() * (1 + 1e-12))[:1]
    return _location(city, site, weights, np.inf)


def bounds(
    city,
    units,
    evaluator=None,
    *,
    time_limit=None,
    **options,
):
    """Bound the least mean response of a fleet from both sides: Theorem 2 and Lemma 3.

    The lower bound holds whatever the load and whoever evaluates; the upper one is as good as its evaluator, and the
    approximation is slightly low.

    Parameters
    ----------
    city : City
    units : int or DeploymentSpace
        Fleet size p, or the allowed deployments (`DeploymentSpace`); for a fleet size, one unit at a listed site.
    evaluator : {"exact", "approximate", "simulation"}, optional
        What values the p-median deployment; left out: exact up to 12 units, else approximate.
    time_limit
        As for `p_median`.
    **options
        Passed to the evaluator, such as ``capacity``.

    Returns
    -------
    Bounds
    """
    from .by_name import evaluate

    median = p_median(city, units, time_limit=time_limit)
    evaluation = evaluate(city, median.sites, evaluator, **options)
    return Bounds(median.lower_bound, evaluation.mean_response, median.sites, evaluation.evaluator)


def _weights(city, weights):
    check_city(city)
    if weights is None:
        return city.demand_shares
    weights = _validate.real_array(weights, "weights", (city.n_atoms,), low=0)
    if not weights.any():
        raise InputError("`weights` are all zero; at least one atom must count.")
    return weights


def _fold(costs):
    """Return the distinct rows of ``costs`` in the order they come, and which of them each row is."""
    numbers = {}
    station = np.array([numbers.setdefault(row.tobytes(), len(numbers)) for row in costs])
    return costs[np.unique(station, return_index=True)[1]], station


def _location(city, sites, weights, bound):
    times = city.response_times[sites]
    objective = float(weights @ times.min(axis=0))
    bound = float(min(bound, objective))
    gap = (objective - bound) / objective if objective > bound else 0.0
    return Location(sites, objective, bound, gap, sites[times.argmin(axis=0)])
