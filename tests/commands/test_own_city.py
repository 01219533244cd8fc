"""The command from a log to a map and a plan: the same figures as by hand, no text that runs, nothing that leaks."""

import csv
import io
import re
from contextlib import redirect_stdout

import numpy as np
import pandas as pd
import pytest
from uploads import geojson, square

import emsopt as eo
from emsopt.__main__ import main
from emsopt._files.formats import table_text
from emsopt.calls.profile import parse_hours, parse_weekdays
from emsopt.planning.advice import value_with_gap
from emsopt.planning.day_plan import hourly_plan

EVIL = ["<script>alert(1)</script>", '=HYPERLINK("http://x.example","y")', "a\"b'c&d; $\\frac{",
        "</style><img src=x onerror=p()>"]  # fmt: skip
PLAIN = ["--practice", "--units", "3", "--speed", "40"]
TITLE = "</title><script>alert(2)</script>"
WRITTEN = {"report.html", "recorded.csv", "checks.csv", "profile.csv", "city", "deployments.csv", "scenarios.csv",
           "deployments.html", "deployments.png", "sheet.html"}  # fmt: skip


def write_log(folder, n=1500, days=56, names=("A", "B", "C", "D"), rng=1):
    """Write files of calls and of four stations; return their paths as text."""
    rng = np.random.default_rng(rng)
    seconds = np.sort(rng.integers(0, days * 86400, n)).astype("timedelta64[s]")
    calls = pd.DataFrame({"time": np.datetime64("2025-01-06T00:00:00") + seconds})
    calls["lon"], calls["lat"] = -30 + rng.uniform(-0.05, 0.05, n), 45 + rng.uniform(-0.04, 0.04, n)
    calls["service_min"], calls["patient"] = rng.uniform(20, 60, n).round(), "Jane Doe"
    stations = pd.DataFrame({"name": names, "lon": [-30.02, -29.98, -30.0, -29.96], "turnout_min": 1.5})
    stations["lat"] = [45.01, 44.99, 45.02, 45.0]
    calls.to_csv(folder / "secret_calls.csv", index=False)
    stations.to_csv(folder / "stations.csv", index=False)
    return str(folder / "secret_calls.csv"), str(folder / "stations.csv"), calls


def files_in(folder):
    return {path.name for path in folder.iterdir()}


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """One run on stations with malicious names: the folder of its files, and what it printed."""
    folder = tmp_path_factory.mktemp("own")
    calls, stations, frame = write_log(folder, names=EVIL)
    arguments = [calls, stations, "--units", "2", "--speed", "40", "--cell", "1", "--moves", "1", "--name", TITLE]
    printed = io.StringIO()
    with redirect_stdout(printed):
        assert main(["city", *arguments, "--out", str(folder / "out")]) == 0
    return folder, folder / "out", frame, printed.getvalue()


def test_the_command_says_what_the_package_says(done):
    folder, out, _, text = done
    assert "Nothing is certainly wrong in the data" in text
    assert files_in(out) == WRITTEN | {"plan.csv", "plan_moves.csv"}
    demand = eo.calls.aggregate_calls(folder / "secret_calls.csv", folder / "stations.csv", cell_km=1)
    city = demand.city(speed_kmh=40)
    best = eo.evaluators.evaluate_all(city, 2).best
    scenarios = pd.read_csv(out / "scenarios.csv", index_col="deployment")
    assert scenarios.loc["optimum", "mean_response_min"] == pytest.approx(best.mean_response)
    assert scenarios.loc["optimum", "late_fraction"] == pytest.approx(best.late_fraction(8))
    units = pd.read_csv(out / "deployments.csv")
    mine = units[units["deployment"] == "optimum"]
    assert [name.removeprefix("'") for name in mine["site"]] == list(best.site_names)
    assert mine["utilization"].tolist() == pytest.approx(best.utilizations.tolist())
    plan = hourly_plan(demand.cities_by_hour(speed_kmh=40), 2, 1)
    assert pd.read_csv(out / "plan.csv")["value"].tolist() == pytest.approx(plan.values.tolist())
    assert f"{plan.value:.4g}" in text
    assert f"{value_with_gap(plan.fixed_value, plan)} without moves" in text
    weeks = eo.calls.held_out_weeks(folder / "secret_calls.csv", folder / "stations.csv", cell_km=1)
    assert eo.planning.judge_plan(plan, weeks).verdict in text
    assert len(pd.read_csv(out / "plan_moves.csv")) == plan.moves.sum()
    again = eo.City.load(out / "city")
    assert np.array_equal(again.arrival_rates, city.arrival_rates)
    assert pd.read_csv(out / "profile.csv")["calls"].sum() == 1500


