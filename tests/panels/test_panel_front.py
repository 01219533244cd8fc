"""The front panel: the slider goes through the front in the order of any metric."""

import re

import numpy as np
import pytest

import emsopt as eo
from emsopt.errors import InputError

pytest.importorskip("emsopt.panels", reason="needs the package ipywidgets")

CITY = eo.datasets.grid_city(n_sites=9, units=3, rng=1)


@pytest.fixture(scope="module")
def found():
    return eo.planning.front(CITY, 3, ["mean_response", ("late", 5.0), "busiest"], "approximate")


def chosen(panel):
    """Return the values of the chosen deployment, as the table shows them."""
    return [float(cell) for cell in re.findall(r"</th><td>(.*?)</td>", panel.refs["figures"].value)]


def test_the_slider_goes_through_the_front_in_the_order_of_each_metric(found):
    refs = (panel := eo.panels.front_panel(found)).refs
    assert refs["place"].max == len(found.sites) >= 4
    for metric in range(3):
        refs["metric"].value = metric
        for place in (1, 3, len(found.sites)):
            refs["place"].value = place
            values = chosen(panel)
            assert values[metric] == pytest.approx(np.sort(found.values[:, metric])[place - 1], rel=1e-3)
            k = panel.compute()[0]
            np.testing.assert_allclose(values, found.values[k], rtol=1e-3)
            assert all(CITY.site_names[site] in refs["figures"].value for site in found.sites[k])
    assert refs["message"].value == ""


def test_the_map_shows_the_deployment_beside_the_best(found):
    refs = eo.panels.front_panel(found).refs
    refs["place"].value = 4
    assert [view["name"] for view in refs["map"].views][:2] == ["chosen", "best in this metric"]
    assert "<img" in refs["points"].value
    assert f"Deployment 4 of the {len(found.sites)}" in refs["points"].value
    assert "of all deployments" in refs["figures"].value


def test_a_search_is_called_so():
    searched = eo.planning.front(CITY, 3, ["mean_response", ("late", 5.0)], "approximate", budget=30, rng=0)
    assert "of 30 deployments that a search evaluated" in eo.panels.front_panel(searched).refs["figures"].value


def test_only_a_front_will_do():
    with pytest.raises(InputError, match="front"):
        eo.panels.front_panel([[1, 2]])


def test_the_plot_rings_the_chosen_deployment(found):
    from matplotlib.figure import Figure

    _, ax = eo.plots.trade_off(found, ax=Figure(), chosen=2)
    points, ring = ax.collections
    np.testing.assert_allclose(points.get_offsets(), found.values[:, :2])
    np.testing.assert_allclose(ring.get_offsets(), found.values[2:3, :2])
    with pytest.raises(InputError, match="chosen"):
        eo.plots.trade_off(found, ax=Figure(), chosen=len(found.sites))
