"""Semi-bandits on road networks: learn by driving which way needs the least energy.

`run` plays a policy on a route; `play` is the framework for problems of one's own.
"""

from .exact import ExactGP
from .framework import Round, ShortestPath, TopK, play
from .independent import IndependentArms
from .navigation import POLICIES, Navigation, NavigationRun, run
from .policies import UCB, Agent, BayesUCB, Thompson, bayes_ucb_beta, rectified_mean, ucb_beta
from .prior import Prior, navigation_prior
from .sparse import SparseGP

__all__ = [
    "POLICIES",
    "UCB",
    "Agent",
    "BayesUCB",
    "ExactGP",
    "IndependentArms",
    "Navigation",
    "NavigationRun",
]
__all__ += [
    "Prior",
    "Round",
    "ShortestPath",
    "SparseGP",
    "Thompson",
    "TopK",
    "bayes_ucb_beta",
    "navigation_prior",
]
__all__ += ["play", "rectified_mean", "run", "ucb_beta"]
