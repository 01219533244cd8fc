"""Measure the speed of the hypercube evaluators, next to a general library on the same equations.

    python benchmarks/hypercube.py            # p up to 15, half a minute
    python benchmarks/hypercube.py --large    # also p = 20, every deployment of St. Paul exactly
    python benchmarks/hypercube.py --growth   # three sizes of each task and the exponents of growth: two minutes
    python benchmarks/hypercube.py --spatial-queue FILE   # beside HomogeneousRate.py of StarYX96/SpatialQueue

Times are medians of several runs after one that compiles, in CPU seconds of all threads, except where the wall clock
is named.
"""

import argparse
import re
import runpy
import subprocess
import sys
import time
from functools import partial
from itertools import combinations
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import scipy.sparse as sp
from _timing import growth_exponent, median_seconds, medians
from scipy.sparse.linalg import spsolve

import emsopt as eo
from emsopt.evaluators import evaluate_all, exact_hypercube, values


def general_solver(city, sites):
    """Return the mean response by a sparse direct solve of Larson's balance equations, with scipy alone."""
    p, n = len(sites), 1 << len(sites)
    rates, mu = city.arrival_rates / 60, 1 / city.service_times[sites].mean(axis=1)
    order = np.argsort(city.response_times[sites], axis=0, kind="stable").T
    states = np.arange(n)
    first = np.full((city.n_atoms, n), -1)
    for rank in range(p - 1, -1, -1):
        unit = order[:, rank][:, None]
        first = np.where((states >> unit) & 1 == 0, unit, first)
    free = first[:, :-1]
    rows, cols = (states[:-1] | (1 << free)).ravel(), np.broadcast_to(states[:-1], free.shape).ravel()
    up = sp.coo_matrix((np.repeat(rates, n - 1), (rows, cols)), shape=(n, n))
    busy = (states[:, None] >> np.arange(p)) & 1
    b, k = np.nonzero(busy)
    down = sp.coo_matrix((mu[k], (b ^ (1 << k), b)), shape=(n, n))
    flow = (up + down).tocsc()
    balance = (flow - sp.diags(np.asarray(flow.sum(axis=0)).ravel())).tolil()
    balance[0] = 1.0
    right = np.zeros(n)
    right[0] = 1.0
    P = spsolve(balance.tocsc(), right)
    minutes = city.response_times[sites][free, np.arange(city.n_atoms)[:, None]]
    return (rates @ (minutes @ P[:-1])) / rates.sum() / (1 - P[-1])


def exact_line(p, spread, runs):
    """Time one exact evaluation of ``p`` units and return the line to print."""
    grid = eo.datasets.grid_city(n_sites=p, units=p, load=0.5, rng=0)
    grid = grid.replace(service_times=30 * (1 + spread * np.random.default_rng(1).random(p)))
    sites = np.arange(p)
    seconds, wall = medians(lambda: exact_hypercube(grid, sites), runs, time.process_time, time.perf_counter)
    e = exact_hypercube(grid, sites)
    rates = "unit-specific rates" if spread else "equal rates"
    line = f"  p = {p:2}, {rates:19}: {seconds * 1e3:8.2f} ms, {wall * 1e3:8.2f} wall, {e.iterations} sweeps"
    line += f", residual {e.residual:.0e}"
    if p <= 12:
        general = median_seconds(lambda: general_solver(grid, sites), 3)
        apart = abs(general_solver(grid, sites) - e.mean_response)
        line += f"; scipy sparse solve {general * 1e3:6.0f} ms ({general / seconds:.0f} x), {apart:.0e} min apart"
    return line


def spatial_queue(path):
    """Time SpatialQueue's birth and death model on its own random cities, and the same cities here."""
    peer, mu = SimpleNamespace(**runpy.run_path(str(path))), 1.76  # services an hour
    for p in (9, 12, 15):
        rate, sites = 0.5 * mu * p, np.arange(p)  # a load of 0.5
        minutes, shares = peer.Random_Pref(p, 71, seed=4)[1][:, :p].T, peer.Random_Fraction(71, seed=4)
        city = eo.City(shares * rate, minutes, turnout_times=0, service_times=60 / mu)
        their = partial(lambda p, rate: peer.BnD(p, mu, rate, *peer.Transition_Rate(p, 71, rate, mu))[0], p, rate)
        our = partial(exact_hypercube, city, sites)
        rough = lambda city=city, sites=sites: exact_hypercube(city, sites, tol=1e-4)
        seconds, *ours = median_seconds(their, 3), median_seconds(our, 9), median_seconds(rough, 9)
        busy, here = (np.arange(1 << p)[:, None] >> sites & 1).T @ their(), our().utilizations
        print(
            f"  p = {p:2}: {seconds:.3f} s, here {1e3 * ours[0]:.2f} ms ({seconds / ours[0]:.0f} x), with a tolerance "
            f"of 1e-4 {1e3 * ours[1]:.2f} ms ({seconds / ours[1]:.0f} x); utilizations "
            f"{abs(busy - here).max():.0e} and {abs(rough().utilizations - here).max():.0e} apart"
        )


