"""Semi-bandits on road networks: learn the most energy-efficient path by driving.

`run` plays a policy on a route, and `play` runs your own bandit problems.
"""

from .districts import DistrictGP
from .exact import ExactGP
from .navigation import POLICIES, Navigation, run
from .navigation import NavigationRun as NavigationRun
from .policies import UCB, Agent, BayesUCB, Thompson, TopK, play
from .policies import Round as Round
from .policies import ShortestPath as ShortestPath
from .prior import LazyPrior as LazyPrior
from .prior import Prior, navigation_prior
from .regression import IndependentArms as IndependentArms
from .sparse import SparseGP

__all__ = ["POLICIES", "UCB", "Agent", "BayesUCB", "DistrictGP", "ExactGP", "Navigation", "Prior", "SparseGP"]
__all__ += ["Thompson", "TopK", "navigation_prior", "play", "run"]
