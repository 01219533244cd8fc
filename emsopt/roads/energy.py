r"""How much energy an electric car needs for a road edge, and the contexts that edges are compared by.

Equation (8) of "Bayesian Analysis of Combinatorial Gaussian Process Bandits", with the parameters of its Table 2: the
car keeps the speed limit from one end of the edge to the other.

.. math:: E = (m g \ell \sin α + m g C_r \ell \cos α + \tfrac12 C_d A ρ \ell v^2) \,/\, (3600 η)

===========  =====================  ===========================================================================
symbol       name                   meaning
===========  =====================  ===========================================================================
E            -                      Wh that leave the battery; negative where braking returns some
ℓ, v, α      ``lengths`` ...        length (m), speed (m/s), incline (rad, upward positive)
m, g         ``mass``, ``gravity``  1830 kg, 9.82 m/s²
C_r          ``rolling``            rolling resistance coefficient, 0.01
A, C_d       ``front_area`` ...     front surface, 2.6 m²; air drag coefficient, 0.35
ρ            ``air_density``        1.2 kg/m³
η⁺, η⁻       ``drive_efficiency``   0.98; ``recuperation_efficiency`` 0.96
===========  =====================  ===========================================================================

The printed form divides by η whatever the sign. Dividing a negative energy by 0.96 would put more into the battery than
the wheels give back, so that here the wheels' positive energy is divided by η⁺ and their negative energy is multiplied
by η⁻. Turns, stops, acceleration, heating and traffic are left out.
"""

from dataclasses import dataclass, fields

import numpy as np

from .._validate import instance, positive_number, real_array
from ..errors import InputError

J_PER_WH = 3600.0


@dataclass(frozen=True, kw_only=True)
class Vehicle:
    """A car and the air around it; the defaults are Table 2's.

    Parameters
    ----------
    mass : float
        kg.
    rolling : float
        Rolling resistance coefficient.
    front_area : float
        m².
    drag : float
        Air drag coefficient.
    drive_efficiency, recuperation_efficiency : float
        Part of the battery's energy that reaches the wheels, and of the wheels' that comes back; above 0, at most 1.
    gravity : float
        m/s².
    air_density : float
        kg/m³.
    """

    mass: float = 1830.0
    rolling: float = 0.01
    front_area: float = 2.6
    drag: float = 0.35
    drive_efficiency: float = 0.98
    recuperation_efficiency: float = 0.96
    gravity: float = 9.82
    air_density: float = 1.2

    def __post_init__(self):
        for entry in fields(self):
            value = positive_number(getattr(self, entry.name), entry.name)
            if entry.name.endswith("efficiency") and value > 1:
                msg = f"`{entry.name}` is a part of the energy, at most 1; got {value:g}."
                raise InputError(msg)


def edge_energy(lengths, speeds, inclines=0.0, *, vehicle=None):
    """Return the energy for each edge, equation (8).

    Parameters
    ----------
    lengths : array_like, shape (E,)
        m, positive.
    speeds : array_like, shape (E,)
        m/s, not negative.
    inclines : array_like, shape (E,), or float
        rad, upward positive.
    vehicle : Vehicle, optional
        The car of Table 2 if left out.

    Returns
    -------
    ndarray, shape (E,)
        Wh, negative where more comes back than is spent.

    Examples
    --------
    100 m at 50 km/h: on the flat, and down 0.05 rad, about 5 %.

    >>> edge_energy([100.0, 100.0], [13.89, 13.89], [0.0, -0.05]).round(3).tolist()
    [8.08, -16.356]
    """
    car = Vehicle() if vehicle is None else vehicle
    instance(car, "vehicle", Vehicle, "emsopt.roads.energy.Vehicle")
    lengths = real_array(lengths, "lengths", (None,), unit="m", low=0.0, strictly=True)
    speeds = real_array(speeds, "speeds", lengths.shape, unit="m/s", low=0.0)
    inclines = np.full(lengths.shape, inclines) if np.ndim(inclines) == 0 else inclines
    inclines = real_array(inclines, "inclines", lengths.shape, unit="rad")
    if (np.abs(inclines) >= np.pi / 2).any():
        msg = f"`inclines` must lie between -π/2 and π/2 rad; the steepest is {np.abs(inclines).max():g}. Convert degrees."
        raise InputError(msg)
    weight = car.mass * car.gravity
    climbing = weight * np.sin(inclines)
    rolling = weight * car.rolling * np.cos(inclines)
    drag = 0.5 * car.drag * car.front_area * car.air_density * speeds**2
    at_wheels = lengths * (climbing + rolling + drag) / J_PER_WH
    return np.where(at_wheels > 0, at_wheels / car.drive_efficiency, at_wheels * car.recuperation_efficiency)


def unit_variance(columns):
    """Return columns centred and scaled to variance 1; a constant column becomes zeros.

    The paper standardises length, speed limit and incline of the edges like this before it compares them.

    Parameters
    ----------
    columns : array_like, shape (E, d)

    Returns
    -------
    ndarray, shape (E, d)

    Examples
    --------
    >>> unit_variance([[1.0, 7.0], [3.0, 7.0]]).tolist()
    [[-1.0, 0.0], [1.0, 0.0]]
    """
    columns = real_array(columns, "columns", (None, None))
    centred = columns - columns.mean(axis=0)
    spread = columns.std(axis=0)
    # the mean of equal numbers may be off by a rounding error, which must not be blown up to variance 1
    constant = spread <= 1e-12 * np.abs(columns).max(axis=0)
    return np.where(constant, 0.0, centred / np.where(constant, 1.0, spread))
