"""Theorems 1 and 3 of the control-problem paper, its lemmas and Tay et al.'s regret: bounds, and runs beside them.

The sections on lemmas and slips call nothing of the package: they support rows of the register.
"""

import itertools

import numpy as np
import pandas as pd
import pytest
from papers import control_regret as bounds
from scipy.stats import multivariate_normal
from sklearn.gaussian_process.kernels import RBF, Matern

import emsopt as eo
from emsopt.optimizers.control.search import with_regret
from emsopt.problems import ControlProblem, Problem, Uniform


def grid(d, side):
    return np.stack(np.meshgrid(*[np.linspace(0, 1, side)] * d), axis=-1).reshape(-1, d)


def gain(K, noise=1.0):
    return 0.5 * np.linalg.slogdet(np.eye(len(K)) + K / noise)[1]


# -- information gain -----------------------------------------------------------------------------------------------


def best_gain(K, t):
    """Return the largest gain of t plays, from a list of all."""
    return max(gain(K[np.ix_(c, c)]) for c in itertools.combinations_with_replacement(range(len(K)), t))


def test_bound_on_the_gain_is_above_the_best_of_all_plays_and_close():
    K = RBF(0.4)(grid(1, 7))
    bound = bounds.gain_bound(K, 10)
    for t in (1, 4):
        assert best_gain(K, t) - 1e-12 <= bound(t) <= 1.2 * best_gain(K, t) + 0.2
    assert (bound(0), bound(1000)) == (0, np.inf)


def growth(K):
    """Return how much the bound on the gain grows from 100 to 10,000 plays."""
    bound = bounds.gain_bound(K, 10_000)
    return float(bound(10_000) / bound(100))


@pytest.mark.parametrize(("d", "side", "times"), [(1, 100, 2.9), (2, 12, 4.0), (3, 6, 5.6)])
def test_largest_gain_of_a_smooth_kernel_grows_slowly(d, side, times):
    """At most like (log T)^(d+1), from 100 to 10,000 plays, and far more slowly than √T."""
    assert growth(RBF(0.5)(grid(d, side))) == pytest.approx(times, abs=0.05)
    assert times < min(2 ** (d + 1), 10)  # log T doubles, √T grows tenfold


@pytest.mark.parametrize(("d", "side", "times", "rate"), [(1, 100, 3.4, 7.5), (2, 12, 5.6, 24.7)])
def test_matern_gain_stays_below_its_rate(d, side, times, rate):
    """T^(d(d+1)/(2ν+d(d+1))) log T with ν = 5/2, from 100 to 10,000 plays; a rougher kernel has more to learn."""
    rough, smooth = (growth(kernel(grid(d, side))) for kernel in (Matern(0.5, nu=2.5), RBF(0.5)))
    assert rough == pytest.approx(times, abs=0.05)
    assert 2 * 100 ** (d * (d + 1) / (5 + d * (d + 1))) == pytest.approx(rate, abs=0.05)
    assert smooth < rough < rate


# -- theorems -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def made(script):
    """Return the module that made the studies of the theorems, not compiled, which takes longer than a thousand plays."""
    made = script("benchmarks/bocvs_theory_study.py")
    for name in ("expected", "algorithm"):
        setattr(made, name, getattr(made, name).py_func)
    return made


@pytest.fixture(scope="module")
def stored(made):
    """Return the study of the bounds, after one seed of its shortest runs was played again."""
    bound, table = bounds.gain_bound(made.instance()[0], 1000), eo.datasets.load_study("bocvs_bounds")
    for _, row in table.query("plays == 1000 and alpha == 0.1 and seed == 0").iterrows():
        again = made.search(1000, int(row["each"]), row["alpha"], int(row["seed"]), bound)
        assert again["quality_regret"] == pytest.approx(row["quality_regret"], abs=2)
        for name in ("cost_regret", "bound_3", "bound_5", "bound_4"):
            assert again[name] == pytest.approx(row[name], rel=0.01)
    return table


