"""The notebooks in a real JupyterLab: they run, ask nobody for anything but streets, and their maps and panels answer.

The first and the dashboard run here from their top. The others are shown as nbval or the site left them, or run as well
if nothing is kept of them.
"""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
MAPLESS = ("04", "05")  # notebooks that show no map
PATIENCE = 180_000  # ms, for a whole notebook
TOKEN = "t"
STREETS = tuple(f"https://{host}/" for host in ("cdn.jsdelivr.net", "code.jquery.com", "cdnjs.cloudflare.com"))
STREETS += ("https://netdna.bootstrapcdn.com/", "https://tile.openstreetmap.org/")  # whom folium asks

# Of all cells of code, also of folded ones, which show none.
NUMBERS = """window.jupyterapp.shell.currentWidget.content.widgets
  .map(cell => cell.model).filter(cell => cell.type === "code").map(cell => cell.executionCount)"""

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def lab(tmp_path_factory, script):
    """Address of a JupyterLab that holds copies of the notebooks and knows nothing of the user's settings."""
    folder, home = tmp_path_factory.mktemp("notebooks"), tmp_path_factory.mktemp("home")
    for path in NOTEBOOKS:
        kept = script("docs/_notebook_pages.py").kept_at(path)
        ran = kept.is_file() and path.stem not in (NOTEBOOKS[0].stem, "dashboard")
        notebook = json.loads((kept if ran else path).read_text("utf-8"))
        for cell in notebook["cells"] if not ran else ():  # the start page is stored with what it shows
            cell |= {"outputs": [], "execution_count": None} if cell["cell_type"] == "code" else {}
        (folder / path.name).write_text(json.dumps(notebook), "utf-8")
    trust = [sys.executable, "-m", "jupyter", "trust", *map(str, folder.iterdir())]
    shutil.copytree(ROOT / "notebooks" / "papers", folder / "papers")
    subprocess.run(trust, env=os.environ | {"HOME": str(home)}, check=True, capture_output=True)
    arguments = ["jupyterlab", "--allow-root", "--ip=127.0.0.1", f"--IdentityProvider.token={TOKEN}"]
    arguments += [f"--ServerApp.root_dir={folder}", "--LabApp.expose_app_in_browser=True"]
    with served(arguments, home, f"/api?token={TOKEN}") as address:
        yield address


