"""Theorems 1 and 3 of the control-problem paper, its lemmas and Tay et al.'s regret: bounds, and runs beside them.

The sections on lemmas and slips call nothing of the package: they support rows of the register, and say nothing about the
code.
"""

import itertools

import numpy as np
import pandas as pd
import pytest
from papers import control_regret as bounds
from scipy.stats import multivariate_normal

import emsopt as eo
from emsopt.optimizers.control.search import with_regret
from emsopt.problems import ControlProblem, Problem, Uniform


def squared_exponential(X, lengthscale):
    return np.exp(-(((X[:, None] - X) / lengthscale) ** 2).sum(axis=2) / 2)


def matern(X, lengthscale):
    r = np.sqrt(5 * (((X[:, None] - X) / lengthscale) ** 2).sum(axis=2))
    return (1 + r + r**2 / 3) * np.exp(-r)


def grid(d, side):
    return np.stack(np.meshgrid(*[np.linspace(0, 1, side)] * d), axis=-1).reshape(-1, d)


def gain(K, noise=1.0):
    return 0.5 * np.linalg.slogdet(np.eye(len(K)) + K / noise)[1]


# -- information gain -----------------------------------------------------------------------------------------------


def test_bound_on_the_gain_is_above_the_best_of_all_plays_and_close():
    K = squared_exponential(grid(1, 7), 0.4)
    bound = bounds.gain_bound(K, 10)
    for t in (1, 2, 3, 4):
        best = max(gain(K[np.ix_(c, c)]) for c in itertools.combinations_with_replacement(range(7), t))
        assert best <= bound(t) + 1e-12
        assert bound(t) <= 1.2 * best + 0.2
    assert bound(0) == 0
    assert bound(1000) == np.inf
    assert (np.diff(bound(np.arange(11))) >= 0).all()


@pytest.mark.parametrize(("d", "side", "growth"), [(1, 100, 2.9), (2, 12, 4.0), (3, 6, 5.6)])
def test_largest_gain_of_a_smooth_kernel_grows_slowly(d, side, growth):
    """At most like (log T)^(d+1), from 100 to 10,000 plays, and far more slowly than √T."""
    bound = bounds.gain_bound(squared_exponential(grid(d, side), 0.5), 10_000)
    low, high = (float(bound(T)) for T in (100, 10_000))
    assert high / low == pytest.approx(growth, abs=0.05)
    assert growth < min(2 ** (d + 1), 10)  # log T doubles, √T grows tenfold


@pytest.mark.parametrize(("d", "side", "growth", "rate"), [(1, 100, 3.4, 7.5), (2, 12, 5.6, 24.7)])
def test_matern_gain_stays_below_its_rate(d, side, growth, rate):
    """T^(d(d+1)/(2ν+d(d+1))) log T with ν = 5/2, from 100 to 10,000 plays."""
    bound = bounds.gain_bound(matern(grid(d, side), 0.5), 10_000)
    power = d * (d + 1) / (5 + d * (d + 1))
    low, high = (float(bound(T)) for T in (100, 10_000))
    assert high / low == pytest.approx(growth, abs=0.05)
    assert 2 * 100**power == pytest.approx(rate, abs=0.05)
    assert growth < rate
    smooth = bounds.gain_bound(squared_exponential(grid(d, side), 0.5), 10_000)
    assert high / low > float(smooth(10_000) / smooth(100))  # a rougher kernel has more to learn


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
    def one(t):
        return np.where(np.asarray(t) > 0, 2.0, 0.0)

    known = {"norm": 1.5, "noise_sd": 0.2, "delta": 0.05}
    beta = 1.5 + 0.2 * np.sqrt(2 * (2 + 1 + np.log(20)))
    tail = 4 * np.log(3 / 0.05) + 8 * np.log(4) + 1
    later = 2 * beta * (2 * np.sqrt(4 * (1000 + 2 - 300) * 2) + 3 * tail)
    early = 2 * (1000 - 200) / 100 * beta * (2 * np.sqrt(4 * 102 * 2) + tail)
    arguments = 1000, 100, 3, one
    got = made.quality_bound(*arguments, largest=7.0, **known)
    assert got == pytest.approx(2 * 2 * 100 * 7 + later + early)
    got = made.quality_bound(*arguments, largest=7.0, separated=True, **known)
    assert got == pytest.approx(2 * 3 * 100 * 7 + later)
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
    """(5), lower than (3), is below the regret of the worst plays from 100,000 plays on, and not up to 10,000.

    There the acceptable sets and no others are feasible, though the exploration is shorter than Lemma 2 asks.
    """
    assert (stored["quality_regret"] <= stored["bound_5"]).all()
    assert (stored["bound_5"] < stored["bound_3"]).all()
    telling = stored["bound_5"] < stored["worst_quality"]
    assert telling[stored["plays"] >= 100_000].all()
    assert not telling[stored["plays"] <= 10_000].any()
    assert (stored.loc[stored["plays"] >= 100_000, "exact"] == 1).all()
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


