"""The workflow from a log to advice: one answer for all faces, and what it says where something is missing or worse."""

import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from refusals import refused
from synthetic_log import synthetic_log
from uploads import chosen

import emsopt as eo
from emsopt.__main__ import main
from emsopt.calls import areas
from emsopt.calls.recorded import recorded_responses
from emsopt.errors import Argument, Message
from emsopt.planning import Settings, advice, build, steps

PRACTICE = {"drop_repeats": True, "empty_days": "missing", "accept_findings": True}


@pytest.fixture(scope="module")
def san_jose():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(areas, "MOST_CELLS_BY_DEFAULT", 200)  # cells that the search has to narrow
        yield eo.planning.advise(*eo.datasets.san_jose_calls())


def test_the_command_begins_with_the_answer_and_is_short(san_jose, tmp_path, monkeypatch, capsys):
    """It asks for the same advice as Python does; within 40 lines, and the answer within twelve."""
    monkeypatch.setattr("emsopt.commands._output.draw_deployments", lambda *_: [])
    asked = []
    monkeypatch.setattr("emsopt.commands.own_city.advise", lambda *given, **_: asked.append(given) or san_jose)
    assert main(["city", "--san-jose", "--out", str(tmp_path)]) == 0
    ((calls, stations, settings),) = asked
    given, plain = ({name: value or None for name, value in vars(s).items()} for s in (settings, Settings()))
    assert (given, (len(calls), len(stations))) == (plain, (3652, 33))
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 40
    assert lines.index("") <= 12
    first = "\n".join(lines[: lines.index("")])
    for said in ("3,652 calls from 2015-01-01", r"mean response \(min\) +6\.40 +6\.4\d +6\.4\d",
                 "may be used for: mean response, 90th percentile, share of late responses, where units",
                 r"Leave the units where they are: the best deployment found gains \+0.01"):  # fmt: skip
        assert re.search(said, first)
    assert not re.search("Move |Wrong in the data", first)
    names = {path.stem for path in tmp_path.iterdir()}
    assert {"report", "calibration", "recorded", "scenarios", "city"} <= names
    assert not {"gains_by_atom", "worse"} & names  # no plan, so no comparison
    written = pd.read_csv(tmp_path / "recorded.csv", index_col=0)
    np.testing.assert_allclose(written, san_jose.recorded_measures, rtol=1e-12)
    report = (tmp_path / "report.html").read_text("utf-8")
    assert "385 of 3,652 calls got no unit" in report
    assert "<svg" in report


def test_sparse_logs_and_times_of_ones_own_are_tested_as_they_are_used():
    stations = pd.DataFrame({"name": list("ABCD"), "lon": [0.0, 0.05, 0.1, 0.0], "lat": [45.0, 45.0, 45.0, 45.05]})
    for per_day in (3, 40):
        log = synthetic_log(stations, calls_per_day=per_day, days=20, rng=1)
        found = eo.planning.advise(log, stations)
        assert "Cannot tell" in found.report.uses.loc["moves", "why"]
    refused("plan of the day", found.with_day_plan, 1)
    assert not eo.planning.advise(log, stations, Settings(turnout_times=12.0)).report.usable("mean")
    assert "does not reach the recorded" in build(log, stations, Settings(speed_kmh=10, turnout_times=9)).fleet[1]
    for wrong in ({"today": []}, {"threshold": -1}):
        refused(r"today|threshold", eo.planning.advise, log, stations, Settings(**wrong))


