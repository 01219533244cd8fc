"""A small city to search, St. Paul, a clock that only evaluations move, and the stored study of control problems."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
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


@pytest.fixture(scope="session")
def st_paul():
    return eo.datasets.load_st_paul()


@pytest.fixture(scope="session")
def study(script):
    return script("benchmarks/boke_study.py")


@pytest.fixture(scope="session")
def every_deployment(st_paul):
    """All deployments of nine units in St. Paul, with their values by the approximate model."""
    return eo.evaluators.evaluate_all(st_paul, 9, evaluator="approximate")


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


@pytest.fixture(scope="session")
def control_study(script):
    """The stored study of control problems, of which the first plays are made again; later ones vary by processor."""
    made, table = script("benchmarks/bocvs_study.py"), eo.datasets.load_study("bocvs")
    names = ["cost", "plays", "on_target", "simple_regret", "quality_regret", "cost_regret"]
    for method in eo.optimizers.LEARNERS:
        case = {"objective": "hartmann", "costs": "cheap", "variance": 0.02, "method": method, "seed": 0}
        until = {"unknown-cost": 5, "etc-50": 1}.get(method, 10)
        again = pd.DataFrame(made.search(**case, budget=100, until=until))
        wanted = table.query(" and ".join(f"{name} == {value!r}" for name, value in case.items()))[: len(again)]
        np.testing.assert_allclose(again[names], wanted[names], rtol=0, atol=2e-3, err_msg=method)
    return table
