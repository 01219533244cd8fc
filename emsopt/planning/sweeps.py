"""Tables of the best deployment by load or service rate, and of the performance of several deployments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import pandas as pd

from .._running.loop import progress_bar
from ..city.city import City, check_city
from ..city.deployment_space import DeploymentSpace
from ..errors import InputError, _validate
from ..errors._types import ArrayLike, IntArray, Progress, Sites
from ..evaluators.by_name import evaluate
from ..evaluators.evaluation import LATE_MIN, Evaluation
from ..evaluators.median import p_median
from ..evaluators.metrics import Metric
from ..evaluators.objective import Objective
from ..optimizers.deployments.swaps import best_deployment, enumeration_limit, local_search
from ..optimizers.result import Run


def sweep(
    cities: Mapping[Any, City],
    units: int | DeploymentSpace,
    *,
    evaluator: str | None = None,
    metric: Metric = "mean_response",
    progress: Progress = False,
    **options: Any,
) -> pd.DataFrame:
    """Compare the best deployment with the p-median deployment for a series of cities.

    Parameters
    ----------
    cities : mapping
        Mapping from labels, such as offered loads, to a `City` each.
    units : int or DeploymentSpace
        Fleet size p, or the allowed deployments.
    evaluator, metric, **options
        As for `Objective`.
    progress : bool or callable
        Whether to show a bar, or a function called with (cities done, number of cities).

    Returns
    -------
    DataFrame
        One row per city, indexed by label. ``optimum`` and ``p_median`` are the values of the metric for the best
        deployment found and for the p-median deployment, ``sites`` and ``p_median_sites`` their sites, and ``found``
        says how the optimum was found. If the metric is mean response, ``lower_bound`` is the p-median bound (min), a
        lower bound for any deployment (Theorem 2 of "Optimizing Server Locations in Spatial Queues").

        Deployments are enumerated if all those of all cities take little time, else each city is searched from the
        same random starts and from the optimum of the city before. The random seed is fixed.

    Examples
    --------
    >>> import emsopt as eo
    >>> city = eo.datasets.grid_city(n_sites=6, units=2, rng=1)
    >>> table = eo.planning.sweep({"night": city.scaled(0.5), "day": city}, 2, evaluator="approximate")
    >>> table.shape[0]
    2
    """
    if not isinstance(cities, Mapping) or not cities:
        raise InputError(f"`cities` must map labels to at least one City; got {_validate.quote(cities)}.")
    rows, before = [], None
    with progress_bar(progress, len(cities), "city") as show:
        for done, city in enumerate(cities.values(), 1):
            objective = Objective(city, units, evaluator, metric, **options)
            space = objective.space
            if space.count * len(cities) <= enumeration_limit(objective):
                run = best_deployment(objective, rng=0)
            else:
                run = search_with_start(objective, before, rng=0)
            before = cast("IntArray", run.x)
            median = p_median(city, space)
            row: dict[str, Any] = {"optimum": run.fun, "p_median": objective(median.sites)}
            if metric == "mean_response":
                row["lower_bound"] = median.objective
            row |= {"sites": run.x.tolist(), "p_median_sites": median.sites.tolist(), "found": run.message}
            rows.append(row)
            show(done)
    return pd.DataFrame(rows, index=pd.Index(list(cities), name="label"))


def search_with_start(objective: Objective, before: IntArray | None, **options: Any) -> Run:
    """Return the better result of a `local_search` and, if ``before`` is allowed, a local search from there."""
    run = local_search(objective, **options)
    if before is not None and before in objective.space:
        run = min(run, local_search(objective, starts=[before]), key=lambda r: r.fun)
    return run


def load_sweep(city: City, units: int | DeploymentSpace, loads: ArrayLike, **options: Any) -> pd.DataFrame:
    """Run `sweep` over offered loads per unit, λ / (p μ), by scaling the call rates of the city.

    The default evaluator, approximate, is that of Table 1 of "Optimizing Server Locations in Spatial Queues".

    Examples
    --------
    >>> import emsopt as eo
    >>> city = eo.datasets.grid_city(n_sites=6, units=2, rng=1)
    >>> len(eo.planning.load_sweep(city, 2, [0.1, 0.5]))
    2
    """
    fleet = DeploymentSpace.of(city, units).units
    cities = {load: city.with_offered_load(load, fleet) for load in _positive_numbers(loads, "loads")}
    return sweep(cities, units, **{"evaluator": "approximate"} | options).rename_axis("offered_load")


def service_rate_sweep(city: City, units: int | DeploymentSpace, rates: ArrayLike, **options: Any) -> pd.DataFrame:
    """Run `sweep` over service rates μ, the number of calls that a busy unit serves per day.

    A mean service time of 1440 / μ minutes replaces the city's service times. The default evaluator, approximate, is
    that of Table 3 of the first version of "Optimizing Server Locations in Spatial Queues".

    Examples
    --------
    >>> import emsopt as eo
    >>> city = eo.datasets.grid_city(n_sites=6, units=2, rng=1)
    >>> len(eo.planning.service_rate_sweep(city, 2, [40, 50]))
    2
    """
    check_city(city)
    cities = {rate: city.replace(service_times=24 * 60 / rate) for rate in _positive_numbers(rates, "rates")}
    return sweep(cities, units, **{"evaluator": "approximate"} | options).rename_axis("service_rate_per_day")


def _positive_numbers(values: ArrayLike, name: str) -> list[float]:
    """Return numbers as a list; raise unless all are above 0."""
    return _validate.real_array(values, name, (None,), low=0, strictly=True).tolist()


def evaluate_table(
    city: City,
    deployments: Mapping[str, Sites],
    *,
    threshold: float = LATE_MIN,
    evaluator: str | None = None,
    **options: Any,
) -> pd.DataFrame:
    """Return the main results of several named deployments as a DataFrame, one row each.

    ``threshold`` is the response time (min) from which a call is late; ``evaluator`` and its ``options`` are as in
    `emsopt.evaluators.evaluate`.

    Examples
    --------
    >>> import emsopt as eo
    >>> city = eo.City([1, 2, 4], [[0, 6, 9], [4, 0, 5], [9, 5, 0]], turnout_times=1, service_times=30)
    >>> table = eo.planning.evaluate_table(city, {"west": [0, 1], "east": [1, 2]}, evaluator="exact")
    >>> table.iloc[:, 0].round(2).to_dict()
    {'west': 5.85, 'east': 3.52}
    """
    found = {name: evaluate(city, sites, evaluator, **options) for name, sites in deployments.items()}
    return pd.DataFrame({name: evaluation.summary(threshold) for name, evaluation in found.items()}).T


def scenario_row(
    city: City, name: str, evaluation: Evaluation, metric: str, threshold: float, baseline: Evaluation | None = None
) -> dict[str, Any]:
    """Return a row of the table of scenarios: the performance of a deployment and its gain over a baseline, by column.

    ``metric`` is the name of what is minimised. Responses of ``threshold`` minutes or more are late.
    """
    e, units = evaluation, len(evaluation.sites)
    figures = e.summary(threshold)
    late = figures.pop(f"late_over_{threshold:g}_min")  # a column name must not depend on the threshold
    gains = {}
    if baseline is not None:
        gains["gain_min"] = baseline.mean_response - e.mean_response
        gains["gain_late_fraction"] = baseline.late_fraction(threshold) - late
    return {
        "city": city.name,
        "deployment": name,
        "units": units,
        "calls_per_hour": city.total_rate,
        "offered_load": city.offered_load(units),
        "evaluator": e.evaluator,
        "capacity": e.capacity,
        "metric": metric,
        "threshold_min": threshold,
        "late_fraction": late,
        **figures,
        **gains,
        "sites": "; ".join(e.site_names),
    }
