"""Response-time standards against times by hand, a closed form and drawn times."""

import numpy as np
import pytest

import emsopt as eo
from emsopt.errors import InputError
from emsopt.evaluators import STANDARDS, Standard, exact_hypercube, standards

CITY = eo.City([1.0, 3.0], [[3.0, 4.0], [9.0, 8.5]], turnout_times=[1.0, 1.5], service_times=40.0)


def test_limits_are_those_of_the_sources():
    """NFPA 1710 (2020): 60 and 80 s, 240 and 480 s. England since 2017: 7 and 15, 18 and 40, 120, 180 min."""
    limits = {one.name: one.limit * 60 for one in STANDARDS}
    seconds = [60, 80, 240, 480, *(60 * minutes for minutes in (7, 15, 18, 40, 120, 180))]
    assert list(limits.values()) == pytest.approx(seconds)
    assert {one.share for one in STANDARDS} == {0.9, None}


def test_travel_and_turnout_count_by_the_unit_that_answers():
    evaluation = exact_hypercube(CITY, [0, 1])
    near = evaluation.dispatch_fractions[0] @ CITY.demand_shares
    table = standards(CITY, evaluation)
    assert table.loc["nfpa travel bls", "share_within"] == pytest.approx(near)  # 3 and 4 min, at the limit
    assert table.loc["nfpa turnout ems", "share_within"] == pytest.approx(near)
    assert table.loc["nfpa turnout fire", "share_within"] == pytest.approx(near)
    far = evaluation.dispatch_fractions[1] @ CITY.demand_shares
    assert table.loc["nfpa turnout ems", "mean_min"] == pytest.approx(near + 1.5 * far)
    assert table.loc["arp 1 mean", "mean_min"] == pytest.approx(evaluation.mean_response)
    assert np.isnan(table.loc["arp 1 mean", "share_wanted"])
    np.testing.assert_array_equal(table.loc[["arp 2", "arp 3", "arp 4"], "met"], True)
    assert table.loc["nfpa travel bls", "met"] == (near >= 0.9)


def test_the_metric_is_the_share_beyond_the_limit():
    table = standards(CITY, exact_hypercube(CITY, [0, 1]), "nfpa travel bls")
    missed = eo.Objective(CITY, 2, "exact", ("standard", "nfpa travel bls"))
    assert missed([0, 1]) == pytest.approx(1 - table["share_within"].iloc[0])
    assert missed.values([[0, 1]])[0] == missed([0, 1])


def test_times_that_vary_count_with_their_probability():
    city = CITY.replace(travel_cv=0.5, turnout_cv=0.3)
    evaluation = exact_hypercube(city, [0])
    rng = np.random.default_rng(0)
    spread = np.sqrt(np.log(1 + 0.5**2))
    minutes = city.travel_times[0] * np.exp(spread * rng.standard_normal((400_000, 2)) - spread**2 / 2)
    drawn = (minutes <= 4).mean(axis=0) @ city.demand_shares
    found = standards(city, evaluation, ["nfpa travel bls"])["share_within"].iloc[0]
    assert found == pytest.approx(drawn, abs=4 / np.sqrt(400_000))


def test_the_wait_counts_if_the_clock_starts_with_the_call():
    """One unit with a queue is M/M/1: P(wait > t) = ρ exp(-(μ - λ) t)."""
    city = eo.City([1.0], [[4.0]], turnout_times=1, service_times=30)
    evaluation = exact_hypercube(city, [0], capacity="queue")
    own = [Standard("own", "response", "call", 20, 0.8, ""), Standard("own mean", "response", "call", 36, None, "")]
    table = standards(city, evaluation, own, delay=2)
    rate, served = 1 / 60, 1 / 30
    assert table.loc["own", "share_within"] == pytest.approx(1 - 0.5 * np.exp(-(served - rate) * (20 - 2 - 5)))
    assert table.loc["own mean", "mean_min"] == pytest.approx(2 + 0.5 / (served - rate) + 5)
    assert not table.loc["own mean", "met"]
    assert standards(city, evaluation, own, delay=25)["share_within"].iloc[0] == 0


@pytest.mark.parametrize(
    ("which", "options", "words"),
    [
        (["nfpa"], {}, "standard"),
        ([("own", "response")], {}, "standard"),
        ([Standard("own", "drive", "dispatch", 8, 0.9, "")], {}, "counts"),
        ([Standard("own", "travel", "alarm", 8, 0.9, "")], {}, "clock"),
        ([Standard("own", "travel", "call", 8, 0.9, "")], {}, "must count 'response'"),
        ([Standard("own", "travel", "dispatch", 0, 0.9, "")], {}, "limit"),
        ([Standard("own", "travel", "dispatch", 8, 90, "")], {}, "share"),
        (None, {"delay": -1}, "delay"),
    ],
)
def test_wrong_standards_are_refused(which, options, words):
    with pytest.raises(InputError, match=words):
        standards(CITY, exact_hypercube(CITY, [0, 1]), which, **options)


def test_the_evaluation_must_be_of_the_city():
    with pytest.raises(InputError, match="of a deployment of `city`"):
        standards(CITY.replace(turnout_times=2.0), exact_hypercube(CITY, [0, 1]))
