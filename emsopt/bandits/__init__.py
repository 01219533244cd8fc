"""Semi-bandits on road networks: learn the most energy-efficient path by driving.

`run` plays a policy on a route, `run_fleet` lets many drivers share what they learn, and `play` runs your own bandit
problems. `cumulative_gain`, `greedy_gain`, `grid_points` and `regret_bound` compute the quantities of the theory.
"""

from .districts import DistrictGP
from .environment import Navigation
from .exact import ExactGP
from .fleet import FleetRun, run_fleet
from .framework import Round, ShortestPath, TopK, play
from .navigation import POLICIES, NavigationRun, run
from .policies import UCB, Agent, BayesUCB, Thompson, rectified_mean
from .prior import LazyPrior, Prior, navigation_prior
from .regression import IndependentArms
from .sparse import SparseGP
from .theory import cumulative_gain, greedy_gain, grid_points, largest_eigenvalue, regret_bound, spectral_gain

__all__ = ["POLICIES", "UCB", "Agent", "BayesUCB", "DistrictGP", "ExactGP", "FleetRun", "IndependentArms"]
__all__ += ["LazyPrior", "Navigation", "NavigationRun", "Prior", "Round", "ShortestPath", "SparseGP", "Thompson"]
__all__ += ["TopK", "cumulative_gain", "greedy_gain", "grid_points", "largest_eigenvalue", "navigation_prior"]
__all__ += ["play", "rectified_mean", "regret_bound", "run", "run_fleet", "spectral_gain"]
