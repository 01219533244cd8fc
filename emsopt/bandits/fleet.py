"""A fleet that shares what it learns: many drivers, each with a route of their own, and one posterior of the roads.

In each round all drivers choose their paths from what is known, each with random numbers of their own, drive, and
observe the energies of their edges. The observations of all drivers update one regression, from which all choose in the
next round. With ``share=False`` every driver learns alone, which shows what sharing gains.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from .. import _validate
from .._running.checkpoint import run_seed, stream
from .._running.progress import bar
from .._types import FloatArray, Progress, Rng
from ..errors import InputError
from ..roads.network import RoadNetwork
from .environment import AGENT, NOISE, Navigation
from .framework import ShortestPath
from .navigation import new_regression, parsed_policy
from .policies import Agent
from .prior import Prior, navigation_prior
from .regression import Regression

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .policies import Optimism, Rule


@dataclass(frozen=True, eq=False, repr=False)
class FleetRun:
    """Outcome of `run_fleet`.

    Attributes
    ----------
    history : DataFrame
        One row per round and driver: ``round``, ``driver`` (index of the route), ``path`` (tuple of edge indices),
        observed ``energy`` and ``expected_energy`` of the path, and ``regret``, as in `NavigationRun`; in Wh.
    policy : str
    expected : ndarray, shape (n,)
        True expected energy of each arm, Wh.
    regressions : tuple of Regression
        The posterior that all drivers share; with ``share=False`` one per driver. A run can start from one:
        ``run(..., regression=fleet.regressions[0], expected=fleet.expected)``.

    Examples
    --------
    >>> import emsopt as eo
    >>> net = eo.roads.grid_roads(4, 4, jitter=0.2, rng=0)
    >>> fleet = eo.bandits.run_fleet(net, [("r0c0-r0c1", "r3c2-r3c3"), ("r3c0-r2c0", "r0c2-r0c3")], horizon=5, rng=0)
    >>> len(fleet.history), len(fleet.regressions), len(fleet.by_round())
    (10, 1, 5)
    """

    history: pd.DataFrame
    policy: str
    expected: FloatArray
    regressions: tuple[Regression, ...]

    @property
    def regret(self) -> float:
        """Rectified regret of all drivers and rounds, Wh."""
        return float(self.history["regret"].sum())

    def by_round(self) -> pd.DataFrame:
        """Return energy, expected energy and regret per round, the mean over the drivers, Wh."""
        return self.history.groupby("round")[["energy", "expected_energy", "regret"]].mean()

    def __repr__(self) -> str:
        drivers, rounds = self.history["driver"].nunique(), self.history["round"].nunique()
        sharing = "sharing one regression" if len(self.regressions) == 1 else "learning alone"
        return f"<FleetRun: {self.policy}, {drivers} drivers {sharing}, {rounds} rounds, regret {self.regret:.4g} Wh>"


def run_fleet(
    net: RoadNetwork,
    routes: Sequence[tuple[int | str, int | str]],
    policy: str | tuple[str, Rule | Optimism] = "gp-ts",
    *,
    horizon: int = 100,
    rng: Rng = None,
    share: bool = True,
    prior: Prior | None = None,
    progress: Progress = False,
    **kernel: Any,
) -> FleetRun:
    """Let a fleet drive, each driver on one route in every round, and share what is observed.

    Parameters
    ----------
    net : RoadNetwork
    routes : sequence of (start, end)
        First and last edge of each driver's route, by index or id. Several drivers may have the same route.
    policy
        As in `run`. Drivers with the same route take the same path under a rule without randomness.
    horizon : int
        Number of rounds.
    rng : int or Generator, optional
        Source of all randomness. Runs with the same ``rng`` face the same energies.
    share : bool
        Whether all drivers learn from the observations of all. If False, each driver has a regression of its own.
    prior, **kernel
        As in `run`.
    progress : bool or callable
        Whether to show a progress bar, or a function called with (rounds done, horizon).

    Examples
    --------
    Six drivers who share what they learn lose less energy than six who do not:

    >>> import emsopt as eo
    >>> net = eo.roads.grid_roads(6, 6, jitter=0.3, relief=40, rng=0)
    >>> ends = [("r0c0-r0c1", "r5c4-r5c5"), ("r5c0-r5c1", "r0c4-r0c5"), ("r0c2-r1c2", "r4c3-r5c3")] * 2
    >>> together, alone = (eo.bandits.run_fleet(net, ends, horizon=30, rng=1, share=share) for share in (True, False))
    >>> together.regret < alone.regret
    True
    """
    _validate.instance(net, "net", RoadNetwork, "emsopt.roads.RoadNetwork")
    horizon, share = _validate.whole_number(horizon, "horizon"), _validate.truth(share, "share")
    if not len(routes) or any(np.shape(route) != (2,) for route in routes):
        raise InputError(f"`routes` must hold at least one pair (start, end) of edges; got {routes!r}.")
    name, kind, rule = parsed_policy(policy)
    prior = navigation_prior(net, **kernel) if prior is None else prior
    first, seed = new_regression(kind, prior), run_seed(rng)
    city = Navigation(net, *routes[0], prior, rng=seed)
    oracles, best = [ShortestPath(net, *route) for route in routes], dict[tuple[int, int], float]()
    models = [first] if share else [deepcopy(first, {id(prior): prior}) for _ in routes]
    agents = [
        Agent(models[k % len(models)], rule, sense="min", rectify=True, rng=stream(seed, AGENT, k))
        for k in range(len(routes))
    ]
    rows = []
    with bar(progress, horizon, "round") as show:
        for t in range(1, horizon + 1):
            arms, is_open = city.available(t)
            seen: list[list[Any]] = [[] for _ in models]
            for k, (agent, oracle) in enumerate(zip(agents, oracles, strict=True)):
                if (hour := (int(arms[0]), k)) not in best:
                    best[hour] = city.costs[arms[oracle(city.costs[arms], is_open)]].sum()
                chosen = arms[oracle(agent.indices(t, arms), is_open)]
                noise = np.sqrt(prior.noise_variance) * stream(seed, NOISE, t, k).standard_normal(len(chosen))
                values = city.expected[chosen] + noise
                seen[k % len(models)].append((chosen, values))
                regret, path = city.costs[chosen].sum() - best[hour], tuple((chosen - arms[0]).tolist())
                rows.append((t, k, path, values.sum(), city.expected[chosen].sum(), regret))
            for model, trips in zip(models, seen, strict=True):
                model.update(*(np.concatenate(part) for part in zip(*trips, strict=True)))
            show(t)
    history = pd.DataFrame(rows, columns=["round", "driver", "path", "energy", "expected_energy", "regret"])
    return FleetRun(history, name, city.expected, tuple(models))
