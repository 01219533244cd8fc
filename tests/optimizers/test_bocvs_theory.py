"""Theorems 1 and 3, Lemma 2 and Tay et al.'s regret: bounds as numbers, and the regret of runs beside them."""

import itertools

import numpy as np
import pandas as pd
import pytest

import emsopt as eo
from emsopt.optimizers.control import regret as bounds
from emsopt.optimizers.control.regret import with_regret
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
    assert high / low == pytest.approx(growth, abs=0.1)
    assert growth < min(2 ** (d + 1), 10)  # log T doubles, √T grows tenfold


@pytest.mark.parametrize(("d", "side", "growth", "rate"), [(1, 100, 3.4, 7.5), (2, 12, 5.6, 24.7)])
def test_matern_gain_stays_below_its_rate(d, side, growth, rate):
    """T^(d(d+1)/(2ν+d(d+1))) log T with ν = 5/2, from 100 to 10,000 plays."""
    bound = bounds.gain_bound(matern(grid(d, side), 0.5), 10_000)
    power = d * (d + 1) / (5 + d * (d + 1))
    low, high = (float(bound(T)) for T in (100, 10_000))
    assert high / low == pytest.approx(growth, abs=0.1)
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
    """Return the study of the bounds, after two seeds of its shortest runs were played again."""
    bound, table = bounds.gain_bound(made.instance()[0], 1000), eo.datasets.load_study("bocvs_bounds")
    for _, row in table.query("plays == 1000 and alpha == 0.1 and seed < 2").iterrows():
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
    tau = bounds.exploration_needed(0.5, 3, one, alpha=0.1, **known)
    value = [beta * (2 * np.sqrt(4 * (t + 2) * 2) + tail) / t for t in (tau - 1, tau)]
    assert value[1] <= 0.5 / (2 * 1.9) < value[0]
    assert bounds.exploration_needed(1e-9, 3, one, most=100, **known) is None


def test_quality_regret_stays_below_the_bound(stored):
    """(3), which is below the largest possible regret of all plays only at a million of them."""
    assert (stored["quality_regret"] <= stored["bound_3"]).all()
    assert (stored["bound_3"] < stored["worst_quality"]).equals(stored["plays"] >= 1_000_000)


def test_quality_regret_stays_below_theorem_3(stored):
    """(5), lower than (3), is below the regret of the worst plays from 100,000 plays on, and not up to 10,000."""
    assert (stored["quality_regret"] <= stored["bound_5"]).all()
    assert (stored["bound_5"] < stored["bound_3"]).all()
    telling = stored["bound_5"] < stored["worst_quality"]
    assert telling[stored["plays"] >= 100_000].all()
    assert not telling[stored["plays"] <= 10_000].any()


def test_cost_regret_stays_below_the_bound(made, stored):
    """(4), with costs of 0 or 1; the bound is below the regret of the worst plays only from 10,000 plays on."""
    part = stored[stored["alpha"] == 0.1]
    assert (part["cost_regret"] <= part["bound_4"]).all()
    assert (part["bound_4"] < part["worst_cost"]).equals(part["plays"] >= 10_000)
    assert made.cost_bound(700, 45, 7) > 100  # more than the whole budget of the paper's experiments


def test_both_bounds_hold_together(stored):
    """At most 3δ + 2/T² = 0.3 of the runs may break one of them; none does."""
    broken = (stored["quality_regret"] > stored["bound_3"]) | (stored["cost_regret"] > stored["bound_4"])
    assert len(stored) >= 30
    assert not broken.any()


def test_regret_per_play_falls(stored):
    """Both regrets grow more slowly than T: α = 0 for the quality, where no loss is tolerated, and 0.1 for the cost."""
    for alpha, name in ((0.0, "quality_regret"), (0.1, "cost_regret")):
        part = stored[stored["alpha"] == alpha]
        each = (part[name] / part["plays"]).groupby(part["plays"]).mean()
        assert (np.diff(each) < 0).all()
        assert each.iloc[-1] < each.iloc[0] / 3


def test_plays_settle_on_the_cheapest_acceptable_set(stored):
    long = stored[stored["plays"] >= 30_000]
    assert long["on_target"].min() > 0.95


def test_phase_1_stays_below_the_proofs_bound(made):
    """Plays of all sets but the best lose 2 (m - 1) τ M at most in the exploration: 400 here, and they lose 48."""
    _, features, hill, weights, costs = made.instance()
    each, M = 100, hill.max()
    betas, rng = np.full(3 * each, 1.1), np.random.default_rng(0)
    sets, reached, _ = made.algorithm(features, hill, weights, costs, betas, each, 0.1, 1.0, made.NOISE, rng)
    lost = (0.9 * M - reached)[sets != 2].sum()
    assert (sets != 2).sum() == 2 * each
    assert lost == pytest.approx(48, abs=2)
    assert 2 * (3 - 1) * each * M == pytest.approx(400)


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


def test_feasible_sets_are_the_acceptable_ones_after_enough_exploration(made):
    """Lemma 2 on the hill: exact in every later play from fifty plays per set on, in a part of them with fewer.

    Two seeds of the study are played again up to 400 plays.
    """
    K, features, hill, weights, costs = made.instance()
    known = {"norm": made.NORM, "noise_sd": made.NOISE, "delta": made.DELTA}
    betas = bounds.theorem_beta(np.arange(1, 401), bounds.gain_bound(K, 400), **known)
    for each, seed in itertools.product((10, 50), range(2)):
        rng = np.random.default_rng(seed)
        exact = made.algorithm(features, hill, weights, costs, betas, each, 0.1, 1 + 2 / 20_000, made.NOISE, rng)[2]
        assert exact[3 * each :].all() == (each == 50)
    table = eo.datasets.load_study("bocvs_exploration")
    exact = table.groupby("each")["exact"].min()
    assert (exact[exact.index >= 50] == 1).all()
    assert (exact[exact.index <= 20] < 1).all()


def test_lemma_2s_tau_by_gap(made):
    """On the hill the rule asks for hundreds of thousands of plays per set where fifty do; for fewer if the gap is larger.

    As printed it asks for a fifth of the mended rule.
    """
    K, _, hill, weights, _ = made.instance()
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
    assert exact[exact == 1].index.min() == 50


# -- Tay et al.'s regret --------------------------------------------------------------------------------------------


def test_weighted_regret_is_at_most_quality_regret():
    """At α = 0, as costs are at most 1 and no play is better than the best: so the one is sublinear if the other is."""
    problem = eo.problems.hill_control()
    history = eo.optimizers.bocvs(problem, budget=6, rng=0, alpha=0.0).history
    assert (history["weighted_regret"] <= history["quality_regret"] + 1e-9).all()
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
