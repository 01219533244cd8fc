r"""BOKE and BOKE+: a kernel regression says where values are good, a kernel density where nobody has been.

Algorithms 2 and 3 of "Bayesian Optimization by Kernel Regression and Density-based Exploration".

======  ============================  ============================================================================
symbol  name                          meaning
======  ============================  ============================================================================
m, W    `KernelRegression`            regression (3.1) and density (3.9) of the t observed points, on the unit cube
h_t     `bandwidth`                   Scott's rule (5.1): ``scale`` · d · t^(-1/(d+4))
β_t     `exploration`                 2 ς² log(2 π² t² / (3 δ)), Theorem 4.13 with M_Ψ = 1
ς       ``noise_sd``                  noise constant, in standard deviations of the observed values
δ       ``CONFIDENCE``                probability at which the bound may fail
p       ``exploring``                 BOKE+: probability of a step by (3.12); the others are by (3.14)
======  ============================  ============================================================================

.. math:: x_{t+1} = \arg\max_x \; m_t(x) + \sqrt{β_t / W_t(x)} \quad (3.12), \qquad \arg\max_x m_t(x) \quad (3.14)

The paper states neither the factor in h_t nor ς, p and δ, and they decide the result. The defaults below come from
trials on functions that no study here reports; ``benchmarks/boke_training.py`` holds these and says what was tried.
The factor grows with d because points keep away from each other in many dimensions: of 60 random ones on the unit
cube, the next is 0.01 away for d = 1 and 0.4 for d = 6.

The maximum is searched for the logarithm of (3.12), less the smallest value told: the same maximiser, and no overflow
where W underflows.

An evaluation of (3.12) costs O(t d), and there is nothing to fit.

Limits. A weighted mean cannot point beyond the best value seen, so that the last digits come slowly: expect a good
region, not a polished optimum. Exploration grows like exp(u²/4) in the scaled distance u, and in many dimensions all
is far: then it goes to the corners first.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import _validate
from ..._types import FloatArray
from ...errors import InputError
from ...surrogates.kernel_regression import KERNELS, KernelRegression, condition, scott
from .base import BoxOptimizer
from .box import Function

if TYPE_CHECKING:
    import pandas as pd

SCALE = 0.05
NOISE_SD = 0.005
CONFIDENCE = 0.1
EXPLORING = 0.6
EMPTIEST = -1000.0  # log W below which emptier makes no difference
LOWEST = -300.0  # of the logarithm that is maximised: without exploration it is -inf at the worst point


class BOKE(BoxOptimizer):
    """Bayesian optimisation by kernel regression and density-based exploration, Algorithm 2.

    Parameters
    ----------
    f, bounds, integers, noisy, initial, rng
        As of `BoxOptimizer`.
    scale : float
        Factor of the bandwidth; see the table above.
    noise_sd : float
        ς: how much exploration counts, in standard deviations of the values.
    kernel : str
        "gaussian", "epanechnikov" or "uniform".

    Notes
    -----
    In a noise-free run a maximiser that has been evaluated already is replaced by the emptiest point (3.10). Points
    asked for and not yet observed count as if observed with the value that the regression expects, so that a batch spreads.
    """

    def __init__(
        self, f: Function, *, scale: float = SCALE, noise_sd: float = NOISE_SD, kernel: str = "gaussian", **options: Any
    ) -> None:
        super().__init__(f, **options)
        self.scale = _validate.positive_number(scale, "scale")
        self.noise_sd = _validate.positive_number(noise_sd, "noise_sd", zero=True)
        self.kernel = _validate.choice(kernel, "kernel", KERNELS)

    def surrogate(self) -> KernelRegression:
        """Return regression and density of what is known, values in standard deviations from their mean."""
        X, y = self.points, standardized(self.gains)
        h = bandwidth(len(y), X.shape[1], self.scale)
        model = condition(X, y, h, kernel=self.kernel)
        if len(waiting := self.pending):
            y = np.append(y, model.predict(waiting)[0])
            model = condition(np.vstack([X, waiting]), y, h, kernel=self.kernel)
        return model

    def _choose(self) -> Iterator[FloatArray]:
        model = self.surrogate()
        beta = exploration(len(model.y), self.noise_sd)
        yield self._climb(lambda x: log_upper_bound(model, beta, x))
        yield self._climb(lambda x: emptiness(model, x))


class BOKEPlus(BOKE):
    """BOKE+, Algorithm 3: with probability ``exploring`` a step of BOKE, else to the top of the regression alone.

    Parameters
    ----------
    f, scale, noise_sd, kernel, bounds, integers, noisy, initial, rng
        As of `BOKE`.
    exploring : float
        p, from 0 (excluded) to 1.
    """

    def __init__(self, f: Function, *, exploring: float = EXPLORING, **options: Any) -> None:
        super().__init__(f, **options)
        self.exploring = _validate.probability(exploring, "exploring")

    def _choose(self) -> Iterator[FloatArray]:
        if self.rng.random() >= self.exploring:
            model = self.surrogate()
            yield self._climb(lambda x: model.predict_with_slopes(x)[::2])
        yield from super()._choose()


def bandwidth(t: int, d: int, scale: float = SCALE) -> float:
    """Return h_t on the unit cube: Scott's rule (5.1) with the factor ``scale`` · d."""
    return scott(t, d, scale=scale * d)


