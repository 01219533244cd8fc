r"""Distributions on [0, 1] of variables that are not controlled.

All have ``quantile(u)`` and ``gaussian_average(a, w)``, which computes in closed form the mean over X of a Gaussian
bump with centre a and width w,

.. math:: E[\exp(-(X - a)^2 / (2 w^2))]

and thus the exact average of the posterior mean of a Gaussian process with a squared-exponential kernel.
"""

from dataclasses import dataclass, field
from functools import cache
from typing import TypeAlias

import numpy as np

from ...errors import InputError, _validate
from ...errors._types import ArrayLike, FloatArray

MAX_SCALE = 1e3  # largest scale of the parent normal, in widths of the support: practically uniform


@dataclass(frozen=True)
class TruncatedNormal:
    """A normal distribution around 0.5, truncated to [0, 1].

    Attributes
    ----------
    variance : float
        Variance of the truncated distribution; must be below that of the uniform distribution, 1/12.
    scale : float
        Standard deviation of the parent normal distribution, computed from ``variance``.

    Examples
    --------
    >>> X = TruncatedNormal(0.04)
    >>> round(X.scale, 4), round(float(X.quantile(0.9)), 4)
    (0.2135, 0.7646)
    """

    variance: float
    scale: float = field(init=False)

    def __post_init__(self) -> None:
        _validate.positive_number(self.variance, "variance")
        if self.variance >= self._variance(MAX_SCALE):
            most = f"{1 / 12:.6g}, the variance of the uniform distribution"
            raise InputError(f"`variance` must be below {most}; got {self.variance:g}. For no peak, use `Uniform`.")
        from scipy.optimize import brentq

        small = np.log(np.sqrt(self.variance) / 2)  # below the root of the variance: truncation narrows
        found = brentq(lambda s: self._variance(np.exp(s)) - self.variance, small, np.log(MAX_SCALE))
        object.__setattr__(self, "scale", float(np.exp(found)))

    def _variance(self, scale: float) -> float:
        """Return the variance of the truncated distribution if the parent has standard deviation ``scale``."""
        nodes, weights = _legendre_rule()
        # beyond 9 standard deviations the density is negligible
        z = min(0.5 / scale, 9.0) * nodes
        density = weights * np.exp(-(z**2) / 2)
        density /= density.sum()
        return float(scale**2 * (density @ (z - density @ z) ** 2))

    def quantile(self, u: ArrayLike) -> FloatArray:
        """Return the ``u``-quantile of the distribution, elementwise."""
        from scipy.special import ndtr, ndtri

        below, above = ndtr(np.array([-0.5, 0.5]) / self.scale)
        return np.clip(0.5 + self.scale * ndtri(below + np.asarray(u) * (above - below)), 0, 1)

    def gaussian_average(self, a: ArrayLike, w: float) -> FloatArray:
        """Return E exp(-(X - a)² / (2 w²)) for X of this distribution, elementwise in ``a``."""
        a, s, c = np.asarray(a, dtype=float), self.scale, 0.5
        both = s**2 + w**2
        # the product of two Gaussians is one around `middle`, of which only the part in [0, 1] counts
        middle, spread = (a * s**2 + c * w**2) / both, s * w / np.sqrt(both)
        inside, total = _normal_probability(middle, spread), _normal_probability(c, s)
        return np.exp(-((a - c) ** 2) / (2 * both)) * w / np.sqrt(both) * inside / total


@dataclass(frozen=True)
class Uniform:
    """A uniform distribution between 0 and 1.

    Examples
    --------
    >>> float(Uniform().quantile(0.3))
    0.3
    """

    def quantile(self, u: ArrayLike) -> FloatArray:
        """Return the ``u``-quantile of the distribution, elementwise."""
        return np.asarray(u, dtype=float)

    def gaussian_average(self, a: ArrayLike, w: float) -> FloatArray:
        """Return E exp(-(X - a)² / (2 w²)) for X of this distribution, elementwise in ``a``."""
        return w * np.sqrt(2 * np.pi) * _normal_probability(np.asarray(a, dtype=float), w)


@dataclass(frozen=True, eq=False, repr=False)
class Empirical:
    """Distribution of observed ``values``, shape (n,), all within [0, 1] and each equally likely.

    Examples
    --------
    >>> Empirical([0.2, 0.4, 0.9])
    Empirical(3 values, mean 0.5, variance 0.0867)
    """

    values: FloatArray

    def __post_init__(self) -> None:
        values = np.sort(_validate.real_array(self.values, "values", (None,)))
        outside = values[(values < 0) | (values > 1)]
        if len(outside):
            wrong = f"{len(outside)} do not, such as {outside[0]:g}"
            raise InputError(f"`values` must lie in [0, 1]; {wrong}. Scale them in the same way as the variable.")
        values.flags.writeable = False  # the class is frozen, and its array must be, too
        object.__setattr__(self, "values", values)

    def quantile(self, u: ArrayLike) -> FloatArray:
        """Return the value of rank ⌊u n⌋ in ascending order, from 0, elementwise; for u = 1 the largest value."""
        n = len(self.values)
        return self.values[np.minimum((np.asarray(u) * n).astype(int), n - 1)]  # u = 1 would give rank n

    def gaussian_average(self, a: ArrayLike, w: float) -> FloatArray:
        """Return E exp(-(X - a)² / (2 w²)) for X of this distribution, elementwise in ``a``."""
        return np.exp(-((np.asarray(a)[..., None] - self.values) ** 2) / (2 * w**2)).mean(axis=-1)

    def __repr__(self) -> str:
        return f"Empirical({len(self.values)} values, mean {self.values.mean():.3g}, variance {self.values.var():.3g})"


Marginal: TypeAlias = TruncatedNormal | Uniform | Empirical


@cache
def _legendre_rule() -> tuple[FloatArray, FloatArray]:
    """Return Gauss-Legendre nodes and weights on [-1, 1], (200,) each."""
    return np.polynomial.legendre.leggauss(200)


def _normal_probability(centre: float | FloatArray, scale: float) -> FloatArray:
    """Return the probability that a normal variable of mean ``centre`` and deviation ``scale`` lies in [0, 1]."""
    from scipy.special import ndtr

    return np.subtract(ndtr((1 - centre) / scale), ndtr((0 - centre) / scale))
