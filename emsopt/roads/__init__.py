"""Road networks, and the energy to drive on them.

`network` holds validated road edges and legal turns, `line_graph` finds shortest paths and closures on them;
`snapping` finds the roads nearest to points and `quickest` the times between many of them; `grid` makes networks for
teaching and tests; `_sumo`, `_osm` and `_tables` read networks of SUMO, OpenStreetMap and tables; `energy` computes the
energy use of an electric car.
"""

from . import energy
from .grid import grid_roads
from .network import RoadNetwork

__all__ = ["RoadNetwork", "energy", "grid_roads"]
