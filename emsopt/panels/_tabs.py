"""The part of the dashboard that belongs to one city: controls, a map to click on, figures, and tabs of results.

The tabs are listed in `Workbench._arrange_widgets`; ``_charts.py`` and ``_trust.py`` make their contents.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import ipywidgets as widgets
import numpy as np
from traitlets import TraitError

from ..errors import InputError
from ..errors._types import IntArray
from ..evaluators import Evaluation
from ..planning import LogModel, units_needed
from ..planning.steps import find_best, narrow_cells
from . import _charts
from ._deployments import BEST_NAMES, MEDIAN_NAME, Deployments
from ._trust import TrustTabs
from ._uploads import OpenedCity
from ._widgets import BackgroundJob, SuccessText, Tabs, add_class, group, message_callback

EVALUATION_LIMIT = 1.2e7  # limit on deployments within one move of the best, times atoms times units, to evaluate all
WARNING_LOSS = 0.05  # share of calls lost from which a message says that the fleet is too small
SAVED_INPUTS = ("load", "units", "colocation", "capacity", "objective", "threshold", "evaluator", "baseline", "count",
                "moves")  # fmt: skip
COLUMN_ORDER = ("today", "yours", *BEST_NAMES, MEDIAN_NAME)


class Workbench(Deployments):
    """Controls and results for one city; ``job`` is the search in the background.

    ``city_group`` and ``scenarios``, the content of the tab of that name, belong to the dashboard and stay for the next
    city.
    """

    def __init__(
        self, opened: OpenedCity, city_group: Any, scenarios: Sequence[Any], reopen: Callable[[], object]
    ) -> None:
        self.shared, self.answer = [city_group, *scenarios], dict[str, Evaluation]()
        super().__init__(opened, ("figures", "districts", "busy", "responses", "alternatives"), reopen)
        roads = None if opened.log is None else opened.log.settings.roads
        drawn = roads is not None and roads.polylines is not None and roads.geographic == self.city.geographic
        self.view.options |= {"limits": None, "roads": roads if drawn else None, "hours_a_year": self.hours_a_year}
        self.message.layout.min_height = "2.8em"  # keeps the figures in place when a message appears
        tip = "Search with the exact model (up to 12 units); proves optimality if all deployments can be enumerated"
        self.job = BackgroundJob("Search thoroughly", tip, self.message, self._prepare_search)
        self.trust = TrustTabs(self)
        self.refs |= {"search": self.job.start, "cancel": self.job.cancel, "progress": self.job.bar} | self.trust.refs
        self._arrange_widgets(city_group, scenarios)
        self._apply_settings(opened.settings)

    def _arrange_widgets(self, city_group: Any, scenarios: Sequence[Any]) -> None:
        """Place controls, map and figures beside each other, and tabs below."""
        at = self.controls
        own = widgets.HTML("<b>Your deployment</b>")
        column = [
            city_group,
            group("Fleet", [at["units"], at["colocation"]]),
            group("Demand", [at["load"], at["capacity"]]),
            group("Objective", [at["objective"], at["threshold"], at["baseline"]]),
            group("Sites", [own, self.sites, at["pinned"], at["closed"]], opened=False),
            group("Model", [at["evaluator"]], opened=False),
        ]
        take = widgets.HBox([at["optimum"], at["p_median"], at["keep"]], layout={"flex_flow": "row wrap"})
        results = widgets.VBox([self.outputs["figures"], self.message, take, self.job])
        shown = {"emsopt-column": widgets.VBox(column), "emsopt-place": widgets.Box([self.view])}
        shown |= {"emsopt-results": results}
        main = widgets.VBox([add_class(part, name) for name, part in shown.items()])
        sheets = {
            "Districts": [self.outputs["districts"]],
            "Utilisation": [self.outputs["busy"]],
            "Response times": [self.outputs["responses"]],
            "Alternatives": [at["count"], self.outputs["alternatives"]],
            "Scenarios": scenarios,
            "Day plan": self.trust.day,
            "Data and trust": self.trust.data,
        }
        self.tabs = Tabs(sheets, message_callback(self.message, self._show_tab))
        self.refs["tabs"] = self.tabs.buttons
        self.children = [add_class(main, "emsopt-main"), self.tabs]
        self.disable(set())

    def state(self) -> dict[str, Any]:
        """Return all settings, deployments and results of searches, as a project stores them."""
        names, at = self.city.site_names, self.values

        def names_of(sites: Sequence[int]) -> list[str]:
            return [names[site] for site in sites]

        state: dict[str, Any] = {name: getattr(at, name) for name in SAVED_INPUTS}
        state |= {name: names_of(getattr(at, name)) for name in ("pinned", "closed")}
        state |= {"yours": names_of(self.sites.deployment), "follows": self.follows, "tab": self.tabs.current_title}
        state["today"] = None if self.today is None else names_of(self.today)
        state["found"] = [
            {"settings": key, "sites": names_of(sites), "how": how, "proven": proven}
            for key, (sites, how, proven) in self.found.items()
        ]
        now = self.search_settings
        medians = {now: self.medians[now]} if now in self.medians else self.medians
        state["medians"] = [{"settings": key, "sites": names_of(sites)} for key, sites in medians.items()]
        return state | {"gains": [[key, *values] for key, values in self.trust.gains.items()]}

    def _apply_settings(self, saved: Mapping[str, Any]) -> None:
        """Apply the settings of a project, which may be empty, and show the first results."""
        try:
            self._restore_state(saved)
            sites, follows = self._site_indices(saved.get("yours", ())), str(saved.get("follows", ""))
        except (TraitError, InputError, KeyError, TypeError, ValueError) as error:
            raise InputError(f"the settings of the project are damaged: {error}") from error
        self.quiet = False
        if sites or self.today is not None:
            self.follows = follows
            self.sites.set_units(sites or self.today or ())
            self.follows = follows
        else:
            self.take_deployment(MEDIAN_NAME)
        self.view.layout.height = "100%"  # the grid decides how high the map is

    def _restore_state(self, saved: Mapping[str, Any]) -> None:
        """Restore a state that `state` returned."""
        at = self.controls
        for name in SAVED_INPUTS:
            if name in saved and name != "colocation":
                at[name].value = saved[name]
        for name in ("pinned", "closed"):
            at[name].value = self._site_indices(saved.get(name, ()))
        if saved.get("today") is not None:
            self.today = self._site_indices(saved["today"])
        for e in saved.get("found", ()):
            self.found[_to_tuples(e["settings"])] = self._site_indices(e["sites"]), str(e["how"]), bool(e["proven"])
        self.medians |= {_to_tuples(e["settings"]): self._site_indices(e["sites"]) for e in saved.get("medians", ())}
        for key, mean, low, high in saved.get("gains", ()):
            self.trust.gains[_to_tuples(key)] = float(mean), float(low), float(high)
        self.tabs.buttons.value = saved.get("tab", self.tabs.current_title)

    def _site_indices(self, names: Any) -> tuple[int, ...]:
        """Return the indices of the sites with these names."""
        return tuple(self.city.sites_named(list(names)).tolist()) if len(names) else ()

    def respond(self) -> None:
        if not self.quiet:
            super().respond()

    def clear(self) -> None:
        self.answer = {}
        super().clear()

    def draw(self, answer: dict[str, Evaluation]) -> str:
        city, at = self.loaded_city, self.values
        _, how, name = self.best_known_deployment()
        caption = f"{city.name}: {city.total_rate:.3g} calls per hour. {name.capitalize()}: {how}."
        if (idle := self.surplus_units()) > 0:
            caption += f" {idle} of the units do not improve the p-median: their stations are arbitrary"
            caption += "." if MEDIAN_NAME in answer else ", so it is left out."
        base = self.baseline_name(answer)
        ordered = {name: answer[name] for name in COLUMN_ORDER if name in answer}
        interval = self.trust.interval_row(ordered, base)
        self.answer = answer
        self.trust.store_recorded()
        self.show(figures=_charts.figures_table(caption, ordered, at.threshold, baseline=base, interval=interval))
        self.view.show(city, answer)
        self._draw_tab()
        return self._remarks(answer)

    def _show_tab(self) -> None:
        """Draw the tab that was chosen, and keep the message."""
        self._draw_tab()
        self.keep_message()

    def _draw_tab(self) -> None:
        """Draw the tab that is shown; the others are drawn when they are chosen."""
        tab, answer = self.tabs.current_title, self.answer
        if not answer or self.quiet:
            return
        base = self.baseline_name(answer)
        if tab == "Districts":
            self.show(districts=_charts.atom_table(self.loaded_city, answer, base, self.longer_wait_sentence))
        elif tab == "Utilisation":
            self.show(busy=_charts.utilization_table(answer))
        elif tab == "Response times":
            self.show(responses=_charts.response_picture(answer, self.values.threshold))
        elif tab == "Alternatives":
            self.show(alternatives=self._alternatives_table(base, answer[base]))

    def _alternatives_table(self, base: str, over: Evaluation) -> str:
        """Return the HTML table of the best deployments, with gains over the baseline and its evaluation ``over``."""
        at, city, said = self.values, self.city, ""
        enumeration, (best, _, name) = self.solve(self.search_settings)[1], self.best_known_deployment()
        work = np.inf if best is None else len(best) ** 2 * city.n_sites * city.n_atoms
        if enumeration is None and best is not None and work <= EVALUATION_LIMIT:
            enumeration, said = self.near(self.search_settings, best), f"Within one move of the {name}: "
        alike = self.evaluate(at.load, tuple(over.sites.tolist()), "approximate", at.capacity)
        return _charts.alternatives_table(enumeration, at.count, at.threshold, (base, alike), said)

    def _remarks(self, answer: dict[str, Evaluation]) -> str:
        """Return sentences on a fleet that is too small, a missing baseline, and units that break the settings."""
        at, base = self.values, self.baseline_name(answer)
        remarks = []
        if (lost := answer.get(MEDIAN_NAME, answer["yours"]).loss_probability) > WARNING_LOSS:
            needed = units_needed(self.loaded_city)
            remarks.append(f"{at.units} units lose {lost:.0%} of the calls; the load needs {needed}.")
            if needed > self.controls["units"].max:
                remarks.append("For so many, tick Several units at a station.")
        if base != at.baseline and not {base, at.baseline} <= set(BEST_NAMES):
            over = {"yours": "yours", "today": "today's"}.get(base, f"the {base}")
            remarks.append(f"There is no {at.baseline} yet, so gains are over {over}.")
        names, chosen = np.array(self.city.site_names), self.sites.deployment
        if len(chosen) != at.units:
            remarks.append(f"You placed {len(chosen)} of {at.units} units.")
        if missing := sorted(set(at.pinned) - set(chosen)):
            remarks.append(f"Your deployment has no unit at {', '.join(names[missing])}, which is to keep one.")
        if taken := sorted(set(at.closed) & set(chosen)):
            remarks.append(f"Your deployment has a unit at {', '.join(names[taken])}, which is closed.")
        return " ".join(remarks)

    def _prepare_search(self) -> Callable[[], str]:
        """Return the work of the search: a function that finds the best deployment and returns a message."""
        settings, model = self.search_settings, self.model
        objective = self.objective(settings)
        test = None if self.opened.log is None else self.trust.prepare_back_test()

        def search_and_report() -> str:
            if test is not None:  # as the command does, which searches only where the test allows it
                with suppress(InputError):
                    test()
            name, best, how = find_best(objective, progress=self.job.show_progress)
            self.job.show_progress(1, 1)
            self._narrow_cells(model, best)
            self.found[settings] = tuple(best.tolist()), f"by the {how}", name == BEST_NAMES[0]
            self.respond()
            value_of, mine = self.objective(settings), self.sites.deployment
            value = value_of(best)
            gain = value_of(mine) - value if len(mine) == settings.units else np.nan
            said = f"Searched by the {how}. {_describe_result(value, gain, settings.metric)}"
            caution = self.trust.caution_text(settings.units)
            return f"{said} {caution}" if caution else SuccessText(said)

        return search_and_report

    def _narrow_cells(self, model: LogModel | None, best: IntArray) -> None:
        """Narrow the cells of the log until the gain of ``best``, (p,), over today's deployment stays the same."""
        if model is None or model.today is None or (finer := narrow_cells(model, (model.today, best))) is model:
            return
        about = {**self.opened.about, "cell_km": finer.demand.cell_km}
        with self.lock:  # a control may respond at the same time
            self.opened = replace(self.opened, city=finer.city, log=finer, about=about, by_hour=finer.rates_by_hour)
            self.city, self.trust.recorded_for = self.opened.city, ()
            caches = (cache.cache_clear for cache in (self.solve, self.near, self.evaluate))
            for forget in (self.medians.clear, self.found.clear, self.trust.gains.clear, *caches):
                forget()
        self.trust.show_results()

    def close_all(self) -> None:
        """Cancel running work and close all widgets, which would otherwise stay in the kernel's memory."""
        self.job.stop()
        self.trust.stop()
        _close_widgets(self, self.shared)


def _describe_result(value: float, gain: float, metric: Any) -> str:
    """Return text on the best ``value`` of a search and its ``gain`` over the user's deployment, NaN if unknown."""
    unit, scale = (" min", 1) if metric == "mean_response" else (" % late", 100)
    text = f"The best has {scale * value:.2f}{unit}"
    if abs(gain) < 1e-9:
        return f"{text}, as yours has."
    if gain < 0:
        return f"{text}, more than yours, which departs from the settings."
    text += f", {scale * gain:.2g}{unit.replace('% late', 'points')} less than yours" if np.isfinite(gain) else ""
    return f"{text}. Press Take the optimum to make it yours."


def _close_widgets(widget: Any, spared: Sequence[Any]) -> None:
    """Close a widget with its children, style and layout, but none of the widgets ``spared``."""
    if widget in spared:
        return
    own = [getattr(widget, name, None) for name in ("style", "layout")]
    for part in filter(None, [*getattr(widget, "children", ()), *own]):
        _close_widgets(part, spared)
    widget.close()


def _to_tuples(key: Any) -> Any:
    """Return nested lists as tuples, which may be keys of a dict; return anything else as it is."""
    return tuple(map(_to_tuples, key)) if isinstance(key, (list, tuple)) else key
