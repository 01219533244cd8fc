"""Plan a deployment for each hour of the day, with few units relocated between hours.

Given the city at each hour h with its call rate λ_h, `hourly_plan` looks for deployments x_h that minimise the mean over
all calls, Σ_h λ_h f_h(x_h) / Σ_h λ_h, where f_h is the objective in hour h as given by an evaluator, and at
most k units move from one hour to the next (and from the last to the first, if the day repeats).

Each hour is evaluated in steady state. The model ignores calls carried over from one hour to the next, and
the time that relocated units spend on the road. Moves with little gain are therefore not worthwhile: compare
with plans with fewer moves, and with `Plan.fixed_value`, the best value without moves.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from .. import _validate
from .._running.progress import bar
from ..errors import InputError
from ..evaluators.enumeration import CHUNK
from ..evaluators.metrics import metric_label
from ..evaluators.objective import Objective
from ..optimizers.deployments.swaps import AFFORDABLE, local_search
from . import _walk

MOST_STATES = 50_000  # all deployments of a fleet are evaluated up to this number
MOST_STEPS = 30_000_000
MOST_CANDIDATES = 4000
MOST_ROUNDS = 20


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
        Objective of each hour: mean response (min), unless another metric was chosen.
    weights : ndarray, shape (H,)
        Share of calls in each hour.
    moves : ndarray of int, shape (H,)
        Units that move at the start of each hour; for the first, from the last hour if the day repeats, else
        0.
    most_moves : int
        The limit k.
    value : float
        Mean of ``values`` over all calls.
    lower_bound : float
        Lower bound on the value of any plan within the limit; NaN if nothing is proven.
    fixed_sites : ndarray of int, shape (p,)
        Best deployment found for all hours together, without moves.
    fixed_value : float
        Its mean over all calls.
    free_value : float
        Mean over all calls if each hour has its own best deployment found, with unlimited moves.
    proven : bool
        Whether the plan, ``fixed_value`` and ``free_value`` are proven optimal.
    message : str
        Description of what was searched and what is proven.
    """

    labels: tuple
    sites: np.ndarray
    values: np.ndarray
    weights: np.ndarray
    moves: np.ndarray
    most_moves: int
    value: float
    lower_bound: float
    fixed_sites: np.ndarray
    fixed_value: float
    free_value: float
    proven: bool
    message: str
    objectives: tuple
    cyclic: bool

    def evaluation(self, k):
        """Return the full `Evaluation` of hour number ``k``, from 0."""
        k = _validate.whole_number(k, "k", 0, len(self.labels) - 1)
        return self.objectives[k].evaluation(self.sites[k])

    def to_frame(self):
        """Return one row per hour: calls per hour, value, number of moves, and the names of the sites."""
        import pandas as pd

        names = self.objectives[0].city.site_names
        return pd.DataFrame(
            {
                "hour": self.labels,
                "calls_per_hour": [o.city.total_rate for o in self.objectives],
                "value": self.values,
                "moves": self.moves,
                "sites": ["; ".join(names[site] for site in row) for row in self.sites],
            }
        )

    def changes(self):
        """Return one row per relocated unit: the hour at whose start it moves, its old and its new site.

        If several units move at once and the city has coordinates, they are paired to keep distances short.
        """
        import pandas as pd

        city = self.objectives[0].city
        rows = []
        for k, after in enumerate(self.sites):
            if self.moves[k]:
                gone, come = _difference(self.sites[k - 1], after, city)
                pairs = zip(gone, come, strict=True)
                rows += [(self.labels[k], city.site_names[a], city.site_names[b]) for a, b in pairs]
        return pd.DataFrame(rows, columns=["hour", "from", "to"])

    def __repr__(self):
        return (
            f"<Plan: {len(self.labels)} hours, at most {self.most_moves} moves between hours, "
            f"{int(self.moves.sum())} in all; "
            f"{metric_label(self.objectives[0].metric)} {self.value:.4g}, {self.fixed_value:.4g} without moves; {self.message}>"
        )


