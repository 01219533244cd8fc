r"""A garden sprinkler: range, rotation speed and water consumption (Siebertz et al. 2010).

The stationary speed of the head is computed by iteration from a first estimate. The flight of one drop with drag is
computed by explicit Euler steps of 5 ms.

======  ======================  ==========================================================================
symbol  unit                    meaning
======  ======================  ==========================================================================
α, β    deg                     vertical and tangential angle of the nozzles; in the code c = cos α cos β
A       m²                      area of a nozzle
d       m                       diameter of the head; r = d / 2
M_c     N m                     dry friction torque
M_v     N m s                   friction torque per unit of speed
p       bar                     pressure
D_l     mm                      inner diameter of the hose
ω, n    rad/s, 1/s              angular speed, turns per second
v       m/s                     speed of the jet
======  ======================  ==========================================================================

Limits. Because of the Euler steps the range jumps by up to 0.016 m between neighbouring points, and its numerical
gradients are meaningless. In about a fifth of the box the head does not turn and the speed is exactly 0.

References
----------
Siebertz, K., van Bebber, D. and Hochkirchen, T. (2010). Statistische Versuchsplanung. Springer.
"""

from functools import partial
from math import cos, pi, sin, sqrt

import numpy as np
from numba import njit

from ..errors import _validate
from ..errors._types import FloatArray, Rng
from .problem import Problem

WATER_DENSITY, AIR_DENSITY = 1000.0, 1.25  # densities in kg/m³: units are SI, but for angles, pressure and hose
VISCOSITY = 1.82e-5 / 1.25  # kinematic: dynamic viscosity of air over AIR_DENSITY, m²/s
GRAVITY = 10.0  # m/s², as in the source, not 9.81
TIME_STEP = 0.005  # seconds; a finer step would be another function, with another best value
MAX_STEPS = 10_000
BOUNDS = [(0, 90), (0, 90), (2e-6, 4e-6), (0.1, 0.2), (0.01, 0.02), (0.01, 0.02), (1, 2), (5, 10)]
VARIABLES = ("alpha", "beta", "area", "head_diameter", "dry_friction", "speed_friction", "pressure", "hose_diameter")
BEST_KNOWN = {
    "consumption": ("min", 3.307287347516459, [45, 90, 2e-6, 0.15, 0.015, 0.015, 1, 5]),
    "range": ("max", 8.335760843396399, [32.06937, 90, 4e-6, 0.15, 0.015, 0.015, 2, 10]),
    "speed": ("max", 19.83071919096241, [0, 0, 4e-6, 0.2, 0.01, 0.01, 2, 9.68683]),
}
"""Sense, best known value and a point that attains it, by output. The points for range and speed keep a small distance
from the discontinuity next to the optimum, because of rounding errors; this changes the value by less than 1e-6."""


def sprinkler(output: str = "range", *, noise_sd: float = 0.0, rng: Rng = None) -> Problem:
    """Return the garden sprinkler problem with 8 inputs.

    Bounds: alpha and beta 0 to 90 deg, area 2e-6 to 4e-6 m², head_diameter 0.1 to 0.2 m, dry_friction 0.01 to 0.02 N m,
    speed_friction 0.01 to 0.02 N m s, pressure 1 to 2 bar, hose_diameter 5 to 10 mm. The best known values come from
    long searches; they are not proven optimal.

    Parameters
    ----------
    output : str
        "range" (m), to be maximised, best known 8.3358; "consumption" (l/min), to be minimised; or "speed" (turns per
        second), to be maximised.
    noise_sd, rng
        As in `forrester`.

    Examples
    --------
    >>> sprinkler("range")
    <Problem sprinkler range: 8 inputs, max 8.33576>
    """
    column = list(BEST_KNOWN).index(_validate.choice(output, "output", tuple(BEST_KNOWN)))
    function = partial(_compute_output, column)  # which can be pickled, unlike a lambda
    return Problem(f"sprinkler {output}", function, BOUNDS, *BEST_KNOWN[output], noise_sd, rng, VARIABLES)


