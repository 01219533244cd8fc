"""Semi-bandits on road networks: learn the path that needs the least energy by driving.

`run` lets a policy drive a route, and `play` runs bandit problems of your own.
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
