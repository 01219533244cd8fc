"""The map page in a real browser: no errors, no requests, and every control does what it says."""

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import smallville
from test_notebook_pages import watched
from uploads import square

from emsopt.calls import Replay, read_calls
from emsopt.city.city import City
from emsopt.maps import deployment_map, replay_map
from emsopt.operations import System, simulate

pytestmark = pytest.mark.browser

NASTY = "<img src=x onerror=window.hacked=1><script>window.hacked=1</script>"
LINES = ".leaflet-lines-pane path"
ATOMS = ".leaflet-overlay-pane path"
STATIONS = ".station:not(.vacant)"
DOTS = """() => { const map = document.querySelector('.emsopt-map').map, found = []; map.eachLayer(layer => {
    if (layer.getRadius?.() === 6) found.push([layer.getLatLng().lat, layer.getLatLng().lng]); }); return found; }"""


@pytest.fixture
def page(browser):
    """A page of files, which also must not complain on the console or open a dialog."""
    trouble = []
    with watched(browser, "file:") as tab:
        tab.set_viewport_size({"width": 1000, "height": 640})
        tab.on("console", lambda line: line.type in ("error", "warning") and trouble.append(f"console: {line.text}"))
        tab.on("dialog", lambda dialog: trouble.append(f"dialog: {dialog.message}"))
        yield tab
    assert trouble == []


def make_city(**changes):
    x, y = np.meshgrid(np.arange(5.0), np.arange(4.0))
    atoms = np.column_stack([x.ravel(), y.ravel()])
    sites = np.array([[0.5, 0.5], [0.5, 0.5], [3.5, 0.5], [3.5, 2.5], [0.5, 2.5]])
    distance = np.hypot(*(sites[:, None] - atoms).transpose(2, 0, 1))
    fields = {"atom_locations": atoms, "site_locations": sites, "geographic": False, "name": "Gridtown"}
    fields["site_names"] = ["Depot (unit 1)", "Depot (unit 2)", "South", "North", "West"]
    fields["notes"] = "All of it is made up."
    return City(1 + np.arange(20.0) % 3, 1 + 2 * distance, 1.0, 30.0, **fields | changes)


def degrees(**changes):
    """The same city near Greenwich, with square atoms."""
    plane = make_city()
    scale, origin = np.array([0.014, 0.009]), np.array([-0.03, 51.48])
    atoms, sites = plane.atom_locations * scale + origin, plane.site_locations * scale + origin
    shapes = [square(east - 0.007, north - 0.0045, 0.014, 0.009) for east, north in atoms]
    return make_city(atom_locations=atoms, site_locations=sites, atom_shapes=shapes, geographic=True, **changes)


def evaluation(city, sites, busy=0.2):
    """Independent units, each busy with the same probability: enough to draw from."""
    rank = city.response_times[sites].argsort(axis=0, kind="stable").argsort(axis=0, kind="stable")
    fractions = (1 - busy) * busy**rank / (1 - busy ** len(sites))
    return replace(smallville.evaluation(city, sites, fractions, busy), loss_probability=busy ** len(sites))


def open_map(page, shown, folder):
    page.goto(shown.save(folder / "map.html").as_uri())
    page.wait_for_selector(".leaflet-container .leaflet-marker-icon")


def layer(page, name):
    return page.locator(".leaflet-control-layers label", has_text=name).locator("input")


@pytest.mark.parametrize("make", [degrees, make_city], ids=["degrees", "plane"])
def test_everything_is_drawn_inside_the_frame(page, make, tmp_path):
    city = make()
    shown = deployment_map(city, evaluation(city, [0, 1, 2, 3]))
    open_map(page, shown, tmp_path)
    assert page.locator(ATOMS).count() == city.n_atoms
    assert page.locator(LINES).count() == len(shown.data["views"][0]["lines"])
    markers = page.locator(".leaflet-marker-pane")
    assert sorted(markers.locator(STATIONS).all_inner_texts()) == ["1", "1", "2"]
    assert markers.locator(".station.vacant").count() == 1
    assert "All of it is made up." in page.locator(".foot").inner_text()
    assert "Mean response, min" in page.locator(".legend").inner_text()
    frame = page.locator(".leaflet-container").bounding_box()
    for box in (page.locator(ATOMS).nth(k).bounding_box() for k in range(city.n_atoms)):
        for at, size in (("x", "width"), ("y", "height")):
            assert frame[at] <= box[at]
            assert box[at] + box[size] <= frame[at] + frame[size]


