"""Evaluate deployments by the evaluator named "exact", "approximate" or "simulation"."""

from collections.abc import Callable, Mapping
from functools import partial
from inspect import signature
from itertools import chain
from typing import Any

from ..city.city import City
from ..city.deployment_space import check_deployments, check_sites
from ..errors import InputError, _validate
from ..errors._types import ArrayLike, FloatArray, Sites
from . import approximate, exact, simulation
from .evaluation import Evaluation, is_queue
from .metrics import check_costs

MOST_EXACT_UNITS = 12  # largest fleet that is evaluated exactly by default, which takes milliseconds


_SIMULATION_DEFAULTS = {"calls": 100_000, "warmup": None, "service": "exponential", "cv": None, "rng": None}
# Functions of each evaluator, for one deployment and for mean costs of many, and default options for many.
_EVALUATORS: dict[str, tuple[Callable[..., Evaluation], Callable[..., Callable[..., FloatArray]], dict[str, Any]]] = {
    "approximate": (approximate.approximate_hypercube, approximate.mean_cost_function, {"tol": 1e-8}),
    "exact": (exact.exact_hypercube, exact.mean_cost_function, {"tol": 1e-10}),
    "simulation": (simulation.simulate, simulation.mean_cost_function, _SIMULATION_DEFAULTS),
}


# Options of the functions for one deployment; here, as inspecting a signature takes as long as the fastest evaluations.
_OPTIONS = {name: [*signature(function).parameters][2:] for name, (function, *_) in _EVALUATORS.items()}


def check_evaluator(evaluator: str | None, units: int) -> str:
    """Return the name of an evaluator; for None "exact" up to `MOST_EXACT_UNITS` units, else "approximate"."""
    if evaluator is None:
        return "exact" if units <= MOST_EXACT_UNITS else "approximate"
    return _validate.choice(evaluator, "evaluator", tuple(_EVALUATORS))


def split_options(evaluator: str, options: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the options for one deployment, for many, and for threads, which overlap; raise if one is unknown."""
    known = [_OPTIONS[evaluator], ["capacity", *_EVALUATORS[evaluator][2]], ["workers", "progress"]]
    listed = dict.fromkeys(chain(*known))
    for name in options:
        if name not in listed:
            raise InputError(f"the {evaluator} evaluator has no option {name!r}; its options are {', '.join(listed)}.")
    return [{name: options[name] for name in names if name in options} for names in known]


def mean_cost_function(
    city: City, units: int, costs: ArrayLike | None, evaluator: str, options: Mapping[str, Any]
) -> Callable[..., FloatArray]:
    """Return a function from checked deployments, (K, units), to their mean ``costs`` per answered call, (K,)."""
    _, many, threads = split_options(evaluator, options)
    _, prepare_many, defaults = _EVALUATORS[evaluator]
    queue = is_queue(many.pop("capacity", "loss"))
    return partial(prepare_many(city, units, check_costs(city, costs), queue, **defaults | many), **threads)


def evaluate(city: City, sites: Sites, evaluator: str | None = None, **options: Any) -> Evaluation:
    """Evaluate one deployment.

    Parameters
    ----------
    city, sites
        As for `approximate_hypercube`.
    evaluator : {"exact", "approximate", "simulation"}, optional
        Default: exact up to 12 units, else approximate.
    **options
        Options of the evaluator, such as ``capacity``; for a simulation ``calls``, ``service`` and ``rng``.

    Examples
    --------
    >>> import emsopt as eo
    >>> city = eo.City([1, 2, 4], [[0, 6, 9], [4, 0, 5], [9, 5, 0]], turnout_times=1, service_times=30)
    >>> round(eo.evaluators.evaluate(city, [1, 2], "exact").mean_response, 2)
    3.52
    """
    sites = check_sites(city, sites)
    evaluator = check_evaluator(evaluator, len(sites))
    return _EVALUATORS[evaluator][0](city, sites, **split_options(evaluator, options)[0])


def values(
    city: City, deployments: ArrayLike, costs: ArrayLike | None = None, evaluator: str | None = None, **options: Any
) -> FloatArray:
    """Return the mean costs of many deployments of one fleet size, by default mean responses, in parallel.

    Parameters
    ----------
    city : City
    deployments : array_like of int, shape (K, p)
        Site of each unit, one row per deployment.
    costs : array_like, shape (N, M), optional
        Cost of site i answering atom j. Default: response times (min).
    evaluator, **options
        As for `Objective`. A simulation sends the same calls to all deployments.

    Returns
    -------
    ndarray, shape (K,)
        Mean cost of an answered call. An `AccuracyWarning` is issued if the evaluator is approximate and the mean
        service times of the units differ by more than a factor of 40.

    Examples
    --------
    >>> import emsopt as eo
    >>> city = eo.City([1, 2, 4], [[0, 6, 9], [4, 0, 5], [9, 5, 0]], turnout_times=1, service_times=30)
    >>> eo.evaluators.values(city, [[0, 1], [1, 2]], evaluator="exact").round(2).tolist()
    [5.85, 3.52]
    """
    deployments = check_deployments(city, deployments)
    units = deployments.shape[1]
    return mean_cost_function(city, units, costs, check_evaluator(evaluator, units), options)(deployments)
