"""Measure SparBL and its parts: the horseshoe sweep, two solvers of the quadratic program, the search itself.

    python benchmarks/sparbl.py                  # sweep and quadratic programs, one to three minutes
    python benchmarks/sparbl.py --search 10      # also 10 runs each on embedded St. Paul, (50, 20) and (50, 30)

Times are CPU milliseconds of one thread; set OPENBLAS_NUM_THREADS=1 for one thread of linear algebra. The best known
value is exact up to 12 places, otherwise that of a swap search from 100 long starts.
"""

import argparse
import statistics
import time

import numpy as np

import emsopt as eo
from emsopt.optimizers.deployments.binary_quadratic import minimize_quadratic
from emsopt.optimizers.deployments.sparbl import SparBL, SparBLPlus
from emsopt.optimizers.deployments.swaps import local_search
from emsopt.surrogates.horseshoe import Horseshoe, sample


def sweep_milliseconds(n=100, D=1276):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, D))
    y = X[:, :5] @ np.arange(1, 6) + rng.standard_normal(n)
    state = sample(Horseshoe.start(D), X, y, 50, rng=rng)
    times = []
    for _ in range(9):
        start = time.thread_time()
        state = sample(state, X, y, 50, rng=rng)
        times.append((time.thread_time() - start) / 50 * 1e3)
    return statistics.median(times)


def quadratic(rng, n, density):
    A = np.triu(rng.standard_normal((n, n)) * (rng.random((n, n)) < density), 1)
    return A + A.T, 2 * rng.standard_normal(n)


def compare_quadratic(sizes, seeds):
    """Print how often each method reaches the best known value, and its time."""
    misses, gaps, clock = ({"swap": [], "relaxation": []} for _ in range(3))
    for n in sizes:
        for density in (0.1, 0.5, 1.0):
            for share in (0.2, 0.4, 0.5):
                for seed in seeds:
                    A, b = quadratic(np.random.default_rng([n, seed, int(10 * density)]), n, density)
                    p = int(share * n)
                    best = minimize_quadratic(A, b, p, starts=100, steps=10 * n, rng=99).value
                    for method in clock:
                        start = time.thread_time()
                        found = minimize_quadratic(A, b, p, method=method, rng=0)
                        clock[method].append((time.thread_time() - start) * 1e3)
                        misses[method].append((found.value - best) / abs(best) * 100)
                        gaps[method].append(found.gap / abs(best) * 100)
    for method, percent in misses.items():
        hits = sum(m <= 1e-7 for m in percent)
        print(
            f"  N in {sizes}, {method:10}: best known {hits} of {len(percent)}, worst {max(percent):.2f} %, "
            f"{statistics.median(clock[method]):.1f} ms (most {max(clock[method]):.1f}), "
            f"reported gap {statistics.median(gaps[method]):.0f} % in the median"
        )


def search(method, objective, best, budget, seed):
    """Return the gap to the best known value (%), the evaluations needed to reach it, and CPU ms per proposal."""
    optimizer, reached, start = method(objective, rng=seed), None, time.thread_time()
    for k in range(1, budget + 1):
        x = optimizer.ask()
        optimizer.tell(x, objective(x))
        if reached is None and optimizer.best[1] <= best + 1e-9:
            reached = k
    return (
        (optimizer.best[1] / best - 1) * 100,
        reached,
        (time.thread_time() - start) / (budget - optimizer.initial) * 1e3,
    )


def compare_searches(runs):
    st_paul = eo.datasets.load_st_paul()
    for label, budget, cases in (
        ("St. Paul", 100, [(st_paul, 9)]),
        ("(50, 20)", 120, [(eo.datasets.grid_city(50, 20, rng=s), 20) for s in range(2)]),
        ("(50, 30)", 120, [(eo.datasets.grid_city(50, 30, rng=s), 30) for s in range(2)]),
    ):
        results = {SparBL: [], SparBLPlus: []}
        for city, p in cases:
            objective = eo.Objective(city, p, "approximate")
            if label == "St. Paul":
                best = eo.evaluators.evaluate_all(city, p, evaluator="approximate").values.min()
            else:
                best = local_search(objective, restarts=4, rng=0).fun
            for method, rows in results.items():
                rows += [search(method, objective, best, budget, s) for s in range(-(-runs // len(cases)))]
        for method, rows in results.items():
            found = [r[1] for r in rows if r[1] is not None]
            gap, ms = (statistics.median(r[k] for r in rows) for k in (0, 2))
            print(
                f"  {label}, {method.__name__:10}: median gap {gap:.2f} % at {budget} (worst "
                f"{max(r[0] for r in rows):.2f}), best known in {len(found)} of {len(rows)} after "
                f"{statistics.median(found) if found else '-'} evaluations, {ms:.0f} ms"
            )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--search", type=int, default=0, metavar="RUNS")
    options = parser.parse_args()
    print(f"horseshoe sweep, n = 100, D = 1276: {sweep_milliseconds():.2f} ms")
    print("binary quadratic programs, against the best known")
    minimize_quadratic(*quadratic(np.random.default_rng(0), 5, 1.0), 2)  # compiles
    compare_quadratic((20, 30, 40, 50), (0,))
    compare_quadratic((100,), (0,))
    if options.search:
        compare_searches(options.search)


if __name__ == "__main__":
    main()
