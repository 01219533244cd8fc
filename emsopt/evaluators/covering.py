"""Covering models, the classical alternative to queueing models: how much demand is within reach of a unit.

`mclp`, the maximal covering location problem, counts an atom as covered if a unit can be there before a threshold, as
if that unit were always free. `mexclp`, maximum expected covering, assumes that each unit is busy with the same
probability, independently of the others, so that a second and a third unit in reach also help. Both ignore that units
near the demand are busier than others: check their deployments with a queueing evaluator.

If times vary (`City.travel_cv`), a unit covers an atom with the probability that it is there in time, and of several
units the most probable one that is free counts (Ingolfsson et al. 2008, with one busy fraction for all).

Both are solved exactly, as mixed-integer programs (HiGHS). As in `Evaluation.late_fraction`, a response that takes
exactly the threshold is late.

References
----------
Church, R. and ReVelle, C. (1974). The maximal covering location problem. Papers of the Regional Science
    Association 32, 101-118.
Daskin, M. S. (1983). A maximum expected covering location model: formulation, properties and heuristic solution.
    Transportation Science 17(1), 48-70.
Ingolfsson, A., Budge, S. and Erkut, E. (2008). Optimal ambulance location with random delays and travel times.
    Health Care Management Science 11, 262-274.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import _validate
from .._types import BoolArray, FloatArray, IntArray
from ..city.city import City
from ..city.deployment_space import DeploymentSpace
from ..errors import InputError
from ._p_median import common_divisor
from .metrics import late_probability

BUSIEST = 0.99  # cap of the default busy fraction: if units are always busy, all deployments are equally good
SCALE = 1e4  # of the objective: HiGHS stops at a gap of 1e-6, which is then 1e-10 of all calls

TINY = 1e-14  # shares of calls that are rounding errors


@dataclass(frozen=True, eq=False, repr=False)
class Coverage:
    """Sites from which the largest share of calls is reached in less than a threshold.

    Attributes
    ----------
    sites : ndarray of int, shape (p,)
        Site of each unit, in ascending order; repeats are colocated units.
    coverage : float
        Share of calls reached in time; for `mexclp`, its expected value.
    threshold : float
        Minutes; a response that takes less is in time.
    busy_fraction : float
        Probability q with which each unit is assumed to be busy; 0 for `mclp`.
    upper_bound : float
        Upper bound on the coverage of any deployment of the fleet.
    gap : float
        upper_bound - coverage; 0 if the sites are proven to be optimal.
    reached_by : ndarray, shape (M,)
        Number of units that reach each atom in time; the expected number if times vary.
    """

    sites: IntArray
    coverage: float
    threshold: float
    busy_fraction: float
    upper_bound: float
    gap: float
    reached_by: IntArray | FloatArray

    def __repr__(self) -> str:
        proof = "optimal" if self.gap == 0 else f"at most {self.upper_bound:.2%} possible"
        return (
            f"<Coverage: sites {self.sites.tolist()}, {self.coverage:.2%} of calls in less than "
            f"{self.threshold:g} min, {proof}>"
        )


def mclp(city: City, units: int | DeploymentSpace, threshold: float, *, time_limit: float | None = None) -> Coverage:
    """Find the sites that reach the largest share of calls in less than ``threshold`` minutes.

    Church and ReVelle (1974), with the demand shares as weights and turnout counted in the response.

    Parameters
    ----------
    city : City
    units : int or DeploymentSpace
        Fleet size p, with at most one unit per listed site, or the allowed deployments.
    threshold : float
        Minutes; a response that takes this long or longer is late.
    time_limit : float, optional
        Seconds after which the best sites found are returned, with the remaining gap.

    Returns
    -------
    Coverage
        With ``sites``, ``coverage``, ``upper_bound``, ``gap`` and ``reached_by``. Optimal, unless the time ran out. If
        there are several optima, any of them may be returned.

    Examples
    --------
    >>> from emsopt import City
    >>> city = City([1, 2, 4], [[0, 6, 9], [4, 0, 5], [9, 5, 0]], turnout_times=1, service_times=30)
    >>> mclp(city, 1, threshold=6)
    <Coverage: sites [2], 57.14% of calls in less than 6 min, optimal>
    """
    return mexclp(city, DeploymentSpace.of(city, units), threshold, 0.0, time_limit=time_limit)


def mexclp(
    city: City,
    units: int | DeploymentSpace,
    threshold: float,
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

    Returns
    -------
    Coverage
        As for `mclp`.

    Examples
    --------
    >>> from emsopt import City
    >>> city = City([1, 2, 4], [[0, 6, 9], [4, 0, 5], [9, 5, 0]], turnout_times=1, service_times=30)
    >>> mexclp(city, 2, threshold=6, busy_fraction=0.6)
    <Coverage: sites [1, 2], 40.00% of calls in less than 6 min, optimal>
    """
    import scipy.sparse as sp
    from scipy.optimize import Bounds, LinearConstraint, milp

    space = DeploymentSpace.of(city, units, colocation=True)
    if busy_fraction is None:
        busy_fraction = min(city.offered_load(space.units), BUSIEST)
    busy_fraction = _validate.positive_number(busy_fraction, "busy_fraction", zero=True)
    if busy_fraction >= 1:
        raise InputError(
            f"`busy_fraction` must be below 1; got {busy_fraction:g}. A unit that is always busy covers nothing."
        )
    threshold = _validate.positive_number(threshold, "threshold", "min")
    seconds = np.inf if time_limit is None else _validate.positive_number(time_limit, "time_limit", "s")

    # Integer variables n_g are the units in each group of interchangeable sites; z_jk is 1 if atom j has a kth unit in
    # reach: maximise Σ_jk w_j (1-q) q^(k-1) z_jk with Σ_k z_jk <= the units that reach j. As later units contribute
    # less, z need not be declared integer. Atoms within reach of the same groups are merged.
    reaches, shares = _reaches(city, threshold)
    groups = np.unique(city.twin_groups, return_index=True)[1]
    patterns, pattern = np.unique(reaches[groups], axis=1, return_inverse=True)
    weights = np.bincount(pattern.ravel(), weights=shares).astype(float)
    worth = (1 - busy_fraction) * busy_fraction ** np.arange(space.units)
    worth = worth[worth > 0]
    n_groups, n_patterns = patterns.shape
    n_layers = n_patterns * len(worth)
    counted = np.r_[np.ones(n_groups), np.zeros(n_layers)]
    in_reach = sp.hstack(
        [-sp.csr_array(patterns.T.astype(float)), sp.kron(np.ones((1, len(worth))), sp.eye_array(n_patterns))]
    )
    # All coverages of idle units are whole multiples of the divisor of the demand, so a smaller gap proves the optimum.
    least = 0.999 * common_divisor(weights[weights > 0]) if busy_fraction == 0 and weights.any() else 0.0

    def covered(reached_by: Any) -> float:
        return float(shares @ (1 - busy_fraction**reached_by))

    result = milp(
        -SCALE * np.r_[np.zeros(n_groups), np.kron(worth, weights)],
        integrality=counted,
        bounds=Bounds(np.r_[space.floors, np.zeros(n_layers)], np.r_[space.capacities, np.ones(n_layers)]),
        constraints=[LinearConstraint(in_reach, ub=0), LinearConstraint(counted, space.units, space.units)],
        options={"mip_rel_gap": least, "time_limit": seconds},
    )
    found = [] if result.x is None else [np.rint(result.x[:n_groups]).astype(int)]
    found.append(_greedy(patterns, weights, busy_fraction, space))
    sites = max((space.deployment(counts) for counts in found), key=lambda sites: covered(reaches[sites].sum(axis=0)))
    reached_by = reaches[sites].sum(axis=0)
    coverage = covered(reached_by)
    if city.response_law is not None:
        reached_by = (1 - late_probability(city, threshold)[sites]).sum(axis=0)
    bound = coverage
    if result.status != 0:
        known = np.nan if result.mip_dual_bound is None else -result.mip_dual_bound / SCALE
        bound = max(coverage, float(np.fmin(known, covered(reaches.any(axis=0) * space.units))))
    return Coverage(sites, coverage, threshold, busy_fraction, bound, bound - coverage, reached_by)


