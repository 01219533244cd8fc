"""Search for the deployment that answers fastest: `minimize`, and the optimizers it runs, by ask / tell."""

from .annealing import SimulatedAnnealing
from .bocs import BOCS
from .genetic import Genetic
from .gp_pm import GPpM, GPzero
from .local_search import LocalSearch, best_deployment, local_search
from .loop import METHODS, minimize
from .optimizer import Optimizer
from .random_search import RandomSearch
from .run import Run
from .sparbl import SparBL, SparBLPlus

__all__ = ["BOCS", "METHODS", "GPpM", "GPzero", "Genetic", "LocalSearch", "Optimizer", "RandomSearch", "Run"]
__all__ += ["SimulatedAnnealing", "SparBL", "SparBLPlus", "best_deployment", "local_search", "minimize"]
