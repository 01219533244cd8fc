"""The learner with the constants and rules of the code that the paper's authors published, beside the paper's own.

"Bayesian Optimization for Unknown Cost-Varying Variable Subsets with No-Regret Costs" prints one algorithm; its
authors' code (Fsoft-AIC/BO-uCVS, without a licence) has another. This module is written from a list of its constants
and rules, not from its lines. ``bocvs_study.py --authors-code`` runs it.

===============  ==========================================  ==================================================
what             `AuthorsCode`, as in the code                `UnknownCost` of emsopt, as printed
===============  ==========================================  ==================================================
start            5 uniform points, not charged                none that is not charged
values           without noise                                noise of standard deviation 0.01
cost of a play   mean + 0.01 N(0, 1), clipped to [0.001, 2]   mean + noise of 0.02, within [0, 1]
kernel           lengthscales 0.2 while it explores           lengthscales estimated throughout
exploration      set t mod m, bound μ + 2 σ                   the same
exploitation     μ + 1.96 σ against μ - 0.3 σ, without α      μ + 2 σ against (1 - α) (μ - 2 σ), α halved
threshold        lower bound of the set of all variables or   largest lower bound of all sets so far
                 best observation, whichever is larger
cost             mean - √(2 log t / plays), ties: last set    mean - √(2 log T / plays) or 0, ties: largest bound
after 450 plays  a set at random                              the same rule
===============  ==========================================  ==================================================

Where the list is silent, the choice is ours: values are standardised by the plays so far; Adam has a step of 0.1 and
acts on numbers whose softplus are the lengthscales and the scale; the noise ratio is 1e-4; where no set holds all
variables (airfoil) the threshold is the largest lower bound of any set; if no set reaches the threshold, that with the
largest upper bound is played. Bounds are maximised as in `emsopt.optimizers.control.model`, since the code's own
maximiser takes the first random point by mistake. To save time, the ten steps of Adam are taken in every tenth round
instead of every round.
"""

import itertools
from dataclasses import replace

import numpy as np
import pandas as pd
from _known_model import Hyperparameters, KnownModel
from scipy.linalg import cho_solve

import emsopt as eo
from emsopt._running.checkpoint import random_stream
from emsopt._running.parallel import one_thread
from emsopt.optimizers.control.learners import ETC50, ControlLearner
from emsopt.optimizers.control.search import with_regret
from emsopt.surrogates.gaussian_process import condition
from emsopt.surrogates.kernels import SquaredExponential

LENGTH, NOISE = 0.2, 1e-4
START, EXPLORATION, LAST_RULED = 5, 0.6, 450
EXPLORING, UPPER, LOWER = 2.0, 1.96, 0.3
ADAM_STEPS, ADAM_RATE, ADAM_EVERY = 10, 0.1, 10
COST_SD, COST_RANGE = 0.01, (0.001, 2.0)
GROUPS = [4, 0, 1, 2], [5, 3, 6]


class ChargedPlay(eo.problems.Play):
    """Outcome of a play whose cost may exceed 1, as the clipped noise of the code allows."""

    def __post_init__(self):
        pass


