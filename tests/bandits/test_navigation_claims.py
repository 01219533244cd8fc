"""Claims of "Bayesian Analysis of Combinatorial Gaussian Process Bandits", one test or more per row of the register.

Lemmas on expectations are checked by playing many small games at once: eight correlated arms, of which two are chosen.
Lemmas on a continuum are checked on [0, 1] with the Matérn kernel of smoothness 5/2.
"""

import math
import os

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.sparse.csgraph import NegativeCycleError, bellman_ford
from scipy.special import erfinv, ndtr
from scipy.stats import norm

import emsopt as eo
from emsopt import bandits
from emsopt.roads import grid_roads

NOISE, SIZE = 0.1, 2  # of the games with eight arms
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


def correlated(n=8):
    place = np.linspace(0, 1, n)
    return bandits.Prior(np.zeros(n), np.exp(-2 * np.abs(place - place[:, None])), NOISE)


def played(rule, *, runs=1500, rounds=40, prior=None, seed=0):
    """Play many games with truths drawn from the prior; return arrays of shape (rounds, runs).

    ``best``, ``chosen``: value of the best set and of the chosen one; ``best_index``, ``index``: their upper confidence
    bounds; ``width``: √β_t times the sum of the standard deviations of the chosen arms; ``variance``: sum of their
    variances; ``lost``: Σ_a E[(f(a) - U_t(a))₊]; ``gain``: information about the arms; ``same``: chosen set is the best.
    """
    prior = correlated() if prior is None else prior
    rng, n, K = np.random.default_rng(seed), prior.n_arms, prior.covariance
    truth = prior.draw(runs, rng=rng).T
    sampled = isinstance(rule, bandits.Thompson)
    beta = (bandits.UCB() if sampled else rule).beta(np.arange(1, rounds + 1), n)
    inverse, counts, sums, row = np.linalg.inv(K), np.zeros((runs, n)), np.zeros((runs, n)), np.arange(runs)[:, None]
    names = ["best", "chosen", "best_index", "index", "width", "variance", "lost", "gain", "same"]
    out = {name: np.empty((rounds, runs)) for name in names}
    top = np.argsort(truth, axis=1)[:, -SIZE:]
    for t in range(rounds):
        S = np.linalg.inv(inverse + (counts / prior.noise_variance)[:, :, None] * np.eye(n))
        mean, deviation = np.einsum("rij,rj->ri", S, sums / prior.noise_variance), np.sqrt(S[:, range(n), range(n)])
        upper = mean + math.sqrt(beta[t]) * deviation
        score, noise = upper, rng.standard_normal((runs, n))
        if sampled:
            score = mean + np.einsum("rij,rj->ri", np.linalg.cholesky(S), noise)
        arms = np.argsort(score, axis=1)[:, -SIZE:]
        out["best"][t], out["chosen"][t] = truth[row, top].sum(1), truth[row, arms].sum(1)
        out["best_index"][t], out["index"][t] = upper[row, top].sum(1), upper[row, arms].sum(1)
        out["width"][t] = math.sqrt(beta[t]) * deviation[row, arms].sum(1)
        out["variance"][t] = (deviation[row, arms] ** 2).sum(1)
        root = math.sqrt(beta[t])
        out["lost"][t] = (deviation * (norm.pdf(root) - root * ndtr(-root))).sum(1)
        out["same"][t] = (np.sort(arms, axis=1) == np.sort(top, axis=1)).all(axis=1)
        counts[row, arms] += 1
        sums[row, arms] += truth[row, arms] + math.sqrt(prior.noise_variance) * rng.standard_normal((runs, SIZE))
        logs = np.linalg.slogdet(np.eye(n) + (counts / prior.noise_variance)[:, :, None] * K)[1]
        out["gain"][t] = 0.5 * logs
    return out


def mean_and_error(values):
    """Return the mean over the runs of a sum over the rounds, and its standard error."""
    totals = values.sum(axis=0)
    return totals.mean(), totals.std() / math.sqrt(len(totals))


def root_of_theorem(prior, rule, rounds):
    """Return the root in Theorem 3.1, √(C_K T K β_T γ_TK)."""
    facts = {"n_arms": prior.n_arms, "size": SIZE, "noise_variance": prior.noise_variance}
    facts["eigenvalue"] = bandits.largest_eigenvalue(prior, SIZE)
    gain = bandits.spectral_gain(prior, rounds * SIZE)
    return float(bandits.regret_bound(rule, rounds, gain=gain, **facts)) - math.pi**2 / 6


