"""Advice on where the units of a city should wait, from its log of calls, for command, dashboard and notebooks.

`advise` takes the steps of `emsopt.planning.steps`. A gain below 1 % of today's value is not worth a move, and gets no
interval.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from html import escape
from pathlib import Path
from typing import cast

import numpy as np
import pandas as pd

from .._files import atomic
from ..calls import BackTest, CallLog, Checks
from ..calls._page import STYLE, html_document
from ..calls.log import Source
from ..calls.profile import hours_a_year
from ..calls.recorded import late_sentences, recorded_responses
from ..calls.uses import USE_TITLES
from ..city.city import City
from ..errors import Argument, InputError, Message
from ..errors._types import PathLike, Progress
from ..evaluators import p_median
from ..evaluators.evaluation import Evaluation
from ..evaluators.metrics import NEGLIGIBLE_DIFFERENCE, Metric, metric_function
from . import steps
from .comparison import Comparison, Interval, metric_wording
from .day_plan import Plan
from .log_model import LogModel, build
from .settings import Settings

MOST_ZONES_NAMED = 3  # zones per line, so that a line fits the screen


@dataclass(frozen=True, eq=False, repr=False)
class Advice:
    """Advice on where units should wait, from a log of calls and a table of stations.

    Attributes
    ----------
    model : LogModel
        The city and how it was made, with cells so narrow that the gain no longer depends on them.
    tested : BackTest or InputError
        Test on days held out, or why there was none.
    found : mapping of str to Evaluation
        Deployments by name: "today" if it is known, "optimum" or "best found", and "p-median". Only today's if the
        model may not be used to find others.
    how : str
        How the best deployment was found.
    comparison : Comparison or None
        Interval of the gain; None if the gain is negligible, or times are not calibrated.
    plan : Plan or None
        Deployments for the hours of the day; None before `with_day_plan`.
    """

    model: LogModel
    tested: BackTest | InputError
    found: Mapping[str, Evaluation]
    how: str
    comparison: Comparison | None = None
    plan: Plan | None = None

    @property
    def city(self) -> City:
        """The city in which deployments are evaluated."""
        return self.model.city

    @property
    def report(self) -> BackTest | None:
        """Test of the model on days held out; None if there was none."""
        return None if isinstance(self.tested, InputError) else self.tested

    @property
    def today(self) -> Evaluation | None:
        """Evaluation of today's deployment; None if that is not known."""
        return self.found.get("today")

    @property
    def best(self) -> Evaluation | None:
        """Evaluation of the best deployment found; None if the model may not be used to find one."""
        return next((e for name, e in self.found.items() if name not in ("today", "p-median")), None)

    @cached_property
    def reasons_against(self) -> tuple[str, ...]:
        """Sentences on why the model may not be used for advice on this fleet; empty if it may."""
        return steps.reasons_against_advice(self.model, self.tested, self.model.fleet[0])

    @cached_property
    def gain(self) -> Interval | None:
        """Reduction of the metric (min or a share) from today's deployment to the best: mean, low and high (90 %).

        Low and high are NaN without a comparison. The mean is the difference between the two evaluations or, if this
        lies outside the interval, the mean over the drawn cities. None if either deployment is missing.
        """
        if self.today is None or self.best is None:
            return None
        one = steps.metric_gain(self.city, self.model.settings.metric, self.today, self.best)
        if self.comparison is None:
            return Interval(one, np.nan, np.nan)
        mean, low, high = self.comparison.difference
        return Interval(one if low <= -one <= high else -mean, -high, -low)

    @property
    def is_worthwhile(self) -> bool:
        """Whether the best deployment gains 1 % or more of today's metric, with an interval above 0 if that is known.

        True if today's deployment is not known or has another number of units; False without a best deployment.
        """
        if self.best is None:
            return False
        if self.gain is None or len(self.best.sites) != len(cast("Evaluation", self.today).sites):
            return True
        value = metric_function(self.city, self.model.settings.metric)(cast("Evaluation", self.today))
        return bool(self.gain.mean >= NEGLIGIBLE_DIFFERENCE * value and self.gain.mean > 0 and not self.gain.low <= 0)

    @property
    def proposal(self) -> Evaluation | None:
        """The deployment advised: the best found, or today's if no move is worth it; None if no advice is given."""
        return self.best if self.is_worthwhile else None if self.best is None else self.today

    @cached_property
    def recorded_measures(self) -> pd.DataFrame:
        """Table of recorded responses and of those modelled for today's and the best deployment, in min and shares."""
        shown = {"today": self.today, "proposed" if self.is_worthwhile else "best found": self.best}
        known = {name: e for name, e in shown.items() if e is not None}
        return steps.compare_recorded(self.model, known, self.model.settings.threshold)

    @cached_property
    def zones(self) -> pd.DataFrame:
        """Mean response (min) of each zone: of each area or, with cells, of the cells closest to each station.

        Columns ``today``, ``proposed`` (of the best deployment), ``minutes`` (their difference), ``calls_per_year`` and
        ``share`` of all calls. Empty if either deployment is missing.
        """
        if self.today is None or self.best is None:
            return pd.DataFrame(columns=["today", "proposed", "minutes", "calls_per_year", "share"])
        hours, cells = hours_a_year(self.model.settings.hours, self.model.settings.weekdays), self.model.demand.cell_km
        return steps.zone_table(self.city, self.today, self.best, hours, by_station=cells is not None)

    @cached_property
    def worse_zones(self) -> pd.DataFrame:
        """The ``zones`` that wait longer by more than 1 % of today's mean response, largest increase first."""
        return self.zones if self.today is None else steps.worse_zones(self.zones, self.today)

    @property
    def sentences(self) -> tuple[str, ...]:
        """The advice in at most twelve lines: the data, the model's uses, today, the proposal, likely mistakes."""
        read, given = self.model.data_notes, "Travel times are given."
        times = (said for said in (*read, *self.model.assumed) if said.startswith(("Times are", "Units are")))
        noted = (said for said in read if said.startswith(("Columns of times", "Today")))
        table = str(recorded_texts(self.recorded_measures).to_string())
        lines = (f"{read[0]} {next(times, given)}", *noted, _use_sentence(self.tested), table)
        return (*lines, *_proposal_sentences(self), _mistake_sentence(self.model.checks))

    @property
    def plan_lines(self) -> tuple[str, ...]:
        """Sentences on the plan of the day, then one line per move of a unit; empty without a plan."""
        if self.plan is None:
            return ()
        moves = (f"{hour:02d}:00  {old} -> {new}" for hour, old, new in self.plan.changes().itertuples(index=False))
        return (*plan_sentences(self.plan, self.today), *moves)

    @property
    def details(self) -> tuple[str, ...]:
        """Lines with all findings that `sentences` leave out."""
        parts: list[Iterable[str]] = [*_model_lines(self.model), ("Test on days held out", *_test_lines(self.tested))]
        if self.model.recorded_calls is not None:
            threshold = self.model.settings.threshold
            late = None if self.today is None else float(self.today.late_fraction(threshold))
            parts.append((late_sentences(late, threshold, recorded_responses(self.model.recorded_calls)[1]),))
        if self.best is not None:
            parts.append(_deployment_lines(self))
        if len(self.worse_zones) and self.is_worthwhile:
            parts.append(("Zones that wait longer (min, calls a year)", self.worse_zones.round(2).to_string()))
        if self.comparison is not None:
            parts.append(("How sure the gain is", str(self.comparison)))
        parts.append(self.plan_lines)
        return tuple(line for part in parts if part for line in ("", *part))[1:]

    @property
    def html(self) -> str:
        """One self-contained HTML page with the sentences, the details and the test."""
        answer, details = (escape("\n".join(lines)) for lines in (self.sentences, self.details))
        body = f"<h1>{escape(self.city.name)}: where should the units wait?</h1><pre>{answer}</pre>"
        body += f"<h2>Details</h2><pre>{details}</pre>{'' if self.report is None else self.report.body}"
        return html_document(self.city.name, STYLE + "pre { white-space: pre-wrap; }", body)

    def with_day_plan(self, moves: int, *, progress: Progress = False) -> Advice:
        """Return the advice with a plan of the day that moves at most ``moves`` units between two hours."""
        model, units = self.model, self.model.fleet[0]
        steps.stop_if_not_allowed(model, self.tested, units)
        given = model.city, model.space(units), moves, model.rates_by_hour, model.settings
        return replace(self, plan=steps.plan_day(*given, model=model, progress=progress))

    def save(self, path: PathLike) -> Path:
        """Write `html` to a file and return its path; raise, and leave an existing file unchanged, if that fails."""
        return atomic.write_file(path, self.html)

    def __str__(self) -> str:
        return "\n".join(self.sentences)

    def __repr__(self) -> str:
        return f"<Advice for {self.city.name}: {_proposal_sentences(self)[0]}>"


