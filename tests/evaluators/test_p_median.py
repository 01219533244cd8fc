"""Exact p-median and its bounds, against brute force, a general solver and the papers."""

import importlib
import signal
import threading
from itertools import combinations

import numpy as np
import pytest
import scipy.sparse as sp
from drawn import plane_city, tied_city
from refusals import refused
from scipy.optimize import milp

import emsopt as eo
from emsopt.evaluators import bounds, evaluate, evaluate_all, p_median
from emsopt.evaluators._interchange import interchange, listing_of, lists_of, matrix_costs, swap_changes

solver = importlib.import_module("emsopt.evaluators._p_median")


def make_city(times, rates, turnout=0.0):
    return eo.City(rates, np.asarray(times, float), turnout, 30.0)


def scattered_city(n_sites, n_atoms, rng):
    """Times without any geometry: the relaxation leaves a gap of several per cent."""
    rng = np.random.default_rng(rng)
    return make_city(rng.uniform(1, 20, (n_sites, n_atoms)), rng.uniform(size=n_atoms))


def brute_force(city, units, pinned=(), closed=()):
    """Least objective over every set of listed sites."""
    free = [k for k in range(city.n_sites) if k not in pinned and k not in closed]
    return min(
        city.demand_shares @ city.response_times[list(pinned) + list(rest)].min(axis=0)
        for rest in combinations(free, units - len(pinned))
    )


def general_solver(city, units):
    """(4a)-(4f) as it stands, by HiGHS."""
    n, m = city.response_times.shape
    costs = np.r_[np.zeros(n), (city.response_times * city.demand_shares).ravel()]
    placed = np.r_[np.ones(n), np.zeros(n * m)]
    served = sp.hstack([sp.csr_array((m, n)), sp.kron(np.ones((1, n)), sp.eye_array(m))])
    staffed = sp.hstack([-sp.kron(sp.eye_array(n), np.ones((m, 1))), sp.eye_array(n * m)])
    constraints = [(served, 1, 1), (placed, units, units), (staffed, -np.inf, 0)]
    result = milp(costs, integrality=placed, bounds=(0, 1), constraints=constraints, options={"mip_rel_gap": 0.0})
    assert result.status == 0
    return result.fun


@pytest.mark.parametrize("make", [plane_city, scattered_city, tied_city])
def test_optimal_by_brute_force(make):
    """Random small cities, every fleet size, with and without pinned and closed sites."""
    rng = np.random.default_rng(0)
    for seed in range(60):
        n, m = rng.integers(1, 9), rng.integers(1, 12)
        city = make(n, m, seed)
        units = int(rng.integers(1, n + 1))
        order = rng.permutation(n)
        pinned = order[: rng.integers(0, units + 1)] if seed % 2 else order[:0]
        closed = order[units + rng.integers(0, n - units + 1) :] if seed % 3 else order[:0]
        space = eo.DeploymentSpace(city, units, pinned=pinned, closed=closed)
        found = p_median(city, space)
        assert found.objective == pytest.approx(brute_force(city, units, pinned, closed), rel=1e-12, abs=1e-12)
        assert (found.gap, found.lower_bound) == (0, found.objective)
        assert found.sites in space
        assert np.isin(found.assignment, found.sites).all()
        nearest = city.response_times[found.sites].min(axis=0)
        np.testing.assert_array_equal(city.response_times[found.assignment, np.arange(m)], nearest)


@pytest.mark.parametrize("make", [plane_city, scattered_city])
@pytest.mark.parametrize(("n", "m", "units"), [(30, 40, 3), (40, 30, 8), (35, 60, 15)])
def test_optimal_by_a_general_solver(make, n, m, units):
    city = make(n, m, 0)
    found = p_median(city, units)
    assert found.objective == pytest.approx(general_solver(city, units), rel=1e-7)
    tiny = make_city(city.travel_times * 1e-6, city.arrival_rates * 1e-6)
    np.testing.assert_array_equal(p_median(tiny, units).sites, found.sites)


@pytest.fixture
def no_heuristic(monkeypatch):
    """Search without interchange, which finds the optimum of most small cities."""
    for method in ("improve", "variable_neighbourhood_search"):
        monkeypatch.setattr(solver._MedianSearch, method, lambda self, *given: None)


