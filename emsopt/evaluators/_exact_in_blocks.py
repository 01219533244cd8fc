"""Solve the balance equations of a large hypercube in blocks of states, in parallel and without storing rates.

A *block* holds the 2^10 states that differ only in the first ten stations, each with one unit. The rates at which
calls enter its states are subset sums over the ten stations, computed when the block is visited, as reading stored ones
would take as long. A *row* holds the states of a block that differ only in the first three stations. Rows with an even
number of busy units at the others are relaxed first, and in each row the states with an even number of busy units among
the three: states that are relaxed together are not neighbours. A *part* holds the blocks with the same busy units at
the last few stations. Parts with equally many busy units there are not neighbours either, and are swept in parallel;
the result does not depend on the number of threads. A *level* is a number of busy units.
"""

from concurrent.futures import ThreadPoolExecutor
from typing import TypeAlias

import numpy as np
from numba import njit

from .._running.parallel import cores
from ..errors._types import FloatArray, IntArray

BLOCK_BITS = 10  # stations within a block, whose states take 8 kB of the fastest cache
BLOCK_SIZE = 1 << BLOCK_BITS
ROW_STATES = 8  # states of a row, which differ in three stations only; half of them are relaxed in each turn
FIRST_STATIONS = 5  # first stations of a block: the sets of these are listed for each entry of calls, not summed over
N_FIRST_SUBSETS = 1 << FIRST_STATIONS
MOST_PARTS = 64  # at most so many parts, on any number of cores: the results must not depend on it
FIRST_OMEGA = 1.4  # first relaxation factor; that of 20 units is 1.55
TUNE_EVERY = 5  # sweeps between two checks of the rate of convergence, which settles only slowly
LEAST_FACTOR = 0.1  # of a probability in one sweep: those of a level must not vanish

