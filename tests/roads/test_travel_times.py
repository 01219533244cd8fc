"""Road times: against Dijkstra on nodes (scipy) and on edges (brute force), closed forms, readers, and bad input."""

import zipfile
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from one_way import bellman_ford, one_way_streets
from refusals import refused
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

from emsopt import City, datasets
from emsopt.calls import city_from_calls
from emsopt.roads import RoadNetwork, grid_roads
from emsopt.roads.shortest_paths import legal_turns


def ends_of(net):
    """Coordinates of the nodes, and the node at the start and the end of each edge."""
    points = np.array([line[[0, -1]] for line in net.polylines])
    nodes, index = np.unique(points.reshape(-1, 2), axis=0, return_inverse=True)
    return nodes, index.reshape(-1, 2)


def node_times(n, ends, minutes, origins):
    """Times from nodes to all nodes by scipy's Dijkstra, without turns."""
    return dijkstra(csr_array((minutes, ends.T), shape=(n, n)), indices=origins)


def test_times_between_points_on_edges_are_those_to_nodes_put_there():
    rng = np.random.default_rng(1)
    net = one_way_streets(grid_roads(7, 6, jitter=0.3, rng=rng), 0.4, rng)
    nodes, ends = ends_of(net)
    minutes, streets = net.edge_minutes(), np.unique(np.sort(ends, axis=1), axis=0)
    n, places = len(nodes), []
    for street in streets[rng.choice(len(streets), 60, replace=False)]:  # one new node per street, in both directions
        share, new = rng.uniform(0.05, 0.95), n + len(places)
        places.append((1 - share) * nodes[street[0]] + share * nodes[street[1]])
        for edge in np.flatnonzero((np.sort(ends, axis=1) == street).all(axis=1)):
            part = share if ends[edge, 0] == street[0] else 1 - share
            ends = np.vstack([ends, [[ends[edge, 0], new], [new, ends[edge, 1]]]])
            minutes = np.append(minutes, [part * minutes[edge], (1 - part) * minutes[edge]])
    expected = node_times(n + 60, ends, minutes, np.arange(n, n + 60))
    for targets, columns in ((nodes, slice(n)), (places, slice(n, None)), (places[:5], slice(n, n + 5))):
        np.testing.assert_allclose(net.travel_times(places, targets), expected[:, columns], atol=1e-9)


def test_forbidden_turns_are_obeyed_in_monaco():
    net, rng = datasets.load_roads("monaco"), np.random.default_rng(2)
    nodes, ends = ends_of(net)
    minutes = net.edge_minutes()
    origins, targets = rng.choice(len(nodes), 25), rng.choice(len(nodes), 300)
    expected = np.zeros((25, 300))
    for k, origin in enumerate(origins):
        best = bellman_ford(net, minutes, np.flatnonzero(ends[:, 0] == origin).tolist())
        for j, target in enumerate(targets):
            expected[k, j] = 0 if target == origin else best[ends[:, 1] == target].min()
    np.testing.assert_allclose(net.travel_times(nodes[origins], nodes[targets]), expected, atol=1e-9)
    np.testing.assert_allclose(net.travel_times(nodes[origins], nodes[targets[:9]]), expected[:, :9], atol=1e-9)
    assert (expected > node_times(len(nodes), ends, minutes, origins)[:, targets] + 0.5).any()  # turns matter


def road(*lines, classes=None, speed=10.0, two_way=True, offset=0.0):
    """Roads on a plane along lines of two points, with all turns legal where ends meet; lanes are ``offset`` apart."""
    lines = np.array(lines, dtype=float)
    ends = np.vstack([lines, lines[:, ::-1]]) if two_way else lines
    tails, heads = np.unique(ends.reshape(-1, 2), axis=0, return_inverse=True)[1].reshape(-1, 2).T
    side = (ends[:, 1] - ends[:, 0])[:, ::-1] * [1, -1]
    drawn = ends + offset / 2 * (side / np.hypot(*side.T)[:, None])[:, None]
    lengths = np.hypot(*(ends[:, 1] - ends[:, 0]).T)
    classes = None if classes is None else list(classes) * (2 if two_way else 1)
    return RoadNetwork(lengths, [speed] * len(ends), legal_turns(tails, heads), polylines=list(drawn), classes=classes)


