"""The live sheet in a real browser: the numbers of the Python model, without a request, by mouse, finger and keys."""

from itertools import product

import numpy as np
import pytest
from test_map_page import degrees, page  # noqa: F401  # `page` is a fixture that fails on errors and requests

from emsopt import City
from emsopt.evaluators import approximate_hypercube
from emsopt.maps import live_sheet
from emsopt.maps.sheets import encode_model

pytestmark = [pytest.mark.browser, pytest.mark.filterwarnings("ignore::emsopt.errors.AccuracyWarning")]

THRESHOLD = 8.0
FIELDS = ("meanResponse", "lateShare", "percentile90", "worst", "blocked", "wait", "rho", "atomLate")
COMPUTE = f"""cases => cases.map(([packed, runs]) => {{
  const city = unpack(packed), late = lateChances(city, {THRESHOLD});
  let near;  // as the page does, the search begins at the percentile before
  return runs.map(([sites, scale, queue]) => {{
    const e = evaluate(city, sites, scale, queue, late, near);
    near = e.percentile90;
    e.worst = e.atomResponse[e.worst];
    return {list(FIELDS)}.flatMap(name => e[name].length ? [...e[name]] : e[name]);
  }});
}})"""


def plane_city(rng, n_sites, n_atoms, travel_cv, uneven):
    """Draw a plane city with twins, ties and an area without calls; with `uneven`, more varies by place."""
    atoms, sites = rng.integers(0, 12, (n_atoms, 2)), rng.integers(0, 12, (n_sites, 2))
    sites[1] = sites[0]  # a twin
    minutes = 1.5 * np.abs(sites[:, None] - atoms).sum(axis=2)  # whole blocks, so that many are equal
    shape = (n_sites, n_atoms)
    variation = np.full(shape, travel_cv) * (rng.uniform(0.5, 1.5, shape) if uneven else 1)
    rates = rng.uniform(0.1, 1, n_atoms) * (np.arange(n_atoms) > 0)
    turnout, service = (rng.uniform(0, 2, n_sites), rng.uniform(20, 50, shape)) if uneven else (1.0, 30.0)
    varying = {"travel_cv": variation, "turnout_cv": rng.choice([0.0, 0.4], n_sites) if uneven and travel_cv else 0.0}
    order = rng.integers(0, 5, shape) if uneven and not travel_cv else None
    places = {"atom_locations": atoms.astype(float), "site_locations": sites.astype(float), "geographic": False}
    return City(rates, minutes, turnout, service, preference=order, **varying, **places)


def test_the_page_computes_what_python_computes(page, tmp_path):  # noqa: F811
    rng = np.random.default_rng(0)
    cases, expected = [], []
    for travel_cv, uneven, queue, _ in product((0.0, 0.3), (False, True), (False, True), range(5)):
        city = plane_city(rng, 10, 40, travel_cv, uneven)
        runs = []
        for _ in range(5):
            sites = np.r_[0, 1, rng.integers(0, city.n_sites, rng.integers(0, 11))]
            load = rng.uniform(0.05, 0.9) * (0.85 if queue else 1)  # a queue of uneven units must be stable
            loaded = city.with_offered_load(load, len(sites))
            e = approximate_hypercube(loaded, sites, capacity="queue" if queue else "loss")
            blocked = e.queue_probability if queue else e.loss_probability
            figures = e.mean_response, e.late_fraction(THRESHOLD), e.percentile_90, e.atom_response[1:].max(), blocked
            expected.append([*figures, e.mean_wait, *e.utilizations, *e.atom_late_fractions(THRESHOLD)])
            runs.append([sites.tolist(), loaded.total_rate / city.total_rate, queue])
        cases.append([encode_model(city), runs])
    page.goto(live_sheet(city, [0, 1, 2]).save(tmp_path / "sheet.html").as_uri())
    found = [row for rows in page.evaluate(COMPUTE, cases) for row in rows]
    assert len(found) == len(expected) == 200
    for mine, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=0, atol=1e-9)


@pytest.fixture
def city():
    return degrees(travel_cv=0.3)