# -- Section 2.3: information gain ------------------------------------------------------------------------------------


def on_a_grid(kernel, dimensions, points):
    axes = np.meshgrid(*[np.linspace(0, 1, points)] * dimensions)
    X = np.column_stack([axis.ravel() for axis in axes])
    distance = np.sqrt(((X[:, None] - X) ** 2).sum(axis=2))
    return bandits.Prior(np.zeros(len(X)), kernel(distance), noise_variance=0.1)


def test_gain_is_over_observations_and_not_over_subsets():
    """Equation (4): one arm observed T times gains ½ log(1 + T/ς²); as a subset of arms it could gain ½ log(1 + 1/ς²)."""
    one = bandits.Prior([0.0], [[1.0]], noise_variance=1.0)
    gain = bandits.cumulative_gain(one, [[0]] * 50)
    assert gain == pytest.approx(0.5 * np.log(1 + np.arange(1, 51)), rel=1e-9)
    assert bandits.greedy_gain(one, 50)[0] == pytest.approx(gain, rel=1e-9)
    assert gain[-1] > 5 * gain[0]


@pytest.mark.parametrize(("dimensions", "points"), [(1, 300), (2, 25)])
def test_gain_grows_like_a_power_of_the_logarithm_for_squared_exponentials(dimensions, points):
    """Relative to (log T)^(d+1), both bounds fall between T = 100 and 10,000; relative to (log T)^(d/2) they grow."""
    prior = on_a_grid(lambda r: np.exp(-0.5 * (r / 0.3) ** 2), dimensions, points)
    rounds = np.array([100, 1000, 10_000])
    greedy = bandits.greedy_gain(prior, 1000)[0][[99, 999]]
    for gain, T in ((bandits.spectral_gain(prior, rounds), rounds), (greedy, rounds[:2])):
        assert (np.diff(gain / np.log(T) ** (dimensions + 1)) < 0).all()
        assert (np.diff(gain / np.log(T) ** (dimensions / 2)) > 0).all()


@pytest.mark.parametrize(("dimensions", "points"), [(1, 1000), (2, 35), (3, 11)])
def test_gain_grows_like_the_stated_power_for_matern(dimensions, points):
    """The gain stays within the stated order from T = 1,000 to 100,000, and exceeds every power of log T eventually."""
    prior = on_a_grid(lambda r: matern(r, 0.3), dimensions, points)
    power = dimensions / (5 + dimensions)
    rounds = np.array([1e3, 1e4, 1e5])
    gain = bandits.spectral_gain(prior, rounds)
    assert (np.diff(gain / (rounds**power * np.log(rounds) ** (1 - power))) < 0).all()
    slopes = np.diff(np.log(gain)) / np.diff(np.log(rounds))
    assert (slopes > 0.7 * power).all(), "and not much more slowly than the power itself"


# -- Section 3.1: finitely many arms ----------------------------------------------------------------------------------


def test_bound_has_the_order_in_table_1():
    """K √(T γ log T), as λ*_K is at most K: the ratio of the bound to it stays within a factor of 1.6."""
    ratios = []
    for T in (1e2, 1e4, 1e6):
        for K in (1, 10, 50):
            facts = {"n_arms": 100, "size": K, "gain": 60.0, "noise_variance": 0.1, "eigenvalue": float(K)}
            ratios.append(bandits.regret_bound(bandits.UCB(), T, **facts) / (K * math.sqrt(T * 60.0 * math.log(T))))
    assert max(ratios) < 1.6 * min(ratios)


def test_largest_eigenvalue_grows_with_the_size_only_if_arms_are_correlated():
    alike = bandits.Prior(np.zeros(40), np.full((40, 40), 1.0) + 1e-9 * np.eye(40), 1.0)
    apart = bandits.Prior(np.zeros(40), np.eye(40), 1.0)
    sizes = [1, 5, 20, 40]
    assert [bandits.largest_eigenvalue(alike, K) for K in sizes] == pytest.approx(sizes, rel=1e-6)
    assert [bandits.largest_eigenvalue(apart, K) for K in sizes] == pytest.approx([1.0] * 4)


