"""Late fractions and percentiles if times vary: closed forms, the simulation, and what must not change."""

import numpy as np
import pytest
from refusals import refused
from scipy.stats import lognorm

import emsopt as eo
from emsopt.evaluators import approximate_hypercube, evaluate_all, exact_hypercube, simulate, values
from emsopt.evaluators.metrics import metric_costs

FIXED = eo.City([2.0, 1.0, 1.5], [[3, 9, 6], [8, 2, 5], [4, 5, 9]], turnout_times=[1, 1.5, 0.5], service_times=30)
CITY = FIXED.replace(travel_cv=[[0.3, 0.4, 0.5], [0.2, 0.6, 0.4], [0.5, 0.5, 0.5]], turnout_cv=[0, 0.4, 0.2])
EVALUATORS = [exact_hypercube, approximate_hypercube]


@pytest.mark.parametrize("evaluator", EVALUATORS)
def test_one_unit_and_one_atom_by_the_lognormal(evaluator):
    city = eo.City([1.0], [[5.0]], turnout_times=1.5, service_times=30.0, travel_cv=0.4)
    e, sigma = evaluator(city, [0]), np.sqrt(np.log(1.16))
    law = lognorm(sigma, loc=1.5, scale=5 * np.exp(-(sigma**2) / 2))
    times = np.array([1.0, 3.0, 6.5, 8.0, 20.0])
    np.testing.assert_allclose(e.late_fraction(times), law.sf(times), atol=1e-12)
    np.testing.assert_allclose(e.atom_late_fractions(8.0), [law.sf(8)], atol=1e-12)
    for q in (1e-3, 10, 50, 90, 99.9):
        assert e.percentile(q) == pytest.approx(law.ppf(q / 100), abs=1e-6)
    assert (e.percentile(100), e.mean_response) == (np.inf, 6.5)


@pytest.mark.parametrize("capacity", ["loss", "queue"])
@pytest.mark.parametrize("evaluator", [*EVALUATORS, lambda *args, **options: simulate(*args, rng=3, **options)])
def test_all_but_the_distribution_of_response_is_as_without_variation(evaluator, capacity):
    """The same numbers, bit by bit."""
    e, fixed = (evaluator(city, [0, 1, 2], capacity=capacity) for city in (CITY, FIXED))
    for name in ("mean_response", "loss_probability", "queue_probability", "mean_wait", "intervals"):
        assert getattr(e, name) == getattr(fixed, name)
    for name in ("utilizations", "dispatch_fractions", "response_times", "atom_response"):
        np.testing.assert_array_equal(getattr(e, name), getattr(fixed, name))
    assert e.late_fraction(8.0) != fixed.late_fraction(8.0)
    assert fixed.law is None


@pytest.mark.parametrize("evaluator", ["exact", "approximate"])
def test_the_metric_is_the_late_fraction(evaluator):
    found = evaluate_all(CITY, 2, evaluator, metric=("late", 8.0))
    late = [found.evaluation(sites).late_fraction(8.0) for sites in found.sites]
    np.testing.assert_allclose(found.values, late, atol=1e-12)
    e = found.best
    assert e.late_fraction(e.percentile(90)) == pytest.approx(0.1, abs=1e-7)
    assert e.atom_late_fractions(8.0) @ e.demand_shares == pytest.approx(e.late_fraction(8.0), abs=1e-12)
    assert (e.summary()["late_over_8_min"], e.late_fraction(0)) == (e.late_fraction(8.0), pytest.approx(1))
    simulated = values(CITY, [[0, 1]], metric_costs(CITY, ("late", 8.0)), "simulation", rng=0)
    assert simulated[0] == pytest.approx(simulate(CITY, [0, 1], rng=0).late_fraction(8.0), abs=0.005)


def test_exact_lies_within_the_interval_of_a_simulation(script):
    """Fleets of 2 to 8 units; the benchmark has 20 cities and a million calls."""
    assert script("benchmarks/random_travel.py").inside(13, calls=200_000, level=0.999).all()


