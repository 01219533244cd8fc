"""The figure of a fleet curve shows its values, intervals and probabilities."""

import numpy as np
import pytest
from matplotlib.figure import Figure

import emsopt as eo
from emsopt.errors import InputError
from emsopt.plots import fleet_curve


def test_the_curve_its_band_and_the_chances_are_those_of_the_table():
    city = eo.datasets.grid_city(n_sites=5, units=2, rng=1)
    known = eo.planning.fleet_curve(city, [1, 2, 3])
    draws = known.values + np.linspace(-1, 1, 101)[:, None]
    curve = eo.planning.FleetCurve(**{**vars(known), "draws": draws})
    standard = float(known.values[1])
    _, ax = fleet_curve(curve, standard, Figure())
    assert ax.lines[0].get_ydata() == pytest.approx(known.values)
    assert ax.lines[1].get_ydata()[0] == standard
    assert ax.texts[1].get_text() == "50%"
    assert ax.collections[0].get_paths()[0].vertices[:, 1].min() == pytest.approx(known.values.min() - 0.9)
    assert not fleet_curve(known, ax=Figure())[1].texts
    with pytest.raises(InputError, match=r"must be an emsopt.planning.FleetCurve; got int"):
        fleet_curve(3)
