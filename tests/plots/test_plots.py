"""Figures: what is drawn is what was passed, axes name their units, and nothing global is left behind."""

from inspect import signature

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.figure import Figure
from refusals import refused
from smallville import BOTH, CENTRES, evaluation, small_city

from emsopt import plots
from emsopt.evaluators import approximate_hypercube
from emsopt.maps.deployments import deployment_map
from emsopt.plots import maps


def square(x, y):
    w, e, s, n = x - 0.01, x + 0.01, y - 0.01, y + 0.01
    return {"type": "Polygon", "coordinates": [[[w, s], [w, n], [e, n], [e, s], [w, s]]]}


@pytest.fixture
def city():
    return small_city(atom_shapes=[square(*centre) for centre in CENTRES])


@pytest.fixture
def both(city):
    return evaluation(city, [0, 2], BOTH, [0.3, 0.2])


@pytest.fixture
def doubled(city):
    """Both units at A; site 0 is taken twice."""
    return evaluation(city, [0, 0], np.full((2, 3), 0.5))


def texts(ax):
    return [text.get_text() for text in ax.texts]


def of_kind(ax, kind):
    return [artist for artist in ax.collections if type(artist) is kind]


# -- maps ---------------------------------------------------------------------------------------------------------


def test_lines_and_stations_say_their_shares(city, both, doubled):
    _, (ax,) = plots.deployments(city, both)
    (lines,) = of_kind(ax, LineCollection)
    drawn = {
        (*np.round(ends[1], 6), width) for ends, width in zip(lines.get_segments(), lines.get_linewidths(), strict=True)
    }
    shares = [(0, 0.9), (1, 0.4), (0, 0.1), (1, 0.6), (2, 0.99)]  # (atom, share); 1 percent is left out
    wanted = {(*CENTRES[atom], maps._width(share)) for atom, share in shares}
    assert sorted(np.ravel(sorted(drawn))) == pytest.approx(sorted(np.ravel(sorted(wanted))))
    assert maps._width(1.0) == maps.WIDEST_LINE
    assert {"43%", "57%"} <= set(texts(ax))  # B: (0.1 + 2 x 0.6 + 0.99) / 4
    _, (ax,) = plots.deployments(city, doubled)
    assert {"2", "100%"} <= set(texts(ax))


def test_a_map_is_true_to_scale(city, both):
    from emsopt.city.travel import great_circle_km

    _, (ax,) = plots.deployments(city, both)
    length = next(float(text.removesuffix(" km")) for text in texts(ax) if text.endswith(" km"))
    bar = next(line for line in ax.lines if len(line.get_xdata()) == 2)
    ends = np.column_stack([bar.get_xdata(), bar.get_ydata()])
    assert great_circle_km(ends[:1], ends[1:])[0, 0] == pytest.approx(length, rel=0.005)


@pytest.mark.parametrize("turn", [1, -1])
def test_holes_in_an_atom_stay_open(turn):
    outer, hole = (square(0, 0)["coordinates"][0], [[0, 0], [0.005, 0], [0.005, 0.005], [0, 0.005], [0, 0]][::turn])
    path = maps._path({"type": "MultiPolygon", "coordinates": [[outer, hole], square(0.04, 0)["coordinates"]]})
    fig = Figure(figsize=(5, 2), dpi=100)
    ax = fig.add_axes((0, 0, 1, 1), xlim=(-0.02, 0.08), ylim=(-0.02, 0.02))
    ax.add_collection(PathCollection([path], facecolors="black"))
    canvas = FigureCanvasAgg(fig)
    canvas.draw()
    dark = np.asarray(canvas.buffer_rgba())[::-1, :, 0] < 128
    x, y = ax.transData.transform([[-0.005, -0.005], [0.003, 0.002], [0.04, 0.0], [0.025, 0.0]]).astype(int).T
    assert dark[y, x].tolist() == [True, False, True, False]


def test_circles_stand_in_for_missing_outlines(city, both):
    plane = city.replace(atom_shapes=None, geographic=False, atom_locations=[[0, 0], [3, 1], [5, 2]])
    plane = plane.replace(site_locations=[[1, 0], [1, 0], [4, 1]])
    _, (ax,) = plots.deployments(plane, evaluation(plane, both.sites, both.dispatch_fractions, both.utilizations))
    sizes = of_kind(ax, PathCollection)[0].get_sizes()
    assert sizes[1] / sizes[0] == pytest.approx(2)  # area is the share of calls


