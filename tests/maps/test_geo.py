"""GeoDataFrames and folium maps: geometry, figures, and text that stays text."""

import numpy as np
import pytest
from refusals import refused

import emsopt as eo
from emsopt.maps import frames

SITES = [0, 0, 3, 4, 8, 9, 11, 15, 16]


@pytest.fixture(scope="module")
def city():
    names = ["<script>alert(1)</script>", *(f"site {k}" for k in range(1, 17))]
    return eo.datasets.load_st_paul().replace(site_names=names)


@pytest.fixture(scope="module")
def evaluation(city):
    return eo.evaluators.exact_hypercube(city, SITES)


def test_atoms_and_sites_carry_their_figures(city, evaluation):
    frame = frames.atoms_frame(city, evaluation)
    assert (frame.crs.to_epsg(), len(frame)) == (4326, 71)
    assert frame["mean_response_min"].to_numpy() == pytest.approx(evaluation.atom_response)
    assert frame["calls_per_hour"].sum() == pytest.approx(city.total_rate)
    centres = frames.atoms_frame(city.replace(atom_shapes=None)).geometry
    assert frame.geometry.contains(centres).mean() > 0.9  # a cell holds its own atom
    frame = frames.sites_frame(city, evaluation)
    assert frame["units"].tolist() == np.bincount(SITES, minlength=17).tolist()
    assert frame["utilization"].iloc[0] == pytest.approx(evaluation.utilizations[:2].mean())
    assert (frame["utilization"].isna().sum(), frame["share_of_calls"].sum()) == (9, pytest.approx(1))


def test_folium_draws_cities_with_longitude_and_latitude(city, evaluation):
    folium_map = frames.folium_map(city, evaluation)
    page = folium_map.get_root().render()
    assert "mean response (min)" in page
    assert "alert(1)" in page
    assert "<script>alert(1)" not in page
    grid = eo.datasets.grid_city(n_sites=9, units=3, rng=0)
    refused("plane", frames.folium_map, grid, eo.evaluators.exact_hypercube(grid, [0, 1, 2]))
