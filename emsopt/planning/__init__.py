"""From a log to advice, deployments at several loads and by the hour, and comparisons under uncertainty.

`advice` is the one workflow from a log of calls and a table of stations to advice, `settings` has its options, `steps`
are its steps, and `log_model` is the first of them; `sweeps` finds the best deployment at each load or service rate and
makes tables; `day_plan` plans a deployment for each hour of a day with few moves of units, and estimates the gain in
weeks that the plan was not made from (`_plan_search` finds the cheapest sequence); `comparison` gives the probability
that one deployment is better than another; `fleet` finds the number of units that the load needs, and the gain of each
further unit; `project` saves and opens settings and results.
"""

from .advice import Advice as Advice
from .advice import advise
from .comparison import Comparison as Comparison
from .comparison import compare
from .day_plan import Plan as Plan
from .day_plan import hourly_plan, judge_plan
from .fleet import fleet_curve
from .fleet import units_needed as units_needed
from .log_model import Model as Model
from .log_model import build
from .project import Project as Project
from .settings import Settings
from .sweeps import evaluate_table, load_sweep, service_rate_sweep, sweep

__all__ = ["Settings", "advise", "build", "compare", "evaluate_table", "fleet_curve", "hourly_plan"]
__all__ += ["judge_plan", "load_sweep", "service_rate_sweep", "sweep"]