class AuthorsCode(ControlLearner):
    """Explore every set in turn, then play the cheapest set that may be the best, by the authors' code.

    Attributes
    ----------
    scales : ndarray, shape (d + 1,)
        Lengthscales, and the prior variance relative to the variance of the values.
    """

    phase = "explore"

    def __init__(self, problem, **options):
        start = np.full(problem.dimension, LENGTH)
        super().__init__(problem, **options)
        self.model = KnownModel(problem, self.rng, Hyperparameters(start, noise_variance=NOISE))
        self.scales = self._first = np.append(start, 1.0)
        self._fitted_at = -ADAM_EVERY
        full = [i for i, s in enumerate(problem.control_sets) if len(s) == problem.dimension]
        self._bounding = full or range(len(problem.control_sets))
        self._best_seen = -np.inf
        for point in self.rng.random((START, problem.dimension)):
            self._learn(point, problem.objective.noise_free_value(point))

    def tell(self, i, x, play):
        """Report the outcome of a play."""
        super().tell(i, x, play)
        self._learn()

    def _learn(self, point=None, value=None):
        """Add a point if one is given, and standardise all values."""
        if point is not None:
            self.model.tell(point, float(value))
        y = np.array(self.model.values)
        self.model.prior, process = float(y.mean()), self.model.process
        residuals = y - self.model.prior
        amplitude = self.scales[-1] * max(float(y.var()), 1e-12)
        self.model.process = replace(
            process, amplitude=amplitude, residuals=residuals, coefficients=process.solve(residuals)
        )

    def ask(self):
        """Return the set to play next and the values of its variables."""
        if self.phase == "explore" and self.spent >= EXPLORATION * self.budget:
            self.phase = "exploit"
        return super().ask()

    def _propose(self):
        t, m = len(self.plays), len(self.counts)
        if self.phase == "explore":
            return t % m, self._bound(t % m, EXPLORING)[1]
        if t >= self._fitted_at + ADAM_EVERY:
            self._refit()
            self._fitted_at = t
        if t >= LAST_RULED:
            i = int(self.rng.integers(m))
            return i, self._bound(i, UPPER)[1]
        threshold = max(self._bound(i, LOWER, "lower")[0] for i in self._bounding)
        if len(self._bounding) == 1:
            threshold = max(threshold, *self.model.values)
        found = {}
        for i in np.lexsort([-np.arange(m), self.cost_bounds(t)]).tolist():  # the first that is good enough is played
            found[i] = self._bound(i, UPPER)
            if found[i][0] >= threshold:
                return i, found[i][1]
        i = max(found, key=lambda j: found[j][0])
        return i, found[i][1]

    def cost_bounds(self, t):
        """Return mean cost - √(2 log t / plays) of every set after t plays; -inf for a set not played."""
        radius = np.sqrt(2 * np.log(max(t, 1)) / np.maximum(self.counts, 1))
        return np.where(self.counts > 0, self.mean_costs - radius, -np.inf)

    def _bound(self, i, beta, kind="upper"):
        """Return the largest expected bound of a set and its maximiser."""
        self.model.beta = beta
        return self.model.best_bound(i, kind)

    def _refit(self):
        """Take the steps of Adam from the first hyperparameters, and condition the model on them."""
        X, y = np.array(self.model.points), np.array(self.model.values)
        with one_thread:
            self.scales = adam(X, (y - y.mean()) / max(y.std(), 1e-6), self._first)
            kernel = SquaredExponential(self.scales[:-1], "fixed")
            self.model.process = condition(kernel, X, y, self.model.prior, noise_ratio=NOISE / self.scales[-1])
            self.model._prepare()
        self._learn()


def adam(X, y, scales, steps=ADAM_STEPS):
    """Return lengthscales and prior variance, shape (d + 1,), after some steps of Adam on the marginal likelihood."""
    raw = np.log(np.expm1(scales))
    first, second = np.zeros_like(raw), np.zeros_like(raw)
    for step in range(1, steps + 1):
        slope = likelihood(X, y, np.logaddexp(0, raw))[1] / (1 + np.exp(-raw))
        first, second = 0.9 * first + 0.1 * slope, 0.999 * second + 0.001 * slope**2
        raw = raw - ADAM_RATE * first / (1 - 0.9**step) / (np.sqrt(second / (1 - 0.999**step)) + 1e-8)
    return np.logaddexp(0, raw)


def likelihood(X, y, scales):
    """Return the negative log marginal likelihood, but for a constant, and its gradient by the scales."""
    K, contract = SquaredExponential(scales[:-1]).matrix_and_gradient(X)
    factor = np.linalg.cholesky(scales[-1] * K + NOISE * np.eye(len(y)))
    coefficients = cho_solve((factor, True), y)
    S = cho_solve((factor, True), np.eye(len(y))) - np.outer(coefficients, coefficients)
    value = np.log(np.diag(factor)).sum() + y @ coefficients / 2
    by_logarithms = 0.5 * np.append(contract(scales[-1] * S), scales[-1] * (S * K).sum())
    return value, by_logarithms / scales


class ETCByIndex(ETC50):
    """Explore-then-commit with the groups of the code, which are by index, in place of sets of equal size."""

    def __init__(self, problem, **options):
        super().__init__(problem, **options)
        self.groups = [list(group) for group in GROUPS]


def run(problem, method, seed, budget, until=np.inf):
    """Return the history of a run with a learner of METHODS, until so much is spent; draws are those of `bocvs`."""
    coded = method == "authors-code"
    known = replace(problem, noise_sd=0.0) if coded else problem
    learner = METHODS[method](known, rng=random_stream(seed, 0), budget=budget)
    rows = []
    for number in itertools.count(1):
        i, x = learner.ask()
        play = learner.problem.play(i, x, rng=random_stream(seed, number))
        if coded:
            cost = problem.costs[i] + COST_SD * random_stream(seed, number, 1).standard_normal()
            play = ChargedPlay(play.point, play.value, float(np.clip(cost, *COST_RANGE)))
        if learner.spent + play.cost > budget or learner.spent > until:
            break
        phase = learner.phase
        learner.tell(i, x, play)
        rows.append((i, tuple(x.tolist()), play.value, play.cost, learner.spent, phase))
    return with_regret(pd.DataFrame(rows, columns=["set", "x", "value", "cost", "spent", "phase"]), problem)


METHODS = {"authors-code": AuthorsCode, "etc-by-index": ETCByIndex}
