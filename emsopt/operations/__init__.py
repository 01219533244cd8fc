"""Operations beyond the hypercube model: priorities, transport, shifts, and rules of dispatch and relocation.

`simulate` plays priorities, transport, trips home, shifts, redispatch and relocation, for a `System` (calls and units)
and a `Policy` (dispatch and relocation). `OperationsObjective` hands it to every optimizer of deployments. `compare`
measures how much two of them differ on the same calls, and `best_table` searches a compliance table. `best_offsets`
searches dispatch that is not closest, and `optimal_dispatch` is its yardstick for small fleets.
"""

from .comparison import compare
from .optimal_dispatch import optimal_dispatch
from .policy import Policy
from .searches import OperationsObjective, best_offsets, best_table
from .simulation import Operations as Operations
from .simulation import simulate
from .system import Duration, Priority, System

__all__ = [
    "Duration",
    "OperationsObjective",
    "Policy",
    "Priority",
    "System",
    "best_offsets",
    "best_table",
    "compare",
    "optimal_dispatch",
    "simulate",
]
