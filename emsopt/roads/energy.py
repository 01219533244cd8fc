r"""Energy use of an electric car on road edges, and standardised contexts (length, speed limit, incline) of edges.

The energy is equation (8) of "Bayesian Analysis of Combinatorial Gaussian Process Bandits", with the parameters of its
Table 2. The car drives at the speed limit along the whole edge.

.. math:: E = (m g \ell \sin α + m g C_r \ell \cos α + \tfrac12 C_d A ρ \ell v^2) \,/\, (3600 η)

===========  =====================  ===========================================================================
symbol       name                   meaning
===========  =====================  ===========================================================================
E            -                      energy taken from the battery, Wh; negative if braking returns energy
ℓ, v, α      ``lengths`` ...        length (m), speed (m/s), incline (rad, upward positive)
m, g         MASS, GRAVITY          1830 kg, 9.82 m/s²
C_r          ROLLING                rolling resistance coefficient, 0.01
A, C_d       FRONT_AREA, DRAG       front surface, 2.6 m²; air drag coefficient, 0.35
ρ            AIR_DENSITY            1.2 kg/m³
η⁺, η⁻       DRIVE_EFFICIENCY ...   0.98; RECUPERATION_EFFICIENCY 0.96
===========  =====================  ===========================================================================

The equation as printed divides by η for either sign of the energy. Dividing a negative energy by 0.96 would return more
energy to the battery than the wheels supply. Here positive energy at the wheels is therefore divided by η⁺, and
negative energy is multiplied by η⁻. Turns, stops, acceleration, heating and traffic are ignored.
"""

from typing import Any

import numpy as np

from .._types import ArrayLike, FloatArray
from .._validate import one_each, real_array

J_PER_WH = 3600.0
INCLINES: dict[str, Any] = {"unit": "rad, not degrees", "low": -1.57, "high": 1.57}  # from straight down to straight up
MASS, GRAVITY = 1830.0, 9.82  # Table 2, in the units of the table above
ROLLING, FRONT_AREA, DRAG, AIR_DENSITY = 0.01, 2.6, 0.35, 1.2
DRIVE_EFFICIENCY, RECUPERATION_EFFICIENCY = 0.98, 0.96


def edge_energy(lengths: ArrayLike, speeds: ArrayLike, inclines: ArrayLike = 0.0) -> FloatArray:
    """Return the energy that a car takes from its battery on each edge, by the equation in the module's docstring.

    Parameters
    ----------
    lengths : array_like, shape (E,)
        m, positive.
    speeds : array_like, shape (E,)
        m/s, not negative.
    inclines : array_like, shape (E,), or float
        rad, upward positive.

    Returns
    -------
    ndarray, shape (E,)
        Wh; negative if more energy is recovered than spent.

    Examples
    --------
    100 m at 50 km/h: on level ground, and downhill at 0.05 rad, about 5 %.

    >>> edge_energy([100.0, 100.0], [13.89, 13.89], [0.0, -0.05]).round(3).tolist()
    [8.08, -16.356]
    """
    lengths = real_array(lengths, "lengths", (None,), unit="m", low=0.0, strictly=True)
    speeds = real_array(speeds, "speeds", lengths.shape, unit="m/s", low=0.0)
    inclines = one_each(inclines, "inclines", len(lengths), **INCLINES)
    weight = MASS * GRAVITY
    climbing = weight * np.sin(inclines)  # the three terms of (8), in the order printed
    rolling = weight * ROLLING * np.cos(inclines)
    drag = 0.5 * DRAG * FRONT_AREA * AIR_DENSITY * speeds**2
    at_wheels = lengths * (climbing + rolling + drag) / J_PER_WH
    # other than (8) as printed: see above
    return np.where(at_wheels > 0, at_wheels / DRIVE_EFFICIENCY, at_wheels * RECUPERATION_EFFICIENCY)


def potential_energy(lengths: ArrayLike, inclines: ArrayLike = 0.0) -> FloatArray:
    """Return c m g Δh of edges, Wh: the change of potential energy, scaled by the mean c of the car's efficiencies.

    If inclines follow from heights of junctions, the sum is the same for all paths between two edges. Subtracting it
    from every edge therefore changes no comparison of paths. Here c = (0.98 + 0.96) / 2 = 0.97. For c between
    η⁻ and 1/η⁺ an edge's energy by `edge_energy` minus this is positive.

    Examples
    --------
    >>> speeds, inclines = [13.89, 13.89], [0.05, -0.05]
    >>> (edge_energy([100.0, 100.0], speeds, inclines) - potential_energy([100.0, 100.0], inclines)).round(2).tolist()
    [9.33, 7.84]
    """
    lengths = real_array(lengths, "lengths", (None,), unit="m", low=0.0, strictly=True)
    rise = lengths * np.sin(one_each(inclines, "inclines", len(lengths), **INCLINES))
    return 0.5 * (DRIVE_EFFICIENCY + RECUPERATION_EFFICIENCY) * MASS * GRAVITY * rise / J_PER_WH


def unit_variance(columns: ArrayLike) -> FloatArray:
    """Standardise columns, shape (E, d), to mean 0 and standard deviation 1; a constant column becomes zero.

    The paper standardises the length, speed limit and incline of edges in this way.

    Examples
    --------
    >>> unit_variance([[1.0, 7.0], [3.0, 7.0]]).tolist()
    [[-1.0, 0.0], [1.0, 0.0]]
    """
    columns = real_array(columns, "columns", (None, None))
    centred = columns - columns.mean(axis=0)
    spread = columns.std(axis=0)
    # the mean of equal numbers may have a rounding error, which must not be scaled up to unit variance
    constant = spread <= 1e-12 * np.abs(columns).max(axis=0)
    return np.where(constant, 0.0, centred / np.where(constant, 1.0, spread))
