"""The stored study of the approximation's error says what README and docstring quote, and can be recomputed."""

import numpy as np
import pytest

import emsopt as eo
from emsopt.evaluators import approximate_hypercube, exact_hypercube


def test_figures_quoted_from_the_study():
    study = eo.datasets.load_study("approximation_error_15")
    error = study["approximate_min"] - study["exact_min"]
    plane = error[study["geometry"] == "plane"].abs().groupby(study["load"]).mean()
    assert len(study) == 600
    assert plane.round(2).to_dict() == {0.2: 0.02, 0.5: 0.07, 0.8: 0.09}
    assert (error < 0).mean() > 0.95
    st_paul = eo.datasets.load_study("approximation_error_st_paul").set_index("load")
    assert round(st_paul["mean_abs_error"][0.225], 2) == 0.03
    assert (st_paul["spearman"] > 0.998).all()


def test_stored_rows_can_be_recomputed():
    study = eo.datasets.load_study("approximation_error_15")
    for row in study.sample(4, random_state=3).itertuples():
        city = eo.datasets.grid_city(n_sites=15, units=15, load=row.load, geometry=row.geometry, rng=row.seed)
        assert exact_hypercube(city, np.arange(15)).mean_response == pytest.approx(row.exact_min, abs=2e-6)
        got = approximate_hypercube(city, np.arange(15)).mean_response
        assert got == pytest.approx(row.approximate_min, abs=2e-6)
