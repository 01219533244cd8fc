r"""Gaussian process regression with a prior mean supplied at every point.

Equations (12), (14) and (15) of "Optimizing Server Locations in Spatial Queues".

===========  ================  ==============================================================================
symbol       name              meaning
===========  ================  ==============================================================================
m(x)         ``prior``         prior mean at a point, supplied by the caller
s²           ``amplitude``     factor of the kernel; its maximum-likelihood value has a closed form
ν            ``noise``         noise variance divided by s²
k            ``kernel``        any scikit-learn kernel
===========  ================  ==============================================================================

.. math:: Y \sim \mathcal N(m(X), s^2 (K + ν I))

`fit` maximises the marginal likelihood over the kernel's hyperparameters and ν with analytic gradients; s² is
profiled out. Each training step costs O(n³), which is practical for hundreds of points, not thousands.
"""

from dataclasses import dataclass, replace

import numpy as np

from .. import _validate
from ..errors import ConvergenceError, InputError

NOISE_BOUNDS = (1e-6, 1.0)


@dataclass(frozen=True, eq=False, repr=False)
class GaussianProcess:
    """A Gaussian process conditioned on data; build it with `condition` or `fit`.

    Attributes
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel
    noise : float
        ν.
    amplitude : float
        s².
    X : ndarray, shape (n, N)
    residuals : ndarray, shape (n,)
        Observed values minus the prior mean.
    factor : ndarray, shape (n, n)
        Lower Cholesky factor of K + ν I.
    coefficients : ndarray, shape (n,)
        (K + ν I)⁻¹ residuals.
    """

    kernel: object
    noise: float
    amplitude: float
    X: np.ndarray
    residuals: np.ndarray
    factor: np.ndarray
    coefficients: np.ndarray

    def predict(self, X, prior=0.0):
        """Return posterior mean and variance of the noise-free function, (14) and (15).

        Parameters
        ----------
        X : array_like, shape (m, N)
        prior : array_like, shape (m,), or float
            Prior mean at these points.

        Returns
        -------
        mean, variance : ndarray, shape (m,)
        """
        from scipy.linalg import solve_triangular

        across = self.kernel(X, self.X)
        explained = solve_triangular(self.factor, across.T, lower=True, check_finite=False)
        variance = self.kernel.diag(X) - np.einsum("ij,ij->j", explained, explained)
        return prior + across @ self.coefficients, self.amplitude * np.maximum(variance, 0)

    def predict_with_slopes(self, X, prior=0.0):
        """Return posterior mean and variance and their gradients, for a kernel with a method ``with_slopes``.

        Parameters
        ----------
        X : array_like, shape (m, N)
        prior : array_like, shape (m,), or float
            Prior mean at these points. Its gradient is not included.

        Returns
        -------
        mean, variance : ndarray, shape (m,)
        mean_slopes, variance_slopes : ndarray, shape (m, N)
        """
        X = np.atleast_2d(X)
        across, contract = self.kernel.with_slopes(X, self.X)
        weights = _solve(self.factor, across.T).T
        variance = self.kernel.diag(X) - np.einsum("ij,ij->i", across, weights)
        mean_slopes = contract(np.broadcast_to(self.coefficients, across.shape))
        variance_slopes = -2 * self.amplitude * contract(weights)
        return (
            prior + across @ self.coefficients,
            self.amplitude * np.maximum(variance, 0),
            mean_slopes,
            variance_slopes,
        )

    def appended(self, x, y, prior=0.0):
        """Return the process with one more observation and unchanged hyperparameters, in O(n²).

        Parameters
        ----------
        x : array_like, shape (N,)
        y, prior : float
            Observed value and prior mean at x.
        """
        from scipy.linalg import solve_triangular

        x = np.atleast_2d(x)
        n = len(self.X)
        row = solve_triangular(self.factor, self.kernel(self.X, x)[:, 0], lower=True, check_finite=False)
        pivot = self.kernel.diag(x)[0] + self.noise - row @ row
        factor = np.zeros((n + 1, n + 1))
        factor[:n, :n] = self.factor
        factor[n, :n] = row
        factor[n, n] = np.sqrt(max(pivot, self.noise))
        residuals = np.append(self.residuals, y - prior)
        return replace(
            self,
            X=np.vstack([self.X, x]),
            residuals=residuals,
            factor=factor,
            coefficients=_solve(factor, residuals),
        )

    @property
    def log_likelihood(self):
        """Log marginal likelihood of the data."""
        fit = self.residuals @ self.coefficients / self.amplitude
        n = len(self.residuals)
        determinant = 2 * np.log(np.diag(self.factor)).sum()
        return -0.5 * (fit + determinant + n * np.log(2 * np.pi * self.amplitude))

    def __repr__(self):
        return (
            f"<GaussianProcess: {len(self.X)} points, {self.kernel!r}, amplitude {self.amplitude:.3g}, "
            f"noise {self.noise:.3g}, log likelihood {self.log_likelihood:.4g}>"
        )


def condition(kernel, X, y, prior=0.0, *, noise=1e-6, amplitude=None):
    """Condition a Gaussian process on data, with given hyperparameters.

    Parameters
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel
    X : array_like, shape (n, N)
    y : array_like, shape (n,)
        Observed values.
    prior : array_like, shape (n,), or float
        Prior mean at X.
    noise : float
        ν, the noise variance divided by the amplitude.
    amplitude : float, optional
        s². Default: its maximum-likelihood value.

    Returns
    -------
    GaussianProcess
    """
    X, residuals = _data(X, y, prior)
    noise = _validate.positive_number(noise, "noise")
    factor = _cholesky(kernel(X), noise)
    if factor is None:
        raise ConvergenceError(f"The covariance of {len(X)} points is singular with noise {noise:g}. Increase `noise`.")
    coefficients = _solve(factor, residuals)
    if amplitude is None:
        amplitude = _profiled(residuals, coefficients)
    return GaussianProcess(kernel, noise, float(amplitude), X, residuals, factor, coefficients)


