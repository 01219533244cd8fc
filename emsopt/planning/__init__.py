"""What a planner asks of an optimum: at other loads, and hour by hour.

`sweeps` finds the best deployment at every load or service rate; `hourly` plans the hours of a day with few moves (`_walk`
pairs the units); `scenarios` are rows of a table that people open in a spreadsheet.
"""

from .hourly import Plan, hourly_plan
from .sweeps import evaluate_table, load_sweep, service_rate_sweep, sweep

__all__ = ["Plan", "evaluate_table", "hourly_plan", "load_sweep", "service_rate_sweep", "sweep"]
