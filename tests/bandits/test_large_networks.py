"""Bandits on large networks: the prior that is not stored and processes of districts, against dense ones."""

import pickle

import numpy as np
import pytest
from one_way import one_way_streets
from refusals import refused

from emsopt import bandits
from emsopt.bandits.districts import districts
from emsopt.errors import InputError
from emsopt.roads import grid_roads
from emsopt.surrogates.graph_matern import incidence_laplacian

ROUTES = [("r0c0-r0c1", "r5c4-r5c5"), ("r5c0-r5c1", "r0c4-r0c5")]


@pytest.fixture(scope="module")
def net():
    return grid_roads(6, 6, jitter=0.3, relief=40, rng=2)


@pytest.fixture(scope="module")
def pair(net):
    """The lazy and the dense prior."""
    return [bandits.navigation_prior(net, lazy=lazy) for lazy in (True, False)]


def rounds(prior, count=20, length=9):
    rng = np.random.default_rng(0)
    truth = rng.multivariate_normal(prior.mean, prior.covariance)
    for _ in range(count):
        arms = rng.choice(prior.n_arms, length)
        yield arms, truth[arms] + rng.normal(0, np.sqrt(prior.noise_variance), length)


@pytest.mark.parametrize("options", [{"lengthscale": [1.0, 0.5, 2.0]}, {"congestion": [1.0, 0.5]}])
def test_rows_and_variances_are_the_dense_ones(net, options):
    lazy, dense = (bandits.navigation_prior(net, lazy=lazy, **options) for lazy in (True, False))
    some, largest = np.array([3, 17, 3, 40, lazy.n_arms - 1]), dense.variance.max()
    assert np.abs(lazy.rows(some) - dense.rows(some)).max() < 1e-11 * largest
    assert np.abs(lazy.variance - dense.variance).max() < 1e-10 * largest
    assert np.abs(lazy.covariance - dense.covariance).max() < 1e-11 * largest
    assert np.array_equal(lazy.mean, dense.mean)
    assert lazy.noise_variance == dense.noise_variance


def test_draws_have_the_moments_of_the_prior(net, pair):
    lazy, dense = pair
    some, n = np.arange(0, net.n_edges, 9), 150
    draws, K = lazy.draw(n, rng=0)[some] - dense.mean[some, None], dense.covariance[np.ix_(some, some)]
    deviation = np.sqrt(np.diag(K))
    assert np.abs(draws.mean(axis=1) / deviation).max() < 4.5 / np.sqrt(n)
    errors = (draws @ draws.T / n - K) / np.sqrt((np.outer(deviation, deviation) ** 2 + K**2) / n)
    assert np.abs(errors).max() < 5
    assert errors.std() < 1.3


@pytest.mark.parametrize("congestion", [None, [1.0, 0.6]])
@pytest.mark.parametrize("kind", [bandits.ExactGP, bandits.SparseGP, bandits.DistrictGP])
def test_processes_learn_from_the_lazy_prior_what_they_learn_from_the_dense_one(net, kind, congestion):
    """One district is the exact process."""
    lazy, dense = (bandits.navigation_prior(net, congestion=congestion, lazy=lazy) for lazy in (True, False))
    first, second = kind(lazy), (bandits.SparseGP if kind is bandits.SparseGP else bandits.ExactGP)(dense)
    first.inducing = second.inducing = 15  # of sparse processes
    for arms, values in rounds(dense, 8):
        first.update(arms, values)
        second.update(arms, values)
        for got, wanted in zip(first.predict(), second.predict(), strict=True):
            assert np.abs(got - wanted).max() < (1e-5 if kind is bandits.SparseGP else 1e-8)


def test_joint_samples_of_the_exact_process_are_conditioned_draws(pair):
    """Matheron's rule on draws of the lazy prior: the posterior's moments."""
    lazy, dense = pair
    gp, exact = bandits.ExactGP(lazy), bandits.ExactGP(dense)
    for arms, values in rounds(dense, 4):
        gp.update(arms, values)
        exact.update(arms, values)
    some, n, rng = np.arange(0, lazy.n_arms, 7), 150, np.random.default_rng(1)
    samples = np.array([gp.sample(some, rng) for _ in range(n)])
    mean, variance = exact.predict(some)
    assert np.abs((samples.mean(axis=0) - mean) / np.sqrt(variance / n)).max() < 4.5
    assert samples.var(axis=0) == pytest.approx(variance, rel=5 * np.sqrt(2 / n))


