"""What is minimised: cost matrices of metrics, and objectives that count their evaluations."""

import pickle
from copy import copy

import numpy as np
import pytest
from refusals import refused

import emsopt as eo
from emsopt.errors import InputError
from emsopt.evaluators import evaluate, exact_hypercube
from emsopt.evaluators.metrics import metric_costs, metric_label
from emsopt.optimizers.deployments.swaps import enumeration_limit
from emsopt.optimizers.search import describe

TIMES = [[3, 8, 5], [9, 2, 4], [6, 6, 1], [4, 5, 9]]
CITY = eo.City([1.0, 0.5, 0.3], TIMES, turnout_times=[1, 2, 1, 1], service_times=40)
MIX = {"mean_response": 1.0, ("late", 7.0): 20}


def test_costs_of_lateness_and_of_mixes():
    """Version one's (22): late is t_ij >= threshold; 7 min occur at (2, 0) and (2, 1)."""
    np.testing.assert_array_equal(metric_costs(CITY, ("late", 7.0)), [[0, 1, 0], [1, 0, 0], [1, 1, 0], [0, 0, 1]])
    np.testing.assert_array_equal(metric_costs(CITY, ("late", np.nextafter(7.0, 8)))[2], [0, 0, 0])
    expected = CITY.response_times + 20 * metric_costs(CITY, ("late", 7.0))
    np.testing.assert_allclose(metric_costs(CITY, MIX), expected)
    np.testing.assert_allclose(metric_costs(CITY, {"mean_response": 0, ("late", 7.0): 2}).max(), 2)
    refused("mean over calls", metric_costs, CITY, ("percentile", 90))


def test_malformed_metrics_are_refused_by_name():
    for metric, words in (
        ("speed", "metric.*'speed'"),
        (("early", 8), r"metric.*\('early', 8\)"),
        (("late", 0), "threshold.*above 0"),
        (("late", "soon"), "threshold.*'soon'"),
        ({}, "metric.*{}"),
        ({"speed": 1}, "metric.*'speed'"),
        ({"mean_response": -1}, "weight.*mean_response.*-1"),
        (("percentile", 0), "above 0"),
        (("percentile", 0.9), "pass 90"),
        (("percentile", 100), "below 100"),
        ({("percentile", 90): 0}, "weight"),
    ):
        refused(words, eo.Objective, CITY, 2, metric=metric)


@pytest.mark.parametrize("evaluator", ["approximate", "exact"])
@pytest.mark.parametrize("capacity", ["loss", "queue"])
def test_an_objective_is_the_evaluation_s_metric(evaluator, capacity):
    e = evaluate(CITY, [0, 1, 1], evaluator, capacity=capacity)
    space = eo.DeploymentSpace(CITY, 3, colocation=True)
    mean, late = e.mean_response, e.late_fraction(7.0)
    for metric, value in (("mean_response", mean), (("late", 7.0), late), (MIX, mean + 20 * late)):
        objective = eo.Objective(CITY, space, evaluator, metric, capacity=capacity)
        assert objective([0, 1, 1]) == pytest.approx(value, abs=1e-6)
        assert objective.evaluation([0, 1, 1]).capacity == capacity


def test_an_objective_counts_what_it_evaluates():
    objective = eo.Objective(CITY, 2)
    one = objective([0, 1])
    assert isinstance(one, float)
    assert objective.evaluations == 1
    many = objective.values([[0, 1], [1, 2], [1, 0]])
    assert (many.shape, objective.evaluations, many[0]) == ((3,), 4, pytest.approx(one, rel=1e-12))
    assert (many[2], objective(["site 1", "site 2"])) == (pytest.approx(one, rel=1e-9), pytest.approx(one, rel=1e-12))
    objective.evaluation([0, 1])  # which is not counted
    for wrong in ([0, 1, 2], [0], [0, 9], []):
        with pytest.raises(InputError):
            objective(wrong)
    refused("2 site indices; got 3", objective.values, [[0, 1, 2]])
    assert objective.evaluations == 5  # nor what failed


