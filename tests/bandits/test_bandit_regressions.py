"""What agents learn, against closed forms and each other; on large networks, against dense processes."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from one_way import one_way_streets
from refusals import refused
from scipy.stats import multivariate_normal

from emsopt import bandits
from emsopt.bandits import exact
from emsopt.bandits.districts import partition_graph
from emsopt.bandits.regression import sum_by_arm
from emsopt.roads import RoadNetwork, grid_roads
from emsopt.roads.energy import edge_energy, standardize_columns
from emsopt.surrogates.graph_matern import graph_matern, incidence_laplacian, matern


@pytest.fixture(scope="module")
def prior():
    return bandits.navigation_prior(grid_roads(4, 4, jitter=0.3, relief=40, rng=2))


def dense_posterior(prior, arms, values):
    """Equations (2) and (3) with every single observation, by one dense solve."""
    K = prior.covariance
    system = K[np.ix_(arms, arms)] + prior.noise_variance * np.eye(len(arms))
    gain = np.linalg.solve(system, K[arms]).T
    return prior.mean + gain @ (values - prior.mean[arms]), K - gain @ K[arms]


def rounds_of(prior, count, rng, length=9):
    """Arms and values of some rounds; some arms come up often, and sometimes twice in a round."""
    truth, favourite = prior.draw(rng=rng)[:, 0], rng.permutation(prior.n_arms) ** 1.5
    for _ in range(count):
        arms = rng.choice(prior.n_arms, length, p=favourite / favourite.sum())
        yield arms, truth[arms] + rng.normal(0, np.sqrt(prior.noise_variance), length)


def check_moments(samples, mean, covariance):
    """Compare moments of samples, a row each, with their errors for Gaussians; return those of the covariance."""
    n, spread = len(samples), np.sqrt(np.diag(covariance))
    assert np.abs((samples.mean(axis=0) - mean) / spread).max() < 4.5 / np.sqrt(n)
    # the standard error of a sample covariance is √((c_ii c_jj + c_ij²) / n)
    errors = (np.cov(samples.T) - covariance) / np.sqrt((np.outer(spread, spread) ** 2 + covariance**2) / n)
    assert np.abs(errors).max() < 5.5
    return errors


def told(gp, rounds):
    """Tell a process some rounds; return the arms, the values, and posterior mean and covariance by one dense solve."""
    seen, prior = list(rounds), gp.prior
    for arms, values in seen:
        gp.update(arms, values)
    arms, values = (np.concatenate(part) for part in zip(*seen, strict=True))
    return arms, values, *dense_posterior(prior, arms, values)


@pytest.mark.parametrize("window", [10, 33, 256])
def test_exact_posterior_is_the_dense_solve(prior, window, monkeypatch):
    """50 rounds; windows that fill up in every round, in some, and never."""
    monkeypatch.setattr(exact, "WINDOW", window)
    gp = bandits.ExactGP(prior)
    *_, mean, covariance = told(gp, rounds_of(prior, 50, np.random.default_rng(0)))
    assert np.abs(gp.predict()[0] - mean).max() < 1e-8
    assert np.abs(gp.predict()[1] - np.diag(covariance)).max() < 1e-8
    some = np.array([5, 0, 17, 40])
    assert np.abs(gp.covariance(some) - covariance[np.ix_(some, some)]).max() < 1e-8
    for part, whole in zip(gp.predict(some), gp.predict(), strict=True):
        assert np.array_equal(part, whole[some])


@pytest.mark.parametrize("drawn_before", [True, False])
def test_joint_samples_have_the_posterior_moments(prior, drawn_before, monkeypatch):
    """Samples drawn from the prior and carried through six windows, or drawn after the data, have the exact moments."""
    n, rng = 10_000 if drawn_before else 4000, np.random.default_rng(1)
    monkeypatch.setattr(exact, "WINDOW", 12)
    monkeypatch.setattr(exact, "DRAWS_AT_ONCE", n if drawn_before else 1000)
    gp, every = bandits.ExactGP(prior), np.arange(prior.n_arms)
    if drawn_before:
        gp.sample(every, rng)  # draws them all before anything is observed
    *_, mean, covariance = told(gp, rounds_of(prior, 9, rng))
    assert 0 < len(gp._arms) < 12, "the last round should leave a window half full"
    samples = np.array([gp.sample(every, rng) for _ in range(n - 1)])
    assert check_moments(samples, mean, covariance).std() == pytest.approx(1.0, abs=0.25)


def test_sparse_process_with_few_points_is_the_best_approximation_there_is(prior):
    """Converged it equals Titsias' bound in closed form, whatever points were inducing on the way."""
    sparse = bandits.SparseGP(prior)
    sparse.inducing = 12
    assert sparse.elbo() == 0.0
    arms, values, *_ = told(sparse, rounds_of(prior, 25, np.random.default_rng(4)))
    early, bound = sparse.predict()[0], sparse.elbo()
    sparse.step(300)
    Z, visits = sparse._points, np.bincount(arms, minlength=prior.n_arms)
    assert visits[Z].min() >= np.delete(visits, Z).max()
    K, noise = prior.covariance, prior.noise_variance
    inner = K[np.ix_(Z, Z)] + K[np.ix_(Z, arms)] @ K[np.ix_(arms, Z)] / noise
    mean = prior.mean + K[:, Z] @ np.linalg.solve(inner, K[np.ix_(Z, arms)] @ (values - prior.mean[arms]) / noise)
    known = K[:, Z] @ (np.linalg.inv(K[np.ix_(Z, Z)]) - np.linalg.inv(inner)) @ K[Z]
    got_mean, got_variance = sparse.predict()
    assert np.abs(got_mean - mean).max() < 1e-6
    assert np.abs(early - mean).max() > 1e-2, "one step a round lags behind"
    assert np.abs(got_variance - np.diag(K - known)).max() < 1e-6
    Q = K[np.ix_(arms, Z)] @ np.linalg.solve(K[np.ix_(Z, Z)], K[np.ix_(Z, arms)])
    likelihood = multivariate_normal(prior.mean[arms], Q + noise * np.eye(len(arms))).logpdf(values)
    best = likelihood - (np.diag(K)[arms] - np.diag(Q)).sum() / (2 * noise)
    assert bound < sparse.elbo() == pytest.approx(best, rel=1e-6)


