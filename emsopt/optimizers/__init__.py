"""`minimize` and `maximize`, and the optimizers they run, by ask / tell: of deployments, and on boxes."""

from .annealing import SimulatedAnnealing
from .ask_tell import AskTell
from .bocs import BOCS
from .boke import BOKE, BOKEPlus, profile
from .boke_auto import BOKEAuto
from .box import Box, BoxObjective, on_box
from .box_optimizer import BoxOptimizer
from .control_learners import ETC50, LEARNERS, TSPSQ, UCBCVS, UCBPSQ, ControlLearner, UnknownCost
from .control_loop import ControlRun, bocvs
from .control_model import Hyperparameters
from .control_regret import control_verdicts, with_regret
from .genetic import Genetic
from .gp_pm import GPpM, GPzero
from .gp_ucb import GPUCB, GPUCBFixed
from .kr_ucb import KRUCB
from .local_search import LocalSearch, best_deployment, local_search
from .loop import BOX_METHODS, METHODS, maximize, minimize
from .optimizer import Optimizer
from .random_points import RandomPoints
from .random_search import RandomSearch
from .run import Run
from .space_filling import density_design, fill_distance, process_design
from .sparbl import SparBL, SparBLPlus

__all__ = [
    "BOCS",
    "BOKE",
    "BOX_METHODS",
    "GPUCB",
    "KRUCB",
    "METHODS",
    "AskTell",
    "BOKEPlus",
    "Box",
    "BoxObjective",
]
__all__ += [
    "BoxOptimizer",
    "GPUCBFixed",
    "GPpM",
    "GPzero",
    "Genetic",
    "LocalSearch",
    "Optimizer",
    "RandomPoints",
]
__all__ += [
    "RandomSearch",
    "Run",
    "SimulatedAnnealing",
    "SparBL",
    "SparBLPlus",
    "best_deployment",
    "local_search",
]
__all__ += ["BOKEAuto", "maximize", "minimize", "on_box"]
__all__ += [
    "ETC50",
    "LEARNERS",
    "TSPSQ",
    "UCBCVS",
    "UCBPSQ",
    "ControlLearner",
    "ControlRun",
    "Hyperparameters",
]
__all__ += [
    "UnknownCost",
    "bocvs",
    "control_verdicts",
    "density_design",
    "fill_distance",
    "process_design",
    "profile",
    "with_regret",
]
