r"""BOKE and BOKE+: kernel regression estimates the values, and kernel density measures how well a point is explored.

Algorithms 2 and 3 of "Bayesian Optimization by Kernel Regression and Density-based Exploration".

======  ============================  ============================================================================
symbol  name                          meaning
======  ============================  ============================================================================
m, W    `KernelRegression`            regression (3.1) and density (3.9) of the t observed points, on the unit cube
h_t     `bandwidth`                   Scott's rule (5.1): ``scale`` · d · t^(-1/(d+4))
β_t     `exploration`                 2 ς² log(2 π² t² / (3 δ)), Theorem 4.13 with kernel constant M_Ψ = 1
ς       ``noise_sd``                  noise level, in standard deviations of the observed values
δ       ``DELTA``                     probability that the bound fails
p       ``exploring``                 BOKE+: probability of a step by (3.12); otherwise (3.14)
======  ============================  ============================================================================

.. math:: x_{t+1} = \arg\max_x \; m_t(x) + \sqrt{β_t / W_t(x)} \quad (3.12), \qquad \arg\max_x m_t(x) \quad (3.14)

The paper specifies neither the factor in h_t nor ς, p and δ, although the results depend strongly on them. The defaults
below were tuned on training functions that appear in no reported study; ``benchmarks/boke_training.py`` contains these
functions and describes what was tried. The factor grows with d because distances grow with the dimension: among 60
random points on the unit cube, the nearest neighbour is about 0.01 away for d = 1 and 0.4 for d = 6.

The optimizer maximises the logarithm of (3.12) after subtracting the smallest observed value from m. This has the same
maximiser and does not overflow where W underflows.

An evaluation of (3.12) costs O(t d), and no parameters are fitted.

Limits. A weighted mean never exceeds the best observed value, and convergence close to the optimum is therefore slow:
expect a good region rather than an optimum to many digits. The exploration term grows like exp(u²/4) in the scaled
distance u. In many dimensions all unobserved points are far from the data, and the corners are explored first.
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
DELTA = 0.1
EXPLORING = 0.6
EMPTIEST = -1000.0  # lower bound of log W; points with smaller W count as equally unexplored
LOWEST = -300.0  # lower bound of the maximised logarithm; without exploration it would be -inf at the worst point


class BOKE(BoxOptimizer):
    """Bayesian optimisation by kernel regression and density-based exploration.

    Algorithm 2 of "Bayesian Optimization by Kernel Regression and Density-based Exploration". m is the regression of
    the observed values, standardised and, for minimisation, with reversed sign; W is the kernel density of the observed
    points. Each step maximises m + √(β_t / W), with β_t from `exploration`.

    Parameters
    ----------
    f, bounds, integers, noisy, initial, rng
        As in `BoxOptimizer`.
    scale : float
        Factor of the kernel's bandwidth, see `bandwidth`.
    noise_sd : float
        ς, the assumed noise level, in standard deviations of the observed values. Larger values explore more.
    kernel : str
        "gaussian", "epanechnikov" or "uniform".

    Notes
    -----
    In a noise-free run, a maximiser that has already been evaluated is replaced by the point of lowest density (3.10).
    A point that has been asked for but not observed is treated as observed, with the value predicted by the regression.
    The points of a batch are therefore spread out.
    """

    def __init__(
        self, f: Function, *, scale: float = SCALE, noise_sd: float = NOISE_SD, kernel: str = "gaussian", **options: Any
    ) -> None:
        super().__init__(f, **options)
        self.scale = _validate.positive_number(scale, "scale")
        self.noise_sd = _validate.positive_number(noise_sd, "noise_sd", zero=True)
        self.kernel = _validate.choice(kernel, "kernel", KERNELS)

    def surrogate(self) -> KernelRegression:
        """Return the kernel regression and density of the points observed so far and of those still pending.

        The values are standardised *gains*, with reversed sign for minimisation. A pending point has no value yet: the
        regression's prediction stands in for it.
        """
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
    """BOKE+: a step of BOKE with probability ``exploring``, else the maximum of the regression.

    Algorithm 3 of "Bayesian Optimization by Kernel Regression and Density-based Exploration".

    Parameters
    ----------
    f, scale, noise_sd, kernel, bounds, integers, noisy, initial, rng
        As in `BOKE`.
    exploring : float
        Probability p of a step of BOKE, above 0 and at most 1.
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
    """Return the kernel's bandwidth for t points on the d-dimensional unit cube: scale · d · t^(-1/(d+4)).

    This is Scott's rule, (5.1) of the paper, with the factor ``scale`` · d.
    """
    return scott(t, d, scale=scale * d)


