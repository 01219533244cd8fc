"""The best deployment that a sum of money pays for: which stations to build, and how many units to buy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from html import escape
from itertools import count, islice, takewhile
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd

from .. import _validate
from .._running.progress import bar
from ..city.city import City, check_city
from ..city.deployment_space import DeploymentSpace, check_sites
from ..errors import InputError
from ..evaluators.evaluation import is_queue
from ..evaluators.metrics import Metric, metric_label
from ..evaluators.objective import Objective
from .fleet_curve import without_chance

if TYPE_CHECKING:
    from .._types import ArrayLike, FloatArray, IntArray, Progress, Rng, Sites

ENUMERATED = 20_000  # deployments, which take seconds
TOGETHER = 12  # units at one station at most, if any number may share it
KICKS, KICK = 24, 3  # how often a search leaves a local optimum, and by how many random moves
ROUNDING = 1e-9  # of the budget


@dataclass(frozen=True, eq=False, repr=False)
class BudgetPlan:
    """The best deployment within a budget.

    Attributes
    ----------
    sites : ndarray of int, shape (p,)
        Site of each unit.
    value : float
        Metric of the deployment; smaller is better.
    cost : float
        What it costs, in the unit of the budget.
    built : tuple of str
        Sites at which a station is built.
    metric : str, tuple or mapping
        What was minimised.
    found : str
        How the deployment was found: "proven by enumeration" of all that the budget pays for, or "swap search".
    by_units : DataFrame
        One row per fleet size: the best deployment found for it, its value and cost, and the number of stations built.
        A swap search looks for the best plan, not for the best of each size: other rows can often be improved.

    Examples
    --------
    >>> import emsopt as eo
    >>> city = eo.City([0.1, 0.2, 0.4], [[0, 6, 9], [4, 0, 5], [9, 5, 0]], turnout_times=1, service_times=30)
    >>> plan = eo.planning.within_budget(city, 10, station_cost=[6, 2, 6], unit_cost=3, start=[0])
    >>> plan.sites.tolist(), plan.cost, plan.built
    ([0, 2], 9.0, ('site 3',))
    """

    sites: IntArray
    value: float
    cost: float
    built: tuple[str, ...]
    metric: Metric
    found: str
    by_units: pd.DataFrame

    def to_frame(self) -> pd.DataFrame:
        """Return the table ``by_units``."""
        return self.by_units

    def __repr__(self) -> str:
        stations = f"stations at {', '.join(self.built)}" if self.built else "no station built"
        value = f"{metric_label(self.metric)} {self.value:.4g}"
        return f"<BudgetPlan: {len(self.sites)} units, {stations}, cost {self.cost:g}, {value}, {self.found}>"

    def _repr_html_(self) -> str:
        return f"<p>{escape(repr(self))}</p>" + self.to_frame().round(3).to_html()


def within_budget(
    city: City,
    budget: float,
    *,
    station_cost: ArrayLike,
    unit_cost: float,
    start: Sites = (),
    colocation: bool | int = False,
    evaluator: str | None = None,
    capacity: str = "loss",
    metric: Metric = "mean_response",
    rng: Rng = None,
    progress: Progress = False,
) -> BudgetPlan:
    """Find the best deployment that a budget pays for.

    A station is paid for when its first unit comes. What ``start`` has is there already: its stations, where no unit
    need stay, and its units. Interchangeable sites (twins) are one station, at the price of the cheapest.

    Parameters
    ----------
    city : City
    budget : float
        Sum that may be spent, in any currency.
    station_cost : float or array_like, shape (N,)
        Cost of a station at each site; infinite where none can be built.
    unit_cost : float
        Cost of a further unit.
    start : sequence of int or str, optional
        Today's deployment. Default: nothing is there yet.
    colocation : bool or int
        Number of units that a site may hold, as for `DeploymentSpace`.
    evaluator : {"exact", "approximate"}, optional
        Default: exact if the budget pays for at most 12 units, else approximate. In a swap search of many sites the
        exact one is slow.
    capacity : {"loss", "queue"}
        What happens to calls that find every unit busy.
    metric : str, tuple or mapping
        What is minimised, as for `Objective`.
    rng : int or Generator, optional
        Random seed of a swap search. Default: 0.
    progress : bool or callable
        Whether to show a bar, or a function called with (steps done, number of steps).

    Returns
    -------
    BudgetPlan

    Raises
    ------
    InputError
        If the budget does not pay for a single unit, or an argument is invalid.
    UnstableQueueError
        If calls queue and units that are slower than the mean cannot serve them.

    Notes
    -----
    If the budget pays for at most 20,000 deployments of at least as many units as today's, all are evaluated, and the
    best is proven. Otherwise units are moved, added and removed, always by the best single change, from today's or the
    cheapest deployment on and then 24 times from the best one after three random changes; this proves nothing.

    If calls are lost, the metric is that of the answered ones, and fewer units may seem better; `units_needed` says how
    many keep losses small. With ``colocation=True`` a station holds at most 12 units more than today's fleet.

    Examples
    --------
    >>> import emsopt as eo
    >>> city = eo.City([0.1, 0.2, 0.4], [[0, 6, 9], [4, 0, 5], [9, 5, 0]], turnout_times=1, service_times=30)
    >>> eo.planning.within_budget(city, 8, station_cost=2, unit_cost=2).sites.tolist()
    [1, 2]
    """
    check_city(city)
    money = _validate.positive_number(budget, "budget", zero=True) * (1 + ROUNDING)
    here = check_sites(city, start, "start") if len(start) else np.empty(0, np.int64)
    each = _validate.positive_number(unit_cost, "unit_cost", zero=True)
    offer = _offer(city, _prices(city, station_cost), each, here, colocation, money)
    load = city.total_rate * city.mean_service_time / 60 if is_queue(capacity) else 0.0  # fewer units never catch up
    sizes = list(takewhile(lambda p: next(offer.listing(p), None) is not None, count(max(1, len(here)))))
    sizes = [p for p in sizes if p > load]
    if not sizes:
        least = f"{int(load) + 1} units" if load >= 1 else "one unit"
        raise InputError(f"`budget` must pay for at least {least} with stations; got {budget:g}. Raise it.")
    evaluator = without_chance(evaluator, sizes[-1])

    @cache
    def objective(p: int) -> Objective:
        return Objective(city, DeploymentSpace(city, p, colocation=True), evaluator, metric, capacity=capacity)

    best: dict[int, tuple[IntArray, float]] = {}

    def value(deployments: list[IntArray]) -> FloatArray:
        """Return the values of deployments of one size, given by their stations, and remember the best."""
        p = len(deployments[0])
        values = objective(p).values(np.array([offer.sites(x) for x in deployments]))
        if p not in best or values.min() < best[p][1]:
            best[p] = deployments[int(values.argmin())], float(values.min())
        return values

    listed = list(islice((x for p in sizes for x in offer.listing(p)), ENUMERATED + 1))
    proven = len(listed) <= ENUMERATED
    with bar(progress, len(sizes) if proven else 1 + KICKS, "step") as show:
        if proven:
            for done, p in enumerate(sizes, 1):
                value([x for x in listed if len(x) == p])
                show(done)
        else:
            generator = _validate.generator(0 if rng is None else rng)
            for done in range(1 + KICKS):
                x = offer.indices(here) if len(here) == sizes[0] else listed[0]
                if best:
                    x = min(best.values(), key=lambda found: found[1])[0]
                    for _ in range(KICK):
                        x = moves[generator.integers(len(moves))] if (moves := offer.neighbours(x, sizes[0])) else x
                _descend(x, lambda x: offer.neighbours(x, sizes[0]), value)
                show(done + 1)
    p = min(best, key=lambda p: (best[p][1], p))
    rows = [
        {"value": v, "cost": offer.cost(x), "built": len(offer.built(x)), "sites": offer.sites(x).tolist()}
        for _, (x, v) in sorted(best.items())
    ]
    return BudgetPlan(
        sites=offer.sites(best[p][0]),
        value=best[p][1],
        cost=offer.cost(best[p][0]),
        built=tuple(city.site_names[k] for k in offer.built(best[p][0])),
        metric=metric,
        found="proven by enumeration" if proven else "swap search",
        by_units=pd.DataFrame(rows, index=pd.Index(sorted(best), name="units")),
    )


class Offer(NamedTuple):
    """What can be bought: stations in ascending order of price.

    A deployment is given by the station of each unit, in ascending order. ``places`` are the sites of each station, one
    for each unit that it may hold; ``prices`` are 0 where it is there already; ``owned`` units are there already.
    """

    places: list[IntArray]
    prices: FloatArray
    there: IntArray  # indices of the stations that are there already
    unit_cost: float
    owned: int
    money: float

    def sites(self, x: IntArray) -> IntArray:
        """Return the sites of the units, in ascending order."""
        stations, units = np.unique(x, return_counts=True)
        return np.sort(np.concatenate([self.places[k][:n] for k, n in zip(stations, units, strict=True)]))

    def indices(self, sites: IntArray) -> IntArray:
        """Return the stations of the units at some sites."""
        return np.sort([next(k for k, places in enumerate(self.places) if site in places) for site in sites])

    def cost(self, x: IntArray) -> float:
        """Return what a deployment costs."""
        return float(self.prices[np.unique(x)].sum() + self.unit_cost * max(len(x) - self.owned, 0))

    def built(self, x: IntArray) -> IntArray:
        """Return the first site of each station that is built for a deployment."""
        return np.sort([self.places[k][0] for k in np.setdiff1d(x, self.there)]).astype(np.int64)

    def listing(self, p: int) -> Iterator[IntArray]:
        """Yield all affordable deployments of p units; only parts that can be completed are extended."""
        room = [len(places) for places in self.places]
        cheapest = np.full((len(room) + 1, p + 1), np.inf)  # completion by so many units at stations from k on
        cheapest[:, 0] = 0.0
        for k in reversed(range(len(room))):
            left_over = np.maximum(np.arange(p + 1) - room[k], 0)
            cheapest[k] = np.minimum(cheapest[k + 1], self.prices[k] + cheapest[k + 1, left_over])

        def extend(chosen: list[int], station: int, left: float) -> Iterator[IntArray]:
            if len(chosen) == p:
                yield np.array(chosen)
                return
            for k in range(station, len(room)):
                for n in range(1, min(room[k], p - len(chosen)) + 1):
                    if self.prices[k] + cheapest[k + 1, p - len(chosen) - n] <= left:
                        yield from extend(chosen + [k] * n, k + 1, left - self.prices[k])

        yield from extend([], 0, self.money - self.unit_cost * max(p - self.owned, 0))

    def neighbours(self, x: IntArray, least: int) -> list[IntArray]:
        """Return the affordable deployments with one unit added, removed (down to ``least``) or moved."""
        units = np.bincount(x, minlength=len(self.places))
        free = [k for k, places in enumerate(self.places) if units[k] < len(places)]
        less = [np.delete(x, np.searchsorted(x, k)) for k in np.unique(x)]
        near = [np.sort(np.r_[rest, k]) for rest in (x, *less) for k in free]
        near += less if len(x) > least else []
        return [y for y in near if self.cost(y) <= self.money]


def _offer(
    city: City, prices: FloatArray, unit_cost: float, here: IntArray, colocation: bool | int, money: float
) -> Offer:
    """Return what is on offer in a city."""
    groups, held = city.twin_groups, np.bincount(here, minlength=city.n_sites)
    most = DeploymentSpace(city, 1, colocation=colocation).site_capacities
    if colocation is True:  # as many as the money buys
        most = len(here) + np.full(city.n_sites, int(min(money / unit_cost, TOGETHER)) if unit_cost else TOGETHER)
    most = np.maximum(most, held)
    price = np.full(groups.max() + 1, np.inf)
    np.minimum.at(price, groups, prices)
    price[groups[here]] = 0.0
    stations = [k for k in np.argsort(price, kind="stable") if price[k] <= money]
    places = [np.repeat(np.flatnonzero(groups == k), most[groups == k]) for k in stations]
    there = np.flatnonzero(np.isin(stations, groups[here]))
    return Offer(places, price[stations], there, unit_cost, len(here), money)


def _prices(city: City, station_cost: ArrayLike) -> FloatArray:
    """Return the checked cost of a station at each site, shape (N,)."""
    prices = np.asarray(_validate.floats(station_cost, "station_cost"), float)
    prices = np.full(city.n_sites, prices) if prices.ndim == 0 else prices
    if prices.shape != (city.n_sites,) or not (prices >= 0).all():
        raise InputError(
            f"`station_cost` must be one number or one per site, shape ({city.n_sites},), at least 0; got "
            f"{_validate.shown(station_cost)}."
        )
    return prices


def _descend(
    x: IntArray, neighbours: Callable[[IntArray], list[IntArray]], value: Callable[[list[IntArray]], FloatArray]
) -> None:
    """Make the best of all moves until none improves; ``value`` remembers the best."""
    now = float(value([x])[0])
    while near := neighbours(x):
        found = []
        for p in {len(y) for y in near}:
            alike = [y for y in near if len(y) == p]
            values = value(alike)
            found.append((float(values.min()), alike[int(values.argmin())]))
        least, y = min(found, key=lambda pair: pair[0])
        if least >= now - 1e-12:
            return
        x, now = y, least
