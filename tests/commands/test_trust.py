"""What the command says about a log with stamps: days held out, recorded times, who today is, gains, assumptions."""

import io
import json
import re
from contextlib import redirect_stdout
from html import escape
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from synthetic_log import synthetic_log

import emsopt as eo
from emsopt.__main__ import main
from emsopt.calls.recorded import measures, recorded_responses, rounded_measures
from emsopt.commands import _output
from emsopt.optimizers.deployments import swaps

TODAY = [0, 0, 0, 1, 2, 3]  # none at the last two stations


@pytest.fixture(autouse=True)
def no_figure(monkeypatch):
    """Figures take a second each, and are tested elsewhere."""
    monkeypatch.setattr(_output, "draw_deployments", lambda *_: [])


@pytest.fixture(scope="module")
def frames():
    """Twelve days of calls to six units, some of which have no unit or odd ones; and six stations."""
    places = {"lon": [0, 0.05, 0.1] * 2, "lat": [45] * 3 + [45.05] * 3}
    stations = pd.DataFrame({"name": [f"Station {k + 1}" for k in range(6)]} | places)
    log = synthetic_log(stations, calls_per_day=45, days=12, deployment=TODAY, rng=3)
    calls = log.to_frame().drop(columns="service_min")
    calls["units_sent"] = 1 + np.arange(len(calls)) % 2
    calls.loc[5:24, "unit"] = None  # sent, but not named
    calls.loc[40:41, "unit"] = "CHIEF"
    calls.loc[50, "unit"] = "Q4"
    calls.loc[60:69, ["unit", "dispatched", "en_route", "on_scene", "cleared"]] = None
    calls.loc[60:69, "units_sent"] = 0
    return calls, stations


@pytest.fixture(scope="module")
def files(frames, tmp_path_factory):
    folder = tmp_path_factory.mktemp("stamped")
    for name, frame in zip(("calls.csv", "stations.csv"), frames, strict=True):
        frame.to_csv(folder / name, index=False)
    return str(folder / "calls.csv"), str(folder / "stations.csv")


def once(folder, files, *options):
    """Run the command for several tests; return its folder and what it printed."""
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(io.StringIO()) as printed:
        patch.setattr(_output, "draw_deployments", lambda *_: [])
        assert main(["city", *files, "--cell", "3", "--out", str(folder), *options]) == 0
    return folder, printed.getvalue()


@pytest.fixture(scope="module")
def done(files, tmp_path_factory):
    return once(tmp_path_factory.mktemp("done"), files)


@pytest.fixture(scope="module")
def detailed(files, tmp_path_factory):
    """With all that the command can print."""
    return once(tmp_path_factory.mktemp("detailed"), files, "--details", "--hold-out", "0")


def run(capsys, files, folder, *options, status=0):
    assert main(["city", *files, "--cell", "3", "--out", str(folder), *map(str, options)]) == status
    return "".join(capsys.readouterr())


def details(capsys, files, folder, *options):
    return run(capsys, files, folder, "--details", *options)


def test_the_last_third_of_the_days_is_held_out_and_the_model_uses_all(done, files):
    out, text = done
    calls, stations = eo.calls.read_calls(files[0]), eo.calls.read_stations(files[1])
    past = eo.calls.calibrate(calls.between("2024-03-01", "2024-03-09"), stations)
    report = eo.calls.back_test(past, calls.between("2024-03-09", "2024-03-14"), cell_km=3)
    usable = [use for use in report.uses.index if report.usable(use)]
    assert ("mean response" in text.partition("Not for")[0]) == ("mean" in usable)
    page = (out / "report.html").read_text("utf-8")
    assert all(escape(why) in page for why in report.uses["why"])
    table = pd.read_csv(out / "calibration.csv", index_col="quantity")
    everything = eo.calls.calibrate(calls, stations).to_frame()
    assert table.loc["speed_kmh", "estimate"] == pytest.approx(everything.loc["speed_kmh", "estimate"])


def test_the_days_held_out_can_be_chosen(files, detailed, tmp_path, capsys):
    few = ["--units", "2", "--evaluator", "approximate"]
    assert "No plan is proposed" in run(capsys, files, tmp_path, "--hold-out", "3", *few)
    assert "no days are held out" in detailed[1]
    assert "the last 11 cannot be compared" in run(capsys, files, tmp_path, "--hold-out", "11", *few)
    assert "from 0 to 11" in run(capsys, files, tmp_path, "--hold-out", "12", status=2)
    assert "not calibrated from the log" in run(capsys, files, tmp_path, "--speed", "40", "--turnout", "1", *few)