@contextmanager
def served(arguments, home, question):
    """Start a server, a Python module with its options, on a free port of this machine, and hand out its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", *arguments, "--no-browser", f"--port={port}"]
    environment = os.environ | {"HOME": str(home), "EMSOPT_FAST": "1", "JUPYTER_TOKEN": TOKEN}
    environment["JUPYTER_PATH"] = str(ROOT / "emsopt" / "jupyter")  # as if installed
    environment["PYTHONPATH"] = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    log = home / "server.log"
    with log.open("w") as sink:
        server = subprocess.Popen(command, stdout=sink, stderr=subprocess.STDOUT, env=environment)
        try:
            _wait_for(address + question, server, log)
            yield address
        finally:
            server.terminate()
            try:
                server.wait(20)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()


def _wait_for(url, server, log):
    for _ in range(PATIENCE // 100):
        if server.poll() is not None:
            break
        with suppress(OSError):
            return urllib.request.urlopen(url, timeout=2).close()
        time.sleep(0.1)
    pytest.fail(f"the server did not start:\n{log.read_text()[-2000:]}")


@contextmanager
def watched(browser, address, known="\n", asked=()):
    """Hand out an empty page, which must end without errors, lost requests, or questions to anyone else.

    Errors that contain `known` are the host's own. The hosts `asked` need not answer.
    """
    context = browser.new_context(viewport={"width": 1400, "height": 1000})
    page, trouble = context.new_page(), []
    page.set_default_timeout(PATIENCE)
    page.on("pageerror", lambda error: known in str(error) or trouble.append(f"error: {error}"))
    page.on("requestfailed", lambda r: r.url.startswith(asked) or trouble.append(f"failed: {r.url}"))
    own = (address, "data:", "about:", "blob:", *asked)
    page.on("request", lambda r: r.url.startswith(own) or trouble.append(f"request: {r.url}"))
    try:
        yield page
    finally:
        page.wait_for_timeout(300)
        context.close()
    assert trouble == []


def run_cells(page):
    """Run all cells of the notebook on the page once its kernel is there, unless they have run."""
    page.wait_for_selector(".jp-Notebook .jp-Cell")
    page.wait_for_function(
        "window.jupyterapp?.shell.currentWidget?.sessionContext?.session?.kernel?.connectionStatus === 'connected'"
    )
    prompts = page.locator(".jp-CodeCell .jp-InputPrompt").all_text_contents()
    if not any(prompt.strip("[]: ").isdigit() for prompt in prompts):
        page.evaluate("window.jupyterapp.commands.execute('notebook:run-all-cells')")


def panel_texts(page):
    return page.locator(".widget-html-content:has(table.emsopt-figures)").all_text_contents()


def maps(page):
    """Return the maps drawn on the page, in its order: those in frames, then the live ones."""
    frames = [f.locator("main.emsopt-map") for f in page.frames if f.locator("main .leaflet-container").count()]
    return frames + page.locator("div.emsopt-map:has(.leaflet-container)").all()


def until(page, condition, what, seconds=20):
    for _ in range(int(seconds * 20)):
        if condition():
            return
        page.wait_for_timeout(50)
    pytest.fail(f"in {seconds} s not seen: {what}")


@pytest.mark.parametrize("name", [path.stem for path in NOTEBOOKS])
def test_a_notebook_runs(browser, lab, name, tmp_path):
    streets = {"known": "is not defined", "asked": STREETS} if name.startswith("06") else {}  # of Leaflet, offline
    with watched(browser, lab, **streets) as page:
        page.goto(f"{lab}/doc/tree/{name}.ipynb?token={TOKEN}")
        run_cells(page)
        count = (ROOT / "notebooks" / f"{name}.ipynb").read_text("utf-8").count('"cell_type": "code"')
        order = list(range(1, count + 1))
        until(page, lambda: page.evaluate(NUMBERS) == order, "all cells run, in order", PATIENCE / 1000)
        assert page.locator("[data-mime-type='application/vnd.jupyter.error']").count() == 0
        assert page.locator("[data-mime-type='application/vnd.jupyter.stderr']").count() == 0
        figures = page.locator(".jp-CodeCell", has_text="= eo.plots.")
        for k in range(figures.count()):
            text, shown = figures.nth(k).text_content(), figures.nth(k).locator("img").count()
            assert shown == 1 or (shown > 1 and "for " in text), text  # once each: only a loop draws several
        if not name.startswith(MAPLESS):
            until(page, lambda: maps(page), "a map")
        for shown in maps(page):
            assert shown.locator(".station, .end").count() > 0
        if name.startswith("00"):
            check_deployment_panel(page)
        if name.startswith("03"):
            check_exploration_map(page)
        if name == "dashboard":
            from test_dashboard_page import large_files, read_files

            page.get_by_label("City", exact=True).select_option("Your own files")
            read_files(page, large_files(tmp_path))


def check_deployment_panel(page):
    page.get_by_role("button", name="Take the optimum").scroll_into_view_if_needed()
    before = panel_texts(page)
    page.get_by_role("button", name="Take the optimum").click()
    until(page, lambda: panel_texts(page) != before, "figures of the optimum")
    page.get_by_role("button", name="Run simulation").click()
    until(page, lambda: any("95% interval" in text for text in panel_texts(page)), "a simulation")
    page.get_by_label("Station 4", exact=True).click()  # a tenth unit, by its label
    message = page.get_by_role("status").filter(has_text="You placed 10 of 9 units")
    until(page, lambda: message.count() == 1, "a message")


def check_exploration_map(page):
    """The slider takes roads away, another agent has other roads, and Play moves the slider."""
    frame = maps(page)[0]
    said = frame.locator(".summary")
    seen = [said.text_content()]
    frame.get_by_role("slider", name="Up to round").fill("2")
    seen.append(said.text_content())
    frame.get_by_role("combobox", name="Agent").select_option(index=5)
    seen.append(said.text_content())
    assert len(set(seen)) == 3
    frame.get_by_role("button", name="Play").click()
    until(page, lambda: said.text_content() not in seen, "roads of later rounds")


def stations(frame):
    """Return the numbers of units on the map."""
    return frame.locator(".leaflet-marker-pane .station:not(.vacant)").all_text_contents()
