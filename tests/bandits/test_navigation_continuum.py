"""Section 3.2 of "Bayesian Analysis of Combinatorial Gaussian Process Bandits": infinitely many arms, and their grid.

Lemmas are checked on [0, 1] with the Matérn kernel of smoothness 5/2.
"""

import itertools
import math

import numpy as np
import pytest
from papers import navigation_bounds
from scipy.special import gamma, kv

from emsopt import bandits

NOISE, SIZE = 0.1, 2  # of observations; of sets of arms
LENGTHSCALE = 0.5  # of the kernel on [0, 1]


def matern(distance, lengthscale=LENGTHSCALE):
    x = math.sqrt(5) * np.abs(distance) / lengthscale
    return (1 + x + x**2 / 3) * np.exp(-x)


DISTANCES = np.linspace(0, 2, 20001)
LIPSCHITZ = np.abs(np.gradient(matern(DISTANCES), DISTANCES)).max()
# The slope of a draw has variance -k''(0) = 5/3 and its own slope has variance 25, in lengthscales. By Rice's formula
# the largest slope then has the tail of assumption (5) with these constants.
SLOPE, CURVATURE = math.sqrt(5 / 3) / LENGTHSCALE, 5 / LENGTHSCALE**2
TAIL = 1 + CURVATURE / (math.pi * SLOPE), math.sqrt(2) * SLOPE


def inequalities(points, beta, t, d, K, L, side, slopes, noise):
    """Return the left sides of (6a) to (6d) relative to the right ones: at least 1 where they hold."""
    c2, c3 = slopes
    step = L * d * side
    needed = [2 * t**2 * K * step * (1 + t * K / noise), 8 * t**4 * K**2 * step * beta]
    needed += [math.sqrt(8 * t**5 * K**3 * beta) * step / noise]
    needed += [t**2 * K * d * side * c3 * (math.sqrt(math.log(c2 * d)) + math.sqrt(math.pi) / 2)]
    with np.errstate(divide="ignore"):
        return points / np.array(needed)


@pytest.mark.parametrize("rule", [bandits.UCB(), bandits.BayesUCB(1.1, 1.2), bandits.Thompson()])
@pytest.mark.parametrize(("t", "d", "K", "noise"), [(1, 1, 1, 1.0), (3, 2, 10, 0.3), (50, 3, 2, 0.1), (7, 1, 5, 0.01)])
def test_grid_of_theorem_3_2_satisfies_its_four_inequalities(rule, t, d, K, noise):
    """(6a) to (6d) with the confidence parameter of the grid itself; one point less violates one of them."""
    smooth = {"lipschitz": 1.3, "slopes": (2.0, 1.5)}
    points = navigation_bounds.grid_points(rule, t, dimensions=d, size=K, noise_variance=noise**2, **smooth)
    upper = bandits.UCB() if isinstance(rule, bandits.Thompson) else rule
    for given, holds in ((points, True), (points - 1, False)):
        ratios = inequalities(given, float(upper.beta(t, given**d)), t, d, K, 1.3, 1.0, (2.0, 1.5), noise)
        assert (ratios.min() >= 1) == holds


