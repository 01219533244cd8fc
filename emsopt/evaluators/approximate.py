r"""Approximate hypercube queueing model (Larson 1975).

Equation numbers (1a) to (3) are those of "Optimizing Server Locations in Spatial Queues".

Units are treated as busy independently of each other, and a correction factor reduces the resulting error. The model is
exact if all p units are interchangeable.

=================  ==========================================================================================
symbol             meaning
=================  ==========================================================================================
ρ_i                utilisation of unit i
ρ̄                  mean utilisation, from the Erlang formula
P(k)               probability that k of p units are busy: M/M/p/p (loss) or M/M/p (queue)
Q(p, ρ̄, r)         correction factor (2): probability that r given units are busy and another is free, divided
                   by ρ̄^r (1 - ρ̄)
γ_jl               l-th preferred unit of atom j
q_ij               probability that unit i = γ_jk answers j: Q(p, ρ̄, k-1) ρ_γj1 ... ρ_γj,k-1 (1 - ρ_i)
=================  ==========================================================================================

The p equations (3) say ρ_i = V_i / (1 + V_i), where V_i is the sum of λ_j / μ · Q(p, ρ̄, k-1) ρ_γj1 ... ρ_γj,k-1 over
the atoms j, with k the rank of unit i for atom j. They are solved by fixed-point iteration. After each step the
utilisations are scaled to the mean ρ̄, as Larson did: only with this scaling are the figures printed in that paper
reproduced. Mean service times may depend on site and atom; the offered load is then updated in each step (Jarvis 1985).

Limits. On random plane cities of 15 units the error is 0.02 to 0.09 min on average, nearly always too low; the
ranking of deployments is almost that of the exact model. If mean service times of units differ, mean costs stay
accurate, but the probability that all units are busy is too high. `approximate_hypercube` issues an `AccuracyWarning`
if the longest mean service time of a unit is more than 2 times the shortest, and functions that return only mean costs
if it is more than 40 times the shortest. With a queue and a ratio of 10 or more the iteration may fail to converge.
`benchmarks/RESULTS.md` has the measurements. `exact_hypercube` takes milliseconds up to about 12 units.

References
----------
Larson, R. C. (1975). Approximating the performance of urban emergency service systems. Operations Research 23(5),
845-868.
Jarvis, J. P. (1985). Approximating the equilibrium behavior of multi-server loss systems. Management Science
31(2), 235-239.
"""

from collections.abc import Callable

import numpy as np
from numba import njit

from .. import _validate
from .._running.blas_threads import map_rows
from .._running.warn import warn
from .._types import ArrayLike, FloatArray, IntArray, Progress, Sites
from ..city.city import City
from ..city.deployment_space import check_sites
from ..errors import AccuracyWarning, ConvergenceError, UnstableQueueError
from ._order import Ranks, UnitOrder, unit_order
from .evaluation import Evaluation, is_queue, queued_shares, twin_average, unstable
from .metrics import check_costs

# Largest ratios of service times at which the probability that all units are busy and the mean costs are accurate.
EVEN, UNEVEN = 2, 40
# Ratios of service times, and how many times too high that probability can be at loads of 0.5 and 0.2 per unit.
TOO_HIGH = (2, 3, 5, 10, 40), (1.3, 1.4, 1.8, 2.0, 2.0), (1.7, 2.9, 5.8, 9.8, 16)
MAX_STEPS = 2000
BUSIEST = 1 - 1e-15
# In fleets of more than SHORT units, the list of units that an atom calls ends where it is needed with a probability
# below CUT times the tolerance, or EARLY times the last change, and the first EXTRAPOLATED steps are accelerated.
SHORT, CUT, EARLY, EXTRAPOLATED = 40, 0.1, 1e-3, 100