def test_north_is_up_and_the_scale_bar_is_true(page, tmp_path):
    city = make_city()
    open_map(page, deployment_map(city), tmp_path)
    # Atoms are a kilometre apart; number 0 is the south-west corner, 4 the south-east, 15 the north-west.
    centres = [page.locator(ATOMS).nth(k).bounding_box() for k in (0, 4, 15)]
    x, y = ([box[a] + box[b] / 2 for box in centres] for a, b in (("x", "width"), ("y", "height")))
    assert y[2] < y[0] < y[0] + 1
    kilometre = (x[1] - x[0]) / 4
    assert kilometre == pytest.approx((y[0] - y[2]) / 3, rel=0.02)
    bar = page.locator(".leaflet-control-scale-line")
    amount, unit = bar.inner_text().split()
    metres = float(amount) * {"m": 1, "km": 1000}[unit]
    assert bar.bounding_box()["width"] == pytest.approx(metres / 1000 * kilometre, abs=4)


def test_layers_switch_on_and_off(page, tmp_path):
    city = degrees()
    open_map(page, deployment_map(city, evaluation(city, [0, 2, 3])), tmp_path)
    layers = {"Shading": ATOMS, "Who answers": LINES, "Vacant sites": ".leaflet-marker-pane .vacant"}
    for name, drawn in (layers | {"Stations with units": f".leaflet-marker-pane {STATIONS}"}).items():
        before = page.locator(drawn).count()
        assert before > 0, name
        layer(page, name).uncheck()
        assert page.locator(drawn).count() == 0, name
        layer(page, name).check()
        assert page.locator(drawn).count() == before, name
    layer(page, "Calls").check()
    assert page.locator(".leaflet-calls-pane path").count() == city.n_atoms


def test_the_switch_shows_the_other_deployment_and_their_difference(page, tmp_path):
    city = degrees()
    one, other = evaluation(city, [0, 2, 3]), evaluation(city, [0, 1, 2], busy=0.4)
    open_map(page, deployment_map(city, {"optimum": one, "p-median": other}), tmp_path)
    summary = page.locator(".summary")
    assert f"{one.mean_response:.2f} min" in summary.inner_text()
    fills = page.locator(ATOMS).evaluate_all("paths => paths.map(p => p.getAttribute('fill'))")
    page.locator(".leaflet-control-layers-base label").nth(1).click()
    assert f"{other.mean_response:.2f} min" in summary.inner_text()
    assert sorted(page.locator(f".leaflet-marker-pane {STATIONS}").all_inner_texts()) == ["1", "2"]
    assert page.locator(ATOMS).evaluate_all("paths => paths.map(p => p.getAttribute('fill'))") != fills
    page.locator(".leaflet-control-layers-base label").nth(2).click()
    assert sorted(page.locator(f".leaflet-marker-pane {STATIONS}").all_inner_texts()) == ["+1", "1", "−1"]
    assert page.locator(LINES).count() == 0
    assert "minus" in page.locator(".legend").inner_text()


