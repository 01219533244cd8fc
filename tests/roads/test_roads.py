"""Road networks: paths against Bellman-Ford, a hand-made SUMO file read by eye, projection, and broken inputs."""

import gzip
import pickle
import sys
from itertools import pairwise

import numpy as np
import pytest
from one_way import bellman_ford, one_way_streets
from refusals import refused

from emsopt.errors import MissingDependencyError
from emsopt.roads import RoadNetwork, grid_roads
from emsopt.roads._sumo import read_net

# Four roads in a ring, with a cycle path, a bus lane and a turn that is for buses only; a dead end at the east.
OFFSET, SYSTEM = "-285448.66,-5492398.13", "+proj=utm +zone=32 +ellps=WGS84 +datum=WGS84"
NET = """<?xml version="1.0" encoding="UTF-8"?>
<net version="1.20">
    <location netOffset="-285448.66,-5492398.13" projParameter="+proj=utm +zone=32 +ellps=WGS84 +datum=WGS84"/>
    <edge id=":n_0" function="internal"><lane id=":n_0_0" index="0" speed="5.00" length="3.00" shape="0,0 1,1"/></edge>
    <edge id="north" from="a" to="b" type="highway.primary">
        <lane id="north_0" index="0" allow="bus" speed="8.00" length="99.00" shape="0,0,5 0,99,5"/>
        <lane id="north_1" index="1" disallow="pedestrian tram" speed="13.89" length="100.00" shape="0,0,5 0,60,9 0,100,15"/>
        <lane id="north_2" index="2" speed="13.89" length="100.00" shape="3,0,5 3,100,15"/>
    </edge>
    <edge id="east" from="b" to="c" type="highway.residential">
        <lane id="east_0" index="0" allow="passenger bus" speed="8.33" length="50.00" shape="0,100,15 50,100,15"/>
    </edge>
    <edge id="west" from="c" to="b"><lane id="west_0" index="0" speed="8.33" length="50" shape="50,100 0,100"/></edge>
    <edge id="south" from="b" to="a" type="highway.primary">
        <lane id="south_0" index="0" allow="passenger bus" disallow="bicycle" speed="13.89" length="100.00" shape="-3,100,15 -3,0,5"/>
    </edge>
    <edge id="cycleway" from="b" to="a"><lane id="c_0" index="0" allow="bicycle" speed="5" length="9" shape="0,0 0,9"/></edge>
    <edge id="closed" from="b" to="a"><lane id="d_0" index="0" disallow="all" speed="5" length="9" shape="0,0 0,9"/></edge>
    <edge id="island" from="x" to="y"><lane id="i_0" index="0" speed="5" length="9" shape="0,0,0 0,9,0"/></edge>
    <connection from="north" to="east" fromLane="1" toLane="0" dir="r"/>
    <connection from="north" to="east" fromLane="2" toLane="0" dir="r"/>
    <connection from="north" to="south" fromLane="0" toLane="0" dir="t"/>
    <connection from="north" to="cycleway" fromLane="1" toLane="0" dir="s"/>
    <connection from="east" to="west" fromLane="0" toLane="0" dir="t"/>
    <connection from="west" to="south" fromLane="0" toLane="0" dir="l"/>
    <connection from="west" to="north" fromLane="0" toLane="1" dir="l" disallow="passenger"/>
    <connection from="south" to="north" fromLane="0" toLane="1" dir="t"/>
    <connection from=":n_0" to="east" fromLane="0" toLane="0" dir="r"/>
</net>
"""


@pytest.fixture
def net_file(tmp_path):
    path = tmp_path / "town.net.xml"
    return lambda text: path.write_text(text) and path


def test_paths_cost_what_bellman_ford_says():
    rng = np.random.default_rng(0)
    for trial in range(30):
        net = one_way_streets(grid_roads(rng.integers(2, 6), rng.integers(2, 6)), 0.3, rng)
        costs = rng.exponential(1.0, net.n_edges)
        if trial % 2:
            costs[rng.random(net.n_edges) < 0.4] = 0.0  # a rectified estimate may be exactly zero
        start, end = rng.integers(net.n_edges, size=2)
        path = net.shortest_path(costs, start, end)
        assert (path[0], path[-1]) == (start, end)
        assert set(pairwise(path.tolist())) <= set(map(tuple, net.connections.tolist()))
        assert len(set(path)) == len(path)
        assert costs[path].sum() == pytest.approx(bellman_ford(net, costs, start)[end], rel=1e-12, abs=1e-12)
    copy = pickle.loads(pickle.dumps(net))
    assert np.array_equal(copy.shortest_path(costs, start, end), path)
    with pytest.raises(ValueError, match="read-only"):
        net.lengths[0] = 1.0


