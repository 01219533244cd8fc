"""The horseshoe sampler: closed-form conditionals, Geweke's joint test, the rate of its error, the two solvers."""

import numpy as np
import pytest

from emsopt.surrogates import horseshoe
from emsopt.surrogates.horseshoe import Horseshoe, _draw_bhattacharya, _draw_cholesky, sample, standardize


@pytest.mark.parametrize("draw", [_draw_bhattacharya, _draw_cholesky])
@pytest.mark.parametrize(("n", "D"), [(4, 7), (8, 5)])
def test_coefficients_have_mean_and_covariance_26(draw, n, D):
    rng = np.random.default_rng(0)
    X, y, prior, noise = rng.standard_normal((n, D)), rng.standard_normal(n), rng.gamma(1.0, 1.0, D), 0.4
    draws = np.array([draw(X, y, prior, noise, rng) for _ in range(6_000)])
    M = np.linalg.inv(X.T @ X + np.diag(1 / prior))
    sd = np.sqrt(noise * np.diag(M))
    assert np.abs((draws.mean(axis=0) - M @ X.T @ y) / (sd / np.sqrt(6_000))).max() < 4.5
    assert np.abs(np.cov(draws.T) / np.outer(sd, sd) - noise * M / np.outer(sd, sd)).max() < 0.08


def bounded(coef, noise, local, overall, y):
    """Moments that exist whatever the tails: half-Cauchy scales have no mean."""
    logs = np.log([noise, local[0], overall])
    products = [y[0] * coef[0], y @ y, np.log(local[1]) * np.log(overall)]
    return [np.tanh(coef[0]), np.abs(np.tanh(coef[1])), *logs, *logs**2, *np.tanh(products)]


@pytest.mark.parametrize(("n", "D", "counted"), [(2, 3, 2), (3, 2, 3), (2, 3, 17)])
def test_geweke_joint_distribution(n, D, counted, monkeypatch):
    """Geweke (2004): what prior and likelihood give must stay so when the sampler alternates with new observations.

    Many short chains replace one long chain: scales with half-Cauchy tails wander too slowly. (26) prints the shape
    (N + D) / 2 for σ²; with N = 17, the candidate sites, in place of n observations the test fails, as it should.
    """
    rng = np.random.default_rng(11)
    X, prior = rng.standard_normal((n, D)), (3.0, 2.0)
    monkeypatch.setattr(horseshoe, "NOISE_PRIOR", (prior[0] + (counted - n) / 2, prior[1]))
    inverse_gamma = lambda scale: scale / rng.standard_gamma(0.5, np.shape(scale))
    observe = lambda coef, noise: X @ coef + np.sqrt(noise) * rng.standard_normal(n)

    def from_prior():
        noise = prior[1] / rng.standard_gamma(prior[0])
        local_aux, overall_aux = inverse_gamma(np.ones(D)), inverse_gamma(1.0)
        local, overall = inverse_gamma(1 / local_aux), inverse_gamma(1 / overall_aux)
        coef = np.sqrt(local * overall * noise) * rng.standard_normal(D)
        return Horseshoe(coef, noise, local, local_aux, overall, overall_aux)

    before, after = [], []
    for _ in range(2000 if counted == n else 300):  # 300 chains show a wrong shape
        state = from_prior()
        y = observe(state.coef, state.noise_variance)
        before.append(bounded(state.coef, state.noise_variance, state.local, state.overall, y))
        for _ in range(5):
            state = sample(state, X, y, 1, rng=rng)
            y = observe(state.coef, state.noise_variance)
        after.append(bounded(state.coef, state.noise_variance, state.local, state.overall, y))
    moved = np.array(after) - np.array(before)
    z = moved.mean(axis=0) / (moved.std(axis=0) / np.sqrt(len(moved)))
    assert (np.abs(z).max() < 3.5) == (counted == n)


def test_standardized_model_predicts_as_the_model_on_the_data_given():
    rng = np.random.default_rng(3)
    X, y = np.hstack([rng.integers(0, 2, (20, 4)), np.ones((20, 1))]), 50 + rng.standard_normal(20)
    data, coef = standardize(X, y), rng.standard_normal(5)
    assert data.X.std(axis=0) == pytest.approx([1, 1, 1, 1, 0])
    assert (data.y.mean(), data.y.std()) == pytest.approx((0, 1))
    assert (X - X.mean(axis=0)) @ data.unscaled_coefficients(coef) == pytest.approx(data.scale * (data.X @ coef))


@pytest.mark.parametrize("draw", [_draw_bhattacharya, _draw_cholesky])
def test_values_without_noise_and_repeated_features_leave_the_chain_finite(draw, monkeypatch):
    for name in ("_draw_bhattacharya", "_draw_cholesky"):
        monkeypatch.setattr(horseshoe, name, draw)
    rng = np.random.default_rng(6)
    X = np.repeat(rng.integers(0, 2, (15, 6)).astype(float), 3, axis=1)
    data = standardize(X, X @ np.arange(18.0))
    state = sample(Horseshoe.start(18), data.X, data.y, 1000, rng=rng)
    assert np.isfinite(state.coef).all()
    assert np.abs(data.X @ state.coef - data.y).max() < 0.1


def test_posterior_error_falls_as_one_over_root_n():
    """Lemma 19's rate on a design that is compatible, which features of exactly p units are not: slope -1/2 in log n."""
    rng, sizes = np.random.default_rng(12), (50, 200, 800)
    coef = np.r_[2.0, -1.5, np.zeros(18)]
    errors = []
    for n in sizes:
        found = []
        for _ in range(6):
            X = rng.standard_normal((n, 20))
            y, state = X @ coef + 0.5 * rng.standard_normal(n), Horseshoe.start(20)
            state = sample(state, X, y, 200, rng=rng)
            for _ in range(20):
                state = sample(state, X, y, 5, rng=rng)
                found.append(np.abs(state.coef - coef).sum())
        errors.append(np.mean(found))
    slope = np.polyfit(np.log(sizes), np.log(errors), 1)[0]
    assert -0.65 < slope < -0.35
