"""Cover all atoms: with the fewest sites, or with a given fleet in the least time.

`set_cover` is the location set covering problem of Toregas et al. (1971), with the backup of Hogan and ReVelle (1986).
`p_center` is the problem of Hakimi (1964), solved by set covers for different times (Minieka 1970). In both all atoms
with calls count alike, units are always free, and mean times are used if times vary (`City.travel_cv`).

References
----------
Chen, D. and Chen, R. (2009). New relaxation-based algorithms for the optimal solution of the continuous and discrete
    p-center problems. Computers & Operations Research 36(5), 1646-1655.
Hakimi, S. L. (1964). Optimum locations of switching centers and the absolute centers and medians of a graph.
    Operations Research 12(3), 450-459.
Hogan, K. and ReVelle, C. (1986). Concepts and applications of backup coverage. Management Science 32(11), 1434-1444.
Minieka, E. (1970). The m-center problem. SIAM Review 12(1), 138-139.
Toregas, C., Swain, R., ReVelle, C. and Bergman, L. (1971). The location of emergency service facilities. Operations
    Research 19(6), 1363-1373.
"""

from dataclasses import dataclass

import numpy as np

from ..city.city import City, check_city
from ..city.deployment_space import DeploymentSpace
from ..errors import InputError, _validate
from ..errors._types import FloatArray, IntArray
from ._cover_patterns import Patterns, pairs_within, undominated_rows_and_columns
from ._stopping import delay_ctrl_c, end_time, solve_integer_program
from .evaluation import LATE_MIN


@dataclass(frozen=True, eq=False, repr=False)
class Cover:
    """Fewest sites from which every atom with calls is reached in less than a threshold.

    Attributes
    ----------
    sites : ndarray of int, shape (p,)
        In ascending order.
    units : int
        Number of sites, p.
    threshold : float
        Minutes; a response that takes less is in time.
    lower_bound, gap : int
        Lower bound on the number of sites of any cover, and units - lower_bound; 0 if no cover has fewer sites.
    backup : int
        Number of atoms with calls that two or more of the sites reach in time.
    backup_bound : int
        Upper bound on ``backup`` over the covers of as many sites; the number of atoms with calls if not asked for.
    proven : bool
        Whether the number of sites and, if asked for, the backup are proven to be optimal.
    """

    sites: IntArray
    units: int
    threshold: float
    lower_bound: int
    gap: int
    backup: int
    backup_bound: int
    proven: bool

    def __repr__(self) -> str:
        proof = "optimal" if self.proven else f"at least {self.lower_bound} needed"
        return f"<Cover: sites {self.sites.tolist()}, every call in less than {self.threshold:g} min, {proof}>"


@dataclass(frozen=True, eq=False, repr=False)
class Center:
    """Sites of a fleet that reach the remotest atom soonest.

    Attributes
    ----------
    sites : ndarray of int, shape (p,)
        Site of each unit, in ascending order.
    longest_response, lower_bound : float
        Response time from the closest unit to the remotest atom with calls, min, and a lower bound on it over all
        deployments of the fleet.
    gap : float
        (longest_response - lower_bound) / longest_response; 0 if the sites are proven to be optimal.
    """

    sites: IntArray
    longest_response: float
    lower_bound: float
    gap: float

    @property
    def proven(self) -> bool:
        """Whether the sites are proven to be optimal."""
        return self.gap == 0

    def __repr__(self) -> str:
        proof = "optimal" if self.proven else f"at least {self.lower_bound:.4g} min"
        return f"<Center: sites {self.sites.tolist()}, longest response {self.longest_response:.4g} min, {proof}>"


