"""Semi-bandits on road networks: learn the most energy-efficient path by driving.

`run` plays a policy on a route, and `play` runs your own bandit problems. `cumulative_gain`, `greedy_gain`,
`grid_points` and `regret_bound` compute the quantities of the theory.
"""

from .districts import DistrictGP
from .exact import ExactGP
from .framework import Round as Round
from .framework import ShortestPath as ShortestPath
from .framework import TopK, play
from .navigation import POLICIES, Navigation, run
from .navigation import NavigationRun as NavigationRun
from .policies import UCB, Agent, BayesUCB, Thompson, rectified_mean
from .prior import LazyPrior as LazyPrior
from .prior import Prior, navigation_prior
from .regression import IndependentArms as IndependentArms
from .sparse import SparseGP
from .theory import cumulative_gain, greedy_gain, grid_points, largest_eigenvalue, regret_bound, spectral_gain

__all__ = ["POLICIES", "UCB", "Agent", "BayesUCB", "DistrictGP", "ExactGP", "Navigation"]
__all__ += ["Prior", "SparseGP", "Thompson", "TopK", "cumulative_gain", "greedy_gain"]
__all__ += ["grid_points", "largest_eigenvalue", "navigation_prior", "play", "rectified_mean", "regret_bound"]
__all__ += ["run", "spectral_gain"]
