"""The live map: what reaches the browser after a change, and what a click does."""

import pandas as pd
import pytest
from refusals import refused

pytest.importorskip("anywidget", reason="needs the package anywidget")


from emsopt.maps import deployment_map
from emsopt.maps.live import LiveMap
from emsopt.maps.roads import exploration_map
from emsopt.roads import grid_roads


def test_an_update_sends_results_and_another_map_all(city, both, doubled):
    live, seen = LiveMap(), []
    live.draw(deployment_map(city, both))
    live.observe(lambda change: seen.append(change["name"]), ["kind", "scene", "views"])
    live.update({"another name": doubled})
    assert seen == ["views"]
    assert live.views == live.page.views == deployment_map(city, {"another name": doubled}).views
    assert live.scene == live.page.scene
    live.draw(exploration_map(grid_roads(2, 2), pd.DataFrame({"edge": [0], "first_round": [1], "visits": [2]})))
    assert set(seen) == {"kind", "scene", "views"}
    refused("only a map of deployments", live.update, both)


def test_a_click_tells_all_sites_and_old_maps_are_hidden(city, both):
    told, live = [], LiveMap()
    live.draw(deployment_map(city, {"yours": both}))
    live.edit, live.clicked = "yours", told.append
    for place in (0, 1):
        live._handle_custom_msg({"place": place}, [])  # as the browser sends it
    assert told == [[0, 1], [2]]
    shown = live._repr_mimebundle_()  # by a viewer without a kernel
    data = shown[0] if isinstance(shown, tuple) else shown
    assert data["text/html"] == live.page._repr_html_()
    live = LiveMap(sentence="nothing yet")
    live.hide()
    live.draw(deployment_map(city, both, height=300))
    assert (live.layout.visibility, live.layout.height) == ("visible", "300px")
