r"""Energy use of an electric car on road edges, and the inclines of edges on a terrain, on which it depends.

The energy is equation (8) of "Bayesian Analysis of Combinatorial Gaussian Process Bandits", with the parameters of its
Table 2. The car drives at the speed limit along the whole edge.

.. math:: E = (m g \ell \sin α + m g C_r \ell \cos α + \tfrac12 C_d A ρ \ell v^2) \,/\, (3600 η)

===========  ===============================  ==========================================================================
symbol       name                             meaning
===========  ===============================  ==========================================================================
E            -                                energy taken from the battery, Wh; negative if braking returns energy
ℓ, v, α      ``lengths`` ...                  length (m), speed (m/s), incline (rad, upward positive)
m, g         MASS_KG, GRAVITY                 1830 kg, 9.82 m/s²
C_r          ROLLING_COEFFICIENT              rolling resistance coefficient, 0.01
A, C_d       FRONT_AREA_M2, DRAG_COEFFICIENT  front surface, 2.6 m²; air drag coefficient, 0.35
ρ            AIR_DENSITY                      1.2 kg/m³
η⁺, η⁻       DRIVE_EFFICIENCY ...             0.98; RECUPERATION_EFFICIENCY 0.96
===========  ===============================  ==========================================================================

The equation as printed divides by η for either sign of the energy. Dividing a negative energy by 0.96 would return more
energy to the battery than the wheels supply. Here positive energy at the wheels is therefore divided by η⁺, and
negative energy is multiplied by η⁻. Turns, stops, acceleration, heating and traffic are ignored.

Inclines follow from one height per junction and the length of the edge, so that a closed loop gains no height. They are
constant in tunnels and on bridges, and nowhere steeper than `MAX_INCLINE_RAD`.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import spsolve

from ..errors import InputError
from ..errors._types import ArrayLike, BoolArray, FloatArray, IntArray
from ..errors._validate import array_of_length, quote, real_array

J_PER_WH = 3600.0
INCLINE_RANGE: dict[str, Any] = {"unit": "rad, not degrees", "low": -1.57, "high": 1.57}  # straight down and up
MASS_KG, GRAVITY = 1830.0, 9.82  # Table 2, in the units of the table above
ROLLING_COEFFICIENT, FRONT_AREA_M2, DRAG_COEFFICIENT, AIR_DENSITY = 0.01, 2.6, 0.35, 1.2
DRIVE_EFFICIENCY, RECUPERATION_EFFICIENCY = 0.98, 0.96
MAX_INCLINE_RAD = 0.35  # rad, 36 %: as steep as the steepest streets in the world


def edge_energy(lengths: ArrayLike, speeds: ArrayLike, inclines: ArrayLike = 0.0) -> FloatArray:
    """Return the energy (Wh) that a car takes from its battery on each edge, shape (E,), negative if it recovers more.

    Parameters
    ----------
    lengths : array_like, shape (E,)
        m, positive.
    speeds : array_like, shape (E,)
        m/s, not negative.
    inclines : array_like, shape (E,), or float
        rad, upward positive.

    Examples
    --------
    100 m at 50 km/h: on level ground, and downhill at 0.05 rad, about 5 %.

    >>> edge_energy([100.0, 100.0], [13.89, 13.89], [0.0, -0.05]).round(3).tolist()
    [8.08, -16.356]
    """
    lengths = real_array(lengths, "lengths", (None,), unit="m", low=0.0, strictly=True)
    speeds = real_array(speeds, "speeds", lengths.shape, unit="m/s", low=0.0)
    inclines = array_of_length(inclines, "inclines", len(lengths), **INCLINE_RANGE)
    weight = MASS_KG * GRAVITY
    climbing = weight * np.sin(inclines)  # the three terms of (8), in the order printed
    rolling = weight * ROLLING_COEFFICIENT * np.cos(inclines)
    drag = 0.5 * DRAG_COEFFICIENT * FRONT_AREA_M2 * AIR_DENSITY * speeds**2
    at_wheels = lengths * (climbing + rolling + drag) / J_PER_WH
    # other than (8) as printed: see above
    return np.where(at_wheels > 0, at_wheels / DRIVE_EFFICIENCY, at_wheels * RECUPERATION_EFFICIENCY)


def potential_energy(lengths: ArrayLike, inclines: ArrayLike = 0.0) -> FloatArray:
    """Return the change of the car's potential energy on each edge (Wh), shape (E,), times its mean efficiency c.

    If inclines follow from heights of junctions, the sum is the same for all paths between two edges. Subtracting it
    from every edge therefore changes no comparison of paths. As c = (0.98 + 0.96) / 2 lies between η⁻ and 1/η⁺, an
    edge's energy by `edge_energy` minus this is positive.

    Examples
    --------
    >>> speeds, inclines = [13.89, 13.89], [0.05, -0.05]
    >>> (edge_energy([100.0, 100.0], speeds, inclines) - potential_energy([100.0, 100.0], inclines)).round(2).tolist()
    [9.33, 7.84]
    """
    lengths = real_array(lengths, "lengths", (None,), unit="m", low=0.0, strictly=True)
    rise = lengths * np.sin(array_of_length(inclines, "inclines", len(lengths), **INCLINE_RANGE))
    return 0.5 * (DRIVE_EFFICIENCY + RECUPERATION_EFFICIENCY) * MASS_KG * GRAVITY * rise / J_PER_WH


def standardize_columns(columns: ArrayLike) -> FloatArray:
    """Return columns, shape (E, d), scaled to mean 0 and standard deviation 1; a constant column becomes zero.

    Examples
    --------
    >>> standardize_columns([[1.0, 7.0], [3.0, 7.0]]).tolist()
    [[-1.0, 0.0], [1.0, 0.0]]
    """
    columns = real_array(columns, "columns", (None, None))
    centred = columns - columns.mean(axis=0)
    spread = columns.std(axis=0)
    constant = spread <= 1e-12 * np.abs(columns).max(axis=0)  # rounding errors must not be scaled up
    return np.where(constant, 0.0, centred / np.where(constant, 1.0, spread))


def terrain_inclines(
    heights: Callable[[FloatArray], ArrayLike] | None,
    places: FloatArray,
    nodes: IntArray,
    lengths: FloatArray,
    elevated: BoolArray,
) -> tuple[FloatArray, list[str]]:
    """Return the incline of each edge (rad, upward positive), shape (E,), and notes on heights that were changed.

    ``heights`` is a function from longitude and latitude, shape (n, 2), to metres, shape (n,), or None. ``places``,
    shape (E, 2, 2), and ``nodes``, shape (E, 2), are the coordinates and the numbers of the junctions at the start and
    end of each edge; ``lengths`` (m) and ``elevated`` (tunnels and bridges) have shape (E,).
    """
    if heights is None:
        return np.zeros(len(lengths)), ["The file has no heights: incline 0."]
    _, index, inverse = np.unique(nodes, return_index=True, return_inverse=True)
    ends = inverse.reshape(-1, 2)
    if not callable(heights):
        raise InputError(f"`heights` must be a function of longitude and latitude; got {quote(heights)}.")
    ground = real_array(heights(places.reshape(-1, 2)[index]), "heights(places)", index.shape, unit="m")
    level = _interpolate_elevated(ground, ends, lengths, elevated)
    most = lengths * np.sin(MAX_INCLINE_RAD)  # lengths are along the slope, so that a rise is a sine
    rises, notes = np.diff(level[ends])[:, 0], []
    if steep := np.count_nonzero(np.abs(rises) > most):
        smooth = _limit_slopes(level, ends, most)
        moved = np.abs(smooth - level)
        rises = np.clip(np.diff(smooth[ends])[:, 0], -most, most)  # removes rounding errors
        notes.append(
            f"{steep} edges would be steeper than {MAX_INCLINE_RAD:g} rad: heights of {np.count_nonzero(moved > 0.5)} "
            f"junctions are moved so that none is, by {moved.max():.0f} m at most."
        )
    return np.arcsin(rises / lengths), notes


def _limit_slopes(level: FloatArray, ends: IntArray, most: FloatArray) -> FloatArray:
    """Return heights of junctions (m) near ``level``, with a rise or fall of at most ``most`` (m) on every edge."""
    start, end = np.concatenate([ends, ends[:, ::-1]]).T
    rise = np.tile(most, 2)

    # The highest heights below the given ones, and the lowest above them, both meet the limit, and so does their mean.
    def lower_heights(height: FloatArray) -> FloatArray:
        lowest = height.copy()
        while (lowest[end] > lowest[start] + rise).any():  # ends, as all limits are above 0
            np.minimum.at(lowest, end, lowest[start] + rise)
        return lowest

    return (lower_heights(level) - lower_heights(-level)) / 2


def _interpolate_elevated(ground: FloatArray, ends: IntArray, lengths: FloatArray, elevated: BoolArray) -> FloatArray:
    """Return heights of junctions (m): the ground's or, in tunnels and on bridges, interpolated between the portals."""
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
