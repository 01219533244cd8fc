"""Covering models, the classical alternative to queueing models: how much demand is within reach of units.

==================  ==================================================================  ============================
function            an atom counts if, before the threshold, it can be reached by       source
==================  ==================================================================  ============================
`mclp`              a unit                                                              Church and ReVelle (1974)
`mexclp`            a unit, with probability 1 - q^n if n units can                     Daskin (1983)
`malp`              so many units that one is free with a given probability             ReVelle and Hogan (1989)
`double_standard`   two units; all atoms must be reached before a longer threshold      Gendreau et al. (1997)
==================  ==================================================================  ============================

Set covering and the p-centre, which count atoms rather than demand, are in `emsopt.evaluators.set_covering`.

All ignore that units near the demand are busier than others, and all but `mexclp` and `malp` that units are ever busy:
check their deployments with a queueing evaluator. A response that takes exactly the threshold is late. If times vary
(`City.travel_cv`), a unit covers an atom with the probability that it is there in time, and of several units the most
probable one that is free counts (Ingolfsson et al. 2008, with one busy fraction for all). `malp` and `double_standard`
take the mean times.

References
----------
Church, R. and ReVelle, C. (1974). The maximal covering location problem. Papers of the Regional Science
    Association 32, 101-118.
Daskin, M. S. (1983). A maximum expected covering location model: formulation, properties and heuristic solution.
    Transportation Science 17(1), 48-70.
Gendreau, M., Laporte, G. and Semet, F. (1997). Solving an ambulance location model by tabu search. Location Science
    5(2), 75-88.
Ingolfsson, A., Budge, S. and Erkut, E. (2008). Optimal ambulance location with random delays and travel times.
    Health Care Management Science 11, 262-274.
ReVelle, C. and Hogan, K. (1989). The maximum availability location problem. Transportation Science 23(3), 192-200.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from ..city.city import City
from ..city.deployment_space import DeploymentSpace
from ..errors import InputError, _validate
from ..errors._types import ArrayLike, FloatArray, IntArray
from ._cover_patterns import OBJECTIVE_SCALE, Patterns, pairs_within, pairs_within_km
from ._cover_search import greedy_counts, maximise_coverage
from ._p_median import common_divisor
from ._stopping import delay_ctrl_c, end_time, solve_integer_program
from .evaluation import LATE_MIN
from .metrics import late_probability

MOST_BUSY_FRACTION = 0.99  # cap of the default: if units are always busy, all deployments are equally good
ROUNDING_ERROR = 1e-12  # of reliabilities and shares, which are met even if rounding errors say otherwise
ROUNDING_SHARE = 1e-14  # shares of calls that are rounding errors


@dataclass(frozen=True, eq=False, repr=False)
class Coverage:
    """Sites from which the largest share of calls is covered.

    Attributes
    ----------
    sites : ndarray of int, shape (p,)
        Site of each unit, in ascending order; repeats are colocated units.
    coverage : float
        Share of calls that are covered; for `mexclp`, its expected value.
    threshold : float
        Minutes; a response that takes less is in time.
    busy_fraction : float
        Probability q with which each unit is assumed to be busy; 0 for `mclp` and `double_standard`, and nan for `malp`
        with local busy fractions.
    upper_bound, gap : float
        Upper bound on the coverage of any deployment of the fleet, and upper_bound - coverage; 0 if proven optimal.
    reached_by : ndarray, shape (M,)
        Number of units that reach each atom in time; the expected number if times vary.
    needed : ndarray of int, shape (M,)
        Number of units that must reach an atom in time for it to be covered; 1 for `mclp` and `mexclp`.
    """

    sites: IntArray
    coverage: float
    threshold: float
    busy_fraction: float
    upper_bound: float
    gap: float
    reached_by: IntArray | FloatArray
    needed: IntArray

    @property
    def proven(self) -> bool:
        """Whether the sites are proven to be optimal."""
        return self.gap == 0

    def __repr__(self) -> str:
        proof = "optimal" if self.proven else f"at most {self.upper_bound:.2%} possible"
        fewest, most = self.needed.min(), self.needed.max()
        by = "" if most == 1 else f" by {fewest} units" if fewest == most else f" by {fewest} to {most} units"
        return (
            f"<Coverage: sites {self.sites.tolist()}, {self.coverage:.2%} of calls{by} in less than "
            f"{self.threshold:g} min, {proof}>"
        )


def mclp(
    city: City, units: int | DeploymentSpace, threshold: float = LATE_MIN, *, time_limit: float | None = None
) -> Coverage:
    """Find the sites that reach the largest share of calls in less than ``threshold`` minutes.

    Church and ReVelle (1974), with the demand shares as weights and turnout counted in the response.

    Parameters
    ----------
    city, units, time_limit
        As for `p_median`.
    threshold : float
        Minutes; a response that takes this long or longer is late.

    Notes
    -----
    Any of several optima may be returned. A search that ends before its time limit has the same result in every run.
    Otherwise the best sites and bound found so far are returned, which differ from run to run. Ctrl-C raises
    KeyboardInterrupt.

    Examples
    --------
    >>> from emsopt import City
    >>> city = City([1, 2, 4], [[0, 6, 9], [4, 0, 5], [9, 5, 0]], turnout_times=1, service_times=30)
    >>> mclp(city, 1, threshold=6)
    <Coverage: sites [2], 57.14% of calls in less than 6 min, optimal>
    """
    return mexclp(city, DeploymentSpace.of(city, units), threshold, 0.0, time_limit=time_limit)


@delay_ctrl_c()
def mexclp(
    city: City,
    units: int | DeploymentSpace,
    threshold: float = LATE_MIN,
    busy_fraction: float | None = None,
    *,
    time_limit: float | None = None,
) -> Coverage:
    """Find the sites with the largest expected share of calls reached in less than ``threshold`` minutes.

    Daskin (1983): with n units in reach, each busy with probability q independently of the others, an atom is
    covered with probability 1 - q^n.

    Parameters
    ----------
    city, threshold, time_limit
        As for `mclp`.
    units : int or DeploymentSpace
        Fleet size p, with any number of units per site, or the allowed deployments.
    busy_fraction : float, optional
        Probability q that a unit is busy, at least 0 and below 1. Default: the offered load per unit, λ / (p μ), at
        most 0.99.

    Examples
    --------
    >>> from emsopt import City
    >>> city = City([1, 2, 4], [[0, 6, 9], [4, 0, 5], [9, 5, 0]], turnout_times=1, service_times=30)
    >>> mexclp(city, 2, threshold=6, busy_fraction=0.6)
    <Coverage: sites [1, 2], 40.00% of calls in less than 6 min, optimal>
    """
    end = end_time(time_limit)
    space = DeploymentSpace.of(city, units, colocation=True)
    busy_fraction = _busy_fraction(space, busy_fraction)
    threshold = _validate.positive_number(threshold, "threshold", "min")
    reach, rates = _demand_parts(city, threshold)
    groups = np.unique(city.twin_groups, return_index=True)[1]  # further twins would only add equivalent solutions
    limits = space.floors, space.capacities
    counts, bound = maximise_coverage(reach[groups], rates, busy_fraction, limits, space.units, end)
    coverage = float(rates @ (1 - busy_fraction ** (reach[groups].T @ counts))) / city.total_rate
    bound = max(bound / city.total_rate, coverage)  # minus infinity if the units are optimal
    sites = space.deployment(counts)
    if city.response_law is None:
        reached_by = (city.response_times[sites] < threshold).sum(axis=0)
    else:
        reached_by = (1 - late_probability(city, threshold)[sites]).sum(axis=0)
    one = np.ones(city.n_atoms, np.int64)
    return Coverage(sites, coverage, threshold, busy_fraction, bound, bound - coverage, reached_by, one)


@delay_ctrl_c()
def mclp_of_points(
    site_locations: ArrayLike,
    atom_locations: ArrayLike,
    demand: ArrayLike,
    units: int,
    radius: float,
    *,
    geographic: bool = True,
    time_limit: float | None = None,
) -> Coverage:
    """Find the sites with the largest share of calls within a radius, for cities too large for a matrix of times.

    Twenty thousand sites and atoms take less than a gigabyte. The ``threshold`` of the result is the radius in km.

    Parameters
    ----------
    site_locations, atom_locations : array_like, shape (N, 2) and (M, 2)
        Longitude and latitude in degrees, or km east and north.
    demand : array_like, shape (M,)
        Calls from each atom, in any unit; at least 0.
    units : int
        Fleet size p, at most N, with at most one unit per site.
    radius : float
        Kilometres as the crow flies; an atom at this distance or farther is not reached.
    geographic : bool
        Whether locations are longitude and latitude.
    time_limit
        As for `mclp`.

    Examples
    --------
    >>> places = [[0, 0], [3, 0], [10, 0]]
    >>> found = mclp_of_points(places, places, [1, 2, 4], 1, radius=3.5, geographic=False)
    >>> found.sites.tolist(), round(found.coverage, 3)
    ([2], 0.571)
    """
    end = end_time(time_limit)
    sites = _validate.real_array(site_locations, "site_locations", (None, 2))
    atoms = _validate.real_array(atom_locations, "atom_locations", (None, 2))
    calls = _validate.real_array(demand, "demand", (len(atoms),), low=0)
    if not calls.any():
        raise InputError("`demand` is all zero; at least one atom must have calls.")
    p = _validate.whole_number(units, "units", high=len(sites))
    radius = _validate.positive_number(radius, "radius", "km")
    truth = _validate.as_bool(geographic, "geographic")
    for name, points in (("site_locations", sites), ("atom_locations", atoms)):
        if truth:
            _validate.check_degrees(points, f"`{name}`")
    reach = pairs_within_km(sites, atoms, radius, truth)
    limits = np.zeros(len(sites), np.int64), np.ones(len(sites), np.int64)
    counts, bound = maximise_coverage(reach, calls, 0.0, limits, p, end)
    reached_by, total = reach.T @ counts, float(calls.sum())
    coverage = float(calls @ (reached_by > 0)) / total
    bound = max(bound / total, coverage)
    one = np.ones(len(atoms), np.int64)
    return Coverage(np.flatnonzero(counts), coverage, radius, 0.0, bound, bound - coverage, reached_by, one)


@delay_ctrl_c()
def malp(
    city: City,
    units: int | DeploymentSpace,
    threshold: float = LATE_MIN,
    reliability: float = 0.9,
    busy_fraction: float | Literal["local"] | None = None,
    *,
    time_limit: float | None = None,
) -> Coverage:
    """Find the sites with the largest share of calls for which a unit in reach is free with a given probability.

    ReVelle and Hogan (1989). An atom is covered if n units can be there before the threshold and q^n, the probability
    that they are all busy, is at most 1 - ``reliability``.

    Parameters
    ----------
    city, units, threshold, time_limit
        As for `mexclp`.
    reliability : float
        Smallest probability that a unit in reach is free, above 0, at most 1.
    busy_fraction : float or "local", optional
        A number is the same q for all units (MALP I); by default the offered load per unit, as in `mexclp`. With
        "local" (MALP II), q is estimated around each atom: the work (erlangs) of the atoms that the site closest to it
        reaches in time, divided by n. Use it if demand is concentrated: it requires more units in the centre.

    Examples
    --------
    >>> from emsopt import City
    >>> city = City([1, 2, 4], [[0, 6, 9], [4, 0, 5], [9, 5, 0]], turnout_times=1, service_times=30)
    >>> malp(city, 3, threshold=6, reliability=0.9, busy_fraction=0.3)
    <Coverage: sites [1, 2, 2], 57.14% of calls by 2 units in less than 6 min, optimal>
    """
    end = end_time(time_limit)
    space = DeploymentSpace.of(city, units, colocation=True)
    threshold = _validate.positive_number(threshold, "threshold", "min")
    reliability = _validate.probability(reliability, "reliability")
    if isinstance(busy_fraction, str):
        _validate.choice(busy_fraction, "busy_fraction", ("local",))
        within_reach = pairs_within(city.response_times, threshold)
        around = within_reach @ city.arrival_rates / 60 * city.mean_service_time
        work, q = around[city.response_times.argmin(axis=0)], np.nan  # nan: q differs from atom to atom
    else:
        q = _busy_fraction(space, busy_fraction)
    counted = np.arange(1, space.units + 2)[:, None]  # one more than the fleet stands for any larger number
    busy = np.minimum(work / counted, 1.0) if np.isnan(q) else np.full((len(counted), city.n_atoms), q)
    enough = 1 - busy**counted >= reliability - ROUNDING_ERROR
    enough[-1] = True  # argmax must find a row; such an atom is then never covered
    needed = enough.argmax(axis=0) + 1
    groups = np.unique(city.twin_groups, return_index=True)[1]
    reach = pairs_within(city.response_times[groups], threshold)
    counts, bound = _solve_program(space, reach, needed, city.demand_shares, end)
    if counts is None:  # no solution in time: place units as for `mexclp`
        busy_fraction = 0.5 if np.isnan(q) else q
        counts = greedy_counts(reach, city.demand_shares, busy_fraction, space.floors, space.capacities, space.units)
    return _coverage(space, counts, bound, needed, threshold, q)


@delay_ctrl_c()
def double_standard(
    city: City,
    units: int | DeploymentSpace,
    threshold: float = LATE_MIN,
    outer: float = 15.0,
    share: float = 0.9,
    *,
    time_limit: float | None = None,
) -> Coverage:
    """Find the sites with the largest share of calls reached by two units, under two standards.

    Gendreau, Laporte and Semet (1997): all atoms must be reached in less than ``outer`` minutes, and at least the
    share ``share`` of calls in less than ``threshold`` minutes. Raise if no deployment that meets both was found.

    Parameters
    ----------
    city, units, threshold, time_limit
        As for `mexclp`.
    outer : float
        Minutes, at least ``threshold``; only atoms without calls may be reached later.
    share : float
        Least share of calls that is reached by one unit in less than ``threshold`` minutes, from 0 to 1.

    Examples
    --------
    >>> from emsopt import City
    >>> city = City([1, 2, 4], [[0, 6, 9], [4, 0, 5], [9, 5, 0]], turnout_times=1, service_times=30)
    >>> double_standard(city, 3, threshold=6, outer=8, share=0.8)
    <Coverage: sites [1, 2, 2], 57.14% of calls by 2 units in less than 6 min, optimal>
    """
    end = end_time(time_limit)
    space = DeploymentSpace.of(city, units, colocation=True)
    threshold = _validate.positive_number(threshold, "threshold", "min")
    outer = _validate.finite_number(outer, "outer", low=threshold)
    share = _validate.finite_number(share, "share", 0, 1)
    groups = np.unique(city.twin_groups, return_index=True)[1]
    times, needed = city.response_times[groups], np.full(city.n_atoms, 2)
    reach, standards = pairs_within(times, threshold), (pairs_within(times, outer), share)
    counts, bound = _solve_program(space, reach, needed, city.demand_shares, end, standards)
    if counts is None:
        why = "was found in time" if bound < np.inf else "exists"
        raise InputError(
            f"no deployment of {space.units} units {why} that reaches all calls in less than `outer` = {outer:g} min "
            f"and {share:.2%} of them in less than `threshold` = {threshold:g} min. Use more units or weaker standards."
        )
    return _coverage(space, counts, bound, needed, threshold, 0.0)


def _solve_program(
    space: DeploymentSpace,
    reach: Patterns,
    needed: IntArray,
    shares: FloatArray,
    end: float,
    standards: tuple[Patterns, float] | None = None,
) -> tuple[IntArray | None, float]:
    """Maximise the share of calls with the ``needed`` units in reach, by an integer program.

    Return the units of each twin group, (G,), None if no solution was found, and an upper bound: minus infinity if they
    are optimal, infinity if no solution exists. ``reach``, (G, M), marks the atoms that a group reaches in time, and
    ``shares``, (M,), are those of the calls. ``standards`` are the reach within the longer threshold, required for
    every atom with calls, and the least share for one unit. Variables are the units n_g of each group, y_j, whether
    atom j has the units needed, and with ``standards`` z_j, whether one unit reaches it.
    """
    import scipy.sparse as sp
    from scipy.optimize import LinearConstraint

    calls = np.flatnonzero(shares)  # neither standard applies to an atom without calls
    reach, needed, shares = reach[:, calls], needed[calls], shares[calls]
    n, m = reach.shape
    most = n + 2 * m
    place, have = sp.eye_array(n, most), sp.eye_array(m, most, k=n)  # they pick n and y out of all variables
    one = sp.eye_array(m, most, k=n + m)
    in_reach = reach.T @ place
    rows = [
        LinearConstraint(sp.diags_array(needed.astype(float)) @ have - in_reach, ub=0),  # y_j = 1 needs n_j in reach
        LinearConstraint(np.ones(n) @ place, space.units, space.units),
    ]
    if standards is not None:
        outer, share = standards
        rows += [LinearConstraint(outer[:, calls].T @ place, lb=1), LinearConstraint(one - in_reach, ub=0)]
        rows += [LinearConstraint(OBJECTIVE_SCALE * shares @ one, lb=OBJECTIVE_SCALE * (share - ROUNDING_ERROR))]
    low, high = np.r_[space.floors, np.zeros(2 * m)], np.r_[space.capacities, needed <= space.units, np.ones(m)]
    costs = -OBJECTIVE_SCALE * np.r_[np.zeros(n), shares, np.zeros(m)]
    least = 0.999 * common_divisor(shares)  # two values differ by at least the divisor: a smaller gap is none
    # z_j need not be declared an integer: it may be raised to 1 or to the whole number of units in reach.
    x, bound, settled = solve_integer_program(costs, rows, np.r_[np.ones(n + m), np.zeros(m)], low, high, end, least)
    counts = None if x is None else np.rint(x[:n]).astype(int)
    if settled:
        return counts, np.inf if counts is None else -np.inf
    return counts, min(-bound / OBJECTIVE_SCALE, shares[needed <= space.units].sum())  # HiGHS may have found no bound


def _coverage(
    space: DeploymentSpace, counts: IntArray, bound: float, needed: IntArray, threshold: float, q: float
) -> Coverage:
    """Return the `Coverage` of a deployment, given by its units in each twin group, (G,), with an upper ``bound``."""
    city, sites = space.city, space.deployment(counts)
    reached_by = (city.response_times[sites] < threshold).sum(axis=0)
    coverage = float(city.demand_shares @ (reached_by >= needed))
    bound = max(coverage, bound)
    return Coverage(sites, coverage, threshold, q, bound, bound - coverage, reached_by, needed)


def _busy_fraction(space: DeploymentSpace, given: float | None) -> float:
    """Return the busy fraction ``given``, or for None the offered load per unit; raise unless in [0, 1)."""
    q = min(space.city.offered_load(space.units), MOST_BUSY_FRACTION) if given is None else given
    q = _validate.positive_number(q, "busy_fraction", zero=True)
    if q >= 1:
        raise InputError(f"`busy_fraction` must be below 1; got {q:g}. A unit that is always busy covers nothing.")
    return q


def _demand_parts(city: City, threshold: float) -> tuple[Patterns, FloatArray]:
    """Divide the demand into L parts; return which sites reach each in time, (N, L), and its calls per hour, (L,).

    The parts are the atoms. If times vary, an atom is divided: with π_1 > π_2 > ... the probabilities that sites reach
    it in time, a share π_k - π_(k+1) of its calls is reached by the sites of probability π_k or more.
    """
    if city.response_law is None:
        return pairs_within(city.response_times, threshold), city.arrival_rates
    late = late_probability(city, threshold)
    levels = np.sort(late, axis=0)
    parts = (np.vstack([levels[1:], np.ones(city.n_atoms)]) - levels) * city.arrival_rates
    rank, atom = np.nonzero(parts > ROUNDING_SHARE * city.total_rate)
    limits = np.nextafter(levels[rank, atom], np.inf)  # above each level, as a pair must be below its limit
    return pairs_within(late, limits, atom), parts[rank, atom]
