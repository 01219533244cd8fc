"""The dashboard: a city, a fleet, and what becomes of the callers, without a line of code."""

from __future__ import annotations

from typing import TYPE_CHECKING

import ipywidgets as widgets

from .. import datasets
from ..calls import aggregate_calls
from ..errors import InputError
from ._panel import Panel
from ._uploads import MOST_MB, bare_name, city_from_uploads, summary
from ._what_if import Scenarios
from ._widgets import button, control, lines, seed_input
from ._workbench import Workbench

if TYPE_CHECKING:
    from ..city.city import City

ST_PAUL, GRID, PRACTICE, UPLOAD = "St. Paul", "Random grid city", "Practice town", "Your own files"
UNITS = {ST_PAUL: 9, PRACTICE: 5, UPLOAD: 5}
PRACTICE_SPEED_KMH = 40
FORMATS = ".csv,.json,.geojson"
EXPLANATION = (
    "Choose a city, then move the controls: your deployment, the optimum and the p-median deployment stand side by side. On "
    'the map\'s view "yours" a click on a station adds or removes a unit. Collect what you try in the table, and save it.'
)
FILES = (
    "Choose city.json, atoms.csv and sites.csv (and travel_times.csv) together, or a log of calls and a table of stations "
    f'with "call" and "station" in their names; at most {MOST_MB} MB together. Nothing is kept once the page is closed.'
)


def dashboard() -> Panel:
    """Evaluate and optimise a city by controls alone.

    The optimum is the best of all deployments by the approximate model where trying them is quick. Elsewhere it is the
    result of a thorough search, which runs in the background and can be cancelled. Figures are by the chosen model.

    Returns
    -------
    Panel
        With ``refs``: ``city``, ``sites_count``, ``seed``, ``files``, ``speed``, ``read``, ``message``, ``checks``,
        ``label``, ``add``, ``empty``, ``scenarios``, ``save``, ``links``; and those of the city that is shown, new with
        every city: ``units``, ``load``, ``objective``, ``threshold``, ``evaluator``, ``count``, ``pinned``, ``closed``,
        ``sites`` (a list of checkboxes), ``places`` (the buttons that the map presses), ``optimum``, ``p_median``,
        ``search``, ``cancel``, ``progress``, ``answer`` (a message), ``figures``, ``busy``, ``responses``,
        ``alternatives``, ``map``, ``feed``; and ``wait``, a function that waits for a search.
    """
    return _Dashboard()


class _Dashboard(Panel):
    """The panel that `dashboard` returns."""

    bench: Workbench

    def __init__(self) -> None:
        # The range of the speed is wider than what is read: a page corrects a number out of its range without a word.
        speed = "For travel times, with 1.3 times the distance as the crow flies; for calls and stations only"
        files = "City files, or a log of calls and a table of stations"
        named = "What this scenario is called in the table"
        cities = [ST_PAUL, GRID, PRACTICE, UPLOAD]
        controls = {
            "city": control(
                widgets.Dropdown, ST_PAUL, "City", "Which city to look at", (), self._choose, options=cities
            ),
            "sites_count": control(
                widgets.IntSlider, 12, "Sites", "Candidate sites of the random city", (4, 30), self._choose
            ),
            "seed": seed_input(0, "Another number makes another city", self._choose),
            "files": widgets.FileUpload(description="Choose files", tooltip=files, accept=FORMATS, multiple=True),
            "speed": control(widgets.BoundedFloatText, 40.0, "Speed (km/h)", speed, (0.0, 1000.0)),
            "read": button("Read files", "Make a city of the files", self._read),
            "label": control(widgets.Text, "", "Name it", named, placeholder="as it is"),
            "add": button("Add to the table", "Add the three deployments as they are now", self._add),
            "empty": button("Empty the table", "Remove all rows", self._empty),
            "save": button("Make files", "Make links to save the table, the map and a picture", self._link),
        }
        super().__init__(controls, ("checks", "scenarios", "links"))
        self.scenarios, self.place, self.refs["hint"] = Scenarios(), widgets.VBox(), widgets.HTML(lines(FILES))
        ending = widgets.HTML("<h4 style='margin:0.6em 0 0'>What if: scenarios to collect and save</h4>")
        above = "city | sites_count seed | hint | files speed read | checks | message | place | ending"
        rows = f"{above} | label add empty | scenarios | save | links"
        self.arrange("Where should the units wait?", EXPLANATION, rows, place=self.place, ending=ending)
        self._choose()

    def _choose(self) -> str:
        """Show the city that is chosen; return a remark."""
        chosen = self.at.city
        for names, owner in (("sites_count seed", GRID), ("hint files speed read checks", UPLOAD)):
            for name in names.split():
                self.refs[name].layout.display = "" if chosen == owner else "none"
        if chosen == UPLOAD:
            return "Choose files, then Read them; until then the city before stays."
        units = UNITS.get(chosen, max(1, self.at.sites_count // 2))
        if chosen == ST_PAUL:
            city = datasets.load_st_paul()
        elif chosen == PRACTICE:
            calls, stations = datasets.practice_calls()
            demand = aggregate_calls(calls.without_repeats(), stations, cell_km=1, empty_days="missing")
            city = demand.city(speed_kmh=PRACTICE_SPEED_KMH, name=chosen)
        else:
            city = datasets.grid_city(self.at.sites_count, units, rng=self.at.seed)
        self._show(city, units)
        return ""

    def _read(self) -> str:
        """Show the city of the uploaded files; return a remark."""
        self.show(checks="")
        # Files that never arrive must not be taken for those before, which also need memory.
        uploads, self.controls["files"].value = self.at.files, ()
        try:
            city, checks = city_from_uploads(uploads, speed_kmh=self.at.speed)
        except InputError as error:
            if str(error).startswith(tuple(map(bare_name, uploads))):
                return str(error)  # unchanged, as the name of a file may begin with a small letter
            raise
        self.show(checks="" if checks is None else checks._repr_html_())
        self._show(city, min(UNITS[UPLOAD], city.n_sites))
        return f"Read {city.name}: {city.n_atoms} atoms, {city.n_sites} sites. Files: {summary(uploads)}."

    def _show(self, city: City, units: int) -> None:
        """Replace the workbench by that of another city."""
        before = self.place.children
        self.bench = Workbench(city, units, changed=lambda: self.show(links=""))
        self.place.children = [self.bench]
        for bench in before:
            bench.end()
        # Remarks on a city stand under its own message.
        own = {("answer" if name == "message" else name): widget for name, widget in self.bench.refs.items()}
        self.refs |= {**own, "wait": self.bench.job.wait}

    def _add(self) -> str:
        """Add the present deployments to the table; return a remark."""
        remark = self.scenarios.add(self.bench.scenarios(), self.at.label)
        self.show(scenarios=self.scenarios.to_html())
        return remark

    def _empty(self) -> None:
        """Empty the table."""
        self.scenarios.rows.clear()
        self.show(scenarios="")

    def _link(self) -> None:
        """Make links to files of what is shown."""
        city = self.bench.city.scaled(self.bench.at.load)
        self.show(links=self.scenarios.links(city, self.bench.compute()))
