"""OpenStreetMap roads: a map drawn by hand and read by eye, Monaco as embedded, files of networks, broken files."""

import numpy as np
import pytest
from refusals import refused

from emsopt.roads import RoadNetwork, energy
from emsopt.roads._osm import read_osm

# A cross of two streets at node 5, each node 0.001 degrees from the next; 1-5-3 is two-way (way 10 and 11), 2-5-4 one-way
# (way 20). A dead end 3-6-7 with a tunnel (ways 12, 13), a private road, a cycle path and a street behind a bollard.
NODES = {1: (0, -1), 2: (-1, 0), 3: (0, 1), 4: (1, 0), 5: (0, 0), 6: (0, 2), 7: (0, 3), 8: (1, 1), 9: (2, 1)}
WAYS = {
    10: ((1, 5), {"highway": "residential"}),
    11: ((5, 3), {"highway": "residential", "maxspeed": "30"}),
    12: ((3, 6), {"highway": "tertiary", "tunnel": "yes", "maxspeed": "20 mph"}),
    13: ((6, 7), {"highway": "tertiary", "tunnel": "yes", "maxspeed": "signals"}),
    20: ((2, 5, 4), {"highway": "primary", "oneway": "yes"}),
    30: ((4, 8), {"highway": "residential", "access": "private"}),
    31: ((4, 8), {"highway": "cycleway"}),
    32: ((4, 8), {"highway": "residential", "access": "no", "motor_vehicle": "yes", "oneway": "-1"}),
    33: ((8, 9), {"highway": "residential"}),
}


def write_map(path, ways=WAYS, relations=(), node_tags=()):
    """Write an OpenStreetMap file; relations are (tags, [(type, ref, role), ...])."""
    tags = lambda values: "".join(f'<tag k="{key}" v="{value}"/>' for key, value in values.items())
    lines = ['<osm version="0.6">']
    for node, (x, y) in NODES.items():
        own = tags(dict(node_tags).get(node, {}))
        lines.append(f'<node id="{node}" lon="{x / 1000}" lat="{y / 1000}">{own}</node>')
    for way, (nodes, values) in ways.items():
        refs = "".join(f'<nd ref="{node}"/>' for node in nodes)
        lines.append(f'<way id="{way}">{refs}{tags(values)}</way>')
    for number, (values, members) in enumerate(relations, 1):
        refs = "".join(f'<member type="{kind}" ref="{ref}" role="{role}"/>' for kind, ref, role in members)
        lines.append(f'<relation id="{number}">{refs}{tags(values)}</relation>')
    path.write_text("\n".join([*lines, "</osm>"]))
    return path


def turn(way, node, to):
    """Return the members of a restriction of a turn at a node."""
    return [("way", way, "from"), ("node", node, "via"), ("way", to, "to")]


def after(net, edge):
    """Return the edges onto which one may turn from an edge."""
    return {net.ids[b] for a, b in net.connections if net.ids[a] == edge}


@pytest.fixture
def osm(tmp_path):
    pytest.importorskip("osmium", reason="needs emsopt[roads]")
    return lambda **options: write_map(tmp_path / "town.osm", **options)


def all_roads(path, heights=None, vehicle="passenger"):
    """Return all roads of a file, those outside the largest component too."""
    return RoadNetwork(**read_osm(path, heights, vehicle))