def test_points_are_joined_to_the_right_road():
    net = road([(0, 0), (6000, 0)])
    a, b = [(1000, 300)], [(4000, -200)]
    assert net.travel_times(a, b, off_road_kmh=30.0)[0, 0] == pytest.approx(5 + 0.5 * 60 / 30)
    assert net.travel_times(a, b)[0, 0] == pytest.approx(5 + 0.5 * 60 / 20)
    assert net.travel_times(a, b, off_road_kmh=np.inf)[0, 0] == pytest.approx(5)
    assert net.travel_times([(-300, 400)], [(0, 0)], off_road_kmh=60)[0, 0] == pytest.approx(0.5)  # beyond the end
    bridge = [(0, 0), (2000, 0)]
    net = road([(0, 0), (1000, 0)], [(1000, 0), (1000, 1000)], [(1000, 1000), (2000, 0)], bridge)
    assert net.travel_times([(1000, 0)], [(2000, 0)])[0, 0] * 600 == pytest.approx(1000 + np.hypot(1000, 1000))
    lines = [(0, 0), (3000, 0)], [(0, 0), (0, 400)], [(0, 400), (3000, 400)]
    net = road(*lines, classes=["motorway", "residential", "residential"])
    near, apart = net.travel_times([(1500, 20), (1500, 30)], [(0, 0)], off_road_kmh=np.inf)[:, 0] * 600
    assert (near, apart) == pytest.approx((1500, 1900))
    line = np.array([[10.001, 59.99], [10.001, 60.01]])  # a thousandth of a degree east is 55.6 m here
    net = RoadNetwork([2000.0] * 2, [10.0] * 2, [], polylines=[line, line[::-1]], geographic=True)
    away = net.travel_times([(10, 60)], [(10.001, 60.01)], off_road_kmh=6)[0, 0]
    assert away == pytest.approx(1000 / 600 + 0.556, abs=0.001)
    only = road(lines[0], classes=["motorway"])
    assert only.travel_times([(1500, 100)], [(0, 0)], off_road_kmh=np.inf)[0, 0] * 600 == pytest.approx(1500)


def test_streets_are_left_both_ways_and_pieces_of_any_length_found():
    for offset in (0.0, 6.0):
        net = road([(0, 0), (6000, 0)], offset=offset)
        times = net.travel_times([(3000, 1), (3000, -1)], [(0, 0), (6000, 0)], off_road_kmh=np.inf)
        np.testing.assert_allclose(times, 5)
    one_way = road([(0, 0), (600, 0)], [(600, 0), (600, 600)], [(600, 600), (0, 0)], two_way=False)
    times = one_way.travel_times([(300, 0)], [(100, 0), (500, 0), (300, 0)])
    np.testing.assert_allclose(times * 600, [[300 + 600 + np.hypot(600, 600) + 100, 200, 0]])
    rng = np.random.default_rng(5)
    line = np.cumsum(rng.exponential(1.0, (60, 2)) ** 4, axis=0)  # steps from millimetres to hundreds of metres
    net, lengths = RoadNetwork([1000.0], [10.0], [], polylines=[line]), np.hypot(*np.diff(line, axis=0).T)
    points = rng.uniform(line.min(axis=0), line.max(axis=0), (200, 2))
    fine = np.concatenate([np.linspace(a, b, 400) for a, b in pairwise(line)])
    nearest = np.hypot(*(points[:, None] - fine).transpose(2, 0, 1)).min(axis=1)
    found = net._snapper.nearest_places(points, "points", 1000.0)
    assert (found.distances <= nearest + 1e-6).all()
    np.testing.assert_allclose(found.distances, nearest, atol=lengths.max() / 400)


def test_bad_input_is_refused():
    net = datasets.load_roads("monaco")
    for change, message in (
        ({"destinations": [(np.nan, 43.7)]}, "`destinations` must be finite"),
        ({"origins": [(43.735, 7.42)]}, "within 5 km of a road.*1 of 1 points do not.*km away.*look swapped"),
        ({"speeds": 0.0}, "`speeds` must be greater than 0"),
        ({"speeds": {"highway": 9.0}}, "'highway' is none of living_street, "),
    ):
        refused(message, net.travel_times, **{"origins": [(7.42, 43.735)], "destinations": [(7.43, 43.74)], **change})
    refused("no `polylines`", RoadNetwork([1.0], [1.0], []).travel_times, [(0, 0)], [(1, 1)])


