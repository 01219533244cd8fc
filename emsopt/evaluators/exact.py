"""Exact hypercube queueing model (Larson 1974).

Equation numbers are those of appendix B.1 of "Optimizing Server Locations in Spatial Queues".

Every unit is free or busy, so the state of the fleet is a corner of a hypercube. Calls arrive as a Poisson process and
go to the first free unit in their atom's preference order. Service times are exponential with the rate of the unit.
Units at the same station are interchangeable, so only the number of busy units there matters. With c_g units at station
g there are Π (c_g + 1) states; this is 2^p if every station holds one unit.

=======  ===========================================================================
symbol   meaning
=======  ===========================================================================
b        state: number of busy units n_g(b) at each of the G stations
P(b)     steady-state probability of state b
T_g(S)   rate of calls that go to station g when exactly the stations in S are full
F(S)     probability that all stations in S are full
=======  ===========================================================================

If mean service times depend on the atom, a unit's mean is calibrated to the calls it answers (Larson's mean service
time calibration), and the result is no longer exact.

References
----------
Larson, R. C. (1974). A hypercube queuing model for facility location and redistricting in urban emergency
services. Computers & Operations Research 1(1), 67-95.
"""

from collections.abc import Callable
from functools import partial
from typing import TypeAlias

import numpy as np
from numba import njit
from numpy.typing import NDArray

from .._running.parallel import map_rows
from ..city.city import City
from ..city.deployment_space import check_sites
from ..errors import ConvergenceError, InputError, _validate
from ..errors._types import FloatArray, IntArray, Sites
from ._exact_in_blocks import TUNE_EVERY, call_rates, fits_blocks, level_scale, relax, relaxation_factor
from .evaluation import Evaluation, is_queue, unstable_queue_error

MOST_UNITS = 30  # two vectors of 2^30 states take 17 GB
STATES_FOR_BLOCKS = 1 << 20  # number of states from which sweeping them in blocks on all cores is faster
MAX_SWEEPS = 5000
ONE = np.uint64(1)
MAX_CALIBRATIONS = 200

_Solution: TypeAlias = tuple[FloatArray, FloatArray, FloatArray, float, float, int, float]
"""For G stations and M atoms: the share of each atom's answered calls that each station answers (G, M), the fraction of
time that a unit of each station is busy (G,), the share of queued calls that each station answers (G,), the loss or
queueing probability, the mean wait (min), the number of sweeps, and the error of the equations relative to the flow."""
_Chain: TypeAlias = tuple[IntArray, IntArray, FloatArray, FloatArray, FloatArray, float]
"""Units at each station, strides of the states, dispatch rates, service rates, total service rate of each state, and
call rate."""


def exact_hypercube(city: City, sites: Sites, *, capacity: str = "loss", tol: float = 1e-11) -> Evaluation:
    """Evaluate one deployment by the exact hypercube model.

    Parameters
    ----------
    city, sites, capacity
        As in `approximate_hypercube`.
    tol : float
        The sweeps stop when the ``residual``, the error of the balance equations relative to the total flow, is below
        this.

    Raises
    ------
    InputError
        If there are more than 2^30 states, as many as of 30 units at different sites.
    UnstableQueueError, ConvergenceError
        As in `approximate_hypercube`.

    Notes
    -----
    Every additional unit doubles the work: 20 units take about 1.3 seconds of CPU time, which all cores share, 24 units
    some 28 and 0.5 GB, 30 units 25 minutes and 17 GB.

    Examples
    --------
    >>> import emsopt as eo
    >>> city = eo.City([3.0], [[4.0], [6.0]], turnout_times=1, service_times=20)
    >>> round(eo.evaluators.exact_hypercube(city, [0, 0]).loss_probability, 6)  # Erlang B, 1 erlang
    0.2
    """
    sites, tol, queue = check_sites(city, sites), _validate.positive_number(tol, "tol"), is_queue(capacity)
    (shares, busy, _, blocked, *rest), station, _ = _solve_city(city, sites, queue, tol)
    size = np.bincount(station)[station]  # units of a station share its calls equally
    return Evaluation.of(city, sites, "exact", capacity, blocked, busy[station], shares[station] / size[:, None], *rest)


