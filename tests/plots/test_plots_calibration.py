"""Figures of calibration and back-test: what is drawn is what the fit and the report say."""

import numpy as np
import pandas as pd
import pytest
from synthetic_log import synthetic_log

import emsopt as eo

pytest.importorskip("matplotlib", reason="needs the package matplotlib")
from matplotlib.figure import Figure

from emsopt.errors import InputError


@pytest.fixture(scope="module")
def fit():
    stations = pd.DataFrame({"name": ["Station 1", "Station 2"], "lon": [0.0, 0.06], "lat": [45.0, 45.01]})
    return eo.calls.calibrate(synthetic_log(stations, calls_per_day=30, rng=1), stations)


def test_the_law_lies_over_the_recorded_drives(fit):
    _, ax = eo.plots.recorded_drives(fit, Figure())
    line = next(line for line in ax.get_lines() if line.get_label() == "law")
    assert line.get_ydata() == pytest.approx(fit.law.mean(line.get_xdata()))
    counted = np.nansum(ax.collections[0].get_array())
    assert 0.97 * len(fit.drives) < counted <= len(fit.drives)


def test_back_test_has_a_row_per_hour_and_zone(fit):
    report = eo.calls.back_test(fit, fit.calls, draws=40)
    _, axes = eo.plots.back_test(report, Figure())
    assert len(axes[0].patches) == len(report.distribution)
    assert [text.get_text() for text in axes[1].get_yticklabels()] == list(report.by_hour.index)
    assert [text.get_text() for text in axes[2].get_yticklabels()] == list(report.by_zone.index)


def test_only_results_are_drawn(fit):
    with pytest.raises(InputError, match=r"emsopt\.calls\.Fit"):
        eo.plots.recorded_drives(fit.to_frame())
    with pytest.raises(InputError, match=r"emsopt\.calls\.BackTest"):
        eo.plots.back_test(fit)