@pytest.mark.parametrize(
    ("rule", "rounds", "share"),
    [(bandits.UCB(), 50_000, 1.5), (bandits.BayesUCB(1.5, 2.0), 50_000, 1.3), (bandits.Thompson(True), 125_000, 1.1)],
)
def test_learners_on_an_interval_stay_below_the_bound_and_guessing_does_not(rule, rounds, share):
    """Theorem 3.2: each round offers forty of 150 places; ``share``: regret of guessing, relative to the bound."""
    places, rng = np.linspace(0, 1, 150), np.random.default_rng(0)
    covariance = matern(places - places[:, None], 0.2)
    prior = bandits.Prior(np.zeros(150), covariance, NOISE)
    lipschitz, slope = LIPSCHITZ * LENGTHSCALE / 0.2, SLOPE * LENGTHSCALE / 0.2
    slopes = 1 + CURVATURE * (LENGTHSCALE / 0.2) ** 2 / (math.pi * slope), math.sqrt(2) * slope
    smooth = {"dimensions": 1, "size": 1, "noise_variance": NOISE, "lipschitz": lipschitz, "slopes": slopes}
    truth, mean, regret = prior.draw(rng=1)[:, 0], np.zeros(150), 0.0
    points = navigation_bounds.grid_points(rule, rounds, **smooth)
    sampled = isinstance(rule, bandits.Thompson)
    # The grid of round T for all rounds: at least as cautious.
    root = np.sqrt((bandits.UCB() if sampled else rule).beta(np.arange(1, rounds + 1), points))
    # The posterior covariance is root_S root_Sᵀ; observing an arm takes a multiple of one column from it (Potter 1963).
    root_S, change = np.linalg.cholesky(covariance + 1e-9 * np.eye(150)), np.empty((150, 150))
    variance = np.ones(150)
    for t in range(rounds):
        if t % 1000 == 0:
            offers = np.argpartition(rng.random((1000, 150)), 40, axis=1)[:, :40]
            noise, draws = math.sqrt(NOISE) * rng.standard_normal(1000), rng.standard_normal((1000, 150))
        offered = offers[t % 1000]
        if sampled:
            score = (mean + root_S @ draws[t % 1000])[offered]
        else:
            score = mean[offered] + root[t] * np.sqrt(variance[offered])
        arm = offered[score.argmax()]
        regret += truth[offered].max() - truth[arm]
        row = root_S[arm].copy()
        across, total = root_S @ row, row @ row + NOISE
        mean += across * ((truth[arm] + noise[t % 1000] - mean[arm]) / total)
        variance -= across**2 / total
        root_S -= np.outer(across, row / (total + math.sqrt(NOISE * total)), out=change)
    facts = {"n_arms": points, "size": 1, "noise_variance": NOISE, "eigenvalue": 1.0, "infinite": True}
    bound = navigation_bounds.regret_bound(rule, rounds, gain=navigation_bounds.spectral_gain(prior, rounds), **facts)
    others = rng.permuted(prior.draw(20_000, rng=2).T, axis=1)
    guessing = rounds * (others[:, :40].max(axis=1) - others.mean(axis=1)).mean()
    assert regret < 0.02 * bound
    assert guessing / bound == pytest.approx(share, abs=0.05)


def test_largest_slopes_of_draws_have_gaussian_tails():
    """Assumption (5) for the Matérn kernel 5/2 on [0, 1]: constants by Rice's formula; a tail a fifth shorter fails."""
    places = np.linspace(0, 1, 401)
    K = matern(places - places[:, None])
    draws = np.linalg.cholesky(K + 1e-10 * np.eye(401)) @ np.random.default_rng(0).standard_normal((401, 4000))
    slopes = np.abs(np.diff(draws[::4], axis=0) / (4 * places[1])).max(axis=0)
    c2, c3 = TAIL
    assert [c2, c3] == pytest.approx([3.5, 3.7], abs=0.05)
    levels = np.quantile(slopes, [0.3, 0.6, 0.9, 0.97, 0.99])
    observed = (slopes[:, None] > levels).mean(axis=0)
    assert (observed < c2 * np.exp(-(levels**2) / c3**2)).all()
    assert observed[-1] > 3 * c2 * math.exp(-(levels[-1] ** 2) / (0.8 * c3) ** 2)


def test_matern_kernels_are_four_times_differentiable_above_two_but_not_at_two(claim):
    """Remark after (5): fourth differences at 0 tend to 25 for ν = 5/2; for ν = 2 (-r⁴ log r) halving adds 24 log 2."""

    def fourth(nu, step):
        r = math.sqrt(2 * nu) * np.array([step, 2 * step])
        near, far = 2 ** (1 - nu) / gamma(nu) * r**nu * kv(nu, r)
        return (2 * far - 8 * near + 6) / step**4

    smooth, rough = (np.array([fourth(nu, 0.1 / 2**k) for k in range(5)]) for nu in (2.5, 2.0))
    assert smooth[-1] == pytest.approx(25, abs=0.5)
    assert np.diff(smooth)[-1] < 0.6 * np.diff(smooth)[-2], "this one converges"
    assert np.diff(rough)[-1] / math.log(2) == pytest.approx(24, abs=0.05)
    assert (np.diff(rough) > 23 * math.log(2)).all()
    claim("navigation", "Remark after (5)", 25, 23)


