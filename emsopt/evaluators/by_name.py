"""Pick an evaluator by name."""

from functools import cache, partial
from inspect import signature

from .. import _validate
from ..city.deployment import check_deployments, check_sites
from ..errors import InputError
from . import approximate, exact, simulation

EXACT_UP_TO = 12
"""Fleets of up to this many units are evaluated exactly unless told otherwise: it takes milliseconds."""

_EVALUATORS = {
    "approximate": (approximate.approximate_hypercube, approximate.approximate_values, approximate.prepare),
    "exact": (exact.exact_hypercube, exact.exact_values, exact.prepare),
    "simulation": (simulation.simulate, simulation.simulation_values, simulation.prepare),
}


@cache
def _defaults(function):
    """Return the options of an evaluator with their defaults."""
    return {name: p.default for name, p in signature(function).parameters.items() if p.kind is p.KEYWORD_ONLY}


def check_evaluator(evaluator, units):
    """Return the name of an evaluator; the default, if it is None, is exact up to `EXACT_UP_TO` units."""
    if evaluator is None:
        return "exact" if units <= EXACT_UP_TO else "approximate"
    return _validate.choice(evaluator, "evaluator", tuple(_EVALUATORS))


def split_options(evaluator, options):
    """Return the options of one evaluation and those of many at once; refuse an option known to neither."""
    single, many = map(_defaults, _EVALUATORS[evaluator][:2])
    for name in options:
        if name not in single and name not in many:
            raise InputError(f"the {evaluator} evaluator has no option {name!r}; it has {', '.join(single | many)}.")
    return tuple({name: options.get(name, known[name]) for name in known} for known in (single, many))


def prepare(city, units, costs, evaluator, options):
    """Check costs and options once; return a function from checked deployments, shape (K, units), to values."""
    options = split_options(evaluator, options)[1]
    spread = {name: options.pop(name) for name in ("workers", "progress")}
    return partial(_EVALUATORS[evaluator][2](city, units, costs, **options), **spread)


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
    city, evaluator
        As in `evaluate`.
    deployments : array_like of int, shape (K, p)
    costs : ndarray, shape (N, M), optional
        Cost of site i answering atom j; response times (min) if left out.
    **options
        Passed on, such as ``capacity``; ``workers`` (threads; all cores if left out) and ``progress`` (True shows a
        bar; a function is called with (done, total)).

    Returns
    -------
    ndarray, shape (K,)
        Mean cost of an answered call.
    """
    deployments = check_deployments(city, deployments)
    units = deployments.shape[1]
    return prepare(city, units, costs, check_evaluator(evaluator, units), options)(deployments)
