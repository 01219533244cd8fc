"""Metrics that are functions of an evaluation: percentiles, groups, utilisation, cost of stations, own functions."""

import pickle

import numpy as np
import pytest

import emsopt as eo
from emsopt.errors import InputError
from emsopt.evaluators import exact_hypercube, groups
from emsopt.optimizers.deployments.swaps import affordable
from emsopt.optimizers.description import describe

CITY = eo.City(
    [1.0, 0.5, 0.3, 0.8],
    [[3.0, 8.0, 5.0, 6.0], [9.0, 2.0, 4.0, 3.0], [6.0, 6.0, 1.0, 7.0], [4.0, 5.0, 9.0, 2.0]],
    turnout_times=[1.0, 2.0, 1.0, 1.0],
    service_times=40.0,
)
LABELS = ["north", "south", "north", "south"]
SITES = [0, 1, 3]


def by_hand(sites=SITES, cost=lambda minutes: minutes):
    """Return the demand share and the mean cost of north and south, from the dispatch fractions."""
    shares = exact_hypercube(CITY, sites).dispatch_fractions
    demand = CITY.arrival_rates / CITY.arrival_rates.sum()
    by_atom = sum(shares[i] * cost(CITY.turnout_times[k] + CITY.travel_times[k]) for i, k in enumerate(sites))
    weights = np.array([demand[[0, 2]].sum(), demand[[1, 3]].sum()])
    means = [demand[part] @ by_atom[part] / demand[part].sum() for part in ([0, 2], [1, 3])]
    return weights, np.array(means)


def value(metric, sites=SITES):
    return eo.Objective(CITY, len(sites), "exact", metric)(sites)


def test_worst_range_and_gini_follow_their_definitions():
    weights, means = by_hand()
    assert value(("worst", LABELS)) == pytest.approx(means.max())
    assert value(("range", LABELS)) == pytest.approx(abs(means[0] - means[1]))
    gini = weights[0] * weights[1] * abs(means[0] - means[1]) / (weights @ means)
    assert value(("gini", LABELS)) == pytest.approx(gini)
    late = by_hand(cost=lambda minutes: minutes >= 5)[1]
    assert value(("worst", np.array(LABELS), 5.0)) == pytest.approx(late.max())
    assert value(("gini", [0, 0, 0, 0])) == pytest.approx(0, abs=1e-12)


def test_gini_is_the_mean_difference_of_many_groups():
    city = eo.datasets.grid_city(n_sites=9, units=3, rng=3)
    evaluation = eo.evaluators.approximate_hypercube(city, [0, 4, 8])
    w, x = evaluation.demand_shares, evaluation.atom_response
    expected = (w[:, None] * w * abs(x[:, None] - x)).sum() / (2 * w @ x)
    assert groups.gini(evaluation, np.arange(city.n_atoms)) == pytest.approx(expected)
    assert groups.gini(evaluation, np.arange(city.n_atoms), threshold=1e6) == 0


def test_groups_without_calls_are_left_out():
    city = CITY.replace(arrival_rates=[1.0, 0, 0.3, 0])
    evaluation = exact_hypercube(city, SITES)
    table = eo.evaluators.by_group(evaluation, LABELS, 5.0)
    assert table.index.tolist() == ["north"]
    assert table.loc["north"].tolist() == pytest.approx([1, evaluation.mean_response, evaluation.late_fraction(5.0)])


def test_the_table_of_groups_agrees_with_the_metrics():
    weights, means = by_hand()
    table = eo.evaluators.by_group(exact_hypercube(CITY, SITES), LABELS, 5.0)
    np.testing.assert_allclose(table["share_of_calls"], weights)
    np.testing.assert_allclose(table["mean_response_min"], means)
    assert table["late_over_5_min"].max() == pytest.approx(value(("worst", LABELS, 5.0)))


def test_labels_may_come_from_an_iterator_and_are_checked_before_use():
    evaluation = exact_hypercube(CITY, SITES)
    assert eo.evaluators.by_group(evaluation, iter(LABELS)).equals(eo.evaluators.by_group(evaluation, LABELS))
    with pytest.raises(InputError, match="texts or numbers"):
        eo.evaluators.by_group(evaluation, [[label] for label in LABELS])


def test_labels_of_metrics_count_groups_and_name_standards():
    pairs = [("north", 1), ("south", 1), ("north", 1), ("south", 2)]
    assert eo.Objective(CITY, 2, "exact", ("worst", pairs)).label == "mean response of the worst of 3 groups (min)"
    own = eo.evaluators.Standard("county", "response", "dispatch", 10, 0.85, "county code")
    assert eo.Objective(CITY, 2, "exact", ("standard", own)).label == "fraction of responses beyond county"


