"""The events of an operations simulation, compiled: calls, units that become free, and full hours.

A unit's present or last drive is from place ``origin`` to ``goal``, between ``leave`` and ``arrive``. On the way, its
driving time to a place is interpolated between those from both ends; a new drive from there starts, for the next such
interpolation, at the nearer end. A job is one of the units that a call needs, numbered slot * MOST_UNITS + k, where an
open call occupies a slot.

Compiled functions take arrays of records (`UNIT`, `CALL`, `CLASS`, `SITE`) rather than tuples of arrays, whose parts
would be counted as references each time they are read: that took two thirds of the time.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from .._types import FloatArray, IntArray
from . import _numbers
from ._numbers import ATOM, DRIVE, GAP, HANDOVER, JOBS, MOST_UNITS, PER_JOB, PRIORITY, SCENE, TRANSPORT, TURNOUT, UNITS

QUEUE = 4096  # jobs that may wait in each priority; more are the sign of a fleet that cannot keep up
BINS, PER_MINUTE = 2400, 10  # of the histogram of response times: up to four hours
IN_TIME = 1e4  # subtracted from the score of a unit that would be in time, where dispatch is by coverage

UNIT = np.dtype(
    [
        ("home", int), ("first_home", int),  # site where it waits or to which it drives; where its shift begins
        ("on", bool), ("busy", bool),
        ("origin", int), ("goal", int), ("leave", float), ("arrive", float),
        ("job", int), ("since", float), ("free", float), ("end", int),  # present call: sent at, ends at, and where
        ("hospital", int), ("carry", float), ("arrived", float), ("homeward", float),  # on the way there; -1 if nowhere
        ("row", int),  # of its last drive in the trace
        ("worked", float),  # minutes of calls that are over
        ("off", float), ("overtime", float),  # end of the last shift; minutes worked after the ends of shifts
    ]
)  # fmt: skip
CALL = np.dtype(
    [
        ("number", int), ("time", float), ("atom", int), ("priority", int),
        ("jobs", int),  # unfinished
        ("sent", float), ("first", float),  # first dispatch, first arrival
    ]
)  # fmt: skip
CLASS = np.dtype(
    [
        ("share", float),  # cumulative
        ("delay", float), ("mode", int), ("scene", float), ("scene_spread", float),
        ("transport", float), ("target", float),
    ]
)  # fmt: skip
SITE = np.dtype([("turnout", float), ("offset", float), ("near", int), ("near_end", int)])  # its part of `Rules.near`


class World(NamedTuple):
    """What happens whatever the policy; K priorities."""

    rate: float  # calls a minute
    trips: bool  # whether units drive to hospitals and home; else the hypercube's service times count
    turnout_spread: float
    drive_spread: float
    handover: float
    handover_spread: float
    by_hour: FloatArray  # (168,)
    speed: FloatArray  # (168,)
    atoms: FloatArray  # (M,) cumulative shares
    guide: IntArray  # (M,) where to begin looking in them
    classes: Any  # (K,) of CLASS
    units: FloatArray  # (K, U) cumulative
    takes: Any  # (K, K) whether the row may take units from the column
    to_place: FloatArray  # (R, P, P)
    service: FloatArray  # (N, M)
    hospital_of: IntArray  # (M,) places


class Rules(NamedTuple):
    """A policy."""

    dispatch: int  # 0 closest, 1 preference, 2 coverage
    on_the_way: bool
    queue: bool
    relocation: int  # 0 none, 1 table, 2 coverage
    moves: int
    haste: float  # factor of the driving times to sites: 0 if free units move in no time
    patience: float
    sites: Any  # (N,) of SITE
    preference: FloatArray  # (N, M)
    table: IntArray  # (p, p)
    near: IntArray  # groups of atoms within coverage of each site, one site after the other
    weight: FloatArray  # (G,) calls of each group: the atoms that the same sites cover
    powers: FloatArray  # (p + 1,) of the busy fraction


class Tally(NamedTuple):
    """What is counted."""

    batches: FloatArray  # (B, K, 5) calls, lost, response, late, waited
    histogram: IntArray  # (K, BINS)
    atoms: FloatArray  # (M, 3) answered, response, late
    moves: FloatArray  # (2,) relocations, units taken over
    trace: FloatArray  # (n, 7) unit, call (-1 if none), origin, goal, leave, arrive, until


@njit(cache=True, nogil=True, inline="always")
def minutes_to(unit: Any, to_place: FloatArray, mode: int, place: int, now: float) -> float:
    """Return the mean driving time of a unit from where it is."""
    there: float = to_place[mode, place, unit.goal]
    if unit.arrive <= now:
        return there
    left = min((unit.arrive - now) / (unit.arrive - unit.leave), 1.0)
    return left * to_place[mode, place, unit.origin] + (1 - left) * there


@njit(cache=True, nogil=True, inline="always")
def record(u: int, call: int, origin: int, goal: int, leave: float, arrive: float, trace: FloatArray, row: int) -> int:
    """Write a drive into the trace if there is room; return the number of drives traced so far."""
    if row == len(trace):
        return row
    trace[row, 0], trace[row, 1], trace[row, 2], trace[row, 3] = u, call, origin, goal
    trace[row, 4], trace[row, 5], trace[row, 6] = leave, arrive, arrive
    return row + 1


@njit(cache=True, nogil=True, inline="always")
def drive(
    fleet: Any, u: int, call: int, goal: int, now: float, leave: float, arrive: float, trace: FloatArray, row: int
) -> int:
    """Let unit u drive from where it is; return the number of drives traced so far."""
    place = fleet[u].goal
    if fleet[u].arrive > now and fleet[u].arrive - now > (fleet[u].arrive - fleet[u].leave) / 2:
        place = fleet[u].origin
    last = fleet[u].row
    if last >= 0:
        trace[last, 6] = min(trace[last, 5], now)
        fleet[u].row = -1
    if row < len(trace):
        fleet[u].row = row
    row = record(u, call, place, goal, leave, arrive, trace, row)
    fleet[u].origin, fleet[u].goal, fleet[u].leave, fleet[u].arrive = place, goal, leave, arrive
    return row


@njit(cache=True, nogil=True)
def site_by_table(fleet: Any, u: int, table: IntArray, to_place: FloatArray, now: float, need: IntArray) -> int:
    """Return the nearest site of the compliance table that free unit u should cover; its own if there is none."""
    count_needs(fleet, u, table, need)
    best, site = np.inf, fleet[u].home
    for i in range(len(need)):
        if need[i] > 0:
            minutes = minutes_to(fleet[u], to_place, len(to_place) - 1, i, now)
            if minutes < best:
                best, site = minutes, i
    return site


@njit(cache=True, nogil=True)
def count_needs(fleet: Any, u: int, table: IntArray, need: IntArray) -> None:
    """Set ``need`` to the units wanted at each site less those that are there or coming; unit u is not counted."""
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
def value_cover(fleet: Any, u: int, rules: Rules, own: int, count: IntArray, value: FloatArray) -> None:
    """Set ``value`` to d_j q^n, shape (G,), with n the free units that cover group j, less ``own``; u is not counted.

    Times 1 - q, it is what one more unit adds there (own = 0), or what a unit that covers it adds now (own = 1).
    """
    count[:] = -own
    for v in range(len(fleet)):
        if v != u and fleet[v].on and not fleet[v].busy:
            for r in range(rules.sites[fleet[v].home].near, rules.sites[fleet[v].home].near_end):
                count[rules.near[r]] += 1
    for j in range(len(count)):
        value[j] = rules.weight[j] * rules.powers[max(count[j], 0)]


@njit(cache=True, nogil=True, inline="always")
def covered(i: int, sites: Any, near: IntArray, value: FloatArray) -> float:
    """Return the value of the groups that site i covers."""
    total = 0.0
    for r in range(sites[i].near, sites[i].near_end):
        total += value[near[r]]
    return total


@njit(cache=True, nogil=True)
def site_by_coverage(fleet: Any, u: int, rules: Rules, minutes: FloatArray, count: IntArray, value: FloatArray) -> int:
    """Return the site where free unit u adds most expected coverage, discounted by the driving times to the sites.

    Its own site is tried first: it stays if no other is better.
    """
    value_cover(fleet, u, rules, 0, count, value)
    most, home = -1.0, fleet[u].home
    site = home
    for step in range(-1, len(minutes)):
        i = step if step >= 0 else home
        gain = covered(i, rules.sites, rules.near, value)
        if rules.patience < np.inf:
            gain *= math.exp(-minutes[i] / rules.patience)
        if gain > most * (1 + 1e-12):
            most, site = gain, i
    return site


@njit(cache=True, nogil=True, error_model="numpy")
def play(
    seed: int, warmup: int, counted: int, duty: Any, world: World, rules: Rules, fleet: Any, calls: Any, tally: Tally
) -> tuple[float, float]:
    """Simulate until all counted calls are done; return when the first one came and when the last ended, min.

    An end of -1 means that a queue grew beyond `QUEUE` jobs. ``fleet`` are p records of UNIT, ``calls`` unused ones of
    CALL, ``duty`` says who works in which hour of the week, shape (p, 168).
    """
    rate, trips, turnout_spread, drive_spread, handover, handover_spread = world[:6]
    by_hour, speeds, atoms, guide, classes, units, takes, to_place, service, hospital_of = world[6:]
    dispatch, on_the_way, queue, relocation, moves, haste = rules[:6]
    sites, preference, table, near = rules[7:11]
    batches, histogram, by_atom, moved, trace = tally
    p, K, N, home_mode = len(fleet), len(classes), len(sites), len(to_place) - 1

    unused, top = np.arange(len(calls)), len(calls)  # stack of slots
    waiting, head, length = np.zeros((K, QUEUE), np.int64), np.zeros(K, np.int64), np.zeros(K, np.int64)
    need, count, value = np.zeros(N, np.int64), np.zeros(len(rules.weight), np.int64), np.zeros(len(rules.weight))
    jobs = np.empty(2 * MOST_UNITS, np.int64)  # to be given a unit now; the last one first
    closed, ended = np.empty(2 * MOST_UNITS, np.int64), 0  # slots of calls that are over now
    now, hour, n, done, begin, row = 0.0, 0, 0, 0, -1.0, 0
    speed, per_minute = speeds[0], rate * by_hour[0]
    steady = np.all(by_hour == by_hour[0]) and np.all(speeds == speed)
    for u in range(p):
        steady = steady and np.all(duty[u] == duty[u, 0])
    next_hour = np.inf if steady else 60.0  # nothing happens at full hours if all are alike
    next_call = -math.log(_numbers.uniform(seed, 0, GAP)) / per_minute
    while done < counted:
        freed, next_free = -1, np.inf
        for u in range(p):
            if fleet[u].busy and fleet[u].free < next_free:
                freed, next_free = u, fleet[u].free
        left, changed = 0, False
        if next_call < min(next_free, next_hour):
            freed, now = -1, next_call
            if n == warmup:
                begin = now
                for u in range(p):
                    fleet[u].worked = fleet[u].since - now if fleet[u].busy else 0.0
                    fleet[u].off, fleet[u].overtime = max(fleet[u].off, now), 0.0
                moved[:] = 0
            if top == 0:
                return begin, -1.0
            top -= 1
            slot = unused[top]
            share = _numbers.uniform(seed, n, ATOM)
            j = guide[int(share * len(guide))]
            while atoms[j] <= share:
                j += 1
            share, k = _numbers.uniform(seed, n, PRIORITY), 0
            while classes[k].share <= share:
                k += 1
            share, needed = _numbers.uniform(seed, n, UNITS), 1
            while units[k, needed - 1] <= share:
                needed += 1
            call = calls[slot]
            call.number, call.time, call.atom, call.priority = n, now, j, k
            call.jobs, call.sent, call.first = needed, np.inf, np.inf
            n += 1
            next_call = now - math.log(_numbers.uniform(seed, n, GAP)) / per_minute
            for r in range(needed - 1, -1, -1):
                jobs[left] = slot * MOST_UNITS + r
                left += 1
        elif next_free <= next_hour:
            now, changed = next_free, True
            unit = fleet[freed]
            call = calls[unit.job // MOST_UNITS]
            place = unit.goal
            if unit.hospital >= 0:
                row = record(freed, call.number, place, unit.hospital, unit.carry, unit.arrived, trace, row)
                place = unit.hospital
            if unit.end != place:
                row = record(freed, call.number, place, unit.end, unit.homeward, now, trace, row)
            unit.busy = False
            unit.worked += now - unit.since
            if not unit.on:
                unit.overtime += now - unit.off
            call.first = min(call.first, unit.arrive)
            call.jobs -= 1
            if call.jobs == 0:
                closed[ended] = unit.job // MOST_UNITS
                ended += 1
            unit.origin = unit.goal = unit.end
            unit.leave = unit.arrive = now
        else:
            freed, now = -1, next_hour
            next_hour += 60
            hour = (hour + 1) % len(by_hour)
            waited = (next_call - now) * per_minute
            speed, per_minute = speeds[hour], rate * by_hour[hour]
            next_call = now + waited / per_minute
            for u in range(p):
                if duty[u, hour] != fleet[u].on:
                    unit, changed = fleet[u], True
                    unit.on = duty[u, hour]
                    if not unit.on:
                        unit.off = now
                    elif unit.busy:
                        unit.overtime += now - unit.off
                    else:
                        unit.home = unit.origin = unit.goal = unit.first_home
                        unit.leave = unit.arrive = now

        look = changed  # whether waiting jobs may find a unit
        while True:
            if left == 0 and look:  # the most urgent waiting job, if a unit is free
                look = False
                for k in range(K):
                    if length[k]:
                        for u in range(p):
                            if fleet[u].on and not fleet[u].busy:
                                look = True
                    if look:
                        jobs[0], left = waiting[k, head[k]], 1
                        head[k] = (head[k] + 1) % QUEUE
                        length[k] -= 1
                        break
            if left == 0:
                break
            left -= 1
            job = jobs[left]
            slot = job // MOST_UNITS
            k, j = calls[slot].priority, calls[slot].atom
            scene, mode = N + j, classes[k].mode
            # The unit to send: free, or on its way to a less urgent call.
            best, u = np.inf, -1
            leave = max(now, calls[slot].time + classes[k].delay)
            in_time = calls[slot].time + classes[k].target - leave
            if dispatch == 2:
                value_cover(fleet, -1, rules, 1, count, value)
            for v in range(p):
                unit = fleet[v]
                if unit.busy:
                    other = unit.job // MOST_UNITS
                    if unit.arrive <= now or other == slot or not takes[k, calls[other].priority]:
                        continue
                elif not unit.on:
                    continue
                if dispatch == 1:
                    score = preference[unit.home, j]
                else:
                    score = minutes_to(unit, to_place, mode, scene, now) / speed
                    if unit.arrive <= now and unit.goal < N:
                        score += sites[unit.home].turnout
                score += sites[unit.home].offset
                if dispatch == 2 and not unit.busy and score < in_time:  # before all that come late
                    score = covered(unit.home, sites, near, value) + 1e-9 * score - IN_TIME
                if score < best:
                    best, u = score, v
            if u < 0:
                if queue:
                    if length[k] == QUEUE:
                        return begin, -1.0
                    if calls[slot].time < now:  # its unit was taken, or it has waited: first in its queue
                        head[k] = (head[k] - 1) % QUEUE
                        waiting[k, head[k]] = job
                    else:
                        waiting[k, (head[k] + length[k]) % QUEUE] = job
                    length[k] += 1
                else:
                    calls[slot].jobs -= 1
                    if calls[slot].jobs == 0:
                        closed[ended] = slot
                        ended += 1
                continue
            unit, call, changed = fleet[u], calls[slot], True
            if unit.busy:
                jobs[left] = unit.job
                left += 1
                moved[1] += 1
                unit.worked += now - unit.since
            number, first, home = call.number, JOBS + PER_JOB * (job % MOST_UNITS), unit.home
            if unit.arrive <= now and unit.goal < N:
                leave += _numbers.duration(sites[home].turnout, turnout_spread, seed, number, first + TURNOUT)
            minutes = minutes_to(unit, to_place, mode, scene, now) / speed
            arrive = leave + _numbers.duration(minutes, drive_spread, seed, number, first + DRIVE)
            if trips:
                end, unit.hospital = scene, -1
                free = arrive + _numbers.duration(
                    classes[k].scene, classes[k].scene_spread, seed, number, first + SCENE
                )
                if job % MOST_UNITS == 0 and _numbers.uniform(seed, number, TRANSPORT) < classes[k].transport:
                    end = unit.hospital = hospital_of[j]
                    unit.carry = free
                    free += to_place[home_mode, end, scene] / speed
                    unit.arrived = free
                    free += _numbers.duration(handover, handover_spread, seed, number, first + HANDOVER)
                if not on_the_way:
                    unit.homeward = free
                    free += to_place[home_mode, home, end] / speed
                    end = home
            else:
                free, end = now + _numbers.duration(service[home, j], -1.0, seed, number, first + SCENE), home
                unit.hospital, unit.homeward = -1, free
            row = drive(fleet, u, number, scene, now, leave, arrive, trace, row)
            unit.busy, unit.job, unit.since, unit.free, unit.end = True, job, now, free, end
            call.sent = min(call.sent, now)

        # A unit that became free and has no job drives to its site, or to the one that the policy chooses.
        if freed >= 0 and fleet[freed].on and not fleet[freed].busy:
            unit, site = fleet[freed], fleet[freed].home
            if relocation == 1:
                site = site_by_table(fleet, freed, table, to_place, now, need)
            elif relocation == 2:
                site = site_by_coverage(fleet, freed, rules, to_place[home_mode, :N, unit.goal], count, value)
            moved[0] += site != unit.home
            unit.home = site
            if unit.goal != site:
                arrive = now + to_place[home_mode, site, unit.goal] / speed * (haste if relocation else 1.0)
                row = drive(fleet, freed, -1, site, now, now, arrive, trace, row)
        if changed and relocation == 1:  # others move to sites that the table wants now
            count_needs(fleet, -1, table, need)
            for _ in range(moves):
                best, u, site = np.inf, -1, -1
                for v in range(p):
                    if fleet[v].on and not fleet[v].busy and need[fleet[v].home] < 0:
                        for i in range(N):
                            if need[i] > 0:
                                minutes = minutes_to(fleet[v], to_place, home_mode, i, now)
                                if minutes < best:
                                    best, u, site = minutes, v, i
                if u < 0:
                    break
                need[fleet[u].home] += 1
                need[site] -= 1
                moved[0] += 1
                row = drive(fleet, u, -1, site, now, now, now + best / speed * haste, trace, row)
                fleet[u].home = site

        while ended:
            ended -= 1
            call = calls[closed[ended]]
            unused[top] = closed[ended]
            top += 1
            index, k = call.number - warmup, call.priority
            if 0 <= index < counted:
                done += 1
                batch = index * len(batches) // counted
                batches[batch, k, 0] += 1
                if call.first == np.inf:
                    batches[batch, k, 1] += 1
                else:
                    response = call.first - call.time
                    late = response >= classes[k].target
                    batches[batch, k, 2] += response
                    batches[batch, k, 3] += late
                    batches[batch, k, 4] += call.sent > call.time
                    histogram[k, min(int(response * PER_MINUTE), BINS - 1)] += 1
                    by_atom[call.atom, 0] += 1
                    by_atom[call.atom, 1] += response
                    by_atom[call.atom, 2] += late
    for u in range(p):
        if fleet[u].busy:
            fleet[u].worked += now - fleet[u].since
            if not fleet[u].on:
                fleet[u].overtime += now - fleet[u].off
    return begin, now
