"""The embedded and the published data, and random cities."""

import gzip
import hashlib
import re
import tomllib
from fnmatch import fnmatch
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from refusals import refused
from uploads import geojson

import emsopt as eo
from emsopt._files import locate
from emsopt.city import travel

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def build(script):
    """The script that makes the embedded St. Paul, as a module."""
    return script("data/build_st_paul.py")


def test_embedded_st_paul_has_the_published_sizes_rates_and_times():
    """Paper, section 7: 17 listed sites, 71 atoms, 84.68 calls a day, 42.17 served a day, turnout 1.75 min."""
    city = eo.datasets.load_st_paul()
    assert (city.n_sites, city.n_atoms) == (17, 71)
    assert city.total_rate == pytest.approx(84.68 / 24, rel=1e-9)
    assert 365 * city.total_rate * 24 == pytest.approx(30_908, abs=0.5)
    assert 30_911 / 365 - 24 * city.total_rate == pytest.approx(0.008, abs=5e-4)  # the paper's calls, 84.688 a day
    assert city.turnout_times == pytest.approx(np.full(17, 1.75))
    assert city.service_times == pytest.approx(np.full((17, 71), 1440 / 42.17), rel=1e-15)
    assert city.offered_load(units=9) == pytest.approx(84.68 / 42.17 / 9, rel=1e-9)


def test_three_stations_may_hold_two_units():
    """Columns X6, X7 and X8 of the published distances repeat X1, X2 and X3."""
    city = eo.datasets.load_st_paul()
    assert city.twin_groups.tolist() == [0, 1, 2, 3, 4, 0, 1, 2, *range(5, 14)]
    units = [f"Station {k} (unit 1)" for k in (8, 9, 23)]
    assert city.site_names[:6] == (*units, "Station 5", "Station 7", "Station 8 (unit 2)")
    assert np.array_equal(city.site_locations[[0, 1, 2]], city.site_locations[[5, 6, 7]])


def test_travel_times_follow_from_road_distances_by_the_published_law():
    """Worked by hand for the shortest distance, 204 m, within the stretch of acceleration.

    m = 2 sqrt(0.1275 / 1.04729917e-4) = 69.78 s, c^2 = (b0 (b2 + 1) + b1 (b2 + 1) m + b2 m^2) / m^2 = 0.07292,
    so the mean is m exp(c^2 / 2) = 72.37 s = 1.2062 min.
    """
    city = eo.datasets.load_st_paul()
    site, atom = np.unravel_index(city.travel_times.argmin(), city.travel_times.shape)
    assert (city.site_names[site], city.atom_names[atom]) == ("Station 5", "Tract 429")
    assert city.travel_times[site, atom] == pytest.approx(1.2062, abs=1e-4)


def test_the_script_rebuilds_the_embedded_files_byte_by_byte(build, tmp_path):
    folder = build.build(0.18).save(tmp_path / "st_paul")
    kept = locate.package_file("st_paul")
    assert {path.name for path in folder.iterdir()} == {path.name for path in kept.iterdir()}
    for path in kept.iterdir():
        assert path.read_bytes() == (folder / path.name).read_bytes(), path.name


def test_checksums_list_every_raw_and_every_embedded_file(build):
    lines = [line.split("  ") for line in build.CHECKSUMS.read_text(encoding="utf-8").splitlines()]
    files = [path for folder in (build.HERE / "raw", *build.EMBEDDED) for path in folder.rglob("*") if path.is_file()]
    present = {path: hashlib.sha256(path.read_bytes()).hexdigest() for path in files if path != build.REGISTER}
    assert {(build.HERE / name).resolve(): digest for digest, name in lines} == present
    size = sum(path.stat().st_size for path in build.PACKAGE.rglob("*") if path.is_file())
    assert size < 3_000_000  # the package stays quick to install for a class on one network


def test_beta_is_the_best_of_its_neighbours_and_optima_are_close_to_the_published_ones(build):
    """The fit is to two digits. Table 1 and version one's Table 3, of which the fit saw two rows, to a tenth of a minute."""
    misfits = [build.misfit(beta) for beta in (0.17, 0.18, 0.19)]
    assert min(misfits) == misfits[1]
    rows = build.residuals(eo.datasets.load_st_paul())
    assert len(rows) == 25
    assert max(abs(here - published) for _, published, here in rows) < 0.1


def test_published_demand_is_another_split(published):
    """Same city, same total."""
    embedded = eo.datasets.load_st_paul()
    assert published.total_rate == pytest.approx(84.68 / 24, rel=1e-12)
    assert np.array_equal(published.travel_times, embedded.travel_times)
    assert "not call records" not in published.notes
    assert np.abs(published.demand_shares - embedded.demand_shares).max() > 0.01
    assert "key f" in published.notes


