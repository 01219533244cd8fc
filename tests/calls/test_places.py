"""Known places, written in every form that the readers claim, are read back; other forms are refused."""

import json

import numpy as np
import pandas as pd
import pytest
from refusals import refused
from uploads import file, geojson, square

import emsopt as eo
from emsopt.calls._points import parse_place

# One in each quarter of the globe, at both sides of the date line and at the equator, with a projected system made for it.
CITIES = {
    "Bremen": (8.80717, 53.07516, 25832),
    "Montreal": (-73.56725, 45.50169, "NAD83 / MTM zone 8"),
    "Anchorage": (-149.90028, 61.21806, "EPSG:3338"),
    "Quito": (-78.46784, -0.18065, "EPSG:32717"),
    "Buenos Aires": (-58.37723, -34.61315, "EPSG:3857"),
    "Nairobi": (36.81667, -1.28333, "+proj=utm +zone=37 +south +ellps=WGS84 +units=us-ft"),
    "Suva": (178.44190, -18.14161, 3460),
    "Nukualofa": (-175.20180, -21.13938, "EPSG:3857"),
}
FORMS = {
    "bare pair": lambda x, y: f"{y}, {x}",
    "pair without a space": lambda x, y: f"{y},{x}",
    "parentheses": lambda x, y: f"({y}, {x})",
    "square brackets": lambda x, y: f"[{y}, {x}]",
    "braces": lambda x, y: f"{{{y}; {x}}}",
    "decimal commas": lambda x, y: f"{y}; {x}".replace(".", ","),
    "address, brackets": lambda x, y: f"12 Main St, Town 55101 ({y}, {x})",
    "address in lines": lambda x, y: f"12 Main St\nTown, MN 55101\n({y}, {x})",
    "address with brackets of its own": lambda x, y: f"12 Main St (rear) [{y}, {x}]",
    "address, bare pair": lambda x, y: f"Main St & 5th Ave, {y}, {x}",
    "WKT": lambda x, y: f"POINT ({x} {y})",
    "WKT, heights": lambda x, y: f"POINT Z ({x} {y} 250.5)",
    "WKT in capitals and small": lambda x, y: f"Point({x} {y})",
    "EWKT": lambda x, y: f"SRID=4326;POINT({x} {y})",
    "GeoJSON": lambda x, y: json.dumps({"type": "Point", "coordinates": [x, y]}),
    "Socrata": lambda x, y: f"{{'latitude': '{y}', 'longitude': '{x}', 'human_address': ''}}",
    "names": lambda x, y: f"lat: {y}, lon: {x}",
    "names the other way round": lambda x, y: f"Longitude={x} Latitude={y}",
}


def around(city, n=3):
    """A few places around the middle of a city, in digits that stand in texts."""
    steps = np.array([[0, 0], [0.01234, 0.00321], [-0.00517, 0.01111]])[:n]
    return np.round(np.array(CITIES[city][:2]) + steps, 5)


def log(columns):
    """A table of calls with the given columns of places."""
    frame = pd.DataFrame(columns)
    return frame.assign(time=[f"2025-03-{k + 1:02} 16:05" for k in range(len(frame))])


@pytest.mark.parametrize("city", ["Montreal", "Nairobi"])
@pytest.mark.parametrize("form", FORMS)
def test_places_in_one_cell(form, city):
    points = around(city)
    frame = log({"location": [FORMS[form](*point) for point in points.tolist()]})
    for source in (frame, file(frame.to_csv(index=False), "calls.csv")):
        assert np.abs(eo.calls.read_calls(source).locations - points).max() < 2e-5
    stations = frame.rename(columns={"time": "name"})
    assert np.abs(eo.calls.read_stations(stations)[["lon", "lat"]].to_numpy() - points).max() < 2e-5


@pytest.mark.parametrize("city", ["Montreal", "Nairobi"])
@pytest.mark.parametrize("name", ["lon_lat", "Longitude Latitude", "lnglat"])
def test_a_column_may_say_that_longitude_comes_first(name, city):
    points = around(city)
    frame = log({name: [f"{x}, {y}" for x, y in points.tolist()]})
    assert np.allclose(eo.calls.read_calls(frame, {"place": name}).locations, points)


