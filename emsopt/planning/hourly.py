"""Plan a deployment for each hour of the day, with few units relocated between hours.

Given the city at each hour h with its call rate λ_h, `hourly_plan` looks for deployments x_h that minimise the mean
over all calls, Σ_h λ_h f_h(x_h) / Σ_h λ_h, where f_h is the objective in hour h, computed by an evaluator. At most k
units may move from one hour to the next, and from the last to the first, as the day repeats.

Each hour is evaluated in steady state. The model ignores calls carried over from one hour to the next, and the time
that relocated units spend on the road. A plan also follows chance in its log: `judge_plan` estimates the gain of its
moves in weeks that it was not made from.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from .. import _validate
from .._running.loop import bar
from ..city import travel
from ..city.city import City, check_city
from ..errors import InputError
from ..evaluators.metrics import Metric, metric_label
from ..evaluators.objective import Objective
from ..optimizers.deployments.swaps import affordable
from . import _moves
from .sweeps import search_again

if TYPE_CHECKING:
    from collections.abc import Callable

    import pandas as pd

    from .._types import FloatArray, IntArray, Progress, Rng
    from ..city.deployment_space import DeploymentSpace

MOST_STATES = 50_000  # deployments up to which all are evaluated at all hours; for more this takes too long
MOST_STEPS = 30_000_000
MOST_CANDIDATES = 4000
MOST_ROUNDS = 20
LEVEL = 0.9  # of intervals, as in all of this package
LEAST_GAIN = 0.01  # of the value without moves: a smaller gain is not worth the effort
LITTLE = 0.001  # the same, of a gain by the plan's own figures, which promise more than new weeks bring


@dataclass(frozen=True, eq=False, repr=False)
class HeldOutGain:
    """Gain of a plan over the best deployment without moves, in weeks that it was not made from.

    Attributes
    ----------
    gains : ndarray, shape (W,)
        Gain per call in each week held out: in minutes, or in the units of another metric.
    calls : ndarray, shape (W,)
        Number of calls in each of these weeks.
    moves : ndarray, shape (W,)
        Moves per day of each plan.
    calls_per_day : float
        Mean number of calls per day of the whole log.
    mean, low, high : float
        Gain per call: mean over all calls, and its 90 % interval.
    per_move, per_move_low, per_move_high : float
        The same in total over the calls of a day, divided by the moves of a day: the cost that a move must not exceed.
        In minutes of all callers together; with a late fraction, in late calls; with a mix, in its sum over the calls.
        NaN if no plan moves a unit.
    relative : float
        ``mean`` as a share of the value without moves.
    metric : str, tuple or mapping
        Metric of the plan, as for `Objective`.
    """

    gains: FloatArray
    calls: FloatArray
    moves: FloatArray
    calls_per_day: float
    mean: float
    low: float
    high: float
    per_move: float
    per_move_low: float
    per_move_high: float
    relative: float
    metric: Metric

    @property
    def worth_it(self) -> bool:
        """Whether the interval is above 0, and the gain is at least 1 % of the value without moves."""
        return bool(self.low > 0 and self.relative >= LEAST_GAIN)

    @property
    def verdict(self) -> str:
        """Advice on the moves, in a few sentences."""
        if not self.moves.any():
            return "No unit moves all day: there is nothing to gain from moves."
        label, scale = metric_label(self.metric), 1.0
        unit, note = f"of ({label}) per call", f"of ({label}), summed over the calls,"
        if self.metric == "mean_response":
            unit, note = "min per call", "call-minutes"
        elif isinstance(self.metric, tuple):
            unit, note = "late calls per day", "late calls"
            scale = self.calls_per_day  # a share of late calls is hard to imagine
        gain = [scale * value for value in (self.mean, self.low, self.high)]
        text = (
            f"Over {len(self.gains)} parts of the log, each judged by a plan made from the others, moves gain "
            f"{gain[0]:.3f} {unit} ({self.relative:.1%}; {LEVEL:.0%} interval {gain[1]:.3f} to {gain[2]:.3f})"
        )
        if self.low <= 0:
            return f"Leave the units where they are. {text}, which cannot be told from no gain."
        text += f", or {self.per_move:.2g} {note} per move ({self.per_move_low:.2g} to {self.per_move_high:.2g})."
        if self.worth_it:
            return f"The moves are worth making if each costs less than {self.per_move:.2g} {note.rstrip(',')}. {text}"
        return f"Leave the units where they are. {text} That is below {LEAST_GAIN:.0%}."

    def __repr__(self) -> str:
        return f"<HeldOutGain: {self.verdict}>"


@dataclass(frozen=True, eq=False, repr=False)
class Plan:
    """A deployment for each hour.

    Attributes
    ----------
    labels : tuple
        Labels of the hours.
    sites : ndarray of int, shape (H, p)
        Deployment of each hour.
    values : ndarray, shape (H,)
        Objective of the plan's deployment in each hour: mean response (min), unless another metric was chosen.
    weights : ndarray, shape (H,)
        Share of calls in each hour.
    moves : ndarray of int, shape (H,)
        Number of units that move at the start of each hour; the first entry are moves from the last hour to the first.
    most_moves : int
        Maximum number of units that may move between two hours, k.
    value : float
        Mean of ``values`` over all calls, that is weighted by ``weights``.
    lower_bound : float
        Lower bound on the value of any plan within this limit; NaN if nothing is proven.
    fixed_sites : ndarray of int, shape (p,)
        Best deployment found for all hours together, without moves.
    fixed_value : float
        Value of ``fixed_sites``: its mean over all calls.
    free_value : float
        Mean over all calls if each hour has its own best deployment found, with unlimited moves.
    proven : bool
        Whether ``value``, ``fixed_value`` and ``free_value`` are proven optimal. False if ``value`` exceeds
        ``lower_bound`` by more than 1e-6, even if the other two are optimal because all deployments were evaluated.
    message : str
        Description of what was searched and what is proven.
    objectives : tuple of Objective
        The objective of each hour.
    held_out : HeldOutGain or None
        What the plan gains in weeks that it was not made from; None before `emsopt.planning.judge_plan`.

    Examples
    --------
    >>> import emsopt as eo
    >>> city = eo.datasets.grid_city(n_sites=6, units=2, rng=1)
    >>> plan = eo.planning.hourly_plan({"night": city.scaled(0.5), "day": city.scaled(2)}, 2, moves=1)
    >>> plan.labels, len(plan.sites), plan.most_moves
    (('night', 'day'), 2, 1)
    """

    labels: tuple[object, ...]
    sites: IntArray
    values: FloatArray
    weights: FloatArray
    moves: IntArray
    most_moves: int
    value: float
    lower_bound: float
    fixed_sites: IntArray
    fixed_value: float
    free_value: float
    proven: bool
    message: str
    objectives: tuple[Objective, ...]
    held_out: HeldOutGain | None = None

    def to_frame(self) -> pd.DataFrame:
        """Return one row per hour: calls per hour, value, number of moves, and the names of the sites."""
        import pandas as pd

        names = self.objectives[0].city.site_names
        rates = [objective.city.total_rate for objective in self.objectives]
        sites = ["; ".join(names[site] for site in row) for row in self.sites]
        columns = {"hour": self.labels, "calls_per_hour": rates, "value": self.values, "moves": self.moves}
        return pd.DataFrame({**columns, "sites": sites})

    def changes(self) -> pd.DataFrame:
        """Return one row per relocated unit: the hour at whose start it moves, its old site and its new site.

        If several units move at once and the city has coordinates, they are paired to keep distances short.
        """
        import pandas as pd

        city = self.objectives[0].city
        rows = [
            (label, city.site_names[a], city.site_names[b])
            for k, label in enumerate(self.labels)
            if self.moves[k]
            for a, b in _moves_between(self.sites[k - 1], self.sites[k], city)
        ]
        return pd.DataFrame(rows, columns=["hour", "from", "to"])

    @property
    def verdict(self) -> str:
        """Whether the moves are worth making, in a few sentences."""
        if not self.moves.any():
            return "No unit moves all day."
        if self.held_out is not None:
            return self.held_out.verdict
        gain = self.fixed_value - self.value
        said = f"The plan is not judged on days held out of the log. By its own figures it gains {gain:.2g}"
        leave = gain < LITTLE * self.fixed_value
        return said + (": leave the units where they are." if leave else ", which chance in the log may explain.")

    @property
    def limit(self) -> str:
        """How many moves are allowed and made, in words."""
        moves = "1 move" if self.most_moves == 1 else f"{self.most_moves} moves"
        return f"at most {moves} between hours, {int(self.moves.sum())} in all"

    def __repr__(self) -> str:
        values = f"{metric_label(self.objectives[0].metric)} {self.value:.4g}, {self.fixed_value:.4g} without moves"
        return f"<Plan: {len(self.labels)} hours, {self.limit}; {values}; {self.message}. {self.verdict}>"

    def _repr_html_(self) -> str:
        label = metric_label(self.objectives[0].metric)
        values = {"without moves": self.fixed_value, self.limit: self.value, "with unlimited moves": self.free_value}
        rows = (
            f"<tr><th style='text-align:left'>{name}</th><td>{value:.4g}</td></tr>" for name, value in values.items()
        )
        head = f"<tr><th>plan of {len(self.labels)} hours</th><th>{escape(label)}</th></tr>"
        return f"<table>{head}{''.join(rows)}</table><p>{escape(self.message)}. <b>{escape(self.verdict)}</b></p>"


def hourly_plan(
    cities: Mapping[Any, City] | Sequence[City],
    units: int | DeploymentSpace,
    moves: int,
    evaluator: str | None = None,
    *,
    rng: Rng = None,
    progress: Progress = False,
    **options: Any,
) -> Plan:
    """Plan a deployment for each hour, with at most ``moves`` units relocated between hours.

    Parameters
    ----------
    cities : mapping or sequence of City
        One city per hour, in order; the keys of a mapping are the labels (see
        `emsopt.calls.Demand.cities_by_hour`). All must have the same site names in the same order, and the same groups
        of interchangeable sites (`City.twin_groups`).
    units : int or DeploymentSpace
        Fleet size p, or the allowed deployments, the same for all hours.
    moves : int
        Maximum number of units that move between two hours, k.
    evaluator : {"exact", "approximate", "simulation"}, optional
        Default: exact for up to 12 units if all deployments of all hours can be evaluated in half a minute,
        else approximate.
    rng : int or Generator, optional
        Random seed, for the random starts of a search and for a simulation. A simulation needs a whole number.
    progress : bool or callable
        Whether to show a bar, or a function called with (hours evaluated, number of hours).
    **options
        ``metric`` and options of the evaluator, as for `Objective`.

    Returns
    -------
    Plan
        If all deployments can be evaluated at all hours, dynamic programming over all of them, with branch and
        bound, finds the optimal plan (`Plan.proven`). The approximate evaluator allows
        about 40,000 deployments in 24 hours. Otherwise the plan is the best over a selection of deployments: the
        results of a local search for each hour, their neighbours, and the neighbours of the plan until it no longer
        improves.

    Raises
    ------
    InputError
        If the cities do not have the same sites or interchangeable sites, or the fleet does not fit them.

    Examples
    --------
    >>> import emsopt as eo
    >>> base = eo.datasets.grid_city(n_sites=6, units=2, rng=1)
    >>> plan = hourly_plan({"night": base.scaled(0.5), "day": base.scaled(2)}, 2, moves=1)
    >>> plan.proven, plan.value <= plan.fixed_value
    (True, True)
    """
    by_hour = _by_hour(cities)
    limit = _validate.whole_number(moves, "moves", low=0)
    if evaluator == "simulation":
        options["rng"] = rng
    objectives = [Objective(city, units, evaluator, **options) for city in by_hour.values()]
    if evaluator is None and not _affordable(objectives):  # the approximate model may be fast enough
        objectives = [Objective(city, units, "approximate", **options) for city in by_hour.values()]
    if objectives[0].noisy:
        raise InputError(
            "`rng` must be a whole number with evaluator='simulation', so that all deployments get the same calls."
        )
    most = min(limit, objectives[0].units)
    weights = np.array([city.total_rate for city in by_hour.values()])
    weights /= weights.sum()
    with bar(progress, len(objectives), "hour") as show:
        if _affordable(objectives):
            rows, values, walk = _over_all(objectives, weights, most, show)
            gap = walk.cost - walk.bound
            proven = "optimal" if gap <= 1e-6 else f"within {gap:.2g} of the optimum"
            message = f"all {len(rows):,} deployments at all hours; proven {proven}"
        else:
            rows, values, walk = _over_candidates(objectives, weights, most, rng, show)
            message = f"best of {len(rows):,} of {objectives[0].space.count:,} deployments; not proven"
    sites = rows[walk.states]
    constant = int(np.argmin(weights @ values))
    counts = objectives[0].space.group_counts(sites)  # exchanging interchangeable sites is no move
    moved = np.maximum(counts - np.roll(counts, 1, axis=0), 0).sum(axis=1)
    return Plan(
        labels=tuple(by_hour),
        sites=sites,
        values=values[np.arange(len(weights)), walk.states],
        weights=weights,
        moves=moved,
        most_moves=limit,
        value=walk.cost,
        lower_bound=walk.bound,
        fixed_sites=rows[constant],
        fixed_value=float((weights @ values)[constant]),
        free_value=float(weights @ values.min(axis=1)),
        proven=walk.cost - walk.bound <= 1e-6,
        message=message,
        objectives=tuple(objectives),
    )


def _by_hour(cities: object) -> dict[Any, City]:
    """Return a mapping from labels to cities; raise unless all have the same site names and interchangeable sites.

    The labels of a sequence are 0, 1, ...
    """
    given = cities if isinstance(cities, Iterable) else ()
    by_hour = dict(cities if isinstance(cities, Mapping) else enumerate(given))
    if not by_hour:
        wanted = "a sequence or mapping of at least one City, in order of hours"
        raise InputError(f"`cities` must be {wanted}; got {_validate.quote(cities)}.")
    first = next(iter(by_hour.values()))
    for label, city in by_hour.items():
        check_city(city, f"cities[{label!r}]")
        if city.site_names != first.site_names:
            raise InputError(f"all hours must have the same sites in the same order; those of {label!r} differ.")
        if not np.array_equal(city.twin_groups, first.twin_groups):
            raise InputError(
                "all hours must have the same interchangeable sites, those with equal times and preferences; those of "
                f"{label!r} differ."
            )
    return by_hour


def _affordable(objectives: list[Objective]) -> bool:
    """Return whether all deployments can be evaluated at all hours, and all moves between them can be listed."""
    space = objectives[0].space
    places = int((space.capacities > space.floors).sum())
    steps = space.count * places * min(places, space.units)
    each = affordable(objectives[0]) / len(objectives)
    return space.count <= min(MOST_STATES, each) and steps <= MOST_STEPS


def _over_all(
    objectives: list[Objective], weights: FloatArray, most: int, show: Callable[[int], object]
) -> tuple[IntArray, FloatArray, _moves.Walk]:
    """Return all deployments, shape (K, p), their values at each hour, (H, K), and the cheapest walk."""
    space = objectives[0].space
    rows = space.listing()
    values = np.empty((len(objectives), len(rows)))
    for hour, objective in enumerate(objectives):
        values[hour] = objective.values(rows)
        show(hour + 1)
    counts = space.group_counts(rows)
    steps = _moves.all_steps(counts, space.floors, space.capacities, most)
    return rows, values, _moves.cheapest_walk(weights[:, None] * values, steps, counts)


def _over_candidates(
    objectives: list[Objective], weights: FloatArray, most: int, rng: Rng, show: Callable[[int], object]
) -> tuple[IntArray, FloatArray, _moves.Walk]:
    """Search each hour, then improve the plan with neighbours of its deployments until no neighbour helps.

    Returned are the deployments considered, their values at each hour, and the cheapest walk, without a lower bound.
    """
    space = objectives[0].space
    rng = _validate.generator(rng)
    bests: list[IntArray] = []
    for done, objective in enumerate(objectives, 1):
        run = search_again(objective, bests[-1] if bests else None, rng=rng, restarts=2)
        bests.append(cast("IntArray", run.x))
        show(done)
    centres = [*bests, *_paths_between(bests, space)]
    pool: dict[tuple[int, ...], None] = {}
    values, cost = np.empty((len(objectives), 0)), np.inf
    for _ in range(MOST_ROUNDS):
        near = dict.fromkeys(tuple(row.tolist()) for x in centres for row in (x, *space.neighbours(x)))
        fresh = [row for row in near if row not in pool][: MOST_CANDIDATES - len(pool)]
        if not fresh:
            break
        pool |= dict.fromkeys(fresh)
        rows = np.array(list(pool))
        values = np.hstack([values, [objective.values(fresh) for objective in objectives]])
        counts = space.group_counts(rows)
        steps = _moves.some_steps(counts, most)
        walk = _moves.cheapest_walk(weights[:, None] * values, steps, counts)
        if walk.cost >= cost - 1e-12:
            break
        cost, centres = walk.cost, [*rows[walk.states], rows[np.argmin(weights @ values)]]
    return rows, values, walk._replace(bound=np.nan)


def _paths_between(bests: list[IntArray], space: DeploymentSpace) -> list[IntArray]:
    """Return the deployments on paths of single moves between the best deployments of consecutive hours."""
    result = []
    for k in range(len(bests)):
        way = list(bests[k])
        for left, taken in _moves_between(bests[k], bests[k - 1], space.city)[:-1]:
            way[way.index(left)] = taken
            result.append(space.canonical(way))
    return result


def _moves_between(before: IntArray, after: IntArray, city: City) -> list[tuple[int, int]]:
    """Return the old and the new site of each unit that moves, paired so that the distances are short, if known."""
    groups = city.twin_groups
    left, taken = list(before), list(after)
    for site in before:  # keep units in place where possible, or else at a twin site
        twin = next((other for other in taken if groups[other] == groups[site]), None)
        if twin is not None:
            left.remove(site)
            taken.remove(twin)
    if len(left) > 1 and city.site_locations is not None:
        from scipy.optimize import linear_sum_assignment

        distance = travel.great_circle_km if city.geographic else travel.plane_km
        _, order = linear_sum_assignment(distance(city.site_locations[left], city.site_locations[taken]))
        taken = [taken[k] for k in order]
    return list(zip(left, taken, strict=True))
