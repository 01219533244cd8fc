r"""Bayesian linear regression with a horseshoe prior, by Gibbs sampling.

Model (6) and appendix C of "Optimizing Server Locations in Spatial Queues":

    y | X, α, σ ~ N(X α, σ² I),   α_k | β_k, τ, σ ~ N(0, β_k² τ² σ²),   β_k, τ ~ C⁺(0, 1),   p(σ²) ∝ 1/σ².

======  ============  ======  ====================================================================================
symbol  name          shape   meaning
======  ============  ======  ====================================================================================
X       ``X``         (n, D)  features, one row an observation
y       ``y``         (n,)    observations
α       ``coef``      (D,)    coefficients
σ²      ``noise``             variance of the noise
β²      ``local``     (D,)    how far each coefficient may leave zero
τ²      ``overall``           how far all of them may
ν, ξ    ``local_aux``, ``overall_aux``   auxiliary variables: with them every conditional is inverse gamma
======  ============  ======  ====================================================================================

The half-Cauchy priors are mixtures of inverse gammas, so that a sweep draws all variables from their conditionals
(26) (Makalic and Schmidt 2016). Coefficients are drawn in O(n² D) where there are more of them than observations
(Bhattacharya, Chakraborty and Mallick 2016), else in O(n D² + D³) by a Cholesky factor.

The prior treats all coefficients alike and shrinks them towards zero, so the scale of features and the mean of y
matter: `standardize` first. There is no intercept; centring takes its place (a flat prior on it).

Limits. A chain moves slowly between explanations that fit equally well, as with collinear features: short chains
give draws, not means. log τ² wanders so slowly that the error of one long chain is easily understated; independent
chains agree with numerical integration of the posterior (two coefficients, four observations). The improper prior of
σ² asks for at least one observation that differs from the rest. Prior variances are bounded at `WIDEST` times σ².
That did not show where errors were a thousandth of the coefficients; at a hundred-thousandth it moved log σ² and
log τ² by 0.3 to 0.4, and no coefficient.

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

from .. import _validate
from ..errors import InputError

WIDEST = (
    1e10  # prior variance over σ²: beyond, values without noise would leave the matrix to factor singular
)
SMALLEST, LARGEST = 1e-100, 1e100  # variances beyond are cut off: no draw notices, and nothing overflows


@dataclass(frozen=True, eq=False, repr=False)
class Horseshoe:
    """State of the chain: one draw of all variables, from which `sample` continues.

    Attributes
    ----------
    coef : ndarray, shape (D,)
        Coefficients α.
    noise : float
        Variance σ².
    local, local_aux : ndarray, shape (D,)
        β_k² and ν_k.
    overall, overall_aux : float
        τ² and ξ.
    """

    coef: np.ndarray
    noise: float
    local: np.ndarray
    local_aux: np.ndarray
    overall: float
    overall_aux: float

    @classmethod
    def start(cls, n_features):
        """Return the state from which a chain of ``n_features`` coefficients starts: all scales one."""
        n = _validate.whole_number(n_features, "n_features")
        return cls(np.zeros(n), 1.0, np.ones(n), np.ones(n), 1.0, 1.0)

    def __repr__(self):
        return (
            f"<Horseshoe: {len(self.coef)} coefficients, noise {self.noise:.3g}, overall {self.overall:.3g}>"
        )


def sample(state, X, y, sweeps=1, rng=None, *, noise_prior=(0.0, 0.0), method=None):
    """Continue the chain by some sweeps; return where it arrives, one draw from (nearly) the posterior.

    Parameters
    ----------
    state : Horseshoe
        Where to start: `Horseshoe.start`, or the draw left over from fewer observations.
    X : array_like, shape (n, D)
        Features; taken as they are (`standardize` first). Fastest in C order.
    y : array_like, shape (n,)
        Observations, likewise.
    sweeps : int
        Updates of all variables.
    rng : int, Generator or None
        Source of randomness.
    noise_prior : (float, float)
        Shape and scale of an inverse-gamma prior of σ²; zeros are the paper's 1/σ².
    method : {"fast", "cholesky"}, optional
        How to draw coefficients; left out: "fast" if D > n.

    Returns
    -------
    Horseshoe
    """
    X = np.ascontiguousarray(_validate.real_array(X, "X", (None, len(state.coef))))
    y = _validate.real_array(y, "y", (len(X),))
    sweeps = _validate.whole_number(sweeps, "sweeps")
    rng = _validate.generator(rng)
    (n, D), (shape, scale) = X.shape, noise_prior
    if method is None:
        method = "fast" if n < D else "cholesky"
    draw = {"fast": _draw_fast, "cholesky": _draw_cholesky}[
        _validate.choice(method, "method", ("fast", "cholesky"))
    ]

    noise, local, local_aux = state.noise, state.local, state.local_aux
    overall, overall_aux = state.overall, state.overall_aux
    for _ in range(sweeps):
        prior = np.clip(local * overall, SMALLEST, WIDEST)  # Σ* in (26): prior variances over σ²
        coef = draw(X, y, prior, noise, rng)
        missed = y - X @ coef
        noise = _inverse_gamma(
            shape + (n + D) / 2, scale + (missed @ missed + coef @ (coef / prior)) / 2, rng
        )
        squares = coef**2 / (2 * noise)
        local = _inverse_gamma(1.0, 1 / local_aux + squares / overall, rng)
        overall = _inverse_gamma((D + 1) / 2, 1 / overall_aux + (squares / local).sum(), rng)
        local_aux = _inverse_gamma(1.0, 1 + 1 / local, rng)
        overall_aux = _inverse_gamma(1.0, 1 + 1 / overall, rng)
    return Horseshoe(coef, float(noise), local, local_aux, float(overall), float(overall_aux))


def _inverse_gamma(shape, scale, rng):
    """Draw from inverse gammas with one shape and a scale each."""
    draws = (
        rng.standard_exponential(np.shape(scale))
        if shape == 1
        else rng.standard_gamma(shape, np.shape(scale))
    )
    return _bounded(scale / np.maximum(draws, SMALLEST))


def _bounded(variances):
    return np.minimum(np.maximum(variances, SMALLEST), LARGEST)


def _draw_fast(X, y, prior, noise, rng):
    """Draw α by Bhattacharya et al.'s Algorithm 1, scaled by σ: O(n² D), no D x D matrix."""
    n, D = X.shape
    sigma = np.sqrt(noise)
    root = np.sqrt(prior)
    scaled = X * root
    # X Σ* Xᵀ, lower triangle: the transpose is in Fortran order already, so that BLAS need not copy it.
    gram = dsyrk(1.0, scaled.T, trans=1, lower=1)
    gram[np.diag_indices(n)] += 1.0
    from_prior = rng.standard_normal(D)
    weights = cho_solve(
        (cholesky(gram, lower=True, overwrite_a=True, check_finite=False), True),
        y / sigma - scaled @ from_prior - rng.standard_normal(n),
        overwrite_b=True,
        check_finite=False,
    )
    return sigma * root * (from_prior + weights @ scaled)


