"""Functions to try an optimizer on, each with its domain and its known best.

>>> import emsopt as eo
>>> f = eo.problems.hartmann3()
>>> f
<Problem hartmann3: 3 inputs, min -3.86278>
>>> round(f([0.1, 0.55, 0.85]), 3)
-3.861
"""

from .functions import (
    ackley6,
    forrester,
    goldstein_price,
    hartmann3,
    hartmann6,
    levy6,
    rosenbrock4,
    six_hump_camel,
    sphere6,
)
from .problem import Problem
from .sprinkler import sprinkler
from .tuning import forest_tuning, xgboost_tuning

__all__ = [
    "Problem",
    "ackley6",
    "forest_tuning",
    "forrester",
    "goldstein_price",
    "hartmann3",
    "hartmann6",
    "levy6",
    "rosenbrock4",
    "six_hump_camel",
    "sphere6",
    "sprinkler",
    "xgboost_tuning",
]
