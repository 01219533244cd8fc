"""Tables and pictures of deployments, as HTML."""

from __future__ import annotations

from collections import defaultdict
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from .. import plots
from ..maps import _colours
from ..maps.deployments import place_name
from ._widgets import bar, lines, picture, table

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from .._types import IntArray, Sites
    from ..city import City
    from ..evaluators import Evaluation
    from ..evaluators.enumeration import Enumeration

CALLS = 50_000  # calls per simulation
MODELS = {name: f"{name} hypercube" for name in ("exact", "approximate")}
MODELS["simulation"] = f"simulation of {CALLS:,} calls"


def place_names(city: City) -> list[str]:
    """Return a name for each place. Interchangeable sites (see `City.twin_groups`) count as one place."""
    groups, names = city.twin_groups, np.array(city.site_names)
    return [place_name(names[groups == place].tolist()) for place in range(groups.max() + 1)]


def place_counts(city: City, sites: Sites) -> IntArray:
    """Return the number of units at each of the G places (groups of interchangeable sites), shape (G,)."""
    return np.bincount(city.twin_groups[sites], minlength=city.twin_groups.max() + 1)


def units_at(city: City, sites: Sites) -> str:
    """Return the places of a deployment as text: "Station 4, Station 9 × 2"."""
    pairs = zip(place_names(city), place_counts(city, sites), strict=True)
    return ", ".join(f"{name} × {n}" if n > 1 else name for name, n in pairs if n)


def figures(
    caption: str,
    evaluations: dict[str, Evaluation],
    threshold: float,
    means: Mapping[str, Iterable[Evaluation]] | None = None,
    baseline: str | None = None,
) -> str:
    """Return a table that compares deployments, one column each.

    ``threshold`` is the response time (min) from which a call is late. There is one row of mean responses for each key
    of ``means``, which holds the evaluations of the same deployments by several models; by default there is one row,
    from ``evaluations``. With ``baseline``, one of the names, rows say what each deployment gains over that one.
    """
    shown = evaluations.values()
    rows = {"units": [str(len(e.sites)) for e in shown]}
    for model, several in (means or {"": shown}).items():
        rows[f"mean response (min){model}"] = [f"{e.mean_response:.3f}" for e in several]
    rows |= {
        f"responses of {threshold:g} min or more": [f"{e.late_fraction(threshold):.2%}" for e in shown],
        "90th percentile (min)": [f"{e.percentile_90:.2f}" for e in shown],
        "calls lost to the fleet": [f"{e.loss_probability:.2%}" for e in shown],
        "units busy, on average": [f"{e.utilizations.mean():.1%}" for e in shown],
        "busiest unit": [f"{e.utilizations.max():.1%}" for e in shown],
    }
    if baseline is not None:
        base = evaluations[baseline]
        rows[f"gain over {baseline} (min)"] = [f"{base.mean_response - e.mean_response:+.3f}" for e in shown]
        late = [base.late_fraction(threshold) - e.late_fraction(threshold) for e in shown]
        rows[f"gain over {baseline}, points of {threshold:g} min or more"] = [f"{100 * gain:+.2f}" for gain in late]
    caption += f" Figures: {MODELS[next(iter(shown)).evaluator]}; calls that find no unit free are lost."
    return table(caption, evaluations, rows.items())


def busy(evaluations: dict[str, Evaluation]) -> str:
    """Return a table with a bar for the utilisation of each unit. Screen readers can read it, unlike a picture."""
    cells: dict[tuple[int, str], list[str]] = defaultdict(lambda: [""] * len(evaluations))
    for k, (e, colour) in enumerate(zip(evaluations.values(), _colours.CATEGORIES, strict=False)):
        for site, name, share in zip(e.sites.tolist(), e.site_names, e.utilizations.tolist(), strict=True):
            cells[site, name][k] = bar(share, colour, f"{share:.0%}")
    rows = ((name, row) for (_, name), row in sorted(cells.items()))
    return table("How busy each unit is (share of the time)", evaluations, rows)


def responses(evaluations: dict[str, Evaluation], threshold: float) -> str:
    """Return a histogram of response times as HTML; ``threshold`` (min) is marked."""
    said = ", ".join(f"{name} {e.late_fraction(threshold):.1%}" for name, e in evaluations.items())
    alt = f"Histogram of response times; {threshold:g} minutes or more take: {said}."
    draw = partial(plots.response_histogram, evaluations, threshold=threshold)
    return picture(draw, "How long responses take", alt, size=(6.2, 3.9), box=(0.13, 0.16, 0.83, 0.71))


def alternatives(
    everything: Enumeration | None, k: int, threshold: float, baseline: tuple[str, Evaluation] | None = None
) -> str:
    """Return a table of the ``k`` best deployments in an enumeration, or a sentence if ``everything`` is None.

    ``threshold`` is the response time (min) from which a call is late. ``baseline`` is the name of a deployment and its
    evaluation by the approximate model; a column says what is gained over it.
    """
    if everything is None:
        return lines("There are too many deployments to evaluate all at every change, so none are listed here.")
    rows = {}
    for row in everything.alternatives(k, threshold=threshold).to_dict("records"):
        move = f"{row['moved_from']} → {row['moved_to']}" if row["moved_from"] else "the optimum"
        mean, late = f"{row['mean_response_min']:.3f}", f"{row[f'late_over_{threshold:g}_min']:.2%}"
        slowest, busiest = f"{row['percentile_90_min']:.2f}", f"{row['max_utilization']:.1%}"
        gain = [] if baseline is None else [f"{baseline[1].mean_response - row['mean_response_min']:+.3f}"]
        rows[f"{row['rank']}. {move}"] = [mean, *gain, late, slowest, busiest]
    columns = ["mean response (min)", f"{threshold:g} min or more", "90th percentile (min)", "busiest unit"]
    columns[1:1] = [] if baseline is None else [f"gain over {baseline[0]} (min)"]
    return table(f"The {len(rows)} best deployments by the approximate model", columns, rows.items())