def test_a_click_tells_about_an_atom_the_keyboard_about_a_station_and_the_table_about_both(page, tmp_path):
    city = degrees()
    shown = evaluation(city, [0, 1, 2, 3])
    open_map(page, deployment_map(city, shown), tmp_path)
    page.locator(ATOMS).nth(7).click()
    text = page.locator(".leaflet-popup-content").inner_text()
    assert "atom 8" in text
    assert f"{shown.atom_response[7]:.2f} min" in text
    assert f"{100 * city.demand_shares[7]:.1f}%" in text
    at_depot = shown.dispatch_fractions[:2, 7].sum()
    assert re.search(rf"Depot\s+{100 * at_depot:.0f}%", text)
    page.locator(".leaflet-marker-icon", has_text="2").focus()
    page.keyboard.press("Enter")
    page.wait_for_function("document.querySelector('.leaflet-popup-content').innerText.includes('Depot')")
    text = page.locator(".leaflet-popup-content").last.inner_text()
    assert "Depot (unit 2)" in text
    assert "20.0%" in text
    label = page.locator(".leaflet-marker-icon", has_text="2").get_attribute("aria-label")
    assert label.startswith("Depot: 2 units, 20% busy")
    page.locator(".foot summary").press("Enter")
    page.wait_for_selector(".tables table")  # filled when the browser says that the details are open
    atoms = page.locator(".tables table").nth(1)
    assert atoms.locator("tbody tr").count() == city.n_atoms
    atoms.get_by_role("button", name="atom 20").press("Enter")
    assert not page.locator(".tables").is_visible()
    assert "atom 20" in page.locator(".leaflet-popup-content").last.inner_text()


def test_a_name_with_markup_is_shown_as_it_is_written(page, tmp_path):
    names = [f"{NASTY} {k}" for k in range(20)]
    sites = [f"{NASTY} site {k}" for k in range(5)]
    city = degrees(atom_names=names, site_names=sites, name=NASTY, notes=NASTY)
    shown = evaluation(city, [0, 2, 3])
    open_map(page, deployment_map(city, {NASTY: shown, NASTY + "2": shown}), tmp_path)
    atom = page.locator(ATOMS).nth(7).element_handle()  # pointing at it moves it to the front
    atom.hover()
    page.locator(".leaflet-tooltip-pane .leaflet-tooltip", has_text=names[7]).wait_for()
    atom.click()
    assert names[7] in page.locator(".leaflet-popup-content").inner_text()
    assert NASTY in page.locator(".leaflet-control-layers-base label").nth(1).inner_text()
    page.locator(".leaflet-control-layers-base label").nth(2).click()
    assert NASTY in page.locator(".legend").inner_text()
    assert NASTY in page.locator(".foot p").inner_text()
    page.locator(".foot summary").click()
    page.wait_for_selector(".tables table")
    assert names[0] in page.locator(".tables").inner_text()
    assert page.title() == NASTY
    assert page.evaluate("window.hacked") is None
    assert page.locator("img").count() == 0


def test_a_map_born_in_a_hidden_tab_fits_when_shown(page, tmp_path):
    city = degrees()
    frame = deployment_map(city, evaluation(city, [0, 2, 3]))._repr_html_()
    (tmp_path / "tabs.html").write_text(f"<!doctype html><div id='tab' style='display:none'>{frame}</div>", "utf-8")
    page.goto((tmp_path / "tabs.html").as_uri())
    page.wait_for_timeout(500)
    page.evaluate("document.getElementById('tab').style.display = 'block'")
    atoms = page.frame_locator("iframe").locator(ATOMS)
    atoms.first.wait_for()
    page.wait_for_timeout(300)
    boxes = [atoms.nth(k).bounding_box() for k in (0, 19)]
    assert boxes[1]["x"] - boxes[0]["x"] > 200


def test_the_first_click_on_a_map_that_is_partly_out_of_sight_is_not_lost(page, tmp_path):
    """The map takes the focus as the mouse goes down; a page that then scrolled would move the station away."""
    city = make_city()
    frame = deployment_map(city, evaluation(city, [0, 2, 3]), height=600)._repr_html_()
    above, below = (f"<div style='height: {height}px'></div>" for height in (250, 900))
    (tmp_path / "page.html").write_text(f"<!doctype html>{above}{frame}{below}", "utf-8")
    page.goto((tmp_path / "page.html").as_uri())
    inner = page.frame_locator("iframe")
    station = inner.locator(".leaflet-marker-icon:has(.station:not(.vacant))").first
    station.wait_for()
    page.wait_for_timeout(300)
    boxes = [inner.locator(STATIONS).nth(k).bounding_box() for k in range(3)]
    box = min(boxes, key=lambda box: box["y"])
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    assert y < 620
    page.mouse.move(x, y)
    page.mouse.down()
    page.wait_for_timeout(150)
    page.mouse.up()
    inner.locator(".leaflet-popup").wait_for(timeout=5000)


