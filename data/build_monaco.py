"""Rebuild the embedded road network of Monaco from an OpenStreetMap extract.

    python data/build_monaco.py                     build from raw/monaco, write emsopt/data/monaco and SHA256SUMS
    python data/build_monaco.py --dry-run           build and print only
    python data/build_monaco.py --elevation NET     also say how far the terrain is from a SUMO network with heights
    python data/build_monaco.py --extract OSM.PBF   first cut raw/monaco out of a larger extract

Needs ``pip install emsopt[roads]``. Roads, turns and speed defaults: `emsopt.roads._osm`.

**Terrain is a surrogate**, made of what the map itself knows of heights: its survey points and peaks, and the coast at
0 m, each averaged on cells of 100 m, and a thin-plate spline through them, nowhere below 0. There are about two dozen
such heights for 60 square kilometres. Left out one by one they are missed by more than 100 m (printed), so that single
streets may be steeper or flatter than they are, while coast, town and mountain lie where they should. The kind of
spline was chosen by that error and by nothing else.
"""

import argparse
import gzip
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import osmium
import pyproj
from scipy.interpolate import RBFInterpolator

import emsopt as eo
from emsopt.roads._osm import ACCESS_TAGS, SPEEDS_KMH

HERE = Path(__file__).resolve().parent
RAW = HERE / "raw" / "monaco" / "monaco-2016-roads.osm.pbf"
EMBEDDED = HERE.parent / "emsopt" / "data" / "monaco" / "roads.json.gz"
CELL_M = 100.0
CENTRE = np.array([7.42, 43.74])  # longitude, latitude
KIND = "thin_plate_spline"
NODE_TAGS = {"barrier", "ele", *ACCESS_TAGS}


def cut(extract):
    """Keep of an extract what the network is made of: roads for cars, their nodes and turns, coast and heights."""
    roads, nodes = set(), set()
    for element in osmium.FileProcessor(str(extract)):
        if element.is_way() and is_kept(element):
            roads.add(element.id)
            nodes.update(node.ref for node in element.nodes)
    RAW.unlink(missing_ok=True)
    with osmium.SimpleWriter(osmium.io.File(str(RAW), "pbf,add_metadata=false")) as writer:  # nobody's name
        for element in osmium.FileProcessor(str(extract)):
            if element.is_node() and (element.id in nodes or "ele" in element.tags):
                kept = {key: value for key, value in element.tags if key in NODE_TAGS}
                writer.add_node(element.replace(tags=kept))
            elif element.is_way() and element.id in roads:
                writer.add_way(element)
            elif element.is_relation() and element.tags.get("type") == "restriction":
                writer.add_relation(element)


def is_kept(way):
    return way.tags.get("highway") in SPEEDS_KMH or way.tags.get("natural") == "coastline"


def metres(places):
    """Return metres east and north of the centre, for longitudes and latitudes."""
    per_degree = np.radians(1000 * eo.city.travel.EARTH_RADIUS_KM)
    return (places - CENTRE) * per_degree * [np.cos(np.radians(CENTRE[1])), 1]


def known_heights():
    """Return places (metres) and heights of survey points and peaks, and of the coast, averaged on cells."""
    surveyed, coast = [], []
    for element in osmium.FileProcessor(str(RAW)).with_locations():
        if element.is_node() and "ele" in element.tags:
            surveyed.append((element.location.lon, element.location.lat, float(element.tags["ele"])))
        elif element.is_way() and element.tags.get("natural") == "coastline":
            coast += [(node.lon, node.lat, 0.0) for node in element.nodes if node.location.valid()]
    return on_cells(np.array(surveyed)), on_cells(np.array(coast))


def on_cells(points):
    """Average places and heights on square cells, so that heights a step apart do not make a cliff."""
    points = np.column_stack([metres(points[:, :2]), points[:, 2]])
    _, cell, counts = np.unique(np.floor(points[:, :2] / CELL_M), axis=0, return_inverse=True, return_counts=True)
    return np.column_stack([np.bincount(cell.ravel(), column) / counts for column in points.T])


