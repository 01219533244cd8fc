"""The dashboard on one screen: nothing overlaps at any width, everything works by keyboard, and an own city goes through."""

import re
from pathlib import Path

import pytest
from test_dashboard_page import choose_files, drawn
from test_notebook_pages import maps, panel_texts, until, watched

import emsopt as eo

pytestmark = pytest.mark.browser

WIDTHS = {800: 900, 1100: 900, 1400: 900, 1920: 1080}
ONE_SCREEN = (1400, 1920)
TABS = ("Districts", "Utilisation", "Response times", "Alternatives", "Scenarios", "Day plan", "Data and trust")
OVERLAPS = """() => {
  // Rectangles of what a user sees or touches, cut to what the boxes around them show.
  const kinds = "input:not([type=hidden]), select, button, .widget-label, .widget-readout, .noUi-base, table, h1, p, img, "
    + "a, .leaflet-container, .leaflet-control";
  const seen = [];
  for (const element of document.querySelector(".emsopt-dashboard").querySelectorAll(kinds)) {
    const style = getComputedStyle(element);
    if (style.visibility === "hidden" || !element.getClientRects().length) continue;
    let {left, top, right, bottom} = element.getBoundingClientRect();
    for (let box = element.parentElement; box && box !== document.documentElement; box = box.parentElement) {
      if (getComputedStyle(box).overflow === "visible") continue;
      const edge = box.getBoundingClientRect();
      [left, top] = [Math.max(left, edge.left), Math.max(top, edge.top)];
      [right, bottom] = [Math.min(right, edge.right), Math.min(bottom, edge.bottom)];
    }
    if (right - left > 1 && bottom - top > 1) seen.push({element, left, top, right, bottom});
  }
  const name = e => e.tagName + " " + e.className + " " + (e.textContent || e.title || e.value || "").trim().slice(0, 40);
  const found = [];
  for (let i = 0; i < seen.length; i++) for (let j = i + 1; j < seen.length; j++) {
    const [a, b] = [seen[i], seen[j]];
    if (a.element.contains(b.element) || b.element.contains(a.element)) continue;
    const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
    const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
    if (wide > 1 && high > 1) found.push(name(a.element) + " | " + name(b.element));
  }
  return [seen.length, found];
}"""
OUTSIDE = """() => [".emsopt-bar", ".emsopt-column", ".emsopt-place .leaflet-container",
    ".emsopt-results table.emsopt-figures", ".emsopt-tabs > .widget-toggle-buttons"].filter(selector => {
  const box = document.querySelector(selector).getBoundingClientRect();
  return box.top < 0 || box.left < 0 || box.right > innerWidth + 1 || box.bottom > innerHeight + 1 || box.width < 100;
})"""
FOCUSED = """() => { const e = document.activeElement;
  return (e.getAttribute("aria-label") || e.title || e.textContent || e.labels?.[0]?.textContent || "").trim()
    + (getComputedStyle(e).outlineStyle === "none" && !e.matches("select, input") ? " (unseen)" : ""); }"""


def check_widths(page, what):
    """Check that nothing overlaps at any width, and that controls, map and figures are on one screen where they fit."""
    for width, height in WIDTHS.items():
        page.set_viewport_size({"width": width, "height": height})
        page.wait_for_timeout(700)
        page.locator(".emsopt-bar").evaluate("bar => bar.scrollIntoView()")  # Voila scrolls inside the page
        count, overlaps = page.evaluate(OVERLAPS)
        assert overlaps == [], (what, width)
        assert count > 25, (what, width)
        wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert wide <= 0, (what, width)
        if width in ONE_SCREEN:
            assert page.evaluate(OUTSIDE) == [], (what, width)
    page.set_viewport_size({"width": 1400, "height": 900})


