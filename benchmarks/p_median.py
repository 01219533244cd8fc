"""Compare the exact p-median with a general solver and, if it is installed, with the package pbp-pmedian.

    python benchmarks/p_median.py                        # 100 x 100, p = 10: seconds
    python benchmarks/p_median.py --sizes 200x200x20 200x1000x20 --limit 300 --instances 3
    python benchmarks/p_median.py --kind scattered       # times without geometry: the hard case

Random cities have sites and atoms anywhere in a square ("plane"), or times drawn independently ("scattered"). Times are
medians of wall-clock seconds over the instances, after one run that compiles; "proven" counts the instances solved to
optimality within the limit. Where two methods prove an instance, their optima must agree.
"""

import argparse
import statistics
import time

import numpy as np
import scipy.sparse as sp
from scipy.optimize import Bounds, LinearConstraint, milp

import emsopt as eo


def random_city(kind, n_sites, n_atoms, seed):
    rng = np.random.default_rng(seed)
    if kind == "plane":
        times = eo.city.travel.plane_km(rng.uniform(0, 20, (n_sites, 2)), rng.uniform(0, 20, (n_atoms, 2)))
    else:
        times = rng.uniform(1, 20, (n_sites, n_atoms))
    return eo.City(rng.uniform(size=n_atoms), times, turnout_times=1.75, service_times=30)


def lagrangian(city, units, limit):
    found = eo.evaluators.p_median(city, units, time_limit=limit)
    return found.objective if found.gap == 0 else None


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
    return result.fun if result.status == 0 else None


def pseudo_boolean(city, units, limit):
    import pbp_pmedian

    costs = city.response_times * city.demand_shares
    value, _, _, status, _ = pbp_pmedian.solve(costs, units, time_limit=limit)
    return value if status == 0 else None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", nargs="+", default=["100x100x10"], metavar="NxMxP")
    parser.add_argument("--kind", choices=("plane", "scattered"), default="plane")
    parser.add_argument("--instances", type=int, default=5)
    parser.add_argument("--limit", type=float, default=60.0, help="seconds an instance")
    options = parser.parse_args()
    methods = {"emsopt": lagrangian, "HiGHS": general}
    try:
        import pbp_pmedian  # noqa: F401

        methods["pbp-pmedian"] = pseudo_boolean
    except ImportError:
        print("pbp-pmedian is not installed and left out")
    lagrangian(random_city("plane", 10, 10, 0), 3, 60)

    print(f"{options.kind} cities, {options.instances} instances each, limit {options.limit:g} s")
    print(f"{'N x M x p':>14} {'method':>12} {'median s':>9} {'slowest s':>9} {'proven':>7}")
    for size in options.sizes:
        n, m, p = (int(part) for part in size.split("x"))
        cities = [random_city(options.kind, n, m, seed) for seed in range(options.instances)]
        optima = [[] for _ in cities]
        for name, method in methods.items():
            seconds, proven = [], 0
            for city, values in zip(cities, optima, strict=True):
                start = time.perf_counter()
                value = method(city, p, options.limit)
                seconds.append(time.perf_counter() - start)
                if value is not None:
                    values.append(value)
                    proven += 1
            row = f"{size:>14} {name:>12} {statistics.median(seconds):9.3f} {max(seconds):9.3f}"
            print(f"{row} {proven:>5}/{len(cities)}", flush=True)
        for values in optima:
            assert np.allclose(values, values[:1], rtol=1e-6), values


if __name__ == "__main__":
    main()