def test_changing_the_inducing_points_keeps_what_is_known_of_them(prior):
    """An arm that comes in or goes does not change the distribution of those that stay."""
    sparse = bandits.SparseGP(prior)
    sparse.inducing = 20
    told(sparse, rounds_of(prior, 4, np.random.default_rng(5), length=5))
    Z = sparse._points.copy()
    before = np.array(sparse.predict(Z))
    sparse._add_inducing_points(np.setdiff1d(np.arange(prior.n_arms), Z)[:4])
    sparse._solution = None
    np.testing.assert_allclose(sparse.predict(Z), before, rtol=1e-6, atol=1e-9)
    sparse._integrate_out(np.isin(sparse._points, Z[::2]))
    sparse._solution = None
    np.testing.assert_allclose(sparse.predict(Z[::2]), before[:, ::2], rtol=1e-6, atol=1e-9)


def test_batches_are_drawn_from_the_history(prior):
    """With batches of a fifth of the history the steps scatter around the exact posterior."""
    sparse = bandits.SparseGP(prior, rate=0.02, rng=0)
    sparse.batch = 60
    *_, mean, _ = told(sparse, rounds_of(prior, 33, np.random.default_rng(6)))
    sparse.step(600)
    assert 1e-3 < np.abs(sparse.predict()[0] - mean).max() / np.sqrt(prior.noise_variance) < 1.0


