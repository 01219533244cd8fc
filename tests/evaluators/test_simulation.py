"""The simulation against closed forms, the exact hypercube, and another simulation written differently."""

import heapq

import numpy as np
import pytest
from drawn import erlang_b, erlang_c
from refusals import refused

import emsopt as eo
from emsopt.city.deployment_space import check_sites
from emsopt.errors import AccuracyWarning, UnstableQueueError
from emsopt.evaluators import exact_hypercube, simulate, values
from emsopt.evaluators.simulation import call_stream, first_releases, service_law, stream_seed

LAWS = [  # and the square of the coefficient of variation
    ({"service": "exponential"}, 1.0),
    ({"service": "lognormal", "cv": 0.5}, 0.25),
    ({"service": "lognormal", "cv": 1.5}, 2.25),
    ({"service": "gamma", "cv": 0.7}, 0.49),
    ({"service": "deterministic"}, 0.0),
    ({"service": [10.0, 20.0, 90.0]}, 3800 / 3 / 40**2),
]


def one_station(load, units):
    """City whose units all wait at one place: M/G/c with a call in each mean service time of 40 min."""
    city = eo.City([2.0, 1.0, 3.0], [[3.0, 8.0, 5.0]], turnout_times=1.5, service_times=40.0)
    return city.with_offered_load(load, units), np.zeros(units, int)


def random_city(rng, n_sites=8, n_atoms=15, *, by_atom=False):
    where, sites = rng.random((n_atoms, 2)) * 15, rng.random((n_sites, 2)) * 15
    travel = np.abs(where[None] - sites[:, None]).sum(axis=2)
    service = 20 + 40 * rng.random((n_sites, n_atoms) if by_atom else n_sites)
    return eo.City(rng.exponential(size=n_atoms), travel, turnout_times=rng.random(n_sites), service_times=service)


def replayed(city, sites, capacity, lengths, service, seed):
    """Simulate from the rules alone, event by event with a calendar, on the calls that `simulate` draws."""
    sites, (draw, _) = check_sites(city, sites), service_law(service, None)
    release = first_releases(city, len(sites), seed)
    calendar = [(t, k) for k, t in enumerate(release) if t > 0]
    heapq.heapify(calendar)
    free, queue, now = {k for k, t in enumerate(release) if t == 0}, [], 0.0
    answered = np.zeros((len(lengths), len(sites), city.n_atoms), int)
    lost, waits = np.zeros(len(lengths), int), np.zeros(len(lengths))

    def send(unit, call, at):
        segment, arrived, atom, factor = call
        answered[segment, unit, atom] += 1
        waits[segment] += at - arrived
        heapq.heappush(calendar, (at + city.service_times[sites[unit], atom] * factor, unit))

    for segment, *calls in call_stream(city, lengths, draw, seed):
        for gap, atom, factor in zip(*calls, strict=True):
            now += gap
            while calendar and calendar[0][0] <= now:
                at, unit = heapq.heappop(calendar)
                if queue:
                    send(unit, queue.pop(0), at)
                else:
                    free.add(unit)
            call = segment, now, atom, factor
            if free:
                unit = min(free, key=lambda k: (city.response_times[sites[k], atom], sites[k], k))
                free.remove(unit)
                send(unit, call, now)
            elif capacity == "queue":
                queue.append(call)
            else:
                lost[segment] += 1
    while queue:
        at, unit = heapq.heappop(calendar)
        send(unit, queue.pop(0), at)
    return answered, lost, waits


def contains(result, name, truth, widest=np.inf):
    """Check that an interval holds the truth and is not too wide."""
    low, high = result.intervals[name]
    assert low < truth < high
    assert high - low < widest


@pytest.mark.parametrize("law", [law for law, _ in LAWS], ids=str)
@pytest.mark.parametrize(("load", "units"), [(0.7, 5), (3.0, 4)])
def test_loss_is_erlang_b_whatever_the_service_law(law, load, units):
    """Insensitivity of M/G/c/c (Sevastyanov 1957)."""
    city, sites = one_station(load, units)
    result = simulate(city, sites, calls=200_000, level=0.9999, rng=1, **law)
    loss = erlang_b(units, load * units)
    contains(result, "loss_probability", loss, 0.03)
    contains(result, "mean_utilization", load * (1 - loss), 0.04)


