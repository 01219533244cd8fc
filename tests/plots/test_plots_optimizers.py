"""Figures of optimizers at work: what is drawn is what was passed, and the published examples come out."""

import itertools
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from papers import location_figures
from refusals import refused

import emsopt as eo
from emsopt import plots
from emsopt.optimizers.recommendation import log_expected_improvement
from emsopt.surrogates.gaussian_process import condition
from emsopt.surrogates.kernels import SquaredExponential

EXAMPLE_7 = [[0, -2, -3], [-2, 0, -1], [-3, -1, 0]]
SPACE = np.array([[i in pair for i in range(5)] for pair in itertools.combinations(range(5), 2)], int)


def texts(ax):
    return [text.get_text() for text in ax.texts if text.get_text()]


def test_printed_capacities_miss_the_minimum_once_b_is_changed(claim):
    """By brute force: with b = (9, 8, -7) only the value of the printed cut is wrong, with b = (3, 2, -7) the point too."""
    A, every = np.array(EXAMPLE_7, float), np.array(list(itertools.product([0, 1], repeat=3)))
    pairs = np.einsum("ki,ij,kj->k", every, A, every)
    drawn = pairs - every @ A.sum(axis=1)  # cut inner edges, each of capacity -A_ij
    values, graph = pairs + every @ [9, 8, -7], drawn + every @ [9, 8, -7]
    assert every[graph.argmin()].tolist() == every[values.argmin()].tolist() == [0, 0, 1]
    low = graph.argmin()
    claim("server locations", "Figure 1", graph[low], values[low], graph[-1], values[-1], -7, -14)
    b = np.array([3.0, 2, -7])
    values = pairs + every @ b
    assert (values[(drawn + every @ b).argmin()], every[values.argmin()].tolist(), values.min()) == (-7, [1, 1, 1], -14)
    _, (printed, corrected) = location_figures.cut_graph(A, b)
    assert "x = (0, 0, 1), cut 3 + 1 = 4" in printed.get_xlabel()
    assert "4 - 7 = -3, but f(x) = -7" in printed.get_xlabel()
    assert corrected.get_xlabel() == "x = (1, 1, 1), cut 0\nf(x) = cut - capacity into t = 0 - 14 = -14"
    for edges in ([[0, 1], [1, 0]], [[0, -1], [-2, 0]]):
        refused("without positive entries", location_figures.cut_graph, edges, [1, 1])


def test_example_13_shows_what_the_paper_tells(claim):
    _, axes = location_figures.example_13()
    words, names = [set(texts(ax)) for ax in axes], {"".join(map(str, row)) for row in SPACE}
    told = {"6.31 min", "5.28 min", "7.45 min"}
    assert (words[0], words[1]) == (names | told, names | told | {"EI 0.08"})
    assert (words[2], words[3]) == (names | told | {"4.71 min", "EI 0.19"}, names | told | {"4.71 min", "4.15 min"})
    assert claim("server locations, version one", "Section 5.4, numbers").ours.split(" (")[0] in words[3]


def test_rings_are_units_moved_and_the_region_is_coloured():
    """Lemma 22: 1 + 2 · 3 = 7 of the ten deployments are within d = 2 of any centre."""
    centre = SPACE.tolist().index([0, 0, 1, 0, 1])
    _, ax = location_figures.trust_region(SPACE, centre, 2, Figure(), values={0: 5.0}, proposal=3, optimum=1)
    dots = [line for line in ax.lines if line.get_marker() in "os" and line.get_markersize() == 36]
    radii = [np.hypot(*line.get_xydata()[0]) for line in dots]
    apart = np.abs(SPACE - SPACE[centre]).sum(axis=1)
    assert ((apart <= 2).sum(), len(SPACE)) == (7, 10)
    np.testing.assert_allclose(radii, apart / 2, atol=1e-12)
    assert sorted(Counter(line.get_markerfacecolor() for line in dots).values()) == [1, 3, 6]  # centre, out, within
    assert ([line.get_marker() for line in dots].count("s"), texts(ax)[-1]) == (1, "next")


def test_regret_curve_is_mean_and_band_on_fitting_axes():
    """Mean 2 and 4; half width 4.302653 · s / √3 with s = 1 and 2."""
    rows = [[1.0, 2.0], [2.0, 4.0], [3.0, 6.0]]
    _, ax = plots.regret_curves({"random": rows, "one": rows[:1]}, bounds={"bound": [3.0, 9.0]})
    assert [line.get_ydata().tolist() for line in ax.lines] == [[2, 4], [1, 2], [3, 9]]
    corners, half = ax.collections[0].get_paths()[0].vertices[:, 1], 4.302653 / np.sqrt(3)
    assert (corners.min(), corners.max()) == pytest.approx((min(2 - half, 4 - 2 * half), 4 + 2 * half))


def test_figure_6_shows_three_steps_of_a_one_dimensional_search():
    """Points chosen by expected improvement of a process conditioned anew: drawn where it is largest, seen one step later."""
    f, x, points, steps = eo.problems.forrester(), np.linspace(0, 1, 301), [0.1, 0.6], []
    for _ in range(3):
        values = np.array([f([u]) for u in points])
        process = condition(SquaredExponential(0.15), np.c_[points], values, values.mean())
        mean, variance = process.predict(x[:, None], values.mean())
        gain = np.exp(log_expected_improvement(values.min(), mean, np.sqrt(variance)))
        steps.append(pd.DataFrame({"mean": mean, "deviation": np.sqrt(variance), "acquisition": gain}, index=x))
        points.append(x[gain.argmax()])
    told = np.array([(u, f([u])) for u in points])
    _, axes = location_figures.search_steps(steps, told, truth=[f([u]) for u in x])
    assert len(axes) == 6
    for k, (frame, left, right) in enumerate(zip(steps, axes[::2], axes[1::2], strict=True)):
        lines = {line.get_label(): line for line in left.lines}
        assert np.c_[lines["observed"].get_data()] == pytest.approx(told[: 2 + k])
        curve, following = right.lines
        assert curve.get_ydata() == pytest.approx(frame["acquisition"])
        drawn = following.get_xdata()[0], lines["next"].get_xdata()[0], frame["acquisition"].idxmax()
        assert set(drawn) == {told[2 + k, 0]}
        assert np.interp(*told[: 2 + k, :1].T, x, frame["mean"]) == pytest.approx(told[: 2 + k, 1], abs=0.05)
    refused("number of points before the first step", location_figures.search_steps, steps, told[:2])
    refused("must have a column 'deviation'", location_figures.search_steps, [steps[0][["mean"]]], told)
