"""A city, and where its units may stand.

`city` holds demand, candidate sites and times, checked once; `tables` makes a city of tables or of a folder of plain files;
`travel` turns distances into minutes; `deployment` says which deployments are allowed, and checks those that are given.
Data flow one way: tables and travel times -> `City`; `City` and a number of units -> `DeploymentSpace`.
"""

from .city import City
from .deployment import DeploymentSpace

__all__ = ["City", "DeploymentSpace"]
