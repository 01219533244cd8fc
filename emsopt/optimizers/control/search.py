r"""`bocvs`: play a control problem until the budget is spent; the regrets of its plays.

From "Bayesian Optimization for Unknown Cost-Varying Variable Subsets with No-Regret Costs".

**Regret.** Play t controls set i_t at values x_t, which have the expected value E_{i_t}(x_t); c_i is the mean cost of
set i, and w the problem's ``worst`` value, 0 in the paper. Regret compares the plays with the best expected value v* of
all sets and with the cheapest set i_* whose best expected value is within the tolerance α (`ControlProblem.target`):

.. math:: R^f_T = \sum_t \big((1 - α)(v^* - w) - (E_{i_t}(x_t) - w)\big), \qquad
          R^c_T = \sum_t \max(c_{i_t} - c_{i_*}, 0), \qquad
          r_T = v^* - \max_{t \le T} E_{i_t}(x_t), \qquad
          R_T = \sum_t c_{i_t} (v^* - E_{i_t}(x_t))

R_T is the cost-varying regret of Tay et al. (2023), which weighs the loss of every play by its mean cost. R^f may be
negative, because a loss of α is tolerated.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ..._running.checkpoint import CheckpointFormat, are_numbers, array_summary, is_index, is_number, random_stream
from ..._running.loop import RunOptions, Steps, run_loop
from ...errors import InputError, _validate
from ...errors._types import Callback, FloatArray, PathLike, Progress, Rng
from ...problems.control.marginals import Empirical
from ...problems.control.problem import ControlProblem, Play, check_alpha
from .learners import LEARNERS

NODES = 2048  # points over which expected values are averaged, the same for v* and for every play

_CHECKPOINT_FORMAT = CheckpointFormat(
    "emsopt control run",
    "play",
    proposal_keys={"set": is_index, "x": are_numbers},
    result_keys={"point": are_numbers, "value": is_number, "cost": is_number},
)


@dataclass(frozen=True, eq=False, repr=False)
class ControlRun:
    """Outcome of a run on a control problem.

    Attributes
    ----------
    method, problem : str
        Names of the method and of the problem's objective.
    control_set, set_name : int, str
        Index and name of the recommended set: that of the play whose expected value has the largest posterior mean, or,
        with too few plays for a model, of the play with the largest observed value.
    x : ndarray, shape (k,)
        Recommended values of the variables in this set, each on [0, 1].
    inputs : dict of str to float
        The same values by the names of the variables. All other variables are left to chance.
    plays, spent, message : int, float, str
        Number of plays, their total cost, and why the run ended.
    history : DataFrame
        One row per play: its number ``play``, ``set``, ``x`` (tuple), ``value`` and ``cost`` observed, ``spent`` so
        far, ``phase`` and ``seconds`` since the start, and the columns that `with_regret` adds unless ``regret=False``.
    """

    method: str
    problem: str
    control_set: int
    set_name: str
    x: FloatArray
    inputs: dict[str, float]
    plays: int
    spent: float
    message: str
    history: pd.DataFrame

    def __repr__(self) -> str:
        inputs = ", ".join(f"{name} = {value:.4g}" for name, value in self.inputs.items())
        return (
            f"<ControlRun {self.method} on {self.problem}: control set {self.control_set} ({self.set_name}), "
            f"{inputs} on [0, 1]; {self.plays} plays cost {self.spent:.4g}; {self.message}>"
        )


def bocvs(
    problem: ControlProblem,
    method: str = "unknown-cost",
    *,
    budget: float,
    rng: Rng = None,
    alpha: float = 0.1,
    progress: Progress = False,
    callback: Callback | None = None,
    checkpoint: PathLike | None = None,
    time_limit: float | None = None,
    regret: bool = True,
    **options: Any,
) -> ControlRun:
    """Search for the set of variables to control, and their values, where every play has a cost.

    Parameters
    ----------
    problem : ControlProblem
    method : str
        "unknown-cost" (the paper's), "ucb-psq", "ts-psq", "ucb-cvs" or "etc-50": see `emsopt.optimizers.LEARNERS`.
    budget : float
        Maximum total cost of all plays.
    rng : int or Generator, optional
        Source of all randomness: the method, the uncontrolled variables, noise and costs. Play number t has the same
        random numbers under every method.
    alpha : float
        Tolerated loss, as a fraction of the difference between the best expected value and the problem's ``worst``.
        Used by the method "unknown-cost" and in the regrets.
    progress, callback, checkpoint, time_limit
        As in `emsopt.minimize`, with plays in place of evaluations, the learner in place of the optimizer and cost in
        place of their number. The problem and all options must be those of the checkpoint: a finished run cannot be
        extended.
    regret : bool
        Whether to compute expected values and regrets. If the problem has no ``set_values``, this takes a long search.
    **options
        ``exploration`` and ``halving`` for "unknown-cost", see `UnknownCost`.

    Examples
    --------
    >>> import emsopt as eo
    >>> run = eo.optimizers.bocvs(eo.problems.hill_control(), budget=10, rng=0)
    >>> run.spent <= 10, run.set_name, list(run.inputs)
    (True, 'all', ['x1', 'x2'])
    """
    _validate.instance(problem, "problem", ControlProblem, "emsopt.problems.ControlProblem")
    _validate.choice(method, "method", tuple(LEARNERS))
    budget = _validate.positive_number(budget, "budget")
    check_alpha(alpha)
    known = ("exploration", "halving") if method == "unknown-cost" else ()
    if unknown := sorted(options.keys() - set(known)):  # before a checkpoint is created
        raise InputError(f"{method!r} takes no option {unknown[0]!r}. Its options are {', '.join(known) or 'none'}.")
    with run_loop(
        _CHECKPOINT_FORMAT,
        lambda: _describe_run(problem, method, budget, alpha, options),
        RunOptions(rng, progress, callback, checkpoint, time_limit),
        message="the next play does not fit into the budget",
        total=max(1, int(budget)),  # a bar of whole units of cost
        unit="cost",
    ) as steps:
        seed = steps.file.seed
        learner = LEARNERS[method](problem, rng=random_stream(seed, 0), budget=budget, alpha=alpha, **options)
        for number in steps:
            i, x = learner.ask()
            phase = learner.phase  # before `tell`, which may change it
            if (filed := steps.stored_row) is None:
                play = problem.play(i, x, rng=random_stream(seed, number))  # the same under each method
            else:
                i, x, play = _stored_play(steps, filed, problem, i, x)
            if learner.spent + play.cost > budget:  # a cost is known only once the play is made
                break
            steps.write(set=int(i), x=x.tolist(), point=play.point.tolist(), value=play.value, cost=play.cost)
            learner.tell(i, x, play)
            row = i, tuple(x.tolist()), play.value, play.cost, learner.spent, phase
            steps.finish(row, learner, f"{number} plays", done=int(learner.spent))
    if not steps.rows:
        raise InputError(f"`budget` must pay for at least one play; the first one cost {play.cost:g}.")
    history = pd.DataFrame(steps.rows, columns=["play", "set", "x", "value", "cost", "spent", "phase", "seconds"])
    if regret:
        history = with_regret(history, problem, alpha)
    i, x = learner.recommend()
    inputs = {problem.objective.variables[k]: float(v) for k, v in zip(problem.control_sets[i], x, strict=True)}
    name, set_name = problem.objective.name, problem.set_names[i]
    return ControlRun(method, name, i, set_name, x, inputs, len(history), learner.spent, steps.message, history)


def _stored_play(
    steps: Steps, row: dict[str, Any], problem: ControlProblem, i: int, x: FloatArray
) -> tuple[int, FloatArray, Play]:
    """Return set, values and outcome of the play in a row of the checkpoint, in place of the proposed i and x."""
    proposed = int(i), x.tolist()
    try:
        i, x = problem.check_query(row["set"], row["x"])
        play = Play(np.reshape(row["point"], problem.dimension), row["value"], row["cost"])
    except ValueError:  # wrong shapes or numbers: the file is of another problem
        steps.file.raise_damaged(steps.number)
    steps.file.warn_if_different(steps.number, *proposed)
    return i, x, play


def _describe_run(
    problem: ControlProblem, method: str, budget: float, alpha: float, options: dict[str, Any]
) -> dict[str, Any]:
    """Return plain values that identify a run in its checkpoint: method, options and numbers of the problem."""
    nodes = problem.nodes(4)  # identifies the marginals
    numbers = [problem.costs, nodes, problem.objective.noise_free_value(nodes)]
    numbers += [X.values for X in problem.marginals if isinstance(X, Empirical)]
    return {
        "method": method,
        "budget": budget,
        "alpha": alpha,
        "options": repr(sorted(options.items())),
        "problem": problem.objective.name,
        "control_sets": [list(s) for s in problem.control_sets],
        "marginals": [type(X).__name__ for X in problem.marginals],
        "noise_sd": [problem.noise_sd, problem.cost_noise_sd],
        "worst": problem.worst,
        "numbers": array_summary(*numbers),
    }


def with_regret(history: pd.DataFrame, problem: ControlProblem, alpha: float = 0.1) -> pd.DataFrame:
    """Return the history of a run with the expected value of each play and the regrets after it as further columns.

    Columns: ``expected``, E_i(x) of a play, and ``quality_regret``, ``cost_regret``, ``simple_regret`` and
    ``weighted_regret``, which are R^f, R^c, r and R of the module's formulas for α = ``alpha``.
    """
    problem = problem.with_set_values()
    best = int(np.argmax(problem.set_values))
    optimum = problem.expected(best, problem.set_points[best], NODES)
    expected, sets = np.empty(len(history)), history["set"].to_numpy()
    for i in np.unique(sets).tolist():
        expected[sets == i] = problem.expected(i, np.array(history["x"][sets == i].tolist()), NODES)
    lost = (1 - alpha) * (optimum - problem.worst) - (expected - problem.worst)
    above = problem.costs[sets] - problem.costs[problem.target(alpha)]
    return history.assign(
        expected=expected,
        quality_regret=np.cumsum(lost),
        cost_regret=np.cumsum(np.maximum(above, 0)),
        simple_regret=optimum - np.maximum.accumulate(expected),
        weighted_regret=np.cumsum(problem.costs[sets] * (optimum - expected)),
    )
