"""The figure of a comparison shows the draws and the atoms that its tables hold."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from emsopt.errors import InputError
from emsopt.planning import Comparison
from emsopt.plots import comparison

GAPS = np.linspace(-1, 0.5, 60)
ATOMS = pd.DataFrame(
    {
        "atom": ["north", "south", "far"],
        "calls_per_hour": [1.0, 2.0, 1.0],
        "difference": [-0.5, 0.2, 0.0],
        "low": [-0.7, -0.1, 0.0],
        "high": [-0.3, 0.5, 0.0],
        "verdict": ["gains", "unclear", "same"],
    }
)


def test_bars_count_the_draws_and_only_clear_atoms_are_filled():
    values = np.column_stack([np.full(60, 6.0), 6 + GAPS])
    sites = (np.array([0]), np.array([1]))
    told = values, ATOMS, pd.Series(dtype=float), 4, np.zeros(2)
    answer = Comparison(("a", "b"), sites, "mean_response", "exact", "loss", *told)
    _, (left, right) = comparison(answer, Figure())
    assert left.get_legend().get_texts()[0].get_text() == "b: better with probability 66.7%"
    heights = left.patches[0].get_xy()[:, 1]
    assert heights.max() == np.histogram(GAPS, 40)[0].max()
    assert [label.get_text() for label in right.get_yticklabels()] == ["north", "south"]
    faces = right.collections[1].get_facecolors()
    assert faces[1, :3] == pytest.approx(1)
    assert (faces[0, :3] < 1).any()


def test_something_else_is_refused():
    with pytest.raises(InputError, match=r"`answer` must be an emsopt.planning.Comparison; got int"):
        comparison(3)
