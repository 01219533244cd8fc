r"""What a learner knows of a control problem: a Gaussian process, and the best bounds of every control set.

.. math:: u = μ + β σ, \qquad l = μ - β σ, \qquad \max_{x^i} E[u([x^i, X^{-i}])]

=========  ====================  =================================================================================
symbol     name                  meaning
=========  ====================  =================================================================================
μ, σ       ``process``           posterior mean and standard deviation, squared-exponential kernel
β          ``beta``              2, or Theorem 1's B + σ_n sqrt(2 (γ + 1 + log(1/δ)))
γ          -                     information gain of the plays so far, log det(I + K/ν) / 2; the theorem has the largest
c, g       -                     factors of the kernel from controlled and from other variables, k = c g
=========  ====================  =================================================================================

**How it is computed.** The kernel is a product over variables. E[μ] is exact: g averages in closed form
(`emsopt.problems.control.marginals`). E[σ] is a mean over NODES common points, whose g is computed once a round and set; the
variance at all of them then takes one matrix product. Random starts are compared and climbed with the root of E[σ²] in
its place, which is no smaller, lies close and takes no nodes at all: σ² is a quadratic form in c, so its mean is one
too. From there, or from where the last round's search ended if that is higher, E[u] itself is climbed.

**A larger set is never worse**: if set i lies within set j, then max E_i <= max E_j for any function, such as u, l and
f itself, because a mean never exceeds the best. So the maximum over all sets needs only those within no other.

Hyperparameters are the likeliest, searched anew when the plays have grown by GROWTH, with the SPREAD of lengthscales
as a prior, or they are given. Unless they are, the first INITIAL plays are at random points, for want of a scale, and
the prior mean is the mean of the values at the last fit.

Measured (`benchmarks/bocvs.py`, 12 variables, seven sets, CPU seconds a round on one core): the largest set alone takes
0.01 s at 200 plays and 0.15 s at 1,000; bounding all seven takes 0.08 s and 0.7 s; an estimate of the hyperparameters
0.15 s and 6 s. So this is meant for hundreds of plays.
"""

from dataclasses import dataclass

import numpy as np

from ... import _validate
from ..._running.threads import one_thread
from ..boxes._search import maximize_on_box, starts_on_box

NODES = 64
SCREENED, CLIMBED = 96, 4  # random points to compare, and those of them to climb from
STEPS, POLISH = 12, 8  # iterations of the search with the root of E[σ²], and with E[σ]
INITIAL = 5
GROWTH = 1.15
SPREAD = 1.0
LENGTHSCALES = (0.1, 20.0)
NOISE = (1e-6, 0.25)  # of the noise's variance over the amplitude
FIT_STEPS = 25
LEAST_VARIANCE = 1e-12  # over the amplitude
FEATURES, SAMPLE_NODES = 512, 512  # of a posterior sample


@dataclass(frozen=True)
class Hyperparameters:
    """Hyperparameters that are known.

    Attributes
    ----------
    lengthscales : ndarray, shape (d,)
        In widths of the unit cube.
    amplitude : float
        Prior variance, in squared units of the objective.
    noise : float
        Variance of the noise on a value, above 0.
    mean : float
        Prior mean.
    """

    lengthscales: np.ndarray
    amplitude: float = 1.0
    noise: float = 1e-4
    mean: float = 0.0

    def __post_init__(self):
        given = _validate.real_array(self.lengthscales, "lengthscales", (None,), low=0, strictly=True)
        object.__setattr__(self, "lengthscales", given)
        for name in ("amplitude", "noise"):
            _validate.positive_number(getattr(self, name), name)
        _validate.real_array(self.mean, "mean", ())


