"""The log and the stations that several test files of calls need."""

import numpy as np
import pandas as pd
import pytest

import emsopt as eo


@pytest.fixture(scope="session")
def san_jose():
    return eo.datasets.san_jose_calls()


@pytest.fixture(scope="session")
def stations():
    rng = np.random.default_rng(1)
    names = [f"Station {k + 1}" for k in range(9)]
    return pd.DataFrame({"name": names, "lon": rng.uniform(0, 0.15, 9), "lat": 45 + rng.uniform(0, 0.12, 9)})