def test_regret_per_play_falls(stored):
    """Both regrets grow more slowly than T: α = 0 for the quality, where no loss is tolerated, and 0.1 for the cost."""
    for alpha, name in ((0.0, "quality_regret"), (0.1, "cost_regret")):
        part = stored[stored["alpha"] == alpha]
        each = (part[name] / part["plays"]).groupby(part["plays"]).mean()
        assert (np.diff(each) < 0).all()
        assert each.iloc[-1] < each.iloc[0] / 3


def test_plays_settle_on_the_cheapest_acceptable_set(stored, claim):
    long = stored[stored["plays"] >= 30_000]
    claim("bocvs", "After Theorem 1, convergence", 100 * long["on_target"].min(), 30_000)


def test_phase_1_stays_below_the_proofs_bound(made, claim):
    """Plays of all sets but the best lose 2 (m - 1) τ M at most in the exploration: 400 here, and they lose 48."""
    _, features, hill, weights, costs = made.instance()
    each, M = 100, hill.max()
    betas, rng = np.full(3 * each, 1.1), np.random.default_rng(0)
    sets, reached, _ = made.algorithm(features, hill, weights, costs, betas, each, 0.1, 1.0, made.NOISE, rng)
    lost = (0.9 * M - reached)[sets != 2].sum()
    assert (sets != 2).sum() == 2 * each
    claim("bocvs", "Proof of Theorem 1, phase 1", lost, 2 * (3 - 1) * each * M)


def test_a_late_play_costs_at_most_twice_its_radius_more(made):
    """A step of the proof of (4), in every play after the exploration; half the radius would not do."""
    _, features, hill, weights, costs = made.instance()
    T, each, excess = 600, 10, []
    betas = np.full(T, 1.1)
    for seed in range(3):
        rng = np.random.default_rng(seed)
        sets, *_ = made.algorithm(features, hill, weights, costs, betas, each, 0.1, 1.0, made.NOISE, rng)
        for t in range(3 * each, T):
            radius = np.sqrt(2 * np.log(T) / (sets[:t] == sets[t]).sum())
            excess.append((costs[sets[t]] - costs[1]) / radius)  # the first variable alone is the target
    assert len(excess) == 1710
    assert 0.5 < max(excess) <= 2


def test_feasible_sets_are_the_acceptable_ones_after_enough_exploration(made, claim):
    """Lemma 2 on the hill: exact in every later play from fifty plays per set on, in a part of them with fewer.

    A seed of the study is played again up to 400 plays.
    """
    K, features, hill, weights, costs = made.instance()
    known = {"norm": made.NORM, "noise_sd": made.NOISE, "delta": made.DELTA}
    betas = bounds.theorem_beta(np.arange(1, 401), bounds.gain_bound(K, 400), **known)
    for each in (10, 50):
        rng = np.random.default_rng(0)
        exact = made.algorithm(features, hill, weights, costs, betas, each, 0.1, 1 + 2 / 20_000, made.NOISE, rng)[2]
        assert exact[3 * each :].all() == (each == 50)
    table = eo.datasets.load_study("bocvs_exploration")
    exact = table.groupby("each")["exact"].min()
    assert (exact[exact.index >= 50] == 1).all()
    assert (exact[exact.index <= 20] < 1).all()
    claim("bocvs", "Lemma 2", 50, exact[20], 20)