@pytest.mark.usefixtures("published")
def test_outlines_of_census_tracts_replace_the_schematic_ones(tmp_path, monkeypatch):
    """One feature an atom, numbered from 1, in any order; without the file the outlines stay schematic."""
    (tmp_path / "Saint_Paul.pkl").write_bytes(locate.find_local("st_paul_published/Saint_Paul.pkl").read_bytes())
    monkeypatch.setenv("EMSOPT_DATA", str(tmp_path))
    monkeypatch.setattr(locate, "cache_folder", lambda: tmp_path / "cache")
    city = eo.datasets.load_st_paul("published")
    assert "schematic" in city.notes
    assert city.atom_shapes == eo.datasets.load_st_paul().atom_shapes
    shape = lambda k: {"type": "Polygon", "coordinates": [[[-93, 45], [-93 + k / 1000, 45], [-93, 45.1]]]}
    outlines = geojson(({"atom": k}, shape(k)) for k in range(71, 0, -1))
    (tmp_path / "tract_polygons_71.geojson").write_text(outlines, encoding="utf-8")
    city = eo.datasets.load_st_paul("published")
    assert "schematic" not in city.notes
    assert city.atom_shapes[70]["coordinates"][0][1][0] == -93 + 71 / 1000


def test_the_san_jose_log_is_the_published_one_without_what_identifies():
    """data/README.md: 3,652 incidents in two weeks, 33 stations, three decimals, no incident number."""
    calls, stations = eo.datasets.san_jose_calls()
    assert (len(calls), calls.left_out, calls.clock) == (3652, {}, "local")
    assert [str(calls.times[k]) for k in (0, -1)] == ["2015-01-01T00:05:00", "2015-01-14T23:46:00"]
    assert np.array_equal(calls.locations, calls.locations.round(3))
    assert stations.name.tolist() == [f"Station {k}" for k in (*range(1, 32), 34, 35)]
    distance = travel.great_circle_km(stations[["lon", "lat"]].to_numpy(float), calls.locations)
    assert distance.min(axis=0).max() < 11


def test_the_script_rewrites_the_raw_san_jose_log_and_corrects_nothing(script):
    """Row by row against the raw text: 12 AM is 0 h, 12 PM is 12 h; blanks stay blank."""
    tables = script("data/build_san_jose.py").read_raw()
    for name, table in tables.items():
        with gzip.open(locate.package_file("san_jose", f"{name}.csv.gz"), "rt", newline="") as file:
            assert file.read() == table.to_csv(index=False, lineterminator="\n")
    raw = pd.read_csv(ROOT / "data/raw/san_jose/calls_2015-01-01_to_14.csv")
    assert not {"Incident_No", "Final_Incident_Category"} & set(raw)
    stamps = pd.to_datetime(raw["Unit_On_Scene_TimeStamp"], format="%m/%d/%y %I:%M %p").dt.strftime("%Y-%m-%d %H:%M")
    assert stamps.fillna("").tolist() == tables["calls"]["on_scene"].fillna("").tolist()


