r"""Regret of runs on control problems, and comparison of a method's regret with its competitors'.

Play t controls set i_t at values x_t, which have the expected value E_{i_t}(x_t); c_i is the mean cost of set i. Regret
compares the plays with the best expected value v* of all sets and with the cheapest set i_* whose best expected value
is within the tolerance α (`ControlProblem.target`):

.. math:: R^f_T = \sum_t \big((1 - α)(v^* - w) - (E_{i_t}(x_t) - w)\big), \qquad
          R^c_T = \sum_t \max(c_{i_t} - c_{i_*}, 0), \qquad
          r_T = v^* - \max_{t \le T} E_{i_t}(x_t)

"Problem definition" and "Experiments" of "Bayesian Optimization for Unknown Cost-Varying Variable Subsets with
No-Regret Costs"; w is the problem's ``worst`` value, 0 in the paper. R^f may be negative, because a loss of α is
tolerated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ... import _validate
from ...errors import InputError
from ...problems.control.problem import ControlProblem

if TYPE_CHECKING:
    import pandas as pd

NODES = 2048  # points over which expected values are averaged, the same for v* and for every play


def with_regret(history: pd.DataFrame, problem: ControlProblem, alpha: float = 0.1) -> pd.DataFrame:
    """Return the history of a run with columns ``expected``, ``quality_regret``, ``cost_regret``, ``simple_regret``.

    Parameters
    ----------
    history : DataFrame
        History of a `ControlRun`.
    problem : ControlProblem
        The problem played. If it is not `solved`, it is solved first, which takes a while.
    alpha : float
        Tolerated loss α, as a fraction of v* - worst. It enters R^f directly and R^c through the choice of i_*.

    Returns
    -------
    DataFrame
        One row per play. ``expected`` is E_i(x) of that play. The other columns are R^f, R^c and r of the module's
        formulas, with T the number of plays so far.

    Raises
    ------
    InputError
        If the history lacks a column or has sets that the problem does not have, ``alpha`` is not in [0, 1), or
        ``worst`` of the problem is not below its best value.
    """
    _validate.instance(problem, "problem", ControlProblem, "emsopt.problems.ControlProblem")
    _validate.columns(history, ["set", "x"], "history", "the history of a ControlRun")
    problem = problem.solved()
    best = int(np.argmax(problem.set_values))
    optimum = problem.expected(best, problem.set_points[best], NODES)
    expected, played = np.empty(len(history)), history["set"].to_numpy()
    for i in np.unique(played).tolist():
        expected[played == i] = problem.expected(i, np.array(history["x"][played == i].tolist()), NODES)
    lost = (1 - alpha) * (optimum - problem.worst) - (expected - problem.worst)
    above = problem.costs[played] - problem.costs[problem.target(alpha)]
    return history.assign(
        expected=expected,
        quality_regret=np.cumsum(lost),
        cost_regret=np.cumsum(np.maximum(above, 0)),
        simple_regret=optimum - np.maximum.accumulate(expected),
    )


def control_verdicts(table: pd.DataFrame, ours: str = "unknown-cost") -> pd.DataFrame:
    """Return, for each problem of a study, whether a method ended with the lowest simple regret.

    Parameters
    ----------
    table : DataFrame
        As `emsopt.datasets.load_study` returns "bocvs", or some of its rows.
    ours : str
        The method to judge.

    Returns
    -------
    DataFrame
        Indexed by ``objective, costs, variance``, in the order of the table: mean simple regret at the largest cost
        (``ours``), its standard error over the seeds (``error``), the rival with the lowest mean (``rival``), its mean
        and error (``theirs``, ``their_error``), and the ``verdict``: "lowest"; else "tied" if the means are within two
        standard errors of their difference; else "behind". With one seed there is no error (NaN) and no tie.

    Raises
    ------
    InputError
        If the table lacks a column, the method, or any competitor.
    """
    keys = ["objective", "costs", "variance"]
    _validate.columns(table, [*keys, "method", "cost", "simple_regret"], "table", "load_study('bocvs')")
    methods = table["method"].unique().tolist()
    _validate.choice(ours, "ours", tuple(methods))
    if len(methods) == 1:
        raise InputError(f"`table` must have at least two methods to compare; it has only {ours!r}.")
    last = table[table["cost"] == table["cost"].max()]
    ends = last.groupby([*keys, "method"], sort=False)["simple_regret"].agg(["mean", "sem"]).unstack("method")
    mean, error = ends["mean"], ends["sem"]
    rival = mean.drop(columns=ours).idxmin(axis=1)
    result = mean[[ours]].set_axis(["ours"], axis=1).assign(error=error[ours], rival=rival)
    result["theirs"] = [mean.loc[key, name] for key, name in rival.items()]
    result["their_error"] = [error.loc[key, name] for key, name in rival.items()]
    tied = result["ours"] - result["theirs"] <= 2 * np.hypot(result["error"], result["their_error"])
    result["verdict"] = np.select([result["ours"] <= result["theirs"], tied], ["lowest", "tied"], "behind")
    return result
