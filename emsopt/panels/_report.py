"""A printable report for decision makers: map, figures of today's and the proposed deployment, and assumptions."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from .. import plots
from ..calls._page import html_document
from ..evaluators import Evaluation
from ..planning.advice import list_changes, names_with_counts
from ..planning.project import Result
from . import _charts
from ._tabs import Workbench
from ._widgets import image, paragraphs

STYLE = """
body { font: 14px/1.45 system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; color: #1b1b1b; margin: 20px auto;
  max-width: 900px; padding: 0 16px; }
h1 { font-size: 22px; margin: 0; } h2 { font-size: 16px; margin: 14px 0 4px; }
p { margin: 3px 0 !important; max-width: none !important; }
table { border-collapse: collapse; } th, td { text-align: right; padding: 2px 10px; border-bottom: 1px solid #ccc; }
th[scope=row] { text-align: left; font-weight: normal; } img { max-width: 100%; }
.small { font-size: 12px; color: #444; } .emsopt-figures { line-height: 1.35 !important; }
.pair { display: flex; flex-wrap: wrap; gap: 0 24px; } .pair > :last-child { flex: 1 1 220px; }
div[role=group] { overflow: visible !important; max-height: none !important; }
@media print { body { margin: 0; padding: 0; max-width: none; font-size: 10px; line-height: 1.3; }
  h1 { font-size: 17px; } h2 { font-size: 12px; margin: 7px 0 1px; break-after: avoid; } .small { font-size: 8.5px; }
  .pair { flex-wrap: nowrap; }
  p { margin: 1px 0 !important; line-height: 1.3 !important; } th, td { padding: 0.5px 8px !important; }
  img { max-height: 8.4cm; display: block; margin: auto; } @page { size: A4; margin: 1.3cm; } }
"""


def report_html(bench: Workbench) -> str:
    """Return a report on the deployments that ``bench`` shows as one self-contained HTML page for one printed sheet."""
    answer, at = bench.compute(), bench.values
    city, base = bench.loaded_city, bench.baseline_name(answer)
    best, how, best_name = bench.best_known_deployment()
    taken = best is not None and sorted(best) == sorted(answer["yours"].sites.tolist())
    shown = dict.fromkeys((base, "yours", *([] if taken else [best_name])))
    titles = {"yours": "proposed"}
    named = {titles.get(name, name): answer[name] for name in shown if name in answer}
    base = titles.get(base, base)
    interval = bench.trust.interval_row(named, base)
    parts = [
        f"<h1>{escape(city.name)}: where should the units wait?</h1>",
        f"<p>{escape(_comparison_sentences(named, base, at.threshold))}{_better_sentence(named, best_name)}</p>",
        *map(paragraphs, filter(None, [bench.trust.caution_text(len(answer["yours"].sites))])),
    ]
    if _charts.has_coordinates(city):
        pair, plain = dict(list(named.items())[:2]), city.replace(notes="")  # the notes stand below
        parts.append(image(lambda figure: plots.deployments(plain, pair, figure), f"Map of {' and '.join(pair)}", 120))
    caption = f"{city.total_rate:.3g} calls per hour."
    figures = "<h2>Figures</h2>" + _charts.figures_table(caption, named, at.threshold, baseline=base, interval=interval)
    if interval is None:
        figures += paragraphs("How sure these gains are was not examined.")
    if best is not None:
        figures += paragraphs(f"{'The proposal' if taken else best_name.capitalize()}: {how}.")
    longer = bench.longer_wait_sentence(named[base], named.get("proposed", named[base]))
    places = "<h2>Where the units stand</h2>" + paragraphs(*_place_sentences(named, base), *filter(None, [longer]))
    parts.append(f"<div class='pair'><div>{figures}</div><div>{places}</div></div>")
    results = {result.kind: result for result in bench.trust.results}
    parts += ["<h2>Can the model be trusted?</h2>", *_model_findings(results, interval=interval is not None)]
    parts += ["<h2>What was assumed</h2>", paragraphs(city.notes or "No notes on the data.")]
    parts += [f"<p class='small'>Made with: {escape(_charts.facts_line(bench.reproduction_facts()))}.</p>"]
    return html_document(city.name, STYLE, "".join(parts))


def _comparison_sentences(named: dict[str, Evaluation], base: str, threshold: float) -> str:
    """Return sentences that compare the mean response (min) and late responses of the proposal with those of ``base``.

    Responses of ``threshold`` minutes or more are late.
    """
    late = {name: 100 * e.late_fraction(threshold) for name, e in named.items()}
    late_is = f"% of responses take {threshold:g} min or more"
    if base == "proposed" or "proposed" not in named:
        return f"The mean response is {named[base].mean_response:.2f} min. {late[base]:.1f} {late_is}."
    old, new = named[base], named["proposed"]

    def change(gain: float, form: str, less: str, more: str) -> str:
        """Return text such as "0.25 min shorter than with today", "the same as with today" if ``gain`` is 0."""
        size = form.format(abs(gain))
        same = not float(size.split()[0])
        return f"the same as with {base}" if same else f"{size} {less if gain > 0 else more} than with {base}"

    # Of rounded values, so that the reader who subtracts finds the same.
    gain = change(round(old.mean_response, 2) - round(new.mean_response, 2), "{:.2f} min", "shorter", "longer")
    fewer = change(round(late[base], 1) - round(late["proposed"], 1), "{:.1f} points", "fewer", "more")
    units = "" if len(old.sites) == len(new.sites) else f" ({len(new.sites)} units instead of {len(old.sites)})"
    return (
        f"With the proposed deployment{units}, the mean response is {new.mean_response:.2f} min: {gain} "
        f"({old.mean_response:.2f} min). {late['proposed']:.1f} {late_is}: {fewer} ({late[base]:.1f} %)."
    )


def _better_sentence(named: dict[str, Evaluation], best: str) -> str:
    """Return a sentence if the deployment ``best`` has a shorter mean response than the proposed one, else ""."""
    gain = named["proposed"].mean_response - named[best].mean_response if {"proposed", best} <= set(named) else 0.0
    if gain < 0.005:
        return ""
    return f" The search found one that is {gain:.2f} min shorter still ({best}, below): it is not proposed here."


def _place_sentences(named: dict[str, Evaluation], base: str) -> list[str]:
    """Return sentences on the stations of the proposed units, and on those with fewer or more units than ``base``."""
    new = named.get("proposed", named[base])
    sentences = [f"{len(new.sites)} units at {len(set(new.site_names))} stations: {names_with_counts(new.site_names)}."]
    if base == "proposed" or "proposed" not in named:
        return sentences
    fewer, more = list_changes(named[base].site_names, new.site_names)
    if fewer == more:
        return [*sentences, f"No unit changes its station: the proposal is {base}."]
    return [*sentences, f"Fewer units than {base} at: {fewer}.", f"More units at: {more}."]


def _model_findings(results: dict[str, Result], *, interval: bool) -> Iterable[str]:
    """Yield paragraphs on the back-test, recorded responses and, if ``interval``, how certain the gain is."""
    if "back_test" in results:
        yield paragraphs(results["back_test"].title + ".", " ".join(results["back_test"].sentences))
    else:
        yield paragraphs("The model was not tested on days held out of the log (no back-test).")
    if "recorded" in results and (cells := results["recorded"].table) is not None:
        said = "; ".join(f"{name} {' and '.join(map(str, row))}" for name, *row in cells.itertuples())
        yield paragraphs(f"{results['recorded'].title}: {said}. {' '.join(results['recorded'].sentences)}")
    if "comparison" in results and interval:
        said = " ".join(results["comparison"].sentences[1:])  # the first sentence is the row in the table of figures
        yield paragraphs(f"How sure the gain is ('yours' is the proposal): {said}")
