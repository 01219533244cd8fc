"""Comparisons under uncertainty: a city with a known posterior, symmetry, dominance, closed forms and messages."""

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import pytest
from refusals import refused
from synthetic_log import synthetic_log

import emsopt as eo
from emsopt.calls.drawn_cities import drawn_cities
from emsopt.errors import UnstableQueueError
from emsopt.planning import compare


@dataclass(frozen=True)
class Known:
    """Two sites and two atoms far apart; the share of the first atom is uncertain, normal with a known variance."""

    share: float = 0.5
    sd: float = 0.05
    travel_sd: float = 0.0  # of the time of site 1, which no log tells
    weeks: float = 4.0

    def city(self):
        return self.at(self.share, 0.0)

    def at(self, share, extra):
        travel = [[2.0, 12.0], [12.0 + extra, 2.0]]
        rates = [share * 1e-3, (1 - share) * 1e-3]  # so few calls that units are always free
        return eo.City(rates, travel, turnout_times=1, service_times=30)

    def draws(self, n, rng=None, *, vary=("demand", "travel", "service"), more=1.0):
        seeds = np.random.SeedSequence(rng).spawn(2)
        for d, t in zip(*(np.random.default_rng(seed).standard_normal(n) for seed in seeds), strict=True):
            share = self.share + ("demand" in vary) * self.sd / np.sqrt(more) * d
            yield self.at(share, ("travel" in vary) * self.travel_sd * t)


def test_difference_probability_and_weeks_are_those_of_the_closed_form():
    """One unit answers all calls: the difference is 10 (2 s - 1) min with the share s of atom 0, normal."""
    answer = compare(Known(share=0.48), {"at 0": [0], "at 1": [1]}, draws=1500, rng=1)
    mean, sd = 10 * (2 * 0.48 - 1), 10 * 2 * 0.05
    assert answer.difference.mean == pytest.approx(mean, abs=4 * sd / np.sqrt(1500))
    assert answer.difference[1:] == pytest.approx((mean - 1.645 * sd, mean + 1.645 * sd), abs=0.15)
    assert "(90 % interval: 1.2 higher to 1.9 min lower)" in str(answer)
    assert answer.probability_better == pytest.approx(0.6554, abs=0.05)  # Φ(0.4)
    assert answer.variances["demand"] == pytest.approx(answer.variances["all"], rel=0.2)
    assert answer.variances["travel"] == answer.variances["service"] == 0
    # The interval excludes 0 if 0.4 > 1.645 sd / sqrt(k): k = (1.645 / 0.4)² times the four weeks.
    expected = 4 * (answer.variances["all"] * (1.6449 / answer.difference.mean) ** 2 - 1)
    assert answer.more_weeks == pytest.approx(expected, rel=1e-3)
    assert f"about {answer.more_weeks:.0f} more weeks" in str(answer)
    assert compare(Known(share=0.3), {"at 0": [0], "at 1": [1]}, draws=100, rng=1).more_weeks == 0


def test_what_no_log_tells_is_never_settled():
    answer = compare(Known(share=0.5, sd=0.01, travel_sd=2.0), {"at 0": [0], "at 1": [1]}, draws=400, rng=2)
    assert answer.variances["unlimited"] == pytest.approx(answer.variances["travel"], rel=1e-6)
    assert answer.more_weeks == np.inf
    assert "No amount of such data would settle it" in str(answer)


def test_more_units_are_better_and_ties_are_named():
    answer = compare(Known(), {"one": [0], "two": [0, 1]}, draws=100, rng=0)
    assert answer.probability_better == 1
    assert answer.difference.high < 0
    assert "The fleets differ: 'two' has 2 units, 'one' has 1." in str(answer)
    assert "more than 99 %" in str(answer)
    assert answer.by_atom["verdict"][1] == "gains"
    zones = "By zone, of 2: 1 (50 % of the calls) better, 1 (50 % of the calls) the same within 0.079 min."
    assert zones in str(answer)
    assert answer.by_atom["difference"][1] == pytest.approx(-10, rel=1e-3)
    answer = compare(Known(share=0.49), {"a": [0], "b": [1], "both": [0, 1]}, draws=500, rng=0)
    table = answer.to_frame()
    assert (table["probability_best"].sum(), table.loc["both", "probability_better"]) == (pytest.approx(1), 1)
    assert np.isnan(table.loc["a", "probability_better"])
    assert answer.tied == ("both",)
    assert set(compare(Known(share=0.49), {"a": [0], "b": [1]}, draws=500, rng=0).tied) == {"a", "b"}


