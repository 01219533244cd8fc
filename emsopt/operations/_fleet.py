"""Units of an operations simulation: their positions, drives, durations of calls, and relocation.

A unit's present or last drive is from place ``origin`` to ``goal``, between ``leave`` and ``arrive``. On the way, its
driving time to a place is interpolated between those from both ends; a new drive counts as one from the nearer end. A
job is one of the units that a call needs, numbered slot * MOST_UNITS + k, where an open call occupies a slot.

Compiled functions take arrays of records (`UNIT`, `CALL`, `CLASS`, `SITE`), as reading arrays from tuples would take
two thirds of the time for counting references.

**Random numbers by counter.** The n-th call draws the same numbers under every deployment: number k of call n is the
SplitMix64 value (Steele, Lea and Flood 2014) of ``n * NUMBERS_PER_CALL + k``, whichever units answered before.

Steele, G. L., Lea, D. and Flood, C. H. (2014). Fast splittable pseudorandom number generators. OOPSLA, 453-472.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numba import njit, uint64

from ..errors._types import FloatArray, IntArray

NUMBERS_PER_CALL = 64  # numbers reserved per call, so that none depends on others

UNIT = np.dtype(
    [
        ("home", int), ("first_home", int),  # site where it waits or to which it drives; where its shift begins
        ("on", bool), ("busy", bool),
        ("origin", int), ("goal", int), ("leave", float), ("arrive", float),
        ("job", int), ("since", float), ("free", float), ("end", int),  # present call: sent at, ends at, and where
        ("hospital", int), ("carry", float), ("arrived", float), ("homeward", float),  # traced when the call is over
        ("row", int),  # of its last drive in the trace, whose end changes if the drive is cut short
        ("worked", float),  # minutes of calls that are over; those of the present call are added when it ends
        ("off", float), ("overtime", float),  # end of the last shift; minutes worked after it, counted as duty
    ]
)  # fmt: skip
CALL = np.dtype(
    [
        ("number", int), ("time", float), ("atom", int), ("priority", int),
        ("jobs", int),  # unfinished: with the last one the call is over
        ("sent", float), ("first", float),  # first dispatch and first arrival, from which wait and response are counted
    ]
)  # fmt: skip
CLASS = np.dtype(
    [
        ("share", float),  # cumulative, as a class is drawn by inversion
        ("delay", float), ("mode", int), ("scene", float), ("scene_spread", float),
        ("transport", float), ("target", float),
    ]
)  # fmt: skip
SITE = np.dtype([("turnout", float), ("offset", float), ("near", int), ("near_end", int)])  # part of the array `near`


def zero_records(n: int, kind: np.dtype) -> np.recarray:
    """Return n records of a type, all fields 0; fields are attributes even if numba's compilation is switched off."""
    return np.zeros(n, kind).view(np.recarray)


class PolicyArrays(NamedTuple):
    """A `Policy` for p units, N sites, M atoms and G groups of atoms, as numbers and arrays for compiled code."""

    dispatch: int  # place in `DISPATCH_RULES`, which `run_events` relies on: 0 closest, 1 preference, 2 coverage
    on_the_way: bool
    queue: bool
    relocation: int  # place in `RELOCATION_RULES`, likewise: 0 none, 1 table, 2 coverage
    moves: int
    drive_factor: float  # factor of the driving times to sites: 0 if free units move in no time
    patience: float
    sites: Any  # (N,) of SITE, as records are read fastest
    preference: FloatArray  # (N, M) smaller is preferred; response times if the city has no preferences
    table: IntArray  # (p, p), row k - 1 for k free units
    near: IntArray  # groups of atoms within coverage, site by site: SITE says where those of a site are
    weight: FloatArray  # (G,) calls of each group: atoms that the same sites cover are counted together
    powers: FloatArray  # (p + 1,) of the busy fraction, computed once


