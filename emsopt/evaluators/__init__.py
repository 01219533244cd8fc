"""From a city and a deployment to an `Evaluation`, and exact models that look over all deployments.

``approximate_hypercube``  Larson's (1975) approximation: microseconds, any fleet, slightly low
``exact_hypercube``        Larson's (1974) Markov chain: exact for exponential service, up to about 20 units
``simulate``               discrete events: any service-time distribution, confidence intervals
``evaluate``               one of the three; exact up to 12 units unless told
``p_median, bounds``       all units always free: bounds of the queueing optimum
``mclp, mexclp``           maximal covering, the planner's classics
``evaluate_all``           every deployment, the best and its near rivals
"""

from .approximate import approximate_hypercube, approximate_values
from .by_name import EXACT_UP_TO, evaluate, values
from .covering import Coverage, mclp, mexclp
from .enumeration import Enumeration, evaluate_all
from .evaluation import Evaluation
from .exact import exact_hypercube, exact_values
from .median import Bounds, Location, bounds, one_median, p_median
from .objective import Objective
from .simulation import simulate, simulation_values

__all__ = [
    "EXACT_UP_TO",
    "Bounds",
    "Coverage",
    "Enumeration",
    "Evaluation",
    "Location",
    "Objective",
    "approximate_hypercube",
    "approximate_values",
    "bounds",
    "evaluate",
    "evaluate_all",
    "exact_hypercube",
    "exact_values",
    "mclp",
    "mexclp",
    "one_median",
    "p_median",
    "simulate",
    "simulation_values",
    "values",
]
