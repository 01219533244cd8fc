"""Drive a route repeatedly and learn the path that needs the least energy.

The experiment of "Bayesian Analysis of Combinatorial Gaussian Process Bandits", section 4. The expected
energy of every road edge is drawn from the prior. The agent knows only the prior. In each round it observes
the energy of each edge on its path, with noise.

**Regret is rectified.** Expected energies can be negative (downhill, with recuperation), and those drawn from
the prior may even be negative in sum along a cycle, in which case no cheapest path exists. Algorithm 2
therefore uses rectified indices. Agents are compared with the best path under the same costs: the cost of an
edge is the rectified mean of its expected energy f, E[max(0, f + noise)]. The regret of a round is the cost
of the path taken minus that of the best path open in that round; it is never negative.

Where energies are well above the noise, as on most of a flat network, regret equals the difference in
expected energy. On a steep network it does not: in Monaco 41 % of the edges have a negative prior mean, and
74 % have one below two standard deviations of the noise. Energy recovered downhill does not count there, and
a path with more regret may need less energy. ``energy`` and ``expected_energy`` in the history are not
rectified.

**Volatile arms.** Roads may be closed in some rounds. With congestion by hour an arm is a road edge at an
hour, with the speed of that hour; each round is one hour, and the hours repeat in cycles.
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
"""Policies by name: a regression (exact or sparse Gaussian process, or independent edges) and a rule."""

_IN_A_ROW = {
    "kind": "emsopt bandit run",
    "step": "round",
    "asked": {"arms": are_indices},
    "told": {"values": are_numbers, "seconds": is_number},
}
TRUTH, NOISE, AGENT = range(3)  # the random streams derived from a run's seed


class Navigation:
    """The environment: a route through a road network, with energies per edge unknown to the agent.

    Parameters
    ----------
    net : RoadNetwork
    start, end : int or str
        Edges, by index or id.
    prior : Prior
        One arm per edge and hour, from `navigation_prior`.
    expected : array_like, shape (n,), optional
        Expected energy of every arm, Wh. Default: drawn from the prior.
    closed : array_like or callable, optional
        Closed edges as indices, ids or booleans; or a function of the round's number that returns them. The
        function is called once per round.
    seed : int
        Random seed of the drawn energies and the noise; they do not depend on the agent.
    """

    def __init__(self, net, start, end, prior, *, expected=None, closed=None, seed=0):
        hours, odd = divmod(prior.n_arms, net.n_edges)
        if odd:
            raise InputError(
                f"The number of arms of `prior` must be a multiple of the number of edges, {net.n_edges}; "
                f"it is {prior.n_arms}."
            )
        if expected is None:
            expected = prior.draw(rng=_stream(_validate.whole_number(seed, "seed", low=0), TRUTH))[:, 0]
        self.net, self.hours, self.seed = net, hours, seed
        self.expected = _validate.real_array(expected, "expected", (prior.n_arms,), unit="Wh")
        self._deviation = np.sqrt(prior.noise_variance)
        self.costs = rectified_mean(self.expected, self._deviation)
        self.oracle = ShortestPath(net, start, end)
        self._closed = closed if callable(closed) else self._open(() if closed is None else closed)
        self._best, self._open_in = {}, (None, None)  # the latest round and its open edges

    def available(self, t):
        """Return the arms of round t, one per edge, and which edges are open."""
        first = (t - 1) % self.hours * self.net.n_edges
        if callable(self._closed) and self._open_in[0] != t:
            self._open_in = t, self._open(self._closed(t))
        is_open = self._open_in[1] if callable(self._closed) else self._closed
        return np.arange(first, first + self.net.n_edges), is_open

    def observe(self, t, arms):
        """Return the observed energy of each given arm in round t, Wh."""
        noise = _stream(self.seed, NOISE, t).standard_normal(len(self.expected))
        return self.expected[arms] + self._deviation * noise[arms]

    def best(self, t):
        """Return the rectified cost of the best path in round t, Wh."""
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
        One row per round: its number ``round``, ``hour``, ``path`` (tuple of edge indices), observed
        ``energy`` and ``expected_energy`` of the path, ``regret``, ``cumulative_regret`` (all in Wh, regret
        rectified), and ``seconds`` since the start.
    policy : str
    message : str
        Why the run ended.
    arms : tuple of ndarray of int
        Arms of the path of each round. Without congestion by hour they are its edges.
    counts : ndarray of int, shape (n,)
        Number of observations of each arm.
    expected : ndarray, shape (n,)
        True expected energy of each arm, Wh.
    mean, deviation : ndarray, shape (n,)
        The agent's final posterior mean and standard deviation, Wh.
    best_path : tuple of int
        Edges of the path of least rectified cost in the last round. This path has no regret.
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
        """Rectified cumulative regret after the last round, Wh."""
        return float(self.history["cumulative_regret"].iloc[-1])

    @cached_property
    def visits(self):
        """Driven edges: DataFrame of ``edge``, ``first_round`` and ``visits``, summed over all hours."""
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
    """Let a policy drive from one road edge to another for a number of rounds.

    Parameters
    ----------
    net : RoadNetwork
    start, end : int or str
        Edges, by index or id.
    policy : str or (str, rule)
        One of `POLICIES`; or a pair of a regression, "gp", "svgp" or "bi", and a rule such as
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
    checkpoint : path-like, optional
        File to which each round is written. If it exists, the run resumes from it and yields the same result
        as an uninterrupted run; if ``rng`` is omitted, the stored seed is used. On another processor a policy
        may choose another path; the run then continues with the stored path and issues a `ResumeWarning`.
        Only one run at a time may write to a file.
    time_limit : float, optional
        Wall-clock limit in seconds, checked after each round. With a checkpoint, time spent before an
        interruption counts.
    **kernel
        Passed to `navigation_prior`: lengthscale, nu, kappa, share, spread, noise, congestion, vehicle.

    Returns
    -------
    NavigationRun
        ``message`` says why the run ended. Ctrl-C also ends it, as does a round after the first without an
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
    if callback is not None and not callable(callback):
        raise InputError(f"`callback` must be a function of one argument, a Round; got {callback!r}.")
    time_limit = np.inf if time_limit is None else _validate.positive_number(time_limit, "time_limit", "s")
    name, regression, rule = _policy(policy)
    if prior is not None and kernel:
        raise InputError(f"Pass either `prior` or kernel options, not both; got `prior` and {', '.join(kernel)}.")
    prior = navigation_prior(net, **kernel) if prior is None else prior
    _validate.instance(prior, "prior", Prior, "emsopt.bandits.Prior")
    problem = None if checkpoint is None else _describe(net, start, end, name, prior, expected, closed)
    with (
        RunFile(checkpoint, problem, run_seed(rng), **_IN_A_ROW) as log,
        shown(progress, horizon, "round") as show,
    ):
        environment = Navigation(net, start, end, prior, expected=expected, closed=closed, seed=log.seed)
        environment.best(1)  # raise at once if there is no path from start to end
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
        except NoWayError as error:  # keep the rounds before the closure
            if not rows:
                raise
            message = f"round {len(rows) + 1} has no open path: {error}"
        except KeyboardInterrupt:
            if not rows:
                raise
            message = "interrupted"
    return _finished(rows, name, message, environment, agent)