@pytest.mark.parametrize("drawn", ["plain", "dispatch", ""], ids=["drawn log", "dispatch and other rows", "practice"])
def test_command_and_dashboard_calculate_what_python_does_from_the_same_files(drawn, tmp_path):
    """The third log is that of San José, above."""
    uploads = pytest.importorskip("emsopt.panels._uploads", reason="needs the package ipywidgets")
    calls, stations = eo.datasets.practice_calls()
    options = PRACTICE | {"units": 4}
    flags = ["--drop-repeats", "--skip-empty-days", "--accept-findings", "--units", "4"]
    if drawn:
        places = {"lon": [0.0, 0.05, 0.1, 0.0, 0.1], "lat": [45.0] * 3 + [45.05] * 2}
        stations = pd.DataFrame({"name": list("ABCDE")} | places)
        calls, options, flags = synthetic_log(stations, calls_per_day=60, days=14, rng=5), {}, []
    calls = calls.to_frame()
    if drawn == "dispatch":
        calls["Nature"] = np.where(np.arange(len(calls)) % 9 == 2, "Stand-by", "Fall")
        options = {"dispatch": "first due", "others": "occupying"}
        flags = ["--dispatch", "first due", "--others", "occupying"]
    files = [tmp_path / "calls.csv", tmp_path / "stations.csv"]
    for file, frame in zip(files, (calls, stations), strict=True):
        frame.to_csv(file, index=False)
    python = eo.planning.advise(*files, Settings(**options))
    assert main(["city", *map(str, files), *flags, "--out", str(tmp_path / "out")]) == 0
    written = pd.read_csv(tmp_path / "out" / "recorded.csv", index_col=0)
    np.testing.assert_allclose(written, python.recorded_measures, rtol=1e-12)
    assert_same(eo.City.load(tmp_path / "out" / "city"), python.city)
    page = uploads.city_from_uploads([{"name": f.name, "content": f.read_bytes()} for f in files], **options).log
    built = build(*files, Settings(**options))
    assert_same(page.city, built.city)
    assert (page.fleet, page.data_notes, page.assumed) == (built.fleet, built.data_notes, built.assumed)
    assert (page.fit is None) == (not drawn)
    assert (built.city.preference is not None) == (built.log.occupying is not None) == (drawn == "dispatch")
    if drawn:
        pd.testing.assert_frame_equal(steps.back_test_model(page).to_frame(), python.report.to_frame(), rtol=1e-12)


def assert_same(city, other):
    for name in ("travel_times", "arrival_rates", "turnout_times", "service_times", "travel_cv"):
        np.testing.assert_allclose(getattr(city, name), getattr(other, name), rtol=1e-12, err_msg=name)
    np.testing.assert_array_equal(city.preferred_order, other.preferred_order)


def test_a_negligible_gain_is_not_proposed_and_cells_are_fine_enough(san_jose):
    assert (san_jose.comparison, san_jose.is_worthwhile, san_jose.proposal) == (None, False, san_jose.today)
    assert list(san_jose.recorded_measures.columns) == ["recorded", "today", "best found"]
    # Half as wide cells change the gain by less than 0.1 % of today's mean or a tenth of itself.
    model, pair = san_jose.model, (san_jose.today.sites, san_jose.best.sites)
    gains = []
    for m in (model, model.with_cells(model.demand.cell_km / 2)):
        a, b = (eo.evaluators.evaluate(m.city, sites).mean_response for sites in pair)
        gains.append(a - b)
    assert model.demand.cell_km < 2  # the width that 200 cells allow
    assert abs(gains[0] - gains[1]) <= max(0.001 * a, 0.1 * abs(gains[1]))
    assert san_jose.gain.mean == pytest.approx(gains[0])
    given = replace(model, settings=replace(model.settings, cell_km=2.0))
    assert steps.narrow_cells(given, pair) is given


def test_late_calls_are_todays_only_if_today_is_known(san_jose):
    share = re.compile("as late: [0-9.]+% of today's")
    assert share.search("\n".join(san_jose.details))
    unknown = replace(san_jose, found={name: e for name, e in san_jose.found.items() if name != "today"})
    assert "count unrounded times of 8 min or more as late." in "\n".join(unknown.details)
    assert not share.search("\n".join(unknown.details))