@pytest.mark.parametrize("kernel", [matern, lambda r: np.exp(-0.5 * (r / LENGTHSCALE) ** 2)])
def test_bounds_grow_more_slowly_than_the_number_of_rounds(kernel):
    """The exponent of T falls towards ½ between 100 and 1,000,000 rounds, for all three rules."""
    prior = on_a_grid(kernel, 1, 300)
    rounds = 10.0 ** np.arange(2, 7)
    facts = {"n_arms": 300, "size": 2, "noise_variance": 0.1, "eigenvalue": 2.0}
    gain = bandits.spectral_gain(prior, 2 * rounds)
    for rule in (bandits.UCB(), bandits.BayesUCB(1.5, 2.0), bandits.Thompson(joint=True)):
        exponents = np.diff(np.log10(bandits.regret_bound(rule, rounds, gain=gain, **facts)))
        assert (np.diff(exponents) < 0).all()
        assert 0.5 < exponents[-1] < exponents[0] < 0.7


@pytest.mark.parametrize("rule", [bandits.UCB(), bandits.BayesUCB(1.5, 2.0), bandits.Thompson(joint=True)])
def test_regret_splits_into_lost_optimism_and_width(rule):
    """Lemma (9): the two sides differ by U_t of the chosen set minus U_t of the best one, 0 on average for joint draws."""
    game = played(rule)
    difference, error = mean_and_error(game["index"] - game["best_index"])
    if isinstance(rule, bandits.Thompson):
        assert abs(difference) < 4 * error
    else:
        assert (game["index"] >= game["best_index"] - 1e-12).all()
        assert difference > 10 * error


def test_independent_draws_do_not_choose_sets_as_often_as_they_are_best():
    """Theorem 3.1 (iii) needs that equality. By hand: a pair that varies together against one that does not.

    With mean -1, the pair is best with probability Φ(-1/2) = 0.31 under joint draws, Φ(-1/√2) = 0.24 under independent
    ones.
    """
    pair = np.array([[1.0, 0.999], [0.999, 1.0]])
    covariance = np.block([[pair, np.zeros((2, 2))], [np.zeros((2, 2)), 1e-6 * np.eye(2)]])
    prior = bandits.Prior([-0.5, -0.5, 0.0, 0.0], covariance, 1.0)
    for joint, wanted in ((True, ndtr(-0.5)), (False, ndtr(-1 / math.sqrt(2)))):
        agent = bandits.Agent(bandits.ExactGP(prior, draws=4000), bandits.Thompson(joint), rng=0)
        draws = [agent.indices(1, np.arange(4)) for _ in range(4000)]
        assert np.mean([d[:2].sum() > d[2:].sum() for d in draws]) == pytest.approx(wanted, abs=0.03)


def test_optimism_lost_is_at_most_pi_squared_over_6():
    """Lemma (16): in the sum over all arms and rounds on which its proof rests, and in the games themselves."""
    for rule in (bandits.UCB(), bandits.Thompson(joint=True)):
        game = played(rule, rounds=200, runs=300)
        mean, error = mean_and_error(game["best"] - game["best_index"])
        assert mean + 4 * error < mean_and_error(game["lost"])[0] < math.pi**2 / 6
    beta = bandits.UCB().beta(np.arange(1, 100_001), 8)  # arms that are never observed, of variance 1
    unseen = 8 * (norm.pdf(np.sqrt(beta)) - np.sqrt(beta) * ndtr(-np.sqrt(beta)))
    assert 0.1 * math.pi**2 / 6 < unseen.sum() < math.pi**2 / 6


@pytest.mark.parametrize(("omega", "xi"), [(1.5, 1.0), (1.5, 1.5), (1.5, 2.0), (1.1, 1.2), (3.0, 0.5)])
def test_optimism_lost_by_bayes_ucb_is_sublinear_logarithmic_or_constant(omega, xi):
    """Lemma of section 3.1: arms of variance 1 that are never observed lose most, and stay below the formula."""
    rule, rounds = bandits.BayesUCB(omega, xi), np.arange(1, 10_001)
    root = np.sqrt(rule.beta(rounds, 8))
    lost = np.cumsum(8 * (norm.pdf(root) - root * ndtr(-root)))
    facts = {"n_arms": 8, "size": 1, "noise_variance": 1.0, "eigenvalue": 1.0}
    bound = bandits.regret_bound(rule, rounds, gain=np.zeros(len(rounds)), **facts)
    assert (lost < bound).all()
    game = played(rule, rounds=100, runs=300)
    mean, error = mean_and_error(game["best"] - game["best_index"])
    assert mean + 4 * error < bound[99]
    growth = math.log(bound[-1] / bound[999]) / math.log(10)
    assert growth == pytest.approx(max(1 - xi / omega, 0.0), abs=1e-9 if xi != omega else 0.15)


