"""Response-time standards by name, and how far a deployment meets them.

A standard says which time it counts and when its clock starts. "turnout" and "travel" are those of the unit that
answers, and "response" is their sum. The clock of NFPA 1710 starts when the unit is told (``"dispatch"``), or when it
leaves for its travel times. That of England's Ambulance Response Programme starts with the call (``"call"``) or
shortly after it, so that call handling and the wait for a free unit count too. This package does not model call
handling: `standards` adds ``delay`` minutes for it.

References
----------
National Fire Protection Association (2020). NFPA 1710: Standard for the organization and deployment of fire suppression
    operations, emergency medical operations, and special operations to the public by career fire departments.
NHS England (2017). Ambulance Response Programme; addendum to the handbook to the NHS constitution.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .. import _validate
from ..city.city import City, check_city
from ..city.response_law import ResponseLaw
from ..errors import InputError

if TYPE_CHECKING:
    import pandas as pd

    from .._types import FloatArray
    from .evaluation import Evaluation

ROUNDING = 1e-9  # min; times at the limit are within it


class Standard(NamedTuple):
    """A response-time standard; see the module.

    Attributes
    ----------
    name : str
    counts : {"turnout", "travel", "response"}
    clock : {"dispatch", "call"}
    limit : float
        Minutes.
    share : float or None
        Share of calls that must be within the limit; None if it is the mean that must not exceed the limit.
    source : str

    Examples
    --------
    >>> import emsopt as eo
    >>> own = eo.evaluators.Standard("county", "response", "dispatch", 10, 0.85, "county code")
    >>> city = eo.City([1, 2, 4], [[0, 6, 9], [4, 0, 5], [9, 5, 0]], turnout_times=1, service_times=30)
    >>> table = eo.evaluators.standards(city, eo.evaluators.exact_hypercube(city, [1, 2]), [own])
    >>> bool(table.loc["county", "met"])
    True
    """

    name: str
    counts: str
    clock: str
    limit: float
    share: float | None
    source: str


_NFPA, _ARP = "NFPA 1710 (2020)", "Ambulance Response Programme (2017)"
STANDARDS: tuple[Standard, ...] = (
    Standard("nfpa turnout ems", "turnout", "dispatch", 1.0, 0.9, _NFPA),
    Standard("nfpa turnout fire", "turnout", "dispatch", 80 / 60, 0.9, _NFPA),
    Standard("nfpa travel bls", "travel", "dispatch", 4.0, 0.9, _NFPA),
    Standard("nfpa travel als", "travel", "dispatch", 8.0, 0.9, _NFPA),
    Standard("arp 1 mean", "response", "call", 7.0, None, _ARP),
    Standard("arp 1", "response", "call", 15.0, 0.9, _ARP),
    Standard("arp 2 mean", "response", "call", 18.0, None, _ARP),
    Standard("arp 2", "response", "call", 40.0, 0.9, _ARP),
    Standard("arp 3", "response", "call", 120.0, 0.9, _ARP),
    Standard("arp 4", "response", "call", 180.0, 0.9, _ARP),
)
"""The standards known by name: turnout and travel of NFPA 1710, and categories 1 to 4 of England's programme.

