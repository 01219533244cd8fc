"""The tabs "day plan" and "data and trust": plan the hours of the day, test the model, say how sure a gain is.

What is found here is kept as results of the project: sentences and tables, without single calls. Tests and comparisons
need the log, which a project does not hold; their results stay when the project is opened again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from ipywidgets import HTML

from ..calls import held_out_weeks
from ..calls.back_test import calibrate_and_test
from ..calls.drawn_cities import drawn_cities
from ..errors import InputError
from ..planning import compare, hourly_plan, judge_plan
from ..planning.project import Result
from . import _charts
from ._charts import signed
from ._job import Job
from ._own_city import in_controls
from ._widgets import Done, download, lines

if TYPE_CHECKING:
    from collections.abc import Callable

    from .._types import Rng
    from ..city.city import City
    from ..evaluators import Evaluation
    from ..planning.comparison import UncertainCity
    from ._opened import Log
    from ._workbench import Workbench

DRAWS = 400  # of cities, to say how sure a gain is
LEARN = 2 / 3  # share of the days of a log from which a back-test calibrates
MANY_UNITS = 20  # from which judging a plan that was searched takes too long
NO_LOG = "This needs the log of calls, which is not kept in a project: read the files of the city again."


class Trust:
    """Work on the log of a city, and its results.

    Attributes
    ----------
    results : list of Result
    gains : dict
        Mean, low and high (90 %) of the gain of one deployment over another, by what it depends on.
    day, data : list of Widget
        Content of the two tabs.
    refs : dict of str to Widget
    """

    def __init__(self, bench: Workbench) -> None:
        self.bench, self.results = bench, list(bench.opened.results)
        self.gains: dict[tuple[Any, ...], tuple[float, float, float]] = {}
        self.plan, self.said, self.link = HTML(), HTML(), HTML()
        tips = {
            "plan": ("Plan the day", "Find a deployment for each hour, with few moves between hours"),
            "test": ("Back-test", "Calibrate from the first two thirds of the days, and predict the last third"),
            "compare": ("How sure is the gain?", "Draw cities from what the log leaves open, and compare in each"),
        }
        self.jobs = {name: Job(*tips[name], bench.message, getattr(self, f"_{name}")) for name in tips}
        self.day = [self.jobs["plan"], self.plan]
        self.data = [self.jobs["test"], self.jobs["compare"], self.link, self.said]
        self.refs = {"plan": self.plan, "trust": self.said, "report_link": self.link}
        for name, job in self.jobs.items():
            self.refs |= {f"{name}_start": job.start, f"{name}_cancel": job.cancel, f"{name}_wait": job.wait}
        self.show()

    def stop(self) -> None:
        """Ask all work to end."""
        for job in self.jobs.values():
            job.stop()

    def show(self) -> None:
        """Show all results."""
        plans = [result for result in self.results if result.kind == "plan"]
        about = "; ".join(f"{name.replace('_', ' ')} {value}" for name, value in self.bench.opened.about.items())
        made = lines(self.bench.city.notes or "No notes on the data.", *([f"Made with: {about}."] if about else []))
        self.plan.value = _charts.results(plans)
        others = [replace(result, said=tuple(map(in_controls, result.said)))
                  for result in self.results if result.kind != "plan"]  # fmt: skip
        self.said.value = made + _charts.results(others)

    def keep(self, result: Result) -> None:
        """Keep a result in place of an earlier one of its kind."""
        self.results = [each for each in self.results if each.kind != result.kind] + [result]
        self.show()

    # -- how sure a gain is -------------------------------------------------------------------------------------------

    def _key(self, base: Evaluation, other: Evaluation) -> tuple[Any, ...]:
        at = self.bench.at
        sites = (tuple(sorted(e.site_names)) for e in (base, other))
        return at.load, at.capacity, self.bench.metric, *sites

    def sure(self, answer: Mapping[str, Evaluation], base: str) -> tuple[str, dict[str, str]] | None:
        """Return the title and the cells of the row that says how sure gains are; None if nothing was compared."""
        late = self.bench.metric != "mean_response"
        cells = {}
        for name, e in answer.items():
            same = sorted(e.site_names) == sorted(answer[base].site_names)
            if not same and (gain := self.gains.get(self._key(answer[base], e))) is not None:
                mean, low, high = ((100 if late else 1) * value for value in gain)
                cells[name] = f"{signed(mean, 2)} ({signed(low, 2)} to {signed(high, 2)})"
        return (f"gain by the log, 90 % interval ({'points' if late else 'min'})", cells) if cells else None

    def _log(self) -> Log:
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

    def _compare(self) -> Callable[[], str]:
        bench, log = self.bench, self._log()
        answer, metric, at = bench.compute(), bench.metric, bench.at
        base = bench.base(answer)
        alike = sorted(answer[base].site_names)
        names = [base, *(name for name, e in answer.items() if sorted(e.site_names) != alike)]
        # `compare` tells the last against the first: the user's deployment, or else the best.
        names[1:] = sorted(names[1:], key=lambda name: (name == "yours", name in ("optimum", "best found")))
        if len(names) == 1:
            raise InputError(f"all deployments shown are the same as {base}: move a unit, or search.")
        sites = {name: answer[name].sites for name in names}
        keys = {name: self._key(answer[base], answer[name]) for name in names[1:]}
        tell = self.jobs["compare"].tell

        def work() -> str:
            assert log.fit is not None
            known = drawn_cities(log.fit, **log.counting, **log.making)
            scaled = _Scaled(known, at.load * bench.city.total_rate / known.city().total_rate)
            found = compare(scaled, sites, draws=DRAWS, rng=0, capacity=at.capacity, metric=metric, progress=tell)
            table = found.to_frame().astype(float)
            for name, key in keys.items():
                gap = table.loc[name, ["difference", "difference_low", "difference_high"]].to_numpy(float)
                self.gains[key] = -float(gap[0]), -float(gap[2]), -float(gap[1])
            title = f"How sure is the gain over {base}? ({DRAWS} cities drawn, seed 0, load {at.load:.3g})"
            self.keep(Result("comparison", title, (str(found),), table))
            bench.respond()
            return Done("Compared: see the row of gains by the log, and the tab Data and trust.")

        return work

    # -- the back-test ------------------------------------------------------------------------------------------------

    def _test(self) -> Callable[[], str]:
        log, today = self._log(), self.bench.today
        days = log.calls.times.astype("datetime64[D]")
        length = int((days[-1] - days[0]).astype(int)) + 1
        if length < 3:
            raise InputError(f"a back-test needs a log of at least 3 days; this one has {length}.")
        cut = days[0] + max(1, round(LEARN * length))

        def work() -> str:
            _, report = calibrate_and_test(log.calls, log.stations, cut, roads=log.roads, today=today)
            title = f"Back-test: calibrated before {cut}, compared with {report.period} ({report.calls:,} calls)"
            self.keep(Result("back_test", title, report.verdict, report.to_frame()))
            self.link.value = f"<p>{download('back_test.html', 'text/html', report.html.encode())}</p>"
            said = report.verdict[0]
            return Done(said) if ": usable" in said else said

        return work

    # -- the day ------------------------------------------------------------------------------------------------------

    def _plan(self) -> Callable[[], str]:
        bench, rates = self.bench, self.bench.opened.by_hour
        if rates is None and bench.opened.about.get("hours"):
            raise InputError("the field Hours must be empty for a day plan.")
        if rates is None:
            raise InputError("a plan needs calls by the hour of the day: read a log of calls as your own city.")
        settings, moves, log = bench.settings(), bench.at.moves, bench.opened.log
        city, space = bench.space(settings)
        load, metric, capacity = settings[0], settings[2], settings[-1]
        cities = {h: _at_hour(city, load * rates[h], h) for h in range(24)}
        tell = self.jobs["plan"].tell

        def work() -> str:
            plan = hourly_plan(cities, space, moves, metric=metric, capacity=capacity, rng=0, progress=tell)
            searched = np.isnan(plan.lower_bound)
            if plan.moves.any() and log is not None and load == 1 and not (searched and space.units >= MANY_UNITS):
                weekdays = log.making.get("weekdays")
                parts = held_out_weeks(log.calls, log.stations, most=3 if searched else 8, weekdays=weekdays,
                                       **log.counting)  # fmt: skip
                plan = judge_plan(plan, parts, rng=0, progress=tell)
            late = metric != "mean_response"
            unit, scale = (" % late", 100) if late else (" min", 1)
            values = [f"{scale * v:.3f}{unit}" for v in (plan.fixed_value, plan.value, plan.free_value)]
            means = f"{values[0]} without moves, {values[1]} with {plan.moves.sum()} moves a day"
            verdict = "The plan is not judged on days held out of the log: chance in the log may explain its gain."
            said = (
                f"{space.units} units, at most {moves} moved between hours: {plan.message}.",
                f"Mean over all calls: {means}, {values[2]} with unlimited moves.",
                plan.verdict if plan.held_out is not None or not plan.moves.any() else verdict,
            )
            table = plan.changes().astype(str)
            table.index = pd.Index([f"{int(hour):02d}:00" for hour in table.pop(table.columns[0])])
            self.keep(Result("plan", "Plan of the day", said, table if len(table) else None))
            if plan.held_out is None:
                return Done("Planned the day: see the tab Day plan.")
            return Done(said[2]) if plan.held_out.worth_it else said[2]

        return work


def _at_hour(city: City, rates: Any, hour: int) -> City:
    return city.replace(arrival_rates=rates, name=f"{city.name}, {hour:02d} to {hour + 1:02d} h")


@dataclass(frozen=True)
class _Scaled:
    """An uncertain city with all call rates multiplied by ``theta``."""

    known: UncertainCity
    theta: float

    @property
    def weeks(self) -> float:
        return self.known.weeks

    def city(self) -> City:
        return self.known.city().scaled(self.theta)

    def draws(self, n: int, rng: Rng = None, *, vary: Iterable[str] = ("demand", "travel", "service"),
              more: float = 1.0) -> Iterator[City]:  # fmt: skip
        for city in self.known.draws(n, rng, vary=vary, more=more):
            yield city.scaled(self.theta)
