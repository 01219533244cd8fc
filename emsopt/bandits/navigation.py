"""Drive a route repeatedly and learn the path that needs the least energy.

The experiment of "Bayesian Analysis of Combinatorial Gaussian Process Bandits", section 4. The expected energy of every
road edge is drawn from the prior, which the agent knows. In each round it observes the energy of each edge on its path,
with noise.

**Regret is rectified.** Expected energies can be negative (downhill, with recuperation), even in sum along a cycle, in
which case no cheapest path exists. Algorithm 2 therefore uses rectified indices, and agents are compared with the best
path under such costs: the cost of an edge is the rectified mean of its expected energy f, E[max(0, f + noise)]. The
regret of a round is the cost of the path taken minus that of the best path open in that round; it is never negative.

Where energies are well above the noise, regret equals the difference in expected energy. On many edges they are not:
in Monaco 41 % of the edges have a negative prior mean. There, negative energy is ignored, and a path with more regret
may need less energy. ``energy``, ``expected_energy`` and ``excess_energy`` in the history are not rectified.

**Shifted rectification** is our own option, ``shift``. The potential energy of `emsopt.roads.energy.potential_energy`
adds up to the same number on every path from start to end. Subtracted from each edge before rectifying, it changes no
comparison of paths, but leaves less to rectify: in Monaco no prior mean is then negative.

**Volatile arms.** Roads and turns may be closed in some rounds. With congestion by hour, an arm is a road edge at one
hour of the day, driven at the speed of that hour. Each round is one hour, and the hours repeat in cycles.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from .._running.checkpoint import CheckpointFormat, are_indices, are_numbers, array_summary, random_stream, run_seed
from .._running.loop import RunOptions, Steps, run_loop
from ..errors import InputError, NoPathError, _validate
from ..errors._types import ArrayLike, BoolArray, Callback, FloatArray, IntArray, PathLike, Progress, Rng
from ..roads.network import RoadNetwork
from .districts import DistrictGP
from .exact import ExactGP
from .policies import UCB, Agent, BayesUCB, OptimisticRule, Round, Rule, ShortestPath, Thompson, rectified_mean
from .prior import LazyPrior, Prior, navigation_prior
from .regression import IndependentArms, Regression
from .sparse import SparseGP

Closures: TypeAlias = Iterable[Any] | Callable[[int], Iterable[Any]] | None

TRUTH_STREAM, NOISE_STREAM, AGENT_STREAM = range(3)  # separate streams: every policy meets the same energies and noise
REGRESSIONS: dict[str, type[Regression]] = {"gp": ExactGP, "svgp": SparseGP, "bi": IndependentArms}
RULES: dict[str, Rule] = {"ts": Thompson(), "bucb": BayesUCB(), "ucb": UCB()}
POLICIES = {f"{regression}-{rule}": (regression, RULES[rule]) for regression in REGRESSIONS for rule in RULES}
LARGE_REGRESSIONS: dict[str, type[Regression]] = REGRESSIONS | {"gp": DistrictGP}  # with a prior that is not stored
POLICIES |= {"gp-ts-joint": ("gp", Thompson(joint=True))}
"""Policies by name. A policy is a regression (exact or sparse Gaussian process, or independent edges) and a rule.

