r"""Levers of an ambulance service: minutes of response time saved, minus the burden of each lever.

This example of control sets is not from a paper. A service tries some of five levers for a month, while the
others vary around their usual midpoint. Response times are computed for St. Paul with the approximate
hypercube and units at the sites of the p-median. On the unit cube, 0 is the slowest setting of a lever and 1
the fastest:

==============  ============================  ================================================================
lever           range                         what it does
==============  ============================  ================================================================
``fleet``       7 to 12 units                 interpolated between whole numbers of units
``turnout``     2.75 to 0.75 min              time from call to departure
``relocation``  never to always               share of time in which free units are relocated to the
                                              best sites for their number while others are busy
``demand``      1.25 to 0.75 of the calls     the other callers are helped without an ambulance
``turnaround``  1.25 to 0.75 of the time      time for which a call occupies a unit
==============  ============================  ================================================================

.. math:: f(u) = R(0) - R(u) - \sum_k b_k u_k^{q_k}

R(u) is the mean response (min). The burdens b_k u_k^q_k, expressed in equivalent minutes of response, are
fictitious: crews' pay, haste, driving for relocation, callers referred elsewhere, pressure at the hospital.

With perfect relocation, R is the p-median's response with the free units, averaged over the number of busy
units (Erlang's loss formula). This is a bound, because relocation takes time. Service times are equal
everywhere. The dispatch probabilities therefore depend only on the fleet and on the product of calls and
service time, and two tables of splines determine R.
"""

from functools import cache

import numpy as np

from ..problem import Problem

LEVERS = ("fleet", "turnout", "relocation", "demand", "turnaround")
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
    LEVERS,
)
SET_COSTS = (0.05, 0.1, 0.1, 0.2, 0.3, 0.4, 1.0)
"""Mean cost of a trial month, relative to the most expensive set."""


BEST_VALUE = 1.84896581728768
BEST_X = [0.6601537, 0.90909089, 1.0, 0.26659574, 0.31841648]


def ems_levers():
    """Return the objective, in minutes: 5 inputs on [0, 1]⁵.

    Returns
    -------
    Problem

    Examples
    --------
    >>> f = ems_levers()
    >>> f
    <Problem ems: 5 inputs, max 1.84897>
    >>> round(f([0, 0, 0, 0, 0]), 6)
    0.0
    """
    return Problem("ems", _saved, [(0, 1)] * 5, "max", BEST_VALUE, BEST_X, variables=LEVERS)


@cache
def _tables():
    """Return splines over (units, load) of the mean travel time without and with relocation, and R(0)."""
    from scipy.interpolate import RectBivariateSpline

    from ..._files import locate
    from ...city import City
    from ...evaluators import approximate_hypercube, p_median

    city = City.load(locate.package_file("st_paul"))
    turnout = float(city.turnout_times[0])
    medians = {p: p_median(city, p) for p in range(1, FLEET[-1] + 1)}
    best = np.array([medians[p].objective for p in sorted(medians)]) - turnout
    static = np.empty((len(FLEET), len(LOADS)))
    relocated = np.empty_like(static)
    for k, load in enumerate(LOADS):
        scaled = city.scaled(load)
        offered = load * city.offered_load(1)
        for j, p in enumerate(FLEET):
            static[j, k] = approximate_hypercube(scaled, medians[p].sites).mean_response - turnout
            busy = np.cumprod(np.concatenate([[1.0], offered / np.arange(1, p)]))
            relocated[j, k] = busy / busy.sum() @ best[p - 1 :: -1]
    splines = [RectBivariateSpline(FLEET, LOADS, table, kx=3, ky=3) for table in (static, relocated)]
    return (*splines, _response(np.zeros((1, 5)), *splines)[0])


def _response(u, static, relocated):
    units = FLEET[0] + u[:, 0] * (FLEET[-1] - FLEET[0])
    turnout = TURNOUT_MIN[0] + u[:, 1] * (TURNOUT_MIN[1] - TURNOUT_MIN[0])
    load = (LOAD[0] + u[:, 3:] * (LOAD[1] - LOAD[0])).prod(axis=1)
    travel, with_relocation = static.ev(units, load), relocated.ev(units, load)
    return turnout + travel + u[:, 2] * (with_relocation - travel)


def _saved(u):
    static, relocated, at_first = _tables()
    return at_first - _response(u, static, relocated) - u**POWERS @ BURDENS