def test_the_gradient_in_inducing_contexts_is_that_of_the_lower_bound():
    """Against central differences; lengthscales of the two kernels and of the dimensions differ."""
    net = grid_roads(4, 4, jitter=0.3, relief=40, rng=2)
    prior = bandits.navigation_prior(net, congestion=[1.0, 0.5])
    kernel = replace(prior.kernel, lengthscales=(np.array([1.0, 0.7, 1.5]), np.array(0.5)))
    prior, every = replace(prior, kernel=kernel, covariance=kernel.covariance()), np.arange(prior.n_arms)
    assert (
        np.abs(kernel.cross_covariance(every, kernel.contexts, every, kernel.contexts) - prior.covariance).max() < 1e-12
    )
    sparse = bandits.SparseGP(prior, context_rate=0.05)
    sparse.inducing = 10
    told(sparse, rounds_of(prior, 6, np.random.default_rng(8)))
    at = sparse._current_contexts(kernel).copy()
    assert np.abs(at - kernel.contexts[sparse._points]).max() == pytest.approx(0.05, rel=1e-3), "one step of Adam"
    gradient = sparse._context_gradient(kernel, *sum_by_arm(sparse._observed_arms, sparse._values))
    for place in np.ndindex(at.shape):
        bounds = []
        for step in (1e-5, -1e-5):
            moved = at.copy()
            moved[place] += step
            sparse._move_points(moved)
            bounds.append(sparse.elbo())
        assert gradient[place] == pytest.approx((bounds[0] - bounds[1]) / 2e-5, abs=1e-5)
    sparse._move_points(at)
    before = sparse.elbo()
    sparse.step(100)
    assert sparse.elbo() > before + 1
    refused("needs a prior with a `kernel`", bandits.SparseGP, bandits.Prior([0.0], [[1.0]], 1.0), context_rate=0.01)


def test_independent_arms_follow_the_conjugate_update(prior):
    """Precision adds up, and the mean is weighted by precision."""
    arms = bandits.IndependentArms(prior)
    arms.update([3, 3, 8], [5.0, 7.0, -1.0])
    arms.update([3], [6.5])
    mean, variance = arms.predict()
    v, s2 = prior.covariance[3, 3], prior.noise_variance
    assert variance[3] == pytest.approx(1 / (1 / v + 3 / s2), rel=1e-12)
    assert mean[3] == pytest.approx(variance[3] * (prior.mean[3] / v + 18.5 / s2), rel=1e-12)
    others = np.setdiff1d(np.arange(prior.n_arms), [3, 8])
    assert np.array_equal(mean[others], prior.mean[others])


def test_navigation_prior_has_the_papers_kernel_and_variances():
    """Section 4.1: mean variance 0.25² and noise 0.1² of that of deterministic energies; the kernel k_G k_f + k_f."""
    net = grid_roads(5, 4, jitter=0.2, relief=30, rng=0)
    prior = bandits.navigation_prior(net)
    energy = edge_energy(net.lengths, net.speed_limits, net.inclines)
    assert np.array_equal(prior.mean, energy)
    assert np.diag(prior.covariance).mean() == pytest.approx(0.25**2 * energy.var(), rel=1e-12)
    assert prior.noise_variance == pytest.approx(0.1**2 * energy.var(), rel=1e-12)
    contexts = standardize_columns(np.column_stack([net.lengths, net.speed_limits, net.inclines]))
    assert contexts.var(axis=0) == pytest.approx([1, 1, 1])
    graph = graph_matern(incidence_laplacian(net.lengths, net.connections))
    wanted = (graph + 1) / 2 * matern(contexts, contexts)
    assert prior.covariance == pytest.approx(wanted * 0.25**2 * energy.var(), rel=1e-12)


def test_congestion_makes_an_arm_of_every_edge_and_hour():
    """Slower traffic needs less energy against the wind; an hour without congestion is as before."""
    net = grid_roads(4, 3, relief=20, rng=0)
    prior = bandits.navigation_prior(net, congestion=[1.0, 0.5, 1.0])
    n = net.n_edges
    assert prior.n_arms == 3 * n
    calm, slow, again = prior.mean.reshape(3, n)
    assert np.array_equal(calm, bandits.navigation_prior(net).mean)
    assert np.array_equal(calm, again)
    assert (slow < calm).all()
    K = prior.covariance.reshape(3, n, 3, n)
    assert np.array_equal(K[0, :, 0], K[0, :, 2]), "the same edge at the same speed is the same arm"
    assert (np.diag(K[0, :, 1]) < np.diag(K[0, :, 0])).all()


