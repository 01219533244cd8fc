r"""Model of a control problem: a Gaussian process, and the best expected confidence bounds of every control set.

.. math:: u = μ + β σ, \qquad l = μ - β σ, \qquad \max_{x^i} E[u([x^i, X^{-i}])]

=========  ====================  =================================================================================
symbol     name                  meaning
=========  ====================  =================================================================================
μ, σ       ``process``           posterior mean and standard deviation, squared-exponential kernel
β          ``beta``              2; Theorem 1's is in ``notebooks/papers/control_regret.py``
c, g       -                     factors of the kernel k = c g: from controlled and from uncontrolled variables
=========  ====================  =================================================================================

The kernel is a product over variables. E[μ] is exact, because the mean of g has a closed form
(`emsopt.problems.control.marginals`). E[σ] is a mean over NODES common points. A first search, from random starting
points, replaces it by √E[σ²], a close upper bound: E[σ²] is a quadratic form in c, whose matrix is computed once. A
second search maximises E[u] itself, from the better result of the first search and of the last round.

**A larger set is never worse**: if set i lies within set j, then max E_i <= max E_j for any function, because a mean
never exceeds the maximum. The maximum over all sets therefore needs only the sets that lie within no other.

Hyperparameters maximise the likelihood, with a prior of standard deviation 1 on the logarithms of the lengthscales,
and are estimated again when the number of plays has grown by the factor REFIT_GROWTH. The prior mean is the mean of the
values at the last fit.
"""

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._running.parallel import one_thread
from ...errors._types import ArrayLike, FloatArray
from ...problems.control.problem import ControlProblem
from ..boxes._search import SmoothFunction, draw_starts, maximize_on_box

NODES = 64
SCREENING_POINTS, CLIMB_STARTS = 96, 4  # screening is cheap, and a start costs a search
ROUGH_STEPS, FINE_STEPS = 12, 8  # the rough search is cheaper, so it makes the long way
REFIT_GROWTH = 1.15
FIT_OPTIONS: dict[str, Any] = {"noise_ratio_bounds": (1e-6, 0.25), "spread": 1.0, "steps": 25}
WAVES, QUANTILES = 512, 32  # more waves are closer to a Gaussian process; quantiles stand for a marginal's mean


