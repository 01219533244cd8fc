"""Metrics, which say what is minimised, as cost matrices.

Every metric is a mean cost over answered calls, given by a matrix c_ij: the cost of site i answering atom j. Its value
for a deployment is Σ_j w_j Σ_i q_ij c_ij, with the share w_j of calls that come from atom j and the fraction q_ij of
atom j's answered calls that units at site i answer.

``"mean_response"``                            mean response time, min
``("late", 8.0)``                              fraction of calls answered in 8 minutes or more; if times vary, c_ij is
                                               the probability of this
``"mortality"``                                probability of not surviving a cardiac arrest, 1 - `survival` of the
                                               response time; if times vary, its mean
``{"mean_response": 1, ("late", 8.0): 20}``    weighted mix: here a late call counts as 20 extra minutes
"""

from collections.abc import Callable, Mapping
from typing import TypeAlias

import numpy as np
from numpy.polynomial.hermite_e import hermegauss
from scipy.special import expit

from .. import _validate
from .._types import ArrayLike, FloatArray
from ..city.city import City
from ..errors import InputError

# De Maio et al. (2003), as Erkut, Ingolfsson and Erdogan (2008) use it: see `survival`.
SURVIVAL_AT_0, SURVIVAL_A_MINUTE = 0.679, 0.262
NODES = 12  # of the quadrature over a lognormal time: mortality is right to 2e-8 at variations of 0.6, to 2e-6 at 1

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
    if isinstance(metric, str) and metric == "mortality":
        return mean_cost(city, lambda minutes: 1 - survival(minutes))
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
        "`metric` must be 'mean_response', 'mortality', ('late', minutes) or a mapping from these to weights; got "
        f"{metric!r}."
    )


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
    if isinstance(metric, str):
        return "mean response (min)" if metric == "mean_response" else "probability of not surviving a cardiac arrest"
    if isinstance(metric, Mapping):
        return " + ".join(f"{weight:g} x {metric_label(part)}" for part, weight in metric.items())
    return f"fraction of responses of {metric[1]:g} min or more"