@pytest.mark.parametrize(("law", "squared_variation"), LAWS, ids=str)
def test_one_unit_waits_as_pollaczek_and_khinchine_say(law, squared_variation):
    """M/G/1: mean wait = ρ s (1 + cv²) / 2 / (1 - ρ); the chance to wait is ρ."""
    city, sites = one_station(0.6, 1)
    result = simulate(city, sites, capacity="queue", calls=600_000, level=0.9999, rng=3, **law)
    wait = 0.6 * 40 * (1 + squared_variation) / 2 / 0.4
    contains(result, "mean_wait", wait, 0.25 * wait)
    contains(result, "queue_probability", 0.6, 0.05)
    contains(result, "mean_utilization", 0.6)
    assert result.loss_probability == 0


@pytest.mark.parametrize("capacity", ["loss", "queue"])
@pytest.mark.parametrize("service", ["exponential", "deterministic", [5.0, 50.0]], ids=str)
def test_agrees_call_by_call_with_an_event_calendar(capacity, service):
    """Same calls, service times by site and atom: the same unit for every call, the same waits."""
    city = random_city(np.random.default_rng(10), by_atom=True).with_offered_load(0.7, 6)
    sites = np.array([0, 2, 3, 5, 6, 7])
    warmup, calls = 1000, 19_000
    answered, lost, waits = replayed(city, sites, capacity, [warmup, calls], service, stream_seed(11))
    result = simulate(city, sites, capacity=capacity, calls=calls, warmup=warmup, service=service, rng=11)
    np.testing.assert_allclose(result.dispatch_fractions, answered[1] / answered[1].sum(axis=0), atol=1e-12)
    assert result.loss_probability * calls == pytest.approx(lost[1])
    assert result.mean_wait * calls == pytest.approx(waits[1])
    assert lost[1] > 300 or waits[1] > 3000


@pytest.mark.filterwarnings("ignore::emsopt.errors.AccuracyWarning")
def test_default_warmup_forgets_an_odd_beginning():
    """Starting values differ between these seeds' runs; what is counted must not start from them."""
    city, sites = one_station(0.9, 1)
    runs = [simulate(city, sites, capacity="queue", calls=300, rng=seed) for seed in range(1500)]
    waits = np.array([run.mean_wait for run in runs])
    assert abs(waits.mean() - 0.9 * 40 / 0.1) < 3 * waits.std() / np.sqrt(len(runs))


@pytest.mark.parametrize("capacity", ["loss", "queue"])
def test_95_percent_intervals_cover_about_95_percent(capacity):
    """200 short runs; the share that cover the exact value must be from 90 to 99 percent."""
    city, sites = random_city(np.random.default_rng(12), n_atoms=30).with_offered_load(0.6, 5), [0, 2, 3, 5, 5]
    exact = exact_hypercube(city, sites, capacity=capacity)
    truth = {"mean_response": exact.mean_response, "mean_utilization": exact.utilizations.mean()}
    waits = {"queue_probability": exact.queue_probability, "mean_wait": exact.mean_wait}
    truth |= waits if capacity == "queue" else {"loss_probability": exact.loss_probability}
    covered = dict.fromkeys(truth, 0)
    for child in np.random.SeedSequence(13).spawn(200):
        intervals = simulate(city, sites, capacity=capacity, calls=20_000, rng=child).intervals
        assert set(intervals) == set(truth)
        for name, (low, high) in intervals.items():
            covered[name] += low <= truth[name] <= high
    assert all(180 <= count <= 198 for count in covered.values()), covered
    narrow, wide = (simulate(city, sites, level=level, rng=0) for level in (0.5, 0.99))
    assert sum(narrow.intervals["mean_response"]) / 2 == pytest.approx(wide.mean_response)
    spread = [np.diff(e.intervals["mean_response"])[0] for e in (narrow, wide)]
    assert spread[1] / spread[0] == pytest.approx(2.860935 / 0.687621, rel=1e-5)  # t of 19 degrees of freedom


