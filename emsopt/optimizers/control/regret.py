r"""What a run on a control problem lost, and whether a method lost less than its rivals.

Beside the best expected value v* of all sets and the cheapest tolerable set i_* (`ControlProblem.target`), play by play:

.. math:: R^f_T = \sum_t \big((1 - α)(v^* - w) - (E_{i_t}(x_t) - w)\big), \qquad
          R^c_T = \sum_t \max(c_{i_t} - c_{i_*}, 0), \qquad
          r_T = v^* - \max_{t \le T} E_{i_t}(x_t)

"Problem definition" and "Experiments" of "Bayesian Optimization for Unknown Cost-Varying Variable Subsets with No-Regret
Costs", with w the ``worst`` value, 0 in the paper. R^f may fall below 0, as α is given away for free.
"""

import numpy as np

from ... import _validate
from ...errors import InputError
from ...problems.control.problem import ControlProblem

NODES = 2048  # points of the averages, of v* and of every play alike


def with_regret(history, problem, alpha=0.1):
    """Return the history of a run with columns ``expected``, ``quality_regret``, ``cost_regret``, ``simple_regret``.

    Parameters
    ----------
    history : DataFrame
        Of a `ControlRun`.
    problem : ControlProblem
        That it played. If it is not `solved`, that is done first and takes a while.
    alpha : float
        Tolerance in both regrets.

    Returns
    -------
    DataFrame
        One row a play; all but ``expected`` (E_i(x)) are sums or best values over the plays so far.

    Raises
    ------
    InputError
        If the history lacks a column or has sets that the problem has not, ``alpha`` is no share, or ``worst`` of the
        problem is not below its best value.
    """
    _validate.instance(problem, "problem", ControlProblem, "emsopt.problems.ControlProblem")
    _validate.columns(history, ["set", "x"], "history", "the history of a ControlRun")
    problem = problem.solved()
    best = int(np.argmax(problem.set_values))
    optimum = problem.expected(best, problem.set_points[best], NODES)
    expected = np.empty(len(history))
    for i, part in history.reset_index(drop=True).groupby("set"):
        expected[part.index] = problem.expected(i, np.array(part["x"].tolist()), NODES)
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

    Raises
    ------
    InputError
        If the table lacks a column, or the method or any rival.
    """
    keys = ["objective", "costs", "variance"]
    _validate.columns(table, [*keys, "method", "cost", "simple_regret"], "table", "load_study('bocvs')")
    methods = table["method"].unique().tolist()
    if ours not in methods or len(methods) == 1:
        msg = f"`ours` must be a method of the table, beside others; got {ours!r}, and the table has {', '.join(methods)}."
        raise InputError(msg)
    last = table[table["cost"] == table["cost"].max()]
    ends = last.groupby([*keys, "method"], sort=False)["simple_regret"].agg(["mean", "sem"]).unstack("method")
    mean, error = ends["mean"], ends["sem"]
    rival = mean.drop(columns=ours).idxmin(axis=1)
    result = mean[[ours]].set_axis(["ours"], axis=1).assign(error=error[ours], rival=rival)
    result["theirs"] = [mean.loc[key, name] for key, name in rival.items()]
    result["their_error"] = [error.loc[key, name] for key, name in rival.items()]
    apart = 2 * np.hypot(result["error"], result["their_error"])
    tied = result["ours"] - result["theirs"] <= apart
    result["verdict"] = np.where(result["ours"] <= result["theirs"], "lowest", np.where(tied, "tied", "behind"))
    return result
