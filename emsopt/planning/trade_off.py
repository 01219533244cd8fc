r"""Trade-off fronts: the deployments that no other one beats in every metric.

A deployment dominates another if it is at least as good in every metric and better in one. The front holds the
deployments that none dominates; of several with equal values it holds one. Its hypervolume is the volume that it
dominates below a reference point, the usual measure of how good a front is (Zitzler and Thiele 1999).

If there are few enough deployments, all are evaluated and the front is exact. Otherwise a Pareto local search (Paquete,
Chiarandini and Stützle 2004) looks for it. It starts from deployments that are best by an estimate, for several weights
of the metrics, as `emsopt.optimizers.LocalSearchPlus` does. In each step it draws random weights, takes the deployment
of the front that is best by the weighted Chebyshev distance and has untried swaps, and tries some of these: the most
promising by the estimate with these weights, and random ones. Once all are tried it walks away by random swaps. The
estimate of a metric that is not a mean over calls is that of mean response.

References
----------
Paquete, L., Chiarandini, M. and Stützle, T. (2004). Pareto local optimum sets in the biobjective traveling salesman
    problem: an experimental study. Metaheuristics for Multiobjective Optimisation, 177-199. Springer.
Zitzler, E. and Thiele, L. (1999). Multiobjective evolutionary algorithms: a comparative case study and the strength
    Pareto approach. IEEE Transactions on Evolutionary Computation 3(4), 257-271.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _validate
from .._running.progress import bar
from ..errors import InputError
from ..evaluators._expected_cost import Preferred, expected_changes, preferred
from ..evaluators.median import p_median
from ..evaluators.metrics import is_mean, metric_function
from ..evaluators.objective import Objective
from ..optimizers.deployments.swaps import affordable, random_neighbour

if TYPE_CHECKING:
    import pandas as pd

    from .._types import ArrayLike, BoolArray, FloatArray, IntArray, Progress, Rng
    from ..city.city import City
    from ..city.deployment_space import DeploymentSpace
    from ..evaluators.evaluation import Evaluation
    from ..evaluators.metrics import Metric

BUDGET = 5000  # evaluations of a search, unless another number is given
GUIDED, RANDOM = 8, 8  # swaps tried in a step: the most promising ones, and random ones
STARTS = 10  # weights of the metrics for which a start is computed, besides the metrics alone
CHUNK = 256  # deployments between two signs of progress
DIGITS = 9  # decimals that count when values are compared; the others are rounding


@dataclass(frozen=True, eq=False, repr=False)
class Front:
    """Deployments that trade metrics off against each other, none of them worse than another in every metric.

    Attributes
    ----------
    objectives : tuple of Objective
        One per metric, m in all.
    sites : ndarray of int, shape (k, p)
        Deployments of the front, in ascending order of the first metric.
    values : ndarray, shape (k, m)
        Their values; smaller is better.
    exact : bool
        Whether all deployments were evaluated. Otherwise the front is what a search found.
    evaluations : int
        Number of deployments that were evaluated by all metrics.

    Examples
    --------
    >>> import emsopt as eo
    >>> city = eo.datasets.grid_city(n_sites=8, units=3, rng=1)
    >>> found = eo.planning.front(city, 3, ["mean_response", ("late", 5.0)])
    >>> found.exact, found.evaluations, found.values.shape[1]
    (True, 56, 2)
    """

    objectives: tuple[Objective, ...]
    sites: IntArray
    values: FloatArray
    exact: bool
    evaluations: int

    @property
    def labels(self) -> tuple[str, ...]:
        """Labels of the metrics, with their units."""
        return tuple(objective.label for objective in self.objectives)

    @property
    def reference(self) -> FloatArray:
        """The worst value of each metric on the front, and a tenth of the metric's range beyond it, shape (m,)."""
        return self.values.max(axis=0) + 0.1 * np.ptp(self.values, axis=0)

    def hypervolume(self, reference: ArrayLike | None = None) -> float:
        """Return the hypervolume of the front below ``reference``, shape (m,), by default its own `reference`."""
        return hypervolume(self.values, self.reference if reference is None else reference)

    def evaluation(self, k: int) -> Evaluation:
        """Return the full `Evaluation` of deployment ``k`` of the front."""
        return self.objectives[0].evaluation(self.sites[_validate.whole_number(k, "k", 0, len(self.sites) - 1)])

    def to_frame(self) -> pd.DataFrame:
        """Return one row per deployment: a column for each metric, and the names of the sites."""
        import pandas as pd

        names = self.objectives[0].city.site_names
        frame = pd.DataFrame(self.values, columns=list(self.labels))
        return frame.assign(sites=[", ".join(names[site] for site in row) for row in self.sites])

    def __repr__(self) -> str:
        how = "exact" if self.exact else "found by a search"
        return (
            f"<Front: {len(self.sites)} deployment{'s'[: len(self.sites) != 1]}, {how}, {self.evaluations:,} "
            f"evaluated; {'; '.join(self.labels)}>"
        )


