"""`minimize`, `maximize` and the ask / tell optimizers that they run, for deployments and for points of a box."""

from ..problems.box import Box, Categorical, Integer, Real
from . import regret
from .ask_tell import AskTell
from .boxes.base import BoxOptimizer
from .boxes.boke import BOKE, BOKEPlus, density_design, fill_distance, profile
from .boxes.boke_auto import BOKEAuto
from .control.learners import LEARNERS, ControlLearner, UnknownCost
from .control.model import Hyperparameters
from .control.regret import control_regrets, control_verdicts
from .control.search import ControlRun, bocvs
from .deployments.base import Optimizer, RandomSearch
from .deployments.gp_pm import GPpM, GPzero
from .deployments.rivals import BOCS, Genetic
from .deployments.sparbl import SparBL
from .deployments.swaps import LocalSearch, best_deployment, local_search
from .run import Run
from .search import BOX_METHODS, METHODS, maximize, minimize

__all__ = ["BOCS", "BOKE", "BOX_METHODS", "LEARNERS", "METHODS", "AskTell", "BOKEAuto", "BOKEPlus", "Box"]
__all__ += ["BoxOptimizer", "Categorical", "ControlLearner", "ControlRun", "GPpM", "GPzero", "Genetic"]
__all__ += ["Hyperparameters", "Integer", "LocalSearch", "Optimizer", "RandomSearch", "Real", "Run", "SparBL"]
__all__ += ["UnknownCost", "best_deployment", "bocvs", "control_regrets", "control_verdicts", "density_design"]
__all__ += ["fill_distance", "local_search", "maximize", "minimize", "profile", "regret"]
