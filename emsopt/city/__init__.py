"""A city, and the deployments of its units.

`city` holds validated demand, candidate sites and times; `tables` builds a city from tables or a folder of
plain files; `travel` converts distances to minutes; `response_law` describes how times vary; `deployment_space`
defines and checks the allowed deployments. Data flow in one direction: tables and travel times give a `City`; a
`City` and a number of units give a `DeploymentSpace`.
"""

from .city import City
from .deployment_space import DeploymentSpace

__all__ = ["City", "DeploymentSpace"]
