"""Interactive maps: what is on them is what the evaluation says, nothing is fetched, and no name becomes code."""

import hashlib
import json
import re
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
from refusals import refused
from smallville import evaluation, small_city
from uploads import square

from emsopt.city.city import City
from emsopt.datasets import grid_city, load_st_paul
from emsopt.evaluators import approximate_hypercube
from emsopt.maps import _colours, frames
from emsopt.maps.deployments import deployment_map
from emsopt.roads import grid_roads

VENDOR = files("emsopt") / "maps" / "vendor"
NASTY = ["<script>alert(1)</script>", '"><img src=x onerror=alert(2)>', "</script><b>&amp;'\\u003c"]
LEAFLET = (VENDOR / "leaflet" / "leaflet.js").read_text("utf-8").split("\n//# source")[0]


class Page(HTMLParser):
    """Tags with attributes, and the text of every script."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.scripts, self.text = [], [], ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag == "script":
            self.scripts.append("")

    def handle_data(self, data):
        if self.lasttag == "script":
            self.scripts[-1] += data
        self.text += data


def payload(page):
    return json.loads(Page(page).scripts[0])


def test_a_page_refers_to_nothing_outside_itself_and_may_request_nothing(both, city):
    page = deployment_map(city, {"one": both, "other": both}).html
    assert LEAFLET in page  # the vendored library stands there whole; its links are never followed
    own = page.replace(LEAFLET, "")
    assert "://" not in re.sub(r"/\*.*?\*/", "", own)  # comments aside
    assert not re.search(r"""(?i)(?:(?:src|href|action|data)\s*=|url\(|import|fetch|tileLayer\()\W*//\S+""", own)
    tags = Page(page).tags
    assert not [attrs for _, attrs in tags if "src" in attrs or "href" in attrs]
    policy = next(attrs["content"] for _, attrs in tags if "http-equiv" in attrs)
    assert "default-src 'none'" in policy
    assert policy.split("img-src")[1].split() == ["data:"]


def test_vendored_files_are_those_that_the_notice_names():
    notice = (VENDOR / "NOTICE").read_text("utf-8")
    listed = re.findall(r"([0-9a-f]{64})  (\S+)", notice)
    for checksum, name in listed:
        assert hashlib.sha256((VENDOR / name).read_bytes()).hexdigest() == checksum, name
    folder = Path(str(VENDOR))
    shipped = {path.relative_to(folder).as_posix() for path in (folder / "leaflet").rglob("*") if path.is_file()}
    assert shipped == {name for _, name in listed}


def test_no_name_becomes_markup(both):
    sites = [name + "!" for name in NASTY]
    city = small_city(atom_names=NASTY, site_names=sites, name=NASTY[2], notes=NASTY[0])
    shown = evaluation(city, both.sites, both.dispatch_fractions)
    view = NASTY[1] + "\u2028"  # ends a line of a script, and no name of a city may have it
    page = deployment_map(city, {view: shown, NASTY[0]: shown})
    found = Page(page.html)
    assert [tag for tag, _ in found.tags].count("script") == 2  # data, and Leaflet with ours
    assert {"img", "b"}.isdisjoint(tag for tag, _ in found.tags)
    assert (payload(page.html)["city"]["atoms"]["name"], payload(page.html)["views"][0]["name"]) == (NASTY, view)
    assert payload(page.html)["notes"] == NASTY[0]


def test_the_page_carries_the_evaluation(both, city):
    shown = deployment_map(city, both)
    data, (view,) = payload(shown.html), shown.views
    (tag, attributes), *rest = Page(shown._repr_html_()).tags  # in a notebook
    assert ((tag, rest), attributes["srcdoc"]) == (("iframe", []), shown.html)
    assert data["views"] == [view]
    assert view["columns"][0]["values"] == pytest.approx(both.atom_response, abs=1e-4)
    # A answers 1 percent of the last atom's calls: below the threshold, so no line.
    assert view["lines"] == [[0, 0, 0.9], [0, 1, 0.4], [1, 0, 0.1], [1, 1, 0.6], [1, 2, 0.99]]
    assert data["city"]["atoms"]["share"] == [0.25, 0.5, 0.25]
    assert data["city"]["places"][0] == {"name": "Station A", "at": [51.5, 0.005]}  # latitude first
    assert view["units"][1]["rows"] == [["Station B", "25.0%", "57.2%"]]  # (0.1 + 2 x 0.6 + 0.99) / 4
    assert f"{both.mean_response:.2f} min" in view["summary"]
    assert "1% of calls lost" in view["summary"]
    assert data["notes"] == "Times are made up."


def test_units_at_one_place_no_evaluation_and_missing_values(doubled, city):
    (view,) = deployment_map(city, doubled).views
    (station,) = view["units"]
    assert (station["text"], [row[0] for row in station["rows"]]) == ("2", ["Station A (unit 1)", "Station A (unit 2)"])
    assert deployment_map(city).views[0]["columns"][0]["values"] == [25.0, 50.0, 25.0]
    shown = deployment_map(city, evaluation(city, [0, 2], [[0.9, np.nan, 0.01], [0.1, np.nan, 0.99]]))
    assert shown.views[0]["columns"][0]["values"][1] is None
    assert "NaN" not in Page(shown.html).scripts[0]


def test_late_shares_and_differences_are_those_of_the_evaluations(both, city, doubled):
    shares, *_ = _colours.atom_values(city, both, ("late", 6.0))
    assert shares @ city.demand_shares / 100 == pytest.approx(both.late_fraction(6.0))
    assert shares == pytest.approx(100 * both.atom_late_fractions(6.0))
    assert both.atom_late_fractions(0).tolist() == pytest.approx([1, 1, 1])
    shown = deployment_map(city, {"spread": both, "together": doubled})
    spread, together, difference = shown.views
    assert [v["name"] for v in shown.views] == ["spread", "together", "spread minus together"]
    assert spread["classes"]["edges"] == together["classes"]["edges"]  # comparable at a glance
    assert difference["columns"][0]["values"] == pytest.approx(both.atom_response - doubled.atom_response, abs=1e-4)
    assert [(u["text"], u["tone"]) for u in difference["units"]] == [("−1", "loss"), ("+1", "gain")]
    edges = np.array(difference["classes"]["edges"])
    assert edges == pytest.approx(-edges[::-1])


def test_the_difference_from_today_says_how_many_calls_a_year_are_faster_and_slower(both, city, doubled):
    named = {"today": doubled, "moved": both, "again": doubled}
    view = deployment_map(city, named, hours_a_year=1000).views[-1]
    change = both.atom_response - doubled.atom_response
    assert view["name"] == "moved minus today"
    assert view["columns"][-1]["values"] == pytest.approx(1000 * city.arrival_rates)
    for said, side in (("moved", -change), ("today", change)):
        far = side > 0.01 * doubled.mean_response
        counts = f"{1000 * city.arrival_rates[far].sum():,.0f} calls a year in {far.sum()} of {len(far)} areas."
        assert f"{said} is better, for {counts}" in view["hint"]


def test_a_plane_city_is_drawn_in_metres(both):
    """And so are its streets, once for both directions."""
    atoms, sites = [[0, 0], [3, 1], [5, 2]], [[1, 0], [1, 0], [4, 1]]
    shapes = [square(0, 0, 1, 1)] * 3
    city = small_city(geographic=False, atom_locations=atoms, site_locations=sites, atom_shapes=shapes)
    net, shown = grid_roads(3, 3), evaluation(city, both.sites, both.dispatch_fractions)
    scene = deployment_map(city, shown, roads=net).scene
    assert scene["city"]["plane"]
    assert scene["city"]["atoms"]["at"] == [[0, 0], [1000, 3000], [2000, 5000]]  # north, east
    corner = scene["city"]["atoms"]["shape"][0]["coordinates"][0][2]
    assert corner == [1000, 1000]  # east, north as GeoJSON has it
    assert scene["city"]["bounds"] == [[0, 0], [2000, 5000]]
    assert len(scene["streets"]["courses"]) == net.n_edges / 2
    refused("in longitude and latitude", deployment_map, small_city(), both, roads=net)


def test_what_cannot_be_drawn_is_refused(both, city):
    other = City([1.0, 1.0], [[1.0, 2.0]], 1.0, 30.0, atom_locations=[[0, 51], [0.1, 51]], site_locations=[[0, 51]])
    for options, message in (
        ({"value": "speed"}, "`value` must be"),
        ({"limits": (5, 5)}, "low < high"),
        ({"height": 10}, "`height` must be"),
        ({"roads": "streets"}, "`roads` must be"),
        ({"evaluation": {}}, "Evaluation"),
        ({"city": other}, "belongs to another city"),
        ({"city": city.replace(atom_locations=None)}, "has no `atom_locations`"),
        ({"hours_a_year": 0}, "`hours_a_year` must be a number above 0"),
    ):
        refused(message, deployment_map, **{"city": city, "evaluation": both, **options})
    refused("does not exist", deployment_map(city, both).save, "nowhere/map.html")


def test_frames_and_folium_maps_carry_the_figures():
    names = [NASTY[0], *(f"site {k}" for k in range(1, 17))]
    city = load_st_paul().replace(site_names=names)
    sites = [0, 0, 3, 4, 8, 9, 11, 15, 16]
    evaluated = approximate_hypercube(city, sites)
    frame = frames.atoms_frame(city, evaluated)
    assert (frame.crs.to_epsg(), len(frame)) == (4326, 71)
    assert frame["mean_response_min"].to_numpy() == pytest.approx(evaluated.atom_response)
    assert frame["calls_per_hour"].sum() == pytest.approx(city.total_rate)
    centres = frames.atoms_frame(city.replace(atom_shapes=None)).geometry
    assert frame.geometry.contains(centres).mean() > 0.9  # a cell holds its own atom
    frame = frames.sites_frame(city, evaluated)
    assert frame["units"].tolist() == np.bincount(sites, minlength=17).tolist()
    assert frame["utilization"].iloc[0] == pytest.approx(evaluated.utilizations[:2].mean())
    assert (frame["utilization"].isna().sum(), frame["share_of_calls"].sum()) == (9, pytest.approx(1))
    page = frames.folium_map(city, evaluated).get_root().render()
    assert "mean response (min)" in page
    assert "alert(1)" in page
    assert "<script>alert(1)" not in page
    grid = grid_city(n_sites=9, units=3, rng=0)
    refused("plane", frames.folium_map, grid, approximate_hypercube(grid, [0, 1, 2]))