def test_percentiles_are_those_of_the_calls():
    evaluation = exact_hypercube(CITY, SITES)
    minutes = CITY.response_times[SITES].ravel()
    shares = (evaluation.dispatch_fractions * CITY.demand_shares).ravel()
    for q in (50, 90, 99):
        expected = min(t for t in minutes if shares[minutes <= t].sum() >= q / 100)
        assert value(("percentile", q)) == expected


def test_utilisation_and_station_cost():
    busy = exact_hypercube(CITY, SITES).utilizations
    assert value("utilization") == pytest.approx(busy.mean())
    assert value("busiest") == pytest.approx(busy.max())
    assert value(("station_cost", [5, 7, 100, 1])) == 13
    assert value(("station_cost", [5, 7, 100, 1]), [0, 0, 3]) == 6
    twins = eo.City([1.0], [[3.0], [3.0], [4.0]], turnout_times=1, service_times=30)
    assert eo.Objective(twins, 3, "exact", ("station_cost", [5, 5, 2]))([0, 1, 2]) == 7  # one station, listed twice


def test_own_functions_and_mixes():
    assert value(lambda e: e.loss_probability) == exact_hypercube(CITY, SITES).loss_probability
    mix = {"mean_response": 2, ("percentile", 90): 0.5}
    assert value(mix) == pytest.approx(2 * value("mean_response") + 0.5 * value(("percentile", 90)))
    for wrong in (lambda e: np.nan, lambda e: "short", lambda e: e.utilizations):
        with pytest.raises(InputError, match="value of the metric <lambda>"):
            value(wrong)


def test_values_of_many_deployments_are_those_of_each():
    objective = eo.Objective(CITY, 2, "exact", ("worst", LABELS))
    everything = objective.space.listing()
    np.testing.assert_array_equal(objective.values(everything), [value(("worst", LABELS), x) for x in everything])
    assert objective.evaluations == len(everything)
    assert pickle.loads(pickle.dumps(objective))([0, 1]) == objective([0, 1])


def test_searches_minimise_them():
    objective = eo.Objective(CITY, 2, "exact", ("worst", LABELS))
    assert eo.optimizers.best_deployment(objective).fun == objective.values(objective.space.listing()).min()
    for method in ("local+", "gp-pm"):
        run = eo.minimize(eo.Objective(CITY, 2, "exact", ("percentile", 90)), method, budget=6, rng=0)
        assert run.fun == min(value(("percentile", 90), x) for x in objective.space.listing())


def test_a_checkpoint_knows_the_labels():
    first, other = (eo.Objective(CITY, 2, "exact", ("worst", labels)) for labels in (LABELS, LABELS[::-1]))
    assert describe(first, "local", "local") == describe(
        eo.Objective(CITY, 2, "exact", ("worst", LABELS)), "local", "local"
    )
    assert describe(first, "local", "local") != describe(other, "local", "local")


@pytest.mark.parametrize(
    ("metric", "words"),
    [
        (("worst", LABELS[:3]), "4 labels, one per atom; got 3"),
        (("worst", "north"), "4 labels, one per atom; got 'north'"),
        (("gini", ["north", None, "north", np.nan]), "some are missing"),
        (("gini", [[0], [1], [0], [1]]), "texts or numbers"),
        (("range",), "metric"),
        (("range", LABELS, -1), "threshold"),
        (("percentile", 0), "above 0"),
        (("percentile", 0.9), "pass 90"),
        (("percentile", 100), "below 100"),
        (("percentile", "90"), "percent"),
        (["percentile", 90], "metric"),
        (("station_cost", [1, 2]), "shape"),
        (("station_cost", [1, 2, 3, -4]), "at least 0"),
        (("standard", "nfpa"), "nfpa travel bls"),
        (("standard", "arp 1"), "starts with the dispatch"),
        ({("percentile", 90): 0}, "weight"),
        (np.zeros(3), "metric"),
    ],
)
def test_wrong_metrics_are_refused_at_once(metric, words):
    with pytest.raises(InputError, match=words):
        eo.Objective(CITY, 2, "exact", metric)


def test_what_needs_a_mean_over_calls_says_so():
    with pytest.raises(InputError, match="mean over calls"):
        eo.evaluators.metrics.metric_costs(CITY, ("percentile", 90))


def test_fewer_deployments_are_enumerated_where_each_takes_a_whole_evaluation():
    city = eo.datasets.grid_city(n_sites=8, units=3, rng=1)
    mean, worst = (eo.Objective(city, 3, "approximate", metric) for metric in ("mean_response", "busiest"))
    assert affordable(worst) < affordable(mean)


def test_by_group_takes_evaluations_only():
    with pytest.raises(InputError, match=r"`evaluation` must be an emsopt\.evaluators\.Evaluation; got City"):
        eo.evaluators.by_group(CITY, LABELS)
