"""What any hypercube evaluation must satisfy, and the exact model against a chain written out state by state."""

from itertools import product

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import emsopt as eo
from emsopt.evaluators import approximate_hypercube, exact_hypercube, values

# Service times here differ at random, also by more than the approximate model is good for.
pytestmark = pytest.mark.filterwarnings("ignore::emsopt.errors.AccuracyWarning")

EVALUATORS = {"approximate": approximate_hypercube, "exact": exact_hypercube}

examples = settings(
    max_examples=25,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)


def make_city(rng, n_sites, n_atoms, service="one", *, ties=False, preference=False):
    """Return a random city; ``service`` says what service times depend on."""
    travel = rng.integers(1, 5, (n_sites, n_atoms)) if ties else rng.uniform(1, 20, (n_sites, n_atoms))
    minutes = {
        "one": 40.0,
        "site": rng.uniform(20, 60, n_sites),
        "site and atom": rng.uniform(30, 50, (n_sites, n_atoms)),
    }[service]
    return eo.City(
        rng.uniform(0.1, 2, n_atoms),
        travel,
        2.0 if ties else rng.uniform(0.5, 3, n_sites),
        minutes,
        preference=rng.permuted(np.tile(np.arange(n_sites), (n_atoms, 1)), axis=1).T if preference else None,
    )


@st.composite
def cases(draw, services=("one", "site", "site and atom"), *, ties=True, least_units=1, distinct=False):
    """Draw a city at some load, a deployment, and how to evaluate it."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_sites, n_atoms = draw(st.integers(max(2, least_units), 5)), draw(st.integers(1, 5))
    units = draw(st.integers(least_units, n_sites if distinct else 5))
    city = make_city(
        rng,
        n_sites,
        n_atoms,
        draw(st.sampled_from(services)),
        ties=ties and draw(st.booleans()),
        preference=draw(st.booleans()),
    )
    capacity = draw(st.sampled_from(["loss", "queue"]))
    load = draw(st.floats(0.02, 3 if capacity == "loss" else 0.6))
    sites = rng.choice(n_sites, units, replace=not distinct)
    return city.with_offered_load(load, units), sites, draw(st.sampled_from(list(EVALUATORS))), capacity


# -- what holds for every evaluation --------------------------------------------------------------------------


@examples
@given(cases())
def test_shares_utilisations_and_response_stay_within_bounds(case):
    city, sites, evaluator, capacity = case
    e = EVALUATORS[evaluator](city, sites, capacity=capacity)
    assert e.dispatch_fractions.min() >= 0
    np.testing.assert_allclose(e.dispatch_fractions.sum(axis=0), 1, rtol=1e-12)
    assert (e.utilizations > 0).all()
    assert (e.utilizations < 1).all()
    response = city.response_times[sites]
    nearest = city.demand_shares @ response.min(axis=0)
    furthest = city.demand_shares @ response.max(axis=0)
    assert nearest - 1e-9 <= e.mean_response <= furthest + 1e-9
    assert 0 <= e.loss_probability < 1
    assert 0 <= e.queue_probability < 1
    assert (e.loss_probability == 0, e.mean_wait > 0) == (capacity == "queue", capacity == "queue")
    assert e.residual < 1e-8


@examples
@given(cases(), st.lists(st.floats(0, 30), min_size=2, max_size=8), st.floats(0.5, 100))
def test_late_fraction_falls_with_the_threshold_and_agrees_with_percentiles(case, thresholds, q):
    city, sites, evaluator, capacity = case
    e = EVALUATORS[evaluator](city, sites, capacity=capacity)
    thresholds = np.sort(thresholds)
    late = e.late_fraction(thresholds)
    assert (np.diff(late) <= 1e-12).all()
    assert late[0] <= 1
    assert late[-1] >= 0
    weights = e.dispatch_fractions * e.demand_shares
    for t, value in zip(thresholds, e.late_fraction(thresholds), strict=True):
        assert value == pytest.approx(weights[e.response_times >= t].sum(), abs=1e-12)
    t = e.percentile(q)
    assert 1 - e.late_fraction(np.nextafter(t, np.inf)) >= q / 100 - 1e-9
    assert 1 - e.late_fraction(t) <= q / 100 + 1e-9


@examples
@given(cases())
def test_work_done_is_work_brought_by_answered_calls(case):
    """Little's law for the busy units: Σ_i ρ_i = Σ_ij λ_j (1 - loss) q_ij / μ_ij."""
    city, sites, evaluator, capacity = case
    e = EVALUATORS[evaluator](city, sites, capacity=capacity)
    answered = city.arrival_rates / 60 * (1 - e.loss_probability)
    offered = (e.dispatch_fractions * answered * city.service_times[sites]).sum()
    # The calibration of mean service times (site and atom) stops at a relative change of 1e-10.
    assert e.utilizations.sum() == pytest.approx(offered, rel=1e-8)


