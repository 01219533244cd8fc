"""Drive the same route again and again, and learn which way needs the least energy.

The experiment of "Bayesian Analysis of Combinatorial Gaussian Process Bandits", section 4: the expected energy of every
road edge is drawn from the prior, the agent knows the prior alone, and each round it sees what the edges of the path it
took have needed, with noise.

**Regret is rectified.** Expected energies can be negative (downhill, with recuperation), and those drawn from the prior
may even fall along a circle, so that no path is the cheapest: hence the rectified indices of Algorithm 2. What an agent
is measured by has to be what it could find if it knew all, so that the cost of an edge is the rectified mean of its
expected energy f here too, E[max(0, f + noise)]. Regret of a round is the cost of the path taken less that of the best
path open in that round; it is never negative.

Where energies are well above the noise, as on most of a flat network, that is the difference in expected energy. On a
steep one it is not: of Monaco's edges 41 % have a negative prior mean, and 74 % one below two standard deviations of the
noise. Energy won downhill does not count there, and a path of more regret may need less energy. ``energy`` and
``expected_energy`` in the history are not rectified.

**Volatile arms.** Roads may be closed in some rounds, and with congestion by hour (an hour a round, in turn) an arm is a
road edge at an hour, at the speed of that hour.
"""

import time
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .. import _validate
from .._running.checkpoint import RunFile, are_indices, are_numbers, is_number, run_seed, summary
from .._running.progress import shown
from ..errors import InputError, NoWayError
from ..roads.network import RoadNetwork
from .exact import ExactGP
from .framework import ShortestPath, play
from .independent import IndependentArms
from .policies import UCB, Agent, BayesUCB, Thompson, rectified_mean
from .prior import Prior, navigation_prior
from .sparse import SparseGP

REGRESSIONS = ("gp", "svgp", "bi")
RULES = {"ts": Thompson(), "bucb": BayesUCB(), "ucb": UCB()}
POLICIES = {f"{regression}-{rule}": (regression, RULES[rule]) for regression in REGRESSIONS for rule in RULES}
POLICIES["gp-ts-joint"] = ("gp", Thompson(joint=True))
"""Policies by name: a regression (exact Gaussian process, sparse one, independent edges) and a rule."""

_IN_A_ROW = {
    "kind": "emsopt bandit run",
    "step": "round",
    "asked": {"arms": are_indices},
    "told": {"values": are_numbers, "seconds": is_number},
}
TRUTH, NOISE, AGENT = range(3)  # what a run's seed is spent on


class Navigation:
    """The environment: a route through a road network whose edges need an energy that the agent does not know.

    Parameters
    ----------
    net : RoadNetwork
    start, end : int or str
        Edges, by index or id.
    prior : Prior
        One arm an edge and hour, from `navigation_prior`.
    expected : array_like, shape (n,), optional
        Expected energy of every arm in Wh; drawn from the prior if left out.
    closed : array_like or callable, optional
        Edges that cannot be used: indices, ids or truth values; or a function of the round's number that returns
        such, asked once a round.
    seed : int
        Decides the energies drawn and the noise, whatever the agent does.
    """

    def __init__(self, net, start, end, prior, *, expected=None, closed=None, seed=0):
        hours, odd = divmod(prior.n_arms, net.n_edges)
        if odd:
            msg = f"`prior` must have one arm for each of {net.n_edges} edges (times hours); it has {prior.n_arms}."
            raise InputError(msg)
        if expected is None:
            expected = prior.draw(rng=_stream(_validate.whole_number(seed, "seed", low=0), TRUTH))[:, 0]
        self.net, self.hours, self.seed = net, hours, seed
        self.expected = _validate.real_array(expected, "expected", (prior.n_arms,), unit="Wh")
        self._deviation = np.sqrt(prior.noise_variance)
        self.costs = rectified_mean(self.expected, self._deviation)
        self.oracle = ShortestPath(net, start, end)
        self._closed = closed if callable(closed) else self._open(() if closed is None else closed)
        self._best, self._open_in = {}, (None, None)  # the round last asked for, and what was open in it

    def available(self, t):
        """Return the arms of round t, one an edge, and which edges are open."""
        first = (t - 1) % self.hours * self.net.n_edges
        if callable(self._closed) and self._open_in[0] != t:
            self._open_in = t, self._open(self._closed(t))
        is_open = self._open_in[1] if callable(self._closed) else self._closed
        return np.arange(first, first + self.net.n_edges), is_open

    def observe(self, t, arms):
        """Return the energy that each of some arms needs in round t, Wh."""
        noise = _stream(self.seed, NOISE, t).standard_normal(len(self.expected))
        return self.expected[arms] + self._deviation * noise[arms]

    def best(self, t):
        """Return the cost of the best path in round t, rectified, Wh."""
        arms, _ = self.available(t)
        return self.costs[arms[self.best_path(t)]].sum()

    def best_path(self, t):
        """Return the edges of the path of least rectified cost in round t."""
        arms, is_open = self.available(t)
        key = int(arms[0]), is_open.tobytes()
        if key not in self._best:
            self._best[key] = self.oracle(self.costs[arms], is_open)
        return self._best[key]

    def _open(self, closed):
        is_open = np.ones(self.net.n_edges, dtype=bool)
        is_open[self.net.edges(closed, "closed")] = False
        return is_open


