"""Optimal deployments at several loads, plans with a deployment for each hour, and comparisons under uncertainty.

`sweeps` finds the best deployment at each load or service rate; `hourly` plans a deployment for each hour of a day
with few moves of units (`_moves` finds the cheapest sequence); `held_out` judges the plan on weeks that it was not
made from; `comparison` says how sure it is that one deployment is better than another; `fleet` says how many units
the load needs, `fleet_curve` what each further unit buys, `budget` which stations to build for a sum of money, and
`closing` which to close; `trade_off` finds the deployments that no other one beats in every metric; `scenarios`
builds the rows of tables for spreadsheets, and `project` saves and opens what was set and found.
"""

from .budget import BudgetPlan, within_budget
from .closing import Closures, closing
from .comparison import Comparison, compare
from .fleet import units_needed
from .fleet_curve import FleetCurve, fleet_curve
from .held_out import judge_plan
from .held_out_gain import HeldOutGain
from .hourly import Plan, hourly_plan
from .project import Project
from .sweeps import evaluate_table, load_sweep, service_rate_sweep, sweep
from .trade_off import Front, front, hypervolume

__all__ = [
    "BudgetPlan",
    "Closures",
    "Comparison",
    "FleetCurve",
    "Front",
    "HeldOutGain",
    "Plan",
    "Project",
    "closing",
    "compare",
    "evaluate_table",
    "fleet_curve",
    "front",
    "hourly_plan",
    "hypervolume",
    "judge_plan",
    "load_sweep",
    "service_rate_sweep",
    "sweep",
    "units_needed",
    "within_budget",
]
