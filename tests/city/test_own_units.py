"""Cities of others' tables: units of times, long tables, tables of the census, places at the date line."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused

import emsopt as eo
from emsopt.errors import InputError

DEMAND = pd.DataFrame(
    {"name": ["a", "b", "c"], "lon": [8.80, 8.84, 8.87], "lat": [53.07, 53.10, 53.08], "arrival_rate": [1.5, 0.5, 0.3]}
)
SITES = pd.DataFrame({"name": ["N", "S"], "lon": [8.83, 8.81], "lat": [53.09, 53.06]})
TIMES = {"turnout_times": 1.5, "service_times": 45}
MINUTES = eo.City.from_frames(DEMAND, SITES, speed_kmh=40, **TIMES).travel_times


@settings(max_examples=10, deadline=None)
@given(kmh=st.floats(15, 120), located=st.booleans())
def test_units_of_travel_times(kmh, located):
    minutes = MINUTES * 40 / kmh
    assert eo.City.from_frames(DEMAND, SITES, travel_times=minutes, **TIMES).n_sites == 2
    for unit, factor in {"seconds": 60, "hours": 1 / 60, "metres": 1000 / 60 * 40 * 1.0}.items():
        other = (MINUTES if unit == "metres" else minutes) * factor
        with pytest.raises(InputError, match=f"Are they {unit}|Divide seconds by 60"):
            eo.City.from_frames(DEMAND, SITES, travel_times=other, **TIMES)
    if not located:
        refused("Are they seconds", eo.City, DEMAND.arrival_rate, MINUTES * 0 + 451, 1.5, 45)


@pytest.mark.parametrize(
    "names",
    [
        ("from_id", "to_id", "travel_time"),
        ("from_id", "to_id", "travel_time_p50"),
        ("origin", "destination", "minutes"),
    ],
)
def test_long_tables(names):
    rows = [(s, a, MINUTES[i, j]) for i, s in enumerate("NS") for j, a in enumerate("abc")]
    table = pd.DataFrame(rows, columns=names).sample(frac=1, random_state=0)
    assert np.allclose(eo.City.from_frames(DEMAND, SITES, travel_times=table, **TIMES).travel_times, MINUTES)
    with pytest.raises(InputError, match="more than one from and to"):
        eo.City.from_frames(DEMAND, SITES, travel_times=pd.concat([table, table[:1]]), **TIMES)
    refused("column", eo.City.from_frames, DEMAND, SITES, travel_times=table[1:], **TIMES)


def test_tables_of_the_census():
    tracts = pd.DataFrame({
        "GEOID": ["27123030100", "27123030200"], "NAME": ["301", "301"], "INTPTLAT": ["+44.9", "+44.95"],
        "INTPTLON": ["-093.1", "-093.2"], "arrival_rate": [1, 2],
    })  # fmt: skip
    city = eo.City.from_frames(
        tracts, pd.DataFrame({"name": ["A"], "lon": [-93.1], "lat": [44.9]}), speed_kmh=40, **TIMES
    )
    assert city.atom_names == ("27123030100", "27123030200")
    assert np.allclose(city.atom_locations, [[-93.1, 44.9], [-93.2, 44.95]])


@pytest.mark.parametrize("side", ["west", "east", "both"])
def test_cities_at_the_date_line(side, tmp_path):
    """All numbers are those of the same city elsewhere; saved and loaded they stay."""
    rng = np.random.default_rng(0)
    east, north = rng.normal(0, 0.02, 400), -16.5 + rng.normal(0, 0.02, 400)
    stations = {"west": [-0.01, -0.02], "east": [0.01, 0.02], "both": [-0.01, 0.01]}[side]
    times = pd.date_range("2025-01-01", periods=400, freq="3h").astype(str)

    def city(middle):
        turn = lambda x: np.round(np.where(middle + x > 180, middle + x - 360, middle + x), 9)
        calls = pd.DataFrame({"time": times, "lon": turn(east), "lat": north})
        sites = pd.DataFrame({"name": ["A", "B"], "lon": turn(np.array(stations)), "lat": [-16.5, -16.52]})
        assert len(eo.calls.check_calls(calls, sites).findings) == len(eo.calls.check_calls(calls).findings)
        return eo.calls.city_from_calls(calls, sites, speed_kmh=40, cell_km=1, **TIMES)

    there, here = city(180.0), city(100.0)
    assert there.atom_names == here.atom_names
    assert np.abs(there.travel_times - here.travel_times).max() < 1e-4
    corners = np.concatenate([shape["coordinates"][0] for shape in there.atom_shapes])
    points = np.concatenate([there.atom_locations, there.site_locations, corners])
    assert np.ptp(points[:, 0]) < 0.3
    there.save(tmp_path / "city")
    again = eo.City.load(tmp_path / "city")
    assert np.array_equal(again.atom_locations, there.atom_locations)
    assert again.atom_shapes == there.atom_shapes
    assert np.array_equal(there.replace(name="x").site_locations, there.site_locations)


def test_exact_is_said_only_where_it_is():
    city = eo.City([3.0, 4.0], [[1, 4], [4, 1]], 0, [[4.0, 7.0], [5.0, 4.0]])
    for service, said in ((city.service_times, True), ([4.0, 5.0], False)):
        result = eo.evaluators.exact_hypercube(city.replace(service_times=service), [0, 1])
        assert result.calibrated is said
        assert ("approximate" in repr(result)) is said
        assert ("approximate" in result._repr_html_()) is said
    assert not eo.evaluators.approximate_hypercube(city, [0, 1]).calibrated
