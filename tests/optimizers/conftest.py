"""A small city to search, and a clock that only evaluations move."""

from types import SimpleNamespace

import numpy as np
import pytest

import emsopt as eo
from emsopt._running import loop


@pytest.fixture(scope="module")
def city():
    """Eight sites and twelve atoms on a plane."""
    rng = np.random.default_rng(5)
    sites, atoms = rng.random((8, 2)) * 10, rng.random((12, 2)) * 10
    travel = np.linalg.norm(sites[:, None] - atoms[None], axis=2)
    return eo.City(rng.uniform(0.2, 1.0, 12), travel, turnout_times=1.0, service_times=30)


@pytest.fixture
def objective(city):
    return eo.Objective(city, 4, "approximate")


@pytest.fixture
def timed(city, monkeypatch):
    """An objective whose evaluations take a second each, by a clock that only they move."""
    now = [100.0]
    monkeypatch.setattr(loop, "time", SimpleNamespace(perf_counter=lambda: now[0]))

    class Timed(eo.Objective):
        def __call__(self, sites):
            now[0] += 1.0
            return super().__call__(sites)

    return Timed(city, 4, "approximate")