class ControlModel:
    """A Gaussian process of the plays so far, and searches for the best bound of each set.

    Parameters
    ----------
    problem : ControlProblem
    rng : Generator
        For the starts of searches.
    beta : float or "theorem"
        Weight of σ.
    norm, delta : float
        B, bound on the function's norm in units of the square root of the amplitude, and δ, for "theorem".
    hyperparameters : Hyperparameters, optional
        Left out: estimated.

    Attributes
    ----------
    process : GaussianProcess or None
        None before enough plays are told.
    prior : float
        Its prior mean.
    fits : int
        How often hyperparameters were estimated.
    maximal : list of int
        Sets that lie within no other.
    """

    def __init__(self, problem, rng, *, beta=2.0, norm=1.0, delta=0.1, hyperparameters=None):
        self.problem, self.rng = problem, rng
        self._beta, self._norm, self._delta = beta, norm, delta
        if hyperparameters is not None:
            _validate.real_array(hyperparameters.lengthscales, "lengthscales", (problem.dimension,))
        self._given = hyperparameters
        self._initial = INITIAL if hyperparameters is None else 1
        self.points, self.values = [], []
        self.process, self.prior, self.fits = None, 0.0, 0
        self._fitted_with = 0
        sets = [set(s) for s in problem.control_sets]
        self.maximal = [i for i, s in enumerate(sets) if not any(s < other for other in sets)]
        self._nodes = problem.nodes(NODES)
        self._last = {}  # where the last searches ended, by set and kind of bound

    @property
    def beta(self):
        """β of the next round."""
        if self._beta != "theorem":
            return self._beta
        noise = self.process.noise
        gain = np.log(np.diag(self.process.factor) / np.sqrt(noise)).sum()
        return self._norm + np.sqrt(2 * noise * (gain + 1 + np.log(1 / self._delta)))

    def tell(self, point, value):
        """Take in a play: values of all variables, shape (d,), and the observed value."""
        self.points.append(np.array(point, dtype=float))
        self.values.append(float(value))
        if len(self.values) < self._initial:
            return
        with one_thread:
            if self.process is not None and (self._given or len(self.values) < GROWTH * self._fitted_with):
                self.process = self.process.appended(self.points[-1], self.values[-1], self.prior)
            elif self._given:
                self._condition()
            else:
                self._fit()
            self._prepare()

    def _condition(self):
        from ...surrogates.gaussian_process import condition
        from ...surrogates.squared_exponential import SquaredExponential

        given = self._given
        self.prior = given.mean
        self.process = condition(
            SquaredExponential(given.lengthscales, "fixed"),
            np.array(self.points),
            np.array(self.values),
            self.prior,
            noise=given.noise / given.amplitude,
            amplitude=given.amplitude,
        )

    def _fit(self):
        from ...surrogates.gaussian_process import fit
        from ...surrogates.squared_exponential import SquaredExponential

        if self.process is None:
            kernel, noise = SquaredExponential(np.full(self.problem.dimension, 0.5), LENGTHSCALES), 1e-2
        else:
            kernel, noise = self.process.kernel, self.process.noise
        X, y = np.array(self.points), np.array(self.values)
        self.prior = float(y.mean())
        self.process = fit(kernel, X, y, self.prior, noise=noise, noise_bounds=NOISE, spread=SPREAD, steps=FIT_STEPS)
        self._fitted_with = len(y)
        self.fits += 1

    def _prepare(self):
        """Compute what all searches of a round share."""
        from scipy.linalg.lapack import dpotri

        process = self.process
        self._lengthscales = np.broadcast_to(process.kernel.length_scale, self.problem.dimension)
        self._scaled = process.X / self._lengthscales
        lower = dpotri(process.factor, lower=1)[0]
        self._inverse = lower + np.tril(lower, -1).T
        self._averages = np.column_stack(
            [X.gaussian_average(process.X[:, k], self._lengthscales[k]) for k, X in enumerate(self.problem.marginals)]
        )

    def best_upper(self, i):
        """Return the largest E[u] of set ``i`` and where it is reached, shape (k,)."""
        return self._best(i, "upper")

    def best_lower(self, i):
        """Return the largest E[l] of set ``i`` and where it is reached, shape (k,)."""
        return self._best(i, "lower")

    def random_point(self, i):
        """Return a random point of set ``i``, shape (k,)."""
        return self.rng.random(len(self.problem.control_sets[i]))

    def _best(self, i, kind):
        bound = self.bound(i, kind)
        box = [(0.0, 1.0)] * len(self.problem.control_sets[i])
        controlled = list(self.problem.control_sets[i])
        near = [self.points[k][controlled] for k in np.argsort(self.values)[-8:]]
        screened = starts_on_box(box, SCREENED, self.rng, near=near)
        with one_thread:
            return self._search(bound, screened, box, (i, kind))

    def _search(self, bound, screened, box, key):
        """Climb from the best of some points and from where the last search of this kind ended."""
        values = bound.rough(screened)[0]
        starts = screened[np.argsort(-values)[:CLIMBED]]
        ends = [maximize_on_box(bound.rough, starts, box, steps=STEPS, polish=0)[0]]
        if key in self._last:
            ends.append(self._last[key])
        x, value = maximize_on_box(bound, ends, box, steps=0, polish=POLISH)
        self._last[key] = x
        return value, x

    def bound(self, i, kind):
        """Return E[u] ("upper"), E[l] ("lower") or E[μ] ("mean") of set ``i`` as a function to climb.

        It maps points (K, k) to values (K,) and slopes (K, k).
        """
        sign = {"upper": 1.0, "lower": -1.0, "mean": 0.0}[kind]
        return _ExpectedBound(self, i, sign * self.beta if sign else 0.0)

    def sample(self):
        """Return a random function from the posterior, as `PosteriorSample`."""
        return PosteriorSample(self)

    def best_of_sample(self, sample, i):
        """Return the largest expected value of a posterior sample over set ``i``, and where, shape (k,)."""
        box = [(0.0, 1.0)] * len(self.problem.control_sets[i])
        controlled = list(self.problem.control_sets[i])
        near = [self.points[k][controlled] for k in np.argsort(self.values)[-8:]]
        function = sample.expected(i)
        with one_thread:
            screened = starts_on_box(box, 4 * SCREENED, self.rng, near=near)
            starts = screened[np.argsort(-function(screened)[0])[: 2 * CLIMBED]]
            x, value = maximize_on_box(function, starts, box, steps=4 * STEPS, polish=POLISH)
        return value, x