@pytest.mark.parametrize("rule", [bandits.UCB(), bandits.BayesUCB(1.5, 2.0), bandits.Thompson(joint=True)])
def test_widths_sum_to_at_most_the_root(rule):
    """Lemma (34): in every game, not only on average; it is not empty, as they reach an eighth of it."""
    upper = bandits.UCB() if isinstance(rule, bandits.Thompson) else rule
    root = root_of_theorem(correlated(), bandits.UCB(), 40)
    root *= math.sqrt(upper.beta(40, 8) / bandits.UCB().beta(40, 8))
    widths = played(rule)["width"].sum(axis=0)
    assert widths.max() < root < 8 * widths.mean()


@pytest.mark.parametrize("rule", [bandits.UCB(), bandits.BayesUCB(1.5, 2.0)])
def test_gap_of_upper_bounds_is_the_width_on_average(rule):
    """Lemma (42)."""
    game = played(rule)
    difference, error = mean_and_error(game["index"] - game["chosen"] - game["width"])
    assert abs(difference) < 4 * error
    assert error < 0.01 * game["width"].sum(axis=0).mean()


def test_gap_of_thompson_sampling_is_at_most_twice_the_root():
    """Lemma (47). The width alone is not enough: the gap is larger, though by far less than twice."""
    game = played(bandits.Thompson(joint=True))
    gap, error = mean_and_error(game["index"] - game["chosen"])
    assert gap + 4 * error < 2 * root_of_theorem(correlated(), bandits.UCB(), 40) + math.pi**2 / 6
    assert gap < 1.1 * game["width"].sum(axis=0).mean()


def test_variances_add_up_to_at_most_the_gain():
    """Lemma (118) with the gain of each game itself; with subsets of arms, as equation (4) prints, it fails for one arm."""
    prior = correlated()
    eigenvalue = bandits.largest_eigenvalue(prior, SIZE)
    for rule in (bandits.UCB(), bandits.Thompson(joint=True)):
        game = played(rule, runs=200)
        bound = 2 * (eigenvalue + NOISE) * game["gain"]
        assert (game["variance"].cumsum(axis=0) <= bound + 1e-9).all()
    variances = 1 / np.arange(1, 51)  # one arm with k = ς² = 1, observed fifty times
    assert variances.sum() < 2 * 2 * 0.5 * math.log(51)
    assert variances.sum() > 2 * 2 * 0.5 * math.log(2), "the gain of a set without repetition"


@pytest.mark.parametrize("rule", [bandits.UCB(), bandits.BayesUCB(1.5, 2.0), bandits.Thompson(joint=True)])
@pytest.mark.parametrize("variance", [1.0, 4.0])
def test_learners_of_pairs_stay_below_the_bound_and_guessing_does_not(rule, variance):
    """Theorem 3.1 with K = 2 and correlated arms, all of 25,000 rounds played; with variance 4, the bound that says so."""
    rounds, K = 25_000, variance * correlated(6).covariance
    prior = bandits.Prior(np.zeros(6), K, NOISE)
    facts = {"n_arms": 6, "size": SIZE, "noise_variance": NOISE, "prior_variance": variance}
    facts["eigenvalue"] = K[0, 0] + K[0, 1]  # of neighbours; no pair has a larger one, before or after observations
    bound = bandits.regret_bound(rule, rounds, gain=bandits.spectral_gain(prior, rounds * SIZE), **facts)
    game = played(rule, runs=6, rounds=rounds, prior=prior)
    truth = prior.draw(2000, rng=0)
    guessing = rounds * (np.sort(truth, axis=0)[-SIZE:].sum(axis=0) - SIZE * truth.mean(axis=0)).mean()
    assert mean_and_error(game["best"] - game["chosen"])[0] < bound < guessing


