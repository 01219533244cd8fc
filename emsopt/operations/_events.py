"""Compiled event loop of `emsopt.operations.simulate`; its events are calls, units that become free, and full hours."""

import math
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from ..errors._types import FloatArray, IntArray
from . import _fleet
from ._fleet import NUMBERS_PER_CALL, PolicyArrays, draw_duration, draw_uniform, driving_minutes, start_drive

PER_JOB = 8  # of the numbers of a call, those reserved per unit that it needs
GAP, ATOM, PRIORITY, UNITS, TRANSPORT, JOBS = 0, 1, 2, 3, 4, 8  # which number is for what; JOBS is where jobs begin
TURNOUT, DRIVE, SCENE, HANDOVER = 0, 2, 4, 5  # of a job: turnout and drive have two numbers, as a normal one takes two
MOST_UNITS = (NUMBERS_PER_CALL - JOBS) // PER_JOB
IN_TIME_BONUS = 1e4  # subtracted from the score of a unit that would be in time, where dispatch is by coverage
MAX_QUEUE = 4096  # jobs that may wait in each priority; more are the sign of a fleet that cannot keep up
BINS, BINS_PER_MINUTE = 2400, 10  # of the histogram of response times: up to four hours; the last bin holds longer ones


class SystemArrays(NamedTuple):
    """A `System` with K priorities, R modes and P places, as numbers and arrays for compiled code."""

    rate: float  # calls per minute, as all times of the simulation are minutes
    trips: bool  # whether units drive to hospitals and home; else the hypercube's service times count
    turnout_spread: float
    drive_spread: float
    handover: float
    handover_spread: float
    by_hour: FloatArray  # (168,) of mean 1, so that `rate` is the mean rate
    atoms: FloatArray  # (M,) cumulative shares, as an atom is drawn by inversion
    guide: IntArray  # (M,) where to begin looking in them, which saves most of the steps
    classes: Any  # (K,) of CLASS, the most urgent first
    units: FloatArray  # (K, U) cumulative, 1 at the end, so that every draw finds a number
    takes: Any  # (K, K) whether the row may take units from the column
    to_place: FloatArray  # (R, P, P) by destination, as the drives of all units to one place are compared
    service: FloatArray  # (N, M) used only without trips
    hospital_of: IntArray  # (M,) numbers of places, not of hospitals


class Counters(NamedTuple):
    """Counters of a simulation, in B batches of calls with K priorities."""

    batches: FloatArray  # (B, K, 5) calls, lost, response, late, waited
    histogram: IntArray  # (K, BINS) for percentiles, as single responses are not kept
    atoms: FloatArray  # (M, 3) answered, response, late
    moves: FloatArray  # (2,) relocations, units taken over
    trace: FloatArray  # (n, 7) unit, call (-1 if none), origin, goal, leave, arrive, until


@njit(cache=True, nogil=True, inline="always")
def _draw_call(
    call: Any, n: int, now: float, seed: int, atoms: FloatArray, guide: IntArray, classes: Any, units: FloatArray
) -> int:
    """Draw atom, priority and needs of the n-th call into the record ``call``; return how many units it needs."""
    share = draw_uniform(seed, n, ATOM)
    j = guide[int(share * len(guide))]
    while atoms[j] <= share:
        j += 1
    share, k = draw_uniform(seed, n, PRIORITY), 0
    while classes[k].share <= share:
        k += 1
    share, needed = draw_uniform(seed, n, UNITS), 1
    while units[k, needed - 1] <= share:
        needed += 1
    call.number, call.time, call.atom, call.priority = n, now, j, k
    call.jobs, call.sent, call.first = needed, np.inf, np.inf
    return needed


@njit(cache=True, nogil=True, inline="always")
def _count_call(
    call: Any, batch: int, target: float, batches: FloatArray, histogram: IntArray, by_atom: FloatArray
) -> None:
    """Add a finished call to the counters; it is late if the response took at least ``target`` minutes."""
    counts = batches[batch, call.priority]
    counts[0] += 1
    if call.first == np.inf:
        counts[1] += 1
        return
    response = call.first - call.time
    late = response >= target
    counts[2] += response
    counts[3] += late
    counts[4] += call.sent > call.time
    histogram[call.priority, min(int(response * BINS_PER_MINUTE), BINS - 1)] += 1
    by_atom[call.atom, 0] += 1
    by_atom[call.atom, 1] += response
    by_atom[call.atom, 2] += late


