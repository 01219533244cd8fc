r"""GP-pM and GP-zero: Bayesian optimization of deployments with a Gaussian process in a trust region.

Section 5 of "Optimizing Server Locations in Spatial Queues", Algorithms 3 and 4; constants from appendix C.1 of the
paper's first version.

==============  ==============  ==============================================================================
symbol          name            meaning
==============  ==============  ==============================================================================
𝒯               ``initial``     number of random deployments to begin with
d               ``edge``        largest Hamming distance from the centre (2 per relocated unit)
d_0             INITIAL_EDGE    its initial value
n_s, α_s        GROWTH          successes after which d grows, and its factor
n_f, α_f        SHRINKAGE       consecutive failures after which d shrinks, and its factor
β               BETA            weight of the variance in the choice of a centre: mean - √(β · variance), (16)
m(x)            -               prior mean: p-median objective Σ_j w_j min_i c_ij, plus a constant
GP              ``process``     Gaussian process fitted to all observations (see ``weights``)
GP*             -               Gaussian process fitted to the first 𝒯 and the regions' optima; chooses centres
x^c             ``centre``      centre of the feasible trust region (17), as units at each location
==============  ==============  ==============================================================================

A location is a group of interchangeable sites. Deployments are numbers of units at locations.

Choices that the paper leaves open: 𝒯 = 20; successes need not be consecutive (section 5.4), and the region's first
value counts as one (y' starts at infinity); a restart takes no evaluation.

Each repair of our own has a name in REPAIRS. ``literal=True`` (method "gp-pm-literal") leaves all of them out;
`benchmarks/RESULTS.md` has the contribution of each.

- ``constant``: the average residual is added to the prior mean, or the kernel has to explain several minutes of waiting
  as covariance.
- ``scale``: a factor multiplies kernel (13), which has none.
- ``weights``: the location weights share a prior, log-normal around their common mean, standard deviation SPREAD. Plain
  likelihood would have to fit a weight per location to a few dozen values. Training also takes fewer steps, beyond
  ALWAYS_FIT_LIMIT observations not after each one, and beyond MAX_MODELLED with those nearest to the centre.
- ``climbs``: expected improvement is maximised by climbs inside the region (`search_by_climbs`) instead of random swaps
  (`swap_adaptively`). Algorithm 3 may end at a deployment whose value is known, which the literal version evaluates
  again.
- ``centre``: the centre follows the region's best deployment, and only values inside the region count as successes.
  Algorithm 4 keeps the centre; the shrinking region then soon leaves the best deployment outside.
- ``cap``: d does not grow beyond the whole space.
- ``start``: a new centre is found by single swaps that lower (16), from the best deployment that GP* was fitted to. The
  literal version lists all deployments if there are at most MAX_LISTED.

Limits. The p-median prior ignores queueing, so at very high load or for unusual preferences it misleads at first.
"""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from ...city.deployment_space import DeploymentSpace, check_deployments
from ...errors import InputError, _validate
from ...errors._types import ArrayLike, FloatArray, IntArray, Rng
from ...evaluators.objective import Objective
from ...surrogates.gaussian_process import GaussianProcess, fit
from ..recommendation import log_expected_improvement
from ._base import Optimizer

INITIAL_EDGE = 20.0
GROWTH, SHRINKAGE = (3, 1.5), (10, 2 / 3)
BETA = 25
SPREAD = 0.2
MAX_LISTED = 25_000  # literal: deployments that are listed to find a centre; St. Paul's listed sites give 24,310
FIT_STEPS_PLAIN, FIT_STEPS_FIRST, FIT_STEPS_NEXT = 50, 15, 5  # a prior on weights, then a warm start, need fewer
ALWAYS_FIT_LIMIT = 100  # observations up to which hyperparameters are trained after each one, later less often
MAX_MODELLED = 400  # observations to which the process is fitted, those nearest to the centre: a fit takes O(n³)
ROUNDING = 1e-6  # of bounds on mean and deviation, in units of the amplitude: it must not exclude the best swap
REPAIRS = frozenset({"constant", "scale", "weights", "climbs", "centre", "cap", "start"})
Score = Callable[[IntArray], FloatArray]  # from deployments, as units in each twin group, (K, G), to scores, (K,)
# from units, (G,), and twin groups, (g,) and (t,), to bounds on the scores after swaps, (g, t)
ScoreBounds = Callable[[IntArray, IntArray, IntArray], FloatArray]
SWAPS_PER_STEP, BLOCK = 1000, 50  # the paper gives no K; blocks are vectorised but waste what follows an accepted swap
CANDIDATES, CLIMBS = 256, 2