def test_footnote_2_gives_more_than_the_square_root():
    """ξ = ½ - δ and ω = 1 + δ: the additive term alone grows like T^(1 - ξ/ω), 0.64 for δ = 0.1; ξ = ω/2 would give ½."""
    facts = {"n_arms": 100, "size": 1, "noise_variance": 1.0, "eigenvalue": 1.0, "gain": np.zeros(2)}

    def growth(omega, xi):
        low, high = bandits.regret_bound(bandits.BayesUCB(omega, xi), [1e4, 1e6], **facts)
        return math.log(high / low) / math.log(100)

    assert growth(1.1, 0.4) == pytest.approx(0.636, abs=1e-3)
    assert all(growth(1 + delta, 0.5 - delta) > 0.5 for delta in (1e-4, 0.01, 0.2))
    assert growth(1.1, 0.55) == pytest.approx(0.5, abs=1e-9)


def test_the_experiments_parameters_are_a_limit_of_valid_ones():
    """ω = ξ = 1 is refused by the bound. With ω = 1 + δ and ξ = 1 + 2δ paths are the same, and the constant exceeds any use."""
    net = grid_roads(5, 5, jitter=0.3, rng=1)
    prior, valid = bandits.navigation_prior(net), bandits.BayesUCB(1 + 1e-9, 1 + 2e-9)
    options = {"horizon": 40, "rng": 0, "prior": prior}
    ends = "r0c0-r0c1", "r4c3-r4c4"
    paths = [
        bandits.run(net, *ends, ("gp", rule), **options).history["path"].tolist()
        for rule in (bandits.BayesUCB(), valid)
    ]
    assert paths[0] == paths[1]
    facts = {"n_arms": 80, "size": 8, "noise_variance": 1.0, "eigenvalue": 1.0, "gain": 0.0}
    assert bandits.regret_bound(valid, 500, **facts) > 1e12
    with pytest.raises(eo.EmsoptError, match="`omega` above 1"):
        bandits.regret_bound(bandits.BayesUCB(), 500, **facts)


def test_inverse_error_function_lies_between_its_two_bounds():
    """Lemmas (130) and (131) on 100,000 points; below the first one's range the root is not real."""
    u = np.linspace(0, 1, 100_001)[:-1]
    exact = erfinv(u)
    for omega in (1.1, 1.5, 2.0, 3.0):
        theta = math.sqrt(2 * math.e / math.pi) * math.sqrt(omega - 1) / omega
        inside = -np.log((1 - u) / theta) / omega
        real = inside >= 0
        assert (exact[real] >= np.sqrt(inside[real]) - 1e-12).all()
        assert (np.sqrt(inside[real]) > 0.6 * exact[real]).any(), "and the bound is not empty"
        assert np.array_equal(real, 1 - u <= theta)
    for omega in (0.3, 0.7, 1.0):
        assert (exact <= np.sqrt(-np.log1p(-u) / omega) + 1e-12).all()
    assert (exact > np.sqrt(-np.log1p(-u) / 1.3))[1:].any(), "not for omega above 1"


# -- Section 3.2: a continuum of arms ---------------------------------------------------------------------------------


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
    smooth = {"lipschitz": 1.3, "slopes": (2.0, 1.5), "side": 2.0}
    points = bandits.grid_points(rule, t, dimensions=d, size=K, noise_variance=noise**2, **smooth)
    upper = bandits.UCB() if isinstance(rule, bandits.Thompson) else rule
    for given, holds in ((points, True), (points * (1 - 1e-9) - 1, False)):
        ratios = inequalities(given, float(upper.beta(t, given**d)), t, d, K, 1.3, 2.0, (2.0, 1.5), noise)
        assert (ratios.min() >= 1 - 1e-12) == holds