@njit(cache=True, nogil=True, inline="always")
def _next_free_unit(fleet: Any) -> tuple[int, float]:
    """Return the busy unit that becomes free next, and the minute of that; -1 and infinity if none is busy."""
    freed, time = -1, np.inf
    for u in range(len(fleet)):
        if fleet[u].busy and fleet[u].free < time:
            freed, time = u, fleet[u].free
    return freed, time


@njit(cache=True, nogil=True)
def _begin_counting(fleet: Any, now: float, moved: FloatArray) -> None:
    """Reset the minutes worked by each unit, and the numbers of moves, at the end of the warm-up."""
    for u in range(len(fleet)):
        fleet[u].worked = fleet[u].since - now if fleet[u].busy else 0.0  # less what was worked before
        fleet[u].off, fleet[u].overtime = max(fleet[u].off, now), 0.0
    moved[:] = 0


@njit(cache=True, nogil=True)
def _change_shifts(fleet: Any, duty: Any, hour: int, now: float) -> bool:
    """Begin and end the shifts that change at a full hour of the week; return whether there were any."""
    changed = False
    for u in range(len(fleet)):
        if duty[u, hour] != fleet[u].on:
            _fleet.change_shift(fleet, u, now)
            changed = True
    return changed


@njit(cache=True, nogil=True)
def _end_counting(fleet: Any, now: float) -> None:
    """At the end, add to each busy unit the minutes worked on its present call and, if it is off duty, its overtime."""
    for u in range(len(fleet)):
        if fleet[u].busy:
            fleet[u].worked += now - fleet[u].since
            if not fleet[u].on:
                fleet[u].overtime += now - fleet[u].off


@njit(cache=True, nogil=True, inline="always")
def _release_unit(fleet: Any, u: int, call: Any, now: float, trace: FloatArray, row: int) -> int:
    """Release unit u, whose job is done, and trace its last drives; return the number of drives traced so far."""
    unit, place = fleet[u], fleet[u].goal
    if unit.hospital >= 0:
        row = _fleet.trace_drive(u, call.number, place, unit.hospital, unit.carry, unit.arrived, trace, row)
        place = unit.hospital
    if unit.end != place:
        row = _fleet.trace_drive(u, call.number, place, unit.end, unit.homeward, now, trace, row)
    unit.busy = False
    unit.worked += now - unit.since
    if not unit.on:
        unit.overtime += now - unit.off
    call.first = min(call.first, unit.arrive)
    unit.origin = unit.goal = unit.end
    unit.leave = unit.arrive = now
    return row


@njit(cache=True, nogil=True)
def _pop_waiting_job(fleet: Any, waiting: IntArray, head: IntArray, length: IntArray) -> int:
    """Remove and return the first job of the most urgent queue; return -1 if none waits or no unit is free."""
    for k in range(len(length)):
        if length[k]:
            for u in range(len(fleet)):
                if fleet[u].on and not fleet[u].busy:
                    job = waiting[k, head[k]]
                    head[k] = (head[k] + 1) % MAX_QUEUE
                    length[k] -= 1
                    return int(job)
            return -1
    return -1


@njit(cache=True, nogil=True, inline="always")
def _choose_unit(
    fleet: Any, slot: int, call: Any, kind: Any, calls: Any, now: float, takes: Any, to_place: FloatArray,
    dispatch: int, sites: Any, preference: FloatArray, near: IntArray, value: FloatArray,
) -> int:  # fmt: skip
    """Return the unit with the lowest score by the dispatch rule, -1 if none; `fill_coverage_gains` sets ``value``."""
    best, u, N = np.inf, -1, len(sites)
    k, j = call.priority, call.atom
    in_time = call.time + kind.target - max(now, call.time + kind.delay)
    for v in range(len(fleet)):
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
            score = driving_minutes(unit, to_place, kind.mode, N + j, now)
            if unit.arrive <= now and unit.goal < N:  # at a site: it must turn out first
                score += sites[unit.home].turnout
        score += sites[unit.home].offset
        if dispatch == 2 and not unit.busy and score < in_time:  # before all that come late
            score = _fleet.sum_coverage_gains(unit.home, sites, near, value) + 1e-9 * score - IN_TIME_BONUS
        if score < best:
            best, u = score, v
    return u