def test_lemma_2s_tau_by_gap(made, script):
    """On the hill the rule asks for hundreds of thousands of plays per set where fifty do; for fewer if the gap is larger.

    As printed it asks for a fifth of the mended rule. So many plays are made once, by compiled code.
    """
    K, features, hill, weights, costs = made.instance()
    least = (hill.reshape(made.SIDE, -1) * weights[:, None]).sum(axis=0).max()  # best of the second variable
    gap = 0.9 * hill.max() - least
    assert gap == pytest.approx(0.445, abs=5e-4)
    bound = bounds.gain_bound(K, 1_000_000)
    known = {"norm": 1.0, "noise_sd": made.NOISE}
    mended, printed = (bounds.exploration_needed(gap, 3, bound, printed=p, **known) for p in (False, True))
    assert mended == pytest.approx(232_000, abs=1000)
    assert printed == pytest.approx(43_000, abs=1000)
    assert 5 * bounds.exploration_needed(2 * gap, 3, bound, **known) < mended
    exact = eo.datasets.load_study("bocvs_exploration").groupby("each")["exact"].min()
    assert exact[exact == 1].index.tolist() == [50, 100, 300, 1000]
    assert printed > 800 * 50
    plays, rng = 3 * printed + 1000, np.random.default_rng(0)
    betas = bounds.theorem_beta(np.arange(1, plays + 1), bound, delta=made.DELTA, **known)
    arguments = features, hill, weights, costs, betas, printed, 0.1, 1 + 2 / plays, made.NOISE, rng
    assert script("benchmarks/bocvs_theory_study.py").algorithm(*arguments)[2][-1000:].all()


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
    problem = ControlProblem(f, [[0], [0, 1]], [0.1, 1.0], Uniform()).solved()
    assert problem.target(0.0) == 0
    plays = pd.DataFrame({"set": [1] * 50, "x": [tuple(problem.set_points[1])] * 50})
    last = with_regret(plays, problem, alpha=0.0).iloc[-1]
    assert last["weighted_regret"] == pytest.approx(0, abs=1e-6)
    assert last["quality_regret"] == pytest.approx(0, abs=1e-6)
    assert last["cost_regret"] == pytest.approx(0.9 * 50)


def deviations(K, noise):
    """Return the posterior deviation of every play before it is made, by plain inverses."""
    result = []
    for t in range(len(K)):
        k = K[t, :t]
        result.append(np.sqrt(K[t, t] - k @ np.linalg.solve(K[:t, :t] + noise * np.eye(t), k)))
    return np.array(result)


# -- lemmas -----------------------------------------------------------------------------------------------------------


def test_a_larger_box_has_no_smaller_gain():
    whole = squared_exponential(grid(2, 4), 0.5)
    inner = squared_exponential(grid(2, 4) * 0.5, 0.5)

    def best(K):
        return max(gain(K[np.ix_(c, c)]) for c in itertools.combinations_with_replacement(range(len(K)), 3))

    part = whole[np.ix_(range(8), range(8))]
    assert best(whole) == pytest.approx(1.036, abs=5e-4)
    assert best(part) == pytest.approx(0.972, abs=5e-4)  # fewer of the same points
    assert best(inner) == pytest.approx(0.938, abs=5e-4)  # a smaller box of the same shape


def test_information_gain_adds_up_play_by_play():
    """Lemma 4."""
    K = squared_exponential(np.random.default_rng(0).random((60, 3)), 0.4)
    before, after = (multivariate_normal(cov=part + 0.1 * np.eye(60)).entropy() for part in (K, 0))
    assert gain(K, 0.1) == pytest.approx(before - after, rel=1e-10)
    assert gain(K, 0.1) == pytest.approx(0.5 * np.log1p(deviations(K, 0.1) ** 2 / 0.1).sum(), rel=1e-10)


def test_confidence_bounds_hold_everywhere_and_always():
    """Lemma 5 with λ = 1 + 2/T and the gain of the plays made: no failure in 40 functions, where δ = 0.1 allows 4."""
    T, norm_scale, noise, delta, failed = 40, 3.0, 0.5, 0.1, 0
    lam, X = 1 + 2 / T, grid(2, 12)
    K = squared_exponential(X, 0.3)
    for seed in range(40):
        rng = np.random.default_rng(seed)
        centres, heights = rng.integers(0, len(X), 5), norm_scale * rng.standard_normal(5)
        f = K[:, centres] @ heights
        norm = np.sqrt(heights @ K[np.ix_(centres, centres)] @ heights)
        plays = rng.integers(0, len(X), T)
        y = f[plays] + noise * rng.standard_normal(T)
        for t in range(T):
            seen = plays[:t]
            kx, A = K[:, seen], K[np.ix_(seen, seen)] + lam * np.eye(t)
            mean = kx @ np.linalg.solve(A, y[:t])
            variance = 1 - (kx * np.linalg.solve(A, kx.T).T).sum(axis=1)
            beta = norm + noise * np.sqrt(2 * (gain(K[np.ix_(seen, seen)], lam) + 1 + np.log(1 / delta)))
            if (np.abs(mean - f) > beta * np.sqrt(variance)).any():
                failed += 1
                break
    assert failed == 0


