"""Operations: priorities, transport, returns, shifts, dispatch and relocation, simulated."""

from .policy import Policy
from .simulation import Operations, simulate
from .system import Duration, Priority, System

__all__ = ["Duration", "Operations", "Policy", "Priority", "System", "simulate"]
