"""Tables that people open in a spreadsheet."""


def scenario(city, name, evaluation, metric, threshold):
    """Return one row of a table of scenarios: the question that was asked, and the figures.

    Parameters
    ----------
    city : City
    name : str
        Of the deployment.
    evaluation : Evaluation
    metric : str
        What was minimised, in a word.
    threshold : float
        Minutes from which a response is late.

    Returns
    -------
    dict
    """
    e, units = evaluation, len(evaluation.sites)
    figures = e.summary(threshold)
    del figures[f"late_over_{threshold:g}_min"]  # a name that changes with the threshold is no column
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
    """Return a table in which a spreadsheet takes no text for a formula."""
    safe = table.copy()
    for column in safe.columns:
        if safe[column].map(lambda cell: isinstance(cell, str)).any():
            safe[column] = safe[column].map(_no_formula)
    return safe.rename(columns=_no_formula)


def _no_formula(cell):
    return "'" + cell if isinstance(cell, str) and cell[:1] in ("=", "+", "-", "@", "\t", "\r") else cell
