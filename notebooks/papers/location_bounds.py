r"""Bounds on the regret of searches, of "Optimizing Server Locations in Spatial Queues".

The regret of evaluating deployment x is f(x) - f*, with f* the optimum; `emsopt.optimizers.empirical_regret` sums it
over a run. `sparbl_bound` and `gp_pm_bound` are Theorems 10 and 15 with the constants of their proofs (appendix D).

=========  ====================  =================================================================================
symbol     name                  meaning
=========  ====================  =================================================================================
f*         -                     smallest value, min
T, V       ``rounds``,           evaluations of SparBL; restarts of GP-pM
           ``restarts``
N, p       ``sites``, ``units``  candidate sites, units to place
D          -                     1 + N + N(N - 1)/2, features of SparBL
s_0        ``sparsity``          nonzero coefficients of the true function (Assumption 8)
W          ``norm``              bound on the sum of their absolute values (Assumption 8), min
σ, σ²      ``noise_sd``,         standard deviation (min) and variance (min²) of an evaluation's noise
           ``noise_variance``
C_HS       ``contraction``       how fast the posterior contracts (Lemma 20)
c          ``rate``              the design is bad with probability at most 2 exp(-c t) (Assumption 9)
t_0        ``start``             first round from which on Assumption 9 holds
δ          ``delta``             the bound fails with at most this probability
κ_V        ``gain``              largest information gain of V observations, (38)
k_max      ``prior_variance``    largest prior variance k(x, x), min²
=========  ====================  =================================================================================

**What the proofs leave open.** The proof of Theorem 10 shows that C_HS, c and t_0 exist, but gives no values: pass
them, and use only the shape of the bound, √T against T. Theorem 15 is explicit except for κ, which Lemma 25 gives as
O(2^N log V), without the constant. While V is far below 2^N, this exceeds by far what V
observations can hold (`largest_gain`). `greedy_gain` measures κ for a given kernel.

**Where the statements differ from the proofs,** this module follows the proofs:

- Theorem 10 omits the factor σ, the additive constant of the bad event, and that the *expected* regret is bounded.
  The proof applies Lemma 20, which holds from t_0 on, to every round; earlier rounds cost up to 2 W each.
- Theorem 15's C = 1 / log(1 + 1/σ²) needs k(x, x) <= 1; kernel (13) has 1 + exp(Σℓ/N), at least 2. With k_max,
  C = k_max / log(1 + k_max/σ²); ``prior_variance=1`` is C as printed.

**Limits of the theorems.** With exactly p units the features are dependent, Σ_j≠i x_i x_j = (p - 1) x_i. For
N - 1 <= 3 (p - 1) this direction lies in the cone of Assumption 9, which then fails for every sequence of deployments.
St. Paul, with N = 17 and p = 9, is such a case. Equation (59) uses the variance at each region's *centre* as the
information gained, but the region's *optimum* is observed: a centre that is never its region's optimum stays uncertain
and may be chosen forever. The bound holds if centres are observed. The theorem also assumes a known kernel and
amplitude, while GP-pM estimates them during the run.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from emsopt.errors import _validate
from emsopt.errors._types import ArrayLike, FloatArray, IntArray
from emsopt.errors import InputError
from .information import greedy_choices

if TYPE_CHECKING:
    from sklearn.gaussian_process.kernels import Kernel


def sparbl_bound(
    rounds: ArrayLike,
    sites: int,
    *,
    sparsity: int,
    contraction: float,
    noise_sd: float,
    norm: float = 0.0,
    rate: float | None = None,
    start: int = 1,
) -> FloatArray:
    """Return the bound of Theorem 10 on SparBL's expected cumulative regret, in minutes, in the form of its proof.

    It is 4 C_HS σ s_0 √(T log D) + Σ_t≥1 4 W exp(-c t) + 2 W min(T, t_0 - 1), the last term for the rounds before t_0.
    W = 0 omits the bad event, as the theorem's statement does; c is needed if W is above 0.

    >>> sparbl_bound([25, 100], 17, sparsity=10, contraction=1.0, noise_sd=0.1).round(1)
    array([44.9, 89.8])
    """
    rounds = _counts(rounds, "rounds")
    sites = _validate.whole_number(sites, "sites")
    sparsity = _validate.whole_number(sparsity, "sparsity")
    contraction = _validate.positive_number(contraction, "contraction")
    noise_sd = _validate.positive_number(noise_sd, "noise_sd", "min", zero=True)
    norm = _validate.positive_number(norm, "norm", "min", zero=True)
    start = _validate.whole_number(start, "start")
    features = 1 + sites + math.comb(sites, 2)
    bound = 4 * contraction * noise_sd * sparsity * np.sqrt(rounds * math.log(features))
    if norm > 0:
        if rate is None:
            raise InputError("`rate` (c of Assumption 9) is needed if `norm` is above 0. Pass it, or omit `norm`.")
        bound += 4 * norm / math.expm1(_validate.positive_number(rate, "rate"))
    return bound + 2 * norm * np.minimum(rounds, start - 1)


def gp_pm_bound(
    restarts: ArrayLike,
    sites: int,
    units: int,
    gain: ArrayLike,
    *,
    noise_variance: float,
    prior_variance: float = 1.0,
    delta: float = 0.05,
) -> FloatArray:
    """Return the bound (19) of Theorem 15 on GP-pM's average regret over restarts, √(8 C β_V κ_V / V), in minutes.

    It holds with probability at least 1 - δ; β_V = 2 log(π² V² (N choose p) / (6 δ)) and C = k_max / log(1 + k_max/σ²).
    The regret of a restart is that of its region's optimum.

    ``gain`` is κ_V, one number or one per entry of ``restarts``: at most `greedy_gain` divided by (1 - 1/e), and at
    most `largest_gain`; or `printed_gain`. ``prior_variance`` is the amplitude times k(x, x); 1 is C as printed, valid
    for k(x, x) <= 1 only.

    >>> gain = largest_gain([10, 100], 24310, noise_variance=0.01)
    >>> gp_pm_bound([10, 100], 17, 9, gain, noise_variance=0.01).round(1)
    array([12.1, 13.5])
    """
    restarts = _counts(restarts, "restarts")
    units = _validate.whole_number(units, "units")
    sites = _validate.whole_number(sites, "sites", low=units)
    gain = _validate.real_array(gain, "gain", np.shape(gain), unit="nats", low=0)
    noise_variance = _validate.positive_number(noise_variance, "noise_variance", "min²")
    prior_variance = _validate.positive_number(prior_variance, "prior_variance", "min²")
    delta = _validate.probability(delta, "delta")
    if gain.shape not in ((), restarts.shape):
        raise InputError(
            f"`gain` must be one number or have the shape of `restarts`, {restarts.shape}; got {gain.shape}."
        )
    beta = 2 * (np.log(math.pi**2 * restarts**2 / (6 * delta)) + math.log(math.comb(sites, units)))
    constant = prior_variance / math.log1p(prior_variance / noise_variance)
    return np.sqrt(8 * constant * beta * gain / restarts)


def greedy_gain(kernel: Kernel, points: ArrayLike, steps: int, *, noise_variance: float) -> tuple[FloatArray, IntArray]:
    """Choose points one by one where the posterior variance is largest, and return the information gained.

    The rule is (39) of the paper. The largest gain κ_t of t of these candidates lies between ``gain[t - 1]`` and
    ``gain[t - 1] / (1 - 1/e)``, (40). A point may be chosen again. Time O(steps² n), memory O(steps n).

    ``kernel`` is the prior covariance of the values; if a model has an amplitude beside its kernel, give their product.
    ``points``, shape (n, N), are all allowed deployments as rows of counts, or a sample of them. Returned are the
    information gained by the first 1, 2, ..., T = ``steps`` choices together, in nats, and the rows chosen, each (T,).
    """
    points = _validate.real_array(points, "points", (None, None))
    steps = _validate.whole_number(steps, "steps")
    noise = _validate.positive_number(noise_variance, "noise_variance")
    variance = np.array(kernel.diag(points), dtype=float)
    gains, chosen, *_ = greedy_choices(variance, lambda k: kernel(points, points[[k]])[:, 0], steps, noise)
    return gains.cumsum(), chosen


def largest_gain(steps: ArrayLike, points: int, *, noise_variance: float, prior_variance: float = 1.0) -> FloatArray:
    """Return a bound on κ_T, the largest information gain of T = ``steps`` observations, if k(x, x) <= k_max, in nats.

    For n points, such as N choose p, it is ½ r log(1 + T k_max / (r σ²)) with r = min(T, n), attained if the covariance
    has r equal eigenvalues. Unlike `printed_gain` it has no open constant. Up to T = n it turns (19) into 2 √(β_V
    k_max); larger T reduce the bound.
    """
    steps = _counts(steps, "steps")
    rank = np.minimum(steps, _validate.whole_number(points, "points"))
    noise_variance = _validate.positive_number(noise_variance, "noise_variance")
    prior_variance = _validate.positive_number(prior_variance, "prior_variance")
    return 0.5 * rank * np.log1p(steps * prior_variance / (rank * noise_variance))


def printed_gain(steps: ArrayLike, sites: int) -> FloatArray:
    """Return 2^N log T, the largest information gain κ_T of T observations as Lemma 25 prints it, in nats.

    While T is far below 2^N it exceeds what T observations can hold, see `largest_gain`; at T = 1 it is 0.
    """
    sites = _validate.whole_number(sites, "sites")
    return 2.0**sites * np.log(_counts(steps, "steps"))


def _counts(values: ArrayLike, name: str) -> FloatArray:
    """Return ``values`` as an array of floats; raise unless all are whole numbers of at least 1."""
    array = _validate.real_array(values, name, np.shape(values), low=1)
    if (array % 1 != 0).any():
        raise InputError(f"`{name}` must hold whole numbers; got {array[array % 1 != 0].flat[0]:g}.")
    return array
