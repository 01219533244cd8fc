r"""How much is there to learn, and the bounds of Theorem 3.1 on the Bayesian regret.

From "Bayesian Analysis of Combinatorial Gaussian Process Bandits", sections 2.3 and 3.1, for finitely many arms.

===========  ====================  ================================================================================
symbol       name                  meaning
===========  ====================  ================================================================================
T            ``rounds``            number of rounds
K            ``size``              most arms in a super arm
\|A\|        ``n_arms``            number of base arms
γ_TK         ``gain``              largest information gain of T K observations, nats
ς²           ``noise_variance``    of an observation
λ*_K         ``eigenvalue``        largest eigenvalue of a posterior covariance of K arms
k_max        ``prior_variance``    largest prior variance of an arm
C_K          -                     2 (λ*_K + ς²)
===========  ====================  ================================================================================

.. math:: I(y; f) = \tfrac12 \log\det(I + K_{aa} / ς^2)

The three estimates of γ are a lower one (greedy), the upper one that follows from it (over 1 - 1/e, by submodularity),
and an upper one from the eigenvalues of the covariance; the smaller upper one counts.

**What the theorem does not cover.** Its additive constants hold for variances up to 1, and are multiplied by √k_max
here, as its proof then gives. It bounds the regret of unrectified agents in expected values; navigation rectifies both
the agents' indices and the costs that regret is counted in. The part on Thompson sampling takes super arms to be drawn
by their chance of being best: joint samples are, samples of each arm by itself, as in Algorithm 2, are not. K is the
size of the largest *allowed* super arm, more than the longest path that a run happens to take. And the paper's
experiments have ω = ξ = 1, while the bound of Bayes-UCB asks for ω > 1; its additive term stays constant for ξ > ω alone.
"""

import math

import numpy as np

from .. import _validate
from ..errors import InputError
from .exact import WINDOW, ExactGP
from .policies import UCB, BayesUCB, Thompson

GREEDY_SHARE = 1 - 1 / math.e  # of the largest gain, at least


def information_gain(prior, rounds):
    """Return how much the observations of a run tell about the arms, after each round.

    Parameters
    ----------
    prior : Prior
    rounds : sequence of array_like of int
        Arms observed in each round, such as `NavigationRun.arms`.

    Returns
    -------
    ndarray, shape (T,)
        Nats, rising.

    Examples
    --------
    >>> from emsopt.bandits import Prior
    >>> information_gain(Prior([0.0, 0.0], [[3.0, 0.0], [0.0, 1.0]], 1.0), [[0], [1]]).round(4).tolist()
    [0.6931, 1.0397]
    """
    gp, gains = ExactGP(prior), []
    for arms in rounds:
        covariance = gp.covariance(arms) / prior.noise_variance
        gains.append(0.5 * np.linalg.slogdet(np.eye(len(covariance)) + covariance)[1])
        gp.update(arms, np.zeros(len(arms)))  # what was seen does not matter, only where
    return np.cumsum(gains)


def greedy_gain(prior, steps):
    """Choose arms one by one where least is known, and return the information gained.

    At least 1 - 1/e of the largest gain of as many observations. An arm may be chosen again.

    Parameters
    ----------
    prior : Prior
    steps : int
        T K.

    Returns
    -------
    gain : ndarray, shape (steps,)
        After each choice, nats.
    chosen : ndarray of int, shape (steps,)
    """
    from scipy.linalg.blas import dsyrk

    steps = _validate.whole_number(steps, "steps")
    covariance = np.array(prior.covariance, order="F")  # its lower triangle is brought up to date
    variance = np.diag(covariance).copy()
    window = np.empty((WINDOW, prior.n_arms))  # posterior = covariance - windowᵀ window
    gain, chosen, filled = np.empty(steps), np.empty(steps, dtype=np.intp), 0
    for t in range(steps):
        k = chosen[t] = variance.argmax()
        gain[t] = 0.5 * math.log1p(variance[k] / prior.noise_variance)
        column = np.concatenate([covariance[k, :k], covariance[k:, k]]) - window[:filled, k] @ window[:filled]
        window[filled] = column / math.sqrt(variance[k] + prior.noise_variance)
        variance = np.maximum(variance - window[filled] ** 2, 0.0)
        filled += 1
        if filled == WINDOW:
            covariance = dsyrk(-1.0, window.T, beta=1.0, c=covariance, overwrite_c=1, lower=1)
            filled = 0
    return gain.cumsum(), chosen