def test_a_simulation_draws_the_times():
    run, again = (simulate(CITY, [0, 1], calls=50_000, rng=4) for _ in range(2))
    minutes, atoms = run.answers.minutes, run.answers.atoms
    assert run.answers.calls.sum() == len(minutes) == len(np.unique(minutes))
    assert (run.percentile_90, run.percentile(100)) == (again.percentile_90, minutes.max())
    assert run.atom_late_fractions(8.0) @ run.demand_shares == pytest.approx(run.late_fraction(8.0), abs=1e-9)
    by_hand = [(minutes[atoms == j] >= 8).mean() for j in range(3)]
    np.testing.assert_allclose(run.atom_late_fractions(8.0), by_hand, rtol=1e-12)


def test_a_percentile_beyond_the_tail_that_is_integrated_is_infinite():
    e = exact_hypercube(CITY.replace(turnout_cv=0.3), [0, 1])
    assert np.isfinite(e.percentile(99.9999))
    assert e.percentile(99.9999999) == np.inf


def test_the_100th_percentile_of_many_calls_is_the_longest_response():
    """The weights of 100,000 calls of one atom add up, rounded, to less than 1 - 1e-12."""
    city = eo.City([2.0], [[5.0]], turnout_times=1, service_times=20, travel_cv=0.4)
    run = simulate(city, [0] * 4, capacity="queue", calls=100_000, rng=0)
    longest = run.answers.minutes.max()
    assert (run.percentile(100), run.percentile_interval(99.999)[1]) == (longest, longest)


@pytest.mark.parametrize("city", [CITY, FIXED], ids=["varying", "fixed"])
def test_95_percent_intervals_of_late_fraction_and_percentile(city):
    """200 short runs; the share that cover the exact value must be from 90 to 99 percent."""
    exact, held = exact_hypercube(city, [0, 1]), np.zeros(2, int)
    truth = exact.late_fraction(8.0), exact.percentile(75)
    for child in np.random.SeedSequence(5).spawn(200):
        run = simulate(city, [0, 1], calls=10_000, rng=child)
        found = run.late_fraction(8.0), run.percentile(75)
        for k, (low, high) in enumerate((run.late_interval(8.0), run.percentile_interval(75))):
            assert low <= found[k] <= high
            held[k] += low <= truth[k] <= high
    assert 180 <= held[0] <= 198
    assert held[1] >= 180  # of fixed times, which are few, an interval often covers more
    assert city is FIXED or held[1] <= 198


def test_late_intervals_of_runs_without_late_calls():
    run = simulate(CITY, [0, 1], calls=1000, rng=0)
    answered = len(run.answers.minutes)
    assert run.late_interval(1e3) == (0.0, pytest.approx(3.0 / answered, rel=0.01))  # rule of three
    assert run.late_interval(0.0) == (pytest.approx(1 - 3.0 / answered, rel=0.01), 1.0)
    for ask in (lambda e: e.late_interval(8.0), lambda e: e.percentile_interval(90)):
        refused(r"only a simulation has confidence intervals.* exact evaluator", ask, exact_hypercube(CITY, [0, 1]))
    city = CITY.replace(arrival_rates=[1.0, 0.0, 1e-12])
    run = simulate(city, [0, 1], calls=2000, rng=0)
    assert 0 < run.atom_late_fractions(8.0)[1] < 1
    assert run.late_fraction(8.0) == pytest.approx(run.atom_late_fractions(8.0)[0])


def test_a_run_is_not_resumed_in_a_city_that_varies_otherwise(tmp_path):
    file = tmp_path / "run.jsonl"
    eo.minimize(eo.Objective(CITY, 2, "approximate"), "random", budget=3, rng=0, checkpoint=file)
    assert eo.minimize(eo.Objective(CITY, 2, "approximate"), "random", budget=3, rng=0, checkpoint=file).nfev == 3
    for city in (FIXED, CITY.replace(travel_cv=0.4), CITY.replace(turnout_cv=0.1)):
        refused("city", eo.minimize, eo.Objective(city, 2, "approximate"), "random", budget=3, rng=0, checkpoint=file)


def test_sited_cities_keep_the_mean_variation():
    base = eo.datasets.grid_city(rng=0)
    for cv in (0.4, np.linspace(0.2, 0.6, base.n_sites)):
        sited = eo.problems.station_siting.sited_city(base.replace(travel_cv=cv, turnout_cv=0.2), [2.5, 5.0, 7.5, 5.0])
        assert (sited.travel_cv, sited.turnout_cv) == (pytest.approx(0.4), pytest.approx(0.2))
