"""The stored studies say what results, docstrings and notebooks quote; `test_played_again.py` plays them again."""

import re
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats.mstats import mjci

import emsopt as eo
from emsopt import study
from emsopt._files import locate


@cache
def ends_of(part):
    """Return the outcomes of a location study."""
    return study.outcomes(eo.datasets.load_study(f"location_{part}"))


def test_every_stored_study_is_described():
    stored = {path.name.split(".")[0] for path in locate.package_file("studies").iterdir()}
    described = set(re.findall(r'"(\w+)"', eo.datasets.load_study.__doc__))
    parts = {f"boke_{part}_ends" for part in ("noisy", "sprinkler", "tuning")}  # "boke_noise_free_ends" and so on
    assert stored - parts == described & stored
    assert {name for name in described if "_" in name} <= stored


def test_optimizers_in_the_results_are_those_of_the_studies():
    file = Path(__file__).parents[1] / "benchmarks" / "RESULTS.md"
    if not file.exists():
        pytest.skip("the results are not installed with the package")
    first = ends_of("st_paul").groupby(["version", "method"])
    gaps = ends_of("grid").groupby(["n_sites", "units", "method"])["gap"].median()

    def found(version, method):
        runs = first.get_group((version, method))
        median, error = runs["evaluations"].median(), mjci(runs["evaluations"].clip(upper=101), prob=[0.5])[0]
        return f"{runs['reached'].sum()} of {len(runs)}: {f'{median:g} ± {error:.0f}' if median <= 100 else '> 100'}"

    form = r"^\| `([a-z+-]+)`[^|]*\| (\d+ of [^|]+) \| (\d+ of [^|]+) \| ([\d.]+) \| ([\d.]+) \|$"
    rows = re.findall(form, file.read_text(), re.MULTILINE)
    assert {row[0] for row in rows} == set(ends_of("grid")["method"])
    for method, *said in rows:
        wanted = [found("embedded", method), found("published", method)]
        assert said == [*wanted, *(f"{gaps[50, units, method]:.2f}" for units in (20, 30))]


def test_page_on_choosing_a_method_says_what_is_stored():
    file = Path(__file__).parents[1] / "docs" / "choosing.md"
    if not file.exists():
        pytest.skip("the pages are not installed with the package")
    ends = {part: ends_of(part) for part in ("st_paul", "tables", "late", "grid")}
    after = ends["st_paul"].groupby(["version", "method"])["evaluations"].median()
    reached = {part: rows.groupby("method")["reached"].agg(["sum", "size"]) for part, rows in ends.items()}
    gaps = ends["grid"].groupby(["n_sites", "units", "method"])["gap"].median()
    both = ["local+", "gp-pm"]

    def counts(part):
        return [f"{found} of {runs}" for found, runs in reached[part].loc[both].to_numpy()]

    rows = {
        "optimum of St. Paul, embedded demand, after": [f"{after['embedded', m]:g}" for m in both],
        "optimum of St. Paul, published demand, after": [f"{after['published', m]:g}" for m in both],
        "optimum found at all loads and service rates": counts("tables"),
        "optimum found for late responses": counts("late"),
        "best known value reached in random cities": counts("grid"),
        "above the best known, 50 sites and 20 units": [f"{gaps[50, 20, m]:.2f} %" for m in both],
        "above the best known, 50 sites and 30 units": [f"{gaps[50, 30, m]:.2f} %" for m in both],
    }
    page = file.read_text("utf-8")
    for label, (ours, theirs) in rows.items():
        assert f"| {label} | {ours} | {theirs} |" in page
    by_row = ends["tables"].groupby(["method", "version", "table", "row"])["evaluations"].median().unstack("method")
    behind = by_row[by_row["local+"] > by_row["gp-pm"]]
    assert f"({len(behind)} of {len(by_row)} loads and rates)" in page
    spread = "{:g} to {:g}".format
    ours, theirs = (spread(behind[m].min(), behind[m].max()) for m in both)
    assert f"This takes {ours} evaluations in the median\ninstead of {theirs}." in page
    grid = eo.datasets.load_study("location_grid").query("method == 'local+' and evaluation == 1 and n_sites == 50")
    first = 100 * (grid["best"] / grid["best_known"] - 1).max()
    assert f"the first deployment of `local+` is within {np.ceil(10 * first) / 10:g} % of the best known" in page


def test_outcomes_count_the_runs_that_never_got_there():
    rows = [("a", 1, 5.0, 0.1), ("a", 7, 4.0, 0.2), ("a", 9, 4.0, 0.3), ("b", 1, 4.5, 0.1), ("b", 9, 4.2, 0.4)]
    runs = pd.DataFrame(rows, columns=["method", "evaluation", "best", "cpu_seconds"]).assign(best_known=4.0)
    table = study.outcomes(runs).set_index("method")
    assert table["evaluations"].tolist() == [7, np.inf]
    assert table["cpu_seconds"].tolist() == [0.2, np.inf]
    assert table["gap"].tolist() == pytest.approx([0, 5])
    assert study.outcomes(runs, within=5.0)["evaluations"].tolist() == [7, 9]
    with pytest.raises(eo.EmsoptError, match="must have a column 'best_known', as a location study has"):
        study.outcomes(runs.drop(columns="best_known"))


def test_stated_probabilities_of_comparisons_come_true():
    """Of the differences called better with 85 to 95 %, about nine in ten are; intervals are as wide as they say."""
    table = eo.datasets.load_study("comparison")
    random = table[table["rule"] == "random"]
    inside = (random["low"] <= random["truth"]) & (random["truth"] <= random["high"])
    sure = np.maximum(random["probability_better"], 1 - random["probability_better"])
    right = (random["probability_better"] > 0.5) == (random["truth"] < 0)
    assert len(random) == 1000
    assert 0.87 < inside.mean() < 0.93
    assert 0.82 < right[(sure >= 0.85) & (sure < 0.95)].mean() < 0.97