def test_wrong_priors_kernels_and_observations_are_refused():
    pair, grid = {"mean": [0.0, 0.0], "covariance": np.eye(2), "noise_variance": 1.0}, grid_roads(3, 3, rng=0)
    refused("`covariance` must have shape", bandits.Prior, **(pair | {"covariance": np.eye(3)}))
    refused("must be symmetric", bandits.Prior, **(pair | {"covariance": [[1.0, 0.5], [0.2, 1.0]]}))
    refused("negative eigenvalue", bandits.Prior([0.0] * 2, [[1.0, 2.0], [2.0, 1.0]], 1.0).draw, rng=0)
    refused("`congestion` must be at most 1", bandits.navigation_prior, grid, congestion=[1.0, 1.5])
    equal = RoadNetwork([50.0] * 3, [10.0] * 3, [(0, 1), (1, 2)])
    refused("edges must differ in energy", bandits.navigation_prior, equal)
    update = bandits.IndependentArms(bandits.Prior(**pair)).update
    refused("`arms` must be 1 integer", update, [0, 1], [1.0])
    refused("from 0 to 1, one per value", update, [9], [1.0])
    refused("from 0 to 1", update, [-1], [1.0])
    refused("`values` must be finite", update, [0], [np.nan])


@pytest.fixture(scope="module")
def net():
    return grid_roads(6, 6, jitter=0.3, relief=40, rng=2)


@pytest.fixture(scope="module")
def pair(net):
    """The lazy and the dense prior."""
    return [bandits.navigation_prior(net, lazy=lazy) for lazy in (True, False)]


@pytest.mark.parametrize("options", [{"lengthscale": [1.0, 0.5, 2.0]}, {"congestion": [1.0, 0.6]}])
@pytest.mark.parametrize("kind", [bandits.ExactGP, bandits.SparseGP, bandits.DistrictGP])
def test_processes_learn_from_the_lazy_prior_what_they_learn_from_the_dense_one(net, kind, options):
    """One district is the exact process."""
    lazy, dense = (bandits.navigation_prior(net, lazy=lazy, **options) for lazy in (True, False))
    assert np.abs(lazy.covariance - dense.covariance).max() < 1e-11 * dense.variance.max()
    first, second = kind(lazy), (bandits.SparseGP if kind is bandits.SparseGP else bandits.ExactGP)(dense)
    first.inducing = second.inducing = 15  # of sparse processes
    for arms, values in rounds_of(dense, 8, np.random.default_rng(0)):
        first.update(arms, values)
        second.update(arms, values)
        for got, wanted in zip(first.predict(), second.predict(), strict=True):
            assert np.abs(got - wanted).max() < (1e-5 if kind is bandits.SparseGP else 1e-8)


def test_draws_have_the_moments_of_the_prior_and_conditioned_ones_those_of_the_posterior(pair):
    """Draws of the lazy prior, and joint samples of the exact process, made of them by Matheron's rule."""
    lazy, dense = pair
    gp, exact = bandits.ExactGP(lazy), bandits.ExactGP(dense)
    for arms, values in rounds_of(dense, 4, np.random.default_rng(0)):
        gp.update(arms, values)
        exact.update(arms, values)
    some, rng = np.arange(0, lazy.n_arms, 7), np.random.default_rng(1)
    samples = np.array([gp.sample(some, rng) for _ in range(150)])
    check_moments(samples, exact.predict(some)[0], exact.covariance(some))
    drawn = lazy.draw(150, rng=0)[some].T
    assert check_moments(drawn, dense.mean[some], dense.covariance[np.ix_(some, some)]).std() < 1.3