_IS_BUSY = np.arange(BLOCK_SIZE)[:, None] >> np.arange(BLOCK_BITS) & 1
_N_BUSY = _IS_BUSY.sum(axis=1)
# Even rows and states first: neighbours must take turns.
_ROW_ORDER = ROW_STATES * np.argsort(_N_BUSY[::ROW_STATES] % 2, kind="stable")
_STATE_ORDER = np.argsort(_N_BUSY[:ROW_STATES] % 2, kind="stable").reshape(2, -1)
# Whether a set of the first five stations is in another.
_IS_SUBSET = ((np.arange(N_FIRST_SUBSETS)[:, None] & ~np.arange(N_FIRST_SUBSETS)) == 0).astype(float)
# The place of a set of the other five stations in `T`, among all sets and among those with one of the stations.
_ALL_SETS = np.arange(BLOCK_SIZE // N_FIRST_SUBSETS)
_SETS_WITH_STATION = np.cumsum(_ALL_SETS >> np.arange(BLOCK_BITS - FIRST_STATIONS)[:, None] & 1, axis=1) - 1

_Rates: TypeAlias = tuple[IntArray, IntArray, IntArray, FloatArray]
"""Rates of calls: for each station the index of its first entry, (G + 1,); for each entry the stations that must be
full as bits, those after the first ten and those among them, and the rate of calls that then go to the station."""


def fits_blocks(counts: IntArray) -> bool:
    """Return whether the first ten stations have one unit each, and there are at least five others."""
    return len(counts) > BLOCK_BITS + 4 and counts[BLOCK_BITS - 1] == 1


def call_rates(order: IntArray, rates: FloatArray) -> _Rates:
    """Return the `_Rates` of atoms with ``rates``, (M,), 1/min; row j of ``order``, (M, G), lists atom j's stations.

    The set of full stations of one of the first ten contains this station itself, which is full after the call.
    """
    bits = 1 << order
    key = (order << 56) | (np.cumsum(bits, axis=1) - bits)  # in one integer, so that one sort finds equal pairs
    key, inverse = np.unique(key, return_inverse=True)
    station, full = key >> 56, key & ((1 << 56) - 1)
    low = (full | np.where(station < BLOCK_BITS, 1 << station, 0)) & ((1 << BLOCK_BITS) - 1)
    first = np.searchsorted(station, np.arange(order.shape[1] + 1))
    weights = np.bincount(inverse.ravel(), np.repeat(rates, order.shape[1])).astype(float)
    return first.astype(np.int64), full >> BLOCK_BITS, low, weights


def relax(
    P: FloatArray, counts: IntArray, mu: FloatArray, calls: _Rates, total: float, tol: float, most: int
) -> tuple[int, float]:
    """Iterate on P in place until the balance equations hold to ``tol``; return the number of sweeps and the residual.

    ``counts``, (G,), are the units at each station, ``mu``, (G,), the service rate of one (1/min), and ``total`` is the
    rate of all calls (1/min). After ``most`` sweeps in vain, the number is -1.
    """
    high = counts[BLOCK_BITS:]
    strides = np.cumprod(np.r_[1, high + 1])
    split = int(np.argmax(strides[-1] // strides <= MOST_PARTS))  # stations from here on are the same within a part
    size = int(strides[split])
    level = np.indices(tuple(high[split:][::-1] + 1)).reshape(len(high) - split, -1).sum(axis=0)
    waves = [np.flatnonzero(level == n) * size for n in range(level.max() + 1)]  # none is next to another of its wave
    chain, top = (counts, mu, strides, calls, total), int(counts.sum())
    leave = _IS_BUSY @ mu[:BLOCK_BITS]

    def sweep(scale: FloatArray, omega: float) -> tuple[float, FloatArray]:
        """Scale each level, then relax every equation; return the error relative to the flow, and the next scales."""
        padded = np.r_[scale, 1.0, 1.0]  # the top level has no next
        factors = padded[_N_BUSY + np.arange(top - BLOCK_BITS + 2)[:, None]]
        wrong, entered, (mass, flow) = 0.0, 0.0, np.zeros((2, top + 1))
        for wave in waves:
            for part in pool.map(lambda k: _sweep_part(blocks, k, size, chain, leave, factors, omega), wave):
                wrong, entered, mass, flow = wrong + part[0], entered + part[1], mass + part[2], flow + part[3]
        return wrong / entered, level_scale(mass, flow, total)

    blocks = P.reshape(-1, BLOCK_SIZE)
    with ThreadPoolExecutor(cores()) as pool:
        _, scale = sweep(np.ones(top + 1), 0.0)  # changes nothing, but finds the first scale
        omega, before = FIRST_OMEGA, 1.0
        for n in range(1, most + 1):
            wrong, scale = sweep(scale, omega)
            if wrong < tol:
                return n, sweep(scale, 0.0)[0]  # which also applies the last scale
            if n % TUNE_EVERY == 1:
                before = wrong
            elif n % TUNE_EVERY == 0:
                omega = relaxation_factor(omega, (wrong / before) ** (1 / (TUNE_EVERY - 1)))
    return -1, wrong


@njit(cache=True, nogil=True)
def relaxation_factor(omega: float, rate: float) -> float:
    """Return the relaxation factor of the next sweeps, if a sweep with ``omega`` multiplies the error by ``rate``.

    Neighbouring states differ by one busy unit, so that the equations are bipartite, and Young's theory applies.
    """
    if rate > 0.95:  # over-relaxation does not help here
        return 1.0
    if rate > omega - 1:  # factor still too small: get the Jacobi rate, then the factor, by Young
        jacobi = min((rate + omega - 1) ** 2 / (omega**2 * rate), 0.95)
        return float(2 / (1 + np.sqrt(1 - jacobi)))
    return omega


@njit(cache=True, nogil=True)
def level_scale(mass: FloatArray, flow: FloatArray, total: float) -> FloatArray:
    """Return a factor for each level so that, scaled by them, ``total`` times mass(k) is flow(k + 1) for all levels k.

    ``mass`` is the probability of each level, and ``flow`` its sum of probability times service rate.
    """
    target = np.ones(len(mass))
    for k in range(1, len(mass)):
        target[k] = target[k - 1] * total * mass[k] / flow[k]
        if target[k] > 1e100:
            target[: k + 1] *= 1e-100  # products over many levels would overflow
    return np.maximum(target / target.sum(), 1e-290) / mass  # a level scaled to zero would stay at zero


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz"})
def _fill_call_rates(T: FloatArray, first: int, last: int, full: int, place: IntArray, calls: _Rates) -> None:
    """Fill ``T`` with the rate (1/min) of the calls that go to one station, by set of full stations in the block.

    Entries ``first`` to ``last - 1`` of ``calls`` are the station's; each counts in every set that contains its own.
    ``full`` has the full stations outside the block as bits, ``place`` the part of ``T`` for each set of those after
    the first five.
    """
    _, high, low, rates = calls
    T[:] = 0.0
    for q in range(first, last):
        if high[q] & ~full == 0:
            start, supersets = N_FIRST_SUBSETS * place[low[q] // N_FIRST_SUBSETS], _IS_SUBSET[low[q] % N_FIRST_SUBSETS]
            part = T[start : start + N_FIRST_SUBSETS]  # 32 consecutive numbers or more, for vector instructions
            for k in range(len(part)):
                part[k] += rates[q] * supersets[k]
    half = N_FIRST_SUBSETS
    while half < len(T):
        for start in range(0, len(T), 2 * half):
            without, within = T[start : start + half], T[start + half : start + 2 * half]
            for k in range(half):
                within[k] += without[k]
        half *= 2


@njit(cache=True, nogil=True)
def _possible_calls(first_block: int, n_blocks: int, strides: IntArray, counts: IntArray, calls: _Rates) -> _Rates:
    """Return the entries of ``calls`` that can apply in a part, whose stations after the first ten can all be full."""
    first, high, low, rates = calls
    never = 0  # stations that are not full in any block of the part
    for g in range(len(counts) - BLOCK_BITS):
        if strides[g] >= n_blocks and first_block // strides[g] % (counts[BLOCK_BITS + g] + 1) < counts[BLOCK_BITS + g]:
            never |= 1 << g
    keep = high & never == 0
    number = np.zeros(len(keep) + 1, np.int64)
    number[1:] = np.cumsum(keep)
    return number[first], high[keep], low[keep], rates[keep]


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz"})
def _fill_entry_rates(
    low_rates: FloatArray, freed: FloatArray, full: int, calls: _Rates, T: FloatArray, half: FloatArray
) -> None:
    """Fill ``low_rates``, (10, 1024), 1/min: entry (g, b) is the rate to state b from that which differs in station g.

    Where b has no unit of g busy, it is the service rate: ``freed``, (5, 1024), for the first five stations; for the
    others it stands there already.
    """
    first = calls[0]
    for g in range(FIRST_STATIONS):
        _fill_call_rates(T, first[g], first[g + 1], full, _ALL_SETS, calls)
        for b in range(BLOCK_SIZE):
            low_rates[g, b] = T[b] + freed[g, b]
    for g in range(FIRST_STATIONS, BLOCK_BITS):
        _fill_call_rates(half, first[g], first[g + 1], full, _SETS_WITH_STATION[g - FIRST_STATIONS], calls)
        bit, start = 1 << g, 0  # sets with g follow sets without
        for to in range(bit, BLOCK_SIZE, 2 * bit):
            low_rates[g, to : to + bit] = half[start : start + bit]
            start += bit


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz"})
def _relax_block(
    x: FloatArray,
    inflow: FloatArray,
    low_rates: FloatArray,
    rate: FloatArray,
    step: FloatArray,
    come: FloatArray,
    wrong: float,
    entered: float,
) -> tuple[float, float]:
    """Relax the equations of the states ``x`` of a block; return ``wrong`` plus |errors|, ``entered`` plus inflows."""
    for row in _ROW_ORDER:
        for k in range(ROW_STATES):
            b = row | k
            come[k] = inflow[b] + (
                low_rates[3, b] * x[b ^ 8]
                + low_rates[4, b] * x[b ^ 16]
                + low_rates[5, b] * x[b ^ 32]
                + low_rates[6, b] * x[b ^ 64]
                + low_rates[7, b] * x[b ^ 128]
                + low_rates[8, b] * x[b ^ 256]
                + low_rates[9, b] * x[b ^ 512]
            )
        for turn in range(2):
            for k in _STATE_ORDER[turn]:
                b = row | k
                came = come[k] + (low_rates[0, b] * x[b ^ 1] + low_rates[1, b] * x[b ^ 2] + low_rates[2, b] * x[b ^ 4])
                error = came - rate[b] * x[b]
                wrong += abs(error)
                entered += came
                x[b] = max(x[b] + error * step[b], LEAST_FACTOR * x[b])
    return wrong, entered


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz"})
def _sum_by_level(levels: FloatArray, top: int) -> FloatArray:
    """Return sums by level, (2, top + 1), from sums by units busy outside the block and state in the block."""
    sums = np.zeros((2, top + 1))
    for n in range(levels.shape[1]):
        for b in range(BLOCK_SIZE):
            sums[0, n + _N_BUSY[b]] += levels[0, n, b]
            sums[1, n + _N_BUSY[b]] += levels[1, n, b]
    return sums


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz"})
def _sweep_part(
    P: FloatArray,
    first_block: int,
    n_blocks: int,
    chain: tuple[IntArray, FloatArray, IntArray, _Rates, float],
    leave: FloatArray,
    factors: FloatArray,
    omega: float,
) -> tuple[float, float, FloatArray, FloatArray]:
    """Relax the balance equations of a part, some consecutive blocks, in place.

    Returns the sum of |inflow - outflow|, the sum of the inflows, and by level the sums ``mass`` and ``flow``.
    """
    counts, mu, strides, all_calls, total = chain
    calls = _possible_calls(first_block, n_blocks, strides, counts, all_calls)
    first, n_high = calls[0], len(counts) - BLOCK_BITS
    T, half, come = np.empty(BLOCK_SIZE), np.empty(BLOCK_SIZE // 2), np.empty(ROW_STATES)
    low_rates, freed = np.empty((BLOCK_BITS, BLOCK_SIZE)), np.zeros((FIRST_STATIONS, BLOCK_SIZE))
    inflow, x, rate, step = np.empty(BLOCK_SIZE), np.empty(BLOCK_SIZE), np.empty(BLOCK_SIZE), np.empty(BLOCK_SIZE)
    # By number of units busy elsewhere, and by state in the block, so that loops become vector instructions.
    levels = np.zeros((2, counts[BLOCK_BITS:].sum() + 1, BLOCK_SIZE))
    for g in range(BLOCK_BITS):  # a state without g is entered when g becomes free
        low_rates[g] = mu[g]
    for g in range(FIRST_STATIONS):
        for b in range(BLOCK_SIZE):
            if not b >> g & 1:
                freed[g, b] = mu[g]
    wrong, entered = 0.0, 0.0
    for h in range(first_block, first_block + n_blocks):
        full, n_busy, served = 0, 0, 0.0
        inflow[:] = 0.0
        for g in range(n_high):  # entered when a unit at g became free
            n = h // strides[g] % (counts[BLOCK_BITS + g] + 1)
            n_busy += n
            served += n * mu[BLOCK_BITS + g]
            if n == counts[BLOCK_BITS + g]:
                full |= 1 << g
            else:
                one, above = (n + 1) * mu[BLOCK_BITS + g], P[h + strides[g]]
                for b in range(BLOCK_SIZE):
                    inflow[b] += one * above[b]
        here, own, next_level = P[h], factors[n_busy], factors[n_busy + 1]
        for b in range(BLOCK_SIZE):
            inflow[b] *= next_level[b]
            x[b] = here[b] * own[b]
            rate[b] = total + served + leave[b]
        if h == len(P) - 1:
            rate[-1] -= total  # in the last state all units are busy, and a call changes nothing
        for b in range(BLOCK_SIZE):
            step[b] = omega / rate[b]
        for g in range(n_high):  # entered when a call came to g
            if h // strides[g] % (counts[BLOCK_BITS + g] + 1) > 0:
                _fill_call_rates(T, first[BLOCK_BITS + g], first[BLOCK_BITS + g + 1], full, _ALL_SETS, calls)
                below = P[h - strides[g]]
                for b in range(BLOCK_SIZE):
                    inflow[b] += T[b] * below[b]
        _fill_entry_rates(low_rates, freed, full, calls, T, half)
        wrong, entered = _relax_block(x, inflow, low_rates, rate, step, come, wrong, entered)
        mass_here, flow_here = levels[0, n_busy], levels[1, n_busy]
        for b in range(BLOCK_SIZE):
            here[b] = x[b]
            mass_here[b] += x[b]
            flow_here[b] += x[b] * (served + leave[b])
    mass, flow = _sum_by_level(levels, counts.sum())
    return wrong, entered, mass, flow
