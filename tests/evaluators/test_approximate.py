"""Approximate hypercube: cases where it is exact, the correction factor, its error, its limits."""

import warnings
from math import comb, factorial

import numpy as np
import pytest
from refusals import refused

import emsopt as eo
from emsopt.errors import AccuracyWarning
from emsopt.evaluators import approximate_hypercube, exact_hypercube, values
from emsopt.evaluators._approximate_equations import fill_correction_factors
from emsopt.evaluators.approximate import correction_factors


def test_correction_factor_against_its_definition():
    """(2) summed term by term, with Erlang probabilities."""
    p, load = 7, 4.2
    P = np.array([load**k / factorial(k) for k in range(p + 1)])
    P /= P.sum()
    rho = load * (1 - P[p]) / p
    expected = [
        sum(comb(k, r) / comb(p, r) * (p - k) / (p - r) * P[k] for k in range(r, p)) / (rho**r * (1 - rho))
        for r in range(p)
    ]
    assert correction_factors(p, load) == pytest.approx(expected, rel=1e-12)
    answered = (correction_factors(p, load) * rho ** np.arange(p) * (1 - rho)).sum()
    assert answered == pytest.approx(1 - P[p])  # as units are busy together; independent ones answer 1 - rho^p


def test_correction_factor_makes_chances_sum_to_one():
    """Interchangeable units: answered by some unit or by none, Σ_r Q(p, ρ̄, r) ρ̄^r (1 - ρ̄) = 1 - P(p)."""
    for p, load in [(1, 0.5), (9, 2.0), (40, 39.0), (450, 140.0), (450, 1e6)]:
        k = np.arange(p + 1)
        log = k * np.log(load) - np.cumsum(np.log(np.maximum(k, 1)))
        P = np.exp(log - np.logaddexp.reduce(log))
        rho, idle = P @ k / p, P @ (p - k) / p
        answered = np.sum(correction_factors(p, load) * rho ** np.arange(p) * idle)
        assert answered == pytest.approx(P[:p].sum(), rel=1e-9)


def test_limits_of_the_load():
    """Theorems 4 and 5: the closest unit answers when load vanishes; under heavy load any unit equally often."""
    city = eo.datasets.load_st_paul()
    sites = np.array([0, 1, 2, 3, 8, 9, 11, 15, 16])
    closest = city.response_times[sites].min(axis=0) @ city.demand_shares
    assert approximate_hypercube(city.scaled(1e-6), sites).mean_response == pytest.approx(closest, abs=1e-4)
    anyone = city.response_times[sites].mean(axis=0) @ city.demand_shares
    assert approximate_hypercube(city.scaled(1e6), sites).mean_response == pytest.approx(anyone, abs=1e-3)


def test_close_to_exact_with_several_units_per_station_and_service_times_by_station():
    """What Budge, Ingolfsson and Erkut (2009) extended it to: eight units at four stations, 6 cities."""
    rng = np.random.default_rng(3)
    for seed in range(6):
        city = eo.datasets.grid_city(n_sites=4, units=8, load=0.4, rng=seed)
        city = city.replace(service_times=rng.uniform(30, 50, 4)).with_offered_load(0.4, 8)
        sites = np.sort(np.r_[np.arange(4), rng.integers(4, size=4)])
        approximate, exact = approximate_hypercube(city, sites), exact_hypercube(city, sites)
        assert abs(approximate.mean_response - exact.mean_response) < 0.2
        assert np.abs(approximate.utilizations - exact.utilizations).max() < 0.04
        assert np.abs(approximate.dispatch_fractions - exact.dispatch_fractions).max() < 0.04


@pytest.mark.parametrize("work", [1e-9, 1e9])
@pytest.mark.parametrize("units", [1, 17])
def test_extreme_loads_keep_their_digits(work, units):
    """At the ends of what `City.scaled` allows: the nearest unit always answers, or each equally often."""
    city, sites = eo.datasets.load_st_paul(), np.arange(units)
    city = city.with_offered_load(work * (1 + 1e-6 * (work < 1) - 1e-6 * (work > 1)) / units, units)
    times = city.response_times[sites]
    expected = (times.min(axis=0) if work < 1 else times.mean(axis=0)) @ city.demand_shares
    for e in (approximate_hypercube(city, sites), exact_hypercube(city, sites)):
        assert e.mean_response == pytest.approx(expected, rel=1e-6)
        assert np.isfinite(e.utilizations).all()
    refused("erlangs", city.scaled, 1e3 if work > 1 else 1e-3)


