"""The tabs "day plan" and "data and trust": plan the hours of the day, test the model, say how sure a gain is.

What is found here is kept as results of the project: sentences and tables, without single calls. Tests and comparisons
need the log, which a project does not hold; their results stay when the project is opened again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from ipywidgets import HTML, HBox

from ..errors import InputError
from . import _charts, _day, _gain, _tested
from ._charts import signed
from ._job import Job
from ._own_city import in_controls
from ._widgets import lines

if TYPE_CHECKING:
    from ..evaluators import Evaluation
    from ..planning.project import Result
    from ._opened import Log
    from ._workbench import Workbench

NO_LOG = "This needs the log of calls, which is not kept in a project: read the files of the city again."
ON_DATA = ("checks", "calibration")  # results that say what the city was made from
FIRST = ("comparison", "back_test", "recorded")  # of the others
JOBS = {  # name: (what prepares the work, label, tooltip)
    "plan": (_day.prepare, "Plan the day", "Find a deployment for each hour, with few moves between hours"),
    "test": (_tested.prepare, "Back-test", "Calibrate from the first days, and predict the last ones"),
    "compare": (_gain.prepare, "How sure is the gain?", "Compare in many cities drawn from what the log leaves open"),
}  # fmt: skip


class Trust:
    """Work on the log of a city, and its results.

    Attributes
    ----------
    results : list of Result
    gains : dict
        Mean, low and high (90 %) of the gain of one deployment over another, by what it depends on.
    day, data : list of Widget
        Content of the two tabs.
    jobs : dict of str to Job
    link : HTML
        Link to the page of the back-test.
    refs : dict of str to Widget
    """

    def __init__(self, bench: Workbench) -> None:
        self.bench, self.results = bench, list(bench.opened.results)
        self.gains: dict[tuple[Any, ...], tuple[float, float, float]] = {}
        self.recorded_for: tuple[Any, ...] = ()
        self.plan, self.said, self.link = HTML(), HTML(), HTML()
        self.jobs = {name: Job(label, tip, bench.message, partial(prepare, self))
                     for name, (prepare, label, tip) in JOBS.items()}  # fmt: skip
        self.day = [bench.controls["moves"], self.jobs["plan"], self.plan]
        row = [self.jobs["compare"], self.jobs["test"], bench.controls["hold_out"], self.link]
        self.data = [HBox(row, layout={"flex_flow": "row wrap", "align_items": "center"}), self.said]
        self.refs = {"plan": self.plan, "trust": self.said, "report_link": self.link}
        for name, job in self.jobs.items():
            self.refs |= {f"{name}_start": job.start, f"{name}_cancel": job.cancel, f"{name}_wait": job.wait}
        self.show()

    def stop(self) -> None:
        """Ask all work to end."""
        for job in self.jobs.values():
            job.stop()

    def show(self) -> None:
        """Show all results: what was found on the left, what the city was made from on the right."""
        about = "; ".join(f"{name.replace('_', ' ')} {value}" for name, value in self.bench.opened.about.items())
        made = lines(self.bench.city.notes or "No notes on the data.", *([f"Made with: {about}."] if about else []))
        self.plan.value = _charts.results(result for result in self.results if result.kind == "plan")
        told = {result.kind: replace(result, said=tuple(map(in_controls, result.said)))
                for result in self.results if result.kind != "plan"}  # fmt: skip
        data = made + _charts.results(told.pop(kind) for kind in ON_DATA if kind in told)
        found = _charts.results(sorted(told.values(), key=lambda each: (*FIRST, each.kind).index(each.kind)))
        side = "<div style='flex:1 1 30em;min-width:0'>{}</div>"
        self.said.value = "<div style='display:flex;flex-wrap:wrap;gap:0 2.5em'>" + "".join(
            side.format(part) for part in (found, data) if part
        ) + "</div>"  # fmt: skip

    def keep(self, result: Result) -> None:
        """Keep a result in place of an earlier one of its kind."""
        self.results = [each for each in self.results if each.kind != result.kind] + [result]
        self.show()

    def record(self) -> None:
        """Set what the log records beside what the model says of today's units, if there is a log and this is new."""
        at = self.bench.at
        settings = at.threshold, at.evaluator, at.capacity
        if settings != self.recorded_for and (result := _tested.recorded(self.bench)) is not None:
            self.recorded_for = settings
            self.keep(result)

    def key(self, base: Evaluation, other: Evaluation) -> tuple[Any, ...]:
        """Return what the gain of one deployment over another depends on."""
        at = self.bench.at
        sites = (tuple(sorted(e.site_names)) for e in (base, other))
        return at.load, at.capacity, self.bench.metric, *sites

    def sure(self, answer: Mapping[str, Evaluation], base: str) -> tuple[str, dict[str, str]] | None:
        """Return the title and the cells of the row that says how sure gains are; None if nothing was compared.

        The mean over the drawn cities stands there only if it is not the gain that the figures show.
        """
        late = self.bench.metric != "mean_response"
        cells = {}
        for name, e in answer.items():
            same = sorted(e.site_names) == sorted(answer[base].site_names)
            if not same and (gain := self.gains.get(self.key(answer[base], e))) is not None:
                mean, low, high = ((100 if late else 1) * value for value in gain)
                shown = gain_over(answer[base], e, self.bench.metric)
                cells[name] = f"{signed(low, 2)} to {signed(high, 2)}"
                cells[name] += "" if low <= shown <= high else f", mean {signed(mean, 2)}"
        return (f"90 % interval of the gain ({'points' if late else 'min'})", cells) if cells else None

    def log(self) -> Log:
        """Return the log with its calibration; raise if there is none."""
        log = self.bench.opened.log
        if log is None:
            raise InputError(NO_LOG)
        if log.fit is None:
            raise InputError(
                "this needs travel times that are calibrated from the log: a log with the times of dispatch and "
                "arrival, and the field Speed left empty."
            )
        return log


def gain_over(base: Evaluation, other: Evaluation, metric: Any) -> float:
    """Return the gain of a deployment over another: minutes, or percentage points of late responses."""
    if metric == "mean_response":
        return float(base.mean_response - other.mean_response)
    return 100 * float(base.late_fraction(metric[1]) - other.late_fraction(metric[1]))