def mean_cost_function(
    city: City, _units: int, costs: FloatArray, queue: bool, *, tol: float
) -> Callable[..., FloatArray]:
    """Return a function from checked deployments, (K, p), to mean costs, (K,), as `approximate.mean_cost_function`."""
    tol = _validate.positive_number(tol, "tol")

    def mean_cost(sites: IntArray) -> float:
        (shares, *_), _, stations = _solve_city(city, sites, queue, tol)
        return city.demand_shares @ (shares * costs[stations]).sum(axis=0)

    return partial(map_rows, lambda rows: [mean_cost(sites) for sites in rows])


def _solve_city(city: City, sites: IntArray, queue: bool, tol: float) -> tuple[_Solution, IntArray, IntArray]:
    """Return the solution of `_solve`, the station of each unit, shape (p,), and a site of each station, shape (G,).

    Units at interchangeable sites count as units of one station.
    """
    _, station, counts = np.unique(city.twin_groups[sites], return_inverse=True, return_counts=True)
    by_size = np.argsort(counts, kind="stable")  # stations with a single unit come first, as `_sweep` needs
    counts, station = counts[by_size], np.argsort(by_size)[station]  # argsort of a permutation is its inverse
    if np.log2(counts + 1).sum() > MOST_UNITS:
        raise InputError(
            f"the exact hypercube takes at most 2^{MOST_UNITS} states, as many as {MOST_UNITS} units at different "
            f"sites have; these {len(sites)} units have more. Use evaluator='approximate' or 'simulation'."
        )
    stations = sites[np.unique(station, return_index=True)[1]]
    place = np.full(city.n_sites, -1)
    place[stations] = np.arange(len(counts))
    ranked = place[city.preferred_order]
    order = ranked[ranked >= 0].reshape(city.n_atoms, len(counts))  # each atom ranks each station once
    service = np.ascontiguousarray(city.service_times[stations])
    solve = _solve_large if fits_blocks(counts) and np.prod(counts + 1) >= STATES_FOR_BLOCKS else _solve
    solution = solve(order, city.arrival_rates / 60, counts, service, queue, tol)
    if solution[5] == -1:
        raise unstable_queue_error(city, sites)
    if solution[5] == -2:
        raise ConvergenceError(f"the exact hypercube did not converge to the tolerance {tol:g}. Raise `tol`.")
    return solution, station, stations


@njit(cache=True, nogil=True)
def _solve(
    order: IntArray, rates: FloatArray, counts: IntArray, service: FloatArray, queue: bool, tol: float
) -> _Solution:
    """Solve the balance equations, and calibrate mean service times that depend on the atom.

    ``rates``, (M,), are calls per minute, ``counts``, (G,), the units at each station, and ``service``, (G, M), mean
    service times (min). Row j of ``order``, (M, G), lists the stations by preference of atom j. The number of sweeps is
    -1 if the queue is unstable and -2 if the sweeps or the calibration do not converge.
    """
    n_stations, n_atoms, total = len(counts), len(rates), rates.sum()
    strides = np.ones(n_stations + 1, dtype=np.int64)
    for g in range(n_stations):
        strides[g + 1] = strides[g] * (counts[g] + 1)
    dispatch = _dispatch_rates(order, rates, n_stations)
    mu = np.empty(n_stations)
    for g in range(n_stations):
        mu[g] = total / (service[g] * rates).sum()  # first guess: the mean over all calls, not over those it answers
    P, leave, level = np.ones(strides[-1]), np.empty(strides[-1]), np.empty(strides[-1], np.int16)
    shares, busy, queued = np.empty((n_stations, n_atoms)), np.empty(n_stations), np.empty(n_stations)
    blocked, wait, sweeps, residual = 0.0, 0.0, 0, 0.0
    for _ in range(MAX_CALIBRATIONS):
        _fill_departure_rates(leave, level, counts, mu)
        chain = counts, strides, dispatch, mu, leave, total
        if queue and total >= leave[-1] * (1 - 1e-12):  # all units busy: the queue needs a lower load
            return shares, busy, queued, blocked, wait, -1, residual
        taken = _relax(P, chain, level, tol)
        if taken < 0:
            return shares, busy, queued, blocked, wait, -2, residual
        sweeps += taken
        residual = _sweep(P, chain, 0.0)  # again, as the levels were scaled after the last sweep
        blocked, wait, moved = _measure_and_calibrate(P, counts, mu, order, rates, service, queue, shares, busy, queued)
        if moved < max(tol, 1e-10):  # rounding keeps the change from falling further
            return shares, busy, queued, blocked, wait, sweeps, residual
    return shares, busy, queued, blocked, wait, -2, residual