def test_messages_say_what_is_wrong():
    for arguments, message in (
        ({"deployments": {"a": [0], "b": [7]}}, r"`deployments\['b'\]` must be whole site indices from 0 to 1; got 7"),
        ({"deployments": {"a": [0]}}, "two or more named deployments"),
        ({"deployments": [[0], [1]]}, "two or more named deployments"),
        ({"deployments": {"a": [0], None: [1]}}, "text as each name; got None"),
        ({"deployments": {"a": [0], "b": ["nowhere"]}}, "no site is named 'nowhere'"),
        ({"draws": 20}, "`draws` must be a whole number of at least 100; got 20"),
        ({"evaluator": "simulation"}, "must be 'exact' or 'approximate'"),
        ({"capacity": "wait"}, "`capacity` must be one of"),
        ({"metric": "median"}, "`metric` must be"),
        ({"fit": 3}, "`fit` must be what emsopt.calls.calibrate returns; got 3"),
    ):
        refused(message, compare, **{"fit": Known(), "deployments": {"a": [0], "b": [1]}} | arguments)


def test_a_drawn_city_whose_calls_outgrow_the_units_is_named():
    class Rush(Known):
        def draws(self, n, rng=None, **options):
            for k, city in enumerate(super().draws(n, rng, **options)):
                yield city.scaled(1e4 if k == 2 else 1)

    with pytest.raises(UnstableQueueError, match="in drawn city 3, calls arrive at 10 per hour"):
        compare(Rush(), {"a": [0], "b": [1]}, capacity="queue", rng=0)


@pytest.fixture(scope="module")
def small_fit():
    """Three weeks of a synthetic log of four stations, calibrated."""
    stations = pd.DataFrame({"name": list("ABCD"), "lon": [0.0, 0.06, 0.0, 0.06], "lat": [45.0, 45.0, 45.04, 45.04]})
    log = synthetic_log(stations, calls_per_day=60, days=21, spread_km=1.0, rng=1)
    return eo.calls.calibrate(log, stations), [0, 1, 2, 3]


def test_a_calibrated_log_is_compared_by_itself(small_fit):
    fit, today = small_fit
    answer = compare(fit, {"today": today, "two at A": ["A", "A", "C", "D"]}, draws=200, rng=0)
    assert (answer.weeks, answer.evaluator) == (pytest.approx(3, abs=0.2), "exact")
    assert answer.probability_better < 0.01
    assert answer.difference.low > 0
    assert (answer.variances[["demand", "travel", "service"]] > 0).all()
    assert answer.variances["unlimited"] < answer.variances["all"]
    gaining = answer.by_atom.set_index("atom")["verdict"]
    assert {"gains", "loses"} >= set(gaining) - {"same", "unclear"}


@pytest.mark.parametrize(("capacity", "lost"), [("loss", True), ("queue", False)])
def test_lost_calls_are_told_beside_the_response(capacity, lost):
    """Erlang's formula: at 0.5 erlangs one unit loses a third of the calls, two lose a thirteenth."""

    class Busy(Known):
        def at(self, share, extra):
            return super().at(share, extra).replace(arrival_rates=[0.5, 0.5])  # of 30 min each

    answer = compare(Busy(), {"one": [0], "two": [0, 0]}, draws=100, rng=0, capacity=capacity)
    assert answer.lost == pytest.approx([1 / 3, 1 / 13] if lost else [0, 0])
    assert answer.to_frame()["lost"].tolist() == answer.lost.tolist()
    told = "All units are busy for 33.33% of the calls with 'one' and 7.69% with 'two'."
    assert (told in str(answer)) == lost


def test_same_deployments_seeds_and_mirrored_pairs():
    answer = compare(Known(), {"a": [0, 1], "b": [0, 1]}, draws=100, rng=0)
    assert (answer.difference, answer.probability_better) == ((0, 0, 0), 0.5)
    one, again = (compare(Known(share=0.48), {"a": [0], "b": [1]}, draws=300, rng=3) for _ in range(2))
    np.testing.assert_array_equal(one.values, again.values)
    other = compare(Known(share=0.48), {"b": [1], "a": [0]}, draws=300, rng=3)
    assert one.probability_better == pytest.approx(1 - other.probability_better, abs=1e-12)
    assert one.difference == pytest.approx((-other.difference.mean, -other.difference.high, -other.difference.low))
    assert one.more_weeks == pytest.approx(other.more_weeks)


def test_late_responses_are_told_in_percentage_points_and_small_differences_are_none():
    answer = compare(Known(share=0.4, sd=0.01), {"a": [0], "b": [1]}, draws=100, rng=0, metric=("late", 8.0))
    assert answer.difference.mean == pytest.approx(2 * 0.4 - 1, abs=0.01)
    assert "20 percentage points lower" in str(answer)
    answer = compare(Known(sd=0), {"a": [0, 1], "b": [0, 0, 1]}, draws=100, rng=0)
    assert (answer.by_atom["verdict"] == "same").all()
    assert "In none of the 2 zones does it change by more than 0.03 min." in str(answer)


