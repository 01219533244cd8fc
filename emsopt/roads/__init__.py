"""Road networks, and the energy to drive on them.

`network` holds road edges and legal turns, and makes grids for teaching; `shortest_paths` finds paths; `snapping` finds
the roads nearest to points and `travel_times` the driving times between them; `_sumo`, `_osm` and `_tables` read files;
`energy` computes the energy use of an electric car.
"""

from . import energy
from .network import RoadNetwork, grid_roads

__all__ = ["RoadNetwork", "energy", "grid_roads"]