@examples
@given(cases())
def test_batched_values_are_those_of_single_evaluations(case):
    city, sites, evaluator, capacity = case
    e = EVALUATORS[evaluator](city, sites, capacity=capacity)
    batched = values(city, [sites, sites], None, evaluator, capacity=capacity, workers=2)
    np.testing.assert_allclose(batched, e.mean_response, rtol=1e-6)
    late = (city.response_times >= 8).astype(float)
    batched = values(city, [sites], late, evaluator, capacity=capacity)
    np.testing.assert_allclose(batched, e.late_fraction(8.0), atol=1e-6)


# -- symmetries -----------------------------------------------------------------------------------------------


@examples
@given(cases())
def test_two_units_at_one_site_are_a_unit_at_each_of_two_twin_sites(case):
    city, sites, evaluator, capacity = case
    doubled = city.replace(
        travel_times=np.repeat(city.travel_times, len(sites), axis=0),
        turnout_times=np.repeat(city.turnout_times, len(sites)),
        service_times=np.repeat(city.service_times, len(sites), axis=0),
        preference=None if city.preference is None else np.repeat(city.preference, len(sites), axis=0),
        site_names=None,
    )
    e = EVALUATORS[evaluator](city, sites, capacity=capacity)
    twins = EVALUATORS[evaluator](doubled, sites * len(sites) + np.arange(len(sites)), capacity=capacity)
    np.testing.assert_allclose(twins.utilizations, e.utilizations, rtol=1e-8)
    np.testing.assert_allclose(twins.dispatch_fractions, e.dispatch_fractions, atol=1e-9)
    for i, k in product(range(len(sites)), repeat=2):  # units at one site share their work equally
        if sites[i] == sites[k]:
            assert e.utilizations[i] == pytest.approx(e.utilizations[k], rel=1e-12)


@examples
@given(cases(), st.floats(0.1, 2))
def test_the_unit_of_time_does_not_matter(case, scale):
    city, sites, evaluator, capacity = case
    slower = city.replace(
        arrival_rates=city.arrival_rates / scale,
        travel_times=city.travel_times * scale,
        turnout_times=city.turnout_times * scale,
        service_times=city.service_times * scale,
    )
    e = EVALUATORS[evaluator](city, sites, capacity=capacity)
    other = EVALUATORS[evaluator](slower, sites, capacity=capacity)
    np.testing.assert_allclose(other.utilizations, e.utilizations, rtol=1e-8)
    np.testing.assert_allclose(other.dispatch_fractions, e.dispatch_fractions, atol=1e-8)
    assert other.mean_response == pytest.approx(e.mean_response * scale, rel=1e-8)
    assert other.mean_wait == pytest.approx(e.mean_wait * scale, rel=1e-7)


