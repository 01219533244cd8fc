"""BOKE and its rivals: each next point against the paper's formula, computed naively and maximised on a grid."""

from functools import partial
from itertools import product

import numpy as np
import pytest
from own_functions import played
from refusals import refused
from scipy.optimize import minimize

import emsopt as eo
from emsopt.optimizers import BOKE, BOKEPlus
from emsopt.optimizers.boxes.boke import KRUCB, bandwidth, exploration_weight, log_upper_bound, profile
from emsopt.optimizers.boxes.gp_ucb import GPUCB, GPUCBFixed, upper_bound
from emsopt.surrogates.kernel_regression import condition

GRID = np.linspace(0, 1, 20_001)


def waves(x):
    """Return (3.5) of the paper, to be maximised."""
    return float(-np.exp(-1.4 * x[0]) * np.cos(3.5 * np.pi * x[0]))


def told(method, points=(0.1, 0.35, 0.6, 0.85), **options):
    """Return an optimizer of `waves` on [0, 1] that knows some points and has no first design left."""
    optimizer = method(waves, bounds=[(0, 1)], sense="max", initial=0, rng=0)
    vars(optimizer).update(options)
    for x in points:
        optimizer.tell([x], waves([x]))
    return optimizer


def scaled(optimizer):
    y = np.array(optimizer.values)
    return np.array(optimizer.told)[:, 0], (y - y.mean()) / y.std()


def naive(x, X, y, h):
    """Return regression (3.1) and density (3.9) at points (n, d) by plain sums."""
    K = np.exp(-((x[:, None] - X) ** 2).sum(axis=2) / (2 * h**2))
    return K @ y / K.sum(axis=1), K.sum(axis=1)


def test_constants_of_the_paper(claim):
    assert exploration_weight(10, 1.0, 0.1) == pytest.approx(2 * np.log(2 * np.pi**2 * 100 / 0.3))  # Theorem 4.13
    claim("boke", "Theorem 4.13 (beta_t)", 10)
    assert exploration_weight(10, 3.0, 0.1) == pytest.approx(9 * exploration_weight(10, 1.0, 0.1))
    assert [bandwidth(1, 3, 0.1), bandwidth(128, 3, 0.1)] == pytest.approx([0.3, 0.15])  # (5.1): 128^(-1/7) = 1/2


@pytest.mark.parametrize("kernel", ["gaussian", "epanechnikov", "uniform"])
@pytest.mark.parametrize("beta", [0.0, 1.0])
def test_the_acquisition_is_finite_wherever_density_underflows(kernel, beta):
    model = condition([[0.0], [0.5]], [1.0, 2.0], 1e-9, kernel=kernel)
    for part in log_upper_bound(model, beta, np.array([[0.0], [0.5], [0.25], [1.0]])):
        assert np.isfinite(part).all()


@pytest.mark.parametrize(("scale", "noise"), [(0.08, 0.5), (0.17, 0.05), (0.3, 0.5)])
def test_boke_asks_for_the_top_of_the_upper_bound(scale, noise, claim):
    optimizer = told(BOKE, scale=scale, noise_sd=noise)
    X, y = scaled(optimizer)
    m, W = naive(GRID[:, None], X[:, None], y, bandwidth(4, 1, scale))
    bound = m + np.sqrt(exploration_weight(4, noise) / W)
    assert np.corrcoef(bound, m)[0, 1] > 0.7
    assert np.corrcoef(bound, W)[0, 1] < -0.15
    claim("boke", "Figure 4", 0.7, -0.15)
    x = optimizer.ask()
    m, W = naive(x[None], X[:, None], y, bandwidth(4, 1, scale))
    assert m[0] + np.sqrt(exploration_weight(4, noise) / W[0]) >= bound.max() - 1e-6
    for place in ("Section 3.3 (3.12)-(3.13)", "Algorithm 2 (BOKE)"):
        claim("boke", place, 1e-6, len(GRID))


def test_the_bandwidth_follows_a_rule_or_is_fixed(claim):
    """(5.1) and (5.2) with t = 4 and d = 1."""
    for rule, h in (("scott", 0.05 * 4 ** (-1 / 5)), ("silverman", 0.05 * (4 * 3 / 4) ** (-1 / 5)), (0.13, 0.13)):
        assert told(BOKE, bandwidth=rule).surrogate().bandwidth[0] == pytest.approx(h, rel=1e-12)
    assert bandwidth(128, 3) == pytest.approx(bandwidth(1, 3) / 2, rel=1e-12)
    claim("boke", "Section 5 (5.1)", 1e-12, 128, bandwidth(1, 3) / 3)