def test_bounds_equal_the_formulas_by_hand(made):
    one = lambda t: np.where(np.asarray(t) > 0, 2.0, 0.0)
    known = {"norm": 1.5, "noise_sd": 0.2, "delta": 0.05, "largest": 7.0}
    beta = 1.5 + 0.2 * np.sqrt(2 * (2 + 1 + np.log(20)))
    tail = 4 * np.log(3 / 0.05) + 8 * np.log(4) + 1
    later = 2 * beta * (2 * np.sqrt(4 * (1000 + 2 - 300) * 2) + 3 * tail)
    early = 2 * (1000 - 200) / 100 * beta * (2 * np.sqrt(4 * 102 * 2) + tail)
    assert made.quality_bound(1000, 100, 3, one, **known) == pytest.approx(2 * 2 * 100 * 7 + later + early)
    separated = made.quality_bound(1000, 100, 3, one, **known, separated=True)
    assert separated == pytest.approx(2 * 3 * 100 * 7 + later)
    assert made.cost_bound(1000, 100, 3) == pytest.approx(300 + 1400 * np.sqrt(2 * np.log(1000) / 100))
    tau = bounds.exploration_needed(0.5, 3, one, norm=1.5, noise_sd=0.2)  # with δ = 0.1
    beta, tail = 1.5 + 0.2 * np.sqrt(2 * (2 + 1 + np.log(10))), 4 * np.log(3 / 0.1) + 8 * np.log(4) + 1
    value = [beta * (2 * np.sqrt(4 * (t + 2) * 2) + tail) / t for t in (tau - 1, tau)]
    assert value[1] <= 0.5 / (2 * 1.9) < value[0]
    assert bounds.exploration_needed(1e-9, 3, one, norm=1.5, noise_sd=0.2) is None


def test_quality_regret_stays_below_the_bound(stored, claim):
    """(3), which is below the largest possible regret of all plays only at a million of them."""
    assert (stored["quality_regret"] <= stored["bound_3"]).all()
    assert (stored["bound_3"] < stored["worst_quality"]).equals(stored["plays"] >= 1_000_000)
    strict = stored.query("plays == 1_000_000 and alpha == 0").mean()
    claim("bocvs", "Theorem 1, (3)", strict["quality_regret"], strict["bound_3"])


def test_quality_regret_stays_below_theorem_3(stored, claim):
    """(5), lower than (3), is below the regret of the worst plays from 100,000 plays on, and not up to 10,000."""
    assert (stored["quality_regret"] <= stored["bound_5"]).all()
    assert (stored["bound_5"] < stored["bound_3"]).all()
    telling, long = stored["bound_5"] < stored["worst_quality"], stored["plays"] >= 100_000
    assert telling[long].all()
    assert not telling[stored["plays"] <= 10_000].any()
    assert (stored["exact"][long] == 1).all()
    assert stored["each"].max() < 43_000  # Lemma 2 as printed, in the test of its τ
    strict = stored.query("plays == 1_000_000 and alpha == 0").mean()
    claim("bocvs", "Theorem 3, (5)", strict["quality_regret"], strict["bound_5"])


def test_cost_regret_stays_below_the_bound(made, stored, claim):
    """(4), with costs of 0 or 1; the bound is below the regret of the worst plays only from 10,000 plays on."""
    part = stored[stored["alpha"] == 0.1]
    assert (part["cost_regret"] <= part["bound_4"]).all()
    assert (part["bound_4"] < part["worst_cost"]).equals(part["plays"] >= 10_000)
    assert made.cost_bound(700, 45, 7) > 100  # more than the whole budget of the paper's experiments
    long = part[part["plays"] == 1_000_000].mean()
    for place in ("Theorem 1, (4)", "Theorem 3, cost regret"):
        claim("bocvs", place, long["cost_regret"], long["bound_4"], 0.1)


def test_both_bounds_hold_together(stored, made, claim):
    """At most 3δ + 2/T² = 0.3 of the runs may break one of them; none does."""
    broken = (stored["quality_regret"] > stored["bound_3"]) | (stored["cost_regret"] > stored["bound_4"])
    assert not broken.any()
    allowed = 3 * made.DELTA + 2 / stored["plays"].min() ** 2
    for place in ("Theorem 1, probability", "Proof of Theorem 1, probabilities"):
        claim("bocvs", place, broken.sum(), len(stored))
    claim("bocvs", "Theorem 1, probability", allowed, made.DELTA, column="why")