def _solve_large(
    order: IntArray, rates: FloatArray, counts: IntArray, service: FloatArray, queue: bool, tol: float
) -> _Solution:
    """Solve the balance equations as `_solve` does, in blocks on all cores, which is faster for many states."""
    total, calls, P, sweeps = rates.sum(), call_rates(order, rates), np.ones(np.prod(counts + 1)), 0
    mu = total / (service * rates).sum(axis=1)
    shares, busy, queued = np.empty(service.shape), np.empty(len(counts)), np.empty(len(counts))
    for _ in range(MAX_CALIBRATIONS):
        if queue and total >= counts @ mu * (1 - 1e-12):
            return shares, busy, queued, 0.0, 0.0, -1, 0.0
        taken, residual = relax(P, counts, mu, calls, total, tol, MAX_SWEEPS)
        if taken < 0:
            break
        sweeps += taken
        blocked, wait, moved = _measure_and_calibrate(P, counts, mu, order, rates, service, queue, shares, busy, queued)
        if moved < max(tol, 1e-10):
            return shares, busy, queued, blocked, wait, sweeps, residual
    return shares, busy, queued, 0.0, 0.0, -2, 0.0


@njit(cache=True, nogil=True)
def _measure_and_calibrate(
    P: FloatArray,
    counts: IntArray,
    mu: FloatArray,
    order: IntArray,
    rates: FloatArray,
    service: FloatArray,
    queue: bool,
    shares: FloatArray,
    busy: FloatArray,
    queued: FloatArray,
) -> tuple[float, float, float]:
    """Fill ``shares``, ``busy`` and ``queued`` of a `_Solution`, and calibrate ``mu`` to the calls that units answer.

    Return the loss or queueing probability, the mean wait (min), and the largest relative change of a service time.
    """
    total, fastest = rates.sum(), (counts * mu).sum()  # Σ c_g μ_g, all units busy
    queued[:] = counts * mu / fastest  # a call that waited goes to whichever unit is free next
    # With a queue, the states in which n calls wait have probability P(full) (λ / Σμ)^n.
    tail = 1 / (1 - total / fastest) if queue else 1.0
    norm = 1 + P[-1] * (tail - 1)
    blocked = P[-1] * tail / norm
    _fill_measures(P, blocked, norm, counts, order, shares, busy)
    for j in range(len(rates)):
        shares[:, j] /= shares[:, j].sum()
    wait = 0.0
    if queue:
        wait = blocked / (fastest - total)  # a call that waits does so for 1 / (Σμ - λ) on average
        for g in range(len(counts)):
            shares[g] = (1 - blocked) * shares[g] + blocked * queued[g]
    change = 0.0
    for g in range(len(counts)):
        answered = (shares[g] * rates).sum()
        if answered > 0:
            mean = (shares[g] * rates * service[g]).sum() / answered
            change = max(change, abs(mean * mu[g] - 1))
            mu[g] = 1 / mean
    return blocked, wait, change


