"""GP-pM and GP-zero: Algorithms 3 and 4 step by step, feasibility, and the optimum of St. Paul."""

import math

import numpy as np
import pytest
from own_functions import listed, played
from refusals import refused
from scipy.integrate import quad
from scipy.stats import norm

import emsopt as eo
from emsopt.optimizers.deployments import gp_pm
from emsopt.optimizers.deployments.gp_pm import INITIAL_EDGE, GPpM, GPzero
from emsopt.optimizers.recommendation import log_expected_improvement


def small_city(sites=9, atoms=14, seed=0):
    rng = np.random.default_rng(seed)
    return eo.City(rng.random(atoms) + 0.1, rng.uniform(3, 15, (sites, atoms)), turnout_times=1, service_times=30)


def prior_mean(optimizer, sites):
    return optimizer._prior_mean(optimizer.space.group_counts(optimizer.space.canonical(sites))[None])[0]


def told_at_random(city, seed, **options):
    """Return a search that was told twenty random values, so that it has a trust region."""
    optimizer = GPpM(eo.Objective(city, 9, "approximate"), rng=seed, **options)
    for _ in range(20):
        optimizer.tell(optimizer.ask(), 7 + optimizer.rng.random())
    return optimizer


def test_prior_mean_is_the_p_median_objective():
    """(4a) by hand, and its minimum is the exact p-median's; GP-zero has none."""
    city = small_city()
    objective = eo.Objective(city, 3)
    together = GPpM(eo.Objective(city, eo.DeploymentSpace(city, 3, colocation=True)))
    every = [np.flatnonzero(row) for row in listed(9, 3)]
    optimizer = GPpM(objective, rng=0)
    values = [prior_mean(optimizer, sites) for sites in every]
    by_hand = lambda sites: city.demand_shares @ city.response_times[list(sites)].min(axis=0)
    assert values == pytest.approx([by_hand(sites) for sites in every], rel=1e-12)
    # (version one's mean has a minus sign, with which good deployments would rank last)
    assert np.corrcoef(values, [objective(sites) for sites in every])[0, 1] > 0.5
    assert min(values) == pytest.approx(eo.evaluators.p_median(city, 3).objective, rel=1e-9)
    assert prior_mean(GPzero(objective), [0, 1, 2]) == 0
    assert prior_mean(together, [3, 3, 4]) == pytest.approx(by_hand([3, 4]), rel=1e-12)


def edges(optimizer, propose, values):
    """Tell values of what is proposed, and return the edge of the region after each."""
    found = []
    for value in values:
        optimizer.tell(propose(), value)
        found.append(optimizer.edge)
    return found


def test_region_grows_shrinks_and_restarts_as_in_algorithm_4(st_paul):
    """d = 20; x 1.5 after 3 successes; x 2/3 after 10 failures in a row; below 2 a restart, from 20 again."""
    optimizer = told_at_random(st_paul, 5)
    tell = lambda *values: edges(optimizer, optimizer.ask, values)
    assert (optimizer.edge, optimizer.restarts) == (INITIAL_EDGE, 0)
    assert tell(6.9, 6.8, 6.7) == [20] * 3  # grown, but no farther than the whole space: 2 p = 18
    optimizer.edge = 4.0
    assert tell(6.6, 6.5, 6.4) == [4, 4, 6]
    assert tell(*[7.0] * 9, 6.3) == [6] * 10  # a success ends the row of failures
    assert tell(*[7.0] * 10) == [6] * 9 + [4]
    shrunk = tell(*[7.0] * 20)
    assert shrunk[9] == pytest.approx(8 / 3)
    assert (shrunk[-1], optimizer.restarts) == (INITIAL_EDGE, 1)  # 16/9 is below 2
    assert optimizer.values[optimizer.optima[0]] == 6.3


