"""Operations beyond the hypercube model: priorities, transport, shifts, and rules of dispatch and relocation.

`simulate` simulates a `System` (calls, units, times) under a `Policy` (dispatch and relocation).
"""

from .comparison import compare
from .optimal_dispatch import optimal_dispatch
from .policy import Policy
from .searches import OperationsObjective, best_offsets, best_table
from .simulation import Operations as Operations
from .simulation import simulate
from .system import Duration, Priority, System

__all__ = ["Duration", "OperationsObjective", "Policy", "Priority", "System", "best_offsets", "best_table", "compare"]
__all__ += ["optimal_dispatch", "simulate"]
