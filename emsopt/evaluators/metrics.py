"""Metrics, which say what is minimised.

The metrics of the first table are mean costs over answered calls, given by a matrix c_ij: the cost of site i answering
atom j. The value for a deployment is Σ_j w_j Σ_i q_ij c_ij, with the share w_j of calls that come from atom j and the
fraction q_ij of atom j's answered calls that units at site i answer.

``"mean_response"``                            mean response time, min
``("late", 8.0)``                              fraction of calls answered in 8 minutes or more; if times vary, c_ij is
                                               the probability of this
``("standard", name)``                         fraction of calls that exceed the limit of one of
                                               `emsopt.evaluators.standards` that runs from the dispatch
``"mortality"``                                probability of not surviving a cardiac arrest, 1 - `survival` of the
                                               response time; if times vary, its mean

The others are functions of an `Evaluation`. Each value then takes a whole evaluation, which is slower (St. Paul with
nine units: 80 instead of 11 µs by the approximate model, 240 instead of 200 µs by the exact one). Methods that need a
cost matrix, such as "gp-pm", "sparbl" and "local+", use the response times in its place.

``("percentile", 90)``                         90th percentile of response time, min
``("worst", labels)``                          mean response of the group of atoms with the longest one, min
``("range", labels)``                          mean response of that group minus that of the best group, min
``("gini", labels)``                           Gini coefficient of the groups' mean responses, weighted by demand
``"utilization"``, ``"busiest"``               unit-hour utilisation: fraction of time busy, mean and highest of a unit
``("station_cost", costs)``                    sum of ``costs``, one per site, over the stations with a unit
a function                                     any function from an `Evaluation` to a number; smaller is better

``labels``, one per atom, put each atom in a group, such as a district; a third entry, as in ``("worst", labels, 8.0)``,
replaces mean responses by late fractions. `emsopt.evaluators.groups` has the definitions.

``{"mean_response": 1, ("late", 8.0): 20}``    weighted mix of the above: here a late call counts as 20 extra minutes;
                                               in it, write ``labels`` and ``costs`` as tuples
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.polynomial.hermite_e import hermegauss

from .. import _validate
from .._types import ArrayLike, FloatArray
from ..city.city import City
from ..errors import InputError
from . import groups
from .standards import exceeded, named

if TYPE_CHECKING:
    from .evaluation import Evaluation

# De Maio et al. (2003), as Erkut, Ingolfsson and Erdogan (2008) use it: see `survival`.
SURVIVAL_AT_0, SURVIVAL_A_MINUTE = 0.679, 0.262
NODES = 12  # of the quadrature over a lognormal time: mortality is right to 2e-8 at variations of 0.6, to 2e-6 at 1

Single: TypeAlias = "str | tuple[Any, ...] | Callable[[Evaluation], float]"
Metric: TypeAlias = "Single | Mapping[Single, float]"

OF_GROUPS = {"worst": groups.worst, "range": groups.spread, "gini": groups.gini}
MEANS = ("mean_response", "mortality", "late", "standard")
KNOWN = (
    "'mean_response', 'mortality', ('late', minutes), ('standard', name), ('percentile', q), ('worst', labels), "
    "('range', labels), ('gini', labels), 'utilization', 'busiest', ('station_cost', costs), a function of an "
    "Evaluation, or a mapping from these to weights"
)


def metric_costs(city: City, metric: Metric) -> FloatArray:
    """Return the cost matrix of a metric, shape (N, M).

    Raises
    ------
    InputError
        If the metric is unknown or has no cost matrix, or a mix has no positive weight.
    """
    if not is_mean(metric):
        metric_function(city, metric)  # raises if the metric is unknown
        raise InputError(
            "`metric` must be a mean over calls here: 'mean_response', 'mortality', ('late', minutes), ('standard', "
            f"name) or a mix of these; got {_validate.shown(metric)}."
        )
    if isinstance(metric, Mapping):
        costs = np.zeros_like(city.response_times)
        for part, weight in _weights(metric).items():
            costs += weight * metric_costs(city, part)
        return costs
    match metric:
        case "mean_response":
            return city.response_times
        case "mortality":
            return mean_cost(city, lambda minutes: 1 - survival(minutes))
        case ("late", threshold):
            return late_probability(city, _validate.positive_number(threshold, "threshold", "min"))
        case ("standard", name):
            return exceeded(city, named(name, "dispatch"))
    raise _unknown(metric)


def is_mean(metric: Metric) -> bool:
    """Return whether a metric is meant as a mean over calls, which has a cost matrix; False if it is unknown."""
    if isinstance(metric, Mapping):
        return all(map(is_mean, metric))
    kind = metric[0] if isinstance(metric, tuple) and metric else metric
    return isinstance(kind, str) and kind in MEANS


def metric_function(city: City, metric: Metric) -> Callable[[Evaluation], float]:
    """Return the metric as a function of an `Evaluation` of ``city``.

    Raises
    ------
    InputError
        If the metric is unknown or its labels or costs do not fit the city. The function raises it if a user's own
        function does not return a finite number.
    """
    if isinstance(metric, Mapping):
        parts = [(weight, metric_function(city, part)) for part, weight in _weights(metric).items()]
        return lambda e: sum(weight * part(e) for weight, part in parts)
    if callable(metric):
        own = metric
        return lambda e: _validate.finite_number(own(e), f"value of the metric {metric_label(own)}")
    if is_mean(metric):
        costs = metric_costs(city, metric)
        return lambda e: float(e.demand_shares @ e.atom_cost(costs))
    match metric if isinstance(metric, (str, tuple)) else None:
        case "utilization":
            return lambda e: float(e.utilizations.mean())
        case "busiest":
            return lambda e: float(e.utilizations.max())
        case ("percentile", q):
            if not 1 <= _validate.positive_number(q, "q", "percent") < 100:
                hint = f" For the {100 * q:g}th percentile pass {100 * q:g}." if q < 1 else ""
                raise InputError(f"`q` must be a percentage from 1 to below 100; got {q:g}.{hint}")
            return lambda e: e.percentile(q)
        case ("worst" | "range" | "gini" as kind, labels, *rest) if len(rest) <= 1:
            threshold = _validate.positive_number(rest[0], "threshold", "min") if rest else None
            return partial(OF_GROUPS[kind], codes=groups.check_labels(labels, city.n_atoms), threshold=threshold)
        case ("station_cost", costs):
            by_site = _validate.real_array(costs, "station_cost", (city.n_sites,), low=0)
            return lambda e: float(by_site[e.sites[np.unique(city.twin_groups[e.sites], return_index=True)[1]]].sum())
    raise _unknown(metric)


def _unknown(metric: object) -> InputError:
    """Return the error that says which metrics there are."""
    return InputError(f"`metric` must be {KNOWN}; got {_validate.shown(metric)}.")


def _weights(mix: Mapping[Single, float]) -> dict[Single, float]:
    """Return the checked weights of a mix."""
    if not mix:
        raise _unknown(mix)
    if not any(mix.values()):
        raise InputError(f"at least one weight in `metric` must be above 0; got {mix!r}.")
    return {part: _validate.positive_number(weight, f"weight of {part!r}", zero=True) for part, weight in mix.items()}


def survival(minutes: ArrayLike) -> FloatArray:
    """Return the probability of surviving a cardiac arrest outside hospital by response time.

    It is 1 / (1 + exp(0.679 + 0.262 t)): a logistic regression of De Maio et al. (2003), which Erkut, Ingolfsson and
    Erdogan (2008) use to locate ambulances.

    Parameters
    ----------
    minutes : array_like
        Response times t, at least 0.

    Returns
    -------
    ndarray
        Of the same shape.

    References
    ----------
    De Maio, V. J., Stiell, I. G., Wells, G. A. and Spaite, D. W. (2003). Optimal defibrillation response intervals for
        maximum out-of-hospital cardiac arrest survival rates. Annals of Emergency Medicine 42(2), 242-250.
    Erkut, E., Ingolfsson, A. and Erdogan, G. (2008). Ambulance location for maximum survival. Naval Research Logistics
        55(1), 42-58.

    Examples
    --------
    >>> survival([4, 8, 12]).round(4).tolist()
    [0.151, 0.0587, 0.0214]
    """
    times = _validate.floats(minutes, "minutes", "min")
    times = _validate.real_array(times, "minutes", (None,) * times.ndim, unit="min", low=0)
    from scipy.special import expit

    chance: FloatArray = expit(-SURVIVAL_AT_0 - SURVIVAL_A_MINUTE * times)
    return chance


def mean_cost(city: City, cost: Callable[[FloatArray], FloatArray]) -> FloatArray:
    """Return the mean of a smooth function of the response time, shape (N, M), by Gauss-Hermite quadrature."""
    law = city.response_law
    if law is None:
        return cost(city.response_times)
    deviates, weights = hermegauss(NODES)
    weights = weights / weights.sum()
    total = np.zeros_like(city.response_times)
    for first, share in zip(deviates, weights, strict=True):
        turnout = law.turnout * np.exp(law.turnout_spread * first - law.turnout_spread**2 / 2)
        for second, part in zip(deviates, weights, strict=True):
            travel = law.travel * np.exp(law.travel_spread * second - law.travel_spread**2 / 2)
            total += share * part * cost(turnout[:, None] + travel)
    return total


def late_probability(city: City, threshold: float) -> FloatArray:
    """Return the probability that a response takes ``threshold`` minutes or more, shape (N, M): 0 or 1 if fixed."""
    law = city.response_law
    return (city.response_times >= threshold).astype(float) if law is None else law.late(threshold)


def check_costs(city: City, costs: ArrayLike | None) -> FloatArray:
    """Return ``costs`` as a checked matrix, shape (N, M); for None the response times (min)."""
    if costs is None:
        return city.response_times
    if getattr(costs, "dtype", None) == bool:  # a condition such as `response_times >= 8`
        costs = np.asarray(costs, float)
    return _validate.real_array(costs, "costs", (city.n_sites, city.n_atoms))


def metric_label(metric: Metric) -> str:
    """Return the label of a metric for tables and axes, with its unit."""
    if isinstance(metric, Mapping):
        return " + ".join(f"{weight:g} x {metric_label(part)}" for part, weight in metric.items())
    if callable(metric):
        return str(getattr(metric, "__name__", type(metric).__name__))
    kind, *rest = metric if isinstance(metric, tuple) else (metric,)
    if kind in OF_GROUPS:
        what = "mean response" if len(rest) < 2 else f"fraction of responses of {rest[1]:g} min or more"
        unit = " (min)" if len(rest) < 2 else ""
        number = len(set(rest[0]))
        return {
            "worst": f"{what} of the worst of {number} groups{unit}",
            "range": f"{what}, worst minus best of {number} groups{unit}",
            "gini": f"Gini coefficient of the {what} of {number} groups",
        }[kind]
    if kind == "standard":
        return f"fraction of responses beyond {named(rest[0]).name}"
    return {
        "mean_response": "mean response (min)",
        "mortality": "probability of not surviving a cardiac arrest",
        "utilization": "mean utilisation of the units",
        "busiest": "utilisation of the busiest unit",
        "station_cost": "cost of the stations in use",
        "late": "fraction of responses of {:g} min or more",
        "percentile": "{:g}th percentile of response (min)",
    }[kind].format(*rest)
