"""GP-pM and GP-zero: Algorithms 3 and 4 step by step, feasibility, and the optimum of St. Paul."""

import itertools
import os
import subprocess
import sys

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

import emsopt as eo
from emsopt.optimizers.deployments.gp_pm import EDGE, GPpM, GPzero, log_expected_improvement


def small_city(sites=9, atoms=14, seed=0):
    rng = np.random.default_rng(seed)
    return eo.City(rng.random(atoms) + 0.1, rng.uniform(3, 15, (sites, atoms)), turnout_times=1, service_times=30)


def steps(optimizer, objective, n):
    for _ in range(n):
        sites = optimizer.ask()
        optimizer.tell(sites, objective(sites))
    return optimizer


@pytest.fixture(scope="module")
def st_paul():
    city = eo.datasets.load_st_paul()
    best = eo.evaluators.evaluate_all(city, 9, evaluator="approximate").values.min()
    return city, best


@pytest.mark.parametrize("seed", [200, 201, 202])
def test_finds_the_optimum_of_st_paul(st_paul, seed):
    """Section 7.2: the optimum by enumeration, in value, within 100 evaluations."""
    city, best = st_paul
    objective = eo.Objective(city, 9, "approximate")
    optimizer = GPpM(objective, rng=seed)
    while optimizer.best[1] > best + 1e-7 and len(optimizer.values) < 100:
        steps(optimizer, objective, 1)
    assert optimizer.best[1] == pytest.approx(best, abs=1e-7)


@pytest.mark.skipif("EMSOPT_DATA" not in os.environ, reason="needs the published St. Paul, found by EMSOPT_DATA")
def test_finds_the_optimum_of_published_st_paul():
    city = eo.datasets.load_st_paul("published")
    best = eo.evaluators.evaluate_all(city, 9, evaluator="approximate").values.min()
    objective = eo.Objective(city, 9, "approximate")
    optimizer = GPpM(objective, rng=200)
    while optimizer.best[1] > best + 1e-7 and len(optimizer.values) < 100:
        steps(optimizer, objective, 1)
    assert optimizer.best[1] == pytest.approx(best, abs=1e-7)


def test_prior_mean_is_the_p_median_objective():
    """(4a) by hand, and its minimum is the exact p-median's; GP-zero has none."""
    city = small_city()
    objective = eo.Objective(city, 3)
    optimizer = GPpM(objective, rng=0)
    values = {}
    for sites in itertools.combinations(range(9), 3):
        values[sites] = optimizer.prior_mean(sites)
        by_hand = city.demand_shares @ city.response_times[list(sites)].min(axis=0)
        assert values[sites] == pytest.approx(by_hand, rel=1e-12)
    assert min(values.values()) == pytest.approx(eo.evaluators.p_median(city, 3).objective, rel=1e-9)
    assert GPzero(objective).prior_mean([0, 1, 2]) == 0


def test_twins_and_colocated_units_share_one_prior_and_one_name(st_paul):
    """St. Paul's sites 0 and 5 are one station."""
    city, _ = st_paul
    optimizer = GPpM(eo.Objective(city, eo.DeploymentSpace(city, 3, colocation=True)), rng=0)
    assert optimizer.prior_mean([0, 3, 4]) == optimizer.prior_mean([5, 3, 4])
    assert optimizer.prior_mean([3, 3, 4]) == pytest.approx(
        city.demand_shares @ city.response_times[[3, 4]].min(axis=0), rel=1e-12
    )


@pytest.mark.parametrize("method", [GPpM, GPzero])
@pytest.mark.parametrize(
    "options", [{}, {"pinned": [2], "closed": [4]}, {"colocation": 2, "pinned": [1, 1]}, {"colocation": True}]
)
def test_proposals_are_allowed_and_never_repeated_until_the_space_is_used_up(method, options):
    city = small_city(6)
    objective = eo.Objective(city, eo.DeploymentSpace(city, 3, **options), "approximate")
    optimizer = method(objective, rng=1, initial=4)
    steps(optimizer, objective, min(objective.space.count, 25))
    asked = [tuple(sites) for sites in optimizer.sites]
    assert len(set(asked)) == len(asked)
    assert all(sites in objective.space for sites in optimizer.sites)
    assert optimizer.exhausted == (objective.space.count <= 25)


