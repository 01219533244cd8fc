"""Say advice in words: an answer of at most twelve lines, the details, and a report as one page."""

from __future__ import annotations

from collections import Counter
from html import escape
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from ..calls import recorded_responses
from ..calls._page import STYLE, document
from ..calls.recorded import in_words
from ..calls.uses import TITLES as USES
from ..errors import Message
from ._comparison_in_words import NEGLIGIBLE, wording

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ..calls import BackTest
    from ..errors import Argument
    from ..evaluators.evaluation import Evaluation
    from .advice import Advice
    from .hourly import Plan

MOST_NAMED = 3  # zones, findings or stations in a line
LITTLE = 0.001  # share of the value that no move in the day is worth
TITLES = {"mean_response_min": "mean response (min)", "percentile_90_min": "90th percentile (min)"}


def answer(advice: Advice) -> tuple[str, ...]:
    """Return what was read, what the model may be used for, today, the proposal and what is wrong: twelve lines."""
    model = advice.model
    given = "Travel times are given."
    how = next((said for said in (*model.read, *model.assumed) if said.startswith(("Times are", "Units are"))), given)
    lines = [f"{model.read[0]} {how}", *(said for said in model.read if said.startswith("Today"))]
    lines += [*_uses(advice.report, advice.untested), table_text(advice.recorded)]
    lines += proposal(advice)
    return (*lines, _wrong(advice))


def _uses(report: BackTest | None, untested: str) -> list[str]:
    """Return what the model may be used for, and for what not and why."""
    if report is None:
        return [Message("The model was not tested, so nothing says how far it can be trusted: ", *_parts(untested))]
    good = report.uses["usable"].to_numpy(bool)
    names = np.array([USES[use].lower() for use in report.uses.index])
    usable = f"The model may be used for: {', '.join(names[good]) or 'nothing'}."
    if not good.all():
        usable += f" Not for: {', '.join(names[~good])}."
    return [usable]


def table_text(table: pd.DataFrame) -> str:
    """Return recorded beside modelled responses as text."""
    return str(cells(table).to_string())


