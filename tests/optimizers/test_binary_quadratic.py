"""Binary quadratic programs against brute force, each other and the paper's Example 7."""

import itertools
import time

import numpy as np
import pytest
from refusals import refused

from emsopt.optimizers.deployments.binary_quadratic import anneal, minimize_quadratic, minimum_cut, quadratic_value


def instance(rng, n, density=1.0):
    A = np.triu(rng.standard_normal((n, n)) * (rng.random((n, n)) < density), 1)
    return A + A.T, 2 * rng.standard_normal(n)


def brute(A, b, units, floors, capacities):
    ranges = [range(low, high + 1) for low, high in zip(floors, capacities, strict=True)]
    return min(quadratic_value(A, b, np.array(x)) for x in itertools.product(*ranges) if sum(x) == units)


def points(n):
    return np.array(list(itertools.product([0, 1], repeat=n)))


def quadratic(A):
    """Return xᵀA x at all points."""
    return np.einsum("ki,ij,kj->k", points(len(A)), A, points(len(A)))


def test_example_7_of_the_paper():
    A, b = -np.array([[0.0, 2, 3], [2, 0, 1], [3, 1, 0]]), np.array([9.0, 8, -7])
    assert min(quadratic_value(A, b, x) for x in points(3)) == -7
    x, bound = minimum_cut(A, b)
    assert x.tolist() == minimum_cut(A, b - A.sum(axis=1))[0].tolist() == [0, 0, 1]  # with capacities as printed too
    assert (quadratic_value(A, b, x), bound) == pytest.approx((-7, -7), abs=1e-6)


def test_cut_is_the_minimum_of_300_submodular_functions(claim):
    """Without the linear term of A (as printed) it misses more than half of them: so the check can fail."""
    rng = np.random.default_rng(1)
    wrong = printed_wrong = 0
    for _ in range(300):
        n = int(rng.integers(3, 10))
        A, b = instance(rng, n, 0.6)
        A, b = -np.abs(A), 1.5 * b
        values = quadratic(A) + points(n) @ b
        x, bound = minimum_cut(A, b)
        wrong += not values.min() - 1e-5 < bound <= values.min() + 1e-9
        wrong += quadratic_value(A, b, x) > values.min() + 1e-5
        printed, _ = minimum_cut(A, b - A.sum(axis=1))
        printed_wrong += quadratic_value(A, b, printed) > values.min() + 1e-5
    claim("server locations", "Algorithm 1, graph", printed_wrong, 300, wrong, 300)
    claim("server locations, version one", "Section 4.2, after (11)", printed_wrong, 300, wrong, 300)


@pytest.mark.parametrize("method", ["swap", "annealing", "relaxation"])
def test_floors_and_capacities_against_brute_force(method):
    rng, missed = np.random.default_rng(2), 0
    floors, capacities = np.array([1, 0, 0, 0, 0, 0]), np.array([1, 2, 1, 0, 3, 1])
    for units in (*[4] * 12, 1, 8):  # of 1 and 8 nothing can move
        A, b = instance(rng, 6)
        A += np.diag(rng.standard_normal(6))
        found = minimize_quadratic(A, b, units, floors=floors, capacities=capacities, method=method, rng=rng)
        best = brute(A, b, units, floors, capacities)
        assert found.x.sum() == units
        assert ((floors <= found.x) & (found.x <= capacities)).all()
        assert found.value == pytest.approx(quadratic_value(A, b, found.x))
        assert found.lower_bound <= best + 1e-7
        missed += found.value > best + 1e-9
    assert missed <= (2 if method == "relaxation" else 0)  # Algorithm 1 is a heuristic