def test_runs_without_losses_or_answers_say_so():
    city, sites = one_station(0.01, 6)
    result = simulate(city, sites, calls=1000, rng=0)
    assert result.loss_probability == 0
    assert result.intervals["loss_probability"] == (0.0, pytest.approx(3.0 / 1000, rel=0.01))  # rule of three
    low, high = simulate(city, sites, capacity="queue", calls=1000, rng=0).intervals["mean_wait"]
    assert low == 0 < high < 0.2
    city, sites = one_station(1e4, 1)
    refused("Raise `calls`", simulate, city, sites, calls=20, rng=0)
    refused("at least 20", eo.Objective(city, len(sites), "simulation", calls=5).values, [sites])


@pytest.mark.filterwarnings("ignore::emsopt.errors.AccuracyWarning")
@pytest.mark.parametrize("load", [0.95, 0.99])
def test_intervals_near_saturation_hold_the_exact_values(load):
    """100 runs each of 20,000 calls, which is 14 to 0.5 relaxation times; Erlang C."""
    city, sites = one_station(load, 2)
    waiting = erlang_c(2, 2 * load)
    truth = {"queue_probability": waiting, "mean_wait": waiting * 20 / (1 - load), "mean_utilization": load}
    held = dict.fromkeys(truth, 0)
    for seed in range(100):
        run = simulate(city, sites, capacity="queue", calls=20_000, rng=seed)
        for name, value in truth.items():
            low, high = run.intervals[name]
            held[name] += low <= value <= high
    assert held["mean_wait"] >= 90, held
    assert min(held.values()) >= 80, held


@pytest.mark.parametrize(("load", "times"), [(0.95, "3.4"), (0.99, "0.13")])
def test_a_run_short_for_its_queue_says_so(load, times):
    """Not so a longer one, or a loss system, which forgets in a service time; the suite makes errors of warnings."""
    city, sites = one_station(load, 3)
    with pytest.warns(AccuracyWarning, match=rf"offered load of {load}.*5,000 were counted, {times} times") as told:
        result = simulate(city, sites, capacity="queue", calls=5000, rng=0)
    assert [warning.filename for warning in told] == [__file__]
    low, high = result.intervals["mean_wait"]
    assert high - low > result.mean_wait
    for busy, capacity, calls in ((0.9, "queue", 40_000), (0.7, "queue", 3000), (0.999, "loss", 1000)):
        simulate(*one_station(busy, 3), capacity=capacity, calls=calls, rng=0)


def test_same_seeds_give_the_same_result_and_differences_scatter_less():
    city = random_city(np.random.default_rng(15)).with_offered_load(0.5, 5)
    one, other, seeds = [0, 1, 2, 3, 4], [0, 1, 2, 3, 5], range(60)
    first, again = (simulate(city, one, rng=5) for _ in range(2))
    np.testing.assert_array_equal(first.dispatch_fractions, again.dispatch_fractions)
    assert first.intervals == again.intervals
    rng = np.random.default_rng(5)
    assert simulate(city, one, rng=rng).mean_response == first.mean_response
    assert simulate(city, one, rng=rng).mean_response != first.mean_response
    a, b = (np.array([simulate(city, x, calls=5000, rng=s).mean_response for s in seeds]) for x in (one, other))
    assert np.var(a - b) < 0.25 * np.var(a[1:] - b[:-1])


def test_many_deployments_get_the_values_of_single_runs():
    rng = np.random.default_rng(17)
    city = random_city(rng, by_atom=True).with_offered_load(0.4, 4)
    deployments = rng.integers(city.n_sites, size=(9, 4))
    for capacity, workers in (("loss", 1), ("queue", 2)):
        options = {"capacity": capacity, "calls": 20_000, "service": "lognormal", "cv": 0.6, "rng": 3}
        single = [simulate(city, sites, **options) for sites in deployments]
        found = values(city, deployments, None, "simulation", workers=workers, **options)
        np.testing.assert_allclose(found, [e.mean_response for e in single], rtol=1e-12)
        found = values(city, deployments, city.response_times >= 6, "simulation", **options)
        np.testing.assert_allclose(found, [e.late_fraction(6) for e in single], atol=1e-12)


