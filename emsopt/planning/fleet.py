"""How many units the load of a city needs."""

from __future__ import annotations

from .. import _validate
from ..city.city import City, check_city

LOSS, BUSY = 0.01, 0.3


def units_needed(city: City, loss: float = LOSS, busy: float = BUSY) -> int:
    r"""Return the smallest fleet that can carry the load, wherever the units are.

    Parameters
    ----------
    city : City
        Its call rates and mean service time make up the load.
    loss : float
        Largest share of calls that may find all units busy, above 0 and at most 1. Default: 1 %.
    busy : float
        Largest share of the time that units may be busy on average, above 0 and at most 1. Default: 30 %.

    Returns
    -------
    int
        Number of units p, at least 1.

    Raises
    ------
    InputError
        If ``city`` is not a City, or ``loss`` or ``busy`` is not above 0 and at most 1.

    Notes
    -----
    With *a* erlangs, the mean number of calls in service if none were lost, p units lose the share
    :math:`B(p, a) = (a^p / p!) / \sum_{k=0}^p a^k / k!` of the calls (Erlang) and are busy for the share
    :math:`a (1 - B) / p` of the time. This counts one unit per call and knows no places: how far units are from calls
    may call for more of them, and a load that changes during the day for the number of its busiest hour.

    Examples
    --------
    >>> import emsopt as eo
    >>> units_needed(eo.datasets.load_st_paul())
    7
    """
    check_city(city)
    loss, busy = _validate.probability(loss, "loss"), _validate.probability(busy, "busy")
    load = city.total_rate * city.mean_service_time / 60
    units, blocked = 0, 1.0
    while units == 0 or blocked > loss or load * (1 - blocked) > busy * units:
        units += 1
        blocked = load * blocked / (units + load * blocked)
    return units
