"""Section 4 and Appendix B of the BOKE paper: what its theorems say, in simulations that would show if they failed.

The theorems need kernels of bounded support (R = 1); searches on finite sets are `visits` of the study.
"""

import numpy as np
import pytest

import emsopt as eo
from emsopt.optimizers import BOKE, BOKEPlus
from emsopt.optimizers.boxes.boke import NOISE_SD, exploration_weight, fill_distance
from emsopt.surrogates.kernel_regression import condition, scott

BOUNDED = ["epanechnikov", "uniform"]
GRID = np.linspace(0, 1, 201)[:, None]
WAVE = eo.problems.decaying_wave()
LIPSCHITZ = np.abs(np.gradient(WAVE(np.linspace(0, 1, 100_001)[:, None]), 1e-5)).max()


def modulus(h):
    """Return ω(h), the largest difference of the wave's values at points at most h apart."""
    f = WAVE(GRID)
    return ((np.abs(GRID - GRID[:, 0]) <= h + 1e-12) * np.abs(f[:, None] - f)).max()


# -- 4.1 the error of the regression ------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", BOUNDED)
@pytest.mark.parametrize("delta", [0.1, 0.5])
@pytest.mark.parametrize("wavy", [True, False])
def test_the_error_of_the_regression_is_covered(kernel, delta, wavy, claim):
    """Theorem 4.1 on a fixed design: at each point at least 1 - δ of 2,000 draws of the noise lie within the bound."""
    rng, noise, h = np.random.default_rng(0), 0.3, 0.1
    X, x = rng.random((60, 1)), np.linspace(0.05, 0.95, 10)[:, None]
    # The regression is linear in the values: these are its weights at the points x, (60, 10).
    weights = np.array([condition(X, unit, h, kernel=kernel).predict(x)[0] for unit in np.eye(60)])
    y = wavy * WAVE(X) + noise * rng.standard_normal((2000, 60))
    mean, log_density = condition(X, y[0], h, kernel=kernel).predict(x)
    np.testing.assert_allclose(y[0] @ weights, mean, atol=1e-9)
    bound = wavy * modulus(h) + np.sqrt(2 * noise**2 * np.log(2 / delta) * np.exp(-log_density))
    coverage = (np.abs(wavy * WAVE(x) - y @ weights) <= bound).mean(axis=0)
    assert coverage.min() >= 1 - delta
    assert wavy or coverage.max() < 1
    claim("boke", "Theorem 4.1", delta)
    claim("boke", "Theorem 4.1", len(y), column="error")


def test_the_error_is_covered_at_points_chosen_by_the_search_too(study, claim):
    """Theorem 4.1 is proved for points chosen before the values are known; here on a constant function, ω = 0."""
    place, delta, inside = "Theorem 4.1 (points chosen by the search)", 0.5, []
    arguments = np.linspace(0, 1, 8)[:, None], np.zeros(8), 0.01, 0.1, range(8), 200
    for seed in range(40):
        _, mean, log_density, _ = study.visits(*arguments, np.random.default_rng(seed))
        bound = np.sqrt(2 * study.NOISE_SD**2 * np.log(2 / delta) * np.exp(-log_density))
        inside.append((np.abs(mean) <= bound).mean())
    assert 1 - delta < np.min(inside) < np.mean(inside) < 1
    claim("boke", place, np.mean(inside), delta)
    claim("boke", place, len(inside), 200, column="error")


def test_theorem_4_1_fails_where_values_decide_where_to_evaluate_next(claim):
    """A rule that leaves a point as soon as its mean is beyond the bound: f = 0, one kernel wide enough for one point."""
    place = "Proof of Lemma 4.9 and Theorem 4.13, use of Theorem 4.1"
    delta, noise, T, runs = 0.1, 0.1, 1000, 2000
    errors, n = noise * np.random.default_rng(0).standard_normal((runs, T)), np.arange(1, T + 1)
    beyond = np.abs(errors.cumsum(axis=1) / n) > np.sqrt(2 * noise**2 * np.log(2 / delta) / n)
    assert beyond[:, [0, -1]].mean(axis=0).max() < delta  # where the number of values is fixed, the theorem holds
    left = beyond[:, :-1].any(axis=1)
    claim("boke", place, left.mean(), delta, T - 1)
    claim("boke", place, runs, column="error")
    k = left.argmax()  # such a run by the regression itself: the other evaluations are elsewhere
    X = np.where(n <= beyond[k].argmax() + 1, 0.2, 0.8)[:, None]
    m, log_density = condition(X, errors[k], 0.1, kernel="epanechnikov").predict([[0.2]])
    assert abs(m[0]) > np.sqrt(2 * noise**2 * np.log(2 / delta) * np.exp(-log_density[0]))


