"""The methods by name, and what a run searches with: its method and its objective."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from .. import _validate
from ..errors import InputError
from ..evaluators.objective import Objective
from ..problems import Problem
from .ask_tell import AskTell
from .boxes.base import BoxOptimizer, RandomPoints
from .boxes.boke import BOKE, KRUCB, BOKEPlus
from .boxes.boke_auto import BOKEAuto
from .boxes.box import BoxObjective, on_box
from .boxes.gp_ucb import GPEI, GPUCB, GPUCBFixed
from .deployments.base import Optimizer, RandomSearch
from .deployments.gp_pm import GPpM, GPzero
from .deployments.rivals import BOCS, Genetic, SimulatedAnnealing
from .deployments.sparbl import SparBL, SparBLPlus
from .deployments.swaps import LocalSearch, LocalSearchPlus

Function: TypeAlias = Objective | Problem | BoxObjective | Callable[..., Any]

METHODS: dict[str, Callable[..., Optimizer]] = {
    "gp-pm": GPpM,
    "gp-zero": GPzero,
    "sparbl": SparBL,
    "sparbl+": SparBLPlus,
    "bocs": BOCS,
    "random": RandomSearch,
    "genetic": Genetic,
    "annealing": SimulatedAnnealing,
    "local": LocalSearch,
    "local+": LocalSearchPlus,
    "gp-pm-literal": partial(GPpM, literal=True),
}
"""Methods on deployments by name.

>>> import emsopt as eo
>>> sorted(eo.optimizers.METHODS)
['annealing', 'bocs', 'genetic', 'gp-pm', 'gp-pm-literal', 'gp-zero', 'local', 'local+', 'random', 'sparbl', 'sparbl+']
"""

BOX_METHODS: dict[str, type[BoxOptimizer]] = {
    "boke": BOKE,
    "boke+": BOKEPlus,
    "boke-auto": BOKEAuto,
    "kr-ucb": KRUCB,
    "gp-ucb-fixed": GPUCBFixed,
    "gp-ucb": GPUCB,
    "random": RandomPoints,
    "gp-ei": GPEI,
}
"""Methods on boxes by name.

>>> import emsopt as eo
>>> sorted(eo.optimizers.BOX_METHODS)
['boke', 'boke+', 'boke-auto', 'gp-ei', 'gp-ucb', 'gp-ucb-fixed', 'kr-ucb', 'random']
"""

BY_KIND: dict[type[AskTell[Any]], Mapping[str, Callable[..., AskTell[Any]]]] = {
    Optimizer: METHODS,
    BoxOptimizer: BOX_METHODS,
}
_VERBS = {"min": "minimize", "max": "maximize"}


def chosen(
    sense: str, objective: Any, method: str | AskTell[Any] | None
) -> tuple[str | AskTell[Any], str, type[AskTell[Any]]]:
    """Return the method, its name, and the class of optimizers that the objective needs; raise if they do not fit."""
    if not callable(objective):
        got = type(objective).__name__
        raise InputError(f"`objective` must be an Objective, a Problem or a function of a point; got {got}.")
    kind: type[AskTell[Any]] = Optimizer if isinstance(objective, Objective) else BoxOptimizer
    methods = BY_KIND[kind]
    if method is None:
        method = "gp-pm" if kind is Optimizer else "boke-auto"
    if isinstance(method, kind):
        name = f"{type(method).__name__}, {len(method.values)} told"
    elif isinstance(method, str):
        name = _validate.choice(method, "method", tuple(methods))
    else:
        raise InputError(
            f"`method` must be one of {', '.join(map(repr, methods))}, or an instance of {kind.__name__} created for "
            f"this objective; got {getattr(method, '__name__', type(method).__name__)}."
            + (" To give inputs or a starting point, write bounds=... or x0=..." if np.iterable(method) else "")
        )
    known = method.objective if isinstance(method, AskTell) else objective
    own = getattr(known, "sense", None)
    if own is not None and _validate.choice(own, "sense", tuple(_VERBS)) != sense:
        who = "`objective`" if known is objective else "`method`"
        raise InputError(f"{who} has the `sense` {own!r}: use `{_VERBS[own]}`, not `{_VERBS[sense]}`.")
    return method, name, kind


def goal_of(
    sense: str, objective: Function, method: str | AskTell[Any], box: dict[str, Any]
) -> Objective | BoxObjective:
    """Return the objective to search, with the given sense; raise if the arguments do not fit together."""
    given = [name for name, value in box.items() if value is not None]
    if given and (isinstance(objective, Objective) or isinstance(method, AskTell)):
        why = (
            "is already set in the optimizer given as `method`"
            if isinstance(method, AskTell)
            else ("does not apply to an Objective, which has its own set of deployments and knows whether it is noisy")
        )
        raise InputError(f"`{given[0]}` {why}. Leave it out.")
    if isinstance(method, str):
        return objective if isinstance(objective, Objective) else on_box(objective, **box, sense=sense)
    goal = method.objective
    if objective is not goal and objective is not getattr(goal, "function", goal):
        raise InputError(
            "`method` must be an optimizer created for this `objective`; it was created for another one, or for none."
        )
    return goal