@examples
@given(cases(), st.floats(0, 1), st.integers(0, 4))
def test_an_atom_may_be_cut_in_two(case, part, atom):
    city, sites, evaluator, capacity = case
    atom = atom % city.n_atoms
    rates = np.r_[city.arrival_rates, city.arrival_rates[atom] * part]
    rates[atom] *= 1 - part
    columns = np.r_[np.arange(city.n_atoms), atom]
    cut = city.replace(
        arrival_rates=rates,
        travel_times=city.travel_times[:, columns],
        service_times=city.service_times[:, columns],
        preference=None if city.preference is None else city.preference[:, columns],
        atom_names=None,
    )
    e = EVALUATORS[evaluator](city, sites, capacity=capacity)
    other = EVALUATORS[evaluator](cut, sites, capacity=capacity)
    np.testing.assert_allclose(other.utilizations, e.utilizations, rtol=1e-8)
    np.testing.assert_allclose(other.atom_response, e.atom_response[columns], rtol=1e-8)
    assert other.mean_response == pytest.approx(e.mean_response, rel=1e-8)


# -- load -----------------------------------------------------------------------------------------------------


@examples
@given(cases(services=("one", "site")), st.floats(1.01, 1.6))
def test_exact_utilisations_and_blocking_grow_with_load(case, theta):
    """Coupling: with more calls, at any time more units are busy."""
    city, sites, _, capacity = case
    e = exact_hypercube(city, sites, capacity=capacity)
    busier = city.scaled(theta)
    if capacity == "queue":
        assume(busier.total_rate / 60 < 0.95 * (1 / city.service_times[sites, 0]).sum())
    more = exact_hypercube(busier, sites, capacity=capacity)
    assert (more.utilizations > e.utilizations).all()
    assert more.loss_probability >= e.loss_probability
    assert more.queue_probability >= e.queue_probability
    assert more.mean_wait >= e.mean_wait


@examples
@given(cases(services=("one", "site"), ties=False), st.integers(0, 4))
def test_one_more_unit_never_loses_more_calls(case, extra):
    """Coupling: the units that were there are busy less often, if preferences do not change."""
    city, sites, _, _ = case
    e = exact_hypercube(city, sites)
    more = exact_hypercube(city, np.r_[sites, extra % city.n_sites])
    assert more.loss_probability < e.loss_probability
    # Unit by unit only if the new unit joins none of the stations, where it would share the work. A unit that
    # everyone prefers to the new one does not notice it.
    if extra % city.n_sites not in sites:
        assert (more.utilizations[:-1] <= e.utilizations * (1 + 1e-9)).all()


@pytest.mark.parametrize("evaluator", EVALUATORS)
@pytest.mark.parametrize("service", ["one", "site", "site and atom"])
@pytest.mark.parametrize("units", [1, 9])
def test_light_load_sends_the_nearest_unit_and_heavy_load_whichever_is_free(evaluator, service, units):
    """Theorems 4 and 5: loads from 1e-3 to 1e3 converge to the p-median value and the completion shares."""
    rng = np.random.default_rng(units)
    base = make_city(rng, 10, 6, service)
    sites = rng.choice(10, units, replace=False)
    nearest = base.demand_shares @ base.response_times[sites].min(axis=0)
    if service == "site and atom":  # each unit completes calls at one over its mean over all calls
        completions = 1 / (base.service_times[sites] @ base.demand_shares)
    else:
        completions = 1 / base.service_times[sites, 0]
    anyone = completions / completions.sum() @ base.response_times[sites] @ base.demand_shares
    loads = np.logspace(-3, 3, 13)
    found = [EVALUATORS[evaluator](base.with_offered_load(load, units), sites) for load in loads]
    gaps_light = [abs(e.mean_response - nearest) for e in found[:3]]
    gaps_heavy = [abs(e.mean_response - anyone) for e in found[-3:]]
    spread = base.response_times.max()
    assert gaps_light[0] <= 2e-3 * units * spread
    assert gaps_heavy[-1] <= 5e-3 * spread
    if units > 1:
        assert (gaps_light, gaps_heavy) == (sorted(gaps_light), sorted(gaps_heavy, reverse=True))
    assert all(0 < u < 1 for e in found for u in e.utilizations)
    assert found[-1].utilizations.min() > 0.99
    assert found[-1].dispatch_fractions @ base.demand_shares == pytest.approx(completions / completions.sum(), abs=5e-3)


# -- the exact model against its chain, state by state --------------------------------------------------------


