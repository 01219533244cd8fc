"""What a log leaves open: coverage on known truth, limits for long logs, and closed forms."""

import numpy as np
import pytest

from emsopt.calls.drawn_cities import PairEffects, RatePosterior


def test_rates_are_wider_where_days_vary_and_narrower_for_longer_logs():
    rng = np.random.default_rng(0)
    calm = rng.poisson(5.0, (10, 60))
    wild = rng.poisson(5.0 * rng.gamma(2, 0.5, (10, 60)))  # each atom and day has its own rate
    assert RatePosterior.of(calm).share_dispersion < 1.2
    assert RatePosterior.of(wild).share_dispersion == pytest.approx(1 + 5 / 2, rel=0.25)
    together = rng.poisson(5.0 * rng.gamma(2, 0.5, 60), (10, 60))  # all atoms of a day
    assert RatePosterior.of(together).total_dispersion == pytest.approx(1 + 50 / 2, rel=0.4)
    posterior = RatePosterior.of(np.random.default_rng(1).poisson(4.0, (6, 28)))
    one, nine = ([posterior.draw(np.random.default_rng(k), more) for k in range(1500)] for more in (1.0, 9.0))
    assert np.std(one, axis=0) / np.std(nine, axis=0) == pytest.approx(3, rel=0.1)
    np.testing.assert_array_equal(posterior.draw(np.random.default_rng(0), np.inf), posterior.counts / 28)


def _world(seed, sites=8, atoms=40, drives=1500):
    """Return drives on a plane whose route times deviate from the law as the model says, and the true factors."""
    rng = np.random.default_rng(seed)
    places = rng.uniform(0, 12, (sites + atoms, 2))
    km = np.hypot(*(places[:, None] - places).transpose(2, 0, 1))
    between, among = km[:sites, :sites], km[sites:, sites:]
    roots = [np.linalg.cholesky(np.exp(-d / 4.0) + 1e-9 * np.eye(len(d))) for d in (between, among)]
    true = 1 + 0.15 * roots[0] @ rng.standard_normal((sites, atoms)) @ roots[1].T
    true += 0.05 * rng.standard_normal((sites, atoms))
    law = 1 + 1.5 * km[:sites, sites:]
    site, atom = rng.integers(0, sites - 2, drives), rng.integers(0, atoms, drives)  # two sites never had a unit
    s = np.sqrt(np.log(1 + 0.3**2))
    minutes = law[site, atom] * true[site, atom] * rng.lognormal(-(s**2) / 2, s, drives)
    return true / true[site, atom].mean(), PairEffects.of(site, atom, minutes, law[site, atom], between, among)


def test_intervals_of_road_effects_cover_the_truth_and_know_driven_pairs_better():
    covered, error, spread = [], [], []
    for seed in range(8):
        true, effects = _world(seed)
        rng = np.random.default_rng(seed)
        draws = np.array([effects.draw(rng) for _ in range(200)])
        low, high = np.quantile(draws, [0.05, 0.95], axis=0)
        covered.append(((true >= low) & (true <= high)).mean(axis=1))
        error.append(((effects.mean - true) ** 2).mean(axis=1))
        spread.append(draws.var(axis=0).mean(axis=1))
    covered, error, spread = (np.mean(part, axis=0) for part in (covered, error, spread))
    assert 0.84 < covered.mean() < 0.96
    assert error[:-2].mean() < 0.6 * error[-2:].mean()
    assert spread == pytest.approx(error, rel=0.5)


def test_unlimited_drives_leave_the_effects_of_driven_pairs_known():
    _, effects = _world(3)
    draws = np.array([effects.draw(np.random.default_rng(k), np.inf) for k in range(50)])
    driven = effects.weight > 0
    assert draws.std(axis=0)[driven].max() < 1e-3
    assert draws.std(axis=0)[-2:].min() > 0.01
    assert draws[0][driven] == pytest.approx(1 + effects.deviation[driven], abs=1e-3)
