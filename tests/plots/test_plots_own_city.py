"""Figures of an own city and of simulated operations: what is drawn is what profile, plan, fit, report and trace say."""

import numpy as np
import pandas as pd
import pytest
from refusals import refused
from synthetic_log import synthetic_log

import emsopt as eo
from emsopt.calls import WeeklyProfile
from emsopt.operations import Duration, Priority, System, simulate
from emsopt.plots import drives, hourly_plan, weekly_profile


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
    assert f"{plan.moves.sum()} in all" in ax.get_xlabel()


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
