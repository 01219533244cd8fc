"""(3.1) to (3.9) and (5.1) of "Bayesian Optimization by Kernel Regression and Density-based Exploration"."""

import numpy as np
import pytest
from differences import slopes_of
from refusals import refused
from scipy.stats import gaussian_kde
from sklearn.gaussian_process.kernels import RBF
from sklearn.neighbors import KernelDensity

from emsopt.problems import decaying_wave
from emsopt.surrogates import gaussian_process, kernel_regression
from emsopt.surrogates.kernel_regression import KERNELS, condition, log_normalizer, scott, silverman

BY_THE_BOOK = {
    "gaussian": lambda u2: np.exp(-u2 / 2),
    "epanechnikov": lambda u2: np.maximum(1 - u2, 0),
    "uniform": lambda u2: (u2 <= 1).astype(float),
}


def data(t=40, d=3, rng=0):
    rng = np.random.default_rng(rng)
    X = rng.uniform(size=(t, d))
    return X, 100 + np.sin(5 * X[:, 0]) + X @ np.arange(d) + 0.1 * rng.normal(size=t)


def left_out(X, y, h):
    """Mean and log density at each point without itself."""
    squared = ((X[:, None] - X) ** 2).sum(axis=2)
    np.fill_diagonal(squared, np.inf)
    return kernel_regression._leave_one_out_predictions(squared, y, h)


def naive(kernel, x, X, y, h):
    """Mean and density as the paper writes them."""
    weights = BY_THE_BOOK[kernel]((((x[:, None] - X) / h) ** 2).sum(axis=2))
    return weights @ y / weights.sum(axis=1), weights.sum(axis=1)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("h", [0.5, [0.6, 0.9, 3.0]])
def test_regression_and_density_equal_the_naive_sums(kernel, h, claim):
    X, y = data()
    x = np.random.default_rng(1).uniform(size=(50, 3))
    mean, log_density = condition(X, y, h, kernel=kernel).predict(x)
    expected, density = naive(kernel, x, X, y, h)
    assert (density > 0).all()
    np.testing.assert_allclose(mean, expected, rtol=1e-12)
    np.testing.assert_allclose(mean - 100, expected - 100, rtol=1e-10)
    np.testing.assert_allclose(log_density, np.log(density), rtol=1e-10, atol=1e-12)
    claim("boke", "Section 3.1 (3.1)-(3.4)", 1e-10)


@pytest.mark.parametrize(("kernel", "h"), [("gaussian", [0.5, 0.8, 2.0]), ("epanechnikov", 0.7)])
def test_slopes_equal_finite_differences(kernel, h):
    X, y = data()
    model, x = condition(X, y, h, kernel=kernel), np.random.default_rng(2).uniform(size=(20, 3))
    for k, slopes in enumerate(model.predict_with_slopes(x)[2:]):
        numeric = slopes_of(lambda x, k=k: model.predict(x)[k], x, 1e-5)
        np.testing.assert_allclose(slopes, numeric, rtol=1e-6, atol=1e-6)
    assert not np.any(condition(X, y, 0.6, kernel="uniform").predict_with_slopes(X)[2:])


@pytest.mark.parametrize("kernel", KERNELS)
def test_narrow_bandwidth_gives_the_nearest_neighbour(kernel, claim):
    """Proposition 3.1, with ties."""
    claim("boke", "Proposition 3.1", 1e-14, 1e-5, 1e-12, 1e-100)
    X, y = data()
    x = np.random.default_rng(3).uniform(size=(30, 3))
    nearest = y[((x[:, None] - X) ** 2).sum(axis=2).argmin(axis=1)]
    for h in (1e-5, 1e-12, 1e-100):
        model = condition(X, y, h, kernel=kernel)
        np.testing.assert_allclose(model.predict(x)[0], nearest, rtol=1e-14)
        np.testing.assert_allclose(model.predict(X)[0], y, rtol=1e-14)
    tied = condition([[0.0], [1.0], [1.0], [3.0]], [1.0, 2.0, 6.0, 9.0], 1e-6, kernel=kernel)
    np.testing.assert_allclose(tied.predict([[0.5], [1.0], [2.0]])[0], [3, 4, 17 / 3], rtol=1e-14)