@njit(cache=True, nogil=True)
def _remove_bit(mask: np.uint64, g: np.uint64) -> np.uint64:
    """Remove bit ``g`` from a mask and shift the higher bits down by one."""
    low = (ONE << g) - ONE
    return (mask & low) | ((mask >> (g + ONE)) << g)


@njit(cache=True, nogil=True)
def _dispatch_rates(order: IntArray, rates: FloatArray, n_stations: int) -> FloatArray:
    """Return the rates T_g(S) of calls sent to station g while the stations in S are full, shape (G, 2^(G-1)).

    Columns are sets S of the other stations. T_g(S) is the sum of λ_j over the atoms whose stations preferred to g all
    lie in S.
    """
    half = 1 << (n_stations - 1)
    T = np.zeros((n_stations, half))
    for j in range(len(rates)):
        preferred = np.uint64(0)
        for g in order[j]:
            T[g, _remove_bit(preferred, np.uint64(g))] += rates[j]
            preferred |= ONE << np.uint64(g)
    for bit in range(n_stations - 1):
        halves = T.reshape(n_stations, half >> (bit + 1), 2, 1 << bit)
        halves[:, :, 1] += halves[:, :, 0]  # subset-sum transform: a set holds all of its subsets
    return T


@njit(cache=True, nogil=True, inline="always")
def _next_block(busy: IntArray, counts: IntArray, bits: int) -> np.int64:
    """Advance ``busy``, the busy units at each station, (G,), like an odometer; return the change of the mask.

    Bit g of the mask is set if station g is full. Stations below ``bits`` do not change.
    """
    full = np.int64(0)
    for g in range(bits, len(counts)):
        if busy[g] < counts[g]:
            busy[g] += 1
            if busy[g] == counts[g]:
                full += np.int64(1) << g
            return full
        full -= np.int64(1) << g
        busy[g] = 0
    return full


@njit(cache=True, nogil=True)
def _fill_departure_rates(leave: FloatArray, level: NDArray[np.int16], counts: IntArray, mu: FloatArray) -> None:
    """Fill the total service rate, Σ_g n_g(b) μ_g (1/min), and the number of busy units of each state b."""
    busy = np.zeros(len(counts), dtype=np.int64)
    for b in range(len(leave)):
        leave[b], level[b] = 0.0, busy.sum()
        for g in range(len(counts)):
            leave[b] += busy[g] * mu[g]
        _next_block(busy, counts, 0)


@njit(cache=True, nogil=True)
def _sweep(P: FloatArray, chain: _Chain, omega: float) -> float:
    """Relax the balance equation of every state in turn, in place; return their error relative to the total flow.

    The probability P(b) becomes P(b) + omega · (inflow / outflow rate - P(b)), at least 0; with ``omega`` = 0 nothing
    changes. The error is the sum of |inflow - outflow| over the states, divided by the sum of the inflows.
    """
    counts, strides, dispatch, mu, leave, total = chain
    bits, n_stations, last = min((counts == 1).sum(), 5), len(counts), len(P) - 1  # single units come first
    size = 1 << bits  # of a block of states that differ only in these stations, for vector operations
    busy, full = np.zeros(n_stations, dtype=np.int64), np.int64(0)
    inflow = np.empty(size)
    wrong, flow = 0.0, 0.0
    for start in range(0, len(P), size):
        inflow[:] = 0.0
        for g in range(bits, n_stations):
            n = busy[g]
            if n > 0:  # entered when a call came to g
                rates = dispatch[g, _remove_bit(np.uint64(full), np.uint64(g)) :][:size]
                below = P[start - strides[g] :][:size]
                for k in range(size):
                    inflow[k] += rates[k] * below[k]
            if n < counts[g]:  # entered when a unit at g became free
                rate = (n + 1) * mu[g]
                above = P[start + strides[g] :][:size]
                for k in range(size):
                    inflow[k] += rate * above[k]
        for k in range(size):
            b, come = start + k, inflow[k]
            for g in range(bits):
                if (k >> g) & 1:
                    others = _remove_bit(np.uint64(full + k), np.uint64(g))
                    come += dispatch[np.uint64(g), others] * P[np.uint64(b - (1 << g))]  # unsigned: no check below 0
                else:
                    come += mu[g] * P[np.uint64(b + (1 << g))]
            rate = leave[b] + total if b < last else leave[b]  # in the last state a call changes nothing
            wrong += abs(come - rate * P[b])
            flow += come
            P[b] = max(P[b] + omega * (come / rate - P[b]), 0.0)
        full += _next_block(busy, counts, bits)
    return wrong / flow