def test_the_sum_of_deviations_needs_a_noise_variance_of_about_one():
    """Lemma 6 fails for λ = 100 and plays that tell nothing of each other: their sum is T, the bound 0.14 T.

    With Lemma 5's λ = 1 + 2/T it holds for them and for plays that do.
    """
    T, lam = 200, 100
    for K in (np.eye(T), *(squared_exponential(np.random.default_rng(d).random((T, d)), 0.3) for d in (1, 3, 6))):
        assert deviations(K, 1 + 2 / T).sum() <= np.sqrt(4 * (T + 2) * gain(K, 1 + 2 / T))
    K = np.eye(T)
    assert deviations(K, lam).sum() == pytest.approx(T)
    assert np.sqrt(4 * (T + 2) * gain(K, lam)) == pytest.approx(28.4, abs=0.05)


def test_conditional_means_are_bounded_by_observations():
    """Lemma 7 for three processes on [0, b], at all times of 2,000 runs; the first stops as soon as it was lucky."""
    T, runs, delta = 200, 2000, 0.1
    rng = np.random.default_rng(0)
    u = rng.random((runs, T))

    def processes():
        unlucky = np.cumprod(np.column_stack([np.ones(runs), u[:, :-1] >= 0.05]), axis=1)  # nothing seen so far
        yield 1.0, 0.05 * unlucky, (u < 0.05) * unlucky
        yield 1.0, np.full((runs, T), 0.5), u
        yield 3.0, np.full((runs, T), 0.03), 3.0 * (u < 0.01)

    for b, means, X in processes():
        constant = 4 * b * np.log(1 / delta) + 8 * b * np.log(4 * b) + 1
        failed = (means.cumsum(axis=1) > 2 * X.cumsum(axis=1) + constant).any(axis=1)
        assert failed.sum() == 0  # of 2000; a share of delta is allowed
        without = (means.cumsum(axis=1) > 2 * X.cumsum(axis=1)).any(axis=1)
        assert without.mean() > delta  # the constant is needed


def test_cost_intervals_hold_all_at_once():
    """With probability 1 - 2/T² at least, also for costs of 0 or 1: four sets, 20 plays of each, 5000 runs."""
    T, means, runs = 20, np.array([0.1, 0.3, 0.5, 0.9]), 5000
    costs = np.random.default_rng(0).random((runs, 4, T)) < means[:, None]
    averages = costs.cumsum(axis=2) / np.arange(1, T + 1)
    outside = np.abs(averages - means[:, None]) > np.sqrt(2 * np.log(T) / np.arange(1, T + 1))
    assert outside.any(axis=(1, 2)).sum() == 0
    half = np.abs(averages - means[:, None]) > 0.5 * np.sqrt(2 * np.log(T) / np.arange(1, T + 1))
    assert half.any(axis=(1, 2)).mean() > 10 * 2 / T**2  # half the radius would not do


# -- slips ------------------------------------------------------------------------------------------------------------


def test_line_11_as_printed_leaves_the_exploration():
    """Index kτ + i - 1 with k <= m, seven sets of 45 plays each: it passes 315, and one of its 8 plays is of set i."""
    m, tau = 7, 45
    printed = {i: [k * tau + i for k in range(m + 1)] for i in range(1, m + 1)}  # play number t bounds with u_{t-1}
    assert max(map(max, printed.values())) == 322 > m * tau == 315
    own = {i: {k * m + i for k in range(tau)} for i in range(1, m + 1)}  # the plays of set i, in turn
    assert [(len(set(printed[i]) & own[i]), len(printed[i])) for i in printed] == [(1, 8)] * m
    assert all({k * m + i for k in range(m + 1)} <= own[i] for i in own), "with m for τ"


def lemma_2(alpha, gap, deviation):
    """Return whether a set ``gap`` below the acceptable ones is found out: with E[β σ] of ``deviation`` for both sets."""
    best = 1.0
    lower = best - 2 * deviation
    upper = (1 - alpha) * best - gap + 2 * deviation
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
