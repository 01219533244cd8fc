"""The dashboard in Voila, as a visitor has it: no code, and nobody asked for anything."""

import json
import os
import re
import statistics
import time
from contextlib import suppress
from pathlib import Path

import pandas as pd
import pytest
from test_notebook_pages import PATIENCE, maps, panel_texts, stations, until

import emsopt as eo

pytest.importorskip("voila", reason="needs the package voila")
psutil = pytest.importorskip("psutil", reason="needs the package psutil")
pytestmark = pytest.mark.browser

VISITORS = int(os.environ.get("EMSOPT_VISITORS", "4"))
AT_ONCE = 2  # visitors, who then leave
MB = 12  # more than servers accept in one message
LEFT = 120  # seconds until the memory of those who left must be free


def test_the_dashboard_answers(dashboard):
    until(dashboard, lambda: maps(dashboard), "a map", PATIENCE / 1000)
    frame = maps(dashboard)[0]
    check_sliders(dashboard, frame)
    check_clicks_on_the_map(dashboard, frame)
    check_table_and_files(dashboard)


def check_sliders(page, frame):
    """An arrow key moves the load a step; figures and map follow, timed from the key to the new figures.

    Target: a median of at most 0.5 s on a machine that does nothing else; asserted loosely, as machines differ.
    """
    handle = page.locator(".widget-slider", has_text="Load").locator(".noUi-handle")
    handle.focus()
    seconds = []
    for _ in range(9):
        before, start = panel_texts(page), time.perf_counter()
        page.keyboard.press("ArrowRight")
        until(page, lambda before=before: panel_texts(page) != before, "figures at another load", 60)
        seconds.append(time.perf_counter() - start)
    assert statistics.median(seconds) < 5
    said = frame.locator(".summary").text_content()
    page.keyboard.press("Home")
    until(page, lambda: frame.locator(".summary").text_content() != said, "a map at light load", 60)


def check_clicks_on_the_map(page, frame):
    """A click adds a unit at a vacant site and takes it away again; so does Enter."""
    units = len(stations(frame))
    vacant = frame.locator(".leaflet-marker-icon:has(.vacant)").last  # the first places hold two units
    label = vacant.get_attribute("aria-label").split(":")[0]
    vacant.click(force=True)
    until(page, lambda: len(stations(frame)) == units + 1, "one more station", 60)
    status = page.get_by_role("status").filter(has_text="You placed 10 of 9 units")
    until(page, lambda: status.count() == 1, "a remark")
    placed = frame.locator(f".leaflet-marker-icon[aria-label^='{label}:']")
    placed.focus()
    page.keyboard.press("Enter")
    until(page, lambda: len(stations(frame)) == units, "one station less", 60)
    until(page, lambda: status.count() == 0, "nothing to remark", 60)
    assert frame.locator(".leaflet-popup").count() == 0
    frame.locator(".leaflet-control-layers-base label").nth(1).click()  # the optimum, which nobody can edit
    station = frame.locator(".leaflet-marker-icon:has(.station:not(.vacant))").first
    station.scroll_into_view_if_needed()
    box = station.bounding_box()
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2, delay=100)
    until(page, lambda: frame.locator(".leaflet-popup").count() == 1, "a list of the station's units")


def kernels():
    """Return the processes of the kernels, by id; of servers that these tests started."""
    found = {}
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):  # it has just ended
            if match := re.search(r"ipykernel_launcher.*kernel-([-\w]+)\.json", " ".join(process.cmdline())):
                found[match[1]] = process
    return found


def kernel_of(page):
    return json.loads(page.locator("#jupyter-config-data").text_content())["kernelId"]


def drawn(page):
    page.locator("table.emsopt-figures").first.wait_for()
    page.wait_for_function("window.jupyterapp?.widgetManager?.kernel?.connectionStatus === 'connected'")