def plane_city(n_sites, n_atoms, units, load=0.5):
    """Return a city whose sites and atoms lie anywhere in a square of 20 km, and 20 of its deployments."""
    rng = np.random.default_rng(0)
    minutes = eo.city.travel.plane_km(rng.uniform(0, 20, (n_sites, 2)), rng.uniform(0, 20, (n_atoms, 2)))
    city = eo.City(rng.uniform(size=n_atoms), minutes, turnout_times=1.75, service_times=30)
    return city.with_offered_load(load, units), np.array([rng.permutation(n_sites)[:units] for _ in range(20)])


def approximate_seconds(n_sites, n_atoms, units):
    """Return the CPU seconds of one approximate evaluation."""
    city, some = plane_city(n_sites, n_atoms, units)
    ready = eo.Objective(city, units, "approximate").value_function
    return median_seconds(lambda: ready(some, 1), 5) / len(some)


def swap_seconds(n_sites, n_atoms, units):
    """Return the number of single swaps, and the CPU seconds to list and to evaluate them, from those of 400."""
    city, some = plane_city(n_sites, n_atoms, units)
    objective = eo.Objective(city, units, "approximate")
    near = objective.space.neighbours(some[0])
    sample = near[:: max(1, len(near) // 400)]
    listed = median_seconds(lambda: objective.space.neighbours(some[0]), 3)
    evaluated = median_seconds(lambda: objective.value_function(sample), 3)
    return len(near), listed, evaluated * len(near) / len(sample)


def exact_seconds(units):
    """Return the CPU seconds, of all cores, of one exact evaluation."""
    city = eo.datasets.grid_city(n_sites=units, units=units, load=0.5, rng=0)
    runs = 1 if units > 20 else 5
    return median_seconds(lambda: exact_hypercube(city, np.arange(units)), runs)


def growth():
    """Print the CPU seconds of each task at three sizes, and the exponent of growth in the work."""
    small, large = ((n, n, 15) for n in (250, 500, 1000)), ((10 * p, 20 * p, p) for p in (50, 100, 200))
    for sizes in (list(small), list(large)):
        seconds = [approximate_seconds(*size) for size in sizes]
        times = ", ".join(f"{1e6 * s:.0f}" for s in seconds)
        exponent = growth_exponent([m * p for _, m, p in sizes], seconds)
        print(f"approximate, sites, atoms and units {sizes}: {times} microseconds, (units atoms)^{exponent:.2f}")

    sizes = [(10 * p, 20 * p, p) for p in (25, 50, 100)]
    counts, listed, evaluated = zip(*(swap_seconds(*size) for size in sizes), strict=True)
    for name, seconds in (("listed", listed), ("evaluated", evaluated)):
        times = ", ".join(f"{s:.3g}" for s in seconds)
        print(f"{counts} single swaps {name}: {times} s, number^{growth_exponent(counts, seconds):.2f}", flush=True)

    for sizes in ((9, 12, 15), (18, 20, 22)):
        seconds = [exact_seconds(p) for p in sizes]
        times = ", ".join(f"{s:.2g}" for s in seconds)
        exponent = growth_exponent([2**p for p in sizes], seconds)
        print(f"exact, {sizes} units: {times} s, states^{exponent:.2f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--growth", action="store_true")
    parser.add_argument("--spatial-queue", type=Path, metavar="FILE", help="its HomogeneousRate.py")
    parser.add_argument("--alone", type=int, metavar="P", help="only P units, and the memory that takes")
    options = parser.parse_args()
    if options.growth:
        growth()
        return
    if options.spatial_queue:
        spatial_queue(options.spatial_queue)
        return
    if options.alone:
        print(exact_line(options.alone, 0.0, 3))
        print(exact_line(options.alone, 1.0, 3))
        status = Path("/proc/self/status")  # Linux; a child's ru_maxrss starts at its parent's
        peak = re.search(r"VmHWM:\s+(\d+) kB", status.read_text()) if status.exists() else None
        megabytes = f"{int(peak[1]) / 1024:.0f} MB" if peak else "unknown here"
        print(f"  p = {options.alone}, peak memory of the whole process: {megabytes}")
        print("  targets on two idle cores: wall clock 1.5 s for p = 20, 20 s for 24, 150 s for 26; 300 MB for 20")
        return

    city = eo.datasets.load_st_paul()
    listed = np.array(list(combinations(range(17), 9)))
    print("approximate hypercube, St. Paul (p = 9, M = 71), tolerance 1e-8")
    seconds = median_seconds(lambda: values(city, listed, None, "approximate", workers=1), 7) / len(listed)
    print(f"  batched, one core: {seconds * 1e6:.1f} microseconds a deployment (target 20)")
    seconds = median_seconds(lambda: values(city, listed, None, "approximate"), 7, time.perf_counter)
    print(f"  all {len(listed):,} listed deployments, all cores: {seconds:.2f} s wall (target 0.5)")

    print("exact hypercube, M = 100, load 0.5, CPU of all threads (targets 1 ms for p = 9, 0.1 s for 15)")
    for p in (9, 12, 15):
        for spread in (0.0, 1.0):
            print(exact_line(p, spread, 9))
    if options.large:
        subprocess.run([sys.executable, __file__, "--alone", "20"], check=True)
        start = time.perf_counter()
        everything = evaluate_all(city, 9, "exact")
        seconds = time.perf_counter() - start
        print(f"  all {len(everything.values):,} deployments of St. Paul, all cores: {seconds:.1f} s wall (target 15)")


if __name__ == "__main__":
    main()
