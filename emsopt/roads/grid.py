"""Road networks of rectangular blocks, for teaching and tests."""

import numpy as np

from .. import _validate
from .._types import Rng
from .line_graph import legal_turns
from .network import RoadNetwork

ARTERIAL_M_S, RESIDENTIAL_M_S = 70 / 3.6, 50 / 3.6
ARTERIAL_EVERY = 3
BLOCK_M = 100.0


def grid_roads(
    rows: int = 6, columns: int = 6, *, jitter: float = 0.0, relief: float = 0.0, rng: Rng = None
) -> RoadNetwork:
    """Return a network of square blocks of 100 m.

    Every third street is an arterial at 70 km/h, the others are residential at 50 km/h. All turns are legal, except
    that U-turns are legal at dead ends only.

    Parameters
    ----------
    rows, columns : int
        Number of junctions from north to south and from west to east; at least 1, and at least 2 in one direction.
    jitter : float
        Largest random shift of a junction to the east, west, north or south, as a fraction of a block, from 0 to 0.4.
    relief : float
        Upper bound on the heights of junctions in metres; heights are at least 0 and vary smoothly.
    rng : int, Generator or None
        Source of randomness for jitter and heights.

    Returns
    -------
    RoadNetwork
        In metres, not geographic, with ids such as ``"r0c0-r0c1"``.

    Examples
    --------
    >>> net = grid_roads(3, 4)
    >>> net
    <RoadNetwork 'grid 3 x 4': 34 edges, 68 connections, 3.4 km>
    >>> path = net.shortest_path(net.lengths, "r0c0-r0c1", "r0c2-r0c3")
    >>> [net.ids[edge] for edge in path]
    ['r0c0-r0c1', 'r0c1-r0c2', 'r0c2-r0c3']
    """
    rng = _validate.generator(rng)
    rows = _validate.whole_number(rows, "rows")
    columns = _validate.whole_number(columns, "columns", low=1 if rows > 1 else 2)
    relief = _validate.positive_number(relief, "relief", "m", zero=True)
    jitter = _validate.finite_number(jitter, "jitter", 0, 0.4)
    row, column = np.divmod(np.arange(rows * columns), columns)
    places = np.column_stack([column, -row]) + rng.uniform(-jitter, jitter, (rows * columns, 2))  # row 0 is north
    waves, phases = rng.uniform(-0.7, 0.7, (4, 2)), rng.uniform(0, 2 * np.pi, 4)
    heights = relief * (1 + np.sin(places @ waves.T + phases).mean(axis=1)) / 2  # the mean is in [-1, 1]
    places = places * BLOCK_M

    number = np.arange(rows * columns)
    east, south = number[column + 1 < columns], number[row + 1 < rows]
    pairs = np.column_stack([np.append(east, south), np.append(east + 1, south + columns)])
    pairs = pairs[np.argsort(pairs[:, 0], kind="stable")]  # by junction, to the east first
    ends = np.stack([pairs, pairs[:, ::-1]], axis=1).reshape(-1, 2)  # both directions
    tails, heads = ends.T
    rise = heights[heads] - heights[tails]
    across = np.hypot(*(places[heads] - places[tails]).T)
    arterial = np.where(row[tails] == row[heads], row[tails], column[tails]) % ARTERIAL_EVERY == 0
    return RoadNetwork(
        np.hypot(across, rise),  # along the slope
        np.where(arterial, ARTERIAL_M_S, RESIDENTIAL_M_S),
        legal_turns(tails, heads),
        inclines=np.arctan2(rise, across),
        ids=[f"r{row[a]}c{column[a]}-r{row[b]}c{column[b]}" for a, b in ends],
        classes=np.where(arterial, "arterial", "residential").tolist(),
        polylines=list(places[ends]),
        name=f"grid {rows} x {columns}",
    )