def _draw_cholesky(X, y, prior, noise, rng):
    """Draw α from N(M⁻¹ Xᵀy, σ² M⁻¹) by a factor of Σ*^½ M Σ*^½ = I + Σ*^½ Xᵀ X Σ*^½, which is well conditioned."""
    D = X.shape[1]
    root = np.sqrt(prior)
    scaled = X * root
    gram = scaled.T @ scaled
    gram[np.diag_indices(D)] += 1.0
    factor = cholesky(gram, lower=True, overwrite_a=True, check_finite=False)
    mean = solve_triangular(factor, scaled.T @ y, lower=True, check_finite=False)
    z = mean + np.sqrt(noise) * rng.standard_normal(D)
    return root * solve_triangular(factor, z, lower=True, trans=1, check_finite=False)


@dataclass(frozen=True, eq=False)
class Standardized:
    """Features and observations with mean zero, and the way back.

    Attributes
    ----------
    X : ndarray, shape (n, D)
    y : ndarray, shape (n,)
    feature_means, feature_scales : ndarray, shape (D,)
    mean, scale : float
        Of the observations.
    """

    X: np.ndarray
    y: np.ndarray
    feature_means: np.ndarray
    feature_scales: np.ndarray
    mean: float
    scale: float

    def coefficients(self, coef):
        """Return intercept and coefficients (D,) in the units of the features and observations given."""
        slopes = self.scale * coef / self.feature_scales
        return self.mean - slopes @ self.feature_means, slopes


def standardize(X, y, *, scale_features=True):
    """Centre features and observations and divide them by their standard deviations.

    Parameters
    ----------
    X : array_like, shape (n, D)
    y : array_like, shape (n,)
    scale_features : bool
        False leaves features centred only: right where they share a unit, as zeros and ones do.

    Returns
    -------
    Standardized
        Features that do not vary become zero and their coefficients are then drawn from the prior alone.
    """
    X = _validate.real_array(X, "X", (None, None))
    y = _validate.real_array(y, "y", (len(X),))
    means, centre = X.mean(axis=0), y.mean()
    spread = y.std()
    if len(y) < 2 or spread <= 1e-12 * max(1.0, abs(centre)):
        msg = f"`y` must hold at least two different observations; got {len(y)} around {centre:g}. Add some."
        raise InputError(msg)
    centred = X - means
    scales = np.ones(X.shape[1])
    if scale_features:
        deviations = centred.std(axis=0)
        varies = deviations > 1e-12 * np.maximum(1.0, np.abs(means))
        scales[varies] = deviations[varies]
    return Standardized(centred / scales, (y - centre) / spread, means, scales, float(centre), float(spread))
