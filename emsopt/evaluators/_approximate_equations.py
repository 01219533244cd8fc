"""Solve the equations (3) of the approximate hypercube by scaled fixed-point iteration, in compiled code.

Symbols and equation numbers are those of `emsopt.evaluators.approximate`.
"""

import numpy as np
from numba import njit

from ..errors._types import FloatArray, IntArray
from ._unit_order import Ranks, UnitOrder, unit_order

MAX_STEPS = 2000
MOST_UTILIZATION = 1 - 1e-15  # below 1, so that an atom whose units are all busy has no share 0 / 0
# In fleets of more than LONGEST_FULL_LIST units, an atom's list of units ends where a further one is needed with
# a probability below CUT_BY_TOLERANCE times the tolerance, or CUT_BY_CHANGE times the last change. The first
# ACCELERATED_STEPS steps are accelerated by the MEMORY steps before, which are dropped if the sum of squared changes
# grows MOST_GROWTH-fold.
LONGEST_FULL_LIST, CUT_BY_TOLERANCE, CUT_BY_CHANGE, ACCELERATED_STEPS, MEMORY, MOST_GROWTH = 30, 0.1, 1e-3, 200, 3, 4.0


@njit(cache=True, nogil=True)
def fill_correction_factors(load: float, queue: bool, Q: FloatArray) -> tuple[float, float]:
    """Fill ``Q``, (p,), with Q(p, ρ̄, r) at offered ``load`` (erlangs); return ρ̄ and the loss or queue probability."""
    p = len(Q)
    P = np.empty(p + 1)  # P(k), computed outwards from its mode so that nothing overflows
    mode = p if load >= p else int(load)
    P[mode] = 1.0
    for k in range(mode + 1, p + 1):
        P[k] = P[k - 1] * load / k
    for k in range(mode, 0, -1):
        P[k - 1] = P[k] * k / load
    if queue:
        P[p] /= 1 - load / p  # p or more calls: the tail of the queue is geometric
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
def service_rates(sites: IntArray, rates: FloatArray, service: FloatArray) -> FloatArray:
    """Return the service rate over all calls (1/min) and the mean service time (min) of a unit at each site, (2, N).

    The time is NaN for a site where it depends on the atom. Only columns of ``sites`` are set.
    """
    found, total = np.empty((2, len(service))), rates.sum()
    for site in sites:
        found[0, site], found[1, site] = total / (service[site] * rates).sum(), service[site, 0]
        if (service[site] != service[site, 0]).any():
            found[1, site] = np.nan
    return found


@njit(cache=True, nogil=True)
def solve_utilizations(
    order: UnitOrder,
    sites: IntArray,
    rates: FloatArray,
    service: FloatArray,
    site_rates: FloatArray,
    queue: bool,
    tol: float,
) -> tuple[FloatArray, FloatArray, float, float, int, float]:
    """Solve the equations (3) for the utilisations of the units, scaled to their known sum in each step.

    ``rates``, (M,), are calls per minute, ``service``, (N, M), mean service times (min), and ``site_rates`` is what
    `service_rates` returns. Return the utilisations (p,), the correction factors (p,), the loss or queueing
    probability, the mean wait (min), the number of steps (-1 if the queue is unstable, -2 without convergence), and the
    largest change of a utilisation in the last step.
    """
    p, total, long = order.shape[1], rates.sum(), order.shape[1] > LONGEST_FULL_LIST
    free_rate, equal = _fleet_service_rate(sites, site_rates)
    load = total * p / free_rate  # offered work in erlangs, refined below unless all service times are equal
    Q, V, work = np.empty(p), np.empty(p), rates * service[sites[0], 0]
    if queue and load >= p * (1 - 1e-9):  # `fill_correction_factors` divides by 1 - load / p
        return V, Q, 0.0, 0.0, -1, 0.0
    mean, blocked = fill_correction_factors(load, queue, Q)
    rho = np.full(p, mean)
    damping, before, moved = 1.0, np.inf, np.inf
    history = np.zeros((2, MEMORY + 1, p if long else 0))
    for step in range(1, MAX_STEPS + 1):
        least = CUT_BY_TOLERANCE * max(tol, min(moved, 1.0) * CUT_BY_CHANGE) if long else 0.0
        if equal and long:
            _fill_truncated_work(order, work, rho, Q, V, least)
        elif equal:
            _fill_offered_work(order, work, rho, Q, V)
        else:
            load = _fill_unequal_work(order, sites, rates, service, rho, Q, V, least)
            if queue:  # calls that waited are served by whichever unit is free next
                load = min((1 - blocked) * load + blocked * total * p / free_rate, p * (1 - 1e-9))
            mean, blocked = fill_correction_factors(load, queue, Q)
        queued = blocked * total / free_rate if queue else 0.0
        moved = _set_utilization_changes(V, rho, queued, p * mean)
        if long and step < ACCELERATED_STEPS and moved > tol:
            _extrapolate(rho, V, history, step)
        for i in range(p):
            rho[i] += damping * V[i]
        if moved <= tol:
            if not queue:
                return rho, Q, blocked, 0.0, step, moved
            if load >= p * (1 - 1e-8):  # held back by the cap above: more work than the fleet can do
                return rho, Q, blocked, 0.0, -1, moved
            wait = blocked / (free_rate - total)  # who waits does so for 1 / (Σμ - λ) on average
            return rho, Q, blocked, wait, step, moved
        if step % 50 == 0:  # shorten the step if the iteration has overshot for long
            if moved > 0.5 * before:
                damping *= 0.5
            before = moved
    return rho, Q, blocked, 0.0, -2, moved