def test_centre_follows_the_best_of_the_region_and_nothing_else(st_paul):
    optimizer = told_at_random(st_paul, 10)
    counts = optimizer.space.group_counts

    def tell(sites, value):
        optimizer.tell(sites, value)
        return np.array_equal(optimizer.centre, counts(sites))

    assert tell(optimizer.ask(), 7.5)  # the first of the region, though others were better before
    assert not tell(optimizer.ask(), 7.6)
    assert tell(optimizer.ask(), 7.4)
    optimizer.edge = 2.0
    some = map(optimizer.space.canonical, optimizer.space.sample(50, rng=optimizer.rng))
    assert not tell(next(x for x in some if np.abs(counts(x) - optimizer.centre).sum() > 2), 1.0)


def test_before_the_first_model_it_says_how_many_observations_are_missing():
    objective = eo.Objective(small_city(), 3, "approximate")
    optimizer = played(GPpM(objective, rng=8), 13)
    for ask in (optimizer.predict, optimizer.acquisition):
        refused(r"20 observations and has 13; tell it 7 more", ask, optimizer.sites)
    played(optimizer, 7)
    assert optimizer.predict(optimizer.sites)[0].shape == optimizer.acquisition(optimizer.sites).shape == (20,)
    refused("not an allowed deployment", optimizer.acquisition, [[0, 0, 1]])


def test_acquisition_is_expected_improvement_over_the_best_told_and_ignores_order_and_twins(st_paul):
    """(18) in closed form; sites 0 and 5 are one station; deployments asked for change nothing and stay in (17)."""
    objective = eo.Objective(st_paul, 9, "approximate")
    optimizer = played(GPpM(objective, rng=9), 22)
    process = optimizer.process
    rows = np.array([[0, 1, 2, 3, 4, 6, 7, 8, 9], [9, 5, 2, 3, 4, 6, 7, 8, 1], [1, 2, 3, 4, 6, 8, 10, 11, 12]])
    mean, deviation = optimizer.predict(rows)
    z = (min(optimizer.values) - mean) / deviation
    got = optimizer.acquisition(rows)
    np.testing.assert_allclose(np.exp(got), deviation * (z * norm.cdf(z) + norm.pdf(z)), rtol=1e-6)
    assert mean[0] == mean[1]
    assert got[0] == got[1] != got[2]
    for edge in (2.0, 4.9):
        optimizer.edge = edge
        counts = np.array([objective.space.group_counts(sites) for sites in optimizer.ask(2)])
        assert np.abs(counts - optimizer.centre).sum(axis=1).max() <= edge
    assert optimizer.process is process
    np.testing.assert_array_equal(optimizer.acquisition(rows), got)


def test_noisy_objectives_may_be_asked_again_and_do_not_break_the_search():
    objective = eo.Objective(small_city(5), 2, "simulation", calls=500, rng=np.random.default_rng(0))
    optimizer = played(GPpM(objective, rng=0, initial=5), 14)
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


@pytest.mark.parametrize(("method", "options"), [(GPzero, {}), (GPpM, {"colocation": 2, "pinned": [1, 1]})])
def test_values_and_bounds_of_all_swaps_agree_with_those_of_each(st_paul, method, options):
    """The prior from scratch, kernel (13) of each pair, and the score of each deployment, which no bound is below."""
    objective = eo.Objective(st_paul, eo.DeploymentSpace(st_paul, 6, **options), "approximate")
    optimizer = played(method(objective, rng=0), 24)
    process, space = optimizer.process, objective.space
    rate = lambda mean, deviation: log_expected_improvement(min(optimizer.values), mean, deviation)
    score, bounds = optimizer._score_functions(process, optimizer._constant, rate)
    weights = np.random.default_rng(1).standard_normal(len(process.X))
    for sites in space.sample(5, rng=2):
        x, unit = space.group_counts(sites), np.eye(len(space.capacities), dtype=int)
        swaps = gives, takes = space.swappable_groups(x)
        allowed = gives[:, None] != takes
        near = (x - unit[gives][:, None] + unit[takes])[allowed]
        assert {tuple(space.deployment(row)) for row in near} == set(map(tuple, space.neighbours(sites)))
        np.testing.assert_allclose(
            optimizer._p_median_values_of_swaps(x, *swaps)[allowed], optimizer._prior_mean(near), rtol=1e-12
        )
        sums = process.kernel.swap_sums(x, *swaps, process.X)(weights)[allowed]
        np.testing.assert_allclose(sums, process.kernel(near, process.X) @ weights, rtol=1e-9, atol=1e-9)
        upper = bounds(x, *swaps)[allowed]
        assert (upper >= score(near)).all()
        assert (upper < score(near).max()).any()


