"""Pick an evaluator by name."""

from inspect import signature

from .. import _validate
from ..city.deployment import check_deployments, check_sites
from ..errors import InputError
from .approximate import approximate_hypercube, approximate_values
from .exact import exact_hypercube, exact_values
from .simulation import simulate, simulation_values

EXACT_UP_TO = 12
"""Fleets of up to this many units are evaluated exactly unless told otherwise: it takes milliseconds."""

_EVALUATORS = {
    "approximate": (approximate_hypercube, approximate_values),
    "exact": (exact_hypercube, exact_values),
    "simulation": (simulate, simulation_values),
}


def check_evaluator(evaluator, units):
    """Return the name of an evaluator; the default, if it is None, is exact up to `EXACT_UP_TO` units."""
    if evaluator is None:
        return "exact" if units <= EXACT_UP_TO else "approximate"
    return _validate.choice(evaluator, "evaluator", tuple(_EVALUATORS))


def split_options(evaluator, options):
    """Return the options that one evaluation takes and those that many at once take.

    Raises
    ------
    InputError
        If an option is known to neither.
    """
    single, many = (
        [name for name, p in signature(function).parameters.items() if p.kind is p.KEYWORD_ONLY]
        for function in _EVALUATORS[evaluator]
    )
    for name in options:
        if name not in single and name not in many:
            known = ", ".join(dict.fromkeys(single + many))
            msg = f"the {evaluator} evaluator has no option {name!r}; it has {known}."
            raise InputError(msg)
    return tuple({name: options[name] for name in options if name in known} for known in (single, many))


def evaluate(city, sites, evaluator=None, **options):
    """Evaluate one deployment.

    Parameters
    ----------
    city : City
    sites : array_like of int, shape (p,)
    evaluator : {"exact", "approximate", "simulation"}, optional
        Left out: exact up to 12 units, else approximate.
    **options
        Passed on, such as ``capacity``; for a simulation ``calls``, ``service`` and ``rng``.

    Returns
    -------
    Evaluation
    """
    sites = check_sites(city, sites)
    evaluator = check_evaluator(evaluator, len(sites))
    return _EVALUATORS[evaluator][0](city, sites, **split_options(evaluator, options)[0])


def values(city, deployments, costs=None, evaluator=None, **options):
    """Evaluate many deployments of one size.

    Parameters
    ----------
    city : City
    deployments : array_like of int, shape (K, p)
    costs : ndarray, shape (N, M), optional
        Cost of site i answering atom j; response times (min) if left out.
    evaluator : {"exact", "approximate", "simulation"}, optional
        Left out: exact up to 12 units, else approximate.
    **options
        Passed on, such as ``capacity``, ``workers`` and ``progress``.

    Returns
    -------
    ndarray, shape (K,)
        Mean cost of an answered call.
    """
    deployments = check_deployments(city, deployments)
    evaluator = check_evaluator(evaluator, deployments.shape[1])
    return _EVALUATORS[evaluator][1](city, deployments, costs, **split_options(evaluator, options)[1])
