"""Information gain and the bounds of Theorem 3.1: against determinants and the formulas by hand."""

import math

import numpy as np
import pytest
from papers import navigation_bounds
from papers.information import information_gain
from refusals import refused

from emsopt import bandits
from emsopt.roads import grid_roads


def test_gain_of_a_run_is_half_the_log_determinant():
    """Section 2.3, with arms that come up again, after every round."""
    prior = bandits.navigation_prior(grid_roads(4, 4, jitter=0.3, relief=40, rng=2))
    rng = np.random.default_rng(0)
    rounds = [rng.choice(prior.n_arms, 7, replace=False) for _ in range(40)]
    gains = navigation_bounds.cumulative_gain(prior, rounds)
    for t in (0, 5, 39):
        arms = np.concatenate(rounds[: t + 1])
        wanted = information_gain(prior.covariance[np.ix_(arms, arms)], prior.noise_variance)
        assert gains[t] == pytest.approx(wanted, rel=1e-9)


def test_bounds_are_theorem_3_1s():
    """By hand for T = 100, |A| = 50, K = 3, γ = 60, ς² = 0.1, λ* = 2; rounding to a grid (Theorem 3.2) adds π²/3."""
    known = {"n_arms": 50, "size": 3, "gain": 60.0, "noise_variance": 0.1, "eigenvalue": 2.0}
    bound, width = navigation_bounds.regret_bound, lambda beta: math.sqrt(2 * 2.1 * 100 * 3 * beta * 60)
    ucb = width(2 * math.log(50 * 100**2 / math.sqrt(2 * math.pi)))
    assert bound(bandits.UCB(), 100, **known) == pytest.approx(math.pi**2 / 6 + ucb, rel=1e-12)
    assert bound(bandits.Thompson(), 100, **known) == pytest.approx(math.pi**2 / 3 + 2 * ucb, rel=1e-12)
    assert bound(bandits.UCB(), 100, **known, prior_variance=4.0) == pytest.approx(math.pi**2 / 3 + ucb, rel=1e-12)
    lost = (math.sqrt(math.pi) * 1.5 / math.sqrt(2 * math.e * 0.5)) ** (1 / 1.5)
    for xi, sum_lost in ((2.0, 2.0 / 0.5), (1.5, 1 + math.log(100)), (0.5, 1.5 / 1.0 * 100 ** (1 - 0.5 / 1.5))):
        rule = bandits.BayesUCB(1.5, xi)
        assert bound(rule, 100, **known) == pytest.approx(width(rule.beta(100, 50)) + lost * sum_lost, rel=1e-12)
    for any_rule in (bandits.UCB(), bandits.Thompson(), rule):
        rounding = bound(any_rule, 100, **known, infinite=True) - bound(any_rule, 100, **known)
        assert rounding == pytest.approx(math.pi**2 / 3, rel=1e-9)
    refused("`omega` above 1; got 1", bound, bandits.BayesUCB(), 100, **known)
    refused(r"`factor` 1; got 0\.5", bound, bandits.UCB(0.5), 100, **known)
