"""Swap local search on an evaluator, and the best deployment by whichever way is affordable.

A step moves the one unit whose move helps most; the search ends where no single move helps. With an evaluator that
takes microseconds this is hard to beat; it proves nothing.
"""

import numpy as np

from ... import _validate
from ..._running.progress import bar
from ...city.deployment import check_sites
from ...evaluators.enumeration import evaluate_all
from ...evaluators.median import p_median
from ...evaluators.objective import Objective
from ..run import Run
from .base import Optimizer

# Enumerations up to this many deployments take at most about half a minute on two cores.
AFFORDABLE = {"approximate": 1_000_000, "exact": 20_000, "simulation": 200}


def local_search(objective, *, starts=None, restarts=8, rng=None, budget=None, progress=None):
    """Descend from several deployments, one relocated unit at a time.

    Parameters
    ----------
    objective : Objective
    starts : sequence of array_like, optional
        Deployments to start from; left out: the p-median deployment, all units as close to the 1-median as they fit,
        and ``restarts`` random ones.
    restarts : int
        Random starts.
    rng : int or Generator, optional
    budget : int, optional
        Stop after about this many evaluations.
    progress : bool or callable
        True shows a bar; a function is called with (starts done, starts in all).

    Returns
    -------
    Run

    Notes
    -----
    The result is a local optimum of single moves. Noisy objectives mislead it: fix the simulation's ``rng``.
    """
    import pandas as pd

    space = objective.space
    if starts is None:
        restarts = _validate.whole_number(restarts, "restarts", low=0)
        starts = [*_classical_starts(space), *(space.sample(restarts, rng=rng) if restarts else ())]
    else:
        starts = [space.canonical(check_sites(objective.city, start)) for start in starts]
    before, best, best_value, rows = objective.evaluations, None, np.inf, []
    seen = set()
    stopped = False
    with bar(progress, len(starts), "start") as show:
        for number, start in enumerate(starts, 1):
            x, value = start, objective(start)
            while not stopped and tuple(x) not in seen:
                seen.add(tuple(x))
                neighbours = space.neighbours(x)
                if len(neighbours) == 0:
                    break
                values = objective.values(neighbours)
                k = values.argmin()
                stopped = budget is not None and objective.evaluations - before >= budget
                if values[k] >= value - 1e-12:
                    break
                x, value = neighbours[k], values[k]
                rows.append((objective.evaluations - before, min(value, best_value)))
            if value < best_value:
                best, best_value = x, value
            rows.append((objective.evaluations - before, best_value))
            show(number)
            if stopped:
                break
    history = pd.DataFrame(rows, columns=["evaluations", "best"])
    message = "stopped at budget" if stopped else "no single move improves it"
    return Run(best, float(best_value), objective.evaluations - before, message, history)


class LocalSearch(Optimizer):
    """Swap local search through ask / tell: one neighbour at a time, and a restart where no single move helps.

    Parameters
    ----------
    objective : Objective
    improvement : {"first", "best"}
        Move to the first neighbour that is better, or see all of them and move to the best.
    starts : sequence of array_like, optional
        Deployments to descend from, one after the other, before random ones; left out: those of `local_search`.
        Empty: random ones from the start.
    rng : int or Generator, optional

    Notes
    -----
    Neighbours told before are not asked for again; their known values count. A noisy objective misleads the search.
    """

    def __init__(self, objective, *, improvement="first", starts=None, rng=None):
        super().__init__(objective, rng=rng)
        self.improvement = _validate.choice(improvement, "improvement", ("first", "best"))
        starts = _classical_starts(self.space) if starts is None else starts
        self._starts = [self.space.canonical(start) for start in starts]
        self._restart()

    def _restart(self):
        self._value, self._neighbours, self._step = np.inf, [], None

    def _propose(self):
        while True:
            while self._neighbours:
                sites = self._neighbours.pop()
                if self.objective.noisy or not self.is_taken(sites):
                    return sites
                self._consider(sites, self.taken[tuple(sites.tolist())])
            if self._step is None:  # a local optimum
                break
            self._move(*self._step)
        self._restart()
        return self._starts.pop(0) if self._starts else self.draw()

    def _learn(self, sites, value):
        self._consider(sites, value)

    def _consider(self, sites, value):
        """Move there, or keep it in mind, if it is better (None: asked for, not told yet)."""
        if value is None or value >= (self._value if self._step is None else self._step[1]):
            return
        if self.improvement == "first" or self._value == np.inf:
            self._move(sites, value)
        else:
            self._step = sites, value

    def _move(self, sites, value):
        self._value, self._step = value, None
        self._neighbours = list(self.rng.permutation(self.space.neighbours(sites)))


def random_neighbour(space, sites, rng):
    """Return a canonical deployment with one unit relocated at random, shape (p,); itself if none can be."""
    groups = space.city.twin_groups
    counts = space.group_counts(sites)
    movable = (counts > space.floors)[groups[sites]]
    free = (counts < space.capacities)[groups]
    moves = np.argwhere(movable[:, None] & free & (groups[sites][:, None] != groups))
    if len(moves) == 0:
        return sites
    unit, site = moves[rng.integers(len(moves))]
    moved = sites.copy()
    moved[unit] = site
    return space.canonical(moved)


def _classical_starts(space):
    """Return the p-median deployment, and all units on the sites with the shortest mean response."""
    city = space.city
    places = np.repeat(np.arange(city.n_sites), space.site_capacities - space.site_floors)
    central = places[np.argsort((city.response_times @ city.demand_shares)[places], kind="stable")]
    crowd = np.r_[space.pinned, central[: space.units - len(space.pinned)]].astype(int)
    return [p_median(city, space).sites, space.canonical(crowd)]


def best_deployment(objective, *, rng=0, progress=None):
    """Find the best deployment: by enumeration if there are few enough, else by local search.

    Where the exact evaluator is too slow to search with, the approximate one leads the way and the exact one decides
    among the neighbours of what it found.

    Parameters
    ----------
    objective : Objective
    rng : int or Generator
        For the random starts of a search.
    progress : bool or callable
        True shows a bar; a function is called with (done, total).

    Returns
    -------
    Run
        ``message`` says whether the optimum is proven.
    """
    import pandas as pd

    _validate.instance(objective, "objective", Objective, "emsopt.Objective")
    space = objective.space
    if space.count <= AFFORDABLE[objective.evaluator]:
        everything = evaluate_all(
            space.city,
            space,
            objective.evaluator,
            metric=objective.metric,
            progress=progress,
            **objective.options,
        )
        objective.evaluations += len(everything.values)
        value = float(everything.values.min())
        history = pd.DataFrame({"evaluations": [len(everything.values)], "best": [value]})
        return Run(everything.best_sites, value, len(everything.values), "proven by enumeration", history)
    starts = None
    if objective.evaluator != "approximate":
        guide = Objective(
            space.city,
            space,
            "approximate",
            objective.metric,
            capacity=objective.options.get("capacity", "loss"),
        )
        starts = [local_search(guide, rng=rng).x]
    return local_search(objective, starts=starts, rng=rng, progress=progress)