@dataclass(frozen=True, eq=False, repr=False)
class NavigationRun:
    """Outcome of `run`.

    Attributes
    ----------
    history : DataFrame
        One row a round: its number ``round``, ``hour``, ``path`` (tuple of edge indices), ``energy`` observed and
        ``expected_energy`` of the path, ``regret``, ``cumulative_regret`` (all Wh, regret rectified), and ``seconds``
        since the start.
    policy : str
    message : str
        Why the run ended.
    arms : tuple of ndarray of int
        Arms of the path of each round; without congestion by hour they are its edges.
    counts : ndarray of int, shape (n,)
        How often each arm was observed.
    expected : ndarray, shape (n,)
        True expected energy of each arm, Wh.
    mean, deviation : ndarray, shape (n,)
        What the agent believes at the end: posterior mean and standard deviation, Wh.
    best_path : tuple of int
        Edges of the path of least rectified cost in the last round, which has no regret.
    """

    history: object
    policy: str
    message: str
    arms: tuple
    counts: np.ndarray
    expected: np.ndarray
    mean: np.ndarray
    deviation: np.ndarray
    best_path: tuple

    @property
    def regret(self):
        """Cumulative regret at the end, Wh, rectified."""
        return float(self.history["cumulative_regret"].iloc[-1])

    @cached_property
    def visits(self):
        """Which road edges were driven: DataFrame of ``edge``, ``first_round`` and ``visits``, at any hour."""
        import pandas as pd

        paths = self.history[["path", "round"]].explode("path").rename(columns={"path": "edge"})
        table = paths.groupby("edge")["round"].agg(first_round="min", visits="count")
        return pd.DataFrame(table).reset_index().astype(int)

    def __repr__(self):
        return (
            f"<NavigationRun: {self.policy}, {len(self.history)} rounds, regret {self.regret:.4g} Wh, "
            f"{np.count_nonzero(self.counts)} arms seen; {self.message}>"
        )