def approximate_hypercube(city: City, sites: Sites, *, capacity: str = "loss", tol: float = 1e-10) -> Evaluation:
    """Evaluate one deployment approximately.

    Parameters
    ----------
    city : City
    sites : array_like of int, shape (p,)
        Site of each unit; a site that occurs twice holds two units.
    capacity : {"loss", "queue"}
        What happens to calls that find every unit busy: lost, or served first come, first served.
    tol : float
        The iteration stops when no utilisation changes by more than this.

    Returns
    -------
    Evaluation
        ``residual`` is the largest change of a utilisation in the last step.

    Raises
    ------
    InputError
        If an argument is invalid.
    UnstableQueueError
        If calls can queue and arrive at least as fast as the fleet can serve them.
    ConvergenceError
        If the iteration does not converge.

    Warns
    -----
    AccuracyWarning
        If the mean service times of the units differ by more than a factor of 2.

    Notes
    -----
    In fleets of more than 40 units, each atom's list of units is cut where a further unit is needed with a probability
    below a tenth of ``tol``. Mean responses change by about as much as by ``tol`` itself, less than 1e-6 min with the
    tolerance of 1e-8 that `values` and `Objective` use.

    Examples
    --------
    >>> import emsopt as eo
    >>> city = eo.datasets.load_st_paul()
    >>> eo.evaluators.approximate_hypercube(city, [0, 1, 2, 3, 4, 8, 9, 10, 11]).utilizations.shape
    (9,)
    """
    sites, tol, queue = check_sites(city, sites), _validate.positive_number(tol, "tol"), is_queue(capacity)
    rates, service, order = city.arrival_rates / 60, city.service_times, unit_order(city.preference_ranks, sites)
    site_rates = _site_rates(sites, rates, service)
    rho, Q, blocked, wait, steps, moved = _solve(order, sites, rates, service, site_rates, queue, tol)
    if steps == -1:
        raise unstable(city, sites)
    if steps == -2:
        raise ConvergenceError(
            f"the approximate hypercube did not converge in {MAX_STEPS} steps; raise `tol`, or use evaluator='exact' "
            "(small fleets) or 'simulation'."
        )
    _warn_of_unequal_units(city, sites, EVEN, capacity)
    shares, waited, average = _shares(order, rho, Q), queued_shares(city, sites), twin_average(city, sites)
    if queue:
        shares = (1 - blocked) * shares + blocked * waited[:, None]
    measures = average @ rho, average @ shares, wait, waited, steps, moved
    return Evaluation.of(city, sites, "approximate", capacity, blocked, *measures)


def prepare(
    city: City, units: int, costs: ArrayLike | None, *, capacity: str = "loss", tol: float = 1e-8
) -> Callable[..., FloatArray]:
    """Check the options once; return a function of (checked deployments, workers, progress).

    It returns the mean cost of an answered call for each deployment, shape (K,). ``costs`` is as in `check_costs`.
    """
    queue, tol, costs = is_queue(capacity), _validate.positive_number(tol, "tol"), check_costs(city, costs)
    uneven = city.service_ratio > UNEVEN
    rates, service = city.arrival_rates / 60, city.service_times
    site_rates = _site_rates(np.arange(city.n_sites), rates, service)
    costs = np.ascontiguousarray(costs.T)
    arguments = city.preference_ranks, rates, service, site_rates, costs, queue, tol

    def values(deployments: IntArray, workers: int | None = None, progress: Progress = False) -> FloatArray:
        if uneven:
            _warn_of_unequal_units(city, deployments, UNEVEN)
        result = map_rows(lambda rows: _values(rows, *arguments), deployments, workers, progress)
        failed = np.isnan(result)
        if np.count_nonzero(failed):  # faster than `any` for one value
            approximate_hypercube(city, deployments[failed.argmax()], capacity=capacity, tol=tol)  # raises the error
        return result

    return values


def correction_factors(units: int, offered_load: float, *, capacity: str = "loss") -> FloatArray:
    """Return the correction factors Q(p, ρ̄, r) of the approximate hypercube for r = 0, ..., p-1.

    Q(p, ρ̄, r) is the probability that r given units are busy and another given unit is free, divided by the
    probability ρ̄^r (1 - ρ̄) that this would have if units were busy independently (equation (2); see the module's
    docstring).

    Parameters
    ----------
    units : int
        Fleet size p.
    offered_load : float
        Offered load of the whole fleet λ/μ, erlangs.
    capacity : {"loss", "queue"}

    Returns
    -------
    ndarray, shape (p,)
    """
    queue = is_queue(capacity)
    units = _validate.whole_number(units, "units")
    load = _validate.positive_number(offered_load, "offered_load", "erlangs")
    if queue and load >= units:
        raise UnstableQueueError(f"with a queue `offered_load` must be below the {units} units; got {load:g} erlangs.")
    Q = np.empty(units)
    _correction(load, queue, Q)
    return Q


