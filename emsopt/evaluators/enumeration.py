"""Evaluate every deployment of a fleet, or all within a few moves of one: the optimum, its ties, and alternatives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..city.city import City
from ..city.deployment_space import DeploymentSpace
from ..errors import InputError, _validate
from ..errors._types import FloatArray, IntArray, Progress, Sites
from .evaluation import LATE_MIN, Evaluation
from .metrics import Metric
from .objective import Objective

if TYPE_CHECKING:
    import pandas as pd

MOST_DEPLOYMENTS = 20_000_000  # with nine units their list takes 1.4 GB
TIE = 1e-9  # values that differ by less than this are ties: the difference is rounding


@dataclass(frozen=True, eq=False, repr=False)
class Enumeration:
    """All distinct deployments of a fleet, or all within a few moves of one, and their values.

    Attributes
    ----------
    objective : Objective
        The objective by which the deployments were evaluated.
    sites : ndarray of int, shape (K, p)
        Deployments. Those that differ only in the choice among interchangeable sites are listed once.
    values : ndarray, shape (K,)
        Value of each deployment; smaller is better.
    """

    objective: Objective
    sites: IntArray
    values: FloatArray

    @property
    def space(self) -> DeploymentSpace:
        """The allowed deployments of the objective."""
        return self.objective.space

    @property
    def mean_response(self) -> FloatArray:
        """Mean response of each deployment, shape (K,), min; raise unless it is the objective's metric."""
        if self.objective.metric != "mean_response":
            got = f"it was {self.objective.label}"
            raise InputError(f"`mean_response` needs the mean response as objective; {got}. See `values`.")
        return self.values

    @property
    def best_sites(self) -> IntArray:
        """Sites of the deployment with the smallest value, shape (p,); the first of several."""
        return self.sites[self.values.argmin()]

    @property
    def best(self) -> Evaluation:
        """`Evaluation` of the best deployment."""
        return self.evaluation(self.best_sites)

    @property
    def ties(self) -> IntArray:
        """All distinct deployments whose value exceeds the smallest one by at most `TIE` (1e-9), shape (k, p)."""
        return self.sites[self.values <= self.values.min() + TIE]

    def evaluation(self, sites: Sites) -> Evaluation:
        """Return the full `Evaluation` of one deployment, by the evaluator of the objective."""
        return self.objective.evaluation(sites)

    def alternatives(self, k: int = 10, *, threshold: float = LATE_MIN, apart: int = 1) -> pd.DataFrame:
        """Return the ``k`` deployments with the smallest values (fewer if there are not so many), one row each.

        At least ``apart`` units have to move to turn one of them into another: deployments that are too similar to a
        better one are skipped. Columns are rank, value, difference to the smallest value (``gap``), the sites that
        units leave and enter compared with the best deployment (``moved_from``, ``moved_to``), mean response (min),
        fraction of responses of ``threshold`` minutes or more, 90th percentile of response time (min), highest
        utilisation of a unit, and the sites.
        """
        import pandas as pd

        k = _validate.whole_number(k, "k")
        apart = _validate.whole_number(apart, "apart")
        threshold = _validate.positive_number(threshold, "threshold", "min", zero=True)
        names, groups = self.space.city.site_names, self.space.city.twin_groups
        first_site = np.unique(groups, return_index=True)[1]
        rows: list[dict[str, Any]] = []
        chosen: list[IntArray] = []  # by twin group, as a move between interchangeable sites changes nothing
        for row in np.argsort(self.values, kind="stable"):  # stable, so that ties keep the listed order
            counts = self.space.group_counts(self.sites[row])
            if any(np.maximum(counts - other, 0).sum() < apart for other in chosen):  # units that move between them
                continue
            chosen.append(counts)
            e = self.evaluation(self.sites[row])
            moved_from, moved_to = (first_site[change < 0] for change in (counts - chosen[0], chosen[0] - counts))
            rows.append(
                {
                    "rank": len(chosen),
                    "value": self.values[row],
                    "gap": self.values[row] - self.values.min(),
                    "moved_from": ", ".join(names[site] for site in moved_from),
                    "moved_to": ", ".join(names[site] for site in moved_to),
                    "mean_response_min": e.mean_response,
                    f"late_over_{threshold:g}_min": e.late_fraction(threshold),
                    "percentile_90_min": e.percentile_90,
                    "max_utilization": e.utilizations.max(),
                    "sites": self.sites[row].tolist(),
                }
            )
            if len(rows) == k:
                break
        return pd.DataFrame(rows)

    def __repr__(self) -> str:
        ties = len(self.ties)
        return (
            f"<Enumeration ({self.objective.evaluator}): {len(self.values)} distinct deployments, best "
            f"{self.objective.label} {self.values.min():.4g}, {'unique' if ties == 1 else f'{ties} equally good'}>"
        )