def front(
    city: City,
    units: int | DeploymentSpace,
    metrics: Sequence[Metric],
    evaluator: str | None = None,
    *,
    budget: int | None = None,
    rng: Rng = None,
    progress: Progress = False,
    **options: Any,
) -> Front:
    """Find the deployments that trade metrics off against each other.

    Parameters
    ----------
    city, units, evaluator, **options
        As for `Objective`.
    metrics : sequence
        Two or more metrics of `Objective`. More than three make large fronts.
    budget : int, optional
        Number of deployments to evaluate. If it is at least the number of all deployments, all are evaluated. Default:
        all if they are few enough for `best_deployment` to enumerate them (at most 200,000 if a metric is not a mean
        over calls), else 5,000.
    rng : int or Generator, optional
        For the search.
    progress : bool or callable
        True shows a bar; a function is called with (deployments evaluated, deployments to evaluate).

    Returns
    -------
    Front

    Raises
    ------
    InputError
        If there are fewer than two metrics, or one is unknown.

    Notes
    -----
    On St. Paul the search has over 99 % of the exact front's hypervolume after 300 of 9,691 deployments. On random
    cities with 50 and 200 sites it has 86 to 94 % after 2,000 of what it reaches with ten times as many: raise the
    budget there (``benchmarks/RESULTS.md``). If a metric is not a mean over calls, every deployment takes a whole
    evaluation, from which all metrics are computed. A simulation without a fixed ``rng`` gets one seed for all
    deployments.

    Examples
    --------
    >>> import emsopt as eo
    >>> city = eo.datasets.grid_city(n_sites=8, units=3, rng=1)
    >>> districts = city.response_times.argmin(axis=0)  # the nearest site names the district
    >>> found = eo.planning.front(city, 3, ["mean_response", ("worst", districts)], "approximate", budget=30, rng=0)
    >>> found.exact, found.evaluations
    (False, 30)
    """
    if isinstance(metrics, (str, tuple)) or not isinstance(metrics, Sequence) or len(metrics) < 2:
        raise InputError(f"`metrics` must be a list of at least two metrics; got {_validate.shown(metrics)}.")
    objectives = [Objective(city, units, evaluator, metric, **options) for metric in metrics]
    first, generator = objectives[0], _validate.generator(rng)
    if first.noisy:
        seed = int(generator.integers(2**63))
        objectives = [objective.seeded(seed) for objective in objectives]
    total = first.space.count
    limit = total if budget is None and total <= min(map(affordable, objectives)) else BUDGET
    limit = min(limit if budget is None else _validate.whole_number(budget, "budget"), total)
    known = _Known(objectives, limit)
    with bar(progress, limit, "deployment") as show:
        if limit == total:
            rows = first.space.listing()
            for start in range(0, total, CHUNK):
                known.evaluate(rows[start : start + CHUNK])
                show(known.evaluated)
        else:
            for _ in _search(known, generator):
                show(known.evaluated)
    order = np.lexsort(known.values.T[::-1])
    return Front(tuple(objectives), known.sites[order], known.values[order], limit == total, known.evaluated)