@delay_ctrl_c()
def set_cover(
    city: City, threshold: float = LATE_MIN, backup: bool = False, *, time_limit: float | None = None
) -> Cover:
    """Find the fewest sites from which every atom with calls is reached in less than ``threshold`` minutes.

    Any of several optima may be returned. Raise if no site reaches some atom with calls in time.

    Parameters
    ----------
    city, threshold, time_limit
        As for `mclp`.
    backup : bool
        Of all covers with the fewest sites, find one that reaches the most atoms from two sites (LSCP-B).

    Examples
    --------
    >>> from emsopt import City
    >>> city = City([1, 2, 4], [[0, 6, 9], [4, 0, 5], [9, 5, 0]], turnout_times=1, service_times=30)
    >>> set_cover(city, threshold=6)
    <Cover: sites [1, 2], every call in less than 6 min, optimal>
    """
    end = end_time(time_limit)
    threshold = _validate.positive_number(threshold, "threshold", "min")
    backup = _validate.as_bool(backup, "backup")
    calls = np.flatnonzero(check_city(city).arrival_rates)
    soonest = city.response_times.min(axis=0)[calls]
    if (soonest >= threshold).any():
        name = city.atom_names[calls[soonest.argmax()]]
        why = f"as no site reaches atom {name!r} sooner"
        raise InputError(f"`threshold` must be above {soonest.max():g} min, {why}; got {threshold:g}.")
    reach = pairs_within(city.response_times, threshold, calls)
    found, bound = smallest_cover(reach, end)
    sites = greedy_cover(reach) if found is None else found
    gap, best = len(sites) - bound, len(calls)
    if backup and not gap:  # backup is compared between covers of the fewest sites: first their number must be proven
        sites, best = _maximise_backup(reach, sites, end)
    twice = int((reach[sites].sum(axis=0) > 1).sum())
    return Cover(sites, len(sites), threshold, bound, gap, twice, best, not gap and (not backup or twice == best))


def smallest_cover(reach: Patterns, end: float, most: int | None = None) -> tuple[IntArray | None, int]:
    """Return the fewest rows that cover all columns, or None if not solved in time, and a lower bound on their number.

    With ``most``, return any cover of at most ``most`` rows, or None and the bound ``most`` + 1 if there is none.
    """
    from scipy.optimize import LinearConstraint

    rows, columns = undominated_rows_and_columns(reach)
    patterns = reach[rows][:, columns]
    limits = [LinearConstraint(patterns.T.astype(float), lb=1)]
    limits += [] if most is None else [LinearConstraint(np.ones(len(rows)), ub=most)]
    costs = np.full(len(rows), float(most is None))  # 0 with `most`: any feasible cover will do
    x, bound, settled = solve_integer_program(costs, limits, 1, 0, 1, end)
    if settled:
        return (None, (most or 0) + 1) if x is None else (rows[np.rint(x) > 0], int(np.rint(x).sum()))
    # The bound is rounded up because a number of sites is whole, less 1e-6 for the rounding errors of HiGHS.
    return None, max(1, int(np.ceil(bound - 1e-6))) if most is None and bound > -np.inf else 1


def greedy_cover(reach: Patterns) -> IntArray:
    """Return rows that cover all columns, chosen one by one to cover the most columns not yet covered."""
    left, chosen = np.ones(reach.shape[1], bool), []
    while left.any():
        chosen.append(int(np.argmax(reach @ left.astype(np.int64))))
        left[reach[[chosen[-1]]].indices] = False
    return np.sort(chosen)


def _maximise_backup(reach: Patterns, sites: IntArray, end: float) -> tuple[IntArray, int]:
    """Return the ``len(sites)`` rows that cover all columns and the most of them twice, and a bound on how many."""
    import scipy.sparse as sp
    from scipy.optimize import LinearConstraint

    n, m = reach.shape
    reached = sp.hstack([reach.T.astype(float), -sp.eye_array(m)])
    chosen = np.r_[np.ones(n), np.zeros(m)]
    rows = [LinearConstraint(reached, lb=1), LinearConstraint(chosen, len(sites), len(sites))]
    # cost -1 for each u_j (whether j is reached twice), 0 for a site; u_j need not be declared an integer
    x, bound, settled = solve_integer_program(chosen - 1, rows, chosen, 0, 1, end)
    sites = sites if x is None else np.flatnonzero(np.rint(x[:n]))
    twice = int((reach[sites].sum(axis=0) > 1).sum())
    return sites, twice if settled else int(min(m, np.floor(-bound + 1e-6)))