@njit(cache=True, nogil=True, inline="always")
def _plan_job(
    unit: Any, call: Any, kind: Any, site: Any, job: int, now: float, seed: int,
    times: tuple[bool, float, float, float, float], on_the_way: bool, N: int, to_place: FloatArray,
    service: FloatArray, hospital_of: IntArray,
) -> tuple[float, float]:  # fmt: skip
    """Draw the times of a job into a unit's record; return the minutes of departure and of arrival at the scene."""
    trips, turnout_spread, drive_spread, handover, handover_spread = times
    number, first, scene, home_mode = call.number, JOBS + PER_JOB * (job % MOST_UNITS), N + call.atom, len(to_place) - 1
    leave = max(now, call.time + kind.delay)
    if unit.arrive <= now and unit.goal < N:
        leave += draw_duration(site.turnout, turnout_spread, seed, number, first + TURNOUT)
    minutes = driving_minutes(unit, to_place, kind.mode, scene, now)
    arrive = leave + draw_duration(minutes, drive_spread, seed, number, first + DRIVE)
    unit.hospital = -1
    if trips:
        end = scene
        free = arrive + draw_duration(kind.scene, kind.scene_spread, seed, number, first + SCENE)
        if job % MOST_UNITS == 0 and draw_uniform(seed, number, TRANSPORT) < kind.transport:
            end = unit.hospital = hospital_of[call.atom]
            unit.carry = free
            free += to_place[home_mode, end, scene]
            unit.arrived = free
            free += draw_duration(handover, handover_spread, seed, number, first + HANDOVER)
        if not on_the_way:
            unit.homeward = free
            free += to_place[home_mode, unit.home, end]
            end = unit.home
    else:
        free, end = now + draw_duration(service[unit.home, call.atom], -1.0, seed, number, first + SCENE), unit.home
        unit.homeward = free
    unit.free, unit.end = free, end
    return leave, arrive


@njit(cache=True, nogil=True, inline="always")
def _end_job(call: Any, slot: int, closed: IntArray, ended: int) -> int:
    """End one job of a call, and with the last one add its slot to ``closed``; return the number of slots in it."""
    call.jobs -= 1
    if call.jobs == 0:
        closed[ended] = slot
        ended += 1
    return ended


@njit(cache=True, nogil=True)
def _enqueue(k: int, job: int, first: bool, waiting: IntArray, head: IntArray, length: IntArray) -> None:
    """Add a job to the queue of priority k: at the head if ``first``, as when it lost its unit, else at the end."""
    if first:
        head[k] = (head[k] - 1) % MAX_QUEUE
        waiting[k, head[k]] = job
    else:
        waiting[k, (head[k] + length[k]) % MAX_QUEUE] = job
    length[k] += 1