@njit(cache=True, nogil=True, inline="always")
def draw_uniform(seed: int, n: int, k: int) -> float:
    """Return the k-th uniform random number of call n, in (0, 1)."""
    z = uint64(seed) + uint64(n * NUMBERS_PER_CALL + k + 1) * uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> uint64(30))) * uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> uint64(27))) * uint64(0x94D049BB133111EB)
    z = z ^ (z >> uint64(31))
    return (float(z >> uint64(11)) + 0.5) * 2.0**-53  # never 0, whose logarithm is infinite


@njit(cache=True, nogil=True, inline="always")
def draw_duration(mean: float, spread: float, seed: int, n: int, k: int) -> float:
    """Draw a duration (min): exponential if ``spread`` < 0, fixed if 0, else lognormal with this log deviation."""
    if mean == 0 or spread == 0:
        return mean
    if spread < 0:
        return -mean * math.log(draw_uniform(seed, n, k))
    first, second = draw_uniform(seed, n, k), draw_uniform(seed, n, k + 1)
    normal = math.sqrt(-2 * math.log(first)) * math.cos(2 * math.pi * second)  # Box and Muller
    return mean * math.exp(spread * normal - spread * spread / 2)


@njit(cache=True, nogil=True, inline="always")
def driving_minutes(unit: Any, to_place: FloatArray, mode: int, place: int, now: float) -> float:
    """Return the mean driving time (min) of a unit from its position at minute ``now`` to a place."""
    there: float = to_place[mode, place, unit.goal]
    if unit.arrive <= now:
        return there
    left = min((unit.arrive - now) / (unit.arrive - unit.leave), 1.0)  # 1 until the unit has turned out
    return left * to_place[mode, place, unit.origin] + (1 - left) * there


@njit(cache=True, nogil=True, inline="always")
def trace_drive(
    u: int, call: int, origin: int, goal: int, leave: float, arrive: float, trace: FloatArray, row: int
) -> int:
    """Write a drive into row ``row`` of the trace, shape (n, 7), if there is room; return the number of rows in use."""
    if row == len(trace):
        return row
    trace[row, 0], trace[row, 1], trace[row, 2], trace[row, 3] = u, call, origin, goal
    trace[row, 4], trace[row, 5], trace[row, 6] = leave, arrive, arrive
    return row + 1


@njit(cache=True, nogil=True, inline="always")
def start_drive(
    fleet: Any, u: int, call: int, goal: int, now: float, leave: float, arrive: float, trace: FloatArray, row: int
) -> int:
    """Send unit u from its present position to place ``goal``; return the number of rows of the trace in use."""
    place = fleet[u].goal
    if fleet[u].arrive > now and fleet[u].arrive - now > (fleet[u].arrive - fleet[u].leave) / 2:
        place = fleet[u].origin
    last = fleet[u].row
    if last >= 0:
        trace[last, 6] = min(trace[last, 5], now)
        fleet[u].row = -1
    if row < len(trace):
        fleet[u].row = row
    row = trace_drive(u, call, place, goal, leave, arrive, trace, row)
    fleet[u].origin, fleet[u].goal, fleet[u].leave, fleet[u].arrive = place, goal, leave, arrive
    return row


@njit(cache=True, nogil=True)
def choose_site_by_table(fleet: Any, u: int, table: IntArray, to_place: FloatArray, now: float, need: IntArray) -> int:
    """Return the nearest site to which free unit u should go by the compliance table; its own if none needs it."""
    count_needs(fleet, u, table, need)
    best, site = np.inf, fleet[u].home
    for i in range(len(need)):
        if need[i] > 0:
            minutes = driving_minutes(fleet[u], to_place, len(to_place) - 1, i, now)
            if minutes < best:
                best, site = minutes, i
    return site


