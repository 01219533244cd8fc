r"""Information gain, and the bounds of Theorems 3.1 and 3.2 on the Bayesian regret.

From "Bayesian Analysis of Combinatorial Gaussian Process Bandits", sections 2.3, 3.1 and 3.2.

===========  ====================  ===========================================================================
symbol       name                  meaning
===========  ====================  ===========================================================================
T            ``rounds``            number of rounds
K            ``size``              maximum number of arms in a super arm
\|A\|        ``n_arms``            number of base arms
γ_TK         ``gain``              largest information gain of T K observations, nats
ς²           ``noise_variance``    noise variance of an observation
λ*_K         ``eigenvalue``        largest eigenvalue of a posterior covariance of K arms
k_max        ``prior_variance``    largest prior variance of an arm
C_K          -                     2 (λ*_K + ς²)
τ_t, d       ``grid_points``       grid points per dimension in round t, and number of dimensions
===========  ====================  ===========================================================================

.. math:: I(y; f) = \tfrac12 \log\det(I + K_{aa} / ς^2)

There are three estimates of γ: a lower bound from greedy selection; this bound divided by 1 - 1/e, which is an
upper bound by submodularity; and an upper bound from the eigenvalues of the covariance. Use the smaller of
the two upper bounds. The paper's equation (4) takes the largest gain over *subsets* of at most T arms. With finitely
many arms it must be read as over T observations, in which an arm may come up repeatedly, as it does in a run.

**Infinitely many arms** (Theorem 3.2), in a cube of d dimensions: the bounds are those of Theorem 3.1 for a grid of
τ_t^d arms, plus π²/3 for rounding arms to the grid. The grid must be as fine as inequalities (6a) to (6d) say, see
`grid_points`.

**What the theorem does not cover.** Its additive constants hold for variances up to 1. For a largest variance k_max
the proof yields a factor √k_max, which is applied here for every k_max, also below 1. The theorem bounds the regret of
unrectified agents in expected values, whereas navigation rectifies both the agents' indices and the costs that define
regret. The part on Thompson sampling assumes that super arms are drawn with their probability of being best. This holds
for joint samples, but not if each arm is sampled independently, as in Algorithm 2. K is the size of the
largest *allowed* super arm, which exceeds the longest path taken in a run. The paper's experiments use ω = ξ
= 1, but the bound of Bayes-UCB requires ω > 1, and its additive term is constant only for ξ > ω.
"""

import math
from collections.abc import Sequence
from functools import partial

import numpy as np
from scipy.linalg import eigvalsh
from scipy.linalg.blas import dsyrk
from scipy.sparse.linalg import eigsh

from emsopt.errors import _validate
from emsopt.errors._types import ArrayLike, FloatArray, IntArray
from emsopt.errors import InputError
from .information import greedy_choices, information_gain
from emsopt.bandits.exact import WINDOW, ExactGP, symmetric_row
from emsopt.bandits.policies import UCB, BayesUCB, Rule, Thompson
from emsopt.bandits.prior import Prior


def cumulative_gain(prior: Prior, rounds: Sequence[Sequence[int] | IntArray]) -> FloatArray:
    """Return the information gain of a run's observations about the arms, after each round.

    ``rounds`` holds the arms observed in each of T rounds, such as `NavigationRun.arms`. The gains, (T,), are in nats.

    Examples
    --------
    >>> cumulative_gain(Prior([0.0, 0.0], [[3.0, 0.0], [0.0, 1.0]], 1.0), [[0], [1]]).round(4).tolist()
    [0.6931, 1.0397]
    """
    gp, gains = ExactGP(prior), []
    for arms in rounds:
        gains.append(information_gain(gp.covariance(arms), prior.noise_variance))
        gp.update(arms, np.zeros(len(arms)))  # the gain depends on the arms only, not on the values
    return np.cumsum(gains)


def greedy_gain(prior: Prior, steps: int) -> tuple[FloatArray, IntArray]:
    """Return the information about the arms gained by observing, step by step, the arm of largest posterior variance.

    Every observation is noisy, and an arm may be observed repeatedly. The gain after n steps is at least 1 - 1/e times
    the largest gain that any n observations can have.

    Parameters
    ----------
    prior : Prior
    steps : int
        Number of observations: T K for T rounds with K arms each.

    Returns
    -------
    gain, chosen : ndarray, shape (steps,)
        Total gain of all observations so far, after each step, nats, and the arm chosen.

    Examples
    --------
    >>> greedy_gain(Prior([0.0, 0.0], [[3.0, 0.0], [0.0, 1.0]], 1.0), 3)[0].round(3).tolist()
    [0.693, 1.04, 1.32]
    """
    steps = _validate.whole_number(steps, "steps")
    covariance = np.array(prior.covariance, order="F")  # only its lower triangle is updated
    variance, parts = np.diag(covariance), []
    for start in range(0, steps, WINDOW):
        size, column = min(WINDOW, steps - start), partial(symmetric_row, covariance)
        gains, chosen, factor, variance = greedy_choices(variance, column, size, prior.noise_variance)
        parts.append((gains, chosen))
        covariance = dsyrk(-1.0, factor.T, beta=1.0, c=covariance, overwrite_c=1, lower=1)
    gains, chosen = map(np.concatenate, zip(*parts, strict=True))
    return gains.cumsum(), chosen


