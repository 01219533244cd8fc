"""Optimal deployments at several loads, plans with a deployment for each hour, and comparisons under uncertainty.

`sweeps` finds the best deployment at each load or service rate; `hourly` plans a deployment for each hour of a day
with few moves of units (`_moves` finds the cheapest sequence); `held_out` judges the plan on weeks that it was not
made from; `comparison` says how sure it is that one deployment is better than another; `fleet` says how many units
the load needs, `fleet_curve` what each further unit buys, and `closing`
which stations to close; `scenarios` builds the rows of tables for spreadsheets, and `project` saves and opens what was
set and found.
"""

from .closing import Closures, closing
from .comparison import Comparison, compare
from .fleet import units_needed
from .fleet_curve import FleetCurve, fleet_curve
from .held_out import judge_plan
from .held_out_gain import HeldOutGain
from .hourly import Plan, hourly_plan
from .project import Project
from .sweeps import evaluate_table, load_sweep, service_rate_sweep, sweep

__all__ = [
    "Closures",
    "Comparison",
    "FleetCurve",
    "HeldOutGain",
    "Plan",
    "Project",
    "closing",
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