def run(
    net,
    start,
    end,
    policy="gp-ts",
    *,
    horizon=500,
    rng=None,
    closed=None,
    prior=None,
    expected=None,
    progress=False,
    callback=None,
    checkpoint=None,
    time_limit=None,
    **kernel,
):
    """Let a policy drive from one road edge to another, round after round.

    Parameters
    ----------
    net : RoadNetwork
    start, end : int or str
        Edges, by index or id.
    policy : str or (str, rule)
        One of `POLICIES`; or a regression, "gp", "svgp" or "bi", and a rule such as ``BayesUCB(omega=1, xi=0.5)``.
    horizon : int
        Number of rounds, T.
    rng : int or Generator, optional
        Decides everything random. Runs of the same ``rng`` face the same energies and the same noise, whatever the
        policy.
    closed : array_like or callable, optional
        Edges that cannot be used: indices, ids or truth values; or a function of the round's number that returns
        such: the same ones for the same round, if a checkpoint is to be resumed.
    prior : Prior, optional
        From `navigation_prior`, to share between runs; made from ``kernel`` if left out.
    expected : array_like, optional
        Expected energy of every arm, Wh; drawn from the prior if left out.
    progress : bool or callable
        Show a bar, or call with (rounds done, horizon).
    callback : callable, optional
        Called with each `Round`, those on file included; the run stops if it returns True.
    checkpoint : path-like, optional
        File to which each round is written. If it exists the run goes on from there, to the result it would have had
        uninterrupted; with ``rng`` left out its seed is on file. On another processor, where a policy may
        choose another path, it learns from the one on file, with a `ResumeWarning`. One run at a time may write to a
        file.
    time_limit : float, optional
        Stop after the round in which so many seconds are up (of all attempts together, with a checkpoint).
    **kernel
        Passed to `navigation_prior`: lengthscale, nu, kappa, share, spread, noise, congestion, vehicle.

    Returns
    -------
    NavigationRun
        ``message`` says why the run ended. Ctrl-C ends it too, as does a later round without an open way.

    Raises
    ------
    InputError
        If an option is invalid, no open way leads from start to end in the first round, or the checkpoint is of another run.

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
    if callback is not None and not callable(callback):
        msg = f"`callback` must be a function of (a round); got {callback!r}."
        raise InputError(msg)
    time_limit = np.inf if time_limit is None else _validate.positive_number(time_limit, "time_limit", "s")
    name, regression, rule = _policy(policy)
    if prior is not None and kernel:
        msg = f"pass either `prior` or options of the kernel; got `prior` and {', '.join(kernel)}."
        raise InputError(msg)
    prior = navigation_prior(net, **kernel) if prior is None else prior
    _validate.instance(prior, "prior", Prior, "emsopt.bandits.Prior")
    problem = None if checkpoint is None else _describe(net, start, end, name, prior, expected, closed)
    with (
        RunFile(checkpoint, problem, run_seed(rng), **_IN_A_ROW) as log,
        shown(progress, horizon, "round") as show,
    ):
        environment = Navigation(net, start, end, prior, expected=expected, closed=closed, seed=log.seed)
        environment.best(1)  # a start without a way to the end is an error before anything else is done
        agent = _agent(regression, rule, prior, log.seed)
        logged = _OnFile(environment, log)
        rows, total, message = [], 0.0, f"horizon of {horizon} rounds reached"
        try:
            for step in play(agent, logged, logged.oracle, horizon):
                regret = environment.costs[step.arms].sum() - environment.best(step.number)
                total += regret
                rows.append(_row(environment, step, regret, total, logged.seconds))
                show(step.number, f"regret {total:.4g} Wh")
                if callback is not None and callback(step):
                    message = "stopped by the callback"
                    break
                if logged.seconds >= time_limit:
                    message = f"time limit of {time_limit:g} s reached"
                    break
        except NoWayError as error:  # of a closure that comes later: what was learnt before it is not lost
            if not rows:
                raise
            message = f"round {len(rows) + 1} has no open way: {error}"
        except KeyboardInterrupt:
            if not rows:
                raise
            message = "interrupted"
    return _finished(rows, name, message, environment, agent)


class _OnFile:
    """An environment and its oracle that answer from a checkpoint as far as it goes, and write down what follows."""

    def __init__(self, environment, log):
        self._environment, self._log = environment, log
        self._round, self._row = (), None
        self._clock, self.seconds = time.perf_counter(), 0.0

    def available(self, t):
        arms, is_open = self._environment.available(t)
        self._round = t, arms[0]
        return arms, is_open

    def oracle(self, indices, is_open):
        """Return the path on file, or else the cheapest one."""
        t, first = self._round
        path = self._environment.oracle(indices, is_open)
        self._row = self._log.row(t)
        if self._row is None:
            return path
        filed = np.array(self._row["arms"], dtype=np.intp) - first
        if len(filed) != len(self._row["values"]):
            self._log.refuse(t)
        if not self._environment.oracle.allows(filed, is_open):
            msg = (
                f"round {t} in the checkpoint {self._log.path} is of a path that is closed now, or that is none. "
                "Resume with the same `closed`, or name another file."
            )
            raise InputError(msg)
        self._log.compare(t, (first + path).tolist())
        return filed

    def observe(self, t, arms):
        if self._row is not None:
            self.seconds = self._row["seconds"]
            self._clock = time.perf_counter() - self.seconds
            return np.array(self._row["values"])
        values = self._environment.observe(t, arms)
        self.seconds = round(time.perf_counter() - self._clock, 6)
        self._log.add(t, arms=arms.tolist(), values=values.tolist(), seconds=self.seconds)
        return values


def _policy(policy):
    """Return the name, the regression and the rule of a policy."""
    if isinstance(policy, str):
        return policy, *POLICIES[_validate.choice(policy, "policy", tuple(POLICIES))]
    if not (
        isinstance(policy, tuple) and len(policy) == 2 and isinstance(policy[1], (Thompson, UCB, BayesUCB))
    ):
        msg = (
            f"`policy` must be one of {', '.join(map(repr, POLICIES))}, or a regression and a rule such as "
            f"('gp', BayesUCB(xi=0.5)); got {policy!r}."
        )
        raise InputError(msg)
    regression, rule = policy
    _validate.choice(regression, "policy[0]", REGRESSIONS)
    if regression == "svgp" and rule == Thompson(joint=True):
        msg = "joint samples need the exact Gaussian process: use ('gp', Thompson(joint=True))."
        raise InputError(msg)
    return f"{regression}, {rule}", regression, rule


def _agent(regression, rule, prior, seed):
    rng = _stream(seed, AGENT)
    if regression == "gp":
        model = ExactGP(prior)
    elif regression == "svgp":
        model = SparseGP(prior, rng=rng)
    else:
        model = IndependentArms(prior)
    return Agent(model, rule, sense="min", rectify=True, rng=rng)


def _stream(seed, *purpose):
    """Return the random numbers of a run for one purpose, which others do not disturb."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=purpose))


