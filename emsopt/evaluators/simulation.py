r"""Discrete-event simulation of a deployment: any service-time law, with confidence intervals.

Calls arrive in a Poisson stream; each comes from atom j with probability λ_j / λ and is answered by the
first free unit in j's order of preference. That unit is busy for the mean service time of site and atom
times a random factor of mean 1 (see `service`), then waits at its site again. A call that finds every unit
busy is lost, or joins the city's one queue, from which a freed unit at once takes the call that has waited
longest. This is the hypercube model of Larson (1974) without its exponential service times.

Limits: units are dispatched from their sites only (never on their way back), calls have no priorities, and
the rates do not change with the hour.

No list of events is needed. Let a unit's *release* be the time at which it will have finished all it was
given. It is free at t if its release is at most t; and since the queue is first come, first served, a call
that finds every unit busy can at once be given to the unit that is released first.

**Common random numbers.** Times, atoms and service factors of the calls come from streams of their own,
drawn before anything is dispatched. So the same seed gives the same calls to every deployment, and
differences between deployments are far more certain than the values themselves.
"""

from dataclasses import replace
from functools import partial
from types import MappingProxyType

import numpy as np
from numba import njit

from .._running.threads import map_rows
from .._running.warn import warn
from .._validate import choice, generator, positive_number, whole_number
from ..city.deployment import check_deployments, check_sites
from ..errors import AccuracyWarning, InputError, UnstableQueueError
from ._order import unit_order
from .evaluation import Evaluation
from .metrics import check_costs
from .service import service_law

CHUNK = 16_384  # calls drawn at a time: bounds memory and stays in the cache
LONGEST_WARMUP = 1_000_000  # calls, unless more than that are counted
LONG_ENOUGH = 100  # relaxation times of the queue, for its mean wait to be known within about 20 percent
COUNTER_BYTES = 64 * 2**20  # for what deployments simulated side by side count

CAPACITIES = ("loss", "queue")


