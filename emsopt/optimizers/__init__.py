"""`minimize`, `maximize` and the ask / tell optimizers that they run, for deployments and for points of a box."""

from ..problems.box import Categorical, Integer, Real
from .boxes.boke import BOKE, BOKEPlus
from .boxes.boke_auto import BOKEAuto
from .control.learners import LEARNERS
from .control.search import bocvs
from .deployments._base import RandomSearch
from .deployments.genetic_annealing import Genetic
from .deployments.gp_pm import GPpM, GPzero
from .deployments.sparbl import BOCS, SparBL
from .deployments.swaps import LocalSearch, best_deployment, local_search
from .result import Run as Run
from .result import empirical_regret
from .search import BOX_METHODS, METHODS, maximize, minimize

__all__ = ["BOCS", "BOKE", "BOX_METHODS", "LEARNERS", "METHODS", "BOKEAuto", "BOKEPlus", "Categorical", "GPpM"]
__all__ += ["GPzero", "Genetic", "Integer", "LocalSearch", "RandomSearch", "Real", "SparBL"]
__all__ += ["best_deployment", "bocvs", "empirical_regret", "local_search", "maximize", "minimize"]
