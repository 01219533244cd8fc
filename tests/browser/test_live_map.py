"""The live map where notebooks are read: a click reaches the kernel, results come back, and the reader's view stays."""

import nbformat
import pytest
from test_notebook_pages import PATIENCE, TOKEN, run_cells, served, until, watched

pytest.importorskip("anywidget", reason="needs the package anywidget")
pytestmark = pytest.mark.browser

CELLS = (
    """
import emsopt as eo
from emsopt.maps.live import LiveMap
city, sites = eo.datasets.load_st_paul(), [0, 2, 4, 6, 9, 12]
def clicked(places):
    global sites
    sites = [k for k in sites if k not in places] or sites
    if len(sites) == before:
        sites = [*sites, places[0]]
    change()
def change():
    global before
    before = len(sites)
    found = {"yours": eo.evaluators.approximate_hypercube(city, sites)}
    if before != 6:
        found["six"] = eo.evaluators.approximate_hypercube(city, [0, 2, 4, 6, 9, 12])
    live.update(found)
before = 6
first = {"yours": eo.evaluators.approximate_hypercube(city, sites)}
live = LiveMap()
live.edit, live.clicked = "yours", clicked
live.draw(eo.maps.deployment_map(city, first, height=420))
live
""",
    "static = eo.maps.deployment_map(city, eo.evaluators.approximate_hypercube(city, sites))\nstatic",
)
STREET_MAP = ("https://tile.openstreetmap.org/",)  # asked for only where the reader switches it on
KNOWN = "reading 'schema'"  # Notebook 7.6 raises this with an empty notebook, too
# For each host, the address of the notebook, and one that answers as soon as the server runs.
HOSTS = {
    "jupyterlab": ("doc/tree/live.ipynb", f"/api?token={TOKEN}"),
    "notebook": ("notebooks/live.ipynb", f"/api?token={TOKEN}"),
    "voila": ("", "/voila/static/voila.js"),
}


@pytest.mark.parametrize("host", HOSTS)
def test_a_click_changes_the_results_and_not_the_view(browser, host, tmp_path):
    pytest.importorskip(host, reason=f"needs the package {host}")
    folder, home = tmp_path / "notebooks", tmp_path / "home"
    for made in (folder, home):
        made.mkdir()
    cells = [nbformat.v4.new_code_cell(cell.strip()) for cell in CELLS]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=kernel), folder / "live.ipynb")
    arguments = [host, "--allow-root", "--ip=127.0.0.1", f"--IdentityProvider.token={TOKEN}"]
    arguments += [f"--ServerApp.root_dir={folder}", "--LabApp.expose_app_in_browser=True"]
    arguments += ["--JupyterNotebookApp.expose_app_in_browser=True"]
    if host == "voila":
        arguments = ["voila", str(folder / "live.ipynb"), "--template=emsopt", "--Voila.ip=127.0.0.1"]
    path, question = HOSTS[host]
    with served(arguments, home, question) as address, watched(browser, address, KNOWN, STREET_MAP) as page:
        page.goto(f"{address}/{path}?token={TOKEN}")
        if host != "voila":
            run_cells(page)
        live = page.locator("div.emsopt-map")
        live.locator(".leaflet-marker-icon").first.wait_for()
        page.set_default_timeout(30_000)
        check(page, live)
        static = page.frame_locator("iframe").locator(".leaflet-marker-icon")
        until(page, lambda: static.count() > 10, "the page of the static map")


def check(page, live):
    zoom = "document.querySelector('div.emsopt-map').map.getZoom()"
    live.scroll_into_view_if_needed()
    live.get_by_role("button", name="Zoom in").click()
    page.wait_for_timeout(500)
    live.get_by_label("Who answers").uncheck()
    before, kept = live.locator(".summary").text_content(), page.evaluate(zoom)
    units = live.locator(".leaflet-marker-pane .station:not(.vacant)")
    vacant = live.locator(".leaflet-marker-icon:has(.vacant)")
    for turn in range(8):  # a unit more, a unit less
        if turn % 2 == 0:
            place = vacant.nth(2).get_attribute("data-place")
        button = live.locator(f"[data-place='{place}']")
        if turn < 2:
            button.focus()
            page.keyboard.press("Enter")
        else:
            button.dispatch_event("click")
        until(page, lambda n=7 - turn % 2: units.count() == n, "another number of stations", PATIENCE / 1000)
    assert page.evaluate("document.activeElement.dataset.place") is not None  # the keyboard is still on the map
    assert live.locator(".summary").text_content() == before
    assert page.evaluate(zoom) == kept
    assert not live.get_by_label("Who answers").is_checked()
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    street = live.get_by_label("Street map (asks openstreetmap.org)")
    assert not street.is_checked()
    street.check()
    until(page, lambda: any(url.startswith("https://tile.openstreetmap.org/") for url in asked), "a tile asked for")
    assert "network address" in live.locator(".foot").inner_text() or "online?" in live.locator(".foot").inner_text()
    street.uncheck()
    assert "treet map" not in live.locator(".foot").inner_text()