def test_batch_is_of_different_deployments_and_leaves_no_trace(st_paul):
    city, _ = st_paul
    objective = eo.Objective(city, 9, "approximate")
    optimizer = steps(GPpM(objective, rng=3), objective, 21)
    process = optimizer.process
    batch = optimizer.ask(4)
    assert len({tuple(sites) for sites in batch} | {tuple(sites) for sites in optimizer.sites}) == 25
    assert optimizer.process is process


def test_same_rng_gives_the_same_run(st_paul):
    city, _ = st_paul
    objective = eo.Objective(city, 9, "approximate")
    one, two = (steps(GPpM(objective, rng=4), objective, 24) for _ in range(2))
    np.testing.assert_array_equal(one.sites, two.sites)


def test_region_grows_shrinks_and_restarts_as_in_algorithm_4(st_paul):
    """d = 20; x 1.5 after 3 successes; x 2/3 after 10 failures in a row; below 2 a restart, from 20 again."""
    city, _ = st_paul
    optimizer = GPpM(eo.Objective(city, 9, "approximate"), rng=5)
    for _ in range(20):
        optimizer.tell(optimizer.ask(), 7 + optimizer.rng.random())
    assert (optimizer.edge, optimizer.restarts) == (EDGE, 0)

    def tell(value):
        optimizer.tell(optimizer.ask(), value)
        return optimizer.edge

    assert [tell(v) for v in (6.9, 6.8)] == [20, 20]
    assert tell(6.7) == 20  # grown, but no farther than the whole space: 2 p = 18
    optimizer.edge = 4.0
    assert [tell(v) for v in (6.6, 6.5, 6.4)] == [4, 4, 6]
    assert [tell(7.0) for _ in range(9)] == [6] * 9
    assert tell(6.3) == 6  # a success ends the row of failures
    assert [tell(7.0) for _ in range(10)] == [6] * 9 + [4]
    shrunk = [tell(7.0) for _ in range(20)]
    assert shrunk[9] == pytest.approx(8 / 3)
    assert (shrunk[-1], optimizer.restarts) == (EDGE, 1)  # 16/9 is below 2
    assert optimizer.values[optimizer._optima[0]] == 6.3


def test_centre_follows_the_best_of_the_region_and_nothing_else(st_paul):
    city, _ = st_paul
    optimizer = GPpM(eo.Objective(city, 9, "approximate"), rng=10)
    for _ in range(20):
        optimizer.tell(optimizer.ask(), 7 + optimizer.rng.random())

    def tell(sites, value):
        optimizer.tell(sites, value)
        return np.array_equal(optimizer.centre, np.bincount(city.twin_groups[sites], minlength=14))

    assert tell(optimizer.ask(), 7.5)  # the first of the region, though others were better before
    assert not tell(optimizer.ask(), 7.6)
    assert tell(optimizer.ask(), 7.4)
    optimizer.edge = 2.0
    far = next(
        sites
        for sites in map(optimizer.space.canonical, optimizer.space.sample(50, rng=optimizer.rng))
        if np.abs(np.bincount(city.twin_groups[sites], minlength=14) - optimizer.centre).sum() > 2
    )
    assert not tell(far, 1.0)


def test_proposals_stay_in_the_trust_region(st_paul):
    """(17): at most d apart, two for each relocated unit."""
    city, _ = st_paul
    objective = eo.Objective(city, 9, "approximate")
    optimizer = steps(GPpM(objective, rng=6), objective, 20)
    for edge in (2.0, 4.9):
        optimizer.edge = edge
        counts = np.bincount(city.twin_groups[optimizer.ask()], minlength=14)
        assert np.abs(counts - optimizer.centre).sum() <= edge


def test_centre_has_the_lowest_bound_of_all_its_neighbours():
    """(16), as far as single swaps reach; the surrogate's own formulas with beta = 25."""
    objective = eo.Objective(small_city(), 3, "approximate")
    optimizer = steps(GPpM(objective, rng=7), objective, 20)
    world, constant = optimizer._fit(range(20), None)

    def bound(sites):
        counts = np.bincount(sites, minlength=9)[None]
        mean, variance = world.predict(counts, optimizer.prior_mean(sites) + constant)
        return mean[0] - 5 * np.sqrt(variance[0])

    centre = np.flatnonzero(optimizer.centre)
    lowest = min(bound(sites) for sites in objective.space.neighbours(centre))
    assert bound(centre) <= lowest + 1e-9