@njit(cache=True, nogil=True, error_model="numpy")
def run_events(
    seed: int, warmup: int, counted: int, duty: Any, world: SystemArrays, rules: PolicyArrays, fleet: Any, calls: Any,
    tally: Counters,
) -> tuple[float, float]:  # fmt: skip
    """Simulate operations until ``counted`` calls are over; return the minutes at which the first came, the last ended.

    The end is -1 if a queue grew beyond `MAX_QUEUE` jobs. ``fleet`` has p records of UNIT, ``calls`` unused records of
    CALL; ``duty``, shape (p, 168), marks the hours of the week in which each unit works.
    """
    # read once: each reading of a part of a tuple counts a reference
    rate, times = world.rate, world[1:6]
    by_hour, atoms, guide, classes, units, takes, to_place, service, hospital_of = world[6:]
    dispatch, on_the_way, queue, relocation, moves, drive_factor = rules[:6]
    sites, preference, table, near = rules[7:11]
    batches, histogram, by_atom, moved, trace = tally
    K, N, home_mode = len(classes), len(sites), len(to_place) - 1

    unused, top = np.arange(len(calls)), len(calls)  # a stack, which gives and takes a slot at once
    waiting, head, length = np.zeros((K, MAX_QUEUE), np.int64), np.zeros(K, np.int64), np.zeros(K, np.int64)
    need, count, value = np.zeros(N, np.int64), np.zeros(len(rules.weight), np.int64), np.zeros(len(rules.weight))
    jobs = np.empty(2 * MOST_UNITS, np.int64)  # to be given a unit now; the last one first
    closed, ended = np.empty(2 * MOST_UNITS, np.int64), 0  # slots of calls that are over now
    now, hour, n, done, begin, row = 0.0, 0, 0, 0, -1.0, 0
    per_minute, steady = rate * by_hour[0], (by_hour == by_hour[0]).all() and (duty[:, 1:] == duty[:, :-1]).all()
    next_hour = np.inf if steady else 60.0  # nothing happens at full hours if all are alike
    next_call = -math.log(draw_uniform(seed, 0, GAP)) / per_minute
    while done < counted:
        freed, next_free = _next_free_unit(fleet)
        left, changed = 0, False
        if next_call < min(next_free, next_hour):
            freed, now = -1, next_call
            if n == warmup:
                begin = now
                _begin_counting(fleet, now, moved)
            if top == 0:  # as many calls are open as the queues can hold
                return begin, -1.0
            top -= 1
            slot = unused[top]
            left = _draw_call(calls[slot], n, now, seed, atoms, guide, classes, units)
            for r in range(left):
                jobs[left - 1 - r] = slot * MOST_UNITS + r
            n += 1
            next_call = now - math.log(draw_uniform(seed, n, GAP)) / per_minute
        elif next_free <= next_hour:
            now, changed = next_free, True
            slot = fleet[freed].job // MOST_UNITS
            call = calls[slot]
            row = _release_unit(fleet, freed, call, now, trace, row)
            ended = _end_job(call, slot, closed, ended)
        else:
            freed, now = -1, next_hour
            next_hour += 60
            hour = (hour + 1) % len(by_hour)
            waited = (next_call - now) * per_minute  # in mean gaps, which another rate leaves as they are
            per_minute = rate * by_hour[hour]
            next_call = now + waited / per_minute
            changed = _change_shifts(fleet, duty, hour, now)

        look = changed  # without a change no waiting job can find a unit
        while True:
            if left == 0 and look:
                jobs[0] = _pop_waiting_job(fleet, waiting, head, length)
                look = jobs[0] >= 0
                left = int(look)
            if left == 0:
                break
            left -= 1
            job = jobs[left]
            slot = job // MOST_UNITS
            k = calls[slot].priority
            if dispatch == 2:
                _fleet.fill_coverage_gains(fleet, -1, rules, 1, count, value)  # one unit less: that which is sent
            u = _choose_unit(
                fleet, slot, calls[slot], classes[k], calls, now, takes, to_place, dispatch, sites, preference, near,
                value,
            )  # fmt: skip
            if u < 0:
                if not queue:
                    ended = _end_job(calls[slot], slot, closed, ended)
                elif length[k] == MAX_QUEUE:
                    return begin, -1.0
                else:
                    _enqueue(k, job, calls[slot].time < now, waiting, head, length)
                continue
            unit, call, changed = fleet[u], calls[slot], True
            if unit.busy:  # taken from a less urgent call, whose job is next
                jobs[left] = unit.job
                left += 1
                moved[1] += 1
                unit.worked += now - unit.since
            leave, arrive = _plan_job(
                unit, call, classes[k], sites[unit.home], job, now, seed, times, on_the_way, N, to_place, service,
                hospital_of,
            )  # fmt: skip
            row = start_drive(fleet, u, call.number, N + call.atom, now, leave, arrive, trace, row)
            unit.busy, unit.job, unit.since = True, job, now
            call.sent = min(call.sent, now)

        # A unit that became free and has no job drives to its site, or to the one that the policy chooses.
        if freed >= 0 and fleet[freed].on and not fleet[freed].busy:
            unit, site = fleet[freed], fleet[freed].home
            if relocation == 1:
                site = _fleet.choose_site_by_table(fleet, freed, table, to_place, now, need)
            elif relocation == 2:
                minutes = to_place[home_mode, :N, unit.goal]
                site = _fleet.choose_site_by_coverage(fleet, freed, rules, minutes, count, value)
            moved[0] += site != unit.home
            unit.home = site
            if unit.goal != site:
                arrive = now + to_place[home_mode, site, unit.goal] * (drive_factor if relocation else 1.0)
                row = start_drive(fleet, freed, -1, site, now, now, arrive, trace, row)
        if changed and relocation == 1:
            row, others = _fleet.move_free_units(fleet, table, moves, now, drive_factor, to_place, need, trace, row)
            moved[0] += others

        while ended:
            ended -= 1
            slot = closed[ended]
            unused[top] = slot
            top += 1
            index = calls[slot].number - warmup  # batches by number of the call: the same under every policy
            if 0 <= index < counted:
                done += 1
                batch, target = index * len(batches) // counted, classes[calls[slot].priority].target
                _count_call(calls[slot], batch, target, batches, histogram, by_atom)
    _end_counting(fleet, now)
    return begin, now
