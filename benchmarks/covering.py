"""Measure maximal covering on public instances and on random points.

    python benchmarks/covering.py                                   # New York and San Francisco, p = 50 to 100
    python benchmarks/covering.py --cities NewYork --units 80 --limit 60
    python benchmarks/covering.py --points 20000 --limit 300        # drawn evenly on 30 km by 30 km, within 1 km

The instances are those of Máximo, Cordeau and Nascimento (2023), ``mclp/*.txt`` in the folder that `EMSOPT_DATA` names:
every node is a place to cover and a site. Each run is a process of its own, which tells its memory. Written are the
value, its distance to the best known one, the gap (upper bound minus coverage, as a share of all demand), seconds of
the wall clock and CPU seconds of the call, and the peak memory. ``--linear`` adds the gap that the linear bound (HiGHS)
leaves to the best known value.
"""

import argparse
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

import emsopt as eo

RADIUS_M, EARTH_M = {"NewYork": 400, "SanFrancisco": 600}, 6_378_100
BEST_KNOWN = {
    "NewYork": {50: 1153640, 60: 1288174, 70: 1396333, 80: 1481434, 90: 1539992, 100: 1574256},
    "SanFrancisco": {50: 617592, 60: 683139, 70: 733772, 80: 769781, 90: 791562, 100: 802307},
}


def instance(name):
    """Return the distances (m) and the demand of a public instance."""
    lines = (Path(os.environ["EMSOPT_DATA"]) / "mclp" / f"{name}.txt").read_text().splitlines()
    header = dict(line.replace(" ", "").split(":") for line in lines if ":" in line)
    n, first = int(header["DIMENSION"]), lines.index("DEMAND_SECTION")
    nodes = next(k for k, line in enumerate(lines) if line.startswith("NODE_COORD_SECTION"))
    lat, lon = np.radians(np.array([line.split()[:2] for line in lines[nodes + 1 : nodes + 1 + n]], float)).T
    cosine = np.sin(lat)[:, None] * np.sin(lat) + np.cos(lat)[:, None] * np.cos(lat) * np.cos(lon[:, None] - lon)
    return EARTH_M * np.arccos(np.clip(cosine, -1, 1)), np.array(lines[first + 1 : first + 1 + n], float)


def linear_bound(metres, demand, radius, p):
    """Return the optimum of the linear relaxation."""
    import scipy.sparse as sp
    from scipy.optimize import linprog

    n, within = len(demand), sp.csr_array((metres <= radius).astype(float))
    rows = {"A_ub": sp.hstack([-within.T, sp.eye_array(n)]), "b_ub": np.zeros(n)}
    rows |= {"A_eq": np.r_[np.ones(n), np.zeros(n)][None], "b_eq": [p]}
    return -linprog(np.r_[np.zeros(n), -demand], bounds=(0, 1), method="highs-ipm", **rows).fun


def solve_instance(name, p, limit, with_linear):
    metres, demand = instance(name)
    radius, total = RADIUS_M[name], demand.sum()
    bound = linear_bound(metres, demand, radius, p) if with_linear else np.nan
    city = eo.City(demand / total, metres / 500, turnout_times=0, service_times=30)
    city = city.replace(arrival_rates=demand / 1000)
    del metres
    eo.evaluators.mclp(eo.datasets.load_st_paul(), 3)  # compiles
    start, cpu = time.perf_counter(), time.process_time()
    found = eo.evaluators.mclp(city, p, threshold=np.nextafter(radius / 500, np.inf), time_limit=limit)
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    value, best = round(found.coverage * total), BEST_KNOWN[name][p]
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    linear = (bound - best) / total
    print(
        f"{name:>12} {p:>4} {value:>9} {100 * (value / best - 1):>8.4f} {found.gap:>8.5f} {linear:>8.5f}"
        f" {seconds:>6.1f} {cpu:>6.1f} {memory:>6.0f}",
        flush=True,
    )


def solve_points(n, p, limit):
    rng = np.random.default_rng(0)
    points, demand = rng.uniform(0, 30, (n, 2)), rng.integers(1, 101, n)
    start, cpu = time.perf_counter(), time.process_time()
    found = eo.evaluators.mclp_of_points(points, points, demand, p, radius=1.0, geographic=False, time_limit=limit)
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{n} points, p = {p}: covered {found.coverage:.4%}, gap {100 * found.gap / found.coverage:.3f} % of it")
    print(f"{seconds:.1f} s, {cpu:.1f} CPU s, {memory:.0f} MB")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cities", nargs="+", default=list(RADIUS_M), choices=list(RADIUS_M))
    parser.add_argument("--units", type=int, nargs="+", default=range(50, 101, 10))
    parser.add_argument("--limit", type=float, default=60.0, help="seconds per instance")
    parser.add_argument("--points", type=int, help="draw so many points instead")
    parser.add_argument("--linear", action="store_true", help="compute the linear bound too")
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.points:
        solve_points(options.points, 100, options.limit)
    elif options.one:
        solve_instance(options.one[0], int(options.one[1]), options.limit, options.linear)
    else:
        print("instance, p, value, % above the best known, gap, linear gap, seconds, CPU seconds, MB")
        for name in options.cities:
            for p in options.units:
                given = ["--one", name, str(p), "--limit", str(options.limit)] + ["--linear"] * options.linear
                subprocess.run([sys.executable, __file__, *given], check=True)


if __name__ == "__main__":
    main()