def advise(
    calls: CallLog | Source, stations: Source, settings: Settings | None = None, *, progress: Progress = False
) -> Advice:
    """Advise where the units of a city should wait, by its log of calls, and how far the advice can be trusted.

    Raise if something is wrong in the data and not accepted, or a setting is invalid.

    Parameters
    ----------
    calls, stations
        As `read_calls` and `read_stations` take them.
    settings : Settings, optional
    progress : bool or callable
        Whether to show bars, or a function that is called with (starts of the search or cities drawn so far, total).

    Examples
    --------
    >>> import emsopt as eo
    >>> settings = eo.planning.Settings(units=3, cell_km=3.0, drop_repeats=True, empty_days="missing",
    ...                                 accept_findings=True)
    >>> advice = eo.planning.advise(*eo.datasets.practice_calls(), settings)
    >>> list(advice.found), advice.today is None
    (['optimum', 'p-median'], True)
    """
    model = build(calls, stations, settings)
    steps.stop_if_wrong(model)
    steps.count_held_out_days(model.log, model.settings.hold_out)
    tested = steps.try_back_test(model)
    today, units = model.today, model.fleet[0]
    if steps.reasons_against_advice(model, tested, units):
        found = {} if today is None else {"today": steps.evaluation_of(model, today)}
        return Advice(model, tested, found, "not searched")
    name, sites, how = steps.find_best(model.objective(units), progress=progress)
    deployments = {name: sites}
    if today is not None:
        model, deployments = steps.narrow_cells(model, (today, sites)), {"today": today, name: sites}
    largest = max(map(len, deployments.values()))
    found = {name: steps.evaluation_of(model, each, largest) for name, each in deployments.items()}
    if units <= model.city.n_sites - len(set(model.settings.closed)):  # else the p-median leaves some arbitrary
        found["p-median"] = steps.evaluation_of(model, p_median(model.city, model.space(units)).sites, largest)
    advice = Advice(model, tested, found, how)
    if model.fit is not None and today is not None and advice.is_worthwhile and sorted(today) != sorted(sites):
        advice = replace(advice, comparison=steps.compare_deployments(model, deployments, progress=progress))
    return advice