@pytest.mark.parametrize("size", [1e-310, 1e300])
@pytest.mark.parametrize("method", ["boke", "kr-ucb", "gp-ucb-fixed"])
def test_the_unit_of_the_values_does_not_matter(method, size):
    """The squares of these values underflow or overflow."""
    options = {"bounds": [(0, 1)], "budget": 10, "rng": 0}
    points = [eo.maximize(lambda x, c=c: c * waves(x), method, **options).history["x"] for c in (1, size)]
    one, other = (np.array(x.tolist()) for x in points)
    np.testing.assert_allclose(one[:8], other[:8], atol=1e-3)


def test_boke_plus_asks_for_the_top_of_either(claim):
    options = {"scale": 0.12, "noise_sd": 0.5}
    explore, exploit, either = (told(BOKEPlus, exploring=share, **options) for share in (1.0, 1e-9, 0.25))
    X, y = scaled(exploit)
    m, W = naive(GRID[:, None], X[:, None], y, bandwidth(4, 1, 0.12))
    tops, asked = [explore.ask()[0], exploit.ask()[0]], []
    highest = [GRID[top.argmax()] for top in (m + np.sqrt(exploration_weight(4, 0.5) / W), m)]
    assert tops == pytest.approx(highest, abs=2e-4)
    assert abs(tops[0] - tops[1]) > 0.1
    for _ in range(200):
        asked.append(x := either.ask())
        either.withdraw(x)
    taken = [np.mean(np.isclose(np.ravel(asked), top, atol=2e-4)) for top in tops]
    assert sum(taken) == 1
    claim("boke", "Algorithm 3 (BOKE+)", 2e-4, taken[0], len(asked), 0.25)
    claim("boke", "Algorithm 3 (BOKE+)", np.sqrt(0.25 * 0.75 / len(asked)), column="error")


@pytest.mark.parametrize("method", [BOKE, KRUCB, GPUCBFixed, BOKEPlus])
def test_a_run_is_algorithm_1(method):
    """An initial design, then what ``ask`` gives for the data so far, until the budget T is spent; Gaussian kernels."""
    f = eo.problems.Problem("waves", lambda x: [waves(row) for row in x], [(0, 1)], "max")
    run = eo.maximize(f, method(f, initial=5, rng=0), budget=9)
    by_hand = played(method(f, initial=5, rng=0), 9)
    np.testing.assert_array_equal(np.ravel(run.history["x"].tolist()), np.ravel(by_hand.told))
    kernel = by_hand.process().kernel if method is GPUCBFixed else by_hand.kernel
    assert "SquaredExponential" in repr(kernel) or kernel == "gaussian"


def test_all_methods_of_the_paper_start_with_the_same_latin_hypercube():
    """Section 5."""
    f, methods = eo.problems.hartmann3(), ("boke", "boke+", "kr-ucb", "gp-ucb-fixed")
    designs = np.array([eo.minimize(f, m, budget=8, rng=3).history["x"].tolist() for m in methods])
    assert (designs == designs[0]).all()
    assert (np.sort(np.floor(8 * designs[0]), axis=0) == np.arange(8)[:, None]).all()
    assert [BOKE(f).initial, BOKE(eo.problems.forrester()).initial] == [2 * (3 + 1), 5]


@pytest.mark.parametrize("method", [BOKE, GPUCBFixed])
def test_which_tops_are_found_in_six_inputs(method, claim):
    """Section 5: L-BFGS-B from several starts, beside scipy's own from 20 random points; BOKE's beside corners, too."""
    f, found = eo.problems.hartmann6(), 0
    many = np.vstack([np.random.default_rng(2).random((10_000, 6)), list(product([0.0, 1.0], repeat=6))])
    for seed in range(5):
        optimizer = played(method(f, rng=seed), 30)
        if method is BOKE:
            bound = partial(log_upper_bound, optimizer.surrogate(), exploration_weight(30))
        else:
            bound = partial(upper_bound, optimizer.process(), optimizer.confidence)
        fall, starts = lambda x, bound=bound: -bound(x[None])[0][0], np.random.default_rng(1).random((20, 6))
        climbed = max(-minimize(fall, x, bounds=[(0, 1)] * 6).fun for x in starts)
        top = bound(optimizer.space.to_unit(optimizer.ask())[None])[0][0]
        found += top >= climbed - 1e-3
        if method is BOKE:
            values = np.exp(bound(many)[0])  # (3.12) itself, but for the smallest value
            assert np.exp(top) >= values.max() - 0.01 * np.ptp(values)
    assert found >= (2 if method is BOKE else 4)  # where a run goes may depend on the last digits
    claim("boke", "Section 5 (L-BFGS-B)", 20, 4, 5, 2, 1)


