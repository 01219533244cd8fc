"""Figures of control problems: what is drawn is what was passed."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from refusals import refused

import emsopt as eo
from emsopt import plots
from emsopt.errors import InputError


def test_control_sets_show_where_plays_fall_and_what_to_expect():
    problem = eo.problems.hill_control()
    _, (where, expected) = plots.control_sets(problem)
    by_name = {line.get_label(): line for line in where.lines}
    assert set(by_name) == {"control x2", "control x1", "control all"}
    x, y = by_name["control x1"].get_data()
    assert (np.unique(x), np.var(y)) == (pytest.approx([0.7]), pytest.approx(0.02, rel=0.05))
    lines = {line.get_label(): line for line in expected.lines}
    curve = lines["control x1, cost 0.3"].get_data()
    assert curve[1].max() == pytest.approx(problem.set_values[1], abs=1e-3)
    assert (curve[0][curve[1].argmax()], set(lines["control all, cost 1"].get_ydata())) == (pytest.approx(0.7), {1.0})
    refused("must have exactly two variables to be drawn; got 5", plots.control_sets, eo.problems.airfoil_control())


def test_control_run_shows_every_play_at_its_cost():
    problem = eo.problems.hill_control()
    run = eo.optimizers.bocvs(problem, budget=5, rng=0)
    _, ax = plots.control_run(run, problem, ax=Figure())
    drawn = np.vstack([line.get_xydata() for line in ax.lines])
    order = np.argsort(drawn[:, 0])
    np.testing.assert_allclose(drawn[order, 0], run.history["spent"])
    assert drawn[order, 1].tolist() == run.history["set"].tolist()
    labels = ax.get_yticklabels()
    assert [label.get_text() for label in labels] == ["x2 (0.1)", "x1 (0.3)", "all (1)"]
    assert [label.get_weight() for label in labels] == ["normal", "bold", "normal"]
    assert [patch.get_label() for patch in ax.patches] == ["exploration"]
    assert [plots.control_run(run, problem, ax=Figure(), alpha=0.0)[1].get_yticklabels()[2].get_weight()] == ["bold"]
    with pytest.raises(
        InputError, match="`problem` must be the problem of the run; it has the sets 0 to 0, but the run played set 2"
    ):
        plots.control_run(run, eo.problems.ControlProblem(problem.objective, [[0]], [1.0], problem.marginals))
    rival = eo.optimizers.bocvs(problem, "ucb-psq", budget=3, rng=0)
    assert not plots.control_run(rival, problem, ax=Figure())[1].patches


def table():
    rows = [
        (objective, costs, 0.02, method, seed, cost, 10 * cost, 1.0 / cost + seed * 1e-3, -1.0)
        for objective in ("hartmann", "ackley")
        for costs in ("cheap", "moderate")
        for method in ("ucb-psq", "unknown-cost")
        for seed in range(3)
        for cost in (1, 50, 100)
    ]
    names = "objective costs variance method seed cost plays simple_regret quality_regret"
    return pd.DataFrame(rows, columns=names.split())


def test_control_study_draws_means_and_standard_errors():
    fig, axes = plots.control_study(table())
    assert (axes.shape, axes[0, 0].get_title(loc="left")) == ((2, 2), "cheap costs, variance 0.02")
    assert axes[1, 0].get_ylabel() == "ackley"
    assert [text.get_text() for text in fig.legends[0].get_texts()] == ["unknown-cost", "ucb-psq"]
    line = axes[1, 1].lines[0]
    assert line.get_xdata().tolist() == [1, 50, 100]
    np.testing.assert_allclose(line.get_ydata(), 1.0 / np.array([1, 50, 100]) + 1e-3)
    band = axes[1, 1].collections[0].get_paths()[0].vertices[:, 1]
    error = 1e-3 / np.sqrt(3)
    assert (band.max(), axes[0, 0].get_yscale()) == (pytest.approx(1 + 1e-3 + error), "log")
    assert {panel.axison for panel in axes.flat} == {True}
    part = table().query("objective == 'ackley' or costs == 'cheap'").query("cost > 1")
    _, part_axes = plots.control_study(part)
    assert [panel.axison for panel in part_axes.flat] == [True, False, True, True]
    labels = [label.get_text() for label in part_axes[0, 0].get_yticklabels()]
    assert {"0.01", "0.02"} <= set(labels)
    fig, axes = plots.control_study(table(), "plays")
    assert (axes[0, 1].lines[1].get_ydata().tolist(), axes[0, 0].get_yscale()) == ([10, 500, 1000], "linear")


def test_control_bounds_draw_regret_per_play_below_its_bounds():
    rows = [(T, a, s, T * 0.1 + s, T * 0.2, T * 2.0, T * 0.5, T * 0.6, T * (1 - a), T * a) for T in (10, 100)
            for a in (0.0, 0.1) for s in (0, 1)]  # fmt: skip
    names = ["plays", "alpha", "seed", "quality_regret", "cost_regret", "bound_3", "bound_4", "bound_5"]
    study = pd.DataFrame(rows, columns=[*names, "worst_quality", "worst_cost"])
    _, (quality, cost) = plots.control_bounds(study)
    drawn = {line.get_label(): line.get_ydata().tolist() for line in quality.lines}
    assert (drawn["Algorithm 1"], drawn["bound (3), Theorem 1"]) == (pytest.approx([0.15, 0.105]), [2.0, 2.0])
    assert (drawn["bound (5), Theorem 3"], drawn["always the worst play"]) == ([0.6, 0.6], [1.0, 1.0])
    drawn = {line.get_label(): line.get_ydata().tolist() for line in cost.lines}
    assert drawn["bound (4), Theorems 1 and 3"] == [0.5, 0.5]
    assert drawn["always the worst play"] == pytest.approx([0.1, 0.1])


def test_regret_below_the_floor_is_drawn_there_and_other_columns_refused():
    zero = table().assign(simple_regret=-1e-9)
    _, axes = plots.control_study(zero)
    assert set(axes[0, 0].lines[0].get_ydata()) == {1e-4}
    refused("`column` must be one of", plots.control_study, table(), "seconds")
    refused("must have a column 'cost_regret'", plots.control_study, table(), "cost_regret")