def hourly_plan(
    cities,
    units,
    moves,
    evaluator=None,
    *,
    metric="mean_response",
    cyclic=True,
    rng=0,
    progress=None,
    **options,
):
    """Plan a deployment for each hour, with at most ``moves`` units relocated between hours.

    Parameters
    ----------
    cities : mapping or sequence of City
        One city per hour, in order; the keys of a mapping are the labels (see
        `emsopt.calls.Demand.cities_by_hour`). All must have the same sites.
    units : int or DeploymentSpace
        Fleet size p, or the allowed deployments, the same for all hours.
    moves : int
        Maximum number of units that move between two hours, k.
    evaluator : {"exact", "approximate", "simulation"}, optional
        Default: exact for up to 12 units if all deployments of all hours can be evaluated in half a minute,
        else approximate.
    metric : str, tuple or mapping
        See `emsopt.evaluators.metrics`.
    cyclic : bool
        Whether the first hour follows the last, as in a day that repeats.
    rng : int or Generator
        For the random starts of a search.
    progress : bool or callable
        True shows a bar; a function is called with (hours evaluated, hours in all).
    **options
        Passed to the evaluator, such as ``capacity``.

    Returns
    -------
    Plan
        Optimal (`Plan.proven`) if all deployments could be evaluated at all hours, which is so for 40,000 deployments
        by the approximate evaluator and a day of 24 hours; then dynamic programming over all of them, with a branch
        and bound for the closed day, finds the best plan. Else the best plan over candidates: what a local search finds
        for each hour, their neighbours, and the neighbours of the plan until it gets no better.

    Raises
    ------
    InputError
        If the cities do not have the same sites, or the fleet does not fit them.

    Examples
    --------
    >>> import emsopt as eo
    >>> base = eo.datasets.grid_city(n_sites=6, units=2, rng=1)
    >>> plan = hourly_plan({"night": base.scaled(0.5), "day": base.scaled(2)}, 2, moves=1)
    >>> plan.proven, plan.value <= plan.fixed_value
    (True, True)
    """
    cities = dict(cities) if isinstance(cities, Mapping) else dict(enumerate(_sequence(cities)))
    _check_same_sites(cities)
    limit = _validate.whole_number(moves, "moves", low=0)
    objectives = [Objective(city, units, evaluator, metric, **options) for city in cities.values()]
    if evaluator is None and not _affordable(objectives):
        objectives = [Objective(city, units, "approximate", metric, **options) for city in cities.values()]
    if objectives[0].noisy:
        raise InputError(
            "`rng` must be a whole number if the evaluator is a simulation, to use the same calls for all deployments."
        )
    most = min(limit, objectives[0].units)
    weights = np.array([city.total_rate for city in cities.values()])
    weights /= weights.sum()
    with bar(progress, len(objectives), "hour") as show:
        if _affordable(objectives):
            found = _over_all(objectives, weights, most, cyclic, show)
        else:
            found = _over_candidates(objectives, weights, most, cyclic, rng, show)
    rows, values, walk, proven, message = found
    sites = rows[walk.states]
    constant = int(np.argmin(weights @ values))
    counts = _walk.group_counts(sites, objectives[0].city.twin_groups)
    moved = np.maximum(counts - np.roll(counts, 1, axis=0), 0).sum(axis=1)
    if not cyclic:
        moved[0] = 0
    return Plan(
        labels=tuple(cities),
        sites=sites,
        values=values[np.arange(len(weights)), walk.states],
        weights=weights,
        moves=moved,
        most_moves=limit,
        value=walk.cost,
        lower_bound=walk.bound if _affordable(objectives) else np.nan,
        fixed_sites=rows[constant],
        fixed_value=float((weights @ values)[constant]),
        free_value=float(weights @ values.min(axis=1)),
        proven=proven,
        message=message,
        objectives=tuple(objectives),
        cyclic=bool(cyclic),
    )


def _sequence(cities):
    from ..city.city import City

    listed = [] if isinstance(cities, (str, City)) or not np.iterable(cities) else list(cities)
    if not listed:
        msg = f"`cities` must be a sequence or mapping of at least one City, in order of the hours; got {cities!r}."
        raise InputError(msg)
    return listed


def _check_same_sites(cities):
    from ..city.city import City

    if not cities:
        raise InputError("`cities` is empty; at least one City is needed.")
    for label, city in cities.items():
        if not isinstance(city, City):
            raise InputError(f"`cities` must contain emsopt.City only; got {type(city).__name__} at {label!r}.")
    first = next(iter(cities.values()))
    for label, city in cities.items():
        same = city.site_names == first.site_names and np.array_equal(city.twin_groups, first.twin_groups)
        if not same:
            raise InputError(f"all hours must have the same sites in the same order; the sites of {label!r} differ.")


def _affordable(objectives):
    """Return whether all deployments can be evaluated at all hours, and all moves between them listed."""
    space = objectives[0].space
    places = int((space.capacities > space.floors).sum())
    steps = space.count * places * min(places, space.units)
    evaluations = space.count * len(objectives)
    return space.count <= MOST_STATES and steps <= MOST_STEPS and evaluations <= AFFORDABLE[objectives[0].evaluator]


