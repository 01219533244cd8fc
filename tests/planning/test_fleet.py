"""The fleet that the load needs: against the closed form of Erlang's loss formula."""

from math import factorial

import pytest

import emsopt as eo
from emsopt.planning import units_needed

TOWN = eo.datasets.grid_city(n_sites=6, units=2, rng=1)


def lost(load, units):
    """B(p, a) as it is written."""
    return load**units / factorial(units) / sum(load**k / factorial(k) for k in range(units + 1))


@pytest.mark.parametrize("load", [0.01, 0.5, 2.0, 8.0, 20.0])
def test_one_unit_less_would_not_do(load):
    city = TOWN.scaled(load / (TOWN.total_rate * TOWN.mean_service_time / 60))
    units = units_needed(city)
    enough = [lost(load, p) <= 0.01 and load * (1 - lost(load, p)) / p <= 0.3 for p in range(1, units + 1)]
    assert enough == [False] * (units - 1) + [True]
