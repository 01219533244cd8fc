"""What the command says about a log with stamps: days held out, recorded times, who today is, gains, assumptions."""

import io
from contextlib import redirect_stdout
from html import escape
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from synthetic_log import synthetic_log

import emsopt as eo
from emsopt.__main__ import main
from emsopt.calls.recorded import recorded_responses, response_measures, rounded_measures
from emsopt.commands import _output

TODAY = [0, 0, 0, 1, 2, 3]  # none at the last two stations


pytestmark = pytest.mark.usefixtures("no_figure")


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


@pytest.fixture(scope="module")
def detailed(files, tmp_path_factory):
    """The folder of the command's files and all that it can print."""
    folder = tmp_path_factory.mktemp("detailed")
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(io.StringIO()) as printed:
        patch.setattr(_output, "draw_deployments", lambda *_: [])
        assert main(["city", *files, "--cell", "3", "--out", str(folder), "--details", "--hold-out", "0"]) == 0
    return folder, printed.getvalue()


@pytest.fixture
def run(emsopt):
    return lambda files, out, *given, **how: emsopt("city", *files, "--cell", "3", "--out", out, *given, **how)


def test_the_last_third_of_the_days_is_held_out_and_the_model_uses_all(files, tmp_path, run):
    text = run(files, tmp_path)
    calls, stations = eo.calls.read_calls(files[0]), eo.calls.read_stations(files[1])
    past = eo.calls.calibrate(calls.between("2024-03-01", "2024-03-09"), stations)
    report = eo.calls.back_test(past, calls.between("2024-03-09", "2024-03-14"), cell_km=3)
    usable = [use for use in report.uses.index if report.usable(use)]
    assert ("mean response" in text.partition("Not for")[0]) == ("mean" in usable)
    page = (tmp_path / "report.html").read_text("utf-8")
    assert all(escape(why) in page for why in report.uses["why"])
    table = pd.read_csv(tmp_path / "calibration.csv", index_col="quantity")
    everything = eo.calls.calibrate(calls, stations).to_frame()
    assert table.loc["speed_kmh", "estimate"] == pytest.approx(everything.loc["speed_kmh", "estimate"])


def test_the_days_held_out_can_be_chosen(files, detailed, tmp_path, run):
    few = ["--units", "2", "--evaluator", "approximate"]
    assert "No plan is proposed" in run(files, tmp_path, "--hold-out", "3", *few)
    assert "no days are held out" in detailed[1]
    assert "the last 11 cannot be compared" in run(files, tmp_path, "--hold-out", "11", *few)
    assert "from 0 to 11" in run(files, tmp_path, "--hold-out", "12", status=2)
    assert "not calibrated from the log" in run(files, tmp_path, "--speed", "40", "--turnout", "1", *few)


def test_calls_out_of_reach_do_not_calibrate_and_the_page_fits_as_the_command_does(files, tmp_path, run):
    uploads = pytest.importorskip("emsopt.panels._uploads", reason="needs the package ipywidgets")
    few = ["--reach", "2", "--accept-findings", "--units", "2", "--hold-out", "0", "--evaluator", "approximate"]
    run(files, tmp_path, *few)
    written = pd.read_csv(tmp_path / "calibration.csv", index_col="quantity")
    contents = [{"name": Path(file).name, "content": Path(file).read_bytes()} for file in files]
    page = uploads.city_from_uploads(contents, reach_km=2.0, cell_km=3.0).log.fit
    np.testing.assert_allclose(written, page.to_frame(), rtol=1e-6)
    assert len(page.calls) < len(uploads.city_from_uploads(contents, cell_km=3.0).log.calls)


def test_a_stamp_that_is_not_recognised_is_suggested(files, frames, tmp_path, run):
    frames[0].rename(columns={"on_scene": "T_ARR at"}).to_csv(tmp_path / "calls.csv", index=False)
    given = [(str(tmp_path / "calls.csv"), files[1]), tmp_path / "o", "--details"]
    given += ["--units", "2", "--evaluator", "approximate"]
    text = run(*given)
    assert "--columns on_scene='T_ARR at'" in text
    assert "it has no time of arrival on scene." in text
    text = run(*given, "--columns", "on_scene=T_ARR at")
    assert "not taken" not in text
    assert "Times are calibrated from the log" in text


