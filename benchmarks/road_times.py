"""Measure road times between many points of Auckland.

    EMSOPT_DATA=FOLDER python benchmarks/road_times.py

The folder holds ``auckland/roads.zip`` and ``auckland/demand_cells.csv``: the roads of JEMSS's case (54,370 nodes,
90,638 arcs), and cells of its population. Each line has wall-clock and CPU seconds of one thread, including what is
compiled or prepared at first use, and the largest difference from Dijkstra's algorithm on nodes (scipy), between
junctions.
"""

import os
import resource
import time
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

import emsopt as eo

SEED, CHECKED = 0, 20  # the origins whose times are compared


def measured(name, function):
    wall, cpu = time.perf_counter(), time.process_time()
    result = function()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    print(f"{name:38} {wall:6.1f} s, {cpu:5.1f} s of the processor")
    return result


def main():
    folder = Path(os.environ.get("EMSOPT_DATA", "."), "auckland")
    roads, cells = folder / "roads.zip", folder / "demand_cells.csv"
    if not (roads.is_file() and cells.is_file()):
        raise SystemExit("Set EMSOPT_DATA to a folder with auckland/roads.zip and auckland/demand_cells.csv.")
    net = measured("read the tables", lambda: eo.RoadNetwork.from_tables(roads))
    print(net)
    points = pd.read_csv(cells)[["lon", "lat"]].to_numpy()
    ends = np.array([line[[0, -1]] for line in net.polylines])
    nodes, index = np.unique(ends.reshape(-1, 2), axis=0, return_inverse=True)
    rng = np.random.default_rng(SEED)
    origins, destinations = rng.choice(len(nodes), 2300, replace=False), rng.choice(len(nodes), 2800, replace=False)
    few = nodes[origins[:CHECKED]]
    measured(f"{len(few)} x {len(points):,} cells, first call", lambda: net.travel_times(few, points))
    measured(f"{len(few)} x {len(points):,} cells", lambda: net.travel_times(few, points))
    times = measured("2,300 x 2,800", lambda: net.travel_times(nodes[origins], nodes[destinations]))
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GB")
    graph = csr_array((net.edge_minutes(), index.reshape(-1, 2).T), shape=(len(nodes), len(nodes)))
    expected = dijkstra(graph, indices=origins[:CHECKED])[:, destinations]
    print(f"largest difference {np.abs(times[:CHECKED] - expected).max():.1g} min")


if __name__ == "__main__":
    main()
