"""Projects in the dashboard: saved, killed and opened again, the figures are the same; nothing of single calls is kept."""

import io
import itertools
import json
import re
import subprocess
import sys
import types
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from ipywidgets import VBox
from refusals import refused
from test_dashboard import links, read, upload

import emsopt as eo
from emsopt import panels
from emsopt.panels import _dashboard, _report
from emsopt.panels._tabs import Workbench
from emsopt.planning import steps

TABS = ("Districts", "Utilisation", "Alternatives", "Scenarios", "Day plan", "Data and trust")
SHOWN = ("figures", "districts", "busy", "alternatives", "scenarios", "plan", "trust")


def made(refs, button):
    """Return the file that Save, Report or Share makes."""
    refs[button].click()
    ((_, content),) = links(refs, "project").items()
    return content


def answers(refs):
    """Return everything that is shown, tab by tab."""
    before, found = refs["tabs"].value, {}
    for tab in TABS:
        refs["tabs"].value = tab
        found |= {f"{tab}: {name}": refs[name].value for name in SHOWN}
    refs["tabs"].value = before
    return found


TOWN = eo.datasets.grid_city(n_sites=5, units=2, rng=3)
SEQUENCES = {  # what is chosen and clicked: every control of a city at least once
    "Random grid city": (
        {"sites_count": 7, "load": 1.5, "units": 3, "objective": "late", "threshold": 9.0}
        | {"pinned": (1,), "closed": (0,)},
        ("keep", "search", "optimum", "add"),
    ),
    "Practice town": (
        {"units": 4, "colocation": True, "capacity": "queue", "evaluator": "approximate", "count": 3, "moves": 2},
        ("p_median", "keep", "add"),
    ),
}
REOPEN = """
import json, sys
sys.path[:0] = [sys.argv[1], sys.argv[1] + "/.."]
import test_dashboard_projects as tests
from emsopt import panels
print(json.dumps([tests.answers(panels.dashboard(path).refs) for path in sys.argv[2:]]))
"""