def test_cities_take_their_times_from_roads():
    net = grid_roads(4, 4)  # in metres, whereas places are in km
    net = replace(net, lengths=10 * net.lengths, polylines=[10 * line for line in net.polylines])
    places = [(0, 0)], [(500, 0), (3000, -1000)]
    demand = pd.DataFrame({"name": ["a", "b"], "x": [0.5, 3.0], "y": [0.0, -1.0], "arrival_rate": 1.0})
    sites = pd.DataFrame({"name": ["s"], "x": 0.0, "y": 0.0, "turnout_min": 1.0, "service_min": 30.0})
    city = City.from_frames(demand, sites, roads=net)
    np.testing.assert_array_equal(city.travel_times, net.travel_times(*places))
    by_class = {"residential": 5.0, "arterial": 8.0}
    speeds = [by_class[name] for name in net.classes]
    np.testing.assert_array_equal(net.travel_times(*places, speeds=by_class), net.travel_times(*places, speeds=speeds))
    np.testing.assert_allclose(net.travel_times(*places, speeds=10.0), [[500 / 600, 4000 / 600]])
    refused("got both `speed_kmh` and `roads`", City.from_frames, demand, sites, roads=net, speed_kmh=30)
    refused("must be a RoadNetwork; got str", City.from_frames, demand, sites, roads="town.osm")
    monaco = datasets.load_roads("monaco")
    refused("same kind of coordinates", City.from_frames, demand, sites, roads=monaco)
    net = road([(0, 0), (1000, 0)], [(3000, -1000), (3000, 1000)])
    assert net.travel_times(*places).tolist() == [[pytest.approx(50 / 60), np.inf]]
    refused(r"1 of 2 pairs, the first from 's' to 'b'.*largest_component", City.from_frames, demand, sites, roads=net)
    times = ["2025-01-01 10:00", "2025-01-02 11:00"]
    calls = pd.DataFrame({"time": times, "lon": [7.42, 7.43], "lat": [43.735, 43.742]})
    stations = pd.DataFrame({"name": ["s"], "lon": [7.424], "lat": [43.738], "turnout_min": 1.0, "service_min": 30.0})
    city = city_from_calls(calls, stations, roads=monaco, cell_km=0.5)
    np.testing.assert_allclose(city.travel_times, monaco.travel_times(city.site_locations, city.atom_locations))
    assert "speed limits of the roads 'monaco'" in city.notes


NODES = "nodes,,,\nindex,x,y,offRoadAccess,\n1.0,174.7,-36.7,1.0\n2.0,174.8,-36.7,0.0\n3.0,174.9,-36.7,0.0\n"
ARCS = (
    "miscData,,,\narcForm,numModes,\ndirected,2\n,\narcs,,,\nindex,fromNode,toNode,distance,mode_1,mode_2,\n"
    "1.0,1.0,2.0,9.0,0.0125,0.02\n2.0,2.0,3.0,9.5,0.004,0.008\n3.0,3.0,1.0,19.0,0.01,0.02\n,\n"
)


@pytest.mark.parametrize("kind", ["folder", "zip", "saved"])
def test_files_are_read_by_their_names(kind, tmp_path):
    """Folders and archives as JEMSS has them, and networks saved before."""
    place = {"folder": tmp_path, "zip": tmp_path / "town.zip", "saved": tmp_path / "town.json.gz"}[kind]
    for file, text in {"nodes.csv": NODES, "arcs.csv": ARCS}.items():
        (tmp_path / file).write_text(text)
        with zipfile.ZipFile(tmp_path / "town.zip", "a") as archive:
            archive.writestr(f"auckland/{file}", text)
    if kind == "saved":
        RoadNetwork.read(tmp_path).save(place)
    net = RoadNetwork.read(place)
    assert (net.geographic, net.ids, net.classes) == (True, ("1", "2", "3"), ("unknown", "motorway", "unknown"))
    np.testing.assert_allclose(net.lengths, [9000, 9500, 19000])
    np.testing.assert_allclose(net.edge_minutes(), np.array([0.0125, 0.004, 0.01]) * 1440, rtol=1e-5)
    (tmp_path / "nodes.csv").unlink()
    refused(r"there is no file.*nodes.csv", RoadNetwork.read, tmp_path)
    (tmp_path / "town.zip").write_bytes(b"PK\3\4 broken")
    refused(r"damaged or not a \.zip", RoadNetwork.read, tmp_path / "town.zip")
    refused(r"by its name \(.osm.pbf, .*got 'town.txt'", RoadNetwork.read, "town.txt")


