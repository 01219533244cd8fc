"""How the optimum moves as a city changes: load, service rate, fleet size."""

from .errors import InputError
from .evaluators.choose import evaluate
from .evaluators.p_median import p_median
from .objective import Objective
from .optimizers.local_search import best_deployment


def sweep(cities, units, *, evaluator="approximate", metric="mean_response", progress=None, **options):
    """Compare the optimum with the p-median deployment in a series of cities.

    Parameters
    ----------
    cities : mapping
        From a label (an offered load, say) to a `City`.
    units : int or mapping
        Fleet size p, or one for each label.
    evaluator, metric, **options
        As for `Objective`.
    progress : callable, optional
        Called with (cities done, cities in all).

    Returns
    -------
    DataFrame
        Indexed by label: the value of the optimum and of the p-median deployment, the p-median bound (min; Theorem 2,
        a bound of mean response only), the sites of both, and how the optimum was found.
    """
    import pandas as pd

    if not cities:
        msg = "`cities` is empty; pass at least one city."
        raise InputError(msg)
    rows = []
    for done, (label, city) in enumerate(cities.items(), 1):
        p = units[label] if hasattr(units, "keys") else units
        objective = Objective(city, p, evaluator, metric, **options)
        run = best_deployment(objective)
        space = objective.space
        median = p_median(city, p, pinned=space.pinned, closed=space.closed, colocation=space.colocation)
        rows.append(
            {
                "optimum": run.fun,
                "p_median": objective(median.sites),
                "lower_bound": median.objective,
                "sites": run.x.tolist(),
                "p_median_sites": median.sites.tolist(),
                "found": run.message,
            }
        )
        if progress is not None:
            progress(done, len(cities))
    return pd.DataFrame(rows, index=pd.Index(list(cities), name="label"))


def load_sweep(city, units, loads, **options):
    """Return `sweep` over offered loads λ / (p μ): the papers' Table 1."""
    table = sweep({load: city.with_offered_load(load, units) for load in loads}, units, **options)
    return table.rename_axis("offered_load")


def service_rate_sweep(city, units, rates, **options):
    """Return `sweep` over service rates μ in calls a day, the same everywhere: version one's Table 3."""
    table = sweep({rate: city.replace(service_times=24 * 60 / rate) for rate in rates}, units, **options)
    return table.rename_axis("service_rate_per_day")


def evaluate_table(city, deployments, *, threshold=8.0, evaluator=None, **options):
    """Return the headline figures of several named deployments, one row each, as a DataFrame."""
    import pandas as pd

    return pd.DataFrame(
        {
            name: evaluate(city, sites, evaluator, **options).summary(threshold)
            for name, sites in deployments.items()
        }
    ).T
