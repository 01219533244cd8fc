"""Build the rows of tables that compare deployments in spreadsheets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..city.city import City
    from ..evaluators.evaluation import Evaluation


def scenario(
    city: City, name: str, evaluation: Evaluation, metric: str, threshold: float, baseline: Evaluation | None = None
) -> dict[str, Any]:
    """Return one row of a table of scenarios, with the objective and the results of a deployment.

    Parameters
    ----------
    city : City
    name : str
        Name of the deployment.
    evaluation : Evaluation
    metric : str
        Name of the metric that was minimised.
    threshold : float
        Responses of this many minutes or more are late.
    baseline : Evaluation, optional
        Deployment to compare with, such as today's: columns say what is gained over it.

    Returns
    -------
    dict
        From column names to values.
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
