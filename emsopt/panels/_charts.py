"""What the dashboard shows of some deployments: figures, bars, a histogram, and the alternatives."""

from .. import plots
from . import _parts

MOST_BARS = 40  # sites with a unit; more would be unreadable


def figures(city, evaluations, found, threshold):
    """Return a table of the deployments, as HTML; ``found`` says how the optimum was."""
    shown = evaluations.values()
    model = next(iter(shown)).evaluator
    rows = {
        "units": [str(len(e.sites)) for e in shown],
        "mean response (min)": [f"{e.mean_response:.3f}" for e in shown],
    }
    rows |= _parts.performance(shown, threshold)
    caption = (
        f"{city.name}: {city.total_rate:.3g} calls an hour. Figures by {'' if model == 'simulation' else 'the '}{model}"
        f"{'' if model == 'simulation' else ' hypercube model'}; calls that find no unit free are lost. Optimum: {found}."
    )
    return _parts.table(caption, list(evaluations), rows)


def busy(evaluations):
    """Draw how busy the units are, as HTML."""
    rows = len({site for e in evaluations.values() for site in e.sites.tolist()})
    if rows > MOST_BARS:
        return "<p>Too many sites have a unit to draw a bar for each.</p>"
    said = ", ".join(f"{name} {e.utilizations.mean():.0%}" for name, e in evaluations.items())
    high = 1.3 + 0.3 * rows
    return _parts.picture(
        lambda axes: plots.utilization(evaluations, axes),
        "How busy each unit is",
        f"Utilisation of every unit; on average {said}.",
        size=(6.2, high),
        box=(0.33, 0.6 / high, 0.63, 1 - 1.05 / high),
    )


def responses(evaluations, threshold):
    """Draw how long responses take, as HTML."""
    said = ", ".join(f"{name} {e.late_fraction(threshold):.1%}" for name, e in evaluations.items())
    return _parts.picture(
        lambda axes: plots.response_histogram(evaluations, axes, threshold=threshold),
        "How long responses take",
        f"Histogram of response times; {threshold:g} minutes or more take: {said}.",
        size=(6.2, 3.9),
        box=(0.13, 0.16, 0.83, 0.71),
    )


def alternatives(everything, k, threshold):
    """Return a table of the best deployments, as HTML; nothing if not all were tried."""
    if everything is None:
        return _parts.lines(
            "There are too many deployments to try all at every change, so no list of alternatives."
        )
    frame = everything.alternatives(k, threshold=threshold)
    rows = {}
    for row in frame.to_dict("records"):
        move = f"{row['moved_from']} → {row['moved_to']}" if row["moved_from"] else "the optimum"
        rows[f"{row['rank']}. {move}"] = [
            f"{row['mean_response_min']:.3f}",
            f"{row[f'late_over_{threshold:g}_min']:.2%}",
            f"{row['percentile_90_min']:.2f}",
            f"{row['max_utilization']:.1%}",
        ]
    columns = ["mean response (min)", f"{threshold:g} min or more", "90th percentile (min)", "busiest unit"]
    return _parts.table(f"The {len(rows)} best deployments by the approximate model", columns, rows)
