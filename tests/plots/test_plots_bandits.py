"""Figures of regret: the lines are the means of the runs, the bands their standard errors."""

import numpy as np
import pandas as pd
import pytest
from refusals import refused

from emsopt import bandits, plots


@pytest.fixture
def frame():
    """Two routes, two policies, three runs, three rounds; regret grows in proportion to the round."""
    rng, rows = np.random.default_rng(0), []
    for route in "AB":
        for policy in ("gp-ts", "bi-ucb"):
            for run in range(3):
                slope = 10 * rng.random() + 1
                rows += [("monaco", route, run, policy, 1.0, t, slope * t) for t in (10, 20, 30)]
    return pd.DataFrame(
        rows, columns=["network", "route", "run", "policy", "lengthscale", "round", "cumulative_regret"]
    )


def test_each_panel_has_the_mean_of_its_runs(frame):
    fig, axes = plots.cumulative_regret(frame)
    assert [ax.get_title(loc="left") for ax in axes] == ["monaco, A", "monaco, B"]
    for route, ax in zip("AB", axes, strict=True):
        assert [line.get_label() for line in ax.lines] == ["gp-ts", "bi-ucb"]
        for policy, line, band in zip(("gp-ts", "bi-ucb"), ax.lines, ax.collections, strict=True):
            part = frame[(frame["route"] == route) & (frame["policy"] == policy)]
            table = part.pivot(index="round", columns="run", values="cumulative_regret")
            np.testing.assert_allclose(line.get_ydata(), table.mean(axis=1))
            top = table.mean(axis=1) + table.std(axis=1, ddof=1) / np.sqrt(3)
            assert band.get_paths()[0].vertices[:, 1].max() == pytest.approx(top.max())
        assert ax.get_yscale() == "log"
        assert "Wh" in ax.get_ylabel()
    assert len(fig.legends) == 1


def test_other_columns_can_be_values_panels_and_lines(frame):
    both = pd.concat([frame, frame.assign(lengthscale=0.5, cumulative_regret=2 * frame["cumulative_regret"])])
    _, axes = plots.cumulative_regret(both, against="lengthscale", log=False)
    ends = both[(both["round"] == 30) & (both["route"] == "B") & (both["policy"] == "bi-ucb")]
    drawn = axes[1].containers[1].lines[0]
    np.testing.assert_allclose(drawn.get_xdata().astype(float), [0.5, 1.0])
    np.testing.assert_allclose(
        drawn.get_ydata().astype(float), ends.groupby("lengthscale")["cumulative_regret"].mean().to_numpy()
    )
    assert "30 rounds" in axes[0].get_ylabel()
    _, axes = plots.cumulative_regret(frame, by=("policy",), lines="route", log=False)
    assert [ax.get_title(loc="left") for ax in axes] == ["gp-ts", "bi-ucb"]
    table = frame.assign(excess_energy=-frame["cumulative_regret"])
    _, axes = plots.cumulative_regret(table, value="excess_energy", log=False)
    _, positive = plots.cumulative_regret(frame)
    np.testing.assert_allclose(axes[0].lines[0].get_ydata(), -np.asarray(positive[0].lines[0].get_ydata()))
    assert axes[0].get_ylabel() == "Cumulative energy above the best path's (Wh)"
    refused("`value` must be", plots.cumulative_regret, frame, value="energy")


def test_confidence_parameters_are_the_rules_own():
    rules = {"BUCB": bandits.BayesUCB(), "half UCB": bandits.UCB(0.5)}
    _, ax = plots.confidence_parameters(rules, 3003)
    t = np.arange(1, 501)
    np.testing.assert_allclose(ax.lines[0].get_ydata(), bandits.BayesUCB().beta(t, 3003))
    np.testing.assert_allclose(ax.lines[1].get_ydata(), 0.5 * bandits.UCB().beta(t, 3003))


def test_wrong_frames_are_refused(frame):
    refused("'run'", plots.cumulative_regret, frame.drop(columns="run"))
    refused("nothing to draw", plots.cumulative_regret, frame[:0])
