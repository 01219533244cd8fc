"""The dashboard: choose a city, place its units and compare the results, without writing code."""

from __future__ import annotations

from base64 import b64encode
from typing import TYPE_CHECKING, Any

import pandas as pd
from ipywidgets import HTML, BoundedFloatText, Dropdown, FileUpload, IntSlider, Text, VBox

from .. import datasets, plots
from .._files.formats import table_text
from ..calls import aggregate_calls
from ..calls.log import FILES as ENDINGS
from ..maps.deployments import deployment_map
from ..planning import units_needed
from ._panel import Panel
from ._uploads import MOST_MB, city_from_uploads, summary
from ._widgets import button, control, lines, png, seed_input, table
from ._workbench import Workbench

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..city.city import City

ST_PAUL, GRID, PRACTICE, UPLOAD = CITIES = "St. Paul", "Random grid city", "Practice town", "Your own files"
UNITS = {ST_PAUL: 9, PRACTICE: 5}
PRACTICE_TIMES: dict[str, Any] = {"speed_kmh": 40.0, "detour": 1.3}
MOST_ROWS = 300
SHOWN = {  # columns of the table of scenarios: title and format
    "city": "{city}",
    "deployment": "{deployment}",
    "units": "{units}",
    "calls per hour": "{calls_per_hour:.3g}",
    "figures by": "{evaluator}",
    "lost": "{loss_probability:.2%}",
    "mean response (min)": "{mean_response_min:.3f}",
    "gain (min)": "{gain_min:+.3f}",
    "over": "{baseline}",
    "late": "{late_fraction:.2%}",
    "late from (min)": "{threshold_min:g}",
    "busiest unit": "{max_utilization:.1%}",
}
EXPLANATION = (
    "Choose a city, then move the controls: your deployment, the optimum and the p-median deployment stand side by "
    'side. On the map\'s view "yours", a click on a station adds or removes a unit. Collect what you try in the table, '
    "and save it."
)
FILES = (
    "Choose city.json, atoms.csv and sites.csv (and travel_times.csv) together, or a log of calls and a table of "
    f"stations; at most {MOST_MB} MB together. Nothing is kept once the page is closed."
)


def dashboard() -> Panel:
    """Make the dashboard, which evaluates and optimises deployments of a city.

    If the deployments can be enumerated quickly, the optimum is the best of all by the approximate model. Otherwise
    there is none until a thorough search, which runs in the background and can be cancelled; its result stays for as
    long as the settings do. The chosen model evaluates the deployments shown. The user's deployment follows the fleet
    size.

    Returns
    -------
    Panel
        With ``refs``, a dict of its inputs and outputs by name.

        The city: ``city`` (which one to show), ``sites_count`` and ``seed`` (of the random grid city), ``files``,
        ``speed`` (km/h) and ``read`` (a button that makes a city of the uploaded files), ``hint`` (which files to
        choose), ``checks`` (what looks wrong in a log of calls) and ``message`` (errors and remarks).

        The table of scenarios: ``label`` (name of the next scenario), ``add`` (a button that adds the three
        deployments shown), ``empty`` (a button that removes all rows), ``scenarios`` (the table), ``save`` (a button
        that makes links to files) and ``links`` (these links).

        The rest belongs to the city shown and is replaced with every city. Inputs: ``load`` (factor on all call rates),
        ``units`` (fleet size), ``objective`` (what the optimum minimises), ``threshold`` (minutes from which a response
        is late), ``evaluator`` (model that evaluates the deployments), ``pinned`` and ``closed`` (sites that keep a
        unit or get none in the optimum and the p-median), ``baseline`` (deployment over which tables say the gain) and
        ``count`` (how many of the best deployments to list). The user's deployment: ``sites`` (a list of checkboxes),
        ``places`` (the invisible buttons that the map presses), the buttons ``optimum`` and ``p_median``, which copy
        that deployment, and ``keep``, which makes the user's deployment today's. The search: ``search`` and ``cancel``
        (buttons), ``progress`` (a bar) and ``wait``, a function that waits until the search has ended. Results:
        ``answer`` (a second message line), ``figures`` (table that compares the deployments), ``busy`` (utilisation of
        each unit), ``responses`` (histogram of response times), ``alternatives`` (table of the best deployments),
        ``map``, and ``feed`` (a hidden widget that sends updates to the map).
    """
    return _Dashboard()


