"""The table of what was tried: scenarios to collect, compare and take along."""

from html import escape

import ipywidgets as widgets
import pandas as pd

from ..planning.scenarios import without_formulas
from . import _widgets

MOST_ROWS = 300
SHOWN = {  # column: (title, how it is written)
    "scenario": ("scenario", str),
    "city": ("city", str),
    "deployment": ("deployment", str),
    "units": ("units", str),
    "calls_per_hour": ("calls an hour", "{:.3g}".format),
    "evaluator": ("figures by", str),
    "loss_probability": ("lost", "{:.2%}".format),
    "mean_response_min": ("mean response (min)", "{:.3f}".format),
    "late_fraction": ("late", "{:.2%}".format),
    "threshold_min": ("late from (min)", "{:g}".format),
    "max_utilization": ("busiest unit", "{:.1%}".format),
}


class WhatIf:
    """Collects scenarios, one row a deployment.

    Parameters
    ----------
    message : Message
    rows : callable
        Returns the rows of the present settings, a list of dicts as `emsopt.planning.scenarios.scenario` makes them.

    Attributes
    ----------
    label, add, clear, shown : Widget
    box : VBox
        All of them.
    rows : list of dict
    """

    def __init__(self, message, rows):
        self.rows, self._present = [], rows
        self.label = _widgets.control(
            widgets.Text, "Name it", "What this scenario is called in the table", placeholder="as it is"
        )
        self.add = widgets.Button(
            description="Add to the table", tooltip="Add the three deployments as they are now", icon="plus"
        )
        self.clear = widgets.Button(description="Empty the table", tooltip="Remove all rows")
        self.shown = widgets.HTML()
        self.add.on_click(_widgets.guarded(message, self._add))
        self.clear.on_click(_widgets.guarded(message, self._clear))
        row = widgets.HBox([self.label, self.add, self.clear], layout={"flex_flow": "row wrap"})
        self.box = widgets.VBox([row, self.shown])

    def to_frame(self):
        """Return one row a deployment, safe to open in a spreadsheet."""
        return without_formulas(pd.DataFrame(self.rows))

    def _add(self):
        rows = self._present()
        if len(self.rows) + len(rows) > MOST_ROWS:
            return f"The table is full with {len(self.rows)} rows: download it, then empty it."
        number = 1 + max((int(row["number"]) for row in self.rows), default=0)
        name = self.label.value.strip()[:100] or f"scenario {number}"
        self.rows += [{"number": number, "scenario": name, **row} for row in rows]
        self._draw()
        return ""

    def _clear(self):
        self.rows.clear()
        self._draw()

    def _draw(self):
        if not self.rows:
            self.shown.value = ""
            return
        head = "".join(f"<th scope='col'>{escape(title)}</th>" for title, _ in SHOWN.values())
        body = "".join(
            f"<tr>{''.join(f'<td>{escape(say(row[column]))}</td>' for column, (_, say) in SHOWN.items())}</tr>"
            for row in self.rows
        )
        self.shown.value = (
            f"{_widgets.TABLE_STYLE}<div style='overflow:auto;max-height:22em'><table class='emsopt-figures' "
            f"aria-label='Scenarios'><tr>{head}</tr>{body}</table></div>"
        )
