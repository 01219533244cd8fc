"""Optimal deployments at several loads, and plans with a deployment for each hour.

`sweeps` finds the best deployment at each load or service rate; `hourly` plans a deployment for each hour of
a day with few moves of units (`_moves` finds the cheapest sequence); `scenarios` builds the rows of
tables for spreadsheets.
"""

from .hourly import Plan, hourly_plan
from .sweeps import evaluate_table, load_sweep, service_rate_sweep, sweep

__all__ = ["Plan", "evaluate_table", "hourly_plan", "load_sweep", "service_rate_sweep", "sweep"]
