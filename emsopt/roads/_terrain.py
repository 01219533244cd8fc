"""Inclines of roads on a terrain: constant in tunnels and on bridges, and nowhere steeper than `STEEPEST` (rad).

Inclines follow from one height per junction and the length of the edge, which ensures that a closed loop gains neither
height nor energy.
"""

from collections.abc import Callable

import numpy as np

from .._types import ArrayLike, BoolArray, FloatArray, IntArray
from .._validate import quote, real_array
from ..errors import InputError

STEEPEST = 0.35  # rad, 36 %: as steep as the steepest streets in the world


def terrain_inclines(
    heights: Callable[[FloatArray], ArrayLike],
    places: FloatArray,
    nodes: IntArray,
    lengths: FloatArray,
    elevated: BoolArray,
) -> tuple[FloatArray, list[str]]:
    """Return the incline of each edge between its ends (rad, upward positive), and notes on heights that were changed.

    ``heights`` is a function from longitude and latitude, shape (n, 2), to metres, shape (n,). For each edge there are
    the ``places``, shape (E, 2, 2), and numbers of the junctions, ``nodes``, at its start and end; its length (m); and
    whether it is a tunnel or a bridge, whose heights are interpolated between the portals.
    """
    if not callable(heights):
        raise InputError(f"`heights` must be a function of longitude and latitude; got {quote(heights)}.")
    _, index, inverse = np.unique(nodes, return_index=True, return_inverse=True)
    ends = inverse.reshape(-1, 2)
    ground = real_array(heights(places.reshape(-1, 2)[index]), "heights(places)", index.shape, unit="m")
    level = _straight_inside(ground, ends, lengths, elevated)
    most = lengths * np.sin(STEEPEST)  # lengths are along the slope, so that a rise is a sine
    rises, notes = np.diff(level[ends])[:, 0], []
    if steep := np.count_nonzero(np.abs(rises) > most):
        smooth = _no_steeper(level, ends, most)
        moved = np.abs(smooth - level)
        rises = np.clip(np.diff(smooth[ends])[:, 0], -most, most)  # removes rounding errors
        notes.append(
            f"{steep} edges would be steeper than {STEEPEST:g} rad: heights of {np.count_nonzero(moved > 0.5)} "
            f"junctions are moved so that none is, by {moved.max():.0f} m at most."
        )
    return np.arcsin(rises / lengths), notes


def _no_steeper(level: FloatArray, ends: IntArray, most: FloatArray) -> FloatArray:
    """Return heights near ``level`` such that no edge between two ``ends`` rises or falls by more than ``most`` m."""
    start, end = np.concatenate([ends, ends[:, ::-1]]).T
    rise = np.tile(most, 2)

    # The highest heights below the given ones, and the lowest above them, both meet the limit, and so does their mean.
    def below(height: FloatArray) -> FloatArray:
        lowest = height.copy()
        while (lowest[end] > lowest[start] + rise).any():  # ends, as all limits are above 0
            np.minimum.at(lowest, end, lowest[start] + rise)
        return lowest

    return (below(level) - below(-level)) / 2


def _straight_inside(ground: FloatArray, ends: IntArray, lengths: FloatArray, elevated: BoolArray) -> FloatArray:
    """Return the heights of junctions: the ground's, or interpolated between the portals in tunnels and on bridges."""
    from scipy import sparse
    from scipy.sparse.linalg import spsolve

    n = len(ground)
    streets = np.unique(np.sort(ends, axis=1), axis=0)
    # a junction is on the ground if one of its roads is, or if only one street ends there: an extract may cut a tunnel
    inside = np.bincount(streets.ravel(), minlength=n) != 1
    inside[ends[~elevated]] = False
    if not inside.any():
        return ground
    start, end = ends[elevated].T
    pull = 1 / lengths[elevated]  # heights between portals are then linear along the road
    graph = sparse.csr_array((np.r_[pull, pull], (np.r_[start, end], np.r_[end, start])), shape=(n, n))
    laplacian = sparse.csr_array(sparse.diags_array(graph.sum(axis=1)) - graph)
    level = ground.copy()
    held = laplacian[inside][:, ~inside] @ ground[~inside]
    # a tiny weight on the ground's height makes the system regular for tunnels without a portal
    system = laplacian[inside][:, inside] + 1e-9 * sparse.eye_array(inside.sum())
    level[inside] = spsolve(sparse.csc_array(system), 1e-9 * ground[inside] - held)
    return level
