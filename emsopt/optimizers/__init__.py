"""Search for the deployment that answers fastest."""

from .local_search import best_deployment, local_search
from .run import Run

__all__ = ["Run", "best_deployment", "local_search"]
