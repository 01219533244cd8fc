"""Hyperparameter tuning of a random forest or boosted trees: maximise the five-fold cross-validated R².

The two tasks of Section 5.3 of "Bayesian Optimization by Kernel Regression and Density-based Exploration": predicting
the quality of wine and the value of Californian homes. The paper names the hyperparameters but not their ranges; the
ranges used here are `RANGES`, with few trees, whose number determines the cost of an evaluation. Whole-number
hyperparameters are rounded, as in the paper.

The models use a fixed sample of 2,000 of the 6,497 or 20,640 rows, and an evaluation takes about a second. The folds
and the random seeds of the models are fixed: a point always has the same value, and is evaluated only once per session.
"""

from functools import cache
from importlib.util import find_spec

import numpy as np

from .._files import locate
from ..errors import MissingDependencyError, _validate
from ..errors._types import FloatArray
from .problem import Problem

SAMPLE_SIZE, SAMPLE_SEED, FOLDS = 2000, 0, 5
TARGET_COLUMNS = {"wine": "quality", "california": "MedHouseVal"}  # column to predict, by name of a data set

RANGES = {
    "forest": {
        "n_estimators": (5, 30),
        "max_depth": (2, 20),
        "min_samples_split": (2, 20),
        "max_features": (0.1, 1.0),
        "min_impurity_decrease": (0.0, 0.1),
    },
    "xgboost": {
        "n_estimators": (10, 60),
        "max_depth": (2, 6),
        "learning_rate": (0.01, 0.5),
        "subsample": (0.3, 1.0),
        "colsample_bytree": (0.3, 1.0),
        "gamma": (0.0, 2.0),
        "min_child_weight": (0.0, 10.0),
    },
}
WHOLE_NUMBERS = ("n_estimators", "max_depth", "min_samples_split")


def forest_tuning(data: str = "wine") -> Problem:
    """Return the problem of tuning scikit-learn's random forest: five hyperparameters, three of them whole numbers.

    ``data`` is "wine" or "california". There is no ``best_value``, because the optimum is unknown.

    Examples
    --------
    >>> forest_tuning("wine")
    <Problem forest on wine: 5 inputs, max>
    """
    return _make_problem("forest", data)


def xgboost_tuning(data: str = "wine") -> Problem:
    """Return the problem of tuning XGBoost: seven hyperparameters, two of them whole numbers.

    Parameters and result are as in `forest_tuning`. Raise MissingDependencyError if xgboost is not installed.

    Examples
    --------
    >>> xgboost_tuning("wine")
    <Problem xgboost on wine: 7 inputs, max>
    """
    if find_spec("xgboost") is None:  # raises now rather than at the first evaluation
        raise MissingDependencyError('Tuning XGBoost needs xgboost. Install it with `pip install "emsopt[tuning]"`.')
    return _make_problem("xgboost", data)


def _make_problem(model: str, data: str) -> Problem:
    """Return the problem of tuning a model, a key of ``RANGES``, on a data set, a key of ``TARGET_COLUMNS``."""
    _validate.choice(data, "data", tuple(TARGET_COLUMNS))
    names = tuple(RANGES[model])

    def function(points: FloatArray) -> list[float]:
        return [_cross_validated_r2(model, tuple(x.tolist()), data) for x in points]  # hashable, for the cache

    integers = [k for k, name in enumerate(names) if name in WHOLE_NUMBERS]
    return Problem(
        f"{model} on {data}", function, list(RANGES[model].values()), "max", variables=names, integers=integers
    )


@cache
def _cross_validated_r2(model: str, values: tuple[float, ...], data: str) -> float:
    """Return the mean R² of a model over the folds of a data set, for values of the hyperparameters in ``RANGES``."""
    from sklearn.model_selection import KFold, cross_val_score  # slow to import, and needed only for an evaluation

    least = np.finfo(np.float32).tiny  # XGBoost refuses subnormal numbers of single precision
    settings = {
        name: int(value) if name in WHOLE_NUMBERS else value * (abs(value) >= least)
        for name, value in zip(RANGES[model], values, strict=True)
    }
    if model == "forest":
        from sklearn.ensemble import RandomForestRegressor as Regressor
    else:
        from xgboost import XGBRegressor as Regressor
    learner = Regressor(**settings, random_state=0, n_jobs=1)
    folds = KFold(FOLDS, shuffle=True, random_state=0)
    return float(cross_val_score(learner, *_load_sample(data), cv=folds, scoring="r2").mean())


@cache
def _load_sample(data: str) -> tuple[FloatArray, FloatArray]:
    """Return the inputs, (2000, k), and the target, (2000,), of the fixed sample of a data set."""
    import pandas as pd

    table = pd.read_csv(locate.package_file("tuning", f"{data}.csv.gz"))
    table, target = table.sample(SAMPLE_SIZE, random_state=SAMPLE_SEED), TARGET_COLUMNS[data]
    return table.drop(columns=target).to_numpy(), table[target].to_numpy(dtype=float)
