"""The papers' numbers on St. Paul, from the authors' own inputs, downloaded if they are not at hand."""

import numpy as np
import pytest
from scipy.stats import spearmanr

import emsopt as eo
from emsopt.city.travel import great_circle_km
from emsopt.evaluators import approximate_hypercube, bounds, evaluate_all, exact_hypercube, p_median, values

pytestmark = pytest.mark.usefixtures("published")
V2, V1 = "server locations", "server locations, version one"
MODELS = (approximate_hypercube, exact_hypercube)


@pytest.fixture(scope="module")
def median(city):
    return p_median(city, 9)


@pytest.mark.parametrize(("version", "values"), [("published", [5.33, 5.86, 5.92]), ("embedded", [5.37, 5.93, 5.94])])
def test_bound_optimum_and_p_median_deployment(version, values, claim):
    """Version one, Table 3 and C.2, mu = 42.17: lower bound, optimum and p-median deployment, which is the upper bound."""
    city = eo.datasets.load_st_paul(version)
    b, best = bounds(city, 9, evaluator="approximate"), evaluate_all(city, 9, evaluator="approximate").values.min()
    assert [round(x, 2) for x in (b.lower, best, b.upper)] == values
    assert b.upper == approximate_hypercube(city, p_median(city, 9).sites).mean_response
    for place, number in (("Theorem 2", b.lower), ("Lemma 3", b.upper), ("Section 7.2, p-median value", b.upper)):
        claim(V2, place, number)
    for place in ("Theorem 2", "Lemma 3", "Section 7.2, optimum"):
        claim(V2, place, best)
    if version == "published":
        assert (best, b.upper) == pytest.approx((5.8630, 5.9165), abs=5e-5)
        (printed,) = eo.datasets.paper_table(3).query("mu_per_day == 42.17").itertuples()
        assert [printed.lower_bound_min, printed.optimum_min, printed.upper_bound_min] == values
        claim(V1, "Section 7.1, optimum", best, best)
        claim(V1, "Section C.2, p-median", b.upper, b.upper)
        claim(V1, "Section 7.2 against C.2", b.upper)
        assert eo.datasets.paper_table(1).set_index("offered_load").p_median_min[0.225] == 6.01


def test_late_fractions(city, median, claim):
    """The authors' fractions at 10 to 6 min: optimum of the late fraction at each threshold, and p-median."""
    thresholds = [10.0, 9.0, 8.0, 7.0, 6.0]
    best = [evaluate_all(city, 9, evaluator="approximate", metric=("late", t)).values.min() for t in thresholds]
    at_median = approximate_hypercube(city, median.sites).late_fraction(thresholds)
    assert [int(1e4 * at_median[1]), int(1e3 * at_median[2])] == [576, 108]  # printed so: cut off, not rounded
    claim(V1, "Figure 8", *(100 * x for x in (*best, *at_median)))
    claim(V1, "Section 7.4, 8 min, optimum", 100 * best[2])
    claim(V1, "Section 7.4, 9 min, both", 100 * best[1], 100 * at_median[1])


def test_ranking_survives_the_approximation(city, everything):
    """Spearman correlation 0.9987 and the same optimum, over all deployments; here the best 100 and each sixteenth other."""
    best, others = np.split(everything.values.argsort(), [100])
    rows = np.r_[best, others[np.linspace(0, len(others) - 1, 600).astype(int)]]
    close, exact = everything.values[rows], values(city, everything.sites[rows], None, "exact")
    assert len(set(rows)) == 700
    assert spearmanr(exact, close).statistic > 0.998
    assert np.corrcoef(exact, close)[0, 1] > 0.998  # on a straight line
    assert 0.02 < (exact - close).mean() < 0.05
    assert (exact - close).max() < 0.1
    assert everything.sites[rows[exact.argmin()]].tolist() == everything.best_sites.tolist()


def test_ties(everything):
    """24,310 deployments of 17 listed sites are 9,691 distinct ones; the optimum stands for eight of them."""
    assert len(everything.values) == 9691
    assert sum(everything.space.multiplicity(sites) for sites in everything.sites) == 24_310
    assert (len(everything.ties), everything.space.multiplicity(everything.best_sites)) == (1, 8)


def test_figure_4d_sends_each_tract_to_one_station(city, median):
    """The assignment that minimises the p-median objective: the nearest station alone, without regard to load."""
    alone = approximate_hypercube(city.scaled(1e-6), median.sites)
    assert alone.dispatch_fractions.max(axis=0).min() > 0.9999
    assert alone.mean_response == pytest.approx(median.objective, abs=1e-4)


def test_central_tracts_are_answered_faster(city, optimum, claim):
    """Figure 4(c): response follows the nearest unit's time more than the distance from the centre of the calls."""
    away = (city.atom_locations - city.demand_shares @ city.atom_locations) * [np.cos(np.pi / 4), 1]
    central = spearmanr(np.hypot(*away.T), optimum.atom_response).statistic
    near = spearmanr(optimum.response_times.min(axis=0), optimum.atom_response).statistic
    claim(V2, "Figure 4(c), shading", central, near)