def test_a_gain_that_costs_others_is_called_a_trade_off():
    """The best mean takes the unit from quarters that wait longer: minutes, calls and zones by hand."""
    today = ["Harbour", "Old Town", "University", "West Gate", "Hospital"]
    practice = eo.planning.advise(*eo.datasets.practice_calls(), Settings(today=today, **PRACTICE))
    assert practice.is_worthwhile
    text = str(practice)
    assert "Move 3 of 5 units: from " in text
    assert "This is a trade-off. What rises: the 90th percentile from " in text
    city, worse = practice.city, practice.worse_zones
    near = np.array(city.site_names)[city.travel_times.argmin(axis=0)]
    for name, row in worse.iterrows():
        mine = near == name
        rates = city.arrival_rates[mine]
        change = practice.best.atom_response[mine] - practice.today.atom_response[mine]
        assert row["minutes"] == pytest.approx(rates @ change / rates.sum())
        assert row["calls_per_year"] == pytest.approx(8766 * rates.sum())
        assert row["minutes"] > 0.01 * practice.today.mean_response
    assert f"Longer waits: {worse['calls_per_year'].sum():,.0f} calls a year" in text
    assert f"{worse.index[0]} {worse['minutes'].iloc[0]:+.1f} min" in text
    assert not any("nan" in line for line in practice.sentences)
    assert "recorded" in practice.recorded_measures  # always beside, even if unknown
    assert "Longer waits" in practice.html
    assert "<script" not in practice.html


@pytest.mark.parametrize("what", ["stations", "first days"])
def test_a_log_that_contradicts_the_stations_is_not_advised_on(what):
    """Drives hardly grow with distance: two of three stations are missing, or all drives of five days take 5 min."""
    calls, stations = eo.datasets.san_jose_calls()
    if what == "stations":
        stations, settings = stations.iloc[::3], Settings(units=3, cell_km=4.0)
    else:
        drives = calls.details.copy()
        early = calls.times < calls.times[0] + np.timedelta64(5, "D")
        drives.loc[early, "on_scene"] = drives.loc[early, "en_route"] + np.timedelta64(5, "m")
        calls, settings = replace(calls, details=drives), Settings(hold_out=9, cell_km=4.0)
    found = eo.planning.advise(calls, stations, settings)
    assert (found.model.fit is None) == (what == "stations")  # the log as a whole does not contradict them
    assert found.best is found.proposal is None
    assert re.search("No plan is proposed, as the log contradicts(.|\n)*stations are missing", str(found))
    refused("plan of the day", found.with_day_plan, 1)


def test_what_the_test_does_not_allow_is_not_advised(san_jose, monkeypatch):
    uses = san_jose.report.uses.copy()
    uses.loc["moves", ["usable", "why"]] = False, "Stations are missing."
    report = replace(san_jose.report, uses=uses)
    monkeypatch.setattr(steps, "back_test_model", lambda *_: report)
    monkeypatch.setattr(steps, "find_best", lambda *_, **__: pytest.fail("it was searched"))
    blocked = eo.planning.advise(*eo.datasets.san_jose_calls())
    assert blocked.reasons_against == ("Where units and stations should be: Stations are missing.",)
    assert blocked.proposal is None
    assert list(blocked.found) == ["today"]
    for part in ("No plan is proposed", "Stations are missing.", "The model may be used for: mean response"):
        assert part in str(blocked)
    assert "Move " not in str(blocked)
    uses.loc["moves", "usable"], uses.loc["fleet", "usable"] = True, False
    other = eo.planning.advise(*eo.datasets.san_jose_calls(), Settings(units=40))
    assert [why.partition(":")[0] for why in other.reasons_against] == ["Number of units"]


def test_the_fleet_is_todays_or_reaches_the_recorded_mean(san_jose):
    """Without units and stations in the log, the fewest units whose best mean is at most the recorded one."""
    calls, stations = eo.datasets.san_jose_calls()
    unnamed = replace(calls, details=calls.details.drop(columns=["unit"]))
    model = build(unnamed, stations, Settings(cell_km=2.0))
    assert model.today is None
    units, why = model.fleet
    recorded = recorded_responses(model.calls)[0].mean()
    assert f"recorded mean response of {recorded:.2f} min" in why
    medians = (eo.evaluators.p_median(model.city, p).sites for p in (units - 1, units))
    means = [eo.evaluators.evaluate(model.city, sites).mean_response for sites in medians]
    assert means[0] > recorded
    assert means[1] <= recorded or units == len(stations)
    assert san_jose.model.fleet == (45, "as many as today")
    assert build(calls, stations, Settings(cell_km=2.0, units=7)).fleet[0] == 7