class _ExpectedBound:
    """E[μ] + weight E[σ] of one control set; call it with points (K, k) for values (K,) and slopes (K, k)."""

    def __init__(self, model, i, weight):
        problem, process = model.problem, model.process
        self.weight = weight
        self.prior, self.amplitude = model.prior, process.amplitude
        self.coefficients, self.inverse = process.coefficients, model._inverse
        controlled, rest = list(problem.control_sets[i]), problem.left_to_chance(i)
        self.lengthscales = model._lengthscales[controlled]
        self.scaled = model._scaled[:, controlled]
        self.average = model._averages[:, rest].prod(axis=1)
        self.g = _gaussian(model._nodes[:, rest] / model._lengthscales[rest], model._scaled[:, rest])
        if not len(rest):
            self.g = self.g[:1]
        self.form = None  # matrix of the quadratic form in c that is E[σ²] less its prior value

    def __call__(self, x):
        """Return values (K,) and slopes (K, k) at points (K, k)."""
        c = _gaussian(x / self.lengthscales, self.scaled)
        v = c[:, None] * self.g
        w = v
        if self.weight:
            w = (v.reshape(-1, v.shape[2]) @ self.inverse).reshape(v.shape)
            w *= v
        return self._values_and_slopes(x, c, w)

    def rough(self, x):
        """Return the same with the root of E[σ²] in place of E[σ]."""
        c = _gaussian(x / self.lengthscales, self.scaled)
        if self.form is None:
            self.form = self.inverse * (self.g.T @ self.g / len(self.g))
        return self._values_and_slopes(x, c, (c @ self.form * c)[:, None])

    def _values_and_slopes(self, x, c, w):
        """Return the bound from ``w``, shape (K, nodes, n): by how much each play lowers σ² at every node."""
        pull = c * (self.average * self.coefficients)
        values = self.prior + pull.sum(axis=1)
        if self.weight:
            deviation = np.sqrt(self.amplitude * np.maximum(1 - w.sum(axis=2), LEAST_VARIANCE))
            values += self.weight * deviation.mean(axis=1)
            share = self.weight * self.amplitude / (deviation.shape[1] * deviation)
            pull -= np.einsum("kq,kqn->kn", share, w)
        apart = pull @ self.scaled - pull.sum(axis=1)[:, None] * (x / self.lengthscales)
        return values, apart / self.lengthscales


class PosteriorSample:
    """A random function from the posterior: FEATURES random waves, corrected by the data (pathwise conditioning)."""

    def __init__(self, model):
        process, rng = model.process, model.rng
        self.model = model
        self.waves = rng.standard_normal((FEATURES, model.problem.dimension)) / model._lengthscales
        self.phases = rng.uniform(0, 2 * np.pi, FEATURES)
        self.weights = rng.standard_normal(FEATURES) * np.sqrt(2 * process.amplitude / FEATURES)
        at_data = np.cos(process.X @ self.waves.T + self.phases) @ self.weights
        noise = np.sqrt(process.noise * process.amplitude) * rng.standard_normal(len(at_data))
        self.correction = model._inverse @ (process.residuals - at_data - noise)

    def expected(self, i):
        """Return the sample's expected value over set ``i``: from points (K, k) to values (K,) and slopes (K, k).

        A wave's mean over the nodes is a wave of the controlled variables, smaller and shifted.
        """
        model, problem = self.model, self.model.problem
        controlled, rest = list(problem.control_sets[i]), problem.left_to_chance(i)
        nodes = problem.nodes(SAMPLE_NODES)[:, rest] if len(rest) else np.zeros((1, 0))
        mean = np.exp(1j * (nodes @ self.waves[:, rest].T + self.phases)).mean(axis=0)
        size, shift, waves = self.weights * np.abs(mean), np.angle(mean), self.waves[:, controlled]
        correction = self.correction * model._averages[:, rest].prod(axis=1)
        lengthscales, scaled = model._lengthscales[controlled], model._scaled[:, controlled]

        def function(x):
            angle = x @ waves.T + shift
            pull = _gaussian(x / lengthscales, scaled) * correction
            values = model.prior + np.cos(angle) @ size + pull.sum(axis=1)
            slopes = -(np.sin(angle) * size) @ waves
            slopes += (pull @ scaled - pull.sum(axis=1)[:, None] * (x / lengthscales)) / lengthscales
            return values, slopes

        return function


def _gaussian(A, B):
    """Return exp(-|a - b|² / 2) between rows, shape (len(A), len(B))."""
    apart = (A**2).sum(axis=1)[:, None] + (B**2).sum(axis=1) - 2 * A @ B.T
    return np.exp(-np.maximum(apart, 0) / 2)
