"""Deployments judged by simulated operations, for every optimizer of deployments."""

from __future__ import annotations

from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _validate
from .._running.blas_threads import map_rows
from .._running.checkpoint import summary
from ..evaluators.objective import Objective
from .simulation import Operations, simulate
from .system import System

if TYPE_CHECKING:
    from collections.abc import Callable

    from .._types import FloatArray, Sites
    from ..city import DeploymentSpace


class OperationsObjective(Objective):
    """Function from a deployment to the share of calls that are late in simulated operations.

    A call is late by the target of its priority, counted from the call.

    Parameters
    ----------
    system : System
    units : int or DeploymentSpace
        Fleet size p, or the deployments that a search may propose.
    rng : int or Generator, optional
        With a whole number every deployment meets the same calls, and a deployment always has the same value.
    **options
        For `simulate`, such as ``policy``, ``calls`` and ``shifts``.

    Notes
    -----
    Optimizers that need a cost of each site and atom, such as "gp-pm", take the share of an atom's calls that a unit at
    home would reach late.

    Examples
    --------
    >>> import emsopt as eo
    >>> system, sites = eo.datasets.load_auckland()
    >>> space = eo.DeploymentSpace(system.city, 16, colocation=5)
    >>> objective = eo.operations.OperationsObjective(system, space, calls=20_000, rng=0)
    >>> 0.4 < objective(sites) < 0.6
    True
    """

    def __init__(
        self,
        system: System,
        units: int | DeploymentSpace,
        *,
        rng: Any = None,
        **options: Any,
    ) -> None:
        _validate.instance(system, "system", System, "emsopt.operations.System")
        super().__init__(system.city, units, "simulation")
        self.system, self.metric, self.label = system, "late", "share of late calls"
        self.costs = late_from_home(system)
        known = ("policy", "shifts", "capacity", "calls", "warmup", "batches")
        for name in options:
            _validate.choice(name, "options", known)
        # The summary is there for checkpoints: a search resumes only with the same system.
        by_hour = np.stack([system.calls_by_hour, system.speed_by_hour])
        what = [summary(system.to_place), summary(by_hour), system.priorities, system.handover]
        self.options = options | {"rng": rng, "system": what}
        self.noisy = not isinstance(rng, (int, np.integer))

    @cached_property
    def ready(self) -> Callable[..., FloatArray]:
        """Function that maps checked deployments, shape (K, p), to their values, shape (K,), without counting them."""
        return partial(map_rows, lambda rows: [self.evaluation(sites).late_share for sites in rows])

    def evaluation(self, sites: Sites) -> Operations:  # type: ignore[override]
        """Return the full `Operations` of one deployment, without counting it in ``evaluations``."""
        return simulate(self.system, sites, **{k: v for k, v in self.options.items() if k != "system"})


def late_from_home(system: System) -> FloatArray:
    """Return the share of each atom's calls that a unit at home would reach late, in the mean time, shape (N, M)."""
    n, m = system.city.travel_times.shape
    late = np.zeros((n, m))
    for priority in system.priorities:
        travel = system.to_place[priority.mode, n : n + m, :n].T
        minutes = priority.delay + system.city.turnout_times[:, None] + travel
        late += priority.share * (minutes >= priority.target)
    return late