def exploration(t: int, noise_sd: float = NOISE_SD, delta: float = DELTA) -> float:
    """Return the weight of exploration β_t = 2 ς² log(2 π² t² / (3 δ)) after t observations.

    This is Theorem 4.13 of "Bayesian Optimization by Kernel Regression and Density-based Exploration" with the kernel
    constant M_Ψ = 1. ``noise_sd`` is ς, and ``delta`` is δ, the probability that the theorem's bound fails.
    """
    return 2 * noise_sd**2 * float(np.log(2 * np.pi**2 * t**2 / (3 * delta)))


def standardized(gains: FloatArray) -> FloatArray:
    """Standardise values to mean 0 and standard deviation 1. If all values are equal, return zeros."""
    if np.ptp(gains) == 0:  # the computed standard deviation of equal values may be a rounding error
        return np.zeros(len(gains))
    return (gains - gains.mean()) / gains.std()


def profile(optimizer: BOKE, n: int = 501) -> "pd.DataFrame":
    """Tabulate the model of an optimizer with one input along that input, in the units of the values.

    Parameters
    ----------
    optimizer : BOKE or BOKEPlus
        It must have one input and at least one observed value.
    n : int
        Number of points, evenly spaced between the bounds of the input.

    Returns
    -------
    DataFrame
        Indexed by x. Columns: "mean", the regression; "bonus", √(β / W) times the values' standard deviation; "bound",
        the sum of the two, which (3.12) maximises (for minimisation: mean minus bonus, which is minimised); and
        "density", W.

    Raises
    ------
    InputError
        If the optimizer uses another method, has more than one input, or has no observed values.
    """
    import pandas as pd

    if type(optimizer) not in (BOKE, BOKEPlus):
        got = type(optimizer).__name__
        raise InputError(f"`optimizer` must be a BOKE or BOKEPlus; got {got}.")
    if optimizer.space.dimension != 1 or not optimizer.values:
        got = f"{optimizer.space.dimension} inputs and {len(optimizer.values)} values"
        raise InputError(f"`optimizer` must have one input and at least one observed value; got {got}.")
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
    """Return -log W(x), for the density W, and its slopes; it is largest at the least explored point, (3.10).

    Values of log W below ``EMPTIEST`` are raised to it.
    """
    _, log_density, _, slope = model.predict_with_slopes(x)
    return -np.maximum(log_density, EMPTIEST), -slope


def log_upper_bound(model: KernelRegression, beta: float, x: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return log(m(x) - min y + √(β / W(x))) and its slopes, where min y is the smallest observed value.

    The maximiser is that of BOKE's acquisition function (3.12), m(x) + √(β / W(x)), with regression m and density W.
    Values of log W below ``EMPTIEST`` are raised to it, and results below ``LOWEST`` to that.
    """
    mean, log_density, mean_slope, density_slope = model.predict_with_slopes(x)
    with np.errstate(divide="ignore"):
        lift = np.log(np.maximum(mean - model.y.min(), 0))
        bonus = 0.5 * (np.log(beta) - np.maximum(log_density, EMPTIEST))
    value = np.maximum(np.logaddexp(lift, bonus), LOWEST)
    rise, share = np.where(np.isfinite(lift), np.exp(-value), 0.0), np.exp(bonus - value)
    return value, rise[:, None] * mean_slope - 0.5 * share[:, None] * density_slope