def non_dominated(values: FloatArray) -> BoolArray:
    """Return which rows of values, shape (K, m), no other row dominates, shape (K,); of equal rows the first.

    Values that agree to nine decimals are equal.
    """
    values = np.round(values, DIGITS)
    left, kept = np.lexsort(values.T[::-1]), []  # a row is dominated by, or equal to, earlier rows only
    while len(left):
        best = left[0]
        kept.append(best)
        left = left[(values[left] < values[best]).any(axis=1)]
    mask = np.zeros(len(values), bool)
    mask[kept] = True
    return mask


def hypervolume(values: ArrayLike, reference: ArrayLike) -> float:
    """Return the volume that points dominate below a reference point; smaller values are better.

    Parameters
    ----------
    values : array_like, shape (k, m)
        Points, also dominated ones; those that are not below the reference in every coordinate add nothing.
    reference : array_like, shape (m,)

    Returns
    -------
    float

    Notes
    -----
    The volume is cut into slabs along the last coordinate. Each is the area of the points below it times its height.
    For two metrics this takes O(k log k), for three O(k² log k), and for each further one k times as long.

    Examples
    --------
    >>> hypervolume([[1, 3], [2, 2], [3, 1]], [4, 4])
    6.0
    """
    points = _validate.real_array(values, "values", (None, None))
    corner = _validate.real_array(reference, "reference", (points.shape[1],))
    return _volume(points[(points < corner).all(axis=1)], corner)


def _volume(points: FloatArray, corner: FloatArray) -> float:
    """Return the volume that points below the corner dominate."""
    if not len(points):
        return 0.0
    points = points[np.argsort(points[:, -1], kind="stable")]
    heights = np.diff(np.r_[points[:, -1], corner[-1]])
    if len(corner) <= 2:
        widths = corner[0] - np.minimum.accumulate(points[:, 0]) if len(corner) == 2 else np.ones(len(points))
        return float(heights @ widths)
    return sum(
        height * _volume(points[: k + 1, :-1], corner[:-1]) for k, height in enumerate(heights.tolist()) if height
    )


class _Known:
    """What is known: the deployments evaluated so far, at most ``limit``, and the front of these with its values."""

    def __init__(self, objectives: Sequence[Objective], limit: int) -> None:
        self.objectives, self.limit, self.space = objectives, limit, objectives[0].space
        self.taken: set[tuple[int, ...]] = set()
        self.sites, self.values = np.empty((0, self.space.units), np.int64), np.empty((0, len(objectives)))
        self._value = _valuation(objectives)

    @property
    def evaluated(self) -> int:
        """Number of deployments evaluated."""
        return len(self.taken)

    @property
    def full(self) -> bool:
        """Whether no further deployment may be evaluated."""
        return self.evaluated >= self.limit

    def evaluate(self, rows: Sequence[IntArray] | IntArray) -> None:
        """Evaluate those of some canonical deployments that are new, as far as the limit allows."""
        new = [key for key in dict.fromkeys(tuple(row.tolist()) for row in rows) if key not in self.taken]
        new = new[: self.limit - self.evaluated]
        if new:
            self.taken.update(new)
            sites = np.array(new)
            self.sites = np.concatenate([self.sites, sites])
            self.values = np.concatenate([self.values, self._value(sites)])
            kept = non_dominated(self.values)
            self.sites, self.values = self.sites[kept], self.values[kept]


