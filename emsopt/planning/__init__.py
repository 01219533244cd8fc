"""Questions of a planner: advice from a log, comparisons under uncertainty, plans by the hour, fleets, sweeps of loads.

`advice` leads from a log of calls and a table of stations to advice: `settings` has its options, `steps` its steps, and
`log_model` the first of them. `project` saves settings and results.
"""

from .advice import Advice as Advice
from .advice import advise
from .comparison import Comparison as Comparison
from .comparison import compare
from .day_plan import Plan as Plan
from .day_plan import hourly_plan, judge_plan
from .fleet import fleet_curve
from .fleet import units_needed as units_needed
from .log_model import LogModel as LogModel
from .log_model import build
from .project import Project as Project
from .settings import Settings
from .sweeps import evaluate_table, load_sweep, service_rate_sweep, sweep

__all__ = ["Settings", "advise", "build", "compare", "evaluate_table", "fleet_curve", "hourly_plan"]
__all__ += ["judge_plan", "load_sweep", "service_rate_sweep", "sweep"]
