"""Figures of a city of one's own: what is drawn is what the profile and the plan say."""

import numpy as np
import pytest

import emsopt as eo

pytest.importorskip("matplotlib", reason="needs the package matplotlib")
from matplotlib.figure import Figure

from emsopt.calls.profile import WeeklyProfile
from emsopt.plots import hourly_plan, weekly_profile


def test_rates_and_bands_are_counts_over_hours_watched():
    counts, hours = np.zeros((7, 24), dtype=int), np.full((7, 24), 4)
    counts[:5, 9], counts[5, 9] = 20, 2
    _, ax = weekly_profile(WeeklyProfile(counts, hours), Figure())
    weekdays, weekends = (patch.get_data().values for patch in ax.patches)
    assert weekdays[9] == pytest.approx(100 / 20)
    assert weekends[9] == pytest.approx(2 / 8)
    assert weekdays.sum() == weekdays[9]
    high = ax.collections[0].get_paths()[0].vertices[:, 1].max()
    assert high == pytest.approx(5 + 2 * np.sqrt(100) / 20)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["Mon to Fri", "Sat and Sun"]


def test_hours_that_were_not_watched_are_left_blank():
    hours = np.full((7, 24), 4)
    hours[:, 3] = 0
    _, ax = weekly_profile(WeeklyProfile(np.ones((7, 24), dtype=int), hours), Figure())
    assert np.isnan(ax.patches[0].get_data().values).nonzero()[0].tolist() == [3]


def test_a_plan_has_a_cell_for_every_unit_and_a_dot_for_every_one_that_comes():
    base = eo.datasets.grid_city(n_sites=5, units=2, rng=1)
    west, east = (base.replace(arrival_rates=np.eye(base.n_atoms)[k]) for k in (0, -1))
    plan = eo.planning.hourly_plan(
        {"night": west, "day": east}, eo.DeploymentSpace(west, 2, colocation=True), 2, "approximate"
    )
    _, ax = hourly_plan(plan, Figure())
    rows = [label.get_text() for label in ax.get_yticklabels()]
    assert set(rows) == {base.site_names[site] for site in plan.sites.ravel()}
    shown = {text.get_position(): text.get_text() for text in ax.texts}
    dots = sum(text.endswith("●") for text in shown.values())
    assert dots == len(plan.changes().drop_duplicates(["hour", "to"])) > 0
    for hour, sites in enumerate(plan.sites):
        for row, name in enumerate(rows):
            count = sum(base.site_names[site] == name for site in sites)
            text = shown.get((hour + 0.5, row + 0.5))
            assert (text is None) == (count == 0)
            if count > 1:
                assert text.startswith(str(count))
    assert f"{plan.moves.sum()} in all" in ax.get_xlabel()


def test_anything_else_is_refused():
    with pytest.raises(eo.errors.InputError, match=r"must be an emsopt\.calls\.WeeklyProfile; got ndarray"):
        weekly_profile(np.ones((7, 24)))
    with pytest.raises(eo.errors.InputError, match=r"must be an emsopt\.planning\.Plan; got dict"):
        hourly_plan({})