def test_most_calls_of_a_tract_go_to_its_first_choice(city, optimum, claim):
    """Figure 4(c): 70 % or more in every tract, 76 % of all calls; 18 % go to the second choice, 6 % further on."""
    order = np.argsort(optimum.response_times, axis=0, kind="stable")
    by_rank = np.take_along_axis(optimum.dispatch_fractions, order, axis=0)
    first, second, *further = 100 * by_rank @ city.demand_shares
    assert further == pytest.approx([4.3, 1.2, 0.4, 0.1, 0.1, 0, 0], abs=0.05)
    shares = optimum.dispatch_fractions @ city.demand_shares
    assert shares == pytest.approx(optimum.utilizations / optimum.utilizations.sum(), abs=3e-4)
    assert np.ptp(city.service_times) == 0
    claim(V2, "Figure 4(c), first choice", 100 * by_rank[0].min(), first, second)
    claim(V2, "Figure 4(c), shares of calls", 100 * shares.min(), 100 * shares.max())


def test_central_tracts_lose_and_peripheral_ones_gain_under_the_p_median(city, median, optimum, claim):
    """Section 7.2: tracts 7, 11 to 13 and 24 get slower, those around Stations 17 and 6 faster."""
    slower = approximate_hypercube(city, median.sites).atom_response - optimum.atom_response
    claim(V2, "Section 7.2, tracts", *slower[[7, 11, 12, 13, 24]], 9, 62)
    assert (slower.argmax(), slower.argmin()) == (12, 63)
    assert slower[[9, 62]].max() < -0.5
    assert (slower > 0.01).sum() > (slower < -0.01).sum()
    outermost = np.argsort(great_circle_km([city.site_locations[0]], city.atom_locations)[0])[-20:]  # from Station 8
    assert (slower[outermost] < 0).sum() == 3


def test_minutes_a_year_lost_by_the_p_median(city, median, optimum):
    """Section 7.3.2 has more than 4,800; 30,911 calls by 0.053 min are 1,650 (1,750 by the exact model)."""
    gap = approximate_hypercube(city, median.sites).mean_response - optimum.mean_response
    assert 30_911 * gap == pytest.approx(1653, abs=5)
    exact = [exact_hypercube(city, sites).mean_response for sites in (median.sites, optimum.sites)]
    assert 30_911 * (exact[0] - exact[1]) == pytest.approx(1752, abs=5)


@pytest.mark.parametrize(("capacity", "load", "gap"), [("loss", 1.26, 0.82), ("queue", 0.84, 0.92)])
def test_gap_at_londons_utilisation(city, median, optimum, capacity, load, gap, claim):
    """Section 7.3.2, at 84 % utilisation; the optimum is the exact model's among the approximation's 50 best."""
    busy = city.with_offered_load(load, 9)
    at_median = exact_hypercube(busy, median.sites, capacity=capacity)
    assert at_median.utilizations.mean() == pytest.approx(0.84, abs=0.001)
    everything = evaluate_all(busy, 9, evaluator="approximate", capacity=capacity)
    best = values(busy, everything.sites[everything.values.argsort()[:50]], None, "exact", capacity=capacity).min()
    assert at_median.mean_response - best == pytest.approx(gap, abs=0.01)
    assert at_median.loss_probability == pytest.approx(1 / 3 if capacity == "loss" else 0, abs=0.001)
    assert at_median.mean_wait == pytest.approx(0 if capacity == "loss" else 12.46, abs=0.01)
    own = [f(city, median.sites).mean_response - f(city, optimum.sites).mean_response for f in MODELS]
    claim(V2, "Section 7.3.2, London", at_median.mean_response - best, *own)


@pytest.mark.parametrize(
    ("version", "moved", "unequal"),
    [("published", [0, 2, 3, 6, 8], [0.154, 0.174]), ("embedded", [0, 1, 2, 6, 8], [0.134, 0.175])],
)
def test_figure_5_units_move_to_the_centre_as_the_load_rises(version, moved, unequal, claim):
    """θ from 0.001 to 1000: units moved from the p-median, their way to the centre, inequality of responses."""
    city = eo.datasets.load_st_paul(version)
    groups, centre = city.twin_groups, p_median(city, 1).sites[0]
    away = (city.site_locations - city.site_locations[centre]) * [np.cos(np.pi / 4), 1]
    away, home = np.hypot(*away.T), np.bincount(groups[p_median(city, 9).sites], minlength=14)
    gini = lambda x, weights: weights @ np.abs(x[:, None] - x) @ weights / (2 * weights @ x)
    rows = []
    for theta in (0.001, 1, 2, 6, 1000):
        goal = eo.Objective(city.scaled(theta), eo.DeploymentSpace(city, 9, colocation=True), "approximate")
        run = eo.optimizers.local_search(goal, restarts=4, rng=0)
        e, nearest = approximate_hypercube(goal.city, run.x), city.response_times[run.x].min(axis=0)
        left = np.abs(np.bincount(groups[run.x], minlength=14) - home).sum() // 2
        equality = [gini(minutes, city.demand_shares) for minutes in (nearest, e.atom_response)]
        rows.append((left, away[run.x].mean(), e.loss_probability, run.fun, *equality))
    found, ways, lost, values, near, far = zip(*rows, strict=True)
    assert list(found) == moved
    assert (np.diff(ways) < 0).all()
    assert (np.diff(values) > 0).all()
    assert (groups[run.x] == groups[centre]).all()
    assert values[-1] == pytest.approx(p_median(city, 1).objective, rel=0.001)
    assert (lost[2:4], near[2:4]) == (pytest.approx([0.014, 0.362], abs=1e-3), pytest.approx(unequal, abs=6e-4))
    claim(V2, "Section 7.3.1, balance", *near[2:4])
    assert far[3] > far[2]
