"""The command: on St. Paul, on a city of one's own, and with input that cannot be right."""

import numpy as np
import pandas as pd
import pytest

import emsopt as eo
from emsopt.__main__ import main


def test_st_paul(tmp_path, capsys):
    assert main(["--out", str(tmp_path / "out")]) == 0
    text = capsys.readouterr().out
    assert "proxy" in text  # the demand is one, and the reader has to know
    assert "proven by enumeration" in text
    assert "(paper)" in text
    written = {path.name for path in (tmp_path / "out").iterdir()}
    assert written == {"by_load.csv", "by_service_rate.csv", "deployments.html", "deployments.png"}
    table = pd.read_csv(tmp_path / "out" / "by_load.csv", index_col="offered_load")
    papers = eo.datasets.paper_table(1).set_index("offered_load")
    assert (table["optimum"] - papers["optimum_min"]).abs().max() < 0.10


def test_a_city_of_ones_own(tmp_path, capsys):
    eo.datasets.grid_city(n_sites=40, units=14, load=0.5, rng=1).save(tmp_path / "town")
    assert (
        main(["--city", str(tmp_path / "town"), "--units", "14", "--threshold", "6", "--out", str(tmp_path / "o")]) == 0
    )
    text = capsys.readouterr().out
    assert "Best found" in text  # too many deployments to enumerate
    assert "no single move improves it" in text
    assert "optimum" not in text
    assert "late_over_6_min" in text
    assert "(paper)" not in text
    assert (tmp_path / "o" / "deployments.html").stat().st_size > 10_000


def test_load_and_queue(tmp_path, capsys):
    eo.datasets.grid_city(n_sites=8, units=3, rng=1).save(tmp_path / "town")
    arguments = ["--city", str(tmp_path / "town"), "--units", "3", "--load", "0.4", "--queue", "--colocate"]
    assert main([*arguments, "--out", str(tmp_path / "o")]) == 0
    text = capsys.readouterr().out
    assert "offered load 0.400" in text
    assert "mean_wait_min" in text


def test_a_city_without_coordinates_gets_tables_but_no_map(tmp_path, capsys):
    town = eo.datasets.grid_city(n_sites=6, units=3, rng=1)
    town.replace(atom_locations=None, site_locations=None, atom_shapes=None).save(tmp_path / "town")
    assert main(["--city", str(tmp_path / "town"), "--units", "3", "--out", str(tmp_path / "o")]) == 0
    assert "No map and no figure" in capsys.readouterr().out
    assert [path.name for path in (tmp_path / "o").iterdir()] == ["by_load.csv"]


def test_times_in_hours_are_noticed(tmp_path, capsys):
    town = eo.datasets.grid_city(n_sites=6, units=3, rng=1)
    town.replace(service_times=34 / 60).save(tmp_path / "town")
    main(["--city", str(tmp_path / "town"), "--units", "3", "--out", str(tmp_path / "o")])
    assert "Are all times in minutes?" in capsys.readouterr().out


def test_surplus_units_of_the_p_median_are_explained(tmp_path, capsys):
    eo.datasets.grid_city(n_sites=4, units=3, rng=1).save(tmp_path / "town")
    main(["--city", str(tmp_path / "town"), "--units", "6", "--colocate", "--out", str(tmp_path / "o")])
    assert "The p-median is left out: 2 of the units do not improve it" in capsys.readouterr().out


@pytest.mark.parametrize("flag", [["--load", "0.3"], ["--queue"], ["--units", "8"]])
def test_the_papers_figures_stand_only_beside_the_papers_question(flag, tmp_path, capsys):
    assert main([*flag, "--evaluator", "approximate", "--out", str(tmp_path)]) == 0
    text = capsys.readouterr().out
    assert "(paper)" not in text
    assert ("hypercube, queue" in text) == ("--queue" in flag)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--city", "no-such-folder"], "no-such-folder"),
        (["--units", "99"], "99 units do not fit"),
        (["--load", "-1"], "rho"),
        (["--load", "1.5", "--queue"], "queue grows without bound"),
        (["--threshold", "-3"], "threshold"),
    ],
)
def test_bad_input_is_refused_in_one_line(arguments, words, tmp_path, capsys):
    assert main([*arguments, "--out", str(tmp_path / "out")]) == 2
    error = capsys.readouterr().err
    assert error.startswith("emsopt: ")
    assert words in error
    assert np.count_nonzero([line.startswith("emsopt: ") for line in error.splitlines()]) == 1


def test_a_fleet_that_does_not_fit_leaves_no_folder(tmp_path):
    assert main(["--units", "99", "--out", str(tmp_path / "out")]) == 2
    assert not (tmp_path / "out").exists()


def test_units_are_asked_for(tmp_path, capsys):
    eo.datasets.grid_city(n_sites=8, units=3, rng=1).save(tmp_path / "town")
    assert main(["--city", str(tmp_path / "town"), "--out", str(tmp_path / "o")]) == 2
    assert "--units" in capsys.readouterr().err


@pytest.mark.filterwarnings("default")
def test_warnings_are_printed_in_one_line_without_a_path(tmp_path, capsys):
    town = eo.datasets.grid_city(n_sites=6, units=3, rng=1)
    town.replace(service_times=[10, 20, 40, 80, 20, 30]).save(tmp_path / "town")
    arguments = ["--city", str(tmp_path / "town"), "--units", "3", "--evaluator", "approximate"]
    assert main([*arguments, "--out", str(tmp_path / "o")]) == 0
    lines = [line for line in capsys.readouterr().err.splitlines() if "warning" in line]
    assert lines
    assert all(line.startswith("emsopt: warning: ") for line in lines)
    assert not any(".py" in line or "AccuracyWarning" in line for line in lines)
