"""From a log to advice, deployments at several loads and by the hour, and comparisons under uncertainty.

`advice` is the one workflow from a log of calls and a table of stations to advice, and `log_model` its first step;
`sweeps` finds the best deployment at each load or service rate; `hourly` plans a deployment for each hour of a day
with few moves of units (`_moves` finds the cheapest sequence); `held_out` judges the plan on weeks that it was not
made from; `comparison` says how sure it is that one deployment is better than another; `fleet` says how many units
the load needs, and what each further unit buys; `scenarios` builds the rows of tables for spreadsheets, and `project`
saves and opens what was set and found.
"""

from .advice import Advice, advise
from .comparison import Comparison, compare
from .fleet import FleetCurve, fleet_curve, units_needed
from .held_out import judge_plan
from .hourly import HeldOutGain, Plan, hourly_plan
from .log_model import Model, Settings, build
from .project import Project
from .sweeps import evaluate_table, load_sweep, service_rate_sweep, sweep

__all__ = [
    "Advice",
    "Comparison",
    "FleetCurve",
    "HeldOutGain",
    "Model",
    "Plan",
    "Project",
    "Settings",
    "advise",
    "build",
    "compare",
    "evaluate_table",
    "fleet_curve",
    "hourly_plan",
    "judge_plan",
    "load_sweep",
    "service_rate_sweep",
    "sweep",
    "units_needed",
]
