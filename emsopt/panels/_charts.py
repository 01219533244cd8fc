"""Tables and pictures that compare deployments of a city, as HTML."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from html import escape
from typing import Any

import numpy as np

from .. import plots
from ..city import City
from ..errors._types import IntArray, Sites
from ..evaluators import Evaluation
from ..evaluators.enumeration import Enumeration
from ..maps import _colours
from ..maps.deployments import place_name
from ..planning.advice import names_with_counts
from ..planning.project import Result
from ._widgets import bar_cell, paragraphs, table, titled_image

SIMULATED_CALLS = 50_000  # calls per simulation
MAX_LISTED_ATOMS = 100  # atoms
MODEL_TITLES = {name: f"{name} hypercube" for name in ("exact", "approximate")}
MODEL_TITLES["simulation"] = f"simulation of {SIMULATED_CALLS:,} calls"


def has_coordinates(city: City) -> bool:
    """Return whether a city has coordinates."""
    return city.atom_locations is not None and city.site_locations is not None


def facts_line(facts: Mapping[str, Any]) -> str:
    """Return names and values as a line of text such as "load factor 1; colocation no", without empty values."""
    words = {True: "yes", False: "no"}
    texts = {name: words[value] if isinstance(value, bool) else f"{value}" for name, value in facts.items()}
    return "; ".join(f"{name.replace('_', ' ')} {text}" for name, text in texts.items() if text)


def place_names(city: City) -> list[str]:
    """Return a name for each of the G places (groups of interchangeable sites, `City.twin_groups`)."""
    groups, names = city.twin_groups, np.array(city.site_names)
    return [place_name(names[groups == place].tolist()) for place in range(groups.max() + 1)]


def place_counts(city: City, sites: Sites) -> IntArray:
    """Return the number of units of a deployment at each of the G places (see `place_names`), shape (G,)."""
    return np.bincount(city.twin_groups[sites], minlength=city.twin_groups.max() + 1)


def units_at(city: City, sites: Sites) -> str:
    """Return the places of a deployment as text, such as "Station 4, 9 x 2" for three units at two places."""
    return names_with_counts(np.array(place_names(city))[np.sort(city.twin_groups[sites])])


def figures_table(
    caption: str,
    evaluations: dict[str, Evaluation],
    threshold: float,
    means: Mapping[str, Iterable[Evaluation]] | None = None,
    baseline: str | None = None,
    interval: tuple[str, Mapping[str, str]] | None = None,
) -> str:
    """Return an HTML table that compares deployments, one column each.

    ``threshold`` is the response time (min) from which a call is late. ``means`` has evaluations of the same
    deployments by other models, by a suffix to the title of their row of mean responses. With the name of a
    ``baseline``, further rows have the gains over it; ``interval`` is the title of one more row and its cells by name.
    """
    values = evaluations.values()
    rows = {"units": [str(len(e.sites)) for e in values]}
    for model, several in (means or {"": values}).items():
        rows[f"mean response (min){model}"] = [f"{e.mean_response:.3f}" for e in several]
    measures: dict[str, Callable[[Evaluation], str]] = {
        f"responses of {threshold:g} min or more": lambda e: f"{e.late_fraction(threshold):.2%}",
        "90th percentile (min)": lambda e: f"{e.percentile_90:.2f}",
        "calls lost to the fleet": lambda e: f"{e.loss_probability:.2%}",
        "units busy, on average": lambda e: f"{e.utilizations.mean():.1%}",
        "busiest unit": lambda e: f"{e.utilizations.max():.1%}",
    }
    if baseline is not None:
        base = evaluations[baseline]
        mean, late, units = base.mean_response, base.late_fraction(threshold), len(base.sites)
        points = f"gain over {baseline}, points of {threshold:g} min or more"

        def if_same_fleet(gain: Callable[[Evaluation], str]) -> Callable[[Evaluation], str]:
            return lambda e: gain(e) if len(e.sites) == units else "–"  # a tenth unit is no gain over nine

        measures[f"gain over {baseline} (min)"] = if_same_fleet(lambda e: format_signed(mean - e.mean_response, 3))
        measures[points] = if_same_fleet(lambda e: format_signed(100 * (late - e.late_fraction(threshold)), 2))
    rows |= {title: [measure(e) for e in values] for title, measure in measures.items()}
    if interval is not None:
        rows[interval[0]] = [interval[1].get(name, "–") for name in evaluations]
    first = next(iter(values))
    rest = "are lost" if first.capacity == "loss" else "wait"
    caption += f" Figures: {MODEL_TITLES[first.evaluator]}; calls that find no unit free {rest}."
    return table(caption, evaluations, rows.items())


def format_signed(value: float, digits: int) -> str:
    """Return a number with its sign, +0 if it rounds to 0."""
    return f"{round(value, digits) + 0.0:+.{digits}f}"


def deployment_titles(evaluations: Mapping[str, Evaluation]) -> list[str]:
    """Return the names of deployments, with the numbers of units if these differ."""
    sizes = {name: len(e.sites) for name, e in evaluations.items()}
    differ = len(set(sizes.values())) > 1
    return [f"{name} ({units} units)" if differ else name for name, units in sizes.items()]


def atom_table(
    city: City, evaluations: Mapping[str, Evaluation], baseline: str, waits: Callable[[Evaluation, Evaluation], str]
) -> str:
    """Return an HTML table of each atom's mean response (min), the largest increases over ``baseline`` first.

    At most `MAX_LISTED_ATOMS` are listed. Sentences above count the atoms that gain and lose, and ``waits`` is called
    with two evaluations to say who waits longer.
    """
    base = evaluations[baseline].atom_response
    others = [name for name in evaluations if name != baseline]
    shown = [baseline, *others]
    changes = np.array([evaluations[name].atom_response - base for name in others]).reshape(len(others), len(base))
    order = np.argsort(-changes.max(axis=0, initial=-np.inf), kind="stable")[:MAX_LISTED_ATOMS]
    notes = []
    for name, change in zip(others, changes, strict=True):
        worse, better = change > 0.01, change < -0.01
        share = [f"{which.sum()} ({city.demand_shares[which].sum():.0%} of the calls)" for which in (better, worse)]
        said = f"{name}: faster than {baseline} in {share[0]}, slower in {share[1]} of {len(base)} districts."
        notes.append(f"{said} {waits(evaluations[baseline], evaluations[name])}")
    rows = []
    for j in order.tolist():
        texts = [f"{city.arrival_rates[j]:.3f}", f"{base[j]:.2f}"]
        texts += [f"{evaluations[name].atom_response[j]:.2f} ({format_signed(change[j], 2)})" for name, change in
                  zip(others, changes, strict=True)]  # fmt: skip
        rows.append((city.atom_names[j], texts))
    few = f" The {MAX_LISTED_ATOMS} with the largest losses of {len(base)} are listed." * (len(base) > MAX_LISTED_ATOMS)
    heads = deployment_titles({name: evaluations[name] for name in shown})
    caption = f"Mean response by district (min), and the difference to {baseline}.{few}"
    return paragraphs(*notes) + table(caption, ["calls per hour", *heads], rows)


def utilization_table(evaluations: dict[str, Evaluation]) -> str:
    """Return an HTML table with bars and figures for the mean utilisation of the units at each site."""
    cells: dict[tuple[int, str], list[str]] = defaultdict(lambda: [""] * len(evaluations))
    for k, (e, colour) in enumerate(zip(evaluations.values(), _colours.CATEGORY_COLOURS, strict=False)):
        names = dict(zip(e.sites.tolist(), e.site_names, strict=True))
        for site, name in names.items():
            shares = e.utilizations[e.sites == site]
            several = f" ({len(shares)} units)" if len(shares) > 1 else ""
            cells[site, name][k] = bar_cell(shares.mean(), colour, f"{shares.mean():.0%}{several}")
    rows = ((name, row) for (_, name), row in sorted(cells.items()))
    return table("How busy each unit is (share of the time)", deployment_titles(evaluations), rows)


def results_html(entries: Iterable[Result]) -> str:
    """Return the titles, sentences and tables of results of a project as HTML."""
    return "".join(
        f"<h4 style='margin:0.8em 0 0'>{escape(entry.title)}</h4>{paragraphs(*entry.sentences, *entry.details)}" + (
            "" if entry.table is None else table("", entry.table.columns, (
                (str(name).replace("_", " "), [_cell_text(value) for value in row])
                for name, row in zip(entry.table.index, entry.table.to_numpy(object), strict=True)
            ))
        )
        for entry in entries
    )  # fmt: skip


def _cell_text(value: object) -> str:
    """Return a cell of a result's table as text; numbers have three decimals unless these are 0."""
    if isinstance(value, (float, np.floating)):
        return "" if np.isnan(value) else f"{value:.3f}".removesuffix(".000")
    return "" if value is None else str(value)


