"""Evaluate and optimise where emergency vehicles wait.

A *city* (call rates, travel times, service times) and a *deployment* (which site each unit
waits at) go into an *evaluator* (hypercube queueing model, simulation, p-median), which returns
response times, utilisations and who serves whom; an *optimizer* searches for the deployment
that answers fastest.

>>> import emsopt as eo
>>> city = eo.datasets.load_st_paul()
>>> best = eo.evaluators.evaluate_all(city, 9, evaluator="approximate").best
>>> round(best.mean_response, 2)
5.93

Everything below is loaded on first use, so that ``import emsopt`` costs almost nothing.
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0.dev0"

if TYPE_CHECKING:
    from . import (
        bandits,
        calls,
        datasets,
        energy,
        errors,
        evaluators,
        geo,
        maps,
        optimizers,
        panels,
        plan,
        plots,
        problems,
        regret,
        road_maps,
        roads,
        study,
        sweeps,
        travel,
    )
    from .city import City
    from .deployment import DeploymentSpace
    from .errors import EmsoptError
    from .objective import Objective
    from .optimizers.loop import maximize, minimize
    from .roads import RoadNetwork

_MODULES = (
    "bandits",
    "calls",
    "datasets",
    "energy",
    "errors",
    "evaluators",
    "geo",
    "maps",
    "optimizers",
    "panels",
    "plan",
    "plots",
    "problems",
    "regret",
    "road_maps",
    "roads",
    "study",
    "sweeps",
    "travel",
)
_NAMES = {
    "City": "city",
    "DeploymentSpace": "deployment",
    "EmsoptError": "errors",
    "Objective": "objective",
    "RoadNetwork": "roads",
    "maximize": "optimizers.loop",
    "minimize": "optimizers.loop",
}

__all__ = ["City", "DeploymentSpace", "EmsoptError", "Objective", "RoadNetwork", "bandits", "calls"]
__all__ += ["datasets", "energy", "errors", "evaluators", "geo", "maps", "maximize", "minimize"]
__all__ += ["optimizers", "panels", "plan", "plots", "problems", "regret", "road_maps", "roads"]
__all__ += ["study", "sweeps", "travel"]


def __getattr__(name):
    if name in _MODULES:
        return _import_module(f".{name}", __name__)
    if name in _NAMES:
        return getattr(_import_module(f".{_NAMES[name]}", __name__), name)
    msg = f"module 'emsopt' has no attribute {name!r}"
    raise AttributeError(msg)


def __dir__():
    return sorted([*__all__, "__version__"])