def test_a_kernel_of_bounded_support_leaves_the_regression_continuous_where_it_ends(claim):
    """Section 4.1: one-sided limits at the edge of the support, where the nearest neighbour's value takes over."""
    model = condition([[0.2], [0.3], [0.9]], [1.0, 2.0, 5.0], 0.2, kernel="epanechnikov")
    for side in (-1e-9, 1e-9):  # of 0.3 to the right, of 0.9 to the left
        np.testing.assert_allclose(model.predict([[0.5 + side], [0.7 + side]])[0], [2, 5], rtol=0, atol=1e-6)
    claim("boke", "Section 4.1 (extension)", 1e-6)
    x = np.linspace(0, 1, 10_002)  # halfway between 0.3 and 0.9 the nearest neighbour changes: a jump, and no other
    steps = np.abs(np.diff(model.predict(x[:, None])[0]))
    (jump,) = np.flatnonzero(steps > 0.01)
    assert x[jump] < 0.6 < x[jump + 1]
    assert steps[jump] == pytest.approx(3)


KINDS = [("gaussian", True, False), ("epanechnikov", True, True), ("uniform", False, True)]


@pytest.mark.parametrize(("kernel", "continuous", "bounded"), KINDS)
def test_only_the_epanechnikov_kernel_meets_the_assumptions(kernel, continuous, bounded):
    """Of the kernels (3.2) to (3.4): Ψ is to be 1 at 0 and at most M, continuous, and 0 outside of a ball."""
    values = np.exp(condition([[0.0]], [1.0], 1.0, kernel=kernel).predict(np.linspace(-3, 3, 60_001)[:, None])[1])
    assert values[30_000] == values.max() == 1
    np.testing.assert_allclose(values, values[::-1], rtol=1e-9)
    assert (np.abs(np.diff(values)).max() < 1e-3) == continuous
    assert (values[0] == 0) == bounded


def test_noise_of_a_problem_is_sub_gaussian_with_its_standard_deviation(study, claim):
    """Section 4, the assumption on errors, (4.2): with equality, as the noise is Gaussian."""
    f = eo.problems.decaying_wave(noise_sd=0.3, rng=0)
    draws = f(np.full((20_000, 1), 0.5)) - WAVE([[0.5]])[0]
    for scale in (-5, -2, 2, 5):
        assert np.exp(scale * draws).mean() == pytest.approx(np.exp(0.3**2 * scale**2 / 2), rel=0.1)
    assert abs(np.corrcoef(draws[1:], draws[:-1])[0, 1]) < 0.03
    claim("boke", "Section 4, assumption on the noise", NOISE_SD, study.NOISE)


def test_a_cut_gaussian_kernel_gives_the_same_regression(claim):
    """Section 4 calls bounded support mild: cut at five bandwidths, a Gaussian kernel changes little near the data."""
    rng, h = np.random.default_rng(2), 0.1
    X, x = rng.random((50, 2)), rng.random((200, 2))
    y = np.sin(5 * X[:, 0])
    u = np.linalg.norm(x[:, None] - X, axis=2) / h
    cut = np.exp(-(u**2) / 2) * (u <= 5)
    mean, log_density = condition(X, y, h).predict(x)
    near = u.min(axis=1) < 2
    assert near.mean() > 0.9
    np.testing.assert_allclose((cut @ y / cut.sum(axis=1))[near], mean[near], rtol=0, atol=1e-4)
    np.testing.assert_allclose(np.log(cut.sum(axis=1))[near], log_density[near], rtol=0, atol=1e-4)
    claim("boke", "Section 4, bounded support called mild", 1e-4)


# -- Lemmas 4.3, B.7 and B.10: near and far from convergent points ------------------------------------------


def density(X, h, x, kernel="epanechnikov"):
    """Return the log density at a point x of numbers X."""
    return condition(np.reshape(X, (-1, 1)), np.zeros(np.size(X)), h, kernel=kernel).predict([[x]])[1][0]