def test_large_networks_are_not_given_a_dense_covariance():
    assert not isinstance(bandits.navigation_prior(grid_roads(9, 9, jitter=0.2, rng=0)), bandits.LazyPrior)
    largest = bandits.navigation_prior(grid_roads(80, 80, jitter=0.2, rng=0))
    with pytest.raises(InputError, match=r"25280 arms would take 5 GB.*`rows` and `variance`"):
        largest.covariance
    gp = bandits.ExactGP(largest)
    gp._arms = np.arange(12_000)
    refused("Use `DistrictGP`", gp.update, [12_001], [1.0])


def test_districts_are_exact_for_a_covariance_that_ends_at_their_borders(pair, monkeypatch):
    """The posterior of Φ Φᵀ plus the blocks of K - Φ Φᵀ, by one dense solve."""
    lazy, dense = pair
    for name, value in {"SIZE": 30, "FEATURES": 12}.items():
        monkeypatch.setattr(f"emsopt.bandits.districts.{name}", value)
    gp = bandits.DistrictGP(lazy)
    phi = gp._features.copy()
    same, largest = gp._district[:, None] == gp._district, dense.variance.max()
    K = phi @ phi.T + np.where(same, dense.covariance - phi @ phi.T, 0.0)
    for district, members in enumerate(gp._members):  # the prior of a district falls short by a little
        error = gp._block(district) + phi[members] @ phi[members].T - dense.covariance[np.ix_(members, members)]
        assert np.abs(error).max() < 1e-4 * largest
        K[np.ix_(members, members)] += error
    assert np.abs(np.diag(K) - dense.variance).max() < 1e-9 * largest, "prior variances are exact"
    seen = list(rounds(dense))
    for arms, values in seen:
        gp.update(arms, values)
    arms, values = (np.concatenate(part) for part in zip(*seen, strict=True))
    gain = np.linalg.solve(K[np.ix_(arms, arms)] + dense.noise_variance * np.eye(len(arms)), K[arms]).T
    mean, variance = gp.predict()
    covariance = K - gain @ K[arms]
    assert np.abs(mean - dense.mean - gain @ (values - dense.mean[arms])).max() < 1e-8
    assert np.abs(variance - np.diag(covariance)).max() < 1e-8 * largest
    n, rng, every = 4000, np.random.default_rng(3), np.arange(lazy.n_arms)
    samples = np.array([gp.sample(every, rng) for _ in range(n)])
    spread = np.sqrt(np.diag(covariance))
    assert np.abs((samples.mean(axis=0) - mean) / spread).max() < 4.5 / np.sqrt(n)
    errors = (np.cov(samples.T) - covariance) / np.sqrt((np.outer(spread, spread) ** 2 + covariance**2) / n)
    assert np.abs(errors).max() < 5.5


def test_districts_lie_together():
    net = one_way_streets(grid_roads(20, 20), 0.3, 0)
    labels = districts(incidence_laplacian(net.lengths, net.connections), 100)
    assert 50 <= np.bincount(labels).min() <= np.bincount(labels).max() <= 100
    a, b = net.connections.T
    assert (labels[a] != labels[b]).mean() < 0.25, "most turns stay within a district"
    parts = districts(incidence_laplacian(np.ones(7), [[0, 1], [2, 3]]), 2)  # a graph in pieces
    assert (np.bincount(parts).max(), len(parts)) == (2, 7)


def test_a_run_with_a_lazy_prior_is_a_run_of_districts(net, pair):
    """A second route starts with what the first taught, on a copy."""
    run = bandits.run(net, *ROUTES[0], "gp-ts", horizon=8, rng=0, lazy=True)
    assert isinstance(run.regression, bandits.DistrictGP)
    again = bandits.run(net, *ROUTES[0], "gp-ts", horizon=8, rng=0, prior=pickle.loads(pickle.dumps(pair[0])))
    assert again.history["path"].equals(run.history["path"])
    kept = run.regression.predict()[0].copy()
    further = bandits.run(net, *ROUTES[1], "gp-ucb", horizon=3, rng=1, regression=run.regression, expected=run.expected)
    assert (further.deviation <= run.deviation + 1e-9).all()
    assert np.array_equal(run.regression.predict()[0], kept)
    refused(r"`prior` must be an emsopt\.bandits\.LazyPrior", bandits.DistrictGP, pair[1])
