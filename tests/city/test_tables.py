"""Cities from frames, folders and tables of others: what comes out is what went in, and what is wrong is named."""

import dataclasses
import json
import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused
from uploads import geojson

import emsopt as eo
from emsopt.city import tables, travel

SQUARE = [[0, 0], [1, 0], [1, 1], [0, 1], [0, 0]]


def demand_frame(**changes):
    columns = {"name": ["North", "East", "South"], "lon": [-93.1, -93.0, -93.1], "lat": [45.0, 44.95, 44.9]}
    return pd.DataFrame({**columns, "arrival_rate": [1.5, 0.25, 0.0], **changes})


def site_frame(**changes):
    columns = {"name": ["Hill", "River"], "lon": [-93.1, -93.05], "lat": [44.95, 44.92]}
    return pd.DataFrame({**columns, "turnout_min": [1.5, 2.0], "service_min": [40.0, 35.0], **changes})


def matrix_frame(**changes):
    minutes = {"North": [5.0, 9.0], "East": [6.0, 4.0], "South": [7.0, 3.0], **changes}
    return pd.DataFrame(minutes, index=["Hill", "River"])


def assert_equal(one, other):
    """Every field of two cities is the same, to the last digit."""
    for field in dataclasses.fields(one):
        first, second = getattr(one, field.name), getattr(other, field.name)
        if isinstance(first, np.ndarray):
            np.testing.assert_array_equal(first, second, err_msg=field.name, strict=True)
        else:
            assert first == second, field.name


def test_matrices_are_aligned_by_name_and_columns_found_in_any_case():
    shuffled = matrix_frame().loc[["River", "Hill"], ["South", "North", "East"]]
    for times in (shuffled, matrix_frame().to_numpy(), matrix_frame().to_numpy().tolist()):
        city = eo.City.from_frames(demand_frame(), site_frame(), travel_times=times)
        assert city.travel_times.tolist() == [[5, 6, 7], [9, 4, 3]]
    sites, times = site_frame().drop(columns="service_min"), {"travel_times": matrix_frame()}
    times |= {"service_times": shuffled + 30, "preference": -matrix_frame()[["South", "East", "North"]]}
    city = eo.City.from_frames(demand_frame(), sites, **times)
    assert city.service_times.tolist() == [[35, 36, 37], [39, 34, 33]]
    assert city.preferred_order.tolist() == [[1, 0], [0, 1], [0, 1]]  # the farthest first
    demand = demand_frame(population=[1, 2, 3]).rename(columns=str.upper).set_index("NAME")
    sites = site_frame(capacity=[2, 1]).rename(columns={"name": " Site ", "lon": "Longitude", "lat": "LATITUDE"})
    city = eo.City.from_frames(demand, sites, travel_times=matrix_frame(), name="two", notes="made up")
    assert (city.atom_names, city.site_names) == (("North", "East", "South"), ("Hill", "River"))
    assert (city.name, city.notes, city.geographic) == ("two", "made up", True)
    assert (city.arrival_rates.tolist(), city.turnout_times.tolist()) == ([1.5, 0.25, 0.0], [1.5, 2.0])
    np.testing.assert_array_equal(city.atom_locations, demand_frame()[["lon", "lat"]])
    np.testing.assert_array_equal(city.site_locations, site_frame()[["lon", "lat"]])


def test_times_come_from_great_circles_or_kilometres_on_a_plane():
    """1 degree of latitude is pi/180 earth radii: 111.195 km, at 60 km/h and a detour of 1.3 that is 144.55 min."""
    demand = demand_frame(lon=[0.0, 0.0, 0.0], lat=[0.0, 1.0, 2.0])
    sites = site_frame(lon=[0.0, 0.0], lat=[0.0, 1.0])
    minutes = travel.EARTH_RADIUS_KM * np.pi / 180 * 1.3
    city = eo.City.from_frames(demand, sites, speed_kmh=60)
    assert city.travel_times == pytest.approx(minutes * np.array([[0, 1, 2], [1, 0, 1]]))
    demand = demand_frame(x=[0, 3, 0], y=[4, 0, 0]).drop(columns=["lon", "lat"])
    sites = site_frame(x=[0, 0], y=[0, 1]).drop(columns=["lon", "lat"])
    city = eo.City.from_frames(demand, sites, speed_kmh=30, detour=1)
    assert not city.geographic
    assert city.travel_times == pytest.approx(2 * np.array([[4, 3, 0], [3, np.sqrt(10), 1]]))