def response_picture(evaluations: dict[str, Evaluation], threshold: float) -> str:
    """Return a histogram of response times as HTML, with a mark at ``threshold`` (min)."""
    said = ", ".join(f"{name} {e.late_fraction(threshold):.1%}" for name, e in evaluations.items())
    alt = f"Histogram of response times; {threshold:g} minutes or more take: {said}."

    def draw(ax: Any) -> object:
        return plots.response_histogram(evaluations, ax=ax, threshold=threshold)

    return titled_image(draw, "How long responses take", alt, size=(6.2, 3.9), box=(0.13, 0.16, 0.83, 0.71))


def alternatives_table(
    enumeration: Enumeration | None, k: int, threshold: float, baseline: tuple[str, Evaluation], intro: str
) -> str:
    """Return an HTML table of the ``k`` best deployments in an enumeration, or a sentence if ``enumeration`` is None.

    ``threshold`` is the response time (min) from which a call is late. ``baseline`` is the name of a deployment and its
    evaluation by the approximate model; a column has the gain over it. ``intro`` begins the caption.
    """
    if enumeration is None:
        return paragraphs(
            "There are too many deployments to evaluate all at every change. Press Search thoroughly: then those "
            "within one move of the best are listed here."
        )
    rows = {}
    for row in enumeration.alternatives(k, threshold=threshold).to_dict("records"):
        move = f"{row['moved_from']} → {row['moved_to']}" if row["moved_from"] else "the best"
        mean, late = f"{row['mean_response_min']:.3f}", f"{row[f'late_over_{threshold:g}_min']:.2%}"
        slowest, busiest = f"{row['percentile_90_min']:.2f}", f"{row['max_utilization']:.1%}"
        gain = format_signed(baseline[1].mean_response - row["mean_response_min"], 3)
        rows[f"{row['rank']}. {move}"] = [mean, gain, late, slowest, busiest]
    units, other = enumeration.sites.shape[1], len(baseline[1].sites)
    over = f"gain over {baseline[0]}{'' if other == units else f', which has {other} units,'} (min)"
    columns = ["mean response (min)", over, f"{threshold:g} min or more", "90th percentile (min)", "busiest unit"]
    return table(f"{intro}The {len(rows)} best deployments by the approximate model", columns, rows.items())
