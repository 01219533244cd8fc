r"""Exploration that Lemma 2 of "Bayesian Optimization for Unknown Cost-Varying Variable Subsets" asks for, as a number.

The full title ends "with No-Regret Costs". The theorems hide their constants; here they are the proofs' (appendix B). m
sets are played, τ times each in the exploration, T plays are made in all, and f has a norm of at most B in the space of
a kernel k(x, x) <= 1. The bounds of Theorems 1 and 3 are in ``benchmarks/bocvs_theory_study.py``.

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

from collections.abc import Callable

import numpy as np

from ... import _validate
from ..._types import ArrayLike, FloatArray

Gain = Callable[[ArrayLike], FloatArray]
ROUNDS, CLOSE = 40, 0.01  # largest number of improvements of the shares; excess of the bound that ends them earlier
GROWTH = 1.25  # between the numbers of plays at which gains are computed


def gain_bound(covariance: ArrayLike, most: int, noise_variance: float = 1.0) -> Gain:
    r"""Return an upper bound on the largest information gain γ_t of t plays on a finite set of points.

    γ_t = max ½ log det(I + K/λ) over t points, which may repeat. Shares of the plays in place of whole numbers make it
    a concave problem, whose value is at least γ_t; the slopes at any shares bound this value from above. γ_t falls with
    λ, so that the bound at λ = 1 holds for the λ = 1 + 2/T of Lemma 5, too.

    Parameters
    ----------
    covariance : array_like, shape (n, n)
        Prior covariance of the points.
    most : int
        Largest t.
    noise_variance : float
        λ.

    Returns
    -------
    callable
        Takes t, a number or an array, and returns the bound in nats: 0 at t = 0, and infinity far beyond ``most``.
        Between the values of t at which it was computed it takes the next larger one.

    Examples
    --------
    >>> gain = gain_bound([[1.0, 0.0], [0.0, 1.0]], 100)
    >>> round(float(gain(2)), 6), round(float(np.log(2.0)), 6)  # one play of each point
    (0.693147, 0.693147)
    """
    K = _validate.real_array(covariance, "covariance", (None, None))
    most = _validate.whole_number(most, "most")
    noise = _validate.positive_number(noise_variance, "noise_variance")
    values, vectors = np.linalg.eigh(K)
    kept = values > 1e-12 * values[-1]
    features = vectors[:, kept] * np.sqrt(values[kept])
    steps = int(np.ceil(np.log(most) / np.log(GROWTH)))
    grid = np.unique(np.ceil(GROWTH ** np.arange(steps + 1)).astype(int))
    share, bounds = np.full(len(K), 1 / len(K)), np.zeros(len(grid))
    for place, t in enumerate(grid):
        scale, best = t / noise, np.inf
        for _ in range(ROUNDS):
            precision = np.eye(features.shape[1]) + scale * (features.T * share) @ features
            slopes = scale * (features @ np.linalg.inv(precision) * features).sum(axis=1)
            reached = np.linalg.slogdet(precision)[1]
            best = min(best, reached + slopes.max() - share @ slopes)
            if best <= (1 + CLOSE) * reached:
                break
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
    delta: float = 0.1,
    printed: bool = False,
    most: int = 1_000_000,
) -> int | None:
    """Return the plays τ of every set after which only acceptable sets are feasible, by Lemma 2.

    Parameters
    ----------
    gap : float
        ε.
    sets : int
        m.
    gain : callable
        γ_t, as from `gain_bound`.
    norm, noise_sd, delta : float
        B, σ and δ.
    alpha : float
        α.
    printed : bool
        Whether to use the threshold as printed, ε / (2 - σ), in place of the mended ε / (2 (2 - α)).
    most : int
        Largest τ considered. It is also limited by the ``most`` of `gain_bound`.

    Returns
    -------
    int or None
        None if no τ up to ``most`` is enough.
    """
    threshold = gap / (2 - noise_sd) if printed else gap / (2 * (2 - alpha))
    t = np.arange(1, most + 1)
    beta = theorem_beta(sets * t, gain, norm=norm, noise_sd=noise_sd, delta=delta)
    enough = np.flatnonzero(beta * deviations(t, gain, sets, delta) / t <= threshold)
    return int(t[enough[0]]) if len(enough) else None
