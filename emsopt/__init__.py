"""Evaluate and optimise where emergency vehicles wait.

A *city* (call rates, travel times, service times) and a *deployment* (the site at which each unit waits) go into an
*evaluator* (hypercube queueing model, simulation, p-median), which returns response times, utilisations and which unit
serves which calls. An *optimizer* searches for the deployment with the shortest response times.

>>> import emsopt as eo
>>> city = eo.datasets.load_st_paul()
>>> best = eo.evaluators.evaluate_all(city, 9, evaluator="approximate").best
>>> round(best.mean_response, 2)
5.93

Every part is loaded when it is first used, so that ``import emsopt`` is quick.
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING

from ._files.version import __version__
from ._running import compiled as _compiled

_compiled.choose_cache_folder()

if TYPE_CHECKING:
    from . import (
        bandits,
        calls,
        city,
        datasets,
        errors,
        evaluators,
        maps,
        operations,
        optimizers,
        panels,
        planning,
        plots,
        problems,
        roads,
        surrogates,
    )
    from ._running import study
    from .city import City, DeploymentSpace
    from .errors import EmsoptError
    from .evaluators import Objective
    from .optimizers import maximize, minimize
    from .roads import RoadNetwork

_ROOM_OF = {
    "City": "city",
    "DeploymentSpace": "city",
    "EmsoptError": "errors",
    "Objective": "evaluators",
    "RoadNetwork": "roads",
    "maximize": "optimizers",
    "minimize": "optimizers",
}

__all__ = ["City", "DeploymentSpace", "EmsoptError", "Objective", "RoadNetwork", "__version__", "bandits", "calls"]
__all__ += ["city", "datasets", "errors", "evaluators", "maps", "maximize", "minimize", "operations", "optimizers"]
__all__ += ["panels", "planning", "plots", "problems", "roads", "study", "surrogates"]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'emsopt' has no attribute {name!r}")
    if name in _ROOM_OF:
        return getattr(_import_module(f".{_ROOM_OF[name]}", __name__), name)
    return _import_module("._running.study" if name == "study" else f".{name}", __name__)


def __dir__() -> list[str]:
    return sorted(__all__)
