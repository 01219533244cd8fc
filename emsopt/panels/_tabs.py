"""The part of the dashboard that belongs to one city: controls, a map to click on, figures, and tabs of results."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import ipywidgets as widgets
import numpy as np
from ipywidgets import BoundedIntText, Checkbox, Dropdown, IntSlider, SelectMultiple
from traitlets import TraitError

from .. import _validate
from .._version import __version__
from ..city import City, DeploymentSpace
from ..city.city import HOURS_A_YEAR
from ..errors import InputError
from ..evaluators import Evaluation, evaluate_all, evaluate_near, p_median
from ..evaluators.by_name import evaluate
from ..evaluators.objective import Objective
from ..planning import units_needed
from ..planning.advice import longer_waits
from ..planning.steps import held_out, refine, search, waiting_longer, zones
from ..planning.sweeps import scenario
from . import _charts
from ._layout import Tabs, add_class, fold
from ._panel import OwnPanel, city_controls
from ._trust import Trust
from ._widgets import Done, Job, button, control, guard

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ..evaluators.enumeration import Enumeration
    from ._uploads import Opened

QUICK = 1.2e7  # limit on deployments times atoms times units to enumerate: about a third of a second
NEAR = 1.2e7  # the same, for the deployments within one move of the best that was found
PATIENCE = 2.0  # time limit of the p-median in seconds; if it is reached, the incumbent is used
MUCH_LOST = 0.05  # share of calls lost from which a message says that the fleet is too small
SEED = 1  # of simulations: the same calls for all, so that differences are precise
SIMULATED = {"calls": _charts.CALLS, "rng": SEED}
ROOM = 20  # most units at one station, if there may be several, for the number fields
CAPACITIES = (("calls are lost", "loss"), ("calls wait", "queue"))
SAVED = ("load", "units", "colocation", "capacity", "objective", "threshold", "evaluator", "baseline", "count", "moves")
BEST, MEDIAN = ("optimum", "best found"), "p-median"
ORDER = ("today", "yours", *BEST, MEDIAN)


class Workbench(OwnPanel):
    """Controls and results for one city; ``job`` is the search in the background.

    The dashboard keeps the controls of ``city_group`` and the content of the tab ``scenarios`` when the city changes.
    ``reopen`` replaces the workbench by a new one with the same state.
    """

    def __init__(self, opened: Opened, city_group: Any, scenarios: Sequence[Any], reopen: Callable[[], object]) -> None:
        city, saved = opened.city, opened.settings
        self.opened, self.today, self.follows, self.quiet = opened, opened.today, "", True
        self.found: dict[tuple[Any, ...], tuple[tuple[int, ...], str, bool]] = {}
        self.medians: dict[tuple[Any, ...], tuple[int, ...]] = {}
        self.shared = [city_group, *scenarios]
        self.answer: dict[str, Evaluation] = {}
        self.solve = lru_cache(maxsize=64)(self._solve)
        self.near = lru_cache(maxsize=8)(self._near)
        self.evaluate = lru_cache(maxsize=1024)(self._evaluate)
        several = self.today is not None and len(set(self.today)) < len(self.today)
        several = bool(saved.get("colocation", several or (opened.log is not None and opened.log.settings.colocate)))
        outputs = ("figures", "districts", "busy", "responses", "alternatives")
        super().__init__(city, self._controls(city, several, reopen), outputs, ROOM if several else 1)
        roads = None if opened.log is None else opened.log.settings.roads
        drawn = roads is not None and roads.polylines is not None and roads.geographic == city.geographic
        self.view.options |= {"limits": None, "roads": roads if drawn else None, "hours_a_year": self.hours_a_year}
        self.message.layout.min_height = "2.8em"  # keeps the figures in place when a message appears
        tip = "Search with the exact model (up to 12 units); proves optimality if all deployments can be enumerated"
        self.job = Job("Search thoroughly", tip, self.message, self._search)
        self.trust = Trust(self)
        self.refs |= {"search": self.job.start, "cancel": self.job.cancel, "progress": self.job.bar} | self.trust.refs
        self._place(city_group, scenarios)
        self._begin(saved)

    def _controls(self, city: City, several: bool, reopen: Callable[[], object]) -> dict[str, Any]:
        most = city.n_sites
        sites = [(name, site) for site, name in enumerate(city.site_names)]
        controls = city_controls(city, self.opened.units, 1, 0.05, ("exact", "approximate", "simulation"))
        units = controls["units"]
        units.max = max(units.value, units_needed(city), most) * 2 if several else max(1, most)
        units.action = self.resize
        tip = "Whether a station may have more than one unit"
        controls["colocation"] = control(Checkbox, several, "Several units at a station", tip, action=reopen,
                                         indent=False)  # fmt: skip
        tip = "What happens to calls while all units are busy"
        controls["capacity"] = control(Dropdown, "loss", "All busy", tip, options=CAPACITIES)
        tip = "Deployment over which tables say the gain"
        names = ("today", MEDIAN, "optimum", "yours")
        controls["baseline"] = control(Dropdown, MEDIAN if self.today is None else "today", "Gain over", tip,
                                       options=names)  # fmt: skip
        for name, label, what in (("pinned", "Keep a unit", "keep a unit"), ("closed", "Close", "have no unit")):
            tip = f"The optimum and the p-median {what} at these; Ctrl+click for several"
            controls[name] = control(SelectMultiple, (), label, tip, options=sites, rows=4)
        controls["keep"] = button("Yours is today's", "Compare with your deployment from now on", self.set_today)
        controls["count"] = control(IntSlider, 5, "Alternatives", "How many of the best to list", (1, 20))
        controls["moves"] = control(IntSlider, 1, "Moves at once", "Units that may move between two hours", (0, 5),
                                    action=self._later)  # fmt: skip
        days, held = (1, 0) if self.opened.log is None else held_out(self.opened.log.log)
        tip = "Last days of the log, which the back-test predicts from the others"
        controls["hold_out"] = control(BoundedIntText, held, "Days held out", tip, (0, max(0, days - 1)), self._later)
        return controls

    def _place(self, city_group: Any, scenarios: Sequence[Any]) -> None:
        """Arrange the widgets: a column of controls, the map, the figures, and tabs below."""
        at = self.controls
        own = widgets.HTML("<b>Your deployment</b>")
        column = [
            city_group,
            fold("Fleet", [at["units"], at["colocation"]]),
            fold("Demand", [at["load"], at["capacity"]]),
            fold("Objective", [at["objective"], at["threshold"], at["baseline"]]),
            fold("Sites", [own, self.sites, at["pinned"], at["closed"]], opened=False),
            fold("Model", [at["evaluator"]], opened=False),
        ]
        take = widgets.HBox([at["optimum"], at["p_median"], at["keep"]], layout={"flex_flow": "row wrap"})
        results = [self.outputs["figures"], self.message, take, self.job]
        main = widgets.VBox([
            add_class(widgets.VBox(column), "emsopt-column"),
            add_class(widgets.Box([self.view]), "emsopt-place"),
            add_class(widgets.VBox(results), "emsopt-results"),
        ])  # fmt: skip
        sheets = {
            "Districts": [self.outputs["districts"]],
            "Utilisation": [self.outputs["busy"]],
            "Response times": [self.outputs["responses"]],
            "Alternatives": [at["count"], self.outputs["alternatives"]],
            "Scenarios": scenarios,
            "Day plan": self.trust.day,
            "Data and trust": self.trust.data,
        }
        self.tabs = Tabs(sheets, guard(self.message, self._turn))
        self.refs["tabs"] = self.tabs.buttons
        self.children = [add_class(main, "emsopt-main"), self.tabs]
        self.disable(set())

    # -- state ------------------------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Return all settings, deployments and findings, as a project stores them."""
        names, at = self.city.site_names, self.at

        def named(sites: Sequence[int]) -> list[str]:
            return [names[site] for site in sites]

        state: dict[str, Any] = {name: getattr(at, name) for name in SAVED}
        state |= {name: named(getattr(at, name)) for name in ("pinned", "closed")}
        state |= {"yours": named(self.sites.chosen), "follows": self.follows, "tab": self.tabs.shown}
        state["today"] = None if self.today is None else named(self.today)
        state["found"] = [
            {"settings": _as_lists(key), "sites": named(sites), "how": how, "proven": proven}
            for key, (sites, how, proven) in self.found.items()
        ]
        medians = self.medians if (now := self.settings()) not in self.medians else {now: self.medians[now]}
        state["medians"] = [{"settings": _as_lists(key), "sites": named(sites)} for key, sites in medians.items()]
        return state | {"gains": [[_as_lists(key), *values] for key, values in self.trust.gains.items()]}

    def _begin(self, saved: Mapping[str, Any]) -> None:
        """Apply saved settings, and show the first results."""
        try:
            self._restore(saved)
            sites, follows = self._sites(saved.get("yours", ())), str(saved.get("follows", ""))
        except (TraitError, InputError, KeyError, TypeError, ValueError) as error:
            raise InputError(f"the settings of the project are damaged: {error}") from error
        self.quiet = False
        if sites or self.today is not None:
            self.follows = follows
            self.sites.take(sites or self.today or ())
            self.follows = follows
        else:
            self.take(MEDIAN)
        self.view.layout.height = "100%"  # the grid decides how high the map is

    def _restore(self, saved: Mapping[str, Any]) -> None:
        """Restore a state that `state` returned."""
        at = self.controls
        for name in (name for name in SAVED if name in saved and name != "colocation"):
            at[name].value = saved[name]
        for name in ("pinned", "closed"):
            at[name].value = self._sites(saved.get(name, ()))
        if saved.get("today") is not None:
            self.today = self._sites(saved["today"])
        for entry in saved.get("found", ()):
            found = self._sites(entry["sites"]), str(entry["how"]), bool(entry["proven"])
            self.found[_as_tuples(entry["settings"])] = found
        self.medians |= {_as_tuples(e["settings"]): self._sites(e["sites"]) for e in saved.get("medians", ())}
        for key, mean, low, high in saved.get("gains", ()):
            self.trust.gains[_as_tuples(key)] = float(mean), float(low), float(high)
        if "tab" in saved:
            self.tabs.buttons.value = saved["tab"]

    def _sites(self, names: Any) -> tuple[int, ...]:
        """Return the sites with these names."""
        return tuple(self.city.sites_named(list(names)).tolist()) if len(names) else ()

    def respond(self) -> None:
        if not self.quiet:
            super().respond()

    def clear(self) -> None:
        self.answer = {}
        super().clear()

    # -- answers ----------------------------------------------------------------------------------------------------

    def settings(self) -> tuple[Any, ...]:
        """Return the settings on which the optimum depends."""
        at = self.at
        return at.load, at.units, self.metric, at.pinned, at.closed, at.colocation, at.capacity

    def space(self, settings: tuple[Any, ...]) -> tuple[City, DeploymentSpace]:
        """Return the city and the allowed deployments under settings."""
        load, units, _, pinned, closed, several, _ = settings
        city = self.city.scaled(load)
        room = ROOM if several else False
        return city, DeploymentSpace(city, units, colocation=room, pinned=pinned, closed=closed)

    def _solve(self, *settings: Any) -> tuple[tuple[int, ...], Enumeration | None]:
        """Return the sites of the p-median, and the enumeration of all deployments if it is quick (else None)."""
        city, space = self.space(settings)
        metric, capacity = settings[2], settings[-1]
        if settings not in self.medians:
            self.medians[settings] = tuple(p_median(city, space, time_limit=PATIENCE).sites.tolist())
        quick = space.count * city.n_atoms * space.units <= QUICK
        enumeration = evaluate_all(city, space, "approximate", metric=metric, capacity=capacity) if quick else None
        return self.medians[settings], enumeration

    def _near(self, settings: tuple[Any, ...], sites: tuple[int, ...]) -> Enumeration:
        """Evaluate the deployments within one move of one."""
        city, space = self.space(settings)
        return evaluate_near(Objective(city, space, "approximate", settings[2], capacity=settings[-1]), sites, 1)

    def _evaluate(self, load: float, sites: tuple[int, ...], evaluator: str, capacity: str) -> Evaluation:
        """Evaluate a deployment by the model ``evaluator``, with all call rates multiplied by ``load``."""
        options = SIMULATED if evaluator == "simulation" else {}
        return evaluate(self.city.scaled(load), list(sites), evaluator, capacity=capacity, **options)

    def known(self) -> dict[str, tuple[int, ...]]:
        best, _, name = self._best()
        found = {} if best is None else {name: best}
        found[MEDIAN] = self.solve(*self.settings())[0]
        return found if self.today is None else found | {"today": self.today}

    def take(self, name: str) -> None:
        """Replace the user's deployment by a known one, which then follows the fleet size."""
        known = self.known()
        found = next((each for each in (BEST if name in BEST else (name,)) if each in known), None)
        if found is None:
            raise InputError("there is no optimum yet: press Search thoroughly first.")
        super().take(found)
        self.follows = name

    def press(self, places: Sequence[int]) -> None:
        self.sites.press(places, self.at.units - len(self.sites.chosen))

    def moved(self) -> None:
        self.follows = ""
        super().moved()

    def set_today(self) -> None:
        """Store the user's deployment as today's, and compare with it."""
        self.today = self.deployments()["yours"]
        if self.at.baseline == "today":
            self.respond()
        else:
            self.controls["baseline"].value = "today"

    def resize(self) -> None:
        """Adapt the user's deployment to the fleet size, preferring sites of the best deployment."""
        if self.quiet:
            return
        try:
            known = self.known()
        except InputError:
            self.respond()  # shows the error
            return
        if self.follows and (self.follows in known or (self.follows in BEST and set(BEST) & set(known))):
            self.take(self.follows)
            return
        best, units = next(iter(known.values())), self.at.units
        kept = sorted(self.sites.chosen, key=lambda site: site not in best)[:units]
        self.sites.take([*kept, *(Counter(best) - Counter(kept)).elements()][:units])

    def base(self, answer: Mapping[str, object]) -> str:
        """Return the name of the deployment to compare with; if it does not exist, the p-median or today's."""
        wanted = BEST if self.at.baseline in BEST else (self.at.baseline,)
        return next(name for name in (*wanted, MEDIAN, "today") if name in answer)

    def _best(self) -> tuple[tuple[int, ...] | None, str, str]:
        """Return the sites of the best deployment known, how it was found, and its name; None before a search."""
        settings = self.settings()
        enumeration = self.solve(*settings)[1]
        if settings in self.found:
            sites, how, proven = self.found[settings]
            return sites, how, BEST[0] if proven else BEST[1]
        if enumeration is None:
            return None, "not searched yet; press Search thoroughly", BEST[0]
        how = f"best of all {len(enumeration.values):,} deployments by the approximate model"
        return tuple(enumeration.best_sites.tolist()), how, BEST[0]

    def _n_idle(self) -> int:
        """Return the number of units that do not improve the p-median: those beyond one per site."""
        return self.at.units - (self.city.n_sites - len(self.at.closed))

    def deployments(self) -> dict[str, tuple[int, ...]]:
        found = super().deployments()
        if self._n_idle() > 0 and self.today is not None and self.at.baseline != MEDIAN:
            del found[MEDIAN]
        return found

    def compute(self) -> dict[str, Evaluation]:
        deployments, at = self.deployments(), self.at
        model, _ = self.evaluator(max(map(len, deployments.values())))
        return {name: self.evaluate(at.load, sites, model, at.capacity) for name, sites in deployments.items()}

    def draw(self, answer: dict[str, Evaluation]) -> str:
        city, at = self.city.scaled(self.at.load), self.at
        _, how, name = self._best()
        caption = f"{city.name}: {city.total_rate:.3g} calls per hour. {name.capitalize()}: {how}."
        if (idle := self._n_idle()) > 0:
            caption += f" {idle} of the units do not improve the p-median: their stations are arbitrary"
            caption += "." if MEDIAN in answer else ", so it is left out."
        base = self.base(answer)
        ordered = {name: answer[name] for name in ORDER if name in answer}
        interval = self.trust.interval_row(ordered, base)
        self.answer = answer
        self.trust.record()
        self.show(figures=_charts.figures(caption, ordered, at.threshold, baseline=base, interval=interval))
        self.view.show(city, answer)
        self._draw_tab()
        return self._remark(answer)

    def _turn(self) -> None:
        """Respond to the choice of a tab; the message stays."""
        self._draw_tab()
        self._later()

    def _later(self) -> None:
        """Leave the message as it is: the field is read when a button is pressed."""
        self.message.times += 1

    def _draw_tab(self) -> None:
        """Draw the tab that is shown; the others are drawn when they are chosen."""
        at, tab, answer = self.at, self.tabs.shown, self.answer
        if not answer or self.quiet:
            return
        city, base = self.city.scaled(at.load), self.base(answer)
        if tab == "Districts":
            self.show(districts=_charts.districts(city, answer, base, self.longer_waits))
        elif tab == "Utilisation":
            self.show(busy=_charts.busy(answer))
        elif tab == "Response times":
            self.show(responses=_charts.responses(answer, at.threshold))
        elif tab == "Alternatives":
            settings = self.settings()
            enumeration, said = self.solve(*settings)[1], ""
            best, _, name = self._best()
            if enumeration is None and best is not None and len(best) ** 2 * self.city.n_sites * city.n_atoms <= NEAR:
                enumeration, said = self.near(settings, best), f"Within one move of the {name}: "
            alike = self.evaluate(at.load, tuple(answer[base].sites.tolist()), "approximate", at.capacity)
            self.show(alternatives=_charts.alternatives(enumeration, at.count, at.threshold, (base, alike), said))

    @property
    def hours_a_year(self) -> float:
        """The hours a year for which the city has rates of calls."""
        return _validate.positive_number(self.opened.about.get("hours_a_year", HOURS_A_YEAR), "hours_a_year")

    def longer_waits(self, today: Evaluation, other: Evaluation) -> str:
        """Return who waits longer than with another deployment, and their calls a year, as the command says it."""
        by_station = "cell_km" in self.opened.about
        table = zones(self.city.scaled(self.at.load), today, other, self.hours_a_year, by_station=by_station)
        return longer_waits(waiting_longer(table, today))

    def _remark(self, answer: dict[str, Evaluation]) -> str:
        """Return a message if the user's deployment departs from the settings, or results need an explanation."""
        remarks: list[str] = []
        lost = answer.get(MEDIAN, answer["yours"]).loss_probability
        if lost > MUCH_LOST:
            needed = units_needed(self.city.scaled(self.at.load))
            remarks.append(f"{self.at.units} units lose {lost:.0%} of the calls; the load needs {needed}.")
            if needed > self.controls["units"].max:
                remarks.append("For so many, tick Several units at a station.")
        base = self.base(answer)
        if base != self.at.baseline and not {base, self.at.baseline} <= set(BEST):
            over = {"yours": "yours", "today": "today's"}.get(base, f"the {base}")
            remarks.append(f"There is no {self.at.baseline} yet, so gains are over {over}.")
        names, at, chosen = self.city.site_names, self.at, self.sites.chosen
        if len(chosen) != at.units:
            remarks.append(f"You placed {len(chosen)} of {at.units} units.")
        if missing := [names[site] for site in at.pinned if site not in chosen]:
            remarks.append(f"Your deployment has no unit at {', '.join(missing)}, which is to keep one.")
        if taken := [names[site] for site in at.closed if site in chosen]:
            remarks.append(f"Your deployment has a unit at {', '.join(taken)}, which is closed.")
        return " ".join(filter(None, remarks))

    def made_with(self) -> dict[str, Any]:
        """Return all that reproduces the results: the origin of the city, settings, seeds and version."""
        at, names = self.at, self.city.site_names
        sites = {name: "; ".join(names[site] for site in getattr(at, name)) for name in ("pinned", "closed")}
        seeds = {"search_seed": 0, "simulation_seed": SEED, "simulation_calls": _charts.CALLS}
        return {"load_factor": at.load, "colocation": at.colocation, **sites, **self.opened.about, **seeds,
                "emsopt_version": __version__}  # fmt: skip

    def scenarios(self) -> list[dict[str, object]]:
        """Return one row of the table of scenarios for each deployment that is shown."""
        at, city, answer = self.at, self.city.scaled(self.at.load), self.compute()
        base, best = self.base(answer), self._best()[1]
        rows = []
        for name, e in answer.items():
            row = scenario(city, name, e, at.objective, at.threshold, answer[base]) | {"baseline": base}
            rows.append(row | {"found": best if name in BEST else ""} | self.made_with())
        return rows

    # -- the search ---------------------------------------------------------------------------------------------------

    def _search(self) -> Callable[[], str]:
        """Return a function that makes a thorough search under the current settings."""
        settings = self.settings()
        city, space = self.space(settings)
        objective = Objective(city, space, None, settings[2], capacity=settings[-1])
        test = None if self.opened.log is None else self.trust.prepare_test()

        def work() -> str:
            if test is not None:  # as the command does, which searches only where the test allows it
                with suppress(InputError):
                    test()
            name, best, how = search(objective, progress=self.job.tell)
            self.job.tell(1, 1)
            self._narrow(settings, tuple(best.tolist()))
            self.found[settings] = tuple(best.tolist()), f"by the {how}", name == BEST[0]
            self.respond()
            value_of = Objective(*self.space(settings), None, settings[2], capacity=settings[-1])
            mine, value = self.sites.chosen, value_of(best)
            gain = value_of(mine) - value if len(mine) == space.units else np.nan
            said = f"Searched by the {how}. {_describe_result(value, gain, settings[2])}"
            caution = self.trust.caution(space.units)
            return f"{said} {caution}" if caution else Done(said)

        return work

    def _narrow(self, settings: tuple[Any, ...], best: tuple[int, ...]) -> None:
        """Narrow the cells of a log until today's gain no longer depends on them, as the command does."""
        log = self.opened.log
        if log is None or self.today is None or (model := refine(log, (self.today, best), settings[2])) is log:
            return
        about = {**self.opened.about, "cell_km": model.demand.cell_km}
        with self.lock:  # a control may respond at the same time
            self.opened = replace(self.opened, city=model.city, log=model, about=about, by_hour=model.rates_by_hour)
            self.city, self.trust.recorded_for = self.opened.city, ()
            caches = (cache.cache_clear for cache in (self.solve, self.near, self.evaluate))
            for forget in (self.medians.clear, self.found.clear, self.trust.gains.clear, *caches):
                forget()
        self.trust.show()

    def end(self) -> None:
        """Cancel running work and close all widgets, which would otherwise stay in the kernel's memory."""
        self.job.stop()
        self.trust.stop()
        _close(self, self.shared)