def cells(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table of recorded beside modelled responses with titles in words, and cells as text."""
    late = str(table.index[-1])
    limit = late.split("_")[2]
    titles = TITLES | {
        late: f"{limit} min or more" if table["recorded"].isna().any() else f"recorded as over {limit} min"
    }
    forms = ["{:.2f}", "{:.2f}", "{:.1%}"]
    rows = zip(forms, table.to_numpy(float), strict=True)
    texts = [["unknown" if np.isnan(v) else form.format(v) for v in row] for form, row in rows]
    names = [name if name == "recorded" else f"{name}, modelled" for name in table.columns]
    return pd.DataFrame(texts, index=[titles[str(name)] for name in table.index], columns=names)


def proposal(advice: Advice) -> list[str]:
    """Return what is proposed, what it gains, and who waits longer; or that nothing is worth moving, or why not."""
    if advice.best is None:
        return ["No plan is proposed, as the test does not allow to use the model for that.", *advice.missing]
    best, today = advice.best, advice.today
    if today is None:
        return [f"Proposed for {len(best.sites)} units: {counted(best.site_names)}."]
    if sorted(today.site_names) == sorted(best.site_names):
        return [f"Leave the units where they are: no deployment was found that is better ({advice.how})."]
    gained = _gained(advice)
    if not advice.worth_it:
        assert advice.gain is not None
        why = "not worth a move" if not advice.gain.low <= 0 else "which chance in the log may explain"
        return [f"Leave the units where they are: the best deployment found gains {gained}, {why}."]
    fewer, more = changed(today.site_names, best.site_names)
    same = len(best.sites) == len(today.sites)
    moved = sum((Counter(best.site_names) - Counter(today.site_names)).values())
    head = f"Move {moved} of {len(best.sites)} units" if same else f"{len(best.sites)} units, not {len(today.sites)}"
    verb = "gains" if advice.gain is not None and advice.gain.mean >= 0 else "loses (negative gain)"
    return [f"{head}: from {fewer} to {more}. This {verb} {gained}.", *_cost(advice)]


def _gained(advice: Advice) -> str:
    """Return the gain, with its interval if that was examined."""
    assert advice.gain is not None
    scale, unit, what = wording(advice.model.settings.metric)
    mean, low, high = (scale * value for value in advice.gain)
    sure = "" if np.isnan(low) else f" (90 % interval: {low:+.3f} to {high:+.3f})"
    return f"{mean:+.3f}{unit} of {what}{sure}"


def _cost(advice: Advice) -> Iterator[str]:
    """Yield who waits longer and by how much, and whether the proposal is a trade-off."""
    worse, best, today = advice.worse, advice.best, advice.today
    assert best is not None
    assert today is not None
    if len(worse):
        zones = ", ".join(f"{name} {row.minutes:+.1f} min" for name, row in worse.head(MOST_NAMED).iterrows())
        more = f" and {len(worse) - MOST_NAMED} more" if len(worse) > MOST_NAMED else ""
        yield (
            f"Longer waits: {worse['calls_per_year'].sum():,.0f} calls a year ({worse['share'].sum():.0%}) in "
            f"{len(worse)} zones, by their closest station: {zones}{more}."
        )
    said = []
    limit = advice.model.settings.threshold
    for what, old, new, form in (
        ("the 90th percentile", today.percentile_90, best.percentile_90, "{:.2f} min"),
        (f"responses of {limit:g} min or more", today.late_fraction(limit), best.late_fraction(limit), "{:.1%}"),
        ("the mean response", today.mean_response, best.mean_response, "{:.2f} min"),
        ("the worst zone", *advice.zones[["today", "proposed"]].max(), "{:.2f} min"),
    ):
        if new > (1 + NEGLIGIBLE) * old:
            said.append(f"{what} from {form.format(old)} to {form.format(new)}")
    if said and advice.gain is not None and advice.gain.mean > 0:
        yield f"This is a trade-off. What rises: {'; '.join(said)}."


def _wrong(advice: Advice) -> str:
    """Return what is wrong in the data."""
    wrong = [found.what for found in advice.model.checks if found.level == "wrong"]
    look = [found.what for found in advice.model.checks if found.level != "wrong"]
    said = f"Wrong in the data: {', '.join(wrong)}." if wrong else "Nothing is certainly wrong in the data."
    return said + (f" Worth a look: {', '.join(look)}." if look else "")


def details(advice: Advice) -> tuple[str, ...]:
    """Return everything that the answer leaves out, in lines."""
    model, lines = advice.model, ["Data", *advice.model.read[1:]]
    for f in model.checks:
        lines += [Message(f"{f.level:5}  {f.what}: ", *_parts(f.text), f.where and f" Rows: {f.where}")]
    lines += ["", "Assumed", *model.assumed, model.city.notes]
    if model.fit is not None:
        lines += ["", f"Calibrated from {len(model.fit.calls):,} calls; 90 % intervals"]
        lines += [model.fit.to_frame().round(3).to_string()]
    lines += [
        "",
        "Test on days held out",
        *(_tested(advice.report) if advice.report else [Message.of(advice.untested)]),
    ]
    if model.recorded is not None:
        lines += ["", in_words_of(advice)]
    if advice.best is not None:
        lines += ["", f"Deployments ({advice.how})", _metrics(advice)]
        lines += [f"{name}: {counted(e.site_names)}" for name, e in advice.found.items()]
        if model.demand.cell_km is not None:
            lines.append(f"Calls are counted in {model.city.n_atoms} cells of {model.demand.cell_km:g} km.")
    if len(advice.worse) and advice.worth_it:
        lines += ["", "Zones that wait longer (min, calls a year)", advice.worse.round(2).to_string()]
    if advice.comparison is not None:
        lines += ["", "How sure the gain is", str(advice.comparison)]
    return (*lines, *(("", *advice.plan_lines) if advice.plan is not None else ()))


def in_words_of(advice: Advice) -> str:
    """Return in a sentence which responses count as late."""
    assert advice.model.recorded is not None
    limit = advice.model.settings.threshold
    step = recorded_responses(advice.model.recorded)[1]
    e = advice.today or advice.best
    return in_words(None if e is None else float(e.late_fraction(limit)), limit, step)


def _tested(report: BackTest) -> Iterator[str]:
    """Yield what the test on days held out found."""
    yield f"{report.calls:,} calls, {report.period}, which that calibration has not seen:"
    yield report.overall[["recorded", "modelled", "low", "high"]].round(3).to_string()
    yield from report.verdict


def _metrics(advice: Advice) -> str:
    """Return the figures of all deployments as text."""
    limit = advice.model.settings.threshold
    table = pd.DataFrame({name: e.summary(limit) for name, e in advice.found.items()})
    return f"{advice.best.evaluator if advice.best else ''} hypercube:\n{table.round(4).to_string()}"


def plan_lines(plan: Plan, today: Evaluation | None = None) -> Iterator[str]:
    """Yield what a plan of the day changes, and whether it is worth it."""
    o = plan.objectives[0]
    yield f"Plan of the day, at most {plan.most_moves} unit(s) moved between hours ({o.evaluator}): {plan.message}."
    values = f"{against(plan.fixed_value, plan)} without moves, {against(plan.free_value, plan)} with unlimited moves"
    yield f"{o.label}, mean over all calls: {plan.value:.4g}; {values}."
    if today is not None and len(today.sites) == o.units:
        now = sum(w * each(today.sites) for w, each in zip(plan.weights, plan.objectives, strict=True))
        yield f"Today's deployment, hour by hour: {against(float(now), plan)}."
    yield verdict_of(plan)
    for hour, old, new in plan.changes().itertuples(index=False):
        yield f"{hour:02d}:00  {old} -> {new}"


def verdict_of(plan: Plan) -> str:
    """Return whether a plan is worth its moves; one that was not judged on days held out is told by its own figures."""
    if plan.held_out is not None or not plan.moves.any():
        return plan.verdict
    gain = plan.fixed_value - plan.value
    said = f"The plan is not judged on days held out of the log. By its own figures it gains {gain:.2g}"
    leave = gain < LITTLE * plan.fixed_value
    return said + (": leave the units where they are." if leave else ", which chance in the log may explain.")


def against(value: float, plan: Plan) -> str:
    """Return a value as text, with its difference from the value of the plan, and in percent if that is visible."""
    if not plan.value:
        return f"{value:.4g}"
    percent = round(100 * (value / plan.value - 1), 1) + 0.0  # not -0.0
    return f"{value:.4g} ({value - plan.value:+.2g}{f', {percent:+.1f} %' if percent else ''})"


def counted(names: Iterable[str]) -> str:
    """Return names with how often they occur: "Station 2 x 2, 3, 9"; a word that all begin with comes once."""
    units = Counter(names)
    words = {name.partition(" ")[0] for name in units}
    common = f"{words.pop()} " if len(words) == 1 and all(" " in name for name in units) and len(units) > 1 else ""
    named = ((name.removeprefix(common), n) for name, n in units.items())
    return common + ", ".join(name if n == 1 else f"{name} x {n}" for name, n in named)


def changed(before: Iterable[str], after: Iterable[str]) -> tuple[str, str]:
    """Return the stations that lose units and those that get units, with how many."""
    old, new = Counter(before), Counter(after)
    return counted((old - new).elements()) or "none", counted((new - old).elements()) or "none"


def page(advice: Advice) -> str:
    """Return the answer, the details and the test as one self-contained page."""
    title = f"{escape(advice.city.name)}: where should the units wait?"
    texts = ["\n".join(advice.sentences), "\n".join(advice.details)]
    test = "" if advice.report is None else advice.report.body
    body = f"<h1>{title}</h1><pre>{escape(texts[0])}</pre><h2>Details</h2><pre>{escape(texts[1])}</pre>{test}"
    return document(advice.city.name, STYLE + "pre { white-space: pre-wrap; }", body)


def _parts(text: str) -> tuple[str | Argument, ...]:
    return Message.of(text).parts