@pytest.mark.parametrize("order", [0.5, 1.0, 1.5])
def test_narrow_power_exponential_kernels_give_the_nearest_neighbour(order, claim):
    """Section 3.1: exp(-uᵖ), with the exponential kernel (p = 1) and the Laplacian one, whose distance is of order 1."""
    X, y = data(10)
    x = np.random.default_rng(5).uniform(size=(30, 3))
    for norm in (1, 2):
        apart = np.linalg.norm(x[:, None] - X, ord=norm, axis=2)
        u = (apart / 1e-12) ** order
        weights = np.exp(-(u - u.min(axis=1, keepdims=True)))
        np.testing.assert_allclose(weights @ y / weights.sum(axis=1), y[apart.argmin(axis=1)], rtol=1e-12)
    claim("boke", "Section 3.1 (power exponential kernels)", 1e-12, 1e-12, order)


def test_narrow_bandwidth_counts_the_repeats(claim):
    """Section 3.2: the density at a point becomes the number of its evaluations."""
    X = np.repeat([[0.1], [0.5], [0.9]], [1, 4, 2], axis=0)
    for h in (1e-3, 1e-9, 1e-100):
        log_density = condition(X, np.zeros(7), h).predict([[0.1], [0.5], [0.9], [0.3]])[1]
        np.testing.assert_allclose(np.exp(log_density), [1, 4, 2, 0], rtol=1e-12)
    claim("boke", "Section 3.2 (limit of W)", 1, 4, 2, 0, 1e-3, 1e-100)


def draws_of_the_wave(seeds):
    """Yield ten noisy values of the example (3.5) for each seed, with the grid and the true values there."""
    f, x = decaying_wave(), np.linspace(0, 1, 101)[:, None]
    for seed in seeds:
        rng = np.random.default_rng(seed)
        X = (np.arange(10) + rng.random(10))[:, None] / 10
        yield X, f(X) + 0.1 * rng.standard_normal(10), x, f(x)


def test_ten_noisy_values_show_the_wave_unless_the_bandwidth_is_far_too_wide(claim):
    """Figure 1: errors of 30 draws with the cross-validated bandwidth, a tenth of it and ten times it."""
    errors, grid = [], np.geomspace(0.01, 3, 100)
    for X, y, x, truth in draws_of_the_wave(range(30)):
        h = kernel_regression.leave_one_out_bandwidth(X, y)
        found, *others = (np.mean((left_out(X, y, k)[0] - y) ** 2) for k in (h, *grid))
        assert found < 1.02 * min(others)
        errors.append([np.sqrt(np.mean((condition(X, y, k * h).predict(x)[0] - truth) ** 2)) for k in (1, 0.1, 10)])
    found, of_the_mean = np.mean(errors, axis=0), truth.std()
    assert found[0] < found[1] < 0.5 * of_the_mean
    assert found[2] == pytest.approx(of_the_mean, rel=0.02)
    claim("boke", "Figure 1", *found, of_the_mean)
    claim("boke", "Figure 1", len(errors), column="error")
    claim("boke", "Figure 1 (middle)", 2)


def test_a_narrow_bandwidth_harms_a_regression_less_than_a_process_but_a_wide_one_as_much(claim):
    """Section 3.1 on the example (3.5): errors relative to that with the best bandwidth, means of 20 sets of ten values."""
    widths, errors = np.geomspace(1e-3, 10, 41), []
    models = (condition, lambda X, y, h: gaussian_process.condition(RBF(h), X, y, noise_ratio=0.05, amplitude=1.0))
    error = lambda model, h, X, y, x, truth: np.sqrt(np.mean((model(X, y, h).predict(x)[0] - truth) ** 2))
    for draw in draws_of_the_wave(range(20)):
        best = np.array([widths[np.argmin([error(model, h, *draw) for h in widths])] for model in models])
        errors.append([[error(*pair, *draw) for pair in zip(models, k * best, strict=True)] for k in (1, 0.1, 10)])
    truth = draw[3]
    at_best, narrow, wide = np.mean(errors, axis=0)
    assert min(wide) > 0.95 * truth.std()  # the error of the function's mean
    assert at_best[1] < at_best[0] < 0.16
    ratios = narrow / at_best, wide / at_best
    assert ratios[0][0] < ratios[0][1] / 2
    claim("boke", "Section 3.1 (robustness)", *ratios[0], *ratios[1])
    claim("boke", "Section 3.1 (robustness)", len(errors), column="error")


