"""A town to draw: two stations, the first listed twice, and three atoms, near Greenwich; and results known by heart."""

from dataclasses import replace

import numpy as np
import pytest

from emsopt.city.city import City
from emsopt.evaluators import approximate_hypercube

CENTRES = [[0.0, 51.50], [0.02, 51.51], [0.04, 51.50]]


def small_city(**changes):
    names = {"site_names": ["Station A (unit 1)", "Station A (unit 2)", "Station B"], "name": "Smallville"}
    names |= {"atom_names": ["west", "middle", "east"], "notes": "Times are made up."}
    places = {"atom_locations": CENTRES, "site_locations": [[0.005, 51.50], [0.005, 51.50], [0.035, 51.505]]}
    minutes = [[2.0, 6.0, 9.0], [2.0, 6.0, 9.0], [8.0, 4.0, 1.0]]
    return City([1.0, 2.0, 1.0], minutes, 1.0, 30.0, **names | places | changes)


def evaluation(city, sites, fractions, busy=0.25):
    """Return an evaluation with given dispatch fractions and utilisations."""
    return replace(
        approximate_hypercube(city, sites),
        utilizations=np.broadcast_to(busy, len(sites)).astype(float),
        dispatch_fractions=np.array(fractions, dtype=float),
        loss_probability=0.01,
    )


@pytest.fixture
def city():
    return small_city()


@pytest.fixture
def both(city):
    """The results of one unit at each station: A answers 90, 40 and 1 percent."""
    return evaluation(city, [0, 2], [[0.9, 0.4, 0.01], [0.1, 0.6, 0.99]])


@pytest.fixture
def doubled(city):
    """The results of both units at A, which share its calls equally."""
    return evaluation(city, [0, 1], np.full((2, 3), 0.5))
