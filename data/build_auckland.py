"""Reduce the Auckland case of JEMSS to what ships with the package: places, and driving times between all of them.

    EMSOPT_DATA=FOLDER python data/build_auckland.py    write emsopt/data/auckland and SHA256SUMS, in a minute

FOLDER/auckland holds the files of the case, data/cities/auckland of github.com/uoa-ems-research/JEMSS.jl, and its
census raster as cells (``demand_cells.csv``: lon, lat, weight). Cells are merged to blocks of about 1.4 km; the atom of
a block is the cell nearest to its weighted centre. Driving times are by the quickest way along all roads of the case,
from the nearest junction at which roads may be left, and straight between it and the place, at the case's off-road
speeds.
"""

import os
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import scipy.sparse as sp
from build_st_paul import PACKAGE, write_checksums
from scipy.sparse.csgraph import dijkstra
from scipy.spatial import cKDTree

KM_PER_DEGREE = 88.99, 111.32  # the case's map_1.csv
OFF_ROAD_KMH = 47.0, 33.0  # its travel_1.csv: lights and sirens, regular
BLOCK = 3  # cells of about 480 m to a side
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


def driving_minutes(case, places):
    """Return minutes between places, shape (2, P, P), by lights and sirens and by regular driving."""
    with zipfile.ZipFile(case / "roads.zip") as roads:
        nodes = pd.read_csv(roads.open("nodes.csv"), skiprows=1, usecols=["x", "y", "offRoadAccess"])
        arcs = pd.read_csv(roads.open("arcs.csv"), skiprows=5, usecols=["fromNode", "toNode", "mode_1", "mode_2"])
    nodes, arcs = nodes.dropna(), arcs.dropna()
    km = nodes[["x", "y"]].to_numpy() * KM_PER_DEGREE
    open_nodes = np.flatnonzero(nodes["offRoadAccess"] > 0)
    away, nearest = cKDTree(km[open_nodes]).query(places * KM_PER_DEGREE)
    nearest = open_nodes[nearest]
    ends = (arcs[["fromNode", "toNode"]].to_numpy(int) - 1).T
    minutes = []
    for mode, kmh in zip(("mode_1", "mode_2"), OFF_ROAD_KMH, strict=True):
        days = sp.coo_matrix((arcs[mode], ends), shape=(len(nodes),) * 2)
        off = away / kmh * 60
        row = np.vstack([dijkstra(days.tocsr(), indices=node)[nearest] for node in nearest]) * 1440
        minutes.append(row + off[:, None] + off[None])
        np.fill_diagonal(minutes[-1], 0)
    return np.stack(minutes)


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
    minutes = driving_minutes(case, places[["lon", "lat"]].to_numpy())
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
