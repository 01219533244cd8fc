"""Find how the optimum changes with load, service rate or fleet size."""

from collections.abc import Mapping

import numpy as np

from .. import _validate
from .._running.progress import bar
from ..city.city import check_city
from ..city.deployment import DeploymentSpace
from ..errors import InputError
from ..evaluators.by_name import evaluate
from ..evaluators.median import p_median
from ..evaluators.objective import Objective
from ..optimizers.deployments.swaps import AFFORDABLE, best_deployment, local_search


def sweep(cities, units, *, evaluator=None, metric="mean_response", progress=None, **options):
    """Compare the optimum with the p-median deployment for a series of cities.

    Parameters
    ----------
    cities : mapping
        From a label, such as an offered load, to a `City`.
    units : int, DeploymentSpace or mapping
        Fleet size p or the allowed deployments, for all cities or for each label.
    evaluator, metric, **options
        As for `Objective`.
    progress : bool or callable
        True shows a bar; a function is called with (cities done, cities in all).

    Returns
    -------
    DataFrame
        Indexed by label: the values of the optimum and of the p-median deployment; the p-median bound (min;
        Theorem 2) if the metric is mean response; the sites of both; and how the optimum was found.

    Notes
    -----
    All deployments of all cities are enumerated if their total number is small enough for `best_deployment`.
    Otherwise each city is searched from several starts, including the optimum of the previous city.
    """
    import pandas as pd

    if not isinstance(cities, Mapping) or not cities:
        raise InputError(f"`cities` must map labels to at least one City; got {cities!r}.")
    if isinstance(units, Mapping) and set(cities) - set(units):
        raise InputError(
            "`units` must be one number or have an entry for every label of `cities`; missing: "
            f"{next(iter(set(cities) - set(units)))!r}."
        )
    rows, before = [], None
    with bar(progress, len(cities), "city") as show:
        for done, (label, city) in enumerate(cities.items(), 1):
            objective = Objective(
                city, units[label] if isinstance(units, Mapping) else units, evaluator, metric, **options
            )
            space = objective.space
            if space.count * len(cities) <= AFFORDABLE[objective.evaluator]:
                run = best_deployment(objective)
            else:
                run = local_search(objective, rng=0)
                if before is not None and before in space:
                    run = min(run, local_search(objective, starts=[before]), key=lambda r: r.fun)
            before = run.x
            median = p_median(city, space)
            row = {"optimum": run.fun, "p_median": objective(median.sites)}
            if metric == "mean_response":
                row["lower_bound"] = median.objective
            rows.append(row | {"sites": run.x.tolist(), "p_median_sites": median.sites.tolist(), "found": run.message})
            show(done)
    return pd.DataFrame(rows, index=pd.Index(list(cities), name="label"))


def load_sweep(city, units, loads, **options):
    """Run `sweep` over offered loads λ / (p μ) with the approximate evaluator (the papers' Table 1)."""
    fleet = DeploymentSpace.of(city, units).units
    table = sweep({r: city.with_offered_load(r, fleet) for r in _series(loads, "loads")}, units, **_paper(options))
    return table.rename_axis("offered_load")


def service_rate_sweep(city, units, rates, **options):
    """Run `sweep` over service rates μ (calls per day), approximately (first version's Table 3)."""
    check_city(city)
    served = {mu: city.replace(service_times=24 * 60 / mu) for mu in _series(rates, "rates")}
    table = sweep(served, units, **_paper(options))
    return table.rename_axis("service_rate_per_day")


def _series(values, name):
    if isinstance(values, str) or not np.iterable(values):
        raise InputError(f"`{name}` must be a sequence of numbers; got {values!r}.")
    return [_validate.positive_number(value, name) for value in values]


def _paper(options):
    """Default to the evaluator of the papers' tables, the approximate hypercube."""
    return {"evaluator": "approximate"} | options


def evaluate_table(city, deployments, *, threshold=8.0, evaluator=None, **options):
    """Return the main results of several named deployments as a DataFrame, one row each."""
    import pandas as pd

    return pd.DataFrame(
        {name: evaluate(city, sites, evaluator, **options).summary(threshold) for name, sites in deployments.items()}
    ).T
