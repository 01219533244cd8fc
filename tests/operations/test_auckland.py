"""The Auckland case: what is stored against the roads it was made from, and the published figures of the case."""

import os
from pathlib import Path

import numpy as np
import pytest

import emsopt as eo

SYSTEM, SITES = eo.datasets.load_auckland()


def test_figures_of_the_case():
    assert SYSTEM.city.total_rate == pytest.approx(280 / 24)
    assert [priority.share for priority in SYSTEM.priorities] == [0.57, 0.245, 0.185]
    assert np.bincount(SITES, minlength=14).tolist() == [1, 1, 2, 2, 0, 1, 2, 0, 2, 1, 2, 1, 0, 1]
    assert SYSTEM.minutes[0].max() < 120


def test_times_are_those_of_the_roads():
    """`RoadNetwork.travel_times` leaves roads at the nearest point, not junction: most times differ by half a minute."""
    roads = Path(os.environ.get("EMSOPT_DATA", ""), "auckland", "roads.zip")
    if not roads.is_file():
        pytest.skip("needs auckland/roads.zip of JEMSS in the folder that EMSOPT_DATA names")
    net = eo.RoadNetwork.from_tables(roads)
    atoms = np.random.default_rng(0).choice(SYSTEM.city.n_atoms, 40, replace=False)
    minutes = net.travel_times(SYSTEM.city.site_locations, SYSTEM.city.atom_locations[atoms])
    difference = np.abs(minutes - SYSTEM.city.travel_times[:, atoms])
    assert np.median(difference) < 0.6
    assert np.quantile(difference, 0.9) < 3
