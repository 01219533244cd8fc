"""The town that most tests of this folder draw."""

import pytest
from smallville import both_stations, one_station, small_city


@pytest.fixture
def city():
    return small_city()


@pytest.fixture
def both(city):
    return both_stations(city)


@pytest.fixture
def doubled(city):
    return one_station(city)