def test_saved_killed_and_opened_again_all_figures_are_the_same(tmp_path):
    expected, panel = [], panels.dashboard()
    for city, (chosen, clicked) in SEQUENCES.items():
        refs = panel.refs
        refs["city"].value = city
        refs["empty"].click()
        for name, value in chosen.items():
            refs[name].value = value
        for name in clicked:
            refs[name].click()
            refs["wait"]()
        refs["sites"][1].value = type(refs["sites"][1].value)(not refs["sites"][1].value)
        refs["label"].value, refs["baseline"].value = "=1", "today"
        refs["add"].click()
        (tmp_path / f"{city}.zip").write_bytes(made(refs, "save"))
        expected.append(answers(refs))
    folder, paths = str(Path(__file__).parent), [str(tmp_path / f"{city}.zip") for city in SEQUENCES]
    done = subprocess.run([sys.executable, "-c", REOPEN, folder, *paths], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert json.loads(done.stdout) == expected


@pytest.fixture(scope="module")
def own():
    """A dashboard with San José's two files, read, compared, tested and searched."""
    panel = panels.dashboard()
    calls, stations = eo.datasets.san_jose_calls()
    tables = {"january.csv": calls.to_frame(), "houses.csv": stations}
    read(panel.refs, {name: table.to_csv(index=False) for name, table in tables.items()})
    for said in ("Times are calibrated", "385 of 3,652 calls got no unit: they are left out", "#1a7f37"):
        assert said in panel.refs["message"].value  # success has its own colour
    panel.refs["sites"][3].value = 0
    panel.refs["sites"][0].value += 1
    for work in ("compare", "test"):
        panel.refs[f"{work}_start"].click()
        panel.refs[f"{work}_wait"]()
    panel.refs["add"].click()
    return panel


def test_an_own_city_is_calibrated_compared_tested_saved_and_opened_again(own, tmp_path):
    shown = answers(own.refs)
    row = r"gain{}</th><td>[–+.0]+</td><td>(.*?)</td>"
    interval = re.search(row.format(r" \(min\)"), shown["Districts: figures"])
    low, high, *mean = map(float, re.findall(r"[-+][\d.]+", interval[1]))
    gain = float(re.search(row.format(r" over today \(min\)"), shown["Districts: figures"])[1])
    assert low <= high
    assert bool(mean) != (low <= gain <= high)  # a second figure for one gain only if the first is not in the interval
    for said in ("Back-test: the last 5 days predicted from the others", "How sure is the gain over today",
                 "Calibrated from", "Mean response: .* modelled"):  # fmt: skip
        assert re.search(said, shown["Data and trust: trust"])
    path = tmp_path / "town.zip"
    path.write_bytes(made(own.refs, "save"))
    again = panels.dashboard(path)
    assert answers(again.refs) == shown
    again.refs["compare_start"].click()
    assert "it is not kept in a project" in again.refs["trust_message"].value
    again.refs["units"].value = 44
    again.refs["save"].click()
    assert "Saved to town.zip" in again.refs["message"].value
    assert panels.dashboard(path).refs["units"].value == 44


def test_nothing_of_single_calls_is_in_a_project_or_a_report(own):
    """Times, places, units and numbers of incidents are in the log, and in neither file; corners of cells may coincide."""
    calls = eo.datasets.san_jose_calls()[0]
    with zipfile.ZipFile(io.BytesIO(made(own.refs, "save"))) as archive:
        texts = {name: archive.read(name).decode() for name in archive.namelist()}
    texts["report"] = re.sub("base64,[^']*", "", made(own.refs, "report").decode())
    frame = calls.to_frame()
    times = {str(t)[11:] for t in frame["time"]}
    pairs = {f"{lon:.4f} {lat:.4f}" for lon, lat in frame[["lon", "lat"]].to_numpy()}
    units = {unit for unit in frame["unit"].dropna() if len(unit) > 1}
    assert len(times) > 1000
    for name, text in texts.items():
        numbers = re.findall(r"-?\d+\.\d{4,}", text)
        found = {f"{float(a):.4f} {float(b):.4f}" for a, b in itertools.pairwise(numbers)}
        assert len(found & pairs) < 10, name  # of 3,000
        words = set(re.findall(r"[-\w.:]+", text))
        assert not words & units, name
        assert not words & times, name


def test_a_gap_and_wrong_rows_are_told_on_the_page_and_not_in_the_project():
    """A log of 3,000 calls, of which 36 hours are missing and some have no place."""
    rng = np.random.default_rng(0)
    times = np.datetime64("2025-01-06") + np.sort(rng.integers(0, 60 * 86400, 3000)).astype("timedelta64[s]")
    calls = pd.DataFrame({"time": times, "lon": rng.uniform(0, 0.1, 3000), "lat": rng.uniform(45, 45.1, 3000)})
    calls.loc[[20, 30], ["lon", "lat"]] = 0.0
    missing = calls["time"].between("2025-02-01", "2025-02-02 12:00")
    around = calls["time"][[missing.idxmax() - 1, missing[::-1].idxmax() + 1]]
    stations = pd.DataFrame({"name": ["a", "b"], "lon": [0.03, 0.08], "lat": 45.05})
    tables = {name: table.to_csv(index=False) for name, table in (("c.csv", calls[~missing]), ("s.csv", stations))}
    refs = panels.dashboard().refs
    refs["service_times"].value = "30"
    read(refs, tables)
    assert "no place (rows 21, 31)" in refs["message"].value
    with zipfile.ZipFile(io.BytesIO(made(refs, "save"))) as archive:
        text = archive.read("project.json").decode()
    (checks,) = (result for result in json.loads(text)["results"] if result["kind"] == "checks")
    said = " ".join(checks["said"])
    assert "1 gap(s), 1.5 days in all; the longest, 1.5 days, starts on 2025-01-31" in said
    assert "Wrong no place: 2 call(s)" in said
    assert not any(word in text for word in ("Rows", *around.dt.strftime("%H:%M")))


def test_the_report_tells_late_responses_too():
    """And a better deployment that was found but is not proposed."""

    def of(late, mean=5.0):
        return types.SimpleNamespace(mean_response=mean, late_fraction=lambda _: late, sites=(0,))

    said = _report._comparison_sentences({"today": of(0.2), "proposed": of(0.15)}, "today", 8.0)
    assert "the mean response is 5.00 min: the same as with today (5.00 min)" in said
    assert "15.0 % of responses take 8 min or more: 5.0 points fewer than with today (20.0 %)." in said
    named = {"proposed": of(0, 5.25), "best found": of(0, 5.0)}
    better = _report._better_sentence(named, "best found")
    assert "found one that is 0.25 min shorter still (best found, below)" in better
    assert _report._better_sentence(named, "optimum") == ""


def test_report_and_exports_hold_what_was_found_and_makes_it_again(own):
    assert "Best single move" in made(own.refs, "share").decode()
    text = made(own.refs, "report").decode()
    assert list(links(own.refs, "project")) == ["report.html"]
    assert "<img src='data:image/png;base64," in text
    for part in ("90 % interval", "Back-test: the last 5 days", "Mean response: ", "emsopt version", "search seed",
                 "drop repeats no", "cell km", " stations: Station 1 x 3, 2", "recorded as over 8 min",
                 "Fewer units than today at: Station 4.", "More units at: Station 1."):  # fmt: skip
        assert part in text, part
    assert "script" not in text
    assert not re.search(r"(href|src)='?(https?:)?//", text)
    for part in ("recorded above modelled: ", "(90 % interval: ", "Its mean may differ"):  # on the screen alone
        assert part not in text, part
        assert part in own.refs["trust"].value, part
    own.refs["files_made"].click()
    found = links(own.refs)
    table = pd.read_csv(io.BytesIO(found["scenarios.csv"]))
    row = table[table["deployment"] == "yours"].iloc[0]
    assert row["emsopt_version"] == eo.__version__
    assert (row["search_seed"], row["simulation_seed"], row["colocation"]) == (0, 1, True)
    calls, stations = eo.datasets.san_jose_calls()
    city = eo.calls.calibrate(calls, stations).city(cell_km=row["cell_km"]).scaled(row["load_factor"])
    again = eo.evaluators.evaluate(city, row["sites"].split("; "), row["evaluator"], capacity=row["capacity"])
    assert again.mean_response == pytest.approx(row["mean_response_min"])
    assert f"emsopt_version {eo.__version__}" in found["map.html"].decode()
    assert b"search_seed 0" in found["deployments.png"]


def test_a_project_is_opened_on_the_page(own):
    content, panel = made(own.refs, "save"), panels.dashboard()
    assert list(links(own.refs, "project")) == ["Your_city.emsopt.zip"]
    panel.refs["open"].value = upload({"x.zip": content[:-30]})
    assert "x.zip is not a project of emsopt, or it was cut off" in panel.refs["message"].value
    assert "St. Paul" in panel.refs["figures"].value
    panel.refs["open"].value = upload({"town.zip": content})
    assert "Opened town.zip" in panel.refs["message"].value
    assert (panel.refs["city"].value, panel.refs["figures"].value) == ("Opened project", own.refs["figures"].value)
    panel.refs["city"].value = "St. Paul"
    panel.refs["city"].value = "Opened project"
    assert panel.refs["figures"].value == own.refs["figures"].value


def test_the_environment_names_a_project(tmp_path, monkeypatch):
    path = eo.planning.Project(TOWN, {"units": 3}).save(tmp_path / "town.zip")
    monkeypatch.setenv(_dashboard.PROJECT_VARIABLE, str(path))
    refs = panels.dashboard().refs
    assert (refs["city"].value, refs["units"].value, len(refs["sites"])) == ("Opened project", 3, 5)
    path.write_bytes(b"PK")
    refs = panels.dashboard().refs
    assert "town.zip is not a project of emsopt" in refs["message"].value
    assert "St. Paul" in refs["figures"].value
    refused("is not a project", panels.dashboard, path)


def test_no_day_is_planned_where_the_test_does_not_allow_moves(own, monkeypatch):
    uses = pd.DataFrame({"usable": [False, True], "why": ["Stations are missing.", ""]}, index=["moves", "fleet"])
    report = types.SimpleNamespace(uses=uses, usable=lambda use: uses["usable"][use])
    monkeypatch.setattr(steps, "back_test_model", lambda *_: report)
    monkeypatch.setattr(steps, "plan_day", lambda *_, **__: pytest.fail("a plan was made"))
    trust = Workbench(own.bench.opened, VBox(), [], lambda: None).trust
    refused(r"does not allow to use the model for a plan of the day.*Stations are miss", trust.prepare_plan())
    assert trust.caution_text(45).startswith("This is no advice")
    assert trust.caution_text(45).endswith("Stations are missing.")


def test_damaged_settings_are_refused():
    """But a slider takes its nearest value."""
    assert panels.dashboard(eo.planning.Project(TOWN, {"load": -1.0e9})).refs["load"].value == pytest.approx(0.1)
    medians = [{"settings": {}, "sites": []}]
    for settings in ({"yours": ["nowhere"]}, {"found": [{"sites": []}]}, {"medians": medians}, {"gains": [[1]]}):
        refused("the settings of the project are damaged", panels.dashboard, eo.planning.Project(TOWN, settings))


def test_texts_of_a_foreign_project_stay_text():
    nasty = "<img src=x onerror=alert(1)>"
    result = eo.planning.project.Result(nasty, nasty, (nasty,), pd.DataFrame({nasty: [nasty]}, index=[nasty]))
    city = TOWN.replace(name=nasty, notes=nasty, site_names=[f"{nasty} {k}" for k in range(4)] + ["$a_{$"])
    row = panels.dashboard(eo.planning.Project(city)).bench.scenario_rows()[0] | {"scenario": nasty, "number": 1}
    panel = panels.dashboard(eo.planning.Project(city, {"label": nasty}, [row], [result], {nasty: nasty}))
    texts = [*answers(panel.refs).values(), panel.refs["message"].value]
    assert sum("&lt;img" in text for text in texts) > 3
    assert not any("<img src=x" in text for text in texts)
    assert nasty not in panel.refs["map"].page.html
    assert panel.refs["sites"][0].description == f"{nasty} 0"
    assert not panel.refs["sites"][0].description_allow_html
    panel.refs["files_made"].click()  # dollar signs do not start formulas in the picture
    assert nasty not in panel.refs["links"].value


def test_who_waits_longer_is_told_with_calls_a_year_on_the_page_the_report_and_the_map(own):
    """As the command says it: zones by their closest station, those that lose more than 1 % of the mean."""
    bench, today, yours = own.bench, own.bench.answer["today"], own.bench.answer["yours"]
    zones = np.array(bench.city.site_names)[bench.city.travel_times.argmin(axis=0)]
    rates, lost = bench.city.arrival_rates, yours.atom_response - today.atom_response
    table = pd.DataFrame({"calls": rates, "lost": rates * lost}).groupby(zones).sum()
    calls = 8766 * table["calls"][table["lost"] / table["calls"] > 0.01 * today.mean_response].sum()
    assert calls > 0
    own.refs["tabs"].value = "Districts"
    for page in (own.refs["districts"].value, made(own.refs, "report").decode()):
        assert f"Longer waits: {calls:,.0f} calls a year" in page
    assert own.refs["map"].views[-1]["name"] == "yours minus today"


def test_saving_replaces_a_given_file_only_while_its_city_is_shown(tmp_path, monkeypatch):
    path = eo.planning.Project(TOWN, {"units": 3}).save(tmp_path / "town.zip")
    first = path.read_bytes()

    def saved(panel, where):
        panel.refs["save"].click()
        assert where in panel.refs["message"].value
        assert (path.read_bytes() == first) == (where == "to your downloads")

    panel = panels.dashboard(path)
    panel.refs["city"].value = "Random grid city"
    saved(panel, "to your downloads")
    panel = panels.dashboard(path)
    damaged = eo.planning.Project(TOWN, {"units": 2}, [{"scenario": "x"}]).to_bytes()
    panel.refs["open"].value = upload({"x.zip": damaged})
    assert "scenarios of the project are damaged" in panel.refs["message"].value
    saved(panel, "to your downloads")
    with monkeypatch.context() as patch:
        patch.setenv(_dashboard.PROJECT_VARIABLE, str(path))
        panel = panels.dashboard()  # as visitors of a server see it
    panel.refs["units"].value = 2
    saved(panel, "to your downloads")
    panel = panels.dashboard(path)
    panel.refs["colocation"].value = not panel.refs["colocation"].value  # the same city in another workbench
    saved(panel, "Saved to town.zip")
