"""What tests of figures need: no display, and no figure that stays open."""

import matplotlib as mpl
import pytest

mpl.use("Agg")

from matplotlib import pyplot as plt


@pytest.fixture(autouse=True)
def _close_figures():
    plt.close("all")  # examples of docstrings leave some
    yield
    plt.close("all")