@njit(cache=True, nogil=True)
def _relax(P: FloatArray, chain: _Chain, level: NDArray[np.int16], tol: float) -> int:
    """Sweep until the balance equations hold to ``tol``; return the number of sweeps, or -1 after `MAX_SWEEPS`."""
    leave, total = chain[4], chain[5]
    _rescale_levels(P, leave, level, total)  # a first guess that balances the flow between levels
    omega, before = 1.0, 1.0
    for sweep in range(1, MAX_SWEEPS + 1):
        wrong = _sweep(P, chain, omega)
        _rescale_levels(P, leave, level, total)
        if wrong < tol:
            return sweep
        if sweep % TUNE_EVERY == 1:
            before = wrong
        elif sweep % TUNE_EVERY == 0:
            omega = relaxation_factor(omega, (wrong / before) ** (1 / (TUNE_EVERY - 1)))
    return -1


@njit(cache=True, nogil=True)
def _rescale_levels(P: FloatArray, leave: FloatArray, level: NDArray[np.int16], total: float) -> None:
    """Scale the probabilities of each level (number of busy units) so that the flows between levels balance.

    λ mass(k) = Σ_{b in level k+1} P(b) Σ_g n_g(b) μ_g must hold, with mass(k) the probability of level k.
    """
    top = level[-1]
    mass, flow = np.zeros(top + 1), np.zeros(top + 1)
    for b in range(len(P)):
        mass[level[b]] += P[b]
        flow[level[b]] += P[b] * leave[b]
    scale = level_scale(mass, flow, total)
    for b in range(len(P)):
        P[b] *= scale[level[b]]


@njit(cache=True, nogil=True)
def _fill_measures(
    P: FloatArray, blocked: float, norm: float, counts: IntArray, order: IntArray, shares: FloatArray, busy: FloatArray
) -> None:
    """Fill the busy fraction of a unit of each station, (G,), and the ``shares`` of calls answered at once, (G, M).

    ``P`` divided by ``norm`` gives the probabilities of the states, except for the last, in which all units are busy:
    its probability, including calls that wait, is ``blocked``. With S the first k stations in the order of atom j, the
    next station answers with probability F(S) - F(S + next).
    """
    n_stations = len(counts)
    state, full = np.zeros(n_stations, dtype=np.int64), np.int64(0)
    busy[:] = 0.0
    F = np.zeros(1 << n_stations)
    for b in range(len(P)):
        probability = P[b] / norm if b < len(P) - 1 else blocked
        F[full] += probability
        for g in range(n_stations):
            busy[g] += probability * state[g]
        full += _next_block(state, counts, 0)
    busy /= counts
    for bit in range(n_stations):
        for start in range(0, len(F), 2 << bit):  # in a loop, as one line would need half of F once more
            for k in range(start, start + (1 << bit)):
                F[k] += F[k + (1 << bit)]  # a set counts for each of its subsets
    for j in range(order.shape[0]):
        preferred = 0
        for g in order[j]:
            wider = preferred | (1 << g)
            shares[g, j] = F[preferred] - F[wider]
            preferred = wider