def _describe_result(value: float, gain: float, metric: Any) -> str:
    """Describe the result of a search, with its ``gain`` over the user's deployment (NaN if of another size)."""
    unit, scale = (" min", 1) if metric == "mean_response" else (" % late", 100)
    text = f"The best has {scale * value:.2f}{unit}"
    if abs(gain) < 1e-9:
        return f"{text}, as yours has."
    if gain < 0:
        return f"{text}, more than yours, which departs from the settings."
    text += f", {scale * gain:.2g}{unit.replace('% late', 'points')} less than yours" if np.isfinite(gain) else ""
    return f"{text}. Press Take the optimum to make it yours."


def _close(widget: Any, spared: Sequence[Any]) -> None:
    """Close a widget with its children, style and layout, except those that are to be spared."""
    if widget in spared:
        return
    own = [getattr(widget, name, None) for name in ("style", "layout")]
    for part in filter(None, [*getattr(widget, "children", ()), *own]):
        _close(part, spared)
    widget.close()


def _as_lists(key: object) -> Any:
    """Return nested tuples as lists, as JSON holds them."""
    return [_as_lists(part) for part in key] if isinstance(key, (tuple, list)) else key


def _as_tuples(key: object) -> Any:
    """Return nested lists as tuples."""
    if isinstance(key, list):
        return tuple(_as_tuples(part) for part in key)
    if key is None or isinstance(key, (str, bool)) or _validate.is_real(key):
        return key
    raise InputError(f"settings must be texts, numbers and lists; got {_validate.quote(key)}.")
