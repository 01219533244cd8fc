"""Figures of BOKE, of studies and of functions: what is drawn is what was passed."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from refusals import refused

from emsopt import plots


@pytest.fixture
def study():
    steps = np.arange(1, 21)
    quantiles = {"median": 1, "q25": 0.5, "q75": 2}
    return pd.concat(
        pd.DataFrame({"problem": problem, "method": method, "evaluation": steps}).assign(
            **{name: factor / steps**power for name, factor in quantiles.items()}
        )
        for problem in ("six_hump_camel", "forrester")
        for method, power in {"boke": 1, "random": 0.5}.items()
    )


def test_a_study_has_a_panel_a_problem_and_a_line_a_method(study):
    fig, axes = plots.study_curves(study, vertical={"forrester": 5}, lowest=0.2)
    assert ([ax.get_title(loc="left") for ax in axes], len(axes[0].lines)) == (["six hump camel", "forrester"], 2)
    assert len(axes[1].lines) == 3  # and the end of the first design
    np.testing.assert_allclose(axes[0].lines[0].get_ydata(), np.maximum(1 / np.arange(1, 21), 0.2))
    assert axes[0].get_yscale() == "log"
    assert [text.get_text() for text in fig.legends[0].get_texts()] == ["boke", "random"]
    assert axes[0].get_ylabel() == "Simple regret"


def test_few_points_are_marked_and_bands_may_be_left_out(study):
    fig = Figure()
    got, axes = plots.study_curves(
        study[study["evaluation"] <= 5], ax=fig, band=None, log_x=True, columns=1, ylabel="y"
    )
    assert got is fig
    assert axes[1].lines[0].get_marker() == "o"
    assert not axes[0].collections
    assert axes[0].get_xscale() == "log"


def test_what_cannot_be_drawn_is_refused(study):
    refused("column 'q25'", plots.study_curves, study.drop(columns="q25"))
    refused("nothing to draw", plots.study_curves, study[:0])
    refused("nothing to draw", plots.line_panels, {})


def test_line_panels_show_lines_truth_and_points():
    x = np.linspace(0, 1, 11)
    frame = pd.DataFrame({"m": x**2, "true": x}, index=x)
    _, axes = plots.line_panels({"a": frame, "b": frame[["m"]]}, points=[[0.5, 0.3]], ylabel="value")
    assert [line.get_label() for line in axes[0].lines] == ["m", "true", "points"]
    assert ([line.get_label() for line in axes[1].lines], axes[0].lines[2].get_ydata()) == (["m", "points"], [0.3])
    _, axes = plots.line_panels({"a": frame}, points=[[0.5, np.nan]])
    assert axes[0].lines[2].get_marker() == "|"


def test_a_step_of_boke_shows_three_views_of_one_axis():
    x = np.linspace(0, 1, 51)
    columns = {"mean": np.sin(6 * x), "bonus": 0.1, "bound": np.sin(6 * x) + 0.1, "density": 1 - x}
    profile = pd.DataFrame(columns, index=x)
    profile.loc[0.5:, "bonus"] = 1e200  # far from all points
    told = [[0.1, 0.5], [0.4, 0.7]]
    fig, axes = plots.boke_step(profile, told, Figure(), truth=x, proposal=0.8, title="two points")
    assert len(axes) == 3
    assert axes[0].get_ylim()[1] < 3
    assert axes[2].get_ylim()[1] < 10
    np.testing.assert_allclose(axes[1].lines[0].get_ydata(), 1 - x)
    assert all(ax.lines[-1].get_xdata()[0] == 0.8 for ax in axes)
    labels = [text.get_text() for text in fig.legends[0].get_texts()]
    assert {"regression m", "true", "observed", "next"} <= set(labels)
    refused("column 'bonus'", plots.boke_step, profile.drop(columns="bonus"), told)