def test_geodataframes_are_reprojected_and_polygons_become_shapes():
    """A square of 2 km around a point, in UTM zone 15 (metres), comes back within metres in degrees."""
    geopandas = pytest.importorskip("geopandas")
    from shapely import box

    points = geopandas.GeoSeries.from_xy([-93.1, -93.0], [44.95, 44.9], crs=4326)
    sites = geopandas.GeoDataFrame(site_frame().drop(columns=["lon", "lat"]), geometry=points)
    metres = geopandas.GeoSeries.from_xy([-93.1, -93.0, -93.1], [45.0, 44.95, 44.9], crs=4326).to_crs(32615)
    squares = [box(x - 1000, y - 1000, x + 1000, y + 1000) for x, y in zip(metres.x, metres.y, strict=True)]
    demand = geopandas.GeoDataFrame(demand_frame().drop(columns=["lon", "lat"]), geometry=squares, crs=32615)
    city = eo.City.from_frames(demand, sites, speed_kmh=40)
    assert city.geographic
    assert city.site_locations == pytest.approx(np.array([[-93.1, 44.95], [-93.0, 44.9]]), abs=1e-9)
    assert city.atom_locations == pytest.approx(demand_frame()[["lon", "lat"]].to_numpy(), abs=1e-3)
    assert [shape["type"] for shape in city.atom_shapes] == ["Polygon"] * 3
    corners = np.array(city.atom_shapes[0]["coordinates"][0])
    assert travel.great_circle_km(corners[:1], corners[1:2])[0, 0] == pytest.approx(2, abs=0.01)


