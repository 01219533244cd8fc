"""A self-contained page of recorded beside modelled values: sentences, a table and figures as inline SVG."""

import re
from collections.abc import Callable, Iterable
from html import escape
from typing import TypeAlias

import numpy as np
import pandas as pd

from .._types import FloatArray

Scale: TypeAlias = Callable[[float], float]

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
RECORDED, MODELLED, OUTSIDE, BAND = "#0072B2", "#333333", "#D55E00", "#c9c9c9"
GRID = "#e4e4e4"
SHARES = ("late_", "utilization")  # shares are shown in percent; beginnings of their names
WIDTH, ROW, LEFT, RIGHT, TOP = 500, 19, 120, 24, 34
CITY_MODEL = "City model: the model by which deployments are compared, with the calls of the days before."
KEY = f"""<p class="note"><svg width="14" height="12"><circle cx="7" cy="6" r="4.5" fill="{RECORDED}"/></svg> recorded
<svg width="14" height="12"><rect x="2.5" y="1.5" width="9" height="9" fill="{OUTSIDE}"/></svg> recorded, outside
the interval <svg width="34" height="12"><path d="M1 6H33" stroke="{BAND}" stroke-width="6"/>
<path d="M17 1V11" stroke="{MODELLED}" stroke-width="2"/></svg> modelled, with the interval of 90 %</p>"""


def document(title: str, style: str, body: str) -> str:
    """Return an HTML page that loads nothing from elsewhere; ``body`` is HTML, the title is text."""
    policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}"><style>{style}</style></head>'
        f"<body>{body}</body></html>\n"
    )


def body(
    title: str, sentences: Iterable[str], table: pd.DataFrame, figures: Iterable[str], notes: Iterable[str]
) -> str:
    """Return the body of the page as HTML; ``figures`` are SVG, all other arguments text."""
    items = "".join(f"<li>{escape(sentence)}</li>" for sentence in sentences)
    head = "".join(f"<th>{escape(str(name).replace('_', ' '))}</th>" for name in ("", *table.columns))
    rows = ""
    for name, row in zip(map(str, table.index), table.to_numpy(float), strict=True):
        form = "{:.1%}" if name.startswith(SHARES) else "{:.2f}"
        cells = "".join(f"<td>{'' if np.isnan(v) else form.format(v)}</td>" for v in row)
        rows += f"<tr><th>{escape(in_words(name))}</th>{cells}</tr>"
    if "city_model" in table:
        notes = [*notes, CITY_MODEL]
    below = "".join(f"<p class='note'>{escape(note)}</p>" for note in notes)
    drawn = "".join(f"<figure>{figure}</figure>" for figure in figures)
    return (
        f"<h1>{escape(title)}</h1><ul>{items}</ul><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
        f'{below}{KEY}<div class="figures">{drawn}</div>'
    )


def in_words(name: str) -> str:
    """Return the name of a measure in words: "90th percentile (min)" for ``percentile_90_min``."""
    if late := re.fullmatch(r"late_over_(.+)_min", name):
        return f"share over {late[1]} min"
    name = re.sub(r"percentile_(\d+)", r"\1th percentile", name).replace("utilization", "share of time units are busy")
    return re.sub(r"_min$", " (min)", name).replace("_", " ")


def dots(frame: pd.DataFrame, title: str, unit: str) -> str:
    """Return a figure with one row per row of ``frame``: recorded, modelled, and the interval from low to high."""
    values = frame[["recorded", "modelled", "low", "high"]].to_numpy(float)
    scale, ticks = _scale(values, zero=not unit)
    marks = [_axis(ticks, scale, TOP + ROW * len(frame), unit)]
    for k, (name, row) in enumerate(zip(frame.index, values, strict=True)):
        y = TOP + ROW * (k + 0.5)
        recorded, modelled, low, high = (scale(v) for v in row)
        marks.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{escape(str(name))[:60]}</text>')
        marks.append(f'<path d="M{low:.1f} {y:.1f}H{high:.1f}" stroke="{BAND}" stroke-width="7"/>')
        marks.append(f'<path d="M{modelled:.1f} {y - 6:.1f}v12" stroke="{MODELLED}" stroke-width="2"/>')
        if np.isnan(row[0]):
            continue
        if row[2] <= row[0] <= row[3]:
            marks.append(f'<circle cx="{recorded:.1f}" cy="{y:.1f}" r="4.5" fill="{RECORDED}"/>')
        else:
            marks.append(f'<rect x="{recorded - 4.5:.1f}" y="{y - 4.5:.1f}" width="9" height="9" fill="{OUTSIDE}"/>')
    return _figure(title, TOP + ROW * len(frame) + 24, marks)