class _OnFile:
    """An environment and oracle that replay the rounds of a checkpoint and append later rounds to it."""

    def __init__(self, environment, log):
        self._environment, self._log = environment, log
        self._round, self._row = (), None
        self._clock, self.seconds = time.perf_counter(), 0.0

    def available(self, t):
        arms, is_open = self._environment.available(t)
        self._round = t, arms[0]
        return arms, is_open

    def oracle(self, indices, is_open):
        """Return the path stored for this round, or the cheapest path if none is stored."""
        t, first = self._round
        path = self._environment.oracle(indices, is_open)
        self._row = self._log.row(t)
        if self._row is None:
            return path
        filed = np.array(self._row["arms"], dtype=np.intp) - first
        if len(filed) != len(self._row["values"]):
            self._log.refuse(t)
        if not self._environment.oracle.allows(filed, is_open):
            raise InputError(
                f"The path of round {t} in the checkpoint {self._log.path} is closed now or not a valid "
                "path. Resume with the same `closed`, or name another file."
            )
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
    if not (isinstance(policy, tuple) and len(policy) == 2 and isinstance(policy[1], (Thompson, UCB, BayesUCB))):
        raise InputError(
            f"`policy` must be one of {', '.join(map(repr, POLICIES))}, or a regression and a rule such as "
            f"('gp', BayesUCB(xi=0.5)); got {policy!r}."
        )
    regression, rule = policy
    _validate.choice(regression, "policy[0]", REGRESSIONS)
    if regression == "svgp" and rule == Thompson(joint=True):
        raise InputError("Joint samples need the exact Gaussian process: use ('gp', Thompson(joint=True)).")
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
    """Return a generator for one purpose, independent of the run's other generators."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=purpose))


def _describe(net, start, end, name, prior, expected, closed):
    """Return the description of a run that a checkpoint must match."""
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
        "closed": "by a function" if callable(closed) else net.edges(() if closed is None else closed).tolist(),
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