def licence_rows():
    """Return patterns of files, source and licence of every row of the table that ships with the data."""
    lines = locate.package_file("LICENSES.md").read_text(encoding="utf-8").splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| `")]
    return [(re.findall("`([^`]+)`", files), source, licence) for files, source, licence in rows]


def test_the_list_of_licences_covers_every_file_that_ships_once():
    package = ROOT / "emsopt"
    files = [path for folder in ("data", "maps/vendor") for path in (package / folder).rglob("*") if path.is_file()]
    shipped = [path.relative_to(package).as_posix() for path in files]
    rows = licence_rows()
    for name in shipped:
        covering = [patterns for patterns, *_ in rows if any(fnmatch(name, pattern) for pattern in patterns)]
        assert len(covering) == 1, name
    for patterns, source, licence in rows:
        assert all(any(fnmatch(name, pattern) for name in shipped) for pattern in patterns), patterns
        assert source
        assert licence


def test_a_wheel_holds_the_list_of_licences_and_names_them():
    """By the rules of its build: whole package, notebooks, and license files beside the metadata."""
    rules = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    project, files = rules["project"], rules["project"]["license-files"]
    assert rules["tool"]["hatch"]["build"]["targets"]["wheel"]["only-include"] == ["emsopt", "notebooks"]
    assert {"LICENSE", "emsopt/data/LICENSES.md", "emsopt/maps/vendor/leaflet/LICENSE"} <= set(files)
    assert all((ROOT / name).is_file() for name in files)
    licences = " ".join(licence for *_, licence in licence_rows())
    known = {"MIT": "MIT", "BSD-2-Clause": "BSD 2-Clause", "CC-BY-4.0": "CC BY 4.0", "ODbL-1.0": "(ODbL) 1.0"}
    assert set(project["license"].split(" AND ")) == set(known)
    assert all(text in licences for text in known.values())


def test_utilization_follows_from_calls_and_ambulances():
    """Table 2: utilisation = calls / (365 x ambulances x 42.17), to 0.4 points; calls a minute = calls / 525600."""
    table = eo.datasets.paper_table(2)
    assert len(table) == 17
    follows = table.calls_per_year / (365 * table.ambulances * 42.17)
    assert (table.utilization - follows).abs().max() < 0.004
    lower = table.utilization < follows
    assert lower.tolist() == [True] * 7 + [False] * 10  # two service times were used, of 34.0 and of 34.46 min
    minutes = np.where(lower, 34.0, 34.46)
    assert np.abs(table.calls_per_year * minutes / 525_600 / table.ambulances - table.utilization).max() < 0.0007
    wrong = (table.calls_per_minute - table.calls_per_year / 525_600).abs() > 0.0051
    assert table.city[wrong].tolist() == ["St. Paul"]
    assert (table.note != "").tolist() == wrong.tolist()


@pytest.mark.parametrize("geometry", ["plane", "uniform"])
def test_grid_cities_are_as_asked_for(geometry):
    city, again, other = (eo.datasets.grid_city(30, 15, 0.8, rng=rng, geometry=geometry) for rng in (3, 3, 4))
    assert (city.n_sites, city.n_atoms, city.geographic) == (30, 100, False)
    assert city.offered_load(15) == pytest.approx(0.8, rel=1e-12)
    assert (city.arrival_rates > 0).all()
    assert np.ptp(city.service_times) == 0
    assert len({tuple(place) for place in city.site_locations}) == 30
    assert np.array_equal(city.travel_times, again.travel_times)
    assert not np.array_equal(city.arrival_rates, other.arrival_rates)
    for place, shape in zip(city.atom_locations, city.atom_shapes, strict=True):  # a unit square around its centre
        corners = place + np.array([[-0.5, -0.5], [0.5, -0.5], [0.5, 0.5], [-0.5, 0.5], [-0.5, -0.5]])
        assert shape["coordinates"] == [corners.tolist()]


def test_grid_times_are_straight_lines_or_uniform_draws():
    plane = eo.datasets.grid_city(20, rng=0)
    offset = plane.site_locations[:, None] - plane.atom_locations[None]
    assert plane.travel_times == pytest.approx(np.hypot(*np.moveaxis(offset, -1, 0)) / 40 * 60)
    assert plane.travel_times.max() <= np.hypot(9, 9) / 40 * 60
    uniform = eo.datasets.grid_city(100, rng=0, geometry="uniform").travel_times
    assert 5 <= uniform.min() < 5.05
    assert 29.95 < uniform.max() <= 30
    # 10,000 draws: the mean of U(5, 30) is 17.5, its standard error 0.072
    assert uniform.mean() == pytest.approx(17.5, abs=0.3)
    # with every cell a site, every cell is one
    assert eo.datasets.grid_city(100, rng=0).site_locations.tolist() == plane.atom_locations.tolist()


def test_what_cannot_be_is_refused():
    refused("`n_sites` .* from 1 to 100; got 101", eo.datasets.grid_city, n_sites=101)
    refused("`n_sites` .* from 1 to 4; got 5", eo.datasets.grid_city, n_sites=5, size=2)
    refused("`size`.*got -4", eo.datasets.grid_city, size=-4)
    refused("`load`.*got 0", eo.datasets.grid_city, load=0)
    refused("`geometry`.*'sphere'", eo.datasets.grid_city, geometry="sphere")
    refused("`version`.*'newest'", eo.datasets.load_st_paul, version="newest")
    refused("`number` .* from 1 to 3", eo.datasets.paper_table, number=4)


def test_main_roads_of_auckland_keep_its_travel_times():
    """Against the minutes along all roads of the case, which were computed apart from the reduced network."""
    system, _ = eo.datasets.load_auckland()
    city, net = system.city, eo.datasets.load_roads("auckland")
    minutes = net.travel_times(city.site_locations, city.atom_locations, off_road_kmh=47)
    nearest = city.travel_times.argmin(axis=0)
    assert net.n_edges <= 5_000
    assert (minutes.argmin(axis=0) == nearest).mean() > 0.98
    from_nearest = (table[nearest, np.arange(city.n_atoms)] for table in (minutes, city.travel_times))
    assert np.abs(np.subtract(*from_nearest)).mean() < 0.1
    for ends in eo.datasets.ROUTES["auckland"].values():
        assert len(net.shortest_path(net.edge_minutes(), *ends)) > 40
