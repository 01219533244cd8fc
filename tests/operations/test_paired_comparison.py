"""Differences on the same calls, and searched compliance tables."""

import numpy as np
import pytest
from refusals import refused

import emsopt as eo
from emsopt.operations import Policy, System, best_table, compare, simulate

SYSTEM, SITES = eo.datasets.load_auckland()
RULE = Policy(coverage=7.0, busy=0.2, patience=20)


def test_intervals_of_differences_hold_the_truth_as_often_as_they_say():
    """The exact hypercube knows the difference of two deployments."""
    city = eo.City([2.0, 1.0], [[3.0, 8.0], [9.0, 2.0]], turnout_times=1.5, service_times=40)
    exact = [eo.evaluators.exact_hypercube(city, sites).mean_response for sites in ([0, 1], [0, 0])]
    found = [compare(System(city), [0, 1], [0, 0], capacity="loss", calls=10_000, rng=seed) for seed in range(60)]
    parts = [one.difference("mean_response") for one in found]
    inside = sum(part.low < exact[1] - exact[0] < part.high for part in parts)
    assert 53 <= inside <= 60  # binomial, 60 intervals of 95 %


def test_pairs_are_more_certain_than_single_runs():
    found = compare(SYSTEM, SITES, (SITES, RULE), calls=20_000, rng=0)
    late = found.difference()
    assert late.value == pytest.approx(found.b.late_share - found.a.late_share)
    singles = [np.diff(one.interval("late"))[0] for one in (found.a, found.b)]
    assert late.high - late.low < 0.7 * np.hypot(*singles)
    assert late.high < 0
    assert found.to_frame().loc["late", "difference"] == late.value
    assert "points" in repr(found)
    same = compare(SYSTEM, SITES, list(SITES), calls=1_000, rng=np.random.default_rng(1))
    assert same.difference("mean_response") == (0, 0, 0)
    settings = {"calls": 2_000, "rng": 0}
    assert repr(compare(SYSTEM, (SITES, None), (SITES, RULE), **settings)) == repr(
        compare(SYSTEM, SITES, (SITES, RULE), **settings)
    )
    refused(r"pairs such as \(sites, policy\); got a policy alone", compare, SYSTEM, SITES, RULE)


def test_searched_tables_are_better_on_their_own_calls():
    start = best_table(SYSTEM, SITES, steps=0)
    assert sorted(start.table[-1]) == sorted(SITES)
    assert all(set(few) <= set(many) for few, many in zip(start.table, start.table[1:], strict=False))
    found = best_table(SYSTEM, SITES, start, steps=40, calls=2_000, rng=3)
    seed = int(np.random.default_rng(3).integers(2**62))
    values = [simulate(SYSTEM, SITES, policy=rule, calls=2_000, rng=seed).late_share for rule in (start, found)]
    assert values[1] < values[0]
    assert found.moves == 0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: compare(SYSTEM, SITES, (SITES, "none")), "sites"),
        (lambda: compare(SYSTEM, SITES, SITES, calls=1_000, rng=0).difference("speed"), "measure"),
        (lambda: best_table(SYSTEM, SITES, "closest"), "policy"),
        (lambda: Policy("coverage"), "needs `coverage`"),
        (lambda: Policy(instant=True), "needs `table`"),
        (lambda: Policy(coverage=7, patience=0), "patience"),
    ],
)
def test_bad_input_says_what_was_expected(make, message):
    refused(message, make)