def test_surrogate_knows_what_it_was_told_and_is_unsure_elsewhere(st_paul):
    city, _ = st_paul
    objective = eo.Objective(city, 9, "approximate")
    optimizer = steps(GPpM(objective, rng=8), objective, 25)
    told, elsewhere = np.array(optimizer.sites), objective.space.sample(10, rng=9)
    np.testing.assert_allclose(optimizer.predict(told)[0], optimizer.values, atol=0.02)
    assert np.median(optimizer.predict(elsewhere)[1]) > np.median(optimizer.predict(told)[1])


def test_before_the_first_model_it_says_how_many_observations_are_missing(st_paul):
    objective = eo.Objective(st_paul[0], 9, "approximate")
    optimizer = steps(GPpM(objective, rng=8), objective, 13)
    for ask in (optimizer.predict, optimizer.acquisition):
        with pytest.raises(eo.errors.InputError, match=r"20 observations and has 13; tell it 7 more"):
            ask(optimizer.sites)
    steps(optimizer, objective, 7)
    assert optimizer.predict(optimizer.sites)[0].shape == optimizer.acquisition(optimizer.sites).shape == (20,)
    with pytest.raises(eo.errors.InputError, match=r"shape \(K, p\)"):
        optimizer.predict(optimizer.sites[0])
    with pytest.raises(eo.errors.InputError, match="not an allowed deployment"):
        optimizer.acquisition([[0, 1, 2]])


def test_acquisition_is_expected_improvement_over_the_best_told_and_ignores_order_and_twins(st_paul):
    """(18) in closed form; sites 0 and 5 are one station; a deployment asked for changes nothing."""
    city, _ = st_paul
    objective = eo.Objective(city, 9, "approximate")
    optimizer = steps(GPpM(objective, rng=9), objective, 22)
    rows = np.array([[0, 1, 2, 3, 4, 6, 7, 8, 9], [9, 5, 2, 3, 4, 6, 7, 8, 1], [1, 2, 3, 4, 6, 8, 10, 11, 12]])
    mean, deviation = optimizer.predict(rows)
    z = (min(optimizer.values) - mean) / deviation
    got = optimizer.acquisition(rows)
    np.testing.assert_allclose(np.exp(got), deviation * (z * norm.cdf(z) + norm.pdf(z)), rtol=1e-6)
    assert mean[0] == mean[1]
    assert got[0] == got[1] != got[2]
    optimizer.ask(2)
    np.testing.assert_array_equal(optimizer.acquisition(rows), got)


def test_noisy_objectives_may_be_asked_again_and_do_not_break_the_search():
    objective = eo.Objective(small_city(5), 2, "simulation", calls=500, rng=np.random.default_rng(0))
    assert objective.noisy
    optimizer = steps(GPpM(objective, rng=0, initial=5), objective, 14)
    assert len(optimizer.values) == 14 > objective.space.count


@pytest.mark.parametrize(("goal", "mean", "deviation"), [(5.0, 5.2, 0.1), (5.0, 4.9, 0.3), (5.0, 5.6, 0.1)])
def test_expected_improvement_equals_its_integral(goal, mean, deviation):
    """(18), the integral itself."""
    integral = quad(lambda f: (goal - f) * norm.pdf(f, mean, deviation), mean - 12 * deviation, goal, epsabs=0)[0]
    got = log_expected_improvement(goal, np.array([mean]), np.array([deviation]))
    assert got[0] == pytest.approx(np.log(integral), abs=1e-7)


def test_log_expected_improvement_is_smooth_where_its_branches_meet_and_does_not_underflow():
    for z in (-1.0, -1e3):
        low, high = log_expected_improvement(np.array([z - 1e-9, z + 1e-9]), np.zeros(2), np.ones(2))
        assert low == pytest.approx(high, rel=1e-6)
    far = log_expected_improvement(0.0, np.array([50.0, 1e5]), np.ones(2))
    assert far[0] == pytest.approx(norm.logpdf(50) - 2 * np.log(50), abs=2e-3)
    assert np.isfinite(far).all()


def test_importing_the_optimizer_loads_no_scikit_learn():
    code = "import sys, emsopt.optimizers.deployments.gp_pm; print('sklearn' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