def test_large_networks_are_not_given_a_dense_covariance():
    assert not isinstance(bandits.navigation_prior(grid_roads(9, 9, jitter=0.2, rng=0)), bandits.LazyPrior)
    largest = bandits.navigation_prior(grid_roads(80, 80, jitter=0.2, rng=0))
    message = "25280 arms would take 5 GB.*`rows` and `variance`, or a smaller network"
    refused(message, getattr, largest, "covariance")
    gp = bandits.ExactGP(largest)
    gp._arms = np.arange(12_000)
    refused("Use `DistrictGP`", gp.update, [12_001], [1.0])


def test_districts_are_exact_for_a_covariance_that_ends_at_their_borders(pair, monkeypatch):
    """The posterior of Φ Φᵀ plus the blocks of K - Φ Φᵀ, by one dense solve."""
    lazy, dense = pair
    for name, value in {"DISTRICT_ARMS": 30, "MAX_FEATURES": 12}.items():
        monkeypatch.setattr(f"emsopt.bandits.districts.{name}", value)
    gp = bandits.DistrictGP(lazy)
    phi = gp._features.copy()
    same, largest = gp._district[:, None] == gp._district, dense.variance.max()
    K = phi @ phi.T + np.where(same, dense.covariance - phi @ phi.T, 0.0)
    for district, members in enumerate(gp._members):  # the prior of a district falls short by a little
        error = gp._covariance(district) + phi[members] @ phi[members].T - dense.covariance[np.ix_(members, members)]
        assert np.abs(error).max() < 1e-4 * largest
        K[np.ix_(members, members)] += error
    assert np.abs(np.diag(K) - dense.variance).max() < 1e-9 * largest, "prior variances are exact"
    arms, values, *_ = told(gp, rounds_of(dense, 20, np.random.default_rng(0)))
    wanted, covariance = dense_posterior(replace(dense, covariance=K), arms, values)
    mean, variance = gp.predict()
    assert np.abs(mean - wanted).max() < 1e-8
    assert np.abs(variance - np.diag(covariance)).max() < 1e-8 * largest
    rng, every = np.random.default_rng(3), np.arange(lazy.n_arms)
    check_moments(np.array([gp.sample(every, rng) for _ in range(4000)]), mean, covariance)


def test_districts_lie_together():
    net = one_way_streets(grid_roads(20, 20), 0.3, 0)
    labels = partition_graph(incidence_laplacian(net.lengths, net.connections), 100)
    assert 50 <= np.bincount(labels).min() <= np.bincount(labels).max() <= 100
    a, b = net.connections.T
    assert (labels[a] != labels[b]).mean() < 0.25, "most turns stay within a district"
    parts = partition_graph(incidence_laplacian(np.ones(7), [[0, 1], [2, 3]]), 2)  # a graph in pieces
    assert (np.bincount(parts).max(), len(parts)) == (2, 7)


def test_a_run_with_a_lazy_prior_is_a_run_of_districts(net, pair):
    """A second route starts with what the first taught, on a copy."""
    ends, further = ("r0c0-r0c1", "r5c4-r5c5"), ("r5c0-r5c1", "r0c4-r0c5")
    run = bandits.run(net, *ends, "gp-ts", horizon=8, rng=0, lazy=True)
    assert isinstance(run.regression, bandits.DistrictGP)
    assert (run.regression.size, run.regression.features) == (512, 256), "stored checkpoints name them"
    again = bandits.run(net, *ends, "gp-ts", horizon=8, rng=0, prior=pickle.loads(pickle.dumps(pair[0])))
    assert again.history["path"].equals(run.history["path"])
    kept, options = run.regression.predict()[0].copy(), {"regression": run.regression, "expected": run.expected}
    second = bandits.run(net, *further, "gp-ucb", horizon=3, rng=1, **options)
    assert (second.deviation <= run.deviation + 1e-9).all()
    assert np.array_equal(run.regression.predict()[0], kept)
    refused(r"`prior` must be an emsopt\.bandits\.LazyPrior", bandits.DistrictGP, pair[1])
