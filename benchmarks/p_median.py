"""Compare the exact p-median with a general solver and, if it is installed, with the package pbp-pmedian.

    python benchmarks/p_median.py                        # 100 x 100, p = 10: seconds
    python benchmarks/p_median.py --sizes 200x200x20 200x1000x20 --limit 300 --instances 3
    python benchmarks/p_median.py --kind scattered       # times without geometry: the hard case
    python benchmarks/p_median.py --orlib FOLDER         # pmed1.txt to pmed40.txt of the OR-Library

Random cities have sites and atoms anywhere in a square ("plane"), or times drawn
independently ("scattered"). Times are medians of CPU seconds over the instances, after one run that compiles; the limit
is in seconds of the wall clock. "Proven" counts the instances solved to optimality within it, and the gap is the
largest left by emsopt. Where two methods prove an instance, their optima must agree. Several sizes of increasing N M
give the exponent of growth, the slope of log time over log N M.
"""

import argparse
import os
import resource
import statistics
import time
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from _timing import growth_exponent
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse.csgraph import shortest_path

import emsopt as eo


def random_city(kind, n_sites, n_atoms, seed):
    rng = np.random.default_rng(seed)
    if kind == "plane":
        times = eo.city.travel.plane_km(rng.uniform(0, 20, (n_sites, 2)), rng.uniform(0, 20, (n_atoms, 2)))
    else:
        times = rng.uniform(1, 20, (n_sites, n_atoms))
    return eo.City(rng.uniform(size=n_atoms), times, turnout_times=1.75, service_times=30)


def orlib_city(path):
    """Return a city of the OR-Library and its p. Of parallel edges the last one counts."""
    (n, _, p), *edges = np.loadtxt(path, dtype=int, ndmin=2)
    lengths = np.full((n, n), np.inf)
    for i, j, length in edges:
        lengths[i - 1, j - 1] = lengths[j - 1, i - 1] = length
    return eo.City(np.ones(n), shortest_path(lengths), turnout_times=0, service_times=30), int(p)


def cpu_seconds():
    """Return the CPU seconds of this process and of the solvers that it started."""
    return time.process_time() + sum(os.times()[2:4])


def lagrangian(city, units, limit):
    found = eo.evaluators.p_median(city, units, time_limit=limit)
    return found.objective, found.gap


def general(city, units, limit):
    """Solve problem (4a)-(4f) as formulated in the papers, with HiGHS."""
    n, m = city.response_times.shape
    placed = np.r_[np.ones(n), np.zeros(n * m)]
    served = sp.hstack([sp.csr_array((m, n)), sp.kron(np.ones((1, n)), sp.eye_array(m))])
    staffed = sp.hstack([-sp.kron(sp.eye_array(n), np.ones((m, 1))), sp.eye_array(n * m)])
    result = milp(
        np.r_[np.zeros(n), (city.response_times * city.demand_shares).ravel()],
        integrality=placed,
        bounds=Bounds(0, 1),
        constraints=[
            LinearConstraint(served, 1, 1),
            LinearConstraint(placed, units, units),
            LinearConstraint(staffed, ub=0),
        ],
        options={"mip_rel_gap": 0.0, "time_limit": limit},
    )
    return (result.fun, 0) if result.status == 0 else (None, np.nan)


def pseudo_boolean(city, units, limit):
    import pbp_pmedian

    costs = city.response_times * city.demand_shares
    value, _, _, status, _ = pbp_pmedian.solve(costs, units, time_limit=limit)
    return (value, 0) if status == 0 else (None, np.nan)


def measured(method, city, units, limit):
    """Return CPU seconds, the optimum (None if not proven) and the gap."""
    start = cpu_seconds()
    value, gap = method(city, units, limit)
    return cpu_seconds() - start, value if gap == 0 else None, gap


def compare_random(options, methods):
    print(f"{options.kind} cities, {options.instances} instances each, limit {options.limit:g} s")
    print(f"{'N x M x p':>16} {'method':>12} {'median s':>9} {'slowest s':>9} {'proven':>7} {'gap':>8} {'peak MB':>8}")
    medians = {name: [] for name in methods}
    sizes = [tuple(int(part) for part in size.split("x")) for size in options.sizes]
    for n, m, p in sizes:
        cities = [random_city(options.kind, n, m, seed) for seed in range(options.instances)]
        optima = [[] for _ in cities]
        for name, method in methods.items():
            seconds, values, gaps = zip(*(measured(method, city, p, options.limit) for city in cities), strict=True)
            medians[name].append(statistics.median(seconds))
            for known, value in zip(optima, values, strict=True):
                known += [] if value is None else [value]
            proven = len(cities) - values.count(None)
            memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            row = f"{f'{n}x{m}x{p}':>16} {name:>12} {medians[name][-1]:9.3f} {max(seconds):9.3f}"
            print(f"{row} {proven:>5}/{len(cities)} {max(gaps):8.4%} {memory:8.0f}", flush=True)
        for values in optima:
            assert np.allclose(values, values[:1], rtol=1e-6), values
    if len(sizes) > 2:
        for name, seconds in medians.items():
            print(f"{name}: CPU seconds grow as (N M)^{growth_exponent([n * m for n, m, _ in sizes], seconds):.2f}")


def compare_orlib(options, methods):
    print(f"{'instance':>8} {'p':>4} {'optimum':>8}" + "".join(f" {name + ', s':>14}" for name in methods))
    for k in options.numbers:
        city, p = orlib_city(options.orlib / f"pmed{k}.txt")
        found = [measured(method, city, p, options.limit) for method in methods.values()]
        optima = {round(value * city.n_atoms) for _, value, _ in found if value is not None}
        assert len(optima) < 2, optima
        times = "".join(f" {seconds:13.2f}{' ' if value is not None else '*'}" for seconds, value, _ in found)
        print(f"{f'pmed{k}':>8} {p:>4} {optima.pop() if optima else '?':>8}{times}", flush=True)
    print("* not proven within the limit")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", nargs="+", default=["100x100x10"], metavar="NxMxP")
    parser.add_argument("--kind", choices=("plane", "scattered"), default="plane")
    parser.add_argument("--instances", type=int, default=5)
    parser.add_argument("--limit", type=float, default=60.0, help="seconds an instance")
    parser.add_argument("--orlib", type=Path, metavar="FOLDER", help="solve pmed1.txt to pmed40.txt")
    parser.add_argument("--numbers", type=int, nargs="+", default=range(1, 41), help="instances of the OR-Library")
    parser.add_argument("--only", nargs="+", choices=("emsopt", "HiGHS", "pbp-pmedian"), help="methods")
    options = parser.parse_args()
    methods = {"emsopt": lagrangian, "HiGHS": general, "pbp-pmedian": pseudo_boolean}
    try:
        import pbp_pmedian  # noqa: F401
    except ImportError:
        print("pbp-pmedian is not installed and left out")
        del methods["pbp-pmedian"]
    if options.orlib:
        del methods["HiGHS"]  # minutes an instance
    methods = {name: method for name, method in methods.items() if options.only is None or name in options.only}
    lagrangian(random_city("plane", 10, 10, 0), 3, 60)
    (compare_orlib if options.orlib else compare_random)(options, methods)


if __name__ == "__main__":
    main()
