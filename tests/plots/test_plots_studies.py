"""Figures of regret, of control problems and of BOKE: what is drawn is what was passed."""

import itertools

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from refusals import refused

import emsopt as eo
from emsopt import plots


def test_each_panel_has_the_mean_of_its_runs():
    """Two routes, two policies, three runs, three rounds; regret grows in proportion to the round; other columns as lines."""
    rng, keys = np.random.default_rng(0), itertools.product("AB", ("gp-ts", "bi-ucb"), range(3))
    rows = [("monaco", *key, t, slope * t) for key in keys for slope in [10 * rng.random() + 1] for t in (10, 20, 30)]
    frame = pd.DataFrame(rows, columns=["network", "route", "policy", "run", "round", "cumulative_regret"])
    frame["lengthscale"] = 1.0
    _, axes = plots.cumulative_regret(frame)
    assert [ax.get_title(loc="left") for ax in axes] == ["monaco, A", "monaco, B"]
    for route, ax in zip("AB", axes, strict=True):
        assert [line.get_label() for line in ax.lines] == ["gp-ts", "bi-ucb"]
        for policy, line, band in zip(("gp-ts", "bi-ucb"), ax.lines, ax.collections, strict=True):
            part = frame[(frame["route"] == route) & (frame["policy"] == policy)]
            table = part.pivot(index="round", columns="run", values="cumulative_regret")
            np.testing.assert_allclose(line.get_ydata(), table.mean(axis=1))
            top = table.mean(axis=1) + table.std(axis=1, ddof=1) / np.sqrt(3)
            assert band.get_paths()[0].vertices[:, 1].max() == pytest.approx(top.max())
    both = pd.concat([frame, frame.assign(lengthscale=0.5, cumulative_regret=2 * frame["cumulative_regret"])])
    _, axes = plots.cumulative_regret(both, against="lengthscale", log=False)
    last = both[(both["round"] == 30) & (both["route"] == "B") & (both["policy"] == "bi-ucb")]
    drawn = axes[1].containers[1].lines[0].get_xydata()
    np.testing.assert_allclose(drawn, last.groupby("lengthscale")["cumulative_regret"].mean().reset_index())
    _, axes = plots.cumulative_regret(frame, by=("policy",), lines="route", log=False)
    assert [ax.get_title(loc="left") for ax in axes] == ["gp-ts", "bi-ucb"]
    refused("`value` must be", plots.cumulative_regret, frame, value="energy")
    refused("'run'", plots.cumulative_regret, frame.drop(columns="run"))
    refused("nothing to draw", plots.cumulative_regret, frame[:0])


def test_control_sets_show_where_plays_fall_and_what_to_expect():
    problem = eo.problems.hill_control()
    _, (where, expected) = plots.control_sets(problem)
    by_name = {line.get_label(): line for line in where.lines}
    assert set(by_name) == {"control x2", "control x1", "control all"}
    x, y = by_name["control x1"].get_data()
    assert (np.unique(x), np.var(y)) == (pytest.approx([0.7]), pytest.approx(0.02, rel=0.05))
    lines = {line.get_label(): line for line in expected.lines}
    x, y = lines["control x1, cost 0.3"].get_data()
    assert (x[y.argmax()], y.max()) == (pytest.approx(0.7), pytest.approx(problem.set_values[1], abs=1e-3))
    refused("must have exactly two variables to be drawn; got 5", plots.control_sets, eo.problems.airfoil_control())
    run = eo.optimizers.bocvs(problem, budget=5, rng=0)
    _, ax = plots.control_run(run, problem, ax=Figure())
    drawn = np.vstack([line.get_xydata() for line in ax.lines])
    drawn = drawn[np.argsort(drawn[:, 0])]  # every play at its cost
    np.testing.assert_allclose(drawn, run.history[["spent", "set"]])
    assert [label.get_weight() for label in ax.get_yticklabels()] == ["normal", "bold", "normal"]  # the target
    other = eo.problems.ControlProblem(problem.objective, [[0]], [1.0], problem.marginals)
    refused("the sets 0 to 0, but the run played set 2", plots.control_run, run, other)


def test_a_step_of_boke_shows_three_views_of_one_axis():
    x = np.linspace(0, 1, 51)
    columns = {"mean": np.sin(6 * x), "bonus": 0.1, "bound": np.sin(6 * x) + 0.1, "density": 1 - x}
    profile = pd.DataFrame(columns, index=x)
    told = [[0.1, 0.5], [0.4, 0.7]]
    _, axes = plots.boke_step(profile, told, Figure(), truth=x, proposal=0.8, title="two points")
    assert len(axes) == 3
    np.testing.assert_allclose(axes[1].lines[0].get_ydata(), 1 - x)
    assert all(ax.lines[-1].get_xdata()[0] == 0.8 for ax in axes)
    refused("column 'bonus'", plots.boke_step, profile.drop(columns="bonus"), told)
