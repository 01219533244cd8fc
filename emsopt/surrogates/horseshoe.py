r"""Bayesian linear regression with a horseshoe prior, by Gibbs sampling.

Model (6) and appendix C of "Optimizing Server Locations in Spatial Queues":

    y | X, α, σ ~ N(X α, σ² I),   α_k | β_k, τ, σ ~ N(0, β_k² τ² σ²),   β_k, τ ~ C⁺(0, 1),   p(σ²) ∝ 1/σ².

======  ==============================  ======  ============================================================
symbol  name                            shape   meaning
======  ==============================  ======  ============================================================
X       ``X``                           (n, D)  features, one row per observation
y       ``y``                           (n,)    observations
α       ``coef``                        (D,)    coefficients
σ²      ``noise_variance``              scalar  variance of the noise
β²      ``local``                       (D,)    squared local scale of each coefficient
τ²      ``overall``                     scalar  squared global scale of all coefficients
ν, ξ    ``local_aux``, ``overall_aux``          auxiliary variables that make every conditional inverse gamma
======  ==============================  ======  ============================================================

The half-Cauchy priors are mixtures of inverse gammas, and each sweep draws all variables from their conditionals (26)
(Makalic and Schmidt 2016). If there are more coefficients than observations, they are drawn in O(n² D) (Bhattacharya,
Chakraborty and Mallick 2016), otherwise in O(n D² + D³) with a Cholesky factor. The results depend on the scale of the
features and on the mean of y: call `standardize` first, whose centring replaces an intercept.

Limits. With collinear features a chain moves slowly between equally good fits, and averages over a short chain can
be far from the posterior means. log τ² mixes slowly, and the error of one long chain is easily underestimated. The
improper prior of σ² requires at least one observation that differs from the rest. Prior variances are at most
``MAX_PRIOR`` times σ².

References
----------
Makalic, E. and Schmidt, D. F. (2016). A simple sampler for the horseshoe estimator. IEEE Signal Processing Letters
23(1), 179-182.
Bhattacharya, A., Chakraborty, A. and Mallick, B. K. (2016). Fast sampling with Gaussian scale mixture priors in
high-dimensional regression. Biometrika 103(4), 985-991.
"""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_solve, cholesky, solve_triangular
from scipy.linalg.blas import dsyrk

from ..errors import _validate
from ..errors._types import ArrayLike, FloatArray, Rng

__all__ = ["Horseshoe", "sample"]

NOISE_PRIOR = 0.0, 0.0  # shape and scale of the inverse-gamma prior of σ²; zeros give 1/σ²
MAX_PRIOR = 1e10  # upper bound of prior variances divided by σ²; beyond it the matrix is singular for noise-free values
MIN_VARIANCE, MAX_VARIANCE = 1e-100, 1e100  # bounds of variances, which avoid overflow without affecting the draws


@dataclass(frozen=True, eq=False)
class Horseshoe:
    """State of the Gibbs chain: one draw of all variables of the module's table.

    Examples
    --------
    >>> Horseshoe.start(3).coef.tolist()
    [0.0, 0.0, 0.0]
    """

    coef: FloatArray
    noise_variance: float
    local: FloatArray
    local_aux: FloatArray
    overall: float
    overall_aux: float

    @classmethod
    def start(cls, n_features: int) -> "Horseshoe":
        """Return the initial state for ``n_features`` coefficients: all coefficients zero, all scales one."""
        zeros, ones = np.zeros(n_features), np.ones(n_features)
        return cls(zeros, 1.0, ones, ones, 1.0, 1.0)


def sample(state: Horseshoe, X: ArrayLike, y: ArrayLike, sweeps: int = 1, *, rng: Rng = None) -> Horseshoe:
    """Run some sweeps of the Gibbs chain and return its last state, an approximate draw from the posterior.

    Parameters
    ----------
    state : Horseshoe
        Initial state: `Horseshoe.start`, or the last state of an earlier chain with fewer observations.
    X, y : array_like, shapes (n, D) and (n,)
        Features and observations, used without scaling (call `standardize` first). C order is fastest.
    sweeps : int
        Number of sweeps; each updates all variables once.

    Examples
    --------
    >>> X = np.random.default_rng(0).standard_normal((60, 3))
    >>> state = sample(Horseshoe.start(3), X, 2 * X[:, 0], sweeps=100, rng=0)
    >>> bool(abs(state.coef[0] - 2) < 0.2)
    True
    """
    X, y = np.ascontiguousarray(X, dtype=float), np.asarray(y, dtype=float)
    rng = _validate.generator(rng)
    (n, D), (shape, scale) = X.shape, NOISE_PRIOR
    draw = _draw_bhattacharya if n < D else _draw_cholesky
    noise, local, local_aux = state.noise_variance, state.local, state.local_aux
    overall, overall_aux = state.overall, state.overall_aux
    for _ in range(sweeps):
        prior = np.clip(local * overall, MIN_VARIANCE, MAX_PRIOR)  # Σ* of (26): prior variances are σ² times these
        coef = draw(X, y, prior, noise, rng)
        missed = y - X @ coef
        # in (26) σ² scales both the noise and, as α has prior variance σ² Σ*, the coefficients
        size = missed @ missed + coef @ (coef / prior)
        noise = float(_draw_inverse_gamma(shape + (n + D) / 2, scale + size / 2, rng))
        squares = coef**2 / (2 * noise)
        local = _draw_inverse_gamma(1.0, 1 / local_aux + squares / overall, rng)
        overall = float(_draw_inverse_gamma((D + 1) / 2, 1 / overall_aux + (squares / local).sum(), rng))
        local_aux = _draw_inverse_gamma(1.0, 1 + 1 / local, rng)
        overall_aux = float(_draw_inverse_gamma(1.0, 1 + 1 / overall, rng))
    return Horseshoe(coef, noise, local, local_aux, overall, overall_aux)


