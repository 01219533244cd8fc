"""Test functions: their values, their optima, and what they refuse; stations anywhere, against the city they make."""

import pickle
from dataclasses import replace
from math import cos, e, exp, pi, sin, sqrt

import numpy as np
import pytest
from refusals import refused
from scipy.optimize import differential_evolution, rosen

import emsopt as eo
from emsopt.problems import siting
from emsopt.problems.station_siting import fitted_travel_time, sited_city

PUBLISHED = {
    "ackley6": (0, [0] * 6),
    "forrester": (-6.02074, [0.75725]),
    "goldstein_price": (3, [0, -1]),
    "hartmann3": (-3.86278, [0.114614, 0.555649, 0.852547]),
    "hartmann6": (-3.32237, [0.20169, 0.150011, 0.476874, 0.275332, 0.311652, 0.6573]),
    "levy6": (0, [1] * 6),
    "rosenbrock4": (0, [1] * 4),
    "six_hump_camel": (-1.0316, [0.0898, -0.7126]),
    "sphere6": (0, [0] * 6),
}
NAMES = tuple(PUBLISHED)
SPRINKLER = (33, 18, 2e-6, 0.18, 0.015, 0.0199, 1.54, 7.5)


@pytest.mark.parametrize("name", NAMES)
def test_optimum_is_the_published_one(name):
    f = getattr(eo.problems, name)()
    value, x = PUBLISHED[name]
    assert (f.sense, f.best_value) == ("min", pytest.approx(value, abs=6e-5))
    np.testing.assert_allclose(f.best_x, x, atol=1e-4)
    assert f(f.best_x) == pytest.approx(f.best_value, abs=1e-12)
    values = f(np.random.default_rng(1).uniform(*f.bounds.T, (20_000, f.dimension)))
    near = f(np.clip(f.best_x + 1e-4 * np.random.default_rng(2).normal(size=(1000, f.dimension)), *f.bounds.T))
    assert min(values.min(), near.min()) > f.best_value - 1e-9


def test_the_paper_s_example_is_at_its_top_where_the_slope_is_zero():
    """(3.5): f' = 0 where tan(3.5 π x) = -1.4 / (3.5 π)."""
    f = eo.problems.decaying_wave()
    assert (f.sense, 3.5 * pi * f.best_x[0]) == ("max", pytest.approx(pi - np.arctan(1.4 / (3.5 * pi)), abs=1e-7))
    assert f(f.best_x) == pytest.approx(f.best_value, abs=1e-12)
    assert f(np.linspace(0, 1, 10_001)[:, None]).max() <= f.best_value
    assert f([0.3]) == pytest.approx(-exp(-0.42) * cos(1.05 * pi), rel=1e-13)


def test_values_equal_the_formulas_written_out():
    f, x = eo.problems, np.array([0.5, -1, 2, 3, -4, 5])
    ackley = -20 * exp(-0.2 * sqrt(sum(x**2) / 6)) - exp(sum(cos(2 * pi * v) for v in x) / 6) + 20 + e
    w = [1 + (v - 1) / 4 for v in x]
    levy = sin(pi * w[0]) ** 2 + (w[5] - 1) ** 2 * (1 + sin(2 * pi * w[5]) ** 2)
    levy += sum((v - 1) ** 2 * (1 + 10 * sin(pi * v + 1) ** 2) for v in w[:5])
    bumps = [  # the others all but vanish at the centre of the first
        1.2 * exp(-(0.1 * 0.101**2 + 10 * 0.3217**2 + 35 * 0.4797**2)),
        3.0 * exp(-(3 * 0.2598**2 + 10 * 0.7562**2 + 30 * 0.2874**2)),
        3.2 * exp(-(0.1 * 0.3308**2 + 10 * 0.4573**2 + 35 * 0.6155**2)),
    ]
    for problem, point, value in (
        (f.forrester(), [0.3], (6 * 0.3 - 2) ** 2 * sin(12 * 0.3 - 4)),
        (f.goldstein_price(), [0, 0], 600),
        (f.goldstein_price(), [-0.6, -0.4], 30),  # a local minimum
        (f.goldstein_price(), [1.8, 0.2], 84),  # another
        (f.six_hump_camel(), [1, 1], 4 - 2.1 + 1 / 3 + 1),
        (f.six_hump_camel(), -f.six_hump_camel().best_x, f.six_hump_camel().best_value),
        (f.rosenbrock4(), [0.3, -2.0, 1.5, 4.0], rosen([0.3, -2.0, 1.5, 4.0])),
        (f.sphere6(), x, 0.25 + 1 + 4 + 9 + 16 + 25),
        (f.ackley6(), x, ackley),
        (f.levy6(), x, levy),
        (f.hartmann3(), [0.3689, 0.1170, 0.2673], -1 - sum(bumps)),
    ):
        assert problem(point) == pytest.approx(value, rel=1e-12), problem.name