def test_visitors_come_and_go(browser, voila, dashboard):
    """Some close the page, some vanish; their kernels end, and that of a page that stays open and idle does not."""
    page = dashboard
    server = psutil.Process(kernels()[kernel_of(page)].ppid())
    before, came = server.memory_info().rss, set()
    while len(came) < VISITORS:
        visitors = [browser.new_context().new_page() for _ in range(min(AT_ONCE, VISITORS - len(came)))]
        for visitor in visitors:
            visitor.set_default_timeout(PATIENCE)
            visitor.goto(voila, wait_until="commit")
        for visitor in visitors:
            drawn(visitor)
        ids = [kernel_of(visitor) for visitor in visitors]
        came |= set(ids)
        for k, visitor in enumerate(visitors):
            visitor.close(run_before_unload=True) if k % 2 else visitor.context.close()
        until(page, lambda closed=set(ids[1::2]): not closed & set(kernels()), "kernels of closed pages gone")
    until(page, lambda: not came & set(kernels()), "the kernels of all who left gone", LEFT)
    assert server.memory_info().rss < before + 2**20 * (50 + 2 * VISITORS)
    said = panel_texts(page)
    page.locator(".widget-slider", has_text="Load").locator(".noUi-handle").focus()
    page.keyboard.press("ArrowRight")
    until(page, lambda: panel_texts(page) != said, "figures on the page that stayed", 60)
    assert page.get_by_role("alert").text_content() == ""


@pytest.mark.parametrize("end", ["killed", "ended by the server"])
def test_a_kernel_that_is_gone_is_said(dashboard, end):
    page = dashboard
    notice = page.get_by_role("alert").filter(has_text="Reload the page to start anew.")
    assert notice.count() == 0
    if end == "killed":
        kernels()[kernel_of(page)].kill()
    else:
        ask = 'headers: {"X-XSRFToken": /_xsrf=([^;]*)/.exec(document.cookie)[1]}'
        page.evaluate(f'id => fetch("/api/kernels/" + id, {{method: "DELETE", {ask}}})', kernel_of(page))
    until(page, lambda: notice.count() == 1, "that the kernel is gone", 60)


def check_table_and_files(page):
    page.get_by_role("button", name="Scenarios").click()
    page.get_by_label("Name it").fill("light load")
    page.get_by_label("Name it").press("Tab")
    page.get_by_role("button", name="Add to the table").click()
    until(page, lambda: any("light load" in text for text in panel_texts(page)), "a row of the table", 60)
    page.get_by_role("button", name="Make files").click()
    link = page.get_by_role("link", name="scenarios.csv")
    link.wait_for()
    with page.expect_download() as download:
        link.click()
    assert "light load" in Path(download.value.path()).read_text("utf-8-sig")
    assert page.get_by_role("link", name="map.html").count() == 1
    assert page.get_by_role("link", name="deployments.png").count() == 1


def choose_files(page, paths):
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Choose files").click()
    chooser.value.set_files(paths)


def large_files(folder):
    """Write the practice town's log, made larger than a server accepts in one message, and its stations."""
    calls, stations = eo.datasets.practice_calls()
    frame = calls.to_frame()
    frame["note"] = "x" * (MB * 2**20 // len(frame))
    paths = [folder / "calls.csv", folder / "stations.csv"]
    for path, table in zip(paths, (frame, pd.DataFrame(stations)), strict=True):
        table.to_csv(path, index=False)
    return paths


def read_files(page, paths):
    """Choose files, and read them once all have arrived."""
    choose_files(page, paths)
    button = page.get_by_role("button", name="Choose files")
    until(page, lambda: f"({len(paths)})" in button.text_content(), "all files", 120)
    page.get_by_role("button", name="Read files").click()
    said = re.compile(r"Read Your city.*calls\.csv \(.* KB\), stations\.csv")
    read = page.get_by_role("status").filter(has_text=said)
    until(page, lambda: read.count() == 1, "the city that was uploaded", 180)
    until(page, lambda: "(0)" in button.text_content(), "the files let go")


def test_files_that_are_too_large_replace_those_before(dashboard, tmp_path):
    """They are refused in the page; reading then neither takes the files before nor hides why."""
    page, paths, too_large = dashboard, large_files(tmp_path), tmp_path / "large_calls.csv"
    with too_large.open("wb") as file:
        file.truncate(201 * 2**20)
    city = page.get_by_label("City", exact=True)
    city.select_option("Your own files")
    over = page.get_by_role("status").filter(has_text="Files may have at most 200 MB together; got 201.0 MB")
    for _ in range(2):  # a new choice is taken after a refusal, too
        read_files(page, paths)
        choose_files(page, [too_large, paths[1]])
        until(page, lambda: over.count() == 1, "that a file is too large")
        page.get_by_role("button", name="Read files").click()
        page.wait_for_timeout(500)
        assert over.count() == 1
    city.select_option("Random grid city")
    until(page, lambda: over.count() == 0, "nothing about files beside another city")
    until(page, lambda: any("grid" in text for text in panel_texts(page)), "another city", 60)
    until(page, lambda: len(maps(page)) == 1, "its map", 60)