def test_areas_a_matrix_and_other_options(plain, tmp_path, emsopt, no_figure):
    pytest.importorskip("shapely")
    wards = (({"ward": name}, square(west, 44.9, 0.1, 0.2)) for name, west in (("west", -30.1), ("east", -30.0)))
    (tmp_path / "wards.geojson").write_text(geojson(wards))
    (tmp_path / "t.csv").write_text("station,west,east\nB,5,3\nA,3,5\nC,4,4\nD,9,1\n")
    arguments = ["--areas", tmp_path / "wards.geojson", "--area-name", "ward", "--units", "2"]
    arguments += ["--travel-times", tmp_path / "t.csv", "--service", "30", "--hours", "7-19"]
    arguments += ["--weekdays", "Mon-Fri", "--drop-repeats", "--skip-empty-days", "--queue", "--name", "Wards"]
    arguments += ["--pinned", "A", "--closed", "D", "--metric", "late", "--threshold", "6"]
    assert "6 min or more" in emsopt("city", *plain, *arguments, "--out", tmp_path / "out")
    city = eo.City.load(tmp_path / "out" / "city")
    assert (city.travel_times.tolist(), city.mean_service_time) == ([[3, 5], [5, 3], [4, 4], [9, 1]], pytest.approx(30))
    table = pd.read_csv(tmp_path / "out" / "deployments.csv")
    assert "D" not in set(table["site"])
    assert (table.loc[table["site"] == "A", "deployment"].nunique()) == 2


def test_units_drive_on_given_roads(plain, tmp_path, emsopt, no_figure):
    lon, lat = np.meshgrid(np.linspace(-30.06, -29.94, 13), np.linspace(44.95, 45.05, 11))
    nodes = pd.DataFrame({"id": np.arange(143), "lon": lon.ravel(), "lat": lat.ravel()})
    east, north = nodes["id"][(nodes["id"] + 1) % 13 > 0], nodes["id"][:-13]
    ends = {"from": [*east, *east + 1, *north, *north + 13], "to": [*east + 1, *east, *north + 13, *north]}
    (tmp_path / "town").mkdir()
    nodes.to_csv(tmp_path / "town" / "nodes.csv", index=False)
    pd.DataFrame(ends).assign(speed_kmh=40).to_csv(tmp_path / "town" / "arcs.csv", index=False)
    emsopt("city", *plain, "--units", "2", "--roads", tmp_path / "town", "--out", tmp_path / "out")
    city = eo.City.load(tmp_path / "out" / "city")
    roads = eo.RoadNetwork.read(tmp_path / "town")
    np.testing.assert_allclose(city.travel_times, roads.travel_times(city.site_locations, city.atom_locations))
    assert "at the speed limits of the roads 'town'" in city.notes


def test_nobody_who_called_is_in_what_is_written(done):
    """Places, times, files and other columns of the log: none is in the map or in any table."""
    folder, out, frame, _ = done
    written = {p.name: p.read_text("utf-8") for p in out.rglob("*") if p.is_file() and p.suffix != ".png"}
    assert {"deployments.html", "atoms.csv", "atoms.geojson", "city.json"} < set(written)
    places = {f"{value:.{k}f}" for column in ("lon", "lat") for value in frame[column] for k in (4, 5, 6, 7)}
    places |= {repr(value) for column in ("lon", "lat") for value in frame[column].tolist()}
    for station in pd.read_csv(folder / "stations.csv")[["lon", "lat"]].to_numpy().ravel().tolist():
        places -= {f"{station:.{k}f}" for k in (4, 5, 6, 7)}
    moments = {str(t)[5:16] for t in frame["time"]}
    for name, text in written.items():
        for secret in ("Jane", "patient", "secret_calls", str(folder), "/home/", "/root/"):
            assert secret not in text, (name, secret)
        numbers = set(re.findall(r"-?\d+\.\d{4,}", text))
        edges = {number for number in numbers & places if len(number.split(".")[1]) > 5}
        assert not edges, name
        assert not moments & set(re.findall(r"\d\d-\d\d[ T]\d\d:\d\d", text)), name


