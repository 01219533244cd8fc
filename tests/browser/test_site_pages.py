"""The built site in a browser: no page asks another host for anything or fails, and the notebooks' maps answer."""

import re
from pathlib import Path

import pytest
from test_notebook_pages import MAPLESS, NOTEBOOKS, until, watched

SITE = Path(__file__).parents[2] / "docs" / "_build" / "html"
PAGES = [page for page in sorted(SITE.rglob("*.html")) if "_static" not in page.parts]
ALIKE = SITE / "generated" / "reference"  # hundreds of pages of one kind, of which some are opened
OPENED = [page for k, page in enumerate(PAGES) if page.parent != ALIKE or k % 25 == 0]
MAP = ".leaflet-container"
WIDGET = 'script[type="application/x-anywidget"]'

pytestmark = [pytest.mark.browser, pytest.mark.skipif(not PAGES, reason="needs the built site")]


@pytest.mark.parametrize("path", OPENED, ids=lambda path: path.relative_to(SITE).as_posix())
def test_a_page_opens_without_errors_and_without_other_hosts(browser, path):
    with watched(browser, SITE.as_uri()) as page:
        page.goto(path.as_uri())
        assert page.locator("h1").count() >= 1
        if page.locator(".math").count():
            page.wait_for_selector("mjx-container")


def test_no_page_names_a_script_or_style_of_another_host():
    """In all pages, also those that the other test does not open; links that a reader clicks are free."""
    pattern = re.compile(r"<(?:script|link|img|iframe)[^>]+?(?:src|href)=[\"']?(?:https?:)?//[^>]*>")
    found = {path.name: pattern.findall(path.read_text("utf-8")) for path in PAGES}
    assert {name: tags for name, tags in found.items() if any('rel="canonical"' not in tag for tag in tags)} == {}


def test_links_between_pages_lead_somewhere():
    anchors = {path: set(re.findall(r"\bid=\"([^\"]+)\"", path.read_text("utf-8"))) for path in PAGES}
    link, dead = re.compile(r"<a [^>]*href=[\"']([^\"'#:?]*)(#([^\"']+))?[\"']"), []
    for path in PAGES:
        for target, _, anchor in link.findall(path.read_text("utf-8")):
            file = (path.parent / target).resolve() if target else path
            if not file.is_file() or (anchor and file in anchors and anchor not in anchors[file]):
                dead.append((path.relative_to(SITE).as_posix(), target, anchor))
    assert dead == []


@pytest.mark.parametrize("name", [path.stem for path in NOTEBOOKS if path.stem[:2] not in MAPLESS])
def test_maps_of_a_notebook_are_alive(browser, name):
    with watched(browser, SITE.as_uri()) as page:
        page.goto((SITE / "generated" / "notebooks" / f"{name}.html").as_uri())
        drawn = lambda: [frame for frame in page.frames if frame.locator(MAP).count()]
        until(page, drawn, "a map")
        frame = drawn()[0]
        box = frame.locator(MAP).first
        box.scroll_into_view_if_needed()
        shape = box.locator(".leaflet-overlay-pane path, .leaflet-marker-icon").first
        shape.wait_for()
        before = shape.bounding_box()
        widgets = page.locator(WIDGET).count()  # maps of panels; one without results shows a sentence
        until(page, lambda: page.locator(f"{WIDGET} + div:not(:empty)").count() == widgets, "the maps of panels")
        box.locator(".leaflet-control-zoom-in").click()
        until(page, lambda: shape.bounding_box() != before, "a map that zooms in")


def test_the_register_is_filtered_by_words_and_verdict(browser):
    with watched(browser, SITE.as_uri()) as page:
        page.goto((SITE / "claims.html").as_uri())
        count = lambda: int(page.locator(".claims-filter output").inner_text().split()[0])
        everything = count()
        page.get_by_label("Words").fill("p-median")
        some = count()
        page.get_by_label("Verdict").select_option("refuted")
        assert everything > some > count() > 0
        shown = page.locator("details.claims tbody tr:visible")
        assert shown.count() == count()
        assert all("p-median" in text.lower() for text in shown.all_inner_texts())