def test_a_long_run_models_the_observations_nearest_to_its_centre(monkeypatch, st_paul):
    monkeypatch.setattr(gp_pm, "MAX_MODELLED", 15)
    objective = eo.Objective(st_paul, 9, "approximate")
    optimizer = played(GPpM(objective, rng=0), 26)
    chosen = optimizer._choose_observations()
    apart = np.array([np.abs(objective.space.group_counts(x) - optimizer.centre).sum() for x in optimizer.sites])
    assert sorted(apart[chosen]) == sorted(apart)[:15]
    assert max(apart) > max(apart[chosen])


def test_literal_region_keeps_its_centre_and_grows_without_limit(st_paul):
    """Algorithm 4, lines 5 to 20: d = 20, then x 1.5 and x 2/3; the centre stays until d is below 2."""
    optimizer = told_at_random(st_paul, 5, literal=True)
    centre = optimizer.centre.copy()
    tell = lambda *values: edges(optimizer, optimizer.draw, values)
    assert tell(6.9, 6.8, 6.7) == [20, 20, 30]  # beyond 2 p = 18
    assert tell(6.6, 7.0, 6.5, 6.4) == [30, 30, 30, 45]
    assert tell(*[7.0] * 70)[9::10] == pytest.approx([45 * (2 / 3) ** k for k in range(1, 8)])
    assert (optimizer.centre == centre).all()
    assert tell(*[7.0] * 10)[-1] == INITIAL_EDGE  # 1.76 is below 2: after 80 failures, at most the theorem's
    assert [10 * math.ceil(math.log(d) / math.log(1.5)) for d in (45, 45 / 2)] == [100, 80]
    assert (optimizer.restarts, optimizer.values[optimizer.optima[0]]) == (1, 6.4)


@pytest.mark.parametrize("restarts", [0, 1])
def test_literal_centre_has_the_lowest_bound_of_all_deployments(restarts):
    """(16) over the whole space, with beta = 25; of GP*, which learns the best of each region that was given up."""
    objective = eo.Objective(small_city(), 3, "approximate")
    optimizer = played(GPpM(objective, rng=7, literal=True, shrink=(2, 0.05)), 20)
    while optimizer.restarts < restarts:
        played(optimizer, 1)
    world, constant = optimizer._fit([*range(20), *optimizer.optima], None)
    counts = optimizer.space.group_counts(optimizer.space.listing())
    prior = np.array([prior_mean(optimizer, np.flatnonzero(x)) for x in counts])
    mean, variance = world.predict(counts, prior)
    bound = mean - 5 * np.sqrt(variance)
    assert (constant, gp_pm.MAX_LISTED) == (0, 25_000)
    assert bound[(counts == optimizer.centre).all(axis=1)][0] == pytest.approx(bound.min(), abs=1e-9)


def test_algorithm_3_as_printed_leaves_its_trust_region():
    """It swaps on from the candidate accepted last; with the centre in its place it would stay."""
    objective = eo.Objective(eo.datasets.grid_city(30, 10, rng=0), 10, "approximate")
    optimizer = played(GPpM(objective, rng=1, literal=True), 20)
    centre, space = optimizer.centre, objective.space
    farthest = lambda counts: np.abs(counts - centre).sum(axis=1).astype(float)
    found = gp_pm.swap_adaptively(space, farthest, centre, 4.0, optimizer.rng)
    assert np.abs(found - centre).sum() > 4
    assert np.abs(gp_pm.swap_at_random(space, centre, np.full(4000, 2), optimizer.rng) - centre).sum(axis=1).max() == 4


