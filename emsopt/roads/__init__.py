"""Road networks, and the energy to drive on them.

`network` holds validated road edges and legal turns and finds shortest paths; `_sumo`, `_osm` and `_file`
read networks in the formats of SUMO, OpenStreetMap and emsopt; `energy` computes the energy use of an
electric car.
"""

from . import energy
from .network import RoadNetwork, grid_roads

__all__ = ["RoadNetwork", "energy", "grid_roads"]
