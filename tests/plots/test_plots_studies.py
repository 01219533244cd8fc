"""Figures of regret, control problems, BOKE, an own city and operations: what is drawn is what was passed."""

import itertools

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from refusals import refused
from synthetic_log import synthetic_log

import emsopt as eo
from emsopt import plots
from emsopt.calls import WeeklyProfile
from emsopt.operations import Duration, Priority, System, simulate
from emsopt.plots import drives, hourly_plan, weekly_profile


def test_each_panel_has_the_mean_of_its_runs():
    """Two routes, two policies, three runs, three rounds; regret grows with the round; other columns as lines."""
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


def test_rates_and_bands_are_counts_over_hours_watched():
    counts, hours = np.zeros((7, 24), dtype=int), np.full((7, 24), 4)
    counts[:5, 9], counts[5, 9], hours[:, 3] = 20, 2, 0
    _, ax = weekly_profile(WeeklyProfile(counts, hours))
    weekdays, weekends = (patch.get_data().values for patch in ax.patches)
    assert (weekdays[9], weekends[9]) == (pytest.approx(100 / 20), pytest.approx(2 / 8))
    assert np.nansum(weekdays) == weekdays[9]
    assert np.isnan(weekdays).nonzero()[0].tolist() == [3]
    high = max(path.vertices[:, 1].max() for path in ax.collections[0].get_paths())
    assert high == pytest.approx(5 + 2 * np.sqrt(100) / 20)


def test_a_plan_has_a_cell_for_every_unit_and_a_dot_for_every_one_that_comes():
    base = eo.datasets.grid_city(n_sites=5, units=2, rng=1)
    west, east = (base.replace(arrival_rates=np.eye(base.n_atoms)[k]) for k in (0, -1))
    space = eo.DeploymentSpace(west, 2, colocation=True)
    plan = eo.planning.hourly_plan({"night": west, "day": east}, space, 2, "approximate")
    _, ax = hourly_plan(plan)
    rows = {label.get_text(): k + 0.5 for k, label in enumerate(ax.get_yticklabels())}
    shown = {text.get_position(): text.get_text() for text in ax.texts}
    placed = {(hour + 0.5, rows[base.site_names[site]]) for hour, sites in enumerate(plan.sites) for site in sites}
    assert set(shown) == placed
    dots = sum(text.endswith("●") for text in shown.values())
    assert dots == len(plan.changes().drop_duplicates(["hour", "to"])) > 0


def test_drives_and_back_test_of_a_fit_are_drawn():
    stations = pd.DataFrame({"name": ["Station 1", "Station 2"], "lon": [0.0, 0.06], "lat": [45.0, 45.01]})
    fit = eo.calls.calibrate(synthetic_log(stations, calls_per_day=30, rng=1), stations)
    _, ax = eo.plots.recorded_drives(fit)
    line = next(line for line in ax.get_lines() if line.get_label() == "law")
    assert line.get_ydata() == pytest.approx(fit.law.mean(line.get_xdata()))
    counted = np.nansum(ax.collections[0].get_array())
    assert 0.97 * len(fit.drives) < counted <= len(fit.drives)
    report = eo.calls.back_test(fit, fit.calls, draws=40)
    _, axes = eo.plots.back_test(report)
    assert len(axes[0].patches) == len(report.distribution)
    assert [text.get_text() for text in axes[1].get_yticklabels()] == list(report.by_hour.index)
    assert [text.get_text() for text in axes[2].get_yticklabels()] == list(report.by_zone.index)


def test_bars_have_the_lengths_of_drives_and_work():
    """A unit that stays on scene for 10 min, 4 min from its station."""
    city = eo.City([1.0], [[4.0]], turnout_times=0, service_times=30)
    system = System(city, [[0.0, 4.0], [4.0, 0.0]], priorities=[Priority(on_scene=Duration(10, cv=0))])
    result = simulate(system, [0], calls=50, warmup=0, trace=1_000, rng=0)
    _, ax = drives(result, hours=1_000)
    to_call, at_work, to_site = (np.array([bar.get_width() * 60 for bar in bars]) for bars in ax.containers)
    minutes, sent = (result.trace["until"] - result.trace["leave"]).to_numpy(), result.trace["call"] >= 0
    assert len(to_call) == len(at_work) >= 50
    assert to_call == pytest.approx(minutes[sent])
    assert to_site == pytest.approx(minutes[~sent])
    assert at_work[:-1] == pytest.approx(10.0)  # the last is cut
    refused("no recorded drive between 5000 and 5006 h", drives, result, begin=5_000)
    refused("simulate with a larger `trace`", drives, simulate(system, [0], calls=50, rng=0))