def exploration(t: int, noise_sd: float = NOISE_SD, confidence: float = CONFIDENCE) -> float:
    """Return β_t of Theorem 4.13 for a Gaussian kernel, M_Ψ = 1."""
    return 2 * noise_sd**2 * float(np.log(2 * np.pi**2 * t**2 / (3 * confidence)))


def standardized(gains: FloatArray) -> FloatArray:
    """Return values in standard deviations from their mean, so that constants have no unit; equal ones are zeros."""
    if np.ptp(gains) == 0:  # their standard deviation may be a rounding error
        return np.zeros(len(gains))
    return (gains - gains.mean()) / gains.std()


def profile(optimizer: BOKE, n: int = 501) -> "pd.DataFrame":
    """Return what an optimizer of one input knows along that input, in the units of the values.

    Parameters
    ----------
    optimizer : BOKE or BOKEPlus
        With at least one observed value.
    n : int
        Points, evenly from the lowest to the highest.

    Returns
    -------
    DataFrame
        The index is x; columns: "mean", the regression; "bonus", √(β / W); "bound", what (3.12) maximises (with sense
        "min": minus the bonus, and smaller is better); "density", W.

    Raises
    ------
    InputError
        If it is of another method, has more than one input, or nothing is observed.
    """
    import pandas as pd

    if type(optimizer) not in (BOKE, BOKEPlus):
        got = type(optimizer).__name__
        raise InputError(f"`optimizer` must be a BOKE or BOKEPlus, whose bound is (3.12); got {got}.")
    if optimizer.space.dimension != 1 or not optimizer.values:
        got = f"{optimizer.space.dimension} inputs and {len(optimizer.values)} values"
        raise InputError(f"a profile needs an optimizer of one input with observed values; got {got}.")
    unit = np.linspace(0, 1, _validate.whole_number(n, "n", low=2))[:, None]
    model, gains = optimizer.surrogate(), optimizer.gains
    mean, log_density = model.predict(unit)
    scale, sign = gains.std() or 1.0, 1 if optimizer.better is max else -1
    beta = exploration(len(model.y), optimizer.noise_sd)
    bonus = scale * np.sqrt(beta) * np.exp(-np.maximum(log_density, EMPTIEST) / 2)
    mean = sign * (gains.mean() + scale * mean)
    columns = {"mean": mean, "bonus": bonus, "bound": mean + sign * bonus, "density": np.exp(log_density)}
    return pd.DataFrame(columns, index=pd.Index(optimizer.space.from_unit(unit)[:, 0], name="x"))


def emptiness(model: KernelRegression, x: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return -log W(x) and its slopes: largest where (3.10) wants the next point."""
    _, log_density, _, slope = model.predict_with_slopes(x)
    return -np.maximum(log_density, EMPTIEST), -slope


def log_upper_bound(model: KernelRegression, beta: float, x: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return log(m(x) - min y + √(β / W(x))) and its slopes: largest where (3.12) is."""
    mean, log_density, mean_slope, density_slope = model.predict_with_slopes(x)
    with np.errstate(divide="ignore"):
        lift = np.log(np.maximum(mean - model.y.min(), 0))
        bonus = 0.5 * (np.log(beta) - np.maximum(log_density, EMPTIEST))
    value = np.maximum(np.logaddexp(lift, bonus), LOWEST)
    rise, share = np.where(np.isfinite(lift), np.exp(-value), 0.0), np.exp(bonus - value)
    return value, rise[:, None] * mean_slope - 0.5 * share[:, None] * density_slope
