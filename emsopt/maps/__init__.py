"""Results as interactive pages that carry all they need.

`deployments` shows deployments of a city, `roads` where agents drove; `frames` hands out GeoDataFrames and folium maps for
layers of one's own. Every page is a template with data (`_page`), shaded by `_shading`; nothing is computed here.
"""

from .deployments import deployment_map
from .frames import atoms_frame, folium_map, sites_frame
from .roads import exploration_map

__all__ = ["atoms_frame", "deployment_map", "exploration_map", "folium_map", "sites_frame"]
