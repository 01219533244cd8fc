"""Build the rows of tables that compare deployments in spreadsheets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..city.city import City
    from ..evaluators.evaluation import Evaluation


def scenario(
    city: City, name: str, evaluation: Evaluation, metric: str, threshold: float, baseline: Evaluation | None = None
) -> dict[str, Any]:
    """Return one row of a table of scenarios, by column: the objective ``metric`` and the results of a deployment.

    Responses of ``threshold`` minutes or more are late. Columns say what is gained over a ``baseline``.
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
