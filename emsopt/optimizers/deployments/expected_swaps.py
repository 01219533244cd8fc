"""Swap local search in the order of an estimate that knows which units are busy.

The estimate is that of `emsopt.evaluators._expected_cost`: units are busy independently of each other, with the load of
a unit. It takes milliseconds for all swaps of a deployment, and orders them much better than the p-median objective.
"""

from collections.abc import Sequence

import numpy as np

from ..._types import FloatArray, IntArray, Rng, Sites
from ...evaluators._expected_cost import expected_changes, preferred
from ...evaluators.median import p_median
from ...evaluators.objective import Objective
from .base import Optimizer

TRIED = 100  # swaps tried around a deployment before it counts as a local optimum
KICKS = 3  # the swaps made at once to leave it are 2 to 1 + KICKS
ATTEMPTS = 10  # to leave it for a deployment not asked for yet, with one more swap each time


class LocalSearchPlus(Optimizer):
    """Swap local search that tries the most promising swaps first, and kicks out of local optima.

    Swaps are tried in the order of their estimate (see the module's notes), and the first better deployment is the next
    centre. If none of the first 100 is better, two to four random promising swaps are made at once from the best
    deployment, and the search goes on from there. Known deployments are not returned to.

    Parameters
    ----------
    objective : Objective
    starts : sequence of array_like, optional
        Deployments to start from, of which the best one counts. Default: the p-median deployment, improved by swaps as
        far as the estimate falls, which takes no evaluation.
    rng : int or Generator, optional

    Notes
    -----
    A variant of this package. Any metric will do, as the estimate takes the costs of sites and atoms from the objective
    (those of response times for an `emsopt.operations.OperationsObjective`). Deployments told or enqueued are centres
    as any other. At a local optimum all promising swaps are evaluated before it is left: where the start is one, which
    is rare, "gp-pm" can be faster. With noise, a new value is compared with a single earlier one, which misleads the
    search; the deployment that a run returns is the one that a model recommends.

    Examples
    --------
    >>> import emsopt as eo
    >>> objective = eo.Objective(eo.datasets.grid_city(n_sites=6, units=2, rng=1), 2)
    >>> optimizer = eo.optimizers.LocalSearchPlus(objective, rng=0)
    >>> sites = optimizer.ask()
    >>> optimizer.tell(sites, objective(sites))
    >>> len(sites), objective.evaluations
    (2, 1)
    """

    def __init__(self, objective: Objective, *, starts: Sequence[Sites] | None = None, rng: Rng = None) -> None:
        super().__init__(objective, rng=rng)
        self._preferred = preferred(objective)
        if starts is None:
            starts = [self._descended(p_median(self.space.city, self.space).sites)]
        self._starts = [self.space.canonical(start) for start in starts]
        self._value, self._kicks = np.inf, 1  # value of the deployment around which is searched
        self._centre: IntArray | None = None
        self._around: list[IntArray] = []

    def _swaps(self, counts: IntArray) -> tuple[IntArray, FloatArray]:
        """Return the swaps of a deployment, (k, 2) twin groups, and the changes of the estimate, in ascending order."""
        change = expected_changes(self._preferred, counts)
        gives, takes = self.space.swaps(counts)
        change = change[np.ix_(gives, takes)]
        change[gives[:, None] == takes] = np.inf
        some = np.argsort(change, axis=None, kind="stable")[:TRIED]
        some = some[np.isfinite(change.flat[some])]
        return np.column_stack([gives[some // len(takes)], takes[some % len(takes)]]), change.flat[some]

    def _descended(self, sites: IntArray) -> IntArray:
        """Return the deployment that swaps reach from another one, each with the greatest fall of the estimate."""
        counts = self.space.group_counts(sites)
        while True:
            swaps, changes = self._swaps(counts)
            if not len(swaps) or changes[0] > -1e-12:
                return self.space.deployment(counts)
            counts = _swapped(counts, swaps[0])

    def _propose(self) -> IntArray:
        if self._starts:
            return self._starts.pop(0)
        if self._centre is None:
            return self.draw()
        while self._around:
            sites = self.space.deployment(_swapped(self._centre, self._around.pop(0)))
            if self.objective.noisy or not self.is_taken(sites):
                return sites
        return self._kicked()

    def _kicked(self) -> IntArray:
        """Return the best deployment after some promising swaps, around which the search goes on."""
        self._value = np.inf
        for more in range(ATTEMPTS):
            counts = self.space.group_counts(self.best[0])
            for _ in range(1 + self._kicks + more):
                swaps = self._swaps(counts)[0]
                counts = _swapped(counts, swaps[self.rng.integers(len(swaps))]) if len(swaps) else counts
            sites = self.space.deployment(counts)
            if self.objective.noisy or not self.is_taken(sites):
                break
        self._kicks = self._kicks % KICKS + 1
        return sites

    def _learn(self, sites: IntArray, value: float) -> None:
        if value < self._value:
            if value <= min(self.values):
                self._kicks = 1
            self._value, self._centre = value, self.space.group_counts(sites)
            self._around = list(self._swaps(self._centre)[0])


def _swapped(counts: IntArray, swap: IntArray) -> IntArray:
    """Return the units in each twin group after one moved from the first to the second group of ``swap``."""
    moved = counts.copy()
    moved[swap[0]] -= 1
    moved[swap[1]] += 1
    return moved
