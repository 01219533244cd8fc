"""Designs that fill the cube: the next point against a grid, distances against closed forms and the paper's claim."""

import numpy as np
import pytest
from scipy.special import logsumexp

from emsopt.optimizers.boxes.boke import bandwidth, density_design, fill_distance


def test_the_density_design_takes_the_emptiest_point_each_time(claim):
    """(3.10) and (3.11) in two inputs, by plain sums on a grid; the bandwidth is that of BOKE."""
    X, side = density_design(12, 2, rng=0), np.linspace(0, 1, 51)
    grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)

    def log_density(x, t):
        squared = ((x[:, None] - X[:t]) ** 2).sum(axis=2)
        return logsumexp(-squared / (2 * bandwidth(t, 2) ** 2), axis=1)

    for t in range(1, 12):
        assert log_density(X[t : t + 1], t)[0] <= log_density(grid, t).min() + 0.02
    nearest = np.linalg.norm(grid[:, None] - X, axis=2).min(axis=1)
    assert fill_distance(X) == pytest.approx(nearest.max(), abs=0.02)
    claim("boke", "Section 3.2 (3.10)-(3.11)", len(X), 0.02, 0.02)


def test_fill_distance_of_known_designs():
    assert fill_distance([[0.25], [0.75]]) == pytest.approx(0.25, abs=1e-3)
    corners = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    assert fill_distance(corners) == pytest.approx(np.sqrt(0.5), abs=0.02)
    for d in (3, 40):  # many inputs need no list of all corners
        assert fill_distance(np.full((1, d), 0.5)) == pytest.approx(np.sqrt(d) / 2)
    assert fill_distance(np.zeros((1, 10))) == pytest.approx(np.sqrt(10))  # the farthest of all corners
