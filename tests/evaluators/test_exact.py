"""Exact hypercube against closed forms (Erlang B and C, two units by hand) and its own limits."""

import itertools
import time
import timeit

import numpy as np
import pytest
from drawn import erlang_b, erlang_c
from refusals import refused
from scipy.optimize import brentq

import emsopt as eo
from emsopt.evaluators import approximate_hypercube, exact_hypercube, p_median


def interchangeable(p, load, *, colocated):
    """Build a city whose units are interchangeable: at one site, or each atom's order a rotation of the next one's."""
    if colocated:
        return eo.City([1.0], [[3.0]], 1.0, 30.0).with_offered_load(load / p, p), [0] * p
    ranks = (np.arange(p)[:, None] - np.arange(p)[None, :]) % p
    city = eo.City(np.ones(p), np.ones((p, p)), 1.0, 30.0, preference=ranks)
    return city.with_offered_load(load / p, p), np.arange(p)


@pytest.mark.parametrize("model", [exact_hypercube, approximate_hypercube])
@pytest.mark.parametrize("colocated", [True, False])
@pytest.mark.parametrize("p", [1, 2, 9])
@pytest.mark.parametrize("rho", [0.001, 0.3, 0.999, 1000.0])
def test_interchangeable_units_are_an_erlang_system(p, rho, colocated, model):
    """With lost calls at any load, with a queue below one. The correction factor is exact for them (Larson 1975)."""
    city, sites = interchangeable(p, p * rho, colocated=colocated)
    e, blocked = model(city, sites), erlang_b(p, p * rho)
    assert e.loss_probability == pytest.approx(blocked, abs=1e-10, rel=1e-10)
    assert e.utilizations == pytest.approx(np.full(p, rho * (1 - blocked)), abs=1e-9)
    assert (e.queue_probability, e.mean_wait) == (0, 0)
    if rho < 1:
        e, wait = model(city, sites, capacity="queue"), erlang_c(p, p * rho)
        assert e.queue_probability == pytest.approx(wait, abs=1e-10, rel=1e-10)
        assert e.mean_wait == pytest.approx(wait * 30 / (p - p * rho), rel=1e-9)  # C / (p mu - lambda)
        assert (e.utilizations, e.loss_probability) == (pytest.approx(np.full(p, rho), abs=1e-9), 0)


@pytest.mark.parametrize(("first", "second"), [(15, 15), (140, 60)])
def test_states_of_colocated_units_are_lumped(first, second):
    """30 units at two stations are 16 x 16 states, not 2^30, and the Erlang loss formula still holds."""
    p = first + second
    city = eo.City([4 * p / 3, 2 * p / 3], [[2.0, 7.0], [9.0, 3.0]], 0.0, 30.0)
    e = exact_hypercube(city, [0] * first + [1] * second)
    assert e.loss_probability == pytest.approx(erlang_b(p, p), rel=1e-10)


@pytest.mark.parametrize(("capacity", "load"), [("loss", 0.6), ("queue", 0.6), ("loss", 0.02)])
def test_blocks_agree_with_the_sweeps_of_small_fleets(capacity, load, monkeypatch):
    """18 units at 15 stations, 3 of which hold two: 110,592 states. Under light load most are all but impossible."""
    rng = np.random.default_rng(1)
    city = eo.datasets.grid_city(n_sites=15, units=18, load=load, rng=1).replace(service_times=rng.uniform(25, 50, 15))
    sites = np.r_[np.arange(15), 12, 13, 14]
    small = exact_hypercube(city, sites, capacity=capacity)
    monkeypatch.setattr("emsopt.evaluators.exact.STATES_FOR_BLOCKS", 1)
    large = exact_hypercube(city, sites, capacity=capacity)
    assert large.residual < 1e-11
    assert large.utilizations == pytest.approx(small.utilizations, abs=1e-10)
    assert large.dispatch_fractions == pytest.approx(small.dispatch_fractions, abs=1e-10)
    assert large.mean_wait == pytest.approx(small.mean_wait, abs=1e-10)


def phases(city, k):
    """Return the states, loss and mean response of two units whose service takes k equal exponential phases.

    ``city`` has two atoms, each served from its own site first; the same mean service time at any k.
    """
    states = list(itertools.product(range(k + 1), repeat=2))  # phases left of each unit
    rates, service = np.zeros((len(states), len(states))), city.service_times[:, 0] / 60
    for s, left in enumerate(states):
        for atom, rate in enumerate(city.arrival_rates):
            free = [unit for unit in (atom, 1 - atom) if left[unit] == 0]
            for unit in free[:1]:
                rates[s, states.index(tuple(k if u == unit else left[u] for u in (0, 1)))] += rate
        for unit in (0, 1):
            if left[unit]:
                rates[s, states.index(tuple(left[u] - (u == unit) for u in (0, 1)))] += k / service[unit]
    balance = np.vstack([(rates - np.diag(rates.sum(axis=1))).T, np.ones(len(states))])
    chance = np.linalg.lstsq(balance, np.r_[np.zeros(len(states)), 1.0], rcond=None)[0]
    busy = np.array(states) > 0
    lost, minutes = chance[busy.all(axis=1)].sum(), 0.0
    for atom, share in enumerate(city.demand_shares):
        own, other = chance[~busy[:, atom]].sum(), chance[busy[:, atom] & ~busy[:, 1 - atom]].sum()
        minutes += share * (own * city.response_times[atom, atom] + other * city.response_times[1 - atom, atom])
    return len(states), lost, minutes / (1 - lost)


