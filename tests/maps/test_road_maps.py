"""Maps of exploration, interactive and still: they draw the visits they are given, refuse others, and leak nothing."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import LineCollection
from refusals import refused

from emsopt import bandits, plots
from emsopt.maps.roads import VISIT_CLASSES, exploration_map
from emsopt.roads import RoadNetwork, grid_roads

NASTY = "</script><script>alert(1)</script>"
ROUTE = ("r0c0-r0c1", "r3c2-r3c3")


@pytest.fixture(scope="module")
def net():
    return grid_roads(4, 4, jitter=0.2, rng=0)


@pytest.fixture(scope="module")
def run(net):
    return bandits.run(net, *ROUTE, "bi-ucb", horizon=30, rng=0)


def page_data(html):
    return json.loads(re.search(r'id="data">(.*?)</script>', html, re.DOTALL)[1])


def test_the_page_holds_what_was_given(net, run):
    """And what is given of a run are the visits in its history."""
    paths, counted = run.history["path"], run.visits
    for row in counted.itertuples():
        on = [row.edge in path for path in paths]
        assert (sum(on), 1 + on.index(True)) == (row.visits, row.first_round)
    assert set(counted["edge"]) == set(np.concatenate(paths.tolist()))
    chart = exploration_map(net, {"one": run, "two": counted}, route=ROUTE, best=run.best_path, rounds=30)
    data = page_data(chart.html)
    assert [view["name"] for view in data["views"]] == ["one", "two"]
    for view in data["views"]:
        assert (view["edges"], view["visits"]) == (counted["edge"].tolist(), counted["visits"].tolist())
        assert view["since"] == counted["first_round"].tolist()
    assert (data["rounds"], data["best"]) == (30, list(run.best_path))
    assert [end[1] for end in data["route"]] == net.edges(ROUTE).tolist()
    for steps, line in zip(data["net"]["courses"], net.polylines, strict=True):
        points = np.cumsum(np.reshape(steps, (-1, 2)), axis=0)[:, ::-1] / data["net"]["scale"]
        np.testing.assert_allclose(points, line, atol=0.51)  # whole metres


def test_longitudes_and_latitudes_keep_five_digits():
    lines = [[[7.41234, 43.73], [7.42, 43.74]], [[7.42, 43.74], [7.41234, 43.73]]]
    two = {"lengths": [100.0, 90.0], "speed_limits": [10.0, 9.0], "connections": [(0, 1), (1, 0)]}
    net = RoadNetwork(**two, polylines=lines, geographic=True, name=NASTY, ids=[NASTY, "b"])
    chart = exploration_map(net, pd.DataFrame({"edge": [1], "first_round": [3], "visits": [7]}))
    data = page_data(chart.html)
    assert (data["net"]["courses"][0][:2], data["rounds"]) == ([4373000, 741234], 3)
    assert NASTY not in chart.html
    assert data["net"]["ids"][0] == NASTY


def test_wrong_input_is_refused(net):
    visits = pd.DataFrame({"edge": [0], "first_round": [9], "visits": [1]})
    refused("at least one agent", exploration_map, net, {})
    refused("first_round", exploration_map, net, visits[["edge"]])
    refused("rounds", exploration_map, net, visits, rounds=5)
    refused("`route`", exploration_map, net, visits, route=["r0c0-r0c1"])
    bare = RoadNetwork([100.0, 90.0], [10.0, 9.0], [(0, 1), (1, 0)])
    for draw in (exploration_map, plots.exploration):
        refused("no polylines", draw, bare, visits)
    refused("no polylines", plots.routes, [(bare, {"A": [0]})])


def test_the_still_twin_draws_every_edge_once_by_class(net, run):
    """And Figure 1 every edge of each network, each path in its own colour, its name at both ends."""
    _, axes = plots.exploration(net, {"all": run, "early": run}, route=ROUTE, best=run.best_path)
    assert len(axes) == 2
    roads, best, *driven = [len(c.get_segments()) for c in axes[0].collections if isinstance(c, LineCollection)]
    assert (roads, best) == (net.n_edges, len(run.best_path))
    bounds = [look["from"] for look in VISIT_CLASSES] + [np.inf]
    assert driven == np.histogram(run.visits["visits"], bounds)[0].tolist()
    path = net.shortest_path(net.lengths, *ROUTE)
    other = [net.ids[edge] for edge in net.shortest_path(net.lengths, ROUTE[0], 7)]
    _, axes = plots.routes([(net, {"A": path, "B": other}), (net, {})])
    assert [len(c.get_segments()) for c in axes[0].collections] == [net.n_edges, len(path), len(other)]
    assert [text.get_text() for text in axes[0].texts] == ["A", "A", "B", "B"]