def bars(frame: pd.DataFrame, title: str, unit: str, noun: str) -> str:
    """Return a figure with one column per row of ``frame``: recorded as bars, modelled with its interval above them."""
    values = frame[["recorded", "modelled", "low", "high"]].to_numpy(float)
    height, wide = 260, (WIDTH - LEFT - RIGHT) / len(frame)
    step = _step(float(values.max()))
    top = float(np.ceil(values.max() / step) * step)

    def down(value: float) -> float:
        return TOP + height * (1 - value / top)

    marks = [f'<text x="{LEFT}" y="{TOP - 14}">{escape(noun)}</text>']
    for tick in np.arange(0, top + step / 2, step):
        marks.append(
            f'<path d="M{LEFT} {down(tick):.1f}H{WIDTH - RIGHT}" stroke="{GRID}"/>'
            f'<text x="{LEFT - 8}" y="{down(tick) + 4:.1f}" text-anchor="end">{100 * tick:.4g} %</text>'
        )
    every = max(1, round(len(frame) / 10))
    for k, (name, (recorded, modelled, low, high)) in enumerate(zip(frame.index, values, strict=True)):
        x = LEFT + wide * k
        middle = x + wide / 2
        marks.append(
            f'<rect x="{x + 1:.1f}" y="{down(recorded):.1f}" width="{wide - 2:.1f}" '
            f'height="{TOP + height - down(recorded):.1f}" fill="{RECORDED}" fill-opacity="0.55"/>'
            f'<path d="M{middle:.1f} {down(low):.1f}V{down(high):.1f}" stroke="{BAND}" stroke-width="6"/>'
            f'<path d="M{middle - 5:.1f} {down(modelled):.1f}h10" stroke="{MODELLED}" stroke-width="2"/>'
        )
        if k == len(frame) - 1 or (k % every == 0 and k + every < len(frame)):
            marks.append(f'<text x="{middle:.1f}" y="{TOP + height + 16}" text-anchor="middle">{escape(name)}</text>')
    marks.append(f'<text x="{WIDTH - RIGHT}" y="{TOP + height + 34}" text-anchor="end">{escape(unit)}</text>')
    return _figure(title, TOP + height + 40, marks)


def _figure(title: str, height: float, marks: Iterable[str]) -> str:
    return (
        f"<h2>{escape(title)}</h2><svg role='img' aria-label='{escape(title)}' width='{WIDTH}' height='{height:.0f}' "
        f"viewBox='0 0 {WIDTH} {height:.0f}'>{''.join(marks)}</svg>"
    )


def _step(span: float) -> float:
    """Return a round distance between ticks, at most seven of which lie in a span."""
    step = 10 ** np.floor(np.log10(max(span, 1e-9) / 3))
    return float(step * next(m for m in (1, 2, 5, 10) if max(span, 1e-9) / (step * m) <= 7))


def _scale(values: FloatArray, zero: bool) -> tuple[Scale, FloatArray]:
    """Return the function from values to horizontal positions (pixels), and the ticks."""
    low, high = (0.0 if zero else float(np.nanmin(values))), float(np.nanmax(values))
    step = _step(high - low)
    low, high = np.floor(low / step) * step, np.ceil(high / step) * step
    high = max(high, low + step)  # equal values would leave no width
    ticks = np.arange(low, high + step / 2, step)
    return (lambda v: LEFT + (WIDTH - LEFT - RIGHT) * (v - low) / (high - low)), ticks


def _axis(ticks: FloatArray, scale: Scale, bottom: float, unit: str) -> str:
    """Return vertical lines at the ticks, with their values above, and the unit at the left."""
    lines = "".join(
        f'<path d="M{scale(t):.1f} {TOP - 4}V{bottom:.0f}" stroke="{GRID}"/>'
        f'<text x="{scale(t):.1f}" y="{TOP - 10}" text-anchor="middle">'
        f"{f'{t:.4g}' if unit else f'{100 * t:.4g} %'}</text>"
        for t in ticks.tolist()
    )
    return f'{lines}<text x="{LEFT - 24}" y="{TOP - 10}" text-anchor="end">{escape(unit)}</text>'