def test_closed_roads_are_avoided_and_open_again_afterwards():
    rng = np.random.default_rng(1)
    net = grid_roads(5, 5, jitter=0.3, rng=rng)
    free = net.shortest_path(net.lengths, 0, 70)
    for _ in range(12):
        closed = rng.choice(np.setdiff1d(np.arange(net.n_edges), [0, 70]), size=12, replace=False)
        expected = bellman_ford(net, net.lengths, 0, set(closed.tolist()))[70]
        if np.isinf(expected):
            refused("12 closed edges", net.shortest_path, net.lengths, 0, 70, closed=closed)
            continue
        for form in (closed, np.isin(np.arange(net.n_edges), closed), [net.ids[k] for k in closed]):
            path = net.shortest_path(net.lengths, 0, 70, closed=form)
            assert not np.isin(path, closed).any()
            assert net.lengths[path].sum() == pytest.approx(expected, rel=1e-12)
    assert np.array_equal(net.shortest_path(net.lengths, 0, 70), free)


def test_grids_have_u_turns_at_dead_ends_true_lengths_and_one_component():
    opposite = lambda net: ["-".join(reversed(name.split("-"))) for name in net.ids]
    net = grid_roads(4, 3)
    assert not any(net.ids[a] == opposite(net)[b] for a, b in net.connections)
    assert net.n_edges == 2 * (4 * 2 + 3 * 3)
    assert set((3.6 * net.speed_limits).round(9)) == {50, 70}  # km/h
    street = grid_roads(1, 3)
    assert sum(street.ids[a] == opposite(street)[b] for a, b in street.connections) == 2 == len(street.connections) / 2
    net = grid_roads(5, 4, jitter=0.3, relief=30.0, rng=3)
    across = np.array([np.hypot(*np.diff(line, axis=0)[0]) for line in net.polylines])
    assert np.allclose(net.lengths * np.cos(net.inclines), across)
    assert (net.inclines != 0).all()
    assert np.allclose(net.inclines[net.edges(opposite(net))], -net.inclines)
    net = one_way_streets(grid_roads(5, 5), 0.9, 0)
    assert all(np.isfinite(bellman_ford(net, net.lengths, k)).all() for k in range(net.n_edges))


def test_sumo_file_read_by_eye(net_file):
    path = net_file(NET)
    net = RoadNetwork(**read_net(path))
    assert (net.ids, net.lengths.tolist()) == (("north", "east", "west", "south", "island"), [100, 50, 50, 100, 9])
    assert net.speed_limits.tolist() == [13.89, 8.33, 8.33, 13.89, 5]
    assert net.classes == ("highway.primary", "highway.residential", "unknown", "highway.primary", "unknown")
    assert np.allclose(net.inclines, [np.arctan(0.1), 0, 0, -np.arctan(0.1), 0])
    assert "1 of 5 roads have no heights" in net.notes
    turns = {(net.ids[a], net.ids[b]) for a, b in net.connections}
    assert turns == {("north", "east"), ("east", "west"), ("west", "south"), ("south", "north")}
    ring = RoadNetwork.from_sumo(path)
    assert (ring.ids, ring.name) == (("north", "east", "west", "south"), "town")
    assert "1 of 5 edges lie outside" in ring.notes
    assert "connections" not in ring.notes
    steep = RoadNetwork.from_sumo(net_file(NET.replace("0,60,9 0,100,15", "0,60,9 0,100,95")))
    assert steep.inclines[0] == 0.35
    assert "1 of 5 roads would be steeper than 0.35 rad: incline cut to that." in steep.notes
    lost = RoadNetwork.from_sumo(net_file(NET.replace('from="south" to="north"', 'from="south" to="gone"')))
    assert "1 of its connections name an edge that it does not have, and are left out." in lost.notes