def test_plays_settle_on_the_cheapest_acceptable_set(stored, claim):
    long = stored[stored["plays"] >= 30_000]
    claim("bocvs", "After Theorem 1, convergence", 100 * long["on_target"].min(), 30_000)


def test_phase_1_stays_below_the_proofs_bound(made, claim):
    """Plays of all sets but the best lose 2 (m - 1) τ M at most in the exploration: 400 here, and they lose 48."""
    each, (_, features, hill, *rest) = 100, made.instance()
    arguments = features, hill, *rest, np.full(3 * each, 1.1), each, 0.1, 1.0, made.NOISE, np.random.default_rng(0)
    sets, reached, _ = made.algorithm(*arguments)
    lost = (0.9 * hill.max() - reached)[sets != 2].sum()
    assert (sets != 2).sum() == 2 * each
    claim("bocvs", "Proof of Theorem 1, phase 1", lost, 2 * (3 - 1) * each * hill.max())


def test_a_late_play_costs_at_most_twice_its_radius_more(made):
    """A step of the proof of (4), in every play after the exploration; half the radius would not do."""
    T, each, excess = 600, 10, []
    *problem, costs = made.instance()[1:]
    for seed in range(3):
        arguments = *problem, costs, np.full(T, 1.1), each, 0.1, 1.0, made.NOISE, np.random.default_rng(seed)
        sets, *_ = made.algorithm(*arguments)
        for t in range(3 * each, T):
            radius = np.sqrt(2 * np.log(T) / (sets[:t] == sets[t]).sum())
            excess.append((costs[sets[t]] - costs[1]) / radius)  # the first variable alone is the target
    assert len(excess) == 1710
    assert 0.5 < max(excess) <= 2


def test_feasible_sets_are_the_acceptable_ones_after_enough_exploration(made, claim):
    """Lemma 2 on the hill: exact in every later play from fifty plays per set on, in a part of them with fewer."""
    K, *problem = made.instance()
    known = {"norm": made.NORM, "noise_sd": made.NOISE, "delta": made.DELTA}
    betas = bounds.theorem_beta(np.arange(1, 401), bounds.gain_bound(K, 400), **known)
    for each in (10, 50):
        options = each, 0.1, 1 + 2 / 20_000, made.NOISE, np.random.default_rng(0)
        assert made.algorithm(*problem, betas, *options)[2][3 * each :].all() == (each == 50)
    exact = eo.datasets.load_study("bocvs_exploration").groupby("each")["exact"].min()
    assert (exact[exact.index >= 50] == 1).all()
    assert (exact[exact.index <= 20] < 1).all()
    claim("bocvs", "Lemma 2", 50, exact[20], 20)


def test_lemma_2s_tau_by_gap(made, script):
    """On the hill the rule asks for hundreds of thousands of plays per set where fifty do; as printed for a fifth."""
    K, features, hill, weights, costs = made.instance()
    least = (hill.reshape(made.SIDE, -1) * weights[:, None]).sum(axis=0).max()  # best of the second variable
    gap, bound, known = 0.9 * hill.max() - least, bounds.gain_bound(K, 1_000_000), {"norm": 1.0, "noise_sd": made.NOISE}
    assert gap == pytest.approx(0.445, abs=5e-4)
    mended, printed = (bounds.exploration_needed(gap, 3, bound, printed=p, **known) for p in (False, True))
    assert (mended, printed) == pytest.approx((232_000, 43_000), abs=1000)
    assert 5 * bounds.exploration_needed(2 * gap, 3, bound, **known) < mended
    exact = eo.datasets.load_study("bocvs_exploration").groupby("each")["exact"].min()
    assert exact[exact == 1].index.tolist() == [50, 100, 300, 1000]
    plays = 3 * printed + 1000
    betas = bounds.theorem_beta(np.arange(1, plays + 1), bound, delta=made.DELTA, **known)
    options = betas, printed, 0.1, 1 + 2 / plays, made.NOISE, np.random.default_rng(0)
    compiled = script("benchmarks/bocvs_theory_study.py").algorithm
    assert compiled(features, hill, weights, costs, *options)[2][-1000:].all()


