"""Dispatch that is not closest: minutes added to the response times of stations before they are compared.

Offsets change which deployment is best, so that both can be searched at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .. import _validate
from .._running.progress import bar
from ..city.deployment_space import DeploymentSpace, check_sites
from ..evaluators.objective import Objective

if TYPE_CHECKING:
    from .._types import FloatArray, IntArray, Progress, Rng, Sites
    from ..city import City
    from ..evaluators.metrics import Metric

STEPS_MIN = (0.3, 1.0, 3.0)  # standard deviations of the changes that are tried


@dataclass(frozen=True, eq=False, repr=False)
class Offsets:
    """Offsets found by `best_offsets`.

    Attributes
    ----------
    sites : ndarray of int, shape (p,)
        The deployment, which differs from that given only if ``moves`` are tried.
    minutes : ndarray, shape (N,)
        Added to the response times of each site; 0 where no unit is. Their mean over the sites in use is 0.
    value, value_without : float
        The metric with them, and of the deployment given with the closest unit always sent.
    city : City
        The city with ``preference`` set to response times plus offsets.

    Examples
    --------
    >>> import emsopt as eo
    >>> city = eo.City([2.0, 0.4], [[1, 5], [9, 5.5]], turnout_times=0, service_times=30)
    >>> eo.operations.best_offsets(city, [0, 1], "mean_response", steps=50, rng=0).gain > 0.01
    True
    """

    sites: IntArray
    minutes: FloatArray
    value: float
    value_without: float
    city: City

    @property
    def gain(self) -> float:
        """By which fraction of the metric without offsets they lower it."""
        return 1 - self.value / self.value_without if self.value_without else 0.0

    def __repr__(self) -> str:
        return f"Offsets({self.value:.5g} instead of {self.value_without:.5g}: {100 * self.gain:.2f} % less)"


def best_offsets(
    city: City,
    sites: Sites,
    metric: Metric = ("late", 8.0),
    *,
    steps: int = 700,
    moves: float = 0.0,
    rng: Rng = None,
    progress: Progress = False,
    **options: object,
) -> Offsets:
    """Search offsets of the sites in use that lower a metric of one deployment.

    The metric changes only where an atom's order of preference does, so it is constant nearly everywhere. A step
    therefore changes one offset by a random amount of small, medium or large scale, and is kept if the metric does not
    rise, so that the search crosses plateaus.

    Parameters
    ----------
    city : City
        Its own ``preference`` is not used.
    sites : array_like of int, shape (p,)
    metric : str, tuple or mapping
        As for `Objective`.
    steps : int
        Evaluations.
    moves : float
        Share of the steps that move a unit to an unused site, with its offset, instead: a joint search of deployment
        and offsets.
    rng : numpy.random.Generator or seed, optional
    progress : bool or callable
        True shows a bar; a function is called with (steps done, steps).
    **options
        For `Objective`, such as ``evaluator`` and ``capacity``.

    Returns
    -------
    Offsets

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

    def shifted(offsets: FloatArray) -> City:
        return city._varied(preference=city.response_times + offsets[:, None])

    def value(sites: IntArray, offsets: FloatArray) -> float:
        city = shifted(offsets)
        space = DeploymentSpace(city, len(sites), colocation=True)
        return Objective(city, space, metric=metric, **options)(sites)  # type: ignore[arg-type]

    best = np.zeros(city.n_sites)
    first = least = value(sites, best)
    with bar(progress, steps, "step") as show:
        for step in range(steps):
            tried, where = best.copy(), sites
            unused = np.setdiff1d(np.arange(city.n_sites), sites)
            if len(unused) and moves and rng.random() < moves:
                where, u, new = sites.copy(), rng.integers(len(sites)), rng.choice(unused)
                where[u], tried[new] = new, best[sites[u]]
                if sites[u] not in where:
                    tried[sites[u]] = 0
            else:
                tried[rng.choice(np.unique(sites))] += rng.choice(STEPS_MIN) * rng.standard_normal()
            found = value(where, tried)
            if found <= least:
                sites, best, least = where, tried, found
            show(step + 1)
    used = np.unique(sites)
    best[used] -= best[used].mean()
    return Offsets(sites, best, least, first, shifted(best))