def evaluate_all(
    city: City,
    units: int | DeploymentSpace,
    evaluator: str | None = None,
    *,
    metric: Metric = "mean_response",
    **options: Any,
) -> Enumeration:
    """Evaluate every allowed deployment of a fleet; raise if there are more than 20 million.

    Parameters
    ----------
    city, units, evaluator, metric, **options
        As in `Objective`.

    Examples
    --------
    >>> import emsopt as eo
    >>> city = eo.City([1, 2, 4], [[0, 6, 9], [4, 0, 5], [9, 5, 0]], turnout_times=1, service_times=30)
    >>> evaluate_all(city, 2, "exact")
    <Enumeration (exact): 3 distinct deployments, best mean response (min) 3.525, unique>
    """
    return enumerate_objective(Objective(city, units, evaluator, metric, **options))


def enumerate_objective(objective: Objective, progress: Progress = False) -> Enumeration:
    """Evaluate every allowed deployment of an objective; its counter ``evaluations`` is left unchanged."""
    total = objective.space.count  # computed without listing them, which could exhaust the memory
    if total > MOST_DEPLOYMENTS:
        limit = f"{total:,} deployments are too many to enumerate (at most {MOST_DEPLOYMENTS:,})"
        raise InputError(f"{limit}. Pin or close sites, or search with emsopt.minimize.")
    return _evaluate_sites(objective, objective.space.listing(), progress)


def evaluate_near(objective: Objective, sites: Sites, moves: int = 2) -> Enumeration:
    """Evaluate a given deployment, such as the result of a search, and every allowed one within a few moves of it.

    Parameters
    ----------
    objective : Objective
        Its counter ``evaluations`` is left unchanged.
    sites : array_like of int, shape (p,)
        The given deployment.
    moves : int
        Maximum number of units that are relocated.

    Examples
    --------
    >>> import emsopt as eo
    >>> objective = eo.Objective(eo.datasets.grid_city(n_sites=6, units=2, rng=1), 2)
    >>> len(evaluate_near(objective, [0, 1], 1).values), len(evaluate_near(objective, [0, 1], 2).values)
    (9, 15)
    """
    space = objective.space
    near = fringe = {tuple(space.canonical(sites).tolist()): None}  # dicts as ordered sets: ties go to the first
    for _ in range(_validate.whole_number(moves, "moves", low=0)):
        rows = (tuple(row) for x in fringe for row in space.neighbours(x).tolist())
        fringe = dict.fromkeys(row for row in rows if row not in near)
        near = near | fringe
        if len(near) > MOST_DEPLOYMENTS:
            raise InputError(f"over {MOST_DEPLOYMENTS:,} deployments are too many to evaluate. Lower `moves`.")
    return _evaluate_sites(objective, np.array(list(near)))


def _evaluate_sites(objective: Objective, sites: IntArray, progress: Progress = False) -> Enumeration:
    """Return the `Enumeration` of deployments, shape (K, p); simulations send the same calls to all of them."""
    if objective.noisy:
        rng = _validate.generator(objective.options.get("rng"))
        objective = objective.with_seed(int(rng.integers(2**63)))
    # Without a bar, `progress` is left out: False would override the option given to the objective.
    found = objective.value_function(sites, progress=progress) if progress else objective.value_function(sites)
    return Enumeration(objective, sites, found)