def spectral_gain(prior, steps):
    """Return an upper bound on the largest information gain of some numbers of observations.

    Sharing n observations among arms changes the eigenvalues of K by at most as much as sharing them among its
    eigenvectors would, and the best such sharing is known: as water fills a vessel.

    Parameters
    ----------
    prior : Prior
    steps : array_like of int
        Numbers of observations.

    Returns
    -------
    ndarray, shaped as ``steps``
        Nats.
    """
    from scipy.linalg import eigvalsh

    steps = _validate.real_array(steps, "steps", np.shape(steps), low=1)
    values = eigvalsh(prior.covariance)[::-1]
    floor = prior.noise_variance / values[values > 1e-12 * values[0]]  # rising: the bottom of the vessel
    # the level at which the first r cells just reach the next one, and how much water that takes
    cells = np.arange(1, len(floor) + 1)
    needed = cells * floor - np.cumsum(floor)
    r = np.searchsorted(needed, steps, side="right")
    level = (steps + np.cumsum(floor)[r - 1]) / r
    logs = np.cumsum(np.log(floor))
    return 0.5 * (r * np.log(level) - logs[r - 1])


def largest_eigenvalue(prior, size):
    """Return a bound on λ*_K: the largest eigenvalue that a posterior covariance of so many arms can have.

    No posterior exceeds the prior, whose eigenvalues on a few arms are below its largest one, and below the sum of the
    arms' variances.
    """
    from scipy.sparse.linalg import eigsh

    size = _validate.whole_number(size, "size", high=prior.n_arms)
    most = np.sort(np.diag(prior.covariance))[-size:].sum()
    if prior.n_arms < 3:
        return float(min(most, np.linalg.eigvalsh(prior.covariance)[-1]))
    start = np.random.default_rng(0).standard_normal(prior.n_arms)  # no eigenvector is orthogonal to it
    return float(min(most, eigsh(prior.covariance, k=1, v0=start, return_eigenvectors=False)[0]))


def regret_bound(rule, rounds, *, n_arms, size, gain, noise_variance, eigenvalue, prior_variance=1.0):
    """Return the bound of Theorem 3.1 on the Bayesian cumulative regret.

    Parameters
    ----------
    rule : UCB, BayesUCB or Thompson
        Bayes-UCB needs ω > 1.
    rounds : array_like of int
        T.
    n_arms, size : int
        |A| and K.
    gain : array_like, shaped as ``rounds``
        γ_TK: an upper bound on it, see `greedy_gain` and `spectral_gain`.
    noise_variance, eigenvalue, prior_variance : float
        ς², λ*_K and k_max.

    Returns
    -------
    ndarray, shaped as ``rounds``
        In the unit of the arms' values.

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
    if isinstance(rule, BayesUCB):
        return scale * _optimism_lost(rule, rounds) + _width(
            rule, rounds, n_arms, size, gain, eigenvalue + noise_variance
        )
    if isinstance(rule, UCB) and rule.factor != 1:
        msg = f"the theorem has β_t as it is, `factor` 1; got {rule.factor:g}."
        raise InputError(msg)
    width = _width(UCB(), rounds, n_arms, size, gain, eigenvalue + noise_variance)
    if isinstance(rule, UCB):
        return scale * math.pi**2 / 6 + width
    if isinstance(rule, Thompson):
        return scale * math.pi**2 / 3 + 2 * width
    msg = f"`rule` must be UCB, BayesUCB or Thompson; got {rule!r}."
    raise InputError(msg)


def _width(rule, rounds, n_arms, size, gain, half_constant):
    """Return √(C_K T K β_T γ_TK)."""
    return np.sqrt(2 * half_constant * rounds * size * rule.beta(rounds, n_arms) * gain)


def _optimism_lost(rule, rounds):
    """Return the lemma's bound on what Bayes-UCB loses where its optimism fails, for variances up to 1."""
    omega, ratio = rule.omega, rule.xi / rule.omega
    if omega <= 1:
        msg = f"the bound of Bayes-UCB needs omega above 1; got {omega:g}. It grows without limit towards 1."
        raise InputError(msg)
    constant = (math.sqrt(math.pi) * omega / math.sqrt(2 * math.e * (omega - 1))) ** (1 / omega)
    if ratio > 1:
        return np.full(rounds.shape, constant * ratio / (ratio - 1))
    return constant * (1 + np.log(rounds) if ratio == 1 else rounds ** (1 - ratio) / (1 - ratio))