def test_tables_take_speeds_and_the_straight_line():
    nodes = pd.DataFrame({"lon": [10.0, 10.0, 10.0], "lat": [50.0, 50.01, 50.02]}, index=["a", "b", "c"])
    arcs = pd.DataFrame({"u": ["a", "b"], "v": ["b", "c"], "speed_kmh": [36.0, 72.0], "highway": ["primary", "road"]})
    net = RoadNetwork.from_tables(nodes, arcs, strongly_connected=False)
    np.testing.assert_allclose(net.lengths, 1111.95, atol=0.01)  # a hundredth of a degree on the meridian
    np.testing.assert_allclose(net.speed_limits, [10, 20])
    assert (net.classes, net.connections.tolist()) == (("primary", "road"), [[0, 1]])
    both = RoadNetwork.from_tables(nodes, arcs, two_way=True)
    assert (len(set(both.ids)), both.classes) == (4, ("primary", "road") * 2)
    back = both.travel_times([(10.0, 50.02)], [(10.0, 50.0)])
    assert back[0, 0] == pytest.approx(1111.95 / 60 * (1 / 10 + 1 / 20), abs=1e-3)


@pytest.mark.parametrize(
    ("distance", "metres", "time", "minutes"),
    [
        ("distance", 1000, "minutes", 1), ("length_m", 1, "seconds", 1 / 60), ("length", 1, "travel_time", 1 / 60),
        ("length_km", 1000, "hours", 60), ("distance_m", 1, "time_h", 60), ("distance_km", 1000, "mode_1", 1440),
    ],
)  # fmt: skip
def test_names_of_columns_imply_units(distance, metres, time, minutes):
    nodes = pd.DataFrame({"id": [1, 2], "x": [0.0, 1000.0], "y": [0.0, 0.0]})
    arcs = pd.DataFrame({"from": [1, 2], "to": [2, 1], distance: np.array([1200, 900]) / metres, time: 1.5 / minutes})
    net = RoadNetwork.from_tables(nodes, arcs)
    np.testing.assert_allclose(net.lengths, [1200, 900])
    np.testing.assert_allclose(net.edge_minutes(), [1.5, 1.5])
    assert not net.geographic


def test_arcs_with_distances_may_join_nodes_that_coincide():
    nodes = pd.DataFrame({"id": [1, 2, 3], "x": [0.0, 0.0, 900.0], "y": [0.0, 0.0, 0.0]})
    arcs = pd.DataFrame({"from": [1, 2, 3], "to": [2, 3, 1], "distance_m": [0.0, 1000.0, 1000.0], "minutes": 1.0})
    np.testing.assert_allclose(RoadNetwork.from_tables(nodes, arcs).lengths, [0.1, 1000, 1000])


@pytest.mark.parametrize(
    ("nodes", "arcs", "message"),
    [
        ({}, {"to": [1, 7]}, "`arcs`, row 2: there is no node '7' in `nodes`"),
        ({}, {"minutes": [1, 0]}, "`arcs`, column 'minutes', row 2: expected a time above 0"),
        ({}, {"distance": [1, -2]}, "column 'distance', row 2: expected a distance of at least 0"),
        ({}, {"minutes": None}, "a column of times .*; columns found: from, to, distance"),
        ({"id": [1, 1]}, {}, "are both '1'"),
        ({"x": None}, {}, "needs columns 'lon' and 'lat', or 'x' and 'y'"),
        ({}, {"minutes": [0.001, 0.001]}, "driven at 6e.04 km.h. Name the columns by their units"),
        ({"x": [0, 500.0]}, {"distance": [500, 500.0]}, "500 times|1e.03 times the straight lines"),
    ],
)
def test_bad_tables_are_refused(nodes, arcs, message):
    nodes = {"id": [1, 2], "x": [0.0, 1.0], "y": [0.0, 1.0], **nodes}
    arcs = {"from": [1, 2], "to": [2, 1], "distance": [1.0, 1.0], "minutes": [1.0, 1.0], **arcs}
    tables = ({key: values for key, values in table.items() if values is not None} for table in (nodes, arcs))
    refused(message, RoadNetwork.from_tables, *map(pd.DataFrame, tables))
