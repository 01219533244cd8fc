"""The control panel without a kernel or a browser: true answers at every setting, no stale run, no traceback."""

import re
from dataclasses import replace

import pytest
from shown import cells, words

import emsopt as eo
from emsopt.optimizers import LEARNERS, bocvs


@pytest.fixture
def panel():
    return eo.panels.control_panel(eo.problems.hill_control(), budget=4, rng=0)


def answers(panel):
    """Return which sets the table calls good enough, and which the target."""
    said = {name: row[-1] for name, row in cells(panel.refs["sets"]).items()}
    return [text.startswith("yes") for text in said.values()], [text.endswith("cheapest") for text in said.values()]


def test_the_table_answers_for_alpha_and_costs(panel):
    """The hill's sets reach 0.455, 0.945 and 1: x2, x1, both."""
    refs = panel.refs
    assert cells(refs["sets"])["x1"] == ["0.3", "0.9446", "94.5%", "yes, the cheapest"]
    assert answers(panel) == ([False, True, True], [False, True, False])
    refs["alpha"].value = 0.03
    assert answers(panel) == ([False, False, True], [False, False, True])
    refs["alpha"].value = 0.1
    refs["costs"][2].value = 0.2
    assert answers(panel) == ([False, True, True], [False, False, True])
    assert "good enough: all." in words(refs["sets"])
    refs["costs"][1].value = 0.0
    assert (refs["costs"][1].value, refs["problem"]().costs.tolist()) == (0.01, [0.1, 0.01, 0.2])


@pytest.mark.parametrize("method", LEARNERS)
def test_a_run_is_the_packages_run(panel, method, drawn):
    refs = panel.refs
    refs["method"].value, refs["seed"].value, refs["alpha"].value = method, 3, 0.2
    refs["costs"][1].value = 0.5
    refs["play"].click()
    problem = replace(eo.problems.hill_control(), costs=[0.1, 0.5, 1.0])
    options = {"halving": False} if method == "unknown-cost" else {}
    run = bocvs(problem, method, budget=4, rng=3, alpha=0.2, **options)
    shown = cells(refs["figures"])
    assert (shown["plays"], shown["spent"]) == ([f"{run.plays}"], [f"{run.spent:.2f}"])
    assert shown["simple regret"] == [f"{run.history['simple_regret'].iloc[-1]:.4f}"]
    assert shown["cost regret"] == [f"{run.history['cost_regret'].iloc[-1]:.2f}"]
    assert shown["plays of the target"] == [f"{(run.history['set'] == 1).mean():.0%}"]
    assert problem.set_names[run.control_set] in words(refs["figures"])
    assert re.search(r"<img [^>]*alt='[^']{20,}'", refs["picture"].value)
    assert refs["run"]().history["x"].tolist() == run.history["x"].tolist()
    assert refs["halving"].disabled == (method != "unknown-cost")
    assert not refs["play"].disabled


@pytest.mark.parametrize(
    ("name", "value"), [("variance", "0.04"), ("alpha", 0.2), ("budget", 3.0), ("seed", 1), ("method", "ts-psq")]
)
def test_a_run_of_other_settings_is_taken_away(panel, name, value):
    refs = panel.refs
    refs["play"].click()
    assert refs["picture"].value
    refs[name].value = value
    assert refs["picture"].value == refs["figures"].value == ""
    assert refs["run"]() is None


def test_what_cannot_be_played_is_said_and_the_tolerance_can_be_halved(panel, monkeypatch):
    refs = panel.refs
    refs["halving"].value = True
    refs["play"].click()
    run = bocvs(eo.problems.hill_control(), budget=4, rng=0)
    assert refs["run"]().history["set"].tolist() == run.history["set"].tolist()
    monkeypatch.setattr("emsopt.panels.control.MAX_PLAYS", 12)
    for field in refs["costs"]:
        field.value = 0.01
    refs["method"].value = "ucb-cvs"
    refs["play"].click()
    assert "Stopped after 12 plays" in words(refs["message"])
    refs["alpha"].value = 0.3
    assert refs["message"].value == ""


def test_variance_and_cost_set_are_the_papers():
    """The table is that of the ready-made problem; sets are counted from their worst value."""
    refs = eo.panels.control_panel(eo.problems.levy_control(), rng=0).refs
    refs["variance"].value, refs["cost_set"].value = "0.04", "moderate"
    wanted = eo.problems.levy_control("moderate", 0.04)
    assert refs["problem"]().marginals == wanted.marginals
    shown = [(row[0], row[1]) for row in cells(refs["sets"]).values()]
    assert shown == [(f"{c:g}", f"{v:.4g}") for c, v in zip(wanted.costs, wanted.set_values, strict=True)]
    refs["variance"].value = refs["cost_set"].value = "as given"
    assert refs["problem"]().costs.tolist() == eo.problems.levy_control().costs.tolist()
