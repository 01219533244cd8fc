"""The navigation panel without a kernel or a browser: true figures, comparable agents, no traceback."""

import pytest
from shown import words

import emsopt as eo
from emsopt import bandits
from emsopt.panels.navigation import AGENT_TITLES
from emsopt.roads import grid_roads

ROUTE = ("r0c0-r0c1", "r3c2-r3c3")


@pytest.fixture(scope="module")
def net():
    return grid_roads(4, 4, jitter=0.2, rng=0)


@pytest.fixture
def panel(net):
    return eo.panels.navigation_panel(net, *ROUTE, horizon=20, rng=0)


def said(panel):
    return words(panel.refs["message"])


def test_figures_are_those_of_the_run(net, panel):
    run = bandits.run(net, *ROUTE, "gp-ts", horizon=20, rng=0)
    assert f"<td>{run.regret:,.0f}</td>" in panel.refs["figures"].value
    for part in (f"<td>{run.excess_energy:,.0f}</td>", f"<td>{len(run.visits)}</td>", f"{len(run.best_path)} edges"):
        assert part in panel.refs["figures"].value
    assert ([view["name"] for view in panel.refs["map"].views], said(panel)) == ([AGENT_TITLES["gp-ts"]], "")
    assert panel.runs[AGENT_TITLES["gp-ts"]].regression is None  # to save memory


@pytest.mark.parametrize(
    ("agent", "rule", "title"),
    [
        ("gp-bucb", bandits.BayesUCB(1.0, 0.5), "GP, Bayes-UCB, ω 1, ξ 0.5"),
        ("bi-ucb", bandits.UCB(0.5), "independent edges, UCB, 0.5 β"),
    ],
)
def test_parameters_of_figure_3_are_those_of_the_rule_and_stay_to_compare(net, panel, agent, rule, title):
    refs = panel.refs
    assert all(refs[name].disabled for name in ("omega", "xi", "factor")), "Thompson sampling has none"
    refs["agent"].value = agent
    assert [refs[name].disabled for name in ("omega", "xi", "factor")] == [agent == "bi-ucb"] * 2 + [agent == "gp-bucb"]
    refs["xi"].value, refs["factor"].value = 0.5, 0.5
    run = bandits.run(net, *ROUTE, (agent[:2], rule), horizon=20, rng=0)
    assert list(panel.runs) == [AGENT_TITLES["gp-ts"], AGENT_TITLES[agent], title]
    assert panel.runs[title].regret == pytest.approx(run.regret)
    assert title in refs["figures"].value
    assert title in refs["regret"].value


@pytest.mark.parametrize("name", ["lengthscale", "noise", "horizon", "seed"])
def test_every_input_changes_the_answer(panel, name):
    refs = panel.refs
    refs["agent"].value = "bi-ucb"  # the others settle at once on so small a town
    before = refs["figures"].value, refs["map"].views
    refs[name].value = {"lengthscale": 0.2, "noise": 0.4, "horizon": 40, "seed": 3}[name]
    assert (refs["figures"].value, refs["map"].views) != before


def test_a_closed_road_is_not_driven(net, panel):
    refs = panel.refs
    refs["close"].click()
    closed = refs["closed"].value
    assert closed in net.ids
    assert f"Closed: {closed}." in refs["figures"].value
    run = bandits.run(net, *ROUTE, "gp-ts", horizon=20, rng=0, closed=[closed])
    assert f"<td>{run.regret:,.0f}</td>" in refs["figures"].value
    refs["close"].click()
    assert len(refs["closed"].value.split(", ")) == 2
    refs["reopen"].click()
    assert "Closed" not in refs["figures"].value


def test_what_is_refused_is_said_and_nothing_stale_stays(panel):
    refs = panel.refs
    refs["closed"].value = "nowhere"
    assert "there is no edge 'nowhere'" in said(panel)
    assert (refs["figures"].value, refs["map"].layout.visibility) == ("", "hidden")
    refs["close"].click()
    assert "No agent has driven" in said(panel)
    refs["closed"].value = ROUTE[0]
    assert "is closed" in said(panel)
    refs["closed"].value = ""
    assert said(panel) == ""
    assert refs["figures"].value
