"""Test problems for optimizers, each with its domain and its best known value."""

from .control.marginals import Empirical, TruncatedNormal, Uniform
from .control.problem import ControlProblem, Play
from .control.ready_made import (
    ackley_control,
    airfoil_control,
    ems_control,
    hartmann_control,
    hill_control,
    levy_control,
    plant_control,
)
from .functions import (
    ackley6,
    decaying_wave,
    forrester,
    goldstein_price,
    hartmann3,
    hartmann6,
    levy6,
    rosenbrock4,
    six_hump_camel,
    sphere6,
)
from .garden_sprinkler import sprinkler
from .problem import Problem
from .station_siting import siting
from .tuning import forest_tuning, xgboost_tuning

__all__ = ["ControlProblem", "Empirical", "Play", "Problem", "TruncatedNormal", "Uniform", "ackley6"]
__all__ += ["ackley_control", "airfoil_control", "decaying_wave", "ems_control", "forest_tuning", "forrester"]
__all__ += ["goldstein_price", "hartmann3", "hartmann6", "hartmann_control", "hill_control", "levy6", "levy_control"]
__all__ += ["plant_control", "rosenbrock4", "siting", "six_hump_camel", "sphere6", "sprinkler", "xgboost_tuning"]