def _greedy(patterns: BoolArray, weights: FloatArray, busy_fraction: float, space: DeploymentSpace) -> IntArray:
    """Return how many units each group has, shape (G,), if they are added one by one where they gain most."""
    counts = space.floors.copy()
    for _ in range(space.units - counts.sum()):
        gains = patterns @ (weights * np.power(busy_fraction, counts @ patterns))
        counts[np.argmax(np.where(counts < space.capacities, gains, -1.0))] += 1
    return counts


def _reaches(city: City, threshold: float) -> tuple[BoolArray, FloatArray]:
    """Return which sites reach each of L parts of the demand in time, shape (N, L), and the parts' shares, shape (L,).

    The parts are the atoms. If times vary, an atom is divided: with π_1 > π_2 > ... the probabilities that sites are
    there in time, a part of π_k - π_(k+1) is reached by the sites of probability π_k or more. The best of several sites
    then covers its probability, the sum of its parts.
    """
    if city.response_law is None:
        return city.response_times < threshold, city.demand_shares
    in_time = 1 - late_probability(city, threshold)  # (N, M)
    levels = -np.sort(-in_time, axis=0)
    parts = (levels - np.vstack([levels[1:], np.zeros(city.n_atoms)])) * city.demand_shares
    rank, atom = np.nonzero(parts > TINY)
    return in_time[:, atom] >= levels[rank, atom], parts[rank, atom]
