"""The command: on St. Paul, on a city of one's own, and with input that cannot be right."""

import re

import pandas as pd
import pytest

import emsopt as eo
from emsopt.__main__ import main
from emsopt.optimizers.deployments import swaps


def test_st_paul(tmp_path, emsopt):
    text = emsopt("--out", tmp_path / "out")
    assert "proxy" in text  # the demand is one, and the reader has to know
    assert "proven by enumeration" in text
    assert "(paper)" in text
    written = {path.name for path in (tmp_path / "out").iterdir()}
    assert written == {"by_load.csv", "by_service_rate.csv", "deployments.html", "deployments.png"}
    page = (tmp_path / "out" / "deployments.html").read_text("utf-8")
    assert all(f'"{name}"' in page for name in ("optimum", "p-median"))
    table = pd.read_csv(tmp_path / "out" / "by_load.csv", index_col="offered_load")
    papers = eo.datasets.paper_table(1).set_index("offered_load")
    assert (table["optimum"] - papers["optimum_min"]).abs().max() < 0.10


def test_a_city_of_ones_own(tmp_path, emsopt, monkeypatch):
    for evaluator in ("approximate", "exact"):
        monkeypatch.setitem(swaps.MAX_ENUMERATED, evaluator, 10)
    town = eo.datasets.grid_city(n_sites=9, units=3, load=0.5, rng=1)
    given = ["--city", town.save(tmp_path / "town"), "--out", tmp_path / "o"]
    text = emsopt(*given, "--units", "3", "--threshold", "6", "--metric", "late")
    for said in ("Best found", "no single move improves it", "late_over_6_min"):  # too many to enumerate
        assert said in text
    assert not re.search(r"optimum|\(paper\)", text)
    assert "6 min or more" in (tmp_path / "o" / "deployments.html").read_text("utf-8")


def test_what_is_odd_about_a_city_is_said(tmp_path, emsopt):
    for changes, units, said, written in (
        (dict.fromkeys(["atom_locations", "site_locations", "atom_shapes"]), "3", "No map and no figure", []),
        ({"service_times": 34 / 60}, "3", "Are all times in minutes?", ["html", "png"]),
        ({}, "8", "The p-median is left out: 2 of the units do not improve it", ["html", "png"]),
    ):
        town, out = eo.datasets.grid_city(n_sites=6, units=3, rng=1).replace(**changes), tmp_path / said[:5]
        assert said in emsopt("--city", town.save(tmp_path / "town"), "--out", out, "--units", units, "--colocate")
        assert {path.name for path in out.iterdir()} == {"by_load.csv", *(f"deployments.{end}" for end in written)}


def test_bad_input_is_refused_in_one_line(tmp_path, emsopt):
    for arguments, words in (
        (["--city", "no-such-folder"], "no-such-folder"),
        (["--units", "99"], "99 units do not fit"),
        (["--load", "-1"], "rho"),
        (["--load", "1.5", "--queue"], "queue grows without bound"),
        (["--threshold", "-3"], "threshold"),
    ):
        text = emsopt(*arguments, "--out", tmp_path / words, status=2)
        (error,) = (line for line in text.splitlines() if line.startswith("emsopt: "))
        assert words in error
        assert "--queue" in arguments or not (tmp_path / words).exists()  # all else is found out before the work


@pytest.mark.filterwarnings("default")
def test_warnings_are_printed_in_one_line_without_a_path(tmp_path, capsys):
    town = eo.datasets.grid_city(n_sites=6, units=3, rng=1).replace(service_times=[10, 20, 40, 80, 20, 30])
    given = ["--city", town.save(tmp_path / "town"), "--out", tmp_path / "o"]
    assert main([*map(str, given), "--units", "3", "--evaluator", "approximate"]) == 0
    lines = [line for line in capsys.readouterr().err.splitlines() if "warning" in line]
    assert lines
    assert all(line.startswith("emsopt: warning: ") for line in lines)
    assert not any(".py" in line or "AccuracyWarning" in line for line in lines)


@pytest.mark.parametrize("flags", [["--load", "0.3"], ["--queue"], ["--units", "8"]])
def test_the_papers_figures_stand_only_beside_the_papers_question(flags, tmp_path, emsopt, no_figure):
    text = emsopt(*flags, "--evaluator", "approximate", "--out", tmp_path)
    assert "(paper)" not in text
    assert ("hypercube, queue" in text) == ("mean_wait_min" in text) == ("--queue" in flags)
    assert ("offered load 0.300" in text) == ("--load" in flags)