# -- Tay et al.'s regret --------------------------------------------------------------------------------------------


def test_weighted_regret_is_at_most_quality_regret():
    """At α = 0, as costs are at most 1 and no play is better than the best: so the one is sublinear if the other is."""
    problem = eo.problems.hill_control()
    history = eo.optimizers.bocvs(problem, budget=6, rng=0, alpha=0.0).history
    assert (history["weighted_regret"] <= history["quality_regret"] + 1e-9).all()
    assert (np.diff(history["quality_regret"], prepend=0) > -1e-9).all()
    assert problem.costs.max() <= 1
    assert history["weighted_regret"].iloc[-1] < 0.8 * history["quality_regret"].iloc[-1]


def test_weighted_regret_does_not_see_what_equally_good_sets_cost():
    """Two sets of the same best value, at costs of 0.1 and 1: at its best the second has regret in cost alone."""
    f = Problem("first", lambda u: 1 - (u[:, 0] - 0.8) ** 2, [(0, 1)] * 2, "max", 1.0, [0.8, 0.5])
    problem = ControlProblem(f, [[0], [0, 1]], [0.1, 1.0], Uniform()).with_set_values()
    assert problem.target(0.0) == 0
    plays = pd.DataFrame({"set": [1] * 50, "x": [tuple(problem.set_points[1])] * 50})
    last = with_regret(plays, problem, alpha=0.0).iloc[-1]
    found = last[["weighted_regret", "quality_regret", "cost_regret"]].tolist()
    assert found == pytest.approx([0, 0, 0.9 * 50], abs=1e-6)


def deviations(K, noise):
    """Return the posterior deviation of every play before it is made, by plain inverses."""
    explained = [K[t, :t] @ np.linalg.solve(K[:t, :t] + noise * np.eye(t), K[t, :t]) for t in range(len(K))]
    return np.sqrt(np.diag(K) - explained)


# -- lemmas -----------------------------------------------------------------------------------------------------------


def test_a_larger_box_has_no_smaller_gain():
    whole, inner = (RBF(0.5)(size * grid(2, 4)) for size in (1.0, 0.5))  # of the same shape
    part = whole[:8, :8]  # fewer of the same points
    assert [best_gain(K, 3) for K in (whole, part, inner)] == pytest.approx([1.036, 0.972, 0.938], abs=5e-4)


def test_information_gain_adds_up_play_by_play():
    """Lemma 4."""
    K = RBF(0.4)(np.random.default_rng(0).random((60, 3)))
    before, after = (multivariate_normal(cov=part + 0.1 * np.eye(60)).entropy() for part in (K, 0))
    assert gain(K, 0.1) == pytest.approx(before - after, rel=1e-10)
    assert gain(K, 0.1) == pytest.approx(0.5 * np.log1p(deviations(K, 0.1) ** 2 / 0.1).sum(), rel=1e-10)


def test_confidence_bounds_hold_everywhere_and_always():
    """Lemma 5 with λ = 1 + 2/T and the gain of the plays made: no failure in 40 functions, where δ = 0.1 allows 4."""
    T, noise, X = 40, 0.5, grid(2, 12)
    lam, K = 1 + 2 / T, RBF(0.3)(X)
    for seed in range(40):
        rng = np.random.default_rng(seed)
        centres, heights = rng.integers(0, len(X), 5), 3.0 * rng.standard_normal(5)
        f, norm = K[:, centres] @ heights, np.sqrt(heights @ K[np.ix_(centres, centres)] @ heights)
        plays = rng.integers(0, len(X), T)
        y = f[plays] + noise * rng.standard_normal(T)
        for t in range(T):
            kx, A = K[:, plays[:t]], K[np.ix_(plays[:t], plays[:t])]
            weights = np.linalg.solve(A + lam * np.eye(t), kx.T)
            beta = norm + noise * np.sqrt(2 * (gain(A, lam) + 1 + np.log(1 / 0.1)))
            assert (np.abs(y[:t] @ weights - f) <= beta * np.sqrt(1 - (kx * weights.T).sum(axis=1))).all()


