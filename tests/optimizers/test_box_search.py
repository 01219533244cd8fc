"""The joint multi-start search: known maxima, borders, scales, and one call of scipy a start as independent check."""

import numpy as np
import pytest
from scipy.optimize import minimize

from emsopt.optimizers.boxes._search import draw_starts, maximize_on_box


def waves(x):
    """Return a sum of sines over coordinates and its slopes; many local maxima."""
    return np.sin(3 * x).sum(axis=1) - 0.05 * (x**2).sum(axis=1), 3 * np.cos(3 * x) - 0.1 * x


def bowl(centre, scales):
    return lambda x: (-(scales * (x - centre) ** 2).sum(axis=1), -2 * scales * (x - centre))


def climbed(start, bounds):
    """Return the value that scipy reaches from one point alone."""
    return -minimize(lambda z: -waves(z[None])[0][0], start, method="L-BFGS-B", bounds=bounds, tol=1e-12).fun


@pytest.mark.parametrize("d", [1, 2, 5])
def test_it_ends_on_a_top_and_on_the_best_where_starts_cover_them(d):
    """Against scipy from each point alone, without the slopes."""
    rng, bounds = np.random.default_rng(d), np.array([(-4.0, 3.0)] * d)
    starts = draw_starts(bounds, 12, rng)
    x, value = maximize_on_box(waves, starts, bounds)
    assert value == pytest.approx(waves(x[None])[0][0], abs=1e-12)
    assert value == pytest.approx(climbed(x, bounds), abs=1e-7)
    if d <= 2:
        assert value == pytest.approx(max(climbed(start, bounds) for start in starts), abs=1e-7)


@pytest.mark.parametrize("size", [1e-8, 1.0, 1e8])
def test_neither_the_unit_of_values_nor_of_coordinates_matters(size):
    bounds, centre = np.array([(0.0, 1e-3), (-1e4, 1e4)]), np.array([3e-4, 5e3])
    function = bowl(centre, size / (bounds[:, 1] - bounds[:, 0]) ** 2)
    x, value = maximize_on_box(function, bounds.T, bounds)
    np.testing.assert_allclose((x - centre) / np.ptp(bounds, axis=1), 0, atol=1e-5)
    assert -1e-9 * size < value <= 0


def test_it_stays_in_the_box_and_on_what_is_fixed():
    bounds = np.array([(0.0, 1.0), (2.0, 2.0), (0.0, 1.0)])
    x, _ = maximize_on_box(bowl(np.array([5.0, 0.0, -3.0]), np.ones(3)), [[0.5, 7.0, 0.5]], bounds)
    assert x.tolist() == [1.0, 2.0, 0.0]


def test_it_is_never_worse_than_a_start():
    """A start on a spike that no slope tells of, while the others climb; a single start of a flat function."""
    spike = lambda x: ((x + (x == 0.75))[:, 0], np.ones_like(x))
    x, value = maximize_on_box(spike, [[0.0], [0.1], [0.2], [0.75]], [(0, 1)])
    assert (x.tolist(), value) == ([0.75], 1.75)
    x, value = maximize_on_box(lambda x: (np.zeros(len(x)), np.zeros_like(x)), [[0.25, 0.5]], [(0, 1)] * 2)
    assert (x.tolist(), value) == ([0.25, 0.5], 0.0)


def test_starts_are_in_the_box_and_half_of_them_near():
    bounds, near = np.array([(0.0, 1.0), (10.0, 30.0)]), np.array([[0.0, 30.0], [0.5, 20.0]])
    starts = draw_starts(bounds, 400, np.random.default_rng(0), near=near, spread=0.01)
    assert ((starts >= bounds[:, 0]) & (starts <= bounds[:, 1])).all()
    gaps = np.abs((starts[:, None] - near) / [1.0, 20.0]).max(axis=2).min(axis=1)
    assert 190 <= np.count_nonzero(gaps < 0.05) <= 215
