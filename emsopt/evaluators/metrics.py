"""Metrics, which say what is minimised, as cost matrices.

Every metric is a mean cost over answered calls, given by a matrix c_ij: the cost of site i answering atom j. Its value
for a deployment is Σ_j w_j Σ_i q_ij c_ij, with the share w_j of calls that come from atom j and the fraction q_ij of
atom j's answered calls that units at site i answer.

``"mean_response"``                            mean response time, min
``("late", 8.0)``                              fraction of calls answered in 8 minutes or more; if times vary, c_ij is
                                               the probability of this
``{"mean_response": 1, ("late", 8.0): 20}``    weighted mix: here a late call counts as 20 extra minutes
"""

from collections.abc import Mapping
from typing import TypeAlias

import numpy as np

from .. import _validate
from .._types import ArrayLike, FloatArray
from ..city.city import City
from ..errors import InputError

Metric: TypeAlias = str | tuple[str, float] | Mapping[str | tuple[str, float], float]


def metric_costs(city: City, metric: Metric) -> FloatArray:
    """Return the cost matrix of a metric, shape (N, M).

    Raises
    ------
    InputError
        If the metric has none of the three forms of this module, or a mix has no positive weight.
    """
    if isinstance(metric, str) and metric == "mean_response":
        return city.response_times
    if isinstance(metric, tuple) and len(metric) == 2 and isinstance(metric[0], str) and metric[0] == "late":
        return late_probability(city, _validate.positive_number(metric[1], "threshold", "min"))
    if isinstance(metric, Mapping) and metric:
        if not any(metric.values()):
            raise InputError(f"at least one weight in `metric` must be above 0; got {metric!r}.")
        costs = np.zeros_like(city.response_times)
        for part, weight in metric.items():
            costs += _validate.positive_number(weight, f"weight of {part!r}", zero=True) * metric_costs(city, part)
        return costs
    raise InputError(
        f"`metric` must be 'mean_response', ('late', minutes) or a mapping from these to weights; got {metric!r}."
    )


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
    if isinstance(metric, str):
        return "mean response (min)"
    if isinstance(metric, Mapping):
        return " + ".join(f"{weight:g} x {metric_label(part)}" for part, weight in metric.items())
    return f"fraction of responses of {metric[1]:g} min or more"