def plain_fixed_point(city, sites, capacity="loss", scaled=True):
    """Solve (3) with every atom's full list of units, as printed or with utilisations scaled to their sum in each step.

    Returns utilisations, the residual of (3) as printed at them, and the mean response.
    """
    p, work, times = len(sites), city.arrival_rates / 60 * city.mean_service_time, city.response_times[sites]
    order = np.lexsort((np.arange(p)[:, None] + np.zeros((1, city.n_atoms)), times), axis=0).T
    Q = np.empty(p)
    fill_correction_factors(work.sum(), capacity == "queue", Q)
    same = approximate_hypercube(eo.City([60.0], [[1.0]], 0, 1).scaled(work.sum()), [0] * p, capacity=capacity)
    mean, blocked = same.utilizations.mean(), same.queue_probability
    rho, moved = np.full(p, mean), 1.0

    def chances(rho):
        return Q * np.cumprod(np.column_stack([np.ones(len(order)), rho[order[:, :-1]]]), axis=1)

    while moved > 1e-13:
        V = np.bincount(order.ravel(), (work[:, None] * chances(rho)).ravel(), p)
        printed = (V + blocked * work.sum() / p) / (1 + V)
        new = printed * p * mean / printed.sum() if scaled else (rho + printed) / 2
        residual, moved, rho = abs(printed - rho).max(), abs(new - rho).max(), new
    answers = chances(rho) * (1 - rho[order])
    minutes = np.take_along_axis(times.T, order, axis=1)
    response = (answers * minutes).sum(axis=1) / answers.sum(axis=1) @ city.demand_shares
    anyone = (times @ city.demand_shares).mean()
    return rho, residual, (1 - blocked) * response + blocked * anyone


@pytest.mark.parametrize("version", ["embedded", "published"])
def test_equation_3_is_solved_with_utilisations_scaled_to_their_sum(version, claim, request):
    """At St. Paul's best deployment: scaled it holds to 1e-10, as printed it has a residual. Table 3 tells the two apart."""
    st_paul = eo.datasets.load_st_paul() if version == "embedded" else request.getfixturevalue("published")
    sites = {"embedded": [0, 3, 4, 10, 11, 12, 14, 15, 16], "published": [0, 1, 2, 3, 8, 9, 11, 15, 16]}[version]
    residuals, sums = [], []
    for theta in (0.1, 1, 2, 4.2):
        city = st_paul.scaled(theta)
        e = approximate_hypercube(city, sites, tol=1e-12)
        scaled, residual, response = plain_fixed_point(city, sites)
        assert e.utilizations == pytest.approx(scaled, abs=1e-10)
        assert e.mean_response == pytest.approx(response, abs=1e-9)
        if theta == 1:
            least = eo.evaluators.evaluate_all(city, 9, evaluator="approximate").values.min()
            assert e.mean_response == pytest.approx(least, abs=1e-8)
        exact = exact_hypercube(city, sites).utilizations.sum()
        assert e.utilizations.sum() == pytest.approx(exact, abs=1e-9)  # Erlang's
        residuals.append(residual)
        sums.append(plain_fixed_point(city, sites, scaled=False)[0].sum() - exact)
    row = claim("server locations", "Equation (3)")
    whose = {"embedded": "proxy demand", "published": "authors' demand"}[version]
    assert f"{', '.join(f'{r:.1e}' for r in residuals)} ({whose})" in row.ours
    assert (np.abs(sums) > 1e-7).all()  # units, so that the solution of (3) as printed is another one
    if version == "published":
        table, apart = eo.datasets.paper_table(3), []
        median = eo.evaluators.p_median(st_paul, 9).sites
        for mu, minutes in zip(table["mu_per_day"], table["upper_bound_min"], strict=True):
            city = st_paul.replace(service_times=24 * 60 / mu)
            printed = plain_fixed_point(city, median, scaled=False)[2]
            apart.append((abs(approximate_hypercube(city, median).mean_response - minutes), abs(printed - minutes)))
        claim("server locations", "Equation (3)", *np.max(apart, axis=0))
        assert np.max(apart, axis=0)[0] < 0.005  # the printed digits
        assert np.max(apart, axis=0)[1] == pytest.approx(0.015, abs=5e-4)


