"""Drive a route repeatedly and learn the path that needs the least energy.

The experiment of "Bayesian Analysis of Combinatorial Gaussian Process Bandits", section 4. The expected
energy of every road edge is drawn from the prior. The agent knows only the prior. In each round it observes
the energy of each edge on its path, with noise.

**Regret is rectified.** Expected energies can be negative (downhill, with recuperation). Energies drawn from
the prior may even have a negative sum along a cycle, in which case no cheapest path exists. Algorithm 2
therefore uses rectified indices. Agents are compared with the best path under the same costs: the cost of an
edge is the rectified mean of its expected energy f, E[max(0, f + noise)]. The regret of a round is the cost
of the path taken minus that of the best path open in that round; it is never negative.

Where energies are well above the noise, as on most of a flat network, regret equals the difference in
expected energy. On a steep network it does not: in Monaco 41 % of the edges have a negative prior mean, and
74 % have a prior mean below two standard deviations of the noise. There, energy recovered downhill is ignored,
and a path with more regret may need less energy. ``energy`` and ``expected_energy`` in the history are not
rectified.

**Volatile arms.** Roads may be closed in some rounds. With congestion by hour, an arm is a road edge at one
hour of the day, driven at the speed of that hour. Each round is one hour, and the hours repeat in cycles.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from .. import _validate
from .._running.checkpoint import Form, are_indices, are_numbers, run_seed, stream, summary
from .._running.loop import RunOptions, Steps, loop
from .._types import ArrayLike, BoolArray, Callback, FloatArray, IntArray, PathLike, Progress, Rng
from ..errors import InputError, NoWayError
from ..roads.network import RoadNetwork
from .exact import ExactGP
from .framework import Round, ShortestPath
from .policies import UCB, Agent, BayesUCB, Rule, Thompson, rectified_mean
from .prior import Prior, navigation_prior
from .regression import IndependentArms, Regression
from .sparse import SparseGP

Closed: TypeAlias = Iterable[Any] | Callable[[int], Iterable[Any]] | None

REGRESSIONS: dict[str, type[Regression]] = {"gp": ExactGP, "svgp": SparseGP, "bi": IndependentArms}
RULES: dict[str, Rule] = {"ts": Thompson(), "bucb": BayesUCB(), "ucb": UCB()}
POLICIES = {f"{regression}-{rule}": (regression, RULES[rule]) for regression in REGRESSIONS for rule in RULES}
POLICIES["gp-ts-joint"] = ("gp", Thompson(joint=True))
"""Policies by name. A policy is a regression (exact or sparse Gaussian process, or independent edges) and a rule."""

COLUMNS = ["round", "hour", "path", "energy", "expected_energy", "regret", "cumulative_regret", "seconds"]
_FORM = Form("emsopt bandit run", "round", asked={"arms": are_indices}, told={"values": are_numbers})
TRUTH, NOISE, AGENT = range(3)  # the random streams derived from a run's seed


class Navigation:
    """The environment: a route through a road network, with energies per edge unknown to the agent.

    Parameters
    ----------
    net : RoadNetwork
    start, end : int or str
        First and last edge of the route, by index or id.
    prior : Prior
        One arm per edge and hour, from `navigation_prior`.
    expected : array_like, shape (n,), optional
        Expected energy of every arm, Wh. Default: drawn from the prior.
    closed : array_like or callable, optional
        Closed edges as indices, ids or booleans; or a function of the round's number that returns them. The
        function is called once per round, and again if an earlier round is asked for.
    rng : int or Generator, optional
        Source of randomness for the expected energies and the noise. Both are the same for every agent.
    """

    def __init__(
        self,
        net: RoadNetwork,
        start: int | str,
        end: int | str,
        prior: Prior,
        *,
        expected: ArrayLike | None = None,
        closed: Closed = None,
        rng: Rng = None,
    ) -> None:
        hours, odd = divmod(prior.n_arms, net.n_edges)
        if odd:
            raise InputError(
                f"`prior` must have one arm per edge and hour, a multiple of {net.n_edges}; got {prior.n_arms} arms."
            )
        self.net, self.hours, self.seed = net, hours, run_seed(rng)
        if expected is None:
            expected = prior.draw(rng=stream(self.seed, TRUTH))[:, 0]
        self.expected = _validate.real_array(expected, "expected", (prior.n_arms,), unit="Wh")
        self._deviation = np.sqrt(prior.noise_variance)
        self.costs = rectified_mean(self.expected, self._deviation)
        self.oracle = ShortestPath(net, start, end)
        always = self._open(() if closed is None or callable(closed) else closed)
        self._is_open = lru_cache(maxsize=1)(lambda t: self._open(closed(t)) if callable(closed) else always)
        self._best: dict[tuple[int, bytes], IntArray] = {}

    def available(self, t: int) -> tuple[IntArray, BoolArray]:
        """Return the arms of round t, one per edge, and one boolean per edge: whether it is open."""
        first = (t - 1) % self.hours * self.net.n_edges
        return np.arange(first, first + self.net.n_edges), self._is_open(t)

    def observe(self, t: int, arms: IntArray) -> FloatArray:
        """Return the observed energy of each given arm in round t, Wh."""
        noise = stream(self.seed, NOISE, t).standard_normal(len(self.expected))
        return self.expected[arms] + self._deviation * noise[arms]

    def best_path(self, t: int) -> IntArray:
        """Return the edges of the path of least rectified cost, E[max(0, f + noise)], among those open in round t."""
        arms, is_open = self.available(t)
        key = int(arms[0]), is_open.tobytes()
        if key not in self._best:
            self._best[key] = self.oracle(self.costs[arms], is_open)
        return self._best[key]

    def _open(self, closed: Iterable[Any]) -> BoolArray:
        is_open = np.ones(self.net.n_edges, dtype=bool)
        is_open[self.net.edges(closed, "closed")] = False
        return is_open


@dataclass(frozen=True, eq=False, repr=False)
class NavigationRun:
    """Outcome of `run`.

    Attributes
    ----------
    history : DataFrame
        One row per round: its number ``round``, ``hour``, ``path`` (tuple of edge indices), observed
        ``energy`` and ``expected_energy`` of the path, ``regret`` and ``cumulative_regret`` (all in Wh; regret is
        rectified, see the module's notes), and ``seconds`` since the start.
    policy : str
    message : str
        Why the run ended.
    arms : tuple of ndarray of int
        Arms of the path of each round. Without congestion by hour, these are the edges of the path.
    counts : ndarray of int, shape (n,)
        Number of observations of each arm.
    expected : ndarray, shape (n,)
        True expected energy of each arm, Wh.
    mean, deviation : ndarray, shape (n,)
        The agent's final posterior mean and standard deviation of each arm's expected energy, Wh.
    best_path : tuple of int
        Edges of the path of least rectified cost in the last round. The regret of this path is 0 by definition.
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

    @property
    def regret(self) -> float:
        """Rectified cumulative regret after the last round, Wh."""
        return float(self.history["cumulative_regret"].iloc[-1])

    @cached_property
    def visits(self) -> pd.DataFrame:
        """One row per driven edge: ``edge`` (its index), ``first_round``, and ``visits``.

        ``visits`` is the number of rounds in which the edge was driven, at any hour.
        """
        paths = self.history[["path", "round"]].explode("path").rename(columns={"path": "edge"})
        return paths.groupby("edge")["round"].agg(first_round="min", visits="count").reset_index().astype(int)

    def __repr__(self) -> str:
        return (
            f"<NavigationRun: {self.policy}, {len(self.history)} rounds, regret {self.regret:.4g} Wh, "
            f"{np.count_nonzero(self.counts)} arms seen; {self.message}>"
        )


def run(
    net: RoadNetwork,
    start: int | str,
    end: int | str,
    policy: str | tuple[str, Rule] = "gp-ts",
    *,
    horizon: int = 500,
    rng: Rng = None,
    closed: Closed = None,
    prior: Prior | None = None,
    expected: ArrayLike | None = None,
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
        ``BayesUCB(omega=1, xi=0.5)``.
    horizon : int
        Number of rounds T.
    rng : int or Generator, optional
        Source of all randomness. Runs with the same ``rng`` face the same energies and noise under every
        policy.
    closed : array_like or callable, optional
        Closed edges as indices, ids or booleans; or a function of the round's number that returns them. To
        resume from a checkpoint, the function must return the same edges for the same round.
    prior : Prior, optional
        From `navigation_prior`; pass one to share it between runs. Default: built from ``kernel``.
    expected : array_like, optional
        Expected energy of every arm, Wh. Default: drawn from the prior.
    progress : bool or callable
        Whether to show a progress bar, or a function called with (rounds done, horizon).
    callback : callable, optional
        Called with each `Round`, including those read from the checkpoint. The run stops if it returns True.
    checkpoint, time_limit
        As in `emsopt.minimize`, with rounds in place of evaluations.
    **kernel
        Passed to `navigation_prior`: lengthscale, nu, kappa, share, spread, noise_sd, congestion, vehicle.

    Returns
    -------
    NavigationRun
        ``message`` says why the run ended. The run also ends on Ctrl-C, or when a round after the first has no
        open path.

    Raises
    ------
    InputError
        If an option is invalid, there is no open path from start to end in the first round, or the checkpoint
        belongs to another run.

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
    name, regression, rule = _policy(policy)
    if prior is not None and kernel:
        raise InputError(f"Pass either `prior` or kernel options, not both; got `prior` and {', '.join(kernel)}.")
    prior = navigation_prior(net, **kernel) if prior is None else prior
    _validate.instance(prior, "prior", Prior, "emsopt.bandits.Prior")
    with loop(
        _FORM,
        lambda: _description(net, start, end, name, prior, expected, closed),
        RunOptions(rng, progress, callback, checkpoint, time_limit),
        message=f"horizon of {horizon} rounds reached",
        steps=horizon,
    ) as steps:
        seed = steps.file.seed
        environment = Navigation(net, start, end, prior, expected=expected, closed=closed, rng=seed)
        environment.best_path(1)  # raises immediately if there is no path from start to end
        agent_rng = stream(seed, AGENT)
        model = SparseGP(prior, rng=agent_rng) if regression == "svgp" else REGRESSIONS[regression](prior)
        agent = Agent(model, rule, sense="min", rectify=True, rng=agent_rng)
        total = 0.0
        for t in steps:  # as in `play`
            arms, is_open = environment.available(t)
            try:
                path = environment.oracle(agent.indices(t, arms), is_open)
            except NoWayError as error:  # the rounds before the closure are kept
                steps.message = f"round {t} has no open path: {error}"
                break
            chosen = arms[path]
            if (filed := steps.row) is None:
                values = environment.observe(t, chosen)
            else:
                chosen, values = _on_file(steps, filed, environment.oracle, arms, chosen, is_open)
            steps.write(arms=chosen.tolist(), values=values.tolist())
            agent.update(chosen, values)
            regret = environment.costs[chosen].sum() - environment.costs[arms[environment.best_path(t)]].sum()
            total += regret
            hour, edges = int(arms[0]) // net.n_edges, tuple((chosen - arms[0]).tolist())
            row = hour, edges, values.sum(), environment.expected[chosen].sum(), regret, total
            steps.finish(row, Round(t, chosen, values), f"regret {total:.4g} Wh")
    history = pd.DataFrame(steps.rows, columns=COLUMNS)
    seen = tuple(hour * net.n_edges + np.array(path) for _, hour, path, *_ in steps.rows)
    counts = np.bincount(np.concatenate(seen), minlength=prior.n_arms)
    mean, variance = model.predict()
    best, deviation = tuple(environment.best_path(len(history)).tolist()), np.sqrt(variance)
    truth = environment.expected
    return NavigationRun(history, name, steps.message, seen, counts, truth, mean, deviation, best)


def _on_file(
    steps: Steps, row: dict[str, Any], oracle: ShortestPath, arms: IntArray, asked: IntArray, is_open: BoolArray
) -> tuple[IntArray, FloatArray]:
    """Return the chosen arms and their values that are stored for this round, to be used instead of ``asked``.

    ``asked`` are the arms that the agent chooses now; warn if they differ. ``arms`` are all arms of the round, one per
    edge, and ``is_open`` marks the open ones. Raise unless the stored arms are a legal path of open ones.
    """
    chosen, values = np.array(row["arms"], dtype=np.intp), np.array(row["values"])
    if len(chosen) != len(values):
        steps.file.refuse(steps.number)
    path, n = chosen - arms[0], len(arms)
    legal = np.isin(n * path[:-1] + path[1:], oracle.net.connections @ [n, 1]).all()
    is_path = [*path[:1], *path[-1:]] == [oracle.start, oracle.end]
    if not (is_path and legal and np.isin(chosen, arms[is_open]).all()):
        raise InputError(
            f"The path of round {steps.number} in the checkpoint {steps.file.path} is closed now or not a valid path. "
            "Resume with the same `closed`, or use another checkpoint file."
        )
    steps.file.compare(steps.number, asked.tolist())
    return chosen, values


def _policy(policy: str | tuple[str, Rule]) -> tuple[str, str, Rule]:
    """Return the name, the regression and the rule of a policy."""
    if isinstance(policy, str):
        return policy, *POLICIES[_validate.choice(policy, "policy", POLICIES)]
    if not (isinstance(policy, tuple) and len(policy) == 2 and isinstance(policy[1], Rule)):
        names = ", ".join(map(repr, POLICIES))
        raise InputError(
            f"`policy` must be one of {names}, or a tuple of a regression and a rule object, such as ("
            f"'gp', BayesUCB()); got {policy!r}."
        )
    regression, rule = policy
    _validate.choice(regression, "policy[0]", REGRESSIONS)
    return f"{regression}, {rule}", regression, rule


def _description(
    net: RoadNetwork,
    start: int | str,
    end: int | str,
    name: str,
    prior: Prior,
    expected: ArrayLike | None,
    closed: Closed,
) -> dict[str, Any]:
    """Return what identifies a run, which a checkpoint must match.

    This is the policy, network, route, prior, expected energies if given, and closures. A function ``closed`` is stored
    only as the fact that there is one.
    """
    oracle, shut = ShortestPath(net, start, end), () if closed is None else closed
    if expected is not None:
        expected = _validate.real_array(expected, "expected", (prior.n_arms,))
    return {
        "policy": name,
        "net": summary(net.lengths, net.speed_limits, net.inclines, net.connections),
        "start": net.ids[oracle.start],
        "end": net.ids[oracle.end],
        "prior": summary(prior.mean, np.diag(prior.covariance), prior.covariance[0], prior.noise_variance),
        "expected": None if expected is None else summary(expected),
        "closed": "by a function" if callable(shut) else net.edges(shut).tolist(),
    }
