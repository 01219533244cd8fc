r"""Gaussian process regression with a prior mean supplied at every point.

Equations (12), (14) and (15) of "Optimizing Server Locations in Spatial Queues".

===========  ================  ==============================================================================
symbol       name              meaning
===========  ================  ==============================================================================
m(x)         ``prior``         prior mean at a point, supplied by the caller
s²           ``amplitude``     factor of the kernel; its maximum-likelihood value has a closed form
ν            ``noise_ratio``   noise variance divided by s²
k            ``kernel``        any scikit-learn kernel
===========  ================  ==============================================================================

.. math:: Y \sim \mathcal N(m(X), s^2 (K + ν I))

`fit` maximises the marginal likelihood over the kernel's hyperparameters and ν with analytic gradients; s² is replaced
by its maximum-likelihood value. Each training step costs O(n³), which is practical for hundreds of points.
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import cho_solve, solve_triangular

from ..errors import ConvergenceError, InputError, _validate
from ..errors._types import ArrayLike, FloatArray

if TYPE_CHECKING:
    from sklearn.gaussian_process.kernels import Kernel

__all__ = ["condition", "fit"]

NOISE_RATIO_BOUNDS = (1e-6, 1.0)  # the lower bound keeps K + ν I invertible where points almost repeat


@dataclass(frozen=True, eq=False, repr=False)
class GaussianProcess:
    """Gaussian process conditioned on data; build it with `condition` or `fit`.

    The ``residuals``, (n,), are the observed values minus the prior mean at the points X, (n, N), ``factor``, (n, n),
    is the lower Cholesky factor of K + ν I, and ``coefficients``, (n,), are (K + ν I)⁻¹ times the residuals. The
    module's table explains the other attributes.
    """

    kernel: "Kernel"
    noise_ratio: float
    amplitude: float
    X: FloatArray
    residuals: FloatArray
    factor: FloatArray
    coefficients: FloatArray

    def predict(self, X: ArrayLike, prior: ArrayLike = 0.0) -> tuple[FloatArray, FloatArray]:
        """Return mean and variance, (m,) each, of noise-free values at points, (m, N), with ``prior`` mean, (m,)."""
        across = self.kernel(X, self.X)
        explained = solve_triangular(self.factor, across.T, lower=True, check_finite=False)
        # near an observed point, rounding errors can make the variance negative
        variance = self.kernel.diag(X) - np.einsum("ij,ij->j", explained, explained)
        return prior + across @ self.coefficients, self.amplitude * np.maximum(variance, 0)

    def predict_with_slopes(self, X: ArrayLike) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Return posterior mean and variance, (m,) each, and their gradients, (m, N) each, at points, (m, N).

        The prior mean is 0. The kernel needs a method ``matrix_and_slopes``, which `DeploymentKernel` lacks.
        """
        X = np.atleast_2d(X)
        across, contract = self.kernel.matrix_and_slopes(X, self.X)
        weights = _solve(self.factor, across.T).T
        mean = across @ self.coefficients
        variance = self.amplitude * np.maximum(self.kernel.diag(X) - np.einsum("ij,ij->i", across, weights), 0)
        mean_slopes = contract(np.broadcast_to(self.coefficients, across.shape))
        # k(x, x) is constant, so only kᵀ(K + ν I)⁻¹k has a slope
        return mean, variance, mean_slopes, -2 * self.amplitude * contract(weights)

    def with_observation(self, x: ArrayLike, y: float, prior: float = 0.0) -> "GaussianProcess":
        """Return the process given one more observation y at x, (N,), with unchanged hyperparameters, in O(n²)."""
        x = np.atleast_2d(x)
        row = solve_triangular(self.factor, self.kernel(self.X, x)[:, 0], lower=True, check_finite=False)
        pivot = self.kernel.diag(x)[0] + self.noise_ratio - row @ row
        factor = np.pad(self.factor, (0, 1))
        factor[-1] = np.append(row, np.sqrt(max(pivot, self.noise_ratio)))  # in exact numbers the pivot is at least ν
        residuals = np.append(self.residuals, y - prior)
        points = np.vstack([self.X, x])
        return replace(self, X=points, residuals=residuals, factor=factor, coefficients=_solve(factor, residuals))

    def solve(self, values: FloatArray) -> FloatArray:
        """Return (K + ν I)⁻¹ times ``values``, shape (n,) or (n, k)."""
        return _solve(self.factor, values)

    @property
    def leave_one_out(self) -> FloatArray:
        """Prediction of each residual from all others, shape (n,): (5.12) of Rasmussen and Williams (2006)."""
        inverse_root = solve_triangular(self.factor, np.eye(len(self.residuals)), lower=True, check_finite=False)
        predicted: FloatArray = self.residuals - self.coefficients / (inverse_root**2).sum(axis=0)
        return predicted

    @property
    def log_likelihood(self) -> float:
        """Log marginal likelihood of the data."""
        fit = self.residuals @ self.coefficients / self.amplitude
        determinant = 2 * np.log(np.diag(self.factor)).sum()
        return -0.5 * (fit + determinant + len(self.residuals) * np.log(2 * np.pi * self.amplitude))

    def __repr__(self) -> str:
        scales = f"amplitude {self.amplitude:.3g}, noise ratio {self.noise_ratio:.3g}"
        fit = f"{scales}, log likelihood {self.log_likelihood:.4g}"
        return f"<GaussianProcess: {len(self.X)} points, {self.kernel!r}, {fit}>"