def _describe(net, start, end, name, prior, expected, closed):
    """Return what a checkpoint must agree on."""
    start, end = (net.ids[net.edges([edge], what)[0]] for edge, what in ((start, "start"), (end, "end")))
    return {
        "policy": name,
        "net": summary(net.lengths, net.speed_limits, net.inclines, net.connections),
        "start": start,
        "end": end,
        "prior": summary(prior.mean, np.diag(prior.covariance), prior.covariance[0], prior.noise_variance),
        "expected": None
        if expected is None
        else summary(_validate.real_array(expected, "expected", (prior.n_arms,), unit="Wh")),
        "closed": "by a function"
        if callable(closed)
        else net.edges(() if closed is None else closed).tolist(),
    }


def _row(environment, step, regret, total, seconds):
    edges = step.arms % environment.net.n_edges
    hour = int(step.arms[0]) // environment.net.n_edges
    expected = environment.expected[step.arms].sum()
    return step.number, hour, tuple(edges.tolist()), step.values.sum(), expected, regret, total, seconds


def _finished(rows, name, message, environment, agent):
    import pandas as pd

    columns = ["round", "hour", "path", "energy", "expected_energy", "regret", "cumulative_regret", "seconds"]
    history = pd.DataFrame(rows, columns=columns)
    arms = tuple(
        hour * environment.net.n_edges + np.array(path)
        for hour, path in zip(history["hour"], history["path"], strict=True)
    )
    counts = np.bincount(np.concatenate(arms), minlength=len(environment.expected))
    mean, variance = agent.regression.predict()
    best_path = tuple(environment.best_path(len(history)).tolist())
    expected, deviation = environment.expected, np.sqrt(variance)
    return NavigationRun(history, name, message, arms, counts, expected, mean, deviation, best_path)
