r"""`bocvs`: play a control problem until the budget is spent.

"Bayesian Optimization for Unknown Cost-Varying Variable Subsets with No-Regret Costs". What a run lost, play by play,
beside the best expected value v* of all sets and the cheapest tolerable set i_* (`ControlProblem.target`):

.. math:: R^f_T = \sum_t \big((1 - α)(v^* - w) - (E_{i_t}(x_t) - w)\big), \qquad
          R^c_T = \sum_t \max(c_{i_t} - c_{i_*}, 0), \qquad
          r_T = v^* - \max_{t \le T} E_{i_t}(x_t)

with w the ``worst`` value, 0 in the paper. R^f may fall below 0, as α is given away for free.
"""

import time
from dataclasses import dataclass

import numpy as np

from .. import _validate
from .._progress import shown
from .._run_file import RunFile, digest, run_seed
from ..errors import InputError
from ..problems.control import ControlProblem, Play
from ..problems.marginals import Empirical
from .control_learners import LEARNERS

REGRET_NODES = 2048  # points of the averages in regrets, of v* and of every play alike
_IN_A_ROW = {
    "kind": "emsopt control run",
    "step": "play",
    "asked": ("set", "x"),
    "told": ("point", "value", "cost", "seconds"),
}


@dataclass(frozen=True, eq=False, repr=False)
class ControlRun:
    """Outcome of a run on a control problem.

    Attributes
    ----------
    method : str
    control_set : int
        Recommended set: that of the play whose expected value the model holds for the largest in the end.
    x : ndarray, shape (k,)
        Values of its variables.
    plays : int
    spent : float
        Sum of all costs, at most the budget.
    message : str
        Why the run ended.
    history : DataFrame
        One row a play: its number ``play``, ``set``, ``x`` (tuple), ``value`` and ``cost`` observed, ``spent`` so far,
        ``phase``, ``seconds`` since the start; and unless they were declined ``expected`` (E_i(x)),
        ``quality_regret`` (R^f), ``cost_regret`` (R^c), ``simple_regret`` (r).
    """

    method: str
    control_set: int
    x: np.ndarray
    plays: int
    spent: float
    message: str
    history: object

    def __repr__(self):
        x = np.round(self.x, 4).tolist()
        return (
            f"<ControlRun {self.method}: set {self.control_set} at {x} after {self.plays} plays that cost "
            f"{self.spent:.4g}; {self.message}>"
        )


def bocvs(
    problem,
    method="unknown-cost",
    *,
    budget,
    rng=None,
    alpha=0.1,
    progress=False,
    callback=None,
    checkpoint=None,
    most_plays=None,
    regret=True,
    **options,
):
    """Search for the set of variables to control, and their values, by plays that cost.

    Parameters
    ----------
    problem : ControlProblem
    method : str
        "unknown-cost" (the paper's), "ucb-psq", "ts-psq", "ucb-cvs" or "etc-50": see `emsopt.optimizers.LEARNERS`.
    budget : float
        Most that all plays may cost together. The run ends when the next play would not fit.
    rng : int or Generator, optional
        Decides everything random: the method, the uncontrolled variables, noise and costs. Play number t meets the same
        luck whatever the method.
    alpha : float
        Tolerance of the method and of the regrets.
    progress : bool or callable
        Show a bar, or call with (cost spent, budget), both rounded down.
    callback : callable, optional
        Called with the learner after each play, those on file included; the run stops if it returns True.
    checkpoint : path-like, optional
        File to which each play is written. If it exists the run goes on from there, to the result it would have had
        uninterrupted: the learner repeats its steps, plays are taken from the file.
    most_plays : int, optional
        Stop after so many plays.
    regret : bool
        Whether to compute expected values and regrets. For a problem that is not `solved` that takes a long search.
    **options
        Of the learner, such as ``beta``, ``hyperparameters``, ``epsilon`` for "ucb-cvs".

    Returns
    -------
    ControlRun

    Raises
    ------
    InputError
        If an option is invalid, no play fits into the budget, or the checkpoint is of another run.

    Examples
    --------
    >>> import emsopt as eo
    >>> problem = eo.problems.hill_control()
    >>> run = eo.optimizers.bocvs(problem, budget=10, rng=0)
    >>> run.spent <= 10, run.message
    (True, 'the next play does not fit into the budget')
    """
    if not isinstance(problem, ControlProblem):
        msg = f"`problem` must be an emsopt.problems.ControlProblem; got {type(problem).__name__}."
        raise InputError(msg)
    _validate.choice(method, "method", tuple(LEARNERS))
    budget = _validate.positive_number(budget, "budget")
    if most_plays is not None:
        most_plays = _validate.whole_number(most_plays, "most_plays")
    if callback is not None and not callable(callback):
        msg = f"`callback` must be a function of (the learner); got {callback!r}."
        raise InputError(msg)
    about = {"method": method, "budget": budget, "alpha": alpha, "options": repr(sorted(options.items()))}
    total = max(1, int(budget))
    with RunFile(checkpoint, {**about, **_described(problem)}, run_seed(rng), **_IN_A_ROW) as log:
        learner = LEARNERS[method](problem, rng=_stream(log.seed, 0), budget=budget, alpha=alpha, **options)
        rows, message, clock = [], "the next play does not fit into the budget", time.perf_counter()
        with shown(progress, total, "cost") as show:
            try:
                while True:
                    number = len(rows) + 1
                    i, x = learner.ask()
                    phase = learner.phase
                    known = log.replay(number, int(i), x.tolist())
                    if known is not None:
                        play = Play(np.array(known["point"]), known["value"], known["cost"])
                        seconds = known["seconds"]
                        clock = time.perf_counter() - seconds
                    else:
                        play = problem.play(i, x, _stream(log.seed, number))
                        seconds = round(time.perf_counter() - clock, 6)
                    if learner.spent + play.cost > budget:
                        break
                    if known is None:
                        asked = {"set": int(i), "x": x.tolist(), "point": play.point.tolist()}
                        log.add(number, **asked, value=play.value, cost=play.cost, seconds=seconds)
                    learner.tell(i, x, play)
                    rows.append(
                        (number, i, tuple(x.tolist()), play.value, play.cost, learner.spent, phase, seconds)
                    )
                    show(int(learner.spent), f"{number} plays")
                    stop = callback is not None and callback(learner)
                    if number == most_plays:
                        message = f"{most_plays} plays made"
                    elif stop:
                        message = "stopped by the callback"
                    else:
                        continue
                    break
            except KeyboardInterrupt:
                if not rows:
                    raise
                message = "interrupted"
    if not rows:
        msg = f"`budget` must pay for at least one play; the first one cost {play.cost:g}, more than {budget:g}."
        raise InputError(msg)
    history = _history(rows)
    if regret:
        history = with_regret(history, problem, alpha)
    i, x = learner.recommend()
    return ControlRun(method, i, x, len(rows), learner.spent, message, history)