def simulate(
    city,
    sites,
    *,
    capacity="loss",
    calls=100_000,
    warmup=None,
    service="exponential",
    cv=None,
    level=0.95,
    batches=20,
    rng=None,
):
    """Simulate a deployment and return its performance with confidence intervals.

    Parameters
    ----------
    city : City
    sites : array_like of int, shape (p,)
        Site of each unit; a repeated index is two units at one site.
    capacity : {"loss", "queue"}
        Whether a call that finds all units busy is lost or waits, first come, first served.
    calls : int
        Calls counted.
    warmup : int, optional
        Calls before those. Left out: a tenth of ``calls``, and at least ten times what the system takes to
        forget its beginning (a service time; a relaxation time of the queue), the latter up to a million
        calls.
    service : {"exponential", "lognormal", "gamma", "deterministic"} or array_like, shape (n,)
        Law of the service times about the city's means. An array holds observed minutes: their shape is kept,
        their mean is not (they are rescaled to the mean of each site and atom).
    cv : float, optional
        Coefficient of variation, for "lognormal" and "gamma".
    level : float
        Confidence of the intervals, in (0, 1).
    batches : int
        Number of consecutive batches of calls that the intervals are computed from.
    rng : numpy.random.Generator or seed, optional
        The same seed gives the same calls to every deployment.

    Returns
    -------
    Evaluation
        With ``intervals`` for "mean_response", "mean_utilization", and "loss_probability" or
        "queue_probability" and "mean_wait". Units at one site, or at twin sites, show their common average.
        An atom of which no call was answered in the run is shared out as the city's calls are by rank: so
        many to its first choice, so many to its second, ...

    Raises
    ------
    InputError
        If an argument is out of range, or so few calls are counted that none was answered.
    UnstableQueueError
        If calls queue and arrive at least as fast as the deployed units can serve them.

    Warns
    -----
    AccuracyWarning
        If calls queue and the run is too short to know their mean wait within about 20 percent.

    Notes
    -----
    The mean response weights each atom's observed mean by its known share of the calls; the interval is of
    that very estimate (batch means of its linearisation, Student's t with ``batches`` - 1 degrees of
    freedom). Near saturation batches are short beside the memory of the queue and scatter too little; the
    intervals of mean wait, chance to wait and utilisation are therefore at least as wide as heavy-traffic theory
    says (Whitt 1989). So widened, 95 % intervals of the mean wait held the exact value in 91, 95, 99, 98 and 99
    of 100 runs of 100,000 calls at loads of 0.9, 0.95, 0.98, 0.99 and 0.999 (``--coverage`` of
    benchmarks/simulation.py). A run shorter than 100 relaxation times of the queue knows the mean wait no better
    than within about 20 % and warns. Intervals are too narrow where
    service is long-tailed, or where many atoms see only a few calls: then raise ``calls``. A run
    in which no call found all units busy bounds their share as a run of independent calls would, by about
    -log(1 - level) / calls, and takes a wait to last no longer than a service time.

    Batch means: Law, A. M. (2015). Simulation Modeling and Analysis, 5th edition, chapter 9.
    Whitt, W. (1989). Planning queueing simulations. Management Science 35(11), 1341-1366.

    Examples
    --------
    >>> import emsopt as eo
    >>> city = eo.City([2.0, 1.0], [[3.0, 8.0], [9.0, 2.0]], turnout_times=1.5, service_times=40)
    >>> result = eo.evaluators.simulate(city, [0, 1], rng=0)
    >>> low, high = result.intervals["loss_probability"]
    >>> low < 0.4 < high  # Erlang B: 2 units, 2 calls in a service time
    True
    """
    sites = check_sites(city, sites)
    choice(capacity, "capacity", CAPACITIES)
    calls = whole_number(calls, "calls", 2)
    batches = whole_number(batches, "batches", 2, calls)
    level = _checked_level(level)
    draw, squared_variation = service_law(service, cv)
    warmup = _checked_warmup(warmup, city, len(sites), capacity, calls, squared_variation)
    load, spread = 0.0, 0.0  # relative standard deviation of the mean wait near saturation
    if capacity == "queue":
        load = _stable_load(city, sites)
        spread = np.sqrt(_relaxation_calls(load, squared_variation) / calls)
        if spread**2 * LONG_ENOUGH > 1:
            _warn_of_a_short_run(load, calls, spread)

    batch_calls = np.diff(np.linspace(0, calls, batches + 1).astype(np.int64))
    counters = _play(city, sites[None], [warmup, *batch_calls], draw, capacity, _seed(rng))
    answered, busy, totals = (counter[0, 1:] for counter in counters)  # [0, 0] is the warm-up
    minutes, blocked, waited = totals.T
    blocked_fraction = float(blocked.sum() / calls)
    share = _twin_share(city, sites)
    free_rate = 1 / (city.service_times[sites] @ city.demand_shares)  # a call that waits goes to who frees up next
    result = Evaluation.of(
        city,
        sites,
        evaluator="simulation",
        capacity=capacity,
        utilizations=share @ np.clip(busy.sum(axis=0) / minutes.sum(), 0, 1),
        dispatch_fractions=share @ _fractions(answered.sum(axis=0), _unit_order(city, sites)),
        loss_probability=blocked_fraction if capacity == "loss" else 0.0,
        queue_probability=blocked_fraction if capacity == "queue" else 0.0,
        mean_wait=float(waited.sum() / calls),
        queued_shares=free_rate / free_rate.sum(),
        iterations=calls,
        residual=float("nan"),
    )

    moves = _response_moves(answered, result.response_times, city.demand_shares)
    intervals = {
        "mean_response": _interval(result.mean_response, moves, level),
        "mean_utilization": _share_interval(busy.sum(axis=1), len(sites) * minutes, level, load, spread),
    }
    blocked_interval = _share_interval(blocked, batch_calls, level, load, spread)
    wait_interval = _ratio_interval(waited, batch_calls, level, least=spread * result.mean_wait)
    if not blocked.any():  # nothing scatters, yet both may be above zero
        blocked_interval = (0.0, float(1 - (1 - level) ** (1 / calls)))
        wait_interval = (0.0, blocked_interval[1] * city.mean_service_time)
    if capacity == "queue":
        intervals |= {"queue_probability": blocked_interval, "mean_wait": wait_interval}
    else:
        intervals["loss_probability"] = blocked_interval
    return replace(result, intervals=MappingProxyType(intervals))


