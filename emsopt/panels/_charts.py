"""What the dashboard shows of some deployments: figures, bars, a histogram, and the alternatives."""

from html import escape

from .. import plots
from ..maps import _shading
from . import _widgets


def figures(city, evaluations, found, threshold):
    """Return a table of the deployments, as HTML; ``found`` says how the optimum was."""
    shown = evaluations.values()
    model = next(iter(shown)).evaluator
    rows = {
        "units": [str(len(e.sites)) for e in shown],
        "mean response (min)": [f"{e.mean_response:.3f}" for e in shown],
    }
    rows |= _widgets.performance(shown, threshold)
    caption = (
        f"{city.name}: {city.total_rate:.3g} calls an hour. Figures by {'' if model == 'simulation' else 'the '}{model}"
        f"{'' if model == 'simulation' else ' hypercube model'}; calls that find no unit free are lost. Optimum: {found}."
    )
    return _widgets.table(caption, list(evaluations), rows)


def busy(evaluations):
    """Return bars of how busy the units are, as an HTML table: it is drawn at once, and a screen reader can read it."""
    rows = {}  # site -> {deployment: (name, utilisation)}
    for name, e in evaluations.items():
        for site, title, share in zip(e.sites.tolist(), e.site_names, e.utilizations.tolist(), strict=True):
            rows.setdefault(site, {})[name] = title, share
    head = "".join(f"<th scope='col' style='text-align:left'>{escape(name)}</th>" for name in evaluations)
    body = ""
    for _, units in sorted(rows.items()):
        title = next(iter(units.values()))[0]
        bars = (_bar(units[name][1], k) if name in units else "<td></td>" for k, name in enumerate(evaluations))
        body += f"<tr><th scope='row'>{escape(title)}</th>{''.join(bars)}</tr>"
    title = "How busy each unit is (share of the time)"
    return (
        f"{_widgets.TABLE_STYLE}<figure style='margin:0.4em 0'>{_widgets.caption(title)}<div style='overflow:auto;max-height:30em'>"
        f"<table class='emsopt-figures' aria-label='{title}'><tr><td></td>{head}</tr>{body}</table></div></figure>"
    )


def _bar(share, k):
    """Return a cell with a bar as long as ``share`` and its figure beside it."""
    colour = _shading.CATEGORIES[k % len(_shading.CATEGORIES)]
    style = f"display:inline-block;height:0.8em;width:{10 * share:.2f}em;background:{colour};margin-right:0.4em"
    return f"<td style='text-align:left;padding:0.05em 0.9em'><span style='{style}'></span>{share:.0%}</td>"


def responses(evaluations, threshold):
    """Draw how long responses take, as HTML."""
    said = ", ".join(f"{name} {e.late_fraction(threshold):.1%}" for name, e in evaluations.items())
    return _widgets.picture(
        lambda axes: plots.response_histogram(evaluations, axes, threshold=threshold),
        "How long responses take",
        f"Histogram of response times; {threshold:g} minutes or more take: {said}.",
        size=(6.2, 3.9),
        box=(0.13, 0.16, 0.83, 0.71),
    )


def alternatives(everything, k, threshold):
    """Return a table of the best deployments, as HTML; nothing if not all were tried."""
    if everything is None:
        return _widgets.lines("There are too many deployments to try all at every change, so no list of alternatives.")
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
    return _widgets.table(f"The {len(rows)} best deployments by the approximate model", columns, rows)