def printed_grid(rule, t, d, K, L, side, noise, slopes):
    """Return the explicit grid of remark (59), or (60) for Bayes-UCB, the logarithm of t in it, and the base of powers."""
    log_t, step = math.log(t**2 / math.sqrt(2 * math.pi)), L * d * side
    if isinstance(rule, bandits.BayesUCB):
        log_t = math.log(t**rule.xi / (2 * math.sqrt(2 * math.pi) ** rule.omega))
    log = d * getattr(rule, "omega", 1.0) + log_t
    terms = [2 * t**2 * K * step * (1 + t * K / noise)]
    if log > 0:  # else a negative number is raised to a fractional power
        terms.append((16 * t**4 * K**2 * step * log) ** (1 / (1 - 1 / math.e)))
        terms.append((16 * t**5 * K**3 * step**2 / noise**2 * log) ** (1 / (2 - 1 / math.e)))
    terms.append(t**2 * K * d * side * slopes[1] * (math.sqrt(math.log(slopes[0] * d)) + math.sqrt(math.pi) / 2))
    return max(terms), log_t, log


@pytest.mark.parametrize(("rule", "first", "least"), [(bandits.UCB(), 2, 0.20), (bandits.BayesUCB(1.1, 1.2), 5, 0.03)])
def test_printed_grids_hold_only_once_the_logarithm_of_t_is_positive(rule, first, least):
    """Remarks (59) and (60): from round 2, and for ω = 1.1 and ξ = 1.2 from round 5, they satisfy (6a) to (6d)."""
    fails, missed = {}, set()
    cases = (10, 1.0, 1.0, 1.0), (1, 0.3, 2.0, 0.1), (50, 3.0, 1.0, 0.5), (1, 0.1, 1.0, 1.0)
    for t, d, (K, L, side, noise) in itertools.product((1, 2, 3, 4, 5, 6, 100), (1, 2, 3), cases):
        points, log_t, log = printed_grid(rule, t, d, K, L, side, noise, (2.0, 2.0))
        ratios = inequalities(points, float(rule.beta(t, points**d)), t, d, K, L, side, (2.0, 2.0), noise)
        assert (log_t > 0) == (t >= first)
        assert (log > 0) == (rule == bandits.UCB() or (t, d) != (1, 1))
        missed |= set(np.flatnonzero(ratios < 1))
        if ratios.min() < 1:
            fails[t, d, K] = ratios.min()
    assert {(1, 1), (1, 2)} <= {(t, d) for t, d, _ in fails}
    assert missed == {1, 2}, "(6b) and (6c)"
    assert max(fails)[0] < first
    assert min(fails.values()) == pytest.approx(least, abs=0.005)


def posterior(places, values, at, kernel=matern, noise=NOISE**0.5):
    """Return posterior mean and standard deviation of a zero-mean process at some places."""
    S = kernel(places[:, None] - places) + noise**2 * np.eye(len(places))
    across = kernel(at[:, None] - places)
    mean = across @ np.linalg.solve(S, values)
    return mean, np.sqrt(np.maximum(kernel(0.0) - np.einsum("ij,ji->i", across, np.linalg.solve(S, across.T)), 0))


def cases(n, seed=0):
    """Yield random data on [0, 1], an arm, the same arm rounded to a grid, and the distance 1/τ of the lemmas."""
    rng = np.random.default_rng(seed)
    for _ in range(n):
        count, points = rng.integers(1, 30), rng.integers(2, 200)
        places = rng.random(count)
        values = np.linalg.cholesky(matern(places[:, None] - places) + NOISE * np.eye(count)) @ rng.normal(size=count)
        arm = rng.random()
        yield places, values, np.array([arm, (np.floor(arm * points) + 0.5) / points]), 1 / points


