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
    loss : float
        Largest share of calls that may find all units busy, from 0 to 1.
    busy : float
        Largest share of the time that units may be busy on average, from 0 to 1.

    Returns
    -------
    int
        Losses are by Erlang's formula, :math:`B(p, a) = (a^p / p!) / \sum_{k=0}^p a^k / k!` with the mean number *a* of
        calls in service if none were lost. It needs no sites, and says nothing about how far units are from calls.

    Raises
    ------
    InputError
        If ``loss`` or ``busy`` is not a probability.

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
