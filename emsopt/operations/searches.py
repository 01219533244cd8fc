"""Searches in operations: for deployments with few late calls, compliance tables, and offsets of dispatch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from .._running.checkpoint import array_summary
from .._running.loop import progress_bar
from .._running.parallel import map_rows
from ..city import City
from ..city.deployment_space import DeploymentSpace, check_sites
from ..errors import _validate
from ..errors._types import FloatArray, IntArray, Progress, Rng, Sites
from ..evaluators.evaluation import LATE_MIN
from ..evaluators.metrics import Metric
from ..evaluators.objective import Objective
from .policy import Policy
from .simulation import Operations, simulate
from .system import System

STEP_SDS_MIN = (0.3, 1.0, 3.0)  # standard deviations of changes, small to large, to cross plateaus


class OperationsObjective(Objective):
    """Function from a deployment to the share of calls that miss the target time of their priority, by simulation.

    Optimizers that need a cost matrix, such as "gp-pm", use that of `late_shares`.

    Parameters
    ----------
    system : System
    units : int or DeploymentSpace
        Fleet size p, or the deployments that a search may propose.
    rng : int or Generator, optional
        With a whole number every deployment meets the same calls, and a deployment always has the same value.
    **options
        For `simulate`, such as ``policy``, ``calls`` and ``shifts``.

    Examples
    --------
    >>> import emsopt as eo
    >>> system, sites = eo.datasets.load_auckland()
    >>> space = eo.DeploymentSpace(system.city, 16, colocation=5)
    >>> objective = eo.operations.OperationsObjective(system, space, calls=20_000, rng=0)
    >>> 0.4 < objective(sites) < 0.6
    True
    """

    def __init__(self, system: System, units: int | DeploymentSpace, *, rng: Any = None, **options: Any) -> None:
        _validate.instance(system, "system", System, "emsopt.operations.System")
        super().__init__(system.city, units, "simulation")
        self.system, self.metric, self.label = system, "late", "share of late calls"
        self.costs = late_shares(system)
        known = ("policy", "shifts", "capacity", "calls", "warmup")
        for name in options:
            _validate.choice(name, "options", known)
        # The summary is there for checkpoints: a search resumes only with the same system.
        what = [
            array_summary(system.minutes_to_place),
            array_summary(system.calls_by_hour),
            system.priorities,
            system.handover,
        ]
        self.options = options | {"rng": rng, "system": what}
        self.noisy = not isinstance(rng, (int, np.integer))

    @cached_property
    def value_function(self) -> Callable[..., FloatArray]:
        """Function that returns the values, shape (K,), of K deployments, shape (K, p), and counts no evaluation."""
        return partial(map_rows, lambda rows: [self.evaluation(sites).late_share for sites in rows])

    def evaluation(self, sites: Sites) -> Operations:  # type: ignore[override]
        """Return the full `Operations` of one deployment, without counting it in ``evaluations``."""
        return simulate(self.system, sites, **{k: v for k, v in self.options.items() if k != "system"})


def late_shares(system: System) -> FloatArray:
    """Return the share of the calls of each atom that a unit at each site reaches late, by mean times, shape (N, M)."""
    n, m = system.city.travel_times.shape
    late, turnout = np.zeros((n, m)), system.city.turnout_times[:, None]
    for priority in system.priorities:
        minutes = priority.delay + turnout + system.minutes_to_place[priority.mode, n : n + m, :n].T
        late += priority.share * (minutes >= priority.target)
    return late


def best_table(
    system: System,
    sites: Sites,
    policy: Policy | None = None,
    *,
    steps: int = 300,
    calls: int = 50_000,
    rng: Rng = None,
    **options: Any,
) -> Policy:
    """Find a compliance table by local search over its entries, with the same calls for all tables.

    The first table is nested: from the deployment, the site is removed repeatedly whose loss raises the expected late
    share least, if units are at home and busy with probability ``policy.busy``. A step replaces a site by another in
    one entry, or in this entry and all larger ones, and is kept if the simulated late share does not rise. The search
    is this project's own.

    Parameters
    ----------
    system : System
    sites : array_like of int, shape (p,)
        Site of each unit at the start, the largest entry of the first table.
    policy : Policy, optional
        Its other rules are kept, and its table, if any, is the start. Default: ``Policy(moves=0)``, by which only a
        unit that becomes free is sent to another site.
    steps : int
        Number of simulations after the first; with 0 the first table is returned.
    calls : int
        Number of calls of each simulation. With few calls the search fits their noise.
    rng : numpy.random.Generator or seed, optional
    **options
        For `simulate`, such as ``capacity``.

    Returns
    -------
    Policy
        With the table. Judge it by `compare` with another seed.

    Examples
    --------
    >>> import emsopt as eo
    >>> system, sites = eo.datasets.load_auckland()
    >>> table = best_table(system, sites, steps=5, calls=2_000, rng=0).table
    >>> [len(entry) for entry in table] == list(range(1, 17))
    True
    """
    _validate.instance(system, "system", System, "emsopt.operations.System")
    policy = _validate.instance(policy or Policy(moves=0), "policy", Policy, "emsopt.operations.Policy")
    steps, rng = _validate.whole_number(steps, "steps", 0), _validate.generator(rng)
    first = check_sites(system.city, sites)
    seed = int(rng.integers(2**62))

    def with_table(table: list[list[int]]) -> Policy:
        return replace(policy, table=tuple(tuple(entry) for entry in table))

    def value(table: list[list[int]]) -> float:
        return simulate(system, first, policy=with_table(table), calls=calls, rng=seed, **options).late_share

    nested = policy.table or _nested_table(late_shares(system), system.city.demand_shares, first, policy.busy)
    best = [list(entry) for entry in nested]
    least = value(best)
    for _ in range(steps):
        tried = _change_entry(best, system.city.n_sites, rng)
        found = value(tried)
        if found <= least:  # equal values too, to cross plateaus
            best, least = tried, found
    return with_table(best)


def _change_entry(table: list[list[int]], n_sites: int, rng: np.random.Generator) -> list[list[int]]:
    """Return a copy of a compliance table in which a random site of one entry, or also of larger ones, is replaced."""
    p = len(table)
    level, new = int(rng.integers(p)), int(rng.integers(n_sites))
    old, above = int(rng.choice(table[level])), p if rng.random() < 0.5 else level + 1
    tried = [list(entry) for entry in table]
    for entry in tried[level:above]:
        if old in entry:
            entry[entry.index(old)] = new
    return tried


def _nested_table(costs: FloatArray, shares: FloatArray, sites: Sites, busy: float) -> list[list[int]]:
    """Return the first table of `best_table`, from costs, shape (N, M), and demand shares, shape (M,)."""

    def expected_cost(chosen: list[int]) -> float:
        chance = (1 - busy) * busy ** np.arange(len(chosen))  # probability that r units are busy and the next is free
        ordered = np.sort(costs[chosen], axis=0)
        return float(chance @ ordered @ shares + (1 - chance.sum()) * costs.max())  # all busy: as the worst cost

    table = [[int(site) for site in sites]]
    while len(table[0]) > 1:
        fewer = [table[0][:r] + table[0][r + 1 :] for r in range(len(table[0]))]
        table.insert(0, min(fewer, key=expected_cost))
    return table


@dataclass(frozen=True, eq=False, repr=False)
class Offsets:
    """Minutes added to the response times of stations when the unit to send is chosen, found for one deployment.

    Attributes
    ----------
    sites, minutes : ndarray, shapes (p,) and (N,)
        The deployment, and the minutes added to the response times of each site, of mean 0 over the sites in use.
    value, value_without : float
        The metric with the offsets, and that of the first deployment if the closest unit is always sent.
    city : City
        The city with ``preference`` set to response times plus offsets.
    """

    sites: IntArray
    minutes: FloatArray
    value: float
    value_without: float
    city: City

    @property
    def gain(self) -> float:
        """Reduction of the metric by the offsets, as a fraction of the metric without them."""
        return 1 - self.value / self.value_without if self.value_without else 0.0

    def __repr__(self) -> str:
        return f"Offsets({self.value:.5g} instead of {self.value_without:.5g}: {100 * self.gain:.2f} % less)"


def best_offsets(
    city: City,
    sites: Sites,
    metric: Metric = ("late", LATE_MIN),
    *,
    steps: int = 700,
    moves: float = 0.0,
    rng: Rng = None,
    progress: Progress = False,
    **options: object,
) -> Offsets:
    """Find offsets of the sites in use that lower a metric of one deployment, by random search.

    A step changes one offset by a small, medium or large random amount, and is kept if the metric does not rise: the
    metric is constant nearly everywhere, as it changes only with an atom's order of preference.

    Parameters
    ----------
    city : City
        Its own ``preference`` is not used.
    sites : array_like of int, shape (p,)
    metric : str, tuple or mapping
        As for `Objective`.
    steps : int
        Number of evaluations after the first.
    moves : float
        Share of the steps that move a unit to an unused site instead, to search for the deployment as well.
    rng : numpy.random.Generator or seed, optional
    progress : bool or callable
        True shows a bar; a function is called with (steps done, steps).
    **options
        For `Objective`, such as ``evaluator`` and ``capacity``.

    Examples
    --------
    >>> import emsopt as eo
    >>> city = eo.City([2.0, 0.4], [[1, 5], [9, 5.5]], turnout_times=0, service_times=30)
    >>> best_offsets(city, [0, 1], "mean_response", steps=50, rng=0)
    Offsets(4.1033 instead of 4.3444: 5.55 % less)
    """
    sites = check_sites(city, sites)
    rng, steps = _validate.generator(rng), _validate.whole_number(steps, "steps")
    moves = _validate.finite_number(moves, "moves", 0, 1)

    def with_offsets(offsets: FloatArray) -> City:
        return city._with_arrays(preference=city.response_times + offsets[:, None])

    def value(sites: IntArray, offsets: FloatArray) -> float:
        city = with_offsets(offsets)
        space = DeploymentSpace(city, len(sites), colocation=True)
        return Objective(city, space, metric=metric, **options)(sites)  # type: ignore[arg-type]

    best = np.zeros(city.n_sites)
    first = least = value(sites, best)
    with progress_bar(progress, steps, "step") as show:
        for step in range(steps):
            tried, where = best.copy(), sites
            unused = np.setdiff1d(np.arange(city.n_sites), sites)
            if len(unused) and moves and rng.random() < moves:
                where, u, new = sites.copy(), rng.integers(len(sites)), rng.choice(unused)
                where[u], tried[new] = new, best[sites[u]]
                if sites[u] not in where:
                    tried[sites[u]] = 0  # a site without units has no offset
            else:
                tried[rng.choice(np.unique(sites))] += rng.choice(STEP_SDS_MIN) * rng.standard_normal()
            found = value(where, tried)
            if found <= least:  # equal values too, as the metric is constant nearly everywhere
                sites, best, least = where, tried, found
            show(step + 1)
    used = np.unique(sites)
    best[used] -= best[used].mean()  # an offset common to all sites changes no order
    return Offsets(sites, best, least, first, with_offsets(best))
