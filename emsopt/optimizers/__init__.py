"""`minimize`, `maximize` and the ask / tell optimizers that they run, for deployments and for points of a box."""

from ..problems.box import Box, Categorical, Integer, Real
from . import regret
from .boxes.boke import BOKE, BOKEPlus, density_design, fill_distance, profile
from .boxes.boke_auto import BOKEAuto
from .control.learners import LEARNERS, UnknownCost
from .control.model import Hyperparameters
from .control.regret import control_regrets, control_verdicts
from .control.search import bocvs
from .deployments.base import RandomSearch
from .deployments.gp_pm import GPpM, GPzero
from .deployments.rivals import BOCS, Genetic
from .deployments.sparbl import SparBL
from .deployments.swaps import LocalSearch, best_deployment, local_search
from .run import Run
from .search import BOX_METHODS, METHODS, maximize, minimize

__all__ = ["BOCS", "BOKE", "BOX_METHODS", "LEARNERS", "METHODS", "BOKEAuto", "BOKEPlus", "Box"]
__all__ += ["Categorical", "GPpM", "GPzero", "Genetic", "Hyperparameters", "Integer", "LocalSearch"]
__all__ += ["RandomSearch", "Real", "Run", "SparBL", "UnknownCost", "best_deployment", "bocvs"]
__all__ += ["control_regrets", "control_verdicts", "density_design", "fill_distance", "local_search"]
__all__ += ["maximize", "minimize", "profile", "regret"]
