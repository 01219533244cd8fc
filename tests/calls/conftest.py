"""The log that several test files of calls need."""

import pytest

import emsopt as eo


@pytest.fixture(scope="session")
def san_jose():
    return eo.datasets.san_jose_calls()
