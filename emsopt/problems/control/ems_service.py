r"""Settings of an ambulance service: minutes of response time saved, minus the burden of each setting.

This example of control sets is not from a paper. A service tries some of five settings for a month, while the others
vary around their usual midpoint. Response times are computed for St. Paul with the approximate hypercube and units at
the sites of the p-median. On the unit cube, 0 is the slowest value of a setting and 1 the fastest:

==============  ============================  ==============================================================
setting         range                         what it does
==============  ============================  ==============================================================
``fleet``       7 to 12 units                 interpolated between whole numbers of units
``turnout``     2.75 to 0.75 min              time from call to departure
``relocation``  never to always               share of time in which free units are relocated to the best
                                              sites for their number while others are busy
``demand``      1.25 to 0.75 of the calls     the other callers are helped without an ambulance
``turnaround``  1.25 to 0.75 of the time      time for which a call occupies a unit
==============  ============================  ==============================================================

.. math:: f(u) = R(0) - R(u) - \sum_k b_k u_k^{q_k}

R(u) is the mean response (min) under the settings u. The burdens b_k u_k^q_k, with b_k and q_k from BURDENS and POWERS
and expressed in equivalent minutes of response, are fictitious: crews' pay, haste, driving for relocation, callers
referred elsewhere, pressure at the hospital.

With perfect relocation, R is the p-median's response with the free units, averaged over the number of busy units
(Erlang's loss formula). This is a bound, because relocation takes time. Service times are equal everywhere. The
dispatch probabilities therefore depend only on the fleet and on the product of calls and service time, and two tables
of splines determine R.
"""

from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from ..._files import locate
from ..._types import FloatArray
from ...city import City
from ...evaluators import approximate_hypercube, p_median
from ..problem import Problem

if TYPE_CHECKING:
    from scipy.interpolate import RectBivariateSpline

SETTINGS = ("fleet", "turnout", "relocation", "demand", "turnaround")
FLEET = np.arange(7, 13)
TURNOUT_MIN = (2.75, 0.75)
LOAD = (1.25, 0.75)  # relative to today's, for demand and for turnaround
LOADS = np.linspace(0.5, 1.6, 12)  # values of their product in the tables
BURDENS = np.array([0.75, 1.1, 0.12, 0.35, 0.3])
POWERS = np.array([1.0, 2.0, 2.0, 2.0, 2.0])
CONTROL_SETS = (
    ("turnout",),
    ("turnaround",),
    ("turnout", "relocation"),
    ("demand", "turnaround"),
    ("fleet",),
    ("turnout", "relocation", "demand", "turnaround"),
    SETTINGS,
)
SET_COSTS = (0.05, 0.1, 0.1, 0.2, 0.3, 0.4, 1.0)
"""Mean cost of a trial month, relative to the most expensive set."""

BEST_VALUE = 1.84896581728768
BEST_X = [0.6601537, 0.90909089, 1.0, 0.26659574, 0.31841648]


def ems_service() -> Problem:
    """Return the minutes saved as a function of the settings: 5 inputs on [0, 1]⁵.

    Examples
    --------
    >>> f = ems_service()
    >>> f
    <Problem ems: 5 inputs, max 1.84897>
    >>> round(f([0, 0, 0, 0, 0]), 6)
    0.0
    """
    return Problem("ems", _saved, [(0, 1)] * 5, "max", BEST_VALUE, BEST_X, variables=SETTINGS)


@cache
def _travel_tables() -> "list[RectBivariateSpline]":
    """Return splines over (units, load) of the mean travel time (min) without and with relocation.

    The load is a factor on the city's offered load.
    """
    from scipy.interpolate import RectBivariateSpline

    city = City.load(locate.package_file("st_paul"))
    turnout = float(city.turnout_times[0])
    medians = {p: p_median(city, p) for p in range(1, 13)}
    best = np.array([median.objective for median in medians.values()]) - turnout
    static, relocated = np.empty((2, len(FLEET), len(LOADS)))
    for k, load in enumerate(LOADS):
        scaled = city.scaled(load)
        offered = load * city.offered_load(1)
        for j, p in enumerate(FLEET.tolist()):
            static[j, k] = approximate_hypercube(scaled, medians[p].sites).mean_response - turnout
            busy = np.cumprod(np.append(1.0, offered / np.arange(1, p)))
            relocated[j, k] = busy / busy.sum() @ best[p - 1 :: -1]
    return [RectBivariateSpline(FLEET, LOADS, table, kx=3, ky=3) for table in (static, relocated)]


def _response(u: FloatArray) -> FloatArray:
    """Return the mean response (min) at each row of settings."""
    units = FLEET[0] + u[:, 0] * (FLEET[-1] - FLEET[0])
    turnout = TURNOUT_MIN[0] + u[:, 1] * (TURNOUT_MIN[1] - TURNOUT_MIN[0])
    load = (LOAD[0] + u[:, 3:] * (LOAD[1] - LOAD[0])).prod(axis=1)
    static, relocated = (spline.ev(units, load) for spline in _travel_tables())
    return turnout + static + u[:, 2] * (relocated - static)


def _saved(u: FloatArray) -> FloatArray:
    """Return the minutes saved, net of burdens, at each row of settings."""
    return _response(np.zeros((1, 5))) - _response(u) - u**POWERS @ BURDENS