def test_nothing_overlaps_and_all_is_on_one_screen(dashboard):
    page = dashboard
    until(page, lambda: maps(page), "a map", 60)
    check_widths(page, "first")
    for tab in TABS:
        page.get_by_role("button", name=tab, exact=True).click()
        page.wait_for_timeout(700)
        check_widths(page, tab)
    page.get_by_label("City", exact=True).select_option("Your own files")
    folded = page.locator(".emsopt-head:not(.mod-active):visible")
    folded.first.wait_for()
    while folded.count():
        folded.first.click()
    check_widths(page, "unfolded")


def test_a_real_city_goes_through_on_one_page(browser, voila, tmp_path):
    """San José's files are calibrated, compared, tested, saved, and opened again by another visitor, without code."""
    calls, stations = eo.datasets.san_jose_calls()
    calls.to_frame().to_csv(tmp_path / "january.csv", index=False)
    stations.to_csv(tmp_path / "houses.csv", index=False)
    status = ".emsopt-dashboard [role=status]"

    def said(text, seconds=180):
        until(page, lambda: page.locator(status).filter(has_text=re.compile(text)).count() == 1, text, seconds)

    with watched(browser, voila) as page:
        page.goto(voila)
        drawn(page)
        page.get_by_label("City", exact=True).select_option("Your own files")
        choose_files(page, [tmp_path / "january.csv", tmp_path / "houses.csv"])
        until(page, lambda: "(2)" in page.get_by_role("button", name="Choose files").text_content(), "two files")
        page.get_by_role("button", name="Read files").click()
        said("Read Your city.*Times are calibrated")
        page.get_by_role("button", name="Take the p-median").click()
        until(page, lambda: "45" in panel_texts(page)[0], "45 units", 60)
        page.get_by_role("button", name="Data and trust").click()
        page.get_by_role("button", name="Back-test").click()
        said("Mean response: usable. Recorded .*, modelled")
        page.get_by_role("button", name="How sure is the gain?").click()
        said("Compared")
        check_widths(page, "san jose")
        with page.expect_download() as download:
            page.get_by_role("button", name="Save", exact=True).click()
        path = tmp_path / download.value.suggested_filename
        download.value.save_as(path)
        with page.expect_download() as download:
            page.get_by_role("button", name="Report", exact=True).click()
        assert "proposed" in Path(download.value.path()).read_text("utf-8")
        figures = page.locator(".emsopt-results table").inner_text()
        assert "90 % interval" in figures
    with watched(browser, voila) as page:
        page.goto(voila)
        drawn(page)
        with page.expect_file_chooser() as chooser:
            page.get_by_role("button", name="Open").click()
        chooser.value.set_files(path)
        said("Opened Your_city.emsopt.zip")
        assert page.locator(".emsopt-results table").inner_text() == figures


def test_everything_works_by_keyboard(dashboard):
    """Tab reaches all controls that are shown, and Enter, Space and arrows work them; the focus can be seen."""
    page, told = dashboard, ""
    until(page, lambda: maps(page), "a map", 60)
    page.locator("body").click(position={"x": 2, "y": 2})
    for _ in range(90):
        page.keyboard.press("Tab")
        told += " | " + page.evaluate(FOCUSED)
        if " | Data and trust" in told:
            break
    for control in ("Open", "Make a file", "Show or hide: Fleet", "Fleet (units)", "Several units", "Load", "Late from",
                    "Show or hide: Sites", "Make the optimum yours", "Search with the exact model", "Districts"):  # fmt: skip
        assert control in told, (control, told)
    page.locator(".emsopt-head", has_text="Model").focus()
    page.keyboard.press("Enter")
    until(page, lambda: page.get_by_label("Figures by").is_visible(), "the group unfolds")
    page.get_by_role("button", name="Utilisation").focus()
    page.keyboard.press("Space")
    until(page, lambda: any("How busy" in text for text in panel_texts(page)), "the tab turns")
    before = panel_texts(page)
    page.get_by_role("slider", name="Fleet (units)").focus()
    page.keyboard.press("ArrowRight")
    until(page, lambda: panel_texts(page) != before, "another fleet", 60)
