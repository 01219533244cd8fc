"""Operations: priorities, transport, returns, shifts, dispatch and relocation, simulated."""

from .objective import OperationsObjective
from .policy import Policy
from .simulation import Operations, simulate
from .system import Duration, Priority, System

__all__ = ["Duration", "Operations", "OperationsObjective", "Policy", "Priority", "System", "simulate"]
