"""The dashboard: choose a city, place its units, compare, and keep the results, without writing code.

The part that belongs to one city, with its tabs of results, is `Workbench` in ``_tabs.py``.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
from anywidget import AnyWidget
from ipywidgets import HTML, Dropdown, HBox, IntSlider, Text, VBox

from .. import datasets, plots
from .._files.formats import table_text
from ..errors import EmsoptError, InputError
from ..errors._types import PathLike
from ..maps import deployment_map, live_sheet
from ..planning import Project, Settings, build
from . import _uploads
from ._charts import has_coordinates
from ._panel import Panel
from ._report import report_html
from ._tabs import Workbench
from ._widgets import (
    SuccessText,
    add_class,
    button,
    control,
    download_link,
    error_text,
    group,
    paragraphs,
    png,
    seed_input,
    table,
)

ST_PAUL, GRID, PRACTICE, UPLOAD = CITIES = "St. Paul", "Random grid city", "Practice town", "Your own files"
OPENED_PROJECT = "Opened project"
ST_PAUL_UNITS = 9
PROJECT_VARIABLE = "EMSOPT_PROJECT"
SCENARIO_COLUMNS = {  # columns of the table of scenarios: title and format
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


# Groups of controls and tabs are made of buttons, so that they work by keyboard. The style asks for the width of the
# dashboard itself, not of the window: it also fits into the cell of a notebook.
STYLE = """<style>
.emsopt-dashboard { container-type: inline-size; overflow: visible; --line: #d5d9de; --soft: #f5f7f9; --spare: 430px; }
.emsopt-dashboard .widget-html, .emsopt-dashboard .widget-html-content { height: auto; line-height: 1.4;
  min-width: 0; }
.emsopt-bar { display: flex; flex-flow: row wrap; align-items: center; gap: 4px 14px; padding: 4px 8px;
  background: #143a5a; color: #fff; border-radius: 4px; }
.emsopt-bar .widget-label, .emsopt-bar h1, .emsopt-bar p, .emsopt-bar a { color: #fff !important; }
.emsopt-bar h1 { font-size: 17px; margin: 0; font-weight: 600; }
.emsopt-bar .widget-dropdown .widget-label { width: auto !important; }
.emsopt-main { display: grid; gap: 10px; overflow: visible; grid-template: minmax(0, 1fr) / 20em minmax(0, 1fr) 30em;
  height: clamp(430px, calc(100vh - var(--spare)), 1300px); }
.emsopt-column, .emsopt-results { overflow: hidden auto; min-width: 0; max-height: 100%; flex-wrap: nowrap; }
.emsopt-column > *, .emsopt-results > *, .emsopt-body > * { flex-shrink: 0; }
.emsopt-place { min-width: 0; min-height: 0; overflow: hidden; display: flex; }
.emsopt-place > * { flex: 1 1 auto; height: 100%; min-width: 0; }
.emsopt-head { width: auto !important; text-align: left; font-weight: 600; background: var(--soft); margin: 0;
  border-bottom: 1px solid var(--line); box-shadow: none !important; }
.emsopt-head::before { content: "\\25B8"; margin-right: 0.5em; }
.emsopt-head.mod-active::before { content: "\\25BE"; }
.emsopt-head.mod-active { background: var(--soft); color: inherit; }
.emsopt-fold { overflow: visible; }
.emsopt-fold > .emsopt-body { display: none; overflow: visible; padding: 4px 0; }
.emsopt-fold:has(> .emsopt-head.mod-active) > .emsopt-body { display: flex; }
.emsopt-column .widget-inline-hbox, .emsopt-column .widget-inline-vbox { width: auto !important; min-width: 0; }
.emsopt-column .widget-inline-hbox > .widget-label { width: 8.2em !important; min-width: 8.2em; text-align: left; }
.emsopt-column .widget-readout { min-width: 3.2em; width: 3.2em; }
.emsopt-column .widget-select-multiple select { min-width: 0; }
.emsopt-tabs { overflow: visible; min-height: 60vh; }
.emsopt-tabs > .widget-toggle-buttons { width: auto; border-bottom: 1px solid var(--line); }
.emsopt-tabs .widget-toggle-buttons .widget-toggle-button { width: auto; padding: 0 14px; margin: 0 2px 0 0;
  border-radius: 4px 4px 0 0; box-shadow: none !important; }
.emsopt-tabs .widget-toggle-button.mod-active { background: #143a5a; color: #fff; }
.emsopt-tabs > .emsopt-sheet { overflow: visible; padding: 6px 2px; }
.emsopt-dashboard :focus-visible { outline: 2px solid #0b67c2; outline-offset: 1px; }
.emsopt-results .emsopt-figures th, .emsopt-results .emsopt-figures td { padding: 0.15em 0.3em; }
.emsopt-results .emsopt-figures th[scope=row] { white-space: normal; min-width: 8em; }
.emsopt-results .emsopt-figures td { white-space: normal; }
.emsopt-results div[role=group] { max-height: none !important; }
.emsopt-said [role=status] { max-width: none !important; max-height: 2.9em; overflow: auto; }
.emsopt-dashboard:has(> .emsopt-said [role=status]) { --spare: 485px; }
@container (max-width: 1320px) {
  .emsopt-main { grid-template: minmax(20em, 1fr) auto / 20em minmax(0, 1fr); height: auto; }
  .emsopt-place { height: clamp(360px, 60vh, 900px); }
  .emsopt-column { grid-row: 1 / 3; }
}
@container (max-width: 860px) {
  .emsopt-main { grid-template: none / minmax(0, 1fr); }
  .emsopt-column { grid-row: auto; }
}
</style>"""


class Browser(AnyWidget):
    """An invisible widget that lets the browser save files, and names controls for screen readers."""

    _esm = Path(__file__).with_name("browser.js")

    def __init__(self) -> None:
        super().__init__(layout={"height": "0", "margin": "0", "overflow": "hidden"})

    def download(self, name: str, kind: str, content: bytes) -> None:
        """Save a file where the browser keeps downloads."""
        self.send({"name": name, "kind": kind}, buffers=[content])


def dashboard(project: PathLike | Project | None = None) -> Panel:
    """Return the dashboard, a page on which users who do not program evaluate and optimise deployments of a city.

    If the deployments can be enumerated quickly, the optimum is the best of all by the approximate model. Otherwise
    there is none until a thorough search, which runs in the background and can be cancelled; its result is called "best
    found" unless it is proven, and stays until the settings change. The chosen model evaluates the deployments shown.

    Parameters
    ----------
    project : path_like or Project, optional
        Project to open; raise if that fails. Default: the file that the environment variable EMSOPT_PROJECT names, or
        St. Paul. Saving replaces a file that is given here while its city is shown. Else it makes a download, also for
        the file of the variable, as visitors may share it.

    Returns
    -------
    Panel
        ``refs`` has for the whole page ``city``, ``files`` and the options in `emsopt.planning.settings.OPTIONS`, the
        buttons ``open``, ``save``, ``report`` and ``share``, the table ``scenarios`` and the line ``message``. All
        others belong to the city shown and are replaced with it: inputs such as ``load``, ``units``, ``threshold``
        (min) and ``sites`` (a list, the user's deployment), and results such as ``figures``, ``map`` and, drawn when
        their tab is chosen in ``tabs``, ``districts``, ``busy``, ``responses``, ``alternatives``, ``plan`` and
        ``trust``. Work in the background has buttons to start and cancel it, and a function that waits for its end:
        ``search``, ``cancel`` and ``wait``, and ``plan_start``, ``plan_cancel`` and ``plan_wait`` or the like.

    Examples
    --------
    >>> import emsopt as eo
    >>> eo.panels.dashboard().refs["city"].value
    'St. Paul'
    """
    return _Dashboard(project)


class _Dashboard(Panel):
    """The panel that `dashboard` returns."""

    bench: Workbench

    def __init__(self, project: PathLike | Project | None) -> None:
        self.path: Path | None = None  # the file to replace: only that of the city shown
        self.project: Any = None  # the one opened last
        self.rows: list[dict[str, Any]] = []
        self.quiet = False
        self.uploads: tuple[Any, ...] = ()  # kept to be read again with other options
        self.form = _uploads.CityForm(self._read_files, self._read_uploads_again)
        named = "What this scenario is called in the table"
        choose = self._show_chosen_city
        city, sites = ("Which city to look at", (), choose), ("Sites of the random city", (4, 30), choose)
        opening = _uploads.FileChooser(description="Open", tooltip="Open a project that was saved", accept=".zip")
        opening.action = self._open_upload
        controls = {
            "city": control(Dropdown, ST_PAUL, "City", *city, options=CITIES),
            "open": opening,
            "save": button("Save", "Make a file of the city, the settings, the scenarios and the results", self._save),
            "report": button("Report", "Make a page to print, for those who decide", self._download_report),
            "share": button("Share", "Make a page on which others move units, with nothing to install", self._share),
            "sites_count": control(IntSlider, 12, "Sites", *sites),
            "seed": seed_input(0, "Another number makes another city", self._show_chosen_city),
            **self.form.controls,
            "label": control(Text, "", "Name it", named, placeholder="as it is", action=lambda: None),
            "add": button("Add to the table", "Add the deployments as they are now", self._add_scenario),
            "empty": button("Empty the table", "Remove all rows", self._clear_table),
            "files_made": button("Make files", "Make links to save a table, a map and a picture", self._link_files),
        }
        super().__init__(controls, ("scenarios", "links", "project"))
        self.message.words = _uploads.with_control_names
        for name in ("open", "save", "report", "share"):
            controls[name].layout = {"width": "auto", "min_width": "5em"}
        self.place, at = VBox(), self.controls
        bar = [at[name] for name in ("city", "open", "save", "report", "share")]
        bar = [HTML("<h1>Where should the units wait?</h1>"), *bar, self.outputs["project"]]
        bar = add_class(HBox(bar), "emsopt-bar")
        self.group = group("City", [at["sites_count"], at["seed"], self.form])
        label = HBox([at["label"], at["add"], at["empty"]], layout={"flex_flow": "row wrap"})
        outputs = self.outputs
        self.sheet = [label, outputs["scenarios"], at["files_made"], outputs["links"]]
        self.browser = Browser()
        self.children = [HTML(STYLE), bar, add_class(self.message, "emsopt-said"), self.place, self.browser]
        self.add_class("emsopt-dashboard")
        self._show_first_city(project)

    def _show_first_city(self, project: PathLike | Project | None) -> None:
        """Open ``project`` or, if it is None, the one that the environment variable names, or else St. Paul."""
        named = os.environ.get(PROJECT_VARIABLE, "").strip() if project is None else ""
        if project is None and not named:
            self._show_chosen_city()
            return
        try:
            path = None if project is None or isinstance(project, Project) else Path(project)
            self._show_project(project if isinstance(project, Project) else Project.load(path or named), path)
        except EmsoptError as error:
            if project is not None:
                raise
            self._show_chosen_city()
            self.message.show(error_text(error))

    def _show_chosen_city(self) -> str:
        """Show the chosen city; return a text for the message line."""
        if self.quiet:
            return ""
        chosen, sites = self.values.city, self.values.sites_count
        self._show_group(chosen)
        if chosen == UPLOAD:
            return SuccessText("Choose files, then press Read files. Until then the previous city stays.")
        if chosen == OPENED_PROJECT:
            opened = _uploads.OpenedCity.from_project(self.project)
        elif chosen == ST_PAUL:
            opened = _uploads.OpenedCity(datasets.load_st_paul(), ST_PAUL_UNITS, about={"dataset": "st_paul"})
        elif chosen == PRACTICE:
            settings = Settings(name=chosen, drop_repeats=True, empty_days="missing")
            opened = _uploads.city_of_model(build(*datasets.practice_calls(), settings), dataset="practice")
        else:
            about = {"dataset": "grid", "grid_sites": sites, "grid_seed": self.values.seed}
            opened = _uploads.OpenedCity(
                datasets.grid_city(sites, sites // 2, rng=self.values.seed), sites // 2, about=about
            )
        self._show_city(opened)
        return ""

    def _show_group(self, chosen: str) -> None:
        """Show the controls for the city ``chosen``, if it is a random grid or uploaded files, and hide the others."""
        for name in ("sites_count", "seed"):
            self.controls[name].layout.display = "" if chosen == GRID else "none"
        self.form.layout.display = "" if chosen == UPLOAD else "none"
        self.group.layout.display = "" if chosen in (GRID, UPLOAD) else "none"

    def _read_files(self) -> str:
        """Show the city of the files that were just uploaded; return a text for the message line."""
        self.uploads = self.values.files
        self.controls["files"].value = ()  # files that never arrive must not be taken for those chosen before
        return self._read_uploads_again()

    def _read_uploads_again(self) -> str:
        """Show the city of the files read last under the current options; return a text for the message line."""
        opened = _uploads.city_from_uploads(self.uploads, **self.form.options())
        self._show_city(opened)
        self.form.show_file_values(opened)
        city, checks = opened.city, opened.log.checks if opened.log else ()
        head = (
            f"Read {city.name}: {city.n_atoms} atoms, {city.n_sites} sites. Files: {_uploads.files_text(self.uploads)}."
        )
        said = " ".join([head, *map(_uploads.with_control_names, opened.sentences)])
        wrong = ", ".join(f.what + (f.rows_text and f" (rows {f.rows_text})") for f in checks if f.level == "wrong")
        told = f"{said} Something is wrong in the data: {wrong}. See the tab Data and trust."
        return told if wrong else SuccessText(said)

    def _show_city(self, opened: _uploads.OpenedCity, path: Path | None = None) -> None:
        """Show a city in a new workbench, and save it to ``path`` from now on; None for downloads."""
        self.path = None  # stays so if the city cannot be shown
        before = self.place.children
        self.bench = Workbench(opened, self.group, self.sheet, self._reopen)
        self.bench.message.words = _uploads.with_control_names
        self.show(links="", project="")
        for name in ("figures", "busy"):  # remove links to results that have changed
            self.bench.outputs[name].observe(lambda _: self.show(links="", project=""), "value")
        self.place.children = [self.bench]
        for bench in before:
            bench.close_all()
        # Each workbench has a message line of its own, here called ``answer``.
        answer = {"message": self.message, "answer": self.bench.message, "wait": self.bench.job.wait}
        self.refs |= self.bench.refs | answer
        self.path = path

    def _reopen(self) -> None:
        """Show the same city with the same settings in a new workbench."""
        bench, opened = self.bench, self.bench.opened
        state = bench.state() | {"colocation": bench.values.colocation}
        most = bench.city.n_sites
        if not state["colocation"]:
            state["units"] = min(state["units"], most)
            state |= {name: sorted(set(state[name] or ())) or None for name in ("yours", "today")}
            state["yours"] = (state["yours"] or [])[: state["units"]]
        results = bench.trust.results
        self._show_city(replace(opened, units=state["units"], today=None, settings=state, results=results), self.path)

    def _show_project(self, project: Project, path: Path | None = None) -> None:
        """Show the city, settings and scenarios of a project; ``path`` is as for `_show_city`."""
        self._show_city(_uploads.OpenedCity.from_project(project), path)
        self.project, self.rows = project, [dict(row) for row in project.scenarios]
        city = self.controls["city"]
        self.quiet = True  # the project is shown already
        city.options = (*CITIES, OPENED_PROJECT)
        city.value = OPENED_PROJECT
        self.quiet = False
        self._show_group(OPENED_PROJECT)
        self.controls["label"].value = str(project.settings.get("label", ""))
        self._show_scenarios()

    def _open_upload(self) -> str:
        """Open the project that was uploaded; return a text for the message line."""
        uploads = self.values.open
        if not uploads:
            return ""
        self.controls["open"].value = ()
        _uploads.check_size(uploads)
        upload = uploads[0]  # a browser lets one be chosen
        name = _uploads.base_name(upload)
        project = Project.from_bytes(bytes(upload["content"]), name)
        self._show_project(project)
        return SuccessText(f"Opened {name}, saved by emsopt {project.version}.")

    def _save(self) -> str:
        """Save the project to the file from which its city was opened, or else download it; return a message."""
        bench, opened = self.bench, self.bench.opened
        settings = bench.state() | {"label": self.values.label}
        project = Project(bench.city, settings, self.rows, bench.trust.results, opened.about, opened.by_hour)
        name = "".join(c if c.isalnum() else "_" for c in bench.city.name)[:40] or "city"
        file = f"{name}.emsopt.zip", project.to_bytes(), "It holds no single calls.", "application/zip"
        if self.path is None:
            return self._download(*file)
        self.show(project=download_link(file[0], file[-1], file[1]))
        project.save(self.path)
        return SuccessText(f"Saved to {self.path.name}. The link in the bar saves a copy elsewhere.")

    def _download_report(self) -> str:
        """Download the printable report of the city shown; return a message."""
        return self._download("report.html", report_html(self.bench).encode(), "Open it in a browser to print.")

    def _share(self) -> str:
        """Download a page (`live_sheet`) with the user's deployment and the baseline; return a message."""
        bench = self.bench
        if not has_coordinates(bench.city):
            raise InputError("this city has no coordinates, so that there is no map to share.")
        evaluations = bench.compute()
        named = {name: evaluations[name].sites for name in dict.fromkeys((bench.baseline_name(evaluations), "yours"))}
        sheet = live_sheet(bench.loaded_city, named, threshold=bench.values.threshold, capacity=bench.values.capacity)
        return self._download("sheet.html", sheet.html.encode(), "It works offline, from an e-mail or a stick.")

    def _download(self, name: str, content: bytes, hint: str, kind: str = "text/html") -> str:
        """Download a file and show a link to it; return a message that ends with ``hint``."""
        self.show(project=download_link(name, kind, content))
        self.browser.download(name, kind, content)
        return SuccessText(f"Saved {name} to your downloads (or click the link in the bar). {hint}")

    def _add_scenario(self) -> None:
        """Add the current deployments to the table as one scenario."""
        number = 1 + len({row["number"] for row in self.rows})
        name = self.values.label.strip()[:100] or f"scenario {number}"
        self.rows += [{"number": number, "scenario": name, **row} for row in self.bench.scenario_rows()]
        self._show_scenarios()

    def _show_scenarios(self) -> None:
        """Show the table of scenarios; empty it and raise if its rows, from a project, lack a column."""
        try:
            formats = SCENARIO_COLUMNS.values()
            cells = [(str(row["scenario"]), [text.format_map(row) for text in formats]) for row in self.rows]
        except (KeyError, ValueError, TypeError) as error:
            self.rows = []
            raise InputError(f"the scenarios of the project are damaged: {error}.") from error
        self.show(scenarios=table("Scenarios", SCENARIO_COLUMNS, cells) if cells else "")

    def _clear_table(self) -> None:
        """Remove all rows of the table of scenarios."""
        self.rows.clear()
        self.show(scenarios="")

    def _link_files(self) -> None:
        """Make links that save the table, if it has rows, and map and picture, if the city has coordinates."""
        bench = self.bench
        evaluations, links = bench.compute(), []
        made = "; ".join(f"{name} {value}" for name, value in bench.reproduction_facts().items())
        city = bench.loaded_city.replace(notes=f"{bench.city.notes} Made with: {made}.".strip())
        if self.rows:
            text = table_text(pd.DataFrame(self.rows))
            links.append(download_link("scenarios.csv", "text/csv", text.encode("utf-8-sig")))
        if has_coordinates(city):
            page = deployment_map(city, evaluations, hours_a_year=bench.hours_a_year)
            links.append(download_link("map.html", "text/html", page.html.encode()))
            picture = png(lambda figure: plots.deployments(city, evaluations, figure), dpi=110, about=made)
            links.append(download_link("deployments.png", "image/png", picture))
        nothing = "Nothing to save: the table is empty, and the city has no coordinates."
        self.show(links=f"<p>{'Save ' + ', '.join(links)}</p>" if links else paragraphs(nothing))
