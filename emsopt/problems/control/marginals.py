r"""Distributions on [0, 1] of variables that are not controlled.

``TruncatedNormal``  a truncated normal distribution with a given variance
``Uniform``          a uniform distribution
``Empirical``        observed values, each equally likely

All have ``mean``, ``variance``, ``quantile(u)`` and ``gaussian_average(a, w)``, the closed form of

.. math:: E[\exp(-(X - a)^2 / (2 w^2))]

which yields the exact average of a squared-exponential kernel and thus of the posterior mean of a Gaussian
process.
"""

from dataclasses import dataclass, field
from functools import cache

import numpy as np

from ... import _validate
from ...errors import InputError

WIDEST = 1e3  # largest scale of the parent normal, in widths of the support: practically uniform


@dataclass(frozen=True)
class TruncatedNormal:
    """A normal distribution truncated to [low, high].

    Attributes
    ----------
    variance : float
        Variance of the truncated distribution; must be below that of the uniform distribution, (high -
        low)²/12.
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

    def __post_init__(self):
        _check_support(self.low, self.high)
        _validate.positive_number(self.variance, "variance")
        if not _validate.is_real(self.centre) or not self.low <= self.centre <= self.high:
            msg = f"`centre` must lie in the support, from {self.low:g} to {self.high:g}; got {self.centre!r}."
            raise InputError(msg)
        width = self.high - self.low
        most = self._moments(WIDEST * width)[1]
        if self.variance >= most:
            raise InputError(
                f"`variance` must be below that of the uniform distribution, {width**2 / 12:.6g}; got "
                f"{self.variance:g}. Use Uniform for a distribution without a peak."
            )
        from scipy.optimize import brentq

        small = np.log(np.sqrt(self.variance) / 2)
        found = brentq(lambda s: self._moments(np.exp(s))[1] - self.variance, small, np.log(WIDEST * width))
        object.__setattr__(self, "scale", float(np.exp(found)))

    def _moments(self, scale):
        """Return mean and variance for a given scale of the parent distribution."""
        a, b = (self.low - self.centre) / scale, (self.high - self.centre) / scale
        nodes, weights = _legendre()
        # beyond 9 standard deviations the density is negligible
        a, b = max(a, -9.0), min(b, 9.0)
        z = (a + b) / 2 + (b - a) / 2 * nodes
        density = weights * np.exp(-(z**2) / 2)
        density /= density.sum()
        mean = density @ z
        return self.centre + scale * mean, scale**2 * (density @ (z - mean) ** 2)

    @property
    def mean(self):
        """Expected value."""
        return float(self._moments(self.scale)[0])

    def quantile(self, u):
        """Return the value below which a share ``u`` of the distribution lies, elementwise."""
        from scipy.special import ndtr, ndtri

        below, above = (
            ndtr((self.low - self.centre) / self.scale),
            ndtr((self.high - self.centre) / self.scale),
        )
        value = self.centre + self.scale * ndtri(below + np.asarray(u) * (above - below))
        return np.clip(value, self.low, self.high)

    def gaussian_average(self, a, w):
        """Return E exp(-(X - a)² / (2 w²)), elementwise in ``a``."""
        from scipy.special import ndtr

        s, c = self.scale, self.centre
        both = s**2 + w**2
        middle, spread = (np.asarray(a) * s**2 + c * w**2) / both, s * w / np.sqrt(both)
        inside = ndtr((self.high - middle) / spread) - ndtr((self.low - middle) / spread)
        total = ndtr((self.high - c) / s) - ndtr((self.low - c) / s)
        return np.exp(-((a - c) ** 2) / (2 * both)) * w / np.sqrt(both) * inside / total


@dataclass(frozen=True)
class Uniform:
    """A uniform distribution between ``low`` and ``high``, both within [0, 1]."""

    low: float = 0.0
    high: float = 1.0

    def __post_init__(self):
        _check_support(self.low, self.high)

    @property
    def mean(self):
        """Expected value."""
        return (self.low + self.high) / 2

    @property
    def variance(self):
        """Variance."""
        return (self.high - self.low) ** 2 / 12

    def quantile(self, u):
        """Return the value below which a share ``u`` of the distribution lies, elementwise."""
        return self.low + (self.high - self.low) * np.asarray(u)

    def gaussian_average(self, a, w):
        """Return E exp(-(X - a)² / (2 w²)), elementwise in ``a``."""
        from scipy.special import ndtr

        a = np.asarray(a)
        inside = ndtr((self.high - a) / w) - ndtr((self.low - a) / w)
        return w * np.sqrt(2 * np.pi) / (self.high - self.low) * inside


@dataclass(frozen=True, eq=False, repr=False)
class Empirical:
    """Observed values, shape (n,), all within [0, 1] and each equally likely."""

    values: np.ndarray

    def __post_init__(self):
        values = np.sort(_validate.real_array(self.values, "values", (None,)))
        outside = values[(values < 0) | (values > 1)]
        if len(outside):
            raise InputError(
                f"`values` must lie in [0, 1], the domain of the variable; {len(outside)} do not, such as "
                f"{outside[0]:g}. Scale them in the same way as the variable."
            )
        values.flags.writeable = False
        object.__setattr__(self, "values", values)

    @property
    def mean(self):
        """Expected value."""
        return float(self.values.mean())

    @property
    def variance(self):
        """Variance."""
        return float(self.values.var())

    def quantile(self, u):
        """Return the value below which a share ``u`` of the distribution lies, elementwise."""
        n = len(self.values)
        return self.values[np.minimum((np.asarray(u) * n).astype(int), n - 1)]

    def gaussian_average(self, a, w):
        """Return E exp(-(X - a)² / (2 w²)), elementwise in ``a``."""
        apart = np.asarray(a)[..., None] - self.values
        return np.exp(-(apart**2) / (2 * w**2)).mean(axis=-1)

    def __repr__(self):
        return f"Empirical({len(self.values)} values, mean {self.mean:.3g}, variance {self.variance:.3g})"


MARGINALS = (TruncatedNormal, Uniform, Empirical)


@cache
def _legendre():
    """Return Gauss-Legendre nodes and weights on [-1, 1]."""
    return np.polynomial.legendre.leggauss(200)


def _check_support(low, high):
    if not (_validate.is_real(low) and _validate.is_real(high) and 0 <= low < high <= 1):
        msg = f"The support must lie in [0, 1], the domain of the variable, with low < high; got {low!r} to {high!r}."
        raise InputError(msg)