def test_posterior_mean_moves_little_on_the_grid():
    """Lemma (66) in 1,000 random cases."""
    largest = 0.0
    for places, values, pair, step in cases(1000):
        (mean, rounded), _ = posterior(places, values, pair)
        S = matern(places[:, None] - places) + NOISE * np.eye(len(places))
        white = np.linalg.norm(np.linalg.solve(np.linalg.cholesky(S), values))
        bound = LIPSCHITZ * step * (1 + math.sqrt(len(places) / NOISE) * white)
        largest = max(largest, abs(rounded - mean) / bound)
    assert largest == pytest.approx(0.12, abs=0.005)


def test_posterior_deviation_moves_little_though_the_step_of_the_proof_fails():
    """Lemma (67) in 1,000 random cases, and our shorter bound √(2 L d C_1 / τ), which needs no data.

    Step (85) of its proof bounds the difference of variances. It fails with an exponential kernel (L = 1) and one
    observation of the arm itself: (82) takes the difference of two quadratic forms for the form of the difference.
    """
    largest = 0.0
    for places, values, pair, step in cases(1000):
        _, (deviation, rounded) = posterior(places, values, pair)
        moved = abs(rounded - deviation)
        bound = math.sqrt(LIPSCHITZ * step + len(places) * (LIPSCHITZ * step) ** 2 / NOISE)
        largest = max(largest, moved / bound)
        assert moved <= math.sqrt(2 * LIPSCHITZ * step)
    assert largest == pytest.approx(0.09, abs=0.005)
    step, noise = 1e-6, 1e-2
    at, pair = np.array([0.5]), np.array([0.5, 0.5 + step])
    _, (deviation, rounded) = posterior(at, np.zeros(1), pair, lambda r: np.exp(-np.abs(r)), noise)
    claimed = step + step**2 / noise**2
    assert (rounded**2 - deviation**2) / claimed == pytest.approx(1.98, abs=0.005)
    assert rounded - deviation <= math.sqrt(claimed), "the lemma itself holds"


def test_rounding_to_the_grid_costs_at_most_pi_squared_over_6():
    """Lemma (7), with Lemmas (87) and (97) for its parts: rounding sets to the theorem's grid costs far less."""
    rng, rounds, runs, rule = np.random.default_rng(0), 12, 60, bandits.UCB()
    smooth = {"dimensions": 1, "size": SIZE, "noise_variance": NOISE, "lipschitz": LIPSCHITZ, "slopes": TAIL}
    grids = [navigation_bounds.grid_points(rule, t, **smooth) for t in range(1, rounds + 1)]
    means = deviations = 0.0
    for _ in range(runs):
        places = rng.random(rounds * SIZE)
        S = matern(places[:, None] - places) + NOISE * np.eye(len(places))
        values = np.linalg.cholesky(S) @ rng.standard_normal(len(places))
        for t, points in enumerate(grids):
            arms = places[t * SIZE : (t + 1) * SIZE]
            both = np.concatenate([arms, (np.floor(arms * points) + 0.5) / points])
            mean, deviation = posterior(places[: t * SIZE], values[: t * SIZE], both)
            means += abs((mean[SIZE:] - mean[:SIZE]).sum()) / runs  # the worse direction of the two
            moved = np.abs(deviation[SIZE:] - deviation[:SIZE]).sum()
            deviations += math.sqrt(rule.beta(t + 1, points)) * moved / runs
    assert [means, deviations] == pytest.approx([0.00004, 0.00018], abs=0.000006)
    assert means + deviations == pytest.approx(0.00022, abs=0.000006)


def test_rounding_the_best_set_costs_at_most_pi_squared_over_6():
    """Lemma (61) round by round: K E[sup f(a) - f([a])] is at most 1/t² with the constants of Rice's formula."""
    places = np.linspace(0, 1, 1601)
    K = matern(places - places[:, None])
    draws = np.linalg.cholesky(K + 1e-9 * np.eye(1601)) @ np.random.default_rng(0).standard_normal((1601, 300))
    c2, c3 = TAIL
    for t in range(1, 6):
        points = math.ceil(t**2 * SIZE * c3 * (math.sqrt(math.log(c2)) + math.sqrt(math.pi) / 2))
        nearest = np.rint(1600 * (np.floor(np.minimum(places, 1 - 1e-12) * points) + 0.5) / points).astype(int)
        worst = SIZE * (draws - draws[nearest]).max(axis=0).mean()
        assert 0.26 < worst * t**2 < 0.30
