"""Every deployment of a fleet: the optimum, its ties, and the alternatives a planner might prefer."""

from dataclasses import dataclass

import numpy as np

from .. import _validate
from .._running.progress import bar
from ..city.deployment import DeploymentSpace
from ..errors import InputError
from .by_name import evaluate
from .metrics import metric_label
from .objective import Objective

MOST_DEPLOYMENTS = 20_000_000
CHUNK = 8192
TIE = 1e-9  # values closer than this are ties: rounding, not performance


@dataclass(frozen=True, eq=False, repr=False)
class Enumeration:
    """All distinct deployments of a fleet and their values.

    Attributes
    ----------
    space : DeploymentSpace
        What was enumerated.
    sites : ndarray of int, shape (K, p)
        Deployments; those that differ only in the names of twin sites are listed once.
    values : ndarray, shape (K,)
        Value of each.
    metric, evaluator, options
        How they were valued.
    """

    space: DeploymentSpace
    sites: np.ndarray
    values: np.ndarray
    metric: object
    evaluator: str
    options: dict

    @property
    def mean_response(self):
        """Mean response of each deployment, shape (K,), min."""
        if self.metric != "mean_response":
            msg = f"these deployments were valued by {metric_label(self.metric)}; their numbers are in `values`."
            raise InputError(msg)
        return self.values

    @property
    def best_sites(self):
        """Sites of the best deployment, shape (p,)."""
        return self.sites[self.values.argmin()].astype(np.intp)

    @property
    def best(self):
        """`Evaluation` of the best deployment."""
        return self.evaluation(self.best_sites)

    @property
    def ties(self):
        """All distinct deployments as good as the best, shape (k, p)."""
        return self.sites[self.values <= self.values.min() + TIE].astype(np.intp)

    def evaluation(self, sites):
        """Evaluate one deployment the way all were evaluated."""
        return evaluate(self.space.city, sites, self.evaluator, **self.options)

    def alternatives(self, k=10, *, threshold=8.0, apart=1):
        """Return the ``k`` best deployments and what distinguishes them.

        Parameters
        ----------
        k : int
        threshold : float
            Minutes from which a response counts as late.
        apart : int
            Least number of relocated units between any two of them; more gives choices that differ in kind.

        Returns
        -------
        DataFrame
            One row a deployment: value, gap to the best, units moved from the best one (from and to), late
            fraction, 90th percentile (min), highest utilisation, and the sites.
        """
        import pandas as pd

        k = _validate.whole_number(k, "k")
        apart = _validate.whole_number(apart, "apart")
        threshold = _validate.positive_number(threshold, "threshold", "min", zero=True)
        names, groups = self.space.city.site_names, self.space.city.twin_groups
        order = np.argsort(self.values, kind="stable")
        chosen, chosen_counts = [], []
        for row in order:
            counts = np.bincount(groups[self.sites[row]], minlength=groups.max() + 1)
            if all(np.maximum(counts - other, 0).sum() >= apart for other in chosen_counts):
                chosen.append(row)
                chosen_counts.append(counts)
            if len(chosen) == k:
                break
        first_of = {g: names[np.argmax(groups == g)] for g in range(groups.max() + 1)}
        rows = []
        for rank, (row, counts) in enumerate(zip(chosen, chosen_counts, strict=True), 1):
            e = self.evaluation(self.sites[row].astype(np.intp))
            change = counts - chosen_counts[0]
            rows.append(
                {
                    "rank": rank,
                    "value": self.values[row],
                    "gap": self.values[row] - self.values.min(),
                    "moved_from": ", ".join(first_of[g] for g in np.flatnonzero(change < 0)),
                    "moved_to": ", ".join(first_of[g] for g in np.flatnonzero(change > 0)),
                    "mean_response_min": e.mean_response,
                    f"late_over_{threshold:g}_min": e.late_fraction(threshold),
                    "percentile_90_min": e.percentile_90,
                    "max_utilization": e.utilizations.max(),
                    "sites": self.sites[row].tolist(),
                }
            )
        return pd.DataFrame(rows)

    def __repr__(self):
        ties = len(self.ties)
        return (
            f"<Enumeration ({self.evaluator}): {len(self.values)} distinct deployments, "
            f"best {metric_label(self.metric)} {self.values.min():.4g}, {'unique' if ties == 1 else f'{ties} equally good'}>"
        )


def evaluate_all(
    city,
    units,
    evaluator=None,
    *,
    metric="mean_response",
    workers=None,
    progress=None,
    **options,
):
    """Evaluate every allowed deployment of a fleet.

    Parameters
    ----------
    city, units, evaluator, metric, **options
        As in `Objective`.
    workers : int, optional
        Threads; all cores if left out.
    progress : bool or callable
        True shows a bar; a function is called with (deployments done, deployments in all).

    Returns
    -------
    Enumeration

    Raises
    ------
    InputError
        If there are more than 20 million deployments, or none.
    """
    objective = Objective(city, units, evaluator, metric, **options)
    space, options, total = objective.space, objective.options, objective.space.count
    if total > MOST_DEPLOYMENTS:
        raise InputError(
            f"{total:,} deployments are too many to enumerate (at most {MOST_DEPLOYMENTS:,}). Pin or close sites, or "
            "search with emsopt.minimize."
        )
    if objective.evaluator == "simulation":
        # Common random numbers: one seed, so that all deployments face the same calls.
        rng = options.get("rng", 0)
        whole = isinstance(rng, (int, np.integer))
        options["rng"] = int(rng if whole else _validate.generator(rng).integers(2**63))
    sites = np.empty((total, space.units), dtype=np.int32)
    result, done = np.empty(total), 0
    with bar(progress, total, "deployment") as show:
        for rows in space.chunks(CHUNK):
            after = done + len(rows)
            sites[done:after] = rows
            step = lambda k, _, done=done: show(done + k)
            result[done:after] = objective.ready(rows, workers=workers, progress=step)
            done = after
    return Enumeration(space, sites, result, metric, objective.evaluator, options)