@pytest.mark.parametrize(
    "text",
    ["44.91, -93.1, 250.5", "44.91 -93.1", "1,234", "5, 12", "Station 5 (12, 14)", "12.5, 13.5 miles", "lat: 44.91N lon: 93.1W",
     "lat 44 54 36 lon 93 6 0", "lat 44,91 lon -93,1", "44.91 N, 93.1 W", "44°54'36\"N 93°6'0\"W", "-44.91 S, 12.0 E", "(44.91, -93.1) (44.8, -93.2)",
     '{"type": "LineString", "coordinates": [[-93.1, 44.91], [-93.2, 44.8]]}', "POLYGON ((0 0, 1 0, 1 1, 0 0))"],
)  # fmt: skip
def test_other_forms_are_refused(text):
    assert parse_place(text) is None
    refused(".", eo.calls.read_calls, log({"location": [text]}))


def test_degrees_may_be_swapped_unknown_or_beside_projected_places():
    points = around("Montreal")
    swapped = log({"lat": points[:, 0], "lon": points[:, 1]})
    refused("swapped", eo.calls.read_calls, swapped)
    frame = log({"X": [-11659820.6, 0.0, None], "Y": [4804226.1, 0.0, None]})
    calls = eo.calls.read_calls(frame, crs=3857)
    assert (len(calls), calls.left_out) == (1, {"place": 2})
    # One reference system may be given for calls and stations, though one of both tables has degrees.
    points = around("Bremen")
    calls = eo.calls.read_calls(log(dict(zip(("lon", "lat"), points.T, strict=True))), crs=25832)
    assert np.array_equal(calls.locations, points)
    crs = "+proj=utm +zone=32 +units=km"
    calls = eo.calls.read_calls(log(dict(zip("xy", projected(points, crs).T, strict=True))), crs=crs)
    assert np.allclose(calls.locations, points)


def projected(points, crs):
    pyproj = pytest.importorskip("pyproj")
    return np.column_stack(pyproj.Transformer.from_crs(4326, crs, always_xy=True).transform(*points.T))


@pytest.mark.parametrize("city", CITIES)
@pytest.mark.parametrize("names", [("X", "Y"), ("Easting", "Northing"), ("utm_x", "utm_y"), "pair", "WKT"])
def test_projected_columns_are_read_with_crs_and_refused_without(names, city):
    points, crs = around(city), CITIES[city][2]
    xy = projected(points, crs)
    if isinstance(names, str):
        form = "{}, {}" if names == "pair" else "POINT ({} {})"
        frame = log({"location": [form.format(*row) for row in xy.tolist()]})
    else:
        frame = log(dict(zip(names, xy.T, strict=True)))
    refused("crs", eo.calls.read_calls, frame)
    for source in (frame, file(frame.to_csv(index=False), "calls.csv")):
        assert np.abs(eo.calls.read_calls(source, crs=crs).locations - points).max() < 1e-6
    assert np.abs(eo.calls.read_stations(frame, crs=crs)[["lon", "lat"]].to_numpy() - points).max() < 1e-6


def test_a_reference_system_that_cannot_be_is_refused():
    frame = log(dict(zip("xy", projected(around("Bremen"), 25832).T, strict=True)))
    for crs, words in {"nonsense": "reference system", 27700: "outside the area", True: "`crs` must be"}.items():
        refused(words, eo.calls.read_calls, frame, crs=crs)


def in_files(layer, folder, name, *endings):
    """Return a layer as it is, as GeoJSON that says its reference system or not, and as files; with options to read it."""
    code, sources = layer.crs.to_epsg(), [(layer, {})]
    said = {"type": "name", "properties": {"name": f"urn:ogc:def:crs:EPSG::{code}"}}
    for crs in (said, {"type": "EPSG", "properties": {"code": code}}, None):
        content = json.loads(layer.to_json(drop_id=True)) | {"crs": crs}
        sources.append((file(json.dumps(content), f"{name}.geojson"), {} if crs else {"crs": code}))
    for ending in endings:
        layer.to_file(folder / f"{name}.{ending}")
        sources.append((folder / f"{name}.{ending}", {}))
    return sources