@delay_ctrl_c()
def p_center(city: City, units: int | DeploymentSpace, *, time_limit: float | None = None) -> Center:
    """Find the sites with the shortest response to the remotest atom with calls, if every unit is always free.

    Any of several optima may be returned.

    Parameters
    ----------
    city, units, time_limit
        As for `p_median`.

    Examples
    --------
    >>> from emsopt import City
    >>> city = City([1, 2, 4], [[0, 6, 9], [4, 0, 5], [9, 5, 0]], turnout_times=1, service_times=30)
    >>> p_center(city, 1)
    <Center: sites [1], longest response 6 min, optimal>
    """
    end = end_time(time_limit)
    space = DeploymentSpace.of(city, units)
    listed, calls = np.flatnonzero(space.site_capacities > space.site_floors), np.flatnonzero(city.arrival_rates)
    times = city.response_times[np.ix_(listed, calls)]
    pinned = np.flatnonzero(space.site_floors)
    served = city.response_times[np.ix_(pinned, calls)].min(axis=0, initial=np.inf)
    chosen, bound = _solve_center(times, served, space.units - len(space.pinned), end)
    sites = space.complete_deployment(np.r_[space.pinned, listed[chosen]].astype(np.int64))
    longest = float(city.response_times[sites][:, calls].min(axis=0).max())
    bound = min(bound, longest)
    return Center(sites, longest, bound, (longest - bound) / longest if longest > bound else 0.0)


def _solve_center(times: FloatArray, served: FloatArray, most: int, end: float) -> tuple[IntArray, float]:
    """Return up to ``most`` rows of ``times`` (min) that minimise the longest time to a column, and a bound on that.

    ``served`` has the shortest times to the columns from pinned sites. The bound is infinite if the rows are proven
    optimal.
    """
    chosen = np.empty(0, np.int64)
    for _ in range(most):  # first guess: the closest row to the column that is remotest so far
        chosen = np.union1d(chosen, times[:, _closest_times(times, served, chosen).argmax()].argmin())
    least = np.minimum(times.min(axis=0, initial=np.inf), served).max()  # no choice of rows can do better
    values = np.unique(np.r_[times[times >= least], served[served >= least]])  # the optimum is one of these
    some = set[int]()  # kept from one time to the next, so that a cover starts with the columns that mattered before
    low, high = 0, int(np.searchsorted(values, _closest_times(times, served, chosen).max()))
    while low < high:  # values from `high` on can be held, those below `low` cannot
        middle = (low + high) // 2
        rows, settled = _cover_in_time(times, served, most, values[middle], some, end)
        if not settled:
            return chosen, float(values[low])  # all shorter times are proven impossible
        if rows is None:
            low = middle + 1
        else:
            chosen, high = rows, int(np.searchsorted(values, _closest_times(times, served, rows).max()))
    return chosen, np.inf


def _cover_in_time(
    times: FloatArray, served: FloatArray, most: int, longest: float, some: set[int], end: float
) -> tuple[IntArray | None, bool]:
    """Return up to ``most`` rows that reach all columns within ``longest`` min, or None, and whether that is proven.

    Only the columns ``some`` are covered at first, and others that the cover misses are added (Chen and Chen 2009).
    """
    reach, rows = pairs_within(times, np.nextafter(longest, np.inf)), np.empty(0, np.int64)  # `longest` is in time
    while True:
        now = _closest_times(times, served, rows)
        while now.max() > longest:  # the remotest of the columns missed, and further ones that share no row with it
            column = int(now.argmax())
            some.add(column)
            now[reach[reach[:, [column]].nonzero()[0]].indices] = 0
        columns = [column for column in sorted(some) if served[column] > longest]
        if not columns:
            return rows, True
        found, least = smallest_cover(reach[:, columns], end, most)
        if found is None:
            return None, least > most  # a proof if `smallest_cover` was settled; 1 if time ran out
        rows = found
        if _closest_times(times, served, rows).max() <= longest:
            return rows, True


def _closest_times(times: FloatArray, served: FloatArray, rows: IntArray) -> FloatArray:
    """Return the shortest time to each column from ``rows`` or from pinned sites, whose times are ``served``."""
    return np.minimum(times[rows].min(axis=0, initial=np.inf), served)
