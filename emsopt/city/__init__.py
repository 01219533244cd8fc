"""A city, and the deployments of its units.

`city` holds validated demand, candidate sites and times; `tables` builds a city from tables or a folder of plain files;
`travel` computes distances and describes how times vary; `deployment_space` defines and checks the allowed deployments.
"""

from .city import City
from .deployment_space import DeploymentSpace

__all__ = ["City", "DeploymentSpace"]