def test_twin_sites_are_one_station_also_in_ties():
    """Which of two equal sites is named does not matter, and their units share the work."""
    base, twice = random_city(np.random.default_rng(18), by_atom=True), [0, 1, 2, 0, 1]
    times = {key: getattr(base, key)[twice] for key in ("travel_times", "turnout_times", "service_times")}
    city = base.replace(**times, site_names=None).with_offered_load(0.5, 3)
    named = [simulate(city, sites, rng=0) for sites in ([0, 2, 0], [0, 2, 3], [3, 2, 3])]
    assert named[0].mean_response == named[1].mean_response == named[2].mean_response
    for result in named:
        np.testing.assert_array_equal(result.utilizations[0], result.utilizations[2])
        np.testing.assert_array_equal(result.dispatch_fractions[0], result.dispatch_fractions[2])
    # Sites 0 and 2 are twins; site 1 is as near to the first atom and comes between them in order.
    city = eo.City([1.0, 1.0], [[5.0, 3.0], [5.0, 9.0], [5.0, 3.0]], turnout_times=1.0, service_times=40)
    lower, upper = (simulate(city, sites, rng=0).dispatch_fractions for sites in ([0, 1], [2, 1]))
    np.testing.assert_array_equal(lower, upper)
    assert lower[0, 0] > 0.55


def test_preference_decides_and_atoms_never_heard_of_are_shared_out_by_it():
    city = random_city(np.random.default_rng(19)).with_offered_load(0.001, 2)
    contrary = city.replace(preference=-city.response_times)
    result = simulate(contrary, [0, 1], rng=0)
    slowest = city.response_times[[0, 1]].max(axis=0)
    assert result.mean_response == pytest.approx(city.demand_shares @ slowest, rel=0.01)
    # The one atom that calls prefers site 1 to site 0; the others, the other way round.
    city = eo.City([3.0, 0.0, 1e-9], [[9.0, 2.0, 1.0], [3.0, 8.0, 9.0]], turnout_times=1.0, service_times=40)
    fractions = simulate(city, [0, 1], calls=1000, rng=0).dispatch_fractions
    assert 0.3 < fractions[1, 0] < 0.7
    np.testing.assert_allclose(fractions[:, 1:], fractions[::-1, :1].repeat(2, axis=1))


def test_bad_options_are_refused():
    city, sites = one_station(0.5, 2)
    for words, options in (
        ("`calls` .* at least 20; got 10", {"calls": 10}),
        ("`warmup` must be a whole number", {"warmup": -1}),
        ("pass 0.95", {"level": 95}),
        ("`level` must be a number above 0", {"level": 0}),
        ("above 0 and below 1", {"level": 1.0}),
        ("`capacity` must be one of 'loss', 'queue'", {"capacity": "infinite"}),
        ("`service` must be one of 'exponential'", {"service": "weibull"}),
        ("`cv` must be a number above 0", {"service": "lognormal", "cv": 0}),
        ("choose service='lognormal'", {"service": [30.0, 40.0], "cv": 0.5}),
        ("`service` must be at least 0", {"service": [30.0, -1.0]}),
        ("all are zero", {"service": [0.0, 0.0]}),
    ):
        refused(words, simulate, city, sites, rng=0, **options)
    # A fast site and a slow one: one deployment of the same city settles, the other does not.
    city = eo.City([1.5], [[1.0], [1.0]], turnout_times=0, service_times=[30.0, 90.0])
    assert simulate(city, [0], capacity="queue", rng=0).mean_wait == pytest.approx(90, rel=0.15)  # M/M/1, load 3/4
    with pytest.raises(UnstableQueueError):
        simulate(city, [1], capacity="queue", rng=0)