def convergent(t, width, rng):
    """Return regression and W^(-1/2) at x_t = 0.4 + 0.5 / t from the t - 1 points before, and the bandwidth."""
    x = 0.4 + 0.5 / np.arange(1, t + 1)[:, None]
    h = 2 * (x[t // 2 - 1, 0] - x[-1, 0]) if width == "constructed" else width  # as in the proofs
    y = WAVE(x[:-1]) + 0.1 * rng.standard_normal(t - 1)
    mean, log_density = condition(x[:-1], y, h, kernel="epanechnikov").predict(x[-1:])
    return mean[0], np.exp(-log_density[0] / 2), h


@pytest.mark.parametrize("kernel", BOUNDED)
def test_exploration_explodes_away_from_the_data(kernel, claim):
    """Lemma B.7 (a1) and (b1): farther than h from all data the density is 0, with shrinking h in the end anywhere."""
    X, shrinking = np.linspace(0, 0.5, 50), [scott(t, 1, 12**-0.5) for t in (1, 10**4)]
    assert density(X, 0.29, 0.8, kernel) == -np.inf < density(X, 0.31, 0.8, kernel)
    assert density(X, shrinking[1], 0.6, kernel) == -np.inf < density(X, shrinking[0], 0.6, kernel)
    claim("boke", "Lemma B.7 (b1)", 0.6 - X.max())


@pytest.mark.parametrize("width", [0.1, "constructed"])
def test_exploration_vanishes_along_a_convergent_sequence(width, claim):
    """Lemma B.7 (a2), and (b2) with the bandwidths of its proof, which tend to 0."""
    _, sigma, h = np.array([convergent(t, width, np.random.default_rng(0)) for t in (16, 256, 4096)]).T
    assert sigma[2] < sigma[1] / 3 < sigma[0] / 9
    assert (h[2] < 1e-3) == (width == "constructed")
    for place in ("Lemma B.7 (a2)", "Lemma B.7 (b2)"):
        claim("boke", place, 16, 256, 4096)


def test_the_rescaled_bound_explodes_in_empty_places():
    """Lemma 4.3 (a1) and (b1): the regression is a value of f with noise, so the bound is infinite as the bonus is."""
    X = np.linspace(0, 0.5, 50)[:, None]
    for t, h, where in ((100, 0.29, True), (10**6, scott(10**6, 1, 12**-0.5), True), (100, 0.31, False)):
        mean, log_density = condition(X, WAVE(X), h, kernel="epanechnikov").predict([[0.8]])
        bound = mean[0] / np.sqrt(exploration_weight(t, 0.1)) + np.exp(-log_density[0] / 2)
        assert (bound == np.inf) == where


@pytest.mark.parametrize("width", [0.1, "constructed"])
def test_the_rescaled_bound_vanishes_along_a_convergent_sequence(width, claim):
    """Lemma 4.3 (a2) and (b2): β^(-1/2) m + W^(-1/2), the largest of 50 draws, with β = t² that tends to infinity."""
    rng, largest = np.random.default_rng(1), []
    for t in (16, 256, 4096):
        draws = [convergent(t, width, rng) for _ in range(50)]
        largest.append(max(abs(mean) / t + sigma for mean, sigma, _ in draws))
    assert largest[2] < largest[1] / 3 < largest[0] / 9
    claim("boke", "Lemma 4.3 (a2)", len(draws), 16, 256, 4096)
    claim("boke", "Lemma 4.3 (b2)", len(draws), 16, 256, 4096)


@pytest.mark.parametrize("width", [0.1, "constructed"])
def test_the_regression_is_locally_consistent(width, claim):
    """Lemma B.10: the largest error at f(0.4) of 200 draws ends below ω(h) for a fixed h (a), and tends to 0 with (b)."""
    rng, truth, largest = np.random.default_rng(2), WAVE([[0.4]])[0], []
    for t in (8, 64, 2048):
        largest.append(max(abs(convergent(t, width, rng)[0] - truth) for _ in range(200)))
    assert largest[2] < (0.02 if width == "constructed" else modulus(width))
    assert largest[2] < largest[1] / 2 < largest[0] / 4
    claim("boke", "Lemma B.10 (a)", 200, 2048, 0.1)
    claim("boke", "Lemma B.10 (b)", 200, 0.02, 2048)


# -- 4.2 consistency ----------------------------------------------------------------------------------------


def visited(method, f, budget, **options):
    """Return the points of a run with the Epanechnikov kernel, (budget, d)."""
    search, optimizer = {"min": eo.minimize, "max": eo.maximize}, method(f, kernel="epanechnikov", rng=0, **options)
    return np.array(search[f.sense](f, optimizer, budget=budget).history["x"].tolist())


def flat(d):
    return eo.problems.Problem("flat", lambda x: np.zeros(len(x)), [(0, 1)] * d, "max")


@pytest.mark.parametrize(("method", "options"), [(BOKE, {}), (BOKEPlus, {"exploring": 0.3})])
@pytest.mark.parametrize("h", [0.05, 0.15])
def test_a_fixed_bandwidth_ends_within_its_error(method, options, h, claim):
    """Theorem 4.4 (a) and Corollary 4.6: within h of every point, and simple regret at most L h."""
    f = eo.problems.decaying_wave(noise_sd=0.1, rng=0)
    points = visited(method, f, 120, bandwidth=h, **options)
    assert fill_distance(points) <= h < fill_distance(points[:4])
    assert f.best_value - f.noise_free_value(points).max() <= LIPSCHITZ * h
    claim("boke", "Theorem 4.4 (a)", len(points), h)


@pytest.mark.parametrize(("d", "h", "n"), [(1, 0.05, 60), (2, 0.25, 60)])
def test_exploring_by_density_covers_up_to_the_bandwidth(d, h, n, claim):
    """Corollary 4.8 (a): BOKE on a constant function goes where the density is least."""
    points = visited(BOKE, flat(d), n, bandwidth=h, noise_sd=1.0, initial=1)
    assert fill_distance(points) <= h < fill_distance(points[: n // 10])
    claim("boke", "Corollary 4.8 (a)", len(points), h)


@pytest.mark.parametrize(("method", "options"), [(BOKE, {}), (BOKEPlus, {"exploring": 0.3})])
def test_with_scotts_bandwidths_the_largest_gap_shrinks(method, options, claim):
    """Theorem 4.4 (b) and Corollary 4.6, whose bandwidths are not named: 300 steps in two inputs."""
    f = eo.problems.six_hump_camel()
    points = visited(method, f, 300, noise_sd=0.5, **options)
    unit = (points - f.bounds[:, 0]) / np.ptp(f.bounds, axis=1)
    gaps = [fill_distance(unit[:t]) for t in (10, 50, 300)]
    assert gaps[2] < gaps[1] / 1.2 < gaps[0] / 1.44
    regrets = [f.noise_free_value(points[:t]).min() - f.best_value for t in (10, 300)]
    assert regrets[1] < regrets[0] / 2
    claim("boke", "Theorem 4.4 (b)", 1.2, 10, 50, 300)


def test_exploring_by_density_with_scotts_bandwidths_fills_further(claim):
    """Corollary 4.8 (b): BOKE on a constant function, 300 steps in two inputs."""
    points = visited(BOKE, flat(2), 300, noise_sd=1.0, initial=1)
    gaps = [fill_distance(points[:t]) for t in (10, 50, 300)]
    assert gaps[2] < gaps[1] / 2 < gaps[0] / 4
    claim("boke", "Corollary 4.8 (b)", 10, 50, 300)


def test_bandwidths_that_shrink_too_fast_keep_a_search_in_one_place(claim):
    """The bandwidths of Lemmas 4.3 (b2) and B.7 (b2) depend on the points; here each lies beyond all earlier kernels."""
    points = [0.0]
    for t in range(1, 31):
        h = 2.0 ** -(t + 2)
        points.append(points[-1] + 1.01 * h)
        assert density(points[:-1], h, points[-1]) == -np.inf
    claim("boke", "Proof of Theorem 4.4 and Corollary 4.8, use of Lemma 4.3 (b2)", 30, points[-1])
    h = 2 * abs(points[15] - points[-1])  # as in the proof of Lemma B.7 (b2)
    assert density(points[:-1], h, points[-1]) > np.log(10)
    assert density(points[:-1], h, 0.9) == -np.inf  # a search with this bandwidth goes there instead


# -- 4.3 regret ---------------------------------------------------------------------------------------------


def test_worse_points_are_visited_no_oftener_than_lemma_4_9_says(study, claim):
    """Mean visits of 20 runs of 1,000 steps; the closer a point is to the best, the more visits it takes."""
    f, T, runs = np.random.default_rng(0).random(12), 1000, 20
    arguments = np.linspace(0, 1, 12)[:, None], f, 0.01, study.FINITE, [], T
    points = [study.visits(*arguments, np.random.default_rng(k))[0] for k in range(runs)]
    visits, gaps = np.bincount(np.ravel(points), minlength=12) / runs, f.max() - f
    worse = gaps > 0
    bound = 64 * study.NOISE_SD**2 * np.log(T) / gaps[worse] ** 2 + 1 + 2 * np.pi**2 / 3
    assert (visits[worse] <= bound).all()
    assert visits[worse].argmax() == gaps[worse].argmin()
    assert visits[worse].max() > 2 * visits[worse].min()
    claim("boke", "Lemma 4.9", runs, T, worse.sum())


def test_regret_on_finite_sets_stays_below_theorem_4_10(study, claim):
    """In all stored runs, and by far: the constants are loose. It grows more slowly than √T."""
    stored = eo.datasets.load_study("boke_theory").query("setting == 'finite'").set_index("t")
    assert (stored["largest"] < stored["bound"]).all()
    end, f = stored.loc[1000], np.random.default_rng(0).random(12)
    claim("boke", "Theorem 4.10", 50, 1000, end["largest"], end["bound"], 0.1, end["bound"] / end["largest"])
    claim("boke", "Theorem 4.10", end["mean"], end["q25"], end["q75"], column="error")
    assert end["mean"] / stored["mean"][250] < 1.6
    again = study.on_finite_set("finite", 100, 0)[-1]["regret"]
    assert stored["q25"][100] / 2 < again <= stored["largest"][100] + 1e-3
    # the bound by its formula, with δ = 0.1
    by_hand = np.sqrt(256 * study.NOISE_SD**2 * 12 * 1000 * np.log(1000)) / 0.1 + 8 * 12 * np.ptp(f) / 0.1
    assert by_hand == pytest.approx(end["bound"], rel=1e-3)


def test_wide_bandwidths_in_the_first_steps_do_no_harm(study, claim):
    """Remark 4.12: (4.28) need hold from some step on only, but the bound then depends on that step."""
    f, T, width = np.random.default_rng(0).random(12), 1000, lambda t: 0.3 if t < 100 else 0.01
    grid, rng = np.linspace(0, 1, 12)[:, None], np.random.default_rng(0)
    gaps = f.max() - f[study.visits(grid, f, width, study.FINITE, [], T, rng)[0]]
    assert gaps[500:].mean() < 0.02
    claim("boke", "Remark 4.12", 0.3, 100, len(gaps[500:]), 0.02)
    stored = eo.datasets.load_study("boke_theory").query("setting == 'finite'").set_index("t")
    assert gaps.sum() < stored["bound"][1000]
    # Two points and a kernel that is 1 up to h and 0 from 2 h on: all values count alike at both, so each step may take
    # the worse one, with gap 1, for as long as h is wide.
    delta, steps, apart, wide = 0.5, 100_000, 0.1, 0.3
    assert np.clip(2 - apart / wide, 0, 1) == 1  # the weight
    bound = np.sqrt(256 * study.NOISE_SD**2 * 2 * steps * np.log(steps)) / delta + 8 * 2 / delta
    claim("boke", "Remark 4.12", 0.02, steps, steps, bound, delta)
    assert bound < steps


def test_a_tiny_bandwidth_gives_ucb1_with_half_its_bonus(study, claim):
    """Section 4.3.1: 4 ς² log t / n under the root; UCB1 has 2 log t / n for a width of 1, ς = 1/2: 8 ς² log t / n."""
    f, n, rng = np.random.default_rng(3).random(10), 10, np.random.default_rng(4)
    grid = np.linspace(0, 1, n)[:, None]
    points, *_ = study.visits(grid, f, 1e-6, study.FINITE, range(n), 300, np.random.default_rng(4))
    sums, counts, same = f + study.NOISE_SD * rng.standard_normal(n), np.ones(n), {4: 0, 8: 0}
    for t, chosen in enumerate(points, n):
        for constant in same:
            bonus = np.sqrt(constant * study.NOISE_SD**2 * np.log(t) / counts)
            same[constant] += np.argmax(sums / counts + bonus) == chosen
        sums[chosen] += f[chosen] + study.NOISE_SD * rng.standard_normal()
        counts[chosen] += 1
    claim("boke", "Section 4.3.1 (UCB1)", same[4], len(points), same[8])
    assert same[4] == len(points) > 10 * same[8]


def test_the_bound_on_visits_is_of_ucb1s_order_and_twice_as_large(claim):
    """Arithmetic on the paper: Lemma 4.9 beside Theorem 1 of Auer et al., 8 log T / gap² + 1 + π² / 3 for values in an interval of width 1."""
    of_boke, of_ucb1 = 64 * 0.5**2, 8  # ς = 1/2, the least that Hoeffding's lemma gives for such values
    claim("boke", "Section 4.3.1 (bound beside UCB1's)", of_boke, 2 * np.pi**2 / 3, of_ucb1, np.pi**2 / 3)
    for T, apart in ((10, 0.9), (10**6, 0.01)):
        boke, ucb1 = (c * np.log(T) / apart**2 + 1 + k * np.pi**2 / 3 for c, k in ((of_boke, 2), (of_ucb1, 1)))
        assert 1.5 < boke / ucb1 < 2


def test_not_every_action_is_tried(study, claim):
    """Section 4.3.1: the regression shares values, so 201 points need not be tried once each, as UCB1 does."""
    points, *_ = study.visits(GRID, WAVE(GRID), 0.05, study.FINITE, [], 400, np.random.default_rng(5))
    gaps = WAVE(GRID).max() - WAVE(GRID)
    assert len(set(points)) < 150
    assert gaps[points[-100:]].mean() < 0.05
    assert modulus(0.05) > gaps[gaps > 0].min() / 4  # (4.28) is not met
    claim("boke", "Section 4.3.1 (sharing)", 150, len(GRID), len(points), 100, 0.05)


def test_the_regret_of_each_step_stays_below_4_33(study, claim):
    """Theorem 4.13: no step of the stored runs breaks (4.33), nor of a run with another seed."""
    stored = eo.datasets.load_study("boke_theory")
    assert (stored["violations"].max(), stored["setting"].nunique()) == (0, 4)
    assert study.on_finite_set("wave, h = 0.02", 200, 99)[-1]["violations"] == 0
    first = condition(GRID[::5], WAVE(GRID[::5]), 0.02, kernel="epanechnikov")
    assert np.isfinite(first.predict(GRID)[1]).all()  # the first values of the runs leave no point without density
    claim("boke", "Theorem 4.13 (instant regret)", 3 * 50, stored["t"].max())
    grid, rng = np.linspace(0, 1, 12)[:, None], np.random.default_rng(0)
    _, _, log_density, _ = study.visits(grid, rng.random(12), 0.01, study.DELTA, [0], 12, rng)
    assert np.isneginf(log_density).tolist() == [True] * 11 + [False], "empty places first, where W is 0"


def test_cumulative_regret_stays_below_4_34(claim):
    """(4.40), from which (4.34) follows; its part 2 ω(h) T is linear, and so is the regret of a wide kernel."""
    stored, widths = eo.datasets.load_study("boke_theory").query("setting != 'finite'"), (0.02, 0.05, 0.1)
    assert (stored["largest"] < stored["bound"]).all()
    table = stored.pivot(index="t", columns="setting")
    mean, bound = (table[name][[f"wave, h = {h:g}" for h in widths]] for name in ("mean", "bound"))
    late = ((mean.loc[1000] - mean.loc[500]) / 500).to_numpy()  # mean regret of a step
    assert late[2] > 4 * late[1] > 4 * late[0]
    assert (bound.loc[1000] > [2 * 1000 * modulus(h) for h in widths]).all()
    assert (bound.loc[1000] / bound.loc[250] > 2.5).all()
    end = stored[stored["t"] == 1000]
    times = end["bound"] / end["largest"]
    claim("boke", "Theorem 4.13 (cumulative regret)", 50, 1000, *end["largest"], *widths, *end["bound"])
    claim("boke", "Theorem 4.13 (cumulative regret)", times.min(), times.max(), column="why")
    claim("boke", "Section 4.2 (discussion)", 500, 1000, late[2], 0.1, late[1], 0.05, late[0], 0.02)
