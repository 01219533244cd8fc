"""The tuning tasks: scores recomputed by hand, whole numbers rounded, the same sample every time."""

import numpy as np
import pandas as pd
import pytest
from refusals import refused
from sklearn.ensemble import RandomForestRegressor

from emsopt import problems
from emsopt._files.locate import package_file
from emsopt.problems import tuning
from emsopt.problems.tuning import forest_tuning, xgboost_tuning

SMALL = [10, 3, 2, 1.0, 0.0]  # a forest of ten shallow trees


@pytest.mark.parametrize(
    ("name", "shape", "mean"), [("wine", (6497, 12), 5.818378), ("california", (20640, 9), 2.068558)]
)
def test_the_data_are_those_published(name, shape, mean):
    """Rows and columns as their sources state; means as computed from the raw files; a sample of the rows."""
    table, (X, y) = pd.read_csv(package_file("tuning", f"{name}.csv.gz")), tuning._load_sample(name)
    assert table.shape == shape
    target = table.pop(tuning.TARGET_COLUMNS[name])
    assert target.mean() == pytest.approx(mean, abs=1e-6)
    assert len(X) == tuning.SAMPLE_SIZE == 2000
    assert set(map(tuple, np.c_[X, y])) <= set(map(tuple, np.c_[table, target]))


def test_a_forest_scores_as_by_hand(claim):
    """Five folds written out: 1 - residual over total sum of squares."""
    X, y = tuning._load_sample("wine")
    scores = []
    for fold in np.random.RandomState(0).permutation(tuning.SAMPLE_SIZE).reshape(5, 400):
        test, train = np.sort(fold), np.setdiff1d(np.arange(tuning.SAMPLE_SIZE), fold)
        model = RandomForestRegressor(10, max_depth=3, random_state=0).fit(X[train], y[train])
        residual = y[test] - model.predict(X[test])
        scores.append(1 - (residual**2).sum() / ((y[test] - y[test].mean()) ** 2).sum())
    f = forest_tuning("wine")
    assert f(SMALL) == pytest.approx(np.mean(scores), abs=1e-12)
    claim("boke", "Section 5.3 (score)", 1e-12)
    refused("`data` must be one of 'wine', 'california'", forest_tuning, "iris")
    assert f(SMALL) == f([10.4, 2.7, 2.2, 1.0, 0.0])  # rounded
    assert (f.sense, f.best_value, [f.variables[k] for k in f.integers]) == ("max", None, list(tuning.WHOLE_NUMBERS))
    assert f.bounds.tolist() == [list(map(float, pair)) for pair in tuning.RANGES["forest"].values()]


def test_scores_are_not_continuous(claim):
    """Section 4 of the BOKE paper assumes a continuous objective; scores jump, and the sprinkler's range."""
    f = forest_tuning("wine")
    left, right, flat = (f([10, depth, 2, 1.0, 0.0]) for depth in (2.499999, 2.500001, 2.3))
    assert left == flat
    assert abs(left - right) > 0.01
    rest = [18, 2e-6, 0.18, 0.015, 0.0199, 1.54, 7.5]
    before, after = (problems.sprinkler()([angle, *rest]) for angle in (32.171882, 32.171883))
    assert after - before > 0.009
    claim("boke", "Section 4, assumption on the function", 0.01, 0.009)
    for name in ("forrester", "goldstein_price", "six_hump_camel", "hartmann3", "rosenbrock4", "sphere6"):
        g = getattr(problems, name)()
        low, high = g.bounds.T
        x = low + (high - low) * np.random.default_rng(0).random((1000, len(low)))
        assert np.abs(g(x) - g(x - 1e-9 * (x - low))).max() < 1e-6 * np.ptp(g(x)), g.name


def test_boosted_trees_do_well_on_houses():
    """R² of 0.7 or more is what anybody gets there with a few dozen trees; a setting of 1e-40 counts as 0."""
    pytest.importorskip("xgboost", reason="needs emsopt[tuning]")
    f = xgboost_tuning("california")
    good, bad = [60, 4, 0.15, 0.8, 0.8, 0.0, 1.0], [10, 2, 0.01, 0.5, 0.5, 2.0, 10.0]
    assert 0.65 < f(good) < 0.85
    assert f(bad) < 0.2
    misses = tuning._cross_validated_r2.cache_info().misses
    assert 0.65 < f(good) < 0.85
    assert tuning._cross_validated_r2.cache_info().misses == misses  # not computed again
    assert f([10, 2, 0.1, 0.5, 0.5, 2e-40, 5e-324]) == f([10, 2, 0.1, 0.5, 0.5, 0.0, 0.0])
