"""The browser and the dashboard's server, started once for all tests."""

import os
import shutil

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
REQUIRED = os.environ.get("EMSOPT_BROWSER_REQUIRED") == "1"

try:
    from playwright.sync_api import sync_playwright
except ImportError:
    sync_playwright = None


@pytest.fixture(scope="session")
def browser():
    """One Chromium for all tests; a test opens a context of its own in it."""
    for there, name in (
        (sync_playwright, "the Python package playwright"),
        (CHROMIUM, "the browser Chromium on the path"),
    ):
        if not there:
            (pytest.fail if REQUIRED else pytest.skip)(f"needs {name}")
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield running
        running.close()


@pytest.fixture(scope="session")
def voila(tmp_path_factory):
    """Address of a dashboard that Voila serves as `emsopt dashboard` does, but to everyone."""
    from test_notebook_pages import ROOT, served

    from emsopt.commands.dashboard import CULLING_OPTIONS

    folder, home = tmp_path_factory.mktemp("dashboard"), tmp_path_factory.mktemp("home")
    shutil.copy(ROOT / "notebooks" / "dashboard.ipynb", folder)
    arguments = ["voila", str(folder / "dashboard.ipynb"), *CULLING_OPTIONS, "--Voila.ip=127.0.0.1"]
    with served(arguments, home, "/voila/static/voila.js") as address:
        yield address


@pytest.fixture
def dashboard(browser, voila):
    """A page with the dashboard, whose figures are there and whose kernel answers."""
    from test_dashboard_page import drawn
    from test_notebook_pages import watched

    with watched(browser, voila) as page:
        page.goto(voila)
        drawn(page)
        yield page
