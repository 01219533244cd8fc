"""The dashboard's tabs "Day plan" and "Data and trust": plan the hours of the day, test the model, assess gains.

Tests and comparisons need the log, which a project does not hold; their results are kept in it, without single calls.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pandas as pd
from ipywidgets import HTML, HBox

from ..calls import BackTest
from ..calls.recorded import late_sentences, recorded_responses
from ..errors import InputError
from ..evaluators import Evaluation
from ..planning import LogModel, Settings, advice, steps
from ..planning.project import Result
from . import _charts
from ._charts import format_signed
from ._deployments import BEST_NAMES, Deployments
from ._uploads import with_control_names
from ._widgets import BackgroundJob, Message, SuccessText, download_link, paragraphs

NO_LOG_MESSAGE = (
    "This needs a log of calls: read one as your own files. St. Paul and the random city have none, and it is not kept "
    "in a project."
)
DATA_RESULTS = ("checks", "calibration")  # results about the sources of the city, which have a column of their own
FIRST_RESULTS = ("comparison", "back_test", "recorded")  # shown before all others


class TrustTabs:
    """The back-test, the comparison and the plan of the day for the city of ``bench``, with their buttons and results.

    ``gains`` has mean, low and high (90 %) of gains of one deployment over another, by `gain_key`, in min or shares.
    ``day`` and ``data`` are the widgets of the two tabs; ``link`` holds a link to the page of the back-test.
    """

    def __init__(self, bench: Deployments) -> None:
        self.bench, self.results = bench, [_name_controls(result) for result in bench.opened.results]
        self.gains: dict[tuple[Any, ...], tuple[float, float, float]] = {}
        self.recorded_for: tuple[Any, ...] = ()
        self.last_test: tuple[Any, BackTest | InputError | None] = None, None
        self.plan, self.findings, self.link = HTML(), HTML(), HTML()
        planned, tested = Message(with_control_names), Message(with_control_names)  # below the buttons of each tab
        hours = "Find a deployment for each hour, with few moves"
        past, drawn = "Calibrate from the first days, predict the last", "Compare in many cities drawn from the log"
        self.jobs = {
            "plan": BackgroundJob("Plan the day", hours, planned, self.prepare_plan),
            "test": BackgroundJob("Back-test", past, tested, self.prepare_back_test),
            "compare": BackgroundJob("How sure is the gain?", drawn, tested, self.prepare_comparison),
        }
        self.day = [bench.controls["moves"], self.jobs["plan"], planned, self.plan]
        row = [self.jobs["compare"], self.jobs["test"], bench.controls["hold_out"], self.link]
        self.data = [HBox(row, layout={"flex_flow": "row wrap", "align_items": "center"}), tested, self.findings]
        self.refs = {"plan": self.plan, "trust": self.findings, "report_link": self.link}
        self.refs |= {"plan_message": planned, "trust_message": tested}
        for name, job in self.jobs.items():
            self.refs |= {f"{name}_start": job.start, f"{name}_cancel": job.cancel, f"{name}_wait": job.wait}
        self.show_results()

    def stop(self) -> None:
        """Ask all work in the background to end."""
        for job in self.jobs.values():
            job.stop()

    def show_results(self) -> None:
        """Show all results: tests and comparisons on the left, notes, checks and calibration on the right."""
        about = _charts.facts_line(self.bench.opened.about)
        notes = self.bench.city.notes or "No notes on the data."
        made = paragraphs(notes, *filter(None, [about and f"Made with: {about}."]))
        told = {result.kind: result for result in self.results}
        self.plan.value = _charts.results_html(filter(None, [told.pop("plan", None)]))
        data = made + _charts.results_html(told.pop(kind) for kind in DATA_RESULTS if kind in told)
        ordered = sorted(told.values(), key=lambda each: (*FIRST_RESULTS, each.kind).index(each.kind))
        found = _charts.results_html(ordered)
        parts = "".join(f"<div style='flex:1 1 30em;min-width:0'>{part}</div>" for part in (found, data) if part)
        self.findings.value = f"<div style='display:flex;flex-wrap:wrap;gap:0 2.5em'>{parts}</div>"

    def store_result(self, result: Result) -> None:
        """Store and show a result, which replaces an earlier one of its kind."""
        self.results = [each for each in self.results if each.kind != result.kind] + [_name_controls(result)]
        self.show_results()

    def store_recorded(self) -> None:
        """Store the comparison of today's recorded and modelled responses, once per settings, if there is a log."""
        bench, at = self.bench, self.bench.values
        model, today, settings = bench.opened.log, bench.opened.today, (at.threshold, at.evaluator, at.capacity)
        if settings == self.recorded_for or model is None or today is None or model.recorded_calls is None:
            return
        self.recorded_for = settings
        evaluator, _ = bench.evaluator(len(today))
        e = bench.evaluate(1.0, today, evaluator.replace("simulation", "approximate"), at.capacity)
        minutes, step = recorded_responses(model.recorded_calls)
        count = f"{len(minutes):,} calls with dispatch and arrival"
        title = f"Today's {len(today)} units, recorded ({count}) beside modelled"
        exact = float(e.late_fraction(at.threshold))
        table = advice.recorded_texts(steps.compare_recorded(model, {"today": e}, at.threshold))
        self.store_result(Result("recorded", title, (late_sentences(exact, at.threshold, step),), table))

    def gain_key(self, base: Evaluation, other: Evaluation) -> tuple[Any, ...]:
        """Return the key of a gain in ``gains``: both deployments and the settings that it depends on."""
        at = self.bench.values
        return at.load, at.capacity, self.bench.metric, *(tuple(sorted(e.site_names)) for e in (base, other))

    def interval_row(self, answer: Mapping[str, Evaluation], base: str) -> tuple[str, dict[str, str]] | None:
        """Return title and cells, by name, of the row with intervals of gains over ``base``; None without comparison.

        If the gain in the figures lies outside the interval, a cell also has the mean over the drawn cities.
        """
        late = self.bench.metric != "mean_response"
        scale, cells = 100 if late else 1, {}
        for name, e in answer.items():
            same = sorted(e.site_names) == sorted(answer[base].site_names)
            if not same and (gain := self.gains.get(self.gain_key(answer[base], e))) is not None:
                mean, low, high = (scale * value for value in gain)
                shown = scale * steps.metric_gain(self.bench.city, self.bench.metric, answer[base], e)
                cells[name] = f"{format_signed(low, 2)} to {format_signed(high, 2)}"
                cells[name] += "" if low <= shown <= high else f", mean {format_signed(mean, 2)}"
        return (f"90 % interval of the gain ({'points' if late else 'min'})", cells) if cells else None

    def require_model(self) -> LogModel:
        """Return the model of the log under the current settings; raise if there is no log."""
        if (model := self.bench.model) is None:
            raise InputError(NO_LOG_MESSAGE)
        return model

    def back_test_of(self, model: LogModel) -> BackTest | InputError:
        """Return the back-test of a model, or the error that says why it is not possible; the last one is cached."""
        if self.last_test[0] != _test_key(model):
            self.last_test = _test_key(model), steps.try_back_test(model)
        assert self.last_test[1] is not None
        return self.last_test[1]

    def caution_text(self, units: int) -> str:
        """Return a text on why the log does not allow advice on ``units`` units; empty if it does or there is none."""
        if (model := self.bench.model) is None:
            return ""
        tested = self.last_test[1] if self.last_test[0] == _test_key(model) else None
        why = steps.reasons_against_advice(model, tested, units)
        return f"This is no advice, as the log does not allow it. {' '.join(why)}" if why else ""

    def prepare_back_test(self) -> Callable[[], str]:
        """Return the work of the back-test: a function that stores its result and returns a message."""
        model = self.require_model()

        def work() -> str:
            report = self.back_test_of(model)
            if isinstance(report, InputError):
                raise report
            days = f"the last {model.settings.hold_out} days predicted from the others"
            title = f"Back-test: {days} ({report.calls:,} calls)"
            self.store_result(Result("back_test", title, report.verdict, report.to_frame(), report.details))
            self.link.value = f"<p>{download_link('back_test.html', 'text/html', report.html.encode())}</p>"
            return SuccessText(report.verdict[0]) if report.usable("mean") else report.verdict[0]

        return work

    def prepare_comparison(self) -> Callable[[], str]:
        """Return the work of the comparison: a function that stores gains and a result and returns a message."""
        bench, model, load = self.bench, self.require_model(), self.bench.values.load
        answer = bench.compute()
        base = bench.baseline_name(answer)
        alike = sorted(answer[base].site_names)
        names = [base, *(name for name, e in answer.items() if sorted(e.site_names) != alike)]
        # `compare` tells the last against the first: the user's deployment, or else the best.
        names[1:] = sorted(names[1:], key=lambda name: (name == "yours", name in BEST_NAMES))
        if len(names) == 1:
            raise InputError(f"all deployments shown are the same as {base}: move a unit, or search.")
        sites = {name: answer[name].sites for name in names}
        keys = {name: self.gain_key(answer[base], answer[name]) for name in names[1:]}

        def work() -> str:
            found = steps.compare_deployments(model, sites, load=load, progress=self.jobs["compare"].show_progress)
            table = found.to_frame().astype(float)
            for name, key in keys.items():
                gap = table.loc[name, ["difference", "difference_low", "difference_high"]].to_numpy(float)
                self.gains[key] = -float(gap[0]), -float(gap[2]), -float(gap[1])
            title = f"How sure is the gain over {base}? ({steps.N_DRAWS} cities drawn, seed 0, load {load:.3g})"
            note = (
                "Its mean may differ from the gain in the table of figures, as drawn cities have cells as narrow as "
                "the gain needs, and count where recorded drives were faster or slower than the law of all drives."
            )
            self.store_result(Result("comparison", title, found.sentences, table, (note,)))
            bench.respond()
            said = "the figures have a row with the interval of the gain, the tab Data and trust says more."
            return SuccessText(f"Compared: {said}")

        return work

    def prepare_plan(self) -> Callable[[], str]:
        """Return the work of the plan of the day: a function that stores it and returns a message.

        The function raises if the log or the back-test rules out a plan.
        """
        bench, model, rates = self.bench, self.bench.model, self.bench.opened.by_hour
        if rates is None:
            need = "calls by the hour of the day: read a log of calls as your own city"
            need = "the field Hours to be empty" if bench.opened.about.get("hours") else need
            raise InputError(f"a plan of the day needs {need}.")
        now = bench.search_settings
        space = bench.space(now)
        settings = Settings(metric=now.metric, capacity=now.capacity) if model is None else model.settings
        given = space.city, space, bench.values.moves, rates, settings
        if space.units >= steps.MANY_UNITS:
            bench.message.show(
                f"A plan for {space.units} units can take many minutes; the bar says how many after the first hour of "
                "the day. Cancel ends it after the hour that is searched."
            )

        def work() -> str:
            if model is not None:
                steps.stop_if_not_allowed(model, self.back_test_of(model), space.units)
            plan = steps.plan_day(*given, model=model, load=now.load, progress=self.jobs["plan"].show_progress)
            sentences = tuple(advice.plan_sentences(plan))
            table = plan.changes().astype(str)
            table.index = pd.Index([f"{int(hour):02d}:00" for hour in table.pop(table.columns[0])])
            self.store_result(Result("plan", "Plan of the day", sentences, table if len(table) else None))
            if plan.held_out is None:
                return SuccessText("Planned the day: see the tab Day plan.")
            return SuccessText(plan.verdict) if plan.held_out.is_worthwhile else plan.verdict

        return work


def _test_key(model: LogModel) -> tuple[Any, ...]:
    """Return the settings on which the back-test of a model depends: days held out and today's deployment."""
    return model.settings.hold_out, None if model.today is None else tuple(model.today.tolist())


def _name_controls(result: Result) -> Result:
    """Return a result whose sentences name the controls of the page in place of Python arguments."""
    return replace(result, sentences=tuple(map(with_control_names, result.sentences)))