def _warn_of_unequal_units(city: City, sites: IntArray, trusted: int, capacity: str | None = None) -> None:
    """Warn if the mean service times of the units differ by more than a factor ``trusted``.

    A unit's mean service time is the mean over calls, with the demand shares as weights. With ``capacity``, "loss" or
    "queue", the warning says how inaccurate the probability that all units are busy is; without it, the warning says
    only that mean costs are inaccurate.
    """
    minutes = (city.service_times @ city.demand_shares)[np.unique(sites)]
    ratio = minutes.max() / minutes.min()
    if ratio <= trusted * (1 + 1e-9):
        return
    consequence = "mean costs such as the mean response may be off by more than 3 percent"
    if capacity is not None:
        name = "`queue_probability` and `mean_wait`" if capacity == "queue" else "`loss_probability`"
        at_half, at_fifth = (np.interp(ratio, TOO_HIGH[0], times) for times in TOO_HIGH[1:])
        consequence = (
            f"{name} can be {at_half:.2g} times too high at an offered load of 0.5 per unit, "
            f"and {at_fifth:.2g} times at 0.2"
        )
        consequence += "; `mean_response` stays within 3 percent" if ratio <= UNEVEN else ""
    warn(
        f"the mean service times of the units differ by a factor of {ratio:.3g} ({minutes.min():.3g} to "
        f"{minutes.max():.3g} min), but the approximate hypercube is accurate only up to a factor of {trusted}: "
        f"{consequence}. Use evaluator='exact' (small fleets) or 'simulation'.",
        AccuracyWarning,
    )


@njit(cache=True, nogil=True)
def _correction(load: float, queue: bool, Q: FloatArray) -> tuple[float, float]:
    """Fill the correction factors Q(p, ρ̄, r); return the mean utilisation ρ̄ and the loss or queueing probability.

    ``load`` is the offered load of the whole fleet, in erlangs, and p the length of ``Q``.
    """
    p = len(Q)
    P = np.empty(p + 1)  # P(k), computed outwards from its mode so that nothing overflows
    mode = p if load >= p else int(load)
    P[mode] = 1.0
    for k in range(mode + 1, p + 1):
        P[k] = P[k - 1] * load / k
    for k in range(mode, 0, -1):
        P[k - 1] = P[k] * k / load
    if queue:
        P[p] /= 1 - load / p  # probability of p or more calls in the system
    P /= P.sum()
    mean, idle = P[p], 0.0  # ρ̄ and 1 - ρ̄, both computed without subtraction
    for k in range(p):
        mean += P[k] * k / p
        idle += P[k] * (p - k) / p
    # Apart from the factor 1 / (p - r), term k of the sum in (2) for r is that for r-1 times (k-r+1) / ((p-r+1) ρ̄).
    term = P[:p].copy()
    for k in range(p):
        term[k] *= p - k
    for r in range(p):
        total = 0.0
        for k in range(r, p):
            total += term[k]
            term[k] *= (k - r) / ((p - r) * mean)
        Q[r] = total / ((p - r) * idle)
    return mean, P[p]


@njit(cache=True, nogil=True)
def _site_rates(sites: IntArray, rates: FloatArray, service: FloatArray) -> FloatArray:
    """Return the service rate of a unit at each site, averaged over the calls, and its one mean service time: (2, N).

    The second row is NaN for a site whose mean service times depend on the atom. Only the listed sites are filled.
    """
    found, total = np.empty((2, len(service))), rates.sum()
    for site in sites:
        found[0, site], found[1, site] = total / (service[site] * rates).sum(), service[site, 0]
        if (service[site] != service[site, 0]).any():
            found[1, site] = np.nan
    return found