@pytest.mark.parametrize("seed", [94, 170, 199])
def test_branching_finds_the_optimum_without_the_heuristic(seed, no_heuristic):
    """Also on a plane, where a branch moves few prices; the general solver knows nothing of prices."""
    city = scattered_city(18, 60, seed)
    choices = np.array(list(combinations(range(18), 5)))
    optimum = (city.response_times[choices].min(axis=1) @ city.demand_shares).min()
    assert p_median(city, 5, time_limit=1e-9).objective > optimum + 1e-6  # else the seeds test nothing
    assert p_median(city, 5).objective == pytest.approx(optimum, rel=1e-12)
    city = plane_city(40, 60, {94: 18, 170: 27, 199: 49}[seed])
    assert p_median(city, 12).objective == pytest.approx(general_solver(city, 12), rel=1e-7)


def test_twins_places_alike_and_colocation():
    stations = plane_city(5, 20, 5)
    listed = [0, 1, 2, 0, 3, 4, 2]
    city = make_city(stations.travel_times[listed], stations.arrival_rates, turnout=1.75)
    for units in range(1, 8):
        found = p_median(city, units)
        assert found.objective == pytest.approx(p_median(stations, min(units, 5)).objective, rel=1e-12)
        assert len(set(city.twin_groups[found.sites])) == min(units, 5)  # more units than stations
        assert len(set(found.sites)) == units
        assert units > 5 or not {3, 6} & set(found.sites.tolist())
    assert {0, 3} <= set(p_median(city, eo.DeploymentSpace(city, 3, pinned=(0, 3))).sites.tolist())
    both = p_median(city, eo.DeploymentSpace(city, 2, pinned=(0, 3))).objective
    assert both == pytest.approx(stations.demand_shares @ stations.response_times[0])
    assert 3 in p_median(city, eo.DeploymentSpace(city, 5, closed=(0,))).sites
    # They are no twins, but serve alike here: a second one helps nobody.
    city = plane_city(6, 15, 6)
    doubled = eo.City(city.arrival_rates, np.repeat(city.travel_times, 2, axis=0), 1.75, np.tile([20.0, 40.0], 6))
    for units in (1, 3, 6, 8):
        found = p_median(doubled, units)
        assert found.objective == pytest.approx(p_median(city, min(units, 6)).objective, rel=1e-12)
        assert (len(set(found.sites // 2)), len(set(found.sites))) == (min(units, 6), units)
    city = plane_city(4, 10, 7)
    assert p_median(city, eo.DeploymentSpace(city, 3, colocation=True)).objective == p_median(city, 3).objective
    assert set(p_median(city, eo.DeploymentSpace(city, 7, colocation=True)).sites) == {0, 1, 2, 3}
    pinned = p_median(city, eo.DeploymentSpace(city, 3, colocation=True, pinned=(2, 2)))
    assert (list(pinned.sites).count(2), pinned.objective) == (2, pytest.approx(brute_force(city, 2, pinned=(2,))))


@pytest.mark.parametrize("evaluator", ["approximate", "exact"])
@pytest.mark.parametrize("seed", range(4))
def test_bounds_enclose_the_optimum(seed, evaluator):
    """Theorem 2 and Lemma 3, against every deployment."""
    city = plane_city(9, 20, seed).with_offered_load((0.01, 0.3, 0.7, 3.0)[seed], 4)
    b = bounds(city, 4, evaluator=evaluator)
    optimum = evaluate_all(city, 4, evaluator=evaluator).values.min()
    assert b.lower <= optimum <= b.upper + 1e-12
    assert b.lower == p_median(city, 4).objective
    assert b.upper == pytest.approx(evaluate(city, b.sites, evaluator).mean_response, rel=1e-12)


def test_bounds_meet_when_calls_are_rare():
    """Theorem 4: at a vanishing load the p-median deployment is as good as its bound says."""
    city = plane_city(9, 20, 0)
    b = bounds(city.with_offered_load(1e-7, 4), 4, evaluator="exact")
    assert b.upper == pytest.approx(b.lower, abs=1e-5)
    assert 3 in bounds(city, eo.DeploymentSpace(city, 4, pinned=(3,), closed=(1, 2))).sites


def test_same_optimum_when_memory_forces_a_depth_first_search(monkeypatch, no_heuristic):
    city = scattered_city(80, 80, 28)
    expected, stopped = p_median(city, 8), p_median(city, 8, time_limit=1e-9)
    assert stopped.lower_bound < expected.objective < stopped.objective  # so that the search has something to find
    assert stopped.gap == pytest.approx(1 - stopped.lower_bound / stopped.objective)
    monkeypatch.setattr(solver, "QUEUE_BYTES", 0)
    found = p_median(city, 8)
    np.testing.assert_array_equal(found.sites, expected.sites)
    assert found.gap == 0
    assert p_median(city, 8, time_limit=1e-9).lower_bound < expected.objective


@pytest.mark.parametrize("make", [plane_city, scattered_city, tied_city])
def test_short_lists_of_nearest_sites_give_the_same_optimum(make, monkeypatch):
    """Lists grow where the bound or the best deployment needs more sites."""
    cities = [(make(n, 60, n), units) for n in (20, 30) for units in (3, 6)]
    expected = [p_median(*case).objective for case in cities]
    monkeypatch.setattr(solver, "SMALL_MATRIX", 0)
    monkeypatch.setattr(solver, "LIST_LENGTH", 1)
    for case, optimum in zip(cities, expected, strict=True):
        found = p_median(*case)
        assert (found.objective, found.gap) == (pytest.approx(optimum, rel=1e-12), 0)


@pytest.mark.parametrize("seed", [6, 7, 8, 9])
def test_whole_numbers_are_proven_to_the_next_whole_number(seed, no_heuristic):
    """Stopped early, the bound is a value that the objective can have: here the optimum, which was not found."""
    rng = np.random.default_rng(seed)
    city = make_city(rng.integers(1, 4, (12, 15)), rng.integers(1, 4, 15))
    found = p_median(city, 4, time_limit=1e-9)
    assert found.lower_bound == pytest.approx(brute_force(city, 4), rel=1e-12)
    assert found.lower_bound < found.objective - 1e-6


@pytest.mark.parametrize("make", [plane_city, scattered_city, tied_city])
def test_values_of_swaps_are_kept_up_to_date(make):
    """The interchange ends where no swap helps, by values counted from scratch, however many swaps it took."""
    city, members, all_sites = make(40, 150, 1), np.arange(6), np.ones(40, bool)
    costs = matrix_costs(city.response_times, city.demand_shares)
    near = lists_of(costs, np.arange(150), 40)
    swaps, ended = interchange(near, listing_of(near, 40), members, ~all_sites, all_sites, 1000)
    assert ended
    assert swaps > 3
    changes, before = swap_changes(near, members, 40), costs.of(members).min(axis=0).sum()
    for k, enters in np.ndindex(changes.shape):
        if enters not in members:
            after = costs.of(np.r_[np.delete(members, k), enters]).min(axis=0).sum()
            assert changes[k, enters] == pytest.approx(after - before, abs=1e-12)
            assert changes[k, enters] > -1e-10 * near.cost.sum()


def test_ctrl_c_stops_a_search_but_no_compiled_function(ctrl_c):
    threading.Timer(0.1, signal.raise_signal, [signal.SIGINT]).start()
    with pytest.raises(KeyboardInterrupt):
        p_median(scattered_city(200, 200, 0), 20, time_limit=60)  # minutes of work
    # Raised inside one, it could crash Python. Afterwards, and in other threads, Ctrl-C is what it was.
    after = []

    @solver.delay_ctrl_c()
    def compiled():
        signal.raise_signal(signal.SIGINT)
        after.append("the next statement")

    with pytest.raises(KeyboardInterrupt):
        compiled()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    solved = threading.Thread(target=lambda: after.append(p_median(scattered_city(10, 10, 0), 3)))
    solved.start()
    solved.join()
    assert len(after) == 2


def test_bad_input_is_refused():
    for units, limit, message in ((0, 9, "units"), (6, 9, "do not fit"), (2, 0, "time_limit")):
        refused(message, p_median, plane_city(5, 8, 0), units, time_limit=limit)
