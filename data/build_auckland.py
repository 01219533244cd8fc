"""Reduce the Auckland case of JEMSS to what ships with the package: places, driving times between them, and main roads.

    EMSOPT_DATA=FOLDER python data/build_auckland.py    write emsopt/data/auckland and SHA256SUMS, in a minute

FOLDER/auckland holds the files of the case, data/cities/auckland of github.com/uoa-ems-research/JEMSS.jl, and its
census raster as cells (``demand_cells.csv``: lon, lat, weight). Cells are merged to blocks of about 1.4 km; the atom of
a block is the cell nearest to its weighted centre. Driving times are by the quickest way along all roads of the case,
from the nearest junction at which roads may be left, and straight between it and the place, at the case's off-road
speeds.

The network of main roads is made of the fast roads and of the quickest ways with lights and sirens between all blocks
and their two nearest stations or hospitals. Junctions of two road edges are dissolved, curves simplified to 50 m, and
what cannot be both reached and left is dropped.
"""

import os
import zipfile
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import scipy.sparse as sp
import shapely
from build_st_paul import PACKAGE, write_checksums
from scipy.sparse.csgraph import connected_components, dijkstra
from scipy.spatial import cKDTree

import emsopt as eo

KM_PER_DEGREE = 88.99, 111.32  # the case's map_1.csv
OFF_ROAD_KMH = 47.0, 33.0  # its travel_1.csv: lights and sirens, regular
BLOCK = 3  # cells of about 480 m to a side
FAST_KMH, NEAREST = 60.0, 2  # speed of fast roads; the nearest stations or hospitals whose ways to a block are kept
SIMPLIFIED_DEGREES, DIGITS = 0.0005, 4  # of polylines
NOTES = (
    "Main roads of Auckland, reduced from the case of JEMSS.jl (Apache-2.0); roads (c) OpenStreetMap contributors, "
    "ODbL 1.0. Speeds are those of the case with lights and sirens, by class of road; the network is flat, as the case "
    "has no heights."
)
UNIT_MIN = 0.02  # times are stored as whole multiples, each by its step from the one before, which compresses well


def atoms(cells):
    """Return one atom a block of cells, with the share of its calls."""
    km = cells[["lon", "lat"]].to_numpy() * KM_PER_DEGREE
    block = np.floor((km - km.min(axis=0) + 0.24) / (0.48 * BLOCK)).astype(int)
    rows = []
    for _, part in cells.assign(x=km[:, 0], y=km[:, 1]).groupby([block[:, 0], block[:, 1]]):
        centre = np.average(part[["x", "y"]], axis=0, weights=part["weight"])
        middle = ((part[["x", "y"]] - centre) ** 2).sum(axis=1).idxmin()
        rows.append((cells["lon"][middle], cells["lat"][middle], part["weight"].sum()))
    found = pd.DataFrame(rows, columns=["lon", "lat", "weight"])
    return found[found["weight"] > 1e-5].sort_values(["lat", "lon"], ascending=[False, True], ignore_index=True)


def read_roads(case):
    """Return the tables of nodes and arcs."""
    with zipfile.ZipFile(case / "roads.zip") as roads:
        nodes = pd.read_csv(roads.open("nodes.csv"), skiprows=1, usecols=["x", "y", "offRoadAccess"])
        columns = ["fromNode", "toNode", "distance", "mode_1", "mode_2"]
        arcs = pd.read_csv(roads.open("arcs.csv"), skiprows=5, usecols=columns)
    return nodes.dropna(), arcs.dropna()


def nearest_junctions(nodes, places):
    """Return the junction next to each place at which roads may be left, and the km to it."""
    km = nodes[["x", "y"]].to_numpy() * KM_PER_DEGREE
    open_nodes = np.flatnonzero(nodes["offRoadAccess"] > 0)
    away, nearest = cKDTree(km[open_nodes]).query(places * KM_PER_DEGREE)
    return open_nodes[nearest], away


def driving_minutes(nodes, arcs, places):
    """Return minutes between places, shape (2, P, P), by lights and sirens and by regular driving."""
    nearest, away = nearest_junctions(nodes, places)
    ends = (arcs[["fromNode", "toNode"]].to_numpy(int) - 1).T
    minutes = []
    for mode, kmh in zip(("mode_1", "mode_2"), OFF_ROAD_KMH, strict=True):
        days = sp.coo_matrix((arcs[mode], ends), shape=(len(nodes),) * 2)
        off = away / kmh * 60
        row = np.vstack([dijkstra(days.tocsr(), indices=node)[nearest] for node in nearest]) * 1440
        minutes.append(row + off[:, None] + off[None])
        np.fill_diagonal(minutes[-1], 0)
    return np.stack(minutes)


def ways(graph, hubs, blocks):
    """Return the road edges, as pairs of nodes, on the quickest ways from each block's nearest hubs to it."""
    minutes, before = dijkstra(graph, indices=hubs, return_predecessors=True)
    used = set()
    for block in blocks.tolist():
        for hub in np.argsort(minutes[:, block])[:NEAREST]:
            node = block
            while before[hub, node] >= 0:
                used.add((int(before[hub, node]), node))
                node = int(before[hub, node])
    return used