@njit(cache=True, nogil=True)
def _fleet_service_rate(sites: IntArray, site_rates: FloatArray) -> tuple[float, bool]:
    """Return Σ μ_i, each unit's service rate averaged over the calls, and whether all mean service times are equal."""
    free_rate, equal = 0.0, True
    for site in sites:
        free_rate += site_rates[0, site]
        equal = equal and site_rates[1, site] == site_rates[1, sites[0]]  # NaN, if they depend on the atom, is unequal
    return free_rate, equal


@njit(cache=True, nogil=True)
def _set_utilization_changes(V: FloatArray, rho: FloatArray, queued: float, total: float) -> float:
    """Replace the work offered to each unit, V_i, by the change of its utilisation; return the largest change.

    ``total`` is the sum of the new utilisations, ``queued`` the load that calls that waited add to each unit.
    """
    for i in range(len(V)):
        V[i] = (V[i] + queued) / (1 + V[i])  # (3), from ρ_i = V_i (1 - ρ_i) + the work of calls that waited
    _scale_to(V, total)
    moved = 0.0
    for i in range(len(V)):
        moved = max(moved, abs(V[i] - rho[i]))
        V[i] -= rho[i]
    return moved


@njit(cache=True, nogil=True)
def _extrapolate(rho: FloatArray, change: FloatArray, history: FloatArray, step: int) -> None:
    """Replace the change of the utilisations in this step, in place, by that of Anderson acceleration.

    ``history``, (2, MEMORY + 1, p), holds the differences of the utilisations between steps, and those of their
    changes, which are kept orthogonal; the last entries are the last utilisations and the last change themselves.
    """
    paths, bends = history
    current, p = step % MEMORY, len(rho)
    path, bend = paths[current], bends[current]
    grown = _dot(change, change) > MOST_GROWTH * _dot(bends[-1], bends[-1])
    for i in range(p):
        path[i], bend[i] = rho[i] - paths[-1, i], change[i] - bends[-1, i]
        paths[-1, i], bends[-1, i] = rho[i], change[i]
    if step == 1 or grown:  # earlier steps no longer say anything about this one
        history[:, :-1] = 0.0
    _make_orthogonal(paths, bends, current)
    for k in range(MEMORY):
        length = _dot(bends[k], bends[k])
        if length > 0:
            weight = _dot(bends[k], change) / length
            for i in range(p):
                change[i] -= weight * (paths[k, i] + bends[k, i])
    for i in range(p):
        if not 0 < rho[i] + change[i] < MOST_UTILIZATION:  # outside the range of utilisations: take the step as it was
            change[:] = bends[-1]
            history[:, :-1] = 0.0
            return


@njit(cache=True, nogil=True)
def _make_orthogonal(paths: FloatArray, bends: FloatArray, current: int) -> None:
    """Make the current difference of changes (in ``bends``) orthogonal to the earlier ones, and adapt its path."""
    path, bend = paths[current], bends[current]
    original = _dot(bend, bend)
    for k in range(MEMORY):
        length = _dot(bends[k], bends[k])
        if k != current and length > 0:
            weight = _dot(bends[k], bend) / length
            for i in range(len(bend)):
                path[i] -= weight * paths[k, i]
                bend[i] -= weight * bends[k, i]
    if _dot(bend, bend) <= 1e-12 * original:  # nothing but rounding is left
        path[:], bend[:] = 0.0, 0.0