@pytest.mark.parametrize("evaluator", ["exact", "approximate", "simulation"])
def test_an_objective_that_was_called_can_be_pickled_and_copied(evaluator):
    options = {"calls": 500, "rng": 1} if evaluator == "simulation" else {}
    objective = eo.Objective(CITY, 2, evaluator, **options)
    value = objective([0, 1])
    assert pickle.loads(pickle.dumps(objective))([0, 1]) == value
    queue, other = copy(objective), options | {"capacity": "queue"}
    queue.options = other
    assert queue([0, 1]) == eo.Objective(CITY, 2, evaluator, **other)([0, 1]) != value
    assert objective([0, 1]) == value


def test_an_objective_knows_its_deployments_name_and_noise():
    objective = eo.Objective(CITY, eo.DeploymentSpace(CITY, 2, pinned=[3], closed=["site 1"]))
    assert (len(objective.space), objective.label) == (2, "mean response (min)")
    assert metric_label(MIX) == "1 x mean response (min) + 20 x fraction of responses of 7 min or more"
    assert not eo.Objective(CITY, 2).noisy
    # A simulation with a fixed seed gives the same calls each time; without one, or with a generator, it does not.
    for options, noisy in (({"rng": 1}, False), ({}, True), ({"rng": np.random.default_rng(1)}, True)):
        simulated = eo.Objective(CITY, 2, "simulation", calls=500, **options)
        assert (simulated.noisy, simulated([0, 1]) != simulated([0, 1])) == (noisy, noisy)


def busiest(evaluation):
    return evaluation.utilizations.max()


def value(metric, sites=(0, 1, 3)):
    return eo.Objective(CITY, len(sites), "exact", metric)(sites)


def test_percentiles_own_functions_and_mixes():
    evaluation = exact_hypercube(CITY, [0, 1, 3])
    minutes = CITY.response_times[[0, 1, 3]].ravel()
    shares = (evaluation.dispatch_fractions * CITY.demand_shares).ravel()
    for q in (50, 90, 99):
        expected = min(t for t in minutes if shares[minutes <= t].sum() >= q / 100)
        assert value(("percentile", q)) == expected
    assert value(lambda e: e.loss_probability) == exact_hypercube(CITY, [0, 1, 3]).loss_probability
    mix = {"mean_response": 2, ("percentile", 90): 0.5}
    assert value(mix) == pytest.approx(2 * value("mean_response") + 0.5 * value(("percentile", 90)))
    for wrong in (lambda e: np.nan, lambda e: "short", lambda e: e.utilizations):
        refused("value of the metric <lambda>", value, wrong)


def test_own_functions_are_searched_pickled_and_known_to_checkpoints():
    objective = eo.Objective(CITY, 2, "exact", busiest)
    everything = objective.space.listing()
    np.testing.assert_array_equal(objective.values(everything), [value(busiest, x) for x in everything])
    assert objective.evaluations == len(everything)
    assert pickle.loads(pickle.dumps(objective))([0, 1]) == objective([0, 1])
    assert eo.optimizers.best_deployment(objective).fun == objective.values(everything).min()
    for method in ("local+", "gp-pm"):
        run = eo.minimize(eo.Objective(CITY, 2, "exact", ("percentile", 90)), method, budget=6, rng=0)
        assert run.fun == min(value(("percentile", 90), x) for x in everything)
    fewer, more = (eo.Objective(eo.datasets.grid_city(8, 3, rng=1), 3, "approximate", m) for m in (busiest, MIX))
    assert enumeration_limit(fewer) < enumeration_limit(more)  # each takes a whole evaluation
    first, same, other = (eo.Objective(CITY, 2, "exact", ("percentile", q)) for q in (90, 90, 95))
    assert describe(first, "local", "local") == describe(same, "local", "local")
    assert describe(first, "local", "local") != describe(other, "local", "local")
