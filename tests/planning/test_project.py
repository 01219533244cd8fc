"""Projects: what was saved comes back, and what is cut, foreign or damaged is refused in plain words."""

import io
import json
import zipfile

import numpy as np
import pandas as pd
import pytest
from refusals import refused

import emsopt as eo
from emsopt.planning import Project
from emsopt.planning.project import Result


@pytest.fixture(scope="module")
def project():
    calls, stations = eo.datasets.practice_calls()
    demand = eo.calls.aggregate_calls(calls, stations, cell_km=2)
    table = pd.DataFrame({"recorded": [6.5, np.nan], "verdict": ["usable", "="]}, index=["mean", "<b>"])
    found = [{"settings": [1.0, ["late", 8.0], [], True], "sites": ["Harbour"]}]
    settings = {"load": 0.1 + 0.2, "units": np.int64(3), "found": found}
    scenarios = [{"number": 1, "scenario": "as it is", "gain_min": -0.1}]
    result = Result("back_test", "Back-test", ("Mean response: usable.",), table, ("Zones: a.",))
    city, results = demand.city(speed_kmh=40), [result, Result("note", "Said only")]
    return Project(city, settings, scenarios, results, {"speed_kmh": 40.0}, demand.rates_by_hour())


def test_what_was_saved_comes_back_exactly(project, tmp_path):
    again = Project.load(project.save(tmp_path / "town.zip"))
    for name in ("arrival_rates", "travel_times", "turnout_times", "service_times", "atom_locations"):
        assert (getattr(again.city, name) == getattr(project.city, name)).all()
    assert again.city.site_names == project.city.site_names
    assert (again.settings, again.about, again.version) == (project.settings, project.about, eo.__version__)
    assert again.scenarios == project.scenarios
    assert (again.by_hour == project.by_hour).all()
    assert [vars(r) | {"table": 0} for r in again.results] == [vars(r) | {"table": 0} for r in project.results]
    pd.testing.assert_frame_equal(again.results[0].table, project.results[0].table, check_dtype=False)
    assert again.results[1].table is None
    assert again.to_bytes() == project.to_bytes()
    zipfile.ZipFile(io.BytesIO(project.to_bytes())).extractall(tmp_path)
    assert eo.City.load(tmp_path / "city").n_sites == project.city.n_sites


def test_a_file_that_is_cut_anywhere_is_refused(project):
    content = project.to_bytes()
    for length in np.linspace(0, len(content) - 1, 25).astype(int):
        said = r"^half\.zip is not a project of emsopt, or it was cut off"
        refused(said, Project.from_bytes, content[:length], "half.zip")


def packed(**files):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return file.getvalue()


def changed(project, name, change):
    """Return the file of a project with one of its files changed."""
    with zipfile.ZipFile(io.BytesIO(project.to_bytes())) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    return packed(**files | {name: change(files[name])})


def entry(change):
    """Return the name of project.json, and a function that changes an entry in it."""

    def with_entry(text):
        change(about := json.loads(text))
        return json.dumps(about)

    return "project.json", with_entry


def test_foreign_files_are_refused():
    for content, said in (
        (b"\x89PNG\r\n", "cut off or damaged"),
        (packed(**{"notes.txt": "hello"}), "the archive holds 'notes.txt'"),
        (packed(**{"project.json": "{}", "../evil.py": "1"}), "the archive holds"),
        (packed(**{"project.json": "{}"}), "'emsopt_project' is missing"),
        (packed(**{"project.json": "[" * 100_000}), "not valid JSON"),
        (packed(**{"project.json": "{}", "city/atoms.csv": " " * 2**27}), "more than 64 MB"),
    ):
        refused(said, Project.from_bytes, content, "x.zip")


def test_damaged_files_are_refused(project):
    form = "damaged: a result or a table has another form"
    for file, change, said in (
        (*entry(lambda about: about.update(emsopt_project=2)), "has version 2 of the format"),
        (*entry(lambda about: about.update(settings=[])), "'settings' is missing or of another kind"),
        (*entry(lambda about: about.update(scenarios=[[1]])), form),
        (*entry(lambda about: about["results"][0]["table"].update(rows=["a"])), form),
        (*entry(lambda about: about["results"][0].pop("kind")), form),
        (*entry(lambda about: about["results"][0].update(table=[])), form),
        ("city/atoms.csv", lambda _: "name\na\n", r"damaged.*atoms\.csv"),
        ("by_hour.csv", lambda _: "hour,a\n0,x\n", "damaged"),
    ):
        refused(said, Project.from_bytes, changed(project, file, change), "x.zip")


def test_other_values_and_missing_files_are_refused(project, tmp_path):
    refused("texts, finite numbers, lists and mappings only", Project(project.city, {"load": float("nan")}).to_bytes)
    refused("got object", Project(project.city, {"load": object()}).to_bytes)
    refused("by_hour", Project, project.city, by_hour=[[1.0]])
    refused(r"as the dashboard saves it", Project.load, tmp_path / "none.zip")