@njit(cache=True, nogil=True)
def count_needs(fleet: Any, u: int, table: IntArray, need: IntArray) -> None:
    """Set ``need``, (N,), to the units that the table wants at each site, less free units but u, there or coming."""
    free = 0
    need[:] = 0
    for v in range(len(fleet)):
        if fleet[v].on and not fleet[v].busy:
            free += 1
            if v != u:
                need[fleet[v].home] -= 1
    for r in range(free):
        need[table[free - 1, r]] += 1


@njit(cache=True, nogil=True)
def fill_coverage_gains(fleet: Any, u: int, rules: PolicyArrays, own: int, count: IntArray, value: FloatArray) -> None:
    """Set ``value``, (G,), to the calls of each group of atoms that one more unit in reach would cover: its calls q^n.

    q is the busy fraction, and n the number of free units that cover the group, without unit u and less ``own``.
    """
    count[:] = -own
    for v in range(len(fleet)):
        if v != u and fleet[v].on and not fleet[v].busy:
            for r in range(rules.sites[fleet[v].home].near, rules.sites[fleet[v].home].near_end):
                count[rules.near[r]] += 1
    for j in range(len(count)):
        value[j] = rules.weight[j] * rules.powers[max(count[j], 0)]


@njit(cache=True, nogil=True, inline="always")
def sum_coverage_gains(i: int, sites: Any, near: IntArray, value: FloatArray) -> float:
    """Return the sum of ``value``, shape (G,), over the groups of atoms that site i covers."""
    total = 0.0
    for r in range(sites[i].near, sites[i].near_end):
        total += value[near[r]]
    return total


@njit(cache=True, nogil=True)
def choose_site_by_coverage(
    fleet: Any, u: int, rules: PolicyArrays, minutes: FloatArray, count: IntArray, value: FloatArray
) -> int:
    """Return the site where free unit u adds most expected coverage, discounted by the driving times to the sites."""
    fill_coverage_gains(fleet, u, rules, 0, count, value)
    most, home = -1.0, fleet[u].home
    site = home
    for step in range(-1, len(minutes)):  # its home first: it moves only for a clear gain
        i = step if step >= 0 else home
        gain = sum_coverage_gains(i, rules.sites, rules.near, value)
        if rules.patience < np.inf:
            gain *= math.exp(-minutes[i] / rules.patience)
        if gain > most * (1 + 1e-12):
            most, site = gain, i
    return site


@njit(cache=True, nogil=True)
def change_shift(fleet: Any, u: int, now: float) -> None:
    """Begin or end the shift of unit u at minute ``now``; it begins at its first site unless the unit is busy."""
    unit = fleet[u]
    unit.on = not unit.on
    if not unit.on:
        unit.off = now
    elif unit.busy:  # it worked on in its time off
        unit.overtime += now - unit.off
    else:
        unit.home = unit.origin = unit.goal = unit.first_home
        unit.leave = unit.arrive = now


@njit(cache=True, nogil=True, error_model="numpy")
def move_free_units(
    fleet: Any, table: IntArray, moves: int, now: float, drive_factor: float, to_place: FloatArray, need: IntArray,
    trace: FloatArray, row: int,
) -> tuple[int, int]:  # fmt: skip
    """Move up to ``moves`` free units to sites that lack one, the nearest first; return trace rows and units moved."""
    count_needs(fleet, -1, table, need)
    for moved in range(moves):
        best, u, site = np.inf, -1, -1
        for v in range(len(fleet)):
            if fleet[v].on and not fleet[v].busy and need[fleet[v].home] < 0:
                for i in range(len(need)):
                    if need[i] > 0:
                        minutes = driving_minutes(fleet[v], to_place, len(to_place) - 1, i, now)
                        if minutes < best:
                            best, u, site = minutes, v, i
        if u < 0:
            return row, moved
        need[fleet[u].home] += 1
        need[site] -= 1
        row = start_drive(fleet, u, -1, site, now, now, now + best * drive_factor, trace, row)
        fleet[u].home = site
    return row, moves