def opened(page, city, path):  # noqa: F811
    page.goto(live_sheet(city, {"today": [0, 2, 3], "proposed": [0, 0, 4]}, path).save(path).as_uri())
    page.locator(".leaflet-marker-icon").first.wait_for()


def units(page):  # noqa: F811
    return page.evaluate("location.hash").split("units=")[1].split(".")


def figures(page):  # noqa: F811
    """Return the mean response and the late share (%) of the reader's deployment."""
    return [float(text) for text in page.locator(".figures td:nth-child(3)").all_inner_texts()[:2]]


def test_units_are_moved_by_mouse_and_keys(page, city, tmp_path):  # noqa: F811
    opened(page, city, tmp_path / "sheet.html")
    assert units(page) == ["0", "0", "4"]
    west, north = (page.locator(f"[data-place='{k}']").bounding_box() for k in (3, 2))
    page.mouse.move(west["x"] + 8, west["y"] + 8)
    page.mouse.down()
    page.mouse.move(north["x"] + 20, north["y"] + 9, steps=5)
    page.mouse.up()
    assert units(page) == ["0", "0", "3"]
    page.locator("[data-place='0']").focus()
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.textContent") == "Move a unit"
    page.keyboard.press("Enter")
    page.locator("[data-place='1']").focus()
    page.keyboard.press("Enter")
    assert units(page) == ["0", "2", "3"]
    assert set(page.locator(".figures td:nth-child(4)").all_inner_texts()) <= {"0.0", "0.00"}  # as today
    page.get_by_label("Demand").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    page.get_by_label("Late from").fill("4")
    e = approximate_hypercube(city.scaled(1.1), [0, 2, 3])
    assert figures(page) == [round(e.mean_response, 2), round(100 * e.late_fraction(4.0), 1)]
    page.get_by_role("button", name="Undo").click()
    assert figures(page)[1] == round(100 * e.late_fraction(8.0), 1)
    page.get_by_role("button", name="Undo").click()  # both steps of the slider
    assert page.evaluate("location.hash").startswith("#demand=100&")


def test_the_best_move_is_the_best_and_a_copy_keeps_it(page, city, tmp_path):  # noqa: F811
    opened(page, city, tmp_path / "sheet.html")
    page.get_by_role("button", name="Back to “today”").click()
    moves = [[*({0, 2, 3} - {left}), taken] for left in (0, 2, 3) for taken in range(city.n_sites)]
    best = min(approximate_hypercube(city, sites).mean_response for sites in moves)
    page.get_by_role("button", name="Best single move").click()
    found = [int(site) for site in units(page)]
    assert approximate_hypercube(city, found).mean_response == pytest.approx(best, abs=1e-9)
    with page.expect_download() as saved:
        page.get_by_role("button", name="Save a copy").click()
    copy = tmp_path / saved.value.suggested_filename
    saved.value.save_as(copy)
    assert copy.name == "Gridtown.html"
    shown = page.locator(".figures").inner_text()
    page.goto(copy.as_uri())
    assert page.locator(".figures").inner_text() == shown
    page.goto(f"{copy.as_uri()}#units=1.1&late=abc&goal=late&busy=wait&demand=8")
    page.reload()
    e = approximate_hypercube(city.scaled(0.08), [1, 1], capacity="queue")
    assert figures(page) == [round(e.mean_response, 2), round(100 * e.late_fraction(8.0), 1)]


def test_a_phone_shows_it_without_scrolling_sideways(page, city, tmp_path):  # noqa: F811
    page.set_viewport_size({"width": 390, "height": 844})
    opened(page, city, tmp_path / "sheet.html")
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    assert page.locator(".leaflet-container").bounding_box()["y"] < 600
    page.get_by_text("What this sheet leaves out").click()
    assert "hours of the day" in page.locator(".foot").last.inner_text()
    page.get_by_label("If all units are busy").select_option("wait")
    page.get_by_label("Demand").fill("300")
    assert "grows without bound" in page.get_by_role("alert").inner_text()
    page.get_by_text("Stations and units").click()
    page.get_by_role("button", name="Add a unit to North").click()
    assert len(units(page)) == 4