def test_bounds_are_theorem_3_2s():
    """By hand for T = 20, d = 1, K = 3, γ = 60, ς² = 0.1, λ* = 2."""
    smooth = {"dimensions": 1, "size": 3, "noise_variance": 0.1, "lipschitz": 1.0, "slopes": (2.0, 2.0)}
    known = {"size": 3, "gain": 60.0, "noise_variance": 0.1, "eigenvalue": 2.0, "infinite": True}
    points = bandits.grid_points(bandits.UCB(), 20, **smooth)
    root = math.sqrt(2 * 2.1 * 20 * 3 * 60 * 2 * math.log(points * 20**2 / math.sqrt(2 * math.pi)))
    bound = bandits.regret_bound
    assert bound(bandits.UCB(), 20, n_arms=points, **known) == pytest.approx(math.pi**2 / 2 + root, rel=1e-12)
    assert bound(bandits.Thompson(), 20, n_arms=points, **known) == pytest.approx(
        2 * math.pi**2 / 3 + 2 * root, rel=1e-12
    )
    rule = bandits.BayesUCB(1.5, 2.0)
    points = bandits.grid_points(rule, 20, **smooth)
    eta = (2 * math.pi) ** 0.75 / (2 * points**1.5 * 20**2)
    root = math.sqrt(2 * 2.1 * 20 * 3 * 60) * norm.isf(eta)
    lost = (math.sqrt(math.pi) * 1.5 / math.sqrt(2 * math.e * 0.5)) ** (1 / 1.5) * 2.0 / 0.5
    assert bound(rule, 20, n_arms=points, **known) == pytest.approx(math.pi**2 / 3 + root + lost, rel=1e-9)


@pytest.mark.parametrize(
    ("rule", "rounds"), [(bandits.UCB(), 50_000), (bandits.BayesUCB(1.5, 2.0), 50_000), (bandits.Thompson(True), 3_000)]
)
def test_learners_on_an_interval_stay_below_the_bound_and_guessing_does_not(rule, rounds):
    """Theorem 3.2: in each round forty of 150 places in [0, 1] are offered; the confidence parameter is that of its grid.

    For Thompson sampling, whose bound is twice as large, it would take too many rounds until guessing exceeds the bound.
    """
    places, rng = np.linspace(0, 1, 150), np.random.default_rng(0)
    covariance = matern(places - places[:, None], 0.2)
    prior = bandits.Prior(np.zeros(150), covariance, NOISE)
    lipschitz = LIPSCHITZ * LENGTHSCALE / 0.2
    slope = SLOPE * LENGTHSCALE / 0.2
    slopes = 1 + CURVATURE * (LENGTHSCALE / 0.2) ** 2 / (math.pi * slope), math.sqrt(2) * slope
    smooth = {"dimensions": 1, "size": 1, "noise_variance": NOISE, "lipschitz": lipschitz, "slopes": slopes}
    truth, mean, S = prior.draw(rng=1)[:, 0], np.zeros(150), covariance.copy()
    regret = 0.0
    points = bandits.grid_points(rule, rounds, **smooth)
    upper = bandits.UCB() if isinstance(rule, bandits.Thompson) else rule
    for t in range(1, rounds + 1):
        offered = rng.choice(150, 40, replace=False)
        if isinstance(rule, bandits.Thompson):
            block = S[np.ix_(offered, offered)] + 1e-9 * np.eye(40)
            score = mean[offered] + np.linalg.cholesky(block) @ rng.standard_normal(40)
        else:  # the grid of round T for all rounds: at least as cautious
            score = mean[offered] + np.sqrt(upper.beta(t, points) * np.maximum(S[offered, offered], 0.0))
        arm, best = offered[score.argmax()], truth[offered].max()
        regret += best - truth[arm]
        gain = S[:, arm] / (S[arm, arm] + NOISE)
        mean = mean + gain * (truth[arm] + math.sqrt(NOISE) * rng.standard_normal() - mean[arm])
        S = S - np.outer(gain, S[arm])
    facts = {"n_arms": points, "size": 1, "noise_variance": NOISE, "eigenvalue": 1.0, "infinite": True}
    bound = bandits.regret_bound(rule, rounds, gain=bandits.spectral_gain(prior, rounds), **facts)
    others = prior.draw(500, rng=2)
    guessing = rounds * np.mean([draw[:40].max() - draw.mean() for draw in rng.permuted(others.T, axis=1)])
    assert regret < bound / 5
    assert bound < guessing or isinstance(rule, bandits.Thompson)


