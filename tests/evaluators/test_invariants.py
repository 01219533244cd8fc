"""What any hypercube evaluation must satisfy, and the exact model against a chain written out state by state."""

from itertools import product

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import emsopt as eo
from emsopt.evaluators import approximate_hypercube, exact_hypercube

# Service times here differ at random, also by more than the approximate model is good for.
pytestmark = pytest.mark.filterwarnings("ignore::emsopt.errors.AccuracyWarning")

EVALUATORS = {"approximate": approximate_hypercube, "exact": exact_hypercube}

examples = settings(max_examples=25, derandomize=True, suppress_health_check=list(HealthCheck))


def make_city(rng, n_sites, n_atoms, service="one", *, ties=False, preference=False):
    """Return a random city; ``service`` says what service times depend on."""
    travel = rng.integers(1, 5, (n_sites, n_atoms)) if ties else rng.uniform(1, 20, (n_sites, n_atoms))
    by_site, by_pair = rng.uniform(20, 60, n_sites), rng.uniform(30, 50, (n_sites, n_atoms))
    minutes = {"one": 40.0, "site": by_site, "site and atom": by_pair}[service]
    rates, turnout = rng.uniform(0.1, 2, n_atoms), 2.0 if ties else rng.uniform(0.5, 3, n_sites)
    order = rng.permuted(np.tile(np.arange(n_sites), (n_atoms, 1)), axis=1).T if preference else None
    return eo.City(rates, travel, turnout, minutes, preference=order)


@st.composite
def cases(draw, services=("one", "site", "site and atom")):
    """Draw a city at some load, a deployment, and how to evaluate it."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_sites, n_atoms, units = draw(st.integers(2, 5)), draw(st.integers(1, 5)), draw(st.integers(1, 5))
    ties, preference = draw(st.booleans()), draw(st.booleans())
    city = make_city(rng, n_sites, n_atoms, draw(st.sampled_from(services)), ties=ties, preference=preference)
    capacity = draw(st.sampled_from(["loss", "queue"]))
    load = draw(st.floats(0.02, 3 if capacity == "loss" else 0.6))
    sites = rng.choice(n_sites, units)
    return city.with_offered_load(load, units), sites, draw(st.sampled_from(list(EVALUATORS))), capacity


@examples
@given(cases())
def test_shares_utilisations_and_response_stay_within_bounds(case):
    city, sites, evaluator, capacity = case
    e = EVALUATORS[evaluator](city, sites, capacity=capacity)
    assert e.dispatch_fractions.min() >= 0
    np.testing.assert_allclose(e.dispatch_fractions.sum(axis=0), 1, rtol=1e-12)
    assert 0 < e.utilizations.min() <= e.utilizations.max() < 1
    response = city.response_times[sites]
    nearest, furthest = city.demand_shares @ response.min(axis=0), city.demand_shares @ response.max(axis=0)
    assert nearest - 1e-9 <= e.mean_response <= furthest + 1e-9
    assert 0 <= e.loss_probability < 1
    assert 0 <= e.queue_probability < 1
    assert (e.loss_probability == 0, e.mean_wait > 0) == (capacity == "queue", capacity == "queue")
    assert e.residual < 1e-8


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
def test_two_units_at_one_site_are_a_unit_at_each_of_two_twin_sites(case):
    city, sites, evaluator, capacity = case
    p = len(sites)
    fields = ["travel_times", "turnout_times", "service_times"] + ["preference"] * (city.preference is not None)
    doubled = city.replace(**{name: np.repeat(getattr(city, name), p, axis=0) for name in fields}, site_names=None)
    e = EVALUATORS[evaluator](city, sites, capacity=capacity)
    twins = EVALUATORS[evaluator](doubled, sites * p + np.arange(p), capacity=capacity)
    np.testing.assert_allclose(twins.utilizations, e.utilizations, rtol=1e-8)
    np.testing.assert_allclose(twins.dispatch_fractions, e.dispatch_fractions, atol=1e-9)
    for site in set(sites):  # units at one site share their work equally
        assert np.ptp(e.utilizations[sites == site]) < 1e-12


@pytest.mark.parametrize("evaluator", EVALUATORS)
@pytest.mark.parametrize("service", ["one", "site", "site and atom"])
@pytest.mark.parametrize("units", [1, 9])
def test_light_load_sends_the_nearest_unit_and_heavy_load_whichever_is_free(evaluator, service, units):
    """Theorems 4 and 5: loads from 1e-3 to 1e3 converge to the p-median value and the completion shares."""
    rng = np.random.default_rng(units)
    base = make_city(rng, 10, 6, service)
    sites = rng.choice(10, units, replace=False)
    times = base.response_times[sites]
    nearest = base.demand_shares @ times.min(axis=0)
    completions = 1 / base.service_times[sites, 0]
    if service == "site and atom":  # each unit completes calls at one over its mean over all calls
        completions = 1 / (base.service_times[sites] @ base.demand_shares)
    anyone = completions / completions.sum() @ times @ base.demand_shares
    found = [EVALUATORS[evaluator](base.with_offered_load(load, units), sites) for load in np.logspace(-3, 3, 13)]
    light = [abs(e.mean_response - nearest) for e in found[:3]]
    heavy = [abs(e.mean_response - anyone) for e in found[-3:]]
    assert light[0] <= 2e-3 * units * base.response_times.max()
    assert heavy[-1] <= 5e-3 * base.response_times.max()
    if units > 1:
        assert (light, heavy) == (sorted(light), sorted(heavy, reverse=True))
    assert found[-1].utilizations.min() > 0.99
    assert found[-1].dispatch_fractions @ base.demand_shares == pytest.approx(completions / completions.sum(), abs=5e-3)


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


@settings(examples, max_examples=40)
@given(cases(services=("one", "site")))
def test_exact_solves_the_chain(case):
    city, sites, _, capacity = case
    utilizations, shares, blocked, wait = chain(city, sites, capacity)
    e, twins = exact_hypercube(city, sites, capacity=capacity), city.twin_groups[sites]
    shared = (twins[:, None] == twins) / (twins[:, None] == twins).sum(axis=1)[:, None]  # equally among twins
    np.testing.assert_allclose(e.utilizations, shared @ utilizations, atol=1e-10)
    np.testing.assert_allclose(e.dispatch_fractions, shared @ shares, atol=1e-10)
    mean = city.demand_shares @ (shares * city.response_times[sites]).sum(axis=0)
    assert e.mean_response == pytest.approx(mean, rel=1e-10)
    assert e.loss_probability + e.queue_probability == pytest.approx(blocked, rel=1e-9)
    assert e.mean_wait == pytest.approx(wait if capacity == "queue" else 0, rel=1e-9, abs=1e-12)