def test_days_are_held_out_by_one_rule_and_wrong_findings_stop_the_advice():
    calls, _ = eo.datasets.san_jose_calls()
    for days, given, held in ((14, None, 5), (9, None, 3), (8, None, 0), (14, 2, 2)):
        part = calls.between("2015-01-01", f"2015-01-{days + 1:02d}")
        assert steps.count_held_out_days(part, given) == (days, held)
    refused("from 0 to 13", steps.count_held_out_days, calls, 14)
    for empty, gaps in (("counted", "; gaps in time"), ("missing", "")):
        said = rf"something is wrong in the data: no place; swapped coordinates{gaps}\."
        refused(said, eo.planning.advise, *eo.datasets.practice_calls(), Settings(empty_days=empty))


def test_the_dashboard_gives_the_same_numbers(san_jose, monkeypatch):
    """San José read from files: fit, fleet, test, search, cells, and what is compared in drawn cities."""
    panels = pytest.importorskip("emsopt.panels", reason="needs the package ipywidgets")
    asked, columns = [], ["difference", "difference_low", "difference_high"]
    compared = SimpleNamespace(to_frame=lambda: pd.DataFrame(0.0, ["best found"], columns))
    monkeypatch.setattr(steps, "compare_deployments", lambda *given, **how: asked.append((given, how)) or compared)
    calls, stations = eo.datasets.san_jose_calls()
    refs = (panel := panels.dashboard()).refs
    refs["city"].value = "Your own files"
    tables = (("calls.csv", calls.to_frame()), ("stations.csv", stations))
    refs["files"].value = chosen((name, frame.to_csv(index=False)) for name, frame in tables)
    refs["read"].click()
    model = panel.bench.opened.log
    pd.testing.assert_frame_equal(model.fit.to_frame(), san_jose.model.fit.to_frame())
    assert panel.bench.opened.today == tuple(san_jose.today.sites.tolist())
    assert ((refs["units"].value, refs["hold_out"].value), model.assumed) == ((45, 5), san_jose.model.assumed)
    refs["test_start"].click()
    refs["test_wait"]()
    shown = {result.kind: result for result in panel.bench.trust.results}
    pd.testing.assert_frame_equal(shown["back_test"].table, san_jose.report.to_frame())
    refs["search"].click()
    refs["wait"]()
    ((sites, _, _),) = panel.bench.found.values()
    assert sites == tuple(san_jose.best.sites.tolist())
    assert_same(panel.bench.city, san_jose.city)
    assert panel.bench.city.n_atoms > model.city.n_atoms  # cells are as narrow as the gain needs
    refs["baseline"].value = "today"
    refs["compare_start"].click()
    refs["compare_wait"]()
    (((given, deployments), how),) = asked
    assert [list(x) for x in deployments.values()] == [list(san_jose.found[n].sites) for n in ("today", "best found")]
    settings, wanted = given.settings, san_jose.model.settings
    assert (settings.metric, settings.capacity, how["load"]) == (wanted.metric, wanted.capacity, 1.0)


def test_gains_of_late_responses_are_told_in_percentage_points():
    said = "+2.000 percentage points of share of responses of 8 min or more (90 % interval: +1.000 to +3.000)"
    assert advice._gain_text(("late", 8.0), (0.02, 0.01, 0.03)) == said


def test_a_message_is_said_in_the_words_of_its_reader():
    said = Message("Use ", Argument("cell_km", 2.0), " or `reach_km`.")
    assert said == "Use `cell_km=2.0` or `reach_km`."
    assert said.write_arguments(lambda a: a.name.upper(), ["reach_km"]) == "Use CELL_KM or REACH_KM."
