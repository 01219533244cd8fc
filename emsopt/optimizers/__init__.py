"""`minimize`, `maximize` and the ask / tell optimizers that they run, for deployments and for points of a box.

`BOKEAutoSampler` is a sampler of Optuna; it is loaded when it is first used.
"""

from importlib.util import find_spec
from typing import TYPE_CHECKING

from ..problems.box import Box
from ..problems.inputs import Categorical, Integer, Real
from . import regret
from .ask_tell import AskTell
from .boxes.base import BoxOptimizer
from .boxes.boke import BOKE, BOKEPlus, profile
from .boxes.boke_auto import BOKEAuto
from .boxes.box import BoxObjective, on_box
from .boxes.gp_ei import GPEI
from .boxes.gp_ucb import GPUCB, GPUCBFixed
from .boxes.kr_ucb import KRUCB
from .boxes.random_points import RandomPoints
from .boxes.space_filling import density_design, fill_distance, process_design
from .control.base import ControlLearner
from .control.learners import ETC50, LEARNERS, TSPSQ, UCBCVS, UCBPSQ, UnknownCost
from .control.model import Hyperparameters
from .control.regret import control_regrets, control_verdicts, with_regret
from .control.search import ControlRun, bocvs
from .deployments.annealing import SimulatedAnnealing
from .deployments.base import Optimizer
from .deployments.bocs import BOCS
from .deployments.expected_swaps import LocalSearchPlus
from .deployments.genetic import Genetic
from .deployments.gp_pm import GPpM, GPzero
from .deployments.random_search import RandomSearch
from .deployments.sparbl import SparBL, SparBLPlus
from .deployments.swaps import LocalSearch, best_deployment, local_search
from .methods import BOX_METHODS, METHODS
from .run import Run
from .search import maximize, minimize

__all__ = ["BOCS", "BOKE", "BOX_METHODS", "ETC50", "GPEI", "GPUCB", "KRUCB", "LEARNERS", "METHODS", "TSPSQ"]
__all__ += ["UCBCVS", "UCBPSQ", "AskTell", "BOKEAuto", "BOKEPlus", "Box", "BoxObjective", "BoxOptimizer"]
__all__ += ["ControlLearner", "ControlRun", "GPUCBFixed", "GPpM", "GPzero", "Genetic", "Hyperparameters"]
__all__ += ["LocalSearch", "LocalSearchPlus", "Optimizer", "RandomPoints", "RandomSearch", "Run", "SimulatedAnnealing"]
__all__ += ["SparBL", "SparBLPlus", "UnknownCost", "best_deployment", "bocvs", "control_regrets"]
__all__ += ["control_verdicts", "density_design", "fill_distance", "local_search", "maximize", "minimize", "on_box"]
__all__ += ["Categorical", "Integer", "Real", "process_design", "profile", "regret", "with_regret"]
if find_spec("optuna"):  # `import *` needs all that is listed
    __all__ += ["BOKEAutoSampler"]

if TYPE_CHECKING:
    from .optuna_sampler import BOKEAutoSampler


def __dir__() -> list[str]:
    return sorted({*globals(), "BOKEAutoSampler"})


def __getattr__(name: str) -> object:
    if name == "BOKEAutoSampler":
        from .optuna_sampler import BOKEAutoSampler

        return BOKEAutoSampler
    raise AttributeError(f"module 'emsopt.optimizers' has no attribute {name!r}")