def cells(path):
    return [cell for row in csv.reader(io.StringIO(path.read_text("utf-8"))) for cell in row]


def test_malicious_names_stay_text_in_every_export(done):
    _, out, _, text = done
    page = (out / "deployments.html").read_text("utf-8")
    assert "alert(1)" in page  # as text
    for name in (*EVIL, TITLE):
        if "<" in name:
            assert name not in page
    for name in ("deployments.csv", "scenarios.csv", "plan.csv", "plan_moves.csv", "checks.csv"):
        for cell in cells(out / name):
            assert cell[:1] not in ("=", "+", "@"), (name, cell)
            assert cell[:1] != "-" or float(cell) < 0
    named = [cell.removeprefix("'") for cell in cells(out / "deployments.csv")]
    best = eo.evaluators.evaluate_all(eo.City.load(out / "city"), 2).best
    assert set(best.site_names) <= set(named)
    assert eo.City.load(out / "city").site_names == tuple(EVIL)  # data come back as they were
    assert (out / "deployments.png").stat().st_size > 5000
    assert "\x1b" not in text


def test_no_text_of_a_table_is_a_formula():
    table = pd.DataFrame({"=a": ["=1+1", "+1", "-x", "@SUM", "\tx", "safe", None], "b": [-1.5, 2, 3, 4, 5, 6, 7]})
    rows = list(csv.reader(io.StringIO(table_text(table), newline="")))
    assert rows[0] == ["'=a", "b"]
    assert ([row[0] for row in rows[1:]], rows[1][1]) == (["'=1+1", "'+1", "'-x", "'@SUM", "'\tx", "safe", ""], "-1.5")


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """Files of a log that looks right and of stations with plain names."""
    return write_log(tmp_path_factory.mktemp("plain"), n=1500)[:2]


def test_what_is_wrong_in_the_data_stops_the_command(tmp_path, emsopt, no_figure):
    """Half of the calls with longitude and latitude swapped; and ten days missing, which may be skipped."""
    _, stations, frame = write_log(tmp_path)
    quick = [stations, "--units", "2", "--speed", "40", "--cell", "3", "--out", tmp_path / "o"]
    swapped = frame.rename(columns={"lon": "lat", "lat": "lon"})
    pd.concat([frame[::2], swapped[1::2]]).to_csv(tmp_path / "swapped.csv", index=False)
    said = emsopt("city", tmp_path / "swapped.csv", *quick, status=2)
    assert "wrong in the data: swapped coordinates" in said
    assert not (tmp_path / "o").exists()
    emsopt("city", tmp_path / "swapped.csv", *quick, "--accept-findings")
    days = frame["time"].astype(str).str[:10]
    frame[(days < "2025-01-20") | (days >= "2025-01-30")].to_csv(tmp_path / "gap.csv", index=False)
    assert "gaps in time" in emsopt("city", tmp_path / "gap.csv", *quick, status=2)
    emsopt("city", tmp_path / "gap.csv", *quick, "--skip-empty-days")


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """Files of a small log and of stations with plain names."""
    return write_log(tmp_path_factory.mktemp("small"), n=60, names=("Harbour", "South", "Mill", "Old Town"))[:2]


