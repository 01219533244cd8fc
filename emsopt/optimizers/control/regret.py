r"""Regret of runs on control problems, and comparison of a method's regret with its competitors'.

Play t controls set i_t at values x_t, which have the expected value E_{i_t}(x_t); c_i is the mean cost of set i. Regret
compares the plays with the best expected value v* of all sets and with the cheapest set i_* whose best expected value
is within the tolerance α (`ControlProblem.target`):

.. math:: R^f_T = \sum_t \big((1 - α)(v^* - w) - (E_{i_t}(x_t) - w)\big), \qquad
          R^c_T = \sum_t \max(c_{i_t} - c_{i_*}, 0), \qquad
          r_T = v^* - \max_{t \le T} E_{i_t}(x_t), \qquad
          R_T = \sum_t c_{i_t} (v^* - E_{i_t}(x_t))

R_T is the cost-varying regret of Tay et al. (2023), which weighs the loss of every play by its mean cost.
"Problem definition" and "Experiments" of "Bayesian Optimization for Unknown Cost-Varying Variable Subsets with
No-Regret Costs"; w is the problem's ``worst`` value, 0 in the paper. R^f may be negative, because a loss of α is
tolerated.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from ... import _validate
from ..._types import FloatArray
from ...errors import InputError
from ...problems.control.problem import ControlProblem

NODES = 2048  # points over which expected values are averaged, the same for v* and for every play


def with_regret(history: pd.DataFrame, problem: ControlProblem, alpha: float = 0.1) -> pd.DataFrame:
    """Return the history of a run with its expected values and regrets.

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
        One row per play. ``expected`` is E_i(x) of that play. ``quality_regret``, ``cost_regret``, ``simple_regret``
        and ``weighted_regret`` are R^f, R^c, r and R of the module's formulas, with T the number of plays so far.
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
        weighted_regret=np.cumsum(problem.costs[played] * (optimum - expected)),
    )


KEYS = ["objective", "costs", "variance"]


def control_verdicts(
    table: pd.DataFrame, ours: str = "unknown-cost", rivals: Sequence[str] | None = None
) -> pd.DataFrame:
    """Return, for each problem of a study, whether a method ends ahead of its best rival.

    One rule decides: the lower mean wins if the 95 % interval of the difference by Student's t excludes 0; otherwise
    they are tied. Runs of one seed meet the same random draws, so the difference is taken seed by seed.

    Parameters
    ----------
    table : DataFrame
        As `emsopt.datasets.load_study` returns "bocvs", or some of its rows.
    ours : str
        The method to judge.
    rivals : sequence of str, optional
        Methods to compare it with. Default: all others.

    Returns
    -------
    DataFrame
        Indexed by ``objective, costs, variance``, in the order of the table: mean simple regret at the largest cost
        (``ours``), its standard error over the seeds (``error``), the rival with the lowest mean (``rival``), its mean
        and error (``theirs``, ``their_error``), by how much ours is lower (``lead``, ``lead_error``), and the
        ``verdict`` on ``ours``: "win", "tie" or "loss". With one seed there is no error (NaN), and every verdict is
        "tie".

    Examples
    --------
    >>> import emsopt as eo
    >>> study = eo.datasets.load_study("bocvs")
    >>> eo.optimizers.control_verdicts(study)["verdict"].value_counts().to_dict()
    {'tie': 16, 'win': 4}
    """
    from scipy.special import stdtrit

    _validate.columns(table, [*KEYS, "method", "seed", "cost", "simple_regret"], "table", "load_study('bocvs')")
    methods = table["method"].unique().tolist()
    _validate.choice(ours, "ours", tuple(methods))
    others = [name for name in methods if name != ours]
    for name in rivals or ():
        _validate.choice(name, "rivals", tuple(others))
    if not others:
        raise InputError(f"`table` must have at least two methods to compare; it has only {ours!r}.")
    last = table[table["cost"] == table["cost"].max()]
    ends = last.groupby([*KEYS, "seed", "method"], sort=False)["simple_regret"].mean().unstack("method")
    seeds = ends.groupby(level=KEYS, sort=False)
    mean, error = seeds.mean(), seeds.sem()
    rival = mean[list(rivals or others)].idxmin(axis=1)

    def of_rival(values: pd.DataFrame) -> FloatArray:
        named = rival.loc[[key[:3] for key in values.index]]
        return values.to_numpy()[np.arange(len(values)), values.columns.get_indexer(pd.Index(named))]

    lead = (of_rival(ends) - ends[ours]).groupby(level=KEYS, sort=False)
    result = pd.DataFrame({"ours": mean[ours], "error": error[ours], "rival": rival})
    result["theirs"], result["their_error"] = of_rival(mean), of_rival(error)
    result["lead"], result["lead_error"] = lead.mean(), lead.sem()
    clear = result["lead"].abs() > stdtrit(lead.count() - 1, 0.975) * result["lead_error"]
    result["verdict"] = np.where(clear, np.where(result["lead"] > 0, "win", "loss"), "tie")
    return result


def control_regrets(table: pd.DataFrame) -> pd.DataFrame:
    """Return quality and cost regret at the end of a study's runs: in total, per play and per unit of cost.

    A method that plays cheap sets makes more plays for the same money. Totals, which add up over plays, are therefore
    larger even if every single play loses less.

    Parameters
    ----------
    table : DataFrame
        As `emsopt.datasets.load_study` returns "bocvs", or some of its rows.

    Returns
    -------
    DataFrame
        Indexed by ``objective, costs, variance, method``, in the order of the table. Each pair of columns holds the
        mean over the seeds and its standard error ("mean", "error") of one of ``plays``, ``quality_regret``,
        ``quality_per_play``, ``quality_per_cost``, ``cost_regret``, ``cost_per_play``, ``cost_per_cost``.

    Examples
    --------
    >>> import emsopt as eo
    >>> study = eo.datasets.load_study("bocvs").query("objective == 'plant'")
    >>> list(eo.optimizers.control_regrets(study).columns.get_level_values(0).unique())
    ['plays', 'quality_regret', 'quality_per_play', 'quality_per_cost', 'cost_regret', 'cost_per_play', 'cost_per_cost']
    """
    _validate.columns(
        table, [*KEYS, "method", "cost", "plays", "quality_regret", "cost_regret"], "table", "load_study('bocvs')"
    )
    ends = table[table["cost"] == table["cost"].max()].set_index([*KEYS, "method"])
    columns = {"plays": ends["plays"]}
    for kind in ("quality", "cost"):
        total = ends[f"{kind}_regret"]
        columns |= {f"{kind}_regret": total, f"{kind}_per_play": total / ends["plays"]}
        columns[f"{kind}_per_cost"] = total / ends["cost"]
    groups = pd.DataFrame(columns).groupby(level=[0, 1, 2, 3], sort=False)
    return groups.agg(["mean", "sem"]).rename(columns={"sem": "error"}, level=1)