def test_the_sum_of_deviations_needs_a_noise_variance_of_about_one():
    """Lemma 6 holds with Lemma 5's λ = 1 + 2/T, and fails for λ = 100 and plays that tell nothing of each other."""
    T, alone = 200, np.eye(200)
    bound = lambda K, lam: np.sqrt(4 * (T + 2) * gain(K, lam))
    for K in (alone, *(RBF(0.3)(np.random.default_rng(d).random((T, d))) for d in (1, 3, 6))):
        assert deviations(K, 1 + 2 / T).sum() <= bound(K, 1 + 2 / T)
    assert (deviations(alone, 100).sum(), bound(alone, 100)) == pytest.approx((T, 28.4), abs=0.05)


def test_conditional_means_are_bounded_by_observations():
    """Lemma 7 for three processes on [0, b], at all times of 2,000 runs; the first stops as soon as it was lucky."""
    runs, T, delta = 2000, 200, 0.1
    u = np.random.default_rng(0).random((runs, T))
    unlucky = np.cumprod(np.column_stack([np.ones(runs), u[:, :-1] >= 0.05]), axis=1)  # nothing seen so far
    for b, means, X in (
        (1.0, 0.05 * unlucky, (u < 0.05) * unlucky),
        (1.0, np.full((runs, T), 0.5), u),
        (3.0, np.full((runs, T), 0.03), 3.0 * (u < 0.01)),
    ):
        excess = (means.cumsum(axis=1) - 2 * X.cumsum(axis=1)).max(axis=1)
        assert excess.max() <= 4 * b * np.log(1 / delta) + 8 * b * np.log(4 * b) + 1  # a share of delta may exceed it
        assert (excess > 0).mean() > delta  # the constant is needed


def test_cost_intervals_hold_all_at_once():
    """With probability 1 - 2/T² at least, also for costs of 0 or 1: four sets, 20 plays of each, 5000 runs."""
    T, means, runs = 20, np.array([0.1, 0.3, 0.5, 0.9])[:, None], 5000
    plays = np.arange(1, T + 1)
    averages = (np.random.default_rng(0).random((runs, 4, T)) < means).cumsum(axis=2) / plays
    apart = (np.abs(averages - means) / np.sqrt(2 * np.log(T) / plays)).max(axis=(1, 2))  # in radii
    assert apart.max() <= 1
    assert (apart > 0.5).mean() > 10 * 2 / T**2  # half the radius would not do


# -- slips ------------------------------------------------------------------------------------------------------------


def test_line_11_as_printed_leaves_the_exploration():
    """Index kτ + i - 1 with k <= m, seven sets of 45 plays each: it passes 315, and one of its 8 plays is of set i."""
    m, tau = 7, 45
    for i in range(1, m + 1):  # play t bounds with u_{t-1}
        printed, own = {k * tau + i for k in range(m + 1)}, {k * m + i for k in range(tau)}
        assert (len(printed & own), len(printed)) == (1, 8)
        assert {k * m + i for k in range(m + 1)} <= own, "with m for τ"
    assert max(printed) == 322 > m * tau == 315


def lemma_2(alpha, gap, deviation):
    """Return whether a set ``gap`` below the acceptable ones is found out: with E[β σ] of ``deviation`` for both sets."""
    lower, upper = 1 - 2 * deviation, 1 - alpha - gap + 2 * deviation  # the best value is 1
    return upper <= (1 - alpha) * lower + 1e-12


def test_lemma_2s_last_step_needs_alpha():
    """The proof's last inequality at 2βE[σ] = ε / (2 - σ) needs σ <= α; with α for σ it is an equality."""
    alpha, gap = 0.1, 0.3
    works = {s: lemma_2(alpha, gap, gap / (2 - s) / 2) for s in (0.0, alpha, 1.01 * alpha, 1.0)}
    assert list(works.values()) == [True, True, False, False]
    assert gap / (2 - 3.0) < 0  # with noise above 2 the printed threshold is never reached


def test_proof_of_lemma_2_drops_a_two():
    """The sum over the exploration bounds βE[σ], not 2βE[σ]: the threshold on it is ε / (2 (2 - α))."""
    alpha, gap = 0.1, 0.3
    assert not lemma_2(alpha, gap, gap / (2 - alpha))
    assert lemma_2(alpha, gap, gap / (2 * (2 - alpha)))