def condition(
    kernel: "Kernel",
    X: ArrayLike,
    y: ArrayLike,
    prior: ArrayLike = 0.0,
    *,
    noise_ratio: float = 1e-6,
    amplitude: float | None = None,
) -> GaussianProcess:
    """Return a Gaussian process conditioned on data; raise ConvergenceError if K + ν I is numerically singular.

    Parameters
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel
    X, y, prior : array_like, shapes (n, N), (n,) and (n,) or ()
        Points, observed values, and the prior mean at the points.
    noise_ratio, amplitude : float
        ν and s². By default s² has its maximum-likelihood value.

    Examples
    --------
    >>> from emsopt.surrogates.kernels import SquaredExponential
    >>> mean, variance = condition(SquaredExponential(0.5), [[0.0], [1.0]], [1.0, 2.0]).predict(np.zeros((1, 1)))
    >>> mean.round(2).tolist()
    [1.0]
    """
    X, residuals = _check_data(X, y, prior)
    try:
        factor = np.linalg.cholesky(kernel(X) + noise_ratio * np.eye(len(X)))
    except np.linalg.LinAlgError:
        found = f"The covariance matrix of {len(X)} points is numerically singular with noise ratio {noise_ratio:g}"
        raise ConvergenceError(f"{found}. Increase `noise_ratio`.") from None
    coefficients = _solve(factor, residuals)
    if amplitude is None:
        amplitude = _profile_amplitude(residuals, coefficients)
    return GaussianProcess(kernel, noise_ratio, float(amplitude), X, residuals, factor, coefficients)


def fit(
    kernel: "Kernel",
    X: ArrayLike,
    y: ArrayLike,
    prior: ArrayLike = 0.0,
    *,
    noise_ratio: float = 1e-4,
    noise_ratio_bounds: tuple[float, float] = NOISE_RATIO_BOUNDS,
    spread: float = np.inf,
    steps: int = 50,
    amplitude: float | None = None,
) -> GaussianProcess:
    """Return a Gaussian process conditioned on data, with hyperparameters of (locally) largest marginal likelihood.

    Parameters
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel
        The search starts from its hyperparameters and keeps to their bounds.
    X, y, prior, amplitude
        As in `condition`.
    noise_ratio, noise_ratio_bounds : float, pair of float
        Starting value and bounds of ν; equal bounds keep it fixed.
    spread : float
        For a hyperparameter with several elements, such as location weights: prior standard deviation of the
        logarithms of the elements around their common mean, against overfitting.
    steps : int
        Maximum number of L-BFGS-B iterations.

    Examples
    --------
    >>> from emsopt.surrogates.kernels import SquaredExponential
    >>> X = np.linspace(0, 1, 8)[:, None]
    >>> mean, variance = fit(SquaredExponential(0.5), X, np.sin(6 * X[:, 0])).predict(np.full((1, 1), 0.5))
    >>> bool(abs(mean[0] - np.sin(3.0)) < 0.1)
    True
    """
    from scipy.optimize import Bounds, minimize

    X, residuals = _check_data(X, y, prior)
    bounds = np.vstack([np.reshape(kernel.bounds, (-1, 2)), np.log(noise_ratio_bounds)])
    free = [h for h in kernel.hyperparameters if not h.fixed]
    ends = np.cumsum([h.n_elements for h in free])
    groups = [slice(end - h.n_elements, end) for h, end in zip(free, ends, strict=True) if h.n_elements > 1]

    def objective(theta: FloatArray) -> tuple[float, FloatArray]:
        value, slope = _negative_log_likelihood(theta, kernel, X, residuals, amplitude)
        for group in groups:
            apart = theta[group] - theta[group].mean()
            value += 0.5 * apart @ apart / spread**2
            slope[group] += apart / spread**2  # the mean has no share in the slope, as deviations from it sum to 0
        return value, slope

    start = np.clip(np.append(kernel.theta, np.log(noise_ratio)), *bounds.T)
    kernel = kernel.clone_with_theta(start[:-1])
    box = Bounds(*bounds.T)
    best = minimize(objective, start, jac=True, method="L-BFGS-B", bounds=box, options={"maxiter": steps}).x
    noise_ratio = float(np.exp(best[-1]))
    return condition(kernel.clone_with_theta(best[:-1]), X, residuals, noise_ratio=noise_ratio, amplitude=amplitude)