def test_an_interrupted_plan_leaves_what_has_been_written(files, tmp_path, run, monkeypatch):
    (tmp_path / "plan.csv").write_text("of an earlier run")

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("emsopt.planning.steps.plan_day", interrupted)
    few = ["--moves", "1", "--units", "2", "--hold-out", "0", "--evaluator", "approximate"]
    text = run(files, tmp_path, *few, status=130)
    names = {path.name for path in tmp_path.iterdir()}
    assert {"city", "scenarios.csv", "deployments.csv", "report.html"} <= names
    assert "plan.csv" not in names
    assert "written to" in text
    assert "Interrupted. No file was left incomplete." in text


def test_recorded_times_stand_beside_modelled_ones_and_today_is_said(files, frames, detailed):
    out, text = detailed
    fit = eo.calls.calibrate(*files)
    today = eo.evaluators.exact_hypercube(fit.city(cell_km=3), fit.deployment)
    minutes, step = recorded_responses(fit.calls)
    table = pd.DataFrame({"recorded": response_measures(minutes, step, [8.0])}).drop(index="percentile_50_min")
    written = pd.read_csv(out / "recorded.csv", index_col="measure")
    np.testing.assert_allclose(written["recorded"], table["recorded"], rtol=1e-6)
    np.testing.assert_allclose(written["today"], rounded_measures(today, step), rtol=1e-6)
    for said in (
        f"unrounded times of 8 min or more as late: {today.late_fraction(8.0):.1%} of today's",
        f"10 of {len(frames[0]):,} calls got no unit: they are left out",
        "20 calls got a unit that the log does not name: they count as calls like all others.",
        "Today: 6 units at 4 stations, by the units in the log.",
        "The log names 8 units; the homes of 7 are known by the",
        "Not deployed, no known home (give it by `--homes`): 1 with 2 calls (CHIEF).",
        "Not deployed, hardly any calls: 1 with 1 calls (Q4).",
    ):
        assert said in text


def test_homes_can_be_given(files, frames, tmp_path, run):
    homes = pd.DataFrame({"Unit": frames[0]["unit"].dropna().unique()})
    few = ["--details", "--units", "2", "--hold-out", "0", "--evaluator", "approximate"]
    for station, columns, status, said in (
        ("Station 6", ["Unit", "Station"], 0, "the homes of 8 are known as given."),
        ("Station 66", ["Unit", "Station"], 2, "`--homes` must name stations"),
        ("Station 6", ["Unit"], 2, "must have columns 'unit' and 'station'"),
    ):
        homes["Station"] = ["Station " + unit[-1] if unit != "CHIEF" else station for unit in homes["Unit"]]
        homes[columns].to_csv(tmp_path / "homes.csv", index=False)
        assert said in run(files, tmp_path / "o", "--homes", tmp_path / "homes.csv", *few, status=status)


def test_swapped_files_and_unclear_columns_are_explained_in_options(files, run, tmp_path, frames):
    calls, stations = frames
    tables = {
        "a column 'time'.csv": calls.drop(columns="lat"),  # words of a name decide nothing
        "stations.csv": stations.rename(columns={"lon": "Ost West", "lat": "Nord"}),
        "calls.csv": calls[["lon", "lat"]].assign(**{"Wann genau": calls["time"], "other": calls["time"]}),
    }
    named, unclear, when = (str(tmp_path / name) for name in tables)
    for path, table in zip((named, unclear, when), tables.values(), strict=True):
        table.to_csv(path, index=False)
    for given, said in (
        (files[::-1], f"emsopt city {files[0]} {files[1]}"),
        ((files[0], files[0]), "must be a table of stations"),
        ((files[1], files[1]), "--columns time=..."),
        ((named, files[0]), "needs a column 'lat'"),
        ((files[0], unclear), "--station-columns lon=... lat=..."),
        ((when, files[1]), "--columns time='Wann genau'"),
    ):
        text = run(given, tmp_path / "o", status=2)
        assert said in text
        assert "columns={" not in text