def chain(city, sites, capacity):
    """Solve Larson's (1974) chain from its definition: states are (busy units, calls waiting).

    Returns utilisations (p,), shares (p, M), blocking or queueing probability and mean wait (min). Unit i serves at
    rate 1 / s_i wherever it is sent; ties go to the lower site index, twins standing together.
    """
    p, rates, mu = len(sites), city.arrival_rates / 60, 1 / city.service_times[sites, 0]
    key = (city.response_times if city.preference is None else city.preference)[sites]
    twins = city.twin_groups[sites]
    order = [sorted(range(p), key=lambda i, j=j: (key[i, j], twins[i], i)) for j in range(city.n_atoms)]
    full = (True,) * p
    states = [(busy, 0) for busy in product([False, True], repeat=p)]
    if capacity == "queue":  # cut off where the rest weighs less than 1e-17
        longest = int(np.ceil(np.log(1e-17) / np.log(rates.sum() / mu.sum())))
        states += [(full, n) for n in range(1, longest + 1)]
    number = {state: k for k, state in enumerate(states)}
    G = np.zeros((len(states), len(states)))
    for (busy, waiting), k in number.items():
        for j, rate in enumerate(rates):
            free = [i for i in order[j] if not busy[i]]
            after = (tuple(b or i == free[0] for i, b in enumerate(busy)), 0) if free else (busy, waiting + 1)
            if after in number:
                G[k, number[after]] += rate
        for i in range(p):
            if busy[i]:
                after = (busy, waiting - 1) if waiting else ((*busy[:i], False, *busy[i + 1 :]), 0)
                G[k, number[after]] += mu[i]
    G -= np.diag(G.sum(axis=1))
    G[:, 0] = 1  # in place of one redundant balance equation: probabilities sum to one
    P = np.linalg.solve(G.T, np.eye(len(states))[0])
    shares, utilizations, blocked, queued = np.zeros((p, city.n_atoms)), np.zeros(p), 0.0, 0.0
    for (busy, waiting), probability in zip(states, P, strict=True):
        utilizations += probability * np.array(busy)
        queued += probability * waiting
        if busy == full:
            blocked += probability
            if capacity == "queue":  # the unit that will serve it is the one that happens to become free
                shares += probability * (mu / mu.sum())[:, None]
        else:
            for j in range(city.n_atoms):
                shares[next(i for i in order[j] if not busy[i]), j] += probability
    return utilizations, shares / shares.sum(axis=0), blocked, queued / rates.sum()


def average_twins(values, city, sites):
    twins = city.twin_groups[sites]
    return np.array([values[twins == twin].mean(axis=0) for twin in twins])


@settings(examples, max_examples=40)
@given(cases(services=("one", "site")))
def test_exact_solves_the_chain(case):
    city, sites, _, capacity = case
    utilizations, shares, blocked, wait = chain(city, sites, capacity)
    e = exact_hypercube(city, sites, capacity=capacity)
    np.testing.assert_allclose(e.utilizations, average_twins(utilizations, city, sites), atol=1e-10)
    np.testing.assert_allclose(e.dispatch_fractions, average_twins(shares, city, sites), atol=1e-10)
    mean = city.demand_shares @ (shares * city.response_times[sites]).sum(axis=0)
    assert e.mean_response == pytest.approx(mean, rel=1e-10)
    assert e.loss_probability + e.queue_probability == pytest.approx(blocked, rel=1e-9)
    assert e.mean_wait == pytest.approx(wait if capacity == "queue" else 0, rel=1e-9, abs=1e-12)


@examples
@given(cases(least_units=2))
def test_the_approximation_is_near_the_exact_model(case):
    """Few units in random cities: both agree to a few per cent, or one of them is wrong."""
    city, sites, _, capacity = case
    exact, close = (EVALUATORS[name](city, sites, capacity=capacity) for name in ("exact", "approximate"))
    spread = np.ptp(city.response_times)
    assert abs(exact.mean_response - close.mean_response) <= 0.05 * max(spread, 1)
    assert exact.utilizations.mean() == pytest.approx(close.utilizations.mean(), rel=0.05)
