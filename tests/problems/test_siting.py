"""Stations anywhere: the problem against the city it makes, tables by hand, and what it must be blind to."""

import numpy as np
import pytest
from refusals import refused

import emsopt as eo
from emsopt.problems import siting
from emsopt.problems.station_siting import fitted_travel_time, sited_city


@pytest.fixture(scope="module")
def town():
    """Return a plane city whose travel times are exactly linear: 90 s to start, 1.5 min a kilometre."""
    rng = np.random.default_rng(1)
    atoms, sites = rng.uniform(0, 8, (30, 2)), rng.uniform(2, 6, (6, 2))
    km = np.hypot(*(sites[:, None] - atoms).transpose(2, 0, 1))
    options = {"turnout_times": 1.0, "service_times": 40.0, "atom_locations": atoms, "site_locations": sites}
    return eo.City(rng.uniform(0.01, 0.1, 30), 1.5 + 1.5 * km, **options, geographic=False)


def test_at_the_listed_sites_it_is_the_objective_over_the_list(town):
    """The line being exact, the value is that of the discrete objective at the same places."""
    np.testing.assert_allclose(fitted_travel_time(town)([0.0, 2.0, 10.0]), [1.5, 4.5, 16.5], rtol=1e-9)
    f, objective = siting(town, 3), eo.Objective(town, 3)
    for sites in ([0, 1, 2], [5, 3, 1]):
        assert f(town.site_locations[sites].ravel()) == pytest.approx(objective(sites), abs=1e-9)
    assert (f.dimension, f.sense, f.variables) == (6, "min", ("x1", "y1", "x2", "y2", "x3", "y3"))


def test_the_sited_city_has_the_value_and_can_be_drawn():
    city = eo.datasets.load_st_paul()
    f = siting(city, 4)
    x = np.random.default_rng(0).uniform(*f.bounds.T)
    there = sited_city(city, x)
    e = eo.evaluators.evaluate(there, range(4))
    assert e.mean_response == pytest.approx(f(x), abs=1e-9)
    np.testing.assert_allclose(there.site_locations, x.reshape(4, 2))
    assert (there.atom_shapes, there.total_rate) == (city.atom_shapes, city.total_rate)
    assert f.variables[:2] == ("lon1", "lat1")
    np.testing.assert_allclose(f.bounds[:2, 0], city.atom_locations.min(axis=0))


def test_bad_input_is_refused(town):
    refused("must have `atom_locations`", siting, town.replace(atom_locations=None), 2)
    refused("`stations` must be a whole number", siting, town, 0)
    refused("two coordinates per station; got 3", sited_city, town, [1, 2, 3])