def test_bad_input_is_refused_in_one_line(small, tmp_path, emsopt):
    for arguments, words in (  # --practice: a small log here
        ([], "give a log of calls"),
        (["no.csv", "no.csv"], "there is no file"),
        (["--practice", "calls.csv"], "only one of them"),
        (["--practice", "--units", "3", "--speed", "1e6"], "`--speed` must be from 5 to 150 km/h; got 1e+06"),
        ([*PLAIN, "--travel-times", "no.csv"], "give one of `--speed`, `--travel-times` and `--roads`"),
        ([*PLAIN, "--service", "long"], "--service"),
        ([*PLAIN, "--service", "stations"], "no column 'service_min'"),
        ([*PLAIN, "--hours", "7-7"], "--hours"),
        ([*PLAIN, "--weekdays", "Someday"], "--weekdays"),
        ([*PLAIN, "--moves", "-1"], "`--moves` must be"),
        ([*PLAIN, "--hours", "7-9", "--moves", "1"], "Leave out `--hours`"),
        ([*PLAIN, "--threshold", "0"], "`--threshold` must be"),
        ([*PLAIN, "--pinned", "Harbor"], "Did you mean 'Harbour'"),
    ):
        if arguments != ["--practice", "calls.csv"]:
            arguments = [part for a in arguments for part in (small if a == "--practice" else [a])]
        (error,) = emsopt("city", *arguments, "--out", tmp_path / "out", status=2).splitlines()
        assert error.startswith("emsopt: ")
        assert words in error


def test_hours_and_days():
    hours = {"7-10": [7, 8, 9], "22-2": [22, 23, 0, 1], "0-24": list(range(24))}
    days = {"Mon-Fri": [0, 1, 2, 3, 4], "sat, SUNDAY": [5, 6], "Fri-Mon": [0, 4, 5, 6]}
    assert {text: parse_hours(text, "h") for text in hours} == hours
    assert {text: parse_weekdays(text, "d") for text in days} == days


def test_results_never_replace_what_was_read_or_is_foreign(tmp_path, emsopt, monkeypatch):
    """A log that is called like a table of results, in the folder for results; and a city that is read from there."""
    eo.datasets.write_templates(tmp_path)
    files = [tmp_path / "scenarios.csv", tmp_path / "deployments.csv"]
    for name, file in zip(("calls.csv", "stations.csv"), files, strict=True):
        (tmp_path / name).rename(file)
    before = [file.read_bytes() for file in files]
    said = emsopt("city", *files, "--units", "2", "--speed", "40", "--out", tmp_path, status=2)
    assert "`--out` must not be the folder of the input" in said
    assert [file.read_bytes() for file in files] == before
    town = eo.datasets.grid_city(4, 2, rng=0).save(tmp_path / "town")
    emsopt("--city", town, "--units", "2", "--out", town, status=2)
    assert eo.City.load(tmp_path / "town").n_sites == 4
    (tmp_path / "out" / "city").mkdir(parents=True)
    (tmp_path / "out" / "city" / "thesis.txt").write_text("mine")
    monkeypatch.setattr("emsopt.planning.steps.find_best", lambda *_, **__: pytest.fail("it was searched"))
    assert "was left unchanged" in emsopt("city", "--practice", "--out", tmp_path / "out", status=2)
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["city"]


def test_practice_and_templates(tmp_path, emsopt, no_figure):
    """The practice log needs no further option, and is read as Python reads it."""
    text = emsopt("city", "--practice", "--evaluator", "approximate", "--out", tmp_path / "o")
    assert "Wrong in the data: no place, swapped coordinates" in text
    assert "repeated calls and empty days are left out, and other mistakes accepted" in text
    assert "The fleet has 5 units: the fewest that lose at most 1 % of the calls" in text
    calls, stations = eo.datasets.practice_calls()
    demand = eo.calls.aggregate_calls(calls.without_repeats(), stations, empty_days="missing")
    best = eo.evaluators.evaluate_all(demand.city(speed_kmh=40), 5, "approximate").best
    table = pd.read_csv(tmp_path / "o" / "scenarios.csv")
    assert table["mean_response_min"][0] == pytest.approx(best.mean_response)
    emsopt("city", "--templates", tmp_path / "t")
    assert files_in(tmp_path / "t") == {"calls.csv", "stations.csv"}
    files = [tmp_path / "t" / name for name in ("calls.csv", "stations.csv")]
    emsopt("city", *files, "--units", "1", "--speed", "40", "--out", tmp_path / "o2")
    emsopt("city", "--templates", tmp_path / "t", status=2)


