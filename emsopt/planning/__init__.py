"""Optimal deployments at several loads, plans with a deployment for each hour, and comparisons under uncertainty.

`sweeps` finds the best deployment at each load or service rate; `hourly` plans a deployment for each hour of
a day with few moves of units (`_moves` finds the cheapest sequence); `held_out` judges the plan on weeks that it was
not made from; `comparison` says how sure it is that one deployment is better than another, and `robustness` whether
the advice survives other speeds, cells and parts of the log; `fleet` says how many units the load needs; `trade_off`
finds the deployments that no other one beats in every metric; `scenarios` builds the rows of tables for spreadsheets,
and `project` saves and opens what was set and found.
"""

from .comparison import Comparison, compare
from .fleet import units_needed
from .held_out import judge_plan
from .held_out_gain import HeldOutGain
from .hourly import Plan, hourly_plan
from .project import Project
from .robustness import Robustness, robustness
from .sweeps import evaluate_table, load_sweep, service_rate_sweep, sweep
from .trade_off import Front, front, hypervolume

__all__ = [
    "Comparison",
    "Front",
    "HeldOutGain",
    "Plan",
    "Project",
    "Robustness",
    "compare",
    "evaluate_table",
    "front",
    "hourly_plan",
    "hypervolume",
    "judge_plan",
    "load_sweep",
    "robustness",
    "service_rate_sweep",
    "sweep",
    "units_needed",
]