def test_largest_slopes_of_draws_have_gaussian_tails():
    """Assumption (5) for the Matérn kernel 5/2 on [0, 1]: constants from Rice's formula; a tail a fifth shorter fails."""
    places = np.linspace(0, 1, 401)
    K = matern(places - places[:, None])
    draws = np.linalg.cholesky(K + 1e-10 * np.eye(401)) @ np.random.default_rng(0).standard_normal((401, 4000))
    slopes = np.abs(np.diff(draws[::4], axis=0) / (4 * places[1])).max(axis=0)
    c2, c3 = TAIL
    levels = np.quantile(slopes, [0.3, 0.6, 0.9, 0.97, 0.99])
    observed = (slopes[:, None] > levels).mean(axis=0)
    assert (observed <= c2 * np.exp(-(levels**2) / c3**2) * 1.2).all()
    assert observed[-1] > 3 * c2 * math.exp(-(levels[-1] ** 2) / (0.8 * c3) ** 2)


def printed_grid(rule, t, d, K, L, side, noise, slopes):
    """Return the explicit grid of remark (59), or (60) for Bayes-UCB, and the logarithm of t in it."""
    log_t, step = math.log(t**2 / math.sqrt(2 * math.pi)), L * d * side
    if isinstance(rule, bandits.BayesUCB):
        log_t = math.log(t**rule.xi / (2 * math.sqrt(2 * math.pi) ** rule.omega))
    log = d * getattr(rule, "omega", 1.0) + log_t
    terms = [2 * t**2 * K * step * (1 + t * K / noise)]
    if log > 0:  # else a negative number is raised to a fractional power
        terms.append((16 * t**4 * K**2 * step * log) ** (1 / (1 - 1 / math.e)))
        terms.append((16 * t**5 * K**3 * step**2 / noise**2 * log) ** (1 / (2 - 1 / math.e)))
    terms.append(t**2 * K * d * side * slopes[1] * (math.sqrt(math.log(slopes[0] * d)) + math.sqrt(math.pi) / 2))
    return max(terms), log_t


@pytest.mark.parametrize(("rule", "first"), [(bandits.UCB(), 2), (bandits.BayesUCB(1.1, 1.2), 5)])
def test_printed_grids_hold_only_once_the_logarithm_of_t_is_positive(rule, first):
    """Remarks (59) and (60): from round 2, and for ω = 1.1 and ξ = 1.2 from round 5, they satisfy (6a) to (6d)."""
    fails = set()
    for t in (1, 2, 3, 4, 5, 6, 100):
        for d in (1, 2, 3):
            for K, L, side, noise in ((10, 1.0, 1.0, 1.0), (1, 0.3, 2.0, 0.1), (50, 3.0, 1.0, 0.5), (1, 0.1, 1.0, 1.0)):
                points, log_t = printed_grid(rule, t, d, K, L, side, noise, (2.0, 2.0))
                ratios = inequalities(points, float(rule.beta(t, points**d)), t, d, K, L, side, (2.0, 2.0), noise)
                assert (log_t > 0) == (t >= first)
                if ratios.min() < 1:
                    fails.add((t, d))
    assert {(1, 1), (1, 2)} <= fails
    assert max(fails)[0] < first


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
    assert 0.01 < largest < 1


def test_posterior_deviation_moves_little_though_the_step_of_the_proof_fails():
    """Lemma (67) in 1,000 random cases, and our shorter bound √(2 L d C_1 / τ), which needs no data.

    Step (85) of its proof bounds the difference of variances. It fails with an exponential kernel (L = 1) and one
    observation of the arm itself, because (82) takes the difference of two quadratic forms for the form of the difference.
    """
    for places, values, pair, step in cases(1000):
        _, (deviation, rounded) = posterior(places, values, pair)
        moved = abs(rounded - deviation)
        assert moved <= math.sqrt(LIPSCHITZ * step + len(places) * (LIPSCHITZ * step) ** 2 / NOISE)
        assert moved <= math.sqrt(2 * LIPSCHITZ * step)
    step, noise = 1e-6, 1e-2
    at, pair = np.array([0.5]), np.array([0.5, 0.5 + step])
    _, (deviation, rounded) = posterior(at, np.zeros(1), pair, lambda r: np.exp(-np.abs(r)), noise)
    claimed = step + step**2 / noise**2
    assert rounded**2 - deviation**2 > 1.9 * claimed
    assert rounded - deviation <= math.sqrt(claimed), "the lemma itself holds"