>>> sorted(POLICIES)[:3]
['bi-bucb', 'bi-ts', 'bi-ucb']
"""

HISTORY_COLUMNS = ["round", "hour", "path", "energy", "expected_energy", "regret", "cumulative_regret"]
HISTORY_COLUMNS += ["excess_energy", "cumulative_excess_energy", "seconds"]
_CHECKPOINT_FORMAT = CheckpointFormat(
    "emsopt bandit run", "round", proposal_keys={"arms": are_indices}, result_keys={"values": are_numbers}
)


class Navigation:
    """Environment for `play`: a route through a road network, with expected energies that the agent does not know.

    Parameters
    ----------
    net, start, end, expected, closed, shift
        As in `run`. A function ``closed`` is called once per round, and again if an earlier round is asked for.
    prior : Prior
        One arm per edge and hour, from `navigation_prior`.
    rng : int or Generator, optional
        Source of randomness for the expected energies and the noise, which do not depend on the agent.

    Examples
    --------
    >>> import emsopt as eo
    >>> net = eo.roads.grid_roads(4, 4, jitter=0.2, rng=0)
    >>> environment = eo.bandits.Navigation(net, "r0c0-r0c1", "r3c2-r3c3", eo.bandits.navigation_prior(net), rng=0)
    >>> len(environment.best_path(1))
    6
    """

    def __init__(
        self,
        net: RoadNetwork,
        start: int | str,
        end: int | str,
        prior: Prior,
        *,
        expected: ArrayLike | None = None,
        closed: Closures = None,
        shift: ArrayLike | None = None,
        rng: Rng = None,
    ) -> None:
        hours, odd = divmod(prior.n_arms, net.n_edges)
        if odd:  # a remainder means the prior is of another network
            wanted = f"one arm per edge and hour, a multiple of {net.n_edges}"
            raise InputError(f"`prior` must have {wanted}; got {prior.n_arms} arms.")
        self.net, self.hours, self.seed = net, hours, run_seed(rng)
        if expected is None:
            expected = prior.draw(rng=random_stream(self.seed, TRUTH_STREAM))[:, 0]
        self.expected = _validate.real_array(expected, "expected", (prior.n_arms,), unit="Wh")
        self._deviation = np.sqrt(prior.noise_variance)
        self.shift = np.tile(_validate.array_of_length(0.0 if shift is None else shift, "shift", net.n_edges), hours)
        self.costs = rectified_mean(self.expected - self.shift, self._deviation)
        self.oracle = ShortestPath(net, start, end)
        always = ~net.closure_mask(() if closed is None or callable(closed) else closed)
        self._is_open = lru_cache(maxsize=1)(lambda t: ~net.closure_mask(closed(t)) if callable(closed) else always)
        self._best: dict[tuple[int, bytes], IntArray] = {}

    def available(self, t: int) -> tuple[IntArray, BoolArray]:
        """Return the arms of round t, shape (E,), and which edges and then connections are open, shape (E + C,)."""
        first = (t - 1) % self.hours * self.net.n_edges
        return np.arange(first, first + self.net.n_edges), self._is_open(t)

    def observe(self, t: int, arms: IntArray) -> FloatArray:
        """Return the energy observed on each of k arms in round t, Wh, shape (k,)."""
        # noise of all arms, so that it does not depend on the path chosen
        noise = random_stream(self.seed, NOISE_STREAM, t).standard_normal(len(self.expected))
        return self.expected[arms] + self._deviation * noise[arms]

    def best_path(self, t: int) -> IntArray:
        """Return the edges of the open path of least rectified cost in round t, in driving order, shape (k,)."""
        arms, is_open = self.available(t)
        key = int(arms[0]), is_open.tobytes()  # the best path depends on the hour and closures only
        if key not in self._best:
            self._best[key] = self.oracle(self.costs[arms], is_open)
        return self._best[key]


@dataclass(frozen=True, eq=False, repr=False)
class NavigationRun:
    """Result of a policy that drove a route repeatedly, as `run` returns it.

    Attributes
    ----------
    history : DataFrame
        One row per round: its number ``round``, ``hour``, ``path`` (tuple of edge indices), observed ``energy`` and
        ``expected_energy`` of the path, ``regret`` and ``cumulative_regret`` (rectified, see the module's notes),
        ``excess_energy`` and ``cumulative_excess_energy`` (expected energy of the path minus that of the best path; not
        rectified, and negative for a path that needs less; all in Wh), and ``seconds`` since the start.
    policy, message : str
        Name of the policy, and why the run ended.
    arms : tuple of ndarray of int
        Arms of the path of each round. Without congestion by hour, these are the edges of the path.
    counts, expected : ndarray, shape (n,)
        Number of observations of each arm, and its true expected energy, Wh.
    mean, deviation : ndarray, shape (n,)
        The agent's final posterior mean and standard deviation of each arm's expected energy, Wh.
    best_path : tuple of int
        Edges of the path of least rectified cost in the last round. The regret of this path is 0 by definition.
    regression : Regression or None
        The agent's posterior, from which a run on another route can start: ``run(..., regression=)``. With a Gaussian
        process it holds a matrix of 8 n² bytes (260 MB for Luxembourg); to keep many runs, drop it by
        ``dataclasses.replace(run, regression=None)``.
    """

    history: pd.DataFrame
    policy: str
    message: str
    arms: tuple[IntArray, ...]
    counts: IntArray
    expected: FloatArray
    mean: FloatArray
    deviation: FloatArray
    best_path: tuple[int, ...]
    regression: Regression | None

    @property
    def regret(self) -> float:
        """Cumulative rectified regret after the last round, Wh."""
        return float(self.history["cumulative_regret"].iloc[-1])

    @property
    def excess_energy(self) -> float:
        """Expected energy of all rounds minus that of the best path of each round, Wh; not rectified."""
        return float(self.history["cumulative_excess_energy"].iloc[-1])

    @cached_property
    def visits(self) -> pd.DataFrame:
        """One row per driven edge: ``edge``, the ``first_round`` that used it, and ``visits``, the number of rounds."""
        paths = self.history[["path", "round"]].explode("path").rename(columns={"path": "edge"})
        return paths.groupby("edge")["round"].agg(first_round="min", visits="count").reset_index().astype(int)

    def __repr__(self) -> str:
        return (
            f"<NavigationRun: {self.policy}, {len(self.history)} rounds, rectified regret {self.regret:.4g} Wh, "
            f"excess energy {self.excess_energy:.4g} Wh, {np.count_nonzero(self.counts)} arms seen; {self.message}>"
        )


def run(
    net: RoadNetwork,
    start: int | str,
    end: int | str,
    policy: str | tuple[str, Rule | OptimisticRule] = "gp-ts",
    *,
    horizon: int = 500,
    rng: Rng = None,
    closed: Closures = None,
    prior: Prior | None = None,
    expected: ArrayLike | None = None,
    shift: ArrayLike | None = None,
    regression: Regression | None = None,
    progress: Progress = False,
    callback: Callback | None = None,
    checkpoint: PathLike | None = None,
    time_limit: float | None = None,
    **kernel: Any,
) -> NavigationRun:
    """Let a policy drive from one road edge to another for a number of rounds.

    Parameters
    ----------
    net : RoadNetwork
    start, end : int or str
        First and last edge of the route, by index or id.
    policy : str or (str, rule)
        A name in `POLICIES`; or a pair of a regression ("gp", "svgp" or "bi") and a rule such as
        ``BayesUCB(omega=1, xi=0.5)``, or an object of your own with a method ``beta(t, n_arms)``. With a checkpoint,
        the ``repr`` of the object must say all its parameters.
    horizon : int
        Number of rounds T.
    rng : int or Generator, optional
        Source of all randomness. Runs with the same ``rng`` face the same energies and noise under every
        policy.
    closed : array_like or callable, optional
        Closed edges as indices, ids or booleans, and closed turns as tuples of two edges (from, to); or a function
        of the round's number that returns them. To resume from a checkpoint, the function must return the same
        closures for the same round.
    prior : Prior, optional
        From `navigation_prior`; pass one to share it between runs. Default: built from ``kernel``. Above 10,000 arms,
        or with ``lazy=True``, its covariance is not stored and a Gaussian process is a `DistrictGP`.
    expected : array_like, optional
        Expected energy of every arm, Wh. Default: drawn from the prior.
    shift : array_like, shape (E,), optional
        Wh to subtract from each edge before rectifying, in the indices of the agent and in the costs that define
        regret. Its sum must be the same on every path, as that of `emsopt.roads.energy.potential_energy` is. Rectified
        regrets with different shifts cannot be compared; excess energies can, if measured from the same path.
    regression : Regression, optional
        What the agent knows at the start: that of an earlier run (with ``expected`` of that run, and another ``rng``,
        because the same one gives the same noise again), or one with options of its own, such as
        ``SparseGP(prior, steps=10)``. It is copied. Its prior is used; leave out ``prior``. It must be of the kind
        that ``policy`` names.
    progress : bool or callable
        Whether to show a progress bar, or a function called with (rounds done, horizon).
    callback : callable, optional
        Called with each `Round`, including those read from the checkpoint. The run stops if it returns True.
    checkpoint, time_limit
        As in `emsopt.minimize`, with rounds in place of evaluations.
    **kernel
        Passed to `navigation_prior`: lengthscale, noise_sd, congestion, lazy.

    Returns
    -------
    NavigationRun
        The run also ends on Ctrl-C, or when a round after the first has no open path; if the first one has none,
        InputError is raised.

    Examples
    --------
    >>> from emsopt import bandits
    >>> from emsopt.roads import grid_roads
    >>> net = grid_roads(5, 5, jitter=0.2, rng=0)
    >>> bandits.run(net, "r0c0-r0c1", "r4c3-r4c4", "gp-ts", horizon=20, rng=0).history["path"].str.len().min()
    np.int64(8)
    """
    _validate.instance(net, "net", RoadNetwork, "emsopt.roads.RoadNetwork")
    horizon = _validate.whole_number(horizon, "horizon")
    name, kind, rule = parse_policy(policy)
    if regression is not None and not isinstance(regression, LARGE_REGRESSIONS[kind]):
        wanted = f"{REGRESSIONS[kind].__name__}, because the policy is {name!r}"
        _validate.instance(regression, "regression", REGRESSIONS[kind], wanted)
    # each of the three brings a prior, and they could contradict each other
    if (regression is not None) + (prior is not None) + bool(kernel) > 1:
        raise InputError("Pass only one of `prior`, kernel options, and `regression`, which has a prior.")
    if regression is not None:
        prior = regression.prior
    prior = navigation_prior(net, **kernel) if prior is None else prior
    _validate.instance(prior, "prior", Prior, "emsopt.bandits.Prior")
    with run_loop(
        _CHECKPOINT_FORMAT,
        lambda: _describe_run(net, start, end, name, prior, expected, closed, shift, regression),
        RunOptions(rng, progress, callback, checkpoint, time_limit),
        message=f"horizon of {horizon} rounds reached",
        steps=horizon,
    ) as steps:
        seed = steps.file.seed
        environment = Navigation(net, start, end, prior, expected=expected, closed=closed, shift=shift, rng=seed)
        environment.best_path(1)  # raises immediately if there is no path from start to end
        agent_rng = random_stream(seed, AGENT_STREAM)
        model = _initial_regression(kind, prior, regression, agent_rng)
        agent = Agent(model, rule, sense="min", rectify=True, shift=environment.shift, rng=agent_rng)
        total = excess_so_far = 0.0
        for t in steps:  # not by `play`, as a checkpoint may replace choices
            arms, is_open = environment.available(t)
            try:
                path = environment.oracle(agent.indices(t, arms), is_open)
            except NoPathError as error:  # the rounds before the closure are kept
                steps.message = f"round {t} has no open path: {error}"
                break
            chosen = arms[path]
            if (filed := steps.stored_row) is None:
                values = environment.observe(t, chosen)
            else:
                chosen, values = _stored_round(steps, filed, environment.oracle, arms, chosen, is_open)
            steps.write(arms=chosen.tolist(), values=values.tolist())
            agent.update(chosen, values)
            best = arms[environment.best_path(t)]
            regret = environment.costs[chosen].sum() - environment.costs[best].sum()
            needed = environment.expected[chosen].sum()
            excess = needed - environment.expected[best].sum()
            total, excess_so_far = total + regret, excess_so_far + excess
            hour, edges = int(arms[0]) // net.n_edges, tuple((chosen - arms[0]).tolist())
            row = hour, edges, values.sum(), needed, regret, total, excess, excess_so_far
            steps.finish(row, Round(t, chosen, values), f"regret {total:.4g} Wh")
    history = pd.DataFrame(steps.rows, columns=HISTORY_COLUMNS)
    seen = tuple(hour * net.n_edges + np.array(path) for _, hour, path, *_ in steps.rows)
    counts = np.bincount(np.concatenate(seen), minlength=prior.n_arms)
    mean, variance = model.predict()
    last, deviation = tuple(environment.best_path(len(history)).tolist()), np.sqrt(variance)
    return NavigationRun(history, name, steps.message, seen, counts, environment.expected, mean, deviation, last, model)


def _initial_regression(kind: str, prior: Prior, known: Regression | None, rng: np.random.Generator) -> Regression:
    """Return the regression with which an agent starts: a new one from the prior, or a copy of ``known``."""
    # the memo keeps the prior shared instead of copied, which may be gigabytes
    model = new_regression(kind, prior) if known is None else deepcopy(known, {id(prior): prior})
    if isinstance(model, SparseGP):
        model.rng = rng  # the copy must draw batches from this run's seed, or the run would not repeat
    return model


def _stored_round(
    steps: Steps, row: dict[str, Any], oracle: ShortestPath, arms: IntArray, picks: IntArray, is_open: BoolArray
) -> tuple[IntArray, FloatArray]:
    """Return a checkpoint's arms and values of this round, (k,) each, instead of ``picks``; raise if not a path."""
    chosen, values = np.array(row["arms"], dtype=np.intp), np.array(row["values"])
    if len(chosen) != len(values):
        steps.file.raise_damaged(steps.number)
    path, n = chosen - arms[0], len(arms)
    # a turn from edge a to edge b is coded as n a + b
    legal = np.isin(n * path[:-1] + path[1:], oracle.net.connections[is_open[n:]] @ [n, 1]).all()
    is_path = [*path[:1], *path[-1:]] == [oracle.start, oracle.end]
    if not (is_path and legal and np.isin(chosen, arms[is_open[:n]]).all()):
        raise InputError(
            f"The path of round {steps.number} in the checkpoint {steps.file.path} is closed now or not a valid path. "
            "Resume with the same `closed`, or use another checkpoint file."
        )
    steps.file.warn_if_different(steps.number, picks.tolist())  # only warns, as rounding errors can change a choice
    return chosen, values


def new_regression(kind: str, prior: Prior) -> Regression:
    """Return a new regression with the given prior; ``kind`` is a key of `REGRESSIONS`."""
    return (LARGE_REGRESSIONS if isinstance(prior, LazyPrior) else REGRESSIONS)[kind](prior)


def parse_policy(policy: str | tuple[str, Rule | OptimisticRule]) -> tuple[str, str, Rule | OptimisticRule]:
    """Return the name of a policy, its regression (a key of `REGRESSIONS`) and its rule; raise if it is invalid."""
    if isinstance(policy, str):
        return policy, *POLICIES[_validate.choice(policy, "policy", POLICIES)]
    is_pair = isinstance(policy, tuple) and len(policy) == 2
    if not (is_pair and (isinstance(policy[1], Thompson) or callable(getattr(policy[1], "beta", None)))):
        names = ", ".join(map(repr, POLICIES))
        pair = "a tuple of a regression and a rule object, such as ('gp', BayesUCB())"
        raise InputError(f"`policy` must be one of {names}, or {pair}; got {policy!r}.")
    regression, rule = policy
    _validate.choice(regression, "policy[0]", REGRESSIONS)
    return f"{regression}, {rule}", regression, rule


def _describe_run(
    net: RoadNetwork,
    start: int | str,
    end: int | str,
    name: str,
    prior: Prior,
    expected: ArrayLike | None,
    closed: Closures,
    shift: ArrayLike | None,
    regression: Regression | None,
) -> dict[str, Any]:
    """Return the arguments of a run as a dict of plain values, which its checkpoint must match."""
    oracle, shut = ShortestPath(net, start, end), () if closed is None else closed
    own = {} if shift is None else {"shift": array_summary(_validate.array_of_length(shift, "shift", net.n_edges))}
    if regression is not None:
        options = {key: value for key, value in vars(regression).items() if isinstance(value, (int, float))}
        own["regression"] = {key: value for key, value in options.items() if key[0] != "_"}
        own["posterior"] = array_summary(*regression.predict())  # what it has learned
    if expected is not None:
        expected = _validate.real_array(expected, "expected", (prior.n_arms,))
    return {
        "policy": name,
        "net": array_summary(net.lengths, net.speed_limits, net.inclines, net.connections),
        "start": net.ids[oracle.start],
        "end": net.ids[oracle.end],
        "prior": array_summary(prior.mean, prior.variance, prior.rows([0])[0], prior.noise_variance),
        "expected": None if expected is None else array_summary(expected),
        "closed": "by a function" if callable(shut) else np.flatnonzero(net.closure_mask(shut)).tolist(),
        **own,
    }