@pytest.mark.parametrize(("sites", "units"), [(5, 2), (6, 3), (9, 7), (12, 1)])
def test_lemma_12_random_swaps_move_by_an_even_bounded_distance(sites, units):
    """One swap: 2. m swaps: even, up to 2 min(m, p, N - p), where the proof prints max(p, N - p), 3 for N = 6, p = 3."""
    space, rng = eo.DeploymentSpace(small_city(sites), units), np.random.default_rng(0)
    x = (np.arange(sites) < units).astype(int)
    for m in (1, 2, 3, 8):
        moved = gp_pm.swap_at_random(space, x, np.full(4000, m), rng)
        distances = np.abs(moved - x).sum(axis=1)
        assert (moved.sum(axis=1) == units).all()
        assert set(moved.ravel()) == {0, 1}
        most = 2 * min(m, units, sites - units)
        assert set(distances) == ({2} if m == 1 else set(range(0, most + 1, 2)))
    if (sites, units) == (6, 3):
        assert distances.max() == 6 > max(units, sites - units)


SPACES = [(5, 2, 2), (7, 3, 4), (7, 3, 5), (6, 3, 6), (8, 6, 20), (6, 1, 9)]


@pytest.mark.parametrize(("sites", "units", "edge"), SPACES)
def test_as_many_swaps_as_printed_reach_the_whole_region(sites, units, edge):
    """After Lemma 12: s(d) = min(d/2, p, N - p) swaps from the centre; a single swap leaves the centre, more may return."""
    space, rng = eo.DeploymentSpace(small_city(sites), units), np.random.default_rng(0)
    centre, swaps = listed(sites, units)[0], int(min(edge / 2, units, sites - units))
    reached = {tuple(x) for x in gp_pm.swap_at_random(space, centre, np.full(5000, swaps), rng)}
    region = {tuple(x) for x in listed(sites, units) if np.abs(x - centre).sum() <= edge}
    assert reached == region - ({tuple(centre)} if swaps == 1 else set())


@pytest.mark.parametrize(("sites", "units", "edge"), [(5, 2, 2), (7, 3, 4), (7, 3, 5), (8, 6, 20)])
def test_lemma_22_counts_the_deployments_of_a_trust_region(sites, units, edge):
    """Σ_i C(p, i) C(N - p, i) for i up to d/2, against a list of the region (17)."""
    every = listed(sites, units)
    inside = (np.abs(every - every[3]).sum(axis=1) <= edge).sum()
    assert inside == sum(math.comb(units, i) * math.comb(sites - units, i) for i in range(edge // 2 + 1))


def test_theorem_14_holds_for_the_repaired_search_and_not_for_the_printed_one():
    """Of 20 deployments ours evaluates all; as printed, with 60 evaluations, it repeats some and leaves others out."""
    left_out, above = [], []
    for seed in range(3):
        objective = eo.Objective(eo.datasets.grid_city(6, 3, 3.0, rng=seed), 3, "approximate")
        ours = played(GPpM(objective, rng=seed, initial=4), 60)
        printed = played(GPpM(objective, rng=seed, initial=4, literal=True), 60)
        assert len(ours.values) == 20
        left_out.append(20 - len(printed.taken))
        above.append(min(printed.values) - min(ours.values))
    assert min(left_out) > 0
    assert max(above) > 0.2, "minutes above the optimum"


def test_example_13_runs_on_cities_of_its_size():
    """N = 5, p = 2; twenty cities. The paper finds the optimum of ten deployments at its fifth evaluation."""
    settings, needed = {"initial": 3, "edge": 2, "grow": (3, 1.5), "shrink": (3, 0.75)}, []
    for seed in range(20):
        objective = eo.Objective(eo.datasets.grid_city(5, 2, 0.5, rng=seed), 2, "approximate")
        best = objective.values(objective.space.listing()).min()
        optimizer = played(GPpM(objective, rng=seed, literal=True, **settings), 30)
        needed.append(1 + np.argmax(np.array([*optimizer.values, best]) <= best + 1e-9))
    assert np.median(needed) <= 5
    assert sum(n <= 8 for n in needed) >= 17


def test_inputs_of_algorithm_4_that_make_no_sense_are_refused():
    objective = eo.Objective(small_city(), 3, "approximate")
    for wrong in ({"edge": 1}, {"grow": (3, 0.9)}, {"shrink": (3, 1)}, {"shrink": (0, 0.5)}):
        refused("`edge` must be at least 2", GPpM, objective, **wrong)
