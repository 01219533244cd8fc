r"""Swap local search, and `best_deployment`, which enumerates all deployments if affordable and searches otherwise.

A step of `local_search` makes the relocation of one unit that improves most, and a step of `LocalSearch` the first one
found that improves. A descent ends if no single relocation improves. The result is not proven optimal.

`LocalSearchPlus` orders the swaps by the expected cost if units were busy independently of each other,

.. math:: \sum_j w_j \sum_k (1 - ρ) ρ^k c_{j(k)}

j(k) is the unit that atom j prefers after k others, w_j its share of the demand, c the costs of the objective and ρ the
load of a unit. This is the objective of the reliability p-median problem of Snyder and Daskin (2005), and for ρ = 0
that of the p-median problem, which orders swaps much worse.

References
----------
Snyder, L. V. and Daskin, M. S. (2005). Reliability models for facility location: the expected failure cost case.
    Transportation Science 39, 400-416.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numba import njit

from ..._running.loop import ShowProgress, progress_bar
from ...city.deployment_space import DeploymentSpace, check_sites
from ...errors import _validate
from ...errors._types import FloatArray, IntArray, Progress, Rng, Sites
from ...evaluators.enumeration import enumerate_objective
from ...evaluators.median import p_median
from ...evaluators.metrics import is_mean
from ...evaluators.objective import Objective
from ..result import Run
from ._base import Optimizer

RESTARTS, CLASSICAL_STARTS = 8, 2  # random starts of a search, and starts by classical models
MAX_SWAPS = 100  # swaps tried around a deployment before it counts as a local optimum
KICK_SIZES = 3  # the swaps made at once to leave it are 2 to 1 + KICK_SIZES
ATTEMPTS = 10  # tries to leave a local optimum for a deployment not yet asked for; each try makes one more swap
# Enumerations up to this many deployments take at most about half a minute on two cores.
MAX_ENUMERATED = {"approximate": 1_000_000, "exact": 20_000, "simulation": 200}
MAX_LOAD, MIN_PROBABILITY = 0.95, 1e-3  # bounds on ρ, and on the probability ρ^k beyond which units are left out


def local_search(
    objective: Objective,
    *,
    starts: Sequence[Sites] | None = None,
    restarts: int = RESTARTS,
    budget: int | None = None,
    rng: Rng = None,
    progress: Progress = False,
) -> Run:
    """Descend from several start deployments, relocating one unit at a time.

    Noisy objectives mislead the search: fix the simulation's ``rng``.

    Parameters
    ----------
    starts : sequence of array_like, optional
        Deployments to start from. Default: the p-median deployment, all units at the open sites with the shortest mean
        response time, and ``restarts`` random ones.
    restarts : int
        Number of random starts, if ``starts`` is omitted.
    budget : int, optional
        Stop after the step that reaches this number of evaluations. A step evaluates all neighbours of a deployment
        and may therefore exceed the number.
    progress : bool or callable
        True shows a bar; a function is called with (starts done, starts in all).

    Examples
    --------
    >>> import emsopt as eo
    >>> objective = eo.Objective(eo.datasets.grid_city(n_sites=6, units=2, rng=1), 2)
    >>> eo.optimizers.local_search(objective, restarts=2, rng=0).x.tolist()
    [2, 4]
    """
    number = CLASSICAL_STARTS + _validate.whole_number(restarts, "restarts", low=0) if starts is None else len(starts)
    with progress_bar(progress, number, "start") as show:
        if starts is None:
            chosen = _make_starts(objective.space, restarts, rng, show)
        else:
            chosen = [objective.space.canonical(check_sites(objective.city, start)) for start in starts]
        return _descend(objective, chosen, budget, show)


def _make_starts(space: DeploymentSpace, restarts: int, rng: Rng, show: ShowProgress) -> list[IntArray]:
    """Return the start deployments of `local_search`, (p,) each: two by classical models, and some random ones."""
    show(0, "p-median deployment to start from")
    return [*_classical_starts(space), *(space.sample(restarts, rng=rng) if restarts else ())]


def _descend(objective: Objective, starts: list[IntArray], budget: int | None, show: ShowProgress) -> Run:
    """Descend from each start by the best relocation of a unit, within a budget of evaluations; return the run."""
    space, before = objective.space, objective.evaluations
    limit = np.inf if budget is None else _validate.whole_number(budget, "budget")
    best, best_value, rows = starts[0], np.inf, []
    visited: set[tuple[int, ...]] = set()

    def report(done: int, best: float) -> None:
        show(done, f"{objective.evaluations - before:,} deployments, best {best:.4g}")

    for number, start in enumerate(starts, 1):
        x, value = start, objective(start)
        while tuple(x) not in visited and objective.evaluations - before < limit:  # from there it ends as it did
            visited.add(tuple(x))
            report(number - 1, min(value, best_value))  # in each step, as it may take long; the caller may end it here
            neighbours = space.neighbours(x)
            values = objective.values(neighbours) if len(neighbours) else np.array([np.inf])
            k = values.argmin()
            if values[k] >= value - 1e-12:  # rounding must not make two deployments swap for ever
                break
            x, value = neighbours[k], values[k]
            rows.append((objective.evaluations - before, min(value, best_value)))
        if value < best_value:
            best, best_value = x, value
        rows.append((objective.evaluations - before, best_value))
        report(number, best_value)
        if objective.evaluations - before >= limit:
            break
    used = objective.evaluations - before
    message = "no single move improves it" if used < limit else "stopped when the budget was used up"
    history = pd.DataFrame(rows, columns=["evaluations", "best"])
    return Run(best, float(best_value), used, message, history, best, float(best_value))


class LocalSearch(Optimizer):
    """Swap local search through ask / tell: move to the first better neighbour, restart in a local optimum.

    The first descents begin at the p-median deployment and at the open sites with the shortest mean response times,
    others at random. With noise, a new value is compared with a single earlier one, which misleads the search.

    Examples
    --------
    >>> import emsopt as eo
    >>> objective = eo.Objective(eo.datasets.grid_city(n_sites=6, units=2, rng=1), 2)
    >>> len(eo.optimizers.LocalSearch(objective, rng=0).ask())
    2
    """

    def __init__(self, objective: Objective, **options: Any) -> None:
        super().__init__(objective, **options)
        self._starts = [self.space.canonical(start) for start in _classical_starts(self.space)]
        self._value, self._neighbours = np.inf, list[IntArray]()

    def _propose(self) -> IntArray:
        while self._neighbours:
            sites = self._neighbours.pop()
            if self.is_free(sites):
                return sites
            known = self.taken[tuple(sites.tolist())]
            if known is not None:
                self._learn(sites, known)
        self._value = np.inf  # a local optimum: any deployment is better, so that the search goes on from a random one
        return self._starts.pop(0) if self._starts else self.draw()

    def _learn(self, sites: IntArray, value: float) -> None:
        if value < self._value:
            self._value = value
            self._neighbours = list(self.rng.permutation(self.space.neighbours(sites)))


def draw_neighbour(space: DeploymentSpace, sites: IntArray, rng: np.random.Generator) -> IntArray:
    """Return a deployment, (p,), in canonical form after one unit moved at random, or ``sites`` if none can move."""
    groups, counts = space.city.twin_groups, space.group_counts(sites)
    movable = (counts > space.floors)[groups[sites]]
    free = (counts < space.capacities)[groups]
    moves = np.argwhere(movable[:, None] & free & (groups[sites][:, None] != groups))  # between twins nothing changes
    if len(moves) == 0:
        return sites
    unit, site = moves[rng.integers(len(moves))]
    moved = sites.copy()
    moved[unit] = site
    return space.canonical(moved)


def _classical_starts(space: DeploymentSpace) -> list[IntArray]:
    """Return two deployments, (p,) each: the p-median, and units at the sites with the shortest mean response time."""
    city = space.city
    places = np.repeat(np.arange(city.n_sites), space.site_capacities - space.site_floors)
    central = places[np.argsort((city.response_times @ city.demand_shares)[places], kind="stable")]
    crowd = np.r_[space.pinned, central[: space.units - len(space.pinned)]].astype(int)
    return [p_median(city, space).sites, space.canonical(crowd)]


def enumeration_limit(objective: Objective) -> int:
    """Return the largest number of deployments up to which `best_deployment` enumerates them instead of searching."""
    most = MAX_ENUMERATED[objective.evaluator]
    return most if is_mean(objective.metric) else min(most, 200_000)  # other metrics take 0.1 ms or more for each


def best_deployment(objective: Objective, *, rng: Rng = None, progress: Progress = False) -> Run:
    """Find the best deployment: by enumeration if there are few enough, else by local search.

    `local_search` runs with the approximate evaluator. If the objective has another one, a second local search with
    that one starts from the result.

    Parameters
    ----------
    progress : bool or callable
        True shows a bar; a function is called with (done, total): deployments of an enumeration, or starts of both
        searches.

    Returns
    -------
    Run
        ``message`` says whether the optimum is proven. Of two searches, ``nfev`` and ``history`` are the second's.

    Examples
    --------
    >>> import emsopt as eo
    >>> objective = eo.Objective(eo.datasets.grid_city(n_sites=6, units=2, rng=1), 2)
    >>> run = eo.optimizers.best_deployment(objective)
    >>> run.x.tolist(), run.nfev
    ([2, 4], 15)
    """
    _validate.instance(objective, "objective", Objective, "emsopt.Objective")
    space = objective.space
    if space.count <= enumeration_limit(objective):
        everything = enumerate_objective(objective, progress=progress)
        evaluated, value = len(everything.values), float(everything.values.min())
        objective.evaluations += evaluated
        history = pd.DataFrame({"evaluations": [evaluated], "best": [value]})
        sites = everything.best_sites
        return Run(sites, value, evaluated, "proven by enumeration", history, sites, value)
    guided = objective.evaluator != "approximate"
    number = CLASSICAL_STARTS + RESTARTS
    with progress_bar(progress, number + guided, "start") as show:
        starts = _make_starts(space, RESTARTS, rng, show)
        if guided:
            options = {name: value for name, value in objective.options.items() if name == "capacity"}
            guide = Objective(space.city, space, "approximate", objective.metric, **options)
            starts = [space.canonical(_descend(guide, starts, None, show).x)]
        return _descend(objective, starts, None, lambda done, note="", total=None: show(done + number * guided, note))


class LocalSearchPlus(Optimizer):
    """Swap local search that tries the most promising swaps first and leaves local optima by random kicks.

    The first deployment is the p-median, improved by swaps while they lower the estimated cost (`expected_changes`).
    Swaps are tried in the order of this estimate, and the first better deployment is the next centre. If none of the
    first 100 is better, the search goes on after two to four random promising swaps of the best deployment.

    This method, which is ours, takes any metric. Noise misleads it as it does `LocalSearch`.
    """

    def __init__(self, objective: Objective, **options: Any) -> None:
        super().__init__(objective, **options)
        self._estimate = expected_change_inputs(objective)
        # the estimate takes no evaluation, so descend by it first
        self._starts = [self.space.canonical(self._descend_estimate(p_median(self.space.city, self.space).sites))]
        self._value, self._kicks = np.inf, 1  # of the deployment around which the search goes on
        self._centre: IntArray | None = None
        self._around: list[IntArray] = []

    def _promising_swaps(self, counts: IntArray) -> tuple[IntArray, FloatArray]:
        """Return the best swaps, (k, 2) twin groups, and the changes of the estimated cost, (k,), ascending."""
        change = expected_changes(self._estimate, counts)
        gives, takes = self.space.swappable_groups(counts)
        change = change[np.ix_(gives, takes)]
        change[gives[:, None] == takes] = np.inf  # a swap within a group changes nothing
        some = np.argsort(change, axis=None, kind="stable")[:MAX_SWAPS]
        some = some[np.isfinite(change.flat[some])]  # fewer than MAX_SWAPS swaps may exist
        return np.column_stack([gives[some // len(takes)], takes[some % len(takes)]]), change.flat[some]

    def _descend_estimate(self, sites: IntArray) -> IntArray:
        """Improve a deployment by the swap that lowers the estimate most, until none lowers it; return the result."""
        counts = self.space.group_counts(sites)
        while True:
            swaps, changes = self._promising_swaps(counts)
            if not len(swaps) or changes[0] > -1e-12:
                return self.space.deployment(counts)
            counts = _swap_units(counts, swaps[0])

    def _propose(self) -> IntArray:
        if self._starts:
            return self._starts.pop(0)
        if self._centre is None:
            return self.draw()
        while self._around:
            sites = self.space.deployment(_swap_units(self._centre, self._around.pop(0)))
            if self.is_free(sites):
                return sites
        return self._kick()

    def _kick(self) -> IntArray:
        """Make some of the most promising swaps, at random, from the best deployment; return the result, (p,)."""
        self._value = np.inf
        for more in range(ATTEMPTS):
            counts = self.space.group_counts(self.best[0])
            for _ in range(1 + self._kicks + more):
                swaps = self._promising_swaps(counts)[0]
                counts = _swap_units(counts, swaps[self.rng.integers(len(swaps))]) if len(swaps) else counts
            sites = self.space.deployment(counts)
            if self.is_free(sites):
                break
        self._kicks = self._kicks % KICK_SIZES + 1  # 2, 3, 4 swaps, then 2 again
        return sites

    def _learn(self, sites: IntArray, value: float) -> None:
        if value < self._value:
            if value <= min(self.values):
                self._kicks = 1  # after a new best, small kicks first
            self._value, self._centre = value, self.space.group_counts(sites)
            self._around = list(self._promising_swaps(self._centre)[0])


def _swap_units(counts: IntArray, swap: IntArray) -> IntArray:
    """Return the units in each twin group, (G,), after one moved from the first to the second group of ``swap``."""
    moved = counts.copy()
    moved[swap] += [-1, 1]
    return moved


class EstimateInput(NamedTuple):
    """Input of `expected_changes`, the estimate of how swaps change the expected cost.

    ``groups``, (M, G), lists the twin groups by the preference of each atom, and ``costs``, (M, G), their costs, times
    the atom's share of the demand; ``shares``, (R,), are the probabilities (1 - ρ) ρ^k.
    """

    groups: IntArray
    costs: FloatArray
    shares: FloatArray


def expected_change_inputs(objective: Objective) -> EstimateInput:
    """Return the input of `expected_changes` for an objective."""
    city, units = objective.city, objective.units
    first_site = np.unique(city.twin_groups, return_index=True)[1]
    groups = np.ascontiguousarray(np.argsort(city.preference_ranks[first_site], axis=0).T)
    costs = np.take_along_axis(objective.costs[first_site].T, groups, axis=1) * city.demand_shares[:, None]
    load = min(city.offered_load(units), MAX_LOAD)
    depth = np.clip(int(np.ceil(np.log(MIN_PROBABILITY) / np.log(load))), 1, units)
    return EstimateInput(groups, costs, (1 - load) * load ** np.arange(depth))


@njit(cache=True, nogil=True)
def _list_first_units(
    groups: IntArray, costs: FloatArray, counts: IntArray, j: int, unit: IntArray, paid: FloatArray
) -> tuple[int, int]:
    """Fill ``unit``, ``paid`` with group and cost of the units atom j prefers; return how many units and groups."""
    n = last = 0
    while n < len(unit) and last < len(counts):
        for _ in range(min(counts[groups[j, last]], len(unit) - n)):
            unit[n], paid[n] = groups[j, last], costs[j, last]
            n += 1
        last += 1
    return n, last


@njit(cache=True, nogil=True)
def _sum_shifts(q: FloatArray, paid: FloatArray, n: int, later: FloatArray, sooner: FloatArray) -> None:
    """Fill ``later`` and ``sooner`` with the changes of the cost if the first k units move one place down, or up."""
    for k in range(n):
        later[k + 1] = later[k] + ((q[k + 1] - q[k]) * paid[k] if k + 1 < len(q) else 0.0)
        sooner[k + 1] = sooner[k] + ((q[k - 1] - q[k]) * paid[k] if k else 0.0)


@njit(cache=True, nogil=True)
def expected_changes(data: EstimateInput, counts: IntArray) -> FloatArray:
    """Return the change of expected cost, (G, G), if a unit moves from group g to another, h, at ``counts``, (G,)."""
    groups, costs = data.groups, data.costs
    (M, G), R = groups.shape, len(data.shares)
    q = np.append(data.shares, 0.0)  # a unit beyond the last place counts for nothing
    change, leave, enter = np.zeros((G, G)), np.zeros(G), np.zeros(G)
    unit, paid = np.empty(R + 1, np.int64), np.empty(R + 1)  # one more than counts: it moves up if another leaves
    later, sooner, stands = np.zeros(R + 2), np.zeros(R + 2), np.zeros(R + 1, np.bool_)
    for j in range(M):
        n, last = _list_first_units(groups, costs, counts, j, unit, paid)
        _sum_shifts(q, paid, n, later, sooner)
        top = min(n, R)
        for a in range(top):
            stands[a] = a + 1 == n or unit[a + 1] != unit[a]  # the last of a group's units for all, at equal cost
            if stands[a]:
                leave[unit[a]] += sooner[n] - sooner[a + 1] - q[a] * paid[a]  # those behind come one place sooner
        b = 0
        for r in range(last):
            h, cost = groups[j, r], costs[j, r]
            entry = q[b] * cost + later[top] - later[b] if b < R else 0.0  # h at b, those behind later
            enter[h] += entry
            for a in range(top):
                if not stands[a]:
                    continue
                gone = sooner[n] - sooner[a + 1] - q[a] * paid[a]
                if b <= a:  # only units between the two places are shifted, by one
                    both = q[b] * cost + later[a] - later[b] - q[a] * paid[a]
                else:
                    both = q[b - 1] * cost + sooner[b] - sooner[a + 1] - q[a] * paid[a]
                change[unit[a], h] += both - gone - entry  # less what is added below for each move alone
            b = min(b + counts[h], n)
    return change + (leave.reshape(-1, 1) + enter)
