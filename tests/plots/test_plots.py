"""Figures: what is drawn is what was passed, axes name their units, and nothing global is left behind."""

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from refusals import refused
from smallville import CENTRES, small_city
from uploads import square

from emsopt import plots
from emsopt.city.travel import great_circle_km
from emsopt.evaluators import approximate_hypercube
from emsopt.plots import maps


@pytest.fixture
def city():
    return small_city(atom_shapes=[square(x - 0.01, y - 0.01) for x, y in CENTRES])


def texts(ax):
    return [text.get_text() for text in ax.texts]


def test_lines_and_stations_say_their_shares(city, both, doubled):
    _, (ax,) = plots.deployments(city, both)
    (lines,) = (artist for artist in ax.collections if type(artist) is LineCollection)
    drawn = [(*ends[1], width) for ends, width in zip(lines.get_segments(), lines.get_linewidths(), strict=True)]
    shares = [(0, 0.9), (1, 0.4), (0, 0.1), (1, 0.6), (2, 0.99)]  # (atom, share); 1 percent is left out
    wanted = [(*CENTRES[atom], maps._line_width(share)) for atom, share in shares]
    assert np.array(sorted(drawn)) == pytest.approx(np.array(sorted(wanted)))
    assert {"43%", "57%"} <= set(texts(ax))  # B: (0.1 + 2 x 0.6 + 0.99) / 4
    length = next(float(text.removesuffix(" km")) for text in texts(ax) if text.endswith(" km"))
    scale = next(line for line in ax.lines if len(line.get_xdata()) == 2).get_xydata()
    assert great_circle_km(scale[:1], scale[1:])[0, 0] == pytest.approx(length, rel=0.005)
    _, (ax,) = plots.deployments(city, doubled)
    assert {"2", "100%"} <= set(texts(ax))


def test_convergence_draws_the_median_or_mean_and_confidence():
    """Student's t: 2.776 standard errors either side for five runs. A load sweep draws every column of numbers."""
    values = np.array([6.0, 6.4, 7.0, 6.2, 6.6])
    runs = {"random": [pd.DataFrame({"best": [value, value - 0.1]}) for value in values]}
    _, ax = plots.convergence(runs, band=None, reference={"optimum": 5.7})
    assert ax.lines[0].get_xydata().tolist() == [[1, 6.4], [2, pytest.approx(6.3)]]
    assert "optimum 5.7" in texts(ax)
    _, ax = plots.convergence(runs)
    assert np.allclose(ax.lines[0].get_ydata(), [6.44, 6.34])
    y = ax.collections[0].get_paths()[0].vertices[:, 1]
    half = 2.776445 * values.std(ddof=1) / np.sqrt(5)
    assert np.allclose((y.min(), y.max()), (6.34 - half, 6.44 + half))
    columns = {"optimum": [5.5, 5.8, 6.0], "p_median": [5.6, 6.0, 6.3], "found": list("abc")}
    _, ax = plots.load_sweep(pd.DataFrame(columns, index=pd.Index([0.1, 0.2, 0.3], name="offered_load")))
    assert [line.get_label() for line in ax.lines] == ["optimum", "p-median"]
    assert ax.lines[1].get_ydata().tolist() == [5.6, 6.0, 6.3]


def test_convergence_takes_histories_by_evaluation_or_time():
    slow = pd.DataFrame({"evaluation": [1, 2], "seconds": [1.0, 10.0], "best": [5.0, 3.0]})
    fast = pd.DataFrame({"evaluation": [1, 9], "seconds": [0.1, 2.0], "best": [6.0, 4.0]})
    _, ax = plots.convergence({"both": [slow, fast]}, against="seconds")
    assert (ax.get_xscale(), ax.get_xlabel()) == ("log", "Time (s)")
    assert ax.lines[0].get_xydata().tolist() == [[1, 5.5], [2, 4.5], [10, 3.5]]
    _, ax = plots.convergence({"both": [slow, fast]})
    assert ax.lines[0].get_xydata().tolist() == [[1, 5.5], [2, 4.5], [9, 3.5]]
    local = pd.DataFrame({"evaluations": [62, 115], "best": [6.0, 5.9]})  # as of `local_search`
    assert plots.convergence({"local": local})[1].lines[0].get_xdata().tolist() == [62, 115]


def test_histograms_and_distributions_fall_as_late_fractions_do(both, doubled, city):
    _, ax = plots.response_histogram({"both": both, "doubled": doubled}, threshold=4)
    for e, steps in zip((both, doubled), ax.patches, strict=True):
        shares, edges, _ = steps.get_data()
        late = e.late_fraction(edges)
        assert (shares, shares.sum()) == (pytest.approx(100 * (late[:-1] - late[1:])), pytest.approx(100))
    varying = approximate_hypercube(city.replace(travel_cv=0.4), both.sites)
    _, ax = plots.response_distribution({"both": both, "varying": varying})
    for name, e in (("both", both), ("varying", varying)):
        t, y = next(line.get_data() for line in ax.lines if line.get_label() == name)
        assert (y, y[0]) == (pytest.approx(100 * e.late_fraction(t)), 100)
    (table,) = ax.tables
    assert table[2, 1].get_text().get_text() == f"{100 * varying.late_fraction(8):.1f}%"


def test_every_figure_comes_from_pyplot_unless_told_otherwise(both, doubled):
    """A figure of one's own keeps pyplot out, and axes of one's own are drawn on."""
    plt.close("all")
    named, own, axes = {"a": both, "b": doubled}, Figure(), Figure(layout="constrained").subplots()
    assert plots.response_histogram(named, ax=own)[0] is own
    assert (plots.response_histogram(named, ax=axes), plt.get_fignums()) == ((axes.figure, axes), [])


def test_bad_input_is_refused(city, both):
    refused("has no `atom_locations`", plots.deployments, city.replace(atom_locations=None), both)
    refused("one row and one column of numbers", plots.load_sweep, pd.DataFrame({"name": ["a"]}))
    refused("`runs` must be a dict", plots.convergence, pd.DataFrame({"best": [1.0]}))
    refused("column 'best'", plots.convergence, {"a": [pd.DataFrame({"value": [1.0]})]})
    refused("at least one history", plots.convergence, {"a": []})