def test_recorded_times_stand_beside_modelled_ones_by_one_rule(files, detailed):
    out, text = detailed
    calls, stations = eo.calls.read_calls(files[0]), eo.calls.read_stations(files[1])
    fit = eo.calls.calibrate(calls, stations)
    today = eo.evaluators.exact_hypercube(fit.city(cell_km=3), fit.deployment)
    minutes, step = recorded_responses(fit.calls)
    table = pd.DataFrame({"recorded": measures(minutes, step, [8.0])}).drop(index="percentile_50_min")
    table = table.assign(modelled=rounded_measures(today, step))
    written = pd.read_csv(out / "recorded.csv", index_col="measure")
    np.testing.assert_allclose(written[["recorded", "today"]], table[["recorded", "modelled"]], rtol=1e-6)
    recorded, modelled = table.loc["late_over_8_min"]
    assert re.search(f"recorded as over 8 min +{recorded:.1%} +{modelled:.1%}", text)
    assert f"unrounded times of 8 min or more as late: {today.late_fraction(8.0):.1%} of today's" in text


def test_it_says_who_today_is_and_what_becomes_of_calls_without_a_unit(frames, detailed):
    text, got = detailed[1], frames[0]["on_scene"].notna()
    assert f"10 of {len(got):,} calls got no unit: they are left out" in text
    assert "20 calls got a unit that the log does not name: they count as calls like all others." in text
    assert "Today: 6 units at 4 stations, by the units in the log." in text
    assert "The log names 8 units; the homes of 7 are known by the" in text
    assert "Not deployed, no known home (give it by `--homes`): 1 with 2 calls (CHIEF)." in text
    assert "Not deployed, hardly any calls: 1 with 1 calls (Q4)." in text


def test_homes_can_be_given(files, frames, tmp_path, capsys):
    units = frames[0]["unit"].dropna().unique()
    homes = pd.DataFrame({"Unit": units})
    homes["Station"] = [f"Station {unit[-1]}" if unit != "CHIEF" else "Station 6" for unit in units]
    homes.to_csv(tmp_path / "homes.csv", index=False)
    few = ["--units", "2", "--hold-out", "0", "--evaluator", "approximate"]
    text = details(capsys, files, tmp_path / "o", "--homes", tmp_path / "homes.csv", *few)
    assert "the homes of 8 are known as given." in text
    homes["Station"] = "Station 66"
    homes.to_csv(tmp_path / "homes.csv", index=False)
    text = run(capsys, files, tmp_path / "o", "--homes", tmp_path / "homes.csv", *few, status=2)
    assert "`--homes` must name stations" in text
    homes[["Unit"]].to_csv(tmp_path / "homes.csv", index=False)
    text = run(capsys, files, tmp_path / "o", "--homes", tmp_path / "homes.csv", *few, status=2)
    assert "must have columns 'unit' and 'station'" in text


def test_calls_out_of_reach_do_not_calibrate_and_the_page_fits_as_the_command_does(files, tmp_path, capsys):
    uploads = pytest.importorskip("emsopt.panels._uploads", reason="needs the package ipywidgets")
    few = ["--reach", "2", "--accept-findings", "--units", "2", "--hold-out", "0", "--evaluator", "approximate"]
    run(capsys, files, tmp_path, *few)
    written = pd.read_csv(tmp_path / "calibration.csv", index_col="quantity")
    contents = [{"name": Path(file).name, "content": Path(file).read_bytes()} for file in files]
    page = uploads.city_from_uploads(contents, reach_km=2.0, cell_km=3.0).log.fit
    np.testing.assert_allclose(written, page.to_frame(), rtol=1e-6)
    assert len(page.calls) < len(uploads.city_from_uploads(contents, cell_km=3.0).log.calls)


def test_the_gain_comes_with_the_units_that_move(detailed):
    """Counted by hand; the gain has one interval."""
    out, text = detailed[0], " ".join(detailed[1].split())
    city = eo.City.load(out / "city")
    scenarios = pd.read_csv(out / "scenarios.csv", index_col="deployment")
    best = city.sites_named(scenarios.loc["optimum", "sites"].split("; "))
    moved = 6 - sum(min(TODAY.count(k), list(best).count(k)) for k in range(6))
    assert moved >= 2
    assert f"Move {moved} of 6 units: from " in text
    assert re.search(r"This gains \+\d\.\d+ min of mean response \(90 % interval: \+\d\.\d+ to \+\d\.\d+\)\.", text)
    assert scenarios.loc["optimum", "gain_low"] > 0


