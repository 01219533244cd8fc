r"""Regrets of a study of control problems, who wins, and the exploration that Lemma 2 of their paper requires.

`control_verdicts` and `control_regrets` read the stored study, `emsopt.datasets.load_study` ("bocvs"), whose regrets
`emsopt.optimizers.control.search` defines.

**The exploration that Lemma 2 requires,** as a number. The theorems hide their constants; here they are the proofs'
(appendix B). m sets are played, τ times each in the exploration, T plays are made in all, and f has a norm of at most B
in the space of a kernel k(x, x) <= 1. The bounds of Theorems 1 and 3 are in ``benchmarks/bocvs_theory_study.py``.

=======  ==============  =========================================================================================
symbol   name            meaning
=======  ==============  =========================================================================================
T        ``plays``       number of plays, exploration included
τ, m     ``each``,       plays of every set in the exploration, number of sets
         ``sets``
γ_t      ``gain``        largest information gain of t plays, a function of t: `gain_bound`
B, σ     ``norm``,       bound on the norm of f; standard deviation of the noise on a value
         ``noise_sd``
δ        ``delta``       every event of the proofs fails with at most this probability
α, ε     ``alpha``,      tolerance; gap between (1 - α) times the best expected value and the best of a set that is
         ``gap``         not acceptable
=======  ==============  =========================================================================================

.. math:: β_t = B + σ \sqrt{2 (γ_{t-1} + 1 + \log(1/δ))}, \qquad
          A_n(s) = 2 \sqrt{4 (n + 2) γ_n} + s (4 \log(m/δ) + 8 \log 4 + 1)

**Where the paper's statements differ from its proofs,** this module follows what can be proven:

- Lemma 2 compares β_{mτ} A_τ(1) / τ with ε / (2 - σ). The last step of its proof needs α in place of σ, and the proof
  takes 2 β E[σ] for β E[σ] twice. Both mended, the threshold is ε / (2 (2 - α)).
- The proof of Theorem 3 ends with log(1/δ). Its statement has log(m/δ), which m sets need.
- Lemma 6, which A_n rests on, takes the model's noise variance λ as 1 + 2/T, whatever the noise is. For a larger λ it
  fails. The learners of this package take λ from the noise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd

from emsopt.errors import _validate
from emsopt.errors._types import ArrayLike, FloatArray
from emsopt.errors import InputError

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
    >>> control_verdicts(study)["verdict"].value_counts().to_dict()
    {'tie': 16, 'win': 4}
    """
    from scipy.special import stdtrit

    _validate.check_columns(table, [*KEYS, "method", "seed", "cost", "simple_regret"], "table", "load_study('bocvs')")
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
    >>> list(control_regrets(study).columns.get_level_values(0).unique())
    ['plays', 'quality_regret', 'quality_per_play', 'quality_per_cost', 'cost_regret', 'cost_per_play', 'cost_per_cost']
    """
    _validate.check_columns(
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


Gain = Callable[[ArrayLike], FloatArray]
ROUNDS, CLOSE = 40, 0.01  # largest number of improvements of the shares; excess of the bound that ends them earlier
DELTA, MOST_EACH = 0.1, 1_000_000  # of `exploration_needed`
GROWTH = 1.25  # between the numbers of plays at which gains are computed, as each takes long


def gain_bound(covariance: ArrayLike, most: int) -> Gain:
    r"""Return an upper bound on the largest information gain γ_t of t plays on a finite set of points.

    γ_t = max ½ log det(I + K/λ) over t points, which may repeat. Shares of the plays in place of whole numbers make it
    a concave problem, whose value is at least γ_t; the slopes at any shares bound this value from above. γ_t falls with
    λ, so that the bound at λ = 1 holds for the λ = 1 + 2/T of Lemma 5, too. The function that is returned takes t, a
    number or an array, and returns the bound in nats, infinity far beyond ``most``.
    """
    K = _validate.real_array(covariance, "covariance", (None, None))
    most = _validate.whole_number(most, "most")
    values, vectors = np.linalg.eigh(K)
    kept = values > 1e-12 * values[-1]  # the rest is rounding
    features = vectors[:, kept] * np.sqrt(values[kept])
    steps = int(np.ceil(np.log(most) / np.log(GROWTH)))
    grid = np.unique(np.ceil(GROWTH ** np.arange(steps + 1)).astype(int))
    share, bounds = np.full(len(K), 1 / len(K)), np.zeros(len(grid))
    for place, t in enumerate(grid):
        scale, best = float(t), np.inf
        for _ in range(ROUNDS):
            precision = np.eye(features.shape[1]) + scale * (features.T * share) @ features
            slopes = scale * (features @ np.linalg.inv(precision) * features).sum(axis=1)
            reached = np.linalg.slogdet(precision)[1]
            # the problem is concave: no shares gain more than the tangent, with all plays at the point of largest slope
            best = min(best, reached + slopes.max() - share @ slopes)
            if best <= (1 + CLOSE) * reached:
                break
            # a multiplicative update, which keeps the shares positive and, after division, their sum 1
            share = share * slopes / (share @ slopes)
        bounds[place] = best / 2
    bounds = np.minimum.accumulate(bounds[::-1])[::-1]  # γ_t rises with t

    def gain(t: ArrayLike) -> FloatArray:
        plays = np.asarray(t)
        return np.where(plays > 0, np.append(bounds, np.inf)[np.searchsorted(grid, plays)], 0.0)

    return gain


def theorem_beta(plays: ArrayLike, gain: Gain, *, norm: float, noise_sd: float, delta: float) -> FloatArray:
    """Return β_t = B + σ √(2 (γ_{t-1} + 1 + log(1/δ))) of Theorem 1 at t = ``plays``."""
    return norm + noise_sd * np.sqrt(2 * (gain(np.asarray(plays) - 1) + 1 - np.log(delta)))


def deviations(n: ArrayLike, gain: Gain, sets: int, delta: float, several: int = 1) -> FloatArray:
    """Return A_n(s), which bounds the sum of expected posterior deviations over n plays (Lemmas 6 and 7)."""
    n = np.asarray(n)
    return 2 * np.sqrt(4 * (n + 2) * gain(n)) + several * (4 * np.log(sets / delta) + 8 * np.log(4) + 1)


def exploration_needed(
    gap: float,
    sets: int,
    gain: Gain,
    *,
    norm: float,
    noise_sd: float,
    alpha: float = 0.1,
    printed: bool = False,
) -> int | None:
    """Return the plays τ of every set after which only acceptable sets are feasible, by Lemma 2.

    The module's table explains the symbols; ``gap`` is ε and ``gain`` is γ_t, as from `gain_bound`. ``printed`` uses
    the threshold as printed, ε / (2 - σ), in place of the mended ε / (2 (2 - α)); δ is 0.1. None if no τ up to a
    million is enough, which is also limited by the ``most`` of `gain_bound`.
    """
    threshold = gap / (2 - noise_sd) if printed else gap / (2 * (2 - alpha))
    t = np.arange(1, MOST_EACH + 1)
    beta = theorem_beta(sets * t, gain, norm=norm, noise_sd=noise_sd, delta=DELTA)
    enough = np.flatnonzero(beta * deviations(t, gain, sets, DELTA) / t <= threshold)
    return int(t[enough[0]]) if len(enough) else None