def main_roads(nodes, arcs, places):
    """Return the network of main roads."""
    ends = arcs[["fromNode", "toNode"]].to_numpy(int) - 1
    graph = sp.csr_array((arcs["mode_1"], ends.T), shape=(len(nodes),) * 2)
    nearest, _ = nearest_junctions(nodes, places[["lon", "lat"]].to_numpy())
    is_block = (places["kind"] == "atom").to_numpy()
    used = set()
    for one_way in (graph, graph.T.tocsr()):  # there and back
        used |= ways(one_way, nearest[~is_block], nearest[is_block])
    kept = (arcs["distance"] / arcs["mode_1"] / 24 > FAST_KMH).to_numpy(copy=True)
    kept |= [(u, v) in used or (v, u) in used for u, v in ends.tolist()]
    chosen = sp.csr_array((np.ones(kept.sum()), ends[kept].T), shape=graph.shape)
    _, part = connected_components(chosen, connection="strong")
    kept &= (part[ends] == np.bincount(part).argmax()).all(axis=1)
    out = {}
    for (u, v), *data in zip(ends[kept].tolist(), *arcs[kept][["distance", "mode_1"]].to_numpy().T, strict=True):
        out.setdefault(u, {})[v] = data
    arriving = np.bincount(ends[kept][:, 1], minlength=len(nodes))
    around = {u: set(exits) for u, exits in out.items()}
    for u, exits in out.items():
        for v in exits:
            around[v].add(u)
    through = {u for u in out if len(around[u]) == 2 and len(out[u]) == arriving[u]}
    xy, closed = nodes[["x", "y"]].to_numpy(), nodes["offRoadAccess"].to_numpy() == 0
    rows, lines = [], []
    for start in sorted(set(out) - through):
        for first in out[start]:
            path = [start, first]
            while path[-1] in through:
                path += [v for v in out[path[-1]] if v != path[-2]][:1]
            if path[-1] != start:
                km, days = np.sum([out[u][v] for u, v in pairwise(path)], axis=0)
                kind = "motorway" if closed[path].all() else "fast" if km / days / 24 > FAST_KMH else "street"
                rows.append((start, path[-1], km, 1440 * days, kind))
                lines.append(shapely.LineString(xy[path]).simplify(SIMPLIFIED_DEGREES))
    edges = pd.DataFrame(rows, columns=["fromNode", "toNode", "distance", "minutes", "class"])
    corners = nodes[["x", "y"]].assign(id=np.arange(len(nodes)))
    net = eo.RoadNetwork.from_tables(corners, edges, strongly_connected=False)
    polylines = [shapely.get_coordinates(line).round(DIGITS) for line in lines]
    net = replace(net, polylines=polylines, name="auckland", notes=NOTES).largest_component()
    return replace(net, ids=[f"road {k + 1}" for k in range(net.n_edges)], notes=NOTES)


def main():
    case = Path(os.environ["EMSOPT_DATA"]) / "auckland"
    stations = pd.read_csv(case / "stations_1.csv", skiprows=1)[["NAME", "x", "y"]].dropna()
    hospitals = pd.read_csv(case / "hospitals_1.csv", skiprows=1)[["name", "x", "y"]].dropna()
    demand = atoms(pd.read_csv(case / "demand_cells.csv"))
    parts = [
        pd.DataFrame({"kind": "station", "name": stations["NAME"], "lon": stations["x"], "lat": stations["y"]}),
        demand.assign(kind="atom", name=[f"block {k + 1}" for k in range(len(demand))]),
        pd.DataFrame({"kind": "hospital", "name": hospitals["name"], "lon": hospitals["x"], "lat": hospitals["y"]}),
    ]
    places = pd.concat(parts, ignore_index=True)
    folder = PACKAGE / "auckland"
    folder.mkdir(exist_ok=True)
    places["weight"] = places["weight"].map("{:.4e}".format, na_action="ignore")
    places.round(6).to_csv(folder / "places.csv", index=False, lineterminator="\n")
    nodes, arcs = read_roads(case)
    net = main_roads(nodes, arcs, places)
    net.save(folder / "roads.json.gz")
    print(net, net.notes)
    minutes = driving_minutes(nodes, arcs, places[["lon", "lat"]].to_numpy())
    assert np.isfinite(minutes).all()
    urgent = np.rint(minutes[0] / UNIT_MIN).astype(int)
    ratio = np.median(minutes[1][urgent > 0] / minutes[0][urgent > 0])
    error = np.abs(minutes[1] - ratio * urgent * UNIT_MIN).max()
    print(f"regular times are {ratio:.5f} times as long, within {error:.2f} min")
    np.savez_compressed(folder / "steps.npz", steps=np.diff(urgent, axis=1, prepend=0).astype(np.int16))
    print(f"{len(demand)} atoms with {demand['weight'].sum():.4f} of the calls; {minutes.max():.0f} min at most")
    print({path.name: f"{path.stat().st_size / 1000:.0f} kB" for path in folder.iterdir()})
    write_checksums()


if __name__ == "__main__":
    main()