def test_map_read_by_eye(osm):
    net = all_roads(osm())
    assert set(net.ids) == {
        *("10#0", "-10#0", "11#0", "-11#0", "12#0", "-12#0", "13#0", "-13#0"),
        *("20#0", "20#1", "-32#0", "33#0", "-33#0"),
    }, "one-way streets one way, private roads and cycle paths not at all"
    frame = net.to_frame()
    metres = 0.001 * np.pi / 180 * 6371008.8  # a thousandth of a degree on the sphere
    assert frame.loc["10#0", "length_m"] == pytest.approx(metres, rel=1e-6)
    kmh = (frame["speed_limit_m_s"] * 3.6).round(6)
    assert kmh[["10#0", "11#0", "12#0", "13#0", "20#0"]].tolist() == [40.0, 30.0, 32.18688, 50.0, 70.0]
    assert frame.loc["20#1", "road_class"] == "primary"
    assert net.polylines[net.ids.index("-11#0")].tolist() == [[0.0, 0.001], [0.0, 0.0]]
    assert net.geographic
    assert "Speed limits of 69% of the edges are defaults" in net.notes
    assert "no heights" in net.notes
    assert after(net, "10#0") == {"11#0", "20#1"}, "no U-turn where there are exits"
    assert after(net, "20#0") == {"-10#0", "11#0", "20#1"}
    assert after(net, "13#0") == {"-13#0"}, "a U-turn at the dead end"
    assert after(net, "-33#0") == {"-32#0"}
    whole = RoadNetwork.from_osm(osm())  # nothing leads to node 2, nor from node 4 on
    assert set(whole.ids) == {"10#0", "-10#0", "11#0", "-11#0", "12#0", "-12#0", "13#0", "-13#0"}


@pytest.mark.parametrize(
    ("kind", "vehicle", "left"),
    [
        ({"restriction": "only_right_turn"}, "passenger", {"20#1"}),
        ({"restriction": "no_right_turn", "except": "bus;motorcar"}, "passenger", {"11#0", "20#1"}),
        ({"restriction:motorcar": "no_right_turn"}, "passenger", {"11#0"}),
        ({"restriction:hgv": "no_right_turn"}, "passenger", {"11#0", "20#1"}),
        ({"restriction": "no_right_turn", "except": "psv; emergency"}, "passenger", {"11#0"}),
        ({"restriction": "no_right_turn", "except": "psv; emergency"}, "emergency", {"11#0", "20#1"}),
    ],
)
def test_turn_restrictions(osm, kind, vehicle, left):
    net = all_roads(osm(relations=[({"type": "restriction", **kind}, turn(10, 5, 20))]), vehicle=vehicle)
    assert after(net, "10#0") == left
    assert "20#1" in after(net, "20#0"), "it binds those who come from way 10 alone"


def test_u_turns_can_be_prescribed_and_their_ban_leaves_the_way_on_open(osm):
    """Way 20 runs on through node 5, and nothing else leads back along way 10; node 7 is a dead end."""
    banned = ("no_u_turn", 20, 5, {"-10#0", "11#0", "20#1"}), ("no_u_turn", 13, 7, set())
    for kind, way, node, left in (("only_u_turn", 10, 5, {"-10#0"}), *banned):
        net = all_roads(osm(relations=[({"type": "restriction", "restriction": kind}, turn(way, node, way))]))
        assert after(net, f"{way}#0") == left


def test_bollards_stop_cars_and_restrictions_by_way_are_left_out(osm):
    members = [("way", 10, "from"), ("way", 11, "via"), ("way", 12, "to")]
    net = all_roads(osm(relations=[({"type": "restriction", "restriction": "no_straight_on"}, members)]))
    assert "12#0" in after(net, "11#0")
    for tags in ({}, {"barrier": "bollard"}, {"barrier": "gate"}, {"barrier": "bollard", "motor_vehicle": "yes"}):
        passes = "12#0" in after(all_roads(osm(node_tags={3: tags})), "11#0")
        assert passes == (tags != {"barrier": "bollard"})


def test_roundabouts_have_one_direction_and_extracts_cut_ways(osm):
    ways = {
        1: ((1, 2, 3, 4, 1), {"highway": "residential", "junction": "roundabout"}),
        2: ((5, 1), {"highway": "motorway_link"}),
        3: ((3, 6), {"highway": "motorway", "oneway": "no"}),
        4: ((4, 7), {"highway": "residential", "maxspeed": "0"}),
        5: ((7, 99, 8, 9), {"highway": "residential"}),
    }
    net = all_roads(osm(ways=ways))
    one_way = {"1#0", "1#1", "1#2", "2#0"}
    assert set(net.ids) == one_way | {"3#0", "-3#0", "4#0", "-4#0", "5#0", "-5#0"}
    assert "1#0" in after(net, "1#2"), "round and round"
    assert net.to_frame().loc["4#0", "speed_limit_m_s"] == pytest.approx(40 / 3.6)
    assert "1 ways are cut where the extract ends" in net.notes


