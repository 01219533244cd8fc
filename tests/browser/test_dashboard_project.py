"""What ``emsopt dashboard`` serves and to whom; a project shown and saved elsewhere; and files of more than 10 MB."""

import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from test_dashboard_page import drawn, kernels, large_files, read_files
from test_notebook_pages import TOKEN, served, watched

import emsopt as eo

pytestmark = pytest.mark.browser
pytest.importorskip("voila", reason="needs the package voila")


def asked(address, browser=None, **headers):
    """Return where a question ends, or the number of its refusal. A browser keeps its cookies."""
    request = urllib.request.Request(address, headers=headers)
    try:
        with (browser or urllib.request.build_opener()).open(request, timeout=120) as answer:
            answer.read()
            return answer.url
    except urllib.error.HTTPError as refused:
        return refused.code


def test_a_project_is_served_and_saved_as_a_download(browser, tmp_path):
    path = tmp_path / "town.emsopt.zip"
    city = eo.datasets.load_st_paul()
    eo.planning.Project(city, {"units": 5}).save(path)
    before = path.read_bytes()
    home = tmp_path / "home"
    home.mkdir()
    with (
        served(["emsopt", "dashboard", str(path), "--visitors=1"], home, "/voila/static/voila.js") as address,
        watched(browser, address) as page,
    ):
        page.goto(f"{address}/?token={TOKEN}")
        drawn(page)
        assert asked(f"{address}/?token={TOKEN}") == 503  # a second visitor
        page.reload()  # takes its own place again
        drawn(page)
        chosen = page.get_by_label("City", exact=True).locator("option:checked")
        assert chosen.inner_text().replace("\xa0", " ") == "Opened project"
        assert page.locator(".emsopt-results table").inner_text().split("\n")[1].split("\t")[1] == "5"
        with page.expect_download() as download:
            page.get_by_role("button", name="Save", exact=True).click()
        again = eo.planning.Project.load(Path(download.value.path()).rename(tmp_path / "saved.zip"))
        assert (again.settings["units"], again.city.site_names) == (5, city.site_names)
        assert path.read_bytes() == before  # visitors may share it
        page.locator(".emsopt-place .leaflet-marker-icon").first.wait_for()
        page.get_by_label("City", exact=True).select_option("Your own files")
        read_files(page, large_files(tmp_path))


def test_twenty_visitors_at_once_get_no_more_processes_than_allowed(tmp_path):
    """A page that is reloaded, as the cookie of its browser tells, takes no place from another visitor."""
    of_other_tests = set(kernels())
    with (
        served(["emsopt", "dashboard", "--visitors=2"], tmp_path, "/voila/static/voila.js") as address,
        ThreadPoolExecutor(20) as threads,
    ):
        page = f"{address}/?token={TOKEN}"
        browsers = [urllib.request.build_opener(urllib.request.HTTPCookieProcessor()) for _ in range(20)]
        answers = list(threads.map(asked, [page] * 20, browsers))
        assert sorted(answers, key=str) == [503] * 18 + [page] * 2
        assert len(kernels().keys() - of_other_tests) == 2
        first, _ = (browser for browser, answer in zip(browsers, answers, strict=True) if answer == page)
        before = kernels().keys() - of_other_tests
        for _ in range(2):
            assert asked(page, first) == page
            assert len(kernels().keys() - of_other_tests) == 2
        assert len(before & set(kernels())) == 1  # the other visitor's
        assert asked(page) == 503  # unknown
        assert "/login" in asked(address)
        assert asked(page, first, Host="elsewhere.example") == 403
