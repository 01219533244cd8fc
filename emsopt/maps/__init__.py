"""Interactive maps of results as self-contained pages.

`deployments` shows deployments of a city, and `roads` shows where agents drove on a road network. `frames`
returns GeoDataFrames and folium maps to combine with other layers. Each page is a template filled with data
(`_page`), with colours from `_colours`; no results are computed here.
"""

from .deployments import DeploymentMap, deployment_map
from .frames import atoms_frame, folium_map, sites_frame
from .roads import exploration_map

__all__ = ["DeploymentMap", "atoms_frame", "deployment_map", "exploration_map", "folium_map", "sites_frame"]
