"""Hyperparameter tuning: how well a random forest or boosted trees predict, by five-fold R², to be maximised.

The two tasks of Section 5.3 of "Bayesian Optimization by Kernel Regression and Density-based Exploration", on the
quality of wine and the value of Californian homes. The paper names the hyperparameters but not their ranges; ours are
`FOREST` and `XGBOOST`. Whole-numbered ones are rounded, as the paper does. What an evaluation costs is decided by the
largest number of trees, which is kept small.

By default the models see a fixed sample of 2,000 rows, so that an evaluation takes a second or so; ``whole=True``
takes all 6,497 or 20,640 rows. Folds and the models' own randomness are fixed: the same point has the same value, and
is evaluated once in a session.

This module loads scikit-learn (and, for XGBoost, xgboost) when a point is evaluated.
"""

from functools import cache

import numpy as np

from .. import _validate
from .._files import locate
from ..errors import MissingDependencyError
from .problem import Problem

ROWS, SAMPLE_SEED, FOLDS = 2000, 0, 5
DATA = {"wine": "quality", "california": "MedHouseVal"}
"""Data sets, and the column to be predicted."""

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
        All rows of the data instead of a sample of 2,000.

    Returns
    -------
    Problem
        Without a ``best_value``: nobody knows the best that can be reached.
    """
    return _problem("forest", FOREST, data, whole)


def xgboost_tuning(data="wine", *, whole=False):
    """Return the tuning of XGBoost: seven hyperparameters, two of them whole numbers; as `forest_tuning`.

    Raises
    ------
    MissingDependencyError
        If xgboost is not installed.
    """
    try:
        import xgboost  # noqa: F401 - better now than at the first evaluation
    except ImportError as error:
        msg = 'tuning XGBoost needs the package xgboost; install it with `pip install "emsopt[tuning]"`.'
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
        whole=[k for k, name in enumerate(names) if name in WHOLE],
    )


@cache
def _score(model, names, values, data, whole):
    """Return the mean R² of five folds; all methods of a study begin with the same points."""
    from sklearn.model_selection import KFold, cross_val_score

    least = np.finfo(np.float32).tiny  # XGBoost refuses what single precision holds only in part
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
    """Return inputs and target, all rows or the fixed sample."""
    import pandas as pd

    table = pd.read_csv(locate.package_file("tuning", f"{data}.csv.gz"))
    if not whole:
        table = table.sample(ROWS, random_state=SAMPLE_SEED)
    return table.drop(columns=DATA[data]).to_numpy(), table[DATA[data]].to_numpy(dtype=float)
