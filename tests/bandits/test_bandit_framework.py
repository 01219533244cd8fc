"""Algorithm 1 and its parts: indices, oracles, agents; and a second problem plugged in."""

import math
from statistics import NormalDist

import numpy as np
import pytest
from refusals import refused
from scipy.integrate import quad
from scipy.special import erfcinv

from emsopt import bandits
from emsopt.bandits.policies import rectified_mean
from emsopt.roads import grid_roads


@pytest.mark.parametrize("mean", [-30.0, -0.4, 0.0, 0.7, 200.0])
@pytest.mark.parametrize("deviation", [0.05, 7.0])
def test_rectified_mean_is_the_integral(mean, deviation):
    """Algorithm 2: E[max(0, X)], integrated numerically over the positive part."""
    low, high = max(0.0, mean - 12 * deviation), mean + 12 * deviation
    wanted = 0.0
    if high > low:
        density = NormalDist(mean, deviation).pdf
        wanted = quad(lambda x: x * density(x), low, high, epsabs=1e-13, epsrel=1e-13, limit=200)[0]
    assert rectified_mean(mean, deviation) == pytest.approx(wanted, abs=1e-10, rel=1e-12)
    assert rectified_mean(mean, 0.0) == max(mean, 0.0)
    far = rectified_mean(np.linspace(-1e4, 50, 999), 1.0)
    assert (far >= 0).all()
    assert (np.diff(far) >= 0).all()


@pytest.mark.parametrize("n_arms", [3, 5680])
def test_confidence_widths_are_theorem_3_1s(n_arms):
    """β_t of both rules from the equations; √2 erf⁻¹(1 - 2η) = √2 erfc⁻¹(2η) is minus the normal quantile of η."""
    assert bandits.UCB().beta(1, 1) == bandits.BayesUCB().beta(1, 1) == 0.0, "one arm needs no optimism"
    for t in (1, 2, 37, 500):
        wanted = 2 * math.log(n_arms * t**2 / math.sqrt(2 * math.pi))
        assert bandits.UCB().beta(t, n_arms) == pytest.approx(wanted, abs=1e-10)
        for omega, xi in ((1.0, 1.0), (1.0, 0.5), (1.1, 1.2)):
            eta = math.sqrt(2 * math.pi) ** omega / (2 * n_arms**omega * t**xi)
            wanted = NormalDist().inv_cdf(eta) ** 2
            assert bandits.BayesUCB(omega, xi).beta(t, n_arms) == pytest.approx(wanted, abs=1e-10)
            assert wanted == pytest.approx(2 * erfcinv(2 * eta) ** 2, abs=1e-10)


def test_costs_are_shifted_down_and_rewards_up():
    prior = bandits.navigation_prior(grid_roads(5, 5, jitter=0.3, relief=50, rng=3))
    arms, deviation, noise = np.arange(prior.n_arms), np.sqrt(prior.variance), np.sqrt(prior.noise_variance)
    eta = math.sqrt(2 * math.pi) / (2 * prior.n_arms * 4)  # of Theorem 3.1, in place of 1/t
    assert bandits.BayesUCB().beta(4, prior.n_arms) == pytest.approx(NormalDist().inv_cdf(eta) ** 2, abs=1e-10)
    own = bandits.IndependentArms(prior)
    indices = lambda rule, sense="min", **given: bandits.Agent(own, rule, sense=sense, **given).indices(4, arms)
    for rule, factor in ((bandits.UCB(0.5), 0.5), (bandits.BayesUCB(), 1.0)):
        width = np.sqrt(factor * type(rule)().beta(4, prior.n_arms)) * deviation
        assert indices(rule) == pytest.approx(prior.mean - width, rel=1e-12)
        assert indices(rule, "max") == pytest.approx(prior.mean + width, rel=1e-12)
        assert indices(rule, rectify=True) == pytest.approx(rectified_mean(prior.mean - width, noise), rel=1e-12)
    sample, rectified = (indices(bandits.Thompson(), rng=0, rectify=rectify) for rectify in (False, True))
    assert rectified == pytest.approx(rectified_mean(sample, noise), rel=1e-12)


class Sleepers:
    """Rewards of 30 arms, 12 of which are awake in a round."""

    def __init__(self, prior, rng):
        self.rng, self.noise = rng, np.sqrt(prior.noise_variance)
        self.truth = prior.draw(rng=rng)[:, 0]

    def available(self, t):
        self.awake = np.sort(self.rng.choice(len(self.truth), 12, replace=False))
        return self.awake, None

    def observe(self, t, arms):
        assert np.isin(arms, self.awake).all()
        return self.truth[arms] + self.rng.normal(0, self.noise, len(arms))

    def loss(self, arms):
        return np.sort(self.truth[self.awake])[-3:].sum() - self.truth[arms].sum()


@pytest.mark.parametrize("rule", [bandits.UCB(0.2), bandits.BayesUCB(), bandits.Thompson(), bandits.Thompson(True)])
def test_another_problem_plugs_in(rule, monkeypatch):
    """Best three of the arms awake, on a line of 30: regret falls to less than a third of what it was."""
    x = np.arange(30.0)
    prior = bandits.Prior(np.zeros(30), np.exp(-0.5 * np.square((x[:, None] - x) / 3)), 0.05)
    environment = Sleepers(prior, np.random.default_rng(0))
    monkeypatch.setattr("emsopt.bandits.exact.WINDOW", 8)
    agent = bandits.Agent(bandits.ExactGP(prior), rule, sense="max", rng=0)
    losses = [environment.loss(step.arms) for step in bandits.play(agent, environment, bandits.TopK(3), 300)]
    assert len(losses) == 300
    assert min(losses) > -1e-12
    assert np.mean(losses[-100:]) < np.mean(losses[:10]) / 3


def test_top_k_takes_the_best_allowed_arms_and_wrong_parts_are_refused():
    scores = [3.0, 9.0, 1.0, 7.0, 5.0]
    assert bandits.TopK(2)(scores).tolist() == [1, 3]
    assert bandits.TopK(2)(scores, [True, False, True, False, True]).tolist() == [0, 4]
    prior = bandits.Prior(np.zeros(3), np.eye(3), noise_variance=1.0)
    exact, sparse = bandits.ExactGP(prior), bandits.SparseGP(prior)
    refused("one boolean per arm", bandits.TopK(2), [1.0, 2.0, 3.0], [True, True])
    refused("Cannot choose 2 arms: only 1 are allowed", bandits.TopK(2), [3.0, 9.0, 1.0], [False, True, False])
    refused("`rule` must be UCB", bandits.Agent, exact, "ts")
    refused("method `sample`", bandits.Agent, sparse, bandits.Thompson(joint=True))
    refused("sense='min'", bandits.Agent, exact, bandits.UCB(), rectify=True)
    refused("`shift` needs rectify=True", bandits.Agent, exact, bandits.UCB(), shift=1.0)