def test_deployments_share_one_scale(city, both, doubled):
    fig, axes = plots.deployments(city, {"optimum": both, "p-median": doubled})
    assert len(axes) == 2
    assert len(fig.axes) == 3  # and one colour bar
    assert [ax.get_title(loc="left").split(":")[0] for ax in axes] == ["optimum", "p-median"]
    view = deployment_map(city, {"optimum": both, "p-median": doubled}).views[0]
    assert fig.axes[2].get_yticks().min() >= view["classes"]["edges"][0]


# -- curves -------------------------------------------------------------------------------------------------------


def test_a_load_sweep_draws_every_column_of_numbers():
    columns = {"optimum": [5.5, 5.8, 6.0], "p_median": [5.6, 6.0, 6.3], "lower_bound": 5.3, "found": list("abc")}
    _, ax = plots.load_sweep(pd.DataFrame(columns, index=pd.Index([0.1, 0.2, 0.3], name="offered_load")))
    assert [line.get_label() for line in ax.lines] == ["optimum", "p-median", "lower bound"]
    assert (ax.lines[1].get_ydata().tolist(), ax.lines[2].get_linestyle()) == ([5.6, 6.0, 6.3], "--")


def test_convergence_draws_the_median_or_mean_and_confidence():
    runs = [[6.0, 5.9, 5.8], [6.4, 6.2, 6.0], [7.0, 6.9, 6.8], [6.2, 6.1, 5.9], [6.6, 6.3, 6.1]]
    named = {"random": [pd.DataFrame({"best": run}) for run in runs]}
    _, ax = plots.convergence(named, band=None, reference={"optimum": 5.7})
    assert (ax.lines[0].get_ydata().tolist(), ax.lines[0].get_xdata().tolist()) == ([6.4, 6.2, 6.0], [1, 2, 3])
    assert ax.lines[0].get_label() == "random (5 runs)"
    assert "optimum 5.7" in texts(ax)
    # Student's t: 2.776 standard errors either side for five runs.
    values = np.array([[6.0], [6.4], [7.0], [6.2], [6.6]])
    runs = [pd.DataFrame({"best": [value, value - 0.1]}) for value in values.ravel()]
    _, ax = plots.convergence({"random": runs})
    assert np.allclose(ax.lines[0].get_ydata(), [6.44, 6.34])
    y = ax.collections[0].get_paths()[0].vertices[:, 1]
    half = 2.776445 * values.std(ddof=1) / np.sqrt(5)
    assert np.allclose((y.min(), y.max()), (6.34 - half, 6.44 + half))


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
    assert ax.get_ylabel() == f"Calls in {edges[1]:g} min (%)"
    _, ax = plots.response_distribution({"both": both, "doubled": doubled})
    curve = next(line for line in ax.lines if line.get_label() == "both")
    t, y = curve.get_data()
    assert (y, y[0]) == (pytest.approx(100 * both.late_fraction(t)), 100)
    (table,) = ax.tables
    assert table[2, 1].get_text().get_text() == f"{100 * doubled.late_fraction(8):.1f}%"
    varying = approximate_hypercube(city.replace(travel_cv=0.4), both.sites)
    _, ax = plots.response_distribution({"fixed": both, "varying": varying})
    t, y = next(line.get_data() for line in ax.lines if line.get_label() == "varying")
    assert y == pytest.approx(100 * varying.late_fraction(t))


# -- figures without pyplot, and style ------------------------------------------------------------------------------


def test_every_figure_comes_from_pyplot_unless_told_otherwise(both, doubled):
    """A figure of one's own keeps pyplot out, and axes of one's own are drawn on."""
    plt.close("all")
    named, own, axes = {"a": both, "b": doubled}, Figure(), Figure(layout="constrained").subplots()
    assert plots.response_histogram(named, ax=own)[0] is own
    assert own.axes
    assert (plots.response_histogram(named, ax=axes), plt.get_fignums()) == ((axes.figure, axes), [])
    for name in plots.__all__:
        ax = signature(getattr(plots, name)).parameters["ax"]
        assert (ax.default, ax.kind) == (None, ax.POSITIONAL_OR_KEYWORD), name


# -- bad input ----------------------------------------------------------------------------------------------------


def test_bad_input_is_refused(city, both):
    refused("has no `atom_locations`", plots.deployments, city.replace(atom_locations=None), both)
    refused("one row and one column of numbers", plots.load_sweep, pd.DataFrame({"name": ["a"]}))
    refused("`runs` must be a dict", plots.convergence, pd.DataFrame({"best": [1.0]}))
    refused("column 'best'", plots.convergence, {"a": [pd.DataFrame({"value": [1.0]})]})
    refused("at least one history", plots.convergence, {"a": []})