@njit(cache=True, nogil=True)
def _solve(
    order: UnitOrder,
    sites: IntArray,
    rates: FloatArray,
    service: FloatArray,
    site_rates: FloatArray,
    queue: bool,
    tol: float,
) -> tuple[FloatArray, FloatArray, float, float, int, float]:
    """Solve the equations (3) for the utilisations of the units by fixed-point iteration.

    ``rates`` are the calls per minute of each atom, shape (M,), ``service`` the mean service times in minutes, shape
    (N, M), and ``site_rates`` what `_site_rates` returns. Returns the utilisations (p,), the correction factors Q
    (p,), the loss or queueing probability, the mean wait (min), the number of steps, and the largest change of a
    utilisation in the last step. The number of steps is -1 if the queue is unstable and -2 if the iteration does not
    converge.
    """
    p, total = order.shape[1], rates.sum()
    free_rate = 0.0  # Σ μ_i, each unit's rate averaged over the calls
    alike, first = True, service[sites[0], 0]
    for site in sites:
        free_rate += site_rates[0, site]
        alike = alike and site_rates[1, site] == first
    long = p > SHORT
    load = total * p / free_rate  # offered work in erlangs, refined below unless all service times are equal
    Q, V, work = np.empty(p), np.empty(p), rates * first
    if queue and load >= p * (1 - 1e-9):
        return V, Q, 0.0, 0.0, -1, 0.0
    mean, blocked = _correction(load, queue, Q)
    rho = np.full(p, mean)
    damping, before, moved = 1.0, np.inf, np.inf
    last_rho, last_change = np.empty(p), np.empty(p)
    for step in range(1, MAX_STEPS + 1):
        least = CUT * max(tol, min(moved, 1.0) * EARLY) if long else 0.0
        if alike:
            if long:
                _offer_most(order, work, rho, Q, V, least)
            else:
                _offer(order, work, rho, Q, V)
        else:
            load = _offer_work(order, sites, rates, service, rho, Q, V, least)
            if queue:  # calls that waited are served by whichever unit is free next
                load = min((1 - blocked) * load + blocked * total * p / free_rate, p * (1 - 1e-9))
            mean, blocked = _correction(load, queue, Q)
        queued = blocked * total / free_rate if queue else 0.0
        for i in range(p):
            V[i] = (V[i] + queued) / (1 + V[i])
        _scale_to(V, p * mean)
        moved = 0.0
        for i in range(p):
            moved = max(moved, abs(V[i] - rho[i]))
            V[i] -= rho[i]
        if long and 1 < step < EXTRAPOLATED and moved > tol:
            _extrapolate(rho, V, last_rho, last_change)
        elif long:
            last_rho[:], last_change[:] = rho, V
        for i in range(p):
            rho[i] += damping * V[i]
        if moved <= tol:
            if queue and load >= p * (1 - 1e-8):
                return rho, Q, blocked, 0.0, -1, moved
            wait = blocked / (free_rate - total) if queue else 0.0
            return rho, Q, blocked, wait, step, moved
        if step % 50 == 0:  # shorten the step if the iteration has overshot for long
            if moved > 0.5 * before:
                damping *= 0.5
            before = moved
    return rho, Q, blocked, 0.0, -2, moved


@njit(cache=True, nogil=True)
def _extrapolate(rho: FloatArray, change: FloatArray, last_rho: FloatArray, last_change: FloatArray) -> None:
    """Replace the change of the utilisations in this step, in place, by Anderson's from this and the last step.

    It takes the combination of the two steps whose changes, as if linear, cancel best. The last ones are overwritten.
    """
    along, across = 0.0, 0.0
    for i in range(len(rho)):
        bend = change[i] - last_change[i]
        along += change[i] * bend
        across += bend * bend
    weight = along / across if across > 0 else 0.0
    for i in range(len(rho)):
        here, this = rho[i], change[i]
        change[i] -= weight * (here - last_rho[i] + this - last_change[i])
        change[i] = min(max(change[i], -here), BUSIEST - here)
        last_rho[i], last_change[i] = here, this


@njit(cache=True, nogil=True)
def _scale_to(rho: FloatArray, total: float) -> None:
    """Scale utilisations in place to a given sum; the excess of a unit that would reach 1 goes to the other units."""
    for _ in range(len(rho)):
        full, rest = 0.0, 0.0
        for r in rho:
            if r >= BUSIEST:
                full += r
            else:
                rest += r
        if rest == 0.0:
            return
        scale, clipped = (total - full) / rest, False
        for i in range(len(rho)):
            if rho[i] < BUSIEST:
                rho[i] *= scale
                if rho[i] >= BUSIEST:
                    rho[i], clipped = BUSIEST, True
        if not clipped:
            return


@njit(cache=True, nogil=True)
def _offer(order: UnitOrder, work: FloatArray, rho: FloatArray, Q: FloatArray, V: FloatArray) -> None:
    """Fill V_i, the work (erlangs) offered to unit i while it is free, if all mean service times are equal.

    ``work`` is that of each atom's calls, λ_j / μ, in erlangs, shape (M,).
    """
    n_atoms, p = order.shape
    V[:] = 0.0
    for j in range(n_atoms):
        left = work[j]
        for k in range(p):
            i = order[j, k]
            V[i] += Q[k] * left
            left *= rho[i]


