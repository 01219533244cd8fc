"""Optimal deployments at several loads, and plans with a deployment for each hour.

`sweeps` finds the best deployment at each load or service rate; `hourly` plans a deployment for each hour of
a day with few moves of units (`_moves` finds the cheapest sequence); `held_out` judges the plan on weeks that it was
not made from; `scenarios` builds the rows of tables for spreadsheets.
"""

from .held_out import HeldOutGain, judge_plan
from .hourly import Plan, hourly_plan
from .sweeps import evaluate_table, load_sweep, service_rate_sweep, sweep

__all__ = [
    "HeldOutGain",
    "Plan",
    "evaluate_table",
    "hourly_plan",
    "judge_plan",
    "load_sweep",
    "service_rate_sweep",
    "sweep",
]