def rounded_games(runs=60, rounds=12, K=2):
    """Yield for random sets of K arms per round: t, √β_t, and the changes of posterior mean, deviation and value by
    rounding to the grid of (6a) to (6d); one row per run, summed over the set."""
    rng = np.random.default_rng(0)
    smooth = {"dimensions": 1, "size": K, "noise_variance": NOISE, "lipschitz": LIPSCHITZ, "slopes": TAIL}
    grids = [bandits.grid_points(bandits.UCB(), t, **smooth) for t in range(1, rounds + 1)]
    changes = np.zeros((rounds, runs, 2))
    roots = [math.sqrt(bandits.UCB().beta(t, points)) for t, points in enumerate(grids, 1)]
    for run in range(runs):
        places = rng.random(rounds * K)
        S = matern(places[:, None] - places) + NOISE * np.eye(len(places))
        values = np.linalg.cholesky(S) @ rng.standard_normal(len(places))
        for t, points in enumerate(grids):
            arms = places[t * K : (t + 1) * K]
            both = np.concatenate([arms, (np.floor(arms * points) + 0.5) / points])
            mean, deviation = posterior(places[: t * K], values[: t * K], both)
            sign = np.sign(mean[K:].sum() - mean[:K].sum())  # the worse direction of the two
            changes[t, run] = sign * (mean[K:] - mean[:K]).sum(), np.abs(deviation[K:] - deviation[:K]).sum()
    return np.array(roots), changes


def test_rounding_to_the_grid_costs_at_most_pi_squared_over_6():
    """Lemma (7), with Lemmas (87) and (97) for its two parts: rounding to the theorem's grid costs far less."""
    roots, changes = rounded_games()
    means, deviations = changes[:, :, 0].mean(axis=1).sum(), (roots[:, None] * changes[:, :, 1]).mean(axis=1).sum()
    assert 0 < means < math.pi**2 / 12
    assert 0 < deviations < math.pi**2 / 12
    assert means + deviations < math.pi**2 / 6


def test_inequality_6b_alone_bounds_the_deviations():
    """Lemma (97) with our bound √(2 L d C_1 / τ): √β_t K times it is at most 1 / (2 t²), without (6c)."""
    for t in (1, 2, 10, 1000):
        for K in (1, 5, 60):
            points = bandits.grid_points(
                bandits.UCB(), t, dimensions=1, size=K, noise_variance=1e9, lipschitz=LIPSCHITZ, slopes=TAIL
            )  # with so much noise (6c) is idle
            beta = float(bandits.UCB().beta(t, points))
            assert K * math.sqrt(beta * 2 * LIPSCHITZ / points) <= 1 / (2 * t**2) * (1 + 1e-9)


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
        assert 0.05 / t**2 < worst < 1 / t**2


# -- Section 4.1: navigation ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("network", "dropped"), [("monaco", "180 of 3183"), ("luxembourg", "60 of 5740")])
def test_few_edges_lie_outside_of_the_largest_component(network, dropped):
    """Appendix B.2: 6 % of Monaco's edges and 1 % of Luxembourg's (rebuilt) are dropped."""
    if network == "luxembourg" and not os.environ.get("EMSOPT_DATA"):
        pytest.skip("the network of Luxembourg is read from $EMSOPT_DATA")
    net = eo.datasets.load_roads(network)
    if net.name == "luxembourg":
        pytest.skip("the published network, not the rebuilt one")
    assert f"{dropped} edges lie outside the largest strongly connected part" in net.notes


def test_drawn_networks_have_negative_cycles():
    """In every one of 20 draws for Monaco a cycle of negative energy can be reached, so that Bellman-Ford finds no path."""
    net = eo.datasets.load_roads("monaco")
    prior = bandits.navigation_prior(net)
    start, end = net.connections.T.astype(np.int32)  # required by scipy before 1.15
    first = net.edges(eo.datasets.ROUTES["monaco"]["A"][:1])
    for truth in prior.draw(20, rng=0).T:
        graph = csr_array((truth[end], (start, end)), shape=(net.n_edges, net.n_edges))
        with pytest.raises(NegativeCycleError):
            bellman_ford(graph, indices=first)
    graph = csr_array((prior.mean[end], (start, end)), shape=(net.n_edges, net.n_edges))
    assert np.isfinite(bellman_ford(graph, indices=first)).all(), "the formula's energies have no such cycle"