@njit(cache=True, nogil=True)
def _offer_most(
    order: UnitOrder, work: FloatArray, rho: FloatArray, Q: FloatArray, V: FloatArray, least: float
) -> None:
    """Fill V_i as `_offer` does, but for units that are needed with a probability below ``least``.

    Four atoms are followed at once, because each waits for its last product.
    """
    n_atoms, p = order.shape
    V[:] = 0.0
    for j in range(n_atoms // 4):
        w, x, y, z = 4 * j, 4 * j + 1, 4 * j + 2, 4 * j + 3
        a, b, c, d = work[w], work[x], work[y], work[z]
        negligible = least * (a + b + c + d)
        for k in range(p):
            if Q[k] * (a + b + c + d) < negligible:
                break
            g, h, i, l = order[w, k], order[x, k], order[y, k], order[z, k]
            V[g] += Q[k] * a
            V[h] += Q[k] * b
            V[i] += Q[k] * c
            V[l] += Q[k] * d
            a, b, c, d = a * rho[g], b * rho[h], c * rho[i], d * rho[l]
    for j in range(n_atoms // 4 * 4, n_atoms):
        left = work[j]
        for k in range(p):
            V[order[j, k]] += Q[k] * left
            left *= rho[order[j, k]]


@njit(cache=True, nogil=True)
def _offer_work(
    order: UnitOrder,
    sites: IntArray,
    rates: FloatArray,
    service: FloatArray,
    rho: FloatArray,
    Q: FloatArray,
    V: FloatArray,
    least: float,
) -> float:
    """Fill V_i, the work (erlangs) offered to unit i while it is free, if mean service times differ; see `_offer`.

    Returns the work of all calls (erlangs) if each were answered (Jarvis 1985).
    """
    n_atoms, p = order.shape
    V[:] = 0.0
    work = 0.0
    for j in range(n_atoms):
        busy, answered, minutes = 1.0, 0.0, 0.0
        for k in range(p):
            i = order[j, k]
            chance, s = Q[k] * busy, service[sites[i], j]
            V[i] += rates[j] * s * chance
            answered += chance * (1 - rho[i])
            minutes += chance * (1 - rho[i]) * s
            busy *= rho[i]
            if chance < least:
                break
        if answered > 0:
            work += rates[j] * minutes / answered
    return work


@njit(cache=True, nogil=True)
def _shares(order: UnitOrder, rho: FloatArray, Q: FloatArray) -> FloatArray:
    """Return the share of atom j's immediately answered calls that unit i answers, q_ij / Σ_i q_ij, shape (p, M)."""
    n_atoms, p = order.shape
    shares = np.empty((p, n_atoms))
    for j in range(n_atoms):
        busy, total = 1.0, 0.0
        for k in range(p):
            i = order[j, k]
            shares[i, j] = Q[k] * busy * (1 - rho[i])
            total += shares[i, j]
            busy *= rho[i]
        shares[:, j] /= total
    return shares


@njit(cache=True, nogil=True)
def _values(
    deployments: IntArray,
    ranks: Ranks,
    rates: FloatArray,
    service: FloatArray,
    site_rates: FloatArray,
    costs: FloatArray,
    queue: bool,
    tol: float,
) -> FloatArray:
    """Return the mean cost of an answered call for each deployment, shape (K,); NaN where the iteration failed."""
    values = np.empty(len(deployments))
    for d in range(len(deployments)):
        sites = deployments[d]
        order = unit_order(ranks, sites)
        rho, Q, blocked, _, steps, _ = _solve(order, sites, rates, service, site_rates, queue, tol)
        if steps < 0:
            values[d] = np.nan
            continue
        least = tol * CUT if len(sites) > SHORT else 0.0
        value = 0.0
        for j in range(len(rates)):
            busy, share, cost = 1.0, 0.0, 0.0
            for k in range(len(sites)):
                i = order[j, k]
                q = Q[k] * busy * (1 - rho[i])
                share += q
                cost += q * costs[j, sites[i]]
                busy *= rho[i]
                if q < least:
                    break
            value += rates[j] * cost / share
        value /= rates.sum()
        if queue:
            late = 0.0
            weight = 0.0
            for site in sites:
                weight += site_rates[0, site]
                late += site_rates[0, site] * (costs[:, site] * rates).sum() / rates.sum()
            value = (1 - blocked) * value + blocked * late / weight
        values[d] = value
    return values