def _use_sentence(tested: BackTest | InputError) -> str:
    """Return a sentence on the uses for which the test allows the model, and those for which it does not."""
    if isinstance(tested, InputError):
        said = "The model was not tested, so nothing says how far it can be trusted: "
        return Message(said, *Message.of(tested).parts)
    good = tested.uses["usable"].to_numpy(bool)
    names = np.array([USE_TITLES[use].lower() for use in tested.uses.index])
    usable = f"The model may be used for: {', '.join(names[good]) or 'nothing'}."
    usable += "" if good.all() else f" Not for: {', '.join(names[~good])}."
    if not tested.followed_rule:
        return usable
    said = f"{usable} The record follows {tested.followed_rule!r} dispatch: try "
    return Message(said, Argument("dispatch", tested.followed_rule), ".")


def recorded_texts(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table of `steps.compare_recorded` as texts, with titles in words."""
    limit = str(table.index[-1]).split("_")[2]
    late = f"{limit} min or more" if table["recorded"].isna().any() else f"recorded as over {limit} min"
    forms = ["{:.2f}", "{:.2f}", "{:.1%}"]
    rows = zip(forms, table.to_numpy(float), strict=True)
    texts = [["unknown" if np.isnan(v) else form.format(v) for v in row] for form, row in rows]
    names = [name if name == "recorded" else f"{name}, modelled" for name in table.columns]
    return pd.DataFrame(texts, index=["mean response (min)", "90th percentile (min)", late], columns=names)


def _proposal_sentences(advice: Advice) -> list[str]:
    """Return sentences on the deployment proposed, its gain and the zones that wait longer, or on why there is none."""
    best, today, gain = advice.best, advice.today, advice.gain
    if best is None:
        why = "the test does not allow it" if advice.report is not None else "the log contradicts the stations"
        return [f"No plan is proposed, as {why}.", *advice.reasons_against]
    if today is None or gain is None:
        return [f"Proposed for {len(best.sites)} units: {names_with_counts(best.site_names)}."]
    old, new = (Counter(e.site_names) for e in (today, best))
    if old == new:
        return [f"Leave the units where they are: no deployment was found that is better ({advice.how})."]
    gained = _gain_text(advice.model.settings.metric, gain)
    if not advice.is_worthwhile:
        why = "which chance in the log may explain" if gain.low <= 0 else "not worth a move"
        return [f"Leave the units where they are: the best deployment found gains {gained}, {why}."]
    fewer, more = list_changes(today.site_names, best.site_names)
    same = len(best.sites) == len(today.sites)
    moved = f"Move {(new - old).total()} of {len(best.sites)} units"
    head = moved if same else f"{len(best.sites)} units, not {len(today.sites)}"
    verb = "gains" if gain.mean >= 0 else "loses (negative gain)"
    return [f"{head}: from {fewer} to {more}. This {verb} {gained}.", *_drawback_sentences(advice, today, best)]


def _gain_text(metric: Metric, gain: Interval) -> str:
    """Return a gain in the metric as text, with its interval unless that is NaN."""
    scale, unit, what = metric_wording(metric)
    mean, low, high = (scale * value for value in gain)
    sure = "" if np.isnan(low) else f" (90 % interval: {low:+.3f} to {high:+.3f})"
    return f"{mean:+.3f}{unit} of {what}{sure}"


def _drawback_sentences(advice: Advice, today: Evaluation, best: Evaluation) -> Iterator[str]:
    """Yield sentences on zones that wait longer, and on measures that the proposal makes worse."""
    if said := longer_wait_sentence(advice.worse_zones):
        yield said
    sentences, limit = [], advice.model.settings.threshold
    for measure, old, new, form in (
        ("the 90th percentile", today.percentile_90, best.percentile_90, "{:.2f} min"),
        (f"responses of {limit:g} min or more", today.late_fraction(limit), best.late_fraction(limit), "{:.1%}"),
        ("the mean response", today.mean_response, best.mean_response, "{:.2f} min"),
        ("the worst zone", *advice.zones[["today", "proposed"]].max(), "{:.2f} min"),
    ):
        if new > (1 + NEGLIGIBLE_DIFFERENCE) * old:
            sentences.append(f"{measure} from {form.format(old)} to {form.format(new)}")
    if sentences and advice.gain is not None and advice.gain.mean > 0:
        yield f"This is a trade-off. What rises: {'; '.join(sentences)}."


def longer_wait_sentence(worse: pd.DataFrame) -> str:
    """Return a sentence on the zones in ``worse`` (`steps.worse_zones`) with their calls per year and added minutes.

    It is empty if there are none.
    """
    if not len(worse):
        return ""
    zones = ", ".join(f"{name} {row.minutes:+.1f} min" for name, row in worse.head(MOST_ZONES_NAMED).iterrows())
    more = f" and {len(worse) - MOST_ZONES_NAMED} more" if len(worse) > MOST_ZONES_NAMED else ""
    calls = f"{worse['calls_per_year'].sum():,.0f} calls a year ({worse['share'].sum():.0%})"
    named = ", by their closest station" if worse.index.name == "station" else ""
    return f"Longer waits: {calls} in {len(worse)} zone(s){named}: {zones}{more}."


def _mistake_sentence(checks: Checks) -> str:
    """Return sentences that name the mistakes and the doubtful data that the checks found."""
    wrong, look = (", ".join(f.what for f in checks if (f.level == "wrong") == bad) for bad in (True, False))
    said = f"Wrong in the data: {wrong}." if wrong else "Nothing is certainly wrong in the data."
    return said + (f" Worth a look: {look}." if look else "")


def _model_lines(model: LogModel) -> Iterator[Iterable[str]]:
    """Yield sections on the data, the assumptions and the calibration, each a title followed by lines."""
    found = (Message(f"{f.level:5}  {f.what}: ", *Message.of(f.text).parts, f.rows_text and f" Rows: {f.rows_text}")
             for f in model.checks)  # fmt: skip
    yield ("Data", *model.data_notes[1:], *found)
    yield ("Assumed", *model.assumed, model.city.notes)
    if model.fit is not None:
        title = f"Calibrated from {len(model.fit.calls):,} calls; 90 % intervals"
        yield (title, model.fit.to_frame().round(3).to_string())


def _test_lines(tested: BackTest | InputError) -> Iterator[str]:
    """Yield the results of the test on days held out, or why there was none."""
    if isinstance(tested, InputError):
        yield Message.of(tested)
        return
    yield f"{tested.calls:,} calls, {tested.period}, which that calibration has not seen:"
    yield tested.overall[["recorded", "modelled", "low", "high"]].round(3).to_string()
    yield from (*tested.verdict, *tested.details)


def _deployment_lines(advice: Advice) -> Iterator[str]:
    """Yield lines on how the deployments were found, their measures, their stations, and the cells of the calls."""
    table = pd.DataFrame({name: e.summary(advice.model.settings.threshold) for name, e in advice.found.items()})
    yield f"Deployments ({advice.how})"
    yield f"{next(iter(advice.found.values())).evaluator} hypercube:\n{table.round(4).to_string()}"
    yield from (f"{name}: {names_with_counts(e.site_names)}" for name, e in advice.found.items())
    if (width := advice.model.demand.cell_km) is not None:
        yield f"Calls are counted in {advice.city.n_atoms} cells of {width:g} km."


def plan_sentences(plan: Plan, today: Evaluation | None = None) -> Iterator[str]:
    """Yield sentences on the value of a plan of the day, that without moves, and whether the moves are worth it."""
    o = plan.objectives[0]
    fixed, free = (value_with_gap(value, plan) for value in (plan.fixed_value, plan.free_value))
    yield f"Plan of the day, {o.units} units, {plan.limit_text} ({o.evaluator}): {plan.message}."
    yield f"{o.label}, mean over all calls: {plan.value:.4g}; {fixed} without moves, {free} with unlimited moves."
    if today is not None and len(today.sites) == o.units:
        now = sum(w * each(today.sites) for w, each in zip(plan.weights, plan.objectives, strict=True))
        yield f"Today's deployment, hour by hour: {value_with_gap(float(now), plan)}."
    yield plan.verdict


def value_with_gap(value: float, plan: Plan) -> str:
    """Return a value as text with its difference to the plan's value, also in percent unless that rounds to 0."""
    if not plan.value:
        return f"{value:.4g}"
    percent = round(100 * (value / plan.value - 1), 1) + 0.0  # adding 0.0 turns -0.0 into 0.0
    return f"{value:.4g} ({value - plan.value:+.2g}{f', {percent:+.1f} %' if percent else ''})"


def names_with_counts(names: Iterable[str]) -> str:
    """Return names and how often each occurs, as "Station 2 x 2, 3, 9"; a first word common to all comes once."""
    units = Counter(names)
    words = {name.partition(" ")[0] for name in units}
    common = f"{words.pop()} " if len(words) == 1 and all(" " in name for name in units) and len(units) > 1 else ""
    named = ((name.removeprefix(common), n) for name, n in units.items())
    return common + ", ".join(name if n == 1 else f"{name} x {n}" for name, n in named)


def list_changes(before: Iterable[str], after: Iterable[str]) -> tuple[str, str]:
    """Return the stations that lose units and those that get units, with the numbers of units, as two texts."""
    old, new = Counter(before), Counter(after)
    return names_with_counts((old - new).elements()) or "none", names_with_counts((new - old).elements()) or "none"
