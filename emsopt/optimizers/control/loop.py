"""`bocvs`: play a control problem until the budget is spent.

"Bayesian Optimization for Unknown Cost-Varying Variable Subsets with No-Regret Costs". A learner of `LEARNERS` asks,
the problem is played, the learner is told, as long as the next play fits into the budget.
"""

import time
from dataclasses import dataclass
from inspect import Parameter, signature

import numpy as np

from ... import _validate
from ..._running.checkpoint import RunFile, are_numbers, is_index, is_number, run_seed, summary
from ..._running.progress import shown
from ...errors import InputError
from ...problems.control._checks import check_alpha
from ...problems.control.marginals import Empirical
from ...problems.control.problem import ControlProblem, Play
from .learners import LEARNERS
from .regret import with_regret

_IN_A_ROW = {
    "kind": "emsopt control run",
    "step": "play",
    "asked": {"set": is_index, "x": are_numbers},
    "told": {"point": are_numbers, "value": is_number, "cost": is_number, "seconds": is_number},
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
        uninterrupted: the learner repeats its steps, plays are taken from the file. On another processor,
        where the learner may ask for another play, it learns from the one on file, with a `ResumeWarning`. One run at
        a time may write to a file.
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
    _validate.instance(problem, "problem", ControlProblem, "emsopt.problems.ControlProblem")
    _validate.choice(method, "method", tuple(LEARNERS))
    budget = _validate.positive_number(budget, "budget")
    if most_plays is not None:
        most_plays = _validate.whole_number(most_plays, "most_plays")
    if callback is not None and not callable(callback):
        raise InputError(f"`callback` must be a function of (the learner); got {callback!r}.")
    check_alpha(alpha)
    regret = _validate.truth(regret, "regret")
    _check_options(method, options)
    # a function differs by its name alone: its address does not last
    named = sorted((name, value.__qualname__ if callable(value) else value) for name, value in options.items())
    about = {"method": method, "budget": budget, "alpha": alpha, "options": repr(named)}
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
                    known = log.row(number)
                    if known is not None:
                        asked = int(i), x.tolist()
                        i, x, play = _on_file(log, number, known, problem)
                        log.compare(number, *asked)
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
                    rows.append((number, i, tuple(x.tolist()), play.value, play.cost, learner.spent, phase, seconds))
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


def _on_file(log, number, known, problem):
    """Return the set, the values and the outcome of a play on file."""
    try:
        i, x = problem.checked_query(known["set"], known["x"])
        play = Play(np.array(known["point"]), known["value"], known["cost"])
    except InputError:
        log.refuse(number)
    if len(play.point) != problem.dimension:
        log.refuse(number)
    return i, x, play


def _check_options(method, options):
    """Refuse options that a method does not take."""
    taken = set()
    for kind in LEARNERS[method].__mro__[:-1]:
        parameters = signature(kind.__init__).parameters.values()
        taken |= {p.name for p in parameters if p.kind is Parameter.KEYWORD_ONLY}
    taken -= {"rng", "budget", "alpha"}
    for name in options:
        if name not in taken:
            raise InputError(f"{method!r} takes no option {name!r}, but {', '.join(sorted(taken))}.")


def _history(rows):
    import pandas as pd

    columns = ["play", "set", "x", "value", "cost", "spent", "phase", "seconds"]
    return pd.DataFrame(rows, columns=columns)


def _stream(seed, number):
    """Return the source of randomness of a play; number 0 is the learner's."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(number,)))


def _described(problem):
    """Return what a checkpoint must agree on about a problem."""
    nodes = problem.nodes(4)  # by which the marginals are told apart, too
    numbers = [problem.costs, nodes, problem.objective.exact(nodes)]
    numbers += [X.values for X in problem.marginals if isinstance(X, Empirical)]
    return {
        "problem": problem.name,
        "control_sets": [list(s) for s in problem.control_sets],
        "marginals": [type(X).__name__ for X in problem.marginals],
        "noise": [problem.noise_sd, problem.cost_noise_sd, problem.worst],
        "numbers": summary(*numbers),
    }