def simulation_values(
    city,
    deployments,
    costs=None,
    *,
    capacity="loss",
    calls=100_000,
    warmup=None,
    service="exponential",
    cv=None,
    rng=None,
    workers=None,
    progress=None,
):
    """Simulate many deployments of one size on the same calls, in parallel.

    Parameters
    ----------
    city, deployments, costs, workers, progress
        As in `values`.
    capacity, calls, warmup, service, cv, rng
        As in `simulate`; a deployment's value is that of `simulate` with the same seed, whatever ``workers``.

    Returns
    -------
    ndarray, shape (K,)
        Mean cost of an answered call.

    Raises
    ------
    InputError, UnstableQueueError
        As `simulate`; also if ``deployments`` is no table of site indices.
    """
    deployments = check_deployments(city, deployments)
    ready = prepare(city, deployments.shape[1], costs, capacity, calls, warmup, service, cv, rng)
    return ready(deployments, workers, progress)


def prepare(city, units, costs, capacity, calls, warmup, service, cv, rng):
    """Check options once and return a function from (checked deployments, workers, progress) to values."""
    costs = check_costs(city, costs)
    choice(capacity, "capacity", CAPACITIES)
    calls = whole_number(calls, "calls", 2)
    draw, squared_variation = service_law(service, cv)
    warmup = _checked_warmup(warmup, city, units, capacity, calls, squared_variation)
    at_once = max(1, COUNTER_BYTES // (2 * 8 * units * city.n_atoms))

    def some(rows, seed):
        result = []
        for start in range(0, len(rows), at_once):
            part = rows[start : start + at_once]
            answered, _, _ = _play(city, part, [warmup, calls], draw, capacity, seed)
            for sites, counts in zip(part, answered[:, 1], strict=True):
                fractions = _twin_share(city, sites) @ _fractions(counts, _unit_order(city, sites))
                result.append((fractions * costs[sites]).sum(axis=0) @ city.demand_shares)
        return result

    def values(deployments, workers=None, progress=None):
        if capacity == "queue":
            for sites in deployments:
                _stable_load(city, sites)
        return map_rows(partial(some, seed=_seed(rng)), deployments, workers, progress)

    return values


# -- the calls ----------------------------------------------------------------------------------------------


def _seed(rng):
    """Return what the streams of a run are seeded with: one draw from a Generator that is passed."""
    return generator(rng).integers(2**32, size=4)


def _streams(seed):
    """Return the Generators of arrival times, atoms, service factors and initial state."""
    return [np.random.default_rng(child) for child in np.random.SeedSequence(seed).spawn(4)]


def _call_stream(city, lengths, draw, seed):
    """Yield (segment, gaps in min, atoms, service factors), at most `CHUNK` calls at a time.

    A call is the same whatever the segments, the service law or the number of calls.
    """
    when, where, how_long, _ = _streams(seed)
    cumulative = np.cumsum(city.demand_shares)
    cumulative /= cumulative[-1]
    guide = np.searchsorted(cumulative, np.arange(city.n_atoms) / city.n_atoms, side="right")
    for segment, length in enumerate(lengths):
        for begin in range(0, length, CHUNK):
            n = min(CHUNK, length - begin)
            gaps = when.standard_exponential(n) * (60 / city.total_rate)
            yield segment, gaps, _atoms(where.random(n), cumulative, guide), draw(how_long, n)


@njit(cache=True, nogil=True)
def _atoms(uniforms, cumulative, guide):
    """Return the atom of each number in [0, 1), by inversion of the cumulative shares, shape (n,).

    ``guide[k]`` is the atom of k / M, so that about one step is left (Chen and Asau 1974).
    """
    atoms = np.empty(len(uniforms), np.int64)
    for n in range(len(uniforms)):
        j = guide[int(uniforms[n] * len(guide))]
        while cumulative[j] <= uniforms[n]:
            j += 1
        atoms[n] = j
    return atoms


# -- the units ----------------------------------------------------------------------------------------------


def _unit_order(city, sites):
    """Return the units in the order each atom prefers them, shape (M, p).

    A unit ranks as the first of its site's twins does, so that it does not matter which twin is named.
    """
    _, first_twin = np.unique(city.twin_groups, return_index=True)
    return unit_order(city.preferred_order, first_twin[city.twin_groups[sites]]).astype(np.int64)


def _first_release(city, units, seed):
    """Return the minutes until each unit is free at the start, shape (p,): roughly as a passer-by finds them.

    Units that start in step would stay in step for long if every call took equally long.
    """
    rng = _streams(seed)[3]
    load = city.offered_load(units)
    return (rng.random(units) < load / (1 + load)) * rng.random(units) * city.mean_service_time


def _play(city, deployments, lengths, draw, capacity, seed):
    """Send one stream of calls, cut into S segments, to each of K deployments.

    Returns
    -------
    answered : ndarray of int, shape (K, S, p, M)
        Calls of each atom that each unit answered.
    busy : ndarray, shape (K, S, p)
        Minutes that each unit was busy.
    totals : ndarray, shape (K, S, 3)
        Minutes passed, calls that found all units busy, minutes that calls waited.
    """
    (K, p), S = deployments.shape, len(lengths)
    answered = np.zeros((K, S, p, city.n_atoms), np.int64)
    busy, totals = np.zeros((K, S, p)), np.zeros((K, S, 3))
    orders = [_unit_order(city, sites) for sites in deployments]
    service_times = [city.service_times[sites] for sites in deployments]
    releases = np.tile(_first_release(city, p, seed), (K, 1))
    for s, *calls in _call_stream(city, lengths, draw, seed):
        for k in range(K):
            release = releases[k]
            busy[k, s] += np.maximum(release, 0)  # work left over; what is left again is taken off below
            totals[k, s] += _serve(
                *calls, orders[k], service_times[k], capacity == "queue", release, answered[k, s], busy[k, s]
            )
            busy[k, s] -= np.maximum(release, 0)
    return answered, busy, totals


@njit(cache=True, nogil=True)
def _serve(gaps, atoms, factors, order, service_times, queue, release, answered, busy):
    """Dispatch calls one after the other; times in ``release`` count from the start, then from the last call.

    Returns the minutes passed, the calls that found all units busy and the minutes that calls waited.
    """
    now, blocked, waited = 0.0, 0, 0.0
    earliest = 0.0  # no unit is free before this
    for n in range(len(gaps)):
        now += gaps[n]
        j = atoms[n]
        start, unit = now, -1
        if earliest <= now:
            for r in range(order.shape[1]):
                if release[order[j, r]] <= now:
                    unit = order[j, r]
                    break
        if unit < 0:
            blocked += 1
            first = np.argmin(release)
            earliest = release[first]
            if not queue:
                continue
            start, unit = earliest, first
            waited += start - now
        minutes = service_times[unit, j] * factors[n]
        release[unit] = start + minutes
        busy[unit] += minutes
        answered[unit, j] += 1
    for i in range(len(release)):
        release[i] -= now
    return now, blocked, waited


# -- from counts to measures --------------------------------------------------------------------------------


def _fractions(answered, order):
    """Return the share of each atom's answered calls that each unit answered, shape (p, M).

    An atom of which no call was answered is shared out as the city's calls are by rank of preference.
    """
    calls = answered.sum(axis=0)
    if not calls.any():
        raise InputError("every counted call found all units busy, so no response was observed; raise `calls`.")
    fractions = answered / np.maximum(calls, 1)
    unheard = np.flatnonzero(calls == 0)
    by_rank = np.take_along_axis(answered, order.T, axis=0).sum(axis=1)
    fractions[order[unheard].T, unheard] = by_rank[:, None] / by_rank.sum()
    return fractions


def _twin_share(city, sites):
    """Return the matrix that averages over units at one site or at twin sites, shape (p, p)."""
    groups = city.twin_groups[sites]
    same = groups[:, None] == groups
    return same / same.sum(axis=1)


def _response_moves(answered, response_times, demand_shares):
    """Return how far each batch moves Σ_j w_j · (mean response of atom j's answered calls), shape (B,).

    To first order a call of atom j moves it by w_j / n_j times the excess of its response over j's mean.
    Excesses over a mean of n scatter too little, by (n - 1) / n of their variance, which is undone.
    """
    calls = answered.sum(axis=1)  # (B, M)
    minutes = np.einsum("bij,ij->bj", answered, response_times)
    n = calls.sum(axis=0)
    mean = minutes.sum(axis=0) / np.maximum(n, 1)
    weight = np.where(n > 1, demand_shares / np.sqrt(np.maximum(n * (n - 1.0), 1.0)), 0.0)
    return (minutes - calls * mean) @ weight


def _share_interval(numerators, denominators, level, load, spread):
    """Confidence interval of a share, which is near 1 in a queue near saturation."""
    share = numerators.sum() / denominators.sum()
    least = spread / np.sqrt(2) * share * (1 - min(share, load))
    return _ratio_interval(numerators, denominators, level, least=least, high=1.0)


def _ratio_interval(numerators, denominators, level, *, least=0.0, high=np.inf):
    """Confidence interval of Σ numerators / Σ denominators, one of each a batch."""
    total = denominators.sum()
    ratio = numerators.sum() / total
    return _interval(ratio, (numerators - ratio * denominators) / total, level, least=least, high=high)


def _interval(estimate, moves, level, *, least=0.0, high=np.inf):
    """Student's t interval of an estimate that nearly independent batches have moved, summing to 0.

    Batches that are short beside the memory of a queue scatter too little; theory gives the ``least`` standard deviation.
    """
    from scipy.special import stdtrit

    B = len(moves)
    half = stdtrit(B - 1, (1 + level) / 2) * max(np.sqrt(moves @ moves * B / (B - 1)), least)
    return float(max(estimate - half, 0.0)), float(min(estimate + half, high))


# -- what a run is asked for --------------------------------------------------------------------------------


def _checked_level(level):
    level = positive_number(level, "level")
    if level >= 1:
        hint = f" For {level:g} percent pass {level / 100:g}." if 1 < level < 100 else ""
        raise InputError(f"`level` must be a confidence above 0 and below 1; got {level:g}.{hint}")
    return level


def _checked_warmup(warmup, city, units, capacity, calls, squared_variation):
    """Return the calls to leave out at the start, chosen if None: the same for all deployments of one size.

    A service time in progress lasts (1 + cv²) / 2 mean service times on average.
    """
    if warmup is not None:
        return whole_number(warmup, "warmup", 0)
    load = city.offered_load(units)
    memory = load * units * (1 + squared_variation) / 2
    if capacity == "queue":
        # of a typical deployment; this one may be stable where that is not
        memory += _relaxation_calls(min(load, 0.999), squared_variation)
    return max(calls // 10, int(min(10 * memory, LONGEST_WARMUP)))


def _relaxation_calls(load, squared_variation):
    """Return the calls in which a queue forgets: the relaxation time of M/M/1, 1 / (μ (1 - √ρ)²), for M/G/c.

    Near saturation the mean wait of n calls scatters by its own size times √(these calls / n), and the time in which
    not all units are busy by its own size times that over √2 (Whitt 1989).
    """
    return load / (1 - np.sqrt(load)) ** 2 * (1 + squared_variation) / 2


def _warn_of_a_short_run(load, calls, spread):
    memory = spread**2 * calls
    warn(
        f"the run is short for a queue with an offered load of {load:.4g} a unit: its relaxation time is about "
        f"{memory:,.0f} calls, and {calls:,} were counted, {calls / memory:.2g} times that. `mean_wait` is uncertain by "
        f"about {200 * spread:,.0f} percent, which its interval allows for. Count at least {LONG_ENOUGH * memory:,.0f} "
        "calls or, if service is exponential and the fleet small, use exact_hypercube.",
        AccuracyWarning,
    )


def _stable_load(city, sites):
    """Return λ / Σ_i μ_i, where 1 / μ_i is the mean minutes of unit i over all calls; refuse a queue that grows for ever."""
    most = 60 * (1 / (city.service_times[sites] @ city.demand_shares)).sum()
    if city.total_rate >= most * (1 - 1e-12):
        raise UnstableQueueError(
            "with capacity='queue' calls must arrive more slowly than the units can serve them; got an "
            f"offered load of {city.total_rate / most:.4g} a unit: {city.total_rate:.4g} calls/h, of which "
            f"the {len(sites)} units at these sites can serve {most:.4g}. Add units, lower the arrival rates "
            "(City.scaled) or use capacity='loss'."
        )
    return city.total_rate / most