def test_how_sure_a_gain_is_uses_the_areas_that_are_named(files, tmp_path):
    pytest.importorskip("shapely")
    features, areas = [], tmp_path / "wards.geojson"
    for ward, low, high in (("west", -0.2, 0.05), ("east", 0.05, 0.3)):
        ring = [[low, 44.8], [high, 44.8], [high, 45.2], [low, 45.2], [low, 44.8]]
        geometry = {"type": "Polygon", "coordinates": [ring]}
        features.append({"type": "Feature", "properties": {"name": "same", "ward": ward}, "geometry": geometry})
    areas.write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    options = ["--areas", str(areas), "--area-name", "ward", "--reach", "9", "--hold-out", "0"]
    assert main(["city", *files, *options, "--evaluator", "approximate", "--out", str(tmp_path / "o")]) == 0
    assert pd.read_csv(tmp_path / "o" / "gains_by_atom.csv")["atom"].tolist() == ["west", "east"]


def test_a_stamp_that_is_not_recognised_is_suggested(files, frames, tmp_path, capsys):
    frames[0].rename(columns={"on_scene": "T_ARR at"}).to_csv(tmp_path / "calls.csv", index=False)
    options = [(str(tmp_path / "calls.csv"), files[1]), tmp_path / "o", "--units", "2", "--evaluator", "approximate"]
    text = details(capsys, *options)
    assert "--columns on_scene='T_ARR at'" in text
    assert "it has no time of arrival on scene." in text
    text = details(capsys, *options, "--columns", "on_scene=T_ARR at")
    assert "not taken" not in text
    assert "Times are calibrated from the log" in text


def test_swapped_files_and_unclear_columns_are_explained_in_options(files, capsys, tmp_path, frames):
    text = run(capsys, files[::-1], tmp_path, status=2)
    assert f"emsopt city {files[0]} {files[1]}" in text
    assert "must be a table of stations" in run(capsys, (files[0], files[0]), tmp_path, status=2)
    text = run(capsys, (files[1], files[1]), tmp_path, status=2)
    assert "--columns time=..." in text
    calls, stations = frames
    named = tmp_path / "a column 'time'.csv"  # words of a name decide nothing
    calls.drop(columns="lat").to_csv(named, index=False)
    assert "needs a column 'lat'" in run(capsys, (str(named), files[0]), tmp_path, status=2)
    unclear = {"lon": "Ost West", "lat": "Nord"}
    stations.rename(columns=unclear).to_csv(tmp_path / "stations.csv", index=False)
    text = run(capsys, (files[0], str(tmp_path / "stations.csv")), tmp_path / "o", status=2)
    assert "--station-columns lon=... lat=..." in text
    calls[["time", "lon", "lat"]].rename(columns={"time": "Wann genau"}).assign(other=calls["time"]).to_csv(
        tmp_path / "calls.csv", index=False
    )
    text = run(capsys, (str(tmp_path / "calls.csv"), files[1]), tmp_path / "o", status=2)
    assert "--columns time='Wann genau'" in text
    assert "columns={" not in text


def test_an_interrupted_plan_leaves_what_has_been_written(files, tmp_path, capsys, monkeypatch):
    (tmp_path / "plan.csv").write_text("of an earlier run")

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("emsopt.planning.steps.plan_day", interrupted)
    few = ["--moves", "1", "--units", "2", "--hold-out", "0", "--evaluator", "approximate"]
    text = run(capsys, files, tmp_path, *few, status=130)
    names = {path.name for path in tmp_path.iterdir()}
    assert {"city", "scenarios.csv", "deployments.csv", "report.html"} <= names
    assert "plan.csv" not in names
    assert "written to" in text
    assert "Interrupted. No file was left incomplete." in text


def test_a_long_search_and_a_plan_show_their_progress(files, tmp_path, capsys, monkeypatch):
    for evaluator in ("approximate", "exact"):
        monkeypatch.setitem(swaps.AFFORDABLE, evaluator, 10)
    monkeypatch.setattr(_output, "EVERY_S", 0.0)
    few = ["--cell", "5", "--hold-out", "0", "--moves", "1"]
    assert main(["city", *files, *few, "--out", str(tmp_path)]) == 0
    printed = capsys.readouterr()
    said = "emsopt: starts of the search, then cities drawn: 0 of 11 after"
    assert said in printed.err  # the approximate search before the exact one counts
    assert "emsopt: plan of the day: 24 of 24" in printed.err
    assert "units, at most 1 move between hours" in printed.out