def _negative_log_likelihood(
    theta: FloatArray, kernel: "Kernel", X: FloatArray, residuals: FloatArray, amplitude: float | None = None
) -> tuple[float, FloatArray]:
    """Return the negative log marginal likelihood and its gradient by ``theta``; 1e25 and 0 if K + ν I is singular.

    The ``kernel`` is changed to have these hyperparameters: a copy per step would take longer than the matrix.
    """
    kernel.theta, noise_ratio, n = theta[:-1], np.exp(theta[-1]), len(residuals)
    if hasattr(kernel, "matrix_and_gradient"):  # no array of shape (n, n, number of hyperparameters)
        K, contract = kernel.matrix_and_gradient(X)
    else:
        K, gradient = kernel(X, eval_gradient=True)
        contract = lambda S: np.tensordot(S, gradient, 2)
    try:
        factor = np.linalg.cholesky(K + noise_ratio * np.eye(n))
    except np.linalg.LinAlgError:
        return 1e25, np.zeros_like(theta)  # finite, because the line search of L-BFGS-B interpolates values
    coefficients = _solve(factor, residuals)
    if amplitude is None:
        # the maximum-likelihood s² makes the misfit 1
        amplitude, misfit = _profile_amplitude(residuals, coefficients), 1.0
    else:
        misfit = float(residuals @ coefficients) / (n * amplitude)
    value = np.log(np.diag(factor)).sum() + n / 2 * (np.log(2 * np.pi * amplitude) + misfit)
    # (5.9) of Rasmussen and Williams (2006); a profiled s² is at its maximum and adds no slope
    S = _solve(factor, np.eye(n)) - np.outer(coefficients, coefficients) / amplitude
    return value, 0.5 * np.append(contract(S), noise_ratio * np.trace(S))  # by log ν, the chain rule gives ν tr(S)


def _check_data(X: ArrayLike, y: ArrayLike, prior: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Return the points, (n, N), and the values minus the prior mean, (n,); raise if shapes do not match."""
    points = np.asarray(X)
    if points.ndim != 2:
        raise InputError(f"`X` must have shape (n, N), one row per point; got shape {points.shape}.")
    values = _validate.real_array(y, "y", points.shape[:1])
    return points, values - _validate.array_of_length(prior, "prior", len(values))


def _solve(factor: FloatArray, values: FloatArray) -> FloatArray:
    """Return (K + ν I)⁻¹ times values, (n,) or (n, k), from the lower Cholesky factor of K + ν I, (n, n)."""
    return cho_solve((factor, True), values, check_finite=False)


def _profile_amplitude(residuals: FloatArray, coefficients: FloatArray) -> float:
    """Return the maximum-likelihood s²: residuals times coefficients, (n,) each, divided by n; at least 1e-12."""
    return max(float(residuals @ coefficients) / len(residuals), 1e-12)
