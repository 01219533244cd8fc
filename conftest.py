"""Close the figures that examples and tests open: pyplot would keep them, and warn of too many."""

import sys

import pytest


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    if pyplot := sys.modules.get("matplotlib.pyplot"):
        pyplot.close("all")
