"""Arithmetic on the control-problem paper: its lemmas by simulation, its slips by example, with formulas of the tests' own.

Nothing here calls the package. These tests support rows of the register, and say nothing about the code.
"""

import itertools

import numpy as np
import pytest
from scipy.stats import multivariate_normal


def squared_exponential(X, lengthscale):
    return np.exp(-(((X[:, None] - X) / lengthscale) ** 2).sum(axis=2) / 2)


def grid(d, side):
    return np.stack(np.meshgrid(*[np.linspace(0, 1, side)] * d), axis=-1).reshape(-1, d)


def gain(K, noise=1.0):
    return 0.5 * np.linalg.slogdet(np.eye(len(K)) + K / noise)[1]


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
    """Index kτ + i - 1 with k <= m, seven sets of 45 plays each: it passes 315, and is one of the 45 plays of set i once."""
    m, tau = 7, 45
    printed = {i: [k * tau + i for k in range(m + 1)] for i in range(1, m + 1)}  # play number t bounds with u_{t-1}
    assert max(map(max, printed.values())) == 322 > m * tau == 315
    own = {i: {k * m + i for k in range(tau)} for i in range(1, m + 1)}  # the plays of set i, in turn
    assert [len(set(printed[i]) & own[i]) for i in printed] == [1] * m
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
