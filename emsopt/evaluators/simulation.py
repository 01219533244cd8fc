r"""Discrete-event simulation of a deployment, with any service-time distribution and with confidence intervals.

Calls arrive in a Poisson stream. Each comes from atom j with probability λ_j / λ and is answered by the first free unit
in j's order of preference. That unit is busy for the mean service time of site and atom times a random factor of mean 1
(see `service_law`), then waits at its site again. A call that finds every unit busy is lost, or joins the city's single
queue, which is first come, first served. This is the hypercube model of Larson (1974), generalised from exponential to
any service times. If the city's turnout and travel times vary (`City.travel_cv`), they are drawn for late fractions and
percentiles.

Units are dispatched from their sites only, never on their way back; calls have no priorities; and arrival rates do not
change with the hour. No list of events is needed: a call that finds every unit busy can be assigned at once to the unit
that is released first, that is, the first to finish all calls assigned to it.

**Common random numbers.** Times, atoms, service factors and drives of the calls come from separate streams that do not
depend on the dispatch. The same seed thus gives the same calls to every deployment, and differences between deployments
are far more certain than the values themselves.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice, product
from types import MappingProxyType

import numpy as np
from numba import njit

from .._running.parallel import map_rows
from ..city.city import City
from ..city.deployment_space import check_sites
from ..city.travel import ResponseLaw
from ..errors import InputError
from ..errors._types import ArrayLike, FloatArray, IntArray, Progress, Rng, Sites
from ..errors._validate import choice, generator, positive_number, real_array, whole_number
from . import _intervals
from ._unit_order import UnitOrder, unit_order
from .evaluation import Evaluation, averaging_matrix, is_queue, unstable_queue_error

N_BATCHES = 20  # of consecutive calls: the longer a batch is, the less it depends on the one before
CHUNK_CALLS = 16_384  # calls drawn at a time, few enough to stay in the processor's cache
CHUNKS_PER_TURN = 4  # chunks simulated for one deployment before the next, whose tables displace its own in the cache
LONGEST_WARMUP = 1_000_000  # limit in calls on a warm-up, which near saturation would grow without bound
COUNTER_BYTES = 64 * 2**20  # limit on the counters of deployments that are simulated together, to save memory


def simulate(
    city: City,
    sites: Sites,
    *,
    capacity: str = "loss",
    calls: int = 100_000,
    warmup: int | None = None,
    service: str | ArrayLike = "exponential",
    cv: float | None = None,
    level: float = 0.95,
    rng: Rng = None,
) -> Evaluation:
    """Simulate a deployment and return its performance with confidence intervals.

    Parameters
    ----------
    city, sites, capacity
        As for `approximate_hypercube`.
    calls : int
        Number of calls that are counted, at least 20.
    warmup : int, optional
        Number of calls before these that are not counted. Default: a tenth of ``calls``, or, if more (at most a
        million), ten times the estimated number of calls after which the initial state no longer matters.
    service : {"exponential", "lognormal", "gamma", "deterministic"} or array_like, shape (n,)
        Distribution of the service times about the city's means. An array holds observed minutes, rescaled to the mean
        of each site and atom. An Erlang distribution of k stages is "gamma" with cv = 1 / sqrt(k).
    cv : float, optional
        Coefficient of variation, for "lognormal" and "gamma" only. Default: 1, as for "exponential".
    level : float
        Confidence level of the intervals, in (0, 1).
    rng : numpy.random.Generator or seed, optional
        The same seed gives the same calls to every deployment.

    Returns
    -------
    Evaluation
        With ``intervals`` for "mean_response", "mean_utilization", and "loss_probability" or "queue_probability" and
        "mean_wait". If no call of an atom was answered, its dispatch fractions are estimated from all calls: the share
        answered by the first, second, ... preferred unit.

    Raises
    ------
    InputError, UnstableQueueError
        If no counted call was answered, or the queue has no steady state.

    Notes
    -----
    The mean response weights each atom's observed mean by its known share of the calls. Its interval is computed from
    batch means (Student's t). The intervals of mean wait, probability of waiting and utilisation are at least as wide
    as heavy-traffic theory says (Whitt 1989), as batches vary too little near saturation. An `AccuracyWarning` is
    issued if a queue is simulated for less than 100 relaxation times, which leaves the mean wait uncertain by more than
    about 20 percent. Intervals are too narrow if service times are long-tailed or many atoms have only a few calls:
    then raise ``calls``.

    Law, A. M. (2015). Simulation Modeling and Analysis, 5th edition, chapter 9 (batch means).
    Whitt, W. (1989). Planning queueing simulations. Management Science 35(11), 1341-1366.

    Examples
    --------
    >>> import emsopt as eo
    >>> city = eo.City([2.0, 1.0], [[3.0, 8.0], [9.0, 2.0]], turnout_times=1.5, service_times=40)
    >>> low, high = eo.evaluators.simulate(city, [0, 1], rng=0).intervals["loss_probability"]
    >>> low < 0.4 < high  # Erlang B: 2 units, 2 calls in a service time
    True
    """
    sites, queue = check_sites(city, sites), is_queue(capacity)
    calls = whole_number(calls, "calls", N_BATCHES)
    level = _intervals.check_level(level)
    draw, squared_variation = service_law(service, cv)
    warmup = _checked_warmup(warmup, city, len(sites), queue, calls, squared_variation)
    load = _stable_load(city, sites) if queue else 0.0
    spread = _intervals.mean_wait_spread(load, squared_variation, calls)

    ends = np.linspace(0, calls, N_BATCHES + 1).astype(np.int64)  # batches differ by at most one call
    batch_calls: IntArray = ends[1:] - ends[:-1]
    lengths, seed = [warmup, *batch_calls], stream_seed(rng)
    law, dispatches = city.response_law, list[tuple[int, IntArray, IntArray]]()
    order, p = preferred_units(city, sites), len(sites)
    kept = None if law is None else dispatches
    segments = _simulate_segments(city, sites[None], [order], lengths, draw, queue, seed, kept)
    next(segments)  # the warm-up does not count
    (batch, atom, unit, number), busy, (minutes, blocked, waited) = _totals_by_batch(segments, p)
    average = averaging_matrix(city, sites)
    utilizations = average @ np.clip(busy.sum(axis=0) / minutes.sum(), 0, 1)
    answered = np.bincount(unit * city.n_atoms + atom, number, p * city.n_atoms).reshape(p, -1)
    fractions = average @ _dispatch_fractions(answered, order)
    measures = utilizations, fractions, float(waited.sum() / calls), calls, float("nan")
    result = Evaluation.of(city, sites, "simulation", capacity, float(blocked.sum() / calls), *measures)

    in_batches = N_BATCHES, city.n_atoms, level
    answers = _intervals.AnsweredCalls(result.response_times[unit, atom], number, batch, atom, *in_batches)
    shifts = _intervals.response_shifts(answers.total(answers.minutes), answers.total(), city.demand_shares)
    blocked_interval = _intervals.share_interval(blocked, batch_calls, level, load, spread)
    wait_interval = _intervals.ratio_interval(waited, batch_calls, level, least=spread * result.mean_wait)
    if not blocked.any():  # the batches do not vary, but the true probability may be above zero
        blocked_interval = (0.0, float(1 - (1 - level) ** (1 / calls)))
        wait_interval = (0.0, blocked_interval[1] * city.mean_service_time)
    intervals = {
        "mean_response": _intervals.student_interval(result.mean_response, shifts, level),
        "mean_utilization": _intervals.share_interval(busy.sum(axis=1), p * minutes, level, load, spread),
        "queue_probability" if queue else "loss_probability": blocked_interval,
    }
    if queue:
        intervals["mean_wait"] = wait_interval
    if law is not None:
        batch, atom, drawn = _draw_responses(law.at_sites(sites), dispatches, seed)
        answers = _intervals.AnsweredCalls(drawn, np.ones(len(atom), np.int64), batch, atom, *in_batches)
    return replace(result, intervals=MappingProxyType(intervals), answers=answers)


def _totals_by_batch(
    segments: Iterable[tuple[IntArray, FloatArray, FloatArray]], units: int
) -> tuple[list[IntArray], FloatArray, FloatArray]:
    """Return counts of answered calls as columns (batch, atom, unit, count), busy minutes (B, p), and totals (3, B)."""
    pairs, sums = list[tuple[IntArray, ...]](), list[tuple[FloatArray, ...]]()
    for b, (counts, *measured) in enumerate(segments):
        pair = np.flatnonzero(counts != 0)  # of atom and unit: few, even in a large city
        pairs.append((np.full(len(pair), b), *np.divmod(pair, units), counts.ravel()[pair]))
        sums.append(tuple(array[0] for array in measured))
    busy, totals = (np.array(rows) for rows in zip(*sums, strict=True))
    return [np.concatenate(columns) for columns in zip(*pairs, strict=True)], busy, totals.T


def mean_cost_function(
    city: City,
    units: int,
    costs: FloatArray,
    queue: bool,
    *,
    calls: int,
    warmup: int | None,
    service: str | ArrayLike,
    cv: float | None,
    rng: Rng,
) -> Callable[..., FloatArray]:
    """Return a function from checked deployments, (K, p), to mean costs, (K,), as `approximate.mean_cost_function`."""
    calls = whole_number(calls, "calls", N_BATCHES)
    draw, squared_variation = service_law(service, cv)
    lengths = [_checked_warmup(warmup, city, units, queue, calls, squared_variation), calls]
    most_together = max(1, COUNTER_BYTES // (8 * units * city.n_atoms))

    def part_values(rows: IntArray, seed: IntArray) -> list[float]:
        result = []
        for start in range(0, len(rows), most_together):
            part = rows[start : start + most_together]
            orders = [preferred_units(city, sites) for sites in part]
            # segment 0, the warm-up, is left out
            _, (answered, _, _) = _simulate_segments(city, part, orders, lengths, draw, queue, seed)
            for sites, order, counts in zip(part, orders, answered, strict=True):
                fractions = averaging_matrix(city, sites) @ _dispatch_fractions(np.ascontiguousarray(counts.T), order)
                result.append((fractions * costs[sites]).sum(axis=0) @ city.demand_shares)
        return result

    def values(deployments: IntArray, workers: int | None = None, progress: Progress = False) -> FloatArray:
        if queue:
            for sites in deployments:
                _stable_load(city, sites)  # raises before any call is simulated
        # One seed for all rows: every deployment gets the same calls.
        return map_rows(partial(part_values, seed=stream_seed(rng)), deployments, workers, progress)

    return values


def _checked_warmup(
    warmup: int | None, city: City, units: int, queue: bool, calls: int, squared_variation: float
) -> int:
    """Return the number of calls to leave out at the start; by default it depends on fleet size and load only."""
    if warmup is not None:
        return whole_number(warmup, "warmup", 0)
    load = city.offered_load(units)
    memory = load * units * (1 + squared_variation) / 2  # mean remaining time of a service in progress, in calls
    if queue:  # for a typical deployment; its load is capped, as it may be unstable where the given one is stable
        memory += _intervals.relaxation_calls(min(load, 0.999), squared_variation)
    return max(calls // 10, int(min(10 * memory, LONGEST_WARMUP)))


def _stable_load(city: City, sites: IntArray) -> float:
    """Return the load λ / Σ_i μ_i of a queue, 1 / μ_i being unit i's mean service time; raise unless it is below 1."""
    most = 60 * (1 / (city.service_times[sites] @ city.demand_shares)).sum()
    if city.total_rate >= most * (1 - 1e-12):
        raise unstable_queue_error(city, sites)
    return city.total_rate / most


def stream_seed(rng: Rng) -> IntArray:
    """Return four random numbers that seed the random streams of a run; a Generator given as ``rng`` is advanced."""
    return generator(rng).integers(2**32, size=4)


def random_streams(seed: IntArray, n: int = 4) -> list[np.random.Generator]:
    """Return n Generators, at most five: for arrival times, atoms, service factors, the initial state and drives."""
    return [np.random.default_rng(child) for child in np.random.SeedSequence(seed).spawn(n)]


def call_stream(
    city: City, lengths: Iterable[int], draw: Callable[..., FloatArray], seed: IntArray
) -> Iterator[tuple[int, FloatArray, IntArray, FloatArray]]:
    """Yield random calls, at most `CHUNK_CALLS` at a time, as (segment number, gaps, atoms, service factors).

    Segment s has ``lengths[s]`` calls, gaps are the minutes since the call before, and factors come from ``draw``. The
    arrival time and atom of the n-th call depend on ``city`` and ``seed`` only.
    """
    when, where, how_long, _ = random_streams(seed)
    cumulative, guide = atom_guide(city)
    for segment, length in enumerate(lengths):
        for begin in range(0, length, CHUNK_CALLS):
            n = min(CHUNK_CALLS, length - begin)
            gaps = when.standard_exponential(n) * (60 / city.total_rate)
            yield segment, gaps, _draw_atoms(where.random(n), cumulative, guide), draw(how_long, n)


def atom_guide(city: City) -> tuple[FloatArray, IntArray]:
    """Return the cumulative demand shares, (M,), and the ``guide``, (M,), that `_draw_atoms` needs."""
    cumulative = np.cumsum(city.demand_shares)
    cumulative /= cumulative[-1]  # exactly 1 at the end, or a search could run beyond it
    return cumulative, np.searchsorted(cumulative, np.arange(city.n_atoms) / city.n_atoms, side="right")


@njit(cache=True, nogil=True)
def _draw_atoms(uniforms: FloatArray, cumulative: FloatArray, guide: IntArray) -> IntArray:
    """Return an atom for each number in [0, 1), shape (n,), by inversion of the cumulative demand shares.

    ``guide[k]`` is the atom of the number k / M, from which a search takes about one step (Chen and Asau 1974).
    """
    atoms = np.empty(len(uniforms), np.int64)
    for n in range(len(uniforms)):
        j = guide[int(uniforms[n] * len(guide))]
        while cumulative[j] <= uniforms[n]:
            j += 1
        atoms[n] = j
    return atoms


def preferred_units(city: City, sites: IntArray) -> UnitOrder:
    """Return for each atom the units in its order of preference, shape (M, p), whichever twin sites they are at."""
    _, first_twin = np.unique(city.twin_groups, return_index=True)
    return unit_order(city.preference_ranks, first_twin[city.twin_groups[sites]])


def first_releases(city: City, units: int, seed: IntArray) -> FloatArray:
    """Draw the minutes until each unit is free at the start, shape (p,), roughly as in steady state.

    With ρ the offered load per unit, a unit is busy with probability ρ / (1 + ρ), for up to a mean service time.
    """
    load, rng = city.offered_load(units), random_streams(seed)[3]
    return (rng.random(units) < load / (1 + load)) * rng.random(units) * city.mean_service_time


def _simulate_segments(
    city: City,
    deployments: IntArray,
    orders: Sequence[UnitOrder],
    lengths: Sequence[int],
    draw: Callable[..., FloatArray],
    queue: bool,
    seed: IntArray,
    dispatches: list[tuple[int, IntArray, IntArray]] | None = None,
) -> Iterator[tuple[IntArray, FloatArray, FloatArray]]:
    """Simulate one stream of calls, cut into segments, for each of K deployments; ``orders`` are their unit orders.

    Yield for each segment the number of calls of each atom that each unit answered, (K, M, p), reused for the next
    segment; the minutes that each unit was busy, (K, p); and, (K, 3), the minutes passed, the number of calls that
    found all units busy and the total minutes waited. The list ``dispatches`` gets (segment, atoms, units) of
    consecutive calls, with unit -1 for a lost call.
    """
    K, p = deployments.shape
    answered = np.zeros((K, city.n_atoms, p), np.int64)
    service_times = [np.ascontiguousarray(city.service_times[sites].T) for sites in deployments]
    releases = np.tile(first_releases(city, p, seed), (K, 1))
    stream = call_stream(city, lengths, draw, seed)
    for length in lengths:
        answered[:] = 0
        busy, totals = np.zeros((K, p)), np.zeros((K, 3))
        chunks = islice(stream, -(-length // CHUNK_CALLS))  # the chunks of this segment, their number rounded up
        while some := list(islice(chunks, CHUNKS_PER_TURN)):
            for k, (s, gaps, atoms, factors) in product(range(K), some):
                units = np.full(0 if dispatches is None else len(gaps), -1)
                unit = orders[k], service_times[k], queue, releases[k], answered[k], busy[k]
                busy[k] += np.maximum(releases[k], 0)  # counts work left from before, but not what is left after
                totals[k] += serve(gaps, atoms, factors, *unit, units)
                busy[k] -= np.maximum(releases[k], 0)
                if dispatches is not None:
                    dispatches.append((s, atoms, units))
        yield answered, busy, totals


@njit(cache=True, nogil=True)
def serve(
    gaps: FloatArray,
    atoms: IntArray,
    factors: FloatArray,
    order: UnitOrder,
    service_times: FloatArray,
    queue: bool,
    release: FloatArray,
    answered: IntArray,
    busy: FloatArray,
    units: IntArray,
) -> tuple[float, int, float]:
    """Dispatch calls one after the other; update ``release``, ``answered`` and ``busy`` in place.

    ``order``, ``service_times`` and ``answered`` have the shape (M, p): what a call needs is close together in memory.
    ``units`` receives the unit of each answered call, unless it is empty. ``busy`` includes service after the last
    call. Times in ``release`` are measured from the start of these calls on entry, and from the last call on return.
    Return the minutes passed, the number of calls that found all units busy and the total minutes that calls waited.
    """
    now, blocked, waited = 0.0, 0, 0.0
    earliest = 0.0  # lower bound on the next release: while all are busy, the list need not be read
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
            first = int(np.argmin(release))
            earliest = release[first]
            if not queue:
                continue
            start, unit = earliest, first  # first come, first served: it goes to the unit released first
            waited += start - now
        minutes = service_times[j, unit] * factors[n]
        release[unit] = start + minutes
        busy[unit] += minutes
        answered[j, unit] += 1
        if n < len(units):
            units[n] = unit
    for i in range(len(release)):
        release[i] -= now
    return now, blocked, waited


def _draw_responses(
    law: ResponseLaw, dispatches: list[tuple[int, IntArray, IntArray]], seed: IntArray
) -> tuple[IntArray, IntArray, FloatArray]:
    """Draw response times; return the batch, atom and response time (min) of each answered call after the warm-up."""
    rng, parts = random_streams(seed, 5)[4], []
    for segment, atoms, units in dispatches:
        normal, answered = rng.standard_normal((len(units), 2)).T, units >= 0  # the same whichever unit answers
        if segment:
            atoms, units = atoms[answered], units[answered]
            minutes = law.sample(units, atoms, normal[:, answered])
            parts.append((np.full(len(units), segment - 1), atoms, minutes))
    batch, atom, minutes = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    return batch, atom, minutes


def _dispatch_fractions(answered: FloatArray | IntArray, order: UnitOrder) -> FloatArray:
    """Return the share of each atom's answered calls that each unit answered, shape (p, M).

    An atom without an answered call gets the shares of all calls that the first, second, ... preferred unit answered.
    """
    calls = answered.sum(axis=0)
    if not calls.any():
        why = "every counted call found all units busy"
        raise InputError(f"no response was observed: {why}. Raise `calls` or lower the load.")
    fractions = answered / np.maximum(calls, 1)
    unheard = np.flatnonzero(calls == 0)
    if len(unheard) == 0:
        return fractions
    by_rank = np.take_along_axis(answered, order.T, axis=0).sum(axis=1)
    fractions[order[unheard].T, unheard] = by_rank[:, None] / by_rank.sum()
    return fractions


def service_law(
    service: str | ArrayLike, cv: float | None = None
) -> tuple[Callable[[np.random.Generator, int], FloatArray], float]:
    """Return a function of (rng, n) that draws n factors of mean 1, and the square of their coefficient of variation.

    A service time is the mean service time of its site and atom times one factor. Arguments are those of `simulate`.
    """
    if isinstance(service, str):
        choice(service, "service", ("exponential", "deterministic", "gamma", "lognormal"))
    if cv is not None and not (isinstance(service, str) and service in ("lognormal", "gamma")):
        remedy = "Leave it out, or choose service='lognormal' or 'gamma'."
        raise InputError(f"`cv` is fixed by this `service`; got cv={cv!r}. {remedy}")
    if not isinstance(service, str):
        minutes = real_array(service, "service", (None,), unit="min", low=0)
        if minutes.max() == 0:
            raise InputError("`service` must hold observed minutes with a mean above 0; all are zero.")
        factors = minutes / minutes.mean()
        return lambda rng, n: factors[rng.integers(len(factors), size=n)], float(factors.var())
    squared = positive_number(1.0 if cv is None else cv, "cv") ** 2
    variance = np.log1p(squared)  # of the logarithm, for a mean of 1 and the given cv
    laws: dict[str, tuple[Callable[[np.random.Generator, int], FloatArray], float]] = {
        "exponential": (lambda rng, n: rng.standard_exponential(n), 1.0),
        "deterministic": (lambda rng, n: np.ones(n), 0.0),
        "gamma": (lambda rng, n: rng.standard_gamma(1 / squared, n) * squared, squared),
        "lognormal": (lambda rng, n: np.exp(np.sqrt(variance) * rng.standard_normal(n) - variance / 2), squared),
    }
    return laws[service]