def _over_all(objectives, weights, limit, cyclic, show):
    space = objectives[0].space
    rows = np.concatenate(list(space.chunks(CHUNK)))
    values = _table(objectives, rows, show)
    counts = _walk.group_counts(rows, space.city.twin_groups)
    steps = _walk.all_steps(counts, space.floors, space.capacities, limit)
    walk = _walk.cheapest_walk(weights[:, None] * values, steps, counts, closed=cyclic)
    proven = walk.cost - walk.bound <= 1e-6
    message = f"all {len(rows):,} deployments at all hours; " + (
        "proven optimal" if proven else f"proven within {walk.cost - walk.bound:.2g} of the optimum"
    )
    return rows, values, walk, proven, message


def _over_candidates(objectives, weights, limit, cyclic, rng, show):
    """Search each hour, then improve the plan with neighbours of its deployments until none helps."""
    space = objectives[0].space
    rng = _validate.generator(rng)
    bests, before = [], None
    for done, objective in enumerate(objectives, 1):
        run = local_search(objective, rng=rng, restarts=2)
        if before is not None:
            run = min(run, local_search(objective, starts=[before]), key=lambda r: r.fun)
        before = run.x
        bests.append(run.x)
        show(done)
    pool, values = np.empty((0, space.units), dtype=np.intp), np.empty((len(objectives), 0))
    centres, walk = _unique([*bests, *_between(bests, space, cyclic)]), None
    for _ in range(MOST_ROUNDS):
        new = _unique([row for x in centres for row in (x, *space.neighbours(x))])
        fresh = _unseen(new, pool)[: MOST_CANDIDATES - len(pool)]
        if len(fresh) == 0:
            break
        pool = np.concatenate([pool, fresh])
        values = np.hstack([values, _table(objectives, fresh)])
        counts = _walk.group_counts(pool, space.city.twin_groups)
        steps = _walk.some_steps(counts, limit)
        better = _walk.cheapest_walk(weights[:, None] * values, steps, counts, closed=cyclic)
        if walk is not None and better.cost >= walk.cost - 1e-12:
            walk = better
            break
        walk = better
        constant = int(np.argmin(weights @ values))
        centres = _unique([*pool[walk.states], pool[constant]])
    message = f"best over {len(pool):,} candidates of {space.count:,} deployments; not proven"
    return pool, values, walk, False, message


def _table(objectives, rows, show=None):
    """Return the value of each deployment at each hour, shape (H, K)."""
    values = np.empty((len(objectives), len(rows)))
    for hour, objective in enumerate(objectives):
        for k in range(0, len(rows), CHUNK):
            values[hour, k : k + CHUNK] = objective.values(rows[k : k + CHUNK])
        if show is not None:
            show(hour + 1)
    return values


def _between(bests, space, cyclic):
    """Return the intermediate deployments, one move apart, between the best ones of consecutive hours."""
    result = []
    for x, y in zip(bests if cyclic else bests[1:], np.roll(bests, 1, axis=0)[0 if cyclic else 1 :], strict=True):
        gone, come = _difference(x, y, space.city)
        way = list(x)
        for a, b in zip(gone[:-1], come[:-1], strict=True):
            way[way.index(a)] = b
            result.append(space.canonical(way))
    return result


def _difference(before, after, city):
    """Return the paired sites that lose and gain a unit, shape (m,) each."""
    groups = city.twin_groups
    lost, gained = list(before), list(after)
    for site in before:  # keep units in place where possible, or else at a twin site
        twin = next((other for other in gained if groups[other] == groups[site]), None)
        if twin is not None:
            lost.remove(site)
            gained.remove(twin)
    if len(lost) > 1 and city.site_locations is not None:
        from scipy.optimize import linear_sum_assignment

        from ..city.travel import great_circle_km, plane_km

        distance = great_circle_km if city.geographic else plane_km
        _, order = linear_sum_assignment(distance(city.site_locations[lost], city.site_locations[gained]))
        gained = [gained[k] for k in order]
    return np.array(lost, dtype=np.intp), np.array(gained, dtype=np.intp)


def _unique(rows):
    return np.array(list(dict.fromkeys(tuple(map(int, row)) for row in rows)), dtype=np.intp)


def _unseen(rows, pool):
    known = set(map(tuple, pool.tolist()))
    return np.array([row for row in rows if tuple(row.tolist()) not in known], dtype=np.intp).reshape(-1, rows.shape[1])