def test_broken_sumo_files_are_refused(net_file, tmp_path):
    for old, new, message in (
        ('speed="8.33" length="50.00" shape="0', 'length="50.00" shape="0', r"The speed of lane 'east_0'.*missing"),
        ('length="50.00" shape="0', 'length="0.00" shape="0', r"The length of lane 'east_0'.*above 0.*'0.00'"),
        ('shape="0,100,15 50,100,15"', 'shape="0,100"', "at least two points"),
        ('id="east" ', 'id="north" ', "a unique id; got 'north'"),
        ("</net>", "", "truncated"),
        ("<net ", "<routes ", "truncated|starts with <routes>"),
    ):
        assert old in NET
        path = net_file(NET.replace(old, new, 1))
        refused(rf"(?s)(?=.*town\.net\.xml).*({message})", RoadNetwork.from_sumo, path)
    refused("there is no file", RoadNetwork.from_sumo, tmp_path / "none.net.xml")
    packed = tmp_path / "broken.net.xml.gz"
    packed.write_bytes(gzip.compress(NET.encode())[:400])
    refused("truncated or not XML", RoadNetwork.from_sumo, packed)
    lane = '<lane id="a_0" index="0" disallow="all" speed="1" length="1" shape="0,0 1,1"/>'
    shut = net_file(f'<net><edge id="a">{lane}</edge></net>')
    refused("no road open to the vehicle class 'passenger'", RoadNetwork.from_sumo, shut)


def test_impossible_projections_stay_in_metres(net_file, monkeypatch):
    """With the origin in the town, points at 0, 0 and of few metres are no degrees."""
    local = NET.replace("+proj=utm +zone=32", "+proj=tmerc +lat_0=49 +lon_0=8").replace(OFFSET, "0,0")
    net = RoadNetwork.from_sumo(net_file(local))
    assert net.geographic
    assert net.polylines[0] == pytest.approx(np.array([[8, 49], [8, 49.00054], [8, 49.0009]]), abs=1e-5)
    for old, new in (("zone=32", "zone=61"), (OFFSET, "1e300,0"), (SYSTEM, "!")):
        if old == SYSTEM:  # without a projection there is nothing to do for pyproj
            monkeypatch.setitem(sys.modules, "pyproj", None)
            with pytest.raises(MissingDependencyError, match="pyproj: pip install"):
                RoadNetwork.from_sumo(net_file(NET))
        net = RoadNetwork.from_sumo(net_file(NET.replace(old, new)))
        assert not net.geographic
        assert "no projection that fits its coordinates: geometry stays in metres" in net.notes
        assert net.polylines[0].tolist() == [[0, 0], [0, 60], [0, 100]]


TWO = {"lengths": [1.0, 2.0], "speed_limits": [3.0, 4.0], "connections": [(0, 1)]}


def test_wrong_networks_and_searches_are_refused():
    for change, message in (
        ({"lengths": [1.0, 0.0]}, "`lengths` must be greater than 0"),
        ({"speed_limits": [50.0, 70.0]}, "m/s, but their median is 60. Divide"),
        ({"connections": [(0, 2)]}, "from 0 to 1; got 2"),
        ({"connections": [(0.0, 1.0)]}, "pairs of edge indices"),
        ({"inclines": [0.0, 5.0]}, r"at most 1.57 \(rad, not degrees\)"),
        ({"ids": ["a", "a"]}, "distinct"),
        ({"classes": ["a"]}, "`classes` must be a sequence of 2"),
        ({"polylines": [[[0, 0], [1, 1]], [[0, 0]]]}, r"`polylines\[1\]` has shape \(1, 2\)"),
        ({"polylines": [[[0, 0], [1, -91]]] * 2, "geographic": True}, r"at least -90 \(degrees\).*: -91"),
    ):
        refused(message, RoadNetwork, **{**TWO, **change})
    path, costs = RoadNetwork(**TWO).shortest_path, [1.0, 1.0]
    refused("no legal path leads from 'edge 2' to 'edge 1'.*largest_comp", path, costs, 1, 0)
    refused("`costs` must be at least 0", path, [1.0, -1.0], 0, 1)
    refused("`end` must be a whole number from 0 to 1", path, costs, 0, 2)
    refused("no edge 'home'", path, costs, "home", 1)
    refused("the start 'edge 1' is closed", path, costs, 0, 1, closed=[0])
    refused("in brackets", path, costs, 0, 1, closed="edge 2")
    refused("one truth value per edge", path, costs, 0, 1, closed=[True])
    refused("`columns`", grid_roads, 1, 1)
    refused("from 0 to 0.4", grid_roads, jitter=0.6)