def spectral_gain(prior: Prior, steps: ArrayLike) -> FloatArray:
    """Return an upper bound on the largest information gain for given numbers of observations.

    Allocating n observations to arms gains at most as much as allocating them to the eigenvectors of the prior
    covariance. The optimal allocation to eigenvectors is known: water-filling.

    ``steps`` are numbers of observations, and the result is shaped as these, in nats.

    Examples
    --------
    >>> spectral_gain(Prior([0.0, 0.0], [[3.0, 0.0], [0.0, 1.0]], 1.0), [1, 2]).round(3).tolist()
    [0.703, 1.06]
    """
    steps = _validate.real_array(steps, "steps", np.shape(steps), low=1)
    values = eigvalsh(prior.covariance)[::-1]
    floor = prior.noise_variance / values[values > 1e-12 * values[0]]  # increasing: floors of water-filling
    # amount of water at which the first r cells reach the floor of the next one
    cells = np.arange(1, len(floor) + 1)
    needed = cells * floor - np.cumsum(floor)
    r = np.searchsorted(needed, steps, side="right")
    level = (steps + np.cumsum(floor)[r - 1]) / r
    logs = np.cumsum(np.log(floor))
    return 0.5 * (r * np.log(level) - logs[r - 1])


def largest_eigenvalue(prior: Prior, size: int) -> float:
    """Return an upper bound on λ*_K, the largest eigenvalue of a posterior covariance of ``size`` arms.

    A posterior covariance is at most the prior covariance. The eigenvalues of the prior on a few arms are at
    most its largest eigenvalue and at most the sum of the arms' variances.

    Examples
    --------
    >>> largest_eigenvalue(Prior([0.0, 0.0], [[3.0, 0.0], [0.0, 1.0]], 1.0), 1)
    3.0
    """
    size = _validate.whole_number(size, "size", high=prior.n_arms)
    most = np.sort(np.diag(prior.covariance))[-size:].sum()
    if prior.n_arms < 3:
        return float(min(most, np.linalg.eigvalsh(prior.covariance)[-1]))
    start = np.random.default_rng(0).standard_normal(prior.n_arms)  # not orthogonal to any eigenvector
    return float(min(most, eigsh(prior.covariance, k=1, v0=start, return_eigenvectors=False)[0]))


def regret_bound(
    rule: Rule,
    rounds: ArrayLike,
    *,
    n_arms: int,
    size: int,
    gain: ArrayLike,
    noise_variance: float,
    eigenvalue: float,
    prior_variance: float = 1.0,
    infinite: bool = False,
) -> FloatArray:
    """Return an upper bound on the Bayesian cumulative regret, the expected regret under the prior, after T rounds.

    Theorem 3.1 or, with ``infinite``, Theorem 3.2 of "Bayesian Analysis of Combinatorial Gaussian Process Bandits",
    with the additive term multiplied by √k_max (the square root of ``prior_variance``), as the module's notes explain.

    Parameters
    ----------
    rule : UCB, BayesUCB or Thompson
        UCB needs ``factor`` 1, Bayes-UCB needs ω > 1.
    rounds : array_like of int
    n_arms, size : int
        ``|A|`` and K. With ``infinite``, ``|A|`` is ``grid_points(...) ** d`` of the last round.
    gain : array_like, shaped as ``rounds``
        Upper bound on γ_TK, nats: `spectral_gain`, or `greedy_gain` divided by 1 - 1/e.
    noise_variance, eigenvalue, prior_variance : float
        ς², λ*_K (bounded by `largest_eigenvalue`) and k_max.
    infinite : bool
        Whether a grid stands for a continuum of arms: adds π²/3.

    Returns
    -------
    ndarray, shaped as ``rounds``
        Bound in the unit of the arms' values.

    Examples
    --------
    >>> regret_bound(UCB(), 100, n_arms=50, size=3, gain=60.0, noise_variance=0.1, eigenvalue=2.0).round(0).item()
    1360.0
    """
    rounds = _validate.real_array(rounds, "rounds", np.shape(rounds), low=1)
    gain = _validate.real_array(gain, "gain", rounds.shape, unit="nats", low=0)
    n_arms, size = _validate.whole_number(n_arms, "n_arms"), _validate.whole_number(size, "size")
    noise_variance = _validate.positive_number(noise_variance, "noise_variance")
    eigenvalue = _validate.positive_number(eigenvalue, "eigenvalue")
    scale = math.sqrt(_validate.positive_number(prior_variance, "prior_variance"))
    if not isinstance(rule, Rule):
        raise InputError(f"`rule` must be UCB, BayesUCB or Thompson; got {rule!r}.")
    if isinstance(rule, UCB) and rule.factor != 1:
        raise InputError(f"The regret bound of UCB holds only for `factor` 1; got {rule.factor:g}.")
    beta = (UCB() if isinstance(rule, Thompson) else rule).beta(rounds, n_arms)
    width = np.sqrt(2 * (eigenvalue + noise_variance) * rounds * size * beta * gain)
    rounding = math.pi**2 / 3 if _validate.as_bool(infinite, "infinite") else 0.0
    if isinstance(rule, Thompson):
        return rounding + scale * math.pi**2 / 3 + 2 * width
    if isinstance(rule, UCB):
        return rounding + scale * math.pi**2 / 6 + width
    return rounding + scale * _optimism_lost(rule, rounds) + width