def test_the_balance_equations_need_exponential_times(claim):
    """Appendix B.1: with two phases of the same mean other values follow, and the chain has 3^p states in place of 2^p."""
    city = eo.City([2.0, 1.0], [[3.0, 8.0], [9.0, 2.0]], turnout_times=1.5, service_times=[20.0, 60.0])
    e = exact_hypercube(city, [0, 1])
    states, lost, response = phases(city, 1)
    assert (states, lost, response) == (4, pytest.approx(e.loss_probability), pytest.approx(e.mean_response))
    states, lost, response = phases(city, 2)
    claim("server locations", "Section B.1", e.mean_response, response, e.loss_probability, lost, states)


def test_what_holds_with_a_queue():
    """Theorem 2 at any load that a queue can serve, and Theorem 4: the p-median deployment is best at light load."""
    city = eo.datasets.grid_city(n_sites=8, units=4, load=1.0, rng=0)
    median = eo.evaluators.p_median(city, 4)
    for load, evaluator in itertools.product((0.001, 0.3, 0.9), ("approximate", "exact")):
        busy = city.with_offered_load(load, 4)
        found = eo.evaluators.evaluate_all(busy, 4, evaluator=evaluator, capacity="queue")
        assert found.values.min() >= median.objective
        at_best = city.response_times[found.best_sites].min(axis=0) @ city.demand_shares
        assert load > 0.001 or at_best == pytest.approx(median.objective)
    with pytest.raises(eo.errors.UnstableQueueError):  # Theorem 5 has the load grow without bound
        exact_hypercube(city.with_offered_load(1.2, 4), np.arange(4), capacity="queue")


def at_utilization(city, sites, wanted):
    """Return the exact evaluation at the load at which units are busy a share ``wanted`` of the time on average."""
    p = len(sites)
    load = brentq(lambda a: exact_hypercube(city.with_offered_load(a, p), sites).utilizations.mean() - wanted, 0.1, 2)
    return exact_hypercube(city.with_offered_load(load, p), sites)


def test_example_6_is_optimistic_because_units_are_busy_together():
    """ "Optimizing Server Locations in Spatial Queues": 1 - 0.3² = 91 %; two units of a hypercube have 88 %."""
    two = eo.City([2.0, 1.0], [[3.0, 8.0], [9.0, 2.0]], turnout_times=1.5, service_times=40.0)
    e = at_utilization(two, [0, 1], 0.3)
    assert (round(1 - 0.3**2, 2), 1 - e.utilizations.prod()) == (0.91, pytest.approx(0.911, abs=5e-4))
    assert 1 - e.loss_probability == pytest.approx(0.878, abs=5e-4)


def test_share_of_calls_answered_by_the_third_choice_or_later():
    """Example 6, nine units in St. Paul at 30 %: 13 % of the calls, against b² = 9 % with independent units."""
    city = eo.datasets.load_st_paul()
    e = at_utilization(city, p_median(city, 9).sites, 0.3)
    order = np.argsort(e.response_times, axis=0, kind="stable")
    by_rank = np.take_along_axis(e.dispatch_fractions, order, axis=0) @ city.demand_shares
    assert by_rank[2:].sum() == pytest.approx(0.128, abs=1e-3)


def test_balance_equations_as_printed_have_no_solution():
    """(21) has arrivals out of every state; with lost calls none leave the state in which all units are busy."""
    a, b, mu = 2.0, 1.0, 1.5  # two units, as in notebook 01
    into = np.array([[0, mu, mu, 0], [a, 0, 0, mu], [b, 0, 0, mu], [0, a + b, a + b, 0]])
    busy = np.array([0, 1, 1, 2])
    printed = into - np.diag(a + b + busy * mu)
    assert np.linalg.matrix_rank(printed) == 4  # only P = 0 solves it
    right = into - np.diag(np.where(busy == 2, 0, a + b) + busy * mu)
    assert np.linalg.matrix_rank(right) == 3
    assert right.T @ np.ones(4) == pytest.approx(0)  # with rates from b to b' every state would be as likely


def test_cpu_time_of_both_models_by_number_of_units():
    """Appendix B has 0.01 s and hours at 30 units: the exact model takes fewer units, and its time grows with each."""

    def seconds(model, units):
        city = eo.datasets.grid_city(units, units, 0.5, rng=0)
        return min(timeit.repeat(lambda: model(city, range(units)), number=1, repeat=3, timer=time.process_time))

    assert seconds(approximate_hypercube, 30) < 0.01  # measured: 0.0003
    exact = {units: seconds(exact_hypercube, units) for units in (14, 16, 18)}
    assert exact[16] > 10 * seconds(approximate_hypercube, 16)
    assert exact[18] > 4 * exact[14]  # measured: above 16
    assert 0.02 < exact[18] * 2**12 / 3600 < 20  # hours for 30 units, if each doubles the time; measured: 0.4
    refused(r"at most 2\^30 states", exact_hypercube, eo.datasets.grid_city(32, 32, 0.5, rng=0), range(32))