@pytest.mark.parametrize("city", ["Bremen", "Nukualofa"])
def test_geographic_files_say_their_reference_system(city, tmp_path):
    geopandas = pytest.importorskip("geopandas")
    points = around(city)
    layer = geopandas.GeoDataFrame(log({"id": [0, 1, 2]}), geometry=geopandas.points_from_xy(*points.T), crs=4326)
    layer = layer.to_crs(3857)
    sources = in_files(layer, tmp_path, "calls", "gpkg", "shp", "fgb")
    upload = file((tmp_path / "calls.gpkg").read_bytes(), "calls.gpkg")
    for source, options in [*sources, (upload, {})]:
        assert np.abs(eo.calls.read_calls(source, **options).locations - points).max() < 1e-6


def areas_with(*properties):
    """A GeoJSON file of areas with these properties."""
    return file(geojson((known, square(0, 45, 1, 1)) for known in properties), "areas.geojson")


def test_areas_may_have_a_reference_system_and_lack_names(tmp_path):
    geopandas = pytest.importorskip("geopandas")
    from shapely.geometry import box

    x, y, _ = CITIES["Bremen"]
    areas = [box(x - 0.1, y - 0.1, x, y + 0.1), box(x, y - 0.1, x + 0.1, y + 0.1)]
    layer = geopandas.GeoDataFrame({"GEOID": ["01", "02"]}, geometry=areas, crs=4326).to_crs(25832)
    for source, options in in_files(layer, tmp_path, "areas", "gpkg", "shp"):
        found = eo.calls.read_areas(source, **options)
        assert list(found) == ["01", "02"]
        ring = np.array(found["01"]["coordinates"][0])
        assert np.abs(ring.min(axis=0) - (x - 0.1, y - 0.1)).max() < 2e-3
    refused("beat_no.*Say which", eo.calls.read_areas, areas_with({"beat_no": 1}))
    assert list(eo.calls.read_areas(areas_with({"beat_no": 1}), key="beat_no")) == ["1"]


def test_layers_may_be_several_damaged_or_lack_places(tmp_path):
    geopandas = pytest.importorskip("geopandas")
    layer = geopandas.GeoDataFrame(log({"id": [1]}), geometry=geopandas.points_from_xy([8.8], [53.1]), crs=4326)
    for name in ("one", "two"):
        layer.to_file(tmp_path / "both.gpkg", layer=name)
    refused("one layer; it has one, two", eo.calls.read_calls, tmp_path / "both.gpkg")
    (tmp_path / "broken.gpkg").write_bytes(b"SQLite format 3\0nothing")
    refused(r"broken\.gpkg is not a geographic file", eo.calls.read_calls, tmp_path / "broken.gpkg")
    refused("several files", eo.calls.read_calls, file("x", "calls.shp"))
    points = geopandas.GeoSeries([*geopandas.points_from_xy(*around("Bremen", 2).T), None], crs=4326)
    geopandas.GeoDataFrame(log({"id": range(3)}), geometry=points).to_file(tmp_path / "calls.gpkg")
    calls = eo.calls.read_calls(tmp_path / "calls.gpkg")
    assert (len(calls), calls.left_out) == (2, {"place": 1})


def test_names_of_areas():
    for properties, names in (
        ([{"GEOID": "01", "NAME": "W"}, {"GEOID": "02", "NAME": "E"}], ["W", "E"]),
        ([{"GEOID": "01", "NAME": "33.01"}, {"GEOID": "02", "NAME": "33.01"}], ["01", "02"]),
        ([{"NAMELSAD": "Tract 1", "GEOID": "01"}, {"NAMELSAD": "Tract 2", "GEOID": "02"}], ["Tract 1", "Tract 2"]),
        ([{"GEOID20": "1", "NAME": None}, {"GEOID20": "2", "NAME": "E"}], ["1", "2"]),
        ([{"ZCTA5CE20": "55101"}, {"ZCTA5CE20": "55102"}], ["55101", "55102"]),
        ([{"OBJECTID": 1}, {"OBJECTID": 2}], ["1", "2"]),
    ):
        assert list(eo.calls.read_areas(areas_with(*properties))) == names