>>> import emsopt as eo
>>> [(s.name, s.limit) for s in eo.evaluators.STANDARDS if s.counts == "travel"]
[('nfpa travel bls', 4.0), ('nfpa travel als', 8.0)]
"""


def standards(
    city: City, evaluation: Evaluation, which: Iterable[str | Standard] | None = None, *, delay: float = 0.0
) -> pd.DataFrame:
    """Return how far a deployment meets response-time standards.

    All calls are judged alike; if only some are of the category that a standard is for, the city should hold only
    these, or the table holds if they come from the same places as the others.

    Parameters
    ----------
    city : City
        The city of the evaluation.
    evaluation : Evaluation
    which : sequence of str or Standard, optional
        Names from `STANDARDS`, or own ones. Default: all of `STANDARDS`.
    delay : float
        Minutes from the start of the clock to the dispatch, without the wait for a free unit. Counts where the clock
        starts with the call. The default, 0, is too optimistic for these.

    Returns
    -------
    DataFrame
        One row per standard, indexed by name: what it ``counts``, its ``clock``, ``limit_min``, the share of answered
        calls within the limit, the share wanted (NaN if the mean counts), the mean of the counted time (min), whether
        the standard is ``met``, and the source.

    Raises
    ------
    InputError
        If a standard is not known, or the evaluation is of another city.

    Examples
    --------
    >>> import emsopt as eo
    >>> city = eo.datasets.load_st_paul()
    >>> evaluation = eo.evaluators.approximate_hypercube(city, [0, 1, 2, 3, 4, 8, 9, 10, 11])
    >>> table = eo.evaluators.standards(city, evaluation, ["nfpa travel als", "arp 1 mean"], delay=1.5)
    >>> table["met"].to_dict()
    {'nfpa travel als': True, 'arp 1 mean': False}
    """
    import pandas as pd

    delay = _validate.positive_number(delay, "delay", "min", zero=True)
    if isinstance(which, str):
        which = [which]
    chosen = [named(one) for one in (STANDARDS if which is None else which)]
    check_city(city)
    at = city.response_times[evaluation.sites] if evaluation.sites.max() < city.n_sites else np.empty(0)
    if not np.array_equal(at, evaluation.response_times):
        raise InputError(
            "`evaluation` must be of a deployment of `city`; its response times are others. Evaluate it in this city."
        )
    rows = []
    for one in chosen:
        within, mean = _reached(city, evaluation, one, delay)
        met = mean <= one.limit + ROUNDING if one.share is None else within >= one.share - ROUNDING
        wanted = np.nan if one.share is None else one.share
        rows.append((one.name, one.counts, one.clock, one.limit, within, wanted, mean, bool(met), one.source))
    columns = ["name", "counts", "clock", "limit_min", "share_within", "share_wanted", "mean_min", "met", "source"]
    return pd.DataFrame(rows, columns=columns).set_index("name")


def named(name: str | Standard, clock: str | None = None) -> Standard:
    """Return a standard by name, or the standard itself.

    Raises
    ------
    InputError
        If it is not known or not valid; with ``clock``, if its clock starts otherwise or it limits the mean.
    """
    if isinstance(name, Standard):
        _validate.choice(name.counts, "counts", ("turnout", "travel", "response"))
        _validate.choice(name.clock, "clock", ("dispatch", "call"))
        _validate.positive_number(name.limit, "limit", "min")
        if name.share is not None:
            _validate.probability(name.share, "share")
        if name.clock == "call" and name.counts != "response":
            raise InputError(f"a standard whose clock starts with the call must count 'response'; got {name.counts!r}.")
    known = {one.name: one for one in STANDARDS}
    found = name if isinstance(name, Standard) else known[_validate.choice(name, "standard", tuple(known))]
    if clock is not None and (found.clock != clock or found.share is None):
        raise InputError(
            f"the standard must be one of a share of calls whose clock starts with the {clock}; got {found.name!r}. "
            "Use the metrics 'mean_response' or ('late', minutes) with the minutes that the call's handling leaves."
        )
    return found


def exceeded(city: City, standard: Standard) -> FloatArray:
    """Return the probability that the counted time exceeds the limit, from each site to each atom, shape (N, M)."""
    turnout, travel = _counted(city, standard)
    return ResponseLaw.of(turnout, travel, city.turnout_cv, city.travel_cv).late(standard.limit + ROUNDING)


def _counted(city: City, standard: Standard) -> tuple[FloatArray, FloatArray]:
    """Return mean turnout and travel times, shape (N,) and (N, M), min; that which does not count is 0."""
    turnout, travel = city.turnout_times, city.travel_times
    return turnout * (standard.counts != "travel"), travel * (standard.counts != "turnout")


def _reached(city: City, e: Evaluation, standard: Standard, delay: float) -> tuple[float, float]:
    """Return the share of answered calls within the limit, and the mean of the counted time (min)."""
    if standard.clock == "call":
        left = standard.limit - delay + ROUNDING
        within = 1 - float(e.late_fraction(left, include_wait=True)) if left > 0 else 0.0
        return within, delay + e.mean_wait + e.mean_response
    turnout, travel = _counted(city, standard)
    late, mean = (e.demand_shares @ e.atom_cost(c) for c in (exceeded(city, standard), turnout[:, None] + travel))
    return 1 - float(late), float(mean)
