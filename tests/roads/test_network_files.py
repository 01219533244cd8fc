"""The networks of Monaco and Luxembourg, and networks saved to a file."""

import gzip
import json
import os
import re
from pathlib import Path

import numpy as np
import pytest
from one_way import one_way_streets
from refusals import refused

import emsopt as eo
from emsopt import datasets
from emsopt.roads import RoadNetwork, grid_roads
from emsopt.roads.energy import edge_energy

ENDS_IN_MONACO = {"30558", "32888", "32166", "32940"}  # streets of the paper's -30558, -32888#0, -32166#0, --32940#0


def streets(net):
    """Return the ids of a network's edges without direction and number of the piece."""
    return {name.lstrip("-").partition("#")[0] for name in net.ids}


def test_monaco_is_embedded_and_its_terrain_labelled():
    net = eo.datasets.load_roads("monaco")
    assert (net.n_edges, len(net.connections)) == (3003, 4654)
    assert net.largest_component() is net
    assert {"SURROGATE", "ODbL"} <= set(re.findall(r"\w+", net.notes))
    assert np.abs(net.inclines).max() <= 0.35
    points = np.concatenate(net.polylines)
    assert (points > [7.348, 43.714]).all()
    assert (points < [7.492, 43.771]).all()
    for route in datasets.ROUTES["monaco"].values():
        assert len(net.shortest_path(net.lengths, *route)) > 40


def test_monaco_is_what_its_script_builds(script):
    pytest.importorskip("osmium", reason="needs emsopt[roads]")
    module = script("data/build_monaco.py")
    built, stored = module.build(), eo.datasets.load_roads("monaco")
    assert (built.ids, built.notes) == (stored.ids, stored.notes)
    assert np.array_equal(built.connections, stored.connections)
    assert np.abs(built.lengths - stored.lengths).max() <= 0.0051
    assert np.abs(built.inclines - stored.inclines).max() <= 1.1e-5
    surveyed, coast = module.known_heights()
    assert module.left_out_error(surveyed, coast) == pytest.approx(119, abs=1)
    elevation = Path(os.environ.get("EMSOPT_DATA", "nowhere")) / "monaco_elevation" / "monaco_rebuilt.net.xml.gz"
    if elevation.is_file():
        places, wanted = module.reference(elevation)
        error = module.terrain(np.vstack([surveyed, coast]))(places) - wanted
        assert np.sqrt(np.mean(error**2)) == pytest.approx(79, abs=1), "as data/README.md says"


def test_luxembourg_is_found_in_the_data_folder(tmp_path, monkeypatch):
    """The rebuilt network stands in where the published one is not there; a wrong file is never taken for it."""
    folder = os.environ.get("EMSOPT_DATA")
    if not folder or not (Path(folder) / "luxembourg").is_dir():
        pytest.skip("needs EMSOPT_DATA with a folder luxembourg")
    net = eo.datasets.load_roads("luxembourg")
    assert net.n_edges == 5680
    assert "rebuild" in net.notes
    assert not net.inclines.any()
    assert streets(net) >= ENDS_IN_MONACO
    assert datasets.ROUTES[net.name] == {"A": ("-31118#1", "--32646#1"), "B": ("-30436#1", "-30946")}
    for route in datasets.ROUTES[net.name].values():
        assert len(net.shortest_path(net.lengths, *route)) > 20


def test_monaco_has_the_heights_of_the_published_network_where_it_is_found():
    """And the paper's four ids of Monaco are not in it; as many edges recover energy as with the surrogate."""
    assert not streets(eo.datasets.load_roads("monaco")) & ENDS_IN_MONACO
    try:
        net = eo.datasets.load_roads("monaco, published")
    except eo.errors.DataUnavailableError as error:
        pytest.skip(str(error))
    assert not streets(net) & ENDS_IN_MONACO
    if net.name == "monaco, published":
        return  # its routes have ids of their own
    assert "rebuild" in net.notes
    own, surrogate = (edge_energy(n.lengths, n.speed_limits, n.inclines) for n in (net, eo.datasets.load_roads()))
    assert [np.mean(own < 0), np.mean(surrogate < 0)] == pytest.approx([0.39, 0.41], abs=0.005)
    for route in datasets.ROUTES[net.name].values():
        assert len(net.shortest_path(net.lengths, *route)) > 40


@pytest.mark.parametrize(("name", "file"), [("luxembourg", "lust"), ("monaco, published", "most")])
def test_a_wrong_file_is_not_taken_for_a_published_network(tmp_path, monkeypatch, name, file):
    monkeypatch.setenv("EMSOPT_DATA", str(tmp_path))
    (tmp_path / f"{file}.net.xml").write_text("<net/>")
    wanted = f"not the file that was published.*{file}.net.xml by other means and put it at"
    with pytest.raises(eo.errors.DataUnavailableError, match=wanted):
        eo.datasets.load_roads(name)
    refused("'monaco', 'luxembourg', 'monaco, published'", eo.datasets.load_roads, "paris")


def test_saved_networks_come_back_and_broken_files_are_refused(tmp_path, monkeypatch):
    net = one_way_streets(grid_roads(4, 5, jitter=0.3, relief=30, rng=1), 0.3, 1)
    file = tmp_path / "grid.json.gz"
    net.save(file)
    again = RoadNetwork.load(file)
    for name in ("ids", "classes", "name", "notes", "geographic"):
        assert getattr(again, name) == getattr(net, name)
    assert np.array_equal(again.connections, net.connections)
    assert again.lengths == pytest.approx(net.lengths, abs=0.0051)
    assert again.inclines == pytest.approx(net.inclines, abs=5.1e-6)
    assert again.polylines[3] == pytest.approx(net.polylines[3], abs=0.0051)
    monkeypatch.setenv("HOME", str(tmp_path))
    RoadNetwork([0.004, 2.0], [3.0, 4.0], [(0, 1)]).save("~/bare.json.gz")
    again = RoadNetwork.load("~/bare.json.gz")
    assert (again.polylines, again.lengths.tolist()) == (None, [0.01, 2.0])
    good = file.read_bytes()
    content = json.loads(gzip.decompress(good))
    wrong = [{**content, "emsopt roads": 2}, {k: v for k, v in content.items() if k != "ids"}, [1]]
    for broken in (good[:200], *(gzip.compress(json.dumps(part).encode()) for part in wrong)):
        file.write_bytes(broken)
        refused("is damaged, or was not written", RoadNetwork.load, file)