def test_today_is_given_by_names_or_by_a_file(plain, tmp_path, emsopt, no_figure):
    """The same gain by names and by a file with counts, and as many units as today."""
    quick = [*plain, "--speed", "40", "--cell", "3", "--out", tmp_path / "o", "--today"]
    (tmp_path / "today.csv").write_text("station,units\nC,1\nD,1\n")
    said = [emsopt("city", *quick, *today) for today in (["C", "D"], [tmp_path / "today.csv"])]
    moves = [[line for line in text.splitlines() if line.startswith("Move ")] for text in said]
    city = eo.City.load(tmp_path / "o" / "city")
    best, now = eo.evaluators.evaluate_all(city, 2).best, eo.evaluators.exact_hypercube(city, [2, 3])
    assert moves[0] == moves[1]
    assert moves[0][0].endswith(f"This gains {now.mean_response - best.mean_response:+.3f} min of mean response.")
    table = pd.read_csv(tmp_path / "o" / "scenarios.csv", index_col="deployment")
    assert table["units"].tolist() == [2, 2, 2]
    assert table.loc["optimum", "gain_late_fraction"] == pytest.approx(now.late_fraction(8) - best.late_fraction(8))
    for today, status, words in (
        (best.site_names, 0, "Leave the units where they are: no deployment was found that is better"),
        (["A", "A"], 0, "Several units may share a station: today's do."),
        (["A", "B", "C", "D"], 0, "each station has a unit today, which leaves no other choice"),
        (["E"], 2, "no site is named 'E'"),
        (plain[:1], 2, "must have a column 'station'"),
    ):
        assert words in emsopt("city", *quick, *today, status=status)


def test_files_of_an_earlier_run_are_removed_and_the_hours_leave_a_trace(plain, tmp_path, emsopt, no_figure):
    quick = [*plain, "--units", "2", "--speed", "40", "--cell", "3", "--out", tmp_path]
    emsopt("city", *quick, "--moves", "1")
    (tmp_path / "mine.txt").write_text("mine")
    assert "plan.csv" in files_in(tmp_path)
    emsopt("city", *quick, "--hours", "22-6", "--weekdays", "Sat,Sun")
    assert not {"plan.csv", "plan_moves.csv"} & files_in(tmp_path)
    assert "mine.txt" in files_in(tmp_path)
    assert "Only calls on Sat-Sun from 0 to 6 h and 22 to 24 h count." in eo.City.load(tmp_path / "city").notes


def test_columns_are_named_by_options_and_messages_name_them(plain, tmp_path, emsopt, no_figure):
    frame = pd.read_csv(plain[0]).rename(columns={"time": "zeit", "service_min": "q"})
    frame.to_csv(tmp_path / "calls.csv", index=False)
    quick = [tmp_path / "calls.csv", plain[1], "--units", "2", "--cell", "3", "--out", tmp_path / "o"]
    for columns, status, words in (
        (["time=zeit"], 2, "or give `--service`"),
        (["zeit"], 2, "`--columns` must have the form ROLE=NAME"),
        (["time=zeit", "service_min=q"], 0, ""),
    ):
        assert words in emsopt("city", *quick, "--columns", *columns, status=status)
    frame.drop(columns="zeit").to_csv(tmp_path / "calls.csv", index=False)
    assert "--columns time=..." in emsopt("city", *quick, status=2)


def test_the_main_job_pins_closes_and_counts_late_responses(tmp_path, emsopt, no_figure):
    town = eo.datasets.grid_city(n_sites=8, units=3, rng=1, size=5)
    arguments = ["--city", town.save(tmp_path / "town"), "--units", "3", "--out", tmp_path / "o"]
    pinned, closed = town.site_names[1], town.site_names[:1] + town.site_names[5:6]
    text = emsopt(*arguments, "--pinned", pinned, "--closed", *closed, "--metric", "late", "--threshold", "5")
    space = eo.DeploymentSpace(town, 3, pinned=[1], closed=[0, 5])
    best = eo.evaluators.evaluate_all(town, space, metric=("late", 5.0)).best
    assert "site " + ", ".join(name.removeprefix("site ") for name in best.site_names) in text
    assert "Fraction of responses of 5 min or more against offered load" in text
    assert "Did you mean 'site 2'" in emsopt(*arguments, "--pinned", "sitte 2", status=2)