class _Dashboard(Panel):
    """The panel that `dashboard` returns."""

    bench: Workbench

    def __init__(self) -> None:
        # The input accepts more than the valid speeds, because a browser silently changes numbers out of range.
        speed = "For calls and stations only: travel times assume 1.3 times the straight-line distance"
        hint = "City files, or a log of calls and a table of stations"
        named = "What this scenario is called in the table"
        city, sites = ("Which city to look at", (), self._choose), ("Sites of the random city", (4, 30), self._choose)
        controls = {
            "city": control(Dropdown, ST_PAUL, "City", *city, options=CITIES),
            "sites_count": control(IntSlider, 12, "Sites", *sites),
            "seed": seed_input(0, "Another number makes another city", self._choose),
            "files": FileUpload(description="Choose files", tooltip=hint, accept=",".join(ENDINGS), multiple=True),
            "speed": control(BoundedFloatText, 40.0, "Speed (km/h)", speed, (0.0, 1000.0)),
            "read": button("Read files", "Make a city of the files", self._read),
            "label": control(Text, "", "Name it", named, placeholder="as it is"),
            "add": button("Add to the table", "Add the three deployments as they are now", self._add),
            "empty": button("Empty the table", "Remove all rows", self._empty),
            "save": button("Make files", "Make links to save the table, the map and a picture", self._link),
        }
        super().__init__(controls, ("checks", "scenarios", "links"))
        self.rows: list[dict[str, object]] = []
        self.place, self.refs["hint"] = VBox(), HTML(lines(FILES))
        ending = HTML("<h4 style='margin:0.6em 0 0'>What if: scenarios to collect and save</h4>")
        above = "city | sites_count seed | hint | files speed read | checks | message | place | ending"
        rows = f"{above} | label add empty | scenarios | save | links"
        self.arrange("Where should the units wait?", EXPLANATION, rows, place=self.place, ending=ending)
        self._choose()

    def _choose(self) -> str:
        """Show the chosen city; return a text for the message line."""
        chosen, sites = self.at.city, self.at.sites_count
        for names, owner in (("sites_count seed", GRID), ("hint files speed read checks", UPLOAD)):
            for name in names.split():
                self.refs[name].layout.display = "" if chosen == owner else "none"
        if chosen == UPLOAD:
            return "Choose files, then press Read files. Until then the previous city stays."
        about: dict[str, Any] = {}
        if chosen == ST_PAUL:
            city = datasets.load_st_paul()
        elif chosen == PRACTICE:
            calls, stations = datasets.practice_calls()
            demand = aggregate_calls(calls.without_repeats(), stations, cell_km=1, empty_days="missing")
            city, about = demand.city(**PRACTICE_TIMES, name=chosen), PRACTICE_TIMES
        else:
            city = datasets.grid_city(sites, sites // 2, rng=self.at.seed)
        self._show(city, UNITS.get(chosen, sites // 2), about=about)
        return ""

    def _read(self) -> str:
        """Show the city of the uploaded files; return a text for the message line."""
        self.show(checks="")
        # Forget the files: they need memory, and would be read again if the next upload failed.
        uploads, self.controls["files"].value = self.at.files, ()
        city, checks, today, about, said = city_from_uploads(uploads, speed_kmh=self.at.speed)
        self.show(checks="" if checks is None else checks._repr_html_())
        units = units_needed(city) if today is None or len(set(today)) < len(today) else len(today)
        self._show(city, min(units, city.n_sites), today, about)
        return (
            f"Read {city.name}: {city.n_atoms} atoms, {city.n_sites} sites. Files: {summary(uploads)}. {said}".strip()
        )

    def _show(
        self,
        city: City,
        units: int,
        today: tuple[int, ...] | None = None,
        about: Mapping[str, float] | None = None,
    ) -> None:
        """Replace the workbench by a new one for this city."""
        before = self.place.children
        self.bench = Workbench(city, units, today, about)
        self.show(links="")
        for name in ("figures", "busy"):  # remove links to results that have changed
            self.bench.outputs[name].observe(lambda _: self.show(links=""), "value")
        self.place.children = [self.bench]
        for bench in before:
            bench.end()
        # Each workbench has a message line of its own, here called ``answer``.
        answer = {"message": self.message, "answer": self.bench.message, "wait": self.bench.job.wait}
        self.refs |= self.bench.refs | answer

    def _add(self) -> str:
        """Add the current deployments to the table as one scenario; return a message if the table is full."""
        rows, number = self.bench.scenarios(), 1 + len({row["number"] for row in self.rows})
        if len(self.rows) + len(rows) > MOST_ROWS:
            return f"The table is full with {len(self.rows)} rows: download it, then empty it."
        name = self.at.label.strip()[:100] or f"scenario {number}"
        self.rows += [{"number": number, "scenario": name, **row} for row in rows]
        cells = [(str(row["scenario"]), [text.format_map(row) for text in SHOWN.values()]) for row in self.rows]
        self.show(scenarios=table("Scenarios", SHOWN, cells))
        return ""

    def _empty(self) -> None:
        """Empty the table."""
        self.rows.clear()
        self.show(scenarios="")

    def _link(self) -> None:
        """Make links that save the table (if it has rows), and a map and a picture (if the city has coordinates)."""
        city, evaluations, links = self.bench.city.scaled(self.bench.at.load), self.bench.compute(), []
        if self.rows:
            text = table_text(pd.DataFrame(self.rows))
            links.append(_link("scenarios.csv", "text/csv", text.encode("utf-8-sig")))
        if city.atom_locations is not None and city.site_locations is not None:
            links.append(_link("map.html", "text/html", deployment_map(city, evaluations).html.encode()))
            picture = png(lambda figure: plots.deployments(city, evaluations, figure), dpi=110)
            links.append(_link("deployments.png", "image/png", picture))
        nothing = "Nothing to save: the table is empty, and the city has no coordinates."
        self.show(links=f"<p>{'Save ' + ', '.join(links) if links else nothing}</p>")


def _link(name: str, kind: str, content: bytes) -> str:
    """Return an HTML link that saves ``content`` as a file."""
    source, size = f"data:{kind};base64,{b64encode(content).decode()}", f"{len(content) / 1024:,.0f} kB"
    style = "color:#0b5394;text-decoration:underline"
    return f"<a style='{style}' download='{name}' href='{source}'>{name}</a> ({size})"