def terrain(points):
    """Return a function from longitude and latitude to height, through known places and heights."""
    spline = RBFInterpolator(points[:, :2], points[:, 2], kernel=KIND)
    return lambda places: np.maximum(spline(metres(places)), 0.0)


def left_out_error(surveyed, coast):
    """Return the root mean square error, in metres, of predicting each surveyed height from all others."""
    errors = []
    for k in range(len(surveyed)):
        others = np.vstack([np.delete(surveyed, k, axis=0), coast])
        spline = RBFInterpolator(others[:, :2], others[:, 2], kernel=KIND)
        errors.append(max(spline(surveyed[k : k + 1, :2])[0], 0.0) - surveyed[k, 2])
    return np.sqrt(np.mean(np.square(errors)))


def build():
    """Return the network, with all inclines from the surrogate."""
    points = np.vstack(known_heights())
    net = eo.RoadNetwork.from_osm(RAW, heights=terrain(points), name="monaco")
    notes = (
        "OpenStreetMap, March 2016, (c) OpenStreetMap contributors, ODbL 1.0. TERRAIN IS A SURROGATE: a thin-plate "
        f"spline through about two dozen surveyed heights and the coast, not an elevation model. {net.notes}"
    )
    return replace(net, notes=notes)


def reference(path):
    """Return longitude, latitude and height of the junctions of a SUMO network, within the extract."""
    rows, offset, system = [], None, None
    with gzip.open(path) if str(path).endswith(".gz") else open(path, "rb") as stream:
        for _, element in ElementTree.iterparse(stream):
            if element.tag == "location":
                offset = np.array([float(number) for number in element.get("netOffset").split(",")])
                system = element.get("projParameter")
            elif element.tag == "junction" and element.get("z") and element.get("type") != "internal":
                rows.append([float(element.get(key)) for key in "xyz"])
            element.clear()
    rows = np.array(rows)
    convert = pyproj.Transformer.from_crs(system, "EPSG:4326", always_xy=True).transform
    places = np.column_stack(convert(*(rows[:, :2] - offset).T))
    west, south, east, north = 7.349, 43.715, 7.491, 43.770
    inside = (places > [west, south]).all(axis=1) & (places < [east, north]).all(axis=1)
    return places[inside], rows[inside, 2]


def residual(path):
    """Print how far the surrogate is from a network with heights."""
    places, wanted = reference(path)
    error = terrain(np.vstack(known_heights()))(places) - wanted
    print(
        f"{len(places)} junctions with heights: root mean square error {np.sqrt(np.mean(error**2)):.0f} m, median "
        f"absolute error {np.median(np.abs(error)):.0f} m, bias {error.mean():+.0f} m, correlation "
        f"{np.corrcoef(error + wanted, wanted)[0, 1]:.2f}; heights have a standard deviation of {wanted.std():.0f} m"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dry-run", action="store_true", help="build and print, but write nothing")
    parser.add_argument("--extract", type=Path, help="an OpenStreetMap extract to cut the raw file out of")
    parser.add_argument("--elevation", type=Path, help="a SUMO network whose junctions have heights")
    options = parser.parse_args()
    if options.extract:
        cut(options.extract)
    net = build()
    surveyed, coast = known_heights()
    print(net, net.notes, sep="\n")
    print(f"{len(surveyed)} surveyed heights, {len(coast)} places on the coast; left out one by one, the surveyed ones")
    print(f"are missed by {left_out_error(surveyed, coast):.0f} m (root mean square)")
    if options.elevation:
        residual(options.elevation)
    if not options.dry_run:
        from build_st_paul import write_checksums

        EMBEDDED.parent.mkdir(exist_ok=True)
        net.save(EMBEDDED)
        write_checksums()


if __name__ == "__main__":
    main()