def with_regret(history, problem, alpha=0.1):
    """Return the history of a run with columns ``expected``, ``quality_regret``, ``cost_regret``, ``simple_regret``.

    Parameters
    ----------
    history : DataFrame
        Of a `ControlRun`.
    problem : ControlProblem
    alpha : float
        Tolerance in both regrets.
    """
    problem = problem.solved()
    best = int(np.argmax(problem.set_values))
    optimum = problem.expected(best, problem.set_points[best], REGRET_NODES)
    expected = np.empty(len(history))
    for i, part in history.reset_index(drop=True).groupby("set"):
        expected[part.index] = problem.expected(i, np.array(part["x"].tolist()), REGRET_NODES)
    lost = (1 - alpha) * (optimum - problem.worst) - (expected - problem.worst)
    above = problem.costs[history["set"].to_numpy()] - problem.costs[problem.target(alpha)]
    return history.assign(
        expected=expected,
        quality_regret=np.cumsum(lost),
        cost_regret=np.cumsum(np.maximum(above, 0)),
        simple_regret=optimum - np.maximum.accumulate(expected),
    )


def control_verdicts(table, ours="unknown-cost"):
    """Return, for each problem of a study, whether a method ended with the lowest simple regret.

    Parameters
    ----------
    table : DataFrame
        As `emsopt.datasets.load_study` returns "bocvs", or some of its rows.
    ours : str
        The method.

    Returns
    -------
    DataFrame
        Indexed by ``objective, costs, variance``, in the order of the table: mean simple regret at the largest cost
        (``ours``), its standard error over the seeds (``error``), the rival of the lowest mean (``rival``), its mean
        and error (``theirs``, ``their_error``), and the ``verdict``: "lowest", else "tied" if the means are within
        two standard errors of their difference, else "behind". One seed has no error (NaN) and ties nothing.
    """
    keys = ["objective", "costs", "variance"]
    last = table[table["cost"] == table["cost"].max()]
    ends = last.groupby([*keys, "method"], sort=False)["simple_regret"].agg(["mean", "sem"]).unstack("method")
    mean, error = ends["mean"], ends["sem"]
    rival = mean.drop(columns=ours).idxmin(axis=1)
    result = mean[[ours]].set_axis(["ours"], axis=1).assign(error=error[ours], rival=rival)
    result["theirs"] = [mean.loc[key, name] for key, name in rival.items()]
    result["their_error"] = [error.loc[key, name] for key, name in rival.items()]
    apart = 2 * np.hypot(result["error"], result["their_error"])
    tied = result["ours"] - result["theirs"] <= apart
    result["verdict"] = np.where(
        result["ours"] <= result["theirs"], "lowest", np.where(tied, "tied", "behind")
    )
    return result


def _history(rows):
    import pandas as pd

    columns = ["play", "set", "x", "value", "cost", "spent", "phase", "seconds"]
    return pd.DataFrame(rows, columns=columns)


def _stream(seed, number):
    """Return the source of randomness of a play; number 0 is the learner's."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(number,)))


def _described(problem):
    """Return what a checkpoint must agree on about a problem."""
    numbers = [problem.costs, *(X.values for X in problem.marginals if isinstance(X, Empirical))]
    numbers.append(problem.objective.exact(problem.nodes(4)))
    return {
        "problem": problem.name,
        "control_sets": [list(s) for s in problem.control_sets],
        "marginals": repr(problem.marginals),
        "noise": [problem.noise, problem.cost_noise, problem.worst],
        "numbers": digest(*(np.round(array, 9) for array in numbers)),
    }