@pytest.mark.parametrize("density", [0.1, 1.0])
def test_both_searches_reach_what_a_long_one_finds(density):
    """Swaps from a few starts, and annealing, which shares no code with the swaps of many long starts."""
    rng = np.random.default_rng(4)
    for n in (20, 40):
        A, b = instance(rng, n, density)
        long = minimize_quadratic(A, b, 2 * n // 5, starts=100, steps=10 * n, rng=9).value
        for method in ("swap", "annealing"):
            found = minimize_quadratic(A, b, 2 * n // 5, method=method, rng=0).value
            assert found == pytest.approx(long, abs=1e-9)


def test_a_walk_climbs_by_metropolis():
    """Two states: taken uphill if the chance drawn is below exp(-Δ / T), T the mean change at the first step."""
    for chance, at in ((0.36, 1), (0.37, 0)):  # exp(-1) = 0.368
        filled, empty, chances = np.array([0]), np.array([1]), np.array([[0.0, 0.0, chance]])
        best = anneal(np.zeros((2, 2)), np.array([0.0, 1.0]), np.zeros(2, int), filled, empty, chances)
        assert (filled.tolist(), best.tolist()) == ([at], [1, 0])  # the best met is returned, not the last


def test_algorithm_1_closes_its_gap_on_a_submodular_function_and_reports_it_otherwise():
    A, b = instance(np.random.default_rng(5), 12, 0.5)
    closed = minimize_quadratic(-np.abs(A), b, 12, method="relaxation")
    assert closed.gap == pytest.approx(0, abs=1e-6)
    assert closed.value == pytest.approx(brute(-np.abs(A), b, 12, [0] * 12, [1] * 12))
    found = minimize_quadratic(A, b, 5, method="relaxation")
    assert found.lower_bound <= brute(A, b, 5, [0] * 12, [1] * 12) <= found.value + 1e-9
    # The bound rises above the trivial one, in which each unit takes all negative pairs.
    assert found.lower_bound > np.sort(b + np.minimum(A, 0).sum(axis=1))[:5].sum()


def test_impossible_counts_are_refused():
    limits = {"floors": [5, 0, 0], "capacities": [9, 0, 0]}
    message = r"`units` must be 5 \(sum of floors\) to 9 \(of capacities\); got 3"
    refused(message, minimize_quadratic, np.zeros((3, 3)), np.zeros(3), 3, **limits)
    refused("no positive entry", minimum_cut, np.ones((2, 2)), np.zeros(2))


def test_the_linear_bound_9_is_never_above_the_positive_part():
    """(9), for weights Γ in [0, 1] and all x; with a weight of 1.5 it fails."""
    rng, every = np.random.default_rng(6), points(6)
    for _ in range(50):
        plus = np.maximum(instance(rng, 6)[0], 0)
        gamma = rng.random((6, 6))
        for weights, holds in (((gamma + gamma.T) / 2, True), (np.full((6, 6), 1.5), False)):
            relaxed = plus * weights
            linear = 2 * every @ relaxed.sum(axis=1) - relaxed.sum()
            assert (linear <= quadratic(plus) + 1e-12).all() == holds


def printed_steps(A, b, eta, steps):
    """Algorithm 1 as printed, lines 5 to 11, with the minimum for the cut: Γ after each step, from all ones."""
    plus, minus, gamma, every = np.maximum(A, 0), np.minimum(A, 0), np.ones_like(A), points(len(b))
    values = quadratic(minus)
    for _ in range(steps):
        relaxed = plus * gamma
        linear = b + 2 * relaxed.sum(axis=1)
        x = every[(values + every @ linear).argmin()]
        loss = quadratic_value(A, b, x) - (x @ minus @ x + linear @ x - relaxed.sum())
        gamma = np.clip(gamma + 2 * eta * loss * plus * (x[:, None] + x - 1), 0, 1)  # minus η times the loss's gradient
        yield gamma


def test_whether_gamma_settles_as_algorithm_1_says():
    """|Γ(k) - Γ(k - 1)| < 1e-6 within 150 steps: on few of 24 random programs, whatever the step length."""
    for eta in (0.001, 0.01, 0.1):
        rng, settled = np.random.default_rng(0), 0
        for k in range(24):
            gammas = printed_steps(*instance(rng, (8, 12)[k % 2]), eta, 150)
            settled += any(np.linalg.norm(g - h) < 1e-6 for g, h in itertools.pairwise(gammas))
        assert settled <= 8


def test_a_multiplier_alone_seldom_yields_exactly_p_units(claim):
    """Five of twelve places: with Γ = 1, bisection on the price of a unit finds a cut of five in a third of 60 programs."""
    rng, every, hits = np.random.default_rng(1), points(12), 0
    for _ in range(60):
        A, b = instance(rng, 12)
        values = quadratic(np.minimum(A, 0)) + every @ (b + 2 * np.maximum(A, 0).sum(axis=1))
        low, high, taken = -60.0, 60.0, 12
        for _ in range(50):
            price = (low + high) / 2
            taken = every[(values + price * every.sum(axis=1)).argmin()].sum()
            if taken == 5:
                break
            low, high = (price, high) if taken > 5 else (low, price)
        hits += taken == 5
        assert minimize_quadratic(A, b, 5, method="relaxation").x.sum() == 5
    claim("server locations", "Algorithm 1, cardinality", hits, 60)


def test_a_semidefinite_relaxation_can_hold_the_number_of_units():
    """Section 4.3: with X in place of x xᵀ, trace X = p and 1ᵀX1 = p² are linear, and hold for p units only."""
    for x in points(7):
        X = np.outer(x, x)
        assert ((np.trace(X), X.sum()) == (3, 9)) == (x.sum() == 3)
    one, other = np.array([1, 1, 1, 0, 0, 0, 0]), np.array([0, 0, 0, 0, 1, 1, 1])
    fractional = 0.5 * (np.outer(one, one) + np.outer(other, other))
    assert (np.trace(fractional), fractional.sum()) == (3, 9)  # a mixture, which rounding has to resolve
    assert np.linalg.eigvalsh(fractional)[0] > -1e-12


def semidefinite(A, b, p, steps=1500):
    """Return x and a semidefinite X in place of x xᵀ, with diag X = x, Σ x = p and X1 = p x, by alternating projections."""
    m, unit, scale = len(b) + 1, np.eye(len(b) + 1), 0.2 * np.linalg.norm(A)
    C = np.block([[np.zeros((1, 1)), b[None] / 2], [b[:, None] / 2, A]])
    pairs = (unit[:, None, :, None] * unit[None, :, None] + unit[None, :, :, None] * unit[:, None, None]) / 2
    K = [pairs[0, 0], pairs[0, 1:].sum(axis=0)]
    K += [pairs[i, i] - pairs[0, i] for i in range(1, m)]
    K += [pairs[i, 1:].sum(axis=0) - p * pairs[0, i] for i in range(1, m)]
    K, right = np.reshape(K, (len(K), -1)), np.r_[1, p, np.zeros(len(K) - 2)]
    inverse, Z, U = np.linalg.pinv(K), np.zeros((m, m)), np.zeros((m, m))
    for _ in range(steps):
        V = (Z - U - C / scale).ravel()
        Y = (V - inverse @ (K @ V - right)).reshape(m, m)
        size, Q = np.linalg.eigh(Y + U)
        Z = (Q * np.maximum(size, 0)) @ Q.T
        U = U + Y - Z
    assert np.abs(Y - Z).max() < 1e-6
    return Y[0, 1:], Y[1:, 1:]


def test_rounding_a_semidefinite_relaxation():
    """Section 4.3: normal draws around the relaxed solution, rounded at one half, or to their five largest entries."""
    rng, share, found = np.random.default_rng(0), [], []
    every = points(12)[points(12).sum(axis=1) == 5]
    for _ in range(12):
        A, b = instance(rng, 12)
        values = np.array([quadratic_value(A, b, x) for x in every])
        x, X = semidefinite(A, b, 5)
        assert (A * X).sum() + b @ x <= values.min() + 1e-6
        draws = rng.multivariate_normal(x, X - np.outer(x, x), 40, check_valid="ignore")
        share.append(((draws > 0.5).sum(axis=1) == 5).mean())
        rounded = np.array([quadratic_value(A, b, np.argsort(np.argsort(-row)) < 5) for row in draws]) - values.min()
        found.append([rounded.min(), rounded.mean()] / (values.mean() - values.min()))
    best, above = np.transpose(found)
    assert 0.4 < np.mean(share) < 0.7
    assert min(share) < 0.3
    assert best.max() < 0.02
    assert (best < 1e-9).sum() >= 9
    assert 0.04 < above.mean() < 0.12


def test_swaps_end_no_higher_than_algorithm_1_and_often_lower():
    """Twelve dense programs of 20 places and 8 units, with the default settings of both."""
    rng, lower, seconds = np.random.default_rng(8), 0, []
    for _ in range(12):
        A, b = instance(rng, 20)
        swaps, start = minimize_quadratic(A, b, 8, rng=0), time.process_time()
        relaxed = minimize_quadratic(A, b, 8, method="relaxation")
        seconds.append(time.process_time() - start)
        assert relaxed.lower_bound <= swaps.value <= relaxed.value + 1e-9
        lower += swaps.value < relaxed.value - 1e-9
    assert lower >= 3
    assert np.median(seconds) < 1  # measured: 0.1