def grid_points(
    rule: Rule,
    t: int,
    *,
    dimensions: int,
    size: int,
    noise_variance: float,
    lipschitz: float,
    slopes: tuple[float, float],
) -> int:
    """Return the least number τ_t of grid points per dimension that satisfies inequalities (6a) to (6d).

    From "Bayesian Analysis of Combinatorial Gaussian Process Bandits", section 3.2, for arms in the unit cube (C_1 =
    1). The confidence parameter in (6b) and (6c) is that of a grid with τ_t points per dimension.

    Parameters
    ----------
    rule : UCB, BayesUCB or Thompson
        Thompson sampling takes the confidence parameter of UCB.
    t, dimensions, size : int
        Round t, number of dimensions d of an arm, maximum size K of a super arm.
    noise_variance : float
    lipschitz : float
        Lipschitz constant L of prior mean and covariance.
    slopes : (float, float)
        C_2 and C_3 of assumption (5): in each dimension the largest slope of a draw exceeds l with probability at most
        C_2 exp(-l²/C_3²).

    Examples
    --------
    >>> smooth = {"size": 2, "noise_variance": 0.1, "lipschitz": 1.0, "slopes": (2.0, 2.0)}
    >>> [grid_points(UCB(), t, dimensions=1, **smooth) for t in (1, 10)]
    [308, 12834482]
    """
    t, size = _validate.whole_number(t, "t"), _validate.whole_number(size, "size")
    d = _validate.whole_number(dimensions, "dimensions")
    noise = math.sqrt(_validate.positive_number(noise_variance, "noise_variance"))
    step = _validate.positive_number(lipschitz, "lipschitz") * d
    c2, c3 = (_validate.positive_number(value, "slopes") for value in slopes)
    slope = math.sqrt(max(math.log(c2 * d), 0.0)) + math.sqrt(math.pi) / 2
    least = max(2 * t**2 * size * step * (1 + t * size / noise), t**2 * size * d * c3 * slope)  # (6a), (6d): no β_t
    points, before = math.ceil(least), 0
    while points > before:  # β_t grows with the grid, but more slowly
        before = points
        beta = float((UCB() if isinstance(rule, Thompson) else rule).beta(t, points**d))
        b, c = 8 * t**4 * size**2 * step * beta, 8 * t**5 * size**3 * step**2 / noise**2 * beta
        points = max(points, math.ceil(b), math.ceil(math.sqrt(c)))
    return points


def _optimism_lost(rule: BayesUCB, rounds: FloatArray) -> FloatArray:
    """Return the additive term of Theorem 3.1 for Bayes-UCB, whose indices may not be optimistic, for k_max = 1."""
    omega, ratio = rule.omega, rule.xi / rule.omega
    if omega <= 1:
        raise InputError(f"The regret bound of Bayes-UCB holds only for `omega` above 1; got {omega:g}.")
    constant = (math.sqrt(math.pi) * omega / math.sqrt(2 * math.e * (omega - 1))) ** (1 / omega)
    if ratio > 1:
        return np.full(rounds.shape, constant * ratio / (ratio - 1))
    return constant * (1 + np.log(rounds) if ratio == 1 else rounds ** (1 - ratio) / (1 - ratio))
