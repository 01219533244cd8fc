"""The table of what was tried: scenarios to collect, compare and save."""

from __future__ import annotations

from base64 import b64encode
from html import escape
from typing import TYPE_CHECKING

import pandas as pd

from .. import plots
from ..maps.deployments import deployment_map
from ..planning.scenarios import without_formulas
from ._widgets import png, table

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..city.city import City
    from ..evaluators import Evaluation

MOST_ROWS = 300
SHOWN: dict[str, tuple[str, Callable[..., str]]] = {  # column: (title, how to write it)
    "city": ("city", str),
    "deployment": ("deployment", str),
    "units": ("units", str),
    "calls_per_hour": ("calls per hour", "{:.3g}".format),
    "evaluator": ("figures by", str),
    "loss_probability": ("lost", "{:.2%}".format),
    "mean_response_min": ("mean response (min)", "{:.3f}".format),
    "late_fraction": ("late", "{:.2%}".format),
    "threshold_min": ("late from (min)", "{:g}".format),
    "max_utilization": ("busiest unit", "{:.1%}".format),
}


class Scenarios:
    """Rows of a table, one per deployment, with a name per scenario."""

    def __init__(self) -> None:
        self.rows: list[dict[str, object]] = []

    def add(self, rows: list[dict[str, object]], name: str) -> str:
        """Add the rows of a scenario, numbered if it has no name; return a remark if the table is full."""
        if len(self.rows) + len(rows) > MOST_ROWS:
            return f"The table is full with {len(self.rows)} rows: download it, then empty it."
        number = 1 + len({row["number"] for row in self.rows})
        name = name.strip()[:100] or f"scenario {number}"
        self.rows += [{"number": number, "scenario": name, **row} for row in rows]
        return ""

    def to_html(self) -> str:
        """Return the table as HTML, or nothing if it is empty."""
        titles, columns = [title for title, _ in SHOWN.values()], SHOWN.items()
        rows = [(str(row["scenario"]), [write(row[name]) for name, (_, write) in columns]) for row in self.rows]
        return table("Scenarios", titles, rows) if rows else ""

    def links(self, city: City, evaluations: dict[str, Evaluation]) -> str:
        """Return links that save the table, if it has rows, and a map and a picture of deployments, as HTML."""
        files = []
        if self.rows:
            text = without_formulas(pd.DataFrame(self.rows)).to_csv(index=False, lineterminator="\n")
            files.append(("scenarios.csv", "text/csv", text.encode("utf-8-sig")))
        if city.atom_locations is not None and city.site_locations is not None:
            files.append(("map.html", "text/html", deployment_map(city, evaluations).html.encode()))
            picture = png(lambda figure: plots.deployments(city, evaluations, figure), dpi=110)
            files.append(("deployments.png", "image/png", picture))
        if not files:
            return "<p>Nothing to save: the table is empty, and the city has no coordinates.</p>"
        return f"<p>Save {', '.join(_link(*file) for file in files)}</p>"


def _link(name: str, kind: str, content: bytes) -> str:
    """Return a link that saves one file."""
    source = f"data:{kind};base64,{b64encode(content).decode()}"
    style = "color:#0b5394;text-decoration:underline"
    size = f"{len(content) / 1024:,.0f} kB"
    return f"<a style='{style}' download='{escape(name)}' href='{source}'>{escape(name)}</a> ({size})"
