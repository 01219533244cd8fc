"""A road network, and the energy to drive it.

`network` holds road edges and legal turns, checked once, with shortest paths; `_sumo`, `_osm` and `_file` read one from the
formats of SUMO, OpenStreetMap and emsopt itself; `energy` is what an electric car needs on an edge.
"""

from . import energy
from .network import RoadNetwork, grid_roads

__all__ = ["RoadNetwork", "energy", "grid_roads"]