class ControlModel:
    """Gaussian process of the plays of a control problem, with searches for the largest confidence bound of each set.

    ``process`` is None before ``initial`` plays are observed, ``fits`` counts how often hyperparameters were estimated,
    and ``maximal_sets`` lists the control sets that are not contained in another one. ``beta`` is β of the bounds.
    """

    beta, initial = 2.0, 5

    def __init__(self, problem: ControlProblem, rng: np.random.Generator) -> None:
        self.problem, self.rng = problem, rng
        self.points: list[FloatArray] = []
        self.values: list[float] = []
        self.process: Any = None
        self.prior, self.fits, self._fitted_with = 0.0, 0, 0
        sets = [set(s) for s in problem.control_sets]
        self.maximal_sets = [i for i, s in enumerate(sets) if not any(s < other for other in sets)]
        self._nodes = problem.nodes(NODES)
        self._last: dict[tuple[int, str], list[FloatArray]] = {}  # starts of the next round, as bounds change little

    def tell(self, point: ArrayLike, value: float) -> None:
        """Add a play: the values of all d variables, shape (d,), and the observed value of the objective."""
        self.points.append(np.array(point, dtype=float))
        self.values.append(float(value))
        if len(self.values) < self.initial:
            return
        with one_thread:
            if self.process is not None and len(self.values) < REFIT_GROWTH * self._fitted_with:
                self.process = self.process.with_observation(self.points[-1], self.values[-1], self.prior)
            else:
                self._fit()
            self._prepare()

    def _fit(self) -> None:
        """Estimate the hyperparameters again, and condition the process on all plays."""
        from ...surrogates.gaussian_process import fit
        from ...surrogates.kernels import SquaredExponential

        X, y = np.array(self.points), np.array(self.values)
        kernel, ratio = SquaredExponential(np.full(self.problem.dimension, 0.5), (0.1, 20.0)), 1e-2
        if self.process is not None:
            kernel, ratio = self.process.kernel, self.process.noise_ratio  # a warm start
        self.prior = float(y.mean())
        self.process = fit(kernel, X, y, self.prior, noise_ratio=ratio, **FIT_OPTIONS)
        self._fitted_with = len(y)
        self.fits += 1

    def _prepare(self) -> None:
        """Compute what all searches of a round need: the inverse (K + ν I)⁻¹, and E[g] by play and variable, (n, d)."""
        from scipy.linalg.lapack import dpotri

        process = self.process
        self.lengthscales = np.broadcast_to(process.kernel.length_scale, self.problem.dimension)
        self.scaled = process.X / self.lengthscales
        lower = dpotri(process.factor, lower=1)[0]  # LAPACK inverts from the factor, and fills one triangle
        self.inverse = lower + np.tril(lower, -1).T
        columns = zip(self.problem.marginals, process.X.T, self.lengthscales, strict=True)
        self.averages = np.column_stack([X.gaussian_average(x, scale) for X, x, scale in columns])

    def best_bound(self, i: int, kind: str) -> tuple[float, FloatArray]:
        """Return the largest E[u] (``kind`` "upper") or E[l] ("lower") of set ``i``, and its maximiser, shape (k,)."""
        bound = self.expected_bound(i, kind)
        with one_thread:
            box, starts = self._draw_starts(i, bound.approximate, SCREENING_POINTS, CLIMB_STARTS)
            end = maximize_on_box(bound.approximate, starts, box, steps=ROUGH_STEPS, polish=0)[0]
            x, value = maximize_on_box(bound, [end, *self._last.get((i, kind), [])], box, steps=0, polish=FINE_STEPS)
        self._last[i, kind] = [x]
        return value, x

    def expected_bound(self, i: int, kind: str) -> "ExpectedBound":
        """Return E[u] (``kind`` "upper"), E[l] ("lower") or E[μ] ("mean") as a function of the values in set ``i``."""
        return ExpectedBound(self, i, {"upper": 1.0, "lower": -1.0, "mean": 0.0}[kind] * self.beta)

    def best_of_sample(self, sample: "PosteriorSample", i: int) -> tuple[float, FloatArray]:
        """Return the largest expected value of a posterior sample for set ``i``, and its maximiser, shape (k,)."""
        function = sample.expectation(i)
        with one_thread:
            box, starts = self._draw_starts(i, function, 4 * SCREENING_POINTS, 2 * CLIMB_STARTS)
            x, value = maximize_on_box(function, starts, box, steps=4 * ROUGH_STEPS, polish=FINE_STEPS)
        return value, x

    def _draw_starts(
        self, i: int, function: SmoothFunction, n: int, most: int
    ) -> tuple[list[tuple[float, float]], FloatArray]:
        """Return the bounds of set ``i``, (k, 2), and the best of n random points, half near good plays, (most, k)."""
        controlled = list(self.problem.control_sets[i])
        box = [(0.0, 1.0)] * len(controlled)
        points = draw_starts(box, n, self.rng, near=[self.points[k][controlled] for k in np.argsort(self.values)[-8:]])
        return box, points[np.argsort(-function(points)[0])[:most]]