@pytest.mark.parametrize("capacity", ["loss", "queue"])
@pytest.mark.parametrize(("units", "load"), [(12, 0.5), (35, 0.5), (60, 0.2), (60, 0.5), (60, 0.9)])
def test_shortened_lists_and_accelerated_steps_leave_the_solution(units, load, capacity):
    """Beyond 30 units both are in use; the notes of `approximate_hypercube` state an error five times as large."""
    city = eo.datasets.grid_city(n_sites=100, units=units, load=load, rng=3)
    sites = np.sort(np.random.default_rng(4).integers(0, 100, units))  # some sites hold two units
    rho, _, response = plain_fixed_point(city, sites, capacity)
    e = approximate_hypercube(city, sites, capacity=capacity, tol=1e-12)
    by_site = np.bincount(sites, rho, 100)[sites] / np.bincount(sites)[sites]
    assert (e.utilizations, e.mean_response) == (pytest.approx(by_site, abs=1e-11), pytest.approx(response, abs=1e-11))
    assert values(city, [sites], None, "approximate", capacity=capacity) == pytest.approx(response, abs=2e-7)


def unequal_city(ratio, units=4):
    """City of four sites whose mean service times go from 20 to 20 times the ratio (min)."""
    city = eo.datasets.grid_city(n_sites=4, units=units, size=4, rng=0)
    return city.replace(service_times=np.geomspace(20, 20 * ratio, 4)).with_offered_load(0.3, units)


def test_warnings_begin_where_service_times_are_far_apart():
    """Not within the measured range; the suite makes errors of warnings."""
    every, city, wide = [0, 1, 2, 3], unequal_city(8), unequal_city(60)
    for capacity, words in (("loss", "`loss_probability`"), ("queue", "`queue_probability` and `mean_wait`")):
        with pytest.warns(AccuracyWarning, match=rf"factor of 8 \(20 to 160 min\).*{words}") as told:
            e = approximate_hypercube(city, every, capacity=capacity)
        assert [warning.filename for warning in told] == [__file__]
        exact = exact_hypercube(city, every, capacity=capacity)
        assert e.loss_probability + e.queue_probability > 1.5 * (exact.loss_probability + exact.queue_probability)
        assert e.mean_response == pytest.approx(exact.mean_response, rel=0.03)
    approximate_hypercube(unequal_city(2), every)
    approximate_hypercube(city, [0, 0, 1])  # the slow site has no unit
    values(city, [every], None, "approximate")
    with pytest.warns(AccuracyWarning, match="factor of 60 .*mean costs"):
        values(wide, [[0, 1, 2], [1, 2, 3], [0, 0, 3]], None, "approximate")
    with pytest.warns(AccuracyWarning, match="factor of 60"):
        eo.evaluators.evaluate_all(wide, 3, "approximate")
    values(wide, [[0, 1, 2], [1, 2, 2]], None, "approximate")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("default")
        eo.optimizers.local_search(eo.Objective(wide, 3, "approximate"), rng=0)
    assert len(told) == 1


def test_mean_wait_follows_from_the_chance_to_wait():
    """All units busy serve Σ μ_i, so that a call that waits does so for 1 / (Σ μ_i - λ) on average."""
    city, sites = unequal_city(2).with_offered_load(0.6, 4), [0, 1, 2, 3]
    e = approximate_hypercube(city, sites, capacity="queue")
    served, calls = (1 / city.service_times[sites, 0]).sum(), city.total_rate / 60
    assert e.mean_wait == pytest.approx(e.queue_probability / (served - calls), rel=1e-9)


def test_theorem_4_needs_preference_by_response_time(claim):
    """Section 3.1 leaves the order of preference free; by distance, a slow turnout counts for nothing.

    Site 0 is the nearest to both atoms but slow to leave. The p-median has it, for atom 1 only; by distance both atoms
    are served from it, and at light load the best deployment does without.
    """
    travel = [[2.0, 1.0], [3.0, 12.0], [3.0, 12.0]]
    city = eo.City([1.0, 1.0], travel, turnout_times=[9.0, 1.0, 1.0], service_times=30.0)
    pairs, light = np.array([[0, 1], [1, 2]]), city.scaled(1e-6)
    medians = [city.response_times[pair].min(axis=0).mean() for pair in pairs]
    assert medians == [(4 + 10) / 2, (4 + 13) / 2]
    by_distance = light.replace(preference=city.travel_times)
    assert values(light, pairs, None, "approximate") == pytest.approx(medians, abs=1e-5)
    found = values(by_distance, pairs, None, "approximate")
    assert found == pytest.approx([(11 + 10) / 2, 8.5], abs=1e-5)
    claim("server locations", "Theorem 4, preference lists", found[1], found[0])
