"""The dashboard: a city, a fleet, and what becomes of the callers, without a line of code."""

import ipywidgets as widgets

from .. import datasets
from ..calls import aggregate_calls
from ..errors import InputError
from . import _downloads, _widgets
from ._uploads import MOST_MB, bare_name, city_from_uploads, summary
from ._what_if import WhatIf
from ._workbench import Workbench

ST_PAUL, GRID, PRACTICE, UPLOAD = "St. Paul", "Random grid city", "Practice town", "Your own files"
UNITS = {ST_PAUL: 9, PRACTICE: 5, UPLOAD: 5}
PRACTICE_SPEED_KMH = 40
EXPLANATION = (
    "Choose a city, then move the controls: your own deployment, the optimum and the p-median deployment stand beside each "
    'other in tables and figures, and on a switch of the map. On the map\'s view "yours" a click on a station adds or '
    "removes a unit. Collect what you try in the table at the end, and save it."
)
FILES = (
    "Choose city.json, atoms.csv and sites.csv (and travel_times.csv) together, or a log of calls and a table of stations "
    f'with "call" and "station" in their names; at most {MOST_MB} MB together. Nothing is kept once the page is closed.'
)


def dashboard():
    """Evaluate and optimise a city by controls alone.

    The optimum is the best of all deployments by the approximate model where trying them is quick, else what a thorough
    search finds, which runs beside the rest and can be cancelled. Figures are by the model that is chosen.

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
    return _Dashboard().panel


class _Dashboard:
    def __init__(self):
        self.message, self.checks, self.place = _widgets.Message(), widgets.HTML(), widgets.VBox()
        self.controls, self.links = _controls(), widgets.HTML()
        self.bench = None
        self.what_if = WhatIf(self.message, lambda: self.bench.scenarios())
        self.save = widgets.Button(
            description="Make files", tooltip="Make links to save the table, the map and a picture"
        )
        at = self.controls
        self.grid = widgets.HBox([at["sites_count"], at["seed"]], layout={"flex_flow": "row wrap"})
        upload = widgets.HBox([at["files"], at["speed"], at["read"]], layout={"flex_flow": "row wrap"})
        self.upload = widgets.VBox([widgets.HTML(_widgets.lines(FILES)), upload, self.checks])
        ending = widgets.HTML("<h4 style='margin:0.6em 0 0'>What if: scenarios to collect and save</h4>")
        children = [
            _widgets.heading("Where should the units wait?", EXPLANATION),
            at["city"],
            self.grid,
            self.upload,
            self.message,
            self.place,
            ending,
            self.what_if.box,
            self.save,
            self.links,
        ]
        self.panel = _widgets.Panel(children, {})
        choose = _widgets.guarded(self.message, self._choose)
        for name in ("city", "sites_count", "seed"):
            at[name].observe(choose, "value")
        at["read"].on_click(_widgets.guarded(self.message, self._read))
        self.save.on_click(_widgets.guarded(self.message, self._link))
        choose()

    def _choose(self):
        chosen = self.controls["city"].value
        self.grid.layout.display = "" if chosen == GRID else "none"
        self.upload.layout.display = "" if chosen == UPLOAD else "none"
        if chosen == UPLOAD:
            return "Choose files, then Read them; until then the city before stays."
        n_sites = self.controls["sites_count"].value
        units = UNITS.get(chosen, max(1, n_sites // 2))
        if chosen == ST_PAUL:
            city = datasets.load_st_paul()
        elif chosen == PRACTICE:
            calls, stations = datasets.practice_calls()
            demand = aggregate_calls(calls.without_repeats(), stations, cell_km=1, empty_days="missing")
            city = demand.city(speed_kmh=PRACTICE_SPEED_KMH, name=chosen)
        else:
            seed = self.controls["seed"].value
            city = datasets.grid_city(n_sites, units, rng=seed)
        self._show(city, units)
        return ""

    def _read(self):
        self.checks.value = ""
        files = self.controls["files"]
        # Files that never arrive must not be taken for those before, which also take memory.
        uploads, files.value = files.value, ()
        try:
            city, checks = city_from_uploads(uploads, speed_kmh=self.controls["speed"].value)
        except InputError as error:
            if str(error).startswith(tuple(map(bare_name, uploads))):
                return str(error)  # without a capital, which the file's name may not have
            raise
        self.checks.value = "" if checks is None else checks._repr_html_()
        self._show(city, min(UNITS[UPLOAD], city.n_sites))
        return f"Read {city.name}: {city.n_atoms} atoms, {city.n_sites} sites. Files: {summary(uploads)}."

    def _show(self, city, units):
        bench = Workbench(city, units, lambda: setattr(self.links, "value", ""))
        self.place.children = bench.children
        if self.bench is not None:
            self.bench.close()
        self.bench = bench
        collect = {
            "label": self.what_if.label,
            "add": self.what_if.add,
            "empty": self.what_if.clear,
            "scenarios": self.what_if.shown,
            "save": self.save,
            "links": self.links,
            "checks": self.checks,
        }
        # What a city's own part says stands under its own message.
        own = {("answer" if name == "message" else name): widget for name, widget in bench.refs.items()}
        self.panel.refs.clear()
        self.panel.refs.update({**self.controls, "message": self.message, **own, **collect})
        self.panel.refs["wait"] = bench.job.wait

    def _link(self):
        bench = self.bench
        city = bench.city.scaled(bench.controls["load"].value)
        self.links.value = _downloads.links(city, bench.evaluations(), self.what_if.to_frame())


def _controls():
    """Return the inputs that choose a city, by name."""
    control = _widgets.control
    narrow = widgets.Layout(width="19em")
    return {
        "city": control(widgets.Dropdown, "City", "Which city to look at", options=[ST_PAUL, GRID, PRACTICE, UPLOAD]),
        "sites_count": control(
            widgets.IntSlider, "Sites", "Candidate sites of the random city", value=12, min=4, max=30
        ),
        "seed": _widgets.seed_input(0, "Another number makes another city"),
        "files": widgets.FileUpload(
            description="Choose files",
            accept=".csv,.json,.geojson",
            multiple=True,
            tooltip="City files, or a log of calls and a table of stations",
        ),
        "speed": control(
            widgets.BoundedFloatText,
            "Speed (km/h)",
            "For travel times, with 1.3 times the distance as the crow flies; for calls and stations only",
            value=40.0,
            min=0.0,  # wider than what is taken: the page would put a number out of its range right without a word
            max=1000.0,
            layout=narrow,
        ),
        "read": widgets.Button(description="Read files", tooltip="Make a city of the files"),
    }