@njit(cache=True, nogil=True)
def _compute_output(column: int, points: FloatArray) -> FloatArray:
    """Return consumption (l/min), range (m) or speed (1/s), (n,), for ``column`` 0, 1 or 2, at points, (n, 8)."""
    result = np.empty(len(points))
    for k in range(len(points)):
        alpha, beta, area, diameter, dry, viscous, bar, hose = points[k]
        alpha, beta = alpha * pi / 180, beta * pi / 180
        turns, jet, relative = _rotation(cos(alpha) * cos(beta), area, diameter / 2, dry, viscous, 1e5 * bar, hose)
        result[k] = (2 * relative * area * 60_000, _flight_range(jet, alpha, area), turns)[column]  # two nozzles
    return result


@njit(cache=True, nogil=True)
def _rotation(
    c: float, area: float, radius: float, dry: float, viscous: float, pressure: float, hose: float
) -> tuple[float, float, float]:
    """Return turns per second, and speeds of the jet (m/s) over ground and from the nozzle; SI units, hose in mm."""
    # an empirical law for a hose in mm and flows in l/min, hence 60 000²
    resistance = 10 ** (5.0704 - 0.579413 * hose + 0.0196432 * hose**2) * 60_000.0**2
    imbalance = 2 * WATER_DENSITY * area * radius * 2 * GRAVITY * 1e-4 * pressure * c
    turns = 0.1 * abs(imbalance - dry) / (viscous + 5e-4)  # a first estimate only; the loop below corrects it
    omega = 2 * pi * turns
    friction = dry + omega * viscous
    lost_turning = abs(friction * omega) / (area * sqrt(2 * pressure / WATER_DENSITY))
    lost_in_hose = 0.1 * pressure
    flow = sqrt(pressure / (resistance + WATER_DENSITY / (8 * area**2)))
    jet = relative = flow / (2 * area)
    torque = WATER_DENSITY * flow * radius * jet * c
    if torque <= dry:  # the head does not start to turn
        return 0.0, jet, relative
    for _ in range(MAX_STEPS):
        if abs(imbalance) <= 0.005 * abs(torque):  # the torques balance to half a percent: the speed is stationary
            break
        turns = omega / (2 * pi)
        friction = dry + turns * viscous  # turns here, but radians in the first estimate, as in the source
        rim = omega * radius
        effective = pressure - lost_turning - lost_in_hose
        if effective < 0.01 * pressure:  # no pressure is left for the jet
            jet = 0.0
            break
        jet = sqrt(2 * effective / WATER_DENSITY)
        if (jet * rim * c) ** 2 < 1:
            break
        relative = rim * c + sqrt(jet**2 + rim**2 * (c**2 - 1))
        torque = 2 * WATER_DENSITY * relative * area * radius * (relative * c - rim)
        imbalance = torque - friction
        step = 1 + 0.1 * min(abs(imbalance / torque), 0.5 * effective / pressure)  # at most 5 %, less near balance
        omega = omega / step if imbalance < 0 else omega * step
        flow = 2 * relative * area
        lost_turning = abs(friction * omega) / flow
        lost_in_hose = resistance * flow**2
        if omega < 0.0062:  # a thousandth of a turn per second counts as standing
            turns = 0.0
            break
    return turns, jet, relative


@njit(cache=True, nogil=True)
def _flight_range(speed: float, angle: float, area: float) -> float:
    """Return the range (m) of a drop with initial speed (m/s) and angle (rad), as wide as a nozzle of area (m²)."""
    diameter = sqrt(4 * area / pi)
    mass = WATER_DENSITY * pi * diameter**3 / 6
    x, height = 0.0, 0.001
    along, up = speed * cos(angle), speed * sin(angle)
    while height > 0:
        speed = sqrt(along**2 + up**2)
        if speed < 0.01:
            break
        reynolds = speed * diameter / VISCOSITY
        drag = 24 / reynolds * (1 + 0.11 * sqrt(reynolds)) ** 2
        slowing = AIR_DENSITY / 2 * speed**2 * pi / 4 * diameter**2 * drag / mass
        x += along * TIME_STEP  # moves with the old velocity: explicit Euler, as in the source
        height += up * TIME_STEP
        along, up = along - slowing * along / speed * TIME_STEP, up - (slowing * up / speed + GRAVITY) * TIME_STEP
    return x
