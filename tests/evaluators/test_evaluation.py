"""An evaluation's measures on an example that can be solved on paper.

Two units, two atoms, μ = 3 an hour each, λ_1 = 2 and λ_2 = 1 an hour; atom 1 prefers unit 1, atom 2 unit 2. With
a = λ/μ = 1 the number of busy units is an Erlang system. Who is busy if one is follows from the balance of
state (1 busy, 2 free): (λ + μ) P10 = λ_1 P00 + μ P11.

loss    P00 = 1 / (1 + a + a²/2) = 2/5, P11 = 1/5, P10 = (2 · 2/5 + 3 · 1/5) / 6 = 7/30, P01 = 2/5 - 7/30 = 5/30
queue   P00 = (1 - a/2) / (1 + a/2) = 1/3, P(2 busy, none waiting) = a²/2 · 1/3 = 1/6, P10 = 7/36, P01 = 5/36,
        P(all busy) = 1/3 (Erlang C), mean wait 1/3 / (2μ - λ) = 1/9 h
"""

import numpy as np
import pytest

import emsopt as eo
from emsopt.evaluators import Evaluation, evaluate, exact_hypercube

NAMES = {"site_names": ["<script>alert(1)</script>", "B & C"], "atom_names": ["<b>north", "south"]}
CITY = eo.City([2.0, 1.0], [[3.0, 9.0], [8.0, 2.0]], turnout_times=1.0, service_times=20.0, **NAMES)
RESPONSE = np.array([[4.0, 10.0], [9.0, 3.0]])
IMMEDIATE = np.array([[17.0, 5.0], [7.0, 19.0]]) / 36  # with a queue: the chance that i is sent to j at once


@pytest.fixture(scope="module")
def loss():
    return exact_hypercube(CITY, [0, 1])


@pytest.fixture(scope="module")
def queue():
    return exact_hypercube(CITY, [0, 1], capacity="queue")


def test_loss_by_hand(loss):
    assert loss.loss_probability == pytest.approx(1 / 5, rel=1e-10)
    assert loss.queue_probability == loss.mean_wait == 0
    np.testing.assert_allclose(loss.utilizations, [7 / 30 + 1 / 5, 5 / 30 + 1 / 5], rtol=1e-10)
    shares = np.array([[2 / 5 + 5 / 30, 5 / 30], [7 / 30, 2 / 5 + 7 / 30]]) / (4 / 5)
    np.testing.assert_allclose(loss.dispatch_fractions, shares, rtol=1e-10)
    np.testing.assert_allclose(loss.atom_response, (shares * RESPONSE).sum(axis=0), rtol=1e-10)
    assert loss.mean_response == pytest.approx(5.125, rel=1e-10)
    np.testing.assert_allclose(loss.unit_shares, shares @ [2 / 3, 1 / 3], rtol=1e-10)


def test_queue_by_hand(queue):
    assert queue.queue_probability == pytest.approx(1 / 3, rel=1e-10)
    assert (queue.mean_wait, queue.loss_probability) == (pytest.approx(60 / 9, rel=1e-10), 0)
    np.testing.assert_allclose(queue.utilizations, [19 / 36, 17 / 36], rtol=1e-10)
    np.testing.assert_allclose(queue.dispatch_fractions, IMMEDIATE + 1 / 6, rtol=1e-10)
    mean = (2 * (23 * 4 + 13 * 9) + (11 * 10 + 25 * 3)) / 36 / 3
    assert queue.mean_response == pytest.approx(mean, rel=1e-10)


def test_late_fraction_counts_from_the_threshold_on(loss):
    """Weights of the four response times: 3 min 19/72, 4 min 34/72, 9 min 14/72, 10 min 5/72. Percentiles occur."""
    late = loss.late_fraction([0, 3, 3.01, 4, 4.5, 9, 9.5, 10, 10.01, 1e9])
    np.testing.assert_allclose(late * 72, [72, 72, 53, 53, 19, 19, 5, 5, 0, 0], atol=1e-9)
    assert isinstance(loss.late_fraction(8), float)
    found = [loss.percentile(100 * k / 72) for k in (1, 18.9, 19.1, 52.9, 53.1, 66.9, 67.1, 72)]
    assert found == [3, 3, 4, 4, 9, 9, 10, 10]
    assert loss.percentile_90 == loss.percentile(90) == 9


def test_default_evaluator_is_exact_up_to_twelve_units():
    city = CITY.with_offered_load(0.3, 12)
    assert evaluate(city, [0, 1] * 6).evaluator == "exact"
    assert evaluate(city, [0, 1] * 6 + [0]).evaluator == "approximate"
    assert evaluate(CITY, [0, 1], "approximate", capacity="queue").capacity == "queue"


def test_frames_and_a_unit_that_answers_nothing(loss):
    units = loss.to_frame()
    assert (units["site"].tolist(), units["name"].tolist()) == ([0, 1], list(CITY.site_names))
    np.testing.assert_allclose(units["share_of_calls"], [39 / 72, 33 / 72], rtol=1e-10)
    np.testing.assert_allclose(units["mean_response_min"], [(34 * 4 + 5 * 10) / 39, (14 * 9 + 19 * 3) / 33], rtol=1e-10)
    atoms = loss.atoms_frame()
    assert atoms["atom"].tolist() == ["<b>north", "south"]
    np.testing.assert_allclose(atoms["share_of_calls"], [2 / 3, 1 / 3])
    assert atoms["answered_most_by"].tolist() == list(CITY.site_names)
    np.testing.assert_allclose(atoms["mean_response_min"], loss.atom_response)
    measures = np.array([0.5, 0.0]), np.array([[1.0, 1.0], [0.0, 0.0]]), 0.0, np.full(2, 0.5), 1, 0.0
    idle = Evaluation.of(CITY, np.array([0, 1]), "exact", "loss", 0.5, *measures)
    assert np.isnan(idle.to_frame()["mean_response_min"][1])
    assert (idle.percentile(100), idle.late_fraction(9)) == (10, pytest.approx(1 / 3))


def test_summaries_and_names_that_stay_text(loss, queue):
    wanted = {"mean_response_min": 5.125, "late_over_8_min": 19 / 72, "percentile_90_min": 9}
    wanted |= {"mean_utilization": 0.4, "max_utilization": 13 / 30, "loss_probability": 0.2}
    assert loss.summary() == pytest.approx(wanted)
    figures = queue.summary(3.5)
    assert figures["late_over_3.5_min"] == queue.late_fraction(3.5)
    assert (figures["queue_probability"], figures["mean_wait_min"]) == pytest.approx((1 / 3, 60 / 9))
    assert "<script" not in (html := loss._repr_html_())
    assert "B &amp; C" in html
