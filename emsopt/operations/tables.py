"""Compliance tables: where a given number of free units should wait."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _validate
from .._running.progress import bar
from ..city.deployment_space import check_sites
from .objective import late_from_home
from .policy import Policy
from .simulation import simulate
from .system import System

if TYPE_CHECKING:
    from .._types import FloatArray, Progress, Rng, Sites


def best_table(
    system: System,
    sites: Sites,
    policy: Policy | None = None,
    *,
    steps: int = 300,
    calls: int = 50_000,
    rng: Rng = None,
    progress: Progress = False,
    **options: Any,
) -> Policy:
    """Search a compliance table by local search over its entries, on the same calls for all tables.

    The start is nested: from the deployment, the site that adds least to the expected late share of units at home, each
    of them busy with probability ``policy.busy``, is left out again and again. A step replaces a site by another in one
    entry, or in this entry and all larger ones, and is kept if the simulated late share does not rise. The search is
    this project's own.

    Parameters
    ----------
    system : System
    sites : array_like of int, shape (p,)
        Site of each unit at the start, the largest entry of the first table.
    policy : Policy, optional
        Its other rules are kept, and its table, if any, is the start. Default: ``Policy(moves=0)``, by which only a
        unit that becomes free is sent to another site.
    steps : int
        Simulations after the first; 0 returns the start.
    calls : int
        Of each simulation. With few calls the search fits their noise.
    rng : numpy.random.Generator or seed, optional
    progress : bool or callable
        True shows a bar; a function is called with (steps done, steps).
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
    seed, p = int(rng.integers(2**62)), len(first)

    def ruled(table: list[list[int]]) -> Policy:
        return replace(policy, table=tuple(tuple(entry) for entry in table))

    def value(table: list[list[int]]) -> float:
        return simulate(system, first, policy=ruled(table), calls=calls, rng=seed, **options).late_share

    best = [
        list(entry)
        for entry in policy.table or _nested(late_from_home(system), system.city.demand_shares, first, policy.busy)
    ]
    least = value(best)
    with bar(progress, steps, "step") as show:
        for step in range(steps):
            level, new = int(rng.integers(p)), int(rng.integers(system.city.n_sites))
            old, above = int(rng.choice(best[level])), p if rng.random() < 0.5 else level + 1
            tried = [list(entry) for entry in best]
            for entry in tried[level:above]:
                if old in entry:
                    entry[entry.index(old)] = new
            found = value(tried)
            if found <= least:
                best, least = tried, found
            show(step + 1)
    return ruled(best)


def _nested(costs: FloatArray, shares: FloatArray, sites: Sites, busy: float) -> list[list[int]]:
    """Return the table whose entry k - 1 is entry k less the site whose loss costs least; the last one is ``sites``."""

    def expected(chosen: list[int]) -> float:
        chance = (1 - busy) * busy ** np.arange(len(chosen))  # that the r nearest units are busy and the next is not
        ordered = np.sort(costs[chosen], axis=0)
        return float(chance @ ordered @ shares + (1 - chance.sum()) * costs.max())

    table = [[int(site) for site in sites]]
    while len(table[0]) > 1:
        fewer = [table[0][:r] + table[0][r + 1 :] for r in range(len(table[0]))]
        table.insert(0, min(fewer, key=expected))
    return table
