"""Tables for spreadsheets."""


def scenario(city, name, evaluation, metric, threshold):
    """Return one row of a table of scenarios: the objective and the results.

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

    Returns
    -------
    dict
    """
    e, units = evaluation, len(evaluation.sites)
    figures = e.summary(threshold)
    del figures[f"late_over_{threshold:g}_min"]  # a column name must not depend on the threshold
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
        "late_fraction": e.late_fraction(threshold),
        **figures,
        "sites": "; ".join(e.site_names),
    }


def without_formulas(table):
    """Escape texts that a spreadsheet would take for formulas."""
    safe = table.copy()
    for column in safe.columns:
        if safe[column].map(lambda cell: isinstance(cell, str)).any():
            safe[column] = safe[column].map(_no_formula)
    return safe.rename(columns=_no_formula)


def _no_formula(cell):
    return "'" + cell if isinstance(cell, str) and cell[:1] in ("=", "+", "-", "@", "\t", "\r") else cell
