"""A self-contained page of recorded beside modelled values: sentences, a table and figures as inline SVG."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

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
WIDTH, ROW, LEFT, RIGHT, TOP = 500, 19, 120, 24, 34
KEY = f"""<p class="note"><svg width="14" height="12"><circle cx="7" cy="6" r="4.5" fill="{RECORDED}"/></svg> recorded
<svg width="14" height="12"><rect x="2.5" y="1.5" width="9" height="9" fill="{OUTSIDE}"/></svg> recorded, outside
the interval <svg width="34" height="12"><path d="M1 6H33" stroke="{BAND}" stroke-width="6"/>
<path d="M17 1V11" stroke="{MODELLED}" stroke-width="2"/></svg> modelled, with the interval of 90 %</p>"""


def page(
    title: str, sentences: Iterable[str], table: pd.DataFrame, figures: Iterable[str], notes: Iterable[str]
) -> str:
    """Return the page; ``figures`` are SVG, everything else is text."""
    said = "".join(f"<li>{escape(sentence)}</li>" for sentence in sentences)
    head = "".join(f"<th>{escape(str(name).replace('_', ' '))}</th>" for name in ("", *table.columns))
    rows = "".join(
        f"<tr><th>{escape(str(name).replace('_', ' '))}</th>"
        + "".join(f"<td>{'' if np.isnan(v) else f'{v:.3f}'}</td>" for v in row)
        + "</tr>"
        for name, row in zip(table.index, table.to_numpy(float), strict=True)
    )
    below = "".join(f"<p class='note'>{escape(note)}</p>" for note in notes)
    drawn = "".join(f"<figure>{figure}</figure>" for figure in figures)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<style>{STYLE}</style></head><body><h1>{escape(title)}</h1><ul>{said}</ul>"
        f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>{below}{KEY}"
        f'<div class="figures">{drawn}</div></body></html>\n'
    )


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


def bars(frame: pd.DataFrame, title: str, unit: str, what: str) -> str:
    """Return a figure with one column per row of ``frame``: recorded as bars, modelled with its interval above them."""
    values = frame[["recorded", "modelled", "low", "high"]].to_numpy(float)
    height, wide = 260, (WIDTH - LEFT - RIGHT) / len(frame)
    top = float(values.max()) * 1.05

    def down(value: float) -> float:
        return TOP + height * (1 - value / top)

    marks = [f'<text x="{LEFT - 8}" y="{TOP + 4}" text-anchor="end">{top:.0%}</text>']
    marks.append(f'<text x="{LEFT - 8}" y="{TOP + 22}" text-anchor="end">{escape(what)}</text>')
    every = max(1, round(len(frame) / 14))
    for k, (name, (recorded, modelled, low, high)) in enumerate(zip(frame.index, values, strict=True)):
        x = LEFT + wide * k
        middle = x + wide / 2
        marks.append(
            f'<rect x="{x + 1:.1f}" y="{down(recorded):.1f}" width="{wide - 2:.1f}" '
            f'height="{TOP + height - down(recorded):.1f}" fill="{RECORDED}" fill-opacity="0.55"/>'
            f'<path d="M{middle:.1f} {down(low):.1f}V{down(high):.1f}" stroke="{BAND}" stroke-width="6"/>'
            f'<path d="M{middle - 5:.1f} {down(modelled):.1f}h10" stroke="{MODELLED}" stroke-width="2"/>'
        )
        if k % every == 0 or k == len(frame) - 1:
            marks.append(f'<text x="{middle:.1f}" y="{TOP + height + 16}" text-anchor="middle">{escape(name)}</text>')
    marks.append(f'<text x="{WIDTH - RIGHT}" y="{TOP + height + 34}" text-anchor="end">{escape(unit)}</text>')
    return _figure(title, TOP + height + 40, marks)


def _figure(title: str, height: float, marks: Iterable[str]) -> str:
    return (
        f"<h2>{escape(title)}</h2><svg role='img' aria-label='{escape(title)}' width='{WIDTH}' height='{height:.0f}' "
        f"viewBox='0 0 {WIDTH} {height:.0f}'>{''.join(marks)}</svg>"
    )


def _scale(values, zero: bool):  # type: ignore[no-untyped-def]
    """Return the function from values to pixels across, and the ticks."""
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    low = 0.0 if zero else low
    span = max(high - low, 1e-9)
    step = 10 ** np.floor(np.log10(span / 3))
    step *= next(m for m in (1, 2, 5, 10) if span / (step * m) <= 7)
    low, high = np.floor(low / step) * step, np.ceil(high / step) * step
    ticks = np.arange(low, high + step / 2, step)
    return (lambda v: LEFT + (WIDTH - LEFT - RIGHT) * (v - low) / (high - low)), ticks


def _axis(ticks, scale, bottom: float, unit: str) -> str:  # type: ignore[no-untyped-def]
    """Return vertical lines at the ticks, with their values above."""
    return "".join(
        f'<path d="M{scale(t):.1f} {TOP - 4}V{bottom:.0f}" stroke="#e4e4e4"/>'
        f'<text x="{scale(t):.1f}" y="{TOP - 10}" text-anchor="middle">{t:g}{f" {unit}" * int(t == ticks[-1])}</text>'
        for t in ticks
    )
