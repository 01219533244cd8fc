"""Metrics of deployments, the quantities that are minimised.

The metrics of the first table are mean costs over answered calls, given by a matrix c_ij: the cost of site i answering
atom j. The value for a deployment is Σ_j w_j Σ_i q_ij c_ij, with the share w_j of calls that come from atom j and the
fraction q_ij of atom j's answered calls that units at site i answer.

``"mean_response"``                            mean response time, min
``("late", 8.0)``                              fraction of calls answered in 8 minutes or more; if times vary, c_ij is
                                               the probability of this

The others are functions of an `Evaluation` and slower (St. Paul with nine units: 80 instead of 11 µs by the approximate
model, 240 instead of 200 µs by the exact one). Methods that need a cost matrix, such as "gp-pm", "sparbl" and "local+",
use the response times in its place.

``("percentile", 90)``                         90th percentile of response time, min
a function                                     any function from an `Evaluation` to a number; smaller is better, such
                                               as ``lambda e: e.utilizations.max()``, of the busiest unit
``{"mean_response": 1, ("late", 8.0): 20}``    weighted mix of the above: here a late call counts as 20 extra minutes
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np

from ..city.city import City
from ..errors import InputError, _validate
from ..errors._types import ArrayLike, FloatArray
from .evaluation import Evaluation

SingleMetric: TypeAlias = "str | tuple[Any, ...] | Callable[[Evaluation], float]"
Metric: TypeAlias = "SingleMetric | Mapping[SingleMetric, float]"

NEGLIGIBLE_DIFFERENCE = 0.01  # of the metric: smaller changes of an atom are of no practical interest and not reported
MEAN_METRICS = ("mean_response", "late")


def metric_costs(city: City, metric: Metric) -> FloatArray:
    """Return the cost matrix of a metric that is a mean over calls, shape (N, M); raise if it is another one."""
    if not is_mean(metric):
        metric_function(city, metric)  # raises if the metric is unknown
        known = "'mean_response', ('late', minutes) or a mix of these"
        raise InputError(f"`metric` must be a mean over calls here: {known}; got {_validate.quote(metric)}.")
    if isinstance(metric, Mapping):
        costs = np.zeros_like(city.response_times)
        for part, weight in _mix_weights(metric).items():
            costs += weight * metric_costs(city, part)
        return costs
    match metric:
        case "mean_response":
            return city.response_times
        case ("late", threshold):
            return late_probability(city, _validate.positive_number(threshold, "threshold", "min"))
    raise _unknown_metric_error(metric)  # such as ("late",), whose minutes are missing


def is_mean(metric: Metric) -> bool:
    """Return whether a metric is a mean over calls, which has a cost matrix, by its name; arguments are not checked."""
    if isinstance(metric, Mapping):
        return all(map(is_mean, metric))  # true of an empty mix too, which `_mix_weights` refuses
    kind = metric[0] if isinstance(metric, tuple) and metric else metric
    return isinstance(kind, str) and kind in MEAN_METRICS


def metric_function(city: City, metric: Metric) -> Callable[[Evaluation], float]:
    """Return the metric as a function of an `Evaluation` of ``city``; raise if it is unknown."""
    if isinstance(metric, Mapping):
        parts = [(weight, metric_function(city, part)) for part, weight in _mix_weights(metric).items()]
        return lambda e: sum(weight * part(e) for weight, part in parts)
    if callable(metric):
        own = metric
        return lambda e: _validate.finite_number(own(e), f"value of the metric {metric_label(own)}")
    if is_mean(metric):
        costs = metric_costs(city, metric)
        return lambda e: float(e.demand_shares @ e.atom_cost(costs))
    match metric if isinstance(metric, tuple) else None:
        case ("percentile", q):
            if not 1 <= _validate.positive_number(q, "q", "percent") < 100:  # a q below 1 is likely meant as a share
                hint = f" For the {100 * q:g}th percentile pass {100 * q:g}." if q < 1 else ""
                raise InputError(f"`q` must be a percentage from 1 to below 100; got {q:g}.{hint}")
            return lambda e: e.percentile(q)
    raise _unknown_metric_error(metric)


def _unknown_metric_error(metric: object) -> InputError:
    """Return the error for an unknown metric, with the list of known ones."""
    known = "'mean_response', ('late', minutes), ('percentile', q), a function of an Evaluation"
    return InputError(f"`metric` must be {known}, or a mapping from these to weights; got {_validate.quote(metric)}.")


def _mix_weights(mix: Mapping[SingleMetric, float]) -> dict[SingleMetric, float]:
    """Return the weights of a mix of metrics; raise unless all are at least 0, and one is above 0."""
    if not mix:
        raise _unknown_metric_error(mix)
    if not any(mix.values()):
        raise InputError(f"at least one weight in `metric` must be above 0; got {mix!r}.")
    return {part: _validate.positive_number(weight, f"weight of {part!r}", zero=True) for part, weight in mix.items()}


def late_probability(city: City, threshold: float) -> FloatArray:
    """Return the probability of a response of ``threshold`` minutes or more, (N, M); 0 or 1 if times are fixed."""
    law = city.response_law
    return (city.response_times >= threshold).astype(float) if law is None else law.late_probabilities(threshold)


def check_costs(city: City, costs: ArrayLike | None) -> FloatArray:
    """Return ``costs`` as a checked matrix, shape (N, M); for None the response times (min)."""
    if costs is None:
        return city.response_times
    if getattr(costs, "dtype", None) == bool:  # a condition such as `response_times >= 8`
        costs = np.asarray(costs, float)
    return _validate.real_array(costs, "costs", (city.n_sites, city.n_atoms))


def metric_label(metric: Metric) -> str:
    """Return a label of a metric for tables and axes, with its unit."""
    if isinstance(metric, Mapping):
        return " + ".join(f"{weight:g} x {metric_label(part)}" for part, weight in metric.items())
    if callable(metric):
        return str(getattr(metric, "__name__", type(metric).__name__))
    kind, *rest = metric if isinstance(metric, tuple) else (metric,)
    return {
        "mean_response": "mean response (min)",
        "late": "fraction of responses of {:g} min or more",
        "percentile": "{:g}th percentile of response (min)",
    }[kind].format(*rest)