@njit(cache=True, nogil=True)
def _dot(a: FloatArray, b: FloatArray) -> float:
    """Return the inner product; numpy's would call linear algebra, whose rounding depends on the processor."""
    total = 0.0
    for i in range(len(a)):
        total += a[i] * b[i]
    return total


@njit(cache=True, nogil=True)
def _scale_to(rho: FloatArray, total: float) -> None:
    """Scale utilisations in place to a given sum; the excess over 1 of a unit goes to the other units."""
    for _ in range(len(rho)):  # each round but the last fixes at least one more unit at the top
        full, rest = 0.0, 0.0
        for r in rho:
            if r >= MOST_UTILIZATION:
                full += r
            else:
                rest += r
        if rest == 0.0:
            return
        scale, clipped = (total - full) / rest, False
        for i in range(len(rho)):
            if rho[i] < MOST_UTILIZATION:
                rho[i] *= scale
                if rho[i] >= MOST_UTILIZATION:
                    rho[i], clipped = MOST_UTILIZATION, True
        if not clipped:
            return


@njit(cache=True, nogil=True)
def _fill_offered_work(order: UnitOrder, work: FloatArray, rho: FloatArray, Q: FloatArray, V: FloatArray) -> None:
    """Fill V_i, work (erlangs) offered to free unit i, for equal service times; ``work``, (M,), is each atom's."""
    n_atoms, p = order.shape
    V[:] = 0.0
    for j in range(n_atoms):
        left = work[j]
        for k in range(p):
            i = order[j, k]
            V[i] += Q[k] * left
            left *= rho[i]


@njit(cache=True, nogil=True)
def _fill_truncated_work(
    order: UnitOrder, work: FloatArray, rho: FloatArray, Q: FloatArray, V: FloatArray, least: float
) -> None:
    """Fill V_i as `_fill_offered_work` does, skipping units that are needed with a probability below ``least``.

    Four atoms are computed at once, because each product must wait for the one before.
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
def _fill_unequal_work(
    order: UnitOrder,
    sites: IntArray,
    rates: FloatArray,
    service: FloatArray,
    rho: FloatArray,
    Q: FloatArray,
    V: FloatArray,
    least: float,
) -> float:
    """Fill V_i as `_fill_truncated_work` does, for mean service times that differ.

    Return the work (erlangs) of all calls if each were answered (Jarvis 1985).
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
            work += rates[j] * minutes / answered  # the probabilities do not sum to one exactly
    return work


@njit(cache=True, nogil=True)
def answer_shares(order: UnitOrder, rho: FloatArray, Q: FloatArray) -> FloatArray:
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
        shares[:, j] /= total  # with the factors Q the products do not sum to one exactly
    return shares


@njit(cache=True, nogil=True)
def mean_costs(
    deployments: IntArray,
    ranks: Ranks,
    rates: FloatArray,
    service: FloatArray,
    site_rates: FloatArray,
    costs: FloatArray,
    queue: bool,
    tol: float,
) -> FloatArray:
    """Return the mean of ``costs``, (N, M), over answered calls for K deployments, (K,); NaN without convergence."""
    values = np.empty(len(deployments))
    for d in range(len(deployments)):
        sites = deployments[d]
        order = unit_order(ranks, sites)
        rho, Q, blocked, _, steps, _ = solve_utilizations(order, sites, rates, service, site_rates, queue, tol)
        if steps < 0:
            values[d] = np.nan
            continue
        least = tol * CUT_BY_TOLERANCE if len(sites) > LONGEST_FULL_LIST else 0.0
        value = 0.0
        for j in range(len(rates)):
            busy, share, cost = 1.0, 0.0, 0.0
            for k in range(len(sites)):
                i = order[j, k]
                q = Q[k] * busy * (1 - rho[i])
                share += q
                cost += q * costs[sites[i], j]
                busy *= rho[i]
                if q < least:
                    break
            value += rates[j] * cost / share  # shares do not add to one exactly, so they are normalised
        value /= rates.sum()
        if queue:
            late = 0.0  # mean cost of a call that waited: any unit may be free next
            weight = 0.0
            for site in sites:
                weight += site_rates[0, site]
                late += site_rates[0, site] * (costs[site] * rates).sum() / rates.sum()
            value = (1 - blocked) * value + blocked * late / weight
        values[d] = value
    return values