BAD_FRAMES = {
    "no rates": ({"demand": demand_frame().rename(columns={"arrival_rate": "lambda"})}, "`demand` needs a column 'arrival_rate'.*columns found: name, lon, lat, lambda"),
    "name blank": ({"demand": demand_frame(name=["North", " ", "South"])}, "`demand`.*entry 2.*blank"),
    "swapped in one table": ({"demand": demand_frame().rename(columns={"lon": "lat", "lat": "lon"})}, "`demand`, column 'lat', row 1 .'North'.*got '-93.1'.*swapped"),
    "swapped within range": ({"demand": demand_frame(lon=[48.85, 48.86, 48.87], lat=[2.35, 2.36, 2.37]), "sites": site_frame(lon=[2.35, 2.36], lat=[48.85, 48.86])}, "swapped|km from"),
    "metres": ({"demand": demand_frame(x=[0, 5000, 1], y=0).drop(columns=["lon", "lat"]), "sites": site_frame(x=0, y=0).drop(columns=["lon", "lat"])}, "`demand`, columns 'x' and 'y'.*span 5000.*metres"),
    "degrees and kilometres": ({"sites": site_frame(x=0, y=0).drop(columns=["lon", "lat"])}, "the same kind of coordinates"),
    "no times": ({"travel_times": None}, "`travel_times` and `speed_kmh`.*neither"),
    "speed but no places": ({"sites": site_frame().drop(columns=["lon", "lat"]), "travel_times": None, "speed_kmh": 40}, "`sites` needs locations.*columns found: name, turnout_min"),
    "matrix transposed": ({"travel_times": matrix_frame().T}, "`travel_times` is transposed"),
    "matrix lacks a site": ({"travel_times": matrix_frame().iloc[:1]}, "`travel_times`.*row per site.*1 of 2 names are missing, the first is 'River'"),
    "time negative": ({"travel_times": matrix_frame(South=[-7.0, 3.0])}, "`travel_times`, row 'Hill', column 'South'.*got '-7'"),
    "turnout twice": ({"turnout_times": 1.0}, "'turnout_min'.*got both"),
    "preference of another city": ({"preference": matrix_frame().rename(index={"Hill": "Hil"})}, "`preference`.*the first is 'Hill', and 'Hil' is an unknown name"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD_FRAMES)
def test_bad_frames_are_refused_by_naming_the_culprit(case):
    changes, culprit = BAD_FRAMES[case]
    given = {"demand": demand_frame(), "sites": site_frame(), "travel_times": matrix_frame(), **changes}
    refused(culprit, eo.City.from_frames, **given)


def test_bad_geometries_are_refused_by_naming_the_row():
    geopandas = pytest.importorskip("geopandas")
    from shapely import LineString, Point, Polygon

    good, cross = Polygon(SQUARE), Polygon([[0, 0], [1, 1], [1, 0], [0, 1]])
    far = Polygon([[500_000, 0], [500_001, 0], [500_000, 1]])
    for shapes, culprit in (
        ([good, None, good], "row 2: .*got nothing"),
        ([good, good, LineString([[0, 0], [1, 1]])], "row 3: .*LineString"),
        ([good, Point(0, 0), good], "row 1: expected a valid Point, but got a Polygon"),
        ([cross, good, good], "row 1: expected a valid .*make_valid"),
        ([far, far, far], "degrees from -180 to 180.*set_crs"),
    ):
        demand = geopandas.GeoDataFrame(demand_frame(), geometry=shapes)
        refused(culprit, eo.City.from_frames, demand, site_frame(), travel_times=matrix_frame())
    bare = geopandas.GeoDataFrame(demand_frame())
    refused("without a geometry", eo.City.from_frames, bare, site_frame(), travel_times=matrix_frame())


def full_city():
    """A city with everything a city can have."""
    shapes = [("Polygon", [SQUARE]), ("MultiPolygon", [[SQUARE], [SQUARE]]), ("Polygon", [SQUARE, SQUARE])]
    return eo.City(
        [1 / 3, 2e-7, 0],
        [[5.1, np.pi, 7], [9, 1e-300, 3]],
        [0, 1 / 7],
        [[40, 41, 42.5], [30, 31, 1e3]],
        preference=[[1, 2, 3], [3, 2, -1e9]],
        travel_cv=[[0.1, 1 / 3, 0], [0.5, 0.6, 3]],
        turnout_cv=[0.2, 1 / 7],
        atom_names=["Nord, oben", 'the "East"', " South\u00a0end "],
        site_names=["site", "Fluß"],
        atom_locations=[[0.1, 0.2], [1 / 3, -5], [7, 8]],
        site_locations=[[0, 0], [-1e-9, 4]],
        atom_shapes=[{"type": kind, "coordinates": rings} for kind, rings in shapes],
        geographic=False,
        name="all, of it",
        notes="two\nlines — and “quotes”",
    )


def test_a_saved_city_comes_back_to_the_last_digit(tmp_path):
    folder = tmp_path / "new" / "city"
    bare = eo.City([1.0], [[2.0]], 1.0, 30.0)
    by_site = eo.City([1.0], [[2.0], [3.0]], 1.0, 30.0, travel_cv=[0.3, 0.5], turnout_cv=0.2)
    for city in (full_city(), bare, by_site):  # nothing of the older one is left to be read
        assert city.save(folder) == folder
        assert_equal(eo.City.load(folder), city)
        assert (folder / tables.TRAVEL_CV_FILE).exists() == (np.ndim(city.travel_cv) == 2 and city is not by_site)
    assert [path.name for path in folder.parent.iterdir()] == ["city"]


def test_frames_take_variation_as_argument_or_column():
    def made(sites, **options):
        return eo.City.from_frames(demand_frame(), sites, travel_times=matrix_frame(), **options)

    assert made(site_frame()).travel_cv == made(site_frame()).turnout_cv == 0
    assert made(site_frame(), travel_cv=0.4, turnout_cv=[0.1, 0.2]).turnout_cv.tolist() == [0.1, 0.2]
    table = matrix_frame() / 10
    np.testing.assert_array_equal(made(site_frame(), travel_cv=table).travel_cv, made(site_frame()).travel_times / 10)
    by_site = made(site_frame().assign(travel_cv=[0.1, 0.2]))
    np.testing.assert_array_equal(by_site.travel_cv, [[0.1] * 3, [0.2] * 3])
    refused("'travel_cv'.*got both", made, site_frame().assign(travel_cv=0.1), travel_cv=0.4)
    refused(r"`sites`, column 'travel_cv', row 2 \('.*'\)", made, site_frame().assign(travel_cv=[0.1, -0.2]))


def test_names_that_spreadsheets_would_calculate_are_escaped_and_come_back(tmp_path):
    names = ["=1+1", "'=1", "-2", "@x", "'a"]
    city = eo.City(np.ones(5), np.eye(5), turnout_times=1, service_times=9, atom_names=names, site_names=names)
    texts = [path.read_text() for path in city.save(tmp_path / "city").glob("*.csv")]
    assert not any(cell[0] in "=-@" for text in texts for cell in re.split(r"[,\n]", text) if cell)
    assert_equal(eo.City.load(tmp_path / "city"), city)


def test_files_may_list_rows_and_columns_in_any_order(tmp_path):
    """Names, not places, tie the files together."""
    named, order = full_city().replace(site_names=["Hill", "River"], atom_names=["A", "B", "C"]), [2, 0, 1]
    folder = named.save(tmp_path / "city")
    city = eo.City.load(folder)
    table = pd.read_csv(folder / "travel_times.csv", index_col=0, dtype=str).iloc[::-1, order]
    table.to_csv(folder / "travel_times.csv")
    shapes = json.loads((folder / "atoms.geojson").read_text(encoding="utf-8"))
    shapes["features"] = [shapes["features"][k] for k in order]
    (folder / "atoms.geojson").write_text(json.dumps(shapes), encoding="utf-8")
    assert_equal(eo.City.load(folder), city)


HAND_WRITTEN = {
    "city.json": '{"speed_kmh": 60, "detour": 1}',
    "atoms.csv": "\ufeffAtom,X,Y,Arrival_Rate,remark\r\nnorth, 0, 6,1,\r\nsouth,0,0,2,busy\r\n\r\n",
    "sites.csv": "name,x,y,turnout_min,service_min\nstation,0,2,1,40\n",
}
TRIANGLE = {"type": "Polygon", "coordinates": [[[-93, 45], [-92.9, 45], [-93, 45.1]]]}
SAVED = {
    "city.json": '{"version": 1, "name": "two", "notes": "", "geographic": true}',
    "atoms.csv": "name,lon,lat,arrival_rate\nNorth,-93.1,45.0,1.5\nEast,-93.0,44.95,0.25\n",
    "sites.csv": "name,lon,lat,turnout_min,service_min\nHill,-93.1,44.95,1.5,40\nRiver,-93.05,44.92,2,35\n",
    "travel_times.csv": "site,North,East\nHill,5,6\nRiver,9,4\n",
    "preference.csv": "site,North,East\nHill,1,2\nRiver,2,1\n",
    "atoms.geojson": geojson(({"atom": name}, TRIANGLE) for name in ("North", "East")),
}  # fmt: skip


def write(folder, files):
    folder.mkdir(exist_ok=True)
    for name, content in files.items():
        if isinstance(content, bytes):
            (folder / name).write_bytes(content)
        elif content is not None:
            (folder / name).write_text(content, encoding="utf-8", newline="")
    return folder


def test_a_folder_written_by_hand_with_a_speed(tmp_path):
    """Byte-order mark, spaces, other line ends, capitals, an extra column, a blank line: all of it is understood."""
    city = eo.City.load(write(tmp_path / "Two streets", HAND_WRITTEN))
    assert (city.travel_times.tolist(), city.arrival_rates.tolist()) == ([[4.0, 2.0]], [1, 2])
    assert (city.name, city.geographic) == ("Two streets", False)


def swap(file, old, new):
    assert SAVED[file].count(old) >= 1, (file, old)
    return {file: SAVED[file].replace(old, new, 1)}


BAD_FOLDERS = {
    "no city.json": ({"city.json": None}, "city.json is missing. The folder holds atoms.csv"),
    "json entry misspelt": (swap("city.json", '"notes"', '"note"'), "city.json has an unknown entry 'note'"),
    "from a later version": (swap("city.json", '"version": 1', '"version": 2'), "city.json, entry 'version'.*got 2"),
    "geographic against its columns": (swap("city.json", "true", "false"), "city.json sets.*false.*x and y"),
    "semicolons": ({"atoms.csv": SAVED["atoms.csv"].replace(",", ";")}, "atoms.csv must be separated by commas.*name;lon;lat"),
    "not UTF-8": ({"sites.csv": SAVED["sites.csv"].replace("River", "Fluß").encode("latin-1")}, "sites.csv is not UTF-8"),
    "ragged": (swap("atoms.csv", "44.95,0.25", "44.95"), "atoms.csv, line 3: expected 4 cells.*got 3"),
    "column twice": (swap("sites.csv", "turnout_min", "Service_min"), "sites.csv has more than one column 'service_min'"),
    "rate with decimal comma": (swap("atoms.csv", "0.25", '"0,25"'), "atoms.csv, column 'arrival_rate', row 2 .'East'.*got '0,25'"),
    "longitude blank": (swap("sites.csv", "-93.05", ""), "sites.csv, column 'lon', row 2 .'River'.*blank"),
    "shape missing": ({"atoms.geojson": SAVED["atoms.geojson"].partition(', {"type": "Feature"')[0] + "]}"}, "atoms.geojson.*1 of 2 names are missing, the first is 'East'"),
    "shape of two points": (swap("atoms.geojson", "[[[-93, 45], [-92.9, 45], [-93, 45.1]]]", "[[[-93, 45], [-92.9, 45]]]"), "feature 1 .'North'.*at least three points"),
    "shape swapped": (swap("atoms.geojson", "[[[-93, 45], [-92.9, 45], [-93, 45.1]]]", "[[[45, -93], [45, -92.9], [45.1, -93]]]"), "feature 1 .'North'.*swapped"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD_FOLDERS)
def test_bad_folders_are_refused_by_naming_file_row_and_column(tmp_path, case):
    changes, culprit = BAD_FOLDERS[case]
    folder = write(tmp_path / "mine", {**SAVED, **changes})
    refused(f"{re.escape(str(folder))}.*(?:{culprit})", eo.City.load, folder)


def test_a_folder_that_is_not_a_city_alone_is_left_alone(tmp_path):
    for held in ({"thesis.txt": "x"}, {"city.json": "{}", "thesis.txt": "x"}, {"atoms.csv": "x"}):
        *_, last = held
        folder = write(tmp_path / f"work {len(held)} {last}", held)
        refused(f"contains {last}.*left unchanged", full_city().save, folder)
        assert {path.name: path.read_text() for path in folder.iterdir()} == held


def test_what_cannot_be_read_back_is_not_saved_and_arrays_become_numbers(tmp_path):
    refused("`arrival_rates` must be calls per hour", full_city().scaled(1e6).save, tmp_path / "city")
    assert not list(tmp_path.iterdir())
    corners = np.array([[[0, 0], [1, 0], [1, 1]]])
    shape = {"type": "Polygon", "coordinates": corners}
    city = eo.City([1.0], [[2.0]], 1.0, 30.0, atom_shapes=[shape])
    (back,) = eo.City.load(city.save(tmp_path / "city")).atom_shapes
    assert back == {"type": "Polygon", "coordinates": corners.tolist()}


PLACES = {"lon": [8.80, 8.84, 8.87], "lat": [53.07, 53.10, 53.08]}
DEMAND = demand_frame(name=["a", "b", "c"], **PLACES, arrival_rate=[1.5, 0.5, 0.3])
SITES = pd.DataFrame({"name": ["N", "S"], "lon": [8.83, 8.81], "lat": [53.09, 53.06]})
TIMES = {"turnout_times": 1.5, "service_times": 45}
MINUTES = eo.City.from_frames(DEMAND, SITES, speed_kmh=40, **TIMES).travel_times


@settings(max_examples=10, deadline=None)
@given(kmh=st.floats(15, 120))
def test_units_of_travel_times(kmh):
    minutes = MINUTES * 40 / kmh
    assert eo.City.from_frames(DEMAND, SITES, travel_times=minutes, **TIMES).n_sites == 2
    for unit, other in {"seconds": minutes * 60, "hours": minutes / 60, "metres": MINUTES * 1000 / 60 * 40}.items():
        words = f"Are they {unit}|Divide seconds by 60"
        refused(words, eo.City.from_frames, DEMAND, SITES, travel_times=other, **TIMES)
    refused("Are they seconds", eo.City, DEMAND.arrival_rate, MINUTES * 0 + 451, 1.5, 45)


def test_long_tables():
    rows = [(s, a, MINUTES[i, j]) for i, s in enumerate("NS") for j, a in enumerate("abc")]
    for names in ("from_id to_id travel_time_p50", "origin destination minutes"):
        table = pd.DataFrame(rows, columns=names.split()).sample(frac=1, random_state=0)
        assert np.allclose(eo.City.from_frames(DEMAND, SITES, travel_times=table, **TIMES).travel_times, MINUTES)
        twice = pd.concat([table, table[:1]])
        refused("more than one from and to", eo.City.from_frames, DEMAND, SITES, travel_times=twice, **TIMES)
        refused("column", eo.City.from_frames, DEMAND, SITES, travel_times=table[1:], **TIMES)


def test_tables_of_the_census():
    tracts = pd.DataFrame({"GEOID": ["27123030100", "27123030200"], "NAME": "301", "arrival_rate": [1, 2]})
    tracts = tracts.assign(INTPTLAT=["+44.9", "+44.95"], INTPTLON=["-093.1", "-093.2"])
    city = eo.City.from_frames(tracts, SITES.assign(lon=-93.1, lat=44.9), speed_kmh=40, **TIMES)
    assert city.atom_names == ("27123030100", "27123030200")
    assert np.allclose(city.atom_locations, [[-93.1, 44.9], [-93.2, 44.95]])


def test_cities_at_the_date_line(tmp_path):
    """All numbers are those of the same city elsewhere; saved and loaded they stay."""
    rng = np.random.default_rng(0)
    east, north = rng.normal(0, 0.02, 400), -16.5 + rng.normal(0, 0.02, 400)
    times = pd.date_range("2025-01-01", periods=400, freq="3h").astype(str)

    def city(middle):
        turn = lambda x: np.round((middle + x + 180) % 360 - 180, 9)
        calls = pd.DataFrame({"time": times, "lon": turn(east), "lat": north})
        sites = pd.DataFrame({"name": ["A", "B"], "lon": turn(np.array([-0.01, 0.01])), "lat": [-16.5, -16.52]})
        return eo.calls.city_from_calls(calls, sites, speed_kmh=40, cell_km=1, **TIMES)

    there, here = city(180.0), city(100.0)
    assert there.atom_names == here.atom_names
    assert np.abs(there.travel_times - here.travel_times).max() < 1e-4
    corners = np.concatenate([shape["coordinates"][0] for shape in there.atom_shapes])
    points = np.concatenate([there.atom_locations, there.site_locations, corners])
    assert np.ptp(points[:, 0]) < 0.3
    assert_equal(eo.City.load(there.save(tmp_path / "city")), there)