def _draw_inverse_gamma(shape: float, scale: "FloatArray | float", rng: np.random.Generator) -> FloatArray:
    """Draw one value per scale, (D,) or a number, from inverse gamma distributions with a common shape parameter."""
    draws = rng.standard_exponential(np.shape(scale)) if shape == 1 else rng.standard_gamma(shape, np.shape(scale))
    return np.minimum(np.maximum(scale / np.maximum(draws, MIN_VARIANCE), MIN_VARIANCE), MAX_VARIANCE)


def _draw_bhattacharya(
    X: FloatArray, y: FloatArray, prior: FloatArray, noise_variance: float, rng: np.random.Generator
) -> FloatArray:
    """Draw α, (D,), by Algorithm 1 of Bhattacharya et al. on the model divided by σ; ``prior`` holds β_k² τ², (D,)."""
    n, D = X.shape
    sigma, root = np.sqrt(noise_variance), np.sqrt(prior)
    scaled = X * root
    # lower triangle of X Σ* Xᵀ; the transpose is already in Fortran order, which spares BLAS a copy
    gram = dsyrk(1.0, scaled.T, trans=1, lower=1)
    gram[np.diag_indices(n)] += 1.0  # noise has variance 1 once the model is divided by σ
    from_prior = rng.standard_normal(D)
    factor = cholesky(gram, lower=True, overwrite_a=True, check_finite=False)
    # Algorithm 1 corrects a draw from the prior by what the data contradict
    surprise = y / sigma - scaled @ from_prior - rng.standard_normal(n)
    weights = cho_solve((factor, True), surprise, overwrite_b=True, check_finite=False)
    return sigma * root * (from_prior + weights @ scaled)


def _draw_cholesky(
    X: FloatArray, y: FloatArray, prior: FloatArray, noise_variance: float, rng: np.random.Generator
) -> FloatArray:
    """Draw α, (D,), from N(M⁻¹ Xᵀy, σ² M⁻¹), M = XᵀX + Σ*⁻¹, by a Cholesky factor; ``prior`` holds β_k² τ², (D,)."""
    root = np.sqrt(prior)
    scaled = X * root
    gram = scaled.T @ scaled  # of Σ*^½ M Σ*^½ = I + Σ*^½ Xᵀ X Σ*^½, which is well-conditioned
    gram[np.diag_indices(X.shape[1])] += 1.0  # no eigenvalue is below 1, whatever the prior variances
    factor = cholesky(gram, lower=True, overwrite_a=True, check_finite=False)
    mean = solve_triangular(factor, scaled.T @ y, lower=True, check_finite=False)
    z = mean + np.sqrt(noise_variance) * rng.standard_normal(len(root))
    return root * solve_triangular(factor, z, lower=True, trans=1, check_finite=False)


@dataclass(frozen=True, eq=False)
class StandardizedData:
    """Standardised features, (n, D), and observations, (n,), with the scales that they were divided by."""

    X: FloatArray
    y: FloatArray
    feature_scales: FloatArray
    scale: float

    def unscaled_coefficients(self, coef: FloatArray) -> FloatArray:
        """Convert coefficients, (D,), of standardised data to the original units."""
        return self.scale * coef / self.feature_scales


def standardize(X: ArrayLike, y: ArrayLike) -> StandardizedData:
    """Standardise features, (n, D), constant ones to zero, and observations, (n,), of which at least two differ."""
    # sums by another order of memory round differently
    X, y = np.ascontiguousarray(X, dtype=float), np.asarray(y, dtype=float)
    means, spread = X.mean(axis=0), float(y.std())
    scales = (X - means).std(axis=0)
    # dividing by its deviation would blow up the rounding errors of a constant feature
    scales[scales <= 1e-12 * np.maximum(1.0, np.abs(means))] = 1.0
    return StandardizedData((X - means) / scales, (y - float(y.mean())) / spread, scales, spread)