class ExpectedBound:
    """The function E[μ] + weight E[σ] of the values of the k variables that a control set holds."""

    def __init__(self, model: ControlModel, i: int, weight: float) -> None:
        problem, process = model.problem, model.process
        controlled, rest = list(problem.control_sets[i]), problem.uncontrolled_variables(i)
        self.weight, self.prior = weight, model.prior
        self.amplitude, self.inverse = process.amplitude, model.inverse
        self.lengthscales, self.scaled = model.lengthscales[controlled], model.scaled[:, controlled]
        self.pull = model.averages[:, rest].prod(axis=1) * process.coefficients
        self.g = _gaussian_kernel(model._nodes[:, rest] / model.lengthscales[rest], model.scaled[:, rest])
        if not len(rest):
            self.g = self.g[:1]  # no variable is left to chance, so all nodes are equal
        self.form: FloatArray | None = None  # of the quadratic form in c, computed when `approximate` is first called

    def __call__(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return E[μ] + weight E[σ], (K,), and its slopes, (K, k), at values of the controlled variables, (K, k)."""
        c = _gaussian_kernel(x / self.lengthscales, self.scaled)
        v = c[:, None] * self.g
        w = (v.reshape(-1, v.shape[2]) @ self.inverse).reshape(v.shape)
        w *= v
        return self._values_and_slopes(x, c, w)

    def approximate(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return E[μ] + weight √E[σ²], (K,), and its slopes, (K, k), at values (K, k): a faster approximation."""
        c = _gaussian_kernel(x / self.lengthscales, self.scaled)
        if self.form is None:
            self.form = self.inverse * (self.g.T @ self.g / len(self.g))  # averaged over nodes once, for all c
        return self._values_and_slopes(x, c, (c @ self.form * c)[:, None])

    def _values_and_slopes(self, x: FloatArray, c: FloatArray, w: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return bound, (K,), and slopes, (K, k), at x from c, (K, n), and the plays' parts w in σ², (K, nodes, n)."""
        pull = c * self.pull
        deviation = np.sqrt(self.amplitude * np.maximum(1 - w.sum(axis=2), 1e-12))  # rounding may make it negative
        values = self.prior + pull.sum(axis=1) + self.weight * deviation.mean(axis=1)
        # slope of the root: its ½ cancels with the 2 of the square
        pull -= np.einsum("kq,kqn->kn", self.weight * self.amplitude / (deviation.shape[1] * deviation), w)
        apart = pull @ self.scaled - pull.sum(axis=1)[:, None] * (x / self.lengthscales)
        return values, apart / self.lengthscales


class PosteriorSample:
    """A random function drawn from the posterior: WAVES random Fourier features, conditioned pathwise on the data."""

    def __init__(self, model: ControlModel) -> None:
        process, rng = model.process, model.rng
        self.model = model
        # the spectral density of a squared-exponential kernel is normal
        self.waves = rng.standard_normal((WAVES, model.problem.dimension)) / model.lengthscales
        self.phases = rng.uniform(0, 2 * np.pi, WAVES)
        self.weights = rng.standard_normal(WAVES) * np.sqrt(2 * process.amplitude / WAVES)
        at_data = np.cos(process.X @ self.waves.T + self.phases) @ self.weights
        noise = np.sqrt(process.noise_ratio * process.amplitude) * rng.standard_normal(len(at_data))
        # pathwise: the wave's error at the data is corrected by the kernel
        self.correction = model.inverse @ (process.residuals - at_data - noise)

    @cached_property
    def wave_averages(self) -> NDArray[np.complex128]:
        """Mean of exp(i w x) for each frequency w of a wave and variable x, over its marginal, shape (WAVES, d)."""
        at = (np.arange(QUANTILES) + 0.5) / QUANTILES
        x = np.column_stack([X.quantile(at) for X in self.model.problem.marginals])
        return np.exp(1j * x[:, None] * self.waves).mean(axis=0)

    def expectation(self, i: int) -> SmoothFunction:
        """Return the expected value of the sample as a function, with slopes, of the values in set ``i``."""
        model, problem = self.model, self.model.problem
        controlled, rest = list(problem.control_sets[i]), problem.uncontrolled_variables(i)
        mean = np.exp(1j * self.phases) * (self.wave_averages[:, rest].prod(axis=1) if len(rest) else 1.0)
        size, shift, waves = self.weights * np.abs(mean), np.angle(mean), self.waves[:, controlled]
        correction = self.correction * model.averages[:, rest].prod(axis=1)
        lengthscales, scaled = model.lengthscales[controlled], model.scaled[:, controlled]

        def function(x: FloatArray) -> tuple[FloatArray, FloatArray]:
            angle = x @ waves.T + shift
            pull = _gaussian_kernel(x / lengthscales, scaled) * correction
            values = model.prior + np.cos(angle) @ size + pull.sum(axis=1)
            slopes = -(np.sin(angle) * size) @ waves
            slopes += (pull @ scaled - pull.sum(axis=1)[:, None] * (x / lengthscales)) / lengthscales
            return values, slopes

        return function


def _gaussian_kernel(A: FloatArray, B: FloatArray) -> FloatArray:
    """Return exp(-‖a - b‖² / 2) for every row a of A and every row b of B, shape (len(A), len(B))."""
    apart = (A**2).sum(axis=1)[:, None] + (B**2).sum(axis=1) - 2 * A @ B.T
    return np.exp(-np.maximum(apart, 0) / 2)