def fit(
    kernel,
    X,
    y,
    prior=0.0,
    *,
    noise=1e-4,
    noise_bounds=NOISE_BOUNDS,
    spread=np.inf,
    steps=50,
    restarts=0,
    rng=None,
):
    """Condition a Gaussian process on data, with hyperparameters that maximise the marginal likelihood.

    Parameters
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel
        Provides the starting point and the bounds. For a warm start pass the kernel of the previous fit.
    X, y, prior
        As in `condition`.
    noise : float
        Starting value of ν.
    noise_bounds : pair of float
        Bounds of ν; equal bounds keep it fixed.
    spread : float
        Prior standard deviation of the logarithms of one hyperparameter's elements (such as location weights)
        around their common mean; infinite for plain likelihood. A finite value prevents overfitting when
        there are as many weights as observations.
    steps : int
        Maximum number of L-BFGS-B iterations per start.
    restarts : int
        Number of additional starting points, drawn uniformly within the (logarithmic) bounds.
    rng : int or Generator, optional
        Source of randomness for the restarts.

    Returns
    -------
    GaussianProcess
    """
    from scipy.optimize import minimize

    X, residuals = _data(X, y, prior)
    low, high = np.log(noise_bounds)
    bounds = np.vstack([np.reshape(kernel.bounds, (-1, 2)), [low, high]])
    groups = _element_groups(kernel)

    def objective(theta):
        value, slope = negative_log_likelihood(theta, kernel, X, residuals)
        for group in groups:
            apart = theta[group] - theta[group].mean()
            value += 0.5 * apart @ apart / spread**2
            slope[group] += apart / spread**2
        return value, slope

    starts = [np.append(kernel.theta, np.log(noise))]
    if restarts:
        starts += list(_validate.generator(rng).uniform(*bounds.T, (restarts, len(bounds))))
    runs = [
        minimize(
            objective,
            np.clip(start, *bounds.T),
            jac=True,
            method="L-BFGS-B",
            bounds=bounds,
            options={"maxiter": steps},
        )
        for start in starts
    ]
    best = min(runs, key=lambda run: run.fun).x
    return condition(kernel.clone_with_theta(best[:-1]), X, residuals, noise=float(np.exp(best[-1])))


def negative_log_likelihood(theta, kernel, X, residuals):
    """Return the negative log marginal likelihood, with s² profiled out, and its gradient.

    Parameters
    ----------
    theta : ndarray
        Logarithms of the kernel's hyperparameters, followed by the logarithm of ν.
    kernel : sklearn.gaussian_process.kernels.Kernel
    X : ndarray, shape (n, N)
    residuals : ndarray, shape (n,)
        Observed values minus the prior mean.
    """
    from scipy.linalg import cho_solve

    kernel = kernel.clone_with_theta(theta[:-1])
    noise = np.exp(theta[-1])
    n = len(residuals)
    if hasattr(kernel, "contracted"):
        K, contract = kernel.contracted(X)
    else:
        K, gradient = kernel(X, eval_gradient=True)

        def contract(S):
            return np.tensordot(S, gradient, 2)

    factor = _cholesky(K, noise)
    if factor is None:
        return 1e25, np.zeros_like(theta)
    coefficients = _solve(factor, residuals)
    amplitude = _profiled(residuals, coefficients)
    value = np.log(np.diag(factor)).sum() + n / 2 * (np.log(2 * np.pi * amplitude) + 1)
    inverse = cho_solve((factor, True), np.eye(n), check_finite=False)
    S = inverse - np.outer(coefficients, coefficients) / amplitude
    return value, 0.5 * np.append(contract(S), noise * np.trace(S))


def _data(X, y, prior):
    """Return the points and the values minus the prior mean."""
    X = np.asarray(X)
    y = np.asarray(y, dtype=float)
    if X.ndim != 2 or y.shape != X.shape[:1] or not len(y):
        raise InputError(f"`X` must have shape (n, N) and `y` shape (n,), n at least 1; got {X.shape} and {y.shape}.")
    residuals = y - prior
    if residuals.shape != y.shape or not np.isfinite(residuals).all():
        raise InputError(
            f"`prior` must be one number or {len(y)} numbers, and `prior` and `y` must be finite; got a "
            f"prior of shape {np.shape(prior)}."
        )
    return X, residuals


def _element_groups(kernel):
    """Return the slice of ``theta`` of each hyperparameter that has several elements."""
    ends = np.cumsum([0 if h.fixed else h.n_elements for h in kernel.hyperparameters])
    return [
        slice(end - h.n_elements, end)
        for h, end in zip(kernel.hyperparameters, ends, strict=True)
        if h.n_elements > 1 and not h.fixed
    ]


def _cholesky(K, noise):
    """Return the lower factor of K + ν I, or None if it is numerically singular."""
    try:
        return np.linalg.cholesky(K + noise * np.eye(len(K)))
    except np.linalg.LinAlgError:
        return None


def _solve(factor, residuals):
    from scipy.linalg import cho_solve

    return cho_solve((factor, True), residuals, check_finite=False)


def _profiled(residuals, coefficients):
    """Return the maximum-likelihood amplitude, bounded away from zero in case all residuals are zero."""
    return max(residuals @ coefficients / len(residuals), 1e-12)
