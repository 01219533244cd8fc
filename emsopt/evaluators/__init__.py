"""Evaluate deployments of a city with queueing models, and find optimal ones with classical location models.

``approximate_hypercube``  Larson's (1975) approximation: microseconds, for any fleet; mean response slightly too low
``exact_hypercube``        Larson's (1974) Markov chain: exact for exponential service; up to 30 units
``simulate``               discrete-event simulation: any service-time distribution, with confidence intervals
``evaluate, values``       evaluate one deployment or many by one of the three above; by default exact up to 12 units
``p_median, bounds``       the optimum if all units were always free, and bounds on the queueing optimum
``mclp, mexclp``           maximal covering and maximum expected covering
``mclp_of_points``         maximal covering from coordinates, for tens of thousands of atoms
``malp, double_standard``  maximum availability, and coverage by two units under two standards
``set_cover, p_center``    the fewest sites that reach all atoms in time, and the sites that reach all of them soonest
``evaluate_all``           evaluate every deployment; return the best one and those almost as good
``evaluate_near``          evaluate the deployments within a few moves of one, if there are too many for all
"""

from .approximate import approximate_hypercube
from .by_name import evaluate, values
from .covering import double_standard, malp, mclp, mclp_of_points, mexclp
from .enumeration import Enumeration as Enumeration
from .enumeration import evaluate_all, evaluate_near
from .evaluation import Evaluation as Evaluation
from .exact import exact_hypercube
from .median import bounds, p_median
from .objective import Objective
from .set_covering import p_center, set_cover
from .simulation import simulate

__all__ = ["Objective", "approximate_hypercube", "bounds", "double_standard", "evaluate", "evaluate_all"]
__all__ += ["evaluate_near", "exact_hypercube", "malp", "mclp", "mclp_of_points", "mexclp", "p_center", "p_median"]
__all__ += ["set_cover", "simulate", "values"]
