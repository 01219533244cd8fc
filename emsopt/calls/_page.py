"""Write the page of a back-test, as HTML: sentences, a table, and figures as inline SVG."""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape

import numpy as np
import pandas as pd

from ..errors._types import FloatArray

STYLE = """
body { font: 15px/1.5 system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; color: #1b1b1b; margin: 24px auto;
  max-width: 1080px; padding: 0 16px; }
h1 { font-size: 22px; } h2 { font-size: 16px; margin: 0 0 6px; }
table { border-collapse: collapse; margin: 12px 0; } th, td { text-align: right; padding: 2px 0 2px 18px; }
th:first-child { text-align: left; padding-left: 0; font-weight: 400; } thead th { border-bottom: 1px solid #999; }
.figures { display: flex; flex-wrap: wrap; gap: 24px 36px; margin-top: 20px; }
figure { margin: 0; } svg { max-width: 100%; }
svg text { font: 12px system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; fill: #333; } .note { color: #555; }
"""
RECORDED_COLOUR, MODELLED_COLOUR, OUTSIDE_COLOUR = "#0072B2", "#333333", "#D55E00"
INTERVAL_COLOUR, GRID_COLOUR = "#c9c9c9", "#e4e4e4"
SHARE_PREFIXES = ("late_", "utilization")  # shares are shown in percent; beginnings of their names
WIDTH, ROW_HEIGHT, LEFT, RIGHT, TOP = 500, 19, 120, 24, 34  # of a figure, its rows and its margins (px)
CITY_MODEL_NOTE = "City model: the model by which deployments are compared, with the calls of the days before."
LEGEND = f"""<p class="note"><svg width="14" height="12"><circle cx="7" cy="6" r="4.5" fill="{RECORDED_COLOUR}"/></svg>
recorded <svg width="14" height="12"><rect x="2.5" y="1.5" width="9" height="9" fill="{OUTSIDE_COLOUR}"/></svg>
recorded, outside the interval
<svg width="34" height="12"><path d="M1 6H33" stroke="{INTERVAL_COLOUR}" stroke-width="6"/>
<path d="M17 1V11" stroke="{MODELLED_COLOUR}" stroke-width="2"/></svg> modelled, with the interval of 90 %</p>"""


def html_document(title: str, style: str, body: str) -> str:
    """Return an HTML page that may load nothing; ``body`` is HTML, ``style`` CSS, ``title`` plain text."""
    policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}"><style>{style}</style></head>'
        f"<body>{body}</body></html>\n"
    )


def back_test_body(
    title: str, sentences: Iterable[str], table: pd.DataFrame, figures: Iterable[str], notes: Iterable[str]
) -> str:
    """Return the body of a page on a back-test, as HTML; ``figures`` are HTML, all other texts are plain."""
    items = "".join(f"<li>{escape(sentence)}</li>" for sentence in sentences)
    forms = {name: "{:.1%}" if name.startswith(SHARE_PREFIXES) else "{:.2f}" for name in map(str, table.index)}
    cells = table.apply(lambda row: row.map(forms[str(row.name)].format), axis=1).where(table.notna(), "")
    cells = cells.rename(index=_label_of_measure, columns=lambda name: name.replace("_", " "))
    below = "".join(f"<p class='note'>{escape(note)}</p>" for note in (*notes, CITY_MODEL_NOTE))
    drawn = "".join(f"<figure>{figure}</figure>" for figure in figures)
    return (
        f"<h1>{escape(title)}</h1><ul>{items}</ul>{cells.to_html(border=0)}{below}{LEGEND}"
        f'<div class="figures">{drawn}</div>'
    )


def _label_of_measure(name: str) -> str:
    """Return the name of a measure in words: "90th percentile (min)" for ``percentile_90_min``."""
    if late := re.fullmatch(r"late_over_(.+)_min", name):
        return f"share over {late[1]} min"
    name = re.sub(r"percentile_(\d+)", r"\1th percentile", name).replace("utilization", "share of time units are busy")
    return re.sub(r"_min$", " (min)", name).replace("_", " ")


def dot_plot(frame: pd.DataFrame, title: str, unit: str) -> str:
    """Return a dot plot, as HTML, of recorded and modelled values with intervals; in percent if ``unit`` is empty."""
    values = frame[["recorded", "modelled", "low", "high"]].to_numpy(float)
    low, high = (np.nanmin(values) if unit else 0.0), np.nanmax(values)
    span = max(high - low, 1e-9)
    power = 10 ** np.floor(np.log10(span / 3))
    step = power * next(m for m in (1, 2, 5, 10) if span / (power * m) <= 7)  # at most seven steps
    first = np.floor(low / step)
    ticks = step * np.arange(first, max(np.ceil(high / step), first + 1) + 1)  # equal values would leave no width

    def to_pixels(value: FloatArray) -> FloatArray:
        return LEFT + (WIDTH - LEFT - RIGHT) * (value - ticks[0]) / (ticks[-1] - ticks[0])

    bottom = TOP + ROW_HEIGHT * len(frame)
    marks = [f'<text x="{LEFT - 24}" y="{TOP - 10}" text-anchor="end">{escape(unit)}</text>']
    for tick, x in zip(ticks, to_pixels(ticks), strict=True):
        said = f"{tick:.4g}" if unit else f"{100 * tick:.4g} %"
        marks.append(
            f'<path d="M{x:.1f} {TOP - 4}V{bottom}" stroke="{GRID_COLOUR}"/>'
            f'<text x="{x:.1f}" y="{TOP - 10}" text-anchor="middle">{said}</text>'
        )
    for k, (name, (recorded, modelled, low, high)) in enumerate(zip(frame.index, to_pixels(values), strict=True)):
        y = TOP + ROW_HEIGHT * (k + 0.5)
        marks.append(
            f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{escape(str(name))[:60]}</text>'
            f'<path d="M{low:.1f} {y:.1f}H{high:.1f}" stroke="{INTERVAL_COLOUR}" stroke-width="7"/>'
            f'<path d="M{modelled:.1f} {y - 6:.1f}v12" stroke="{MODELLED_COLOUR}" stroke-width="2"/>'
        )
        if low <= recorded <= high:
            marks.append(f'<circle cx="{recorded:.1f}" cy="{y:.1f}" r="4.5" fill="{RECORDED_COLOUR}"/>')
        elif not np.isnan(recorded):
            marks.append(
                f'<rect x="{recorded - 4.5:.1f}" y="{y - 4.5:.1f}" width="9" height="9" fill="{OUTSIDE_COLOUR}"/>'
            )
    return (
        f"<h2>{escape(title)}</h2><svg role='img' aria-label='{escape(title)}' width='{WIDTH}' height='{bottom + 24}' "
        f"viewBox='0 0 {WIDTH} {bottom + 24}'>{''.join(marks)}</svg>"
    )
