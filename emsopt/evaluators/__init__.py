"""Evaluate deployments of a city with queueing models, and find optimal ones with classical location models.

``approximate_hypercube``  Larson's (1975) approximation: microseconds, for any fleet; mean response slightly too low
``exact_hypercube``        Larson's (1974) Markov chain: exact for exponential service; up to 28 units
``simulate``               discrete-event simulation: any service-time distribution, with confidence intervals
``simulate_day``           some hours call by call, to look at with `emsopt.maps.replay_map`
``evaluate, values``       evaluate one deployment or many by one of the three above; by default exact up to 12 units
``p_median, bounds``       the optimum if all units were always free, and bounds on the queueing optimum
``p_median_of_points``     the same from coordinates, for tens of thousands of atoms
``mclp, mexclp``           maximal covering and maximum expected covering
``survival``               probability of surviving a cardiac arrest by response time; its metric is "mortality"
``standards, by_group``    how far NFPA 1710 and other standards are met; how each district is served
``evaluate_all``           evaluate every deployment; return the best one and those almost as good
``evaluate_near``          evaluate the deployments within a few moves of one, if there are too many for all
"""

from .approximate import approximate_hypercube
from .by_name import EXACT_UP_TO, evaluate, values
from .covering import Coverage, mclp, mexclp
from .day import Day, simulate_day
from .enumeration import Enumeration, evaluate_all, evaluate_near
from .evaluation import Evaluation
from .exact import exact_hypercube
from .groups import by_group
from .median import Bounds, Location, bounds, one_median, p_median, p_median_of_points
from .metrics import survival
from .objective import Objective
from .simulation import simulate
from .standards import STANDARDS, Standard, standards

__all__ = [
    "EXACT_UP_TO",
    "STANDARDS",
    "Bounds",
    "Coverage",
    "Day",
    "Enumeration",
    "Evaluation",
    "Location",
    "Objective",
    "Standard",
    "approximate_hypercube",
    "bounds",
    "by_group",
    "evaluate",
    "evaluate_all",
    "evaluate_near",
    "exact_hypercube",
    "mclp",
    "mexclp",
    "one_median",
    "p_median",
    "p_median_of_points",
    "simulate",
    "simulate_day",
    "standards",
    "survival",
    "values",
]