def _valuation(objectives: Sequence[Objective]) -> Callable[[IntArray], FloatArray]:
    """Return a function from deployments, shape (K, p), to their values, shape (K, m)."""
    if all(is_mean(objective.metric) for objective in objectives):
        return lambda rows: np.column_stack([objective.ready(rows) for objective in objectives])
    functions = [metric_function(objective.city, objective.metric) for objective in objectives]
    one = objectives[0].evaluation
    return lambda rows: np.array([[f(e) for f in functions] for e in map(one, rows)])


def _search(known: _Known, rng: np.random.Generator) -> Iterator[None]:
    """Evaluate deployments until no more are allowed; yield after each step. The module describes the steps."""
    space, m = known.space, len(known.objectives)
    models = [preferred(objective) for objective in known.objectives]
    weights = np.r_[np.eye(m), rng.dirichlet(np.ones(m), STARTS)]
    median = space.group_counts(p_median(space.city, space).sites)
    known.evaluate([space.deployment(median)])
    for row in weights:
        known.evaluate([space.deployment(_descended(space, models, row, median))])
        yield
    closed: set[tuple[int, ...]] = set()  # deployments around which everything is evaluated
    steps = 1  # of a random walk away from a front that is closed
    while not known.full:
        low, width = known.values.min(axis=0), np.maximum(np.ptp(known.values, axis=0), 1e-12)
        weight = rng.dirichlet(np.ones(m))
        distance = (weight * (known.values - low) / width).max(axis=1)
        is_open = [tuple(row.tolist()) not in closed for row in known.sites]
        if any(is_open):
            sites = known.sites[np.where(is_open, distance, np.inf).argmin()]
        else:  # a Pareto local optimum
            sites = known.sites[rng.integers(len(known.sites))]
            for _ in range(steps):
                sites = random_neighbour(space, sites, rng)
        tried = _untried(known, models, weight, space.group_counts(sites), rng)
        steps = 1 if tried else steps + 1
        if not tried:
            closed.add(tuple(sites.tolist()))
        known.evaluate([*tried, sites])
        yield


def _untried(
    known: _Known, models: list[Preferred], weight: FloatArray, counts: IntArray, rng: np.random.Generator
) -> list[IntArray]:
    """Return some deployments one swap away that are not evaluated yet: the most promising ones, and random ones."""
    space = known.space
    gives, takes = space.swaps(counts)
    change = _changes(models, weight, counts)[np.ix_(gives, takes)]
    allowed = np.flatnonzero(gives[:, None] != takes)
    promising = allowed[np.argsort(change.flat[allowed], kind="stable")]
    found: dict[tuple[int, ...], IntArray] = {}
    for order, most in ((promising, GUIDED), (rng.permutation(allowed), GUIDED + RANDOM)):
        for swap in order:
            if len(found) == most:
                break
            moved = counts.copy()
            moved[gives[swap // len(takes)]] -= 1
            moved[takes[swap % len(takes)]] += 1
            sites = space.deployment(moved)
            if tuple(sites.tolist()) not in known.taken:
                found[tuple(sites.tolist())] = sites
    return list(found.values())


def _descended(space: DeploymentSpace, models: list[Preferred], weight: FloatArray, counts: IntArray) -> IntArray:
    """Return the deployment that swaps reach, each with the greatest fall of the weighted estimate."""
    while True:
        gives, takes = space.swaps(counts)
        change = _changes(models, weight, counts)[np.ix_(gives, takes)]
        change[gives[:, None] == takes] = np.inf
        if not change.size or change.min() > -1e-12:
            return counts
        counts = counts.copy()
        counts[gives[change.argmin() // len(takes)]] -= 1
        counts[takes[change.argmin() % len(takes)]] += 1


def _changes(models: list[Preferred], weight: FloatArray, counts: IntArray) -> FloatArray:
    """Return the weighted changes of the estimates, in units of each estimate's mean cost, by swap, shape (G, G)."""
    total = np.zeros((len(counts),) * 2)
    for model, share in zip(models, weight, strict=True):
        total += share * expected_changes(model, counts) / max(float(model.costs.mean()), 1e-300)
    return total