@pytest.mark.parametrize("name", [*NAMES, "sprinkler"])
def test_rows_are_evaluated_like_single_points(name):
    f = getattr(eo.problems, name)()
    x = np.random.default_rng(2).uniform(*f.bounds.T, (7, f.dimension))
    values = f(x)
    assert values.shape == (7,)
    assert isinstance(f(x[0]), float)
    np.testing.assert_allclose([f(row) for row in x], values, rtol=1e-13)
    assert f(x[:0]).shape == (0,)
    again = pickle.loads(pickle.dumps(f))
    np.testing.assert_array_equal(again(x), values)


def test_noise_is_gaussian_reproducible_and_can_be_left_out():
    (f, one_by_one), x = (eo.problems.hartmann3(noise_sd=0.3, rng=5) for _ in range(2)), np.full((4000, 3), 0.5)
    values = f(x)
    assert values.std() == pytest.approx(0.3, rel=0.05)
    assert values.mean() == pytest.approx(f.noise_free_value(x[0]), abs=0.02)
    np.testing.assert_allclose([one_by_one(row) for row in x[:5]], values[:5], rtol=1e-14)
    np.testing.assert_array_equal(replace(f, rng=5)(x), values)
    assert (replace(f, rng=6)(x) != values).all()
    assert eo.problems.hartmann3()(x[0]) == f.noise_free_value(x[0])


def test_sprinkler_gives_the_known_value(claim):
    for output, value in (("consumption", 4.218397), ("range", 5.321142), ("speed", 3.124046)):
        assert eo.problems.sprinkler(output)(SPRINKLER) == pytest.approx(value, abs=5e-7)
    claim("boke", "Section 5.2 (model)", eo.problems.sprinkler()(SPRINKLER), eo.problems.sprinkler().best_value)


@pytest.mark.parametrize(("output", "known"), [("range", 8.3358), ("consumption", 3.3073), ("speed", 19.8307)])
def test_best_of_the_sprinkler_is_reached_and_not_passed(output, known):
    f = eo.problems.sprinkler(output)
    sign, (low, high) = -1 if f.sense == "max" else 1, f.bounds.T[:, :, None]
    assert (f.best_value, f(f.best_x)) == pytest.approx((known, f.best_value), abs=5e-5)
    options = {"vectorized": True, "updating": "deferred", "rng": 0, "popsize": 10, "maxiter": 300, "tol": 1e-8}
    scaled = lambda u: sign * f((low + u * (high - low)).T)
    run = differential_evolution(scaled, [(0, 1)] * 8, **options, polish=False)
    assert sign * run.fun == pytest.approx(f.best_value, abs=1e-4)
    assert run.fun >= sign * f.best_value - 1e-7


def test_what_is_wrong_is_named(town):
    f = eo.problems.six_hump_camel()
    refused(r"must have shape \(2,\) or \(n, 2\) for six_hump_camel; got shape \(3,\)", f, [0, 0, 0])
    refused(r"x2 is 2\.5, but must be between -2 and 2", f, [0, 2.5])
    refused("x1 is nan in row 1", f, [[0, 0], [np.nan, 0]])
    refused("pressure is 3, but must be between 1 and 2", eo.problems.sprinkler(), [*SPRINKLER[:6], 3, 7.5])
    assert f([3 + 1e-12, 0]) == f([3, 0])  # an optimizer's rounding is no error
    refused("`output` must be one of", eo.problems.sprinkler, "colour")
    refused("low < high in every row", eo.problems.Problem, "flat", np.sum, [(0, 1), (2, 2)], "min", 0.0, [0, 2])
    refused("must have `atom_locations`", siting, town.replace(atom_locations=None), 2)
    refused("`stations` must be a whole number", siting, town, 0)
    refused("two coordinates per station; got 3", sited_city, town, [1, 2, 3])


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