class GPpM(Optimizer):
    """Gaussian process with the p-median objective as prior mean, searched in a feasible trust region.

    Parameters
    ----------
    initial : int
        Number of random deployments to begin with, 𝒯.
    literal : bool
        Whether to follow Algorithms 3 and 4 to the letter, without the repairs that the module's notes list.
    edge : float
        Initial edge of a trust region, d_0, at least 2.
    grow, shrink : (int, float)
        Number of successes after which the region grows, n_s, and the factor of its edge, α_s; number of consecutive
        failures after which it shrinks, n_f, and the factor, α_f.

    Attributes
    ----------
    process : GaussianProcess or None
        Surrogate model; None before ``initial`` deployments are observed.
    centre, edge : ndarray of int, shape (G,), or None; float
        Centre of the trust region, as units in each twin group of sites, and largest Hamming distance from it, d.
    restarts, optima : int, list of int
        Number of trust regions that became too small for a swap, and the index of the best deployment of each.

    Examples
    --------
    >>> import emsopt as eo
    >>> objective = eo.Objective(eo.datasets.load_st_paul(), 9)
    >>> len(eo.optimizers.GPpM(objective, rng=0).ask())
    9
    """

    def __init__(
        self,
        objective: Objective,
        *,
        rng: Rng = None,
        initial: int = 20,
        literal: bool = False,
        edge: float = INITIAL_EDGE,
        grow: tuple[int, float] = GROWTH,
        shrink: tuple[int, float] = SHRINKAGE,
    ) -> None:
        super().__init__(objective, rng=rng)
        # below 2, no swap is allowed
        if not (edge >= 2 and grow[0] >= 1 <= shrink[0] and grow[1] >= 1 > shrink[1] > 0):
            raise InputError(
                "`edge` must be at least 2, `grow` a number and a factor of at least 1, `shrink` a number of at "
                f"least 1 and a factor below 1; got edge {edge}, grow {grow}, shrink {shrink}."
            )
        self._first_edge, self._grow, self._shrink = float(edge), grow, shrink
        self.initial, self.literal = _validate.whole_number(initial, "initial"), _validate.as_bool(literal, "literal")
        self.repeats, self._repairs = self.literal, frozenset[str]() if self.literal else REPAIRS
        self._told: list[IntArray] = []  # as units in each twin group, since twins are alike to the model
        self.optima: list[int] = []
        self.process: GaussianProcess | None = None
        self.centre: IntArray | None = None
        self.edge, self.restarts = self._first_edge, 0
        self._region_value, self._region_best = np.inf, -1  # anew in each region: its optimum joins the data of GP*
        self._successes = self._failures = 0

    def predict(self, deployments: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Return the posterior mean and standard deviation, each (K,), of the values of allowed deployments, (K, p)."""
        return self._posterior(*self._surrogate_and_counts(deployments))

    def acquisition(self, deployments: ArrayLike) -> FloatArray:
        """Return the logarithm of the expected improvement, (K,), of allowed deployments, (K, p).

        It is the improvement over the lowest observed value or, with noise, over the lowest posterior mean at an
        observed deployment. Deployments asked for but not yet observed are not taken into account.
        """
        process, counts = self._surrogate_and_counts(deployments)
        return log_expected_improvement(self._incumbent_value(process), *self._posterior(process, counts))

    def _surrogate_and_counts(self, deployments: ArrayLike) -> tuple[GaussianProcess, IntArray]:
        """Return the fitted process, and deployments, (K, p), as units in each twin group, (K, G)."""
        if self.process is None:
            raise InputError(
                f"the surrogate is first trained on {self.initial} observations and has {len(self.values)}; "
                f"tell it {self.initial - len(self.values)} more."
            )
        rows = check_deployments(self.space.city, deployments)
        return self.process, self.space.group_counts([self.space.canonical(row) for row in rows])

    def _posterior(self, process: GaussianProcess, counts: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return the posterior mean and standard deviation, each (K,), of deployments given as ``counts``, (K, G)."""
        mean, variance = process.predict(counts, self._prior_mean(counts) + self._constant)
        return mean, np.sqrt(variance)

    def _incumbent_value(self, process: GaussianProcess) -> float:
        """Return the lowest observed value; with noise, the lowest posterior mean at an observed deployment."""
        if not self.objective.noisy:
            return min(self.values)
        return self._posterior(process, np.array(self._told))[0].min()

    # -- learning: Algorithm 4 --

    def _learn(self, sites: IntArray, value: float) -> None:
        self._told.append(self.space.group_counts(sites))
        told = len(self._told)
        if told < self.initial:
            return
        restarts = self.restarts
        if self.centre is None:
            self._open_region()
        else:
            self._update_region(value, self.centre)
        moved = told > MAX_MODELLED and self.restarts > restarts  # a new centre has other nearest observations
        # every second time from ALWAYS_FIT_LIMIT observations on, every fifth from MAX_MODELLED on
        due = told % (1 + min(told, MAX_MODELLED) // ALWAYS_FIT_LIMIT) == 0
        if self.process is None or "weights" not in self._repairs or due or moved:
            self.process, self._constant = self._fit(self._choose_observations(), self.process)
        else:
            x = self._told[-1]
            self.process = self.process.with_observation(x, value, self._prior_mean(x[None])[0] + self._constant)

    def _choose_observations(self) -> Sequence[int]:
        """Return the ascending indices of the observations to fit: all, or of many those nearest to the centre."""
        told = len(self._told)
        if self.centre is None or told <= MAX_MODELLED or "weights" not in self._repairs:
            return range(told)
        latest_first = np.arange(told)[::-1]  # in a tie, the later ones
        distance = np.abs(np.array(self._told)[latest_first] - self.centre).sum(axis=1)
        return np.sort(latest_first[np.argsort(distance, kind="stable")[:MAX_MODELLED]]).tolist()

    def _update_region(self, value: float, centre: IntArray) -> None:
        """Move, grow, shrink or restart the trust region after a new value (Algorithm 4, lines 13 to 20)."""
        follows, x = "centre" in self._repairs, self._told[-1]
        if value < self._region_value - 1e-9 and (not follows or np.abs(x - centre).sum() <= self.edge):
            self._region_value, self._region_best = value, len(self._told) - 1
            self.centre = x if follows else centre
            self._successes += 1
            self._failures = 0
        else:
            self._failures += 1
        if self._successes == self._grow[0]:
            # no two deployments are farther apart than 2 for each unit
            most = max(self.edge, 2 * self.space.units) if "cap" in self._repairs else np.inf
            self.edge = min(self.edge * self._grow[1], most)
            self._successes = 0
        if self._failures == self._shrink[0]:
            self.edge *= self._shrink[1]
            self._failures = 0
        if self.edge < 2:  # no swap fits into the region any more
            self.optima += [self._region_best] if self._region_best >= 0 else []
            self.restarts += 1
            self._open_region()

    def _open_region(self) -> None:
        """Centre a new region where GP*'s lower bound mean - √(BETA · variance) is low (Algorithm 4, lines 6 to 8)."""
        self.edge = self._first_edge
        self._region_value, self._region_best = np.inf, -1
        self._successes = self._failures = 0
        rows = [*range(self.initial), *self.optima]
        world, constant = self._fit(rows, None)

        def rate(mean: FloatArray, deviation: FloatArray) -> FloatArray:
            return np.sqrt(BETA) * deviation - mean

        score, bounds = self._score_functions(world, constant, rate)
        if "start" not in self._repairs and self.space.count <= MAX_LISTED:
            every = self.space.group_counts(self.space.listing())
            self.centre = every[score(every).argmax()]
        else:
            start = self._told[min(rows, key=lambda k: self.values[k])]
            self.centre = climb(self.space, score, bounds, start, score(start[None])[0])[0]

    def _fit(self, rows: Sequence[int], previous: GaussianProcess | None) -> tuple[GaussianProcess, float]:
        """Return a process fitted to observations ``rows``, from a previous one, and the constant in its prior mean."""
        from ...surrogates.kernels import DeploymentKernel

        X = np.array([self._told[k] for k in rows])
        y = np.array([self.values[k] for k in rows])
        prior = self._prior_mean(X)
        constant = float((y - prior).mean()) if "constant" in self._repairs else 0.0
        kernel = DeploymentKernel(np.ones(X.shape[1])) if previous is None else previous.kernel
        shared = "weights" in self._repairs
        process = fit(
            kernel,
            X,
            y,
            prior + constant,
            noise_ratio=1e-4 if previous is None else previous.noise_ratio,
            spread=SPREAD if shared else np.inf,
            steps=FIT_STEPS_PLAIN if not shared else FIT_STEPS_FIRST if previous is None else FIT_STEPS_NEXT,
            amplitude=None if "scale" in self._repairs else 1.0,
        )
        return process, constant

    # -- proposing: Algorithm 3 --

    def _propose(self) -> IntArray:
        if self.centre is None or self.process is None:
            return self.draw()
        process = self.process
        for sites in (sites for sites, value in self.taken.items() if value is None):
            x = self.space.group_counts(list(sites))  # asked for but not observed: as if the prediction were observed
            prior = self._prior_mean(x[None]) + self._constant
            process = process.with_observation(x, process.predict(x[None], prior)[0][0], prior[0])
        goal = self._incumbent_value(process)
        score, bounds = self._score_functions(process, self._constant, partial(log_expected_improvement, goal))
        if "climbs" not in self._repairs:
            return self.space.deployment(swap_adaptively(self.space, score, self.centre, self.edge, self.rng))
        known = [] if self.objective.noisy else [self.space.group_counts(list(sites)) for sites in self.taken]
        taken = np.array(known, dtype=int).reshape(-1, len(self.centre))
        best = search_by_climbs(self.space, score, bounds, self.centre, self.edge, self.rng, taken)
        return self.draw() if best is None else self.space.deployment(best)

    def _score_functions(
        self, process: GaussianProcess, constant: float, rate: Callable[[FloatArray, FloatArray], FloatArray]
    ) -> tuple[Score, ScoreBounds]:
        """Return ``rate`` of mean and deviation, falling in the first and rising in the second, and bounds on swaps."""

        def score(counts: IntArray) -> FloatArray:
            mean, variance = process.predict(counts, self._prior_mean(counts) + constant)
            return rate(mean, np.sqrt(variance))

        def bounds(x: IntArray, gives: IntArray, takes: IntArray) -> FloatArray:
            sums = process.kernel.swap_sums(x, gives, takes, process.X)
            across = process.kernel(x[None], process.X)[0]
            weights = process.solve(across)
            mean = self._p_median_values_of_swaps(x, gives, takes) + constant + sums(process.coefficients)
            # the variance explained at x' is a convex function of k(x', X), and above its tangent at x
            explained = 2 * sums(weights) - across @ weights
            variance = process.amplitude * np.maximum(process.kernel.diag(x[None]) - explained, 0)
            slack = ROUNDING * np.sqrt(process.amplitude)
            return rate(mean - slack, np.sqrt(variance) + slack)

        return score, bounds

    def _prior_mean(self, counts: IntArray) -> FloatArray:
        """Return the prior mean without its constant, (K,), of deployments as units in each twin group, (K, G)."""
        return self._p_median_values(counts)


class GPzero(GPpM):
    """`GPpM` without the p-median prior: the papers' baseline, whose prior mean is a constant.

    Examples
    --------
    >>> import emsopt as eo
    >>> objective = eo.Objective(eo.datasets.grid_city(n_sites=6, units=2, rng=1), 2)
    >>> len(eo.optimizers.GPzero(objective, rng=0).ask())
    2
    """

    def _prior_mean(self, counts: IntArray) -> FloatArray:
        return np.zeros(len(counts))

    def _p_median_values_of_swaps(self, counts: IntArray, gives: IntArray, takes: IntArray) -> FloatArray:
        return np.zeros((len(gives), len(takes)))


def swap_adaptively(
    space: DeploymentSpace, score: Score, centre: IntArray, edge: float, rng: np.random.Generator
) -> IntArray:
    """Return the deployment, as units in each twin group, (G,), that Algorithm 3 finds, maybe outside the region."""
    # a swap is 2 in Hamming distance; more swaps than free places are impossible
    depth = max(1, int(min(edge / 2, space.units, space.capacities.sum() - space.units)))
    x, value, left = centre, score(centre[None])[0], SWAPS_PER_STEP
    while left:
        candidates = swap_at_random(space, x, np.full(min(BLOCK, left), depth), rng)
        scores = score(candidates)
        better = np.flatnonzero(scores > value)
        if len(better):
            x, value = candidates[better[0]], scores[better[0]]
        left -= better[0] + 1 if len(better) else len(candidates)
    return x


def search_by_climbs(
    space: DeploymentSpace,
    score: Score,
    bounds: ScoreBounds,
    centre: IntArray,
    edge: float,
    rng: np.random.Generator,
    taken: IntArray,
) -> IntArray | None:
    """Return the best deployment, as units in each twin group, (G,), that climbs in the region reach.

    None is returned if all are in ``taken``, (n, G). `climb` starts from the best CLIMBS of CANDIDATES random
    deployments, and from the centre.
    """
    most = max(1, int(min(edge / 2, space.units)))
    pool = np.vstack([centre, swap_at_random(space, centre, rng.integers(1, most + 1, CANDIDATES), rng)])
    scores = score(pool)
    best, highest = None, -np.inf
    for k in {0, *np.argsort(-scores)[:CLIMBS]}:
        start_taken = (taken == pool[k]).all(axis=1).any()  # a start already taken must not end the climb
        x, value = climb(space, score, bounds, pool[k], -np.inf if start_taken else scores[k], (centre, edge), taken)
        if value > highest:
            best, highest = x, value
    return best


def climb(
    space: DeploymentSpace,
    score: Score,
    bounds: ScoreBounds,
    x: IntArray,
    value: float,
    region: tuple[IntArray, float] | None = None,
    taken: IntArray | None = None,
) -> tuple[IntArray, float]:
    """Make the swap with the highest score until none raises ``value``; return the deployment, (G,), and its score.

    Deployments in ``taken``, shape (n, G), and outside of a ``region``, centre and edge, are skipped. ``bounds``
    returns upper bounds on the scores of swaps, which save scoring most of them.
    """
    while True:
        gives, takes = space.swappable_groups(x)
        upper = bounds(x, gives, takes)
        upper[gives[:, None] == takes] = -np.inf  # to the same place is no swap
        if region is not None:
            shift, edge = x - region[0], region[1]
            # the distance falls if a unit leaves a place that has more than the centre, and else rises
            leaving, entering = np.sign(shift[gives] - 0.5), np.sign(shift[takes] + 0.5)
            upper[np.abs(shift).sum() - leaving[:, None] + entering > edge] = -np.inf
        if taken is not None:
            shift = taken - x
            shift = shift[np.abs(shift).sum(axis=1) == 2]  # one swap away
            upper[np.searchsorted(gives, shift.argmin(axis=1)), np.searchsorted(takes, shift.argmax(axis=1))] = -np.inf
        swap, value = _best_swap(score, upper, x, gives, takes, value)
        if swap is None:
            return x, value
        x = swap


def _best_swap(
    score: Score, upper_bounds: FloatArray, x: IntArray, gives: IntArray, takes: IntArray, value: float
) -> tuple[IntArray | None, float]:
    """Return the deployment, (G,), after the best swap of x, and its score; None if no score is above ``value``."""
    best, left = None, np.flatnonzero(upper_bounds > value)
    left = left[np.argsort(-upper_bounds.flat[left], kind="stable")]
    while len(left) and upper_bounds.flat[left[0]] > value:  # bounds descend: the rest cannot be better
        some, left = left[:BLOCK], left[BLOCK:]
        candidates, rows = np.repeat(x[None], len(some), axis=0), np.arange(len(some))
        candidates[rows, gives[some // len(takes)]] -= 1
        candidates[rows, takes[some % len(takes)]] += 1
        scores = score(candidates)
        if scores.max() > value:
            best, value = candidates[scores.argmax()], scores.max()
    return best, value


def swap_at_random(space: DeploymentSpace, x: IntArray, depths: IntArray, rng: np.random.Generator) -> IntArray:
    """Return n allowed deployments, (n, G): the k-th is ``x``, (G,), after ``depths[k]`` random swaps."""
    pool = np.repeat(x[None], len(depths), axis=0)
    for depth in range(depths.max()):
        rows = np.flatnonzero(depths > depth)
        some = pool[rows]
        # random keys, 0 where no unit can leave or arrive: each possible place is equally likely
        gives = (rng.random(some.shape) * (some > space.floors)).argmax(axis=1)
        takes = (rng.random(some.shape) * (some < space.capacities)).argmax(axis=1)
        movable = (some > space.floors).any(axis=1) & (some < space.capacities).any(axis=1)
        pool[rows[movable], gives[movable]] -= 1
        pool[rows[movable], takes[movable]] += 1
    return pool