def test_inclines_follow_the_terrain_but_tunnels_run_straight(osm):
    """Ground rises by 10 m per thousandth of a degree, with a summit at node 6 that the tunnel passes under."""
    ground = lambda places: 1e4 * places[:, 1] + 500.0 * (np.abs(places[:, 1] - 0.002) < 1e-9)
    net = all_roads(osm(), heights=ground)
    incline = dict(zip(net.ids, net.inclines, strict=True))
    slope = np.arcsin(10 / net.lengths[net.ids.index("10#0")])
    for name in ("10#0", "11#0", "12#0", "13#0"):
        assert (incline[name], incline[f"-{name}"]) == (pytest.approx(slope, rel=1e-5), pytest.approx(-slope, rel=1e-5))
    assert incline["20#0"] == pytest.approx(0.0, abs=1e-12)
    open_air = {way: (nodes, {k: v for k, v in tags.items() if k != "tunnel"}) for way, (nodes, tags) in WAYS.items()}
    steep = all_roads(osm(ways=open_air), heights=ground)
    assert steep.inclines.max() == pytest.approx(energy.MAX_INCLINE_RAD)
    assert "4 edges would be steeper than 0.35 rad: heights of 9 junctions are moved" in steep.notes


def test_broken_maps_are_refused(osm, tmp_path):
    path = osm()
    text = path.read_text()
    for content in (text[: len(text) // 2], ""):
        path.write_text(content)
        refused(r"truncated or not an OpenStreetMap file|has no road for cars", RoadNetwork.from_osm, path)
    (tmp_path / "a.csv").write_text("a,b\n1,2\n")
    refused(r"must be named .osm.pbf or .osm", RoadNetwork.from_osm, tmp_path / "a.csv")
    refused("has no road for cars", RoadNetwork.from_osm, osm(ways={1: ((1, 2), {"highway": "footway"})}))
    refused(r"`heights\(places\)` must have shape", RoadNetwork.from_osm, osm(), heights=lambda places: places)


EMERGENCY_ONLY = [
    *({"access": "no", "emergency": "yes"}, {"motor_vehicle": "emergency"}, {"oneway": "-1", "oneway:emergency": "no"}),
    {"highway": "service", "emergency": "designated"},
]
CLOSED = [{"access": "private"}, {"emergency": "no"}, {"highway": "service"}]
CLOSED += [{"access": "no", "emergency": "fire_hydrant"}]  # a hydrant on the way


@pytest.mark.parametrize("tags", EMERGENCY_ONLY + CLOSED)
def test_rights_of_emergency_vehicles(osm, tags):
    path = osm(ways={10: ((1, 5), {"highway": "residential"}), 11: ((5, 3), {"highway": "residential"} | tags)})
    assert ("11#0" in all_roads(path, vehicle="emergency").ids) == (tags in EMERGENCY_ONLY)
    assert ("11#0" in all_roads(path).ids) == (tags == {"emergency": "no"})
    refused("`vehicle` must be one of", RoadNetwork.from_osm, path, vehicle="ambulance")


def test_edits_of_josm(tmp_path):
    pytest.importorskip("osmium")
    text = """<osm version="0.6"><node id="1" lat="0" lon="0" version="1"/><node id="2" lat="0" lon="0.01" version="1"/>
    <node id='-5' action='modify' lat='0' lon='0.02'/><node id="3" lat="0" lon="0.03" version="1"/>
    <way id="10"><nd ref="1"/><nd ref="2"/><tag k="highway" v="residential"/></way>
    <way id='-11' action='modify'><nd ref="2"/><nd ref="-5"/><nd ref="3"/><tag k="highway" v="residential"/></way>
    <way action='delete' id='12'><nd ref="1"/><nd ref="3"/><tag k="highway" v="residential"/></way></osm>"""
    (tmp_path / "town.osm").write_text(text)
    net = RoadNetwork.from_osm(tmp_path / "town.osm")
    assert sorted(net.ids) == sorted(["10#0", "-10#0", "-11#0", "--11#0"])
    assert net.lengths.sum() == pytest.approx(2 * 3335.8, rel=1e-3)
