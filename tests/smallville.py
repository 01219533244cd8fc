"""A town to draw: two stations, the first listed twice, and three atoms, near Greenwich; and results known by heart."""

from dataclasses import replace

import numpy as np
import pytest

from emsopt.city.city import City
from emsopt.evaluators import approximate_hypercube

CENTRES = [[0.0, 51.50], [0.02, 51.51], [0.04, 51.50]]


def small_city(**changes):
    fields = {
        "arrival_rates": [1.0, 2.0, 1.0],
        "travel_times": [[2.0, 6.0, 9.0], [2.0, 6.0, 9.0], [8.0, 4.0, 1.0]],
        "turnout_times": 1.0,
        "service_times": 30.0,
        "atom_names": ["west", "middle", "east"],
        "site_names": ["Station A (unit 1)", "Station A (unit 2)", "Station B"],
        "atom_locations": CENTRES,
        "site_locations": [[0.005, 51.50], [0.005, 51.50], [0.035, 51.505]],
        "name": "Smallville",
        "notes": "Times are made up.",
    } | changes
    return City(**fields)


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
