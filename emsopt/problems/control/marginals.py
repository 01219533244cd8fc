r"""Distributions on [0, 1] of variables that are not controlled.

``TruncatedNormal``  a truncated normal distribution with a given variance
``Uniform``          a uniform distribution
``Empirical``        observed values, each equally likely

All have ``quantile(u)`` and ``gaussian_average(a, w)``, which computes in closed form the mean over X of a Gaussian
bump with centre a and width w,

.. math:: E[\exp(-(X - a)^2 / (2 w^2))]

which yields the exact average of a squared-exponential kernel and thus of the posterior mean of a Gaussian process.
"""

from dataclasses import dataclass, field
from functools import cache
from typing import TypeAlias

import numpy as np

from ... import _validate
from ..._types import ArrayLike, FloatArray
from ...errors import InputError

WIDEST = 1e3  # largest scale of the parent normal, in widths of the support: practically uniform


@dataclass(frozen=True)
class TruncatedNormal:
    """A normal distribution truncated to [low, high].

    Attributes
    ----------
    variance : float
        Variance of the truncated distribution; must be below that of the uniform distribution, (high - low)²/12.
    centre : float
        Mode of the distribution. It is also the mean if it is the middle of the support.
    low, high : float
        Bounds of the support, within [0, 1].
    scale : float
        Standard deviation of the parent normal distribution, computed from ``variance``.

    Examples
    --------
    >>> X = TruncatedNormal(0.04)
    >>> round(X.scale, 4), round(float(X.quantile(0.9)), 4)
    (0.2135, 0.7646)
    """

    variance: float
    centre: float = 0.5
    low: float = 0.0
    high: float = 1.0
    scale: float = field(init=False)

    def __post_init__(self) -> None:
        _check_support(self.low, self.high)
        _validate.positive_number(self.variance, "variance")
        if not _validate.is_real(self.centre) or not self.low <= self.centre <= self.high:
            raise InputError(f"`centre` must lie within [{self.low:g}, {self.high:g}]; got {self.centre!r}.")
        width = self.high - self.low
        if self.variance >= self._variance(WIDEST * width):
            most = f"{width**2 / 12:.6g}, the variance of the uniform distribution"
            raise InputError(f"`variance` must be below {most}; got {self.variance:g}. For no peak, use `Uniform`.")
        from scipy.optimize import brentq

        small = np.log(np.sqrt(self.variance) / 2)
        found = brentq(lambda s: self._variance(np.exp(s)) - self.variance, small, np.log(WIDEST * width))
        object.__setattr__(self, "scale", float(np.exp(found)))

    def _variance(self, scale: float) -> float:
        """Return the variance for a given scale of the parent distribution."""
        nodes, weights = _legendre()
        # beyond 9 standard deviations the density is negligible
        a, b = max((self.low - self.centre) / scale, -9.0), min((self.high - self.centre) / scale, 9.0)
        z = (a + b) / 2 + (b - a) / 2 * nodes
        density = weights * np.exp(-(z**2) / 2)
        density /= density.sum()
        return float(scale**2 * (density @ (z - density @ z) ** 2))

    def quantile(self, u: ArrayLike) -> FloatArray:
        """Return the value below which a share ``u`` of the distribution lies, elementwise."""
        from scipy.special import ndtr, ndtri

        below, above = ndtr((np.array([self.low, self.high]) - self.centre) / self.scale)
        value = self.centre + self.scale * ndtri(below + np.asarray(u) * (above - below))
        return np.clip(value, self.low, self.high)

    def gaussian_average(self, a: ArrayLike, w: float) -> FloatArray:
        """Return E exp(-(X - a)² / (2 w²)), elementwise in ``a``."""
        a, s, c = np.asarray(a, dtype=float), self.scale, self.centre
        both = s**2 + w**2
        middle, spread = (a * s**2 + c * w**2) / both, s * w / np.sqrt(both)
        inside, total = _normal_share(self, middle, spread), _normal_share(self, c, s)
        return np.exp(-((a - c) ** 2) / (2 * both)) * w / np.sqrt(both) * inside / total


@dataclass(frozen=True)
class Uniform:
    """A uniform distribution between ``low`` and ``high``, both within [0, 1].

    Examples
    --------
    >>> import emsopt as eo
    >>> eo.problems.Uniform(0.2, 0.6)
    Uniform(low=0.2, high=0.6)
    """

    low: float = 0.0
    high: float = 1.0

    def __post_init__(self) -> None:
        _check_support(self.low, self.high)

    def quantile(self, u: ArrayLike) -> FloatArray:
        """Return the value below which a share ``u`` of the distribution lies, elementwise."""
        return self.low + (self.high - self.low) * np.asarray(u)

    def gaussian_average(self, a: ArrayLike, w: float) -> FloatArray:
        """Return E exp(-(X - a)² / (2 w²)), elementwise in ``a``."""
        return w * np.sqrt(2 * np.pi) / (self.high - self.low) * _normal_share(self, np.asarray(a, dtype=float), w)


@dataclass(frozen=True, eq=False, repr=False)
class Empirical:
    """Observed values, shape (n,), all within [0, 1] and each equally likely.

    Examples
    --------
    >>> import emsopt as eo
    >>> import numpy as np
    >>> law = eo.problems.Empirical(np.array([0.2, 0.4, 0.9]))
    >>> float(law.values.mean())
    0.5
    """

    values: FloatArray

    def __post_init__(self) -> None:
        values = np.sort(_validate.real_array(self.values, "values", (None,)))
        outside = values[(values < 0) | (values > 1)]
        if len(outside):
            wrong = f"{len(outside)} do not, such as {outside[0]:g}"
            raise InputError(f"`values` must lie in [0, 1]; {wrong}. Scale them in the same way as the variable.")
        values.flags.writeable = False
        object.__setattr__(self, "values", values)

    def quantile(self, u: ArrayLike) -> FloatArray:
        """Return the value of rank ⌊u n⌋ in ascending order, from 0, elementwise; for u = 1 the largest value."""
        n = len(self.values)
        return self.values[np.minimum((np.asarray(u) * n).astype(int), n - 1)]

    def gaussian_average(self, a: ArrayLike, w: float) -> FloatArray:
        """Return E exp(-(X - a)² / (2 w²)), elementwise in ``a``."""
        apart = np.asarray(a)[..., None] - self.values
        return np.exp(-(apart**2) / (2 * w**2)).mean(axis=-1)

    def __repr__(self) -> str:
        return f"Empirical({len(self.values)} values, mean {self.values.mean():.3g}, variance {self.values.var():.3g})"


Marginal: TypeAlias = TruncatedNormal | Uniform | Empirical


@cache
def _legendre() -> tuple[FloatArray, FloatArray]:
    """Return Gauss-Legendre nodes and weights on [-1, 1]."""
    return np.polynomial.legendre.leggauss(200)


def _normal_share(X: TruncatedNormal | Uniform, centre: float | FloatArray, scale: float) -> FloatArray:
    """Return the probability that a normal variable of mean ``centre`` and deviation ``scale`` lies in X's support.

    ``centre`` may be an array; the result has its shape.
    """
    from scipy.special import ndtr

    return np.subtract(ndtr((X.high - centre) / scale), ndtr((X.low - centre) / scale))


def _check_support(low: float, high: float) -> None:
    """Raise InputError unless [low, high] is an interval within [0, 1]."""
    if not (_validate.is_real(low) and _validate.is_real(high) and 0 <= low < high <= 1):
        raise InputError(f"The support must lie in [0, 1], with low < high; got {low!r} to {high!r}.")
