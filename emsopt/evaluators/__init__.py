"""From a city and a deployment to an `Evaluation`, and exact models that look over all deployments.

``approximate_hypercube``  Larson's (1975) approximation: microseconds, any fleet, slightly low
``exact_hypercube``        Larson's (1974) Markov chain: exact for exponential service, up to about 20 units
``simulate``               discrete events: any service-time distribution, confidence intervals
``evaluate, values``       one deployment or many by one of the three; by default exact up to 12 units
``p_median, bounds``       all units always free: bounds of the queueing optimum
``mclp, mexclp``           maximal covering, the planner's classics
``evaluate_all``           every deployment, the best and its near rivals
"""

from .approximate import approximate_hypercube
from .by_name import EXACT_UP_TO, evaluate, values
from .covering import Coverage, mclp, mexclp
from .enumeration import Enumeration, evaluate_all
from .evaluation import Evaluation
from .exact import exact_hypercube
from .median import Bounds, Location, bounds, one_median, p_median
from .objective import Objective
from .simulation import simulate

__all__ = [
    "EXACT_UP_TO",
    "Bounds",
    "Coverage",
    "Enumeration",
    "Evaluation",
    "Location",
    "Objective",
    "approximate_hypercube",
    "bounds",
    "evaluate",
    "evaluate_all",
    "exact_hypercube",
    "mclp",
    "mexclp",
    "one_median",
    "p_median",
    "simulate",
    "values",
]
