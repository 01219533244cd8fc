"""Hyperparameter tuning of a random forest or boosted trees: maximise the five-fold cross-validated R².

The two tasks of Section 5.3 of "Bayesian Optimization by Kernel Regression and Density-based Exploration":
the quality of wine and the value of Californian homes. The paper names the hyperparameters but not their
ranges; the ranges used here are `FOREST` and `XGBOOST`. Whole-number hyperparameters are rounded, as in the
paper. The largest number of trees determines the cost of an evaluation and is kept small.

By default the models use a fixed sample of 2,000 rows, and an evaluation takes about a second; ``whole=True``
uses all 6,497 or 20,640 rows. The folds and the random seeds of the models are fixed: a point always has the
same value, and is evaluated only once per session.

scikit-learn (and, for XGBoost, xgboost) is loaded when a point is first evaluated.
"""

from functools import cache

import numpy as np

from .. import _validate
from .._files import locate
from ..errors import MissingDependencyError
from .problem import Problem

ROWS, SAMPLE_SEED, FOLDS = 2000, 0, 5
DATA = {"wine": "quality", "california": "MedHouseVal"}
"""Data sets, each with the column to predict."""

FOREST = {
    "n_estimators": (5, 30),
    "max_depth": (2, 20),
    "min_samples_split": (2, 20),
    "max_features": (0.1, 1.0),
    "min_impurity_decrease": (0.0, 0.1),
}
XGBOOST = {
    "n_estimators": (10, 60),
    "max_depth": (2, 6),
    "learning_rate": (0.01, 0.5),
    "subsample": (0.3, 1.0),
    "colsample_bytree": (0.3, 1.0),
    "gamma": (0.0, 2.0),
    "min_child_weight": (0.0, 10.0),
}
WHOLE = ("n_estimators", "max_depth", "min_samples_split")


def forest_tuning(data="wine", *, whole=False):
    """Return the tuning of scikit-learn's random forest: five hyperparameters, three of them whole numbers.

    Parameters
    ----------
    data : {"wine", "california"}
    whole : bool
        Whether to use all rows of the data instead of a sample of 2,000.

    Returns
    -------
    Problem
        It has no ``best_value``, because the optimum is unknown.
    """
    return _problem("forest", FOREST, data, whole)


def xgboost_tuning(data="wine", *, whole=False):
    """Return the tuning of XGBoost: seven hyperparameters, two of them whole numbers; see `forest_tuning`.

    Raises
    ------
    MissingDependencyError
        If xgboost is not installed.
    """
    try:
        import xgboost  # noqa: F401 - fail now rather than at the first evaluation
    except ImportError as error:
        msg = 'Tuning XGBoost needs the package xgboost. Install it with `pip install "emsopt[tuning]"`.'
        raise MissingDependencyError(msg) from error
    return _problem("xgboost", XGBOOST, data, whole)


def _problem(model, ranges, data, whole):
    _validate.choice(data, "data", tuple(DATA))
    names = tuple(ranges)

    def function(points):
        return np.array([_score(model, names, tuple(x.tolist()), data, bool(whole)) for x in points])

    return Problem(
        f"{model} on {data}{', all rows' if whole else ''}",
        function,
        list(ranges.values()),
        "max",
        variables=names,
        integers=[k for k, name in enumerate(names) if name in WHOLE],
    )


@cache
def _score(model, names, values, data, whole):
    """Return the mean R² of five folds; cached, because all methods of a study start with the same points."""
    from sklearn.model_selection import KFold, cross_val_score

    least = np.finfo(np.float32).tiny  # XGBoost refuses subnormal numbers of single precision
    settings = {
        name: int(value) if name in WHOLE else value * (abs(value) >= least)
        for name, value in zip(names, values, strict=True)
    }
    if model == "forest":
        from sklearn.ensemble import RandomForestRegressor

        learner = RandomForestRegressor(**settings, random_state=0, n_jobs=1)
    else:
        from xgboost import XGBRegressor

        learner = XGBRegressor(**settings, random_state=0, n_jobs=1)
    X, y = _rows(data, whole)
    folds = KFold(FOLDS, shuffle=True, random_state=0)
    return float(cross_val_score(learner, X, y, cv=folds, scoring="r2").mean())


@cache
def _rows(data, whole):
    """Return inputs and target, for all rows or for the fixed sample."""
    import pandas as pd

    table = pd.read_csv(locate.package_file("tuning", f"{data}.csv.gz"))
    if not whole:
        table = table.sample(ROWS, random_state=SAMPLE_SEED)
    return table.drop(columns=DATA[data]).to_numpy(), table[DATA[data]].to_numpy(dtype=float)