def test_without_noise_a_known_top_gives_way_to_the_emptiest_point():
    """Of 0, 1/2 and 1 the last is best, and the regression highest there: the emptiest points are 1/4 and 3/4."""
    optimizer = told(BOKE, points=(0.0, 0.5, 1.0), noise_sd=0)
    assert abs(optimizer.ask()[0] - 0.5) == pytest.approx(0.25, abs=1e-3)


def test_kr_ucb_steps_aside_from_the_best_known(claim):
    optimizer = told(KRUCB, scale=0.15, confidence=0.3, closeness=0.2)
    X, y = scaled(optimizer)
    h = bandwidth(4, 1, 0.15)
    m, W = naive(X[:, None], X[:, None], y, h)
    centre = X[np.argmax(m + 0.3 * np.sqrt(np.log(W.sum()) / W))]  # (A.4)
    inside = GRID[np.exp(-((GRID - centre) ** 2) / (2 * h**2)) > 0.2]
    emptiest = inside[naive(inside[:, None], X[:, None], y, h)[1].argmin()]  # (A.5)
    assert optimizer.ask()[0] == pytest.approx(emptiest, abs=2e-4)
    claim("boke", "Section A.2 (A.4)-(A.5)", 2e-4)


def test_kr_ucb_widens_as_t_to_the_alpha(claim):
    """With noise the number of different points stays at t^α, to one point."""
    optimizer = KRUCB(eo.problems.forrester(noise_sd=1.0, rng=0), rng=0, initial=3)
    optimizer.widening = 0.6
    played(optimizer, 79)
    for t in range(9, 80):
        assert t**0.6 - 1 <= len(np.unique(optimizer.told[:t], axis=0)) <= t**0.6 + 2
    claim("boke", "Algorithm 5 (widening)", 0.6, 1, 0.6, 2, 9, t)


@pytest.mark.parametrize("method", [GPUCBFixed, GPUCB])
def test_gp_ucb_asks_for_the_top_of_its_upper_bound(method, claim):
    optimizer = told(method, points=np.linspace(0.05, 0.95, 5), confidence=1.5)
    X, y = scaled(optimizer)
    process = optimizer.process()
    h, noise = np.max(process.kernel.length_scale), process.noise_ratio
    K = np.exp(-((X[:, None] - X) ** 2) / (2 * h**2)) + noise * np.eye(len(X))
    k = np.exp(-((GRID[:, None] - X) ** 2) / (2 * h**2))
    mean = k @ np.linalg.solve(K, y)  # (A.1)
    variance = process.amplitude * (1 - np.einsum("ij,ji->i", k, np.linalg.solve(K, k.T)))  # (A.2)
    bound = mean + 1.5 * np.sqrt(np.maximum(variance, 0))
    assert abs(GRID[mean.argmax()] - GRID[bound.argmax()]) > 1e-2  # the top of the mean is elsewhere
    assert optimizer.ask()[0] == pytest.approx(GRID[bound.argmax()], abs=2e-3)
    fewer = told(method, points=[0.2, 0.5, 0.6], confidence=1.5)
    assert (np.max(fewer.process().kernel.length_scale) == h) == (method is GPUCBFixed)
    claim("boke", "Section 5 (GP-UCB)", 2e-3)


def test_a_profile_is_the_regression_of_the_values():
    """In their own unit and direction."""
    optimizer = played(BOKE(eo.problems.forrester(), rng=0), 6)
    model, table = condition(optimizer.told, optimizer.values, optimizer.surrogate().bandwidth), profile(optimizer)
    np.testing.assert_allclose(table["mean"], model.predict(table.index.to_numpy()[:, None])[0], rtol=1e-9)


def test_bad_options_are_refused():
    f = eo.problems.forrester()
    refused("`scale` must be a number above 0", BOKE, f, scale=0)
    refused("`kernel` must be one of", BOKE, f, kernel="cosine")
    refused("`bandwidth` must be one of 'scott', 'silverman'", BOKE, f, bandwidth="rule")
    refused("`exploring` must be a probability", BOKEPlus, f, exploring=1.5)
