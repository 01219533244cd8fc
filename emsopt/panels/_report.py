"""A page to print, for those who decide: a picture, today's figures beside the proposal, what was assumed."""

from __future__ import annotations

from base64 import b64encode
from html import escape
from typing import TYPE_CHECKING

from .. import plots
from .._version import __version__
from . import _charts
from ._widgets import lines, png, table

if TYPE_CHECKING:
    from ..evaluators import Evaluation
    from ._workbench import Workbench

STYLE = """
body { font: 14px/1.45 system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; color: #1b1b1b; margin: 20px auto;
  max-width: 900px; padding: 0 16px; }
h1 { font-size: 22px; margin: 0; } h2 { font-size: 16px; margin: 14px 0 4px; } p { margin: 3px 0 !important; }
table { border-collapse: collapse; } th, td { text-align: right; padding: 2px 10px; border-bottom: 1px solid #ccc; }
th[scope=row] { text-align: left; font-weight: normal; } img { max-width: 100%; }
.small { font-size: 12px; color: #444; } .emsopt-figures { line-height: 1.35; }
div[role=group] { overflow: visible !important; max-height: none !important; }
@media print { body { margin: 0; font-size: 11px; } img { max-height: 9.5cm; } h2 { break-after: avoid; }
  @page { size: A4; margin: 1.4cm; } }
"""
MOST_NAMED = 12  # stations that gain or lose a unit


def report(bench: Workbench) -> str:
    """Return the report on the deployments shown as one self-contained HTML page."""
    answer, at = bench.compute(), bench.at
    city, base = bench.city.scaled(at.load), bench.base(answer)
    best, how, best_name = bench._best()
    shown = {name: answer[name] for name in dict.fromkeys((base, "yours", best_name)) if name in answer}
    titles = {"yours": "proposed"}
    named = {titles.get(name, name): e for name, e in shown.items()}
    base = titles.get(base, base)
    sure = bench.trust.sure(shown, "yours" if base == "proposed" else base)
    if sure is not None:
        sure = sure[0], {titles.get(name, name): cell for name, cell in sure[1].items()}
    parts = [
        f"<h1>{escape(city.name)}: where should the units wait?</h1>",
        f"<p>{escape(_verdict(named, base, at.threshold))}</p>",
    ]
    if city.atom_locations is not None and city.site_locations is not None:
        made = png(lambda figure: plots.deployments(city, dict(list(named.items())[:2]), figure), dpi=120)
        source = b64encode(made).decode()
        parts.append(f"<img src='data:image/png;base64,{source}' alt='Map of {escape(' and '.join(list(named)[:2]))}'>")
    caption = f"{city.total_rate:.3g} calls per hour."
    parts += ["<h2>Figures</h2>", _charts.figures(caption, named, at.threshold, baseline=base, sure=sure)]
    if sure is None:
        parts.append(lines("How sure these gains are was not examined."))
    if best is not None:
        parts.append(lines(f"{best_name.capitalize()}: {how}."))
    if "proposed" in named and base != "proposed":
        parts += ["<h2>What changes</h2>", lines(*_moves(named[base], named["proposed"], base))]
    results = {result.kind: result for result in bench.trust.results}
    parts.append("<h2>Can the model be trusted?</h2>")
    if "back_test" in results:
        parts.append(lines(results["back_test"].title + ".", *results["back_test"].said))
    else:
        parts.append(lines("The model was not tested on recorded calls (no back-test)."))
    if "comparison" in results and sure is not None:
        parts.append(lines(*results["comparison"].said))
    rows = [(name.replace("_", " "), [str(value)]) for name, value in bench.made_with().items() if value != ""]
    parts += ["<h2>What was assumed</h2>", lines(city.notes or "No notes on the data."), "<div class='small'>"]
    parts += [table("", [], rows), "</div>", f"<p class='small'>Made with emsopt {escape(__version__)}.</p>"]
    policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(city.name)}</title>'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}"><style>{STYLE}</style></head>'
        f"<body>{''.join(parts)}</body></html>\n"
    )


def _verdict(named: dict[str, Evaluation], base: str, threshold: float) -> str:
    """Return the main results in two sentences: mean response and late responses."""
    late = {name: 100 * e.late_fraction(threshold) for name, e in named.items()}
    late_is = f"% of responses take {threshold:g} min or more"
    if base == "proposed" or "proposed" not in named:
        return f"The mean response is {named[base].mean_response:.2f} min. {late[base]:.1f} {late_is}."
    old, new = named[base], named["proposed"]

    def change(gain: float, form: str, less: str, more: str) -> str:
        """Return "0.25 min shorter than with today", or "the same as with today" if the gain rounds to 0."""
        size = form.format(abs(gain))
        same = not float(size.split()[0])
        return f"the same as with {base}" if same else f"{size} {less if gain > 0 else more} than with {base}"

    gain = change(old.mean_response - new.mean_response, "{:.2f} min", "shorter", "longer")
    fewer = change(late[base] - late["proposed"], "{:.1f} points", "fewer", "more")
    units = "" if len(old.sites) == len(new.sites) else f" ({len(new.sites)} units instead of {len(old.sites)})"
    return (
        f"With the proposed deployment{units}, the mean response is {new.mean_response:.2f} min: {gain} "
        f"({old.mean_response:.2f} min). {late['proposed']:.1f} {late_is}: {fewer} ({late[base]:.1f} %)."
    )


def _moves(old: Evaluation, new: Evaluation, base: str) -> list[str]:
    """Return in sentences which stations have fewer and more units."""
    before, after = ([*e.site_names] for e in (old, new))
    fewer, more = (
        [n for n in dict.fromkeys(a) if a.count(n) > b.count(n)] for a, b in ((before, after), (after, before))
    )
    if not fewer and not more:
        return [f"No unit changes its station: the proposal is {base}."]

    def listed(names: list[str]) -> str:
        rest = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
        return ", ".join(names[:MOST_NAMED]) + rest or "none"

    return [f"Fewer units than {base} at: {listed(fewer)}.", f"More units at: {listed(more)}."]