def test_units_drive_to_calls_as_the_clock_runs(page, tmp_path):
    times = pd.to_datetime(["2024-01-01 10:00", "2024-01-01 10:10", "2024-01-01 10:11"])
    calls = read_calls(pd.DataFrame({"time": times, "lon": [8.8, 8.84, 8.8], "lat": [53.07, 53.1, 53.1]}))
    stations = pd.DataFrame({"name": ["a", "b"], "lon": [8.81, 8.83], "lat": [53.08, 53.08]})
    columns = {"response": [5.0, 3.0, np.nan], "unit": [0, 1, -1], "busy": [20.0, 2.0], "turnout": [1.0, 1.0, np.nan],
               "service": [20.0, 2.0, np.nan]}  # fmt: skip
    columns = {name: np.array([column]) for name, column in columns.items()}
    dispatched = times.to_numpy().astype("datetime64[s]")
    drawn = replay_map(Replay(calls, deployment=np.array([0, 1]), dispatched=dispatched, stations=stations, **columns))
    page.goto(drawn.save(tmp_path / "day.html").as_uri())
    slider, houses = page.get_by_label("Time"), page.locator(".station")
    texts, moving = [], []
    for minute in (0, 3, 6, 11, 21):
        slider.fill(str(minute))
        texts.append(" ".join(houses.all_inner_texts()))
        moving.append(page.evaluate(DOTS))
    assert texts == ["1 1", "0 1", "0 1", "0 0", "1 1"]
    home, call = np.array([53.08, 8.81]), np.array(drawn.scene["calls"][drawn.views[0]["place"][0]])
    assert moving[1][0] == pytest.approx(home + (call - home) * 2 / 4, abs=1e-4)  # two of four minutes under way
    assert moving[2][0] == pytest.approx(call, abs=1e-4)
    assert [len(each) for each in moving] == [0, 1, 1, 2, 0]
    assert "0 of 2 units busy · 3 calls, 1 of them lost" in page.locator(".summary").inner_text()
    slider.fill("0")
    page.get_by_role("button", name="Play").press("Enter")
    while float(slider.input_value()) < 1:
        page.wait_for_timeout(50)
    page.get_by_role("button", name="Pause").click()
    held = slider.input_value()
    page.wait_for_timeout(300)
    assert slider.input_value() == held


def test_units_turn_around_and_bring_patients_to_a_hospital(page, tmp_path):
    city = degrees()
    n, m = city.travel_times.shape
    system = System(city, np.ones((n + m + 1,) * 2), 1, hospital_locations=[[0.0, 51.5]])
    rows = [  # to atom 5 and its hospital; back to site 3, on the way to which it is sent to atom 7
        (0, 0, 2, n + 5, 10.0, 14.0, 14.0), (0, 0, n + 5, n + m, 20.0, 24.0, 24.0),
        (0, -1, n + m, 3, 30.0, 40.0, 35.0), (0, 1, n + m, n + 7, 35.0, 39.0, 39.0),
    ]  # fmt: skip
    names = ["unit", "call", "origin", "goal", "leave", "arrive", "until"]
    played = replace(simulate(system, [2], calls=50, trace=1, rng=0), trace=pd.DataFrame(rows, columns=names))
    page.goto(replay_map(played, hours=1).save(tmp_path / "night.html").as_uri())
    slider, houses, found = page.get_by_label("Time"), page.locator(".station"), []
    for minute in (5, 12, 17, 22, 27, 35, 37):
        slider.fill(str(minute))
        found += page.evaluate(DOTS)
        assert sum(map(int, houses.all_inner_texts())) == (minute == 5)
    sites, atoms = city.site_locations[:, ::-1], city.atom_locations[:, ::-1]
    hospital = np.array([51.5, 0.0])
    turned = (hospital + sites[3]) / 2
    expected = [(sites[2] + atoms[5]) / 2, atoms[5], (atoms[5] + hospital) / 2, hospital, turned]
    expected.append((turned + atoms[7]) / 2)
    assert np.array(found) == pytest.approx(np.array(expected), abs=1e-4)
    assert page.locator(".hospital").count() == 1
    assert "2 units sent" in page.locator(".summary").inner_text()
