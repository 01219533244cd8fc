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

from ._version import __version__

if TYPE_CHECKING:
    from . import (
        bandits,
        calls,
        city,
        datasets,
        errors,
        evaluators,
        maps,
        optimizers,
        panels,
        planning,
        plots,
        problems,
        roads,
        study,
    )
    from .city import City, DeploymentSpace
    from .errors import EmsoptError
    from .evaluators import Objective
    from .optimizers import maximize, minimize
    from .roads import RoadNetwork

_ROOMS = (
    "bandits",
    "calls",
    "city",
    "datasets",
    "errors",
    "evaluators",
    "maps",
    "optimizers",
    "panels",
    "planning",
    "plots",
    "problems",
    "roads",
    "study",
)
_NAMES = {
    "City": "city",
    "DeploymentSpace": "city",
    "EmsoptError": "errors",
    "Objective": "evaluators",
    "RoadNetwork": "roads",
    "maximize": "optimizers",
    "minimize": "optimizers",
}

__all__ = [
    "City",
    "DeploymentSpace",
    "EmsoptError",
    "Objective",
    "RoadNetwork",
    "__version__",
    "bandits",
    "calls",
    "city",
    "datasets",
    "errors",
    "evaluators",
    "maps",
    "maximize",
    "minimize",
    "optimizers",
    "panels",
    "planning",
    "plots",
    "problems",
    "roads",
    "study",
]


def __getattr__(name):
    if name in _ROOMS:
        return _import_module(f".{name}", __name__)
    if name in _NAMES:
        return getattr(_import_module(f".{_NAMES[name]}", __name__), name)
    raise AttributeError(f"module 'emsopt' has no attribute {name!r}")


def __dir__():
    return sorted(__all__)
