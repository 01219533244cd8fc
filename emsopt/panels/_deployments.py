"""The deployments of a city that the dashboard compares: today's, the user's, the best one and the p-median."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from ipywidgets import BoundedIntText, Checkbox, Dropdown, IntSlider, SelectMultiple

from .._files.version import __version__
from ..city import City, DeploymentSpace
from ..city.city import HOURS_A_YEAR
from ..errors import InputError, _validate
from ..evaluators import Evaluation, evaluate_all, evaluate_near, p_median
from ..evaluators.by_name import evaluate
from ..evaluators.enumeration import Enumeration
from ..evaluators.objective import Objective
from ..planning import LogModel, units_needed
from ..planning.advice import longer_wait_sentence
from ..planning.steps import count_held_out_days, worse_zones, zone_table
from ..planning.sweeps import scenario_row
from . import _charts
from ._panel import OwnDeploymentPanel, city_controls
from ._uploads import OpenedCity
from ._widgets import button, control

ENUMERATION_LIMIT = 1.2e7  # limit on deployments times atoms times units to enumerate: about a third of a second
P_MEDIAN_SECONDS = 2.0  # time limit of the p-median in seconds; if it is reached, the incumbent is used
SIMULATION_SEED = 1  # of simulations: the same calls for all, so that differences are precise
SIMULATION_OPTIONS = {"calls": _charts.SIMULATED_CALLS, "rng": SIMULATION_SEED}
MAX_UNITS_AT_SITE = 20  # most units at one station, if there may be several, for the number fields
CAPACITIES = (("calls are lost", "loss"), ("calls wait", "queue"))
BEST_NAMES, MEDIAN_NAME = ("optimum", "best found"), "p-median"


class SearchSettings(NamedTuple):
    """The settings on which the best deployment depends."""

    load: float
    units: int
    metric: Any
    pinned: tuple[int, ...]
    closed: tuple[int, ...]
    colocation: bool
    capacity: str


class Deployments(OwnDeploymentPanel):
    """The controls of one city, and the deployments that are compared; `Workbench` adds the results.

    ``reopen`` is called when the user changes whether stations may hold several units: it makes a new panel.
    """

    def __init__(self, opened: OpenedCity, outputs: Iterable[str], reopen: Callable[[], object]) -> None:
        self.opened, self.today, self.follows, self.quiet = opened, opened.today, "", True
        self.found: dict[Any, tuple[tuple[int, ...], str, bool]] = {}
        self.medians: dict[Any, tuple[int, ...]] = {}
        self.solve = lru_cache(maxsize=64)(self._median_and_enumeration)
        self.near = lru_cache(maxsize=8)(lambda now, sites: evaluate_near(self.objective(now, "approximate"), sites, 1))
        self.evaluate = lru_cache(maxsize=1024)(self._evaluate)
        shared = len(set(self.today or ())) < len(self.today or ())
        shared = shared or (opened.log is not None and opened.log.settings.colocate)
        several = bool(opened.settings.get("colocation", shared))
        controls = self._controls(opened.city, several, reopen)
        super().__init__(opened.city, controls, outputs, MAX_UNITS_AT_SITE if several else 1)

    def _controls(self, city: City, several: bool, reopen: Callable[[], object]) -> dict[str, Any]:
        most = city.n_sites
        sites = [(name, site) for site, name in enumerate(city.site_names)]
        controls = city_controls(city, self.opened.units, 1, 0.05, ("exact", "approximate", "simulation"))
        units = controls["units"]
        units.max = max(units.value, units_needed(city), most) * 2 if several else max(1, most)
        units.action = self.fit_to_fleet
        lost, gain = "What happens to calls while all units are busy", "Deployment over which tables say the gain"
        base, names = MEDIAN_NAME if self.today is None else "today", ("today", MEDIAN_NAME, "optimum", "yours")
        room, between = "Whether a station may have more than one unit", "Units that may move between two hours"
        listed, keep = "How many of the best to list", "The optimum and the p-median keep a unit at these"
        close = "The optimum and the p-median have no unit at these"
        days, held = (1, 0) if self.opened.log is None else count_held_out_days(self.opened.log.log)
        tested, limits = "Last days of the log, which the back-test predicts from the others", (0, max(0, days - 1))
        boxes: dict[str, Any] = {"options": sites, "rows": 4}
        return controls | {
            "colocation": control(Checkbox, several, "Several units at a station", room, (), reopen, indent=False),
            "capacity": control(Dropdown, "loss", "All busy", lost, options=CAPACITIES),
            "baseline": control(Dropdown, base, "Gain over", gain, options=names),
            "pinned": control(SelectMultiple, (), "Keep a unit", f"{keep}; Ctrl+click for several", **boxes),
            "closed": control(SelectMultiple, (), "Close", f"{close}; Ctrl+click for several", **boxes),
            "keep": button("Yours is today's", "Compare with your deployment from now on", self.set_as_today),
            "count": control(IntSlider, 5, "Alternatives", listed, (1, 20)),
            "moves": control(IntSlider, 1, "Moves at once", between, (0, 5), self.keep_message),
            "hold_out": control(BoundedIntText, held, "Days held out", tested, limits, self.keep_message),
        }

    def keep_message(self) -> None:
        """Keep the message that is shown; the action of fields that are read only when a button is pressed."""
        self.message.times += 1

    @property
    def loaded_city(self) -> City:
        """The city under the chosen load."""
        return self.city.scaled(self.values.load)

    @property
    def search_settings(self) -> SearchSettings:
        """The current settings on which the best deployment depends."""
        at = self.values
        return SearchSettings(at.load, at.units, self.metric, at.pinned, at.closed, at.colocation, at.capacity)

    @property
    def model(self) -> LogModel | None:
        """The model of the city's log under the current settings; None without a log."""
        log, at = self.opened.log, self.values
        if log is None:
            return None
        settings = replace(log.settings, metric=self.metric, capacity=at.capacity, hold_out=at.hold_out)
        return log.with_fields(settings=settings, today=None if self.today is None else np.array(self.today))

    def space(self, settings: SearchSettings) -> DeploymentSpace:
        """Return the space of allowed deployments under these settings."""
        city, room = self.city.scaled(settings.load), MAX_UNITS_AT_SITE if settings.colocation else False
        return DeploymentSpace(city, settings.units, colocation=room, pinned=settings.pinned, closed=settings.closed)

    def objective(self, settings: SearchSettings, evaluator: str | None = None) -> Objective:
        """Return the objective under these settings, by default exact for up to 12 units, else approximate."""
        space = self.space(settings)
        return Objective(space.city, space, evaluator, settings.metric, capacity=settings.capacity)

    def _median_and_enumeration(self, settings: SearchSettings) -> tuple[tuple[int, ...], Enumeration | None]:
        """Return the sites of the p-median, and all deployments evaluated, or None if these are too many."""
        space, how = self.space(settings), {"metric": settings.metric, "capacity": settings.capacity}
        if settings not in self.medians:
            self.medians[settings] = tuple(p_median(space.city, space, time_limit=P_MEDIAN_SECONDS).sites.tolist())
        quick = space.count * space.city.n_atoms * space.units <= ENUMERATION_LIMIT
        return self.medians[settings], evaluate_all(space.city, space, "approximate", **how) if quick else None

    def _evaluate(self, load: float, sites: tuple[int, ...], evaluator: str, capacity: str) -> Evaluation:
        """Evaluate a deployment by the model ``evaluator``, with all call rates multiplied by ``load``."""
        options = SIMULATION_OPTIONS if evaluator == "simulation" else {}
        return evaluate(self.city.scaled(load), list(sites), evaluator, capacity=capacity, **options)

    def known_deployments(self) -> dict[str, tuple[int, ...]]:
        """Return the sites of the best deployment, the p-median and today's, as far as known, by name."""
        best, _, name = self.best_known_deployment()
        found = {} if best is None else {name: best}
        found[MEDIAN_NAME] = self.solve(self.search_settings)[0]
        return found if self.today is None else found | {"today": self.today}

    def take_deployment(self, name: str) -> None:
        """Replace the user's deployment by a known one, now and whenever the fleet size changes."""
        known = self.known_deployments()
        found = next((each for each in (BEST_NAMES if name in BEST_NAMES else (name,)) if each in known), None)
        if found is None:
            raise InputError("there is no optimum yet: press Search thoroughly first.")
        super().take_deployment(found)
        self.follows = name

    def on_click(self, places: Sequence[int]) -> None:
        self.sites.toggle(places, self.values.units - len(self.sites.deployment))

    def on_move(self) -> None:
        self.follows = ""
        super().on_move()

    def set_as_today(self) -> None:
        """Store the user's deployment as today's, and compare with it."""
        self.today = self.deployments()["yours"]
        if self.values.baseline == "today":
            self.respond()
        else:
            self.controls["baseline"].value = "today"

    def fit_to_fleet(self) -> None:
        """Add or remove units of the user's deployment to fit the fleet size, preferring sites of the best one."""
        if self.quiet:
            return
        try:
            known = self.known_deployments()
        except InputError:
            self.respond()  # shows the error
            return
        if self.follows in known or (self.follows in BEST_NAMES and set(BEST_NAMES) & set(known)):
            self.take_deployment(self.follows)
            return
        best, units = next(iter(known.values())), self.values.units
        kept = sorted(self.sites.deployment, key=lambda site: site not in best)[:units]
        self.sites.set_units([*kept, *(Counter(best) - Counter(kept)).elements()][:units])

    def baseline_name(self, answer: Mapping[str, object]) -> str:
        """Return the name of the baseline of gains: the chosen one if it is in ``answer``, else p-median or today."""
        wanted = BEST_NAMES if self.values.baseline in BEST_NAMES else (self.values.baseline,)
        return next(name for name in (*wanted, MEDIAN_NAME, "today") if name in answer)

    def best_known_deployment(self) -> tuple[tuple[int, ...] | None, str, str]:
        """Return the sites of the best deployment, how it was found, and its name; None for the sites if unknown."""
        settings = self.search_settings
        enumeration = self.solve(settings)[1]
        if settings in self.found:
            sites, how, proven = self.found[settings]
            return sites, how, BEST_NAMES[0] if proven else BEST_NAMES[1]
        if enumeration is None:
            return None, "not searched yet; press Search thoroughly", BEST_NAMES[0]
        how = f"best of all {len(enumeration.values):,} deployments by the approximate model"
        return tuple(enumeration.best_sites.tolist()), how, BEST_NAMES[0]

    def surplus_units(self) -> int:
        """Return the number of units minus that of open sites: if positive, so many do not improve the p-median."""
        return self.values.units - (self.city.n_sites - len(self.values.closed))

    def deployments(self) -> dict[str, tuple[int, ...]]:
        found = super().deployments()
        if self.surplus_units() > 0 and self.today is not None and self.values.baseline != MEDIAN_NAME:
            del found[MEDIAN_NAME]
        return found

    def compute(self) -> dict[str, Evaluation]:
        deployments, at = self.deployments(), self.values
        model, _ = self.evaluator(max(map(len, deployments.values())))
        return {name: self.evaluate(at.load, sites, model, at.capacity) for name, sites in deployments.items()}

    @property
    def hours_a_year(self) -> float:
        """Number of hours per year with the city's call rates."""
        return _validate.positive_number(self.opened.about.get("hours_a_year", HOURS_A_YEAR), "hours_a_year")

    def longer_wait_sentence(self, today: Evaluation, other: Evaluation) -> str:
        """Return a sentence on the zones that wait longer with the ``other`` deployment, and their calls per year."""
        by_station = "cell_km" in self.opened.about
        table = zone_table(self.loaded_city, today, other, self.hours_a_year, by_station=by_station)
        return longer_wait_sentence(worse_zones(table, today))

    def reproduction_facts(self) -> dict[str, Any]:
        """Return the settings, seeds, version and origin of the city that are needed to reproduce results, by name."""
        at, names = self.values, self.city.site_names
        sites = {name: "; ".join(names[site] for site in getattr(at, name)) for name in ("pinned", "closed")}
        seeds = {"search_seed": 0, "simulation_seed": SIMULATION_SEED, "simulation_calls": _charts.SIMULATED_CALLS}
        return {"load_factor": at.load, "colocation": at.colocation, **sites, **self.opened.about, **seeds,
                "emsopt_version": __version__}  # fmt: skip

    def scenario_rows(self) -> list[dict[str, object]]:
        """Return one row of the table of scenarios for each deployment that is shown."""
        at, city, answer = self.values, self.loaded_city, self.compute()
        base, best = self.baseline_name(answer), self.best_known_deployment()[1]
        rows = []
        for name, e in answer.items():
            row = scenario_row(city, name, e, at.objective, at.threshold, answer[base]) | {"baseline": base}
            rows.append(row | {"found": best if name in BEST_NAMES else ""} | self.reproduction_facts())
        return rows