def test_likelihood_bandwidth_shows_both_peaks_of_the_mixture(claim):
    """Figure 2: in each of 100 sets of thirty draws, and a third peak in fewer than half of them."""
    x, more, spikes = np.linspace(0, 1, 501), 0, []

    def peaks(X, h):
        w = np.exp(condition(X, np.zeros(30), h).predict(x[:, None])[1])
        return x[1:-1][(w[1:-1] > w[:-2]) & (w[1:-1] >= w[2:])]

    for seed in range(100):
        rng = np.random.default_rng(seed)
        X = np.where(rng.random(30) < 0.7, rng.beta(3, 8, 30), rng.beta(10, 2, 30))[:, None]
        h = kernel_regression.likelihood_bandwidth(X)
        found = peaks(X, h)
        assert found.min() < 0.55 < found.max()
        more += len(found) > 2
        spikes.append(len(peaks(X, h / 8)))
    assert abs(more - 38) <= 3  # of 100; a flat third peak may depend on the last digits
    claim("boke", "Figure 2 (two peaks)", 100, 100, 38)
    claim("boke", "Figure 2", min(spikes), len(spikes))


def test_far_from_all_data_everything_is_finite():
    """The naive sums are 0/0 there; the log density falls as the square of the distance."""
    (X, y), x = data(), np.array([[1e4, 0, 0], [-1e8, 1e8, 0], [1e30, 0, 0]])
    for kernel in KERNELS:
        mean, log_density, *slopes = condition(X, y, 0.1, kernel=kernel).predict_with_slopes(x)
        assert ((mean >= y.min()) & (mean <= y.max())).all()
        if kernel == "gaussian":
            assert np.isfinite(slopes).all()
            np.testing.assert_allclose(log_density, -((x**2).sum(axis=1)) / 0.02, rtol=1e-3)
        else:
            assert mean[0] == pytest.approx(y[X[:, 0].argmax()], rel=1e-14)
            assert (log_density == -np.inf).all()
            assert not np.any(slopes)


def test_normalised_density_equals_scikit_learns():
    for kernel, other, d in zip(BY_THE_BOOK, ("gaussian", "epanechnikov", "tophat"), (4, 1, 4), strict=True):
        (X, y), h = data(d=d), np.full(d, 0.8)
        ours = condition(X, y, h, kernel=kernel).predict(X + 0.05)[1] - log_normalizer(kernel, h) - np.log(len(y))
        theirs = KernelDensity(kernel=other, bandwidth=0.8).fit(X).score_samples(X + 0.05)
        np.testing.assert_allclose(ours, theirs, rtol=1e-9)


def test_rules_of_thumb_are_scipys_factors(claim):
    for t, d in [(1, 1), (20, 2), (60, 6)]:
        factors = gaussian_kde(np.random.default_rng(4).normal(size=(d, max(t, d + 2))))
        t = factors.n
        assert scott(t, d, 1.0) == pytest.approx(factors.scotts_factor(), rel=1e-14)
        assert silverman(t, d, 1.0) == pytest.approx(factors.silverman_factor(), rel=1e-14)
    ratios = np.array([[silverman(t, d, 1.0) / scott(t, d, 1.0) for t in (2, 50, 1000)] for d in range(1, 21)])
    assert np.ptp(ratios, axis=1).max() < 1e-12  # the two rules differ by a factor
    claim("boke", "Section 5 (5.2)", ratios.min(), ratios.max(), 20)


def test_leave_one_out_leaves_one_out():
    X, y = data(20)
    for i, got in enumerate(zip(*left_out(X, y, 0.6), strict=True)):
        keep = np.arange(20) != i
        assert got == pytest.approx(np.ravel(condition(X[keep], y[keep], 0.6).predict(X[i : i + 1])), rel=1e-10)


def test_what_is_wrong_is_named():
    X, y = data(5, 2)
    refused(r"`bandwidth` must be at most 1e\+100", condition, X, y, 1e200)
    refused("`kernel` must be one of", condition, X, y, 0.3, kernel="triangle")
    refused("`x` must be finite, with one point of 2", condition(X, y, 0.3).predict, [[0.1, 0.2], [np.nan, 0]])
    refused("at least two distinct points", kernel_regression.leave_one_out_bandwidth, [[1.0], [1.0]], [1.0, 2.0])