def test_drawn_cities_scatter_around_the_estimate_as_stated(small_fit):
    fit, _ = small_fit
    cities = drawn_cities(fit)
    estimate, drawn, only = cities.city(), list(cities.draws(400, 4)), next(cities.draws(1, 4, vary=["demand"]))
    np.testing.assert_array_equal(drawn[0].arrival_rates, only.arrival_rates)
    np.testing.assert_array_equal(only.travel_times, estimate.travel_times)
    for name, relative in (("arrival_rates", 0.1), ("travel_times", 0.02), ("service_times", 0.01)):
        mean = np.mean([getattr(city, name) for city in drawn], axis=0)
        assert mean == pytest.approx(getattr(estimate, name), rel=relative, abs=0.02)
    unlimited = next(cities.draws(1, 4, vary=["demand", "service"], more=np.inf))
    for name in ("arrival_rates", "service_times", "travel_cv", "turnout_cv"):
        assert getattr(unlimited, name) == pytest.approx(getattr(estimate, name))
    refused("`vary` must be one of .*'travel', 'service'; got 'speed'", next, cities.draws(1, 0, vary=["speed"]))
    for name, known in (("travel_cv", fit.answer_law.cv), ("turnout_cv", fit.turnout.cv)):
        logs = np.log([getattr(city, name) / getattr(estimate, name) for city in drawn])
        assert logs.std() == pytest.approx(known.log_error, rel=0.15)
        assert abs(logs.mean()) < 4 * known.log_error / 20


def test_a_unit_less_may_look_better_and_the_answer_says_why():
    """A unit that is sent first by mistake in some draws: without it, calls go to one that is closer there."""

    class Mistaken(Known):
        def draws(self, n, rng=None, **options):
            for k, city in enumerate(super().draws(n, rng, **options)):
                travel = city.travel_times + ([[20, 0], [0, 0]] if k % 4 == 0 else 0)
                yield city.replace(travel_times=travel, preference=self.city().response_times)

    for first, second in (("both", "one"), ("one", "both")):
        pair = {name: {"both": [0, 1], "one": [1]}[name] for name in (first, second)}
        answer = compare(Mistaken(), pair, draws=100, rng=0)
        assert answer.probability_better == pytest.approx(0.25 if second == "one" else 0.75)
        assert "'one' is 'both' with fewer units. It is better in 25 % of the drawn cities, there by 5" in str(answer)
        assert "That is no reason to remove units." in str(answer)
    assert "with fewer units" not in str(compare(Known(), {"both": [0, 1], "one": [1]}, draws=100, rng=0))

    class Remote(Known):  # a second unit 50 minutes from everywhere answers what the first one loses
        def at(self, share, extra):
            return super().at(share, extra).replace(arrival_rates=[0.5, 0.5], travel_times=[[2, 2], [50, 50]])

    answer = compare(Remote(), {"both": [0, 1], "one": [0]}, draws=100, rng=0)
    assert "or it loses calls that are far. That is no reason to remove units." in str(answer)
    assert "All units are busy for 7.69% of the calls with 'both' and 33.33% with 'one'." in str(answer)


def test_options_are_those_of_the_city_of_the_fit(small_fit):
    fit, today = small_fit
    pair = {"today": today, "two at A": ["A", "A", "C", "D"]}
    values = [compare(fit, pair, draws=100, rng=0, **more).values for more in ({}, {"reach_km": 2})]
    assert not np.allclose(*values)
    refused("there is no option 'reach'; there are area_name, areas, cell_km", compare, fit, pair, draws=100, reach=2)
    options = {"hours": range(8, 20), "weekdays": ["Mon", "Tue"], "cell_km": 1.0, "turnout_times": 1.0}
    cities, city = drawn_cities(fit, **options), fit.city(**options)
    assert (cities.city().atom_names, cities.city().turnout_times.tolist()) == (city.atom_names, [1.0] * 4)
    assert drawn_cities(fit, reach_km=2).city().total_rate < drawn_cities(fit).city().total_rate
    rates = np.mean([drawn.arrival_rates for drawn in cities.draws(400, 0, vary=["demand"])], axis=0)
    assert rates.sum() == pytest.approx(city.total_rate, rel=0.03)
    assert rates == pytest.approx(city.arrival_rates, abs=0.03)


@pytest.mark.parametrize("evaluator", ["exact", "approximate"])
def test_values_are_those_of_the_evaluator(evaluator):
    known = replace(Known(), sd=0.0)
    answer = compare(known, {"a": [0], "b": [0, 1]}, draws=100, evaluator=evaluator)
    for k, sites in enumerate(answer.sites):
        value = eo.evaluators.by_name.evaluate(known.city(), sites, evaluator).mean_response
        assert answer.values[:, k] == pytest.approx(value, rel=1e-12)
