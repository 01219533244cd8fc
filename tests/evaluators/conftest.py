"""St. Paul from the authors' own inputs, and all deployments of nine units there."""

import pytest

from emsopt.evaluators import evaluate_all


@pytest.fixture(scope="session")
def city(published):
    return published


@pytest.fixture(scope="session")
def everything(city):
    return evaluate_all(city, 9, evaluator="approximate")


@pytest.fixture(scope="session")
def optimum(everything):
    return everything.best
