"""Interactive maps of results: self-contained pages, and live maps as widgets.

`deployments` shows deployments of a city, `roads` shows where agents drove on a road network, and `replays` plays a day
of calls. Each returns a page that displays in a notebook and is saved as one HTML file; `live` turns it into a widget,
which takes new results and reports clicks. The page of `sheets` computes its results itself. `frames` returns
GeoDataFrames and folium maps. What all pages share is in `_page`, colours are in `_colours`.
"""

from .deployments import DeploymentMap as DeploymentMap
from .deployments import deployment_map
from .frames import atoms_frame, folium_map, sites_frame
from .replays import replay_map
from .roads import exploration_map
from .sheets import live_sheet

__all__ = ["atoms_frame", "deployment_map", "exploration_map", "folium_map", "live_sheet", "replay_map", "sites_frame"]
