"""The number of units that the load needs, and the gain of each further unit."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, cast

import numpy as np
import pandas as pd

from ..calls.calibration import Fit
from ..calls.drawn_cities import DrawnCities
from ..city.city import City, check_city
from ..city.deployment_space import DeploymentSpace, check_sites
from ..errors import AccuracyWarning, InputError, _validate
from ..errors._types import FloatArray, IntArray, Rng, Sites
from ..evaluators.by_name import evaluate
from ..evaluators.enumeration import enumerate_objective
from ..evaluators.evaluation import Evaluation
from ..evaluators.metrics import Metric, metric_function, metric_label
from ..evaluators.objective import Objective
from ..optimizers.search import minimize
from .comparison import INTERVAL_QUANTILES, LEAST_DRAWS, check_hypercube, city_distribution

MOST_ENUMERATED = 20_000  # deployments per size, which take seconds; more are searched
DEFAULT_SIZES = 6  # number of fleet sizes
# Largest shares of calls that find all units busy, and of the time that units are busy.
MOST_LOSS, MOST_BUSY_SHARE = 0.01, 0.3


def units_needed(city: City) -> int:
    r"""Return the smallest fleet that loses at most 1 % of the calls and is busy at most 30 % of the time.

    With *a* erlangs, the mean number of calls in service if none were lost, p units lose the share
    :math:`B(p, a) = (a^p / p!) / \sum_{k=0}^p a^k / k!` of the calls (Erlang) and are busy for the share
    :math:`a (1 - B) / p` of the time. This assumes one unit per call. Long distances, or a load that changes during the
    day, may require more units.
    """
    check_city(city)
    load = city.total_rate * city.mean_service_time / 60
    units, blocked = 0, 1.0
    while units == 0 or blocked > MOST_LOSS or load * (1 - blocked) > MOST_BUSY_SHARE * units:
        units += 1
        blocked = load * blocked / (units + load * blocked)
    return units


@dataclass(frozen=True, eq=False, repr=False)
class FleetCurve:
    """The best deployment of each of K fleet sizes.

    Attributes
    ----------
    units : ndarray of int, shape (K,)
        Fleet sizes, in ascending order.
    sites : tuple of ndarray of int
        Sites of the units of each fleet.
    values : ndarray, shape (K,)
        Metric of each fleet; smaller is better.
    metric : str, tuple or mapping
        What was minimised.
    evaluations, found : tuple
        Evaluation of each fleet, and how its deployment was found, such as "proven by enumeration".
    draws : ndarray, shape (draws, K), or None
        Metric of each fleet in cities drawn from the uncertainty of a fit; None for a `City`.
    """

    units: IntArray
    sites: tuple[IntArray, ...]
    values: FloatArray
    metric: Metric
    evaluations: tuple[Evaluation, ...]
    found: tuple[str, ...]
    draws: FloatArray | None = None

    @property
    def gains(self) -> FloatArray:
        """Reduction of the metric from the next smaller fleet, per further unit, shape (K,); NaN for the first."""
        return np.r_[np.nan, -np.diff(self.values) / np.diff(self.units)]

    def probabilities(self, standard: float) -> FloatArray:
        """Return the probability that each fleet meets a standard, an upper limit on its metric, shape (K,).

        Without draws it is 0 or 1. With the metric ("late", 8.0), the standard 0.1 means at most 10 % late responses.
        """
        standard = _validate.finite_number(standard, "standard")
        values = self.values[None] if self.draws is None else self.draws
        return np.asarray((values <= standard).mean(axis=0), float)

    def smallest(self, standard: float) -> int | None:
        """Return the size of the smallest fleet that meets a standard with 90 % probability; None if none does."""
        enough = self.probabilities(standard) >= 0.9
        return int(self.units[enough.argmax()]) if enough.any() else None

    def to_frame(self, standard: float | None = None) -> pd.DataFrame:
        """Return one row per fleet size: its metric (``value``), ``gain`` (see `gains`), other measures, its sites.

        With draws, ``low`` and ``high`` are the 90 % interval of ``value``, and ``gain_low`` and ``gain_high`` that of
        ``gain``; with a ``standard``, ``meets`` is the probability of meeting it.
        """
        table = pd.DataFrame({"value": self.values, "gain": self.gains}, index=pd.Index(self.units, name="units"))
        if self.draws is not None:
            table["low"], table["high"] = np.quantile(self.draws, INTERVAL_QUANTILES, axis=0)
            gains = -np.diff(self.draws, axis=1) / np.diff(self.units)
            table.loc[self.units[1:], ["gain_low", "gain_high"]] = np.quantile(gains, INTERVAL_QUANTILES, axis=0).T
        if standard is not None:
            table["meets"] = self.probabilities(standard)
        measures = pd.DataFrame([found.summary() for found in self.evaluations], index=table.index)
        return table.join(measures).assign(sites=[sites.tolist() for sites in self.sites], found=self.found)

    def __repr__(self) -> str:
        ends = (f"{self.values[k]:.4g} ({self.units[k]} units)" for k in (0, -1))
        return f"<FleetCurve: {metric_label(self.metric)} from {' to '.join(ends)}>"

    def _repr_html_(self) -> str:
        return f"<p>{escape(repr(self))}</p>" + self.to_frame().round(3).to_html()


def fleet_curve(
    city: City | Fit | DrawnCities,
    units: Iterable[int] | None = None,
    *,
    start: Sites | None = None,
    colocation: bool | int = False,
    budget: int = 200,
    evaluator: str | None = None,
    metric: Metric = "mean_response",
    draws: int = 200,
    rng: Rng = None,
    **options: Any,
) -> FleetCurve:
    """Find the best deployment of each fleet size.

    Parameters
    ----------
    city : City, or what `emsopt.calls.calibrate` returns, or `emsopt.calls.drawn_cities`
        For a fit, deployments are found in the estimated city and then evaluated in drawn cities, as by `compare`.
    units : iterable of int, optional
        Fleet sizes, at least that of ``start``. Default: six, from that of ``start`` on. Required without ``start``.
    start : sequence of int or str, optional
        Today's deployment, whose units stay: each further unit is placed at the site where it is best. This is not
        optimal: compare with the default, by which each fleet may use other sites than the one before it.
    colocation : bool or int
        Number of units that a site may hold, as for `DeploymentSpace`. No unit of ``start`` has to leave.
    budget : int
        Evaluations of a search for one size without ``start``, by the method "local+". Up to 20,000 deployments of a
        size are enumerated instead; only then is the best one proven.
    evaluator : {"exact", "approximate"}, optional
        The same for all sizes. Default: exact if the largest fleet has at most 12 units, else approximate.
    draws : int
        Number of cities drawn from a fit, at least 100.
    rng : int or Generator, optional
        Random seed of the searches and the draws. Default: 0, so that curves can be repeated.
    metric, **options
        As for `Objective`, and for a fit as for `Fit.city`, such as ``cell_km``.

    Examples
    --------
    >>> import emsopt as eo
    >>> city = eo.datasets.grid_city(n_sites=6, units=2, rng=1)
    >>> eo.planning.fleet_curve(city, range(2, 4), start=[0, 1]).sites[-1].tolist()
    [0, 1, 4]
    """
    if isinstance(city, City) and options:
        raise InputError(f"option {min(options)!r} needs a fit by emsopt.calls.calibrate; got a City.")
    known = None if isinstance(city, City) else city_distribution(city, "city", "an emsopt.City or ", **options)
    centre = cast("City", city) if known is None else known.city()
    draws = _validate.whole_number(draws, "draws", LEAST_DRAWS)
    current = None if start is None else np.sort(check_sites(centre, start, "start"))
    sizes = _fleet_sizes(units, current)
    evaluator = check_hypercube(evaluator, sizes[-1])
    generator = _validate.generator(0 if rng is None else rng)  # the same call gives the same curve

    def objective(p: int, colocation: bool | int = colocation) -> Objective:
        space = DeploymentSpace(centre, p, colocation=colocation)
        return Objective(centre, space, evaluator, metric)

    if current is None:
        best = list(_search_sizes(objective, sizes, budget, generator))
    else:
        most = np.maximum(np.bincount(current, minlength=centre.n_sites), objective(1).space.site_capacities)
        most = np.where(colocation is True, sizes[-1], most)  # any number of units per site
        best = list(_add_units(lambda p: objective(p, True), current, sizes, most))
    sites = tuple(fleet[0] for fleet in best)
    drawn = None
    if known is not None:
        drawn = evaluate_in_draws(known.draws(draws, int(generator.integers(2**62))), sites, evaluator, metric)
    return FleetCurve(
        units=np.array(sizes),
        sites=sites,
        values=np.array([fleet[1] for fleet in best]),
        metric=metric,
        evaluations=tuple(objective(len(x), True).evaluation(x) for x in sites),
        found=tuple(fleet[2] for fleet in best),
        draws=drawn,
    )


def evaluate_in_draws(
    cities: Iterable[City], deployments: Sequence[IntArray], evaluator: str, metric: Metric
) -> FloatArray:
    """Return the metric of each of K deployments in each city, shape (draws, K)."""
    rows = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AccuracyWarning)  # warned of once, for the estimated city
        for city in cities:
            value = metric_function(city, metric)
            rows.append([value(evaluate(city, sites, evaluator)) for sites in deployments])
    return np.array(rows)


def with_one_more_unit(sites: IntArray, most: IntArray) -> IntArray:
    """Return all deployments that add one unit to ``sites``, shape (k, p + 1); site n may hold ``most[n]`` units."""
    free = np.flatnonzero(np.bincount(sites, minlength=len(most)) < most)
    return np.sort(np.column_stack([np.repeat(sites[None], len(free), axis=0), free]), axis=1)


def best_of_deployments(objective: Objective, deployments: IntArray) -> tuple[IntArray, float]:
    """Return the deployment with the smallest objective among ``deployments``, shape (k, p), and its value."""
    values = objective.values(deployments)
    return deployments[values.argmin()], float(values.min())


def _fleet_sizes(units: Iterable[int] | None, start: IntArray | None) -> list[int]:
    """Return fleet sizes in ascending order, by default six from that of ``start`` on; raise if one is smaller."""
    least = 1 if start is None else len(start)
    if units is None and start is not None:
        units = range(least, least + DEFAULT_SIZES)
    given = units if units is not None and np.iterable(units) else ()
    sizes = sorted({_validate.whole_number(p, "units", least) for p in given})
    if not sizes:
        raise InputError(f"`units` must be fleet sizes, such as range(7, 13); got {_validate.quote(units)}.")
    return sizes


def _search_sizes(
    objective: Any, sizes: list[int], budget: int, rng: np.random.Generator
) -> Iterator[tuple[IntArray, float, str]]:
    """Yield for each fleet size p the best deployment for ``objective(p)``, its value, and how it was found."""
    before = None
    for p in sizes:
        problem = objective(p)
        if problem.space.count <= MOST_ENUMERATED:
            everything = enumerate_objective(problem)
            before = everything.best_sites, float(everything.values.min()), "proven by enumeration"
        else:
            x0 = None
            if before is not None and len(before[0]) == p - 1:
                x0 = [best_of_deployments(problem, with_one_more_unit(before[0], problem.space.site_capacities))[0]]
            run = minimize(problem, "local+", budget=budget, x0=x0, rng=rng)
            before = run.x, run.fun, f"local+, {run.nfev} evaluations"
        yield before


def _add_units(
    objective: Any, start: IntArray, sizes: list[int], most: IntArray
) -> Iterator[tuple[IntArray, float, str]]:
    """Add units to ``start`` one by one at the best site; yield each size's deployment, value, and how it was found."""
    sites, value, found = start, objective(len(start))(start), "start"
    for p in range(len(start), sizes[-1] + 1):
        if p > len(start):
            more = with_one_more_unit(sites, most)
            if not len(more):
                raise InputError(f"{p} units do not fit: the sites hold {most.sum()}. Pass a larger `colocation`.")
            (sites, value), found = best_of_deployments(objective(p), more), "the best further unit"
        if p in sizes:
            yield sites, value, found
